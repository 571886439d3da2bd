"""Randomly pivoted Cholesky: what it approximates, whom it chooses, and where it ends."""

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chi2

from mercer import Gaussian, Gram, Linear, Precomputed, Sigmoid, Spectrum, config
from mercer.errors import InputError, MemoryBudgetError
from mercer.solvers.landmarks import pivots
from mercer.solvers.landmarks.pivots import accept, pivoted_cholesky
from mercer.solvers.linear import strips


class Stored:
    """A stored matrix with the few verbs that a solver may rely on."""

    def __init__(self, K):
        self.K = np.asarray(K)
        self.shape, self.dtype = self.K.shape, self.K.dtype

    def diag(self):
        return self.K.diagonal().copy()

    def block(self, i, j):
        return self.K[np.ix_(i, j)]

    def rows(self, index):
        return self.K[index]


def low_rank(rng, n, rank, dtype="float64"):
    A = rng.normal(size=(n, rank))
    return (A @ A.T).astype(dtype)


def approximation(found):
    F = found.factor.astype(np.float64)
    return F @ F.T


# --- what is approximated ------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-11), ("float32", 1e-3)])
def test_a_matrix_of_low_rank_is_recovered(rng, dtype, tolerance):
    """Errors are some √ε of k(x, x) at most where a pivot is small; the eigenvalues of these are not."""
    K = low_rank(rng, 200, 12, dtype)
    found = pivoted_cholesky(Stored(K), 50)
    assert found.ended_early and len(found.pivots) == 12
    assert found.factor.dtype == dtype and found.factor.shape == (200, 12)
    assert np.abs(approximation(found) - K).max() < tolerance * np.abs(K).max()
    assert 0 <= found.tau < tolerance * np.trace(K)


def test_the_approximation_is_that_of_the_pivots(rng):
    """K̂ = K[:, S] K[S, S]⁻¹ K[S, :], solved here by least squares."""
    K = Gram(Gaussian(sigma=1.0), rng.normal(size=(150, 3)))
    found, dense = pivoted_cholesky(K, 20), K.dense()
    columns = dense[:, found.pivots]
    expected = columns @ np.linalg.lstsq(columns[found.pivots], columns.T, rcond=None)[0]
    assert len(set(found.pivots.tolist())) == 20 and not found.ended_early
    assert approximation(found) == pytest.approx(expected, abs=1e-10)
    assert found.tau == pytest.approx(np.trace(dense - approximation(found)), rel=1e-12)
    assert found.residual == pytest.approx(np.diagonal(dense) - np.diagonal(expected), abs=1e-12)
    triangle = found.factor[found.pivots]
    assert np.triu(triangle, 1) == pytest.approx(0, abs=1e-12)


def test_the_error_is_near_that_of_the_best_rank(rng):
    """The theorem allows (1 + ε) times the best error of rank r for k ≥ r/ε + r log(1/εη); here ε = 1."""
    K = Gram(Gaussian(sigma=2.0), rng.normal(size=(400, 2)))
    tails = np.linalg.eigvalsh(K.dense()).cumsum()
    taus = [pivoted_cholesky(K, 30, random_state=seed).tau for seed in range(10)]
    assert tails[400 - 30 - 1] * 0.999 < min(taus) and np.mean(taus) < 2 * tails[400 - 15 - 1]


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_rows_that_a_gram_writes_are_those_it_returns(rng, backend):
    with config(backend=backend):
        K = Gram(Gaussian(sigma=1.0), rng.normal(size=(80, 2)))
        found = pivoted_cholesky(K, 15, random_state=3)
        stored = pivoted_cholesky(Stored(K.dense()), 15, random_state=3)
    assert found.pivots.tolist() == stored.pivots.tolist()
    assert found.factor == pytest.approx(stored.factor, abs=1e-9)


def test_strings_have_pivots_too(rng):
    texts = ["".join(rng.choice(list("abc"), 8)) for _ in range(40)]
    K = Gram(Spectrum(2), texts)
    found = pivoted_cholesky(K, 40)
    assert found.ended_early and len(found.pivots) <= 9  # as many as there are pairs of letters
    assert approximation(found) == pytest.approx(K.dense(), abs=1e-10)


# --- who is chosen -------------------------------------------------------------------------------------


