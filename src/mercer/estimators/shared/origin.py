r"""How far kernel values may be off, and a better origin for ⟨x, x'⟩: one place for all learners.

k = c ⟨x, x'⟩ + c₀, c and c₀ ≥ 0: the linear kernel, its multiples, sums of such and of constants. Where a
learner has an intercept that nothing penalises, or centres in feature space, its f = Σ αᵢ k(xᵢ, ·) + b has
Σα = 0, and moving all points by m changes ⟨x, x'⟩ by terms that cancel: f = Σ αᵢ k(xᵢ - m, · - m) + b' is the
same function. Products are then of the size of the spread of the points rather than of the points themselves.
Beside a column of 10⁸ one of 1 is lost in ⟨x, x'⟩, unless the origin is moved. What was learned from moved
points is kept as f = k(w, ·) + b'', w = Σ αᵢ (xᵢ - m), which does not cancel at points that were not moved.

Where nothing allows that, columns that are lost in ⟨x, x'⟩ are told (`warn_if_lost`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mercer.data import points as data
from mercer.data.types import Points
from mercer.expansion import Expansion
from mercer.gram import Gram
from mercer.kernels.base import Kernel
from mercer.kernels.compose import (
    Centered,
    Exp,
    Mapped,
    Normalized,
    OnColumns,
    PolynomialOf,
    Power,
    Product,
    Scaled,
    Sum,
)
from mercer.kernels.vectors.dotproduct import Constant, Linear, Polynomial, Sigmoid
from mercer.report import Journal
from mercer.runtime.config import settings

_FAR = 16.0  # an origin is moved when ‖m‖² is so many times the mean of ‖x - m‖²
_EACH = 16  # roundings of a kernel value beside those of its sum
_LOST = 1e-2  # a column is lost when the rounding of ⟨x, x'⟩ is so large a part of its own products
_SAMPLE = 400  # points that show how far a column varies, or what centring leaves of a kernel
_OF_THE_SAME_POINTS = (Sum, Product, Scaled, Power, PolynomialOf, Exp, Normalized, Centered)


def is_affine(kernel: Kernel) -> bool:
    """Whether k = c ⟨x, x'⟩ + c₀ is made of linear kernels and constants by sums and multiples.

    >>> is_affine(2 * Linear() + Constant(1.0)), is_affine(Polynomial(2))
    (True, False)
    """
    if type(kernel) is Sum:
        return all(map(is_affine, kernel.children().values()))
    if type(kernel) is Scaled:
        return is_affine(kernel.kernel)
    return type(kernel) in (Linear, Constant)


def origin_of(kernel: Kernel, points: Points, is_free: bool) -> np.ndarray | None:  # (d,)
    """m, where moving the points by it changes nothing but b and is worth it; else None.

    ``is_free``: whether the learner has an intercept that nothing penalises, or centres in feature space.
    """
    return centre_of(points) if is_free and is_affine(kernel) else None


def expanded(
    kernel: Kernel, points: Any, coef: np.ndarray, intercept: Any, origin: np.ndarray | None
) -> Expansion:
    """f = Σ αᵢ k(xᵢ, ·) + b; where the xᵢ were moved by m, f(x) = Σ αᵢ k(xᵢ, x - m) + b as k(w, x) + b'.

    >>> X, coef = np.array([[1.0], [-1.0]]), np.array([3.0, -3.0])
    >>> expanded(2 * Linear(), X, coef, 5.0, np.array([100.0]))([[100.0], [101.0]])
    array([ 5., 17.])
    """
    if origin is None:
        return Expansion(kernel, points, coef, intercept)
    columns = coef.reshape(len(coef), -1)
    W = np.asarray(points.T @ columns).T
    slope, constant = affine_at(kernel, W, origin)
    intercept = intercept - slope + constant * (columns.sum(axis=0) - 1)
    if coef.ndim == 1:
        return Expansion(kernel, W, np.ones(1), float(intercept[0]))
    return Expansion(kernel, W, np.eye(len(W)), intercept)


def affine_at(kernel: Kernel, W: np.ndarray, point: np.ndarray) -> tuple[np.ndarray, float]:
    """c ⟨w, x⟩ for every row w of W, and c₀, of k = c ⟨x, x'⟩ + c₀.

    >>> affine_at(2 * Linear() + Constant(3.0), np.array([[1.0, 1.0]]), np.array([5.0, 0.0]))
    (array([10.]), 3.0)
    """
    values = Gram(kernel, W, np.stack([point, np.zeros_like(point)]), cache=0).dense()
    return np.asarray(values[:, 0] - values[:, 1], dtype=np.float64), float(values[0, 1])


def centre_of(points: Any) -> np.ndarray | None:  # (d,)
    """The mean m of the points, where they are far from 0 compared with their spread; else None.

    Of sparse points only columns with a value in every row have one: to move the others would fill them.

    >>> centre_of(np.array([[100.0, 0.0], [102.0, 0.0]]))
    array([101.,   0.])
    """
    n = points.shape[0]
    if sparse.issparse(points):
        full = np.bincount(points.indices, minlength=points.shape[1]) == n
        total = np.bincount(points.indices, points.data, minlength=points.shape[1])
        centre = np.where(full, total / n, 0.0)
        largest = float(np.square(points.data, dtype=np.float64).sum())
    else:
        points = np.asarray(points)
        centre = points.mean(axis=0, dtype=np.float64)
        largest = float(np.einsum("ij,ij->", points, points, dtype=np.float64))
    with np.errstate(over="ignore"):
        square = float(np.square(centre).sum())
    spread = max(largest / n - square, 0.0)
    return centre if square < np.inf and square > _FAR * spread else None


def mean_of(points: Points, weight: np.ndarray) -> np.ndarray:  # (d,)
    """The weighted mean of the points, dense or sparse."""
    return np.asarray(weight @ points).ravel() / weight.sum()


def moved(points: Any, centre: np.ndarray | None) -> Any:
    """The points x - m; as they are without an m."""
    if centre is None:
        return points
    if not sparse.issparse(points):
        return np.asarray(points, dtype=np.float64) - centre
    points = sparse.csr_matrix(points, dtype=np.float64, copy=True)
    points.sum_duplicates()
    points.data -= centre[points.indices]
    return points


def rounding_of(kernel: Kernel, points: Points, dtype: str) -> float:
    """τ: a computed k(x, x') is off by at most τ √(k(x, x) k(x', x')); see ``solvers.rounding``.

    A sum of d products is off by (d + 2) units, and its p-th power by p times that, as is a product of p
    kernels, relative to the largest that it can be; in float32 one unit is counted for each sum, as if
    errors were independent, and p for its power. exp k multiplies what k is off by as much as its largest
    value, and a centred k is off as k is, however little is left of it.

    >>> rounding_of(Polynomial(3), np.zeros((2, 14)), "float64") == 3 * (14 + 16) * 2.0**-53
    True
    """
    unit = float(np.finfo(dtype).eps) / 2
    width = data.n_columns(points) or 0
    units = 1 if dtype == "float32" else width + _EACH
    return min(max(1.0, _powers(kernel, points)) * units * unit, 1.0)


def _powers(kernel: Kernel, points: Any) -> float:
    """How many factors the values of a kernel have, at most, or as if they had: p for what grows as a power.

    >>> _powers(Linear() ** 2 * Polynomial(3) + Linear(), None)
    5.0
    >>> X = np.array([[10.0], [14.0]])  # 196, of which (10 - 12)² = 4 is left
    >>> _powers(Exp(Linear()), X), _powers(Linear().centered(X), X)
    (196.0, 196.0)
    """
    has_same_points = isinstance(kernel, _OF_THE_SAME_POINTS)
    inside = [_powers(child, points if has_same_points else None) for child in kernel.children().values()]
    if isinstance(kernel, Exp) and points is not None:
        return max(inside) * max(1.0, float(np.abs(Gram(kernel.kernel, points, cache=0).diag()).max()))
    if isinstance(kernel, Centered) and kernel.reference is not None:
        return max(inside) * max(1.0, _cancelled(kernel.kernel, kernel.reference))
    if isinstance(kernel, Polynomial):
        return float(kernel.degree)
    if isinstance(kernel, Product):
        return sum(inside)
    if isinstance(kernel, Power):
        return max(1.0, float(kernel.exponent)) * max(inside)
    if isinstance(kernel, PolynomialOf):
        return max(1, len(kernel.coefficients) - 1) * max(inside)
    return max(inside, default=1.0)


def _cancelled(kernel: Kernel, points: Points) -> float:
    """How much larger k is than what is left of it around the mean of the points, of which some are taken.

    ‖φ - φ̄‖² is a sum of four terms of k, each no larger than the largest k(x, x).
    """
    n = data.n_points(points)
    some = data.take(points, np.unique(np.linspace(0, n - 1, min(n, _SAMPLE)).astype(np.int64)))
    K = Gram(kernel, some, cache=0).dense().astype(np.float64)
    largest, left = float(np.abs(K.diagonal()).max()), float(K.diagonal().mean() - K.mean())
    return 4 * largest / left if left > 0 else np.inf


def _has_products(kernel: Kernel) -> bool:
    """Whether values of the kernel are made of products ⟨x, x'⟩ of all columns, as they are."""
    parts = list(kernel.parts())
    if any(isinstance(part, OnColumns | Mapped | Centered | Normalized) for part in parts):
        return False
    return any(isinstance(part, Linear | Polynomial | Sigmoid) for part in parts)


def lost_columns(kernel: Kernel, points: Any, least: float = 0.0) -> np.ndarray:
    """The columns that vary, by more than √least, and whose part of ⟨x, x'⟩ its rounding takes away.

    ⟨x, x'⟩ is off by about τ times the mean of ‖x‖², and a column that varies by r has a part of the size r²
    in it. How far a column varies is told by the middle of what differs between a point and the next:
    outliers do not count.

    >>> X = np.array([[1e8, 1.0], [1e8, 2.0], [1e8, 4.0]])
    >>> lost_columns(Linear(), X), lost_columns(Linear(), X - [1e8, 0.0])
    (array([1]), array([], dtype=int64))
    """
    if not _has_products(kernel) or data.n_columns(points) is None:
        return np.empty(0, np.int64)
    n, d = points.shape
    some = data.take(points, np.unique(np.linspace(0, n - 1, min(n, _SAMPLE)).astype(np.int64)))
    rows = sparse.csr_matrix(some, dtype=np.float64)
    with np.errstate(over="ignore"):
        values = points.data if sparse.issparse(points) else np.asarray(points).ravel()
        size = float(np.square(values, dtype=np.float64).sum()) / n
        differences = (rows[1:] - rows[:-1]).tocsc()
        differences.eliminate_zeros()
        counts = np.diff(differences.indptr)
        order = np.lexsort((np.abs(differences.data), np.repeat(np.arange(d), counts)))
        varies = np.flatnonzero(counts)
        middle = order[differences.indptr[varies] + counts[varies] // 2]
        squares = np.square(differences.data[middle])
    rounding = rounding_of(Linear(), points, settings().dtype) * size
    return varies[(squares > least) & (rounding > _LOST * squares)]


def warn_if_lost(journal: Journal, kernel: Kernel, points: Points, what: str, least: float = 0.0) -> None:
    """Say which columns are lost in the products ⟨x, x'⟩ that the kernel is made of, and what to do."""
    lost = lost_columns(kernel, points, least)
    if not lost.size:
        return
    names = ", ".join(map(str, lost[:3].tolist())) + ", …" * (lost.size > 3)
    plural = "s" * (lost.size > 1)
    journal.warn(
        f"{what} sees little or nothing of column{plural} {names} of X (counted from 0): other values of X "
        f"are so large that ⟨x, x'⟩, of which {kernel!r} is made, is rounded by more than the column{plural} "
        "contribute to it; scale the columns (StandardScaler), and look for outliers"
    )
