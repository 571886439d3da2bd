r"""What all compiled code shares: how it is compiled and kept, and the bits of floating-point numbers.

Compiled functions are kept in the user's ``cache_folder`` (or in ``NUMBA_CACHE_DIR``, where that is set), and
never beside the sources: these may be read-only, or everybody's. Without a folder they stay in memory.

With ``NUMBA_DISABLE_JIT=1`` nothing is compiled: every function runs as Python, slowly, and a debugger can
step through it.
"""

from __future__ import annotations

import gc
import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import caching, event
from numba.core.ccallback import CFunc
from numba.core.sigutils import normalize_signature

from mercer.runtime import clock
from mercer.runtime.cache_folder import cache_folder

#: Numba may contract to fused multiply-add and ignore the signs of zeros; nothing may be reordered.
FASTMATH = {"contract", "nsz"}
#: the options of every compiled function here; a division never checks for zero, and C finds no door
OPTIONS: dict[str, Any] = {"fastmath": FASTMATH, "error_model": "numpy", "no_cfunc_wrapper": True}
#: the options of functions for C, which know no arrays: no references are counted, and no terms rewritten
FOR_C: dict[str, Any] = {**OPTIONS, "no_rewrites": True, "_nrt": False}
#: the options of functions that only compiled code calls: a door for Python would take long to compile
INNER: dict[str, Any] = {**OPTIONS, "no_cpython_wrapper": True}


def compiles() -> bool:
    """Whether functions are compiled at all: not with ``NUMBA_DISABLE_JIT=1``."""
    return not numba.config.DISABLE_JIT


# --- keeping what was compiled ---------------------------------------------------------------------


# This class takes the folder of NUMBA_CACHE_DIR. Versions of Numba give it different names; it is the first.
_Named = caching.CompileResultCacheImpl._locator_classes[0]


@cache
def _stamp(folder: str) -> str:
    """A stamp of the files beside a function and of those here: its compiled code includes what it calls."""
    places = sorted({Path(folder), Path(__file__).parent})
    texts = [path.read_bytes() for place in places for path in sorted(place.glob("*.py"))]
    return hashlib.sha256(b"".join(texts)).hexdigest()


class _Chosen(_Named):  # type: ignore[misc, valid-type]
    """The place in the folder of ``NUMBA_CACHE_DIR``; Numba itself looks at the function's own file alone."""

    def get_source_stamp(self) -> Any:
        return _stamp(os.path.dirname(self._py_file))


class _Locator(_Chosen):
    """The place of a function's compiled code in our folder."""

    def __init__(self, py_func: Any, py_file: str) -> None:
        super().__init__(py_func, py_file)
        self._cache_path = os.path.join(str(cache_folder()), self.get_suitable_cache_subpath(py_file))

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        if cache_folder() is None:
            return None
        return super(_Named, cls).from_function(py_func, py_file)


class _Implementation(caching.CompileResultCacheImpl):
    _locator_classes = [_Chosen, _Locator]


class _Kept(caching.FunctionCache):
    """Numba's cache in our folder; a disk that is full, or gone, costs the time to compile and no more."""

    _impl_class = _Implementation

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        with suppress(OSError):
            return super().load_overload(sig, target_context)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)


def njit(*, cache: bool = False, **options: Any) -> Callable[[Any], Any]:
    """Numba's ``njit``; with ``cache`` the code is kept on disk where a disk is to be had, else in memory."""

    def decorate(function: Any) -> Any:
        if not compiles():
            return np.errstate(all="ignore")(function)  # Compiled code does not warn of overflows either.
        compiled = numba.njit(**options)(function)
        if cache:
            with suppress(RuntimeError, OSError):  # No folder can be written, or no source can be read.
                compiled._cache = _Kept(function)
        return compiled

    return decorate


def c_function(function: Any, signature: Any) -> Any:
    """A function for C code, compiled or loaded here and now; it is kept as those of ``njit`` are."""
    compiled: Any = CFunc(function, normalize_signature(signature), {}, FOR_C)
    with suppress(RuntimeError, OSError):  # No folder can be written, or no source can be read.
        compiled._cache = _Kept(function)
    compiled.compile()
    return compiled


