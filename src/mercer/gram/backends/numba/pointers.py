"""What the compiled tile loop asks of the machine itself: products by BLAS, calls, bits, cache lines.

Each is a few instructions that Numba has no words for, or has words for that take long to compile: `np.dot`
looks after shapes and layouts, for half a second.
Nothing is checked here: what is handed over must be there.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.linalg import check_blas_return

# --- pointers ------------------------------------------------------------------------------------


@intrinsic
def copy(typingctx: Any, target: Any, source: Any, count: Any) -> Any:
    """target[:count] = source[:count], where they do not overlap."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        size = context.get_abi_sizeof(context.get_value_type(signature.args[0].dtype))
        cgutils.raw_memcpy(builder, args[0], args[1], args[2], size)
        return context.get_dummy_value()

    return types.void(target, source, types.intp), codegen


@intrinsic
def floats(typingctx: Any, address: Any, like: Any) -> Any:
    """A pointer to the numbers at an address, which are of the same precision as ``like``."""
    return types.CPointer(like)(types.int64, like), _pointer


@intrinsic
def address_of(typingctx: Any, pointer: Any) -> Any:
    """The address that a pointer holds."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ptrtoint(args[0], ir.IntType(64))

    return types.int64(pointer), codegen


@intrinsic
def integers(typingctx: Any, address: Any) -> Any:
    """A pointer to the integers of 64 bits at an address."""
    return types.CPointer(types.int64)(types.int64), _pointer


def _pointer(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.inttoptr(args[0], context.get_value_type(signature.return_type))


# --- products ------------------------------------------------------------------------------------


@intrinsic
def products(typingctx: Any, x: Any, y: Any, rows: Any, cols: Any, width: Any, out: Any) -> Any:
    """out = X Yᵀ, row-major, of ``rows`` points in x and ``cols`` points in y, each of ``width`` numbers."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, y, rows, cols, width, out = args
        # BLAS counts by columns: there it is Y Xᵀ, with the transpose of what it takes Y for.
        real = signature.args[0].dtype
        _gemm(context, builder, real, "tn", (cols, rows, width), (y, width), (x, width), 0, (out, cols))
        return context.get_dummy_value()

    n = types.intp
    return types.void(x, y, n, n, n, out), codegen


@intrinsic
def add_product(typingctx: Any, K: Any, rows: Any, cols: Any, V: Any, m: Any, out: Any) -> Any:
    """out += K V, all row-major: K is rows × cols, V is cols × m."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        K, rows, cols, V, m, out = args
        real = signature.args[0].dtype
        _gemm(context, builder, real, "nn", (m, rows, cols), (V, m), (K, cols), 1, (out, m))
        return context.get_dummy_value()

    n = types.intp
    return types.void(K, n, n, V, n, out), codegen


def _gemm(
    context: Any, builder: Any, real: Any, turned: str, sizes: Any, A: Any, B: Any, beta: float, C: Any
) -> None:
    """C = op(A) op(B) + beta C, column-major, by the BLAS of SciPy as Numba calls it.

    Each matrix is a pointer and its stride, which BLAS wants to be at least 1.
    """
    char, whole, pointer = ir.IntType(8), sizes[0].type, cgutils.voidptr_t
    least = ir.Constant(whole, 1)

    def matrix(data: Any, stride: Any) -> list[Any]:
        is_more = builder.icmp_signed(">", stride, least)
        return [builder.bitcast(data, pointer), builder.select(is_more, stride, least)]

    def number(value: float) -> Any:
        place = cgutils.alloca_once_value(builder, ir.Constant(context.get_value_type(real), value))
        return builder.bitcast(place, pointer)

    letters = [ir.Constant(char, ord(letter)) for letter in ("d" if real == types.float64 else "s") + turned]
    arguments = [*letters, *sizes, number(1.0), *matrix(*A), *matrix(*B), number(beta), *matrix(*C)]
    kind = ir.FunctionType(ir.IntType(32), [argument.type for argument in arguments])
    function = cgutils.get_or_insert_function(builder.module, kind, "numba_xxgemm")
    check_blas_return(context, builder, builder.call(function, arguments))


# --- calls, bits and cache lines -----------------------------------------------------------------


def tile_signature(real: Any) -> Any:
    """The C signature of a kernel's ``tile``: q, left, right, x, yt, params, out, sizes."""
    return types.void(*[types.CPointer(real)] * 7, types.CPointer(types.int64))


@intrinsic
def call_tile(
    typingctx: Any,
    function: Any,
    q: Any,
    left: Any,
    right: Any,
    x: Any,
    yt: Any,
    params: Any,
    out: Any,
    sizes: Any,
) -> Any:
    """Call the C function at an address with pointers, of which some may be given as addresses."""
    return types.void(types.int64, q, left, right, x, yt, params, out, sizes), _call


@intrinsic
def call_part(typingctx: Any, function: Any, job: Any, tau: Any, unit: Any) -> Any:
    """Call a part of the tile loop: the C function at an address."""
    return types.void(types.int64, job, tau, unit), _call


def _call(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    address, *given = args
    kind = ir.FunctionType(ir.VoidType(), [value.type for value in given])
    builder.call(builder.inttoptr(address, kind.as_pointer()), given)
    return context.get_dummy_value()


@intrinsic
def either(typingctx: Any, a: Any, b: Any) -> Any:
    """a | b without Numba's widening to 64 bits."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.or_(*args)

    return (a(a, b), codegen) if a == b else None


@intrinsic
def stream(typingctx: Any, target: Any, source: Any, stride: Any) -> Any:
    """One cache line at once, past the caches: target[:L] = source[: L · stride : stride], L values.

    The line must be aligned to 64 bytes. A plain store would first read the line that it overwrites.
    """
    lanes = 64 * 8 // target.dtype.bitwidth

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        out, data, step = args
        real = context.get_data_type(signature.args[0].dtype)
        line = ir.Constant(ir.VectorType(real, lanes), ir.Undefined)
        place = ir.Constant(step.type, 0)
        for lane in range(lanes):
            value = builder.load(builder.gep(data, [place]))
            line = builder.insert_element(line, value, ir.Constant(ir.IntType(32), lane))
            place = builder.add(place, step)
        store = builder.store(line, builder.bitcast(out, line.type.as_pointer()), align=64)
        store.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
        return context.get_dummy_value()

    return types.void(target, source, types.intp), codegen
