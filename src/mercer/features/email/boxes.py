r"""Where messages lie: a file each, many in one file (mbox), folders of files, Maildirs.

In an mbox every message begins with a line ``From …`` after an empty one. Such lines are in letters too
("From now on …"), so one counts only where a field of a head, or a second such line, comes next. In a
Maildir, a folder that has ``cur`` and ``new``, the messages are in these two alone: ``tmp`` has those that
are still being written, and other files are the mail server's own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from mercer.errors import InputError

__all__ = ["located", "messages", "read_file"]

_BEGINS = re.compile(rb"\n\n(?=From [^\n]*\n(?:[!-9;-~]+[ \t]*:|>?From ))")


def messages(path: str | os.PathLike[str]) -> list[bytes]:
    """The raw messages of a file, of a mailbox in one file (mbox), or of all files below a folder, by name.

    Hidden files and folders, and the files named ``cmds`` that collections of mails have, are left out; so is
    what is no message in a Maildir.
    """
    return [raw for _, raw in located(path)]


def located(path: str | os.PathLike[str]) -> Iterator[tuple[str, bytes]]:
    """The same, each with its file, and its number in brackets where that has several."""
    place = Path(path)
    if not place.is_dir():
        yield from _of_file(place)
        return
    is_empty = True
    for file in _below(place):
        is_empty = False
        yield from _of_file(file)
    if is_empty:
        raise InputError(f"the folder {str(place)!r} has no files: name a folder with one message per file")


def _of_file(file: Path) -> Iterator[tuple[str, bytes]]:
    raw = read_file(file)
    if not raw.startswith(b"From "):
        yield str(file), raw
        return
    pieces = _BEGINS.split(raw.replace(b"\r\n", b"\n"))
    if len(pieces) == 1:
        yield str(file), raw
        return
    for i, piece in enumerate(pieces):
        yield f"{file}[{i + 1}]", piece


def _below(folder: Path) -> Iterator[Path]:
    """The files of messages in a folder and its folders, by name."""
    found = sorted(entry for entry in _entries(folder) if not entry.name.startswith("."))
    names = {entry.name for entry in found}
    is_maildir = {"cur", "new"} <= names and all((folder / name).is_dir() for name in ("cur", "new"))
    for entry in found:
        if entry.is_dir():
            if not entry.is_symlink() and not (is_maildir and entry.name == "tmp"):
                yield from _below(entry)
        elif entry.is_file() and entry.name != "cmds" and not is_maildir:
            yield entry


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError as error:
        raise InputError(
            f"the folder {str(folder)!r} cannot be read ({error.strerror or error}): check its rights"
        ) from None


def read_file(path: Path) -> bytes:
    """The bytes of a file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"the message {str(path)!r} cannot be read ({error.strerror or error}): check its name and rights"
        ) from None
