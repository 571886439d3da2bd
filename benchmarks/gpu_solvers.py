"""Fits that live on a GPU, at the sizes for which bars were set: time, quality, memory of the device.

    python -m benchmarks.gpu_solvers --covtype      write build/covtype.npz (9 MB) from ../shared/data/large
    python -m benchmarks.gpu_solvers --check        tiny versions of all parts, beside the same on the CPU
    python -m benchmarks.gpu_solvers --parts ridge,logistic --limit 200

With ``--check`` the sizes of the bars follow unless ``--only-check`` is said. ``build/`` is ignored by git:
carry it to another machine; without covtype a made-up set of the same shape stands in. ``globe`` needs there
the file globe_combined_mask_compressed.npz of the package global-land-mask. Times are those of ``fit``
from NumPy arrays, after a small fit of the same kind that compiles and loads libraries. A part that fails
prints why, and the others go on.
"""

from __future__ import annotations

import argparse
import cProfile
import gzip
import os
import pstats
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._timing import Table, write
from mercer import Gaussian, Gram, KernelLogisticRegression, KernelRidge, Matern, config
from mercer.expansion import Expansion
from mercer.gram.backends.base import Tile
from mercer.runtime.threads import run
from mercer.solvers.landmarks.inner import Weighted

COVTYPE = Path("build/covtype.npz")
#: that of the package global-land-mask
MASK = Path("build/globe_combined_mask_compressed.npz")
SOURCE = Path(os.environ.get("MERCER_DATA", "../shared/data")) / "large" / "covtype.csv.gz"
DEVICE = "cuda"
#: Its root, 3 %, is the gap relative to the objective that fits on landmarks may end at; held-out errors are
#: those that a root of 1e-3 gives.
TOL = 1e-3


def synchronise() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


def empty_device() -> None:
    """What the last part left is given back, and the peak is counted anew."""
    import gc

    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def peak() -> str:
    import torch

    return f"{torch.cuda.max_memory_allocated() / 2**30:.1f}" if torch.cuda.is_available() else ""


def seconds(function: Callable[[], Any]) -> tuple[float, Any]:
    synchronise()
    start = time.perf_counter()
    found = function()
    synchronise()
    return time.perf_counter() - start, found


# --- data -----------------------------------------------------------------------------------------------


def write_covtype() -> None:
    """Ten columns of whole numbers, which of 4 areas and 40 soils, and the class."""
    with gzip.open(SOURCE, "rt") as file:
        next(file)
        rows = np.loadtxt(file, delimiter=",", dtype=np.float32)
    X, y = rows[:, :54], rows[:, 54]
    assert (X[:, :10] == np.round(X[:, :10])).all() and (np.abs(X[:, :10]) < 2**15).all()
    assert (X[:, 10:14].sum(axis=1) == 1).all() and (X[:, 14:54].sum(axis=1) == 1).all()
    COVTYPE.parent.mkdir(exist_ok=True)
    np.savez_compressed(
        COVTYPE,
        numbers=np.ascontiguousarray(X[:, :10].T.astype(np.int16)),
        area=X[:, 10:14].argmax(axis=1).astype(np.uint8),
        soil=X[:, 14:54].argmax(axis=1).astype(np.uint8),
        label=y.astype(np.uint8),
    )
    print(f"{COVTYPE}: {COVTYPE.stat().st_size / 1e6:.1f} MB, {len(y):,} rows")


