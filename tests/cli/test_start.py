"""What the command loads before it does anything."""

import importlib
import subprocess
import sys
import threading

import pytest

from mercer.runtime.imports import ADAPTERS, refusing


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
