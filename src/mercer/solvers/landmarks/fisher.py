r"""The kernel Fisher discriminant among the functions on landmarks, from all points.

As in `mercer.solvers.spectral.fisher` the directions are those of ridge regression on the classes, here on
landmarks (`path`), with penalty nα, n standing for Σw: with targets y, an orthonormal basis of the classes'
indicators, W the coefficients Tβ and R the residuals of their fits,

    H = Rᵀ diag(w) R + nα WᵀW   with eigenvectors θ and eigenvalues h in (0, 1],   ratios (1 - h) / h

and f = Wθ, scaled so that its variance within the classes, and the penalty, are 1. What a point gets from the
others, and the error that α is chosen by, are those of the path; so is how far W is from its minimum at most.
"""

from __future__ import annotations

import numpy as np

from mercer.solvers.landmarks.certificate import Accuracy, RestrictedMinimum
from mercer.solvers.landmarks.features import Features
from mercer.solvers.landmarks.path import RestrictedPath
from mercer.solvers.spectral.fisher import (
    PATH,
    FisherResult,
    class_targets,
    require_spread,
    smallest_penalty,
    turned,
)


def restricted_fisher(
    features: Features,  # with an intercept
    codes: np.ndarray,  # (n,)
    n_classes: int,
    weight: np.ndarray,  # (n,) ≥ 0
    copies: np.ndarray,  # (n,)
    size: float,
    *,
    alpha: float | None = None,
    accuracy: Accuracy | None = None,
) -> tuple[FisherResult, RestrictedMinimum]:
    """The directions, and the minimum that W is; ``size`` is the largest k(x, x).

    alpha=None chooses α by the errors left out. ``accuracy`` is what is known of the rounding of K.
    """
    eps = float(np.finfo(features.K.dtype).eps)
    root = np.sqrt(weight)[:, None]
    Z = class_targets(codes, n_classes, weight)
    Y = np.divide(Z, root, out=np.zeros_like(Z), where=root > 0)
    path = RestrictedPath(features, Y, weight, copies)
    total, least = path.total, smallest_penalty(eps, size)
    require_spread(path.trace, path.trace, size, total, eps)
    alphas = errors = np.empty(0)
    if alpha is None:
        alphas = np.unique(np.maximum(path.trace / total * PATH, least))
        errors = path.scores(total * alphas).sum(axis=1)
        alpha = float(alphas[errors.argmin()])
    alpha = max(alpha, least)
    penalties = np.full(Y.shape[1], total * alpha)
    coef, intercept = path.solve(penalties)
    fitted, residual = path.left_out(penalties)
    own = root * (Y - fitted)
    w = path.rotated(penalties)
    theta, factor, ratios, kept = turned(own.T @ own + total * alpha * (w.T @ w), total)

    def functions(values: np.ndarray) -> np.ndarray:
        return ((values @ theta) * factor)[:, kept]

    result = FisherResult(
        coef=functions(coef),
        intercept=functions(intercept[None])[0],
        ratios=ratios,
        left_out=functions(Y - residual),
        fitted=functions(fitted),
        alpha=alpha,
        path=alphas,
        errors=errors,
        lowest=0.0,
    )
    return result, path.certified(total * alpha, Accuracy() if accuracy is None else accuracy)
