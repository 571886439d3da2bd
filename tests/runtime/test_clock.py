"""The clock of time limits: it stands still while code is compiled."""

import threading
from time import monotonic, sleep

import numpy as np
import pytest

from mercer.runtime import clock
from mercer.runtime.clock import now, standing_still, tell_of_compiling


def test_it_runs_as_other_clocks_do():
    before, at = now(), monotonic()
    sleep(0.02)
    assert now() - before == pytest.approx(monotonic() - at, abs=0.01)


def test_pauses_inside_pauses_count_once():
    stood, at, began = clock.compiling_seconds(), monotonic(), now()
    with standing_still():
        sleep(0.02)
        with standing_still():
            assert now() == began or now() - began < 0.01
            sleep(0.02)
    wall = monotonic() - at
    assert 0.04 <= clock.compiling_seconds() - stood <= wall
    assert now() - began < wall - 0.03


def test_pauses_of_several_threads_count_once():
    stood = clock.compiling_seconds()
    ready = threading.Barrier(4)

    def wait():
        with standing_still():
            ready.wait()
            sleep(0.03)

    threads = [threading.Thread(target=wait) for _ in range(4)]
    at = monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0.03 <= clock.compiling_seconds() - stood <= monotonic() - at


def test_compiling_stops_it_and_is_told_once(monkeypatch):
    numba = pytest.importorskip("numba")
    if numba.config.DISABLE_JIT:
        pytest.skip("nothing is compiled")
    import mercer.runtime.native  # noqa: F401  it listens

    monkeypatch.setattr(clock, "_LONG_COMPILING", 0.0)
    told = []

    @numba.njit
    def power(x):
        return x**3 + np.sqrt(x)

    stood = clock.compiling_seconds()
    with tell_of_compiling(lambda: told.append("compiling")):
        at, began = monotonic(), now()
        power(2.0)
        wall, learning = monotonic() - at, now() - began
    assert told == ["compiling"]
    took = clock.compiling_seconds() - stood
    assert took > 0.01 and learning <= wall - took + 1e-3
    with tell_of_compiling(lambda: told.append("again")):
        power(3.0)
    assert told == ["compiling"]


def test_a_time_limit_does_not_pay_for_it():
    from mercer.solvers.control import Control

    with Control(max_time=0.05) as control:
        with standing_still():
            sleep(0.1)
        assert control.stopped is None
        sleep(0.06)
        assert control.stopped == "max_time"
