"""Kernels on graphs against explicit enumeration of what they count."""

import pickle
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mercer import (
    SVC,
    Gaussian,
    Gram,
    KernelRidge,
    NodeLabels,
    RandomWalk,
    ShortestPath,
    WeisfeilerLehman,
    certify,
)
from mercer.errors import InputError, InputTypeError
from mercer.kernels.graphs import Graph, as_graph, encode_graphs, read_tu
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
    for kernel in (WeisfeilerLehman(2), ShortestPath(), RandomWalk(3), WeisfeilerLehman(2, ShortestPath())):
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
    with pytest.raises(InputError, match="the graphs have none"):
        RandomWalk(node=Gaussian())([PATH])


def test_lengths_of_edges():
    A = np.array([[0, 2.5, 0], [2.5, 0, 1.0], [0, 1.0, 0]])
    B = np.array([[0, 1.0, 0], [1.0, 0, 2.5], [0, 2.5, 0]])
    assert ShortestPath(lengths="weights")([A], [B])[0, 0] == ShortestPath()([A], [B])[0, 0] - 8.0 == 12.0
    with pytest.raises(InputError, match="positive entries"):
        ShortestPath(lengths="weights")([-A])


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


@pytest.mark.parametrize(
    ("bad", "error", "words"),
    [
        (np.ones((2, 3)), InputError, "must be square"),
        ((PATH, ["C"]), InputError, "3 nodes and 1 labels"),
        ("C-C-O", InputTypeError, "must be an adjacency matrix"),
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


def test_rows_of_a_gram_are_those_of_the_whole(rng):
    X = OBJECTS["graphs"](30, rng)
    for kernel in (WeisfeilerLehman(2), NodeLabels(), ShortestPath(), RandomWalk()):
        K = Gram(kernel, X)
        np.testing.assert_allclose(K.block([3, 7], [1, 2]), K.dense()[np.ix_([3, 7], [1, 2])], rtol=1e-12)
        np.testing.assert_allclose(kernel(X[:5], X), K.dense()[:5], rtol=1e-12)


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
