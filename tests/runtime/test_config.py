import ast
import importlib
import math
import os
import re
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.errors import InputError, MemoryBudgetError
from mercer.runtime.config import (
    Settings,
    config,
    format_bytes,
    memory_budget,
    require_memory,
    settings,
    thread_count,
)
from mercer.runtime.machine import _free_memory

# `mercer.config` may also be the name of the class in the package, so the module is asked for by name.
module = importlib.import_module("mercer.runtime.config")

MEMORY = "pass bytes, a size such as '500MiB', '4GiB' or '2GB', or None for half of what is free"


@pytest.fixture(autouse=True)
def untouched(monkeypatch):
    """Every test starts from the defaults and leaves nothing behind."""
    monkeypatch.setattr(module, "_base", Settings())
    monkeypatch.setattr(module, "_process", Settings())
    monkeypatch.setattr(module, "_layers", [])


# --- process-wide and in a block ---------------------------------------------------------------------


def test_defaults():
    assert settings() == Settings(None, "float64", None, "cpu", None, None)


def test_a_call_holds_for_the_process_and_calls_add_up():
    config(threads=3)
    config(dtype="float32")
    assert (settings().threads, settings().dtype) == (3, "float32")
    config(threads=None)
    assert settings() == Settings(dtype="float32")


def test_a_call_reaches_other_threads_and_a_block_does_not():
    seen = []
    config(threads=3)
    with config(threads=5):
        worker = threading.Thread(target=lambda: seen.append(settings().threads))
        worker.start()
        worker.join()
        assert settings().threads == 5
    assert seen == [3]


def test_a_block_ends():
    with config(threads=2) as inside:
        assert inside == settings() == Settings(threads=2)
    assert settings() == Settings()


def test_a_block_ends_after_an_error():
    with pytest.raises(RuntimeError), config(threads=2):
        raise RuntimeError
    assert settings() == Settings()


def test_blocks_nest_and_the_inner_one_wins():
    with config(threads=2, dtype="float32"):
        with config(threads=4):
            assert (settings().threads, settings().dtype) == (4, "float32")
        assert settings().threads == 2


def test_a_call_inside_a_block_holds_for_the_process():
    with config(threads=2):
        config(dtype="float32", threads=7)
        assert (settings().threads, settings().dtype) == (2, "float32")
    assert (settings().threads, settings().dtype) == (7, "float32")


def test_a_kept_object_can_be_entered_again_and_inside_itself():
    two = config(threads=2)
    assert settings().threads == 2
    with two, two:
        assert settings().threads == 2
    assert settings().threads is None
    with two:
        assert settings().threads == 2
    assert settings().threads is None


@pytest.mark.parametrize("first", [0, 1])
def test_blocks_of_two_threads_that_interleave_leave_nothing_behind(first):
    calls = [config(threads=2), config(threads=4)]  # both called before either is entered
    order = [calls[first], calls[1 - first]]
    with order[0]:
        pass
    with order[1]:
        pass
    assert settings() == Settings()


def test_a_refused_call_changes_nothing():
    with pytest.raises(InputError):
        config(dtype="float32", threads=0)
    assert settings() == Settings()


def test_many_calls_do_not_pile_up(collect):
    for threads in range(1, 200):
        config(threads=threads)
    collect()
    config(dtype="float32")
    assert len(module._layers) <= 2
    assert settings() == Settings(threads=199, dtype="float32")


def test_the_settings_are_immutable():
    with pytest.raises(AttributeError):
        settings().threads = 2


def test_it_prints_what_is_in_force():
    with config(memory="4GiB", threads=2):
        text = "config(memory='4GiB', dtype='float64', threads=2, device='cpu', device_memory=None, "
        text += "backend=None, kernel_error=None, progress=None, cluster=None)"
        assert repr(config()) == str(config()) == text
    with config(memory=4 * 2**30 + 1):  # no short text says this number
        assert repr(config()).startswith("config(memory=4294967297, ")


