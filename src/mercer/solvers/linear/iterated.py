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
from mercer.solvers.landmarks.pivots import PivotedFactor, pivoted_cholesky
from mercer.solvers.linear.conjugate import Multiply, conjugate_gradient
from mercer.solvers.linear.precondition import Damped
from mercer.solvers.linear.ridge import RidgeResult
from mercer.solvers.linear.ridge_systems import RidgeSystems
from mercer.solvers.matrix import SquareMatrix

#: Products in single precision serve α down to so many times ‖K‖; below it they cost more than they save.
_ROUNDING = 10 * float(np.finfo(np.float32).eps)
#: Products that tell a norm.
_POWERS = 8


def iterated_ridge(
    K: Any,  # (n, n), known by K @ V
    Y: np.ndarray,  # (n, t)
    alphas: np.ndarray,  # (t,) > 0
    weight: np.ndarray,  # (n,) > 0
    fit_intercept: bool = True,
    *,
    rank: int = 0,
    rough: Any = None,
    control: Control | None = None,
    **options: Any,
) -> RidgeResult:
    """f for every target; ``options`` are those of `conjugate_gradient`.

    ``rank`` is that of the factor, for which K must have diag, block and rows; 0 for none. Its pivots are
    random, the same in every run. ``rough`` is K in single precision, whose products take less time.

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
        near = pivoted_cholesky(
            K, rank, random_state=0, weight=weight, stopped=lambda: control.stopped is not None
        )
        if not near.is_cut:  # A part of it would do as well, but a resumed run could not have it again.
            inverses = {alpha: _inverse(near, weight, alpha) for alpha in np.unique(systems.shifts)}
            options["precondition"] = [inverses[shift] for shift in systems.shifts]
            if rough is not None and _ROUNDING * _norm(near.factor, weight) > systems.shifts.min():
                rough = None

    def product_with(K: SquareMatrix) -> Multiply:
        return lambda V: systems.root * (K @ (systems.root * V))

    found = conjugate_gradient(
        product_with(K),
        systems.right,
        rough=None if rough is None else product_with(rough),
        shifts=systems.shifts,
        control=control,
        facts={"rank": rank},
        **options,
    )
    return systems.result(found.solution, found.residual, found)


def _inverse(near: PivotedFactor, weight: np.ndarray, alpha: float) -> Multiply:
    """V ↦ B⁻¹V, by what has the factor: the device where it is, or else our threads."""
    if hasattr(near.factor, "inverse"):
        return near.factor.inverse(near.residual, weight, alpha)
    return Damped(near.factor, near.residual, weight, alpha).solve


def _norm(L: Any, weight: np.ndarray) -> float:  # (n, rank), (n,)
    """‖SLLᵀS‖ = ‖LᵀWL‖, from below and to within a tenth or so."""
    if hasattr(L, "norm"):
        return float(L.norm(weight))
    v = np.ones(L.shape[1])
    for _ in range(_POWERS):
        v = L.T @ (weight * (L @ (v / np.linalg.norm(v))))
    return float(np.linalg.norm(v))
