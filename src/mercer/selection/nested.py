r"""An honest estimate of the error of a whole selection: it is done anew in every fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv, stdtrit
from sklearn.base import clone, is_classifier
from sklearn.utils import column_or_1d, get_tags

from mercer.data import points as data
from mercer.errors import InputError

__all__ = ["NestedError", "judged", "nested_error"]


@dataclass(frozen=True, eq=False)
class NestedError:
    """What a selection is worth on points it never saw.

    ``error`` is the share of wrong labels, or the root of the mean squared error, over all predictions: a
    point that several folds test counts in each of them, one that none tests does not count.
    """

    error: float
    #: in which the error lies with 95 % probability, by the points that were left out
    interval: tuple[float, float]
    #: of each fold
    errors: np.ndarray
    #: (m, …) the predictions, from models that did not see the point; where the folds test each point once,
    #: in the order of y
    predictions: np.ndarray
    #: (m,) of which points they are, in rising order: ``predictions`` are to be compared with ``y[rows]``
    rows: np.ndarray

    def __str__(self) -> str:
        low, high = self.interval
        folds = f"{len(self.errors)} folds" if len(self.errors) > 1 else "one fold"
        return f"{self.error:.4g}, 95 % interval {low:.4g} to {high:.4g}, from {folds}"


def nested_error(estimator: Any, X: Any, y: Any, *, cv: Any = 5, groups: Any = None) -> NestedError:
    """Fit clones of the estimator, its search included, on all folds but one, and predict that one.

    ``cv`` is what scikit-learn takes: a number of folds, a splitter, or pairs of positions to learn from and
    to test. X of an estimator with ``kernel="precomputed"`` is the matrix of all points with each other.

    >>> from mercer import KernelRidgeCV
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-3, 3, (60, 1))
    >>> print(nested_error(KernelRidgeCV(), x, np.sin(x[:, 0]) + 0.1 * rng.normal(size=60), cv=3))
    0.1..., 95 % interval 0.0... to 0.1..., from 3 folds
    """
    from sklearn.model_selection import check_cv

    is_class, is_pairwise = is_classifier(estimator), get_tags(estimator).input_tags.pairwise
    y = _targets(X, y, is_class, is_pairwise)
    every = np.arange(len(y))
    parts = check_cv(cv, y, classifier=is_class).split(np.zeros(len(y)), y, groups)
    splits = [(every[train], every[test]) for train, test in parts]  # positions, where masks were given
    sizes = [len(test) for _, test in splits]
    if not sizes or min(sizes) == 0:
        raise InputError(f"every fold of cv must have points to test, got {sizes or 'no folds'}: pass others")
    found = []
    for train, test in splits:
        known, new = data.take(X, train), data.take(X, test)
        if is_pairwise:
            known, new = data.columns(known, train), data.columns(new, train)
        found.append(np.asarray(clone(estimator).fit(known, y[train]).predict(new)))
    return judged(y, [test for _, test in splits], found, is_class)


def judged(
    y: np.ndarray, tests: Sequence[np.ndarray], predictions: Sequence[np.ndarray], is_class: bool
) -> NestedError:
    """The error over some folds: ``tests`` are the points of each, ``predictions`` what is told of them.

    >>> judged(np.array([0, 1, 1, 0]), [np.array([2, 0]), np.array([1])], [[1, 1], [1]], True).errors
    array([0.5, 0. ])
    """
    found = [np.asarray(told).reshape(y[test].shape) for told, test in zip(predictions, tests, strict=True)]
    errors = [_error(told, y[test], is_class) for told, test in zip(found, tests, strict=True)]
    rows, joined = np.concatenate(tests), np.concatenate(found)
    order = np.argsort(rows, kind="stable")
    rows, joined = rows[order], joined[order]
    error = _error(joined, y[rows], is_class)
    return NestedError(error, _interval(error, joined, y, rows, is_class), np.array(errors), joined, rows)


def _targets(X: Any, y: Any, is_class: bool, is_pairwise: bool) -> np.ndarray:  # (n,) or (n, targets)
    """y as an array, that is of the same points as X."""
    y, n = np.asarray(y), data.n_points(X)
    if is_class and y.shape[1:] == (1,):
        y = column_or_1d(y, warn=True)
    if y.ndim != 1 and (is_class or y.ndim != 2):
        wanted = "one label for each point" if is_class else "one row of numbers for each point"
        raise InputError(f"y must hold {wanted}, got shape {y.shape}: pass an array of shape ({n},)")
    if len(y) != n:
        raise InputError(
            f"X and y must be of the same points, got {n} and {len(y)}: pass one target for each point"
        )
    if is_pairwise and np.shape(X) != (n, n):
        raise InputError(
            f"kernel='precomputed' takes the kernel values of all points with each other, got shape "
            f"{np.shape(X)}: pass the square matrix, of which each fold gets its rows and columns"
        )
    return y


def _error(predictions: np.ndarray, y: np.ndarray, is_class: bool) -> float:
    if is_class:
        return float(np.mean(predictions != y))
    return float(np.sqrt(np.mean((predictions - y) ** 2)))


def _interval(
    error: float, predictions: np.ndarray, y: np.ndarray, rows: np.ndarray, is_class: bool
) -> tuple[float, float]:
    """By as many points as the predictions are worth.

    Models of different folds are much alike, and wrong about the same points: a point that is tested m times
    tells hardly more than one that is tested once. If it told nothing more, the mean over all predictions
    would vary as that of (Σm)² / Σm² independent points: all that were tested where m is the same for
    all, else fewer. That number is taken, so that the interval is too long rather than too short.
    """
    times = np.unique(rows, return_counts=True)[1]
    points = times.sum() ** 2 / (times**2).sum()
    if is_class:  # Clopper and Pearson
        wrong = error * points
        low = float(betaincinv(wrong, points - wrong + 1, 0.025)) if error > 0 else 0.0
        high = float(betaincinv(wrong + 1, points - wrong, 0.975)) if error < 1 else 1.0
        return low, high
    squares = ((predictions - y[rows]) ** 2).reshape(len(rows), -1).mean(axis=1)
    if len(times) == 1:
        return 0.0, np.inf
    margin = float(stdtrit(points - 1, 0.975) * squares.std(ddof=1) / np.sqrt(points))  # Student's t
    return float(np.sqrt(max(error**2 - margin, 0.0))), float(np.sqrt(error**2 + margin))
