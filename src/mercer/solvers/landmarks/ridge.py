r"""Kernel ridge regression on landmarks.

Minimise  Σᵢ wᵢ (yᵢ - f(xᵢ) - b)² + α ‖f‖²   over f = Σⱼ βⱼ k(zⱼ, ·) and b
Solve     (Φ̃ᵀWΦ̃ + αD) u = Φ̃ᵀWy,   u = (Tβ, b), D = 1 but 0 for b, by conjugate gradients, a pass over the rows
          each, with the Cholesky factor of the same matrix for some of the rows as preconditioner
Bound     with ρ the residual of u, whose last entry is zero by the choice of b, the objective is
          ρᵀ(Φ̃ᵀWΦ̃ + αD)⁻¹ρ ≤ ‖ρ‖²/α above its minimum on these landmarks
Cost      s M² for a sample of s = 10 M rows, M³/3, and n M kernel values per pass

Rudi, Carratino and Rosasco, FALKON: an optimal large scale kernel method, NIPS 2017; the preconditioner from
a sample of rows instead of the landmarks' own matrix holds for any choice of landmarks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.solvers.control import Control
from mercer.solvers.landmarks.features import Features
from mercer.solvers.linear.conjugate import conjugate_gradient
from mercer.solvers.result import Minimum

__all__ = ["RestrictedRidge", "restricted_ridge"]


@dataclass(frozen=True, eq=False, kw_only=True)
class RestrictedRidge(Minimum):
    """f on the landmarks, for every target."""

    #: (M, t): β
    coef: np.ndarray
    #: (t,): b
    intercept: np.ndarray
    #: (n, t): y - f(x) - b
    errors: np.ndarray


def restricted_ridge(
    features: Features,
    Y: np.ndarray,  # (n, t)
    alpha: float,
    weight: np.ndarray,  # (n,) > 0
    *,
    tol: float = 1e-8,
    max_iter: int = 1000,
    control: Control | None = None,
) -> RestrictedRidge:
    """β and b for every target, under one penalty α > 0.

    ``tol`` is the residual allowed, relative to that of u = 0.
    """
    W = weight[:, None]
    diagonal = features.penalty(alpha)
    right = features.adjoint(W * Y)
    near = features.inverse(features.square(weight, features.sample()), alpha)

    def product(U: np.ndarray) -> np.ndarray:
        total, _ = features.apply(U, lambda rows, F: (W[rows] * F, 0.0))
        return total + diagonal * U

    found = conjugate_gradient(product, right, tol=tol, max_iter=max_iter, precondition=near, control=control)
    u = found.solution
    errors = Y - features.values(u)
    if features.fit_intercept:  # the best b for this w
        shift = (weight @ errors) / weight.sum()
        u[-1] += shift
        errors -= shift
    residual = features.adjoint(W * errors) - diagonal * u
    coef, intercept = features.split(u)
    square = (u[: features.basis.size] ** 2).sum()
    return RestrictedRidge(
        coef=coef,
        intercept=intercept,
        errors=errors,
        objective=float((W * errors**2).sum()) + alpha * float(square),
        gap=float((residual[: features.basis.size] ** 2).sum()) / alpha,
        iterations=found.iterations,
        stopped=found.stopped,
    )
