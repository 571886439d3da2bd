r"""Several files that are the parts of one table: of one format, with the same columns.

>>> import tempfile, pathlib
>>> folder = pathlib.Path(tempfile.mkdtemp())
>>> for name in ("b.csv", "a.csv", "_log"):
...     _ = (folder / name).write_text("x,y\n1,2\n")
>>> [part.name for part in parts_of(folder)]
['a.csv', 'b.csv']
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from mercer.data.sources.database import is_database
from mercer.data.sources.files import find_files
from mercer.data.types import Frame
from mercer.errors import InputError
from mercer.kernels.columns.cells import values
from mercer.tables import frames
from mercer.tables.dates import orders_of
from mercer.tables.delimited import doubt, refuse_mixed
from mercer.tables.source import STANDARD_INPUT
from mercer.tables.svmlight import stacked_svmlight
from mercer.tables.table import Table


def parts_of(path: Any) -> list[Any]:
    """The files of a path, or of several: a file itself, those of a folder or of a pattern by their names."""
    if not isinstance(path, list | tuple):
        if is_database(path):
            return [path]
        is_text = isinstance(path, str | os.PathLike)
        if is_text and (os.path.isdir(path) or (glob.has_magic(str(path)) and not os.path.exists(path))):
            return list(find_files(path))
        return [path]
    if not path:
        raise InputError("no file is named: pass at least one")
    found = [part for one in path for part in parts_of(one)]
    if len(found) > 1 and STANDARD_INPUT in found:
        raise InputError("standard input (-) is a table by itself: name files, or - alone")
    if len(found) > 1 and any(map(is_database, found)):
        raise InputError("a database is a table by itself: name files, or one address of a database")
    known = set()
    for part in found:
        place = os.path.realpath(part) if isinstance(part, str | os.PathLike) else part
        if place in known:
            raise InputError(
                f"{part} is named twice: rows that a model learns from would be among those that test it, so "
                "name each file once"
            )
        known.add(place)
    return found


def name_of(parts: Sequence[Any]) -> str:
    """What the table of some files is called.

    >>> name_of(["data/rides/a.csv", "data/rides/b.csv"]), name_of(["a.csv", "b.csv"]), name_of(["a.csv"])
    ('data/rides (2 files)', 'a.csv and 1 more', 'a.csv')
    """
    folders = {os.path.dirname(part) for part in parts}
    if len(parts) == 1:
        return str(parts[0])
    if len(folders) == 1 and (folder := folders.pop()):
        return f"{folder} ({len(parts)} files)"
    return f"{parts[0]} and {len(parts) - 1} more"


def joined(tables: Sequence[Table], name: str) -> Table:
    """The rows of the tables, one after the other; what was noticed of several of them is told once."""
    first = tables[0]
    for table in tables:
        if table.format != first.format:
            raise InputError(
                f"{first.name} is {first.format} and {table.name} is {table.format}: pass files of one format"
            )
    doubts = {doubt(column, table.name) for table in tables for column in table.dates}
    notes = [note.replace(table.name, name) for table in tables for note in table.notes if note not in doubts]
    if first.format == "libsvm":
        whole = stacked_svmlight(tables, name)
        return replace(whole, notes=tuple(dict.fromkeys(notes)))
    for table in tables[1:]:
        _require_same_columns(first, table)
    frame = frames.stacked([(table.name, table.frame, table.texts) for table in tables])
    dates: dict[str, str] = {}
    if first.format == "csv":
        refuse_mixed(frame, name, False)
        for column in dict.fromkeys(column for table in tables for column in table.dates):
            orders = orders_of(values(frame, frame.columns.index(column)))
            if orders:
                dates[column] = orders[0]
            if len(orders) > 1:
                notes.append(doubt(column, name))
    texts = partial(_as_written, tables, frame) if all(table.texts is not None for table in tables) else None
    return replace(first, frame=frame, name=name, notes=tuple(dict.fromkeys(notes)), dates=dates, texts=texts)


def _as_written(tables: Sequence[Table], frame: Frame) -> Any:
    return frames.stacked_texts([table.as_written() for table in tables], frame)


def _require_same_columns(first: Table, other: Table) -> None:
    for one, two in ((first, other), (other, first)):
        lacking = [column for column in one.columns if column not in set(two.columns)]
        if lacking:
            more = f" and {len(lacking) - 1} more of its columns" if len(lacking) > 1 else ""
            raise InputError(
                f"{one.name} has the column {lacking[0]!r}{more}, and {two.name} has not: pass files with "
                "the same columns"
            )
