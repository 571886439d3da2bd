r"""What the points are that a kernel takes.

>>> Domain("objects") is Domain.OBJECTS, Domain.OBJECTS == "objects", Domain.NONNEGATIVE.is_vectors
(True, True, True)
"""

from __future__ import annotations

from enum import StrEnum, auto
from functools import cached_property
from typing import Never

from mercer.errors import InputError


class Domain(StrEnum):
    """A kind of points, from the narrowest on; each is equal to its word."""

    #: vectors without negative numbers
    NONNEGATIVE = auto()
    VECTORS = auto()
    OBJECTS = auto()
    #: whatever the kernel itself makes of it
    ANY = auto()

    @classmethod
    def _missing_(cls, value: object) -> Never:
        raise InputError(f"a domain is one of {', '.join(map(repr, map(str, cls)))}, got {value!r}: name one")

    @cached_property
    def is_vectors(self) -> bool:
        """Whether points are rows of numbers."""
        return self in (Domain.VECTORS, Domain.NONNEGATIVE)
