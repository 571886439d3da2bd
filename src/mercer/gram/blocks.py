r"""K(X, Z) for many points X and few landmarks Z, in blocks of rows that are computed and forgotten.

Everything that is learned from landmarks is a sum over blocks of rows. With X cut into X_b,

    pass_over(V, inner)   Σ_b K(X_b, Z)ᵀ inner(K(X_b, Z) V, b)      a gradient, a product with a Hessian
    square(weight)        Σ_b K(X_b, Z)ᵀ W_b K(X_b, Z)              a system for all coefficients

K is never stored. The places where X is cut depend on the numbers of points and landmarks alone, partial
sums are kept in float64 and added along one tree: the result is the same to the last bit for any number of
threads, and for whoever else computes the blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import local
from typing import Any

import numpy as np

from mercer.data import points as data
from mercer.data.types import Points
from mercer.gram.backends.base import cut
from mercer.gram.gram import Gram
from mercer.kernels.base import Kernel
from mercer.runtime.config import config
from mercer.runtime.threads import run

__all__ = ["Inner", "RowBlocks"]

#: Of the rows ``slice`` with the values F = K_b V, (rows, m): G, (rows, p), and numbers that are added up.
Inner = Callable[[slice, np.ndarray], tuple[np.ndarray, np.ndarray]]

#: Kernel values of a block: 8 MiB in float64, which is in the outer cache of a core while it is used.
_BLOCK_VALUES = 2**20
#: Kernel values of a block whose square is added up: enough rows for a matrix product at full speed.
_SQUARED_VALUES = 2**22
#: Numbers of rows of a block, at least and at most.
_FEWEST_ROWS, _MOST_ROWS = 64, 4096
#: Tasks that the blocks are grouped into, at most: many beside the cores of a machine, few enough to keep a
#: partial sum of each.
_MOST_TASKS = 64
#: Landmarks per tile of a square: a product of 512 × rows × 512 is some 10 ms of one core.
_SQUARE_TILE = 512
#: Rows whose k(x, x) a thread computes at a time.
_DIAGONAL_ROWS = 2**16
#: Rows that a thread transforms at a time.
_TRANSFORMED_ROWS = 256
#: Additions and multiplications that a kernel value costs beside those of ⟨x, z⟩, about.
_FORMULA = 40


class RowBlocks:
    """K(X, Z), n × M, known by passes over its rows.

    >>> from mercer import Gaussian
    >>> K = RowBlocks(Gaussian(sigma=1.0), [[0.0], [1.0], [2.0]], [[0.0], [1.0]])
    >>> K.shape, K.values(np.ones((2, 1))).ravel().round(4)
    ((3, 2), array([1.6065, 1.6065, 0.7419]))
    >>> residual = lambda rows, F: (F - 1.0, np.array([((F - 1.0) ** 2).sum()]))
    >>> gradient, loss = K.pass_over(np.ones((2, 1)), residual)
    >>> gradient.ravel().round(4), loss.round(4)
    (array([0.9395, 0.8178]), array([0.8023]))
    """

    def __init__(self, kernel: Kernel, X: Any, Z: Points) -> None:
        self.kernel, self.X, self.Z = kernel, X, Z
        self._gram = Gram(kernel, data.take(X, slice(0, 1)), Z, cache=0)
        self.shape = (data.n_points(X), self._gram.shape[1])
        self.dtype = self._gram.dtype
        width = X.shape[1] if len(getattr(X, "shape", ())) == 2 else 0
        #: additions and multiplications that a kernel value costs, about
        self.cost = 2.0 * width + _FORMULA
        self._memory = local()

    def some(self, rows: np.ndarray) -> RowBlocks:
        """The same for some of the rows, which are copied."""
        return RowBlocks(self.kernel, data.take(self.X, rows), self.Z)

    def rough(self) -> RowBlocks | None:
        """The same in single precision; None where kernel values are so already, or are not of vectors."""
        if self.dtype == np.float32 or not self.kernel.domain.is_vectors:
            return None
        with config(dtype="float32"):
            return RowBlocks(self.kernel, self.X, self.Z)

    def pass_over(
        self, V: np.ndarray, inner: Inner, numbers: int = 1, width: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:  # (M, width), (numbers,)
        """Kᵀ inner(K V), and the sums of the numbers that ``inner`` gives; V is (M, m).

        ``width`` is the number of columns of G, that of V by default.
        """
        m = self.shape[1]
        V = np.ascontiguousarray(V, dtype=self.dtype)
        columns = V.shape[1] if width is None else width
        parts: dict[int, tuple[np.ndarray, np.ndarray]] = {}

        def task(group: list[tuple[int, int]]) -> None:
            total, sums = np.zeros((m, columns)), np.zeros(numbers)
            for start, stop in group:
                K = self._block(start, stop)
                G, found = inner(slice(start, stop), np.asarray(K @ V, dtype=np.float64))
                total += K.T @ np.asarray(G, dtype=self.dtype)
                sums += found
            parts[group[0][0]] = total, sums

        run(task, self._groups())
        return _tree([parts[start] for start in sorted(parts)])

    def values(self, V: np.ndarray) -> np.ndarray:  # (n, m)
        """K V in float64."""
        V = np.ascontiguousarray(V, dtype=self.dtype)
        out = np.empty((self.shape[0], V.shape[1]))

        def task(group: list[tuple[int, int]]) -> None:
            for start, stop in group:
                out[start:stop] = self._block(start, stop) @ V

        run(task, self._groups())
        return out

    def diag(self) -> np.ndarray:  # (n,)
        """k(x, x) of every row."""
        out = np.empty(self.shape[0])

        def task(part: tuple[int, int]) -> None:
            out[slice(*part)] = Gram(self.kernel, data.take(self.X, slice(*part)), cache=0).diag()

        run(task, cut(self.shape[0], _DIAGONAL_ROWS))
        return out

    def adjoint(self, G: np.ndarray) -> np.ndarray:  # (n, p) → (M, p)
        """Kᵀ G."""
        none = np.empty((self.shape[1], 0))
        return self.pass_over(none, lambda rows, F: (G[rows], np.zeros(1)), width=G.shape[1])[0]

    def square(
        self,
        weight: np.ndarray,  # (n,) ≥ 0
        rows: np.ndarray | None = None,
        transform: Callable[[np.ndarray], None] = lambda columns: None,
    ) -> tuple[np.ndarray, np.ndarray]:  # (M, M), of which the lower triangle is there, and (M,)
        """Kᵀ W K and Kᵀ W 1, of all rows or of some of them.

        ``transform`` changes some columns of Kᵀ, (M, rows) in Fortran's order, before they are multiplied.
        """
        n, m = self.shape if rows is None else (len(rows), self.shape[1])
        total, first = np.zeros((m, m), order="F"), np.zeros(m)
        strips = cut(m, _SQUARE_TILE)
        tiles = [(i, j) for i in strips for j in strips if i[0] >= j[0]]
        height = min(_MOST_ROWS, max(_FEWEST_ROWS, _SQUARED_VALUES // m))
        memory = np.empty((min(height, n), m), self.dtype)
        for start, stop in cut(n, height):
            chosen: Any = slice(start, stop) if rows is None else rows[start:stop]
            K = self._gram.beside(data.take(self.X, chosen)).dense(memory[: stop - start])
            root = np.sqrt(weight[chosen]).astype(self.dtype)
            K *= root[:, None]

            def change(part: tuple[int, int], K: np.ndarray = K) -> None:
                transform(K[slice(*part)].T)

            run(change, cut(len(K), _TRANSFORMED_ROWS))

            def add(tile: tuple[tuple[int, int], tuple[int, int]], K: np.ndarray = K) -> None:
                i, j = slice(*tile[0]), slice(*tile[1])
                total[i, j] += K[:, i].T @ K[:, j]

            run(add, tiles)
            first += root @ K
        return total, first

    # --- blocks --------------------------------------------------------------------------------------

    @property
    def height(self) -> int:
        """Rows of a block."""
        return min(_MOST_ROWS, max(_FEWEST_ROWS, _BLOCK_VALUES // self.shape[1]))

    def _groups(self) -> list[list[tuple[int, int]]]:
        """Blocks, in groups that are one task each."""
        blocks = cut(self.shape[0], self.height)
        return [blocks[i:j] for i, j in cut(len(blocks), -(-len(blocks) // _MOST_TASKS))]

    def _block(self, start: int, stop: int) -> np.ndarray:  # (rows, M)
        """Some rows of K, in memory that the next block of the thread overwrites."""
        kept = self._memory.__dict__
        if "block" not in kept:
            kept["block"] = np.empty((min(self.height, self.shape[0]), self.shape[1]), self.dtype)
        return self._gram.beside(data.take(self.X, slice(start, stop))).dense(kept["block"][: stop - start])


def _tree(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """The sums of all parts, added in pairs, and pairs of pairs."""
    while len(parts) > 1:
        pairs = [(a[0] + b[0], a[1] + b[1]) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[len(parts) - len(parts) % 2 :]
    return parts[0]
