"""The error of the whole way from a table to a model: on rows that none of its steps has seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mercer.kernels.words import short_name
from mercer.selection import nested, two_phase
from mercer.solvers.result import Stop
from mercer.tables.model import TableModel
from mercer.verdict import constant_error

_MUCH = 0.8  # below this part of the share of rows, a machine is said to be of fewer


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
    #: how many rows the error is of; None where it is one of all rows that was found with searches for some
    tested: int | None = None
    #: how the searches that were judged differ from the one that made the model, in words; empty if they
    #: do not
    differs: str = ""
    #: "groups" or "times", where folds kept these apart; else empty
    apart: str = ""


def judged(
    y: np.ndarray,
    tests: Sequence[np.ndarray],  # the rows of each fold
    predictions: Sequence[np.ndarray],  # what was predicted for them
    how: str,
    seen: np.ndarray,  # targets that a constant prediction is learned from
    differs: str = "",
    apart: str = "",
    clusters: np.ndarray | None = None,  # (n,)
) -> Honest:
    """The error over some folds, with its interval and what a constant would get; see `nested.judged`."""
    is_class = y.dtype.kind != "f"
    found = nested.judged(y, tests, predictions, is_class, clusters)
    baseline = constant_error(y[found.rows], seen, is_class)
    return Honest(
        found.error,
        found.interval,
        how,
        baseline,
        found.predictions,
        found.rows,
        len(found.rows),
        differs,
        apart,
    )


def corrected(y: np.ndarray, few: Honest, alone: np.ndarray) -> Honest:
    """The error of all rows, from that of a few and predictions of the machine alone (`two_phase`)."""
    is_class, rows = y.dtype.kind != "f", few.rows

    def losses(told: np.ndarray, true: np.ndarray) -> np.ndarray:
        return np.asarray((told != true) if is_class else (told - true) ** 2, dtype=np.float64)

    error, interval = two_phase.error_of(losses(alone, y), losses(few.predictions, y[rows]), rows, is_class)
    how = (
        f"the search again for {len(rows):,} rows, and its machine alone for all {len(y):,}, "
        "corrected by what it hides on those"
    )
    baseline = constant_error(y, y, is_class)
    return replace(few, error=error, interval=interval, how=how, baseline=baseline, tested=None)


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
