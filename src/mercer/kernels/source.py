"""Printing a program as code: the same body for NumPy, Numba and Torch, three short frames around it.

The printed functions are called by the backends, which fill the planes they read:

- NumPy, Torch: ``formula(q, l, r, c)`` on whole tiles, and ``term_i(a, b, c)`` for each sum or
  product over coordinates;
- Numba: one C-callable ``tile`` that loops over a tile, sums its coordinate terms and writes the
  kernel's values, called by the compiled tile loop (``mercer.gram.backends.loops``).

A new backend adds a column to the operations' table and a frame here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from textwrap import indent
from typing import Any

from mercer.kernels.calculus import statements
from mercer.kernels.expression import Expression, Symbol
from mercer.kernels.program import Program

__all__ = ["print_source"]


def print_source(program: Program, backend: str, **options: Any) -> str:
    """The code of a program for one backend."""
    if backend not in FRAMES:
        raise ValueError(f"no printer for backend {backend!r}: there are {', '.join(FRAMES)}")
    return FRAMES[backend](program, **options)


def _names(expression: Expression) -> dict[Expression, str]:
    return {leaf: leaf.name for leaf in expression.leaves() if isinstance(leaf, Symbol)}


def _body(expression: Expression, backend: str, read: str = "{letter}[{index}]") -> list[str]:
    """Statements that compute ``result`` from the slots q[0], l[0], r[0], c[0], …"""
    names: dict[Expression, str] = {}
    for leaf, name in _names(expression).items():
        letter, index = name[0], name[1:]
        names[leaf] = read.format(letter=letter, index=index) if index else name
    return statements(expression, backend, names)


def _array_frame(backend: str) -> Callable[[Program], str]:
    def frame(program: Program) -> str:
        functions = ["def formula(q, l, r, c):", *_indented(_body(program.body, backend))]
        for i, term in enumerate(program.terms):
            if term is not None:
                functions += ["", "", f"def term_{i}(a, b, c):", *_indented(_body(term, backend))]
        return "\n".join(functions) + "\n"

    return frame


def _indented(lines: list[str]) -> list[str]:
    *head, last = lines
    return [f"    {line}" for line in [*head, last.replace("result = ", "return ")]]


_UNROLL = 4  # coordinates per pass over a row of the tile: fewer loads and stores of the sum


_NUMBA_HEADER = """\
from numba import carray, cfunc, types

from mercer.gram.backends.bessel import matern_shape
from mercer.gram.backends.elementary import *
from mercer.native import OPTIONS
from mercer.gram.backends.loops import tile_signature


@cfunc(tile_signature(types.{real}), cache={cache}, **OPTIONS)
def tile(q_, left_, right_, x, yt_, params, out_, sizes):
    rows, cols = sizes[0], sizes[1]
    height = {height}
    q = carray(q_, ({planes}, height, cols))
    left, right = carray(left_, ({left}, height)), carray(right_, ({right}, cols))
    yt, out = carray(yt_, 1 << 40), carray(out_, (rows, {stride}))
"""


def _numba_frame(program: Program, real: str = "float64", cache: bool = True, adds_rows: bool = False) -> str:
    """``tile`` writes row after row; or it adds all of them up, and may be given some rows of its planes."""
    last = f"sizes[{2 + 3 * len(program.views)}]"
    header = _NUMBA_HEADER.format(
        real=real,
        cache=cache,
        planes=max(1, len(program.planes)),
        left=max(1, len(program.left)),
        right=max(1, len(program.right)),
        height=last if adds_rows else "rows",
        stride="cols" if adds_rows else last,
    )
    used = sorted({leaf.name for leaf in program.body.leaves() if isinstance(leaf, Symbol)})
    constants = [f"c{i} = params[{i}]" for i in range(len(program.constants))]
    sums = [_coordinate_loop(i, program) for i, term in enumerate(program.terms) if term is not None]
    once = [f"{name} = left[{name[1:]}, i]" for name in used if name[0] == "l"]
    once += [f"row_{name} = q[{name[1:]}, i]" for name in used if name[0] == "q"]
    once += [f"row_{name} = right[{name[1:]}]" for name in used if name[0] == "r"]
    each = [f"{name} = row_{name}[j]" for name in used if name[0] in "qr"]
    body = statements(program.body, "numba", _names(program.body))
    body[-1] = body[-1].replace("result = ", "row[j] += " if adds_rows else "row[j] = ")
    lines = [
        *constants,
        "for i in range(rows):",
        *(indent(loop, "    ") for loop in sums),
        *(f"    {line}" for line in [*once, "row = out[0]" if adds_rows else "row = out[i]"]),
        "    for j in range(cols):",
        *(f"        {line}" for line in [*each, *body]),
    ]
    return header + indent("\n".join(lines), "    ") + "\n"


def _coordinate_loop(plane: int, program: Program) -> str:
    """The sum (or product) over coordinates into a row of its plane, a few coordinates at a time."""
    term = program.terms[plane]
    assert term is not None
    quantity = program.planes[plane]
    start, combine = ("1", "*") if quantity.kind == "product" else ("0", "+")  # type: ignore[union-attr]
    view = program.views.index(quantity.view)
    shift = f"x_{view}", f"y_{view}"

    def passes(unroll: int, first: bool = False) -> str:
        read = [f"a{u} = x[{shift[0]} + k + {u}]" for u in range(unroll)]
        columns = [
            f"b{u}_row = yt[{shift[1]} + (k + {u}) * cols : {shift[1]} + (k + {u} + 1) * cols]"
            for u in range(unroll)
        ]
        inner = []
        for u in range(unroll):
            names = {
                leaf: (f"{name}{u}" if name in ("a", "b") else name) for leaf, name in _names(term).items()
            }
            lines = statements(term, "numba", names)
            inner += [f"b{u} = b{u}_row[j]", *(_suffix(line, u) for line in lines[:-1])]
            inner.append(_suffix(lines[-1], u).replace("result = ", f"g{u} = "))
        total = f" {combine} ".join(f"g{u}" for u in range(unroll))
        inner.append(f"total[j] = {total}" if first else f"total[j] = total[j] {combine} ({total})")
        loop = [
            *read,
            *columns,
            "for j in range(cols):",
            *(f"    {line}" for line in inner),
            f"k += {unroll}",
        ]
        return indent("\n".join(loop), "    ")

    return "\n".join(
        [
            f"# plane {plane}: {quantity!r}",
            f"{shift[0]} = sizes[{3 * view + 2}] + i * sizes[{3 * view + 3}]",
            f"{shift[1]} = sizes[{3 * view + 4}]",
            f"width = sizes[{3 * view + 3}]",
            f"total = q[{plane}, i]",
            "k = 0",
            f"if width >= {_UNROLL}:",
            passes(_UNROLL, first=True),
            "else:",
            "    for j in range(cols):",
            f"        total[j] = {start}",
            f"while k + {_UNROLL} <= width:",
            passes(_UNROLL),
            "while k < width:",
            passes(1),
        ]
    )


def _suffix(line: str, u: int) -> str:
    """Temporaries t0, t1, … of one unrolled copy, kept apart from the others'."""
    return re.sub(r"\bt(\d+)\b", rf"t\1_{u}", line)


FRAMES: dict[str, Callable[..., str]] = {
    "numpy": _array_frame("numpy"),
    "torch": _array_frame("torch"),
    "numba": _numba_frame,
}
