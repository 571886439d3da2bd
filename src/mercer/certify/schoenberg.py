r"""Schoenberg: φ(‖x - x'‖) may be positive definite in ℝ¹ and not in ℝ³.

Positive definite in ℝ^d means a spectral density v_d ≥ 0; in every dimension, a mixture of Gaussians. A
function that vanishes beyond some distance never is one, so compact support always ends somewhere.

>>> from mercer import BallIndicator, Gaussian, Wendland
>>> largest_dimension(Gaussian()), largest_dimension(Wendland(dim=3)), largest_dimension(BallIndicator())
(inf, 3, 0)
>>> negative_frequency(Wendland(dim=3), 5)
Frequency(omega=26.1, value=-1.5e-09, error=4e-14, is_proved=True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.certify.asked import as_asked
from mercer.certify.bochner import line_profile, radial_profile, transform
from mercer.certify.closure import Setting, prove
from mercer.certify.parts import number, terms
from mercer.certify.proof import Step
from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.kernels.formula.calculus import evaluate, substitute
from mercer.kernels.formula.expression import ZERO, Apply, Expression, Number, Symbol
from mercer.kernels.formula.pair import Quantity
from mercer.kernels.names import KernelLike
from mercer.kernels.spectral.quadrature import reach
from mercer.kernels.spectral.radial import Radial, sphere_wave

R = Symbol("r")
_HIGHEST_DIMENSION = 64  # Dimensions beyond it are not examined one by one.


@dataclass(frozen=True)
class Frequency:
    """A frequency at which the spectral density in some dimension is negative by more than its error."""

    omega: float
    value: float
    error: float
    #: the value divided by the largest value, which says how faint it is
    share: float
    #: whether the error is a theorem's bound, not an estimate
    is_proved: bool

    def __repr__(self) -> str:
        return (
            f"Frequency(omega={self.omega:.4g}, value={self.value:.3g}, error={self.error:.2g}, "
            f"is_proved={self.is_proved})"
        )


def largest_dimension(kernel: KernelLike) -> float | None:
    """The largest m such that the kernel is positive definite on ℝ^m: a whole number, ``math.inf``, or None.

    None means: proved up to some dimension, neither proved nor refuted in the next. 0 means: in none.
    """
    from mercer.certify.verdict import certify  # `verdict` imports this file too.

    kernel = as_asked(kernel)
    if not kernel.domain.is_vectors:
        raise InputError(f"a dimension is a number of columns, and {kernel!r} is no kernel on vectors")
    largest = proved_dimension(kernel)
    if largest == math.inf or certify(kernel, dim=int(largest) + 1).verdict == "refuted":
        return largest
    return None


def proved_dimension(kernel: Kernel) -> float:
    """The largest dimension up to which the rules prove the kernel, 0 if none."""
    if isinstance(prove(kernel, Setting(dim=10**6)), Step):
        return math.inf
    proved = 0
    while proved < _HIGHEST_DIMENSION and isinstance(prove(kernel, Setting(dim=proved + 1)), Step):
        proved += 1
    return proved


def negative_frequency(kernel: Kernel, dim: int) -> Frequency | None:
    """Where the density of φ(‖x - x'‖) in ℝ^dim, or of φ(x - x') in ℝ¹, is negative; None if nowhere."""
    radial = radial_profile(kernel)
    profile = line_profile(kernel) if radial is None and dim == 1 else radial
    if profile is None:
        return None
    piece = _Piece.of(kernel.expression()) if radial else None
    if piece is not None:
        return piece.negative(dim)
    try:
        peak = reach(lambda r: profile(r) * r ** (dim - 1))[0]
        omega = np.linspace(0.0, (20 + 4 * dim) / peak, 200)
        values, errors = transform(profile, omega, dim, limit=2**12)
    except InputError:  # The profile is not integrable.
        return None
    return _most_negative(omega, values, errors, False)


def wave_number(kernel: Kernel) -> float | None:
    """The largest frequency of a kernel whose spectrum is spheres, on which a density cannot be plotted."""
    if not isinstance(kernel, Radial) or kernel.density is not None:
        return None
    t, w = kernel.measure()
    return float(t[w > 0].max(initial=0.0)) or None


def _most_negative(
    omega: np.ndarray, values: np.ndarray, errors: np.ndarray, is_proved: bool
) -> Frequency | None:
    """The frequency whose density is below zero by the most, of those that are beyond their error."""
    below = np.where(values < -2 * errors, values, np.inf)
    i = int(np.argmin(below))
    found = Frequency(
        float(omega[i]), float(values[i]), float(errors[i]), float(values[i] / values.max()), is_proved
    )
    return found if np.isfinite(below[i]) else None


# --- compact support: a transform whose error is bounded by theorem ------------------------------


@dataclass(frozen=True)
class _Piece:
    """φ(r) = a polynomial, or exp of one, for r < edge, and 0 beyond."""

    formula: Expression  # a formula of r
    edge: float

    @classmethod
    def of(cls, expression: Expression) -> _Piece | None:
        """The piece of a formula in which max(c - s‖x - x'‖, 0) is the only corner; None for others."""
        edges: list[float] = []

        def inside(node: Expression) -> Expression | None:
            value = number(node)
            if value is not None:
                return Number(value)
            if isinstance(node, Quantity):
                return R * R
            if (
                isinstance(node, Apply)
                and node.operation == "sqrt"
                and isinstance(node.arguments[0], Quantity)
            ):
                return R
            if not (isinstance(node, Apply) and node.operation == "maximum"):
                return None
            constant, linear = terms(substitute(node.arguments[0], inside))
            if number(node.arguments[1]) != 0 or list(linear) != [R] or not linear[R] < 0 < constant:
                return None
            edges.append(-constant / linear[R])
            return constant + R * linear[R]

        def beyond(node: Expression) -> Expression | None:
            return ZERO if isinstance(node, Apply) and node.operation == "maximum" else None

        formula = substitute(expression, inside)
        if len(set(edges)) != 1 or substitute(expression, beyond) != ZERO:
            return None
        piece = cls(formula, edges[0])
        return piece if math.isfinite(piece.majorant(piece.edge)) else None

    def __call__(self, r: np.ndarray) -> np.ndarray:
        return np.asarray(evaluate(self.formula, lambda leaf: r))

    def majorant(self, size: Any) -> Any:
        """A bound of |φ(z)| for complex |z| ≤ size: all numbers, all signs at their worst; inf if unknown."""

        def bound(node: Expression) -> Any:
            if isinstance(node, Number):
                return abs(node.value)
            if node == R:
                return size
            if not isinstance(node, Apply):
                return np.inf
            parts = [bound(argument) for argument in node.arguments]
            if node.operation in ("add", "subtract"):
                return parts[0] + parts[1]
            if node.operation == "multiply":
                return parts[0] * parts[1]
            if node.operation in ("integer_power", "large_power") and isinstance(node.arguments[1], Number):
                return parts[0] ** parts[1] if node.arguments[1].value >= 0 else np.inf
            return np.exp(parts[0]) if node.operation == "exp" else np.inf

        with np.errstate(over="ignore"):
            return bound(self.formula)

    def negative(self, dim: int) -> Frequency | None:
        """The most negative value of v(ω) = c ∫₀^edge φ(r) Ω_d(ωr) r^{d-1} dr over a range of frequencies.

        On a panel of half-width h, n Gauss-Legendre nodes err by at most (64/15) M h ρ^{-2n}/(1 - ρ^{-2}) if
        |integrand| ≤ M on the ellipse of parameter ρ around it (Trefethen, Approximation Theory, 19.3).
        There |Ω_d(z)| ≤ exp|Im z|, being a mean of cosines. We take n = 32 and ρ = 4, and 64 ε for the
        rounding of φ and of SciPy's Ω_d.
        """
        frequencies = np.linspace(0.0, 240.0, 2401)  # in units of 1/edge
        count = int(frequencies[-1] / 20) + 1
        h = self.edge / (2 * count)
        x, w = np.polynomial.legendre.leggauss(32)
        r = (h * (2 * np.arange(count)[:, None] + 1 + x)).ravel()
        weights = np.tile(w * h, count) * r ** (dim - 1)
        omega = frequencies / self.edge
        waves = sphere_wave(dim, np.multiply.outer(omega, r))
        size = 2 ** (1 - dim / 2) / math.gamma(dim / 2)
        values = size * (waves @ (weights * self(r)))
        reach = self.edge + 2 * h
        largest = float(self.majorant(reach)) * reach ** (dim - 1) * np.exp(1.875 * h * omega)
        quadrature = count * 64 / 15 * h * largest * 4.0**-64 / (1 - 1 / 16)
        epsilon = np.finfo(float).eps
        rounding = 64 * epsilon * float(weights @ np.broadcast_to(self.majorant(r), r.shape))
        return _most_negative(omega, values, size * (quadrature + rounding), True)
