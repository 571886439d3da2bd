r"""Probabilities of a support vector classifier, from its one fit, that agree with what it predicts.

Given     f = Σ γᵢ k(xᵢ, ·) + b, the solution with lo ≤ γ ≤ hi, Σγ = 0, and its values at the training points;
          or without b, for any Σγ: the origin then joins the points on the margin below
Find      P(y = +1 | f(x)), with P > ½ exactly where f(x) > 0; for several classes p(x), with argmax p the
          prediction

Left out  Values at the training points flatter the model. What they would be without xᵢ follows from the
          solution, if the other points keep their places (inside the margin, on it, outside):
              f₋ᵢ(xᵢ) = f(xᵢ) - γᵢ Sᵢ²,   Sᵢ² = min ‖φ(xᵢ) - Σⱼ λⱼ φ(xⱼ)‖²  over  Σλ = 1, j ≠ i on the margin,
          the span of xᵢ. With M = [[K, 1], [1ᵀ, 0]] over the points on the margin (γ ≠ 0, lo < γ < hi),
              Sᵢ² = 1 / (M⁻¹)ᵢᵢ  for those,   Sᵢ² = kᵢᵢ - mᵢᵀ M⁻¹ mᵢ,  mᵢ = (k(xⱼ, xᵢ)ⱼ, 1)  for those inside.
          Points outside have γᵢ = 0 and keep their value. No problem is solved again.
          Where the value would move by more than ½, points near the margin would come to it on the way, and
          change the span. There the hinge is rounded over a band of h = ¼ on either side: all points with
          |yf - 1| ≤ h span, and Sᵢ² is the minimum of ‖φ(xᵢ) - Σⱼ λⱼ φ(xⱼ)‖² + Σⱼ dⱼ λⱼ² over Σλ = 1 with
          dⱼ = 2h / boundⱼ, the inverse curvature of the loss (bound is C, or the largest |γ| if that is
          less); unless the plain one is smaller.
Slopes    P(y = +1 | f) = 1 / (1 + exp(-a f)), a = a₊ > 0 for f ≥ 0 and a₋ > 0 for f < 0: increasing, and ½
          at 0, which a sigmoid with an offset is not. The likelihood is concave in each slope; Newton's
          method, kept between bounds, maximises it with the targets (n₊ + 1) / (n₊ + 2) and 1 / (n₋ + 2) for
          1 and 0, so that the slopes are finite for separated classes too.
Coupling  for classes in pairs, rᵢⱼ = P(i | i or j):  minimise Σᵢ Σⱼ (rⱼᵢ pᵢ - rᵢⱼ pⱼ)²  over  Σp = 1. The
          minimiser is not negative; it is the solution of c + 1 linear equations.
Agreeing  votes of pairs may name another class than argmax p. The projection of p onto {p : p_code ≥ pₖ for
          all k} makes the predicted class and those above it equal: their mean.
Cost      s³ + s² t for s points on the margin and t inside. From s = 2000 on, the margin is taken in parts of
          at most 2000: a point on it is spanned by those of its own part, a point inside by the first part.
          Fewer vectors span less, so that Sᵢ² is an upper bound then. Once more for the band, where it is
          asked for. That is a third of the time of a fit with a few hundred points on the margin, and up to
          three times that of many pairs of classes which are solved in milliseconds. Nothing is random.

Vapnik and Chapelle, Bounds on error expectation for support vector machines, Neural Computation 12 (2000),
2013-2036; Opper and Winther, Gaussian processes and SVM: mean field and leave-one-out, Advances in Large
Margin Classifiers (2000), 311-326: values left out. Platt, Probabilistic outputs for support vector machines,
the same book, 61-74; Lin, Lin and Weng, A note on Platt's probabilistic outputs for support vector machines,
Machine Learning 68 (2007), 267-276: targets, Newton's method. Wu, Lin and Weng, Probability estimates for
multi-class classification by pairwise coupling, JMLR 5 (2004), 975-1005: the second of their methods.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, log_expit

from mercer.errors import InputError
from mercer.runtime.config import memory_budget
from mercer.solvers.control import Control
from mercer.solvers.matrix import BlockMatrix
from mercer.solvers.svm.problems import Machine
from mercer.solvers.svm.spans import ROWS, Block, spans, with_origin

PART = 2000  # points on the margin that span together, at most
_BAND = 0.25  # how far from the margin points may be and still help to span
_FLAT = 1e-6  # least slope, for values of size 1: where the likelihood would have the sigmoid fall
_STEPS = 200  # steps of Newton's method at most; bisection alone would need some 60
_SURE = 1e-7  # pairs are this far from certain: below, coupling has nothing left to weigh
_BYTES = 2**25  # linear equations that are solved together take so many
_EDGE = 4 * np.finfo(np.float64).eps  # by which the predicted class leads, relatively


def involved(gamma: np.ndarray, values: np.ndarray) -> np.ndarray:  # (n,), (n,) → (n,)
    """Which points' K ``left_out`` may ask for, but for a margin of fewer than two points."""
    return (gamma != 0) | (np.abs(np.abs(values) - 1) <= _BAND)


