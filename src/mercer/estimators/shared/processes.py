r"""The Gaussian process and the errors left out of a fitted ridge model, from what the model keeps.

A model with an expansion on all its points keeps their weights, and K is computed again when somebody asks
(`ExactProcess`). One on landmarks, or of a linear kernel with only w, keeps Φ̃ᵀWΦ̃ of at most 1,000 features,
σ², and the scores |eᵢ| / s₋ᵢ(xᵢ) of at most 2,000 points (`SketchedProcess`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.linalg import LinAlgError

from mercer.data import points as data
from mercer.data.sparse import dense
from mercer.data.types import Points
from mercer.errors import InputError
from mercer.estimators.shared.origin import moved
from mercer.gram import Gram
from mercer.kernels.base import Kernel
from mercer.runtime.config import config, memory_budget, require_memory, settings
from mercer.solvers.conformal import quantile
from mercer.solvers.landmarks.basis import Basis, in_order
from mercer.solvers.landmarks.posterior import FeaturePosterior, kept_of
from mercer.solvers.linear.posterior import RidgePosterior

#: Bytes of the arrays of a block of new points, at most.
_BLOCK_BYTES = 2**26
_ARRAYS = 7  # so many arrays as large as a block's kernel values are there at a time


class Process(Protocol):
    """The process of every target of a model, in units of its σ²/α."""

    #: (t,) σ²; infinite where nothing tells it
    noise: Any

    def variance(self, X: Points, target: int) -> np.ndarray:  # (m,)
        """v(x)."""

    def covariance(self, X: Points, target: int) -> np.ndarray:  # (m, m)
        """The covariance of f(x) with f(x')."""

    def interval(self, X: Points, mean: np.ndarray, target: int, coverage: float) -> np.ndarray:  # (m, 2)
        """Ends of an interval for the target of each point, by the errors left out."""


class ExactProcess:
    """The process of a model that has all of its points: α, weights and coefficients tell the rest."""

    def __init__(
        self,
        kernel: Kernel,
        points: Points,
        coef: np.ndarray,  # (n, t)
        alphas: np.ndarray,  # (t,)
        weight: np.ndarray,  # (n,)
        fit_intercept: bool,
        origin: np.ndarray | None = None,
    ) -> None:
        n, different = data.n_points(points), np.unique(alphas)
        item = np.dtype(settings().dtype).itemsize
        require_memory(
            n * n * item * len(different),
            f"the variance of f by a factor of K, {n:,} × {n:,}"
            + f", for each of {len(different)} penalties" * (len(different) > 1),
            "fit on landmarks (landmarks='auto')",
        )
        self.kernel, self.points, self.coef, self.origin = kernel, points, coef, origin
        self.alphas, self.weight = alphas, weight
        gram = Gram(kernel, points, cache=0)
        try:
            found = {a: RidgePosterior(gram, weight, float(a), fit_intercept) for a in different.tolist()}
        except LinAlgError:
            raise InputError(
                "K + αI is not positive definite, to rounding, and there is no Gaussian process of such a "
                "covariance: take a larger alpha, or a kernel that is positive definite (mercer.certify "
                "tells)"
            ) from None
        self._posteriors, self._free = found, {a: one.free() for a, one in found.items()}
        # A single point and its own intercept leave nothing to tell the noise from.
        is_known = float(weight.sum()) > fit_intercept
        every = [
            found[a].noise(coef[:, [j]])[0] if is_known else np.inf for j, a in enumerate(alphas.tolist())
        ]
        self.noise: Any = np.array(every)

    def variance(self, X: Points, target: int) -> np.ndarray:
        posterior, out = self._posteriors[float(self.alphas[target])], np.empty(data.n_points(X))
        for rows, k, diagonal in self._blocks(X):
            out[rows] = diagonal - posterior.explained(k)
        return np.maximum(out, 0.0)

    def covariance(self, X: Points, target: int) -> np.ndarray:
        own = self._of(X)
        require_memory(
            8 * (data.n_points(X) + 2 * len(self.coef)) * data.n_points(X),
            f"the covariance of f at {data.n_points(X):,} points",
            "ask for fewer points, or for return_std",
        )
        posterior = self._posteriors[float(self.alphas[target])]
        k = np.asarray(Gram(self.kernel, self.points, own, cache=0).dense(), dtype=np.float64)
        return Gram(self.kernel, own, cache=0).dense() - posterior.explained_pairs(k)

    def interval(self, X: Points, mean: np.ndarray, target: int, coverage: float) -> np.ndarray:
        """The interval of the jackknife+ with the scale s₋ᵢ(x) = √(α + v₋ᵢ(x)); see `solvers.conformal`."""
        alpha, w = float(self.alphas[target]), self.weight
        posterior, free, out = self._posteriors[alpha], self._free[alpha], np.empty((len(mean), 2))
        share, least = 1 / np.maximum(1.0, w), np.minimum(1.0, w)
        errors = alpha * self.coef[:, target] / (w * free)
        # At a point itself α hᵢ / wᵢ is v, and gᵢ = 1 - cᵢ wᵢ v / α.
        own = alpha * (1 - free) / (share * w)
        scale = np.sqrt(alpha + own + own**2 * least / (alpha * free))
        score, lost = np.abs(errors) / scale, np.isnan(free)
        for rows, k, diagonal in self._blocks(X):
            h, explained = posterior.shares(k)
            v = np.maximum(diagonal - explained, 0.0)
            half = np.square(h)
            half *= (alpha * least / (w**2 * free))[:, None]
            half += alpha + v
            np.sqrt(half, out=half)
            half *= score[:, None]
            h *= -(share * errors)[:, None]
            h += mean[rows]
            for values in (h, half):  # Without such a point there is no b, and f may be anything.
                values[lost] = np.inf
            out[rows, 1] = quantile(h + half, coverage, w)
            out[rows, 0] = -quantile(half - np.where(lost[:, None], 0.0, h), coverage, w)
        return out

    def _blocks(self, X: Points) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Rows of X, their kernel values (n, m) with the points, and k(x, x)."""
        n, m = len(self.coef), data.n_points(X)
        step = max(1, min(_BLOCK_BYTES, memory_budget() // 8) // (8 * _ARRAYS * n))
        for start in range(0, m, step):
            rows = slice(start, min(start + step, m))
            own = self._of(data.take(X, rows))
            k = Gram(self.kernel, self.points, own, cache=0).dense()
            yield rows, np.asarray(k, dtype=np.float64), _diagonal(self.kernel, own)

    def _of(self, X: Points) -> Points:
        return moved(X, self.origin)


class SketchedProcess:
    """The process of a model on landmarks, φ(x) = T⁻ᵀk(Z, x), or of a linear kernel, φ(x) = x - m."""

    def __init__(
        self, kernel: Kernel, anchors: Any, sketch: dict[str, Any], alphas: np.ndarray, fit_intercept: bool
    ) -> None:
        packed, centre = sketch["normal"], sketch.get("centre")
        self.kernel, self.centre, self.alphas = kernel, centre, alphas
        features = kept_of(packed, fit_intercept)
        self.points: Any = data.take(anchors, slice(0, features)) if centre is None else ()
        self.noise: Any = sketch.get("noise")  # It comes last, as scores and their weights do.
        self.scores, self.weight = sketch.get("scores"), sketch.get("weight")
        self._basis: Basis | None = None
        if centre is None:
            with config(dtype="float64"):
                own = Gram(kernel, self.points, cache=0).dense()
            self._basis = in_order(own)
        different = np.unique(alphas).tolist()
        self._posteriors = {a: FeaturePosterior(packed, float(a), fit_intercept) for a in different}

    def variance(self, X: Points, target: int) -> np.ndarray:
        return self._variance(X, target)[0]

    def _variance(self, X: Points, target: int) -> tuple[np.ndarray, np.ndarray]:  # (m,), (m,)
        """v(x) and q(x)."""
        alpha, m = float(self.alphas[target]), data.n_points(X)
        posterior, out, spread = self._posteriors[alpha], np.empty(m), np.empty(m)
        step = max(1, min(_BLOCK_BYTES, memory_budget() // 8) // (8 * 4 * (posterior.features + 1)))
        for start in range(0, m, step):
            rows = slice(start, min(start + step, m))
            some = data.take(X, rows)
            phi = self._phi(some)
            spread[rows] = posterior.spread(phi)
            out[rows] = alpha * spread[rows]
            if self.centre is None:  # A linear kernel has no other features.
                rest = _diagonal(self.kernel, some) - np.einsum("ij,ij->i", phi, phi)
                out[rows] += np.maximum(rest, 0.0)
        return out, spread

    def covariance(self, X: Points, target: int) -> np.ndarray:
        m, alpha = data.n_points(X), float(self.alphas[target])
        posterior = self._posteriors[alpha]
        require_memory(
            8 * (2 * m + 2 * posterior.features) * m,
            f"the covariance of f at {m:,} points",
            "ask for fewer points, or for return_std",
        )
        phi = self._phi(X)
        half = posterior.half(phi)
        found = alpha * (half.T @ half)
        if self.centre is None:
            found += np.asarray(Gram(self.kernel, X, cache=0).dense(), dtype=np.float64) - phi @ phi.T
        return np.asarray(found)

    def interval(self, X: Points, mean: np.ndarray, target: int, coverage: float) -> np.ndarray:
        """The interval of the jackknife with the scale s(x) = √(α + v(x)); see `solvers.conformal`."""
        assert self.scores is not None
        factor = float(quantile(self.scores[:, [target]].copy(), coverage, self.weight)[0])
        half = factor * np.sqrt(float(self.alphas[target]) + self.variance(X, target))
        return np.column_stack([mean - half, mean + half])

    def score(self, X: Points, residuals: np.ndarray, weight: np.ndarray) -> np.ndarray:  # (c, t) → (c, t)
        """|eᵢ| / s₋ᵢ(xᵢ) of some of the points that were learned from, whose residuals are known."""
        out = np.empty_like(residuals)
        share, least = 1 / np.maximum(1.0, weight), np.minimum(1.0, weight)
        for j, alpha in enumerate(self.alphas.tolist()):
            v, q = self._variance(X, j)
            free = np.maximum(1 - share * weight * q, _LEAST_FREE)
            out[:, j] = np.abs(residuals[:, j]) / free
            out[:, j] /= np.sqrt(alpha + v + alpha * q**2 * least / free)
        return out

    def _phi(self, X: Any) -> np.ndarray:  # (m, r)
        if self._basis is None:
            return np.asarray(dense(data.as_vectors(X)) - self.centre, dtype=np.float64)
        k = Gram(self.kernel, self.points, X, cache=0).dense()
        return np.asarray(self._basis.features(k).T, dtype=np.float64)


#: The least part of its own error that a point leaves: below, f goes through it.
_LEAST_FREE = 1e-12


def _diagonal(kernel: Kernel, X: Points) -> np.ndarray:  # (m,)
    return np.asarray(Gram(kernel, X, cache=0).diag(), dtype=np.float64)
