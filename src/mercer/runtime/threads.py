"""Threads: ours, as many as the configuration says, each with a BLAS of one thread.

Work is cut into tasks that do not depend on the number of threads, and every output entry is
written by one task, so results are the same for any number of threads. Tasks are taken from a queue:
where a core is shared with other programs, the thread that waits for it takes fewer of them.

The threads of BLAS are another matter. They share out every product evenly and spin until the last of them is
done, so that one that waits for its core holds up all the others; NumPy and SciPy bring a BLAS each, and
the threads of one spin against those of the other. Hence one rule for all solvers: **BLAS has one thread**
inside an estimator and inside `run`; a large factorisation that is LAPACK's own may ask for more
(`large_lapack`), and gets as many as are free.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from functools import cache, wraps
from threading import Lock, get_ident
from typing import Any, Final, ParamSpec, TypeVar

from mercer.runtime.config import settings, thread_count, threads_within
from mercer.runtime.machine import free_cores

__all__ = ["LARGE", "blas_threads", "by_our_threads", "large_lapack", "run", "single_threaded_blas", "team"]

#: The order of a matrix from which LAPACK may use several threads of BLAS. A step of a factorisation is a
#: product of about n · n · 64 terms, after which its threads wait for one another. At n = 3000 these are
#: 0.6·10⁹ multiplications, some 20 ms of one core and several time slices of the system: a thread that has
#: to wait for its slice costs the others less than they save. At n = 1000 it is 2 ms, less than a slice.
LARGE: Final = 3000

_lock = Lock()
#: the numbers of threads that each thread inside asked for, the innermost last
_wishes: dict[int, list[int]] = {}
_originals: list[int] = []


def blas_threads(n: int) -> int:
    """Threads of BLAS for a factorisation of n × n: 1 where n is small, else those configured or free.

    >>> blas_threads(1000)
    1
    """
    return 1 if n < LARGE else settings().threads or free_cores()


@contextmanager
def large_lapack(n: int) -> Iterator[None]:
    """BLAS on `blas_threads(n)` threads, for a routine of LAPACK that we have no tiles for."""
    with _limited_blas(blas_threads(n)):
        yield


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """BLAS on one thread while anybody is inside."""
    with _limited_blas(1):
        yield


@contextmanager
def _limited_blas(threads: int) -> Iterator[None]:
    """BLAS on so many threads; on fewer where it had fewer, or where others are inside.

    A limit for the whole process is what the most modest of its threads wishes, shared by all of them; it is
    set by each that comes or goes, and lifted by the last out. An OpenMP BLAS has one limit per thread, set
    and lifted by each.
    """
    me = get_ident()
    if _wishes.get(me, [0])[-1] == threads:  # The same number is in force already.
        yield
        return
    libraries = _libraries()
    with _lock:
        mine = [library.get_num_threads() for library in libraries]
        if not _wishes:
            _originals[:] = mine
        _wishes.setdefault(me, []).append(threads)
        _apply(libraries, threads)
    try:
        yield
    finally:
        with _lock:
            inside = _wishes.get(me, [])  # A child that was forked inside has none.
            if inside:
                inside.pop()
            if not inside:
                _wishes.pop(me, None)
            _apply(libraries, None)
            for library, own in zip(libraries, mine, strict=True):
                if _is_per_thread(library):
                    _limit(library, own)


def _apply(libraries: list[Any], own: int | None) -> None:
    """The limit that follows from all wishes; ``own`` for a BLAS with a limit per thread."""
    common = None
    if _wishes:
        common = max(1, min(inside[-1] for inside in _wishes.values()) // len(_wishes))
    for library, original in zip(libraries, _originals, strict=True):
        if not _is_per_thread(library):
            _limit(library, original if common is None else min(original, common))
        elif own is not None:
            _limit(library, own)


@cache
def _blas() -> Any:
    """The BLAS libraries of the process; looking for them takes as long as a small fit."""
    import numpy as np  # noqa: F401  both must have loaded their BLAS before it can be limited
    import scipy.linalg.cython_blas  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def _libraries() -> list[Any]:
    return list(_blas().lib_controllers)


def _limit(library: Any, threads: int) -> None:
    # threadpoolctl lets only one thread at a time control a pool of the whole process; here the lock and
    # the wishes decide.
    release = getattr(library, "clear_controlling_thread", lambda force: None)
    release(force=True)
    library.set_num_threads(threads)
    release(force=True)


def _is_per_thread(library: Any) -> bool:
    return getattr(library, "threading_layer", None) == "openmp"


def _after_fork() -> None:
    """A child has none of the threads that may have been inside."""
    global _lock
    _lock = Lock()
    if _wishes:
        _wishes.clear()
        for library, original in zip(_libraries(), _originals, strict=True):
            _limit(library, original)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


# --- our own threads -------------------------------------------------------------------------------


def run(task: Callable[[Any], None], tasks: Iterable[Any], threads: int | None = None) -> None:
    """``task(t)`` for every t, on the configured threads. An exception or Ctrl-C stops the rest.

    A task that calls ``run`` itself has its share of the threads for it.
    """
    tasks = list(tasks)
    most = threads or thread_count()
    workers = min(most, len(tasks))
    with single_threaded_blas():
        if workers <= 1:
            for item in tasks:
                task(item)
            return
        queue = iter(tasks)
        guard = Lock()

        def worker() -> None:
            with single_threaded_blas(), threads_within(most // workers):
                while not stopped:
                    with guard:
                        item = next(queue, None)
                    if item is None:
                        return
                    task(item)

        stopped: list[bool] = []
        with _threads(workers) as pool:
            futures = [pool.submit(_context().run, worker) for _ in range(workers)]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
            finally:
                stopped.append(True)
                wait(futures)
            for future in futures:
                future.result()


class _Team:
    """Threads that are kept from the first time they are needed; those of a parent are not in a child."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._pool: ThreadPoolExecutor | None = None

    @property
    def pool(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(thread_count())
        return self._pool

    def dismiss(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()


_team: ContextVar[_Team | None] = ContextVar("mercer_team", default=None)


@contextmanager
def team() -> Iterator[None]:
    """Keep threads from one ``run`` to the next, for a solver that calls it thousands of times."""
    if _own_team() is not None:
        yield
        return
    members = _Team()
    token = _team.set(members)
    try:
        yield
    finally:
        _team.reset(token)
        members.dismiss()


def _own_team() -> _Team | None:
    made = _team.get()
    return made if made is not None and made.process == os.getpid() else None


P = ParamSpec("P")
R = TypeVar("R")


def by_our_threads(method: Callable[P, R]) -> Callable[P, R]:
    """The method with one thread of BLAS and a team of ours: the door that all estimators go through."""

    @wraps(method)
    def inside(*args: P.args, **options: P.kwargs) -> R:
        with single_threaded_blas(), team():
            return method(*args, **options)

    return inside


@contextmanager
def _threads(workers: int) -> Iterator[ThreadPoolExecutor]:
    """The team, or threads for this once."""
    members = _own_team()
    if members is not None:
        yield members.pool
        return
    with ThreadPoolExecutor(workers) as pool:
        yield pool


def _context() -> Context:
    """The context of the caller, without its team: a member that waited for others might wait for ever."""
    context = copy_context()
    context.run(_team.set, None)
    return context
