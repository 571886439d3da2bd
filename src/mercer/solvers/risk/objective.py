r"""Regularised risks: the gradient in the RKHS, and how far from the minimum a function is.

Problem   J(α, b) = R(F) + (λ/2) αᵀKα,   F = Kα + b   the values of f = Σᵢ αᵢ k(xᵢ, ·) + b at the points
Given     K, positive semi-definite, as an array or as products K @ V; λ > 0; R, convex and differentiable
          in F; b = 0 unless there is an intercept. With m functions, F and α are (n, m), b is (m,), and αᵀKα
          is summed over them.
Gradient  r = λα + ∇R(F): the gradient of J in the RKHS is Σᵢ rᵢ k(xᵢ, ·), and that in b is Σᵢ ∇R(F)ᵢ
Bound     with the best b for f, J̃(f) = min_b J is λ-strongly convex in f:   J - min J ≤ gap = rᵀKr / (2λ)
Rounding  a computed K̂ = K + E has |αᵀEα| ≤ ε(α) (see ``rounding``), and F̂ = K̂α + b = F + Δ, |Δᵢ| ≤ eᵢ. With
          s = ∇R(F̂), whose sum is zero, R(F̂) - ⟨s, F̂⟩ - sᵀKs / (2λ) ≤ min J is a value of the dual problem, so
          that  Ĵ - min J ≤ gap + ε(s) / (2λ)  for the computed Ĵ, and for the true value at (α, b)
                J - min J ≤ gap + ε(r) / (2λ) + max [R(F̂ - Δ) - R(F̂) + ⟨s, Δ⟩] over all such Δ.
          The gap that is stated holds for both (``Rounding.blur``).

``newton`` and ``descent`` minimise it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mercer.errors import InputError
from mercer.solvers.linear.conjugate import Products
from mercer.solvers.matrix import SquareMatrix
from mercer.solvers.result import Minimiser, Stop
from mercer.solvers.rounding import Blur, Rounding, allowed

EPS = float(np.finfo(np.float64).eps)


class Risk(Protocol):
    """R(F), convex and differentiable in the values F, (n,) of one function or (n, m) of m functions.

    It may also have ``smoothness``, a bound of the curvature, ``lowest``, a number with R(F) ≥ lowest, and,
    for a K that is known up to rounding, ``excess(F, e, s)``, a bound of R(F + Δ) - R(F) - ⟨s, Δ⟩ for all
    |Δᵢ| ≤ eᵢ.
    """

    def value(self, F: np.ndarray) -> float:
        """R(F)."""

    def gradient(self, F: np.ndarray) -> np.ndarray:
        """∇R(F), of the shape of F."""

    def curvature(self, F: np.ndarray) -> Any:
        """(n,) second derivatives ≥ 0 for F (n,); for F (n, m) the function V ↦ HV, (n, m) to (n, m)."""


@dataclass(frozen=True, eq=False, kw_only=True)
class DescentResult(Minimiser):
    """What was found; the gap is rᵀKr / (2λ), and what the rounding of K adds."""

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


class Objective:
    """J: its value, gradient and certificate at a point."""

    def __init__(
        self,
        K: SquareMatrix,
        risk: Risk,
        penalty: float,
        fit_intercept: bool,
        n_functions: int | None,
        rounding: float = 0.0,
    ) -> None:
        if not (math.isfinite(penalty) and penalty > 0):
            raise InputError(f"penalty must be positive, got {penalty!r}: pass a positive number")
        self.n = K.shape[0]
        self.m = n_functions
        self.risk = risk
        self.penalty = float(penalty)
        self.fit_intercept = fit_intercept
        self.product = Products(K)
        self.rounding = Rounding(K, rounding)
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
        if self.fit_intercept and not is_best(gradient, b, self.scale):
            gap = math.inf  # the bound holds for the best b only
        return Point(coef, G, b, F, r, Kr, risk, square, objective, gap, fresh)

    def refreshed(self, point: Point) -> Point:
        """The same f, its values multiplied out: sums of many steps carry their rounding along."""
        if point.fresh:
            return point
        return self.at(point.coef, self.product(point.coef), point.b, fresh=True)

    def blur(self, point: Point) -> Blur:
        """What the rounding of K adds to the gap."""
        s = point.r - self.penalty * point.coef
        return self.rounding.blur(self.risk, self.penalty, point.coef, point.F, s)

    def is_met(self, point: Point, tol: float) -> bool:
        """Whether the gap is small enough, for K as it was computed."""
        return point.gap <= allowed(tol * abs(point.objective), self.blur(point).most)

    def result(
        self, point: Point, stopped: Stop, rounded: bool, iterations: int, history: Any, tol: float
    ) -> DescentResult:
        """What is returned, of a point whose values are multiplied out."""
        most = point.objective - getattr(self.risk, "lowest", -math.inf)
        gap = self.blur(point).gap(point.gap, most)
        rounded = rounded or (stopped == Stop.CONVERGED and gap > tol * abs(point.objective))
        if rounded and not gap <= 1e-3 * abs(point.objective):
            stopped = Stop.ROUNDING
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


# --- the intercept -------------------------------------------------------------------------------------


@np.errstate(over="ignore", invalid="ignore")
def best_intercept(risk: Risk, G: np.ndarray, b: Any) -> Any:
    """The b that minimises R(G + b), from a first guess; at the guess where that is as good.

    The sum of the gradient is zero there to rounding. Where R falls for ever as b grows (one class only), b
    goes as far as that makes a difference.

    >>> from mercer.solvers.risk.logistic import LogisticRisk
    >>> b = best_intercept(LogisticRisk(np.array([1.0, 1.0, 1.0, -1.0])), np.zeros(4), 0.0)
    >>> bool(np.isclose(b, np.log(3)))  # P(y = 1) = 3/4
    True
    """
    return _best_shift(risk, G, float(b)) if G.ndim == 1 else _best_shifts(risk, G, np.asarray(b))


def is_best(gradient: np.ndarray, b: Any, scale: float) -> bool:
    """Whether no other b lowers the objective by more than rounding."""
    total = float(np.abs(gradient.sum(axis=0)).sum())
    if total <= 1e-8 * float(np.abs(gradient).sum()):
        return True
    far = 1e3 * (1.0 + float(np.abs(b).max()))
    if total * far <= EPS * scale:  # R falls for ever, but there is nothing left to fall
        return True
    return np.ndim(b) == 0 and far < 1e100  # Of one function, b is bracketed to the last digit.


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
        elif not low < target < high or high - low > 0.5 * widths[0]:  # Three steps halve it at least.
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
        if not (slope < 0 and math.isfinite(slope)):  # The curvature has vanished: the step goes downhill.
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
        if math.isfinite(high_slope) and high_slope > low_slope:  # The secant's zero is kept off the ends.
            t = low - low_slope * width / (high_slope - low_slope)
            t = min(max(t, low + 0.1 * width), high - 0.1 * width)
        else:
            t = low + (0.5 if low else 0.1) * width
    return best
