r"""A mixture of hundreds of waves looked up instead of added up: polynomials on panels of equal width.

φ(r) = Σₖ wₖ Ω(r tₖ) is interpolated at 16 Chebyshev points on each panel. Waves that oscillate are means of
cosines, |Ω⁽ʲ⁾| ≤ 1, so with panels of half-width h = 1/max tₖ the interpolation is off by at most

    2 (h max tₖ / 2)¹⁶ / 16! · φ(0) < 2·10⁻¹⁸ φ(0).

A bell is looked up by u = log₂ r: |exp(-z²/2)| ≤ 1 in the sector |arg z| ≤ π/4, which is |Im u| ≤ 1.13, so on
panels of half-width 1/8 it is off by 4 ρ⁻¹⁵/(ρ - 1) φ(0) < 10⁻¹⁹ φ(0) with ρ = 18 (Trefethen, Approximation
Theory, 8.2). Both are far below rounding: a table stands for the mixture itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.kernels.spectral.waves import Mixture
from mercer.runtime.native import OPTIONS, njit

#: Nodes of a panel, by which a smooth φ is known to rounding, and panels that are tabulated at least.
_CHEBYSHEV_POINTS = 16
_LEAST_PANELS = 256
_LOG_STEP = 0.25  # the width of a panel in log₂ r
_FLAT_BELOW = 1e-8  # For smaller z, 1 - exp(-z²/2) is below rounding.
_GONE_ABOVE = 9.0  # For larger z, exp(-z²/2) is below 10⁻¹⁷.


@dataclass(frozen=True, eq=False)
class PanelTable:
    """φ(r) for r from ``start`` to ``stop``; below it is φ(0), above it the mixture is added up."""

    mixture: Mixture
    start: float
    stop: float
    step: float  # the width of a panel, in r or in log₂ r
    in_logarithms: bool
    coefficients: np.ndarray  # (panels, 16) of powers of the place within a panel, from -1 to 1

    def __call__(self, r: np.ndarray) -> np.ndarray:
        """φ at distances, an array of any shape."""
        flat = np.ascontiguousarray(r, dtype=np.float64).ravel()
        phi = np.empty(len(flat))
        at_zero = float(self.mixture.weights.sum())
        _look_up(flat, phi, self.coefficients, self.start, self.stop, self.step, self.in_logarithms, at_zero)
        far = np.flatnonzero(flat > self.stop)
        phi[far] = self.mixture(flat[far])
        return phi.reshape(np.shape(r))


def tabulated(mixture: Mixture) -> PanelTable:
    """The table of a mixture, up to its extent and some way beyond."""
    low, high = float(mixture.nodes.min()), float(mixture.nodes.max())
    in_logarithms = not np.isfinite(mixture.extent)
    if in_logarithms:
        start, stop, step = _FLAT_BELOW / high, _GONE_ABOVE / low, _LOG_STEP
        first, last = np.log2(start), np.log2(stop)
    else:
        start = first = 0.0
        step = 2 / high
        last = max(mixture.extent, _LEAST_PANELS * step)
    edges = first + step * np.arange(int((last - first) / step) + 2)
    stop = float(2 ** edges[-1] if in_logarithms else edges[-1])
    places = np.polynomial.chebyshev.chebpts1(_CHEBYSHEV_POINTS)
    u = edges[:-1, None] + step / 2 * (1 + places)
    values = mixture(2**u if in_logarithms else u)
    basis = np.linalg.inv(np.polynomial.chebyshev.chebvander(places, _CHEBYSHEV_POINTS - 1))
    powers = np.zeros((_CHEBYSHEV_POINTS, _CHEBYSHEV_POINTS))  # the powers in each Chebyshev polynomial
    for j in range(_CHEBYSHEV_POINTS):
        powers[j, : j + 1] = np.polynomial.chebyshev.cheb2poly(np.eye(_CHEBYSHEV_POINTS)[j, : j + 1])
    return PanelTable(
        mixture, start, stop, step, in_logarithms, np.ascontiguousarray(values @ basis.T @ powers)
    )


@njit(nogil=True, cache=True, **OPTIONS)
def _look_up(r, phi, coefficients, start, stop, step, in_logarithms, at_zero):  # type: ignore[no-untyped-def]
    last = coefficients.shape[0] - 1
    first = np.log2(start) if in_logarithms else start
    for i in range(len(r)):
        if r[i] <= start:
            phi[i] = at_zero
        elif r[i] <= stop:
            u = ((np.log2(r[i]) if in_logarithms else r[i]) - first) / step
            panel = min(int(u), last)
            place = 2 * (u - panel) - 1
            total = coefficients[panel, _CHEBYSHEV_POINTS - 1]
            for j in range(_CHEBYSHEV_POINTS - 2, -1, -1):
                total = total * place + coefficients[panel, j]
            phi[i] = total
