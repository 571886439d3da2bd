"""Kernels on graphs against explicit enumeration of what they count."""

import pickle
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import dijkstra
from sklearn.base import clone

from mercer import (
    SVC,
    Gaussian,
    Gram,
    KernelRidge,
    Linear,
    NodeLabels,
    RandomWalk,
    ShortestPath,
    Sigmoid,
    Spectrum,
    WeisfeilerLehman,
    certify,
)
from mercer.errors import InputError, InputTypeError
from mercer.kernels.graphs import Graph, as_graph, encode_graphs, from_networkx, read_tu
from mercer.testing.objects import OBJECTS

PATH = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
RING = np.ones((3, 3)) - np.eye(3)


@st.composite
def graphs(draw):
    n = draw(st.integers(0, 6))
    edges = np.array(draw(st.lists(st.booleans(), min_size=n * n, max_size=n * n)), bool)
    upper = np.triu(edges.reshape(n, n), 1)
    labels = draw(st.lists(st.sampled_from("CNO"), min_size=n, max_size=n))
    return (upper | upper.T).astype(int), labels


some_graphs = st.lists(graphs(), min_size=1, max_size=6)


def neighbours(A, u):
    return np.flatnonzero(np.asarray(A)[u]).tolist()


def inner(counters):
    return np.array([[sum(a[k] * b[k] for k in a) for b in counters] for a in counters], float)


def refined(A, labels, t):
    """Labels as nested tuples, no numbers in between."""
    for _ in range(t):
        around = [sorted((labels[v] for v in neighbours(A, u)), key=repr) for u in range(len(labels))]
        labels = [(own, tuple(others)) for own, others in zip(labels, around, strict=True)]
    return labels


def distances(A):
    n = len(A)
    D = np.where(np.eye(n) > 0, 0.0, np.where(np.asarray(A) != 0, 1.0, np.inf))
    for k in range(n):
        D = np.minimum(D, D[:, [k]] + D[[k], :])
    return D


@settings(max_examples=60, deadline=None)
@given(some_graphs, st.integers(0, 3))
def test_weisfeiler_lehman_counts_refined_labels(X, iterations):
    rounds = range(iterations + 1)
    counters = [Counter((t, label) for t in rounds for label in refined(A, labels, t)) for A, labels in X]
    np.testing.assert_array_equal(WeisfeilerLehman(iterations)(X), inner(counters))


@settings(max_examples=40, deadline=None)
@given(some_graphs, st.integers(0, 3))
def test_nodes_are_assigned_to_each_other(X, iterations):
    """The best one-to-one assignment of nodes, a pair worth as many rounds as its labels stay equal."""
    rounds = range(iterations + 1)
    counters = [Counter((t, label) for t in rounds for label in refined(A, labels, t)) for A, labels in X]
    wanted = [[sum((a & b).values()) for b in counters] for a in counters]
    np.testing.assert_array_equal(WeisfeilerLehman(iterations, NodeLabels(compare="minimum"))(X), wanted)
    (A, labels), (B, others) = X[0], X[-1]
    worth = np.zeros((len(labels), len(others)))
    for t in rounds:
        worth += np.array(
            [[a == b for b in refined(B, others, t)] for a in refined(A, labels, t)], float
        ).reshape(worth.shape)
    assert worth[linear_sum_assignment(-worth)].sum() == wanted[0][-1]


@settings(max_examples=60, deadline=None)
@given(some_graphs)
def test_shortest_paths_are_counted(X):
    counters = []
    for A, labels in X:
        D = distances(A)
        pairs = [(u, v) for u, v in product(range(len(D)), repeat=2) if u != v and np.isfinite(D[u, v])]
        counters.append(Counter((labels[u], labels[v], D[u, v]) for u, v in pairs))
    np.testing.assert_array_equal(ShortestPath()(X), inner(counters))


@settings(max_examples=40, deadline=None)
@given(some_graphs, st.integers(0, 3))
def test_random_walks_are_counted(X, length):
    def walks(A, labels, j):
        found = [[u] for u in range(len(labels))]
        for _ in range(j):
            found = [[*w, v] for w in found for v in neighbours(A, w[-1])]
        return Counter(tuple(labels[u] for u in w) for w in found)

    wanted = sum(0.3**j * inner([walks(A, labels, j) for A, labels in X]) for j in range(length + 1))
    np.testing.assert_allclose(RandomWalk(length, decay=0.3)(X), wanted, rtol=1e-12)


