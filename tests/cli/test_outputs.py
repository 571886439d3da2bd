"""Where outputs go: links, pipes, closed streams, files that are inputs too; and Ctrl-C on the way."""

import io
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from mercer.cli import exits
from mercer.cli.predict import _to_standard_output
from mercer.cli.screen import Screen
from mercer.cli.train import Wishes
from mercer.runtime import files

from .conftest import QUICK

posix = pytest.mark.skipif(sys.platform == "win32", reason="links, pipes and signals of POSIX")


@posix
def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe, heard = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: heard.append(pipe.read_text()), daemon=True)
    reader.start()
    with files.aside(pipe) as place:
        place.write_text("what was written")
    reader.join(10)
    assert heard == ["what was written"]
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="names of open files")
def test_a_pipe_without_a_name_is_written_to():
    """As standard output is, in a pipeline."""
    reading, writing = os.pipe()
    with files.aside(Path(f"/dev/fd/{writing}")) as place:
        place.write_text("what was written")
    assert os.read(reading, 100) == b"what was written"
    os.close(reading)
    os.close(writing)


def test_an_input_is_no_output(mercer, flowers, model, tmp_path):
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for arguments, message in (
        (["predict", model, flowers, "-o", model], "--output and the model are the same file"),
        (["predict", model, flowers, "-o", "./flowers.csv"], "--output and the table are the same file"),
        (["report", model, flowers, "-o", flowers], "--output and the table are the same file"),
        (["train", flowers, "-t", "species", "--report", flowers], "--report and the table are the same"),
    ):
        status, out, err = mercer(*arguments)
        assert (status, out) == (2, "")
        assert message in err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@posix
def test_standard_input_is_an_input_too(mercer, flowers, model):
    before, standard = flowers.read_bytes(), os.dup(0)
    try:
        for arguments in (
            ["predict", model, "-", "-o", flowers],
            ["train", "-", "-t", "species", "--no-report", "-o", flowers],
            ["train", "-", "-t", "species", "--report", flowers],
        ):
            with flowers.open("rb") as stream:
                os.dup2(stream.fileno(), 0)
            status, out, err = mercer(*arguments)
            assert (status, out) == (2, "")
            assert "and the table are the same file" in err
    finally:
        os.dup2(standard, 0)
        os.close(standard)
    assert flowers.read_bytes() == before


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("a/sales.2023.csv", "sales.2023"),
        ("sales.2024.CSV.gz", "sales.2024"),
        ("sales.parquet", "sales"),
        ("twice.tsv.gz.zip", "twice"),
        ("v1.2", "v1.2"),
        ("heart.scale", "heart.scale"),
        ("-", "model"),
    ],
)
def test_names_of_models_tell_files_apart(file, name):
    wishes = Wishes([file])
    assert (wishes.model_path.name, wishes.report_path.name) == (f"{name}.mercer", f"{name}.html")
    assert Wishes([file], output=Path("m/v1.2")).report_path == Path("m/v1.2.html")


class Raw(io.RawIOBase):
    """Standard output without a buffer, which takes a few bytes at a time, and no more than some."""

    def __init__(self, most=1000):
        self.taken, self.most = b"", most

    def writable(self):
        return True

    def write(self, content):
        if len(self.taken) >= self.most:
            raise BrokenPipeError
        self.taken += bytes(content[:5])
        return len(content[:5])


def test_without_a_buffer_all_is_written(monkeypatch):
    raw = Raw()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, write_through=True))
    _to_standard_output(b"x,prediction\n1,2\n")
    assert raw.taken == b"x,prediction\n1,2\n"
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(Raw(10), write_through=True))
    with pytest.raises(BrokenPipeError):
        _to_standard_output(b"x,prediction\n1,2\n")


@posix
def test_nobody_reads_the_summary():
    """As a process: the status is that of everything else that nobody reads."""
    code = (
        "from mercer.cli.exits import run\nfrom mercer.cli.screen import Screen\n"
        "sys.exit(run(lambda: Screen().facts([('a', 'b')]) or 0))"
    )
    reader, writer = os.pipe()
    os.close(reader)
    done = in_python(code, stdout=writer)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def in_python(code, **options):
    script = f"import sys\nsys.path[:0] = {sys.path!r}\n{code}"
    return subprocess.run([sys.executable, "-c", script], stderr=subprocess.PIPE, timeout=60, **options)


