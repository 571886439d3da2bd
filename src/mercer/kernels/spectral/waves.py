r"""A continuous mixture of waves as one of finitely many: ∫ f(t) Ω(rt) dt ≈ Σₖ wₖ Ω(r tₖ), wₖ ≥ 0.

Ω is the cosine, a wave on a sphere, or Gauss' bell: |Ω| ≤ 1. Panels of 32 Gauss-Legendre nodes are bisected
until f is a polynomial in each of them to all digits. The error of φ has four parts: f beyond the
last node, and before the first; what is left of f where bisection was given up; and that of the rule for f
times the wave, which is its difference from the rule with every panel cut in two. The weights are values of
f ≥ 0 times those of Gauss, so the sum is a mixture of waves itself: a kernel, whatever its error.

>>> rule = mixture(lambda t: np.exp(-t), np.cos)
>>> r = np.array([0.0, 1.0, 3.0])
>>> bool(abs(rule(r) - 1 / (1 + r**2)).max() <= rule.error < 1e-11)
True
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mercer.data.sparse import dense
from mercer.data.types import Points
from mercer.errors import InputError
from mercer.kernels.spectral.quadrature import ORDER, gauss_legendre, growing, mass, reach

Function = Callable[[np.ndarray], np.ndarray]

_TOLERANCE = 1e-12  # the error that is asked for, relative to φ(0)
_MOST_WAVES = 2048  # A density that needs more waves is refused, for each wave costs time in every value.
_DISTANCES_COMPARED = 129  # distances at which two rules are compared
_X, _W = np.polynomial.legendre.leggauss(ORDER)
#: This matrix takes values at the nodes to coefficients of Legendre polynomials.
_ANALYSIS = (_W[:, None] * np.polynomial.legendre.legvander(_X, ORDER - 1)) * (np.arange(ORDER) + 0.5)


@dataclass(frozen=True, eq=False)
class Mixture:
    """φ(r) = Σ weights · wave(nodes · r), off by ``error`` at most for r ≤ extent."""

    nodes: np.ndarray
    weights: np.ndarray
    extent: float
    error: float
    wave: Callable[[Any], np.ndarray]

    def __call__(self, r: ArrayLike) -> np.ndarray:
        r = np.asarray(r, dtype=float)
        flat, phi = r.ravel(), np.empty(r.size)
        step = max(1, 2**20 // len(self.nodes))  # This many distances are worked on together.
        for start in range(0, len(flat), step):
            phi[start : start + step] = self._at(flat[start : start + step])
        return phi.reshape(r.shape)

    def _at(self, r: np.ndarray) -> np.ndarray:
        return np.asarray(self.wave(np.multiply.outer(r, self.nodes)) @ self.weights)


def mixture(
    f: Function, wave: Callable[[Any], np.ndarray], extent: float | None = None, oscillates: bool = True
) -> Mixture:
    """The mixture of waves with the density f ≥ 0 on t ≥ 0, as accurate as 2048 of them can be.

    Waves that oscillate are followed over distances up to ``extent``, by default 20 over the typical t. A
    bell does not: panels are laid out in log t, where it has the same shape for every r, and its extent is
    infinite.
    """
    peak, end, tail = reach(f, _TOLERANCE / 10)
    if oscillates:
        far = 20 / peak if extent is None else float(extent)
        r = np.linspace(0, far, _DISTANCES_COMPARED)
        cuts = growing(peak, end, far, limit=_MOST_WAVES)
    else:
        far = np.inf
        _, inverse, low = reach(lambda u: f(1 / u) / u**2, _TOLERANCE / 10)
        tail, start = tail + low, 1 / inverse
        r = np.append(0.0, np.geomspace(0.01 / end, 100 / start, _DISTANCES_COMPARED))
        cuts = np.linspace(np.log(start), np.log(end), 2 + int(np.log(end / start) / 2))

    def rule(cuts: np.ndarray) -> Mixture:
        nodes, weights = gauss_legendre(cuts)
        if not oscillates:
            nodes = np.exp(nodes)
            weights = weights * nodes
        return Mixture(nodes, weights * f(nodes), far, 0.0, wave)

    place = peak if oscillates else np.log(peak)
    cuts = np.unique(np.append(cuts, place if cuts[0] < place < cuts[-1] else cuts[0]))
    cuts, rough = _bisected(lambda cuts: rule(cuts).weights, cuts)
    last = float(cuts[-1] if oscillates else end)  # There are no nodes for frequencies beyond it.
    found, gap = _refined(rule, cuts, r)
    size = float(found(np.zeros(1))[0])
    error = gap + rough + mass(f, last, end) + (tail + 1e-15 * len(found.nodes)) * size
    if not error <= 0.01 * size:
        raise InputError(
            f"the transform of this density is off by {error:.2g}, of {size:.3g}: {_MOST_WAVES} waves are "
            f"too few for it over distances up to {far:.3g}; pass a smoother one, one that falls faster, "
            "or a smaller extent"
        )
    keep = found.weights > 1e-18 * found.weights.max()
    return Mixture(found.nodes[keep], found.weights[keep], far, error, wave)


def _bisected(weigh: Function, cuts: np.ndarray) -> tuple[np.ndarray, float]:
    """Cuts between panels in which f is a polynomial to all digits; and what of ∫f may be missed in others.

    ``weigh`` gives f at the nodes, times the weights. The last four coefficients of f in Legendre
    polynomials stand for those that a panel cannot show.
    """
    while True:
        values = weigh(cuts).reshape(-1, ORDER)
        total = float(values.sum())
        rough = 2 * abs(values / _W @ _ANALYSIS)[:, -4:].sum(axis=1)
        widths = np.diff(cuts)
        padded = np.concatenate([[np.inf], widths, [np.inf]])
        # What a narrow panel saw may continue in its neighbour.
        is_wide = widths > 8 * np.minimum(padded[:-2], padded[2:])
        unfinished = (rough > _TOLERANCE / 64 * total) & (widths > 1e-12 * (cuts[1:] - cuts[0]))
        room = max(_MOST_WAVES // ORDER - len(widths), 0)
        worst = np.argsort(-rough, kind="stable")
        chosen = worst[(unfinished | is_wide)[worst]][:room]
        if not len(chosen):
            return cuts, float(rough.sum())
        cuts = np.sort(np.append(cuts, (cuts[:-1] + widths / 2)[chosen]))


def _refined(rule: Callable[[np.ndarray], Mixture], cuts: np.ndarray, r: np.ndarray) -> tuple[Mixture, float]:
    """The rule on these panels, or on halves of them until those agree; and how far it is from the next."""
    coarse = rule(cuts)
    phi = coarse(r)
    while True:
        cuts = np.sort(np.append(cuts, (cuts[1:] + cuts[:-1]) / 2))
        fine = rule(cuts)
        finer = fine(r)
        gap = float(abs(finer - phi).max())
        if gap <= _TOLERANCE * phi[0] or len(fine.nodes) > _MOST_WAVES:
            return coarse, gap
        coarse, phi = fine, finer


def rows(X: Points) -> np.ndarray:  # (n, d) float64
    """Points of a table, or one by one in a list."""
    return np.asarray(dense(X), dtype=np.float64)


def checked_density(density: Callable[[np.ndarray], Any], what: str) -> Function:
    """The same function, refusing to be negative or of another shape than its argument."""

    def values(t: np.ndarray) -> np.ndarray:
        try:
            v = np.broadcast_to(np.asarray(density(t), dtype=float), t.shape)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"density must be a function of an array of frequencies, one number for each: {error}"
            ) from None
        if (v < 0).any():
            raise InputError(
                f"a {what} density is zero or more, got v({t[v < 0][0]:.6g}) = {v[v < 0][0]:.6g}: "
                "its transform is not a kernel (Bochner)"
            )
        return v

    return values
