"""Where outputs go: links, pipes, closed streams, files that are inputs too; and Ctrl-C on the way."""

import json
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from mercer import files
from mercer.cli import exits
from mercer.cli.screen import Screen

from .conftest import QUICK

posix = pytest.mark.skipif(sys.platform == "win32", reason="links, pipes and signals of POSIX")


@posix
def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    with files.aside(tmp_path / "link.txt") as place:
        place.write_text("new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"
    assert len(list(tmp_path.iterdir())) == 2


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
    assert process.stderr.readline() == b"searching\n"
    process.send_signal(signal.SIGINT)
    assert process.stderr.read().splitlines()[-1] == b"mercer: interrupted; no file was left half written"
    assert process.wait(30) == 130
    assert list(tmp_path.iterdir()) == [sine]


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
