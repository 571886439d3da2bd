r"""Files that are whole or not there: written aside, then renamed.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "a.txt"
>>> with aside(path) as place:
...     _ = place.write_text("whole")
>>> path.read_text(), len(list(path.parent.iterdir()))
('whole', 1)
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mercer.errors import InputError

__all__ = ["aside", "require_writable"]


def require_writable(path: Path) -> None:
    """Refuse, before any work, a place where no file can be made."""
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a file to write")
    folder = path.parent
    if not folder.is_dir():
        raise InputError(f"the folder {str(folder)!r} does not exist: make it first, or write elsewhere")
    if not os.access(folder, os.W_OK):
        raise InputError(
            f"the folder {str(folder)!r} cannot be written to: choose another place with --output"
        )


@contextmanager
def aside(path: Path) -> Iterator[Path]:
    """A file beside ``path`` that takes its place when the block ends well, and goes away otherwise."""
    require_writable(path)
    handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    place = Path(name)
    try:
        yield place
        with suppress(OSError):  # as a new file would have it; a temporary one is for its owner alone
            mask = os.umask(0)
            os.umask(mask)
            place.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~mask)
        place.replace(path)
    except BaseException:
        place.unlink(missing_ok=True)
        raise
