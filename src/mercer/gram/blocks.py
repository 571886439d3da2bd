r"""K(X, Z) for many points X and few landmarks Z, in blocks of rows that are computed and forgotten.

Everything that is learned from landmarks is a sum over blocks of rows. With X cut into X_b,

    pass_over(V, inner)   Σ_b K(X_b, Z)ᵀ inner(K(X_b, Z) V, b)      a gradient, a product with a Hessian
    square(weight)        Σ_b K(X_b, Z)ᵀ W_b K(X_b, Z)              a system for all coefficients

K is never stored. The places where X is cut depend on the numbers of points and landmarks alone, partial
sums are kept in float64 and added along one tree: the result is the same to the last bit for any number of
threads, and for whoever else computes the blocks. Who does is decided in one place, `RowBlocks._map`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from mercer.cluster import spread_of
from mercer.data import points as data
from mercer.data.types import Points
from mercer.gram import block_tasks as tasks
from mercer.gram.backends.base import cut
from mercer.gram.block_tasks import Cuts, KernelColumns, TreeSum
from mercer.kernels.base import Kernel
from mercer.runtime.config import config
from mercer.runtime.threads import run

#: A function of a slice of rows and their values F = K_b V, (rows, m). It returns G, (rows, p), numbers that
#: are added up over all blocks, and perhaps something to keep. For a cluster it needs a method ``part(rows)``
#: that returns the same function for some of the rows.
Inner = Callable[[slice, np.ndarray], tuple[Any, ...]]

#: Bytes of the kernel values of a block, which is in the outer cache of a core while it is used. Threads
#: wait for Python's lock between blocks: half of it takes sixteen of them twice the time, and two a few per
#: cent less.
BLOCK_BYTES = 2**23
#: Kernel values of a block whose square is added up: enough rows for a matrix product at full speed.
_SQUARED_VALUES = 2**22
#: Numbers of rows of a block, at least and at most.
_FEWEST_ROWS, _MOST_ROWS = 64, 4096
#: Tasks that the blocks are grouped into: many beside the cores of a machine. Where there are very many
#: blocks, tasks of 128 of them: some 0.2 s of a core, for a task takes client and scheduler 5 ms. More tasks
#: than the most would be too many for a scheduler.
_FEWEST_TASKS, _MOST_TASKS, _BLOCKS_OF_A_TASK = 48, 4096, 128
#: Rows whose squares are added up before they join the others, and how many such sums there are at most: a
#: sum is M × M, and costs as much to send as some hundred of its rows to compute.
_SQUARED_ROWS, _MOST_SQUARES = 2**13, 64
#: Rows whose k(x, x) a thread computes at a time.
_DIAGONAL_ROWS = 2**16
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

    def __init__(self, kernel: Kernel, X: Any, Z: Points, spread: Any = None) -> None:
        self.kernel, self.X, self.Z = kernel, X, Z
        self._columns = KernelColumns(kernel, data.take(X, slice(0, 1)), Z)
        gram = self._columns.gram
        self.shape = (data.n_points(X), gram.shape[1])
        self.dtype = gram.dtype
        width = X.shape[1] if len(getattr(X, "shape", ())) == 2 else 0
        #: additions and multiplications that a kernel value costs, about
        self.cost = 2.0 * width + _FORMULA
        #: the rows on a cluster; None where our threads compute
        self._spread: Any = spread_of(X) if spread is None else spread

    def some(self, rows: np.ndarray) -> RowBlocks:
        """The matrix for some of the rows, which are copied."""
        taken = data.take(self.X, rows)
        return RowBlocks(self.kernel, taken, self.Z, self._spread and self._spread.beside(taken))

    def rough(self) -> RowBlocks | None:
        """The matrix in single precision; None where kernel values are so already, or are not of vectors."""
        if self.dtype == np.float32 or not self.kernel.domain.is_vectors:
            return None
        with config(dtype="float32"):
            return RowBlocks(self.kernel, self.X, self.Z, self._spread)

    def pass_over(
        self,
        V: np.ndarray,
        inner: Inner,
        numbers: int = 1,
        width: int | None = None,
        each: Callable[[slice, Any], object] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:  # (M, width), (numbers,)
        """Kᵀ inner(K V), and the sums of the numbers that ``inner`` gives; V is (M, m).

        ``width`` is the number of columns of G, that of V by default. ``each`` takes the rows of a block and
        what ``inner`` keeps of it.
        """
        V = np.ascontiguousarray(V, dtype=self.dtype)
        groups = self._groups()
        tree = TreeSum(len(groups))

        def receive(g: int, found: tuple[np.ndarray, np.ndarray, list[Any]]) -> None:
            *sums, kept = found
            if each is not None:
                for part, value in zip(groups[g], kept, strict=True):
                    each(slice(*part), value)
            tree.add(g, tuple(sums))

        def own(rows: slice | None) -> tuple[Any, ...]:
            part: Any = inner if rows is None else inner.part(rows)  # type: ignore[attr-defined]
            return part, V.shape[1] if width is None else width, numbers

        self._map("pass", tasks.pass_over, (V,), groups, own, receive)
        total, sums = tree.total
        return total, sums

    def values(self, V: np.ndarray) -> np.ndarray:  # (n, m)
        """K V in float64."""
        out = np.empty((self.shape[0], V.shape[1]))
        self.pass_over(V, _Values(), width=0, each=out.__setitem__)
        return out

    def diag(self) -> np.ndarray:  # (n,)
        """k(x, x) of every row."""
        out = np.empty(self.shape[0])
        groups: list[Cuts] = [[part] for part in cut(self.shape[0], _DIAGONAL_ROWS)]
        if self._spread is not None:  # Rows are sent in the same parts as for passes.
            groups = [[(group[0][0], group[-1][1])] for group in self._groups()]

        def receive(g: int, found: np.ndarray) -> None:
            out[slice(*groups[g][0])] = found

        self._map("diagonal", tasks.diagonal, (), groups, lambda rows: (), receive)
        return out

    def adjoint(self, G: np.ndarray) -> np.ndarray:  # (n, p) → (M, p)
        """Kᵀ G."""
        return self.pass_over(np.empty((self.shape[1], 0)), _Given(G), width=G.shape[1])[0]

    def square(
        self,
        weight: np.ndarray,  # (n,) ≥ 0
        transform: Callable[[np.ndarray], None] = tasks.as_they_are,
    ) -> tuple[np.ndarray, np.ndarray]:  # (M, M), of which the lower triangle is there, and (M,)
        """Kᵀ W K and Kᵀ W 1.

        ``transform`` changes some columns of Kᵀ, (M, rows) in Fortran's order, before they are multiplied.
        """
        height = min(_MOST_ROWS, max(_FEWEST_ROWS, _SQUARED_VALUES // self.shape[1]))
        groups: list[Cuts] = [
            [(start + i, start + j) for i, j in cut(stop - start, height)]
            for start, stop in self._square_parts()
        ]
        if self._spread is None:  # All threads share every block: M × M numbers are there twice at most.
            total, first = tasks.square(self._columns, transform, self.X, groups[0], weight)
            for cuts in groups[1:]:
                more, ones = tasks.square(self._columns, transform, self.X, cuts, weight)
                total += more
                first += ones
            return total, first
        return self._gathered_square(groups, weight, transform)

    def _gathered_square(
        self, groups: list[Cuts], weight: np.ndarray, transform: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """The square from a cluster: tiles of the lower triangle, added in the order of the groups."""
        total, first = np.zeros((self.shape[1],) * 2, order="F"), np.zeros(self.shape[1])
        early: dict[int, Any] = {}
        following = 0

        def receive(g: int, found: Any) -> None:
            nonlocal following
            early[g] = found
            while following in early:
                parts, ones = early.pop(following)
                for (i, j), part in zip(tasks.tiles(len(first)), parts, strict=True):
                    total[slice(*i), slice(*j)] += part
                first[:] += ones
                following += 1

        def own(part: Any) -> tuple[Any, ...]:
            return (weight[part],)

        shared = self._columns, transform
        self._spread.map("square", tasks.square_tiles, shared, groups, own, receive, is_large=True)
        return total, first

    # --- blocks --------------------------------------------------------------------------------------

    def _groups(self) -> list[Cuts]:
        """Blocks, in groups that are one task each; twice as high in single precision, in the same groups."""
        groups = groups_of(*self.shape)
        if self.dtype == np.float32:
            return [
                [(a[0][0], a[-1][1]) for a in (g[i : i + 2] for i in range(0, len(g), 2))] for g in groups
            ]
        return groups

    def _square_parts(self) -> list[tuple[int, int]]:
        """Rows whose squares are added up by themselves: those of whole groups."""
        n = self.shape[0]
        rows = max(_SQUARED_ROWS, -(-n // _MOST_SQUARES))
        ends = [0]
        for group in self._groups():
            end = group[-1][1]
            if end - ends[-1] >= rows or end == n:
                ends.append(end)
        return list(pairwise(ends))

    def _map(
        self,
        what: str,
        task: Callable[..., Any],
        shared: tuple[Any, ...],
        groups: list[Cuts],
        own: Callable[[slice | None], tuple[Any, ...]],
        receive: Callable[[int, Any], None],
    ) -> None:
        """``receive(g, task(columns, *shared, X, group g, *own(rows)))`` for all groups, in any order.

        ``own(None)`` is for all rows, and a group counts its own rows where ``own`` is of these alone.
        """
        if self._spread is not None:
            self._spread.map(what, task, (self._columns, *shared), groups, own, receive)
            return

        def one(g: int) -> None:
            receive(g, task(self._columns, *shared, self.X, groups[g], *own(None)))

        run(one, range(len(groups)))


def _height(m: int) -> int:
    return min(_MOST_ROWS, max(_FEWEST_ROWS, BLOCK_BYTES // (8 * m)))


def groups_of(n: int, m: int) -> list[Cuts]:
    """Blocks of n rows and m landmarks, in groups that are one task each: the same for whoever computes."""
    blocks = cut(n, _height(m))
    count = max(_FEWEST_TASKS, min(_MOST_TASKS, len(blocks) // _BLOCKS_OF_A_TASK))
    return [blocks[i:j] for i, j in cut(len(blocks), -(-len(blocks) // count))]


class _Values:
    """The `Inner` that keeps K_b V, and adds nothing up."""

    def __call__(self, rows: slice, F: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        return np.empty((len(F), 0)), 0.0, F

    def part(self, rows: slice) -> _Values:
        return self


class _Given:
    """The `Inner` whose G is there already."""

    def __init__(self, G: np.ndarray) -> None:
        self.G = G

    def __call__(self, rows: slice, F: np.ndarray) -> tuple[np.ndarray, float]:
        return self.G[rows], 0.0

    def part(self, rows: slice) -> _Given:
        return _Given(self.G[rows])
