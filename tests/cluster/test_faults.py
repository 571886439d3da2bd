"""Workers die, blocks fail, the scheduler goes, Ctrl-C comes: the same bits, or a sentence."""

import asyncio
import gc
import importlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import weakref
from contextlib import suppress

import dask
import dask.array as da
import numpy as np
import pytest
from dask.distributed import Client, LocalCluster, Security

from mercer import FromFunction, Gaussian, KernelRidge, config
from mercer.cluster import DaskRows
from mercer.cluster import client as cluster_client
from mercer.cluster.client import quiet_graphs, require_workers
from mercer.cluster.runs import Run, in_turn
from mercer.cluster.trials import each
from mercer.errors import ClusterError, InputError, InputTypeError, MemoryBudgetError
from mercer.gram.block_tasks import lacks
from mercer.gram.blocks import RowBlocks
from mercer.solvers import control


def model(**options):
    return KernelRidge(kernel=Gaussian(1.0), alpha=0.1, landmarks=300, **options)


@pytest.fixture(scope="module")
def alone():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(12_000, 4))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=len(X))
    return model().fit(X, y)


def same(one, other):
    assert np.array_equal(one.expansion_.coef, other.expansion_.coef)
    assert one.report_.gap == other.report_.gap


@pytest.mark.parametrize("phase", ["mercer-square", "mercer-pass", "mercer-diagonal"])
def test_a_worker_that_dies_costs_nothing_but_time(client, killing, data, alone, phase):
    X, y = data
    with config(cluster=client), killing(phase) as dead:
        found = model().fit(X, y)
    assert dead
    same(alone, found)


def test_all_workers_but_one_die_in_a_pass(client, killing, data, alone):
    X, y = data
    with killing("mercer-pass", 2) as dead:
        found = model().fit(da.from_array(X, chunks=(1000, 4)), y)
    assert len(dead) == 2
    same(alone, found)


def test_all_workers_die_in_a_pass_and_others_come(client, killing, data, alone):
    """Dask alone gives tasks that prefer a worker to none that comes after the last one went."""
    X, y = data
    with config(cluster=client), killing("mercer-pass", 3) as dead:
        found = model().fit(X, y)
    assert len(dead) == 3
    same(alone, found)


def test_a_worker_that_dies_while_landmarks_are_taken(client, three, data, alone, monkeypatch):
    """The rows lie on the workers; one dies just before they are asked for."""
    X, y = data
    points = da.from_array(X, chunks=(1000, 4)).persist()
    bring, dead = DaskRows.__getitem__, []

    def dying(self, index):
        if not dead and len(np.arange(len(X))[index]) == 300:  # the landmarks
            nanny = next(n for n in three.workers.values() if n.worker_address and n.pid)
            os.kill(nanny.pid, signal.SIGKILL)
            dead.append(nanny)
        return bring(self, index)

    monkeypatch.setattr(DaskRows, "__getitem__", dying)
    found = model().fit(points, y)
    assert dead
    same(alone, found)


def test_a_worker_that_dies_while_predictions_are_computed(client, killing, data, alone):
    X, _ = data
    expected = np.concatenate([alone.predict(X[i : i + 500]) for i in range(0, len(X), 500)])
    lazy = alone.predict(da.from_array(X, chunks=(500, 4)))
    with killing("mercer-predict") as dead:
        found = lazy.compute()
    assert dead and np.array_equal(found, expected)


def test_a_worker_may_come_late(client, three, data, alone):
    X, y = data
    three.scale(1)

    def tell(event):
        if event["done"] == 2:
            three.scale(3)

    with config(cluster=client):
        same(alone, model(progress=tell).fit(X, y))


# --- what cannot be mended -------------------------------------------------------------------------------


def failing(fail):
    """An inner function that fails at row 5000."""

    class Inner:
        def __init__(self, start, stop):
            self.start, self.stop = start, stop

        def __call__(self, rows, F):
            if self.start + rows.start <= 5000 < self.start + rows.stop:
                fail()
            return F, 0.0

        def part(self, rows):
            return Inner(rows.start, rows.stop)

    return Inner(0, 0)


