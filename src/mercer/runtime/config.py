"""The settings: memory, number type, threads, device, and so on; none changes the method.

    import mercer
    mercer.config(memory="4GiB", threads=2)      # from here on, in the whole process
    with mercer.config(dtype="float32"):         # in this block only, in this thread or task only
        ...

The code reads them through :func:`settings`, :func:`memory_budget` and :func:`thread_count`. A new
thread starts with the settings of the process, as with every ``ContextVar``: whoever starts threads
inside a block reads the settings first and hands them on.

>>> with config(memory="500MiB", threads=1):
...     memory_budget(), thread_count(), settings().dtype
(524288000, 1, 'float64')
"""

from __future__ import annotations

import math
import os
import re
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from decimal import Decimal
from difflib import get_close_matches
from typing import Any, Final, TypedDict, Unpack

import numpy as np

from mercer.data.types import ProgressMode
from mercer.errors import InputError, MemoryBudgetError
from mercer.runtime import machine


@dataclass(frozen=True)
class Settings:
    """The settings in force; ``None`` means: decided when it is needed."""

    #: bytes the library may fill; None: half of what is available now
    memory: int | None = None
    #: "float64" or "float32"
    dtype: str = "float64"
    #: None: every core this process may use
    threads: int | None = None
    #: "cpu", "cuda", "cuda:1", "mps", …
    device: str = "cpu"
    #: bytes that a fit may fill on a device; None: nine tenths of what is free there
    device_memory: int | None = None
    #: "numpy", "numba", "torch", "triton"; None: the fastest that fits
    backend: str | None = None
    #: relative error of K that fast products of float32 points may cause; None: 1e-6
    kernel_error: float | None = None
    #: None: a bar on a terminal; True: always; False: never; a function: it gets each event
    progress: ProgressMode = None
    #: a `dask.distributed.Client` whose workers compute blocks of rows; None: our threads do
    cluster: Any = None

    def of_values(self) -> dict[str, Any]:
        """The settings that kernel values depend on.

        >>> Settings().of_values()
        {'dtype': 'float64', 'backend': None, 'device': 'cpu', 'kernel_error': None}
        """
        names = "dtype", "backend", "device", "kernel_error"
        return {name: getattr(self, name) for name in names}


# --- the words a user may pass ---------------------------------------------------------------------

_UNITS: Final = {"": 1, "b": 1} | {
    f"{letter}{suffix}": base**power
    for power, letter in enumerate("kmgtp", start=1)
    for suffix, base in (("b", 1000), ("ib", 1024))
}
_SIZE: Final = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*([a-z]*)")
_MEMORY_REMEDY: Final = "pass bytes, a size such as '500MiB', '4GiB' or '2GB', or None for {} of what is free"


def _memory(value: object, name: str = "memory", share: str = "half") -> int | None:
    """Bytes from 4096, 1e9, "1e9", "500MiB", "2 GB"."""
    remedy = _MEMORY_REMEDY.format(share)
    if value is None:
        return None
    if isinstance(value, str):
        parts = _SIZE.fullmatch(value.strip().lower())
        if parts is None or parts[2] not in _UNITS:
            raise InputError(f"{name} is not a size, got {value!r}: {remedy}")
        size: Any = float(parts[1]) * _UNITS[parts[2]]
    elif isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        size = value
    else:
        raise InputError(f"{name} is not a size, got {value!r}: {remedy}")
    if not (math.isfinite(size) and size >= 1):
        raise InputError(f"{name} must be positive and finite, got {value!r}: {remedy}")
    return int(size)


def _device_memory(value: object) -> int | None:
    return _memory(value, "device_memory", "nine tenths")


def _dtype(value: Any) -> str:
    """A name of one of the two number types, from a name, a NumPy type or a dtype."""
    try:
        name = None if value is None else np.dtype(value).name
    except TypeError:
        name = None
    if name not in ("float32", "float64"):
        raise InputError(f"dtype must be 'float64' or 'float32', got {value!r}: pass one of the two")
    return name


