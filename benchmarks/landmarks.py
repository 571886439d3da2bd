"""Many points, few landmarks: covtype against scikit-learn's Nystroem, flights from Parquet, land or sea.

Run with ``python -m benchmarks.landmarks``, or with the names of some parts (covtype, whole, flights, globe,
choice, pivots). Each fit is a process of its own, whose peak memory is that of the fit: what was held before
it is taken off. Times are those of ``fit`` alone, of runs in turns; errors are on rows that no fit has seen.
``globe`` needs the package global-land-mask beside those of the other benchmarks.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks._data import FOLDER, covtype, regression
from benchmarks._timing import Table, fresh_process, write

REPEATS = int(os.environ.get("REPEATS", "3"))
_FLIGHTS_GAMMA = 0.3
_NAMES = ("X", "y", "X_test", "y_test")
_GAMMA, _LAM = 0.05, 1e-6  # chosen on 20,000 rows of covtype that are neither learned nor tested on


def _memory(name: str) -> int:
    """Bytes of this process: "VmRSS" that it holds, "VmHWM" that it has held at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def _timed(fit: Callable[[], object]) -> tuple[object, float, float]:
    """What a fit gives, its seconds, and the MiB that it took beside what was there before."""
    Path("/proc/self/clear_refs").write_text("5")  # The peak is counted from now on.
    before, began = _memory("VmRSS"), time.perf_counter()
    model = fit()
    return model, time.perf_counter() - began, (_memory("VmHWM") - before) / 2**20


# --- covtype: the second kind of trees against the others -------------------------------------------------


def covtype_files(n: int, folder: str) -> dict[str, float]:
    """The rows as files: whoever read the table may give memory back while a fit is measured."""
    for name, values in zip(_NAMES, covtype(n, skip=20_000), strict=True):
        np.save(Path(folder) / f"covtype_{n}_{name}.npy", values)
    return {}


def covtype_fit(who: str, learner: str, n: int, M: int, dtype: str, folder: str) -> dict[str, float]:
    X, y, X_test, y_test = (np.load(Path(folder) / f"covtype_{n}_{name}.npy") for name in _NAMES)
    X, X_test = X.astype(dtype, copy=False), X_test.astype(dtype, copy=False)
    signs = np.where(y == 1, 1.0, -1.0)
    if who == "mercer":
        model, seconds, peak = _timed(lambda: _ours(learner, X, y, signs, M, dtype))
    else:
        model, seconds, peak = _timed(lambda: _theirs(learner, X, y, signs, M))
    predicted = model.predict(X_test)  # type: ignore[attr-defined]
    wrong = (predicted > 0) != (y_test == 1) if learner == "ridge" else predicted != y_test
    return {"seconds": seconds, "peak": peak, "error": float(np.mean(wrong))}


def _ours(learner: str, X: np.ndarray, y: np.ndarray, signs: np.ndarray, M: int, dtype: str) -> object:
    import mercer

    kernel = mercer.Gaussian(gamma=_GAMMA)
    with mercer.config(dtype=dtype):
        if learner == "ridge":
            return mercer.KernelRidge(lam=_LAM, kernel=kernel, landmarks=M).fit(X, signs)
        C = 1.0 / (2 * 10 * _LAM * len(y))
        return mercer.KernelLogisticRegression(kernel, C=C, landmarks=M, tol=1e-4).fit(X, y)


def _theirs(learner: str, X: np.ndarray, y: np.ndarray, signs: np.ndarray, M: int) -> object:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline

    features = Nystroem(gamma=_GAMMA, n_components=M, random_state=0)
    if learner == "ridge":
        return make_pipeline(features, Ridge(alpha=_LAM * len(y))).fit(X, signs)
    C = 1.0 / (2 * 10 * _LAM * len(y))
    return make_pipeline(features, LogisticRegression(C=C)).fit(X, y)


def _run(part: str, *arguments: object) -> dict[str, float]:
    """A part in a process of its own."""
    script = (
        f"import json; from benchmarks import landmarks as b; print(json.dumps(b.{part}(*{arguments!r})))"
    )
    return json.loads(fresh_process(script).splitlines()[-1])


