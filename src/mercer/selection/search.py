r"""The search: kernels with learned parameters, compared on points that they were not learned from.

1. The points are shuffled and cut into a part to learn on and a part to score on; where there are few, it is
   done both ways.
2. Each family is learned twice from the evidence: with the ratios of its columns as they are, and then with
   one parameter per column where there are points enough for that. Each of the two is a trial.
3. The best trials go on to more points (successive halving), from the parameters they have.
4. The winner is learned on as many points as one can afford.

Under a time limit the steps of a trial are timed on few points. If all trials would not come to their end on
as many points as usual, they take fewer: a slow or busy machine compares the same kernels, more coarsely. No
trial may take more than twice its share of the time, and a rung that would not be finished is not begun.

The score of a trial is the task's: see `mercer.selection.scores`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError

from mercer.data import points as data
from mercer.kernels.base import Kernel
from mercer.kernels.words import short_name
from mercer.runtime.clock import now
from mercer.runtime.config import memory_budget, thread_count
from mercer.runtime.threads import run
from mercer.selection.evidence import evidence, learn
from mercer.selection.families import Family

__all__ = ["Clock", "Score", "Search", "Trial", "affordable_points"]

_RUNGS = (1000, 2000)  # points that are learned on, in turn
_KEPT = 3  # trials that go on
_MATRICES, _VECTORS = 6, 1000  # n × n and n, that learning and scoring take
_PER_COLUMN = 5  # points that a parameter of its own takes
_STEPS = (8, 30)  # uphill, at least and at most
#: points on which a step is timed, the second number unless the first takes more than this part of the time
_PROBES, _PART = (60, 250), 0.05
_EVALUATIONS = 25  # of the evidence in a trial, about
_POWER = 2.3  # of the number of points, that a trial's time grows with
_LEAST = 100  # points of a trial, however little time there is
_SHARES = 2.0  # of the time for all trials divided by their number, that one of them may take


@dataclass(frozen=True)
class Score:
    """What a kernel is worth on some points, at the best penalty that was tried."""

    #: the error: less is better
    error: float
    #: what decides between equal errors: less is better
    tie: float
    #: the penalty
    penalty: float


@dataclass(frozen=True, eq=False)
class Trial:
    """One kernel that was tried."""

    kernel: Kernel
    #: λ beside K, by the evidence
    noise: float
    score: Score
    #: points it was learned on, and as many to score it
    points: int
    #: whether each column has a parameter of its own
    per_column: bool
    seconds: float
    family: Family
    #: L per point, of the points it was learned on; comparable on the same ones
    evidence: float

    @property
    def rank(self) -> tuple[float, float]:
        """By which trials on the same points are ordered."""
        return self.score.error, self.score.tie

    @property
    def name(self) -> str:
        """A short one, for people."""
        return short_name(self.kernel) + (", a scale per column" if self.per_column else "")

    def __str__(self) -> str:
        return f"{self.score.error:.4g} on {self.points} points, {self.seconds:.1f} s: {self.kernel!r}"


class Clock:
    """A time limit that can be shared out.

    >>> Clock(None).is_over, Clock(0.0).part(0.5).is_over
    (False, True)
    """

    def __init__(self, seconds: float | None) -> None:
        self.end = np.inf if seconds is None else now() + seconds

    def part(self, share: float) -> Clock:
        """A clock that ends when this share of what is left is gone."""
        clock = Clock(None)
        clock.end = now() + share * self.left
        return clock

    def shares(self, count: int) -> list[float]:
        """When each of so many equal shares of what is left ends."""
        began, left = now(), self.left
        return [began + left * (number + 1) / count for number in range(count)]

    @property
    def is_over(self) -> bool:
        return now() >= self.end

    @property
    def left(self) -> float:
        """Seconds."""
        return self.end - now()


ScoreOf = Callable[[Kernel, float, np.ndarray], Score]
#: a family, the kernel and λ to begin from, and whether each column has a parameter of its own
Candidate = tuple[Family, Kernel, float | None, bool]
#: one after the other: a later one may begin from what an earlier one gave
Candidates = Iterator[Candidate]


class Search:
    """Trials of families on the points X with the targets Y, scored by ``score(kernel, noise, which)``."""

    def __init__(
        self,
        X: Any,
        Y: np.ndarray,  # (n, t) targets of the evidence
        score: ScoreOf,
        *,
        clock: Clock,
        seed: int = 0,
        work: float = np.inf,
        step: Callable[[Trial], bool] = lambda trial: True,
    ) -> None:
        self.X, self.Y, self.score = X, Y, score
        self.clock = clock
        #: points times steps uphill of a trial, about
        self.work = work
        self.order = np.random.default_rng(seed).permutation(len(Y))
        #: told of every trial; False ends the search
        self.step = step
        self.trials: list[Trial] = []
        #: points that whoever goes on begins with: many, unless time made the trials take fewer
        self.first = 2 * _RUNGS[-1]
        #: as in a report
        self.stopped = "converged"
        #: whether time was too short for a part of what would have been tried
        self.is_cut = False

    def run(self, families: Sequence[Family]) -> list[Trial]:
        """All trials; those of the last rung, the best first."""
        usual = self._points(_RUNGS[0])
        first = self._affordable(families, usual)
        if first < usual:
            self.first, self.is_cut = first, True
        best = self._rung([self._first(family, first) for family in families], first, 2 * len(families))
        for points in [usual] * (first < usual) + [
            p for p in _RUNGS[1:] if p <= self._points(len(self.Y) - 1)
        ]:
            kept = best[:_KEPT]
            if len(kept) == 1:
                break
            growth = self._size(points) / self._size(kept[0].points)
            seconds = growth * sum(t.seconds for t in kept) / min(len(kept), self._at_a_time(points))
            if self.clock.is_over or seconds > self.clock.left:
                self.is_cut = True
                break
            again = [iter([(t.family, t.kernel, t.noise, t.per_column)]) for t in kept]
            best = self._rung(again, points, len(kept)) or best
        return best

    def finish(self, trial: Trial, points: int) -> Trial:
        """The trial with its parameters learned on more points."""
        which = self.order[: self._points(points)]
        learned_on = self._parts(trial.points)[-1][0]
        if not trial.family.names or self.clock.is_over or len(which) <= len(learned_on):
            return trial
        learned = self._learn(trial.family, trial.kernel, trial.noise, which, not trial.per_column)
        return replace(trial, kernel=learned.kernel, noise=learned.noise, evidence=learned.value)

    def evidence(self, trial: Trial, points: int) -> float:
        """L per point of the trial as it is, on those that `finish` would learn on; nan if K is singular."""
        which = self.order[: self._points(points)]
        Y = self.Y[which]
        with suppress(LinAlgError):
            L, _, _ = evidence(trial.kernel, data.take(self.X, which), Y - Y.mean(axis=0), trial.noise)
            return L / len(which)
        return np.nan

    # --- the steps -------------------------------------------------------------------------------------

    def _affordable(self, families: Sequence[Family], points: int) -> int:
        """Of so many points as many as let all trials come to their end in time."""
        if not np.isfinite(self.clock.end) or not families:
            return points
        sizes, seconds = [], []
        for probe in (probe for probe in _PROBES if probe <= max(len(self.Y), _PROBES[0])):
            began, left = now(), self.clock.left
            which = self.order[:probe]
            sizes.append(len(which) ** _POWER)
            seconds.append(self._trial_seconds(families[0], which))
            if now() - began > _PART * left:
                break
        share = max(self.clock.left, 0.0) / (2 * len(families) * len(self._parts(points)))
        share *= min(len(families), self._at_a_time(points))
        if len(sizes) == 1:
            slope, fixed = max(seconds[0] / sizes[0], 1e-15), 0.0  # a coarse clock may say 0 seconds
        else:
            slope = max((seconds[1] - seconds[0]) / (sizes[1] - sizes[0]), 1e-15)
            fixed = max(seconds[0] - slope * sizes[0], 0.0)
        return int(min(points, max(_LEAST, (max(share - fixed, 0.0) / slope) ** (1 / _POWER))))

    def _size(self, points: int) -> float:
        """What the time of a trial on so many points is in proportion to, about."""
        return float(sum(len(part) ** _POWER for part, _ in self._parts(points)))

    def _trial_seconds(self, family: Family, which: np.ndarray) -> float:
        """How long a trial on these points takes, about: the steps uphill from the better of two."""
        X, Y, steps = data.take(self.X, which), self.Y[which], []
        for _ in range(2):
            began = now()
            with suppress(LinAlgError):
                evidence(family.kernel, X, Y - Y.mean(axis=0), 1.0, family.names)
            steps.append(now() - began)
        began = now()
        self.score(family.kernel, 1.0, which)
        return _EVALUATIONS * min(steps) + now() - began

    def _first(self, family: Family, points: int) -> Candidates:
        """The family as it is; then from what that gave, the last trial, with a parameter for each column."""
        yield family, family.kernel, None, False
        done = next(trial for trial in reversed(self.trials) if trial.family is family)
        if family.columns > 0 and len(self._parts(points)[0][0]) >= _PER_COLUMN * (family.columns + 1):
            yield family, done.kernel, done.noise, True

    def _rung(self, chains: Sequence[Candidates], points: int, count: int) -> list[Trial]:
        """Trials of the candidates, ``count`` at most, the best first: a thread for each chain of them."""
        made: dict[tuple[int, int], Trial] = {}
        guard = Lock()
        threads = min(len(chains), self._at_a_time(points))
        begun = 0

        def task(number: int) -> None:
            nonlocal begun
            for place, candidate in enumerate(chains[number]):
                if made and self.clock.is_over:
                    self.is_cut = True
                    return
                with guard:
                    share = min(1.0, _SHARES * threads / max(count - begun, 1))
                    begun += 1
                trial = self._trial(candidate, points, self.clock.part(share))
                with guard:
                    made[number, place] = trial
                    self.trials.append(trial)
                    if not self.step(trial):
                        self.clock.end = -np.inf

        before = len(self.trials)
        run(task, range(len(chains)), threads)
        trials = [made[key] for key in sorted(made)]  # as if they had been made one after the other
        self.trials[before:] = trials
        return sorted(trials, key=lambda trial: trial.rank)

    def _trial(self, candidate: Candidate, points: int, clock: Clock) -> Trial:
        """One trial, which ends with its clock; its parts are learned side by side where threads are left."""
        family, kernel, noise, per_column = candidate
        began, parts = now(), self._parts(points)
        ends = clock.shares(len(parts)) if thread_count() == 1 else [clock.end] * len(parts)
        done: list[Any] = [None] * len(parts)

        def task(i: int) -> None:
            learn_on, score_on = parts[i]
            learned = self._learn(family, kernel, noise, learn_on, not per_column, ends[i])
            self.is_cut |= now() >= ends[i]
            done[i] = learned, self.score(learned.kernel, learned.noise, score_on)

        run(task, range(len(parts)))
        learned, _ = done[-1]
        score = _mean([score for _, score in done])
        seconds = now() - began
        return Trial(learned.kernel, learned.noise, score, points, per_column, seconds, family, learned.value)

    def _at_a_time(self, points: int) -> int:
        """Threads that learn and score, as many as memory has room for."""
        each = 8 * points * (_MATRICES * points + _VECTORS)
        return max(1, min(thread_count(), memory_budget() // each))

    def _points(self, points: int) -> int:
        """As many of these as there are, and as the memory budget has room for."""
        return max(min(points, len(self.Y), affordable_points()), 2)

    def _parts(self, points: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Points to learn on and points to score on; both ways where there are few."""
        n = len(self.Y)
        if n >= 2 * points:
            return [(self.order[:points], self.order[points : 2 * points])]
        half = min(n // 2, points)
        first, second = self.order[:half], self.order[half : 2 * half + n % 2]
        return [(first, second), (second, first)]

    def _learn(
        self,
        family: Family,
        kernel: Kernel,
        noise: float | None,
        which: np.ndarray,
        tied: bool,
        end: float | None = None,
    ) -> Any:
        return learn(
            kernel,
            data.take(self.X, which),
            self.Y[which],
            family.names,
            noise,
            tied=tied,
            iterations=int(min(max(self.work / len(which), _STEPS[0]), _STEPS[1])),
            deadline=self.clock.end if end is None else end,
        )


def affordable_points() -> int:
    """How many points may have the handful of matrices that learning takes."""
    half = _VECTORS / (2 * _MATRICES)
    return int(np.sqrt(half**2 + memory_budget() / (8 * _MATRICES)) - half)


def _mean(scores: list[Score]) -> Score:
    middle = scores[len(scores) // 2]
    error, tie = (float(np.mean([getattr(s, name) for s in scores])) for name in ("error", "tie"))
    penalty = float(np.exp(np.mean([np.log(s.penalty) for s in scores])))
    return replace(middle, error=error, tie=tie, penalty=penalty)
