"""The lazy Gram matrix: its verbs, its inputs, its promises."""

import pickle
import textwrap

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from mercer import (
    ChiSquared,
    Delta,
    FromFunction,
    Gaussian,
    Gram,
    Laplacian,
    Linear,
    Min,
    Polynomial,
    Precomputed,
    Spectrum,
    Subsequence,
    config,
)
from mercer.errors import InputError, MemoryBudgetError
from mercer.runtime.threads import run

BACKENDS = ["numpy", "numba", "torch", "triton"]
KERNEL = Gaussian(sigma=2.0) + Polynomial(2, c=1.0)


@pytest.fixture(params=BACKENDS)
def backend(request):
    if request.param in ("torch", "triton"):
        pytest.importorskip(request.param)
    with config(backend=request.param):
        yield request.param


def reference(X, Y):
    return np.exp(-cdist(X, Y, "sqeuclidean") / 8) + (X @ Y.T + 1) ** 2


# --- verbs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 130, 700])  # less than a tile, a tile and a bit, several ranges
def test_every_verb_agrees_with_the_definition(backend, n, rng):
    X, Y = rng.normal(size=(n, 9)), rng.normal(size=(531, 9))
    expected = reference(X, Y)
    K = Gram(KERNEL, X, Y)
    assert K.shape == (n, 531)
    np.testing.assert_allclose(K.dense(), expected, rtol=1e-10)
    np.testing.assert_allclose(K.T.dense(), expected.T, rtol=1e-10)
    i, j = rng.integers(0, n, 5), rng.integers(0, 531, 7)
    np.testing.assert_allclose(K.rows(i), expected[i], rtol=1e-10)
    np.testing.assert_allclose(K.rows(i, j), expected[np.ix_(i, j)], rtol=1e-10)
    np.testing.assert_allclose(K.block(i, j), expected[np.ix_(i, j)], rtol=1e-10)
    v, V = rng.normal(size=531), rng.normal(size=(531, 3))
    scale = np.abs(expected).sum(axis=1).max()
    np.testing.assert_allclose(K @ v, expected @ v, atol=1e-12 * scale)
    np.testing.assert_allclose(K @ V, expected @ V, atol=1e-12 * scale)


@pytest.mark.parametrize("n", [1, 130, 1100])
def test_a_set_with_itself(backend, n, rng):
    X = rng.normal(size=(n, 9))
    K = Gram(KERNEL, X)
    dense = K.dense()
    np.testing.assert_array_equal(dense, dense.T)  # to the last bit
    np.testing.assert_allclose(dense, reference(X, X), rtol=1e-10)
    np.testing.assert_allclose(K.diag(), np.diag(dense), rtol=1e-12)
    np.testing.assert_allclose(K @ np.ones(n), dense.sum(axis=1), rtol=1e-12)
    assert K.T is K


def test_ways_to_choose_rows(backend, rng):
    X = rng.normal(size=(20, 3))
    K = Gram(KERNEL, X)
    dense = K.dense()
    mask = np.arange(20) % 3 == 0
    for index in ([3, 1, 3], slice(2, 9, 3), mask, np.array([-1, 0])):
        np.testing.assert_allclose(K.rows(index), dense[index], rtol=1e-12)
        np.testing.assert_allclose(K.block(index, index), dense[index][:, index], rtol=1e-12)
    np.testing.assert_allclose(K.rows(4), dense[[4]], rtol=1e-12)
    assert K.rows([]).shape == (0, 20)


def test_a_dense_matrix_into_memory_that_is_there(backend, rng):
    K = Gram(KERNEL, rng.normal(size=(30, 3)))
    out = np.empty((30, 30))
    assert K.dense(out) is out
    np.testing.assert_array_equal(out, K.dense())
    for wrong in (np.empty((30, 29)), np.empty((30, 30), np.float32), np.empty((30, 30)).T):
        with pytest.raises(
            InputError, match="out must be a C-contiguous, writeable 30 × 30 array of float64"
        ):
            K.dense(wrong if wrong.shape != (30, 30) or wrong.dtype != float else np.empty((30, 60))[:, ::2])


