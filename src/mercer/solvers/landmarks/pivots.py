r"""Randomly pivoted Cholesky, accelerated: K ≈ K̂ = FFᵀ of rank k from k rows of K.

Find      pivots s₁ … s_k and F (n × k) with K̂ = K[:, S] K[S, S]⁻¹ K[S, :] = FFᵀ
Given     K, positive semidefinite, by its diagonal, blocks of a few of its entries, and rows
Rule      the next pivot is point i with probability wᵢdᵢ / Σ wd, d = diag(K - K̂) the residual diagonal. The
          expected error is then nearly that of the best approximation of a slightly lower rank.
Blocks    one pivot at a time would read all of F for each. Instead b points are proposed at once, by the
          residuals uᵢ at hand. One after the other, each is accepted with probability dⱼ/uⱼ, its residual dⱼ
          being that after those accepted before: the pivots have the law of one at a time. What is needed for
          it is the b × b block of K - K̂; only rows of accepted points are fetched, and update F together.
Cost      k·n values of K, n·k²/2 multiplications, memory for F.
Stops     after k pivots, or when Σ wd ≤ ε' Σ wᵢK_ii, or when no residual is larger than rounding.

Everything is deterministic for a seed. The size of the blocks follows from counts, not from a clock.

The residuals dᵢ = K_ii - Σ_c F_ic² are summed in float64 from F as it is stored, and set to 0 where rounding
makes them negative: their sum τ is at least tr(K - FFᵀ) up to that rounding, and never negative.

Epperly, Tropp and Webber, Embrace rejection: kernel matrix approximation by accelerated randomly pivoted
Cholesky, SIAM J. Matrix Anal. Appl. 46 (2025). Chen, Epperly, Tropp and Webber, Randomly pivoted Cholesky,
Comm. Pure Appl. Math. 78 (2025).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.errors import InputError
from mercer.runtime.config import require_memory
from mercer.runtime.seeds import seed_of
from mercer.runtime.threads import run, single_threaded_blas
from mercer.solvers.linear.blas import cholesky_in_place, solve_triangle, subtract_product
from mercer.solvers.linear.strips import strips
from mercer.solvers.matrix import BlockMatrix

#: The share of the trace at which nothing is left to approximate. In float64 it is what the authors take. In
#: float32 it is 8 units in the last place, about what the rounding of the values of K themselves comes to.
NOTHING_LEFT = {np.dtype(np.float64): 1e-13, np.dtype(np.float32): 1e-6}
_FIRST_BLOCK = 10  # The first block proposes a tenth of the pivots that are wanted.
_LARGEST_BLOCK = 3  # No block proposes more than a third of them.
_SMALLEST_BLOCK = 10  # points: fewer do not fill a matrix product
_PANEL = 32  # points that are accepted one by one before the others hear of it, all of them together
_REJECTION_SHARE = 0.25  # of a block's cost may be spent on proposals, accepted or not


@dataclass(frozen=True, eq=False)
class PivotedFactor:
    """K̂ = FFᵀ and what it leaves of K."""

    #: (k,) the chosen points, in the order of their choice
    pivots: np.ndarray
    #: (n, k) F, in Fortran order and in the precision of K; F[pivots] is lower triangular, to rounding. Of a
    #: K on a device, what that has of it
    factor: Any
    #: (n,) dᵢ = k(xᵢ, xᵢ) - k̂(xᵢ, xᵢ) ≥ 0
    residual: np.ndarray
    #: whether there are fewer pivots than asked for, because nothing is left of K beside rounding
    ended_early: bool
    #: whether there are fewer because the run was stopped
    is_cut: bool = False

    @property
    def tau(self) -> float:
        """τ = tr(K - K̂)."""
        return float(self.residual.sum())


def pivoted_cholesky(
    K: BlockMatrix,  # (n, n)
    rank: int,
    *,
    random_state: Any = None,
    weight: np.ndarray | None = None,  # (n,) ≥ 0
    least: float = 0.0,
    stopped: Callable[[], bool] = lambda: False,
) -> PivotedFactor:
    """At most ``rank`` pivots of K and its factor.

    A point of weight 0 is never a pivot, nor one with no more left than the share ``least`` of k(x, x).

    ``stopped`` is asked after each block of pivots: when it says so, the factor is what there is by then.

    InputError where K shows itself to be indefinite.

    >>> from mercer import Gaussian, Gram
    >>> K = Gram(Gaussian(sigma=1.0), np.linspace(0, 1, 50)[:, None])
    >>> found = pivoted_cholesky(K, 5)
    >>> len(found.pivots), bool(np.abs(K.dense() - found.factor @ found.factor.T).max() < 1e-3)
    (5, True)
    >>> pivoted_cholesky(K, 50).ended_early
    True
    """
    n = K.shape[0]
    if not (rank >= 1 and rank == int(rank)):
        raise InputError(f"the rank must be a whole number of at least 1, got {rank!r}")
    rank = min(int(rank), n)
    # beside F a block needs its own entries of K and of F
    largest = _largest_block(rank)
    of_factor = 0 if hasattr(K, "store") else K.dtype.itemsize * n * rank
    require_memory(
        of_factor + 8 * largest * (2 * largest + rank) + 40 * n,
        f"a factor of rank {rank:,} of a kernel matrix of {n:,} points",
        "lower the rank, use float32",
    )
    with single_threaded_blas():
        weight = np.ones(n) if weight is None else weight
        run = _Run(K, rank, weight, least, seed_of(random_state))
        while goes_on := run.goes_on():
            if stopped():
                break
            run.add_block()
        return run.result(is_cut=goes_on)


def _largest_block(rank: int) -> int:
    return max(_SMALLEST_BLOCK, math.ceil(rank / _LARGEST_BLOCK))


class _Run:
    """The state of a run: F, d, and how many points the next block proposes."""

    def __init__(self, K: BlockMatrix, rank: int, weight: np.ndarray, least: float, seed: int) -> None:
        n = K.shape[0]
        self._K = K
        self._rank = rank
        self._weight = np.asarray(weight, dtype=np.float64)
        self._least = least
        self._random = np.random.default_rng(seed)
        self._diagonal = np.asarray(K.diag(), dtype=np.float64)
        check_diagonal(self._diagonal)
        self._residual = self._diagonal.copy()
        #: Fᵀ, which a K on a device keeps there
        self._rows: Any = K.store(rank) if hasattr(K, "store") else _Rows(K, rank)
        self._pivots: list[int] = []
        #: points whose residual is rounding, although it does not look so
        self._spent = np.zeros(n, np.bool_)
        self._block = max(_SMALLEST_BLOCK, math.ceil(rank / _FIRST_BLOCK))
        self._enough = NOTHING_LEFT[K.dtype] * float(self._weight @ self._diagonal)

    def goes_on(self) -> bool:
        """Whether another pivot is wanted, and there is something left of K."""
        left = float(self._weight @ self._residual)
        return len(self._pivots) < self._rank and left > self._enough and bool(self._mass().any())

    def result(self, is_cut: bool) -> PivotedFactor:
        count = len(self._pivots)
        pivots = np.array(self._pivots, dtype=np.int64)
        ended_early = count < self._rank and not is_cut
        factor = self._rows.rows[:count].T if isinstance(self._rows, _Rows) else self._rows
        return PivotedFactor(pivots, factor, self._residual, ended_early, is_cut)

    def add_block(self) -> None:
        """Propose points, accept some, and bring F and the residuals up to date."""
        proposed = draw(self._mass(), self._block, self._random)
        H = self._residual_block(proposed)
        offered, wanted = self._residual[proposed], self._rank - len(self._pivots)
        luck = self._random.random(len(H)) * offered
        accepted, L, _ = accept(H, offered, self._rounding(proposed), wanted, luck)
        self._spent[proposed[np.diagonal(H) <= self._rounding(proposed)]] = True
        if len(accepted):
            self._update(proposed[accepted], L)
        # proposals cost b² entries of K - K̂, what is accepted costs n entries each
        rate = len(accepted) / len(proposed)
        affordable = math.ceil(_REJECTION_SHARE * rate * len(self._residual))
        size = len(proposed)
        bounded = min(max(affordable, math.ceil(size / 3)), math.ceil(1.5 * size), _largest_block(self._rank))
        self._block = max(bounded, _SMALLEST_BLOCK)

    def _rounding(self, points: Any = slice(None)) -> np.ndarray:
        """The residual that counts as nothing."""
        share = max(rounding_share(self._K.dtype, len(self._pivots)), self._least)
        return share * self._diagonal[points]

    def _mass(self) -> np.ndarray:  # (n,)
        """What the probability of a point is proportional to."""
        eligible = (self._residual > self._rounding()) & ~self._spent
        return np.where(eligible, self._weight * self._residual, 0.0)

    def _residual_block(self, points: np.ndarray) -> np.ndarray:  # (b, b)
        """K - K̂ of the points with each other, in float64."""
        F = self._rows.at(points)
        H: np.ndarray = self._K.block(points, points).astype(np.float64)
        H -= F.T @ F
        return H

    def _update(self, new: np.ndarray, L: np.ndarray) -> None:
        """F, and d."""
        self._residual -= self._rows.extend(new, L)
        self._pivots += new.tolist()
        count, everywhere = len(self._pivots), range(len(self._residual))
        check_definite(self._residual, self._diagonal, self._K.dtype, count, everywhere)
        np.maximum(self._residual, 0.0, out=self._residual)


class _Rows:
    """Fᵀ, of which the first ``count`` rows are there."""

    def __init__(self, K: BlockMatrix, rank: int) -> None:
        self._K, self.count = K, 0
        #: (rank, n): rows of K are written here, and become rows of Fᵀ; untouched memory costs nothing
        self.rows = np.empty((rank, K.shape[0]), K.dtype)

    def at(self, points: np.ndarray) -> np.ndarray:  # (count, points)
        """Fᵀ of some points, in float64."""
        return self.rows[: self.count, points].astype(np.float64)

    def extend(self, new: np.ndarray, L: np.ndarray) -> np.ndarray:  # (a,), (a, a) → (n,)
        """F ← [F, (K[:, new] - F F[new]ᵀ) L⁻ᵀ]; the squared lengths of what is new in every row of F."""
        done, count = self.count, self.count + len(new)
        places, lengths = np.arange(done, count), np.empty(self.rows.shape[1])
        if hasattr(self._K, "write_rows"):
            self._K.write_rows(new, (0, len(lengths)), self.rows, places)
        else:
            self.rows[places] = self._K.rows(new)
        F = self.rows.T
        known = np.asfortranarray(F[new, :done])
        triangle = np.asfortranarray(L, dtype=F.dtype)

        def task(part: slice) -> None:
            columns = F[part, done:count]
            subtract_product(columns, F[part, :done], known, transpose_second=True)
            solve_triangle(triangle, columns, side="right", transpose=True)
            lengths[part] = np.square(columns.T, dtype=np.float64).sum(axis=0)

        run(task, strips(len(F), count, len(new)))
        self.count = count
        return lengths


def check_definite(
    residual: np.ndarray,  # (n,)
    diagonal: np.ndarray,  # (n,)
    dtype: np.dtype[Any],
    pivots: int,
    points: Sequence[int] | np.ndarray,  # (n,)
) -> None:
    """Refuse a residual of the points that is more negative than rounding makes it.

    With errors of η in K a pivot of residual dⱼ makes an error of 2η√(dᵢ/dⱼ), which is at most about √η
    where dⱼ is as small as pivots may be.
    """
    epsilon = float(np.finfo(dtype).eps)
    below = residual + 8 * math.sqrt(epsilon) * diagonal + epsilon * diagonal.max()
    worst = int(below.argmin())
    if below[worst] < 0:
        true = diagonal[worst]
        raise InputError(
            f"the kernel is not positive definite on these points: {pivots} of them predict "
            f"k(x, x) = {true - residual[worst]:.4g} for point {points[worst]}, where it is {true:.4g}; "
            "take a positive definite kernel, mercer.certify tells more"
        )


def draw(mass: np.ndarray, size: int, random: np.random.Generator) -> np.ndarray:  # (n,) → (size,)
    """Points drawn in proportion to their mass, independently of each other: perhaps some of them twice."""
    cumulated = np.cumsum(mass)
    drawn = np.searchsorted(cumulated, random.random(size) * cumulated[-1], side="right")
    return np.minimum(drawn, int(np.flatnonzero(mass)[-1]))


def accept(
    H: np.ndarray,  # (b, b)
    offered: np.ndarray,  # (b,)
    rounding: np.ndarray,  # (b,)
    most: int,
    luck: np.ndarray,  # (b,)
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # (a,), (a, a), (b,)
    """Which of b proposed points are accepted, ``most`` at most, by their block H of K - K̂.

    ``offered`` are the bounds that they were drawn by, and ``luck`` are numbers drawn evenly below these.
    Returns their places in the block, the Cholesky factor of their part of H, and what is left of each of
    the b points by those accepted before it; of an accepted one nothing.
    """
    left, bar = np.minimum(offered, np.diagonal(H)), np.maximum(rounding, luck)
    most = min(len(H), most)
    rows = np.zeros((most, len(H)))  # Lᵀ, with a column for every point of the block, accepted or not
    accepted, start = np.empty(0, np.int64), 0
    while start < len(H) and len(accepted) < most:
        # Whose residual is below the bar already is rejected in its turn, for residuals only fall.
        panel = start + np.flatnonzero(left[start:] > bar[start:])[:_PANEL]
        if not len(panel):
            break
        done, at = len(accepted), panel[0]
        found = H[panel, at:] - rows[:done, panel].T @ rows[:done, at:]
        places, L = _accept_in_turn(found[:, panel - at], left[panel], bar[panel], most - done)
        new = found[places]
        solve_triangle(L, new.T, side="right", transpose=True)
        accepted = np.concatenate([accepted, panel[places]])
        rows[done : len(accepted), at:] = new
        left[at:] -= np.square(new).sum(axis=0)
        left[panel[places]] = 0.0  # Where the same point was proposed again it is rejected.
        start = panel[-1] + 1
    return accepted, np.tril(rows[: len(accepted), accepted].T), left


def _accept_in_turn(
    H: np.ndarray,  # (p, p), overwritten
    left: np.ndarray,  # (p,), in place of the diagonal of H
    bar: np.ndarray,  # (p,)
    most: int,
) -> tuple[np.ndarray, np.ndarray]:  # (a,), (a, a)
    """Places of those whose residual is above the bar in their turn, and the Cholesky factor of these.

    LAPACK factors H as if all were accepted. Up to the first that is not, the squares of the diagonal of L
    are the residuals; that one leaves H, and the rest is tried again.
    """
    np.fill_diagonal(H, left)
    tried, kept = np.arange(len(H)), 0  # The first of those tried are known to be accepted.
    while True:
        L = np.asfortranarray(H[np.ix_(tried, tried)])
        minor = cholesky_in_place(L) or len(tried) + 1
        residual = np.square(np.diagonal(L)[: minor - 1])
        failed = np.flatnonzero(residual[kept:] <= bar[tried[kept : minor - 1]])
        kept = kept + int(failed[0]) if len(failed) else minor - 1
        if kept >= min(most, len(tried)):
            break
        tried = np.delete(tried, kept)
    accepted = tried[:most]
    return accepted, np.asfortranarray(np.tril(L[: len(accepted), : len(accepted)]))


def rounding_share(dtype: np.dtype[Any], pivots: int) -> float:
    """The share of k(x, x) that counts as nothing after so many pivots.

    Rounding makes 4 units in the last place of k(x, x) for the values of K, and half a unit for each
    column of F, of random sign.
    """
    return (4 + 0.5 * math.sqrt(pivots)) * float(np.finfo(dtype).eps)


def check_diagonal(diagonal: np.ndarray) -> None:
    """Refuse values k(x, x) that no positive definite kernel has."""
    for name, wrong in (("finite", ~np.isfinite(diagonal)), ("≥ 0", diagonal < 0)):
        if wrong.any():
            i = int(np.flatnonzero(wrong)[0])
            raise InputError(
                f"k(x, x) must be {name} for a factor of the kernel matrix, got {diagonal[i]:.4g} for "
                f"point {i}: take a positive definite kernel, mercer.certify tells more"
            )
