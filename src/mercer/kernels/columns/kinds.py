"""What the columns of a table hold, and a kernel for each of them by that.

>>> content_of(np.array(["yes", "no", None, "yes", "no"], dtype=object))
<Content.LABEL: 'label'>
>>> choose([[31.0, "Rome"], [45.0, "Oslo"], [23.0, "Rome"]])
{0: Gaussian(sigma='median'), 1: Delta()}
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from decimal import Decimal
from enum import StrEnum, auto
from functools import reduce
from numbers import Real
from operator import add
from typing import Any

import numpy as np
from scipy import sparse

from mercer.data import points as data
from mercer.data.types import Points
from mercer.errors import InputError, InputTypeError
from mercer.kernels.base import Kernel
from mercer.kernels.columns.cells import gaps, is_category, is_date, to_days, values
from mercer.kernels.vectors.stationary import Delta, Gaussian, Periodic

_YEAR = 365.25  # days
#: Rules of thumb: texts of more words on average are free text, and no categories; short texts with more
#: different values may be names rather than categories.
_WORDS_OF_A_TEXT, _DIFFERENT_NAMES = 2.5, 40


class Content(StrEnum):
    """What the cells of a column are, by their types and by how many of them are different."""

    #: every cell is missing
    EMPTY = auto()
    NUMBER = auto()
    DATE = auto()
    #: names of categories: yes or no, a categorical type, texts that come again
    LABEL = auto()
    #: sentences: more than two words on average, most of them different
    TEXT = auto()
    #: short texts of which most are different, and more than forty
    STRING = auto()
    #: lists, sets and dicts of counts
    SET = auto()
    OTHER = auto()


def content_of(column: np.ndarray, is_categorical: bool = False) -> Content:
    """What a column, as `mercer.kernels.columns.cells.values` gives it, holds where nothing is missing."""
    is_gap = gaps(column)
    if is_gap.all():
        return Content.EMPTY
    if is_date(column):
        return Content.DATE
    if column.dtype.kind == "b" or is_categorical:
        return Content.LABEL
    if column.dtype.kind in "iuf":
        return Content.NUMBER
    present = column[~is_gap].tolist()
    if all(isinstance(value, bool | np.bool_) for value in present):
        return Content.LABEL
    if all(isinstance(value, Real | Decimal) for value in present):
        return Content.NUMBER
    if all(isinstance(value, str) for value in present):
        return _content_of_texts(present)
    sets = list | tuple | set | frozenset | Mapping | np.ndarray
    return Content.SET if all(isinstance(value, sets) for value in present) else Content.OTHER


def _content_of_texts(texts: list[str]) -> Content:
    different = len(set(texts))
    if different <= len(texts) / 2:
        return Content.LABEL
    if mean_words(texts) >= _WORDS_OF_A_TEXT:
        return Content.TEXT
    return Content.STRING if different > _DIFFERENT_NAMES else Content.LABEL


def mean_words(texts: list[str]) -> float:
    """How many words the texts have on average."""
    return float(np.mean([len(text.split()) for text in texts]))


def choose(X: Points) -> dict[Any, Kernel]:
    """A kernel for every column of a table, under its name, or its position where names are no texts.

    - numbers: ``Gaussian(sigma="median")``
    - categories (short texts, yes or no, a categorical dtype): ``Delta()``
    - short texts of which most are different (names, codes): ``Spectrum(3).normalized()``
    - free text (more than two words on average, most different): ``BagOfWords(weighting="tf-idf")``, with
      its lengths normalised
    - dates: ``Gaussian(sigma="median")`` of days and, in equal shares, ``Periodic`` for the time of the year
      where they span two years and the time of the day where they have one
    - lists, sets and dicts of counts: ``Intersection().normalized()``

    A column in which everything is missing is left out.
    """
    if sparse.issparse(X):
        raise InputTypeError(
            "ColumnKernel('auto') looks at the columns of a table, got a sparse matrix: use one kernel "
            "for all of it"
        )
    table: Any = X if hasattr(X, "columns") else data.columns(X, slice(None))
    names = _keys(table)
    found = {name: _kernel_for(values(table, j), table, j, name) for j, name in enumerate(names)}
    kernels = {name: kernel for name, kernel in found.items() if kernel is not None}
    if not kernels:
        what = "no columns" if not names else "nothing but missing values"
        raise InputError(f"the table has {what}, got shape {table.shape}: pass at least one column of values")
    return kernels


def _keys(table: Any) -> list[Any]:
    names = list(getattr(table, "columns", range(table.shape[1])))
    if not all(isinstance(name, str) for name in names):
        return list(range(len(names)))  # A whole number is a position, whatever the names of the columns are.
    doubled = [name for name in names if names.count(name) > 1]
    if doubled:
        raise InputError(
            f"the table has more than one column {doubled[0]!r}: give columns names of their own"
        )
    return names


def _kernel_for(column: np.ndarray, table: Any, j: int, name: Any) -> Kernel | None:
    content = content_of(column, _is_categorical(table, j))
    match content:
        case Content.EMPTY:
            return None
        case Content.NUMBER:
            return Gaussian(sigma="median")
        case Content.LABEL:
            return Delta()
        case Content.DATE:
            return _kernel_for_dates(column[~gaps(column)], name)
        case Content.OTHER:
            return _kernel_for_others(column[~gaps(column)].tolist(), name)
    return _kernel_for_objects(content)


def _kernel_for_objects(content: Content) -> Kernel:
    """The kernel for texts or sets, whose file is loaded where there are any."""
    if content is Content.TEXT:
        from mercer.kernels.strings.documents import BagOfWords

        return BagOfWords(weighting="tf-idf").normalized()
    if content is Content.STRING:
        from mercer.kernels.strings.spectrum import Spectrum

        return Spectrum(3).normalized()
    from mercer.kernels.sets.bags import Intersection

    return Intersection().normalized()


def _kernel_for_others(present: list[Any], name: Any) -> Kernel:
    """Values of one type that can be compared are labels."""
    kinds = sorted({type(value).__name__ for value in present})
    if len(kinds) == 1 and isinstance(present[0], Hashable) and not isinstance(present[0], complex):
        return Delta()
    raise InputTypeError(
        f"column {name!r} holds {', '.join(kinds)}, for which there is no kernel to choose: say which, "
        f"ColumnKernel({{{name!r}: …}})"
    )


def _is_categorical(table: Any, j: int) -> bool:
    dtypes = getattr(table, "dtypes", None)
    dtype = None if dtypes is None else (dtypes.iloc[j] if hasattr(dtypes, "iloc") else dtypes[j])
    return is_category(dtype)


def _kernel_for_dates(column: np.ndarray, name: Any) -> Kernel:
    """A length of time is a number; a time of the day has no other part."""
    days = to_days(column, name)
    if column.dtype.kind == "m" or (column.dtype.kind == "O" and hasattr(column[0], "total_seconds")):
        return Gaussian(sigma="median")
    if column.dtype.kind == "O" and not hasattr(column[0], "year"):
        return Periodic(period=1.0)
    parts: list[Kernel] = [Gaussian(sigma="median")]
    if np.ptp(days) >= 2 * _YEAR:
        parts.append(Periodic(period=_YEAR))
    if (days % 1 != days[0] % 1).any() and np.ptp(days) >= 2:
        parts.append(Periodic(period=1.0))
    return parts[0] if len(parts) == 1 else reduce(add, [part * (1 / len(parts)) for part in parts])
