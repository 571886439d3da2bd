r"""What all compiled code shares: how it is compiled, and the bits of floating-point numbers."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import event
from numba.extending import intrinsic

from mercer import clock

__all__ = ["FASTMATH", "INNER", "OPTIONS", "bits", "choose", "float_of"]

#: contraction to fused multiply-add and signless zeros, nothing that reorders
FASTMATH = {"contract", "nsz"}
#: how every compiled function here is compiled; a division never checks for zero
OPTIONS: dict[str, Any] = {"fastmath": FASTMATH, "error_model": "numpy"}
#: for functions that only compiled code calls: without the doors for Python and C, which take long to compile
INNER: dict[str, Any] = {**OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


# --- reading and writing a float's bits ----------------------------------------------------------


@intrinsic
def bits(typingctx: Any, x: Any) -> Any:
    """The integer with the same bits as a float."""
    integer = types.int64 if x == types.float64 else types.int32

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(signature.return_type.bitwidth))

    return integer(x), codegen


@intrinsic
def float_of(typingctx: Any, i: Any) -> Any:
    """The float with the same bits as an integer."""
    real = types.float64 if i == types.int64 else types.float32

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(signature.return_type))

    return real(i), codegen


@intrinsic
def choose(typingctx: Any, condition: Any, a: Any, b: Any) -> Any:
    """a if condition else b, as a select: never a branch."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(args[0], args[1], args[2])

    if condition != types.boolean or a != b:
        return None
    return a(condition, a, b), codegen


# --- compiling stops the clock of time limits ----------------------------------------------------


class _StopsClock(event.Listener):
    """From where Numba asks for its compiler, also to read what it kept, to where it gives it back."""

    def on_start(self, event: Any) -> None:
        clock.pause()

    def on_end(self, event: Any) -> None:
        clock.resume()


class _Tells(event.Listener):
    """A pass runs only where something is compiled."""

    def on_start(self, event: Any) -> None:
        clock.compiles()

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compiler_lock", _StopsClock())
event.register("numba:run_pass", _Tells())
