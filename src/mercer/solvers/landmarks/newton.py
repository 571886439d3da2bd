r"""Newton's method for regularised risks on landmarks.

Minimise  J(u) = R(Φ̃u) + (λ/2) ‖w‖²,   u = (w, b),   R convex and smooth, of one function or of several
Start     of very many rows at the minimum for a sample of them, under their share of λ
Step      (Φ̃ᵀHΦ̃ + λD) δ = -g,   H the second derivative of R: by conjugate gradients, a pass over the rows
          each, in single precision while that helps, with the Cholesky factor P of the sample's own matrix as
          preconditioner: the last one of the start, or one that is made anew when H has changed
Search    along F + tΔF, without a pass; t = 1 near the end
Stop      when ½ gᵀP⁻¹g / (the sample's share), about what is stated, or ‖g‖²/(2λ) is at most tol · |J|, and
          so is the gap of `certificate`
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
from mercer.solvers.control import Control, State, expected
from mercer.solvers.landmarks.certificate import Accuracy, DualPoint, RestrictedMinimum, certify
from mercer.solvers.landmarks.features import SLACK, SLACK_OF_SYSTEM, Features, Sample
from mercer.solvers.landmarks.inner import RiskCurvature, RiskGradient, Weighted
from mercer.solvers.result import Stop
from mercer.solvers.risk.objective import EPS, line_search

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
#: A sample is where a run starts when there are so many times as many rows; itself it starts at the minimum
#: for so many rows per landmark. Each is found to so many times the tolerance, which is at least so much.
_WORTH_A_START, _STARTED_WITH, _START_TOLERANCE = 4, 5, (10, 1e-3)
#: Steps of such a run, at most.
_START_STEPS = 100
#: A gap, relative to J, above which values and gradients are in single precision too where products are.
_FAR = 1e-4
#: What a step that is solved for exactly leaves of the gap, over its square relative to J, about; and how
#: much of the residual the last step may leave.
_CURVED, _FORCING = 0.1, 0.5
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
    #: about, and from above where the preconditioner is what it is taken for
    gap: float
    #: whether all this is in single precision
    is_rough: bool


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
    point, stopped = run.solve(start, tol, max_iter)
    return run.result(point, stopped, tol)


class _Run:
    def __init__(
        self,
        features: Features,
        risk: Any,
        penalty: float,
        n_functions: int | None,
        control: Control,
        accuracy: Accuracy,
        is_start: bool = False,
    ) -> None:
        self.features, self.risk, self.penalty = features, risk, penalty
        self.is_single, self.functions = n_functions is None, n_functions or 1
        self.control, self.accuracy = control, accuracy
        #: whether what is wanted is where another run starts, with all rows in its preconditioner
        self.is_start = is_start
        self.diagonal = features.penalty(penalty)
        self.iterations = self.waited = 0
        self.is_cut = self.is_stuck = False
        #: whether products with the Hessian are in single precision
        self.is_rough = True
        #: the rows of the preconditioner, the preconditioner, and the error of its square that was allowed
        self.sample: Sample | None = None
        self.near: Callable[[np.ndarray], np.ndarray] | None = None
        self.slack = SLACK
        #: where the preconditioner was made, and of which curvatures
        self.made_at, self.weight = np.empty((0, 0)), np.empty(0)
        #: (n,) second derivatives over the last step, on average, where that was short of a whole one: they
        #: see the ends of straight pieces of the loss, of which there is no sign at the point itself
        self.secant = np.empty(0)
        #: products that the last step took, and the gap that it leaves if J is what it is taken for
        self.products, self.expected = 0, 0.0
        #: the certificate of a point
        self.told: tuple[_Point | None, DualPoint | None] = None, None

    def solve(self, start: np.ndarray | None, tol: float, max_iter: int) -> tuple[_Point, Stop]:
        """The last point, and why it is the last."""
        if self.control.restored is not None:
            point = self.restore(self.control.restored)
        else:
            point = self.begin(tol) if start is None else self.at(start)
        if not math.isfinite(point.objective):
            raise InputError("the objective is not finite at the start: scale the data, or the targets")
        # What rounding leaves where f goes through every target; R at zero says how large they are.
        nothing = EPS**2 * abs(float(self.risk.value(self.given(np.zeros_like(point.F)))))
        first, begun = point.gap, self.iterations
        while True:
            if point.gap <= max(tol * abs(point.objective), nothing) or self.is_stuck:
                point = self.refreshed(point)
                is_enough = self.is_stuck or self.is_start
                if is_enough or self.certificate(point).plain <= max(tol * abs(point.objective), nothing):
                    return point, Stop.CONVERGED
            if self.iterations >= max_iter or self.control.stopped:
                return self.refreshed(point), self.control.stopped or Stop.MAX_ITER
            following = self.step(point, tol)
            if self.is_cut:  # The checkpoint stays where the step began, and a resumed run repeats it.
                return self.refreshed(following or point), self.control.stopped or Stop.INTERRUPTED
            self.note_progress(point, following)
            if following is not None:
                point = following
                self.iterations += 1
                aim = max(tol * abs(point.objective), nothing)
                self.control.step(
                    self.snapshot(point),
                    expected=begun + expected(self.iterations - begun, first, point.gap, aim),
                    gap=point.gap,
                    objective=point.objective,
                )

    def result(self, point: _Point, stopped: Stop, tol: float) -> RestrictedMinimum:
        """What is known of a point."""
        certificate, lowest = self.certificate(point), getattr(self.risk, "lowest", -math.inf)
        gap = min(certificate.gap, point.objective - lowest + 2 * certificate.apart)
        is_small = certificate.is_small(gap, max(tol, _CLOSE) * abs(point.objective))
        if stopped == Stop.CONVERGED and not is_small:
            stopped = Stop.ROUNDING
        coef, intercept = self.features.split(point.u)
        return RestrictedMinimum(
            coef=coef,
            intercept=intercept,
            values=point.F,
            dual=certificate.s,
            dual_square=float((certificate.adjoint**2).sum()),
            objective=point.objective,
            gap=gap,
            passes=self.features.passes,
            iterations=self.iterations,
            stopped=stopped,
            rounded=not certificate.is_small(gap, tol * abs(point.objective)),
        )

    def given(self, F: np.ndarray) -> np.ndarray:
        """The values as the risk takes them: (n,) of one function."""
        return F[:, 0] if self.is_single else F

    def columns(self, G: np.ndarray) -> np.ndarray:
        """The other way round: (n, m)."""
        return G[:, None] if self.is_single else G

    def begin(self, tol: float) -> _Point:
        """The point to start from: zero, or the minimum for some of the rows where these are very many."""
        features = self.features
        F = np.zeros((features.n, self.functions))
        wanted = _STARTED_WITH * features.basis.size if self.is_start else None
        sample = features.sample(self.weights(F), wanted)
        if features.n < _WORTH_A_START * sample.features.n:
            return self.at(np.zeros((features.size, self.functions)))
        run = _Run(
            sample.features,
            self.risk.part(sample.rows),
            sample.share * self.penalty,
            None if self.is_single else self.functions,
            self.control.inner(),
            Accuracy(),
            is_start=True,
        )
        times, least = _START_TOLERANCE
        point, _ = run.solve(None, max(times * tol, least), _START_STEPS)
        is_even = len(sample.weight) == sample.features.own or not sample.features.own
        if run.near is None or self.is_start or not is_even:
            return self.at(point.u)
        # The factor of the start is that of the same rows, under their share of the penalty.
        self.sample, self.slack = replace(sample, weight=run.weight), run.slack
        near = run.near
        self.near = lambda V: sample.share * near(V)
        self.is_rough = features.is_rough_enough(self.weights(F), self.penalty)
        first = self.at(point.u, self.is_rough)
        self.weight = self.weights(first.F)
        self.weight[sample.rows] = run.weight
        return first

    # --- points ----------------------------------------------------------------------------------------

    def at(self, u: np.ndarray, is_rough: bool = False) -> _Point:
        """J and its gradient, in one pass."""
        F = np.empty((self.features.n, u.shape[1]))
        inner = RiskGradient(self.risk, self.is_single)
        total, sums = self.features.apply(u, inner, is_rough=is_rough, each=F.__setitem__)
        g = total + self.diagonal * u
        objective = float(sums[0]) + 0.5 * float((self.diagonal * u * u).sum())
        gap = float((g[: self.features.basis.size] ** 2).sum()) / (2 * self.penalty)
        if self.near is not None and self.sample is not None and math.isfinite(gap):
            gap = min(gap, 0.5 * max(float((g * self.near(g)).sum()), 0.0) / self.sample.share)
        return _Point(u, F, g, objective, gap, is_rough)

    def refreshed(self, point: _Point) -> _Point:
        """The point in full precision."""
        return self.at(point.u) if point.is_rough else point

    def certificate(self, point: _Point) -> DualPoint:
        """What is certain of a point."""
        if self.told[0] is not point:
            given = self.risk, self.penalty, point.u, point.F, point.g, self.accuracy
            found = certify(self.sample or self.features.sample(self.weights(point.F)), self.near, *given)
            if not math.isfinite(found.plain):  # No shift of the sample alone balances all rows.
                found = certify(self.features.whole(self.weight), None, *given)
            self.told = point, found
        assert self.told[1] is not None
        return self.told[1]

    # --- steps -----------------------------------------------------------------------------------------

    def step(self, point: _Point, tol: float) -> _Point | None:
        """The next point; None where rounding leaves nothing to gain."""
        delta = self.direction(point, tol)
        self.secant = np.empty(0)
        slope = float((point.g * delta).sum())
        rounding = 8 * EPS * abs(point.objective)
        if not (math.isfinite(slope) and slope < 0):
            return None
        is_far = self.expected > max(tol, _FAR) * abs(point.objective)
        whole = self.at(point.u + delta, self.is_rough and is_far)
        if math.isfinite(whole.objective) and whole.objective <= point.objective + 1e-4 * slope:
            return whole
        if -slope <= rounding:  # J no longer tells better from worse, but the gap still may
            return whole if whole.gap < 0.5 * point.gap else None
        t = self.search(point, whole.F - point.F, delta, slope, rounding)
        if not t > 0:
            return None
        found = self.at(point.u + t * delta, self.is_rough and is_far)
        # Fewer points with a curvature than unknowns: λ alone decided on the step.
        if self.is_single and t < _SHORT_PART and np.count_nonzero(self.weight) < self.features.size:
            moved = found.F[:, 0] - point.F[:, 0]
            turned = self.risk.gradient(found.F[:, 0]) - self.risk.gradient(point.F[:, 0])
            is_moved = np.abs(moved) > 1e-8 * float(np.abs(found.F).max())  # what moved by less is rounding
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
        enough_to_stop = 0.3 * math.sqrt(tol / size) if size > tol else 0.0  # The certificate was not enough.
        forcing = max(min(0.1, 0.3 * math.sqrt(size)), min(enough_to_stop, _FORCING))
        multiply = self.hessian(point)
        self.precondition(point)
        assert self.near is not None and self.sample is not None
        self.products, self.expected = 0, _CURVED * size * point.gap
        if self.is_exact and self.made_at is point.u:  # The factor is that of the system itself.
            return self.near(-point.g)
        delta = np.zeros_like(point.u)
        residual = -point.g
        z = self.near(residual)
        p, old = z, float((residual * z).sum())
        first = old
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
            z = self.near(residual)
            new = float((residual * z).sum())
            if new <= forcing**2 * first:
                break
            p, old = z + (new / old) * p, new
        self.expected += 0.5 * float((residual * z).sum()) / self.sample.share
        return delta

    @property
    def is_exact(self) -> bool:
        """Whether the preconditioner is of all rows that count, and to enough digits."""
        return self.slack == SLACK_OF_SYSTEM

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
        weight = h[:, 0] if h is not None else self.weights(point.F)
        if self.sample is not None:
            change, passes = float(np.abs(weight - self.weight).sum()), max(self.products, _FEW_PRODUCTS)
            is_dear = self.features.square_cost(self.sample.features.n) > passes
            if not change or (change <= _CHANGED * self.weight.sum() and is_dear):
                return
        self.make(self.features.whole(weight) if self.is_start else self.features.sample(weight), weight)
        self.made_at = point.u

    def make(self, sample: Sample, weight: np.ndarray, slack: float | None = None) -> None:
        """The preconditioner of these rows, as a sample of all of these curvatures."""
        if slack is None:
            is_whole = np.count_nonzero(sample.weight) == np.count_nonzero(weight)
            is_exact = self.is_single and is_whole and self.features.K.dtype == np.float64
            slack = SLACK_OF_SYSTEM if is_exact else SLACK
        self.sample, self.weight, self.slack = sample, weight, slack
        self.near = sample.inverse(self.penalty, slack)
        self.is_rough &= self.features.is_rough_enough(weight, self.penalty)

    def weights(self, F: np.ndarray) -> np.ndarray:  # (n, m) → (n,)
        """The largest second derivative of R in a single value of each row."""
        if self.is_single:
            return np.array(self.risk.curvature(F[:, 0]))
        multiply = self.risk.curvature(F)
        columns = []
        for c in range(F.shape[1]):
            V = np.zeros_like(F)
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
            "rows": np.empty(0, int) if self.sample is None else np.arange(self.features.n)[self.sample.rows],
            "share": 1.0 if self.sample is None else self.sample.share,
            "slack": self.slack,
            "secant": self.secant,
            "iterations": self.iterations,
            "waited": self.waited,
            "is_rough": self.is_rough,
            "is_rough_point": point.is_rough,
            "products": self.products,
            "passes": self.features.passes,
        }
        return lambda: facts

    def restore(self, state: State) -> _Point:
        self.iterations, self.waited = int(state["iterations"]), int(state["waited"])
        weight, rows = state["made_of"], state["rows"]
        if rows.size:
            sample = self.features.whole(weight)
            if rows.size < self.features.n:
                sample = self.features.sampled(rows, weight, float(state["share"]))
            self.make(sample, weight, float(state["slack"]))
            self.made_at = state["made_at"]
        self.secant, self.is_rough = state["secant"], bool(state["is_rough"])
        point = self.at(state["u"], bool(state["is_rough_point"]))
        self.products, self.features.passes = int(state["products"]), int(state["passes"])
        return point
