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
from math import inf
from typing import Any

from mercer.certify.bounds import Space
from mercer.certify.formula import Prover, fails, is_ours, is_trusted
from mercer.certify.proof import Open, Step
from mercer.data import points as data
from mercer.data.types import Points
from mercer.errors import InputError
from mercer.kernels import compose
from mercer.kernels.base import Kernel
from mercer.kernels.columns.table import ColumnKernel
from mercer.kernels.domain import Domain
from mercer.kernels.formula.expression import Expression
from mercer.kernels.formula.pair import External, Mapping
from mercer.kernels.parameters import is_vector
from mercer.kernels.sets.invariance import Invariant
from mercer.kernels.sets.sets import GeneralSetKernel, SetKernel, stack_elements
from mercer.kernels.spectral.radial import Radial
from mercer.kernels.vectors.histogram import ChiSquared
from mercer.kernels.vectors.stationary import Delta, Matern, Wendland


@dataclass(frozen=True)
class Setting:
    """What is known of the points a kernel is asked about."""

    dim: int | None = None  # how many columns the points have
    points: Any = None  # some of the points, where they are known
    seen: str = "points"  # what a part of a kernel sees: "values of the feature map", "elements", …


_MULTIPLICITIES = "multiplicities"  # They are never negative.

Result = Step | Open
Rule = Callable[[Any, Setting], Result]
RULES: dict[type[Kernel], Rule] = {}


def prove(kernel: Kernel, setting: Setting) -> Result:
    """A derivation of: the kernel is positive definite."""
    rule = RULES.get(type(kernel))
    result = rule(kernel, setting) if rule else _leaf(kernel, setting)
    if isinstance(result, Open) and rule:
        whole = _by_formula(kernel, setting)  # The whole may be proved although a part is not.
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
        return _from_parts(kernel, kernel.closure, Setting(seen="what is compared"))
    if not is_trusted(kernel):
        return _by_formula(kernel, setting)
    assert kernel.lemma is not None
    return Step(repr(kernel), kernel.lemma, needs=_needs(kernel, setting))


def _needs(kernel: Kernel, setting: Setting) -> tuple[str, ...]:
    """What a kernel asks of the points, and refuses to be computed without."""
    is_so = kernel.domain is not Domain.NONNEGATIVE or setting.seen == _MULTIPLICITIES
    return () if is_so else (f"{setting.seen} ≥ 0",)


def _by_formula(kernel: Kernel, setting: Setting) -> Result:
    expression = _expression(kernel)
    if isinstance(expression, Open):
        return expression
    proof = _prover(kernel, setting).kernel(expression)
    if proof is not None:
        return Step(repr(kernel), f"by its formula, {proof.rule}", (proof,), _needs(kernel, setting))
    if isinstance(expression, External):
        return Open(f"{kernel!r} is computed outside any formula, so nothing can be proved about it")
    why = fails(expression, _space(kernel, setting))
    if why is not None:
        return Open(f"{kernel!r}: {why}", fails=True)
    claim = "" if kernel.lemma is None else f" (its lemma, {kernel.lemma!r}, is a claim that was not checked)"
    return Open(f"no rule proves {kernel!r}, k = {_short(expression)}{claim}")


def _prover(kernel: Kernel, setting: Setting) -> Prover:
    return Prover(_space(kernel, setting))


def _space(kernel: Kernel, setting: Setting) -> Space:
    return Space(kernel.domain is Domain.NONNEGATIVE, setting.dim, setting.seen)


