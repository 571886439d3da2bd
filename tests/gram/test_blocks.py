"""Passes over the rows of K(X, Z) against the dense matrix, for all kinds of points, and for any threads."""

import tracemalloc
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

from mercer import Gaussian, Gram, Linear, Spectrum, WeisfeilerLehman, config
from mercer.gram import block_tasks, blocks
from mercer.gram.blocks import RowBlocks


@pytest.fixture
def few_rows(monkeypatch):
    """Blocks of a few rows: even small tables are cut into several groups of several blocks."""
    monkeypatch.setattr(blocks, "_FEWEST_ROWS", 3)
    monkeypatch.setattr(blocks, "_MOST_ROWS", 5)
    monkeypatch.setattr(blocks, "_FEWEST_TASKS", 7)
    monkeypatch.setattr(blocks, "_SQUARED_ROWS", 11)
    monkeypatch.setattr(block_tasks, "_SQUARE_TILE", 4)
    monkeypatch.setattr(block_tasks, "_TRANSFORMED_ROWS", 2)
    monkeypatch.setattr(blocks, "_DIAGONAL_ROWS", 11)


def vectors(rng, tmp_path):
    return Gaussian(1.0), rng.normal(size=(83, 3))


def sparse_rows(rng, tmp_path):
    return Linear() + 1.0, sparse.random_array((83, 20), density=0.2, rng=rng, format="csr")


def strings(rng, tmp_path):
    return Spectrum(2), ["".join(rng.choice(list("abc"), size=rng.integers(2, 9))) for _ in range(41)]


def graphs(rng, tmp_path):
    return WeisfeilerLehman(), [nx.gnp_random_graph(5, 0.5, seed=i) for i in range(17)]


def file_on_disk(rng, tmp_path):
    np.save(tmp_path / "X.npy", rng.normal(size=(83, 3)))
    return Gaussian(1.0), np.load(tmp_path / "X.npy", mmap_mode="r")


def some(X, count):
    return X[:count]


KINDS = [vectors, sparse_rows, strings, graphs, file_on_disk]


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_verb_against_the_dense_matrix(rng, tmp_path, few_rows, kind, dtype):
    """A sum of n products is right to n units in the last place, relative to the sum of their sizes."""
    kernel, X = kind(rng, tmp_path)
    Z = some(X, 6)
    with config(dtype=dtype):
        K = RowBlocks(kernel, X, Z)
        with config(dtype="float64"):
            exact = Gram(kernel, X, Z, cache=0).dense()
            own = Gram(kernel, X, cache=0).diag()
        n, M = exact.shape
        V, G, weight = rng.normal(size=(M, 2)), rng.normal(size=(n, 3)), rng.uniform(size=n)
        near = {
            "rel": 0,
            "abs": 10 * n * float(np.finfo(dtype).eps) * max(1.0, float(np.abs(exact).max()) ** 2),
        }
        assert K.shape == (n, M) and K.dtype == dtype and K.cost > 0
        assert K.values(V) == pytest.approx(exact @ V, **near) and K.values(V).dtype == np.float64
        assert K.diag() == pytest.approx(own, **near)
        assert K.adjoint(G) == pytest.approx(exact.T @ G, **near)
        total, sums = K.pass_over(V, lambda rows, F: (F[:, :1] * G[rows, :1], np.array([F.sum(), 1.0])), 2, 1)
        F = exact @ V
        assert total == pytest.approx(exact.T @ (F[:, :1] * G[:, :1]), **near)
        assert sums[0] == pytest.approx(F.sum(), **near) and sums[1] == sum(map(len, K._groups()))
        square, first = K.square(weight)
        assert np.tril(square) == pytest.approx(np.tril(exact.T @ (weight[:, None] * exact)), **near)
        assert first == pytest.approx(weight @ exact, **near)


def test_rough_rows_are_in_single_precision(rng):
    X = rng.normal(size=(20, 3))
    exact = RowBlocks(Gaussian(1.0), X, X[:4])
    rough = exact.rough()
    assert rough.dtype == np.float32 and rough.rough() is None
    assert rough.values(np.ones((4, 1))) == pytest.approx(exact.values(np.ones((4, 1))), rel=1e-6)
    words = ["one", "two", "three"]
    assert RowBlocks(Spectrum(2), words, words[:1]).rough() is None  # Their features take the time.


