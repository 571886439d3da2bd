r"""Kernels from a spectral density (Bochner): φ(x - x') is one exactly when φ mixes waves with weights ≥ 0.

Conventions, in ℝ^d:

    φ(r) = (2π)^{-d/2} ∫ v(ω) e^{i⟨ω, r⟩} dω,      v(ω) = (2π)^{-d/2} ∫ φ(r) e^{-i⟨ω, r⟩} dr ≥ 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mercer.data.types import Points
from mercer.errors import InputError, shown
from mercer.kernels.base import Kernel
from mercer.kernels.formula.expression import ZERO, Expression, absolute, cos, exp, minimum, sin, wrap
from mercer.kernels.formula.pair import External, Pair, ParameterLeaf, View
from mercer.kernels.parameters import fixed, is_vector, positive
from mercer.kernels.spectral.poles import Wave, inverse_polynomial, waves
from mercer.kernels.spectral.quadrature import reach
from mercer.kernels.spectral.waves import Mixture, checked_density, mixture, rows

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
    length_scale: float = positive(1.0)
    extent: float | None = positive(None, optional=True, symbolic=False)

    def check(self) -> None:
        with np.errstate(all="ignore"):
            total = self.profile(np.zeros(1))  # This refuses what is no density.
        if not np.isfinite(total).all():
            raise InputError(
                f"the density {shown(self.density)} has an integral that no float can hold: "
                "multiply it by a number, and the kernel by another"
            )

    @property
    def is_rational(self) -> bool:
        """Whether the density is given by coefficients, and φ in closed form."""
        return not callable(self.density)

    @property
    def error(self) -> float:
        """How far φ may be from the transform of v, at distances within the extent; 0 in closed form."""
        return 0.0 if self.is_rational else self._mixture().error

    def profile(self, r: ArrayLike) -> np.ndarray:
        """φ(r/ℓ), the kernel in one dimension."""
        distance = abs(np.asarray(r, dtype=float)) / self.length_scale
        if self.is_rational:
            return np.asarray(sum(wave(distance) for wave in self._waves()), dtype=float)
        return self._mixture()(distance)

    def spectrum(self, omega: ArrayLike) -> np.ndarray:
        """v(ω), with the length scale: ℓ v(ℓω)."""
        frequency = abs(np.asarray(omega, dtype=float)) * self.length_scale
        v = inverse_polynomial(self._coefficients()) if self.is_rational else self.density
        return np.asarray(self.length_scale * v(frequency), dtype=float)

    def sample(self, n: int, rng: np.random.Generator, dim: int = 1) -> np.ndarray:  # (n, dim)
        """Frequencies ω drawn in proportion to v, so that k(x, x') = φ(0)^dim E[cos⟨ω, x - x'⟩]."""
        if self.is_rational:
            size = _sampled(inverse_polynomial(self._coefficients()), rng.random((n, dim)))
        else:
            rule = self._mixture()
            size = rng.choice(rule.nodes, size=(n, dim), p=rule.weights / rule.weights.sum())
        return size * rng.choice([-1.0, 1.0], size=(n, dim)) / self.length_scale

    # --- the two ways to compute it --------------------------------------------------------------

    def formula(self, pair: Pair) -> Expression:
        def profile(a: Any, b: Any) -> Any:
            # Beyond this distance every wave has decayed, and a phase would be no number any more.
            r = minimum(absolute(a - b) / self.length_scale, self._reach())
            return sum(_formula(wave, r) for wave in self._waves())

        return pair.product(profile)

    def expression(self, pair: Pair | None = None) -> Expression:
        pair = pair or Pair()
        return super().expression(pair) if self.is_rational else pair.external(_Waves(self, pair.path))

    def _coefficients(self) -> tuple[float, ...]:
        return tuple(float(alpha) for alpha in self.density)

    def _waves(self) -> tuple[Wave, ...]:
        return waves(self._coefficients())

    def _reach(self) -> float:
        """A distance at which exp(-ar) is zero, for each wave."""
        return float(min(1e3 / min(wave.rate for wave in self._waves()), 1e150))

    def _mixture(self) -> Mixture:
        try:
            return _kept_mixture(self.density, self.extent)
        except TypeError:  # The function is not hashable.
            return _mixture(self.density, self.extent)


def _formula(wave: Wave, r: Expression) -> Any:
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


# --- a density as a mixture of waves -------------------------------------------------------------


def _mixture(density: Callable[[np.ndarray], np.ndarray], extent: float | None) -> Mixture:
    """√(2/π) ∫ v(ω) cos(ωr) dω."""
    v = checked_density(density, "spectral")
    return mixture(lambda omega: v(omega) * sqrt(2 / pi), np.cos, extent)


_kept_mixture = lru_cache(maxsize=64)(_mixture)


@dataclass(frozen=True)
class _Waves:
    """A kernel computed by matrix products of waves, outside any formula; ``path`` is its place in a tree."""

    kernel: Spectral
    path: tuple[str, ...]

    def __repr__(self) -> str:
        return repr(self.kernel)

    @property
    def lemma(self) -> str | None:
        return self.kernel.lemma

    def pairs(self, X: Points, Y: Points | None) -> np.ndarray:  # (n, m)
        """The product over columns of what a column's features give."""
        K: Any = 1.0
        for x, y in _columns(X, Y):
            K = K * (self._features(x) @ self._features(y).T)
        return np.asarray(K)

    def self_pairs(self, X: Points) -> np.ndarray:  # (n,)
        table = rows(X)
        return np.full(len(table), float(self.kernel.profile(0.0)) ** table.shape[1])

    def slope(self, view: View, leaf: ParameterLeaf) -> Expression:
        """The derivative by a parameter of the tree that the kernel is in."""
        return (
            External(view, _Slope(self.kernel, self.path))
            if leaf.path == (*self.path, "length_scale")
            else ZERO
        )

    def _features(self, x: np.ndarray, power: int = 0) -> np.ndarray:  # (n,) to (n, 2 nodes)
        """√wₖ (cos ωₖx, sin ωₖx), times ωₖ if the power is 1."""
        rule = self.kernel._mixture()
        with np.errstate(over="ignore"):
            phase = np.multiply.outer(x / self.kernel.length_scale, rule.nodes)
        if not np.isfinite(phase).all():
            raise InputError(
                f"the points are up to {np.abs(x).max():.3g}, too many times the length_scale "
                f"{self.kernel.length_scale!r} for a wave: rescale the columns, or pass a larger length_scale"
            )
        return np.hstack([np.cos(phase), np.sin(phase)]) * np.tile(
            np.sqrt(rule.weights) * rule.nodes**power, 2
        )


