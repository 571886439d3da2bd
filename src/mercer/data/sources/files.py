"""Which files a path means, of which format they are, and whether they are still what they were."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import NamedTuple

from mercer.errors import InputError

#: the formats, by the first bytes of a file
_FORMATS = {b"\x93NUMPY": "npy", b"PAR1": "parquet", b"ARROW1": "arrow"}
#: what is recognised and not read, by its first bytes, and what to do instead
_FOREIGN = {
    b"\x1f\x8b": "is packed by gzip: unpack it first",
    b"\x28\xb5\x2f\xfd": "is packed by zstd: unpack it first",
    b"BZh": "is packed by bzip2: unpack it first",
    b"\xfd7zXZ": "is packed by xz: unpack it first",
    b"PK\x03\x04": "is an archive (.npz, .zip or a workbook): save the table as .npy, Parquet or CSV",
    b"\xff\xff\xff\xff": "is a stream of Arrow batches: save it as an Arrow file (Feather 2)",
    b"FEA1": "is a Feather file of the first version: write it again with version 2",
    b"\x89HDF": "is an HDF5 file: save the table as .npy or Parquet",
    b"\x80": "is a pickle, which is not read because that could run code: save it as .npy or Parquet",
}
#: Bytes at the start of a file that are looked at to tell text from other things: a block of most disks.
_HEAD = 4096


class Stamp(NamedTuple):
    """What a file looked like: one that was written again has another."""

    path: str
    size: int
    modified: int
    changed: int


def find_files(path: str | os.PathLike[str]) -> list[Path]:
    """The files of a path: itself, those in a folder in the order of their names, or those of a pattern.

    Names in a folder that begin with a dot or an underscore are not data.
    """
    place = Path(path)
    try:
        if place.is_file():
            return [place]
        if place.is_dir():
            entries = sorted(place.iterdir())
            files = [e for e in entries if e.is_file() and not e.name.startswith((".", "_"))]
            if not files:
                raise InputError(
                    f"the folder {str(path)!r} has no files: pass a folder whose files are the parts of one "
                    "table, or a pattern such as 'rides/**/*.parquet'"
                )
            return files
        if place.exists():
            raise InputError(f"{str(path)!r} is no file: it is read several times, so save the table in one")
    except (OSError, ValueError) as error:  # A name with a null byte is a ValueError.
        if isinstance(error, InputError):
            raise
        raise InputError(f"{str(path)!r} cannot be read: {getattr(error, 'strerror', error)}") from None
    if glob.has_magic(str(path)):
        files = [Path(name) for name in sorted(glob.glob(str(path), recursive=True)) if os.path.isfile(name)]
        if files:
            return files
        raise InputError(f"no file is called like {str(path)!r}: check the pattern")
    raise InputError(f"there is no file {str(path)!r}: check the name")


def stamps_of(files: list[Path]) -> tuple[Stamp, ...]:
    """What the files look like now."""
    found = []
    for file in files:
        try:
            status = file.stat()
        except OSError as error:
            raise InputError(f"{file} cannot be read: {error.strerror or error}") from None
        found.append(Stamp(os.path.realpath(file), status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    return tuple(found)


def format_of(files: list[Path]) -> str:
    """The format that the files share, by what they hold rather than by what they are called."""
    formats = {_format_of_one(file): file for file in files}
    if len(formats) > 1:
        (one, first), (other, second) = list(formats.items())[:2]
        raise InputError(
            f"{first} is {one} and {second} is {other}: pass files of one format, such as the pattern "
            f"'{first.parent}/*{first.suffix}'"
        )
    return next(iter(formats))


def _format_of_one(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            head = stream.read(_HEAD)
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from None
    if not head:
        raise InputError(f"{file} is empty: pass a file with at least one row")
    for magic, format_ in _FORMATS.items():
        if head.startswith(magic):
            return format_
    for magic, what in _FOREIGN.items():
        if head.startswith(magic):
            raise InputError(f"{file} {what}")
    if b"\0" in head:
        raise InputError(f"{file} is no .npy, Parquet, Arrow or CSV file: save the table as one of these")
    return "csv"
