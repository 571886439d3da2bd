"""What a solver sees of a kernel matrix. A ``mercer.Gram`` is one; so is anything else with these verbs."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

__all__ = ["KernelMatrix"]


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