@settings(max_examples=40, deadline=None)
@given(some_graphs)
def test_they_are_positive_semidefinite(X):
    for kernel in (
        WeisfeilerLehman(2),
        ShortestPath(),
        RandomWalk(3),
        WeisfeilerLehman(2, ShortestPath()),
        WeisfeilerLehman(2, NodeLabels(compare="minimum")),
        WeisfeilerLehman(1, RandomWalk(2)),
    ):
        assert certify(kernel).verdict == "proved"
        K = kernel(X)
        # rounding of eigenvalues is of the order of n ε ‖K‖
        assert np.linalg.eigvalsh(K).min() >= -1e-13 * len(K) * max(np.abs(K).max(), 1.0)


def test_a_base_sees_the_refined_graphs():
    X = OBJECTS["graphs"](8, np.random.default_rng(3))
    wanted = 0.0
    for t in range(3):
        wanted = wanted + ShortestPath()([(A, refined(A, labels, t)) for A, labels in X])
    np.testing.assert_array_equal(WeisfeilerLehman(2, base=ShortestPath())(X), wanted)


def test_any_kernel_on_graphs_is_a_base():
    X = OBJECTS["graphs"](8, np.random.default_rng(4))
    for base in (RandomWalk(2, 0.5), NodeLabels() + 2 * ShortestPath(), ShortestPath().normalized()):
        wanted = sum(base([(A, refined(A, labels, t)) for A, labels in X]) for t in range(3))
        kernel = WeisfeilerLehman(2, base)
        np.testing.assert_allclose(kernel(X), wanted, rtol=1e-12)
        np.testing.assert_allclose(kernel(X[:3], X), wanted[:3], rtol=1e-12)
        np.testing.assert_allclose(Gram(kernel, X).diag(), np.diag(wanted), rtol=1e-12)
        assert certify(kernel).verdict == "proved"
    for base in (Gaussian(), Spectrum(2), "labels"):
        with pytest.raises(InputError, match="must be a kernel on graphs"):
            WeisfeilerLehman(2, base)
    with pytest.raises(InputError, match="does not count features"):
        WeisfeilerLehman(1, RandomWalk()).features(X)


def test_edges_have_labels():
    def triangle(*kinds):
        A = sparse.csr_array(np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0]], float))
        a, b, c = kinds  # of 01, 02, 12
        return Graph(A, ["C"] * 3, [a, b, a, c, b, c])

    alike, other = triangle("-", "=", "-"), triangle("=", "-", "-")
    different = triangle("=", "=", "=")
    K = WeisfeilerLehman(2)([alike, other, different])
    assert K[0, 0] == K[0, 1] > K[0, 2]
    W = RandomWalk(2, decay=1.0)([alike, other, different])
    assert W[0, 0] == W[0, 1] > W[0, 2]


def test_attributes_of_nodes_through_a_kernel(rng):
    X = [Graph(sparse.csr_array(PATH.astype(float)), attributes=rng.normal(size=(3, 2))) for _ in range(5)]
    K = RandomWalk(length=1, decay=0.5, node=Gaussian(sigma=1.0))(X)
    for i, j in product(range(5), repeat=2):
        kappa = Gaussian(sigma=1.0)(X[i].attributes, X[j].attributes)
        edges = [(u, v) for u, v in product(range(3), repeat=2) if PATH[u, v]]
        steps = sum(kappa[u, a] * kappa[v, b] for u, v in edges for a, b in edges)
        np.testing.assert_allclose(K[i, j], kappa.sum() + 0.5 * steps, rtol=1e-12)
    for kernel in (RandomWalk(node=Gaussian()), ShortestPath(node=Gaussian())):
        with pytest.raises(InputError, match="and the graphs have none"):
            kernel([PATH])
        with pytest.raises(InputError, match="some of the graphs have none"):
            kernel([PATH, X[0]])
    assert certify(ShortestPath(node=Sigmoid())).verdict != "proved"


