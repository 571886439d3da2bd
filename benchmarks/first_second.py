"""The first second: what the first use costs where nothing is compiled yet, and small work after it.

Run with ``python -m benchmarks.first_second``, on a machine that does nothing else. Each line of the first
table is a Python of its own, once with an empty folder for compiled code and once with what that left there;
CPU seconds of the whole process, less those of a process that only imports NumPy, SciPy and scikit-learn.
"""

from __future__ import annotations

import tempfile

import numpy as np
from sklearn import svm

from benchmarks._timing import Table, fresh_process, interleaved, write
from mercer import SVC, Gaussian, Gram

_DATA = """
import os, time
import numpy as np, scipy.linalg, scipy.optimize, scipy.spatial, sklearn.svm, sklearn.model_selection
began = time.process_time()
import mercer
rng = np.random.default_rng(0)
X = rng.normal(size=({n}, 5)); y = X[:, 0] + rng.normal(size={n}) / 10
{work}
print(time.process_time() - began)
"""
_WORK = {
    "import mercer": "",
    "Gaussian Gram, 40 points": "mercer.Gram(mercer.Gaussian(1.0), X[:40]).dense()",
    "KernelRidge, 200 points": "mercer.KernelRidge().fit(X, y)",
    "SVC, 200 points": "mercer.SVC().fit(X, y > 0)",
    "AutoKernelRegressor, 200 points": "mercer.AutoKernelRegressor().fit(X, y)",
}


def seconds(work: str, folder: str) -> float:
    """CPU seconds of a process that does this work, with compiled code in the folder."""
    return float(fresh_process(_DATA.format(n=200, work=work), MERCER_CACHE_DIR=folder).split()[-1])


def first() -> Table:
    """Each with nothing compiled, and again."""
    table = Table("First use, CPU seconds", "work", "nothing compiled", "compiled")
    for name, work in _WORK.items():
        with tempfile.TemporaryDirectory() as folder:
            cold = seconds(work, folder)
            table.add(name, cold, float(np.median([seconds(work, folder) for _ in range(5)])))
    return table


def small() -> Table:
    """Where the work is next to nothing, what is left is the way to it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = (X[:, 0] > 0).astype(int)
    ours, theirs, one, few = SVC().fit(X, y), svm.SVC().fit(X, y), X[:1], X[:10]
    kernel = Gaussian(1.0)
    times = 1000

    def repeated(function, points):  # type: ignore[no-untyped-def]
        return lambda: [function(points) for _ in range(times)]

    gram, predict, their_predict = interleaved(
        repeated(lambda points: Gram(kernel, points), few),
        repeated(ours.predict, one),
        repeated(theirs.predict, one),
    )
    table = Table("Small work, milliseconds", "work", "mercer", "scikit-learn", "ratio")
    table.add("Gram of ten points, made", 1e3 * gram / times, "", "")
    ratio = predict / their_predict
    table.add("SVC.predict of one row", 1e3 * predict / times, 1e3 * their_predict / times, ratio)
    return table


if __name__ == "__main__":
    write("first_second", first(), small())