class _Slope(_Waves):
    """∂k/∂ℓ: with u = (x - x')/ℓ, a column's φ(u) = Σ wₖ cos(ωₖu) changes by (u/ℓ) Σ wₖ ωₖ sin(ωₖu)."""

    lemma = None  # This is no kernel.

    def pairs(self, X: Points, Y: Points | None) -> np.ndarray:  # (n, m)
        K: Any = 1.0
        total: Any = 0.0
        length = self.kernel.length_scale
        for x, y in _columns(X, Y):
            plain, cosines, sines = self._features(x), *np.split(self._features(y, power=1).T, 2)
            n = len(cosines)
            waves = plain[:, n:] @ cosines - plain[:, :n] @ sines  # Σ wω sin(ωu)
            value = plain @ self._features(y).T
            total = total * value + K * (np.subtract.outer(x, y) / length**2 * waves)
            K = K * value
        return np.asarray(total)

    def self_pairs(self, X: Points) -> np.ndarray:  # (n,)
        return np.zeros(len(rows(X)))

    def slope(self, view: View, leaf: ParameterLeaf) -> Expression:
        if leaf.path == (*self.path, "length_scale"):
            raise InputError(
                f"{self.kernel!r} has no second derivative by length_scale: its density is a function; "
                "coefficients of 1/v have them all"
            )
        return ZERO


def _columns(X: Points, Y: Points | None) -> Any:
    """The columns of two tables, one pair after the other; Y = None means X with itself."""
    left = rows(X)
    return zip(left.T, left.T if Y is None else rows(Y).T, strict=True)


def _sampled(v: Callable[[np.ndarray], np.ndarray], uniform: np.ndarray) -> np.ndarray:
    """|ω| with density v from uniform numbers: its distribution function, inverted in a table."""
    peak = reach(v)[0]
    angle = np.linspace(0, pi / 2, 2**15 + 1)
    middle = (angle[1:] + angle[:-1]) / 2
    cells = v(peak * np.tan(middle)) / np.cos(middle) ** 2
    share = np.append(0.0, np.cumsum(cells)) / cells.sum()
    return np.asarray(peak * np.tan(np.interp(uniform, share, angle)))


def _is_list(values: Any) -> bool:
    """Whether the values are a list of real numbers."""
    array = np.asarray(values)
    return array.ndim == 1 and array.size > 0 and array.dtype.kind in "fiu"
