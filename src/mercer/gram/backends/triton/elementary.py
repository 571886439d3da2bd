"""What the Triton printer's names mean that Triton itself does not have.

All are without branches, for tiles of float32 and of float64. Functions of float64 that a GPU computes in
software anyway are Triton's own.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from mercer.errors import require
from mercer.gram.backends.coefficients import FLOAT32, FLOAT64

triton = require("triton", "gpu")

import triton.language as tl  # noqa: E402  (after the message of `require`)

__all__ = ["arccos", "binary_log", "cosine", "exp", "integer_power", "matern_shape", "power", "sine", "tanh"]


def interprets() -> bool:
    """Whether Triton runs its kernels as Python, on the CPU: ``TRITON_INTERPRET=1``."""
    return bool(_INTERPRETS.value)


def salt() -> str:
    """What printed code depends on besides its own text."""
    text = Path(__file__).read_text("utf-8")
    return hashlib.sha256((triton.__version__ + text).encode()).hexdigest()


_INTERPRETS = tl.constexpr(bool(triton.knobs.runtime.interpret))
_ARCSIN = tl.constexpr(FLOAT64["arcsin"])
_ARCSIN_32 = tl.constexpr(FLOAT32["arcsin"])
_TANH = tl.constexpr(FLOAT64["tanh"])
_TANH_32 = tl.constexpr(FLOAT32["tanh"])


@triton.jit
def exp(x):  # type: ignore[no-untyped-def]
    """exp x; in float32 by the unit for powers of two, without what subnormal results would take."""
    if x.dtype == tl.float32:
        return tl.exp2(x * 1.4426950408889634)
    else:
        return tl.exp(x)


@triton.jit
def _by_unit(code: tl.constexpr, x, function: tl.constexpr):  # type: ignore[no-untyped-def]
    """One instruction of the unit for special functions; where Triton interprets, the function itself."""
    if not _INTERPRETS:
        return tl.inline_asm_elementwise(code, "=f,f", [x], tl.float32, is_pure=True, pack=1)
    elif function == 0:
        return tl.sin(x)
    elif function == 1:
        return tl.cos(x)
    else:
        return tl.log2(x)


@triton.jit
def _polynomial(z, coefficients: tl.constexpr, count: tl.constexpr):  # type: ignore[no-untyped-def]
    """Horner's rule."""
    total = z * 0.0 + coefficients[count - 1]
    for k in tl.static_range(count - 1):
        total = total * z + coefficients[count - 2 - k]
    return total


@triton.jit
def _turned(x):  # type: ignore[no-untyped-def]
    """x less the nearest multiple of 2π, in float32: off by what rounding x itself may have changed."""
    turns = x * 0.15915494309189535
    whole = (turns + 12582912.0) - 12582912.0  # 3·2²²: what is added to it is rounded to a whole number
    return (turns - whole) * 6.283185307179586


@triton.jit
def sine(x):  # type: ignore[no-untyped-def]
    """sin x; in float32 within 2⁻²⁰·⁵."""
    if x.dtype == tl.float32:
        return _by_unit("sin.approx.ftz.f32 $0, $1;", _turned(x), 0)
    else:
        return tl.sin(x)


@triton.jit
def cosine(x):  # type: ignore[no-untyped-def]
    """cos x; in float32 within 2⁻²⁰·⁵."""
    if x.dtype == tl.float32:
        return _by_unit("cos.approx.ftz.f32 $0, $1;", _turned(x), 1)
    else:
        return tl.cos(x)


@triton.jit
def tanh(x):  # type: ignore[no-untyped-def]
    """A polynomial near 0; 1 - 2/(exp(2|x|) + 1) elsewhere."""
    size = tl.abs(x)
    z = x * x
    if x.dtype == tl.float32:
        near = x + x * z * _polynomial(z, _TANH_32, 5)
    else:
        near = x + x * z * _polynomial(z, _TANH, 11)
    far = 1.0 - 2.0 / (exp(2.0 * size) + 1.0)
    return tl.where(size < 0.55, near, tl.where(x < 0.0, -far, far))


