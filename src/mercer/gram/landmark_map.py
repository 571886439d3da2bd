r"""φ with ⟨φ(x), φ(x')⟩ = k̂(x, x'), the kernel as far as landmarks z₁ … z_r know it (Nyström).

With K(Z, Z) = LLᵀ and k(Z, x) = (k(z₁, x), …, k(z_r, x)),

    φ(x) = L⁻¹ k(Z, x),     k̂(x, x') = k(x, Z) K(Z, Z)⁻¹ k(Z, x'),     k̂(z, x) = k(z, x) for every landmark z.

L is made by pivots: a landmark whose k(z, ·) depends on those of others, to rounding, is left out and changes
nothing. K(Z, Z) and L are float64; values k(Z, x) may be float32, and then what is nearly dependent is left
out as well, since L⁻¹ would enlarge their rounding. The factorisation is a solver's, and imported inside of
functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mercer.data import points as data
from mercer.data.types import Points
from mercer.gram.gram import Gram
from mercer.kernels.base import Kernel
from mercer.runtime.config import settings, within
from mercer.runtime.threads import by_our_threads, run

#: The share of k(z, z) that must be left of a landmark after the others, by the precision of k(Z, x): of an
#: error η in k(Z, x), η/√share is in φ(x). It is η = 6e-8 in float32, and φ then right to 2e-5.
_INDEPENDENT = {"float64": 1e-13, "float32": 1e-5}
#: Values k(Z, x) that are computed together where no table of features is kept: 32 MB in float64.
_VALUES_AT_ONCE = 2**22


@dataclass(frozen=True, eq=False)
class LandmarkMap:
    """φ of a resolved kernel.

    >>> from mercer import Gaussian
    >>> k, X = Gaussian(sigma=1.0), np.array([[0.0], [1.0], [2.0]])
    >>> phi, kept = LandmarkMap.of(k, X[[0, 2, 0]])
    >>> len(kept), phi(X).shape
    (2, (3, 2))
    >>> bool(np.allclose(phi(X[[0]]) @ phi(X).T, k(X[[0]], X)))  # a landmark is compared as it should
    True
    """

    kernel: Kernel
    #: z₁ … z_r
    points: Points
    #: (r, r) L, lower triangular, float64, in Fortran order
    triangle: np.ndarray

    @classmethod
    def of(cls, kernel: Kernel, Z: Points) -> tuple[LandmarkMap, np.ndarray]:
        """φ of the landmarks Z, and which of them it keeps."""
        from mercer.solvers.landmarks.pivots import pivoted_cholesky

        least = _INDEPENDENT[settings().dtype]
        with within(dtype="float64"):
            K = Gram(kernel, Z, cache=0)
            diagonal = K.diag()
            # What is left counts relative to k(z, z): a landmark is not lost beside much larger ones.
            weight = np.divide(1.0, diagonal, out=np.zeros(len(diagonal)), where=diagonal > 0)
            found = pivoted_cholesky(K, len(diagonal), weight=weight, least=least)
        triangle = np.asfortranarray(np.tril(found.factor[found.pivots]))
        return cls(kernel, data.take(Z, found.pivots), triangle), found.pivots

    def inverse(self) -> np.ndarray:  # (r, r)
        """L⁻¹, so that φ(x) = L⁻¹ k(Z, x) is a product."""
        from mercer.solvers.linear.blas import invert_triangle

        inverse = self.triangle.copy(order="F")
        if inverse.size:
            invert_triangle(inverse)
        return inverse

    @by_our_threads
    def __call__(self, X: Points) -> np.ndarray:  # (n, r)
        """φ(x) of every point, in the precision of ``mercer.config``."""
        from mercer.solvers.linear.blas import solve_triangle
        from mercer.solvers.linear.strips import strips

        features = Gram(self.kernel, X, self.points, cache=0).dense()

        def task(part: slice) -> None:
            values = features[part].astype(np.float64, copy=False)
            solve_triangle(self.triangle, values.T)
            if values.dtype != features.dtype:
                features[part] = values

        run(task, strips(len(features), len(self.triangle), len(self.triangle)))
        return features

    def residual(self, X: Points, features: np.ndarray | None = None) -> np.ndarray:  # (n,)
        """k(x, x) - k̂(x, x) = k(x, x) - ‖φ(x)‖² ≥ 0 of every point; rounding below 0 counts as 0.

        Without ``features`` = φ(X) these are computed, some rows at a time.
        """
        diagonal = np.asarray(Gram(self.kernel, X, cache=0).diag(), dtype=np.float64)
        for rows in self._parts(len(diagonal)) if features is None else [slice(None)]:
            phi = self(data.take(X, rows)) if features is None else features
            diagonal[rows] -= np.einsum("ij,ij->i", phi, phi, dtype=np.float64)
        return np.maximum(diagonal, 0.0)

    def _parts(self, n: int) -> Iterator[slice]:
        step = max(1, _VALUES_AT_ONCE // max(len(self.triangle), 1))
        for start in range(0, n, step):
            yield slice(start, min(start + step, n))
