"""Values of a Gram that stay on its device, for solvers whose vectors are there too.

Points are gathered where they are, so that no row of K and no point travels. Solvers do not import PyTorch:
they are handed it with the matrix.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib import import_module
from threading import Lock
from typing import Any

import numpy as np

from mercer.data.points import take
from mercer.data.sparse import is_sparse
from mercer.data.types import Points
from mercer.gram.backends.base import Tile, cut
from mercer.gram.gram import Gram
from mercer.kernels.base import Kernel
from mercer.kernels.formula.pair import External
from mercer.kernels.formula.program import program_of
from mercer.runtime.config import memory_budget, settings, within

#: Numbers of rows that are computed at a time, beside which a backend may want as many several times.
_AT_ONCE = 2**26
#: Points whose values are compared with exact ones.
_SAMPLE = 128
#: The part of a device's free memory, or of the budget there, that rows take.
_PART = 0.5


class DeviceRows:
    """K(X, X) of a Gram: rows on the device, blocks on the host."""

    def __init__(self, gram: Gram) -> None:
        self._backend: Any = gram._backend
        self._points = gram._x, gram._y
        self._lock = Lock()
        self.shape, self.dtype = gram.shape, gram.dtype
        #: PyTorch
        self.torch = import_module(type(self._backend).__module__).torch
        #: about how far values are off, relative to K as a whole, because of how the device computes
        self.error = self._measured(gram) if self.dtype == np.float32 else 0.0
        with self.session():
            self.block(np.arange(1))  # What is made of all points, once, is there from now on.

    def _measured(self, gram: Gram) -> float:
        """‖K̂ - K‖/‖K‖ without the diagonal, of rows as they are computed here, for pairs of some points.

        What products are expected to lose is not all: the sums of tensor cores lose more, and not at random.
        """
        n = self.shape[0]
        some = np.unique(np.linspace(0, n - 1, min(n, _SAMPLE)).astype(np.int64))
        rows = self.empty(len(some), n)
        with self.session():
            self.write_rows(some, (0, n), rows, np.arange(len(some)))
        found = rows[:, self.tensor(some)].cpu().numpy().astype(np.float64)
        with within(device="cpu", backend=None, dtype="float64"):
            exact = Gram(gram.kernel, take(gram._raw[0], some), cache=0).dense()
        for K in (found, exact):
            np.fill_diagonal(K, 0.0)
        size, gap = float(np.linalg.norm(exact)), float(np.linalg.norm(found - exact))
        return gap / size if size > 0 else 0.0 if gap == 0 else np.inf

    def session(self) -> AbstractContextManager[None]:
        """Entered around all work."""
        session: AbstractContextManager[None] = self._backend.session()
        return session

    def tensor(self, array: np.ndarray) -> Any:
        """A copy on the device, in float64, int64 or bool as the array is."""
        return self.torch.tensor(array, device=self._backend.where)

    def empty(self, *shape: int) -> Any:
        """Memory on the device, for numbers of K's precision."""
        return self.torch.empty(shape, dtype=self._backend.real, device=self._backend.where)

    def write_rows(self, index: np.ndarray, columns: tuple[int, int], out: Any, places: np.ndarray) -> None:
        """K[index, start:stop] into out[places, start:stop]."""
        start, stop = columns
        with self._lock:
            for some in cut(len(index), max(1, _AT_ONCE // (stop - start))):
                part = slice(*some)
                values = self._values(index[part], self._points[1], columns)
                out[:, start:stop].index_copy_(0, self.tensor(places[part]), values)

    def block(self, index: np.ndarray) -> np.ndarray:  # (m, m)
        """K of some points with each other, on the host; of several threads none waits for another."""
        torch, m = self.torch, len(index)
        is_gpu = self._backend.where.type == "cuda"
        # A GPU writes to memory that the system may not move at many times the speed.
        out = torch.empty((m, m), dtype=self._backend.real, pin_memory=is_gpu)
        some = self._backend.some(self._points[1], self.tensor(index))
        whole = some if self._points[0] is self._points[1] else None
        for i in cut(m, max(1, _AT_ONCE // m)):
            x = whole or self._backend.some(self._points[0], self.tensor(index[slice(*i)]))
            rows = i if whole else (0, i[1] - i[0])
            out[slice(*i)].copy_(self._backend._values(Tile(x, some, rows, (0, m))))
        return np.asarray(out.numpy())

    def _values(self, index: np.ndarray, y: Any, columns: tuple[int, int]) -> Any:
        x = self._backend.some(self._points[0], self.tensor(index))
        return self._backend._values(Tile(x, y, (0, len(index)), columns))


def device_rows(gram: Gram) -> DeviceRows | None:
    """K of a Gram on its device; None where its backend has no tensors of all points there."""
    holds = getattr(gram._backend, "holds", None)
    return DeviceRows(gram) if holds is not None and gram.is_symmetric and holds(gram._x) else None


def holds_points(kernel: Kernel, X: Points) -> bool:
    """Whether all that a kernel reads of these points can be tensors: not CSR, nor what Python compares."""
    planes = program_of(kernel).planes
    return (
        kernel.domain.is_vectors
        and not is_sparse(X)
        and not any(isinstance(plane, External) for plane in planes)
    )


def device_room(device: str) -> int:
    """Bytes that rows may take on a device: half of ``config(device_memory=…)``, or of what is free there.

    Of the CPU, a part of the budget; none of a device that has no float64.
    """
    where = import_module("mercer.gram.backends.torch").where_of(device)
    if where.type == "mps":
        return 0
    chosen = settings().device_memory
    if chosen is None and where.type != "cuda":
        return memory_budget() // 4
    free = import_module("mercer.gram.device.memory").free_memory
    return int(_PART * (free(where) if chosen is None else chosen))