def test_a_block_that_always_fails_is_named_with_its_cause(client, data):
    def fail():
        raise ZeroDivisionError("poisoned")

    X, _ = data
    words = r"block 1 of pass 1, rows 4,096 to 8,191, failed on the cluster: ZeroDivisionError: poisoned"
    with config(cluster=client), pytest.raises(ClusterError, match=words):
        RowBlocks(Gaussian(1.0), X, X[:50]).pass_over(np.ones((50, 1)), failing(fail))


def test_a_block_that_kills_every_worker_is_named(client, three, data, monkeypatch):
    X, _ = data
    monkeypatch.setattr(three.scheduler, "allowed_failures", 0)
    words = "block 1 of pass 1, .* was lost with every worker that computed it, 2 times over"
    with (
        config(cluster=client),
        dask.config.set({"mercer.sendings": 1}),
        pytest.raises(ClusterError, match=words),
    ):
        RowBlocks(Gaussian(1.0), X, X[:50]).pass_over(np.ones((50, 1)), failing(lambda: os._exit(1)))


def test_workers_of_two_kinds_are_refused_before_the_fit(client, data):
    """One of three cannot compile, which the backend that is asked for needs."""

    X, y = data
    mixed = next(iter(client.nthreads()))

    def forbid():
        from mercer.runtime import native

        native.compiles_before, native.compiles = native.compiles, lambda: False

    def allow():
        from mercer.runtime import native

        native.compiles = native.compiles_before

    client.run(forbid, workers=[mixed])
    try:
        words = (
            rf"1 of 3 workers cannot compute with .* backend='numba', such as {mixed} \(backend='numba' comp"
        )
        with config(cluster=client, backend="numba"), pytest.raises(ClusterError, match=words):
            model().fit(X, y)
    finally:
        client.run(allow, workers=[mixed])
    with config(cluster=client, backend="numba"):
        model().fit(X[:500], y[:500])


def test_what_workers_report_of_their_devices():
    class Reporting:
        def __init__(self, *answers):
            self.answers = dict(enumerate(answers))

        def run(self, function, *arguments, **options):
            assert function is lacks and arguments == ("cuda", None)
            return self.answers

    with config(device="cuda"):
        require_workers(Reporting(None, None), lacks)
        with pytest.raises(
            ClusterError, match=r"2 of 3 workers cannot .*'cuda' .* such as 1 \(no GPU\): take a"
        ):
            require_workers(Reporting(None, "no GPU", "none"), lacks)
    require_workers(None, lacks)  # Nobody is asked for the settings that everybody has.


def test_a_worker_that_is_too_small_is_named_before_the_fit(client, three, data, monkeypatch):
    X, y = data
    address, worker = next(iter(three.scheduler.workers.items()))
    monkeypatch.setattr(worker, "memory_limit", 20_000_000)
    words = (
        rf"the worker {address} has .* for 1 threads, and needs .*: take fewer landmarks, or larger workers"
    )
    with config(cluster=client), pytest.raises(MemoryBudgetError, match=words):
        model().fit(X, y)


def certificate(folder):
    """A self-signed one, and its key."""
    found = folder / "certificate.pem", folder / "key.pem"
    line = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=mercer"]
    subprocess.run([*line, "-out", found[0], "-keyout", found[1]], check=True, capture_output=True)
    return map(str, found)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_a_cluster_that_speaks_tls(tmp_path, data, alone):
    X, y = data
    made, key = certificate(tmp_path)
    of = {
        f"tls_{who}_{what}": file
        for who in ("client", "scheduler", "worker")
        for what, file in (("cert", made), ("key", key))
    }
    security = Security(require_encryption=True, tls_ca_file=made, **of)
    local = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}
    with (
        LocalCluster(**local, protocol="tls://", security=security) as cluster,
        Client(cluster, security=security, set_as_default=False) as client,
        config(cluster=client),
    ):
        assert client.scheduler.address.startswith("tls://")
        same(alone, model().fit(X, y))


def test_a_cluster_without_workers_is_given_up(client, three, data):
    X, _ = data
    three.scale(0)
    while client.nthreads():
        time.sleep(0.05)
    impatient = dask.config.set({"mercer.workers-timeout": 1})
    words = "no worker for 1 s: start some"
    with config(cluster=client), impatient, pytest.raises(ClusterError, match=words):
        RowBlocks(Gaussian(1.0), X, X[:50]).diag()


