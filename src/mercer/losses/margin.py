r"""Losses for labels y = ±1, functions of the margin m = y f.

With ℓ(m) = L(y, f): L' = y ℓ'(m), L'' = ℓ''(m), L*(y, s) = ℓ*(y s), and prox_t(y, u) is y times
that of ℓ at y u.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import entr, expit

from mercer.data.types import Reals
from mercer.losses.base import Loss, within


class _Margin(Loss):
    """A loss ℓ(y f): subclasses state ℓ."""

    for_labels = True
    #: the closed interval where ℓ* is finite
    bounds: ClassVar[tuple[float, float]]

    def domain(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ends = np.multiply.outer(self.bounds, y)
        return ends.min(axis=0), ends.max(axis=0)


class Hinge(_Margin):
    """L = max(0, 1 − y f), of the support vector machine.

    >>> Hinge().value(np.array([1.0, -1.0]), np.array([0.25, 0.25]))
    array([0.75, 1.25])
    """

    name = "hinge"
    bounds = (-1.0, 0.0)

    def value(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return np.maximum(0.0, 1.0 - y * f)

    def derivative(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return np.where(y * f < 1.0, -y, 0.0)

    def curvature(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return np.zeros_like(f)

    def conjugate(self, y: np.ndarray, s: np.ndarray) -> np.ndarray:
        return within(y * s, -1.0, 0.0, y * s)

    def prox(self, y: np.ndarray, u: np.ndarray, t: Reals) -> np.ndarray:
        m = y * u
        return y * np.where(m >= 1.0, m, np.minimum(m + t, 1.0))

    def prox_slope(self, y: np.ndarray, u: np.ndarray, t: Reals) -> np.ndarray:
        m = y * u
        return np.where((m > 1.0 - t) & (m < 1.0), 0.0, 1.0)


class SquaredHinge(_Margin):
    """L = max(0, 1 − y f)²."""

    name = "squared_hinge"
    smooth = True
    bounds = (-np.inf, 0.0)

    def value(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return np.maximum(0.0, 1.0 - y * f) ** 2

    def derivative(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return -2.0 * y * np.maximum(0.0, 1.0 - y * f)

    def curvature(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return np.where(y * f < 1.0, 2.0, 0.0)

    def conjugate(self, y: np.ndarray, s: np.ndarray) -> np.ndarray:
        return within(y * s, -np.inf, 0.0, y * s + s * s / 4)

    def prox(self, y: np.ndarray, u: np.ndarray, t: Reals) -> np.ndarray:
        m = y * u
        return y * np.where(m >= 1.0, m, (m + 2 * t) / (1 + 2 * t))

    def prox_slope(self, y: np.ndarray, u: np.ndarray, t: Reals) -> np.ndarray:
        return np.where(y * u >= 1.0, 1.0, 1 / (1 + 2 * t))


class Logistic(_Margin):
    """L = log(1 + e^(−y f)) = −log P(y|x), where P(y = 1|x) = 1 / (1 + e^(−f)).

    >>> Logistic().value(np.array([1.0]), np.array([0.0]))
    array([0.6931])
    """

    name = "logistic"
    smooth = True
    bounds = (-1.0, 0.0)

    def value(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return np.logaddexp(0.0, -y * f)

    def derivative(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return -y * expit(-y * f)

    def curvature(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return expit(f) * expit(-f)

    def conjugate(self, y: np.ndarray, s: np.ndarray) -> np.ndarray:
        p = np.clip(-y * s, 0.0, 1.0)
        return within(y * s, -1.0, 0.0, -entr(p) - entr(1.0 - p))

    def prox(self, y: np.ndarray, u: np.ndarray, t: Reals) -> np.ndarray:
        """By Newton's method on z + t L'(z) = u, kept in the bracket u − t L'(u) … u by bisection."""
        low, high = np.sort([u, u - t * self.derivative(y, u)], axis=0)
        z, size = 0.5 * (low + high), np.inf
        for _ in range(100):
            excess = z - u + t * self.derivative(y, z)
            low, high = np.where(excess <= 0, z, low), np.where(excess >= 0, z, high)
            new = z - excess / (1 + t * self.curvature(y, z))
            trusted = (new >= low) & (new <= high) & (np.abs(excess) <= 0.5 * size)
            new = np.where(trusted, new, 0.5 * (low + high))
            size = np.abs(excess)
            done = np.abs(new - z) <= 4e-16 * np.maximum(1.0, np.abs(u))
            z = new
            if done.all():
                break
        return z

    def prox_slope(self, y: np.ndarray, u: np.ndarray, t: Reals) -> np.ndarray:
        return 1 / (1 + t * self.curvature(y, self.prox(y, u, t)))
