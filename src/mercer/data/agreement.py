"""What two tables, or a kernel and a table, ask of each other."""

from __future__ import annotations

import numpy as np

from mercer.data.points import Vectors, is_frame, position, stored
from mercer.errors import InputError


def require_nonnegative(X: Vectors, name: str, kernel_name: str) -> None:
    """Refuse negative values, for kernels on ℝ₊.

    >>> require_nonnegative(np.array([[1.0, -2.0]]), "X", "HistogramIntersection")
    Traceback (most recent call last):
    mercer.errors.InputError: Negative values in data: HistogramIntersection compares histograms, got X[0, 1]
    = -2.0 as the smallest value; pass counts or other values that are zero or more
    """
    values = stored(X)
    if values.size == 0:
        return
    index = int(np.argmin(values))
    smallest = float(values.flat[index])
    if smallest < 0:
        row, column = position(X, index)
        raise InputError(
            f"Negative values in data: {kernel_name} compares histograms, got {name}[{row}, {column}] = "
            f"{smallest} as the smallest value; pass counts or other values that are zero or more"
        )


def require_same_width(X: Vectors, Y: Vectors, name_x: str = "X", name_y: str = "Y") -> None:
    """Refuse two tables whose rows cannot be compared.

    >>> require_same_width(np.ones((2, 3)), np.ones((2, 4)))
    Traceback (most recent call last):
    mercer.errors.InputError: X and Y must have the same number of columns, got 3 and 4: pass points described
    by the same columns
    """
    if X.shape[1] != Y.shape[1]:
        raise InputError(
            f"{name_x} and {name_y} must have the same number of columns, got {X.shape[1]} and {Y.shape[1]}: "
            "pass points described by the same columns"
        )


def require_same_names(X: object, Y: object) -> None:
    """Refuse two data frames whose columns are not the same, in the same order."""
    if is_frame(X) and is_frame(Y) and list(X.columns) != list(Y.columns):
        raise InputError(
            f"X and Y must have the same columns in the same order, got {list(X.columns)} and "
            f"{list(Y.columns)}: pass Y[X.columns]"
        )
