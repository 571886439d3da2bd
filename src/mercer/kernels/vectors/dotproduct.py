r"""Kernels of the inner product ⟨x, x'⟩: linear, polynomial, cosine, arc-cosine, sigmoid; the constant."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.kernels.base import Kernel
from mercer.kernels.domain import Domain
from mercer.kernels.formula.expression import (
    Expression,
    arccos,
    integer_power,
    inverse_root,
    maximum,
    minimum,
    sqrt,
    tanh,
    where,
    wrap,
)
from mercer.kernels.formula.pair import Mapping, Pair, unit_rows
from mercer.kernels.parameters import choice, nonnegative, positive, real, text, whole


class Linear(Kernel):
    r"""k(x, x') = ⟨x, x'⟩.

    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    lemma = "an inner product"

    def formula(self, pair: Pair) -> Expression:
        return pair.dot


class Polynomial(Kernel):
    r"""k(x, x') = (γ ⟨x, x'⟩ + c)^d, c ≥ 0, d a whole number; homogeneous when c = 0.

    Its features are all monomials of degree d (up to d when c > 0): see
    ``mercer.features.PolynomialMap``. γ = 1 in the notes; scikit-learn users set it.

    >>> Polynomial(degree=2, c=1.0)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[144.]])
    >>> Polynomial(degree=6, c=0).n_monomials(100)
    1609344100
    """

    lemma = "a polynomial with non-negative coefficients of an inner product"
    degree: int = whole(3)
    c: float = nonnegative(1.0)
    gamma: Any = positive(1.0, words=("scale", "auto"))

    def formula(self, pair: Pair) -> Expression:
        return integer_power(pair.dot * self.gamma + self.c, self.degree)

    def n_monomials(self, m: int) -> int:
        """How many features it has for points of m columns: C(d + m - 1, d), or C(d + m, d) when c > 0."""
        from mercer.features.polynomial import PolynomialMap  # Features import this file.

        return PolynomialMap(self.degree, self.c).n_features(m)

    def __repr__(self) -> str:
        gamma = "" if self.gamma == 1.0 else f", gamma={text(self.gamma)}"
        return f"Polynomial(degree={text(self.degree)}, c={text(self.c)}{gamma})"


class Sigmoid(Kernel):
    r"""k(x, x') = tanh(η ⟨x, x'⟩ + ν): *not* positive definite in general.

    Kept because of its history (it mimics a neural network); ``mercer.certify`` refutes it with
    points of its own.

    >>> Sigmoid(eta=0.5)([[1.0]], [[2.0]]).round(6)
    array([[0.761594]])
    """

    eta: Any = real(1.0, words=("scale", "auto"))
    nu: float = real(0.0)

    def formula(self, pair: Pair) -> Expression:
        return tanh(pair.dot * self.eta + self.nu)


class Cosine(Kernel):
    r"""k(x, x') = ⟨x, x'⟩ / (‖x‖ ‖x'‖), and 0 where a point is the origin.

    >>> Cosine()([[1.0, 0.0]], [[1.0, 1.0], [0.0, 0.0]]).round(6)
    array([[0.707107, 0.      ]])
    """

    lemma = "the inner product of x/‖x‖ and x'/‖x'‖"

    def formula(self, pair: Pair) -> Expression:
        return pair.dot * inverse_root(pair.xx) * inverse_root(pair.yy)


class ArcCosine(Kernel):
    r"""Cho and Saul's arc-cosine kernel of order 0, 1 or 2: an infinitely wide one-layer network.

    With θ the angle between x and x':

        order 0:  (π - θ) / π
        order 1:  ‖x‖ ‖x'‖ (sin θ + (π - θ) cos θ) / π
        order 2:  ‖x‖² ‖x'‖² (3 sin θ cos θ + (π - θ)(1 + 2 cos² θ)) / π

    The origin has no angle; order 0 gives it ½ with every point, as the step function at 0 does.

    >>> ArcCosine(order=0)([[1.0, 0.0]], [[0.0, 1.0]])
    array([[0.5]])
    """

    lemma = "the expected product of two rectified random projections"
    order: int = choice(1, (0, 1, 2))

    def formula(self, pair: Pair) -> Expression:
        # The angle comes from the chord s = ‖u - v‖² of the normalised points: arccos ⟨u, v⟩ would lose half
        # of the digits where the points are nearly parallel, and so would k(x, x).
        s = minimum(pair.through(Mapping(unit_rows)).sqdist, 4.0)
        angle = np.pi - 2 * arccos(sqrt(s) / 2)
        if self.order == 0:
            is_zero = maximum(pair.xx <= 0, pair.yy <= 0)
            return where(is_zero, 0.5, 1 - angle / np.pi)
        sine, cosine = sqrt(s * (1 - s / 4)), 1 - s / 2
        if self.order == 1:
            return sqrt(pair.xx) * sqrt(pair.yy) * (sine + (np.pi - angle) * cosine) / np.pi
        shape = 3 * sine * cosine + (np.pi - angle) * (1 + 2 * cosine * cosine)
        return pair.xx * pair.yy * shape / np.pi


class Constant(Kernel):
    r"""k(x, x') = c ≥ 0.

    Valid but useless alone: it makes all points equal, so the learned function is a constant.
    Added to another kernel it lets the function have an offset.

    >>> Constant(2.0)([[1.0]], [[5.0]])
    array([[2.]])
    """

    domain = Domain.ANY
    lemma = "the inner product of the constant feature √c"
    c: float = nonnegative(1.0)

    def formula(self, pair: Pair) -> Expression:
        return wrap(self.c)
