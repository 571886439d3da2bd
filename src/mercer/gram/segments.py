r"""Sums over segments of a Gram: Σ_{a∈A} Σ_{b∈B} k(a, b) for sets A, B of its points, which is never stored.

A block of values is computed as any other and added up while it is in cache: first the rows of a set, which
is a vector operation, then their columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from threading import current_thread, main_thread

import numpy as np
from numba import njit

from mercer.gram.gram import Gram
from mercer.native import OPTIONS
from mercer.threads import run

__all__ = ["segment_sums"]

_ROWS, _COLUMNS = 256, 1024  # points of a block: its values stay in cache until they are added up

Members = tuple[np.ndarray, np.ndarray]  # (points,) positions in the Gram, and the set of each, in order


def segment_sums(
    grams: Sequence[Gram], left: Members, right: Members, shape: tuple[int, int], lower: bool = False
) -> np.ndarray:  # shape
    """Σ_{a∈A} Σ_{b∈B} ∏ₖ Kₖ[a, b] for all sets A of the left and B of the right; the Kₖ are square.

    ``lower`` says that both sides are the same: what is above the diagonal is not computed.
    """
    (rows, row_sets), (columns, column_sets) = left, right
    sides = [
        (backend, backend.prepare(both.left.take(rows)), backend.prepare(both.right.take(columns)))
        for backend, both in ((gram._backend, gram._sides) for gram in grams)
    ]
    starts = range(0, len(rows), _ROWS)
    parts: dict[int, np.ndarray] = {}

    def task(i: int) -> None:
        these = row_sets[i : i + _ROWS] - row_sets[i]
        # sets with themselves: those that come later are not needed
        end = (
            int(np.searchsorted(column_sets, row_sets[i] + these[-1], side="right"))
            if lower
            else len(columns)
        )
        total = np.zeros((these[-1] + 1, shape[1]))
        memory = [np.empty(len(these) * min(_COLUMNS, end), gram.dtype) for gram in grams]
        for j in range(0, end, _COLUMNS):
            across = min(_COLUMNS, end - j)
            blocks = [part[: len(these) * across].reshape(len(these), across) for part in memory]
            for (backend, x, y), block in zip(sides, blocks, strict=True):
                backend.block(x, y, (i, i + len(these)), (j, j + across), block, (0, 0), False)
            for block in blocks[1:]:
                blocks[0] *= block
            add_up(blocks[0], these, column_sets[j : j + across], total)
        parts[i] = total

    # in a thread of its own this is one task of many, else it may use them all
    alone = current_thread() is not main_thread() or any(backend.is_parallel for backend, *_ in sides)
    with ExitStack() as stack:
        for backend, *_ in sides:
            stack.enter_context(backend.session())
        run(task, starts, 1 if alone else None)
    out = np.zeros(shape)
    for i in starts:  # in their order: a set may be in two parts, and threads must not change its sum
        out[row_sets[i] : row_sets[i] + len(parts[i])] += parts.pop(i)
    return np.tril(out) + np.tril(out, -1).T if lower else out


@njit(nogil=True, cache=True, **OPTIONS)
def add_up(values, row_sets, column_sets, out):  # type: ignore[no-untyped-def]
    """out[A, B] += Σ values[a, b] over a in A and b in B; points of a set are neighbours."""
    n, m = values.shape
    total = np.empty(m)
    r = 0
    while r < n:
        here = row_sets[r]
        for c in range(m):
            total[c] = 0.0
        while r < n and row_sets[r] == here:
            row = values[r]
            for c in range(m):
                total[c] += row[c]
            r += 1
        c = 0
        while c < m:
            there, part = column_sets[c], 0.0
            while c < m and column_sets[c] == there:
                part += total[c]
                c += 1
            out[here, there] += part
