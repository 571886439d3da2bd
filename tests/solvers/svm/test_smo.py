"""What the decomposition compiles: small blocks, gathering and adding rows."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.solvers.svm import smo

SEEDS = st.integers(0, 2**32 - 1)


def block(rng, q, rank=None, dtype=np.float64):
    """A positive semi-definite matrix with values of the order of 1."""
    A = rng.normal(size=(q, q if rank is None else rank))
    return (A @ A.T / A.shape[1]).astype(dtype)


def box(rng, q, split):
    """Bounds, and a γ between them of which some rest at one."""
    lo, hi = -rng.uniform(0, 1, q), rng.uniform(0, 1, q)
    gamma = rng.uniform(lo, hi)
    where = rng.integers(0, 3, q)
    gamma[where == 0], gamma[where == 1] = lo[where == 0], hi[where == 1]
    return lo, hi, gamma


def solve(B, c, gamma, lo, hi, split, tol=1e-10, most=10**6):
    """On copies, with all rows of B there: γ, v and the steps."""
    gamma = gamma.copy()
    v = c - B.astype(np.float64) @ gamma
    ready, nowhere = np.ones(len(c), np.bool_), np.empty(0, np.int64)
    diag, memory = np.diag(B).astype(np.float64), np.empty(2 * len(c) + 2)
    steps = smo.solve_rows(
        B, ready, B, nowhere, nowhere, diag, v, gamma, lo.copy(), hi.copy(), memory, split, tol, most
    )
    return gamma, v, steps


def objective(B, c, gamma):
    return 0.5 * gamma @ B.astype(np.float64) @ gamma - c @ gamma


def violation(B, c, gamma, lo, hi, split):
    """The largest vᵢ - vⱼ of a group, from the definition."""
    v = c - B.astype(np.float64) @ gamma
    worst = 0.0
    for group in (slice(0, split), slice(split, len(c))):
        rising, falling = v[group][gamma[group] < hi[group]], v[group][gamma[group] > lo[group]]
        if len(rising) and len(falling):
            worst = max(worst, rising.max() - falling.min())
    return worst


def check_feasible(gamma, start, lo, hi, split):
    assert (gamma >= lo).all() and (gamma <= hi).all()  # exactly: a bound is reached, never passed
    for group in (slice(0, split), slice(split, len(gamma))):
        # both of a pair move by the same step, so sums differ by rounding alone
        assert gamma[group].sum() == pytest.approx(start[group].sum(), abs=1e-12)


def lowest(B, c, start, lo, hi, split):
    """The minimum by trying every face of the box: variables at a bound, or free and stationary."""
    q, best = len(c), np.inf
    groups = np.zeros((2, q))
    groups[0, :split], groups[1, split:] = 1, 1
    sums = groups @ start
    for where in product((0, 1, 2), repeat=q):
        gamma = np.where(np.equal(where, 0), lo, np.where(np.equal(where, 1), hi, 0.0))
        if not np.isfinite(gamma).all():
            continue
        free = np.equal(where, 2)
        E = groups[:, free]
        left = np.block([[B[np.ix_(free, free)], E.T], [E, np.zeros((2, 2))]])
        right = np.concatenate([(c - B @ gamma)[free], sums - groups @ gamma])
        gamma[free] = np.linalg.lstsq(left, right, rcond=None)[0][: free.sum()]
        inside = (gamma >= lo - 1e-12).all() and (gamma <= hi + 1e-12).all()
        if inside and np.abs(groups @ gamma - sums).max() < 1e-10:
            best = min(best, objective(B, c, gamma))
    return best


# --- small blocks ----------------------------------------------------------------------------------


@settings(max_examples=60)
@given(SEEDS, st.integers(1, 5), st.data())
def test_the_minimum_of_a_small_block(seed, q, data):
    rng = np.random.default_rng(seed)
    split = data.draw(st.integers(0, q))
    B, c = block(rng, q, data.draw(st.integers(1, q))), rng.normal(size=q)
    lo, hi, start = box(rng, q, split)
    gamma, v, _ = solve(B, c, start, lo, hi, split)
    check_feasible(gamma, start, lo, hi, split)
    # a violation of tol is worth at most tol Σ(hi - lo) ≤ 10 tol
    assert objective(B, c, gamma) == pytest.approx(lowest(B, c, start, lo, hi, split), abs=1e-8)
    assert v == pytest.approx(c - B @ gamma, abs=1e-11)


@pytest.mark.sample(5)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("q", [1, 2, 3, 64, 513, 2048])
@pytest.mark.parametrize("groups", [1, 2])
def test_a_block_ends_within_the_tolerance(rng, q, groups, dtype):
    split = q if groups == 1 else q // 3
    B, c = block(rng, q, dtype=dtype), rng.normal(size=q)
    lo, hi, start = box(rng, q, split)
    tol = 1e-6 if q < 1000 else 1e-3
    gamma, v, steps = solve(B, c, start, lo, hi, split, tol)
    check_feasible(gamma, start, lo, hi, split)
    # the slopes are followed in float64, with differences of rows in the precision of B
    rounding = 1e-9 if dtype == np.float64 else 1e-6
    assert v == pytest.approx(c - B.astype(np.float64) @ gamma, abs=rounding)
    assert violation(B, c, gamma, lo, hi, split) <= tol + 2 * rounding
    assert steps > 0 or q <= 3
    assert objective(B, c, gamma) <= objective(B, c, start) - (1e-3 if q > 3 else 0)


@pytest.mark.parametrize("scale", [2.0**-600, 2.0**-130, 2.0**-60, 1.0, 2.0**60, 2.0**130, 2.0**400])
def test_units_do_not_matter(rng, scale):
    """B in other units, with γ in their inverse: the same problem."""
    B, c = block(rng, 100) + np.eye(100), rng.normal(size=100)
    lo, hi, start = box(rng, 100, 100)
    expected, _, steps = solve(B, c, start, lo, hi, 100, 1e-6)
    gamma, _, scaled = solve(B * scale, c, start / scale, lo / scale, hi / scale, 100, 1e-6)
    assert scaled == pytest.approx(steps, rel=0.5)  # gains are compared in float32: other steps, but as many
    assert gamma * scale == pytest.approx(expected, abs=1e-5)  # B ≥ 1: as close as the slopes
    assert violation(B * scale, c, gamma, lo / scale, hi / scale, 100) <= 1e-6 + 1e-12


@pytest.mark.parametrize("c_scale", [2.0**-300, 2.0**-100, 2.0**100, 2.0**300])
def test_units_of_the_targets_do_not_matter(rng, c_scale):
    B, c = block(rng, 100) + np.eye(100), rng.normal(size=100)
    lo, hi, start = box(rng, 100, 100)
    expected = solve(B, c, start, lo, hi, 100, 1e-6)[0]
    gamma = solve(B, c * c_scale, start * c_scale, lo * c_scale, hi * c_scale, 100, 1e-6 * c_scale)[0]
    assert gamma / c_scale == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("shift", [-1e3, -3.0, 3.0, 1e3])
def test_a_constant_added_to_the_targets_changes_nothing(rng, shift):
    """Σγ is fixed, so c and c + shift have the same minimum, whatever the sign of the slopes."""
    B, c = block(rng, 100) + np.eye(100), rng.normal(size=100)
    lo, hi, start = box(rng, 100, 100)
    expected = solve(B, c, start, lo, hi, 100, 1e-6)[0]
    assert solve(B, c + shift, start, lo, hi, 100, 1e-6)[0] == pytest.approx(expected, abs=1e-5)


def test_bounds_that_are_infinite(rng):
    """The hard margin: γ ≥ 0 for one class, ≤ 0 for the other, and no other bound."""
    B = block(rng, 5) + 0.1 * np.eye(5)
    c = np.array([1.0, 1.0, 1.0, -1.0, -1.0])
    lo, hi = np.where(c > 0, 0.0, -np.inf), np.where(c > 0, np.inf, 0.0)
    gamma, _, _ = solve(B, c, np.zeros(5), lo, hi, 5)
    check_feasible(gamma, np.zeros(5), lo, hi, 5)
    assert objective(B, c, gamma) == pytest.approx(lowest(B, c, np.zeros(5), lo, hi, 5), abs=1e-8)


def test_free_variables_solve_a_linear_system(rng):
    """Without bounds the slopes are all equal: Bγ + λ = c with Σγ = 0."""
    B, c = block(rng, 20) + np.eye(20), rng.normal(size=20)
    bound = np.full(20, np.inf)
    gamma, _, _ = solve(B, c, np.zeros(20), -bound, bound, 20, 1e-12)
    system = np.block([[B, np.ones((20, 1))], [np.ones((1, 20)), np.zeros((1, 1))]])
    expected = np.linalg.solve(system, np.append(c, 0.0))[:20]
    assert gamma == pytest.approx(expected, abs=1e-10)  # B ≥ 1: γ is as close as the slopes are


def test_duplicates(rng):
    """Where η = 0 the objective is linear: everything goes to the bound, in a step per pair."""
    q = 50
    c = rng.permutation(q).astype(float)
    gamma, _, steps = solve(np.ones((q, q)), c, np.zeros(q), np.full(q, -1.0), np.ones(q), q)
    assert gamma == pytest.approx(np.where(c >= q / 2, 1.0, -1.0), abs=0)
    assert steps == q // 2


def test_points_whose_kernel_values_are_all_zero():
    """The linear kernel of rows of zeros: again linear, and with nothing that sets a scale."""
    c = np.array([1.0, 3.0, 2.0, 0.0])
    gamma, _, _ = solve(np.zeros((4, 4)), c, np.zeros(4), np.full(4, -1.0), np.ones(4), 4)
    assert gamma == pytest.approx(np.array([-1.0, 1.0, 1.0, -1.0]), abs=0)


@settings(max_examples=60)
@given(SEEDS, st.integers(2, 30))
def test_a_group_that_was_done_goes_on_when_the_other_disturbs_it(seed, q):
    """Groups share B: a step in one changes the slopes of the other."""
    rng = np.random.default_rng(seed)
    B, c = block(rng, 2 * q, 2), rng.normal(size=2 * q)
    c[:q] = c[0]  # from zero, the first group has nothing to do
    bound = rng.uniform(0.1, 1, 2 * q)
    gamma, _, _ = solve(B, c, np.zeros(2 * q), -bound, bound, q, 1e-8)
    assert violation(B, c, gamma, -bound, bound, q) <= 1e-8 + 1e-10


@settings(max_examples=60)
@given(SEEDS, st.integers(2, 40), st.booleans())
def test_an_indefinite_block_ends_where_no_pair_improves(seed, q, two):
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(q, q))
    B = B + B.T
    c, split = rng.normal(size=q), q // 2 if two else q
    lo, hi, start = box(rng, q, split)
    gamma, _, steps = solve(B, c, start, lo, hi, split, 1e-8, 10**6)
    assert steps < 10**6
    check_feasible(gamma, start, lo, hi, split)
    assert violation(B, c, gamma, lo, hi, split) <= 1e-8 + 1e-10
    assert objective(B, c, gamma) <= objective(B, c, start) + 1e-12


def test_steps_are_limited_and_each_lowers_the_objective(rng):
    B, c = block(rng, 60), rng.normal(size=60)
    lo, hi, start = box(rng, 60, 60)
    values = [objective(B, c, solve(B, c, start, lo, hi, 60, 1e-8, most)[0]) for most in range(20)]
    assert [solve(B, c, start, lo, hi, 60, 1e-8, most)[2] for most in range(20)] == list(range(20))
    assert values[0] == objective(B, c, start)
    assert (np.diff(values) < 0).all()


def test_the_first_step_is_the_steepest_pairs_best(rng):
    """i has the largest slope, j the largest gain (vᵢ - vⱼ)²/η; they move to their minimum."""
    B, c = block(rng, 30), rng.normal(size=30)
    lo, hi, start = np.full(30, -1e3), np.full(30, 1e3), np.zeros(30)
    gamma, _, _ = solve(B, c, start, lo, hi, 30, 1e-8, 1)
    i = int(c.argmax())
    eta = B[i, i] + np.diag(B) - 2 * B[i]
    gain = np.where(np.arange(30) == i, -np.inf, (c[i] - c) ** 2 / np.where(eta == 0, 1, eta))
    j = int(gain.argmax())
    expected = np.zeros(30)
    expected[i] = (c[i] - c[j]) / eta[j]
    expected[j] = -expected[i]
    assert gamma == pytest.approx(expected, abs=1e-12)


def test_nothing_is_done_at_the_minimum(rng):
    B, c = block(rng, 40), rng.normal(size=40)
    lo, hi, start = box(rng, 40, 40)
    gamma, _, _ = solve(B, c, start, lo, hi, 40, 1e-8)
    again, _, steps = solve(B, c, gamma, lo, hi, 40, 1e-7)
    assert steps == 0
    np.testing.assert_array_equal(again, gamma)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_that_lie_elsewhere(rng, dtype):
    """Those of B that are not ready are gathered when a step needs them, and no others."""
    q = 40
    store = block(rng, 90, dtype=dtype)
    columns = rng.permutation(90)[:q].astype(np.int64)
    slots = rng.permutation(90)[:q].astype(np.int64)
    rows = np.full((90, 90), np.nan, dtype)
    rows[slots] = store[columns]
    B, c = np.ascontiguousarray(store[np.ix_(columns, columns)]), rng.normal(size=q)
    lo, hi, start = box(rng, q, q)
    expected, v_expected, steps = solve(B, c, start, lo, hi, q, 1e-6)
    lazy, ready = np.full((q, q), np.nan, dtype), np.zeros(q, np.bool_)
    ready[:5], lazy[:5] = True, B[:5]
    rows[slots[:5]] = np.nan  # these are ready
    gamma, v = start.copy(), c - B.astype(np.float64) @ start
    diag, memory = np.diag(B).astype(np.float64), np.empty(2 * q + 2)
    where, state = (lazy, ready, rows, slots, columns, diag), (v, gamma, lo, hi)
    taken = smo.solve_rows(*where, *state, memory, q, 1e-6, 10**6)
    assert taken == steps
    np.testing.assert_array_equal(gamma, expected)
    np.testing.assert_array_equal(v, v_expected)
    np.testing.assert_array_equal(lazy[ready], B[ready])
    assert np.isnan(lazy[~ready]).all() and ready[gamma != start].all()


# --- rows --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gather(rng, dtype):
    rows = rng.normal(size=(9, 31)).astype(dtype)
    slots, columns = rng.integers(0, 9, 5), rng.integers(0, 31, 12)
    out = np.full((6, 14), np.nan, dtype)
    smo.gather(rows, slots, columns, out)
    np.testing.assert_array_equal(out[:5, :12], rows[np.ix_(slots, columns)])
    assert np.isnan(out[5]).all() and np.isnan(out[:, 12:]).all()  # there may be more room


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("m", [0, 1, 3, 4, 5, 11])  # four rows at a time, and the rest
@pytest.mark.parametrize("start, stop", [(0, 9000), (17, 18), (5, 4101), (40, 40)])
def test_add_rows(rng, dtype, m, start, stop):
    rows = rng.normal(size=(12, 9000)).astype(dtype)
    slots, coef = rng.permutation(12)[:m].astype(np.int64), rng.normal(size=m)
    F = rng.normal(size=9000)
    expected = F.copy()
    expected[: stop - start] += coef @ rows[slots, start:stop].astype(np.float64)
    smo.add_rows(rows, slots, coef, start, stop, F)
    # sums of eleven terms in float64, and nothing outside the range is touched
    np.testing.assert_allclose(F, expected, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(F[stop - start :], expected[stop - start :])
