r"""The bytes of a file or of standard input, unpacked where they are packed, within the memory budget.

What packs them is told by their first bytes, never by the name alone.

>>> import gzip
>>> unpack(gzip.compress(b"a,b\n1,2\n"), "table.csv.gz")
(b'a,b\n1,2\n', 'table.csv')
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
from typing import IO, Any

from mercer.config import format_bytes, memory_budget
from mercer.errors import InputError, InputTypeError, require

__all__ = ["STANDARD_INPUT", "is_too_large", "read_bytes", "require_room", "unpack"]

STANDARD_INPUT = "-"

#: bytes of memory that a byte of a file takes until it is features: the text, the frame, the matrix
_PER_BYTE = 3
_STEP = 2**22  # bytes that are unpacked at a time
_SMALL = 2**16  # bytes that are given to zstd at a time: they may become many more
_DEEPEST = 3  # packings within packings
_SUFFIXES = {".gz", ".bz2", ".xz", ".lzma", ".zst", ".zip"}


def read_bytes(path: Any) -> tuple[bytes, str]:
    """The content, unpacked, and the name without the suffixes of the packing."""
    if isinstance(path, str) and path == STANDARD_INPUT:
        packed, name = _from_standard_input(), "standard input"
    else:
        packed, name = _from_file(path)
    if not packed:
        raise InputError(f"{name} is empty: pass a file with at least one row")
    return unpack(packed, name)


def _from_standard_input() -> bytes:
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise InputError("there is no standard input to read: name a file instead of -")
    if stream.isatty():
        raise InputError("standard input is a terminal: pipe a table into the command, or name a file")
    return _bounded(stream.read, "standard input")


def _from_file(path: Any) -> tuple[bytes, str]:
    try:
        file = Path(path)
    except TypeError:
        raise InputTypeError(
            f"a path is a text or a pathlib.Path, got {type(path).__name__}: name a file, or '-' for "
            "standard input"
        ) from None
    try:
        if file.is_dir():
            raise InputError(f"{file} is a folder, not a table: name a file in it")
        if file.is_file():
            require_room(file.stat().st_size, str(file))
        with file.open("rb") as stream:
            return _bounded(stream.read, str(file)), str(file)
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


# --- unpacking -----------------------------------------------------------------------------------------


def unpack(content: bytes, name: str) -> tuple[bytes, str]:
    """The content without its packing (gzip, bzip2, xz, zstd, a zip of one file), and the name without it."""
    for _ in range(_DEEPEST):
        opener = next((open_ for magic, open_ in _PACKINGS.items() if content.startswith(magic)), None)
        if opener is None or _is_a_format_of_its_own(content):
            return content, name
        content, name = opener(content, name)
        if not content:
            raise InputError(f"{name} is empty inside its packing: pass a file with at least one row")
    raise InputError(f"{name} is packed more than {_DEEPEST} times over: unpack it first")


def _stream(open_: Callable[[IO[bytes]], Any], what: str) -> Callable[[bytes, str], tuple[bytes, str]]:
    def opened(content: bytes, name: str) -> tuple[bytes, str]:
        try:
            with open_(io.BytesIO(content)) as stream:
                return _bounded(stream.read, name), _without_suffix(name)
        except EOFError:
            raise InputError(f"{name} is cut off: its {what} data end too early; copy it again") from None
        except (OSError, zlib.error, lzma.LZMAError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{name} is damaged: its {what} data cannot be unpacked ({error})") from None

    return opened


def _unzip(content: bytes, name: str) -> tuple[bytes, str]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            files = [item for item in archive.infolist() if not item.is_dir()]
            files = [item for item in files if not item.filename.startswith(("__MACOSX/", "."))]
            if len(files) != 1:
                inside = ", ".join(item.filename for item in files[:5]) or "nothing"
                raise InputError(f"{name} holds {len(files)} files ({inside}): pass a zip with one table")
            require_room(files[0].file_size, f"{files[0].filename} in {name}")
            with archive.open(files[0]) as stream:
                return _bounded(stream.read, name), files[0].filename
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise InputError(f"{name} is damaged or cut off: its zip cannot be unpacked ({error})") from None
    except (NotImplementedError, RuntimeError) as error:  # a packing Python does not know, or a password
        raise InputError(f"{name} cannot be unpacked ({error}): unpack it first") from None


def _unzstd(content: bytes, name: str) -> tuple[bytes, str]:
    try:  # Python has it from 3.14 on
        start = import_module("compression.zstd").ZstdDecompressor
    except ImportError:
        start = require("zstandard", "cli").ZstdDecompressor().decompressobj
    parts, size, left = [], 0, content
    try:
        while left:  # frame after frame
            frame, position = start(), 0
            while position < len(left) and not frame.eof:
                parts.append(frame.decompress(left[position : position + _SMALL]))
                position += _SMALL
                size += len(parts[-1])
                require_room(size, name)
            if not frame.eof:
                raise InputError(f"{name} is cut off: its zstd data end too early; copy it again")
            left = frame.unused_data + left[position:]
    except Exception as error:  # both libraries have an error class of their own
        if type(error).__name__ != "ZstdError":
            raise
        raise InputError(f"{name} is damaged: its zstd data cannot be unpacked ({error})") from None
    return b"".join(parts), _without_suffix(name)


_PACKINGS: dict[bytes, Callable[[bytes, str], tuple[bytes, str]]] = {
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


def _without_suffix(name: str) -> str:
    path = Path(name)
    return str(path.with_suffix("")) if path.suffix.lower() in _SUFFIXES else name


# --- the memory budget -----------------------------------------------------------------------------------


def require_room(n_bytes: int, name: str) -> None:
    """Refuse a table of so many bytes of text if it cannot become features within the budget."""
    budget = memory_budget()
    if _PER_BYTE * n_bytes > budget:
        raise InputError(
            f"{name} holds {format_bytes(n_bytes)} or more, which takes about "
            f"{format_bytes(_PER_BYTE * n_bytes)} of memory, and the budget is {format_bytes(budget)}: "
            "raise it (--memory, mercer.config(memory=…)), or read some rows only (--rows, rows=…)"
        )


def is_too_large(path: Any) -> bool:
    """Whether it is a file that does not fit the memory budget."""
    try:
        return (
            path != STANDARD_INPUT
            and Path(path).is_file()
            and _PER_BYTE * Path(path).stat().st_size > memory_budget()
        )
    except (TypeError, ValueError, OSError):
        return False


def _bounded(read: Callable[[int], bytes], name: str) -> bytes:
    """All there is to read, or a refusal as soon as it is too much."""
    parts, size = [], 0
    while part := read(_STEP):
        parts.append(part)
        size += len(part)
        require_room(size, name)
    return b"".join(parts)
