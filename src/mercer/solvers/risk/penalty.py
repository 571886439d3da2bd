r"""Any increasing penalty Ω(‖f‖²): a search along the path of the quadratic one, with a certificate.

Minimise  J(f, b) = Σᵢ wᵢ L(yᵢ, f(xᵢ) + b) + Ω(‖f‖²),   Ω increasing, convex or not
Path      f_λ = argmin Σ wL + (λ/2)‖f‖², 0 < λ ≤ ∞. Of all f with ‖f‖ ≤ r the smallest risk is on the path
          (the argument of the representer theorem), and Ω grows: the minimum of J is on it too.
Bound     every feasible point s of a dual on the path gives, for all f with ‖f‖ = r (see `certificate`),
              risk ≥ c - t r,   c = -Σ wL*(y, s/w),   t = √(sᵀKs)
          so that min J ≥ min_r [max over the s known of (c - t r) + Ω(r²)]: a function of one number r,
          minimised globally by cutting intervals, for which it is enough that Ω grows
Next      the λ with λ = 2Ω'(r²) near the r where the bound is least, between its neighbours on the path
Stop      when the best J found is within tol · |J| of the bound: for a non-convex Ω too, the gap is to the
          global minimum. f = 0 is on the path (λ = ∞), and the answer where Ω is steep at 0, as for c‖f‖.
          Where Ω has a kink or jumps, the best f is between two points of the path.
Cost      a run of `multipliers` or `newton` per point of the path, each started at the last one; about six

The lines c - t r are cutting planes of the smallest risk as a function of r: Kelley, The cutting-plane method
for solving convex programs, J. SIAM 8 (1960), 703-712. Norms other than squares: Schölkopf, Herbrich and
Smola, A generalized representer theorem, COLT 2001.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.errors import InputError, InputTypeError
from mercer.losses import Loss
from mercer.solvers.control import Control, State
from mercer.solvers.matrix import SquareMatrix
from mercer.solvers.result import Minimiser, Stop
from mercer.solvers.risk.certificate import DualityGap, WeightedRisk
from mercer.solvers.risk.multipliers import regularised_risk
from mercer.solvers.risk.objective import best_intercept
from mercer.solvers.rounding import Rounding

_FAR = 30.0  # the factor from the last λ of the path to the next beyond it
_INTERVALS = 50_000  # the values of r are cut into so many intervals, at most
_SMALLEST = 1e-100  # λ: its square is still a number
_INNER = 200  # iterations for a point of the path, at most
_GOLDEN = (math.sqrt(5.0) - 1) / 2


class Penalty:
    """Ω(s), s = ‖f‖² ≥ 0: its value, and its derivative by differences unless it is given.

    >>> omega = Penalty(lambda s: s**2)
    >>> omega(np.array([0.0, 3.0])), round(omega.derivative(3.0), 6)
    (array([0., 9.]), 6.0)
    """

    def __init__(self, value: Callable[[Any], Any], derivative: Callable[[Any], Any] | None = None) -> None:
        self._value = value
        self._derivative = derivative
        #: a fine grid and Ω on it: what is evaluated later must fit in between
        self._grid = np.concatenate([[0.0], np.logspace(-10, 10, 20_001)])
        self._on_grid = self._evaluate(self._grid)
        self._require_increasing(self._grid, self._on_grid)
        if (self._on_grid == self._on_grid[0]).all():
            raise InputError(
                f"penalty must increase with ‖f‖², got the constant Ω = {self._on_grid[0]:.6g}: the problem "
                "then has no regularisation; pass an increasing function"
            )

    def __call__(self, s: np.ndarray) -> np.ndarray:  # (m,)
        out = self._evaluate(s)
        near = np.unique(np.searchsorted(self._grid, s))  # the neighbours on the grid
        near = np.union1d(np.maximum(near - 1, 0), np.minimum(near, len(self._grid) - 1))
        known, values = np.append(self._grid[near], s), np.append(self._on_grid[near], out)
        order = np.lexsort((values, known))  # Ω(s) twice may differ by rounding alone
        self._require_increasing(known[order], values[order])
        return out

    def _evaluate(self, s: np.ndarray) -> np.ndarray:  # (m,)
        with np.errstate(all="ignore"):
            try:
                out = np.asarray(self._value(s.copy()), dtype=float)
            except (TypeError, ValueError):  # The function was written for single numbers.
                out = np.empty(0)
            if out.shape == s.shape:
                return out
            try:
                return np.array([float(self._value(float(x))) for x in s])
            except (TypeError, ValueError, ArithmeticError) as error:
                raise InputError(
                    f"penalty must be a function of one number ‖f‖² ≥ 0 that returns a number, got {error}: "
                    "pass one such as np.sqrt"
                ) from error

    def derivative(self, s: float) -> float:
        """Ω'(s)."""
        with np.errstate(all="ignore"):
            if self._derivative is not None:
                return float(self._derivative(s))
            h = 6e-6 * s
            below, above = self(np.array([s - h, s + h]))
            return float((above - below) / (2 * h)) if h > 0 else math.inf

    @staticmethod
    def _require_increasing(s: np.ndarray, values: np.ndarray) -> None:  # (m,), s growing
        bad = np.isnan(values) | ((s == 0) & ~np.isfinite(values))
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            raise InputError(
                f"penalty must be a finite number at every ‖f‖² ≥ 0, got Ω({s[i]:.3g}) = {values[i]}: "
                "pass a function that is defined there"
            )
        with np.errstate(invalid="ignore"):  # From infinity to infinity nothing falls.
            falls = values[1:] < values[:-1] - 1e-12 * np.abs(values[1:])
        if falls.any():
            i = int(np.flatnonzero(falls)[0])
            raise InputError(
                f"penalty must increase with ‖f‖², got Ω({s[i]:.6g}) = {values[i]:.6g} and "
                f"Ω({s[i + 1]:.6g}) = {values[i + 1]:.6g}: "
                "the representer theorem needs an increasing Ω; pass one"
            )


