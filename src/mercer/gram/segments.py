r"""Sums over segments of a Gram: Σ_{a∈A} Σ_{b∈B} k(a, b) for sets A, B of its points, which is never stored.

A backend adds up the values of a tile while they are in cache: first the rows of a set, which is a vector
operation, then their columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from threading import current_thread, main_thread
from typing import Any

import numpy as np

from mercer.gram.backends.base import Backend, add_segments
from mercer.gram.gram import Gram
from mercer.runtime.threads import run

__all__ = ["segment_sums"]

_ROWS, _COLUMNS = 496, 1984  # points of a block: whole tiles of the compiled loop

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

    def task(start: int) -> None:
        these = row_sets[start : start + _ROWS] - row_sets[start]
        i = (start, start + len(these))
        end = len(columns)
        if lower:  # sets with themselves: those that come later are not needed
            end = int(np.searchsorted(column_sets, row_sets[start] + these[-1], side="right"))
        total = np.zeros((these[-1] + 1, shape[1]))
        for first in range(0, end, _COLUMNS):
            j = (first, min(first + _COLUMNS, end))
            _add_block(sides, i, j, (these, column_sets[slice(*j)]), total)
        parts[start] = total

    # in a thread of its own this is one task of many, else it may use them all
    alone = current_thread() is not main_thread() or any(backend.is_parallel for backend, *_ in sides)
    with ExitStack() as stack:
        for backend, *_ in sides:
            stack.enter_context(backend.session())
        run(task, starts, 1 if alone else None)
    out = np.zeros(shape)
    for start in starts:  # in their order: a set may be in two parts, and threads must not change its sum
        out[row_sets[start] : row_sets[start] + len(parts[start])] += parts.pop(start)
    return np.tril(out) + np.tril(out, -1).T if lower else out


def _add_block(
    sides: list[tuple[Backend, Any, Any]],
    i: tuple[int, int],
    j: tuple[int, int],
    sets: tuple[np.ndarray, np.ndarray],
    total: np.ndarray,
) -> None:
    """The sums of one block of points; a product of several kernels is stored on the way."""
    (backend, x, y), *others = sides
    if not others:
        backend.sums(x, y, i, j, sets, total)
        return
    product: Any = 1.0
    for backend, x, y in sides:
        values = np.empty((i[1] - i[0], j[1] - j[0]), backend.dtype)
        backend.block(x, y, i, j, values, (0, 0), False)
        product = np.multiply(values, product, out=values)
    add_segments(product, sets, total)
