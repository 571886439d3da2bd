r"""Tables with columns of several kinds: one kernel per column, added up or multiplied.

>>> from mercer import Delta, Gaussian
>>> k = ColumnKernel({"age": Gaussian(sigma=10.0), "city": Delta()})
>>> k.set_params(age__sigma=5.0)
ColumnKernel(columns={'age': Gaussian(sigma=5.0), 'city': Delta()}, combine='sum')

``ColumnKernel()`` looks at the columns when the data come, and chooses (``choose``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import reduce
from operator import add, mul
from typing import Any, Self

import numpy as np
from scipy import sparse

from mercer import data
from mercer.errors import InputError, InputTypeError
from mercer.kernels.base import Kernel
from mercer.kernels.expression import Expression
from mercer.kernels.pair import Columns, Pair
from mercer.kernels.parameters import choice, fixed
from mercer.kernels.stationary import Delta, Gaussian, Periodic

__all__ = ["ColumnKernel", "choose"]

_YEAR = 365.25  # days
_TEXT = 2.5  # words from which, on average, texts are no names of categories


def _is_key(key: Any) -> bool:
    if isinstance(key, tuple):
        return bool(key) and all(_is_key(part) and not isinstance(part, tuple) for part in key)
    return isinstance(key, int | np.integer | str) and not isinstance(key, bool)


def _are_kernels(value: Any) -> bool:
    if isinstance(value, str):
        return value == "auto"
    is_dict = isinstance(value, dict) and len(value) > 0
    return is_dict and all(_is_key(key) and isinstance(kernel, Kernel) for key, kernel in value.items())


def _are_weights(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(w, int | float | np.integer | np.floating) and np.isfinite(w) and w >= 0
        for w in value.values()
    )


class ColumnKernel(Kernel):
    r"""k(x, x') = Σⱼ wⱼ kⱼ(xⱼ, x'ⱼ), or ∏ⱼ kⱼ(xⱼ, x'ⱼ), xⱼ the columns that kⱼ is for.

    ``columns`` is a dict from a column's name or position, or a tuple of several, to a kernel; other columns
    are left out. ``"auto"`` chooses by what the columns hold when data come. ``weights``, by column, are 1
    where they are not given. Dates are numbers of days for kernels on vectors. A missing category is a
    category of its own; any other missing value is an error.

    >>> from mercer import Delta, Gaussian
    >>> table = np.array([[30.0, "Rome"], [40.0, "Rome"], [30.0, "Oslo"]], dtype=object)
    >>> ColumnKernel({0: Gaussian(sigma=10.0), 1: Delta()}, weights={1: 2.0})(table).round(3)
    array([[3.   , 2.607, 1.   ],
           [2.607, 3.   , 0.607],
           [1.   , 0.607, 3.   ]])
    """

    domain = "any"  # a table; what is in its columns is checked on its own
    columns: Any = fixed(
        "auto",
        "'auto' or a dict of kernels by column",
        _are_kernels,
        "e.g. {'age': Gaussian('median'), 'city': Delta()}",
    )
    combine: str = choice("sum", ("sum", "product"))
    weights: Any = fixed(
        None,
        "a dict of numbers that are zero or more, by column",
        _are_weights,
        "e.g. {'age': 2.0}",
        optional=True,
    )

    @property
    def closure(self) -> str:  # type: ignore[override]
        if self.columns == "auto":
            return "whatever it chooses are kernels, and so is their sum or product"
        return f"a {self.combine} of kernels on columns"

    def check(self) -> None:
        if self.weights is not None:
            if self.combine == "product":
                raise InputError(
                    "weights are for combine='sum': a product is only scaled by them; leave them out"
                )
            unknown = [key for key in self.weights if self.columns != "auto" and key not in self.columns]
            if unknown:
                raise InputError(
                    f"weights are given for {unknown!r}, which are no keys of columns: {self.columns!r}"
                )
        if len(self.children()) < len(self._kernels()):
            raise InputError(f"two of the columns have the same name as text, got {list(self._kernels())!r}")

    # --- parameters: those of a column's kernel are named after the column ---------------------------

    def _kernels(self) -> dict[Any, Kernel]:
        return {} if isinstance(self.columns, str) else dict(self.columns)

    def children(self) -> dict[str, Kernel]:
        return {self._name(key): kernel for key, kernel in self._kernels().items()}

    def _name(self, key: Any) -> str:
        name = "_".join(map(str, key)) if isinstance(key, tuple) else str(key)
        return f"{name}_" if name in self._parameters else name

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        values = super().get_params(deep=False)
        if deep:
            for name, kernel in self.children().items():
                values |= {
                    name: kernel,
                    **{f"{name}__{inner}": v for inner, v in kernel.get_params().items()},
                }
        return values

    def _set(self, params: dict[str, Any]) -> None:
        own = {name: value for name, value in params.items() if name in self._parameters}
        if own:
            self._assign(own)
        keys = {self._name(key): key for key in self._kernels()}
        replaced: dict[Any, Any] = {}
        nested: dict[Any, dict[str, Any]] = {}
        for name, value in params.items():
            if name in own:
                continue
            # a column's own name may hold two underscores
            owners = [known for known in keys if name == known or name.startswith(f"{known}__")]
            if not owners:
                known = ", ".join([*self._parameters, *keys])
                raise InputError(f"{type(self).__name__} has no parameter {name!r}: it has {known}")
            owner = max(owners, key=len)
            if name == owner:
                replaced[keys[owner]] = value
            else:
                nested.setdefault(keys[owner], {})[name[len(owner) + 2 :]] = value
        if replaced:
            self._assign({"columns": {**self._kernels(), **replaced}})
        for key, values in nested.items():
            self._kernels()[key]._set(values)

    def __sklearn_clone__(self) -> Self:
        copy = super().__sklearn_clone__()
        if not isinstance(self.columns, str):
            vars(copy)["columns"] = {key: kernel.__sklearn_clone__() for key, kernel in self.columns.items()}
        return copy

    # --- the formula -----------------------------------------------------------------------------------

    def expression(self, pair: Pair | None = None) -> Expression:
        if isinstance(self.columns, str):
            raise InputError(
                "ColumnKernel('auto') chooses when it sees data: call kernel.resolve(X) first, "
                "or fit an estimator"
            )
        pair = pair or Pair()
        parts = []
        for key, kernel in self.columns.items():
            part = kernel.expression(_through(pair.below(self._name(key)), _steps(key, kernel)))
            weight = (self.weights or {}).get(key, 1.0)
            parts.append(part if weight == 1 else part * float(weight))
        return reduce(add if self.combine == "sum" else mul, parts)

    def resolve(self, X: Any, weight: Any = None) -> Kernel:
        if self.is_resolved():
            return self
        chosen = choose(X) if isinstance(self.columns, str) else self.columns
        resolved = {}
        for key, kernel in chosen.items():
            if not kernel.is_resolved():
                seen = X
                for step in _steps(key, kernel):
                    seen = step(seen)
                kernel = kernel.resolve(seen, weight)
            resolved[key] = kernel
        return ColumnKernel(resolved, self.combine, self.weights)

    def is_resolved(self) -> bool:
        return not isinstance(self.columns, str) and super().is_resolved()


def _through(pair: Pair, steps: list[Any]) -> Pair:
    for step in steps:
        pair = pair.through(step)
    return pair


# --- what a kernel sees of its columns -------------------------------------------------------------


def _steps(key: Any, kernel: Kernel) -> list[Callable[[Any], Any]]:
    columns = Columns(key if isinstance(key, tuple) else (key,))
    if kernel.domain in ("vectors", "nonnegative"):
        return [columns, _Numbers()]
    if type(kernel) is Delta:
        return [columns, _Labels()]
    return [columns, _Objects()] if kernel.domain == "objects" else [columns]


@dataclass(frozen=True)
class _Numbers:
    """Dates as days since 1970; other columns as they are."""

    def __call__(self, X: Any) -> Any:
        if sparse.issparse(X) or getattr(X, "dtype", np.dtype("O")).kind in "biuf":
            return X
        columns = [_values(X, j) for j in range(X.shape[1])]
        if not any(map(_is_date, columns)):
            return X
        names = list(getattr(X, "columns", range(X.shape[1])))
        found = [
            _days(values, name) if _is_date(values) else data.as_vectors(data.columns(X, [j]))[:, 0]
            for j, (values, name) in enumerate(zip(columns, names, strict=True))
        ]
        return np.column_stack(found)


@dataclass(frozen=True)
class _Labels:
    """Categories of any kind, a missing one as None."""

    def __call__(self, X: Any) -> np.ndarray:  # (n, columns) of objects
        table = np.empty(X.shape, dtype=object)
        for j in range(X.shape[1]):
            values = _values(X, j).tolist()
            table[:, j] = [None if _is_missing(value) else value for value in values]
        return table


@dataclass(frozen=True)
class _Objects:
    """The objects of one column, none of them missing."""

    def __call__(self, X: Any) -> Any:
        objects = data.as_objects(data.single_column(X))
        missing = [i for i, value in enumerate(objects) if _is_missing(value)]
        if missing:
            name = next(iter(getattr(X, "columns", range(X.shape[1]))))
            raise InputError(
                f"column {name!r} has {len(missing)} missing values, the first in row {missing[0]}: drop "
                "those rows or fill the gaps"
            )
        return objects


def _values(X: Any, j: int) -> np.ndarray:  # (n,)
    """One column, as NumPy has it."""
    if hasattr(X, "iloc"):
        column = X.iloc[:, j]
        if type(column.dtype).__name__ == "CategoricalDtype":
            column = column.astype(object)
        return np.asarray(column.to_numpy())
    if hasattr(X, "columns"):
        return np.asarray(X[:, j].to_numpy())
    return np.asarray(X[:, [j]].toarray().ravel() if sparse.issparse(X) else X[:, j])


def _is_missing(value: Any) -> bool:
    return (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float) and value != value)
    )


def _present(values: np.ndarray) -> list[Any]:
    return [value for value in values.tolist() if not _is_missing(value)]


def _is_date(values: np.ndarray) -> bool:
    if values.dtype.kind != "O":
        return values.dtype.kind in "Mm"
    first = next((value for value in values if not _is_missing(value)), None)
    return isinstance(first, date | timedelta)


def _days(values: np.ndarray, name: Any) -> np.ndarray:  # (n,) float64
    """Days since 1970; times with a zone are taken in UTC."""
    if values.dtype.kind == "O":
        days = np.array([_day(value, name, i) for i, value in enumerate(values)])
    else:
        unit = "datetime64[us]" if values.dtype.kind == "M" else "timedelta64[us]"
        days = np.where(np.isnat(values), np.nan, values.astype(unit).astype(np.int64) / 86400e6)
    missing = np.flatnonzero(np.isnan(days))
    if missing.size:
        raise InputError(
            f"column {name!r} has {missing.size} missing dates, the first in row {missing[0]}: drop those "
            "rows or fill the gaps"
        )
    return days


def _day(value: Any, name: Any, row: int) -> float:
    if _is_missing(value):
        return np.nan
    if isinstance(value, timedelta):
        return value / timedelta(days=1)
    if isinstance(value, datetime):
        zone = UTC if value.tzinfo is not None else None
        return (value - datetime(1970, 1, 1, tzinfo=zone)) / timedelta(days=1)
    if isinstance(value, date):
        return float((value - date(1970, 1, 1)).days)
    raise InputTypeError(f"column {name!r} has dates, but in row {row} it has {value!r}: pass dates only")


# --- choosing -----------------------------------------------------------------------------------------


def choose(X: Any) -> dict[Any, Kernel]:
    """A kernel for every column of a table, by what it holds.

    Numbers: ``Gaussian(sigma="median")``. Categories (words, yes or no): ``Delta()``. Free text, of more than
    two words on average and mostly different: ``BagOfWords().normalized()``. Dates: the Gaussian of days, and
    where they span two years half of it from the time of the year, ``Periodic``. Lists and sets:
    ``Intersection().normalized()``.
    """
    if sparse.issparse(X):
        raise InputTypeError(
            "ColumnKernel('auto') looks at the columns of a table, got a sparse matrix: use one kernel "
            "for all of it"
        )
    table = X if hasattr(X, "columns") else data.columns(X, slice(None))
    names = list(table.columns) if hasattr(table, "columns") else list(range(table.shape[1]))
    doubled = [name for name in names if names.count(name) > 1]
    if doubled:
        raise InputError(
            f"the table has more than one column {doubled[0]!r}: give columns names of their own"
        )
    return {name: _kernel_for(_values(table, j), table, j, name) for j, name in enumerate(names)}


def _kernel_for(values: np.ndarray, table: Any, j: int, name: Any) -> Kernel:
    if _is_date(values):
        days = _days(values, name)
        smooth = Gaussian(sigma="median")
        if np.ptp(days) < 2 * _YEAR or values.dtype.kind == "m":
            return smooth
        return 0.5 * smooth + 0.5 * Periodic(period=_YEAR)
    if values.dtype.kind == "b" or _is_categorical(table, j):
        return Delta()
    if values.dtype.kind in "iuf":
        return Gaussian(sigma="median")
    present = _present(values)
    if not present:
        raise InputError(f"column {name!r} holds nothing but missing values: leave it out")
    if all(isinstance(value, bool | np.bool_) for value in present):
        return Delta()
    if all(isinstance(value, int | float | np.number) for value in present):
        return Gaussian(sigma="median")
    if all(isinstance(value, str) for value in present):
        return _kernel_for_words(present)
    if all(isinstance(value, list | tuple | set | frozenset | Mapping | np.ndarray) for value in present):
        from mercer.kernels.bags import Intersection

        return Intersection().normalized()
    kinds = ", ".join(sorted({type(value).__name__ for value in present}))
    raise InputTypeError(
        f"column {name!r} holds {kinds}, for which there is no kernel to choose: say which, "
        f"ColumnKernel({{{name!r}: …}})"
    )


def _is_categorical(table: Any, j: int) -> bool:
    dtypes = getattr(table, "dtypes", None)
    dtype = None if dtypes is None else (dtypes.iloc[j] if hasattr(dtypes, "iloc") else dtypes[j])
    return type(dtype).__name__ in ("CategoricalDtype", "Categorical", "Enum")


def _kernel_for_words(texts: list[str]) -> Kernel:
    words = np.mean([len(text.split()) for text in texts])
    if words < _TEXT or len(set(texts)) <= len(texts) / 2:
        return Delta()
    from mercer.kernels.documents import BagOfWords

    return BagOfWords().normalized()
