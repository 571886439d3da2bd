r"""The linear systems of kernel ridge regression, for solvers that come near their solution.

Minimise  Σᵢ wᵢ (yᵢ - f(xᵢ) - b)² + α ‖f‖²,   the problem of `ridge`, whose S, s and M = S K S + αI these are
Systems   M z = S y; with an intercept M v = s too, one more for each different α, and then b = sᵀz / sᵀv and
          z - b v
Bound     M z = S (y - b 1) - ρ, and sᵀz = 0 where there is a b, by its choice. If z and b are off by δ and β,
          Mδ + βs = -ρ, and the objective is ‖ρ‖² - α δᵀMδ ≤ ‖ρ‖² above its minimum
"""

from __future__ import annotations

import math

import numpy as np

from mercer.solvers.linear.ridge import RidgeResult
from mercer.solvers.result import Result


class RidgeSystems:
    """Right-hand sides and shifts, and the ridge regression that follows from what solves them.

    >>> systems = RidgeSystems(np.array([[1.0], [3.0]]), np.ones(1), np.ones(2), True)
    >>> systems.right, systems.shifts
    (array([[1., 1.], [3., 1.]]), array([1., 1.]))
    """

    def __init__(
        self,
        Y: np.ndarray,  # (n, t)
        alphas: np.ndarray,  # (t,) > 0
        weight: np.ndarray,  # (n,) > 0
        fit_intercept: bool,
    ) -> None:
        self.Y, self.alphas, self.weight, self.fit_intercept = Y, alphas, weight, fit_intercept
        self.root = np.sqrt(weight)[:, None]
        distinct, self.which = np.unique(alphas, return_inverse=True)
        #: (n, p) and (p,): those of the targets, then those of the intercepts
        self.right, self.shifts = self.root * Y, alphas
        if fit_intercept:
            self.right = np.hstack([self.right, np.repeat(self.root, len(distinct), axis=1)])
            self.shifts = np.concatenate([alphas, distinct])

    def result(
        self, solution: np.ndarray, residual: np.ndarray, run: Result, is_known: bool = True
    ) -> RidgeResult:
        """f for every target, of a solution (n, p) with its residual; the gap is NaN if that is not known."""
        t, root, alphas = self.Y.shape[1], self.root, self.alphas
        Z, rho, intercept = solution[:, :t], residual[:, :t], np.zeros(t)
        if self.fit_intercept:
            V = solution[:, t:][:, self.which]
            total = (root * V).sum(axis=0)
            # Before the first iteration there is nothing yet: the mean is the best constant then.
            intercept = np.where(total > 0, (root * Z).sum(axis=0), self.weight @ self.Y)
            intercept /= np.where(total > 0, total, self.weight.sum())
            Z, rho = Z - V * intercept, rho - residual[:, t:][:, self.which] * intercept
        errors = alphas * Z + rho
        fitted = root * (self.Y - intercept) - errors
        return RidgeResult(
            coef=root * Z,
            intercept=intercept,
            objective=(errors**2).sum(axis=0) + alphas * (Z * fitted).sum(axis=0),
            gap=float((rho**2).sum()) if is_known else math.nan,
            iterations=run.iterations,
            stopped=run.stopped,
        )
