"""Lines of printed code: what the frames of all backends share."""

from __future__ import annotations

import re

from mercer.kernels.formula.expression import Expression, Symbol


def names_of(expression: Expression) -> dict[Expression, str]:
    """Every symbol of a formula, by its own name."""
    return {leaf: leaf.name for leaf in expression.leaves() if isinstance(leaf, Symbol)}


def indented(lines: list[str]) -> list[str]:
    """The lines one level further in."""
    return [f"    {line}" for line in lines]


def marked(line: str, mark: object) -> str:
    """Temporaries t0, t1, … of one copy of a statement, kept apart from those of the others.

    >>> marked("t1 = t0 * a", 3)
    't1_3 = t0_3 * a'
    """
    return re.sub(r"\bt(\d+)\b", rf"t\1_{mark}", line)