def test_columns_are_transformed_before_they_are_squared(rng, few_rows):
    X = rng.normal(size=(31, 2))
    K, weight, scale = RowBlocks(Gaussian(1.0), X, X[:5]), rng.uniform(size=31), np.arange(1.0, 6.0)

    def transform(columns):
        columns *= scale[:, None]

    exact = K.values(np.eye(5)) * scale
    square, first = K.square(weight, transform=transform)
    assert np.tril(square) == pytest.approx(np.tril(exact.T @ (weight[:, None] * exact)), rel=1e-13)
    assert first == pytest.approx(weight @ exact, rel=1e-13)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_any_number_of_threads_gives_the_same_bits(rng, few_rows, dtype):
    X = rng.normal(size=(200, 3))
    V, weight = rng.normal(size=(9, 2)), rng.uniform(size=200)

    def everything(threads):
        with config(threads=threads, dtype=dtype):
            K = RowBlocks(Gaussian(1.0), X, X[:9])
            total, sums = K.pass_over(V, lambda rows, F: (F**2, np.array([(F**3).sum()])))
            return [total, sums, K.values(V), K.adjoint(V[:1] * X[:, :2]), K.diag(), *K.square(weight)]

    first = everything(1)
    for threads in (2, 3, 7):
        for one, other in zip(first, everything(threads), strict=True):
            assert np.array_equal(one, other)


@pytest.mark.parametrize("n", [1, 2, 5, 6])
@pytest.mark.parametrize("M", [1, 3])
def test_few_rows_and_few_landmarks(rng, few_rows, n, M):
    """One row, less than a block, a block, and a last block of one row."""
    X, Z = rng.normal(size=(n, 2)), rng.normal(size=(M, 2))
    K, exact = RowBlocks(Gaussian(1.0), X, Z), Gram(Gaussian(1.0), X, Z).dense()
    ones = np.ones((M, 1))
    assert K.values(ones) == pytest.approx(exact @ ones, rel=1e-14)
    total, _ = K.pass_over(ones, lambda rows, F: (F, np.zeros(1)))
    assert total == pytest.approx(exact.T @ exact @ ones, rel=1e-14)


def test_the_places_of_blocks_do_not_depend_on_threads_and_cover_every_row_once(rng):
    K = RowBlocks(Linear(), np.zeros((100_001, 1)), np.zeros((300, 1)))
    for threads in (1, 5):
        with config(threads=threads):
            groups = K._groups()
        places = [block for group in groups for block in group]
        assert places[0][0] == 0 and places[-1][1] == 100_001 and len(groups) <= 64
        assert all(a[1] == b[0] for a, b in pairwise(places))
        assert max(stop - start for start, stop in places) <= 2**20 // 300


def test_memory_is_that_of_blocks_and_not_of_the_matrix(rng):
    """K takes 122 MiB; blocks of two threads, that of a square, and sums of tasks take below half of it."""
    X, Z = rng.normal(size=(80_000, 2)), rng.normal(size=(200, 2))
    with config(threads=2):
        K = RowBlocks(Gaussian(1.0), X, Z)
        K.values(np.ones((200, 1)))  # compiled
        tracemalloc.start()
        K.pass_over(np.ones((200, 1)), lambda rows, F: (F, np.zeros(1)))
        K.square(np.ones(80_000))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 60 * 2**20


def test_single_precision_has_blocks_of_twice_the_rows_in_the_same_tasks(rng):
    X = rng.normal(size=(100_001, 2)).astype(np.float32)
    K = RowBlocks(Gaussian(1.0), X, X[:300])
    rough = K.rough()
    assert [(group[0][0], group[-1][1]) for group in K._groups()] == [
        (group[0][0], group[-1][1]) for group in rough._groups()
    ]
    for fine, coarse in zip(K._groups(), rough._groups(), strict=True):
        assert [a for a, _ in coarse] == [a for a, _ in fine[::2]] and len(coarse) == -(-len(fine) // 2)
