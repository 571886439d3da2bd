"""The error of the whole way from a table to a model: on rows that none of its steps has seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit
from sklearn.utils import get_tags

from mercer import data
from mercer.selection.nested import NestedError, nested_error
from mercer.tables.model import TableModel
from mercer.verdict import constant_error

__all__ = ["Honest", "by_folds", "by_held_out", "refitted"]


@dataclass(frozen=True, eq=False)
class Honest:
    """An error with its interval: the share of wrong labels, or the root of the mean squared error."""

    error: float
    interval: tuple[float, float]
    #: where it comes from, in words
    how: str
    #: the error of the most frequent class, or of the mean
    baseline: float
    #: (m,) predictions of rows that were left out
    predictions: np.ndarray
    #: (m,) which rows these are
    rows: np.ndarray


class _Known:
    """Predictions made already, as an estimator that `nested_error` can judge; X are their positions."""

    def __init__(self, model: TableModel, predictions: np.ndarray) -> None:
        self.model, self.predictions = model, predictions

    def __sklearn_clone__(self) -> _Known:
        return self

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.model)

    def fit(self, positions: np.ndarray, y: np.ndarray) -> _Known:
        return self

    def predict(self, positions: np.ndarray) -> np.ndarray:
        return self.predictions[positions]


def by_folds(
    model: TableModel,
    X: Any,
    y: np.ndarray,
    folds: int,
    seed: int,
    end: float = np.inf,
    tell: Callable[[str], None] = lambda text: None,
) -> Honest:
    """Everything again in each fold; from the time ``end`` on with the folds that are done, one at least."""
    kind = StratifiedKFold if is_classifier(model) else KFold
    predictions = np.empty(len(y), y.dtype if is_classifier(model) else np.float64)
    done: list[np.ndarray] = []
    took = 0.0
    for train, test in kind(folds, shuffle=True, random_state=seed).split(np.zeros(len(y)), y):
        began = monotonic()
        if done and began + took > end:
            break
        tell(f"estimating the error: the search again without fold {len(done) + 1} of {folds}")
        fitted = clone(model).fit(data.take(X, train), y[train])
        predictions[test] = fitted.predict(data.take(X, test))
        done.append(test)
        took = monotonic() - began
    rows = np.sort(np.concatenate(done))
    parts = [np.flatnonzero(np.isin(rows, test)) for test in done]
    found = nested_error(
        _Known(model, predictions[rows]), np.arange(len(rows)), y[rows], cv=[(part, part) for part in parts]
    )
    if len(done) == folds:
        how = f"{folds} folds, with the search done again in each"
    else:
        how = f"{len(done)} of {folds} folds, {len(rows):,} rows: time was short; "
        how += "the search was done again in each"
    return _honest(found, how, y[rows], rows, y)


def by_held_out(model: TableModel, X: Any, y: np.ndarray, seed: int) -> tuple[TableModel, Honest, float]:
    """The model of nine tenths of the rows, its error on the last, and the seconds of its last fit."""
    if is_classifier(model) and _every_class_in_both(y):
        splitter: Any = StratifiedShuffleSplit(1, test_size=0.1, random_state=seed)
    else:
        splitter = ShuffleSplit(1, test_size=0.1, random_state=seed)
    ((train, test),) = splitter.split(np.zeros(len(y)), y)
    began = monotonic()
    fitted = clone(model).fit(data.take(X, train), y[train])
    seconds = monotonic() - began
    inner = getattr(fitted.estimator_, "model_", None)
    last = getattr(getattr(inner, "report_", None), "time", seconds) * _growth(inner, len(train), len(y))
    every = np.arange(len(test))
    known = _Known(model, fitted.predict(data.take(X, test)))
    found = nested_error(known, every, y[test], cv=[(every, every)])
    how = f"a tenth of the rows, {len(test):,}, that the search did not see"
    return fitted, _honest(found, how, y[test], test, y[train]), float(last)


def _growth(inner: Any, given: int, n: int) -> float:
    """How many times longer a fit on all rows takes, if this one had no room for those that it was given."""
    used = len(inner.expansion_) if hasattr(inner, "alpha") and hasattr(inner, "expansion_") else given
    return (n / used) ** 3 if used < given else 1.0


def _every_class_in_both(y: np.ndarray) -> bool:
    sizes = np.unique(y, return_counts=True)[1]
    return bool(sizes.min() >= 2 and len(y) >= 10 * len(sizes))


def _honest(found: NestedError, how: str, y: np.ndarray, rows: np.ndarray, seen: np.ndarray) -> Honest:
    """With what a constant prediction, learned from ``seen``, gets wrong."""
    baseline = constant_error(y, seen, is_class=seen.dtype.kind != "f")
    return Honest(found.error, found.interval, how, baseline, found.predictions, rows)


def refitted(model: TableModel, X: Any, y: np.ndarray) -> TableModel:
    """The same features, kernel and penalty on all rows; the error on what was held out stays honest."""
    search = model.estimator_
    inner = clone(search.model_).fit(model.transform(X), y)
    search.model_, search.kernel_ = inner, inner.kernel_
    for name in ("expansion_", "report_", "classes_"):
        if hasattr(inner, name):
            setattr(search, name, getattr(inner, name))
    return model
