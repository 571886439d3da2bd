"""Generated code: kept in files, safe to share, never compiled twice."""

import os
import re
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from mercer.runtime.cache_folder import cache_folder


def environment(cache):
    """Generated code goes to ``cache``; what all kernels share need not be compiled anew for it."""
    shared = cache_folder()
    known = {} if shared is None else {"NUMBA_CACHE_DIR": str(shared)}
    return {**os.environ, **known, "MERCER_CACHE_DIR": str(cache)}


def run(script, cache):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        env=environment(cache),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


USE = """
    from mercer import Gaussian, Gram
    K = Gram(Gaussian(sigma={sigma}), [[0.0], [1.0]])
    print(round(float(K.dense()[0, 1]), 6))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The place of a cache that the first test makes."""
    return tmp_path_factory.mktemp("cache") / "new"


@pytest.fixture
def use(fork, cached_in, folder):
    """What a process of its own prints that computes a Gram matrix with that cache."""

    def use(sigma, more=""):
        return fork(cached_in(folder) + textwrap.dedent(USE.format(sigma=sigma) + more)).said()

    return use


def test_a_new_parameter_value_makes_no_new_file(use, folder):
    assert use(1.0) == "0.606531"
    files = sorted(folder.rglob("*"))
    assert any(path.suffix == ".py" for path in files)
    found = use(2.0, "    print(K._backend.tile.cache_hits)")
    assert found.split() == ["0.882497", "1"]  # what Numba compiled for the first process is there
    assert sorted(folder.rglob("*")) == files


def test_files_are_for_the_user_alone(use, folder):
    assert use(1.0) == "0.606531"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not list(folder.glob("*.tmp"))


@pytest.mark.full  # threads take turns in the same way
@pytest.mark.slow
def test_two_processes_at_once(tmp_path):
    script = textwrap.dedent(USE.format(sigma=1.0))
    both = [
        subprocess.Popen(
            [sys.executable, "-c", script], env=environment(tmp_path), stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    assert [process.communicate()[0].strip() for process in both] == ["0.606531"] * 2


def test_import_is_light():
    """No optional or heavy library, and nothing compiled, before it is needed."""
    script = """
        import sys
        import mercer
        heavy = {"torch", "dask", "matplotlib", "sklearn", "pandas", "polars", "numba", "rich", "typer"}
        print(sorted(heavy & set(sys.modules)))
    """
    assert run(script, "unused-cache-folder") == "[]"


def test_threads_wait_for_each_other(tmp_path, fork, cached_in):
    """A module is in sys.modules before it is complete: a second thread must not take it then."""
    script = """
        from concurrent.futures import ThreadPoolExecutor
        from threading import Barrier
        from mercer import Gaussian

        together = Barrier(4)

        def value(i):
            together.wait()
            return float(Gaussian(sigma=1.0)([[0.0], [1.0]])[0, 1])

        with ThreadPoolExecutor(4) as pool:
            print(len(set(pool.map(value, range(4)))))
    """
    assert fork(cached_in(tmp_path / "new") + textwrap.dedent(script)).said() == "1"


def test_environment_variables_are_documented():
    root = Path(__file__).parents[4]
    sources = [path.read_text("utf-8") for path in (root / "src").rglob("*.py")]
    used = {name for text in sources for name in re.findall(r"environ\S*?[\"'](MERCER_\w+)", text)}
    assert "MERCER_CACHE_DIR" in used
    pages = "".join(path.read_text("utf-8") for path in (root / "docs").glob("*.md"))
    assert not [name for name in used if name not in pages]
