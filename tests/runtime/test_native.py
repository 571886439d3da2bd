"""What compiling does to the rest of the process, and what it leaves out."""

import gc
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from mercer import Gaussian, config
from mercer.gram import Gram
from mercer.gram.backends.numba import parts
from mercer.runtime.native import njit


@pytest.mark.parametrize("is_enabled", [True, False])
def test_no_garbage_is_collected_while_code_is_compiled(is_enabled, monkeypatch):
    from numba.core import compiler

    seen = []
    before = compiler.CompilerBase.compile_extra

    def watched(self, func):
        seen.append(gc.isenabled())
        return before(self, func)

    monkeypatch.setattr(compiler.CompilerBase, "compile_extra", watched)
    was_enabled = gc.isenabled()
    try:
        gc.enable() if is_enabled else gc.disable()
        assert njit()(lambda x: x + 1)(1) == 2
        assert gc.isenabled() is is_enabled
    finally:
        gc.enable() if was_enabled else gc.disable()
    assert seen and not any(seen)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_child_of_a_process_that_compiles_collects_garbage():
    from mercer.runtime import native

    native._begin()
    try:
        child = os.fork()
        if child == 0:
            os._exit(0 if gc.isenabled() else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert not gc.isenabled()
    finally:
        native._end()
    assert gc.isenabled()


def compiled_parts():
    return {key: set(loop._compiled) for key, loop in parts._loops.items()}


def test_a_sweep_is_called_while_that_of_another_precision_is_compiled(rng):
    """Several threads, each with Grams of its own, when one of them is the first of its precision."""
    X, ended = rng.normal(size=(40, 3)), []
    Gram(Gaussian(2.0), X).dense()

    def call():
        while not ended:
            Gram(Gaussian(2.0), X).dense()

    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(call) for _ in range(2)]
        try:
            for _ in range(5):
                parts._loops.pop((np.dtype(np.float32), np.dtype(np.float64)), None)
                with config(dtype="float32"):
                    Gram(Gaussian(2.0), X).dense()
        finally:
            ended.append(True)
    assert [done.result() for done in calls] == [None, None]


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_read_only_points_and_vectors_need_no_code_of_their_own(precision, rng):
    """As joblib hands them to its workers: the tile loop takes seconds to compile."""
    X, V = rng.normal(size=(30, 12)), rng.normal(size=(30, 2))
    with config(dtype=precision):
        wanted = Gram(Gaussian(2.0), X) @ V
        known = compiled_parts()
        X.setflags(write=False)
        V.setflags(write=False)
        np.testing.assert_array_equal(Gram(Gaussian(2.0), X) @ V, wanted)
    assert compiled_parts() == known


def test_code_is_kept_for_what_it_calls_too(tmp_path, fork, cached_in):
    """A function is compiled again when the file of one that it calls changes, its own being as it was."""
    ours = "from mercer.runtime.native import njit\n"
    called = f"{ours}@njit()\ndef factor():\n    return 2\n"
    calls = f"from called import factor\n{ours}@njit(cache=True)\ndef twice(x):\n    return factor() * x\n"
    (tmp_path / "called.py").write_text(called)
    (tmp_path / "calls.py").write_text(calls)
    script = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from calls import twice
print(twice(3), len(twice.stats.cache_hits))
"""

    def said():
        return fork(cached_in(tmp_path / "cache") + script).said()

    assert [said(), said()] == ["6 0", "6 1"]
    (tmp_path / "called.py").write_text(called.replace("return 2", "return 5"))
    assert said() == "15 0"
