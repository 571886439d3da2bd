"""What ``mercer train`` prints: a summary for people, or one JSON object."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mercer.cli.screen import Screen
from mercer.data import points as data
from mercer.data.types import Points
from mercer.kernels.words import has_scales, in_words, scales, short_name, tells_apart
from mercer.tables import TableModel, Training
from mercer.tables.formats import equally_spaced
from mercer.tables.target import Goal
from mercer.verdict import Verdict, percent

_SPREAD = 5000  # rows that tell the spread of a column to about a hundredth: 1/√(2n)


def verdict_of(about: dict[str, Any]) -> Verdict:
    """The error of a model as its file keeps it; the report is given the same numbers.

    >>> about = {"task": "classification", "error": 0.04, "interval": [0.01, 0.08], "baseline": 0.6}
    >>> verdict_of(about | {"tested": 100}).sentence
    'Right on 96 of 100 rows never seen (96.0 %); the most frequent class alone would be right on 40.'
    """
    low, high = about["interval"]
    is_class = about["task"] == Goal.CLASSIFICATION
    return Verdict(is_class, about["error"], (low, high), about["baseline"], about.get("tested"))


def error_text(about: dict[str, Any]) -> str:
    """The error, its interval and what a constant would get.

    >>> error_text({"task": "classification", "error": 0.04, "interval": [0.01, 0.08], "baseline": 0.6})
    '4 % (95 % interval 1 % to 8 %; the most frequent class alone: 60.0 %)'
    """
    verdict = verdict_of(about)
    assert verdict.baseline is not None
    error, alone = verdict.shown(verdict.error), verdict.shown(verdict.baseline)
    if verdict.is_class:
        return f"{error} (95 % interval {verdict.span}; the most frequent class alone: {alone})"
    alone = f"the mean alone: {alone}"
    if verdict.baseline:
        alone += f", of which this is {percent(verdict.error / verdict.baseline)}"
    return f"{error} root mean square (95 % interval {verdict.span}; {alone})"


@dataclass(frozen=True)
class AtTraining:
    """The error that was found when a model was trained; its predictions are not kept."""

    error: float
    interval: tuple[float, float]
    baseline: float
    how: str
    #: how many rows it is of
    tested: int | None
    #: "groups" or "times", where these were kept apart
    apart: str = ""


def error_at_training(model: TableModel, X: Points, y: np.ndarray) -> AtTraining | None:
    """What the model's file says of its error, where X are the rows that it was trained on; else None.

    The rows are those where every point that the model keeps is among them, and their number is the same.
    """
    from mercer.reporting.case import Case

    about = model.about_
    if len(y) != about.get("rows") or about.get("baseline") is None:
        return None
    case = Case(model.as_pipeline(), X, y)
    if len(case.places) < len(model.estimator_.expansion_):
        return None
    low, high = about["interval"]
    return AtTraining(
        about["error"],
        (low, high),
        about["baseline"],
        about["error_from"],
        about.get("tested"),
        about.get("apart", {}).get("by", ""),
    )


def told_apart(model: TableModel, X: Points) -> str:
    """The columns of the table that tell rows apart most; empty where the kernel's scales do not say."""
    names, features = model.get_feature_names_out().tolist(), model.features_
    if features is None:  # a sparse matrix, whose columns are not of one spread
        return ""
    numbers = len(names) - len(features.objects_)
    if numbers == 0 or not has_scales(model.estimator_.kernel_):
        return ""
    n = data.n_points(X)
    some = X if n <= _SPREAD else data.take(X, equally_spaced(n, _SPREAD))
    spread = np.asarray(model.transform(some)[:, :numbers], dtype=np.float64).std(axis=0)
    return tells_apart(model.estimator_.kernel_, names[:numbers], spread=spread, sources=features.sources())


