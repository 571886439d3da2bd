r"""An orthonormal basis of the functions Σⱼ βⱼ k(zⱼ, ·): K_MM = TᵀT, w = Tβ, ‖f‖² = ‖w‖².

T is the Cholesky factor of the landmarks' own matrix, with pivots: landmarks that are combinations of others,
up to rounding, are left out. What is left spans the same functions as far as the numbers can tell, duplicates
do no harm, and no number has to be added to a diagonal.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import blas, cholesky, eigh, solve_triangular
from scipy.linalg.lapack import dpstrf, dtrtri

from mercer.errors import InputError
from mercer.runtime.threads import large_lapack, run
from mercer.solvers.linear.blas import solve_triangle
from mercer.solvers.linear.cholesky import factorise, solve

#: A pivot below so many units of the precision of K, relative to the largest k(z, z), is rounding.
_UNITS = 16.0
#: Random vectors and products with each that tell a norm to within a few percent, which is enough.
_VECTORS, _POWERS = 8, 8
#: Columns that a thread transforms at a time.
_STRIP = 128


class Basis:
    """T, upper triangular, of landmarks that are independent.

    >>> K = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> basis = Basis(np.linalg.cholesky(K).T)
    >>> w = np.array([[1.0], [2.0]])
    >>> beta = basis.coefficients(w)
    >>> float(np.round(beta.T @ K @ beta, 12)[0, 0]), float((w * w).sum())
    (5.0, 5.0)
    """

    def __init__(self, T: np.ndarray) -> None:
        self.T = T
        self.size = len(T)

    def __getstate__(self) -> dict[str, Any]:
        return {"T": self.T, "size": self.size}  # What follows from T is made where it is needed.

    def weights(self, coef: np.ndarray) -> np.ndarray:  # (M, m)
        """w = T β."""
        return np.asarray(self.T @ coef)

    def coefficients(self, w: np.ndarray) -> np.ndarray:  # (M, m)
        """β = T⁻¹ w."""
        return solve_triangular(self.T, w, check_finite=False)

    def features(self, g: np.ndarray) -> np.ndarray:  # (M, m)
        """T⁻ᵀ g: what a sum Σᵢ gᵢ k(Z, xᵢ) is in the features."""
        return solve_triangular(self.T, g, trans=1, check_finite=False)

    def transform(self, columns: np.ndarray) -> None:  # (M, rows), in Fortran's order
        """T⁻ᵀ k(Z, x) in the place of each column k(Z, x)."""
        L = self._lower if columns.dtype == np.float64 else self._lower_single
        solve_triangle(L, columns)

    def squared(self, G: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # (M, M), (M,)
        """T⁻ᵀ G T⁻¹ of a symmetric G whose lower triangle is there, and T⁻ᵀ g."""
        G = np.asfortranarray(np.tril(G) + np.tril(G, -1).T)
        for _ in range(2):
            run(self.transform, [G[:, k : k + _STRIP] for k in range(0, self.size, _STRIP)])
            G = np.asfortranarray(G.T)
        return G, self.features(g)

    # --- squares -------------------------------------------------------------------------------------

    def square(
        self, K: Any, weight: np.ndarray, slack: float = 0.0
    ) -> tuple[np.ndarray, np.ndarray]:  # (M, M), (M,)
        """The lower triangle of ΦᵀWΦ of the rows of K, and ΦᵀW 1.

        Features are multiplied, and not kernel values: KᵀWK would lose the digits that T⁻¹ asks for. Where
        they are lost to less than ``slack``, T⁻ᵀ(KᵀWK)T⁻¹ takes half the time.
        """
        lost = float(np.finfo(K.dtype).eps) * float(weight.sum()) * self.amplification
        if lost <= slack:
            return self.squared(*K.square(weight))
        return K.square(weight, transform=self.transform)

    def bordered(
        self, total: np.ndarray, first: np.ndarray, sum_: float
    ) -> np.ndarray:  # (M, M), (M,) → (M + 1, M + 1)
        """A square with a last row of the intercept."""
        total = np.pad(total, (0, 1))
        total[-1, :-1], total[-1, -1] = first, sum_
        return total

    def inverse(
        self, square: np.ndarray, added: np.ndarray, share: float
    ) -> Callable[[np.ndarray], np.ndarray]:  # (M + 1, M + 1), (M + 1,)
        """V ↦ (square + diag(added) + share · its diagonal)⁻¹ V; the square is overwritten."""
        square = np.asfortranarray(square)
        square[np.diag_indices(len(square))] += added + share * square.diagonal()
        factor = factorise(square)
        return lambda V: solve(factor, V)

    def less(self, A: np.ndarray, v: np.ndarray, w: np.ndarray) -> np.ndarray:  # (M, M), (M,), (M,)
        """A - v wᵀ, in the memory of A where that is as LAPACK likes it."""
        A -= np.outer(v, w)
        return np.asfortranarray(A)

    def spectrum(self, A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # (M,), (M, M), (M,)
        """λ, ascending, Q and ‖Aq - λq‖ of A = Q Λ Qᵀ, of which the lower triangle is there."""
        with large_lapack(len(A)):
            values, Q = eigh(A, lower=True, check_finite=False)
        image = blas.dsymm(1.0, A, np.asfortranarray(Q), lower=1)
        return values, Q, np.linalg.norm(image - Q * values, axis=0)

    def lower(self, A: np.ndarray, most: int) -> np.ndarray:  # (r, r)
        """The lower triangle of the first r ≤ ``most`` rows and columns of a square."""
        return A[:most, :most]

    def host(self, vector: np.ndarray) -> np.ndarray:
        """What a square came with, as NumPy's: it is."""
        return vector

    @cached_property
    def inverse_norm(self) -> float:
        """‖T⁻¹‖ in the norm of Frobenius, which bounds the spectral one."""
        return float(np.linalg.norm(np.triu(dtrtri(self.T, lower=0)[0])))

    @cached_property
    def amplification(self) -> float:
        """‖K_MM‖²_F ‖T⁻¹‖² / M: an error of KᵀK, relative to it, as one of ΦᵀΦ, per row; about.

        Products with a few random vectors are enough for either norm.
        """
        V = np.random.default_rng(0).choice([-1.0, 1.0], (self.size, _VECTORS))
        size = float(np.square(self.T.T @ (self.T @ V)).sum()) / _VECTORS
        longest = 0.0
        for _ in range(_POWERS):
            V /= np.linalg.norm(V, axis=0)
            V = self.coefficients(self.features(V))
            longest = float(np.linalg.norm(V, axis=0).max())
        return size * longest / self.size

    @cached_property
    def _lower(self) -> np.ndarray:
        return np.asfortranarray(self.T.T)

    @cached_property
    def _lower_single(self) -> np.ndarray:
        return np.asfortranarray(self.T.T, dtype=np.float32)


