r"""Kernel ridge regression by conjugate gradients, which multiply by K and never factorise it.

Minimise  Σᵢ wᵢ (yᵢ - f(xᵢ) - b)² + α ‖f‖²,   the problem of `ridge`, whose S, s and M = S K S + αI these are
Solve     M z = S y by `conjugate_gradient`; with an intercept M v = s too, one more system for each
          different α, and then b = sᵀz / sᵀv and z - b v
Near      a factor of K of low rank, from `pivoted_cholesky`, makes the iterations few where α is small: for
          each different α the preconditioner of `precondition`
Bound     M z = S (y - b 1) - ρ, and sᵀz = 0 where there is a b, by its choice. If z and b are off by δ and β,
          Mδ + βs = -ρ, and the objective is ‖ρ‖² - α δᵀMδ ≤ ‖ρ‖² above its minimum
Cost      a product with K per iteration, and none afterwards: values follow from z and ρ
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.solvers.control import Control
from mercer.solvers.landmarks.pivots import pivoted_cholesky
from mercer.solvers.linear.conjugate import Multiply, conjugate_gradient
from mercer.solvers.linear.precondition import Damped
from mercer.solvers.linear.ridge import RidgeResult

__all__ = ["iterated_ridge"]


def iterated_ridge(
    K: Any,  # (n, n), known by K @ V
    Y: np.ndarray,  # (n, t)
    alphas: np.ndarray,  # (t,) > 0
    weight: np.ndarray,  # (n,) > 0
    fit_intercept: bool = True,
    *,
    rank: int = 0,
    control: Control | None = None,
    **options: Any,
) -> RidgeResult:
    """f for every target; ``options`` are those of `conjugate_gradient`.

    ``rank`` is that of the factor, for which K must have diag, block and rows; 0 for none. Its pivots are
    random, the same in every run.

    >>> K = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> result = iterated_ridge(K, np.array([[1.0], [0.0]]), np.ones(1), np.ones(2), fit_intercept=False)
    >>> result.coef.ravel(), result.stopped  # (K + I)⁻¹ y
    (array([ 0.375, -0.125]), 'converged')
    """
    control = Control() if control is None else control
    root, t = np.sqrt(weight)[:, None], Y.shape[1]
    distinct, which = np.unique(alphas, return_inverse=True)
    right, shifts = root * Y, alphas
    if fit_intercept:
        right = np.hstack([right, np.repeat(root, len(distinct), axis=1)])
        shifts = np.concatenate([alphas, distinct])
    if control.restored is not None:  # the budget, and with it the rank, may be another now
        rank = int(control.restored["rank"])
    if rank:
        inverses = _inverses(K, rank, weight, distinct, control)
        if inverses is not None:
            options["precondition"] = [inverses[shift] for shift in shifts]
    found = conjugate_gradient(
        lambda V: root * (K @ (root * V)),
        right,
        shifts=shifts,
        control=control,
        facts={"rank": rank},
        **options,
    )
    Z, residual, intercept = found.solution[:, :t], found.residual[:, :t], np.zeros(t)
    if fit_intercept:
        V = found.solution[:, t:][:, which]
        total = (root * V).sum(axis=0)
        # Before the first iteration there is nothing yet: the mean is the best constant then.
        intercept = np.where(total > 0, (root * Z).sum(axis=0), weight @ Y)
        intercept /= np.where(total > 0, total, weight.sum())
        Z = Z - V * intercept
        residual = residual - found.residual[:, t:][:, which] * intercept
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


def _inverses(
    K: Any, rank: int, weight: np.ndarray, alphas: np.ndarray, control: Control
) -> dict[float, Multiply] | None:
    """P for each α; None where the control stops the run before the factor is whole.

    A part of the factor would do as well now, but a run that is resumed could not have it again.
    """
    near = pivoted_cholesky(
        K, rank, random_state=0, weight=weight, stopped=lambda: control.stopped is not None
    )
    if near.is_cut:
        return None
    return {alpha: Damped(near.factor, near.residual, weight, alpha).solve for alpha in alphas}