@pytest.mark.sample(10)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "n", [2999, 3008, 4096]
)  # rows that start anywhere in a cache line, or all at its start
def test_large_matrices_are_written_whole_and_nowhere_else(n, dtype, rng):
    """Beyond 32 MiB whole cache lines are stored past the caches, wherever the memory begins."""
    with config(dtype=dtype):
        K = Gram(KERNEL, rng.normal(size=(n, 3)))
        first = None
        for offset in (0, 1, 3):
            memory = np.full(n * n + 16, np.nan, dtype)
            dense = K.dense(memory[offset : offset + n * n].reshape(n, n))
            assert np.isfinite(dense).all()
            assert np.isnan(memory[:offset]).all()
            assert np.isnan(memory[offset + n * n :]).all()
            assert (dense == dense.T).all()
            first = dense if first is None else first
            np.testing.assert_array_equal(dense, first)
        tolerance = 1e-12 if dtype == "float64" else 1e-5
        np.testing.assert_allclose(K.rows([0, 5, n - 1]), dense[[0, 5, n - 1]], rtol=tolerance)


def test_nothing_is_computed_before_it_is_asked_for(rng, monkeypatch):
    K = Gram(KERNEL, rng.normal(size=(50, 3)))
    monkeypatch.setattr(Gram, "_run", lambda *_: pytest.fail("work was done"))
    assert K.shape == (50, 50)
    assert K.diag().shape == (50,)
    assert repr(K).startswith("Gram(Gaussian(sigma=2.0) + Polynomial(degree=2, c=1.0), 50 × 50, float64")


# --- precision -----------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 40])  # by differences, and by a matrix product
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_squared_distances_survive_offsets_and_near_duplicates(backend, dtype, d, rng):
    """Points 1e4 from the origin and 1e-3 apart, in one place and in two opposite places."""
    near = 1e-3 * rng.normal(size=(40, d))
    far = np.vstack([near[:20] + 1e4, near[20:] - 1e4])
    # float64 itself keeps 1e4 + 1e-3 to 2e-12, so distances of 1e-3 to about 1e-8 relative
    for X, tol in ((near + 1e4, 1e-7), (far, 1e-7)):
        exact = Gaussian(sigma=1e-3)
        expected = np.exp(-cdist(X, X, "sqeuclidean") / 2e-6)
        with config(dtype=dtype):
            K = Gram(exact, X).dense()
            Z = Gram(exact, X, X.copy()).dense()
        assert K.dtype == dtype
        loose = 1e-4 if dtype == "float32" else tol
        np.testing.assert_allclose(K, expected, atol=loose)
        np.testing.assert_allclose(Z, expected, atol=loose)
        np.testing.assert_array_equal(np.diag(K), 1.0)


def test_float32_is_as_good_as_its_format(backend, rng):
    X = rng.normal(size=(300, 50)) + 3
    exact = reference(X, X)
    with config(dtype="float32"):
        K = Gram(KERNEL, X)
        assert K.dense().dtype == np.float32
        # the largest entries are about (50·10+1)², their products rounded d times at 6e-8
        np.testing.assert_allclose(K.dense(), exact, rtol=2e-5)
        assert (K @ np.ones(300)).dtype == np.float32


def test_a_product_of_centred_points_is_shifted_back(backend, rng):
    X, Y = rng.normal(size=(30, 5)) + 100, rng.normal(size=(20, 5)) + 100
    K = (Gaussian(3.0) * Linear())(X, Y)
    np.testing.assert_allclose(K, np.exp(-cdist(X, Y, "sqeuclidean") / 18) * (X @ Y.T), rtol=1e-9)


@pytest.mark.sample(3)
@pytest.mark.parametrize("threads", [2, 3])
def test_threads_change_nothing(backend, threads, rng):
    if backend == "triton":
        pytest.skip("threads of ours compute nothing")
    X, V = rng.normal(size=(1500, 30)), rng.normal(size=(1500, 2))
    with config(threads=1):
        K = Gram(KERNEL, X)
        alone = K.dense(), K @ V, K.rows(range(700))
    with config(threads=threads):
        K = Gram(KERNEL, X)
        together = K.dense(), K @ V, K.rows(range(700))
    for a, b in zip(alone, together, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("kernel", "points"),
    [
        (Subsequence(3), ["kernel", "colonel", "method", "methods"] * 10),  # A pair may take a second.
        (Laplacian(gamma=1.0), np.zeros((600, 4))),  # It has no product of matrices.
    ],
    ids=["objects", "no matrix product"],
)
def test_threads_share_what_takes_long(kernel, points, monkeypatch):
    shared = []

    def shares(task, tasks, threads=None):
        tasks = list(tasks)
        shared.append((len(tasks), threads))
        run(task, tasks, threads)

    monkeypatch.setattr("mercer.gram.gram.run", shares)
    K = Gram(kernel, points)
    K.dense()
    K @ np.ones(len(points))
    assert len(shared) == 2
    assert all(tasks > 1 and threads is None for tasks, threads in shared)


