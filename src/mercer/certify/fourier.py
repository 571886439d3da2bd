r"""The Fourier transform of a function on an interval: amplitude, phase and power.

    f̂(ω) = (2π)^{-1/2} ∫ f(x) e^{-iωx} dx = A(ω) e^{iϕ(ω)},

f being 0 outside of the interval, with the same constant as in ``density``, so that ∫|f|² dx = ∫|f̂|² dω
(Plancherel) and the transform of f' is iω f̂(ω).

>>> transform = fourier(lambda x: np.exp(-x * x / 2), (-9.0, 9.0))  # its own transform
>>> transform.amplitude([0.0, 1.0, 2.0]).round(6)
array([1.      , 0.606531, 0.135335])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mercer.errors import InputError
from mercer.kernels.spectral.quadrature import gauss_legendre

_PANELS = 128  # each has 32 nodes: f may turn 1000 times in the interval
_RADIANS_PER_PANEL = 20.0  # the waves turn by half of what 32 nodes can follow; the rest is for f
_FREQUENCIES_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class FourierTransform:
    """f̂, a function of frequencies; called it gives complex numbers."""

    function: Callable[[np.ndarray], Any] = field(repr=False)
    interval: tuple[float, float]

    def __call__(self, omega: ArrayLike) -> np.ndarray:  # like omega, complex
        """f̂(ω)"""
        w = np.asarray(omega, dtype=np.float64)
        low, high = self.interval
        panels = _PANELS + int((high - low) * abs(w).max(initial=0.0) / _RADIANS_PER_PANEL)
        x, weights = gauss_legendre(np.linspace(low, high, panels + 1))
        values = weights * self.values(x) / np.sqrt(2 * np.pi)
        flat = w.ravel()
        parts = [
            np.exp(-1j * np.outer(flat[i : i + _FREQUENCIES_AT_ONCE], x)) @ values
            for i in range(0, len(flat), _FREQUENCIES_AT_ONCE)
        ]
        return np.concatenate(parts).reshape(w.shape) if parts else np.zeros(w.shape, complex)

    def values(self, x: np.ndarray) -> np.ndarray:
        """f(x), which must be finite."""
        found = np.broadcast_to(np.asarray(self.function(x), dtype=np.float64), x.shape)
        if not np.isfinite(found).all():
            place = float(x[int(np.argmin(np.isfinite(found)))])
            raise InputError(
                f"f must be finite on the interval, got {found[~np.isfinite(found)][0]} at {place:.6g}"
            )
        return found

    def amplitude(self, omega: ArrayLike) -> np.ndarray:
        """A(ω) = |f̂(ω)|"""
        return np.abs(self(omega))

    def phase(self, omega: ArrayLike) -> np.ndarray:
        """ϕ(ω), from -π to π: where the wave of this frequency begins. It says nothing where A(ω) is 0."""
        return np.angle(self(omega))

    def power(self, omega: ArrayLike) -> np.ndarray:
        """|f̂(ω)|², the power spectrum."""
        return self.amplitude(omega) ** 2


def fourier(function: Callable[[np.ndarray], Any], interval: tuple[float, float]) -> FourierTransform:
    """The Fourier transform of a function of an array of numbers, taken as 0 outside of an interval.

    A sine that is cut off has a peak as narrow as the interval is long:

    >>> wave = fourier(lambda x: 0.7 * np.sin(10 * x) + np.cos(20 * x), (-np.pi, np.pi))
    >>> (wave.amplitude([10.0, 15.0, 20.0]) / np.sqrt(np.pi / 2)).round(6)
    array([0.7, 0. , 1. ])
    >>> wave.phase([10.0, 20.0]).round(3)  # a sine begins a quarter of a turn after a cosine
    array([-1.571,  0.   ])
    """
    low, high = float(interval[0]), float(interval[1])
    if not -np.inf < low < high < np.inf:
        raise InputError(f"interval must be two growing numbers, got {interval!r}: pass (-5.0, 5.0)")
    if not callable(function):
        raise InputError(f"pass a function of an array of numbers, such as numpy.sin, got {function!r}")
    return FourierTransform(function, (low, high))
