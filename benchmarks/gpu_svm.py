"""Support vector machines on a GPU: Fashion-MNIST, two classes and ten, against our own CPU code in one run.

Run with ``python -m benchmarks.gpu_svm`` in an environment with ``mercer[gpu]``, on a machine with a CUDA
device, with the images in ``device_data``, ``$MERCER_DATA/images`` or ``../shared/data/images``. A fit of few
points warms up each side; then each is timed on either side, from NumPy arrays to the fitted model.
Objectives and gaps are stated, so that equal objectives are seen to be.
"""

from __future__ import annotations

import argparse
import gzip
import os
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._timing import Table, write
from mercer import SVC, SVR, NuSVC, NuSVR, OneClassSVM, config

_ROOT = Path(__file__).parents[1]
_FOLDERS = (
    _ROOT / "device_data",
    Path(os.environ.get("MERCER_DATA", _ROOT.parent / "shared" / "data")) / "images",
)
_SIZES = (12_000, 30_000, 60_000)


def images() -> tuple[np.ndarray, np.ndarray]:
    """60,000 images of 784 numbers in [0, 1], in float32, and ten classes."""
    found = [folder for folder in _FOLDERS if (folder / "train-images-idx3-ubyte.gz").exists()]
    if not found:
        raise FileNotFoundError(f"no train-images-idx3-ubyte.gz in any of {[str(f) for f in _FOLDERS]}")
    with gzip.open(found[0] / "train-images-idx3-ubyte.gz") as file:
        X = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
    with gzip.open(found[0] / "train-labels-idx1-ubyte.gz") as file:
        y = np.frombuffer(file.read(), np.uint8, offset=8)
    return X.astype(np.float32) / np.float32(255.0), y.astype(int)


class Clock:
    """What is left of the time that a run may take."""

    def __init__(self, limit: float) -> None:
        self.start, self.limit = time.perf_counter(), limit

    @property
    def is_over(self) -> bool:
        return time.perf_counter() - self.start > self.limit


Side = dict[str, Any]
_CPU: Side = {"device": "cpu"}


def timed(side: Side, fit: Callable[[], Any]) -> tuple[float, Any]:
    with config(**side):
        start = time.perf_counter()
        model = fit()
        return time.perf_counter() - start, model


def stated(model: Any) -> str:
    """The objective, and how far above the minimum it may be."""
    return f"{model.report_.objective:.6g} ± {model.report_.gap:.2g}"


def agrees(first: Any, second: Any) -> str:
    """Whether two objectives are equal to within what both say they may be off."""
    apart = abs(first.report_.objective - second.report_.objective)
    return "equal" if apart <= first.report_.gap + second.report_.gap else f"APART BY {apart:.3g}"


def fits(table: Table, X: np.ndarray, y: np.ndarray, device: Side, name: str, **options: Any) -> None:
    on_cpu, cpu = timed(_CPU, lambda: SVC(C=10, **options).fit(X, y))
    on_device, model = timed(device, lambda: SVC(C=10, **options).fit(X, y))
    again, _ = timed(device, lambda: SVC(C=10, **options).fit(X, y))
    double, exact = timed(device, lambda: SVC(C=10, precision="float64", **options).fit(X, y))
    table.add(
        f"{name}, {len(X):,}", on_cpu, on_device, again, f"{on_cpu / again:.1f} ×", stated(cpu),
        stated(model), agrees(cpu, model),
        double, stated(exact), agrees(cpu, exact), f"{len(cpu.support_)} / {len(model.support_)}",
        f"{model.report_.stopped}",
    )  # fmt: skip
    print("   ", "; ".join(model.report_.plan.why), flush=True)


def classifiers(classes: int, sizes: list[int], device: Side, clock: Clock) -> Table:
    name = "odd or even" if classes == 2 else "ten classes"
    table = Table(
        f"SVC on Fashion-MNIST, {name}, C = 10, seconds", "fit", "CPU", device["device"],
        "the same again", "CPU ÷ GPU", "objective, CPU", "objective, GPU", "objectives",
        "GPU in float64", "its objective", "it and CPU's", "support vectors", "stopped",
    )  # fmt: skip
    X, y = images()
    y = y % 2 if classes == 2 else y
    for n in sizes:
        if clock.is_over:
            print("the time is over")
            break
        fits(table, X[:n], y[:n], device, name)
    return table


def rounds(n: int, device: Side) -> Table:
    """Where the time of a fit goes: of all seconds, those in each function, by the clock on the wall."""
    import cProfile
    import pstats

    X, y = images()
    X, y = X[:n], y[:n] % 2
    table = Table(f"Where the seconds of SVC on {n:,} points go", "function", "calls", "seconds inside")
    profile = cProfile.Profile()
    with config(**device):
        profile.enable()
        SVC(C=10).fit(X, y)
        profile.disable()
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    ordered = sorted(stats.items(), key=lambda item: -item[1][3])
    for (file, _, function), (_, calls, _, seconds, _) in ordered[:70]:
        table.add(f"{Path(file).name}: {function}", calls, float(seconds))
    return table


