r"""Bochner: φ(x - x') is positive definite exactly when its Fourier transform v is ≥ 0.

``density(kernel)`` is that v, in closed form where it is known and by a numerical transform with its error
where it is not. In ℝ^d, for a kernel φ(‖x - x'‖),

    v(ω) = (2π)^{-d/2} ∫ φ(‖r‖) e^{-i⟨ω, r⟩} dr = 2^{1-d/2}/Γ(d/2) ∫₀^∞ φ(r) Ω_d(ωr) r^{d-1} dr.

>>> from mercer import Laplacian
>>> v = density(Laplacian(gamma=1.0))
>>> v([0.0, 1.0]).round(6)  # √(2/π)/(1 + ω²)
array([0.797885, 0.398942])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import gamma, lgamma, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from mercer.certify.asked import Sampled, as_asked
from mercer.certify.rounding import gram_with_error
from mercer.errors import InputError
from mercer.kernels import compose
from mercer.kernels.base import Kernel
from mercer.kernels.domain import Domain
from mercer.kernels.formula.calculus import evaluate
from mercer.kernels.formula.expression import Number
from mercer.kernels.formula.pair import ParameterLeaf, Quantity, Scaling
from mercer.kernels.names import KernelLike
from mercer.kernels.spectral.density import Spectral
from mercer.kernels.spectral.quadrature import mass, panels, reach
from mercer.kernels.spectral.radial import Radial, sphere_wave
from mercer.kernels.vectors.stationary import BSpline, Gaussian, Laplacian, Matern, RationalQuadratic
from mercer.kernels.words import has_scales

Function = Callable[[np.ndarray], np.ndarray]

_MOST_NODES = 2**14  # Panels beyond so many nodes are left out, and counted as an error.


@dataclass(frozen=True)
class Density:
    """The spectral density of a kernel on ℝ^dim, a function of the frequency.

    >>> from mercer import Gaussian
    >>> v = density(Gaussian(sigma=1.0), dim=2)
    >>> v.at([[0.0, 0.0], [1.0, 1.0]]).round(6)
    array([1.      , 0.367879])
    >>> v.is_exact, v.error(1.0)
    (True, 0.0)
    """

    kernel: Kernel
    dim: int
    #: whether v(ω) is a product over coordinates; otherwise it is a function of ‖ω‖
    is_product: bool
    #: whether it is a formula; otherwise it is a numerical transform
    is_exact: bool
    _values: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] = field(repr=False)

    def __reduce__(self) -> Any:
        """Pickled as what it was made of: the functions in it are no names of a module."""
        return density, (self.kernel, self.dim)

    def __call__(self, omega: ArrayLike) -> Any:
        """v at frequencies: along one axis where v is a product over coordinates, else at ‖ω‖ = omega."""
        return self._of(omega)[0]

    def error(self, omega: ArrayLike) -> Any:
        """How far v(ω) may be off: 0 for a formula, an estimate for a numerical transform."""
        return self._of(omega)[1]

    def at(self, omega: ArrayLike) -> np.ndarray:  # (m, dim) to (m,)
        """v at frequency vectors, one per row; a list of numbers when dim = 1."""
        rows = np.asarray(omega, dtype=float)
        rows = rows.reshape(-1, 1) if rows.ndim < 2 and self.dim == 1 else rows
        if rows.ndim != 2 or rows.shape[1] != self.dim:
            raise InputError(
                f"frequencies must be rows of {self.dim} numbers, got an array of shape {rows.shape}"
            )
        if self.is_product:
            return np.asarray(self(rows)).prod(axis=1)
        return np.asarray(self(np.linalg.norm(rows, axis=1)))

    def _of(self, omega: ArrayLike) -> tuple[Any, Any]:
        w = abs(np.asarray(omega, dtype=float))
        values, errors = self._values(np.atleast_1d(w).ravel())
        if w.ndim == 0:
            return float(values[0]), float(errors[0])
        return values.reshape(w.shape), errors.reshape(w.shape)


def density(kernel: KernelLike, dim: int = 1) -> Density:
    """The spectral density of a kernel of x - x' on ℝ^dim.

    Known in closed form: Gaussian, Laplacian, Matern, RationalQuadratic, BSpline, Spectral, Radial of a
    density, their sums and multiples. Any other kernel that is a function of ‖x - x'‖, or of x - x' in one
    dimension, is transformed numerically if it falls off fast enough to be integrable.

    >>> from mercer import Wendland
    >>> v = density(Wendland(smoothness=0, dim=1))  # the hat: its transform is a square
    >>> bool(abs(v(2 * np.pi)) < 1e-14), v.is_exact
    (True, False)
    """
    kernel = as_asked(kernel)
    if isinstance(dim, bool) or not isinstance(dim, int | np.integer) or dim < 1:
        raise InputError(f"dim must be a whole number of at least 1, got {dim!r}: pass the number of columns")
    if not kernel.is_resolved():
        raise InputError(f"{kernel!r} waits for data: call kernel.resolve(X) first")
    if has_scales(kernel):
        raise InputError(
            f"{kernel!r} has one length scale per column, and its density another scale in each direction: "
            "divide the columns by them, and ask for the kernel with a single one"
        )
    known = _known(kernel, dim)
    if known is not None:
        function, is_product = known

        def exact(omega: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return np.asarray(function(omega), dtype=float), np.zeros(omega.shape)

        return Density(kernel, dim, is_product and dim > 1, True, exact)
    profile = radial_profile(kernel) or (line_profile(kernel) if dim == 1 else None)
    if profile is None:
        raise InputError(
            f"{kernel!r} is not known to be a function of "
            + ("x - x'" if dim == 1 else f"‖x - x'‖: in ℝ^{dim} no density can be computed")
        )
    return Density(kernel, dim, False, False, lambda omega: transform(profile, omega, dim))


# --- closed forms --------------------------------------------------------------------------------


def _known(kernel: Kernel, dim: int) -> tuple[Function, bool] | None:
    """(v, whether it is a product over coordinates), for kernels whose transform is in the books."""
    if type(kernel) is compose.Scaled:
        inner = _known(kernel.kernel, dim)
        if inner is None or (inner[1] and dim > 1):
            return None
        return (lambda omega: kernel.scale * inner[0](omega)), inner[1]
    if type(kernel) is compose.Sum:
        parts = [_known(part, dim) for part in kernel.children().values()]
        if None in parts or (dim > 1 and any(part[1] for part in parts if part)):
            return None
        return (lambda omega: np.sum([part[0](omega) for part in parts if part], axis=0)), False
    rule = _KNOWN.get(type(kernel))
    return None if rule is None else rule(kernel, dim)


def _gaussian(kernel: Gaussian, dim: int) -> tuple[Function, bool]:
    if kernel.gamma is not None:
        sigma = 1 / sqrt(2 * kernel.gamma)
    else:
        sigma = 1.0 if kernel.sigma is None else float(kernel.sigma)
    return (lambda omega: sigma**dim * np.exp(-((sigma * omega) ** 2) / 2)), False


def _student(nu: float, scale: float, dim: int) -> Function:
    """The transform of Matérn's kernel, z = scale · r: ∝ (scale² + ω²)^{-(ν + d/2)}."""
    power = nu + dim / 2
    log_size = lgamma(power) - lgamma(nu) + dim / 2 * np.log(2) - dim * np.log(scale)
    return lambda omega: np.exp(log_size - power * np.log1p((omega / scale) ** 2))


