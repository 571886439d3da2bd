"""The one file that knows polars: frames from text, Parquet and Arrow files, and frames as CSV."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import IO, Any

import numpy as np

from mercer.errors import InputError, require

__all__ = ["frame_of", "from_arrow", "from_parquet", "from_text", "without", "write_csv"]

#: what stands for a missing value in a text file
MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "?", "<NA>", "#N/A")

_DATES = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%Y%m%dT%H%M%S")
_CLOCKS = ("", " %H:%M", " %H:%M:%S")


def _polars() -> Any:
    return require("polars", "cli")


def from_text(
    text: str,
    names: Sequence[str],
    separator: str,
    decimal_comma: bool,
    quotes: bool,
    missing: Sequence[str],
    source: str,
) -> Any:
    """The frame of delimited text without its header, each row with as many fields as there are names."""
    pl = _polars()
    try:
        frame = pl.read_csv(
            io.BytesIO(text.encode("utf-8", "replace")),
            has_header=False,
            new_columns=list(names),
            separator=separator,
            decimal_comma=decimal_comma,
            quote_char='"' if quotes else None,
            null_values=[*MISSING, *missing],
            infer_schema_length=None,
            try_parse_dates=True,
        )
    except pl.exceptions.NoDataError:
        raise InputError(f"{source} has a header and no rows: pass at least one row") from None
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{source} cannot be read as a table: {_first_line(error)}") from None
    return _with_dates(frame.with_columns(pl.col(pl.String).str.strip_chars()))


def _with_dates(frame: Any) -> Any:
    """Columns of text in which everything is a date in one of the common ways of writing them."""
    pl = _polars()
    for name, dtype in frame.schema.items():
        if dtype != pl.String:
            continue
        texts = frame[name]
        some = texts.drop_nulls().head(20)
        if some.len() == 0 or not some.str.contains(r"^\d{1,4}[./-]?\d{1,2}[./-]?\d{1,4}").all():
            continue
        for pattern in (date + clock for date in _DATES for clock in _CLOCKS):
            dates = texts.str.to_datetime(pattern, strict=False)
            if dates.null_count() == texts.null_count():
                frame = frame.with_columns(dates.alias(name))
                break
    return frame


def from_parquet(content: bytes, source: str) -> Any:
    """The frame of a Parquet file."""
    return _binary("read_parquet", content, source, "Parquet")


def from_arrow(content: bytes, source: str, stream: bool) -> Any:
    """The frame of an Arrow (Feather 2) file, or of a stream of Arrow batches."""
    return _binary("read_ipc_stream" if stream else "read_ipc", content, source, "Arrow")


def _binary(reader: str, content: bytes, source: str, what: str) -> Any:
    pl = _polars()
    try:
        frame = getattr(pl, reader)(io.BytesIO(content))
    except (pl.exceptions.PolarsError, OSError, ValueError, pl.exceptions.PanicException) as error:
        raise InputError(
            f"{source} is damaged or cut off: it cannot be read as {what} ({_first_line(error)})"
        ) from None
    return _plain(frame, source)


def _plain(frame: Any, source: str) -> Any:
    """Without structures in its columns, which no kernel is for, and without names for categories."""
    pl = _polars()
    for name, dtype in frame.schema.items():
        if isinstance(dtype, pl.Struct | pl.Object) or dtype == pl.Binary:
            raise InputError(
                f"column {name!r} of {source} holds {dtype}, for which there are no features: leave it out"
            )
    if frame.height == 0 or frame.width == 0:
        raise InputError(f"{source} has no rows, got shape {frame.shape}: pass at least one row")
    return frame


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".:") if lines else type(error).__name__


# --- from and to other things ------------------------------------------------------------------------------


def frame_of(columns: dict[str, Any]) -> Any:
    """A frame of named columns: arrays, or lists in which None is missing."""
    pl = _polars()
    return pl.DataFrame(
        {
            name: pl.Series(name, values, strict=False, nan_to_null=isinstance(values, np.ndarray))
            for name, values in columns.items()
        }
    )


def without(frame: Any, columns: Sequence[str]) -> Any:
    """A frame without some of its columns."""
    return frame.drop(list(columns))


def at(frame: Any, rows: np.ndarray) -> Any:
    """The rows at these positions."""
    return frame[rows]


def write_csv(frame: Any, added: dict[str, Any], stream: IO[bytes]) -> None:
    """A frame (or None) and more columns to its right, as CSV; lists are written as Python does."""
    pl = _polars()
    extra = [pl.Series(name, values) for name, values in added.items()]
    whole = pl.DataFrame(extra) if frame is None else frame.with_columns(extra)
    nested = [name for name, dtype in whole.schema.items() if dtype.is_nested()]
    if nested:
        whole = whole.with_columns(
            pl.Series(name, [None if v is None else str(list(v)) for v in whole[name].to_list()])
            for name in nested
        )
    whole.write_csv(stream)


def sampled(path: str, kind: str, rows: int, separator: str = ",", names: Sequence[str] | None = None) -> Any:
    """About so many rows of a file that is not read as a whole; ``names`` where it has no header."""
    pl = _polars()
    try:
        if kind == "csv":
            lazy = pl.scan_csv(
                path,
                separator=separator,
                has_header=names is None,
                new_columns=None if names is None else list(names),
                null_values=list(MISSING),
                infer_schema_length=10_000,
                try_parse_dates=True,
                ignore_errors=True,
            )
        else:
            lazy = (pl.scan_parquet if kind == "parquet" else pl.scan_ipc)(path)
        height = int(lazy.select(pl.len()).collect().item())
        frame = lazy.gather_every(max(1, -(-height // rows))).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(f"{path} cannot be read: {_first_line(error)}") from None
    return _plain(frame, path)
