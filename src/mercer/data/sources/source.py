"""A table in files that learners take in place of an array, and what it is once it is open."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mercer.data.column_names import find_columns
from mercer.data.sources.arrays import ArrayFiles
from mercer.data.sources.convert import Role, Wanted, convert, require_finite, require_same
from mercer.data.sources.database import Database, DatabaseRows, is_database, stamped_files
from mercer.data.sources.delimited import DelimitedFiles
from mercer.data.sources.files import Stamp, find_files, format_of, stamps_of
from mercer.data.sources.frames import ArrowFiles, ParquetFiles
from mercer.data.sources.reader import Reader
from mercer.errors import InputError, InputTypeError, shown

_READERS: dict[str, type[Reader]] = {
    "npy": ArrayFiles,
    "parquet": ParquetFiles,
    "arrow": ArrowFiles,
    "csv": DelimitedFiles,
}
#: Numbers of an array in its own file that are looked at at a time: 32 MiB in float64.
_NUMBERS_AT_ONCE = 2**22


@dataclass(frozen=True)
class Opened:
    """The columns of a table as arrays on disk, read by the system as they are needed."""

    #: (n, d) float32 or float64, checked: every value is finite; an array, or rows on a cluster
    points: Any
    #: the names of the columns of the points; None where the file has none
    names: tuple[str, ...] | None
    #: (n,) the column of targets, if one was named
    targets: np.ndarray | None = None
    #: (n,) the column of weights, if one was named
    weights: np.ndarray | None = None


class DataSource:
    """A table in files, for ``fit`` and ``predict`` in place of X.

    Parameters
    ----------
    path : a file, a folder whose files are the parts of one table, in the order of their names, or a pattern
        such as ``"rides/*.parquet"``. Files are .npy, Parquet, Arrow (Feather 2) or CSV. Or a database,
        ``"sqlite:///rides.db?table=rides"``: see `mercer.data.sources.database`
    columns : the names (or positions) of the columns of X, in this order; by default all of them but those
        of y and of the weights
    folder : where the converted table is kept for the next process, too; by default it goes with this one

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/points.npy"
    >>> np.save(path, np.arange(6).reshape(2, 3))
    >>> DataSource(path, columns=[2, 0]).open().points
    array([[2., 0.],
           [5., 3.]])
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        columns: Sequence[str | int] | None = None,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        for name, value in (("path", path), ("folder", folder)):
            if not isinstance(value, str | os.PathLike) and not (name == "folder" and value is None):
                raise InputTypeError(
                    f"{name} must be a text or a pathlib.Path, got {shown(value, 40)}: name a file or a "
                    "folder"
                )
        if isinstance(columns, str):
            raise InputTypeError(
                f"columns must be a list of names, got the text {columns!r}: pass [{columns!r}]"
            )
        self.path = path
        self.columns = None if columns is None else list(columns)
        self.folder = None if folder is None else Path(folder)

    def __repr__(self) -> str:
        options = "".join(
            f", {name}={value!r}"
            for name, value in (("columns", self.columns), ("folder", self.folder))
            if value
        )
        return f"DataSource({str(self.path)!r}{options})"

    def open(
        self, target: str | None = None, weight: str | None = None, columns: Sequence[str] | None = None
    ) -> Opened:
        """The table as arrays: converted now, unless that was done before and the files are the same still.

        Parameters
        ----------
        target, weight : the names of columns that are not part of X
        columns : the names of the columns of X, in place of ``DataSource.columns``, where the table has names
        """
        stamps = self._look()  # before the files are opened
        reader = self._reader()
        if reader.names is None:
            columns = None
        own = [name for name in (target, weight) if name is not None]
        if reader.names is None and own:
            raise InputError(
                f"the columns of {self.path} have no names, got {own[0]!r}: pass targets and weights as "
                "arrays, such as np.load('y.npy')"
            )
        chosen = self._chosen(reader, own, columns)
        labels = _labels(reader, chosen)
        if isinstance(reader, ArrayFiles) and not own and chosen == list(range(len(reader.types))):
            array = reader.as_it_is
            if array is not None and array.size:
                return Opened(self._checked(array, labels, stamps), None)
        parts = [Wanted(tuple(chosen), Role.POINTS, labels)]
        for name, role in ((target, Role.TARGETS), (weight, Role.WEIGHTS)):
            if name is not None:
                [j] = self._find(reader, [name])[:1]
                parts.append(Wanted((j,), role, (f"column {name!r}",)))
        points, *others = convert(reader, parts, str(self.path), stamps, self._look, self.folder)
        names = None if reader.names is None else tuple(reader.names[j] for j in chosen)
        targets = others.pop(0) if target is not None else None
        return Opened(points, names, targets, others[0] if others else None)

    def _look(self) -> tuple[Stamp, ...]:
        """What the files look like now."""
        if is_database(self.path):
            return stamps_of(stamped_files(Database.of(str(self.path))))
        return stamps_of(find_files(self.path))

    def _reader(self) -> Reader:
        if is_database(self.path):
            return DatabaseRows(Database.of(str(self.path)))
        files = find_files(self.path)
        return _READERS[format_of(files)](files)

    def _checked(self, array: np.ndarray, labels: tuple[str, ...], stamps: tuple[Stamp, ...]) -> np.ndarray:
        """An array that needs no conversion, once all of its values were looked at."""
        step = max(1, _NUMBERS_AT_ONCE // array.shape[1])
        for start in range(0, len(array), step):
            require_finite(array[start : start + step], labels, start, str(self.path))
        require_same(stamps, self._look(), str(self.path))
        return array

    def _chosen(self, reader: Reader, own: list[str], columns: Sequence[str] | None) -> list[int]:
        """The positions of the columns of X."""
        if not reader.types:
            raise InputError(f"{self.path} has no columns: pass a table with at least one")
        if columns is not None or self.columns is not None:
            return self._find(reader, self.columns if columns is None else columns)
        left_out = {j for name in own for j in self._find(reader, [name])}
        chosen = [j for j in range(len(reader.types)) if j not in left_out]
        if not chosen:
            raise InputError(f"{self.path} has no columns but {own}: X needs at least one")
        return chosen

    def _find(self, reader: Reader, which: Any) -> list[int]:
        return find_columns(list(which), len(reader.types), reader.names, str(self.path))


def _labels(reader: Reader, chosen: list[int]) -> tuple[str, ...]:
    """What columns are called in a refusal."""
    return tuple(f"column {j if reader.names is None else repr(reader.names[j])}" for j in chosen)
