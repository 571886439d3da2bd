"""Tables in .npy files, whose columns have no names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from mercer.data.sources.reader import Batch, ColumnType, Reader
from mercer.errors import InputError


class ArrayFiles(Reader):
    """The rows of one .npy file, or of several one after the other."""

    def __init__(self, files: list[Path]) -> None:
        self.names = None
        self.arrays = [_mapped(file) for file in files]
        widths = {array.shape[1]: file for array, file in zip(self.arrays, files, strict=True)}
        if len(widths) > 1:
            (one, first), (other, second) = list(widths.items())[:2]
            raise InputError(
                f"{first} has {one} columns and {second} has {other}: pass files with the same columns"
            )
        dtype = np.result_type(*[array.dtype for array in self.arrays])
        kind: ColumnType = dtype if dtype.kind in "biuf" else str(dtype)
        self.types = [kind] * next(iter(widths))
        self.may_be_whole = [False] * len(self.types)

    @property
    def as_it_is(self) -> np.ndarray | None:
        """The one array, where it can be computed with as it lies in its file."""
        array = self.arrays[0]
        is_ready = array.dtype in (np.float32, np.float64) and array.dtype.isnative
        return array if len(self.arrays) == 1 and is_ready and array.flags.c_contiguous else None

    def batches(self, columns: Sequence[int], rows: int) -> Iterator[Batch]:
        for array in self.arrays:
            for start in range(0, len(array), rows):
                part = array[start : start + rows]
                yield [part[:, j] for j in columns]


def _mapped(file: Path) -> np.ndarray:
    """The table in a file, of which nothing is read yet."""
    try:
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(
            f"{file} is damaged, cut off or holds Python objects: it cannot be read as .npy ({error})"
        ) from None
    if array.ndim != 2:
        raise InputError(
            f"{file} must hold a 2-D array, one row per point, got shape {array.shape}: save it as "
            "X.reshape(len(X), -1)"
        )
    return np.asarray(array)
