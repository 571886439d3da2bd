r"""The Gaussian process behind ridge on landmarks, or on any features φ: how far f may be from what it is.

Process   y = ⟨w, φ(x)⟩ + b + noise, w of covariance (σ²/α) I, noise of variance σ²/wᵢ, b anything; and beside
          it what no landmark sees, of variance (σ²/α) (k(x, x) - ‖φ(x)‖²), of which the points tell nothing.
          In units of σ²/α the variance of f + b, given y, is
              v(x) = k(x, x) - ‖φ(x)‖² + α φ̃(x)ᵀ (Φ̃ᵀWΦ̃ + αD)⁻¹ φ̃(x)
          with the ones of b in φ̃, and 0 for b in D. Far from all landmarks it is k(x, x), and never 0 there;
          where all points are landmarks it is that of the exact problem (`linear.posterior`).
Left out  without one observation at xᵢ, cᵢ = 1 / max(1, wᵢ), qᵢ = φ̃ᵢᵀ(Φ̃ᵀWΦ̃ + αD)⁻¹φ̃ᵢ and gᵢ = 1 - cᵢwᵢqᵢ:
              eᵢ = (yᵢ - f(xᵢ)) / gᵢ,   v₋ᵢ(xᵢ) = v(xᵢ) + α qᵢ² min(1, wᵢ) / gᵢ
Kept      of Φ̃ᵀWΦ̃ the part of the first 1,000 pivots and of b, which is that of a process on these landmarks:
          a file of many landmarks is not to hold their square.

Seeger, Williams and Lawrence, Fast forward selection to speed up sparse Gaussian process regression, AISTATS
2003 (projected process).
"""

from __future__ import annotations

import math

import numpy as np

from mercer.solvers.linear.cholesky import factorise, half_solve

#: Features that are kept, at most: 4 MB.
MOST_FEATURES = 1000


def leading(square: np.ndarray, fit_intercept: bool) -> np.ndarray:  # (p, p) → (k(k+1)/2,)
    """The lower triangle of the first features, and of b, row by row.

    >>> leading(np.array([[4.0, 0.0], [2.0, 3.0]]), True)
    array([4., 2., 3.])
    """
    features = min(len(square) - fit_intercept, MOST_FEATURES)
    which = np.append(np.arange(features), [len(square) - 1] * fit_intercept).astype(np.int64)
    i, j = np.tril_indices(len(which))
    return np.asarray(square[which[i], which[j]], dtype=np.float64)


def kept_of(packed: np.ndarray, fit_intercept: bool) -> int:
    """How many features were kept.

    >>> kept_of(np.array([4.0, 2.0, 3.0]), True)
    1
    """
    return (math.isqrt(8 * len(packed) + 1) - 1) // 2 - fit_intercept


class FeaturePosterior:
    """q for one α > 0, of the features that were kept.

    >>> posterior = FeaturePosterior(np.array([3.0]), 1.0, fit_intercept=False)  # Σ φᵢ² = 3
    >>> posterior.spread(np.array([[1.0], [2.0]]))
    array([0.25, 1.  ])
    """

    def __init__(self, packed: np.ndarray, alpha: float, fit_intercept: bool) -> None:
        self.features, self.fit_intercept = kept_of(packed, fit_intercept), fit_intercept
        size = self.features + fit_intercept
        A = np.zeros((size, size), order="F")
        A[np.tril_indices(size)] = packed
        A[np.diag_indices(self.features)] += alpha
        self.factor = factorise(A)

    def half(self, phi: np.ndarray) -> np.ndarray:  # (m, features) → (features + 1, m)
        """L⁻¹φ̃ of every point, LLᵀ = Φ̃ᵀWΦ̃ + αD."""
        whole = np.column_stack([phi, np.ones(len(phi))]) if self.fit_intercept else phi
        return half_solve(self.factor, whole.T)

    def spread(self, phi: np.ndarray) -> np.ndarray:  # (m,)
        """q."""
        half = self.half(phi)
        return np.asarray(np.einsum("ij,ij->j", half, half))
