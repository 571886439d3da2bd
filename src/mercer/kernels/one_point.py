"""A single point where a list of points may stand: ``k([1, 1], [-1, 1])`` as one writes it on paper.

What is a single point depends on what the kernel compares.

- Vectors: a number, or a flat list of numbers. A table has two dimensions, so the two cannot be confused.
- Objects: whatever is not a list of objects: a text, a dict, a set, a graph. A list, a tuple or an array is
  always a list of objects, also where an object could be a list: ``k([x], [y])`` compares two lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, ValuesView
from typing import Any

import numpy as np

from mercer.data.types import Points
from mercer.errors import InputError
from mercer.kernels.domain import Domain


def as_list(domain: str, X: Points, width: int | None = None) -> tuple[Any, bool]:
    """The points as a list of them, and whether X was a single one.

    ``width`` is the number of columns of the points on the other side; a flat list of another length is
    left as it is, and refused as a table that is not one. `as_lists` looks at two flat lists.

    >>> as_list("vectors", [1, 2])
    (array([[1, 2]]), True)
    >>> as_list("objects", "text"), as_list("objects", ["text"])
    ((['text'], True), (['text'], False))
    """
    if Domain(domain).is_vectors:
        row = _as_row(X)
        if row is None or width not in (None, row.shape[1]):
            return X, False
        return row, True
    return ([X], True) if is_one_object(X) else (X, False)


def as_lists(domain: str, X: Points, Y: Points) -> tuple[Any, Any, bool, bool]:
    """Both sides as lists of points, and whether each was a single one.

    >>> as_lists("vectors", [1, 2], [[3, 4], [5, 6]])
    (array([[1, 2]]), [[3, 4], [5, 6]], True, False)
    >>> as_lists("vectors", [1, 2], [1, 2, 3])
    Traceback (most recent call last):
    mercer.errors.InputError: the two points have 2 and 3 numbers: pass points with as many numbers each
    """
    if Domain(domain).is_vectors:
        x, y = _as_row(X), _as_row(Y)
        if x is not None and y is not None:
            if x.shape != y.shape:
                raise InputError(
                    f"the two points have {x.shape[1]} and {y.shape[1]} numbers: "
                    "pass points with as many numbers each"
                )
            return x, y, True, True
    X, is_one_x = as_list(domain, X, width_of(domain, Y))
    Y, is_one_y = as_list(domain, Y, width_of(domain, X))
    return X, Y, is_one_x, is_one_y


def width_of(domain: str, X: Any) -> int | None:
    """The number of columns of one vector or of a table; None where that is not known."""
    if not Domain(domain).is_vectors:
        return None
    row = _as_row(X)
    if row is not None:
        return int(row.shape[1])
    if getattr(X, "ndim", None) == 2 or hasattr(X, "columns"):
        return int(X.shape[1])
    is_table = isinstance(X, list | tuple) and len(X) > 0 and np.ndim(X[0]) == 1
    return len(X[0]) if is_table else None


def _as_row(X: Any) -> Any:  # (1, d), or None where X is no single vector
    """A number or a flat list of numbers as a table of one row."""
    if isinstance(X, int | float) and not isinstance(X, bool):
        return np.array([[X]])
    if isinstance(X, list | tuple):
        is_flat = len(X) > 0 and all(isinstance(x, int | float | np.number) for x in X)
        return np.array([X]) if is_flat else None
    if getattr(X, "ndim", None) not in (0, 1) or np.size(X) == 0:
        return None
    if not hasattr(X, "reshape"):  # This is a row of a data frame.
        X = X.to_numpy()
    return X.reshape(1, -1)


def is_one_object(X: object) -> bool:
    """Whether X is one object and no list of them.

    >>> is_one_object({"to": 2, "be": 1}), is_one_object(("to", "be"))
    (True, False)
    """
    if isinstance(X, str | bytes | bytearray | np.generic):
        return True
    is_list = hasattr(X, "shape") or isinstance(X, Sequence | Iterator | ValuesView)
    return X is not None and not is_list
