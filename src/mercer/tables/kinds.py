r"""What a column holds: numbers, categories, dates, text, sets, or nothing that can help.

>>> kind_of(np.array([1.5, 2.0, 4.0]), "length").kind, kind_of(np.array(["a", "b", "a"]), "letter").kind
('number', 'category')
>>> kind_of(np.arange(1, 51), "customer_id")
Kind(kind='id', why='each row has a value of its own')
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from mercer.errors import InputTypeError
from mercer.kernels.columns.cells import gaps, is_date
from mercer.tables.dates import orders_of
from mercer.tables.numbers import need_a_closer_look
from mercer.tables.view import TableView, chunks

__all__ = ["Kind", "is_used", "kind_of", "kinds_of"]

_WORDS = 2.5  # words from which, on average, texts are no names of categories
_FEW = 20  # rows below which values of their own say nothing
_ID_NAME = re.compile(
    r"(.*[_ .-])?(id|uuid|guid|index|row_?names?|row_?number|unnamed: \d+)|.*[a-z]Id|.*ID", re.I
)


@dataclass(frozen=True)
class Kind:
    """What a column is, and why where that is not obvious."""

    #: "number", "category", "date", "text", "string" or "set"; or, left out, "id", "constant" or "empty"
    kind: str
    why: str = ""


def is_used(kind: Kind) -> bool:
    """Whether features are made of such a column."""
    return kind.kind not in ("id", "constant", "empty")


def kind_of(column: np.ndarray, name: Any, categorical: bool = False, keep: bool = False) -> Kind:
    """The kind of a column, as `mercer.kernels.columns.cells.values` gives it.

    - more than two words on average, and more than half of the texts different: "text"
    - else texts of which more than half, and more than 40, are different: "string"; of the kind of codes with
      digits, all different: "id"
    - texts that are dates with the day or the month first: "date"
    - other texts, yes or no, a categorical type: "category"

    With ``keep`` numbers are numbers and texts are texts, also where each row has its own.
    """
    found = _kind_of(column, name, categorical)
    if keep and found.kind == "id":
        return Kind("number" if column.dtype.kind in "iuf" or not isinstance(column[0], str) else "string")
    return found


def kinds_of(view: TableView, keep: Sequence[str] = ()) -> list[Kind]:
    """The kinds of all columns of a table; those of plain numbers are found many at a time.

    >>> [kind.kind for kind in kinds_of(TableView.of(np.array([[0.5, 7.0, np.nan], [0.7, 7.0, 2.0]])))]
    ['number', 'constant', 'number']
    """
    kept, found = set(keep), [Kind("number")] * len(view.names)
    looked = ~view.is_number
    for some in chunks(np.flatnonzero(view.is_number), view.rows):
        looked[some] = need_a_closer_look(view.numbers(some))
    for j in np.flatnonzero(looked).tolist():
        name = view.names[j]
        found[j] = kind_of(view.column(j), name, bool(view.is_category[j]), keep=name in kept)
    return found


def _kind_of(column: np.ndarray, name: Any, categorical: bool) -> Kind:
    is_gap = gaps(column)
    if is_gap.all():
        return Kind("empty", "every value is missing")
    present = column[~is_gap]
    if is_date(column):
        return Kind("date") if _varies(present) else _constant(present)
    if column.dtype.kind == "b" or categorical:
        return Kind("category") if _varies(present) or is_gap.any() else _constant(present)
    if column.dtype.kind in "iuf":
        return _number(present, name, bool(is_gap.any()))
    values = present.tolist()
    if all(isinstance(value, bool) for value in values):
        return Kind("category") if _varies(present) or is_gap.any() else _constant(present)
    if all(isinstance(value, Real | Decimal) for value in values):
        return _number(np.array([float(value) for value in values]), name, bool(is_gap.any()))
    if orders_of(present):
        return Kind("date") if _varies(present) else _constant(present)
    if all(isinstance(value, str) for value in values):
        return _text(values, name, bool(is_gap.any()))
    if all(isinstance(value, list | tuple | set | frozenset | Mapping | np.ndarray) for value in values):
        return Kind("set")
    kinds = ", ".join(sorted({type(value).__name__ for value in values}))
    raise InputTypeError(f"column {name!r} holds {kinds}, for which there are no features: leave it out")


def _varies(present: np.ndarray) -> bool:
    return bool((present[1:] != present[0]).any())


def _constant(present: Any) -> Kind:
    return Kind("constant", f"it is {present[0]} in every row")


def _number(present: np.ndarray, name: Any, has_gaps: bool) -> Kind:
    if not _varies(present):
        return Kind("number") if has_gaps else _constant(present)
    n = len(present)
    if n < _FEW or has_gaps or (present[1:] == present[:-1]).any():
        return Kind("number")
    if not np.isfinite(present).all() or (present != np.floor(present)).any():
        return Kind("number")
    counts_up = present[0] in (0, 1) and bool((np.diff(present) == 1).all())  # a row number
    is_named = bool(_ID_NAME.fullmatch(str(name))) and len(np.unique(present)) == n
    return Kind("id", "each row has a value of its own") if counts_up or is_named else Kind("number")


def _text(texts: list[str], name: Any, has_gaps: bool) -> Kind:
    different = len(set(texts))
    if different == 1:
        return Kind("category") if has_gaps else _constant(texts)
    if different <= len(texts) / 2:
        return Kind("category")
    words = np.mean([len(text.split()) for text in texts])
    if words >= _WORDS:
        return Kind("text")
    if different == len(texts) >= _FEW and words < 1.5:
        digits = np.mean([any(letter.isdigit() for letter in text) for text in texts])
        if digits > 0.9 or _ID_NAME.fullmatch(str(name)):
            return Kind("id", "each row has a value of its own")
    return Kind("string") if different > 2 * _FEW else Kind("category")
