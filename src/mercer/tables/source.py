r"""The bytes of a file or of standard input, unpacked where they are packed, within the memory budget.

What packs them is told by their first bytes, never by the name alone.

>>> import gzip
>>> unpack(gzip.compress(b"a,b\n1,2\n"), "table.csv.gz")
Source(content=b'a,b\n1,2\n', name='table.csv', lines=None)
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import zipfile
import zlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple

from mercer.errors import InputError, InputTypeError, require
from mercer.tables.intake import Intake, require_room

STANDARD_INPUT = "-"

_STEP = 2**22  # bytes that are unpacked at a time
_BYTES_AT_ONCE = 2**16  # bytes that are given to zstd at a time: they may become many more
_DEEPEST = 3  # packings within packings
_SUFFIXES = {".gz", ".bz2", ".xz", ".lzma", ".zst", ".zip"}


class Source(NamedTuple):
    """What was read."""

    content: bytes
    #: the name of the file without the suffixes of its packing
    name: str
    #: how many lines there were, where memory had no room for all of them
    lines: int | None = None


def read_bytes(path: Any, rows: int | None = None) -> Source:
    """The content, unpacked; of text that does not fit the memory budget some more than ``rows`` lines."""
    if isinstance(path, str) and path == STANDARD_INPUT:
        packed = _from_standard_input(rows)
    else:
        packed = _from_file(path, rows)
    if not packed.content:
        raise InputError(f"{packed.name} is empty: pass a file with at least one row")
    return packed if packed.lines is not None else unpack(packed.content, packed.name, rows)


def _from_standard_input(rows: int | None) -> Source:
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise InputError("there is no standard input to read: name a file instead of -")
    if stream.isatty():
        raise InputError("standard input is a terminal: pipe a table into the command, or name a file")
    return _read(stream.read, "standard input", rows)


def _from_file(path: Any, rows: int | None) -> Source:
    try:
        file = Path(path)
    except TypeError:
        raise InputTypeError(
            f"a path is a text or a pathlib.Path, got {type(path).__name__}: name a file, or '-' for "
            "standard input"
        ) from None
    try:
        if file.is_file() and rows is None:
            require_room(file.stat().st_size, str(file))
        with file.open("rb") as stream:
            return _read(stream.read, str(file), rows)
    except FileNotFoundError:
        raise InputError(f"there is no file {str(file)!r}: {_suggestion(file)}") from None
    except (OSError, ValueError) as error:  # a name with a null byte is a ValueError
        if isinstance(error, InputError):
            raise
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{file} cannot be read: {reason}") from None


def _suggestion(file: Path) -> str:
    from difflib import get_close_matches

    try:
        beside = [entry.name for entry in file.parent.iterdir()] if file.parent.is_dir() else None
    except OSError:
        beside = []
    if beside is None:
        return f"the folder {str(file.parent)!r} does not exist either"
    near = get_close_matches(file.name, beside, n=1)
    return f"did you mean {str(file.parent / near[0])!r}?" if near else "check the name"


_Opener = Callable[[bytes, str, int | None], Source]

# --- unpacking -----------------------------------------------------------------------------------------


def unpack(content: bytes, name: str, rows: int | None = None) -> Source:
    """The content without its packing: gzip, bzip2, xz, zstd, a zip of one file."""
    for _ in range(_DEEPEST):
        opener = next((open_ for magic, open_ in _PACKINGS.items() if content.startswith(magic)), None)
        if opener is None or _is_a_format_of_its_own(content):
            return Source(content, name)
        found = opener(content, name, rows)
        if not found.content:
            raise InputError(f"{found.name} is empty inside its packing: pass a file with at least one row")
        if found.lines is not None:
            return found
        content, name = found.content, found.name
    raise InputError(f"{name} is packed more than {_DEEPEST} times over: unpack it first")


def _stream(open_: Callable[[IO[bytes]], Any], what: str) -> _Opener:
    def opened(content: bytes, name: str, rows: int | None) -> Source:
        try:
            with open_(io.BytesIO(content)) as stream:
                return _read(stream.read, name, rows)._replace(name=without_packing(name))
        except EOFError:
            raise InputError(f"{name} is cut off: its {what} data end too early; copy it again") from None
        except (OSError, zlib.error, lzma.LZMAError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{name} is damaged: its {what} data cannot be unpacked ({error})") from None

    return opened


def _unzip(content: bytes, name: str, rows: int | None) -> Source:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            files = [item for item in archive.infolist() if not item.is_dir()]
            files = [item for item in files if not item.filename.startswith(("__MACOSX/", "."))]
            if len(files) != 1:
                inside = ", ".join(item.filename for item in files[:5]) or "nothing"
                raise InputError(f"{name} holds {len(files)} files ({inside}): pass a zip with one table")
            if rows is None:
                require_room(files[0].file_size, f"{files[0].filename} in {name}")
            with archive.open(files[0]) as stream:
                return _read(stream.read, name, rows)._replace(name=files[0].filename)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise InputError(f"{name} is damaged or cut off: its zip cannot be unpacked ({error})") from None
    except (NotImplementedError, RuntimeError) as error:  # a packing Python does not know, or a password
        raise InputError(f"{name} cannot be unpacked ({error}): unpack it first") from None


def _unzstd(content: bytes, name: str, rows: int | None) -> Source:
    try:  # Python has it from 3.14 on
        start = import_module("compression.zstd").ZstdDecompressor
    except ImportError:
        start = require("zstandard", "cli").ZstdDecompressor().decompressobj
    intake, left = Intake(name, rows), content
    try:
        while left:  # frame after frame
            frame, position = start(), 0
            while position < len(left) and not frame.eof:
                intake.add(frame.decompress(left[position : position + _BYTES_AT_ONCE]))
                position += _BYTES_AT_ONCE
            if not frame.eof:
                raise InputError(f"{name} is cut off: its zstd data end too early; copy it again")
            left = frame.unused_data + left[position:]
    except Exception as error:  # both libraries have an error class of their own
        if type(error).__name__ != "ZstdError":
            raise
        raise InputError(f"{name} is damaged: its zstd data cannot be unpacked ({error})") from None
    return Source(intake.content(), without_packing(name), intake.lines)


_PACKINGS: dict[bytes, _Opener] = {
    b"\x1f\x8b": _stream(lambda raw: gzip.GzipFile(fileobj=raw), "gzip"),
    b"BZh": _stream(bz2.BZ2File, "bzip2"),
    b"\xfd7zXZ\x00": _stream(lzma.LZMAFile, "xz"),
    b"\x28\xb5\x2f\xfd": _unzstd,
    b"PK\x03\x04": _unzip,
}


def _is_a_format_of_its_own(content: bytes) -> bool:
    """Zips that are not packed tables: NumPy's archives, workbooks, model files; damaged ones are no such."""
    if not content.startswith(b"PK\x03\x04"):
        return False
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, ValueError, OSError):
        return False
    return (bool(names) and all(name.endswith(".npy") for name in names)) or bool(
        {"[Content_Types].xml", "schema.json", "mimetype"} & set(names)
    )


def without_packing(name: str) -> str:
    """The name of what is packed.

    >>> without_packing("a.csv.gz"), without_packing("a.csv")
    ('a.csv', 'a.csv')
    """
    path = Path(name)
    return str(path.with_suffix("")) if path.suffix.lower() in _SUFFIXES else name


def _read(read: Callable[[int], bytes], name: str, rows: int | None) -> Source:
    """Read all there is; a refusal as soon as it is too much, or some of its lines."""
    intake = Intake(name, rows)
    while block := read(_STEP):
        intake.add(block)
    return Source(intake.content(), name, intake.lines)
