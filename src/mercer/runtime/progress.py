r"""How far a long computation has come: a bar on a terminal, silence elsewhere, events for programs.

``mercer.config(progress=…)`` chooses: None draws a bar when standard error is a terminal, True always,
False never, and a function is called with one dict at the start, at each step and at the end.

>>> from mercer.runtime.config import config
>>> with config(progress=lambda event: print(event["done"], "of", event["total"], event["facts"])):
...     with progress(2, "epochs") as bar:
...         for mistakes in (3, 0):
...             bar.advance(mistakes=mistakes)
0 of 2 {}
1 of 2 {'mistakes': 3}
2 of 2 {'mistakes': 0}
"""

from __future__ import annotations

import shutil
import sys
import threading
from contextlib import suppress
from time import perf_counter
from typing import Any, ClassVar, Self, TextIO

from mercer.data.types import ProgressMode
from mercer.errors import InputError
from mercer.runtime.clock import now
from mercer.runtime.config import settings

#: The fact that stands in the place of steps per second where it is known: rows per second, in the last pass.
ROWS = "rows/s"

_REFRESH_SECONDS = 0.1  # the least time between two drawings: more often, nobody could read it
_BAR_WIDTH = 20  # characters
_TICK_SECONDS = 0.5  # What has a time limit is drawn this often, whether or not a step was done.


def progress(total: int | None, label: str) -> Progress:
    """A :class:`Progress` as the settings ask; ``total=None`` when the number of steps is not known.

    >>> with progress(None, "points read") as bar:
    ...     bar.advance(1000)
    """
    return Progress(total, label, settings().progress)


def make_room() -> None:
    """Call this before a line is written on a terminal where a bar may be."""
    if Progress._shown is not None:
        Progress._shown.hide()


class Progress:
    """Counts steps in a ``with`` block and tells of them; see the module.

    With a ``limit`` in seconds and no ``total`` the bar is the part of the time that has passed, on the clock
    that stands still while code is compiled, and it moves by itself.
    """

    #: The bar that has the terminal holds this lock: bars inside it, or in other threads, stay silent.
    _terminal: ClassVar[threading.Lock] = threading.Lock()
    _shown: ClassVar[Progress | None] = None  # the bar that holds the lock

    def __init__(
        self,
        total: int | None,
        label: str,
        mode: ProgressMode = None,
        *,
        limit: float | None = None,
    ) -> None:
        if total is not None and total < 0:
            raise InputError(f"total must be zero or more, got {total}: pass the number of steps, or None")
        self.total = total
        self.label = label
        self.done = 0
        self.facts: dict[str, Any] = {}
        self._mode = mode
        self._limit = limit if total is None else None
        self._stream: TextIO | None = None
        self._pen = threading.RLock()  # A thread of its own draws as well.
        self._over = threading.Event()

    def __enter__(self) -> Self:
        self._start = self._drawn_at = perf_counter()
        self._began = now()
        self._drawn = 0  # the number of characters that are on the line now
        stream = sys.stderr
        wanted = self._mode is True or (self._mode is None and stream is not None and stream.isatty())
        if wanted and stream is not None and self._terminal.acquire(blocking=False):
            self._stream = stream
            Progress._shown = self
            if self._limit is not None:
                self._over.clear()
                self._ticker = threading.Thread(target=self._tick, name="mercer-progress", daemon=True)
                self._ticker.start()
        self._tell()
        return self

    def _tick(self) -> None:
        with suppress(OSError, ValueError):  # The terminal may be gone.
            while not self._over.wait(_TICK_SECONDS):
                self._draw(perf_counter())

    def hide(self) -> None:
        """Make room for another line; the bar comes back below it."""
        with self._pen:
            if self._stream is not None and self._drawn:
                self._stream.write("\r" + " " * self._drawn + "\r")
                self._stream.flush()
                self._drawn = 0

    def advance(self, steps: int = 1, **facts: Any) -> None:
        """Count ``steps`` more as done; ``facts`` (an objective, a gap) are shown beside the count."""
        self.done += steps
        self.facts.update(facts)
        self._tell()
        self.show()

    def show(self, **facts: Any) -> None:
        """What is known within a step: the bar shows it, and programs hear of it with the step."""
        self.facts.update(facts)
        at = perf_counter()
        if self._stream is not None and at - self._drawn_at >= _REFRESH_SECONDS:
            self._draw(at)

    def __exit__(self, *exception: object) -> None:
        if self._stream is None:
            return
        if self._limit is not None:
            self._over.set()
            self._ticker.join()
            if self._mode is not True:
                self.hide()  # A bar of time that has passed is no result.
        try:
            if self._drawn or self._mode is True:  # A job that is shorter than one refresh leaves no trace.
                self._draw(perf_counter())
                self._stream.write("\n")
                self._stream.flush()
        finally:
            self._stream = Progress._shown = None
            self._terminal.release()

    def _tell(self) -> None:
        if callable(self._mode):
            self._mode(
                {
                    "label": self.label,
                    "done": self.done,
                    "total": self.total,
                    "elapsed": perf_counter() - self._start,
                    "facts": dict(self.facts),
                }
            )

    def _draw(self, at: float) -> None:
        with self._pen:
            if self._stream is None:
                return
            room = shutil.get_terminal_size().columns - 1
            line = self._line(at - self._start)
            line = (line if len(line) <= room else self._line(at - self._start, _BAR_WIDTH // 2))[:room]
            self._stream.write("\r" + line.ljust(self._drawn))
            self._stream.flush()
            self._drawn, self._drawn_at = len(line), at

    def _line(self, elapsed: float, width: int = _BAR_WIDTH) -> str:
        if self._limit is not None:
            return self._line_of_time(self._limit)
        rate = self.done / elapsed if elapsed > 0 else 0.0
        parts = [self.label]
        if self.total is None:
            parts.append(f"{self.done:,}")
        else:
            share = min(1.0, self.done / self.total) if self.total else 1.0
            parts += [_bar(share, width), f"{self.done:,}/{self.total:,}"]
        speed = f"{self.facts[ROWS]:.3g} {ROWS}" if ROWS in self.facts else f"{rate:.3g}/s"
        parts += [speed, _clock(elapsed)]
        if self.total is not None and rate > 0 and self.done < self.total:
            parts.append(f"{_clock((self.total - self.done) / rate)} left")
        return "  ".join([*parts, *self._shown_facts()])

    def _line_of_time(self, limit: float) -> str:
        passed = now() - self._began
        left = f"{_clock(max(limit - passed, 0.0))} of {_clock(limit)} left"
        parts = [self.label, _bar(passed / limit, _BAR_WIDTH // 2), left]
        return "  ".join([*parts, *self._shown_facts()])

    def _shown_facts(self) -> list[str]:
        return [
            f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in dict(self.facts).items()
            if name != ROWS
        ]


def _bar(share: float, width: int = _BAR_WIDTH) -> str:
    """A share in percent and as a length.

    >>> _bar(0.5)
    ' 50% [##########..........]'
    """
    share = min(max(share, 0.0), 1.0)
    full = int(share * width)
    return f"{share:4.0%} [{'#' * full}{'.' * (width - full)}]"


def _clock(seconds: float) -> str:
    """Seconds as m:ss or h:mm:ss."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
