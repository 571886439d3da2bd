r"""M = LLᵀ in the memory of M, tile by tile, and what one does with L.

Right-looking: for each block column k in turn, with tiles of b rows,

    Lₖₖ = chol(Mₖₖ),   Lᵢₖ = Mᵢₖ Lₖₖ⁻ᵀ,   Mᵢⱼ ← Mᵢⱼ - Lᵢₖ Lⱼₖᵀ     for i ≥ j > k

Nearly all work is in matrix products. LAPACK's own routine is as fast, but that of OpenBLAS 0.3.30 in float32
crashes beyond some 25,000 points; tiles keep every call small, and let a caller look up in between.

Only the lower triangle of a Fortran-ordered array is read and holds L afterwards; what is above the diagonal
is arbitrary.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError

from mercer.solvers.blas import cholesky_in_place, solve_triangle, subtract_product

__all__ = ["factorise", "inverse_diagonal", "solve"]

_TILE = 2048


def factorise(M: np.ndarray, step: Callable[[], object] = lambda: None) -> np.ndarray:  # (n, n)
    """L in the memory of M, a Fortran-ordered array; ``step`` is called after every block column.

    LinAlgError where M is not positive definite, to rounding.

    >>> M = np.array([[4.0, 2.0], [2.0, 5.0]], order="F")
    >>> np.tril(factorise(M))
    array([[2., 0.],
           [1., 2.]])
    """
    n = len(M)
    for k in range(0, n, _TILE):
        tile, below = slice(k, min(k + _TILE, n)), slice(min(k + _TILE, n), n)
        failed = cholesky_in_place(M[tile, tile])
        if failed:
            raise LinAlgError(f"the leading minor of order {k + failed} is not positive definite")
        solve_triangle(M[tile, tile], M[below, tile], side="right", transpose=True)
        for j in range(below.start, n, _TILE):
            rows, columns = slice(j, n), slice(j, min(j + _TILE, n))
            subtract_product(M[rows, columns], M[rows, tile], M[columns, tile], transpose_second=True)
        step()
    return M


def solve(L: np.ndarray, B: np.ndarray) -> np.ndarray:  # (n, n), (n,) or (n, t)
    """(LLᵀ)⁻¹ B.

    >>> solve(factorise(np.array([[4.0, 2.0], [2.0, 5.0]], order="F")), np.array([2.0, 5.0]))
    array([0., 1.])
    """
    n = len(L)
    X = np.array(B if B.ndim == 2 else B[:, None], L.dtype, order="F")
    _forward(L, X)
    for k in reversed(range(0, n, _TILE)):
        tile, below = slice(k, min(k + _TILE, n)), slice(min(k + _TILE, n), n)
        subtract_product(X[tile], L[below, tile], X[below], transpose_first=True)
        solve_triangle(L[tile, tile], X[tile], transpose=True)
    return X.reshape(B.shape)


def inverse_diagonal(L: np.ndarray) -> np.ndarray:  # (n,)
    """The diagonal of (LLᵀ)⁻¹: the squared lengths of the columns of L⁻¹.

    >>> inverse_diagonal(np.array([[2.0, 0.0], [1.0, 2.0]], order="F"))
    array([0.3125, 0.25  ])
    """
    n = len(L)
    out = np.empty(n)
    for k in range(0, n, _TILE):
        width = min(_TILE, n - k)
        Z = np.zeros((n - k, width), L.dtype, order="F")
        np.fill_diagonal(Z[:width], 1.0)
        _forward(L[k:, k:], Z)
        out[k : k + width] = np.einsum("ij,ij->j", Z, Z, dtype=np.float64)
    return out


def _forward(L: np.ndarray, X: np.ndarray) -> None:
    """X ← L⁻¹ X."""
    n = len(L)
    for k in range(0, n, _TILE):
        tile, below = slice(k, min(k + _TILE, n)), slice(min(k + _TILE, n), n)
        solve_triangle(L[tile, tile], X[tile])
        subtract_product(X[below], L[below, tile], X[tile])
