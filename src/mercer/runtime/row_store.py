"""Rows of a matrix that were computed and are kept: least recently used ones leave first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np

from mercer.runtime.config import memory_budget


class RowStore:
    """At most ``capacity`` bytes of rows; by default a quarter of the memory budget.

    Memory is taken as rows arrive, never ahead. A solver whose compiled code reads the rows where they are,
    in parts, keeps them in one matrix instead (``solvers.svm.rows``).
    """

    def __init__(self, width: int, dtype: Any, capacity: int | None = None) -> None:
        self.capacity = capacity
        self.width = width
        self.dtype = np.dtype(dtype)
        self._rows: OrderedDict[int, np.ndarray] = OrderedDict()
        self._lock = Lock()

    @cached_property
    def slots(self) -> int:
        """Rows that there is room for; the budget is that of the first time they are asked for."""
        capacity = memory_budget() // 4 if self.capacity is None else self.capacity
        return int(capacity // max(1, self.width * self.dtype.itemsize))

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, i: int) -> bool:
        return i in self._rows

    def get(self, i: int) -> np.ndarray | None:  # (width,)
        """Row i, if it is here."""
        with self._lock:
            row = self._rows.get(i)
            if row is not None:
                self._rows.move_to_end(i)
        return row

    def keep(self, index: np.ndarray, rows: np.ndarray) -> None:
        """Keep some rows, as many of the last of them as there is room for."""
        if self.slots == 0:
            return
        with self._lock:
            for i, row in zip(index[-self.slots :].tolist(), rows[-self.slots :], strict=True):
                while len(self._rows) >= self.slots:
                    self._rows.popitem(last=False)
                self._rows[i] = row.copy()  # a view would keep the whole block alive

    def fetch(self, index: np.ndarray, compute: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """The rows of an index; those that are missing are computed together."""
        if self.slots == 0:
            return compute(index)
        found = {i: self.get(i) for i in index.tolist()}
        missing = np.array([i for i, row in found.items() if row is None], dtype=np.int64)
        if missing.size:
            fresh = compute(missing)
            if len(missing) == len(index) and missing.size > self.slots:
                return fresh
            found.update(zip(missing.tolist(), fresh, strict=True))
            self.keep(missing, fresh)
        return np.array([found[i] for i in index.tolist()], self.dtype).reshape(len(index), self.width)
