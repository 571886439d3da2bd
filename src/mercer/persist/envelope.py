r"""The file around a model: what it is, a checksum, a description, and then the archive.

    mercer model 2
    <sha256 of everything below>
    {"kind": "SVC", "mercer": "0.7.0", …}
    <archive>

The checksum tells a damaged file from a whole one; it does not say who wrote it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version
from typing import Any, NoReturn

from mercer.errors import InputError, InputTypeError
from mercer.runtime.files import write_whole

#: This number grows when an earlier mercer could not read the files any more.
FORMAT = 2
#: Models of earlier formats do not know the order of their dates, or count columns in another way.
_OLDEST_FORMAT = 2

_FIRST = re.compile(rb"mercer model ([1-9][0-9]{0,5})\n")
_FIRST_LINE_BYTES = 64  # The first line, with the checksum, is shorter.
_OTHERS = {
    b"PK": "a zip archive",
    b"\x80": "a pickle",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUMPY": "a NumPy array",
}


def as_path(path: Any) -> Path:
    """A path, from a text or a path."""
    if not isinstance(path, str | os.PathLike):
        raise InputTypeError(
            f"the path of a model file is a text or a Path, got {path!r}: pass 'model.mercer'"
        )
    name = os.fspath(path)
    if isinstance(name, bytes):
        name = os.fsdecode(name)
    if not name or "\0" in name:
        raise InputError(f"the path of a model file cannot be {name!r}: pass one such as 'model.mercer'")
    return Path(name)


def write(path: Path, payload: bytes, about: dict[str, Any]) -> None:
    """Write a file: as a whole, or not at all."""
    versions = {name: _version(name) for name in ("mercer", "numpy", "scipy", "scikit-learn", "skops")}
    description = {**about, **versions, "python": python_version(), "bytes": len(payload)}
    body = json.dumps(description).encode() + b"\n" + payload
    checksum = hashlib.sha256(body).hexdigest().encode()
    write_whole(path, [b"mercer model %d\n" % FORMAT, checksum, b"\n", body])


def _version(library: str) -> str:
    from mercer import __version__

    if library == "mercer":
        return __version__
    try:
        return version(library)
    except PackageNotFoundError:
        return "unknown"


def later(about: dict[str, Any]) -> str:
    """What to say of a file that a later mercer has written, else nothing.

    >>> later({"mercer": "999.0"})
    '. It was written by mercer 999.0, and this is ...: upgrade mercer'
    >>> later({"mercer": "0.0.1"}), later({})
    ('', '')
    """
    ours, theirs = _version("mercer"), str(about.get("mercer", ""))
    numbers = [tuple(map(int, re.findall(r"[0-9]{1,9}", text)[:3])) for text in (theirs, ours)]
    if numbers[0] <= numbers[1]:
        return ""
    return f". It was written by mercer {theirs[:20]}, and this is {ours}: upgrade mercer"


def read(path: Path) -> tuple[dict[str, Any], bytes]:
    """The description and the archive of a file that is whole."""
    try:
        if not path.exists():
            raise InputError(
                f"there is no file {str(path)!r}: pass the path of one that mercer.save has written"
            )
        if not path.is_file():
            raise InputError(f"{str(path)!r} is no file: pass the path of one that mercer.save has written")
        with open(path, "rb") as file:
            head = file.read(_FIRST_LINE_BYTES)
            first = _FIRST.match(head)
            if first is None:
                _refuse_foreign(path, head)
            if int(first[1]) > FORMAT:
                raise InputError(
                    f"{str(path)!r} has format {int(first[1])}, and this mercer reads them up to {FORMAT}: "
                    "it was written by a later version; upgrade mercer"
                )
            if int(first[1]) < _OLDEST_FORMAT:
                raise InputError(
                    f"{str(path)!r} has format {int(first[1])}, and this mercer reads those from "
                    f"{_OLDEST_FORMAT}: it was written by an earlier version; train the model again"
                )
            file.seek(first.end())
            checksum = file.read(65)
            body = file.read()
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read: {error.strerror or error}") from error
    if checksum != hashlib.sha256(body).hexdigest().encode() + b"\n":
        raise InputError(
            f"{str(path)!r} is damaged: its content does not match its checksum; it was cut off or changed. "
            "Copy it again, or save the model again"
        )
    line, _, payload = body.partition(b"\n")
    try:
        about = json.loads(line)
    except (ValueError, RecursionError):
        about = None
    if not isinstance(about, dict) or about.get("bytes") != len(payload):
        raise InputError(f"{str(path)!r} is damaged: its description cannot be read; save the model again")
    return about, payload


def _refuse_foreign(path: Path, head: bytes) -> NoReturn:
    if not head:
        raise InputError(f"{str(path)!r} is empty: it is no model file; save the model again")
    kind = next((name for start, name in _OTHERS.items() if head.startswith(start)), None)
    what = f"it looks like {kind}" if kind else "it does not begin like one"
    raise InputError(
        f"{str(path)!r} is no model file of mercer: {what}; pass one that mercer.save has written"
    )
