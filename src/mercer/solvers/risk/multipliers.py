r"""The method of multipliers: regularised risks whose loss has kinks, solved exactly, with a certificate.

Minimise  P(α, b) = Σᵢ wᵢ L(yᵢ, Fᵢ) + (λ/2) αᵀKα,   F = Kα + b
Given     K, positive semi-definite, as an array or as products; L convex with its proximal map; wᵢ ≥ 0; λ > 0
Iteration z = F as a constraint, with multipliers s and the augmented Lagrangian. Minimised over z it leaves
              Σᵢ min_z wᵢ [L(yᵢ, z) + (σ/2)(z - uᵢ)²] + (λ/2) αᵀKα,   uᵢ = Fᵢ + sᵢ/(σwᵢ)
          a smooth risk, Moreau's envelope of L, which semismooth Newton steps minimise over (α, b); then
              sᵢ ← σ wᵢ (uᵢ - prox(uᵢ))
          which is a subgradient of wᵢ L at the proximal point: feasible in the dual as it is. σ grows.
Stop      when gap = P - D ≤ tol · max(|P|, λ‖f‖²/2), P with the loss itself and the best b, D the dual at a
          feasible s (see `certificate`); or where rounding ends the progress: ``rounded`` says so, and the
          gap is what was reached
Cost      a few Newton steps per iteration, which factorise K on the points near kinks alone; about ten
          iterations

Rockafellar, Augmented Lagrangians and applications of the proximal point algorithm in convex programming,
Math. of Operations Research 1 (1976), 97-116. With semismooth Newton steps: Li, Sun and Toh, A highly
efficient semismooth Newton augmented Lagrangian method for solving Lasso problems, SIAM J. Optimization 28
(2018), 433-458.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.errors import InputError
from mercer.losses import Loss
from mercer.solvers.control import Control, State
from mercer.solvers.landmarks.pivots import PivotedFactor
from mercer.solvers.matrix import SquareMatrix
from mercer.solvers.result import Stop
from mercer.solvers.risk.certificate import DualityGap, RiskResult, WeightedRisk
from mercer.solvers.risk.newton import newton
from mercer.solvers.risk.objective import best_intercept

_CLOSE = 1e4  # the first σ, where λ is small, in units of λ / Σ wᵢ k(xᵢ, xᵢ)
_RANGE = 1e7  # between the last σ and the first: beyond it F loses digits in u = F + s/σ
#: Iterations in a row without progress, after which rounding is blamed.
_ITERATIONS_WITHOUT_PROGRESS = 8


class Envelope:
    """Σ wᵢ min_z L(yᵢ, z) + (σ/2)(z - uᵢ)², uᵢ = Fᵢ + sᵢ/(σwᵢ): smooth, and its gradient is the next s."""

    def __init__(self, risk: WeightedRisk, s: np.ndarray, sigma: float) -> None:
        self.risk, self.s = risk, s
        self.loss, self.y, self.weight = risk.loss, risk.y, risk.weight
        self.sigma = sigma
        self.shift = self.per_weight(s) / sigma
        self.last = (np.empty(0),) * 3

    def part(self, rows: slice) -> Envelope:
        """The sum over some of the points."""
        return Envelope(self.risk.part(rows), self.s[rows], self.sigma)

    def per_weight(self, s: np.ndarray) -> np.ndarray:  # (n,)
        return np.divide(s, self.weight, out=np.zeros_like(s), where=self.weight > 0)

    def prox(self, F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """u and its proximal points; those of the last F are kept."""
        if F is not self.last[0]:
            u = F + self.shift
            self.last = F, u, self.loss.prox(self.y, u, 1 / self.sigma)
        return self.last[1:]

    def value(self, F: np.ndarray) -> float:
        u, z = self.prox(F)
        return float(self.weight @ (self.loss.value(self.y, z) + 0.5 * self.sigma * (z - u) ** 2))

    def gradient(self, F: np.ndarray) -> np.ndarray:
        u, z = self.prox(F)
        return self.sigma * self.weight * (u - z)

    def curvature(self, F: np.ndarray) -> np.ndarray:
        slope = self.loss.prox_slope(self.y, F + self.shift, 1 / self.sigma)
        return self.sigma * self.weight * (1 - slope)

    def multipliers(self, F: np.ndarray, s: np.ndarray) -> np.ndarray:
        """The next s, the gradient, with more digits than σ (u - z) has where σ is large.

        On a straight piece of L the slope there has them all; elsewhere -λα, given as s, has them, which
        equals the gradient at the minimum. Either only where it is near the gradient: at an end of a piece
        L' may be any of its slopes, and far from the minimum -λα may be anything.
        """
        z, gradient = self.prox(F)[1], self.gradient(F)
        near = 1e-3 * float(np.abs(self.per_weight(gradient)).max()) * self.weight
        slope = self.weight * self.loss.derivative(self.y, z)
        is_straight = (self.curvature(F) <= 0) & (np.abs(slope - gradient) <= near)
        s = np.where(is_straight, slope, np.where(np.abs(s - gradient) <= near, s, gradient))
        return np.where(np.abs(s) <= 1e-12 * np.abs(s).max(), 0.0, s)  # rounding makes no support vectors


def multipliers(
    K: SquareMatrix,  # (n, n)
    loss: Loss,
    y: np.ndarray,  # (n,)
    weight: np.ndarray,  # (n,) ≥ 0
    penalty: float,
    *,
    fit_intercept: bool = True,
    tol: float = 1e-6,
    max_iter: int = 100,
    start: tuple[np.ndarray, float] | None = None,
    control: Control | None = None,
    direct: bool | None = None,
    rounding: float = 0.0,
    near: PivotedFactor | None = None,
) -> RiskResult:
    r"""Minimise Σ wᵢ L(yᵢ, Fᵢ) + (penalty/2) αᵀKα, F = Kα + b, for any convex loss with a proximal map.

    Parameters
    ----------
    K : an array, or anything with shape, dtype and @
    loss : L
    y : targets, or ±1
    weight : wᵢ ≥ 0
    penalty : λ > 0
    fit_intercept : whether there is a b
    tol : the gap allowed, as a part of the objective
    max_iter : iterations at most, each of several Newton steps
    start : (coef, intercept) of a like problem, to start from
    control : progress, time limit, checkpoints
    direct : whether Newton steps may factorise; see `newton`
    rounding : τ, where K is known to within τ √(KᵢᵢKⱼⱼ) only; the gap that is stated then holds for both
    near : a factor of K of low rank, for Newton steps that do not factorise; see `newton`

    The median, as the b that minimises Σ |y - b|, with no room for f:

    >>> from mercer.losses import Absolute
    >>> y = np.array([1.0, 2.0, 3.0, 50.0, 60.0])
    >>> result = multipliers(np.zeros((5, 5)), Absolute(), y, np.ones(5), 1.0)
    >>> round(result.intercept, 6), round(result.objective, 6), result.stopped
    (3.0, 107.0, 'converged')
    """
    if not (math.isfinite(penalty) and penalty > 0):
        raise InputError(f"penalty must be positive, got {penalty!r}: pass a positive number")
    control = Control() if control is None else control
    risk = WeightedRisk(loss, y, weight)
    certificate = DualityGap(K, risk, penalty, fit_intercept, rounding)
    at = _State.restore(control.restored, certificate) if control.restored is not None else None
    first, most = _sigmas(certificate)
    if at is None:
        at = _State.begin(certificate, start, first)
    stopped: Stop | None = None
    rounded = False
    while not stopped:
        if certificate.is_met(tol):
            stopped = Stop.CONVERGED
        elif at.waited >= _ITERATIONS_WITHOUT_PROGRESS:
            stopped, rounded = Stop.CONVERGED, True
        elif at.iterations >= max_iter or control.stopped:
            stopped = control.stopped or Stop.MAX_ITER
        elif (following := _iterate(K, certificate, at, most, control, direct, near)) is not None:
            at = following
            control.step(at.saved(certificate), gap=certificate.gap, objective=certificate.primal_value)
    return certificate.result(tol, at.iterations, stopped, rounded)


def _iterate(
    K: SquareMatrix,
    certificate: DualityGap,
    at: _State,
    most: float,
    control: Control,
    direct: bool | None,
    near: PivotedFactor | None,
) -> _State | None:
    """The next state, or None if the run is to stop: the checkpoint is then that before this iteration."""
    penalty = certificate.penalty
    envelope = Envelope(certificate.risk, at.s, at.sigma)
    size = max(abs(certificate.primal_value), 1e-300)
    inner = newton(
        K,
        envelope,
        penalty,
        fit_intercept=certificate.fit_intercept,
        # After rounds without progress, more is asked: perhaps the last ones were not accurate enough.
        tol=max(1e-14, min(1e-3, 1e-2 * certificate.gap / size) * 0.1**at.waited),
        max_iter=200,
        start=(at.coef, at.b),
        control=control.inner(),
        direct=direct,
        near=near,
    )
    s = envelope.multipliers(inner.values, -penalty * inner.coef)
    certificate.add(s, inner.coef, inner.values, float(inner.intercept))
    if control.stopped:
        return None
    progress = certificate.gap < 0.7 * at.best
    return _State(
        coef=inner.coef,
        b=float(inner.intercept),
        s=s,
        sigma=at.sigma if inner.rounded else min(at.sigma * growth(inner.iterations), most),
        iterations=at.iterations + 1,
        waited=0 if progress else at.waited + (2 if inner.rounded else 1),
        best=min(at.best, certificate.gap),
    )


@dataclass(frozen=True, eq=False)
class _State:
    """What the next iteration reads, besides the certificate."""

    coef: np.ndarray
    b: float
    s: np.ndarray
    sigma: float
    iterations: int
    #: iterations since the gap last fell, and the gap then
    waited: int
    best: float

    @classmethod
    def begin(cls, certificate: DualityGap, start: tuple[np.ndarray, float] | None, sigma: float) -> _State:
        risk = certificate.risk
        n = len(risk.y)
        b = float(best_intercept(risk, np.zeros(n), 0.0)) if certificate.fit_intercept else 0.0
        flat = np.full(n, b)
        certificate.add(risk.gradient(flat), np.zeros(n), flat, b)
        if start is None:
            return cls(np.zeros(n), b, np.zeros(n), sigma, 0, 0, math.inf)
        coef, b = start
        s = certificate.feasible(-certificate.penalty * coef)
        return cls(coef, b, s, sigma, 0, 0, math.inf)

    def saved(self, certificate: DualityGap) -> Callable[[], State]:
        facts: State = {**vars(self), **{f"certificate_{k}": v for k, v in certificate.facts().items()}}
        return lambda: facts

    @classmethod
    def restore(cls, state: State, certificate: DualityGap) -> _State:
        kept = {k.removeprefix("certificate_"): v for k, v in state.items() if k.startswith("certificate_")}
        certificate.restore(kept)
        return cls(**{k: v for k, v in state.items() if not k.startswith("certificate_")})


def _sigmas(certificate: DualityGap) -> tuple[float, float]:
    """The first σ and the largest."""
    K: Any = certificate.product.K
    trace = float(certificate.risk.weight @ (K.diagonal() if isinstance(K, np.ndarray) else K.diag()))
    return widths(certificate.risk, certificate.penalty, trace)


def widths(risk: WeightedRisk, penalty: float, trace: float) -> tuple[float, float]:
    """The first σ and the largest, where Σ wᵢ k(xᵢ, xᵢ) is ``trace``.

    As a slope of L over a size of values, σ makes the envelope as wide as the data. Where λ is small, the
    term sᵀKs / (2λ) of the dual keeps the multipliers far below the slopes, and σ starts where its own
    ‖Δs‖² / (2σ) is comparable: from there on each problem is close to the last. All of it is the same
    whether a point has weight 2 or is there twice.
    """
    y, total = risk.y, float(risk.weight.sum())
    centre = float(risk.weight @ y) / total
    size = math.sqrt(float(risk.weight @ (y - centre) ** 2) / total)
    if not size > 0 or (np.abs(y) == 1.0).all():
        size = max(1.0, abs(centre))
    slope = float(np.abs(risk.gradient(np.full(len(y), centre))).sum()) / total
    wide = (slope if slope > 0 else 1.0) / size
    close = _CLOSE * penalty / trace if trace > 0 else wide
    return min(wide, close), wide * _RANGE


def growth(steps: int) -> float:
    """The factor by which σ grows, from the Newton steps that the last one took: fast while that is easy."""
    return 10.0 if steps <= 6 else 4.0 if steps <= 20 else 2.0


def regularised_risk(
    K: SquareMatrix,  # (n, n)
    loss: Loss,
    y: np.ndarray,  # (n,)
    weight: np.ndarray,  # (n,) ≥ 0
    penalty: float,
    **options: Any,
) -> RiskResult:
    """Minimise Σ wᵢ L(yᵢ, Fᵢ) + (penalty/2) αᵀKα: by `newton` where L is smooth, else by `multipliers`.

    ``options`` are those of `multipliers`, with the same defaults.

    >>> from mercer.losses import Squared
    >>> y = np.array([1.0, 2.0, 6.0])
    >>> result = regularised_risk(2 * np.eye(3), Squared(), y, np.ones(3), 2.0, fit_intercept=False)
    >>> result.coef.round(6)  # (K + I)⁻¹ y
    array([0.333333, 0.666667, 2. ])
    """
    if not loss.smooth:
        return multipliers(K, loss, y, weight, penalty, **options)
    options = {"tol": 1e-6, "max_iter": 100, **options}
    risk, is_shifted = WeightedRisk(loss, y, weight), options.get("fit_intercept", True)
    certificate = DualityGap(K, risk, penalty, is_shifted, options.get("rounding", 0.0))
    found = newton(K, risk, penalty, **options)
    certificate.add(risk.gradient(found.values), found.coef, found.values, found.intercept)
    # the last gap of the run is that of K as it was computed; what its rounding adds comes in the result
    certificate.dual_value = max(certificate.dual_value, found.objective - float(found.history[-1]))
    return certificate.result(options["tol"], found.iterations, found.stopped, found.rounded)
