"""Printing a program as code: the same body for NumPy, Numba, Torch and Triton, short frames around it.

The printed functions are called by the backends, which fill the planes they read:

- NumPy, Torch: ``formula(q, l, r, c)`` on whole tiles, and ``term_i(a, b, c)`` for each sum or
  product over coordinates;
- Numba: one C-callable ``tile`` that loops over a tile, sums its coordinate terms and writes the
  kernel's values, called by the compiled tile loop (``mercer.gram.backends.numba.loops``);
- Triton: one ``tile`` that a GPU runs, with everything from points to sums (``triton_source``).

A new backend adds a column to the operations' table and a frame here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mercer.kernels.formula.calculus import statements
from mercer.kernels.formula.expression import Expression, Symbol
from mercer.kernels.formula.lines import indented, marked, names_of
from mercer.kernels.formula.program import Program
from mercer.kernels.formula.triton_source import triton_frame


def print_source(program: Program, backend: str, **options: Any) -> str:
    """The code of a program for one backend."""
    if backend not in FRAMES:
        raise ValueError(f"no printer for backend {backend!r}: there are {', '.join(FRAMES)}")
    return FRAMES[backend](program, **options)


def _body(expression: Expression, backend: str) -> list[str]:
    """Statements that compute ``result`` from the slots q[0], l[0], r[0], c[0], …"""
    names = names_of(expression).items()
    slots = {leaf: f"{name[0]}[{name[1:]}]" if name[1:] else name for leaf, name in names}
    return statements(expression, backend, slots)


def _array_frame(backend: str) -> Callable[[Program], str]:
    def frame(program: Program) -> str:
        functions = ["def formula(q, l, r, c):", *_returning(_body(program.body, backend))]
        for i, term in enumerate(program.terms):
            if term is not None:
                functions += ["", "", f"def term_{i}(a, b, c):", *_returning(_body(term, backend))]
        return "\n".join(functions) + "\n"

    return frame


def _returning(lines: list[str]) -> list[str]:
    *head, last = lines
    return indented([*head, last.replace("result = ", "return ")])


_UNROLL = 4  # coordinates that one pass over a row of the tile takes, which saves loads and stores of the sum
#: Terms of more operations are not unrolled: they would be slower and take long to compile.
_UNROLLED_UP_TO = 3


_NUMBA_HEADER = """\
from numba import cfunc, types

from mercer.gram.backends.numba.bessel import matern_shape
from mercer.gram.backends.numba.elementary import *
from mercer.runtime.native import FOR_C
from mercer.gram.backends.numba.pointers import tile_signature


@cfunc(tile_signature(types.{real}), cache={cache}, **FOR_C)
def tile(q, left, right, x, yt, params, out, sizes):
    rows, cols = sizes[0], sizes[1]
    height, stride = {height}, {stride}
"""


def _numba_frame(program: Program, real: str = "float64", cache: bool = True, adds_rows: bool = False) -> str:
    """``tile`` writes row after row; or it adds all of them up, and may be given some rows of its planes.

    Everything is read and written through pointers: views of rows would take most of the time to compile.
    """
    last = f"sizes[{2 + 3 * len(program.views)}]"
    header = _NUMBA_HEADER.format(
        real=real, cache=cache, height=last if adds_rows else "rows", stride="0" if adds_rows else last
    )
    used = sorted({leaf.name for leaf in program.body.leaves() if isinstance(leaf, Symbol)})
    constants = [f"c{i} = params[{i}]" for i in range(len(program.constants))]
    summed = [i for i, term in enumerate(program.terms) if term is not None]
    sums = [line for i in summed for line in _coordinate_loop(i, program)]
    once = [f"{name} = left[{name[1:]} * height + i]" for name in used if name[0] == "l"]
    once += [f"row_{name} = ({name[1:]} * height + i) * cols" for name in used if name[0] == "q"]
    once += [f"row_{name} = {name[1:]} * cols" for name in used if name[0] == "r"]
    each = [f"{name} = q[row_{name} + j]" for name in used if name[0] == "q"]
    each += [f"{name} = right[row_{name} + j]" for name in used if name[0] == "r"]
    body = statements(program.body, "numba", names_of(program.body))
    body[-1] = body[-1].replace("result = ", "out[row + j] = " + ("out[row + j] + " if adds_rows else ""))
    row = [*sums, *once, "row = i * stride", "for j in range(cols):", *indented([*each, *body])]
    lines = [*constants, "for i in range(rows):", *indented(row)]
    return header + "\n".join(indented(lines)) + "\n"


def _coordinate_loop(plane: int, program: Program) -> list[str]:
    """The sum (or product) over coordinates into a row of its plane, a few coordinates at a time."""
    term = program.terms[plane]
    assert term is not None
    quantity = program.planes[plane]
    start, combine = ("1", "*") if quantity.kind == "product" else ("0", "+")
    view = program.views.index(quantity.view)
    place = [
        f"# plane {plane}: {quantity!r}",
        f"x_{view} = sizes[{3 * view + 2}] + i * sizes[{3 * view + 3}]",
        f"y_{view} = sizes[{3 * view + 4}]",
        f"width = sizes[{3 * view + 3}]",
        f"total = ({plane} * height + i) * cols",
        "k = 0",
    ]
    begin = ["for j in range(cols):", f"    q[total + j] = {start}"]
    one = ["while k < width:", *indented(_pass(term, view, combine, 1))]
    if len(statements(term, "numba", names_of(term))) > _UNROLLED_UP_TO:
        return [*place, *begin, *one]
    first = [f"if width >= {_UNROLL}:", *indented(_pass(term, view, combine, _UNROLL, is_first=True))]
    several = [f"while k + {_UNROLL} <= width:", *indented(_pass(term, view, combine, _UNROLL))]
    return [*place, *first, "else:", *indented(begin), *several, *one]


def _pass(term: Expression, view: int, combine: str, unroll: int, is_first: bool = False) -> list[str]:
    """One pass over a row of the tile: the next ``unroll`` coordinates go into the sum."""
    inner = []
    for u in range(unroll):
        names = {
            leaf: (f"{name}{u}" if name in ("a", "b") else name) for leaf, name in names_of(term).items()
        }
        *lines, last = [marked(line, u) for line in statements(term, "numba", names)]
        inner += [f"b{u} = yt[b{u}_row + j]", *lines, last.replace("result = ", f"g{u} = ")]
    total = f" {combine} ".join(f"g{u}" for u in range(unroll))
    inner.append(
        f"q[total + j] = {total}" if is_first else f"q[total + j] = q[total + j] {combine} ({total})"
    )
    return [
        *(f"a{u} = x[x_{view} + k + {u}]" for u in range(unroll)),
        *(f"b{u}_row = y_{view} + (k + {u}) * cols" for u in range(unroll)),
        "for j in range(cols):",
        *indented(inner),
        f"k += {unroll}",
    ]


FRAMES: dict[str, Callable[..., str]] = {
    "numpy": _array_frame("numpy"),
    "torch": _array_frame("torch"),
    "numba": _numba_frame,
    "triton": triton_frame,
}
