r"""Rows that belong together, by groups or by time, and folds that keep them so.

Repeated measurements of a person are alike: a model that has learned from some of them finds the others
easy, and an error from folds at random is not that of a new person. So rows of one *group* are learned from
together or left out together. Rows that follow each other in *time* are learned from before, and predicted
after.

>>> groups = Groups.of(["a", "b", "a", "c", "b"], 5)
>>> [test.tolist() for _, test in groups.folds(3)]
[[0, 2], [1, 4], [3]]
>>> times = Times.of(["2026-01-03", "2026-01-01", "2026-01-02", "2026-01-04"], 4)
>>> [(train.tolist(), test.tolist()) for train, test in times.folds(2)]
[([1, 2], [0]), ([0, 1, 2], [3])]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, ClassVar, Self

import numpy as np

from mercer.data.folds import Fold
from mercer.errors import InputError

#: groups, or points in time, that a search cuts in halves, each of which is cut in folds
LEAST_GROUPS = 4
#: parts of rows in time whose mean errors are taken for independent of each other
_BATCHES = 20


@dataclass(frozen=True, eq=False)
class Apart(ABC):
    """What the rows belong to: 0, 1, … for each of them."""

    codes: np.ndarray  # (n,)
    #: the parameter of ``fit`` that takes such codes, and what they are called
    option: ClassVar[str]
    word: ClassVar[str]
    #: whether a later row is never learned from to predict an earlier one
    is_ordered: ClassVar[bool]

    @property
    def count(self) -> int:
        """How many groups, or points in time, there are."""
        return len(np.unique(self.codes))

    def take(self, rows: np.ndarray) -> Self:
        """The same for some of the rows."""
        return type(self)(np.unique(self.codes[rows], return_inverse=True)[1])

    def options(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """What ``fit`` is told of some of the rows."""
        return {self.option: self.codes[rows]}

    def require(self, least: int, why: str) -> None:
        """Refuse fewer groups, or points in time, than so many."""
        if self.count < least:
            raise InputError(
                f"there {'is' if self.count == 1 else 'are'} {self.count} {self.word}"
                f"{'' if self.count == 1 else 's'}, and {why} {least} or more: pass rows of others too"
            )

    def sides(self, seed: int) -> np.ndarray:  # (n,) bool
        """Two sides of the rows, one to learn kernels on, and another one to compare them on."""
        self.require(LEAST_GROUPS, "a search takes")
        return self._sides(seed)

    def held(self, order: np.ndarray, most: int, seed: int) -> tuple[np.ndarray, int]:
        """The order with rows to hold out at its end, about so many, and how many these are."""
        is_out = np.zeros(len(self.codes), np.bool_)
        is_out[self._held(most, seed)] = True
        return np.concatenate([order[~is_out[order]], order[is_out[order]]]), int(is_out.sum())

    @abstractmethod
    def blocks(self) -> list[np.ndarray]:
        """The rows in the parts that errors of ridge regression are of: see `solvers.linear.apart`."""

    @abstractmethod
    def clusters(self, rows: np.ndarray) -> np.ndarray:  # (n,)
        """Which of the rows, some of which are tested, have errors that are alike."""

    @abstractmethod
    def folds(self, parts: int, seed: int = 0, labels: np.ndarray | None = None) -> list[Fold]:
        """So many folds."""

    @abstractmethod
    def _sides(self, seed: int) -> np.ndarray: ...

    @abstractmethod
    def _held(self, most: int, seed: int) -> np.ndarray: ...


class Groups(Apart):
    """Rows of one group are never separated."""

    option, word, is_ordered = "groups", "group", False

    @classmethod
    def of(cls, given: Any, n: int, name: str = "groups") -> Groups:
        """From one value of any kind for each row."""
        known: dict[Any, int] = {}
        column = _column(given, n, name)
        return cls(np.array([known.setdefault(value, len(known)) for value in column], dtype=np.intp))

    def blocks(self) -> list[np.ndarray]:
        """The rows of each group."""
        order = np.argsort(self.codes, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(self.codes[order])) + 1)

    def clusters(self, rows: np.ndarray) -> np.ndarray:
        """Those of a group."""
        return self.codes

    def folds(self, parts: int, seed: int = 0, labels: np.ndarray | None = None) -> list[Fold]:
        """So many folds of whole groups, of about one size, and with about their share of each class.

        The largest groups come first, each to the fold f with the least Σ_c m_fc t_c / n_c: m_fc rows of the
        class c are there, t_c are in the group, n_c in all. That keeps Σ_fc m²_fc / n_c small.
        """
        blocks = self.blocks()
        if not 2 <= parts <= len(blocks):
            raise InputError(
                f"{parts} folds of {len(blocks)} group{'' if len(blocks) == 1 else 's'} cannot be made: "
                "pass a smaller number of folds, or rows of more groups"
            )
        of = (
            np.zeros(len(self.codes), np.intp)
            if labels is None
            else np.unique(labels, return_inverse=True)[1]
        )
        counts = np.array([np.bincount(of[rows], minlength=int(of.max()) + 1) for rows in blocks])
        drawn = np.random.default_rng(seed).permutation(len(blocks))
        held, fold_of = np.zeros((parts, counts.shape[1])), np.empty(len(self.codes), np.intp)
        for g in drawn[np.argsort(-counts[drawn].sum(axis=1), kind="stable")].tolist():
            cost = held @ (counts[g] / counts.sum(axis=0))
            fold = int(np.lexsort((held.sum(axis=1), cost))[0])
            held[fold] += counts[g]
            fold_of[blocks[g]] = fold
        every = [np.flatnonzero(fold_of == fold) for fold in range(parts)]
        every.sort(key=lambda rows: int(rows[0]))
        return [(np.setdiff1d(np.arange(len(fold_of)), rows), rows) for rows in every]

    def _sides(self, seed: int) -> np.ndarray:
        return np.isin(np.arange(len(self.codes)), self.folds(2, seed)[0][1])

    def _held(self, most: int, seed: int) -> np.ndarray:
        n = len(self.codes)
        return self.folds(min(max(round(n / max(most, 1)), 2), self.count), seed)[0][1]


class Times(Apart):
    """Rows are learned from before, and predicted after; those of one time stay together."""

    option, word, is_ordered = "times", "point in time", True

    @classmethod
    def of(cls, given: Any, n: int, name: str = "times") -> Times:
        """From numbers, dates, or texts such as 2026-01-31 and 2026-01-31T12:30, one for each row."""
        found = _moments(_column(given, n, name), name)
        try:
            return cls(np.unique(np.asarray(found), return_inverse=True)[1])
        except TypeError:
            raise InputError(
                f"{name} has times with and without a zone, or numbers beside dates, which have no "
                "order: write all of them alike"
            ) from None

    def blocks(self, parts: int = 5) -> list[np.ndarray]:
        """The earlier half of rows, and the others in so many parts, or fewer; all in the order of time."""
        order = np.argsort(self.codes, kind="stable")
        starts = np.flatnonzero(np.diff(self.codes[order])) + 1
        if not len(starts):
            raise InputError(
                "all rows that are compared are of one point in time, and none is after another: pass rows "
                "of others too"
            )
        n = len(order)
        wanted = (n / 2 + n / 2 * np.arange(parts) / parts)[:, None]
        return np.split(order, np.unique(starts[np.abs(starts - wanted).argmin(axis=1)]))

    def clusters(self, rows: np.ndarray) -> np.ndarray:
        """Those that follow each other: twenty parts of the rows that are tested."""
        tested = np.sort(self.codes[rows])
        first = tested[np.arange(1, _BATCHES) * len(tested) // _BATCHES]
        return np.searchsorted(np.unique(first), self.codes, side="right")

    def folds(self, parts: int, seed: int = 0, labels: np.ndarray | None = None) -> list[Fold]:
        """Parts of the later half of the rows, each with all rows before it; the last one comes last."""
        blocks = self.blocks(parts)
        return [(np.sort(np.concatenate(blocks[:k])), np.sort(blocks[k])) for k in range(1, len(blocks))]

    def _sides(self, seed: int) -> np.ndarray:
        order = np.sort(self.codes)
        starts = np.flatnonzero(np.diff(order)) + 1
        middle = starts[:-1][np.abs(starts[:-1] - len(order) / 2).argmin()]  # two times are later, at least
        return np.asarray(self.codes < order[middle])

    def _held(self, most: int, seed: int) -> np.ndarray:
        order = np.sort(self.codes)
        starts = np.flatnonzero(np.diff(order)) + 1
        start = starts[np.abs(starts - (len(order) - most)).argmin()]
        return np.flatnonzero(self.codes >= order[start])


def apart_of(groups: Any, times: Any, n: int) -> Apart | None:
    """What ``fit`` was told: groups or times, one for each of n points; None without either."""
    if groups is not None and times is not None:
        raise InputError(
            "groups and times are both given, and folds are by one of them: pass groups for an error of "
            "new groups, or times for that of the future"
        )
    if groups is not None:
        return Groups.of(groups, n)
    return None if times is None else Times.of(times, n)


def _column(given: Any, n: int, name: str) -> list[Any]:
    """The values, of which none may be missing."""
    if isinstance(given, str) or np.ndim(given) != 1 or len(given) != n:
        raise InputError(
            f"{name} must hold one value for each of {n} points, got "
            f"{f'shape {np.shape(given)}' if np.ndim(given) else repr(given)}: pass an array of shape ({n},)"
        )
    column = list(given if isinstance(given, list | tuple) else _as_values(np.asarray(given)))
    for row, value in enumerate(column):
        if _is_missing(value):
            raise InputError(f"{name} is missing in row {row + 1}: fill it in, or leave such rows out")
    return column


def _is_missing(value: Any) -> bool:
    """None, NaN, NaT and pandas.NA, which is not even equal or unequal to itself."""
    if value is None or type(value).__name__ == "NAType":
        return True
    return not isinstance(value, str) and bool(value != value)


def _as_values(given: np.ndarray) -> Any:
    """Python's numbers, for those of NumPy cannot all be compared; dates of NumPy stay: they are finer."""
    return given if given.dtype.kind in "mM" else given.tolist()


def _moments(column: Sequence[Any], name: str) -> list[Any]:
    """Values that have an order: numbers, or dates."""
    if all(isinstance(value, str) for value in column):
        return [_moment(text, row, name) for row, text in enumerate(column)]
    if {type(value) for value in column} == {date, datetime}:
        return [datetime(*value.timetuple()[:3]) if type(value) is date else value for value in column]
    ordered = (int, float, date, np.datetime64, np.timedelta64)
    for row, value in enumerate(column):
        if not isinstance(value, ordered) or isinstance(value, bool):
            raise InputError(
                f"{name} holds {value!r} in row {row + 1}, which is no time: write numbers, or dates as "
                "2026-01-31 or 2026-01-31 12:30:00"
            )
    return list(column)


def _moment(text: str, row: int, name: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise InputError(
            f"{name} holds {text!r} in row {row + 1}, which is no time: write numbers, or dates as "
            "2026-01-31 or 2026-01-31 12:30:00"
        ) from None
