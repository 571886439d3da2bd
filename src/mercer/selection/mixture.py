r"""Weights of kernels in a sum, learned by gradient steps on the exact errors left out.

Kernel ridge regression of the signs y = ±1 with K = Σₐ wₐ Kₐ + c and the penalty 1 has, with M = K + I,

    f₋ᵢ(xᵢ) = yᵢ - αᵢ / dᵢ,     α = M⁻¹y,   d = diag M⁻¹

as its values at points left out. What is minimised over the wₐ is the mean of log(1 + exp(-s yᵢ f₋ᵢ(xᵢ))),
s = 4, which counts errors, smoothly. With u = M⁻¹(∂L/∂α) the derivatives of all wₐ come from one matrix,

    ∂L/∂wₐ = Σᵢⱼ Gᵢⱼ (Kₐ)ᵢⱼ,     G = -u αᵀ - M⁻¹ diag(∂L/∂d) M⁻¹

The whole scale of the weights is learned too, since the penalty is fixed. Many points are cut into blocks,
of whose L the mean is taken: work is then in proportion to the number of points. To that is added a pull
of ln w to a prior, up to a factor: (r/n) Σₐ (ln wₐ/pₐ - mean)². It decides where the points do not: on few of
them, many weights leave no errors.

Cawley and Talbot, Fast exact leave-one-out cross-validation of sparse least-squares support vector
machines, Neural Networks 17 (2004), 1467-1475; Chapelle, Vapnik, Bousquet and Mukherjee, Choosing multiple
parameters for support vector machines, Machine Learning 46 (2002), 131-159.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import LinAlgError, lapack
from scipy.optimize import minimize
from scipy.special import expit

_STEEPNESS = 4.0  # s of the loss above
_CONSTANT_KERNEL = 10.0  # c, which stands for an intercept
_ITERATIONS = 12  # the minimiser takes so many: each inverts a matrix for every block of points
_LOG_WEIGHT_BOUNDS = (-5.0, 9.0)  # bounds on ln w: beyond them an aspect counts for nothing, or for all


def left_out_loss(
    parts: Sequence[np.ndarray],  # (n, n) each: Kₐ
    signs: np.ndarray,  # (n,) ±1
    logarithms: np.ndarray,  # (parts,) ln wₐ
) -> tuple[float, np.ndarray]:
    """L, and its derivatives by the logarithms of the weights.

    >>> K, y = np.array([[1.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 1.0]]), np.array([1.0, 1.0, -1.0])
    >>> value, slope = left_out_loss([K], y, np.zeros(1))
    >>> step = [left_out_loss([K], y, np.array([h]))[0] for h in (-1e-5, 1e-5)]
    >>> bool(abs((step[1] - step[0]) / 2e-5 - slope[0]) < 1e-8)
    True
    """
    n, weights = len(signs), np.exp(logarithms)
    M = np.full((n, n), _CONSTANT_KERNEL)
    for K, weight in zip(parts, weights, strict=True):
        M += weight * K
    M.flat[:: n + 1] += 1.0
    factor, failed = lapack.dpotrf(M.T, lower=1, overwrite_a=1)
    if failed:
        raise LinAlgError("K is not positive semidefinite")
    inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    inverse = np.tril(inverse)
    inverse += np.tril(inverse, -1).T
    alpha, d = inverse @ signs, np.diagonal(inverse)
    margin = 1.0 - signs * alpha / d  # yᵢ f₋ᵢ(xᵢ)
    value = float(np.logaddexp(0.0, -_STEEPNESS * margin).mean())
    by_margin = -_STEEPNESS * expit(-_STEEPNESS * margin) / n
    u = inverse @ (-by_margin * signs / d)
    G = -(inverse * (by_margin * signs * alpha / d**2)) @ inverse
    slopes = [np.einsum("ij,ij->", G, K) - u @ (K @ alpha) for K in parts]
    return value, weights * np.array(slopes)


def learn_weights(
    blocks: Sequence[tuple[Sequence[np.ndarray], np.ndarray]],  # for each block of points: its Kₐ, and signs
    prior: np.ndarray | None = None,  # (parts,), equal weights where it is None
    *,
    pull: float = 0.1,  # how strongly ln w is pulled to the prior
) -> np.ndarray:  # (parts,)
    """The weights where the errors left out are fewest, smoothly counted; their sum is 1.

    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([1.0, -1.0], 100)
    >>> x, noise = y + rng.normal(size=200), rng.normal(size=200)
    >>> kernels = [np.exp(-(np.subtract.outer(v, v) ** 2)) for v in (x, noise)]
    >>> bool(learn_weights([(kernels, y)])[0] > 0.7)
    True
    """
    count, points = len(blocks[0][0]), sum(len(signs) for _, signs in blocks)
    prior = np.ones(count) if prior is None else np.asarray(prior, dtype=np.float64)
    start = np.log(100.0 * prior / prior.sum())

    def objective(at: np.ndarray) -> tuple[float, np.ndarray]:
        away = at - start - (at - start).mean()
        value, slope = pull / points * float(away @ away), 2 * pull / points * away
        for parts, signs in blocks:
            one, its = left_out_loss(parts, signs, at)
            value, slope = value + one / len(blocks), slope + its / len(blocks)
        return value, slope

    found = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[_LOG_WEIGHT_BOUNDS] * count,
        options={"maxiter": _ITERATIONS},
    )
    weights = np.exp(found.x)
    return np.asarray(weights / weights.sum())
