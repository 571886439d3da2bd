r"""The pivots of randomly pivoted Cholesky without its factor: rejection alone.

Find      pivots s₁ … s_k with the law of `pivots`: the next is point i with probability dᵢ / Σ d, where
          d = diag(K - K̂) is what the pivots before leave
Given     K, positive semidefinite, by its diagonal and by blocks of a few of its entries
Idea      d need not be known. With any u ≥ d, draw a point j in proportion to u, and accept it with
          probability dⱼ/uⱼ: only the residuals of points that were drawn are ever computed, and dⱼ is the
          bound of point j from then on. At first u is the diagonal of K, for residuals only fall.
Residuals K[S, S] = LLᵀ; for a block B of proposals C = L⁻¹K[S, B], and what is left is K[B, B] - CᵀC.
          Whether a point is lucky is drawn before: most fail already by what the first fifth of S leaves.
          Nothing is ever computed for all points: those whose bounds are far too high are the ones drawn.
Cost      j² multiplications for a proposal after j pivots, a twenty-fifth of that where it fails early. There
          are tr K / tr(K - K̂) proposals for each pivot, or fewer; a factor takes n·k² in all.
Memory    k² + n numbers, and a block of proposals.
Stops     as `pivots` does; InputError where a residual that was looked at shows K to be indefinite.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.errors import InputError
from mercer.runtime.config import require_memory
from mercer.runtime.seeds import seed_of
from mercer.runtime.threads import run, single_threaded_blas
from mercer.solvers.landmarks.pivots import (
    NOTHING_LEFT,
    accept,
    check_definite,
    check_diagonal,
    draw,
    rounding_share,
)
from mercer.solvers.linear.blas import solve_triangle
from mercer.solvers.matrix import BlockMatrix

__all__ = ["random_pivots", "random_pivots_memory"]

_SMALLEST_BLOCK, _LARGEST_BLOCK = 16, 512  # points that are proposed at once
_STRIP = 64  # points whose systems are solved together, by one thread
_FIRST_PIVOTS = 5  # A fifth of the pivots explains most of what all do, for a twenty-fifth of the work.


def random_pivots(K: BlockMatrix, rank: int, *, random_state: Any = None) -> np.ndarray:  # (k,)
    """At most ``rank`` pivots of K, one after the other; fewer where nothing is left of K beside rounding.

    >>> from mercer import Gaussian, Gram
    >>> K = Gram(Gaussian(sigma=1.0), np.linspace(0, 1, 50)[:, None])
    >>> len(random_pivots(K, 5)), len(random_pivots(K, 50)) < 20
    (5, True)
    """
    if not rank >= 1:
        raise InputError(f"the rank must be a whole number of at least 1, got {rank!r}")
    n = K.shape[0]
    rank = min(int(rank), n)
    require_memory(
        random_pivots_memory(n, rank),
        f"{rank:,} pivots of a kernel matrix of {n:,} points",
        "ask for fewer",
    )
    with single_threaded_blas():
        return _Run(K, rank, np.random.default_rng(seed_of(random_state))).pivots()


def random_pivots_memory(n: int, rank: int) -> int:
    """The bytes that so many pivots of n points take."""
    block = min(_LARGEST_BLOCK, n)
    return 8 * (rank * rank + 3 * block * (rank + block) + 4 * n)


class _Run:
    """The state of a run: the pivots, L, and u."""

    def __init__(self, K: BlockMatrix, rank: int, random: np.random.Generator) -> None:
        self._K, self._rank, self._random = K, rank, random
        self._diagonal = np.asarray(K.diag(), dtype=np.float64)
        check_diagonal(self._diagonal)
        self._bound = self._diagonal.copy()  # u
        self._triangle = np.zeros((rank, rank), order="F")  # L
        self._pivots: list[int] = []

    def pivots(self) -> np.ndarray:  # (k,)
        n, enough = len(self._diagonal), NOTHING_LEFT[self._K.dtype] * float(self._diagonal.sum())
        rate = 1.0  # of the last block, what was accepted of it
        while len(self._pivots) < self._rank:
            mass = np.where(self._bound > self._rounding(), self._bound, 0.0)
            if mass.sum() <= enough:
                break
            size = math.ceil((self._rank - len(self._pivots)) / max(rate, 1 / _LARGEST_BLOCK))
            size = min(max(size, _SMALLEST_BLOCK), _LARGEST_BLOCK, n)
            rate = self._add_block(draw(mass, size, self._random))
        return np.array(self._pivots, dtype=np.int64)

    def _rounding(self, points: Any = slice(None)) -> np.ndarray:
        return rounding_share(self._K.dtype, len(self._pivots)) * self._diagonal[points]

    def _add_block(self, proposed: np.ndarray) -> float:
        """Accept some of the points; returns which share of them."""
        size, done = len(proposed), len(self._pivots)
        luck = self._random.random(size) * self._bound[proposed]
        if (few := done // _FIRST_PIVOTS) >= _SMALLEST_BLOCK:
            # Who fails already by what the first pivots leave is not looked at again.
            proposed, luck = self._sift(proposed, luck, few)
            if not len(proposed):
                return 0.0
        C = self._features(proposed, done)
        H = self._K.block(proposed, proposed).astype(np.float64)
        H -= C.T @ C
        accepted, L, left = accept(
            H, self._bound[proposed], self._rounding(proposed), self._rank - done, luck
        )
        self._lower(proposed, left, done + len(accepted))
        new = slice(done, done + len(accepted))
        self._triangle[new, :done] = C[:, accepted].T
        self._triangle[new, new] = L
        self._pivots += proposed[accepted].tolist()
        return len(accepted) / size

    def _lower(self, points: np.ndarray, left: np.ndarray, pivots: int) -> None:
        """What so many pivots leave of the points bounds their residuals from now on."""
        check_definite(left, self._diagonal[points], self._K.dtype, pivots, points)
        # The same point may be there twice, and then it has the same residual both times, or 0.
        np.minimum.at(self._bound, points, np.maximum(left, 0.0))

    def _sift(self, proposed: np.ndarray, luck: np.ndarray, few: int) -> tuple[np.ndarray, np.ndarray]:
        """The points that the first pivots do not reject yet, with their luck."""
        C = self._features(proposed, few)
        left = self._diagonal[proposed] - np.einsum("ij,ij->j", C, C)
        self._lower(proposed, left, few)
        return proposed[luck < left], luck[luck < left]

    def _features(self, points: np.ndarray, pivots: int) -> np.ndarray:  # (pivots, len(points))
        """C = L⁻¹K[S, points] of the first pivots."""
        known = np.array(self._pivots[:pivots], dtype=np.int64)
        C = np.array(self._K.block(points, known), dtype=np.float64, order="C").T
        triangle = self._triangle[:pivots, :pivots]
        starts = range(0, len(points) if pivots else 0, _STRIP)
        run(lambda start: solve_triangle(triangle, C[:, start : start + _STRIP]), starts)
        return C
