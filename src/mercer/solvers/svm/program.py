r"""A quadratic program of a support vector machine, where it ended, and its state on the way.

What is solved, and how, is said in ``decomposition``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.runtime.threads import run
from mercer.solvers.matrix import Exact, WritableRows
from mercer.solvers.result import Minimum, Stop
from mercer.solvers.rounding import slope_errors
from mercer.solvers.svm import exact as exact_arithmetic
from mercer.solvers.svm import smo
from mercer.solvers.svm.block import Block
from mercer.solvers.svm.rows import KeptRows
from mercer.solvers.svm.safest import Safest
from mercer.solvers.svm.working_set import fill, violations

#: variables up to which a problem is one working set
WHOLE = 512
_TURNS = 200  # Pairs and Newton's steps take turns on a problem that is one working set, at most.
_TURNS_BEYOND = 20  # A tiny problem goes on for so many turns after it has met its tolerance.
_REFRESHES = 3  # The slopes of a problem that is one working set are computed anew so often at most.
#: The number of variables up to which a problem is solved beyond its tolerance, which costs nothing.
_EXACT_BELOW = 192
_LOOSE = 0.03  # A working set is solved to this part of the violation.
_ROUNDS_WITHOUT_PROGRESS = 50  # After so many in a row, rounding is blamed.
_WHOLE_ROUNDS_WITHOUT_PROGRESS = 4  # A round is many turns on all variables here, so that fewer tell.
_PROGRESS = 1e-3  # A round on all variables lowers the objective by this part of it, or makes no progress.
_PART_OF_THE_GAP = 1e-6  # Or by this part of the gap that the tolerance allows for.
_STRIP = 4096  # columns of an update that a thread takes: their sums stay in the first cache
_FLAT = 1e-10  # A squared distance below this part of the largest k(x, x) counts as 0.


@dataclass(frozen=True, eq=False)
class QuadraticProgram:
    """One problem: variables of some segments of the points.

    Variables of the first group come first. ``position[t]`` is the point of variable t, counted along the
    segments.
    """

    c: np.ndarray  # (l,)
    lo: np.ndarray  # (l,)
    hi: np.ndarray  # (l,)
    start: np.ndarray  # (l,)
    position: np.ndarray  # (l,)
    split: int  # size of the first group; l when there is only one
    segments: tuple[int, ...] = (0,)
    #: whether Σγ of each group is fixed; if not, there is one group
    balanced: bool = True


@dataclass(frozen=True, eq=False, kw_only=True)
class Solution(Minimum):
    """Where a problem ended."""

    gamma: np.ndarray  # (l,)
    #: (points,) Kγ at the points of the segments
    values: np.ndarray
    #: λ of each group: the mean slope of variables between their bounds
    level: tuple[float, ...]
    violation: float
    #: what the violation may be at most, where K is known up to rounding
    bound: float
    #: what rounding may do to γᵀKγ
    blur: float


class Iterate:
    """A program on its way: γ, the values Kγ, and the last working set."""

    #: variables of the working set of the first rounds
    first = 1024

    def __init__(
        self,
        program: QuadraticProgram,
        bounds: np.ndarray,
        diag: np.ndarray,
        sizes: np.ndarray,
        exact: Exact | None = None,
    ) -> None:
        self.program = program
        self.exact = exact if len(program.c) <= exact_arithmetic.MOST_VARIABLES else None
        self.ranges = [(int(bounds[s]), int(bounds[s + 1])) for s in program.segments]
        self.points = np.concatenate([np.arange(*r) for r in self.ranges])
        self.diag = diag[self.points]
        self.sizes = sizes[self.points]
        self.gamma = _at_bounds(program.start.astype(np.float64), program.lo, program.hi)
        self.values = np.zeros(len(self.points))
        self.last = np.empty(0, np.int64)
        self.worst = np.inf
        self.steps = 0
        self.best = (np.inf, np.inf)  # violation, objective
        self.stalled = 0
        self.refined = False  # whether γ was found with a more exact K
        self.lost = False  # whether rounding has moved slopes by more than the tolerance
        self.stopped: Stop | None = None
        self.block: np.ndarray | None = None
        self.memory = [np.empty(0), np.empty(0)]
        self.turn = 0

    @property
    def size(self) -> int:
        return len(self.gamma)

    def slopes(self) -> np.ndarray:  # (l,)
        return self.program.c - self.values[self.program.position]

    def objective(self) -> float:
        # no product of BLAS: its threads would spin for a while, in the way of those that compute rows
        return -0.5 * float((self.gamma * (self.program.c + self.slopes())).sum())

    def choose(self, most: int) -> np.ndarray:
        """The next working set, those of the last one first; sets ``worst``."""
        if self.size <= min(WHOLE, most):
            return np.arange(self.size)
        support = int(np.count_nonzero(self.gamma))
        size = min(max(support, self.first), most, self.size)
        kept = self._kept(size // 2 if size >= 16 else 0)
        chosen, self.worst = self._select(size, kept)
        taken = np.zeros(self.size, np.bool_)
        taken[self.last] = True
        return chosen[np.argsort(~taken[chosen], kind="stable")]

    def _select(self, size: int, kept: np.ndarray) -> tuple[np.ndarray, float]:
        """A working set that begins with some of the last one, and the violation."""
        p, chosen = self.program, np.empty(size, np.int64)
        chosen[: len(kept)] = kept
        taken = np.zeros(self.size, np.bool_)
        taken[kept] = True
        count, worst = fill(
            chosen, len(kept), taken, self.slopes(), self.gamma, p.lo, p.hi, p.split, p.balanced
        )
        return chosen[:count], float(worst.max())

    def _kept(self, most: int) -> np.ndarray:
        """Variables of the last working set to go on with: those between their bounds before the others."""
        gamma, lo, hi = self.gamma[self.last], self.program.lo[self.last], self.program.hi[self.last]
        free = (gamma > lo) & (gamma < hi)
        order = np.concatenate([np.flatnonzero(free)[::-1], np.flatnonzero(~free)[::-1]])
        return self.last[np.sort(order[:most])]

    def active(self) -> np.ndarray:
        """Variables between their bounds, or not firmly at one: less far from moving than the violation."""
        p, v = self.program, self.slopes()
        groups = [slice(0, p.split), slice(p.split, self.size)]
        rests = np.zeros(self.size, np.bool_)
        for g in groups:
            if g.start < g.stop:
                at_lo, at_hi = self.gamma[g] <= p.lo[g], self.gamma[g] >= p.hi[g]
                middle = 0.5 * (v[g][~at_hi].max(initial=-np.inf) + v[g][~at_lo].min(initial=np.inf))
                middle = middle if p.balanced else 0.0
                rests[g] = (at_lo & (v[g] < middle - self.worst)) | (at_hi & (v[g] > middle + self.worst))
        return np.flatnonzero(~rests)

    def _values_at(self, local: np.ndarray) -> np.ndarray:
        return self.values[local]

    def _put(self, local: np.ndarray, values: np.ndarray) -> None:
        """Values that are known otherwise."""
        self.values[local] = values

    def add(self, rows: KeptRows, points: np.ndarray, coef: np.ndarray, threads: int) -> None:
        """values += Σᵣ coefᵣ K[pointᵣ, ·], for rows that are there."""
        slots = rows.places(points)
        strips = []
        at = 0
        for start, stop in self.ranges:
            strips += [(s, min(s + _STRIP, stop), at + s - start) for s in range(start, stop, _STRIP)]
            at += stop - start
        run(
            lambda s: smo.add_rows(rows.values, slots, coef, s[0], s[1], self.values[s[2] :]), strips, threads
        )

    def advance(
        self, chosen: np.ndarray, tol: float, max_iter: int, block: np.ndarray, rows: KeptRows | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Solve the working set; returns the variables that moved, and how far.

        ``block`` is its K; or, where its rows are kept, memory for it.
        """
        p = self.program
        split = int(np.count_nonzero(chosen < p.split))
        if p.split < self.size and (chosen[:split] >= p.split).any():
            order = np.argsort(chosen >= p.split, kind="stable")  # the groups one after the other
            chosen = chosen[order]
            if rows is None:
                block = self.block = np.ascontiguousarray(block[np.ix_(order, order)])
        local = p.position[chosen]
        points = self.points[local]
        gamma, slopes = self.gamma[chosen], p.c[chosen] - self._values_at(local)
        whole = len(chosen) == self.size
        small = Block(
            block,
            self.diag[local],
            slopes,
            gamma,
            p.lo[chosen],
            p.hi[chosen],
            split,
            rows=None if rows is None else rows.values,
            slots=None if rows is None else rows.places(points),
            columns=None if rows is None else points,
            balanced=p.balanced,
        )
        left = max_iter - self.steps
        if whole:
            steps = self._solve_whole(small, p.c[chosen], local, tol, left)
        else:
            steps, _ = small.solve(max(0.5 * tol, _LOOSE * self.worst), left, 2)
        change = gamma - self.gamma[chosen]
        self.gamma[chosen] = gamma
        self.steps += steps
        self.last = chosen
        if whole:  # the slopes are those of all points
            self._put(local, p.c[chosen] - small.slopes)
            self.worst = self._violation()
            if self.refined and self.worst > tol:
                self.stopped = Stop.ROUNDING if self.steps < max_iter else Stop.MAX_ITER
        if steps == 0 and self.worst > tol:
            self.stopped = Stop.ROUNDING
        if whole:
            return chosen[:0], change[:0]
        moved = np.flatnonzero(change)
        return chosen[moved], change[moved]

    def _solve_whole(self, small: Block, c: np.ndarray, local: np.ndarray, tol: float, most: int) -> int:
        """Solve a problem that is one working set, beyond its tolerance if it is tiny: that costs nothing."""
        safest = Safest(small, c, local, tol, self.exact is not None)
        steps, is_done = small.solve(tol, most, _TURNS, safest.note)
        if safest.lost and self.exact is not None:
            safest.settle()
            K = self.exact(self.points)
            self.lost = True
            if K is not None:
                return steps + self._refine(small, c, K, most - steps)
            self.exact = None  # It overflows, and tells nothing.
            return steps + self._solve_whole(small, c, local, tol, most - steps)
        # each step leaves a rounding error in the slopes
        size = float(np.abs(small.gamma).max() * np.abs(small.diag).max())
        for _ in range(_REFRESHES if np.sqrt(steps) * size * 2.0**-52 > 0.1 * tol else 0):
            small.refresh(c)
            more, is_done = small.solve(tol, most - steps, _TURNS, safest.note)
            steps += more
            if more == 0:
                break
        if is_done and self.size <= _EXACT_BELOW:
            finer = min(tol, 1e-10 * float(np.abs(small.slopes).max()))
            steps += small.solve(finer, most - steps, _TURNS_BEYOND)[0]
        safest.settle()
        self.lost |= safest.lost
        return steps

    def _refine(self, small: Block, c: np.ndarray, K: tuple[np.ndarray, np.ndarray], most: int) -> int:
        """Improve γ by a more exact K; the slopes remain those of K as it is."""
        small.gamma[:], steps = exact_arithmetic.improve(K, self.program, small.gamma, most)
        small.refresh(c)
        self.refined = True
        return steps

    def _violation(self) -> float:
        p = self.program
        _, _, worst = violations(self.slopes(), self.gamma, p.lo, p.hi, p.split, p.balanced)
        return float(worst.max())

    def computed(self, K: WritableRows, chosen: np.ndarray) -> np.ndarray:  # (q, q)
        """K of a working set: what the last one had in common with it is copied, the rest computed."""
        points = self.points[self.program.position[chosen]]
        block = self._room(len(points), K.dtype)
        k = 0
        if self.block is not None:
            where = np.full(self.size, -1, np.int64)
            where[self.last] = np.arange(len(self.last))
            kept = where[chosen]
            k = int(np.count_nonzero(kept >= 0))  # they come first
            half = -(-k // 2)
            run(
                lambda a: smo.gather(self.block, kept[a : min(a + half, k)], kept[:k], block[a:]),
                range(0, k, max(half, 1)),
            )
        K.write_block(points[k:], points, block[k:])
        block[:k, k:] = block[k:, :k].T
        self.block = block
        return block

    def _room(self, q: int, dtype: Any) -> np.ndarray:  # (q, q)
        """Memory for the next working set's K beside the last one's, the same two in turn."""
        self.turn = 1 - self.turn
        if self.memory[self.turn].size < q * q:
            # There is room to grow: memory that is not written to costs nothing.
            self.memory[self.turn] = np.empty(4 * q * q, dtype)
        return self.memory[self.turn][: q * q].reshape(q, q)

    def is_unbounded(self) -> bool:
        """Whether there is no minimum, to the precision of the arithmetic: γ may grow for ever.

        Any γ ≠ 0 has γᵀKγ ≥ ρ² (Σ|γ|)², ρ half the distance of the convex hulls of the classes: ρ is 0 then.
        """
        if np.isfinite(self.program.lo).all() and np.isfinite(self.program.hi).all():
            return False
        total = np.abs(self.gamma).sum()
        square = (self.gamma * self.values[self.program.position]).sum()
        # A comparison with what has overflowed is false, hence the "not".
        return bool(total > 0 and not square > _FLAT * self.diag.max() * total**2)

    def watch(self, tol: float) -> None:
        """Notice when rounding, or the absence of a minimum, keeps the rounds from getting anywhere."""
        if self.is_unbounded():
            self.stopped = Stop.UNBOUNDED
            return
        objective = self.objective()
        violation, lowest = self.best
        is_whole = len(self.last) == self.size
        # γᵀKγ is a sum of terms that may be much larger than itself
        terms = float((np.abs(self.gamma) * self.sizes[self.program.position]).sum()) ** 2
        least = max((_PROGRESS if is_whole else 1e-15) * abs(lowest), 2.0**-52 * terms)
        if is_whole:
            width = self.program.hi - self.program.lo
            least = max(least, _PART_OF_THE_GAP * tol * float(width[np.isfinite(width)].sum()))
        if self.worst < 0.9 * violation or lowest == np.inf or objective < lowest - least:
            self.stalled = 0
            self.best = (min(self.worst, violation), min(objective, lowest))
        else:
            self.stalled += 1
            few = 1 if self.lost else _WHOLE_ROUNDS_WITHOUT_PROGRESS
            if self.stalled >= (few if is_whole else _ROUNDS_WITHOUT_PROGRESS):
                self.stopped = Stop.ROUNDING

    def solution(self, stopped: Stop, tau: float, single: bool) -> Solution:
        """Where it ended, with K known up to ``tau``; see ``rounding``."""
        p, v = self.program, self.slopes()
        coef = np.bincount(p.position, np.abs(self.gamma), minlength=len(self.points))
        error = slope_errors(self.sizes, coef, tau, single)
        blur = float((coef * error).sum())
        error = error[p.position]
        groups = [slice(0, p.split), slice(p.split, self.size)]
        found = [
            smo.measure(v[g], self.gamma[g], p.lo[g], p.hi[g], error[g], p.balanced)
            for g in groups[: 1 if p.split == self.size else 2]
        ]
        level, violation, gap, bound = zip(*found, strict=True)
        objective = -0.5 * float((self.gamma * (p.c + v)).sum())
        return Solution(
            gamma=self.gamma,
            values=self.values,
            level=level,
            objective=objective,
            gap=sum(gap),
            violation=max(violation),
            bound=max(bound),
            blur=blur,
            iterations=self.steps,
            stopped=stopped,
        )


def _at_bounds(gamma: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """γ, exactly at its bounds where it is there up to rounding."""
    with np.errstate(invalid="ignore"):
        near = np.where(np.isfinite(hi - lo), smo.EDGE * (hi - lo), 0.0)
    return np.where(gamma - lo <= near, lo, np.where(hi - gamma <= near, hi, gamma))
