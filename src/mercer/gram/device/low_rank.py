r"""A factor K ≈ FFᵀ of low rank on a device: its rows as they are found, and the preconditioner it makes.

It is kept as Fᵀ, (k, n), in the precision of K. The preconditioner is that of
`mercer.solvers.linear.precondition`,

    B = S F Fᵀ S + μI,   B⁻¹V = (V - G (LLᵀ)⁻¹ GᵀV) / μ,   G = SF,   LLᵀ = μI + GᵀG

with GᵀG and L in float64. V comes from NumPy and goes back to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.gram.backends.base import Tile, cut
from mercer.gram.backends.torch import torch
from mercer.gram.device.memory import DeviceRoom
from mercer.gram.device.triangle import Triangle, factorise, product
from mercer.gram.gram import Gram

#: points whose columns of Fᵀ are multiplied at a time in float64
_COLUMNS = 2**14
#: μ relative to ‖G‖² at least, as in `precondition`
_LEAST_DAMPING = 1e-13
_POWERS = 8


class FactorRows:
    """Fᵀ, of which the first ``count`` rows are there."""

    def __init__(self, gram: Gram, rank: int, room: DeviceRoom) -> None:
        self._gram, self._backend = gram, gram._backend
        n, item = gram.shape[0], gram.dtype.itemsize
        room.take(
            item * n * rank + 3 * 8 * rank * rank,
            f"a factor of rank {rank:,} of a kernel matrix of {n:,} points",
            "lower the rank",
        )
        self.count, self._where = 0, room.where
        backend: Any = self._backend
        self.rows = torch.empty((rank, n), dtype=backend.real, device=room.where)

    def at(self, points: np.ndarray) -> np.ndarray:  # (count, points)
        """Fᵀ of some points, in float64."""
        index = torch.from_numpy(np.asarray(points, dtype=np.int64)).to(self._where)
        return np.asarray(self.rows[: self.count].index_select(1, index).to(torch.float64).cpu().numpy())

    def extend(self, new: np.ndarray, L: np.ndarray) -> np.ndarray:  # (a,), (a, a) → (n,)
        """F ← [F, (K[:, new] - F F[new]ᵀ) L⁻ᵀ]; the squared lengths of what is new in every row of F."""
        backend: Any = self._backend
        done, n = self.count, self.rows.shape[1]
        room = self.rows[done : done + len(new)]
        known = self.rows[:done].index_select(1, torch.from_numpy(new.astype(np.int64)).to(self._where))
        triangle = torch.from_numpy(np.ascontiguousarray(L)).to(device=self._where, dtype=self.rows.dtype)
        lengths = torch.empty(n, dtype=torch.float64, device=self._where)
        with backend.session():
            x = backend.prepare(self._gram._sides.left.take(new))
            backend.store(Tile(x, self._gram._y, (0, len(new)), (0, n)), room)
            for a, b in cut(n, 4 * _COLUMNS):
                if done:
                    room[:, a:b].addmm_(known.mT, self.rows[:done, a:b], alpha=-1)
                room[:, a:b] = torch.linalg.solve_triangular(triangle, room[:, a:b], upper=False)
                lengths[a:b] = room[:, a:b].to(torch.float64).square().sum(dim=0)
        self.count += len(new)
        return np.asarray(lengths.cpu().numpy())

    def norm(self, weight: np.ndarray) -> float:  # (n,)
        """‖SFFᵀS‖ = ‖FᵀWF‖, from below and to within a tenth or so."""
        F, W = self.rows[: self.count], self._there(weight)
        v = torch.ones((self.count, 1), dtype=F.dtype, device=self._where)
        for _ in range(_POWERS):
            v = product(F, W[:, None] * product(F.mT, v / torch.linalg.vector_norm(v)))
        return float(torch.linalg.vector_norm(v))

    def inverse(
        self, rest: np.ndarray, weight: np.ndarray, alpha: float
    ) -> Callable[[np.ndarray], np.ndarray]:  # (n,), (n,)
        """V ↦ B⁻¹ V; ``rest`` is what F leaves of the diagonal."""
        F, k = self.rows[: self.count], self.count
        root = torch.from_numpy(np.sqrt(weight)).to(self._where)
        square = torch.zeros((k, k), dtype=torch.float64, device=self._where)
        for a, b in cut(F.shape[1], _COLUMNS):
            some = F[:, a:b].to(torch.float64) * root[a:b]
            square.addmm_(some, some.mT)
        damping = max(
            alpha + float(weight @ rest) / len(weight), _LEAST_DAMPING * float(square.diagonal().sum())
        )
        diagonal = square.diagonal()
        diagonal += damping
        triangle = Triangle(factorise(square))
        scale = root.to(F.dtype)[:, None]

        def solve(V: np.ndarray) -> np.ndarray:
            columns = torch.from_numpy(np.array(V, dtype=np.float64).reshape(len(V), -1)).to(self._where)
            seen = product(F, scale * columns.to(F.dtype)).to(torch.float64)
            seen = triangle.solve(triangle.solve_transposed(seen)).to(F.dtype)
            found = (columns - (scale * product(F.mT, seen)).to(torch.float64)) / damping
            return np.asarray(found.cpu().numpy().reshape(V.shape))

        return solve

    def _there(self, array: np.ndarray) -> Any:
        return torch.from_numpy(np.array(array, dtype=np.float64)).to(
            device=self._where, dtype=self.rows.dtype
        )
