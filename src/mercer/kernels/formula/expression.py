r"""Scalar formulas as trees: what a kernel's ``formula`` builds.

A formula such as ``exp(-pair.sqdist / (2 * self.sigma**2))`` is ordinary Python. Called with
symbols instead of numbers it leaves behind a small tree: numbers and symbols at the leaves,
operations of the table ``OPERATIONS`` inside. Each operation states side by side how it is
printed for every backend and what its partial derivatives are; nothing else in mercer knows
a formula.

>>> s = Symbol("s")
>>> e = exp(-s / 2)
>>> e
exp(s * -0.5)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np

from mercer.kernels.formula.special import matern_shape

__all__ = [
    "Apply",
    "Expression",
    "Number",
    "Symbol",
    "absolute",
    "arccos",
    "cos",
    "exp",
    "log",
    "maximum",
    "minimum",
    "sin",
    "sqrt",
    "tanh",
    "where",
]

_RUN_LENGTH = (
    64  # parts that are combined one after the other; longer lists become trees, which are less deep
)


class Expression:
    """A node of a formula. Arithmetic on it builds larger formulas."""

    def __add__(self, other: object) -> Expression:
        return _add(self, wrap(other))

    def __radd__(self, other: object) -> Expression:
        return _add(wrap(other), self)

    def __sub__(self, other: object) -> Expression:
        return _subtract(self, wrap(other))

    def __rsub__(self, other: object) -> Expression:
        return _subtract(wrap(other), self)

    def __mul__(self, other: object) -> Expression:
        return _multiply(self, wrap(other))

    def __rmul__(self, other: object) -> Expression:
        return _multiply(wrap(other), self)

    def __truediv__(self, other: object) -> Expression:
        return _divide(self, wrap(other))

    def __rtruediv__(self, other: object) -> Expression:
        return _divide(wrap(other), self)

    def __neg__(self) -> Expression:
        return _multiply(self, Number(-1.0))

    def __pos__(self) -> Expression:
        return self

    def __abs__(self) -> Expression:
        return absolute(self)

    def __pow__(self, exponent: Any) -> Expression:
        return _power(self, wrap(exponent))

    def __rpow__(self, base: Any) -> Expression:
        return exp(log(wrap(base)) * self)

    def __le__(self, other: object) -> Expression:
        return _apply("less_equal", self, wrap(other))

    def __ge__(self, other: object) -> Expression:
        return _apply("less_equal", wrap(other), self)

    def __lt__(self, other: object) -> Expression:
        return _subtract(Number(1.0), wrap(other) <= self)

    def __gt__(self, other: object) -> Expression:
        return _subtract(Number(1.0), self <= wrap(other))

    def __bool__(self) -> bool:
        raise TypeError(
            "a formula has no truth value: it stands for every pair of points at once; "
            "write where(condition, a, b) instead of `if`"
        )

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """``np.exp(pair.sqdist)`` means the same as ``exp(pair.sqdist)``."""
        function = _UFUNCS.get(ufunc.__name__)
        if function is None or method != "__call__" or options:
            known = ", ".join(sorted(_UFUNCS))
            raise TypeError(f"np.{ufunc.__name__} has no meaning in a formula: use one of {known}")
        return function(*(wrap(value) for value in inputs))

    @property
    def children(self) -> tuple[Expression, ...]:
        return ()

    def leaves(self) -> Iterator[Expression]:
        """Every leaf, left to right, repeats included."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


@dataclass(frozen=True, repr=False)
class Number(Expression):
    """A constant."""

    value: float

    def __repr__(self) -> str:
        return f"{self.value:g}"


@dataclass(frozen=True, repr=False)
class Symbol(Expression):
    """A named unknown."""

    name: str

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, repr=False)
class Apply(Expression):
    """An operation of the table on its arguments."""

    operation: str
    arguments: tuple[Expression, ...]

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.arguments

    @cached_property
    def _hash(self) -> int:
        return hash((self.operation, self.arguments))

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return OPERATIONS[self.operation].text.format(*map(repr, self.arguments))


# --- the table of operations ---------------------------------------------------------------------


