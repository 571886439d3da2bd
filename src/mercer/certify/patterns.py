r"""Three shapes of a formula that take more than a glance: Matérn, χ², and N centred at the origin."""

from __future__ import annotations

from dataclasses import replace

from mercer.certify.bounds import Space, bounds
from mercer.certify.factors import factors
from mercer.certify.parts import Coefficients, is_difference, mirrored, number, split, terms
from mercer.kernels.formula.calculus import substitute
from mercer.kernels.formula.expression import ZERO, Apply, Expression
from mercer.kernels.formula.pair import A, B, PointSum, Quantity


def matern_square(powers: Coefficients, space: Space) -> Expression | None:
    r"""The Q of (a + b√Q + gQ) exp(-c√Q), if that is a sum of Matérn kernels; else None.

    With z = √Q, the kernels of ν = ½, 3⁄2 and 5⁄2 are e^{-cz} times 1, 1+cz and 1+cz+(cz)²/3: mixtures
    of exp(-sQ), so positive definite when Q is of negative type. The polynomial must be a
    combination of those three with coefficients ≥ 0.
    """
    if len(powers) != 2 or set(powers.values()) != {1.0}:
        return None
    for decay, shape in (tuple(powers), tuple(powers)[::-1]):
        if not (isinstance(decay, Apply) and decay.operation == "exp"):
            continue
        _, exponent = terms(decay.arguments[0])
        if len(exponent) != 1:
            continue
        ((root, rate),) = exponent.items()
        scale, bases = factors(root, space)
        if rate >= 0 or list(bases.values()) != [0.5] or scale <= 0:
            continue
        (squared,) = bases
        c = -rate * scale
        polynomial = _polynomial_in_root(shape, squared, space)
        if polynomial is None:
            return None
        a, b, g = polynomial
        third = 3 * g / c**2
        second = b / c - third
        first = a - second - third
        # Rounding may have taken this much from z * z / 3.
        slack = 1e-14 * (abs(a) + abs(b / c) + abs(third))
        return squared if min(first, second, third) >= -slack else None
    return None


def _polynomial_in_root(
    node: Expression, squared: Expression, space: Space
) -> tuple[float, float, float] | None:
    """(a, b, g) of a + b√Q + gQ."""
    constant, linear = terms(node)
    coefficients = {0.0: constant, 0.5: 0.0, 1.0: 0.0}
    for term, weight in linear.items():
        scale, bases = factors(term, space)
        if list(bases) != [squared] or bases[squared] not in coefficients:
            return None
        coefficients[bases[squared]] += weight * scale
    return coefficients[0.0], coefficients[0.5], coefficients[1.0]


def is_chi_squared(powers: Coefficients, space: Space) -> bool:
    """(f - f')² / (f + f' + c), c ≥ 0 and f ≥ 0: with f + c/2 for f it is f + f' - 4 f f'/(f + f')."""
    if sorted(powers.values()) != [-1.0, 2.0]:
        return False
    below, above = sorted(powers, key=lambda base: powers[base])
    (c, linear), (zero, difference) = terms(below), terms(above)
    left, right, pair = split(linear)
    if pair or not left or c < 0 or right != mirrored(left) or zero != 0 or not is_difference(above):
        return False
    h = split(difference)[0]
    if h.keys() != left.keys() or len({h[term] / weight for term, weight in left.items()}) != 1:
        return False
    return sum((_low(term, weight, space) for term, weight in left.items()), 0.0) >= 0


def _low(term: Expression, weight: float, space: Space) -> float:
    low, high = bounds(term, space)
    return weight * (low if weight > 0 else high)


def centred_at_zero(minus: Coefficients, left: Coefficients, constant: float) -> bool:
    """Whether f(x) + f(x') - N(x, x') + c is N(x, 0) + N(0, x') - N(x, x') - N(0, 0) plus a constant ≥ 0.

    f = Σ ``left``, N = Σ ``minus``, c = ``constant``; 0 is the origin of the space N is measured in.
    """
    beside = substitute(_total(minus), _beside_origin)  # N(x, 0)
    origin = number(substitute(beside, _at_origin))  # N(0, 0)
    offset, linear = terms(substitute(beside, _canonical))
    wanted = terms(substitute(_total(left), _canonical))[1]
    return origin is not None and linear == wanted and constant - 2 * offset + origin >= 0


def _total(weights: Coefficients) -> Expression:
    total: Expression = ZERO
    for term, weight in weights.items():
        total = total + term * weight
    return total


def _beside_origin(leaf: Expression) -> Expression | None:
    """x' = 0; what does not become a formula of x alone stays, and then matches nothing."""
    if leaf == B:
        return ZERO
    if isinstance(leaf, Quantity):
        term = substitute(leaf.term, lambda symbol: ZERO if symbol == B else None)
        if term == ZERO:
            return ZERO
        return PointSum(0, "product" if leaf.kind == "product" else "sum", leaf.view, term)
    return _at_origin(leaf) if isinstance(leaf, PointSum) and leaf.side == 1 else None


def _at_origin(leaf: Expression) -> Expression | None:
    """The formula at x = 0."""
    if leaf == A:
        return ZERO
    if isinstance(leaf, PointSum):
        return ZERO if number(substitute(leaf.term, _at_origin)) == 0 else None
    return None


def _canonical(node: Expression) -> Expression | None:
    """u·u for u², so that Σ xₖ² is the same formula however it is written."""
    if isinstance(node, PointSum):
        return replace(node, term=substitute(node.term, _canonical))
    if isinstance(node, Apply) and node.operation == "integer_power" and number(node.arguments[1]) == 2:
        base = substitute(node.arguments[0], _canonical)
        return base * base
    return None
