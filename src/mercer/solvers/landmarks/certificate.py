r"""How far from the minimum on its landmarks a function is, with the rounding of K(X, Z) in it.

Problem   J(w, b) = R(Φw + b) + (λ/2) ‖w‖²
Bound     for s = ∇R(F), whose sum is zero where there is a b: -R*(s) - ‖Φᵀs‖²/(2λ) ≤ min J, hence
              J - min J ≤ gap = ‖λw + Φᵀs‖² / (2λ)
Rounding  values of K are off by at most τ √(k(x, x) k(z, z)), so that the computed F is off by at most
              e = τ maxₓ √k(x, x) Σⱼ |βⱼ| √k(zⱼ, zⱼ)
          and the computed Φᵀs by at most  ε = ‖T⁻¹‖ τ Σᵢ |sᵢ| √k(xᵢ, xᵢ) √(Σⱼ k(zⱼ, zⱼ)). For the true J
              J - min J ≤ (‖λw + Φᵀs‖ + ε)² / (2λ) + max [R(F - Δ) - R(F) + ⟨s, Δ⟩] over all |Δᵢ| ≤ e
          and for the computed one the last term is replaced by e Σ |sᵢ|. The stated gap holds for both, with
          (λ/2) (τ + M units) (Σⱼ |βⱼ| √k(zⱼ, zⱼ))² added for what is between ‖w‖² and ‖f‖² = βᵀK_MM β. Where
          R ≥ lowest, it is never more than J - lowest, and what rounding may do to R beside.
Beyond    the minimum over all functions of the RKHS is at least -R*(s) - sᵀKs/(2λ): what was said holds for
          it too, with (sᵀKs - ‖Φᵀs‖²) / (2λ) added, K being the matrix of all points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.lapack import dtrtri

from mercer.solvers.landmarks.basis import Basis
from mercer.solvers.landmarks.features import Features
from mercer.solvers.result import Minimum

__all__ = ["Accuracy", "RestrictedMinimum", "SquaredRisk", "gaps"]


@dataclass(frozen=True, eq=False, kw_only=True)
class RestrictedMinimum(Minimum):
    """f on the landmarks, or m functions."""

    #: (M, m): β
    coef: np.ndarray
    #: (m,): b
    intercept: np.ndarray
    #: (n, m): F = Φw + b
    values: np.ndarray
    #: (n, m): s, a point of the dual problem
    dual: np.ndarray
    #: ‖Φᵀs‖², summed over the functions
    dual_square: float
    #: passes over the rows
    passes: int


@dataclass(frozen=True)
class Accuracy:
    """What is known of the rounding of K(X, Z)."""

    #: τ
    values: float = 0.0
    #: maxₓ √k(x, x)
    largest: float = 1.0
    #: (M,) √k(z, z)
    landmarks: np.ndarray | float = 1.0
    #: τ of K(Z, Z), which is computed in float64
    own: float = 0.0

    def of_values(self, beta: np.ndarray) -> np.ndarray:  # (m,)
        """e, for each function."""
        sizes = np.broadcast_to(self.landmarks, len(beta))
        return self.values * self.largest * (sizes @ np.abs(beta))

    def of_square(self, beta: np.ndarray) -> float:
        """By how much ‖w‖² and βᵀK_MM β may differ, summed over the functions."""
        if self.values == 0.0:
            return 0.0
        sizes = np.broadcast_to(self.landmarks, len(beta))
        factor = self.own + len(beta) * float(np.finfo(np.float64).eps)
        return factor * float(((sizes @ np.abs(beta)) ** 2).sum())

    def of_features(self, basis: Basis, s: np.ndarray) -> float:
        """ε, for all functions together."""
        if self.values == 0.0:
            return 0.0
        inverse = dtrtri(basis.T, lower=0)[0]
        sizes = np.broadcast_to(self.landmarks, basis.size)
        # Of an upper triangular T⁻¹ the Frobenius norm bounds the spectral one.
        norm = float(np.linalg.norm(np.triu(inverse)))
        total = float(np.linalg.norm(np.abs(s).sum(axis=0)))
        return norm * self.values * self.largest * total * float(np.linalg.norm(sizes))


class SquaredRisk:
    """R(F) = Σᵢ wᵢ ‖yᵢ - Fᵢ‖², for several targets.

    >>> risk = SquaredRisk(np.array([[1.0], [3.0]]), np.array([1.0, 2.0]))
    >>> risk.value(np.zeros((2, 1))), risk.gradient(np.zeros((2, 1))).ravel()
    (19.0, array([ -2., -12.]))
    """

    lowest = 0.0

    def __init__(self, Y: np.ndarray, weight: np.ndarray) -> None:  # (n, m), (n,)
        self.Y, self.weight = Y, weight[:, None]

    def value(self, F: np.ndarray) -> float:
        return float((self.weight * (self.Y - F) ** 2).sum())

    def gradient(self, F: np.ndarray) -> np.ndarray:
        return 2.0 * self.weight * (F - self.Y)

    def excess(self, F: np.ndarray, e: np.ndarray, s: np.ndarray) -> float:
        """R(F + Δ) - R(F) - ⟨s, Δ⟩ = Σ w Δ² is at most this."""
        return float((self.weight * e**2).sum())


def gaps(
    features: Features,
    risk: Any,
    penalty: float,
    u: np.ndarray,  # (M + 1, m)
    F: np.ndarray,  # (n, m), with the best b
    s: np.ndarray,  # (n, m) = ∇R(F)
    adjoint: np.ndarray,  # (M + 1, m) = Φ̃ᵀs
    accuracy: Accuracy,
) -> tuple[float, float, float]:
    """The gap at (u, F), as if there were no rounding, and with it; and what the rounding of F does to it."""
    M = features.basis.size
    length = float(np.linalg.norm(penalty * u[:M] + adjoint[:M]))
    plain = length**2 / (2 * penalty)
    if accuracy.values == 0.0:
        return plain, plain, 0.0
    beta, _ = features.split(u)
    e = np.broadcast_to(accuracy.of_values(beta), F.shape)
    is_flat = not (isinstance(risk, SquaredRisk) or hasattr(risk, "n_classes"))
    given = [array[:, 0] if is_flat else array for array in (F, e, s)]
    apart = max(risk.excess(*given), float((np.abs(s) * e).sum()))
    apart += 0.5 * penalty * accuracy.of_square(beta)
    return plain, (length + accuracy.of_features(features.basis, s)) ** 2 / (2 * penalty) + apart, apart
