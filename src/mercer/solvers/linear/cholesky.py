r"""M = LLᵀ in the memory of M, tile by tile, and what one does with L.

Right-looking: for each block column k in turn, with tiles of b rows,

    Lₖₖ = chol(Mₖₖ),   Lᵢₖ = Mᵢₖ Lₖₖ⁻ᵀ,   Mᵢⱼ ← Mᵢⱼ - Lᵢₖ Lⱼₖᵀ     for i ≥ j > k

Nearly all work is in matrix products, which our threads take one by one from a queue; the thread that has the
tile Mₖ₊₁,ₖ₊₁ also factorises it, while the others go on. The tiles do not depend on the number of threads,
and neither does L, to the last bit. LAPACK's own routine waits at every step for the slowest of its threads,
and in float32 that of OpenBLAS 0.3.30 crashes beyond some 25,000 points.

Only the lower triangle of a Fortran-ordered array is read and holds L afterwards; what is above the diagonal
is arbitrary.
"""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
from scipy.linalg import LinAlgError

from mercer.runtime.threads import run
from mercer.solvers.linear.blas import (
    add_product,
    add_square,
    cholesky_in_place,
    inverse_in_place,
    invert_triangle,
    multiply_triangle,
    solve_triangle,
    square_triangle,
    subtract_product,
    subtract_square,
)
from mercer.solvers.linear.strips import strips

_ONE = 640  # points up to which a single tile is as good
#: The tiles for up to so many points: larger ones are quicker, smaller ones keep more threads at work.
_TILES = {2500: 256, 4096: 384, sys.maxsize: 512}
_INVERTED = 1000  # points up to which LAPACK, on one thread, inverts as quickly as two of ours
_TOGETHER = 128  # columns of L⁻¹ per task: sixteen threads then hold no more than 2048


def factorise(M: np.ndarray) -> np.ndarray:  # (n, n)
    """L in the memory of M, a Fortran-ordered array.

    LinAlgError where M is not positive definite, to rounding.

    >>> M = np.array([[4.0, 2.0], [2.0, 5.0]], order="F")
    >>> np.tril(factorise(M))
    array([[2., 0.],
           [1., 2.]])
    """
    tiles = _tiles(len(M))
    if tiles:
        _factorise_tile(M, tiles[0])
    for k, tile in enumerate(tiles):
        below = tiles[k + 1 :]
        run(partial(_scale_tile, M, tile), below)
        pairs = [(rows, columns) for j, columns in enumerate(below) for rows in below[j:]]
        run(partial(_update_tile, M, tile), pairs)
    return M


def factorise_shifted(K: np.ndarray, alpha: float) -> np.ndarray:  # (n, n), C-ordered
    """L of K + αI, by the lower triangle of Kᵀ, in new memory.

    LinAlgError where K + αI is singular, to rounding: if K is positive semi-definite, no pivot is below α.

    >>> np.tril(factorise_shifted(np.array([[3.0, 2.0], [2.0, 4.0]]), 1.0))
    array([[2., 0.],
           [1., 2.]])
    """
    rounding = len(K) * float(np.finfo(K.dtype).eps) * float(np.abs(np.diagonal(K)).max())
    M = K.T.copy(order="F")
    M.flat[:: len(K) + 1] += alpha
    L = factorise(M)
    if not float(np.diagonal(L).min()) ** 2 >= max(alpha - rounding, rounding):
        raise LinAlgError("K + αI is singular, to rounding")
    return L


def _factorise_tile(M: np.ndarray, tile: slice) -> None:
    failed = cholesky_in_place(M[tile, tile])
    if failed:
        raise LinAlgError(f"the leading minor of order {tile.start + failed} is not positive definite")


def _scale_tile(M: np.ndarray, tile: slice, rows: slice) -> None:
    """Compute the tile Lᵢₖ."""
    solve_triangle(M[tile, tile], M[rows, tile], side="right", transpose=True)


def _update_tile(M: np.ndarray, tile: slice, pair: tuple[slice, slice]) -> None:
    """Update the tile Mᵢⱼ; the first of them is the next to be factorised."""
    rows, columns = pair
    if rows.start > columns.start:
        subtract_product(M[rows, columns], M[rows, tile], M[columns, tile], transpose_second=True)
        return
    subtract_square(M[rows, rows], M[rows, tile])
    if rows.start == tile.stop:
        _factorise_tile(M, rows)


def _tile_size(n: int) -> int:
    return max(n, 1) if n <= _ONE else next(size for most, size in _TILES.items() if n <= most)


def _tiles(n: int) -> list[slice]:
    size = _tile_size(n)
    return [slice(k, min(k + size, n)) for k in range(0, n, size)]


def solve(L: np.ndarray, B: np.ndarray) -> np.ndarray:  # (n, n), (n,) or (n, t)
    """(LLᵀ)⁻¹ B.

    >>> solve(factorise(np.array([[4.0, 2.0], [2.0, 5.0]], order="F")), np.array([2.0, 5.0]))
    array([0., 1.])
    """
    X = np.array(B if B.ndim == 2 else B[:, None], L.dtype, order="F")
    _forward(L, X)
    _backward(L, X)
    return X.reshape(B.shape)


