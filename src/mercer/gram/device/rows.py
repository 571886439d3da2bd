r"""K(X, Z) on a device, by passes over its rows: what `mercer.gram.blocks.RowBlocks` is on the CPU.

    pass_over(V, inner)   Σ_b K_bᵀ inner(K_b V, b)

Points are there once. Of a part of the rows the kernel values are, as memory and columns make it best,

    kept      computed once and read twice in each pass, at the speed of memory, where all rows fit
    fused     computed twice in each pass, never stored: of few columns that takes less time than reading
    made      computed once in each pass, for a block of rows, and forgotten

V and what comes back, (M, m), are NumPy arrays: M numbers for each product. F = K_b V and G stay where they
are for an `inner` that says how it computes there (``on``); another one is given them on the host. Values of
K are in the precision of ``config(dtype=…)``, sums of parts in float64, added in their order: every run gives
the same bits.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from mercer.data import points as data
from mercer.data.types import Points
from mercer.gram.backends.base import Tile, cut
from mercer.gram.backends.torch import torch
from mercer.gram.device.arrivals import received
from mercer.gram.device.memory import DeviceRoom
from mercer.gram.device.triangle import product
from mercer.gram.gram import Gram, diagonal_values
from mercer.kernels.base import Kernel
from mercer.runtime.config import config, within
from mercer.runtime.threads import run

#: rows whose points are made ready together, and whose products are one launch
_SEGMENT = 2**20
#: rows of a block of values, at most: sums over rows of it are in the precision of K
_BLOCK_ROWS = 2**14
#: columns of points up to which values are quicker computed again than read
QUICK_COLUMNS = 16
#: rows that a thread of the host is given at a time
_HOST_ROWS = 2**16
#: arrays of the host whose copies on the device are remembered, and numbers of which it is not worth it
_ARRAYS_REMEMBERED, _FEW_NUMBERS = 6, 2**12
#: rows of a sample for each landmark, at most, and how many passes the square of it may take; what a device
#: does in a second, about: bytes that are read, values of kernels, additions and multiplications in float64
_MOST_SAMPLED, _PASSES = 4, 5
_BYTES, _VALUES, _FLOPS = 4e12, 1e12, 4.5e13
#: additions and multiplications that a kernel value costs beside those of ⟨x, z⟩, about
_FORMULA = 40


class _Values(NamedTuple):
    """Rows whose kernel values are there."""

    rows: slice
    K: Any  # (rows, M)

    def times(self, V: Any) -> Any:
        return product(self.K, V)

    def adjoint(self, G: Any) -> Any:
        return product(self.K.mT, G.to(self.K.dtype))


class _Fused(NamedTuple):
    """Rows whose kernel values are computed in each product."""

    rows: slice
    backend: Any
    x: Any
    y: Any
    shape: tuple[int, int]

    def times(self, V: Any) -> Any:
        return self.backend.times(Tile(self.x, self.y, (0, self.shape[0]), (0, self.shape[1])), V)

    def adjoint(self, G: Any) -> Any:
        tile = Tile(self.y, self.x, (0, self.shape[1]), (0, self.shape[0]))
        return self.backend.times(tile, G.to(self.backend.real))


class DeviceBlocks:
    """K(X, Z), n × M, known by passes over its rows, on a device.

    >>> from mercer import Gaussian, config
    >>> from mercer.gram.backends.torch import where_of
    >>> with config(device="cpu:0"):
    ...     room = DeviceRoom(where_of("cpu"))
    ...     K = DeviceBlocks(Gaussian(sigma=1.0), np.arange(3.0)[:, None], np.arange(2.0)[:, None], room)
    >>> K.shape, K.values(np.ones((2, 1))).ravel().round(4)
    ((3, 2), array([1.6065, 1.6065, 0.7419]))
    """

    #: How many rows a sample that stands for all rows has for each landmark, at least and at most. These are
    #: fewer than on the CPU, because a device makes passes quickly, and the square of a sample less so.
    sampled = 2, _MOST_SAMPLED

    def __init__(
        self,
        kernel: Kernel,
        X: Points,
        Z: Points,
        room: DeviceRoom,
        gram: Gram | None = None,
    ) -> None:
        self.kernel, self.X, self.Z, self.room = kernel, X, Z, room
        #: K of a first point and Z: what all others are prepared beside
        self.gram = Gram(kernel, data.take(X, slice(0, 1)), Z, cache=0) if gram is None else gram
        self.shape = (data.n_points(X), self.gram.shape[1])
        self.dtype = self.gram.dtype
        self._backend: Any = self.gram._backend
        self.width = data.n_columns(X) or 0
        self.cost = 2.0 * self.width + _FORMULA
        self._placed: list[tuple[np.ndarray, Any]] = []
        self._sides: dict[int, tuple[Any, Any]] = {}
        self._kept: list[_Values] | None = None
        n, m = self.shape
        item = self.dtype.itemsize
        self._has_points = self._takes(points_memory(n, self.width, item))
        is_quick = self.width <= QUICK_COLUMNS and self._is_fused
        self._keeps = not is_quick and self._takes(item * n * m)

    def _takes(self, n_bytes: int) -> bool:
        """Have the room for so many bytes until this is forgotten; False where there is none."""
        if n_bytes > self.room.left:
            return False
        self.room.left -= n_bytes
        weakref.finalize(self, self.room.give, n_bytes)
        return True

    @property
    def label(self) -> str:
        """How the values come about, for people."""
        if self._keeps:
            return "computed once and kept on the device"
        return "computed in each product" if self._is_fused else "computed in each pass, a block at a time"

    def some(self, rows: np.ndarray) -> DeviceBlocks:
        """The matrix for some of the rows, which are copied."""
        return DeviceBlocks(self.kernel, data.take(self.X, rows), self.Z, self.room, self.gram)

    def few(self, rows: np.ndarray, columns: int) -> DeviceBlocks:
        """The matrix for some of the rows and the first columns."""
        Z = data.take(self.Z, slice(0, columns))
        return DeviceBlocks(self.kernel, data.take(self.X, rows), Z, self.room)

    def rough(self) -> DeviceBlocks | None:
        """The matrix in single precision; None where kernel values are so already, or are not of vectors."""
        if self.dtype == np.float32 or not self.kernel.domain.is_vectors:
            return None
        with within(**self.gram._settings), config(dtype="float32"):
            return DeviceBlocks(self.kernel, self.X, self.Z, self.room)

    # --- passes --------------------------------------------------------------------------------------

    def pass_over(
        self,
        V: np.ndarray,
        inner: Any,
        numbers: int = 1,
        width: int | None = None,
        each: Callable[[slice, Any], object] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:  # (M, width), (numbers,)
        """Kᵀ inner(K V), and the sums of the numbers that ``inner`` gives; as `RowBlocks.pass_over`."""
        width = V.shape[1] if width is None else width
        total = torch.zeros((self.shape[1], width), dtype=torch.float64, device=self.room.where)
        sums = torch.zeros(numbers, dtype=torch.float64, device=self.room.where)
        vectors = self._upload(V).to(self._backend.real)
        there = inner.on(self.place) if hasattr(inner, "on") else None
        with self._backend.session():
            for stretch in self._stretches(V.shape[1] + width):
                rows = slice(stretch[0].rows.start, stretch[-1].rows.stop)
                F = self._products(stretch, vectors)
                if there is None:
                    G, found = self._on_host(inner, rows, F, numbers, width, each)
                else:
                    G, found, *kept = there(rows, F)
                    if each is not None:
                        for value in kept:
                            self._fetch(rows, value, each)
                sums += found
                if width:
                    for part in stretch:
                        inside = slice(part.rows.start - rows.start, part.rows.stop - rows.start)
                        total += part.adjoint(G[inside])
        return total.cpu().numpy(), sums.cpu().numpy()

    def values(self, V: np.ndarray) -> np.ndarray:  # (n, m)
        """K V in float64."""
        out, vectors = np.empty((self.shape[0], V.shape[1])), self._upload(V).to(self._backend.real)
        with self._backend.session():
            for stretch in self._stretches(V.shape[1]):
                rows = slice(stretch[0].rows.start, stretch[-1].rows.stop)
                out[rows] = self._products(stretch, vectors).cpu().numpy()
        return out

    def adjoint(self, G: np.ndarray) -> np.ndarray:  # (n, p) → (M, p)
        """Kᵀ G."""
        total = torch.zeros((self.shape[1], G.shape[1]), dtype=torch.float64, device=self.room.where)
        given = self._upload(G)
        with self._backend.session():
            for stretch in self._stretches(G.shape[1]):
                for part in stretch:
                    total += part.adjoint(given[part.rows])
        return np.asarray(total.cpu().numpy())

    def diag(self) -> np.ndarray:  # (n,)
        """k(x, x) of every row."""
        return diagonal_values(self.kernel, self.X).astype(self.dtype)

    def value_blocks(self, first: int = 0) -> Iterator[tuple[slice, Any]]:
        """Rows from ``first`` on and their kernel values, (rows, M), which are to be read only."""
        if first == self.shape[0]:
            return
        with self._backend.session():
            for part in self._parts(is_fused=False):
                skipped = min(max(first - part.rows.start, 0), len(part.K))
                if skipped < len(part.K):
                    yield slice(part.rows.start + skipped, part.rows.stop), part.K[skipped:]

    def others(self) -> int:
        """Of a sample that has the landmarks, how many rows beside: as their square takes the time of a few
        passes.

        0 where these would be fewer than there are landmarks, which is worse than none.
        """
        n, m = self.shape
        item = self.dtype.itemsize
        seconds = 2 * item / _BYTES if self._keeps else 2 / _VALUES
        if not self._keeps and not self._is_fused:
            seconds += 2 * self.width / _FLOPS
        rows = int(_PASSES * n * seconds * _FLOPS / (2 * m))
        return 0 if rows < m else min(rows, _MOST_SAMPLED * m)

    def place(self, array: np.ndarray) -> Any:
        """The array as a tensor in float64; the last ones of many numbers are remembered."""
        if array.size < _FEW_NUMBERS:
            return self._upload(array)
        for known, tensor in self._placed:
            if known is array:
                return tensor
        tensor = self._upload(array)
        self._placed = [*self._placed[1 - _ARRAYS_REMEMBERED :], (array, tensor)]
        return tensor

    # --- parts ---------------------------------------------------------------------------------------

    @property
    def _is_fused(self) -> bool:
        fuses = getattr(self._backend, "fuses", None)
        return fuses is not None and bool(fuses(self.gram._x, self.gram._y))

    @property
    def _height(self) -> int:
        """Rows of a block of values."""
        return max(1, min(_BLOCK_ROWS, self.room.work // (4 * self.dtype.itemsize * self.shape[1])))

    def _stretches(self, columns: int) -> Iterator[list[Any]]:
        """Parts whose `inner` is one call: all of them where they stay, else one.

        Of so many columns that those of all rows would fill what there is for blocks, one part; one block, if
        those of a segment would too.
        """
        n, row = self.shape[0], 8 * columns
        is_short = row * n <= self.room.work
        if is_short and (self._keeps or (self._is_fused and self._has_points)):
            yield list(self._parts())
        else:
            is_wide = row * min(n, _SEGMENT) > self.room.work
            for part in self._parts(is_fused=False if is_wide else None):
                yield [part]

    def _parts(self, is_fused: bool | None = None) -> Iterator[Any]:
        if self._kept is not None:
            yield from self._kept
            return
        is_fused = (self._is_fused and not self._keeps) if is_fused is None else is_fused
        kept = []
        for start, stop in cut(self.shape[0], _SEGMENT):
            x, y = self._points(start, stop)
            if is_fused:
                yield _Fused(slice(start, stop), self._backend, x, y, (stop - start, self.shape[1]))
                continue
            for i in cut(stop - start, self._height):
                K = torch.empty(
                    (i[1] - i[0], self.shape[1]), dtype=self._backend.real, device=self.room.where
                )
                self._backend.store(Tile(x, y, i, (0, self.shape[1])), K)
                part = _Values(slice(start + i[0], start + i[1]), K)
                if self._keeps:
                    kept.append(part)
                yield part
        if self._keeps:
            self._kept = kept
            self._sides.clear()

    def _points(self, start: int, stop: int) -> tuple[Any, Any]:
        """The points of a segment and the landmarks, prepared; they stay where there is room.

        Objects are prepared together: their landmarks then are not those of another segment.
        """
        if start not in self._sides:
            rows = data.take(self.X, slice(start, stop))
            x, y = received(self.gram, rows), self.gram._y
            if x is None:
                gram = self.gram.beside(rows)
                x, y = gram._x, gram._y
            if not self._has_points:
                return x, y
            self._sides[start] = x, y
        return self._sides[start]

    # --- to and from the host --------------------------------------------------------------------------

    def _products(self, stretch: list[Any], V: Any) -> Any:  # (rows, m), float64
        if not V.shape[1]:
            n = stretch[-1].rows.stop - stretch[0].rows.start
            return torch.zeros((n, 0), dtype=torch.float64, device=self.room.where)
        parts = [part.times(V).to(torch.float64) for part in stretch]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _on_host(
        self, inner: Any, rows: slice, F: Any, numbers: int, width: int, each: Any
    ) -> tuple[Any, Any]:  # (rows, width), (numbers,)
        """G and the sums, by an inner function of NumPy arrays, some rows for each thread."""
        values, G = F.cpu().numpy(), np.empty((len(F), width))
        parts = cut(len(values), _HOST_ROWS)
        found = np.zeros((len(parts), numbers))

        def one(p: int) -> None:
            part, mine = slice(*parts[p]), slice(rows.start + parts[p][0], rows.start + parts[p][1])
            G[part], found[p], *kept = inner(mine, values[part])
            if each is not None:
                for value in kept:
                    each(mine, value)

        run(one, range(len(parts)))
        return self._upload(G), self._upload(found.sum(axis=0))

    def _fetch(self, rows: slice, value: Any, each: Callable[[slice, Any], object]) -> None:
        is_one = not isinstance(value, tuple)
        each(rows, value.cpu().numpy() if is_one else tuple(one.cpu().numpy() for one in value))

    def _upload(self, array: np.ndarray) -> Any:
        given = np.ascontiguousarray(array, dtype=np.float64)
        if not given.flags.writeable:
            given = given.copy()  # PyTorch warns of others
        return torch.from_numpy(given).to(self.room.where)


def points_memory(n: int, width: int, item: int) -> int:
    """Bytes that n points take, with the forms in which kernels read them, about."""
    padded = -(-max(width, 1) // 16) * 16
    return n * (item * 4 * padded + 8 * 2 * max(width, 1) + 64)
