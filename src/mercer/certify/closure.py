r"""Closure rules: what is built from kernels is a kernel.

One rule per class of the algebra, in a table keyed by the class itself, so that a subclass
someone else wrote is not mistaken for it. A leaf is proved by its lemma if the lemma is mercer's, else
from its formula.

>>> from mercer import Gaussian, Linear
>>> print(prove(2 * Gaussian(sigma=1.0) + Linear(), Setting()))
2 * Gaussian(sigma=1.0) + Linear(): a sum of kernels
├─ 2 * Gaussian(sigma=1.0): a kernel times 2 ≥ 0
│  └─ Gaussian(sigma=1.0): the Gaussian is the Fourier transform of a Gaussian measure (Bochner)
└─ Linear(): an inner product
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from mercer import data
from mercer.certify.bounds import Space
from mercer.certify.formula import Prover, is_ours, is_trusted
from mercer.certify.proof import Open, Step
from mercer.errors import InputError
from mercer.kernels import compose
from mercer.kernels.base import Kernel
from mercer.kernels.expression import Expression
from mercer.kernels.histogram import ChiSquared
from mercer.kernels.pair import External, Mapping
from mercer.kernels.parameters import is_vector
from mercer.kernels.spectral import Radial
from mercer.kernels.stationary import Delta, Matern, Wendland

__all__ = ["Setting", "prove"]


@dataclass(frozen=True)
class Setting:
    """What is known of the points a kernel is asked about."""

    dim: int | None = None  # how many columns they have
    points: Any = None  # some of them
    is_mapped: bool = False  # whether they come out of a feature map, which may do anything


Result = Step | Open
Rule = Callable[[Any, Setting], Result]
RULES: dict[type[Kernel], Rule] = {}


def prove(kernel: Kernel, setting: Setting) -> Result:
    """A derivation of: the kernel is positive definite."""
    rule = RULES.get(type(kernel))
    result = rule(kernel, setting) if rule else _leaf(kernel, setting)
    if isinstance(result, Open) and rule:
        whole = _by_formula(kernel, setting)  # the parts may be open and the whole be proved
        return whole if isinstance(whole, Step) else result
    return result


def _rule(*kinds: type[Kernel]) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(kinds, function))
        return function

    return register


# --- leaves --------------------------------------------------------------------------------------


def _leaf(kernel: Kernel, setting: Setting) -> Result:
    if is_ours(kernel) and kernel.closure is not None:
        return _from_parts(kernel, kernel.closure, Setting(is_mapped=True))
    if not is_trusted(kernel):
        return _by_formula(kernel, setting)
    if kernel.domain == "nonnegative" and setting.is_mapped:
        return Open(f"{kernel!r} needs points ≥ 0, and nothing is known of the values of a feature map")
    assert kernel.lemma is not None
    return Step(repr(kernel), kernel.lemma, needs=_needs(kernel))


def _needs(kernel: Kernel) -> tuple[str, ...]:
    return ("points ≥ 0",) if kernel.domain == "nonnegative" else ()


def _by_formula(kernel: Kernel, setting: Setting) -> Result:
    expression = _expression(kernel)
    if isinstance(expression, Open):
        return expression
    proof = _prover(kernel, setting).kernel(expression)
    if proof is not None:
        return Step(repr(kernel), f"by its formula, {proof.rule}", (proof,), _needs(kernel))
    if isinstance(expression, External):
        return Open(f"{kernel!r} is computed outside any formula, so nothing can be proved about it")
    claim = "" if kernel.lemma is None else f" (its lemma, {kernel.lemma!r}, is a claim that was not checked)"
    return Open(f"no rule proves {kernel!r}, k = {_short(expression)}{claim}")


def _prover(kernel: Kernel, setting: Setting) -> Prover:
    return Prover(Space(kernel.domain == "nonnegative" and not setting.is_mapped, setting.dim))


def _expression(kernel: Kernel) -> Expression | Open:
    try:
        return kernel.expression()
    except InputError as error:  # a parameter or reference points that wait for data
        return Open(str(error))


def _short(expression: Expression) -> str:
    text = repr(expression)
    return text if len(text) <= 100 else text[:99] + "…"


@_rule(Wendland)
def _wendland(kernel: Wendland, setting: Setting) -> Result:
    """(1-r)₊^j …, j = ⌊dim/2⌋ + s + 1: a kernel in ℝ^m exactly when j ≥ (m+1)/2 + s (Zastavnyi 2006)."""
    largest = 2 * (int(kernel.dim) // 2) + 1
    if is_vector(kernel.radius):
        setting = replace(setting, dim=len(kernel.radius))
    return _up_to(kernel, largest, "(Wendland 1995)", setting)


@_rule(Radial)
def _radial(kernel: Radial, setting: Setting) -> Result:
    """Ω_d is the transform of the sphere of ℝ^d. Were a mixture of some a kernel in ℝ^{d+1}, its spheres
    there would cast shadows on ℝ^d that fill balls, not spheres.
    """
    t, w = kernel.measure()
    if not w[t > 0].any():
        return Step(repr(kernel), "a constant that is zero or more")
    return _up_to(kernel, int(kernel.dim), "(Schoenberg: a mixture of spheres' transforms)", setting)


def _up_to(kernel: Kernel, largest: int, why: str, setting: Setting) -> Result:
    """A kernel that is one in ℝ^m exactly for m ≤ largest."""
    dim = setting.dim
    if dim is not None and dim > largest:
        return Open(
            f"{kernel!r} is positive definite in ℝ^m for m ≤ {largest}, not in ℝ^{dim} {why}", fails=True
        )
    of = "values of the feature map" if setting.is_mapped else "points"
    needs = () if dim is not None else (f"{of} in ℝ^m, m ≤ {largest}",)
    return Step(repr(kernel), f"positive definite in ℝ^m for m ≤ {largest} {why}", needs=needs)


# --- the algebra ---------------------------------------------------------------------------------


def _from_parts(kernel: Kernel, rule: str, setting: Setting, of_part: Rule = prove) -> Result:
    """The kernel, by a rule that asks one thing of each of its parts: that it is a kernel."""
    parts = []
    for child in kernel.children().values():
        part = of_part(child, setting)
        if isinstance(part, Open):
            return part
        parts.append(part)
    return Step(repr(kernel), rule, tuple(parts))


@_rule(compose.Sum)
def _sum(kernel: compose.Sum, setting: Setting) -> Result:
    return _from_parts(kernel, "a sum of kernels", setting)


@_rule(compose.Product)
def _product(kernel: compose.Product, setting: Setting) -> Result:
    parts = list(kernel.children().values())
    on = [part for part in parts if isinstance(part, compose.OnColumns)]
    columns = [column for part in on for column in part.columns]
    is_tensor = on == parts and len(columns) == len(set(columns))
    rule = "a tensor product of kernels on different columns" if is_tensor else "a product of kernels (Schur)"
    return _from_parts(kernel, rule, setting)


@_rule(compose.Scaled)
def _scaled(kernel: compose.Scaled, setting: Setting) -> Result:
    if kernel.scale == 0:
        return Step(repr(kernel), "zero, whatever it multiplies")
    return _from_parts(kernel, f"a kernel times {kernel.scale:g} ≥ 0", setting)


@_rule(compose.Power)
def _power(kernel: compose.Power, setting: Setting) -> Result:
    if kernel.exponent == 0:
        return Step(repr(kernel), "the power 0 is the constant 1")
    if float(kernel.exponent).is_integer():
        return _from_parts(kernel, "a whole power of a kernel (Schur)", setting)
    return _from_parts(kernel, "a power of a kernel of which every power is one", setting, _every_power)


@_rule(compose.PolynomialOf)
def _polynomial(kernel: compose.PolynomialOf, setting: Setting) -> Result:
    return _from_parts(kernel, "a polynomial of a kernel with coefficients ≥ 0", setting)


@_rule(compose.Exp)
def _exp(kernel: compose.Exp, setting: Setting) -> Result:
    return _from_parts(kernel, "exp of a kernel: Σ kⁿ/n!, every coefficient ≥ 0", setting)


@_rule(compose.Normalized)
def _normalized(kernel: compose.Normalized, setting: Setting) -> Result:
    return _from_parts(kernel, "f(x) k(x, x') f(x') with f(x) = k(x, x)^{-1/2}", setting)


@_rule(compose.Centered)
def _centered(kernel: compose.Centered, setting: Setting) -> Result:
    result = _from_parts(kernel, "the inner product of features, each less their mean", setting)
    inner = _expression(kernel.kernel)
    if isinstance(result, Step) or isinstance(inner, Open):
        return result
    negative = _prover(kernel.kernel, setting).negative_type(inner, negated=True)
    if negative is None:
        return result
    return Step(repr(kernel), "a conditionally positive definite kernel, centred (Schoenberg)", (negative,))


@_rule(compose.OnColumns)
def _on_columns(kernel: compose.OnColumns, setting: Setting) -> Result:
    return _from_parts(kernel, "a kernel on some of the columns", _below(kernel, setting))


@_rule(compose.Mapped)
def _mapped(kernel: compose.Mapped, setting: Setting) -> Result:
    return _from_parts(kernel, "k(φ(x), φ(x')), for any map φ", _below(kernel, setting))


def _below(kernel: Kernel, setting: Setting) -> Setting:
    """What is known of the points that the parts of a kernel see."""
    points = setting.points
    if isinstance(kernel, compose.OnColumns):
        if points is not None:
            points = data.columns(points, list(kernel.columns))
            if kernel.kernel.domain == "nonnegative" and not setting.is_mapped:
                vectors = data.as_vectors(points, "points")
                data.require_nonnegative(vectors, "points", type(kernel.kernel).__name__)
        return replace(setting, dim=len(kernel.columns), points=points)
    if isinstance(kernel, compose.Mapped):
        points = None if points is None else Mapping(kernel.function)(points)
        return Setting(None if points is None else data_width(points), points, is_mapped=True)
    return setting


def data_width(points: Any) -> int | None:
    """How many columns the points have, if they are rows of a table."""
    shape = getattr(points, "shape", None)
    if shape is not None:
        return int(shape[1]) if len(shape) == 2 else None
    first = points[0] if isinstance(points, list | tuple) and points else None
    return len(first) if isinstance(first, list | tuple) else None


# --- every power ---------------------------------------------------------------------------------

#: kernels with every power k^p, p > 0, a kernel again, where the formula does not show it
DIVISIBLE: dict[type[Kernel], str] = {
    ChiSquared: "its power p is the kernel with p·gamma for gamma",
    Delta: "it is its own power",
    Matern: "the Fourier transform of a Student density, which is infinitely divisible (Grosswald 1976)",
}
_KEEP = (
    compose.Product,
    compose.Scaled,
    compose.Power,
    compose.Normalized,
    compose.OnColumns,
    compose.Mapped,
)


def _every_power(kernel: Kernel, setting: Setting) -> Result:
    """A derivation of: k^p is positive definite for every p > 0."""
    kind = type(kernel)
    if kind in DIVISIBLE:
        leaf = _leaf(kernel, setting)
        rule = f"every power is a kernel: {DIVISIBLE[kind]}"
        return leaf if isinstance(leaf, Open) else Step(repr(kernel), rule, (leaf,))
    if kind in _KEEP:
        rule = "every power is a kernel, as of its parts"
        return _from_parts(kernel, rule, _below(kernel, setting), _every_power)
    expression = _expression(kernel)
    proof = None if isinstance(expression, Open) else _prover(kernel, setting).kernel(expression, True)
    if proof is None:
        return Open(f"no rule proves that every power of {kernel!r} is a kernel")
    return Step(
        repr(kernel), f"every power is a kernel, by its formula, {proof.rule}", (proof,), _needs(kernel)
    )
