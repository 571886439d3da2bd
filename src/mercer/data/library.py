"""Which library an object is from, found without importing any."""

from __future__ import annotations

from typing import TypeGuard

from mercer.data.types import Frame


def library_of(X: object) -> str | None:
    """The name of pandas, polars, torch or networkx, if X is an object of one of them."""
    for ancestor in type(X).__mro__:
        library = ancestor.__module__.partition(".")[0]
        if library in ("pandas", "polars", "torch", "networkx"):
            return library
    return None


def is_frame(X: object) -> TypeGuard[Frame]:
    """Whether it is a data frame of pandas or polars."""
    return library_of(X) in ("pandas", "polars") and len(getattr(X, "shape", ())) == 2


def is_lazy(X: object) -> bool:
    """Whether it is a query of polars, which has no rows yet."""
    return library_of(X) == "polars" and hasattr(X, "collect")