# --- inputs --------------------------------------------------------------------------------------


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    "kernel", [KERNEL, Laplacian(0.3), Gaussian(1.0), Linear(), Min(), ChiSquared()], ids=repr
)
@pytest.mark.parametrize("width", [12, 2500])  # narrow: made dense block by block; wide: sparse products
def test_csr_is_as_good_as_dense(backend, kernel, width, rng):
    X = sparse.random_array((60, width), density=30 / width if width > 100 else 0.4, rng=rng, format="csr")
    X = sparse.vstack([X, X[:3]]).tocsr()  # duplicates: distances that must come out as 0
    Y = X[10:40]
    D, E = X.toarray(), Y.toarray()
    scale = kernel(D).max()
    np.testing.assert_allclose(kernel(X, Y), kernel(D, E), atol=1e-12 * scale)
    np.testing.assert_allclose(kernel(X), kernel(D), atol=1e-12 * scale)
    np.testing.assert_array_equal(kernel(X), kernel(X).T)
    np.testing.assert_allclose(Gram(kernel, X) @ np.ones(63), kernel(D).sum(1), atol=1e-11 * scale)
    np.testing.assert_allclose(Gram(kernel, X).rows([3, 5]), kernel(D)[[3, 5]], atol=1e-12 * scale)
    np.testing.assert_allclose(Gram(kernel, X).diag(), np.diag(kernel(D)), atol=1e-12 * scale)
    np.testing.assert_allclose(kernel(X, E), kernel(D, E), atol=1e-12 * scale)  # one side of each kind
    np.testing.assert_allclose(kernel(D, Y), kernel(D, E), atol=1e-12 * scale)


def test_a_large_csr_matrix_is_never_dense(rng):
    X = sparse.random_array((3000, 200_000), density=1e-4, rng=rng, format="csr")  # 4.8 GB if it were
    v = rng.normal(size=3000)
    with config(memory="200MiB"):
        product = Gram(Linear(), X) @ v
    np.testing.assert_allclose(product, X @ (X.T @ v), atol=1e-10)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_data_frames(backend, library, rng):
    X = rng.normal(size=(8, 2))
    frame = library({"a": X[:, 0], "b": X[:, 1]})
    np.testing.assert_array_equal(KERNEL(frame), KERNEL(X))


def test_integers_do_not_overflow(backend):
    X = np.array([[200, 100], [100, 200]], dtype=np.uint8)
    np.testing.assert_array_equal(Linear()(X), [[50000, 40000], [40000, 50000]])
    big = np.array([[2**40], [2**41]], dtype=np.int64)
    np.testing.assert_array_equal(Linear()(big), [[2.0**80, 2.0**81], [2.0**81, 2.0**82]])


def test_labels_of_any_kind(backend):
    colours = pd.DataFrame({"c": ["red", "blue", "red"], "n": [1, 2, 3]})
    np.testing.assert_array_equal(Delta().on("c")(colours), [[1, 0, 1], [0, 1, 0], [1, 0, 1]])
    np.testing.assert_array_equal(
        Delta().on("c")(colours, pd.DataFrame({"c": ["blue", "green"]})), [[0, 0], [1, 0], [0, 0]]
    )
    np.testing.assert_array_equal(Delta()([["a"], ["b"]]), np.eye(2))