def test_dask_rows_are_not_waited_for_without_workers(client, three, data):
    """Not for their values, and not for the sizes of their chunks."""
    X, y = data
    points = da.from_array(X, chunks=(5000, 4))
    three.scale(0)
    while client.nthreads():
        time.sleep(0.05)
    for rows in (points, points[points[:, 0] > -100]):
        with (
            dask.config.set({"mercer.workers-timeout": 1}),
            pytest.raises(ClusterError, match="no worker for"),
        ):
            model().fit(rows, y)


def test_rows_that_are_lost_for_good_end_the_fit(client, three, data):
    """What was scattered is lost with its worker, and Dask cancels what needs it, as often as it is asked."""
    X, y = data
    place = next(iter(client.nthreads()))
    sent = client.scatter(X, workers=[place])
    points = da.from_delayed(dask.delayed(sent), X.shape, X.dtype)
    os.kill(next(n for n in three.workers.values() if n.worker_address == place).pid, signal.SIGKILL)
    while place in client.nthreads():
        time.sleep(0.05)
    with dask.config.set({"mercer.sendings": 1}), pytest.raises(ClusterError, match="the reading of rows"):
        model().fit(points, y)


def test_reading_that_fails_is_tried_again(client, data, tmp_path):
    X, y = data

    def read(part):
        place = tmp_path / "tried"
        if not place.exists():
            place.touch()
            raise OSError("the storage is busy")
        return part

    points = da.from_array(X, chunks=(6000, 4)).map_blocks(read, dtype=X.dtype, meta=X[:0])
    assert model().fit(points, y).expansion_.coef.shape == (300,)


def test_what_is_cancelled_by_others_is_not_sent_for_ever(client):
    def submit(numbers):
        future = client.submit(time.sleep, 60, pure=False)
        client.cancel(future)
        return {0: future}

    words = "the nap was cancelled on the cluster, 2 times over"
    run = Run(client, submit, lambda g: "the nap", lambda g, found: None)
    with dask.config.set({"mercer.sendings": 1}), pytest.raises(ClusterError, match=words):
        run.go(in_turn(1))


def test_nothing_that_was_sent_stays_on_the_client(client, rng):
    """Dask's own list of messages had the rows of the last fits."""
    X = rng.normal(size=(9000, 3))
    with config(cluster=client):
        K = RowBlocks(Gaussian(1.0), X, X[:50].copy())
        K.values(np.ones((50, 1)))
    alive = weakref.ref(X)
    del K, X
    gc.collect()
    assert alive() is None


def test_a_client_that_does_not_wait_is_refused(three, data):
    X, y = data

    async def fits():
        async with Client(three.scheduler_address, asynchronous=True) as client:
            with pytest.raises(InputError, match="is asynchronous here, and mercer waits for its tasks"):
                model().fit(da.from_array(X), y)
            with config(cluster=client), pytest.raises(InputError, match="is asynchronous here"):
                model().fit(X, y)
            with config(cluster=client), pytest.raises(InputError, match="is asynchronous here"):
                each("power", pow, (2,), [3])

    asyncio.run(fits())


def test_a_task_that_has_tasks_does_them_itself():
    """Where workers are threads of this process, they see its settings, and would wait for themselves."""

    def outer(base, number):
        return each("power", pow, (base,), [number, number])

    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        config(cluster=client)
        try:
            assert each("outer", outer, (2,), [3, 4]) == [[8, 8], [16, 16]]
        finally:
            config(cluster=None)


def test_a_client_that_was_closed_is_named(three, data):
    X, y = data
    with Client(three, set_as_default=False) as client:
        pass
    for fit in (lambda: model().fit(X, y), lambda: each("power", pow, (2,), [3])):
        with (
            config(cluster=client),
            pytest.raises(ClusterError, match=r"the connection to the scheduler .* lost"),
        ):
            fit()


@pytest.mark.filterwarnings("ignore:FromFunction")
def test_a_kernel_that_cannot_be_sent(client, data):
    lock = threading.Lock()

    def value(x, y):
        with lock:
            return float(x @ y)

    with (
        config(cluster=client),
        pytest.raises(InputTypeError, match=r"cannot be sent to a cluster \(cannot pickle"),
    ):
        RowBlocks(FromFunction(value), data[0][:20], data[0][:2]).diag()


