r"""What is computed of blocks of rows of K(X, Z), by whoever has them: our threads, or a worker elsewhere.

A task is a function of `KernelColumns`, which makes K(X_b, Z) for any block X_b, of points X, of the places
where these are cut, and of arrays. All of it can be sent to another process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from threading import Lock, local
from typing import Any

import numpy as np

from mercer.data import points as data
from mercer.data.sparse import is_sparse
from mercer.errors import InputError
from mercer.gram.backends.base import cut
from mercer.gram.gram import Gram
from mercer.kernels.base import Kernel
from mercer.kernels.vectors.dotproduct import Linear
from mercer.runtime.config import settings, within
from mercer.runtime.threads import run

#: Landmarks per tile of a square: a product of 512 × rows × 512 is some 10 ms of one core.
_SQUARE_TILE = 512
#: Numbers of points that a thread makes ready at a time, 2 MiB: each time costs as much as 10⁵ kernel values.
_PREPARED_NUMBERS = 2**18
#: Rows that a thread transforms at a time.
_TRANSFORMED_ROWS = 256

#: where rows are cut: [start, stop) of every block
Cuts = Sequence[tuple[int, int]]


class KernelColumns:
    """K(·, Z) under the settings of where it was made; ``first`` is a point to prepare Z beside."""

    def __init__(self, kernel: Kernel, first: Any, Z: Any) -> None:
        now = settings()
        self.kernel, self._first, self._Z = kernel, first, Z
        self._settings = now.of_values()
        self._memory = local()

    @cached_property
    def gram(self) -> Gram:
        with within(**self._settings):
            return Gram(self.kernel, self._first, self._Z, cache=0)

    def blocks(self, X: Any, cuts: Cuts) -> Iterator[tuple[slice, np.ndarray]]:  # slice, (rows, M)
        """Each range of rows with its K(X_b, Z), in memory that the next block of the thread overwrites."""
        for chunk in _chunks(X, cuts):
            first, last = chunk[0][0], chunk[-1][1]
            gram = self.gram.beside(data.take(X, slice(first, last)))
            for start, stop in chunk:
                K = self._room(stop - start)
                if gram.takes_whole_rows:
                    gram.write_range(start - first, stop - first, K)
                elif len(chunk) == 1:
                    gram.dense(K)
                else:
                    self.gram.beside(data.take(X, slice(start, stop))).dense(K)
                yield slice(start, stop), K

    def _room(self, rows: int) -> np.ndarray:
        """Memory of the thread for so many rows of K."""
        kept = self._memory.__dict__
        if "block" not in kept or len(kept["block"]) < rows:
            kept["block"] = np.empty((rows, self.gram.shape[1]), self.gram.dtype)
        room: np.ndarray = kept["block"][:rows]
        return room

    def __getstate__(self) -> tuple[Any, ...]:
        return self.kernel, self._first, self._Z, self._settings

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.kernel, self._first, self._Z, self._settings = state
        self._memory = local()


def _chunks(X: Any, cuts: Cuts) -> Iterator[Cuts]:
    """Blocks whose points are made ready together: few numbers, or one block of what is no dense array."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    height = _PREPARED_NUMBERS // max(1, shape[1]) if len(shape) == 2 and not is_sparse(X) else 0
    waiting: list[tuple[int, int]] = []
    for start, stop in cuts:
        if waiting and stop - waiting[0][0] > height:
            yield waiting
            waiting = []
        waiting.append((start, stop))
    if waiting:
        yield waiting


def lacks(device: str, backend: str | None) -> str | None:
    """Why this process cannot compute with a device and a backend; None where it can.

    >>> lacks("cpu", "numpy") is None
    True
    """
    try:
        with within(device=device, backend=backend):
            Gram(Linear(), np.ones((1, 1))).dense()
    except (InputError, ImportError) as error:
        return str(error)
    return None


# --- tasks -------------------------------------------------------------------------------------------------


