r"""Steps of ``exact``, compiled: pairs, and Newton's on the variables between their bounds, with 106 bits.

K = high + low; γ is g[0] + g[1], Kγ at the points f[0] + f[1], and so on.

Newton's step moves the free variables F, but for one of each group, r, which takes the opposite of their sum:
r is the smallest point, so that A below is of the size of the others. With a and b in F without the r,

    A δ = v_a - v_r,    A_ab = ⟨φ_a - φ_r(a), φ_b - φ_r(b)⟩ = K_ab - K_a,r(b) - K_r(a),b + K_r(a),r(b),

by A = LDLᵀ with pivots in the order of what is left of them relative to ‖φ_a‖². Where nothing is left of a
pivot but rounding, δ_a = 1 with what it entails for the others is a direction without curvature: where the
objective falls along it, it is followed as far as is safe with the curvature that rounding may hide; to a
bound where nothing at all is left, as for two equal points. Else δ_a = 0.
"""

from __future__ import annotations

import numpy as np

from mercer.runtime.native import njit
from mercer.runtime.twofold import EXACTLY, INSIDE, UNIT, add, divide, multiply, subtract

#: the part of a pivot that may be rounding, for each variable: K is off by some (d + 16)p units, LDLᵀ by more
FLAT = 2.0**12 * UNIT


@njit(cache=True, **EXACTLY)
def look(high, low, c, g, f, position, v, coef):  # type: ignore[no-untyped-def]
    """f = Kγ, v = c - f; returns the objective ½ γᵀf - cᵀγ, rounded. ``coef`` is memory: Σγ of each point."""
    f[:] = 0.0
    coef[:] = 0.0
    h, l = 0.0, 0.0
    for t in range(g.shape[1]):
        p = position[t]
        coef[0, p], coef[1, p] = add(coef[0, p], coef[1, p], g[0, t], g[1, t])
        a, b = multiply(c[t], 0.0, g[0, t], g[1, t])
        h, l = subtract(h, l, a, b)
    for p in range(f.shape[1]):
        if coef[0, p] != 0.0:
            _follow(high, low, p, coef[0, p], coef[1, p], f)
    for p in range(f.shape[1]):
        a, b = multiply(0.5 * f[0, p], 0.5 * f[1, p], coef[0, p], coef[1, p])
        h, l = add(h, l, a, b)
    for t in range(g.shape[1]):
        v[0, t], v[1, t] = _slope(c, f, position[t], t)
    return h


@njit(**INSIDE)
def _follow(high, low, p, h, l, f):  # type: ignore[no-untyped-def]
    """f += (h + l) K_p."""
    for s in range(f.shape[1]):
        a, b = multiply(h, l, high[p, s], low[p, s])
        f[0, s], f[1, s] = add(f[0, s], f[1, s], a, b)


@njit(**INSIDE)
def _rises(hi, g, t):  # type: ignore[no-untyped-def]
    """Whether γₜ is below its upper bound, if only by the lower of its two parts."""
    return g[0, t] < hi[t] or (g[0, t] == hi[t] and g[1, t] < 0.0)


@njit(**INSIDE)
def _falls(lo, g, t):  # type: ignore[no-untyped-def]
    return g[0, t] > lo[t] or (g[0, t] == lo[t] and g[1, t] > 0.0)


@njit(**INSIDE)
def _is_free(lo, hi, g, t):  # type: ignore[no-untyped-def]
    return _rises(hi, g, t) and _falls(lo, g, t)


@njit(**INSIDE)
def _smallest(high, lo, hi, g, position, start, stop):  # type: ignore[no-untyped-def]
    """The smallest point of a group between its bounds, -1 where there is none."""
    best, r = np.inf, -1
    for t in range(start, stop):
        size = high[position[t], position[t]]
        if _is_free(lo, hi, g, t) and size < best:
            best, r = size, t
    return r


