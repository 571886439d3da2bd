r"""Elementary functions that LLVM turns into SIMD code: what the Numba printer's names mean.

The libm calls that Numba makes for ``exp`` or ``log`` are scalar, and five to ten times slower.
These are branch-free polynomials on a reduced range, in float64 and float32, accurate to a few
units in the last place over the range that kernels use (``tests/gram/backends/numba/test_elementary.py``
measures each against NumPy).

The coefficients are near-minimax fits on the reduced range (Chebyshev, 40 digits). Reduction relies on
the rounding of x + M, so code that calls these must not be compiled with ``reassoc``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from mercer.runtime.native import INNER, bits, choose, float_of, njit

__all__ = [
    "absolute",
    "arccos",
    "by_precision",
    "cos",
    "exp",
    "integer_power",
    "large_power",
    "less_equal",
    "log",
    "maximum",
    "minimum",
    "polynomial_of",
    "power",
    "sin",
    "sqrt",
    "tanh",
    "where",
]

# --- one implementation per precision ------------------------------------------------------------


def by_precision(
    name: str, build: Callable[[type, dict[str, Any]], Callable[..., Any]]
) -> Callable[..., Any]:
    """A function of floats that is ``build``'s for the precision it is called with."""

    def stub(*arguments: Any) -> Any:
        raise NotImplementedError(f"{name} is for compiled code")

    stub.__name__ = stub.__qualname__ = name
    single = build(np.float32, _FLOAT32)
    double = build(np.float64, _FLOAT64)

    def pick(x: Any, *rest: Any) -> Any:
        return single if x == types.float32 else double

    arity = double.__code__.co_argcount
    if arity == 1:
        overload(stub, jit_options=INNER)(lambda x: pick(x))
    elif arity == 2:
        overload(stub, jit_options=INNER)(lambda x, y: pick(x))
    return stub


_FLOAT64: dict[str, Any] = {
    "magic": 1.5 * 2.0**52,
    "ln2": (0.6931471803691238, 1.9082149292705877e-10),
    "exponent_bits": 52,
    "exp": (
        0.5000000000000001, 0.16666666666666669, 0.04166666666662413, 0.008333333333330062,
        0.0013888888917213717, 0.00019841269863053618, 2.4801521295954376e-05, 2.7557268459997064e-06,
        2.7620088445409746e-07, 2.510038549551032e-08,
    ),
    "log": (
        0.666666666666667, 0.39999999999899444, 0.2857142862600327, 0.22222211130259878,
        0.18182889455674947, 0.15331710618210773, 0.14616585424888623,
    ),
    "pi": (3.141592651605606, 1.9841871583270443e-09, 1.034036596358821e-18),
    "sin": (
        -0.16666666666666666, 0.008333333333333316, -0.00019841269841254885, 2.7557319219139183e-06,
        -2.505210761393476e-08, 1.6058977114074673e-10, -7.643963965925357e-13, 2.731365867494017e-15,
    ),
    "tanh": (
        -0.3333333333333333, 0.13333333333332714, -0.053968253967434016, 0.021869488493666944,
        -0.008863234397814355, 0.003592110378689024, -0.001455661830100716, 0.0005889360520074057,
        -0.0002346347410887237, 8.511313685577672e-05, -2.060276537636634e-05,
    ),
    "arcsin": (
        0.16666666666666669, 0.07499999999998425, 0.04464285714637338, 0.030381944137085216,
        0.022372173002005596, 0.017352391265909227, 0.013971235301124539, 0.011478952690257387,
        0.010324318288744113, 0.00545087818772055, 0.017419357964884856, -0.014881409392818066,
        0.02877844261259304,
    ),
    "mantissa": 0x000FFFFFFFFFFFFF,
    "one_bits": 0x3FF0000000000000,
    "bias": 1023,
    "integer": np.int64,
}  # fmt: skip

