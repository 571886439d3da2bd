r"""The pivots of randomly pivoted Cholesky without its factor: rejection alone.

Find      pivots s₁ … s_k with the law of `pivots`: the next is point i with probability dᵢ / Σ d, where
          d = diag(K - K̂) is what the pivots before leave
Given     K, positive semidefinite, by its diagonal and by blocks of a few of its entries
Idea      d need not be known. With any u ≥ d, draw a point j in proportion to u, and accept it with
          probability dⱼ/uⱼ: only the residuals of points that were drawn are ever computed, and dⱼ is the
          bound of point j from then on. At first u is the diagonal of K, for residuals only fall.
Residuals K[S, S] = LLᵀ; for a block B of proposals C = L⁻¹K[S, B], and what is left is K[B, B] - CᵀC.
          Whether a point is lucky is drawn before, and C is made in stages: most points fail already by what
          the first seventh of S leaves, many of the others by what half of it does.
          Nothing is ever computed for all points: those whose bounds are far too high are the ones drawn.
Cost      j² multiplications for a proposal after j pivots, a few hundredths of that where it fails early.
          There are tr K / tr(K - K̂) proposals for each pivot, or fewer; a factor takes n·k² in all.
Memory    k² + n numbers, and a block of proposals.
Stops     as `pivots` does; InputError where a residual that was looked at shows K to be indefinite.
"""

from __future__ import annotations

import math
from itertools import pairwise
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
from mercer.solvers.linear.blas import solve_triangle, subtract_product
from mercer.solvers.matrix import BlockMatrix

_SMALLEST_BLOCK, _LARGEST_BLOCK = 16, 1536  # points that are proposed at once
_FIRST_BLOCK = 64  # pivots are hoped for in the first block, where nothing sifts the proposals
_MOST_PROPOSALS = 4  # for each pivot that is wanted in all, so that few pivots take little memory
_STRIP = 256  # points whose systems are solved together, by one thread
_STAGES = 0.15, 0.5  # of the pivots: a few hundredths of the work of all, and a quarter of it


def random_pivots(K: BlockMatrix, rank: int, *, random_state: Any = None) -> np.ndarray:  # (k,)
    """At most ``rank`` pivots of K, one after the other; fewer where nothing is left of K beside rounding.

    >>> from mercer import Gaussian, Gram
    >>> K = Gram(Gaussian(sigma=1.0), np.linspace(0, 1, 50)[:, None])
    >>> len(random_pivots(K, 5)), len(random_pivots(K, 50)) < 20
    (5, True)
    """
    if not (rank >= 1 and rank == int(rank)):
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
    """The bytes that so many pivots of n points take.

    Beside L a block needs C with what a stage adds to it; after the last stage C and three squares of it.
    """
    block = _largest_block(n, rank)
    return 8 * (rank * rank + block * (rank + max(rank, 3 * block)) + 4 * n)


def _largest_block(n: int, rank: int) -> int:
    return min(max(_MOST_PROPOSALS * rank, _SMALLEST_BLOCK), _LARGEST_BLOCK, n)


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
            most = _largest_block(n, self._rank if self._pivots else _FIRST_BLOCK)
            size = min(max(size, _SMALLEST_BLOCK), most)
            rate = self._add_block(draw(mass, size, self._random))
        return np.array(self._pivots, dtype=np.int64)

    def _rounding(self, points: Any = slice(None)) -> np.ndarray:
        return rounding_share(self._K.dtype, len(self._pivots)) * self._diagonal[points]

    def _add_block(self, proposed: np.ndarray) -> float:
        """Accept some of the points; returns which share of them."""
        size, done = len(proposed), len(self._pivots)
        points, luck, C = self._sift(proposed, self._random.random(size) * self._bound[proposed])
        if not len(points):
            return 0.0
        H = self._residual_block(points, C)
        accepted, L, left = accept(H, self._bound[points], self._rounding(points), self._rank - done, luck)
        self._lower(points, left, done + len(accepted))
        new = slice(done, done + len(accepted))
        self._triangle[new, :done] = C[:, accepted].T
        self._triangle[new, new] = L
        self._pivots += points[accepted].tolist()
        return len(accepted) / size

    def _residual_block(self, points: np.ndarray, C: np.ndarray) -> np.ndarray:  # (b,), (pivots, b) → (b, b)
        """K - K̂ of the points with each other, in float64."""
        H = np.asfortranarray(self._K.block(points, points).T, dtype=np.float64)

        def task(part: slice) -> None:
            below = slice(part.start, len(points))
            subtract_product(H[below, part], C[:, below], C[:, part], transpose_first=True)
            H[part, part.stop :] = H[part.stop :, part].T

        run(task, _cut(len(points), _STRIP // 2))
        return H

    def _lower(self, points: np.ndarray, left: np.ndarray, pivots: int) -> None:
        """What so many pivots leave of the points bounds their residuals from now on."""
        check_definite(left, self._diagonal[points], self._K.dtype, pivots, points)
        # The same point may be there twice, and then it has the same residual both times, or 0.
        np.minimum.at(self._bound, points, np.maximum(left, 0.0))

    def _sift(
        self, points: np.ndarray, luck: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # (b,), (b,), (pivots, b)
        """The points that no stage of the pivots rejects, their luck, and their C = L⁻¹K[S, points].

        A stage adds its rows to C; who fails by what it leaves is not looked at by the next.
        """
        left, C = self._diagonal[points], np.empty((0, len(points)), order="F")
        kept = np.arange(len(points))  # the columns of C that are those of the points
        for start, stop in pairwise(_stages(len(self._pivots))):
            C, gone = self._with_rows(C, kept, start, stop, points)
            left = left - gone
            self._lower(points, left, stop)
            kept = np.flatnonzero(luck < left)
            points, luck, left = points[kept], luck[kept], left[kept]
            if not len(points):
                break
        return points, luck, C.T[kept].T

    def _with_rows(
        self, C: np.ndarray, kept: np.ndarray, start: int, stop: int, points: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:  # (stop, b), (b,)
        """The columns of C that are kept, below them the rows of more pivots up to ``stop``, and the sums of
        the squares of these rows.
        """
        new = np.array(self._pivots[start:stop], dtype=np.int64)
        before, triangle = self._triangle[start:stop, :start], self._triangle[start:stop, start:stop]
        values = self._K.block(points, new)
        grown, gone = np.empty((len(points), stop)).T, np.empty(len(points))

        def task(part: slice) -> None:
            known, rows = grown[:start, part], grown[start:, part]
            known.T[:], rows[:] = C.T[kept[part]], values[part].T
            subtract_product(rows, before, known)
            solve_triangle(triangle, rows)
            np.einsum("ij,ij->j", rows, rows, out=gone[part])

        run(task, _cut(len(points), _STRIP))
        return grown, gone


def _cut(points: int, strip: int) -> list[slice]:
    """The points in parts of about the same size, of ``strip`` at most."""
    cuts = np.linspace(0, points, math.ceil(points / strip) + 1).astype(int)
    return [slice(first, last) for first, last in pairwise(cuts.tolist())]


def _stages(pivots: int) -> list[int]:
    """Where the pivots are cut for `_sift`: a few first, half of them, all."""
    early = (int(pivots * share) for share in _STAGES)
    return [0, *(stop for stop in early if stop >= _SMALLEST_BLOCK), pivots]
