"""mercer beside LightGBM, XGBoost, CatBoost, xRFM and scikit-learn on public tables, each with the same
time.

Run with ``python -m benchmarks.tables [--tables NAME …] [--learners NAME …] [--splits 3] [--seconds 60]
[--most ROWS]`` in an environment with the extra ``bench-tables``. Each table × split × learner is a line of
``benchmarks/results/tables.jsonl``; what is there is not run again, so that the whole may be run in pieces.
``--summary`` writes ``benchmarks/results/tables.md`` from the lines; ``--last`` takes the five tables that
are run once.

A split leaves a fifth of the rows for the test. Errors are shares of wrong classes, or roots of mean
squared errors in standard deviations of the training targets. Seconds are those of the processor, for this
process on one thread, so that a busy machine gives nobody less; compiling, which is done once on a machine,
does not count for mercer.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._public_tables import TABLES
from benchmarks._table_learners import PEERS, Task, loss, of_mercer, searched
from benchmarks._timing import Table, write

RESULTS = Path(__file__).parent / "results" / "tables.jsonl"
LEARNERS = ("mercer", *PEERS)


def split_of(y: np.ndarray, is_class: bool, number: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows to learn from, and a fifth for the test."""
    from sklearn.model_selection import train_test_split

    classes = y if is_class and np.bincount(y).min() >= 2 else None
    train, test = train_test_split(np.arange(len(y)), test_size=0.2, random_state=number, stratify=classes)
    return np.sort(train), np.sort(test)


def run(name: str, number: int, learner: str, seconds: float) -> dict[str, Any]:
    """A line of results."""
    from mercer import config
    from mercer.runtime.clock import compiling_seconds

    table = TABLES[name]
    X, y = table.load()
    train, test = split_of(y, table.is_class, number)
    task = Task(table.is_class, len(np.unique(y)) if table.is_class else 0, number)
    line = {"table": name, "split": number, "learner": learner, "limit": seconds, "rows": len(y)}
    line |= {"columns": X.shape[1], "class": table.is_class, "last": table.last}
    began, compiled = process_time(), compiling_seconds()
    known = X.iloc[train].reset_index(drop=True)
    with warnings.catch_warnings(), config(threads=1, progress=False), threadpool_limits(1):
        warnings.simplefilter("ignore")
        try:
            if learner == "mercer":
                model, columns, tried = of_mercer(known, y[train], task, seconds)
            else:
                model, columns, tried = searched(PEERS[learner], known, y[train], task, seconds)
            taken = process_time() - began - (compiling_seconds() - compiled)
            losses = loss(task, model.predict(columns(X.iloc[test].reset_index(drop=True))), y[test])
        except Exception as error:  # A learner that fails on a table is a result, too.
            return line | {"failed": f"{type(error).__name__}: {error}"[:300]}
    spread = 1.0 if table.is_class else float(np.std(y[train])) ** 2
    losses = losses / spread
    mean, of_mean = float(losses.mean()), float(losses.std(ddof=1) / np.sqrt(len(losses)))
    error = mean if table.is_class else float(np.sqrt(mean))
    deviation = of_mean if table.is_class else of_mean / (2 * max(error, 1e-12))
    return line | {"error": error, "deviation": deviation, "seconds": round(taken, 2), "tried": tried}


def lines() -> list[dict[str, Any]]:
    """What was measured."""
    return [json.loads(text) for text in RESULTS.read_text("utf-8").splitlines()] if RESULTS.exists() else []


def key(line: dict[str, Any]) -> tuple[Any, ...]:
    return line["table"], line["split"], line["learner"], line["limit"]


def run_all(names: Iterable[str], learners: Iterable[str], splits: int, seconds: float) -> None:
    """Run what is not there yet, one line after the other."""
    done = {key(line) for line in lines()}
    for number in range(splits):
        for name in names:
            for learner in learners:
                if (name, number, learner, seconds) in done:
                    continue
                found = run(name, number, learner, seconds)
                with RESULTS.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(found) + "\n")
                print(found, flush=True)


# --- the summary -------------------------------------------------------------------------------------------


