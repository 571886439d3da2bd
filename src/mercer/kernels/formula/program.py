r"""A kernel's formula, laid out for a machine.

The formula of a whole kernel expression is cut into what is computed where:

- **constants**: subtrees of parameters and numbers alone, one float each, computed once per kernel
  in float64 (so a new σ recompiles nothing, and Gaussian(sigma=…) and Gaussian(gamma=…) share code);
- **point values**: subtrees of one point alone (‖x‖², k(x, x), …), one vector per side;
- **planes**: the pair quantities, one matrix per tile: products, distances, sums over coordinates;
- **body**: what is left, a scalar formula of planes q, point values l and r, and constants c.

>>> from mercer import Gaussian, Polynomial
>>> Program(Gaussian(1.0) + Polynomial(3)).body
(exp(q0 * c0) + ((q1 * c1 + c2))**c3)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from functools import cached_property, reduce
from operator import or_
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mercer.kernels.formula.calculus import evaluate, substitute
from mercer.kernels.formula.expression import ONE, Apply, Expression, Symbol, folded, rebuild
from mercer.kernels.formula.pair import (
    A,
    B,
    External,
    ExternalDiagonal,
    Mean,
    ParameterLeaf,
    PointSum,
    Quantity,
    Scaling,
    View,
    diagonal,
)
from mercer.kernels.parameters import is_vector

if TYPE_CHECKING:
    from mercer.kernels.base import Kernel

#: where a parameter is, from the root of the kernel
Path: TypeAlias = tuple[str, ...]
#: the numbers of a kernel; of a parameter with one value per column what multiplies these
Numbers: TypeAlias = dict[Path, Any]

_NOTHING, _LEFT, _RIGHT, _PAIR = 0, 1, 2, 3  # which points a subtree depends on, as bits


class Program:
    """The parts of a kernel's formula. Built from a kernel, or straight from a formula."""

    def __init__(self, source: Kernel | Expression) -> None:
        self.expression: Expression = source if isinstance(source, Expression) else source.expression()
        self.constants: list[Expression] = []
        self.left: list[Expression] = []
        self.right: list[Expression] = []
        self.planes: list[Quantity | External] = []
        self._known: dict[Expression, int] = {}  # which points the subtrees depend on
        self.body = self._slot(self.expression)
        self.terms: list[Expression | None] = [
            self._term(plane.term)
            if isinstance(plane, Quantity) and plane.kind in ("sum", "product")
            else None
            for plane in self.planes
        ]

    # --- layout --------------------------------------------------------------------------------------

    def _slot(self, node: Expression) -> Expression:
        """The node with its hoisted subtrees replaced by slots."""
        depends = self._dependence(node)
        if depends == _NOTHING:
            return _take(self.constants, node, "c")
        if depends == _LEFT:
            return _take(self.left, node, "l")
        if depends == _RIGHT:
            return _take(self.right, node, "r")
        if isinstance(node, Quantity | External):
            return _take(self.planes, node, "q")
        assert isinstance(node, Apply)
        if node.operation in ("multiply", "divide"):
            return self._product(node)
        return Apply(node.operation, tuple(map(self._slot, node.arguments)))

    def _product(self, node: Expression) -> Expression:
        """A product with all it knows beforehand gathered: (q · c) / c' · l becomes q · (l c / c')."""
        above: list[Expression] = []
        below: list[Expression] = []
        known: dict[int, Expression] = {}

        def gather(part: Expression, inverse: bool) -> None:
            depends = self._dependence(part)
            if depends != _PAIR:
                factor = rebuild("divide", ONE, part) if inverse else part
                known[depends] = rebuild("multiply", known.get(depends, ONE), factor)
            elif isinstance(part, Apply) and part.operation in ("multiply", "divide"):
                first, second = part.arguments
                gather(first, inverse)
                gather(second, inverse ^ (part.operation == "divide"))
            else:
                (below if inverse else above).append(self._slot(part))

        gather(node, False)
        if _NOTHING in known and len(known) > 1:  # A constant joins a value of one point.
            side = next(depends for depends in known if depends != _NOTHING)
            known[side] = rebuild("multiply", known[side], known.pop(_NOTHING))
        above += [self._slot(part) for part in known.values() if part != ONE]

        def times(a: Expression, b: Expression) -> Expression:
            return Apply("multiply", (a, b))

        product = folded(times, above or [self._slot(ONE)])
        if below:
            product = Apply("divide", (product, folded(times, below)))
        return product

    def _term(self, node: Expression) -> Expression:
        """A coordinate term, its parameters replaced by slots."""
        if node in (A, B):
            return node
        if not any(leaf in (A, B) for leaf in node.leaves()):
            return _take(self.constants, node, "c")
        assert isinstance(node, Apply)
        return Apply(node.operation, tuple(map(self._term, node.arguments)))

    def _dependence(self, node: Expression) -> int:
        if not isinstance(node, Apply):
            return _leaf_dependence(node)
        if node not in self._known:
            self._known[node] = reduce(or_, map(self._dependence, node.arguments), _NOTHING)
        return self._known[node]

    def at(self, numbers: Numbers) -> Program:
        """The program of a kernel that differs from this one's by its numbers alone."""
        other = object.__new__(Program)
        other.body, other.terms = self.body, self.terms
        vars(other)["layout"] = self.layout

        def renew(node: Expression) -> Expression | None:
            if isinstance(node, ParameterLeaf):
                return replace(node, value=numbers.get(node.path, node.value))
            if isinstance(node, Quantity | PointSum):
                return replace(node, view=_scaled(node.view, numbers), term=substitute(node.term, renew))
            return None

        other.constants, other.left, other.right = (
            [substitute(node, renew) for node in nodes] for nodes in (self.constants, self.left, self.right)
        )
        other.planes = [substitute(plane, renew) for plane in self.planes]  # type: ignore[misc]
        other.expression = substitute(self.expression, renew)
        return other

    # --- facts ---------------------------------------------------------------------------------------

    @cached_property
    def views(self) -> list[View]:
        """The distinct views of the data that the planes are measured on."""
        return list(dict.fromkeys(plane.view for plane in self.planes))

    @cached_property
    def kinds(self) -> list[set[str]]:
        """The kinds of the planes that are measured on each view."""
        return [{plane.kind for plane in self.planes if plane.view == view} for view in self.views]

    @cached_property
    def are_numeric(self) -> list[bool]:
        """Whether each view is a matrix of numbers, and not only objects for Python."""
        return [kinds != {"external"} for kinds in self.kinds]

    @cached_property
    def layout(self) -> tuple[Hashable, ...]:
        """What the printed code depends on: programs of equal layouts share it."""
        planes = [
            (plane.kind, self.views.index(plane.view)) if isinstance(plane, Quantity) else None
            for plane in self.planes
        ]
        counts = len(self.constants), len(self.left), len(self.right), len(self.views)
        return self.body, *self.terms, *planes, *counts

    @cached_property
    def values(self) -> np.ndarray:
        """The constants' values, float64."""
        with np.errstate(all="ignore"):
            return np.array([float(evaluate(c, _parameter_value)) for c in self.constants], dtype=np.float64)

    @cached_property
    def largest(self) -> float:
        """The largest of the constants, whatever its sign."""
        return float(np.abs(self.values).max(initial=0.0))

    @cached_property
    def diagonal(self) -> Expression:
        """k(x, x) as a formula of point values."""
        return diagonal(self.expression, 0)


