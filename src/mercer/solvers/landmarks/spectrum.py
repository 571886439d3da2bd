r"""The scatter of the features of all points, and its eigenvalues: what direct methods on landmarks need.

    A = Σᵢ wᵢ (φᵢ - φ̄)(φᵢ - φ̄)ᵀ = Q Λ Qᵀ,   φᵢ = T⁻ᵀ k(Z, xᵢ),   φ̄ = Σ wᵢφᵢ / Σ wᵢ   (0 without an intercept)

Its eigenvalues other than zero are those of the centred n × n matrix of k̂(x, x') = ⟨φ(x), φ(x')⟩, which is K
itself where all points are landmarks. Cost: n M² for A, tile by tile, and 9 M³ for the eigenvalues.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.solvers.landmarks.features import Features

#: Roundings of an entry of A beside those of its sum: kernel values are sums of d products themselves.
_UNITS = 8.0


@dataclass(frozen=True, eq=False)
class ScatterSpectrum:
    """A = Q Λ Qᵀ, or its largest eigenvalues."""

    #: (k,) λ ≥ 0, ascending
    values: np.ndarray
    #: (M, k) Q
    vectors: np.ndarray
    #: (k,) ‖Aq - λq‖
    residuals: np.ndarray


@dataclass(frozen=True, eq=False)
class Scatter:
    """A, of which the basis has a triangle, and φ̄."""

    basis: Any
    A: Any  # (M, M)
    mean: np.ndarray  # (M,)
    #: Σᵢ wᵢ
    total: float
    #: Σᵢ wᵢ ‖φᵢ - φ̄‖²
    trace: float
    #: An eigenvalue no larger than this is zero, but for rounding.
    zero: float

    def spectrum(self) -> ScatterSpectrum:
        """All eigenvalues of A; those that rounding made negative are 0."""
        values, Q, residuals = self.basis.spectrum(self.A)
        return ScatterSpectrum(np.maximum(values, 0.0), Q, residuals)

    def normal(self, most: int, fit_intercept: bool) -> np.ndarray:  # (r + 1, r + 1)
        """Φ̃ᵀWΦ̃ of the first r ≤ ``most`` landmarks, not centred, with b in the last row."""
        mean = self.mean[:most]
        whole = self.basis.lower(self.A, most) + self.total * np.outer(mean, mean)
        if not fit_intercept:
            return whole
        whole = np.pad(whole, (0, 1))
        whole[-1, :-1], whole[-1, -1] = self.total * mean, self.total
        return whole


def scatter(features: Features, weight: np.ndarray, *, centred: bool = True) -> Scatter:  # (n,) ≥ 0
    """A and φ̄ in one pass over all rows.

    >>> from mercer.solvers.landmarks.basis import Basis
    >>> class Rows:
    ...     shape, dtype, cost = (3, 1), np.dtype(float), 1.0
    ...
    ...     def square(self, weight, transform):
    ...         K = np.array([[0.0], [1.0], [2.0]])
    ...         return (K.T * weight) @ K, K.T @ weight
    >>> found = scatter(Features(Rows(), Basis(np.eye(1)), True), np.ones(3))
    >>> found.A, found.mean, found.spectrum().values
    (array([[2.]]), array([1.]), array([2.]))
    """
    basis = features.basis
    with features.passing():
        A, first = basis.square(features.K, weight)
    total, M = float(weight.sum()), len(A)
    largest = float(A.diagonal().max())
    mean = basis.host(first) / total if centred else np.zeros(M)
    if centred:
        A = basis.less(A, total * mean, mean)
    zero = _UNITS * max(M * 2.0**-52, np.sqrt(M) * float(np.finfo(features.K.dtype).eps)) * largest
    return Scatter(basis, A, mean, total, float(A.trace()), zero)
