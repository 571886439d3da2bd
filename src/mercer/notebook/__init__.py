"""What notebooks show of kernels, Gram matrices, functions, certificates, plans and reports.

A class says by ``_shown_by`` which module has its ``html``, and perhaps its ``latex``; the module is loaded
when a notebook first asks. To look at something costs little and changes nothing: no code is compiled, no
function of the user's is called for pairs of points, what is large is looked at in places, and no warning is
given. Where something goes wrong, the notebook shows the ``repr``.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import ClassVar

__all__ = ["Shown"]


class Shown:
    """An object that notebooks show in a way of its own."""

    #: the module whose ``html`` takes the object
    _shown_by: ClassVar[str]

    def _repr_html_(self) -> str | None:
        return _made(self, "html")

    def _repr_latex_(self) -> str | None:
        return _made(self, "latex")


def _made(shown: Shown, form: str) -> str | None:
    """What the module makes of it; None, which means the ``repr``, where it has nothing to say or fails."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            maker = getattr(import_module(shown._shown_by), form, None)
            text: str | None = None if maker is None else maker(shown)
            return text
    except Exception:  # Nobody who looks at an object has asked for an error.
        return None
