r"""Kernels from their spectrum: from a spectral density (Bochner), or from waves on spheres (Schoenberg).

Bochner: φ(x - x') is a kernel exactly when φ is a mixture of waves with weights ≥ 0. Conventions, in ℝ^d:

    φ(r) = (2π)^{-d/2} ∫ v(ω) e^{i⟨ω, r⟩} dω,      v(ω) = (2π)^{-d/2} ∫ φ(r) e^{-i⟨ω, r⟩} dr ≥ 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import pi, sqrt
from typing import Any

import numpy as np
from scipy import sparse, special
from scipy.spatial.distance import cdist

from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.kernels.expression import Expression, absolute, cos, exp, maximum, sin, where, wrap
from mercer.kernels.expression import sqrt as root
from mercer.kernels.pair import Pair
from mercer.kernels.parameters import fixed, is_vector, positive, whole
from mercer.kernels.poles import Wave, inverse_polynomial, waves
from mercer.kernels.quadrature import mass, panels, reach

__all__ = ["Radial", "Spectral", "sphere_wave"]

_TOLERANCE = 1e-12  # the error asked of a numerical transform, relative to φ(0)
_NODES = 2048  # and the largest number of waves spent on it
_LAPLACE = (sqrt(pi / 2), sqrt(pi / 2))  # v(ω) = √(2/π)/(1 + ω²), the transform of exp(-|r|)


class Spectral(Kernel):
    r"""k(x, x') = Πₖ φ((xₖ - x'ₖ)/ℓ), φ(r) = (2π)^{-1/2} ∫ v(ω) cos(ωr) dω, for a spectral density v.

    ``density`` is one of

    - coefficients α₀, α₁, …, α_m of v(ω) = 1/Σⱼ αⱼ ω^{2j}. Its φ is a sum of exp(-ar) (A cos br + B sin br),
      one term per pole, in closed form. m = 1 is the Laplace kernel, the default; every further power of ω²
      makes functions smoother by one derivative: on the line ‖f‖² = Σⱼ αⱼ ∫|f^{(j)}|² / √(2π).
    - a function ω ↦ v(ω) of an array of frequencies ≥ 0 (v is even). Then φ is the mixture Σ wₖ cos(ωₖr) of a
      quadrature rule: weights ≥ 0, so it *is* a kernel, whatever the error. That is at most ``kernel.error``
      for coordinates that differ by up to ``extent`` (default: 20 / typical frequency) times ℓ; beyond,
      the mixture may come back to what it was near 0. Computed by matrix products of the features
      √wₖ (cos ωₖx, sin ωₖx).

    In ℝ^d the kernel is the product over the columns, with the density Πₖ v(ωₖ).

    >>> Spectral()([[0.0]], [[1.0]]).round(6)  # exp(-1)
    array([[0.367879]])
    >>> smooth = Spectral(lambda omega: np.exp(-(omega**2) / 2))  # the Gaussian's density
    >>> smooth([[0.0]], [[1.0], [3.0]]).round(6)
    array([[0.606531, 0.011109]])
    >>> smooth.sample(3, np.random.default_rng(0)).shape
    (3, 1)
    """

    lemma = "its spectral density is ≥ 0 (Bochner); in several columns, a product of such kernels"
    density: Any = fixed(
        _LAPLACE,
        "a function ω ↦ v(ω), or the coefficients of v(ω) = 1/(α₀ + α₁ω² + …)",
        lambda v: callable(v) or (is_vector(v) and _is_list(v) and len(v) > 1),
        "e.g. lambda w: exp(-w**2), or (1.0, 1.0)",
    )
    length_scale: float = positive(1.0, symbolic=False)
    extent: float | None = positive(None, optional=True, symbolic=False)

    def check(self) -> None:
        self.profile(np.zeros(1))  # refuses what is no density

    @property
    def is_rational(self) -> bool:
        """Whether the density is given by coefficients, and φ in closed form."""
        return not callable(self.density)

    @property
    def error(self) -> float:
        """How far φ may be from the transform of v, at distances within the extent; 0 in closed form."""
        return 0.0 if self.is_rational else self._mixture().error

    def profile(self, r: Any) -> np.ndarray:
        """φ(r/ℓ), the kernel in one dimension."""
        distance = abs(np.asarray(r, dtype=float)) / self.length_scale
        if self.is_rational:
            return np.asarray(sum(wave(distance) for wave in self._waves()), dtype=float)
        mixture = self._mixture()
        return np.asarray(np.cos(np.multiply.outer(distance, mixture.nodes)) @ mixture.weights)

    def spectrum(self, omega: Any) -> np.ndarray:
        """v(ω), with the length scale: ℓ v(ℓω)."""
        frequency = abs(np.asarray(omega, dtype=float)) * self.length_scale
        v = inverse_polynomial(self._coefficients()) if self.is_rational else self.density
        return np.asarray(self.length_scale * v(frequency), dtype=float)

    def sample(self, n: int, rng: np.random.Generator, dim: int = 1) -> np.ndarray:  # (n, dim)
        """Frequencies ω drawn in proportion to v, so that k(x, x') = φ(0)^dim E[cos⟨ω, x - x'⟩]."""
        if self.is_rational:
            size = _sampled(inverse_polynomial(self._coefficients()), rng.random((n, dim)))
        else:
            mixture = self._mixture()
            size = rng.choice(mixture.nodes, size=(n, dim), p=mixture.weights / mixture.weights.sum())
        return size * rng.choice([-1.0, 1.0], size=(n, dim)) / self.length_scale

    # --- the two ways to compute it --------------------------------------------------------------

    def formula(self, pair: Any) -> Any:
        def profile(a: Any, b: Any) -> Any:
            r = absolute(a - b) / self.length_scale
            return sum(_formula(wave, r) for wave in self._waves())

        return pair.product(profile)

    def expression(self, pair: Pair | None = None) -> Expression:
        return super().expression(pair) if self.is_rational else (pair or Pair()).external(self)

    def pairs(self, X: Any, Y: Any | None) -> np.ndarray:  # (n, m)
        """The product over columns of what a column's features give."""
        left = _rows(X)
        right = left if Y is None else _rows(Y)
        K = np.ones((len(left), len(right)))
        for x, y in zip(left.T, right.T, strict=True):
            features = self._features(x)
            K *= features @ (features if Y is None else self._features(y)).T
        return K

    def self_pairs(self, X: Any) -> np.ndarray:  # (n,)
        rows = _rows(X)
        return np.full(len(rows), float(self.profile(0.0)) ** rows.shape[1])

    def _features(self, x: np.ndarray) -> np.ndarray:  # (n,) to (n, 2 nodes)
        mixture = self._mixture()
        phase = np.multiply.outer(x / self.length_scale, mixture.nodes)
        return np.hstack([np.cos(phase), np.sin(phase)]) * np.sqrt(np.tile(mixture.weights, 2))

    def _coefficients(self) -> tuple[float, ...]:
        return tuple(float(alpha) for alpha in self.density)

    def _waves(self) -> tuple[Wave, ...]:
        return waves(self._coefficients())

    def _mixture(self) -> Mixture:
        try:
            return _kept_mixture(self.density, self.extent)
        except TypeError:  # a function that cannot be a key
            return _mixture(self.density, self.extent)


