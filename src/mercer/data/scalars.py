"""Numbers as they come for parameters: of any of the types that hold them, finite, and not too large."""

from __future__ import annotations

import math

import numpy as np


def is_scalar(value: object) -> bool:
    """Whether it is a real number of Python or NumPy; True and False are none."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Whether it is a finite real number, which a float can hold; True and False are none.

    >>> is_number(2), is_number(np.float32(0.5)), is_number(True)
    (True, True, False)
    >>> is_number(float("nan")), is_number(10**400), is_number("2")
    (False, False, False)
    """
    try:
        return is_scalar(value) and math.isfinite(float(value))  # type: ignore[arg-type]
    except OverflowError:
        return False