def covtype_table(folder: str) -> Table:
    """200,000 rows and 2,000 landmarks, beside Nystroem with as many."""
    _run("covtype_files", 200_000, folder)
    table = Table(
        "covtype, 200,000 × 54, 2,000 landmarks",
        *("learner", "precision", "mercer, s", "error", "MiB", "scikit-learn, s", "error", "MiB"),
        *("times faster", "of its memory"),
    )
    for dtype in ("float64", "float32")[: 1 if REPEATS == 1 else 2]:
        for learner in ("ridge", "logistic"):
            runs = {who: [] for who in ("mercer", "scikit-learn")}
            for _ in range(REPEATS):
                for who, found in runs.items():
                    found.append(_run("covtype_fit", who, learner, 200_000, 2000, dtype, folder))
            middle = {
                who: {key: float(np.median([run[key] for run in found])) for key in found[0]}
                for who, found in runs.items()
            }
            ours, theirs = middle["mercer"], middle["scikit-learn"]
            table.add(
                learner, dtype, ours["seconds"], f"{ours['error']:.2%}", ours["peak"],
                theirs["seconds"], f"{theirs['error']:.2%}", theirs["peak"],
                theirs["seconds"] / ours["seconds"], ours["peak"] / theirs["peak"],
            )  # fmt: skip
    return table


def whole_table(folder: str) -> Table:
    """All rows, 4,000 landmarks: scikit-learn would need 18 GB for the features alone."""
    _run("covtype_files", 541_012, folder)
    table = Table("covtype, 541,012 × 54, 4,000 landmarks", "learner", "s", "error", "MiB of the fit")
    for learner in ("ridge", "logistic"):
        found = _run("covtype_fit", "mercer", learner, 541_012, 4000, "float64", folder)
        table.add(learner, found["seconds"], f"{found['error']:.2%}", found["peak"])
    return table


# --- flights: three million rows of a Parquet file --------------------------------------------------------


def flights_table(folder: str) -> Table:
    """The delay of a flight from its date, distance and places, in a budget of 1 GiB."""
    table = Table("flights, all rows of a Parquet file", "model", "rows", "s", "RMSE, minutes", "MiB")
    for name, rows in (("linear", None), ("Nystroem + Ridge", 300_000), ("mercer", None)):
        found = _run("flights_fit", name, rows, folder)
        table.add(name, rows or "all", found["seconds"], found["error"], found["peak"])
    return table


def _flights(folder: Path) -> tuple[Path, Path]:
    """Parquet files of eight standardised columns and the delay: rows to learn from, and 100,000 to test."""
    import polars as pl

    files = folder / "learn.parquet", folder / "test.parquet"
    if files[1].exists():
        return files
    frame = pl.read_parquet(FOLDER / "large" / "flights-3m.parquet").drop_nulls()
    places = pl.read_csv(FOLDER / "large" / "airports.csv.gz").select("iata", "latitude", "longitude")
    for end in ("origin", "destination"):
        names = {"iata": end, "latitude": f"{end}_north", "longitude": f"{end}_east"}
        frame = frame.join(places.rename(names), on=end, how="inner")
    date = pl.col("date")
    frame = frame.select(
        hour=date.dt.hour() + date.dt.minute() / 60,
        day=date.dt.ordinal_day().cast(pl.Float64),
        weekday=date.dt.weekday().cast(pl.Float64),
        distance=pl.col("distance").log1p(),
        **{name: pl.col(name) for name in frame.columns if name.endswith(("_north", "_east"))},
        delay=pl.col("delay").cast(pl.Float64),
    ).sample(fraction=1.0, shuffle=True, seed=0)
    columns = [name for name in frame.columns if name != "delay"]
    frame = frame.with_columns(
        [(pl.col(name) - pl.col(name).mean()) / pl.col(name).std() for name in columns]
    )
    frame[:-100_000].write_parquet(files[0])
    frame[-100_000:].write_parquet(files[1])
    return files


