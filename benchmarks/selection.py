"""The search for a kernel against `GridSearchCV`: SVC, 60 points, five folds, 5,000 rows.

Run with ``python -m benchmarks.selection``. C has six values from 0.1 to 10,000 and γ ten from 0.003/d to
100/d, on standardised columns. mercer searches the same space, a Gaussian kernel of one width and C, and then
all that it searches by default, to its end and in fifteen seconds. Both use all cores. Errors and seconds are
means over draws of the training rows that nothing was tuned on; the test rows are the same for all.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from benchmarks._data import a9a, covtype
from benchmarks._timing import Table, write
from mercer import Gaussian
from mercer.selection import AutoKernelClassifier

ROWS = 5000
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def forests(draw: int) -> Split:
    return covtype(ROWS, skip=draw * ROWS)


def people(draw: int) -> Split:
    """a9a, standardised as the forests are."""
    X, y, X_test, y_test = a9a()
    rows = slice(draw * ROWS, (draw + 1) * ROWS)
    X, X_test = X[rows].toarray(), X_test.toarray()
    spread = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    return (X - X.mean(axis=0)) / spread, y[rows], (X_test - X.mean(axis=0)) / spread, y_test


#: each table, and which draws
CASES: dict[str, tuple[Callable[[int], Split], range]] = {
    "covtype": (forests, range(7, 10)),
    "a9a": (people, range(2)),
}


def main() -> None:
    table = Table(
        "Search against GridSearchCV, 5,000 rows", "data", "search", "test errors, %", "seconds", "ratio"
    )
    for name, (load, draws) in CASES.items():
        found: dict[str, list[tuple[float, float]]] = {}
        for draw in draws:
            X, y, X_test, y_test = load(draw)
            if draw == draws[0]:  # what is compiled once
                for kernel in (Gaussian(sigma="median"), "auto"):
                    AutoKernelClassifier(kernel).fit(X[1000:4600], y[1000:4600])
            grid = {"C": 10.0 ** np.arange(-1, 5), "gamma": np.geomspace(0.003, 100, 10) / X.shape[1]}
            searches = {
                "GridSearchCV": GridSearchCV(SVC(), grid, cv=5, n_jobs=-1),
                "mercer, the same space": AutoKernelClassifier(Gaussian(sigma="median")),
                "mercer, all kernels": AutoKernelClassifier(),
                "mercer, all kernels, max_time=15": AutoKernelClassifier(max_time=15.0),
            }
            for search, estimator in searches.items():
                began = time.perf_counter()
                estimator.fit(X, y)
                seconds = time.perf_counter() - began
                found.setdefault(search, []).append((np.mean(estimator.predict(X_test) != y_test), seconds))
                print(name, draw, search, *found[search][-1], flush=True)
        whole = np.mean([seconds for _, seconds in found["GridSearchCV"]])
        for search, runs in found.items():
            errors, seconds = np.mean(runs, axis=0)
            each = " ".join(f"{100 * error:.2f}" for error, _ in runs)
            table.add(
                name, search, f"{100 * errors:.2f} ({each})", f"{seconds:.1f}", f"{whole / seconds:.1f}"
            )
    write("selection", table)


if __name__ == "__main__":
    main()
