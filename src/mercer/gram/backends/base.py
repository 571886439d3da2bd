"""What a backend supplies: prepare a side, compute the values of a tile, multiply them into vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from mercer.errors import InputError
from mercer.gram.sides import Side, Sides
from mercer.kernels.formula.pair import External
from mercer.kernels.formula.program import Program
from mercer.runtime.config import memory_budget

#: a squared distance below this fraction of ‖x‖² + ‖y‖² is computed again from differences: what is
#: kept then has a relative error of at most about ε/τ, 2e-5 in float32 and 2e-10 in float64
REPAIR = {np.dtype(np.float32): 2.0**-7, np.dtype(np.float64): 2.0**-20}


#: the largest number of a precision; NumPy takes longer to say it than a small matrix takes
LARGEST_NUMBER = {np.dtype(kind): float(np.finfo(kind).max) for kind in (np.float32, np.float64)}

P = TypeVar("P")  # a side as a backend prepares it


class Tile(NamedTuple, Generic[P]):
    """A part of K: some rows of one prepared side, some columns of another, as half-open ranges."""

    x: P
    y: P
    i: tuple[int, int]
    j: tuple[int, int]
    #: whether both sides are the same points and K[j, i] is wanted along with K[i, j]
    mirror: bool = False

    @property
    def rows(self) -> slice:
        return slice(*self.i)

    @property
    def columns(self) -> slice:
        return slice(*self.j)

    @property
    def shape(self) -> tuple[int, int]:
        return self.i[1] - self.i[0], self.j[1] - self.j[0]

    def strips(self, width: int) -> list[Tile[P]]:
        """The same rows, with at most so many columns at a time."""
        start, stop = self.j
        if stop - start <= width:
            return [self]
        return [self._replace(j=(start + a, start + b)) for a, b in cut(stop - start, width)]


def cut(n: int, step: int) -> list[tuple[int, int]]:
    """The ranges of at most ``step`` that 0 … n-1 consists of."""
    return [(start, min(start + step, n)) for start in range(0, n, step)]


class Backend(ABC, Generic[P]):
    """A program made ready for one kind of machine and one precision.

    ``prepare`` turns a side into whatever the backend reads fastest; all others are given tiles of such
    sides. A backend defines ``values``, and replaces what it can do better.
    """

    name: str
    #: whether one block already keeps every thread busy: blocks then come one at a time
    is_parallel = False
    #: rows and columns of the ranges this backend likes to be given
    rows, columns = 1024, 1024
    #: rows that are multiplied into vectors at a time, where more than in a range are better
    product_rows = 0

    def __init__(self, program: Program, dtype: Any, device: str = "cpu") -> None:
        self.program = program
        self.dtype = np.dtype(dtype)
        if program.largest > LARGEST_NUMBER[self.dtype]:
            raise InputError(
                f"the kernel's parameters overflow in {self.dtype.name}: rescale the data so that widths are "
                "nearer to 1, for example with StandardScaler" + self._or_float64
            )
        self.device = device
        self._guard = Lock()
        self._whole: dict[External, np.ndarray] = {}

    def session(self) -> AbstractContextManager[None]:
        """Entered around the work on a Gram."""
        return nullcontext()

    @property
    def _or_float64(self) -> str:
        return ", or use float64" if self.dtype == np.float32 else ""

    def require_range(self, side: Side) -> None:
        """Refuse points whose squares leave the precision's range."""
        for view in side.views:
            if view.norms.size and view.norms.max() > LARGEST_NUMBER[self.dtype] / 4:
                raise InputError(
                    f"values as large as {abs(view.matrix).max():.3g} overflow when squared in "
                    f"{self.dtype.name}: rescale the columns, for example with StandardScaler"
                    + self._or_float64
                )

    @property
    def label(self) -> str:
        """What computes, for people."""
        return self.name

    def decide(self, sides: Sides) -> None:
        """Choose what depends on the points of both sides, before any of them is prepared."""

    @abstractmethod
    def prepare(self, side: Side) -> P:
        """The side in the backend's own form."""

    def take(self, prepared: P, side: Side, index: np.ndarray, role: str) -> P:
        """Some points of a side, prepared; ``role`` names memory that may be used again for the next."""
        return self.prepare(side.take(index))

    @abstractmethod
    def values(self, tile: Tile[P]) -> np.ndarray:  # (rows, columns)
        """K[i, j]; symmetric where a mirrored tile is on the diagonal."""

    def fill(self, tile: Tile[P], out: np.ndarray) -> None:
        """K[i, j] into out[i, j], and K[j, i] into out[j, i] where the tile is mirrored."""
        K = self.values(tile)
        out[tile.rows, tile.columns] = K
        if tile.mirror:
            out[tile.columns, tile.rows] = K.T

    def takes_whole_rows(self, x: P) -> bool:
        """Whether tiles of any width are as good as small ones: nothing is laid out anew for a tile."""
        return False

    def write(self, tile: Tile[P], out: np.ndarray) -> None:
        """K[i, j] into an array of just that shape."""
        out[:] = self.values(tile)

    def scatter(self, tile: Tile[P], out: np.ndarray, places: np.ndarray) -> None:
        """K[i, j] into out[places, j], one place for each row."""
        out[places, tile.columns] = self.values(tile)

    def multiply(self, tile: Tile[P], V: np.ndarray, out: np.ndarray) -> None:
        """out[i] += K[i, j] @ V[j]."""
        for strip in tile.strips(self.columns):
            out[tile.rows] += self.values(strip) @ V[strip.columns]

    def sums(self, tile: Tile[P], row_sets: np.ndarray, column_sets: np.ndarray, out: np.ndarray) -> None:
        """out[A, B] += Σ K[a, b] over a in A and b in B, in float64.

        The sets A are those of the rows i, the sets B those of all points y; points of a set are neighbours.
        """
        for strip in tile.strips(self.columns):
            sets = row_sets, column_sets[strip.columns]
            starts = [np.flatnonzero(np.diff(side, prepend=-1)) for side in sets]
            total = np.add.reduceat(self.values(strip), starts[0], axis=0, dtype=np.float64)
            total = np.add.reduceat(total, starts[1], axis=1)
            out[np.ix_(sets[0][starts[0]], sets[1][starts[1]])] += total

    def external(self, tile: Tile[Side]) -> list[np.ndarray]:
        """The planes that only a Python object can compute."""
        planes = []
        for plane in self.program.planes:
            if isinstance(plane, External):
                v = self.program.views.index(plane.view)
                x, y = tile.x.views[v], tile.y.views[v]
                if x is y and getattr(plane.source, "is_slow", False) and 8 * tile.x.n**2 <= memory_budget():
                    planes.append(self._once(plane, x.matrix)[tile.rows, tile.columns])
                    continue
                right = None if tile.mirror and tile.i == tile.j else y.take(tile.columns).matrix
                planes.append(plane.source.pairs(x.take(tile.rows).matrix, right))
        return planes

    def _once(self, plane: External, points: Any) -> np.ndarray:  # (n, n)
        """A slow plane of a set with itself, each pair computed once and kept for all that follows."""
        with self._guard:
            if plane not in self._whole:
                self._whole[plane] = plane.source.pairs(points, None)
            return self._whole[plane]
