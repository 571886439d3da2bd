r"""How small and how large a formula can be: interval arithmetic on its tree.

>>> from mercer.kernels.formula.expression import exp
>>> from mercer.kernels.formula.pair import Pair
>>> bounds(1 + Pair().sqdist, Space())
(1.0, inf)
>>> bounds(exp(-Pair().sqdist), Space())
(0.0, 1.0)
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

from mercer.certify.parts import number, terms
from mercer.kernels.formula.expression import Apply, Expression
from mercer.kernels.formula.pair import A, B, Columns, PointSum, Quantity, Scaling, View

Interval = tuple[float, float]
INF = math.inf
HUGE = sys.float_info.max
REAL: Interval = (-INF, INF)


@dataclass(frozen=True)
class Space:
    """Where the points live: ``nonnegative`` says that each coordinate is ≥ 0, ``dim`` how many there are.

    ``seen`` is what they are called: points, or what a part of a kernel sees of them.
    """

    nonnegative: bool = False
    dim: int | None = None
    seen: str = "points"

    def inside(self, view: View) -> Space:
        """The space of the coordinates that a view shows: only a feature map can change signs."""
        keeps = all(
            isinstance(step, Columns) or (isinstance(step, Scaling) and min(step.factors) >= 0)
            for step in view.steps
        )
        return replace(self, nonnegative=self.nonnegative and keeps)

    def columns(self, view: View) -> int | None:
        """How many coordinates are seen through a view; None if that is not known."""
        dim = self.dim
        for step in view.steps:
            if isinstance(step, Columns):
                dim = len(step.which)
            else:
                dim = len(step.factors) if isinstance(step, Scaling) else None
        return dim


def bounds(node: Expression, space: Space) -> Interval:
    """An interval that holds every value of the formula, for all points of the space."""
    low, high = _bounds(node, space)
    if math.isnan(low) or math.isnan(high):
        return REAL
    return min(low, HUGE), max(high, -HUGE)  # A lower bound that overflowed is only known to be large.


def _bounds(node: Expression, space: Space) -> Interval:
    value = number(node)
    if value is not None:
        return value, value
    if node in (A, B):
        return (0.0, INF) if space.nonnegative else REAL
    if isinstance(node, Quantity | PointSum):
        if node.kind == "sqdist":
            return 0.0, INF
        inner = bounds(node.term, space.inside(node.view))
        return _over_product(inner) if node.kind == "product" else _over_sum(inner)
    if not isinstance(node, Apply):
        return REAL
    if node.operation in ("add", "subtract"):
        constant, linear = terms(node)
        total: Interval = (constant, constant)
        for term, coefficient in linear.items():
            total = _add(total, _multiply((coefficient, coefficient), bounds(term, space)))
        return total
    if node.operation == "multiply" and node.arguments[0] == node.arguments[1]:
        return _even(bounds(node.arguments[0], space))
    rule = _RULES.get(node.operation)
    return rule(*(bounds(argument, space) for argument in node.arguments)) if rule else REAL


# --- the rules of interval arithmetic ------------------------------------------------------------


def _add(a: Interval, b: Interval) -> Interval:
    return a[0] + b[0], a[1] + b[1]


def _multiply(a: Interval, b: Interval) -> Interval:
    products = [0.0 if 0.0 in (p, q) else p * q for p in a for q in b]
    return min(products), max(products)


def _divide(a: Interval, b: Interval) -> Interval:
    if b[0] <= 0 <= b[1]:
        return REAL
    return _multiply(a, (1 / b[1], 1 / b[0]))


def _even(a: Interval) -> Interval:
    return _power((max(a[0], -a[1], 0.0), max(-a[0], a[1])), (2.0, 2.0))


def _power(a: Interval, p: Interval) -> Interval:
    if p[0] != p[1] or a[0] < 0 or (p[0] < 0 and a[0] == 0):
        return REAL
    ends = sorted(_call(lambda base: base ** p[0], end) for end in a)
    return ends[0], ends[1]


def _whole_power(a: Interval, p: Interval) -> Interval:
    if p[0] == p[1] and p[0] % 2 == 0 and p[0] > 0:
        low, high = max(a[0], -a[1], 0.0), max(-a[0], a[1])
        return _power((low, high), p)
    return _power(a, p)


def _increasing(function: Callable[[float], float]) -> Callable[[Interval], Interval]:
    return lambda a: (_call(function, a[0]), _call(function, a[1]))


def _call(function: Callable[[float], float], value: float) -> float:
    try:
        return function(value)
    except OverflowError:
        return INF


def _over_sum(inner: Interval) -> Interval:
    """A sum of one or more values of an interval."""
    low, high = inner
    return (low if low >= 0 else -INF), (high if high <= 0 else INF)


def _over_product(inner: Interval) -> Interval:
    """A product of one or more values of an interval."""
    low, high = inner
    if low >= 0:
        return (low if low >= 1 else 0.0), (high if high <= 1 else INF)
    return (-1.0, 1.0) if low >= -1 and high <= 1 else REAL


_RULES: dict[str, Callable[..., Interval]] = {
    "multiply": _multiply,
    "divide": _divide,
    "integer_power": _whole_power,
    "large_power": _whole_power,
    "power": _power,
    "exp": _increasing(math.exp),
    "log": lambda a: (math.log(a[0]) if a[0] > 0 else -INF, math.log(a[1]) if 0 < a[1] < INF else INF),
    "sqrt": lambda a: (math.sqrt(max(a[0], 0.0)), math.sqrt(max(a[1], 0.0))),
    "tanh": _increasing(math.tanh),
    "sin": lambda a: (-1.0, 1.0),
    "cos": lambda a: (-1.0, 1.0),
    "arccos": lambda a: (0.0, math.pi),
    "absolute": lambda a: (max(a[0], -a[1], 0.0), max(-a[0], a[1])),
    "minimum": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "maximum": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "less_equal": lambda a, b: (0.0, 1.0),
    "where": lambda condition, a, b: (min(a[0], b[0]), max(a[1], b[1])),
}
