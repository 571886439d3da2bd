r"""Gradient descent for regularised risks, as the lecture has it.

Minimise  J(α, b) = R(F) + (λ/2) αᵀKα,   F = Kα + b, as in ``objective``; from there come the gradient
          r = λα + ∇R(F), the best b and the bound J - min J ≤ gap = rᵀKr / (2λ)
Update    α -= η r,   b -= η Σᵢ ∇R(F)ᵢ,   η = 1/L,   L = (the largest curvature of R) · λmax(K + 11ᵀ) + λ
          (without the 11ᵀ when there is no b); η is halved where it lowers J by less than it should. Or
          Nesterov's: the same from a point ahead on the line through the last two, with a restart when
          that leads uphill.
Stop      when gap ≤ tol · |J|, which is looked at, with the best b, every few updates
Cost      one product with K per update; L/λ · log(1/tol) updates, or √(L/λ) · log(1/tol) of Nesterov's

Nesterov, A method of solving a convex programming problem with convergence rate O(1/k²), Soviet Mathematics
Doklady 27 (1983), 372-376. Restarts: O'Donoghue and Candès, Adaptive restart for accelerated gradient
schemes, Foundations of Computational Mathematics 15 (2015), 715-732.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.solvers.control import Control, State
from mercer.solvers.matrix import SquareMatrix
from mercer.solvers.result import Stop
from mercer.solvers.risk.objective import EPS, DescentResult, Objective, Point, Risk

_CHECK = 10  # updates between two certificates, which cost a product


@np.errstate(over="ignore", invalid="ignore")
def descend(
    K: SquareMatrix,  # (n, n)
    risk: Risk,
    penalty: float,
    *,
    fit_intercept: bool = True,
    n_functions: int | None = None,
    tol: float = 1e-6,
    max_iter: int = 10_000,
    start: tuple[Any, Any] | None = None,
    control: Control | None = None,
    step_size: float | None = None,
    accelerate: bool = False,
    rounding: float = 0.0,
) -> DescentResult:
    """Minimise R(Kα + b) + (penalty/2) Σ αᵀKα by gradient descent.

    The arguments are those of ``newton``, and

    step_size : η to begin with; by default 1/L, from ``risk.smoothness``, a bound of the curvature, where the
        risk has one, else from the curvature at the start
    accelerate : whether to take Nesterov's updates

    >>> from mercer.solvers.risk.logistic import LogisticRisk
    >>> result = descend(np.eye(2), LogisticRisk(np.array([1.0, -1.0])), 0.5)
    >>> result.coef.round(3), result.stopped  # λα = 1/(1 + exp(α)) for the first
    (array([ 0.675, -0.675]), 'converged')
    """
    control = Control() if control is None else control
    problem = Objective(K, risk, penalty, fit_intercept, n_functions, rounding)
    run = _Descent(problem, step_size, accelerate)
    if control.restored is not None:
        run.restore(control.restored)
    else:
        run.begin(start)
    stopped: Stop | None = None
    rounded = False
    while not stopped:
        if run.iterations % _CHECK == 0:
            point = problem.at(run.coef, run.G, run.b, fresh=False)
            run.note(point)
            if problem.is_met(point, tol):
                fresh = problem.refreshed(point)
                if problem.is_met(fresh, tol):
                    stopped = Stop.CONVERGED
                    break
                run.continue_from(fresh)
            if run.stalled >= 5:
                stopped, rounded = Stop.CONVERGED, True
                break
        if run.iterations >= max_iter or control.stopped:
            stopped = control.stopped or Stop.MAX_ITER
        else:
            run.update()
            control.step(run.snapshot(), gap=run.history[-1])
    point = problem.refreshed(problem.at(run.coef, run.G, run.b, fresh=False))
    if problem.is_met(point, tol):
        stopped = Stop.CONVERGED  # whatever the clock says, between two looks at the gap too
    return problem.result(point, stopped, rounded, run.iterations, run.history, tol)


class _Descent:
    """The last two points (α, Kα, b), and the step; arrays are replaced, never written."""

    def __init__(self, problem: Objective, step_size: float | None, accelerate: bool) -> None:
        self.problem = problem
        self.accelerate = accelerate
        self.step_size = step_size if step_size is not None else math.nan
        self.iterations = 0
        #: Nesterov's t: how far ahead to look
        self.momentum = 1.0
        self.history: list[float] = []
        self.lowest = math.inf
        #: certificates in a row that showed no progress
        self.stalled = 0

    def begin(self, start: tuple[Any, Any] | None) -> None:
        point = self.problem.begin(start)
        if math.isnan(self.step_size):
            self.step_size = 1.0 / self.steepness(point)
        self.continue_from(point)

    def continue_from(self, point: Point) -> None:
        self.coef, self.G, self.b = self.coef_0, self.G_0, self.b_0 = point.coef, point.G, point.b
        self.momentum = 1.0

    def steepness(self, point: Point) -> float:
        """L, by power iteration; a little above, since the iteration comes from below."""
        bound = getattr(self.problem.risk, "smoothness", None)
        H = self.problem.risk.curvature(point.F)
        apply = H if self.problem.m is not None else lambda V: H * V
        V = np.cos(np.arange(point.F.size, dtype=float)).reshape(point.F.shape)
        size = 0.0
        for _ in range(20):
            length = float(np.linalg.norm(V))
            if length == 0:
                break
            V = V / length
            W = self.problem.product(V)
            if self.problem.fit_intercept:
                W = W + V.sum(axis=0)
            V = W if bound is not None else apply(W)
            size = float(np.linalg.norm(V))
        return 1.1 * size * (1.0 if bound is None else bound) + self.problem.penalty

    def update(self) -> None:
        problem, penalty = self.problem, self.problem.penalty
        t = 0.5 * (1 + math.sqrt(1 + 4 * self.momentum**2))
        ahead = (self.momentum - 1) / t if self.accelerate else 0.0
        coef = self.coef + ahead * (self.coef - self.coef_0)
        G = self.G + ahead * (self.G - self.G_0)
        b = self.b + ahead * (self.b - self.b_0)
        gradient = problem.risk.gradient(G + b)
        r, total = penalty * coef + gradient, gradient.sum(axis=0) * problem.fit_intercept
        K_r = problem.product(r)
        square = problem.product.form(r, K_r) + float((total * total).sum())
        here = self.value(coef, G, b)
        for _ in range(60):
            new = coef - self.step_size * r, G - self.step_size * K_r, b - self.step_size * total
            there = self.value(*new)
            if there <= here - 0.5 * self.step_size * square + 8 * EPS * abs(here):
                break
            self.step_size *= 0.5
        uphill = float((K_r * (new[0] - self.coef)).sum()) + float((total * (new[2] - self.b)).sum()) > 0
        self.momentum = 1.0 if uphill else t
        self.coef_0, self.G_0, self.b_0 = self.coef, self.G, self.b
        self.coef, self.G, self.b = new
        self.iterations += 1

    def value(self, coef: np.ndarray, G: np.ndarray, b: Any) -> float:
        return float(self.problem.risk.value(G + b)) + 0.5 * self.problem.penalty * float((coef * G).sum())

    def note(self, point: Point) -> None:
        lowest = min(self.history, default=math.inf)
        better = point.gap < 0.99 * lowest or point.objective < self.lowest - 8 * EPS * abs(point.objective)
        self.stalled = 0 if better else self.stalled + 1
        self.lowest = min(self.lowest, point.objective)
        self.history.append(point.gap)

    _KEPT = (
        "coef", "G", "b", "coef_0", "G_0", "b_0", "momentum", "step_size", "lowest", "stalled", "iterations"
    )  # fmt: skip

    def snapshot(self) -> Callable[[], State]:
        state: State = {name: getattr(self, name) for name in self._KEPT}
        state |= {"history": np.array(self.history), "products": self.problem.product.count}
        state["norm"] = self.problem.product.norm
        return lambda: state

    def restore(self, state: State) -> None:
        for name in self._KEPT:
            setattr(self, name, state[name])
        self.history = list(state["history"])
        self.problem.product.count, self.problem.product.norm = state["products"], state["norm"]
