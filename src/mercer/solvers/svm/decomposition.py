r"""Quadratic programs of support vector machines, by decomposition: one solver for all of them.

Minimise  ½ γᵀKγ - cᵀγ   over   lo ≤ γ ≤ hi,   with  Σγ  fixed in each of one or two groups of variables,
          or in none: then λ = 0 below, and a violation is a vᵢ > 0 or a -vⱼ > 0 that may move

Given     K, by rows (a variable belongs to a point; two variables may share one); c, lo, hi; a feasible γ
Slopes    vₜ = cₜ - (Kγ)ₜ: how fast the objective falls as γₜ rises
Optimal   iff some λ per group has  vₜ ≤ λ where γₜ < hiₜ  and  vₜ ≥ λ where γₜ > loₜ
Violation the largest  vᵢ - vⱼ  of a group with γᵢ < hiᵢ and γⱼ > loⱼ
Stop      when the violation is at most ``tol``; or when steps are lost in rounding, which is said
Gap       Σₜ (hiₜ - γₜ)(vₜ - λ)₊ + (γₜ - loₜ)(λ - vₜ)₊: the primal value minus the dual one; at most, where
          rounding leaves the slopes uncertain (``rounding``)

Each round takes a working set: some of the last one, and the variables that violate most from either side,
up to some two thousand. Its own K is one product of matrices; the small problem is solved by pairs, with
Newton's steps where those are slow (``block``, ``smo``); then the rows of the variables that moved are
fetched together, and the slopes of all points follow. Rows are kept while there is room (``rows``).

Several problems over parts of the same points (all pairs of classes, each class against the rest) go through
the rounds together: a row is computed once for all of them, in the segments that are needed, and the small
problems are solved on all threads.

Where K has rows on a device, so have the vectors of all points of one problem (``on_device``): only working
sets come to the host. Rows cost little there, and nothing shrinks.

A large problem shrinks: once most variables rest firmly at a bound, the rest is solved as a problem of its
own, with shorter rows, and the whole is looked at again afterwards; nothing is dropped for good.

Joachims, Making large-scale SVM learning practical, Advances in Kernel Methods (1999): decomposition,
shrinking. Fan, Chen and Lin, JMLR 6 (2005), 1889-1918; Chen, Fan and Lin, A study on SMO-type decomposition
methods for support vector machines, IEEE Transactions on Neural Networks 17 (2006), 893-908: selection,
convergence, also for K that are not positive semi-definite.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer.errors import InputError
from mercer.runtime.config import config, thread_count
from mercer.runtime.threads import run
from mercer.solvers.control import Control, State
from mercer.solvers.matrix import DeviceMatrix, Exact, WritableRows
from mercer.solvers.result import Stop
from mercer.solvers.rounding import sizes
from mercer.solvers.svm import smo
from mercer.solvers.svm.on_device import DeviceIterate, DeviceStore, RowsIterate
from mercer.solvers.svm.program import WHOLE, Iterate, QuadraticProgram, Solution
from mercer.solvers.svm.rows import KeptRows

#: part of the points that may remain of a problem that shrinks
SHRUNK = 0.4
_MOST_STEPS = 10**7  # a problem may take so many where nobody said how many
_LOOK = 10  # rounds after which it is asked again whether the problem may shrink
_SETTLED = 256  # variables that went to a bound, from which their rows are not stored
#: The number of variables up to which problems are solved one after the other, on one thread.
_ONE_THREAD_BELOW = 384
_TOGETHER = 2048  # rows that are fetched together


def solve(
    K: WritableRows,  # (n, n)
    programs: list[QuadraticProgram],
    *,
    bounds: Any = None,
    tol: float = 1e-3,
    max_iter: int = -1,
    cache: int = 2**28,
    largest: int = smo.LARGEST_BLOCK,
    shrinking: bool = True,
    rounding: float = 0.0,
    exact: Exact | None = None,
    device: DeviceMatrix | None = None,
    control: Control | None = None,
) -> list[Solution]:
    """Solve problems that share the rows of one matrix.

    Parameters
    ----------
    K : the kernel matrix, a Gram
    programs : the problems
    bounds : (segments + 1,) where the segments of the points begin and end, by default one of all
    tol : the largest violation to stop at
    max_iter : steps for each problem, at most; -1 for LIBSVM's limit, ten million or a hundred per variable
    cache : bytes of rows that are kept, at most
    largest : variables of a working set, at most 2048; its matrix is stored, for one large problem twice
    shrinking : whether variables that rest at a bound are left aside meanwhile
    rounding : |K̂ᵢⱼ - Kᵢⱼ| is at most this part of √(KᵢᵢKⱼⱼ); the gaps that are stated hold for both
    exact : K of some points with 106 bits, for small problems whose points float64 cannot tell apart
    device : the rows of K on a device, which keeps ``cache`` bytes of them; None where the host computes
    control : counts rounds

    Two points of different classes, k(x, x') = 0 between them: γ = (1, -1).

    >>> from mercer import Gram, Linear
    >>> K = Gram(Linear(), [[1.0, 0.0], [0.0, 1.0]])
    >>> box = QuadraticProgram(
    ...     np.array([1.0, -1.0]), np.array([0.0, -9.0]), np.array([9.0, 0.0]), np.zeros(2), np.arange(2), 2
    ... )
    >>> solve(K, [box])[0].gamma
    array([ 1., -1.])
    """
    bounds = np.array([0, K.shape[0]]) if bounds is None else np.asarray(bounds, np.int64)
    # asking the machine how many threads, and starting them, takes longer than a small problem
    with config(threads=thread_count()), nullcontext() if device is None else device.session():
        run = _Run(
            K,
            programs,
            bounds,
            tol,
            max_iter,
            cache,
            largest,
            shrinking,
            rounding,
            exact,
            device,
            control or Control(),
        )
        try:
            return run.solve()
        finally:
            run.rows.close()


@dataclass(eq=False)
class _Run:
    """All problems, the rows they share, and the rounds."""

    K: WritableRows
    programs: list[QuadraticProgram]
    bounds: np.ndarray
    tol: float
    max_iter: int
    cache: int
    largest: int
    shrinking: bool
    rounding: float
    exact: Exact | None
    device: DeviceMatrix | None
    control: Control
    problems: list[Iterate] = field(init=False)
    rows: KeptRows = field(init=False)
    alone: bool = field(init=False)  # one large problem
    rounds: int = field(init=False)

    def __post_init__(self) -> None:
        diag = np.asarray(self.K.diag(), np.float64)
        if not np.isfinite(diag).all():
            raise InputError(
                f"k(x, x) is not finite for point {int(np.isfinite(diag).argmin())}: rescale the data, or "
                "choose a kernel that does not overflow on them"
            )
        if self.max_iter < 0:
            self.max_iter = max(_MOST_STEPS, 100 * max((len(p.c) for p in self.programs), default=0))
        is_one = len(self.programs) == 1 and len(self.programs[0].c) > WHOLE
        self.alone = is_one and self.device is None
        # a quarter is for the rows of a shrunken problem
        room = self.cache - self.cache // 4 if self.alone and self.shrinking else self.cache
        if self.device is None:
            self.rows = KeptRows(self.K, self.bounds, room)
        else:
            self.rows = DeviceStore(self.device, np.array([0, self.K.shape[0]]), room)
        known: tuple[Any, ...] = self.bounds, diag, sizes(self.K, diag), self.exact
        kind: type[Iterate] = Iterate
        if self.device is not None:
            known, kind = (*known, self.device), DeviceIterate if len(self.programs) == 1 else RowsIterate
        self.problems = [kind(program, *known) for program in self.programs]
        self._restore()

    def solve(self) -> list[Solution]:
        largest = min(self.largest, smo.LARGEST_BLOCK)
        if self.device is None and not self.alone and self.rows.slots < self.K.shape[0]:
            # the rows of a working set must fit the store
            largest = min(largest, self.rows.slots)
        working = [p for p in self.problems if p.stopped is None]
        while working and not self.control.stopped:
            chosen = self._chosen(working, largest)
            pairs = []
            for problem, variables in zip(working, chosen, strict=True):
                if problem.worst <= self.tol:
                    problem.stopped = Stop.CONVERGED
                elif self.max_iter <= problem.steps:
                    problem.stopped = Stop.MAX_ITER
                else:
                    pairs.append((problem, variables))
            for together in self._batches(pairs) if pairs else ():
                self._advance(together)
            for problem, _ in pairs:
                if problem.stopped is None and problem.worst > self.tol:
                    problem.watch(self.tol)
            working = [p for p in working if p.stopped is None]
            self.rounds += 1
            if (
                self.alone
                and working
                and self.shrinking
                and self.rounds > _LOOK
                and self.rounds % _LOOK == 0
                and not self.control.stopped
            ):
                self._shrink(working[0])
            if pairs:
                worst = max(problem.worst for problem, _ in pairs)
                self.control.step(self.state, violation=worst, problems=len(pairs))
        return [self._ended(problem) for problem in self.problems]

    def _chosen(self, working: list[Iterate], largest: int) -> list[np.ndarray]:
        """The next working sets; on a device, whose answers take their time, by all threads."""
        chosen = [np.empty(0, np.int64)] * len(working)

        def choose(k: int) -> None:
            chosen[k] = working[k].choose(largest)

        run(choose, range(len(working)), 1 if self.device is None else None)
        return chosen

    def _ended(self, problem: Iterate) -> Solution:
        """Where a problem ended. Who is within the tolerance has converged, whatever the clock says."""
        over = problem.stopped or self.control.stopped or Stop.CONVERGED
        solution = problem.solution(over, self.rounding, self.K.dtype == np.float32)
        if solution.violation <= self.tol and over.is_early:
            return replace(solution, stopped=Stop.CONVERGED)
        return solution

    def _shrink(self, problem: Iterate) -> None:
        """Solve for the variables that may still move, and for no others, in terms of their changes."""
        p = problem.program
        active = problem.active()
        points, position = np.unique(p.position[active], return_inverse=True)
        if len(points) > SHRUNK * len(problem.points):
            return
        gamma = problem.gamma[active]
        part = QuadraticProgram(
            problem.slopes()[active],
            p.lo[active] - gamma,
            p.hi[active] - gamma,
            np.zeros(len(active)),
            position,
            int(np.count_nonzero(active < p.split)),
            balanced=p.balanced,
        )
        (found,) = solve(
            self.K.restrict(problem.points[points]),
            [part],
            tol=self.tol,
            max_iter=self.max_iter - problem.steps,
            cache=self.cache // 4,
            largest=self.largest,
            control=self.control.inner(),
        )
        problem.steps += found.iterations
        moved = np.flatnonzero(found.gamma)
        change = found.gamma[moved]
        # exactly at a bound, not within rounding of it
        reached_lo, reached_hi = change == part.lo[moved], change == part.hi[moved]
        moved = active[moved]
        target = np.where(reached_lo, p.lo[moved], problem.gamma[moved] + change)
        target = np.where(reached_hi, p.hi[moved], target)
        change = target - problem.gamma[moved]
        problem.gamma[moved] = target
        self._apply(problem, moved, change)

    def _batches(self, pairs: list[tuple[Iterate, np.ndarray]]) -> Any:
        """Problems whose working sets' rows fit the store together."""
        if self.rows.slots == self.K.shape[0] or self.device is not None:
            yield pairs
            return
        together: list[tuple[Iterate, np.ndarray]] = []
        needed = np.zeros(self.K.shape[0], np.bool_)
        for problem, chosen in pairs:
            points = problem.points[problem.program.position[chosen]]
            more = needed.copy()
            more[points] = True
            if together and np.count_nonzero(more) > self.rows.slots:
                yield together
                together, more = [], np.zeros_like(needed)
                more[points] = True
            together.append((problem, chosen))
            needed = more
        yield together

    def _advance(self, together: list[tuple[Iterate, np.ndarray]]) -> None:
        """Make one round of some problems: solve working sets, update values."""
        threads = thread_count()
        if self.alone:  # rows are needed only of what moves: it is often half of the working set
            ((problem, chosen),) = together
            block = problem.computed(self.K, chosen)
            moved, change = problem.advance(chosen, self.tol, self.max_iter, block)
            self._apply(problem, moved, change)
            return
        if self.device is not None:
            self._advance_on_device(together)
            return
        self._fetch([(problem, chosen) for problem, chosen in together])

        def advance(pair: tuple[Iterate, np.ndarray]) -> None:
            problem, chosen = pair
            # memory is handed on from problem to problem: new memory costs more than what is written to it
            memory = spare.pop() if spare else np.empty(largest**2, self.K.dtype)
            block = memory[: len(chosen) ** 2].reshape(len(chosen), len(chosen))
            moved, change = problem.advance(chosen, self.tol, self.max_iter, block, self.rows)
            spare.append(memory)
            points = problem.points[problem.program.position[moved]]
            problem.add(self.rows, points, change, 1 if apart else threads)

        largest = max(len(chosen) for _, chosen in together)
        spare: list[np.ndarray] = []
        apart = len(together) >= threads  # each problem on one thread, or one problem on all
        # tiny ones are solved faster than threads take turns with Python's lock
        run(advance, together, threads if apart and largest > _ONE_THREAD_BELOW else 1)

    def _advance_on_device(self, together: list[tuple[Iterate, np.ndarray]]) -> None:
        """Make one round where only what moved needs rows: working sets on all threads, then all values."""
        found: list[tuple[Iterate, np.ndarray, np.ndarray]] = []

        def advance(pair: tuple[Iterate, np.ndarray]) -> None:
            problem, chosen = pair
            block = problem.computed(self.K, chosen)
            found.append((problem, *problem.advance(chosen, self.tol, self.max_iter, block)))

        run(advance, together)
        moved = [(p, p.points[p.program.position[variables]], change) for p, variables, change in found]
        points = np.unique(np.concatenate([own for _, own, _ in moved]))
        for start in range(0, len(points), self.rows.slots):
            part = points[start : start + self.rows.slots]
            self.rows.fetch(part)
            for problem, own, change in moved:
                here = (own >= part[0]) & (own <= part[-1])
                problem.add(self.rows, own[here], change[here], 1)

    def _fetch(self, pairs: list[tuple[Iterate, np.ndarray]]) -> None:
        """The rows of some variables, in the segments that their problems see."""
        if len(self.rows.bounds) == 2:
            self.rows.fetch(np.unique(np.concatenate([p.points[p.program.position[t]] for p, t in pairs])))
            return
        wanted = np.zeros((self.K.shape[0], len(self.bounds) - 1), np.bool_)
        for problem, variables in pairs:
            wanted[np.ix_(problem.points[problem.program.position[variables]], problem.program.segments)] = (
                True
            )
        points = np.flatnonzero(wanted.any(axis=1))
        self.rows.fetch(points, wanted[points])

    def _apply(self, problem: Iterate, variables: np.ndarray, change: np.ndarray) -> None:
        """The values after some variables changed."""
        variables, change = self._without_settled(problem, variables, change)
        size = min(_TOGETHER, self.rows.slots)
        for start in range(0, len(variables), size):
            part = variables[start : start + size]
            self._fetch([(problem, part)])
            points = problem.points[problem.program.position[part]]
            problem.add(self.rows, points, change[start : start + size], thread_count())

    def _without_settled(
        self, problem: Iterate, variables: np.ndarray, change: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Add what went to a bound for the first time, and hand back the rest.

        Most of these stay there: their rows are not worth keeping, and are not even stored. Not so in
        float32, where the sum would lose digits, and storing costs half.
        """
        if not self.alone or self.K.dtype != np.float64:
            return variables, change
        p = problem.program
        points = problem.points[p.position[variables]]
        gamma = problem.gamma[variables]
        settled = ((gamma <= p.lo[variables]) | (gamma >= p.hi[variables])) & self.rows.is_new(points)
        if np.count_nonzero(settled) < _SETTLED:
            return variables, change
        self.rows.mark(points[settled])
        problem.values += self.K.combine(points[settled], change[settled])[problem.points]
        return variables[~settled], change[~settled]

    # --- checkpoints -----------------------------------------------------------------------------------

    def state(self) -> State:
        """What the next round depends on."""
        return {
            f"{name}_{i}": getattr(problem, name)
            for i, problem in enumerate(self.problems)
            for name in ("gamma", "values", "last", "steps", "stalled")
        } | {
            "rounds": self.rounds,
            "tol": self.tol,
            "best": np.array([problem.best for problem in self.problems]),
            "stopped": np.array([problem.stopped or "" for problem in self.problems]),
        }

    def _restore(self) -> None:
        state = self.control.restored
        self.rounds = 0 if state is None else state["rounds"]
        if state is None:
            for problem in self.problems:
                support = np.flatnonzero(problem.gamma)
                if self.alone and len(support):
                    points = problem.points[problem.program.position[support]]
                    problem.values += self.K.combine(points, problem.gamma[support])[problem.points]
                else:
                    self._apply(problem, support, problem.gamma[support])
            return
        for i, problem in enumerate(self.problems):
            for name in ("gamma", "values", "last", "steps", "stalled"):
                setattr(problem, name, state[f"{name}_{i}"])
            if isinstance(problem, DeviceIterate):
                problem.restore_gamma()
            problem.best = tuple(state["best"][i])
            # what was stopped before goes on, and what had converged for another tolerance
            ended = str(state["stopped"][i])
            is_final = ended == Stop.CONVERGED and state["tol"] <= self.tol
            problem.stopped = Stop.CONVERGED if is_final else None
