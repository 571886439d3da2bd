"""Numbers as they come for parameters: of any of the types that hold them, finite, and not too large."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["is_number"]


def is_number(value: object) -> bool:
    """Whether it is a finite real number, which a float can hold; True and False are none.

    >>> is_number(2), is_number(np.float32(0.5)), is_number(True)
    (True, True, False)
    >>> is_number(float("nan")), is_number(10**400), is_number("2")
    (False, False, False)
    """
    if not isinstance(value, int | float | np.integer | np.floating) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False
