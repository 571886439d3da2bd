"""Tables of how often each part is in each object, in linear time."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mercer.runtime.native import OPTIONS, njit


def count(rows: np.ndarray, columns: np.ndarray, n: int, width: int) -> sparse.csr_array:  # (n, width)
    """How often each pair (row, column) comes; rows ascend wherever columns are equal.

    >>> count(np.array([0, 0, 1]), np.array([1, 1, 0]), 2, 3).toarray()
    array([[0., 2., 0.],
           [1., 0., 0.]])
    """
    indptr, indices, data = _tally(rows, columns, n, width)
    return sparse.csr_array((data, indices, indptr), shape=(n, width))


@njit(nogil=True, cache=True, **OPTIONS)
def _tally(rows, columns, n, width):  # type: ignore[no-untyped-def]
    """CSR arrays of counts in linear time: into buckets by column, and from these by row."""
    begin = np.zeros(width + 1, np.int64)
    for c in columns:
        begin[c + 1] += 1
    for c in range(width):
        begin[c + 1] += begin[c]
    end = begin[:-1].copy()
    owner, times = np.empty(columns.size, np.int32), np.empty(columns.size, np.int32)
    indptr = np.zeros(n + 1, np.int64)
    for t in range(columns.size):
        c, row = columns[t], rows[t]
        e = end[c]
        if e > begin[c] and owner[e - 1] == row:
            times[e - 1] += 1
        else:
            owner[e], times[e] = row, 1
            end[c] = e + 1
            indptr[row + 1] += 1
    for row in range(n):
        indptr[row + 1] += indptr[row]
    indices, data = np.empty(indptr[n], np.int64), np.empty(indptr[n])
    place = indptr[:-1].copy()
    for c in range(width):
        for e in range(begin[c], end[c]):
            t = place[owner[e]]
            indices[t], data[t] = c, times[e]
            place[owner[e]] = t + 1
    return indptr, indices, data
