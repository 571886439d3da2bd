r"""Parameters taken from the data: what "median", "scale" and "auto" mean.

- ``sigma="median"``: the median of the distances ‖xᵢ - xⱼ‖, i ≠ j, over at most 1000 points.
- ``gamma="scale"``: 1 / (d · Var(X)), scikit-learn's default; ``gamma="auto"``: 1 / d.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import pdist

from mercer import data
from mercer.errors import InputError

if TYPE_CHECKING:
    from mercer.kernels.base import Kernel

_SAMPLE = 1000


def value(kernel: Kernel, name: str, word: str, X: Any) -> float:
    """The number that ``name=word`` of the kernel stands for on the data X."""
    X = data.as_vectors(X)
    if word == "median":
        return median_distance(X, "cityblock" if getattr(kernel, "norm", 2) == 1 else "euclidean")
    if word == "auto":
        return 1.0 / X.shape[1]
    if word == "scale":
        variance = _variance(X)
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    raise InputError(f"{name}={word!r} has no meaning for {type(kernel).__name__}")


def median_distance(X: Any, metric: str = "euclidean") -> float:
    """The median distance of two different points, from evenly spaced rows when there are many.

    Deterministic. Falls back to the mean positive distance when most points coincide, and to 1
    when all of them do.
    """
    n = X.shape[0]
    rows = np.unique(np.linspace(0, n - 1, min(n, _SAMPLE)).astype(int))
    sample = X[rows].toarray() if sparse.issparse(X) else X[rows]
    distances = pdist(np.asarray(sample, dtype=np.float64), metric)
    if distances.size == 0 or not np.any(distances > 0):
        return 1.0
    median = float(np.median(distances))
    return median if median > 0 else float(distances[distances > 0].mean())


def _variance(X: Any) -> float:
    if sparse.issparse(X):
        mean = X.mean()
        return float(X.multiply(X).mean() - mean * mean)
    return float(np.asarray(X, dtype=np.float64).var())
