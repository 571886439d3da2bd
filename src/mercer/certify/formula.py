r"""A prover on the formula itself: for kernels that no lemma speaks of.

Three statements are proved about a formula of a pair of points, each from the others:

- it is **positive definite**, a kernel;
- **every power** of it, k^p with any real p > 0, is one (k is infinitely divisible);
- it is **of negative type**: symmetric, with Σᵢⱼ cᵢcⱼ N(xᵢ, xⱼ) ≤ 0 whenever Σᵢ cᵢ = 0.

The rules are theorems (Schoenberg 1938; Berg, Christensen and Ressel 1984, chapters 3 and 4):

- positive definite: ⟨x, x'⟩; constants ≥ 0; f(x) f(x'); cos(h(x) - h(x')); the hat (c - |h(x) - h(x')|)₊;
  the truncated power (c - ‖x - x'‖)₊^δ in ℝ^m for m ≤ 2δ - 1 (Askey 1973), and for no other m (Golubov 1981);
  sums, some differences (``mercer.certify.differences``), products, whole powers; Σₖ and Πₖ over
  coordinates of what is positive definite in one dimension; N(x, 0) + N(0, x') - N(x, x') - N(0, 0) for N of
  negative type; Matérn's three closed forms;
- with every power: exp(-N) and, for N > 0, N^{-α}; min(f(x), f(x')) for f ≥ 0; [N = 0]; products, powers;
- of negative type: see ``mercer.certify.negative``.

Numbers are known when a kernel is certified, so every sign is decided. A statement holds wherever the
formula is defined (not at 0/0, say).

>>> from mercer.kernels.formula.expression import exp, sqrt
>>> from mercer.kernels.formula.pair import Pair
>>> print(Prover().kernel(exp(-sqrt(Pair().sqdist) / 2) + 1))
(exp(sqrt(sqdist) * -0.5) + 1): a sum of kernels
├─ exp(sqrt(sqdist) * -0.5): exp(-N) for N of negative type (Schoenberg)
│  └─ 0.5 sqrt(sqdist): N^p of negative type, for p = 0.5 in (0, 1] and N ≥ 0 of negative type
│     └─ sqdist: of negative type, a squared Euclidean distance
└─ 1: a constant that is zero or more
>>> Prover().kernel(exp(-(Pair().sqdist ** 2))) is None
True
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from mercer.certify.bounds import Space, bounds
from mercer.certify.differences import power_series, spectral_sum
from mercer.certify.factors import factors
from mercer.certify.negative import lower_bound, negative_term, negative_type
from mercer.certify.parts import (
    Coefficients,
    are_mirrored,
    diagonal,
    is_difference,
    mirrored,
    number,
    sides,
    split,
    terms,
)
from mercer.certify.patterns import centred_at_zero, matern_square
from mercer.certify.proof import Step, step
from mercer.kernels.formula.expression import Apply, Expression
from mercer.kernels.formula.pair import External, Quantity

_CONSTANT = "a constant that is zero or more"
_SCHOENBERG = "N(x, 0) + N(0, x') - N(x, x') - N(0, 0) for N of negative type (Schoenberg)"
_MATERN = "(a + bz + gz²) exp(-cz) for z² of negative type, a sum of Matérn kernels of ν = 1/2, 3/2, 5/2"


def is_ours(kernel: object) -> bool:
    """Whether the class of this object is mercer's own: what others say of theirs is a claim."""
    kind = type(kernel)
    module = sys.modules.get(kind.__module__)
    return kind.__module__.split(".")[0] == "mercer" and getattr(module, kind.__name__, None) is kind


def is_trusted(kernel: object) -> bool:
    """Whether this object has a lemma, and the lemma is mercer's own."""
    return is_ours(kernel) and getattr(kernel, "lemma", None) is not None


class Prover:
    """Proofs about formulas on one space of points; each is a ``Step``, or None where no rule applies."""

    def __init__(self, space: Space = Space()) -> None:  # noqa: B008 (immutable)
        self.space = space
        self._known: dict[tuple[str, bool, Expression], Step | None] = {}

    def kernel(self, node: Expression, every_power: bool = False) -> Step | None:
        """The formula is positive definite; with ``every_power``, so is every power p > 0 of it."""
        key = "kernel", every_power, node
        if key not in self._known:
            self._known[key] = _kernel(self, node, every_power)
        return self._known[key]

    def negative_type(self, node: Expression, negated: bool = False) -> Step | None:
        """The formula, or minus the formula, is of negative type."""
        key = "negative type", negated, node
        if key not in self._known:
            self._known[key] = negative_type(self, node, negated)
        return self._known[key]

    def inside(self, quantity: Quantity) -> Prover:
        """The prover for the term of a sum or product over coordinates."""
        return Prover(self.space.inside(quantity.view))


