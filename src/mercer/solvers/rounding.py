r"""What the rounding of kernel values may do to a solution: to its values Kγ, and to γᵀKγ.

A computed K̂ = K + E has |Eᵢⱼ| ≤ τ sᵢsⱼ, with sᵢ² = k(xᵢ, xᵢ) and τ a few units in the last place: for ⟨x, x'⟩
of d columns τ = (d + 2)u by Cauchy's inequality. The value (Kγ)ᵢ, and with it the slope cᵢ - (Kγ)ᵢ of a
variable of a quadratic program, is then known to within

    float64     eᵢ = τ sᵢ Σⱼ sⱼ|γⱼ|            for certain
    float32     eᵢ = τ sᵢ √(Σⱼ sⱼ²γⱼ²)         for errors that are independent of each other

The first would be thousands of times too large for single precision, where sums have many terms whose errors
cancel; there the errors are taken as the independent numbers that they look like. γᵀKγ is known to within
Σᵢ |γᵢ| eᵢ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

_SAMPLE = 16  # rows that are looked at where the diagonal does not tell the size of K


def sizes(K: Any, diag: np.ndarray) -> np.ndarray:  # (n,)
    """sᵢ with |Kᵢⱼ| ≤ sᵢsⱼ, about: √|k(xᵢ, xᵢ)|; where some are no squared norms, at least √max|K|."""
    s = np.sqrt(np.abs(diag))
    if (diag < 0).any() or (len(diag) and not diag.any()):
        some = np.unique(np.linspace(0, len(diag) - 1, min(len(diag), _SAMPLE)).astype(np.int64))
        rows = K[some] if isinstance(K, np.ndarray) else K.rows(some)
        s = np.maximum(s, np.sqrt(np.abs(rows).max(axis=0)))
    return s


def slope_errors(s: np.ndarray, coef: np.ndarray, tau: float, single: bool) -> np.ndarray:  # (n,)
    """How far Kγ may be wrong at each point; ``coef`` holds |γ| at the points.

    >>> slope_errors(np.array([1.0, 2.0]), np.array([3.0, 1.0]), 0.1, single=False)
    array([0.5, 1. ])
    """
    terms = s * coef
    return tau * s * float(np.sqrt((terms**2).sum()) if single else terms.sum())


@dataclass(frozen=True)
class Blur:
    """What the rounding of K adds to a gap, of an objective R(F) + (λ/2) αᵀKα; see ``objective``.

    >>> Blur(computed=0.5, true=2.0, rise=0.1).gap(1.0, most=1.2)
    1.3
    """

    #: where the objective is the computed one
    computed: float = 0.0
    #: where it is the true one; and how far that may be above the computed one
    true: float = 0.0
    rise: float = 0.0

    @property
    def most(self) -> float:
        return max(self.computed, self.true)

    def gap(self, gap: float, most: float) -> float:
        """The gap that holds for both; ``most`` is how far the objective is above a bound without any K."""
        return max(min(gap + self.computed, most), min(gap + self.true, most + self.rise))


def allowed(tol: float, noise: float) -> float:
    """The gap at which a run may end: with what rounding adds it is ``tol``, where that is possible.

    Rounding that adds more than half of it is left to be told: K as it was computed is all there is to solve.

    >>> allowed(1e-6, 1e-7), allowed(1e-6, 1.0)
    (9e-07, 5e-07)
    """
    return max(tol - noise, 0.5 * tol)


class Rounding:
    """How far products with K may be off, K being known to within ``tau``; see the module.

    With τ = 0 the matrix is taken for what it is, and nothing is asked of it.

    >>> rounding = Rounding(np.diag([1.0, 4.0]), 0.1)
    >>> rounding.values(np.array([3.0, -1.0])), round(rounding.square(np.array([3.0, -1.0])), 12)
    (array([0.5, 1. ]), 2.5)
    """

    def __init__(self, K: Any, tau: float) -> None:
        self.tau = float(tau)
        self.single = K.dtype == np.float32
        self.sizes = np.empty(0)
        if self.tau > 0:
            diag = K.diagonal() if isinstance(K, np.ndarray) else K.diag()
            self.sizes = sizes(K, np.asarray(diag, dtype=np.float64)).astype(np.float64)

    def values(self, coef: np.ndarray) -> np.ndarray:  # (n,) or (n, m)
        """eᵢ ≥ |(K̂α - Kα)ᵢ|, for every column of α."""
        if not self.tau > 0:
            return np.zeros_like(coef)
        if coef.ndim == 1:
            return slope_errors(self.sizes, np.abs(coef), self.tau, self.single)
        return np.column_stack([self.values(column) for column in coef.T])

    def square(self, coef: np.ndarray) -> float:
        """A bound of |αᵀK̂α - αᵀKα|, summed over the columns of α."""
        return float((np.abs(coef) * self.values(coef)).sum())

    def blur(self, risk: Any, penalty: float, coef: np.ndarray, F: np.ndarray, s: np.ndarray) -> Blur:
        """What rounding adds to the gap between α with the values F and the point s of the dual problem."""
        if not self.tau > 0:
            return Blur()
        e, r = self.values(coef), penalty * coef + s
        with np.errstate(over="ignore"):  # A loss that grows without bound may be infinite.
            excess = risk.excess(F, e, s)
        return Blur(
            computed=self.square(s) / (2 * penalty),
            true=self.square(r) / (2 * penalty) + excess,
            rise=excess + float((np.abs(s) * e).sum()) + 0.5 * penalty * self.square(coef),
        )
