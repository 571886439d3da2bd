r"""Tables in databases: ``sqlite:///rides.db?table=rides``, ``duckdb:///rides.duckdb?query=select …``.

A connection may only read, and a statement is one SELECT. Rows come in batches: a database may be larger than
memory. SQLite lets each cell have a type of its own, so that the type of a column is what all of its cells
are, found in one pass.

>>> import sqlite3, tempfile
>>> place = tempfile.mkdtemp() + "/rides.db"
>>> with sqlite3.connect(place) as connection:
...     _ = connection.execute("create table rides (km real, city text)")
...     _ = connection.execute("insert into rides values (1.5, 'Rome'), (null, 'Oslo')")
>>> database = Database.of(f"sqlite:///{place}?table=rides")
>>> [dict(zip(names, rows[1])) for names, rows in database.batches(10)]
[{'km': None, 'city': 'Oslo'}]
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np

from mercer.data.sources.reader import TEXT, Batch, ColumnType, Reader
from mercer.errors import InputError

_URL = re.compile(r"(sqlite|duckdb):///([^?]*)(?:\?(.*))?", re.DOTALL)
_SECONDS = 5.0  # to wait for another program that writes
#: what SQLite may be asked to do: SQLITE_READ, SQLITE_SELECT, SQLITE_FUNCTION, SQLITE_RECURSIVE of sqlite3
_READING, _ALLOW, _DENY = {20, 21, 31, 33}, 0, 1
_AT_ONCE = 4096  # rows of which the types are looked at at a time
_NUMBERS = {"whole numbers", "numbers"}

#: names of columns, and rows of as many values
Rows = tuple[list[str], list[tuple[Any, ...]]]


def is_database(path: Any) -> bool:
    """Whether this is the address of a database, and no file.

    >>> is_database("sqlite:///a.db"), is_database("a.db"), is_database("postgresql://host/a")
    (True, False, True)
    """
    return isinstance(path, str) and re.match(r"[a-z][a-z0-9+]+://", path) is not None


@dataclass(frozen=True)
class Database:
    """One SELECT in the file of a database."""

    kind: str
    path: str
    statement: str
    #: for messages
    name: str

    @classmethod
    def of(cls, url: str) -> Database:
        """From ``sqlite:///PATH?table=NAME`` or ``?query=SELECT …``; duckdb in the place of sqlite."""
        found = _URL.fullmatch(url)
        if found is None or not found[2]:
            raise InputError(
                f"{url!r} is no address of a database that can be read: write sqlite:///PATH?table=NAME, or "
                "duckdb:///PATH?table=NAME; of others, save the table as Parquet or CSV"
            )
        kind, path = found[1], unquote(found[2])
        option, _, value = (found[3] or "").partition("=")
        value, short = unquote(value).strip(), f"{kind}:///{found[2]}"
        if option == "query" and value:
            return cls(kind, path, value.rstrip(";"), f"the query of {short}")
        if option != "table" or not value:
            cls(kind, path, "", short)._refuse_without_table()
        quoted = value.replace('"', '""')
        database = cls(kind, path, f'select * from "{quoted}"', f"{short}?table={value}")
        database._require_table(value)
        return database

    def count(self) -> int:
        """How many rows there are."""
        counting = replace(self, statement=f"select count(*) from ({self.statement}) as counted")
        return next(int(rows[0][0]) for _, rows in counting.batches(1))

    def batches(self, size: int) -> Iterator[Rows]:
        """The rows, so many at a time, with the names of the columns; the first batch may have none."""
        with self._cursor() as cursor:
            names = [str(column[0]) for column in cursor.description]
            doubled = next((name for name in names if names.count(name) > 1), None)
            if doubled is not None:
                raise InputError(
                    f"{self.name} has two columns {doubled!r}: give each a name of its own, "
                    f"select a.{doubled} as …"
                )
            rows = cursor.fetchmany(size)
            yield names, rows
            while rows := cursor.fetchmany(size):
                yield names, rows

    def tables(self) -> list[str]:
        """The names of the tables and views."""
        system = "sqlite_master where type in ('table', 'view') and name not like 'sqlite_%'"
        if self.kind == "duckdb":
            system = "(select table_name as name from information_schema.tables)"
        listing = Database(self.kind, self.path, f"select name from {system} order by name", self.name)
        return [row[0] for _, rows in listing.batches(_AT_ONCE) for row in rows]

    # --- reading -----------------------------------------------------------------------------------------

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        """The statement while it runs; what a database raises is said in a sentence."""
        if not os.path.isfile(self.path):
            what = "is a folder" if os.path.isdir(self.path) else "does not exist"
            raise InputError(
                f"the database {self.path!r} {what}: check the path; sqlite:///a.db is in this folder, "
                "sqlite:////data/a.db is not"
            )
        import sqlite3  # Most processes open no database, and start without it.

        errors: Any = sqlite3.Error if self.kind == "sqlite" else _duckdb().Error
        try:
            with closing(self._connection()) as connection:
                yield connection.execute(self.statement)
        except (errors, sqlite3.Warning) as error:
            raise InputError(f"{self.name} cannot be read: {self._reason(error)}") from None

    def _connection(self) -> Any:
        if self.kind == "duckdb":
            library = _duckdb()
            connection = library.connect(
                self.path, read_only=True, config={"enable_external_access": "false"}
            )
            statements = connection.extract_statements(self.statement)
            if len(statements) != 1 or statements[0].type != library.StatementType.SELECT:
                connection.close()
                raise InputError(f"{self.name} is not one SELECT: nothing else is run")
            return connection
        import sqlite3

        place = f"file:{quote(os.path.abspath(self.path))}?mode=ro"
        connection = sqlite3.connect(place, uri=True, timeout=_SECONDS)
        connection.set_authorizer(_only_reading)
        return connection

    def _reason(self, error: BaseException) -> str:
        said = str(error).splitlines()[0].strip().rstrip(".")
        if "one statement" in said:
            return "it is more than one statement: pass one SELECT"
        if "not authorized" in said or "prohibited" in said:
            return "it is no SELECT, and nothing else is run: pass one SELECT"
        if "locked" in said or "lock on file" in said:
            return "another program writes to it: wait until that has ended, or read a copy"
        if "not a database" in said:
            return f"{self.path} is no file of {self.kind}, or it is encrypted"
        return f"{said}; check the query, or the file"

    # --- refusals ----------------------------------------------------------------------------------------

    def _require_table(self, name: str) -> None:
        tables = self.tables()
        if name in tables or name.lower() in map(str.lower, tables):
            return
        near = get_close_matches(name, tables, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "name one of them"
        raise InputError(f"{self.path} has no table {name!r}, it has {_listed(tables)}: {hint}")

    def _refuse_without_table(self) -> None:
        raise InputError(
            f"{self.name} names no table: write {self.name}?table=NAME, or pass one SELECT with --query, or "
            f"as ?query=…; it has {_listed(self.tables())}"
        )


def _duckdb() -> Any:
    try:
        return import_module("duckdb")
    except ModuleNotFoundError:
        raise ImportError("duckdb is not installed: run  pip install duckdb") from None


def _only_reading(action: int, *rest: Any) -> int:
    return _ALLOW if action in _READING else _DENY


def _listed(tables: Sequence[str]) -> str:
    if not tables:
        return "no tables"
    return ", ".join(map(repr, tables[:12])) + (", …" if len(tables) > 12 else "")


# --- what cells are ------------------------------------------------------------------------------------


def kind_of(cell: type) -> str:
    """What cells of a type of Python hold, in words.

    >>> [kind_of(cell) for cell in (int, float, str, bool)]
    ['whole numbers', 'numbers', 'texts', 'yes or no']
    """
    known = {bool: "yes or no", int: "whole numbers", float: "numbers", Decimal: "numbers", str: "texts"}
    known |= {date: "dates", datetime: "times of a day", time: "hours", timedelta: "lengths of time"}
    return known.get(cell, cell.__name__)


class ColumnKinds:
    """What the columns of a database hold, batch by batch; a column of two kinds is refused."""

    def __init__(self, source: str) -> None:
        self.source, self.rows = source, 0
        self.names: list[str] = []
        #: by column: what it holds, "" where all is missing so far, and the first row with it
        self.kinds: list[str] = []
        self._first: list[int] = []

    def look(self, names: list[str], rows: list[tuple[Any, ...]]) -> None:
        """At some more rows."""
        if not self.names:
            self.names, self.kinds, self._first = names, [""] * len(names), [0] * len(names)
        for j, column in enumerate(zip(*rows, strict=True)):
            for cell in dict.fromkeys(map(type, column)):
                if cell is not type(None) and kind_of(cell) != self.kinds[j]:
                    row = next(i for i, value in enumerate(column) if type(value) is cell)
                    self._join(j, kind_of(cell), self.rows + row + 1)
        self.rows += len(rows)

    def _join(self, j: int, kind: str, row: int) -> None:
        if not self.kinds[j]:
            self.kinds[j], self._first[j] = kind, row
        elif {kind, self.kinds[j]} == _NUMBERS:
            self.kinds[j] = "numbers"
        else:
            name = self.names[j]
            raise InputError(
                f"column {name!r} of {self.source} holds {self.kinds[j]} in row {self._first[j]} and {kind} "
                f"in row {row}: make them one kind in a query, such as select cast({name} as real)"
            )


class DatabaseRows(Reader):
    """The rows of a database, for `DataSource`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        kinds = ColumnKinds(database.name)
        for names, rows in database.batches(_AT_ONCE):
            kinds.look(names, rows)
        self.names = kinds.names
        types = {"whole numbers": np.dtype(np.int64), "numbers": np.dtype(float), "yes or no": np.dtype(bool)}
        types |= {"": np.dtype(float), "texts": TEXT}  # type: ignore[dict-item]
        self.types: list[ColumnType] = [types.get(kind, kind) for kind in kinds.kinds]
        self.may_be_whole = [False] * len(self.types)

    def batches(self, columns: Sequence[int], rows: int) -> Iterator[Batch]:
        for _, some in self._database.batches(rows):
            if some:
                every = list(zip(*some, strict=True))
                yield [self._values(every[j], self.types[j]) for j in columns]

    @staticmethod
    def _values(column: tuple[Any, ...], kind: ColumnType) -> np.ndarray:
        if not isinstance(kind, np.dtype):
            return np.array(column, dtype=object)
        if None in column:
            return np.array([np.nan if value is None else value for value in column], dtype=np.float64)
        return np.array(column, dtype=kind)


def stamped_files(database: Database) -> list[Path]:
    """The files that a database is in: SQLite's newest rows may be beside it."""
    beside = [Path(f"{database.path}{end}") for end in ("-wal", "-journal", ".wal")]
    return [Path(database.path), *(file for file in beside if file.exists())]
