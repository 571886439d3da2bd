r"""φ(r) from a line of text, as one types it: ``exp(-r**2/2)`` or ``max(1 - r, 0)``.

>>> phi = typed_profile("max(1 - r, 0)**2")
>>> phi([0.0, 0.5, 3.0])
array([1.  , 0.25, 0.  ])
>>> phi.source
'maximum(1 - r, 0) ** 2'
>>> typed_profile("exp(-r*q)")
Traceback (most recent call last):
mercer.errors.InputError: cannot read φ(r): there is no 'q' ('q'); it is written in r, numbers, pi, e,
+ - * / **, < <= > >= and abs, absolute, arccos, cos, exp, log, max, maximum, min, minimum, sin, sqrt, tanh,
where

The text is taken apart by Python's own grammar and never evaluated: what is not on that list is refused.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from mercer.errors import InputError
from mercer.kernels.formula import expression as formulas
from mercer.kernels.formula.expression import Expression, Symbol

#: What may be typed: no formula on one line needs more, and Python reads so deep a nesting without trouble.
_MOST_CHARACTERS, _DEEPEST_NESTING = 1000, 40
_SYNONYMS = {"abs": "absolute", "min": "minimum", "max": "maximum"}
_ARGUMENTS = {
    **dict.fromkeys(("exp", "log", "sqrt", "tanh", "sin", "cos", "arccos", "absolute"), 1),
    **{"minimum": 2, "maximum": 2, "where": 3},
}
#: what a text may call
FUNCTIONS = {*_ARGUMENTS, *_SYNONYMS}
_NUMBERS = {"pi": math.pi, "e": math.e}
_OPERATIONS: dict[type, Callable[[Any, Any], Any]] = {
    **{ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv},
    **{ast.Pow: lambda a, b: _power(a, b), ast.Lt: operator.lt, ast.LtE: operator.le},
    **{ast.Gt: operator.gt, ast.GtE: operator.ge},
}
#: φ at one r: a formula, or an array of numbers
_Value = Callable[[Any], Any]


class Profile:
    """φ as a function of formulas and of numbers."""

    def __init__(self, text: str, source: str, value: _Value) -> None:
        #: φ as it was typed, and as Python in the names of ``mercer.kernels.formula.expression``
        self.__name__, self.source = text, source
        self._value = value

    def __call__(self, r: Any) -> Any:
        if isinstance(r, Expression):
            return self._value(r)
        r = np.asarray(r, dtype=float)
        with np.errstate(all="ignore"):
            return np.asarray(self._value(r) + np.zeros_like(r))

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return typed_profile, (self.__name__,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Profile) and other.source == self.source

    def __hash__(self) -> int:
        return hash(self.source)


def typed_profile(text: str) -> Profile:
    """The function φ that a text in r describes."""
    line = " ".join(text.split())
    if len(line) > _MOST_CHARACTERS:
        raise InputError(
            f"φ(r) has {len(line):,} characters, more than {_MOST_CHARACTERS:,}: write it in Python"
        )
    reader = _Reader(line)
    tree = reader.parsed()
    value = reader.value(tree, 0)
    try:
        value(Symbol("r"))
    except ZeroDivisionError:
        raise InputError(f"cannot read φ(r): nothing is divided by zero, got {line!r}") from None
    except OverflowError:
        raise InputError(f"cannot read φ(r): a number is too large, got {line!r}") from None
    return Profile(line, ast.unparse(_Renamed().visit(tree)), value)


def names_in(text: str) -> set[str]:
    """The bare names of a text; none where it is no expression.

    >>> sorted(names_in("exp(-r) + gaussian(sigma=median).on(x)"))
    ['exp', 'gaussian', 'median', 'r', 'x']
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return set()
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


class _Renamed(ast.NodeTransformer):
    """abs, min and max under the names of ``mercer.kernels.formula.expression``; e and pi as numbers."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """A name, or the number that it stands for."""
        if node.id in _NUMBERS:
            return ast.Constant(_NUMBERS[node.id])
        return ast.Name(_SYNONYMS.get(node.id, node.id), ast.Load())


class _Reader:
    """Goes through the tree of a text, and makes a function of each node that is allowed."""

    def __init__(self, line: str) -> None:
        self.line = line

    def parsed(self) -> ast.expr:
        try:
            return ast.parse(self.line, mode="eval").body
        except SyntaxError as error:
            raise InputError(f"cannot read φ(r): {error.msg}, got {self.line!r}") from None
        except (ValueError, MemoryError, RecursionError) as error:
            raise InputError(f"cannot read φ(r): {error or type(error).__name__}") from None

    def refuse(self, node: ast.AST, what: str) -> NoReturn:
        here = ast.get_source_segment(self.line, node) or self.line
        raise InputError(
            f"cannot read φ(r): {what} ({here!r}); it is written in r, numbers, pi, e, "
            f"+ - * / **, < <= > >= and {', '.join(sorted(FUNCTIONS))}"
        )

    def value(self, node: ast.AST, depth: int) -> _Value:
        if depth > _DEEPEST_NESTING:
            raise InputError(
                f"φ(r) is nested more than {_DEEPEST_NESTING} deep: write it in Python, as a function"
            )
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return self._number(node, number)
            case ast.Name(id="r"):
                return lambda r: r
            case ast.Name(id=name) if name in _NUMBERS:
                return lambda r: _NUMBERS[name]
            case ast.Name(id=name):
                known = name in FUNCTIONS
                self.refuse(node, f"{name} takes values in brackets" if known else f"there is no {name!r}")
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                value = self.value(inner, depth + 1)
                return lambda r: -value(r)
            case ast.UnaryOp(op=ast.UAdd(), operand=inner):
                return self.value(inner, depth + 1)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
                return self._both(op, left, right, depth)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPERATIONS:
                compared = self._both(op, left, right, depth)
                return lambda r: _as_number(compared(r))
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
                return self._call(node, _SYNONYMS.get(name, name), arguments, depth)
            case ast.Call(func=ast.Name(id=name)):
                self.refuse(node, f"there is no function {name!r} of these values")
        self.refuse(node, "this is not allowed")

    def _number(self, node: ast.AST, number: float) -> _Value:
        try:
            value = float(number)
        except OverflowError:
            self.refuse(node, "a number is too large")
        return lambda r: value

    def _both(self, op: ast.AST, left: ast.AST, right: ast.AST, depth: int) -> _Value:
        compute = _OPERATIONS[type(op)]
        a, b = self.value(left, depth + 1), self.value(right, depth + 1)
        return lambda r: compute(a(r), b(r))

    def _call(self, node: ast.AST, name: str, arguments: list[ast.expr], depth: int) -> _Value:
        wanted, function = _ARGUMENTS[name], getattr(formulas, name)
        if len(arguments) != wanted:
            self.refuse(node, f"{name} takes {wanted} value{'s' * (wanted > 1)} in its brackets")
        values = [self.value(argument, depth + 1) for argument in arguments]
        return lambda r: function(*(value(r) for value in values))


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(base, float) and isinstance(exponent, float) and base < 0 and not exponent.is_integer():
        raise InputError(
            f"cannot read φ(r): {base:g}**{exponent:g}, a power of a negative number, is not real"
        )
    return base**exponent


def _as_number(condition: Any) -> Any:
    """1 where it holds and 0 elsewhere; of a formula, itself, which means that."""
    return condition if isinstance(condition, Expression) else np.asarray(condition, dtype=float)
