r"""How far from the minimum on its landmarks a function is, with the rounding of K(X, Z) in it.

Problem   J(w, b) = R(Φw + b) + (λ/2) ‖w‖²
Bound     for every s, of sum zero where there is a b: -R*(s) - ‖Φᵀs‖²/(2λ) ≤ min J. For s = ∇R(G) at any
          values G, R*(s) = ⟨s, G⟩ - R(G), and with F those of (w, b)
              J - min J ≤ gap = R(F) - R(G) + ⟨s, G - F⟩ + ‖λw + Φᵀs‖² / (2λ)
Choice    G = F leaves ‖∇J‖²/(2λ), which is far above J - min J where R has a curvature. So G is F but for a
          sample of the rows, where Φₛv is added with (Φₛᵀ∇²R Φₛ + λ) v ≈ -∇J, and a number that makes the sum
          zero. That leaves ½ ∇Jᵀ(Φₛᵀ∇²R Φₛ + λ)⁻¹∇J, about, where all rows would give J - min J itself. Any v
          will do: what is stated does not rest on how it was found.
Rounding  values of K are off by at most τ √(k(x, x) k(z, z)), so that the computed F is off by at most
              e = τ maxₓ √k(x, x) Σⱼ |βⱼ| √k(zⱼ, zⱼ) + unit · |b|
          and the computed Φᵀs by at most  ε = ‖T⁻¹‖ τ Σᵢ |sᵢ| √k(xᵢ, xᵢ) √(Σⱼ k(zⱼ, zⱼ)); Φᵀs is the sum of
          Φᵀ∇R(F) and of what the sample adds, and so is |s| in it. For the true J the gap has ε added to the
          norm, and  max [R(F - Δ) - R(F) + ⟨s, Δ⟩] over all |Δᵢ| ≤ e; for the computed one this last term
          is replaced by e Σ |sᵢ|. The stated gap holds for both, with
          (λ/2) (τ + M units) (Σⱼ |βⱼ| √k(zⱼ, zⱼ))² added for what is between ‖w‖² and ‖f‖² = βᵀK_MM β. Where
          R ≥ lowest, it is never more than J - lowest, and what rounding may do to R beside.
Beyond    the minimum over all functions of the RKHS is at least -R*(s) - sᵀKs/(2λ): what was said holds for
          it too, with (sᵀKs - ‖Φᵀs‖²) / (2λ) added, K being the matrix of all points.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.solvers.landmarks.basis import Basis
from mercer.solvers.landmarks.features import Sample
from mercer.solvers.result import Minimum
from mercer.solvers.risk.objective import best_intercept, is_best


@dataclass(frozen=True, eq=False, kw_only=True)
class RestrictedMinimum(Minimum):
    """f on the landmarks, or m functions."""

    #: (M, m): β
    coef: np.ndarray
    #: (m,): b
    intercept: np.ndarray
    #: (n, m): F = Φw + b
    values: np.ndarray
    #: (n, m): s, a point of the dual problem
    dual: np.ndarray
    #: ‖Φᵀs‖², summed over the functions
    dual_square: float
    #: passes over the rows
    passes: int
    #: whether the gap is above the tolerance, by more than the rounding of b
    rounded: bool = False


@dataclass(frozen=True)
class Accuracy:
    """What is known of the rounding of K(X, Z)."""

    #: τ
    values: float = 0.0
    #: maxₓ √k(x, x)
    largest: float = 1.0
    #: (M,) √k(z, z)
    landmarks: np.ndarray | float = 1.0
    #: τ of K(Z, Z), which is computed in float64
    own: float = 0.0

    def of_values(self, beta: np.ndarray, b: np.ndarray) -> np.ndarray:  # (M, m), (m,) → (m,)
        """e, for each function."""
        sizes = np.broadcast_to(self.landmarks, len(beta))
        return self.values * self.largest * (sizes @ np.abs(beta)) + self.of_intercept(b)

    def of_intercept(self, b: np.ndarray) -> np.ndarray:  # (m,)
        """The part of e that b has; none where no rounding is known of."""
        return (_EPS if self.values > 0.0 else 0.0) * np.abs(b)

    def of_square(self, beta: np.ndarray) -> float:
        """How far ‖w‖² and βᵀK_MM β may differ, summed over the functions."""
        if self.values == 0.0:
            return 0.0
        sizes = np.broadcast_to(self.landmarks, len(beta))
        factor = self.own + len(beta) * _EPS
        return factor * float(((sizes @ np.abs(beta)) ** 2).sum())

    def of_features(self, basis: Basis, s: np.ndarray) -> float:
        """ε, for all functions together."""
        if self.values == 0.0:
            return 0.0
        sizes = np.broadcast_to(self.landmarks, basis.size)
        total = float(np.linalg.norm(np.abs(s).sum(axis=0)))
        return basis.inverse_norm * self.values * self.largest * total * float(np.linalg.norm(sizes))


class SquaredRisk:
    """R(F) = Σᵢ wᵢ ‖yᵢ - Fᵢ‖², for several targets.

    >>> risk = SquaredRisk(np.array([[1.0], [3.0]]), np.array([1.0, 2.0]))
    >>> risk.value(np.zeros((2, 1))), risk.gradient(np.zeros((2, 1))).ravel()
    (19.0, array([ -2., -12.]))
    """

    lowest = 0.0

    def __init__(self, Y: np.ndarray, weight: np.ndarray) -> None:  # (n, m), (n,)
        self.Y, self.weight = Y, weight[:, None]

    def part(self, rows: Any) -> SquaredRisk:
        """The sum over some of the points."""
        return SquaredRisk(self.Y[rows], self.weight[rows, 0])

    def on(self, place: Callable[[np.ndarray], Any]) -> SquaredRisk:
        """The risk of arrays on a device."""
        return SquaredRisk(place(self.Y), place(self.weight)[:, 0])

    def value(self, F: np.ndarray) -> float:
        return float((self.weight * (self.Y - F) ** 2).sum())

    def gradient(self, F: np.ndarray) -> np.ndarray:
        return 2.0 * self.weight * (F - self.Y)

    def curvature(self, F: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        return lambda V: 2.0 * self.weight * V

    def excess(self, F: np.ndarray, e: np.ndarray, s: np.ndarray) -> float:
        """R(F + Δ) - R(F) - ⟨s, Δ⟩ = Σ w Δ² is at most this."""
        return float((self.weight * e**2).sum())


_EPS = float(np.finfo(np.float64).eps)
#: The rounding of a sum of terms of one sign, added in pairs, relative to it, at most.
_SUMMED = 16 * _EPS


class _Tilted:
    """R(F) + ⟨t, Σᵢ Fᵢ⟩: a shift b that minimises it makes the sum of ∇R equal to -n t."""

    def __init__(self, risk: Any, slope: np.ndarray | float) -> None:
        self.risk, self.slope, self.curvature = risk, slope, risk.curvature

    def value(self, F: np.ndarray) -> float:
        return float(self.risk.value(F)) + float((self.slope * F).sum())

    def gradient(self, F: np.ndarray) -> np.ndarray:
        return np.asarray(self.risk.gradient(F) + self.slope)


@dataclass(frozen=True, eq=False)
class DualPoint:
    """A point of the dual problem, and what it tells."""

    #: (n, m): s
    s: np.ndarray
    #: (M, m): Φᵀs
    adjoint: np.ndarray
    #: the gap as if there were no rounding
    plain: float
    #: the gap, with what rounding adds to it
    gap: float
    #: what the rounding of F adds to the gap; and the part of it that b alone adds, which no method avoids
    apart: float
    least: float

    def is_small(self, gap: float, size: float) -> bool:
        """Whether a gap is a small part of an objective of this size, or the rounding of b makes it."""
        return gap <= size + 3 * self.least


def certify(
    sample: Sample,
    near: Callable[[np.ndarray], np.ndarray] | None,
    risk: Any,
    penalty: float,
    u: np.ndarray,  # (M + 1, m)
    F: np.ndarray,  # (n, m) = Φ̃u
    g: np.ndarray,  # (M + 1, m) = ∇J
    accuracy: Accuracy,
    sums: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
) -> DualPoint:
    """The better of two points of the dual, which differ from ∇R(F) on the sample alone.

    One is of values shifted by a number; the other is, with ``near`` ≈ (∇²J)⁻¹, that of a step beyond. A pass
    over the sample for each, and one for both. The gap is ∞ where no shift makes the sum zero.

    ``sums``: where F and g were added up from parts, Σ |β| (M, m), Σ |b| (m,) and Σ |s| (n, m) of these: each
    has a rounding of its own.
    """
    features, rows, M = sample.features, sample.rows, sample.features.basis.size
    is_flat = not (isinstance(risk, SquaredRisk) or hasattr(risk, "n_classes"))

    def given(values: np.ndarray) -> np.ndarray:
        return values[:, 0] if is_flat else values

    s, own, there = risk.gradient(given(F)).reshape(F.shape), risk.part(rows), F[rows]
    here = s[rows]
    points, shifts = [there], np.zeros((2, F.shape[1]))
    if near is not None:
        points.append(there + sample.counts * features.values(near(-g) / sample.share))
    if features.fit_intercept:
        slope = (s.sum(axis=0) - here.sum(axis=0)) / len(here)
        tilted = _Tilted(own, slope[0] if is_flat else slope)
        guess = 0.0 if is_flat else np.zeros_like(slope)
        shifts = np.array([np.atleast_1d(best_intercept(tilted, given(G), guess)) for G in points])
    points = [G + b for G, b in zip(points, shifts, strict=False)]
    turns = [own.gradient(given(G)).reshape(G.shape) - here for G in points]
    moved = np.hsplit(features.adjoint(np.hstack(turns)), len(points))

    beta, intercept = features.split(u)
    of_beta, of_b, of_s = (beta, intercept, np.abs(s)) if sums is None else sums
    errors = accuracy.of_values(of_beta, of_b), accuracy.of_intercept(of_b)
    excess = [
        risk.excess(given(F), given(np.broadcast_to(e, F.shape)), given(s)) if e.any() else 0.0
        for e in errors
    ]
    between = 0.5 * penalty * accuracy.of_square(beta)
    found = []
    for G, b, turn, phi in zip(points, shifts, turns, moved, strict=False):
        dual, sizes = s.copy(), of_s.copy()
        dual[rows] += turn
        sizes[rows] += np.abs(turn)
        before, after = float(own.value(given(there))), float(own.value(given(G)))
        rest = max(before - after + float(((here + turn) * (G - there)).sum()), 0.0)
        rest += _SUMMED * (abs(before) + abs(after)) if turn.any() else 0.0  # That is what is left of sums.
        length = float(np.linalg.norm(g[:M] + phi[:M]))
        plain = gap = rest + length**2 / (2 * penalty)
        # For a single function, and for squares, b was bracketed to its last digit.
        is_one = is_flat or isinstance(risk, SquaredRisk)
        scale = abs(float(risk.value(given(np.zeros_like(F)))))
        if features.fit_intercept and not is_best(given(dual), float(abs(b).max()) if is_one else b, scale):
            plain = gap = math.inf
        apart, least = (
            max(more + float((np.abs(turn) * e).sum()), float((np.abs(dual) * e).sum()))
            for more, e in zip(excess, errors, strict=True)
        )
        if accuracy.values > 0.0:
            apart += between
            gap += apart + ((length + accuracy.of_features(features.basis, sizes)) ** 2 - length**2) / (
                2 * penalty
            )
        found.append(DualPoint(dual, g[:M] - penalty * u[:M] + phi[:M], plain, gap, apart, least))
    return min(found, key=lambda one: one.gap)
