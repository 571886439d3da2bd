"""A cluster of three processes on this machine, ways to kill some of it, and a limit of time for tests."""

import os
import signal
import threading
import time
from contextlib import contextmanager

import dask
import numpy as np
import pytest
from dask.distributed import Client, LocalCluster

#: seconds after which a test that hangs is ended
LIMIT = 240


@pytest.fixture(autouse=True)
def bounded():
    """A test that waits for ever fails instead."""

    def late(number, frame):
        raise TimeoutError(f"the test took more than {LIMIT} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LIMIT)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session")
def three():
    """LocalCluster of three worker processes; those that are killed come again."""
    with (
        dask.config.set({"distributed.worker.daemon": False}),
        LocalCluster(
            n_workers=3,
            processes=True,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            host="127.0.0.1",
        ) as cluster,
    ):
        yield cluster


@pytest.fixture
def client(three):
    """A client of three workers, which is the active one; it leaves no task behind."""
    three.scale(3)
    with Client(three) as client:
        try:
            client.wait_for_workers(3, timeout=20)
        except TimeoutError:  # A nanny gives up when its worker is killed while it starts: all begin anew.
            three.scale(0)
            three.scale(3)
            client.wait_for_workers(3, timeout=60)
        yield client


@pytest.fixture
def computed(three):
    """``computed("mercer-kernel")``: the keys of such tasks that workers have done since the test began."""
    before = {key for key, *_ in three.scheduler.transition_log}

    def find(prefix):
        done = {key for key, _, end, *_ in three.scheduler.transition_log if end == "memory"}
        return [key for key in done - before if str(key).startswith(prefix)]

    return find


@pytest.fixture
def data():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(12_000, 4))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=len(X))


@pytest.fixture
def sent(client):
    """``sent(work)``: the bytes of all messages that client, scheduler and workers write meanwhile."""

    def count():
        from distributed.comm import tcp

        if not hasattr(tcp, "written"):
            tcp.written, write = 0, tcp.TCP.write

            async def counted(*args, **options):
                n = await write(*args, **options)
                tcp.written += n
                return n

            tcp.TCP.write = counted
        return tcp.written

    def everybody():
        return count() + sum(client.run(count).values())

    def find(work):
        before = everybody()
        work()
        return everybody() - before

    return find


def kill(nanny):
    os.kill(nanny.pid, signal.SIGKILL)


@pytest.fixture
def killing(three):
    """``with killing("mercer-pass", 2) as dead``: so many workers are killed while such a task runs."""

    @contextmanager
    def run(prefix, count=1):
        dead, over = [], threading.Event()

        def watch():
            while not over.is_set() and not dead:
                busy = {
                    address
                    for address, worker in list(three.scheduler.workers.items())
                    for task in list(worker.processing)
                    if prefix in str(task.key)
                }
                if busy:
                    nannies = [n for n in three.workers.values() if n.worker_address and n.pid]
                    nannies.sort(key=lambda nanny: nanny.worker_address not in busy)
                    for nanny in nannies[:count]:
                        kill(nanny)
                        dead.append(nanny.worker_address)
                time.sleep(0.001)

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield dead
        finally:
            over.set()
            thread.join()

    return run


@pytest.fixture
def interrupting(three):
    """``with interrupting("mercer-pass", 2)``: Ctrl-C comes so many times while such a task is there.

    Where none comes, or the block ends before, no signal is sent to the tests after it.
    """

    @contextmanager
    def run(prefix, times=1):
        over = threading.Event()

        def interrupt():
            for _ in range(times):
                while not any(prefix in str(key) for key in list(three.scheduler.tasks)):
                    if over.wait(0.01):
                        return
                os.kill(os.getpid(), signal.SIGINT)
                if over.wait(0.5):  # Two signals at once are one.
                    return

        thread = threading.Thread(target=interrupt, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    return run
