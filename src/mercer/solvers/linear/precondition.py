r"""A factor F of low rank, K ≈ FFᵀ, that lets conjugate gradients solve systems with K in few products.

System    M = S K S + αI,   S = diag(√wᵢ)
Near it   B = S F Fᵀ S + μI,   μ = α + Σᵢ wᵢ dᵢ / n,   dᵢ = Kᵢᵢ - (FFᵀ)ᵢᵢ ≥ 0 what F leaves of the diagonal
Inverse   with G = SF and LLᵀ = μI + GᵀG, of as many rows as F has columns,
              B⁻¹V = (V - G (LLᵀ)⁻¹ GᵀV) / μ
Cost      n k² for L; 4nk for each column of V, where a product with K takes some 20n²

The eigenvalues of S(K - FFᵀ)S lie between 0 and some ε, so that those of B⁻¹M are between α/μ and
max(1, (α + ε)/μ). For μ from α to α + ε their ratio is at most 1 + ε/α, the same for all; but α itself is a
bad choice where it is small: it takes every direction that F has not seen for empty, where the mean that
is left, Σwᵢdᵢ/n, is what such a direction has on average. (Measured on 3,000 points of kin40k, σ = 1.5,
rank 500, to a residual of 1e-6: 260 products with μ = α = 1e-4, 210 so, 231 with the largest wᵢdᵢ, 343 with
ε; from α = 1e-2 on all but the last are alike. Eigenvectors of GᵀG in place of L give the same numbers, for
some thirty times the operations.) It is also what makes the formula stable: subtracting V and what F has
seen of it loses ‖G‖²/μ of the digits.

Díaz, Epperly, Frangella, Tropp and Webber, Robust, randomized preconditioning for kernel ridge regression,
arXiv:2304.12465 (2023). Frangella, Tropp and Udell, Randomized Nyström preconditioning, SIAM J. Matrix
Analysis and Applications 44 (2023), 718-752.
"""

from __future__ import annotations

import math

import numpy as np

from mercer.runtime.config import thread_count
from mercer.runtime.threads import run
from mercer.solvers.linear.cholesky import factorise, solve
from mercer.solvers.linear.strips import multiply

#: μ relative to ‖G‖² at least: three digits of B⁻¹ are then right, and that is enough of a preconditioner.
_LEAST_DAMPING = 1e-13
_COLUMNS_PER_TASK = 128  # so many columns of GᵀG are a task
_ROWS_AT_A_TIME = 1024  # so many rows of G are weighted in a copy of 1 MiB
#: k = 20√n: the factor, 2nk² operations, is estimated to take as long as ten products or so. On data whose
#: eigenvalues fall slowly (kin40k, σ = 1.4, α = 0.003, residual 1e-6) 130 products were needed at n = 4,000
#: with 10√n, and 85 at 8,000 and 90 at 16,000 with 20√n. Newton's steps make an L each: half of k for them.
_RANK_PER_ROOT = 20.0
_LARGEST_RANK = 5000  # 200 MB of L; what a larger one would save was not measured


def usual_rank(
    n: int, memory: int, item: int = 8, functions: int = 1, systems: int = 1, is_repeated: bool = False
) -> int:
    """k for n points, a quarter of them at most, where F and L may take ``memory`` bytes; 0 without room.

    Several functions that are coupled have one L of all of them: k is less then, as it is where L is made
    again and again. See `factor_memory`.

    >>> usual_rank(40_000, 2**32), usual_rank(10**6, 2**36), usual_rank(10**6, 2**20)
    (4000, 5000, 0)
    >>> usual_rank(40_000, 2**32, is_repeated=True), usual_rank(40_000, 2**32, functions=10, is_repeated=True)
    (2000, 400)
    """
    wanted = min(_RANK_PER_ROOT * math.sqrt(n), _LARGEST_RANK) * min(1.0, 2.0 / functions)
    wanted *= 0.5 if is_repeated else 1.0
    rank = min(int(wanted), n // 4)
    while rank and factor_memory(n, rank, item, functions, systems) > memory:
        rank = int(0.9 * rank)
    return rank


def factor_memory(n: int, rank: int, item: int = 8, functions: int = 1, systems: int = 1) -> int:
    """Bytes of F, of ``item`` bytes a number, and of L for so many systems; with what is made on the way."""
    tasks = min(thread_count(), -(-rank // _COLUMNS_PER_TASK))
    aside = 8 * tasks * min(_COLUMNS_PER_TASK, rank) * (min(_ROWS_AT_A_TIME, n) + rank)
    return item * n * rank + 8 * (systems * (functions * rank) ** 2 + rank * rank) + aside + 40 * n


class Damped:
    """B = S F Fᵀ S + μI, as the verbs ``multiply`` and ``solve``; see the module.

    >>> B = Damped(np.array([[1.0], [2.0]]), np.zeros(2), np.ones(2), 0.5)
    >>> B.multiply(np.array([1.0, 0.0])), B.solve(np.array([1.5, 2.0])).round(12)
    (array([1.5, 2. ]), array([1., 0.]))
    """

    def __init__(
        self,
        F: np.ndarray,  # (n, k)
        rest: np.ndarray,  # (n,) d ≥ 0
        weight: np.ndarray,  # (n,) ≥ 0
        alpha: float,
    ) -> None:
        self.F = F
        self.root = np.sqrt(weight)
        square = weighted_square(F, weight)
        self.damping = max(alpha + float(weight @ rest) / len(weight), least_damping(square))
        square[np.diag_indices(len(square))] += self.damping
        self.L = factorise(square)

    def multiply(self, V: np.ndarray) -> np.ndarray:  # (n,) or (n, p)
        """B V."""
        root = self._roots(V)
        return root * multiply(self.F, multiply(self.F.T, root * V)) + self.damping * V

    def solve(self, V: np.ndarray) -> np.ndarray:  # (n,) or (n, p)
        """B⁻¹ V."""
        root = self._roots(V)
        seen = solve(self.L, multiply(self.F.T, root * V))
        return (V - root * multiply(self.F, seen)) / self.damping

    def _roots(self, V: np.ndarray) -> np.ndarray:
        return self.root if V.ndim == 1 else self.root[:, None]


def weighted_square(F: np.ndarray, weight: np.ndarray) -> np.ndarray:  # (k, k)
    """FᵀWF, the lower triangle; each task has some of its columns, so that threads do not change the sums."""
    n, k = F.shape
    out = np.zeros((k, k), order="F")

    def task(start: int) -> None:
        stop = min(start + _COLUMNS_PER_TASK, k)
        for first in range(0, n, _ROWS_AT_A_TIME):
            rows = slice(first, first + _ROWS_AT_A_TIME)
            out[start:, start:stop] += F[rows, start:].T @ (weight[rows, None] * F[rows, start:stop])

    run(task, list(range(0, k, _COLUMNS_PER_TASK)))
    return out


def least_damping(square: np.ndarray) -> float:  # (k, k)
    """The smallest μ for which B⁻¹ has digits, of GᵀG, whose trace is at least ‖G‖².

    >>> least_damping(np.eye(2))
    2e-13
    """
    return max(_LEAST_DAMPING * float(square.diagonal().sum()), float(np.finfo(np.float64).tiny))
