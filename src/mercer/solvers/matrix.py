"""What a solver sees of a kernel matrix. A ``mercer.Gram`` is one; so is anything else with these verbs."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

__all__ = ["KernelMatrix"]


class KernelMatrix(Protocol):
    """K, Kᵢⱼ = k(xᵢ, xⱼ): square, symmetric, and perhaps never stored."""

    shape: tuple[int, int]

    def diag(self) -> np.ndarray:  # (n,)
        """The values k(xᵢ, xᵢ)."""

    def rows(self, index: Any) -> np.ndarray:  # (len(index), n)
        """The rows of some points; keeping them for the next time is the matrix's business."""
