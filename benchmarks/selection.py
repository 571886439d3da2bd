"""The search for a kernel against `GridSearchCV`: SVC, 60 points, five folds, 5,000 rows.

Run with ``python -m benchmarks.selection``. C has six values from 0.1 to 10,000 and γ ten from 0.003/d to
100/d, on standardised columns. mercer searches the same space, a Gaussian kernel of one width and C, and then
all that it searches by default. Both use all cores.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from benchmarks._data import a9a, covtype
from benchmarks._timing import Table, write
from mercer import Gaussian
from mercer.selection import AutoKernelClassifier


def people(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """a9a, the first n rows for training, standardised as the forests are."""
    X, y, X_test, y_test = a9a()
    X, X_test = X[:n].toarray(), X_test.toarray()
    spread = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    return (X - X.mean(axis=0)) / spread, y[:n], (X_test - X.mean(axis=0)) / spread, y_test


def main() -> None:
    table = Table(
        "Search against GridSearchCV, 5,000 rows", "data", "search", "test errors, %", "seconds", "ratio"
    )
    for name, (X, y, X_test, y_test) in {"covtype": covtype(5000), "a9a": people(5000)}.items():
        d = X.shape[1]
        grid = {"C": 10.0 ** np.arange(-1, 5), "gamma": np.geomspace(0.003, 100, 10) / d}
        searches = {
            "GridSearchCV": GridSearchCV(SVC(), grid, cv=5, n_jobs=-1),
            "mercer, the same space": AutoKernelClassifier(Gaussian(sigma="median")),
            "mercer, all kernels": AutoKernelClassifier(),
        }
        AutoKernelClassifier(Gaussian(sigma="median")).fit(X[:300], y[:300])  # what is compiled once
        first = 0.0
        for search, estimator in searches.items():
            began = time.perf_counter()
            estimator.fit(X, y)
            seconds = time.perf_counter() - began
            first = first or seconds
            errors = 100 * np.mean(estimator.predict(X_test) != y_test)
            table.add(name, search, f"{errors:.2f}", f"{seconds:.1f}", f"{first / seconds:.1f}")
    write("selection", table)


if __name__ == "__main__":
    main()
