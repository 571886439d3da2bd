r"""Conditionally positive definite kernels: cᵀKc ≥ 0, not for all c, but for those with Σᵢ cᵢ p(xᵢ) = 0.

Of order m: for every polynomial p of degree below m; order 1 asks Σᵢ cᵢ = 0, order 0 nothing. -k is of
negative type exactly when k is of order 1. In every dimension (Micchelli 1986):

- (-1)^⌈β/2⌉ r^β for β > 0 not even, of order ⌈β/2⌉: -r;
- (-1)^{n+1} r^{2n} log r, of order n + 1: the thin plate r² log r;
- (-1)^⌈p⌉ (a + r²)^p for a > 0, p > 0 not whole, of order ⌈p⌉: the multiquadric -√(1 + r²);
- ±r^{2n}, of order n + 1: nothing is left of it.

>>> from mercer.kernels.formula.expression import sqrt
>>> from mercer.kernels.formula.pair import Pair
>>> order, step = conditional_order(-sqrt(1 + Pair().sqdist), Prover())
>>> order
1
"""

from __future__ import annotations

from math import ceil

from mercer.certify.factors import factors
from mercer.certify.formula import Prover
from mercer.certify.parts import Coefficients, mirrored, number, split, terms
from mercer.certify.proof import Step
from mercer.kernels.formula.expression import Apply, Expression
from mercer.kernels.formula.pair import Quantity

#: A formula may hold max(r², tiny) to keep a logarithm finite: up to here a number is taken as such a guard.
_GUARD_OF_LOGARITHM = 1e-290


def conditional_order(expression: Expression, prover: Prover) -> tuple[int, Step] | None:
    """The order, and the rule it follows by; None where no rule applies."""
    negative = prover.negative_type(expression, negated=True)
    if negative is not None:
        return 1, Step(
            repr(expression), "conditionally positive definite: -k is of negative type", (negative,)
        )
    _, linear = terms(expression)  # Constants, and f(x) + f(x'), vanish when Σ c = 0.
    left, right, pair = split(linear)
    found = [_term(term, coefficient, prover) for term, coefficient in pair.items()]
    if right != mirrored(left) or not found or None in found:
        return None
    parts = [part for part in found if part is not None]
    order = max(1, *(part[0] for part in parts))
    if len(parts) == 1:
        return order, parts[0][1]
    rule = f"conditionally positive definite of order {order}, as its terms are"
    return order, Step(repr(expression), rule, tuple(part[1] for part in parts))


def what_it_allows(order: int) -> str:
    """What a conditionally positive definite kernel may be used for."""
    if order == 1:
        return (
            "conditionally positive definite of order 1, cᵀKc ≥ 0 whenever Σc = 0: centring makes it a "
            "kernel, k.centered(); SVMs with an intercept and kernel PCA see k through such c alone, and "
            "lose nothing by it"
        )
    return (
        f"conditionally positive definite of order {order}, cᵀKc ≥ 0 whenever Σ c p(x) = 0 for all "
        f"polynomials p of degree below {order}: for splines, whose polynomial part goes unpenalised; "
        "centring is not enough"
    )


def _term(term: Expression, coefficient: float, prover: Prover) -> tuple[int, Step] | None:
    """The order of coefficient · term."""
    text = f"{coefficient:g} {term!r}"
    if coefficient > 0:
        kernel = prover.kernel(term)
        if kernel is not None:
            return 0, kernel
    negative = prover.negative_type(coefficient * term, negated=True)
    if negative is not None:
        return 1, negative
    scale, powers = factors(term, prover.space)
    coefficient *= scale
    logarithms = [base for base in powers if isinstance(base, Apply) and base.operation == "log"]
    rest: Coefficients = {base: p for base, p in powers.items() if base not in logarithms}
    if len(rest) != 1 or len(logarithms) > 1:
        return None
    ((base, p),) = rest.items()
    if logarithms:
        (logarithm,) = logarithms
        if powers[logarithm] != 1 or not _is_distance(base) or not _is_log_distance(logarithm, prover):
            return None
        if not (p.is_integer() and p >= 1 and coefficient * (-1.0) ** int(p + 1) > 0):
            return None
        return int(p) + 1, Step(text, f"r^{2 * p:g} log r, of order {p + 1:g} with the sign (-1)^{p + 1:g}")
    if _is_distance(base) and p.is_integer() and p >= 1:
        return int(p) + 1, Step(
            text, f"r^{2 * p:g}, a polynomial of degree {2 * p:g}: nothing in order {p + 1:g}"
        )
    order = ceil(p)
    if p.is_integer() or p < 0 or coefficient * (-1) ** order < 0:
        return None
    if _is_distance(base):
        return order, Step(text, f"r^{2 * p:g}, of order {order} with the sign (-1)^{order}")
    if _is_shifted(base):
        return order, Step(text, f"(a + r²)^{p:g} for a > 0, of order {order} with the sign (-1)^{order}")
    return None


def _is_distance(node: Expression) -> bool:
    return isinstance(node, Quantity) and node.kind == "sqdist"


def _is_shifted(node: Expression) -> bool:
    """a + b‖x - x'‖², a and b > 0."""
    constant, linear = terms(node)
    return constant > 0 and len(linear) == 1 and all(_is_distance(t) and c > 0 for t, c in linear.items())


def _is_log_distance(node: Expression, prover: Prover) -> bool:
    """log of a power of ‖x - x'‖, kept away from log 0 by a tiny number or not."""
    (inner,) = node.children
    scale, powers = factors(inner, prover.space)
    return scale > 0 and len(powers) == 1 and all(_is_distance(_bare(b)) and p > 0 for b, p in powers.items())


def _bare(node: Expression) -> Expression:
    """The node without a tiny number it is kept above."""
    if isinstance(node, Apply) and node.operation == "maximum":
        for part, limit in (node.arguments, node.arguments[::-1]):
            value = number(limit)
            if value is not None and 0 < value <= _GUARD_OF_LOGARITHM:
                return part
    return node
