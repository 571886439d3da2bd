r"""Columns of a table as arrays on disk, made once and batch by batch.

X has one type for all columns: float32 where that holds every value exactly (float32, float16, whole numbers
of up to 16 bits, yes or no) or where ``mercer.config(dtype="float32")`` asks for it, float64 elsewhere.
Targets and weights are arrays of their own; texts may be targets, and are labels then.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum, auto
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from mercer.data.sources.cache import ArrayFile, Cache, opened_array
from mercer.data.sources.files import Stamp
from mercer.data.sources.reader import TEXT, ColumnType, Reader
from mercer.errors import InputError, InputTypeError
from mercer.runtime.config import memory_budget, settings

#: Bytes of a batch. It is there some seven times over while polars reads it (measured: 130 MiB at 16 MiB),
#: and larger ones are no faster.
_BATCH_BYTES = 2**24
#: The share of the memory budget that a batch may take, so that all its copies take half of it.
_SHARE_OF_MEMORY = 16
#: whole numbers up to here are exact in float64
_EXACT_WHOLE = 2**53

_REMEDY = (
    "choose other columns, mercer.DataSource(path, columns=[…]), or take `mercer train` or "
    "mercer.ColumnKernel, which know texts and dates"
)


class Role(StrEnum):
    """What an array is for."""

    POINTS = auto()  # (n, d)
    TARGETS = auto()  # (n,); they alone may be texts
    WEIGHTS = auto()  # (n,)

    __repr__ = str.__repr__


@dataclass(frozen=True)
class Wanted:
    """Columns of a table that become one array."""

    columns: tuple[int, ...]
    role: Role
    names: tuple[str, ...]

    def dtype(self, types: Sequence[ColumnType]) -> Any:
        """The type of the array; None for texts."""
        kinds = [types[j] for j in self.columns]
        if self.role is Role.POINTS:
            is_single = settings().dtype == "float32" or all(map(_is_exact_in_single, kinds))
            return np.dtype(np.float32 if is_single else np.float64)
        if self.role is Role.WEIGHTS or kinds[0] == TEXT:
            return None if kinds[0] == TEXT else np.dtype(np.float64)
        kind = np.dtype(kinds[0])
        at_least = {"i": np.int64, "f": np.float32}.get(kind.kind, kind)
        return np.result_type(kind, at_least)

    def refuse_unless_numbers(self, types: Sequence[ColumnType], source: str) -> None:
        """Refuse what is no number, by its name."""
        for j, name in zip(self.columns, self.names, strict=True):
            kind = types[j]
            if isinstance(kind, np.dtype) or (kind == TEXT and self.role is Role.TARGETS):
                continue
            raise InputTypeError(f"{name} of {source} must hold numbers, got {kind}: {_REMEDY}")


def _is_exact_in_single(kind: ColumnType) -> bool:
    return isinstance(kind, np.dtype) and np.can_cast(kind, np.float32)


def convert(
    reader: Reader,
    parts: list[Wanted],
    source: str,
    stamps: tuple[Stamp, ...],
    look: Callable[[], tuple[Stamp, ...]],
    folder: Path | None,
) -> list[np.ndarray]:
    """The arrays of the parts, from the cache where they are there, else made in one pass over the files.

    ``stamps`` says what the files looked like before they were opened, and ``look`` what they look like now.
    """
    for part in parts:
        part.refuse_unless_numbers(reader.types, source)
    cache = Cache(source, stamps, folder)
    keys = [(part.columns, part.role, str(part.dtype(reader.types))) for part in parts]
    found = [cache.find(key) for key in keys]
    missing = [number for number, array in enumerate(found) if array is None]
    if missing:
        try:
            with ExitStack() as stack:
                writers = []
                for k in missing:
                    place = stack.enter_context(cache.new(keys[k]))
                    writers.append(_Writer(parts[k], reader, place, source))
                    stack.callback(writers[-1].close)
                _read(reader, writers, source)
                require_same(stamps, look(), source)
                for writer in writers:
                    writer.finish()
        except OSError as error:
            _refuse_full(error, source, cache.folder)
        cache.forget_old()
        for k in missing:
            found[k] = opened_array(cache.place(keys[k]))
    return [array for array in found if array is not None]


def _read(reader: Reader, writers: list[_Writer], source: str) -> None:
    columns = list(dict.fromkeys(j for writer in writers for j in writer.part.columns))
    size = min(_BATCH_BYTES, memory_budget() // _SHARE_OF_MEMORY)
    rows = max(1, size // (8 * len(columns)))
    start = 0
    for batch in reader.batches(columns, rows):
        values = dict(zip(columns, batch, strict=True))
        for writer in writers:
            writer.add([values[j] for j in writer.part.columns], start)
        start += len(batch[0])
    if start == 0:
        raise InputError(f"{source} has no rows: pass a table with at least one")


@dataclass
class _Writer:
    """One array on its way into the cache."""

    part: Wanted
    reader: Reader
    place: Path
    source: str
    texts: list[np.ndarray] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.dtype = self.part.dtype(self.reader.types)
        width = len(self.part.columns) if self.part.role is Role.POINTS else None
        self.file = None if self.dtype is None else ArrayFile(self.place, self.dtype, width)
        self.may_be_whole = self.part.role is Role.TARGETS and self.reader.may_be_whole[self.part.columns[0]]

    def add(self, columns: list[np.ndarray], start: int) -> None:
        """The next rows, of which the first has the number ``start``."""
        if self.file is None:
            self._add_texts(columns[0], start)
            return
        rows = np.empty((len(columns[0]), len(columns)), self.dtype)
        for j, (values, name) in enumerate(zip(columns, self.part.names, strict=True)):
            if self.part.role is Role.POINTS or self.dtype == np.float64:
                is_rounded = self.part.role is Role.POINTS and self.reader.may_be_whole[self.part.columns[j]]
                require_exact(values, name, start, self.source, is_rounded=is_rounded)
            if self.dtype.kind != "f" and values.dtype.kind == "f":  # Something is missing, which is NaN.
                require_finite(values[:, None], self.part.names, start, self.source)
            with np.errstate(over="ignore", invalid="ignore"):
                rows[:, j] = values
        require_finite(rows, self.part.names, start, self.source)
        if self.may_be_whole:
            self.may_be_whole = bool((rows == np.floor(rows)).all() and (np.abs(rows) <= _EXACT_WHOLE).all())
        self.file.write(rows if self.file.width is not None else rows[:, 0])

    def _add_texts(self, texts: np.ndarray, start: int) -> None:
        missing = np.flatnonzero([text is None for text in texts])
        if missing.size:
            _refuse_missing(self.part.names[0], start + int(missing[0]), self.source, "is missing")
        self.texts.append(texts.astype(np.str_))

    def finish(self) -> None:
        """End the array: all rows are there."""
        if self.file is None:
            with self.place.open("wb") as stream:
                np.save(stream, np.concatenate(self.texts))
        elif self.may_be_whole:
            self.file.finish()
            _as_whole_numbers(self.place)
        else:
            self.file.finish()

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


def _as_whole_numbers(place: Path) -> None:
    """The whole numbers in a file of float64 as int64, in place: labels that were read from text."""
    numbers = np.load(place, mmap_mode="r+")
    step = _BATCH_BYTES // 8
    for start in range(0, len(numbers), step):
        part = numbers[start : start + step]
        part.view(np.int64)[:] = part.astype(np.int64)
    numbers.flush()
    length = len(numbers)
    del numbers
    with place.open("r+b") as stream:
        np.lib.format.write_array_header_1_0(
            stream, {"descr": "<i8", "fortran_order": False, "shape": (length,)}
        )


# --- refusals -----------------------------------------------------------------------------------------


def require_same(before: tuple[Stamp, ...], after: tuple[Stamp, ...], source: str) -> None:
    """Refuse what was read of files that are others now."""
    if before != after:
        raise InputError(f"{source} was changed while it was read: read it again when it is complete")


def require_exact(values: np.ndarray, name: str, start: int, source: str, *, is_rounded: bool) -> None:
    """Refuse whole numbers that float64 would round; ``is_rounded``: read from text, it may have done so."""
    if values.dtype.itemsize < 8 or not (is_rounded or values.dtype.kind in "iu"):
        return
    most = _EXACT_WHOLE - is_rounded
    too_large = (values > most) | (values < -most)
    if is_rounded:
        too_large &= np.isfinite(values)
    if too_large.any():
        row = int(too_large.argmax())
        raise InputError(
            f"row {start + row} (from 0) of {name} of {source} is {'about ' * is_rounded}{int(values[row])}, "
            "which float64 would round: leave the column out (is it an identifier?), or divide it"
        )


def require_finite(rows: np.ndarray, names: Sequence[str], start: int, source: str) -> None:
    """Refuse NaN, which stands for what is missing too, and infinite values, by row (from 0) and column."""
    if rows.dtype.kind != "f" or np.isfinite(rows).all():
        return
    row, j = np.argwhere(~np.isfinite(rows))[0].tolist()
    is_missing = bool(np.isnan(rows[row, j]))
    what = "is missing, NaN or no number" if is_missing else f"is infinite or too large for {rows.dtype}"
    _refuse_missing(names[j], start + row, source, what)


def _refuse_missing(name: str, row: int, source: str, what: str) -> NoReturn:
    raise InputError(
        f"row {row} (from 0) of {name} of {source} {what}: leave such rows out, fill the gaps, or choose "
        "other columns, mercer.DataSource(path, columns=[…])"
    )


def _refuse_full(error: OSError, source: str, folder: Path) -> NoReturn:
    """What is said where the disk has no room, or the folder cannot be written."""
    if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
        raise InputError(
            f"{folder} has no room for the numbers of {source}: free some of the disk, or name a folder on "
            "another one, mercer.DataSource(path, folder=…)"
        ) from error
    raise InputError(f"{source} cannot be converted in {folder}: {error.strerror or error}") from error