def as_penalty(given: Any) -> Penalty:
    """A Penalty from a function Ω, a pair (Ω, Ω'), or an object with ``value`` and perhaps ``derivative``.

    >>> as_penalty(lambda s: 1 / (1 + s))
    Traceback (most recent call last):
    mercer.errors.InputError: penalty must increase with ‖f‖², got Ω(0) = 1 and ...: the representer theorem
    needs an increasing Ω; pass one
    """
    if isinstance(given, Penalty):
        return given
    if isinstance(given, tuple) and len(given) == 2 and all(map(callable, given)):
        return Penalty(*given)
    if callable(getattr(given, "value", None)):
        return Penalty(given.value, getattr(given, "derivative", None))
    if callable(given):
        return Penalty(given)
    raise InputTypeError(
        f"penalty must be a function of ‖f‖², got {given!r}: pass Ω such as np.sqrt, or a pair (Ω, Ω')"
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class PenaltyResult(Minimiser):
    """What was found, after as many iterations as there are points of the path."""

    #: ‖f‖² = αᵀKα
    square: float
    #: λ of the point on the path, infinite for f = 0
    penalty: float


def any_penalty(
    K: SquareMatrix,  # (n, n)
    loss: Loss,
    y: np.ndarray,  # (n,)
    weight: np.ndarray,  # (n,) ≥ 0
    omega: Penalty,
    *,
    factor: float = 1.0,
    tol: float = 1e-6,
    max_iter: int = 100,
    control: Control | None = None,
    **options: Any,
) -> PenaltyResult:
    """Minimise Σ wᵢ L(yᵢ, Fᵢ) + factor · Ω(αᵀKα), F = Kα + b.

    Parameters
    ----------
    omega : Ω, a Penalty
    factor : of Ω, > 0
    max_iter : points of the path at most
    K, loss, y, weight, tol, control : see `multipliers`, whose fit_intercept, direct, rounding and near are
        the options

    ½ (f - 2)² + ‖f‖, in one dimension where ‖f‖ = |f|, has its minimum at f = 1; with 3‖f‖ it is at f = 0:

    >>> from mercer.losses import Huber
    >>> one, y = np.ones((1, 1)), np.array([2.0])
    >>> for factor in (1.0, 3.0):
    ...     result = any_penalty(
    ...         one, Huber(9.0), y, np.ones(1), Penalty(np.sqrt), factor=factor, fit_intercept=False
    ...     )
    ...     round(float(result.values[0]), 3), round(result.objective, 5)
    (1.0, 1.5)
    (0.0, 2.0)
    """
    control = Control() if control is None else control
    path = _Path(WeightedRisk(loss, y, weight), omega, factor, Rounding(K, options.get("rounding", 0.0)))
    if control.restored is not None:
        path.restore(control.restored)
    else:
        path.begin(K, options.get("fit_intercept", True))
    stopped: Stop | None = None
    rounded = False
    while not stopped:
        size = max(abs(path.objective), 1e-300)
        lower, r = path.bound(0.05 * tol * size)
        if path.objective - lower <= tol * size:
            stopped = Stop.CONVERGED
        elif len(path.lambdas) > max_iter or control.stopped:
            stopped = control.stopped or Stop.MAX_ITER
        elif (following := path.following(r)) is None:
            is_near = path.objective - lower <= 1e-3 * size
            stopped, rounded = Stop.CONVERGED if is_near else Stop.ROUNDING, True
        else:
            options |= {"tol": path.tolerance(following, tol), "max_iter": _INNER, "start": path.last}
            options["control"] = control.inner()
            path.add(following, regularised_risk(K, loss, y, weight, following, **options))
            if not control.stopped:
                control.step(path.saved(), gap=path.objective - lower, objective=path.objective)
    gap, blur = max(path.objective - lower, 0.0), path.blur(0.05 * tol * size, lower)
    if blur > tol * size:
        rounded = rounded or stopped == Stop.CONVERGED
        stopped = Stop.ROUNDING if stopped == Stop.CONVERGED and gap + blur > 1e-3 * size else stopped
    return PenaltyResult(
        coef=path.coef,
        intercept=path.b,
        values=path.F,
        objective=path.objective,
        gap=gap + blur,
        iterations=len(path.lambdas) - 1,
        stopped=stopped,
        rounded=rounded,
        square=path.square,
        penalty=path.best_lambda,
    )


class _Path:
    """The points of the path so far, their lines, and the best of them."""

    def __init__(self, risk: WeightedRisk, omega: Penalty, factor: float, rounding: Rounding) -> None:
        self.risk = risk
        self.rounding = rounding
        self.omega = omega
        self.factor = factor
        self.objective = math.inf

    def begin(self, K: SquareMatrix, fit_intercept: bool) -> None:
        """f = 0, the point λ = ∞; and the line of s = 0, the least value of the loss."""
        n = len(self.risk.y)
        b = float(best_intercept(self.risk, np.zeros(n), 0.0)) if fit_intercept else 0.0
        certificate = DualityGap(K, self.risk, 1.0, fit_intercept)
        certificate.add(self.risk.gradient(np.full(n, b)), np.zeros(n), np.full(n, b), b)
        least = certificate.dual_risk(np.zeros(n))
        #: λ and ‖f_λ‖ of every point; c, t and what rounding may add to t² of every line, one more for s = 0
        self.lambdas, self.norms = [math.inf], [0.0]
        self.lines = [(least, 0.0, 0.0)] if math.isfinite(least) else []
        s, dual_risk, square = certificate.dual
        self.lines.append((dual_risk, math.sqrt(square), self.rounding.square(s)))
        self.last = np.zeros(n), b
        self.take(math.inf, np.zeros(n), b, np.full(n, b), 0.0)

    def add(self, penalty: float, result: Any) -> None:
        self.lambdas.append(penalty)
        self.norms.append(math.sqrt(result.square))
        self.lines.append((result.dual_risk, math.sqrt(result.dual_square), result.dual_blur))
        self.last = result.coef, result.intercept
        self.mix(penalty, result.coef, result.intercept, result.values, result.square)
        self.take(penalty, result.coef, result.intercept, result.values, result.square)

    def take(self, penalty: float, coef: np.ndarray, b: float, F: np.ndarray, square: float) -> None:
        value = self.risk.value(F) + float(self.omega_at(np.array([math.sqrt(square)]))[0])
        if value < self.objective:
            self.objective, self.best_lambda = value, penalty
            self.coef, self.b, self.F, self.square = coef, b, F, square

    def mix(self, penalty: float, coef: np.ndarray, b: float, F: np.ndarray, square: float) -> None:
        """Take the best of (1 - θ) best + θ new, if that is better than both.

        Where Ω has a kink or a jump, the minimum has just that norm, between those of two points of the path.
        """
        start, b_start, F_start, square_start = self.coef, self.b, self.F, self.square
        inverse = 1 / self.best_lambda, 1 / penalty  # where pieces of L are straight f is linear in it
        cross = float(start @ (F - b))

        def norm2(theta: float) -> float:
            rest = 1 - theta
            return max(rest**2 * square_start + 2 * theta * rest * cross + theta**2 * square, 0.0)

        def height(theta: float) -> float:
            omega = self.omega_at(np.array([math.sqrt(norm2(theta))]))
            return self.risk.value(F_start + theta * (F - F_start)) + float(omega[0])

        grid = np.linspace(0, 1, 33)
        i = int(np.argmin([height(theta) for theta in grid]))
        low, high = float(grid[max(i - 1, 0)]), float(grid[min(i + 1, 32)])
        for _ in range(60):
            left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
            low, high = (left, high) if height(left) > height(right) else (low, right)
        for theta in (low, high):  # one of the two is on the right side of a jump
            alpha, values = start + theta * (coef - start), F_start + theta * (F - F_start)
            between = (1 - theta) * inverse[0] + theta * inverse[1]
            there = 1 / between if between > 0 else math.inf
            self.take(there, alpha, b_start + theta * (b - b_start), values, norm2(theta))

    def omega_at(self, r: np.ndarray) -> np.ndarray:
        return self.factor * self.omega(r * r)

    # --- the lower bound ---------------------------------------------------------------------------------

    def below(self, r: np.ndarray) -> np.ndarray:
        """max of the lines: at most the risk of any f of norm r, and falling in r."""
        out = np.full(r.shape, -math.inf)
        for c, t, _ in self.lines:
            np.maximum(out, c - t * r, out=out)
        return out

    def bound(self, accuracy: float) -> tuple[float, float]:
        """A lower bound of J over all f, and the r where it is attained, nearly."""
        top = 1e3 * max(1.0, *self.norms)
        while top > 1e-150 and self.least_at(0.5 * top) >= self.objective:
            top *= 0.5
        while (
            top < 1e150
            and self.least_at(top) < self.objective
            and self.omega_at(np.array([2 * top]))[0] < math.inf
        ):
            top *= 2.0
        ends = np.concatenate([[0.0], top * np.logspace(-12, 0, 500)])
        p, q = ends[:-1], ends[1:]
        lower = self.least_at(top)  # This bounds what lies beyond the top.
        upper, at = math.inf, 0.0
        while True:
            bounds = self.below(q) + self.omega_at(p)
            values = self.below(p) + self.omega_at(p)
            i = int(values.argmin())
            if values[i] < upper:
                upper, at = float(values[i]), float(p[i])
            narrow = q - p <= 4e-16 * q
            cut = (bounds < min(upper, self.objective) - accuracy) & ~narrow
            if not cut.all():
                lower = min(lower, float(bounds[~cut].min()))
            p, q, bounds = p[cut], q[cut], bounds[cut]
            if not len(p):
                break
            if len(p) > _INTERVALS:
                lower = min(lower, float(bounds.min()))
                break
            middle = 0.5 * (p + q)
            p, q = np.concatenate([p, middle]), np.concatenate([middle, q])
        return lower, at

    def blur(self, accuracy: float, lower: float) -> float:
        """What the rounding of K adds to the gap, of the computed objective and of the true one.

        The lines fall more steeply by as much as t may be off; the true values of f and ‖f‖² differ from the
        computed ones by as much as products with K may be off.
        """
        if not self.rounding.tau > 0:
            return 0.0
        lines = self.lines
        self.lines = [(c, math.sqrt(t * t + blur), 0.0) for c, t, blur in lines]
        steeper = max(lower - self.bound(accuracy)[0], 0.0)
        self.lines = lines
        square = self.square + self.rounding.square(self.coef)
        heights = self.omega_at(np.sqrt([self.square, square]))
        with np.errstate(over="ignore"):
            risk = self.risk.excess(self.F, self.rounding.values(self.coef), np.zeros_like(self.F))
        return steeper + max(risk + float(heights[1] - heights[0]), 0.0)

    def least_at(self, r: float) -> float:
        """A bound of J over all f of norm r or more: the loss at its least, Ω as at r."""
        floor = min((c for c, t, _ in self.lines if t == 0.0), default=-math.inf)
        return floor + float(self.omega_at(np.array([r]))[0])

    # --- the next point ----------------------------------------------------------------------------------

    def following(self, r: float) -> float | None:
        """λ = 2Ω'(r²) where that is between the neighbours of r on the path; None if those are one."""
        norms, lambdas = np.array(self.norms), np.array(self.lambdas)
        wanted = 2 * self.factor * self.omega.derivative(r * r if r > 0 else 1.0)
        usable = math.isfinite(wanted) and wanted > 0
        if len(lambdas) == 1:  # the first, exact where Ω is a multiple of ‖f‖²
            slope = 2 * self.factor * self.omega.derivative(1.0)
            return slope if math.isfinite(slope) and slope > 0 else 1.0
        high = float(lambdas[norms <= r].min())
        smaller = lambdas[(norms > r) & (lambdas < high)]
        if not smaller.size:
            low = max(wanted if usable else 0.0, high / _FAR**2)
            return min(low, high / _FAR) if high > _SMALLEST else None
        low = float(smaller.max())
        if math.isinf(high):
            high = max(wanted if usable else 0.0, low * _FAR)
            return min(high, low * _FAR**2) if low < 1 / _SMALLEST else None
        if high <= low * (1 + 1e-9):
            return None
        found = self.crossing(low, high, float(norms[lambdas == low][0]), float(norms[lambdas == high][0]))
        return math.sqrt(low * high) if found is None else found

    def tolerance(self, penalty: float, tol: float) -> float:
        """The tolerance of the run at this λ: near its neighbours, it must be small to tell them apart."""
        steps = np.abs(np.log(np.array(self.lambdas[1:]) / penalty))
        return max(1e-13, 0.05 * tol * min(1.0, float(steps.min(initial=1.0))) ** 2)

    def crossing(self, low: float, high: float, norm_low: float, norm_high: float) -> float | None:
        """Where λ = 2Ω'(r²) between two points, log r taken as linear in log λ; None if it does not cross."""
        if not norm_high > 0:
            return None
        width = math.log(high / low)
        bend = math.log(norm_low / norm_high)

        def excess(x: float) -> float:
            square = (norm_low * math.exp(-x * bend)) ** 2
            slope = 2 * self.factor * self.omega.derivative(square)
            return math.log(low) + x * width - (math.log(slope) if 0 < slope < math.inf else math.nan)

        a, b = 0.0, 1.0
        if not (excess(a) < 0 < excess(b)):
            return None
        for _ in range(50):
            middle = 0.5 * (a + b)
            a, b = (middle, b) if excess(middle) < 0 else (a, middle)
        return low * math.exp(min(max(a, 0.02), 0.98) * width)  # It stays off the ends, so that both move.

    # --- checkpoints -------------------------------------------------------------------------------------

    def saved(self) -> Callable[[], State]:
        facts: State = {
            "points": np.array([self.lambdas, self.norms]),
            "lines": np.array(self.lines),
            "best": np.array([self.objective, self.best_lambda, self.b, self.square]),
            "coef": self.coef,
            "F": self.F,
            "last": self.last[0],
            "last_b": self.last[1],
        }
        return lambda: facts

    def restore(self, state: State) -> None:
        self.lambdas, self.norms = state["points"].tolist()
        self.lines = [(c, t, blur) for c, t, blur in state["lines"].tolist()]
        self.objective, self.best_lambda, self.b, self.square = state["best"].tolist()
        self.coef, self.F = state["coef"], state["F"]
        self.last = state["last"], float(state["last_b"])
