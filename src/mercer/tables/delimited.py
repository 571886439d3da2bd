r"""Delimited text: which character separates the fields, whether there is a header, whether rows are whole.

>>> layout("a;b\n1,5;2\n2,5;3\n", "t.csv")
Layout(separator=';', header=True, decimal_comma=True)

The file is checked before it is parsed, so that what is wrong is told with its line:

>>> read_delimited("a,b\n1,2\n3\n", "t.csv")
Traceback (most recent call last):
mercer.errors.InputError: line 3 of t.csv, the last, has 1 field where the others have 2: is the file cut off?
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np

from mercer.data.types import Frame
from mercer.errors import InputError
from mercer.tables.frames import MISSING, Body, as_they_stand, from_text, texts_of
from mercer.tables.table import Table

_SEPARATORS = (",", "\t", ";", "|", " ")
_LOOKED_AT = 200  # lines that the layout is found from
_LINES, _LETTERS = 20, 1 << 18  # where lines are long: so many of them, or those of so many letters
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity|nan)", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
_LONGEST_FIELD = 2**31 - 1  # characters of a field: csv refuses more than 131,072 unless told


#: what files begin with that say their encoding; that of UTF-32 begins as that of UTF-16 does
_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


@dataclass(frozen=True)
class Layout:
    """How a text file is written."""

    separator: str
    header: bool
    decimal_comma: bool = False


# --- text -----------------------------------------------------------------------------------------------


def decode(content: bytes, name: str) -> tuple[str, str | None]:
    r"""The text, its lines ended by \n alone, and a note where the encoding had to be guessed.

    >>> decode("Zürich".encode("latin-1"), "t.csv")
    ('Zürich', 't.csv is not UTF-8: it was read as Windows-1252')
    """
    text, note = _decode(content, name)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text, note


def _decode(content: bytes, name: str) -> tuple[str, str | None]:
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            try:
                return content.decode(encoding), None
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{name} is damaged: it begins as {encoding} and is not ({error.reason})"
                ) from None
    if b"\x00" in content[:4096]:
        raise InputError(
            f"{name} is no table: it holds null bytes; pass CSV, Parquet, Arrow, ARFF, LIBSVM or NumPy"
        )
    try:
        return content.decode("utf-8"), None
    except UnicodeDecodeError:
        pass
    if (np.frombuffer(content[:4096], np.uint8) < 9).mean() > 0.01:
        raise InputError(f"{name} is no table: it holds bytes that no text has")
    return content.decode("cp1252", "replace"), f"{name} is not UTF-8: it was read as Windows-1252"


def _records(text: str, separator: str) -> Iterator[list[str]]:
    csv.field_size_limit(_LONGEST_FIELD)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=separator == " ")
    return (record for record in reader if record)  # Blank lines are no records.


# --- the layout -----------------------------------------------------------------------------------------


def layout(text: str, name: str, header: bool | None = None) -> Layout:
    """The separator, the presence of a header and the sign of decimals, from the first lines."""
    head = _head(text)
    separator = _separator(head, name)
    rows = list(_records(head, separator))
    rows = rows[:-1] if len(rows) > 2 else rows  # the last may be cut by the limit
    comma = separator != "," and _has_decimal_commas(rows)
    return Layout(separator, _has_header(rows) if header is None else header, comma)


def _head(text: str) -> str:
    lines: list[str] = []
    letters = 0
    for line in islice(io.StringIO(text, newline=""), _LOOKED_AT):
        if len(lines) >= _LINES and letters > _LETTERS:
            break
        lines.append(line)
        letters += len(line)
    return "".join(lines)


def _separator(head: str, name: str) -> str:
    best, best_rank = ",", (0.0, 0.0, 0)
    for separator in _SEPARATORS:
        try:
            counts = Counter(len(record) for record in _records(head, separator))
        except csv.Error:
            continue
        if not counts:
            continue
        width, times = counts.most_common(1)[0]
        if width < 2:
            continue
        share = times / counts.total()
        fits_name = name.lower().endswith((".tsv", ".tab")) and separator == "\t"
        # A blank separates words too: it is taken where nothing else separates.
        rank = (share if separator != " " else share - 0.5, float(fits_name), width)
        if rank > best_rank:
            best, best_rank = separator, rank
    return best


def _has_decimal_commas(rows: list[list[str]]) -> bool:
    cells = [cell.strip() for row in rows[1:] for cell in row]
    return any(_DECIMAL_COMMA.fullmatch(cell) for cell in cells) and not any(
        re.fullmatch(r"[+-]?\d+\.\d+", cell) for cell in cells
    )


def is_number(cell: str, decimal_comma: bool = False) -> bool:
    """Whether a cell is one number.

    >>> is_number("1e-3"), is_number("1,5"), is_number("1,5", decimal_comma=True), is_number("x")
    (True, False, True, False)
    """
    cell = cell.strip()
    return bool(_NUMBER.fullmatch(cell.replace(",", ".") if decimal_comma else cell))


def _has_header(rows: list[list[str]]) -> bool:
    """A header names columns of numbers with words, or columns of words with words not found in them."""
    numeric = partial(is_number, decimal_comma=True)
    if len(rows) < 2:
        return bool(rows) and not any(numeric(cell) for cell in rows[0])
    first, rest = [cell.strip() for cell in rows[0]], rows[1:]
    if first == [str(j) for j in range(len(first))]:
        return len(first) > 1  # the positions that some libraries write
    has_numbers = False
    for j, cell in enumerate(first):
        below = [row[j].strip() for row in rest if j < len(row) and row[j].strip() not in MISSING]
        if not below or not all(numeric(value) for value in below) or cell in MISSING:
            continue
        if not numeric(cell):
            return True  # one column is enough: there may be thousands
        has_numbers = True
    if has_numbers:
        return False
    named = {j: cell for j, cell in enumerate(first) if cell}  # The other columns get names of ours.
    repeated = any(cell == row[j].strip() for row in rest for j, cell in named.items() if j < len(row))
    if not named or repeated or len(set(named.values())) < len(named):
        return False
    return all(first[min(named) :])  # a row index has no name; other names are not left out


# --- reading ----------------------------------------------------------------------------------------------


def read_delimited(
    text: str, name: str, *, header: bool | None = None, missing: Sequence[str] = (), texts: bool = False
) -> Table:
    """The table, with notes about what was found or guessed; ``texts`` keeps its cells as they stand too."""
    notes: list[str] = []
    found = layout(text, name, header)
    separator = found.separator
    if not text.strip():
        raise InputError(f"{name} is empty: pass a file with at least one row")
    if separator == " ":
        text, separator = _blanks_to_tabs(text, name), "\t"
    try:
        names, body, width, quotes = _cut(text, separator, found.header, name)
    except csv.Error as error:
        raise InputError(f"{name} cannot be read as a table: {error}") from None
    if not found.header:
        notes.append(f"{name} has no header: its columns are called {names[0]} to {names[-1]}")
    if found.separator not in ",\t":
        notes.append(f"{name} is separated by {_SPOKEN[found.separator]}")
    if not quotes:
        notes.append(f"quotes in {name} do not pair up: they were read as letters")
    if found.decimal_comma:
        notes.append(f"{name} writes decimals with a comma")
    if len(names) == width + 1 and names[0] == "row_name":
        notes.append(f"the header of {name} has no name for its first column: it is called 'row_name'")
    if "\n\n" in body and ('"' not in body or not quotes):
        body = "\n".join(line for line in body.split("\n") if line) + "\n"
    if quotes and '"' in body:
        body = _with_quotes_around(body, separator)
    whole = Body(body, names, separator, found.decimal_comma, quotes)
    frame, orders, more = from_text(whole, missing, name)
    refuse_mixed(frame, name, found.decimal_comma)
    notes += more + [doubt(column, name) for column, fitting in orders.items() if len(fitting) > 1]
    return Table(
        frame,
        name,
        "csv",
        tuple(notes),
        dates={column: fitting[0] for column, fitting in orders.items()},
        texts=partial(as_they_stand, whole, frame, name) if texts else None,
    )


def doubt(column: str, name: str) -> str:
    """What is said of a column of dates that fit both orders."""
    return (
        f"column {column!r} of {name} fits day/month and month/day: a model that is trained on it takes the "
        "day first, a model that was trained already takes its own order; write dates as 2026-01-31"
    )


def _with_quotes_around(body: str, separator: str) -> str:
    r"""The same rows; where a field has quotes inside, with quotes around each field that needs them.

    >>> _with_quotes_around('5" pipe,1\n', ",")
    '"5"" pipe",1\n'
    """
    if not any('"' in "".join(row) for row in _records(body, separator)):
        return body
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=separator, lineterminator="\n").writerows(_records(body, separator))
    return stream.getvalue()


_SPOKEN = {";": "semicolons", "|": "bars", " ": "blanks"}


def _blanks_to_tabs(text: str, name: str) -> str:
    if '"' in text:
        raise InputError(f"{name} has quotes and fields separated by blanks: write it with commas or tabs")
    return "\n".join("\t".join(line.split()) for line in text.splitlines() if line.strip())


def _cut(text: str, separator: str, header: bool, name: str) -> tuple[list[str], str, int, bool]:
    """Names of columns, the text below the header, how many names that has, whether quotes are meant."""
    start = 0
    while text[start : start + 1] in ("\n", "\r") and start < len(text):
        start += 1
    if not header:
        width = len(next(_records(text[start:], separator)))
        quotes = _refuse_ragged(text[start:], separator, width, name, 1)
        return [f"column_{j + 1}" for j in range(width)], text[start:], width, quotes
    stream = io.StringIO(text[start:], newline="")
    csv.field_size_limit(_LONGEST_FIELD)
    names = [cell.strip() for cell in next(csv.reader(stream, delimiter=separator))]
    body, width = text[start + stream.tell() :], len(names)
    second = next(_records(body, separator), None)
    if second is None:
        raise InputError(f"{name} has a header and no rows: pass at least one row")
    if len(second) == width + 1:  # R writes the names of rows so.
        names = ["row_name", *names]
    quotes = _refuse_ragged(body, separator, len(names), name, 1 + text[: start + stream.tell()].count("\n"))
    names = [cell or f"column_{j + 1}" for j, cell in enumerate(names)]
    doubled = [cell for cell, times in Counter(names).items() if times > 1]
    if doubled:
        which = ", ".join(map(repr, doubled[:5]))
        raise InputError(
            f"the header of {name} has the same name more than once: {which}; give each a name of its own"
        )
    return names, body, width, quotes


def _refuse_ragged(body: str, separator: str, width: int, name: str, first_line: int) -> bool:
    """Refuse rows with more or fewer fields than the others, by their line; whether quotes mean something.

    Quotes that do not pair up are letters, if without them all rows are whole.
    """
    line, found = _first_wrong(body, separator, width)
    if '"' in body:
        reader = csv.reader(io.StringIO(body, newline=""), delimiter=separator, strict=True)
        wrong = ((reader.line_num, len(row)) for row in reader if row and len(row) != width)
        try:
            quoted = next(wrong, (0, 0))
        except csv.Error:
            quoted = (reader.line_num, 0)
        if not line and quoted[0]:
            return False
        line, found = quoted if quoted[1] or not quoted[0] else (line, found)
    if not line:
        return True
    total = body.count("\n") + (not body.endswith("\n"))
    fields = "1 field" if found == 1 else f"{found} fields"
    where, others = f"line {line - 1 + first_line} of {name}", f"where the others have {width}"
    if line >= total and found < width:
        raise InputError(f"{where}, the last, has {fields} {others}: is the file cut off?")
    separators = _SPOKEN.get(separator, "tabs" if separator == "\t" else "commas")
    raise InputError(
        f"{where} has {fields} {others}: correct it, and put quotes around fields with {separators}"
    )


def _first_wrong(body: str, separator: str, width: int) -> tuple[int, int]:
    r"""The first line, from 1, with another number of fields, and that number; (0, 0) if there is none.

    >>> _first_wrong("1,2\n3,4\n5\n", ",", 2)
    (3, 1)
    """
    letters = np.frombuffer(body.encode("utf-8", "replace"), np.uint8)
    ends = np.flatnonzero(letters == 10)
    if not len(ends) or ends[-1] != len(letters) - 1:
        ends = np.append(ends, len(letters))
    starts = np.concatenate([[0], ends[:-1] + 1])
    marks = np.flatnonzero(letters == ord(separator))
    counts = np.searchsorted(marks, ends) - np.searchsorted(marks, starts) + 1
    blank = ends == starts
    wrong = np.flatnonzero((counts != width) & ~blank)
    return (int(wrong[0]) + 1, int(counts[wrong[0]])) if len(wrong) else (0, 0)


def refuse_mixed(frame: Frame, name: str, comma: bool) -> None:
    """Refuse columns that are numbers but for a few texts: one of the two is a mistake."""
    for label in texts_of(frame):
        column = frame[label]
        counts = dict(column.drop_nulls().rename("text").value_counts(name="times").iter_rows())
        present = sum(counts.values())
        odd = sum(times for text, times in counts.items() if not is_number(text, comma))
        if 0 < odd <= 0.2 * present:
            first = next(i for i, t in enumerate(column) if t is not None and not is_number(t, comma))
            raise InputError(
                f"column {label!r} of {name} mixes numbers and text: {present - odd:,} numbers, "
                f"and {column[first]!r} in row {first + 1:,}; correct it, or say that this stands for a "
                f"missing value (--missing, missing=[{column[first]!r}])"
            )