def machines(device: Side) -> Table:
    """All five problems on made-up points."""
    table = Table(
        "The five machines, 8,000 × 20, made up, seconds", "fit", "CPU", device["device"], "objective, CPU",
        "objective, GPU", "objectives",
    )  # fmt: skip
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 20))
    target = np.sin(X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=8000)
    labels = target > 0
    for model, y in (
        (SVC(), labels), (SVC(precision="float64"), labels), (SVC(fit_intercept=False), labels),
        (NuSVC(nu=0.3), labels), (SVR(), target), (NuSVR(), target), (OneClassSVM(nu=0.1), None),
    ):  # fmt: skip
        try:
            on_cpu, cpu = timed(_CPU, lambda: model.fit(X, y))  # noqa: B023
            first = cpu.report_
            on_device, there = timed(device, lambda: model.fit(X, y))  # noqa: B023
            second = there.report_
            apart = abs(first.objective - second.objective)
            table.add(
                repr(model), on_cpu, on_device, f"{first.objective:.8g} ± {first.gap:.2g}",
                f"{second.objective:.8g} ± {second.gap:.2g}",
                "equal" if apart <= first.gap + second.gap else f"APART BY {apart:.3g}",
            )  # fmt: skip
        except Exception:
            traceback.print_exc()
    return table


def warm_up(device: Side) -> None:
    """Compile and start what both sides need."""
    X, y = images()
    for where in (_CPU, device):
        start = time.perf_counter()
        timed(where, lambda: SVC(C=10).fit(X[:5000], y[:5000] % 2))
        print(f"a first fit on {where}: {time.perf_counter() - start:.3g} s", flush=True)
        timed(where, lambda: SVC(C=10).fit(X[:12_000], y[:12_000]))


def check(device: Side) -> None:
    """Each verb of the device on a few points, so that what is wrong is seen before it costs time."""
    from mercer import Gaussian, Gram
    from mercer.gram.device.kernel_rows import device_room, device_rows

    rng = np.random.default_rng(0)
    print("room", device_room(device["device"]))
    for d, dtype in ((3, "float32"), (30, "float32"), (300, "float32"), (784, "float32"), (300, "float64")):
        X = rng.normal(size=(700, d)).astype(np.float32)
        with config(dtype="float64"):
            exact = Gram(Gaussian(sigma=d**0.5), X).dense()
        with config(**device, dtype=dtype):
            K = device_rows(Gram(Gaussian(sigma=d**0.5), X))
        assert K is not None
        index = np.array([3, 699, 0, 11])
        out = K.empty(9, 704)
        K.write_rows(index, (5, 700), out, np.array([8, 1, 0, 4]))
        rows = np.abs(out[[8, 1, 0, 4], 5:700].cpu().numpy() - exact[index, 5:]).max()
        block = np.abs(K.block(index) - exact[np.ix_(index, index)]).max()
        print(f"{d} columns, {dtype}: rows off by {rows:.2g}, block by {block:.2g}, stated {K.error:.2g}")
        assert max(rows, block) < (1e-5 if dtype == "float32" else 1e-12)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--backend", default=None, help="torch, to see the device's way on a CPU")
    parser.add_argument("--check", action="store_true", help="small versions; nothing is written")
    parser.add_argument("--limit", type=float, default=150.0, help="seconds after which no other fit starts")
    parser.add_argument(
        "--parts", nargs="+", default=["machines", "two", "ten", "rounds"],
        choices=["machines", "two", "ten", "rounds"],
    )  # fmt: skip
    parser.add_argument("--sizes", type=int, nargs="+", default=list(_SIZES))
    options = parser.parse_args()
    clock = Clock(options.limit)
    device = {"device": options.device, "backend": options.backend}
    sizes = [5000] if options.check else options.sizes
    parts: dict[str, Callable[[], Table]] = {
        "machines": lambda: machines(device),
        "two": lambda: classifiers(2, sizes, device, clock),
        "ten": lambda: classifiers(10, [12_000] if options.check else sizes, device, clock),
        "rounds": lambda: rounds(max(sizes), device),
    }
    tables = []
    first = (lambda: check(device), lambda: warm_up(device))
    for step in first:
        try:
            step()
        except Exception:
            traceback.print_exc()
    for name in options.parts:
        if clock.is_over:
            print(f"the time is over before {name!r}")
            continue
        try:
            table = parts[name]()
            if name != "rounds":
                tables.append(table)
        except Exception:
            traceback.print_exc()
    if tables and not options.check:
        write("gpu_svm", *tables)


if __name__ == "__main__":
    main()
