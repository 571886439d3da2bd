r"""Differences that are kernels all the same: what is taken away is there more than once.

**Power series.** A formula is expanded in products of its parts. It is a kernel when every coefficient is ≥ 0
in the end: (1 + k)² - 1 = 2k + k²; and exp(ak) = Σₙ aⁿkⁿ/n! pays for what is taken from its terms, as in
exp(k) - k²/2.

**Spectra.** In ℝ^d the densities of exp(-ar) and exp(-ar²) are, but for a common factor,

    a (a² + ω²)^{-(d+1)/2}        and        a^{-d/2} exp(-ω²/4a).

If gⱼ ≥ 0 falls in j at each ω, then Σⱼ uⱼ gⱼ = Σⱼ (u₁ + … + uⱼ)(gⱼ - gⱼ₊₁), with 0 after the last g, is ≥ 0
when all partial sums of the uⱼ are (Abel). So Σⱼ cⱼ exp(-aⱼr) is a kernel if the partial sums of cⱼaⱼ are
≥ 0, slow decay first, or those of cⱼaⱼ^{-d}, fast decay first; Σⱼ cⱼ exp(-aⱼr²) if those of cⱼaⱼ^{-d/2} are,
fast decay first.

>>> from mercer.certify.formula import Prover
>>> from mercer.kernels.formula.expression import exp, sqrt
>>> from mercer.kernels.formula.pair import Pair
>>> r = sqrt(Pair().sqdist)
>>> print(Prover().kernel(exp(-r) - 0.5 * exp(-2 * r)))
(exp(sqrt(sqdist) * -1) - 0.5 * exp(-2 * sqrt(sqdist))): exponentials whose spectral densities add up to ≥ 0
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import accumulate
from math import factorial
from typing import TYPE_CHECKING

from mercer.certify.factors import factors
from mercer.certify.parts import Coefficients, number, terms
from mercer.certify.proof import Step, step
from mercer.kernels.formula.expression import ONE, Apply, Expression
from mercer.kernels.formula.pair import Quantity

if TYPE_CHECKING:
    from mercer.certify.formula import Prover

Monomial = frozenset[tuple[Expression, int]]  # factors and their powers
Series = dict[Monomial, Fraction]

#: These bound the work: an expansion with more terms, a higher power or a higher dimension is left undecided.
_MOST_TERMS, _HIGHEST_POWER, _HIGHEST_DIMENSION = 64, 16, 64
_ROUNDING_MARGIN = 1e-12  # Rounding may take this share from a sum of powers that are no fractions.


# --- power series --------------------------------------------------------------------------------


def power_series(prover: Prover, node: Expression) -> Step | None:
    """The formula as a sum of products of kernels with coefficients ≥ 0."""
    series = _expanded(node)
    if series is None or series == {frozenset([(node, 1)]): 1}:
        return None
    paid: list[Step | None] = []
    for monomial, coefficient in list(series.items()):
        if coefficient < 0:
            source = _payer(series, monomial, -coefficient)
            if source is None:
                return None
            paid.append(prover.kernel(source))
            del series[monomial]
    parts = [prover.kernel(_product(monomial)) for monomial in series if monomial]
    if frozenset() in series:
        parts.append(Step(f"{float(series[frozenset()]):g}", "a constant that is zero or more"))
    return step(repr(node), "a power series of kernels, expanded: all coefficients are ≥ 0", *paid, *parts)


def _expanded(node: Expression) -> Series | None:
    """{product of powers: coefficient}; None if there would be too many."""
    value = number(node)
    if value is not None:
        return {frozenset(): Fraction(value)} if value else {}
    if isinstance(node, Apply) and node.operation in ("add", "subtract", "multiply"):
        left, right = (_expanded(argument) for argument in node.arguments)
        if left is None or right is None:
            return None
        if node.operation == "multiply":
            return _multiplied(left, right)
        sign = 1 if node.operation == "add" else -1
        return _summed([*left.items(), *((m, sign * c) for m, c in right.items())])
    if isinstance(node, Apply) and node.operation == "integer_power":
        base, exponent = _expanded(node.arguments[0]), number(node.arguments[1])
        if base is None or exponent is None or not (0 <= exponent <= _HIGHEST_POWER and exponent % 1 == 0):
            return None
        power: Series | None = {frozenset(): Fraction(1)}
        for _ in range(int(exponent)):
            power = None if power is None else _multiplied(power, base)
        return power
    return {frozenset([(node, 1)]): Fraction(1)}


def _multiplied(left: Series, right: Series) -> Series | None:
    if len(left) * len(right) > _MOST_TERMS:
        return None
    products = []
    for m, c in left.items():
        for n, d in right.items():
            powers = dict(m)
            for base, exponent in n:
                powers[base] = powers.get(base, 0) + exponent
            products.append((frozenset(powers.items()), c * d))
    return _summed(products)


def _summed(items: Iterable[tuple[Monomial, Fraction]]) -> Series:
    total: Series = {}
    for monomial, coefficient in items:
        total[monomial] = total.get(monomial, Fraction(0)) + coefficient
    return {monomial: coefficient for monomial, coefficient in total.items() if coefficient}


def _product(monomial: Monomial) -> Expression:
    total: Expression = ONE
    for base, exponent in sorted(monomial, key=repr):
        total = total * base**exponent
    return total


def _payer(series: Series, monomial: Monomial, amount: Fraction) -> Expression | None:
    """The b of exponentials exp(ab), a > 0, whose terms in bⁿ make up for what is taken: amount · bⁿ."""
    if len(monomial) > 1:
        return None
    wanted, n = next(iter(monomial), (None, 0))
    available: dict[Expression, Fraction] = {}
    for other, weight in series.items():
        ((base, power),) = other if len(other) == 1 else [(ONE, 0)]
        if weight <= 0 or power != 1 or not (isinstance(base, Apply) and base.operation == "exp"):
            continue
        constant, linear = terms(base.arguments[0])
        if constant != 0 or len(linear) != 1:
            continue
        ((inner, a),) = linear.items()
        if a > 0 and wanted in (inner, None):
            available[inner] = available.get(inner, Fraction(0)) + weight * Fraction(a) ** n / factorial(n)
    return next((inner for inner, total in available.items() if total >= amount), None)


# --- spectra -------------------------------------------------------------------------------------


def spectral_sum(prover: Prover, node: Expression, constant: float, pair: Coefficients) -> Step | None:
    """Σⱼ cⱼ exp(-aⱼ r^p) plus a constant ≥ 0, p = 1 or 2, r one Euclidean distance."""
    if constant < 0 or not all(isinstance(term, Apply) and term.operation == "exp" for term in pair):
        return None
    rates: list[tuple[Fraction, Fraction]] = []
    kinds = set()
    for term, coefficient in pair.items():
        offset, linear = terms(term.children[0])
        if offset != 0 or len(linear) != 1:
            return None
        ((inner, rate),) = linear.items()
        scale, powers = factors(inner, prover.space)
        ((base, p),) = powers.items() if len(powers) == 1 else [(inner, 0.0)]
        if not (
            isinstance(base, Quantity) and base.kind == "sqdist" and p in (0.5, 1.0) and rate * scale < 0
        ):
            return None
        kinds.add((base, p))
        rates.append((-Fraction(rate) * Fraction(scale), Fraction(coefficient)))
    if len(kinds) != 1:
        return None
    ((base, p),) = kinds
    rates.sort()
    holds = _exponentials if p == 0.5 else _gaussians
    rule = f"{'exponentials' if p == 0.5 else 'Gaussians'} whose spectral densities add up to ≥ 0"
    if p == 0.5 and _partial_sums(a * c for a, c in rates):
        return Step(repr(node), rule)
    return _up_to(
        repr(node), rule, lambda dim: holds(rates, dim), prover.space.columns(base.view), prover.space.seen
    )


def _up_to(text: str, rule: str, holds: Callable[[int], bool], dim: int | None, seen: str) -> Step | None:
    """What holds in ℝ^m for m ≤ some dimension."""
    if dim is not None:
        return Step(text, f"{rule} in ℝ^{dim}") if holds(dim) else None
    largest = next((m for m in range(_HIGHEST_DIMENSION) if not holds(m + 1)), _HIGHEST_DIMENSION)
    return Step(text, rule, needs=(f"{seen} in ℝ^m, m ≤ {largest}",)) if largest else None


def _partial_sums(values: Iterable[Fraction | float], least: float = 0.0) -> bool:
    return all(total >= least for total in accumulate(values))


def _exponentials(rates: list[tuple[Fraction, Fraction]], dim: int) -> bool:
    return _partial_sums(c / a**dim for a, c in reversed(rates))


def _gaussians(rates: list[tuple[Fraction, Fraction]], dim: int) -> bool:
    try:
        weights = [float(c) * float(a / rates[0][0]) ** (-dim / 2) for a, c in reversed(rates)]
    except OverflowError:
        return False
    return _partial_sums(weights, _ROUNDING_MARGIN * sum(map(abs, weights)))