def _formula(wave: Wave, r: Any) -> Any:
    """exp(-ar) (p(r) cos br + q(r) sin br) as a formula."""

    def polynomial(coefficients: tuple[float, ...]) -> Any:
        total: Any = wrap(0.0)
        for coefficient in coefficients[::-1]:
            total = total * r + coefficient
        return total

    decay = exp(-r * wave.rate)
    if wave.frequency == 0:
        return decay * polynomial(wave.cosine)
    phase = r * wave.frequency
    return decay * (polynomial(wave.cosine) * cos(phase) + polynomial(wave.sine) * sin(phase))


def _rows(X: Any) -> np.ndarray:  # (n, d) float64
    """Points of a table, or one by one in a list."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


# --- a density as a mixture of waves -------------------------------------------------------------


@dataclass(frozen=True)
class Mixture:
    """φ(r) = Σ weights · cos(nodes · r), off by ``error`` at most for r ≤ extent."""

    nodes: np.ndarray
    weights: np.ndarray
    extent: float
    error: float


def _mixture(density: Callable[[np.ndarray], np.ndarray], extent: float | None) -> Mixture:
    """The quadrature rule of √(2/π) ∫ v(ω) cos(ωr) dω, refined until two rules agree."""

    def v(omega: np.ndarray) -> np.ndarray:
        try:
            values = np.broadcast_to(np.asarray(density(omega), dtype=float), omega.shape)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"density must be a function of an array of frequencies, one number for each: {error}"
            ) from None
        if (values < 0).any():
            raise InputError(
                f"a spectral density is zero or more, got v({omega[values < 0][0]:.6g}) = "
                f"{values[values < 0][0]:.6g}: its transform is not a kernel (Bochner)"
            )
        return values * sqrt(2 / pi)

    peak, end, tail = reach(v, _TOLERANCE / 10)
    extent = 20 / peak if extent is None else float(extent)
    r = np.linspace(0, extent, 257)
    before: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
    for level in range(5):
        nodes, weights = panels(peak, end, extent, level, limit=_NODES)
        weights = weights * v(nodes)
        phi = np.cos(np.multiply.outer(r, nodes)) @ weights
        if before is not None:
            gap = float(abs(phi - before[2]).max())
            if gap <= _TOLERANCE * phi[0] or 2 * len(nodes) > _NODES or level == 4:
                nodes, weights = before[:2] if gap <= _TOLERANCE * phi[0] else (nodes, weights)
                break
        before = nodes, weights, phi
    left_away = mass(v, float(nodes[-1]), end)  # frequencies beyond the limit
    error = gap + left_away + tail * float(phi[0]) + 1e-15 * len(nodes) * float(phi[0])
    if error > 0.01 * phi[0]:
        raise InputError(
            f"the transform of this density is off by {error:.2g}, of {phi[0]:.3g}: it falls too slowly for "
            f"{_NODES} waves over distances up to {extent:.3g}; pass a smaller extent, or coefficients of 1/v"
        )
    keep = weights > 1e-18 * weights.max()
    return Mixture(nodes[keep], weights[keep], extent, error)


_kept_mixture = lru_cache(maxsize=64)(_mixture)


def _sampled(v: Callable[[np.ndarray], np.ndarray], uniform: np.ndarray) -> np.ndarray:
    """|ω| with density v from uniform numbers: its distribution function, inverted in a table."""
    peak = reach(v)[0]
    angle = np.linspace(0, pi / 2, 2**15 + 1)
    middle = (angle[1:] + angle[:-1]) / 2
    cells = v(peak * np.tan(middle)) / np.cos(middle) ** 2
    share = np.append(0.0, np.cumsum(cells)) / cells.sum()
    return np.asarray(peak * np.tan(np.interp(uniform, share, angle)))


# --- waves on spheres ----------------------------------------------------------------------------


def sphere_wave(dim: int, z: Any) -> np.ndarray:
    r"""Ω_d(z) = Γ(d/2) (2/z)^{(d-2)/2} J_{(d-2)/2}(z): the mean of cos⟨ω, x⟩ over all ω of length 1, z = ‖x‖.

    >>> float(sphere_wave(3, 1.0))  # sin(1)/1
    0.841471
    """
    z = np.asarray(z, dtype=float)
    if dim == 1:
        return np.cos(z)
    if dim == 3:
        return np.asarray(np.sinc(z / pi))
    return np.asarray(special.hyp0f1(dim / 2, -z * z / 4))


class Radial(Kernel):
    r"""k(x, x') = φ(‖x - x'‖), φ(r) = Σₖ wₖ Ω_d(r tₖ): a mixture of waves with wave numbers tₖ ≥ 0.

    Ω₁ = cos, Ω₃(r) = sin(r)/r, Ω_d(r) = Γ(d/2) (2/r)^{(d-2)/2} J_{(d-2)/2}(r): every continuous radial kernel
    on ℝ^d is such a mixture, ∫ Ω_d(rt) dμ(t), with μ ≥ 0 (Schoenberg). ``nodes`` are the tₖ, ``weights`` the
    wₖ ≥ 0 (equal ones that sum to 1 when not given), ``dim`` is d: the kernel is positive definite in ℝ^m for
    m ≤ d and for no other m.

    d = 1 and 3 are formulas for every backend; other d go through SciPy's Bessel functions, on the CPU.

    >>> Radial(nodes=[2.0], dim=3)([[0.0, 0.0, 0.0]], [[1.0, 0.0, 0.0]]).round(6)  # sin(2)/2
    array([[0.454649]])
    """

    nodes: Any = fixed(
        (1.0,),
        "a list of wave numbers that are zero or more",
        lambda v: is_vector(v) and _are_weights(v),
        "e.g. [0.5, 1.0, 2.0]",
    )
    weights: Any = fixed(
        None,
        "a list of numbers that are zero or more",
        lambda v: is_vector(v) and _are_weights(v),
        "one per node",
        optional=True,
    )
    dim: int = whole(3, symbolic=False)

    def check(self) -> None:
        if self.dim > 150:
            raise InputError(
                f"dim must be at most 150, got {self.dim!r}: the waves are then as good as Gaussians; "
                "add up Gaussian(sigma=sqrt(dim) / t)"
            )
        if self.weights is not None and len(self.weights) != len(self.nodes):
            raise InputError(
                f"weights must have one entry per node: {len(self.nodes)}, got {len(self.weights)}"
            )

    def measure(self) -> tuple[np.ndarray, np.ndarray]:
        """The tₖ and the wₖ."""
        t = np.asarray(self.nodes, dtype=float)
        w = np.full(len(t), 1 / len(t)) if self.weights is None else np.asarray(self.weights, dtype=float)
        return t, w

    def profile(self, r: Any) -> np.ndarray:
        """φ(r)."""
        r = np.asarray(r, dtype=float)
        total = np.zeros(r.shape)
        for t, w in zip(*self.measure(), strict=True):
            total += w * sphere_wave(int(self.dim), r * t)
        return total

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:  # (n, dim)
        """Frequencies ω: their lengths drawn from the measure, their directions from the sphere of ℝ^dim.

        k(x, x') = φ(0) E[cos⟨ω, x - x'⟩].
        """
        t, w = self.measure()
        directions = rng.normal(size=(n, int(self.dim)))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        return directions * rng.choice(t, size=(n, 1), p=w / w.sum())

    def formula(self, pair: Any) -> Any:
        r = root(pair.sqdist)
        total: Any = wrap(0.0)
        for t, w in zip(*self.measure(), strict=True):
            z = r * float(t)
            total = total + (_sinc(z) if self.dim == 3 else cos(z)) * float(w)
        return total

    def expression(self, pair: Pair | None = None) -> Expression:
        return super().expression(pair) if self.dim in (1, 3) else (pair or Pair()).external(self)

    def pairs(self, X: Any, Y: Any | None) -> np.ndarray:  # (n, m)
        left = _rows(X)
        return self.profile(cdist(left, left if Y is None else _rows(Y)))

    def self_pairs(self, X: Any) -> np.ndarray:  # (n,)
        return np.full(len(_rows(X)), float(self.measure()[1].sum()))


def _sinc(z: Any) -> Any:
    """sin(z)/z, by its series near 0."""
    if z == wrap(0.0):
        return wrap(1.0)
    near = 0.01
    square = z * z
    series = 1 - square * (1 / 6 - square / 120)
    return where(z <= near, series, sin(z) / maximum(z, near))


def _is_list(values: Any) -> bool:
    """Whether the values are a list of real numbers."""
    array = np.asarray(values)
    return array.ndim == 1 and array.size > 0 and array.dtype.kind in "fiu"


def _are_weights(values: Any) -> bool:
    return _is_list(values) and bool(np.isfinite(values).all()) and bool((np.asarray(values) >= 0).all())
