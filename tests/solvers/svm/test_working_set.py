"""The choice of working sets: those that violate most, of both ends and of both groups."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.solvers.svm import working_set
from mercer.solvers.svm.working_set import fill, violations

SEEDS = st.integers(0, 2**32 - 1)


def box(rng, q):
    """Bounds, and a γ between them of which some rest at one."""
    lo, hi = -rng.uniform(0, 1, q), rng.uniform(0, 1, q)
    gamma = rng.uniform(lo, hi)
    where = rng.integers(0, 3, q)
    gamma[where == 0], gamma[where == 1] = lo[where == 0], hi[where == 1]
    return lo, hi, gamma


def select(c, gamma, lo, hi, split, size, kept=()):
    """The working set for slopes c, and the violations."""
    l = len(c)
    taken, out = np.zeros(l, np.bool_), np.full(size, -1, np.int64)
    taken[list(kept)] = True
    out[: len(kept)] = kept
    count, worst = fill(out, len(kept), taken, c, gamma, lo, hi, split)
    assert len(set(out[:count])) == count  # nobody twice
    assert (out[count:] == -1).all()
    np.testing.assert_array_equal(np.sort(out[:count]), np.flatnonzero(taken))
    np.testing.assert_array_equal(out[: len(kept)], kept)
    return out[:count], worst


@settings(max_examples=100)
@given(SEEDS, st.integers(2, 200), st.data())
def test_the_worst_pair_is_chosen(seed, l, data):
    """Both ends of the violation, up to 1/1024 of it; with few places, of the group that violates more."""
    rng = np.random.default_rng(seed)
    split = data.draw(st.sampled_from([l, l // 2]))
    c = rng.normal(size=l)
    lo, hi, gamma = box(rng, l)
    size = min(l, data.draw(st.integers(2, 60)))
    chosen, worst = select(c, gamma, lo, hi, split, size)
    groups = [slice(0, split)] if split == l else [slice(0, split), slice(split, l)]
    for g, group in enumerate(groups):
        can_rise, can_fall = gamma < hi, gamma > lo
        top = c[group][can_rise[group]].max(initial=-np.inf)
        bottom = c[group][can_fall[group]].min(initial=np.inf)
        assert worst[g] == max(top - bottom, 0.0)
        if top <= bottom or (size < working_set._FEWEST_SHARED and worst[g] < worst.max()):
            continue
        inside = chosen[(chosen >= (group.start or 0)) & (chosen < group.stop)]
        slack = (top - bottom) / 1024
        # with few places and many near one end, one of those near it
        assert c[inside][can_rise[inside]].max(initial=-np.inf) >= top - slack
        assert c[inside][can_fall[inside]].min(initial=np.inf) <= bottom + slack
    if split == l:
        assert worst[1] == 0.0


def test_the_most_violating_come_first(rng):
    l = 5000
    c = rng.permutation(l).astype(float)
    gamma, bound = np.zeros(l), np.ones(l)
    chosen, worst = select(c, gamma, -bound, bound, l, 400)
    assert len(chosen) == 400 and worst[0] == l - 1
    # 200 from each side; bins are l/1024 wide, which is five variables
    assert np.sort(c[chosen])[:200].max() < 200 + 6 and np.sort(c[chosen])[200:].min() >= l - 200 - 6


def test_those_that_cannot_move_are_left_alone(rng):
    """At the upper bound with the highest slopes, at the lower with the lowest: they violate nothing."""
    l = 1000
    c = np.sort(rng.normal(size=l))
    lo, hi = np.zeros(l), np.ones(l)
    gamma = (np.arange(l) >= l // 2).astype(float)
    chosen, worst = select(c, gamma, lo, hi, l, 100)
    assert len(chosen) == 0 and not worst.any()
    gamma[[100, 700]] = 1.0, 0.0  # these two alone are on the wrong side
    chosen, worst = select(c, gamma, lo, hi, l, 100)
    assert worst[0] == pytest.approx(c[700] - c[100])
    assert {100, 700} <= set(chosen)
    # and no one outside the two violates
    assert ((c[chosen] >= c[100]) & (c[chosen] <= c[700])).all()


def test_kept_ones_stay_and_are_not_chosen_again(rng):
    l = 300
    c, bound = rng.normal(size=l), np.ones(l)
    kept = np.argsort(c)[[0, -1, 150]]  # the worst pair is there already
    chosen, worst = select(c, np.zeros(l), -bound, bound, l, 43, kept)
    assert len(chosen) == 43
    assert worst[0] == pytest.approx(np.ptp(c))  # those that are there count
    order = np.argsort(c)
    new = set(chosen[3:])
    assert {order[1], order[-2]} <= new


def test_all_places_are_filled_when_enough_violate(rng):
    c, bound = rng.normal(size=100), np.ones(100)
    chosen = select(c, np.zeros(100), -bound, bound, 100, 100)[0]
    assert len(set(chosen)) == len(chosen) >= 99  # the one in the middle may violate nothing
    assert len(select(c, np.zeros(100), -bound, bound, 50, 40)[0]) == 40


def test_equals_are_spread_evenly():
    """A start from zero: all slopes of a class are equal, and its first points are not the only ones."""
    l = 10_000
    c = np.where(np.arange(l) < l // 2, 1.0, -1.0)
    chosen, _ = select(c, np.zeros(l), np.minimum(c, 0.0), np.maximum(c, 0.0), l, 100)
    assert len(chosen) == 100
    for side in (chosen[chosen < l // 2], chosen[chosen >= l // 2] - l // 2):
        assert len(side) == 50
        assert np.diff(np.sort(side)).max() <= 100 and np.sort(side)[0] <= 100


def test_two_groups_share_the_places(rng):
    c, bound = rng.normal(size=1000), np.ones(1000)
    chosen, worst = select(c, np.zeros(1000), -bound, bound, 400, 100)
    assert np.count_nonzero(chosen < 400) == 50 and np.count_nonzero(chosen >= 400) == 50
    assert worst == pytest.approx([np.ptp(c[:400]), np.ptp(c[400:])])


def test_without_a_sum_the_level_is_zero(rng):
    v, bound = rng.uniform(1, 2, 30), np.ones(30)
    tops, bottoms, worst = violations(v, np.zeros(30), -bound, bound, 30, balanced=False)
    assert (tops[0], bottoms[0], worst.tolist()) == (v.max(), 0.0, [v.max(), 0.0])
    assert violations(v, bound, -bound, bound, 30, balanced=False)[2].tolist() == [0.0, 0.0]


def test_a_slope_that_is_no_number_violates_nothing():
    v, bound = np.array([np.nan, 1.0, 0.0]), np.ones(3)
    assert violations(v, np.zeros(3), -bound, bound, 3)[2].tolist() == [1.0, 0.0]
    assert select(v, np.zeros(3), -bound, bound, 3, 2)[0].tolist() == [1, 2]
