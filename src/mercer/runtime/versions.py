"""What a report of a problem should begin with: versions, cores, threads, and where code is kept."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

_NEEDED = ("numpy", "scipy", "scikit-learn", "joblib", "numba", "llvmlite", "threadpoolctl", "psutil")
_OPTIONAL = (
    *("matplotlib", "skops", "typer", "rich", "polars", "zstandard", "torch", "triton", "dask"),
    *("publicsuffixlist", "pandas", "networkx"),
)


def show_versions() -> None:
    """Print the versions of Python and all libraries, the cores, BLAS and its threads, and the cache folder.

    >>> show_versions()
    mercer: 0...
    Python: ...
    """
    for name, fact in _facts():
        print(f"{name}: {fact}" if fact else name)


def _facts() -> Iterator[tuple[str, str]]:
    from mercer import __version__

    yield "mercer", __version__
    yield "Python", sys.version.replace("\n", " ")
    yield "executable", sys.executable
    yield "system", platform.platform()
    yield from _machine()
    yield "", ""
    yield "needed", ""
    yield from ((f"  {name}", _version(name)) for name in _NEEDED)
    yield "optional", ""
    yield from ((f"  {name}", _version(name)) for name in _OPTIONAL)
    yield "", ""
    yield "threads", ""
    yield from _threads()
    yield "compiled code", _cache()


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "not installed"


def _machine() -> Iterator[tuple[str, str]]:
    from mercer.runtime.config import format_bytes, memory_budget, settings, thread_count
    from mercer.runtime.machine import available_cores, available_memory

    yield "cores", f"{available_cores()} of {os.cpu_count()} may be used, {thread_count()} threads are"
    free = format_bytes(available_memory())
    yield "memory", f"{free} free, a budget of {format_bytes(memory_budget())}"
    now = settings()
    backend = now.backend or "chosen by mercer"
    yield "configuration", f"dtype {now.dtype}, device {now.device}, backend {backend}"


def _threads() -> Iterator[tuple[str, str]]:
    import numba
    import scipy.linalg.cython_blas  # noqa: F401  the BLAS of SciPy shows only when it is loaded
    from threadpoolctl import threadpool_info

    for pool in threadpool_info():
        facts = [
            f"{pool['num_threads']} threads",
            *(str(pool[k]) for k in ("version", "architecture") if pool.get(k)),
        ]
        yield f"  {pool['user_api']}, {pool['internal_api']}", ", ".join([*facts, pool["filepath"]])
    yield "  numba", f"{numba.config.NUMBA_NUM_THREADS} threads"


def _cache() -> str:
    from mercer.runtime.cache_folder import cache_folder, wanted_folder
    from mercer.runtime.native import compiles

    if not compiles():
        return "none: NUMBA_DISABLE_JIT=1 forbids it"
    if (folder := cache_folder()) is not None:
        return f"kept in {folder}, which can be written"
    wanted = wanted_folder()
    why = (
        "the user has no home" if wanted is None else f"{wanted} cannot be written, or others may write there"
    )
    return f"stays in memory: {why}; name a folder in MERCER_CACHE_DIR"
