"""Printing a program as one kernel of Triton: everything from points to sums, and nothing stored between.

A block of the grid has BM rows, goes over tiles of BN columns, and does with the values K of a tile what P
says: stores them (0), multiplies them into one vector and adds (1), or into P vectors (16 and more).

How the tile gets its planes is decided view by view (`Reading`): from differences, coordinate by coordinate,
or from products of centred points, ‖x‖² + ‖y‖² - 2⟨x, y⟩. Where that has cancelled too much, a tile is
flagged and left out of sums; the same program, printed with differences alone for `Again.TILES`, adds the
flagged tiles. Of values that are stored each such pair is put on a list; printed for `Again.PAIRS`, the
program stores the values of these alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum, auto
from typing import NamedTuple

from mercer.errors import InputError
from mercer.kernels.formula.calculus import statements
from mercer.kernels.formula.expression import Apply, Expression, Symbol
from mercer.kernels.formula.lines import indented, marked, names_of
from mercer.kernels.formula.pair import External
from mercer.kernels.formula.program import Program


class Access(StrEnum):
    """What a kernel reads of the points of a view.

    Rows and products are zeros beyond the last point, up to the end of its tile.
    """

    #: coordinates, in a loop
    LOOP = auto()
    #: coordinates, of which each has a line of the code
    UNROLLED = auto()
    #: rows for ``tl.dot``
    ROWS = auto()
    #: products that were computed before
    PRODUCTS = auto()
    #: for pairs: some coordinates at a time
    STRIPS = auto()


class Reading(NamedTuple):
    """How a kernel reads the points of a view."""

    access: Access = Access.LOOP
    #: the number of unrolled coordinates, or the length of rows after padding
    width: int = 0
    #: whether coordinates come in two parts, high and low, whose sum they are
    has_low: bool = False
    #: for products: the negative constant that multiplies the squared distance in all exponents it is in
    exponent: int | None = None
    #: for products: whether these exponents stay small where the squared distance has cancelled
    is_tame: bool = False

    @property
    def by_products(self) -> bool:
        return self.access in (Access.ROWS, Access.PRODUCTS)

    @property
    def chunks(self) -> list[tuple[int, int]]:
        """The columns of a product in powers of two: where each begins, and how many it has."""
        found, start = [], 0
        while start < self.width:
            size = 1 << ((self.width - start).bit_length() - 1)
            found.append((start, size))
            start += size
        return found


class Again(StrEnum):
    """What is computed once more, from differences."""

    #: the tiles that were flagged
    TILES = auto()
    #: the pairs of a list, whose values are stored
    PAIRS = auto()


_TEMPLATE = """\
import triton
import triton.language as tl

from mercer.gram.backends.triton.elementary import *


@triton.jit(do_not_specialize={numbers})
def tile(
    left, right, constants, V, out, flags, pairs, most_pairs, {arguments}, out_step,
    BM: tl.constexpr, BN: tl.constexpr, P: tl.constexpr, FIRST: tl.constexpr, SECOND: tl.constexpr,
):
    block, part = tl.program_id(0), tl.program_id(1)
    x_step, y_step, flags = x_step.to(tl.int64), y_step.to(tl.int64), flags + block.to(tl.int64) * tiles
    here = block * BM + tl.arange(0, BM)
    i = row + tl.minimum(here, rows - 1)
{before}
    total = tl.zeros((BM, P if P > 1 else BN), tl.{real})
    for t in range(part * each, tl.minimum(part * each + each, tiles)):
        there = t * BN + tl.arange(0, BN)
        j = column + tl.minimum(there, columns - 1)
{inside}
    if P == 1:
        places, sums, is_inside = out + part.to(tl.int64) * rows + here, tl.sum(total, axis=1), here < rows
        tl.store(places, sums{more}, mask=is_inside)
    elif P > 1:
        places = out + (part.to(tl.int64) * rows + here[:, None]) * P + tl.arange(0, P)[None, :]
        is_inside = (here < rows)[:, None]
        tl.store(places, total{more}, mask=is_inside)
