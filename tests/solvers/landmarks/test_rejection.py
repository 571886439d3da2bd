"""Pivots by rejection: the law of one at a time, without a factor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest

from mercer import Gaussian, Gram, LandmarkFeatures, Linear, config
from mercer.errors import InputError, MemoryBudgetError
from mercer.solvers.landmarks import rejection
from mercer.solvers.landmarks.pivots import pivoted_cholesky
from mercer.solvers.landmarks.rejection import random_pivots


def law(K: np.ndarray, count: int) -> dict[tuple[int, ...], float]:
    """The probability of each order of pivots, by definition: in proportion to the residual diagonal."""
    found = {}
    for order in permutations(range(len(K)), count):
        probability, left = 1.0, K.copy()
        for i in order:
            probability *= left[i, i] / np.trace(left)
            left = left - np.outer(left[:, i], left[i]) / left[i, i]
        found[order] = probability
    return found


def test_the_law_is_that_of_one_at_a_time(tries: Callable[[int], range]) -> None:
    X = np.array([[0.0], [0.4], [1.0], [3.0]])
    K = Gram(Gaussian(sigma=1.0), X)
    expected, draws = law(K.dense(), 2), len(tries(4800))
    counts = Counter(tuple(random_pivots(K, 2, random_state=seed).tolist()) for seed in range(draws))
    assert set(counts) <= set(expected)
    # Σ (observed - expected)² / expected has 11 degrees of freedom: above 37 once in 10,000 times.
    assert sum((counts[o] - draws * p) ** 2 / (draws * p) for o, p in expected.items()) < 37


def test_early_rejection_leaves_the_error_of_a_factor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The residual trace is that of `pivoted_cholesky`, on the mean over draws."""
    monkeypatch.setattr(rejection, "_SMALLEST_BLOCK", 2)
    X = np.random.default_rng(0).normal(size=(300, 2))
    gram = Gram(Gaussian(sigma=1.0), X)
    K = gram.dense()

    def left(pivots: np.ndarray) -> float:
        part = K[:, pivots]
        return float(np.trace(K - part @ np.linalg.solve(K[np.ix_(pivots, pivots)], part.T)))

    ours = [left(random_pivots(gram, 30, random_state=seed)) for seed in range(20)]
    theirs = [left(pivoted_cholesky(gram, 30, random_state=seed).pivots) for seed in range(20)]
    apart = np.mean(ours) - np.mean(theirs)
    assert abs(apart) < 4 * np.sqrt((np.var(ours) + np.var(theirs)) / 19)


def test_it_is_the_same_for_a_seed_and_no_pivot_comes_twice() -> None:
    K = Gram(Gaussian(sigma=0.5), np.random.default_rng(0).normal(size=(500, 3)))
    pivots = random_pivots(K, 200, random_state=3)
    assert np.array_equal(pivots, random_pivots(K, 200, random_state=3))
    assert len(set(pivots.tolist())) == 200


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_it_ends_where_nothing_is_left(dtype: str) -> None:
    X = np.random.default_rng(0).normal(size=(200, 3))
    with config(dtype=dtype):
        assert len(random_pivots(Gram(Linear(), X), 50)) == 3
        assert len(random_pivots(Gram(Linear(), np.zeros((5, 2))), 3)) == 0
        assert len(random_pivots(Gram(Gaussian(sigma=1.0), np.repeat(X[:4], 20, axis=0)), 50)) == 4


def test_a_rank_that_makes_no_sense_is_refused() -> None:
    K = Gram(Gaussian(sigma=1.0), np.zeros((3, 1)))
    for rank in (0, 1.5):
        with pytest.raises(InputError, match="rank must be a whole number"):
            random_pivots(K, rank)


def test_the_budget_is_asked_for_what_a_run_takes() -> None:
    K = Gram(Gaussian(sigma=1.0), np.random.default_rng(0).normal(size=(2000, 2)), cache=0)
    with config(memory="10MiB"):
        assert len(random_pivots(K, 20)) == 20
        with pytest.raises(MemoryBudgetError, match="2,000 pivots"):
            random_pivots(K, 2000)


def test_matrices_in_any_order_are_left_as_they_are() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    K = np.asfortranarray(Gaussian(sigma=1.0)(X, X))
    before = K.copy()
    phi = LandmarkFeatures(n_components=20, kernel="precomputed", landmarks="pivoted").fit(K)
    assert np.array_equal(K, before) and phi.n_components_ == 20


def test_indefinite_kernels_are_refused() -> None:
    K = np.array([[1.0, 3.0, 0.0], [3.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    with pytest.raises(InputError, match="not positive definite"):
        LandmarkFeatures(n_components=3, kernel="precomputed", landmarks="pivoted").fit(K)
