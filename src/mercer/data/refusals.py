"""What is said of points that are refused: what is wrong, what was given, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np

from mercer.errors import InputError, InputTypeError


def refuse_ragged(X: Iterable[Any], name: str) -> NoReturn:
    """Rows of different lengths."""
    lengths = sorted({np.size(row) for row in X})
    raise InputError(
        f"{name} must have rows of equal length, got lengths {', '.join(map(str, lengths[:5]))}: "
        "pad or drop the odd ones, or use a kernel on objects"
    ) from None


def refuse_masked(X: np.ma.MaskedArray[Any, Any], name: str) -> NoReturn:
    """Refuse a masked array."""
    raise InputTypeError(
        f"{name} must not be a masked array, got shape {X.shape} with {np.ma.count_masked(X)} masked: "
        f"pass {name}.filled(value), or drop the rows with masked values"
    )


def refuse_lazy(name: str) -> NoReturn:
    """A query of Polars that nobody has run."""
    raise InputTypeError(
        f"{name} is a LazyFrame of Polars, whose rows nobody has computed: pass {name}.collect(), or "
        f"write it to a file ({name}.sink_parquet) and pass the path"
    )


def refuse_dtype(dtype: np.dtype[Any], name: str) -> NoReturn:
    """Values that are no numbers."""
    raise InputTypeError(
        f"{name} must hold numbers, got {dtype}: turn text and dates into numbers first "
        f"(OneHotEncoder, {name}.astype(float)), or use a kernel on objects"
    )


def refuse_too_large(name: str = "X") -> NoReturn:
    """A whole number that no float can hold, where it is not known in which place."""
    raise InputError(
        f"{name} holds a whole number that is too large for a float: rescale the column, or take logarithms"
    ) from None


def refuse_complex(name: str, dtype: np.dtype[Any]) -> NoReturn:
    """Refuse complex numbers."""
    raise InputTypeError(
        f"Complex data not supported: {name} must hold real numbers, got {dtype}; "
        "pass the real and imaginary parts as columns of their own"
    )