_FLOAT32: dict[str, Any] = {
    "magic": 1.5 * 2.0**23,
    "ln2": (0.693115234375, 3.1946184945309415e-05),
    "exponent_bits": 23,
    "exp": (0.5, 0.16666576989698775, 0.041666554617204574, 0.008363179052722578, 0.0013926183587713494),
    "log": (0.6666668504515603, 0.39988778282162807, 0.2958005304318844),
    "pi": (3.140625, 0.0009670257568359375, 6.278329573009626e-07),
    "sin": (
        -0.16666666663867363, 0.008333332766508383, -0.00019841086016215184, 2.7536422355454945e-06,
        -2.4079236990903226e-08,
    ),
    "tanh": (
        -0.3333333200797698, 0.1333311372902087, -0.05390942882746055, 0.021309388664443474,
        -0.006610227831114734,
    ),
    "arcsin": (
        0.16666672427703408, 0.07498852962262084, 0.0450018940882998, 0.026550662963657472,
        0.038093962148042254,
    ),
    "mantissa": 0x007FFFFF,
    "one_bits": 0x3F800000,
    "bias": 127,
    "integer": np.int32,
}  # fmt: skip


def polynomial_of(real: type, coefficients: tuple[float, ...]) -> Callable[[Any], Any]:
    """Horner's rule, unrolled, constants in the given precision."""

    @intrinsic
    def polynomial(typingctx: Any, z: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            *others, total = (ir.Constant(args[0].type, float(real(c))) for c in coefficients)
            for constant in reversed(others):
                total = builder.fadd(builder.fmul(total, args[0]), constant)
            return total

        return z(z), codegen

    return polynomial


def _build_exp(real: type, facts: dict[str, Any]) -> Callable[..., Any]:
    """x = n ln 2 + r, exp(x) = 2^n exp(r), |r| ≤ ln 2 / 2.

    The ends need no branch: x is kept where n fits the bits of an exponent, whose first value means 0 and
    whose last means infinity.
    """
    magic, log2e = real(facts["magic"]), real(1 / np.log(2.0))
    high, low = (real(-v) for v in facts["ln2"])
    bias = facts["bias"]
    smallest, largest = real(-bias * np.log(2.0)), real((bias + 1) * np.log(2.0))
    tail = polynomial_of(real, facts["exp"])
    one = real(1)
    integer = facts["integer"]
    shift, one_bits = integer(facts["exponent_bits"]), integer(facts["one_bits"])

    def exp_(x):  # type: ignore[no-untyped-def]
        above = choose(x < smallest, smallest, x)
        inside = choose(above > largest, largest, above)
        t = inside * log2e + magic
        n = t - magic
        r = (inside + n * high) + n * low
        y = one + (r + r * r * tail(r))
        return y * float_of(integer((bits(t) << shift) + one_bits))  # Numba widens int32 arithmetic

    return exp_


def _build_log(real: type, facts: dict[str, Any]) -> Callable[..., Any]:
    """x = 2^e m, √½ ≤ m < √2; log m = 2 artanh((m-1)/(m+1)). For x > 0, normal."""
    integer = facts["integer"]
    shift, mantissa = integer(facts["exponent_bits"]), integer(facts["mantissa"])
    one_bits, bias = integer(facts["one_bits"]), integer(facts["bias"])
    ln2, root, half, one, two = real(np.log(2.0)), real(np.sqrt(2.0)), real(0.5), real(1), real(2)
    tail = polynomial_of(real, facts["log"])

    def log_(x):  # type: ignore[no-untyped-def]
        pattern = bits(x)
        m = float_of(integer((pattern & mantissa) | one_bits))
        e = real((pattern >> shift) - bias)
        large = m > root
        m = choose(large, m * half, m)
        e = choose(large, e + one, e)
        t = (m - one) / (m + one)
        z = t * t
        return e * ln2 + (two * t + t * z * tail(z))

    return log_


def _build_sin(offset: float) -> Callable[[type, dict[str, Any]], Callable[..., Any]]:
    """x + offset·π = n π + r, |r| ≤ π/2; sin x = (-1)^n sin r. Offset ½ makes it the cosine."""

    def build(real: type, facts: dict[str, Any]) -> Callable[..., Any]:
        magic, inverse_pi = real(facts["magic"]), real(1 / np.pi)
        first, second, third = (real(-v) for v in facts["pi"])
        integer = facts["integer"]
        shift = integer(8 * np.dtype(real).itemsize - 1)
        tail = polynomial_of(real, facts["sin"])
        start = real(offset)

        def sin_(x):  # type: ignore[no-untyped-def]
            t = (x * inverse_pi + start) + magic
            n = (t - magic) - start
            r = ((x + n * first) + n * second) + n * third
            z = r * r
            s = r + r * z * tail(z)
            return float_of(integer(bits(s) ^ integer(bits(t) << shift)))  # the lowest bit of n is the sign

        return sin_

    return build


def _build_tanh(real: type, facts: dict[str, Any]) -> Callable[..., Any]:
    """A polynomial near 0; 1 - 2/(exp(2|x|) + 1) elsewhere."""
    tail = polynomial_of(real, facts["tanh"])
    one, two, edge = real(1), real(2), real(0.55)

    def tanh_(x):  # type: ignore[no-untyped-def]
        size = abs(x)
        z = x * x
        near = x + x * z * tail(z)
        far = one - two / (exp(two * size) + one)
        return choose(size < edge, near, choose(x < real(0), -far, far))

    return tanh_


def _build_arccos(real: type, facts: dict[str, Any]) -> Callable[..., Any]:
    """π/2 - arcsin x for |x| ≤ ½, and 2 arcsin √((1-|x|)/2), reflected, beyond."""
    tail = polynomial_of(real, facts["arcsin"])
    half, one, two = real(0.5), real(1), real(2)
    pi, half_pi = real(np.pi), real(np.pi / 2)

    def arccos_(x):  # type: ignore[no-untyped-def]
        size = abs(x)
        z = choose(size <= half, x * x, (one - size) * half)
        s = choose(size <= half, x, np.sqrt(z))
        arc = s + s * z * tail(z)
        outer = choose(x < real(0), pi - two * arc, two * arc)
        return choose(size <= half, half_pi - arc, outer)

    return arccos_


def _build_power(real: type, facts: dict[str, Any]) -> Callable[..., Any]:
    def power_(x, y):  # type: ignore[no-untyped-def]
        safe = choose(x <= real(0), real(1), x)
        of_others = choose(x < real(0), real(np.nan), real(0))  # no real power of a negative number
        return choose(x <= real(0), of_others, exp(y * log(safe)))

    return power_


def _build_integer_power(real: type, facts: dict[str, Any]) -> Callable[..., Any]:
    """x^n by squaring, 0 ≤ n < 64, without a branch."""
    one = real(1)

    def integer_power_(x, y):  # type: ignore[no-untyped-def]
        n = np.int64(y)
        square = x
        result = choose((n & 1) != 0, square, one)
        square = square * square
        result = result * choose((n & 2) != 0, square, one)
        square = square * square
        result = result * choose((n & 4) != 0, square, one)
        square = square * square
        result = result * choose((n & 8) != 0, square, one)
        square = square * square
        result = result * choose((n & 16) != 0, square, one)
        square = square * square
        return result * choose((n & 32) != 0, square, one)

    return integer_power_


def _build_large_power(real: type, facts: dict[str, Any]) -> Callable[..., Any]:
    """x^n by squaring, any n: the loop keeps it from being vectorised."""

    def large_power_(x, y):  # type: ignore[no-untyped-def]
        n = np.int64(y)
        square, result = x, real(1)
        while n > 0:
            if n & 1:
                result = result * square
            square = square * square
            n = n >> 1
        return result

    return large_power_


exp = by_precision("exp", _build_exp)
log = by_precision("log", _build_log)
sin = by_precision("sin", _build_sin(0.0))
cos = by_precision("cos", _build_sin(0.5))
tanh = by_precision("tanh", _build_tanh)
arccos = by_precision("arccos", _build_arccos)
power = by_precision("power", _build_power)
integer_power = by_precision("integer_power", _build_integer_power)
large_power = by_precision("large_power", _build_large_power)


@njit(**INNER)
def sqrt(x):  # type: ignore[no-untyped-def]
    """√x: one instruction."""
    return np.sqrt(x)


@njit(**INNER)
def absolute(x):  # type: ignore[no-untyped-def]
    """|x|."""
    return abs(x)


@njit(**INNER)
def minimum(x, y):  # type: ignore[no-untyped-def]
    """min(x, y)."""
    return choose(x <= y, x, y)


@njit(**INNER)
def maximum(x, y):  # type: ignore[no-untyped-def]
    """max(x, y)."""
    return choose(x <= y, y, x)


@njit(**INNER)
def less_equal(x, y):  # type: ignore[no-untyped-def]
    """1 where x ≤ y, else 0."""
    return choose(x <= y, type(x)(1), type(x)(0))


@njit(**INNER)
def where(condition, x, y):  # type: ignore[no-untyped-def]
    """x where the condition is positive, else y."""
    return choose(condition > type(condition)(0), x, y)