@pytest.mark.parametrize("lengths", ["edges", "weights"])
def test_pairs_of_nodes_through_a_kernel(lengths, rng):
    """Σ κ(u, u') κ(v, v') over all pairs at equal distances, one by one."""
    node, X = Gaussian(sigma=1.5), []
    for n in (0, 1, 4, 5, 6):
        A = np.triu(rng.random((n, n)) < 0.5, 1) * rng.integers(1, 4, (n, n)) * 0.1
        labels = rng.choice(["C", "N"], n).tolist()
        X.append(Graph(A + A.T, labels, attributes=rng.normal(size=(n, 2))))

    def value(G, H):
        total = 0.0
        if not (G.n and H.n):
            return total
        D, E = (dijkstra(S.adjacency, unweighted=lengths == "edges") for S in (G, H))
        kappa = node(G.attributes, H.attributes) * np.equal.outer(np.array(G.labels), np.array(H.labels))
        for u, v in product(range(G.n), repeat=2):
            for a, b in product(range(H.n), repeat=2):
                if u != v and a != b and D[u, v] < np.inf and abs(D[u, v] - E[a, b]) < 1e-9:
                    total += kappa[u, a] * kappa[v, b]
        return total

    kernel = ShortestPath(lengths, node=node)
    wanted = np.array([[value(G, H) for H in X] for G in X])
    np.testing.assert_allclose(kernel(X), wanted, rtol=1e-12)
    np.testing.assert_allclose(kernel(X[2:], X), wanted[2:], rtol=1e-12)
    np.testing.assert_allclose(Gram(kernel, X).diag(), np.diag(wanted), rtol=1e-12)
    if lengths == "edges":
        # with attributes that are all alike, what is left are the counts
        plain = [Graph(G.adjacency, G.labels, attributes=np.ones(G.n)) for G in X]
        np.testing.assert_allclose(ShortestPath(node=Linear())(plain), ShortestPath()(plain), rtol=1e-12)


def test_words_are_taken_from_the_attributes(rng):
    X = [Graph(PATH, attributes=rng.normal(size=(3, 2))) for _ in range(12)]
    sigma = Gaussian(sigma="median").resolve(np.concatenate([G.attributes for G in X])).sigma
    inner = ShortestPath(node=Gaussian(sigma="median"))
    for kernel in (inner, WeisfeilerLehman(1, inner), RandomWalk(node=Gaussian(sigma="median"))):
        model = SVC(kernel=kernel.normalized()).fit(X, np.arange(12) % 2)
        assert f"sigma={sigma}" in repr(model.kernel_)
        assert (clone(model).fit(X, np.arange(12) % 2).predict(X) == model.predict(X)).all()


def test_walks_beyond_numbers():
    with pytest.raises(InputError, match="smaller decay"):
        RandomWalk(400, decay=10.0)([np.ones((6, 6))])


def test_lengths_of_edges():
    A = np.array([[0, 2.5, 0], [2.5, 0, 1.0], [0, 1.0, 0]])
    B = np.array([[0, 1.0, 0], [1.0, 0, 2.5], [0, 2.5, 0]])
    assert ShortestPath(lengths="weights")([A], [B])[0, 0] == ShortestPath()([A], [B])[0, 0] - 8.0 == 12.0
    with pytest.raises(InputError, match="positive entries"):
        ShortestPath(lengths="weights")([-A])
    tiny, huge = ShortestPath(lengths="weights")([1e-12 * A]), ShortestPath(lengths="weights")([1e12 * A])
    assert tiny[0, 0] == huge[0, 0] == ShortestPath(lengths="weights")([A])[0, 0] == 12.0
    # 0.1 + 0.2 and 0.3 are one length
    direct, steps = np.zeros((2, 2)), np.diag([0.1, 0.2], 1)
    direct[0, 1] = 0.3
    assert ShortestPath(lengths="weights")([direct], [steps])[0, 0] == 1.0


def test_ways_to_give_a_graph():
    networkx = pytest.importorskip("networkx")
    G = networkx.Graph()
    G.add_nodes_from([("a", {"label": "C"}), ("b", {"label": "O"}), ("c", {"label": "C"})])
    G.add_edges_from([("a", "b"), ("b", "c")])
    labels = ["C", "O", "C"]
    plain = (PATH, labels)
    forms = [G, plain, (sparse.csr_matrix(PATH), labels), (PATH.tolist(), tuple(labels)), as_graph(plain)]
    assert len(np.unique(WeisfeilerLehman(3)(forms))) == 1
    assert (ShortestPath()([PATH, sparse.coo_array(PATH)]) == ShortestPath()([PATH])[0, 0]).all()


