"""What ``mercer train`` prints: a summary for people, or one JSON object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.cli.screen import Screen, percent
from mercer.kernels.words import in_words, scales, tells_apart

if TYPE_CHECKING:
    from mercer.cli.train import Training

__all__ = ["error_text", "show_training"]

_SHOWN = 160  # characters of a kernel in the summary; --explain shows all


def error_text(about: dict[str, Any]) -> str:
    """The error, its interval and what a constant would get.

    >>> error_text({"task": "classification", "error": 0.04, "interval": [0.01, 0.08], "baseline": 0.6})
    '4 % (95 % interval 1 % to 8 %; the most frequent class alone: 60.0 %)'
    """
    low, high = about["interval"]
    if about["task"] == "classification":
        return (
            f"{percent(about['error'])} (95 % interval {percent(low)} to {percent(high)}; the most frequent "
            f"class alone: {percent(about['baseline'])})"
        )
    alone = f"the mean alone: {about['baseline']:.4g}"
    if about["baseline"]:
        alone += f", of which this is {percent(about['error'] / about['baseline'])}"
    return f"{about['error']:.4g} root mean square (95 % interval {low:.4g} to {high:.4g}; {alone})"


def show_training(training: Training, explain: bool, screen: Screen) -> None:
    """The summary."""
    if screen.as_json:
        screen.json(_facts(training, explain))
        return
    about, search = training.model.about_, training.model.estimator_
    classes = f", {len(np.unique(training.target.y))} classes" if about["task"] == "classification" else ""
    inner = getattr(search, "model_", search)
    kernel = about["kernel"]
    kernel = kernel if len(kernel) <= _SHOWN or explain else kernel[: _SHOWN - 1] + "…"
    mostly = tells_apart(search.kernel_, training.model.get_feature_names_out().tolist())
    pairs = [
        ("task", f"{about['task']} of {about['target']!r}{classes}"),
        ("data", f"{about['rows']:,} rows, {_columns(training)}"),
        ("kernel", f"{kernel}, chosen from {_count(len(search.trials_), 'trial')}"),
        *([("", f"tells rows apart most by {mostly}")] if mostly else []),
        ("learner", _learner(inner)),
        ("error", error_text(about)),
        ("", f"from {about['error_from']}"),
        ("time", f"{training.seconds:.1f} s"),
        ("model", str(training.model_path)),
    ]
    if training.report_path is not None:
        pairs.append(("report", str(training.report_path)))
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


def _learner(inner: Any) -> str:
    penalty = next(
        (f", {name} = {getattr(inner, name):.3g}" for name in ("C", "alpha") if _is_number(inner, name)), ""
    )
    stored = getattr(getattr(inner, "expansion_", None), "__len__", None)
    points = f", {_count(stored(), 'point')} kept" if stored is not None else ""
    return f"{type(inner).__name__}{penalty}{points}"


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


def _facts(training: Training, explain: bool) -> dict[str, Any]:
    search = training.model.estimator_
    facts = dict(training.model.about_)
    facts |= {
        "learner": type(getattr(search, "model_", search)).__name__,
        "trials": len(search.trials_),
        "seconds": round(training.seconds, 3),
        "model": str(training.model_path),
        "report": None if training.report_path is None else str(training.report_path),
        "notes": training.notes,
    }
    if training.target.task == "classification":
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