@njit(cache=True, **EXACTLY)
def pairs(high, low, c, lo, hi, g, f, position, split, balanced, unit, v, most):  # type: ignore[no-untyped-def]
    """``most`` steps by pairs, or fewer; returns how many were taken.

    ``unit`` holds ‖φ_a - φ_b‖² for two points, to choose a pair by; the origin comes last. A step's gain is
    (vᵢ - vⱼ)²/unit; where all units are 1, the pair that violates most is taken. ``v`` is memory to use.
    """
    q = c.shape[0]
    for step in range(most):
        for t in range(q):
            v[0, t], v[1, t] = _slope(c, f, position[t], t)
        if balanced:
            best, i, j = _pair(lo, hi, g, position, unit, v, 0, split)
            gain, a, b = _pair(lo, hi, g, position, unit, v, split, q)
            if gain > best:
                best, i, j = gain, a, b
        else:
            best, i, j = _single(lo, hi, g, position, unit, v)
        if best == 0.0 or not _move_pair(high, low, c, lo, hi, g, f, position, i, j):
            return step
    return most


@njit(**INSIDE)
def _pair(lo, hi, g, position, unit, v, start, stop):  # type: ignore[no-untyped-def]
    """The best pair of a group, γᵢ to rise and γⱼ to fall, and its gain."""
    best, i, j = 0.0, -1, -1
    for a in range(start, stop):
        if not _rises(hi, g, a):
            continue
        for b in range(start, stop):
            difference = (v[0, a] - v[0, b]) + (v[1, a] - v[1, b])
            if difference > 0.0 and _falls(lo, g, b):
                gain = difference / unit[position[a], position[b]] * difference
                if gain > best:
                    best, i, j = gain, a, b
    return best, i, j


@njit(**INSIDE)
def _single(lo, hi, g, position, unit, v):  # type: ignore[no-untyped-def]
    """The variable with the largest gain where no sum is fixed, as i where it is to rise, else as j."""
    best, i, j = 0.0, -1, -1
    for t in range(v.shape[1]):
        slope = v[0, t]
        if (slope > 0.0 and _rises(hi, g, t)) or (slope < 0.0 and _falls(lo, g, t)):
            gain = abs(slope) / unit[position[t], -1] * abs(slope)
            if gain > best:
                best, i, j = gain, (t if slope > 0.0 else -1), (-1 if slope > 0.0 else t)
    return best, i, j


@njit(**INSIDE)
def _slope(c, f, p, t):  # type: ignore[no-untyped-def]
    return subtract(c[t], 0.0, f[0, p], f[1, p])


@njit(**INSIDE)
def _curvature(high, low, a, b):  # type: ignore[no-untyped-def]
    """‖φ_a - φ_b‖², and what of it may be rounding; with b = -1 for the origin."""
    h, l = high[a, a], low[a, a]
    if b < 0:
        return h, l, FLAT * h
    h, l = add(h, l, high[b, b], low[b, b])
    h, l = add(h, l, -2.0 * high[a, b], -2.0 * low[a, b])
    return h, l, FLAT * (high[a, a] + high[b, b])


@njit(**INSIDE)
def _move_pair(high, low, c, lo, hi, g, f, position, i, j):  # type: ignore[no-untyped-def]
    """γᵢ rises and γⱼ falls, to the minimum or to a bound; False where nothing moves."""
    v, e, room, spare = 0.0, 0.0, np.inf, 0.0
    is_rise = True  # whether γᵢ is what reaches its bound first
    if i >= 0:
        v, e = _slope(c, f, position[i], i)
        room, spare = subtract(hi[i], 0.0, g[0, i], g[1, i])
    if j >= 0:
        h, l = _slope(c, f, position[j], j)
        v, e = subtract(v, e, h, l)
        h, l = subtract(g[0, j], g[1, j], lo[j], 0.0)
        if h < room or (h == room and l < spare):
            room, spare, is_rise = h, l, False
    a, b = (i, j) if i >= 0 else (j, i)
    h, l, least = _curvature(high, low, position[a], position[b] if b >= 0 else -1)
    if h < least:
        h, l = (least if h != 0.0 else 0.0), 0.0
    is_bound = h == 0.0
    if not is_bound:
        h, l = divide(v, e, h, l)
        is_bound = h > room or (h == room and l >= spare)
    if is_bound:
        h, l = room, spare
    if not (0.0 < h < np.inf):
        return False
    if i >= 0:
        g[0, i], g[1, i] = add(g[0, i], g[1, i], h, l)
        _follow(high, low, position[i], h, l, f)
    if j >= 0:
        g[0, j], g[1, j] = subtract(g[0, j], g[1, j], h, l)
        _follow(high, low, position[j], -h, -l, f)
    if is_bound and is_rise:
        g[0, i], g[1, i] = hi[i], 0.0
    elif is_bound:
        g[0, j], g[1, j] = lo[j], 0.0
    return True


