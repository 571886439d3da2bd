r"""What every solver returns: why its run ended, and how far from the minimum it is.

Result ─> Minimum ─> Minimiser      each solver adds what it alone has found
a run     a value    f = Σ αᵢ k(xᵢ, ·) + b
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import Any

import numpy as np


class Stop(StrEnum):
    """Why a run ended, from the best to the worst; each is equal to its word.

    >>> Stop.MAX_TIME == "max_time", Stop.worst([Stop.CONVERGED, Stop.MAX_ITER])
    (True, 'max_iter')
    """

    CONVERGED = auto()
    #: The numbers allow no better.
    ROUNDING = auto()
    #: There is no minimum, or none that float64 can tell.
    UNBOUNDED = auto()
    MAX_ITER = auto()
    MAX_TIME = auto()
    #: Ctrl-C was pressed.
    INTERRUPTED = auto()

    __repr__ = str.__repr__

    @property
    def is_early(self) -> bool:
        """Whether the solver would have gone on."""
        return self in (Stop.MAX_ITER, Stop.MAX_TIME, Stop.INTERRUPTED)

    @staticmethod
    def worst(stops: Iterable[Stop]) -> Stop:
        """The worst of several."""
        return max(stops, key=list(Stop).index)


@dataclass(frozen=True, eq=False, kw_only=True)
class Result:
    """How a run went; a direct solver has no iterations, and always converges."""

    iterations: int = 0
    stopped: Stop = Stop.CONVERGED


@dataclass(frozen=True, eq=False, kw_only=True)
class Minimum(Result):
    """The value that was minimised, which is at most ``gap`` above the minimum."""

    objective: float
    #: what the rounding of K may add is included
    gap: float

    @property
    def relative(self) -> float:
        """The gap as a part of the objective."""
        return self.gap / max(abs(self.objective), 1e-300)


@dataclass(frozen=True, eq=False, kw_only=True)
class Minimiser(Minimum):
    """The function f = Σ αᵢ k(xᵢ, ·) + b where a regularised risk is minimal; or m functions."""

    #: (n,) or (n, m): α
    coef: np.ndarray
    #: b, or (m,)
    intercept: Any
    #: (n,) or (n, m): F = Kα + b
    values: np.ndarray
    #: whether rounding ended the run before the tolerance was reached; where the gap is at most 1e-3 of the
    #: objective, the run counts as converged all the same
    rounded: bool
