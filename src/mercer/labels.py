"""Labels as they come: of one type, so that equal ones are equal and the others have an order."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.errors import InputTypeError

__all__ = ["require_labels"]


def require_labels(y: Any) -> None:
    """Refuse labels of which some are texts and some are numbers: NumPy would make texts of all.

    >>> require_labels(["a", 1])
    Traceback (most recent call last):
    mercer.errors.InputTypeError: y must hold labels of one type, got str ('a') and int (1): pass ...
    """
    may_differ = isinstance(y, list | tuple) or getattr(getattr(y, "dtype", None), "kind", "") == "O"
    labels = (y.tolist() if hasattr(y, "tolist") else y) if may_differ else ()
    if any(label is None for label in labels):
        raise InputTypeError(
            f"y must hold a label for every point, got None for point {list(labels).index(None)}: leave such "
            "points out, or give them a label"
        )
    first: dict[bool, Any] = {}
    for label in labels:
        if isinstance(label, str | int | float | np.number | np.bool_) and label == label:
            first.setdefault(isinstance(label, str), label)
    if len(first) == 2:
        text, number = first[True], first[False]
        raise InputTypeError(
            f"y must hold labels of one type, got str ({text!r}) and {type(number).__name__} "
            f"({number!r}): pass texts for all, [str(label) for label in y], or numbers for all"
        )
