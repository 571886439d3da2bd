"""What the tests of the command share: it runs in this process, in a folder of its own."""

import io
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("polars")
pytest.importorskip("skops")

#: one kernel, no pictures, two folds: the shortest way through a training
QUICK = ("--kernel", "gaussian(sigma=1.0)", "--no-report", "--folds", "2")


@pytest.fixture
def mercer(tmp_path, monkeypatch, capsysbinary):
    """A function that runs the command; it returns status, standard output and standard error."""
    from mercer.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MERCER_DEBUG", raising=False)

    def run(*arguments):
        capsysbinary.readouterr()
        status = main([str(argument) for argument in arguments])
        said = capsysbinary.readouterr()
        out, err = said.out.decode(), said.err.decode()
        assert "Traceback" not in err
        return status, out, err

    return run


def table_of_flowers():
    """Two kinds of columns, and three classes that can be told apart."""
    generator = np.random.default_rng(0)
    lines = ["length,colour,species"]
    for i in range(60):
        species = ("rose", "lily", "iris")[i % 3]
        colour = {"rose": "red", "lily": "white", "iris": "white"}[species]
        lines.append(
            f"{generator.normal({'rose': 0, 'lily': 5, 'iris': 10}[species]):.3f},{colour},{species}"
        )
    return "\n".join(lines) + "\n"


@pytest.fixture
def flowers(tmp_path):
    """The table in the folder of the test."""
    path = tmp_path / "flowers.csv"
    path.write_text(table_of_flowers())
    return path


@pytest.fixture
def sine(tmp_path):
    """A table for regression, which takes less time than classes do."""
    x = np.linspace(-3, 3, 50)
    path = tmp_path / "sine.csv"
    path.write_text("x,y\n" + "".join(f"{a},{np.sin(a)}\n" for a in x))
    return path


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """The file of a model that was trained on the flowers, once for all tests, and what it said."""
    from mercer.cli import main

    folder = tmp_path_factory.mktemp("flowers")
    (folder / "flowers.csv").write_text(table_of_flowers())
    place, out, err = folder / "flowers.mercer", io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main(["train", str(folder / "flowers.csv"), "-t", "species", *QUICK, "-o", str(place)])
    assert status == 0, err.getvalue()
    assert sorted(path.name for path in folder.iterdir()) == ["flowers.csv", "flowers.mercer"]
    return place.read_bytes(), out.getvalue(), err.getvalue()


@pytest.fixture
def model(tmp_path, trained):
    """That file in the folder of the test."""
    (tmp_path / "flowers.mercer").write_bytes(trained[0])
    return tmp_path / "flowers.mercer"
