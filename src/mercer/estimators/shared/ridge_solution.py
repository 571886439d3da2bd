r"""What a solver of kernel ridge regression has found, and why some solutions are of no Gaussian process."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.data.types import Points

NO_NOISE = "alpha=0 means no noise, and f goes through the points: take a positive alpha"
CLIPPED = "indefinite='clip' changes K at the points alone, and tells nothing of others: take another kernel"
WIDE = "a linear kernel of more than 1,000 columns keeps w alone: take solver='cholesky', or fewer columns"
LOST = "alpha is lost in the rounding of K, and with it what is not known of f: take a larger alpha"


@dataclass(frozen=True, eq=False)
class RidgeSolution:
    """A solution, ready to be kept."""

    anchors: Points
    coef: np.ndarray  # (anchors, targets)
    intercept: np.ndarray  # (targets,)
    objective: np.ndarray  # (targets,)
    errors: np.ndarray | None = None  # (n, targets) left out
    dual: np.ndarray | None = None  # (n, targets) a, where ``coef`` is something else
    facts: dict[str, Any] = field(default_factory=dict)
    #: what tells of the posterior where the points are not kept; and why nothing does
    sketch: dict[str, Any] = field(default_factory=dict)
    none: str = ""
