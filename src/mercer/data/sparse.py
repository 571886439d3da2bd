"""Sparse matrices as they come: whether their indices are of the matrix, sorted, and each there once.

SciPy believes what a matrix was made of, and so does compiled code, which would read and write beyond the
arrays. Every matrix of a caller is looked at here once, in time proportional to its entries.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, TypeGuard

import numpy as np
from scipy import sparse

from mercer.data.types import Points
from mercer.errors import InputError

_REMEDY = (
    "make the matrix anew from rows, columns and values: scipy.sparse.coo_array((values, (i, j)), shape)"
)


def is_sparse(X: object) -> TypeGuard[sparse.csr_array]:
    """Whether it is a matrix or an array of scipy.sparse."""
    return not isinstance(X, np.ndarray) and bool(sparse.issparse(X))  # SciPy takes longer to say no.


def dense(X: Points) -> np.ndarray:
    """A sparse matrix with its zeros; of anything else the array that NumPy makes of it."""
    return X.toarray() if is_sparse(X) else np.asarray(X)


def require_indices(X: sparse.sparray, name: str = "X") -> None:
    """Refuse a sparse matrix whose arrays do not describe one.

    >>> broken = sparse.csr_array(np.eye(2))
    >>> broken.indices[1] = 7
    >>> require_indices(broken)
    Traceback (most recent call last):
    mercer.errors.InputError: X has an entry in column 7, and 2 columns: make the matrix anew from rows, ...
    """
    if X.format in ("csr", "csc", "bsr"):
        long, short = (1, 0) if X.format == "csc" else (0, 1)
        words, sizes = ("row", "column"), X.shape
        if X.format == "bsr":
            words, sizes = ("block row", "block column"), np.floor_divide(X.shape, X.blocksize)
        _require_starts(X.indptr, sizes[long], len(X.indices), len(X.data), words[long], name)
        _require_range(X.indices[: X.indptr[-1]], sizes[short], words[short], name)
    elif X.format == "lil":
        if list(map(len, X.rows)) != list(map(len, X.data)):
            raise InputError(f"{name} has rows with other numbers of columns and of values: {_REMEDY}")
        _require_range(np.fromiter(chain(*X.rows), np.int64), X.shape[1], "column", name)
    elif X.format == "coo":
        if len({len(X.data), *map(len, X.coords)}) > 1:
            raise InputError(
                f"{name} has {len(X.data)} values, and rows and columns for another number: {_REMEDY}"
            )
        for indices, size, word in zip(X.coords, X.shape, ("row", "column"), strict=True):
            _require_range(indices, size, word, name)


def _require_starts(starts: Any, n: int, indices: int, values: int, word: str, name: str) -> None:
    if starts.shape != (n + 1,):
        raise InputError(
            f"{name} has {n} {word}s, and indptr of length {len(starts)} instead of {n + 1}: {_REMEDY}"
        )
    steps = np.diff(starts)
    if starts[0] != 0 or (steps < 0).any():
        at = 0 if starts[0] != 0 else int(np.argmax(steps < 0))
        raise InputError(
            f"{name} has an indptr that does not count up from 0, {starts[at : at + 2].tolist()} at {word} "
            f"{at}: {_REMEDY}"
        )
    if starts[-1] > min(indices, values):
        raise InputError(
            f"{name} has an indptr that ends at {int(starts[-1])}, and only {min(indices, values)} entries: "
            f"{_REMEDY}"
        )


def _require_range(indices: Any, size: int, word: str, name: str) -> None:
    if not len(indices):
        return
    least, most = int(indices.min()), int(indices.max())
    if least < 0 or most >= size:
        wrong = least if least < 0 else most
        raise InputError(f"{name} has an entry in {word} {wrong}, and {size} {word}s: {_REMEDY}")


def is_canonical(rows: Any) -> bool:
    """Whether the columns of every row of a CSR matrix go up, with nothing behind the last entry.

    The flags of SciPy tell how they were when it looked last.

    >>> rows = sparse.csr_array(np.ones((2, 2)))
    >>> rows.has_canonical_format, is_canonical(rows)
    (True, True)
    >>> rows.indices[:] = [1, 0, 0, 1]
    >>> rows.has_canonical_format, is_canonical(rows)
    (True, False)
    """
    if len(rows.indices) != rows.indptr[-1] or len(rows.data) != rows.indptr[-1]:
        return False
    goes_up = np.diff(rows.indices) > 0
    ends = rows.indptr[1:-1] - 1  # Indices may fall from one row to the next.
    goes_up[ends[(ends >= 0) & (ends < len(goes_up))]] = True
    return bool(goes_up.all())


def canonical(rows: Any) -> Any:
    """CSR rows with sorted columns, each there once, and small indices: themselves, or a copy put right."""
    if not is_canonical(rows):
        parts = (rows.data.copy(), rows.indices.copy(), rows.indptr.copy())
        # A new object does not have the flags from before a change.
        rows = type(rows)(parts, shape=rows.shape)
        rows.sum_duplicates()
    return in_small_integers(rows)


def in_small_integers(rows: Any) -> Any:
    """The same rows with indices of 32 bits, where these are enough: compiled code has one form of them."""
    small = np.iinfo(np.int32).max
    if rows.indices.dtype == np.int32 == rows.indptr.dtype or max(*rows.shape, rows.nnz) > small:
        return rows
    indices, indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return type(rows)((rows.data, indices, indptr), shape=rows.shape)
