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
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import Context, copy_context
from functools import cache, wraps
from threading import Condition, Lock, Thread, get_ident
from typing import Any, Final, ParamSpec, TypeVar

from mercer.runtime.config import settings, thread_count, threads_within
from mercer.runtime.machine import available_cores, free_cores

#: The order of a matrix from which LAPACK may use several threads of BLAS. A step of a factorisation is a
#: product of about n · n · 64 terms, after which its threads wait for one another. At n = 3000 these are
#: 0.6·10⁹ multiplications, some 20 ms of one core and several time slices of the system: a thread that has
#: to wait for its slice costs the others less than they save. At n = 1000 it is 2 ms, less than a slice.
LARGE: Final = 3000

_lock = Lock()
#: the numbers of threads that each thread inside asked for, the innermost last
_wishes: dict[int, list[list[int]]] = {}
_originals: list[int] = []


def blas_threads(n: int) -> int:
    """Threads of BLAS for a factorisation of n × n: 1 where n is small, else those configured or free.

    >>> blas_threads(1000)
    1
    """
    return 1 if n < LARGE else settings().threads or free_cores()


def large_lapack(n: int) -> AbstractContextManager[None]:
    """BLAS on `blas_threads(n)` threads, for a routine of LAPACK that we have no tiles for."""
    return _limited_blas(blas_threads(n))


def single_threaded_blas() -> AbstractContextManager[None]:
    """BLAS on one thread while anybody is inside."""
    return _limited_blas(1)


@contextmanager
def _limited_blas(threads: int) -> Iterator[None]:
    """BLAS on so many threads; on fewer where it had fewer, or where others are inside.

    A limit for the whole process is what the most modest of its threads wishes, shared by all of them; it is
    set by each that comes or goes, and lifted by the last out. An OpenMP BLAS has one limit per thread, set
    and lifted by each.
    """
    me = get_ident()
    if _innermost(me) == threads:  # The same number is in force already.
        yield
        return
    libraries, wish = _libraries(), [threads]
    per_thread: list[tuple[_Library, int]] = []
    try:
        with _lock:
            if not _originals:
                _originals[:] = [library.get_num_threads() for library in libraries]
            per_thread += [
                (library, library.get_num_threads()) for library in libraries if library.is_per_thread
            ]
            _wishes.setdefault(me, []).append(wish)
            _apply()
        for library, _ in per_thread:
            library.limit(threads)
        yield
    finally:
        del wish[0]  # It no longer counts, should Ctrl-C come in what follows.
        for library, own in per_thread:
            library.limit(own)
        with _lock:
            _apply()


@contextmanager
def _blas_beside_the_caller() -> Iterator[None]:
    """BLAS on one thread in a helper, whose caller is inside with the same wish."""
    me, wish = get_ident(), [1]
    for library in _libraries():
        if library.is_per_thread:
            library.limit(1)
    with _lock:
        _wishes[me] = [wish]
    try:
        yield
    finally:
        with _lock:
            del wish[0]
            if len(_wishes) > 1:
                _wishes.pop(me, None)
            else:  # The caller was interrupted, and did not wait.
                _apply()


def _innermost(thread: int) -> int | None:
    """What the thread wishes now."""
    return next((wish[0] for wish in reversed(_wishes.get(thread, [])) if wish), None)


