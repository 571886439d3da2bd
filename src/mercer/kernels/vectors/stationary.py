r"""Kernels of the difference x - x'.

Gaussian, Laplacian, Matérn, rational quadratic, periodic, compactly supported (Wendland, B-spline), and
two that teach: the ball indicator and the delta.
"""

from __future__ import annotations

from math import comb, factorial, inf
from typing import Any

import numpy as np

from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.kernels.domain import Domain
from mercer.kernels.formula.expression import (
    Apply,
    Expression,
    absolute,
    exp,
    integer_power,
    log,
    maximum,
    sin,
    sqrt,
    wrap,
)
from mercer.kernels.formula.pair import Pair
from mercer.kernels.parameters import choice, positive, whole
from mercer.kernels.support import Support

_LAMBDA: dict[str, str] = {"lam": "gamma"}  # λ in exp(-λ ‖x - x'‖²) and exp(-λ ‖x - x'‖)


def _length_scale(default: Any = 1.0, **options: Any) -> Any:
    return positive(default, per_column=-1.0, **options)


class Gaussian(Kernel):
    r"""k(x, x') = exp(-‖x - x'‖² / 2σ²) = exp(-γ ‖x - x'‖²).

    The default choice for smooth functions of real vectors; every function it learns is infinitely
    differentiable. Give the width ``sigma`` (a number, one per column, or "median": the median
    distance of the data), or LIBSVM's ``gamma`` = 1/2σ² (a number, "scale" or "auto"); σ = 1 when
    neither is given. ``lam`` is another name of ``gamma``, for those who write exp(-λ ‖x - x'‖²).

    >>> Gaussian(sigma=1.0)([[0.0, 0.0]], [[1.0, 1.0]]).round(6)
    array([[0.367879]])
    >>> Gaussian(lam=0.5)
    Gaussian(gamma=0.5)
    >>> Gaussian(gamma=0.5) == Gaussian(sigma=1.0)  # same function, different parameters
    False
    """

    lemma = "the Gaussian is the Fourier transform of a Gaussian measure (Bochner)"
    aliases = _LAMBDA
    sigma: Any = _length_scale(None, words=("median",), optional=True)
    gamma: Any = positive(None, words=("scale", "auto"), optional=True, per_column=0.5)

    def check(self) -> None:
        if self.sigma is not None and self.gamma is not None:
            raise InputError(
                f"Gaussian takes sigma or gamma, got sigma={self.sigma!r} and gamma={self.gamma!r}: "
                "they say the same thing, gamma = 1 / (2 sigma**2); pass one of them"
            )

    def formula(self, pair: Pair) -> Expression:
        if self.gamma is not None:
            return exp(-pair.sqdist * self.gamma)
        sigma = 1.0 if self.sigma is None else self.sigma
        return exp(-pair.sqdist / (2 * wrap(sigma) ** 2))

    def __repr__(self) -> str:
        return "Gaussian(sigma=1.0)" if self.sigma is None and self.gamma is None else super().__repr__()


class Laplacian(Kernel):
    r"""k(x, x') = exp(-γ ‖x - x'‖), with the ℓ₁ norm (scikit-learn's laplacian) or the Euclidean one.

    ``norm="l1"``, or 1, is Σₖ |xₖ - x'ₖ| and the default; ``norm="l2"``, or 2, is the Euclidean distance: the
    same in every direction, and what most texts call Laplacian. On the line there is no difference. ``lam``
    is another name of ``gamma``. Rougher than the Gaussian: its functions have kinks, so it follows abrupt
    changes better.

    >>> round(Laplacian(lam=1.0, norm="l2")([0, 0], [3, 4]), 6)  # exp(-5): ‖(3, 4)‖ = 5
    0.006738
    >>> round(Laplacian(lam=1.0)([0, 0], [3, 4]), 6)  # exp(-7): |3| + |4| = 7
    0.000912
    >>> Laplacian(norm="l2")
    Laplacian(gamma=1.0, norm='l2')
    """

    lemma = "exp(-t) of a norm of negative type (ℓ₁ and ℓ₂ are; Schoenberg)"
    aliases = _LAMBDA
    gamma: Any = positive(1.0, words=("scale", "auto"), per_column=1.0)
    norm: int | str = choice(1, (1, 2, "l1", "l2"))

    @property
    def is_euclidean(self) -> bool:
        """Whether the norm is ℓ₂, and not ℓ₁."""
        return self.norm in (2, "l2")

    def formula(self, pair: Pair) -> Expression:
        distance = sqrt(pair.sqdist) if self.is_euclidean else pair.l1
        return exp(-distance * self.gamma)


