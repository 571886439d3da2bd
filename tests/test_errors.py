import subprocess
import sys
from pathlib import Path

import pytest

from mercer.errors import InputError, InputTypeError, MemoryBudgetError, SlowPathWarning, require

SOURCE = Path(__file__).resolve().parent.parent / "src" / "mercer"


def test_each_error_is_what_scikit_learn_users_catch():
    assert issubclass(InputError, ValueError)
    assert issubclass(InputTypeError, InputError) and issubclass(InputTypeError, TypeError)
    assert issubclass(MemoryBudgetError, MemoryError)
    assert issubclass(SlowPathWarning, UserWarning)


def test_require_gives_the_module():
    assert require("math", "nothing").sqrt(9.0) == 3.0
    assert require("os.path", "nothing").basename("a/b") == "b"


@pytest.mark.parametrize("module", ["nobody_has_this", "nobody_has_this.part"])
def test_require_names_the_line_that_installs(module):
    with pytest.raises(ImportError) as caught:
        require(module, "torch")
    assert str(caught.value) == 'nobody_has_this is not installed: run  pip install "mercer[torch]"'
    assert caught.value.name == "nobody_has_this"


def test_require_leaves_the_error_of_a_broken_library_alone(tmp_path, monkeypatch):
    (tmp_path / "broken_library.py").write_text("import its_missing_dependency\n")
    (tmp_path / "crashing_library.py").write_text("raise ImportError('libcuda.so.1 is missing')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="its_missing_dependency"):
        require("broken_library", "torch")
    with pytest.raises(ImportError, match="libcuda"):
        require("crashing_library", "torch")


def test_these_modules_import_nothing_heavy():
    """In a process of its own, without the package's __init__: only these files are in question."""
    program = f"""
import sys, types
package = types.ModuleType("mercer")
package.__path__ = [{str(SOURCE)!r}]
sys.modules["mercer"] = package
import mercer.runtime.config, mercer.data.points, mercer.errors, mercer.runtime.progress
heavy = ("sklearn", "numba", "torch", "pandas", "polars", "psutil", "matplotlib", "scipy.special")
print([name for name in heavy if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