def _threads(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InputError(
            f"threads must be a whole number of at least 1, got {value!r}: "
            "pass 1, 2, 3, …, or None for every core this process may use"
        )
    return int(value)


def _device(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[a-z]+(:\d+)?", value):
        raise InputError(f"device is not a device name, got {value!r}: pass 'cpu', 'cuda', 'cuda:1' or 'mps'")
    return value


def _backend(value: object) -> str | None:
    if value not in (None, "numpy", "numba", "torch", "triton"):
        raise InputError(
            f"backend must be 'numpy', 'numba', 'torch' or 'triton', got {value!r}: "
            "pass one of them, or None to let mercer choose"
        )
    return value


def _kernel_error(value: Any) -> float | None:
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if value is not None and not (is_number and 0 < value < 1):
        raise InputError(
            f"kernel_error must be between 0 and 1, got {value!r}: pass the relative error that fast "
            "products may cause, such as 1e-3, or None for 1e-6"
        )
    return None if value is None else float(value)


def _cluster(value: object) -> Any:
    if value is None or (hasattr(value, "submit") and hasattr(value, "scheduler")):
        return value
    raise InputError(
        f"cluster must be a client of Dask, got {value!r}: pass dask.distributed.Client(address), or None"
    )


def _progress(value: object) -> Any:
    if not (value is None or isinstance(value, bool) or callable(value)):
        raise InputError(
            f"progress must be True, False, None or a function, got {value!r}: pass True for a bar, "
            "False for silence, None for a bar on a terminal only, or a function that takes a dict"
        )
    return value


_PARSERS: Final[dict[str, Callable[[Any], Any]]] = {
    "memory": _memory,
    "dtype": _dtype,
    "threads": _threads,
    "device": _device,
    "device_memory": _device_memory,
    "backend": _backend,
    "kernel_error": _kernel_error,
    "progress": _progress,
    "cluster": _cluster,
}


class Changes(TypedDict, total=False):
    """What :class:`config` takes, before it is parsed."""

    memory: int | float | str | None
    dtype: Any
    threads: int | None
    device: str
    device_memory: int | float | str | None
    backend: str | None
    kernel_error: float | None
    progress: ProgressMode
    cluster: Any


def _parse(given: Changes) -> dict[str, Any]:
    for name, value in given.items():
        if name not in _PARSERS:
            near = get_close_matches(name, _PARSERS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"pass one of {', '.join(_PARSERS)}"
            raise TypeError(f"config has no setting {name!r}, got {name}={value!r}: {hint}")
    return {name: _PARSERS[name](value) for name, value in given.items()}


# --- where they are kept ---------------------------------------------------------------------------

# A call cannot know whether a `with` follows it, so it changes the process at once and `__enter__`
# takes that back. Threads may interleave the two: each call is therefore a layer of its own, and taking
# one back leaves the others. A layer whose object is gone cannot be entered any more: it melts into `_base`.
_lock = threading.Lock()
_base = Settings()
_layers: list[tuple[weakref.ref[config], dict[str, Any]]] = []
_process = Settings()


class _Block:
    """What the innermost ``with`` and those around it change, and the settings that follow."""

    def __init__(self, changes: dict[str, Any]) -> None:
        self.outer = _block.get()
        self._changes: dict[str, Any] = (self.outer._changes if self.outer else {}) | changes
        self._followed: tuple[Settings, Settings] | None = None

    def settings(self) -> Settings:
        process, followed = _process, self._followed
        if followed is None or followed[0] is not process:
            self._followed = followed = process, replace(process, **self._changes)
        return followed[1]


_block: ContextVar[_Block | None] = ContextVar("mercer_config", default=None)


def _rebuild() -> None:
    """The process-wide settings, from the base and the layers; the caller holds the lock."""
    global _base, _process
    while _layers and _layers[0][0]() is None:
        _base = replace(_base, **_layers.pop(0)[1])
    _process = _base
    for _, changes in _layers:
        _process = replace(_process, **changes)


def _after_fork() -> None:
    """A child has none of the threads that may have held the lock."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class config:  # noqa: N801  (used as a function)
    """Change settings: for the process when called, for a block when used in ``with``.

    ``config()`` changes nothing and shows what is in force. Inside a block the block's own
    settings win over later process-wide calls.

    Parameters
    ----------
    memory : bytes or a size such as "4GiB"; None for half of what is available.
    dtype : "float64" or "float32".
    threads : at least 1; None for every core this process may use.
    device : "cpu", "cuda", "cuda:1", "mps".
    device_memory : the same as ``memory``, on the device; None for nine tenths of what is free there.
    backend : "numpy", "numba", "torch", "triton"; None to let mercer choose.
    kernel_error : the relative error of K, as a whole, that fast products of float32 points may cause on a
        GPU; None for 1e-6. Only the backend "triton" has such products.
    progress : True, False, None (a bar on a terminal), or a function of one event (a dict).
    cluster : a ``dask.distributed.Client`` whose workers compute blocks of rows; None for our threads.

    >>> with config(memory="1GiB", dtype=np.float32):
    ...     config()
    config(memory='1GiB', dtype='float32', threads=None, device='cpu', device_memory=None,
    backend=None, kernel_error=None, progress=None, cluster=None)
    >>> config(threads=0)
    Traceback (most recent call last):
    mercer.errors.InputError: threads must be a whole number of at least 1, got 0: pass 1, 2, 3, …, or None
    for every core this process may use
    """

    def __init__(self, **given: Unpack[Changes]) -> None:
        self._changes = _parse(given)
        if self._changes:
            with _lock:
                _layers.append((weakref.ref(self), self._changes))
                _rebuild()

    def __enter__(self) -> Settings:
        with _lock:
            _layers[:] = [layer for layer in _layers if layer[0]() is not self]
            _rebuild()
        _block.set(_Block(self._changes))
        return settings()

    def __exit__(self, *exception: object) -> None:
        block = _block.get()
        assert block is not None
        _block.set(block.outer)

    def __repr__(self) -> str:
        shown = dict(vars(settings()))
        for name in ("memory", "device_memory"):
            size = shown[name]
            if size is not None and _memory(text := format_bytes(size)) == size:
                shown[name] = text
        return f"config({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


def settings() -> Settings:
    """The settings in force here: those of the enclosing blocks, else those of the process.

    >>> with config(threads=2), config(dtype="float32"):
    ...     settings().threads, settings().dtype
    (2, 'float32')
    """
    block = _block.get()
    return _process if block is None else block.settings()


# --- what they mean on this machine ----------------------------------------------------------------

_LEAST_BUDGET: Final = 2**20  # The budget is never smaller: small tiles still fit into it.


def memory_budget() -> int:
    """Bytes the library may fill: ``config(memory=…)``, else half of what is available now.

    Available is what the machine has free, or less where a container's limit (cgroup v1 or v2) is nearer.

    >>> with config(memory="2GB"):
    ...     memory_budget()
    2000000000
    """
    chosen = settings().memory
    if chosen is not None:
        return chosen
    return max(_LEAST_BUDGET, machine.available_memory() // 2)


def thread_count() -> int:
    """Threads to use: ``config(threads=…)``, else the cores this process may use.

    >>> with config(threads=3):
    ...     thread_count()
    3
    """
    return settings().threads or machine.available_cores()


def threads_within(count: int) -> AbstractContextManager[None]:
    """At most so many threads in this block: the share of one of several threads of ours.

    >>> with config(threads=4), threads_within(2):
    ...     thread_count()
    2
    """
    return within(threads=min(count, thread_count()))


@contextmanager
def within(**changes: Any) -> Iterator[None]:
    """Settings for this block, as `config` has them, from code that has checked them: a tenth of the time.

    >>> with within(dtype="float32"):
    ...     settings().dtype
    'float32'
    """
    token = _block.set(_Block(changes))
    try:
        yield
    finally:
        _block.reset(token)


def require_memory(n_bytes: int, what: str, remedy: str) -> None:
    """Refuse what does not fit the memory budget, before it is allocated.

    >>> with config(memory="1MiB"):
    ...     require_memory(8 * 1000**2, "a 1000 × 1000 Gram matrix", "use fewer points")
    Traceback (most recent call last):
    mercer.errors.MemoryBudgetError: a 1000 × 1000 Gram matrix needs 7.63MiB, more than the memory
    budget of 1MiB: use fewer points, or raise the budget with mercer.config(memory=…)
    """
    if n_bytes <= _LEAST_BUDGET and settings().memory is None:
        return  # the machine is not asked: that takes longer than to fill so little
    budget = memory_budget()
    if n_bytes > budget:
        raise MemoryBudgetError(
            f"{what} needs {format_bytes(n_bytes)}, more than the memory budget of {format_bytes(budget)}: "
            f"{remedy}, or raise the budget with mercer.config(memory=…)"
        )


def format_bytes(n_bytes: int) -> str:
    """A number of bytes for people, to three digits.

    >>> format_bytes(4 * 2**30), format_bytes(12_884_901_888), format_bytes(500), format_bytes(10**40)
    ('4GiB', '12GiB', '500B', '1.00e+40B')
    """
    for power, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB")):
        if n_bytes < 1000 * 1024**power:
            return f"{n_bytes / 1024**power:.3g}{unit}"
    return f"{Decimal(n_bytes):.2e}B"  # Counts of monomials may be larger than any float.
