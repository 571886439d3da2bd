r"""A symmetric matrix as K = Q B Qᵀ, B banded: then (K + αI)⁻¹ for every α at the cost of n² each.

Given     K, symmetric, n × n; the width w of the band
Reduce    panel by panel: the QR factorisation of w columns below the band gives a reflection I - V T Vᵀ,
          applied from both sides as K -= V Wᵀ + W Vᵀ. All work is matrix products; no eigenvalue is computed.
For an α  B + αI = L Lᵀ, block by block, and with the rows qᵢ of Q
              (K + αI)⁻¹ Y = Q L⁻ᵀ L⁻¹ Qᵀ Y,     [(K + αI)⁻¹]ᵢᵢ = ‖L⁻¹ qᵢ‖²,     log|K + αI| = 2 Σ log Lᵢᵢ
Cost      8/3 n³ once, 2 n² w for each α; memory n², K's own, and 20 n w

An eigendecomposition gives the same from 9 n³ and more, a third of it bound by memory. The reduction:
Bischof, Lang and Sun, A framework for symmetric band reduction, ACM Trans. Math. Software 26 (2000), 581-601.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, lapack, solve_triangular

from mercer.runtime.threads import run
from mercer.solvers.linear.blas import (
    add_product,
    multiply_triangle,
    product,
    subtract_product,
    subtract_rank_two,
    symmetric_product,
)
from mercer.solvers.linear.strips import strips

_WIDTH = 64
_TOGETHER = 8  # penalties worked on at a time: their factors are held
#: The rows of Q of a task: two blocks of them are two megabytes, and a call from Python is a fifth of a
#: millisecond's work. With shorter calls the threads wait for the interpreter more than they work.
_ROWS = 2048

#: where a panel's reflection begins, and its τ and T
Factor = tuple[int, np.ndarray, np.ndarray]
#: L: the inverses of its blocks on the diagonal, and the blocks below it
Blocks = tuple[list[np.ndarray], list[np.ndarray]]


class BandForm:
    """K = Q B Qᵀ for an n × n symmetric array, which is overwritten with Q.

    >>> K = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]])
    >>> solution, diagonal = BandForm(K.copy(), width=1).solve(1.0, np.eye(3))
    >>> np.allclose(solution, np.linalg.inv(K + np.eye(3))), np.allclose(diagonal, np.diag(solution))
    (True, True)
    """

    def __init__(self, K: np.ndarray, width: int = _WIDTH) -> None:
        n = K.shape[0]
        self.n = n
        self.width = min(width, max(1, n - 1))
        A = K.T if K.flags.c_contiguous else K  # the same matrix, whose columns are contiguous
        assert A.flags.f_contiguous
        self._bounds = [*range(0, n, self.width), n]
        factors = _reduce(A, self.width)
        self._diagonal, self._below = self._take_band(A)
        size = max(float(np.abs(block).max()) for block in self._diagonal)
        self._rounding = n * float(np.finfo(K.dtype).eps) * size
        self.Q = _form(A, self.width, factors)  # (n, n), in the memory of K

    def _take_band(self, A: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """The blocks of B on the diagonal, and those below it."""
        ranges = [slice(start, stop) for start, stop in pairwise(self._bounds)]
        diagonal = [np.tril(A[i, i]) + np.tril(A[i, i], -1).T for i in ranges]
        # what lies below the triangle of such a block is V, not B
        below = [np.triu(A[i, j]) for j, i in pairwise(ranges)]
        return diagonal, below

    def solve(self, alpha: float, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # (n, t), (n,)
        """(K + αI)⁻¹ Y and the diagonal of (K + αI)⁻¹; LinAlgError where K + αI is not positive definite."""
        (point,) = self.path([alpha], Y)
        if point is None:
            raise LinAlgError("K + αI is not positive definite")
        return point[:2]

    def path(
        self, alphas: Iterable[float], Y: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray, float] | None]:
        """(K + αI)⁻¹ Y, the diagonal of (K + αI)⁻¹ and log|K + αI| for each α.

        None where K shows not to be positive.
        """
        right = product(self.Q, np.asfortranarray(Y), transpose=True)
        alphas = [float(alpha) for alpha in alphas]
        for start in range(0, len(alphas), _TOGETHER):
            # The calls of a factor are so short that threads would only wait for the interpreter.
            factors = [self._factor(alpha) for alpha in alphas[start : start + _TOGETHER]]
            found = [factor for factor in factors if factor is not None]
            logdets = map(_log_determinant, found)
            solved = iter(zip(self._solutions(found, right), self._diagonals(found), logdets, strict=True))
            for factor in factors:
                yield None if factor is None else next(solved)

    def _factor(self, alpha: float) -> Blocks | None:
        """B + αI = L Lᵀ: the inverses of the blocks of L on its diagonal, and the blocks below it."""
        inverses: list[np.ndarray] = []
        lower: list[np.ndarray] = []
        potrf, trtri = lapack.get_lapack_funcs(("potrf", "trtri"), (self.Q,))
        for k, block in enumerate(self._diagonal):
            block = block + alpha * np.eye(len(block), dtype=block.dtype)
            if k:
                lower.append(np.asfortranarray(self._below[k - 1] @ inverses[-1].T))
                block -= lower[-1] @ lower[-1].T
            factor, failed = potrf(block, lower=True)
            if failed:
                return None
            # If K is positive semi-definite, no pivot is smaller than α.
            if not float(factor.diagonal().min()) ** 2 >= max(alpha - self._rounding, self._rounding):
                return None
            inverses.append(trtri(factor, lower=True)[0])
        return inverses, lower

    def _solve(
        self, inverses: list[np.ndarray], lower: list[np.ndarray], right: np.ndarray
    ) -> np.ndarray:  # (n, t)
        """L⁻ᵀ L⁻¹ of the right-hand side, block by block, down and up."""
        parts = np.split(right, self._bounds[1:-1])
        for k, inverse in enumerate(inverses):
            parts[k] = inverse @ (parts[k] - lower[k - 1] @ parts[k - 1] if k else parts[k])
        for k in reversed(range(len(inverses))):
            above = parts[k] - lower[k].T @ parts[k + 1] if k < len(lower) else parts[k]
            parts[k] = inverses[k].T @ above
        return np.asfortranarray(np.concatenate(parts))

    def _solutions(self, factors: list[Blocks], right: np.ndarray) -> list[np.ndarray]:  # (n, t) each
        """Q L⁻ᵀ L⁻¹ of the right-hand side, for each L."""
        out: list[Any] = [None] * len(factors)

        def task(i: int) -> None:
            out[i] = product(self.Q, self._solve(*factors[i], right))

        run(task, range(len(factors)))
        return out

    def _diagonals(self, factors: list[Blocks]) -> np.ndarray:  # (factors, n)
        """‖L⁻¹qᵢ‖² for each L: the squared rows of Q L⁻ᵀ, some rows and a block of columns at a time."""
        out = np.zeros((len(factors), self.n), self.Q.dtype)

        def task(part: tuple[slice, int]) -> None:
            rows, which = part
            Q, squares, (inverses, lower) = self.Q[rows], out[which, rows], factors[which]
            # These are the rows of this block and the last one, which stay in the cache.
            room = [np.empty((len(Q), self.width), Q.dtype, order="F") for _ in range(2)]
            for k, (start, stop) in enumerate(pairwise(self._bounds)):
                tall, last = room[k % 2][:, : stop - start], room[1 - k % 2]
                if k == 0:
                    tall[:] = Q[:, start:stop]
                else:
                    last = _times_lower(last, lower[k - 1])
                    np.subtract(Q[:, start:stop], last, out=tall)
                multiply_triangle(tall, inverses[k], upper=False)
                squares += np.einsum("ij,ij->i", tall, tall)

        cuts = np.linspace(0, self.n, math.ceil(self.n / _ROWS) + 1).astype(int)
        ranges = [slice(start, stop) for start, stop in pairwise(cuts)]
        run(task, [(rows, which) for rows in ranges for which in range(len(factors))])
        return out


def _log_determinant(factor: Blocks) -> float:
    """log|LLᵀ|."""
    return -2.0 * sum(float(np.log(inverse.diagonal().astype(np.float64)).sum()) for inverse in factor[0])


def _times_lower(A: np.ndarray, E: np.ndarray) -> np.ndarray:
    """A Eᵀ, in the memory of A; E is upper triangular, and has fewer rows at the end of the band."""
    if E.shape[0] < E.shape[1]:
        return product(A, np.asfortranarray(E.T))
    multiply_triangle(A, E, upper=True)
    return A


def _reduce(A: np.ndarray, width: int) -> list[Factor]:
    """Reduce to band form in place, in the lower triangle; V of each panel stays below the band."""
    n = A.shape[0]
    (geqrf,) = lapack.get_lapack_funcs(("geqrf",), (A,))
    factors = []
    for start in range(width, n - 1, width):
        panel = np.asfortranarray(A[start:, start - width : start])
        panel, tau, _, _ = geqrf(panel, lwork=64 * width, overwrite_a=True)
        A[start:, start - width : start] = panel
        V = _reflector(panel, tau)
        T = _triangle(V, tau)
        trailing = A[start:, start:]
        W = product(_symmetric_product(trailing, V), T)
        add_product(W, -0.5, V, product(T, product(V, W, transpose=True), transpose=True))
        _subtract_rank_two(trailing, V, W)
        factors.append((start, tau, T))
    return factors


def _symmetric_product(A: np.ndarray, V: np.ndarray) -> np.ndarray:  # (n, n), (n, k) → (n, k)
    """A V from the lower triangle of A: a task has a range of rows, and the columns that mirror them."""
    n = len(A)
    out = np.empty(V.shape, A.dtype, order="F")

    def task(rows: slice) -> None:
        part = symmetric_product(A[rows, rows], V[rows])
        add_product(part, 1.0, A[rows, : rows.start], V[: rows.start])
        add_product(part, 1.0, A[rows.stop :, rows], V[rows.stop :], transpose=True)
        out[rows] = part

    run(task, strips(n, n, V.shape[1]))
    return out


def _subtract_rank_two(A: np.ndarray, V: np.ndarray, W: np.ndarray) -> None:  # (n, n), (n, k), (n, k)
    """A -= V Wᵀ + W Vᵀ in the lower triangle: a task has a range of columns."""

    def task(columns: slice) -> None:
        subtract_rank_two(A[columns, columns], V[columns], W[columns])
        below = slice(columns.stop, len(A))
        subtract_product(A[below, columns], V[below], W[columns], transpose_second=True)
        subtract_product(A[below, columns], W[below], V[columns], transpose_second=True)

    run(task, strips(len(A), len(A), V.shape[1]))


def _reflector(panel: np.ndarray, tau: np.ndarray) -> np.ndarray:  # (m, len(tau)), Fortran order
    """V, unit lower trapezoidal, from what LAPACK stores; a zero column where nothing is reflected."""
    V = np.tril(panel[:, : len(tau)], -1)
    np.fill_diagonal(V, 1.0)
    V[:, tau == 0] = 0.0
    return np.asfortranarray(V)


def _triangle(V: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """T with H₁H₂… = I - V T Vᵀ: its inverse is the upper triangle of VᵀV, with 1/τ on the diagonal."""
    inverse = np.triu(product(V, V, transpose=True), 1)
    np.fill_diagonal(inverse, 1.0 / np.where(tau == 0, 1.0, tau))
    return np.asfortranarray(solve_triangular(inverse, np.eye(len(tau), dtype=V.dtype)))


def _form(A: np.ndarray, width: int, factors: list[Factor]) -> np.ndarray:
    """Q, the product of the reflections, in place: from the last panel to the first, each already used."""
    n = A.shape[0]
    begun = n  # Q stands in A[begun:, begun:]
    for start, tau, T in reversed(factors):
        V = _reflector(A[start:, start - width : start], tau)
        _identity(A, start, begun)
        begun = start
        Q = A[start:, start:]

        def task(columns: slice, Q: np.ndarray = Q, V: np.ndarray = V, T: np.ndarray = T) -> None:
            add_product(Q[:, columns], -1.0, V, product(T, product(V, Q[:, columns], transpose=True)))

        run(task, strips(len(Q), len(Q), 2 * len(T)))
    _identity(A, 0, begun)
    return A


def _identity(A: np.ndarray, start: int, stop: int) -> None:
    """Rows and columns start … stop of A[start:, start:] as in the identity."""
    A[start:, start:stop] = 0.0
    A[start:stop, start:] = 0.0
    A[range(start, stop), range(start, stop)] = 1.0
