"""Targets as they come: a label or a number for every point, and labels of one type."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.data.types import Targets
from mercer.errors import InputTypeError


def require_labels(y: Targets) -> None:
    """Refuse labels that are missing, or of which some are texts and some numbers: NumPy would make texts.

    >>> require_labels(["a", 1])
    Traceback (most recent call last):
    mercer.errors.InputTypeError: y must hold labels of one type, got str ('a') and int (1): pass ...
    >>> require_labels([1, None])
    Traceback (most recent call last):
    mercer.errors.InputTypeError: y must hold a label for every point, got None for point 1: leave such ...
    """
    _require_all(y, "label")
    first: dict[bool, Any] = {}
    for label in _one_by_one(y):
        if isinstance(label, str | int | float | np.number | np.bool_):
            first.setdefault(isinstance(label, str), label)
    if len(first) == 2:
        text, number = first[True], first[False]
        raise InputTypeError(
            f"y must hold labels of one type, got str ({text!r}) and {type(number).__name__} "
            f"({number!r}): pass texts for all, [str(label) for label in y], or numbers for all"
        )


def require_targets(y: Targets) -> None:
    """Refuse targets of a regression that are missing, or that are dates, which would become numbers.

    >>> require_targets(np.array(["2026-01-01"], dtype="datetime64[D]"))
    Traceback (most recent call last):
    mercer.errors.InputTypeError: y must hold numbers, got datetime64[D]: say in which unit, ...
    """
    _require_all(y, "value")
    dtype = getattr(y, "dtype", None)
    if getattr(dtype, "kind", "") in ("m", "M"):
        raise InputTypeError(
            f"y must hold numbers, got {dtype}: say in which unit, (y - y.min()) / np.timedelta64(1, 'D')"
        )


def _require_all(y: Targets, what: str) -> None:
    if isinstance(y, np.ma.MaskedArray):
        raise InputTypeError(
            f"y must not be a masked array, got {np.ma.count_masked(y)} of {y.size} masked: leave out the "
            f"points without a {what}"
        )
    place, name = _missing(y)
    if place is not None:
        raise InputTypeError(
            f"y must hold a {what} for every point, got {name} for point {place}: leave such points out, or "
            f"give them a {what}"
        )


def _one_by_one(y: Targets) -> Any:
    """The entries, where they may be of several types; none where an array has one for all."""
    may_differ = isinstance(y, list | tuple) or getattr(getattr(y, "dtype", None), "kind", "") == "O"
    return (y.tolist() if hasattr(y, "tolist") else y) if may_differ else ()


def _missing(y: Targets) -> tuple[int | None, str]:
    """The first point without a target, and what is there instead; (None, "") where there is none."""
    kind = getattr(getattr(y, "dtype", None), "kind", "")
    if isinstance(y, np.ndarray) and kind in "fmM":
        marks = np.isnan(y) if kind == "f" else np.isnat(y)
        name = "NaN" if kind == "f" else "NaT"
    elif hasattr(y, "isna"):  # This is a Series or an array of pandas.
        marks, name = np.asarray(y.isna()), "NA"
    else:
        names = [_name_of_missing(entry) for entry in _one_by_one(y)]
        place = next((i for i, found in enumerate(names) if found), None)
        return (None, "") if place is None else (place, names[place])
    rows = marks.reshape(len(marks), -1).any(axis=1) if marks.size else marks
    return (int(rows.argmax()), name) if rows.any() else (None, "")


def _name_of_missing(entry: object) -> str:
    """What a missing entry is called, or nothing."""
    if entry is None:
        return "None"
    kind = type(entry).__name__
    if kind in ("NAType", "NaTType"):
        return {"NAType": "NA", "NaTType": "NaT"}[kind]
    return "NaN" if isinstance(entry, float) and entry != entry else ""
