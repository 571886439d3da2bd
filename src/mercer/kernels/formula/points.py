r"""How a formula calls points: x, some of its columns, and what maps make of it.

>>> from mercer.kernels.formula.pair import Columns, View
>>> print(through(View((Columns((0, 2)),)), Name("x'"), str))
x'_{0,2}
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mercer.kernels.formula.pair import Columns, Mapping, Scaling, View, unit_rows
from mercer.kernels.formula.typeset import between, escaped, word

BARS = r"\lVert", r"\rVert"


@dataclass(frozen=True)
class Name:
    """How a point is called: a letter, and of a reference point its index."""

    letter: str
    index: str = ""

    def __str__(self) -> str:
        return f"{self.letter}_{{{self.index}}}" if self.index else self.letter

    def at(self, index: str) -> str:
        """Its coordinates, or those with some numbers."""
        return f"{self.letter}_{{{self.index + ',' if self.index else ''}{index}}}"


def through(view: View, point: Name, scaling: Callable[[tuple[str, ...]], str]) -> str:
    """What the steps of a view make of a point; ``scaling`` calls what multiplies its columns."""
    text: Any = point
    for step in view.steps:
        if isinstance(step, Columns):
            which = listing(step.which)
            text = text.at(which) if isinstance(text, Name) else rf"\left({text}\right)_{{{which}}}"
        elif isinstance(step, Scaling):
            text = rf"{scaling(step.path)} \odot {text}"
        elif isinstance(step, Mapping) and step.function is unit_rows:
            text = rf"\frac{{{text}}}{{{between(BARS[0], str(text), BARS[1])}}}"
        else:
            text = rf"{_function(step)}\left({text}\right)"
    return str(text)


def _function(step: Any) -> str:
    r"""The name of a map, φ where it has none, and Φ of what reads objects."""
    if not isinstance(step, Mapping):
        return r"\Phi"
    name = getattr(step.function, "__name__", type(step.function).__name__)
    return rf"\operatorname{{{escaped(name)}}}" if name.isidentifier() else r"\varphi"


def listing(which: tuple[Any, ...]) -> str:
    """Numbers or names of columns, for an index."""
    return ",".join(str(column) if isinstance(column, int) else word(str(column)) for column in which)
