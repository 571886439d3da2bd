"""Columns of a table by position, slice, mask or name: which ones are meant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from mercer.errors import InputError, InputTypeError


def find_columns(which: Any, m: int, labels: list[Any] | None, name: str) -> list[int]:
    """The positions of the columns that are meant, of m.

    >>> find_columns(["b", -1], 3, ["a", "b", "c"], "X")
    [1, 2]
    """
    if isinstance(which, slice):
        try:
            positions = list(range(m)[which])
        except TypeError:
            raise InputTypeError(
                f"a slice of columns of {name} takes positions, got {which}: pass a list of names instead"
            ) from None
    elif isinstance(which, Iterable) and not isinstance(which, str):
        items = list(which)
        if items and all(isinstance(item, bool | np.bool_) for item in items):
            if len(items) != m:
                raise InputError(
                    f"a mask of columns of {name} must have {m} entries, one per column, got {len(items)}: "
                    "pass one entry per column, or positions"
                )
            items = np.flatnonzero(items).tolist()
        positions = [position for item in items for position in _find(item, m, labels, name)]
    else:
        positions = _find(which, m, labels, name)
    if not positions:
        raise InputError(
            f"no column of {name} is chosen, got {which!r}: choose at least one of its {m} columns"
        )
    return positions


def _find(item: object, m: int, labels: list[Any] | None, name: str) -> list[int]:
    """Where one column is: a position, or a name (which data frames may repeat)."""
    if isinstance(item, int | np.integer) and not isinstance(item, bool):
        if not -m <= item < m:
            names = labels or []
            remedy = f"; a number is a position, pass {names.index(item)}" if item in names else ""
            raise InputError(f"{name} has no column {item}: it has {m} columns, 0 to {m - 1}{remedy}")
        return [int(item) % m]
    if labels is None:
        raise InputError(
            f"the columns of {name} have no names, got {item!r}: "
            f"pass positions, 0 to {m - 1}, or a data frame"
        )
    found = [j for j, label in enumerate(labels) if label == item]
    if not found:
        known = ", ".join(map(repr, labels[:20])) + (f", … ({m} in all)" if m > 20 else "")
        raise InputError(f"{name} has no column {item!r}: it has {known}")
    return found
