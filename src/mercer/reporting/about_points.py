r"""The points that the model is made of, and the columns that matter."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mercer.data import points as data
from mercer.plots import style
from mercer.plots.relevance import RelevanceDisplay
from mercer.reporting.about_data import columns_of
from mercer.reporting.case import Case
from mercer.reporting.objects import objects_of, shown
from mercer.reporting.page import Html, cut, figures, gallery, image, number, paragraph, table
from mercer.reporting.picture import Pictures

_PROTOTYPES = 12  # anchors that are shown
_KINDS = {
    "length scales": "By the kernel's own length scales ℓⱼ, one per column: the spread of a column divided "
    "by ℓⱼ is how much it moves a point.",
    "permutation": "By permutation: the cells of a column are those of other rows, which takes its "
    "information away, and f changes. Columns that say the same share what they matter.",
}
_SHOWN_COLUMNS = 8  # beside each other, of an anchor
_RANKED = 15  # columns in the table of relevances
_LINE = 96  # characters that the names of columns may take beside each other


def prototype_section(case: Case) -> list[Html]:
    """The anchors with the largest coefficients."""
    f = case.found.learner.expansion_
    kept = int(np.count_nonzero(case.influence))
    of = f" of the {case.fitted:,}" if case.is_training and case.fitted >= kept else ""
    parts = [
        paragraph(
            f"f(x) = Σ αᵢ k(xᵢ, x) + b gives a weight αᵢ to {kept:,}{of} points xᵢ that it was learned from. "
            "Those with the largest |αᵢ| say most about what was learned."
        )
    ]
    C = getattr(case.found.machine, "C", None)
    bound = int(np.count_nonzero(case.influence >= 0.999999 * float(C))) if C is not None else 0
    if case.found.has_margin and bound:
        parts.append(
            paragraph(f"{bound:,} of them are at the bound C = {number(C)}: inside the margin, or wrong.")
        )
    chosen = _chosen(case)
    if not len(chosen):
        return [*parts, paragraph("The function is constant: no point has a weight.")]
    if _is_images(case, f, int(chosen[0])):
        said = _said(case, chosen)
        shown = (_captioned(case, f, int(i), one) for i, one in zip(chosen, said, strict=True))
        return [*parts, gallery(shown)]
    head = ["weight |α|", "target", "predicted"] if case.has_targets else ["weight |α|", "predicted"]
    caption = "The most influential training points"
    if data.n_columns(case.X) is None or case.is_pairwise:
        shapes = [_shown_point(case, f, int(i)) for i in chosen]
        rows = [[shape, *said] for shape, said in zip(shapes, _said(case, chosen), strict=True)]
        return [*parts, table(["point", *head], rows, caption, row_heads=False)]
    (columns, by), names = _columns(case), columns_of(case)
    if len(columns) < len(names):
        caption += f", with {by.format(len(columns))} of {len(names):,} columns"
    cells = _cells(case, chosen, columns)
    rows = [[*said, *row] for said, row in zip(_said(case, chosen), cells, strict=True)]
    head += [cut(names[j], 24) for j in columns]
    return [*parts, table(head, rows, caption, row_heads=False)]


def _chosen(case: Case) -> np.ndarray:
    """The anchors to show: the largest, of every class where classes are known."""
    order = np.argsort(-case.influence, kind="stable")
    order = order[case.influence[order] > 0]
    if not case.is_class or case.found.classes is None:
        return order[:_PROTOTYPES]
    labels = [_label(case, int(i)) for i in order]
    each = max(1, _PROTOTYPES // len(case.found.classes))
    kept: list[int] = []
    counts: dict[Any, int] = {}
    for i, label in zip(order, labels, strict=True):
        counts[label] = counts.get(label, 0) + 1
        if counts[label] <= each:
            kept.append(int(i))
    kept += [int(i) for i in order if int(i) not in kept][: max(0, _PROTOTYPES - len(kept))]
    return np.array(kept[:_PROTOTYPES], dtype=int)


def _label(case: Case, anchor: int) -> Any:
    place = case.places.get(anchor)
    if place is not None:
        return case.y[place]
    coef = np.asarray(case.found.learner.expansion_.coef)
    if case.found.classes is not None and coef.ndim == 1:
        return case.found.classes[int(coef[anchor] > 0)]
    return None


def _said(case: Case, anchors: np.ndarray) -> list[list[Any]]:
    """The weight of each anchor, its target, if there are any, and what is predicted for it."""
    places = {int(a): case.places[int(a)] for a in anchors if int(a) in case.places}
    predicted: dict[int, Any] = {}
    if places and hasattr(case.model, "predict") and case.afford_values(500, 1.0) >= 40:
        predicted = dict(zip(places, case.predict(np.array(list(places.values()))), strict=True))
    said = []
    for anchor in map(int, anchors):
        targets = [_target(case, _label(case, anchor))] if case.has_targets else []
        said.append([float(case.influence[anchor]), *targets, _target(case, predicted.get(anchor))])
    return said


def _target(case: Case, value: Any) -> Any:
    if value is None:
        return None
    if not case.has_targets:
        return "novel" if value < 0 else "typical"
    return float(value) if case.is_regression and np.ndim(value) == 0 else cut(str(value), 60)


def _shown_point(case: Case, f: Any, anchor: int) -> str:
    if case.is_pairwise:
        return f"number {case.places.get(anchor, anchor) + 1:,}"
    return shown(_point(case, f, anchor), objects_of(case.found.kernel))


def _captioned(case: Case, f: Any, anchor: int, given: list[Any]) -> tuple[Html, str]:
    """An image, and what is said of it."""
    label = _label(case, anchor)
    target, predicted = ("–" if v is None else str(v) for v in (_target(case, label), given[-1]))
    pixels, side = np.asarray(_point(case, f, anchor), dtype=np.float64), _side(case)
    picture = style.as_png(pixels.reshape(side, side) if side is not None else pixels)
    said = f"{target}, |α| = {number(float(case.influence[anchor]))}" + (
        f", taken for {predicted}" if predicted not in ("–", target) else ""
    )
    return image(picture, f"A training image of {target}"), said


def _point(case: Case, f: Any, anchor: int) -> Any:
    """The point of an anchor as it is in the data, or, where it is not there, as the kernel sees it."""
    place = case.places.get(anchor)
    if place is not None:
        return _first(data.take(case.X, np.array([place])))
    return _first(data.take(f.anchors, np.array([anchor])))


def _first(points: Any) -> Any:
    if hasattr(points, "iloc"):
        return points.iloc[0]
    return points[0] if not sparse.issparse(points) else points.toarray()[0]


def _is_images(case: Case, f: Any, anchor: int) -> bool:
    if _side(case) is not None:
        return anchor in case.places
    point = _point(case, f, anchor)
    if not isinstance(point, np.ndarray) or point.ndim != 2 or objects_of(case.found.kernel) is not None:
        return False
    return min(point.shape) >= 5 and point.dtype.kind in "biuf"


def _columns(case: Case) -> tuple[np.ndarray, str]:
    """The columns to show, and what they are: all where there is room for them, else those that matter most.

    Where that was not measured, for want of time or because it cannot be, the first ones.
    """
    names = columns_of(case)
    if len(names) <= _SHOWN_COLUMNS and _fitting(names) == len(names):
        return np.arange(len(names)), "all {}"
    known: Any = vars(case).get("relevance")
    order = np.arange(_SHOWN_COLUMNS) if known is None else np.asarray(known.order()[:_SHOWN_COLUMNS])
    by = "the first {}" if known is None else "the {} that matter most"
    return order[: max(3, _fitting([names[j] for j in order]))], by


def _fitting(names: list[str]) -> int:
    """How many of the names can stand beside each other."""
    return int(np.count_nonzero(np.cumsum([len(cut(name, 24)) + 3 for name in names]) <= _LINE))


def _cells(case: Case, anchors: np.ndarray, columns: np.ndarray) -> list[list[Any]]:
    """The values of training points in some columns."""
    some, rows = data.columns(case.X, columns), []
    for place in (case.places.get(int(anchor)) for anchor in anchors):
        if place is None:
            rows.append([None] * len(columns))
        else:
            row = data.take(some, np.array([place]))
            rows.append([_cell(data.columns(row, [j])) for j in range(len(columns))])
    return rows


def _cell(column: Any) -> Any:
    """The one value of a column: a number, or a text."""
    value = np.asarray(column.toarray() if sparse.issparse(column) else column).reshape(-1)[0]
    if isinstance(value, bool | np.bool_ | int | float | np.integer | np.floating):
        return value if isinstance(value, float | np.floating) else int(value)
    return None if value is None or value != value else cut(str(value).removesuffix(" 00:00:00"), 60)


def _side(case: Case) -> int | None:
    """The side of square images, if that is what the rows seem to be: unnamed columns of values ≥ 0."""
    X = case.X
    if (
        not isinstance(X, np.ndarray)
        or X.ndim != 2
        or X.dtype.kind not in "biuf"
        or case.features is not None
        or case.is_pairwise
    ):
        return None
    side = int(np.sqrt(X.shape[1]))
    if side < 8 or side * side != X.shape[1]:
        return None
    return side if float(X[:1000].min()) >= 0 else None


def relevance_section(case: Case, pictures: Pictures) -> list[Html]:
    """The section about relevance, by length scales or by permutation; an image where points are images."""
    if data.n_columns(case.X) is None:
        return [paragraph("The points are objects, without columns whose relevance could be told apart.")]
    if case.is_pairwise:
        return [paragraph("The columns are kernel values of training points, not features.")]
    display, side = case.relevance, _side(case)
    order = display.order()
    order = order[display.relevance[order] != 0]  # what does not change f at all is not listed
    parts = [paragraph(_KINDS[display.kind])]
    if side is not None and len(display.relevance) == side * side:
        pixels = _Pixels(display, side)
        parts.append(figures(pictures.draw(pixels.plot, "The relevance", "Pixels that matter are bright.")))
    else:
        drawn = pictures.draw(
            lambda ax: display.plot(ax),
            "The relevance",
            "The columns that matter most, at the top"
            + ("; lines are 95 % intervals." if display.precision is not None else "."),
            width=4.6,
            height=0.9 + 0.24 * min(case.X.shape[1], 15),
        )
        parts.append(figures(drawn, _measured(display, order)))
    seen = int(np.count_nonzero(np.isfinite(display.relevance)))
    if seen < len(display.names):
        parts.append(
            paragraph(
                f"There was time to measure {seen:,} of {len(display.names):,} columns, taken by chance. "
                "Of the others nothing is known: they may matter more."
            )
        )
    return parts


def _measured(display: RelevanceDisplay, order: np.ndarray) -> Html:
    """The columns in their order, and how precisely each is known."""
    head, shown = ["column", "relevance"], order[:_RANKED]
    rows: list[list[Any]] = [[cut(display.names[j], 60), float(display.relevance[j])] for j in shown]
    if display.precision is not None and display.rows is not None:
        head += ["±", "cells"]
        for row, j in zip(rows, shown, strict=True):
            row += [float(f"{2 * display.precision[j]:.2g}"), int(display.rows[j])]
    rest = len(display.names) - len(shown)
    caption = f"Columns by {display.label}" + (f" (the first {len(shown)}; {rest} more)" if rest else "")
    caption += "; ± is two standard errors, by so many changed cells" if display.precision is not None else ""
    return table(head, rows, caption)


class _Pixels(style.Display):
    """Relevance of pixels, as an image."""

    def __init__(self, display: RelevanceDisplay, side: int) -> None:
        self.display, self.side = display, side

    def _draw(self, ax: Any) -> None:
        picture = ax.imshow(
            np.nan_to_num(self.display.relevance).reshape(self.side, self.side), cmap=style.SEQUENTIAL
        )
        ax.set(xticks=[], yticks=[])
        style.colour_bar(ax, picture, self.display.label)

    def describe(self) -> str:
        row, column = divmod(int(self.display.order()[0]), self.side)
        size = f"{self.side} × {self.side}"
        return f"The relevance of {size} pixels, largest in row {row + 1}, column {column + 1}."
