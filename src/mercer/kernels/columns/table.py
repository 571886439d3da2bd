r"""Tables with columns of several kinds: one kernel per column, added up or multiplied.

>>> from mercer import Delta, Gaussian
>>> k = ColumnKernel({"age": Gaussian(sigma=10.0), "city": Delta()})
>>> k.set_params(age__sigma=5.0)
ColumnKernel(columns={'age': Gaussian(sigma=5.0), 'city': Delta()}, combine='sum', missing='value')

``ColumnKernel()`` looks at the columns when the data come, and chooses (``column_kinds``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add, mul
from typing import Any, Self

import numpy as np

from mercer.data import points as data
from mercer.data.types import Points, Weights
from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.kernels.columns.cells import Anything, Labels, Numbers, Objects, OneEach, Present
from mercer.kernels.columns.kinds import choose
from mercer.kernels.compose import OnColumns
from mercer.kernels.domain import Domain
from mercer.kernels.formula.expression import Expression
from mercer.kernels.formula.pair import Pair
from mercer.kernels.parameters import choice, fixed
from mercer.kernels.vectors.stationary import Delta


def _is_key(key: Any) -> bool:
    if isinstance(key, tuple):
        return bool(key) and all(_is_key(part) and not isinstance(part, tuple) for part in key)
    return isinstance(key, int | np.integer | str) and not isinstance(key, bool)


def _are_kernels(value: Any) -> bool:
    if isinstance(value, str):
        return value == "auto"
    is_dict = isinstance(value, dict) and len(value) > 0
    return is_dict and all(_is_key(key) and isinstance(kernel, Kernel) for key, kernel in value.items())


def _are_weights(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(w, int | float | np.integer | np.floating) and np.isfinite(w) and w >= 0
        for w in value.values()
    )


class ColumnKernel(Kernel):
    r"""k(x, x') = Σⱼ wⱼ kⱼ(xⱼ, x'ⱼ), or a product, xⱼ the columns that kⱼ is for.

    ``columns`` is a dict from a column's name or position, or a tuple of several, to a kernel; other columns
    are left out. ``"auto"`` chooses by what the columns hold when data come; ``ColumnKernel.of(table)`` is
    that choice, written out. ``combine`` is

    - "sum": rows are alike if many columns are
    - "product": Πⱼ kⱼ, if all of them are
    - "anova": Πⱼ (1 + wⱼ kⱼ) / (1 + wⱼ), the sum of the products of every choice of columns: what columns say
      alone, in pairs, and so on

    ``weights``, by column, are 1 where they are not given. Dates are numbers of days for kernels on vectors.
    A missing value (None, NaN, NaT, NA) is a value of its own, alike to itself and unlike any other:
    kⱼ(?, ?) = 1 and kⱼ(?, xⱼ) = 0. ``missing="error"`` refuses it.

    >>> from mercer import Delta, Gaussian
    >>> table = np.array([[30.0, "Rome"], [40.0, "Rome"], [None, "Oslo"]], dtype=object)
    >>> ColumnKernel({0: Gaussian(sigma=10.0), 1: Delta()}, weights={1: 2.0})(table).round(3)
    array([[3.   , 2.607, 0.   ],
           [2.607, 3.   , 0.   ],
           [0.   , 0.   , 3.   ]])
    """

    domain = Domain.ANY  # A point is a row of a table, whose columns are checked one by one.
    columns: Any = fixed(
        "auto",
        "'auto' or a dict of kernels by column",
        _are_kernels,
        "e.g. {'age': Gaussian('median'), 'city': Delta()}",
    )
    combine: str = choice("sum", ("sum", "product", "anova"))
    weights: Any = fixed(
        None,
        "a dict of numbers that are zero or more, by column",
        _are_weights,
        "e.g. {'age': 2.0}",
        optional=True,
    )
    missing: str = choice("value", ("value", "error"))

    @classmethod
    def of(cls, X: Points, **options: Any) -> Self:
        """The kernel that "auto" chooses for a table, to be looked at and changed.

        Widths and frequencies of words are still open: a fit takes them from its training rows.

        >>> ColumnKernel.of([[31.0, "Rome"], [45.0, "Oslo"], [23.0, "Rome"]]).columns
        {0: Gaussian(sigma='median'), 1: Delta()}
        """
        return cls(choose(X), **options)

    @property
    def closure(self) -> str:  # type: ignore[override]
        if isinstance(self.columns, str):
            return "whatever it chooses are kernels, and so are their sums and products"
        what = "a product of 1 + kernels" if self.combine == "anova" else f"a {self.combine} of kernels"
        return f"{what} on columns"

    def check(self) -> None:
        if self.weights is not None:
            if self.combine == "product":
                raise InputError(
                    "weights are for combine='sum' and 'anova': a product is only scaled by them; leave them "
                    "out"
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
        return f"{name}_" if name in self.parameters else name

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
        own = {name: value for name, value in params.items() if name in self.parameters}
        if own:
            self._assign(own)
        keys = {self._name(key): key for key in self._kernels()}
        replaced: dict[Any, Any] = {}
        nested: dict[Any, dict[str, Any]] = {}
        for name, value in params.items():
            if name in own:
                continue
            # The name of a column may hold two underscores.
            owners = [known for known in keys if name == known or name.startswith(f"{known}__")]
            if not owners:
                known = ", ".join([*self.parameters, *keys])
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
            weight = float((self.weights or {}).get(key, 1.0))
            part = self._part(pair.below(self._name(key)), key, kernel)
            part = part if weight == 1 else part * weight
            parts.append((1 + part) / (1 + weight) if self.combine == "anova" else part)
        return reduce(add if self.combine == "sum" else mul, parts)

    def _part(self, pair: Pair, key: Any, kernel: Kernel) -> Expression:
        """The kernel on some columns, of which it sees no gaps: p p' k + (1 - p) (1 - p'), p = 0 in a gap."""
        columns, reader = self._steps(key, kernel)
        chosen = pair.through(columns)
        if reader is None:
            return kernel.expression(chosen)
        value = kernel.expression(chosen.through(reader))
        if self.missing == "error" or isinstance(reader, Labels):
            return value
        present = chosen.through(Present())
        p, q = present.xx, present.yy
        return p * q * value + (1 - p) * (1 - q)

    def _steps(self, key: Any, kernel: Kernel) -> tuple[OneEach, Callable[[Any], Any] | None]:
        """The columns, and how they are read for the kernel."""
        columns, strict = OneEach(key if isinstance(key, tuple) else (key,)), self.missing == "error"
        if all(type(part) is Delta for part in kernel.parts() if not part.children()):
            return columns, Labels(strict)
        if kernel.domain.is_vectors:
            return columns, Numbers(strict)
        if any(isinstance(part, ColumnKernel | OnColumns) for part in kernel.parts()):
            return columns, None  # The kernel takes a table again.
        kind = next((part.objects for part in kernel.parts() if part.objects is not None), None)
        return columns, Objects(kind, strict) if kernel.domain is Domain.OBJECTS else Anything(kind, strict)

    def resolve(self, X: Points, weight: Weights = None) -> Kernel:
        if self.is_resolved():
            return self
        chosen = choose(X) if isinstance(self.columns, str) else self.columns
        resolved = {}
        for key, kernel in chosen.items():
            resolved[key] = kernel if kernel.is_resolved() else self._resolve(key, kernel, X, weight)
        return ColumnKernel(resolved, self.combine, self.weights, self.missing)

    def _resolve(self, key: Any, kernel: Kernel, X: Points, weight: Weights) -> Kernel:
        """The kernel of some columns, resolved on the rows where nothing is missing."""
        columns, reader = self._steps(key, kernel)
        seen = columns(X)
        if reader is None:
            return kernel.resolve(seen, weight)
        is_there = Present()(seen)[:, 0] > 0
        if is_there.any() and not is_there.all() and self.missing == "value":
            seen = data.take(seen, is_there)
            weight = None if weight is None else np.asarray(weight)[is_there]
        return kernel.resolve(reader(seen), weight)

    def is_resolved(self) -> bool:
        return not isinstance(self.columns, str) and super().is_resolved()
