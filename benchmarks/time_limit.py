"""Whether ``mercer train --time`` is kept: seconds of the whole command on tables of many shapes.

Run with ``python -m benchmarks.time_limit [NAME …] [--time 1 5 10]``, on a machine that does nothing else,
for the limit is one of the clock on the wall. A limit of t seconds is kept if the command, from its start
to its end, takes at most 1.2 t + 2 seconds. Compiling is no part of a limit: each table is trained on once
before it is timed, and all runs share the cache of compiled code.

The tables are made up, but for adult and abalone, which are taken where the data are.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks._data import FOLDER
from benchmarks._timing import Table, write

TIMES = (1.0, 5.0, 10.0)
_SHARE, _START = 0.2, 2.0  # what a limit may be exceeded by: this part of it, and seconds

Columns = dict[str, "np.ndarray | list[str]"]


def bar(limit: float) -> float:
    """The most seconds that a command with this limit may take."""
    return (1 + _SHARE) * limit + _START


# --- the tables --------------------------------------------------------------------------------------------


def numbers(n: int, d: int) -> Columns:
    """Normal columns, the target a smooth function of the first two."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)).round(4)
    y = X[:, 0] + np.sin(2 * X[:, min(1, d - 1)]) + 0.1 * rng.normal(size=n)
    return {**{f"x{j}": X[:, j] for j in range(d)}, "y": y.round(4)}


def classes(n: int, d: int, k: int) -> Columns:
    """As many Gaussian clouds as classes."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, k, n)
    X = (1.5 * rng.normal(size=(k, d))[labels] + rng.normal(size=(n, d))).round(4)
    return {**{f"x{j}": X[:, j] for j in range(d)}, "y": [f"class {label}" for label in labels]}


def texts(n: int, words: int) -> Columns:
    """Documents of two classes that use the same words, each some of them more often; and a number."""
    rng = np.random.default_rng(0)
    known = np.array([f"word{i}" for i in range(3000)])
    share = 1 / np.arange(1, len(known) + 1)
    share /= share.sum()
    y = rng.integers(0, 2, n)
    documents = [" ".join(rng.choice(known, words, p=np.roll(share, 50 * label))) for label in y]
    return {"text": documents, "x": rng.normal(size=n).round(4), "y": [f"class {label}" for label in y]}


def categories(n: int, different: int) -> Columns:
    """A column of many categories, a column of few, and a number."""
    rng = np.random.default_rng(0)
    many, few = rng.integers(0, different, n), rng.integers(0, 20, n)
    y = np.sin(many) + few + 0.1 * rng.normal(size=n)
    return {
        "many": [f"name {v}" for v in many],
        "few": [f"kind {v}" for v in few],
        "x": rng.normal(size=n).round(4),
        "y": y.round(4),
    }


def dates(n: int, columns: int, empty: int) -> Columns:
    """Columns of moments, and columns in which nothing is written."""
    rng = np.random.default_rng(0)
    start = np.datetime64("2020-01-01T00:00:00")
    table: Columns = {
        f"t{j}": np.datetime_as_string(start + rng.integers(0, 10**8, n)).tolist() for j in range(columns)
    }
    table |= {f"empty{j}": [""] * n for j in range(empty)}
    x = rng.normal(size=n)
    return {**table, "x": x.round(4), "y": (x + 0.1 * rng.normal(size=n)).round(4)}


def ones(n: int, d: int, filled: int) -> Columns:
    """Columns of zeros and some ones, as a sparse matrix written out."""
    rng = np.random.default_rng(0)
    X = np.zeros((n, d), dtype=int)
    X[np.arange(n)[:, None], rng.integers(0, d, (n, filled))] = 1
    return {**{f"x{j}": X[:, j] for j in range(d)}, "y": [f"class {v > 0:d}" for v in rng.normal(size=n)]}


MADE: dict[str, Callable[[], Columns]] = {
    "5 × 3": lambda: numbers(5, 3),
    "12 × 10,000": lambda: numbers(12, 10_000),
    "200 × 2,000": lambda: numbers(200, 2_000),
    "50,000 × 20": lambda: numbers(50_000, 20),
    "30,000 × 200": lambda: numbers(30_000, 200),
    "3,000 × 20, 100 classes": lambda: classes(3_000, 20, 100),
    "3,000 × 20, 300 classes": lambda: classes(3_000, 20, 300),
    "3,000 short texts": lambda: texts(3_000, 30),
    "300 long texts": lambda: texts(300, 2_000),
    "30,000 rows, 10,000 categories": lambda: categories(30_000, 10_000),
    "3,000 × 30 dates, 50 empty columns": lambda: dates(3_000, 30, 50),
    "500 × 5,000 zeros and ones": lambda: ones(500, 5_000, 20),
}
READ = {"adult": ("adult.tsv.gz", "target"), "abalone": ("abalone.arff.gz", "Class_Rings")}


def files(folder: Path, names: list[str]) -> dict[str, tuple[Path, str]]:
    """By name, the file of a table and its target; those of real data where these are."""
    found: dict[str, tuple[Path, str]] = {}
    for number, (name, make) in enumerate(MADE.items()):
        if names and name not in names:
            continue
        path, columns = folder / f"table{number}.csv", make()
        rows = zip(*(map(str, values) for values in columns.values()), strict=True)
        path.write_text("\n".join([",".join(columns), *map(",".join, rows)]) + "\n", "utf-8")
        found[name] = path, "y"
    for name, (file, target) in READ.items():
        path = FOLDER / "tables" / file
        if path.exists() and (not names or name in names):
            found[name] = path, target
    return found


# --- the runs ----------------------------------------------------------------------------------------------


def seconds_of(path: Path, target: str, limit: float, folder: Path) -> float:
    """How long the command takes, from its start to its end."""
    command = [sys.executable, "-m", "mercer", "train", str(path), "--time", f"{limit:g}", "--quiet"]
    command += ["--output", str(folder / "model.mercer"), "--target", target]
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True, env=dict(os.environ))
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join([*MADE, *READ])}")
    parser.add_argument("--time", nargs="+", type=float, default=list(TIMES), help="limits, in seconds")
    given = parser.parse_args()
    table = Table("mercer train --time, the whole command", "table", "--time", "seconds", "bar", "kept")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for table_name, (path, target) in files(folder, given.names).items():
            seconds_of(path, target, max(given.time), folder)  # what it needs is compiled now
            for limit in given.time:
                taken = seconds_of(path, target, limit, folder)
                kept = "yes" if taken <= bar(limit) else "NO"
                table.add(table_name, f"{limit:g}", f"{taken:.1f}", f"{bar(limit):.1f}", kept)
    write("time_limit", table)


if __name__ == "__main__":
    main()