def flights_fit(name: str, rows: int | None, folder: str) -> dict[str, float]:
    import polars as pl

    learn, test = _flights(Path(folder))
    if name == "mercer":
        import mercer

        with mercer.config(memory="1GiB"):
            learner = mercer.KernelRidge(
                lam=1e-6, kernel=mercer.Gaussian(gamma=_FLIGHTS_GAMMA), landmarks=2000
            )
            model, seconds, peak = _timed(lambda: learner.fit(str(learn), "delay"))
    else:
        from sklearn.kernel_approximation import Nystroem
        from sklearn.linear_model import Ridge
        from sklearn.pipeline import make_pipeline

        frame = pl.read_parquet(learn, n_rows=rows)
        X, y = frame.drop("delay").to_numpy(), frame["delay"].to_numpy()
        first = (
            [Nystroem(gamma=_FLIGHTS_GAMMA, n_components=2000, random_state=0)] if name != "linear" else []
        )
        model, seconds, peak = _timed(lambda: make_pipeline(*first, Ridge(alpha=1e-6 * len(y))).fit(X, y))
    frame = pl.read_parquet(test)
    predicted = model.predict(frame.drop("delay").to_numpy())  # type: ignore[attr-defined]
    error = float(np.sqrt(np.mean((predicted - frame["delay"].to_numpy()) ** 2)))
    return {"seconds": seconds, "peak": peak, "error": error}


# --- the globe: land or sea -------------------------------------------------------------------------------


def _globe(folder: Path, n: int) -> tuple[Path, Path]:
    """n places drawn evenly from the sphere as unit vectors, and ±1 for land or sea, in .npy files.

    Of each degree of latitude and longitude either all places are for learning or all are for testing: the
    sign of ``n`` says for which.
    """
    import global_land_mask

    files = folder / f"places{n}.npy", folder / f"land{n}.npy"
    if files[1].exists():
        return files
    with np.load(Path(global_land_mask.__file__).parent / "globe_combined_mask_compressed.npz") as file:
        mask, latitudes, longitudes = file["mask"], file["lat"], file["lon"]
    rng, wanted = np.random.default_rng(0 if n > 0 else 1), abs(n)
    X = np.lib.format.open_memmap(files[0], "w+", np.float32, (wanted, 3))
    y = np.lib.format.open_memmap(files[1], "w+", np.float32, (wanted,))
    done = 0
    while done < wanted:
        z, angle = rng.uniform(-1, 1, 2**20), rng.uniform(-np.pi, np.pi, 2**20)
        north, east = np.degrees(np.arcsin(z)), np.degrees(angle)
        cell = np.floor(north).astype(int) * 7919 + np.floor(east).astype(int) * 104_729
        is_test = cell % 10 == 0
        chosen = np.flatnonzero(is_test == (n < 0))[: wanted - done]
        i = np.searchsorted(-latitudes, -north[chosen]).clip(0, len(latitudes) - 1)
        j = np.searchsorted(longitudes, east[chosen]).clip(0, len(longitudes) - 1)
        ring = np.sqrt(1 - z[chosen] ** 2)
        part = slice(done, done + len(chosen))
        X[part] = np.column_stack([ring * np.cos(angle[chosen]), ring * np.sin(angle[chosen]), z[chosen]])
        y[part] = np.where(mask[i, j], -1.0, 1.0)  # the mask is true at sea
        done += len(chosen)
    return files


def globe_fit(n: int, M: int, folder: str) -> dict[str, float]:
    import mercer

    places, land = _globe(Path(folder), n)
    X, y = np.load(places, mmap_mode="r"), np.load(land, mmap_mode="r")
    X_test, y_test = (np.load(file) for file in _globe(Path(folder), -200_000))
    passes = _count_passes(n)
    with mercer.config(memory="2GiB", dtype="float32"):
        learner = mercer.KernelRidge(lam=1e-7, kernel=mercer.Matern(1.5, length_scale=0.5), landmarks=M)
        model, seconds, peak = _timed(lambda: learner.fit(X, y))
        error = float(np.mean(np.sign(model.predict(X_test)) != y_test))  # type: ignore[attr-defined]
    return {"seconds": seconds, "peak": peak, "error": error, "rate": n * len(passes) / sum(passes)}


