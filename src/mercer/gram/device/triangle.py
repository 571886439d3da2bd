r"""Cholesky factors on a device, A = TᵀT in the memory of A, and what is done with them.

Nearly all work is in matrix products, which run near the limit of the device; of the triangles on the
diagonal the inverses are kept, so that to solve for one vector takes two products for each block of rows and
no row waits for the one before. (PyTorch's own solver takes rows one after the other, some milliseconds for
20,000 of them.)

Only upper triangles are read; T is zero below. Blocks are cut by n alone: every run gives the same bits.
"""

from __future__ import annotations

import math
from typing import Any

from scipy.linalg import LinAlgError

from mercer.gram.backends.base import cut
from mercer.gram.backends.torch import torch

#: rows of a panel of the factor, of few points and of many; columns of what it is taken off of at a time
_PANEL, _WIDE_PANEL, _MANY_POINTS = 1024, 2048, 32_768
_STRIP = 4096
#: rows of a triangle whose inverse is kept, of a short one and of a long one: the time of a step there is
#: that of starting its products, and fewer of them take less
_BLOCK_ROWS, _LONG_BLOCK_ROWS, _LONG_ORDER = 1024, 4096, 8192


def product(A: Any, X: Any) -> Any:  # (r, n), (n, m)
    """A X; of one column by the routine that reads A at the speed of memory."""
    return torch.mv(A, X[:, 0])[:, None] if X.shape[1] == 1 else A @ X


def panel_of(n: int) -> int:
    """Rows of a panel: beside A the factorisation takes the memory of one, and of its copy."""
    return _WIDE_PANEL if n > _MANY_POINTS else _PANEL


def factorise(A: Any) -> Any:  # (n, n)
    """T in the memory of A. LinAlgError where A is not positive definite, to rounding.

    >>> A = torch.tensor([[4.0, 2.0], [2.0, 5.0]], dtype=torch.float64)
    >>> factorise(A).numpy()
    array([[2., 1.],
           [0., 2.]])
    """
    n = len(A)
    for start, stop in cut(n, panel_of(n)):
        tile = A[start:stop, start:stop]
        tile.triu_()
        found, failed = torch.linalg.cholesky_ex(tile + tile.triu(1).mT, upper=True)
        if int(failed) or not bool(torch.isfinite(found.diagonal()).all()):
            raise LinAlgError(f"the leading minor of order {start + int(failed)} is not positive definite")
        tile.copy_(found)
        A[stop:, start:stop] = 0
        if stop == n:
            break
        right = torch.linalg.solve_triangular(found.mT, A[start:stop, stop:], upper=False)
        A[start:stop, stop:] = right
        for i, j in cut(n - stop, _STRIP):
            A[stop : stop + j, stop + i : stop + j].addmm_(right[:, :j].mT, right[:, i:j], alpha=-1)
    return A


class Triangle:
    """T, upper triangular, with the inverses of the blocks on its diagonal.

    >>> T = Triangle(torch.tensor([[2.0, 1.0], [0.0, 2.0]], dtype=torch.float64))
    >>> v = torch.tensor([[4.0], [4.0]], dtype=torch.float64)
    >>> T.solve(v).numpy().ravel(), T.solve_transposed(v).numpy().ravel()
    (array([1., 2.]), array([2., 1.]))
    """

    def __init__(self, T: Any) -> None:
        self.T = T
        self.cuts = cut(len(T), _BLOCK_ROWS if len(T) <= _LONG_ORDER else _LONG_BLOCK_ROWS)
        self._inverses = [
            torch.linalg.solve_triangular(
                T[a:b, a:b], torch.eye(b - a, dtype=T.dtype, device=T.device), upper=True
            )
            for a, b in self.cuts
        ]

    def solve(self, V: Any) -> Any:  # (n, m)
        """T⁻¹ V."""
        X, n = V.clone(), len(V)
        for (a, b), inverse in zip(reversed(self.cuts), reversed(self._inverses), strict=True):
            part = X[a:b] if b == n else X[a:b] - product(self.T[a:b, b:], X[b:])
            X[a:b] = product(inverse, part)
        return X

    def solve_transposed(self, V: Any) -> Any:  # (n, m)
        """T⁻ᵀ V."""
        X = V.clone()
        for (a, b), inverse in zip(self.cuts, self._inverses, strict=True):
            part = X[a:b] if not a else X[a:b] - product(self.T[:a, a:b].mT, X[:a])
            X[a:b] = product(inverse.mT, part)
        return X

    def inverse_norm(self) -> float:
        """‖T⁻¹‖ in the norm of Frobenius, by some columns of T⁻¹ at a time; 2n³/3 operations in all.

        >>> T = Triangle(torch.tensor([[2.0, 1.0], [0.0, 2.0]], dtype=torch.float64))
        >>> T.inverse_norm()  # T⁻¹ = [[1/2, -1/4], [0, 1/2]]
        0.75
        """
        total = self.T.new_zeros((), dtype=torch.float64)
        for last, (a, b) in enumerate(self.cuts):
            X = self.T.new_zeros((b, b - a))
            X[a:b] = self._inverses[last]
            for (c, d), inverse in reversed([*zip(self.cuts[:last], self._inverses[:last], strict=True)]):
                X[c:d] = -product(inverse, product(self.T[c:d, d:b], X[d:b]))
            total += X.to(torch.float64).square().sum()
        return math.sqrt(float(total))

    def divide(self, B: Any) -> Any:  # (r, n)
        """B T⁻¹, in the memory of B."""
        for (a, b), inverse in zip(self.cuts, self._inverses, strict=True):
            if a:
                B[:, a:b].addmm_(B[:, :a], self.T[:a, a:b], alpha=-1)
            B[:, a:b] = B[:, a:b] @ inverse
        return B

    def square(self, weight: Any, out: Any) -> Any:  # (n,), (n, n)
        """T W Tᵀ into ``out``: its upper triangle."""
        for a, b in cut(len(self.T), _BLOCK_ROWS):
            out[a:b, a:] = (self.T[a:b, a:] * weight[a:]) @ self.T[a:, a:].mT
        return out