@dataclass(frozen=True)
class Operation:
    """One operation: how people read it, how each backend and LaTeX write it, how it is differentiated.

    ``partials`` maps the arguments to the partial derivatives, ``None`` where an argument is
    not differentiable. ``value`` is the NumPy meaning, the reference every printer must match.
    """

    text: str
    value: Callable[..., Any]
    printed: Mapping[str, str]
    partials: Callable[..., tuple[Expression | None, ...]]


def _printed(
    both: str, numpy: str | None = None, torch: str | None = None, triton: str | None = None, latex: str = ""
) -> dict[str, str]:
    """Templates by who prints them; arithmetic and powers have none for LaTeX, which lays them out whole."""
    others = {"numpy": numpy or both, "torch": torch or both, "triton": triton or both}
    return {"numba": both, **others, "latex": latex}


def _call(name: str, triton: str | None = None, latex: str = "") -> dict[str, str]:
    others = f"np.{name}({{0}})", f"torch.{name}({{0}})", f"{triton or f'tl.{name}'}({{0}})"
    return _printed(f"{name}({{0}})", *others, latex or rf"\{name}\left({{0}}\right)")


def _call_of_two(name: str, latex: str) -> dict[str, str]:
    others = f"np.{name}({{0}}, {{1}})", f"torch.{name}({{0}}, {{1}})", f"tl.{name}({{0}}, {{1}})"
    return _printed(f"{name}({{0}}, {{1}})", *others, rf"{latex}\left({{0}}, {{1}}\right)")


ONE: Expression
ZERO: Expression
exp: Callable[..., Any]
log: Callable[..., Any]
sqrt: Callable[..., Any]
tanh: Callable[..., Any]
sin: Callable[..., Any]
cos: Callable[..., Any]
arccos: Callable[..., Any]
absolute: Callable[..., Any]
minimum: Callable[..., Any]
maximum: Callable[..., Any]
where: Callable[..., Any]


def _step(condition: Expression, a: Any, b: Any) -> Expression:
    return _apply("where", condition, wrap(a), wrap(b))


