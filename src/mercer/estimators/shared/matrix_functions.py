r"""Kernels that are functions of two sets of points and return a matrix, as in scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mercer.data import points as data
from mercer.data.types import Points
from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.kernels.names import KernelLike


def is_function(kernel: KernelLike) -> bool:
    """Whether a kernel is given as a function: of two points, or of two sets of them."""
    return callable(kernel) and not isinstance(kernel, Kernel | type)


def is_matrix_function(function: Any, X: Points) -> bool:
    """Whether a function takes two sets of points and returns a matrix, as in scikit-learn, or two points.

    It is tried on the first three points: what returns a 3 × 3 matrix, with the corner that the first
    point alone gives, is such a function; one of two points returns a number.

    >>> X = np.eye(4)
    >>> is_matrix_function(lambda A, B: A @ B.T, X), is_matrix_function(lambda a, b: float(a[0] == b[0]), X)
    (True, False)
    """
    try:
        some, one = (data.take(X, slice(0, m)) for m in (3, 1))
        n = data.n_points(some)
        many, corner = (_array(function(part, part)) for part in (some, one))
        return (
            many.shape == (n, n)
            and corner.shape == (1, 1)
            and bool(np.isclose(many[0, 0], corner[0, 0], rtol=1e-6, atol=1e-12))
        )
    except Exception:  # whatever it raises, it is not made for matrices
        return False


def _array(K: Any) -> np.ndarray:
    return np.asarray(K.toarray() if sparse.issparse(K) else K, dtype=np.float64)


def matrix_values(function: Any, X: Points, Y: Points) -> np.ndarray:  # (n, m)
    """The matrix that a kernel as a function of matrices returns."""
    K = _array(function(X, Y))
    shape = (data.n_points(X), data.n_points(Y))
    if K.shape != shape:
        raise InputError(
            f"kernel must return a matrix of {shape[0]} × {shape[1]} values for that many points, got shape "
            f"{K.shape}: return the kernel of every point of the first set with every point of the second"
        )
    return K
