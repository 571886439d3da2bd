"""The error of the whole way from a table to a model: on rows that none of its steps has seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import get_tags

from mercer.kernels.words import short_name
from mercer.selection.nested import NestedError, nested_error
from mercer.solvers.result import Stop
from mercer.tables.model import TableModel
from mercer.verdict import constant_error

__all__ = ["Effort", "Honest", "difference", "judged"]

_MUCH = 0.8  # of the share of rows, below which a machine is told to be of fewer


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
    #: how the searches that were judged differ from the one that made the model, in words; empty if they
    #: do not
    differs: str = ""


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


def judged(
    model: TableModel,
    y: np.ndarray,
    tests: Sequence[np.ndarray],  # the rows of each fold
    predictions: Sequence[np.ndarray],  # and what was predicted for them
    how: str,
    seen: np.ndarray,  # targets that a constant prediction is learned from
    differs: str = "",
) -> Honest:
    """The error over some folds, with its interval and what a constant would get."""
    rows = np.concatenate(tests)
    order = np.argsort(rows, kind="stable")
    told, rows = np.concatenate(predictions)[order], rows[order]
    parts = [np.flatnonzero(np.isin(rows, test)) for test in tests]
    found = nested_error(
        _Known(model, told), np.arange(len(rows)), y[rows], cv=[(part, part) for part in parts]
    )
    return _honest(found, how, y[rows], rows, seen, differs)


def _honest(
    found: NestedError, how: str, y: np.ndarray, rows: np.ndarray, seen: np.ndarray, differs: str
) -> Honest:
    """With what a constant prediction, learned from ``seen``, gets wrong."""
    baseline = constant_error(y, seen, is_class=seen.dtype.kind != "f")
    return Honest(found.error, found.interval, how, baseline, found.predictions, rows, differs)


# --- what a search has done --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Effort:
    """How far a search came."""

    #: kernels that were tried
    trials: int
    #: points of the largest trial
    points: int
    #: whether it ended by itself, and not because the time was over
    is_whole: bool
    #: the kernel that won, by its short name
    kernel: str
    #: rows that it was given
    rows: int
    #: rows that the machine was fitted on
    fitted: int

    @classmethod
    def of(cls, model: TableModel, rows: int) -> Effort:
        search = model.estimator_
        report = getattr(search, "search_report_", None) or search.report_
        return cls(
            len(search.trials_),
            max(trial.points for trial in search.trials_),
            report.stopped != Stop.MAX_TIME,
            short_name(search.kernel_),
            rows,
            fitted_points(model, rows),
        )

    def tried_less(self, other: Effort) -> bool:
        """Whether it was cut short where the other was not, or sooner."""
        if self.is_whole:
            return False
        fewer = self.points < _MUCH * min(other.points, self.rows)
        return other.is_whole or fewer or self.trials < other.trials


def fitted_points(model: TableModel, given: int) -> int:
    """How many of the rows that it was given the machine of a model was fitted on."""
    report = getattr(getattr(model.estimator_, "model_", None), "report_", None)
    return min(given, int(getattr(getattr(report, "plan", None), "points", given)))


def difference(of_model: Effort, of_folds: Sequence[Effort]) -> str:
    """How the searches that were judged differ from that of the model because of the time, in words.

    >>> whole = Effort(10, 1000, True, "Gaussian", 4000, 4000)
    >>> cut = Effort(2, 300, False, "Matern 1.5", 4000, 4000)
    >>> difference(whole, [whole]), difference(cut, [cut])
    ('', '')
    >>> difference(whole, [cut])
    "time ended the search that was judged after 2 kernels on 300 points (the model's: 10 on 1,000): it ...
    """
    words = []
    least = min(of_folds, key=lambda effort: (effort.points, effort.trials))
    for one, other, name, others, how in (
        (least, of_model, "the search that was judged", "the model's", "better"),
        (of_model, least, "the model's search", "the one that was judged", "worse"),
    ):
        if one.tried_less(other):
            words.append(
                f"time ended {name} after {_count(one.trials)} on {one.points:,} points ({others}: "
                f"{other.trials} on {other.points:,}){_other(one, other)}; the model may be {how} than this "
                "error says"
            )
    parts = float(np.mean([effort.fitted / effort.rows for effort in of_folds]))
    part = of_model.fitted / of_model.rows
    if min(parts, part) < _MUCH * max(parts, part):
        words.append(
            f"the machines that were judged are of {parts:.0%} of their rows, the model's is of {part:.0%}"
        )
    return "; ".join(words)


def _other(one: Effort, other: Effort) -> str:
    return "" if one.kernel == other.kernel else f": it chose {one.kernel}, the other {other.kernel}"


def _count(trials: int) -> str:
    return f"{trials:,} kernel{'' if trials == 1 else 's'}"
