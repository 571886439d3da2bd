r"""The hard margin, C = ∞: no errors at all.

The problems of growing C are solved, each from the last solution, until no γ is at its bound: then C does not
matter any more. Any feasible γ bounds the margin of what separates,

    2/‖f*‖ ≤ 2 √(γᵀKγ) / cᵀγ,

so when the bound is as good as zero, the search ends and says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np

from mercer.errors import InputError
from mercer.solvers.control import Control, State
from mercer.solvers.matrix import WritableRows
from mercer.solvers.result import Stop
from mercer.solvers.svm.problems import Machine, Task, fit
from mercer.solvers.svm.warm import warm

#: C of the first of the stages, in units of the problem, and by how much it grows from each to the next.
_STAGES, _FIRST, _GROWTH = 8, 1e2, 1e2
_NO_MARGIN = 1e-6  # A margin below this part of √k is none.
_NARROW = 1e-4  # So is one below this part, if slacks do not fall any more.
_STAGE_STEPS = 2_000_000  # A stage that takes more steps has found no margin.
_ENDED = (Stop.MAX_TIME, Stop.INTERRUPTED)


def separate(
    K: WritableRows,
    make: Callable[[float, list[int]], list[Task]],
    problems: int,
    unit: float,
    *,
    spread: float = 1.0,
    control: Control,
    max_iter: int = -1,
    **options: Any,
) -> list[Machine]:
    """The solutions for C = ∞, by those for growing C.

    Parameters
    ----------
    K : the kernel matrix
    make : ``make(C, which)`` returns the tasks of some problems, by their numbers, for a C
    problems : their number
    unit : C at which values k(x, x) C are of the order of 1
    spread : of the targets
    control : counts the stages
    """
    search = _Search(K, problems, spread, max_iter)
    if control.restored is not None:
        search.restore(control.restored, options.get("tol", 1e-3))
    most = _STAGE_STEPS + 100 * K.shape[0] if max_iter < 0 else max_iter

    # what was found in the last stage may have to be found again, for another tol or max_iter
    for stage in range(min(search.stage, _STAGES - 1), _STAGES):
        which = [i for i in range(problems) if search.found[i] is None]
        if not which:
            break
        C = _FIRST * unit * _GROWTH**stage
        tasks = [search.warmed(i, task) for i, task in zip(which, make(C, which), strict=True)]
        machines = fit(K, tasks, control=control.inner(), max_iter=most, **options)
        search.stage = stage
        for i, task, machine in zip(which, tasks, machines, strict=True):
            search.look(i, task, machine, C)
        if any(machine.stopped in _ENDED for machine in machines):
            break  # the checkpoint holds the stage before: this one is repeated from there
        search.stage = stage + 1
        control.step(search.state().copy, C=C, problems=len(which))
    return search.machines()


class _Search:
    """What the stages have found so far, of each problem."""

    def __init__(self, K: WritableRows, problems: int, spread: float, max_iter: int) -> None:
        self.stage = 0
        self.found: list[Machine | None] = [None] * problems
        self.steps = np.zeros(problems, np.int64)
        self.slack = np.full(problems, np.inf)
        self.last: dict[int, tuple[np.ndarray, float]] = {}  # γ and γᵀKγ
        self.is_limited = max_iter >= 0
        diagonal = np.abs(K.diag())
        self.largest = float(diagonal.max())
        self.scale = float(np.sqrt(max(np.mean(diagonal), np.finfo(float).tiny))) / spread

    def warmed(self, i: int, task: Task) -> Task:
        """The task from where problem i was last."""
        return warm(task, *self.last[i]) if i in self.last else task

    def look(self, i: int, task: Task, machine: Machine, C: float) -> None:
        """Keep the machine if C does not matter to it any more; refuse where no margin is in sight."""
        self.last[i] = machine.gamma, machine.energy
        self.steps[i] += machine.iterations
        is_exhausted = machine.stopped == Stop.MAX_ITER
        if machine.stopped in _ENDED or (self.is_limited and is_exhausted):
            self.found[i] = machine
            return
        is_last = self.stage == _STAGES - 1
        p, g = task.program, machine.gamma
        if not (((g >= p.hi) & (p.hi > 0)) | ((g <= p.lo) & (p.lo < 0))).any():
            if not is_exhausted or is_last:
                self.found[i] = task.without_bounds(machine)
            return
        margin = 2 * np.sqrt(max(machine.energy, 0.0)) / float((p.c * g).sum())
        if is_exhausted or is_last or self._is_hopeless(i, machine, C, margin):
            self._refuse(task, margin)

    def _is_hopeless(self, i: int, machine: Machine, C: float, margin: float) -> bool:
        rest = (machine.objective - machine.square / 2) / C
        is_stuck = self.stage > 0 and rest > 0.5 * self.slack[i]
        self.slack[i] = rest
        return margin < _NO_MARGIN * self.scale or (is_stuck and margin < _NARROW * self.scale)

    def _refuse(self, task: Task, margin: float) -> None:
        only = f"or only with a margin 2/‖w‖ below {margin:.1g}"
        if not margin > 0:
            only = f"whose values, up to {self.largest:.1g}, do not tell some points apart"
        raise InputError(
            f"C=inf asks for no errors at all, and {task.inseparable} by this kernel, {only}: "
            "pass a finite C, choose another kernel, remove points that contradict each other, or "
            "scale the data where their numbers are very small or very large"
        )

    def machines(self) -> list[Machine]:
        """The machines that were found, each with the steps of all its stages."""
        found = [(i, machine) for i, machine in enumerate(self.found) if machine is not None]
        return [replace(machine, iterations=int(self.steps[i])) for i, machine in found]

    # --- checkpoints -----------------------------------------------------------------------------------

    def state(self) -> State:
        held: State = {f"gamma_{i}": gamma for i, (gamma, _) in self.last.items()}
        held |= {"stage": self.stage, "slack": self.slack.copy(), "steps": self.steps.copy()}
        held["energy"] = np.array([self.last[i][1] for i in range(len(self.found))])
        for i, kept in enumerate(self.found):
            if kept is not None and kept.stopped != Stop.MAX_ITER:
                held |= {f"found_{i}_{name}": value for name, value in vars(kept).items()}
        return held

    def restore(self, held: State, tol: float) -> None:
        self.stage, self.slack, self.steps = int(held["stage"]), held["slack"], held["steps"]
        for i in range(len(self.found)):
            self.last[i] = held[f"gamma_{i}"], float(held["energy"][i])
            self.found[i] = _restored(held, i, tol)


def _restored(held: State, i: int, tol: float) -> Machine | None:
    """The machine of problem i in a checkpoint, if it is there and as good as is asked for."""
    if f"found_{i}_coef" not in held:
        return None
    kept = {field.name: held[f"found_{i}_{field.name}"] for field in fields(Machine)}
    machine = Machine(**{**kept, "stopped": Stop(kept["stopped"])})
    return None if machine.stopped == Stop.CONVERGED and machine.violation > tol else machine
