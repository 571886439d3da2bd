"""Matrices of low rank: the verbs of a Gram against the dense product, and systems against NumPy."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from mercer import Gaussian, Gram, Linear, LowRank, Polynomial, Spectrum, config
from mercer.errors import InputError, MemoryBudgetError


@pytest.fixture(params=["float64", "float32"])
def dtype(request):
    return request.param


@pytest.fixture(params=["C", "F"])
def K(rng, dtype, request):
    return LowRank(np.asarray(rng.normal(size=(40, 5)), dtype, order=request.param), tau=0.5)


def test_it_has_the_verbs_of_a_gram(rng, K, dtype):
    """A sum of 5 products, or of 40, is right to as many units in the last place."""
    F = K.factor.astype(np.float64)
    exact, tolerance = F @ F.T, 100 * float(np.finfo(dtype).eps)
    assert K.shape == (40, 40) and K.dtype == dtype and K.rank == 5 and K.tau == 0.5
    assert K.is_symmetric and K.T is K and K.pivots is None
    close = {"rel": tolerance, "abs": 50 * tolerance}
    assert K.dense() == pytest.approx(exact, **close) and K.dense().dtype == dtype
    assert K.diag() == pytest.approx(exact.diagonal(), **close)
    assert K.rows([3, -1]) == pytest.approx(exact[[3, -1]], **close)
    assert K.block(slice(2, 9), [0, 5]) == pytest.approx(exact[2:9][:, [0, 5]], **close)
    assert K.block(np.arange(40) < 3, slice(None, 4)) == pytest.approx(exact[:3, :4], **close)
    for V in (rng.normal(size=40), rng.normal(size=(40, 3)), np.arange(40)):
        product = K @ V
        assert product == pytest.approx(exact @ V, rel=tolerance, abs=2000 * tolerance)
    out = np.empty((40, 40), dtype)
    assert K.dense(out) is out
    assert repr(K) == f"LowRank(40 × 40, rank 5, {dtype}, tau=0.5)"
    assert np.array_equal(pickle.loads(pickle.dumps(K)).dense(), K.dense())


@pytest.mark.parametrize("shift", [10.0, 1e-3, 1e-9])
def test_shifted_systems_are_solved(rng, K, shift):
    """κ = λ₁/σ is up to 1e11 here: the residual is what one can ask for, relative to ‖A‖‖x‖ + ‖b‖."""
    A = K.factor.astype(np.float64) @ K.factor.astype(np.float64).T + shift * np.eye(40)
    for B in (rng.normal(size=40), rng.normal(size=(40, 3)), K.factor.sum(axis=1)):
        x = K.solve(B, shift)
        assert x.shape == B.shape and x.dtype == np.float64
        size = np.linalg.norm(A, 2) * np.linalg.norm(x) + np.linalg.norm(B)
        assert np.linalg.norm(A @ x - B) < 1e-13 * size


def test_a_factor_in_float32_is_solved_in_float64(rng, monkeypatch):
    """κ = 1e9: float32 alone would leave nothing of the solution. Rows come in several parts."""
    monkeypatch.setattr("mercer.gram.lowrank._CONVERTED", 7)
    F = rng.normal(size=(50, 4)).astype(np.float32)
    K, b, shift = LowRank(F), rng.normal(size=50), 1e-7
    exact = np.linalg.solve(F.astype(np.float64) @ F.T.astype(np.float64) + shift * np.eye(50), b)
    assert np.linalg.norm(K.solve(b, shift) - exact) < 1e-6 * np.linalg.norm(exact)


def test_another_shift_is_another_system(rng):
    K, b = LowRank(rng.normal(size=(10, 2))), rng.normal(size=10)
    for shift in (1.0, 2.0, 2.0, 1.0):
        assert K.dense() @ (x := K.solve(b, shift)) + shift * x == pytest.approx(b, rel=1e-12, abs=1e-12)


def test_the_rank_may_be_zero():
    K = LowRank.pivoted(Linear(), np.zeros((4, 2)), 3)
    assert K.rank == 0 and K.tau == 0 and not K.dense().any() and not (K @ np.ones(4)).any()
    assert K.solve(np.ones(4), 2.0).tolist() == [0.5] * 4


def test_results_do_not_depend_on_threads(rng, monkeypatch):
    monkeypatch.setattr("mercer.solvers.linear.strips._WORK", 2**12)
    monkeypatch.setattr("mercer.gram.lowrank._SQUARED", 8)
    X, b = rng.normal(size=(300, 2)), rng.normal(size=300)
    found = []
    for threads in (1, 3):
        with config(threads=threads):
            pivoted = LowRank.pivoted(Gaussian(sigma=1.0), X, 40)
            given = LowRank.landmarks(Gaussian(sigma=1.0), X, X[:40])
            found.append([pivoted.solve(b, 0.1), pivoted @ b, given.factor, given.solve(b, 0.1)])
    for one, other in zip(*found, strict=True):
        assert np.array_equal(one, other)


# --- by pivots and by landmarks ------------------------------------------------------------------------


def test_pivots_are_landmarks(rng):
    X = rng.normal(size=(120, 2))
    pivoted = LowRank.pivoted(Gaussian(sigma=1.0), X, 25, random_state=3)
    given = LowRank.landmarks(Gaussian(sigma=1.0), X, X[pivoted.pivots])
    dense = Gram(Gaussian(sigma=1.0), X).dense()
    assert pivoted.dense() == pytest.approx(given.dense(), abs=1e-9)
    for K in (pivoted, given):
        assert K.tau == pytest.approx(np.trace(dense - K.dense()), rel=1e-8)
        assert np.linalg.eigvalsh(dense - K.dense()).min() > -1e-10
        assert np.linalg.eigvalsh(dense - K.dense()).max() <= K.tau
    other = LowRank.pivoted(Gaussian(sigma=1.0), X, 25, random_state=4)
    assert other.pivots.tolist() != pivoted.pivots.tolist()


def test_dependent_landmarks_do_no_harm(rng, dtype):
    """Twice the same, nearly the same, a sum of others: K̂ is that of the independent ones."""
    X = rng.normal(size=(80, 3))
    Z = np.vstack([X[:6], X[:6], X[:3] + 1e-9, X[0] + X[1]])
    with config(dtype=dtype):
        K = LowRank.landmarks(Linear(), X, Z)
        assert K.rank == 3 and K.dtype == dtype
        assert K.dense() == pytest.approx(X @ X.T, rel=1e-5, abs=1e-5)
        assert 0 <= K.tau < 1e-4
        smooth = LowRank.landmarks(Gaussian(sigma=3.0), X, np.vstack([X, X + 1e-7]))
        # φ is right to 2e-5 in float32, see the map
        exact = Gram(Gaussian(sigma=3.0), X).dense()
        assert np.abs(smooth.dense() - exact).max() < {"float64": 1e-7, "float32": 1e-4}[dtype]


def test_small_landmarks_are_not_lost_beside_large_ones(rng):
    """k(z, z) is 1e24 times smaller for the last, which is the only one to know of the third column."""
    Z = np.diag([1e6, 1e6, 1e-6])
    K = LowRank.landmarks(Linear(), Z, Z)
    assert K.rank == 3 and K.diag() == pytest.approx([1e12, 1e12, 1e-12], rel=1e-12)


def test_points_of_any_kind(rng):
    texts = ["".join(rng.choice(list("abc"), 8)) for _ in range(30)]
    K = LowRank.landmarks(Spectrum(2), texts, texts[:20])
    assert K.rank == 9 and K.dense() == pytest.approx(Gram(Spectrum(2), texts).dense(), abs=1e-9)
    X = sparse.random_array((50, 30), density=0.1, rng=rng, format="csr")
    kernel = Polynomial(2, c=1.0)
    given, pivoted = LowRank.landmarks(kernel, X, X[:20]), LowRank.pivoted(kernel, X, 20)
    same = LowRank.landmarks(kernel, X.toarray(), X[:20].toarray())
    assert given.dense() == pytest.approx(same.dense(), abs=1e-8) and pivoted.rank == 20


def test_parameters_come_from_the_points_and_not_from_the_landmarks(rng):
    X = rng.normal(size=(40, 2))
    by_word = LowRank.landmarks(Gaussian(gamma="scale"), X, 0.1 * X[:5])
    by_hand = LowRank.landmarks(Gaussian(gamma="scale").resolve(X), X, 0.1 * X[:5])
    assert np.array_equal(by_word.factor, by_hand.factor)


# --- what is refused -----------------------------------------------------------------------------------


def test_what_makes_no_sense_is_refused(rng):
    K = LowRank(rng.normal(size=(10, 2)))
    for given, match in (
        ((np.ones(3),), "n × r array"),
        ((np.ones((3, 1), int),), "got int64"),
        ((np.ones((3, 1)), -1.0), "at least 0, got -1.0"),
    ):
        with pytest.raises(InputError, match=match):
            LowRank(*given)
    with pytest.raises(InputError, match="shift must be positive and finite, got 0"):
        K.solve(np.ones(10), 0)
    with pytest.raises(InputError, match="real vectors of length 10, got float64 of shape"):
        K.solve(np.ones(9), 1.0)
    with pytest.raises(InputError, match="K̂ multiplies real vectors of length 10"):
        K @ np.ones((11, 2))
    with pytest.raises(InputError, match="row 10 is outside"):
        K.rows([10])
    twice = LowRank(np.repeat(rng.normal(size=(30, 1)), 2, axis=1))
    with pytest.raises(InputError, match=r"shift=1e-30 is lost in the rounding of K̂: take at least \d"):
        twice.solve(np.ones(30), 1e-30)


def test_what_does_not_fit_is_refused(rng):
    X = rng.normal(size=(2000, 1))
    K = LowRank(X)
    with config(memory="1MiB"):
        with pytest.raises(MemoryBudgetError, match="use it lazily"):
            K.dense()
        with pytest.raises(MemoryBudgetError, match="a factor of rank 500"):
            LowRank.pivoted(Gaussian(sigma=1.0), X, 500)
        with pytest.raises(MemoryBudgetError):
            LowRank.landmarks(Gaussian(sigma=1e-3), X, X[:300])
