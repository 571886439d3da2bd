r"""Tables in CSV and other delimited text, by polars, a block of lines at a time.

What a column holds is told by the first lines; a cell that is no number in a column of numbers is missing.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from mercer.data.sources.frames import (
    column_type,
    load_polars,
    readable,
    require_same_columns,
    values_of,
)
from mercer.data.sources.reader import TEXT, Batch, Reader
from mercer.errors import InputError

#: Bytes of text that tell what columns hold: a few thousand lines of most tables.
_SAMPLE_BYTES = 2**18
#: Bytes of text that are read at a time, which take some twelve times as much while they become numbers.
_READ_BYTES = 2**22
#: Bytes after which a line is no line, but a quote that is never closed.
_LINE_BYTES = 2**27
_SEPARATORS = ",;\t|"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class DelimitedFiles(Reader):
    """The rows of one text file, or of several one after the other, each with the same header."""

    def __init__(self, files: list[Path]) -> None:
        self._files = files
        self._headers = [_Header(file) for file in files]
        first = self._headers[0]
        for file, header in zip(files, self._headers, strict=True):
            require_same_columns(first.names, header.names, files[0], file)
        self.names = first.names if first.is_named else None
        kinds = [column_type(dtype) for dtype in first.schema.values()]
        self.may_be_whole = [dtype.is_integer() for dtype in first.schema.values()]
        self.types = [
            np.dtype(np.float64) if isinstance(kind, np.dtype) and kind.kind in "iuf" else kind
            for kind in kinds
        ]

    def batches(self, columns: Sequence[int], rows: int) -> Iterator[Batch]:
        pl = load_polars()
        names = [self._headers[0].names[j] for j in columns]
        kinds = dict(zip(self._headers[0].names, self.types, strict=True))
        for file, header in zip(self._files, self._headers, strict=True):
            schema = dict.fromkeys(header.names, pl.String)
            for name in names:
                if kinds[name] != TEXT:
                    schema[name] = pl.Boolean if kinds[name] == np.dtype(bool) else pl.Float64
            for block in _blocks(file, header):
                with readable(file, "CSV"):
                    frame = pl.read_csv(
                        io.BytesIO(header.line + b"\n" + block),
                        separator=header.separator,
                        schema=schema,
                        columns=names,
                        ignore_errors=True,
                    )
                for start in range(0, frame.height, rows):
                    part = frame.slice(start, rows)
                    yield [values_of(part[name]) for name in names]


class _Header:
    """The first line of a file, and what the lines after it hold."""

    def __init__(self, file: Path) -> None:
        with file.open("rb") as stream:
            sample = stream.read(_SAMPLE_BYTES)
            is_all = not stream.read(1)
        self.begin = len(_BYTE_ORDER_MARK) if sample.startswith(_BYTE_ORDER_MARK) else 0
        sample = sample[self.begin :]
        end = _end_of_lines(sample, first=True)
        line = (sample if end < 0 else sample[:end]).rstrip(b"\r\n")
        text = line.decode("utf-8", "replace")
        self.separator = max(_SEPARATORS, key=text.count)
        cells = text.split(self.separator)
        self.is_named = not all(map(_is_number, cells))
        if self.is_named:
            self.line = line
            self.begin += max(end, len(line))
            if end < 0 or (is_all and not sample[end:].strip()):
                raise InputError(f"{file} has a header and no rows: pass at least one row")
        else:
            self.line = self.separator.join(f"column_{j}" for j in range(len(cells))).encode()
            sample = self.line + b"\n" + sample
        if not is_all:
            sample = sample[: max(_end_of_lines(sample), 0)]
        pl = load_polars()
        with readable(file, "CSV"):
            frame = pl.read_csv(
                io.BytesIO(sample),
                separator=self.separator,
                infer_schema_length=None,
                try_parse_dates=True,
            )
        self.schema: dict[str, Any] = dict(frame.schema)
        self.names = list(self.schema)
        twice = [name for name in self.names if f"{name}_duplicated_0" in self.names]
        if twice:
            raise InputError(f"{file} has two columns of the name {twice[0]!r}: rename one")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _blocks(file: Path, header: _Header) -> Iterator[bytes]:
    """The lines below the header, whole ones, about so many bytes at a time."""
    with readable(file, "CSV"), file.open("rb") as stream:
        stream.seek(header.begin)
        yield from _whole_lines(stream)


def _whole_lines(stream: IO[bytes]) -> Iterator[bytes]:
    kept = b""
    while more := stream.read(_READ_BYTES):
        kept += more
        end = _end_of_lines(kept)
        # Blank lines wait for what comes after them: at the end of a file they are no rows.
        if end > 0 and (rows := kept[:end].rstrip(b"\r\n")):
            end = kept.index(b"\n", len(rows)) + 1
            yield kept[:end]
            kept = kept[end:]
        elif len(kept) > _LINE_BYTES:
            raise InputError(
                f"{stream.name} has a line of more than {_LINE_BYTES >> 20} MiB: close the quote that is "
                "open there, or save the table as Parquet"
            )
    if kept.strip():
        yield kept


def _end_of_lines(text: bytes, first: bool = False) -> int:
    """Where the last line ends (or the first): after a line break outside of quotes; -1 where none does."""
    quotes = text.count(b'"')
    if first or quotes == 0:
        end = text.find(b"\n") if first else text.rfind(b"\n")
        while first and end >= 0 and text.count(b'"', 0, end) % 2:
            end = text.find(b"\n", end + 1)
        return end + 1 if end >= 0 else -1
    last = len(text)
    while (end := text.rfind(b"\n", 0, last)) >= 0:
        quotes -= text.count(b'"', end, last)
        if quotes % 2 == 0:
            return end + 1
        last = end
    return -1