class Matern(Kernel):
    r"""k = 2^{1-ν}/Γ(ν) z^ν K_ν(z), z = √(2ν) ‖x - x'‖ / ℓ.

    ν sets the smoothness: ν = ½ is exp(-‖x-x'‖/ℓ), ν = 3⁄2 once and ν = 5⁄2 twice differentiable
    functions, ν → ∞ the Gaussian. The three half-integers have closed forms; any other ν > 0 goes
    through the Bessel function.

    >>> Matern(nu=0.5)([[0.0]], [[1.0]]).round(6)
    array([[0.367879]])
    >>> Matern(nu=1.2, length_scale=2.0)([[0.0]], [[0.0]])
    array([[1.]])
    """

    lemma = "its Fourier transform is a Student density, positive in every dimension (Bochner)"
    nu: float = positive(1.5, symbolic=False)
    length_scale: Any = _length_scale(1.0, words=("median",))

    def check(self) -> None:
        if self.nu > 1000:
            raise InputError(
                f"nu must be at most 1000, got {self.nu!r}: the kernel is then as good as the Gaussian; "
                "use Gaussian(sigma=length_scale)"
            )

    def formula(self, pair: Pair) -> Expression:
        nu = float(self.nu)
        z = sqrt(pair.sqdist) * (np.sqrt(2 * nu) / self.length_scale)
        if nu == 0.5:
            return exp(-z)
        if nu == 1.5:
            return (1 + z) * exp(-z)
        if nu == 2.5:
            return (1 + z + z * z / 3) * exp(-z)
        return Apply("matern_shape", (wrap(nu), wrap(z)))


class RationalQuadratic(Kernel):
    r"""k(x, x') = (1 + ‖x - x'‖² / 2αℓ²)^{-α}: Gaussians of many widths at once.

    >>> RationalQuadratic(alpha=1.0)([[0.0]], [[2.0]]).round(6)
    array([[0.333333]])
    """

    lemma = "a mixture of Gaussians, their 1/σ² drawn from a Gamma distribution"
    alpha: float = positive(1.0)
    length_scale: Any = _length_scale(1.0, words=("median",))

    def formula(self, pair: Pair) -> Expression:
        base = 1 + pair.sqdist / (2 * self.alpha * self.length_scale**2)
        return exp(-log(base) * self.alpha)


class Periodic(Kernel):
    r"""k(x, x') = exp(-2/ℓ² Σₖ sin²(π (xₖ - x'ₖ) / p)): functions that repeat with period p.

    >>> Periodic(period=2.0)([[0.0]], [[4.0]]).round(6)
    array([[1.]])
    """

    lemma = "the Gaussian on the circle: 4 sin²(t/2) is a squared distance of points on it"
    period: float = positive(1.0)
    length_scale: float = positive(1.0)

    def formula(self, pair: Pair) -> Expression:
        waves = pair.sum(lambda a, b: sin((a - b) * (np.pi / self.period)) ** 2)
        return exp(waves * (-2 / self.length_scale**2))


