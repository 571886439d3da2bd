r"""Elementary functions that LLVM turns into SIMD code: what the Numba printer's names mean.

The libm calls that Numba makes for ``exp`` or ``log`` are scalar, and five to ten times slower.
These are branch-free polynomials on a reduced range, in float64 and float32, accurate to a few
units in the last place over the range that kernels use (``tests/gram/backends/numba/test_elementary.py``
measures each against NumPy).

Reduction relies on the rounding of x + M, so code that calls these must not be compiled with ``reassoc``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from mercer.gram.backends.coefficients import FLOAT32, FLOAT64
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
    single = build(np.float32, FLOAT32)
    double = build(np.float64, FLOAT64)

    def pick(x: Any, *rest: Any) -> Any:
        return single if x == types.float32 else double

    arity = double.__code__.co_argcount
    if arity == 1:
        overload(stub, jit_options=INNER)(lambda x: pick(x))
    elif arity == 2:
        overload(stub, jit_options=INNER)(lambda x, y: pick(x))
    return stub


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
