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

from mercer.runtime.native import INNER, OPTIONS, at, bits, choose, float_of, njit, pointer

#: variables of a block, at most: positions have eleven bits
LARGEST_BLOCK = 2048
_PLACE = np.int64(LARGEST_BLOCK - 1)
_PLACE_32, _VALUE_32 = np.int32(_PLACE), np.int32(~_PLACE)
_FLAT = 1e-12  # an η below this part of Bᵢᵢ + Bⱼⱼ counts as this: points may be of very different sizes
_LEAST_CURVATURE = np.float32(1e-35)  # η in its units is at least this: float32 ends at 1e-38
_ZERO_32 = np.float32(0)
_LEAST_DIVISOR = 1e-300  # float64 ends at 1e-308, and its inverse is a number
_INFINITE = np.inf
_NONE = np.int64(-(2**63))
#: a γ within this part of its range of a bound is there
EDGE = 1e-12


@njit(nogil=True, **INNER)
def _row(B, ready, rows, slots, columns, q, width, a):  # type: ignore[no-untyped-def]
    """Row a of B, gathered when it is first asked for."""
    target = at(B, a * q)
    if not ready[a]:
        ready[a] = 1
        source = at(rows, slots[a] * width)
        for t in range(q):
            target[t] = source[columns[t]]
    return target


@njit(nogil=True, cache=True, no_rewrites=True, **OPTIONS)
def solve_rows(B, ready, rows, slots, columns, diag, v, gamma, lo, hi, memory, split, tol, most):  # type: ignore[no-untyped-def]
    """Improve γ in place; v follows. Variables [0, split) are one group, the rest the other.

    Rows of B are taken from elsewhere when they are first needed, B[a, b] = rows[slots[a], columns[b]];
    ``ready`` marks those that are there. Returns the steps taken, at most ``most``: fewer where no pair
    violates by more than ``tol``, or steps are lost in rounding. ``memory`` is for 2q + 2 numbers.
    """
    q, width = v.shape[0], rows.shape[1]
    if q == 0:
        return 0
    B, ready, rows = pointer(B), pointer(ready), pointer(rows)
    slots, columns, diag = pointer(slots), pointer(columns), pointer(diag)
    v, gamma = pointer(v), pointer(gamma)
    lo, hi = pointer(lo), pointer(hi)
    up = pointer(memory)
    down = at(up, q)  # 0 for those that may go there
    reach = at(down, q)  # for each group, the largest difference of slopes when it was last positive
    largest = 0.0
    for g in range(2):
        highest = _LEAST_DIVISOR
        for t in range(g * split, split + g * (q - split)):
            up[t] = 0.0 if gamma[t] < hi[t] else -_INFINITE
            down[t] = 0.0 if gamma[t] > lo[t] else _INFINITE
            size = abs(v[t])
            highest = choose(size > highest, size, highest)
            size = abs(diag[t])
            largest = choose(size > largest, size, largest)
        reach[g] = highest
    first = _row(B, ready, rows, slots, columns, q, width, np.int64(0))
    flattest = _LEAST_DIVISOR
    if largest == 0.0:  # A conditionally positive definite B, such as -‖x - x'‖, may have no diagonal.
        for t in range(q):
            size = abs(np.float64(first[t]))
            largest = choose(size > largest, size, largest)
        flattest += _FLAT * largest
    unit = 1.0 / (largest + _LEAST_DIVISOR)
    steps, step, second = 0, 0.0, first
    while True:
        worst, i, j = tol, np.int64(-1), np.int64(-1)
        for g in range(2):
            start = g * split
            stop = split + g * (q - split)
            # The slopes follow the last step, and a is the place of the largest that may go up.
            best = _NONE
            for t in range(start, stop):
                slope = v[t] - step * (first[t] - second[t])
                v[t] = slope
                b = bits(slope + up[t])
                b ^= (b >> np.int64(63)) & np.int64(0x7FFFFFFFFFFFFFFF)  # It orders like the float.
                key = (b & ~_PLACE) | t
                best = choose(key > best, key, best)
            a = best & _PLACE
            if start == stop or steps == most or up[a] != 0.0:
                continue
            # Now the best partner of a is searched, and the largest difference. Gains are compared in
            # float32, in units that keep them of the order of 1.
            row = _row(B, ready, rows, slots, columns, q, width, a)
            top, own, scale = v[a], diag[a], 1.0 / reach[g]
            widest, nearest = _NONE, np.int32(-1)
            for t in range(start, stop):
                difference = top - v[t] - down[t]
                b = bits(difference)
                widest = choose(b > widest, b, widest)
                eta = own + diag[t] - 2.0 * row[t]
                floor = _FLAT * (abs(own) + abs(diag[t])) + flattest
                eta = choose(eta > floor, eta, floor)
                d = np.float32(difference * scale)
                d = choose(d > _ZERO_32, d, _ZERO_32)
                e = np.float32(eta * unit)
                e = choose(e > _LEAST_CURVATURE, e, _LEAST_CURVATURE)
                gain = np.int32((bits(d * d / e) & _VALUE_32) | np.int32(t))
                nearest = choose(gain > nearest, gain, nearest)
            if widest > 0:
                reach[g] = float_of(widest)
                if reach[g] > worst:
                    worst, i, j = reach[g], a, np.int64(nearest & _PLACE_32)
        if i < 0:
            return steps
        first, second = at(B, i * q), _row(B, ready, rows, slots, columns, q, width, j)
        eta = diag[i] + diag[j] - 2.0 * first[j]
        floor = _FLAT * (abs(diag[i]) + abs(diag[j])) + flattest
        rise, fall = hi[i] - gamma[i], gamma[j] - lo[j]
        step = (v[i] - v[j]) / choose(eta > floor, eta, floor)
        step = choose(step < rise, step, rise)
        step = choose(step < fall, step, fall)
        high = hi[i] if step == rise else gamma[i] + step
        low = lo[j] if step == fall else gamma[j] - step
        if high == gamma[i] and low == gamma[j]:
            # The step is less than rounding: another variable may go up instead.
            up[i] = -_INFINITE
            step = 0.0
            continue
        gamma[i] = high
        gamma[j] = low
        up[i] = 0.0 if high < hi[i] else -_INFINITE
        up[j] = 0.0 if low < hi[j] else -_INFINITE
        down[i] = 0.0 if high > lo[i] else _INFINITE
        down[j] = 0.0 if low > lo[j] else _INFINITE
        steps += 1
        if eta <= floor and rise == _INFINITE and fall == _INFINITE:
            most = steps  # nothing bounds the objective from below


