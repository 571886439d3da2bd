"""What a page asks: points, numbers and words of a request, each checked, each refusal a sentence.

>>> asked = Asked({"points": [[0, 1, 1], [2, 0.5, -1]], "C": 10})
>>> asked.number("C", 1.0, 1e-6, 1e6), asked.number("lam", 0.1, 0.0, 1.0)
(10.0, 0.1)
>>> asked.points(3)
array([[ 0. ,  1. ,  1. ],
       [ 2. ,  0.5, -1. ]])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mercer.data.scalars import is_number
from mercer.errors import InputError, shown

#: What a request may hold: so many points fill the plane of the page, and a text is a line or two.
MOST_POINTS, _LONGEST_TEXT = 2000, 4000
_LARGEST_NUMBER = 1e9  # A coordinate beyond it is no place on a screen.


class Asked:
    """A request, read with care."""

    def __init__(self, request: Any) -> None:
        if not isinstance(request, Mapping):
            raise InputError(f"a request is an object with names, got {shown(request)}")
        self._values = request

    def points(self, width: int, least: int = 1) -> np.ndarray:  # (n, width)
        """The rows of ``points``."""
        rows = self._values.get("points")
        if not isinstance(rows, list) or len(rows) > MOST_POINTS:
            got = f"{len(rows):,}" if isinstance(rows, list) else shown(rows)
            raise InputError(f"the lab takes at most {MOST_POINTS:,} points, got {got}: take fewer of them")
        if len(rows) < least:
            raise InputError(
                f"at least {least} point{'s' * (least > 1)} are needed here, and there are {len(rows)}: "
                "click into the picture to add some"
            )
        for number, row in enumerate(rows):
            is_row = isinstance(row, list) and len(row) == width
            if not is_row or not all(type(v) in (int, float) and abs(v) <= _LARGEST_NUMBER for v in row):
                raise InputError(
                    f"point {number + 1} must be {width} numbers of at most {_LARGEST_NUMBER:g}, "
                    f"got {shown(row)}"
                )
        return np.array(rows, dtype=float).reshape(len(rows), width)

    def number(self, name: str, default: float, low: float, high: float) -> float:
        """A number between two others."""
        value = self._values.get(name, default)
        if not is_number(value) or not low <= value <= high:
            raise InputError(f"{name} must be a number from {low:g} to {high:g}, got {shown(value)}")
        return float(value)

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        """A whole number between two others."""
        value = self.number(name, default, low, high)
        if value != int(value):
            raise InputError(f"{name} must be a whole number, got {value:g}")
        return int(value)

    def word(self, name: str, words: Sequence[str]) -> str:
        """One of several words, the first where none is given."""
        value = self._values.get(name, words[0])
        if value not in words:
            raise InputError(f"{name} must be one of {', '.join(words)}, got {shown(value)}")
        return str(value)

    def flag(self, name: str, default: bool) -> bool:
        """Yes or no."""
        value = self._values.get(name, default)
        if not isinstance(value, bool):
            raise InputError(f"{name} must be true or false, got {shown(value)}")
        return value

    def text(self, name: str, longest: int = _LONGEST_TEXT) -> str:
        """A text that is not empty."""
        value = self._values.get(name)
        if not isinstance(value, str) or len(value) > longest:
            got = f"{len(value):,} characters" if isinstance(value, str) else shown(value)
            raise InputError(f"{name} must be a text of at most {longest:,} characters, got {got}")
        return value

    def numbers(self, name: str) -> dict[str, float]:
        """Numbers by their names."""
        values = self._values.get(name, {})
        if not isinstance(values, Mapping) or not all(map(is_number, values.values())):
            raise InputError(f"{name} must be numbers by their names, got {shown(values)}")
        return {str(key): value for key, value in values.items()}

    def box(self) -> tuple[float, float, float, float]:
        """The part of the plane that is seen: left, right, bottom, top."""
        box = self._values.get("box", [-3.0, 3.0, -3.0, 3.0])
        is_box = isinstance(box, list) and len(box) == 4 and all(map(is_number, box))
        if (
            not is_box
            or not (box[0] < box[1] and box[2] < box[3])
            or max(map(abs, box)) > 2 * _LARGEST_NUMBER
        ):
            raise InputError(f"box must be left < right and bottom < top, got {shown(box)}")
        left, right, bottom, top = map(float, box)
        return left, right, bottom, top
