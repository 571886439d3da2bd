"""Printed code as modules, in real files, so that what is compiled from them can be kept.

Files are named by their content, written aside and renamed, in the user's ``cache_folder``; two processes may
write the same file at once. Where no such folder can be had (a read-only home), or its disk is full, the code
lives in memory and is compiled again in each process.
"""

from __future__ import annotations

import hashlib
import importlib.util
import linecache
import os
import sys
import tempfile
from pathlib import Path
from threading import RLock
from types import ModuleType

from mercer.runtime.cache_folder import cache_folder

_guard = RLock()  # a module is in sys.modules before it is complete: one thread at a time


def _after_fork() -> None:
    """A child has none of the threads that may have been inside."""
    global _guard
    _guard = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def load(source: str, salt: str = "", in_memory: str | None = None) -> ModuleType:
    """The module with the given source; ``in_memory`` is the variant for when it has no file.

    ``salt`` is what the code depends on besides its text: its name is of both.
    """
    digest = hashlib.sha256((salt + source).encode()).hexdigest()[:24]
    name = f"mercer_generated_{digest}"
    with _guard:
        return sys.modules.get(name) or _load(name, source, source if in_memory is None else in_memory)


def _load(name: str, source: str, in_memory: str) -> ModuleType:
    folder = cache_folder()
    path = folder / f"{name}.py" if folder else None
    if path is None or not _write(path, source):
        return _load_in_memory(name, in_memory)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(
        spec
    )  # A function's module is looked for there.
    try:
        spec.loader.exec_module(module)
    except OSError:  # what was compiled could not be kept
        return _load_in_memory(name, in_memory)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _write(path: Path, source: str) -> bool:
    try:
        if not path.exists():
            handle, aside = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(source)
            os.replace(aside, path)
    except OSError:
        return False
    return True


def _load_in_memory(name: str, source: str) -> ModuleType:
    module = sys.modules[name] = ModuleType(name)
    filename = f"<{name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(compile(source, filename, "exec"), vars(module))  # text printed by mercer.kernels.formula.source
    return module