@njit(cache=True, **EXACTLY)
def newton(high, low, c, lo, hi, g, f, position, split, balanced, A, vectors, lists):  # type: ignore[no-untyped-def]
    """Make one of Newton's steps; returns whether a bound was in the way. The last arguments are memory."""
    q = c.shape[0]
    w, d, delta, size = vectors[0], vectors[1], vectors[2], vectors[3, 0]
    free, other, order = lists[0], lists[1], lists[2]
    first, second = -1, -1
    if balanced:
        first = _smallest(high, lo, hi, g, position, 0, split)
        second = _smallest(high, lo, hi, g, position, split, q)
    count = 0
    for t in range(q):
        delta[0, t] = delta[1, t] = 0.0
        if _is_free(lo, hi, g, t) and t != first and t != second:
            free[count] = t
            other[count] = first if t < split else second
            count += 1
    if count == 0:
        return False
    for a in range(count):
        _system(high, low, c, f, position, free, other, a, A, w, size)
    total = 0.0
    for t in range(q):
        total += np.sqrt(high[position[t], position[t]]) * abs(g[0, t])
    rank = _factor(A, w, size, order, count)
    flat = _steepest(w, size, order, rank, count, total)
    _solve(A, w, d, order, rank, flat)
    unseen = 0.0
    for n in range(rank + (flat >= 0)):
        a = order[n]
        t, r = free[a], other[a]
        delta[0, t], delta[1, t] = d[0, a], d[1, a]
        if r >= 0:
            delta[0, r], delta[1, r] = subtract(delta[0, r], delta[1, r], d[0, a], d[1, a])
    most = 1.0
    if flat >= 0:  # the curvature that rounding may hide
        for n in range(rank + 1):
            unseen += np.sqrt(size[order[n]]) * abs(d[0, order[n]])
        most = abs(w[0, flat]) / (FLAT * unseen**2) if A[0, flat, flat] != 0.0 else np.inf
    return _go(high, low, lo, hi, g, f, position, delta, most)


@njit(**INSIDE)
def _system(high, low, c, f, position, free, other, a, A, w, size):  # type: ignore[no-untyped-def]
    """Row a of A, the slope of a against that of r(a), and the size of the points in that difference."""
    p, r = position[free[a]], other[a]
    size[a] = high[p, p] + (high[position[r], position[r]] if r >= 0 else 0.0)
    w[0, a], w[1, a] = _slope(c, f, p, free[a])
    if r >= 0:
        h, l = _slope(c, f, position[r], r)
        w[0, a], w[1, a] = subtract(w[0, a], w[1, a], h, l)
    for b in range(a + 1):
        s, o = position[free[b]], other[b]
        h, l = high[p, s], low[p, s]
        if o >= 0:
            h, l = subtract(h, l, high[p, position[o]], low[p, position[o]])
        if r >= 0:
            h, l = subtract(h, l, high[position[r], s], low[position[r], s])
            if o >= 0:
                h, l = add(h, l, high[position[r], position[o]], low[position[r], position[o]])
        A[0, a, b] = A[0, b, a] = h
        A[1, a, b] = A[1, b, a] = l