@njit(nogil=True, **INNER)
def longer(values, size, room):  # type: ignore[no-untyped-def]
    """An array of ``room`` entries that begins with the first ``size`` of values.

    The loop takes the place of an assignment to a slice, whose error messages take Numba a second to compile.
    """
    out = np.empty(room, values.dtype)
    for k in range(size):
        out[k] = values[k]
    return out


# --- reading and writing a float's bits ----------------------------------------------------------


def intrinsic(python: Callable[..., Any]) -> Callable[[Any], Any]:
    """Numba's ``intrinsic``; where nothing is compiled, ``python`` is what runs."""
    return numba.extending.intrinsic if compiles() else lambda function: python


@intrinsic(lambda x: x.view(np.int64 if x.itemsize == 8 else np.int32))
def bits(typingctx: Any, x: Any) -> Any:
    """The integer with the same bits as a float."""
    integer = types.int64 if x == types.float64 else types.int32

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(signature.return_type.bitwidth))

    return integer(x), codegen


@intrinsic(lambda i: i.view(np.float64 if i.itemsize == 8 else np.float32))
def float_of(typingctx: Any, i: Any) -> Any:
    """The float with the same bits as an integer."""
    real = types.float64 if i == types.int64 else types.float32

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(signature.return_type))

    return real(i), codegen


@intrinsic(lambda condition, a, b: a if condition else b)
def choose(typingctx: Any, condition: Any, a: Any, b: Any) -> Any:
    """a if condition else b, as a select: never a branch."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(args[0], args[1], args[2])

    if condition != types.boolean or a != b:
        return None
    return a(condition, a, b), codegen


# --- pointers ------------------------------------------------------------------------------------
# An array brings its shape, strides, owner and count of references into compiled code, wherever it is read.
# Behind a pointer there are numbers and nothing else: that compiles in half the time, and nothing is checked.


@intrinsic(lambda values: values.reshape(-1))
def pointer(typingctx: Any, values: Any) -> Any:
    """A pointer to the first number of a C-contiguous array; truth values are bytes."""
    kind = types.CPointer(types.uint8 if values.dtype == types.boolean else values.dtype)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.bitcast(data, context.get_value_type(signature.return_type))

    return (kind(values), codegen) if values.layout == "C" else None


@intrinsic(lambda pointer, place: pointer[place:])
def at(typingctx: Any, pointer: Any, place: Any) -> Any:
    """The pointer to ``pointer[place]``."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.gep(args[0], [args[1]])

    return pointer(pointer, types.intp), codegen


# --- while something is compiled ------------------------------------------------------------------

_guard = Lock()
_compilers = 0  # how many compilers are at work or wait for one another
_collects = True  # whether garbage was collected before the first of them began


def _begin() -> None:
    """No garbage is collected while Numba compiles: it makes objects by the million, and few are garbage."""
    global _compilers, _collects
    with _guard:
        _compilers += 1
        if _compilers == 1:
            _collects = gc.isenabled()
            gc.disable()


def _end() -> None:
    global _compilers
    with _guard:
        _compilers -= 1
        if _compilers == 0 and _collects:
            gc.enable()


def _after_fork() -> None:
    """A child has none of the threads that may have been compiling."""
    global _guard, _compilers
    _guard = Lock()
    if _compilers and _collects:
        gc.enable()
    _compilers = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class _StopsClock(event.Listener):
    """Stops the clock from where Numba takes its compiler, if only to read, to where it gives it back."""

    def on_start(self, event: Any) -> None:
        clock.pause()
        _begin()

    def on_end(self, event: Any) -> None:
        _end()
        clock.resume()


class _Tells(event.Listener):
    """Tells of compiling: a pass runs only where something is compiled."""

    def on_start(self, event: Any) -> None:
        clock.compiles()

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compiler_lock", _StopsClock())
event.register("numba:run_pass", _Tells())
