r"""A kernel matrix of low rank, K ≈ K̂ = FFᵀ with F of n × r: stored, multiplied and solved with in n·r.

    pivoted     F from r rows of K, which are chosen at random by what is left of k(x, x)
    landmarks   K̂ = K(X, Z) K(Z, Z)⁻¹ K(Z, X) for given points Z (Nyström): F = K(X, Z) L⁻ᵀ, K(Z, Z) = LLᵀ.
                Of Z those that depend on others, to rounding, are left out.

Either way K - K̂ is positive semidefinite, and τ = tr(K - K̂) bounds its largest eigenvalue.

Factorisations are the business of `mercer.solvers`, which this file imports inside of functions: solvers know
nothing of Grams, and here is the one Gram that is made by a solver.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer.data.types import Points, Seed
from mercer.errors import InputError
from mercer.gram.gram import Gram, _positions
from mercer.gram.landmark_map import LandmarkMap
from mercer.kernels.base import Kernel
from mercer.runtime.config import require_memory
from mercer.runtime.threads import by_our_threads, run

#: Rows of F that are converted to float64 at a time.
_CONVERTED = 4096
#: Solutions of a system that are refined, at most: each is nearer by a factor of some σ/ε‖K̂‖.
_REFINEMENTS = 5
#: Columns of FᵀF for each thread.
_SQUARED = 128


class LowRank:
    r"""K̂ = FFᵀ with the verbs of a :class:`Gram`, and (K̂ + σI)⁻¹.

    Parameters
    ----------
    factor : (n, r) F, of float64 or float32
    tau : τ = tr(K - K̂) of the matrix that K̂ stands for, or a bound of it

    Attributes
    ----------
    factor, tau, shape, dtype, rank
    pivots : (r,) the points whose rows of K made it, or None

    >>> from mercer import Gaussian
    >>> X = np.linspace(0, 1, 100)[:, None]
    >>> K = LowRank.pivoted(Gaussian(sigma=0.5), X, 10)
    >>> K.shape, K.rank, K.tau < 1e-6
    ((100, 100), 10, True)
    >>> x = K.solve(np.ones(100), shift=0.1)
    >>> bool(np.abs(K @ x + 0.1 * x - 1).max() < 1e-9)
    True
    """

    __array_ufunc__ = None  # V @ K must not be NumPy's

    def __init__(self, factor: np.ndarray, tau: float = 0.0, *, pivots: np.ndarray | None = None) -> None:
        factor = np.asarray(factor)
        if factor.ndim != 2 or factor.dtype not in (np.float64, np.float32):
            raise InputError(
                f"factor must be an n × r array of float64 or float32, got {factor.dtype} of shape "
                f"{factor.shape}"
            )
        if not tau >= 0:
            raise InputError(f"tau is a trace of a positive semidefinite matrix, at least 0, got {tau!r}")
        self.factor = factor
        self.tau = float(tau)
        self.pivots = pivots
        self.shape = (len(factor), len(factor))
        self.dtype = factor.dtype
        self._squared: np.ndarray | None = None
        self._shifted: tuple[float, np.ndarray] | None = None

    @classmethod
    def pivoted(cls, kernel: Kernel, X: Points, rank: int, random_state: Seed = None) -> LowRank:
        """K of the points X by randomly pivoted Cholesky; of a lower rank where nothing is left of K.

        >>> from mercer import Linear
        >>> LowRank.pivoted(Linear(), np.ones((5, 2)), 3).rank
        1
        """
        from mercer.solvers.landmarks.pivots import pivoted_cholesky

        found = pivoted_cholesky(Gram(kernel, X, cache=0), rank, random_state=random_state)
        return cls(found.factor, found.tau, pivots=found.pivots)

    @classmethod
    def landmarks(cls, kernel: Kernel, X: Points, Z: Points) -> LowRank:
        """K of the points X by the landmarks Z (Nyström), which may be any points, also twice the same.

        >>> from mercer import Gaussian
        >>> X = np.linspace(0, 1, 100)[:, None]
        >>> LowRank.landmarks(Gaussian(sigma=0.5), X, [[0.0], [0.5], [0.5], [1.0]]).rank
        3
        """
        phi, _ = LandmarkMap.of(Gram(kernel, X, cache=0).kernel, Z)
        factor = phi(X)
        return cls(factor, float(phi.residual(X, factor).sum()))

    @property
    def rank(self) -> int:
        """r, the number of columns of F."""
        return int(self.factor.shape[1])

    @property
    def is_symmetric(self) -> bool:
        """Always: one set of points is compared with itself."""
        return True

    @property
    def T(self) -> LowRank:
        """The transpose, which is the same."""
        return self

    def diag(self) -> np.ndarray:  # (n,)
        """The values k̂(xᵢ, xᵢ) = Σ_c F_ic²."""
        return np.einsum("ij,ij->i", self.factor, self.factor, dtype=np.float64).astype(self.dtype)

    def dense(self, out: np.ndarray | None = None) -> np.ndarray:  # (n, n)
        """The whole matrix, if it fits the memory budget, or into an array that is already there."""
        n = len(self.factor)
        if out is None:
            require_memory(
                n * n * self.dtype.itemsize,
                f"a dense {n} × {n} matrix of {self.dtype.name}",
                "use it lazily (K @ V, K.rows, K.block, K.solve)",
            )
            out = np.empty((n, n), self.dtype)
        out[:] = self.rows(slice(None))
        return out

    def rows(self, index: Any) -> np.ndarray:  # (len(index), n)
        """The rows of some points."""
        return self.block(index, slice(None))

    @by_our_threads
    def block(self, i: Any, j: Any) -> np.ndarray:  # (len(i), len(j))
        """The values of some points against some others."""
        from mercer.solvers.linear.strips import multiply

        n = len(self.factor)
        left = self.factor[_positions(i, n, "row")]
        # A slice is a view, which takes no memory.
        right = self.factor[j] if isinstance(j, slice) else self.factor[_positions(j, n, "column")]
        require_memory(
            len(left) * len(right) * self.dtype.itemsize, "a block of values", "ask for less at a time"
        )
        return multiply(left, right.T)

    @by_our_threads
    def __matmul__(self, V: Any) -> np.ndarray:  # (n,) or (n, p)
        """K̂V = F(FᵀV)."""
        from mercer.solvers.linear.strips import multiply

        V = self._right_side(V, "K̂ multiplies").astype(self.dtype, copy=False)
        return multiply(self.factor, multiply(self.factor.T, V))

    @by_our_threads
    def solve(self, rhs: Any, shift: float) -> np.ndarray:  # (n,) or (n, p), float64
        r"""(K̂ + σI)⁻¹ B for σ = ``shift`` > 0, in float64 whatever the precision of F.

        With LLᵀ = σI + FᵀF it is (B - F (LLᵀ)⁻¹ FᵀB)/σ: no basis has to be orthonormal. The difference may
        lose digits, some ε‖K̂‖/σ of what it is; refinement gives them back, step by step as long as the
        residual falls. L is kept for the next right side.

        >>> LowRank(np.array([[1.0], [1.0]])).solve([3.0, 0.0], shift=1.0)
        array([ 2., -1.])
        """
        B = self._right_side(rhs, "(K̂ + σI)⁻¹ multiplies").astype(np.float64, copy=False)
        if not (np.isfinite(shift) and shift > 0):
            raise InputError(f"shift must be positive and finite, got {shift!r}: K̂ itself has no inverse")
        L = self._factor(float(shift))
        x, left, last = np.zeros(B.shape), B, np.inf
        enough = float(np.finfo(np.float64).eps * np.linalg.norm(B))
        for _ in range(_REFINEMENTS):
            refined = x + self._apply(L, left, shift)
            left = B - self._expand(self._project(refined)) - shift * refined
            size = float(np.linalg.norm(left))
            if not size < 0.5 * last:
                break
            x, last = refined, size
            if size <= enough:
                break
        return x

    def __repr__(self) -> str:
        n, r = self.factor.shape
        return f"LowRank({n} × {n}, rank {r}, {self.dtype.name}, tau={self.tau:.3g})"

    # --- in float64 ------------------------------------------------------------------------------------

    def _right_side(self, V: Any, what: str) -> np.ndarray:
        V = np.asarray(V)
        n = len(self.factor)
        if V.ndim not in (1, 2) or len(V) != n or V.dtype.kind not in "fiub":
            raise InputError(f"{what} real vectors of length {n}, got {V.dtype} of shape {V.shape}")
        return V

    def _apply(self, L: np.ndarray, B: np.ndarray, shift: float) -> np.ndarray:
        """(B - F (LLᵀ)⁻¹ FᵀB)/σ."""
        from mercer.solvers.linear.cholesky import solve

        return np.asarray((B - self._expand(solve(L, self._project(B)))) / shift)

    def _factor(self, shift: float) -> np.ndarray:  # (r, r)
        """L of the shift, from the last time where it was the same."""
        from scipy.linalg import LinAlgError

        from mercer.solvers.linear.cholesky import factorise

        if self._shifted is None or self._shifted[0] != shift:
            if self._squared is None:
                self._squared = self._square()
            M = self._squared.copy(order="F")
            M.flat[:: len(M) + 1] += shift
            try:
                self._shifted = shift, factorise(M)
            except LinAlgError:
                smallest = float(np.finfo(np.float64).eps) * float(np.trace(self._squared))
                raise InputError(
                    f"shift={shift:.3g} is lost in the rounding of K̂: take at least {smallest:.2g}"
                ) from None
        return self._shifted[1]

    def _square(self) -> np.ndarray:  # (r, r): the lower triangle
        """FᵀF."""
        r = self.rank
        require_memory(16 * r * r, f"FᵀF and its factor, of {r} × {r}", "take a lower rank")
        out = np.zeros((r, r), order="F")
        for _, F in self._blocks():

            def task(start: int, F: np.ndarray = F) -> None:
                out[start:, start : start + _SQUARED] += F[:, start:].T @ F[:, start : start + _SQUARED]

            run(task, range(0, r, _SQUARED))
        return out

    def _project(self, V: np.ndarray) -> np.ndarray:  # (r,) or (r, p)
        """FᵀV."""
        from mercer.solvers.linear.strips import multiply

        return np.asarray(sum((multiply(F.T, V[rows]) for rows, F in self._blocks()), start=np.zeros(())))

    def _expand(self, C: np.ndarray) -> np.ndarray:  # (n,) or (n, p)
        """FC."""
        from mercer.solvers.linear.strips import multiply

        out = np.empty((len(self.factor), *C.shape[1:]))
        for rows, F in self._blocks():
            out[rows] = multiply(F, C)
        return out

    def _blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """F in float64: as it is, or converted some rows at a time."""
        n = len(self.factor)
        step = max(n, 1) if self.dtype == np.float64 else _CONVERTED
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            yield rows, self.factor[rows].astype(np.float64, copy=False)
