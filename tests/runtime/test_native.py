"""What compiling does to the rest of the process, and what it leaves out."""

import gc
import os

import numpy as np
import pytest

from mercer import Gaussian, config
from mercer.gram import Gram
from mercer.gram.backends.numba import loops
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


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_read_only_points_and_vectors_need_no_code_of_their_own(precision, rng):
    """As joblib hands them to its workers: the tile loop takes seconds to compile."""
    X, V = rng.normal(size=(30, 12)), rng.normal(size=(30, 2))
    with config(dtype=precision):
        wanted = Gram(Gaussian(2.0), X) @ V
        known = len(loops.sweep.signatures)
        X.setflags(write=False)
        V.setflags(write=False)
        np.testing.assert_array_equal(Gram(Gaussian(2.0), X) @ V, wanted)
    assert len(loops.sweep.signatures) == known
