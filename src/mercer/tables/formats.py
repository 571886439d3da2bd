r"""``read_table``: any file with rows and columns, by what it holds rather than what it is called.

>>> import tempfile, pathlib
>>> path = pathlib.Path(tempfile.mkdtemp()) / "ages.csv"
>>> _ = path.write_text("age,city\n31,Rome\n45,Oslo\n")
>>> table = read_table(path)
>>> table.format, table.columns, table.rows
('csv', ['age', 'city'], 2)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mercer.data.sources.database import is_database
from mercer.data.sources.files import stamps_of
from mercer.errors import InputError
from mercer.tables import frames
from mercer.tables.arff import is_arff, read_arff
from mercer.tables.arrays import columns_of
from mercer.tables.databases import read_database
from mercer.tables.delimited import decode, read_delimited
from mercer.tables.intake import fewer_lines, require_room
from mercer.tables.parts import joined, name_of, parts_of
from mercer.tables.source import STANDARD_INPUT, Source, read_bytes
from mercer.tables.svmlight import is_svmlight, read_svmlight
from mercer.tables.table import LABEL, Table

_PICKLE = "is a pickle, which is not read because that could run code: save it as Parquet or CSV"

_SPACED = "at equal distances"  # what notes of rows that were left out say
#: what is recognised and not read, by its first bytes, and what to do instead
_FOREIGN = {
    b"FEA1": "is a Feather file of the first version: write it again with version 2",
    b"PK\x03\x04": "is an archive of another kind (a workbook or a model?): save the table as CSV or Parquet",
    b"\xd0\xcf\x11\xe0": "is an old workbook: save the table as CSV",
    b"\x89HDF": "is an HDF5 file: save the table as Parquet or CSV",
    b"\x80\x03": _PICKLE,
    b"\x80\x04": _PICKLE,
    b"\x80\x05": _PICKLE,
    b"%PDF": "is a PDF: save the table as CSV",
    b"SQLite format 3": "is a database: name one of its tables, sqlite:///PATH?table=NAME",
}


def read_table(
    path: Any,
    *,
    header: bool | None = None,
    missing: Sequence[str] = (),
    rows: int | None = None,
    texts: bool = False,
    most: int | None = None,
) -> Table:
    """The table of a file, of several files, or of standard input ("-").

    Parameters
    ----------
    path : CSV, TSV or other delimited text, Parquet, Arrow (Feather), LIBSVM (svmlight), ARFF, .npy, .npz;
        also packed by gzip, bzip2, xz, zstd or zip. A folder, a pattern (``rides/*.parquet``) and a list of
        paths are the parts of one table: of one format, with the same columns in any order. Or a database,
        ``sqlite:///PATH?table=NAME`` or ``?query=SELECT …``; ``duckdb:///…`` where duckdb is installed
    header : whether the first line of a text file names its columns; None looks
    missing : texts that stand for a missing value, beside the usual ones (nothing, NA, NaN, null, ?)
    rows : so many rows, or somewhat fewer, at equal distances. Then a file may be larger than memory, if it
        is Parquet, Arrow or text without line breaks inside its fields
    texts : whether the texts of a delimited file are kept too, for `Table.as_written`
    most : bytes of text, once it is unpacked, that there is time for: of a longer one as many lines are read,
        at equal distances
    """
    if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 2):
        raise InputError(f"rows must be a whole number of at least 2, got {rows!r}: pass how many to read")
    parts, asked = parts_of(path), _Asked(header, missing, rows, texts, most)
    return _joined(parts, asked) if len(parts) > 1 else _read(parts[0], asked)


class _Asked(NamedTuple):
    """The arguments of `read_table`."""

    header: bool | None
    missing: Sequence[str]
    rows: int | None
    texts: bool
    most: int | None


def _joined(parts: Sequence[Any], asked: _Asked) -> Table:
    """The table of several files, of each of which as much is read as its size is of all."""
    rows, most = asked.rows, asked.most
    name, sizes = name_of(parts), [stamp.size for stamp in stamps_of(list(map(Path, parts)))]
    if rows is None:
        require_room(sum(sizes), name)

    def share(whole: int | None, size: int) -> int | None:
        return None if whole is None else max(2, -(-whole * size // max(sum(sizes), 1)))

    tables, cells = [], 0
    for part, size in zip(parts, sizes, strict=True):
        table = _read(part, asked._replace(rows=share(rows, size), texts=True, most=share(most, size)))
        tables.append(table)
        cells += table.rows * len(table.columns) if table.frame is not None else 0
        require_room(frames.CELL * cells, name)
    is_thinned = any(_SPACED in note for table in tables for note in table.notes)
    kept = [tuple(note for note in table.notes if _SPACED not in note) for table in tables]
    whole = joined([replace(table, notes=notes) for table, notes in zip(tables, kept, strict=True)], name)
    if rows is not None and whole.rows > rows:
        whole = whole.at(equally_spaced(whole.rows, rows))
    if is_thinned:
        note = f"{whole.rows:,} rows of {name} were taken, of each file as many as its size tells, {_SPACED}"
        whole = replace(whole, notes=(*whole.notes, note))
    return whole if asked.texts else replace(whole, texts=None)


def _read(path: Any, asked: _Asked) -> Table:
    """The table of one file, or of a database."""
    rows, most = asked.rows, asked.most
    if is_database(path):
        return read_database(path, asked.missing, rows, most)
    if rows is not None and path != STANDARD_INPUT and (table := _of_columns(path, rows)) is not None:
        return table
    source = read_bytes(path, rows)
    notes: tuple[str, ...] = ()
    if most is not None and source.lines is None:
        source, notes = _in_time(source, most)
    table = _dispatch(source.content, source.name, asked)
    table = replace(table, notes=(*table.notes, *notes))
    if rows is None or (table.rows <= rows and source.lines is None):
        return table
    taken = min(rows, table.rows)
    all_there_is = f"{table.rows:,} rows" if source.lines is None else f"{source.lines:,} lines"
    note = f"{taken:,} of the {all_there_is} were taken, {_SPACED}"
    return replace(table.at(equally_spaced(table.rows, taken)), notes=(*table.notes, note))


def _in_time(source: Source, most: int) -> tuple[Source, tuple[str, ...]]:
    """At most so many bytes of the lines of a text, and a note that says so; other files as they are."""
    content, lines = fewer_lines(source.content, most)
    if lines is None:
        return source, ()
    share = len(content) / len(source.content)
    note = (
        f"there is no time to read all {lines:,} lines of {source.name}: {share:.0%} of them were taken, "
        f"{_SPACED}; a longer max_time takes more"
    )
    return source._replace(content=content), (note,)


def equally_spaced(n: int, rows: int) -> np.ndarray:  # (rows,)
    """Positions of so many of n rows.

    >>> equally_spaced(10, 4)
    array([0, 2, 5, 7])
    """
    return np.arange(rows) * n // rows


def _dispatch(content: bytes, name: str, asked: _Asked) -> Table:
    if content.startswith(b"PAR1"):
        frame, more = frames.from_parquet(content, name)
        return Table(frame, name, "parquet", tuple(more))
    if content.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        stream = not content.startswith(b"ARROW1")
        frame, more = frames.from_arrow(content, name, stream)
        return Table(frame, name, "arrow", tuple(more))
    if content.startswith(b"\x93NUMPY") or (content.startswith(b"PK\x03\x04") and b".npy" in content[:400]):
        columns = columns_of(content, name)
        return Table(frames.frame_of(columns), name, "numpy", label=LABEL if LABEL in columns else None)
    for magic, what in _FOREIGN.items():
        if content.startswith(magic):
            raise InputError(f"{name} {what}")
    text, note = decode(content, name)
    notes = () if note is None else (note,)
    _refuse_other_text(text, name)
    if is_arff(text):
        return Table(frames.frame_of(read_arff(text, name)), name, "arff", notes)
    if is_svmlight(text):
        table = read_svmlight(text, name)
    else:
        header, missing, texts = asked.header, asked.missing, asked.texts
        table = read_delimited(text, name, header=header, missing=missing, texts=texts)
    return replace(table, notes=(*notes, *table.notes))


def _refuse_other_text(text: str, name: str) -> None:
    start = text[:200].lstrip().lower()
    if not start:
        raise InputError(f"{name} is empty: pass a file with at least one row")
    if start.startswith(("<!doctype", "<html", "<?xml")):
        raise InputError(f"{name} is a web page or XML, not a table: was the download refused?")
    if start.startswith(("{", "[")) and Path(name).suffix.lower() in (".json", ".jsonl", ".ndjson"):
        raise InputError(f"{name} is JSON: save the table as CSV or Parquet")


def _of_columns(path: Any, rows: int) -> Table | None:
    """Some rows of a Parquet or Arrow file that is too large to be read as a whole; None of other files."""
    try:
        with Path(path).open("rb") as stream:
            start = stream.read(8)
    except (OSError, TypeError, ValueError):
        return None
    kind = "parquet" if start.startswith(b"PAR1") else "arrow" if start.startswith(b"ARROW1") else None
    found = None if kind is None else frames.sampled(str(path), kind, rows)
    if found is None or kind is None:
        return None
    frame, notes = found
    note = f"{frame.height:,} rows of {path} were read, {_SPACED}"
    return Table(frame, str(path), kind, (*notes, note))