OPERATIONS: dict[str, Operation] = {
    "add": Operation("({} + {})", lambda a, b: a + b, _printed("({0} + {1})"), lambda a, b: (ONE, ONE)),
    "subtract": Operation(
        "({} - {})", lambda a, b: a - b, _printed("({0} - {1})"), lambda a, b: (ONE, Number(-1.0))
    ),
    "multiply": Operation("{} * {}", lambda a, b: a * b, _printed("({0} * {1})"), lambda a, b: (b, a)),
    "divide": Operation("{} / ({})", np.divide, _printed("({0} / {1})"), lambda a, b: (1 / b, -a / (b * b))),
    "integer_power": Operation(
        "({})**{}",
        lambda a, n: np.power(a, int(n)),
        _printed("integer_power({0}, {1})", "np.power({0}, int({1}))", "torch.pow({0}, int({1}))"),
        lambda a, n: (n * integer_power(a, n - 1), None),
    ),
    "large_power": Operation(  # Numba does not vectorise exponents of 64 and more.
        "({})**{}",
        lambda a, n: np.power(a, int(n)),
        _printed(
            "large_power({0}, {1})",
            "np.power({0}, int({1}))",
            "torch.pow({0}, int({1}))",
            "integer_power({0}, {1})",
        ),
        lambda a, n: (n * _apply("large_power", a, n - 1), None),
    ),
    "power": Operation(
        "({})**({})",
        lambda a, b: np.power(a, b),
        _printed("power({0}, {1})", "np.power({0}, {1})", "torch.pow({0}, {1})"),
        lambda a, b: (b * _apply("power", a, b - 1), _apply("power", a, b) * log(a)),
    ),
    "exp": Operation("exp({})", np.exp, _call("exp", "exp"), lambda a: (exp(a),)),
    "log": Operation("log({})", np.log, _call("log"), lambda a: (1 / a,)),
    "sqrt": Operation(
        "sqrt({})",
        np.sqrt,
        _call("sqrt", latex=r"\sqrt{{{0}}}"),
        lambda a: (_step(a <= 0, 0.0, 0.5 / sqrt(maximum(a, 1e-300))),),
    ),
    "tanh": Operation("tanh({})", np.tanh, _call("tanh", "tanh"), lambda a: (1 - tanh(a) * tanh(a),)),
    "sin": Operation("sin({})", np.sin, _call("sin", "sine"), lambda a: (cos(a),)),
    "cos": Operation("cos({})", np.cos, _call("cos", "cosine"), lambda a: (-sin(a),)),
    "arccos": Operation(
        "arccos({})", np.arccos, _call("arccos", "arccos"), lambda a: (-1 / sqrt(maximum(1 - a * a, 1e-300)),)
    ),
    "absolute": Operation(
        "|{}|",
        np.abs,
        _call("absolute", "tl.abs", r"\left|{0}\right|"),
        lambda a: (_step(a <= 0, -1.0, 1.0),),
    ),
    "minimum": Operation(
        "min({}, {})",
        np.minimum,
        _call_of_two("minimum", r"\min"),
        lambda a, b: (_step(a <= b, 1.0, 0.0), _step(a <= b, 0.0, 1.0)),
    ),
    "maximum": Operation(
        "max({}, {})",
        np.maximum,
        _call_of_two("maximum", r"\max"),
        lambda a, b: (_step(a <= b, 0.0, 1.0), _step(a <= b, 1.0, 0.0)),
    ),
    "less_equal": Operation(
        "[{} <= {}]",
        lambda a, b: np.where(np.less_equal(a, b), 1.0, 0.0),
        _printed(
            "less_equal({0}, {1})",
            "np.where({0} <= {1}, 1.0, 0.0)",
            "less_equal({0}, {1})",
            "tl.where({0} <= {1}, 1.0, 0.0)",
            r"\left[{0} \le {1}\right]",
        ),
        lambda a, b: (Number(0.0), Number(0.0)),
    ),
    "where": Operation(
        "where({}, {}, {})",
        lambda c, a, b: np.where(np.asarray(c) > 0, a, b),
        _printed(
            "where({0}, {1}, {2})",
            "np.where({0} > 0, {1}, {2})",
            "where({0}, {1}, {2})",
            "tl.where({0} > 0, {1}, {2})",
            r"\begin{{cases}} {1} & \text{{if }} {0} \\ {2} & \text{{otherwise}} \end{{cases}}",
        ),
        lambda c, a, b: (Number(0.0), _step(c, 1.0, 0.0), _step(c, 0.0, 1.0)),
    ),
    "matern_shape": Operation(
        "matern({0}, {1})",
        matern_shape,
        _printed(
            "matern_shape({0}, {1})",
            latex=r"\frac{{2^{{1 - {0}}}}}{{\Gamma\left({0}\right)}} {1}^{{{0}}} K_{{{0}}}\left({1}\right)",
        ),
        lambda nu, z: _matern_partials(nu, z),
    ),
}


def _matern_partials(nu: Expression, z: Expression) -> tuple[Expression | None, ...]:
    """From d/dz [z^ν K_ν(z)] = -z · z^{ν-1} K_{ν-1}(z), and the scale 2^{1-ν}/Γ(ν) of positive orders."""
    assert isinstance(nu, Number)
    order = nu.value
    if order > 1:
        scale = 1 / (2 * (order - 1))
    else:
        scale = 2 ** (1 - order) / math.gamma(order) if order > 0 else 1.0
    return None, -z * scale * _apply("matern_shape", Number(order - 1), z)


# --- building, with the simplifications that keep trees small ------------------------------------


