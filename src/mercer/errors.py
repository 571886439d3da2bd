"""What mercer raises and warns with, and the door for optional libraries.

Every refusal of input is a ``ValueError`` and, where the type is at fault, a ``TypeError`` too, so
that the except clauses written for scikit-learn keep working.

>>> try:
...     raise InputError("sigma must be positive, got -0.5: pass a positive number")
... except ValueError as error:
...     print(error)
sigma must be positive, got -0.5: pass a positive number
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any


class InputError(ValueError):
    """A value that cannot be used: the text says what is wrong, what was given, and what to do."""


class InputTypeError(InputError, TypeError):
    """A value of a type that cannot be used (None, text, a dict where numbers belong)."""


class IndefiniteError(InputError):
    """A kernel that is not positive definite on the points, where that is needed."""


class MemoryBudgetError(MemoryError):
    """A result that does not fit ``mercer.config(memory=…)``: refused before anything is allocated."""


class ClusterError(RuntimeError):
    """A cluster that cannot go on: which block failed and why, or what is gone, and what to do."""


class SlowPathWarning(UserWarning):
    """The answer is right but a much faster way to it exists, named in the text."""


def shown(value: Any, longest: int = 200) -> str:
    """A value as an error tells of it: never longer than a line or two, whatever it is.

    >>> shown(-0.5), shown([0.0] * 9, longest=20), shown(10**5000)
    ('-0.5', '[0.0, 0.0, 0.0, 0…', 'an integer of 16610 bits')
    >>> import numpy as np
    >>> shown(np.ones((300, 300)))
    'an array of shape (300, 300)'
    """
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and len(shape) != 1 and max(shape, default=0) > 1:
        return f"an array of shape {shape}"
    try:
        text = repr(value)
    except ValueError:  # Python refuses to print integers of thousands of digits
        bits = value.bit_length() if isinstance(value, int) else 0
        text = f"an integer of {bits} bits" if bits else f"a {type(value).__name__}"
    return text if len(text) <= longest else f"{text[: longest - 3]}…"


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line outside mercer that led here, whatever lies between."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "mercer":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level + 1)


def require(module: str, extra: str) -> ModuleType:
    """Import an optional library, or say which line installs it.

    An installed library that fails to import keeps its own error: installing it again would not help.

    >>> require("math", extra="never-needed").sqrt(4.0)
    2.0
    >>> require("a_library_nobody_has", extra="torch")
    Traceback (most recent call last):
    ImportError: a_library_nobody_has is not installed: run  pip install "mercer[torch]"
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        name = error.name
    raise _missing(name, extra)


def require_installed(module: str, extra: str) -> None:
    """Refuse to go on without a library that is needed later; nothing is imported.

    >>> require_installed("a_library_nobody_has", extra="models")
    Traceback (most recent call last):
    ImportError: a_library_nobody_has is not installed: run  pip install "mercer[models]"
    """
    if module not in sys.modules and importlib.util.find_spec(module) is None:
        raise _missing(module, extra)


def _missing(name: str, extra: str) -> ImportError:
    return ImportError(f'{name} is not installed: run  pip install "mercer[{extra}]"', name=name)


def quietly(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns, without the warnings of a step whose advice the caller cannot follow."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments)
