r"""Several functions, one after the other, in one run: one bar, one time limit, one checkpoint.

    parts = each(solve, Y, control)      solve(y, control) → result, for every column y of Y

The state of the run is that of the function in work and the results of those before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mercer.solvers.control import Control, State

__all__ = ["OneFunction", "each", "worst_stop"]


@dataclass(frozen=True, eq=False)
class OneFunction:
    """What was found for one function, as it is kept in a checkpoint."""

    coef: np.ndarray
    intercept: float
    objective: float
    gap: float
    iterations: int
    stopped: str
    rounded: bool

    @property
    def relative(self) -> float:
        """The gap as a part of the objective."""
        return self.gap / max(abs(self.objective), 1e-300)


class Ended(Protocol):
    """Anything that says how it ended."""

    @property
    def stopped(self) -> str: ...


class PartControl(Control):
    """The control of the run for one function: its state is saved with the functions before it."""

    def __init__(self, outer: Control, before: State, restored: State | None) -> None:
        super().__init__()
        self._outer = outer
        self._before = before
        self.restored = restored

    @property
    def stopped(self) -> str | None:
        return self._outer.stopped

    def step(self, state: Callable[[], State] | None = None, steps: int = 1, **facts: Any) -> None:
        self.iterations += steps

        def whole_state() -> State:
            assert state is not None
            return {**self._before, **{f"now_{name}": value for name, value in state().items()}}

        self._outer.step(None if state is None else whole_state, steps, **facts)


def each(
    solve: Callable[[np.ndarray, Control], Any],
    Y: np.ndarray,  # (n, functions)
    control: Control,
) -> list[OneFunction]:
    """Solve for every column under one control; a resumed run goes on in the column where it was."""
    parts: list[OneFunction] = []
    names = ("intercept", "objective", "gap", "iterations", "rounded")
    saved = control.restored
    if saved is not None:
        for coef, facts, stopped in zip(saved["coefs"], saved["facts"], saved["stopped"], strict=True):
            intercept, objective, gap, iterations, rounded = facts.tolist()
            parts.append(
                OneFunction(coef, intercept, objective, gap, int(iterations), str(stopped), bool(rounded))
            )
    while len(parts) < Y.shape[1]:
        before: State = {
            "coefs": np.array([part.coef for part in parts]).reshape(len(parts), len(Y)),
            "facts": np.array([[float(getattr(part, name)) for name in names] for part in parts]).reshape(
                -1, 5
            ),
            "stopped": np.array([part.stopped for part in parts], dtype=np.str_),
        }
        now = None if saved is None else {k[4:]: v for k, v in saved.items() if k.startswith("now_")}
        saved = None  # only the column that was running has a state
        result = solve(np.ascontiguousarray(Y[:, len(parts)]), PartControl(control, before, now))
        parts.append(
            OneFunction(
                result.coef,
                float(result.intercept),
                result.objective,
                result.gap,
                result.iterations,
                result.stopped,
                result.rounded,
            )
        )
    return parts


def worst_stop(results: Sequence[Ended]) -> str:
    """Why the run ended, for the one that ended worst."""
    order = ["converged", "rounding", "max_iter", "max_time", "interrupted"]
    return max((result.stopped for result in results), key=order.index)
