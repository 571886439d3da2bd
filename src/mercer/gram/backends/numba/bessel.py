r"""The shape of the general Matérn, compiled: z^ν K_ν(z) for any order.

Not vectorised, so some hundred times slower than the closed forms of ν = ½, 3⁄2 and 5⁄2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.gram.backends.numba.elementary import by_precision, exp, log, polynomial_of
from mercer.runtime.native import INNER, njit

__all__ = ["matern_shape"]

_LN2 = float(np.log(2.0))
_difference = polynomial_of(  # (1/Γ(1-μ) - 1/Γ(1+μ)) / 2μ in μ²
    np.float64,
    (
        -0.5772156649015329, 0.042002635034095515, 0.04219773455552078, -0.007218943245909569,
        0.00021524166227578434, 2.0134955805919818e-05, -1.1335049289269328e-06, -4.939111487498362e-09,
    ),
)  # fmt: skip
_average = polynomial_of(  # (1/Γ(1-μ) + 1/Γ(1+μ)) / 2 in μ²
    np.float64,
    (
        1.0, -0.6558780715202527, 0.16653861138218903, -0.00962197152460133, -0.0011651676432799425,
        0.0001280507205385501, -1.2525600224849206e-06, -2.0056884445633682e-07,
    ),
)  # fmt: skip


@njit(**INNER)
def _inverse_gammas(mu):  # type: ignore[no-untyped-def]
    """1/Γ(1+μ), 1/Γ(1-μ), and half their difference quotient, for |μ| ≤ ½."""
    u = mu * mu
    odd = _difference(u)
    even = _average(u)
    return even - mu * odd, even + mu * odd, odd, even


@njit(**INNER)
def _temme(mu, z):  # type: ignore[no-untyped-def]
    """1/Γ(1+μ), z^μ K_μ(z) and z^{μ+1} K_{μ+1}(z), by Temme's series, z ≤ 3."""
    plus, minus, odd, even = _inverse_gammas(mu)
    log_half = log(2.0 / z)
    sigma = mu * log_half
    grown = exp(sigma)
    sinh_ratio = 1.0 + sigma * sigma / 6 if abs(sigma) < 1e-4 else (grown - 1 / grown) / (2 * sigma)
    # πμ/sin πμ = Γ(1+μ) Γ(1-μ)
    f = (0.5 * (grown + 1 / grown) * odd + sinh_ratio * log_half * even) / (plus * minus)
    p = 0.5 * grown / plus
    q = 0.5 / (grown * minus)
    c = 1.0
    low, high = f, p
    quarter = 0.25 * z * z
    k = 1.0
    while True:
        f = (k * f + p + q) / (k * k - mu * mu)
        p /= k - mu
        q /= k + mu
        c *= quarter / k
        low += c * f
        high += c * (p - k * f)
        if c * abs(f) < 1e-17 * abs(low) and c * abs(p - k * f) < 1e-17 * abs(high):
            break
        k += 1.0
    power = exp(mu * _LN2) / grown  # z^μ
    return plus, low * power, 2 * high * power


@njit(**INNER)
def _steed(mu, z):  # type: ignore[no-untyped-def]
    """The function by Steed's continued fraction, for z > 3."""
    plus = _inverse_gammas(mu)[0]
    b = 2 * (1 + z)
    d = 1 / b
    h = step = d
    q1, q2 = 0.0, 1.0
    a1 = 0.25 - mu * mu
    q = c = a1
    a = -a1
    s = 1 + q * step
    i = 2.0
    while True:
        a -= 2 * (i - 1)
        c = -a * c / i
        q_new = (q1 - b * q2) / a
        q1, q2 = q2, q_new
        q += c * q_new
        b += 2
        d = 1 / (b + a * d)
        step *= b * d - 1
        h += step
        s += q * step
        if abs(q * step) < 1e-16 * abs(s):
            break
        i += 1.0
    low = np.sqrt(np.pi / (2 * z)) * exp(mu * log(z) - z) / s
    return plus, low, low * (mu + z + 0.5 - a1 * h)


def _build_matern_shape(real: type, facts: dict[str, Any]) -> Callable[..., Any]:
    r"""2^{1-ν}/Γ(ν) z^ν K_ν(z), for ν ≤ 0 without its scale: see ``mercer.kernels.formula.special``.

    With ν = μ + n, |μ| ≤ ½: K_μ and K_{μ+1} by Temme's method (Journal of Computational Physics 19, 1975),
    then upwards. For the scaled function N_m the recurrence of K is N_{m+1} = N_m + z²/(4m(m-1)) N_{m-1},
    all terms positive. In float64 whatever the precision, since z^ν and K_ν may each leave float32's range.
    """

    def matern_shape_(x, y):  # type: ignore[no-untyped-def]
        nu, z = np.float64(x), np.float64(y)
        if z < 1e-290:
            return real(1) if nu > 0 else real(0)
        if z > 700.0:
            return real(0)
        size = abs(nu)
        n = np.int64(size + 0.5)
        mu = size - n
        plus, low, high = _temme(mu, z) if z <= 3.0 else _steed(mu, z)  # z^μ K_μ, z^{μ+1} K_{μ+1}
        if nu <= 0:  # only in derivatives, where |ν| is less than 1 or near it
            before, now = low, high
            for i in range(1, n):
                before, now = now, z * z * before + 2 * (mu + i) * now
            return real((low if n == 0 else now) * z ** (-2 * size))
        if n == 0:
            return real(low * nu * plus * exp((1 - nu) * _LN2))  # 1/Γ(ν) = ν/Γ(1+ν)
        scale = plus * exp(-mu * _LN2)  # 2^{1-m}/Γ(m) for m = μ + 1
        now = high * scale
        if n == 1:
            return real(now)
        before, now = now, now + z * z * low * scale / (2 * (mu + 1))
        for i in range(2, n):
            m = mu + i
            before, now = now, now + z * z / (4 * m * (m - 1)) * before
        return real(now)

    return matern_shape_


matern_shape = by_precision("matern_shape", _build_matern_shape)
