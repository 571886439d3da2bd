"""What a backend supplies: prepare a side, compute a block, multiply a block into vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import Any

import numpy as np

from mercer.errors import InputError
from mercer.gram.sides import Side
from mercer.kernels.formula.pair import External, Quantity
from mercer.kernels.formula.program import Program
from mercer.runtime.config import memory_budget

__all__ = ["REPAIR", "Backend", "add_segments"]

#: a squared distance below this fraction of ‖x‖² + ‖y‖² is computed again from differences: what is
#: kept then has a relative error of at most about ε/τ, 2e-5 in float32 and 2e-10 in float64
REPAIR = {"float32": 2.0**-7, "float64": 2.0**-20}


class Backend(ABC):
    """A program made ready for one kind of machine and one precision.

    ``prepare`` turns a side into whatever the backend reads fastest; the other two get those
    objects back. All indices are half-open ranges of rows and columns.
    """

    name: str
    #: whether one block already keeps every thread busy: blocks then come one at a time
    is_parallel = False
    #: rows and columns of the ranges this backend likes to be given
    rows, columns = 1024, 1024

    def __init__(self, program: Program, dtype: Any, device: str = "cpu") -> None:
        self.program = program
        self.dtype = np.dtype(dtype)
        if np.abs(program.values).max(initial=0.0) > np.finfo(self.dtype).max:
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
            if view.norms.size and view.norms.max() > np.finfo(self.dtype).max / 4:
                raise InputError(
                    f"values as large as {abs(view.matrix).max():.3g} overflow when squared in "
                    f"{self.dtype.name}: rescale the columns, for example with StandardScaler"
                    + self._or_float64
                )

    @abstractmethod
    def prepare(self, side: Side) -> Any:
        """The side in the backend's own form, with ``take(index)``."""

    def take(self, prepared: Any, side: Side, index: np.ndarray, role: str) -> Any:
        """Some points of a side, prepared; ``role`` names memory that may be used again for the next."""
        return self.prepare(side.take(index))

    @abstractmethod
    def block(
        self,
        x: Any,
        y: Any,
        i: tuple[int, int],
        j: tuple[int, int],
        out: np.ndarray,
        at: tuple[int, int],
        mirror: bool,
    ) -> None:
        """K[i, j] into out[at:]; with ``mirror`` also K[j, i], for a set compared with itself."""

    def scatter(self, x: Any, y: Any, j: tuple[int, int], out: np.ndarray, places: np.ndarray) -> None:
        """K[:, j] of all rows of x into out[places, j]."""
        part = np.empty((len(places), j[1] - j[0]), self.dtype)
        self.block(x, y, (0, len(places)), j, part, (0, 0), False)
        out[places, j[0] : j[1]] = part

    def multiply(self, x: Any, y: Any, i: tuple[int, int], V: np.ndarray, out: np.ndarray) -> None:
        """out[i] += K[i, :] @ V, by blocks."""
        rows = i[1] - i[0]
        n = V.shape[0]
        scratch = np.empty((rows, min(n, self.columns)), self.dtype)
        for start in range(0, n, self.columns):
            stop = min(start + self.columns, n)
            part = scratch if stop - start == scratch.shape[1] else np.empty((rows, stop - start), self.dtype)
            self.block(x, y, i, (start, stop), part, (0, 0), False)
            out[i[0] : i[1]] += part @ V[start:stop]

    def sums(
        self,
        x: Any,
        y: Any,
        i: tuple[int, int],
        j: tuple[int, int],
        sets: tuple[np.ndarray, np.ndarray],
        out: np.ndarray,
    ) -> None:
        """out[A, B] += Σ K[a, b] over a in A and b in B, in float64.

        ``sets`` are the numbers A and B of the points i and j; points of a set are neighbours.
        """
        values = np.empty((i[1] - i[0], j[1] - j[0]), self.dtype)
        self.block(x, y, i, j, values, (0, 0), False)
        add_segments(values, sets, out)

    def external(
        self, x: Side, y: Side, i: tuple[int, int], j: tuple[int, int], same: bool
    ) -> list[np.ndarray]:
        """The planes that only a Python object can compute, for one block."""
        planes = []
        for plane in self.program.planes:
            if isinstance(plane, External):
                v = self.program.views.index(plane.view)
                is_slow = x.views[v] is y.views[v] and getattr(plane.source, "is_slow", False)
                if is_slow and 8 * x.n * x.n <= memory_budget():
                    planes.append(self._once(plane, x.views[v].matrix)[slice(*i), slice(*j)])
                    continue
                left, right = x.views[v].take(slice(*i)).matrix, y.views[v].take(slice(*j)).matrix
                planes.append(plane.source.pairs(left, None if same and i == j else right))
        return planes

    def _once(self, plane: External, points: Any) -> np.ndarray:  # (n, n)
        """A slow plane of a set with itself, each pair computed once and kept for all that follows."""
        with self._guard:
            if plane not in self._whole:
                self._whole[plane] = plane.source.pairs(points, None)
            return self._whole[plane]

    def kind(self, plane: Quantity | External) -> str:
        return plane.kind if isinstance(plane, Quantity) else "external"


def add_segments(values: np.ndarray, sets: tuple[np.ndarray, np.ndarray], out: np.ndarray) -> None:
    """out[A, B] += Σ values[a, b] over a in A and b in B; points of a set are neighbours."""
    starts = [np.flatnonzero(np.diff(side, prepend=-1)) for side in sets]
    total = np.add.reduceat(values, starts[0], axis=0, dtype=np.float64)
    total = np.add.reduceat(total, starts[1], axis=1)
    out[np.ix_(sets[0][starts[0]], sets[1][starts[1]])] += total
