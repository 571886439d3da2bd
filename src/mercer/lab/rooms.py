"""The rooms by their names, and the one door to them.

>>> answer("atlantis", {})
Traceback (most recent call last):
mercer.errors.InputError: there is no room 'atlantis': there are classify, classify_left_out, curve, ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mercer.errors import InputError, shown
from mercer.lab import classify, curve
from mercer.lab.asked import Asked
from mercer.lab.examples import example
from mercer.lab.features import feature_space
from mercer.lab.question import certify_typed
from mercer.lab.spectrum import spectrum
from mercer.lab.steps import steps
from mercer.lab.table import read_table

ROOMS: dict[str, Callable[[Asked], dict[str, Any]]] = {
    "classify": classify.classify,
    "classify_left_out": classify.left_out,
    "curve": curve.curve,
    "curve_left_out": curve.left_out,
    "certify": certify_typed,
    "perceptron": steps,
    "features": feature_space,
    "spectrum": spectrum,
    "table": read_table,
    "example": example,
}


def answer(room: str, request: Any) -> dict[str, Any]:
    """What a room says to a request, in plain values."""
    if room not in ROOMS:
        raise InputError(f"there is no room {shown(room, 40)}: there are {', '.join(ROOMS)}")
    return ROOMS[room](Asked(request))
