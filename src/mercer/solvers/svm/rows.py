r"""Rows of K that a solver keeps, in memory that is used again: least recently used ones leave first.

Columns come in segments (the points of one class, say), and a row may be there in part: sub-problems that
see only some classes share the parts they have in common, and nobody computes a part that no one needs.

New memory is not free: the first write to it costs about as much as computing a row of a hundred columns'
data. So the store starts small and doubles, up to its capacity, once it has computed as many rows again as it
holds; and its memory is borrowed, to be given back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.runtime.scratch import borrow
from mercer.solvers.matrix import DeviceMatrix, WritableRows

_SQUARE = 4096  # points up to which the whole matrix may be wanted at once
_LINE = 64  # bytes of a cache line: rows start on one


class KeptRows:
    """At most ``capacity`` bytes of rows of K, whose columns are cut at ``bounds``.

    Parameters
    ----------
    K : the matrix
    bounds : (segments + 1,) where the segments of its columns begin and end
    capacity : bytes
    """

    #: bytes that the store starts with
    first = 2**28

    def __init__(self, K: WritableRows | DeviceMatrix, bounds: np.ndarray, capacity: int) -> None:
        self.K: Any = K
        self.bounds = bounds
        n = K.shape[0]
        lanes = _LINE // K.dtype.itemsize
        width = -(-K.shape[1] // lanes) * lanes
        if n <= _SQUARE and n * width * K.dtype.itemsize <= capacity:
            width = n
        size = width * K.dtype.itemsize
        #: rows that there is room for
        self.slots = int(min(n, max(1, capacity // size)))
        #: rows that are kept for now
        self.limit = min(self.slots, max(self.first // size, 1))
        #: (slots, n): the kept rows, in any order
        self.values: Any = self._room(width)
        self._slot = np.full(n, -1, np.int64)
        self._point = np.full(self.slots, -1, np.int64)
        self._used = np.zeros(self.slots, np.int64)  # when each slot was last asked for
        self._has = np.zeros((self.slots, len(bounds) - 1), np.bool_)
        self._seen = np.zeros(n, np.bool_)
        self._filled = 0
        self._again = 0  # rows computed again since the store last grew
        self._clock = 0

    def _room(self, width: int) -> Any:  # (slots, width)
        """Memory for the rows, until they are closed."""
        self._memory = borrow(self.slots * width * self.K.dtype.itemsize)
        return self._memory.array(self.K.dtype)[: self.slots * width].reshape(self.slots, width)

    def close(self) -> None:
        """Give the memory back; no row is there any more."""
        self.values = np.empty((0, 0), self.K.dtype)
        self._memory.give_back()

    def fetch(self, points: np.ndarray, segments: np.ndarray | None = None) -> None:
        """Make sure that the rows of some points are there, at most ``slots``, each in the segments it is
        needed in.

        points : (m,) distinct
        segments : (m, segments) of bool; all when None
        """
        self._clock += 1
        slots = self._slot[points]
        self._used[slots[slots >= 0]] = self._clock
        new = points[slots < 0]
        if len(new):
            self._place(new)
            slots = self._slot[points]
        if self._is_all(points, segments):
            self.K.dense(self.values)
            self._has[:] = True
            return
        lacking = ~self._has[slots] if segments is None else segments & ~self._has[slots]
        s, last = 0, len(self.bounds) - 1
        while s < last:
            rows = np.flatnonzero(lacking[:, s])
            e = s + 1
            while e < last and np.array_equal(lacking[:, e], lacking[:, s]):
                e += 1
            start, stop = int(self.bounds[s]), int(self.bounds[e])
            if len(rows) and stop > start:
                self.K.write_rows(points[rows], (start, stop), self.values, slots[rows])
            self._has[slots[rows], s:e] = True
            s = e

    def _is_all(self, points: np.ndarray, segments: np.ndarray | None) -> bool:
        """Whether all of a small matrix is wanted at once: it costs half then, being symmetric."""
        n = len(self._slot)
        return (
            self.values.shape == (n, n)
            and len(points) == n
            and not self._has.any()
            and np.array_equal(self._point, np.arange(n))
            and (segments is None or bool(segments.all()))
        )

    def is_new(self, points: np.ndarray) -> np.ndarray:  # (m,) of bool
        """Which points nobody has asked for, or marked."""
        return ~self._seen[points]

    def mark(self, points: np.ndarray) -> None:
        """Take points as asked for, without their rows."""
        self._seen[points] = True

    def places(self, points: np.ndarray) -> np.ndarray:
        """Where the rows of some points are in ``values``; -1 for those that are not there."""
        return self._slot[points]

    def _place(self, new: np.ndarray) -> None:
        """Slots for points that have none, from those that were not asked for just now."""
        self._again += int(self._seen[new].sum())
        self._seen[new] = True
        needed = int((self._used[: self._filled] == self._clock).sum()) + len(new)
        while self.limit < self.slots and (self.limit < needed or self._again > self.limit):
            self.limit = min(2 * self.limit, self.slots)
            self._again = 0
        fresh = np.arange(self._filled, min(self._filled + len(new), self.limit))
        self._filled += len(fresh)
        short = len(new) - len(fresh)
        if short:
            oldest = np.argpartition(self._used[: self._filled - len(fresh)], short - 1)[:short]
            self._slot[self._point[oldest]] = -1
            fresh = np.concatenate([fresh, oldest])
        self._slot[new] = fresh
        self._point[fresh] = new
        self._used[fresh] = self._clock
        self._has[fresh] = False