def _kernel(prover: Prover, node: Expression, every_power: bool) -> Step | None:
    value = number(node)
    if value is not None:
        return Step(f"{value:g}", _CONSTANT) if value >= 0 else None
    if sides(node) == 0:
        return None  # The constant is not finite.
    if isinstance(node, Quantity):
        return _quantity(prover, node, every_power)
    if isinstance(node, External):
        proved = is_trusted(node.source) and not every_power
        return Step(repr(node), node.source.lemma) if proved else None
    if not isinstance(node, Apply):
        return None
    if node.operation in ("add", "subtract"):
        return None if every_power else _sum(prover, node)
    rule = _RULES.get(node.operation)
    return (rule and rule(prover, node, every_power)) or _product(prover, node, every_power)


def _quantity(prover: Prover, node: Quantity, every_power: bool) -> Step | None:
    if node.kind == "dot":
        return None if every_power else Step("dot", "an inner product")
    if node.kind == "sqdist" or (node.kind == "sum" and every_power):
        return None
    inner = prover.inside(node).kernel(node.term, every_power)
    return step(repr(node), f"a {node.kind} over coordinates of a kernel of each", inner)


# --- sums ----------------------------------------------------------------------------------------


def _sum(prover: Prover, node: Expression) -> Step | None:
    constant, linear = terms(node)
    left, right, pair = split(linear)
    if left or right or constant < 0 or any(c < 0 for c in pair.values()):
        found = _from_negative_type(prover, node, constant, left, right, pair)
        if found is None and not left and not right:
            found = spectral_sum(prover, node, constant, pair)
    else:
        parts = [prover.kernel(term) for term in pair]
        if constant or not pair:
            parts.append(Step(f"{constant:g}", _CONSTANT))
        found = step(repr(node), "a sum of kernels", *parts)
    return found or power_series(prover, node)


def _from_negative_type(
    prover: Prover,
    node: Expression,
    constant: float,
    left: Coefficients,
    right: Coefficients,
    pair: Coefficients,
) -> Step | None:
    """f(x) + f(x') - N(x, x') + c where f(x) is N(x, 0), plus kernels."""
    minus = {term: -c for term, c in pair.items() if c < 0}
    plus = [prover.kernel(term) for term, c in pair.items() if c > 0]
    if not minus or right != mirrored(left) or not centred_at_zero(minus, left, constant):
        return None
    parts = [negative_term(prover, term, c) for term, c in minus.items()]
    return step(repr(node), _SCHOENBERG, *parts, *plus)


# --- products and powers -------------------------------------------------------------------------


def _product(prover: Prover, node: Apply, every_power: bool) -> Step | None:
    coefficient, powers = factors(node, prover.space)
    if node in powers or coefficient < 0:
        return None  # This is no product, or a negative one.
    if coefficient == 0:
        return Step(repr(node), "zero")
    left, right, pair = split(powers)
    if right != mirrored(left) or (every_power and any(bounds(f, prover.space)[0] < 0 for f in left)):
        return None
    parts: list[Step | None] = []
    if left:
        text = " · ".join(_power_text(base, p) for base, p in (*left.items(), *right.items()))
        parts.append(Step(text, "f(x) f(x')"))
    square = None if every_power else matern_square(pair, prover.space)
    if square is not None:
        parts.append(step(repr(node), _MATERN, prover.negative_type(square)))
    else:
        parts += [_factor(prover, base, p, every_power) for base, p in pair.items()]
    if len(parts) == 1 and coefficient == 1:
        return parts[0] and Step(repr(node), parts[0].rule, parts[0].parts, parts[0].needs)
    return step(repr(node), "a product of kernels" if len(parts) > 1 else "a multiple of a kernel", *parts)


def _factor(prover: Prover, base: Expression, p: float, every_power: bool) -> Step | None:
    """base**p, as a kernel."""
    if p == 1:
        return prover.kernel(base, every_power)
    text = _power_text(base, p)
    if p < 0:
        inner = prover.negative_type(base)
        if inner is None or not lower_bound(base, prover.space) > 0:
            return None
        return Step(text, f"N^-α for α = {-p:g} > 0 and N > 0 of negative type", (inner,))
    if not every_power and isinstance(base, Apply) and base.operation == "maximum":
        truncated = _truncated_power(prover, base, p)
        if truncated is not None:
            return truncated
    if p.is_integer() and not every_power:
        return step(text, "a whole power of a kernel", prover.kernel(base))
    return step(text, "a power of a kernel of which every power is one", prover.kernel(base, True))


def _power_text(base: Expression, p: float) -> str:
    return repr(base) if p == 1 else f"({base!r})**{p:g}"


# --- single operations ---------------------------------------------------------------------------


def _exponential(prover: Prover, node: Apply, every_power: bool) -> Step | None:
    inner = prover.negative_type(node.arguments[0], negated=True)
    return step(repr(node), "exp(-N) for N of negative type (Schoenberg)", inner)


def _minimum(prover: Prover, node: Apply, every_power: bool) -> Step | None:
    u, v = node.arguments
    if are_mirrored(u, v) and bounds(u, prover.space)[0] >= 0:
        return Step(repr(node), "min(f(x), f(x')) = ∫ [t ≤ f(x)] [t ≤ f(x')] dt, for f ≥ 0")
    return None


