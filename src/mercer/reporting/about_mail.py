r"""The sections that a report of a filter of mails has in place of others: aspects and their elements."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import numpy as np

from mercer.plots.relevance import RelevanceDisplay
from mercer.reporting.case import Case
from mercer.reporting.mail_case import MailCase
from mercer.reporting.page import Html, cut, definitions, figures, number, paragraph, percent, table, words
from mercer.reporting.picture import Pictures

_PROTOTYPES = 8  # so many are shown of each class
_ELEMENTS = 10  # so many are shown of each class and aspect


def _data(case: MailCase, pictures: Pictures) -> list[Html]:
    labels, counts = np.unique(case.y, return_counts=True)
    classes = [[cut(str(a), 60), int(b), percent(b / case.n)] for a, b in zip(labels, counts, strict=True)]
    rows = []
    for name, known in case.model.vocabularies_.items():
        sizes = np.array([len(getattr(mail, name)) for mail in case.X])
        rows.append(
            [name, float(np.median(sizes)), int(sizes.max()), percent(np.mean(sizes == 0)), len(known)]
        )
    head = ["aspect", "elements, median", "most", "messages without any", "elements that are known"]
    return [
        definitions([("messages", case.n), ("to predict", " or ".join(map(str, case.model.classes_)))]),
        table(["class", "messages", "share"], classes, "Classes"),
        table(head, rows, "Aspects of the messages"),
    ]


def _weights(case: MailCase, pictures: Pictures) -> list[Html]:
    model = case.model
    names = list(model.weights_)
    weights = np.array([model.weights_[name] for name in names])
    spread = _spread(case)
    order = np.argsort(-weights, kind="stable")
    rows = [[names[i], percent(weights[i]), percent(spread[i])] for i in order]
    learned = model.weights == "learn"
    told = (
        "The weights wₐ were learned by gradient steps on errors left out, from weights that are good for "
        "most mail."
        if learned
        else "The weights wₐ were given."
    )
    drawn = pictures.draw(
        lambda ax: RelevanceDisplay(weights, tuple(names), "weight of the aspect", "weights").plot(ax),
        "The weights",
        "What each aspect of a message weighs in the comparison of two.",
        width=4.6,
        height=0.9 + 0.24 * len(names),
    )
    head = ["aspect", "weight in k", "share of the variance of f"]
    return [
        Html(
            "<p>Two messages are compared by <code>k(x, x′) = Σₐ wₐ kₐ(x, x′)</code>, a sum over aspects; kₐ "
            "is the cosine of what the two have of an aspect.</p>"
        ),
        paragraph(told, "The last column says how much of f comes from an aspect in the end."),
        figures(drawn, table(head, rows, "The learned weights" if learned else "The weights")),
        definitions([("C, weight of errors", model.C_), ("threshold on f", model.threshold_)]),
        paragraph(
            f"The threshold is where {percent(model.ham_loss, 2)} of the wanted mails are lost, of messages "
            "left out, and never below zero."
        ),
    ]


def _spread(case: MailCase) -> np.ndarray:  # (aspects,)
    """cov(fₐ, f) / var(f), fₐ the part of f that an aspect adds: the shares sum to 1."""
    Z, normal = case.points.tocsc(), case.machine.normal
    parts = [Z[:, columns] @ normal[columns] for columns in case.columns.values()]
    F = np.array(parts) - np.mean(parts, axis=1, keepdims=True)  # (aspects, n)
    whole = F.sum(axis=0)
    return np.asarray(F @ whole / max(float(whole @ whole), 1e-300))


def _prototypes(case: MailCase, pictures: Pictures) -> list[Html]:
    kept = len(case.influence)
    said = f"f(x) = Σ αᵢ k(xᵢ, x) + b has {kept:,} messages xᵢ with a weight αᵢ."
    if not case.places:
        return [paragraph(said, "They are not among the messages of this report.")]
    rows = []
    order = np.argsort(-case.influence, kind="stable")
    predicted = dict(zip(case.held_out.which.tolist(), case.held_out.predictions.tolist(), strict=True))
    for label in case.model.classes_:
        here = [int(i) for i in order if case.y[case.places[int(i)]] == label]
        for i in here[:_PROTOTYPES]:
            place = case.places[i]
            told = predicted.get(place)
            shown = None if told is None else cut(str(told), 60)
            rows.append([cut(str(label), 60), float(case.influence[i]), shown, cut(case.subject(place), 120)])
    bound = int(np.count_nonzero(case.influence >= 0.999999 * case.model.C_))
    at = f"{bound:,} of them are at the bound C = {number(case.model.C_)}: inside the margin, or wrong."
    head = ["class", "weight |α|", "left out, it is called", "subject"]
    return [
        paragraph(said, "Those with the largest |αᵢ| are the hardest to tell apart."),
        *([paragraph(at)] if bound else []),
        table(head, rows, "The most influential messages"),
    ]


def _elements(case: MailCase, pictures: Pictures) -> list[Html]:
    """The elements that speak most for either class."""
    model = case.model
    parts = [
        paragraph(
            "f is a sum over the elements of a message. Those below moved f most over the messages of this "
            "report: by the root of the mean of the squares of what they added."
        )
    ]
    ham, spam = (str(c) for c in (model.classes_ if case.machine.sign > 0 else model.classes_[::-1]))
    Z, normal, columns = case.points.tocsc(), case.machine.normal, case.columns
    tables = []
    for name in sorted(columns, key=lambda name: -model.weights_[name]):
        part = Z[:, columns[name]]
        moved = np.sqrt(part.multiply(part).mean(axis=0)) * normal[columns[name]]
        elements, order = list(model.vocabularies_[name].columns), np.argsort(moved, kind="stable")
        for_ham = [cut(elements[j], 60) for j in order[:_ELEMENTS] if moved[j] < 0]
        for_spam = [cut(elements[j], 60) for j in order[::-1][:_ELEMENTS] if moved[j] > 0]
        rows = list(zip_longest(for_spam, for_ham, fillvalue=""))
        if rows:
            caption = f"{name} (weight {percent(model.weights_[name])})"
            tables.append(table([f"for {spam}", f"for {ham}"], rows, caption, row_heads=False))
    return [*parts, figures(*tables)]


def _margin(case: MailCase, pictures: Pictures) -> list[Html]:
    model = case.model
    shared = np.concatenate([known.is_shared for known in model.vocabularies_.values()])
    norm = float(np.linalg.norm(case.machine.normal[shared]))
    support, fitted = len(model.support_), len(model.left_out_)
    return [
        definitions(
            [
                ("margin 2/‖f‖", 2 / norm if norm else None),
                ("support vectors", f"{support:,} of {fitted:,}"),
                ("radius √max k(x, x)", float(np.sqrt(sum(model.weights_.values())))),
            ]
        ),
        paragraph(
            "A message that is no support vector can be left out and the machine stays as it is, so that its "
            f"error left out is at most the share of support vectors: {percent(support / fitted)}. That is a "
            "bound; the error above is the estimate. The machine was trained without elements that only one "
            "message has; ‖f‖ is that of the others."
        ),
    ]


def _fit(case: MailCase, pictures: Pictures) -> list[Html]:
    model = case.model
    known = sum(map(len, model.vocabularies_.values()))
    facts: list[tuple[str, Any]] = [
        ("solver", "decomposition, as in SVC"),
        ("messages", len(model.left_out_)),
        ("elements kept", known),
        ("folds", model.folds),
        ("seed", model.random_state),
    ]
    text = " ".join(repr(model).split())
    return [definitions(facts), Html("<h3>Parameters</h3>"), Html(f"<pre>{words(text[:2000])}</pre>")]


def _of(section: Any) -> Any:
    """A section of a MailCase, as one of any case."""

    def made(case: Case, pictures: Pictures) -> list[Html]:
        assert isinstance(case, MailCase)
        found: list[Html] = section(case, pictures)
        return found

    return made


#: what replaces the sections of these names
MAIL_SECTIONS = {
    "data": _of(_data),
    "choice": _of(_weights),
    "prototypes": _of(_prototypes),
    "relevance": _of(_elements),
    "margin": _of(_margin),
    "fit": _of(_fit),
}
