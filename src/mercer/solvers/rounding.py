r"""What the rounding of kernel values may do to the slopes of a quadratic program.

A computed K̂ = K + E has |Eᵢⱼ| ≤ τ sᵢsⱼ, with sᵢ² = k(xᵢ, xᵢ) and τ a few units in the last place: for ⟨x, x'⟩
of d columns τ = (d + 2)u by Cauchy's inequality. The slope of a variable at xᵢ, cᵢ - (Kγ)ᵢ, is then known to
within

    float64     eᵢ = τ sᵢ Σⱼ sⱼ|γⱼ|            for certain
    float32     eᵢ = τ sᵢ √(Σⱼ sⱼ²γⱼ²)         for errors that are independent of each other

The first would be thousands of times too large for single precision, where sums have many terms whose errors
cancel; there the errors are taken as the independent numbers that they look like.
"""

from __future__ import annotations

import numpy as np

from mercer.solvers.matrix import KernelMatrix

__all__ = ["sizes", "slope_errors"]

_SAMPLE = 16  # rows that are looked at where the diagonal does not tell the size of K


def sizes(K: KernelMatrix, diag: np.ndarray) -> np.ndarray:  # (n,)
    """sᵢ with |Kᵢⱼ| ≤ sᵢsⱼ, about: √|k(xᵢ, xᵢ)|; where some are no squared norms, at least √max|K|."""
    s = np.sqrt(np.abs(diag))
    if (diag < 0).any() or (len(diag) and not diag.any()):
        some = np.unique(np.linspace(0, len(diag) - 1, min(len(diag), _SAMPLE)).astype(np.int64))
        s = np.maximum(s, np.sqrt(np.abs(K.rows(some)).max(axis=0)))
    return s


def slope_errors(s: np.ndarray, coef: np.ndarray, tau: float, single: bool) -> np.ndarray:  # (n,)
    """By how much Kγ may be wrong at each point; ``coef`` holds |γ| at the points.

    >>> slope_errors(np.array([1.0, 2.0]), np.array([3.0, 1.0]), 0.1, single=False)
    array([0.5, 1. ])
    """
    terms = s * coef
    return tau * s * float(np.sqrt((terms**2).sum()) if single else terms.sum())
