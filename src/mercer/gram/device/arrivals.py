"""New points on their way to a device, which makes them ready itself: centred, rounded, with their norms.

Some rows at a time go to memory that the system may not move, by several threads, and from there to the
device by its own engine; while these are compared, the next ones are on their way. Whether the numbers are
finite is seen in the norms: the host reads each number once, to copy it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from math import prod
from typing import Any

import numpy as np

from mercer.gram.backends.base import Tile, cut
from mercer.gram.backends.torch import torch
from mercer.gram.gram import Gram
from mercer.runtime.config import thread_count

#: bytes of rows that are used together, and how many such parts have memory on the device
_PART, _PARTS = 2**26, 3
#: rows of a part, or a multiple of them: as many as products of wide points are computed of at a time
_ROWS = 2**14
#: bytes that a thread copies at a time, and the threads that do: more are no faster
_PIECE, _COPIERS = 2**23, 4
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
    """Rows of X and where they are in it, one part after the other, as tensors there.

    A tensor is written over once the next but one has been asked for.
    """
    rows = max(1, _PART // max(1, X.itemsize * X.shape[1]))
    if rows > _ROWS:  # as many as products are computed of at a time, or several times that
        rows -= rows % _ROWS
    parts = [slice(*part) for part in cut(len(X), rows)]
    if where.type != "cuda":
        for part in parts:
            yield part, torch.from_numpy(X[part].copy())
        return
    with _Road(X, parts, where) as road:
        yield from road


class _Pinned:
    """Memory of the host that the system may not move, for a piece, and what says that it has been read."""

    def __init__(self, shape: tuple[int, int], kind: Any) -> None:
        self.rows, self.is_read = torch.empty(shape, dtype=kind, pin_memory=True), torch.cuda.Event()
        #: the piece that had it last
        self.last: Future[None] | None = None


class _Road:
    """From the memory of the host to that of a CUDA device: in pieces, one for each thread at a time."""

    def __init__(self, X: np.ndarray, parts: list[slice], where: Any) -> None:
        self.X, self.parts, self.where = X, parts, where
        rows, d, kind = parts[0].stop, X.shape[1], getattr(torch, X.dtype.name)
        self.there = [torch.empty((rows, d), dtype=kind, device=where) for _ in parts[:_PARTS]]
        self.is_used = [torch.cuda.Event() for _ in self.there]
        self.stream = torch.cuda.Stream(where)
        self.stream.wait_stream(torch.cuda.current_stream(where))  # What was in this memory is read first.
        self.copiers = min(_COPIERS, thread_count())
        self.piece = min(rows, max(1, _PIECE // max(1, X.itemsize * d)))
        count = min(2 * self.copiers, -(-rows // self.piece) * len(parts))
        self.pinned = [_Pinned((self.piece, d), kind) for _ in range(count)]
        self.pieces = 0

    def __enter__(self) -> _Road:
        self.threads = ThreadPoolExecutor(self.copiers)
        return self

    def __exit__(self, *_: object) -> None:
        self.threads.shutdown(cancel_futures=True)
        torch.cuda.current_stream(self.where).wait_stream(self.stream)

    def __iter__(self) -> Iterator[tuple[slice, Any]]:
        sent = deque(self._send(k) for k in range(len(self.there)))
        for k, part in enumerate(self.parts):
            for piece in sent.popleft():
                piece.result()
            slot, now = k % len(self.there), torch.cuda.current_stream(self.where)
            has_arrived = torch.cuda.Event()
            has_arrived.record(self.stream)
            now.wait_event(has_arrived)
            yield part, self.there[slot][: part.stop - part.start]
            self.is_used[slot].record(now)
            if k + len(self.there) < len(self.parts):
                sent.append(self._send(k + len(self.there)))

    def _send(self, k: int) -> list[Future[None]]:
        """The pieces of part k, each on its way."""
        part, slot, sent = self.parts[k], k % len(self.there), []
        for start, stop in cut(part.stop - part.start, self.piece):
            pinned = self.pinned[self.pieces % len(self.pinned)]
            rows = self.X[part.start + start : part.start + stop]
            place = self.there[slot][start:stop]
            pinned.last = self.threads.submit(
                self._carry, rows, pinned, pinned.last, place, self.is_used[slot]
            )
            sent.append(pinned.last)
            self.pieces += 1
        return sent

    def _carry(
        self, rows: np.ndarray, pinned: _Pinned, before: Future[None] | None, place: Any, is_used: Any
    ) -> None:
        """One piece, through memory that the piece before it has left, to where the part before was used."""
        if before is not None:
            before.result()
        pinned.is_read.synchronize()
        np.copyto(pinned.rows.numpy()[: len(rows)], rows)
        with torch.cuda.device(self.where), torch.cuda.stream(self.stream):
            self.stream.wait_event(is_used)
            place.copy_(pinned.rows[: len(rows)], non_blocking=True)
            pinned.is_read.record(self.stream)
