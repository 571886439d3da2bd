r"""An honest estimate of the error of a whole selection: it is done anew in every fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv, stdtrit
from sklearn.base import clone, is_classifier
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils.validation import has_fit_parameter

from mercer.cluster.trials import each
from mercer.data import points as data
from mercer.data.apart import Groups
from mercer.data.types import Model, Points, Targets
from mercer.errors import InputError


@dataclass(frozen=True, eq=False)
class NestedError:
    """What a selection is worth on points it never saw.

    ``error`` is the share of wrong labels, or the root of the mean squared error, over all predictions: a
    point that several folds test counts in each of them, one that none tests does not count.
    """

    error: float
    #: The error lies in this interval with 95 % probability, by the points that were left out.
    interval: tuple[float, float]
    #: the error of each fold
    errors: np.ndarray
    #: (m, …) the predictions, each from a model that did not see the point; in the order of y where the folds
    #: test each point once
    predictions: np.ndarray
    #: (m,) the points that they are of, in rising order: compare ``predictions`` with ``y[rows]``
    rows: np.ndarray

    def __str__(self) -> str:
        low, high = self.interval
        folds = f"{len(self.errors)} folds" if len(self.errors) > 1 else "one fold"
        return f"{self.error:.4g}, 95 % interval {low:.4g} to {high:.4g}, from {folds}"


def nested_error(estimator: Model, X: Points, y: Targets, *, cv: Any = 5, groups: Any = None) -> NestedError:
    """Fit clones of the estimator, its search included, on all folds but one, and predict that one.

    ``cv`` is what scikit-learn takes: a number of folds, a splitter, or pairs of positions to learn from and
    to test. X of an estimator with ``kernel="precomputed"`` is the matrix of all points with each other.
    ``groups`` go to the splitter, and to the ``fit`` of an estimator that takes them, as those that choose a
    kernel do: their own folds then keep the groups apart too.
    Where ``config(cluster=…)`` names a cluster, the folds are its tasks.

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
    splits = [(every[train], every[test]) for train, test in parts]  # Masks become positions.
    sizes = [len(test) for _, test in splits]
    if not sizes or min(sizes) == 0:
        raise InputError(f"every fold of cv must have points to test, got {sizes or 'no folds'}: pass others")
    told = groups if has_fit_parameter(estimator, "groups") else None
    found = each("fold", _predicted, (estimator, X, y, is_pairwise, told), splits)
    tests = [test for _, test in splits]
    clusters = None if groups is None else Groups.of(groups, len(y)).codes
    return judged(y, tests, found, is_class, clusters)


def _predicted(
    estimator: Model,
    X: Any,
    y: np.ndarray,
    is_pairwise: bool,
    groups: Any,
    split: tuple[np.ndarray, np.ndarray],
) -> np.ndarray:
    """What a clone that learned from the first part of a fold predicts for the second."""
    train, test = split
    known, new = data.take(X, train), data.take(X, test)
    if is_pairwise:
        known, new = data.columns(known, train), data.columns(new, train)
    told = {} if groups is None else {"groups": np.asarray(groups)[train]}
    return np.asarray(clone(estimator).fit(known, y[train], **told).predict(new))


def judged(
    y: np.ndarray,
    tests: Sequence[np.ndarray],
    predictions: Sequence[np.ndarray],
    is_class: bool,
    clusters: np.ndarray | None = None,  # (n,)
) -> NestedError:
    """The error over some folds: ``tests`` are the points of each, ``predictions`` what is told of them.

    ``clusters``, where errors on points of one are alike, are what the interval counts as independent.

    >>> judged(np.array([0, 1, 1, 0]), [np.array([2, 0]), np.array([1])], [[1, 1], [1]], True).errors
    array([0.5, 0. ])
    """
    found = [np.asarray(told).reshape(y[test].shape) for told, test in zip(predictions, tests, strict=True)]
    errors = [mistakes(told, y[test], is_class) for told, test in zip(found, tests, strict=True)]
    rows, joined = np.concatenate(tests), np.concatenate(found)
    order = np.argsort(rows, kind="stable")
    rows, joined = rows[order], joined[order]
    error = mistakes(joined, y[rows], is_class)
    if clusters is None:
        interval = _interval(error, joined, y, rows, is_class)
    else:
        interval = _interval_of_clusters(error, joined, y[rows], clusters[rows], is_class)
    return NestedError(error, interval, np.array(errors), joined, rows)


