r"""Kernel ridge regression on landmarks.

Minimise  J(u) = Σᵢ wᵢ (yᵢ - f(xᵢ) - b)² + α ‖f‖²   over f = Σⱼ βⱼ k(zⱼ, ·) and b,   u = (Tβ, b)
Start     at the minimum for a sample of the rows, under their share of α
Solve     (Φ̃ᵀWΦ̃ + αD) x = ρ = Φ̃ᵀW(y - Φ̃u) - αDu, D = 1 but 0 for b, for the way x from there, by conjugate
          gradients, a pass over the rows each, most of them in single precision, with the Cholesky factor of
          the sample's system as preconditioner
Stop      where the gap is small enough, J - min J = ρᵀ(Φ̃ᵀWΦ̃ + αD)⁻¹ρ at the u that was found. It is at most
          ‖ρ‖²/α, and at most ρᵀP⁻¹ρ / (the sample's share of all weight), P being the preconditioner: other
          rows only add to the sample's own matrix. What is stated then is the gap of `certificate`.
Cost      2 s M² for a sample of s rows, 10 to 20 M, M³/3, and n M kernel values per pass

Rudi, Carratino and Rosasco, FALKON: an optimal large scale kernel method, NIPS 2017; the preconditioner from
a sample of rows instead of the landmarks' own matrix holds for any choice of landmarks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.solvers.control import Control
from mercer.solvers.landmarks.certificate import Accuracy, RestrictedMinimum, SquaredRisk, certify
from mercer.solvers.landmarks.features import Features
from mercer.solvers.landmarks.inner import RiskGradient, Weighted
from mercer.solvers.linear.conjugate import conjugate_gradient
from mercer.solvers.result import Stop

#: A gap that rounding keeps above the tolerance, relative to the objective, is small all the same up to this.
_CLOSE = 1e-3


@dataclass(frozen=True, eq=False, kw_only=True)
class RestrictedRidge(RestrictedMinimum):
    """f, and what it takes to say how far it may be off."""

    #: Φ̃ᵀWΦ̃ as the sample has it, packed; see `posterior`
    normal: np.ndarray


def restricted_ridge(
    features: Features,
    Y: np.ndarray,  # (n, t)
    alpha: float,
    weight: np.ndarray,  # (n,) > 0
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
    control: Control | None = None,
    accuracy: Accuracy | None = None,
    origin: np.ndarray | float = 0.0,  # (t,)
) -> RestrictedRidge:
    """β and b for every target, under one penalty α > 0.

    ``tol`` is the gap allowed, relative to the objective. ``origin`` is what was taken off the targets, for
    beside a large mean the digits of what is left would be lost; b has it again.
    """
    W, diagonal, M = weight[:, None], features.penalty(alpha), features.basis.size
    sample = features.sample(weight)
    square = sample.square(alpha)
    normal = features.normal(sample, square, weight)
    near = sample.inverse(alpha, square=square)
    some = near(sample.features.adjoint(sample.weight[:, None] * Y[sample.rows])) / sample.share
    risk, F = SquaredRisk(Y, weight), np.empty(Y.shape)
    slopes, _ = features.apply(some, RiskGradient(risk, is_single=False), each=F.__setitem__)
    rho = -slopes / 2 - diagonal * some
    first = (W * (Y - F) ** 2).sum(axis=0) + (diagonal * some**2).sum(axis=0)
    change: np.ndarray = np.zeros(Y.shape)

    def product(V: np.ndarray) -> np.ndarray:
        # The last product of all columns is that with the solution.
        keeps = V.shape[1] == Y.shape[1]
        found, _ = features.apply(V, Weighted(W, keeps), each=change.__setitem__ if keeps else None)
        return found + diagonal * V

    def rough(V: np.ndarray) -> np.ndarray:
        return features.apply(V, Weighted(W), is_rough=True)[0] + diagonal * V

    def enough(X: np.ndarray, residual: np.ndarray) -> np.ndarray:  # (t,)
        return np.sqrt(tol * np.maximum(first - (X * (rho + residual)).sum(axis=0), 0.0))  # J is in there.

    def length(residual: np.ndarray, solved: np.ndarray) -> np.ndarray:  # (t,)
        by_sample = np.maximum((residual * solved).sum(axis=0), 0.0) / sample.share
        return np.sqrt(np.minimum(by_sample, (residual**2).sum(axis=0) / alpha))

    found = conjugate_gradient(
        product,
        rho,
        max_iter=max_iter,
        precondition=near,
        rough=rough if features.is_rough_enough(weight, alpha) else None,
        control=control,
        enough=enough,
        length=length,
    )
    u = some + found.solution
    # Numbers for each of many rows are made in place: memory holds few such arrays at a time.
    slope_parts = F - Y
    F += change
    np.abs(slope_parts, out=slope_parts)
    slope_parts += np.abs(change, out=change)
    slope_parts *= W
    slope_parts *= 2
    change = np.empty(0)  # It is needed no more.
    parts = [features.split(part) for part in (some, found.solution)]
    of_b = sum((np.abs(b) for _, b in parts), np.abs(origin))
    sums = sum(np.abs(beta) for beta, _ in parts), of_b, slope_parts
    given = u, F, -2 * found.residual, accuracy or Accuracy(), sums
    certificate = certify(sample, lambda V: near(V) / 2, risk, 2 * alpha, *given)
    objective = risk.value(F) + alpha * float((u[:M] ** 2).sum())
    gap = min(certificate.gap, objective + 2 * certificate.apart)
    is_lost = found.stopped == Stop.CONVERGED and not certificate.is_small(gap, max(tol, _CLOSE) * objective)
    coef, intercept = features.split(u)
    return RestrictedRidge(
        coef=coef,
        intercept=intercept + origin,
        values=F,
        dual=certificate.s,
        dual_square=float((certificate.adjoint**2).sum()),
        objective=objective,
        gap=gap,
        passes=features.passes,
        iterations=found.iterations,
        stopped=Stop.ROUNDING if is_lost else found.stopped,
        normal=normal,
    )