def half_solve(L: np.ndarray, B: np.ndarray) -> np.ndarray:  # (n, n), (n, t)
    """L⁻¹ B.

    >>> half_solve(factorise(np.array([[4.0, 2.0], [2.0, 5.0]], order="F")), np.array([[2.0], [5.0]]))
    array([[1.],
           [2.]])
    """
    X = np.array(B, L.dtype, order="F")
    _forward(L, X)
    return X


def inverse(L: np.ndarray) -> np.ndarray:  # (n, n)
    """(LLᵀ)⁻¹ = ZᵀZ, Z = L⁻¹, in the memory of L: its lower triangle.

    >>> np.tril(inverse(np.array([[2.0, 0.0], [1.0, 2.0]], order="F")))
    array([[ 0.3125,  0.    ],
           [-0.125 ,  0.25  ]])
    """
    if len(L) <= _INVERTED:
        inverse_in_place(L)
        return L
    tiles = _tiles(len(L))
    for k in range(len(tiles)):
        _invert_column(L, tiles, k)
    for k in range(len(tiles)):
        _add_squares(L, tiles, k)
    return L


def _invert_column(A: np.ndarray, tiles: list[slice], k: int) -> None:
    """Z of the first k + 1 block rows and columns, where A holds that of the first k.

    Below them, in block row i, A holds -Σⱼ Lᵢⱼ Zⱼ over these rows: Zᵢ before Lᵢᵢ⁻¹ multiplies it.
    """
    before, tile, below = tiles[:k], tiles[k], tiles[k + 1 :]

    def scale(rows: slice) -> None:
        solve_triangle(A[tile, tile], A[rows, tile], side="right", factor=-1.0)

    def update(pair: tuple[slice, slice]) -> None:
        rows, columns = pair
        add_product(A[rows, columns], 1.0, A[rows, tile], A[tile, columns])

    def finish(columns: slice) -> None:
        solve_triangle(A[tile, tile], A[tile, columns])

    run(scale, below)
    run(update, [(rows, columns) for columns in before for rows in below])
    run(finish, before)
    invert_triangle(A[tile, tile])


def _add_squares(A: np.ndarray, tiles: list[slice], k: int) -> None:
    """ZᵀZ of the first k + 1 block rows of Z, where A holds that of the first k, and Z below."""
    before, tile = tiles[:k], tiles[k]

    def update(pair: tuple[slice, slice]) -> None:
        rows, columns = pair
        if rows.start > columns.start:
            add_product(A[rows, columns], 1.0, A[tile, rows], A[tile, columns], transpose=True)
        else:
            add_square(A[rows, rows], A[tile, rows])

    def finish(columns: slice) -> None:
        multiply_triangle(A[tile, columns], A[tile, tile], upper=False, side="left")

    run(update, [(rows, columns) for j, columns in enumerate(before) for rows in before[j:]])
    run(finish, before)
    square_triangle(A[tile, tile])


def inverse_diagonal(L: np.ndarray) -> np.ndarray:  # (n,)
    """The diagonal of (LLᵀ)⁻¹: the squared lengths of the columns of L⁻¹.

    >>> inverse_diagonal(np.array([[2.0, 0.0], [1.0, 2.0]], order="F"))
    array([0.3125, 0.25  ])
    """
    n = len(L)
    out = np.empty(n)

    def task(k: int) -> None:
        width = min(_TOGETHER, n - k)
        Z = np.zeros((n - k, width), L.dtype, order="F")
        np.fill_diagonal(Z[:width], 1.0)
        _forward(L[k:, k:], Z)
        out[k : k + width] = np.einsum("ij,ij->j", Z, Z, dtype=np.float64)

    run(task, range(0, n, _TOGETHER))
    return out


def _forward(L: np.ndarray, X: np.ndarray) -> None:
    """X ← L⁻¹ X."""

    def task(part: tuple[slice, slice]) -> None:
        rows, tile = part
        subtract_product(X[rows], L[rows, tile], X[tile])

    for tile in _tiles(len(L)):
        solve_triangle(L[tile, tile], X[tile])
        run(task, [(rows, tile) for rows in _parts(tile.stop, len(L), len(X[tile]), X.shape[1])])


def _backward(L: np.ndarray, X: np.ndarray) -> None:
    """X ← L⁻ᵀ X."""

    def task(part: tuple[slice, slice]) -> None:
        rows, below = part
        subtract_product(X[rows], L[below, rows], X[below], transpose_first=True)

    for tile in reversed(_tiles(len(L))):
        below = slice(tile.stop, len(L))
        run(task, [(rows, below) for rows in _parts(tile.start, tile.stop, len(X[below]), X.shape[1])])
        solve_triangle(L[tile, tile], X[tile], transpose=True)


def _parts(start: int, stop: int, width: int, columns: int) -> list[slice]:
    """The rows start … stop, cut for products of that width with so many columns."""
    return [slice(start + part.start, start + part.stop) for part in strips(stop - start, width, columns)]
