"""Fits for some time, with a worker killed every so often: nothing is lost, and no process grows.

Run with ``python -m benchmarks.cluster_soak --minutes 30 --every 60``; it needs ``mercer[dask]``. Every fit
has to give the bits of the first, made by threads. Memory of the client, which is also the scheduler, and of
workers is recorded after each.
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time

import numpy as np
import psutil

from mercer import Gaussian, KernelRidge, config


def memory(pid: int) -> float:
    """MiB that a process holds."""
    try:
        return psutil.Process(pid).memory_info().rss / 2**20
    except psutil.NoSuchProcess:
        return 0.0


def main() -> None:
    from dask.distributed import Client, LocalCluster

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--every", type=float, default=60.0, help="seconds between two deaths")
    parser.add_argument("--workers", type=int, default=3)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 5))
    y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=len(X))

    def fit() -> np.ndarray:
        return KernelRidge(kernel=Gaussian(2.0), alpha=0.01, landmarks=300).fit(X, y).expansion_.coef

    expected, deaths, over = fit(), 0, threading.Event()
    local = {
        "n_workers": options.workers,
        "threads_per_worker": 1,
        "dashboard_address": "127.0.0.1:0",
        "host": "127.0.0.1",
    }
    with LocalCluster(**local) as cluster, Client(cluster) as client, config(cluster=client):

        def kill() -> None:
            nonlocal deaths
            while not over.wait(options.every):
                # A nanny whose process dies while it starts gives up: only those that have begun are killed.
                nannies = list(cluster.workers.values())
                alive = [nanny for nanny in nannies if nanny.worker_address in cluster.scheduler.workers]
                if len(alive) > 1:
                    os.kill(alive[deaths % len(alive)].pid, signal.SIGKILL)
                    deaths += 1

        thread = threading.Thread(target=kill, daemon=True)
        thread.start()
        end, fits, held = time.monotonic() + 60 * options.minutes, 0, []
        while time.monotonic() < end:
            assert np.array_equal(fit(), expected), f"fit {fits} differs"
            fits += 1
            workers = [memory(nanny.pid) for nanny in cluster.workers.values() if nanny.pid]
            held.append((memory(os.getpid()), max(workers, default=0.0), len(cluster.scheduler.tasks)))
            if fits % 10 == 1:
                client_mib, worker_mib, tasks = held[-1]
                print(
                    f"{fits} fits, {deaths} deaths: client {client_mib:.0f} MiB, largest worker "
                    f"{worker_mib:.0f} MiB, {tasks} tasks known to the scheduler",
                    flush=True,
                )
        over.set()
        thread.join()
    early, late = held[: max(1, len(held) // 4)], held[-max(1, len(held) // 4) :]
    for i, who in enumerate(("client and scheduler", "largest worker")):
        first, last = (float(np.median([row[i] for row in part])) for part in (early, late))
        print(f"{who}: {first:.0f} MiB in the first quarter, {last:.0f} in the last (medians)")
    print(f"{fits} fits, all of the same bits; {deaths} workers killed")


if __name__ == "__main__":
    main()
