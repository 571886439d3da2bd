"""Is the error that `tables.train` states the error on new rows? On small tables made at random, pure noise
among them.

Run with ``python -m benchmarks.honest_error [TABLES]``. Each table has 200 rows and five columns, of which
the target depends on two, or on none. One fold of 40 rows is searched again, the others are judged by the
machine alone (`mercer.selection.two_phase`): fewer than the 200 rows that `train` judges, so that what may
go wrong is larger. The truth is the error of a whole search on as many rows as the folds have, on 4,000 new
rows. Differences are of squares of errors, or of shares of wrong labels, with their standard errors over
the tables; the coverage is that of the 95 % interval.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from benchmarks._timing import Table, write
from mercer import config
from mercer.data.folds import folds, stratified_folds
from mercer.selection.nested import mistakes
from mercer.tables import TableFeatures, TableModel, fitting
from mercer.tables.learners import learner

_ROWS, _COLUMNS, _NEW, _FOLDS = 200, 5, 4000, 5
_KERNELS = ["rbf", "laplacian", "linear"]


def drawn(kind: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows to learn from, and then new ones."""
    X = rng.normal(size=(_ROWS + _NEW, _COLUMNS))
    signal = np.sin(2 * X[:, 0]) + X[:, 1] if "signal" in kind else np.zeros(len(X))
    values = signal + rng.normal(size=len(X))
    if "numbers" in kind:
        return X, values
    # As many of each class: folds keep their shares, and would tell which of two equal ones came more often.
    return X, (values > np.median(values[:_ROWS])).astype(int)


def compared(kind: str, seed: int) -> dict[str, float]:
    """Squares of errors, or shares: stated, of the machine alone, and on new rows."""
    X, y = drawn(kind, np.random.default_rng(seed))
    is_class, known = "classes" in kind, slice(_ROWS)
    task = "classification" if is_class else "regression"
    estimator = learner("auto", task, kernel=_KERNELS, max_time=None, seed=seed)
    blank = TableModel(estimator, TableFeatures())
    one = fitting.Fitting(blank, X[known], y[known], seed, fitting.Telling())
    model, honest = one.by_folds(_FOLDS, every=False)
    cut = stratified_folds(y[known], _FOLDS, seed) if is_class else folds(_ROWS, _FOLDS, seed)
    alone: Any = one._alone(model, cut)
    # Another fold than the one that was judged: the truth is of the procedure, and not of that one search.
    found, _ = fitting._fitted(blank, X[known], y[known], None, cut[-1][0], np.inf)
    power = 1 if is_class else 2
    truth = mistakes(found.predict(X[_ROWS:]), y[_ROWS:], is_class) ** power
    low, high = (end**power for end in honest.interval)
    return {
        "stated": honest.error**power,
        "alone": mistakes(alone, y[known], is_class) ** power,
        "fold": mistakes(honest.predictions, y[honest.rows], is_class) ** power,
        "truth": truth,
        "covered": float(low <= truth <= high),
    }


def main() -> None:
    tables = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    fitting._JUDGED = 1
    table = Table(
        f"Stated errors minus those on new rows, {tables} tables of each kind",
        "table", "true", "stated", "fold alone", "machine alone",
        "spread: stated", "spread: fold alone", "intervals that cover",
    )  # fmt: skip
    for kind in ("classes, noise", "numbers, noise", "classes, signal", "numbers, signal"):
        with warnings.catch_warnings(), config(threads=1, progress=False):
            warnings.simplefilter("ignore")
            found = [compared(kind, seed) for seed in range(tables)]
        every = {name: np.array([one[name] for one in found]) for name in found[0]}
        off = {name: every[name] - every["truth"] for name in ("stated", "fold", "alone")}
        told = {n: f"{d.mean():+.4f} ± {d.std(ddof=1) / np.sqrt(tables):.4f}" for n, d in off.items()}
        spread = {name: f"{difference.std(ddof=1):.4f}" for name, difference in off.items()}
        table.add(
            kind, f"{every['truth'].mean():.4f}", told["stated"], told["fold"], told["alone"],
            spread["stated"], spread["fold"], f"{every['covered'].mean():.0%}",
        )  # fmt: skip
    write("honest_error", table)


if __name__ == "__main__":
    main()
