r"""A table of any library by its columns: those of numbers many at once, the others one by one.

>>> view = TableView.of(np.array([[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]))
>>> view.names, view.numbers(np.array([1]))
(['x1', 'x2'], array([[4., 5., 6.]]))
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse

from mercer.data import points as data
from mercer.errors import InputError, InputTypeError
from mercer.kernels.columns.cells import is_category, values

_CELLS = 1 << 17  # a block has so many at most: a megabyte, which stays in cache


def chunks(positions: np.ndarray, n: int) -> Iterator[np.ndarray]:
    """Positions of columns, so many at a time that a block of them stays small.

    >>> [len(part) for part in chunks(np.arange(5), 1 << 16)]
    [2, 2, 1]
    """
    each = max(1, _CELLS // max(n, 1))
    yield from (positions[start : start + each] for start in range(0, len(positions), each))


@dataclass(frozen=True, eq=False)
class TableView:
    """The columns of a table."""

    table: Any
    names: list[str]
    #: (m,) whether the type of a column says that it holds numbers
    is_number: np.ndarray
    #: (m,) whether it says that it holds categories
    is_category: np.ndarray

    @classmethod
    def of(cls, X: Any) -> Self:
        if sparse.issparse(X):
            raise InputTypeError(
                "TableFeatures looks at the columns of a table, got a sparse matrix: "
                "fit a kernel on it as it is"
            )
        table = X if hasattr(X, "columns") else data.columns(X, slice(None))
        m = table.shape[1]
        names = (
            list(map(str, table.columns)) if hasattr(table, "columns") else [f"x{j + 1}" for j in range(m)]
        )
        if len(set(names)) < m:
            doubled = next(name for name in names if names.count(name) > 1)
            raise InputError(
                f"the table has more than one column {doubled!r}: give columns names of their own"
            )
        dtypes = getattr(table, "dtypes", None)
        types = [getattr(table, "dtype", None)] * m if dtypes is None else list(dtypes)
        known = {dtype: (_is_number(dtype), is_category(dtype)) for dtype in set(types)}
        flags = np.array([known[dtype] for dtype in types], dtype=bool).reshape(m, 2)
        return cls(table, names, flags[:, 0], flags[:, 1])

    @property
    def rows(self) -> int:
        return int(self.table.shape[0])

    @cached_property
    def place(self) -> dict[str, int]:
        """By name, the position of a column."""
        return {name: j for j, name in enumerate(self.names)}

    def column(self, j: int) -> np.ndarray:  # (n,)
        """One column; whole numbers of a frame with gaps as floats, yes and no with gaps as objects."""
        column = values(self.table, j)
        return column.astype(object) if column.dtype.kind in "US" else column

    def numbers(self, positions: np.ndarray) -> np.ndarray:  # (k, n) float64
        """Columns whose type says that they hold numbers, as rows of a block; NaN in gaps."""
        if hasattr(self.table, "iloc"):
            block = self.table.iloc[:, positions].to_numpy(dtype=np.float64)
        else:
            is_all = len(positions) == self.table.shape[1] and bool((np.diff(positions) == 1).all())
            block = self.table if is_all else self.table[:, positions.tolist()]
            block = block.to_numpy() if hasattr(block, "to_numpy") else block
        return np.ascontiguousarray(np.asarray(block, dtype=np.float64).T)


def _is_number(dtype: Any) -> bool:
    """Whether a column of the type is a plain array of numbers; those with a mask beside it are not."""
    if isinstance(dtype, np.dtype):
        return dtype.kind in "iuf"
    is_numeric = getattr(dtype, "is_numeric", None)  # types of polars have it
    return bool(is_numeric is not None and (dtype.is_integer() or dtype.is_float()))
