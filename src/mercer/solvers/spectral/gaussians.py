r"""Gaussians of classes in the space of a discriminant's projections, one covariance for all.

Given     the projections z of the training points, as fitted and as learned from the other points
Means     In each direction the means of what is left out are about a multiple of the means of what is
          fitted, less than 1. They are taken for that multiple, not as they are: a class of few points may
          lie on the wrong side without one of them. The multiple is no less than ½: such a direction has a
          covariance that says so.
Width     Projections have heavier tails than Gaussians: the covariance of what is left out is stretched by
          the factor that makes the labels most probable.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

#: the factors that are tried, by steps of √2
_STRETCHES = 2.0 ** np.arange(0, 10.5, 0.5)
#: the least variance in a direction, as a part of the largest
_NARROWEST = 1e-10


@dataclass(frozen=True, eq=False)
class ClassGaussians:
    """The Gaussians of all classes."""

    means: np.ndarray  # (classes, q)
    covariance: np.ndarray  # (q, q)
    precision: np.ndarray  # (q, q) its inverse


def linear_scores(values: np.ndarray, means: np.ndarray, precision: np.ndarray) -> np.ndarray:  # (n, classes)
    """⟨z, m⟩ - ½‖m‖² in the metric of the covariance: -½‖z - m‖², but for what all classes share."""
    weights = means @ precision
    return np.asarray(values @ weights.T - 0.5 * np.einsum("ij,ij->i", weights, means))


def class_gaussians(
    fitted: np.ndarray,  # (n, q)
    left_out: np.ndarray,  # (n, q)
    codes: np.ndarray,  # (n,)
    weight: np.ndarray,  # (n,) ≥ 0
    priors: np.ndarray,  # (classes,)
) -> ClassGaussians:
    """The mean of each class, contracted, and one covariance, of the points that were left out.

    >>> z = np.array([[-1.1], [-0.9], [0.9], [1.1]])
    >>> class_gaussians(z, z, np.array([0, 0, 1, 1]), np.ones(4), np.full(2, 0.5)).means.ravel()
    array([-1., 1.])
    """
    classes = len(priors)
    share = np.bincount(codes, weight, minlength=classes)
    means, honest = (np.zeros((classes, left_out.shape[1])) for _ in range(2))
    for sums, points in ((means, fitted), (honest, left_out)):
        np.add.at(sums, codes, weight[:, None] * points)
        sums /= np.where(share > 0, share, 1.0)[:, None]
    squares = share @ means**2
    multiple = np.divide(share @ (means * honest), squares, out=np.ones_like(squares), where=squares > 0)
    means = np.clip(multiple, 0.5, 1.0) * means
    residual = left_out - means[codes]
    covariance = (weight[:, None] * residual).T @ residual / weight.sum()
    scale, axes = np.linalg.eigh(covariance)
    scale = np.maximum(scale, _NARROWEST * scale[-1]) if scale[-1] > 0 else np.ones_like(scale)
    precision = (axes / scale) @ axes.T
    known = (weight > 0) & (priors[codes] > 0)
    linear, prior = linear_scores(left_out[known], means, precision), log_priors(priors)
    losses = []
    for stretch in _STRETCHES:
        scores = linear / stretch + prior
        mine = scores[np.arange(len(scores)), codes[known]]
        losses.append(float(weight[known] @ (logsumexp(scores, axis=1) - mine)))
    stretch = float(_STRETCHES[int(np.argmin(losses))])
    return ClassGaussians(means, stretch * covariance, precision / stretch)


def log_priors(priors: np.ndarray) -> np.ndarray:  # (classes,)
    """The logarithms; a prior of zero rules its class out."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(priors))
