r"""Ridge regression on explicit features, for kernels with fewer features than there are points.

Minimise  Σᵢ wᵢ (yᵢ - ⟨v, Φᵢ⟩ - b)² + α ‖v‖²,   the same problem as in `ridge`, f = ⟨v, Φ(·)⟩
Given     Φ, n × p, dense or CSR; Y with an α > 0 per column; weights wᵢ ≥ 0
Solution  v = (Φ'ᵀWΦ' + αI)⁻¹ Φ'ᵀW(y - ȳ), Φ' and ȳ centred with the weights when there is a b
          as an expansion: aᵢ = wᵢ (yᵢ - ⟨v, Φᵢ⟩ - b) / α
Left out  the error at xᵢ of the fit without one observation there, as in `ridge`, is rᵢ / (1 - hᵢ),
          rᵢ = yᵢ - ⟨v, Φᵢ⟩ - b,   hᵢ = min(1, wᵢ) (Φ'ᵢᵀ (Φ'ᵀWΦ' + αI)⁻¹ Φ'ᵢ + 1/Σw)
Cost      n p² + p³/3; memory n p + p²
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve, solve_triangular

__all__ = ["PrimalResult", "primal_ridge"]


@dataclass(frozen=True, eq=False)
class PrimalResult:
    """f for every target."""

    coef: np.ndarray  # (n, t) aᵢ of the expansion
    intercept: np.ndarray  # (t,)
    weights: np.ndarray  # (p, t) v
    errors: np.ndarray  # (n, t) left out


def primal_ridge(
    Phi: Any,  # (n, p) dense or CSR
    Y: np.ndarray,  # (n, t)
    alphas: np.ndarray,  # (t,) > 0
    weight: np.ndarray,  # (n,) ≥ 0
    fit_intercept: bool = True,
) -> PrimalResult:
    """By the Cholesky factorisation of the p × p matrix, one for each different α.

    >>> result = primal_ridge(
    ...     np.array([[0.0], [1.0], [2.0]]), np.array([[1.0], [3.0], [5.0]]), np.array([1e-9]), np.ones(3)
    ... )
    >>> result.weights.round(6), result.intercept.round(6)  # y = 1 + 2x
    (array([[2.]]), array([1.]))
    """
    p, total = Phi.shape[1], float(weight.sum())
    centre, target = np.zeros(p), np.zeros(Y.shape[1])
    if fit_intercept:
        centre, target = np.asarray(weight @ Phi) / total, weight @ Y / total
    if sparse.issparse(Phi):  # stays sparse: the centre is taken from the products
        gram = (Phi.T @ Phi.multiply(weight[:, None])).toarray() - total * np.outer(centre, centre)
        right = Phi.T @ (weight[:, None] * (Y - target))
    else:
        Phi = Phi - centre
        scaled = weight[:, None] * Phi
        gram, right = Phi.T @ scaled, scaled.T @ (Y - target)
    moved = centre if sparse.issparse(Phi) else np.zeros(p)  # what Φ still has to be centred by
    weights, errors = np.empty((p, Y.shape[1])), np.empty(Y.shape)
    coef = np.empty(Y.shape)
    for alpha in np.unique(alphas):
        mine = np.flatnonzero(alphas == alpha)
        factor, _ = cho_factor(gram + alpha * np.eye(p), lower=True, overwrite_a=True)
        weights[:, mine] = v = cho_solve((factor, True), right[:, mine])
        residuals = Y[:, mine] - target[mine] - (Phi @ v - moved @ v)
        coef[:, mine] = weight[:, None] * residuals / alpha
        leverage = _leverage(Phi, moved, factor) + (1 / total if fit_intercept else 0.0)
        errors[:, mine] = residuals / (1 - np.minimum(1.0, weight) * leverage)[:, None]
    intercept = target - centre @ weights if fit_intercept else target
    return PrimalResult(coef, intercept, weights, errors)


def _leverage(Phi: Any, moved: np.ndarray, factor: np.ndarray) -> np.ndarray:  # (n,)
    """Φ'ᵢᵀ (L Lᵀ)⁻¹ Φ'ᵢ, a thousand rows at a time."""
    out = np.empty(Phi.shape[0])
    for start in range(0, len(out), 1000):
        rows = Phi[start : start + 1000]
        rows = (rows.toarray() if sparse.issparse(rows) else rows) - moved
        solved = solve_triangular(factor, rows.T, lower=True)
        out[start : start + 1000] = np.einsum("ij,ij->j", solved, solved)
    return out
