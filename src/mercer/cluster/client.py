r"""Which cluster is meant, and what is said when it fails.

What may fail, and what is done about it (``dask.config`` has the numbers, under ``mercer``):

    a task raises      it is tried again, ``mercer.retries`` times (2); then the fit ends: block, cause
    a worker dies      Dask computes elsewhere what it had. A task that was on more dying workers than the
                       scheduler's ``allowed-failures`` (3) is sent anew, ``mercer.sendings`` times (3)
    no worker is left  others are waited for, ``mercer.workers-timeout`` (300 s)
    the scheduler dies the fit ends; ``resume=True`` goes on from its checkpoint on another cluster
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any

from mercer.errors import ClusterError, InputError, InputTypeError, MemoryBudgetError, require
from mercer.runtime.config import format_bytes, settings

_CONNECTING = 10.0  # seconds that a scheduler has to answer in
_LIMITS = {"retries": 2, "sendings": 3, "workers-timeout": 300.0}


def dask_module(name: str) -> Any:
    """A module of Dask or of distributed, or the line that installs them."""
    return require(name, "dask")


def limit(name: str) -> float:
    """A number of the table above, as it is configured now."""
    return float(dask_module("dask.config").get(f"mercer.{name}", _LIMITS[name]))


def active_client() -> Any:
    """``config(cluster=…)``, else the client of this thread or process; None where there is none."""
    client = settings().cluster or dask_module("distributed.client")._get_global_client()
    if client is not None:
        require_waiting(client)
    return client


def require_waiting(client: Any) -> None:
    """Refuse a client whose calls return before they are answered."""
    if client.asynchronous:
        raise InputError(
            f"{client!r} is asynchronous here, and mercer waits for its tasks: pass one made "
            "by dask.distributed.Client(address); in a coroutine, await asyncio.to_thread(model.fit, X, y)"
        )


def connected(address: str) -> Any:
    """A client of the scheduler at an address; it is closed at the end of its ``with``."""
    make = dask_module("distributed").Client
    try:
        return make(address, timeout=_CONNECTING, set_as_default=False)
    except (OSError, ValueError, TypeError, AssertionError) as error:
        raise InputError(
            f"there is no scheduler of Dask at {address!r} ({str(error) or type(error).__name__}): pass the "
            "address that `dask scheduler` prints, such as tcp://10.0.0.5:8786; for tls://… Dask's own "
            "settings name the certificates, distributed.comm.tls"
        ) from error


def is_alive(client: Any) -> bool:
    """Whether the client is connected to its scheduler."""
    return client.status == "running" and client.scheduler_comm is not None


def threads_of(client: Any) -> dict[str, int]:
    """The workers there are now, and the threads of each; none where nobody answers."""
    with suppress(OSError, TimeoutError):
        return dict(client.nthreads())
    return {}


def forget_messages(client: Any) -> None:
    """Let go of what was sent: Dask keeps a client's last 1,000 messages below 1 MB, with their arrays."""
    log = getattr(client.scheduler_comm, "recent_message_log", None)
    if log is not None:
        log.clear()


def lost_scheduler(client: Any) -> ClusterError:
    """What is said when the scheduler is gone."""
    address = getattr(client.scheduler, "address", None) or getattr(client, "_start_arg", "")
    return ClusterError(
        f"the connection to the scheduler {address} is lost, and the tasks with it: start another one, and "
        "make a new Client; a fit with checkpoint=… goes on with resume=True"
    )


def require_worker_memory(client: Any, n_bytes: int, remedy: str) -> None:
    """Refuse tasks that do not fit the smallest worker there is now, for each of its threads."""
    if not is_alive(client):
        raise lost_scheduler(client)
    for address, worker in client.scheduler_info(n_workers=-1)["workers"].items():
        has, needed = worker.get("memory_limit") or 0, n_bytes * worker.get("nthreads", 1)
        if 0 < has < needed:
            raise MemoryBudgetError(
                f"the worker {address} has {format_bytes(has)} for {worker.get('nthreads', 1)} threads, and "
                f"needs {format_bytes(needed)}: {remedy}"
            )


def require_workers(client: Any, lacks: Callable[[str, str | None], str | None]) -> None:
    """Refuse a cluster in which some worker cannot compute with the device and backend that are configured.

    ``lacks(device, backend)``, on a worker: why it cannot; None where it can.
    """
    device, backend = settings().device, settings().backend
    if device == "cpu" and backend is None:
        return
    answers = client.run(lacks, device, backend, on_error="ignore") or {}
    lacking = {worker: answer for worker, answer in answers.items() if answer is not None}
    if lacking:
        worker, reason = next(iter(lacking.items()))
        raise ClusterError(
            f"{len(lacking)} of {len(answers)} workers cannot compute with device={device!r} and "
            f"backend={backend!r}, such as {worker} ({reason}): take a cluster of workers of one kind, or "
            "config(device='cpu', backend=None)"
        )


_quiet: list[Any] = []  # who is inside, and first of all what they changed
_quiet_lock = Lock()


@contextmanager
def quiet_graphs() -> Iterator[None]:
    """Dask warns of tasks that hold arrays; ours hold what workers need, once.

    Dask's settings are those of the process: the first thread inside changes them, the last one out puts
    them back.
    """
    with _quiet_lock:
        if not _quiet:
            warned = {"distributed.admin.large-graph-warning-threshold": "1 TiB"}
            _quiet.append(dask_module("dask.config").set(warned))
        _quiet.append(None)
    try:
        yield
    finally:
        with _quiet_lock:
            _quiet.pop()
            if len(_quiet) == 1:
                _quiet.pop().__exit__(None, None, None)


@contextmanager
def sending() -> Iterator[None]:
    """What is sent in here can be large, and has to be such as can be pickled."""
    with quiet_graphs():
        try:
            yield
        except TypeError as error:
            if "serialize" not in str(error) and "pickle" not in str(error):
                raise
            raise InputTypeError(
                f"a task cannot be sent to a cluster ({error.__cause__ or error}): kernels and losses must "
                "be such as can be pickled, without locks, open files or connections"
            ) from error