@njit(nogil=True, cache=True, no_rewrites=True, **OPTIONS)
def solve_alone(B, ready, rows, slots, columns, diag, v, gamma, lo, hi, tol, most):  # type: ignore[no-untyped-def]
    """``solve_rows`` where no sum is fixed: each step moves the variable with the largest gain vₜ²/Bₜₜ."""
    q, width = v.shape[0], rows.shape[1]
    B, ready, rows = pointer(B), pointer(ready), pointer(rows)
    slots, columns, diag = pointer(slots), pointer(columns), pointer(diag)
    v, gamma = pointer(v), pointer(gamma)
    lo, hi = pointer(lo), pointer(hi)
    largest = 0.0
    for t in range(q):
        largest = max(largest, abs(diag[t]))
    flattest = max(_FLAT * largest, _LEAST_DIVISOR)
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
            target = _INFINITE if v[i] > 0.0 else -_INFINITE
        target = min(max(target, lo[i]), hi[i])
        step = target - gamma[i]
        if step == 0.0 or not np.isfinite(step):
            break  # less than rounding, or nothing bounds the objective from below
        row = _row(B, ready, rows, slots, columns, q, width, i)
        gamma[i] = target
        for t in range(q):
            v[t] -= step * row[t]
        steps += 1
    return steps


