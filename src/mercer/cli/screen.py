"""What the command shows: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from mercer.cli.exits import as_options, say
from mercer.runtime.clock import tell_of_compiling
from mercer.runtime.config import config
from mercer.runtime.progress import Progress

_LABEL = 24  # characters of what is done now, in a bar


class _Console(Console):
    """A console whose reader may go away: the command then ends as for all else that it prints."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Screen:
    """Where lines go: with ``as_json`` results are one JSON object, with ``quiet`` nothing else is told."""

    def __init__(self, quiet: bool = False, as_json: bool = False) -> None:
        self.quiet, self.as_json = quiet, as_json
        self._bar: Progress | None = None

    def note(self, text: str) -> None:
        """Something to know, on standard error, in the words of the command line."""
        if not self.quiet:
            say(f"note: {as_options(text)}")

    def step(self, text: str) -> None:
        """What is being done now, on standard error."""
        if self._bar is not None:
            label = text.partition(",")[0].partition(":")[0].partition(";")[0]  # the bar is to fit a line
            self._bar.label, self._bar.facts = label[:_LABEL], {}
        elif not self.quiet:
            say(text)

    @contextmanager
    def countdown(self, seconds: float | None) -> Iterator[None]:
        """On a terminal: the part of the time that has passed, what is done, and the best kernel so far.

        That code is compiled is said there, too; it does not count.
        """
        if self.quiet or sys.stderr is None or not sys.stderr.isatty():
            yield
            return
        with tell_of_compiling(lambda: say("compiling, once on this machine: it is not counted as time …")):
            if seconds is None:
                yield
                return
            with Progress(None, "starting", limit=seconds) as bar, config(progress=self._show):
                self._bar = bar
                try:
                    yield
                finally:
                    self._bar = None

    def _show(self, event: dict[str, Any]) -> None:
        """What a search tells of itself; the bars of its machines are not shown."""
        if self._bar is not None and "tried" in event["facts"]:
            self._bar.advance(0, **event["facts"])

    def facts(self, pairs: Iterable[tuple[str, str]], title: str = "") -> None:
        """Names and values in two columns."""
        console = self._console()
        if title:
            console.print(Text(title, style="bold"), soft_wrap=True)
        pairs = list(pairs)
        width = max((len(name) for name, _ in pairs), default=0)
        for name, value in pairs:
            console.print(Text(f"  {name:<{width}}  ", style="dim") + Text(value), soft_wrap=True)

    def grid(self, title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Print a table."""
        grid = Grid(
            title=title, title_justify="left", box=None, pad_edge=False, title_style="bold", show_edge=False
        )
        for name in head:
            grid.add_column(name, overflow="fold")
        for row in rows:
            grid.add_row(*(Text(cell) for cell in row))
        self._console().print(grid)

    def json(self, facts: dict[str, Any]) -> None:
        """Print one object on one line; NaN and infinity, which JSON has no words for, are null."""
        facts = _plain(facts)
        text = json.dumps(facts, ensure_ascii=False, allow_nan=False)
        try:
            text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
        except UnicodeEncodeError:  # JSON has a spelling of its own, which loses nothing
            text = json.dumps(facts, allow_nan=False)
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    @staticmethod
    def _console() -> Console:
        # A file or a pipe has no width, and lines stay whole there.
        return _Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else 160)


def _plain(value: object) -> Any:
    """What JSON knows: numbers that are finite, texts, lists, objects whose names are texts."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, int | str) else str(value)
