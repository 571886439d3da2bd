"""The clock of time limits: it stands still while code is compiled."""

import threading

import numpy as np
import pytest

from mercer.runtime import clock
from mercer.runtime.clock import now, standing_still, tell_of_compiling


def test_it_runs_as_other_clocks_do(hand_clock):
    before = now()
    hand_clock.wait(2.0)
    assert now() - before == pytest.approx(2.0)


def test_pauses_inside_pauses_count_once(hand_clock):
    stood, began = clock.compiling_seconds(), now()
    with standing_still():
        hand_clock.wait(1.0)
        with standing_still():
            assert now() == pytest.approx(began)
            hand_clock.wait(2.0)
        hand_clock.wait(4.0)
    assert clock.compiling_seconds() - stood == pytest.approx(7.0)
    hand_clock.wait(8.0)
    assert now() - began == pytest.approx(8.0)
    assert clock.compiling_seconds() - stood == pytest.approx(7.0)


def test_pauses_of_several_threads_count_once(hand_clock):
    stood, began = clock.compiling_seconds(), now()
    ready = threading.Barrier(4, action=lambda: hand_clock.wait(1.0))  # once, when all four stand still

    def wait():
        with standing_still():
            ready.wait()

    threads = [threading.Thread(target=wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clock.compiling_seconds() - stood == pytest.approx(1.0)
    assert now() == pytest.approx(began)


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
        power(2.0)
    assert told == ["compiling"]
    assert clock.compiling_seconds() > stood
    with tell_of_compiling(lambda: told.append("again")):
        power(3.0)
    assert told == ["compiling"]


def test_a_time_limit_does_not_pay_for_it(hand_clock):
    from mercer.solvers.control import Control

    with Control(max_time=0.05) as control:
        with standing_still():
            hand_clock.wait(0.1)
        assert control.stopped is None
        hand_clock.wait(0.06)
        assert control.stopped == "max_time"
