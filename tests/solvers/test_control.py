"""Control over long runs: limits, Ctrl-C, checkpoints."""

import os
import signal
import threading

import numpy as np
import pytest

from mercer.errors import InputError
from mercer.runtime.config import config
from mercer.solvers import control as module
from mercer.solvers.control import Control


def halve(control, steps=10, seen=None):
    """A solver: x ← x/2 + noise that depends on the step, so that a repeated or skipped step shows."""
    state = control.restored or {"x": np.ones(3), "k": 0}
    x, k = state["x"], state["k"]
    while k < steps and not control.stopped:
        x, k = x / 2 + np.sin(k), k + 1
        control.step(lambda x=x, k=k: {"x": x, "k": k}, size=float(x[0]))
        if seen is not None:
            seen.append(k)
    return x


def test_it_counts_without_being_entered():
    control = Control()
    halve(control)
    assert (control.iterations, control.stopped, control.restored) == (10, None, None)


def test_the_total_is_what_is_expected_within_what_is_allowed():
    events = []
    with Control("steps", 100, progress=events.append) as control:
        for expected in (7.2, 1e9, 0):
            control.step(expected=expected)
        control.step()
    assert [event["total"] for event in events] == [100, 8, 100, 3, 100]


def test_progress_events(capsys):
    events = []
    with Control("halving", 10, progress=events.append) as control:
        halve(control)
    assert [event["done"] for event in events] == list(range(11))
    assert events[-1]["total"] == 10 and events[-1]["label"] == "halving" and "size" in events[-1]["facts"]
    configured = []
    with config(progress=configured.append), Control("halving", 10) as control:
        halve(control)
    assert len(configured) == 11
    with config(progress=configured.append), Control("halving", 10, progress=False) as control:
        halve(control)
    assert len(configured) == 11
    with Control("halving", 10, progress=True) as control:
        halve(control)
    assert "halving" in capsys.readouterr().err


def test_time_is_over(hand_clock):
    with Control(max_time=5.0) as control:
        for _ in range(4):
            hand_clock.wait(1.0)
            control.step()
            assert control.stopped is None
        hand_clock.wait(1.0)
        assert control.stopped == "max_time"
        assert control.seconds == pytest.approx(5.0)


def test_ctrl_c_lets_the_iteration_finish_and_is_then_as_before():
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def press(event):
        if event["done"] == 4:
            os.kill(os.getpid(), signal.SIGINT)

    with Control(progress=press) as control:
        halve(control, seen=seen)
    assert control.stopped == "interrupted" and seen == [1, 2, 3, 4]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_ctrl_c_raises():
    with pytest.raises(KeyboardInterrupt), Control() as control:
        os.kill(os.getpid(), signal.SIGINT)
        assert control.stopped == "interrupted"
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_callback_may_stop_the_run():
    def stop(event):
        if event["done"] == 3:
            raise KeyboardInterrupt

    with Control(progress=stop) as control:
        halve(control)
    assert (control.stopped, control.iterations) == ("interrupted", 3)


def test_a_callback_that_fails_leaves_ctrl_c_as_it_was():
    def fail(event):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"), Control(progress=fail):
        pass
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_and_other_handlers_are_left_alone():
    def mine(number, frame):
        pass

    previous = signal.signal(signal.SIGINT, mine)
    try:
        with Control():
            assert signal.getsignal(signal.SIGINT) is mine
    finally:
        signal.signal(signal.SIGINT, previous)
    found = []

    def work():
        with Control() as control:
            found.append(halve(control))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found[0] == pytest.approx(halve(Control()))


# --- checkpoints -------------------------------------------------------------------------------------


