r"""A kernel for readers: numbers of four digits, and of a parameter with a value per column its range.

>>> import numpy as np
>>> from mercer import Gaussian, Linear
>>> k = 0.25 * Gaussian(sigma=np.linspace(0.5, 20.0, 30)) + Linear()
>>> k
0.25 * Gaussian(sigma=<30 array>) + Linear()
>>> in_words(k)
'0.25 * Gaussian(sigma=<0.5 to 20, one of each of 30 columns>) + Linear()'
>>> short_name(k)
'Gaussian + Linear'
>>> tells_apart(k, [f"x{j + 1}" for j in range(30)])
'x1, x2, x3'
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mercer.kernels.base import Kernel
from mercer.kernels.columns.table import ColumnKernel
from mercer.kernels.compose import Mapped, Normalized, OnColumns, Product, Scaled, Sum
from mercer.kernels.domain import Domain
from mercer.kernels.parameters import is_vector, text

_COLUMNS_LISTED = 3  # columns that a sentence names
#: A column stands out from this multiple of the median on. A column of zeros and two ones, the rarest that is
#: kept, has a spread with a relative standard error of 1/(2√2) between samples: this is nearly three of them.
_STANDS_OUT = 2.0
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
        if part.domain is Domain.OBJECTS and not part.children():
            shown = shown.replace(repr(part), _without_defaults(part), 1)
    for name, value, _ in per_column(kernel):
        low, high = f"{np.min(value):.4g}", f"{np.max(value):.4g}"
        which = f"{low} of each" if low == high else f"{low} to {high}, one of each"
        words = f"{name}=<{which} of {len(value)} columns>"
        shown = shown.replace(f"{name}={text(value)}", words, 1)
    return _LONG_NUMBER.sub(lambda found: f"{float(found[0]):.4g}", shown)


def _without_defaults(kernel: Kernel) -> str:
    given = {
        name: value
        for name, value in kernel.get_params(deep=False).items()
        if name not in kernel.parameters or text(value) != text(kernel.parameters[name].default)
    }
    return f"{type(kernel).__name__}({', '.join(f'{name}={text(value)}' for name, value in given.items())})"


def _factor(weight: float | None) -> str:
    return "" if weight is None or weight == 1 else f"{weight:.4g} * "


def _part(key: Any, kernel: Kernel, names: Sequence[str] | None) -> str:
    return f"{in_words(kernel)}.on({_which(key, names)})"


def scales(kernel: Kernel, columns: int) -> dict[str, np.ndarray]:
    """By the name of the parameter, its values for each column; empty where one value is for all.

    >>> from mercer import Gaussian
    >>> scales(Gaussian(sigma=[2.0, 4.0]), 2), scales(Gaussian(sigma=2.0), 2)
    ({'sigma': array([2., 4.])}, {})
    """
    every = ((name, np.asarray(value, dtype=np.float64)) for name, value, _ in per_column(kernel))
    return {name: values for name, values in every if len(values) == columns}


def has_scales(kernel: Any) -> bool:
    """Whether a kernel has a value for each column, and so is for columns that it was given for.

    >>> from mercer import Gaussian, Linear
    >>> has_scales(Linear() + Gaussian(sigma=[1.0, 2.0])), has_scales(Gaussian(sigma=1.0)), has_scales("auto")
    (True, False, False)
    """
    return isinstance(kernel, Kernel) and any(True for _ in per_column(kernel))


def tells_apart(
    kernel: Kernel,
    names: Sequence[str],
    most: int = _COLUMNS_LISTED,
    *,
    spread: Any = None,
    sources: Sequence[str] | None = None,
) -> str:
    """The columns that move a point most in what the kernel compares.

    By its first part with a value per column: a column moves a point by its ``spread``, (columns,) or 1,
    times what the kernel multiplies it with. Where several columns are made of one (``sources``, for each its
    name) the root of the sum of the squares counts. Empty where no column stands out: a kernel that only
    evens out the spreads tells nothing of the columns.

    >>> from mercer import Gaussian
    >>> k = Gaussian(sigma=[1.0, 4.0, 2.0])
    >>> tells_apart(k, ["a", "b = red", "b = blue"], spread=[3.0, 4.0, 2.0], sources=["a", "b", "b"])
    'a, b'
    >>> tells_apart(k, ["a", "b", "c"], spread=[1.0, 4.0, 2.0])
    ''
    """
    for _, value, power in per_column(kernel):
        if not 1 < len(value) <= len(names):
            continue
        factors = np.asarray(value, dtype=np.float64) ** power
        wide = np.ones(len(names)) if spread is None else np.asarray(spread, dtype=np.float64)
        moved = factors * wide[: len(factors)]
        if not do_tell(factors, wide[: len(factors)]):
            return ""
        squares: dict[str, float] = {}
        for name, part in zip(sources or names, moved.tolist(), strict=False):
            squares[name] = squares.get(name, 0.0) + part**2
        return ", ".join(sorted(squares, key=lambda name: -squares[name])[:most])
    return ""


def do_tell(factors: np.ndarray, spread: Any = 1.0) -> bool:
    """Whether what a kernel multiplies columns of some spread with tells of the columns.

    It does where the factors are not all the same, and some column then moves a point by twice as much as the
    median one. Factors that only even out the spreads tell nothing.

    >>> do_tell(np.array([1.0, 1.0, 1.0]), np.array([1.0, 0.1, 0.2])), do_tell(np.array([1.0, 0.1, 0.2]))
    (False, True)
    """
    moved = factors * np.asarray(spread, dtype=np.float64)
    varies = np.ptp(factors) > 0.01 * factors.max()
    return bool(varies and moved.max() >= _STANDS_OUT * np.sort(moved)[(len(moved) - 1) // 2])


def short_name(kernel: Kernel, names: Sequence[str] | None = None) -> str:
    """The kernel without its numbers, but for those that make it another function, such as a degree.

    >>> from mercer import BagOfWords, ColumnKernel, Gaussian, Matern, Polynomial
    >>> short_name(0.5 * Matern(nu=1.5, length_scale=3.0) + Polynomial(2).normalized())
    'Matérn 3/2 + Polynomial(degree=2).normalized()'
    >>> short_name(ColumnKernel({(0, 1, 2): Gaussian(sigma=3.0), 3: BagOfWords()}), ["a", "b", "c", "title"])
    "Gaussian on 3 columns + BagOfWords on 'title'"
    """
    if isinstance(kernel, ColumnKernel):
        if not isinstance(kernel.columns, dict):
            return "ColumnKernel"
        sign = " + " if kernel.combine == "sum" else " · "
        parts = kernel.columns.items()
        return sign.join(f"{short_name(part)} on {_which(key, names)}" for key, part in parts)
    if isinstance(kernel, Scaled):
        return short_name(kernel.kernel)
    if isinstance(kernel, Sum):
        return " + ".join(map(short_name, kernel.children().values()))
    if isinstance(kernel, Product):
        return " · ".join(_bracketed(part) for part in kernel.children().values())
    if isinstance(kernel, Normalized):
        return f"{_bracketed(kernel.kernel)}.normalized()"
    if isinstance(kernel, OnColumns):
        return f"{_bracketed(kernel.kernel)} on {_which(kernel.columns, names)}"
    if isinstance(kernel, Mapped):
        function = kernel.function
        return f"{_bracketed(kernel.kernel)} @ {getattr(function, '__name__', type(function).__name__)}"
    name = type(kernel).__name__
    if name == "Matern":
        return f"Matérn {_fraction(float(vars(kernel)['nu']))}"
    if kernel.children():
        return f"{name}({', '.join(map(short_name, kernel.children().values()))})"
    shape = [f"{key}={value}" for key, value in _shape(kernel)]
    return f"{name}({', '.join(shape)})" if shape else name


def _bracketed(kernel: Kernel) -> str:
    return f"({short_name(kernel)})" if isinstance(kernel, Sum | Product) else short_name(kernel)


def _shape(kernel: Kernel) -> Iterator[tuple[str, int]]:
    """Whole numbers that shape the formula and are not the usual ones: degrees, lengths of words."""
    for name, parameter in kernel.parameters.items():
        value: Any = vars(kernel).get(name)
        is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        is_shape = is_whole and not parameter.accepts(1.5)
        if is_shape and (name == "degree" or value != parameter.default):
            yield name, int(value)


def _fraction(nu: float) -> str:
    """1/2, 3/2 as they are called; other numbers as they are.

    >>> _fraction(1.5), _fraction(1.2)
    ('3/2', '1.2')
    """
    return f"{int(2 * nu)}/2" if (2 * nu).is_integer() and int(2 * nu) % 2 else f"{nu:.4g}"


def _which(key: Any, names: Sequence[str] | None) -> str:
    """The columns of a part: their names where they are few."""
    columns = list(key) if isinstance(key, tuple) else [key]
    called = [names[j] if names is not None and isinstance(j, int) and j < len(names) else j for j in columns]
    return f"{len(called)} columns" if len(called) > 2 else ", ".join(map(repr, called))


def per_column(kernel: Kernel) -> Iterator[tuple[str, Any, float]]:
    """The parameters with a value per column: name, values, and p: a column is multiplied by value**p."""
    for part in kernel.parts():
        for name, parameter in part.parameters.items():
            value: object = vars(part).get(name)
            if parameter.per_column is not None and is_vector(value):
                yield name, value, parameter.per_column
