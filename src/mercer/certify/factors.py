r"""Formulas taken apart: products, quotients, roots and powers into factors.

>>> from mercer.kernels.formula.expression import sqrt
>>> from mercer.kernels.formula.pair import Pair
>>> pair = Pair()
>>> factors(2 * pair.dot / sqrt(pair.xx * pair.yy), Space())
(2.0, {dot: 1.0, sum(a * a): -0.5, sum(a * a)': -0.5})
"""

from __future__ import annotations

import math

from mercer.certify.bounds import Space, bounds
from mercer.certify.parts import Coefficients, number
from mercer.kernels.formula.expression import Apply, Expression

Factors = tuple[float, Coefficients]


def factors(node: Expression, space: Space) -> Factors:
    """(c, {base: exponent}) such that the formula is c · Π base**exponent, wherever it is defined."""
    value = number(node)
    if value is not None:
        return value, {}
    whole = 1.0, {node: 1.0}
    if not isinstance(node, Apply):
        return whole
    first, *rest = node.arguments
    if node.operation == "multiply":
        return _merge(factors(first, space), factors(rest[0], space))
    if node.operation == "divide":
        below = _raised(factors(rest[0], space), -1.0, space)
        return _merge(factors(first, space), below) if below else whole
    exponent = _exponent(node)
    if exponent is not None:  # Other powers cannot be taken factor by factor.
        return _raised(factors(first, space), exponent, space) or (1.0, {first: exponent})
    plain = _without_effect(node, space)
    return whole if plain is None else factors(plain, space)


def _exponent(node: Apply) -> float | None:
    """p of a formula base**p, when it is a known number."""
    if node.operation == "sqrt":
        return 0.5
    if node.operation in ("power", "integer_power", "large_power"):
        return number(node.arguments[1])
    return None


def _merge(a: Factors, b: Factors) -> Factors:
    powers = dict(a[1])
    for base, exponent in b[1].items():
        powers[base] = powers.get(base, 0.0) + exponent
    return a[0] * b[0], {base: exponent for base, exponent in powers.items() if exponent != 0}


def _raised(product: Factors, exponent: float, space: Space) -> Factors | None:
    """(c · Π base**e)**exponent, or None where the power may not be taken factor by factor."""
    coefficient, powers = product
    is_whole = exponent.is_integer()
    if not is_whole and (coefficient < 0 or any(bounds(base, space)[0] < 0 for base in powers)):
        return None
    try:
        constant = coefficient**exponent
    except (OverflowError, ZeroDivisionError):
        return None
    if not math.isfinite(constant) or (constant == 0 and coefficient != 0):
        return None
    return constant, {base: e * exponent for base, e in powers.items() if exponent != 0}


def _without_effect(node: Apply, space: Space) -> Expression | None:
    """The argument of |g|, max(g, c) or min(g, c), where its bounds say that it is the value."""
    if node.operation == "absolute":
        return node.arguments[0] if bounds(node.arguments[0], space)[0] >= 0 else None
    if node.operation in ("maximum", "minimum"):
        for inner, limit in (node.arguments, node.arguments[::-1]):
            value, (low, high) = number(limit), bounds(inner, space)
            if value is not None and (low >= value if node.operation == "maximum" else high <= value):
                return inner
    return None
