r"""Kernel ridge regression and its leave-one-out errors, by factorising K.

Minimise  Σᵢ wᵢ (yᵢ - f(xᵢ) - b)² + α ‖f‖²     over f in the RKHS and b (b = 0 without an intercept)
Given     K; Y, one column per target, each with its α > 0; weights wᵢ > 0
Solution  with S = diag(√wᵢ), M = S K S + αI and s = S 1:
              M z = S (y - b 1),   sᵀz = 0 (when there is a b),   f = Σ aᵢ k(xᵢ, ·),   a = S z
          b = sᵀM⁻¹Sy / sᵀM⁻¹s. No iteration and no stopping rule.
Left out  the error at xᵢ of the fit without one observation there, α unchanged: a point counts as wᵢ
          observations, so that its weight falls by min(1, wᵢ). With cᵢ = 1 / max(1, wᵢ) the error is
              (α zᵢ / √wᵢ) / (1 - cᵢ + cᵢ α Pᵢᵢ),   P = M⁻¹ - M⁻¹s sᵀM⁻¹ / sᵀM⁻¹s  (P = M⁻¹ without b)
α = 0     `minimum_norm`: among the f of least error the one of least norm, by eigenvalues
Cost      n³/3 for each different α, 2n³/3 for the errors left out; memory n². A path of many α, with its
          errors, takes 8n³/3 once (`ridge_path`, see `banded`).

Saunders, Gammerman and Vovk, Ridge regression learning algorithm in dual variables, ICML 1998, 515-521. Left
out: Cawley and Talbot, Fast exact leave-one-out cross-validation of sparse least-squares support vector
machines, Neural Networks 17 (2004), 1467-1475.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, eigh

from mercer.errors import InputError
from mercer.runtime.threads import large_lapack, run
from mercer.solvers.linear.banded import BandForm
from mercer.solvers.linear.blas import subtract_rank_two
from mercer.solvers.linear.cholesky import factorise, factorise_shifted, inverse_diagonal, solve
from mercer.solvers.linear.evidence import surprise
from mercer.solvers.matrix import KernelMatrix
from mercer.solvers.result import Result

#: Up to here a factor for every α takes as long as one band for all of them (measured on one core).
_FEW_POINTS, _FEW_PENALTIES = 640, 8


@dataclass(frozen=True, eq=False)
class RidgeResult(Result):
    """f for every target."""

    coef: np.ndarray  # (n, t) aᵢ
    intercept: np.ndarray  # (t,)
    objective: np.ndarray  # (t,)
    #: (n, t) the errors left out, where they came with the solution
    errors: np.ndarray | None = None
    #: the most negative eigenvalue of K that had to be taken as zero; 0 when there was none to speak of
    clipped: float = 0.0
    #: the eigenvalues that were used; n unless they were needed
    rank: int = 0
    #: how far the sum of the objectives is above its minimum, at most, where a solver has iterated
    gap: float | None = None


@dataclass(frozen=True, eq=False)
class RidgePoint:
    """One α of a path."""

    coef: np.ndarray  # (n, t)
    intercept: np.ndarray  # (t,)
    errors: np.ndarray  # (n, t) left out
    surprise: np.ndarray  # (t,) see `evidence`


def ridge(
    K: KernelMatrix,  # (n, n)
    Y: np.ndarray,  # (n, t)
    alphas: np.ndarray,  # (t,) > 0
    weight: np.ndarray,  # (n,) > 0
    fit_intercept: bool = True,
    *,
    clip: bool = False,
) -> RidgeResult:
    """Ridge regression by Cholesky factorisation, one for each different α, all in the memory of one matrix.

    ``clip``: by eigenvalues, of which the negative ones count as zero. Without it a K is left as it is where
    K + αI is positive definite.

    >>> from mercer import Gram, Linear
    >>> K = Gram(Linear(), [[0.0], [1.0], [2.0]])
    >>> result = ridge(K, np.array([[1.0], [3.0], [5.0]]), np.array([1e-9]), np.ones(3))
    >>> result.intercept.round(6)  # y = 1 + 2x
    array([1.])
    """
    n, t = Y.shape
    coef, intercept, objective = np.empty((n, t)), np.zeros(t), np.zeros(t)
    clipped, rank = 0.0, n
    errors = np.empty((n, t)) if clip else None
    is_elsewhere = hasattr(K, "factorised") and not clip
    M = np.empty((0, 0) if is_elsewhere else K.shape, K.dtype)
    for alpha in np.unique(alphas):
        mine = np.flatnonzero(alphas == alpha)
        inverse: Callable[[np.ndarray], np.ndarray] | None = None
        if is_elsewhere:
            inverse = _on_device(K, weight, alpha)
        elif not clip:
            with suppress(LinAlgError):
                inverse = partial(_solve, factor_of(K, M, weight, alpha))
        if inverse is None:
            result = minimum_norm(K, Y[:, mine], weight, fit_intercept, alpha=alpha, out=M)
            clipped, rank = min(clipped, result.clipped), min(rank, result.rank)
            coef[:, mine], intercept[mine] = result.coef, result.intercept
            objective[mine] = result.objective
            if errors is not None:
                errors[:, mine] = result.errors
            if len(mine) == t:
                return result
            continue
        root = np.sqrt(weight)
        Z = inverse(root[:, None] * Y[:, mine])
        if fit_intercept:
            v = inverse(root)
            intercept[mine] = (root @ Z) / (root @ v)
            Z -= v[:, None] * intercept[mine]
        coef[:, mine] = root[:, None] * Z
        objective[mine] = alpha * (coef[:, mine] * (Y[:, mine] - intercept[mine])).sum(axis=0)
    _require_finite(coef)
    return RidgeResult(coef, intercept, objective, errors, clipped, rank)


def leave_one_out(
    K: KernelMatrix,  # (n, n)
    coef: np.ndarray,  # (n, t) of a ridge fit
    alphas: np.ndarray,  # (t,) > 0
    weight: np.ndarray,  # (n,) > 0
    fit_intercept: bool = True,
) -> np.ndarray:  # (n, t)
    """The errors yᵢ - f(xᵢ) - b of the fits without an observation at xᵢ, from one factorisation per α."""
    errors = np.empty_like(coef)
    M = np.empty(K.shape, K.dtype)
    for alpha in np.unique(alphas):
        mine = np.flatnonzero(alphas == alpha)
        factor = factor_of(K, M, weight, alpha)
        v = _solve(factor, np.sqrt(weight)) if fit_intercept else None
        diagonal = inverse_diagonal(factor)
        if v is not None:
            diagonal -= v**2 / (np.sqrt(weight) @ v)
        errors[:, mine] = _left_out(coef[:, mine], diagonal, alpha, weight)
    return errors


def ridge_path(
    K: np.ndarray,  # (n, n), overwritten
    Y: np.ndarray,  # (n, t)
    alphas: Any,  # (m,) > 0
    weight: np.ndarray,  # (n,) > 0
    fit_intercept: bool = True,
) -> Iterator[RidgePoint | None]:
    """Fits and leave-one-out errors for every α, from one reduction of K to a band.

    A few hundred points and few α are factorised α by α instead: it takes as long, in a tenth of the calls,
    and threads that work side by side wait for one another at every call.

    None where K + αI is not positive definite, to rounding: α is too small for this K.
    """
    centred, alphas = _Centred(K, Y, weight, fit_intercept), np.asarray(alphas, dtype=np.float64)
    is_small = len(K) <= _FEW_POINTS and len(alphas) <= _FEW_PENALTIES
    path = map(centred.solve, alphas) if is_small else BandForm(K).path(alphas, centred.right)
    for alpha, solved in zip(alphas, path, strict=True):
        yield None if solved is None else centred.point(alpha, *solved)


def ridge_valley(
    K: np.ndarray,  # (n, n), overwritten
    Y: np.ndarray,  # (n, t)
    alphas: np.ndarray,  # (m,) > 0, rising
    start: int,
) -> tuple[float, float]:
    """The α of the least mean squared error left out, downhill from ``alphas[start]``, and that error.

    Both sides of the start are tried side by side, and then one α after the other until the error grows. It
    is the least of all where there is one valley, and infinite where no α makes K + αI positive definite.

    >>> K, y = (
    ...     np.exp(-(np.subtract.outer(np.arange(5.0), np.arange(5.0)) ** 2)),
    ...     np.array([[1.0], [2], [4], [2], [1]]),
    ... )
    >>> alphas = np.array([1e-3, 1e-2, 0.1, 1.0, 10.0])
    >>> errors = [float(np.mean(point.errors**2)) for point in ridge_path(K.copy(), y, alphas, np.ones(5))]
    >>> ridge_valley(K, y, alphas, 1) == (alphas[np.argmin(errors)], min(errors))
    True
    """
    centred = _Centred(K, Y, np.ones(len(K)), fit_intercept=True)

    def score(i: int) -> float:
        solved = centred.solve(alphas[i])
        return np.inf if solved is None else float(np.mean(centred.point(alphas[i], *solved).errors ** 2))

    best, error = downhill(score, len(alphas), start)
    return float(alphas[best]), error


def downhill(score: Callable[[int], float], count: int, start: int) -> tuple[int, float]:
    """The number of the least of so many scores, downhill from the start, and this score.

    >>> downhill(lambda i: abs(i - 5), 8, 2)
    (5, 0.0)
    """
    errors = np.full(count, np.nan)

    def fill(i: int) -> None:
        error = score(i)
        errors[i] = error if np.isfinite(error) else np.inf

    run(fill, range(max(start - 1, 0), min(start + 2, count)))
    while True:
        is_known = np.flatnonzero(~np.isnan(errors))  # Where K + αI is singular throughout, α is too small.
        best = int(np.nanargmin(errors)) if np.isfinite(errors[is_known]).any() else int(is_known[-1])
        ahead = [i for i in (best - 1, best + 1) if 0 <= i < count and np.isnan(errors[i])]
        if not ahead:
            return best, float(errors[best])
        run(fill, ahead)


class _Centred:
    """S K S without its mean, in the memory of K, and what a solution of it is for K itself.

    With an intercept it is H K H + shift uuᵀ, H = I - uuᵀ: u is then an eigenvector on its own. Its part of
    the diagonal of the inverse is taken away again; a shift of the size of K's eigenvalues keeps that from
    cancelling. Of K the lower triangle of its transpose is written.
    """

    def __init__(self, K: np.ndarray, Y: np.ndarray, weight: np.ndarray, fit_intercept: bool) -> None:
        n, root = len(K), np.sqrt(weight)
        _scale(K, root)
        self.K, self.weight, self.root, self.fit_intercept = K, weight, root, fit_intercept
        self.total = float(np.linalg.norm(root))
        self.u, self.product, self.shift = root / self.total, np.zeros(n), 0.0
        right = root[:, None] * Y
        self.along = self.u @ right
        if fit_intercept:
            self.product, shift = K @ self.u.astype(K.dtype), float(np.trace(K)) / n
            self.shift = shift if shift > 0 else 1.0
            W = self.product - (self.u @ self.product + self.shift) / 2 * self.u
            subtract_rank_two(K.T, _column(self.u, K.dtype), _column(W, K.dtype))
            right = right - np.outer(self.u, self.along)
        self.right = right.astype(K.dtype)

    def solve(self, alpha: float) -> tuple[np.ndarray, np.ndarray, float] | None:
        """The point of the path for α, as `BandForm.path` gives it, by a factor for this α."""
        try:
            factor = factorise_shifted(self.K, alpha)
        except LinAlgError:
            return None
        logdet = 2.0 * float(np.log(np.diagonal(factor).astype(np.float64)).sum())
        return solve(factor, self.right), inverse_diagonal(factor), logdet

    def point(self, alpha: float, Z: np.ndarray, diagonal: np.ndarray, logdet: float) -> RidgePoint:
        """The fit, its errors and its evidence, from what `BandForm.path` gives."""
        Z, diagonal = Z.astype(np.float64), diagonal.astype(np.float64)
        intercept = np.zeros(Z.shape[1])
        if self.fit_intercept:
            diagonal -= self.u**2 / (self.shift + alpha)
            Z -= np.outer(self.u, self.u @ Z)
            intercept = (self.along - self.product @ Z) / self.total
            logdet += np.log(alpha) - np.log(self.shift + alpha)
        coef = self.root[:, None] * Z
        objective = alpha * (self.right * Z).sum(axis=0)
        spread = logdet - len(Z) * np.log(alpha)
        evidence = surprise(objective, spread, float(self.weight.sum()), self.fit_intercept)
        return RidgePoint(coef, intercept, _left_out(coef, diagonal, alpha, self.weight), evidence)


def minimum_norm(
    K: KernelMatrix,  # (n, n)
    Y: np.ndarray,  # (n, t)
    weight: np.ndarray,  # (n,) > 0
    fit_intercept: bool = True,
    *,
    alpha: float = 0.0,
    rcond: float | None = None,
    out: np.ndarray | None = None,
) -> RidgeResult:
    """The f of least norm among those of least error, from the eigenvalues of K; or ridge, by the same way.

    Eigenvalues up to rcond · λmax count as zero, by default rcond = n ε. Negative ones beyond that mean that
    K is no kernel matrix: they are taken as zero, which makes K the nearest one, and ``clipped`` tells.
    """
    n = len(Y)
    M = K.dense(out)
    if not np.isfinite(float(M.sum())):
        _require_finite(M)
    root = np.sqrt(weight)
    _scale(M, root)
    size = float(np.abs(M.diagonal()).max())  # rounding is relative to K as it was before it is centred
    right = root[:, None] * Y
    total = float(np.linalg.norm(root))
    u = root / total
    product = np.zeros(n)
    if fit_intercept:
        product = (M @ u.astype(M.dtype)).astype(np.float64)
        W = product - (u @ product) / 2 * u
        subtract_rank_two(M.T, _column(u, M.dtype), _column(W, M.dtype))
        right = right - np.outer(u, u @ right)
    with large_lapack(n):
        values, Q = eigh(M.T, lower=True, overwrite_a=True, check_finite=False)
    values = values.astype(np.float64)
    size = max(size, float(np.abs(values).max(initial=0.0)), abs(float(u @ product)))
    cut = (n * float(np.finfo(M.dtype).eps) if rcond is None else rcond) * size
    kept = values > cut
    inverse = np.zeros(n)
    inverse[kept] = 1 / (values[kept] + alpha)  # the other directions do not reach f
    rotated = Q.T @ right
    Z = Q @ (inverse[:, None] * rotated)
    fitted = np.where(kept, values, 0.0) * inverse  # the part of each direction that f takes up
    residuals = right - Q @ (fitted[:, None] * rotated)
    objective = (residuals**2).sum(axis=0) + alpha * ((fitted * inverse)[:, None] * rotated**2).sum(axis=0)
    leverage = _squares(Q, fitted) + (u**2 if fit_intercept else 0.0)
    intercept = np.zeros(Y.shape[1])
    if fit_intercept:
        Z -= np.outer(u, u @ Z)
        intercept = (u @ (root[:, None] * Y) - product @ Z) / total
    coef = root[:, None] * Z
    _require_finite(coef)
    free = 1 - leverage / np.maximum(1.0, weight)
    free[free < n * np.finfo(M.dtype).eps] = np.nan  # f goes through the point, whatever it is
    lowest = float(values.min(initial=0.0))
    return RidgeResult(
        coef,
        intercept,
        objective,
        residuals / (root * free)[:, None],
        lowest if lowest < -cut else 0.0,
        int(kept.sum()),
    )


def _squares(Q: np.ndarray, d: np.ndarray) -> np.ndarray:  # (n,)
    """The diagonal of Q diag(d) Qᵀ, some rows at a time."""
    return np.concatenate([(Q[i : i + 256] ** 2) @ d for i in range(0, len(Q), 256)])


def _left_out(coef: np.ndarray, diagonal: np.ndarray, alpha: float, weight: np.ndarray) -> np.ndarray:
    """The errors left out, from aᵢ and the diagonal of P."""
    share = 1 / np.maximum(1.0, weight)
    kept = (1 - share) / alpha + share * diagonal
    kept[kept <= 0] = np.nan  # nothing is left: a single point and its own intercept
    return coef / (weight * kept)[:, None]


def factor_of(K: KernelMatrix, M: np.ndarray, weight: np.ndarray, alpha: float) -> np.ndarray:
    """The Cholesky factor of S K S + αI, in the memory of M."""
    K.dense(M)
    if not np.isfinite(float(M.sum())):
        _require_finite(M)
    _scale(M, np.sqrt(weight))
    rounding = len(M) * float(np.finfo(M.dtype).eps) * float(np.abs(M.diagonal()).max())
    M.flat[:: len(M) + 1] += M.dtype.type(alpha)
    factor = factorise(M.T)
    # for a positive semi-definite K every pivot of K + αI is at least α: what is less shows that it is not,
    # though the factorisation went through
    if not float(np.diagonal(factor).min()) ** 2 >= max(alpha - rounding, rounding):
        raise LinAlgError("K is indefinite, or K + αI singular to rounding")
    return factor


def _on_device(K: Any, weight: np.ndarray, alpha: float) -> Callable[[np.ndarray], np.ndarray]:
    """V ↦ (S K S + αI)⁻¹ V, by a factor that stays on the device of K."""
    try:
        return K.factorised(np.sqrt(weight), alpha)
    except LinAlgError as error:
        raise InputError(
            f"K + αI with α = {alpha:.3g} has no Cholesky factor in {K.dtype.name} ({error}): take a larger "
            "penalty, or solve on the CPU, which takes eigenvalues where it must"
        ) from error


def _solve(factor: np.ndarray, right: np.ndarray) -> np.ndarray:
    return solve(factor, right).astype(np.float64)


def _scale(M: np.ndarray, root: np.ndarray) -> None:
    """M ← S M S, in place."""
    if not np.all(root == 1):
        M *= root[:, None].astype(M.dtype)
        M *= root.astype(M.dtype)


def _column(vector: np.ndarray, dtype: Any) -> np.ndarray:
    return np.asfortranarray(vector[:, None], dtype=dtype)


def _require_finite(values: np.ndarray) -> None:
    if not np.isfinite(values).all():
        raise InputError(
            "the kernel matrix holds values that are not finite, or too large to work with: rescale the "
            "data, for "
            "example with StandardScaler, or choose a kernel that does not overflow on them"
        )
