r"""One column of a table as numbers: how, learned from the training rows, and done alike to new ones.

>>> NumberColumn.learn(np.array([1.0, 2.0, 3.0]), "x")(np.array([2.0, np.nan])).round(3)
array([[0.],
       [0.]])
>>> CategoryColumn.learn(np.array(["a", "b", "a"]), "x", 50, 1)(np.array(["b", "z"]))
array([[0., 1.],
       [0., 0.]])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.errors import InputError, InputTypeError
from mercer.kernels.columns.cells import gaps, is_date, to_days
from mercer.tables.dates import to_moments
from mercer.tables.numbers import LARGEST_TO_SQUARE, LearnedScales
from mercer.tables.view import TableView

_YEAR, _WEEK = 365.25, 7.0  # days


# --- what a cell is -------------------------------------------------------------------------------------


def as_numbers(column: np.ndarray, name: Any) -> np.ndarray:  # (n,) float64, NaN where missing
    """A column as numbers; texts that are numbers count, other texts are refused with their row."""
    if column.dtype.kind in "iuf":
        numbers = column.astype(np.float64)
    elif is_date(column):
        raise InputTypeError(f"column {name!r} held numbers when the model was trained, and now holds dates")
    else:
        present = np.flatnonzero(~gaps(column))
        found = [_number(column[i]) for i in present]
        wrong = [int(i) for i, number in zip(present, found, strict=True) if number is None]
        if wrong:
            # a file with decimal commas has them in every row of a column that is not all numbers
            row = next((i for i in wrong if _number(str(column[i]).replace(",", ".")) is None), wrong[0])
            raise InputTypeError(
                f"column {name!r} held numbers when the model was trained, and has {_shown(column[row])} in "
                f"row {row + 1}: correct it, or leave it empty"
            )
        numbers = np.full(len(column), np.nan)
        numbers[present] = found
    too_large = np.abs(numbers) > LARGEST_TO_SQUARE
    if too_large.any():
        row = int(np.argmax(too_large))
        what = "infinite" if np.isinf(numbers[row]) else f"{numbers[row]:.3g}, too large to be squared,"
        raise InputError(f"column {name!r} is {what} in row {row + 1}: correct it, or leave it empty")
    return numbers


def number_block(view: TableView, positions: np.ndarray) -> np.ndarray:  # (k, n) float64
    """Columns of a table as numbers, one per row, NaN where missing; what is no number is refused."""
    block = np.empty((len(positions), view.rows))
    plain = view.is_number[positions]
    if plain.any():
        block[plain] = view.numbers(positions[plain])
    with np.errstate(invalid="ignore"):
        plain &= ~(np.abs(block) > LARGEST_TO_SQUARE).any(axis=1)  # larger ones are refused with their row
    for i in np.flatnonzero(~plain):
        j = int(positions[i])
        block[i] = as_numbers(view.column(j), view.names[j])
    return block


def _number(cell: Any) -> float | None:
    """None of what is no number: yes and no are none either."""
    try:
        return None if isinstance(cell, bool | np.bool_) else float(cell)
    except (TypeError, ValueError):
        return None


def _shown(cell: Any) -> str:
    return as_label(cell) if isinstance(cell, bool | np.bool_) else repr(cell)


def as_label(value: object) -> str:
    """A category as text, the same whichever file it came from: 1, 1.0 and "1"; True, "true" and "TRUE".

    >>> [as_label(v) for v in (1, 1.0, "1", True, "TRUE", 2.5)]
    ['1', '1', '1', 'true', 'true', '2.5']
    """
    if isinstance(value, str):
        return value.lower() if value.lower() in ("true", "false") else str(value)
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _labelled(present: np.ndarray) -> tuple[list[str], np.ndarray]:
    """The labels of some values, each once, and (n,) which of them each value has.

    >>> _labelled(np.array(["b", "a", "b"], dtype=object))
    (['b', 'a'], array([0, 1, 0]))
    """
    cells = present.tolist()
    # 1 and True are equal keys, and different labels
    keys = list(zip(map(type, cells), cells, strict=True)) if len(set(map(type, cells))) > 1 else cells
    first = dict.fromkeys(keys)
    places: dict[str, int] = {}
    for key in first:
        label = as_label(key[1] if keys is not cells else key)
        first[key] = places.setdefault(label, len(places))
    return list(places), np.fromiter(map(first.__getitem__, keys), np.intp, len(keys))


class _Encoder:
    """Writes what becomes of a column into columns of a matrix that is there already: it may be large."""

    def names(self) -> list[str]:
        raise NotImplementedError

    @property
    def width(self) -> int:
        """How many columns it writes."""
        return len(self.names())

    def write(self, column: np.ndarray, out: np.ndarray) -> None:
        raise NotImplementedError

    def __call__(self, column: np.ndarray) -> np.ndarray:  # (n, names)
        out = np.empty((len(column), len(self.names())))
        self.write(column, out)
        return out


# --- numbers ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NumberColumn(_Encoder):
    """(g(x) - mean) / spread, the median in a gap, and whether there was a gap if training rows had any.

    `mercer.tables.numbers` has the formulas, and does many columns at once.
    """

    name: str
    median: float
    mean: float
    spread: float
    #: the unit of the signed logarithm that is taken; 0 where numbers stay as they are
    unit: float
    with_gaps: bool

    @classmethod
    def learn(cls, column: np.ndarray, name: str, logarithm: bool = True) -> NumberColumn:
        return cls.learn_all(as_numbers(column, name)[None, :], [name], logarithm)[0]

    @classmethod
    def learn_all(cls, block: np.ndarray, names: list[str], logarithm: bool = True) -> list[NumberColumn]:
        """Learn the encoders of a block that has one column in each row."""
        learned = LearnedScales.of(block, logarithm)
        values = (learned.medians, learned.means, learned.spreads, learned.units)
        with_gaps = np.isnan(block).any(axis=1)
        return [cls(*given) for given in zip(names, *(v.tolist() for v in (*values, with_gaps)), strict=True)]

    def names(self) -> list[str]:
        return [self.name, f"{self.name} is missing"] if self.with_gaps else [self.name]

    @property
    def width(self) -> int:
        return 1 + self.with_gaps

    def write(self, column: np.ndarray, out: np.ndarray) -> None:  # (n, 1 or 2)
        self.write_all([self], as_numbers(column, self.name)[None, :], out, np.array([0]))

    @staticmethod
    def write_all(
        columns: list[NumberColumn], block: np.ndarray, out: np.ndarray, starts: np.ndarray
    ) -> None:
        """A block with one column per row, each where it starts in ``out``."""
        learned = LearnedScales(*np.array([(c.median, c.mean, c.spread, c.unit) for c in columns]).T)
        is_run = len(starts) == starts[-1] - starts[0] + 1  # writing a slice is quicker
        places = slice(starts[0], starts[-1] + 1) if is_run else starts
        out[:, places] = learned.standardised(block).T
        with_gaps = np.array([column.with_gaps for column in columns])
        if with_gaps.any():
            out[:, starts[with_gaps] + 1] = np.isnan(block[with_gaps]).T

    def describe(self) -> str:
        gap = ", gaps marked" if self.with_gaps else ""
        return f"signed logarithm, standardised{gap}" if self.unit else f"standardised{gap}"


# --- categories -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CategoryColumn(_Encoder):
    """A column of zeros and ones per category; rare ones share one, an unseen one has none."""

    name: str
    categories: list[str]
    #: whether there is a column for rare ones, which are those seen and not listed
    rare: list[str]
    with_gaps: bool

    @classmethod
    def learn(cls, column: np.ndarray, name: str, most: int, least: int) -> CategoryColumn:
        is_gap = gaps(column)
        labels, codes = _labelled(column[~is_gap])
        counts = dict(zip(labels, np.bincount(codes, minlength=len(labels)).tolist(), strict=True))
        ranked = sorted(counts, key=lambda label: (-counts[label], label))
        kept = [label for label in ranked[:most] if counts[label] >= least]
        rare = ranked[len(kept) :]
        if len(rare) == 1 and len(kept) < most:  # A single rare value needs no common column.
            kept, rare = [*kept, *rare], []
        return cls(name, sorted(kept), sorted(rare), bool(is_gap.any()))

    def names(self) -> list[str]:
        names = [f"{self.name} = {label}" for label in self.categories]
        names += [f"{self.name} is rare"] if self.rare else []
        return names + ([f"{self.name} is missing"] if self.with_gaps else [])

    def write(self, column: np.ndarray, out: np.ndarray) -> None:  # (n, categories …)
        places = {label: j for j, label in enumerate(self.categories)}
        places |= dict.fromkeys(self.rare, len(self.categories))
        is_gap = gaps(column)
        labels, codes = _labelled(column[~is_gap])
        chosen = np.array([places.get(label, -1) for label in labels], dtype=np.intp)[codes]
        rows = np.flatnonzero(~is_gap)
        out[:] = 0.0
        out[rows[chosen >= 0], chosen[chosen >= 0]] = 1.0
        if self.with_gaps:
            out[is_gap, -1] = 1.0

    def unseen(self, column: np.ndarray) -> list[str]:
        """Labels that the training rows had not."""
        known = {*self.categories, *self.rare}
        return [label for label in _labelled(column[~gaps(column)])[0] if label not in known]

    def describe(self) -> str:
        pooled = f", {len(self.rare)} rare ones pooled" if self.rare else ""
        return f"{len(self.categories)} categories, one-hot{pooled}"


# --- dates ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DateColumn(_Encoder):
    """Days, standardised, and the times of the year, the week and the day as points of circles."""

    name: str
    mean: float
    spread: float
    middle: float
    #: lengths in days of the circles
    periods: list[float]
    with_gaps: bool
    #: the order of day and month in texts, see `mercer.tables.dates`; "" where dates were no texts
    order: str = ""

    @classmethod
    def learn(cls, column: np.ndarray, name: str, order: str = "") -> DateColumn:
        column = to_moments(column, order, name) if order else column
        days = to_days(column, name)
        is_gap = np.isnan(days)
        present = days[~is_gap]
        span = float(np.ptp(present))
        is_moment = not _is_length_of_time(column)
        periods = [_YEAR] if is_moment and span >= 2 * _YEAR else []
        periods += [_WEEK] if is_moment and span >= 4 * _WEEK and len(present) >= 50 else []
        periods += [1.0] if is_moment and bool((present % 1 != present[0] % 1).any()) else []
        middle = float(np.median(present))
        spread = float(present.std()) or 1.0
        return cls(name, float(present.mean()), spread, middle, periods, bool(is_gap.any()), order)

    def names(self) -> list[str]:
        of = {_YEAR: "year", _WEEK: "week", 1.0: "day"}
        circles = [
            f"{self.name}, {wave} of {of[period]}" for period in self.periods for wave in ("cosine", "sine")
        ]
        return [self.name, *circles, *([f"{self.name} is missing"] if self.with_gaps else [])]

    def write(self, column: np.ndarray, out: np.ndarray) -> None:  # (n, 1 + 2 periods …)
        if not is_date(column) and not gaps(column).all():
            column = to_moments(column, self.order, self.name)
        days = np.full(len(column), np.nan) if gaps(column).all() else to_days(column, self.name)
        is_gap = np.isnan(days)
        days = np.where(is_gap, self.middle, days)
        out[:, 0] = (days - self.mean) / self.spread
        for j, period in enumerate(self.periods):
            angle = 2 * np.pi * days / period
            for k, wave in enumerate((np.cos, np.sin)):
                out[:, 1 + 2 * j + k] = np.where(is_gap, 0.0, wave(angle) / np.sqrt(2))
        if self.with_gaps:
            out[:, -1] = is_gap

    def describe(self) -> str:
        of = {_YEAR: "year", _WEEK: "week", 1.0: "day"}
        circles = [of[period] for period in self.periods]
        return "days, standardised" + (
            f", and the time of the {' and the '.join(circles)}" if circles else ""
        )


def _is_length_of_time(column: np.ndarray) -> bool:
    first = next((value for value, gap in zip(column, gaps(column), strict=True) if not gap), None)
    return column.dtype.kind == "m" or hasattr(first, "total_seconds")
