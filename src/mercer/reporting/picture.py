r"""A display as a figure of the page; where it cannot be drawn, a sentence that says why."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from mercer.plots import style
from mercer.reporting.page import Html, figure, note

__all__ = ["Pictures", "reason"]


def reason(error: Exception) -> str:
    """Why something could not be made, on one line.

    >>> reason(ValueError("no   columns")), reason(KeyError("a"))
    ('no columns', "KeyError: 'a'")
    """
    text = " ".join(str(error).split()) or type(error).__name__
    told = isinstance(error, ValueError | ImportError | TypeError)
    return (text if told else f"{type(error).__name__}: {text}")[:400]


class Pictures:
    """Draws the pictures of one page, whose ids are apart."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def draw(
        self, make: Callable[[Any], Any], what: str, caption: str, width: float = 4.0, height: float = 3.1
    ) -> Html:
        """The display that ``make(ax)`` returns; ``what`` names it where it fails."""
        try:
            with style.report_style():
                canvas, ax = style.new_figure(width, height)
                display = make(ax)
                svg = style.as_svg(canvas, f"p{next(self._numbers)}")
            return figure(Html(svg), display.describe(), caption)
        except Exception as error:  # one picture less, not one report less
            return note(f"{what}: not shown, because {reason(error)}")