def _expression(kernel: Kernel) -> Expression | Open:
    try:
        return kernel.expression()
    except InputError as error:  # A parameter, or reference points, may wait for data.
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
    there would cast shadows on ℝ^d that fill balls, not spheres. A density may do so: it is left open.
    """
    t, w = kernel.measure()
    if not w[t > 0].any():
        return Step(repr(kernel), "a constant that is zero or more")
    if kernel.dim == inf:
        return Step(repr(kernel), "a mixture of Gaussians, positive definite in every dimension (Schoenberg)")
    largest = int(kernel.dim)
    if kernel.density is not None and setting.dim is not None and setting.dim > largest:
        return Open(f"{kernel!r} is a mixture of waves on spheres of ℝ^{largest}, not of ℝ^{setting.dim}")
    return _up_to(kernel, largest, "(Schoenberg: a mixture of spheres' transforms)", setting)


def _up_to(kernel: Kernel, largest: int, why: str, setting: Setting) -> Result:
    """A kernel that is one in ℝ^m exactly for m ≤ largest."""
    dim = setting.dim
    if dim is not None and dim > largest:
        return Open(
            f"{kernel!r} is positive definite in ℝ^m for m ≤ {largest}, not in ℝ^{dim} {why}", fails=True
        )
    needs = () if dim is not None else (f"{setting.seen} in ℝ^m, m ≤ {largest}",)
    return Step(repr(kernel), f"positive definite in ℝ^m for m ≤ {largest} {why}", needs=needs)


# --- the algebra ---------------------------------------------------------------------------------


#: Such a composition is no kernel if its part is none.
_FAITHFUL = (compose.Scaled, compose.Normalized, compose.OnColumns)


def _from_parts(kernel: Kernel, rule: str, setting: Setting, of_part: Rule = prove) -> Result:
    """The kernel, by a rule that asks one thing of each of its parts: that it is a kernel."""
    parts = []
    for child in kernel.children().values():
        part = of_part(child, setting)
        if isinstance(part, Open):  # A sum, a product or a power may be a kernel all the same.
            return part if type(kernel) in _FAITHFUL else replace(part, fails=False)
        parts.append(part)
    return Step(repr(kernel), rule, tuple(parts))


#: Compositions that are kernels if what they are made of are, and why.
_CLOSED: dict[type[Kernel], str] = {
    compose.Sum: "a sum of kernels",
    compose.PolynomialOf: "a polynomial of a kernel with coefficients ≥ 0",
    compose.Exp: "exp of a kernel: Σ kⁿ/n!, every coefficient ≥ 0",
    compose.Normalized: "f(x) k(x, x') f(x') with f(x) = k(x, x)^{-1/2}",
    compose.OnColumns: "a kernel on some of the columns",
    compose.Mapped: "k(φ(x), φ(x')), for any map φ",
}


@_rule(*_CLOSED)
def _closed(kernel: Kernel, setting: Setting) -> Result:
    return _from_parts(kernel, _CLOSED[type(kernel)], _below(kernel, setting))


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


@_rule(ColumnKernel)
def _column_kernel(kernel: ColumnKernel, setting: Setting) -> Result:
    """The kernel of a column sees as many columns as its key names, whatever else is in the table."""
    if isinstance(kernel.columns, str):
        return _leaf(kernel, setting)
    parts = []
    for key, part in kernel.columns.items():
        result = prove(part, Setting(len(key) if isinstance(key, tuple) else 1, seen="values of the columns"))
        if isinstance(result, Open):
            is_part = len(kernel.columns) > 1 or kernel.combine == "anova" or kernel.weights
            return replace(result, fails=False) if is_part else result
        parts.append(result)
    return Step(repr(kernel), kernel.closure, tuple(parts))


def _below(kernel: Kernel, setting: Setting) -> Setting:
    """What is known of the points that the parts of a kernel see."""
    points = setting.points
    if isinstance(kernel, compose.OnColumns):
        points = None if points is None else data.columns(points, list(kernel.columns))
        return replace(setting, dim=len(kernel.columns), points=points)
    if isinstance(kernel, compose.Mapped):
        points = None if points is None else Mapping(kernel.function)(points)
        return _setting(points, "values of the feature map")
    return setting


def _setting(points: Points | None, seen: str) -> Setting:
    return Setting(None if points is None else data_width(points), points, seen)


def data_width(points: Points) -> int | None:
    """How many columns the points have, if they are rows of a table."""
    shape = getattr(points, "shape", None)
    if shape is not None:
        return int(shape[1]) if len(shape) == 2 else None
    first = points[0] if isinstance(points, list | tuple) and points else None
    return len(first) if isinstance(first, list | tuple) else None


# --- sets ----------------------------------------------------------------------------------------


@_rule(SetKernel)
def _set(kernel: SetKernel, setting: Setting) -> Result:
    sets = setting.points
    elements = None if sets is None else stack_elements(kernel.base, sets)[0]
    return _from_parts(kernel, kernel.closure, _setting(elements, "elements"))


@_rule(GeneralSetKernel)
def _general_set(kernel: GeneralSetKernel, setting: Setting) -> Result:
    elements = None if setting.points is None else kernel._read(setting.points)[0]
    element = prove(kernel.element, _setting(elements, "elements"))
    count = prove(kernel.count, Setting(1, seen=_MULTIPLICITIES))
    if isinstance(element, Open):
        return element
    return count if isinstance(count, Open) else Step(repr(kernel), kernel.closure, (element, count))


@_rule(Invariant)
def _invariant(kernel: Invariant, setting: Setting) -> Result:
    """A point is one of its variants, so they all have its columns."""
    return _from_parts(kernel, kernel.closure, Setting(setting.dim, seen="points and their variants"))


# --- every power ---------------------------------------------------------------------------------

#: Every power k^p, p > 0, of these is a kernel again, although their formula does not show it.
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
        repr(kernel),
        f"every power is a kernel, by its formula, {proof.rule}",
        (proof,),
        _needs(kernel, setting),
    )
