r"""How far a long computation has come: a bar on a terminal, silence elsewhere, events for programs.

``mercer.config(progress=…)`` chooses: None draws a bar when standard error is a terminal, True always,
False never, and a function is called with one dict at the start, at each step and at the end.

>>> from mercer.config import config
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
from collections.abc import Callable
from time import perf_counter
from typing import Any, ClassVar, Self, TextIO

from mercer.config import settings
from mercer.errors import InputError

__all__ = ["Progress", "progress"]

_EVERY = 0.1  # seconds between two drawings
_WIDTH = 20  # characters of the bar itself


def progress(total: int | None, label: str) -> Progress:
    """A :class:`Progress` as the settings ask; ``total=None`` when the number of steps is not known.

    >>> with progress(None, "points read") as bar:
    ...     bar.advance(1000)
    """
    return Progress(total, label, settings().progress)


class Progress:
    """Counts steps in a ``with`` block and tells of them; see the module."""

    #: held by the bar that has the terminal: bars inside it, or in other threads, stay silent
    _terminal: ClassVar[threading.Lock] = threading.Lock()

    def __init__(
        self, total: int | None, label: str, mode: bool | Callable[[dict[str, Any]], object] | None = None
    ) -> None:
        if total is not None and total < 0:
            raise InputError(f"total must be zero or more, got {total}: pass the number of steps, or None")
        self.total = total
        self.label = label
        self.done = 0
        self.facts: dict[str, Any] = {}
        self._mode = mode
        self._stream: TextIO | None = None

    def __enter__(self) -> Self:
        self._start = self._drawn_at = perf_counter()
        self._drawn = 0  # characters on the line now
        stream = sys.stderr
        wanted = self._mode is True or (self._mode is None and stream is not None and stream.isatty())
        if wanted and stream is not None and self._terminal.acquire(blocking=False):
            self._stream = stream
        self._tell()
        return self

    def advance(self, steps: int = 1, **facts: Any) -> None:
        """Count ``steps`` more as done; ``facts`` (an objective, a gap) are shown beside the count."""
        self.done += steps
        self.facts.update(facts)
        self._tell()
        now = perf_counter()
        if self._stream is not None and now - self._drawn_at >= _EVERY:
            self._draw(now)

    def __exit__(self, *exception: object) -> None:
        if self._stream is None:
            return
        try:
            if self._drawn or self._mode is True:  # a job shorter than one refresh leaves no trace
                self._draw(perf_counter())
                self._stream.write("\n")
                self._stream.flush()
        finally:
            self._stream = None
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

    def _draw(self, now: float) -> None:
        assert self._stream is not None
        line = self._line(now - self._start)[: shutil.get_terminal_size().columns - 1]
        self._stream.write("\r" + line.ljust(self._drawn))
        self._stream.flush()
        self._drawn, self._drawn_at = len(line), now

    def _line(self, elapsed: float) -> str:
        rate = self.done / elapsed if elapsed > 0 else 0.0
        parts = [self.label]
        if self.total is None:
            parts.append(f"{self.done:,}")
        else:
            share = min(1.0, self.done / self.total) if self.total else 1.0
            full = int(share * _WIDTH)
            parts += [f"{share:4.0%} [{'#' * full}{'.' * (_WIDTH - full)}]", f"{self.done:,}/{self.total:,}"]
        parts += [f"{rate:.3g}/s", _clock(elapsed)]
        if self.total is not None and rate > 0 and self.done < self.total:
            parts.append(f"{_clock((self.total - self.done) / rate)} left")
        parts += [
            f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in self.facts.items()
        ]
        return "  ".join(parts)


def _clock(seconds: float) -> str:
    """Seconds as m:ss or h:mm:ss."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
