"""Support vector machines: mercer against oneDAL (scikit-learn-intelex) and scikit-learn, at equal quality.

Run with ``make bench BENCH=svm`` or ``python -m benchmarks.svm [part …]``; the parts are listed at the end.
Every row gives, beside the times, what equal quality means: the dual objective that the coefficients reach,
computed in float64 for all alike, the error on held-out points, and the number of support vectors. All
learners get the same γ, C and tolerance, 1e-3; in either precision oneDAL and mercer get the same array.
Times are medians of runs in turns after a warm-up: 15 below 0.2 s, 5 below 2 s, 3 below 8 s, else one;
scikit-learn over 20 s runs once in all.

``--quick`` takes a few hundred points of everything: it tries the script and measures nothing. ``--cache MB``
is the row cache of the two peers, by default their own default.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

import mercer
from benchmarks import _data
from benchmarks._svm import (
    CACHE,
    CASES,
    FLOAT32,
    FLOAT64,
    PEER,
    QUICK,
    SMALL,
    Case,
    Data,
    Outcome,
    clocked,
    in_turns,
    loaded,
    measured,
    onedal,
    typed,
)
from benchmarks._timing import Table, fresh_process, write
from mercer import Gram
from mercer.runtime.config import thread_count


def ratio(over: Outcome | None, under: Outcome | None, bar: float | None) -> str:
    if over is None or under is None or not np.isfinite(over.seconds):
        return "–"
    value = over.seconds / under.seconds
    if bar is None:
        return f"{value:.2f}"
    return f"{value:.2f} (≥ {bar:g})" if value >= bar else f"**{value:.2f}** (≥ {bar:g})"


def fits(title: str, *names: str) -> Table:
    table = Table(
        f"{title}: seconds of a fit, tolerance 1e-3; ratios with their bars, in bold where one is missed",
        "data",
        "mercer float32",
        "oneDAL float32",
        "oneDAL ÷ mercer",
        "mercer float64",
        "oneDAL float64",
        "oneDAL ÷ mercer, float64",
        "scikit-learn",
        "scikit-learn ÷ mercer float32",
        "dual objective less scikit-learn's, relative",
        "held-out error",
        "support vectors",
        "runs",
    )
    for name in names:
        row(table, name)
    return table


def row(table: Table, name: str) -> None:
    case = CASES[name]
    everybody = FLOAT32 + FLOAT64 + PEER
    found = measured(name, everybody)
    base = found["scikit-learn"].objective
    short = {
        "mercer float32": "m32",
        "oneDAL float32": "o32",
        "mercer float64": "m64",
        "oneDAL float64": "o64",
    }
    short["scikit-learn"] = "s"
    form = "{:.4f}" if case.kind == "SVR" else "{:.2%}"
    times = {who: f"{found[who].seconds:.3g}" if who in found else "–" for who in everybody}
    table.add(
        case.title,
        times["mercer float32"],
        times["oneDAL float32"],
        ratio(found.get("oneDAL float32"), found["mercer float32"], case.bars[0]),
        times["mercer float64"],
        times["oneDAL float64"],
        ratio(found.get("oneDAL float64"), found["mercer float64"], None if case.bars[0] is None else 1.5),
        times["scikit-learn"],
        ratio(found["scikit-learn"], found["mercer float32"], case.bars[1]),
        ", ".join(
            f"{short[who]} {(o.objective - base) / abs(base):+.0e}"
            for who, o in found.items()
            if who != "scikit-learn"
        ),
        ("RMSE " if case.kind == "SVR" else "")
        + ", ".join(f"{short[who]} {form.format(o.error)}" for who, o in found.items()),
        ", ".join(f"{short[who]} {o.support:,}" for who, o in found.items()) + bounded(case, found),
        ", ".join(f"{short[who]} {o.runs}" for who, o in found.items()),
    )


def bounded(case: Case, found: dict[str, Outcome]) -> str:
    """How many of the support vectors are at their bound, where there are two classes."""
    coef = found["mercer float64"].model.dual_coef_
    if case.kind != "SVC" or coef.shape[0] > 1 or sparse.issparse(coef):
        return ""
    return f" ({np.count_nonzero(np.abs(coef) >= case.parameters['C'] * (1 - 1e-6)):,} bounded)"


def predict() -> Table:
    table = Table(
        "Prediction: rows of Fashion-MNIST per second, the model of 20k points and 10 classes",
        "learner",
        "rows per second",
        "÷ mercer float32",
        "bar: mercer ÷ learner",
        "differ from scikit-learn",
    )
    data = loaded("fashion10")
    found = measured("fashion10", FLOAT32 + FLOAT64 + PEER)
    few = 100 if QUICK else 2000  # for scikit-learn, which takes its time
    rows = {who: few if who == "scikit-learn" else data.X_test.shape[0] for who in found}
    tests = {who: typed(data.X_test[: rows[who]], who.partition(" ")[2]) for who in found}
    outcomes = in_turns({who: lambda who=who: found[who].model.predict(tests[who]) for who in found})
    speed = {who: rows[who] / outcome.seconds for who, outcome in outcomes.items()}
    bars = {"oneDAL float32": 2.0, "oneDAL float64": 1.5, "scikit-learn": 20.0}
    for who, outcome in outcomes.items():
        ours = "mercer float64" if who.endswith("64") else "mercer float32"
        lead = speed[ours] / speed[who]
        mark = "" if who not in bars else f"{lead:.1f} (≥ {bars[who]:g})"
        if who in bars and lead < bars[who]:
            mark = f"**{lead:.1f}** (≥ {bars[who]:g})"
        differ = np.mean(outcome.model[:few] != outcomes["scikit-learn"].model[:few])
        table.add(who, f"{speed[who]:,.0f}", speed[who] / speed["mercer float32"], mark, f"{differ:.2%}")
    return table


def float64() -> Table:
    table = Table(
        "Kernel values in float64: seconds of a fit, mercer and oneDAL on float64 input",
        "data",
        "mercer",
        "oneDAL",
        "oneDAL ÷ mercer",
        "dual objective less oneDAL's, relative",
    )
    for name, case in CASES.items():
        if not hasattr(onedal, case.kind):
            continue
        found = measured(name, FLOAT64)
        ours, theirs = found["mercer float64"], found["oneDAL float64"]
        lower = (ours.objective - theirs.objective) / abs(theirs.objective)
        table.add(case.title, ours.seconds, theirs.seconds, ratio(theirs, ours, 1.5), f"{lower:+.0e}")
    return table


def growth() -> Table:
    table = Table(
        "Growth: covtype, class 2 against the rest, C = 1, γ = 0.1, float32: seconds of a fit",
        "n",
        "mercer",
        "oneDAL",
        "oneDAL ÷ mercer",
        "support vectors",
        "runs",
    )
    sizes = [100, 200, 400] if QUICK else [5_000, 10_000, 20_000, 40_000, 80_000]
    X, y, *_ = _data.covtype(sizes[-1])
    X = typed(X, "float32")
    seconds: dict[str, list[float]] = {who: [] for who in FLOAT32 if onedal or who.startswith("mercer")}
    case = Case("", "SVC", lambda: None, {"C": 1.0}, (None, 1.0))  # type: ignore[arg-type,return-value]
    for n in sizes:
        found = in_turns({who: lambda who=who, n=n: case.make(who, 0.1).fit(X[:n], y[:n]) for who in seconds})
        for who, outcome in found.items():
            seconds[who].append(outcome.seconds)
        ours, theirs = found["mercer float32"], found.get("oneDAL float32")
        table.add(
            f"{n:,}",
            ours.seconds,
            theirs.seconds if theirs else "–",
            ratio(theirs, ours, None),
            f"{ours.support:,}",
            ours.runs,
        )
    powers = {who: np.polyfit(np.log(sizes), np.log(times), 1)[0] for who, times in seconds.items()}
    table.add("p of n^p", *(f"{power:.2f}" for power in powers.values()), *[""] * (5 - len(powers)))
    return table


_PEAK = """
import numpy as np, mercer
def memory(key):
    words = open('/proc/self/status').read().split()
    return int(words[words.index(key + ':') + 1]) / 2**10
