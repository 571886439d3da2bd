"""New points on their way to a device, which makes them ready itself: centred, rounded, with their norms.

Some rows at a time go to memory that the system may not move, by several threads, and from there to the
device by its own engine; while these are compared, the next ones are on their way. Whether the numbers are
finite is seen in the norms: the host reads each number once, to copy it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from math import prod
from typing import Any

import numpy as np

from mercer.gram.backends.base import Tile, cut
from mercer.gram.backends.torch import torch
from mercer.gram.gram import Gram
from mercer.runtime.config import thread_count

#: bytes of rows that travel together, and how many such parts have memory on the host
_PART, _PARTS = 2**26, 2
#: threads that copy: more are no faster
_COPIERS = 4
#: numbers of results that wait on the device
_RESULTS = 2**24


def receives(gram: Gram, X: Any) -> bool:
    """Whether the device can make these points ready for a place on the left side of a Gram.

    It can where its kernels are printed, and read the points as they are: no columns chosen or scaled before,
    no values of single points such as k(x, x).
    """
    backend: Any = gram._backend
    right = gram._sides.right
    if not (hasattr(backend, "receives") and backend.receives(right)):
        return False
    known = {view.matrix.dtype for view in right.views}
    return (
        type(X) in (np.ndarray, np.memmap)
        and X.ndim == 2
        and X.flags.c_contiguous
        and X.dtype in (np.float32, np.float64)
        and all(kind in (X.dtype, np.float64) for kind in known)
        and all(view.width == X.shape[1] for view in right.views)
    )


def received(gram: Gram, X: np.ndarray) -> Any | None:
    """The points as a left side, all of them on the device; None where they cannot be, or are not finite."""
    if not receives(gram, X):
        return None
    backend: Any = gram._backend
    rows = torch.empty(X.shape, dtype=getattr(torch, X.dtype.name), device=backend.where)
    for part, values in arriving(X, backend.where):
        rows[part] = values
    side = backend.received(rows, gram._y)
    side.largest = float(side.largest_norm())
    return side if side.largest <= backend.largest_square else None


def values(gram: Gram, X: np.ndarray, V: np.ndarray) -> np.ndarray | None:  # (n, p)
    """K(X, Y) @ V for the Y of a Gram; None where these points go another way, or are not all finite."""
    if not receives(gram, X):
        return None
    backend: Any = gram._backend
    m = gram.shape[1]
    vectors = backend._tensor(V)
    worst = torch.zeros((), dtype=torch.float64, device=backend.where)
    out, waiting, begin = np.empty((len(X), V.shape[1])), [], 0
    with backend.session():
        for part, rows in arriving(X, backend.where):
            side = backend.received(rows, gram._y)
            worst = torch.maximum(worst, side.largest_norm())
            waiting.append(backend.times(Tile(side, gram._y, (0, len(rows)), (0, m)), vectors))
            if sum(prod(found.shape) for found in waiting) >= _RESULTS or part.stop == len(X):
                out[begin : part.stop] = torch.cat(waiting).cpu().numpy()
                waiting, begin = [], part.stop
    return out if float(worst) <= backend.largest_square else None


def arriving(X: np.ndarray, where: Any) -> Iterator[tuple[slice, Any]]:
    """Rows of X and where they are in it, one part after the other, as tensors there."""
    parts = [slice(*part) for part in cut(len(X), max(1, _PART // max(1, X.itemsize * X.shape[1])))]
    if where.type != "cuda":
        for part in parts:
            yield part, torch.from_numpy(X[part].copy())
        return
    with _Road(X, parts, where) as road:
        yield from road


class _Road:
    """From the memory of the host to that of a CUDA device."""

    def __init__(self, X: np.ndarray, parts: list[slice], where: Any) -> None:
        self.X, self.parts, self.where = X, parts, where
        self.stream = torch.cuda.Stream(where)
        shape, kind = (parts[0].stop, X.shape[1]), getattr(torch, X.dtype.name)
        self.pinned = [torch.empty(shape, dtype=kind, pin_memory=True) for _ in parts[:_PARTS]]
        #: of each, what says that it has been read
        self.read: list[Any] = [None] * len(self.pinned)
        self.copiers = min(_COPIERS, thread_count())

    def __enter__(self) -> _Road:
        self.driver, self.hands = ThreadPoolExecutor(1), ThreadPoolExecutor(self.copiers)
        return self

    def __exit__(self, *_: object) -> None:
        self.driver.shutdown(cancel_futures=True)
        self.hands.shutdown()

    def __iter__(self) -> Iterator[tuple[slice, Any]]:
        sent = deque(self.driver.submit(self._send, k) for k in range(len(self.pinned)))
        for k, part in enumerate(self.parts):
            there, arrived = sent.popleft().result()
            if k + len(self.pinned) < len(self.parts):
                sent.append(self.driver.submit(self._send, k + len(self.pinned)))
            now = torch.cuda.current_stream(self.where)
            now.wait_event(arrived)
            there.record_stream(now)
            yield part, there

    def _send(self, k: int) -> tuple[Any, Any]:
        """Part k on the device, and the event of its arrival."""
        part, slot = self.parts[k], k % len(self.pinned)
        if self.read[slot] is not None:
            self.read[slot].synchronize()
        buffer = self.pinned[slot][: part.stop - part.start]
        rows, host = self.X[part], buffer.numpy()
        step = -(-len(rows) // self.copiers)
        list(
            self.hands.map(
                lambda i: np.copyto(host[i : i + step], rows[i : i + step]), range(0, len(rows), step)
            )
        )
        with torch.cuda.device(self.where), torch.cuda.stream(self.stream):
            there = buffer.to(self.where, non_blocking=True)
            arrived = torch.cuda.Event()
            arrived.record(self.stream)
        self.read[slot] = arrived
        return there, arrived
