"""A table that was read: a data frame, or a sparse matrix with labels, and what was noticed on the way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from mercer.errors import InputError

__all__ = ["Table"]

#: what the label of a row is called in files that have labels and no names
LABEL = "target"


@dataclass(frozen=True, eq=False)
class Table:
    """Rows and columns; ``frame`` is None where a sparse file has too many columns for one."""

    #: a polars frame
    frame: Any
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

    @property
    def rows(self) -> int:
        source = self.matrix if self.frame is None else self.frame
        return 0 if source is None else int(source.shape[0])

    @property
    def columns(self) -> list[str]:
        if self.frame is not None:
            return list(self.frame.columns)
        assert self.matrix is not None
        return [LABEL, *(f"x{j + 1}" for j in range(self.matrix.shape[1]))]

    def find(self, column: str | int) -> str:
        """The name of a column that is given by its name, or by its position: 1 is the first, -1 the last."""
        names = self.columns
        if isinstance(column, str) and column in names:
            return column
        text = str(column).strip()
        if text in names:
            return text
        position = int(text) if text.lstrip("+-").isdecimal() else 0
        if 1 <= abs(position) <= len(names):
            return names[position - 1 if position > 0 else position]
        from difflib import get_close_matches

        near = get_close_matches(text, names, n=1, cutoff=0.6) or [
            c for c in names if c.lower() == text.lower()
        ]
        known = ", ".join(map(repr, names[:12])) + (f", … ({len(names)} in all)" if len(names) > 12 else "")
        hint = f"did you mean {near[0]!r}? It has {known}" if near else f"it has {known}"
        raise InputError(f"{self.name} has no column {text!r}: {hint}")

    def at(self, rows: Any) -> Table:
        """The rows at these positions: an array, or a slice."""
        parts: dict[str, Any] = {} if self.frame is None else {"frame": self.frame[rows]}
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
