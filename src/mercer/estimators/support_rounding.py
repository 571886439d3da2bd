r"""How far the kernel values of a support vector machine may be off, and a better origin for ⟨x, x'⟩.

Where Σγ = 0 (the dual of a machine with an intercept), moving all points by m changes ⟨x, x'⟩ by terms that
cancel, so that f = Σ γᵢ ⟨xᵢ - m, · - m⟩ + b' is the same function. Products are then of the size of the
spread of the points rather than of the points themselves. Beside a column of 10⁸ one of 1 is lost in ⟨x, x'⟩,
unless the origin is moved.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mercer.kernels.base import Kernel
from mercer.kernels.dotproduct import Polynomial

__all__ = ["centre_of", "moved", "rounding_of"]

_FAR = 16.0  # an origin is moved when ‖m‖² is so many times the mean of ‖x - m‖²
_EACH = 16  # roundings of a kernel value beside those of its sum


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


def moved(points: Any, centre: np.ndarray) -> Any:
    """The points x - m."""
    if not sparse.issparse(points):
        return np.asarray(points, dtype=np.float64) - centre
    points = sparse.csr_matrix(points, dtype=np.float64, copy=True)
    points.sum_duplicates()
    points.data -= centre[points.indices]
    return points


def rounding_of(kernel: Kernel, points: Any, dtype: str) -> float:
    """τ: a computed k(x, x') is off by at most τ √(k(x, x) k(x', x')); see ``solvers.rounding``.

    A sum of d products is off by (d + 2) units, and its p-th power by p times that, relative to the largest
    that it can be; in float32 one unit is counted for each value, as if errors were independent.

    >>> rounding_of(Polynomial(3), np.zeros((2, 14)), "float64") == 3 * (14 + 16) * 2.0**-53
    True
    """
    unit = float(np.finfo(dtype).eps) / 2
    if dtype == "float32":
        return unit
    width = points.shape[1] if len(getattr(points, "shape", ())) == 2 else 0
    power = sum(part.degree for part in kernel.parts() if isinstance(part, Polynomial))
    return max(1, power) * (width + _EACH) * unit
