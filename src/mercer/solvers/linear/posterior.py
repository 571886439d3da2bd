r"""The Gaussian process behind kernel ridge: how far f may be off, and what each point tells.

Given     K, weights wᵢ > 0 and α > 0, as in `ridge`; S = diag(√wᵢ), M = S K S + αI, s = S1, P as there
Process   y = f + b + noise, f of covariance (σ²/α) k, noise of variance σ²/wᵢ, b anything (0 without an
          intercept). The mean of f + b, given y, is what `ridge` finds. In units of σ²/α its variance is
              v(x) = k(x, x) - kₓᵀ S M⁻¹ S kₓ + (1 - sᵀM⁻¹S kₓ)² / sᵀM⁻¹s      (the last term with b alone)
Shares    h(x) = ∂f(x)/∂y = S (M⁻¹ S kₓ + M⁻¹s (1 - sᵀM⁻¹S kₓ) / sᵀM⁻¹s), and α hᵢ(x) / wᵢ is the covariance
          of f(x) with f(xᵢ)
Left out  without one observation at xᵢ, whose error there is eᵢ (`leave_one_out`), with cᵢ = 1 / max(1, wᵢ),
              f₋ᵢ(x) = f(x) - cᵢ hᵢ(x) eᵢ
              v₋ᵢ(x) = v(x) + α hᵢ(x)² min(1, wᵢ) / (wᵢ² gᵢ),   gᵢ = 1 - cᵢ + cᵢ α Pᵢᵢ
Noise     σ² = J / (Σw - 1), J the minimum of Σ wᵢ (yᵢ - f(xᵢ) - b)² + α ‖f‖² (J / Σw without b): what makes y
          most likely, α and the kernel given. J = α ‖LᵀS⁻¹a‖² with M = LLᵀ.
Cost      n³/3 once, n² for each point

Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, sections 2.2 and 2.7.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh, get_blas_funcs

from mercer.solvers.linear.cholesky import half_solve, inverse_diagonal, solve
from mercer.solvers.linear.ridge import factor_of
from mercer.solvers.matrix import KernelMatrix


class RidgePosterior:
    """v, h and what follows from them, for one α.

    ``k`` is always (n, m): the kernel values of the points that were learned from with m new ones.

    >>> from mercer import Gaussian, Gram
    >>> kernel, X = Gaussian(sigma=1.0), np.array([[0.0], [1.0]])
    >>> process = RidgePosterior(Gram(kernel, X), np.ones(2), 0.1, fit_intercept=False)
    >>> 1 - process.explained(kernel(X, [[0.0], [9.0]])).round(3)  # nothing is known far from the points
    array([0.087, 1.   ])
    """

    def __init__(self, K: KernelMatrix, weight: np.ndarray, alpha: float, fit_intercept: bool) -> None:
        self.alpha, self.weight, self.root = alpha, weight, np.sqrt(weight)
        self.fit_intercept = fit_intercept
        self.factor = factor_of(K, np.empty(K.shape, K.dtype), weight, alpha)
        #: M⁻¹s, and sᵀM⁻¹s
        self.v = solve(self.factor, self.root).astype(np.float64)
        self.total = float(self.root @ self.v)

    def noise(self, coef: np.ndarray) -> np.ndarray:  # (n, t) → (t,)
        """σ² of every target."""
        times = get_blas_funcs("trmm", (self.factor,))
        product = times(1.0, self.factor, coef / self.root[:, None], lower=1, trans_a=1).astype(np.float64)
        count = self.weight.sum() - self.fit_intercept
        return np.asarray(self.alpha * (product**2).sum(axis=0) / count)

    def free(self) -> np.ndarray:  # (n,)
        """gᵢ: the share of its own error that a point leaves; NaN where there is none."""
        diagonal = inverse_diagonal(self.factor)
        if self.fit_intercept:
            diagonal -= self.v**2 / self.total
        share = 1 / np.maximum(1.0, self.weight)
        free = 1 - share + share * self.alpha * diagonal
        free[free <= 0] = np.nan
        return free

    def explained(self, k: np.ndarray) -> np.ndarray:  # (m,)
        """k(x, x) - v(x)."""
        half = half_solve(self.factor, self.root[:, None] * k).astype(np.float64)
        found = np.einsum("ij,ij->j", half, half)
        return np.asarray(found - self._open(k) ** 2 / self.total if self.fit_intercept else found)

    def explained_pairs(self, k: np.ndarray) -> np.ndarray:  # (m, m)
        """k(x, x') minus the covariance of f(x) with f(x')."""
        half = half_solve(self.factor, self.root[:, None] * k).astype(np.float64)
        found, rest = half.T @ half, self._open(k)
        return np.asarray(found - np.outer(rest, rest) / self.total if self.fit_intercept else found)

    def shares(self, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # (n, m), (m,)
        """h, and k(x, x) - v(x)."""
        B = self.root[:, None] * k
        Z = solve(self.factor, B).astype(np.float64)
        found = np.einsum("ij,ij->j", B, Z)
        if self.fit_intercept:
            rest = self._open(k)
            Z += np.outer(self.v, rest / self.total)
            found -= rest**2 / self.total
        return self.root[:, None] * Z, found

    def _open(self, k: np.ndarray) -> np.ndarray:  # (m,)
        """1 - sᵀM⁻¹Skₓ: what of b is left to the points beyond x."""
        return np.asarray(1 - (self.v * self.root) @ k)


def root_of(covariance: np.ndarray) -> np.ndarray:  # (n, n)
    """A with AAᵀ the covariance, whose negative eigenvalues are rounding.

    >>> A = root_of(np.array([[2.0, 2.0], [2.0, 2.0]]))
    >>> (A @ A.T).round(9)
    array([[2., 2.],
           [2., 2.]])
    """
    values, vectors = eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
