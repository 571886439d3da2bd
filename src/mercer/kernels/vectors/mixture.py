r"""The conditional-expectation kernel: two points are similar when the same component explains both."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.data.scalars import is_number
from mercer.data.types import Points
from mercer.errors import InputError, shown, warn_user
from mercer.kernels.base import Kernel
from mercer.kernels.domain import Domain
from mercer.kernels.formula.expression import Expression
from mercer.kernels.formula.pair import Mapping, Pair
from mercer.kernels.parameters import choice, fixed, is_vector, text

_FAR_FROM_ONE = np.log(1e16)  # Smaller values are below the rounding of 1 in floats.


class ConditionalExpectation(Kernel):
    r"""``k(x, x') = E_c[p(x|c) p(x'|c)] = Σ_c P(c) p(x|c) p(x'|c)``.

    ``mixture`` is a fitted mixture (``weights_``, ``means_``, ``covariances_`` as of
    scikit-learn's GaussianMixture), or a function X ↦ p(x|c) giving one column per component, or
    X ↦ log p(x|c) where ``log=True``; ``weights`` are then the P(c), equal when not given.

    Densities in many dimensions are tiny or huge: of 64 columns, k may be 10⁻⁹⁶ everywhere, which a learner
    cannot tell from 0. What can be told apart is in the ratios, and ``.normalized()``, which is
    k(x, x')/√(k(x, x) k(x', x')), is computed from logarithms, without any rounding to 0 on the way.

    >>> k = ConditionalExpectation(lambda X: np.hstack([np.exp(-(X**2)), np.exp(-((X - 3) ** 2))]))
    >>> k([[0.0], [3.0]]).round(4)
    array([[5.e-01, 1.e-04],
           [1.e-04, 5.e-01]])
    >>> far = ConditionalExpectation(lambda X: np.hstack([-(X**2), -((X - 3) ** 2)]), log=True).normalized()
    >>> far([[100.0]], [[100.0], [-100.0]]).round(4)
    array([[1., 0.]])
    """

    domain = Domain.ANY
    lemma = "the inner product of the features √P(c) p(x|c), or of these divided by their length"
    mixture: Any = fixed(
        None,
        "a fitted mixture or a function",
        lambda v: callable(v) or hasattr(v, "weights_"),
        "e.g. GaussianMixture(3).fit(X), or a function X ↦ p(x|c)",
    )
    weights: Any = fixed(None, optional=True)
    log: bool = choice(False, (False, True))
    normalize: bool = choice(False, (False, True))

    def check(self) -> None:
        given = () if self.weights is None else self.weights
        if not (is_vector(given) and all(is_number(w) and w >= 0 for w in given)):
            raise InputError(f"weights must be a list of numbers that are zero or more, got {shown(given)}")

    def __repr__(self) -> str:
        given = {n: v for n, v in self.get_params(deep=False).items() if v is not None and v is not False}
        return f"ConditionalExpectation({', '.join(f'{n}={text(v)}' for n, v in given.items())})"

    def normalized(self) -> Kernel:
        """k(x, x') / √(k(x, x) k(x', x')), from logarithms."""
        return ConditionalExpectation(self.mixture, self.weights, self.log, normalize=True)

    def features(self, X: Points) -> np.ndarray:  # (n, components)
        """√P(c) p(x|c), or the same divided by its length."""
        logs = self._log_features(X)
        if not self.normalize:
            features = np.exp(logs)
            _warn_of_scale(logs)
            return features
        largest = logs.max(axis=1, keepdims=True)
        # All are at most 1, and one of them is 1.
        ratios = np.exp(logs - np.where(np.isfinite(largest), largest, 0.0))
        return ratios / np.maximum(np.linalg.norm(ratios, axis=1, keepdims=True), 1.0)

    def _log_features(self, X: Points) -> np.ndarray:  # (n, components)
        """log √P(c) p(x|c), -inf for 0."""
        given = np.asarray(self.mixture(np.asarray(X)), dtype=float) if callable(self.mixture) else None
        with np.errstate(divide="ignore", invalid="ignore"):
            if given is None:
                logs = _log_densities(self.mixture, np.asarray(X, dtype=float))
            else:
                logs = given if self.log else np.log(given)
        # NaN is the logarithm of p < 0.
        if logs.ndim != 2 or len(logs) != len(np.asarray(X)) or not (logs < np.inf).all():
            raise InputError(
                f"log p(x|c) must be an array of numbers with one row per point, got shape {logs.shape}"
                if self.log
                else f"p(x|c) must be a non-negative array with one row per point, got shape {logs.shape}"
            )
        with np.errstate(divide="ignore"):
            return np.asarray(logs + 0.5 * np.log(self._prior(logs.shape[1])))

    def _prior(self, components: int) -> np.ndarray:
        weights = self.weights if self.weights is not None else getattr(self.mixture, "weights_", None)
        if weights is None:
            return np.full(components, 1 / components)
        prior = np.asarray(weights, dtype=float)
        if prior.shape != (components,):
            raise InputError(f"weights must have one entry per component: {components}, got {prior.shape[0]}")
        return prior

    def expression(self, pair: Pair | None = None) -> Expression:
        return (pair or Pair()).through(Mapping(self.features)).dot


def _warn_of_scale(logs: np.ndarray) -> None:
    """Say so where all values of k are lost beside penalties and tolerances, which are near 1."""
    largest = 2 * float(logs.max(initial=-np.inf))  # log k(x, x) of the densest point, up to a few components
    if abs(largest) > _FAR_FROM_ONE and np.isfinite(largest):
        warn_user(
            f"the largest k(x, x) of ConditionalExpectation is about 10^{largest / np.log(10):.0f}: "
            "densities in many dimensions are tiny or huge, and a learner cannot use them as they are; take "
            ".normalized(), which is computed from logarithms, or rescale the columns",
            UserWarning,
        )


def _log_densities(mixture: Any, X: np.ndarray) -> np.ndarray:  # (n, components)
    """log p(x|c) of a fitted Gaussian mixture, from its means and covariances alone."""
    from scipy.stats import multivariate_normal

    columns = []
    for c, mean in enumerate(mixture.means_):
        stored = mixture.covariances_ if mixture.covariance_type == "tied" else mixture.covariances_[c]
        # A covariance is a full matrix, a diagonal, or one variance for all directions.
        covariance = stored if np.ndim(stored) == 2 else np.diag(np.broadcast_to(stored, X.shape[1:]))
        columns.append(np.atleast_1d(multivariate_normal(mean, covariance, allow_singular=True).logpdf(X)))
    return np.column_stack(columns)
