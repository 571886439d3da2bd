r"""The intercept of a support vector machine, where its solver was stopped before the end.

At the minimum b is the level that the conditions of optimality name. Before it, they contradict each other,
and some b is better than that: with the values vᵢ of Σ γᵢ k(xᵢ, ·), and variables γᵢ between loᵢ and hiᵢ with
the linear terms cᵢ, as in ``decomposition.Program``, the slacks cost

    S(b) = Σᵢ hiᵢ max(0, cᵢ - vᵢ - b) + (-loᵢ) max(0, vᵢ + b - cᵢ),

piecewise linear and convex, with corners at cᵢ - vᵢ, where its slope grows by hiᵢ - loᵢ from -Σ hi.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_FLAT = 1e-12  # a slope below this part of the largest is none


@dataclass(frozen=True, eq=False)
class Slacks:
    """S(b), the cost of the slacks; see the module.

    >>> slacks = Slacks(np.array([1.0, 1.0, -1.0]), np.array([0.0, 0.0, -1.0]), np.array([1.0, 1.0, 0.0]))
    >>> slacks.best(5.0), slacks.cost(1.0)  # two points want b ≥ 1, one b ≤ -1
    (1.0, 2.0)
    """

    #: (variables,) cᵢ - vᵢ
    corners: np.ndarray
    lo: np.ndarray
    hi: np.ndarray

    def cost(self, b: float) -> float:
        """S(b)."""
        rest = self.corners - b
        return float(np.where(rest > 0, self.hi, self.lo) @ rest)

    def better(self, b: float) -> tuple[float, float]:
        """How far the best b is from a given one, and by how much S is less there."""
        best = self.best(b)
        drop = self.cost(b) - self.cost(best)
        return (best - b, drop) if drop > 0 else (0.0, 0.0)

    def best(self, b: float) -> float:
        """The b that minimises S, the one nearest to a given one where several do."""
        order = np.argsort(self.corners, kind="stable")
        growth = (self.hi - self.lo)[order]
        slope = np.cumsum(growth) - float(self.hi.sum())  # beyond each corner
        flat = _FLAT * float(growth.sum())
        ends = np.array([int((slope < -flat).sum()), int((slope <= flat).sum())])
        return float(np.clip(b, *self.corners[order][np.minimum(ends, len(order) - 1)]))