def _laplacian(kernel: Laplacian, dim: int) -> tuple[Function, bool]:
    is_product = not kernel.is_euclidean
    return _student(0.5, float(kernel.gamma), 1 if is_product else dim), is_product


def _matern(kernel: Matern, dim: int) -> tuple[Function, bool]:
    return _student(float(kernel.nu), sqrt(2 * kernel.nu) / float(kernel.length_scale), dim), False


def _rational_quadratic(kernel: RationalQuadratic, dim: int) -> tuple[Function, bool]:
    """(1 + r²/c²)^{-α}: c^d 2^{1-d/2}/Γ(α) (z/2)^μ K_μ(z) with z = cω, μ = α - d/2."""
    alpha = float(kernel.alpha)
    c = sqrt(2 * alpha) * float(kernel.length_scale)
    order = alpha - dim / 2
    size = c**dim * 2 ** (1 - dim / 2) / gamma(alpha)

    def v(omega: np.ndarray) -> np.ndarray:
        z = np.maximum(c * omega, 1e-300)
        with np.errstate(all="ignore"):
            values = size * (z / 2) ** order * special.kve(order, z) * np.exp(-z)
        at_zero = size * gamma(order) / 2 if order > 0 else np.inf
        return np.where(c * omega < 1e-200, at_zero, values)

    return v, False


def _b_spline(kernel: BSpline, dim: int) -> tuple[Function, bool]:
    h, power = float(kernel.scale), int(kernel.degree) + 1
    return (lambda omega: h / sqrt(2 * pi) * np.sinc(omega * h / (2 * pi)) ** power), True