@njit(nogil=True, cache=True, no_rewrites=True, **OPTIONS)
def measure(v, gamma, lo, hi, error, balanced):  # type: ignore[no-untyped-def]
    """Level, violation, and what violation and gap may be at most, of a group of variables.

    Their slopes are known as v, each to within its ``error``. Any level gives a primal value, so that the
    gap to it is one for the true slopes too. Where nothing is ``balanced``, the level is 0.

    The level is the mean slope of variables between their bounds, else the middle of what bounds it. One that
    is between them by rounding alone says nothing.
    """
    l, v, error = v.shape[0], pointer(v), pointer(error)
    gamma, lo, hi = pointer(gamma), pointer(lo), pointer(hi)
    top, highest, bottom = -_INFINITE, -_INFINITE, _INFINITE  # highest and lowest: of slopes as they may be
    lowest, total, free = _INFINITE, 0.0, 0
    for t in range(l):
        room, slope = hi[t] - lo[t], v[t]
        edge = EDGE * room if room < _INFINITE else 0.0
        rises, falls = hi[t] - gamma[t] > edge, gamma[t] - lo[t] > edge
        if rises:
            top = slope if slope > top else top
            highest = slope + error[t] if slope + error[t] > highest else highest
        if falls:
            bottom = slope if slope < bottom else bottom
            lowest = slope - error[t] if slope - error[t] < lowest else lowest
        if rises and falls:
            total += slope
            free += 1
    level = 0.0
    if not balanced:
        top, bottom = max(top, 0.0), min(bottom, 0.0)
        highest, lowest = max(highest, 0.0), min(lowest, 0.0)
    elif free:
        level = total / free
    elif top > -_INFINITE and bottom < _INFINITE:
        level = 0.5 * (top + bottom)
    elif top > -_INFINITE:
        level = top
    elif bottom < _INFINITE:
        level = bottom
    gap = 0.0
    for t in range(l):
        above, below = v[t] + error[t] - level, level - v[t] + error[t]
        rise = (hi[t] - gamma[t]) * above if above > 0.0 and hi[t] > gamma[t] else 0.0
        fall = (gamma[t] - lo[t]) * below if below > 0.0 and gamma[t] > lo[t] else 0.0
        gap += rise if rise > fall else fall  # the true slope is on one side of the level
    if not balanced:
        return level, max(top, -bottom), gap, max(highest, -lowest)
    return level, max(top - bottom, 0.0), gap, max(highest - lowest, 0.0)


@njit(nogil=True, cache=True, no_rewrites=True, **OPTIONS)
def gather(rows, slots, columns, out):  # type: ignore[no-untyped-def]
    """out[a, b] = rows[slots[a], columns[b]]"""
    for a in range(slots.shape[0]):
        source, target = at(pointer(rows), slots[a] * rows.shape[1]), at(pointer(out), a * out.shape[1])
        for b in range(columns.shape[0]):
            target[b] = source[columns[b]]


@njit(nogil=True, cache=True, no_rewrites=True, **OPTIONS)
def add_rows(rows, slots, coef, start, stop, F):  # type: ignore[no-untyped-def]
    """F[: stop - start] += Σᵣ coefᵣ rows[slotsᵣ, start:stop]"""
    m, n, width = slots.shape[0], stop - start, rows.shape[1]
    rows, slots = at(pointer(rows), start), pointer(slots)
    coef, F = pointer(coef), pointer(F)
    r = 0
    while r + 4 <= m:
        r0, r1 = at(rows, slots[r] * width), at(rows, slots[r + 1] * width)
        r2, r3 = at(rows, slots[r + 2] * width), at(rows, slots[r + 3] * width)
        a, b = coef[r], coef[r + 1]
        c, d = coef[r + 2], coef[r + 3]
        for k in range(n):
            F[k] += (a * r0[k] + b * r1[k]) + (c * r2[k] + d * r3[k])
        r += 4
    while r < m:
        r0, a = at(rows, slots[r] * width), coef[r]
        for k in range(n):
            F[k] += a * r0[k]
        r += 1
