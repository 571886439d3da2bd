r"""One HTML file that says what a model is, how good it is, and why."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mercer.data.types import Model, Points, Targets
from mercer.errors import InputError, InputTypeError
from mercer.plots.filters import is_filter
from mercer.reporting.about_certainty import certainty_section
from mercer.reporting.about_choice import choice_section
from mercer.reporting.about_data import column_section, data_section, kind_of
from mercer.reporting.about_errors import curve_section, error_section
from mercer.reporting.about_fit import fit_section, margin_section
from mercer.reporting.about_kernel import matrix_section, plane_section
from mercer.reporting.about_mail import MAIL_SECTIONS
from mercer.reporting.about_points import prototype_section, relevance_section
from mercer.reporting.case import Case
from mercer.reporting.given import as_features, as_targets, check_error, check_trials
from mercer.reporting.look import STYLE
from mercer.reporting.mail_case import MailCase
from mercer.reporting.page import Html, cut, hinted, note, words
from mercer.reporting.picture import Pictures, no_time, reason
from mercer.runtime.files import write_whole

_Section = Callable[[Case, Pictures], list[Html]]
#: id, heading, what makes the section, and the seconds that it takes at least, 0 for what is always there.
#: They are made in this order, so that the first have the time; one that makes nothing is left out
_SECTIONS: tuple[tuple[str, str, _Section, float], ...] = (
    ("data", "The data", lambda case, pictures: data_section(case), 0.0),
    ("error", "The error", error_section, 0.0),
    ("certainty", "How sure, and where not", certainty_section, 0.3),
    ("relevance", "What matters", relevance_section, 0.1),
    ("curve", "Would more data help?", curve_section, 0.2),
    ("choice", "The kernel, and why this one", choice_section, 0.0),
    ("prototypes", "The most influential points", lambda case, pictures: prototype_section(case), 0.1),
    ("matrix", "What the kernel sees", matrix_section, 0.2),
    ("plane", "The learned function in feature space", plane_section, 0.2),
    ("margin", "Margin and bounds", lambda case, pictures: margin_section(case), 0.1),
    ("fit", "How it was computed", lambda case, pictures: fit_section(case), 0.0),
    ("columns", "The columns", lambda case, pictures: column_section(case), 0.1),
)


def write_report(
    model: Model,
    X: Points,
    y: Targets,
    path: Any,
    *,
    features: Any = None,
    trials: Any = None,
    error: Any = None,
    title: str | None = None,
    notes: Any = None,
    seed: int = 0,
    limit: float = 18.0,
) -> Path:
    """Write the report of a fitted model to one HTML file, which needs nothing else to be read.

    Parameters
    ----------
    model : a fitted estimator of mercer's, or a pipeline or a search of scikit-learn's with one at its end;
        a MailClassifier
    X, y : the data it was fitted to, or new ones; vectors, a table, or a list of objects or messages
    path : of the file; an existing one is replaced when the new one is complete
    features : names of the columns of X
    trials : what a search tried, ``model.trials_``; by default what the model itself has
    error : ``mercer.selection.nested_error(…)``, a number, or a pair of a number and its interval; also any
        object with ``error``, ``interval``, ``predictions``, the ``rows`` of X they are of, ``how`` they were
        made, and the error of a constant, ``baseline``. By default it is found here, from errors left out or
        folds, with the kernel and the penalty as they are
    title : the heading
    notes : sentences about the data and the fit; by default what the model was warned about
    seed : of every choice of points
    limit : seconds that it may take, about. What there is no time for is left out, and named

    Everything is of at most some thousand points, chosen by the seed and stated, and takes at most about
    twenty seconds. What cannot be made is replaced by a sentence that says why. Returns the path.
    """
    place = _place(path)
    targets = as_targets(model, X, y)
    check_trials(trials)
    check_error(error)
    if is_filter(model):
        case: Case = MailCase.of(model, X, targets, error=error, seed=_seed(seed), told=notes, limit=limit)
    else:
        names = as_features(features, X)
        case = Case(model, X, targets, names, trials, error, _seed(seed), notes, limit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits and pictures that are made to look at the model may warn
        text = _page(case, title)
    write_whole(place, [text.encode()])
    return place


def _page(case: Case, title: str | None) -> str:
    pictures = Pictures(case.end)
    instead = MAIL_SECTIONS if isinstance(case, MailCase) else {}
    every = [
        (name, heading, _made(instead.get(name, section), case, pictures, heading, seconds))
        for name, heading, section, seconds in _SECTIONS
    ]
    made = [section for section in every if section[2]]
    heading = cut(title, 200) if title is not None else f"{case.learner_name} on {case.n:,} {case.unit}"
    contents = "".join(f'<li><a href="#{name}">{words(text)}</a></li>' for name, text, _ in made)
    body = "\n".join(
        f'<section aria-labelledby="{name}">\n<h2 id="{name}">{words(text)}</h2>\n{inside}\n</section>'
        for name, text, inside in made
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{words(heading)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        '<a class="skip" href="#main">Skip to the report</a>\n'
        f"<header>\n<h1>{words(heading)}</h1>\n{_summary(case)}\n{_left_out(pictures)}</header>\n"
        f'<nav aria-label="Contents"><ul>{contents}</ul></nav>\n'
        f'<main id="main">\n{body}\n</main>\n'
        f"<footer><p>Written by mercer {words(_version())}. Seed {case.seed}; what is "
        "from a part of the data says so.</p></footer>\n</body>\n</html>\n"
    )


def _summary(case: Case) -> Html:
    """The verdict, and the numbers one looks for."""
    facts: list[tuple[str, Any]] = []
    verdict = None
    try:
        verdict = case.verdict if case.has_targets else None
        if verdict is not None:
            name = "error" if case.is_class else "root mean squared error"
            span = f" ({verdict.span})" if verdict.span else ""
            facts.append((name, verdict.shown(verdict.error) + span))
    except Exception:  # the section says why
        facts.append(("error", "not known"))
    kernel = hinted(cut(case.kernel_name, 90), cut(case.kernel_text, 300))
    facts += [("learner", case.learner_name), ("kernel", kernel)]
    facts.append((f"{case.unit} learned from", f"{case.fitted:,}"))
    inside = "".join(f"<div><dt>{words(term)}</dt><dd>{words(value)}</dd></div>" for term, value in facts)
    said = "" if verdict is None else f'<p class="verdict">{words(verdict.sentence)}</p>\n'
    return Html(f'{said}<p class="lead">{words(_lead(case))}</p>\n<dl class="key">{inside}</dl>')


def _lead(case: Case) -> str:
    what = (
        "A classifier"
        if case.is_class
        else "A regression"
        if case.is_regression
        else "A model of what is typical"
        if hasattr(case.model, "predict")
        else "A map"
    )
    each = "" if isinstance(case, MailCase) else f", each {kind_of(case)}"
    if case.fitted != case.n:
        return f"{what} learned from {case.fitted:,} {case.unit}; the report is of {case.n:,}{each}."
    return f"{what} learned from {case.n:,} {case.unit}{each}."


def _left_out(pictures: Pictures) -> Html:
    """What there was no time for, at the top: a report that lacks something says so."""
    if not pictures.left_out:
        return Html("")
    which = "; ".join(pictures.left_out)
    return note(
        f"Time was short, and some of this report is left out: {which}. With the model and the table, "
        "mercer report writes all of it."
    )


def _made(section: _Section, case: Case, pictures: Pictures, heading: str, seconds: float) -> Html:
    if seconds and not pictures.has_time_for(heading, seconds):
        return no_time(heading)
    try:
        return Html("\n".join(section(case, pictures)))
    except Exception as error:  # The report is written without the section.
        return note(f"This part could not be made: {reason(error)}")


def _version() -> str:
    from mercer import __version__

    return __version__


def _seed(seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed must be a whole number that is zero or more, got {seed!r}: pass 0")
    return seed


# --- the file ----------------------------------------------------------------------------------------------


def _place(path: Any) -> Path:
    """Refuse a file that cannot be written, before the work."""
    if not isinstance(path, str | os.PathLike):
        raise InputTypeError(f"path must be a path, got {path!r}: pass 'report.html'")
    place = Path(path)
    if place.is_dir():
        raise InputError(f"path={str(place)!r} is a folder: name a file in it")
    if not Path(os.path.realpath(place)).parent.is_dir():
        raise InputError(f"path={str(place)!r} is in a folder that does not exist: make it, or name another")
    return place
