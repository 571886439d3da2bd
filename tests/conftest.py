"""What all tests share: a generator of their own, the real data, and the conditions of the markers."""

import gc
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

os.environ.setdefault("MPLBACKEND", "Agg")  # before matplotlib is imported: no test opens a window

# The first call of a kernel compiles it, which no deadline allows for. In CI every run has the same examples.
settings.register_profile("mercer", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("mercer")

#: A test states how many random examples it has with --full; without, it has one in so many of them.
EXAMPLES_PER_QUICK_ONE = 4

ROOT = Path(__file__).resolve().parent.parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Fewer random examples for every test of Hypothesis, unless all is asked for."""
    if not config.option.full:
        for holder, name in {home for item in items if (home := home_of_settings(item))}:
            stated = getattr(holder, name)
            number = -(-stated.max_examples // EXAMPLES_PER_QUICK_ONE)
            setattr(holder, name, settings(stated, max_examples=number))


def home_of_settings(item: pytest.Item) -> tuple[object, str] | None:
    """Where Hypothesis looks for the settings of a test: an object and an attribute of it.

    The cases of one test share it, and so do the steps of a machine that has states.
    """
    function = getattr(getattr(item, "obj", None), "__func__", getattr(item, "obj", None))
    homes = ((getattr(item, "cls", None), "settings"), (function, "_hypothesis_internal_use_settings"))
    return next((home for home in homes if isinstance(getattr(*home, None), settings)), None)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator seeded by the test's own name: the same numbers in any order of tests, and in any file."""
    digest = hashlib.sha256(request.node.name.encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "little"))


@pytest.fixture
def within_cpu() -> Callable[[float], AbstractContextManager[None]]:
    """``with within_cpu(2.0): …`` fails where the block takes more seconds of this process's own work.

    A machine that is busy with something else makes no difference, as it would to a clock on the wall.
    """

    @contextmanager
    def limit(seconds: float) -> Iterator[None]:
        begin = time.process_time()
        yield
        spent = time.process_time() - begin
        assert spent < seconds, f"{spent:.2f} s of CPU time, where {seconds} s are allowed"

    return limit


class HandClock:
    """A clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at

    def wait(self, seconds: float) -> None:
        self.at += seconds


@pytest.fixture
def hand_clock(monkeypatch: pytest.MonkeyPatch) -> HandClock:
    """Time limits are measured by a clock that the test moves: ``hand_clock.wait(2.0)`` takes no time."""
    clock = HandClock()
    monkeypatch.setattr("mercer.runtime.clock.monotonic", clock)
    return clock


@pytest.fixture
def cpu_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time limits are measured in this process's own work, so that they mean the same on a busy machine."""
    monkeypatch.setattr("mercer.runtime.clock.monotonic", time.process_time)


@pytest.fixture
def tries(request: pytest.FixtureRequest) -> Callable[[int], range]:
    """``for _ in tries(100)`` has so many random cases with --full, and a quarter of them without."""
    is_full = request.config.option.full
    return lambda number: range(number if is_full else -(-number // EXAMPLES_PER_QUICK_ONE))


@pytest.fixture
def collect() -> Callable[[], int]:
    """``collect()`` looks for garbage among what the test made: among all there is, it takes a second."""
    gc.freeze()
    return gc.collect


@pytest.fixture
def data_dir(request: pytest.FixtureRequest) -> Path:
    """The folder of the real data sets, for tests marked `data` (which are skipped where there is none)."""
    if request.node.get_closest_marker("data") is None:
        pytest.fail("a test that uses data_dir must carry @pytest.mark.data: add the marker")
    folder = find_data()
    assert folder is not None
    return folder


def find_data() -> Path | None:
    """The folder named by MERCER_DATA, else ../shared/data if there is one."""
    named = os.environ.get("MERCER_DATA")
    if named:
        folder = Path(named).expanduser()
        if not folder.is_dir():
            pytest.fail(f"MERCER_DATA must be a folder, got {named!r}: name an existing one, or unset it")
        return folder
    folder = ROOT.parent / "shared" / "data"
    return folder if folder.is_dir() else None


def cuda_is_available() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("data") is not None and find_data() is None:
        pytest.skip("no real data: set MERCER_DATA to the folder of the data sets (default ../shared/data)")
    if item.get_closest_marker("gpu") is not None and not cuda_is_available():
        pytest.skip("no GPU: needs PyTorch with a CUDA device")
    if item.get_closest_marker("gpu") is not None and os.environ["TRITON_INTERPRET"] != "0":
        pytest.skip("kernels run as Python: set TRITON_INTERPRET=0")


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_is_heard():
    """A job in the background may have been started deaf to SIGINT: the tests of Ctrl-C need to hear it."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


# --- processes of their own, which begin with mercer imported ----------------------------------------------

#: Imports take longer than most fits: one process has them, and a child of it runs each script.
PARENT = """
import json, os, sys, traceback
import numpy
from mercer import *

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        status = 0
        try:
            code, sys.argv[1:] = json.loads(line)
            print(os.getpid(), flush=True)
            exec(code, {"__name__": "__main__"})
        except BaseException:
            status = 1
            traceback.print_exc(file=sys.stdout)
        sys.stdout.flush()
        os._exit(status)
    print("end", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Child:
    """A process that runs a script: its lines are read as they come; it ends with a `returncode`."""

    def __init__(self, parent: subprocess.Popen, code: str, *arguments: object) -> None:
        self._parent, self.returncode = parent, None
        print(json.dumps([code, list(map(str, arguments))]), file=parent.stdin, flush=True)
        self._pid = int(parent.stdout.readline())

    def __iter__(self):
        for line in self._parent.stdout:
            if line.startswith("end "):
                self.returncode = int(line.split()[1])
                return
            yield line.rstrip("\n")

    def said(self) -> str:
        """What it printed, once it has ended well."""
        text = "\n".join(self)
        assert self.returncode == 0, text
        return text

    def kill(self) -> None:
        os.kill(self._pid, signal.SIGKILL)


@pytest.fixture(scope="session")
def parent():
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.stdin.close()


@pytest.fixture
def fork(parent):
    """``fork(code, *arguments)`` runs a script in a process of its own, one after the other."""
    children = []

    def start(code: str, *arguments: object) -> Child:
        children.append(Child(parent, code, *arguments))
        return children[-1]

    yield start
    for child in children:
        if child.returncode is None:  # the test ended before it did
            child.kill()
            for _ in child:
                pass


@pytest.fixture(scope="session")
def cached_in() -> Callable[[Path], str]:
    """``cached_in(folder)`` begins a script for ``fork``: code that it generates is kept in the folder."""
    return lambda folder: (
        f"import os; os.environ['MERCER_CACHE_DIR'] = {str(folder)!r}\n"
        "from mercer.runtime.cache_folder import cache_folder; cache_folder.cache_clear()\n"
    )
