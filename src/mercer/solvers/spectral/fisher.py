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
          K is known to ε max kᵢᵢ (ε that of its numbers), and A to W times that: a smaller α would weigh
          rounding, and is taken for 4ε max kᵢᵢ.
Repair    where A has negative eigenvalues beyond rounding they are taken for zero, and the functions do not
          use their eigenvectors.
Cost      given α: one Cholesky factorisation and the inverse, n³, in one matrix of n × n (where A is not
          positive definite an eigendecomposition, in place); else one eigendecomposition, about 9n³, for the
          whole path, in two.

Mika, Rätsch, Weston, Schölkopf and Müller, Fisher discriminant analysis with kernels (1999); Baudat and
Anouar, Generalized discriminant analysis using a kernel approach, Neural Computation 12 (2000); Hastie,
Tibshirani and Buja, Flexible discriminant analysis by optimal scoring, JASA 89 (1994).

>>> from mercer import Gram, Linear
>>> K = Gram(Linear(), [[-2.0], [-1.0], [1.0], [2.0]])
>>> fisher(K, np.array([0, 0, 1, 1]), 2, alpha=1e-6).ratios.round(3)  # 1.5² between, 0.5² within
array([9.])
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, eigh

from mercer.data.types import Weights
from mercer.errors import InputError
from mercer.runtime.threads import large_lapack, run
from mercer.solvers.linear.cholesky import factorise, inverse_diagonal, solve
from mercer.solvers.matrix import KernelMatrix

_STRIP = 64  # rows worked on together
#: A direction whose scatter between classes is less than this part of all scatter is rounding.
_NO_RATIO = 1e-10
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
    #: (n, q) f_j(xᵢ)
    fitted: np.ndarray
    #: α; larger than what was asked for where that was below the rounding of K
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
    weight: Weights = None,
    copies: Any = None,
    clip: bool = False,
) -> FisherResult:
    """Solve the problem of the module; ``codes`` are the classes 0 … n_classes - 1, alpha=None chooses α.

    ``copies`` says how many equal points a point stands for, 1 by default; one of them is left out at a time.
    ``clip``: K may have negative eigenvalues, and they count as zero; without it K is left as it is where
    K + αI is positive definite.
    """
    weight = np.ones(K.shape[0]) if weight is None else np.asarray(weight, dtype=np.float64)
    copies = np.maximum(1.0 if copies is None else np.asarray(copies, dtype=np.float64), 1.0)
    Z = class_targets(codes, n_classes, weight)
    points = _Points(K, weight, copies)
    least = smallest_penalty(points.eps, points.size)
    inverse = None
    if alpha is not None:
        alpha = max(alpha, least)
        inverse = None if clip else _by_cholesky(points, Z, alpha)
    if inverse is None:
        inverse = _by_eigenvalues(points, Z, alpha, least, is_destroyed=alpha is not None and not clip)
    return _discriminants(points, Z, inverse)


class _Points:
    """The points as weighted and centred: M is the A of the module, h = S K S ŝ."""

    def __init__(self, K: KernelMatrix, weight: np.ndarray, copies: Any) -> None:
        self.K, self.weight, self.copies = K, weight, copies
        self.root, self.total = np.sqrt(weight), float(weight.sum())
        self.unit = self.root / np.linalg.norm(self.root)
        self.M, self.h, self.size = _centred(K, self.root, self.unit)
        self.eps = float(np.finfo(K.dtype).eps)
        trace = float(self.M.trace())
        # An indefinite K may have trace 0.
        require_spread(trace, max(trace, float(np.linalg.norm(self.M))), self.size, self.total, self.eps)


def require_spread(trace: float, spread: float, size: float, total: float, eps: float) -> None:
    """Refuse points whose scatter is no more than the rounding of kernel values up to ``size``."""
    if not spread > 32 * eps * size * total:
        raise InputError(
            f"the points do not vary in feature space, their variance is {trace / total:.3g} beside "
            f"squared norms of {size:.3g}: give points that differ (or centre them), or take "
            "another kernel"
        )


