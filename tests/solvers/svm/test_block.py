"""A working set: pairs until they are slow, then Newton's steps on the variables between their bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.solvers.svm import block as module
from mercer.solvers.svm.block import Block


def gaussian(X, sigma):
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / (2 * sigma**2))


def regression(n, sigma=3.0, bound=10.0, seed=0):
    """A wide kernel and targets that it almost meets: K is nearly singular, and pairs take very long."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return gaussian(X, sigma), np.sin(X[:, 0]), np.full(n, bound)


def make(K, c, bound, split=None, **options):
    zero = np.zeros(len(c))
    return Block(K, K.diagonal().copy(), c.copy(), zero.copy(), -bound, bound, split or len(c), **options)


def violation(block):
    worst = 0.0
    for part in (slice(0, block.split), slice(block.split, None)):
        v, gamma = block.slopes[part], block.gamma[part]
        top = v[gamma < block.hi[part]].max(initial=-np.inf)
        bottom = v[gamma > block.lo[part]].min(initial=np.inf)
        worst = max(worst, top - bottom)
    return worst


@pytest.mark.parametrize("groups", [1, 2])
def test_pairs_and_newton_reach_what_pairs_alone_do_not(groups):
    K, c, bound = regression(40)
    split = 40 if groups == 1 else 15
    alone, together = make(K, c, bound, split), make(K, c, bound, split)
    steps, done = together.solve(1e-9, 10**6, turns=50)
    assert done and steps < 10**5
    assert violation(together) <= 1e-9 + 1e-12
    # the slopes were kept up to date, and the sums of the groups are what they were
    assert together.slopes == pytest.approx(c - K @ together.gamma, abs=1e-9)
    assert abs(together.gamma[:split].sum()) < 1e-9 and abs(together.gamma[split:].sum()) < 1e-9
    assert (abs(together.gamma) <= bound).all()
    steps, done = alone.solve(1e-9, 25 * 40 * 3)
    assert not done and violation(alone) > 1e-6


def test_one_step_is_exact_between_the_bounds():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(12, 12))
    K, c = A @ A.T + np.eye(12), rng.normal(size=12)
    block = make(K, c, np.full(12, 1e6))
    assert block.newton()
    assert violation(block) < 1e-12 and abs(block.gamma.sum()) < 1e-12


def test_a_step_ends_at_the_first_bound():
    K, c = np.eye(3), np.array([3.0, 0.0, -3.0])
    block = make(K, c, np.array([1.0, 5.0, 5.0]))
    assert block.newton()
    assert block.gamma == pytest.approx([1.0, 0.0, -1.0])
    assert block.gamma[0] == 1.0  # exactly


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 30), st.booleans())
def test_a_step_never_raises_the_objective(seed, n, indefinite):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, max(1, n // 3)))
    K = A @ A.T - (0.5 if indefinite else 0.0) * np.eye(n)
    c, bound = rng.normal(size=n), rng.uniform(0.1, 2.0, n)
    block = make(K, c, bound)
    block.solve(1e-3, 5 * n)
    before = 0.5 * block.gamma @ K @ block.gamma - c @ block.gamma
    total = block.gamma.sum()
    block.newton()
    after = 0.5 * block.gamma @ K @ block.gamma - c @ block.gamma
    assert after <= before + 1e-9 * (1 + abs(before))
    # the system is solved to rounding times its condition, which the ridge bounds
    assert block.gamma.sum() == pytest.approx(total, abs=1e-6)
    assert (abs(block.gamma) <= bound).all()


def test_rows_that_lie_elsewhere():
    K, c, bound = regression(30)
    order = np.random.default_rng(1).permutation(50)[:30]  # of the rows; columns as they are
    rows = np.zeros((50, 30))
    rows[order] = K
    memory = np.full((30, 30), np.nan)
    there = Block(
        memory, K.diagonal().copy(), c.copy(), np.zeros(30), -bound, bound, 30, rows, order, np.arange(30)
    )
    here = make(K, c, bound)
    there.solve(1e-8, 10**6, turns=50)
    here.solve(1e-8, 10**6, turns=50)
    np.testing.assert_array_equal(there.gamma, here.gamma)


def test_nothing_to_move_and_too_much(monkeypatch):
    K, c, bound = regression(10)
    block = make(K, c, bound)
    block.gamma[:] = bound  # all at a bound
    assert not block.newton()
    monkeypatch.setattr(module, "_MOST_FREE", 5)
    assert not make(K, c, bound).newton()
