r"""Kernel ridge regression on landmarks.

Minimise  Σᵢ wᵢ (yᵢ - f(xᵢ) - b)² + α ‖f‖²   over f = Σⱼ βⱼ k(zⱼ, ·) and b
Solve     (Φ̃ᵀWΦ̃ + αD) u = Φ̃ᵀWy,   u = (Tβ, b), D = 1 but 0 for b, by conjugate gradients, a pass over the rows
          each, most of them in single precision, with the Cholesky factor of the same matrix for some of
          the rows as preconditioner
Bound     with ρ the residual of u, whose last entry is zero by the choice of b, the objective is
          ρᵀ(Φ̃ᵀWΦ̃ + αD)⁻¹ρ ≤ ‖ρ‖²/α above its minimum on these landmarks
Cost      2 s M² for a sample of s rows, 10 to 20 M, M³/3, and n M kernel values per pass

Rudi, Carratino and Rosasco, FALKON: an optimal large scale kernel method, NIPS 2017; the preconditioner from
a sample of rows instead of the landmarks' own matrix holds for any choice of landmarks.
"""

from __future__ import annotations

import numpy as np

from mercer.solvers.control import Control
from mercer.solvers.landmarks.certificate import Accuracy, RestrictedMinimum, SquaredRisk, gaps
from mercer.solvers.landmarks.features import SLACK, Features
from mercer.solvers.landmarks.inner import Weighted
from mercer.solvers.linear.conjugate import conjugate_gradient
from mercer.solvers.result import Stop

__all__ = ["restricted_ridge"]

#: A gap that rounding keeps above the tolerance, relative to the objective, is small all the same up to this.
_CLOSE = 1e-3


def restricted_ridge(
    features: Features,
    Y: np.ndarray,  # (n, t)
    alpha: float,
    weight: np.ndarray,  # (n,) > 0
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
    control: Control | None = None,
    accuracy: Accuracy | None = None,
) -> RestrictedMinimum:
    """β and b for every target, under one penalty α > 0.

    ``tol`` is the gap allowed, relative to the objective.
    """
    W, diagonal, M = weight[:, None], features.penalty(alpha), features.basis.size
    near = features.inverse(features.square(weight, features.sample(weight), SLACK * alpha), alpha)
    sums = features.adjoint(np.hstack([W * Y, W]))
    right, of_ones = sums[:, :-1], sums[:M, -1:]
    length = (W * Y**2).sum(axis=0)
    F: np.ndarray = np.zeros(Y.shape)

    def product(U: np.ndarray) -> np.ndarray:
        # The last product of all columns is that with the solution.
        keeps = U.shape[1] == F.shape[1]
        found, _ = features.apply(U, Weighted(W, keeps), each=F.__setitem__ if keeps else None)
        return found + diagonal * U

    def enough(U: np.ndarray, residual: np.ndarray) -> np.ndarray:  # (t,)
        # The objective is Σ w y² - uᵀ(Φ̃ᵀWy + ρ).
        return np.sqrt(tol * alpha * np.maximum(length - (U * (right + residual)).sum(axis=0), 0.0))

    def rough(U: np.ndarray) -> np.ndarray:
        return features.apply(U, Weighted(W), is_rough=True)[0] + diagonal * U

    found = conjugate_gradient(
        product,
        right,
        max_iter=max_iter,
        precondition=near,
        rough=rough if features.is_rough_enough(weight, alpha) else None,
        control=control,
        enough=enough,
    )
    u, residual = found.solution, found.residual
    shift = residual[-1] / weight.sum() if features.fit_intercept else np.zeros(Y.shape[1])
    adjoint = 2 * (shift * of_ones - residual[:M] - alpha * u[:M])
    if features.fit_intercept:  # The best b for this w.
        u[-1] += shift
    F += shift
    risk = SquaredRisk(Y, weight)
    s = risk.gradient(F)
    _, gap, apart = gaps(features, risk, 2 * alpha, u, F, s, adjoint, accuracy or Accuracy())
    coef, intercept = features.split(u)
    objective = risk.value(F) + alpha * float((u[:M] ** 2).sum())
    gap = min(gap, objective + 2 * apart)
    is_lost = found.stopped == Stop.CONVERGED and gap > max(tol, _CLOSE) * objective
    return RestrictedMinimum(
        coef=coef,
        intercept=intercept,
        values=F,
        dual=s,
        dual_square=float((adjoint[:M] ** 2).sum()),
        objective=objective,
        gap=gap,
        passes=features.passes,
        iterations=found.iterations,
        stopped=Stop.ROUNDING if is_lost else found.stopped,
    )