def _scaled(view: View, numbers: Numbers) -> View:
    """The view with the scales of its columns as the numbers say."""
    steps = tuple(
        replace(step, factors=numbers.get(step.path, step.factors)) if isinstance(step, Scaling) else step
        for step in view.steps
    )
    return replace(view, steps=steps)


# --- programs that are remembered ----------------------------------------------------------------------

#: At most so many programs are remembered, with parameters of at most so many numbers.
_MOST_PROGRAMS, _LONGEST_KEY = 256, 64
#: For each shape of a kernel, the numbers that it had when it was last asked for, and their program.
_programs: dict[Hashable, tuple[Numbers, Program]] = {}


def program_of(kernel: Kernel) -> Program:
    """The program of a kernel that nobody will change, laid out once for all kernels of its shape.

    Only kernels of plain parameters are remembered: numbers, words, short tuples of them, and such kernels.
    An array or a list is the caller's, who may change it.
    """
    numbers: Numbers = {}
    fixed: list[Path] = []
    key = _shape(kernel, (), numbers, fixed)
    if key is None:
        return Program(kernel)
    known = _programs.get(key)
    if known is not None and known[0] == numbers:
        return known[1]
    program = Program(kernel) if known is None else known[1].at(numbers)
    if known is not None or _knows_its_numbers(program, numbers, fixed):
        if len(_programs) >= _MOST_PROGRAMS:
            _programs.clear()  # Clearing is atomic, and several threads may be here.
        _programs[key] = numbers, program
    return program


