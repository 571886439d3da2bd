r"""Products with large matrices, cut in strips for our own threads.

A strip holds so many rows that its product is about a millisecond's work, whatever the number of threads: the
result is the same for any number of them. What is less than two strips is one call.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from mercer.runtime.threads import run

_WORK = 2**24  # multiplications of a strip, about a millisecond's
_THIN = 4  # a product with fewer columns takes as long as one with so many: it waits for memory


def strips(rows: int, width: int, columns: int) -> list[slice]:
    """Ranges of the rows of A for A V, A of rows × width and V of ``columns`` columns.

    >>> strips(1000, 1000, 1), strips(10_000, 10_000, 1)[:2]
    ([slice(0, 1000, None)], [slice(0, 416, None), slice(416, 833, None)])
    """
    work = rows * width * max(columns, _THIN)
    cuts = np.linspace(0, rows, max(1, math.ceil(work / _WORK)) + 1 if rows else 1).astype(int)
    return [slice(int(start), int(stop)) for start, stop in pairwise(cuts) if stop > start]


def multiply(A: np.ndarray, V: np.ndarray) -> np.ndarray:  # (n, m), (m,) or (m, p) → (n,) or (n, p)
    """A V.

    >>> multiply(np.eye(2), np.array([1.0, 2.0]))
    array([1., 2.])
    """
    parts = strips(len(A), len(V), V.shape[1] if V.ndim == 2 else 1)
    if len(parts) <= 1:
        return np.asarray(A @ V)
    out = np.empty((len(A), *V.shape[1:]), np.result_type(A, V))
    run(lambda part: np.matmul(A[part], V, out=out[part]), parts)
    return out


def multiply_left(V: np.ndarray, K: np.ndarray) -> np.ndarray:  # (p, n), (n, n) → (p, n)
    """V K for a symmetric K: by its rows, which are contiguous.

    >>> multiply_left(np.array([[1.0, 2.0]]), np.eye(2))
    array([[1., 2.]])
    """
    parts = strips(len(K), len(K), len(V))
    if len(parts) <= 1:
        return np.asarray(V @ K)
    out: Any = np.empty((len(V), len(K)), np.result_type(V, K))

    def task(part: slice) -> None:
        out[:, part] = V @ K[part].T

    run(task, parts)
    return np.asarray(out)
