r"""ARFF, the files of Weka: attributes with their types, then rows; dense or sparse.

>>> text = "@relation r\n@attribute a numeric\n@attribute 'b c' {x, y}\n@data\n1, x\n?, y\n"
>>> read_arff(text, "t.arff")
{'a': [1.0, None], 'b c': ['x', 'y']}
"""

from __future__ import annotations

import csv
import re
from contextlib import suppress
from datetime import datetime
from typing import Any

from mercer.errors import InputError

_ATTRIBUTE = re.compile(
    r"@attribute\s+('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^\s{]+)\s*(.+)", re.IGNORECASE
)
_NUMBERS = ("numeric", "real", "integer")
#: what an attribute is read as: "number", "text", "date" and a pattern, or the values that it may have
_Kind = str | tuple[str, ...]
#: letters of Java's patterns for dates, and what Python calls them
_JAVA = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}


def is_arff(text: str) -> bool:
    r"""Whether the first line that is no comment is ARFF's.

    >>> is_arff("% a comment\n\n@RELATION iris\n")
    True
    """
    lines = (line.strip() for line in text[:100000].splitlines())
    first = next((line for line in lines if line and not line.startswith("%")), "")
    return first.lower().startswith(("@relation", "@attribute"))


def read_arff(text: str, name: str) -> dict[str, list[Any]]:
    """The columns, by name."""
    attributes: dict[str, _Kind] = {}
    lines = text.splitlines()
    for start, line in enumerate(lines, start=1):
        word = line.strip()
        if word.lower().startswith("@data"):
            break
        if word.lower().startswith("@attribute"):
            found = _ATTRIBUTE.fullmatch(word)
            if found is None:
                raise InputError(
                    f"line {start} of {name} is no attribute: {word!r}; write @attribute name type"
                )
            label, kind = _unquote(found[1]), found[2].strip()
            if label in attributes:
                raise InputError(f"{name} has the attribute {label!r} twice: give each a name of its own")
            attributes[label] = _kind(kind, label, name)
    else:
        raise InputError(f"{name} has no @data line: is the file cut off?")
    if not attributes:
        raise InputError(f"{name} has no attributes: write @attribute name type for each column")
    columns: dict[str, list[Any]] = {label: [] for label in attributes}
    for number, line in enumerate(lines[start:], start=start + 1):
        if not line.strip() or line.lstrip().startswith("%"):
            continue
        try:
            cells = _cells(line.strip(), attributes, name, number)
        except csv.Error as error:
            raise InputError(f"line {number} of {name} cannot be read: {error}") from None
        for label, cell in zip(attributes, cells, strict=True):
            columns[label].append(_value(cell, attributes[label], label, name, number))
    if not next(iter(columns.values())):
        raise InputError(f"{name} has attributes and no rows: pass at least one row")
    return columns


def _kind(kind: str, label: str, name: str) -> _Kind:
    lower = kind.lower()
    if lower.startswith(_NUMBERS):
        return "number"
    if kind.startswith("{") and "}" in kind:
        return tuple(_unquote(value) for value in _split(kind[1 : kind.rindex("}")].strip().rstrip(",")))
    if lower.startswith("string"):
        return "text"
    if lower.startswith("date"):
        pattern = _unquote(kind[4:].strip()) or "yyyy-MM-dd'T'HH:mm:ss"
        for java, python in _JAVA.items():
            pattern = pattern.replace(java, python)
        return "date " + pattern.replace("'", "")
    raise InputError(f"attribute {label!r} of {name} is {kind}: numeric, {{…}}, string and date are read")


def _cells(line: str, attributes: dict[str, _Kind], name: str, number: int) -> list[str | None]:
    """The cells of a row; None is missing. What a sparse row leaves out is zero, or the first value."""
    sparse = line.startswith("{")
    if sparse != line.endswith("}"):
        raise InputError(f"line {number} of {name} has one brace of two: is the file cut off?")
    fields = _split(line[1:-1] if sparse else line)
    if not sparse:
        if len(fields) != len(attributes):
            counted = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
            raise InputError(
                f"line {number} of {name} has {counted} for {len(attributes)} attributes: correct it, or is "
                "the file cut off?"
            )
        return [None if cell == "?" else _unquote(cell) for cell in fields]
    cells: list[str | None] = [kind[0] if isinstance(kind, tuple) else "0" for kind in attributes.values()]
    for field in fields:
        index, _, cell = field.partition(" ")
        if not index.isdecimal() or int(index) >= len(attributes):
            raise InputError(f"line {number} of {name} has {field!r} where a sparse row has index value")
        cells[int(index)] = None if cell.strip() == "?" else _unquote(cell.strip())
    return cells


def _split(line: str) -> list[str]:
    if "'" not in line and '"' not in line:
        return [
            cell.strip()
            for cell in (line.split(",") if "," in line or "\t" not in line else line.split("\t"))
        ]
    quote = "'" if "'" in line else '"'
    return [
        cell.strip()
        for cell in next(csv.reader([line], quotechar=quote, escapechar="\\", skipinitialspace=True))
    ]


def _unquote(text: str) -> str:
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _value(cell: str | None, kind: _Kind, label: str, name: str, number: int) -> Any:
    if cell is None or kind == "text":
        return cell
    if isinstance(kind, tuple):
        if cell in kind:
            return cell
        for same in (str.casefold, float):  # YES may stand for yes, and 1.0 for 1.
            with suppress(ValueError):
                found = [value for value in kind if same(value) == same(cell)]
                if len(found) == 1:
                    return found[0]
        raise InputError(
            f"line {number} of {name} has {cell!r} where {label!r} is one of {', '.join(map(repr, kind[:8]))}"
            f"{', …' if len(kind) > 8 else ''}: correct it, or add the value to the attribute"
        )
    try:
        return float(cell) if kind == "number" else datetime.strptime(cell, kind[5:])
    except ValueError:
        what = "a number" if kind == "number" else f"a date as {kind[5:]}"
        raise InputError(
            f"line {number} of {name} has {cell!r} where {label!r} is {what}: correct it"
        ) from None
