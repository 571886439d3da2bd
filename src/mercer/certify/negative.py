r"""Formulas of negative type: N symmetric with Σᵢⱼ cᵢcⱼ N(xᵢ, xⱼ) ≤ 0 whenever Σᵢ cᵢ = 0.

They are to distances what kernels are to inner products: exp(-tN) is a kernel for every t > 0 exactly
when N is of negative type (Schoenberg). The rules:

- ‖x - x'‖²; |h(x) - h(x')|^p and |sin(h(x) - h(x'))|^p for 0 < p ≤ 2; max(f(x), f(x'));
  (f(x) - f(x'))² / (f(x) + f(x')) for f ≥ 0; f(x) + f(x'); any constant;
- -k for a kernel k; -log k when every power of k > 0 is a kernel;
- sums, non-negative multiples, sums over coordinates; N^p for 0 < p ≤ 1 and N ≥ 0; log N for N > 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mercer.certify.bounds import Space, bounds
from mercer.certify.factors import factors
from mercer.certify.parts import are_mirrored, diagonal, is_difference, mirrored, split, terms
from mercer.certify.patterns import is_chi_squared
from mercer.certify.proof import Step, step
from mercer.kernels.formula.expression import Apply, Expression
from mercer.kernels.formula.pair import Quantity

if TYPE_CHECKING:
    from mercer.certify.formula import Prover


def lower_bound(node: Expression, space: Space) -> float:
    """A lower bound of N of negative type: N(x, x') ≥ (N(x, x) + N(x', x'))/2, from c = (1, -1)."""
    return max(bounds(node, space)[0], bounds(diagonal(node), space)[0])


def negative_type(prover: Prover, node: Expression, negated: bool) -> Step | None:
    """The formula, or minus the formula, is of negative type."""
    _, linear = terms(node)  # A constant is of negative type, whatever its sign.
    left, right, pair = split({term: -c if negated else c for term, c in linear.items()})
    if right != mirrored(left):
        return None
    parts = [_scaled(prover, term, c) for term, c in pair.items()]
    if left:
        parts.append(Step(_combination({**left, **right}), "f(x) + f(x') is of negative type"))
    if not parts:
        return Step(repr(node), "a constant is of negative type")
    if len(parts) == 1:
        return parts[0]
    return step(_combination({**left, **right, **pair}), "a sum of formulas of negative type", *parts)


def _scaled(prover: Prover, term: Expression, c: float) -> Step | None:
    """c · term."""
    if c > 0:
        return negative_term(prover, term, c)
    text = _combination({term: c})
    if isinstance(term, Apply) and term.operation == "log" and bounds(term.arguments[0], prover.space)[0] > 0:
        inner = prover.kernel(term.arguments[0], every_power=True)
        return step(text, "-log k of negative type, for k > 0 of which every power is a kernel", inner)
    return step(text, "of negative type, minus a kernel", prover.kernel(term))


def negative_term(prover: Prover, term: Expression, c: float) -> Step | None:
    """c · term with c > 0, for a term that is no sum."""
    text = _combination({term: c})
    if isinstance(term, Quantity):
        if term.kind == "sqdist":
            return Step(text, "of negative type, a squared Euclidean distance")
        inner = prover.inside(term).negative_type(term.term) if term.kind == "sum" else None
        return step(text, "a sum over coordinates of formulas of negative type", inner)
    if isinstance(term, Apply) and term.operation == "log":
        inner = prover.negative_type(term.arguments[0])
        if inner is None or not lower_bound(term.arguments[0], prover.space) > 0:
            return None
        return Step(text, "log N of negative type, for N > 0 of negative type", (inner,))
    if isinstance(term, Apply) and term.operation == "maximum" and are_mirrored(*term.arguments):
        return Step(text, "max(f(x), f(x')) is of negative type")
    return _power(prover, term, text)


def _power(prover: Prover, term: Expression, text: str) -> Step | None:
    """base**p."""
    coefficient, powers = factors(term, prover.space)
    if coefficient <= 0:
        return None
    if is_chi_squared(powers, prover.space):
        return Step(text, "(f - f')²/(f + f') is of negative type, for f ≥ 0")
    if len(powers) != 1 or (term in powers and not _is_distance(term)):
        return None
    ((base, p),) = powers.items()
    if (p == 2 and _is_distance(base)) or (0 < p <= 2 and _is_distance(base, absolute=True)):
        return Step(text, f"|h(x) - h(x')|^p is of negative type, for p = {p:g} in (0, 2]")
    if not 0 < p <= 1 or base == term:
        return None
    inner = prover.negative_type(base)
    if inner is None or lower_bound(base, prover.space) < 0:
        return None
    return Step(text, f"N^p of negative type, for p = {p:g} in (0, 1] and N ≥ 0 of negative type", (inner,))


def _is_distance(node: Expression, absolute: bool = False) -> bool:
    """h(x) - h(x') or sin(h(x) - h(x')); with ``absolute``, its absolute value."""
    if isinstance(node, Apply) and node.operation == "absolute":
        return _is_distance(node.arguments[0])
    if absolute:
        return False
    if isinstance(node, Apply) and node.operation == "sin":
        node = node.arguments[0]  # sin²d = (1 - cos 2d)/2
    return is_difference(node)


def _combination(weights: dict[Expression, float]) -> str:
    texts = [{1.0: repr(term), -1.0: f"-{term!r}"}.get(c) or f"{c:g} {term!r}" for term, c in weights.items()]
    return " + ".join(texts).replace("+ -", "- ")
