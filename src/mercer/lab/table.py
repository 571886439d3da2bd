r"""Points from a CSV file: two columns, and a third for the class where there is one.

>>> read_table(Asked({"text": "x,y,kind\n0,1,a\n2,3,b\n1,1,a\n", "room": "classify"}))["points"]
[[0.0, 1.0, -1], [2.0, 3.0, 1], [1.0, 1.0, -1]]
>>> read_table(Asked({"text": "0;1.5\n2;3", "room": "curve"}))["points"]
[[0.0, 1.5], [2.0, 3.0]]
"""

from __future__ import annotations

import csv
import io
import math
from typing import Any

from mercer.errors import InputError, shown
from mercer.lab.asked import MOST_POINTS, Asked

_LONGEST_TABLE = 500_000  # characters


def read_table(asked: Asked) -> dict[str, Any]:
    """The points of a text for a room: (x, y) for the curve, (x, y, ±1) for the others."""
    text = asked.text("text", _LONGEST_TABLE).lstrip("\ufeff")
    is_curve = asked.word("room", ("classify", "curve", "perceptron", "features")) == "curve"
    rows = [row for row in csv.reader(io.StringIO(text), _dialect(text)) if any(cell.strip() for cell in row)]
    if rows and not _is_number(rows[0][0]):
        rows = rows[1:]  # names of columns
    if not rows:
        raise InputError("the table has no rows of numbers: its first two columns are x and y")
    if len(rows) > MOST_POINTS:
        raise InputError(f"the table has {len(rows):,} rows, and the lab takes {MOST_POINTS:,}: keep some")
    points: list[list[Any]] = [_numbers(row, number) for number, row in enumerate(rows, 1)]
    if is_curve:
        return {"points": points, "classes": None}
    labels = [row[2].strip() if len(row) > 2 else "" for row in rows]
    classes = sorted(set(labels), key=lambda label: (float(label) if _is_number(label) else math.inf, label))
    if len(classes) > 2:
        raise InputError(
            f"the third column has {len(classes)} values, {shown(classes, 80)}: the lab takes two classes"
        )
    signs = {label: (1 if number else -1) for number, label in enumerate(classes)}
    return {
        "points": [[*point, signs[label]] for point, label in zip(points, labels, strict=True)],
        "classes": classes,
    }


def _dialect(text: str) -> Any:
    try:
        return csv.Sniffer().sniff(text[:4000], ",;\t ")
    except csv.Error:
        return csv.excel


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def _numbers(row: list[str], number: int) -> list[float]:
    if len(row) < 2 or not all(map(_is_number, row[:2])):
        raise InputError(f"row {number} must begin with two numbers, got {shown(row)}")
    return [float(cell) for cell in row[:2]]
