r"""Kernel ridge regression by conjugate gradients, which multiply by K and never factorise it.

Solve     the systems of `ridge_systems`, with M = S K S + αI, by `conjugate_gradient`
Near      a factor of K of low rank, from `pivoted_cholesky`, makes the iterations few where α is small: for
          each different α the preconditioner of `precondition`
Stop      when every residual is at most tol times its right-hand side; the gap is the ‖ρ‖² of `ridge_systems`
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
from mercer.solvers.linear.ridge_systems import RidgeSystems

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
    systems = RidgeSystems(Y, alphas, weight, fit_intercept)
    if control.restored is not None:  # the budget, and with it the rank, may be another now
        rank = int(control.restored["rank"])
    if rank:
        inverses = _inverses(K, rank, weight, systems.shifts, control)
        if inverses is not None:
            options["precondition"] = [inverses[shift] for shift in systems.shifts]
    found = conjugate_gradient(
        lambda V: systems.root * (K @ (systems.root * V)),
        systems.right,
        shifts=systems.shifts,
        control=control,
        facts={"rank": rank},
        **options,
    )
    return systems.result(found.solution, found.residual, found)


def _inverses(
    K: Any, rank: int, weight: np.ndarray, shifts: np.ndarray, control: Control
) -> dict[float, Multiply] | None:
    """P for each α; None where the control stops the run before the factor is whole.

    A part of the factor would do as well now, but a run that is resumed could not have it again.
    """
    near = pivoted_cholesky(
        K, rank, random_state=0, weight=weight, stopped=lambda: control.stopped is not None
    )
    if near.is_cut:
        return None
    return {alpha: Damped(near.factor, near.residual, weight, alpha).solve for alpha in np.unique(shifts)}
