r"""What a report is asked for: refused before the work where no report can be made of it."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from mercer.data import points as data
from mercer.data.types import Model, Points, Targets
from mercer.errors import InputError
from mercer.plots.learned import FittedModel, learned
from mercer.plots.trials import tried


def as_targets(model: Model, X: Points, y: Targets) -> np.ndarray:  # (n, …)
    """The targets of X, zeros where there are none; model and data must fit together."""
    found = learned(model)
    try:
        n = data.n_points(X)
    except TypeError:
        raise InputError(f"X must be points, one per target, got {type(X).__name__}: pass the data") from None
    if n == 0:
        raise InputError("X has no points: a report needs the data that the model was fitted to")
    targets: np.ndarray = np.zeros(n) if y is None else np.asarray(y)
    if targets.ndim == 2 and targets.shape[1] == 1:
        targets = targets[:, 0]
    if targets.ndim == 0 or len(targets) != n:
        raise InputError(f"y must have one entry per point ({n}), got shape {targets.shape}")
    if found.is_classifier:
        _check_labels(found, targets)
    elif found.is_regressor:
        targets = _as_numbers(targets)
    _check_points(model, X)
    return targets


def _check_labels(found: FittedModel, labels: np.ndarray) -> None:
    assert found.classes is not None
    if labels.ndim != 1 or not np.isin(labels, found.classes).any():
        got, known = (", ".join(map(repr, values[:3].tolist())) for values in (labels, found.classes))
        raise InputError(
            f"y holds none of the labels that the model knows: got {got}, …, it knows {known}, …: pass the "
            "labels as they were when it was fitted"
        )


def _as_numbers(targets: np.ndarray) -> np.ndarray:
    try:
        numbers = targets.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"y must be numbers for a regression, got {targets[:3].tolist()!r}") from None
    if not np.isfinite(numbers).all():
        missing = int(np.count_nonzero(~np.isfinite(numbers).reshape(len(numbers), -1).all(axis=1)))
        raise InputError(
            f"y must be finite, got NaN or infinity for {missing} points: leave these points out"
        )
    return numbers


def _check_points(model: Model, X: Points) -> None:
    """Refuse points that the model does not take; a few of them tell."""
    action = getattr(model, "predict", None) or getattr(model, "transform", None)
    if action is not None:
        try:
            action(data.take(X, np.arange(min(data.n_points(X), 2))))
        except (TypeError, ValueError) as error:
            raise InputError(f"the model does not take these points: {error}") from None


def as_features(features: Any, X: Points) -> tuple[str, ...] | None:
    """Names of the columns of X."""
    if features is None:
        return None
    names, width = tuple(map(str, features)), data.n_columns(X)
    if width is not None and len(names) != width:
        raise InputError(f"features must name the {width} columns of X, got {len(names)} names")
    return names


def check_trials(trials: Any) -> None:
    """Refuse what no search has tried."""
    if trials is not None:
        tried(trials)


def check_error(error: Any) -> None:
    """Refuse what is no error: neither a number, nor a pair with its interval, nor an evaluation.

    >>> check_error("small")
    Traceback (most recent call last):
    mercer.errors.InputError: error must be a number, a number and its interval, or nested_error(…), ...
    """
    if error is None:
        return
    value, limits = getattr(error, "error", error), getattr(error, "interval", None)
    if isinstance(value, tuple | list) and len(value) == 2:
        value, limits = value
    numbers = [value] if limits is None else [value, *np.ravel(limits).tolist()]
    are_numbers = all(isinstance(v, Real) and not np.isnan(float(v)) for v in numbers)
    if len(numbers) in (1, 3) and are_numbers and np.isfinite(float(value)):  # one point has no upper limit
        return
    raise InputError(
        f"error must be a number, a number and its interval, or nested_error(…), got {error!r:.100}"
    )
