"""Backends: where a Gram's blocks are computed. Each is loaded when it is first used."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from mercer.errors import InputError

if TYPE_CHECKING:
    from mercer.gram.backends.base import Backend
    from mercer.kernels.formula.program import Program

__all__ = ["BACKENDS", "backend_of", "make_backend"]

BACKENDS = {
    "numpy": ("mercer.gram.backends.numpy", "NumpyBackend"),
    "numba": ("mercer.gram.backends.numba.backend", "NumbaBackend"),
    "torch": ("mercer.gram.backends.torch", "TorchBackend"),
    "triton": ("mercer.gram.backends.triton.backend", "TritonBackend"),
}


def make_backend(name: str | None, program: Program, dtype: Any, device: str = "cpu") -> Backend[Any]:
    """The backend of that name for a program; by default Numba on the CPU, Triton on CUDA, Torch elsewhere.

    Where Triton is not installed, Torch takes its place.

    Where nothing may be compiled (``NUMBA_DISABLE_JIT=1``), NumPy takes Numba's place.
    """
    name = backend_of(name, device)
    if name in (None, "numba"):
        compiles = _loaded("mercer.runtime.native").compiles()
        if name == "numba" and not compiles:
            raise InputError(
                "backend='numba' compiles its code, got NUMBA_DISABLE_JIT=1, which forbids it: unset "
                "that variable, or let mercer choose (backend=None), which takes 'numpy' then"
            )
        name = "numba" if compiles else "numpy"
    module, attribute = BACKENDS[name]
    backend: Backend[Any] = getattr(_loaded(module), attribute)(program, dtype, device)
    return backend


def backend_of(name: str | None, device: str) -> str | None:
    """The backend that computes on a device; None where Numba does if it may."""
    if name is None and device != "cpu":
        return "triton" if device.startswith("cuda") and _is_installed("triton") else "torch"
    return name


@cache
def _is_installed(library: str) -> bool:
    return find_spec(library) is not None


@cache
def _loaded(module: str) -> Any:
    with _uncollected():
        return import_module(module)


@contextmanager
def _uncollected() -> Iterator[None]:
    """No garbage collection meanwhile: loading Numba makes many objects, and it costs a quarter of that."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # Both together make old what is alive now, so that it is not looked through at once.
        gc.unfreeze()
        if was_enabled:
            gc.enable()
