r"""A kernel for readers: numbers of four digits, and of a parameter with a value per column its range.

>>> import numpy as np
>>> from mercer import Gaussian, Linear
>>> k = 0.25 * Gaussian(sigma=np.linspace(0.5, 20.0, 30)) + Linear()
>>> k
0.25 * Gaussian(sigma=<30 array>) + Linear()
>>> in_words(k)
'0.25 * Gaussian(sigma=<0.5 to 20, one of each of 30 columns>) + Linear()'
>>> tells_apart(k, [f"x{j + 1}" for j in range(30)])
'x1 (sigma 0.5), x2 (1.172), x3 (1.845)'
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mercer.kernels.base import Kernel, text
from mercer.kernels.columns import ColumnKernel
from mercer.kernels.parameters import is_vector

__all__ = ["in_words", "scales", "tells_apart"]

_LISTED = 3  # columns that are named
_LONG_NUMBER = re.compile(r"(?<![\w.])\d+\.\d{4,}(e[+-]?\d+)?(?![\w.])")


def in_words(kernel: Kernel, names: Sequence[str] | None = None) -> str:
    """The kernel as ``repr`` prints it, but short; ``names`` of the columns of its table, where it has some.

    >>> from mercer import BagOfWords, ColumnKernel, Gaussian
    >>> k = ColumnKernel({(0, 1, 2): Gaussian(sigma=1 / 3), 3: BagOfWords(n=2)}, weights={3: 4.0})
    >>> in_words(k, ["a", "b", "c", "title"])
    "Gaussian(sigma=0.3333).on(3 columns) + 4 * BagOfWords(n=2).on('title')"
    """
    if isinstance(kernel, ColumnKernel) and isinstance(kernel.columns, dict):
        sign = " + " if kernel.combine == "sum" else " * "
        weights = kernel.weights or {}
        parts = kernel.columns.items()
        return sign.join(_factor(weights.get(key)) + _part(key, part, names) for key, part in parts)
    shown = repr(kernel)
    for part in kernel.parts():
        if part.domain == "objects" and not part.children():
            shown = shown.replace(repr(part), _without_defaults(part), 1)
    for name, value, _ in _per_column(kernel):
        low, high = f"{np.min(value):.4g}", f"{np.max(value):.4g}"
        which = f"{low} of each" if low == high else f"{low} to {high}, one of each"
        words = f"{name}=<{which} of {len(value)} columns>"
        shown = shown.replace(f"{name}={text(value)}", words, 1)
    return _LONG_NUMBER.sub(lambda found: f"{float(found[0]):.4g}", shown)


def _without_defaults(kernel: Kernel) -> str:
    given = {
        name: value
        for name, value in kernel.get_params(deep=False).items()
        if name not in kernel._parameters or text(value) != text(kernel._parameters[name].default)
    }
    return f"{type(kernel).__name__}({', '.join(f'{name}={text(value)}' for name, value in given.items())})"


def _factor(weight: float | None) -> str:
    return "" if weight is None or weight == 1 else f"{weight:.4g} * "


def _part(key: Any, kernel: Kernel, names: Sequence[str] | None) -> str:
    columns = list(key) if isinstance(key, tuple) else [key]
    called = [names[j] if names is not None and isinstance(j, int) and j < len(names) else j for j in columns]
    which = f"{len(called)} columns" if len(called) > 2 else ", ".join(map(repr, called))
    return f"{in_words(kernel)}.on({which})"


def scales(kernel: Kernel, columns: int) -> dict[str, np.ndarray]:
    """By the name of the parameter, its values for each column; empty where one value is for all.

    >>> from mercer import Gaussian
    >>> scales(Gaussian(sigma=[2.0, 4.0]), 2), scales(Gaussian(sigma=2.0), 2)
    ({'sigma': array([2., 4.])}, {})
    """
    every = ((name, np.asarray(value, dtype=np.float64)) for name, value, _ in _per_column(kernel))
    return {name: values for name, values in every if len(values) == columns}


def tells_apart(kernel: Kernel, names: Sequence[str], most: int = _LISTED) -> str:
    """The columns that the kernel stretches most, with the values; of the first part that has such values.

    Columns of one spread, as those of `mercer.tables.TableFeatures`, matter in this order. Empty where the
    kernel treats all columns alike.
    """
    for name, value, power in _per_column(kernel):
        if 1 < len(value) <= len(names):
            values = np.asarray(value, dtype=np.float64)
            order = np.argsort(-(values**power), kind="stable")[:most]
            said = [name + " ", *[""] * len(order)]
            return ", ".join(f"{names[j]} ({said[i]}{values[j]:.4g})" for i, j in enumerate(order))
    return ""


def _per_column(kernel: Kernel) -> Iterator[tuple[str, Any, float]]:
    """Name, the value for each column, and p such that a column is multiplied by value**p."""
    for part in kernel.parts():
        for name, parameter in part._parameters.items():
            value: Any = vars(part).get(name)
            if parameter.per_column is not None and is_vector(value):
                yield name, value, parameter.per_column
