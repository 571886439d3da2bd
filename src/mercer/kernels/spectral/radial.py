r"""Kernels of the distance from waves on spheres (Schoenberg): φ(r) = ∫ Ω_d(rt) dμ(t), μ ≥ 0.

Ω_d(‖x‖) is the mean of cos⟨ω, x⟩ over all ω of length 1 in ℝ^d; every continuous radial kernel on ℝ^d is a
mixture of such waves, and every one that is a kernel in all dimensions a mixture of Gaussians.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from math import inf, pi
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special
from scipy.spatial.distance import cdist

from mercer.data.scalars import is_number
from mercer.data.types import Points
from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.kernels.formula.expression import Expression, cos, exp, is_whole, maximum, sin, where, wrap
from mercer.kernels.formula.expression import sqrt as root
from mercer.kernels.formula.pair import Pair
from mercer.kernels.parameters import fixed, is_vector, positive
from mercer.kernels.spectral.waves import checked_density, mixture, rows

if TYPE_CHECKING:
    from mercer.kernels.spectral.panels import PanelTable


def sphere_wave(dim: float, z: ArrayLike) -> np.ndarray:
    r"""Ω_d(z) = Γ(d/2) (2/z)^{(d-2)/2} J_{(d-2)/2}(z): the mean of cos⟨ω, x⟩ over all ω of length 1, z = ‖x‖.

    Ω_∞(z) = exp(-z²/2), the limit of Ω_d(√d z).

    >>> float(sphere_wave(3, 1.0))  # sin(1)/1
    0.841471
    """
    z = np.asarray(z, dtype=float)
    if dim == 1:
        return np.cos(z)
    if dim == 3:
        return np.asarray(np.sinc(z / pi))
    if dim == inf:
        return np.asarray(np.exp(-z * z / 2))
    return np.asarray(special.hyp0f1(dim / 2, -z * z / 4))


def _are_weights(values: Any) -> bool:
    """Whether the values are a list of finite numbers ≥ 0."""
    array = np.asarray(values)
    is_list = array.ndim == 1 and array.size > 0 and array.dtype.kind in "fiu"
    return is_list and bool(np.isfinite(array).all()) and bool((array >= 0).all())


def _is_dimension(value: Any) -> bool:
    return (is_number(value) and value >= 1 and is_whole(value)) or (
        isinstance(value, float) and value == inf
    )


class Radial(Kernel):
    r"""k(x, x') = φ(‖x - x'‖), φ(r) = ∫ Ω_d(rt) dμ(t): a mixture of waves with wave numbers t ≥ 0.

    Ω₁ = cos, Ω₃(r) = sin(r)/r, Ω_d(r) = Γ(d/2) (2/r)^{(d-2)/2} J_{(d-2)/2}(r), and Ω_∞(r) = exp(-r²/2), the
    Gaussian, whose width is 1/t. The measure μ ≥ 0 is one of

    - finitely many points: ``nodes`` are the tₖ, ``weights`` the wₖ ≥ 0 (equal ones that sum to 1 when not
      given), φ(r) = Σₖ wₖ Ω_d(r tₖ). The default is the single node 1.
    - a ``density``, a function t ↦ μ'(t) ≥ 0 of an array of numbers > 0 with a finite integral. In its place
      comes a quadrature rule with weights ≥ 0, so that φ *is* such a mixture. It is off by at most
      ``kernel.error`` at distances up to ``extent`` (default: 20 / typical t), beyond which the waves may
      come back to what they were near 0; with d = ∞ at all distances.

    ``dim`` is d: the kernel is positive definite in ℝ^m for m ≤ d, and a sum over nodes for no other m.

    Nodes in d = 1, 3 and ∞ are formulas for every backend; in other d they go through SciPy's Bessel
    functions, and a density through a table of polynomials that agrees with the sum to rounding, on the CPU.

    >>> Radial(nodes=[2.0], dim=3)([[0.0, 0.0, 0.0]], [[1.0, 0.0, 0.0]]).round(6)  # sin(2)/2
    array([[0.454649]])

    t² drawn from a Gamma distribution gives the rational quadratic, here 1/(1 + r²/2):

    >>> Radial(density=lambda t: 2 * t * np.exp(-(t**2)), dim=np.inf)([[0.0]], [[2.0]]).round(6)
    array([[0.333333]])
    """

    nodes: Any = fixed(
        None,
        "a list of wave numbers between 0 and 1e100",
        lambda v: is_vector(v) and _are_weights(v) and float(max(v)) <= 1e100,
        "e.g. [0.5, 1.0, 2.0]",
        optional=True,
    )
    weights: Any = fixed(
        None,
        "a list of numbers that are zero or more",
        lambda v: is_vector(v) and _are_weights(v),
        "one per node",
        optional=True,
    )
    dim: float = fixed(3, "a whole number of at least 1, or infinite", _is_dimension, "3, or numpy.inf")
    density: Any = fixed(None, "a function t ↦ μ'(t)", callable, "e.g. lambda t: exp(-t)", optional=True)
    extent: float | None = positive(None, optional=True, symbolic=False)

    def check(self) -> None:
        if 150 < self.dim < inf:
            raise InputError(
                f"dim must be at most 150, or infinite, got {self.dim!r}: the waves are then as good as "
                "Gaussians; pass dim=inf, and wave numbers that are sqrt(dim) times smaller"
            )
        if self.density is not None:
            if self.nodes is not None or self.weights is not None:
                raise InputError(
                    "Radial takes nodes with weights, or a density, got both: for a measure with both parts "
                    "add two kernels, Radial(nodes, weights) + Radial(density=…)"
                )
            self._mixture()  # This refuses what is no density.
        elif self.extent is not None:
            raise InputError("extent is for a density, and nodes hold at every distance: leave it out")
        if self.weights is not None and len(self.weights) != len(self.measure()[0]):
            raise InputError(
                f"weights must have one entry per node: {len(self.measure()[0])}, got {len(self.weights)}"
            )

    @property
    def error(self) -> float:
        """How far φ may be from ∫ Ω_d(rt) dμ(t), at distances within the extent; 0 for nodes."""
        return 0.0 if self.density is None else self._mixture().mixture.error

    def measure(self) -> tuple[np.ndarray, np.ndarray]:
        """The tₖ and the wₖ: those given, or those of the quadrature rule."""
        if self.density is not None:
            rule = self._mixture().mixture
            return rule.nodes, rule.weights
        t = np.asarray((1.0,) if self.nodes is None else self.nodes, dtype=float)
        w = np.full(len(t), 1 / len(t)) if self.weights is None else np.asarray(self.weights, dtype=float)
        return t, w

    def profile(self, r: ArrayLike) -> np.ndarray:
        """φ(r)."""
        r = abs(np.asarray(r, dtype=float))
        if self.density is not None:
            return self._mixture()(r)
        total = np.zeros(r.shape)
        for t, w in zip(*self.measure(), strict=True):
            total += w * sphere_wave(self.dim, r * t)
        return total

    def sample(self, n: int, rng: np.random.Generator, dim: int | None = None) -> np.ndarray:  # (n, dim)
        """Frequencies ω: their lengths drawn from the measure, their directions from the sphere of ℝ^d.

        k(x, x') = φ(0) E[cos⟨ω, x - x'⟩] for x in ℝ^dim, dim ≤ d (d when not given, 1 if that is infinite).
        """
        width = (1 if self.dim == inf else int(self.dim)) if dim is None else dim
        if width > self.dim:
            raise InputError(
                f"frequencies in ℝ^{width} were asked for, of a kernel on ℝ^{self.dim}: "
                f"build it with dim={width}, or take fewer columns"
            )
        t, w = self.measure()
        directions = rng.normal(size=(n, width if self.dim == inf else int(self.dim)))
        if self.dim < inf:
            directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        return directions[:, :width] * rng.choice(t, size=(n, 1), p=w / w.sum())

    def formula(self, pair: Pair) -> Expression:
        r = root(pair.sqdist)
        total: Any = wrap(0.0)
        for t, w in zip(*self.measure(), strict=True):
            z = r * float(t)
            if self.dim == inf:
                wave = exp(pair.sqdist * (-(float(t) ** 2) / 2))
            else:
                wave = _sinc(z) if self.dim == 3 else cos(z)
            total = total + wave * float(w)
        return total

    def expression(self, pair: Pair | None = None) -> Expression:
        has_formula = self.density is None and self.dim in (1, 3, inf)
        return super().expression(pair) if has_formula else (pair or Pair()).external(self)

    def pairs(self, X: Points, Y: Points | None) -> np.ndarray:  # (n, m)
        left = rows(X)
        return self.profile(cdist(left, left if Y is None else rows(Y)))

    def self_pairs(self, X: Points) -> np.ndarray:  # (n,)
        return np.full(len(rows(X)), float(self.measure()[1].sum()))

    def _mixture(self) -> PanelTable:
        try:
            return _kept_table(self.density, self.dim, self.extent)
        except TypeError:  # The function is not hashable.
            return _table(self.density, self.dim, self.extent)


def _sinc(z: Any) -> Any:
    """sin(z)/z, by its series near 0."""
    if z == wrap(0.0):
        return wrap(1.0)
    near = 0.01
    square = z * z
    series = 1 - square * (1 / 6 - square / 120)
    return where(z <= near, series, sin(z) / maximum(z, near))


def _table(density: Callable[[np.ndarray], np.ndarray], dim: float, extent: float | None) -> PanelTable:
    found = mixture(
        checked_density(density, "Schoenberg"), partial(sphere_wave, dim), extent, oscillates=dim < inf
    )
    # This compiles code, which `import mercer` must not.
    from mercer.kernels.spectral.panels import tabulated

    return tabulated(found)


_kept_table = lru_cache(maxsize=64)(_table)
