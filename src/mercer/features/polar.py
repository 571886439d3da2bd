"""Radius and angle of two columns: what unrolls a spiral."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.types import Points
from mercer.errors import InputError
from mercer.features.base import FeatureMap


@dataclass(unsafe_hash=True)
class PolarMap(FeatureMap):
    r"""(x₁, x₂) = (r sin φ, r cos φ) as (r, φ), with r ≥ 0 and -π < φ ≤ π; other columns stay as they are.

    An arm of a spiral, r = a + cφ, is a curve in the plane and a straight line in these coordinates. The
    angle jumps by 2π where it closes: a ``Periodic(period=2π)`` kernel of that column does not see the jump.
    The origin has the angle 0.

    Parameters
    ----------
    columns : the positions of x₁ and x₂ in the table; r and φ take their places

    >>> PolarMap()(np.array([[0.0, 2.0], [3.0, 0.0], [-1.0, -1.0]])).round(3)
    array([[ 2.   ,  0.   ],
           [ 3.   ,  1.571],
           [ 1.414, -2.356]])
    >>> PolarMap(columns=(2, 0)).feature_names(["u", "v", "w"])
    ['angle(w, u)', 'v', 'radius(w, u)']
    """

    columns: tuple[int, int] = (0, 1)

    def check(self) -> None:
        try:
            first, second = (int(column) for column in self.columns)
            is_pair = 0 <= first != second >= 0 and list(self.columns) == [first, second]
        except (TypeError, ValueError):
            is_pair = False
        if not is_pair:
            raise InputError(
                f"columns must be the positions of two different columns, got {self.columns!r}: pass (0, 1)"
            )

    def n_features(self, m: int) -> int:
        self.check()
        if m <= max(self.columns):
            raise InputError(
                f"columns={self.columns!r} are positions in a table of at least {max(self.columns) + 1} "
                f"columns, got points with {m} feature(s): pass points of the plane, or other columns"
            )
        return m

    def __call__(self, X: Points) -> NDArray[np.floating[Any]]:
        """Radius and angle in place of x₁ and x₂, for each row of X: (n, m) to (n, m)."""
        points = self._prepare(X)
        first, second = self.columns
        polar = points.copy()
        polar[:, first] = np.hypot(points[:, first], points[:, second])
        # The cosine is +0 where it is -0, so that the angle of the origin is 0 and not π.
        polar[:, second] = np.arctan2(points[:, first], points[:, second] + 0.0)
        return polar

    def feature_names(self, names: Sequence[str]) -> list[str]:
        """Each feature as text, from the names of the columns."""
        self.n_features(len(names))
        first, second = self.columns
        texts, pair = list(names), f"({names[first]}, {names[second]})"
        texts[first], texts[second] = f"radius{pair}", f"angle{pair}"
        return texts
