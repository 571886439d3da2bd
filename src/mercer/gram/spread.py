r"""K(X, Y) whose rows X are a Dask collection: products and blocks, computed where the rows are.

    Gram(k, dask_X, Y) @ V     one pass over the rows
    Gram(k, dask_X) @ V        a pass for each slab of columns, Σ_s K(X, X_s) V_s, whose points come here

The places of slabs depend on the number of rows alone, and slabs are added in their order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.cluster import DaskRows, is_collection
from mercer.cluster.rows import opened
from mercer.data import points as data
from mercer.errors import InputError
from mercer.gram.backends.base import cut
from mercer.gram.blocks import RowBlocks
from mercer.gram.gram import Gram, _positions
from mercer.kernels.base import Kernel
from mercer.runtime.config import require_memory, settings

#: Points of a slab of columns: a block of 64 rows of it fits a core's cache.
_SLAB = 2**14


class SpreadGram:
    """K(X, Y), of which X is on a cluster; Y is X itself by default, or an array of points."""

    __array_ufunc__ = None

    def __init__(self, kernel: Kernel, X: Any, Y: Any = None) -> None:
        if not isinstance(kernel, Kernel) or not kernel.domain.is_vectors:
            raise InputError(f"on a cluster the kernel must be one of vectors, got {kernel!r}: Gaussian(), …")
        if is_collection(Y):
            raise InputError("Y must be an array of few points where X is on a cluster: pass Y.compute()")
        points: Any = X if isinstance(X, DaskRows) else opened(X, None, None)[0].points
        kernel = kernel.__sklearn_clone__()
        if not kernel.is_resolved() and Y is not None:
            raise InputError(
                f"{kernel!r} takes parameters from the data, and here are two sets: say which with "
                "kernel.resolve(X)"
            )
        self.kernel, self.X, self.Y = kernel.resolve(points), points, Y
        n = points.shape[0]
        self.shape = (n, n if Y is None else len(Y))
        self.dtype = np.dtype(settings().dtype)

    def __matmul__(self, V: Any) -> np.ndarray:  # (n,) or (n, p)
        V = np.asarray(V)
        if V.ndim not in (1, 2) or len(V) != self.shape[1] or V.dtype.kind not in "fiub":
            raise InputError(
                f"K is {self.shape[0]} × {self.shape[1]}: it multiplies real vectors of length "
                f"{self.shape[1]}, got {V.dtype} of shape {V.shape}"
            )
        columns = V.reshape(len(V), -1)
        out = np.zeros((self.shape[0], columns.shape[1]))
        for start, stop in cut(self.shape[1], _SLAB):
            Z = (self.X if self.Y is None else self.Y)[start:stop]
            out += RowBlocks(self.kernel, self.X, Z).values(columns[start:stop])
        return out.reshape(self.shape[0], *V.shape[1:])

    def block(self, rows: Any, columns: Any) -> np.ndarray:
        """K[rows, columns]."""
        right = self.X if self.Y is None else self.Y
        i, j = _positions(rows, self.shape[0], "row"), _positions(columns, self.shape[1], "column")
        if not (len(i) and len(j)):
            return np.empty((len(i), len(j)), self.dtype)
        return Gram(self.kernel, self.X[i], data.take(right, j), cache=0).dense()

    def rows(self, index: Any) -> np.ndarray:
        """K[index], of which the columns are computed where they are."""
        Z = self.X[_positions(index, self.shape[0], "row")]
        if self.Y is not None or not len(Z):
            return Gram(self.kernel, Z, self.Y, cache=0).dense() if len(Z) else np.empty((0, self.shape[1]))
        return RowBlocks(self.kernel, self.X, Z).values(np.eye(len(Z))).T

    def diag(self) -> np.ndarray:  # (n,)
        """k(x, x) of every row."""
        if self.Y is not None:
            raise InputError("diag needs one set of points, here are two: Gram(kernel, X)")
        return RowBlocks(self.kernel, self.X, self.X[:1]).diag()

    def dense(self) -> np.ndarray:
        """All of K, here, where that fits the memory budget."""
        require_memory(8 * self.shape[0] * self.shape[1], f"{self!r}", "ask for blocks")
        return Gram(self.kernel, self.X[:], self.Y, cache=0).dense()

    def __repr__(self) -> str:
        return f"Gram({self.kernel!r}, {self.shape[0]} × {self.shape[1]}, on a cluster)"
