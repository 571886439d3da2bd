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

__all__ = ["add_product", "call_tile", "either", "products", "stream", "tile_signature"]


# --- products ------------------------------------------------------------------------------------


@intrinsic
def products(
    typingctx: Any, x: Any, xstart: Any, y: Any, ystart: Any, rows: Any, cols: Any, width: Any, out: Any
) -> Any:
    """out = X Yᵀ, row-major, of ``rows`` points in x and ``cols`` points in y, each of ``width`` numbers."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, xstart, y, ystart, rows, cols, width, out = args
        X, Y = (
            _at(context, builder, signature.args[i], array, at)
            for i, array, at in ((0, x, xstart), (2, y, ystart))
        )
        C = _at(context, builder, signature.args[7], out, ir.Constant(xstart.type, 0))
        # BLAS counts by columns: there it is Y Xᵀ, with the transpose of what it takes Y for
        _gemm(
            context,
            builder,
            signature.args[0].dtype,
            "tn",
            (cols, rows, width),
            Y,
            width,
            X,
            width,
            0,
            C,
            cols,
        )
        return context.get_dummy_value()

    n = types.intp
    return types.void(x, n, y, n, n, n, n, out), codegen


@intrinsic
def add_product(
    typingctx: Any, K: Any, rows: Any, cols: Any, V: Any, vstart: Any, out: Any, start: Any
) -> Any:
    """out[start : start + rows] += K V[vstart : vstart + cols], where K is row-major in a vector."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        K, rows, cols, V, vstart, out, start = args
        matrix = context.make_array(signature.args[3])(context, builder, V)
        m = cgutils.unpack_tuple(builder, matrix.shape)[1]
        A = _at(context, builder, signature.args[0], K, ir.Constant(rows.type, 0))
        B = _at(context, builder, signature.args[3], V, builder.mul(vstart, m))
        C = _at(context, builder, signature.args[5], out, builder.mul(start, m))
        _gemm(context, builder, signature.args[0].dtype, "nn", (m, rows, cols), B, m, A, cols, 1, C, m)
        return context.get_dummy_value()

    n = types.intp
    return types.void(K, n, n, V, n, out, n), codegen


def _at(context: Any, builder: Any, kind: Any, value: Any, start: Any) -> Any:
    array = context.make_array(kind)(context, builder, value)
    return builder.bitcast(builder.gep(array.data, [start]), cgutils.voidptr_t)


def _gemm(
    context: Any, builder: Any, real: Any, turned: str, sizes: Any,
    A: Any, lda: Any, B: Any, ldb: Any, beta: float, C: Any, ldc: Any,
) -> None:  # fmt: skip
    """C = op(A) op(B) + beta C, column-major, by the BLAS of SciPy as Numba calls it; no stride may be 0."""
    char, whole, pointer = ir.IntType(8), lda.type, cgutils.voidptr_t
    kind = [
        char,
        char,
        char,
        whole,
        whole,
        whole,
        pointer,
        pointer,
        whole,
        pointer,
        whole,
        pointer,
        pointer,
        whole,
    ]
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.IntType(32), kind), "numba_xxgemm"
    )
    letters = [ir.Constant(char, ord(letter)) for letter in ("d" if real == types.float64 else "s") + turned]
    one, factor = (
        builder.bitcast(
            cgutils.alloca_once_value(builder, ir.Constant(context.get_value_type(real), value)), pointer
        )
        for value in (1.0, beta)
    )
    least = ir.Constant(whole, 1)
    lda, ldb, ldc = (builder.select(builder.icmp_signed(">", n, least), n, least) for n in (lda, ldb, ldc))
    status = builder.call(function, [*letters, *sizes, one, A, lda, B, ldb, factor, C, ldc])
    check_blas_return(context, builder, status)


# --- calls, bits and cache lines -----------------------------------------------------------------


def tile_signature(real: Any) -> Any:
    """The C signature of a kernel's ``tile``: q, left, right, x, yt, params, out, sizes."""
    return types.void(*[types.CPointer(real)] * 7, types.CPointer(types.int64))


@intrinsic
def call_tile(
    typingctx: Any,
    address: Any,
    q: Any,
    left: Any,
    right: Any,
    x: Any,
    yt: Any,
    params: Any,
    out: Any,
    sizes: Any,
) -> Any:
    """Call the C function at ``address`` with the data pointers of the arrays."""
    signature = types.void(address, q, left, right, x, yt, params, out, sizes)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointers = []
        for kind, value in zip(signature.args[1:], args[1:], strict=True):
            array = context.make_array(kind)(context, builder, value)
            pointers.append(builder.bitcast(array.data, cgutils.voidptr_t))
        function = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t] * len(pointers))
        builder.call(builder.inttoptr(args[0], function.as_pointer()), pointers)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def either(typingctx: Any, a: Any, b: Any) -> Any:
    """a | b without Numba's widening to 64 bits."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.or_(*args)

    return (a(a, b), codegen) if a == b else None


@intrinsic
def stream(typingctx: Any, target: Any, place: Any, source: Any, start: Any, stride: Any) -> Any:
    """One cache line at once, past the caches: target[place : place + L] = source[start :: stride], L values.

    The line must be aligned to 64 bytes. A plain store would first read the line that it overwrites.
    """
    lanes = 64 * 8 // target.dtype.bitwidth

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        out, data = (context.make_array(signature.args[i])(context, builder, args[i]).data for i in (0, 2))
        real = context.get_data_type(signature.args[0].dtype)
        line = ir.Constant(ir.VectorType(real, lanes), ir.Undefined)
        at = args[3]
        for lane in range(lanes):
            value = builder.load(builder.gep(data, [at]))
            line = builder.insert_element(line, value, ir.Constant(ir.IntType(32), lane))
            at = builder.add(at, args[4])
        pointer = builder.bitcast(builder.gep(out, [args[1]]), line.type.as_pointer())
        store = builder.store(line, pointer, align=64)
        store.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
        return context.get_dummy_value()

    return types.void(target, place, source, start, stride), codegen