def means(found: list[dict[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """By table and learner: mean error, its standard error over the rows of the tests, and seconds."""
    grouped: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for line in found:
        if "error" in line:
            grouped.setdefault(line["table"], {}).setdefault(line["learner"], []).append(line)
    return {
        table: {
            learner: {
                "error": float(np.mean([one["error"] for one in every])),
                "deviation": float(np.sqrt(np.sum([one["deviation"] ** 2 for one in every])) / len(every)),
                "seconds": float(np.mean([one["seconds"] for one in every])),
                "splits": len(every),
            }
            for learner, every in learners.items()
        }
        for table, learners in grouped.items()
    }


def summary(seconds: float) -> list[Table]:
    """A row for each learner, over the tables that all of them have run; and a row for each table."""
    measured = means([line for line in lines() if line["limit"] == seconds])
    each = Table(
        f"Errors, {seconds:g} seconds each", "table", "rows × columns", "task", "splits", *LEARNERS, "best ±"
    )
    ranks: dict[str, list[float]] = {learner: [] for learner in LEARNERS}
    near: dict[str, list[bool]] = {learner: [] for learner in LEARNERS}
    behind: dict[str, list[tuple[float, str]]] = {learner: [] for learner in LEARNERS}
    shapes = {line["table"]: line for line in lines()}
    for name in (name for name in TABLES if name in measured):
        found = measured[name]
        best = min(found, key=lambda learner: found[learner]["error"])
        errors = {learner: one["error"] for learner, one in found.items()}
        for learner, error in errors.items() if len(errors) == len(LEARNERS) else ():
            ranks[learner].append(
                1 + sum(other < error for other in errors.values())
                + 0.5 * (sum(other == error for other in errors.values()) - 1)
            )  # fmt: skip
            near[learner].append(error <= errors[best] + found[best]["deviation"])
            behind[learner].append((error / max(errors[best], 1e-12) - 1, name))
        cells = [
            "–"
            if learner not in errors
            else f"**{errors[learner]:.4f}**"
            if errors[learner] == errors[best]
            else f"{errors[learner]:.4f}"
            for learner in LEARNERS
        ]
        shape = shapes[name]
        each.add(
            name, f"{shape['rows']:,} × {shape['columns']}", "classes" if shape["class"] else "numbers",
            int(max(one["splits"] for one in found.values())), *cells, f"{found[best]['deviation']:.4f}",
        )  # fmt: skip
    total = Table(
        f"Learners, {seconds:g} seconds each", "learner", "tables", "mean rank",
        "best, or within a standard error of it", "farthest behind the best", "where", "mean seconds",
    )  # fmt: skip
    for learner in LEARNERS:
        if not ranks[learner]:
            continue
        worst, where = max(behind[learner])
        taken = np.mean([found[learner]["seconds"] for found in measured.values() if learner in found])
        total.add(
            learner, len(ranks[learner]), f"{np.mean(ranks[learner]):.2f}", f"{np.mean(near[learner]):.0%}",
            f"{worst:.0%}", where, f"{taken:.1f}",
        )  # fmt: skip
    return [total, each]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", nargs="+", choices=TABLES, metavar="NAME", help="these, and no others")
    parser.add_argument("--learners", nargs="+", choices=LEARNERS, default=LEARNERS, metavar="NAME")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60.0, help="of the processor, for each learner")
    parser.add_argument("--most", type=int, default=100_000, help="rows of a table that is run")
    parser.add_argument("--last", action="store_true", help="also the five tables that are run once")
    parser.add_argument("--summary", action="store_true", help="run nothing")
    given = parser.parse_args()
    if not given.summary:
        _time_is_of_the_processor()
        names = given.tables or [name for name, table in TABLES.items() if given.last or not table.last]
        sizes = {name: len(TABLES[name].load()[1]) for name in names}
        run_all([n for n in names if sizes[n] <= given.most], given.learners, given.splits, given.seconds)
    write("tables", *summary(given.seconds))


def _time_is_of_the_processor() -> None:
    """mercer's limits too."""
    from mercer.runtime import clock

    clock.monotonic = process_time  # type: ignore[assignment]


if __name__ == "__main__":
    main()
