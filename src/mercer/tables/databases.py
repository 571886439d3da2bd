r"""A table in a database, as a frame: see `mercer.data.sources.database`.

>>> import sqlite3, tempfile
>>> place = tempfile.mkdtemp() + "/rides.db"
>>> with sqlite3.connect(place) as connection:
...     _ = connection.execute("create table rides (day text, km real)")
...     _ = connection.execute("insert into rides values ('2026-01-31', 1.5), ('2026-02-01', null)")
>>> table = read_database(f"sqlite:///{place}?table=rides")
>>> table.frame["day"].to_list(), table.frame["km"].to_list()
([datetime.date(2026, 1, 31), datetime.date(2026, 2, 1)], [1.5, None])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mercer.data.sources.database import ColumnKinds, Database
from mercer.errors import InputError
from mercer.tables import frames
from mercer.tables.delimited import doubt
from mercer.tables.intake import require_room
from mercer.tables.table import Table

_AT_ONCE = 4096  # rows that come at a time


def read_database(
    url: str, missing: Sequence[str] = (), rows: int | None = None, most: int | None = None
) -> Table:
    """Its rows; at most so many, or so many bytes of them, at equal distances."""
    database = Database.of(url)
    kinds, size = ColumnKinds(database.name), 0
    parts: list[Any] = []
    n = database.count() if rows is not None or most is not None else None
    wanted = rows
    for names, batch in database.batches(_AT_ONCE):
        start = kinds.rows
        kinds.look(names, batch)
        part = frames.of_rows(names, batch, kinds.kinds, database.name)
        if n is not None and not parts and most is not None and batch:
            fitting = max(int(most * len(batch) / max(part.estimated_size(), 1)), len(batch))
            wanted = fitting if rows is None else min(rows, fitting)
        if n is not None and wanted is not None and wanted < n:
            part = part[_kept(start, part.height, n, wanted)]
        parts.append(part)
        size += part.estimated_size()
        require_room(size, database.name)
    if kinds.rows == 0:
        raise InputError(f"{database.name} has no rows: pass a table, or a query, with at least one")
    notes = []
    frame, orders = frames.of_parts(parts, kinds.kinds, missing)
    if frame.height < kinds.rows:
        notes.append(
            f"{frame.height:,} of the {kinds.rows:,} rows of {database.name} were taken, at equal distances"
        )
    notes += [doubt(name, database.name) for name, found in orders.items() if len(found) > 1]
    dates = {name: found[0] for name, found in orders.items()}
    return Table(frame, database.name, database.kind, tuple(notes), dates=dates)


def _kept(start: int, height: int, n: int, wanted: int) -> Any:
    """Which of the rows from ``start`` on are among so many of n, at equal distances.

    >>> _kept(0, 5, 10, 4), _kept(5, 5, 10, 4)
    ([0, 2], [0, 2])
    """
    first, last = -(-start * wanted // n), -(-(start + height) * wanted // n)
    return [k * n // wanted - start for k in range(first, last) if 0 <= k * n // wanted - start < height]
