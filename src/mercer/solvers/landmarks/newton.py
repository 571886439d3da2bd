r"""Newton's method for regularised risks on landmarks.

Minimise  J(u) = R(Φ̃u) + (λ/2) ‖w‖²,   u = (w, b),   R convex and smooth, of one function or of several
Step      (Φ̃ᵀHΦ̃ + λD) δ = -g,   H the second derivative of R: by conjugate gradients, a pass over the rows
          each, in single precision while that helps, with the Cholesky factor of the same matrix for some of
          the rows as preconditioner, which is made anew when H has changed
Search    along F + tΔF, without a pass; t = 1 near the end
Stop      when the gap (`certificate`) is at most tol · |J|, with the best b and F multiplied out
Cost      a pass for each gradient and each product with the Hessian: n M kernel values

Marteau-Ferey, Bach and Rudi, Globally convergent Newton methods for ill-conditioned generalized
self-concordant losses, NeurIPS 2019.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.errors import InputError
from mercer.solvers.control import Control, State
from mercer.solvers.landmarks.certificate import Accuracy, RestrictedMinimum, gaps
from mercer.solvers.landmarks.features import SLACK, SLACK_OF_SYSTEM, Features
from mercer.solvers.landmarks.inner import RiskCurvature, RiskGradient, Weighted
from mercer.solvers.result import Stop
from mercer.solvers.risk.objective import EPS, best_intercept, is_best, line_search

__all__ = ["restricted_newton"]

#: Products with the Hessian in a step, at most.
_PRODUCTS = 100
#: A change of the curvature, as a part of it, from which on the preconditioner is made anew.
_CHANGED = 0.8
#: A part of a step that is so short tells that H is not what it was taken for.
_SHORT_PART = 1e-4
#: Products that a step takes, about, with a preconditioner of another curvature.
_FEW_PRODUCTS = 1
#: A gap that rounding keeps above the tolerance, relative to the objective, is small all the same up to this.
_CLOSE = 1e-3
#: A change of J by fewer units of the precision of K, relative to J, may be rounding.
_UNITS = 16.0
#: Rows per landmark whose minimum is where a run starts; of how many times as many rows; and how near it.
_STARTED_WITH, _WORTH_A_START, _START_TOLERANCE = 10, 5, 1e-3
#: Steps in a row that neither lower J nor halve the gap, after which rounding is blamed.
_STEPS_WITHOUT_PROGRESS = 4


@dataclass(frozen=True, eq=False)
class _Point:
    """u and what is known there."""

    u: np.ndarray  # (M + 1, m)
    F: np.ndarray  # (n, m)
    #: ∇J
    g: np.ndarray  # (M + 1, m)
    objective: float
    #: the gap as if b were the best one
    gap: float


@np.errstate(over="ignore", invalid="ignore")  # A step too far may overflow: it is refused by its value.
def restricted_newton(
    features: Features,
    risk: Any,
    penalty: float,
    *,
    n_functions: int | None = None,
    tol: float = 1e-6,
    max_iter: int = 100,
    start: np.ndarray | None = None,
    control: Control | None = None,
    accuracy: Accuracy | None = None,
) -> RestrictedMinimum:
    """u with the smallest J, and the gap.

    ``risk`` is a `solvers.risk.objective.Risk` with a method ``part(rows)``, of one function where
    ``n_functions`` is None; ``start`` is a u to start from.
    """
    control = Control() if control is None else control
    run = _Run(features, risk, penalty, n_functions, control, accuracy or Accuracy())
    state = control.restored
    if state is not None:
        point = run.restore(state)
    else:
        point = run.at(run.begin(tol) if start is None else start)
    if not math.isfinite(point.objective):
        raise InputError("the objective is not finite at the start: scale the data, or the targets")
    while True:
        if point.gap <= tol * abs(point.objective) or run.is_stuck:
            found = run.certified(point)
            if run.plain_gap <= tol * abs(found.objective) or run.is_stuck:
                stopped = Stop.CONVERGED
                break
            point = run.at(run.last)  # The best b has moved the gradient.
        if run.iterations >= max_iter or control.stopped:
            stopped, found = control.stopped or Stop.MAX_ITER, run.certified(point)
            break
        following = run.step(point, tol)
        if run.is_cut:  # The checkpoint stays where the step began, and a resumed run repeats it.
            stopped, found = control.stopped or Stop.INTERRUPTED, run.certified(following or point)
            break
        run.note_progress(point, following)
        if following is not None:
            point = following
            run.iterations += 1
            control.step(run.snapshot(point), gap=point.gap, objective=point.objective)
    if stopped == Stop.CONVERGED and found.gap > max(tol, _CLOSE) * abs(found.objective):
        stopped = Stop.ROUNDING
    return replace(found, stopped=stopped, iterations=run.iterations)


class _Run:
    def __init__(
        self,
        features: Features,
        risk: Any,
        penalty: float,
        n_functions: int | None,
        control: Control,
        accuracy: Accuracy,
    ) -> None:
        self.features, self.risk, self.penalty = features, risk, penalty
        self.is_single, self.functions = n_functions is None, n_functions or 1
        self.control, self.accuracy = control, accuracy
        self.diagonal = features.penalty(penalty)
        self.scale = abs(float(risk.value(self.given(np.zeros((features.n, n_functions or 1))))))
        self.iterations = self.waited = 0
        self.is_cut = self.is_stuck = False
        #: whether products with the Hessian are in single precision
        self.is_rough = True
        #: whether the preconditioner is of all rows that count
        self.is_exact = False
        #: where the preconditioner was made, and of which curvatures
        self.made_at, self.weight = np.empty((0, 0)), np.empty(0)
        #: (n,) second derivatives over the last step, on average, where that was short of a whole one: they
        #: see the ends of straight pieces of the loss, of which there is no sign at the point itself
        self.secant = np.empty(0)
        #: products that the last step took
        self.products = 0
        self.near: Callable[[np.ndarray], np.ndarray] | None = None
        #: the u that was certified last, and its gap without any rounding
        self.last, self.plain_gap = np.empty(0), math.inf

    def given(self, F: np.ndarray) -> np.ndarray:
        """The values as the risk takes them: (n,) of one function."""
        return F[:, 0] if self.is_single else F

    def columns(self, G: np.ndarray) -> np.ndarray:
        """The other way round: (n, m)."""
        return G[:, None] if self.is_single else G

    def begin(self, tol: float) -> np.ndarray:  # (M + 1, m)
        """Where to start: at zero, or, of very many rows, at the minimum for some of them.

        With ten rows per landmark it costs a fifth or less, and is so near that few steps are left.
        """
        features = self.features
        zero = np.zeros((features.size, self.functions))
        wanted = _STARTED_WITH * features.basis.size
        if features.n < _WORTH_A_START * wanted:
            return zero
        rows = np.sort(np.random.default_rng(1).choice(features.n, wanted, replace=False))
        found = restricted_newton(
            features.some(rows),
            self.risk.part(rows),
            self.penalty * wanted / features.n,
            n_functions=None if self.is_single else self.functions,
            tol=max(tol, _START_TOLERANCE),
            control=self.control.inner(),
        )
        return features.joined(found.coef, found.intercept)

    # --- points ----------------------------------------------------------------------------------------

    def at(self, u: np.ndarray) -> _Point:
        """J and its gradient, in one pass."""
        F = np.empty((self.features.n, u.shape[1]))
        total, sums = self.features.apply(u, RiskGradient(self.risk, self.is_single), each=F.__setitem__)
        g = total + self.diagonal * u
        objective = float(sums[0]) + 0.5 * float((self.diagonal * u * u).sum())
        M = self.features.basis.size
        return _Point(u, F, g, objective, float((g[:M] ** 2).sum()) / (2 * self.penalty))

    def certified(self, point: _Point) -> RestrictedMinimum:
        """The best b for this w, and the gap there: a pass."""
        features, u, F = self.features, point.u.copy(), point.F
        b = np.zeros(u.shape[1])
        if features.fit_intercept:
            plain = F - u[-1]
            guess = float(u[-1, 0]) if self.is_single else u[-1]
            b = np.atleast_1d(best_intercept(self.risk, self.given(plain), guess))
            u[-1] = b
            F = plain + b
        s = self.columns(self.risk.gradient(self.given(F)))
        adjoint = features.adjoint(s)
        value = float(self.risk.value(self.given(F)))
        objective = value + 0.5 * float((self.diagonal * u * u).sum())
        self.last = u
        self.plain_gap, gap, apart = gaps(features, self.risk, self.penalty, u, F, s, adjoint, self.accuracy)
        if features.fit_intercept and not is_best(self.given(s), b[0] if self.is_single else b, self.scale):
            gap = math.inf
        gap = min(gap, objective - getattr(self.risk, "lowest", -math.inf) + 2 * apart)
        beta, intercept = features.split(u)
        return RestrictedMinimum(
            coef=beta,
            intercept=intercept,
            values=F,
            dual=s,
            dual_square=float((adjoint[: features.basis.size] ** 2).sum()),
            objective=objective,
            gap=gap,
            passes=features.passes,
        )

    # --- steps -----------------------------------------------------------------------------------------

    def step(self, point: _Point, tol: float) -> _Point | None:
        """The next point; None where rounding leaves nothing to gain."""
        delta = self.direction(point, tol)
        self.secant = np.empty(0)
        slope = float((point.g * delta).sum())
        rounding = 8 * EPS * abs(point.objective)
        if not (math.isfinite(slope) and slope < 0):
            return None
        whole = self.at(point.u + delta)
        if math.isfinite(whole.objective) and whole.objective <= point.objective + 1e-4 * slope:
            return whole
        if -slope <= rounding:  # J no longer tells better from worse, but the gap still may
            return whole if whole.gap < 0.5 * point.gap else None
        t = self.search(point, whole.F - point.F, delta, slope, rounding)
        if not t > 0:
            return None
        found = self.at(point.u + t * delta)
        # Fewer points with a curvature than unknowns: λ alone decided on the step.
        if self.is_single and t < _SHORT_PART and np.count_nonzero(self.weight) < self.features.size:
            moved = found.F[:, 0] - point.F[:, 0]
            turned = self.risk.gradient(found.F[:, 0]) - self.risk.gradient(point.F[:, 0])
            is_moved = np.abs(moved) > 1e-8 * float(np.abs(found.F).max())  # else it is rounding
            secant = np.divide(turned, moved, out=np.zeros_like(moved), where=is_moved)
            self.secant = np.maximum(secant, 0.0)
        return found

    def search(
        self, point: _Point, change: np.ndarray, delta: np.ndarray, slope: float, rounding: float
    ) -> float:
        linear = float((self.diagonal * point.u * delta).sum())
        quadratic = float((self.diagonal * delta * delta).sum())
        here = float(self.risk.value(self.given(point.F)))

        def along(t: float) -> tuple[float, float]:
            F = point.F + t * change
            value = float(self.risk.value(self.given(F))) - here + t * linear + 0.5 * t * t * quadratic
            gradient = self.columns(self.risk.gradient(self.given(F)))
            return value, float((gradient * change).sum()) + linear + t * quadratic

        return line_search(along, slope, rounding)

    def direction(self, point: _Point, tol: float) -> np.ndarray:
        """δ with (Φ̃ᵀHΦ̃ + λD) δ ≈ -g, as accurate as the step deserves."""
        size = point.gap / max(abs(point.objective), np.finfo(float).tiny)
        enough_to_stop = 0.3 * math.sqrt(tol / size) if size > tol else 1.0
        forcing = max(min(0.1, 0.3 * math.sqrt(size)), min(enough_to_stop, 0.1))
        multiply = self.hessian(point)
        self.precondition(point)
        assert self.near is not None
        self.products = 0
        if self.is_exact and self.made_at is point.u:  # The factor is that of the system itself.
            return self.near(-point.g)
        delta = np.zeros_like(point.u)
        residual = -point.g
        z = self.near(residual)
        p, old = z, float((residual * z).sum())
        first = float(np.linalg.norm(residual[: self.features.basis.size]))
        while self.products < _PRODUCTS:
            if self.products and self.control.stopped:
                self.is_cut = True
                break
            Hp = multiply(p)
            self.products += 1
            bend = float((p * Hp).sum())
            if not (0 < bend < math.inf and old > 0):  # Numbers too small, or too large, to tell.
                break
            t = old / bend
            delta, residual = delta + t * p, residual - t * Hp
            if float(np.linalg.norm(residual[: self.features.basis.size])) <= forcing * first:
                break
            z = self.near(residual)
            new = float((residual * z).sum())
            p, old = z + (new / old) * p, new
        return delta

    def hessian(self, point: _Point) -> Callable[[np.ndarray], np.ndarray]:
        """V ↦ (Φ̃ᵀHΦ̃ + λD) V, a pass."""
        h = self.curvature(point)
        inner = RiskCurvature(self.risk, point.F) if h is None else Weighted(h)
        return lambda V: self.features.apply(V, inner, is_rough=self.is_rough)[0] + self.diagonal * V

    def curvature(self, point: _Point) -> np.ndarray | None:  # (n, 1)
        """H of one function."""
        if not self.is_single:
            return None
        floor = self.secant if self.secant.size else 0.0
        return np.maximum(self.risk.curvature(point.F[:, 0]), floor)[:, None]

    def precondition(self, point: _Point) -> None:
        """(Φ̃ᵀHΦ̃ + λD)⁻¹ for some of the rows, made anew where H has changed.

        Of several functions, the largest second derivative in one value of a row counts for all of them: one
        factor serves all.
        """
        h = self.curvature(point)
        weight = h[:, 0] if h is not None else self.own_curvature(point)
        rows = self.features.sample(weight)
        if self.near is not None:
            change, passes = float(np.abs(weight - self.weight).sum()), max(self.products, _FEW_PRODUCTS)
            is_dear = self.features.square_cost(weight, rows) > passes
            if not change or (change <= _CHANGED * self.weight.sum() and is_dear):
                return
        self.make(weight, point.u)

    def make(self, weight: np.ndarray, u: np.ndarray) -> None:
        """The preconditioner of these curvatures, found at u."""
        rows = self.features.sample(weight)
        is_whole = rows is None or len(rows) == np.count_nonzero(weight)
        self.is_exact = self.is_single and is_whole and self.features.K.dtype == np.float64
        slack = SLACK_OF_SYSTEM if self.is_exact else SLACK
        square = self.features.square(weight, rows, slack * self.penalty)
        # A curvature that is zero everywhere leaves b alone: this keeps the matrix positive definite.
        if self.features.fit_intercept:
            square[-1, -1] += 1e-10 * (self.penalty + float(square[-1, -1]))
        self.near = self.features.inverse(square, self.penalty)
        self.weight, self.made_at = weight, u
        self.is_rough &= self.features.is_rough_enough(weight, self.penalty)

    def own_curvature(self, point: _Point) -> np.ndarray:  # (n,)
        """The largest second derivative of R in a single value of each row."""
        multiply = self.risk.curvature(point.F)
        columns = []
        for c in range(point.F.shape[1]):
            V = np.zeros_like(point.F)
            V[:, c] = 1.0
            columns.append(multiply(V)[:, c])
        return np.max(columns, axis=0)

    # --- checkpoints -----------------------------------------------------------------------------------

    def note_progress(self, before: _Point, after: _Point | None) -> None:
        """Whether steps still lower J, or halve the gap; where they do not, it is rounding."""
        fallen = 0.0 if after is None else before.objective - after.objective
        is_lower = fallen > _UNITS * float(np.finfo(self.features.K.dtype).eps) * abs(before.objective)
        is_better = after is not None and (is_lower or after.gap <= 0.5 * before.gap)
        self.waited = 0 if is_better else self.waited + 1
        self.is_stuck = after is None or self.waited >= _STEPS_WITHOUT_PROGRESS
        if self.is_stuck and self.is_rough:  # It may be the rounding of the products alone.
            self.is_rough, self.is_stuck, self.waited = False, False, 0

    def snapshot(self, point: _Point) -> Callable[[], State]:
        facts: State = {
            "u": point.u,
            "made_at": self.made_at,
            "made_of": self.weight,
            "secant": self.secant,
            "iterations": self.iterations,
            "waited": self.waited,
            "is_rough": self.is_rough,
            "products": self.products,
            "passes": self.features.passes,
        }
        return lambda: facts

    def restore(self, state: State) -> _Point:
        self.iterations, self.waited = int(state["iterations"]), int(state["waited"])
        if state["made_of"].size:
            self.make(state["made_of"], state["made_at"])
        self.secant, self.is_rough = state["secant"], bool(state["is_rough"])
        point = self.at(state["u"])
        self.products, self.features.passes = int(state["products"]), int(state["passes"])
        return point