def test_a_column_of_graphs():
    column = np.empty((2, 1), object)
    column[:, 0] = [(PATH, "HOH"), (RING, "CCC")]
    X = column[:, 0].tolist()
    np.testing.assert_array_equal(WeisfeilerLehman(1)(column), WeisfeilerLehman(1)(X))
    model = KernelRidge(kernel=WeisfeilerLehman(1)).fit(column, [0.0, 1.0])
    np.testing.assert_array_equal(model.predict(column), model.predict(X))


def test_names_in_a_networkx_graph():
    networkx = pytest.importorskip("networkx")
    G = networkx.DiGraph([("a", "b", {"kind": "=", "length": 2.0})])
    networkx.set_node_attributes(G, {"a": 6, "b": 8}, "element")
    networkx.set_node_attributes(G, {"a": [0.5, 1.0], "b": [1.5, 2.0]}, "place")
    graph = from_networkx(G, label="element", edge_label="kind", attributes="place", weight="length")
    assert graph.labels == [6, 8] and graph.edge_labels == ["="] and graph.adjacency.data.tolist() == [2.0]
    assert graph.attributes.tolist() == [[0.5, 1.0], [1.5, 2.0]]
    G.nodes["a"]["label"] = "C"
    with pytest.raises(InputError, match=r"'label' of nodes for 1 of 2 only"):
        as_graph(G)
    with pytest.raises(InputError, match="several edges"):
        as_graph(networkx.MultiGraph([(0, 1), (0, 1)]))
    with pytest.raises(InputTypeError, match="'kind' is not a number"):
        from_networkx(G, weight="kind", label="element")


def test_what_was_given_is_left_as_it_is():
    A = sparse.csr_array(PATH.astype(float))
    A.data[1] = 0.0
    repeated = sparse.csr_array((np.ones(2), np.array([1, 1]), np.array([0, 2, 2])), shape=(2, 2))
    for matrix in (A, repeated):
        before = [matrix.data.copy(), matrix.indices.copy(), matrix.indptr.copy()]
        WeisfeilerLehman(1)([matrix])
        for old, new in zip(before, (matrix.data, matrix.indices, matrix.indptr), strict=True):
            np.testing.assert_array_equal(old, new)
    # an entry that is 0 is no edge, and two entries at one place are one
    assert ShortestPath()([A])[0, 0] == ShortestPath()([A.toarray()])[0, 0]
    assert ShortestPath()([repeated])[0, 0] == 1.0


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"labels": "CO"}, "3 nodes and 2 labels"),
        ({"edge_labels": "-"}, "4 edges and 1 labels"),
        ({"attributes": np.ones((2, 2))}, "attributes of shape"),
        ({"attributes": [1.0, np.nan, 2.0]}, "must be finite"),
        ({"labels": {0: "C", 1: "O"}}, "labels in a dict"),
    ],
)
def test_parts_that_do_not_fit(parts, words):
    with pytest.raises(InputError, match=words):
        Graph(PATH, **parts)


def test_labels_in_a_dict():
    assert as_graph((PATH, {2: "H", 0: "H", 1: "O"})).labels == ["H", "O", "H"]


@pytest.mark.parametrize(
    ("bad", "error", "words"),
    [
        (np.ones((2, 3)), InputError, "graph 1 must have a square"),
        ((PATH, ["C"]), InputError, "graph 1 has 3 nodes and 1 labels"),
        ("C-C-O", InputTypeError, "must be an adjacency matrix"),
        (None, InputTypeError, "got a NoneType"),
        (PATH.astype(complex), InputError, "of real numbers"),
        (np.array([[0, np.nan], [0, 0]]), InputError, "not finite"),
        ((PATH, [["C"], ["O"], ["C"]]), InputTypeError, "hashable"),
    ],
)
def test_what_is_no_graph(bad, error, words):
    with pytest.raises(error, match=words):
        WeisfeilerLehman()([PATH, bad])