@given(st.integers(1, 2**60))
def test_the_printed_memory_is_the_memory(n_bytes):
    with config(memory=n_bytes):
        printed = re.match(r"config\(memory=('[^']*'|\d+)", repr(config()))
    with config(memory=ast.literal_eval(printed[1])):
        assert settings().memory == n_bytes


# --- what may be passed -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_size", "n_bytes"),
    [
        (4096, 4096),
        (np.int64(4096), 4096),
        (1e9, 10**9),
        ("1e9", 10**9),
        ("4096", 4096),
        ("500MiB", 500 * 2**20),
        ("4GiB", 4 * 2**30),
        ("2GB", 2 * 10**9),
        (" 1.5 kib ", 1536),
        (".5TiB", 2**39),
        ("2e3 MB", 2 * 10**9),
        ("10B", 10),
    ],
)
def test_memory_sizes(given_size, n_bytes):
    with config(memory=given_size):
        assert memory_budget() == settings().memory == n_bytes


@pytest.mark.parametrize("size", ["four", "4 GiBs", "4G", "", "GiB", "1 2", [4], True])
def test_memory_that_is_no_size(size):
    with pytest.raises(InputError) as caught:
        config(memory=size)
    assert str(caught.value) == f"memory is not a size, got {size!r}: {MEMORY}"


@pytest.mark.parametrize("size", [0, -1, "-4GiB", "0", math.inf, math.nan, "1e400"])
def test_memory_that_is_not_positive_and_finite(size):
    with pytest.raises(InputError) as caught:
        config(memory=size)
    assert str(caught.value) == f"memory must be positive and finite, got {size!r}: {MEMORY}"


@pytest.mark.parametrize(
    "dtype", ["float32", np.float32, np.dtype("float32"), np.dtype(">f4").newbyteorder("=")]
)
def test_dtypes(dtype):
    with config(dtype=dtype):
        assert settings().dtype == "float32"


@pytest.mark.parametrize("dtype", ["float16", "double precision", np.int64, complex, None, 3])
def test_unknown_dtypes(dtype):
    with pytest.raises(InputError) as caught:
        config(dtype=dtype)
    assert str(caught.value) == f"dtype must be 'float64' or 'float32', got {dtype!r}: pass one of the two"


@pytest.mark.parametrize("threads", [0, -2, 1.5, 2.0, "2", True])
def test_wrong_threads(threads):
    with pytest.raises(InputError) as caught:
        config(threads=threads)
    assert str(caught.value) == (
        f"threads must be a whole number of at least 1, got {threads!r}: "
        "pass 1, 2, 3, …, or None for every core this process may use"
    )


@pytest.mark.parametrize("device", ["cpu", "cuda", "cuda:1", "mps"])
def test_devices(device):
    with config(device=device):
        assert settings().device == device


@pytest.mark.parametrize("device", ["", "cuda:", "GPU 1", None, 0])
def test_wrong_devices(device):
    with pytest.raises(InputError) as caught:
        config(device=device)
    assert str(caught.value) == (
        f"device is not a device name, got {device!r}: pass 'cpu', 'cuda', 'cuda:1' or 'mps'"
    )


@pytest.mark.parametrize("backend", ["jax", "", 1])
def test_wrong_backends(backend):
    with pytest.raises(InputError) as caught:
        config(backend=backend)
    assert str(caught.value) == (
        f"backend must be 'numpy', 'numba', 'torch' or 'triton', got {backend!r}: "
        "pass one of them, or None to let mercer choose"
    )


@pytest.mark.parametrize("error", [0, 1.0, -1e-3, float("nan"), "small", True])
def test_wrong_errors_of_kernels(error):
    with pytest.raises(InputError) as caught:
        config(kernel_error=error)
    assert str(caught.value) == (
        f"kernel_error must be between 0 and 1, got {error!r}: pass the relative error that fast products "
        "may cause, such as 1e-3, or None for 1e-6"
    )