def test_closed_streams(monkeypatch, capsys):
    """What is for standard error never goes to standard output instead."""
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", None)
        Screen().note("something")
    assert capsys.readouterr().out == ""
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", None)
        assert exits.run(lambda: print("unheard") or 0) == 0


def test_json_has_no_word_for_infinity(capsys):
    Screen().json({"a": float("inf"), "b": [np.float64("nan"), np.int64(3)], 4: np.array([0.5])})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [None, 3], "4": [0.5]}


@posix
def test_ctrl_c_ends_the_search_and_the_command(tmp_path, sine):
    """As a process. The search itself would stop early, and be content with what it has."""
    command = [
        sys.executable,
        "-m",
        "mercer",
        "train",
        str(sine),
        "-t",
        "y",
        "-o",
        str(tmp_path / "m.mercer"),
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    assert process.stderr.readline().startswith(b"reading")
    assert process.stderr.readline() == b"searching, without fold 1 of 5\n"
    process.send_signal(signal.SIGINT)
    assert process.stderr.read().splitlines()[-1] == b"mercer: interrupted; no file was left half written"
    assert process.wait(60) == 130
    assert list(tmp_path.iterdir()) == [sine]


@pytest.mark.sample(3)
@posix
@pytest.mark.parametrize("module", ["typer", "mercer.cli.commands", "mercer.cli.certify"])
def test_ctrl_c_while_it_begins(module):
    """As a process: at the import of something that takes a while."""
    code = f"""
import signal
class Interrupting:
    def find_spec(self, name, *rest):
        if name == {module!r}:
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
from mercer.cli import main
sys.exit(main(["certify", "linear()"]))
"""
    done = in_python(code, stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout) == (130, b"")
    assert done.stderr == b"mercer: interrupted; no file was left half written\n"


@posix
def test_ctrl_c_where_nothing_can_be_raised():
    """As a process: an exception in ``__del__`` goes nowhere, and the interruption ends what waits next."""
    code = """
import signal, time
from mercer.cli.exits import run
class Deaf:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
def action():
    Deaf()
    time.sleep(3600)  # an interruption that waits for its end comes too late for the test
    return 0
sys.exit(run(action))
"""
    done = in_python(code)
    assert (done.returncode, done.stderr) == (130, b"mercer: interrupted; no file was left half written\n")


def test_what_a_message_points_at(mercer, sine):
    status, _, err = mercer("train", sine, "-t", "y", "--kernel", "2 * gausian(1)")
    assert status == 2
    assert err == (
        "mercer: cannot read the kernel: there is no kernel 'gausian', did you mean 'gaussian'? "
        "('gausian' in '2 * gausian(1)')\n"
    )


@pytest.mark.parametrize("kernel", ["2*gaussian(sigma=median) + polynomial(3)", "gaussian(sigma=1).on(x)"])
def test_kernels_of_the_help(mercer, sine, kernel):
    status, out, _ = mercer("train", sine, "-t", "y", "--kernel", kernel, *QUICK[2:], "--json")
    assert status == 0
    assert json.loads(out)["error"] < 0.3


def test_a_terminal_sees_the_time_pass(monkeypatch):
    """The bar has the steps and the best kernel; notes and compiling are lines of their own."""
    from mercer.cli.screen import Screen
    from mercer.runtime import clock
    from mercer.runtime.config import settings

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(clock, "_LONG_COMPILING", -1.0)
    screen = Screen()
    with screen.countdown(30.0):
        screen.step("searching")
        settings().progress({"label": "kernels", "facts": {"best": "Matern 1.5", "tried": 3}})
        screen._bar._draw(0.0)
        clock.compiles()
        screen.note("a longer max_time")
    said = terminal.getvalue()
    assert "searching" in said and "of 0:30" in said and "best=Matern 1.5  tried=3" in said
    assert "\rcompiling, once on this machine: it is not counted as time …\n" in said
    assert "note: a longer --time\n" in said
    before = len(said)
    with Screen(quiet=True).countdown(30.0):
        pass
    assert len(terminal.getvalue()) == before
