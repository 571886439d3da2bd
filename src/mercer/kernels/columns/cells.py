r"""What a kernel sees of its columns of a table: numbers, labels or objects, and which of them are missing.

Missing is None, NaN, NaT or pandas.NA. Dates are numbers of days since 1970, times of day parts of a day,
lengths of time days.

>>> Numbers()(np.array([[1.0], [np.nan], [3.0]]))
array([[1.],
       [2.],
       [3.]])
>>> Present()(np.array([[1.0], [np.nan], [3.0]]))
array([[1.],
       [0.],
       [1.]])

What stands in a gap does not matter: it is multiplied by zero (``columns``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from operator import is_
from typing import Any

import numpy as np
from scipy import sparse

from mercer.data import points as data
from mercer.data.types import Points, Tabular
from mercer.errors import InputError, InputTypeError
from mercer.kernels.formula.pair import Columns

#: what replaces a missing object where there is no other object
_STANDS = {"documents": "", "sequences": "", "sets": (), "trees": "missing", "graphs": np.zeros((1, 1))}


#: types of columns in which only None counts as missing
_PLAIN = {str, bytes, bool, int, type(None)}


# --- views ---------------------------------------------------------------------------------------------


class OneEach(Columns):
    """Columns of a table, where each name must be that of one column."""

    def __call__(self, X: Points) -> Any:
        table = super().__call__(X)
        if table.shape[1] != len(self.which):
            names = list(table.columns)
            doubled = next(name for name in self.which if names.count(name) > 1)
            raise InputError(
                f"the table has {names.count(doubled)} columns {doubled!r}: give columns names of their own, "
                "or say which by position"
            )
        return table


@dataclass(frozen=True)
class Numbers:
    """Numbers and dates as floats; a gap gets the mean of the others."""

    refuses_gaps: bool = False

    def __call__(self, X: Tabular) -> Any:  # (n, columns)
        if sparse.issparse(X):
            return X
        if isinstance(X, np.ndarray) and X.dtype.kind in "biuf":
            if X.dtype.kind != "f" or not (is_gap := np.isnan(X)).any():
                return X
            found = [X[:, j].astype(np.float64) for j in range(X.shape[1])]
        else:
            is_gap = np.column_stack([gaps(values(X, j)) for j in range(X.shape[1])])
            found = [_floats(X, j, is_gap[:, j]) for j in range(X.shape[1])]
        for name, column, is_missing in zip(_names(X), found, is_gap.T, strict=True):
            if is_missing.any():
                if self.refuses_gaps:
                    _refuse_gaps(name, is_missing)
                column[is_missing] = 0.0 if is_missing.all() else column[~is_missing].mean()
        return np.column_stack(found)


@dataclass(frozen=True)
class Labels:
    """Categories of any kind; a missing one is None."""

    refuses_gaps: bool = False

    def __call__(self, X: Tabular) -> np.ndarray:  # (n, columns) of objects
        table = np.empty(X.shape, dtype=object)
        for j, name in enumerate(_names(X)):
            column = values(X, j)
            is_gap = gaps(column)
            if self.refuses_gaps and is_gap.any():
                _refuse_gaps(name, is_gap)
            table[:, j] = column
            table[is_gap, j] = None
        return table


@dataclass(frozen=True)
class Objects:
    """The objects of one column; a gap gets another one of them."""

    kind: str | None = None  # what the objects are, see ``Kernel.objects``
    refuses_gaps: bool = False

    def __call__(self, X: Tabular) -> Sequence[Any]:
        (name, *others) = _names(X)
        if others:
            raise InputError(
                f"a kernel on objects compares those of one column, got columns {[name, *others]!r}: give "
                "each a kernel of its own"
            )
        objects = data.as_objects(data.single_column(X))
        is_gap = np.fromiter(map(_is_missing, objects), bool, len(objects))
        if not is_gap.any():
            return objects
        if self.refuses_gaps or (is_gap.all() and self.kind not in _STANDS):
            _refuse_gaps(name, is_gap)
        stands = _STANDS[self.kind or ""] if is_gap.all() else objects[int(np.argmin(is_gap))]
        return [stands if is_missing else value for value, is_missing in zip(objects, is_gap, strict=True)]


@dataclass(frozen=True)
class Anything:
    """The columns as they are, for kernels on numbers and objects alike; with gaps, one or the other."""

    kind: str | None = None
    refuses_gaps: bool = False

    def __call__(self, X: Tabular) -> Any:
        if Present()(X).all():
            return X
        columns = [values(X, j) for j in range(X.shape[1])]
        if all(column.dtype.kind in "biufMm" for column in columns):
            return Numbers(self.refuses_gaps)(X)
        return Objects(self.kind, self.refuses_gaps)(X)


@dataclass(frozen=True)
class Present:
    """1 for a row without gaps, 0 for one that has any."""

    def __call__(self, X: Tabular) -> np.ndarray:  # (n, 1)
        is_there = np.ones(X.shape[0], bool)
        if not sparse.issparse(X):
            for j in range(X.shape[1]):
                is_there &= ~gaps(values(X, j))
        return is_there[:, None].astype(np.float64)


def _names(X: Tabular) -> list[Any]:
    return list(getattr(X, "columns", range(X.shape[1])))


def _refuse_gaps(name: Any, is_gap: np.ndarray) -> None:
    raise InputError(
        f"column {name!r} has {is_gap.sum()} missing values, the first in row {np.argmax(is_gap)}: drop "
        "those rows, fill the gaps, or pass missing='value' to ColumnKernel"
    )


# --- one column ----------------------------------------------------------------------------------------


def is_category(dtype: Any) -> bool:
    """Whether a column of this type holds categories, in a frame of pandas or polars."""
    return type(dtype).__name__ in ("CategoricalDtype", "Categorical", "Enum")


def values(X: Tabular, j: int) -> np.ndarray:  # (n,)
    """One column, as NumPy has it; lists, texts and other objects as an array of these."""
    if hasattr(X, "iloc"):
        column = X.iloc[:, j]
        kind = type(column.dtype).__name__
        if kind == "PeriodDtype":
            column = column.dt.to_timestamp()
        return np.asarray(column.astype(object) if kind == "CategoricalDtype" else column.to_numpy())
    if hasattr(type(X), "columns"):  # This is a frame; asking the object itself would list all of its names.
        column = X[:, j]
        if column.dtype.is_nested() or column.dtype.is_decimal() or str(column.dtype) == "Null":
            return _array(column.to_list())
        return np.asarray(column.to_numpy())
    return np.asarray(X[:, [j]].toarray().ravel() if sparse.issparse(X) else X[:, j])


def _array(objects: list[Any]) -> np.ndarray:
    array = np.empty(len(objects), dtype=object)
    array[:] = objects
    return array


def gaps(column: np.ndarray) -> np.ndarray:  # (n,) bool
    """Where values are missing.

    >>> gaps(np.array(["a", None, float("nan")], dtype=object))
    array([False,  True,  True])
    """
    if column.dtype.kind == "O":
        is_plain = set(map(type, column)) <= _PLAIN  # For most columns of text a quicker test is enough.
        return np.fromiter(map(partial(is_, None) if is_plain else _is_missing, column), bool, len(column))
    if column.dtype.kind in "fc":
        return np.isnan(column)
    return np.isnat(column) if column.dtype.kind in "Mm" else np.zeros(len(column), bool)


def _is_missing(value: object) -> bool:
    return (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float | np.floating) and bool(value != value))
        or (isinstance(value, np.datetime64 | np.timedelta64) and bool(np.isnat(value)))
    )


def _floats(X: Tabular, j: int, is_gap: np.ndarray) -> np.ndarray:  # (n,) float64
    """A column as numbers; anything in a gap."""
    column, name = values(X, j), _names(X)[j]
    if is_date(column):
        return to_days(column, name)
    if not is_gap.any():
        return np.array(data.as_vectors(data.columns(X, [j]))[:, 0], np.float64)
    filled = np.where(is_gap, 0.0, column)
    return np.array(data.as_vectors(filled[:, None], f"column {name!r}")[:, 0], np.float64)


# --- dates -----------------------------------------------------------------------------------------------


def is_date(column: np.ndarray) -> bool:
    """Whether a column holds dates, times or lengths of time."""
    if column.dtype.kind != "O":
        return column.dtype.kind in "Mm"
    first = next((value for value in column if not _is_missing(value)), None)
    return isinstance(first, date | time | timedelta)


def to_days(column: np.ndarray, name: Any) -> np.ndarray:  # (n,) float64
    """Days since 1970, NaN where missing; times with a zone are taken in UTC."""
    if column.dtype.kind == "O":
        return np.array([_day(value, name, i) for i, value in enumerate(column)])
    unit = "datetime64[us]" if column.dtype.kind == "M" else "timedelta64[us]"
    return np.where(np.isnat(column), np.nan, column.astype(unit).astype(np.int64) / 86400e6)


def _day(value: object, name: Any, row: int) -> float:
    if _is_missing(value):
        return np.nan
    if isinstance(value, timedelta):
        return value / timedelta(days=1)
    if isinstance(value, datetime):
        zone = UTC if value.tzinfo is not None else None
        return (value - datetime(1970, 1, 1, tzinfo=zone)) / timedelta(days=1)
    if isinstance(value, date):
        return float((value - date(1970, 1, 1)).days)
    if isinstance(value, time):
        return (value.hour + (value.minute + (value.second + value.microsecond / 1e6) / 60) / 60) / 24
    raise InputTypeError(f"column {name!r} has dates, but in row {row} it has {value!r}: pass dates only")
