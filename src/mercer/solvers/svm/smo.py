r"""Sequential minimal optimisation on a small block of variables, compiled.

Minimise  ½ γᵀBγ - cᵀγ   over   lo ≤ γ ≤ hi,   with  Σγ  fixed in each of one or two groups of variables.

With the slope vₜ = cₜ - (Bγ)ₜ, moving γᵢ up and γⱼ down by δ changes the objective by

    -δ (vᵢ - vⱼ) + ½ δ² ηᵢⱼ,      ηᵢⱼ = Bᵢᵢ + Bⱼⱼ - 2Bᵢⱼ,

so a pair of one group with vᵢ > vⱼ, γᵢ < hiᵢ and γⱼ > loⱼ lowers it. Each step takes the i with the largest
vᵢ, and for it the j with the largest gain (vᵢ - vⱼ)²/ηᵢⱼ, moves to the minimum along the pair or to the first
bound, and ends when no pair differs by more than ``tol``. A pair with ηᵢⱼ ≤ 0 (duplicates, or a B that is
no kernel's) moves to the bound. All this is the same in any units of any γ: points may be of any sizes.

Where no sum is fixed, every variable moves on its own, to vₜ = 0 or to its bound: a pair with the origin, a
point with k = 0 whose slope is 0 and whose γ is of no account. The level of the slopes is then 0.

An argmax is the maximum of integers: the bits of a float order like the float, and its lowest bits make room
for the position. LLVM turns that into SIMD code; a comparison with a branch it does not.

Platt, Fast training of support vector machines using sequential minimal optimization, Advances in Kernel
Methods (1999). Selection: Fan, Chen and Lin, Working set selection using second order information for
training support vector machines, JMLR 6 (2005), 1889-1918.
"""

from __future__ import annotations

import numpy as np

from mercer.runtime.native import INNER, OPTIONS, bits, choose, float_of, njit, part

__all__ = ["EDGE", "LARGEST_BLOCK", "add_rows", "gather", "measure", "solve_alone", "solve_rows"]

#: variables of a block, at most: positions have eleven bits
LARGEST_BLOCK = 2048
_PLACE = np.int64(LARGEST_BLOCK - 1)
_FLAT = 1e-12  # an η below this part of Bᵢᵢ + Bⱼⱼ counts as this: points may be of very different sizes
_LEAST = np.float32(1e-35)  # an η in its units, in float32
_TINY = 1e-300  # what a quantity to divide by is at least
_NONE = np.int64(-(2**63))
#: a γ within this part of its range of a bound is there
EDGE = 1e-12


@njit(nogil=True, **INNER)
def _order(x):  # type: ignore[no-untyped-def]
    """An integer that orders like the float64 x."""
    b = bits(x)
    return b ^ ((b >> np.int64(63)) & np.int64(0x7FFFFFFFFFFFFFFF))


@njit(nogil=True, **INNER)
def _highest(v, up):  # type: ignore[no-untyped-def]
    """The position of the largest v among those that may go up."""
    best = _NONE
    for t in range(v.shape[0]):
        key = (_order(v[t] + up[t]) & ~_PLACE) | np.int64(t)
        best = choose(key > best, key, best)
    return best & _PLACE


@njit(nogil=True, **INNER)
def _move(v, up, first, second, step):  # type: ignore[no-untyped-def]
    """The slopes after a step, and the position of the largest that may go up."""
    best = _NONE
    for t in range(v.shape[0]):
        slope = v[t] - step * (first[t] - second[t])
        v[t] = slope
        key = (_order(slope + up[t]) & ~_PLACE) | np.int64(t)
        best = choose(key > best, key, best)
    return best & _PLACE


@njit(nogil=True, **INNER)
def _partner(v, down, row, diag, top, own, flattest, flat, scale, unit):  # type: ignore[no-untyped-def]
    """For a variable of slope ``top``: the position of the best partner, and the largest difference."""
    widest = _NONE
    best = np.int32(-1)
    zero, two = np.float32(0), np.float64(2)
    place, value = np.int32(_PLACE), np.int32(~_PLACE)
    for t in range(v.shape[0]):
        difference = top - v[t] - down[t]
        b = bits(difference)
        widest = choose(b > widest, b, widest)
        eta = own + diag[t] - two * row[t]
        floor = flat * (abs(own) + abs(diag[t])) + flattest
        eta = choose(eta > floor, eta, floor)
        d = np.float32(difference * scale)
        d = choose(d > zero, d, zero)
        e = np.float32(eta * unit)
        e = choose(e > _LEAST, e, _LEAST)
        key = np.int32((bits(d * d / e) & value) | np.int32(t))
        best = choose(key > best, key, best)
    return np.int64(best & place), float_of(widest) if widest > 0 else 0.0


