r"""An honest estimate of the error of a whole selection: it is done anew in every fold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv

from mercer import data

__all__ = ["NestedError", "nested_error"]


@dataclass(frozen=True, eq=False)
class NestedError:
    """What a selection is worth on points it never saw.

    ``error`` is the share of wrong labels, or the root of the mean squared error.
    """

    error: float
    #: in which the error lies with 95 % probability, by the points that were left out
    interval: tuple[float, float]
    #: of each fold
    errors: np.ndarray
    #: (n, …) the prediction of each point, from a model that did not see it
    predictions: np.ndarray

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.error:.4g}, 95 % interval {low:.4g} to {high:.4g}, from {len(self.errors)} folds"


def nested_error(estimator: Any, X: Any, y: Any, *, cv: Any = 5, groups: Any = None) -> NestedError:
    """Fit clones of the estimator, its search included, on all folds but one, and predict that one.

    >>> from mercer import KernelRidgeCV
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-3, 3, (60, 1))
    >>> print(nested_error(KernelRidgeCV(), x, np.sin(x[:, 0]) + 0.1 * rng.normal(size=60), cv=3))
    0.1..., 95 % interval 0.0... to 0.1..., from 3 folds
    """
    y = np.asarray(y)
    is_class = is_classifier(estimator)
    splitter = check_cv(cv, y, classifier=is_class)
    predictions, errors = np.empty(y.shape, y.dtype if is_class else np.float64), []
    for train, test in splitter.split(np.zeros(len(y)), y, groups):
        model = clone(estimator).fit(data.take(X, train), y[train])
        predictions[test] = model.predict(data.take(X, test))
        errors.append(_error(predictions[test], y[test], is_class))
    error = _error(predictions, y, is_class)
    if is_class:
        wrong, n = int((predictions != y).sum()), len(y)
        low = float(betaincinv(wrong, n - wrong + 1, 0.025)) if wrong else 0.0
        high = float(betaincinv(wrong + 1, n - wrong, 0.975)) if wrong < n else 1.0
    else:
        squares = ((predictions - y) ** 2).reshape(len(y), -1).mean(axis=1)
        margin = 1.96 * float(squares.std(ddof=1)) / np.sqrt(len(y))
        low, high = (float(np.sqrt(max(error**2 + side * margin, 0.0))) for side in (-1, 1))
    return NestedError(error, (low, high), np.array(errors), predictions)


def _error(predictions: np.ndarray, y: np.ndarray, is_class: bool) -> float:
    if is_class:
        return float(np.mean(predictions != y))
    return float(np.sqrt(np.mean((predictions - y) ** 2)))
