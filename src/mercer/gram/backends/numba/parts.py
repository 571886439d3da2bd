"""The parts of the tile loop as C functions: compiled, or loaded, when they are first asked for."""

from __future__ import annotations

import ctypes
from threading import Lock
from typing import Any

import numpy as np
from numba import from_dtype, types

from mercer.gram.backends.numba.distances import (
    distances_from_differences,
    distances_from_products,
    repair_distances,
)
from mercer.gram.backends.numba.finish import add_by_sets, mirror_below, mirror_diagonal, multiply, scatter
from mercer.gram.backends.numba.job import JOB
from mercer.gram.backends.numba.loops import sweep
from mercer.gram.backends.numba.planes import copy_external, copy_values, fill_planes, shift_back
from mercer.runtime.native import c_function

_PARTS = {
    part.__name__: part
    for part in (
        sweep, fill_planes, distances_from_differences, distances_from_products, repair_distances,
        copy_values, copy_external, shift_back, scatter, mirror_diagonal, mirror_below, multiply, add_by_sets,
    )
}  # fmt: skip
_C_FLOAT = {np.dtype(np.float32): ctypes.c_float, np.dtype(np.float64): ctypes.c_double}


class TileLoop:
    """The tile loop for a precision of K and one of the points that squared distances are repaired from."""

    def __init__(self, real: np.dtype[Any], exact: np.dtype[Any]) -> None:
        self._signature = types.void(JOB, from_dtype(real), from_dtype(exact))
        self._guard = Lock()
        self._compiled: dict[str, Any] = {}
        arguments = ctypes.c_void_p, _C_FLOAT[real], _C_FLOAT[exact]
        #: calls the loop with a job, τ and any number of the other precision; other threads run meanwhile
        self.sweep = ctypes.CFUNCTYPE(None, *arguments)(self.address("sweep"))

    def compile(self) -> None:
        """Compile all parts now; otherwise each is compiled when it is first needed."""
        for name in _PARTS:
            self.address(name)

    def address(self, name: str) -> int:
        """Where the part of that name is."""
        part = self._compiled.get(name)
        if part is None:
            with self._guard:  # where several threads ask, one compiles
                part = self._compiled.get(name) or c_function(_PARTS[name], self._signature)
                self._compiled[name] = part
        return int(part.address)


_loops: dict[tuple[Any, Any], TileLoop] = {}
_guard = Lock()


def tile_loop(real: np.dtype[Any], exact: np.dtype[Any]) -> TileLoop:
    """The one loop for these precisions."""
    loop = _loops.get((real, exact))
    if loop is None:
        with _guard:
            loop = _loops[real, exact] = _loops.get((real, exact)) or TileLoop(real, exact)
    return loop
