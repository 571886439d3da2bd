r"""Planes in feature space on which points and functions can be looked at, whatever the points are.

A plane is its two orthonormal directions v₁, v₂ and the point Φ̄ it goes through, the mean of the features.
A point x is shown at (⟨Φ(x) - Φ̄, v₁⟩, ⟨Φ(x) - Φ̄, v₂⟩), and a function f(x) = ⟨w, Φ(x)⟩ + b is on the plane

    f(Φ̄ + u₁v₁ + u₂v₂) = f̄ + u₁⟨w, v₁⟩ + u₂⟨w, v₂⟩,        f̄ the mean of the values at the points,

a slope, with straight lines where it is constant. On the principal plane its coefficients are those of the
values f(xᵢ) as a linear function of the coordinates, by least squares: no feature is computed for them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.errors import InputError
from mercer.geometry import center


@dataclass(frozen=True, eq=False)
class Plane:
    """Points on a plane, and functions there."""

    coordinates: np.ndarray  # (n, 2)
    mean: np.ndarray  # (functions,) f̄
    slopes: np.ndarray  # (2, functions)
    #: the shares of the variance of the features along the two directions
    shares: tuple[float, float]

    def values(self, u: np.ndarray) -> np.ndarray:  # (…, 2) → (…, functions)
        """The functions at places of the plane."""
        return np.asarray(self.mean + u @ self.slopes)


def principal_plane(K: np.ndarray, F: np.ndarray) -> Plane:  # (n, n), (n, functions)
    """The plane along which the features vary most: the first two components of kernel PCA.

    >>> X = np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, -1.0], [0.0, 1.0]])
    >>> plane = principal_plane(X @ X.T, X @ [[3.0], [5.0]] + 7.0)  # f(x) = 3x₁ + 5x₂ + 7
    >>> plane.mean, np.abs(plane.slopes).round(6), np.round(plane.shares, 6)
    (array([7.]), array([[3.],
           [5.]]), array([0.8, 0.2]))
    """
    centred = center(K)
    total = float(np.trace(centred))
    scores, squares = _leading(centred, 2)
    mean = F.mean(axis=0)
    slopes = np.zeros((2, F.shape[1]))
    real = squares > 0
    slopes[real] = (scores.T @ (F - mean))[real] / squares[real, None]
    shares = squares / total if total > 0 else np.zeros(2)
    return Plane(scores, mean, slopes, (float(shares[0]), float(shares[1])))


def normal_plane(K: np.ndarray, f: np.ndarray, norm: float) -> Plane:  # (n, n), (n,)
    r"""The plane of w/‖w‖, the normal of the boundary f = 0, and the direction across it that varies most.

    Every point is as far to the right as f(x)/‖w‖ says: nothing of the decision is lost.

    >>> X = np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, -1.0], [0.0, 1.0]])
    >>> plane = normal_plane(X @ X.T, X @ [0.0, 5.0], 5.0)  # w = (0, 5)
    >>> plane.coordinates[:, 0], plane.values(np.array([[0.5, 7.0]]))
    (array([ 0.,  0., -1.,  1.]), array([[2.5]]))
    """
    if not (np.isfinite(norm) and norm > 0):
        raise InputError(f"‖f‖ must be positive to have a direction, got {norm!r}: f is constant here")
    centred = center(K)
    total = float(np.trace(centred))
    along = (f - f.mean()) / norm
    across, _ = _leading(centred - np.outer(along, along), 1)
    scores = np.column_stack([along, across[:, 0]])
    shares = (scores**2).sum(axis=0) / total if total > 0 else np.zeros(2)
    # The second direction is orthogonal to w.
    slopes = np.array([[norm], [0.0]])
    return Plane(scores, np.array([f.mean()]), slopes, (float(shares[0]), float(shares[1])))


def _leading(K: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores √σ U of the largest eigenvalues σ, (n, count), and these; zeros where there are none."""
    values, vectors = np.linalg.eigh(K)
    values, vectors = np.maximum(values[::-1][:count], 0.0), vectors[:, ::-1][:, :count]
    values = np.where(values > 1e-12 * max(float(values.max(initial=0.0)), 1e-300), values, 0.0)
    # The sign of an eigenvector is arbitrary, so that the largest score is made positive.
    largest = np.abs(vectors).argmax(axis=0)
    vectors = vectors * np.where(vectors[largest, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)
    scores = vectors * np.sqrt(values)
    missing = count - scores.shape[1]
    return np.pad(scores, ((0, 0), (0, missing))), np.pad(values, (0, missing))
