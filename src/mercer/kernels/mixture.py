r"""The conditional-expectation kernel: two points are similar when the same component explains both."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.kernels.expression import Expression
from mercer.kernels.pair import Mapping, Pair
from mercer.kernels.parameters import fixed

__all__ = ["ConditionalExpectation"]


class ConditionalExpectation(Kernel):
    r"""``k(x, x') = E_c[p(x|c) p(x'|c)] = Σ_c P(c) p(x|c) p(x'|c)``.

    ``mixture`` is a fitted mixture (``weights_``, ``means_``, ``covariances_`` as of
    scikit-learn's GaussianMixture), or a function X ↦ p(x|c) giving one column per component;
    ``weights`` are then the P(c), equal when not given.

    >>> k = ConditionalExpectation(lambda X: np.hstack([np.exp(-(X**2)), np.exp(-((X - 3) ** 2))]))
    >>> k([[0.0], [3.0]]).round(4)
    array([[5.e-01, 1.e-04],
           [1.e-04, 5.e-01]])
    """

    domain = "any"
    lemma = "the inner product of the features √P(c) p(x|c)"
    mixture: Any = fixed(
        None,
        "a fitted mixture or a function",
        lambda v: callable(v) or hasattr(v, "weights_"),
        "e.g. GaussianMixture(3).fit(X), or a function X ↦ p(x|c)",
    )
    weights: Any = fixed(None, optional=True)

    def check(self) -> None:
        if self.weights is not None:
            weights = np.asarray(self.weights, dtype=float)
            if weights.ndim != 1 or not np.all(weights >= 0) or not np.isfinite(weights).all():
                raise InputError(
                    f"weights must be a list of numbers that are zero or more, got {self.weights!r}"
                )

    def features(self, X: Any) -> np.ndarray:  # (n, components)
        """√P(c) p(x|c)."""
        if callable(self.mixture):
            density = np.asarray(self.mixture(np.asarray(X)), dtype=float)
        else:
            density = np.exp(_log_densities(self.mixture, np.asarray(X, dtype=float)))
        if density.ndim != 2 or len(density) != len(np.asarray(X)) or np.any(density < 0):
            raise InputError(
                f"p(x|c) must be a non-negative array with one row per point, got shape {density.shape}"
            )
        weights = self.weights if self.weights is not None else getattr(self.mixture, "weights_", None)
        prior = (
            np.full(density.shape[1], 1 / density.shape[1])
            if weights is None
            else np.asarray(weights, dtype=float)
        )
        if prior.shape != (density.shape[1],):
            raise InputError(
                f"weights must have one entry per component: {density.shape[1]}, got {prior.shape[0]}"
            )
        return density * np.sqrt(prior)

    def expression(self, pair: Pair | None = None) -> Expression:
        return (pair or Pair()).through(Mapping(self.features)).dot


def _log_densities(mixture: Any, X: np.ndarray) -> np.ndarray:  # (n, components)
    """log p(x|c) of a fitted Gaussian mixture, from its means and covariances alone."""
    from scipy.stats import multivariate_normal

    columns = []
    for c, mean in enumerate(mixture.means_):
        stored = mixture.covariances_ if mixture.covariance_type == "tied" else mixture.covariances_[c]
        # a full matrix, a diagonal, or one variance for all directions
        covariance = stored if np.ndim(stored) == 2 else np.diag(np.broadcast_to(stored, X.shape[1:]))
        columns.append(np.atleast_1d(multivariate_normal(mean, covariance, allow_singular=True).logpdf(X)))
    return np.column_stack(columns)
