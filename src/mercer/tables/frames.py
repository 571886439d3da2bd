"""The one file that knows polars: frames from text, Parquet and Arrow files, and frames as CSV."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import IO, Any

import numpy as np

from mercer.data.sources.frames import first_line, load_polars
from mercer.data.types import Frame
from mercer.errors import InputError
from mercer.runtime.config import memory_budget
from mercer.tables.dates import orders_of
from mercer.tables.intake import PER_BYTE, require_room

#: what stands for a missing value in a text file
MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "?", "<NA>", "#N/A")

CELL = 8  # bytes of a value, about
_DATES = ("%d.%m.%Y", "%Y/%m/%d", "%Y%m%dT%H%M%S")
_CLOCKS = ("", " %H:%M", " %H:%M:%S")
_DATE_LIKE = r"^\d{1,4}[./-]?\d{1,2}[./-]?\d{1,4}|^\d{1,2}:\d{2}"
_DAY_OR_MONTH = r"^\d{1,2}[/-]"  # comes first
_LEADING_ZERO = re.compile(r"0\d(?<![^\s,;|\"]0\d)")  # the quickest of several ways to write it
_CODE = 3  # letters of a code, at least
_COMMAS_LIKE = r"^[+-]?\d[\d,.]*$"
_DECIMALS = r"^[+-]?\d+(,\d+)?$"
_THOUSANDS = r"^[+-]?([1-9]\d{0,2}(,\d{3})+|\d+)(\.\d+)?$"
_LOOKED_AT = 1000  # texts that a way of writing dates is tried on, before all of them


@dataclass(frozen=True)
class Body:
    """Delimited text below its header, each row with as many fields as there are names."""

    text: str
    names: Sequence[str]
    separator: str
    decimal_comma: bool = False
    quotes: bool = True

    def read(self, source: str, **more: Any) -> Any:
        """The frame, by what polars takes its columns for."""
        pl = load_polars()
        try:
            frame = pl.read_csv(
                io.BytesIO(self.text.encode("utf-8", "replace")),
                has_header=False,
                new_columns=list(self.names),
                separator=self.separator,
                decimal_comma=self.decimal_comma,
                quote_char='"' if self.quotes else None,
                infer_schema_length=None,  # dates are looked for later: here that takes twenty times as long
                **more,
            )
        except pl.exceptions.NoDataError:
            raise InputError(f"{source} has a header and no rows: pass at least one row") from None
        except pl.exceptions.PolarsError as error:
            raise InputError(f"{source} cannot be read as a table: {first_line(error)}") from None
        return frame


def from_text(body: Body, missing: Sequence[str], source: str) -> tuple[Any, dict[str, list[str]], list[str]]:
    """The frame, the orders of day and month that fit columns of dates, and notes."""
    pl = load_polars()
    nulls = [*MISSING, *missing]
    frame = _without_wide_integers(body.read(source, null_values=nulls))
    codes: list[str] = []
    whole = [name for name, dtype in zip(frame.columns, frame.dtypes, strict=True) if dtype.is_integer()]
    if whole and _LEADING_ZERO.search(body.text):
        texts = body.read(source, null_values=nulls, infer_schema=False).select(whole)
        codes = [name for name in whole if _are_codes(texts[name].drop_nulls().str.strip_chars())]
        frame = frame.with_columns(texts.select(codes))
    frame, notes = _with_commas(frame.with_columns(pl.col(pl.String).str.strip_chars()), source)
    notes += [f"column {name!r} of {source} has leading zeros: it was taken for codes" for name in codes]
    return *_with_dates(frame), notes


def _are_codes(texts: Any) -> bool:
    """Whether whole numbers are filled up with zeros to one length, of which 08 for 8 alone says nothing."""
    lengths = texts.str.len_chars()
    is_filled = bool(lengths.min() == lengths.max() and lengths.min() >= _CODE)
    return is_filled and bool(texts.str.contains(r"^0\d").any())


def as_they_stand(body: Body, frame: Frame, source: str) -> Any:
    """The texts of all cells; numbers with decimal commas as they were read, for predictions have points."""
    texts = body.read(source, infer_schema=False)
    if not body.decimal_comma:
        return texts
    return texts.with_columns(frame.select(load_polars().selectors.float()))


def texts_of(frame: Frame) -> list[str]:
    """The columns of text; one look at the types, for a frame of thousands of columns is slow to ask."""
    text = load_polars().String
    return [name for name, dtype in zip(frame.columns, frame.dtypes, strict=True) if dtype == text]


def _with_commas(frame: Frame, source: str) -> tuple[Any, list[str]]:
    """Columns in which everything is a number, some of them with commas: for decimals, or for thousands."""
    pl = load_polars()
    notes = []
    for name in texts_of(frame):
        texts = frame[name]
        if not texts.drop_nulls().head(20).str.contains(_COMMAS_LIKE).all():
            continue
        present = texts.drop_nulls()
        if not present.str.contains(",", literal=True).any():
            continue
        decimals, thousands = (present.str.contains(way).all() for way in (_DECIMALS, _THOUSANDS))
        if decimals and thousands:
            example = present.filter(present.str.contains(",", literal=True))[0]
            notes.append(
                f"column {name!r} of {source} looks like numbers with commas, {example!r}, which may be for "
                "thousands or for decimals: it was taken for text; write them without commas"
            )
        elif decimals or thousands:
            plain = texts.str.replace_all(",", "." if decimals else "", literal=True)
            frame = frame.with_columns(plain.cast(pl.Float64))
            notes.append(
                f"column {name!r} of {source} writes {'decimals' if decimals else 'thousands'} with a comma"
            )
    return frame, notes


def of_rows(names: list[str], rows: list[tuple[Any, ...]], kinds: list[str], source: str) -> Any:
    """The frame of some rows of a database; what no column of a table holds is refused."""
    pl = load_polars()
    for name, kind in zip(names, kinds, strict=True):
        if kind in ("bytes", "UUID", "dict", "memoryview"):
            raise InputError(
                f"column {name!r} of {source} holds {kind}, which no kernel of a table takes: leave it out "
                "in a query, --query 'select …'"
            )
    try:
        return pl.DataFrame(rows, schema=names, orient="row", infer_schema_length=None)
    except (pl.exceptions.PolarsError, TypeError, OverflowError) as error:
        raise InputError(f"{source} cannot be read as a table: {first_line(error)}") from None


def of_parts(parts: list[Any], kinds: list[str], missing: Sequence[str]) -> tuple[Any, dict[str, list[str]]]:
    """The rows of all parts, and the orders of day and month that fit columns of texts."""
    pl = load_polars()
    whole = parts[0].columns
    types = {name: pl.Float64 for name, kind in zip(whole, kinds, strict=True) if kind == "numbers"}
    frame = pl.concat([part.cast(types) for part in parts], how="vertical_relaxed")
    texts = texts_of(frame)
    if missing and texts:
        is_gap = pl.col(texts).is_in(list(missing))
        frame = frame.with_columns(pl.when(is_gap).then(None).otherwise(pl.col(texts)).name.keep())
    return _with_dates(frame)


def _with_dates(frame: Frame) -> tuple[Any, dict[str, list[str]]]:
    """Columns of text in which everything is a date, or a time, in one of the common ways of writing them.

    Those with the day or the month first stay texts, and the orders that fit are told.
    """
    orders = {}
    for name in texts_of(frame):
        texts = frame[name]
        some = texts.drop_nulls().head(_LOOKED_AT)
        if some.len() == 0 or not some.head(20).str.contains(_DATE_LIKE).all():
            continue
        if some.str.contains(_DAY_OR_MONTH).any():
            if found := orders_of(texts.unique().to_numpy()):
                orders[name] = found
            continue
        for parse in _parsers():
            if _parsed(parse, some) is not None and (dates := _parsed(parse, texts)) is not None:
                frame = frame.with_columns(dates.alias(name))
                break
    return frame, orders


def _parsers() -> Iterator[Callable[[Any], Any]]:
    """ISO 8601 first, as polars recognises it, then other ways."""
    yield lambda texts: texts.str.to_date(strict=False)
    yield lambda texts: texts.str.to_datetime(strict=False)
    for pattern in (date + clock for date in _DATES for clock in _CLOCKS):
        yield partial(_as_moments, pattern)
    for clock in _CLOCKS[1:]:
        yield partial(_as_times, clock.strip())


def _as_moments(pattern: str, texts: Any) -> Any:
    return texts.str.to_datetime(pattern, strict=False)


def _as_times(pattern: str, texts: Any) -> Any:
    return texts.str.to_time(pattern, strict=False)


def _parsed(parse: Callable[[Any], Any], texts: Any) -> Any:
    """What the texts are, or None if one of them is no such."""
    try:
        found = parse(texts)
    except load_polars().exceptions.PolarsError:  # it cannot tell how they are written
        return None
    return found if found.null_count() == texts.null_count() else None


def from_parquet(content: bytes, source: str) -> tuple[Any, list[str]]:
    """The frame of a Parquet file, and notes."""
    return _binary("read_parquet", content, source, "Parquet", "scan_parquet")


def from_arrow(content: bytes, source: str, stream: bool) -> tuple[Any, list[str]]:
    """The frame of an Arrow (Feather 2) file, or of a stream of Arrow batches, and notes."""
    if stream:
        return _binary("read_ipc_stream", content, source, "Arrow")
    return _binary("read_ipc", content, source, "Arrow", "scan_ipc")


def _binary(
    reader: str, content: bytes, source: str, what: str, scan: str | None = None
) -> tuple[Any, list[str]]:
    pl = load_polars()
    try:
        if scan is not None:  # a small file may hold a large table
            lazy = getattr(pl, scan)(io.BytesIO(content))
            height = int(lazy.select(pl.len()).collect().item())
            require_room(CELL * height * len(lazy.collect_schema()), source)
        frame = getattr(pl, reader)(io.BytesIO(content))
    except InputError:
        raise
    except (pl.exceptions.PolarsError, OSError, ValueError, pl.exceptions.PanicException) as error:
        raise InputError(
            f"{source} is damaged or cut off: it cannot be read as {what} ({first_line(error)})"
        ) from None
    return _plain(frame, source)


def _plain(frame: Frame, source: str) -> tuple[Any, list[str]]:
    """Without columns that no features or kernels are for, and notes about these."""
    pl = load_polars()
    if frame.height == 0 or frame.width == 0:
        raise InputError(f"{source} has no rows, got shape {frame.shape}: pass at least one row")
    odd = [
        (name, str(dtype).partition("(")[0])
        for name, dtype in frame.schema.items()
        if isinstance(dtype, pl.Struct | pl.Object) or dtype == pl.Binary
    ]
    if len(odd) == frame.width:
        raise InputError(f"{source} has no column but of {odd[0][1]}: pass numbers, texts or dates")
    notes = [
        f"column {name!r} of {source} was left out: there are no features for {kind}" for name, kind in odd
    ]
    return _without_wide_integers(frame.drop([name for name, _ in odd])), notes


def _without_wide_integers(frame: Frame) -> Any:
    """Whole numbers of more than 64 bits as floats, for NumPy has no such."""
    pl = load_polars()
    types = zip(frame.columns, frame.dtypes, strict=True)
    wide = [name for name, dtype in types if type(dtype).__name__ in ("Int128", "UInt128")]
    return frame.with_columns(pl.col(name).cast(pl.Float64) for name in wide) if wide else frame


# --- from and to other things ------------------------------------------------------------------------------


def frame_of(columns: dict[str, Any]) -> Any:
    """A frame of named columns: arrays, or lists in which None is missing."""
    pl = load_polars()
    return pl.DataFrame(
        {
            name: pl.Series(name, values, strict=False, nan_to_null=isinstance(values, np.ndarray))
            for name, values in columns.items()
        }
    )


def stacked(parts: Sequence[tuple[str, Frame, Callable[[], Any] | None]]) -> Any:
    """The rows of frames with the same columns, whose names are told in refusals.

    Numbers of several types become those of one. A column that holds texts in one part of a delimited file,
    and something else in another, holds its texts as they stand, as it would in one file.
    """
    pl = load_polars()
    columns = parts[0][1].columns
    cells = cache(lambda i: parts[i][2]())  # type: ignore[misc]
    read = [frame.select(columns) for _, frame, _ in parts]
    for column in columns:
        dtypes = [frame.schema[column] for frame in read]
        if len(set(dtypes)) == 1:
            continue
        kinds = {
            _kind(dtype): name
            for (name, *_), frame, dtype in zip(parts, read, dtypes, strict=True)
            if frame[column].null_count() < frame.height
        }
        if len(kinds) > 1 and not all(texts for *_, texts in parts):
            (one, first), (other, second) = list(kinds.items())[:2]
            raise InputError(
                f"column {column!r} holds {one} in {first} and {other} in {second}: write it in one way"
            )
        if len(kinds) > 1:
            for i, dtype in enumerate(dtypes):
                if dtype != pl.String:
                    there = read[i][column].is_not_null()
                    stands = cells(i)[column].cast(pl.String).str.strip_chars()
                    read[i] = read[i].with_columns(pl.when(there).then(stands).alias(column))
            continue
        empty = [frame[column].null_count() == frame.height for frame in read]
        known = next((dtype for dtype, none in zip(dtypes, empty, strict=True) if not none), dtypes[0])
        read = [
            frame.with_columns(pl.lit(None, known).alias(column)) if none else frame
            for frame, none in zip(read, empty, strict=True)
        ]
    return pl.concat(read, how="vertical_relaxed")


def stacked_texts(parts: Sequence[Frame], frame: Frame) -> Any:
    """The texts of cells, one part after the other; numbers with decimal commas as ``frame`` has them."""
    pl = load_polars()
    numbers = [name for name in frame.columns if any(part.schema[name].is_float() for part in parts)]
    texts = [part.select(frame.columns).cast(dict.fromkeys(numbers, pl.String)) for part in parts]
    return pl.concat(texts).with_columns(frame.select(numbers))


def _kind(dtype: Any) -> str:
    """What is in a column, for people: kinds that cannot become one another."""
    pl = load_polars()
    if dtype.is_numeric():
        return "numbers"
    if dtype in (pl.Date, pl.Datetime):
        return "dates"
    return "texts" if dtype in (pl.String, pl.Categorical, pl.Enum) else f"{dtype}"


def without(frame: Frame, columns: Sequence[str]) -> Any:
    """A frame without some of its columns."""
    return frame.drop(list(columns))


def write_csv(frame: Frame, added: dict[str, Any], stream: IO[bytes]) -> None:
    """A frame (or None) and more columns to its right, as CSV; lists and lengths of time as in Python."""
    pl = load_polars()
    extra = [pl.Series(name, values) for name, values in added.items()]
    whole = pl.DataFrame(extra) if frame is None else frame.with_columns(extra)
    unwritable = [name for name, dtype in whole.schema.items() if dtype.is_nested() or dtype == pl.Duration]
    if unwritable:
        whole = whole.with_columns(
            pl.Series(name, [None if v is None else str(v) for v in whole[name].to_list()], dtype=pl.String)
            for name in unwritable
        )
    whole.write_csv(stream)


def sampled(path: str, kind: str, rows: int) -> tuple[Any, list[str]] | None:
    """About so many rows of a file that memory has no room for, and notes; None where it has."""
    pl = load_polars()
    try:
        lazy = (pl.scan_parquet if kind == "parquet" else pl.scan_ipc)(path)
        height, width = int(lazy.select(pl.len()).collect().item()), len(lazy.collect_schema())
        if PER_BYTE * CELL * height * width <= memory_budget():
            return None
        frame = lazy.gather_every(max(1, -(-height // rows))).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(f"{path} cannot be read: {first_line(error)}") from None
    return _plain(frame, path)
