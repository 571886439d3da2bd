r"""How far a regularised risk is from its minimum: a point of the dual problem tells.

Primal    P(α, b) = Σᵢ wᵢ L(yᵢ, Fᵢ) + (λ/2) αᵀKα,   F = Kα + b
Dual      D(s) = -Σᵢ wᵢ L*(yᵢ, sᵢ/wᵢ) - sᵀKs / (2λ) ≤ min P   for every s, with Σᵢ sᵢ = 0 where there is a b
Because   wᵢ L(yᵢ, Fᵢ) ≥ sᵢFᵢ - wᵢ L*(yᵢ, sᵢ/wᵢ)   (Fenchel and Young), and the least of
          Σᵢ sᵢFᵢ + (λ/2) αᵀKα over α and b is -sᵀKs / (2λ), at α = -s/λ
Minimum   sᵢ ∈ wᵢ ∂L(yᵢ, Fᵢ) and α = -s/λ, where P = D
Rounding  a computed K̂ = K + E has |αᵀEα| ≤ ε(α) (see ``rounding``), and F̂ = K̂α + b = F + Δ, |Δᵢ| ≤ eᵢ. Then
          P̂ - min P ≤ P̂ - D̂(s) + ε(s) / (2λ)  for the computed P̂, and for the true value at (α, b)
          P - min P ≤ P̂ - D̂(s) + ε(λα + s) / (2λ) + Σᵢ max [wᵢL(F̂ᵢ - Δᵢ) - wᵢL(F̂ᵢ) + sᵢΔᵢ] over all such Δ,
          because P - D is the sum of wᵢL + wᵢL* - sᵢFᵢ over the points and of rᵀKr / (2λ), r = λα + s. The
          gap that is stated holds for both (``Rounding.blur``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mercer.errors import InputError
from mercer.losses import Loss
from mercer.solvers.control import State
from mercer.solvers.linear.conjugate import Products
from mercer.solvers.matrix import SquareMatrix
from mercer.solvers.result import Minimiser, Stop
from mercer.solvers.risk.objective import EPS, best_intercept
from mercer.solvers.rounding import Blur, Rounding, allowed


@dataclass(frozen=True, eq=False, kw_only=True)
class RiskResult(Minimiser):
    """What was found, and the point of the dual that certifies it."""

    #: ‖f‖² = αᵀKα
    square: float
    #: (n,) s, a feasible point of the dual
    dual: np.ndarray
    #: -Σ wᵢ L*(yᵢ, sᵢ/wᵢ): for every f and b, the risk is at least this - √(sᵀKs) ‖f‖
    dual_risk: float
    #: sᵀKs
    dual_square: float
    #: what the rounding of K may do to it
    dual_blur: float


class WeightedRisk:
    """R(F) = Σ wᵢ L(yᵢ, Fᵢ), as ``newton`` takes it.

    >>> from mercer.losses import Squared
    >>> risk = WeightedRisk(Squared(), np.zeros(2), np.array([1.0, 3.0]))
    >>> risk.value(np.ones(2)), risk.gradient(np.ones(2))
    (4.0, array([2., 6.]))
    """

    #: a number with R(F) ≥ lowest, where one is known
    lowest = -math.inf

    def __init__(self, loss: Loss, y: np.ndarray, weight: np.ndarray) -> None:
        self.loss = loss
        self.y = y
        self.weight = weight

    def part(self, rows: slice) -> WeightedRisk:
        """The sum over some of the points."""
        return WeightedRisk(self.loss, self.y[rows], self.weight[rows])

    def value(self, F: np.ndarray) -> float:
        return float(self.weight @ self.loss.value(self.y, F))

    def gradient(self, F: np.ndarray) -> np.ndarray:
        return self.weight * self.loss.derivative(self.y, F)

    def curvature(self, F: np.ndarray) -> np.ndarray:
        return self.weight * self.loss.curvature(self.y, F)

    def excess(self, F: np.ndarray, e: np.ndarray, s: np.ndarray) -> float:
        """The most of R(F + Δ) - R(F) - ⟨s, Δ⟩ for |Δ| ≤ e: convex in Δ, it is largest at an end."""
        here = self.loss.value(self.y, F)
        ends = (self.weight * (self.loss.value(self.y, F + d) - here) - s * d for d in (e, -e))
        return float(np.maximum(*ends).sum())


class Multipliers:
    """The points s of the dual that are feasible, and the part of its value that does not depend on K."""

    def __init__(self, risk: WeightedRisk, fit_intercept: bool) -> None:
        self.risk = risk
        self.fit_intercept = fit_intercept
        low, high = risk.loss.domain(risk.y)
        weight, some = risk.weight, risk.weight > 0
        self.low = np.multiply(weight, low, out=np.zeros_like(weight), where=some)
        self.high = np.multiply(weight, high, out=np.zeros_like(weight), where=some)
        if fit_intercept and (_above_zero(self.low) or _above_zero(-self.high)):
            raise InputError(
                "the loss has no minimum in b: the sum over the points falls for ever as b "
                f"{'falls' if self.low.sum() > 0 else 'grows'}; take a loss that grows in both directions, "
                "or fit_intercept=False"
            )

    def dual_risk(self, s: np.ndarray) -> float:
        """-Σ wᵢ L*(yᵢ, sᵢ/wᵢ)."""
        weight, some = self.risk.weight, self.risk.weight > 0
        ratio = np.divide(s, weight, out=np.zeros_like(s), where=some)
        low, high = self.risk.loss.domain(self.risk.y)
        inside = np.clip(ratio, low, high)  # s/w may be rounded across an end.
        if (np.abs(inside - ratio) > 1e-12 * np.abs(inside))[some].any():
            return -math.inf
        return -float(weight[some] @ self.risk.loss.conjugate(self.risk.y, inside)[some])

    def feasible(self, s: np.ndarray) -> np.ndarray:
        """The s of a Newton run, moved as little as it takes into the domain and to Σ sᵢ = 0."""
        s = np.clip(s, self.low, self.high)
        if not self.fit_intercept:
            return s
        for _ in range(2):  # the second time for the rounding of the first
            excess = float(s.sum())
            # free points give way in proportion to their room: those at an end or at zero stay there
            room = np.minimum(np.minimum(s - self.low, self.high - s), np.abs(s))
            total = float(room.sum())
            if abs(excess) > total:
                return self.shifted(s)
            if total > 0:
                s = np.clip(s - excess * (room / total), self.low, self.high)
        return s

    def shifted(self, s: np.ndarray) -> np.ndarray:
        """clip(s - cw) with the c for which the sum is zero, by bisection."""
        weight = self.risk.weight

        def moved(c: float) -> np.ndarray:
            return np.clip(s - c * weight, self.low, self.high)

        reach = 1.0
        while reach < 1e300 and (moved(reach).sum() > 0 or moved(-reach).sum() < 0):
            reach *= 4
        low, high = -reach, reach
        for _ in range(200):
            c = 0.5 * (low + high)
            low, high = (c, high) if moved(c).sum() > 0 else (low, c)
        return moved(high)


class DualityGap(Multipliers):
    """Primal and dual values, from one product with K each; keeps the best of both."""

    def __init__(
        self, K: SquareMatrix, risk: WeightedRisk, penalty: float, fit_intercept: bool, rounding: float = 0.0
    ) -> None:
        super().__init__(risk, fit_intercept)
        self.product = Products(K)
        self.rounding = Rounding(K, rounding)
        self.penalty = penalty
        self.primal_value, self.dual_value = math.inf, -math.inf
        #: the best (coef, b, F, square), the best (s, dual_risk, dual_square)
        self.primal: tuple[np.ndarray, float, np.ndarray, float]
        self.dual: tuple[np.ndarray, float, float]
        #: what rounding alone may do to P - D: that of F, and that of products with K
        self.floor = self.noise = 0.0
        #: D(0) = Σ wᵢ min L(yᵢ, ·), without any rounding of K's
        self.least = self.dual_risk(np.zeros_like(risk.weight))

    @property
    def gap(self) -> float:
        """P - D, and never below what the rounding of K's products may hide."""
        return min(max(self.primal_value - self.dual_value, self.noise), self.primal_value - self.least)

    def is_met(self, tol: float) -> bool:
        """Whether the gap is small enough, for K as it was computed, or nothing but rounding."""
        size = max(abs(self.primal_value), 0.5 * self.penalty * self.primal[3])
        return self.gap <= max(allowed(tol * size, self.blur().most), self.floor)

    def blur(self) -> Blur:
        """What the rounding of K adds to the gap."""
        coef, _, F, _ = self.primal
        return self.rounding.blur(self.risk, self.penalty, coef, F, self.dual[0])

    def add(self, s: np.ndarray, coef: np.ndarray, F: np.ndarray, b: float) -> None:
        """Take note of s, of f = -Σ (sᵢ/λ) k(xᵢ, ·), and of (coef, b) with values F that s came with."""
        s = self.feasible(s)
        Ks = self.product(s)
        square = self.product.form(s, Ks)
        dual_risk = self.dual_risk(s)
        value = dual_risk - square / (2 * self.penalty)
        if value > self.dual_value or self.dual_value == -math.inf:
            self.dual_value, self.dual = value, (s, dual_risk, square)
            precision = float(np.finfo(self.product.K.dtype).eps)
            self.noise = 2 * precision * float(np.abs(s) @ np.abs(Ks)) / self.penalty
        G = F - b
        self.try_primal(coef, G, b, self.product.form(coef, G))
        self.try_primal(-s / self.penalty, -Ks / self.penalty, b, square / self.penalty**2)

    def try_primal(self, coef: np.ndarray, G: np.ndarray, b: float, square: float) -> None:
        if self.fit_intercept:
            b = float(best_intercept(self.risk, G, b))
        F = G + b
        value = self.risk.value(F) + 0.5 * self.penalty * square
        if value < self.primal_value or self.primal_value == math.inf:
            self.primal_value, self.primal = value, (coef, b, F, square)
            slopes = np.abs(self.risk.gradient(F)) + np.abs(self.penalty * coef)
            self.floor = 64 * EPS * float(slopes @ np.abs(F))

    def result(self, tol: float, iterations: int, stopped: Stop, rounded: bool) -> RiskResult:
        s, dual_risk, dual_square = self.dual
        if stopped == Stop.CONVERGED or rounded:
            # f = -Σ (sᵢ/λ) k(xᵢ, ·) has a coefficient only where sᵢ ≠ 0: kept where it is good enough
            dense = self.primal_value, self.primal, self.floor
            allowed = max(self.gap, 0.5 * tol * abs(self.primal_value))
            self.primal_value = math.inf
            self.try_primal(
                -s / self.penalty, -self.product(s) / self.penalty, dense[1][1], dual_square / self.penalty**2
            )
            if self.gap > allowed:
                self.primal_value, self.primal, self.floor = dense
        blur = self.blur()
        gap = blur.gap(self.gap, self.primal_value - self.least)
        if rounded or (stopped == Stop.CONVERGED and blur.most > tol * abs(self.primal_value)):
            rounded, is_near = True, gap <= 1e-3 * abs(self.primal_value)
            stopped = Stop.CONVERGED if is_near else Stop.ROUNDING
        coef, b, F, square = self.primal
        return RiskResult(
            coef=np.where(np.abs(coef) <= 1e-12 * np.abs(coef).max(), 0.0, coef),  # Rounding left them.
            intercept=b,
            values=F,
            objective=self.primal_value,
            gap=gap,
            iterations=iterations,
            stopped=stopped,
            rounded=rounded,
            square=square,
            dual=s,
            dual_risk=dual_risk,
            dual_square=dual_square,
            dual_blur=self.rounding.square(s),
        )

    def facts(self) -> State:
        """What a checkpoint keeps."""
        coef, b, F, square = self.primal
        s, dual_risk, dual_square = self.dual
        return {
            "values": np.array(
                [
                    self.primal_value,
                    self.dual_value,
                    self.floor,
                    self.noise,
                    b,
                    square,
                    dual_risk,
                    dual_square,
                ]
            ),
            "coef": coef,
            "F": F,
            "s": s,
        }

    def restore(self, facts: State) -> None:
        self.primal_value, self.dual_value, self.floor, self.noise, *rest = map(float, facts["values"])
        b, square, *dual = rest
        self.primal = (facts["coef"], b, facts["F"], square)
        self.dual = (facts["s"], dual[0], dual[1])


def _above_zero(ends: np.ndarray) -> bool:
    """Whether the sum is positive, beyond rounding."""
    return bool(ends.sum() > 1e-6 * np.abs(ends).sum())
