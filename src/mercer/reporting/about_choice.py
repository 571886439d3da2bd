r"""Which kernels were tried, and why it is this one."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.data import points as data
from mercer.gram import Gram
from mercer.kernels.base import Kernel
from mercer.kernels.compose import Scaled, Sum
from mercer.kernels.words import in_words
from mercer.plots.paths import PathDisplay
from mercer.plots.style import brief
from mercer.plots.trials import TrialsDisplay, Tried, tried
from mercer.reporting.case import Case
from mercer.reporting.page import (
    Html,
    cut,
    definitions,
    figures,
    folded,
    hinted,
    number,
    paragraph,
    percent,
    table,
    words,
)
from mercer.reporting.picture import Pictures

_LISTED = 15  # trials in the table
_NAMED = 6  # columns whose names stand in one cell


def choice_section(case: Case, pictures: Pictures) -> list[Html]:
    """The trials, the path of penalties, the kernel and its parts."""
    kernel = case.found.kernel
    parts = [paragraph(f"The model compares points by the kernel {cut(case.kernel_name, 300)}.")]
    parts += _trials(case, pictures)
    parts += _terms(case, kernel)
    numbers = Html(f"<p><code>{words(cut(case.kernel_text, 2000))}</code></p>")
    return [*parts, folded("The kernel with its numbers", numbers)]


def _trials(case: Case, pictures: Pictures) -> list[Html]:
    source = case.trials if case.trials is not None else case.found.learner
    has_any = case.trials is not None or hasattr(source, "trials_") or hasattr(source, "path_")
    rows = tried(source) if has_any else []
    if not rows:
        return [paragraph("The kernel was given: no other was tried.")]
    parts = [paragraph(_why(rows))]
    if case.is_regression and type(case.found.learner).__name__ == "AutoKernelRegressor":
        parts.append(paragraph("Errors of this search are in standard deviations of the target."))
    drawn = []
    if len(rows) > 2:
        shown = min(len(rows), 12)
        drawn.append(
            pictures.draw(
                lambda ax: TrialsDisplay.from_trials(rows, ax=ax),
                "The trials",
                _order_of(rows) + " The choice was made on these errors, so they flatter.",
                width=4.6,
                height=0.9 + 0.24 * shown,
            )
        )
    if hasattr(case.found.learner, "path_"):
        drawn.append(
            pictures.draw(
                lambda ax: PathDisplay.from_estimator(case.found.learner, ax=ax),
                "The path of penalties",
                "Left of the best penalty the model follows noise, right of it it is too stiff.",
            )
        )
    parts += [figures(*drawn)] if drawn else []
    listed = [
        [
            place,
            hinted(cut(row.name, 60), cut(brief(row.kernel), 300)),
            row.error,
            row.penalty,
            row.points,
            row.seconds,
        ]
        for place, row in enumerate(rows[:_LISTED], 1)
    ]
    more = len(rows) - len(listed)
    caption = "Trials, the best first" + (f" ({more} more)" if more else "")
    head = ["place", "kernel", "error", "penalty", "points", "seconds"]
    keep = [j for j in range(len(head)) if j < 3 or any(row[j] is not None for row in listed)]
    every = table([head[j] for j in keep], [[row[j] for j in keep] for row in listed], caption)
    return [*parts, folded(f"{len(rows)} trials, one by one", every) if len(rows) > 3 else every]


def _order_of(rows: list[Tried]) -> str:
    """How the trials are ordered in the picture: errors on other numbers of points do not compare."""
    if len({row.points for row in rows}) > 1:
        return "Errors of the search: trials that went on to more points first, of these the best at the top."
    return "Errors of the search, the best at the top."


def _why(rows: list[Tried]) -> str:
    best = rows[0]
    text = f"{len(rows)} kernel{'s were' if len(rows) > 1 else ' was'} tried. "
    text += f"{cut(best.name, 80)} had the smallest error, {number(best.error)}"
    if best.points and any((row.points or 0) < best.points for row in rows):
        text += f", among those that went on to {best.points:,} points"
    others = [row for row in rows[1:] if row.points == best.points]
    if others:
        text += f"; the next, {cut(others[0].name, 80)}, had {number(others[0].error)}"
    return f"{text}."


def _columns_of(case: Case, key: Any) -> str:
    """The names of the columns that a part of the kernel is on, each once; of the table, where steps say so.

    What is made of one column of the table, such as the zeros and ones of its categories, is that column.
    """
    keys = list(key) if isinstance(key, tuple | list | range) else [key]
    known = case.found.sources or case.features or ()
    named = [known[k] if isinstance(k, int | np.integer) and k < len(known) else k for k in keys]
    names = [cut(str(name), 40) for name in dict.fromkeys(named)]
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED:,} more"


def _terms(case: Case, kernel: Kernel) -> list[Html]:
    """What each term of a sum weighs."""
    while isinstance(kernel, Scaled):
        kernel = kernel.kernel
    columns = getattr(kernel, "columns", None)
    if isinstance(columns, dict):
        weights = getattr(kernel, "weights", None) or {}
        rows = [
            [_columns_of(case, key), cut(in_words(k), 160), float(weights.get(key, 1.0))]
            for key, k in columns.items()
        ]
        return [table(["column", "kernel", "weight"], rows, "The kernel of each column")]
    if not isinstance(kernel, Sum):
        return []
    some = data.take(case.points, case.some(300))
    sizes = [float(np.mean(Gram(term, some, cache=0).diag())) for term in kernel.children().values()]
    total = sum(sizes) or 1.0
    rows = []
    for term, size in zip(kernel.children().values(), sizes, strict=True):
        weight = float(term.scale) if isinstance(term, Scaled) else 1.0
        inner = term.kernel if isinstance(term, Scaled) else term
        rows.append([cut(in_words(inner), 160), weight, percent(size / total)])
    parts = [table(["term", "weight", "share of k(x, x)"], rows, "The terms of the kernel")]
    biggest = int(np.argmax(sizes))
    return [*parts, definitions([("largest term", rows[biggest][0])])]