def test_no_nodes_and_loops_and_directions():
    nothing, loop, arrow = np.zeros((0, 0)), np.ones((1, 1)), np.array([[0, 1], [0, 0]])
    K = WeisfeilerLehman(1)([nothing, loop, arrow])
    assert (K[0] == 0).all() and K[1, 1] == 2 and K[2, 2] == 6
    assert ShortestPath()([nothing, loop, arrow]).tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 1]]


def test_large_degrees_and_many_labels(rng):
    star = np.zeros((80, 80))
    star[0, 1:] = star[1:, 0] = 1
    labels = rng.integers(0, 5, 80).tolist()
    turned = rng.permutation(80)
    X = [(star, labels), (star[np.ix_(turned, turned)], [labels[t] for t in turned])]
    assert len(np.unique(WeisfeilerLehman(3)(X))) == 1


def test_learners_take_graphs(rng):
    X = OBJECTS["graphs"](60, rng)
    y = np.array([labels.count("C") for _, labels in X], float)
    model = KernelRidge(kernel=WeisfeilerLehman(0), alpha=1e-6).fit(X[:40], y[:40])
    np.testing.assert_allclose(model.predict(X[40:]), y[40:], atol=1e-3)  # counts of labels are linear in it
    classes = (y > 1).astype(int)
    kernel = WeisfeilerLehman(1).normalized() + ShortestPath().normalized()
    machine = SVC(kernel=kernel).fit(X[:40], classes[:40])
    assert pickle.loads(pickle.dumps(machine)).predict(X[40:]).tolist() == machine.predict(X[40:]).tolist()


def test_graphs_are_read_once(monkeypatch):
    """The lengths k(x, x) of a normalised kernel come from what the Gram has read."""
    X, calls = OBJECTS["graphs"](10, np.random.default_rng(0)), []
    counts = WeisfeilerLehman.counts
    monkeypatch.setattr(WeisfeilerLehman, "counts", lambda self, G: calls.append(len(G)) or counts(self, G))
    K = WeisfeilerLehman(2).normalized()(X)
    assert calls == [10]
    plain = WeisfeilerLehman(2)(X)
    lengths = np.sqrt(np.diag(plain))
    np.testing.assert_allclose(K, plain / np.outer(lengths, lengths), rtol=1e-14)


@pytest.fixture
def folder(tmp_path):
    home = tmp_path / "TINY"
    home.mkdir()
    files = {
        "A": "1, 2\n2, 1\n2, 3\n3, 2\n4, 5\n5, 4\n",
        "graph_indicator": "1\n1\n1\n2\n2\n",
        "graph_labels": "1\n-1\n",
        "node_labels": "0\n1\n0\n2\n2\n",
        "edge_labels": "7\n7\n8\n8\n9\n9\n",
        "node_attributes": "0.5, 1\n1.5, 2\n2.5, 3\n3.5, 4\n4.5, 5\n",
    }
    for name, text in files.items():
        (home / f"TINY_{name}.txt").write_text(text)
    return home


def test_files_in_tu_format(folder, tmp_path):
    import shutil

    for path in (folder, shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path, "TINY")):
        X, y = read_tu(path)
        assert y.tolist() == [1, -1] and [G.n for G in X] == [3, 2]
        assert X[0].adjacency.toarray().tolist() == PATH.tolist()
        assert X[0].labels == [0, 1, 0] and X[0].edge_labels == [7, 7, 8, 8] and X[1].edge_labels == [9, 9]
        assert X[1].attributes.tolist() == [[3.5, 4.0], [4.5, 5.0]]
        assert len(encode_graphs(X)) == 2


@pytest.mark.parametrize("name", ["graph_indicator", "graph_labels"])
def test_incomplete_folders(folder, name):
    (folder / f"TINY_{name}.txt").unlink()
    with pytest.raises(InputError, match="not complete"):
        read_tu(folder)


def test_folders_that_are_none(folder, tmp_path):
    with pytest.raises(InputError, match="not a folder or a zip file"):
        read_tu(tmp_path / "nowhere")
    (folder / "TINY_A.txt").write_text("1, x\n")
    with pytest.raises(InputError, match="does not hold numbers"):
        read_tu(folder)
    (folder / "TINY_A.txt").write_text("1, 9\n")
    with pytest.raises(InputError, match="edge to node 9 of 5"):
        read_tu(folder)
    (folder / "TINY_A.txt").unlink()
    with pytest.raises(InputError, match="has no file NAME_A"):
        read_tu(folder)
