r"""Dates such as 3/4/2026, of which only custom says whether the day or the month comes first.

Such columns stay texts until features are made of them: a model keeps the order of its training rows.

>>> moment("3/4/2026 10:30", "day/month"), moment("3/14/2026", "day/month")
(datetime.datetime(2026, 4, 3, 10, 30), None)
>>> orders_of(np.array(["3/4/2026", "1/2/2026"], dtype=object))
['day/month', 'month/day']
>>> orders_of(np.array(["3/14/2026", None, "1/2/2026"], dtype=object))
['month/day']
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, time
from functools import partial
from typing import Any

import numpy as np

from mercer.errors import InputTypeError
from mercer.kernels.columns.cells import gaps

#: the first is taken where both fit
ORDERS = ("day/month", "month/day")
_WRITTEN = re.compile(
    r"\s*(?=\d+/\d+/|\d+-\d+-\d{4})(\d{1,2})[/-](\d{1,2})[/-](?P<year>\d{4}|\d{2})"
    r"(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.(?P<part>\d{1,9}))?)?)?\s*",
    re.ASCII,
)
_CENTURY = 69  # two digits of a year from which they are of 19.., as POSIX has it


def moment(text: str, order: str) -> datetime | None:
    """The date, and its time of the day; None for other texts."""
    found = _WRITTEN.fullmatch(text)
    if found is None:
        return None
    one, other, year, hour, minute, second, _ = map(int, found.groups("0"))
    micros = int((found["part"] or "0").ljust(6, "0")[:6])
    day, month = (one, other) if order == ORDERS[0] else (other, one)
    if len(found["year"]) == 2:
        year += 1900 if year >= _CENTURY else 2000
    with suppress(ValueError):  # the text may name a day that does not exist
        return datetime(year, month, day, hour, minute, second, micros)
    return None


def orders_of(column: np.ndarray) -> list[str]:  # (n,)
    """The orders in which all of a column are dates: none, one or both."""
    present = column[~gaps(column)].tolist()
    if not present or not all(isinstance(cell, str) for cell in present):
        return []
    texts = dict.fromkeys(present)  # each once
    return [order for order in ORDERS if all(moment(text, order) for text in texts)]


def to_moments(column: np.ndarray, order: str, name: Any) -> np.ndarray:  # (n,) datetime64
    """Texts as dates in this order ("" if it shows), NaT where missing; a cell that is none is refused."""
    is_gap = gaps(column)
    cells = [None if gap else str(cell) for cell, gap in zip(column, is_gap, strict=True)]
    fitting = [order] if order else orders_of(column)
    if len(fitting) > 1:
        raise InputTypeError(
            f"column {name!r} has dates that fit {' and '.join(fitting)}, and the model was trained on dates "
            "that are written in another way: write them as 2026-01-31"
        )
    if fitting:
        known = {text: None if text is None else moment(text, fitting[0]) for text in dict.fromkeys(cells)}
        if all(found or text is None for text, found in known.items()):
            return np.array([known[text] for text in cells], dtype="datetime64[us]")
    row = _first_unreadable(cells, fitting)
    how = f", written {order}," if order else ""
    raise InputTypeError(
        f"column {name!r} held dates{how} when the model was trained, and has {cells[row]!r} in row "
        f"{row + 1}: write dates as 2026-01-31 or 2026-01-31 12:30:00"
    )


def _first_unreadable(cells: list[str | None], orders: list[str]) -> int:
    """The row at which the way of writing dates that gets furthest ends."""
    ways: list[Callable[[str], Any]] = [partial(moment, order=order) for order in orders or ORDERS]
    ways += [datetime.fromisoformat, time.fromisoformat, lambda text: datetime.strptime(text, "%d.%m.%Y")]
    return max(next((i for i, text in enumerate(cells) if not _reads(way, text)), 0) for way in ways)


def _reads(way: Callable[[str], Any], text: str | None) -> bool:
    with suppress(ValueError):
        return text is None or way(text) is not None
    return False
