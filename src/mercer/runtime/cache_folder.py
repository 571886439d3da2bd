"""Where compiled and generated code is kept between processes: one folder of the user, or none.

``MERCER_CACHE_DIR`` names it; else it is ``mercer`` in the folder that the system has for caches
(``XDG_CACHE_HOME``, ``~/.cache``, ``~/Library/Caches``, ``%LOCALAPPDATA%``). What lies there is run, so that
nobody else may be able to write there. Without such a folder (no home, a read-only one) all code stays in
memory, and is compiled again in each process.
"""

from __future__ import annotations

import os
import sys
import tempfile
from functools import cache
from pathlib import Path


def wanted_folder() -> Path | None:
    """The folder that the environment names, there or not; None where the user has no home."""
    if chosen := os.environ.get("MERCER_CACHE_DIR"):
        return Path(chosen)
    try:
        if sys.platform == "win32":
            return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "mercer"
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "mercer"
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mercer"
    except RuntimeError:  # There is neither HOME nor an entry among the system's users.
        return None


@cache
def cache_folder() -> Path | None:
    """The folder, made if need be; None where it cannot be written, or somebody else could plant code."""
    folder = wanted_folder()
    if folder is None:
        return None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if hasattr(os, "getuid"):
            status = folder.stat()
            if status.st_uid != os.getuid() or status.st_mode & 0o022:
                return None
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return None