@njit(nogil=True, **INNER)
def _row(B, ready, rows, slots, columns, a):  # type: ignore[no-untyped-def]
    """Row a of B, gathered when it is first asked for."""
    target = B[a]
    if not ready[a]:
        ready[a] = True
        source = rows[slots[a]]
        for t in range(columns.shape[0]):
            target[t] = source[columns[t]]
    return target


@njit(nogil=True, cache=True, **OPTIONS)
def solve_rows(B, ready, rows, slots, columns, diag, v, gamma, lo, hi, split, tol, most):  # type: ignore[no-untyped-def]
    """Improve γ in place; v follows. Variables [0, split) are one group, the rest the other.

    Rows of B are taken from elsewhere when they are first needed, B[a, b] = rows[slots[a], columns[b]];
    ``ready`` marks those that are there. Returns the steps taken, at most ``most``: fewer where no pair
    violates by more than ``tol``, or steps are lost in rounding.
    """
    q = v.shape[0]
    up, down = np.empty(q), np.empty(q)
    largest = 0.0
    for t in range(q):
        up[t] = 0.0 if gamma[t] < hi[t] else -np.inf
        down[t] = 0.0 if gamma[t] > lo[t] else np.inf
        largest = max(largest, abs(diag[t]))
    groups = 1 if split == q else 2
    bounds, tops = np.empty(3, np.int64), np.empty(2, np.int64)  # group g is [bounds[g], bounds[g + 1])
    bounds[0] = 0
    bounds[1] = split
    bounds[2] = q
    reach = np.empty(2)  # the largest difference of slopes when it was last positive
    for g in range(groups):
        s, n = bounds[g], bounds[g + 1] - bounds[g]
        tops[g] = s + _highest(part(v, s, n), part(up, s, n))
        reach[g] = _TINY
        for t in range(s, s + n):
            reach[g] = max(reach[g], abs(v[t]))
    flattest = _TINY
    # A conditionally positive definite B, such as -‖x - x'‖, may have no diagonal.
    if largest == 0.0 and q > 0:
        row = _row(B, ready, rows, slots, columns, tops[0])
        for t in range(q):
            largest = max(largest, abs(np.float64(row[t])))
        flattest = max(_FLAT * largest, _TINY)
    unit = 1.0 / max(largest, _TINY)
    steps = 0
    while steps < most:
        worst, i, j = tol, np.int64(-1), np.int64(-1)
        for g in range(groups):
            s, n, a = bounds[g], bounds[g + 1] - bounds[g], tops[g]
            if n == 0 or up[a] != 0.0:
                continue
            # gains are compared in float32, in units that keep them of the order of 1
            scale = 1.0 / reach[g]
            row = _row(B, ready, rows, slots, columns, a)
            b, width = _partner(
                part(v, s, n), part(down, s, n), part(row, s, n), part(diag, s, n),
                v[a], diag[a], flattest, _FLAT, scale, unit,
            )  # fmt: skip
            reach[g] = width if width > 0.0 else reach[g]
            if width > worst:
                worst, i, j = width, a, s + b
        if i < 0:
            break
        first = _row(B, ready, rows, slots, columns, i)
        second = _row(B, ready, rows, slots, columns, j)
        eta = diag[i] + diag[j] - 2.0 * first[j]
        floor = _FLAT * (abs(diag[i]) + abs(diag[j])) + flattest
        step = (v[i] - v[j]) / max(eta, floor)
        rise, fall = hi[i] - gamma[i], gamma[j] - lo[j]
        step = min(step, rise, fall)
        high, low = gamma[i] + step, gamma[j] - step
        high, low = hi[i] if step == rise else high, lo[j] if step == fall else low
        if high == gamma[i] and low == gamma[j]:
            # less than rounding: others may go up instead
            up[i] = -np.inf
            g = 0 if i < split else 1
            s, n = bounds[g], bounds[g + 1] - bounds[g]
            tops[g] = s + _highest(part(v, s, n), part(up, s, n))
            continue
        gamma[i], gamma[j] = high, low
        up[i] = 0.0 if high < hi[i] else -np.inf
        up[j] = 0.0 if low < hi[j] else -np.inf
        down[i] = 0.0 if high > lo[i] else np.inf
        down[j] = 0.0 if low > lo[j] else np.inf
        for g in range(groups):
            s, n = bounds[g], bounds[g + 1] - bounds[g]
            tops[g] = s + _move(part(v, s, n), part(up, s, n), part(first, s, n), part(second, s, n), step)
        steps += 1
        if eta <= floor and rise == np.inf and fall == np.inf:
            break  # nothing bounds the objective from below
    return steps


