"""``mercer patched SCRIPT``: as ``python SCRIPT``, but for what the script finds in scikit-learn."""

import os
import subprocess
import sys

import pytest

from mercer.cli import main

SCRIPT = """\
import sys
from sklearn.svm import SVC

def stop(how):
    if how == "raise":
        raise KeyError(how)
    sys.exit(int(how))

if __name__ == "__main__":
    import pickle, beside
    print(SVC.__module__.partition(".")[0], sys.argv, __file__, __spec__ is None, __package__)
    print(sys.path[0], sys.modules["__main__"].stop is stop, pickle.loads(pickle.dumps(stop)) is stop)
    if sys.argv[1:]:
        stop(sys.argv[1])
"""


def python(*arguments, cwd, **options):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, env=environment, cwd=cwd, capture_output=True, text=True, check=False, **options
    )


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "fit.py").write_text(SCRIPT)
    (tmp_path / "jobs" / "beside.py").write_text("")
    return tmp_path


@pytest.mark.sample(3)
@pytest.mark.parametrize("arguments", [["raise", "--help"], [], ["3"]], ids=["raises", "ends", "exits"])
def test_a_script_runs_as_python_runs_it(folder, arguments):
    script = os.path.join("jobs", "fit.py")
    plain = python(script, *arguments, cwd=folder)
    done = python("-m", "mercer", "patched", script, *arguments, cwd=folder)
    assert done.stdout.startswith("mercer ") and plain.stdout.startswith("sklearn ")
    assert done.stdout.split(" ", 1)[1] == plain.stdout.split(" ", 1)[1]
    assert (done.returncode, done.stderr) == (plain.returncode, plain.stderr)
    assert plain.returncode == {"": 0, "3": 3, "raise": 1}["".join(arguments[:1])]


def test_a_module_runs_from_the_current_folder(folder):
    done = python("-m", "mercer", "patched", "-m", "fit", "4", cwd=folder / "jobs")
    own = str(folder / "jobs" / "fit.py")
    assert (done.returncode, done.stderr) == (4, "")
    assert done.stdout.splitlines()[0] == f"mercer {[own, '4']} {own} False "
    assert done.stdout.splitlines()[1] == f"{folder / 'jobs'} True True"


@pytest.mark.full
def test_a_script_that_python_cannot_read(folder):
    (folder / "bad.py").write_text("x = (\n")
    plain, done = python("bad.py", cwd=folder), python("-m", "mercer", "patched", "bad.py", cwd=folder)
    assert "SyntaxError" in plain.stderr and (done.returncode, done.stderr) == (1, plain.stderr)
    done = python("-m", "mercer", "patched", "none.py", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "mercer: there is no script 'none.py'\n")


def test_neither_typer_nor_rich_is_needed(folder):
    """Nor is what the command leaves out, to start soon, left out for the script."""
    (folder / "plain.py").write_text("import gc, pandas\nprint(gc.get_threshold()[0] < 10_000)\n")
    pytest.importorskip("pandas")
    program = (
        "import sys\nsys.modules['typer'] = sys.modules['rich'] = None\n"
        "from mercer.cli import main\nsys.exit(main(['patched', 'plain.py']))"
    )
    done = python("-c", program, cwd=folder)
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.parametrize(("arguments", "status"), [(["--help"], 0), ([], 2), (["-m"], 2)])
def test_how_it_is_used(arguments, status, capsys):
    assert main(["patched", *arguments]) == status
    said = capsys.readouterr()
    assert (said.err if status else said.out).startswith("Usage: mercer patched SCRIPT [ARGS]...\n")
    assert "SVC, NuSVC, SVR" in said.out + said.err


def test_the_help_of_the_command_names_it(capsys):
    pytest.importorskip("typer")
    assert main(["--help"]) == 0
    assert "mercer patched fit.py" in capsys.readouterr().out
