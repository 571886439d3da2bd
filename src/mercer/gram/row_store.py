"""Rows of a Gram that were computed and are kept: least recently used ones leave first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np

from mercer.runtime.config import memory_budget

__all__ = ["RowCache"]


class RowCache:
    """At most ``capacity`` bytes of rows; by default a quarter of the memory budget.

    Memory is taken as rows arrive, never ahead.
    """

    def __init__(self, shape: tuple[int, int], dtype: Any, capacity: int | None = None) -> None:
        self.capacity = capacity
        self.width = shape[1]
        self.dtype = np.dtype(dtype)
        self._rows: OrderedDict[int, np.ndarray] = OrderedDict()
        self._lock = Lock()

    @cached_property
    def slots(self) -> int:
        """Rows that there is room for; the budget is that of the first time they are asked for."""
        capacity = memory_budget() // 4 if self.capacity is None else self.capacity
        return int(capacity // max(1, self.width * self.dtype.itemsize))

    def fetch(self, index: np.ndarray, compute: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """The rows of an index; those that are missing are computed together."""
        if self.slots == 0:
            return compute(index)
        with self._lock:
            found = {int(i): self._rows[int(i)] for i in index if int(i) in self._rows}
            for i in found:
                self._rows.move_to_end(i)
        missing = np.array([i for i in dict.fromkeys(index.tolist()) if i not in found], dtype=np.int64)
        if missing.size:
            fresh = compute(missing)
            if len(missing) == len(index) and missing.size > self.slots:
                return fresh
            found.update((int(i), row) for i, row in zip(missing, fresh, strict=True))
            self._keep(missing, fresh)
        return np.array([found[int(i)] for i in index], dtype=self.dtype).reshape(len(index), self.width)

    def _keep(self, index: np.ndarray, rows: np.ndarray) -> None:
        with self._lock:
            for i, row in zip(index[-self.slots :], rows[-self.slots :], strict=True):
                while len(self._rows) >= self.slots:
                    self._rows.popitem(last=False)
                self._rows[int(i)] = row.copy()  # a view would keep the whole block alive
