"""Streams that cannot write every letter: the command spells them, and never fails."""

import io
import json
import os
import subprocess
import sys

import pytest

from mercer.cli.encoding import SPELLED, never_fail


def run(encoding, *arguments):
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYTHONIOENCODING": encoding,
        "PYTHONUTF8": "0",
        "LC_ALL": "C.UTF-8",  # of the arguments; PYTHONIOENCODING is that of the streams
    }
    command = [sys.executable, "-m", "mercer", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, timeout=120)


@pytest.mark.parametrize("encoding", [pytest.param("cp1252", marks=pytest.mark.full), "ascii"])
def test_every_command_writes_to_any_stream(encoding):
    done = run(encoding, "certify", "wendland(dim=3)")
    assert done.returncode == 0 and b"R^m" in done.stdout and b"m <= 3" in done.stdout
    assert done.stderr == b""


def test_errors_are_spelled_too():
    done = run("ascii", "certify", "gaussian(μ=1)")
    assert done.returncode == 2 and b"there is no parameter 'mu'" in done.stderr


def test_json_loses_no_letter():
    done = run("ascii", "certify", "wendland(dim=3)", "--json")
    assert done.returncode == 0 and "ℝ" in json.loads(done.stdout)["reason"]


def test_what_took_the_place_of_a_stream_stays_as_it_is(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", None)
    never_fail()
    assert stream.errors == SPELLED
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    never_fail()


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1", "cp437"])
def test_every_letter_has_a_spelling(encoding):
    letters = "".join(map(chr, [*range(0x20, 0x3000), 0xD800, 0x1D4B3, 0x10FFFF]))
    assert letters.encode(encoding, SPELLED)
