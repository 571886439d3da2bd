r"""A display as a figure of the page; where it cannot be drawn, a sentence that says why."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np

from mercer.plots import style
from mercer.reporting.page import Html, figure, note
from mercer.runtime.clock import now

_FIRST = 0.8  # seconds of the first picture, about: it loads matplotlib


def reason(error: Exception) -> str:
    """Why something could not be made, on one line.

    >>> reason(ValueError("no   columns")), reason(KeyError("a"))
    ('no columns', "KeyError: 'a'")
    """
    text = " ".join(str(error).split()) or type(error).__name__
    told = isinstance(error, ValueError | ImportError | TypeError)
    return (text if told else f"{type(error).__name__}: {text}")[:400]


def no_time(what: str) -> Html:
    """The sentence that stands where something was left out."""
    return note(f"{what}: left out, because the time for this report was over.")


class Pictures:
    """Draws the pictures of one page, whose ids are apart, until the time is over.

    Parameters
    ----------
    end : when that is, on the clock of `mercer.runtime.clock`

    Attributes
    ----------
    left_out : names of what there was no time for
    """

    def __init__(self, end: float = np.inf) -> None:
        self.end = end
        self.left_out: list[str] = []
        self._numbers = count(1)
        self._seconds = _FIRST

    def has_time_for(self, what: str, seconds: float) -> bool:
        """Whether so many seconds are left; if not, what they would be for is written down."""
        if now() + seconds <= self.end:
            return True
        self.left_out.append(what)
        return False

    def draw(
        self, make: Callable[[Any], Any], what: str, caption: str, width: float = 4.0, height: float = 3.1
    ) -> Html:
        """The display that ``make(ax)`` returns; ``what`` names it where it fails or where time is short."""
        if not self.has_time_for(what, self._seconds):
            return no_time(what)
        try:
            with style.report_style():
                canvas, ax = style.new_figure(width, height)
                display, began = make(ax), now()
                svg = style.as_svg(canvas, f"p{next(self._numbers)}")
                self._seconds = now() - began  # the next one takes about as long
            return figure(Html(svg), display.describe(), caption)
        except Exception as error:  # The report is written without the picture.
            return note(f"{what}: not shown, because {reason(error)}")
