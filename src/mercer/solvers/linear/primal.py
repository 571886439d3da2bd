r"""Ridge regression on explicit features, for kernels with fewer features than there are points.

Minimise  Σᵢ wᵢ (yᵢ - ⟨v, Φᵢ⟩ - b)² + α ‖v‖²,   the same problem as in `ridge`, f = ⟨v, Φ(·)⟩
Given     Φ, n × p, dense or CSR; Y with an α > 0 per column; weights wᵢ ≥ 0
Solution  v = (Φ'ᵀWΦ' + αI)⁻¹ Φ'ᵀW(y - ȳ), Φ' and ȳ centred with the weights when there is a b
          as an expansion: the a of least norm with ΣaᵢΦᵢ = v, a = WΦ'(Φ'ᵀWΦ')⁺v. (The a of `ridge`,
          wᵢ (yᵢ - ⟨v, Φᵢ⟩ - b) / α, gives the same f, but amplifies the rounding of the residuals by 1/α.)
Left out  the error at xᵢ of the fit without one observation there, as in `ridge`, is rᵢ / (1 - hᵢ),
          rᵢ = yᵢ - ⟨v, Φᵢ⟩ - b,   hᵢ = min(1, wᵢ) (Φ'ᵢᵀ (Φ'ᵀWΦ' + αI)⁻¹ Φ'ᵢ + 1/Σw)
Cost      2n p² + 9p³; memory 2n p + 3p²
Rounding  eigenvalues of Φ'ᵀWΦ' below nε times the largest are lost. Where that is not small beside α, and Φ
          is dense, they are taken from the singular values of √W Φ', which are lost below nε times the
          largest of *them* only: a column of 10⁸ leaves one of 1 beside it as it is. That costs 4n p² more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh, qr, svd

from mercer.runtime.threads import large_lapack, run
from mercer.solvers.landmarks.posterior import MOST_FEATURES, leading
from mercer.solvers.linear.strips import multiply
from mercer.solvers.result import Result

_NEGLIGIBLE = 1e-6  # errors of eigenvalues below this part of α do not matter


@dataclass(frozen=True, eq=False)
class PrimalResult(Result):
    """f for every target."""

    coef: np.ndarray  # (n, t) aᵢ of the expansion
    intercept: np.ndarray  # (t,)
    weights: np.ndarray  # (p, t) v
    dual: np.ndarray  # (n, t) the a of `ridge`
    errors: np.ndarray  # (n, t) left out
    objective: np.ndarray  # (t,)
    #: Φ̃'ᵀWΦ̃' with the ones of b, packed as in `landmarks.posterior`, and the centre; None of many features
    normal: np.ndarray | None = None
    centre: np.ndarray | None = None


def primal_ridge(
    Phi: Any,  # (n, p) dense or CSR
    Y: np.ndarray,  # (n, t)
    alphas: np.ndarray,  # (t,) > 0
    weight: np.ndarray,  # (n,) ≥ 0
    fit_intercept: bool = True,
) -> PrimalResult:
    """Ridge regression by the eigenvalues of the p × p matrix, which serve every α.

    >>> result = primal_ridge(
    ...     np.array([[0.0], [1.0], [2.0]]), np.array([[1.0], [3.0], [5.0]]), np.array([1e-9]), np.ones(3)
    ... )
    >>> result.weights.round(6), result.intercept.round(6)  # y = 1 + 2x
    (array([[2.]]), array([1.]))
    """
    given, p, total = Phi, Phi.shape[1], float(weight.sum())
    centre, target = np.zeros(p), np.zeros(Y.shape[1])
    if fit_intercept:
        centre, target = np.asarray(weight @ Phi) / total, weight @ Y / total
    if sparse.issparse(Phi):  # stays sparse: the centre is taken from the products
        gram = (Phi.T @ Phi.multiply(weight[:, None])).toarray() - total * np.outer(centre, centre)
        right = Phi.T @ (weight[:, None] * (Y - target))
    else:
        Phi = Phi - centre
        scaled = weight[:, None] * Phi
        gram, right = multiply(Phi.T, scaled), scaled.T @ (Y - target)
        del scaled
    moved = centre if sparse.issparse(Phi) else np.zeros(p)  # what Φ still has to be centred by
    with large_lapack(p):
        values, U = eigh(gram, overwrite_a=True, check_finite=False)
    values = np.maximum(values, 0.0)  # A negative one is zero but for rounding.
    eps, far = len(Y) * np.finfo(float).eps, float(np.abs(centre).max()) ** 2 * total
    if sparse.issparse(Phi):
        cut = eps * max(float(values.max()), far)
    else:
        cut = max(eps * float(values.max()), eps**2 * far)
        if cut > _NEGLIGIBLE * float(alphas.min()) and (values <= cut).any():
            values, U = _squared_singular_values(np.sqrt(weight)[:, None] * Phi)
            cut = eps**2 * max(float(values.max()), far)
    rotated = U.T @ right
    weights, errors = np.empty((p, Y.shape[1])), np.empty(Y.shape)
    coef, objective = np.empty(Y.shape), np.empty(Y.shape[1])
    for alpha in np.unique(alphas):
        mine = np.flatnonzero(alphas == alpha)
        kept = values > cut
        inverse = np.where(kept, 1 / (values + alpha), 0.0)  # the other directions hold no data
        weights[:, mine] = v = U @ (inverse[:, None] * rotated[:, mine])
        residuals = Y[:, mine] - target[mine] - (Phi @ v - moved @ v)
        again = np.divide(inverse, values, out=np.zeros(p), where=kept)
        s = U @ (again[:, None] * rotated[:, mine])
        coef[:, mine] = weight[:, None] * (Phi @ s - moved @ s)
        leverage = _leverage(Phi, moved, U * np.sqrt(inverse)) + (1 / total if fit_intercept else 0.0)
        free = 1 - np.minimum(1.0, weight) * leverage
        free[free < len(Y) * np.finfo(float).eps] = np.nan  # f goes through the point, whatever it is
        errors[:, mine] = residuals / free[:, None]
        objective[mine] = weight @ residuals**2 + alpha * (v**2).sum(axis=0)
    intercept = target - centre @ weights if fit_intercept else target
    dual = weight[:, None] * (Y - given @ weights - intercept) / alphas
    found = PrimalResult(coef, intercept, weights, dual, errors, objective)
    if p > MOST_FEATURES:
        return found
    scatter = (U * values) @ U.T
    if fit_intercept:
        scatter = np.pad(scatter, (0, 1))
        scatter[-1, -1] = total
    return replace(found, normal=leading(scatter, fit_intercept), centre=centre)


def _squared_singular_values(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # (p,), (p, p)
    """The eigenvalues of AᵀA and its eigenvectors, as accurate as those of A."""
    p = A.shape[1]
    with large_lapack(p):
        (R,) = qr(A, mode="r", overwrite_a=True, check_finite=False)
        _, sizes, Vt = svd(R[:p], overwrite_a=True, check_finite=False)
    return np.pad(sizes**2, (0, p - len(sizes))), Vt.T


def _leverage(Phi: Any, moved: np.ndarray, half: np.ndarray) -> np.ndarray:  # (n,)
    """‖halfᵀ Φ'ᵢ‖², a thousand rows at a time."""
    out = np.empty(Phi.shape[0])

    def task(start: int) -> None:
        product = Phi[start : start + 1000] @ half - moved @ half
        out[start : start + 1000] = np.einsum("ij,ij->i", product, product)

    run(task, range(0, len(out), 1000))
    return out