@pytest.mark.filterwarnings("ignore:FromFunction")
def test_a_module_that_workers_lack_is_named(client, data, tmp_path, monkeypatch):
    (tmp_path / "only_here.py").write_text("def value(x, y):\n    return float(x @ y)\n")
    monkeypatch.syspath_prepend(tmp_path)
    kernel = FromFunction(importlib.import_module("only_here").value)
    words = "block 0 of .* failed on the cluster: ModuleNotFoundError: No module named 'only_here'"
    with config(cluster=client), pytest.raises(ClusterError, match=words):
        RowBlocks(kernel, data[0][:20], data[0][:2]).diag()


@pytest.mark.parametrize(
    "address", ["here", "tcp://127.0.0.1:1", "tcp://nowhere.invalid:1", "tls://127.0.0.1:9"]
)
def test_an_address_without_a_scheduler(address, monkeypatch):
    monkeypatch.setattr(cluster_client, "_CONNECTING", 0.5)
    with pytest.raises(InputError, match=r"there is no scheduler of Dask at '.*' \(.+\): pass the address"):
        cluster_client.connected(address)


def test_two_threads_leave_the_settings_of_dask_as_they_were():
    name = "distributed.admin.large-graph-warning-threshold"
    before, first, second = dask.config.get(name), quiet_graphs(), quiet_graphs()
    first.__enter__(), second.__enter__()
    first.__exit__(None, None, None)
    assert dask.config.get(name) == "1 TiB"
    second.__exit__(None, None, None)
    assert dask.config.get(name) == before


def nothing_left(three, prefix):
    """The scheduler hears of it when it has time."""
    for _ in range(300):
        if not (left := [key for key in list(three.scheduler.tasks) if prefix in str(key)]):
            break
        time.sleep(0.1)
    assert not left


def test_an_interrupted_client_leaves_nothing_behind(client, three, data, interrupting):
    """Neither tasks nor rows, while the exception that holds them all is kept, as a shell keeps it."""

    def slow():
        time.sleep(30)

    X, _ = data
    with (
        config(cluster=client),
        interrupting("mercer-pass"),
        pytest.raises(KeyboardInterrupt) as kept,
    ):
        RowBlocks(Gaussian(1.0), X, X[:50]).pass_over(np.ones((50, 1)), failing(slow))
    nothing_left(three, "mercer")
    del kept


def started(folder, name):
    """A scheduler and a worker in processes of their own, and where the scheduler is."""
    place = folder / name
    common = ["--scheduler-file", str(place), "--no-dashboard"]
    run = [sys.executable, "-m", "distributed.cli"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = subprocess.Popen(
        [*run[:2], "distributed.cli.dask_scheduler", *common, "--host", "127.0.0.1", "--port", "0"], **quiet
    )
    worker = subprocess.Popen(
        [*run[:2], "distributed.cli.dask_worker", *common, "--host", "127.0.0.1", "--nthreads", "1",
         "--no-nanny", "--death-timeout", "60"], **quiet
    )  # fmt: skip
    while not place.exists():
        assert scheduler.poll() is None, "the scheduler did not start"
        time.sleep(0.05)
    return scheduler, worker, str(place)


def test_without_its_scheduler_a_fit_ends_and_goes_on_elsewhere(tmp_path, data, alone, monkeypatch):
    monkeypatch.setattr(control, "_EVERY", 0.0)
    X, y = data
    options = {"checkpoint": tmp_path / "state"}
    scheduler, worker, place = started(tmp_path, "first")

    def tell(event):
        if event["done"] == 3:
            scheduler.kill()

    client = Client(scheduler_file=place, timeout=20, set_as_default=False)
    try:
        words = r"connection to the scheduler .* is lost.* resume=True"
        with config(cluster=client), pytest.raises(ClusterError, match=words):
            model(**options, progress=tell).fit(X, y)
    finally:
        client._timeout = 0.1  # Nobody waits for the scheduler to come back, and it may be too late to part.
        with suppress(TimeoutError):
            client.close()
        scheduler.kill(), worker.kill()
    scheduler, worker, place = started(tmp_path, "second")
    events = []
    try:
        with Client(scheduler_file=place, timeout=20, set_as_default=False) as client, config(cluster=client):
            found = model(**options, resume=True, progress=events.append).fit(X, y)
    finally:
        scheduler.kill(), worker.kill()
    assert next(event["done"] for event in events if event["done"]) >= 3
    same(alone, found)
