r"""The time that limits pay for: a clock that stands still while code is compiled.

A time limit pays for learning. Compiling happens once on a machine, and may take longer than the limit: if
it were charged, the first run would learn less than all later ones. Everything that has an end, ``max_time``
of a solver, of a search and ``--time`` of the command, therefore compares with `now`.

>>> from time import sleep
>>> before = now()
>>> with standing_still():
...     sleep(0.05)
>>> bool(now() - before < 0.04)
True

`mercer.runtime.native` stops the clock whenever Numba has its compiler; `tell_of_compiling` is for a program
that wants to say so while it lasts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from time import monotonic
from typing import NamedTuple

#: when this file was loaded, which is the first thing that ``import mercer`` does
STARTED = monotonic()
_LONG_COMPILING = 0.5  # Compiling that takes more seconds than this, in all, is reported.


class _State(NamedTuple):
    """The state of the clock, which is replaced as a whole, so that it is read without the lock."""

    depth: int = 0  # how many compilers are at work or wait for one another
    since: float = 0.0  # the time at which the first of them began
    total: float = 0.0  # seconds for which the clock has stood still before


_state = _State()
_guard = Lock()
_told: list[Callable[[], object]] = []


def _after_fork() -> None:
    """A child has none of the threads that may have been compiling."""
    global _guard, _state
    _guard = Lock()
    _state = _State(total=_stood(_state))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def now() -> float:
    """Seconds, from some beginning, in which nothing was compiled."""
    state = _state
    return (state.since if state.depth else monotonic()) - state.total


def compiling_seconds() -> float:
    """How long the clock has stood still since the process began."""
    return _stood(_state)


def _stood(state: _State) -> float:
    return state.total + (monotonic() - state.since if state.depth else 0.0)


def pause() -> None:
    """The clock stands still until ``resume`` was called as often as this."""
    global _state
    with _guard:
        depth, since, total = _state
        _state = _State(depth + 1, since if depth else monotonic(), total)


def resume() -> None:
    """See `pause`."""
    global _state
    with _guard:
        depth, since, total = _state
        if depth > 1:
            _state = _State(depth - 1, since, total)
        elif depth == 1:  # A pause that began before a fork ends in the parent alone.
            _state = _State(0, 0.0, total + monotonic() - since)


@contextmanager
def standing_still() -> Iterator[None]:
    """The clock stands still inside."""
    pause()
    try:
        yield
    finally:
        resume()


# --- what is said of it --------------------------------------------------------------------------------


@contextmanager
def tell_of_compiling(tell: Callable[[], object]) -> Iterator[None]:
    """Call ``tell`` once inside, as soon as compiling has taken half a second in all."""
    before = compiling_seconds()

    def check() -> None:
        if compiling_seconds() - before > _LONG_COMPILING:
            _told.remove(check)
            tell()

    _told.append(check)
    try:
        yield
    finally:
        if check in _told:
            _told.remove(check)


def compiles() -> None:
    """What the compiler's passes call: those that want to say so are asked."""
    for check in tuple(_told):
        check()
