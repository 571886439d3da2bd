r"""Several functions, one after the other, in one run: one bar, one time limit, one checkpoint.

    parts = each(solve, Y, control)      solve(y, control) → result, for every column y of Y

The state of the run is that of the function in work and the results of those before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from mercer.solvers.control import Control, State
from mercer.solvers.result import Minimum, Stop

R = TypeVar("R", bound=Minimum)


class PartControl(Control):
    """The control of the run for one function: its state is saved with the functions before it."""

    def __init__(self, outer: Control, before: State, restored: State | None, left: int) -> None:
        """``left``: how many functions there are from this one on."""
        super().__init__()
        self._outer, self._left = outer, left
        self._begun = outer.iterations - int((restored or {}).get("iterations", 0))
        self._before = before
        self.restored = restored

    @property
    def stopped(self) -> Stop | None:
        return self._outer.stopped

    def step(
        self,
        state: Callable[[], State] | None = None,
        steps: int = 1,
        *,
        expected: float = math.inf,
        **facts: Any,
    ) -> None:
        """One more iteration; the functions after this one are expected to take as many."""
        self.iterations += steps
        expected = self._begun + self._left * expected

        def whole_state() -> State:
            assert state is not None
            return {**self._before, **{f"now_{name}": value for name, value in state().items()}}

        self._outer.step(None if state is None else whole_state, steps, expected=expected, **facts)


def each(
    solve: Callable[[np.ndarray, Control], R],
    Y: np.ndarray,  # (n, functions)
    control: Control,
    kind: type[R],
) -> list[R]:
    """Solve for every column under one control; a resumed run goes on in the column where it was.

    Of results of an earlier run the fields of ``kind`` are kept.
    """
    parts: list[R] = []
    saved, names = control.restored, [field.name for field in fields(kind)]
    if saved is not None:
        for values in zip(*(saved[f"done_{name}"] for name in names), strict=True):
            plain = (value if value.ndim else value.item() for value in values)
            kept = dict(zip(names, plain, strict=True))
            parts.append(kind(**{**kept, "stopped": Stop(kept["stopped"])}))
    while len(parts) < Y.shape[1]:
        before: State = {f"done_{name}": np.array([getattr(p, name) for p in parts]) for name in names}
        now = None if saved is None else {k[4:]: v for k, v in saved.items() if k.startswith("now_")}
        saved = None  # only the column that was running has a state
        part = PartControl(control, before, now, Y.shape[1] - len(parts))
        parts.append(solve(np.ascontiguousarray(Y[:, len(parts)]), part))
    return parts
