"""Tables in Parquet and Arrow files, by polars, a slice at a time.

Slices go down to the pages of a file, so that memory holds a slice and, at most, the row group (Parquet) or
the record batch (Arrow) that it lies in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mercer.data.sources.reader import TEXT, Batch, ColumnType, Reader
from mercer.errors import InputError, require


def load_polars() -> Any:
    """The library, or the line that installs it."""
    return require("polars", "cli")


class _FrameFiles(Reader):
    """The rows of one file, or of several one after the other, whose columns go by their names."""

    _scan: str
    _format: str

    def __init__(self, files: list[Path]) -> None:
        self._files = files
        schemas = []
        self._heights = []
        pl = load_polars()
        for file in files:
            with readable(file, self._format):
                lazy = self._lazy(file)
                schemas.append(lazy.collect_schema())
                self._heights.append(int(lazy.select(pl.len()).collect().item()))
        self.names = names = list(schemas[0])
        for file, schema in zip(files, schemas, strict=True):
            require_same_columns(names, list(schema), files[0], file)
        self.types = [_joint_type([column_type(schema[name]) for schema in schemas]) for name in names]
        self.may_be_whole = [False] * len(self.types)

    def _lazy(self, file: Path) -> Any:
        return getattr(load_polars(), self._scan)(file)

    def batches(self, columns: Sequence[int], rows: int) -> Iterator[Batch]:
        names = [(self.names or [])[j] for j in columns]
        for file, height in zip(self._files, self._heights, strict=True):
            for start in range(0, height, rows):
                with readable(file, self._format):
                    part = self._lazy(file).select(names).slice(start, rows).collect(engine="in-memory")
                if part.height != min(rows, height - start):
                    raise InputError(f"{file} has fewer rows than it says: copy it again")
                yield [values_of(part[name]) for name in names]


class ParquetFiles(_FrameFiles):
    """A table in Parquet files."""

    _scan, _format = "scan_parquet", "Parquet"


class ArrowFiles(_FrameFiles):
    """A table in Arrow (Feather 2) files."""

    _scan, _format = "scan_ipc", "Arrow"


@contextmanager
def readable(file: Path, format_: str) -> Iterator[None]:
    """What polars raises of a file that it cannot read, in a sentence."""
    pl = load_polars()
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = first_line(error)
        raise InputError(f"{file} is damaged or cut off: it cannot be read as {format_} ({reason})") from None


def first_line(error: BaseException) -> str:
    """What a library says of an error, without the lines that follow the first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".:") if lines else type(error).__name__


def require_same_columns(wanted: list[str], found: list[str], first: Path, file: Path) -> None:
    """Refuse parts of a table that have other columns than the first part."""
    odd = [name for name in wanted if name not in found] or [name for name in found if name not in wanted]
    if odd:
        which = "no column" if odd[0] in wanted else "a column"
        raise InputError(f"{file} has {which} {odd[0]!r}, unlike {first}: pass files with the same columns")


def column_type(dtype: Any) -> ColumnType:
    """What a column of polars holds."""
    pl = load_polars()
    if dtype == pl.Boolean:
        return np.dtype(bool)
    if dtype.is_decimal() or str(dtype) in ("Int128", "UInt128"):
        return np.dtype(np.float64)
    if dtype.is_numeric():
        return np.dtype(str(dtype).lower())
    return TEXT if dtype in (pl.String, pl.Categorical, pl.Enum) else str(dtype)


def _joint_type(types: list[ColumnType]) -> ColumnType:
    """What the column holds in all files."""
    others = [kind for kind in types if not isinstance(kind, np.dtype)]
    return others[0] if others else np.result_type(*types)


def values_of(series: Any) -> np.ndarray:
    """The values of a column; numbers that are missing are NaN, texts that are missing are None."""
    pl = load_polars()
    kind = column_type(series.dtype)
    if kind == TEXT:
        return np.asarray(series.cast(pl.String).to_numpy())
    is_odd = series.dtype.is_decimal() or "128" in str(series.dtype)
    if is_odd or (series.dtype == pl.Boolean and series.null_count()):
        series = series.cast(pl.Float64)
    return np.asarray(series.to_numpy())
