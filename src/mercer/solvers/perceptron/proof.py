r"""The perceptron's convergence proof, followed mistake by mistake.

With f_j the function after j mistakes, g any function with yᵢ g(xᵢ)/‖g‖ ≥ ρ > 0 and k(xᵢ, xᵢ) ≤ R² for all i,

    jρ  ≤  ⟨f_j, g⟩/‖g‖  ≤  ‖f_j‖  ≤  R√j :

each mistake adds yᵢ g(xᵢ)/‖g‖ ≥ ρ to the first inner product, and 2yᵢ f_j(xᵢ) + k(xᵢ, xᵢ) ≤ R² to ‖f_j‖²,
being a mistake. A line cannot stay below a root, so that there are no more than j ≤ R²/ρ² mistakes. An
intercept is the kernel k + 1.

Novikoff, On convergence proofs on perceptrons, Symposium on the Mathematical Theory of Automata 12 (1962).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class MistakeProof:
    """What the proof is about, before the first mistake and after each: ``MistakeProofDisplay`` draws it."""

    #: (M + 1,) ⟨f_j, g⟩ / ‖g‖
    progress: np.ndarray
    #: (M + 1,) ‖f_j‖
    norms: np.ndarray
    #: ρ = minᵢ yᵢ g(xᵢ) / ‖g‖
    margin: float
    #: R = maxᵢ √k(xᵢ, xᵢ)
    radius: float

    @property
    def mistakes(self) -> int:
        """M"""
        return len(self.norms) - 1

    @property
    def bound(self) -> float:
        """R²/ρ²; infinite where ρ is not positive."""
        return (self.radius / self.margin) ** 2 if self.margin > 0 else np.inf

    @property
    def lower(self) -> np.ndarray:  # (M + 1,)
        """jρ"""
        return np.arange(self.mistakes + 1) * self.margin

    @property
    def upper(self) -> np.ndarray:  # (M + 1,)
        """R√j"""
        return np.sqrt(np.arange(self.mistakes + 1)) * self.radius


def follow(
    K: np.ndarray,
    index: np.ndarray,
    sign: np.ndarray,
    g: np.ndarray,
    norm: float,
    margin: float,
    radius: float,
) -> MistakeProof:
    """The proof for mistakes at the points ``index`` with labels ``sign``, in order.

    Parameters
    ----------
    K : (n, n) kernel values of the points, plus 1 where there is an intercept
    index, sign : (M,) the points and their labels
    g : (n,) the separator at the points
    norm : ‖g‖
    margin, radius : ρ and R

    >>> K = np.array([[1.0, 0.0], [0.0, 4.0]])
    >>> proof = follow(
    ...     K, np.array([0, 1]), np.array([-1, 1]), np.array([-1.0, 1.0]), 1.25**0.5, 0.8**0.5, 2.0
    ... )
    >>> (proof.norms**2).round(9), proof.progress.round(3), round(proof.bound, 9)
    (array([0., 1., 5.]), array([0.   , 0.894, 1.789]), 5.0)
    """
    squares = np.zeros(len(index) + 1)
    f = np.zeros(len(K))
    for j, (i, y) in enumerate(zip(index.tolist(), sign.tolist(), strict=True)):
        squares[j + 1] = squares[j] + 2 * y * f[i] + K[i, i]
        f += y * K[i]
    progress = np.concatenate([[0.0], np.cumsum(sign * g[index])]) / norm
    return MistakeProof(progress, np.sqrt(np.maximum(squares, 0.0)), margin, radius)
