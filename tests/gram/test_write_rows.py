"""Rows and blocks written where a solver keeps them: those of ``rows``, nowhere else, on every backend."""

import numpy as np
import pytest
from scipy import sparse

from mercer import FromFunction, Gaussian, Gram, Linear, Polynomial, Precomputed, config
from mercer.errors import SlowPathWarning

BACKENDS = ["numpy", "numba", "torch", "triton"]


@pytest.fixture(params=BACKENDS)
def backend(request):
    if request.param in ("torch", "triton"):
        pytest.importorskip(request.param)
    with config(backend=request.param):
        yield request.param


@pytest.fixture(params=["float64", "float32"])
def dtype(request):
    with config(dtype=request.param):
        yield request.param


def check(K, index, columns, rng, spare=3):
    """Written into some slots of a larger store, in any order; the rest stays as it was."""
    index = np.asarray(index, np.int64)
    n, start, stop = K.shape[1], *columns
    slots = len(index) + spare
    places = rng.permutation(slots)[: len(index)].astype(np.int64)
    out = np.full((slots, n + 5), np.nan, K.dtype)  # a store has rows longer than K's
    K.write_rows(index, columns, out, places)
    # the same entries in other blocks: sums in another order
    close = {"rtol": 1e-11, "atol": 1e-12} if K.dtype == np.float64 else {"rtol": 1e-4, "atol": 1e-5}
    np.testing.assert_allclose(out[places, start:stop], K.rows(index)[:, start:stop], **close)
    out[places, start:stop] = np.nan
    assert np.isnan(out).all()
    # a block of its own, and the points as a matrix of their own
    j = rng.permutation(n)[: max(1, (stop - start) // 2)].astype(np.int64)
    block = np.full((len(index), len(j)), np.nan, K.dtype)
    K.write_block(index, j, block)
    np.testing.assert_allclose(block, K.rows(index)[:, j], **close)
    part = K.restrict(index)
    assert part.shape == (len(index), len(index)) and part.dtype == K.dtype
    np.testing.assert_allclose(part.dense(), K.rows(index)[:, index], **close)


KERNELS = {
    "gaussian": Gaussian(sigma=2.0),
    "linear": Linear(),
    "sum": Gaussian(sigma=2.0) + Polynomial(2, c=1.0),
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("n, d", [(1, 3), (7, 2), (130, 40), (700, 9)])
def test_dense_points(backend, dtype, kernel, n, d, rng):
    K = Gram(kernel, rng.normal(size=(n, d)))
    for count in {1, min(n, 5), n}:
        index = rng.permutation(n)[:count]
        check(K, index, (0, n), rng)
        start = int(rng.integers(0, n))
        check(K, index, (start, n), rng)
        check(K, index, (start, start + 1), rng)


def test_many_rows_of_many_points(backend, dtype, rng):
    """More than a tile, more than a range, and enough for several threads."""
    K = Gram(Gaussian(sigma=3.0), rng.normal(size=(1500, 20)))
    check(K, rng.permutation(1500)[:400], (0, 1500), rng)
    check(K, rng.permutation(1500)[:300], (701, 1403), rng)


@pytest.mark.parametrize("d", [20, 3000])  # made dense in blocks, multiplied as sparse
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_sparse_points(backend, dtype, kernel, d, rng):
    X = sparse.random_array((150, d), density=0.03, rng=rng, format="csr") * 3
    K = Gram(kernel, X)
    check(K, rng.permutation(150)[:40], (0, 150), rng)
    check(K, [149, 0], (60, 101), rng)
    np.testing.assert_allclose(K.rows([3]), Gram(kernel, X.toarray()).rows([3]), rtol=1e-4, atol=1e-5)


def test_objects(backend, dtype, rng):
    words = ["".join(rng.choice(list("abc"), size=int(rng.integers(1, 6)))) for _ in range(25)]
    kernel = FromFunction(lambda s, t: float(sum(s.count(x) * t.count(x) for x in "abc")))
    with pytest.warns(SlowPathWarning, match="once per pair of points"):
        K = Gram(kernel, words)
    check(K, [4, 24, 0, 11], (0, 25), rng)
    check(K, [7], (3, 19), rng)


def test_precomputed(backend, dtype, rng):
    A = rng.normal(size=(60, 60))
    K = Gram(Precomputed(A @ A.T), np.arange(60))
    check(K, rng.permutation(60)[:20], (0, 60), rng)
    check(K, [59, 1], (13, 48), rng)


def test_parts_of_a_precomputed_matrix(backend, rng):
    """Points are positions in the matrix: some of them, in any order."""
    A = rng.normal(size=(60, 60))
    points = rng.permutation(60)[:33]
    K = Gram(Precomputed(A @ A.T), points)
    out = np.full((2, 33), np.nan)
    K.write_rows(np.array([5, 2]), (4, 30), out, np.array([1, 0]))
    np.testing.assert_allclose(out[[1, 0], 4:30], (A @ A.T)[np.ix_(points[[5, 2]], points[4:30])], rtol=1e-13)


def test_threads_do_not_change_a_bit(backend, dtype, rng):
    K = Gram(Gaussian(sigma=3.0), rng.normal(size=(1500, 20)))
    index = rng.permutation(1500)[:300].astype(np.int64)
    outs = []
    for threads in (1, 2, 5):
        out = np.empty((300, 1500), K.dtype)
        with config(threads=threads):
            K.write_rows(index, (0, 1500), out, np.arange(300))
        outs.append(out)
    np.testing.assert_array_equal(outs[0], outs[1])
    np.testing.assert_array_equal(outs[0], outs[2])


def test_nothing_is_kept(backend):
    """The solver has its own store: these rows are not to be in memory twice."""
    calls = []
    kernel = FromFunction(lambda s, t: float(calls.append(s) is None))
    with pytest.warns(SlowPathWarning):
        K = Gram(kernel, ["a", "b", "c"])
    out = np.empty((1, 3))
    for times in (1, 2):
        K.write_rows(np.array([1]), (0, 3), out, np.array([0]))
        assert len(calls) == 3 * times


def test_near_duplicates_in_float32(backend, rng):
    """Distances that cancel are computed again from differences, as in the other verbs."""
    with config(dtype="float32"):
        X = 1e4 + 1e-3 * rng.normal(size=(40, 5))
        K = Gram(Gaussian(sigma=1e-3), X)
        out = np.empty((40, 40), np.float32)
        K.write_rows(np.arange(40), (0, 40), out, np.arange(40))
    D = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(out, np.exp(-D / 2e-6), rtol=1e-4, atol=1e-6)


def test_blocks_of_nothing(backend, rng):
    K = Gram(Gaussian(sigma=1.0), rng.normal(size=(5, 2)))
    none = np.empty(0, np.int64)
    K.write_block(none, np.arange(3), np.empty((0, 3)))
    K.write_block(np.arange(3), none, np.empty((3, 0)))


def test_a_matrix_of_some_points_keeps_its_settings(rng):
    """Made under one precision and backend, restricted under another."""
    with config(dtype="float32", backend="numpy"):
        K = Gram(Gaussian(sigma=1.0), rng.normal(size=(9, 2)))
    part = K.restrict(np.array([4, 1]))
    assert part.dtype == np.float32 and "numpy" in repr(part)
    np.testing.assert_allclose(part.dense(), K.dense()[np.ix_([4, 1], [4, 1])], rtol=1e-5)


def test_float32_points_far_from_each_other_and_close(backend, dtype, rng):
    """Distances that a product of float32 would lose are those of the points as they are."""
    X = (rng.normal(size=(200, 30)) * 100).astype(np.float32)
    X[100:] = X[:100] + rng.normal(size=(100, 30)).astype(np.float32) * np.float32(1e-3)
    K = Gram(Gaussian(sigma=0.01), X)
    index = np.arange(0, 200, 7)
    check(K, index, (0, 200), rng)
    with config(backend="numpy", dtype="float64"):
        truth = Gram(Gaussian(sigma=0.01), X.astype(np.float64)).dense()
    out = np.empty((len(index), 200), K.dtype)
    K.write_rows(index, (0, 200), out, np.arange(len(index)))
    # K is rounded to float32 and, where distances are repaired, the exponent is exact to a few parts in 1e7
    np.testing.assert_allclose(out, truth[index], rtol=1e-10 if dtype == "float64" else 1e-5, atol=1e-10)


def test_points_of_two_precisions(backend, dtype, rng):
    X = rng.normal(size=(40, 12)).astype(np.float32)
    Y = rng.normal(size=(30, 12))
    K = Gram(Gaussian(sigma=2.0), X, Y)
    truth = Gram(Gaussian(sigma=2.0), X.astype(np.float64), Y)
    np.testing.assert_allclose(K.dense(), truth.dense(), rtol=1e-6 if dtype == "float32" else 1e-12)