def show_training(
    training: Training, model: Path, report: Path | None, explain: bool, screen: Screen
) -> None:
    """The summary: the verdict first. The paths are of what was written."""
    if screen.as_json:
        screen.json(_facts(training, model, report, explain))
        return
    apart = told_apart(training.model, training.X)
    about, search = training.model.about_, training.model.estimator_
    classes = f", {len(np.unique(training.target.y))} classes" if about["task"] == Goal.CLASSIFICATION else ""
    inner = getattr(search, "model_", search)
    names = training.model.get_feature_names_out().tolist()
    kernel = about["kernel"] if explain else short_name(search.kernel_, names)
    pairs = [
        ("verdict", verdict_of(about).sentence),
        ("task", f"{about['task']} of {about['target']!r}{classes}"),
        ("data", f"{about['rows']:,} rows, {_columns(training)}"),
        ("kernel", f"{kernel}, chosen from {_count(len(search.trials_), 'trial')}"),
        *([("", f"tells rows apart most by {apart}")] if apart else []),
        ("learner", f"{_learner(inner, about['fitted'])}"),
        ("error", error_text(about)),
        ("", f"from {about['error_from']}"),
        ("time", f"{training.seconds:.1f} s"),
        ("model", str(model)),
        *([("report", str(report))] if report is not None else []),
    ]
    screen.facts(pairs)
    if explain:
        _explain(training, screen)


def _columns(training: Training) -> str:
    features = training.model.features_
    if features is None:
        return _count(training.model.n_features_in_, "sparse column")
    used = len(features.columns_) - len(features.left_out_)
    left = f" ({len(features.left_out_)} left out)" if features.left_out_ else ""
    return f"{_count(used, 'column')}{left} as {_count(len(features.get_feature_names_out()), 'feature')}"


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _learner(inner: Any, fitted: int) -> str:
    penalty = next(
        (f", {name} = {getattr(inner, name):.3g}" for name in ("C", "alpha") if _is_number(inner, name)), ""
    )
    stored = getattr(getattr(inner, "expansion_", None), "__len__", None)
    kept = f", of which {stored():,} are kept" if stored is not None and stored() < fitted else ""
    return f"{type(inner).__name__}{penalty}, fitted on {_count(fitted, 'row')}{kept}"


def _is_number(inner: Any, name: str) -> bool:
    return isinstance(getattr(inner, name, None), int | float | np.floating)


def _explain(training: Training, screen: Screen) -> None:
    """Why: what became of the columns, what was tried, and what the solver did."""
    features, search = training.model.features_, training.model.estimator_
    if features is not None:
        rows = [(name, features.kinds_[name], words) for name, words in features.describe().items()]
        screen.grid("\nColumns", ("column", "kind", "becomes"), rows)
    trials = sorted(search.trials_, key=lambda trial: (-trial.points, trial.score.error))
    tried = [
        (f"{t.score.error:.4g}", f"{t.points:,}", f"{t.seconds:.1f}", in_words(t.kernel)) for t in trials
    ]
    screen.grid("\nTrials, the best first", ("error", "points", "seconds", "kernel"), tried)
    report = getattr(search, "report_", None)
    if report is not None:
        print(f"\n{report}")


def _facts(training: Training, model: Path, report: Path | None, explain: bool) -> dict[str, Any]:
    search = training.model.estimator_
    facts = dict(training.model.about_)
    facts |= {
        "learner": type(getattr(search, "model_", search)).__name__,
        "trials": len(search.trials_),
        "seconds": round(training.seconds, 3),
        "model": str(model),
        "report": None if report is None else str(report),
        "notes": training.notes,
    }
    if training.target.task == Goal.CLASSIFICATION:
        facts["classes"] = np.unique(training.target.y).tolist()
    names = training.model.get_feature_names_out().tolist()
    facts["scales"] = {
        parameter: dict(zip(names, values.tolist(), strict=True))
        for parameter, values in scales(search.kernel_, len(names)).items()
    }
    if explain:
        features = training.model.features_
        facts["columns"] = {} if features is None else features.describe()
        facts["tried"] = [
            {"kernel": in_words(t.kernel), "error": t.score.error, "points": t.points, "seconds": t.seconds}
            for t in search.trials_
        ]
    return facts
