"""Graphs given by their edges, and as GraKeL has them, against the same graphs as matrices."""

import numpy as np
import pytest

from mercer import SVC, RandomWalk, ShortestPath, WeisfeilerLehman
from mercer.errors import InputError, InputTypeError
from mercer.kernels.graphs import Graph, as_graph, from_edges, from_grakel

PATH = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
EDGES = {(0, 1), (1, 2)}
BOTH = EDGES | {(v, u) for u, v in EDGES}


def same(G, H):
    return np.array_equal(G.adjacency.toarray(), H.adjacency.toarray()) and G.labels == H.labels


@pytest.mark.parametrize("given", [
    EDGES,
    frozenset(BOTH),
    [(0, 1), (1, 2), (2, 1)],
    [(0, 1, 1.0), (1, 2)],
    {0: [1], 1: [0, 2], 2: [1]},
    {0: {1: 1.0}, 1: {0: 1.0, 2: 1.0}, 2: {1: 1.0}},
    dict.fromkeys(BOTH, 1.0),
    [BOTH],
    [PATH, {}],
    [PATH.tolist(), {}, {}],
    (BOTH, None, None),
])  # fmt: skip
def test_many_ways_to_give_a_path(given):
    adjacency = as_graph(given).adjacency.toarray()
    assert sorted(adjacency.sum(axis=1)) == [1, 1, 2] and (adjacency == adjacency.T).all()
    kernel = ShortestPath()
    assert kernel([given])[0, 0] == kernel([PATH])[0, 0]


def test_labels_of_nodes_and_edges():
    names = {"a": "C", "b": "C", "c": "O"}
    kinds = {("a", "b"): "-", ("b", "a"): "-", ("b", "c"): "=", ("c", "b"): "="}
    ours = Graph(PATH, ["C", "C", "O"], ["-", "-", "=", "="])
    theirs = [set(kinds), names, kinds]
    for kernel in (WeisfeilerLehman(2), ShortestPath(), RandomWalk(2)):
        np.testing.assert_allclose(kernel([theirs], [ours]), kernel([ours]), rtol=1e-13)
        assert kernel([theirs])[0, 0] != kernel([PATH])[0, 0]
    assert from_edges([("a", "b"), ("b", "c")], names, {("a", "b"): "-", ("c", "b"): "="}).edge_labels == [
        "-", "-", "=", "=",
    ]  # fmt: skip
    matrix = [PATH, dict(enumerate("CCO")), {(0, 1): "-", (1, 0): "-", (1, 2): "=", (2, 1): "="}]
    assert same(from_grakel(matrix), ours) and from_grakel(matrix).edge_labels == ours.edge_labels


def test_nodes_without_edges_are_those_with_labels():
    graph = from_edges([("a", "b")], {"c": 1, "a": 2, "b": 3})
    assert graph.n == 3 and graph.labels == [1, 2, 3] and graph.adjacency.nnz == 2


def test_direction_and_length():
    assert from_edges([(0, 1, 2.5)], directed=True).adjacency.toarray().tolist() == [[0, 2.5], [0, 0]]
    assert as_graph([{(0, 1)}, {0: "a", 1: "b"}]).adjacency.nnz == 1  # as GraKeL, in the direction given
    assert as_graph({(0, 1)}).adjacency.nnz == 2
    assert as_graph({"u": {"v": 2.0}}).adjacency.data.tolist() == [2.0]


def test_learners_take_them():
    graphs = [[{(0, 1), (1, 0)}, {0: "C", 1: "O"}], [{(0, 1), (1, 0)}, {0: "C", 1: "N"}]] * 3
    model = SVC(kernel=WeisfeilerLehman(1)).fit(graphs, [0, 1] * 3)
    assert model.predict(graphs).tolist() == [0, 1] * 3


def test_a_matrix_and_labels_is_what_it_was():
    assert same(as_graph((PATH, {0: "C", 1: "C", 2: "O"})), Graph(PATH, "CCO"))
    assert as_graph([[0, 1], [1, 0]]).n == 2


@pytest.mark.parametrize("given, error, words", [
    ([(0, 1), (1, 2)], InputError, r"may be a matrix or a list of 2 edges: pass np\.array"),
    ([(0, 1, 1), (1, 2, 1), (2, 0, 1)], InputError, "may be a matrix or a list of 3 edges"),
    ({(0, 1, 1.0), (1, 0, 2.0)}, InputError, "with the lengths"),
    ({"a": 3}, InputTypeError, "a dict of edges is"),
    ([{(0, 1)}, {0: "C"}], InputError, "labels for some nodes only, and none for 1"),
    ([{(0, 1)}, None, {(1, 0): "="}], InputError, r"labels for some edges only, and none for \(0, 1\)"),
    ([{(0, 1)}, None, {(0, 1): "=", (5, 6): "-"}], InputError, r"a label for \(5, 6\), which is no edge"),
    ({(0, 1, "far")}, InputTypeError, "an edge is a pair"),
])  # fmt: skip
def test_what_is_no_list_of_edges(given, error, words):
    with pytest.raises(error, match=words):
        as_graph(given)


class Peer:
    """What GraKeL's ``Graph`` answers: tried with grakel 0.1.11, which the tests do not install."""

    def __init__(self, edges, **labels):
        self.edges, self.labels = edges, labels

    def get_edge_dictionary(self):
        return self.edges

    def get_labels(self, label_type="vertex", purpose="adjacency", return_none=False):
        assert purpose == "dictionary" and return_none
        return self.labels.get(label_type)


def test_an_object_of_grakel():
    edges = {"a": {"b": 1.0}, "b": {"a": 1.0, "c": 2.0}, "c": {}, "alone": {}}
    graph = as_graph(Peer(edges))
    assert graph.adjacency.toarray().tolist() == [[0, 1, 0, 0], [1, 0, 2, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    labelled = Peer(
        edges,
        vertex={"a": 1, "b": 2, "c": 3, "alone": 4},
        edge={("a", "b"): "x", ("b", "a"): "x", ("b", "c"): "y"},
    )
    assert as_graph(labelled).labels == [1, 2, 3, 4]
    same = as_graph([edges, labelled.labels["vertex"], labelled.labels["edge"]])
    assert as_graph(labelled).adjacency.toarray().tolist() == same.adjacency.toarray().tolist()


def test_nodes_without_edges_count():
    assert as_graph({0: [1], 1: [0], 2: []}).adjacency.shape == (3, 3)
