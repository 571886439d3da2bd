r"""Integrals over the half-line: where a function lives, and Gauss-Legendre panels that follow it.

What is integrated are spectral densities v(ω) and profiles φ(r) against waves of bounded frequency.

>>> peak, end, tail = reach(lambda x: np.exp(-x))
>>> bool(0.9 < peak < 1.1 and 20 < end < 60 and tail < 1e-11)
True
>>> nodes, weights = panels(peak, end, waves=1.0)
>>> bool(abs(weights @ (np.exp(-nodes) * np.cos(nodes)) - 0.5) < 1e-12)
True
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mercer.errors import InputError

Function = Callable[[np.ndarray], np.ndarray]

ORDER = 32  # nodes of a panel
_GRID = np.logspace(-12, 12, 1537)  # It has sixty-four points in every factor of ten.
_CELL = float(np.log(_GRID[1] / _GRID[0]))
_X, _W = np.polynomial.legendre.leggauss(ORDER)
_RADIANS_PER_PANEL = 40.0  # A panel of 32 nodes follows a wave over so many radians to all digits.


def reach(function: Function, tolerance: float = 1e-13) -> tuple[float, float, float]:
    """(peak, end, tail): where x|f(x)| is largest, and the share ``tail`` of ∫|f| that lies beyond ``end``.

    ``end`` is where the tail falls below the tolerance, or the very point from which f is zero.
    """
    with np.errstate(all="ignore"):
        size = abs(np.asarray(function(_GRID), dtype=float)) * _GRID
    if np.isnan(size).any() or not 0 < size.max() < np.inf:
        place = _GRID[int(np.argmax(~np.isfinite(size)))] if not np.isfinite(size).all() else None
        what = "zero everywhere" if place is None else f"{function(np.array([place]))[0]} at {place:.3g}"
        raise InputError(f"the function must be finite and not zero throughout, got one that is {what}")
    with np.errstate(all="ignore"):
        before, last_ten = size[-129:-65].max(), size[-65:].max()
        power = np.log10(before / last_ten)  # x|f(x)| falls like x^-power at the end of the grid.
    if last_ten > 1e-6 * size.max() and not power > 0.1:
        raise InputError(
            "the function must be integrable, got one that falls too slowly: "
            "its integral over [0, ∞) diverges, or nearly"
        )
    rest = size[-1] / max(power, 0.1) / _CELL if last_ten > 0 else 0.0  # ∫ x^-power dx/x beyond the grid
    # This is the share of each point and of all after it.
    beyond = (np.cumsum(size[::-1])[::-1] + rest) / (size.sum() + rest)
    peak = float(_GRID[int(np.argmax(size))])
    last = int(np.argmax(beyond <= tolerance)) if beyond[-1] <= tolerance else len(_GRID) - 1
    if beyond[last] == 0 and beyond[last - 1] > 0.01 * tolerance:
        return peak, _edge(function, float(_GRID[last - 1]), float(_GRID[last])), 0.0
    return peak, float(_GRID[last]), float(beyond[last])


def _edge(function: Function, inside: float, outside: float) -> float:
    """The point from which a function is zero, by bisection."""
    if function(np.array([inside]))[0] == 0:
        return inside
    for _ in range(60):
        middle = (inside + outside) / 2
        if function(np.array([middle]))[0] != 0:
            inside = middle
        else:
            outside = middle
    return outside


def panels(
    peak: float, end: float, waves: float, level: int = 0, limit: int = 2**20
) -> tuple[np.ndarray, np.ndarray]:  # (n,), (n,)
    """Nodes and weights on [0, end] for functions of the scale ``peak`` times waves cos(waves · x).

    A higher ``level`` halves the panels, and cuts the first one again and again towards 0, where a function
    may be singular. Panels far out are left away when there would be more than ``limit`` nodes: what they
    hold is up to the caller (``mass``).
    """
    edges = growing(peak, end, waves, level, limit)
    first = edges[1] * 0.25 ** np.arange(6 * level, 0, -1)
    return gauss_legendre(np.concatenate([[0.0], first, edges[1:]]))


def growing(peak: float, end: float, waves: float, level: int = 0, limit: int = 2**20) -> np.ndarray:
    """Cuts 0 … end between panels that grow with the distance from 0 as long as the waves allow."""
    widest = _RADIANS_PER_PANEL / max(waves, 1e-300) / 2**level
    width = min(2 * peak / 2**level, widest)
    edges = [0.0, min(width, end)]
    while edges[-1] < end:
        width = min(max(width, edges[-1]), widest)
        edges.append(min(edges[-1] + width, end))
        if ORDER * len(edges) > limit:
            break
    return np.array(edges)


def gauss_legendre(cuts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # (n,), (n,)
    """Nodes and weights of the panels between the cuts, 32 in each."""
    half = np.diff(cuts)[:, None] / 2
    nodes = cuts[:-1, None] + half * (1 + _X)
    return nodes.ravel(), (half * _W).ravel()


def mass(function: Function, start: float, end: float) -> float:
    """∫|f| between two points, on a logarithmic grid; 0 if the first is not well below the second.

    >>> round(mass(lambda x: 1 / x**2, 1.0, 1e6), 4)
    1.0
    """
    if not start < 0.99 * end:
        return 0.0
    grid = np.geomspace(start, end, 4001)
    values = abs(function(grid)) * grid
    return float((values[1:] + values[:-1]).sum() / 2 * np.log(end / start) / 4000)
