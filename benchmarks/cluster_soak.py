"""Fits for some time, with a worker killed every so often: nothing is lost, and no process grows.

Run with ``python -m benchmarks.cluster_soak --minutes 30 --every 60``; it needs ``mercer[dask]``. Fits on
landmarks and searches of kernels take turns, and each has to give the bits of the first, made by threads. The
phase in which a worker dies changes from one death to the next. Memory of the client, which is also the
scheduler, and of workers is recorded after each.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
import threading
import time
from itertools import cycle

import numpy as np
import psutil

from benchmarks._timing import Table, write
from mercer import Gaussian, KernelRidge, config
from mercer.selection import AutoKernelRegressor

#: what a worker is busy with when it dies, by the names of tasks
PHASES = ("mercer-diagonal", "mercer-square", "mercer-pass", "mercer-kernel")
_PATIENCE = 30.0  # seconds for such a task to come; after these any worker dies


def memory(pid: int) -> float:
    """MiB that a process holds."""
    try:
        return psutil.Process(pid).memory_info().rss / 2**20
    except psutil.NoSuchProcess:
        return 0.0


class Workers:
    """Processes without a nanny, as a pod or a batch job is: who dies is replaced by a new one."""

    def __init__(self, scheduler: str, count: int) -> None:
        self._scheduler, self._names = scheduler, (f"worker-{i}" for i in itertools.count())
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        for _ in range(count):
            self._start()

    def _start(self) -> None:
        name = next(self._names)
        command = (sys.executable, "-m", "distributed.cli.dask_worker", self._scheduler, "--no-nanny")
        options = ("--nthreads", "1", "--host", "127.0.0.1", "--name", name, "--no-dashboard")
        self.processes[name] = subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL)

    def replace(self, name: str) -> None:
        dead = self.processes.pop(name)
        dead.kill()
        dead.wait()
        self._start()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error: object) -> None:
        for process in self.processes.values():
            process.terminate()
            process.wait()


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

    def by_landmarks() -> np.ndarray:
        return KernelRidge(kernel=Gaussian(2.0), alpha=0.01, landmarks=300).fit(X, y).expansion_.coef

    def by_search() -> np.ndarray:
        return AutoKernelRegressor(["rbf", "laplacian"]).fit(X[:600], y[:600]).expansion_.coef

    works = (by_landmarks, by_search)
    expected, over = [work() for work in works], threading.Event()
    deaths = dict.fromkeys((*PHASES, "other"), 0)
    local = {"n_workers": 0, "dashboard_address": "127.0.0.1:0", "host": "127.0.0.1"}
    with (
        LocalCluster(**local) as cluster,
        Client(cluster) as client,
        Workers(cluster.scheduler_address, options.workers) as own,
        config(cluster=client),
    ):
        client.wait_for_workers(options.workers)

        def kill() -> None:
            for phase in cycle(PHASES):
                if over.wait(options.every):
                    return
                end = time.monotonic() + _PATIENCE
                while not (busy := at_work(phase)) and time.monotonic() < end:
                    if over.wait(0.005):
                        return
                alive = [worker.name for worker in list(cluster.scheduler.workers.values())]
                if len(alive) > 1:  # Somebody has to be there.
                    own.replace(next(iter(busy), alive[0]))
                    deaths[phase if busy else "other"] += 1

        def at_work(phase: str) -> set[str]:
            return {
                worker.name
                for worker in list(cluster.scheduler.workers.values())
                if any(phase in str(task.key) for task in list(worker.processing))
            }

        thread = threading.Thread(target=kill, daemon=True)
        thread.start()
        end, fits, held = time.monotonic() + 60 * options.minutes, 0, []
        while time.monotonic() < end:
            turn = fits % len(works)
            assert np.array_equal(works[turn](), expected[turn]), f"fit {fits} differs"
            fits += 1
            workers = [memory(process.pid) for process in list(own.processes.values())]
            held.append((memory(os.getpid()), max(workers, default=0.0), len(cluster.scheduler.tasks)))
            if fits % 10 == 1:
                client_mib, worker_mib, tasks = held[-1]
                print(
                    f"{fits} fits, {sum(deaths.values())} deaths: client {client_mib:.0f} MiB, largest "
                    f"worker {worker_mib:.0f} MiB, {tasks} tasks known to the scheduler",
                    flush=True,
                )
        over.set()
        thread.join()
    early, late = held[: max(1, len(held) // 4)], held[-max(1, len(held) // 4) :]
    title = (
        f"{options.minutes:g} minutes of fits, a worker of {options.workers} killed every {options.every:g} s"
    )
    table = Table(title, "what", "number")
    table.add("fits on landmarks, and searches, all of the same bits", fits)
    for phase, count in deaths.items():
        table.add(f"workers killed in {phase.removeprefix('mercer-')}", count)
    for i, who in enumerate(("client and scheduler", "largest worker")):
        for part, name in ((early, "first"), (late, "last")):
            median = float(np.median([row[i] for row in part]))
            table.add(f"{who}, MiB, {name} quarter (median)", f"{median:.0f}")
    table.add("tasks known to the scheduler at the end", held[-1][2])
    write("cluster_soak", table)


if __name__ == "__main__":
    main()
