"""Threads: as many as the configuration says, each with a BLAS of one thread.

Work is cut into tasks that do not depend on the number of threads, and every output entry is
written by one task, so results are the same for any number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from functools import cache
from threading import Lock
from typing import Any

from mercer.config import settings, thread_count

__all__ = ["limited_blas", "run", "single_threaded_blas", "team"]

_lock = Lock()
_users = 0
_originals: list[int] = []


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
    # threadpoolctl lets only one thread at a time control a pool of the whole process; here the lock
    # and the count of users decide
    release = getattr(library, "clear_controlling_thread", lambda force: None)
    release(force=True)
    library.set_num_threads(threads)
    release(force=True)


def _is_per_thread(library: Any) -> bool:
    return getattr(library, "threading_layer", None) == "openmp"


def _after_fork() -> None:
    """A child has none of the threads that may have been inside."""
    global _lock, _users
    _lock = Lock()
    if _users:
        _users = 0
        for library, original in zip(_libraries(), _originals, strict=True):
            _limit(library, original)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """BLAS on one thread while anybody is inside.

    A limit for the whole process is set by the first in and lifted by the last out; an OpenMP
    BLAS has one limit per thread, set and lifted by each.
    """
    global _users, _originals
    libraries = _libraries()
    with _lock:
        mine = [library.get_num_threads() for library in libraries]
        _users += 1
        if _users == 1:
            _originals = mine
        for library in libraries:
            _limit(library, 1)
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            for library, own, original in zip(libraries, mine, _originals, strict=True):
                if _is_per_thread(library):
                    _limit(library, own)
                elif _users == 0:
                    _limit(library, original)


def run(task: Callable[[Any], None], tasks: Iterable[Any], threads: int | None = None) -> None:
    """``task(t)`` for every t, on the configured threads. An exception or Ctrl-C stops the rest."""
    tasks = list(tasks)
    workers = min(threads or thread_count(), len(tasks))
    with single_threaded_blas():
        if workers <= 1:
            for item in tasks:
                task(item)
            return
        queue = iter(tasks)
        guard = Lock()

        def worker() -> None:
            with single_threaded_blas():
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


_team: ContextVar[ThreadPoolExecutor | None] = ContextVar("mercer_team", default=None)


@contextmanager
def team() -> Iterator[None]:
    """Keep threads from one ``run`` to the next, for a solver that calls it thousands of times."""
    with ThreadPoolExecutor(thread_count()) as pool:
        token = _team.set(pool)
        try:
            yield
        finally:
            _team.reset(token)


@contextmanager
def _threads(workers: int) -> Iterator[ThreadPoolExecutor]:
    """The team, or threads for this once."""
    pool = _team.get()
    if pool is not None:
        yield pool
        return
    with ThreadPoolExecutor(workers) as pool:
        yield pool


def _context() -> Context:
    """The context of the caller, without its team: a member that waited for others might wait for ever."""
    context = copy_context()
    context.run(_team.set, None)
    return context


@contextmanager
def limited_blas() -> Iterator[None]:
    """BLAS on at most the configured threads, for the work of solvers; as it is when none are configured."""
    if settings().threads is None:
        yield
        return
    with _blas().limit(limits=thread_count()):
        yield