def pass_over(
    columns: KernelColumns, V: np.ndarray, X: Any, cuts: Cuts, inner: Any, width: int, numbers: int
) -> tuple[np.ndarray, np.ndarray, list[Any]]:
    """Σ_b K_bᵀ G_b, the sums of the numbers, and what was kept of each block, (G, numbers, kept) = inner."""
    total, sums, kept = np.zeros((len(V), width)), np.zeros(numbers), []
    for rows, K in columns.blocks(X, cuts):
        G, found, *rest = inner(rows, np.asarray(K @ V, dtype=np.float64))
        total += K.T @ np.asarray(G, dtype=K.dtype)
        sums += found
        kept += rest
    return total, sums, kept


def diagonal(columns: KernelColumns, X: Any, cuts: Cuts) -> np.ndarray:  # (n,)
    """k(x, x) of the rows."""
    with within(**columns._settings):
        parts = [Gram(columns.kernel, data.take(X, slice(*part)), cache=0).diag() for part in cuts]
    return np.concatenate(parts)


def square(
    columns: KernelColumns,
    transform: Callable[[np.ndarray], None],
    X: Any,
    cuts: Cuts,
    weight: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # (M, M), of which the lower triangle is there, and (M,)
    """Σ_b K_bᵀ W_b K_b and Σ_b K_bᵀ W_b 1, where columns of K_bᵀ are transformed first."""
    m, dtype = columns.gram.shape[1], columns.gram.dtype
    total, first = np.zeros((m, m), order="F"), np.zeros(m)
    lower = tiles(m)
    memory = np.empty((max((stop - start for start, stop in cuts), default=0), m), dtype)
    for start, stop in cuts:
        K = columns.gram.beside(data.take(X, slice(start, stop))).dense(memory[: stop - start])
        root = np.sqrt(weight[start:stop]).astype(dtype)
        K *= root[:, None]

        def change(part: tuple[int, int], K: np.ndarray = K) -> None:
            transform(K[slice(*part)].T)

        run(change, cut(len(K), _TRANSFORMED_ROWS))

        def add(tile: tuple[tuple[int, int], tuple[int, int]], K: np.ndarray = K) -> None:
            i, j = slice(*tile[0]), slice(*tile[1])
            total[i, j] += K[:, i].T @ K[:, j]

        run(add, lower)
        first += root @ K
    return total, first


def square_tiles(
    columns: KernelColumns, transform: Any, X: Any, cuts: Cuts, weight: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray]:
    """The tiles of the lower triangle of a square alone: half of it to send."""
    total, first = square(columns, transform, X, cuts, weight)
    return [total[slice(*i), slice(*j)].copy() for i, j in tiles(len(first))], first


def tiles(m: int) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """The tiles of the lower triangle of an m × m matrix."""
    strips = cut(m, _SQUARE_TILE)
    return [(i, j) for i in strips for j in strips if i[0] >= j[0]]


def as_they_are(columns: np.ndarray) -> None:
    """The transform that changes nothing."""


# --- sums --------------------------------------------------------------------------------------------------


class TreeSum:
    """The sum of parts that come in any order, added in pairs, and pairs of pairs, by their places.

    Of 2ᵏ parts no more than k + 1 wait at a time, where they come about in their order.

    >>> tree = TreeSum(3)
    >>> for place in (2, 0, 1):
    ...     tree.add(place, (np.array([10.0**place]),))
    >>> tree.total
    (array([111.]),)
    """

    def __init__(self, count: int) -> None:
        self._count, self._lock = count, Lock()
        self._waiting: dict[tuple[int, int], tuple[np.ndarray, ...]] = {}
        self.total: Any = None

    def add(self, place: int, part: tuple[np.ndarray, ...]) -> None:
        level, count = 0, self._count
        while count > 1:
            other = None
            if place ^ 1 < count:  # The last of an odd number goes up alone.
                with self._lock:
                    other = self._waiting.pop((level, place ^ 1), None)
                    if other is None:
                        self._waiting[level, place] = part
                        return
                part = tuple(a + b for a, b in zip(part, other, strict=True))
            level, place, count = level + 1, place // 2, (count + 1) // 2
        self.total = part
