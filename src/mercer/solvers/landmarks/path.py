r"""Kernel ridge regression on landmarks for many penalties at once, with the errors of points left out.

Minimise  Σᵢ wᵢ (yᵢ - f(xᵢ) - b)² + α ‖f‖²   over f = Σⱼ βⱼ k(zⱼ, ·) and b
Solution  with the scatter A = Q Λ Qᵀ of the features (`spectrum`) and r = Qᵀ Σᵢ wᵢ (φᵢ - φ̄)(yᵢ - ȳ)
              Tβ = Q (Λ + αI)⁻¹ r,   b = ȳ - ⟨φ̄, Tβ⟩,   objective Σᵢ wᵢ (yᵢ - ȳ)² - Σⱼ rⱼ² / (λⱼ + α)
Left out  the error at xᵢ of the fit without one observation there, α and the landmarks unchanged. Of the cᵢ
          observations that xᵢ stands for, one is left out; by default cᵢ = max(1, wᵢ):
              (yᵢ - f(xᵢ) - b) / (1 - hᵢ/cᵢ),   hᵢ = wᵢ (1/Σw + Σⱼ ψᵢⱼ² / (λⱼ + α)),   ψᵢ = Qᵀ(φᵢ - φ̄)
          without 1/Σw where there is no b. A landmark remains one when its point is left out.
α = 0     `minimum_norm`: among the f of least error the one of least norm
Cost      n M² and 9 M³ for A and Q; 2n M² for the scores of all penalties and targets together, in blocks of
          rows of which nothing is kept, and as much again for the errors of the chosen penalty

Values of ψ are K times T⁻¹Q: off by the rounding of K times ‖T⁻¹‖, as those of f are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.solvers.landmarks.certificate import Accuracy, RestrictedMinimum, SquaredRisk, certify
from mercer.solvers.landmarks.features import Features
from mercer.solvers.landmarks.inner import LeftOut, RiskGradient, Scores
from mercer.solvers.landmarks.posterior import MOST_FEATURES, leading
from mercer.solvers.landmarks.spectrum import scatter
from mercer.solvers.linear.evidence import surprise
from mercer.solvers.result import Stop

#: The least part of a point's own error that its fit leaves, 1 - h/c: below, f goes through the point.
_LEAST_FREE = 1e-12


class RestrictedPath:
    """Ridge on landmarks for every penalty, one or several targets.

    >>> from mercer.solvers.landmarks.basis import Basis
    >>> from mercer.gram.blocks import RowBlocks
    >>> from mercer import Linear
    >>> K = RowBlocks(Linear(), np.array([[0.0], [1.0], [2.0]]), np.array([[1.0]]))
    >>> path = RestrictedPath(
    ...     Features(K, Basis(np.eye(1)), True), np.array([[1.0], [3.0], [5.0]]), np.ones(3)
    ... )
    >>> path.solve(np.array([1e-12]))[0].round(6), path.solve(np.array([1e-12]))[1].round(6)  # y = 1 + 2x
    (array([[2.]]), array([1.]))
    """

    def __init__(
        self,
        features: Features,
        Y: np.ndarray,  # (n, t)
        weight: np.ndarray,  # (n,) ≥ 0
        copies: np.ndarray | None = None,  # (n,)
    ) -> None:
        self.features, self.weight = features, weight
        self.copies = np.maximum(1.0, weight if copies is None else copies)
        found = scatter(features, weight, centred=features.fit_intercept)
        spectrum = found.spectrum()
        self.values, self.Q, self.mean = spectrum.values, spectrum.vectors, found.mean
        self.total, self.trace, self.zero = found.total, found.trace, found.zero
        #: Φ̃ᵀWΦ̃, packed; see `posterior`
        self.normal = leading(found.normal(MOST_FEATURES, features.fit_intercept), features.fit_intercept)
        #: ȳ of every target
        self.centre = weight @ Y / self.total if features.fit_intercept else np.zeros(Y.shape[1])
        self.Y = Y - self.centre
        with features.passing():
            moments = features.K.adjoint(weight[:, None] * self.Y)
        self.right = self.Q.T @ features.basis.features(moments)

    def rotated(self, alphas: np.ndarray) -> np.ndarray:  # (t,) > 0 → (M, t)
        """QᵀTβ of every target under its own α."""
        return np.asarray(self.right / (self.values[:, None] + alphas))

    def solve(self, alphas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # (t,) > 0 → (M, t), (t,)
        """β and b of every target under its own α."""
        return self._functions(self.rotated(alphas))

    def minimum_norm(self, rcond: float | None) -> tuple[np.ndarray, np.ndarray, int]:  # (M, t), (t,)
        """β, b and the number of eigenvalues that count: those above rcond times the largest."""
        largest = float(self.values.max(initial=0.0))
        kept = self.values > (self.zero if rcond is None else rcond * largest)
        inverse = np.divide(1.0, self.values, out=np.zeros_like(self.values), where=kept)
        return *self._functions(inverse[:, None] * self.right), int(kept.sum())

    def certified(self, alpha: float, accuracy: Accuracy) -> RestrictedMinimum:
        """β and b under one penalty, with what is known of their distance from the minimum: one more pass."""
        targets = self.Y.shape[1]
        beta, b = self.solve(np.full(targets, alpha))
        u, F = self.features.joined(beta, b - self.centre), np.empty_like(self.Y)
        risk, diagonal = SquaredRisk(self.Y, self.weight), self.features.penalty(2 * alpha)
        slopes, _ = self.features.apply(u, RiskGradient(risk, is_single=False), each=F.__setitem__)
        of_b = np.abs(b - self.centre) + np.abs(self.centre)
        sums = np.abs(beta), of_b, np.abs(risk.gradient(F))
        sample = self.features.sample(self.weight)
        point = certify(sample, None, risk, 2 * alpha, u, F, slopes + diagonal * u, accuracy, sums)
        objective = risk.value(F) + float((diagonal * u**2).sum()) / 2
        return RestrictedMinimum(
            coef=beta,
            intercept=b,
            values=F,
            dual=point.s,
            dual_square=float((point.adjoint**2).sum()),
            objective=objective,
            gap=min(point.gap, objective + 2 * point.apart),
            passes=self.features.passes,
            iterations=0,
            stopped=Stop.CONVERGED,
        )

    def objective(self, alphas: np.ndarray) -> np.ndarray:  # (t,) → (t,)
        """The minimum of every target under its own α."""
        explained = (self.right**2 / (self.values[:, None] + alphas)).sum(axis=0)
        return np.maximum(self.weight @ self.Y**2 - explained, 0.0)

    def scores(self, alphas: np.ndarray, scoring: str = "squared") -> np.ndarray:  # (P,) > 0 → (P, t)
        """What every penalty is judged by, for each target: the smaller, the better.

        "squared", "absolute": the weighted mean of the errors left out. "evidence": see `evidence`.
        """
        if scoring == "evidence":
            return np.stack([self._surprise(np.full(self.Y.shape[1], alpha)) for alpha in alphas])
        count, targets = len(alphas), self.Y.shape[1]
        D = 1 / (self.values[:, None] + alphas)  # (M, P)
        C = (D[:, :, None] * self.right[:, None, :]).reshape(len(D), -1)  # (M, P t)
        common, share = self._common(C, D), self.weight / self.total
        inner = Scores(**common, share=share, is_squared=scoring == "squared")
        return self._pass(inner, count * targets).reshape(count, targets)

    def left_out(self, alphas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # (t,) → (n, t), (n, t)
        """f(xᵢ) + b, and the errors left out, of every target under its own α."""
        D = 1 / (self.values[:, None] + alphas)
        fitted, errors = np.empty_like(self.Y), np.empty_like(self.Y)

        def each(rows: slice, found: tuple[np.ndarray, np.ndarray]) -> None:
            fitted[rows], errors[rows] = found[0] + self.centre, found[1]

        self._pass(LeftOut(**self._common(D * self.right, D)), 1, each)
        return fitted, errors

    # --- parts of these ------------------------------------------------------------------------------------

    def _surprise(self, alphas: np.ndarray) -> np.ndarray:  # (t,) → (t,)
        spread = np.log1p(np.maximum(self.values, 0.0)[:, None] / alphas).sum(axis=0)
        return surprise(self.objective(alphas), spread, self.total, self.features.fit_intercept)

    def _functions(self, rotated: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # (M, t)
        w = self.Q @ rotated
        return self.features.basis.coefficients(w), self.centre - self.mean @ w

    def _common(self, C: np.ndarray, D: np.ndarray) -> dict[str, Any]:
        """What both ways of looking at the errors left out begin with."""
        return {
            "Y": self.Y,
            "ratio": self.weight / self.copies,
            "centre": self.mean @ self.Q,
            "C": C,
            "D": D,
            "ones": 1 / self.total if self.features.fit_intercept else 0.0,
            "least": _LEAST_FREE,
        }

    def _pass(self, inner: LeftOut, numbers: int, each: Any = None) -> np.ndarray:
        """The sums of what ``inner`` gives for the rows and their Qᵀφ."""
        rotation = self.features.basis.coefficients(self.Q)
        with self.features.passing():
            return self.features.K.pass_over(rotation, inner, numbers, width=0, each=each)[1]
