r"""A Gram matrix that is not positive semidefinite, made so: four ways, and what each of them changed.

>>> K = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])  # eigenvalues 1 + √2, 1, 1 - √2
>>> matrix, report = repair(K)
>>> print(report)
clip: 1 of 3 eigenvalues was negative, the smallest -0.414; they moved by up to 0.414, the matrix by 15.7 %
>>> bool(np.linalg.eigvalsh(matrix)[0] > -1e-15)
True
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import eigh

from mercer.errors import InputError


@dataclass(frozen=True, eq=False)
class Repair:
    """What a repair changed; print it to read it."""

    method: str
    #: eigenvalues before and after, the largest first
    before: np.ndarray = field(repr=False)
    after: np.ndarray = field(repr=False)
    #: ‖K' - K‖ / ‖K‖, Frobenius norms
    change: float

    @property
    def negative(self) -> int:
        """How many eigenvalues were negative by more than rounding."""
        return int((self.before < -_rounding(self.before)).sum())

    @property
    def moved(self) -> float:
        """How far an eigenvalue moved at most."""
        return float(abs(self.after - self.before).max())

    def __str__(self) -> str:
        n = len(self.before)
        if not self.change:
            return f"{self.method}: nothing to repair, the {n} eigenvalues are zero or more"
        were = "was" if self.negative == 1 else "were"
        return (
            f"{self.method}: {self.negative} of {n} eigenvalues {were} negative, the smallest "
            f"{self.before[-1]:.3g}; they moved by up to {self.moved:.3g}, the matrix by "
            f"{100 * self.change:.3g} %"
        )


def repair(K: Any, method: str = "clip") -> tuple[np.ndarray, Repair]:
    """The matrix made positive semidefinite, and a report of the change.

    A matrix repaired so knows nothing of new points: k(x, xᵢ) of a new x stays what the similarity says.

    Parameters
    ----------
    K : (n, n) symmetric matrix, or a Gram
    method : what becomes of its eigenvalues λ
        "clip": max(λ, 0), the nearest matrix in the Frobenius norm;
        "flip": |λ|, negative directions count as much as before;
        "shift": λ + |λ_min|, the similarities of different points stay as they are;
        "nearest": the nearest matrix with the same diagonal (Higham's alternating projections), so that
        k(x, x) stays as it is.

    Examples
    --------
    >>> matrix, report = repair([[1.0, 2.0], [2.0, 1.0]], "shift")
    >>> matrix
    array([[2., 2.],
           [2., 2.]])
    >>> report.negative, round(report.change, 4)
    (1, 0.4472)
    """
    matrix = _square(K)
    if method not in _METHODS:
        raise InputError(f"method must be one of {', '.join(map(repr, _METHODS))}, got {method!r}")
    values, vectors = eigh(matrix)
    if values[0] >= -_rounding(values):
        return matrix, Repair(method, values[::-1].copy(), values[::-1].copy(), 0.0)
    repaired = _METHODS[method](matrix, values, vectors)
    repaired = (repaired + repaired.T) / 2
    change = float(np.linalg.norm(repaired - matrix) / np.linalg.norm(matrix))
    return repaired, Repair(method, values[::-1].copy(), np.linalg.eigvalsh(repaired)[::-1].copy(), change)


def _square(K: Any) -> np.ndarray:  # (n, n)
    try:
        dense = np.array(K.dense() if hasattr(K, "dense") else K, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"K must be a square matrix of numbers, got {K!r}") from None
    if dense.ndim != 2 or dense.shape[0] != dense.shape[1] or not dense.size:
        raise InputError(f"K must be a square matrix, got an array of shape {dense.shape}")
    if not np.isfinite(dense).all():
        raise InputError("K must be finite, got NaN or infinite entries: leave those points out")
    if abs(dense - dense.T).max() > 1e-8 * abs(dense).max():
        raise InputError("K must be symmetric, got k(i, j) ≠ k(j, i): pass (K + K.T) / 2 if that is meant")
    return np.asarray((dense + dense.T) / 2)


def _rounding(values: np.ndarray) -> float:
    """What eigenvalues of a matrix of rounded numbers may be off by."""
    return float(4 * len(values) * np.finfo(float).eps * abs(values).max())


def _with(values: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return np.asarray((vectors * values) @ vectors.T)


def _clip(K: np.ndarray, values: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return _with(np.maximum(values, 0.0), vectors)


def _flip(K: np.ndarray, values: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return _with(abs(values), vectors)


def _shift(K: np.ndarray, values: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return K - values[0] * np.eye(len(K))


def _nearest(K: np.ndarray, values: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Dykstra: project on semidefinite matrices and on the diagonal in turn, corrections remembered."""
    diagonal = np.diag(K).copy()
    if (diagonal < 0).any():
        raise InputError(
            f"no positive semidefinite matrix has the diagonal entry {diagonal.min():.3g}: "
            "use 'clip' or 'shift'"
        )
    Y, correction = K.copy(), np.zeros_like(K)
    for _ in range(1000):
        R = Y - correction
        semidefinite = _clip(R, *eigh(R))
        correction = semidefinite - R
        before, Y = Y, semidefinite.copy()
        np.fill_diagonal(Y, diagonal)
        if np.linalg.norm(Y - before) <= 1e-10 * np.linalg.norm(K):
            break
    # The last step kept the diagonal and may leave eigenvalues below 0, so K shrinks towards its diagonal.
    low = max(-float(np.linalg.eigvalsh(Y)[0]), 0.0)
    floor = float(diagonal.min())
    share = low / (low + floor) if low and floor > 0 else 0.0
    return (1 - share) * Y + share * np.diag(diagonal)


_METHODS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "clip": _clip,
    "flip": _flip,
    "shift": _shift,
    "nearest": _nearest,
}
