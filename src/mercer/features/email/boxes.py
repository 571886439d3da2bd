r"""Where messages lie: a file each, many in one file (mbox), folders of files, Maildirs.

In an mbox every message begins with a line ``From …`` after an empty one. Such lines are in letters too
("From now on …"), so one counts only where a field of a head, or a second such line, comes next. In a
Maildir, a folder that has ``cur`` and ``new``, the messages are in these two alone: ``tmp`` has those that
are still being written, and other files are the mail server's own.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterator
from pathlib import Path

from mercer.errors import InputError

_BEGINS = re.compile(rb"\n\n(?=From [^\n]*\n(?:[!-9;-~]+[ \t]*:|>?From ))")


def messages(path: str | os.PathLike[str]) -> list[bytes]:
    """The raw messages of a file, of a mailbox in one file (mbox), or of all files below a folder, by name.

    Hidden files and folders, and the files named ``cmds`` that collections of mails have, are left out; so is
    what is no message in a Maildir.
    """
    return [raw for _, raw in located(path)]


def located(path: str | os.PathLike[str]) -> Iterator[tuple[str, bytes]]:
    """The messages, each with its file, and its number in brackets where the file has several."""
    if not os.fspath(path):
        raise InputError("the name of a message is empty: pass a file or a folder")
    place = Path(path)
    if not place.is_dir():
        yield from _of_file(place)
        return
    is_empty = True
    for file in _below(place):
        is_empty = False
        yield from _of_file(file)
    if is_empty:
        raise InputError(
            f"the folder {str(place)!r} has no files (links to folders are not followed): name a folder with "
            "one message per file"
        )


def _of_file(file: Path) -> Iterator[tuple[str, bytes]]:
    raw = read_file(file)
    box = raw.removeprefix(codecs.BOM_UTF8).lstrip(b"\r\n")
    if not box.startswith(b"From "):
        yield str(file), raw
        return
    pieces = _BEGINS.split(box.replace(b"\r\n", b"\n"))
    if len(pieces) == 1:
        yield str(file), raw
        return
    for i, piece in enumerate(pieces):
        yield f"{file}[{i + 1}]", piece


def _below(folder: Path) -> Iterator[Path]:
    """The files of messages in a folder and its folders, by name."""
    waiting = [folder]
    while waiting:
        place = waiting.pop()
        if place.is_dir():
            waiting += reversed(_entries(place))
        else:
            yield place


def _entries(folder: Path) -> list[Path]:
    """The entries of a folder that are read, by name."""
    found = sorted(entry for entry in _listed(folder) if not entry.name.startswith("."))
    folders = {entry.name for entry in found if entry.is_dir()}
    is_maildir = {"cur", "new"} <= folders
    return [
        entry
        for entry in found
        if (
            not entry.is_symlink() and not (is_maildir and entry.name == "tmp")
            if entry.name in folders
            else entry.is_file() and entry.name != "cmds" and not is_maildir
        )
    ]


def _listed(folder: Path) -> list[Path]:
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
