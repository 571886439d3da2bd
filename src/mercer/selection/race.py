r"""A width and a C, chosen together: many on few points, the better of them on more.

The cells of the table (widths, `PENALTIES`) are scored by errors over folds. On every rung there are twice
the points, and the cells that did best go on; of few points there is one rung, and its folds are repeated.
Single errors are noisy: where all cells were scored, what is compared is the mean with the neighbouring ones
(of a part of them it would favour cells without neighbours). On the last rung the best cell has all its
neighbours scored, and the best few are compared over other folds, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mercer.kernels.base import Kernel
from mercer.runtime.clock import now
from mercer.selection.scores import PENALTIES, MachineErrors, beside, neighbours
from mercer.selection.search import Clock, Score

#: Up to so many points, folds are cut in several rounds: the errors of few points vary most.
_REPEATED_UP_TO, _ROUNDS = 1000, range(5)
#: All of these are choices between time and noise: points of the rungs, the share of the cells that goes on,
#: how often the neighbours of the best cell are scored, and how many cells are scored over other folds too.
_RUNGS = (1280, 2560, 5120, 10240)
_SHARE_KEPT, _MOST_CLIMBS = 1 / 3, 4
_FINALISTS, _FINAL_ROUNDS = 5, (1, 2)
_LONGER_RUNG = 2.0  # A rung is begun if this times the time of the one before is left.


@dataclass(frozen=True, eq=False)
class Winner:
    """The cell that won: the number of its kernel, its score, and on how many points."""

    number: int
    score: Score
    points: int


def race(
    score: MachineErrors, kernels: Sequence[Kernel], order: np.ndarray, clock: Clock, first: int = _RUNGS[0]
) -> Winner:
    """The best of the kernels and its C, on the last of the points in this order, ``first`` of them first."""
    alive = np.ones((len(kernels), len(PENALTIES)), dtype=bool)
    table, seconds = _Table(score, kernels, order[:0], clock), 0.0
    for points in _rungs(len(order), first):
        if len(table.which) and clock.left < _LONGER_RUNG * seconds:
            return table.winner(table.best(1))
        began = now()
        table = _Table(score, kernels, order[-points:], clock)
        table.fill(alive)
        alive = table.best(max(int(_SHARE_KEPT * alive.sum()), 1))
        seconds = now() - began
    for _ in range(_MOST_CLIMBS):
        around = _neighbouring(table.best(1)) & np.isnan(table.errors)
        if not around.any() or clock.is_over:
            break
        table.fill(around)
    if len(table.which) <= _REPEATED_UP_TO or clock.left < seconds:
        return table.winner(table.best(1))
    last = table.best(_FINALISTS)
    table.fill(last, _FINAL_ROUNDS)
    return table.winner(last)


def _neighbouring(cells: np.ndarray) -> np.ndarray:
    """The cells beside some, and these.

    >>> _neighbouring(np.array([[True, False, False], [False, False, False]])).astype(int)
    array([[1, 1, 0],
           [1, 0, 0]])
    """
    return np.logical_or.reduce([cells, *beside(cells, 0), *beside(cells, 1)])


class _Table:
    """Errors of kernels and C on some points; nan where a cell was not scored."""

    def __init__(
        self, score: MachineErrors, kernels: Sequence[Kernel], which: np.ndarray, clock: Clock
    ) -> None:
        self.score, self.kernels, self.which, self.clock = score, kernels, which, clock
        shape = (len(kernels), len(PENALTIES))
        self.total, self.rounds, self.penalties = np.zeros(shape), np.zeros(shape), np.full(shape, np.nan)

    def fill(self, cells: np.ndarray, rounds: Sequence[int] = (0,)) -> None:
        """Score these, the middle kernel first, until the time is over; cells side by side are one path."""
        rounds = _ROUNDS if len(self.which) <= _REPEATED_UP_TO else rounds
        for row in sorted(range(len(self.kernels)), key=lambda row: abs(row - len(self.kernels) // 2)):
            if self.clock.is_over and self.rounds.any():
                return
            kernel = self.kernels[row]
            ends = np.flatnonzero(np.diff(cells[row], prepend=False, append=False))
            for part in (slice(*pair) for pair in ends.reshape(-1, 2)):
                errors, self.penalties[row, part] = self.score.path(
                    kernel, self.which, rounds, part, end=self.clock.end
                )
                self.total[row, part] += len(rounds) * errors
                self.rounds[row, part] += len(rounds)

    @property
    def errors(self) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            return self.total / self.rounds

    @property
    def compared(self) -> np.ndarray:
        errors = self.errors
        return errors if np.isnan(errors).any() else neighbours(errors)

    def best(self, count: int) -> np.ndarray:
        """The best cells, so many of them; of equal ones, those with the smaller C come first."""
        values = np.where(self._same, np.nan, self.compared)
        order = np.lexsort((np.tile(np.arange(values.shape[1]), len(values)), values.ravel()))
        found = np.zeros(values.shape, dtype=bool)
        found.ravel()[order[: min(count, np.isfinite(values).sum())]] = True
        return found

    @property
    def _same(self) -> np.ndarray:
        """The cells at the end of a path that have the same errors as the C before them.

        From where a machine has no point at its bound, a larger C is the same machine.
        """
        errors = self.errors
        same, is_end = np.zeros(errors.shape, dtype=bool), np.ones(len(errors), dtype=bool)
        for column in range(errors.shape[1] - 1, 0, -1):
            unknown = np.isnan(errors[:, column])
            is_end = unknown | (is_end & (errors[:, column] == errors[:, column - 1]))
            same[:, column] = is_end & ~unknown
        return same

    def winner(self, cells: np.ndarray) -> Winner:
        """The best of these cells."""
        values = np.where(cells, self.compared, np.nan)
        number, column = np.unravel_index(int(np.nanargmin(values)), values.shape)
        tie = float(np.nanmean(self.errors))
        found = Score(float(values[number, column]), tie, float(self.penalties[number, column]))
        return Winner(int(number), found, len(self.which))


def _rungs(n: int, first: int = _RUNGS[0]) -> list[int]:
    """Numbers of points, up to n: from where a slow machine had to begin, twice as many each time.

    >>> _rungs(3000), _rungs(3000, 300), _rungs(500)
    ([1280, 3000], [320, 640, 1280, 3000], [500])
    """
    before = [_RUNGS[0] // 2**k for k in range(6, 0, -1)]
    steps = [*(points for points in before if points >= first), *_RUNGS]
    return [*(points for points in steps if points < n / 1.5), min(n, _RUNGS[-1])]
