r"""Formulas taken apart: sums into terms, and which point each term knows.

A formula of a pair (x, x') and a term g(a, b) over coordinates are treated alike: a is a quantity
of x, b the same quantity of x'.

>>> from mercer.kernels.formula.pair import Pair
>>> pair = Pair()
>>> terms(3 + 2 * (pair.xx + pair.sqdist) - pair.sqdist)
(3.0, {sum(a * a): 2.0, sqdist: 1.0})
>>> is_difference(pair.xx - pair.yy)
True
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mercer.kernels.formula.calculus import evaluate, substitute
from mercer.kernels.formula.expression import Apply, Expression, Number
from mercer.kernels.formula.pair import (
    A,
    B,
    External,
    ExternalDiagonal,
    Mean,
    ParameterLeaf,
    PointSum,
    Quantity,
)
from mercer.kernels.formula.pair import diagonal as pair_diagonal

LEFT, RIGHT, BOTH = 1, 2, 3

#: formulas and a number for each: the coefficient of a term, or the exponent of a factor
Coefficients = dict[Expression, float]


def number(node: Expression) -> float | None:
    """The value of a formula of numbers and parameters alone; None if it knows a point or is not finite."""
    if not all(isinstance(leaf, Number | ParameterLeaf) for leaf in node.leaves()):
        return None
    with np.errstate(all="ignore"):
        value = float(evaluate(node, lambda leaf: leaf.value))  # type: ignore[attr-defined]
    return value if math.isfinite(value) else None


def sides(node: Expression) -> int:
    """Which points a formula depends on, as bits: 0, LEFT, RIGHT or BOTH."""
    if isinstance(node, Quantity | External):
        return BOTH
    if isinstance(node, PointSum | ExternalDiagonal):
        return (LEFT, RIGHT)[node.side]
    if isinstance(node, Mean):
        return (LEFT, RIGHT, BOTH)[node.side]  # The mean of means is a number of unknown sign.
    if node in (A, B):
        return LEFT if node == A else RIGHT
    total = 0
    for child in node.children:
        total |= sides(child)
    return total


def mirror(node: Expression) -> Expression:
    """The formula with x and x' exchanged, for one that knows a single point."""

    def swap(leaf: Expression) -> Expression | None:
        if leaf in (A, B):
            return B if leaf == A else A
        if isinstance(leaf, PointSum | ExternalDiagonal) or (isinstance(leaf, Mean) and leaf.side < 2):
            return replace(leaf, side=1 - leaf.side)
        return None

    return substitute(node, swap)


def diagonal(node: Expression) -> Expression:
    """The formula at x' = x."""
    if any(leaf in (A, B) for leaf in node.leaves()):
        return substitute(node, lambda leaf: A if leaf == B else None)
    return pair_diagonal(node, 0)


def terms(node: Expression) -> tuple[float, Coefficients]:
    """(c, {term: coefficient}) such that the formula is c + Σ coefficient · term, equal terms collected."""
    constant = 0.0
    linear: Coefficients = {}

    def add(part: Expression, scale: float) -> None:
        nonlocal constant
        value = number(part)
        if value is not None:
            constant += scale * value
            return
        if isinstance(part, Apply) and part.operation in ("add", "subtract", "multiply", "divide"):
            first, second = part.arguments
            a, b = number(first), number(second)
            if part.operation in ("add", "subtract"):
                add(first, scale)
                return add(second, scale if part.operation == "add" else -scale)
            if part.operation == "multiply" and a is not None:
                return add(second, scale * a)
            if part.operation == "multiply" and b is not None:
                return add(first, scale * b)
            if part.operation == "divide" and b:
                return add(first, scale / b)
        linear[part] = linear.get(part, 0.0) + scale

    add(node, 1.0)
    return constant, {term: c for term, c in linear.items() if c != 0}


def split(weights: Mapping[Expression, float]) -> tuple[Coefficients, Coefficients, Coefficients]:
    """The parts of x alone, those of x' alone, and the rest."""
    left, right = ({t: c for t, c in weights.items() if sides(t) == side} for side in (LEFT, RIGHT))
    return left, right, {t: c for t, c in weights.items() if t not in left and t not in right}


def mirrored(weights: Mapping[Expression, float], sign: float = 1.0) -> Coefficients:
    """Terms of x as terms of x', their numbers times ``sign``."""
    return {mirror(term): sign * c for term, c in weights.items()}


def are_mirrored(u: Expression, v: Expression) -> bool:
    """Whether the formulas are f(x) and f(x'), in either order."""
    return sides(u) in (LEFT, RIGHT) and v == mirror(u)


def is_difference(node: Expression) -> bool:
    """Whether the formula is h(x) - h(x') for some h."""
    constant, linear = terms(node)
    left, right, pair = split(linear)
    return constant == 0 and not pair and bool(left) and right == mirrored(left, -1.0)