@triton.jit
def arccos(x):  # type: ignore[no-untyped-def]
    """π/2 - arcsin x for |x| ≤ ½, and 2 arcsin √((1-|x|)/2), reflected, beyond."""
    size = tl.abs(x)
    z = tl.where(size <= 0.5, x * x, (1.0 - size) * 0.5)
    s = tl.where(size <= 0.5, x, tl.sqrt(z))
    if x.dtype == tl.float32:
        arc = s + s * z * _polynomial(z, _ARCSIN_32, 5)
    else:
        arc = s + s * z * _polynomial(z, _ARCSIN, 13)
    outer = tl.where(x < 0.0, 3.141592653589793 - 2.0 * arc, 2.0 * arc)
    return tl.where(size <= 0.5, 1.5707963267948966 - arc, outer)


@triton.jit
def binary_log(x):  # type: ignore[no-untyped-def]
    """log₂ x of float32, within 2⁻²² of x near 1 and relatively elsewhere."""
    return _by_unit("lg2.approx.ftz.f32 $0, $1;", x, 2)


@triton.jit
def power(x, y):  # type: ignore[no-untyped-def]
    """x^y; no number where x < 0."""
    safe = tl.where(x <= 0.0, 1.0, x)
    of_others = tl.where(x < 0.0, float("nan"), tl.zeros_like(x))
    if x.dtype == tl.float32:
        found = tl.exp2(y * binary_log(safe))
    else:
        found = tl.exp(y * tl.log(safe))
    return tl.where(x <= 0.0, of_others, found)


@triton.jit
def integer_power(x, y):  # type: ignore[no-untyped-def]
    """x^n for whole n ≥ 0, by squaring: one exponent for all of a tile."""
    n = y.to(tl.int32)
    if n == 2:
        result = x * x
    elif n == 3:
        result = x * x * x
    else:
        result = tl.where((n & 1) == 1, x, tl.zeros_like(x) + 1.0)
        square = x
        n >>= 1
        while n > 0:
            square = square * square
            result = tl.where((n & 1) == 1, result * square, result)
            n >>= 1
    return result


@triton.jit
def _log_gamma(x):  # type: ignore[no-untyped-def]
    """log Γ(x) for x > 0: Stirling's series at x + 10, and back."""
    product = x
    for k in tl.static_range(1, 10):
        product = product * (x + k)
    t = x + 10.0
    w = 1.0 / (t * t)
    series = (1.0 / 12 - w * (1.0 / 360 - w * (1.0 / 1260 - w * (1.0 / 1680 - w / 1188)))) / t
    return (t - 0.5) * tl.log(t) - t + 0.9189385332046727 + series - tl.log(product)


@triton.jit
def matern_shape(nu, z):  # type: ignore[no-untyped-def]
    """2^{1-ν}/Γ(ν) z^ν K_ν(z) from the trapezoidal rule for ∫ exp(-z cosh t) cosh νt dt, in float64."""
    order = nu.to(tl.float64)
    x = z.to(tl.float64)
    small = x < 1e-290
    safe = tl.where(small, x * 0.0 + 1.0, x)
    start = order * tl.log(safe)
    positive = tl.where(order > 0.0, order, order * 0.0 + 1.0)
    scale = (1.0 - positive) * 0.6931471805599453 - _log_gamma(positive)
    start += tl.where(order > 0.0, scale, scale * 0.0)
    size = tl.abs(order)
    far = (safe > size) & (start - safe + order * order / (2.0 * safe) < -745.0)
    safe = tl.where(far, x * 0.0 + 1.0, safe)
    start = tl.where(far, x * 0.0, start)
    step = tl.minimum(0.55 / tl.sqrt(tl.sqrt(order * order + safe * safe)), 0.2)
    total = 0.5 * tl.exp(start - safe)
    left = 1
    k = 1
    while (left > 0) & (k < 4096):  # what is no number would go on for ever
        t = k * step
        s = size * t
        grown = tl.exp(t)
        cosh = 0.5 * (grown + 1.0 / grown)
        sinh = 0.5 * (grown - 1.0 / grown)
        term = 0.5 * tl.exp(start - safe * cosh + s) * (1.0 + tl.exp(-2.0 * s))
        total += term
        done = (term <= 1e-17 * total) & (safe * sinh > size)
        left = tl.max(tl.max(tl.where(done, 0, 1), axis=1), axis=0)
        k += 1
    total = tl.where(far, x * 0.0, total * step)
    limit = tl.where(order > 0.0, 1.0, 0.0)
    return tl.where(small, x * 0.0 + limit, total).to(z.dtype)