@njit(nogil=True, cache=True, **OPTIONS)
def solve_alone(B, ready, rows, slots, columns, diag, v, gamma, lo, hi, tol, most):  # type: ignore[no-untyped-def]
    """``solve_rows`` where no sum is fixed: each step moves the variable with the largest gain vₜ²/Bₜₜ."""
    q = v.shape[0]
    largest = 0.0
    for t in range(q):
        largest = max(largest, abs(diag[t]))
    flattest = max(_FLAT * largest, _TINY)
    steps = 0
    while steps < most:
        best, i = 0.0, -1
        for t in range(q):
            slope = v[t]
            if (slope > 0.0 and gamma[t] < hi[t]) or (slope < 0.0 and gamma[t] > lo[t]):
                gain = slope * slope / max(diag[t], 1e-12 * flattest)
                if abs(slope) > tol and gain > best:
                    best, i = gain, t
        if i < 0:
            break
        if diag[i] > 0.0:
            target = gamma[i] + v[i] / diag[i]
        else:
            target = np.inf if v[i] > 0.0 else -np.inf
        target = min(max(target, lo[i]), hi[i])
        step = target - gamma[i]
        if step == 0.0 or not np.isfinite(step):
            break  # less than rounding, or nothing bounds the objective from below
        row = _row(B, ready, rows, slots, columns, i)
        gamma[i] = target
        for t in range(q):
            v[t] -= step * row[t]
        steps += 1
    return steps


@njit(nogil=True, cache=True, **OPTIONS)
def measure(v, gamma, lo, hi, error, balanced):  # type: ignore[no-untyped-def]
    """Level, violation, and what violation and gap may be at most, of a group of variables.

    Their slopes are known as v, each to within its ``error``. Any level gives a primal value, so that the
    gap to it is one for the true slopes too. Where nothing is ``balanced``, the level is 0.

    The level is the mean slope of variables between their bounds, else the middle of what bounds it. One that
    is between them by rounding alone says nothing.
    """
    top, bottom, total, free = -np.inf, np.inf, 0.0, 0
    highest, lowest = -np.inf, np.inf  # of slopes as they may be
    for t in range(v.shape[0]):
        edge = EDGE * (hi[t] - lo[t]) if hi[t] - lo[t] < np.inf else 0.0
        rises, falls = hi[t] - gamma[t] > edge, gamma[t] - lo[t] > edge
        if rises:
            top = max(top, v[t])
            highest = max(highest, v[t] + error[t])
        if falls:
            bottom = min(bottom, v[t])
            lowest = min(lowest, v[t] - error[t])
        if rises and falls:
            total += v[t]
            free += 1
    level = 0.0
    if not balanced:
        top, bottom = max(top, 0.0), min(bottom, 0.0)
        highest, lowest = max(highest, 0.0), min(lowest, 0.0)
    elif free:
        level = total / free
    elif top > -np.inf and bottom < np.inf:
        level = 0.5 * (top + bottom)
    elif top > -np.inf:
        level = top
    elif bottom < np.inf:
        level = bottom
    gap = 0.0
    for t in range(v.shape[0]):
        above = v[t] + error[t] > level and hi[t] > gamma[t]
        below = v[t] - error[t] < level and gamma[t] > lo[t]
        rise = (hi[t] - gamma[t]) * (v[t] + error[t] - level) if above else 0.0
        fall = (gamma[t] - lo[t]) * (level - v[t] + error[t]) if below else 0.0
        gap += max(rise, fall)  # the true slope is on one side of the level
    if not balanced:
        return level, max(top, -bottom), gap, max(highest, -lowest)
    return level, max(top - bottom, 0.0), gap, max(highest - lowest, 0.0)


@njit(nogil=True, cache=True, **OPTIONS)
def gather(rows, slots, columns, out):  # type: ignore[no-untyped-def]
    """out[a, b] = rows[slots[a], columns[b]]"""
    for a in range(slots.shape[0]):
        source, target = rows[slots[a]], out[a]
        for b in range(columns.shape[0]):
            target[b] = source[columns[b]]


_STRIP = 4096


@njit(nogil=True, cache=True, **OPTIONS)
def add_rows(rows, slots, coef, start, stop, F):  # type: ignore[no-untyped-def]
    """F[: stop - start] += Σᵣ coefᵣ rows[slotsᵣ, start:stop], a strip of columns at a time."""
    m, width = slots.shape[0], rows.shape[1]
    for s in range(start, stop, _STRIP):
        n = min(_STRIP, stop - s)
        f = part(F, s - start, n)
        r = 0
        while r + 4 <= m:
            r0 = part(rows, slots[r] * width + s, n)
            r1 = part(rows, slots[r + 1] * width + s, n)
            r2 = part(rows, slots[r + 2] * width + s, n)
            r3 = part(rows, slots[r + 3] * width + s, n)
            a, b, c, d = coef[r], coef[r + 1], coef[r + 2], coef[r + 3]
            for k in range(n):
                f[k] += (a * r0[k] + b * r1[k]) + (c * r2[k] + d * r3[k])
            r += 4
        while r < m:
            r0, a = part(rows, slots[r] * width + s, n), coef[r]
            for k in range(n):
                f[k] += a * r0[k]
            r += 1
