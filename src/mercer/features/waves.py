r"""Random waves of a kernel (Bochner): frequencies ωⱼ and weights wⱼ with E Σⱼ wⱼ cos⟨ωⱼ, x - x'⟩ = k(x, x').

A kernel of x - x' is k(0) times the mean of cos⟨ω, x - x'⟩ over its spectral density, a probability:

    Gaussian            ω = g/σ, g normal
    Matern              ω = g/ℓ · √(2ν/χ²), χ² with 2ν degrees of freedom: Student's distribution
    Laplacian, ℓ₂       Matern's with ν = ½, ℓ = 1/γ
    Laplacian, ℓ₁       ωₖ = γ · Cauchy, for each column k
    RationalQuadratic   ω = √s · g, s from Gamma(α)/αℓ²: a mixture of Gaussians
    Radial              ω = t · (a direction, or g for d = ∞), t from its measure
    Spectral, BSpline   ωₖ from the density of the line, for each column k
    Periodic            ωₖ = (2π/p)(a - b), a and b from Poisson(1/2ℓ²), for each column k
    Constant            ω = 0

of a sum, waves of each part, as many as its share of k(0); of a product the sums of frequencies.

Directions g are orthogonal to each other in blocks of as many as there are columns, with the lengths of
normal vectors: each is normal by itself, so that nothing is biased, and together they spread more evenly.

Rahimi and Recht, Random features for large-scale kernel machines, NIPS 2007. Yu et al., Orthogonal random
features, NIPS 2016.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from mercer.data.column_names import find_columns
from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.kernels.compose import Normalized, OnColumns, Power, Product, Scaled, Sum
from mercer.kernels.spectral.density import Spectral
from mercer.kernels.spectral.radial import Radial
from mercer.kernels.vectors.dotproduct import Constant
from mercer.kernels.vectors.stationary import (
    BSpline,
    Gaussian,
    Laplacian,
    Matern,
    Periodic,
    RationalQuadratic,
)

_MOST_FACTORS = 64  # the largest power: so many frequencies are added up for each wave


class Waves(NamedTuple):
    """What draws the waves of a kernel."""

    #: k(x, x), the sum of the weights
    size: float
    #: a function of a number m ≥ 1 and a generator, which returns (m, d) frequencies and (m,) weights
    draw: Callable[[int, np.random.Generator], tuple[np.ndarray, np.ndarray]]


def waves_of(kernel: Kernel, d: int, names: Sequence[Any] | None = None) -> Waves:
    """The waves of a resolved kernel on points of d columns, perhaps with names.

    >>> omega, weight = waves_of(2 * Gaussian(sigma=0.5), 3).draw(10, np.random.default_rng(0))
    >>> omega.shape, float(weight.sum())
    ((10, 3), 2.0)
    """
    rule = _COMPOSED.get(type(kernel))
    if rule is not None:
        return rule(kernel, d, names)
    law = _LAWS.get(type(kernel))
    if law is None:
        raise InputError(
            f"random features are waves of a spectral density, and none is known for {kernel!r}: "
            "take mercer.LandmarkFeatures, which has features of any kernel"
        )
    size, frequencies = law(kernel, d)

    def draw(count: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        return frequencies(count, random), np.full(count, size / count)

    return Waves(size, draw)


def orthogonal(count: int, d: int, random: np.random.Generator) -> np.ndarray:  # (count, d)
    """Normal vectors, orthogonal to each other in blocks of d.

    >>> g = orthogonal(2, 3, np.random.default_rng(0))
    >>> abs(float(g[0] @ g[1])) < 1e-12
    True
    """
    Q, R = np.linalg.qr(random.normal(size=(math.ceil(count / d), d, min(count, d))))
    # With R's diagonal positive Q is uniformly distributed, whatever the signs of LAPACK.
    signs = np.where(np.diagonal(R, axis1=1, axis2=2) < 0, -1.0, 1.0)
    directions = (Q * signs[:, None, :]).transpose(0, 2, 1).reshape(-1, d)[:count]
    return directions * np.sqrt(random.chisquare(d, size=(count, 1)))


# --- kernels that have a density -------------------------------------------------------------------------

Frequencies = Callable[[int, np.random.Generator], np.ndarray]
Law = tuple[float, Frequencies]


def _factor(value: Any, power: float) -> np.ndarray:
    """What a length scale or its like multiplies the columns with: one number, or one for each."""
    return np.asarray(value, dtype=np.float64) ** power


def _gaussian(kernel: Gaussian, d: int) -> Law:
    if kernel.gamma is not None:
        scale = math.sqrt(2) * _factor(kernel.gamma, 0.5)
    else:
        scale = _factor(1.0 if kernel.sigma is None else kernel.sigma, -1.0)
    return 1.0, lambda count, random: scale * orthogonal(count, d, random)


def _student(nu: float, scale: np.ndarray, d: int) -> Law:
    def frequencies(count: int, random: np.random.Generator) -> np.ndarray:
        # Where ν is tiny, some of these numbers are rounded to 0.
        spread = np.sqrt(2 * nu / np.maximum(random.chisquare(2 * nu, size=(count, 1)), 1e-200))
        return scale * spread * orthogonal(count, d, random)

    return 1.0, frequencies


def _matern(kernel: Matern, d: int) -> Law:
    return _student(float(kernel.nu), _factor(kernel.length_scale, -1.0), d)


def _laplacian(kernel: Laplacian, d: int) -> Law:
    scale = _factor(kernel.gamma, 1.0)
    if kernel.is_euclidean:
        return _student(0.5, scale, d)
    return 1.0, lambda count, random: scale * random.standard_cauchy(size=(count, d))


def _rational_quadratic(kernel: RationalQuadratic, d: int) -> Law:
    alpha, scale = float(kernel.alpha), _factor(kernel.length_scale, -1.0)

    def frequencies(count: int, random: np.random.Generator) -> np.ndarray:
        spread = np.sqrt(random.gamma(alpha, 1 / alpha, size=(count, 1)))
        return scale * spread * orthogonal(count, d, random)

    return 1.0, frequencies


def _radial(kernel: Radial, d: int) -> Law:
    t, w = kernel.measure()

    def frequencies(count: int, random: np.random.Generator) -> np.ndarray:
        if kernel.dim not in (d, math.inf):  # a projection of waves in more dimensions; too few are refused
            return kernel.sample(count, random, d)
        directions = orthogonal(count, d, random)
        if kernel.dim == d:
            directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        return directions * random.choice(t, size=(count, 1), p=w / w.sum())

    return float(w.sum()), frequencies


def _spectral(kernel: Spectral, d: int) -> Law:
    return float(kernel.profile(0.0)) ** d, lambda count, random: kernel.sample(count, random, d)


def _b_spline(kernel: BSpline, d: int) -> Law:
    m, h = int(kernel.degree), float(kernel.scale)
    terms = ((-1) ** i * math.comb(m + 1, i) * (m + 1 - 2 * i) ** m for i in range((m + 1) // 2 + 1))
    middle = float(Fraction(sum(terms), 2**m * math.factorial(m)))  # B_m(0)

    def frequencies(count: int, random: np.random.Generator) -> np.ndarray:
        return 2 / h * _sinc_powers(m + 1, count * d, random).reshape(count, d)

    return middle**d, frequencies


def _sinc_powers(power: int, count: int, random: np.random.Generator) -> np.ndarray:  # (count,)
    """Numbers with the density ∝ (sin(u)/u)^power, of an even power, by rejection from min(1, |u|^-power)."""
    found = np.empty(0)
    while len(found) < count:
        u = random.random(count)
        is_tail = random.random(count) < 1 / power  # ∫₀¹ 1 du = 1, ∫₁^∞ u^-power du = 1/(power - 1)
        u[is_tail] = (1 - u[is_tail]) ** (-1 / (power - 1))
        ratio = (
            np.where(is_tail, np.sin(u), np.sinc(u / math.pi)) ** power
        )  # to the density it was drawn from
        accepted = random.random(count) < ratio
        found = np.append(found, (u * random.choice([-1.0, 1.0], size=count))[accepted])
    return found[:count]


def _periodic(kernel: Periodic, d: int) -> Law:
    mean, wave = 0.5 / float(kernel.length_scale) ** 2, 2 * math.pi / float(kernel.period)

    def frequencies(count: int, random: np.random.Generator) -> np.ndarray:
        counts = random.poisson(mean, size=(2, count, d))
        return np.asarray(wave * (counts[0] - counts[1]))

    return 1.0, frequencies


def _constant(kernel: Constant, d: int) -> Law:
    return float(kernel.c), lambda count, random: np.zeros((count, d))


_LAWS: dict[type[Kernel], Callable[[Any, int], Law]] = {
    BSpline: _b_spline,
    Constant: _constant,
    Gaussian: _gaussian,
    Laplacian: _laplacian,
    Matern: _matern,
    Periodic: _periodic,
    Radial: _radial,
    RationalQuadratic: _rational_quadratic,
    Spectral: _spectral,
}


# --- kernels made of them --------------------------------------------------------------------------------


def _sum(kernel: Sum, d: int, names: Any) -> Waves:
    """Waves of each part, as many as its share of k(0), and one at least; of fewer waves, by chance."""
    parts = [waves_of(part, d, names) for part in kernel.children().values()]
    sizes = np.array([part.size for part in parts])
    total = float(sizes.sum())
    share = sizes / total if total > 0 else np.full(len(sizes), 1 / len(sizes))

    def draw(count: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        if count >= len(parts):
            # The rest is cut in proportion to the shares: each is off by less than one.
            cuts = np.round(np.append(0.0, np.cumsum(share)) * (count - len(parts)))
            counts, factor = 1 + np.diff(cuts).astype(np.int64), np.ones(len(parts))
        else:
            counts = random.multinomial(count, share)
            factor = counts / (count * share + (share == 0))  # whose mean is 1
        drawn = [part.draw(int(own), random) for part, own in zip(parts, counts, strict=True) if own]
        weights = [f * weight for (_, weight), f in zip(drawn, factor[counts > 0], strict=True)]
        return np.vstack([omega for omega, _ in drawn]), np.concatenate(weights)

    return Waves(total, draw)


def _product(factors: list[Waves]) -> Waves:
    """ω + ω', in random pairs, and m w w': E cos⟨ω + ω', r⟩ = E cos⟨ω, r⟩ · E cos⟨ω', r⟩ by symmetry."""
    if len(factors) == 1:
        return factors[0]
    first, second = factors[0], _product(factors[1:])

    def draw(count: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        (omega, weight), (other, other_weight) = first.draw(count, random), second.draw(count, random)
        pairs = random.permutation(count)
        return omega + other[pairs], count * weight * other_weight[pairs]

    return Waves(first.size * second.size, draw)


def _scaled(kernel: Scaled, d: int, names: Any) -> Waves:
    return _multiple(waves_of(kernel.kernel, d, names), float(kernel.scale))


def _normalized(kernel: Normalized, d: int, names: Any) -> Waves:
    waves = waves_of(kernel.kernel, d, names)
    return _multiple(waves, 1 / waves.size if waves.size > 0 else 0.0)


def _multiple(waves: Waves, factor: float) -> Waves:
    def draw(count: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        omega, weight = waves.draw(count, random)
        return omega, factor * weight

    return Waves(factor * waves.size, draw)


def _power(kernel: Power, d: int, names: Any) -> Waves:
    exponent = float(kernel.exponent)
    if not (exponent.is_integer() and 1 <= exponent <= _MOST_FACTORS):
        raise InputError(
            f"random features are known for whole powers up to {_MOST_FACTORS}, got {kernel!r}: "
            "take mercer.LandmarkFeatures, which has features of any kernel"
        )
    return _product([waves_of(kernel.kernel, d, names)] * int(exponent))


def _on_columns(kernel: OnColumns, d: int, names: Any) -> Waves:
    columns = find_columns(list(kernel.columns), d, None if names is None else list(names), "X")
    own = None if names is None else [names[j] for j in columns]
    waves = waves_of(kernel.kernel, len(columns), own)

    def draw(count: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        omega, weight = waves.draw(count, random)
        wide = np.zeros((d, count))
        np.add.at(wide, columns, omega.T)  # A column may be chosen twice.
        return wide.T, weight

    return Waves(waves.size, draw)


_COMPOSED: dict[type[Kernel], Callable[[Any, int, Any], Waves]] = {
    Normalized: _normalized,
    OnColumns: _on_columns,
    Power: _power,
    Product: lambda kernel, d, names: _product([waves_of(k, d, names) for k in kernel.children().values()]),
    Scaled: _scaled,
    Sum: _sum,
}