def test_labels_are_equal_whatever_their_types(backend):
    np.testing.assert_array_equal(Delta()([[0], [1]], [["a"], ["b"]]), np.zeros((2, 2)))
    np.testing.assert_array_equal(
        Delta()(np.array([[5], [7]], dtype=object), np.array([[5], [7]])), np.eye(2)
    )
    np.testing.assert_array_equal(Delta()(np.array([[2**53], [2**53 + 1]])), np.eye(2))
    with pytest.raises(InputError, match="NaN"):
        Delta()(np.array([[np.nan], [1.0]]))


def test_a_python_function_is_called_once_per_pair(rng):
    calls = []

    def product(a, b):
        calls.append(1)
        return float(a @ b)

    X = rng.normal(size=(5, 2))
    with pytest.warns(UserWarning, match="the slow path"):
        K = Gram(FromFunction(product), X)
    for _ in range(2):
        np.testing.assert_allclose(K @ np.ones(5), X @ X.sum(axis=0))
        np.testing.assert_allclose(K.dense(), X @ X.T)
    assert len(calls) == 15
    with config(memory=100), pytest.warns(UserWarning, match="the slow path"):  # no room to keep them
        np.testing.assert_allclose(Gram(FromFunction(product), X, cache=0) @ np.ones(5), X @ X.sum(axis=0))
    assert len(calls) > 30


def test_precomputed_and_functions(backend):
    K = np.array([[2.0, 1.0], [1.0, 3.0]])
    G = Gram(2 * Precomputed(K), np.arange(2))
    np.testing.assert_array_equal(G.dense(), 2 * K)
    np.testing.assert_array_equal(G.diag(), [4.0, 6.0])
    np.testing.assert_array_equal(G.rows([1]), [[2.0, 6.0]])
    np.testing.assert_array_equal(G @ np.ones(2), [6.0, 8.0])
    with pytest.warns(UserWarning, match="the slow path"):
        words = Gram(FromFunction(lambda a, b: len(set(a) & set(b))), ["ab", "bc", "cd"])
        np.testing.assert_array_equal(words @ np.ones(3), [3.0, 4.0, 3.0])


def test_words_are_resolved_on_one_set_and_refused_on_two(rng):
    X = rng.normal(size=(10, 2))
    assert Gram(Gaussian(sigma="median"), X).kernel == Gaussian(sigma="median").resolve(X)
    with pytest.raises(InputError, match="takes parameters from the data, and here are two sets"):
        Gram(Gaussian(sigma="median"), X, X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1.0, np.nan]], "NaN"),
        ([[1.0, np.inf]], "inf"),
        (np.array([[1j]]), "[Cc]omplex"),
        ([["one", "two"]], "string|text|number"),
        ([[1.0, 2.0], [3.0]], "length|ragged|same"),
        ([1.0, 2.0], "2-D|[Rr]eshape"),
        (np.empty((0, 3)), "at least one|0 sample|no "),
        (np.empty((3, 0)), "0 feature"),
        (np.ones((2, 2, 2)), "must be 2-D"),
        ([[10**400]], "large|overflow"),
    ],
)
def test_bad_points_are_refused_with_their_name(X, message):
    with pytest.raises(InputError, match=message) as error:
        Gram(Gaussian(1.0), X)
    assert "X" in str(error.value)
    with pytest.raises(InputError, match=message) as error:
        Gram(Gaussian(1.0), [[1.0, 2.0]], X)
    assert "Y" in str(error.value)


