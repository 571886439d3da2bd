"""A table that was read: a data frame, or a sparse matrix with labels, and what was noticed on the way."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

import numpy as np
from scipy import sparse

from mercer.data.types import Frame
from mercer.errors import InputError

#: what the label of a row is called in files that have labels and no names
LABEL = "target"
_COMPARED = 10_000  # names that one that is not found is compared with


class _Indices(Sequence[str]):
    """target, x1, x2, … of a sparse file, which may have too many columns to be listed.

    >>> names = _Indices(1, 2_000_000_000)
    >>> len(names), names[-1], names[:3], "x7" in names, "x0" in names
    (2000000000, 'x1999999999', ['target', 'x1', 'x2'], True, False)
    """

    def __init__(self, first: int, stop: int) -> None:
        self._indices = range(first, stop)

    def __len__(self) -> int:
        return 1 + len(self._indices)

    def __contains__(self, name: object) -> bool:
        found = re.fullmatch(r"x(0|[1-9]\d*)", str(name), re.ASCII)
        return name == LABEL or (found is not None and int(found[1]) in self._indices)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[position] for position in range(*place.indices(len(self)))]
        position = range(len(self))[place]
        return f"x{self._indices[position - 1]}" if position else LABEL


@dataclass(frozen=True, eq=False)
class Table:
    """Rows and columns; ``frame`` is None where a sparse file has too many columns for one."""

    #: a polars frame
    frame: Frame
    #: where it came from, for messages
    name: str
    #: "csv", "parquet", "arrow", "arff", "numpy", "libsvm"
    format: str
    #: what a reader should know: a guess, a repair, a column that was renamed
    notes: tuple[str, ...] = ()
    #: (n, m) the features of a LIBSVM file
    matrix: sparse.csr_array | None = None
    #: (n,) its labels
    labels: np.ndarray | None = None
    #: the column to predict, where the file itself says which
    label: str | None = None
    #: the index that its features begin with, 0 or 1
    first: int = 1
    #: by column, the first order of day and month that fits dates that are texts (`mercer.tables.dates`)
    dates: Mapping[str, str] = field(default_factory=dict)
    #: the frame of the texts that stand in a delimited file, where these were kept
    texts: Callable[[], Any] | None = None

    @property
    def rows(self) -> int:
        source = self.matrix if self.frame is None else self.frame
        return 0 if source is None else int(source.shape[0])

    @property
    def columns(self) -> Sequence[str]:
        if self.frame is not None:
            return list(self.frame.columns)
        assert self.matrix is not None
        return _Indices(self.first, self.matrix.shape[1])

    def find(self, column: str | int) -> str:
        """The name of a column that is given by its name, or by its position: 1 is the first, -1 the last."""
        names = self.columns
        text = str(column).strip()
        for name in (column, text):
            if isinstance(name, str) and name in names:
                return name
        position = int(text) if text.lstrip("+-").isdecimal() else 0
        if 1 <= abs(position) <= len(names):
            return names[position - 1 if position > 0 else position]
        from difflib import get_close_matches

        some = names[:_COMPARED]
        near = get_close_matches(text, some, n=1, cutoff=0.6) or [
            c for c in some if c.lower() == text.lower()
        ]
        known = ", ".join(map(repr, names[:12])) + (f", … ({len(names)} in all)" if len(names) > 12 else "")
        hint = f"did you mean {near[0]!r}? It has {known}" if near else f"it has {known}"
        raise InputError(f"{self.name} has no column {text!r}: {hint}")

    def as_written(self) -> Any:
        """The frame, of a delimited file with its cells as they stand there if `read_table` kept them."""
        return self.frame if self.texts is None else self.texts()

    def at(self, rows: Any) -> Table:
        """The rows at these positions: an array, or a slice."""
        parts: dict[str, Any] = {"texts": None} | ({} if self.frame is None else {"frame": self.frame[rows]})
        if self.matrix is not None and self.labels is not None:
            parts |= {"matrix": self.matrix[rows], "labels": self.labels[rows]}
        return replace(self, **parts)

    def as_wide_as(self, columns: int) -> sparse.csr_array:
        """The features of a LIBSVM file with so many columns: zeros are not written, the last may lack."""
        if self.matrix is None:
            raise InputError(
                f"{self.name} is no LIBSVM file, which the model was trained on: pass one, got {self.format}"
            )
        matrix = (
            sparse.csr_array(self.matrix[:, :columns])
            if self.matrix.shape[1] > columns
            else self.matrix.copy()
        )
        matrix.resize((matrix.shape[0], columns))
        return matrix