def independent(K: np.ndarray, precision: Any) -> tuple[np.ndarray, Basis]:
    """Which landmarks to keep, in the order of their pivots, and T of these.

    ``K`` is (M, M) in float64; ``precision`` is the type in which K(X, Z) will be computed.

    >>> kept, basis = independent(np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 4.0]]), np.float64)
    >>> kept, basis.T
    (array([2, 1]), array([[2., 0.],
           [0., 1.]]))
    """
    largest = float(K.diagonal().max(initial=0.0))
    if not largest > 0:
        raise InputError(
            "k(z, z) is 0 for every landmark, and f = 0 the only function: pass other landmarks, or another "
            "kernel"
        )
    units = max(len(K) * np.finfo(np.float64).eps, _UNITS * float(np.finfo(precision).eps))
    with large_lapack(len(K)):
        factor, pivots, rank, _ = dpstrf(np.array(K, order="F"), tol=units * largest, lower=0)
    kept = pivots[:rank].astype(np.int64) - 1
    T = np.triu(factor[:rank, :rank])
    left_out = np.setdiff1d(np.arange(len(K)), kept)
    explained = solve_triangular(T, K[np.ix_(kept, left_out)], trans=1)
    rest = K[np.ix_(left_out, left_out)] - explained.T @ explained
    if (np.abs(rest) > 100 * units * largest).any():
        raise InputError(
            "the kernel matrix of the landmarks is not positive semi-definite: it has a negative eigenvalue "
            "beyond rounding; take a positive definite kernel (mercer.certify tells)"
        )
    return kept, Basis(np.asfortranarray(T))


def in_order(K: np.ndarray) -> Basis:  # (M, M)
    """The basis of all landmarks, in the order they have; LinAlgError where they are dependent, to rounding.

    >>> in_order(np.array([[4.0, 2.0], [2.0, 2.0]])).T
    array([[2., 1.],
           [0., 1.]])
    """
    return Basis(cholesky(K, check_finite=False))
