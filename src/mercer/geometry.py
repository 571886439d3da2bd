r"""Geometry in feature space, without computing a feature.

With Φ the feature map of a kernel, everything below is said in values of k alone:

    ‖Φ(x)‖ = √k(x,x)        ‖Φ(x) - Φ(y)‖² = k(x,x) + k(y,y) - 2 k(x,y)
    cos ∠(Φ(x), Φ(y)) = k(x,y) / √(k(x,x) k(y,y))
    ‖Φ(x) - Φ_m‖² = k(x,x) + (1/n²) Σᵢⱼ k(xᵢ,xⱼ) - (2/n) Σᵢ k(x,xᵢ),   Φ_m = (1/n) Σᵢ Φ(xᵢ)

>>> from mercer import Linear
>>> norms(Linear(), [[3.0, 4.0]])
array([5.])
>>> distances(Linear(), [[0.0, 0.0]], [[3.0, 4.0]])
array([[5.]])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.data.types import Points
from mercer.errors import InputError
from mercer.gram import Gram
from mercer.kernels.base import Kernel

__all__ = ["angles", "center", "centroid_distances", "cosines", "distances", "norms"]


def norms(kernel: Kernel, X: Points) -> np.ndarray:  # (n,)
    """‖Φ(x)‖ for every point."""
    return np.sqrt(_self_similarity(kernel, X))


def distances(kernel: Kernel, X: Points, Y: Points | None = None) -> np.ndarray:  # (n, m)
    """‖Φ(x) - Φ(y)‖ for every pair; exactly 0 between a point and itself when Y is not given.

    Squared distances are differences of kernel values, so distances below about √ε · ‖Φ‖ are rounding.
    """
    kernel = kernel if Y is not None else kernel.resolve(X)
    K = Gram(kernel, X, Y, cache=0).dense()
    x = _self_similarity(kernel, X)
    y = x if Y is None else _self_similarity(kernel, Y)
    squared = np.maximum(x[:, None] + y[None, :] - 2 * K, 0.0)
    if Y is None:
        np.fill_diagonal(squared, 0.0)
    return np.sqrt(squared)


def cosines(kernel: Kernel, X: Points, Y: Points | None = None) -> np.ndarray:  # (n, m)
    """The cosine of the angle between Φ(x) and Φ(y), in [-1, 1]; 0 where one of them is 0."""
    kernel = kernel if Y is not None else kernel.resolve(X)
    return np.clip(Gram(kernel.normalized(), X, Y, cache=0).dense(), -1.0, 1.0)


def angles(kernel: Kernel, X: Points, Y: Points | None = None) -> np.ndarray:  # (n, m)
    """The angle between Φ(x) and Φ(y), in radians."""
    return np.arccos(cosines(kernel, X, Y))


def centroid_distances(kernel: Kernel, X: Points, reference: Points | None = None) -> np.ndarray:  # (n,)
    """‖Φ(x) - Φ_m‖, the distance to the centre of mass of the reference points (by default X itself).

    >>> from mercer import Linear
    >>> centroid_distances(Linear(), [[5.0]], [[1.0], [3.0]])
    array([3.])
    """
    reference = X if reference is None else reference
    kernel = kernel.resolve(reference)
    return np.sqrt(_self_similarity(kernel.centered(reference), X))


def center(K: Any) -> np.ndarray:  # (n, n)
    """A Gram matrix centred in feature space: (I - 11ᵀ/n) K (I - 11ᵀ/n).

    >>> center([[1.0, 0.0], [0.0, 1.0]])
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """
    K = np.asarray(K, dtype=np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or K.size == 0:
        raise InputError(
            f"a Gram matrix is square, got shape {K.shape}: pass k(X), or use kernel.centered(X)"
        )
    rows, columns = K.mean(axis=1, keepdims=True), K.mean(axis=0, keepdims=True)
    return np.asarray(K - rows - columns + K.mean())


def _self_similarity(kernel: Kernel, X: Points) -> np.ndarray:  # (n,)
    return np.maximum(Gram(kernel, X, cache=0).diag(), 0.0)
