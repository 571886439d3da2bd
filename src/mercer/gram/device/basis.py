r"""A basis of the functions on landmarks whose factor lives on a device: K_MM = TᵀT, w = Tβ.

It has the verbs of `mercer.solvers.landmarks.basis.Basis`. Vectors, (M, m), come from NumPy and go back to
it; T, squares and their factors stay, all in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpstrf

from mercer.errors import InputError
from mercer.gram.backends.base import Tile, cut
from mercer.gram.backends.torch import torch
from mercer.gram.device.memory import DeviceRoom
from mercer.gram.device.rows import DeviceBlocks
from mercer.gram.device.triangle import Triangle, factorise, product
from mercer.gram.gram import Gram

#: A pivot below so many units of the precision of K, relative to the largest k(z, z), is rounding.
_UNITS = 16.0
#: landmarks among which pivots are chosen together, and the least of them, as a part of the largest
_PANEL, _LEAST_PIVOT = 256, 1e-3
#: rows of K_MM that are computed at a time; rows and columns of a product that is added to a square
_ROWS, _STRIP = 4096, 4096
#: Random vectors that tell the amplification, and steps towards the largest singular value.
_VECTORS, _POWERS = 8, 8
_REMEDY = "take fewer landmarks"


class DeviceBasis:
    """T, upper triangular, of landmarks that are independent.

    >>> from mercer import config
    >>> from mercer.gram.backends.torch import where_of
    >>> with config(device_memory="1MiB"):
    ...     basis = DeviceBasis(
    ...         torch.tensor([[2.0, 1.0], [0.0, 1.0]], dtype=torch.float64), DeviceRoom(where_of("cpu"))
    ...     )
    >>> basis.weights(np.array([[1.0], [2.0]])).ravel(), basis.coefficients(np.array([[4.0], [2.0]])).ravel()
    (array([4., 2.]), array([1., 2.]))
    """

    def __init__(self, T: Any, room: DeviceRoom) -> None:
        self.room, self.size = room, len(T)
        self.triangle = Triangle(T)

    @property
    def T(self) -> np.ndarray:  # (M, M)
        """A copy on the host."""
        return np.asfortranarray(self.triangle.T.cpu().numpy())

    def weights(self, coef: np.ndarray) -> np.ndarray:  # (M, m)
        """w = T β."""
        return self.host(product(self.triangle.T, self._there(coef)))

    def coefficients(self, w: np.ndarray) -> np.ndarray:  # (M, m)
        """β = T⁻¹ w."""
        return self.host(self.triangle.solve(self._there(w)))

    def features(self, g: np.ndarray) -> np.ndarray:  # (M, m)
        """T⁻ᵀ g."""
        return self.host(self.triangle.solve_transposed(self._there(g)))

    @cached_property
    def inverse_norm(self) -> float:
        """‖T⁻¹‖ in the norm of Frobenius, as `Basis.inverse_norm`."""
        return self.triangle.inverse_norm()

    @cached_property
    def amplification(self) -> float:
        """As `Basis.amplification`."""
        V = np.random.default_rng(0).choice([-1.0, 1.0], (self.size, _VECTORS))
        image = product(self.triangle.T.mT, product(self.triangle.T, self._there(V)))
        longest = 0.0
        for _ in range(_POWERS):
            V /= np.linalg.norm(V, axis=0)
            V = self.coefficients(self.features(V))
            longest = float(np.linalg.norm(V, axis=0).max())
        return float(image.square().sum()) / _VECTORS * longest / self.size

    # --- squares -------------------------------------------------------------------------------------

    def square(
        self, K: DeviceBlocks, weight: np.ndarray, slack: float = 0.0, own: int = 0
    ) -> tuple[Any, Any]:  # (M, M), (M,)
        """ΦᵀWΦ, of which the upper triangle is there, and ΦᵀW 1; ``own``: the first rows are the landmarks
        themselves.

        Features are multiplied, in float64; nothing is saved by less, so that ``slack`` is of no use here. Of
        the landmarks themselves they are the rows of Tᵀ.
        """
        total = torch.zeros((self.size, self.size), dtype=torch.float64, device=self.room.where)
        first = total.new_zeros(self.size)
        there = self._there(weight)
        if own:
            self.triangle.square(there[:own], total)
            first += torch.mv(self.triangle.T, there[:own])
        root = there.sqrt()
        for rows, values in K.value_blocks(own):
            for start, stop in cut(len(values), self._height):
                mine = slice(rows.start + start, rows.start + stop)
                phi = self.triangle.divide(values[start:stop].to(torch.float64, copy=True))
                phi *= root[mine, None]
                first += torch.mv(phi.mT, root[mine])
                for a, b in cut(self.size, _STRIP):
                    total[a:b, a:].addmm_(phi[:, a:b].mT, phi[:, a:])
        return total, first

    def bordered(self, total: Any, first: Any, sum_: float) -> Any:  # (M + 1, M + 1)
        """The matrix with a last row and column of the intercept."""
        M = self.size
        square = total.new_zeros((M + 1, M + 1))
        square[:M, :M] = total
        square[:-1, -1], square[-1, -1] = first, sum_
        return square

    def inverse(
        self, square: Any, added: np.ndarray, share: float
    ) -> Callable[[np.ndarray], np.ndarray]:  # (M + 1,)
        """V ↦ (square + diag(added) + share · its diagonal)⁻¹ V; the square is overwritten."""
        diagonal = square.diagonal()
        diagonal += self._there(added) + share * diagonal
        triangle = Triangle(factorise(square))

        def solve(V: np.ndarray) -> np.ndarray:
            return self.host(triangle.solve(triangle.solve_transposed(self._there(V))))

        return solve

    def less(self, A: Any, v: np.ndarray, w: np.ndarray) -> Any:  # (M, M), (M,), (M,)
        """A - v wᵀ, in the memory of A."""
        return A.addr_(self._there(v), self._there(w), alpha=-1)

    def spectrum(self, A: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # (M,), (M, M), (M,)
        """λ, ascending, Q and ‖Aq - λq‖ of A = Q Λ Qᵀ, of which the upper triangle is there."""
        self.room.require(2 * 8 * self.size**2, f"{self.size:,} eigenvectors", _REMEDY)
        values, Q = torch.linalg.eigh(A, UPLO="U")
        A = A.triu() + A.triu(1).mT
        residuals = torch.linalg.vector_norm(A @ Q - Q * values, dim=0)
        return self.host(values), self.host(Q), self.host(residuals)

    def lower(self, A: Any, most: int) -> np.ndarray:  # (r, r)
        """As `Basis.lower`, of a square whose upper triangle is there."""
        return self.host(A[:most, :most]).T

    def first(self, count: int) -> DeviceBasis:
        """The basis of the first landmarks alone."""
        return DeviceBasis(self.triangle.T[:count, :count].contiguous(), self.room)

    @staticmethod
    def host(tensor: Any) -> np.ndarray:
        """A tensor as NumPy's array."""
        return np.asarray(tensor.cpu().numpy())

    @property
    def _height(self) -> int:
        return max(1, self.room.work // (4 * 8 * self.size))

    def _there(self, array: np.ndarray) -> Any:
        given = np.ascontiguousarray(array, dtype=np.float64)
        return torch.from_numpy(given if given.flags.writeable else given.copy()).to(self.room.where)


def square_memory(M: int) -> int:
    """Bytes of a square, of its copy with the intercept, and of the factor of the one before.

    Who makes squares takes them from the room first: nothing else has them then.
    """
    return 3 * 8 * (M + 1) ** 2


def own_matrix(gram: Gram, room: DeviceRoom) -> Any:  # (M, M)
    """K_MM in float64, of a Gram of the landmarks in that precision; its upper triangle is all there."""
    M = gram.shape[0]
    room.take(8 * M * M, f"the matrix of {M:,} landmarks", _REMEDY)
    K = torch.empty((M, M), dtype=torch.float64, device=room.where)
    backend: Any = gram._backend
    with backend.session():
        for i in cut(M, _ROWS):
            backend.store(Tile(gram._x, gram._y, i, (0, M)), K[slice(*i)])
    if not bool(torch.isfinite(K.sum())):
        raise InputError("k(z, z') is not finite for some landmarks: scale the data, or check the kernel")
    return K


def independent_on_device(gram: Gram, precision: Any, room: DeviceRoom) -> tuple[np.ndarray, DeviceBasis]:
    """Which landmarks to keep, and the basis of these: as `mercer.solvers.landmarks.basis.independent`.

    Where no pivot of the factor in the given order is rounding, all landmarks are kept in that order. Else
    pivots are chosen, the largest of what is left, some hundred at a time.

    >>> from mercer import Gaussian, config
    >>> from mercer.gram.backends.torch import where_of
    >>> with config(device="cpu:0", device_memory="1MiB"):
    ...     gram = Gram(Gaussian(sigma=1.0), np.array([[0.0], [0.0], [2.0]]))
    ...     kept, basis = independent_on_device(gram, np.float64, DeviceRoom(where_of("cpu")))
    >>> len(kept), basis.size
    (2, 2)
    """
    K = own_matrix(gram, room)
    M, largest = len(K), float(K.diagonal().max())
    if not largest > 0:
        raise InputError(
            "k(z, z) is 0 for every landmark, and f = 0 the only function: pass other landmarks, or another "
            "kernel"
        )
    units = max(M * np.finfo(np.float64).eps, _UNITS * float(np.finfo(precision).eps))
    try:
        T = factorise(K)
        if float(T.diagonal().min()) ** 2 > units * largest:
            return np.arange(M), DeviceBasis(T, room)
    except LinAlgError:
        pass
    room.give(8 * M * M)
    del K
    room.require(3 * 8 * M * M, "the matrix of the landmarks, with its factor and a copy", _REMEDY)
    kept, T = _pivoted(own_matrix(gram, room), units * largest)
    return kept, DeviceBasis(T, room)


def _pivoted(K: Any, least: float) -> tuple[np.ndarray, Any]:
    """Pivots of K that are no smaller than ``least``, and T of these; K holds what they leave of it."""
    M = len(K)
    T, rank, kept = torch.zeros_like(K), 0, np.empty(0, np.int64)
    is_left = np.ones(M, bool)
    while is_left.any():
        left = np.where(is_left, K.diagonal().cpu().numpy(), -math.inf)
        panel = np.argsort(-left, kind="stable")[:_PANEL]
        panel = panel[left[panel] > max(least, _LEAST_PIVOT * left[panel[0]])]
        if not len(panel):
            break
        there = torch.from_numpy(panel).to(K.device)
        block = K[there][:, there].cpu().numpy()
        bar = max(least, _LEAST_PIVOT * float(block.diagonal().max()))
        factor, pivots, count, _ = dpstrf(np.array(block, order="F"), tol=bar, lower=0)
        order = pivots[:count].astype(np.int64) - 1
        chosen, upper = panel[order], torch.from_numpy(np.triu(factor[:count, :count])).to(K.device)
        rows = torch.linalg.solve_triangular(upper.mT, K[torch.from_numpy(chosen).to(K.device)], upper=False)
        T[rank : rank + count] = rows
        for a, b in cut(M, _STRIP):
            K[:, a:b].addmm_(rows.mT, rows[:, a:b], alpha=-1)
        kept, is_left[chosen] = np.concatenate([kept, chosen]), False
        rank += count
    out = torch.from_numpy(np.flatnonzero(is_left)).to(K.device)
    if len(out) and float(K[out][:, out].abs().max()) > 100 * least:
        raise InputError(
            "the kernel matrix of the landmarks is not positive semi-definite: it has a negative eigenvalue "
            "beyond rounding; take a positive definite kernel (mercer.certify tells)"
        )
    return kept, T[:rank][:, torch.from_numpy(kept).to(K.device)].triu_().contiguous()