def _shape(kernel: Kernel, path: Path, numbers: Numbers, fixed: list[Path]) -> Hashable:
    """What a kernel's program depends on besides its numbers, which are noted by their paths.

    None where it is not plain. ``fixed`` takes the paths of parts whose numbers may shape the formula.
    """
    if not kernel.holds_numbers_as_leaves:
        fixed.append(path)
        return _plain(kernel)
    keys: list[Hashable] = []
    for name, value in vars(kernel).items():
        here = (*path, name)
        parameter = kernel.parameters.get(name)
        if type(value) in (int, float) and parameter is not None and parameter.symbolic:
            numbers[here] = float(value)
            key = float if parameter.is_continuous(value) else value
        elif is_kernel(value):
            key = _shape(value, here, numbers, fixed)
        elif parameter is not None and parameter.per_column is not None and is_vector(value):
            factors = np.asarray(value, dtype=float) ** parameter.per_column
            numbers[here] = tuple(factors.tolist())
            key = len(value)
        else:
            key = _plain(value)
        if key is None:
            return None
        keys.append(key)
    return type(kernel), tuple(vars(kernel)), tuple(keys)


def _knows_its_numbers(program: Program, numbers: Numbers, fixed: list[Path]) -> bool:
    """Whether every number of the formula was found where its path says, or is a part of the shape."""

    def paths(node: Expression) -> Iterator[Path]:
        for leaf in node.leaves():
            if isinstance(leaf, ParameterLeaf):
                yield leaf.path
            elif isinstance(leaf, Quantity | PointSum):
                yield from (step.path for step in leaf.view.steps if isinstance(step, Scaling))
                yield from paths(leaf.term)

    return all(
        path in numbers or any(path[: len(part)] == part for part in fixed)
        for path in paths(program.expression)
    )


def is_kernel(value: Any) -> bool:
    """Whether it is a kernel; the class itself is defined above this module."""
    return hasattr(value, "formula") and hasattr(value, "parts")


def _plain(value: Any) -> Hashable:
    """What tells a kernel, or a parameter of one, from all others; None where it is not plain.

    The attributes themselves are asked, not what a class of the user's makes of equality.
    """
    if value is None or type(value) in (bool, int, float, str):
        return type(value), value
    if type(value) is tuple:
        keys = tuple(map(_plain, value)) if len(value) <= _LONGEST_KEY else (None,)
        return None if None in keys else (type(value), keys)
    if is_kernel(value):
        keys = tuple(map(_plain, vars(value).values()))
        return None if None in keys else (type(value), tuple(vars(value)), keys)
    return None


def _leaf_dependence(leaf: Expression) -> int:
    if isinstance(leaf, Quantity | External):
        return _PAIR
    if isinstance(leaf, PointSum | ExternalDiagonal):
        return (_LEFT, _RIGHT)[leaf.side]
    if isinstance(leaf, Mean):
        return (_LEFT, _RIGHT, _LEFT)[leaf.side]  # The mean of means is the same on either side.
    return _NOTHING


def _take(slots: list[Any], node: Expression, letter: str) -> Symbol:
    if node not in slots:
        slots.append(node)
    return Symbol(f"{letter}{slots.index(node)}")


def _parameter_value(leaf: Expression) -> float:
    assert isinstance(leaf, ParameterLeaf), leaf
    return leaf.value
