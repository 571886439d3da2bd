r"""The kernel Fisher discriminant, regularised, for two or more classes.

Find      directions w in feature space that maximise  wᵀ S_B w / wᵀ (S_W + αI) w,  one after the other
Given     K; the class of each point; weights; α > 0. S_B is the scatter of the class means and S_W that
          within the classes, both divided by the total weight W.
Solution  By S_W = S_T - S_B (S_T the total scatter) they are those of ridge regression on the classes: with
          A = P S K S P   (features centred, S = diag(√w), P = I - ŝŝᵀ),   M = A + WαI,
          Z               (n, classes - 1) an orthonormal basis of the class indicators times √w, without ŝ,
          H = Wα ZᵀM⁻¹Z   with eigenvectors θ and eigenvalues h in (0, 1]:
          w = Σᵢ (S M⁻¹Z θ)ᵢ Φ(xᵢ),     wᵀS_B w / wᵀ(S_W + αI)w = (1 - h) / h.
          They are scaled so that wᵀ(S_W + αI)w = 1: variance 1 within the classes, as in LDA, whose
          directions they are for the linear kernel as α → 0.
Left out  the value that xᵢ would get from the other points, by the identity of ridge regression: the residual
          of its target is (M⁻¹Zθ)ᵢ / qᵢ with qᵢ = (M⁻¹)ᵢᵢ - ŝᵢ²/(Wα). It costs the diagonal of M⁻¹ only.
α         of a path of penalties that with the smallest sum of squares of these residuals (``alpha=None``).
Cost      given α: one Cholesky factorisation and the inverse, n³; else one eigendecomposition, about 9n³,
          for the whole path.

Mika, Rätsch, Weston, Schölkopf and Müller, Fisher discriminant analysis with kernels (1999); Baudat and
Anouar, Generalized discriminant analysis using a kernel approach, Neural Computation 12 (2000); Hastie,
Tibshirani and Buja, Flexible discriminant analysis by optimal scoring, JASA 89 (1994).

>>> from mercer import Gram, Linear
>>> K = Gram(Linear(), [[-2.0], [-1.0], [1.0], [2.0]])
>>> fisher(K, np.array([0, 0, 1, 1]), 2, alpha=1e-6).ratios.round(3)  # 1.5² between, 0.5² within
array([9.])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, lapack

from mercer.errors import InputError
from mercer.solvers.matrix import KernelMatrix

__all__ = ["FisherResult", "fisher"]

_STRIP = 64  # rows worked on together
#: penalties of the path, relative to the mean eigenvalue of S_T
PATH = np.logspace(-8, 2, 41)


@dataclass(frozen=True, eq=False)
class FisherResult:
    """The discriminant functions f_j(x) = Σᵢ coef_ij k(xᵢ, x) + intercept_j, best first."""

    #: (n, q)
    coef: np.ndarray
    #: (q,)
    intercept: np.ndarray
    #: (q,) scatter between the classes over scatter within them
    ratios: np.ndarray
    #: (n, q) f_j(xᵢ) as learned from the other points
    left_out: np.ndarray
    #: α
    alpha: float
    #: (path,) the penalties that were tried, and the mean squared residuals of what was left out
    path: np.ndarray
    errors: np.ndarray
    #: the negative eigenvalue that was taken for zero, or 0
    lowest: float


def fisher(
    K: KernelMatrix,
    codes: np.ndarray,
    n_classes: int,
    *,
    alpha: float | None = None,
    weight: Any = None,
    copies: Any = None,
) -> FisherResult:
    """Solve the problem of the module; ``codes`` are the classes 0 … n_classes - 1, alpha=None chooses α.

    ``copies`` says how many equal points a point stands for, 1 by default; one of them is left out at a time.
    """
    n = K.shape[0]
    weight = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    copies = np.maximum(1.0 if copies is None else np.asarray(copies, dtype=np.float64), 1.0)
    root, total = np.sqrt(weight), float(weight.sum())
    unit = root / np.linalg.norm(root)
    Z = _targets(codes, n_classes, weight)
    M = K.dense(np.empty((n, n), K.dtype)).astype(np.float64, copy=False)
    size = float(np.abs(M.diagonal()).max())
    h = root * (M @ (root * unit))
    mean = float(unit @ h)
    for start in range(0, n, _STRIP):
        part = slice(start, min(start + _STRIP, n))
        M[part] *= root[part, None] * root
        M[part] -= np.outer(h[part], unit) + np.outer(unit[part], h - mean * unit)
    scale = float(M.trace()) / total
    if not scale > 32 * np.finfo(K.dtype).eps * size:
        raise InputError(
            f"the points do not vary in feature space, their variance is {scale:.3g}: give points that "
            "differ, or take another kernel (one that is positive definite)"
        )
    inverse = None if alpha is None else _by_cholesky(M, Z, total * alpha)
    path, errors, lowest = np.empty(0), np.empty(0), 0.0
    if inverse is None:
        if alpha is not None:  # the factorisation destroyed M, and failed: K is not positive semi-definite
            M = _again(K, root, unit, h, mean)
        spectrum, V = eigh(M.T, overwrite_a=True, check_finite=False)
        rounding = n * np.finfo(K.dtype).eps * max(float(spectrum[-1]), size * float(weight.max()))
        lowest = float(spectrum[0]) if spectrum[0] < -rounding else 0.0
        spectrum = np.maximum(spectrum, 0.0)
        if alpha is None:
            path = scale * PATH
            errors = _path_errors(spectrum, V, Z, total * path, unit, weight, copies)
            alpha = float(path[errors.argmin()])
        inverse = _by_spectrum(spectrum, V, Z, total * alpha)
    assert alpha is not None
    A, diagonal = inverse
    A -= np.outer(unit, unit @ A)  # exactly centred: the functions then do not feel rounding along the mean
    penalty = total * alpha
    H = penalty * (Z.T @ A)
    small, theta = np.linalg.eigh((H + H.T) / 2)
    small = np.clip(small, np.finfo(float).tiny, 1.0)
    factor = np.sqrt(total / (small * np.maximum(1 - small, 1e-300)))
    kept = 1 - small > 1e-10
    kept[0] = True
    if small[0] >= 1 - 1e-10:
        factor[0] = 0.0  # no class mean differs from another
    A, targets = A @ theta, Z @ theta
    residual = _left_out(A, diagonal, penalty, unit, weight, copies)
    safe = np.where(root > 0, root, 1.0)[:, None]
    values = np.where(root[:, None] > 0, targets / safe, 0.0) - residual
    A, values = (A * factor)[:, kept], (values * factor)[:, kept]
    return FisherResult(
        coef=root[:, None] * A,
        intercept=-(h @ A) / np.sqrt(total),
        ratios=((1 - small) / small)[kept],
        left_out=values,
        alpha=alpha,
        path=path,
        errors=errors,
        lowest=lowest,
    )


def _targets(codes: np.ndarray, n_classes: int, weight: np.ndarray) -> np.ndarray:  # (n, classes - 1)
    """√w times the indicators of the classes, in an orthonormal basis orthogonal to √w."""
    share = np.bincount(codes, weight, minlength=n_classes)
    present = np.flatnonzero(share > 0)  # a class may have weight zero
    root = np.sqrt(share[present] / share.sum())
    # columns 2 … of a reflection whose first column is √share
    basis = np.linalg.qr(np.column_stack([root, np.eye(len(root))[:, : len(root) - 1]]))[0][:, 1:]
    indicator = codes[:, None] == present
    return np.sqrt(weight)[:, None] * indicator / np.sqrt(share[present]) @ basis


def _again(
    K: KernelMatrix, root: np.ndarray, unit: np.ndarray, h: np.ndarray, mean: float
) -> np.ndarray:  # (n, n)
    M = K.dense(np.empty(K.shape, K.dtype)).astype(np.float64, copy=False)
    M *= root[:, None] * root
    return M - np.outer(h, unit) - np.outer(unit, h - mean * unit)


def _by_cholesky(M: np.ndarray, Z: np.ndarray, penalty: float) -> tuple[np.ndarray, np.ndarray] | None:
    """(M + penalty I)⁻¹ Z and the diagonal of that inverse; None where there is none. M is destroyed."""
    M.flat[:: len(M) + 1] += penalty
    try:
        factor, lower = cho_factor(M.T, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None
    A = cho_solve((factor, lower), Z, check_finite=False)
    inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    return A, inverse.diagonal().copy()


def _by_spectrum(
    spectrum: np.ndarray, V: np.ndarray, Z: np.ndarray, penalty: float
) -> tuple[np.ndarray, np.ndarray]:
    """The same from M = V diag(spectrum) Vᵀ."""
    d = 1 / (spectrum + penalty)
    diagonal = np.empty(len(V))
    for start in range(0, len(V), _STRIP):
        diagonal[start : start + _STRIP] = (V[start : start + _STRIP] ** 2) @ d
    return V @ (d[:, None] * (V.T @ Z)), diagonal


def _left_out(
    A: np.ndarray, diagonal: np.ndarray, penalty: float, unit: np.ndarray, weight: np.ndarray, copies: Any
) -> np.ndarray:  # (n, q)
    """The residuals of targets at points that are left out, one copy at a time."""
    root = np.sqrt(weight)
    free = penalty * diagonal - unit**2  # 1 - hᵢᵢ, h the hat matrix
    free = np.maximum(1 - (1 - free) / copies, 1e-12)
    return np.where(root > 0, penalty / np.where(root > 0, root, 1.0) / free, 0.0)[:, None] * A


def _path_errors(
    spectrum: np.ndarray,
    V: np.ndarray,
    Z: np.ndarray,
    penalties: np.ndarray,
    unit: np.ndarray,
    weight: np.ndarray,
    copies: Any,
) -> np.ndarray:  # (path,)
    """The mean squared residual of what is left out, for every penalty."""
    D = 1 / (spectrum[:, None] + penalties)  # (n, path)
    diagonals = np.empty((len(V), len(penalties)))
    for start in range(0, len(V), _STRIP):
        diagonals[start : start + _STRIP] = (V[start : start + _STRIP] ** 2) @ D
    rotated = V.T @ Z
    errors = np.empty(len(penalties))
    for p, penalty in enumerate(penalties):
        A = V @ (D[:, p, None] * rotated)
        residual = _left_out(A, diagonals[:, p], float(penalty), unit, weight, copies)
        errors[p] = float(weight @ (residual**2).sum(axis=1)) / float(weight.sum())
    return errors
