"""Declared parameters of a kernel: a default, what is allowed, and the sentence when it is not.

    class Gaussian(Kernel):
        sigma: float = positive(1.0)

A declaration checks a value and never converts it, so that scikit-learn's ``clone`` finds the
very object it passed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.data.scalars import is_number
from mercer.errors import InputError, shown
from mercer.kernels.formula.expression import is_whole

#: the largest whole number that compiled code, which counts in int64, takes
_LARGEST_WHOLE = 2**62


@dataclass(frozen=True)
class Parameter:
    """One declared parameter.

    ``symbolic`` ones reach the printed code as arguments (a new value recompiles nothing);
    the others shape the formula itself. ``words`` are strings that stand for a value taken from
    the data at fit time. ``per_column`` = p says that a vector θ is allowed (ARD) and stands for
    columns multiplied by θ^p: p = -1 for a length scale.
    """

    default: Any
    requirement: str
    accepts: Callable[[Any], bool]
    remedy: str
    symbolic: bool = True
    words: tuple[str, ...] = ()
    per_column: float | None = None
    optional: bool = False

    def check(self, name: str, value: object) -> None:
        if (value is None and self.optional) or (isinstance(value, str) and value in self.words):
            return
        if self.per_column is not None and is_vector(value):
            entries = np.asarray(value)
            # There may be many entries and few values.
            different = np.unique(entries) if entries.dtype.kind in "iuf" else entries
            if entries.ndim == 1 and entries.size and all(self.accepts(entry) for entry in different):
                return
        elif self.accepts(value):
            return
        size = (
            f", of at most {_LARGEST_WHOLE:.2g}"
            if isinstance(value, int) and abs(value) > _LARGEST_WHOLE
            else ""
        )
        words = "".join(f", or {word!r} to take it from the data" for word in self.words)
        raise InputError(
            f"{name} must be {self.requirement}{size}, got {shown(value)}: pass {self.remedy}{words}"
        )

    def is_continuous(self, value: Any) -> bool:
        """Whether it reaches the formula as a number that may change a little: a degree may not."""
        is_number = isinstance(value, int | float | np.integer | np.floating)
        return self.symbolic and (not is_number or self.accepts(float(value) * (1 + 1e-9)))


def is_vector(value: object) -> bool:
    """Whether a parameter's value is one number per column."""
    return isinstance(value, list | tuple | np.ndarray) and np.ndim(value) > 0


def positive(default: Any = 1.0, **options: Any) -> Any:
    """A number > 0."""
    return Parameter(default, "positive", lambda v: is_number(v) and v > 0, "a positive number", **options)


def nonnegative(default: Any = 0.0, **options: Any) -> Any:
    """A number ≥ 0."""
    return Parameter(
        default, "non-negative", lambda v: is_number(v) and v >= 0, "a number that is zero or more", **options
    )


def real(default: Any = 0.0, **options: Any) -> Any:
    """Any finite number."""
    return Parameter(default, "a finite number", is_number, "a real number", **options)


def whole(default: Any, minimum: int = 1, maximum: int | None = None, **options: Any) -> Any:
    """A whole number ≥ minimum, and ≤ maximum where more would only take time, or all of it."""
    largest = _LARGEST_WHOLE if maximum is None else maximum
    return Parameter(
        default,
        f"a whole number of at least {minimum}" + (f" and at most {maximum}" if maximum is not None else ""),
        lambda v: is_number(v) and is_whole(v) and minimum <= v <= largest,
        f"{minimum}, {minimum + 1}, {minimum + 2}, …",
        **options,
    )


def choice(default: Any, options: Sequence[Any], **more: Any) -> Any:
    """One of a few values; it shapes the formula."""
    allowed = ", ".join(map(repr, options))
    return Parameter(
        default,
        f"one of {allowed}",
        lambda v: any(type(v) is type(o) and v == o for o in options),
        "one of them",
        symbolic=False,
        **more,
    )


def fixed(
    default: Any,
    requirement: str = "given",
    accepts: Callable[[Any], bool] = lambda v: True,
    remedy: str = "another",
    **options: Any,
) -> Any:
    """An object that shapes the formula: a kernel, a function, a map, a matrix."""
    return Parameter(default, requirement, accepts, remedy, symbolic=False, **options)


# --- values ------------------------------------------------------------------------------------------


def text(value: object) -> str:
    """A parameter's value as one would write it."""
    if isinstance(value, np.ndarray) and value.size > 8:
        return f"<{' × '.join(map(str, value.shape))} array>"
    if isinstance(value, np.ndarray):
        return repr(value.tolist())
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, tuple) and any(callable(part) for part in value):
        return f"({', '.join(map(text, value))}{',' * (len(value) == 1)})"
    return getattr(value, "__name__", None) or repr(value)


def same(a: Any, b: Any) -> bool:
    """Whether two values of a parameter are equal."""
    if a is b:
        return True
    if isinstance(a, list | tuple | np.ndarray) or isinstance(b, list | tuple | np.ndarray):
        return np.shape(a) == np.shape(b) and bool(np.all(np.asarray(a) == np.asarray(b)))
    return bool(np.all(a == b))


def fingerprint(value: object) -> Any:
    """A number or a word that is equal for equal values of a parameter."""
    if isinstance(value, list | tuple | np.ndarray):
        return np.shape(value)
    try:
        return hash(value)
    except TypeError:
        return type(value).__name__
