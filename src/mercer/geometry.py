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

from mercer.data.labels import require_labels
from mercer.data.types import Points, Targets
from mercer.errors import InputError
from mercer.gram import Gram
from mercer.kernels.base import Kernel

__all__ = ["alignment", "angles", "center", "centroid_distances", "cosines", "distances", "norms"]


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


def alignment(kernel: Kernel, X: Points, y: Targets, *, centered: bool = True) -> float:
    """⟨K, T⟩ / (‖K‖ ‖T‖): how much a kernel sees of what y tells, 1 where it sees that and nothing else.

    T is the matrix that y itself would be: of classes, 1 within one and -1/(c - 1) between two of c, which is
    yᵢyⱼ for labels ±1; of numbers (y with fractions), yᵢyⱼ. With ``centered`` both matrices are centred in
    feature space first, so that a constant added to the kernel, and classes of different sizes, count for
    nothing. K has n² values.

    Cristianini, Shawe-Taylor, Elisseeff and Kandola, On kernel-target alignment, NIPS 14 (2001). Cortes,
    Mohri and Rostamizadeh, Algorithms for learning kernels based on centered alignment, JMLR 13 (2012).

    >>> from mercer import Delta, Linear
    >>> X, y = [[1.0, 3.0], [-1.0, 3.0]], ["up", "down"]
    >>> alignment(Linear(), X, y), round(alignment(Linear(), X, y, centered=False), 3)
    (1.0, 0.11)
    >>> round(alignment(Delta(), X, y, centered=False), 3)  # K = I
    0.707
    """
    K = Gram(kernel.resolve(X), X, cache=0).dense()
    codes, M = _target(y, len(K))
    if centered:
        K, codes = center(K), codes - codes.mean(axis=0)
    G = codes.T @ codes
    inner = float(np.sum((codes.T @ K @ codes) * M))
    sizes = float(np.linalg.norm(K)) * float(np.sqrt(max(np.trace(M @ G @ M @ G), 0.0)))
    if not sizes > 0:
        what = "varies nothing" if centered else "is 0"
        raise InputError(
            f"an alignment needs a kernel and labels that vary, and one of them {what} on these points: "
            "pass other points or another kernel"
        )
    return inner / sizes


def _target(y: Targets, n: int) -> tuple[np.ndarray, np.ndarray]:  # (n, c), (c, c)
    """Y and M with T = Y M Yᵀ."""
    require_labels(y)
    values = np.asarray(y)
    if values.shape != (n,):
        raise InputError(f"y must have one entry per point, ({n},), got shape {values.shape}")
    if values.dtype.kind == "f" and (values != np.round(values)).any():
        return values[:, None].astype(np.float64), np.ones((1, 1))
    classes, codes = np.unique(values, return_inverse=True)
    c = len(classes)
    if c < 2:
        raise InputError(f"y must have at least two classes, got {classes.tolist()} alone: pass more points")
    return np.eye(c)[codes], (c * np.eye(c) - 1) / (c - 1)


def _self_similarity(kernel: Kernel, X: Points) -> np.ndarray:  # (n,)
    return np.maximum(Gram(kernel, X, cache=0).diag(), 0.0)
