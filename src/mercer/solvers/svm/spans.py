r"""How far points are from the span of others in feature space, from K: for values left out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import lapack, solve_triangular

from mercer.errors import InputError

ROWS = 1024  # points that are looked at together

#: K[rows][:, columns] for two arrays of indices
Block = Callable[[np.ndarray, np.ndarray], np.ndarray]


def with_origin(block: Block, n: int) -> Block:
    """K of n points and the origin of feature space, which comes last."""

    def bordered(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        K = np.zeros((len(rows), len(columns)))
        real = np.ix_(rows < n, columns < n)
        K[real] = block(rows[rows < n], columns[columns < n])
        return K

    return bordered


def spans(
    block: Block, diagonal: np.ndarray, members: np.ndarray, soft: np.ndarray, wanted: np.ndarray, part: int
) -> np.ndarray:  # (n,), 0 where it is not wanted
    """Sᵢ² by the affine span of ``members``, taken in parts."""
    result = np.zeros(len(diagonal))
    rest = np.setdiff1d(wanted, members)
    parts = -(-len(members) // part)
    for p in range(parts):
        chosen = members[p::parts]  # A stride takes points of every class, for points are often sorted by it.
        own = np.isin(chosen, wanted)
        others = rest if p == 0 else rest[:0]
        if not own.any() and not len(others):
            continue
        span = _Span(block, chosen, soft[chosen])
        if own.any():
            result[chosen[own]] = span.own(np.flatnonzero(own))
        step = min(part, ROWS)
        for first in range(0, len(others), step):
            some = others[first : first + step]
            result[some] = span.of(block(some, chosen), diagonal[some])
    return result


class _Span:
    """The affine span of some points, s of them, in feature space: min ‖φ - Σλⱼφⱼ‖² + Σ dⱼλⱼ² over Σλ = 1.

    The origin is moved to their mean, which changes no affine combination, and a constant t is added to K,
    which changes the minimum by t: then A = K + t11ᵀ + diag(d) is definite. With u = A⁻¹1, M⁻¹ is
    A⁻¹ - uuᵀ/1ᵀu in its first s rows and columns, and the minimum at a point with products k is
    ‖φ‖² - t - kᵀA⁻¹k + (uᵀk - 1)²/1ᵀu.
    """

    def __init__(self, block: Block, chosen: np.ndarray, soft: np.ndarray) -> None:
        K = np.asarray(block(chosen, chosen))
        precision = np.finfo(K.dtype if K.dtype.kind == "f" else np.float64).eps
        K = K.astype(np.float64)
        _require_finite(K)
        s = len(K)
        peak = float(np.abs(K).max())
        # rounding of the entries, and of the factorisation; K = 0 is a matrix too
        ridge = (2 * np.sqrt(s) * precision + s * 2.0**-52) * peak + 1e-150
        self.means = K.mean(axis=0)
        self.mean = float(self.means.mean())
        K -= self.means
        K -= self.means[:, None]
        K += self.mean
        self.square = np.maximum(K.diagonal(), 0.0)  # ‖φ(xᵢ) - mean‖²
        self.constant = max(float(self.square.mean()), ridge) / s
        K += self.constant
        diagonal = K.diagonal().copy()
        for _ in range(16):  # K may be indefinite; ten times 100, and the ridge is all there is
            self.soft = soft + ridge
            np.fill_diagonal(K, diagonal + self.soft)
            self.factor, failed = lapack.dpotrf(K, lower=1, clean=1)
            if not failed:
                break
            ridge *= 100
        else:
            raise InputError(
                f"k(x, x') overflows, its values reach {peak:.1e}: rescale the kernel or the data"
            )
        self.ones = solve_triangular(self.factor, np.ones(s), lower=True, check_finite=False)
        self.total = float((self.ones**2).sum())  # 1ᵀu

    def own(self, which: np.ndarray) -> np.ndarray:  # (t,)
        """Sᵢ² of some of the points themselves, each spanned by all the others."""
        s = len(self.factor)
        if s < 2:
            return np.zeros(len(which))  # nothing could take its place
        if len(which) < s // 4:  # some columns of the inverse factor are cheaper than all
            unit = np.zeros((s, len(which)))
            unit[which, np.arange(len(which))] = 1.0
            inverse = solve_triangular(self.factor, unit, lower=True, check_finite=False)
        else:
            inverse = lapack.dtrtri(self.factor, lower=1)[0][:, which]
        u = np.einsum("ij,i->j", inverse, self.ones)
        pivot = np.einsum("ij,ij->j", inverse, inverse) - u**2 / self.total
        most = self.square[which] * (s / (s - 1)) ** 2 + self.soft.max()  # λ = 1/(s - 1) for all others
        with np.errstate(divide="ignore", over="ignore"):
            span = np.where(pivot > 0, 1 / pivot, np.inf) - self.soft[which]
        return np.clip(span, 0.0, most)

    def of(self, K: np.ndarray, diagonal: np.ndarray) -> np.ndarray:  # (t, s), (t,) → (t,)
        """Sᵢ² of other points, from their k(xᵢ, xⱼ)."""
        K = np.array(K, dtype=np.float64)
        _require_finite(K)
        means = K.mean(axis=1)
        K -= self.means
        K -= (means - self.mean)[:, None]
        square = np.maximum(diagonal - 2 * means + self.mean, 0.0)
        Z = solve_triangular(self.factor, K.T, lower=True, check_finite=False)
        offset = np.einsum("ji,j->i", Z, self.ones) - 1
        span = square - self.constant - np.einsum("ji,ji->i", Z, Z) + offset**2 / self.total
        return np.clip(span, 0.0, square + self.soft.max())


def _require_finite(K: np.ndarray) -> None:
    if not np.isfinite(K).all():
        raise InputError(
            "k(x, x') is not finite for some support vectors: rescale the data, or choose a kernel that does "
            "not overflow on them"
        )
