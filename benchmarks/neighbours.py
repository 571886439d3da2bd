"""Fits on a machine that others use, too: seconds alone, and beside busy neighbours.

Run with ``python -m benchmarks.neighbours``, on a machine that does nothing else. Neighbours are processes
that never sleep; they are started for a run and ended after it, in turns with runs alone. With as many of
them as there are cores, a fair share is half the time: a ratio of 2. ``--cores 2`` keeps all, neighbours
included, on that many cores. The last column tells how many cores were busy when the fit was alone.
``--large`` takes our side of the benchmarks that take minutes instead: svm, selection, mail and tables.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import numpy as np
from sklearn.kernel_ridge import KernelRidge as TheirRidge

from benchmarks._data import fashion, regression
from benchmarks._timing import Table, busy, write
from mercer import (
    SVC,
    SVR,
    KernelFisherDiscriminant,
    KernelLogisticRegression,
    KernelMachineClassifier,
    KernelMachineRegressor,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    KernelRidgeCV,
    MailClassifier,
    NuSVC,
    OneClassSVM,
    Subsequence,
)
from mercer.selection import AutoKernelClassifier, AutoKernelRegressor

_LONG = 8.0  # seconds: what takes longer is run once, alone and beside neighbours


def images() -> tuple[np.ndarray, np.ndarray, str]:
    """6,000 images of Fashion-MNIST, even classes against odd; made-up points where there are none."""
    try:
        X, y = fashion()
    except FileNotFoundError:
        rng = np.random.default_rng(0)
        X = rng.uniform(size=(6000, 784)) * (rng.uniform(size=784) < 0.2)
        return X, (X[:, :200].sum(axis=1) > np.median(X[:, :200].sum(axis=1))).astype(int), "made up"
    return X[:6000], y[:6000] % 2, "Fashion-MNIST"


def smooth(n: int, d: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Friedman's function of five columns with noise, and columns of none."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, d))
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, f + rng.normal(size=n)


def cases() -> dict[str, Callable[[], object]]:
    """What is timed, by name."""
    X, y, what = images()
    wide, target = smooth(3000, 20)
    small, few = smooth(1200)
    labels = target > np.median(target)
    thirds = np.digitize(target, np.quantile(target, [1 / 3, 2 / 3]))
    machine = SVC(C=10).fit(X, y)
    letters = np.random.default_rng(0).choice(list("acgt"), (300, 60))
    strings = ["".join(row) for row in letters]
    return {
        f"SVC 6k × 784, {what}": lambda: SVC(C=10).fit(X, y),
        "its predictions": lambda: machine.predict(X),
        "SVC 3k × 20, probabilities": lambda: SVC(C=10, probability=True).fit(wide, labels),
        "SVC 3k × 20, three classes": lambda: SVC(C=10).fit(wide, thirds),
        "ν-SVC 3k × 20": lambda: NuSVC(nu=0.3).fit(wide, labels),
        "SVR 3k × 20": lambda: SVR(C=10).fit(wide, target),
        "one-class SVM 3k × 20": lambda: OneClassSVM(nu=0.1).fit(wide),
        "logistic 3k × 20": lambda: KernelLogisticRegression().fit(wide, labels),
        "perceptron 3k × 20": lambda: KernelPerceptron(max_iter=5).fit(wide, labels),
        "hinge, 300 landmarks": lambda: KernelMachineClassifier(landmarks=300).fit(wide, labels),
        "ridge, 300 landmarks": lambda: KernelRidge(0.1, landmarks=300).fit(wide, target),
        "logistic, 300 landmarks": lambda: KernelLogisticRegression(landmarks=300).fit(wide, labels),
        "subsequences of 300 strings": lambda: Subsequence(3)(strings),
        "ridge 3k": lambda: KernelRidge(0.1).fit(wide, target),
        "ridge CV 2k": lambda: KernelRidgeCV().fit(wide[:2000], target[:2000]),
        "PCA 3k": lambda: KernelPCA(10).fit(wide),
        "Fisher 1k": lambda: KernelFisherDiscriminant().fit(wide[:1000], labels[:1000]),
        "absolute loss 1k": lambda: KernelMachineRegressor(loss="absolute").fit(small[:1000], few[:1000]),
        "AutoKernelRegressor 1,200 × 5": lambda: AutoKernelRegressor().fit(small, few),
        "scikit-learn's ridge 3k": lambda: TheirRidge(alpha=0.1, kernel="rbf").fit(wide, target),
    }


def large_cases() -> dict[str, Callable[[], object]]:
    """The fits of svm.py, a search of selection.py, 2,000 messages of mail.py, a whole table of tables.py."""
    from benchmarks import _svm, mail, selection, tables

    def machine(name: str, precision: str) -> Callable[[], object]:
        case, data = _svm.CASES[name], _svm.loaded(name)
        X = _svm.typed(data.X, precision)
        return lambda: case.make(f"mercer {precision}", data.gamma).fit(X, data.y)

    rows = {
        f"svm: {_svm.CASES[name].title}, {precision}": machine(name, precision)
        for name in _svm.CASES
        for precision in ("float32", "float64")
    }
    X, y, *_ = selection.people(0)
    messages, kinds = mail.corpus()
    few = np.random.default_rng(0).permutation(len(messages))[:2000]
    some, labels = [messages[i] for i in few], kinds[few] == "spam"
    table = regression("energy")
    return rows | {
        "selection: a9a 5,000, all kernels": lambda: AutoKernelClassifier().fit(X, y),
        "mail: 2,000 messages": lambda: MailClassifier().fit(some, labels),
        "tables: mercer train, energy 691 × 8": lambda: tables.by_command(table),
    }


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds by the clock, and of all cores, those of processes that were started and ended included."""

    def spent() -> float:
        times = os.times()
        return time.process_time() + times.children_user + times.children_system

    wall, before = time.perf_counter(), spent()
    work()
    return time.perf_counter() - wall, spent() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--neighbours", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cores", type=int, default=None, help="keep to that many cores")
    parser.add_argument("--only", default="", help="rows whose name holds this text")
    parser.add_argument("--large", action="store_true", help="svm, selection, mail and tables")
    options = parser.parse_args()
    if options.cores is not None:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
    title = f"Alone, and beside {options.neighbours} busy neighbours"
    table = Table(
        f"{title}: what takes longer" if options.large else title,
        *("fit", "alone, s", "busy, s", "busy ÷ alone", "CPU alone, s", "cores"),
    )
    for name, work in (large_cases() if options.large else cases()).items():
        if options.only not in name:
            continue
        first, _ = timed(work)  # It compiles what there is to compile.
        alone, beside = [], []
        for _ in range(options.repeats if first < _LONG else 1):
            alone.append(timed(work))
            with busy(options.neighbours):
                beside.append(timed(work))
        (quiet, spent), (loud, _) = np.median(alone, axis=0), np.median(beside, axis=0)
        table.add(
            name, float(quiet), float(loud), f"{loud / quiet:.1f}", float(spent), f"{spent / quiet:.1f}"
        )
    if options.only:
        print(table)  # The file keeps the whole table.
    else:
        write("neighbours", table)


if __name__ == "__main__":
    main()
