r"""The variables that violate the conditions of optimality most: a working set.

Of the slopes v, a group of variables has its top, the largest that may rise, and its bottom, the least that
may fall; the violation is the difference. Half of the places go to variables whose slopes are near the top,
half to those near the bottom, by bins of 1/1024 of the violation: no slopes are sorted.
"""

from __future__ import annotations

import numpy as np

#: How many bins slopes are put into. Variables in the same bin count as equally near to the extreme one.
BINS = 1024
#: A room for fewer variables than this goes to the group that needs it more, for half of it holds no pairs.
_FEWEST_SHARED = 8


def violations(
    v: np.ndarray,  # (l,)
    gamma: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    split: int,
    balanced: bool = True,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # (2,) each
    """Top, bottom and violation of the groups [0, split) and [split, l).

    Where nothing is ``balanced``, no sum is fixed, and the level of the slopes is 0.
    """
    tops, bottoms = np.full(2, -np.inf), np.full(2, np.inf)
    for g, of in enumerate((slice(0, split), slice(split, None))):
        # fmax and fmin leave out what is no number.
        tops[g] = np.fmax.reduce(np.where(gamma[of] < hi[of], v[of], -np.inf), initial=-np.inf)
        bottoms[g] = np.fmin.reduce(np.where(gamma[of] > lo[of], v[of], np.inf), initial=np.inf)
    if balanced:
        return tops, bottoms, np.maximum(tops - bottoms, 0.0)
    tops[0], bottoms[0] = max(tops[0], 0.0), min(bottoms[0], 0.0)
    return tops, bottoms, np.array([max(tops[0], -bottoms[0]), 0.0])


def fill(
    out: np.ndarray,
    count: int,
    taken: np.ndarray,  # (l,)
    v: np.ndarray,  # (l,)
    gamma: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    split: int,
    balanced: bool = True,
) -> tuple[int, np.ndarray]:
    """Fill ``out``, of which the first ``count`` are there already, with the variables that violate most.

    ``taken`` marks those that are there. Returns the new count and the violations of the two groups.
    """
    tops, bottoms, worst = violations(v, gamma, lo, hi, split, balanced)
    shares = shared(len(out) - count, worst)
    for g, of in enumerate((slice(0, split), slice(split, len(v)))):
        if shares[g] == 0 or worst[g] == 0.0:
            continue
        top, bottom = tops[g], bottoms[g]
        scale = min(BINS / (top - bottom), 1e300)
        rising = np.flatnonzero((gamma[of] < hi[of]) & (v[of] > bottom) & ~taken[of]) + of.start
        falling = np.flatnonzero((gamma[of] > lo[of]) & (v[of] < top) & ~taken[of]) + of.start
        upper, lower = shares[g] // 2, shares[g] - shares[g] // 2
        for places, distances, want in (
            (rising, (top - v[rising]) * scale, upper),
            (falling, (v[falling] - bottom) * scale, lower),
        ):
            chosen = _nearest(places, distances.astype(np.int64), want, taken)[: len(out) - count]
            taken[chosen] = True
            out[count : count + len(chosen)] = chosen
            count += len(chosen)
    return count, worst


def shared(room: int, worst: np.ndarray) -> list[int]:
    """How many of the places go to each of the two groups, by their violations.

    >>> shared(10, np.array([0.5, 0.2])), shared(10, np.array([0.0, 0.2]))
    ([5, 5], [0, 10])
    """
    if worst.min() > 0.0 and room >= _FEWEST_SHARED:
        return [room // 2, room - room // 2]
    return [room, 0] if worst[0] >= worst[1] else [0, room]


def _nearest(places: np.ndarray, bins: np.ndarray, want: int, taken: np.ndarray) -> np.ndarray:
    """About ``want`` of the places, by their bins, without those that were taken meanwhile.

    Of the last bin, where there are more than are wanted, they are taken evenly in the order of the places.
    """
    tally = np.bincount(bins, minlength=BINS + 1)
    sums = np.cumsum(tally)
    last = int(np.searchsorted(sums, want, side="right"))
    near = np.flatnonzero(bins <= last)
    near = near[~taken[places[near]]]
    chosen = bins[near] < last
    if last <= BINS:
        left, crowd = want - (int(sums[last - 1]) if last else 0), int(tally[last])
        equal = np.flatnonzero(~chosen)
        seen = np.arange(len(equal) + 1) * left // crowd
        chosen[equal] = seen[1:] != seen[:-1]
    return places[near[chosen]]
