r"""Principal components among the functions on landmarks, from all points.

Find      the unit vectors v among Σⱼ βⱼ k(zⱼ, ·) along which the Φ(xᵢ) vary most: in the features these are
          the eigenvectors q of the scatter A (`spectrum`), f(x) = ⟨q, φ(x) - φ̄⟩, and λ = Σᵢ wᵢ f(xᵢ)²
Lost      what the landmarks do not span: Σᵢ wᵢ ‖Φ(xᵢ) - φ(xᵢ)‖² = Σᵢ wᵢ (k(xᵢ, xᵢ) - ‖φ(xᵢ)‖²)
Bound     the first q components leave Σᵢ wᵢ ‖Φ(xᵢ) - φ̄‖² - λ₁ - … - λ_q of the points. By Ky Fan no q
          vectors on the landmarks leave less, and no q vectors at all less than tr A - λ₁ - … - λ_q, since
          K - K̂ is positive semi-definite. Rounding changes the sum of q eigenvalues: in LAPACK by at most
          √q ‖AQ - QΛ‖; in φ, which is off by at most e = ‖T⁻¹‖ τ max √k(x, x) √(Σⱼ k(zⱼ, zⱼ)), by the trace
          norm of the change of A, Σw (2 max √k(x, x) e + e²)
Cost      n M² and 9 M³; a pass over the rows tells the signs, by the largest score
"""

from __future__ import annotations

import numpy as np

from mercer.solvers.landmarks.certificate import Accuracy
from mercer.solvers.landmarks.features import Features
from mercer.solvers.landmarks.inner import Largest
from mercer.solvers.landmarks.spectrum import scatter

#: Scores that differ by less than this part are equal but for rounding: the first of them tells the sign.
_TIE = 1e-6


class RestrictedComponents:
    """All components on the landmarks, largest first; ``functions`` makes the first of them.

    >>> from mercer import Linear
    >>> from mercer.gram.blocks import RowBlocks
    >>> from mercer.solvers.landmarks.basis import Basis
    >>> K = RowBlocks(Linear(), np.array([[0.0], [3.0], [9.0]]), np.array([[1.0]]))
    >>> found = RestrictedComponents(Features(K, Basis(np.eye(1)), True), np.ones(3))
    >>> found.values, found.functions(1)  # the mean is 4, and the largest score that of 9
    (array([42.]), (array([[1.]]), array([-4.])))
    """

    def __init__(self, features: Features, weight: np.ndarray) -> None:  # (n,) ≥ 0
        self._features, self._weight = features, weight
        found = scatter(features, weight)
        spectrum = found.spectrum()
        #: (M,) λ, largest first; what rounding makes of zero is 0
        self.values = np.where(spectrum.values > found.zero, spectrum.values, 0.0)[::-1].copy()
        self.residuals = spectrum.residuals[::-1].copy()
        self.zero = found.zero
        #: tr A
        self.trace = found.trace
        #: (M,) φ̄
        self.mean = found.mean
        self._vectors = spectrum.vectors[:, ::-1]

    @property
    def mean_coef(self) -> np.ndarray:  # (M,)
        """The coefficients of φ̄ as a function: the mean of the Φ(xᵢ), projected on the landmarks' span."""
        return self._features.basis.coefficients(self.mean[:, None])[:, 0]

    def gap(self, count: int, accuracy: Accuracy) -> float:
        """How far the sum of the first eigenvalues is at most from the largest one on these landmarks."""
        e = accuracy.of_features(self._features.basis, np.ones((1, 1)))
        moved = float(self._weight.sum()) * (2 * accuracy.largest * e + e * e)
        return float(np.sqrt(count) * np.linalg.norm(self.residuals)) + count * self.zero + 2 * moved

    def functions(self, count: int) -> tuple[np.ndarray, np.ndarray]:  # (M, count), (count,)
        """β and b of the first components, zero where λ is; the largest score of each is positive."""
        w = np.where(self.values[:count] > 0, self._vectors[:, :count], 0.0)
        coef, intercept = self._features.basis.coefficients(w), -(self.mean @ w)
        sign = self._signs(coef, intercept)
        return coef * sign, intercept * sign

    def _signs(self, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:  # (count,)
        largest: dict[int, tuple[np.ndarray, np.ndarray]] = {}

        def each(rows: slice, found: tuple[np.ndarray, np.ndarray]) -> None:
            largest[rows.start] = found

        with self._features.passing():
            self._features.K.pass_over(coef, Largest(self._weight, intercept, _TIE), width=0, each=each)
        sizes, scores = (np.stack([largest[start][i] for start in sorted(largest)]) for i in range(2))
        first = (sizes >= (1 - _TIE) * sizes.max(axis=0)).argmax(axis=0)
        return np.where(scores[first, np.arange(scores.shape[1])] < 0, -1.0, 1.0)