def test_other_mistakes(rng):
    X = rng.normal(size=(4, 2))
    with pytest.raises(InputError, match="same number of columns, got 2 and 3"):
        Gram(Gaussian(1.0), X, rng.normal(size=(4, 3)))
    with pytest.raises(InputError, match="kernel must be a Kernel"):
        Gram("rbf", X)
    with pytest.raises(InputError, match=r"X must be .*None"):
        Gram(Linear(), None)
    with pytest.raises(InputError, match="Negative values in data"):
        Gram(Min(), X)
    with pytest.raises(InputError, match="Negative values in data"):
        Gram(Min().on(0), X)
    with (
        pytest.raises(InputError, match=r"overflow when squared in float32: .* or use float64"),
        config(dtype="float32"),
    ):
        Gram(Gaussian(1e30), X * 1e30)
    with pytest.raises(InputError, match="the kernel's parameters overflow in float64"):
        Gram(Gaussian(1e-200), X)
    with pytest.raises(InputError, match="must have the same columns in the same order"):
        Gram(Gaussian(1.0), pd.DataFrame(X, columns=["a", "b"]), pd.DataFrame(X, columns=["b", "a"]))
    with pytest.raises(
        InputError, match="the map <lambda> must give one row per point, got 8 rows for 4 points"
    ):
        Gram(Linear() @ (lambda Z: np.vstack([Z, Z])), X)
    with pytest.raises(InputError, match="X must be a table or a list of points, got 5"):
        Gram(Delta(), 5)
    assert Gram(Linear(), X).block([], [0]).shape == (0, 1)
    with pytest.raises(InputError, match="overflow when squared in float64: rescale the columns"):
        Gram(Gaussian(1.0), [[1e200], [-1e200]])
    K = Gram(Linear(), X)
    with pytest.raises(InputError, match=r"row 4 is outside 0 … 3"):
        K.rows([4])
    with pytest.raises(InputError, match=r"column -5 is outside 0 … 3"):
        K.block([0], [-5])
    with pytest.raises(InputError, match="rows are chosen by whole numbers"):
        K.rows([0.5])
    with pytest.raises(InputError, match=r"multiplies real vectors of length 4, got float64 of shape \(3,\)"):
        K @ np.ones(3)
    with pytest.raises(InputError, match="multiplies real vectors of length 4, got complex128"):
        K @ np.ones(4, dtype=complex)
    with pytest.raises(InputError, match=r"diag\(\) is for one set of points; this Gram is 4 × 2"):
        Gram(Linear(), X, X[:2]).diag()
    with pytest.raises(InputError, match="2 length scales but the data have 3 columns"):
        Gram(Gaussian(sigma=[1.0, 2.0]), rng.normal(size=(3, 3)))


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e140])
def test_huge_and_tiny_scales(backend, scale, rng):
    X = rng.normal(size=(10, 30))
    K = Gaussian(sigma=2.0 * scale)(X * scale) if scale > 1e-140 else Linear()(X * scale)
    expected = Gaussian(sigma=2.0)(X) if scale > 1e-140 else Linear()(X) * scale**2
    np.testing.assert_allclose(K, expected, rtol=1e-9)


def test_constant_columns_and_duplicates(backend):
    X = np.ones((5, 3))
    np.testing.assert_array_equal(Gaussian(1.0)(X), np.ones((5, 5)))
    np.testing.assert_array_equal(Gaussian(gamma="scale")(X), np.ones((5, 5)))  # the variance is 0
    np.testing.assert_array_equal(Gaussian(sigma="median")(X), np.ones((5, 5)))


def test_pickle(rng):
    K = Gram(KERNEL, rng.normal(size=(5, 2)))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(K)).dense(), K.dense())


def test_settings_and_kernel_are_those_of_the_making(rng):
    X, Y = rng.normal(size=(5, 2)), rng.normal(size=(4, 2))
    kernel = Gaussian(1.0)
    with config(dtype="float32", backend="numpy"):
        K = Gram(kernel, X, Y)
    expected = K.dense()
    kernel.set_params(sigma=5.0)
    for other in (K, pickle.loads(pickle.dumps(K)), K.T.T):
        assert repr(other) == "Gram(Gaussian(sigma=1.0), 5 × 4, float32, numpy)"
        np.testing.assert_array_equal(other.dense(), expected)


# --- memory --------------------------------------------------------------------------------------


def test_other_results_beyond_the_budget_are_refused(rng):
    X = rng.normal(size=(2000, 2))
    with config(memory="10MiB"):
        K = Gram(Gaussian(1.0), X)
        for ask, what in (
            (lambda: K.rows(slice(None)), "a set of rows of 2000 × 2000 float64 needs 30.5MiB"),
            (lambda: K.block(slice(None), slice(None)), "a block of 2000 × 2000 float64 needs 30.5MiB"),
            (lambda: K @ np.ones((2000, 1000)), "a product of 2000 × 1000 float64 needs 15.3MiB"),
        ):
            with pytest.raises(MemoryBudgetError, match=what):
                ask()


