r"""The column to predict: which task it asks for, and what makes it impossible.

>>> values = np.array(["yes", "no", None, "yes", "no"], dtype=object)
>>> target = find_target(values, "bought")
>>> target.task, target.y.tolist(), target.rows.tolist()
('classification', ['yes', 'no', 'yes', 'no'], [0, 1, 3, 4])
>>> find_target(np.array([1.5, 2.5, 4.0]), "price").task
'regression'
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import Any

import numpy as np

from mercer.errors import InputError
from mercer.kernels.columns.cells import gaps, is_date
from mercer.tables.dates import orders_of
from mercer.tables.encoders import as_label
from mercer.tables.numbers import LARGEST_TO_SQUARE

_CLASSES = 20  # different whole numbers up to which they are classes


class Goal(StrEnum):
    """What is learned of a target; each is equal to its word."""

    CLASSIFICATION = auto()
    REGRESSION = auto()

    __repr__ = str.__repr__


@dataclass(frozen=True, eq=False)
class Target:
    """What is to be predicted of the rows that have it."""

    name: str
    task: Goal
    #: (n,) floats, whole numbers or texts
    y: np.ndarray
    #: (n,) the rows of the table that have a target
    rows: np.ndarray
    notes: tuple[str, ...] = ()


def find_target(column: np.ndarray, name: str, task: str | None = None) -> Target:
    """The targets and their task, by what the column holds unless ``task`` says which.

    Texts and yes or no are classes; so are whole numbers of which at most 20 are different, each five times
    on average, and any two different numbers. Other numbers are for regression.
    """
    if task is not None and task not in list(Goal):
        raise InputError(f"task must be 'classification' or 'regression', got {task!r}: pass one of the two")
    if is_date(column) or orders_of(column):
        raise InputError(
            f"the target {name!r} holds dates: make it a number of days, or choose another column"
        )
    is_gap = gaps(column)
    if is_gap.all():
        raise InputError(f"the target {name!r} is missing in every row: choose another column")
    rows = np.flatnonzero(~is_gap)
    notes = []
    if is_gap.any():
        notes.append(f"{is_gap.sum():,} rows without a target were left out")
    numbers = _numbers(column[rows])
    if numbers is None and task != Goal.CLASSIFICATION:
        numbers = _counted(column[rows], is_asked=task == Goal.REGRESSION)
    if numbers is not None and np.isinf(numbers).any():
        row = int(rows[np.argmax(np.isinf(numbers))]) + 1
        raise InputError(f"the target {name!r} is infinite in row {row}: correct it, or leave it empty")
    if task is None:
        learned, why = _guess(numbers, len(rows))
        (other,) = set(Goal) - {learned}
        if why:
            notes.append(f"{name!r} {why}, so this is {learned}; pass --task {other} for the other")
    else:
        learned = Goal(task)
    if learned is Goal.REGRESSION:
        return Target(name, learned, _real(column[rows], numbers, name), rows, tuple(notes))
    y, more = _classes(column[rows], numbers, name)
    return Target(name, learned, y, rows, (*notes, *more))


def _numbers(present: np.ndarray) -> np.ndarray | None:
    """The values as floats where all of them are numbers, and not yes or no; None elsewhere."""
    if present.dtype.kind in "iuf":
        return present.astype(np.float64)
    if present.dtype.kind == "b" or any(isinstance(value, bool | str) for value in present.tolist()):
        return None
    try:
        return present.astype(np.float64)
    except (TypeError, ValueError):
        return None


def _counted(present: np.ndarray, is_asked: bool) -> np.ndarray | None:
    """Whole numbers that leading zeros made texts: if one asks for them, or they are too many for classes."""
    cells = present.tolist()
    if not all(isinstance(cell, str) and cell.isascii() and cell.isdecimal() for cell in cells):
        return None
    return present.astype(np.float64) if is_asked or len(set(cells)) > max(len(cells) / 2, 2) else None


def _guess(numbers: np.ndarray | None, n: int) -> tuple[Goal, str]:
    """The task, and why where one may think otherwise."""
    if numbers is None:
        return Goal.CLASSIFICATION, ""
    different = len(np.unique(numbers))
    if different <= 2:
        return Goal.CLASSIFICATION, "" if different == 1 else "holds two different numbers"
    is_whole = bool((numbers == np.floor(numbers)).all())
    if is_whole and different <= min(_CLASSES, n / 5):
        return Goal.CLASSIFICATION, f"holds {different} different whole numbers"
    return Goal.REGRESSION, ""


def _real(present: np.ndarray, numbers: np.ndarray | None, name: str) -> np.ndarray:
    if numbers is None:
        example = present[0]
        raise InputError(
            f"the target {name!r} holds {example!r}, which is no number: choose a column of numbers, or "
            "take it for classes ('mercer train --task classification')"
        )
    if numbers.min() == numbers.max():
        raise InputError(f"the target {name!r} is {numbers[0]:g} in every row: there is nothing to learn")
    if not 1 / LARGEST_TO_SQUARE < np.ptp(numbers / 2) < LARGEST_TO_SQUARE:
        raise InputError(
            f"the target {name!r} is from {numbers.min():.3g} to {numbers.max():.3g}, too wide or too "
            "narrow a range for errors to be squared: write it in another unit"
        )
    return numbers


def _classes(present: np.ndarray, numbers: np.ndarray | None, name: str) -> tuple[np.ndarray, list[str]]:
    labels: Any
    if numbers is not None and (numbers == np.floor(numbers)).all() and np.abs(numbers).max() < 2**53:
        labels = numbers.astype(np.int64)
    else:
        labels = np.array([as_label(value) for value in present.tolist()])
    counts = Counter(labels.tolist())
    n = len(labels)
    if len(counts) == 1:
        only, every = next(iter(counts)), f"all {n:,} rows" if n > 1 else "its only row"
        raise InputError(
            f"the target {name!r} has one class, {only!r}, in {every}: there is nothing to tell apart"
        )
    if len(counts) > max(n / 2, 2):
        advice = "choose a column of classes"
        if numbers is not None:
            advice += ", or take it for numbers ('mercer train --task regression')"
        raise InputError(
            f"the target {name!r} has {len(counts):,} different values in {n:,} rows, too many for classes: "
            f"{advice}"
        )
    single = [label for label, times in counts.items() if times == 1]
    notes = []
    if len(counts) - len(single) < 2:
        raise InputError(
            f"the target {name!r} has {len(counts)} classes, of which {len(single)} have a single row "
            f"({single[0]!r}): add rows of at least two classes"
        )
    if single:
        notes.append(
            f"{len(single)} of the {len(counts)} classes of {name!r} have a single row ({single[0]!r}): "
            "nothing can be learned about them"
        )
    return labels, notes
