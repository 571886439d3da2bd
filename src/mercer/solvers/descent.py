r"""Regularised risks: the gradient in the RKHS, how far from the minimum a function is, and gradient descent.

Minimise  J(α, b) = R(F) + (λ/2) αᵀKα,   F = Kα + b   the values of f = Σᵢ αᵢ k(xᵢ, ·) + b at the points
Given     K, positive semi-definite, as an array or as products K @ V; λ > 0; R, convex and differentiable
          in F; b = 0 unless there is an intercept. With m functions, F and α are (n, m), b is (m,), and αᵀKα
          is summed over them.
Gradient  r = λα + ∇R(F): the gradient of J in the RKHS is Σᵢ rᵢ k(xᵢ, ·), and that in b is Σᵢ ∇R(F)ᵢ
Bound     with the best b for f, J̃(f) = min_b J is λ-strongly convex in f:   J - min J ≤ gap = rᵀKr / (2λ)
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
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mercer.errors import InputError
from mercer.solvers.conjugate import Products
from mercer.solvers.control import Control, State

__all__ = [
    "DescentResult",
    "Point",
    "Problem",
    "Risk",
    "best_intercept",
    "descend",
    "line_search",
    "shift_hessian",
]

EPS = float(np.finfo(np.float64).eps)
_CHECK = 10  # updates between two certificates, which cost a product


class Risk(Protocol):
    """R(F), convex and differentiable in the values F, (n,) of one function or (n, m) of m functions.

    It may also have ``smoothness``, a bound of the curvature, and ``lowest``, a number with R(F) ≥ lowest.
    """

    def value(self, F: np.ndarray) -> float:
        """R(F)."""

    def gradient(self, F: np.ndarray) -> np.ndarray:
        """∇R(F), of the shape of F."""

    def curvature(self, F: np.ndarray) -> Any:
        """(n,) second derivatives ≥ 0 for F (n,); for F (n, m) the function V ↦ HV, (n, m) to (n, m)."""


@dataclass(frozen=True, eq=False)
class DescentResult:
    """What was found, and how far it is from the minimum."""

    #: (n,) or (n, m): α
    coef: np.ndarray
    #: b, or (m,)
    intercept: Any
    #: (n,) or (n, m): F = Kα + b
    values: np.ndarray
    #: J
    objective: float
    #: rᵀKr / (2λ) ≥ J - min J
    gap: float
    iterations: int
    #: "converged", "rounding", "max_iter", "max_time" or "interrupted"
    stopped: str
    #: whether rounding ended the run before tol was reached; it still counts as converged if gap ≤ 1e-3 |J|
    rounded: bool
    #: products K @ V
    products: int
    #: the gap at the start, and whenever it was computed after that
    history: np.ndarray


@dataclass(frozen=True, eq=False)
class Point:
    """α, b, and what is known there; its arrays are never written again."""

    coef: np.ndarray
    #: Kα
    G: np.ndarray
    b: Any
    F: np.ndarray
    #: λα + ∇R(F)
    r: np.ndarray
    Kr: np.ndarray
    risk: float
    #: αᵀKα
    square: float
    objective: float
    gap: float
    #: whether G was multiplied out, not added up
    fresh: bool


class Problem:
    """J: its value, gradient and certificate at a point."""

    def __init__(
        self, K: Any, risk: Risk, penalty: float, fit_intercept: bool, n_functions: int | None
    ) -> None:
        if not (math.isfinite(penalty) and penalty > 0):
            raise InputError(f"penalty must be positive, got {penalty!r}: pass a positive number")
        self.n = K.shape[0]
        self.m = n_functions
        self.risk = risk
        self.penalty = float(penalty)
        self.fit_intercept = fit_intercept
        self.product = Products(K)
        self.shape = (self.n,) if n_functions is None else (self.n, n_functions)
        self.scale = abs(float(risk.value(np.zeros(self.shape))))

    def begin(self, start: tuple[Any, Any] | None) -> Point:
        shape = self.shape
        if start is None:
            coef, b, G = np.zeros(shape), np.zeros(shape[1:]), np.zeros(shape)
        else:
            coef = np.array(start[0], dtype=np.float64)
            b = np.array(start[1], dtype=np.float64) * np.ones(shape[1:])
            if coef.shape != shape or b.shape != shape[1:]:
                raise InputError(
                    f"start must hold coefficients of shape {shape} and an intercept of shape {shape[1:]}, "
                    f"got {coef.shape} and {b.shape}: pass the coef and intercept of an earlier result"
                )
            G = self.product(coef)
        point = self.at(coef, G, b if self.fit_intercept else np.zeros(shape[1:]), fresh=True)
        if math.isfinite(point.objective):
            return point
        raise InputError("the objective is not finite at the start: scale the data, or the targets")

    def at(self, coef: np.ndarray, G: np.ndarray, b: Any, fresh: bool) -> Point:
        """The point with the best b for this f, and its certificate; none where numbers overflow."""
        if self.fit_intercept:
            b = best_intercept(self.risk, G, b)
        F = G + b
        risk, gradient = float(self.risk.value(F)), self.risk.gradient(F)
        r = self.penalty * coef + gradient
        square = self.product.form(coef, G)
        objective = risk + 0.5 * self.penalty * square
        if not (math.isfinite(objective) and math.isfinite(float((r * r).sum()))):
            return Point(coef, G, b, F, r, r, risk, square, math.inf, math.inf, fresh)
        Kr = self.product(r)
        gap = self.product.form(r, Kr) / (2 * self.penalty)
        if self.fit_intercept and not _is_best(gradient, b, self.scale):
            gap = math.inf  # the bound holds for the best b only
        return Point(coef, G, b, F, r, Kr, risk, square, objective, gap, fresh)

    def refreshed(self, point: Point) -> Point:
        """The same f, its values multiplied out: sums of many steps carry their rounding along."""
        if point.fresh:
            return point
        return self.at(point.coef, self.product(point.coef), point.b, fresh=True)

    def result(
        self, point: Point, stopped: str, rounded: bool, iterations: int, history: Any
    ) -> DescentResult:
        """What is returned, of a point whose values are multiplied out."""
        gap = min(point.gap, point.objective - getattr(self.risk, "lowest", -math.inf))
        if rounded and not gap <= 1e-3 * abs(point.objective):
            stopped = "rounding"
        return DescentResult(
            coef=point.coef,
            intercept=float(point.b) if self.m is None else point.b,
            values=point.F,
            objective=point.objective,
            gap=gap,
            iterations=iterations,
            stopped=stopped,
            rounded=rounded,
            products=self.product.count,
            history=np.array(history),
        )


# --- gradient descent ------------------------------------------------------------------------------------


@np.errstate(over="ignore", invalid="ignore")
def descend(
    K: Any,  # (n, n)
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
) -> DescentResult:
    """Minimise R(Kα + b) + (penalty/2) Σ αᵀKα by gradient descent.

    The arguments are those of ``newton``, and

    step_size : η to begin with; by default 1/L, from ``risk.smoothness``, a bound of the curvature, where the
        risk has one, else from the curvature at the start
    accelerate : whether to take Nesterov's updates

    >>> from mercer.solvers.logistic import LogisticRisk
    >>> result = descend(np.eye(2), LogisticRisk(np.array([1.0, -1.0])), 0.5)
    >>> result.coef.round(3), result.stopped  # λα = 1/(1 + exp(α)) for the first
    (array([ 0.675, -0.675]), 'converged')
    """
    control = Control() if control is None else control
    problem = Problem(K, risk, penalty, fit_intercept, n_functions)
    run = _Descent(problem, step_size, accelerate)
    if control.restored is not None:
        run.restore(control.restored)
    else:
        run.begin(start)
    stopped, rounded = "", False
    while not stopped:
        if run.iterations % _CHECK == 0:
            point = problem.at(run.coef, run.G, run.b, fresh=False)
            run.note(point)
            if point.gap <= tol * abs(point.objective):
                fresh = problem.refreshed(point)
                if fresh.gap <= tol * abs(fresh.objective):
                    stopped = "converged"
                    break
                run.continue_from(fresh)
            if run.stalled >= 5:
                stopped, rounded = "converged", True
                break
        if run.iterations >= max_iter or control.stopped:
            stopped = control.stopped or "max_iter"
        else:
            run.update()
            control.step(run.snapshot(), gap=run.history[-1])
    point = problem.refreshed(problem.at(run.coef, run.G, run.b, fresh=False))
    return problem.result(point, stopped, rounded, run.iterations, run.history)


class _Descent:
    """The last two points (α, Kα, b), and the step; arrays are replaced, never written."""

    def __init__(self, problem: Problem, step_size: float | None, accelerate: bool) -> None:
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


# --- the intercept -------------------------------------------------------------------------------------


@np.errstate(over="ignore", invalid="ignore")
def best_intercept(risk: Risk, G: np.ndarray, b: Any) -> Any:
    """The b that minimises R(G + b), from a first guess; at the guess where that is as good.

    The sum of the gradient is zero there to rounding. Where R falls for ever as b grows (one class only), b
    goes as far as that makes a difference.

    >>> from mercer.solvers.logistic import LogisticRisk
    >>> b = best_intercept(LogisticRisk(np.array([1.0, 1.0, 1.0, -1.0])), np.zeros(4), 0.0)
    >>> bool(np.isclose(b, np.log(3)))  # P(y = 1) = 3/4
    True
    """
    return _best_shift(risk, G, float(b)) if G.ndim == 1 else _best_shifts(risk, G, np.asarray(b))


def _is_best(gradient: np.ndarray, b: Any, scale: float) -> bool:
    """Whether no other b lowers the objective by more than rounding."""
    total = float(np.abs(gradient.sum(axis=0)).sum())
    if total <= 1e-8 * float(np.abs(gradient).sum()):
        return True
    far = 1e3 * (1.0 + float(np.abs(b).max()))
    if total * far <= EPS * scale:  # R falls for ever, but there is nothing left to fall
        return True
    return np.ndim(b) == 0 and far < 1e100  # one function: bracketed to the last digit


def _best_shift(risk: Risk, G: np.ndarray, b: float) -> float:
    """One function: Newton steps on the monotone Σ∇R(G + b), kept inside a bracket."""
    low, high = -math.inf, math.inf
    reach, widths, size = 1.0, [math.inf] * 3, float(np.abs(G).max(initial=0.0))
    for _ in range(300):
        gradient = risk.gradient(G + b)
        total = float(gradient.sum())
        if abs(total) <= 2 * EPS * float(np.abs(gradient).sum()):
            return b
        if total > 0:
            high = b
        else:
            low = b
        slope = float(np.maximum(risk.curvature(G + b), 0.0).sum())
        is_usable = math.isfinite(total) and 0 < slope < math.inf
        target = b - total / slope if is_usable else math.copysign(math.inf, -total)
        if math.isinf(low) or math.isinf(high):
            target = b + math.copysign(min(abs(target - b), reach), -total)
            reach *= 4.0
        elif not low < target < high or high - low > 0.5 * widths[0]:  # halved in three steps at least
            target = low + 0.5 * (high - low)
        widths = [*widths[1:], high - low]
        is_narrow = math.isfinite(high - low) and high - low <= 2 * EPS * max(abs(low), abs(high), size)
        if target == b or is_narrow or abs(target) > 1e150:
            return b
        b = target
    return b


def shift_hessian(H: Any, ones: np.ndarray) -> np.ndarray:  # (m, m)
    """1ᵀH1: the second derivative of R in b."""
    if ones.ndim == 1:
        return np.array([[H.sum()]])
    columns = []
    for c in range(ones.shape[1]):
        V = np.zeros_like(ones)
        V[:, c] = 1.0
        columns.append(H(V).sum(axis=0))
    return np.array(columns)


def _best_shifts(risk: Risk, G: np.ndarray, b: np.ndarray) -> np.ndarray:  # (m,)
    """Several functions: Newton steps with a search; directions that R ignores are left alone."""
    ones = np.ones_like(G)
    reach = 10.0 + 2.0 * float(np.ptp(G))  # further than that nothing new begins
    for _ in range(200):
        gradient = risk.gradient(G + b)
        total = gradient.sum(axis=0)
        if np.abs(total).sum() <= 4 * EPS * float(np.abs(gradient).sum()):
            break
        step = (
            -np.linalg.pinv(shift_hessian(risk.curvature(G + b), ones), rcond=1e-12, hermitian=True) @ total
        )
        slope, value = float(total @ step), float(risk.value(G + b))
        if not (slope < 0 and math.isfinite(slope)):  # the curvature has vanished: downhill
            step = -total * (reach / float(np.abs(total).max()))
            slope = float(total @ step)
        if (length := float(np.abs(step).max())) > reach:
            step, slope = step * (reach / length), slope * (reach / length)

        def along(t: float, F: Any = G + b, step: Any = step, value: float = value) -> tuple[float, float]:
            change = float(risk.value(F + t * step)) - value
            return change, float(risk.gradient(F + t * step).sum(axis=0) @ step)

        t = line_search(along, slope, 4 * EPS * abs(value))
        if float(np.abs(t * step).max()) <= 2 * EPS * float(np.abs(b).max()):
            break
        b = b + t * step
    return b


def line_search(along: Callable[[float], tuple[float, float]], slope: float, rounding: float) -> float:
    """A step t along a convex function of a given slope < 0 at 0: 1 if that halves it, or near the best.

    0 when no step lowers the function.
    """
    low, low_slope, high, high_slope = 0.0, slope, math.inf, math.nan
    t, best = 1.0, 0.0
    for _ in range(60):
        value, derivative = along(t)
        finite = math.isfinite(value) and math.isfinite(derivative)
        lower = finite and value <= 1e-4 * t * min(slope, 0.0) + rounding
        if lower:
            best = t
            if abs(derivative) <= 0.5 * abs(slope):
                break
        if not finite:
            high, high_slope = t, math.nan
        elif derivative > 0 or not lower:
            high, high_slope = t, derivative
        else:
            low, low_slope = t, derivative
        if math.isinf(high):
            t *= 4.0
            if t > 1e10:
                break
            continue
        width = high - low
        if width <= 1e-12 * high:
            break
        if math.isfinite(high_slope) and high_slope > low_slope:  # the secant's zero, kept off the ends
            t = low - low_slope * width / (high_slope - low_slope)
            t = min(max(t, low + 0.1 * width), high - 0.1 * width)
        else:
            t = low + (0.5 if low else 0.1) * width
    return best