def covtype(n: int) -> tuple[str, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Standardised columns, class 2 against the rest; four fifths of the rows to learn from."""
    rng = np.random.default_rng(0)
    if COVTYPE.exists():
        with np.load(COVTYPE) as packed:
            area, soil = np.eye(4)[packed["area"]], np.eye(40)[packed["soil"]]
            X = np.hstack([packed["numbers"].T, area, soil])
            y = np.where(packed["label"] == 2, 1.0, -1.0)
        name = "covtype"
    else:
        X = np.hstack([rng.normal(size=(581_012, 10)), np.eye(44)[rng.integers(0, 44, 581_012)]])
        y, name = np.sign(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * X[:, 10]), "made up like covtype"
    spread = X.std(axis=0)
    X = ((X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)).astype(np.float32)
    order = rng.permutation(len(y))[: n + n // 4]
    learn, test = order[:n], order[n:]
    return name, X[learn], y[learn], X[test], y[test]


def smooth(n: int, d: int, dtype: Any = np.float32) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d), dtype=np.float32).astype(dtype)
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)
    return X, y.astype(np.float64)


# --- parts ----------------------------------------------------------------------------------------------


class Bench:
    """What all parts share: the table, the clock, and whether sizes are tiny."""

    def __init__(self, limit: float, profiles: bool) -> None:
        self.end = time.monotonic() + limit
        self.profiles = profiles
        self.table = Table(
            "Fits on a device", "what", "s", "iterations", "quality", "gap ÷ objective", "device GiB", "bar"
        )
        self.checks = Table("Tiny fits beside the CPU's", "what", "objective, relative", "values, relative")

    @property
    def left(self) -> float:
        return max(self.end - time.monotonic(), 1.0)

    def fit(self, model: Any, X: np.ndarray, y: np.ndarray, **settings: Any) -> tuple[float, Any]:
        """Seconds of the fit, and the model; where profiles are asked for, another fit is looked at."""
        empty_device()

        def run() -> Any:
            with config(device=DEVICE, **settings):
                return model.fit(X, y)

        taken, model = seconds(run)
        print(model.report_, flush=True)
        if self.profiles:
            with cProfile.Profile() as profile:
                run()
            pstats.Stats(profile).sort_stats("tottime").print_stats(14)
        return taken, model

    def add(self, what: str, taken: float, model: Any, quality: str, bar: str) -> None:
        report = model.report_
        gap = "" if report.gap is None else f"{report.gap / abs(report.objective):.1g}"
        self.table.add(what, taken, report.iterations, quality, gap, peak(), bar)

    def compare(self, what: str, make: Callable[[], Any], X: np.ndarray, y: np.ndarray, dtype: str) -> None:
        """The same fit on the device and, in float64, on the CPU."""
        with config(device=DEVICE, dtype=dtype):
            there = make().fit(X, y)
            values = there.expansion_(X[:200])
        here = make().fit(X.astype(np.float64), y)
        expected = here.expansion_(X[:200].astype(np.float64))
        objectives = there.report_.objective, here.report_.objective
        self.checks.add(
            f"{what}, {dtype}",
            f"{(objectives[0] - objectives[1]) / abs(objectives[1]):.1e}",
            f"{np.linalg.norm(values - expected) / np.linalg.norm(expected):.1e}",
        )


def ridge(bench: Bench, is_check: bool) -> None:
    """Landmarks, many columns."""
    n, M = (4000, 300) if is_check else (464_809, 20_000)
    name, X, y, X_test, y_test = covtype(n)

    def make(**options: Any) -> KernelRidge:
        return KernelRidge(lam=1e-7, kernel=Gaussian(sigma=1.0), tol=TOL, max_time=bench.left, **options)

    if is_check:
        for dtype in ("float32", "float64"):
            bench.compare("ridge, landmarks, 54 columns", lambda: make(landmarks=M), X, y, dtype)
        return
    for dtype in ("float32", "float64"):
        with config(device=DEVICE, dtype=dtype):
            for small in (
                1600,
                1608,
            ):  # Rows of K of either begin where a thread may read four values, or two.
                make(landmarks=small).fit(X[:20_000], y[:20_000])
    for landmarks, dtype in ((5000, "float32"), (M, "float32"), (5000, "float64"), (M, "float64")):
        taken, model = bench.fit(make(landmarks=landmarks), X, y, dtype=dtype)
        with config(device=DEVICE, dtype=dtype):
            predicting, values = seconds(lambda model=model: model.predict(X_test))
        error = (
            f"{100 * float(np.mean(np.sign(values) != y_test)):.2f} % error; predicts in {predicting:.2f} s"
        )
        bar = "≤ 0.9 s, ≤ 9.0 %" if landmarks == M else "(Falkon: 1.3 s, 14.3 %)"
        bench.add(f"{name} {n:,} × 54, M = {landmarks:,}, {dtype}", taken, model, error, bar)


def tall(bench: Bench, is_check: bool) -> None:
    """Landmarks, very many rows."""
    n, M = (20_000, 200) if is_check else (2_000_000, 10_000)
    X, y = smooth(n, 10)

    def make(landmarks: int) -> KernelRidge:
        kernel = Gaussian(sigma=3.0)
        return KernelRidge(lam=1e-6, kernel=kernel, tol=TOL, landmarks=landmarks, max_time=bench.left)

    if is_check:
        bench.compare("ridge, landmarks, 10 columns", lambda: make(M), X, y, "float32")
        return
    X_test, y_test = smooth(20_000, 10)
    for dtype in ("float32", "float64"):
        with config(device=DEVICE, dtype=dtype):
            make(1600).fit(X[:100_000], y[:100_000])
        taken, model = bench.fit(make(M), X, y, dtype=dtype)
        with config(device=DEVICE, dtype=dtype):
            error = float(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)))
        quality = f"RMSE {error:.3f} (noise 0.1)"
        bench.add(f"{n:,} × 10, M = {M:,}, {dtype}", taken, model, quality, "≤ 1.2 s")


def logistic(bench: Bench, is_check: bool) -> None:
    """A smooth risk on landmarks."""
    n, M = (4000, 300) if is_check else (100_000, 10_000)
    X, y = smooth(n, 100)
    labels = (y > 0).astype(int)

    def make(landmarks: int) -> KernelLogisticRegression:
        kernel = Gaussian(sigma=10.0)
        return KernelLogisticRegression(kernel, C=10.0, tol=1e-4, landmarks=landmarks, max_time=bench.left)

    if is_check:
        for dtype in ("float32", "float64"):
            bench.compare("logistic, landmarks", lambda: make(M), X, labels, dtype)
        return
    for dtype in ("float32", "float64"):
        with config(device=DEVICE, dtype=dtype):
            make(1600).fit(X[:20_000], labels[:20_000])
        taken, model = bench.fit(make(M), X, labels, dtype=dtype)
        quality = f"{model.n_products_} passes"
        bench.add(f"logistic {n:,} × 100, M = {M:,}, {dtype}", taken, model, quality, "≤ 5 s to 1e-4")


def exact(bench: Bench, is_check: bool) -> None:
    """The exact problem by a factor, float64."""
    n = 2000 if is_check else 100_000
    X, y = smooth(n, 10, np.float64)

    def make(solver: str = "auto") -> KernelRidge:
        return KernelRidge(alpha=1.0, kernel=Gaussian(sigma=3.0), solver=solver, max_time=bench.left)

    if is_check:
        for solver in ("auto", "mixed"):
            bench.compare(f"ridge, exact, {solver}", lambda solver=solver: make(solver), X, y, "float64")
        return
    with config(device=DEVICE):
        make().fit(X[:4000], y[:4000])
    for solver in ("auto", "mixed"):
        if bench.left < 60 and solver != "auto":
            return
        taken, model = bench.fit(make(solver), X, y, dtype="float64")
        error = residual(model, X, y, 1.0)
        bench.add(f"exact {n:,} × 10, {solver}", taken, model, f"residual {error:.1e}", "≤ 15 s, ≤ 1e-10")


def pcg(bench: Bench, is_check: bool) -> None:
    """The exact problem by conjugate gradients."""
    n = 3000 if is_check else 1_000_000
    X, y = smooth(n, 10)

    def make() -> KernelRidge:
        return KernelRidge(
            alpha=1.0,
            kernel=Gaussian(sigma=3.0),
            solver="cg",
            tol=5e-5,  # of the residual that the iterations see; the true one is asked to be 1e-4
            fit_intercept=False,
            max_time=bench.left,
        )

    if is_check:
        bench.compare("ridge, exact, cg", make, X, y, "float32")
        return
    with config(device=DEVICE, dtype="float32"):
        make().fit(X[:20_000], y[:20_000])
    taken, model = bench.fit(make(), X, y, dtype="float32")
    error = residual(model, X, y, 1.0)
    bench.add(f"cg {n:,} × 10", taken, model, f"residual {error:.1e}", "≤ 300 s, 1e-4")


def residual(model: KernelRidge, X: np.ndarray, y: np.ndarray, alpha: float) -> float:
    """‖y - b - (K + αI) a‖ / ‖y‖ in float64, on some of the rows."""
    rows = np.random.default_rng(1).choice(len(X), min(len(X), 20_000), replace=False)
    a = np.asarray(model.dual_coef_).ravel()
    with config(device=DEVICE, dtype="float64"):
        values = Gram(model.kernel_, X[rows].astype(np.float64), X.astype(np.float64)) @ a
    left = y[rows] - model.intercept_ - values - alpha * a[rows]
    return float(np.linalg.norm(left) / np.linalg.norm(y[rows]))


def predict(bench: Bench, is_check: bool) -> None:
    """Predictions from many anchors, beside the bare product of points that are there already."""
    n, m, d = (2000, 300, 784) if is_check else (1_000_000, 20_000, 784)
    rng = np.random.default_rng(0)
    X, Z = (rng.standard_normal((k, d), dtype=np.float32) for k in (n, m))
    coef, kernel = rng.standard_normal(m), Gaussian(sigma=28.0)
    f = Expansion(kernel, Z, coef, 0.0)
    for error in (1e-3, None):
        with config(device=DEVICE, dtype="float32", kernel_error=error):
            if is_check:
                found, exact_f = f(X), Expansion(kernel, Z.astype(np.float64), coef, 0.0)
                with config(device="cpu", dtype="float64"):
                    expected = exact_f(X[:200].astype(np.float64))
                apart = np.linalg.norm(found[:200] - expected) / np.linalg.norm(expected)
                bench.checks.add(f"predictions, kernel_error={error}", "", f"{apart:.1e}")
                continue
            f(X[:20_000])
            empty_device()
            taken = float(np.median([seconds(lambda: f(X))[0] for _ in range(3)]))
            bare = bare_product(kernel, X[:200_000], Z, coef) * n / 200_000
        bench.table.add(
            f"predict {n:,}, {m:,} anchors, d = {d}, at most {error or 1e-6:g}", taken, "",
            f"{2 * n * m * d / taken / 1e12:.0f} TFLOP/s, {bare / taken:.2f} of the product", "", peak(),
            "≥ 0.6",
        )  # fmt: skip


def bare_product(kernel: Any, X: np.ndarray, Z: np.ndarray, coef: np.ndarray) -> float:
    """Seconds of K(X, Z) @ v on the device alone."""
    import torch

    gram = Gram(kernel, X, Z)
    backend: Any = gram._backend
    if not hasattr(backend, "times"):
        return seconds(lambda: gram @ coef)[0]
    v = torch.as_tensor(coef[:, None], device=DEVICE, dtype=torch.float32)
    tile = Tile(gram._x, gram._y, (0, len(X)), (0, len(Z)))
    backend.times(tile, v)
    return min(seconds(lambda: backend.times(tile, v))[0] for _ in range(3))


def globe(bench: Bench, is_check: bool) -> None:
    """Land or sea: very many places, and then one pass over every place of the mask."""
    n, M = (50_000, 300) if is_check else (100_000_000, 50_000)
    from mercer.gram.backends.torch import where_of
    from mercer.gram.device.memory import DeviceRoom
    from mercer.gram.device.rows import DeviceBlocks

    mask = Mask()
    X, y = mask.places(n, seed=0)
    kernel = Matern(1.5, length_scale=0.5)

    def make(landmarks: int) -> KernelRidge:
        return KernelRidge(lam=1e-7, kernel=kernel, tol=TOL, landmarks=landmarks, max_time=bench.left)

    if is_check:
        bench.compare("ridge, land or sea", lambda: make(M), X, y, "float32")
        return
    with config(device=DEVICE, dtype="float32"):
        make(1600).fit(X[:100_000], y[:100_000])
    taken, model = bench.fit(make(M), X, y, dtype="float32")
    X_test, y_test = mask.places(200_000, seed=1)
    with config(device=DEVICE, dtype="float32"):
        error = float(np.mean(np.sign(model.predict(X_test)) != y_test))
    quality = f"{100 * error:.2f} % error of new places"
    bench.add(f"land or sea {n:,} × 3, M = {M:,}", taken, model, quality, "total time")
    del X, y
    X, beta, Z = mask.all_places(), model.expansion_.coef[:, None], model.expansion_.anchors
    with config(device=DEVICE, dtype="float32"):
        bare = 2 * bare_product(kernel, X[: 10**7], Z, beta[:, 0]) * len(X) / 10**7
        rows = DeviceBlocks(kernel, X, Z, DeviceRoom(where_of(DEVICE)))
        taken, _ = seconds(lambda: rows.pass_over(beta, Weighted(np.ones((1, 1)))))
    rate = 2 * len(X) * len(Z) / taken
    bench.table.add(
        f"one pass over {len(X):,} × 3, M = {len(Z):,}", taken, "",
        f"{rate / 1e12:.2f}·10¹² pairs/s, {bare / taken:.2f} of two bare products", "", peak(), "≥ 0.5",
    )  # fmt: skip


class Mask:
    """Which places of the globe, one for each minute of an arc, are land: of the package global-land-mask."""

    def __init__(self) -> None:
        with np.load(MASK) as file:
            self.is_sea, self.north, self.east = (
                file["mask"],
                np.radians(file["lat"]),
                np.radians(file["lon"]),
            )

    def places(self, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """n places drawn evenly from the sphere, as unit vectors, and ±1 for land or sea."""
        X, y = np.empty((n, 3), np.float32), np.empty(n)

        def draw(part: slice) -> None:
            rng, size = np.random.default_rng([seed, part.start]), len(y[part])
            z, east = rng.uniform(-1, 1, size), rng.uniform(-np.pi, np.pi, size)
            i = np.searchsorted(-self.north, -np.arcsin(z)).clip(0, len(self.north) - 1)
            j = np.searchsorted(self.east, east).clip(0, len(self.east) - 1)
            X[part] = _on_sphere(z, east)
            y[part] = np.where(self.is_sea[i, j], -1.0, 1.0)

        run(draw, [slice(start, start + 2**20) for start in range(0, n, 2**20)])
        return X, y

    def all_places(self) -> np.ndarray:
        """Every place of the mask, as a unit vector."""
        rows, columns = self.is_sea.shape
        X = np.empty((rows * columns, 3), np.float32)

        def draw(i: int) -> None:
            X[i * columns : (i + 1) * columns] = _on_sphere(
                np.full(columns, np.sin(self.north[i])), self.east
            )

        run(draw, range(rows))
        return X


def _on_sphere(z: np.ndarray, east: np.ndarray) -> np.ndarray:
    ring = np.sqrt(1 - z**2)
    return np.column_stack([ring * np.cos(east), ring * np.sin(east), z])


PARTS = {
    "ridge": ridge, "tall": tall, "logistic": logistic, "exact": exact, "predict": predict, "pcg": pcg,
    "globe": globe,
}  # fmt: skip


def main() -> None:
    global DEVICE
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", default=",".join(PARTS), help="names, of " + ", ".join(PARTS))
    parser.add_argument("--limit", type=float, default=600.0, help="seconds in all: no part begins later")
    parser.add_argument("--check", action="store_true", help="tiny versions first, beside the CPU")
    parser.add_argument("--only-check", action="store_true", help="tiny versions alone")
    parser.add_argument("--profile", action="store_true", help="fit once more, and say where time went")
    parser.add_argument("--covtype", action="store_true", help="write build/covtype.npz, and end")
    parser.add_argument("--device", default=DEVICE, help="cuda by default; cpu:0 takes the same way, slowly")
    given = parser.parse_args()
    if given.covtype:
        write_covtype()
        return
    DEVICE = given.device
    import torch

    if DEVICE.startswith("cuda"):
        if not torch.cuda.is_available():
            print("no CUDA device: nothing is measured")
            return
        print(torch.cuda.get_device_name(), torch.__version__, flush=True)
        torch.zeros(1, device=DEVICE)
    chosen = given.parts.split(",")
    unknown = set(chosen) - PARTS.keys()
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    bench, failed = Bench(given.limit, given.profile), []
    rounds = [True] * (given.check or given.only_check) + [False] * (not given.only_check)
    for is_check in rounds:
        for name in chosen:
            if bench.end < time.monotonic():
                print(f"{name}: left out, the time is over", flush=True)
                continue
            begin = time.monotonic()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("always")
                    PARTS[name](bench, is_check)
            except Exception:
                traceback.print_exc(file=sys.stdout)
                failed.append(name)
            print(f"{name}{' (tiny)' * is_check}: {time.monotonic() - begin:.1f} s in all", flush=True)
            empty_device()
    if not given.only_check and DEVICE.startswith("cuda"):
        write("gpu_solvers", *(table for table in (bench.checks, bench.table) if table.rows))
    if failed:
        print("failed:", ", ".join(failed))
        sys.exit(1)


if __name__ == "__main__":
    main()