def _targets(X: Any, y: Targets, is_class: bool, is_pairwise: bool) -> np.ndarray:  # (n,) or (n, targets)
    """y as an array, that is of the same points as X."""
    targets, n = np.asarray(y), data.n_points(X)
    if is_class and targets.shape[1:] == (1,):
        targets = column_or_1d(targets, warn=True)
    if targets.ndim != 1 and (is_class or targets.ndim != 2):
        wanted = "one label for each point" if is_class else "one row of numbers for each point"
        raise InputError(f"y must hold {wanted}, got shape {targets.shape}: pass an array of shape ({n},)")
    if len(targets) != n:
        raise InputError(
            f"X and y must be of the same points, got {n} and {len(targets)}: pass one target for each point"
        )
    if is_pairwise and np.shape(X) != (n, n):
        raise InputError(
            f"kernel='precomputed' takes the kernel values of all points with each other, got shape "
            f"{np.shape(X)}: pass the square matrix, of which each fold gets its rows and columns"
        )
    return targets


def mistakes(predictions: Any, y: Targets, is_class: bool) -> float:
    """The share of wrong labels, or the root of the mean squared error.

    >>> mistakes([1, 0, 1, 1], [1, 1, 1, 1], True), mistakes([1.0, 3.0], [1.0, 1.0], False) ** 2
    (0.25, 2.0)
    """
    predictions, y = np.asarray(predictions), np.asarray(y)
    if is_class:
        return float(np.mean(predictions != y))
    return float(np.sqrt(np.mean((predictions - y) ** 2)))


def share_interval(hits: Any, total: Any) -> tuple[np.ndarray, np.ndarray]:
    """Clopper and Pearson's 95 % interval of a share, of hits among total: exact, and never too short.

    >>> low, high = share_interval(0, 10)
    >>> float(low), round(float(high), 4)
    (0.0, 0.3085)
    """
    hits, total = np.asarray(hits, dtype=np.float64), np.asarray(total, dtype=np.float64)
    rest = 0.025
    with np.errstate(invalid="ignore"):
        low = np.where(hits > 0, betaincinv(np.maximum(hits, 1e-9), total - hits + 1, rest), 0.0)
        high = np.where(hits < total, betaincinv(hits + 1, np.maximum(total - hits, 1e-9), 1 - rest), 1.0)
    return low, high


def _interval(
    error: float, predictions: np.ndarray, y: np.ndarray, rows: np.ndarray, is_class: bool
) -> tuple[float, float]:
    """The interval of the error, for as many points as the predictions are worth.

    Models of different folds are much alike, and wrong about the same points: a point that is tested m times
    tells hardly more than one that is tested once. If it told nothing more, the mean over all predictions
    would vary as that of (Σm)² / Σm² independent points: all that were tested where m is the same for
    all, else fewer. That number is taken, so that the interval is too long rather than too short.
    """
    times = np.unique(rows, return_counts=True)[1]
    points = times.sum() ** 2 / (times**2).sum()
    if is_class:
        low, high = share_interval(error * points, points)
        return float(low), float(high)
    squares = ((predictions - y[rows]) ** 2).reshape(len(rows), -1).mean(axis=1)
    if len(times) == 1:
        return 0.0, np.inf
    margin = float(stdtrit(points - 1, 0.975) * squares.std(ddof=1) / np.sqrt(points))  # by Student's t
    return _around(error, margin)


def _interval_of_clusters(
    error: float, predictions: np.ndarray, y: np.ndarray, clusters: np.ndarray, is_class: bool
) -> tuple[float, float]:
    """The interval of the error where G clusters are independent, and not the points in them.

    A mean e of n errors, with the sum s_g over the n_g points of a cluster, has about the variance
    G/(G - 1) Σ (s_g - n_g e)² / n². A share of wrong labels has the interval of as many independent points as
    would have this variance, of no more points than there are, and of G where it is zero.
    """
    n, codes = len(y), np.unique(clusters, return_inverse=True)[1]
    G, wrong = int(codes.max()) + 1, predictions != y
    if G == 1:
        return (0.0, 1.0) if is_class else (0.0, np.inf)
    errors = wrong if is_class else ((predictions - y) ** 2).reshape(n, -1).mean(axis=1)
    mean = float(np.mean(errors))
    off = np.bincount(codes, weights=errors) - mean * np.bincount(codes)
    variance = G / (G - 1) * float(off @ off) / n**2
    if is_class:
        points = min(mean * (1 - mean) / variance, n) if variance > 0 else G
        low, high = share_interval(error * points, points)
        return float(low), float(high)
    return _around(error, float(stdtrit(G - 1, 0.975) * np.sqrt(variance)))


def _around(error: float, margin: float) -> tuple[float, float]:
    """The roots of the ends of an interval about a mean square."""
    return float(np.sqrt(max(error**2 - margin, 0.0))), float(np.sqrt(error**2 + margin))
