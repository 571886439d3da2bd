import importlib
import io
import threading
from types import SimpleNamespace

import pytest

from mercer.errors import InputError
from mercer.runtime.config import config
from mercer.runtime.progress import Progress, progress

module = importlib.import_module("mercer.runtime.progress")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(module, "sys", SimpleNamespace(stderr=stream))  # pytest takes sys.stderr itself back
    monkeypatch.setattr(module.shutil, "get_terminal_size", lambda: module.shutil.os.terminal_size((100, 24)))
    return stream


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves."""

    class Clock:
        now = 0.0

        def __call__(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(module, "perf_counter", clock)
    return clock


def test_silent_where_there_is_no_terminal(capsys):
    with progress(3, "steps") as bar:
        bar.advance(3)
    assert capsys.readouterr() == ("", "")


def test_silent_without_a_standard_error(monkeypatch):
    monkeypatch.setattr(module, "sys", SimpleNamespace(stderr=None))
    for mode in (None, True):
        with config(progress=mode), progress(3, "steps") as bar:
            bar.advance(3)


def test_a_bar_on_a_terminal(terminal, clock):
    with progress(200, "epochs") as bar:
        clock.now = 10.0
        bar.advance(50, gap=0.123456, mistakes=3)
        assert terminal.getvalue() == (
            "\repochs   25% [#####...............]  50/200  5/s  0:10  0:30 left  gap=0.1235  mistakes=3"
        )
        clock.now = 20.0
        bar.advance(150, gap=0.0)
    last = "\repochs  100% [####################]  200/200  10/s  0:20  gap=0  mistakes=3"
    assert terminal.getvalue().split("\r")[-1].rstrip() == last.strip()
    assert terminal.getvalue().endswith("\n")


def test_a_shorter_line_covers_the_longer_one(terminal, clock):
    with progress(None, "rows") as bar:
        clock.now = 1.0
        bar.advance(1, note="a long remark")
        clock.now = 2.0
        bar.advance(1, note="")
    first, second, _ = terminal.getvalue()[1:].split("\r")
    assert len(second) == len(first)


def test_a_count_without_a_total(terminal, clock):
    with progress(None, "rows read") as bar:
        clock.now = 3700.0
        bar.advance(1_000_000)
    assert terminal.getvalue().endswith("\rrows read  1,000,000  270/s  1:01:40\n")


def test_it_refreshes_ten_times_a_second_at_most(terminal, clock):
    with progress(1000, "steps") as bar:
        for step in range(1000):
            clock.now = step / 1000  # one second
            bar.advance()
    assert 5 <= terminal.getvalue().count("\r") <= 11


def test_a_short_job_leaves_no_trace_unless_forced(terminal, clock):
    with progress(2, "steps") as bar:
        bar.advance(2)
    assert terminal.getvalue() == ""
    with config(progress=True), progress(2, "steps") as bar:
        bar.advance(2)
    assert terminal.getvalue() == "\rsteps  100% [####################]  2/2  0/s  0:00\n"


def test_true_draws_without_a_terminal_and_false_never(terminal, clock, monkeypatch):
    with config(progress=False), progress(1, "steps") as bar:
        clock.now = 1.0
        bar.advance()
    assert terminal.getvalue() == ""
    plain = io.StringIO()
    monkeypatch.setattr(module, "sys", SimpleNamespace(stderr=plain))
    with config(progress=True), progress(1, "steps") as bar:
        bar.advance()
    assert plain.getvalue().startswith("\rsteps")


def test_a_line_never_wraps(terminal, clock):
    with progress(10, "a label that is much too long " * 10) as bar:
        clock.now = 1.0
        bar.advance()
    assert all(len(line) <= 99 for line in terminal.getvalue().strip("\n").split("\r"))


def test_only_the_outer_bar_has_the_terminal(terminal, clock):
    with progress(2, "outer") as outer:
        with progress(2, "inner") as inner:
            clock.now = 1.0
            inner.advance()
        outer.advance()
    assert "outer" in terminal.getvalue() and "inner" not in terminal.getvalue()
    with progress(1, "next") as bar:  # the terminal was given back
        clock.now = 2.0
        bar.advance()
    assert "next" in terminal.getvalue()


def test_the_terminal_is_given_back_after_an_error(terminal, clock):
    with pytest.raises(KeyboardInterrupt), progress(2, "stopped") as bar:
        clock.now = 1.0
        bar.advance()
        raise KeyboardInterrupt
    assert terminal.getvalue().endswith("\n")
    assert not Progress._terminal.locked()


def test_zero_steps_and_more_steps_than_announced(terminal, clock):
    with config(progress=True):
        with progress(0, "none"):
            pass
        with progress(2, "more") as bar:
            bar.advance(5)
    assert "none  100%" in terminal.getvalue()
    assert "more  100% [####################]  5/2" in terminal.getvalue()


def test_events_for_a_program(clock, capsys):
    events = []
    with config(progress=events.append), progress(2, "epochs") as bar:
        clock.now = 0.01
        bar.advance(1, gap=0.5)
        clock.now = 0.02
        bar.advance(1, mistakes=0)
    assert events == [
        {"label": "epochs", "done": 0, "total": 2, "elapsed": 0.0, "facts": {}},
        {"label": "epochs", "done": 1, "total": 2, "elapsed": 0.01, "facts": {"gap": 0.5}},
        {"label": "epochs", "done": 2, "total": 2, "elapsed": 0.02, "facts": {"gap": 0.5, "mistakes": 0}},
    ]
    assert capsys.readouterr() == ("", "")


def test_bars_of_several_threads_do_not_mix(terminal, clock):
    def work():
        with Progress(1, "worker", True) as bar:
            bar.advance()

    with progress(1, "main") as bar:
        worker = threading.Thread(target=work)
        worker.start()
        worker.join()
        clock.now = 1.0
        bar.advance()
    assert "worker" not in terminal.getvalue()


def test_a_negative_total_is_refused():
    with pytest.raises(InputError) as caught:
        progress(-1, "steps")
    assert str(caught.value) == "total must be zero or more, got -1: pass the number of steps, or None"


def test_a_clock_that_has_not_moved(terminal, clock):
    with config(progress=True), progress(2, "half") as bar:
        bar.advance()
    assert terminal.getvalue() == "\rhalf   50% [##########..........]  1/2  0/s  0:00\n"


def test_time_passes_by_itself(terminal, monkeypatch):
    """With a limit the bar is of the time, and is drawn while nothing is done."""
    passed = [0.0]
    monkeypatch.setattr(module, "now", lambda: passed[0])
    monkeypatch.setattr(module, "_TICK_SECONDS", 0.01)
    with Progress(None, "searching", limit=40.0) as bar:
        passed[0] = 10.0
        bar.advance(0, tried=3, best="Matern 1.5")
        waited = threading.Event()
        for _ in range(2000):
            if "best" in terminal.getvalue():
                break
            waited.wait(0.01)
        line = terminal.getvalue().rpartition("\r")[2]
        assert line.startswith("searching   25% [##........]  0:30 of 0:40 left")
        assert "tried=3  best=Matern 1.5" in line and len(line) < 80
        module.make_room()
        assert terminal.getvalue().endswith("\r")
    assert terminal.getvalue().endswith("\r") and not bar._ticker.is_alive()


def test_room_is_made_only_for_a_bar():
    module.make_room()


def test_rows_per_second_stand_for_steps_per_second(terminal, clock):
    """They are told within a step; programs hear of them with it."""
    events = []
    for mode in (None, events.append):
        with Progress(20, "conjugate gradients", mode) as bar:
            clock.now += 10.0
            bar.show(passes=2, **{module.ROWS: 1234567.0})
            bar.advance(5)
    line = f"\rconjugate gradients    0% [{'.' * 20}]  0/20  1.23e+06 rows/s  0:10  passes=2"
    assert terminal.getvalue().startswith(line)
    assert [event["done"] for event in events] == [0, 5] and events[1]["facts"][module.ROWS] == 1234567.0


def test_a_narrow_terminal_has_a_shorter_bar(terminal, clock, monkeypatch):
    monkeypatch.setattr(module.shutil, "get_terminal_size", lambda: module.shutil.os.terminal_size((80, 24)))
    with Progress(20, "conjugate gradients") as bar:
        clock.now = 10.0
        bar.advance(5, **{module.ROWS: 1234567.0})
    line = "\rconjugate gradients   25% [##........]  5/20  1.23e+06 rows/s  0:10  0:30 left"
    assert terminal.getvalue().startswith(line)
