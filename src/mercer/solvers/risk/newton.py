r"""Newton's method for regularised risks.

Minimise  J(α, b) = R(F) + (λ/2) αᵀKα,   F = Kα + b,   as in ``objective``; from there come the gradient
          r = λα + ∇R(F), the best b and the bound J - min J ≤ gap = rᵀKr / (2λ)
Stop      when gap ≤ tol · |J|, F being multiplied out from α. Where rounding ends the progress before that
          (a float32 K, a tol near 1e-16), the run is converged as far as the numbers go: ``rounded`` says so,
          and the gap is the one that was reached.
Step      (λI + H̃K) δ = -r,   H̃ = H - H1(1ᵀH1)⁺1ᵀH:   H is the second derivative of R, and b is eliminated.
          One function, K an array: with S = √H, on the points where h > 0 alone, by Cholesky,
              δ = δ₀ + S u,   (λI + SKS) u = -S⁻¹(r + λδ₀) - SKδ₀ - βS1,   1ᵀ(α + δ) = 0
          where δ₀ = -r/λ for hᵢkᵢᵢ ≤ λ, else 0: any choice gives the same δ, this one without cancellation
          Otherwise by conjugate gradients in the inner product uᵀKv, where λI + H̃K is self-adjoint, as
          accurately as the step deserves; they are also tried first where Cholesky costs more than a few
          products. With a factor of K of low rank at hand, by those of ``preconditioned``.
Search    along F + tΔF by the derivative in t, without a product; t = 1 near the end
Cost      per step three products with K and |{h > 0}|³/3 multiplications, or a product per inner iteration

R may be differentiable only once (squared hinge, Huber, Moreau envelopes). ``curvature`` is then one of the
second derivatives at a kink, and the method is semismooth.

Chapelle, Training a support vector machine in the primal, Neural Computation 19 (2007), 1155-1178. Inexact
steps: Dembo, Eisenstat and Steihaug, Inexact Newton methods, SIAM J. Numerical Analysis 19 (1982), 400-408.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError

from mercer.errors import InputError
from mercer.runtime.config import memory_budget
from mercer.runtime.threads import run as on_threads
from mercer.solvers.control import Control, State
from mercer.solvers.landmarks.pivots import PivotedFactor
from mercer.solvers.linear.cholesky import factorise, solve
from mercer.solvers.linear.conjugate import kernel_conjugate_gradient
from mercer.solvers.matrix import SquareMatrix
from mercer.solvers.result import Stop
from mercer.solvers.risk.objective import (
    EPS,
    DescentResult,
    Objective,
    Point,
    Risk,
    line_search,
    shift_hessian,
)
from mercer.solvers.risk.preconditioned import RootedCurvature, newton_step

#: Steps in a row that do not halve the gap, after which rounding, where it is known to matter, is blamed.
_STEPS_WITHOUT_PROGRESS = 5
#: The number of points up to which Cholesky costs less than looking for something better.
_CHOLESKY_IS_CHEAP_BELOW = 500


@np.errstate(over="ignore", invalid="ignore")  # a step too far may overflow: it is refused by its value
def newton(
    K: SquareMatrix,  # (n, n)
    risk: Risk,
    penalty: float,
    *,
    fit_intercept: bool = True,
    n_functions: int | None = None,
    tol: float = 1e-8,
    max_iter: int = 100,
    start: tuple[Any, Any] | None = None,
    control: Control | None = None,
    direct: bool | None = None,
    rounding: float = 0.0,
    near: PivotedFactor | None = None,
) -> DescentResult:
    r"""Minimise R(Kα + b) + (penalty/2) Σ αᵀKα, the sum over the functions.

    Parameters
    ----------
    K : an array, or anything with shape, dtype and @
    risk : R; see Risk
    penalty : λ > 0
    fit_intercept : whether there is a b
    n_functions : None for one function, F (n,); m for F (n, m)
    tol : the gap allowed, as a part of |J|
    max_iter : steps at most
    start : (coef, intercept) to start from; zeros by default
    control : progress, time limit, checkpoints
    direct : whether Cholesky factorisations, of an n × n array of float64, may be made; by default where K is
        an array and they fit the memory budget beside it
    rounding : τ, where K is known to within τ √(KᵢᵢKⱼⱼ) only; the gap that is stated then holds for both
    near : a factor of K of low rank, to have fewer products where steps are not direct; of several functions
        it takes a curvature with roots (`RootedCurvature`)

    The mean of (1, 2, 6), as the b that minimises ½ Σ (F - y)², with no room for f:

    >>> class Squares:
    ...     y = np.array([1.0, 2.0, 6.0])
    ...
    ...     def value(self, F):
    ...         return 0.5 * ((F - self.y) ** 2).sum()
    ...
    ...     def gradient(self, F):
    ...         return F - self.y
    ...
    ...     def curvature(self, F):
    ...         return np.ones_like(F)
    >>> result = newton(np.zeros((3, 3)), Squares(), 1.0)
    >>> round(result.intercept, 12), round(result.objective, 12), result.stopped
    (3.0, 7.0, 'converged')

    And ridge regression, α = (K + λI)⁻¹y:

    >>> result = newton(2 * np.eye(3), Squares(), 1.0, fit_intercept=False)
    >>> result.coef.round(12)
    array([0.3333, 0.6667, 2.    ])
    """
    control = Control() if control is None else control
    run = _Run(K, risk, penalty, fit_intercept, n_functions, control, direct, rounding, near)
    if control.restored is not None:
        point = run.restore(control.restored)
    else:
        point = run.begin(start)
        run.history.append(point.gap)
    stopped: Stop | None = None
    rounded = False
    while not stopped:
        if run.is_met(point, tol):
            point = run.refreshed(point)
            if run.is_met(point, tol):
                stopped = Stop.CONVERGED
            elif point.gap > 0.5 * run.checked:  # What is left is rounding.
                stopped, rounded = Stop.CONVERGED, True
            run.checked = min(run.checked, point.gap)
        elif run.is_lost(point, tol):
            stopped, rounded = Stop.CONVERGED, True
        elif run.iterations >= max_iter or control.stopped:
            stopped = control.stopped or Stop.MAX_ITER
        elif (following := run.step(point, tol)) is not None:
            point = following
            run.iterations += 1
            run.history.append(point.gap)
            if not run.is_cut:  # a resumed run repeats a step that was cut: it begins where that did
                control.step(run.snapshot(point), gap=point.gap, objective=point.objective)
        elif run.is_cut:
            stopped = control.stopped or Stop.INTERRUPTED
        elif not point.fresh:
            point = run.refreshed(point)  # the last point is computed anew, without the rounding of many sums
        else:
            stopped, rounded = Stop.CONVERGED, True
    point = run.refreshed(point)
    run.history[-1] = point.gap
    if run.is_met(point, tol):
        stopped = Stop.CONVERGED  # It has, also where the time is up.
    return run.result(point, stopped, rounded, run.iterations, run.history, tol)


def require_solvable(penalty: float, name: str) -> None:
    """Refuse a weight of the penalty, or of the data, whose square leaves float64."""
    if not 1e-100 <= penalty <= 1e100:
        raise InputError(
            f"{name} must be between 1e-100 and 1e100 in the units of the objective, got {penalty:.3g}: pass "
            "such a number, or scale the data"
        )


class _Run(Objective):
    def __init__(
        self,
        K: Any,
        risk: Risk,
        penalty: float,
        fit_intercept: bool,
        n_functions: int | None,
        control: Control,
        direct: bool | None,
        rounding: float,
        near: PivotedFactor | None,
    ) -> None:
        super().__init__(K, risk, penalty, fit_intercept, n_functions, rounding)
        self.K = K
        self.near = near
        self.control = control
        self.diagonal = K.diagonal().astype(np.float64) if isinstance(K, np.ndarray) else np.empty(0)
        self.iterations = 0
        self.history: list[float] = []
        #: the smallest gap that was checked by multiplying out
        self.checked = math.inf
        #: the usual tolerance of conjugate gradients is multiplied by this, 1 or less
        self.accuracy = 1.0
        #: (n,) second derivatives over the last step, when that was far from a whole one
        self.secant: np.ndarray | None = None
        #: whether the last step was cut short by the control
        self.is_cut = False
        #: whether conjugate gradients gave up once: later systems are harder
        self.use_factor = self.n <= _CHOLESKY_IS_CHEAP_BELOW
        has_factor = n_functions is None and isinstance(K, np.ndarray)
        fits = has_factor and K.nbytes + 8 * self.n**2 <= memory_budget()
        self.direct = fits if direct is None else direct and has_factor

    def is_lost(self, point: Point, tol: float) -> bool:
        """Whether rounding keeps the gap above ``tol`` whatever is done, and steps no longer halve it."""
        before, last = self.history[:-_STEPS_WITHOUT_PROGRESS], self.history[-_STEPS_WITHOUT_PROGRESS:]
        if not before or min(last) <= 0.5 * min(before):
            return False
        return self.blur(point).most > tol * abs(point.objective)

    def snapshot(self, point: Point) -> Callable[[], State]:
        facts: State = {
            "coef": point.coef,
            "G": point.G,
            "b": point.b,
            "fresh": point.fresh,
            "checked": self.checked,
            "use_factor": self.use_factor,
            "accuracy": self.accuracy,
            "secant": np.empty(0) if self.secant is None else self.secant,
            "norm": self.product.norm,
            "products": self.product.count,
            "history": np.array(self.history),
            "iterations": self.iterations,
        }
        return lambda: facts

    def restore(self, state: State) -> Point:
        b = np.asarray(state["b"], dtype=np.float64)
        self.iterations = int(state["iterations"])
        self.history = list(state["history"])
        self.checked = float(state["checked"])
        self.use_factor = bool(state["use_factor"])
        self.accuracy = float(state["accuracy"])
        self.secant = state["secant"] if state["secant"].size else None
        self.product.norm = float(state["norm"])
        point = self.at(state["coef"], state["G"], b, bool(state["fresh"]))
        self.product.count = int(state["products"])
        return point

    # --- a step ----------------------------------------------------------------------------------------

    def step(self, point: Point, tol: float) -> Point | None:
        """The next point, or None where rounding leaves nothing to gain."""
        delta, K_delta, beta = self.direction(point, tol)
        change = K_delta + beta
        linear = self.penalty * float((point.coef * K_delta).sum())
        quadratic = self.penalty * self.product.form(delta, K_delta)
        gradient = point.r - self.penalty * point.coef
        slope = float((gradient * change).sum()) + linear
        rounding = 8 * EPS * (abs(point.risk) + abs(point.objective - point.risk))
        if not (math.isfinite(slope) and math.isfinite(quadratic)):
            return None
        if slope >= -rounding:
            # J no longer tells better from worse, but the gap still may
            coef = point.coef + delta
            following = self.at(coef, self.product(coef), point.b + beta, fresh=True)
            is_better = following.gap < 0.5 * point.gap and following.objective <= point.objective + rounding
            return following if is_better else None

        def along(t: float) -> tuple[float, float]:
            F = point.F + t * change
            value = float(self.risk.value(F)) - point.risk + t * linear + 0.5 * t * t * quadratic
            return value, float((self.risk.gradient(F) * change).sum()) + linear + t * quadratic

        t = line_search(along, slope, rounding)
        if t == 0.0:
            return None
        found = self.at(point.coef + t * delta, point.G + t * K_delta, point.b + t * beta, fresh=False)
        # a step that brought little was perhaps not accurate enough, unless R is just not quadratic there
        is_suspect = found.gap > 0.5 * point.gap and (self.m is None or 0.5 <= t <= 2)
        self.accuracy = max(0.1 * self.accuracy, 1e-8) if is_suspect else 1.0
        self.secant = None if self.m is not None or 0.5 <= t <= 2 else self.mean_curvature(point, found)
        return found

    def mean_curvature(self, point: Point, found: Point) -> np.ndarray:  # (n,)
        """The second derivatives between two points, on average: they see the kinks that were passed."""
        moved = found.F - point.F
        slope = (found.r - point.r) - self.penalty * (found.coef - point.coef)
        return np.maximum(np.divide(slope, moved, out=np.zeros_like(moved), where=moved != 0), 0.0)

    def direction(self, point: Point, tol: float) -> tuple[np.ndarray, np.ndarray, Any]:
        """δ, Kδ and β of the Newton step."""
        H = self.risk.curvature(point.F)
        if self.m is None:
            H = np.maximum(H, 0.0 if self.secant is None else self.secant)
        if self.direct and self.use_factor:
            return self.by_cholesky(point, H)
        active = self.n if self.m is not None else int(np.count_nonzero(H))
        # a product with a vector runs at about 1/16 of the speed of a factorisation, multiplication for
        # multiplication: so many of them cost as much as one
        limit = max(5, active**3 // (100 * self.n**2)) if self.direct else 2000
        found = self.by_conjugate_gradients(point, H, tol, limit)
        if found is not None:
            return found
        self.use_factor = True
        return self.by_cholesky(point, H)

    def by_conjugate_gradients(
        self, point: Point, H: Any, tol: float, limit: int
    ) -> tuple[np.ndarray, np.ndarray, Any] | None:
        apply = H if self.m is not None else lambda V: H * V
        ones = np.ones_like(point.F)
        inverse: np.ndarray | None = None
        if self.fit_intercept:
            inverse = np.linalg.pinv(shift_hessian(H, ones), rcond=1e-12, hermitian=True)

            def shifted(V: np.ndarray) -> np.ndarray:
                """H̃V: b follows the change V of the values."""
                HV = apply(V)
                return HV - apply(ones * (inverse @ HV.sum(axis=0).reshape(-1)).reshape(V.shape[1:]))

        size = point.gap / max(abs(point.objective), np.finfo(float).tiny)
        # accurate enough for fast convergence, and not beyond what the stopping rule asks for
        enough_to_stop = 0.1 * min(1.0, math.sqrt(tol / size)) if size > 0 else 1.0
        forcing = max(self.accuracy * min(0.25, math.sqrt(size)), min(enough_to_stop, self.accuracy))
        if self.near is not None and isinstance(H, np.ndarray | RootedCurvature):
            delta, K_delta, enough = newton_step(
                self.product,
                H,
                self.near,
                self.penalty,
                point.r,
                point.Kr,
                shift_inverse=inverse,
                tol=forcing,
                max_iter=limit,
                stopped=self.cut,
            )
        else:
            delta, K_delta, enough = kernel_conjugate_gradient(
                self.product,
                shifted if self.fit_intercept else apply,
                self.penalty,
                -point.r,
                -point.Kr,
                tol=forcing,
                max_iter=limit,
                stopped=self.cut,
            )
        if not enough and self.direct and not self.is_cut:
            return None
        if inverse is None:
            return delta, K_delta, 0.0
        beta = -(inverse @ apply(K_delta).sum(axis=0).reshape(-1)).reshape(point.F.shape[1:])
        return delta, K_delta, beta

    def cut(self) -> bool:
        self.is_cut = self.control.stopped is not None
        return self.is_cut

    def by_cholesky(self, point: Point, h: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        active = np.flatnonzero(h)
        s = np.sqrt(h[active])
        # where hk is the larger part of λ + hk, -r/λ would be a large number that S u takes back
        stiff = self.penalty < h[active] * self.diagonal[active]
        delta = -point.r / self.penalty
        delta[active[stiff]] = 0.0
        K_delta = self.product(delta)
        if not active.size:
            return delta, K_delta, 0.0
        solve = self.factor(active, s)
        right = -s * K_delta[active]
        right[stiff] -= point.r[active[stiff]] / s[stiff]
        u, beta = solve(right), 0.0
        if self.fit_intercept:
            v = solve(s)
            beta = (float(s @ u) + float(point.coef.sum()) + float(delta.sum())) / float(s @ v)
            u = u - beta * v
        extra = np.zeros(self.n)
        extra[active] = s * u
        return delta + extra, K_delta + self.product(extra), beta

    def factor(self, active: np.ndarray, s: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """B⁻¹ for B = λI + SKS on the active points."""
        size = len(active)
        rows = max(1, 2**17 // size)  # K's own copies stay small, on as many threads as there are
        parts = [slice(i, min(i + rows, size)) for i in range(0, size, rows)]
        for jitter in (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6):  # K may be indefinite by rounding
            B = np.empty((size, size))
            on_threads(partial(self.scaled, B, active, s), parts)
            B[np.diag_indices(size)] += self.penalty + jitter * size * B.diagonal().max()
            try:  # B is symmetric: its transpose is the column-major array that LAPACK can overwrite
                factor = factorise(B.T)
            except LinAlgError:
                del B
                continue
            return lambda rhs: solve(factor, rhs)
        raise self.product.indefinite()

    def scaled(self, B: np.ndarray, active: np.ndarray, s: np.ndarray, part: slice) -> None:
        """Some rows of SKS on the active points."""
        np.multiply(self.K[active[part]][:, active], s, out=B[part])
        B[part] *= s[part, None]
