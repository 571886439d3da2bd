r"""Newton's step by conjugate gradients, with a factor of K of low rank as preconditioner.

Solve     (λI + H̃K) δ = -r,   H̃ = H - H1(1ᵀH1)⁺1ᵀH, the system of `newton`; H̃ = H where there is no b
Symmetric with H = SSᵀ is H̃ = SΠSᵀ for the projection Π = I - T(TᵀT)⁺Tᵀ, T = Sᵀ1. Then δ = -r/λ + Su, u from
              (λI + ΠSᵀKSΠ) u = ΠSᵀKr / λ,   u = Πu
          in which Kr is known. Kδ is added up on the way: one product with K per iteration.
Near it   Π B⁻¹ Π with B = μI + SᵀFFᵀS for K ≈ FFᵀ (see `linear.precondition`), that is
              B⁻¹V = (V - SᵀF C⁻¹ FᵀSV) / μ,   C = μI + FᵀHF
          Of m functions, F being the same for each, C has m × m blocks FᵀHₐᵦF. (Bounds of H without those of
          a ≠ b, such as diag(p) for a softmax, would be cheaper and do not help: where two classes share a
          point H has no curvature in some directions in which the bound has much. Measured on 1,500 points,
          three classes and C = 100: 282 products without a preconditioner, 3,859 with the bound, 33 so.)
          Π changes no more directions than there are functions.
Stop      when the residual ρ = -r - (λI + H̃K)δ has ρᵀKρ ≤ tol² rᵀKr, where K is taken as FFᵀ + εI, ε the
          largest entry of the diagonal of K - FFᵀ: `newton` computes its gap from K itself

One function has S = √H. Several have a curvature with the verbs of `RootedCurvature`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from mercer.solvers.landmarks.pivots import PivotedFactor
from mercer.solvers.linear.cholesky import factorise, solve
from mercer.solvers.linear.precondition import Damped, least_damping, weighted_square
from mercer.solvers.linear.strips import multiply

Multiply = Callable[[np.ndarray], np.ndarray]


@runtime_checkable
class RootedCurvature(Protocol):
    """H of several functions, V ↦ HV, with H = SSᵀ."""

    def __call__(self, V: np.ndarray) -> np.ndarray:  # (n, m)
        """H V."""

    def entry(self, a: int, b: int) -> np.ndarray:  # (n,)
        """H of two functions with each other, at every point."""

    def root(self, V: np.ndarray) -> np.ndarray:  # (n, m)
        """S V."""

    def root_transposed(self, V: np.ndarray) -> np.ndarray:  # (n, m)
        """Sᵀ V."""


class _Diagonal:
    """H = diag(h) of one function."""

    def __init__(self, h: np.ndarray) -> None:  # (n,)
        self.s = np.sqrt(h)

    def root(self, V: np.ndarray) -> np.ndarray:  # (n,)
        return self.s * V

    root_transposed = root


def newton_step(
    product: Multiply,
    H: Any,
    near: PivotedFactor,
    penalty: float,
    r: np.ndarray,  # (n,) or (n, m)
    Kr: np.ndarray,
    *,
    shift_inverse: np.ndarray | None,  # (m, m)
    tol: float,
    max_iter: int,
    stopped: Callable[[], bool] = lambda: False,
) -> tuple[np.ndarray, np.ndarray, bool]:
    """δ, Kδ, and whether the residual is as small as asked for.

    H is (n,) for one function, else a RootedCurvature; ``shift_inverse`` is (1ᵀH1)⁺ where there is a b.

    >>> from mercer import Gaussian, Gram
    >>> from mercer.solvers.landmarks.pivots import pivoted_cholesky
    >>> K = Gram(Gaussian(1.0), np.arange(4.0)[:, None])
    >>> r = np.array([1.0, 0.0, 0.0, -1.0])
    >>> near = pivoted_cholesky(K, 2, random_state=0)
    >>> options = {"shift_inverse": None, "tol": 1e-10, "max_iter": 9}
    >>> delta, _, _ = newton_step(lambda V: K @ V, np.ones(4), near, 0.1, r, K @ r, **options)
    >>> bool(np.allclose(0.1 * delta + K @ delta, -r))
    True
    """
    if isinstance(H, np.ndarray):
        roots: Any = _Diagonal(H)
        precondition: Multiply = Damped(near.factor, near.residual, H, penalty).solve
    else:
        roots, precondition = H, _coupled_inverse(near, H, r.shape[1], penalty)
    project = _projection(roots, r.shape, shift_inverse)
    delta, K_delta = -r / penalty, -Kr / penalty
    rho = project(roots.root_transposed(Kr)) / penalty
    rest = float(near.residual.max(initial=0.0))

    def is_enough() -> bool:
        """Whether ρᵀKρ is small, as far as the factor knows K."""
        left = roots.root(rho)
        seen = multiply(near.factor.T, left)
        return float((seen * seen).sum()) + rest * float((left * left).sum()) <= allowed

    allowed = tol * tol * max(float((r * Kr).sum()), 0.0)
    p, size = np.zeros_like(rho), 0.0
    for _ in range(max_iter):
        if is_enough():
            return delta, K_delta, True
        if stopped():
            break
        z = project(precondition(rho))
        new = float((rho * z).sum())
        p = z + (new / size) * p if size > 0 else z
        size = new
        Sp = roots.root(p)
        K_Sp = product(Sp)
        Ap = penalty * p + project(roots.root_transposed(K_Sp))
        bend = float((p * Ap).sum())
        if not (bend > 0 and size > 0):  # What is left is rounding.
            return delta, K_delta, False
        t = size / bend
        delta, K_delta = delta + t * Sp, K_delta + t * K_Sp
        rho = rho - t * Ap
    return delta, K_delta, is_enough()


def _projection(roots: Any, shape: tuple[int, ...], shift_inverse: np.ndarray | None) -> Multiply:
    """V ↦ ΠV."""
    if shift_inverse is None:
        return lambda V: V

    def project(V: np.ndarray) -> np.ndarray:
        along = (shift_inverse @ roots.root(V).sum(axis=0).reshape(-1)).reshape(shape[1:])
        return V - roots.root_transposed(np.broadcast_to(along, shape))

    return project


def _coupled_inverse(near: PivotedFactor, H: RootedCurvature, m: int, penalty: float) -> Multiply:
    """V ↦ B⁻¹V of m functions."""
    F = near.factor
    k = F.shape[1]
    C = np.zeros((m * k, m * k), order="F")
    for a in range(m):
        for b in range(a + 1):
            block = weighted_square(F, H.entry(a, b))
            C[a * k : (a + 1) * k, b * k : (b + 1) * k] = np.tril(block) + np.tril(block, -1).T
    rest = sum(float(H.entry(a, a) @ near.residual) for a in range(m)) / (m * len(F))
    damping = max(penalty + rest, least_damping(C))
    C[np.diag_indices(m * k)] += damping
    L = factorise(C)

    def apply(V: np.ndarray) -> np.ndarray:  # (n, m)
        seen = solve(L, multiply(F.T, H.root(V)).T.ravel())
        return (V - H.root_transposed(multiply(F, np.ascontiguousarray(seen.reshape(m, k).T)))) / damping

    return apply