def test_a_dense_matrix_beyond_the_budget_is_refused(rng):
    X = rng.normal(size=(2000, 2))
    with config(memory="10MiB"):
        K = Gram(Gaussian(1.0), X)
        with pytest.raises(MemoryBudgetError, match="a dense 2000 × 2000 Gram matrix of float64"):
            K.dense()
        assert np.isfinite(K @ np.ones(2000)).all()


@pytest.mark.slow
def test_peak_memory_of_a_large_product(fork):
    """n = 20,000 in 200 MiB: the matrix would take 3 GB. Measured in a process of its own."""
    script = """
        import resource
        import numpy as np
        from mercer import Gaussian, Gram, config
        rng = np.random.default_rng(0)
        X, v = rng.normal(size=(20_000, 20)), rng.normal(size=20_000)
        with config(memory="200MiB"):
            Gram(Gaussian(sigma=4.0), X[:600]) @ v[:600]  # compiled and loaded
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            product = Gram(Gaussian(sigma=4.0), X) @ v
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        sample = [0, 777, 19_999]
        d2 = ((X[sample][:, None] - X[None]) ** 2).sum(-1)
        np.testing.assert_allclose(product[sample], np.exp(-d2 / 32) @ v, rtol=1e-8, atol=1e-8)
        print((after - before) / 1024)
    """
    assert float(fork(textwrap.dedent(script)).said()) < 200


def test_rows_stay_within_the_cache(rng):
    X = rng.normal(size=(200, 3))
    K = Gram(Gaussian(1.0), X, cache=10 * 200 * 8)
    expected = K.dense()
    for i in rng.integers(0, 200, 100):
        np.testing.assert_allclose(K.rows([i]), expected[[i]], rtol=1e-12)
    assert len(K._cache) <= 10


@pytest.mark.parametrize(
    ("kernel", "X", "Y"),
    [
        (Gaussian(1.2), np.eye(5), np.ones((4, 5))),
        (Gaussian(1.2), np.eye(5, dtype=np.float32), np.ones((4, 5))),
        (Gaussian(1.2), np.eye(5), np.ones((4, 5), dtype=np.float32)),
        (Gaussian(1.2), sparse.csr_array(np.eye(5)), np.ones((4, 5))),
        (Gaussian(1.2).normalized() * Linear() + 2.0, np.eye(5), np.arange(20.0).reshape(4, 5)),
        (Gaussian(1.2).centered(np.eye(5)[:2]), np.eye(5), np.arange(20.0).reshape(4, 5)),
        (Delta(), [["a"], ["b"], ["c"]], [["c"], ["d"]]),
        (Spectrum(2), ["abab", "ba"], ["aba", "bb", "abba"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_points_beside_what_is_prepared(kernel, X, Y):
    some = X[:1]
    gram = Gram(kernel, some, Y).beside(X)
    whole = Gram(kernel, X, Y)
    assert gram.shape == whole.shape and gram._raw[0] is not some
    np.testing.assert_array_equal(gram.dense(), whole.dense())
    V = np.arange(gram.shape[1])
    np.testing.assert_array_equal(gram @ V, whole @ V)
    np.testing.assert_array_equal(gram.rows([1]), whole.rows([1]))


@pytest.mark.parametrize("kernel", [Gaussian(1.2), Linear(), Laplacian(0.7)], ids=repr)
def test_read_only_points_compile_nothing(rng, kernel, tmp_path):
    loops = pytest.importorskip("mercer.gram.backends.numba.parts")._loops
    X = rng.normal(size=(20, 3))
    for dtype in ("float64", "float32"):
        for points in (X, X.astype(np.float32)):
            with config(dtype=dtype, backend="numba"):
                wanted = Gram(kernel, points).dense()
                known = {key: set(loop._compiled) for key, loop in loops.items()}
                mapped = np.memmap(tmp_path / "points", points.dtype, "w+", shape=points.shape)
                mapped[:] = points
                mapped.flush()
                mapped = np.memmap(tmp_path / "points", points.dtype, "r", shape=points.shape)
                np.testing.assert_array_equal(Gram(kernel, mapped).dense(), wanted)
                some = Gram(kernel, mapped, mapped[:5]).dense()
                np.testing.assert_allclose(some, wanted[:, :5], rtol=1e-5)  # centred elsewhere
                assert {key: set(loop._compiled) for key, loop in loops.items()} == known
