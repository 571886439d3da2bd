r"""Places to write to, looked at before any work is done."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from mercer.errors import InputError
from mercer.files import is_device
from mercer.tables.source import STANDARD_INPUT

__all__ = ["require_apart", "require_writable"]


def require_writable(path: Path) -> None:
    """Refuse a place where no file can be made."""
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a file to write")
    if is_device(path):
        return
    folder = (path.resolve() if path.is_symlink() else path).parent
    if not folder.is_dir():
        raise InputError(f"the folder {str(folder)!r} does not exist: make it first, or write elsewhere")
    if not os.access(folder, os.W_OK):
        raise InputError(
            f"the folder {str(folder)!r} cannot be written to: choose another place with --output"
        )


def require_apart(outputs: Mapping[str, Path], inputs: Mapping[str, Path | str]) -> None:
    """Refuse an output that is an input, or another output.

    >>> require_apart({"--output": Path("a.mercer")}, {"the model": "./a.mercer"})
    Traceback (most recent call last):
    mercer.errors.InputError: --output and the model are the same file, a.mercer: name another one
    """
    taken = {Path(path).resolve(): name for name, path in inputs.items() if str(path) != STANDARD_INPUT}
    for name, path in outputs.items():
        other = name if is_device(path) else taken.setdefault(path.resolve(), name)
        if other != name:
            raise InputError(f"{name} and {other} are the same file, {path}: name another one")
