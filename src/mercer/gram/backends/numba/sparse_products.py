r"""Products of sparse rows: the columns that many rows have by BLAS, all others entry by entry."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.gram.sparse_rows import CommonColumns
from mercer.runtime.native import OPTIONS, njit

_ENTRIES_AT_ONCE = 2**15  # entries of Y's rare columns that are worked on together


def sparse_products(
    X: Any, Y: Any, i: tuple[int, int], j: tuple[int, int], columns: CommonColumns
) -> np.ndarray:  # (rows of i, rows of j)
    """⟨xₐ, y_b⟩ for a in i and b in j, CSR rows of float64."""
    x, y = _rows(X, i), _rows(Y, j)
    left, right = (_common(*rows, columns.place, columns.common) for rows in (x, y))
    out = left @ right.T
    _add_rare(*x, *_rare(*y, columns.place), out)
    return out


def _rows(matrix: Any, part: tuple[int, int]) -> tuple[np.ndarray, ...]:
    """The CSR arrays of a range of rows, with indices of one type."""
    indptr = matrix.indptr[part[0] : part[1] + 1].astype(np.int64)
    entries = slice(indptr[0], indptr[-1])
    return indptr - indptr[0], matrix.indices[entries].astype(np.int64, copy=False), matrix.data[entries]


@njit(nogil=True, cache=True, **OPTIONS)
def _common(indptr, indices, values, place, common):  # type: ignore[no-untyped-def]
    """The common columns as a dense matrix."""
    n = indptr.shape[0] - 1
    out = np.zeros((n, common))
    for i in range(n):
        for t in range(indptr[i], indptr[i + 1]):
            p = place[indices[t]]
            if p >= 0:
                out[i, p] += values[t]
    return out


@njit(nogil=True, cache=True, **OPTIONS)
def _rare(indptr, indices, values, place):  # type: ignore[no-untyped-def]
    """The rare columns, each a list of the rows that have it; common ones are empty."""
    n, width = indptr.shape[0] - 1, place.shape[0]
    first = np.zeros(width + 1, np.int64)
    for t in range(indices.shape[0]):
        if place[indices[t]] < 0:
            first[indices[t] + 1] += 1
    for c in range(width):
        first[c + 1] += first[c]
    rows, entries = np.empty(first[width], np.int32), np.empty(first[width])
    for i in range(n):
        for t in range(indptr[i], indptr[i + 1]):
            c = indices[t]
            if place[c] < 0:
                rows[first[c]], entries[first[c]] = i, values[t]
                first[c] += 1
    for c in range(width, 0, -1):
        first[c] = first[c - 1]
    first[0] = 0
    return first, rows, entries


@njit(nogil=True, cache=True, **OPTIONS)
def _add_rare(indptr, indices, values, first, rows, entries, out):  # type: ignore[no-untyped-def]
    """out[i, j] += ⟨xᵢ, yⱼ⟩ over the columns in lists: work only where both are not 0.

    Columns are taken in blocks that caches hold, for all rows of X.
    """
    n, width = out.shape[0], first.shape[0] - 1
    at = indptr[:n].copy()
    start = 0
    while start < width:
        stop = start + 1
        while stop < width and first[stop + 1] - first[start] <= _ENTRIES_AT_ONCE:
            stop += 1
        for i in range(n):
            row = out[i]
            t, end = at[i], indptr[i + 1]
            while t < end and indices[t] < stop:
                c, value = indices[t], values[t]
                for s in range(first[c], first[c + 1]):
                    row[rows[s]] += value * entries[s]
                t += 1
            at[i] = t
        start = stop