def _count_passes(n: int) -> list[float]:
    """A list that grows by the seconds of each pass over n rows from now on."""
    from mercer.gram.blocks import RowBlocks

    passes: list[float] = []
    method = RowBlocks.pass_over

    def counted(self: RowBlocks, *arguments: object, **options: object) -> object:
        began = time.perf_counter()
        found = method(self, *arguments, **options)  # type: ignore[arg-type]
        if self.shape[0] == n:
            passes.append(time.perf_counter() - began)
        return found

    RowBlocks.pass_over = counted  # type: ignore[assignment, method-assign]
    return passes


def globe_table(folder: str) -> Table:
    table = Table(
        "land or sea, places of the globe in a memory map, budget 2 GiB, float32",
        *("rows", "landmarks", "s", "error", "MiB", "million rows a second in a pass"),
    )
    for n, M in (
        (1_000_000, 300),
        (1_000_000, 1000),
        (1_000_000, 3000),
        (4_000_000, 3000),
        (20_000_000, 3000),
    ):
        found = _run("globe_fit", n, M, folder)
        table.add(
            f"{n:,}", f"{M:,}", found["seconds"], f"{found['error']:.2%}", found["peak"], found["rate"] / 1e6
        )
    return table


# --- the choice of landmarks ------------------------------------------------------------------------------


def choice_table() -> Table:
    """Uniform against pivoted landmarks, errors on rows not learned from, means of three draws."""
    import mercer

    table = Table(
        "RMSE ÷ spread, 500 landmarks", "table", "uniform", "pivoted", "pivoted ÷ uniform", "s", "s, pivoted"
    )
    for name in ("kin40k", "protein", "elevators", "pol", "bike"):
        X, y, X_test, y_test = regression(name)
        X, y = X[:15_000], y[:15_000]
        found: dict[str, list[tuple[float, float]]] = {}
        for choice in ("uniform", "pivoted"):
            for seed in range(3):
                landmarks = mercer.Landmarks(500, choice, seed)
                model = mercer.KernelRidge(1e-2, kernel="rbf", landmarks=landmarks)
                began = time.perf_counter()
                error = float(np.sqrt(np.mean((model.fit(X, y).predict(X_test) - y_test) ** 2)))
                found.setdefault(choice, []).append((error, time.perf_counter() - began))
        uniform, pivoted = (np.mean(found[choice], axis=0) for choice in ("uniform", "pivoted"))
        table.add(
            name, float(uniform[0]), float(pivoted[0]), float(pivoted[0] / uniform[0]), float(uniform[1]),
            float(pivoted[1]),
        )  # fmt: skip
    return table


def pivots_table() -> Table:
    """What pivots cost beside the kernel values of their columns, which whoever uses them needs anyway."""
    from mercer import Gaussian, Gram
    from mercer.solvers.landmarks.pivots import pivoted_cholesky
    from mercer.solvers.landmarks.rejection import random_pivots

    n, rank, random = 20_000, 1000, np.random.default_rng(0)
    K = Gram(Gaussian(sigma=np.sqrt(20.0)), random.normal(size=(n, 20)), cache=0)
    rows, some = np.empty((rank, n)), np.sort(random.choice(n, rank, replace=False))
    work: dict[str, Callable[[], object]] = {
        "kernel values of the columns": lambda: K.write_rows(some, (0, n), rows, np.arange(rank)),
        "pivots alone": lambda: random_pivots(K, rank, random_state=0),
        "pivots and the factor": lambda: pivoted_cholesky(K, rank, random_state=0),
    }
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(8):
        for name, call in work.items():
            began = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - began)
    table = Table("1,000 pivots of 20,000 × 20, σ = √20, float64", "what", "s", "÷ kernel values")
    medians = {name: float(np.median(times[1:])) for name, times in seconds.items()}
    for name, median in medians.items():
        table.add(name, median, median / medians["kernel values of the columns"])
    return table


PARTS = {
    "covtype": covtype_table,
    "whole": whole_table,
    "flights": flights_table,
    "globe": globe_table,
    "choice": lambda folder: choice_table(),
    "pivots": lambda folder: pivots_table(),
}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        write("landmarks", *(PARTS[name](scratch) for name in sys.argv[1:] or PARTS))
