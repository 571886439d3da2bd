r"""Files that are whole or not there: written aside, then given their name.

>>> import tempfile
>>> place = Path(tempfile.mkdtemp()) / "a.txt"
>>> write_whole(place, [b"who", b"le"])
>>> place.read_bytes(), len(list(place.parent.iterdir()))
(b'whole', 1)
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mercer.errors import InputError


def write_whole(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file such that nobody ever sees half of it, and one that is there stays if this fails."""
    try:
        if path.is_dir():
            raise InputError(f"{str(path)!r} is a folder: pass the name of a file in it")
        with aside(path) as place, open(place, "wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be written: {error.strerror or error}") from error


@contextmanager
def aside(path: Path) -> Iterator[Path]:
    """A file beside ``path`` that takes its place when the block ends well, and goes away otherwise.

    A link stays a link, and what only its owner could read stays so. A device such as /dev/stdout is written
    to, never replaced.
    """
    is_written_to = is_device(path)
    # A pipe has no name but that of its link.
    target = path if is_written_to else Path(os.path.realpath(path))
    folder = None if is_written_to else target.parent
    handle, name = tempfile.mkstemp(prefix=".mercer-", suffix=target.suffix, dir=folder)
    os.close(handle)
    place = Path(name)
    try:
        yield place
        if folder is None:
            with place.open("rb") as written, target.open("wb", buffering=0) as device:
                shutil.copyfileobj(written, device)
            return
        with suppress(OSError):  # The mode is that of a new file; a temporary file is for its owner alone.
            mask = os.umask(0)
            os.umask(mask)
            place.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~mask)
        place.replace(target)
    finally:
        place.unlink(missing_ok=True)


def is_device(path: Path) -> bool:
    """Whether it is there and neither file nor folder, as /dev/null is."""
    return path.exists() and not path.is_file() and not path.is_dir()
