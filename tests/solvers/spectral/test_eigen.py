"""Eigenpairs against LAPACK on the matrix itself; every store, every awkward spectrum, every way to stop."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer import Gaussian, Gram, Linear, config
from mercer.errors import InputError
from mercer.solvers.control import Control
from mercer.solvers.spectral import eigen
from mercer.solvers.spectral.eigen import leading_eigenpairs, scheme

ITERATIVE = ["lanczos", "randomized"]


class Matrix:
    """A dense K with the verbs a solver may use and no others."""

    def __init__(self, K, dtype=np.float64):
        self.K = np.asarray(K, dtype=dtype)
        self.shape, self.dtype = self.K.shape, self.K.dtype
        self.products = 0

    def diag(self):
        return self.K.diagonal()

    def rows(self, index):
        return self.K[index]

    def dense(self, out=None):
        if out is None:
            return self.K.copy()
        out[:] = self.K
        return out

    def __matmul__(self, V):
        self.products += 1
        return self.K @ V


def centred(K, weight=None):
    n = len(K)
    w = np.ones(n) if weight is None else np.asarray(weight, dtype=float)
    H = np.eye(n) - np.outer(np.ones(n), w) / w.sum()
    s = np.sqrt(w)
    return s[:, None] * (H @ K @ H.T) * s


def check(result, A, k, accuracy):
    """Values against LAPACK, vectors orthonormal, residuals honest."""
    truth = np.linalg.eigvalsh(A)[::-1][:k]
    scale = max(abs(truth[0]), 1e-300)
    assert np.abs(result.values - truth).max() <= accuracy * scale
    assert np.abs(result.vectors.T @ result.vectors - np.eye(k)).max() < 1e-10
    residual = np.linalg.norm(A @ result.vectors - result.vectors * result.values, axis=0)
    assert np.abs(residual - result.residuals).max() <= 1e-12 * scale + 1e-14 * np.abs(A).max() * len(A)
    assert result.images == pytest.approx(A @ result.vectors, abs=1e-11 * scale)
    assert result.trace == pytest.approx(np.trace(A), abs=1e-10 * np.abs(np.diag(A)).sum() + 1e-300)


@pytest.fixture
def X(rng):
    return rng.normal(size=(520, 5)) * [3, 2, 1.5, 1, 0.5]


@pytest.mark.parametrize("solver", ["dense", *ITERATIVE])
@pytest.mark.parametrize("center", [True, False])
def test_equals_lapack(X, solver, center):
    K = Gaussian(sigma=2.0)(X)
    A = centred(K) if center else K
    result = leading_eigenpairs(Gram(Gaussian(sigma=2.0), X, cache=0), 8, center=center, solver=solver)
    # a residual of tol = 1e-8 bounds the error of the value, quadratically once it is small
    check(result, A, 8, 1e-12 if solver != "randomized" else 1e-8)
    assert result.stopped == "converged"
    assert (result.iterations == 0) == (solver == "dense")
    assert np.isclose(result.means, (K @ result.vectors).mean(axis=0) if center else 0).all()
    if solver == "lanczos":
        assert (result.residuals <= 1e-8 * result.values).all()


@pytest.mark.parametrize("store", ["dense", "half", "nothing"])
def test_stores_agree(X, store, monkeypatch):
    """Half of K in float32 only bends the search: what comes back is certified with K itself."""
    monkeypatch.setattr(eigen, "_BYTES_KEPT", 2**30 if store == "dense" else 0)
    monkeypatch.setattr(eigen, "_STRIP", 100)
    monkeypatch.setattr(eigen, "_CHUNK", 150)
    K = Gram(Gaussian(sigma=2.0), X, cache=0)
    with config(memory="2MB" if store == "nothing" else "1GB"):
        assert scheme(520, 5, solver="lanczos").store == store
        result = leading_eigenpairs(K, 5, solver="lanczos")
    check(result, centred(K.dense()), 5, 1e-11)
    assert (result.residuals <= 1e-6 * result.values).all()


def test_half_goes_on_with_the_matrix_itself_when_float32_does_not_do(X, monkeypatch):
    monkeypatch.setattr(eigen, "_BYTES_KEPT", 0)
    K = Gram(Gaussian(sigma=2.0), X, cache=0)
    result = leading_eigenpairs(K, 5, solver="lanczos", tol=1e-11)
    assert (result.residuals <= 1e-11 * result.values).all()
    check(result, centred(K.dense()), 5, 1e-13)


def test_half_of_a_matrix_without_blocks_and_far_from_one(X, monkeypatch):
    monkeypatch.setattr(eigen, "_BYTES_KEPT", 0)
    K = 1e60 * Gaussian(sigma=2.0)(X)  # beyond the range of float32
    result = leading_eigenpairs(Matrix(K), 5, solver="lanczos")
    check(result, centred(K), 5, 1e-11)


def test_weights_are_repetition(X, rng):
    w = rng.integers(0, 4, len(X))
    K = Gaussian(sigma=2.0)(X)
    repeated = np.repeat(np.arange(len(X)), w)
    truth = np.linalg.eigvalsh(centred(K[np.ix_(repeated, repeated)]))[::-1][:6]
    for solver in ("dense", "lanczos"):
        result = leading_eigenpairs(Matrix(K), 6, weight=w, solver=solver)
        check(result, centred(K, w), 6, 1e-12)
        assert result.values == pytest.approx(truth, rel=1e-10)


# --- awkward spectra ---------------------------------------------------------------------------------


@st.composite
def spectra(draw):
    """Eigenvalues with repetitions and zeros, of a size that the Krylov space exhausts or does not."""
    n = draw(st.integers(4, 60))
    distinct = draw(
        st.lists(st.sampled_from([0.0, 0.0, 1e-9, 0.5, 1.0, 1.0, 7.0, -0.3]), min_size=1, max_size=6)
    )
    scale = draw(st.sampled_from([1e-8, 1.0, 1e8]))
    return scale * np.sort(np.resize(distinct, n))[::-1], draw(st.integers(1, n)), draw(st.integers(0, 2**31))


@given(spectra(), st.sampled_from(ITERATIVE), st.booleans())
def test_any_spectrum(problem, solver, center):
    spectrum, k, seed = problem
    n = len(spectrum)
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]
    K = (Q * spectrum) @ Q.T
    K = (K + K.T) / 2
    A = centred(K) if center else K
    result = leading_eigenpairs(Matrix(K), k, solver=solver, center=center, seed=seed)
    truth = np.linalg.eigvalsh(A)[::-1]
    scale = np.abs(spectrum).max()
    assert result.stopped == "converged"
    found, truth_k = result.values, truth[:k]
    if center:  # the eigenvalue 0 of the centre itself is not looked for: what is negative is not compared
        found, truth_k = np.maximum(found, 0), np.maximum(truth_k, 0)
    # the search ends at rounding, 4 √n ε times the size of K, or at tol = 1e-8 of the value
    assert np.abs(found - truth_k).max() <= 2e-8 * scale
    assert result.lowest >= truth[-1] - 1e-12 * scale


@pytest.mark.parametrize("solver", ["dense", *ITERATIVE])
def test_fewer_dimensions_than_components(rng, solver):
    K = Gram(Linear(), rng.normal(size=(600, 3)), cache=0)
    result = leading_eigenpairs(K, 10, solver=solver)
    assert (result.values[:3] > result.zero).all()
    assert (np.abs(result.values[3:]) <= result.zero).all()
    check(result, centred(K.dense()), 10, 1e-12)


@pytest.mark.parametrize("solver", ["dense", *ITERATIVE])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_constant_matrix(solver, value):
    result = leading_eigenpairs(Matrix(np.full((50, 50), value)), 4, solver=solver)
    assert (np.abs(result.values) <= result.zero).all()
    assert result.stopped == "converged"


@pytest.mark.parametrize("solver", ITERATIVE)
def test_one_eigenvalue_of_every_multiplicity(solver):
    result = leading_eigenpairs(Matrix(np.eye(300)), 12, solver=solver)
    assert result.values == pytest.approx(np.ones(12))


def test_a_large_mean_is_not_a_component(rng):
    """Centring cancels: what is left of rounding counts as zero, since K itself is large."""
    X = 1e4 + rng.normal(size=(200, 2))
    result = leading_eigenpairs(Gram(Linear(), X, cache=0), 6, solver="dense")
    assert (result.values > result.zero).sum() == 2


def test_the_lowest_eigenvalue_shows_an_indefinite_matrix(rng):
    X = rng.normal(size=(1200, 3))
    K = Gaussian(sigma=1.0)(X)
    K -= 0.2 * np.outer(X[:, 0], X[:, 0])
    for solver, k in (("dense", 5), ("lanczos", 5)):
        result = leading_eigenpairs(Matrix(K), k, solver=solver)
        assert -250 < result.lowest < -100  # about -0.2 · 1200
        assert (result.values > 0).all()


def test_many_restarts(rng):
    """A slowly falling spectrum and a small basis."""
    n = 400
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    K = (Q * np.linspace(1, 0.5, n)) @ Q.T
    plan = eigen.Scheme("lanczos", "dense", 8, 40, 1e-9, 0)
    result = leading_eigenpairs(Matrix((K + K.T) / 2), 3, center=False, plan=plan)
    assert result.stopped == "converged"
    assert result.iterations > 10
    assert result.values == pytest.approx(np.linspace(1, 0.5, n)[:3], rel=1e-12)


def test_float32(X):
    with config(dtype="float32"):
        K = Gram(Gaussian(sigma=2.0), X, cache=0)
        results = [leading_eigenpairs(K, 5, solver=solver) for solver in ("dense", "lanczos")]
    truth = np.linalg.eigvalsh(centred(Gaussian(sigma=2.0)(X)))[::-1][:5]
    for result in results:
        assert result.values == pytest.approx(truth, rel=2e-5)  # kernel values are right to about 1e-6
        assert result.vectors.dtype == np.float64


# --- control -----------------------------------------------------------------------------------------


def test_the_seed_decides_and_nothing_else(X):
    K = Gram(Gaussian(sigma=2.0), X, cache=0)
    one, two, other = (leading_eigenpairs(K, 4, solver="lanczos", seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.vectors, two.vectors)
    assert not np.array_equal(one.vectors, other.vectors)
    assert one.values == pytest.approx(other.values, rel=1e-12)


def test_max_iter_returns_the_best_so_far(X):
    K = Gram(Gaussian(sigma=2.0), X, cache=0)
    result = leading_eigenpairs(K, 8, solver="lanczos", max_iter=2)
    assert (result.stopped, result.iterations) == ("max_iter", 2)
    truth = np.linalg.eigvalsh(centred(K.dense()))[::-1][:8]
    assert (result.values <= truth * (1 + 1e-12)).all()  # Ritz values approach from below
    nearest = np.abs(result.values[:, None] - np.linalg.eigvalsh(centred(K.dense()))).min(axis=1)
    assert (nearest <= result.residuals).all()


@pytest.mark.parametrize("stop", [1, 3, 5, 7])
def test_resumed_runs_equal_uninterrupted_ones(X, tmp_path, monkeypatch, stop):
    monkeypatch.setattr(eigen, "_BYTES_KEPT", 0)  # float32 first, then K itself: both phases are interrupted
    K = Gram(Gaussian(sigma=1.0), X, cache=0)
    options = {"solver": "lanczos", "tol": 1e-11, "seed": 3}
    whole = leading_eigenpairs(K, 6, **options)
    path = tmp_path / "state.npz"
    with Control(checkpoint=path) as control:
        part = leading_eigenpairs(K, 6, max_iter=stop, control=control, **options)
    assert part.stopped == "max_iter"
    with Control(checkpoint=path, resume=True) as control:
        resumed = leading_eigenpairs(K, 6, control=control, **options)
    assert resumed.iterations == whole.iterations > stop
    assert np.array_equal(resumed.values, whole.values)
    assert np.array_equal(resumed.vectors, whole.vectors)


def test_interruption(X):
    def stop(event):
        if event["done"] >= 2:
            raise KeyboardInterrupt

    with Control(progress=stop) as control:
        result = leading_eigenpairs(
            Gram(Gaussian(sigma=0.5), X, cache=0), 8, solver="lanczos", tol=1e-12, control=control
        )
    assert result.stopped == "interrupted"
    assert result.iterations < 6


# --- the scheme --------------------------------------------------------------------------------------


def test_scheme():
    with config(memory="8GB"):
        assert scheme(20_000, 10).memory < 1.2e9  # K itself is 3.2 GB
        assert scheme(5000, 10).tol == 1e-8 and scheme(20_000, 10).tol == 1e-6
        assert scheme(3000, 1000).solver == "dense"
        assert scheme(20_000, 10, is_slow=True).store == "dense"
    with config(memory="500MB"):
        assert scheme(20_000, 10).store == "nothing"
        assert scheme(20_000, 10).memory < 1e8


@pytest.mark.parametrize("solver", ["dense", "lanczos"])
def test_the_memory_is_as_planned(rng, solver):
    import tracemalloc

    X = rng.normal(size=(1100, 3))
    K = Gram(Gaussian(sigma=1.0), X, cache=0)
    K.block([0], [1])  # compiled
    plan = scheme(1100, 5, solver=solver)
    tracemalloc.start()
    leading_eigenpairs(K, 5, plan=plan)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.1 * plan.memory + 2e6
    assert plan.memory < 1.5 * peak + 2e6


@pytest.mark.parametrize("k", [0, 51])
def test_refused(k):
    with pytest.raises(InputError, match=f"n_components must be 1 … 50, the number of points, got {k}: ask"):
        leading_eigenpairs(Matrix(np.eye(50)), k)
