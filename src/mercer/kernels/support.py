r"""Where a kernel is zero: its support, as the rules of the algebra carry it along.

A compactly supported kernel is 0 unless x and x' are near each other, ‖x - x'‖ ≤ ρ in some norm. So is its
product with any other kernel; a sum of two such is 0 beyond the larger radius. What is measured is a *view*
of the points: chosen columns, columns that are scaled, the values of a map.

A ``Support`` is an intersection of balls, one for each view: k(x, x') = 0 outside any of them. It may be
larger than the set where k is not zero, and is never smaller.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
from scipy import sparse

from mercer.data import points as data
from mercer.data.types import Points
from mercer.kernels.formula.pair import View
from mercer.kernels.parameters import is_vector

#: ρ, or one for each column
Radius = float | tuple[float, ...]


@dataclass(frozen=True)
class Ball:
    """‖(x - x') / ρ‖ₚ ≤ 1 for points x and x' seen through a view."""

    radius: Radius
    norm: float  # p
    view: View

    def coordinates(self, points: Points) -> np.ndarray:  # (n, d)
        """The points as the view shows them, divided by ρ."""
        matrix: Any = data.as_vectors(self.view(points))
        dense = matrix.toarray() if sparse.issparse(matrix) else matrix
        return np.asarray(dense, np.float64) / np.asarray(self.radius, np.float64)

    def contains(self, other: Ball) -> bool:
        """Whether another ball of the same view lies in this one: ‖·‖ₚ falls as p grows."""
        return self.norm >= other.norm and bool(np.all(np.greater_equal(self.radius, other.radius)))

    def around(self, other: Ball) -> Ball:
        """A ball that contains both."""
        return replace(
            self, radius=_radius(np.maximum(self.radius, other.radius)), norm=max(self.norm, other.norm)
        )

    def within(self, other: Ball) -> Ball:
        """A ball that contains what both have in common: the smaller one, or the smaller sides of a box."""
        if self.contains(other) or other.contains(self):
            return other if self.contains(other) else self
        return replace(self, radius=_radius(np.minimum(self.radius, other.radius)), norm=inf)


@dataclass(frozen=True)
class Support:
    """k(x, x') = 0 outside any of these balls, whose views differ."""

    balls: tuple[Ball, ...]

    @classmethod
    def ball(cls, radius: Any, norm: float = 2) -> Support:
        """‖x - x'‖ₚ ≤ ρ with p = 1, 2 or ``inf``; with a ρ for each column, ‖(x - x') / ρ‖ₚ ≤ 1.

        >>> from mercer import Gaussian, Wendland
        >>> (Wendland(radius=2.0) * Gaussian(1.0)).support == Support.ball(2.0)
        True
        """
        return cls((Ball(_radius(radius), float(norm), View()),))

    @property
    def norm(self) -> float:
        """p such that k(x, x') = 0 where the coordinates differ by more than 1 in the norm ‖·‖ₚ."""
        return self.balls[0].norm if len(self.balls) == 1 else inf

    def coordinates(self, points: Points) -> np.ndarray:  # (n, d)
        """The points in those of all balls side by side: each of them is then within a cube of side 2.

        >>> Support.ball([2.0, 4.0]).coordinates([[2.0, 2.0]])
        array([[1. , 0.5]])
        """
        return np.hstack([ball.coordinates(points) for ball in self.balls])

    def through(self, step: Any) -> Support:
        """That of the kernel k(φ(x), φ(x')), ``step`` being φ."""
        return Support(
            tuple(
                replace(ball, view=replace(ball.view, steps=(step, *ball.view.steps))) for ball in self.balls
            )
        )


def union(supports: Iterable[Support | None]) -> Support | None:
    """That of a sum: of the views that all parts have, balls that contain theirs.

    >>> union([Support.ball(1.0), Support.ball(2.0)]) == Support.ball(2.0)
    True
    >>> union([Support.ball(1.0), None]) is None
    True
    """
    parts = list(supports)
    known = [{ball.view: ball for ball in part.balls} for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    common = known[0]
    for other in known[1:]:
        common = {view: ball.around(other[view]) for view, ball in common.items() if view in other}
    return Support(tuple(common.values())) if common else None


def intersection(supports: Iterable[Support | None]) -> Support | None:
    """That of a product: all balls of all parts, of each view one.

    >>> intersection([Support.ball(1.0), None, Support.ball(2.0)]) == Support.ball(1.0)
    True
    """
    found: dict[View, Ball] = {}
    for part in supports:
        for ball in () if part is None else part.balls:
            known = found.get(ball.view)
            found[ball.view] = ball if known is None else known.within(ball)
    return Support(tuple(found.values())) if found else None


def _radius(value: Any) -> Radius:
    if is_vector(value) and np.ndim(value):
        return tuple(float(one) for one in value)
    return float(value)