def law(K, weight, count):
    """The probability of every sequence of pivots, chosen one at a time."""
    found = {}
    for sequence in permutations(range(len(K)), count):
        left, probability = K.copy(), 1.0
        for s in sequence:
            mass = weight * left.diagonal().clip(0)
            probability *= mass[s] / mass.sum()
            if left[s, s] > 0:
                left = left - np.outer(left[:, s], left[s]) / left[s, s]
        found[sequence] = probability
    return found


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "weight", [np.ones(5), np.array([1.0, 2.0, 0.0, 0.5, 1.0])], ids=["equal", "weighted"]
)
def test_blocks_choose_as_one_at_a_time_would(rng, weight):
    """Pearson's statistic of 1500 runs against the law of sequences, at a level of 1e-3."""
    A = rng.normal(size=(5, 5))
    K = A @ A.T
    expected = law(K, weight, 3)
    runs = 1500
    counts = dict.fromkeys(expected, 0)
    for seed in range(runs):
        counts[tuple(pivoted_cholesky(Stored(K), 3, random_state=seed, weight=weight).pivots.tolist())] += 1
    assert all(counts[s] == 0 for s, p in expected.items() if p == 0)
    common = [s for s, p in expected.items() if runs * p >= 5]
    observed = np.array([counts[s] for s in common] + [runs - sum(counts[s] for s in common)])
    mean = runs * np.array([expected[s] for s in common] + [1 - sum(expected[s] for s in common)])
    statistic = ((observed - mean) ** 2 / np.maximum(mean, 1e-9)).sum()
    assert statistic < chi2.ppf(0.999, len(common))


def test_the_choice_is_the_seed_s_for_any_number_of_threads(rng, monkeypatch):
    monkeypatch.setattr(strips, "_WORK", 2**14)  # many strips
    X = rng.normal(size=(500, 3))
    found = []
    for threads in (1, 2, 5):
        with config(threads=threads):
            found.append(pivoted_cholesky(Gram(Gaussian(sigma=1.0), X), 60, random_state=4))
    for other in found[1:]:
        assert np.array_equal(found[0].pivots, other.pivots)
        assert np.array_equal(found[0].factor, other.factor)
        assert np.array_equal(found[0].residual, other.residual)
    K = Gram(Gaussian(sigma=1.0), X)
    assert pivoted_cholesky(K, 60, random_state=5).pivots.tolist() != found[0].pivots.tolist()
    generator = np.random.default_rng(4)
    first, second = (pivoted_cholesky(K, 9, random_state=generator).pivots.tolist() for _ in range(2))
    assert first != second


def test_points_of_weight_zero_are_never_chosen(rng):
    K = Gram(Gaussian(sigma=0.1), rng.normal(size=(60, 2)))
    weight = (np.arange(60) % 3 == 0).astype(float)
    found = pivoted_cholesky(K, 60, weight=weight)
    assert sorted(found.pivots.tolist()) == list(range(0, 60, 3)) and found.ended_early
    assert found.residual[weight == 0].min() > 0 and found.tau > 0


# --- where it ends -------------------------------------------------------------------------------------