@njit(**INSIDE)
def _factor(A, w, size, order, count):  # type: ignore[no-untyped-def]
    """A = LDLᵀ, w ← L⁻¹w; row k of A is left as that of DLᵀ. Returns the rank; ``order`` has pivots first."""
    for a in range(count):
        order[a] = a
    for rank in range(count):
        best, where = count * FLAT, -1
        for n in range(rank, count):
            a = order[n]
            if A[0, a, a] > best * size[a]:
                best, where = A[0, a, a] / size[a], n
        if where < 0:
            return rank
        k = order[where]
        order[where] = order[rank]
        order[rank] = k
        for n in range(rank + 1, count):
            a = order[n]
            h, l = divide(A[0, a, k], A[1, a, k], A[0, k, k], A[1, k, k])
            for m in range(rank + 1, n + 1):
                b = order[m]
                x, y = multiply(h, l, A[0, k, b], A[1, k, b])
                x, y = subtract(A[0, a, b], A[1, a, b], x, y)
                A[0, a, b] = A[0, b, a] = x
                A[1, a, b] = A[1, b, a] = y
            x, y = multiply(h, l, w[0, k], w[1, k])
            w[0, a], w[1, a] = subtract(w[0, a], w[1, a], x, y)
    return count


@njit(**INSIDE)
def _steepest(w, size, order, rank, count, total):  # type: ignore[no-untyped-def]
    """The direction without curvature along which the objective falls most, beyond rounding; -1 for none.

    It is brought to the place behind the pivots.
    """
    best, where = count * FLAT * total, -1
    for n in range(rank, count):
        slope = abs(w[0, order[n]]) / max(np.sqrt(size[order[n]]), 1e-300)
        if slope > best:
            best, where = slope, n
    if where < 0:
        return -1
    flat = order[where]
    order[where] = order[rank]
    order[rank] = flat
    return flat


@njit(**INSIDE)
def _solve(A, w, d, order, rank, flat):  # type: ignore[no-untyped-def]
    """DLᵀδ = w; or = 0, with δ = ±1 at ``flat``."""
    if flat >= 0:
        d[0, flat], d[1, flat] = (1.0 if w[0, flat] > 0.0 else -1.0), 0.0
    for n in range(rank - 1, -1, -1):
        k = order[n]
        h, l = (0.0, 0.0) if flat >= 0 else (w[0, k], w[1, k])
        for m in range(n + 1, rank + (flat >= 0)):
            b = order[m]
            x, y = multiply(A[0, k, b], A[1, k, b], d[0, b], d[1, b])
            h, l = subtract(h, l, x, y)
        d[0, k], d[1, k] = divide(h, l, A[0, k, k], A[1, k, k])


@njit(**INSIDE)
def _go(high, low, lo, hi, g, f, position, delta, most):  # type: ignore[no-untyped-def]
    """γ + tδ, t ≤ ``most``, up to the first bound; returns whether there was one."""
    q = g.shape[1]
    step, rest, hit = most, 0.0, -1
    for t in range(q):
        if delta[0, t] == 0.0:
            continue
        bound = hi[t] if delta[0, t] > 0.0 else lo[t]
        h, l = subtract(bound, 0.0, g[0, t], g[1, t])
        h, l = divide(h, l, delta[0, t], delta[1, t])
        if h < step or (h == step and l < rest):
            step, rest, hit = h, l, t
    if not (0.0 <= step < np.inf):
        return False
    for t in range(q):
        if delta[0, t] == 0.0:
            continue
        h, l = multiply(step, rest, delta[0, t], delta[1, t])
        x, y = add(g[0, t], g[1, t], h, l)
        g[0, t], g[1, t] = x, y
        if not _rises(hi, g, t):
            g[0, t], g[1, t] = hi[t], 0.0
        elif not _falls(lo, g, t):
            g[0, t], g[1, t] = lo[t], 0.0
        _follow(high, low, position[t], h, l, f)
    if hit >= 0:
        g[0, hit], g[1, hit] = (hi[hit] if delta[0, hit] > 0.0 else lo[hit]), 0.0
    return hit >= 0