def test_wrong_cluster():
    with pytest.raises(InputError, match="cluster must be a client of Dask, got 'tcp://a:1': pass"):
        config(cluster="tcp://a:1")


def test_wrong_progress():
    with pytest.raises(InputError) as caught:
        config(progress="yes")
    assert str(caught.value) == (
        "progress must be True, False, None or a function, got 'yes': pass True for a bar, False for "
        "silence, "
        "None for a bar on a terminal only, or a function that takes a dict"
    )


def test_unknown_settings():
    with pytest.raises(TypeError) as caught:
        config(memroy="4GiB")
    assert str(caught.value) == "config has no setting 'memroy', got memroy='4GiB': did you mean 'memory'?"
    with pytest.raises(TypeError) as caught:
        config(xyz=1)
    assert str(caught.value) == (
        "config has no setting 'xyz', got xyz=1: pass one of memory, dtype, threads, device, device_memory, "
        "backend, kernel_error, progress, cluster"
    )


# --- the machine -------------------------------------------------------------------------------------


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with 8 GiB free and 16 cores, whose container limits are files written by the test."""
    psutil = pytest.importorskip("psutil")
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=8 * 2**30))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)), raising=False)
    monkeypatch.setattr("mercer.runtime.machine._ROOT", tmp_path)

    def write(path, text):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    _free_memory.cache_clear()  # what was read a moment ago, and will be a moment after
    yield write
    _free_memory.cache_clear()


def test_without_containers(machine):
    assert memory_budget() == 4 * 2**30
    assert thread_count() == 16


def test_cgroup_v2(machine):
    machine("proc/self/cgroup", "0::/user/job\n")
    machine("sys/fs/cgroup/user/job/memory.max", "max\n")
    machine("sys/fs/cgroup/user/memory.max", f"{3 * 2**30}\n")
    machine("sys/fs/cgroup/user/memory.current", f"{2 * 2**30}\n")
    machine("sys/fs/cgroup/user/memory.stat", f"anon 5\ninactive_file {2**30}\n")
    machine("sys/fs/cgroup/user/job/cpu.max", "250000 100000\n")
    machine("sys/fs/cgroup/user/cpu.max", "max 100000\n")
    assert memory_budget() == 2**30  # half of 3 − 2 + 1 GiB: the file cache counts as free
    assert thread_count() == 3  # 2.5 cores, rounded up


def test_cgroup_v1_with_the_path_of_the_host(machine):
    machine("proc/self/cgroup", "4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n1:name=systemd:/\n")
    machine("sys/fs/cgroup/memory/memory.limit_in_bytes", f"{2**30}\n")
    machine("sys/fs/cgroup/memory/memory.usage_in_bytes", "0\n")
    machine("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n")
    machine("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")
    assert memory_budget() == 2**29
    assert thread_count() == 2


def test_cgroup_v1_without_limits(machine):
    machine("proc/self/cgroup", "4:memory:/\n2:cpu:/\n")
    machine("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
    machine("sys/fs/cgroup/memory/memory.usage_in_bytes", "1000\n")
    machine("sys/fs/cgroup/memory/memory.stat", "not a table\n\n")
    machine("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n")
    machine("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")
    assert memory_budget() == 4 * 2**30
    assert thread_count() == 16


def test_a_full_container_still_leaves_a_little(machine):
    machine("proc/self/cgroup", "0::/\n")
    machine("sys/fs/cgroup/memory.max", "1000\n")
    machine("sys/fs/cgroup/memory.current", "2000\n")
    machine("sys/fs/cgroup/cpu.max", "1000 100000\n")
    assert memory_budget() == 2**20
    assert thread_count() == 1


def test_what_is_set_wins_over_the_machine(machine):
    with config(memory="1TiB", threads=64):
        assert (memory_budget(), thread_count()) == (2**40, 64)


def test_without_affinity(machine, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    assert thread_count() == 5
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert thread_count() == 1


def test_this_machine():
    assert 2**20 <= memory_budget() < 2**60
    assert 1 <= thread_count() <= (os.cpu_count() or 1)


def test_require_memory():
    with config(memory=1000):
        require_memory(1000, "this", "never shown")
        with pytest.raises(MemoryBudgetError) as caught:
            require_memory(1001 * 2**20, "a matrix", "use fewer points")
    assert str(caught.value) == (
        "a matrix needs 0.978GiB, more than the memory budget of 0.977KiB: "
        "use fewer points, or raise the budget with mercer.config(memory=…)"
    )


def test_what_always_fits_is_not_asked_of_the_machine(monkeypatch):
    monkeypatch.setattr(module.machine, "available_memory", lambda: pytest.fail("asked"))
    require_memory(2**20, "this", "never shown")
    with config(memory=1000), pytest.raises(MemoryBudgetError):
        require_memory(1001, "this", "use less")
    monkeypatch.setattr(module.machine, "available_memory", lambda: 0)  # The budget is a MiB then.
    with pytest.raises(MemoryBudgetError):
        require_memory(2**20 + 1, "this", "use less")


def test_format_bytes():
    assert [format_bytes(n) for n in (1, 999, 1536, 2**50, 10**700)] == [
        "1B",
        "999B",
        "1.5KiB",
        "1PiB",
        "1.00e+700B",
    ]


# --- what others use ---------------------------------------------------------------------------------


@pytest.fixture
def looks(machine, monkeypatch):
    """A machine of four cores, looked at: (seconds, idle ticks of each core, our CPU seconds, running)."""
    from mercer.runtime import machine as module

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    monkeypatch.setattr(os, "sysconf", lambda name: 100)
    monkeypatch.setattr(module, "_looked", None)
    times = {}
    monkeypatch.setattr(module, "monotonic", lambda: times["now"])
    monkeypatch.setattr(module, "process_time", lambda: times["own"])

    def look(now, idle, own=0.0, running=1):
        times.update(now=now, own=own)
        cores = "".join(f"cpu{i} 5 5 5 {ticks} 0 0 0\n" for i, ticks in enumerate(idle))
        machine("proc/stat", f"cpu 0 0 0 0 0\n{cores}procs_running {running}\n")
        return module.free_cores()

    return look


def test_free_cores_at_first_are_those_without_a_running_thread(looks):
    assert looks(10.0, [0] * 4, running=3) == 2  # two others, and the one that asks
    assert looks(50.0, [0] * 4, running=1) == 4  # too long ago to be told from what happened since
    assert looks(90.0, [0] * 4, running=40) == 1


def test_free_cores_are_those_that_were_idle_or_ours(looks):
    looks(10.0, [0, 0, 0, 0])
    assert looks(11.0, [100, 100, 0, 0]) == 2
    assert looks(11.01, [0, 0, 0, 0]) == 2  # a moment later nothing is read
    assert looks(12.0, [200, 100, 0, 0], own=1.8) == 3  # 1 idle, 1.8 ours
    assert looks(13.0, [200, 100, 0, 0], own=1.8) == 1


def test_free_cores_of_a_quota_and_of_some_cores(looks, machine, monkeypatch):
    machine("proc/self/cgroup", "0::/\n")
    machine("sys/fs/cgroup/cpu.max", "250000 100000\n")
    assert looks(10.0, [0] * 4) == 2  # not the three that our own threads take turns on
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {2, 3}, raising=False)
    looks(20.0, [0, 0, 0, 0])
    assert looks(21.0, [100, 100, 95, 0]) == 1  # the idle ones are not ours


def test_free_cores_where_the_system_does_not_tell(machine, monkeypatch):
    from mercer.runtime import machine as module

    monkeypatch.setattr(module, "_looked", None)
    assert 1 <= module.free_cores() <= 16  # by psutil


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_forked_while_another_thread_changes_settings_works():
    from mercer.runtime import config as module

    with module._lock:
        child = os.fork()
        if child == 0:
            with config(threads=1):
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
