r"""How wrong the model is, and in what way."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.plots.calibration import CalibrationDisplay
from mercer.plots.confusion import ConfusionDisplay
from mercer.plots.learning import LearningCurveDisplay
from mercer.plots.residuals import ResidualDisplay
from mercer.reporting.case import LISTED_CLASSES, Case, HeldOut
from mercer.reporting.page import Html, cut, definitions, figures, note, paragraph, percent, table
from mercer.reporting.picture import Pictures, no_time, reason
from mercer.selection.nested import share_interval

_TARGETS = 3  # whose residuals are shown
_CALIBRATION, _REFITS = "The calibration", 0.5  # seconds of the fits that it takes, at least


def error_section(case: Case, pictures: Pictures) -> list[Html]:
    """Error, baseline, and where the errors are."""
    if not case.has_targets:
        return _typical(case)
    verdict, held = case.verdict, case.held_out
    facts: list[tuple[str, Any]] = [
        ("error" if case.is_class else "root mean squared error", verdict.shown(verdict.error))
    ]
    if verdict.interval is not None:
        facts.append(("95 % interval", verdict.span))
    if verdict.baseline is not None:
        alone = "the most frequent class alone" if case.is_class else "the mean alone"
        facts.append((alone, verdict.shown(verdict.baseline)))
        if not case.is_class and verdict.baseline > 0:
            facts.append(("explained variance R²", f"{1 - (verdict.error / verdict.baseline) ** 2:.3f}"))
    parts = [definitions(facts)]
    given = getattr(case.error, "predictions", None)
    if case.error is not None and given is None:
        how = getattr(case.error, "how", None)
        told = f"The error was measured before this report{f': {how}' if how else ''}."
        parts.append(paragraph(told, "What follows is from points left out here."))
    parts.append(paragraph(held.how))
    parts += _by_class(case, pictures) if case.is_class else _residuals(case, pictures)
    return parts


def _typical(case: Case) -> list[Html]:
    """Without a target: how much is called novel."""
    if not hasattr(case.model, "predict"):
        return [paragraph("There is no target, and so no error.")]
    which = case.some(case.afford_values(5000, 3.0))
    novel = case.predict(which) < 0
    low, high = share_interval(np.count_nonzero(novel), len(novel))
    facts: list[tuple[str, Any]] = [("called novel", percent(float(novel.mean()), 2))]
    if not case.is_training:
        facts.append(("95 % interval", f"{percent(float(low), 2)} to {percent(float(high), 2)}"))
    nu = getattr(case.found.machine, "nu", None)
    if nu is not None and case.is_training:
        facts.append(("at most, by the parameter nu", percent(float(nu), 2)))
    told = "There is no target, and so no error: what can be said is how much is called novel"
    return [definitions(facts), paragraph(f"{told}, of {len(which):,} of {case.n:,} points.")]


def _by_class(case: Case, pictures: Pictures) -> list[Html]:
    held, classes = case.held_out, case.found.classes
    assert classes is not None
    y = case.y[held.which]
    size = float(np.clip(2.4 + 0.12 * len(classes), 2.8, 3.7))
    drawn = [
        pictures.draw(
            lambda ax: ConfusionDisplay.from_predictions(y, held.predictions, labels=classes, ax=ax),
            "The confusion matrix",
            "True classes in rows, predicted ones in columns: what is off the diagonal is wrong.",
            height=size,
        )
    ]
    parts: list[Html] = []
    sure, failed = None, False
    try:
        if case.could_be_calibrated and not pictures.has_time_for(_CALIBRATION, _REFITS):
            failed = True
            parts.append(no_time(_CALIBRATION))
        else:
            sure = case.calibrated
    except Exception as error:  # The section is written without the picture.
        sure, failed = None, True
        parts.append(note(f"{_CALIBRATION}: not shown, because {reason(error)}"))
    if sure is not None:
        drawn.append(
            pictures.draw(
                lambda ax: _calibration(case, sure, ax),
                _CALIBRATION,
                "Probabilities are right where dots are on the dashed line; bars are 95 % intervals.",
                height=size,
            )
        )
    if sure is None and not failed:
        parts.append(paragraph("The model gives no probabilities, so there is no calibration to look at."))
    elif sure is not None and not case.has_probabilities:
        parts.append(
            paragraph(
                "The model gives no probabilities; those of the calibration are what it would give with "
                "probability=True."
            )
        )
    rows = []
    for label in classes[:LISTED_CLASSES]:
        true, told = y == label, held.predictions == label
        both = np.count_nonzero(true & told)
        found = percent(both / true.sum()) if true.any() else "–"
        right = percent(both / told.sum()) if told.any() else "–"
        rows.append([cut(str(label), 60), int(true.sum()), found, right])
    caption = "By class" + (
        f" (the first {LISTED_CLASSES} of {len(classes)})" if len(classes) > LISTED_CLASSES else ""
    )
    head = ["class", "points", "found (recall)", "right when predicted (precision)"]
    return [figures(*drawn), *parts, table(head, rows, caption)]


def _calibration(case: Case, sure: HeldOut, ax: Any) -> Any:
    labels, classes = case.y[sure.which], case.found.classes
    return CalibrationDisplay.from_predictions(labels, sure.probabilities, classes=classes, ax=ax)


def _residuals(case: Case, pictures: Pictures) -> list[Html]:
    held = case.held_out
    y = case.y[held.which]
    drawn = []
    Y, F = y.reshape(len(y), -1), held.predictions.reshape(len(y), -1)
    for j in range(min(Y.shape[1], _TARGETS)):
        which = f" (target {j + 1} of {Y.shape[1]})" if Y.shape[1] > 1 else ""
        drawn += [_residual(pictures, Y[:, j], F[:, j], kind, which) for kind in ("targets", "residuals")]
    off = np.abs(y - held.predictions).reshape(len(y), -1).mean(axis=1)
    levels = (0.5, 0.8, 0.9, 0.95, 0.99)
    rows = [[percent(level, 0), float(np.quantile(off, level))] for level in levels]
    return [figures(*drawn), table(["of the points", "have an error of at most"], rows, "Sizes of errors")]


def _residual(pictures: Pictures, y: np.ndarray, f: np.ndarray, kind: str, which: str) -> Html:
    caption = (
        "Points on the dashed line are predicted exactly"
        if kind == "targets"
        else "A cloud without a shape is noise; a bend or a fan is something that the model misses"
    )
    return pictures.draw(
        lambda ax: ResidualDisplay.from_predictions(y, f, kind=kind, ax=ax),
        "Targets against predictions" if kind == "targets" else "The residuals",
        f"{caption}{which}.",
    )


def curve_section(case: Case, pictures: Pictures) -> list[Html]:
    """Whether more data would help."""
    if not case.has_targets:
        return [paragraph("There is no target, and so no learning curve.")]
    if case.apart:
        return [
            paragraph(
                f"It is left out: its points are drawn at random, and the {case.apart} of this table are to "
                "be kept apart."
            )
        ]
    most = case.afford(2000, 2.5, squares=2.5)
    model, X = case.refitted
    drawn = pictures.draw(
        lambda ax: LearningCurveDisplay.from_estimator(
            model, X, case.y, most=most, max_time=case.left(5.0), seed=case.seed, ax=ax
        ),
        "The learning curve",
        "Where the upper line still falls at its end, more points would help; where the two lines have met, "
        "another kernel or other columns would.",
    )
    used = min(case.n, most)
    stay = "features, kernel and penalty stay" if case.found.has_own_features else "kernel and penalty stay"
    told = f"Fitted again on parts of {used:,} {case.unit}, a quarter left out; {stay}."
    return [paragraph(told), figures(drawn)]