@pytest.mark.parametrize("every", [0.0, 1e9])
def test_a_resumed_run_ends_where_an_uninterrupted_one_does(tmp_path, monkeypatch, every):
    monkeypatch.setattr(module, "_EVERY", every)
    expected = halve(Control())
    path = tmp_path / "state"

    def stop(event):
        if event["done"] == 4:
            raise KeyboardInterrupt

    with Control(checkpoint=path, progress=stop) as first:
        halve(first)
    with Control(checkpoint=path, resume=True) as second:
        assert second.iterations == 4 and second.total_seconds > second.seconds
        assert np.array_equal(halve(second), expected)
    assert second.iterations == 10
    with Control(checkpoint=path, resume=True) as third:  # a finished run is at its end at once
        assert third.restored["k"] == 10 and np.array_equal(halve(third), expected)
    assert [p.name for p in tmp_path.iterdir()] == ["state"]


def test_more_iterations_go_on_from_the_end(tmp_path):
    path = tmp_path / "state"
    with Control(checkpoint=path) as control:
        halve(control, 5)
    with Control(checkpoint=path, resume=True) as control:
        assert np.array_equal(halve(control, 10), halve(Control(), 10))


def test_without_resume_the_file_is_written_anew(tmp_path):
    path = tmp_path / "state"
    for steps in (5, 3):
        with Control(checkpoint=path) as control:
            assert control.restored is None
            halve(control, steps)
    with Control(checkpoint=path, resume=True) as control:
        assert control.restored["k"] == 3


def test_resume_without_a_file_starts_from_the_beginning(tmp_path):
    with Control(checkpoint=tmp_path / "state", resume=True) as control:
        assert control.restored is None
        halve(control)
    assert (tmp_path / "state").exists()


def test_a_full_disk_costs_the_checkpoint_and_not_the_fit(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_EVERY", 0.0)
    path = tmp_path / "state"
    with Control(checkpoint=path) as control:
        halve(control, 3)

    def full(*arguments, **keywords):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with (
        pytest.warns(UserWarning, match=r"could not be written \(No space left on device\): the fit goes on"),
        Control(checkpoint=path, resume=True) as control,
    ):
        assert np.array_equal(halve(control), halve(Control()))
    assert [p.name for p in tmp_path.iterdir()] == ["state"]
    with Control(checkpoint=path, resume=True) as control:
        assert control.restored["k"] == 3


def test_an_error_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_EVERY", 0.0)
    with pytest.raises(ZeroDivisionError), Control(checkpoint=tmp_path / "state") as control:
        halve(control, 3)
        raise ZeroDivisionError
    with Control(checkpoint=tmp_path / "state", resume=True) as control:
        assert control.restored["k"] == 3


def test_an_inner_run_stops_with_the_outer_and_saves_nothing(tmp_path):
    with Control(checkpoint=tmp_path / "state", max_time=1e-9) as control:
        inner = control.inner()
        assert inner.stopped == "max_time"
        inner.step(lambda: {"x": 1})
        assert (inner.iterations, control.iterations) == (1, 0)
    assert not (tmp_path / "state").exists()


def test_refused_files(tmp_path):
    path = tmp_path / "state"
    with Control(checkpoint=path, identity="a") as control:
        halve(control)
    with pytest.raises(
        InputError, match="is the checkpoint of another fit: data, kernel or parameters differ"
    ):
        Control(checkpoint=path, resume=True, identity="b").__enter__()
    path.write_text("not a checkpoint")
    with pytest.raises(InputError, match=r"cannot be read as a checkpoint \(.*: remove it, or name another"):
        Control(checkpoint=path, resume=True).__enter__()
    np.savez(path.open("wb"), x=1)
    with pytest.raises(InputError, match="is not a checkpoint of this version"):
        Control(checkpoint=path, resume=True).__enter__()
    with path.open("wb") as file:
        np.save(file, np.ones(3))
    with pytest.raises(InputError, match="cannot be read as a checkpoint"):
        Control(checkpoint=path, resume=True).__enter__()
    if os.path.isdir("/proc/self"):
        with pytest.raises(InputError, match=r"cannot be written \(.*name a file in a folder of yours"):
            Control(checkpoint="/proc/state").__enter__()
    with pytest.raises(InputError, match="is in a folder that does not exist: make it"):
        Control(checkpoint=tmp_path / "no" / "state").__enter__()
    with pytest.raises(InputError, match="is a folder: name a file in it"):
        Control(checkpoint=tmp_path).__enter__()