def left_out(
    gamma: Any,  # (n,)
    values: Any,  # (n,)
    lo: Any,  # (n,)
    hi: Any,  # (n,)
    block: Block,
    diagonal: Any,  # (n,)
    *,
    part: int = PART,
    intercept: bool = True,
) -> np.ndarray:  # (n,)
    """f₋ᵢ(xᵢ), the value at each training point of the classifier trained without it, by the span rule.

    Exact for points with γᵢ = 0; and where the other points keep their places when xᵢ goes and the value
    moves by no more than ½.

    Parameters
    ----------
    gamma : the coefficients γᵢ = yᵢαᵢ of f
    values : f(xᵢ), the intercept included, scaled so that the margin is at ±1
    lo, hi : bounds of γ, in the scale of γ; one of the two is 0 for each point; infinite for the hard margin
    block : ``block(rows, columns)`` returns K[rows][:, columns]; at most part × part entries
    diagonal : k(xᵢ, xᵢ)
    part : points on the margin that are taken together, at most
    intercept : whether f has one; without it λ need not sum to 1, as if the origin were on the margin too

    Where fewer than two points are on the margin, the two nearest to it are taken as if they were: they are
    the first that have to move. A singular K (duplicates, few features) gets a ridge of the size of its
    rounding; an indefinite one a ridge that makes it definite.

    Two points on a line, on the margin, and a third far behind: without it nothing changes, without one of
    the others its side of the margin has nothing to hold it.

    >>> x = np.array([1.0, -1.0, -9.0])
    >>> K = np.outer(x, x)
    >>> f = left_out([0.5, -0.5, 0.0], x, [0, -9, -9], [9, 0, 0], lambda i, j: K[np.ix_(i, j)], K.diagonal())
    >>> f.round(6)
    array([-1., 1., -9.])
    """
    names = ("gamma", "values", "lo", "hi", "diagonal")
    arrays = [np.asarray(a, dtype=np.float64) for a in (gamma, values, lo, hi, diagonal)]
    for name, array in zip(names, arrays, strict=True):
        if array.shape != arrays[0].shape or array.ndim != 1:
            raise InputError(
                f"{name} must have one entry per training point, shape {arrays[0].shape}, got {array.shape}: "
                "pass γ, f(x), bounds and k(x, x) of the same points"
            )
        if name not in ("lo", "hi") and not np.isfinite(array).all():
            raise InputError(f"{name} must be finite, got {array[~np.isfinite(array)][0]}: rescale the data")
    if part < 2:
        raise InputError(f"part must be at least 2, got {part!r}: a point is spanned by others")
    gamma, values, lo, hi, diagonal = arrays
    if not gamma.any():
        return values
    # bounds may have been rescaled; at the side of zero every digit counts, since C may be 1e9 and γ 1e-6
    near = 1 - 1e-12
    inside = ((hi > 0) & (gamma >= hi * near)) | ((lo < 0) & (gamma <= lo * near))
    # the distance of each point from the margin
    away = np.where(hi > lo, np.abs(np.where(hi > 0, values, -values) - 1), np.inf)
    away[(gamma != 0) & ~inside] = -1
    margin = np.flatnonzero(away < 0)
    if len(margin) < 2:
        nearest = np.argsort(away, kind="stable")[:2]
        margin = np.sort(nearest[np.isfinite(away[nearest])])
    hard, n = np.zeros(len(gamma)), len(gamma)
    if not intercept:  # Without b there is one more point, φ = 0.
        block, diagonal, hard = with_origin(block, n), np.append(diagonal, 0.0), np.append(hard, 0.0)
        margin = np.append(margin, n)
    shift = gamma * spans(block, diagonal, margin, hard, np.flatnonzero(gamma), part)[:n]
    far = np.flatnonzero(np.abs(shift) > 2 * _BAND)
    if len(far):
        bound = np.minimum(np.maximum(-lo, hi), np.abs(gamma).max())
        soft = np.append(2 * _BAND / np.where(bound > 0, bound, 1.0), hard[n:])
        band = np.union1d(margin, np.flatnonzero(away <= _BAND))
        banded = gamma[far] * spans(block, diagonal, band, soft, far, part)[far]
        shift[far] = np.where(np.abs(banded) < np.abs(shift[far]), banded, shift[far])
    return values - shift