def test_duplicates_are_chosen_once(rng):
    X = np.repeat(rng.normal(size=(7, 2)), 30, axis=0)
    for dtype in ("float64", "float32"):
        with config(dtype=dtype):
            found = pivoted_cholesky(Gram(Gaussian(sigma=1.0), X), 50)
        assert (
            found.ended_early and sorted(set(found.pivots // 30)) == list(range(7)) and len(found.pivots) == 7
        )


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_smooth_kernel_ends_at_rounding(dtype):
    """Eigenvalues fall below rounding long before the rank: no pivot may be made of rounding."""
    X = np.linspace(0, 1, 400)[:, None]
    with config(dtype=dtype):
        found = pivoted_cholesky(Gram(Gaussian(sigma=1.0), X), 200)
    assert found.ended_early and len(found.pivots) < 20
    assert np.isfinite(found.factor).all()
    # Rounding of a pivot is amplified to at most about √ε of k(x, x) = 1.
    exact = Gram(Gaussian(sigma=1.0), X).dense()
    assert np.abs(approximation(found) - exact).max() < np.sqrt(np.finfo(dtype).eps)


def test_nothing_comes_of_nothing():
    found = pivoted_cholesky(Stored(np.zeros((4, 4))), 2)
    assert found.pivots.size == 0 and found.factor.shape == (4, 0) and found.tau == 0 and found.ended_early
    some = pivoted_cholesky(Gram(Linear(), np.array([[0.0], [0.0], [2.0]])), 3)
    assert some.pivots.tolist() == [2] and some.tau == 0
    none = pivoted_cholesky(Stored(np.eye(3)), 2, weight=np.zeros(3))
    assert none.pivots.size == 0 and none.tau == 3


def test_all_points_are_chosen_where_the_rank_is_full(rng):
    K = Stored(np.diag(rng.uniform(1, 2, size=15)))
    found = pivoted_cholesky(K, 100)
    assert sorted(found.pivots.tolist()) == list(range(15)) and not found.ended_early
    assert found.tau == pytest.approx(0, abs=1e-13)


def test_values_of_very_different_sizes(rng):
    """Scaling points by 1e-6 … 1e6 scales F alike: all tests are relative to k(x, x)."""
    scale = 10.0 ** rng.uniform(-6, 6, size=60)
    K = low_rank(rng, 60, 60) * np.outer(scale, scale)
    found = pivoted_cholesky(Stored(K), 60)
    assert np.abs(approximation(found) - K).max() < 1e-10 * np.abs(K).max()


def test_an_indefinite_kernel_is_refused(rng):
    with pytest.raises(
        InputError, match=r"not positive definite on these points: 1 of them predict .* point"
    ):
        pivoted_cholesky(Stored(np.array([[1.0, 2.0], [2.0, 1.0]])), 2)
    with pytest.raises(InputError, match="not positive definite"):
        pivoted_cholesky(Gram(Precomputed(np.array([[1.0, 1.0], [1.0, 0.0]])), np.arange(2)), 2)
    with pytest.raises(InputError, match=r"must be ≥ 0 .* got -0\..* for point"):
        pivoted_cholesky(Gram(Sigmoid(eta=1.0, nu=-5.0), rng.normal(size=(30, 2))), 30)
    with pytest.raises(InputError, match=r"must be finite .* got nan for point 1"):
        pivoted_cholesky(Stored(np.diag([1.0, np.nan])), 1)


def test_what_does_not_fit_is_refused():
    K = Gram(Gaussian(sigma=1.0), np.zeros((2000, 1)))
    with config(memory="1MiB"), pytest.raises(MemoryBudgetError, match=r"rank 100 .* 2,000 points needs 1"):
        pivoted_cholesky(K, 100)
    with pytest.raises(InputError, match="at least 1, got 0"):
        pivoted_cholesky(K, 0)
    with pytest.raises(InputError, match="rank must be a whole number"):
        pivoted_cholesky(K, 2.5)


def test_blocks_follow_the_share_of_accepted_points(rng):
    """Proposals cost b² entries, accepted rows n entries each: few acceptances make small blocks."""
    far = pivots._Run(Stored(np.eye(900)), 300, np.ones(900), 0.0, 0)
    near = pivots._Run(Stored(np.ones((900, 900)) + 1e-3 * np.eye(900)), 300, np.ones(900), 0.0, 0)
    for run in (far, near):
        run.add_block()
    assert far._block == 45 and near._block == 10  # one and a half times 30; a third
    assert len(far._pivots) > 25 and len(near._pivots) < 4


def test_a_run_that_is_stopped_says_so(rng):
    K = Gram(Gaussian(sigma=1.0), rng.normal(size=(100, 3)))
    answers = iter([False, False, True])
    found = pivoted_cholesky(K, 40, random_state=0, stopped=lambda: next(answers))
    whole = pivoted_cholesky(K, 40, random_state=0)
    assert found.is_cut and not found.ended_early and not whole.is_cut
    count = len(found.pivots)
    assert 0 < count < 40
    np.testing.assert_array_equal(found.factor, whole.factor[:, :count])


@pytest.mark.parametrize("size", [1, 5, 33, 150])
@pytest.mark.parametrize("most", [1, 40, 1000])
def test_points_are_accepted_as_if_one_after_the_other(rng, size, most):
    """The definition, one point at a time; a copy of a third of the proposals is proposed again."""
    X = rng.normal(size=(size, 2))
    again = np.r_[np.arange(size), rng.integers(0, size, size // 3)]
    H = Gaussian(1.0)(X)[np.ix_(again, again)]

    def residual(points, chosen):  # what those chosen leave of the points
        known = H[np.ix_(chosen, points)]
        return H[points, points] - (known * np.linalg.solve(H[np.ix_(chosen, chosen)], known)).sum(axis=0)

    offered, rounding = rng.uniform(1.0, 1.5, len(H)), np.full(len(H), 1e-9)
    luck = offered * rng.random(len(H))
    chosen: list[int] = []
    for j in range(len(H)):
        if len(chosen) < most and residual([j], chosen)[0] > max(rounding[j], luck[j]):
            chosen.append(j)
    accepted, L, left = accept(H, offered, rounding, most, luck)
    assert accepted.tolist() == chosen
    assert (np.triu(L, 1) == 0).all()
    np.testing.assert_allclose(L @ L.T, H[np.ix_(chosen, chosen)], atol=1e-12)
    # A bound on every residual; no pivot leaves anything of itself.
    assert (left >= residual(np.arange(len(H)), chosen) - 1e-9).all() and (left <= 1).all()
    assert not left[chosen].any()
