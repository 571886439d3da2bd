r"""A small quadratic program in arithmetic of 106 bits, where float64 cannot tell its points apart.

Minimise  ½ γᵀKγ - cᵀγ   over   lo ≤ γ ≤ hi,   with  Σγ  fixed in each of one or two groups, or in none

Given     K as the sum of two float64 matrices (``twofold``), and a γ to start from
Method    pairs, and Newton's steps on the variables between their bounds (``exact_steps``), as in ``block``
Stop      when the gap is a trifle of the objective, when nothing falls any more, or when the work is done
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mercer.runtime.twofold import UNIT, add
from mercer.solvers.svm import smo
from mercer.solvers.svm.exact_steps import FLAT, look, newton, pairs

if TYPE_CHECKING:
    from mercer.solvers.svm.program import QuadraticProgram

#: A problem of more variables is left as it is: its n² values of K would be computed in twice the digits.
MOST_VARIABLES = 256
_PAIRS = 2  # steps by pairs, per variable, in a turn
_TRIFLING_GAP = 1e-6  # a gap below this part of the objective is a trifle
_TURNS_WITHOUT_PROGRESS = 9  # Turns in a row that lower the objective by less than _PROGRESS end the run.
_PROGRESS = 1e-9  # This part of the objective is the least progress.
_MULTIPLICATIONS = 1e8  # A run makes no more of them; they take some seconds.
_UNITS = 128  # by which values of K may be off, relative to ‖φ‖ ‖φ'‖: some (d + 16)p for powers of ⟨x, x'⟩
_ROUNDED = 1e-12  # a sum below this part of its terms is 0
_MULTIPLICATIONS_OF_A_TURN = 1e5  # A turn counts as so many at least, however few variables there are.


def improve(
    K: tuple[np.ndarray, np.ndarray], program: QuadraticProgram, gamma: np.ndarray, most: int
) -> tuple[np.ndarray, int]:  # (q,)
    """A γ that is no worse than the one given, and the steps by pairs, at most ``most``.

    K is that of the points of the program, the sum of two (m, m) matrices. Two points of different classes,
    2²⁰ from 0 and 2⁻²² from each other: γ = ±2⁴⁵, where float64 sees no distance.

    >>> from mercer.solvers.svm.program import QuadraticProgram
    >>> x = np.array([2.0**20, 2.0**20 + 2.0**-22])
    >>> K = np.outer(x, x), np.array([[0.0, 0.0], [0.0, 2.0**-44]])
    >>> lo, hi = np.array([0.0, -1e20]), np.array([1e20, 0.0])
    >>> program = QuadraticProgram(np.array([1.0, -1.0]), lo, hi, np.zeros(2), np.arange(2), 2)
    >>> improve(K, program, np.zeros(2), 100)[0] / 2.0**45
    array([ 1., -1.])
    """
    K, program = _distinct(K, program)
    state = _State(K, program, gamma)
    start = state.certain
    steps = state.descend(most)
    found = np.clip(state.g[0], program.lo, program.hi)
    return (found, steps) if _State(K, program, found).certain < start else (gamma, steps)


class _State:
    """A program and where it is: γ, as two float64 for each variable, Kγ, the slopes and the objective."""

    def __init__(
        self, K: tuple[np.ndarray, np.ndarray], program: QuadraticProgram, gamma: np.ndarray
    ) -> None:
        p = self.program = program
        q = len(gamma)
        self.groups = [slice(0, p.split), slice(p.split, q)][: 1 if p.split == q else 2]
        self.K, self.size = K, K[0].diagonal()[p.position]
        self.root = np.sqrt(np.abs(K[0].diagonal()))
        self.g, self.f, self.v = np.array([gamma, np.zeros(q)]), np.zeros((2, len(K[0]))), np.zeros((2, q))
        self.coef = np.zeros((2, len(K[0])))
        self.problem = (*K, p.c, p.lo, p.hi, self.g, self.f, p.position, p.split, p.balanced)
        if p.balanced:
            self._mend()
        self.look()

    def look(self) -> None:
        """Kγ, the slopes and the objective, computed anew."""
        p = self.program
        self.objective = float(look(*self.K, p.c, self.g, self.f, p.position, self.v, self.coef))

    def is_free(self) -> np.ndarray:  # (q,)
        return np.asarray((self.g[0] > self.program.lo) & (self.g[0] < self.program.hi))

    def descend(self, most: int) -> int:
        """Pairs and Newton's steps in turn; returns the steps by pairs, at most ``most``.

        Many pairs by their gain, then one, then the one that violates most: a point that is much larger than
        the others gains little by itself, and much together with those that Newton's step moves.
        """
        q = len(self.program.c)
        scratch = np.empty((2, q, q)), np.empty((4, 2, q)), np.empty((3, q), np.int64)
        unit = _distances(*self.K)
        turns = ((unit, _PAIRS * q), (unit, 1), (np.ones_like(unit), 1))
        steps, stalled, work = 0, 0, 0.0
        best, found = self.certain, self.g.copy()
        while work < _MULTIPLICATIONS and stalled < _TURNS_WITHOUT_PROGRESS and steps < most:
            for by, some in turns:
                last = self.objective
                taken = int(pairs(*self.problem, by, self.v, min(some, most - steps)))
                steps, work = steps + taken, work + _MULTIPLICATIONS_OF_A_TURN + taken * q**2 / 4
                blocked = True
                while blocked and work < _MULTIPLICATIONS:
                    work += float(self.is_free().sum()) ** 3 / 3 + q**2
                    blocked = newton(*self.problem, *scratch)
                self.look()
                fallen = last - self.objective
                stalled = 0 if fallen > max(_PROGRESS * abs(last), self.noise()) else stalled + 1
                if self.certain < best:
                    best, found = self.certain, self.g.copy()
                if self.gap() <= _TRIFLING_GAP * abs(self.objective):
                    self.g[:] = found
                    return steps
        self.g[:] = found
        return steps

    def noise(self) -> float:
        """What rounding does to the objective, even here: γᵀKγ is a sum of terms that may be much larger."""
        gamma = np.bincount(self.program.position, self.g[0], minlength=len(self.root))
        return _UNITS * UNIT * float((self.root * np.abs(gamma)).sum()) ** 2

    @property
    def certain(self) -> float:
        """The objective, at most."""
        return self.objective + self.noise()

    def gap(self) -> float:
        """The primal value minus the dual one."""
        p, v, g, none = self.program, self.v[0], self.g[0], np.zeros(self.g.shape[1])
        found = [smo.measure(v[s], g[s], p.lo[s], p.hi[s], none[s], p.balanced) for s in self.groups]
        return float(sum(gap for _, _, gap, _ in found))

    def _mend(self) -> None:
        """Sums of γ are made what they should be to the last digit: 0, or the opposite of each other.

        The smallest point between its bounds takes what is missing: there it does least.
        """
        sums = [math.fsum(self.g[0, s]) for s in self.groups]
        if abs(sum(sums)) > _ROUNDED * np.abs(self.g[0]).sum():
            return
        free = np.flatnonzero(self.is_free())
        if len(free):
            r = free[self.size[free].argmin()]
            self.g[:, r] = add(self.g[0, r], 0.0, -math.fsum(self.g[0]), 0.0)


def _distinct(
    K: tuple[np.ndarray, np.ndarray], program: QuadraticProgram
) -> tuple[tuple[np.ndarray, np.ndarray], QuadraticProgram]:
    """Equal points as one: what they have in common cancels exactly then, however large it is."""
    _, first, same = np.unique(np.hstack(K), axis=0, return_index=True, return_inverse=True)
    high, low = (np.ascontiguousarray(part[np.ix_(first, first)]) for part in K)
    return (high, low), replace(program, position=same.reshape(-1)[program.position])


def _distances(high: np.ndarray, low: np.ndarray) -> np.ndarray:  # (m + 1, m + 1)
    """‖φ_a - φ_b‖² of the points and the origin, in float64, and at least what rounding may hide."""
    high, low = np.pad(high, (0, 1)), np.pad(low, (0, 1))
    size = high.diagonal()
    part = (size - high) + (low.diagonal() - low)  # the parts that cancel are subtracted first: exactly
    return np.maximum(part + part.T, FLAT * (size + size[:, None]) + 1e-300)