def part_size() -> int:
    """How many points on the margin are taken together: their matrices take half of the memory budget."""
    return int(np.clip(np.sqrt(memory_budget() / 96), 2, PART))


def bytes_of(n: int) -> int:
    """What `slopes` takes: K in both precisions, its factor, its inverse, and rows of points inside."""
    s = min(n, part_size())
    return 8 * s * (4 * s + 2 * min(s, ROWS))


class _NoTimeError(Exception):
    """There is no time for values left out."""


def slopes(
    K: BlockMatrix,
    machines: list[Machine],
    places: list[np.ndarray],
    signs: list[np.ndarray],
    weight: np.ndarray,
    intercept: bool,
    control: Control,
) -> tuple[np.ndarray, int]:
    """(problems, 2) the slopes of each machine, and for how many of them there was no time.

    ``places`` and ``signs`` say which points a problem has, and of what class. The slopes are from values
    left out; once it is time to stop, they are from the values at the training points, which cost nothing.
    """
    part, diagonal = part_size(), K.diag()
    near = np.zeros(K.shape[0], np.bool_)
    for machine, here in zip(machines, places, strict=True):
        near[here] |= involved(machine.coef, machine.values)
    place, shared = np.cumsum(near) - 1, None
    if not control.stopped and np.count_nonzero(near) <= part:  # one block serves all problems
        shared = K.block(np.flatnonzero(near), np.flatnonzero(near))

    def block_of(here: np.ndarray) -> Block:
        def block(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
            if control.stopped:
                raise _NoTimeError
            rows, columns = here[rows], here[columns]
            if shared is None or not (near[rows].all() and near[columns].all()):
                return K.block(rows, columns)
            return shared[np.ix_(place[rows], place[columns])]

        return block

    found, late = np.empty((len(machines), 2)), 0
    for p, (machine, here, sign) in enumerate(zip(machines, places, signs, strict=True)):
        facts = machine.coef, machine.values, machine.lo, machine.hi, block_of(here), diagonal[here]
        try:
            values = left_out(*facts, part=part, intercept=intercept)
        except _NoTimeError:
            values = machine.values
            late += 1
        found[p] = fit_binary(values, sign, weight[here])
    return found, late


def fit_binary(values: Any, sign: Any, weight: Any = None) -> np.ndarray:  # (n,), (n,), (n,) → (2,)
    """(a₋, a₊), the slopes below and above 0 under which the labels are most likely.

    Parameters
    ----------
    values : f(xᵢ), not at points f was trained on: left out, or held out
    sign : yᵢ, +1 or -1 (or anything positive and anything else)
    weight : how many observations a point stands for; by default 1 each

    Both slopes are positive: where labels on a side are mostly of the other sign, its slope is 1e-6 over its
    largest value. A side without values gets the slope of the other; without any value but 0, both are 1.

    >>> fit_binary([2.0, 1.0, -1.0, -1.0, -3.0], [1, 1, 1, -1, -1])
    array([0.266, 0.861])
    """
    f = np.asarray(values, dtype=np.float64)
    positive = np.asarray(sign) > 0
    w = np.ones(f.shape) if weight is None else np.asarray(weight, dtype=np.float64)
    if f.ndim != 1 or positive.shape != f.shape or w.shape != f.shape:
        raise InputError(
            f"values, sign and weight must have one entry per point, got shapes {f.shape}, {positive.shape} "
            f"and {w.shape}"
        )
    if not np.isfinite(f).all():
        raise InputError(f"values must be finite, got {f[~np.isfinite(f)][0]}: leave such points out")
    if not np.isfinite(w).all() or (w < 0).any():
        raise InputError("weight must be finite and not negative: use 0 for points that do not count")
    target = np.where(positive, 1 - 1 / (w[positive].sum() + 2), 1 / (w[~positive].sum() + 2))
    # P(y = -1 | f) has the form of P(y = +1 | -f): one problem twice
    below, above = (f < 0) & (w > 0), (f > 0) & (w > 0)
    slopes = [_slope(-f[below], 1 - target[below], w[below]), _slope(f[above], target[above], w[above])]
    least, most = slopes
    return np.array([least or most or 1.0, most or least or 1.0])


def _slope(f: np.ndarray, target: np.ndarray, w: np.ndarray) -> float:
    """The a > 0 that maximises Σ w (t log σ(af) + (1 - t) log σ(-af)) for f > 0; 0 where there is no f."""
    if not len(f):
        return 0.0
    size = float(f.max())
    z = f / size  # a · size is found: neither tiny nor huge values overflow
    w = w / w.max()
    wz = w * z

    def gradient(a: float) -> tuple[float, float]:
        p = expit(a * z)
        return float((wz * (target - p)).sum()), float((wz * z * p * (1 - p)).sum())

    low, high = _FLAT, 1.0
    if gradient(low)[0] <= 0:
        high = low
    while high > low and high < 1e200 and gradient(high)[0] > 0:
        low, high = high, 4 * high
    a = 0.5 * (low + high)
    for _ in range(_STEPS):
        if high <= low * (1 + 1e-15):
            break
        slope, curvature = gradient(a)
        if slope > 0:
            low = a
        else:
            high = a
        step = slope / curvature if curvature > 0 else np.inf
        following = a + step
        if not low < following < high:
            following = 0.5 * (low + high)
        is_last = abs(following - a) <= 1e-8 * a  # the error of what follows is the square of this
        a = following
        if is_last:
            break
    with np.errstate(over="ignore"):
        return float(np.clip(a / size, 1e-300, 1e300))


def _steepness(values: Any, slopes: Any) -> tuple[np.ndarray, np.ndarray]:
    f = np.asarray(values, dtype=np.float64)
    slopes = np.asarray(slopes, dtype=np.float64)
    if slopes.shape[-1:] != (2,) or not (slopes > 0).all():
        raise InputError(f"slopes must be pairs (a₋, a₊) of positive numbers, got {slopes!r}: use fit_binary")
    with np.errstate(over="ignore", under="ignore"):
        return f, f * np.where(f < 0, slopes[..., 0], slopes[..., 1])


def probability(values: Any, slopes: Any) -> np.ndarray:  # (m,), (2,) or (m, q), (q, 2)
    """P(y = +1 | f) at values of f: above ½ exactly where f > 0, ½ at 0, below where f < 0.

    P(y = -1 | f) is ``probability(-f, slopes[..., ::-1])``, which has all its digits where 1 - P has lost
    them. With the negative class first, the argmax of the two is f > 0.

    >>> probability([-2.0, 0.0, 1e-300, 1.0], [2.0, 1.0])
    array([0.018, 0.5  , 0.5  , 0.731])
    """
    f, z = _steepness(values, slopes)
    p = expit(z)
    p = np.where(f > 0, np.maximum(p, np.nextafter(0.5, 1)), p)
    return np.where(f < 0, np.minimum(p, np.nextafter(0.5, 0)), p)


def log_probability(values: Any, slopes: Any) -> np.ndarray:  # (m,), (2,) or (m, q), (q, 2)
    """log P(y = +1 | f), finite also where P underflows.

    >>> log_probability([-2000.0, 0.0], [2.0, 1.0])
    array([-4000., -0.693])
    """
    return np.asarray(log_expit(_steepness(values, slopes)[1]))


def couple(pairwise: Any) -> np.ndarray:  # (m, c, c) or (m, c(c-1)/2) → (m, c)
    """Probabilities of c classes from those of pairs: Wu, Lin and Weng's second method.

    Parameters
    ----------
    pairwise : r[:, i, j] = P(i | i or j), the diagonal is not read; or only the columns (0, 1), (0, 2), …,
        (1, 2), …, each the probability of the *first* class of its pair

    Consistent pairs give back what they came from:

    >>> p = np.array([0.5, 0.3, 0.2])
    >>> couple([[p[0] / (p[0] + p[1]), p[0] / (p[0] + p[2]), p[1] / (p[1] + p[2])]])
    array([[0.5, 0.3, 0.2]])
    """
    r = np.asarray(pairwise, dtype=np.float64)
    if r.ndim == 2:
        c = (1 + round(float(np.sqrt(1 + 8 * r.shape[1])))) // 2
        fits = c * (c - 1) // 2 == r.shape[1] > 0
    else:
        c = r.shape[-1] if r.ndim else 0
        fits = r.ndim == 3 and r.shape[1] == c > 0
    if not fits:
        raise InputError(
            f"pairwise must have shape (m, c, c) or (m, c(c-1)/2), got {r.shape}: one entry per pair"
        )
    p = np.empty((len(r), c))
    step = max(1, _BYTES // (8 * (c + 1) ** 2))
    for first in range(0, len(r), step):
        p[first : first + step] = _coupled(_square(r[first : first + step], c))
    return p


def _square(r: np.ndarray, c: int) -> np.ndarray:  # (m, c, c)
    """rᵢⱼ away from 0 and 1, with 0 on the diagonal."""
    i, j = np.triu_indices(c, 1)
    if r.ndim == 2:
        upper, lower = r, 1 - r
    else:
        upper, lower = r[:, i, j], r[:, j, i]
    for part in (upper, lower):
        if not ((part >= 0) & (part <= 1)).all():  # NaN fails too
            raise InputError(
                "pairwise must hold probabilities, 0 to 1, and no NaN: use probability(f, slopes)"
            )
    out = np.zeros((len(r), c, c))
    out[:, i, j] = np.clip(upper, _SURE, 1 - _SURE)
    out[:, j, i] = np.clip(lower, _SURE, 1 - _SURE)
    return out


def _coupled(r: np.ndarray) -> np.ndarray:  # (m, c, c) → (m, c)
    """The minimiser of pᵀQp over Σp = 1, Qᵢᵢ = Σⱼ rⱼᵢ², Qᵢⱼ = -rⱼᵢ rᵢⱼ."""
    m, c, _ = r.shape
    if c == 1:
        return np.ones((m, 1))
    # Q is scaled to a unit diagonal, p = D q: that of a sure class is 1e-14 of the others'
    scale = 1 / np.sqrt(np.einsum("mji,mji->mi", r, r))
    weight = scale / scale.max(axis=1, keepdims=True)
    system = np.zeros((m, c + 1, c + 1))
    system[:, :c, :c] = -r * r.transpose(0, 2, 1) * scale[:, :, None] * scale[:, None, :]
    system[:, np.arange(c), np.arange(c)] = 1.0
    system[:, :c, c] = system[:, c, :c] = weight
    right = np.zeros((m, c + 1, 1))
    right[:, c] = 1.0
    p = np.maximum(np.linalg.solve(system, right)[:, :c, 0] * weight, 0.0)
    return p / p.sum(axis=1, keepdims=True)


def agree(p: Any, codes: Any) -> np.ndarray:  # (m, c), (m,) → (m, c)
    """The nearest probabilities whose argmax is ``codes``; rows where it is already are not touched.

    The projection makes the predicted class and those above it equal. Then these get smaller by a few units
    in the last place, so that there is one argmax.

    >>> agree([[0.5, 0.3, 0.2], [0.6, 0.1, 0.3]], [1, 0])
    array([[0.4, 0.4, 0.2],
           [0.6, 0.1, 0.3]])
    """
    p = np.array(p, dtype=np.float64)
    codes = np.asarray(codes)
    if p.ndim != 2 or codes.shape != p.shape[:1] or codes.dtype.kind not in "iu":
        raise InputError(
            f"p must be (m, c) and codes (m,) of whole numbers, got {p.shape}, {codes.shape} of {codes.dtype}"
        )
    if len(codes) and not (codes.min() >= 0 and codes.max() < p.shape[1]):
        raise InputError(f"codes must be 0 … {p.shape[1] - 1}, got {codes.min()} … {codes.max()}")
    if not (p >= 0).all() or not (np.abs(p.sum(axis=1) - 1) <= 1e-6).all():
        raise InputError("rows of p must be probabilities: not negative, no NaN, with the sum 1")
    change = np.flatnonzero(p.argmax(axis=1) != codes)
    if len(change):
        p[change] = _projected(p[change], codes[change])
    return p


def _projected(p: np.ndarray, codes: np.ndarray) -> np.ndarray:
    m, c = p.shape
    row = np.arange(m)
    others = p.copy()
    others[row, codes] = -1.0  # It is below all others, and sorted last.
    others = -np.sort(-others, axis=1)[:, : c - 1]
    # means of the predicted class and the j largest others, j = 1 … c-1. The projection's is the largest of
    # them: another entry raises the mean as long as it is above it
    means = (p[row, codes][:, None] + np.cumsum(others, axis=1)) / np.arange(2, c + 1)
    level = means.max(axis=1)
    out = np.minimum(p, (level * (1 - _EDGE))[:, None])
    out[row, codes] = level
    return out
