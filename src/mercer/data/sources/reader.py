"""What a format has to say of a table: its columns, and their values batch by batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

#: what a column holds: numbers of a NumPy type, or the name of what is no number
ColumnType: TypeAlias = "np.dtype[Any] | str"
#: one array for each of the columns that were asked for
Batch: TypeAlias = list[np.ndarray]

TEXT = "text"


class Reader(ABC):
    """A table in files of one format."""

    #: the names of the columns; None where there are none
    names: list[str] | None
    #: what each column holds
    types: list[ColumnType]
    #: for each column, whether it may turn out to hold whole numbers alone although its type does not tell
    may_be_whole: list[bool]

    @abstractmethod
    def __init__(self, files: list[Path]) -> None: ...

    @abstractmethod
    def batches(self, columns: Sequence[int], rows: int) -> Iterator[Batch]:
        """The values of some columns, at most so many rows at a time; what is missing is NaN, or None."""
