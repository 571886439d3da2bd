r"""K of all points on a device, for solvers that factorise it or multiply by it.

    factorised(root, shift)   V ↦ (S K S + shift I)⁻¹ V, S = diag(root), by TᵀT in the memory of K, the one
                              n × n matrix there is; in float64 with one step of refinement, by products
                              with a K that is computed anew
    store(rank)               rows of a factor K ≈ FFᵀ of low rank, as `solvers.landmarks.pivots` finds them
    K @ V                     by the points, which stay on the device

All else is that of the `Gram`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError

from mercer.gram.backends.base import Tile, cut
from mercer.gram.backends.torch import torch, where_of
from mercer.gram.device.low_rank import FactorRows
from mercer.gram.device.memory import DeviceRoom
from mercer.gram.device.triangle import Triangle, factorise
from mercer.gram.gram import Gram

#: rows of K that are computed at a time
_ROWS = 4096
_REMEDY = "use solver='cg', which never stores K, or float32, or fewer points"


class DeviceGram:
    """A Gram of one set of points whose factors live on its device.

    >>> from mercer import Gaussian, config
    >>> with config(device="cpu:0", device_memory="1MiB"):
    ...     K = DeviceGram(Gram(Gaussian(sigma=1.0), np.arange(3.0)[:, None]))
    >>> solve = K.factorised(np.ones(3), 1.0)
    >>> bool(np.abs(K @ solve(np.ones((3, 1))) + solve(np.ones((3, 1))) - 1.0).max() < 1e-14)
    True
    """

    def __init__(self, gram: Gram) -> None:
        self._gram = gram
        self.shape, self.dtype = gram.shape, gram.dtype
        self._backend: Any = gram._backend
        self.room = DeviceRoom(where_of(gram._settings["device"]))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gram, name)

    def __matmul__(self, V: Any) -> np.ndarray:  # (n,) or (n, p)
        return self._gram @ V

    def factorised(
        self, root: np.ndarray, shift: float
    ) -> Callable[[np.ndarray], np.ndarray]:  # (n,) → (n, p)
        """V ↦ (S K S + shift I)⁻¹ V. LinAlgError where that matrix is not positive definite, to rounding."""
        n, where, real = self.shape[0], self.room.where, self._backend.real
        self.room.require(
            self.dtype.itemsize * n * n, f"a factor of {n:,} × {n:,} {self.dtype.name}", _REMEDY
        )
        M = torch.empty((n, n), dtype=real, device=where)
        scale = torch.from_numpy(np.array(root, dtype=np.float64)).to(device=where, dtype=real)
        with self._backend.session():
            for i, j in cut(n, _ROWS):  # Only what is above the diagonal is read.
                self._backend.store(Tile(self._gram._x, self._gram._y, (i, j), (i, n)), M[i:j, i:])
                if not (root == 1).all():
                    M[i:j, i:] *= scale[i:j, None]
                    M[i:j, i:] *= scale[i:]
            diagonal = M.diagonal()
            largest = float(diagonal.abs().max())
            if not np.isfinite(largest):
                raise LinAlgError("K is not finite")
            rounding = n * float(np.finfo(self.dtype).eps) * largest
            diagonal += shift
            triangle = Triangle(factorise(M))
        if not float(triangle.T.diagonal().min()) ** 2 >= max(shift - rounding, rounding):
            raise LinAlgError("K is indefinite, or K + αI singular to rounding")

        def once(V: np.ndarray) -> np.ndarray:
            there = torch.from_numpy(np.array(V, dtype=np.float64)).to(device=where, dtype=real)
            found = triangle.solve(triangle.solve_transposed(there))
            return np.asarray(found.to(torch.float64).cpu().numpy())

        def solve(V: np.ndarray) -> np.ndarray:
            columns, S = V.reshape(n, -1), np.asarray(root, dtype=np.float64)[:, None]
            X = once(columns)
            if self.dtype == np.float64:
                X += once(columns - S * (self._gram @ (S * X)) - shift * X)
            return X.reshape(V.shape)

        return solve

    def store(self, rank: int) -> FactorRows:
        """Rows of a factor of low rank, of which there are none yet."""
        return FactorRows(self._gram, rank, self.room)
