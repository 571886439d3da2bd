"""A range of a Gram matrix to compute, as compiled code is given it: a record of addresses and numbers.

An array as an argument brings its shape, strides, owner and count of references into compiled code, and each
view of one does so again: that took Numba most of its seconds with the loop. A record of integers brings one
pointer. Whoever fills it in keeps the arrays alive until the loop has ended.
"""

from __future__ import annotations

import ctypes
from threading import local
from typing import Any

import numpy as np
from numba import from_dtype

_LINE = 64  # bytes of a cache line
_BYTES_KEPT = 2**24  # bytes that a thread keeps at most: several tiles of the largest kind
_INTEGER = np.dtype(np.int64)

#: Names of what the loop is told; all are integers of 64 bits. "x" is the side of the rows, "y" that of the
#: columns; addresses are of C-contiguous arrays in the precision of K, unless another one is said.
_FIELDS = (
    "tile",  # the address of the kernel's own function, which turns planes into values
    # the addresses of parts of the loop
    "fill_planes", "distances_from_differences", "distances_from_products", "repair_distances",
    "copy_values", "copy_external", "shift_back",  # 0 where there is nothing to do
    "scatter", "mirror_diagonal", "mirror_below", "multiply", "add_by_sets",
    "mode",
    "itemsize",  # bytes of a number of K
    # how planes are filled
    "planes", "n_planes",  # (planes, 4) of int64: kind, view, how it is made, whether it is shifted back
    "views", "n_views",  # (views, 4) of int64: offset in x, in y, width, whether y is needed transposed
    "x", "y",  # all points, view after view
    "x_exact", "y_exact",  # all points for repairs, maybe in another precision
    "x_norms", "y_norms", "x_shift", "y_shift",  # (views, points)
    "left", "n_left", "right", "n_right",  # (values of points, points)
    "x_points", "y_points",  # how many points the sides have
    "params", "external",  # external: (planes that were computed elsewhere, rows, columns) of the range
    # the range, its tiles, and where they go
    "i0", "i1", "j0", "j1",
    "height", "breadth",  # the size of a tile
    "is_direct",  # whether tiles are computed where they go, in out, else in "values"
    "streams",  # whether out is too large to stay in cache
    "out", "out_width", "oi", "oj",  # the range begins at out[oi, oj]
    "vectors", "n_vectors",  # for MULTIPLY: (columns of the range, vectors)
    "places", "column_places",  # int64: rows of out for the rows i0:i1 if not 0, or rows and columns of sums
    "sums", "n_sums",  # float64: (sets, n_sums)
    # memory for one tile
    "q", "values", "yt", "lefts", "rights",
    "sizes",  # int64, for the kernel's tile: rows, columns; per view x offset, width, yt offset; row stride
    "total",  # float64, one row
    # the tile at hand, which the loop itself writes
    "it", "jt", "rows", "cols",
    "target", "stride",  # its values, and the distance of their rows
    # the plane of squared distances at hand, which the loop itself writes: its view, and addresses
    "v", "width", "row", "plane", "product",
    "x_here", "x_exact_here", "y_exact_here", "x_norms_here", "y_norms_here",
)  # fmt: skip

Job: Any = type("Job", (ctypes.Structure,), {"_fields_": [(name, ctypes.c_int64) for name in _FIELDS]})
#: the record as a type of Numba's
JOB = from_dtype(np.dtype([(name, np.int64) for name in _FIELDS]))


def address(array: np.ndarray, dtype: np.dtype[Any] = _INTEGER) -> int:
    """Where the array's numbers are, which must be of this kind, row after row: compiled code never looks."""
    if array.dtype != dtype or not array.flags.c_contiguous:
        raise TypeError(f"compiled code needs C-contiguous {dtype.name}, not {array.dtype.name}")
    return int(array.__array_interface__["data"][0])


class _Kept(local):
    """Memory of a thread for the next job: to ask for new memory takes longer than a small job."""

    whole = np.empty(0, np.uint8)
    start = size = 0


_kept = _Kept()


def scratch(size: int) -> tuple[int, np.ndarray]:
    """The address of so many bytes, and the memory that has them: good until the thread asks again."""
    if _kept.size < size:
        whole = np.empty(size + _LINE, np.uint8)
        start = -(-address(whole, whole.dtype) // _LINE) * _LINE  # Vectors of whole lines are read fastest.
        if size > _BYTES_KEPT:
            return start, whole
        _kept.whole, _kept.start, _kept.size = whole, start, size
    return _kept.start, _kept.whole