def _apply() -> None:
    """Set the limit that follows from all wishes; without any, the number that BLAS had before them."""
    for thread in list(_wishes):
        _wishes[thread] = [wish for wish in _wishes[thread] if wish]
        if not _wishes[thread]:
            del _wishes[thread]
    wishes = [inside[-1][0] for inside in _wishes.values()]
    common = max(1, min(wishes) // len(wishes)) if wishes else None
    for library, original in zip(_libraries(), _originals, strict=False):  # A child may have none.
        if not library.is_per_thread:
            library.limit(original if common is None else min(original, common))
    if common is None:
        _originals.clear()


class _Library:
    """A BLAS of the process: how many threads it has, and a limit on them."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self.get_num_threads = library.get_num_threads
        #: whether each thread of the process has a limit of its own
        self.is_per_thread = getattr(library, "threading_layer", None) == "openmp"
        names = [f"{a}openblas_set_num_threads{b}" for a in ("", "scipy_") for b in ("", "64_", "_64")]
        dynamic = getattr(library, "dynlib", None)
        found = [function for name in names if (function := getattr(dynamic, name, None)) is not None]
        #: OpenBLAS is asked itself: threadpoolctl takes longer than a small prediction
        self.limit: Callable[[int], object] = found[0] if found else self._limit

    def _limit(self, threads: int) -> None:
        # threadpoolctl lets only one thread at a time control a pool of the whole process; here the lock
        # and the wishes decide
        release = getattr(self._library, "clear_controlling_thread", lambda force: None)
        release(force=True)
        self._library.set_num_threads(threads)
        release(force=True)


@cache
def _libraries() -> tuple[_Library, ...]:
    """The BLAS libraries of the process; looking for them takes as long as a small fit."""
    import numpy as np  # noqa: F401  both must have loaded their BLAS before it can be limited
    import scipy.linalg.cython_blas  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return tuple(map(_Library, ThreadpoolController().select(user_api="blas").lib_controllers))


def _after_fork() -> None:
    """A child has none of the threads that may have been inside, or helping."""
    global _lock, _crew
    _lock, _crew = Lock(), _Crew()
    if _wishes:
        _wishes.clear()
        _apply()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


# --- our own threads -------------------------------------------------------------------------------


def run(task: Callable[[Any], None], tasks: Iterable[Any], threads: int | None = None) -> None:
    """``task(t)`` for every t, on the configured threads. An exception or Ctrl-C stops the rest.

    The caller is one of the threads, so that it never waits for another one to begin. A task that calls
    ``run`` itself has its share of the threads for it.
    """
    tasks = list(tasks)
    most = threads or thread_count()
    workers = min(most, len(tasks))
    with single_threaded_blas():
        if workers <= 1:
            for item in tasks:
                task(item)
            return
        job = _Job(task, tasks, most // workers)
        try:
            _crew.help(job, workers - 1, most - 1)
            job.work()
        finally:
            job.end()


class _Job:
    """Tasks that a caller and the threads that help it take from one queue."""

    def __init__(self, task: Callable[[Any], None], tasks: list[Any], share: int) -> None:
        self._task: Callable[[Any], None] | None = task
        self._queue = iter(tasks)
        #: how many threads each task has for itself
        self._share = share
        self._changed = Condition(Lock())
        self._helpers = 0
        self._error: BaseException | None = None

    @property
    def is_over(self) -> bool:
        return self._task is None

    def work(self) -> None:
        """Take tasks until none is left."""
        with threads_within(self._share):
            for task, item in iter(self._next, None):
                task(item)

    def _next(self) -> tuple[Callable[[Any], None], Any] | None:
        with self._changed:
            if self._task is not None:
                for item in self._queue:
                    return self._task, item
            return None

    def assist(self) -> None:
        """Work beside the caller, unless it has ended the job."""
        with self._changed:
            if self._task is None:
                return
            self._helpers += 1
        try:
            with _blas_beside_the_caller():
                self.work()
        except BaseException as error:
            with self._changed:
                self._task, self._error = None, self._error or error
        finally:
            with self._changed:
                self._helpers -= 1
                self._changed.notify()

    def end(self) -> None:
        """Begin no other task, wait for the helpers that are at work, and raise what went wrong there."""
        with self._changed:
            self._task = None
            while self._helpers:
                self._changed.wait()
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback and this frame would keep each other, and the data, alive


class _Crew:
    """The threads of the process that wait for a job to help with; each of them begins when it is needed."""

    def __init__(self) -> None:
        self._calls: deque[tuple[Context, _Job]] = deque()
        self._called = Condition(Lock())
        self._size = self._busy = 0

    def help(self, job: _Job, helpers: int, most: int) -> None:
        """Call so many helpers; no more than ``most``, or than there are cores, are ever made."""
        most = max(most, available_cores() - 1)
        with self._called:
            # A job of short tasks may be over before its call is heard: that call must not take a place.
            self._calls = deque(call for call in self._calls if not call[1].is_over)
            waiting = len(self._calls)
            for _ in range(min(helpers - (self._size - self._busy - waiting), most - self._size)):
                Thread(target=self._member, name="mercer", daemon=True).start()
                self._size += 1
            helpers = min(helpers, self._size - waiting)  # calls that nobody can hear are not made
            self._calls.extend((copy_context(), job) for _ in range(helpers))
            self._called.notify(helpers)

    def _member(self) -> None:
        while True:
            with self._called:
                while not self._calls:
                    self._called.wait()
                context, job = self._calls.popleft()
                self._busy += 1
            try:
                context.run(job.assist)
            finally:
                with self._called:
                    self._busy -= 1
            del context, job


_crew = _Crew()
P = ParamSpec("P")
R = TypeVar("R")


def by_our_threads(method: Callable[P, R]) -> Callable[P, R]:
    """The method with one thread of BLAS: the door that all estimators go through."""

    @wraps(method)
    def inside(*args: P.args, **options: P.kwargs) -> R:
        with single_threaded_blas():
            return method(*args, **options)

    return inside
