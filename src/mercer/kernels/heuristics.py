r"""Parameters taken from the data: what "median", "scale" and "auto" mean.

- ``sigma="median"``: the median of the distances ‖xᵢ - xⱼ‖, i ≠ j, over at most 1000 points.
- ``gamma="scale"``: 1 / (d · Var(X)), scikit-learn's default; ``gamma="auto"``: 1 / d.

Points may have weights: a point of weight 2 counts as if it were there twice.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial.distance import pdist

from mercer.cluster import DaskRows
from mercer.data import points as data
from mercer.data.sparse import dense, is_sparse
from mercer.data.types import Points, Weights
from mercer.errors import InputError
from mercer.runtime.threads import run

if TYPE_CHECKING:
    from mercer.kernels.base import Kernel

_POINTS_SAMPLED = 1000  # half a million distances, whose median is hardly uncertain
_NUMBERS_AT_ONCE = 2**16  # half a megabyte in float64, which fits into caches
_WORTH_THREADS = 2**20  # numbers that take one thread about a millisecond


def value(kernel: Kernel, name: str, word: str, X: Points, weight: Weights = None) -> float:
    """The number that ``name=word`` of the kernel stands for on the data X."""
    rows: Any = X if isinstance(X, DaskRows) else data.as_vectors(X)
    counts = None if weight is None else np.asarray(weight, dtype=np.float64)
    if counts is not None:
        present = np.flatnonzero(counts)
        if len(present) < len(counts):
            rows = rows.subset(present) if isinstance(rows, DaskRows) else rows[present]
        counts = counts[present]
    if word == "median":
        return median_distance(
            rows, "cityblock" if getattr(kernel, "norm", 2) in (1, "l1") else "euclidean", counts
        )
    if word == "auto":
        return 1.0 / rows.shape[1]
    if word == "scale":
        with np.errstate(over="ignore", invalid="ignore"):
            variance = _variance(rows, counts)
        if not np.isfinite(variance):
            raise InputError(
                f"{name}='scale' takes the variance of the data, and values as large as {abs(rows).max():.3g}"
                " overflow when squared: rescale the columns, for example with StandardScaler"
            )
        # A variance so small that its inverse overflows is that of equal points, up to rounding.
        return 1.0 / (rows.shape[1] * variance) if variance > np.finfo(float).tiny else 1.0
    raise InputError(f"{name}={word!r} has no meaning for {type(kernel).__name__}")


def median_distance(
    X: data.Vectors | DaskRows, metric: str = "euclidean", weight: np.ndarray | None = None
) -> float:
    """The median distance of two different points, from evenly spaced rows when there are many.

    Deterministic. Falls back to the mean positive distance when most points coincide, and to 1
    when all of them do.
    """
    n = X.shape[0]
    rows = np.unique(np.linspace(0, n - 1, min(n, _POINTS_SAMPLED)).astype(int))
    distances = pdist(np.asarray(dense(X[rows]), dtype=np.float64), metric)
    if distances.size == 0 or not np.any(distances > 0):
        return 1.0
    if weight is None:
        median = float(np.median(distances))
        return median if median > 0 else float(distances[distances > 0].mean())
    i, j = np.triu_indices(len(rows), 1)
    pairs = weight[rows][i] * weight[rows][j]
    # A point of weight w stands for w equal points, which are w(w-1)/2 pairs at distance 0.
    twins = float(np.maximum(weight[rows] * (weight[rows] - 1), 0.0).sum()) / 2
    median = _weighted_median(np.append(distances, 0.0), np.append(pairs, twins))
    return median if median > 0 else float(distances @ pairs / pairs[distances > 0].sum())


def _weighted_median(values: np.ndarray, weight: np.ndarray) -> float:
    """Where half of the weight lies on either side; the middle of two values when it falls between them."""
    order = np.argsort(values, kind="stable")
    values, below = values[order], np.cumsum(weight[order])
    half = below[-1] / 2
    low = int(np.searchsorted(below, half * (1 - 1e-12)))
    high = int(np.searchsorted(below, half * (1 + 1e-12), side="right"))
    return float(values[low] + values[min(high, len(values) - 1)]) / 2


def _variance(X: data.Vectors | DaskRows, weight: np.ndarray | None = None) -> float:
    """The variance of all entries, where rows count by their weight."""
    n, d = X.shape
    share = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
    if is_sparse(X):
        mean = float(share @ (X @ np.ones(d))) / d
        return float(share @ (X.multiply(X) @ np.ones(d))) / d - mean * mean
    mean = float((share * _of_rows(_row_means, X)).sum())
    squares = _of_rows(partial(_row_squares, mean=mean), X)
    total = 0.0
    for part in _parts(n, d):
        total += float((share[part] * squares[part]).sum())
    return total / d


def _parts(n: int, d: int) -> list[slice]:
    step = max(1, _NUMBERS_AT_ONCE // d)
    return [slice(start, start + step) for start in range(0, n, step)]


def _of_rows(measure: Callable[[np.ndarray], np.ndarray], X: np.ndarray | DaskRows) -> np.ndarray:  # (n,)
    """A number for each row; a float64 copy of all of X at once would cost more than the sums."""
    if isinstance(X, DaskRows):
        return X.rowwise(measure)
    n, d = X.shape
    out = np.empty(n)

    def one(part: slice) -> None:
        out[part] = measure(X[part])

    run(one, _parts(n, d), None if n * d >= _WORTH_THREADS else 1)
    return out


def _row_means(X: np.ndarray) -> np.ndarray:  # (n,)
    return np.asarray(X.mean(axis=1, dtype=np.float64))


def _row_squares(X: np.ndarray, mean: float) -> np.ndarray:  # (n,)
    part = X - np.float64(mean)
    return np.einsum("ij,ij->i", part, part)
