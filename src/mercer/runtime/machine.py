"""What this machine lets us have: free memory and cores, also inside a container (cgroup v1 and v2)."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, wraps
from pathlib import Path
from threading import Lock
from time import monotonic, process_time
from typing import Any

_ROOT = Path("/")  # the root of the file system, where Linux shows the limits of a container
_SECONDS_CURRENT = 0.1  # What was read counts as current for so long: reading takes longer than small fits.
_MOMENTS_LATE = 5  # For so many of these times another thread may be reading.
_SECONDS_AVERAGED = 2.0  # The work of others is averaged over at most this time.


def _current(read: Callable[..., Any]) -> Any:
    """``read(…, moment)``, once for each moment: while one thread reads, the others take what was read last.

    Threads of ours that compute many small matrices all ask in the same moment, and reading is work for
    Python, which does one thing at a time.
    """
    last: list[tuple[Any, Any]] = []  # the arguments and what was read, or nothing
    reading = Lock()

    @wraps(read)
    def current(*given: Any) -> Any:
        known = last[:]
        if known and known[0][0] == given:
            return known[0][1]
        is_ours = reading.acquire(blocking=False)
        try:
            if not is_ours and known and _is_recent(known[0][0], given):
                return known[0][1]
            value = read(*given)
            last[:] = [(given, value)]
            return value
        finally:
            if is_ours:
                reading.release()

    current.cache_clear = last.clear  # type: ignore[attr-defined]
    return current


def _is_recent(before: tuple[Any, ...], given: tuple[Any, ...]) -> bool:
    """Whether the same was asked some moments ago: in a child of a fork, the thread that reads is missing."""
    return before[:-1] == given[:-1] and given[-1] - before[-1] <= _MOMENTS_LATE


def available_memory() -> int:
    """Bytes that are free, or less where a container's limit is nearer."""
    return int(min(_free_memory(_moment()), _container_memory(_ROOT, _moment())))


def available_cores() -> int:
    """Cores this process may use, or fewer where a container's quota is nearer."""
    cores = len(_own_cores())
    return max(1, min(cores, math.ceil(min(cores, _container_cores(_ROOT, _moment())))))


def free_cores() -> int:
    """The number of available cores that nobody else uses now, rounded, at least 1; a quota is rounded down.

    What others used is what was neither idle nor ours since the last look, where that was a short time ago;
    else it is the number of threads that are running at this moment, less the one that asks.
    """
    quota = min(len(_own_cores()), _container_cores(_ROOT, _moment()))
    return max(1, min(math.floor(quota), round(_unused_cores(_ROOT, _own_cores(), _moment()))))


def _own_cores() -> frozenset[int]:
    """The numbers of the cores that this process may use."""
    try:
        return frozenset(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows have no such function.
        return frozenset(range(os.cpu_count() or 1))


# --- what others use -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Usage:
    """What the cores did since the system started, in seconds, at some time."""

    at: float
    idle: float  # seconds that our cores were idle, added up
    own: float  # CPU seconds of this process, with all its threads
    running: int  # the number of threads that run on the whole machine, this one among them
    cores: int  # the number of cores of the whole machine


_looked: _Usage | None = None


@_current
def _unused_cores(root: Path, ours: frozenset[int], moment: int) -> float:
    global _looked
    before, now = _looked, _usage(root, ours)
    _looked = now
    if before is None or not _SECONDS_CURRENT / 2 <= now.at - before.at <= _SECONDS_AVERAGED:
        return now.cores - max(0, now.running - 1)
    return (now.idle - before.idle + now.own - before.own) / (now.at - before.at)


def _usage(root: Path, ours: frozenset[int]) -> _Usage:
    """From the kernel's own figures on Linux; elsewhere from psutil, with the load of the last minute."""
    try:
        lines = [line.split() for line in (root / "proc/stat").read_text().splitlines()]
        cores = {int(words[0][3:]): words for words in lines if words[0][:3] == "cpu" and words[0] != "cpu"}
        tick = os.sysconf("SC_CLK_TCK")
        idle = sum(int(words[4]) + int(words[5]) for number, words in cores.items() if number in ours) / tick
        running = sum(int(words[1]) for words in lines if words[0] == "procs_running")
        if cores.keys() >= ours:
            return _Usage(monotonic(), idle, process_time(), running, len(cores))
    except (OSError, ValueError, IndexError, AttributeError):
        # The system is not Linux, or a sandbox shows less.
        pass
    import psutil

    spent = psutil.cpu_times(percpu=True)
    load = round(psutil.getloadavg()[0]) + 1
    return _Usage(monotonic(), sum(core.idle for core in spent), process_time(), load, len(spent))


def _moment() -> int:
    return int(monotonic() / _SECONDS_CURRENT)


def _container_folders(root: Path, controller: str) -> tuple[Path, ...]:
    """Folders whose limits bind this process, innermost first: of cgroup v2 and of v1's ``controller``."""
    try:
        lines = (root / "proc/self/cgroup").read_text()
    except OSError:  # The system is not Linux.
        return ()
    return _existing_folders(root, lines, controller)


@cache  # Finding them takes longer than small fits.
def _existing_folders(root: Path, lines: str, controller: str) -> tuple[Path, ...]:
    return tuple(folder for folder in _folders(root, lines, controller) if folder.is_dir())


def _folders(root: Path, lines: str, controller: str) -> Iterator[Path]:
    """Folders that the kernel's list of groups names."""
    for line in lines.splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        mount = root / "sys/fs/cgroup" / (controller if controllers else "")
        folder = mount / path.lstrip("/")
        # Inside a container the path may be the host's, and only the mount itself is there to read.
        yield from (f for f in (folder, *folder.parents) if f == mount or mount in f.parents)


@_current
def _free_memory(moment: int) -> int:
    """Bytes that the machine has free."""
    import psutil

    return int(psutil.virtual_memory().available)


@_current
def _container_memory(root: Path, moment: int) -> float:
    """Bytes left under the nearest memory limit, counting the file cache as free; ∞ without a limit."""
    left = math.inf
    for folder in _container_folders(root, "memory"):
        limit = _number(folder / "memory.max", folder / "memory.limit_in_bytes")
        used = _number(folder / "memory.current", folder / "memory.usage_in_bytes") or 0
        if limit is not None:
            left = min(left, limit - used + _file_cache(folder / "memory.stat"))
    return left


@_current
def _container_cores(root: Path, moment: int) -> float:
    """Cores under the nearest CPU quota, perhaps a fraction; ∞ without a quota."""
    cores = math.inf
    for folder in _container_folders(root, "cpu"):
        quota = _number(folder / "cpu.max", folder / "cpu.cfs_quota_us")
        period = _number(folder / "cpu.cfs_period_us") or _number(folder / "cpu.max", word=1)
        if quota is not None and quota > 0 and period:
            cores = min(cores, quota / period)
    return cores


def _number(*files: Path, word: int = 0) -> int | None:
    """The number in the first of these files that exists; None where there is none ("max" is no limit)."""
    for file in files:
        try:
            return int(file.read_text().split()[word])
        except (OSError, ValueError, IndexError):
            continue
    return None


def _file_cache(stat: Path) -> int:
    try:
        facts = dict(line.split() for line in stat.read_text().splitlines())
    except (OSError, ValueError):
        return 0
    return int(facts.get("total_inactive_file", facts.get("inactive_file", 0)))