class Wendland(Kernel):
    r"""Wendland's compactly supported kernel of smoothness C^{2s}, positive definite in ℝ^m, m ≤ ``dim``.

    With r = ‖x - x'‖/ρ (``radius`` ρ) and j = ⌊dim/2⌋ + s + 1:

        s = 0:  (1-r)₊^j
        s = 1:  (1-r)₊^{j+1} ((j+1) r + 1)
        s = 2:  (1-r)₊^{j+2} ((j²+4j+3) r² + (3j+6) r + 3) / 3

    Zero beyond the radius: ``Gram.sparse`` stores only the pairs of points nearer than that, and ridge
    regression solves its system on them. No such kernel is positive definite in every dimension.

    >>> Wendland(radius=2.0, smoothness=0)([[0.0]], [[1.0], [3.0]])
    array([[0.25, 0.  ]])
    >>> from mercer import Gram
    >>> Gram(Wendland(radius=2.0), [[0.0], [1.0], [9.0]]).sparse().nnz
    5
    """

    radius: Any = _length_scale(1.0, words=("median",))
    smoothness: int = choice(1, (0, 1, 2))
    dim: int = whole(3, symbolic=False)

    def formula(self, pair: Pair) -> Expression:
        r = sqrt(pair.sqdist) / self.radius
        j = self.dim // 2 + self.smoothness + 1
        inside = maximum(1 - r, 0.0)
        if self.smoothness == 0:
            return integer_power(inside, j)
        if self.smoothness == 1:
            return integer_power(inside, j + 1) * ((j + 1) * r + 1)
        return integer_power(inside, j + 2) * ((j * j + 4 * j + 3) * r * r + (3 * j + 6) * r + 3) / 3

    @property
    def support(self) -> Support | None:  # type: ignore[override]
        """The ball of radius ρ; not known while ρ waits for data."""
        return None if isinstance(self.radius, str) else Support.ball(self.radius)


class BSpline(Kernel):
    r"""k(x, x') = Πₖ B_m((xₖ - x'ₖ) / h), B_m the centred B-spline of odd degree m = 2n+1.

    B₃, the default, is the cubic B-spline: a bump of support [-2, 2], B₃(0) = 2/3. Zero where any two
    coordinates differ by h (m+1)/2 or more: ``Gram.sparse`` stores only the other pairs of points.

    >>> BSpline()([[0.0]], [[0.0], [1.0], [2.0]]).round(6)
    array([[0.666667, 0.166667, 0.      ]])
    """

    lemma = "B_m is an (m+1)-fold convolution of a box: its transform (sin(ω/2)/(ω/2))^{m+1} is ≥ 0 for odd m"
    degree: int = whole(3, maximum=99, symbolic=False)
    scale: float = positive(1.0)

    def check(self) -> None:
        if self.degree % 2 == 0:
            raise InputError(
                f"degree must be odd, got {self.degree!r}: a B-spline of even degree is not a kernel; "
                f"pass {self.degree + 1}"
            )

    def formula(self, pair: Pair) -> Expression:
        m = int(self.degree)

        def spline(a: Any, b: Any) -> Any:
            # The sum goes from the outside in, so that it is empty beyond the support.
            inward = (m + 1) / 2 - absolute(a - b) / self.scale
            terms = (
                integer_power(maximum(inward - i, 0.0), m) * ((-1) ** i * comb(m + 1, i) / factorial(m))
                for i in range((m + 1) // 2)
            )
            return sum(terms)

        return pair.product(spline)

    @property
    def support(self) -> Support | None:  # type: ignore[override]
        """The box of half the width of B_m's support in every coordinate."""
        return Support.ball(self.scale * (self.degree + 1) / 2, norm=inf)


class BallIndicator(Kernel):
    r"""1 if ‖x - x'‖ ≤ r else 0: the counterexample, symmetric and *not* a kernel.

    At the points 1, 2, 3 its matrix has the eigenvalues 1+√2, 1 and 1-√2 < 0. As a matrix of neighbours it
    has its use: ``Gram.sparse`` stores the pairs that are within r.

    >>> BallIndicator()([[1.0], [2.0], [3.0]])
    array([[1., 1., 0.],
           [1., 1., 1.],
           [0., 1., 1.]])
    """

    radius: float = positive(1.0)

    def formula(self, pair: Pair) -> Expression:
        return pair.sqdist <= self.radius**2

    @property
    def support(self) -> Support | None:  # type: ignore[override]
        """The ball itself."""
        return Support.ball(self.radius)


class Delta(Kernel):
    r"""1 if x = x' else 0; points may be vectors or any labels.

    Valid but useless for generalisation: a new point is similar to no training point, so every
    learned function is zero on it. Its use is on columns of categories, ``Delta().on("colour")``.

    >>> Delta()([["red"], ["blue"]], [["red"]])
    array([[1.],
           [0.]])
    """

    domain = Domain.ANY
    lemma = "its feature map sends every x to a unit vector of its own"

    def formula(self, pair: Pair) -> Expression:
        return pair.differs() <= 0.5
