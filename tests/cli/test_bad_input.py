"""Whatever is wrong: one sentence on standard error, the status says so, and no output is touched."""

import gzip
import io
import os
import signal
import subprocess
import sys
import time

import pytest

from mercer.cli import exits

from .conftest import QUICK


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "nothing.csv", "-t", "y"], "there is no file 'nothing.csv'"),
        (["train", "one.csv", "alone.csv", "-t", "y"], "one.csv has the column 'x', and alone.csv has not"),
        (
            ["train", "flowers.csv"],
            "say which column to predict with --target: flowers.csv has 'length', 'colour', ",
        ),
        (["train", "flowers.csv", "-t", "specie"], "has no column 'specie': did you mean 'species'?"),
        (
            ["train", "flowers.csv", "-t", "species", "--task", "regression"],
            "holds 'rose', which is no number",
        ),
        (["train", "flowers.csv", "-t", "species", "--task", "sorting"], "task must be 'classification' or"),
        (
            ["train", "flowers.csv", "-t", "species", "--learner", "ridge"],
            "'ridge' is not for classification",
        ),
        (
            ["train", "flowers.csv", "-t", "species", "--learner", "magic"],
            "'magic' is no learner: choose auto, svm",
        ),
        (["train", "flowers.csv", "-t", "species", "--kernel", "__import__('os')"], "mercer: "),
        (
            ["train", "flowers.csv", "-t", "species", "--kernel", "polynomial(1000000)", *QUICK[2:]],
            "is not finite at these points",
        ),
        (["train", "flowers.csv", "-t", "species", "--memory", "much"], "memory is not a size, got 'much'"),
        (["train", "flowers.csv", "-t", "species", "--memory", "1KiB"], "and the budget is 1KiB: raise it"),
        (
            ["train", "flowers.csv", "-t", "species", "--time", "-1"],
            "--time must be a positive number of seconds",
        ),
        (["train", "flowers.csv", "-t", "species", "--folds", "-3"], "--folds must be 2 or more"),
        (["train", "flowers.csv", "-t", "species", "--seed", "-1"], "--seed must be from 0"),
        (["train", "flowers.csv", "-t", "species", "-o", "no/m.mercer"], "the folder 'no' does not exist"),
        (
            ["train", "flowers.csv", "-t", "species", "-o", "flowers.csv"],
            "--output and the table are the same",
        ),
        (["train", "flowers.csv", "-t", "species", "-o", "a", "--report", "a"], "are the same file"),
        (["train", "one.csv", "-t", "y"], "has one class, 'a', in all 30 rows"),
        (["train", "alone.csv", "-t", "y"], "has no column but the target 'y'"),
        (["train", "cut.csv.gz", "-t", "y"], "is cut off: its gzip data end too early"),
        (
            ["train", "few.csv", "-t", "y"],
            "there are 3 rows with a target, too few for an error: pass 4 or more",
        ),
        (
            ["train", "few.csv", "-t", "y", "--folds", "2"],
            "there are 3 rows with a target, too few for an error",
        ),
        (
            ["train", "enough.csv", "-t", "y", "--folds", "9"],
            "9 folds of 5 rows cannot be made: pass a smaller",
        ),
        (["predict", "nothing.mercer", "flowers.csv"], "the model 'nothing.mercer' does not exist"),
        (["predict", "flowers.csv", "flowers.csv"], "mercer: "),
        (["report", "flowers.csv", "flowers.csv"], "mercer: "),
        (["certify", "gaussian("], "mercer: "),
        (["certify", ""], "mercer: "),
        (["mail", "train", "spam", "ham"], "mercer: "),
        (["mail", "classify", "nothing.mercer"], "the model 'nothing.mercer' does not exist"),
        (["mail", "classify", "flowers.csv"], "mercer: "),
        (["train"], "Missing argument"),
        (["train", "flowers.csv", "--tagret", "species"], "No such option"),
        (["trian"], "No such command 'trian'"),
        *(
            (arguments, "the name is empty: name a file or a folder")
            for arguments in (
                ["train", "", "-t", "species"],
                ["train", "flowers.csv", "-t", "species", "-o", ""],
                ["train", "flowers.csv", "-t", "species", "--report", ""],
                ["predict", "", "flowers.csv"],
                ["predict", "flowers.mercer", ""],
                ["predict", "flowers.mercer", "flowers.csv", "-o", ""],
                ["report", "flowers.mercer", "flowers.csv", "-o", ""],
                ["mail", "train", "", "ham"],
                ["mail", "train", "spam", ""],
                ["mail", "train", "spam", "ham", "-o", ""],
                ["mail", "train", "spam", "ham", "--report", ""],
                ["mail", "classify", ""],
                ["mail", "classify", "filter.mercer", "a.eml", ""],
                ["demo", ""],
            )
        ),
        (["train", "flowers.csv", "-t", "species", "--seed", "many"], "--seed"),
    ],
)
def test_one_sentence_and_status_2(mercer, flowers, tmp_path, arguments, message):
    (tmp_path / "one.csv").write_text("x,y\n" + "".join(f"{i * i},a\n" for i in range(30)))
    (tmp_path / "alone.csv").write_text("y\n" + "a\nb\n" * 5)
    (tmp_path / "few.csv").write_text("x,y\n1,1.5\n2,2.5\n3,4.5\n")
    (tmp_path / "enough.csv").write_text("x,y\n1,1.5\n2,2.5\n3,4.5\n5,7.5\n8,8.5\n")
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"x,y\n1,2\n" * 50)[:-15])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    status, out, err = mercer(*arguments)
    assert status == 2
    assert out == ""
    assert message in err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    said = [line for line in err.splitlines() if line.startswith("mercer: ")]
    if said:
        assert len(said) == 1
        assert "a mistake in mercer" not in said[0]
        assert err.splitlines()[-1] == said[0]


