"""One script, as scikit-learn runs it and under the patch: ``mercer.patch_scikit_learn()``.

Run with ``python -m benchmarks.patched``, on a machine that does nothing else. Seconds are medians of runs in
turns. Quality is the score on points that were not seen; for components and features a number to compare.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.datasets import make_classification

import mercer
from benchmarks._timing import Table, interleaved, write
from mercer.drop_in import PLACES


def classes(name: str) -> tuple[type, type]:
    """scikit-learn's class, and ours of the same name."""
    module = import_module(PLACES[name][0])
    theirs = getattr(module, name)
    mercer.patch_scikit_learn([name])
    ours = getattr(module, name)
    mercer.unpatch_scikit_learn([name])
    return theirs, ours


def line(table: Table, name: str, work: Callable[[type], Any], quality: Callable[[Any], float]) -> None:
    theirs, ours = classes(name)
    slow, quick = interleaved(lambda: work(theirs), lambda: work(ours), repeats=3)
    table.add(name, slow, quick, slow / quick, quality(work(theirs)), quality(work(ours)))


def main() -> None:
    X, y = make_classification(12_000, 20, n_informative=10, flip_y=0.05, random_state=0)
    X, Z, y, t = X[:10_000], X[10_000:], y[:10_000], y[10_000:]
    few, labels = X[:4000], y[:4000]
    columns = ("class", "scikit-learn s", "patched s", "ratio", "quality, scikit-learn", "quality, patched")
    table = Table("The same script, fit and evaluation", *columns)

    def scored(model: Any) -> float:
        return float(model.score(Z, t))

    line(table, "SVC", lambda kind: kind(C=10.0).fit(X, y), scored)
    line(table, "NuSVC", lambda kind: kind(nu=0.3).fit(X, y), scored)
    line(table, "SVR", lambda kind: kind(C=1.0).fit(X, y), scored)
    line(table, "OneClassSVM", lambda kind: kind(nu=0.1).fit(X), lambda m: float(np.mean(m.predict(Z) > 0)))
    line(table, "KernelRidge", lambda kind: kind(kernel="rbf").fit(few, labels), scored)
    line(table, "KernelPCA", lambda kind: kind(5, kernel="rbf").fit(few), lambda m: m.eigenvalues_.sum())
    landmarks = {"n_components": 1000, "random_state": 0}
    line(table, "Nystroem", lambda kind: kind(**landmarks).fit(few).transform(X), np.linalg.norm)
    write("patched", table)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
