r"""The risks of logistic regression, as ``newton`` takes them.

Two classes, y = ±1:     R(f) = Σᵢ wᵢ log(1 + exp(-yᵢfᵢ)),            P(y = 1 | x) = 1/(1 + exp(-f(x)))
m classes, c = 0 … m-1:  R(F) = Σᵢ wᵢ (log Σ_c exp Fᵢ_c - Fᵢ,cᵢ),      P(c | x) = exp F_c / Σ exp F = softmax

Every form is free of overflow: exponentials have arguments ≤ 0.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from mercer.data.types import Weights
from mercer.solvers.arrays import expit, log_sum_exp


class LogisticRisk:
    """Σ wᵢ log(1 + exp(-yᵢfᵢ)).

    >>> risk = LogisticRisk(np.array([1.0, -1.0]))
    >>> risk.value(np.zeros(2)), risk.gradient(np.zeros(2)), risk.curvature(np.zeros(2))
    (1.3863, array([-0.5,  0.5]), array([0.25, 0.25]))
    >>> risk.value(np.array([-1e5, 1e5]))
    200000.0
    """

    lowest = 0.0

    def __init__(self, y: np.ndarray, weight: Weights = 1.0) -> None:  # (n,) of ±1, (n,)
        self.y = np.asarray(y, dtype=np.float64)
        self.weight = np.broadcast_to(np.asarray(weight, dtype=np.float64), self.y.shape)

    def part(self, rows: slice) -> LogisticRisk:
        """The sum over some of the points."""
        return self._of(self.y[rows], self.weight[rows])

    def on(self, place: Callable[[np.ndarray], Any]) -> LogisticRisk:
        """The risk of arrays on a device."""
        return self._of(place(self.y), place(self.weight))

    def _of(self, y: Any, weight: Any) -> LogisticRisk:
        other = copy(self)
        other.y, other.weight = y, weight
        return other

    def value(self, F: np.ndarray) -> float:
        return float((self.weight * log_sum_exp(-self.y * F)).sum())

    def gradient(self, F: np.ndarray) -> np.ndarray:  # (n,)
        return -self.weight * self.y * expit(-self.y * F)

    def curvature(self, F: np.ndarray) -> np.ndarray:  # (n,)
        return self.weight * expit(F) * expit(-F)

    def excess(self, F: np.ndarray, e: np.ndarray, s: np.ndarray) -> float:
        """The most of R(F + Δ) - R(F) - ⟨s, Δ⟩ for |Δ| ≤ e: convex in Δ, it is largest at an end."""
        here = np.logaddexp(0.0, -self.y * F)
        ends = (self.weight * (np.logaddexp(0.0, -self.y * (F + d)) - here) - s * d for d in (e, -e))
        return float(np.maximum(*ends).sum())

    @property
    def smoothness(self) -> float:
        """The largest curvature anywhere: w/4."""
        return float(self.weight.max()) / 4


class SoftmaxRisk:
    """Σ wᵢ (log Σ_c exp Fᵢ_c - Fᵢ,cᵢ); adding one number to a row of F changes nothing.

    >>> risk = SoftmaxRisk(np.array([0, 2]), 3)
    >>> F = np.zeros((2, 3))
    >>> risk.value(F), risk.gradient(F)
    (2.1972, array([[-0.6667,  0.3333,  0.3333], [ 0.3333,  0.3333, -0.6667]]))
    >>> risk.curvature(F)(np.eye(3)[:2])
    array([[ 0.2222, -0.1111, -0.1111], [-0.1111,  0.2222, -0.1111]])
    """

    lowest = 0.0

    def __init__(self, codes: np.ndarray, n_classes: int, weight: Weights = 1.0) -> None:  # (n,), (n,)
        self.codes = np.asarray(codes)
        self.n_classes = n_classes
        self.weight = np.broadcast_to(np.asarray(weight, dtype=np.float64), self.codes.shape)
        self._rows = np.arange(len(self.codes))

    def part(self, rows: slice) -> SoftmaxRisk:
        """The sum over some of the points."""
        return SoftmaxRisk(self.codes[rows], self.n_classes, self.weight[rows])

    def value(self, F: np.ndarray) -> float:
        top, spread = _log_sum_exp(F)
        return float((self.weight * (spread + (top - F[self._rows, self.codes]))).sum())

    def gradient(self, F: np.ndarray) -> np.ndarray:  # (n, m)
        P = softmax(F)
        # P - 1 at the right class is minus the sum of the others, without cancellation
        P[self._rows, self.codes] = 0.0
        P[self._rows, self.codes] = -P.sum(axis=1)
        return self.weight[:, None] * P

    def curvature(self, F: np.ndarray) -> SoftmaxCurvature:
        """V ↦ w P∘(V - ⟨P, V⟩), row by row."""
        return SoftmaxCurvature(softmax(F), self.weight)

    def excess(self, F: np.ndarray, e: np.ndarray, s: np.ndarray) -> float:
        """A bound of R(F + Δ) - R(F) - ⟨s, Δ⟩ for |Δ| ≤ e, s the gradient at F.

        log Σ exp has second derivatives of at most ½ (Böhning, 1992), and slopes that sum to 1.
        """
        quadratic, linear = 0.25 * np.square(e).sum(axis=1), 2.0 * e.max(axis=1)
        return float(self.weight @ np.minimum(quadratic, linear))

    @property
    def smoothness(self) -> float:
        """A bound of the curvature everywhere: w/2 (Böhning, 1992)."""
        return float(self.weight.max()) / 2


class SoftmaxCurvature:
    """H, row by row w (diag(p) - ppᵀ) = SSᵀ for S = √w diag(√p) (I - √p√pᵀ), with √p√pᵀ a projection.

    >>> H = SoftmaxCurvature(np.array([[0.5, 0.5]]), np.ones(1))
    >>> V = np.array([[1.0, 0.0]])
    >>> H(V), H.root(H.root_transposed(V)), H.entry(0, 1)
    (array([[ 0.25, -0.25]]), array([[ 0.25, -0.25]]), array([-0.25]))
    """

    def __init__(self, P: np.ndarray, weight: np.ndarray) -> None:  # (n, m), (n,)
        self.P = P
        self.weighted = weight[:, None] * P

    def __call__(self, V: np.ndarray) -> np.ndarray:  # (n, m)
        """H V."""
        return self.weighted * (V - np.einsum("ij,ij->i", self.P, V)[:, None])

    def entry(self, a: int, b: int) -> np.ndarray:  # (n,)
        """H of two functions with each other, at every point."""
        return self.weighted[:, a] * (float(a == b) - self.P[:, b])

    def root(self, V: np.ndarray) -> np.ndarray:  # (n, m)
        """S V."""
        return np.sqrt(self.weighted) * self._projected(V)

    def root_transposed(self, V: np.ndarray) -> np.ndarray:  # (n, m)
        """Sᵀ V."""
        return self._projected(np.sqrt(self.weighted) * V)

    def _projected(self, V: np.ndarray) -> np.ndarray:
        q = np.sqrt(self.P)
        return V - q * np.einsum("ij,ij->i", q, V)[:, None]


def softmax(F: np.ndarray) -> np.ndarray:  # (n, m)
    """exp F_c / Σ exp F in every row.

    >>> softmax(np.array([[0.0, 1e4]]))
    array([[0., 1.]])
    """
    P = np.exp(F - F.max(axis=1)[:, None])
    P /= P.sum(axis=1)[:, None]
    return P


def log_softmax(F: np.ndarray) -> np.ndarray:  # (n, m)
    """log of the softmax, finite where the softmax is 0.

    >>> log_softmax(np.array([[0.0, 1e4]]))
    array([[-10000., 0.]])
    """
    top, spread = _log_sum_exp(F)
    return (F - top[:, None]) - spread[:, None]


def _log_sum_exp(F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # (n,), (n,)
    """The largest entry of each row, and log Σ exp F minus it, to full accuracy where that is tiny."""
    largest = F.argmax(axis=1)[:, None]
    top = np.take_along_axis(F, largest, axis=1)
    E = np.exp(F - top)
    np.put_along_axis(E, largest, 0.0, axis=1)
    return top[:, 0], np.log1p(E.sum(axis=1))
