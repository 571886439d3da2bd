"""How products, passes, predictions and fits scale with threads, beside what the machine itself allows.

Run with ``python -m benchmarks.scaling``, on a machine that does nothing else. Each figure is the speed on so
many threads divided by that on one. The row "as processes" is the ceiling: so many processes do the product
at the same time, each by itself on one thread, and share nothing but the machine, its memory and its clock.
No program scales better than that.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from benchmarks._timing import Table, write

_REPEATS = 3


def cases() -> dict[str, Callable[[], object]]:
    """What is timed, by name. Nothing is computed before it is asked for."""
    from mercer import SVC, Gaussian, Gram, KernelRidge, Matern, config
    from mercer.gram.blocks import RowBlocks
    from mercer.solvers.landmarks.inner import Weighted

    rng = np.random.default_rng(0)
    X, V = rng.normal(size=(40_000, 20)), rng.normal(size=(40_000, 1))
    places, coef = rng.normal(size=(400_000, 3)), rng.normal(size=(3000, 1))
    images = _images(rng, 12_000)
    labels = images[:, :50].sum(axis=1) > np.median(images[:, :50].sum(axis=1))
    model = KernelRidge(1.0, landmarks=2000).fit(X[:8000], V[:8000, 0])

    def product(dtype: str) -> object:
        with config(dtype=dtype):
            return Gram(Gaussian(sigma=4.0), X[:20_000], cache=0) @ V[:20_000]

    def one_pass(dtype: str) -> object:
        with config(dtype=dtype):
            K = RowBlocks(Matern(1.5, length_scale=1.0), places, places[:3000])
            return K.pass_over(coef, Weighted(np.ones((len(places), 1))))

    return {
        "K @ v, 20k × 20, float64": lambda: product("float64"),
        "K @ v, 20k × 20, float32": lambda: product("float32"),
        "pass, 400k × 3, M = 3,000, float64": lambda: one_pass("float64"),
        "pass, 400k × 3, M = 3,000, float32": lambda: one_pass("float32"),
        "predict, 40k × 20, 2,000 anchors": lambda: model.predict(X),
        "SVC 12k × 784": lambda: SVC(C=10.0).fit(images, labels),
    }


def _images(rng: np.random.Generator, n: int) -> np.ndarray:
    """Rows of 784 numbers in [0, 1] that lie near thirty directions, as pictures do."""
    parts = rng.normal(size=(n, 30)) @ rng.normal(size=(30, 784)) / 6
    return np.clip(0.5 + parts + 0.05 * rng.normal(size=(n, 784)), 0.0, 1.0)


def measure(names: list[str], threads: int) -> dict[str, float]:
    """Median seconds of some cases in this process."""
    from mercer import config

    found, all_cases = {}, cases()
    with config(threads=threads):
        for name in names:
            all_cases[name]()
            seconds = []
            for _ in range(_REPEATS):
                began = time.perf_counter()
                all_cases[name]()
                seconds.append(time.perf_counter() - began)
            found[name] = float(np.median(seconds))
            print(threads, name, f"{found[name]:.3f}", file=sys.stderr, flush=True)
    return found


def _start(names: list[str], threads: int) -> subprocess.Popen[str]:
    call = f"json.dumps(measure({names!r}, {threads}))"
    script = f"import json; from benchmarks.scaling import measure; print({call})"
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)


def _found(process: subprocess.Popen[str]) -> dict[str, float]:
    text = process.communicate()[0]
    if process.returncode:
        raise RuntimeError(f"a process ended with {process.returncode}: its error is printed above")
    return json.loads(text.splitlines()[-1])


def main() -> None:
    everything = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    steps = [n for n in (1, 2, 4, 8, 16) if n <= everything]
    parser.add_argument("--threads", type=int, nargs="+", default=steps)
    parser.add_argument("--only", default="", help="rows whose name holds this text")
    options = parser.parse_args()
    names = [name for name in cases() if options.only in name]
    found = {threads: _found(_start(names, threads)) for threads in options.threads}
    first = options.threads[0]
    table = Table(
        f"Speed by threads, that on {first} being 1",
        *("work", f"s on {first}", *(str(threads) for threads in options.threads)),
    )
    ceilings = [name for name in names if name.startswith("K @ v")]
    for name in ceilings:
        speeds = []
        for count in options.threads:
            together = [_found(one) for one in [_start([name], 1) for _ in range(count)]]
            speeds.append(count * found[1][name] / float(np.mean([one[name] for one in together])))
        table.add(f"{name}, as processes", found[1][name], *(f"{speed:.2f}" for speed in speeds))
    for name in names:
        seconds = [found[threads][name] for threads in options.threads]
        table.add(name, seconds[0], *(f"{seconds[0] / each:.2f}" for each in seconds))
    write("scaling", table)


if __name__ == "__main__":
    main()