"""
#: the same of pairs, numbered row by row: a tile has BM of them, and one column
_OF_PAIRS = """\
import triton
import triton.language as tl

from mercer.gram.backends.triton.elementary import *


@triton.jit(do_not_specialize={numbers})
def tile(left, right, constants, out, pairs, {arguments}, BM: tl.constexpr, BN: tl.constexpr):
    x_step, y_step = x_step.to(tl.int64), y_step.to(tl.int64)
    number = tl.program_id(0) * BM + tl.arange(0, BM)
    is_inside = number < tl.load(pairs)
    pair = tl.load(pairs + 1 + number, mask=is_inside, other=0)
    here, there = pair // columns, pair % columns
    i, j = row + here, column + there
{before}
{inside}
    tl.store(out + (here * out_step + there)[:, None], K, mask=is_inside[:, None])
"""
#: what is done with the values of a tile
_USE = """\
if P == 0:
    is_inside = (here < rows)[:, None] & (there < columns)[None, :]
    tl.store(out + here[:, None].to(tl.int64) * out_step + there[None, :], K, mask=is_inside)
elif P == 1:
    v = tl.load(V + there, mask=there < columns, other=0.0)
    total += K * (v{kept})[None, :]
else:
    v = tl.load(V + there[:, None] * P + tl.arange(0, P)[None, :], mask=(there < columns)[:, None], other=0.0)
    total = tl.dot(K, v{kept}, total, input_precision=SECOND)"""
#: a tile with a squared distance that has cancelled is left out of sums; of values the pair is noted, the
#: first number of the list being how many there are
_CHECK = """\
slack = {slack}
has_lost = tl.min(tl.min(slack, axis=1), axis=0) < 0.0
tl.store(flags + t, has_lost.to(tl.int8))
kept = tl.where(has_lost, 0.0, 1.0)
if P == 0:
    if has_lost:
        is_lost = (slack < 0.0) & (here < rows)[:, None] & (there < columns)[None, :]
        number = tl.atomic_add(pairs + tl.zeros((BM, BN), tl.int32), 1, mask=is_lost, sem="relaxed")
        pair = here[:, None].to(tl.int64) * columns + there[None, :]
        tl.store(pairs + 1 + number, pair, mask=is_lost & (number < most_pairs))"""
#: operations that are defined for all numbers, and give no infinite ones
_EVERYWHERE = {"add", "subtract", "multiply", "tanh", "sin", "cos", "minimum", "maximum", "absolute"}
_NUMBERS = ("row", "rows", "column", "columns", "tiles", "each", "x_step", "y_step")
_NUMBERS_OF_PAIRS = ("row", "column", "columns", "x_step", "y_step", "out_step")
#: coordinates of a pair that are read at a time
_STRIP = 64


@dataclass
class _Parts:
    """What the views of a program add to its kernel."""

    pointers: list[str] = field(default_factory=list)
    widths: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    inside: list[str] = field(default_factory=list)
    #: what is negative where a squared distance has cancelled
    slack: list[str] = field(default_factory=list)
    #: how what belongs to a column lies in a tile
    across: str = "[None, :]"


def triton_frame(
    program: Program,
    real: str = "float32",
    points: Sequence[Reading] | None = None,
    repair: float = 2.0**-7,
    again: Again | None = None,
) -> str:
    """One kernel ``tile``, for views that are read as ``points`` say: by default all in loops."""
    if any(isinstance(plane, External) for plane in program.planes):
        raise InputError(
            "there is no Triton code for a kernel whose values Python computes, of pairs of objects: on a "
            'GPU PyTorch goes on with them, and kernel.source("torch") shows how'
        )
    points = points or [Reading()] * len(program.views)
    parts = _Parts(across="[:, None]" if again is Again.PAIRS else "[None, :]")
    parts.before += [f"c{k} = tl.load(constants + {k})" for k in range(len(program.constants))]
    used = sorted(names_of(program.body).values())
    parts.before += [f"{n} = tl.load(left + {n[1:]} * x_step + i)[:, None]" for n in used if n[0] == "l"]
    parts.inside += [
        f"{n} = tl.load(right + {n[1:]} * y_step + j){parts.across}" for n in used if n[0] == "r"
    ]
    for v, how in enumerate(points):
        _add_view(parts, program, v, how, real, repair)
    scaled = {f"q{p}" for p in range(len(program.planes)) if _is_scaled(program, p, points)}

    def special(node: Apply, write: Callable[[Expression], str]) -> str | None:
        return _of_two(node, write, scaled) if real == "float32" else None

    *lines, last = statements(program.body, "triton", names_of(program.body), special)
    value = last.removeprefix("result = ")
    if not any(name[0] == "q" for name in used):
        value += f" + tl.zeros((BM, BN), tl.{real})"
    parts.inside += [*lines, f"K = {value}"]
    numbers = [*_NUMBERS, *parts.widths]
    if again is Again.PAIRS:
        numbers = [*_NUMBERS_OF_PAIRS, *parts.widths]
        return _OF_PAIRS.format(
            numbers=numbers,
            arguments=", ".join([*parts.pointers, *numbers]),
            before="\n".join(indented(parts.before)),
            inside="\n".join(indented(parts.inside)),
        )
    checks = bool(parts.slack) and again is None
    if checks:
        slack = parts.slack[0]
        for other in parts.slack[1:]:
            slack = f"tl.minimum({slack}, {other})"
        parts.inside += _CHECK.format(slack=slack).split("\n")
    parts.inside += _USE.format(kept=" * kept" if checks else "").split("\n")
    if again:
        parts.inside = ["if tl.load(flags + t) != 0:", *indented(parts.inside)]
    return _TEMPLATE.format(
        numbers=numbers,
        arguments=", ".join([*parts.pointers, *numbers]),
        before="\n".join(indented(parts.before)),
        inside="\n".join(indented(indented(parts.inside))),
        real=real,
        more=" + tl.load(places, mask=is_inside)" if again else "",
    )


def _operations(expression: Expression) -> Iterator[Apply]:
    if isinstance(expression, Apply):
        yield expression
        for argument in expression.arguments:
            yield from _operations(argument)


def exponent_of(program: Program, v: int) -> int | None:
    """The constant c of a view whose squared distance s is in the formula as exp(s c) alone, with one c."""
    view = program.views[v]
    planes = [p for p, plane in enumerate(program.planes) if plane.kind == "sqdist" and plane.view == view]
    if not planes:
        return None
    distance, found = Symbol(f"q{planes[0]}"), set()
    pending: list[Expression] = [program.body]
    while pending:
        node = pending.pop()
        factors = _exponent(node)
        if factors is not None and factors[0] == distance:
            found.add(int(factors[1].name[1:]))
        elif node == distance:
            return None
        else:
            pending += node.children
    return found.pop() if len(found) == 1 else None


def _exponent(node: Expression) -> tuple[Expression, Symbol] | None:
    """t and c where the node is exp(t c) with a constant c."""
    if isinstance(node, Apply) and node.operation == "exp":
        product = node.arguments[0]
        if isinstance(product, Apply) and product.operation == "multiply":
            t, c = product.arguments
            if isinstance(c, Symbol) and c.name[0] == "c":
                return t, c
    return None


def _of_two(node: Apply, write: Callable[[Expression], str], scaled: set[str]) -> str | None:
    """exp(t c) as 2^(t (c log₂ e)), and exp(c log t) as 2^(c log₂ t): what the hardware computes.

    Of a plane that is ``scaled``, t (c log₂ e) is what it holds.
    """
    factors = _exponent(node)
    if factors is None:
        return None
    t, c = factors
    if isinstance(t, Symbol) and t.name in scaled:
        return f"tl.exp2({t.name})"
    if isinstance(t, Apply) and t.operation == "log":
        return f"tl.exp2({c.name} * binary_log({write(t.arguments[0])}))"
    return f"tl.exp2({write(t)} * ({c.name} * 1.4426950408889634))"


def _is_scaled(program: Program, p: int, points: Sequence[Reading]) -> bool:
    plane = program.planes[p]
    return plane.kind == "sqdist" and points[program.views.index(plane.view)].exponent is not None


def _add_view(parts: _Parts, program: Program, v: int, how: Reading, real: str, repair: float) -> None:
    """The planes of a view, from coordinates or from products."""
    kinds = {p: plane.kind for p, plane in enumerate(program.planes) if plane.view == program.views[v]}
    multiplied = {p: kind for p, kind in kinds.items() if how.by_products and kind in ("dot", "sqdist")}
    if multiplied:
        _add_products(parts, program, v, how, multiplied, repair)
    walked = [p for p in kinds if p not in multiplied]
    if walked:
        parts.pointers += [f"x{v}", f"y{v}"]
        if how.access is Access.UNROLLED:
            _add_unrolled(parts, program, v, how, walked)
        elif how.access is Access.STRIPS:
            _add_strips(parts, program, v, how, walked, real)
        else:
            _add_loop(parts, program, v, how, walked, real)


def _add_products(
    parts: _Parts, program: Program, v: int, how: Reading, kinds: Mapping[int, str], repair: float
) -> None:
    if how.access is Access.PRODUCTS:
        parts.pointers += [f"g{v}", f"g{v}_step"]
        parts.before.append(f"g{v} += tl.minimum(here, rows - 1)[:, None].to(tl.int64) * g{v}_step")
        parts.inside.append(f"p{v} = tl.load(g{v} + there[None, :])")
    else:
        parts.pointers += [f"a{v}", f"b{v}"]
        for start, size in how.chunks:
            place = f"{how.width} + {start} + tl.arange(0, {size})[None, :]"
            first = f"b{v} + tl.arange(0, BN)[:, None] * {place}"
            parts.before += [
                f"a{v}_{start} = tl.load(a{v} + i[:, None].to(tl.int64) * {place})",
                f"b{v}_{start}_at = {first}",
            ]
            parts.inside.append(
                f"b{v}_{start} = tl.load(b{v}_{start}_at + (column + t * BN).to(tl.int64) * {how.width})"
            )
            total = f"p{v}, " if start else ""
            product = f"tl.dot(a{v}_{start}, tl.trans(b{v}_{start}), {total}input_precision=FIRST)"
            parts.inside.append(f"p{v} = {product}")
    views = len(program.views)
    if how.exponent is not None:
        parts.before.append(f"z{v} = c{how.exponent} * 1.4426950408889634")
    for letter, row in (("n", v), ("s", views + v)):  # norms, and what shifts products back
        if ("sqdist" if letter == "n" else "dot") in kinds.values():
            x, y = len(program.left) + row, len(program.right) + row
            times = f" * z{v}" if letter == "n" and how.exponent is not None else ""
            parts.before.append(f"{letter}x{v} = tl.load(left + {x} * x_step + i)[:, None]{times}")
            column = f"(tl.load(right + {y} * y_step + j){times})[None, :]"
            parts.inside.append(f"{letter}{v} = {letter}x{v} + {column}")
    for p, kind in kinds.items():
        if kind == "dot":
            parts.inside.append(f"q{p} = p{v} + s{v}")
        else:
            # What has cancelled may have the wrong sign: its tile is left out, if the formula gives a number.
            operations = {node.operation for node in _operations(program.body)}
            is_number = operations <= _EVERYWHERE | ({"exp"} if how.is_tame else set())
            kept = f"d{v}"
            if how.exponent is None:
                parts.inside.append(f"d{v} = n{v} - 2.0 * p{v}")
                parts.slack.append(f"d{v} - {repair} * n{v}")
                kept = kept if is_number else f"tl.maximum(d{v}, 0.0)"
            else:
                parts.inside.append(f"d{v} = n{v} - (2.0 * z{v}) * p{v}")
                parts.slack.append(f"{repair} * n{v} - d{v}")
                kept = kept if is_number else f"tl.minimum(d{v}, 0.0)"
            parts.inside.append(f"q{p} = {kept}")


def _add_unrolled(parts: _Parts, program: Program, v: int, how: Reading, planes: list[int]) -> None:
    letters = ("x", "u") if how.has_low else ("x",)  # high parts, low parts
    for half, letter in enumerate(letters):
        other = {"x": "y", "u": "w"}[letter]
        for k in range(how.width):
            place = half * how.width + k
            parts.before.append(f"{letter}{v}_{k} = tl.load(x{v} + {place} * x_step + i)[:, None]")
            parts.inside.append(f"{other}{v}_{k} = tl.load(y{v} + {place} * y_step + j){parts.across}")
    for p in planes:
        start = f"{float(program.planes[p].kind == 'product')}"
        if not how.width:
            parts.inside.append(f"q{p} = {start}")
        for k in range(how.width):
            parts.inside += _coordinate(program, p, [f"{letter}{v}_{k}" for letter in "xyuw"], how, k)


def _add_loop(parts: _Parts, program: Program, v: int, how: Reading, planes: list[int], real: str) -> None:
    parts.widths.append(f"d{v}_width")
    for p in planes:
        start = "tl.full" if program.planes[p].kind == "product" else "tl.zeros"
        one = ", 1.0" if program.planes[p].kind == "product" else ""
        parts.inside.append(f"q{p} = {start}((BM, BN){one}, tl.{real})")
    lines = [
        f"a = tl.load(x{v} + k * x_step + i)[:, None]",
        f"b = tl.load(y{v} + k * y_step + j){parts.across}",
    ]
    if how.has_low:
        lines += [
            f"a_low = tl.load(x{v} + (d{v}_width + k) * x_step + i)[:, None]",
            f"b_low = tl.load(y{v} + (d{v}_width + k) * y_step + j){parts.across}",
        ]
    for p in planes:
        lines += _coordinate(program, p, ["a", "b", "a_low", "b_low"], how)
    parts.inside += [f"for k in range(d{v}_width):", *indented(lines)]


def _add_strips(parts: _Parts, program: Program, v: int, how: Reading, planes: list[int], real: str) -> None:
    """Of pairs, ⟨x, y⟩ and ‖x - y‖²: some coordinates are read together, so that none waits for the last."""
    parts.widths.append(f"d{v}_width")
    parts.inside += [f"q{p} = tl.zeros((BM, 1), tl.{real})" for p in planes]
    lines = [f"at = k + tl.arange(0, {_STRIP})[None, :]", f"is_there = at < d{v}_width"]
    for name, point in (("a", "x"), ("b", "y")):
        place = f"{point}{v} + at.to(tl.int64) * {point}_step + {'i' if point == 'x' else 'j'}[:, None]"
        lines.append(f"{name} = tl.load({place}, mask=is_there, other=0.0)")
        if how.has_low:
            below = f"{place} + d{v}_width * {point}_step"
            lines.append(f"{name}_low = tl.load({below}, mask=is_there, other=0.0)")
    for p in planes:
        if program.planes[p].kind == "dot":
            lines.append(f"q{p} += tl.sum(a * b, axis=1)[:, None]")
        else:
            low = " + (a_low - b_low)" if how.has_low else ""
            lines += [f"e = (a - b){low}", f"q{p} += tl.sum(e * e, axis=1)[:, None]"]
    parts.inside += [f"for k in range(0, d{v}_width, {_STRIP}):", *indented(lines)]


def _coordinate(program: Program, p: int, names: list[str], how: Reading, k: int | None = None) -> list[str]:
    """One coordinate into plane p; k = 0 is the first one of several that are unrolled."""
    x, y, x_low, y_low = names
    kind, mark = program.planes[p].kind, f"{p}_{'k' if k is None else k}"
    sign = "*" if kind == "product" else "+"
    into = f"q{p} =" if k == 0 else f"q{p} {sign}="
    if kind == "dot":
        return [f"{into} {x} * {y}"]
    if kind == "sqdist":
        low = f" + ({x_low} - {y_low})" if how.has_low else ""
        return [f"e = ({x} - {y}){low}", f"{into} e * e"]
    term = program.terms[p]
    assert term is not None
    slots = {leaf: {"a": x, "b": y}.get(name, name) for leaf, name in names_of(term).items()}
    *lines, last = (marked(line, mark) for line in statements(term, "triton", slots))
    return [*lines, last.replace("result =", into)]
