r"""Losses for real targets; most are functions of the residual r = f − y.

With ℓ(r) = L(y, f): L*(y, s) = s y + ℓ*(s), and prox_t(y, u) is y plus that of ℓ at u − y.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import wrightomega, xlogy

from mercer.data.scalars import is_number
from mercer.data.types import Reals
from mercer.errors import InputError
from mercer.losses.base import Loss, require, within


class Squared(Loss):
    """L = (y − f)², without a factor ½. With labels y = ±1 it is (1 − y f)².

    >>> Squared().derivative(np.array([1.0]), np.array([1.5]))
    array([1.])
    """

    name = "squared"
    for_labels = for_targets = True
    smooth = True

    def value(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return (f - y) ** 2

    def derivative(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return 2.0 * (f - y)

    def curvature(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return np.full_like(f, 2.0)

    def conjugate(self, y: np.ndarray, s: np.ndarray) -> np.ndarray:
        return s * y + s * s / 4

    def domain(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.full_like(y, -np.inf), np.full_like(y, np.inf)

    def prox(self, y: np.ndarray, u: np.ndarray, t: Reals) -> np.ndarray:
        return (u + 2 * t * y) / (1 + 2 * t)

    def prox_slope(self, y: np.ndarray, u: np.ndarray, t: Reals) -> np.ndarray:
        return np.broadcast_to(1 / (1 + 2 * np.asarray(t)), u.shape)


class Quantile(Loss):
    """L = τ (y − f) for f ≤ y and (1 − τ)(f − y) for f > y: the best constant is the τ-quantile of y.

    >>> Quantile(0.9).value(np.array([1.0, 1.0]), np.array([0.0, 2.0]))
    array([0.9, 0.1])
    """

    name = "quantile"
    parameters: ClassVar[tuple[str, ...]] = ("quantile",)
    for_targets = True

    def __init__(self, quantile: float = 0.5) -> None:
        within_reach = is_number(quantile) and 0 < quantile < 1
        self.quantile = require("quantile", quantile, within_reach, "a number between 0 and 1")

    def _slopes(self) -> tuple[float, float]:
        return -self.quantile, 1 - self.quantile

    def value(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        down, up = self._slopes()
        r = f - y
        return np.where(r > 0, up, down) * r

    def derivative(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        down, up = self._slopes()
        return np.where(f > y, up, np.where(f < y, down, 0.0))

    def curvature(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return np.zeros_like(f)

    def conjugate(self, y: np.ndarray, s: np.ndarray) -> np.ndarray:
        return within(s, *self._slopes(), s * y)

    def domain(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        down, up = self._slopes()
        return np.full_like(y, down), np.full_like(y, up)

    def prox(self, y: np.ndarray, u: np.ndarray, t: Reals) -> np.ndarray:
        down, up = self._slopes()
        r = u - y
        return np.where(r > t * up, u - t * up, np.where(r < t * down, u - t * down, y))

    def prox_slope(self, y: np.ndarray, u: np.ndarray, t: Reals) -> np.ndarray:
        down, up = self._slopes()
        r = u - y
        return np.where((r > t * down) & (r < t * up), 0.0, 1.0)


class Absolute(Quantile):
    """L = |y − f|: the best constant is the median of y."""

    name = "absolute"
    parameters = ()

    def __init__(self) -> None:
        self.quantile = 0.5

    def _slopes(self) -> tuple[float, float]:
        return -1.0, 1.0


class Huber(Loss):
    """L = ½ (y − f)² where |y − f| ≤ δ, and δ |y − f| − δ²/2 beyond: outliers count linearly.

    >>> Huber(1.0).value(np.zeros(2), np.array([0.5, 10.0]))
    array([0.125, 9.5  ])
    """

    name = "huber"
    parameters = ("delta",)
    for_targets = True
    smooth = True

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = require("delta", delta, is_number(delta) and delta > 0, "positive")

    def value(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        r = np.abs(f - y)
        inner = np.minimum(r, self.delta)
        return inner * (r - inner / 2)

    def derivative(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return np.clip(f - y, -self.delta, self.delta)

    def curvature(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return np.where(np.abs(f - y) < self.delta, 1.0, 0.0)

    def conjugate(self, y: np.ndarray, s: np.ndarray) -> np.ndarray:
        return within(s, -self.delta, self.delta, s * y + s * s / 2)

    def domain(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.full_like(y, -self.delta), np.full_like(y, self.delta)

    def prox(self, y: np.ndarray, u: np.ndarray, t: Reals) -> np.ndarray:
        r = u - y
        return u - t * np.clip(r / (1 + t), -self.delta, self.delta)

    def prox_slope(self, y: np.ndarray, u: np.ndarray, t: Reals) -> np.ndarray:
        return np.where(np.abs(u - y) < self.delta * (1 + t), 1 / (1 + t), 1.0)


class EpsilonInsensitive(Loss):
    """L = max(0, |y − f| − ε), of support vector regression: errors up to ε are free."""

    name = "epsilon_insensitive"
    parameters = ("epsilon",)
    for_targets = True

    def __init__(self, epsilon: float = 0.1) -> None:
        self.epsilon = require("epsilon", epsilon, is_number(epsilon) and epsilon >= 0, "zero or more")

    def value(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return np.maximum(0.0, np.abs(f - y) - self.epsilon)

    def derivative(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        r = f - y
        return np.where(np.abs(r) > self.epsilon, np.sign(r), 0.0)

    def curvature(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return np.zeros_like(f)

    def conjugate(self, y: np.ndarray, s: np.ndarray) -> np.ndarray:
        return within(s, -1.0, 1.0, s * y + self.epsilon * np.abs(s))

    def domain(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.full_like(y, -1.0), np.full_like(y, 1.0)

    def prox(self, y: np.ndarray, u: np.ndarray, t: Reals) -> np.ndarray:
        r = u - y
        size = np.abs(r)
        return y + np.sign(r) * np.minimum(size, np.maximum(size - t, self.epsilon))

    def prox_slope(self, y: np.ndarray, u: np.ndarray, t: Reals) -> np.ndarray:
        size = np.abs(u - y)
        return np.where((size > self.epsilon) & (size < self.epsilon + t), 0.0, 1.0)


class SquaredEpsilonInsensitive(EpsilonInsensitive):
    """L = max(0, |y − f| − ε)²."""

    name = "squared_epsilon_insensitive"
    smooth = True

    def value(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return super().value(y, f) ** 2

    def derivative(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return 2.0 * super().value(y, f) * np.sign(f - y)

    def curvature(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return np.where(np.abs(f - y) > self.epsilon, 2.0, 0.0)

    def conjugate(self, y: np.ndarray, s: np.ndarray) -> np.ndarray:
        return s * y + self.epsilon * np.abs(s) + s * s / 4

    def domain(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.full_like(y, -np.inf), np.full_like(y, np.inf)

    def prox(self, y: np.ndarray, u: np.ndarray, t: Reals) -> np.ndarray:
        r = u - y
        size = np.abs(r)
        return y + np.sign(r) * np.where(
            size > self.epsilon, (size + 2 * t * self.epsilon) / (1 + 2 * t), size
        )

    def prox_slope(self, y: np.ndarray, u: np.ndarray, t: Reals) -> np.ndarray:
        return np.where(np.abs(u - y) > self.epsilon, 1 / (1 + 2 * t), 1.0)


class Poisson(Loss):
    """L = e^f − y f, for counts y ≥ 0 with mean e^f: −log P(y|x) up to log y!.

    >>> Poisson().derivative(np.array([2.0]), np.log([2.0]))
    array([0.])
    """

    name = "poisson"
    for_targets = True
    smooth = True

    def value(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return _exp(f) - y * f

    def derivative(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return _exp(f) - y

    def curvature(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        return _exp(f)

    def conjugate(self, y: np.ndarray, s: np.ndarray) -> np.ndarray:
        mean = np.maximum(s + y, 0.0)
        return within(s, -y, np.inf, xlogy(mean, mean) - mean)

    def domain(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return -y, np.full_like(y, np.inf)

    def prox(self, y: np.ndarray, u: np.ndarray, t: Reals) -> np.ndarray:
        a = u + t * y  # z + t e^z = a is solved by z = a − ω(a + log t), with Wright's ω.
        return a - wrightomega(a + np.log(t)).real

    def prox_slope(self, y: np.ndarray, u: np.ndarray, t: Reals) -> np.ndarray:
        return 1 / (1 + wrightomega(u + t * y + np.log(t)).real)

    def check_targets(self, y: np.ndarray) -> None:
        if (y < 0).any():
            raise InputError(
                f"loss='poisson' is for counts y ≥ 0, got {float(y.min())!r}: pass "
                "counts, or take another loss"
            )


def _exp(f: np.ndarray) -> np.ndarray:
    # An infinite loss is a correct value, from which line searches step back.
    with np.errstate(over="ignore"):
        return np.exp(f)
