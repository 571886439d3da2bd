"""The same fits on two cores, on four, and on all that there are: more cores must not make anything slower.

Run with ``python -m benchmarks.cores``, on a machine that does nothing else and has more than two cores.
Each column is a process of its own that is kept on so many cores before it imports anything. The last
column is the time on two cores divided by that on all.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np

from benchmarks._timing import Table, write

_REPEATS = 5
_LONG = 5.0  # Fits that take more seconds are timed once: noise is small beside them.


def cases() -> dict[str, Callable[[], object]]:
    """What is timed, by name: the fits of ``neighbours``, and larger ones that all cores can share."""
    from benchmarks.neighbours import cases, smooth
    from mercer import SVC, Gaussian, Gram, KernelLogisticRegression, KernelRidge

    large, target = smooth(20_000, 20)
    labels = target > np.median(target)
    return cases() | {
        "Gram 10k × 20": lambda: Gram(Gaussian(1.0), large[:10_000]).dense(),
        "SVC 20k × 20": lambda: SVC(C=10).fit(large, labels),
        "ridge 20k × 20, auto": lambda: KernelRidge(0.1).fit(large, target),
        "ridge 20k × 20, Cholesky": lambda: KernelRidge(0.1, solver="cholesky").fit(large, target),
        "ridge 20k × 20, mixed": lambda: KernelRidge(0.1, solver="mixed").fit(large, target),
        "logistic 5k × 20": lambda: KernelLogisticRegression().fit(large[:5000], labels[:5000]),
        "ridge 20k × 20, 1,000 landmarks": lambda: KernelRidge(0.1, landmarks=1000).fit(large, target),
        "logistic 20k × 20, 1,000 landmarks": lambda: KernelLogisticRegression(landmarks=1000).fit(
            large, labels
        ),
    }


def measure(only: str) -> dict[str, tuple[float, float]]:
    """Median seconds by the clock, and of all cores, of each case in this process."""
    from benchmarks.neighbours import timed

    found = {}
    for name, work in cases().items():
        if only in name:
            first, _ = timed(work)  # it compiles
            repeats = _REPEATS if first < _LONG else 1
            found[name] = tuple(np.median([timed(work) for _ in range(repeats)], axis=0).tolist())
            print(name, *found[name], file=sys.stderr, flush=True)
    return found


def kept_on(cores: int, only: str) -> dict[str, tuple[float, float]]:
    """The same in a process of its own on so many cores."""
    mask = sorted(os.sched_getaffinity(0))[:cores]
    script = (
        f"import os; os.sched_setaffinity(0, {mask}); import json; from benchmarks.cores import measure;"
        f" print(json.dumps(measure({only!r})))"
    )
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    everything = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cores", type=int, nargs="+", default=sorted({2, 4, everything}))
    parser.add_argument("--only", default="", help="rows whose name holds this text")
    options = parser.parse_args()
    found = {cores: kept_on(cores, options.only) for cores in options.cores}
    table = Table(
        "Seconds of a fit, by cores",
        *("fit", *(f"{cores} core{'s' * (cores > 1)}" for cores in options.cores)),
        *("CPU s on all", "two ÷ all"),
    )
    most = options.cores[-1]
    for name, (least, spent) in found[most].items():
        seconds = [found[cores][name][0] for cores in options.cores]
        two = found[2][name][0] if 2 in found else float("nan")
        table.add(name, *seconds, spent, f"{two / least:.2f}")
    write("cores", table)


if __name__ == "__main__":
    main()
