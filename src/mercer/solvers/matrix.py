"""What a solver sees of a kernel matrix. A ``mercer.Gram`` is one; so is anything else with these verbs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

#: K of some points as the sum of two float64 matrices (``twofold``), or None where nobody knows it so well
Exact = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray] | None]


class SquareMatrix(Protocol):
    """K that is known by its products: an array, or a `KernelMatrix`."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    def __matmul__(self, V: Any, /) -> Any: ...


class KernelMatrix(Protocol):
    """K, Kᵢⱼ = k(xᵢ, xⱼ): square, symmetric, and perhaps never stored."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]

    def diag(self) -> np.ndarray:  # (n,)
        """The values k(xᵢ, xᵢ)."""

    def rows(self, index: Any) -> np.ndarray:  # (len(index), n)
        """The rows of some points; keeping them for the next time is the matrix's business."""

    def dense(self, out: np.ndarray | None = None) -> np.ndarray:  # (n, n)
        """The whole matrix, if it fits the memory budget, or into an array that is there."""

    def __matmul__(self, V: Any) -> np.ndarray:  # (n,) or (n, p)
        """K @ V without the matrix."""


class BlockMatrix(KernelMatrix, Protocol):
    """K that also gives some rows at some columns."""

    def block(self, i: Any, j: Any) -> np.ndarray:  # (len(i), len(j))
        """The values of some points against some others."""


class WritableRows(KernelMatrix, Protocol):
    """A K that writes parts of rows where a solver wants them."""

    def write_block(self, i: np.ndarray, j: np.ndarray, out: np.ndarray) -> None:  # (len(i), len(j))
        """The values of some points against some others, into ``out``."""

    def write_rows(
        self, index: np.ndarray, columns: tuple[int, int], out: np.ndarray, places: np.ndarray
    ) -> None:
        """K[index, start:stop] into out[places, start:stop]."""

    def combine(self, index: np.ndarray, coef: np.ndarray) -> np.ndarray:  # (n,) or (n, p)
        """K[:, index] @ coef in float64, without the columns."""

    def restrict(self, index: np.ndarray) -> WritableRows:
        """The matrix of some of the points with each other."""


class DeviceMatrix(Protocol):
    """K whose rows are tensors on a device; with it comes PyTorch, which solvers do not import."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    torch: Any
    #: about how far values are off, relative to K as a whole, because of how products are computed
    error: float

    def session(self) -> AbstractContextManager[None]:
        """Entered around all work."""

    def tensor(self, array: np.ndarray) -> Any:
        """A copy on the device."""

    def empty(self, *shape: int) -> Any:
        """Memory on the device, for numbers of K's precision."""

    def write_rows(self, index: np.ndarray, columns: tuple[int, int], out: Any, places: np.ndarray) -> None:
        """K[index, start:stop] into out[places, start:stop], a tensor."""

    def block(self, index: np.ndarray) -> np.ndarray:  # (m, m)
        """K of some points with each other, on the host."""
