r"""Where converted tables lie: in a folder of the user's, or in one of this process that goes when it ends.

The name of an array tells what it was made from: ``path-stamp-columns.npy``, digests of the path, of what its
files looked like (sizes and times), and of the columns and their type. A file that was written again has
another stamp, and what was made of it before is removed. An array has its name only once it is whole.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from mercer.data.sources.database import is_database
from mercer.data.sources.files import Stamp
from mercer.errors import InputError
from mercer.runtime.cache_folder import cache_folder
from mercer.runtime.files import aside

#: Tables whose arrays stay in the folder of the process: one to learn from, and some to predict.
_TABLES_KEPT = 4
_DIGITS_OF_A_NAME = 16  # 64 bits: two of a million tables share a name with a probability of 3e-8.


class Cache:
    """The arrays that are made of the table at a path, in one folder."""

    def __init__(self, path: str, stamps: tuple[Stamp, ...], folder: Path | None) -> None:
        self._is_ours = folder is None
        self.folder = process_folder() if folder is None else folder
        self._table = _digest(path if is_database(path) else os.path.abspath(path))
        self._prefix = f"{self._table}-{_digest(stamps)}-"

    def place(self, what: Any) -> Path:
        """Where the array of these columns lies, or will lie."""
        return self.folder / f"{self._prefix}{_digest(what)}.npy"

    def find(self, what: Any) -> np.ndarray | None:
        """The array of these columns, if it was made before and is whole."""
        place = self.place(what)
        try:
            found = opened_array(place)
            os.utime(place)  # It was used last now.
        except (OSError, ValueError):
            return None
        return found

    @contextmanager
    def new(self, what: Any) -> Iterator[Path]:
        """A place to write an array to, which gets its name when the block ends well, and goes otherwise."""
        with suppress(FileExistsError):
            self.folder.mkdir(mode=0o700, parents=True)
        with aside(self.place(what)) as place:
            yield place

    def forget_old(self) -> None:
        """Remove what was made of these files when they were others, and tables not used for long."""
        for array in self.folder.glob(f"{self._table}-*.npy"):
            if not array.name.startswith(self._prefix):
                _remove(array)
        if not self._is_ours:
            return
        last_used: dict[str, float] = {}
        for array in self.folder.glob("*-*-*.npy"):
            with suppress(OSError):
                table = array.name.partition("-")[0]
                last_used[table] = max(last_used.get(table, 0.0), array.stat().st_mtime)
        last_used.pop(self._table, None)
        for table in sorted(last_used, key=lambda name: -last_used[name])[_TABLES_KEPT - 1 :]:
            for array in self.folder.glob(f"{table}-*.npy"):
                _remove(array)


class ArrayFile:
    """A .npy file that grows by rows; how many there are is written into its head at the end."""

    def __init__(self, place: Path, dtype: Any, width: int | None) -> None:
        self.dtype, self.width, self.rows = np.dtype(dtype), width, 0
        self._stream = place.open("wb")
        self._write_head()

    def _write_head(self, dtype: Any = None) -> None:
        shape = (self.rows,) if self.width is None else (self.rows, self.width)
        descr = np.lib.format.dtype_to_descr(np.dtype(dtype or self.dtype))
        self._stream.seek(0)
        # NumPy leaves room in the head for the number of rows to grow, so that its length stays the same.
        np.lib.format.write_array_header_1_0(
            self._stream, {"descr": descr, "fortran_order": False, "shape": shape}
        )

    def write(self, rows: np.ndarray) -> None:
        """Add rows, which have the type of the file."""
        self._stream.write(np.ascontiguousarray(rows, dtype=self.dtype).data)
        self.rows += len(rows)

    def finish(self, dtype: Any = None) -> None:
        """Write the head; ``dtype`` says what the bytes are, where they were changed in place meanwhile."""
        self._write_head(dtype)
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self.close()

    def close(self) -> None:
        self._stream.close()


def opened_array(place: Path) -> np.ndarray:
    """The array in a file, of which nothing is read yet."""
    return np.asarray(np.load(place, mmap_mode="r", allow_pickle=False))


def _digest(what: Any) -> str:
    return hashlib.sha256(repr(what).encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS_OF_A_NAME]


def _remove(file: Path) -> None:
    with suppress(OSError):  # Windows keeps a file that an array still looks at.
        file.unlink()


# --- the folder of the process ----------------------------------------------------------------------------

_of_process: dict[int, Path] = {}


def process_folder() -> Path:
    """A folder of this process on the user's disk, which goes with the process.

    It is not in the system's folder for temporary files, which many systems keep in memory, but where there
    is no other. What a process that was killed left behind is removed by the next one.
    """
    import socket

    process = os.getpid()
    if process not in _of_process:
        base = cache_folder()
        host = "".join(letter for letter in socket.gethostname() if letter.isalnum())
        try:
            if base is not None:
                base = base / "sources"
                base.mkdir(mode=0o700, exist_ok=True)
                _sweep(base, host)
            prefix = f"{host}-{process}-" if base is not None else "mercer-sources-"
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=base))
        except OSError as error:
            raise InputError(
                f"there is no place for converted tables ({error.strerror or error}): name a folder, "
                "mercer.DataSource(path, folder=…)"
            ) from error
        _of_process[process] = folder
        atexit.register(_leave, process, folder)
    return _of_process[process]


def _leave(process: int, folder: Path) -> None:
    if os.getpid() == process:  # A child that was forked has a folder of its own.
        shutil.rmtree(folder, ignore_errors=True)


def _sweep(base: Path, host: str) -> None:
    """Remove the folders of processes on this machine that are no more."""
    import psutil

    for folder in base.glob(f"{host}-*-*"):
        number = folder.name[len(host) + 1 :].partition("-")[0]
        if number.isdigit() and not psutil.pid_exists(int(number)):
            shutil.rmtree(folder, ignore_errors=True)