def _hat(prover: Prover, node: Apply, every_power: bool) -> Step | None:
    """max(c - s|h(x) - h(x')|, 0): a triangle, whose Fourier transform is a square."""
    for inner, zero in (node.arguments, node.arguments[::-1]):
        constant, linear = terms(inner)
        if every_power or number(zero) != 0 or constant < 0 or len(linear) != 1:
            continue
        ((term, slope),) = linear.items()
        is_distance = isinstance(term, Apply) and term.operation == "absolute"
        if slope < 0 and is_distance and is_difference(term.children[0]):
            return Step(repr(node), "the hat (c - |h(x) - h(x')|)₊, the convolution of a box with itself")
    return None if every_power else _truncated_power(prover, node, 1.0)


def _whole_power(prover: Prover, node: Apply, every_power: bool) -> Step | None:
    base, exponent = node.arguments[0], number(node.arguments[1])
    if every_power or exponent is None or not (isinstance(base, Apply) and base.operation == "maximum"):
        return None
    return _truncated_power(prover, base, exponent)


def _truncated_power(prover: Prover, base: Apply, exponent: float) -> Step | None:
    """max(c - s‖x - x'‖, 0)**δ."""
    distance = _truncated(base, prover.space)
    largest = int(2 * exponent - 1) if exponent >= 1 else 0
    dim = None if distance is None else prover.space.columns(distance.view)
    if distance is None or largest < (1 if dim is None else dim):
        return None
    needs = () if dim is not None else (f"{prover.space.seen} in ℝ^m, m ≤ {largest}",)
    rule = f"(c - ‖x - x'‖)₊^{exponent:g}, a kernel in ℝ^m for m ≤ {largest} (Askey)"
    return Step(_power_text(base, exponent), rule, needs=needs)


def _truncated(base: Expression, space: Space) -> Quantity | None:
    """The ‖x - x'‖² of max(c - s‖x - x'‖, 0), c > 0 and s > 0."""
    if not (isinstance(base, Apply) and base.operation == "maximum"):
        return None
    for inner, zero in (base.arguments, base.arguments[::-1]):
        constant, linear = terms(inner)
        if number(zero) != 0 or constant <= 0 or len(linear) != 1:
            continue
        ((term, slope),) = linear.items()
        squared = _distance(term, space)
        if slope < 0 and squared is not None:
            return squared
    return None


def _distance(term: Expression, space: Space) -> Quantity | None:
    """The ‖x - x'‖² of a positive multiple of ‖x - x'‖."""
    scale, powers = factors(term, space)
    ((squared, power),) = powers.items() if len(powers) == 1 else [(term, 0.0)]
    is_root = power == 0.5 and scale > 0
    return squared if is_root and isinstance(squared, Quantity) and squared.kind == "sqdist" else None


def fails(node: Expression, space: Space) -> str | None:
    """Why a formula is no kernel in this dimension, by a theorem; None where none applies.

    (c - ‖x - x'‖)₊^δ is a kernel in ℝ^m for m ≤ 2δ - 1 and for no other m.
    """
    scale, powers = factors(node, space)
    if scale <= 0 or len(powers) != 1:
        return None
    ((base, exponent),) = powers.items()
    distance = _truncated(base, space)
    dim = None if distance is None else space.columns(distance.view)
    if dim is None or exponent <= 0 or dim <= 2 * exponent - 1:
        return None
    largest = max(int(2 * exponent - 1), 0)
    where = f"in ℝ^m for m ≤ {largest} and" if largest else "in ℝ^m for no m,"
    return f"(c - ‖x - x'‖)₊^{exponent:g} is positive definite {where} not in ℝ^{dim} (Golubov 1981)"


def _cosine(prover: Prover, node: Apply, every_power: bool) -> Step | None:
    if every_power:
        return None
    phase = node.arguments[0]
    if isinstance(phase, Apply) and phase.operation == "absolute":
        phase = phase.arguments[0]  # cos is even.
    distance = _distance(phase, prover.space)
    is_line = distance is not None and prover.space.columns(distance.view) == 1
    if is_line or is_difference(phase):
        return Step(repr(node), "cos(h - h') = cos h cos h' + sin h sin h'")
    return None


def _equality(prover: Prover, node: Apply, every_power: bool) -> Step | None:
    """[N ≤ 0] for N of negative type with N(x, x) = 0: √N is a distance, N = 0 an equivalence."""
    base, limit = node.arguments
    if number(limit) != 0 or bounds(diagonal(base), prover.space) != (0, 0):
        return None
    return step(repr(node), "the indicator of N = 0, an equivalence relation", prover.negative_type(base))


_RULES: dict[str, Callable[[Prover, Apply, bool], Step | None]] = {
    "exp": _exponential,
    "minimum": _minimum,
    "maximum": _hat,
    "integer_power": _whole_power,
    "cos": _cosine,
    "less_equal": _equality,
}