def _radial(kernel: Radial, dim: int) -> tuple[Function, bool] | None:
    """From dμ(t) = 2^{1-d/2}/Γ(d/2) t^{d-1} v(t) dt; of Gaussians, Σ wₖ tₖ^{-d} exp(-ω²/2tₖ²)."""
    t, w = kernel.measure()
    if kernel.dim == np.inf and t.min() > 0:
        scaled = w * t ** float(-dim)
        return (lambda omega: np.exp(-(np.divide.outer(omega, t) ** 2) / 2) @ scaled), False
    if kernel.density is None or kernel.dim != dim:
        return None
    size = gamma(dim / 2) * 2 ** (dim / 2 - 1)

    def v(omega: np.ndarray) -> np.ndarray:
        omega = np.maximum(omega, 1e-12 * t.max())  # The density is only defined for t > 0.
        return np.asarray(size * kernel.density(omega) * omega ** (1.0 - dim))

    return v, False


_KNOWN: dict[type[Kernel], Callable[[Any, int], tuple[Function, bool] | None]] = {
    Gaussian: _gaussian,
    Laplacian: _laplacian,
    Matern: _matern,
    RationalQuadratic: _rational_quadratic,
    BSpline: _b_spline,
    Radial: _radial,
    Spectral: lambda kernel, dim: (kernel.spectrum, True),
}


# --- profiles, and their numerical transform -----------------------------------------------------


def radial_profile(kernel: Kernel) -> Function | None:
    """φ of a kernel φ(‖x - x'‖), length scales of columns counted as part of the norm; None for others."""
    if isinstance(kernel, Radial | Sampled):
        return kernel.profile
    expression = kernel.expression()
    quantities = set()
    for leaf in expression.leaves():
        if isinstance(leaf, Quantity) and leaf.kind == "sqdist":
            quantities.add(leaf)
        elif not isinstance(leaf, Number | ParameterLeaf):
            return None
    if len(quantities) != 1 or not all(isinstance(s, Scaling) for q in quantities for s in q.view.steps):
        return None

    def profile(r: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            values = evaluate(
                expression,
                lambda leaf: r * r if isinstance(leaf, Quantity) else leaf.value,  # type: ignore[attr-defined]
            )
        return np.broadcast_to(np.asarray(values, dtype=float), np.shape(r))

    return profile


def line_profile(kernel: Kernel) -> Function | None:
    """φ of a kernel that is φ(x - x') in one dimension, as far as a few shifts can tell."""
    if kernel.domain is not Domain.VECTORS:
        return None
    expression = kernel.expression()
    random = np.random.default_rng(0)
    x = random.normal(size=(12, 1)) * 10.0 ** random.uniform(-1, 1, size=(12, 1))
    try:
        K, E = gram_with_error(expression, x)
        moved, F = gram_with_error(expression, x + 0.59375)
    except InputError:  # The kernel takes points of more columns.
        return None
    rounding = 1e-13 * abs(K).max()  # because x + 0.59375 is rounded
    if not np.isfinite(K).all() or (abs(K - moved) > E + F + rounding).any():
        return None

    def profile(r: np.ndarray) -> np.ndarray:
        return gram_with_error(expression, np.asarray(r).reshape(-1, 1), np.zeros((1, 1)), bounded=False)[0][
            :, 0
        ]

    return profile


def transform(
    profile: Function, omega: np.ndarray, dim: int, limit: int = _MOST_NODES
) -> tuple[np.ndarray, np.ndarray]:  # (m,), (m,)
    """v(ω) of φ(‖x‖) in ℝ^dim, and how far it may be off: two rules' difference, the tail, rounding."""
    size = 2 ** (1 - dim / 2) / gamma(dim / 2)

    def weighted(r: np.ndarray) -> np.ndarray:
        return profile(r) * r ** (dim - 1)

    peak, end, tail = reach(weighted)
    results = []
    for level in (0, 1):
        nodes, weights = panels(peak, end, float(omega.max(initial=0.0)), level, limit)
        weights = weights * weighted(nodes)
        values = np.array([weights @ sphere_wave(dim, w * nodes) for w in omega])
        results.append(size * values)
    total = size * float(abs(weights).sum())
    beyond = size * mass(weighted, float(nodes[-1]), end) + tail * total
    return results[1], abs(results[1] - results[0]) + beyond + 1e-14 * total
