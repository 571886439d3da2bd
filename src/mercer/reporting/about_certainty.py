r"""How sure the model is, where it is not, and which rows to look at."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.data import points as data
from mercer.errors import InputError, MemoryBudgetError
from mercer.estimators.shared.sets import likely
from mercer.estimators.shared.uncertain import UncertainRegressorMixin
from mercer.reporting.case import Case
from mercer.reporting.page import Html, cut, definitions, note, paragraph, percent, table
from mercer.reporting.picture import Pictures, reason
from mercer.solvers.conformal import quantile

_COVERAGE = 0.9
_LISTED = 8  # rows of each kind
_LOOKED_AT = 500  # points whose standard deviation is computed
_FITTED = 3000  # points of an exact model up to which K is factored again for it
#: which new ones are inside an interval, by what the errors were kept apart by
_OF = {
    "": "; new ones are in it about so often, where they are like these.",
    "groups": " with their groups; new ones of new groups are in it about so often, where groups are alike.",
    "times": " later than what was learned from; nothing guarantees that those to come are like them.",
}


def certainty_section(case: Case, pictures: Pictures) -> list[Html]:
    """Intervals or sets, where f is not known, and the rows that stand out."""
    if not case.has_targets or case.y.ndim != 1:
        return []
    return _classes(case) if case.is_class else _numbers(case)


# --- numbers ---------------------------------------------------------------------------------------------


def _numbers(case: Case) -> list[Html]:
    held = case.held_out
    off = np.abs(case.y[held.which] - held.predictions)
    half = float(quantile(off[:, None].copy(), _COVERAGE)[0])
    facts: list[tuple[str, Any]] = []
    if np.isfinite(half):
        facts.append(
            (f"an interval that {percent(_COVERAGE, 0)} of targets are in", f"prediction ± {half:.4g}")
        )
    parts: list[Html] = []
    try:
        facts_of_f, parts = _posterior(case)
        facts += facts_of_f
    except (InputError, MemoryBudgetError) as error:
        parts = [note(f"How well f is known is not shown: {reason(error)}")]
    order = np.argsort(-off, kind="stable")[:_LISTED]
    rows = [
        [int(held.which[i]) + 1, float(case.y[held.which[i]]), float(held.predictions[i]), float(off[i])]
        for i in order
    ]
    head = ["row", "target", "predicted", "off by"]
    caption = "Rows to look at: the largest errors. Is the target right? Is something else special here?"
    return [
        definitions(facts),
        paragraph(
            f"The interval is made of the errors on {len(off):,} {case.unit} left out{_OF[case.apart]} "
            "mercer predict --interval writes such intervals."
        ),
        *parts,
        table(head, rows, caption, row_heads=False),
    ]


def _posterior(case: Case) -> tuple[list[tuple[str, Any]], list[Html]]:
    """The noise, how well f is known, and the points where it is known least."""
    learner = case.found.learner
    if not isinstance(learner, UncertainRegressorMixin):
        return [], []
    anchors = len(learner.expansion_)
    if anchors > _FITTED:
        return [], [note(f"How well f is known is not shown: it takes a factor of K, of {anchors:,} points.")]
    which = case.some(_LOOKED_AT)
    mean, std = learner.predict(data.take(case.points, which), return_std=True)
    noise = float(np.sqrt(learner.noise_variance_))
    facts: list[tuple[str, Any]] = [
        ("noise of a target (standard deviation)", noise),
        ("what is not known of f, at a typical point", float(np.median(std))),
        ("at the one where least is known", float(std.max())),
        ("points where it is more than the noise", percent(float(np.mean(std > noise)))),
    ]
    order = np.argsort(-std, kind="stable")[:_LISTED]
    rows = [[int(which[i]) + 1, float(case.y[which[i]]), float(mean[i]), float(std[i])] for i in order]
    caption = "Rows to look at: where least is known of f, far from the other points"
    head = ["row", "target", "predicted", "± (of f, one standard deviation)"]
    told = (
        "By the Gaussian process whose mean f is, with the noise that makes the targets most likely: "
        f"the standard deviation of f at {len(which):,} {case.unit}. Where it is more than the noise, a "
        "prediction is little more than a guess."
    )
    return facts, [paragraph(told), table(head, rows, caption, row_heads=False)]


# --- classes ---------------------------------------------------------------------------------------------


def _classes(case: Case) -> list[Html]:
    classes, source = case.found.classes, case.held_out
    if source.probabilities is None and vars(case).get("calibrated") is not None:
        source = vars(case)["calibrated"]  # The section on errors has made it, if there was time.
    P, which = source.probabilities, source.which
    if P is None or classes is None:
        told = "There are no probabilities of points left out, so that nothing says how sure the model is."
        return [paragraph(told)]
    codes = np.searchsorted(classes, case.y[which])
    sets = likely(P, _COVERAGE)
    sizes, inside = sets.sum(axis=1), sets[np.arange(len(codes)), codes]
    facts: list[tuple[str, Any]] = [
        (f"right class in the set of {percent(_COVERAGE, 0)}", percent(float(inside.mean()))),
        ("classes in a set, on average", float(sizes.mean())),
        ("points with one class alone", percent(float(np.mean(sizes == 1)))),
    ]
    predicted = np.searchsorted(classes, source.predictions)
    sure = P[np.arange(len(predicted)), predicted]
    wrong = np.flatnonzero(predicted != codes)
    surest = wrong[np.argsort(-sure[wrong], kind="stable")][:_LISTED]
    unsure = np.argsort(sure, kind="stable")[:_LISTED]

    def rows(places: np.ndarray) -> list[list[Any]]:
        labels = [(cut(str(classes[codes[i]]), 40), cut(str(classes[predicted[i]]), 40)) for i in places]
        return [
            [int(which[i]) + 1, label, other, percent(float(sure[i]))]
            for i, (label, other) in zip(places, labels, strict=True)
        ]

    one = "row" if case.unit == "points" else case.unit.removesuffix("s")
    head = [one, "class", "predicted", "with probability"]
    parts = [
        definitions(facts),
        paragraph(
            f"A set is the likeliest classes until their probabilities sum to {percent(_COVERAGE, 0)}, of "
            f"{len(which):,} {case.unit} left out. The right class is in it so often, or more often, if the "
            "probabilities are right."
        ),
    ]
    if len(surest):
        caption = "Rows to look at: surely wrong. Is the label right?"
        parts.append(table(head, rows(surest), caption, row_heads=False))
    caption = "Rows to look at: where the model is least sure"
    return [*parts, table(head, rows(unsure), caption, row_heads=False)]
