"""Side-by-side timing: medians of interleaved runs, and a table of ratios."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

_SPIN = "print(flush=True)\nwhile True: pass"


@contextmanager
def busy(neighbours: int) -> Iterator[None]:
    """So many processes beside this one that take all they can get."""
    started = [
        subprocess.Popen([sys.executable, "-c", _SPIN], stdout=subprocess.PIPE) for _ in range(neighbours)
    ]
    try:
        for one in started:
            assert one.stdout is not None
            one.stdout.readline()  # it runs
        yield
    finally:
        for one in started:
            one.kill()
            one.wait()


def neighbours() -> int:
    """How many busy processes are to run beside what is timed: ``make bench NEIGHBOURS=2``."""
    return int(os.environ.get("NEIGHBOURS") or 0)


def interleaved(*functions: Callable[[], object], repeats: int = 7) -> list[float]:
    """Median seconds of each function, run in turns after one warm-up, so that noise hits all alike."""
    for function in functions:
        function()
    times: list[list[float]] = [[] for _ in functions]
    with busy(neighbours()):
        for _ in range(repeats):
            for function, record in zip(functions, times, strict=True):
                start = time.perf_counter()
                function()
                record.append(time.perf_counter() - start)
    return [float(np.median(record)) for record in times]


class Table:
    """Rows of text, printed as they come and written as Markdown at the end."""

    def __init__(self, title: str, *columns: str) -> None:
        self.title, self.columns, self.rows = title, columns, []  # type: ignore[var-annotated]
        print(f"\n{title}\n" + " | ".join(columns), flush=True)

    def add(self, *cells: object) -> None:
        row = [f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in cells]
        self.rows.append(row)
        print(" | ".join(row), flush=True)

    def markdown(self) -> str:
        lines = [
            f"## {self.title}",
            "",
            "| " + " | ".join(self.columns) + " |",
            "|---" * len(self.columns) + "|",
        ]
        return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in self.rows), ""])


def machine() -> str:
    """What the figures were measured on, in a line."""
    import numba
    import scipy
    import sklearn

    libraries = {"NumPy": np, "SciPy": scipy, "Numba": numba, "scikit-learn": sklearn}
    versions = ", ".join(f"{name} {library.__version__}" for name, library in libraries.items())
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} cores, {platform.machine()}, Python {platform.python_version()}, {versions}."


def write(name: str, *tables: Table) -> None:
    """The tables as ``benchmarks/results/NAME.md``, or ``NAME-busy.md`` beside busy neighbours.

    Tables of the file with other titles stay: a benchmark may have run in part.
    """
    name += "-busy" if neighbours() else ""
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.md"
    parts = path.read_text("utf-8").split("\n## ")[1:] if path.exists() else []
    sections = {part.partition("\n")[0]: f"## {part.rstrip()}\n" for part in parts}
    sections |= {table.title: f"{table.markdown().rstrip()}\n" for table in tables}
    path.write_text(f"# {name}\n\n{machine()}\n\n" + "\n".join(sections.values()), "utf-8")
    print(f"\nwritten: {path.relative_to(Path(__file__).parent.parent)}")


def fresh_process(script: str, **environment: str) -> str:
    """What a script prints in a Python of its own."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return done.stdout.strip()