def smallest_penalty(eps: float, size: float) -> float:
    """The α below which it would weigh the rounding of kernel values up to ``size``."""
    return 4 * eps * size


def turned(H: np.ndarray, total: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """θ (q, q), the factors (q,), the ratios of the directions that are kept, and which they are (q,)."""
    small, theta = np.linalg.eigh((H + H.T) / 2)
    small = np.clip(small, np.finfo(float).tiny, 1.0)
    factor = np.sqrt(total / (small * np.maximum(1 - small, 1e-300)))
    kept = 1 - small > _NO_RATIO
    kept[0] = True
    if small[0] >= 1 - _NO_RATIO:
        factor[0] = 0.0  # no class mean differs from another
    return theta, factor, ((1 - small) / small)[kept], kept


@dataclass(frozen=True, eq=False)
class _Inverse:
    """(M + nα I)⁻¹ as far as it is needed; n stands for Σw."""

    alpha: float
    #: (n, q) its product with the targets
    A: np.ndarray
    diagonal: np.ndarray
    #: these three are as in `FisherResult`
    path: np.ndarray = field(default_factory=lambda: np.empty(0))
    errors: np.ndarray = field(default_factory=lambda: np.empty(0))
    lowest: float = 0.0
    #: (n, …) the eigenvectors whose eigenvalues were taken for zero
    negative: np.ndarray | None = None


def _by_eigenvalues(
    points: _Points, Z: np.ndarray, alpha: float | None, least: float, is_destroyed: bool
) -> _Inverse:
    """The inverse by the eigenvalues of M, negative ones taken for zero; for the best α where none is given.

    A factorisation that has failed has destroyed M: K is not positive semi-definite, and M is made again.
    """
    if is_destroyed:
        points.M = _centred(points.K, points.root, points.unit, points.M)[0]
    n, total = len(Z), points.total
    # The driver "ev" works in place, where the plan is for one matrix.
    driver = "evr" if alpha is None else "ev"
    with large_lapack(n):
        spectrum, V = eigh(points.M.T, overwrite_a=True, check_finite=False, driver=driver)
    rounding = n * points.eps * max(float(spectrum[-1]), points.size * float(points.weight.max()))
    if spectrum[-1] <= rounding:
        raise InputError(
            "the kernel matrix has no positive eigenvalue once it is centred, the largest is "
            f"{spectrum[-1]:.3g}: it is not positive semi-definite, take another kernel"
        )
    lowest = float(spectrum[0]) if spectrum[0] < -rounding else 0.0
    negative = V[:, : int((spectrum < -rounding).sum())]  # the spectrum ascends
    spectrum = np.maximum(spectrum, 0.0)
    path = errors = np.empty(0)
    if alpha is None:
        path = np.unique(np.maximum(float(spectrum.sum()) / total * PATH, least))
        errors = _path_errors(spectrum, V, Z, total * path, points)
        alpha = float(path[errors.argmin()])
    d = 1 / (spectrum + total * alpha)
    diagonal = np.empty(n)
    for start in range(0, n, _STRIP):
        diagonal[start : start + _STRIP] = (V[start : start + _STRIP] ** 2) @ d
    A = V @ (d[:, None] * (V.T @ Z))
    return _Inverse(alpha, A, diagonal, path, errors, lowest, negative)


def _discriminants(points: _Points, Z: np.ndarray, inverse: _Inverse) -> FisherResult:
    """The functions, their ratios and their values, from (M + nα I)⁻¹Z."""
    A, unit, root, total = inverse.A, points.unit, points.root, points.total
    A -= np.outer(unit, unit @ A)  # exactly centred: the functions then do not feel rounding along the mean
    penalty = total * inverse.alpha
    H = penalty * (Z.T @ A)
    theta, factor, ratios, kept = turned(H, total)
    A, targets = A @ theta, Z @ theta
    residual = _left_out(A, inverse.diagonal, penalty, points)
    safe = np.where(root > 0, root, 1.0)[:, None]
    targets = np.where(root[:, None] > 0, targets / safe, 0.0)
    values = ((targets - residual) * factor)[:, kept]
    fitted = ((targets - penalty * A / safe) * factor)[:, kept]
    if inverse.negative is not None:  # f is then what it is on the training points by the repaired matrix
        A -= inverse.negative @ (inverse.negative.T @ A)
    A = (A * factor)[:, kept]
    return FisherResult(
        coef=root[:, None] * A,
        intercept=-(points.h @ A) / np.sqrt(total),
        ratios=ratios,
        left_out=values,
        fitted=fitted,
        alpha=inverse.alpha,
        path=inverse.path,
        errors=inverse.errors,
        lowest=inverse.lowest,
    )


def class_targets(codes: np.ndarray, n_classes: int, weight: np.ndarray) -> np.ndarray:  # (n, classes - 1)
    """√w times the indicators of the classes, in an orthonormal basis orthogonal to √w."""
    share = np.bincount(codes, weight, minlength=n_classes)
    present = np.flatnonzero(share > 0)  # a class may have weight zero
    root = np.sqrt(share[present] / share.sum())
    # These are the columns from the second on of a reflection whose first column is √share.
    basis = np.linalg.qr(np.column_stack([root, np.eye(len(root))[:, : len(root) - 1]]))[0][:, 1:]
    indicator = codes[:, None] == present
    return np.sqrt(weight)[:, None] * indicator / np.sqrt(share[present]) @ basis


def _centred(
    K: KernelMatrix, root: np.ndarray, unit: np.ndarray, out: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, float]:
    """A, in place of what ``out`` holds; S K S ŝ; and max |kᵢᵢ|."""
    n = K.shape[0]
    if out is None:
        out = K.dense(np.empty((n, n), K.dtype)).astype(np.float64, copy=False)
    elif K.dtype == out.dtype:
        K.dense(out)
    else:
        out[:] = K.dense(np.empty((n, n), K.dtype))
    size = float(np.abs(out.diagonal()).max())
    h = root * (out @ (root * unit))
    mean = float(unit @ h)
    for start in range(0, n, _STRIP):
        part = slice(start, min(start + _STRIP, n))
        out[part] *= root[part, None] * root
        out[part] -= np.outer(h[part], unit) + np.outer(unit[part], h - mean * unit)
    return out, h, size


def _by_cholesky(points: _Points, Z: np.ndarray, alpha: float) -> _Inverse | None:
    """The inverse by a factorisation that destroys M; None where there is none."""
    M = points.M
    M.flat[:: len(M) + 1] += points.total * alpha
    try:
        factor = factorise(M.T)
    except LinAlgError:
        return None
    return _Inverse(alpha, solve(factor, Z), inverse_diagonal(factor))


def _left_out(A: np.ndarray, diagonal: np.ndarray, penalty: float, points: _Points) -> np.ndarray:  # (n, q)
    """The residuals of targets at points that are left out, one copy at a time."""
    root = points.root
    free = penalty * diagonal - points.unit**2  # 1 - hᵢᵢ, h the hat matrix
    free = np.maximum(1 - (1 - free) / points.copies, 1e-12)
    return np.where(root > 0, penalty / np.where(root > 0, root, 1.0) / free, 0.0)[:, None] * A


def _path_errors(
    spectrum: np.ndarray, V: np.ndarray, Z: np.ndarray, penalties: np.ndarray, points: _Points
) -> np.ndarray:  # (path,)
    """The mean squared residual of what is left out, for every penalty."""
    D = 1 / (spectrum[:, None] + penalties)  # (n, path)
    diagonals = np.empty((len(V), len(penalties)))

    def task(start: int) -> None:
        diagonals[start : start + _STRIP] = (V[start : start + _STRIP] ** 2) @ D

    run(task, range(0, len(V), _STRIP))
    rotated = V.T @ Z
    errors = np.empty(len(penalties))
    for p, penalty in enumerate(penalties):
        A = V @ (D[:, p, None] * rotated)
        residual = _left_out(A, diagonals[:, p], float(penalty), points)
        errors[p] = float(points.weight @ (residual**2).sum(axis=1)) / points.total
    return errors
