r"""What a column holds: numbers, categories, dates, text, sets, or nothing that can help.

>>> kind_of(np.array([1.5, 2.0, 4.0]), "length").kind, kind_of(np.array(["a", "b", "a"]), "letter").kind
('number', 'category')
>>> kind_of(np.arange(1, 51), "customer_id")
Kind(kind='id', why='each row has a value of its own')
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mercer.errors import InputTypeError
from mercer.kernels.columns.cells import gaps
from mercer.kernels.columns.kinds import Content, content_of, mean_words
from mercer.tables.dates import orders_of
from mercer.tables.numbers import ROWS_THAT_TELL, need_a_closer_look
from mercer.tables.view import TableView, chunks

_OWN = "each row has a value of its own"
_ONE_WORD = 1.5  # words, on average, below which texts are of one word but for a few
_WITH_DIGITS = 0.9  # the share of texts with a digit from which they are codes
_ID_NAME = re.compile(
    r"(.*[_ .-])?(id|uuid|guid|index|row_?names?|row_?number|unnamed: \d+)|.*[a-z]Id|.*ID", re.I
)


@dataclass(frozen=True)
class Kind:
    """What a column is, and why where that is not obvious."""

    #: what it is used as; columns of the last three kinds are left out
    kind: Literal["number", "category", "date", "text", "string", "set", "id", "constant", "empty"]
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
    content, is_gap = content_of(column, categorical), gaps(column)
    present, has_gaps = column[~is_gap], bool(is_gap.any())
    is_text = not categorical and len(present) > 0 and isinstance(present[0], str)
    if content is Content.EMPTY:
        return Kind("empty", "every value is missing")
    if content is Content.OTHER:
        kinds = ", ".join(sorted({type(value).__name__ for value in present.tolist()}))
        raise InputTypeError(f"column {name!r} holds {kinds}, for which there are no features: leave it out")
    if content is Content.NUMBER:
        return _number(present.astype(np.float64) if column.dtype.kind == "O" else present, name, has_gaps)
    if content is Content.SET:
        return Kind("set")
    if content is Content.DATE or (is_text and orders_of(present)):
        return Kind("date") if _varies(present) else _constant(present)
    if not _varies(present):
        return Kind("category") if has_gaps else _constant(present)
    if is_text and content is not Content.TEXT and _are_codes(present.tolist(), name):
        return Kind("id", _OWN)
    if content is Content.LABEL:
        return Kind("category")
    return Kind("text" if content is Content.TEXT else "string")


def _varies(present: np.ndarray) -> bool:
    return bool((present[1:] != present[0]).any())


def _constant(present: Any) -> Kind:
    return Kind("constant", f"it is {present[0]} in every row")


def _number(present: np.ndarray, name: Any, has_gaps: bool) -> Kind:
    if not _varies(present):
        return Kind("number") if has_gaps else _constant(present)
    n = len(present)
    if n < ROWS_THAT_TELL or has_gaps or (present[1:] == present[:-1]).any():
        return Kind("number")
    if not np.isfinite(present).all() or (present != np.floor(present)).any():
        return Kind("number")
    counts_up = present[0] in (0, 1) and bool((np.diff(present) == 1).all())  # a row number
    is_named = bool(_ID_NAME.fullmatch(str(name))) and len(np.unique(present)) == n
    return Kind("id", _OWN) if counts_up or is_named else Kind("number")


def _are_codes(texts: list[str], name: Any) -> bool:
    """Whether no two rows share a text of one word, and these have digits or the column such a name."""
    if not ROWS_THAT_TELL <= len(texts) == len(set(texts)) or mean_words(texts) >= _ONE_WORD:
        return False
    digits = np.mean([any(letter.isdigit() for letter in text) for text in texts])
    return bool(digits > _WITH_DIGITS or _ID_NAME.fullmatch(str(name)))