def test_a_damaged_model(mercer, flowers, model):
    content = model.read_bytes()
    model.write_bytes(content[: len(content) // 2])
    status, out, err = mercer("predict", "flowers.mercer", flowers)
    assert (status, out) == (2, "")
    assert err.startswith("mercer: ")


def test_other_columns_than_the_model_knows(mercer, model, tmp_path):
    (tmp_path / "other.csv").write_text("length,hue\n1,red\n")
    (tmp_path / "wrong.csv").write_text("length,colour\nlong,red\n")
    for name, message in (("other.csv", "has no column 'colour'"), ("wrong.csv", "and has 'long' in row 1")):
        status, out, err = mercer("predict", "flowers.mercer", name)
        assert (status, out) == (2, "")
        assert message in err


def test_no_probabilities_of_numbers(mercer, sine):
    assert mercer("train", sine, "-t", "y", *QUICK)[0] == 0
    status, _, err = mercer("predict", "sine.mercer", sine, "--proba")
    assert status == 2
    assert "this model knows no probabilities" in err


def test_an_existing_output_is_never_half_overwritten(mercer, sine, tmp_path, monkeypatch):
    (tmp_path / "sine.mercer").write_text("the old one")

    def save(model, path):
        path.write_text("half of the n")
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("mercer.save", save, raising=False)
    status, _, err = mercer("train", sine, "-t", "y", *QUICK)
    assert status == 2
    assert "No space left on device" in err
    assert (tmp_path / "sine.mercer").read_text() == "the old one"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sine.csv", "sine.mercer"]


# --- how it ends -------------------------------------------------------------------------------------------


def raising(error):
    def action():
        raise error

    return action


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 2, "not enough memory"),
        (
            ImportError("skops is not installed: run  pip install"),
            2,
            "skops is not installed: run pip install",
        ),
        (PermissionError(13, "Permission denied", "x.csv"), 2, "x.csv: Permission denied"),
        (
            ZeroDivisionError("division by zero"),
            70,
            "a mistake in mercer, please report it: ZeroDivisionError",
        ),
    ],
)
def test_every_end_has_a_status(capsys, monkeypatch, error, status, said):
    monkeypatch.delenv("MERCER_DEBUG", raising=False)
    assert exits.run(raising(error)) == status
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_mistakes_can_be_seen(monkeypatch):
    monkeypatch.setenv("MERCER_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        exits.run(raising(ZeroDivisionError()))


def test_warnings_are_sentences(capsys):
    import warnings

    def action():
        warnings.warn("it did not\nconverge", UserWarning, stacklevel=1)
        return 0

    assert exits.run(action) == 0
    assert capsys.readouterr().err == "note: it did not converge\n"
    assert exits.run(action, quiet=True) == 0
    assert capsys.readouterr().err == ""


def test_without_typer(monkeypatch, capsys):
    from mercer.cli import main

    monkeypatch.setitem(sys.modules, "typer", None)
    assert main(["--version"]) == 2
    assert capsys.readouterr().err == 'mercer: typer is not installed: run pip install "mercer[cli]"\n'


def start(*arguments, **options):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-m", "mercer", *arguments], env=environment, **options)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_interrupted(tmp_path):
    """As a process: Ctrl-C while it waits for its input."""
    process = start("train", "-", "-t", "y", stdin=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path)
    assert process.stderr.readline() == b"reading standard input\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    assert process.stderr.read() == b"mercer: interrupted; no file was left half written\n"
    assert process.wait(60) == 130


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
def test_unheard():
    """As a process: nobody reads what it prints."""
    reader, writer = os.pipe()
    os.close(reader)
    process = start("certify", "linear()", stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert process.stderr.read() == b""
    assert process.wait(60) == 141


def test_a_terminal_is_no_table(monkeypatch, mercer):
    class Terminal(io.BytesIO):
        def isatty(self):
            return True

    class Standard:
        buffer = Terminal()

    monkeypatch.setattr("sys.stdin", Standard)
    status, _, err = mercer("train", "-", "-t", "y")
    assert status == 2
    assert "standard input is a terminal" in err
