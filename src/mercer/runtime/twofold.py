r"""Arithmetic with 106 bits: a number is the unevaluated sum of two float64, its ``high`` part and the rest.

    a + b = s + e    exactly, s the rounded sum        (Knuth)
    a b   = p + e    exactly, p the rounded product    (Dekker, Veltkamp's splitting)

Results are off by a few units of 2⁻¹⁰⁴, relative to their size. A product overflows beyond about 10³⁰⁰: its
parts are then no numbers. Nothing here may be compiled with contraction, which would lose what is kept.

Dekker, A floating-point technique for extending the available precision, Numerische Mathematik 18 (1971),
224-242; Hida, Li and Bailey, Algorithms for quad-double precision floating point arithmetic, ARITH 15 (2001).
"""

from __future__ import annotations

from typing import Any

from mercer.runtime.native import njit

#: about a unit in the last place of such a number
UNIT = 2.0**-104
#: the options with which functions on such numbers are compiled
EXACTLY: dict[str, Any] = {"error_model": "numpy", "nogil": True}
#: the options of functions that only compiled code calls
INSIDE: dict[str, Any] = {**EXACTLY, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

_SPLIT = 134217729.0  # 2²⁷ + 1 splits 53 bits into 26 and 27.


@njit(**INSIDE)
def _sum(a, b):  # type: ignore[no-untyped-def]
    s = a + b
    part = s - a
    return s, (a - (s - part)) + (b - part)


@njit(**INSIDE)
def _quick_sum(a, b):  # type: ignore[no-untyped-def]
    """The sum a + b for |a| ≥ |b|."""
    s = a + b
    return s, b - (s - a)


@njit(**INSIDE)
def _product(a, b):  # type: ignore[no-untyped-def]
    p = a * b
    t = _SPLIT * a
    a1 = t - (t - a)
    a2 = a - a1
    t = _SPLIT * b
    b1 = t - (t - b)
    b2 = b - b1
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


@njit(**EXACTLY)
def add(a, b, c, d):  # type: ignore[no-untyped-def]
    """(a + b) + (c + d).

    >>> add(1.0, 0.0, 2.0**-80, 0.0) == (1.0, 2.0**-80)
    True
    """
    s, e = _sum(a, c)
    t, f = _sum(b, d)
    s, e = _quick_sum(s, e + t)
    return _quick_sum(s, e + f)


@njit(**EXACTLY)
def subtract(a, b, c, d):  # type: ignore[no-untyped-def]
    """(a + b) - (c + d)."""
    return add(a, b, -c, -d)


@njit(**EXACTLY)
def multiply(a, b, c, d):  # type: ignore[no-untyped-def]
    """(a + b)(c + d).

    >>> x = 1.0 + 2.0**-40
    >>> multiply(x, 0.0, x, 0.0) == (1.0 + 2.0**-39, 2.0**-80)
    True
    """
    p, e = _product(a, c)
    return _quick_sum(p, e + (a * d + b * c))


@njit(**EXACTLY)
def divide(a, b, c, d):  # type: ignore[no-untyped-def]
    """(a + b) / (c + d), by long division.

    >>> third = divide(1.0, 0.0, 3.0, 0.0)
    >>> multiply(*third, 3.0, 0.0) == (1.0, 0.0)
    True
    """
    first = a / c
    p, e = multiply(first, 0.0, c, d)
    a, b = add(a, b, -p, -e)
    second = a / c
    p, e = multiply(second, 0.0, c, d)
    a, b = add(a, b, -p, -e)
    first, second = _quick_sum(first, second)
    return add(first, second, a / c, 0.0)
