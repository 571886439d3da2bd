"""A pass over blocks of rows: two workers of one thread each against one process with two threads.

Run with ``python -m benchmarks.cluster``; it needs ``mercer[dask]``. Rows are sent before the clock starts,
as a fit does in its first pass. Bytes are those of the loopback interface during a pass, of whoever uses it:
the median, because an idle worker may take a task, and its rows, from one that is late.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np
import psutil

from benchmarks._timing import Table, write
from mercer import Gaussian, config
from mercer.gram.blocks import RowBlocks, groups_of
from mercer.solvers.landmarks.inner import Weighted

ROWS, COLUMNS, LANDMARKS = int(os.environ.get("ROWS", "2000000")), 10, 2000
REPEATS = int(os.environ.get("REPEATS", "9"))


def timed(work: Callable[[], object]) -> tuple[float, int]:
    """Seconds, and bytes that were sent on this machine."""
    sent, began = psutil.net_io_counters(pernic=True)["lo"].bytes_sent, time.perf_counter()
    work()
    return time.perf_counter() - began, psutil.net_io_counters(pernic=True)["lo"].bytes_sent - sent


def main() -> None:
    from dask.distributed import Client, LocalCluster

    rng = np.random.default_rng(0)
    X, V = rng.normal(size=(ROWS, COLUMNS)), rng.normal(size=(LANDMARKS, 1))
    Z, kernel, inner = X[:LANDMARKS].copy(), Gaussian(3.0), Weighted(np.ones((ROWS, 1)))
    local = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "host": "127.0.0.1"}
    with LocalCluster(**local) as cluster, Client(cluster) as client:
        with config(threads=2):
            threads = RowBlocks(kernel, X, Z)
            threads.some(np.arange(20_000)).pass_over(V, Weighted(np.ones((20_000, 1))))  # compiled
        with config(cluster=client):
            workers = RowBlocks(kernel, X, Z)
        # The diagonal takes the rows in the same groups: they are there, and the code is compiled.
        sending, sent = timed(workers.diag)
        times: dict[str, list[float]] = {"threads": [], "workers": []}
        found: list[np.ndarray] = []
        moved: list[int] = []

        def pass_over(K: RowBlocks) -> None:
            found.append(K.pass_over(V, inner)[0])

        for _ in range(REPEATS):
            with config(threads=2):
                times["threads"].append(timed(lambda: pass_over(threads))[0])
            seconds, bytes_sent = timed(lambda: pass_over(workers))
            times["workers"].append(seconds)
            moved.append(bytes_sent)
    assert all(np.array_equal(total, found[0]) for total in found), "the bits differ"
    one, two = (float(np.median(times[who])) for who in ("threads", "workers"))
    tasks = len(groups_of(ROWS, LANDMARKS))
    size = f"{ROWS:,} × {COLUMNS}, {LANDMARKS:,} landmarks, float64"
    title = f"A pass on two cores: {size}, medians of {REPEATS} in turns, equal bits"
    table = Table(title, "who", "seconds", "speed", "MiB sent in the pass")
    table.add("one process, two threads", one, 1.0, "–")
    table.add("two workers of one thread", two, one / two, float(np.median(moved)) / 2**20)
    table.add(f"of that: sums of {tasks} tasks", "–", "–", 8 * LANDMARKS * tasks / 2**20)
    table.add("sending the rows, once", sending, "–", sent / 2**20)
    write("cluster", table)


if __name__ == "__main__":
    main()