X, y = np.load({X!r}, mmap_mode='r')[:{n}], np.load({y!r})[:{n}]
X = np.array(X)
mercer.config(memory='1GiB', progress=False)
model = mercer.SVC(C=1.0, gamma=0.1, precision='float32')
model.fit(X[:100], y[:100])
before = memory('VmRSS')
planned = model.plan(X, y).memory / 2**20
model.fit(X, y)
print(before, memory('VmHWM'), planned)
"""


def memory() -> Table:
    table = Table(
        "Memory: peak of a fresh process under config(memory='1GiB'), MiB; covtype, C = 1, γ = 0.1, float32",
        "n",
        "before the fit",
        "peak",
        "taken by the fit",
        "planned",
        "budget",
    )
    sizes = [100, 200, 400] if QUICK else [5_000, 10_000, 20_000, 40_000, 80_000]
    X, y, *_ = _data.covtype(sizes[-1])
    with tempfile.TemporaryDirectory() as folder:
        paths = {"X": str(Path(folder) / "X.npy"), "y": str(Path(folder) / "y.npy")}
        np.save(paths["X"], typed(X, "float32"))
        np.save(paths["y"], y)
        for n in sizes:
            line = fresh_process(_PEAK.format(n=n, **paths)).splitlines()[-1]
            before, most, planned = (float(word) for word in line.split())
            taken = f"{most - before:.0f}" if most - before <= 1024 else f"**{most - before:.0f}**"
            table.add(f"{n:,}", f"{before:.0f}", f"{most:.0f}", taken, f"{planned:.0f}", 1024)
    return table


def floor() -> Table:
    table = Table(
        "The kernel phase of a fit, float32, against NumPy's matrix products of the same batches of rows",
        "data",
        "kernel rows s",
        "products s",
        "ratio (≤ 1.3)",
        "share of the fit",
        "rows computed, of n",
    )
    n = SMALL if QUICK else 10_000
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(n, 100))
    labels = (Z[:, 0] + Z[:, 1] * Z[:, 2] + 0.5 * rng.normal(size=n) > 0).astype(int)
    synthetic = Data(Z, labels, Z[:1], labels[:1], 0.01)
    named = {
        "Fashion-MNIST 10k×784": loaded("fashion 10k"),
        "Fashion-MNIST 30k×784": loaded("fashion 30k"),
        f"normal {n:,}×100": synthetic,
    }
    for title, data in named.items():
        X = typed(data.X, "float32")
        runs = [kernel_phase(X, data) for _ in range(1 if QUICK else 4)][-3:]
        rows, products, whole, computed = np.median(runs, axis=0)
        value = rows / products
        shown = f"{value:.2f}" if value <= 1.3 else f"**{value:.2f}**"
        table.add(title, rows, products, shown, f"{rows / whole:.0%}", f"{computed / len(X):.0%}")
    return table


def kernel_phase(X: np.ndarray, data: Data) -> tuple[float, float, float, float]:
    """Seconds of a fit in Gram.write_rows, of the same products in NumPy, of all of it; rows computed."""
    batches: list[tuple[int, int]] = []
    spent = 0.0
    write_rows = Gram.write_rows

    def timed(self: Gram, index: Any, columns: Any, out: Any, places: Any) -> None:
        nonlocal spent
        start = time.perf_counter()
        write_rows(self, index, columns, out, places)
        spent += time.perf_counter() - start
        batches.append((len(index), columns[1] - columns[0]))

    Gram.write_rows = timed  # type: ignore[method-assign]
    try:
        model = mercer.SVC(C=10.0, gamma=data.gamma, precision="float32", progress=False)
        whole, _ = clocked(lambda: model.fit(X, data.y))
    finally:
        Gram.write_rows = write_rows  # type: ignore[method-assign]
    if not batches:
        raise RuntimeError("the fit asked for no rows through Gram.write_rows: measure what it does ask for")
    out = np.empty(max(rows * columns for rows, columns in batches), np.float32)
    out.fill(0.0)  # memory that has been touched, as that of the rows has
    other = X.copy()  # NumPy computes half of X Xᵀ when it sees that it is symmetric
    total = 0.0
    with threadpool_limits(thread_count()):
        for turn, (rows, columns) in enumerate([batches[0], *batches]):
            start = time.perf_counter()
            np.dot(X[:rows], other[:columns].T, out=out[: rows * columns].reshape(rows, columns))
            total += (time.perf_counter() - start) * (turn > 0)  # the first wakes the threads
    time.sleep(0.1)  # until they are asleep again: they would be in the way of the next fit
    return spent, total, whole, sum(rows * columns for rows, columns in batches) / len(X)


_FIRST = """
import time
import numpy as np
from sklearn.datasets import load_digits
X, y = load_digits(return_X_y=True)
X = X / 16
start = time.perf_counter()
{load}
loaded = time.perf_counter()
model.fit(X, y)
first = time.perf_counter()
model.fit(X, y)
print(loaded - start, first - loaded, time.perf_counter() - first)
"""


def first() -> Table:
    table = Table(
        "The first fit of a fresh process: digits 1,797×64, 10 classes; seconds, medians of five processes",
        "learner",
        "import",
        "first fit",
        "second fit",
    )
    warm = "from mercer import SVC\nmodel = SVC(precision='float32', progress=False)"
    loads = {
        "mercer, compiled code on disk": warm,
        "scikit-learn": "from sklearn.svm import SVC\nmodel = SVC()",
    }
    if onedal is not None:
        loads["oneDAL"] = "from sklearnex.svm import SVC\nmodel = SVC()"
    fresh_process(_FIRST.format(load=warm))
    for title, load in loads.items():
        lines = [fresh_process(_FIRST.format(load=load)) for _ in range(1 if QUICK else 5)]
        table.add(
            title, *np.median([[float(word) for word in line.split()] for line in lines], axis=0).tolist()
        )
    with tempfile.TemporaryDirectory() as folder:
        places = {"NUMBA_CACHE_DIR": folder, "MERCER_CACHE_DIR": folder + "/code"}
        line = fresh_process(_FIRST.format(load=warm), **places)
        table.add("mercer, nothing compiled yet (one process)", *(float(word) for word in line.split()))
    return table


def conditions() -> Table:
    table = Table("How it was measured", "what", "value")
    try:
        table.add("oneDAL", f"through scikit-learn-intelex {version('scikit-learn-intelex')}")
    except PackageNotFoundError:
        table.add("oneDAL", "absent")
    table.add("row cache of oneDAL and scikit-learn", f"{CACHE.get('cache_size', 200):g} MB")
    table.add("tolerance of all", "1e-3; the same γ and C")
    table.add(
        "times", "medians of runs in turns after a warm-up; one run of scikit-learn where it takes over 20 s"
    )
    table.add("m32, m64, o32, o64, s", "mercer in float32 and float64, oneDAL on such input, scikit-learn")
    if QUICK:
        table.add(
            "--quick", f"{SMALL} points of everything, whatever the rows say: these are no measurements"
        )
    return table


PARTS: dict[str, Callable[[], Table]] = {
    "fashion": lambda: fits("Fashion-MNIST, two classes", "fashion 10k", "fashion 30k"),
    "fashion10": lambda: fits("Fashion-MNIST, ten classes", "fashion10"),
    "a9a": lambda: fits("a9a, sparse", "a9a"),
    "covtype": lambda: fits("covtype", "covtype"),
    "digits": lambda: fits("Digits, ten classes", "usps", "digits"),
    "noisy": lambda: fits("Noisy labels", "noisy"),
    "svr": lambda: fits("Regression", "svr"),
    "oneclass": lambda: fits("One class", "oneclass"),
    "predict": predict,
    "float64": float64,
    "growth": growth,
    "memory": memory,
    "floor": floor,
    "first": first,
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    chosen = [name for name in sys.argv[1:] if name in PARTS] or list(PARTS)
    whole = len(chosen) == len(PARTS) and not QUICK
    tables = [conditions()]
    for name in chosen:
        tables.append(PARTS[name]())
        write("svm" if whole else "_svm", *tables)
