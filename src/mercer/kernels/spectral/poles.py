r"""The Fourier transform of 1/P(ω²), P a polynomial: one damped wave per pole.

    (2π)^{-1/2} ∫ e^{iωr} / P(ω²) dω = √(2π) i Σ Res e^{iωr} / P(ω²),   over the poles with Im ω > 0,

and the residue of a pole of order m is e^{iωr} times a polynomial in r of degree m-1.

>>> (wave,) = waves((1.0, 1.0))  # 1/(1 + ω²)
>>> wave.rate, wave.frequency, round(wave.cosine[0], 6)
(1.0, 0.0, 1.253314)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import factorial, pi, sqrt
from typing import Any

import numpy as np

from mercer.errors import InputError


@dataclass(frozen=True)
class Wave:
    """exp(-rate r) (p(r) cos(frequency r) + q(r) sin(frequency r)), p and q by their coefficients."""

    rate: float
    frequency: float
    cosine: tuple[float, ...]
    sine: tuple[float, ...]

    def __call__(self, r: np.ndarray) -> np.ndarray:
        phase = self.frequency * r
        p, q = (np.polynomial.polynomial.polyval(r, c) for c in (self.cosine, self.sine))
        return np.asarray(np.exp(-self.rate * r) * (p * np.cos(phase) + q * np.sin(phase)))


def inverse_polynomial(coefficients: tuple[float, ...]) -> Callable[[np.ndarray], np.ndarray]:
    """ω ↦ 1/Σⱼ αⱼ ω^{2j}; 0 where the sum overflows."""

    def v(omega: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.asarray(1 / np.polynomial.polynomial.polyval(np.asarray(omega) ** 2, coefficients))

    return v


@lru_cache(maxsize=256)
def waves(coefficients: tuple[float, ...]) -> tuple[Wave, ...]:
    """The transform of 1/Σⱼ αⱼ ω^{2j}, as damped waves."""
    alpha = np.array(coefficients)
    _require_positive(alpha)
    while alpha[-1] == 0:
        alpha = alpha[:-1]
    # Frequencies have a unit in which the first and the last coefficient are equal, so that roots are near 1.
    unit = float((alpha[0] / alpha[-1]) ** (1 / (2 * (len(alpha) - 1))))
    scaled = alpha * unit ** (2 * np.arange(len(alpha))) / alpha[0]
    found = []
    roots = _roots(scaled)
    for s, order in roots:
        if s.imag >= 0:  # The others are their mirror images.
            found.append(_wave(s, order, roots, float(scaled[-1]), unit, float(alpha[0])))
    size = sum(abs(wave.cosine[0]) for wave in found)
    if size > 1e5 * abs(sum(wave.cosine[0] for wave in found)):
        raise InputError(
            "1/v has roots too close to each other, or to the real line, to be told apart: "
            f"{list(coefficients)}; pass the density as a function"
        )
    return tuple(found)


def _require_positive(alpha: np.ndarray) -> None:
    """P(s) > 0 for every s ≥ 0, and P grows: else 1/P is no density."""
    if not np.isfinite(alpha).all() or not alpha[1:].any():
        raise InputError(
            f"the coefficients must be finite, one beyond the first not zero, got {alpha.tolist()}: "
            "v must have a finite integral"
        )
    polynomial = np.polynomial.Polynomial(np.trim_zeros(alpha, "b"))
    turning = polynomial.deriv().roots().real if polynomial.degree() > 1 else np.empty(0)
    s = np.append(turning[turning > 0], 0.0)
    size = np.polynomial.Polynomial(abs(polynomial.coef))(s)
    low = np.argmin(polynomial(s) / np.maximum(size, 1e-300))
    if polynomial.coef[-1] < 0 or polynomial(s)[low] <= 1e-13 * size[low]:
        place = "for large ω" if polynomial.coef[-1] < 0 else f"at ω = {sqrt(s[low]):.6g}"
        raise InputError(
            f"α₀ + α₁ω² + … must be positive for every ω, got {alpha.tolist()}, which is not {place}: "
            "v would be no density"
        )


def _roots(alpha: np.ndarray) -> list[tuple[complex, int]]:
    """The roots of a polynomial with how often each comes; those that rounding tore apart are put together.

    A root of order m is computed as m of them, some ε^{1/m} apart, with an accurate mean.
    """
    roots = np.polynomial.polynomial.polyroots(alpha)
    best = [(complex(s), 1) for s in roots]
    for distance in (1e-7, 1e-5, 1e-4, 1e-3, 1e-2):
        merged = _merged(roots, distance)
        again = np.polynomial.polynomial.polyfromroots(np.repeat(*_columns(merged))) * alpha[-1]
        if abs(again - alpha).max() <= 1e-12 * abs(alpha).max():
            best = merged
    return [(complex(s.real, 0.0) if abs(s.imag) < 1e-12 * abs(s) else s, m) for s, m in best]


def _columns(pairs: list[tuple[complex, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([s for s, _ in pairs]), np.array([m for _, m in pairs])


def _merged(roots: np.ndarray, distance: float) -> list[tuple[complex, int]]:
    """Means of roots that are near each other."""
    left = list(roots)
    groups = []
    while left:
        group = [left.pop()]
        for root in group:  # The group grows while this loop runs.
            near = [other for other in left if abs(other - root) <= distance * abs(root)]
            left = [other for other in left if abs(other - root) > distance * abs(root)]
            group += near
        groups.append((complex(np.mean(group)), len(group)))
    return groups


def _wave(
    s: complex, order: int, roots: list[tuple[complex, int]], leading: float, unit: float, size: float
) -> Wave:
    """The pole at ω = √s, Im ω > 0, of the given order."""
    omega = complex(np.sqrt(s + 0j))
    omega = omega if omega.imag > 0 else -omega
    # This is 1/P without the factor (ω - ω₀)^m, as a power series around ω₀.
    series: Any = np.zeros(order, dtype=complex)
    series[0] = 1 / leading
    factors = [(2 * omega, order)]  # ω + ω₀
    for other, m in roots:
        if other != s:
            pole = complex(np.sqrt(other + 0j))
            factors += [(omega - pole, m), (omega + pole, m)]
    for constant, m in factors:
        for _ in range(m):
            inverse = (-1.0 / constant) ** np.arange(order) / constant  # 1/(constant + t)
            series = np.convolve(series, inverse)[:order]
    amplitude = sqrt(2 * pi) * 1j * unit / size  # This has dω in the units of the caller.
    terms = [amplitude * series[order - 1 - j] * (1j * unit) ** j / factorial(j) for j in range(order)]
    if s.imag == 0:
        return Wave(omega.imag * unit, 0.0, tuple(float(c.real) for c in terms), (0.0,))
    cosine = tuple(2 * float(c.real) for c in terms)
    return Wave(omega.imag * unit, omega.real * unit, cosine, tuple(-2 * float(c.imag) for c in terms))