def wrap(value: object) -> Expression:
    """A number as a leaf; an expression as itself."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating | np.integer):
        raise TypeError(f"a formula combines numbers and pair quantities, got {value!r}")
    return Number(float(value))


ONE = Number(1.0)
ZERO = Number(0.0)


def _apply(operation: str, *arguments: Expression) -> Expression:
    if all(isinstance(argument, Number) for argument in arguments):
        with np.errstate(all="ignore"):
            return Number(float(OPERATIONS[operation].value(*(a.value for a in arguments))))  # type: ignore[attr-defined]
    return Apply(operation, arguments)


def _add(a: Expression, b: Expression) -> Expression:
    if a == ZERO:
        return b
    return a if b == ZERO else _apply("add", a, b)


def _subtract(a: Expression, b: Expression) -> Expression:
    if b == ZERO:
        return a
    return ZERO if a == b else _apply("subtract", a, b)


def _multiply(a: Expression, b: Expression) -> Expression:
    if ZERO in (a, b):
        return ZERO
    if a == ONE:
        return b
    if b == ONE:
        return a
    if isinstance(b, Number) and isinstance(a, Apply) and a.operation == "multiply":
        left, right = a.arguments
        if isinstance(right, Number):  # (e * 2) * 3 becomes e * 6.
            return _multiply(left, Number(right.value * b.value))
    return _apply("multiply", a, b)


def _divide(a: Expression, b: Expression) -> Expression:
    if b == ONE:
        return a
    if isinstance(b, Number) and b.value != 0:
        return _multiply(a, Number(1.0 / b.value))
    return ZERO if a == ZERO else _apply("divide", a, b)


def _power(base: Expression, exponent: Expression) -> Expression:
    if exponent == ONE:
        return base
    if isinstance(exponent, Number) and exponent.value.is_integer() and exponent.value >= 0:
        return ONE if exponent == ZERO else integer_power(base, exponent)
    if exponent == Number(0.5):
        return sqrt(base)
    return _apply("power", base, exponent)


def integer_power(base: Any, exponent: Any) -> Expression:
    """``base**exponent`` for a whole-number exponent that may be a parameter; any sign of base."""
    base, exponent = wrap(base), wrap(exponent)
    size = getattr(exponent, "value", 0.0)
    return _apply("integer_power" if size < 64 else "large_power", base, exponent)


def _function(operation: str) -> Callable[..., Any]:
    def function(*arguments: Any) -> Any:
        if any(isinstance(argument, Expression) for argument in arguments):
            return _apply(operation, *(wrap(argument) for argument in arguments))
        # Numbers, arrays and kernels know what np.exp does to them.
        return OPERATIONS[operation].value(*arguments)

    function.__name__ = function.__qualname__ = operation
    function.__doc__ = f"``{operation}`` of formulas, or of numbers."
    return function


exp = _function("exp")
log = _function("log")
sqrt = _function("sqrt")
tanh = _function("tanh")
sin = _function("sin")
cos = _function("cos")
arccos = _function("arccos")
absolute = _function("absolute")
minimum = _function("minimum")
maximum = _function("maximum")
where = _function("where")


def inverse_root(squared: Any) -> Any:
    """1/√s, and 0 where s ≤ 0."""
    return where(wrap(squared) <= 0, 0.0, 1 / sqrt(maximum(squared, 1e-300)))


_UFUNCS: dict[str, Callable[..., Any]] = {
    f.__name__: f for f in (exp, log, sqrt, tanh, sin, cos, arccos, absolute, minimum, maximum)
} | {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "power": lambda a, b: a**b,
    "negative": lambda a: -a,
    "square": lambda a: a**2,
    "less_equal": lambda a, b: a <= b,
    "greater_equal": lambda a, b: a >= b,
}


_SIMPLIFYING = {"add": _add, "subtract": _subtract, "multiply": _multiply, "divide": _divide}


def rebuild(operation: str, *arguments: Expression) -> Expression:
    """The operation on new arguments, simplified where it can be."""
    build = _SIMPLIFYING.get(operation)
    return build(*arguments) if build else _apply(operation, *arguments)


def folded(operation: Callable[[Any, Any], Any], parts: Sequence[Any]) -> Any:
    """Parts combined one after the other, many of them in runs: a tree of hundreds of terms stays a flat one.

    >>> folded(lambda a, b: f"({a}{b})", "abc")
    '((ab)c)'
    """
    while len(parts) > 1:
        runs = (parts[i : i + _RUN_LENGTH] for i in range(0, len(parts), _RUN_LENGTH))
        parts = [reduce(operation, run) for run in runs]
    return parts[0]


def is_whole(value: Any) -> bool:
    """Whether a number is a whole number."""
    return isinstance(value, int | np.integer) or (math.isfinite(value) and float(value).is_integer())
