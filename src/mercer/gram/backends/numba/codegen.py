"""Printed code in real files, so that Numba can keep what it compiled."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from types import ModuleType

from mercer.runtime import generated

_CALLED = ("../../../runtime/native.py", "../coefficients.py", "bessel.py", "elementary.py", "pointers.py")


@cache
def _salt() -> str:
    """What compiled code depends on besides its own text: Numba does not look at what it calls."""
    import numba

    here = Path(__file__).parent
    text = [
        numba.__version__,
        *((here / name).read_text("utf-8") for name in _CALLED),
    ]
    return hashlib.sha256("".join(text).encode()).hexdigest()


def load(source: str, in_memory: str) -> ModuleType:
    """The module with the given source; ``in_memory`` is the variant for when it has no file."""
    return generated.load(source, _salt(), in_memory)
