r"""Kernel ridge regression by conjugate gradients, which multiply by K and never factorise it.

Minimise  Σᵢ wᵢ (yᵢ - f(xᵢ) - b)² + α ‖f‖²,   the problem of `ridge`, whose S, s and M = S K S + αI these are
Solve     M z = S y by `conjugate_gradient`; with an intercept M v = s too, one more system for each target,
          and then b = sᵀz / sᵀv and z - b v
Bound     M z = S (y - b 1) - ρ, and sᵀz = 0 where there is a b, by its choice. If z and b are off by δ and β,
          Mδ + βs = -ρ, and the objective is ‖ρ‖² - α δᵀMδ ≤ ‖ρ‖² above its minimum
Cost      a product with K per iteration, and none afterwards: values follow from z and ρ
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.solvers.linear.conjugate import conjugate_gradient
from mercer.solvers.linear.ridge import RidgeResult

__all__ = ["iterated_ridge"]


def iterated_ridge(
    K: Any,  # (n, n), known by K @ V
    Y: np.ndarray,  # (n, t)
    alphas: np.ndarray,  # (t,) > 0
    weight: np.ndarray,  # (n,) > 0
    fit_intercept: bool = True,
    **options: Any,
) -> RidgeResult:
    """f for every target; ``options`` are those of `conjugate_gradient`.

    >>> K = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> result = iterated_ridge(K, np.array([[1.0], [0.0]]), np.ones(1), np.ones(2), fit_intercept=False)
    >>> result.coef.ravel(), result.stopped  # (K + I)⁻¹ y
    (array([ 0.375, -0.125]), 'converged')
    """
    root, t = np.sqrt(weight)[:, None], Y.shape[1]
    right, shifts = root * Y, alphas
    if fit_intercept:
        right, shifts = np.hstack([right, np.repeat(root, t, axis=1)]), np.tile(alphas, 2)
    found = conjugate_gradient(lambda V: root * (K @ (root * V)), right, shifts=shifts, **options)
    Z, residual, intercept = found.solution[:, :t], found.residual[:, :t], np.zeros(t)
    if fit_intercept:
        V = found.solution[:, t:]
        total = (root * V).sum(axis=0)
        # Before the first iteration there is nothing yet: the mean is the best constant then.
        intercept = np.where(total > 0, (root * Z).sum(axis=0), weight @ Y)
        intercept /= np.where(total > 0, total, weight.sum())
        Z, residual = Z - V * intercept, residual - found.residual[:, t:] * intercept
    errors = alphas * Z + residual
    fitted = root * (Y - intercept) - errors
    return RidgeResult(
        coef=root * Z,
        intercept=intercept,
        objective=(errors**2).sum(axis=0) + alphas * (Z * fitted).sum(axis=0),
        gap=float((residual**2).sum()),
        iterations=found.iterations,
        stopped=found.stopped,
    )
