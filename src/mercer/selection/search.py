r"""The search: kernels with learned parameters, compared on points that they were not learned from.

1. The points are shuffled and cut into a part to learn on and a part to score on; where there are few, it is
   done both ways.
2. Each family is learned twice from the evidence: with the ratios of its columns as they are, and then with
   one parameter per column where there are points enough for that. Each of the two is a trial.
3. The best trials are scored on more points, with the parameters they have.
4. The winner is learned on more points.

Most steps of learning are made on a part of the points, and the last few on all of them: a step costs the
cube of their number.

Under a time limit the steps of a trial are timed on few points. If all trials would not come to their end on
as many points as usual, they take fewer: a slow or busy machine compares the same kernels, more coarsely. No
trial may take more than twice its share of the time, and a rung that would not be finished is not begun.

Points that belong together (`mercer.data.apart`) are on one side of every such cut, or those to learn on are
before those to score on.

A trial needs nothing but its `Bench`, and may be made anywhere: by a thread of ours, or by a worker of the
cluster that is configured (`mercer.cluster.trials`), which gives the same trial.

The score of a trial is the task's: see `mercer.selection.scores`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Protocol, Self

import numpy as np
from scipy.linalg import LinAlgError

from mercer.cluster.trials import Team
from mercer.data import points as data
from mercer.data.apart import Apart
from mercer.data.types import Points
from mercer.kernels.base import Kernel
from mercer.runtime.clock import now
from mercer.runtime.config import memory_budget, thread_count
from mercer.runtime.threads import run
from mercer.selection.evidence import Learned, evidence, learn
from mercer.selection.families import Family
from mercer.selection.gradients import learn_map
from mercer.selection.trial import Score, Trial
from mercer.solvers.result import Stop

#: points that all trials learn on, and as many others score them; points that score the best again, if there
#: are so many times as many as before, at least
_RUNGS, _LEAST_MORE = (1000, 2000), 1.5
_TRIALS_KEPT = 3  # trials that go on to the next rung
_MATRICES_HELD, _VECTORS_HELD = 6, 1000  # arrays (n, n) and (n,) that learning and scoring hold in memory
_POINTS_PER_COLUMN = 5  # points that a column needs to have a parameter of its own: a choice
_GRADIENT_STEPS = (8, 30)  # bounds on the number of L-BFGS iterations of a trial
#: Learning begins with this share of the points, if these are so many, and so many for each parameter; it
#: ends with so many iterations on all of them.
_FIRST_SHARE, _LEAST_BEFORE, _POINTS_PER_PARAMETER, _LAST_STEPS = 0.5, 300, 15, 6
_SCORING = 0.25  # The share of its time that a trial is scored in, about.
#: A step is timed on so many points; the second time is left out if the first took this share of the time.
_PROBE_POINTS, _PROBE_SHARE = (60, 250), 0.05
_EVALUATIONS_PER_TRIAL = 25  # how often a trial computes the evidence, about
_TIME_POWER = 2.3  # The time of a trial grows with the number of points to this power.
_LEAST_POINTS = 100  # A trial has so many points, however little time there is.
_SHARES_PER_TRIAL = 2.0  # A trial may take this times the time of all trials divided by their number.


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
        """The seconds that are left."""
        return self.end - now()


class ScoreOf(Protocol):
    """What a kernel, with λ beside K, is worth on some of the points."""

    def __call__(self, kernel: Kernel, noise: float, which: np.ndarray) -> Score: ...

    def of(self, rows: np.ndarray) -> ScoreOf:
        """The same for some of the points, which are numbered anew."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """What becomes a trial."""

    family: Family
    #: the kernel and λ to begin from
    kernel: Kernel
    noise: float | None
    #: whether each column has a parameter of its own
    per_column: bool
    #: the trial that this is, learned already, where it is only scored again
    done: Trial | None = None
    #: whether the parameters were learned on fewer points: then the last steps are enough
    is_near: bool = False


#: These are done one after the other: a later one may begin from what an earlier one gave.
Candidates = Iterator[Candidate]
#: points to learn on, and points to score on
Part = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class Attempt:
    """What came of a candidate."""

    learned: Learned
    score: Score
    seconds: float
    #: whether it ended with its time
    is_cut: bool


@dataclass(frozen=True, eq=False)
class Bench:
    """All that trials need, wherever they are made."""

    X: Points
    Y: np.ndarray  # (n, t) targets of the evidence
    score: ScoreOf
    #: the number of points times L-BFGS iterations of a trial, about
    work: float

    def of(self, rows: np.ndarray) -> Self:
        """The same for some of the points, which are numbered anew."""
        return replace(self, X=data.take(self.X, rows), Y=self.Y[rows], score=self.score.of(rows))

    def learn(self, candidate: Candidate, which: np.ndarray, end: float) -> Learned:
        """The parameters of a candidate, learned on some points until an end on the clock."""
        family, done = candidate.family, candidate.done
        if done is not None:
            return Learned(done.kernel, done.noise, done.evidence, 0)
        most = int(min(max(self.work / len(which), _GRADIENT_STEPS[0]), _GRADIENT_STEPS[1]))
        kernel, noise = candidate.kernel, candidate.noise
        if family.has_map:
            X, Y = data.take(self.X, which), self.Y[which]
            return learn_map(
                kernel, X, Y, noise, deadline=end, **({"rounds": 1} if candidate.is_near else {})
            )
        size = len(family.names) + (family.columns if candidate.per_column else 0)
        some = int(_FIRST_SHARE * len(which))
        stages = [(some, most), (len(which), min(_LAST_STEPS, most))]
        if candidate.is_near:
            stages = stages[1:]
        elif some < max(_LEAST_BEFORE, _POINTS_PER_PARAMETER * size):
            stages = [(len(which), most)]
        for points, iterations in stages:
            learned = learn(
                kernel,
                data.take(self.X, which[:points]),
                self.Y[which[:points]],
                family.names,
                noise,
                tied=not candidate.per_column,
                iterations=iterations,
                deadline=end,
            )
            kernel, noise = learned.kernel, learned.noise
        return learned

    def tried(self, candidate: Candidate, parts: Sequence[Part], seconds: float) -> Attempt:
        """A candidate in so many seconds; its parts are learned side by side where threads are left."""
        began, clock = now(), Clock(seconds)
        ends = clock.shares(len(parts)) if thread_count() == 1 else [clock.end] * len(parts)
        done: list[Any] = [None] * len(parts)

        def task(i: int) -> None:
            learn_on, score_on = parts[i]
            learned = self.learn(candidate, learn_on, ends[i])
            is_cut = now() >= ends[i]
            done[i] = learned, self.score(learned.kernel, learned.noise, score_on), is_cut

        run(task, range(len(parts)))
        learned, scores, are_cut = zip(*done, strict=True)
        return Attempt(learned[-1], _mean(list(scores)), now() - began, any(are_cut))


class Search:
    """Trials of families on the points X with the targets Y, scored by ``score(kernel, noise, which)``."""

    def __init__(
        self,
        X: Points,
        Y: np.ndarray,  # (n, t) targets of the evidence
        score: ScoreOf,
        *,
        clock: Clock,
        seed: int = 0,
        order: np.ndarray | None = None,  # (n,) of the points, at random where it is not given
        work: float = np.inf,
        step: Callable[[Trial], bool] = lambda trial: True,
        apart: Apart | None = None,
    ) -> None:
        self.clock, self.apart = clock, apart
        self.order = np.random.default_rng(seed).permutation(len(Y)) if order is None else order
        #: for points that are kept apart: which of them, in their order, are on the side that is learned on
        self._is_first: np.ndarray | None = None
        if apart is not None:
            self.order, self._is_first = _by_turns(self.order, apart.sides(seed))
        self.bench, self._team = Bench(X, Y, score, work), Team()
        #: The bench of trials: a cluster is sent no more than the points that these take, in their order.
        self._sent = self.bench.of(self.order[: 2 * _RUNGS[-1]]) if self._team.is_elsewhere else None
        #: This is told of every trial, and ends the search by returning False.
        self.step = step
        #: all points there are, those of the search first, in their order
        self.rows = self.order
        self.trials: list[Trial] = []
        #: the number of points to go on with: many, unless time made the trials take fewer
        self.first = 2 * _RUNGS[-1]
        #: why the search ended
        self.stopped = Stop.CONVERGED
        #: whether time was too short for a part of what would have been tried
        self.is_cut = False

    def run(self, families: Iterable[Family]) -> list[Trial]:
        """Run all trials and return those of the last rung, the best first."""
        families = self._in_time(families)
        usual = self._points(_RUNGS[0])
        first = self._affordable(families, usual)
        if first < usual:
            self.first, self.is_cut = first, True
        chains = [self._first(family, first) for family in families]
        best = self._rung(chains, self._parts(first), 2 * len(families))
        if first < usual and self._has_time(best, usual, 1.0):
            again = [Candidate(t.family, t.kernel, t.noise, t.per_column) for t in best[:_TRIALS_KEPT]]
            best = self._rung(map(iter, zip(again)), self._parts(usual), len(again)) or best
        others = self._others(best[0])
        points = min(self._points(_RUNGS[1]), len(others))
        if points >= _LEAST_MORE * best[0].points and self._has_time(best, points, _SCORING):
            again = [Candidate(t.family, t.kernel, t.noise, t.per_column, t) for t in best[:_TRIALS_KEPT]]
            parts = [(others[:0], others[:points])]
            best = self._rung(map(iter, zip(again)), parts, len(again)) or best
        return best

    def _has_time(self, best: Sequence[Trial], points: int, share: float) -> bool:
        """Whether there is time for the best trials on so many points, for a share of what a trial takes."""
        kept = best[:_TRIALS_KEPT]
        if len(kept) == 1:
            return False
        growth = share * self._size(points) / self._size(kept[0].learned_on)
        seconds = growth * sum(t.seconds for t in kept) / min(len(kept), self._at_a_time(points))
        if self.clock.is_over or seconds > self.clock.left:
            self.is_cut = True
            return False
        return True

    def finish(self, trial: Trial, points: int) -> Trial:
        """The trial with its parameters learned on more points."""
        which = self.order[: self._points(points)]
        if not trial.family.names or self.clock.is_over or len(which) <= trial.learned_on:
            return trial
        candidate = Candidate(trial.family, trial.kernel, trial.noise, trial.per_column, is_near=True)
        learned = self.bench.learn(candidate, which, self.clock.end)
        kernel, noise, L = learned.kernel, learned.noise, learned.value
        return replace(trial, kernel=kernel, noise=noise, evidence=L, learned_on=len(which))

    def evidence(self, trial: Trial, points: int) -> float:
        """L per point of the trial as it is, on those that `finish` would learn on; nan if K is singular."""
        which = self.order[: self._points(points)]
        Y = self.bench.Y[which]
        with suppress(LinAlgError):
            L, _, _ = evidence(trial.kernel, data.take(self.bench.X, which), Y - Y.mean(axis=0), trial.noise)
            return L / len(which)
        return np.nan

    # --- the steps -------------------------------------------------------------------------------------

    def _in_time(self, families: Iterable[Family]) -> list[Family]:
        """The families, or the first of them where time is over before the search begins."""
        found: list[Family] = []
        for family in families:
            if found and self.clock.is_over:
                self.is_cut = True
                break
            found.append(family)
        return found

    def _affordable(self, families: Sequence[Family], points: int) -> int:
        """The largest number of points, at most so many, with which all trials end in time."""
        if not np.isfinite(self.clock.end) or not families:
            return points
        if self.clock.is_over:  # what is timed would be in vain
            return min(points, _LEAST_POINTS)
        sizes, seconds = [], []
        for probe in (probe for probe in _PROBE_POINTS if probe <= max(len(self.order), _PROBE_POINTS[0])):
            began, left = now(), self.clock.left
            which = self.order[:probe]
            sizes.append(len(which) ** _TIME_POWER)
            seconds.append(self._trial_seconds(families[0], which))
            if now() - began > _PROBE_SHARE * left:
                break
        share = max(self.clock.left, 0.0) / (2 * len(families) * len(self._parts(points)))
        share *= min(len(families), self._at_a_time(points))
        if len(sizes) == 1:
            slope, fixed = max(seconds[0] / sizes[0], 1e-15), 0.0  # a coarse clock may say 0 seconds
        else:
            slope = max((seconds[1] - seconds[0]) / (sizes[1] - sizes[0]), 1e-15)
            fixed = max(seconds[0] - slope * sizes[0], 0.0)
        return int(min(points, max(_LEAST_POINTS, (max(share - fixed, 0.0) / slope) ** (1 / _TIME_POWER))))

    def _size(self, points: int) -> float:
        """A number that the time of a trial on so many points is about proportional to."""
        return float(sum(len(part) ** _TIME_POWER for part, _ in self._parts(points)))

    def _trial_seconds(self, family: Family, which: np.ndarray) -> float:
        """About how long a trial on these points takes, by the quicker of two timed steps."""
        X, Y, steps = data.take(self.bench.X, which), self.bench.Y[which], []
        for _ in range(2):
            began = now()
            with suppress(LinAlgError):
                evidence(family.kernel, X, Y - Y.mean(axis=0), 1.0, family.names)
            steps.append(now() - began)
        began = now()
        self.bench.score(family.kernel, 1.0, which)
        return _EVALUATIONS_PER_TRIAL * min(steps) + now() - began

    def _first(self, family: Family, points: int) -> Candidates:
        """The family as it is; then from what that gave, the last trial, with a parameter for each column.

        That of a map is learned as a whole, where there are points for it.
        """
        has_points = len(self._parts(points)[0][0]) >= _POINTS_PER_COLUMN * (family.columns + 1)
        if family.has_map:
            yield from [Candidate(family, family.kernel, None, True)] * has_points
            return
        yield Candidate(family, family.kernel, None, False)
        done = next(trial for trial in reversed(self.trials) if trial.family is family)
        if family.columns > 0 and has_points:
            yield Candidate(family, done.kernel, done.noise, True)

    def _rung(self, chains: Iterable[Candidates], parts: Sequence[Part], count: int) -> list[Trial]:
        """Trials of the candidates, ``count`` at most, the best first; chains of them go side by side."""
        chains, made, guard = list(chains), dict[tuple[int, int], Trial](), Lock()
        learned_on, points = map(len, parts[-1])
        most = 1 if self.clock.is_over else self._at_a_time(points)
        threads = min(len(chains), most)
        begun, before = 0, len(self.trials)

        def wanted(number: int) -> Iterator[tuple[Candidate, Sequence[Part], float]]:
            nonlocal begun
            for candidate in chains[number]:
                if made and self.clock.is_over:
                    self.is_cut = True
                    return
                with guard:
                    share = min(1.0, _SHARES_PER_TRIAL * threads / max(count - begun, 1))
                    begun += 1
                clock = self.clock.part(share)
                # One way of both does where time is over.
                yield candidate, parts[:1] if clock.is_over else parts, clock.left

        def receive(number: int, given: tuple[Candidate, Any, float], tried: Attempt) -> bool:
            candidate, learned = given[0], tried.learned
            trial = Trial(
                learned.kernel,
                learned.noise,
                tried.score,
                points,
                candidate.per_column,
                tried.seconds + (0.0 if candidate.done is None else candidate.done.seconds),
                candidate.family,
                learned.value,
                learned_on if candidate.done is None else candidate.done.learned_on,
            )
            with guard:
                self.is_cut |= tried.is_cut
                made[number, sum(chain == number for chain, _ in made)] = trial
                self.trials.append(trial)
                goes_on = self.step(trial)
                if not goes_on:
                    self.clock.end = -np.inf
            return goes_on

        bench, requests = self._sent or self.bench, [wanted(number) for number in range(len(chains))]
        self._team.follow("kernel", Bench.tried, bench, requests, receive, most)
        trials = [made[key] for key in sorted(made)]  # The order is that of trials made one after the other.
        self.trials[before:] = trials
        return sorted(trials, key=lambda trial: trial.rank)

    def _at_a_time(self, points: int) -> int:
        """How many learn and score at a time: as many as memory has room for, each with a thread."""
        each = 8 * points * (_MATRICES_HELD * points + _VECTORS_HELD)
        return self._team.size(each)

    def _points(self, points: int) -> int:
        """As many of these as there are, and as the memory budget has room for."""
        return max(min(points, len(self.order), affordable_points()), 2)

    @property
    def _order(self) -> np.ndarray:
        """The points in their order, as the bench of trials has them."""
        return self.order if self._sent is None else np.arange(len(self.order))

    def _parts(self, points: int) -> list[Part]:
        """Points to learn on and points to score on, as the bench of trials has them; both ways where few."""
        n, order = len(self.order), self._order
        if self.apart is not None:
            first, second = (order[side][:points] for side in self._sides)
            both = not self.apart.is_ordered and n < 2 * points
            return [(first, second), (second, first)] if both else [(first, second)]
        if n >= 2 * points:
            return [(order[:points], order[points : 2 * points])]
        half = min(n // 2, points)
        first, second = order[:half], order[half : 2 * half + n % 2]
        return [(first, second), (second, first)]

    @property
    def _sides(self) -> tuple[np.ndarray, np.ndarray]:
        """Which places of the order are on the side to learn on, and on the other."""
        assert self._is_first is not None
        return self._is_first, ~self._is_first

    def _others(self, trial: Trial) -> np.ndarray:
        """The points that a trial, and all that belongs to its points, was not learned on."""
        if self.apart is None:
            return self._order[trial.learned_on :]
        is_both = not self.apart.is_ordered and len(self.order) < 2 * _RUNGS[0]
        return self._order[:0] if is_both else self._order[self._sides[1]]


def _by_turns(order: np.ndarray, is_first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The order with points of both sides in turn, and which of them are of the first.

    >>> _by_turns(np.array([0, 1, 2, 3]), np.array([True, True, True, False]))
    (array([0, 3, 1, 2]), array([ True, False,  True,  True]))
    """
    sides = order[is_first[order]], order[~is_first[order]]
    turn = np.concatenate([np.arange(len(side)) for side in sides])
    found = np.concatenate(sides)[np.argsort(turn, kind="stable")]
    return found, is_first[found]


def affordable_points() -> int:
    """The number of points for which memory has room for all matrices that learning takes."""
    half = _VECTORS_HELD / (2 * _MATRICES_HELD)
    return int(np.sqrt(half**2 + memory_budget() / (8 * _MATRICES_HELD)) - half)


def _mean(scores: list[Score]) -> Score:
    middle = scores[len(scores) // 2]
    error, tie = (float(np.mean([getattr(s, name) for s in scores])) for name in ("error", "tie"))
    penalty = float(np.exp(np.mean([np.log(s.penalty) for s in scores])))
    return replace(middle, error=error, tie=tie, penalty=penalty)
