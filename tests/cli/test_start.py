"""What the command loads before it does anything."""

import importlib
import subprocess
import sys
import threading

import pytest
import sklearn

from mercer import load
from mercer.runtime.imports import ADAPTERS, _unlisted, refusing


def loaded_by(code):
    """Which of the large libraries a new process has after some code, and what that prints."""
    large = ("torch", "dask", "matplotlib", "polars", "sklearn", "numba", "skops")
    script = (
        f"import sys\nsys.path[:0] = {sys.path!r}\n{code}\nprint(*(m for m in {large} if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_help_loads_nothing_large():
    *_, large = loaded_by("from mercer.cli import main\nmain(['train', '--help'])")
    assert large == ""


def test_model_files_need_no_torch():
    """skops lists all of scikit-learn's estimators; the list is whole without the adapters' libraries."""
    code = (
        "from mercer.persist.archive import _skops\n_skops()\n"
        "from skops.io._trusted_types import SKLEARN_ESTIMATOR_TYPE_NAMES as names\n"
        "print('torch' in sys.modules, 'dask' in sys.modules)\n"
        "print(len(names) > 150, 'sklearn.svm._classes.SVC' in names)"
    )
    assert loaded_by(code)[:2] == ["False False", "True True"]


def test_the_command_alone_loads_no_more_than_it_needs(tmp_path):
    """Neither pandas nor scipy.stats, nor what skops would list; its model is one for everybody."""
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{i % 7},{i % 5 + i % 7}\n" for i in range(20)))
    model = tmp_path / "t.mercer"
    code = (
        f"sys.argv = ['mercer', 'train', {str(tmp_path / 't.csv')!r}, '-t', 'y', '-o', {str(model)!r},"
        " '--kernel', 'linear', '--folds', '2', '--no-report', '--json', '-q']\n"
        "from mercer.cli import main\nassert main() == 0\n"
        "heavy = ('pandas', 'sklearn.model_selection', 'sklearn.metrics', 'sklearn.ensemble', 'pytest',"
        " 'numpy.f2py.f2py2e', 'scipy.ndimage', 'asyncio.events')\n"
        "print([name for name in heavy if name in sys.modules], type(sys.modules['scipy.stats']).__name__)"
    )
    _, left_out, large = loaded_by(code)
    heavy, stats = left_out.split()
    # An older scikit-learn reads names of scipy.stats while it is imported.
    assert heavy == "[]" and (stats == "_LazyModule" or sklearn.__version__ < "1.9")
    assert large == "polars sklearn numba skops"
    assert load(model).about_["target"] == "y"


def test_only_this_thread_and_only_meanwhile(tmp_path, monkeypatch):
    (tmp_path / "left_out_for_a_while.py").write_text("x = 1")
    monkeypatch.syspath_prepend(tmp_path)
    name, found = "left_out_for_a_while", []
    with refusing((name,)):
        with pytest.raises(ImportError, match="is left out"):
            importlib.import_module(name)
        other = threading.Thread(target=lambda: found.append(importlib.import_module(name).x))
        other.start()
        other.join()
    assert found == [1]
    del sys.modules[name]
    assert importlib.import_module(name).x == 1
    assert all(module.startswith("sklearn.externals.") for module in ADAPTERS)


def test_garbage_is_looked_for_as_ever_from_the_work_on():
    """A command alone puts it off while it loads; a program that imports mercer is left as it was."""
    code = (
        "import gc\nusual = gc.get_threshold()\nsys.argv = [{!r}]\nimport mercer\n"
        "print(gc.get_threshold() == usual)\n"
        "from mercer.runtime import start\nstart.begins()\nprint(gc.get_threshold() == usual, gc.isenabled())"
    )
    assert loaded_by(code.format("/usr/bin/mercer"))[:2] == ["False", "True True"]
    assert loaded_by(code.format("fit.py"))[:2] == ["True", "True True"]


def test_what_names_nothing_names_it_again():
    import numpy

    names = dir(numpy)
    with _unlisted(numpy), _unlisted(threading):
        assert dir(numpy) == [] and dir(threading) == []
    assert dir(numpy) == names and "Thread" in dir(threading)
