r"""The data of a report: how many points of what kind, and what is to be predicted."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mercer import data
from mercer.plots.learned import width_of
from mercer.reporting.case import Case
from mercer.reporting.page import Html, cut, definitions, number, paragraph, table

__all__ = ["columns_of", "data_section", "kind_of"]

_COLUMNS = 30  # columns that are described one by one
_CLASSES = 30
_LOOKED = 50_000  # points that a column is described by


def data_section(case: Case) -> list[Html]:
    """Points, columns, targets."""
    parts = [definitions([("points", case.n), ("each point", kind_of(case)), ("to predict", _task(case))])]
    parts += [_targets(case)]
    if width_of(case.X) is not None:
        parts += _columns(case)
    else:
        parts += _objects(case)
    return parts


def kind_of(case: Case) -> str:
    """What a point is, in words."""
    d = width_of(case.X)
    if d is not None:
        kind = "a sparse row of" if sparse.issparse(case.X) else "a row of"
        return f"{kind} {d:,} column{'s' * (d != 1)}"
    first = data.take(case.X, np.array([0]))[0]
    if isinstance(first, str | bytes):
        return "a text"
    what = case.found.kernel.objects
    return {"graphs": "a graph", "trees": "a tree", "sets": "a set", "sequences": "a sequence"}.get(
        what or "", f"an object ({type(first).__name__})"
    )


def columns_of(case: Case) -> list[str]:
    """The names of the columns of X."""
    d = case.X.shape[1]
    if case.features is not None and len(case.features) == d:
        return list(case.features)
    if hasattr(case.X, "columns"):
        return [str(name) for name in case.X.columns]
    return [f"column {j}" for j in range(d)]


def _task(case: Case) -> str:
    if case.found.classes is not None:
        return f"one of {len(case.found.classes)} classes"
    if case.is_regression:
        return "a number" if case.y.ndim == 1 else f"{case.y.shape[1]} numbers"
    return "nothing: what is typical is learned"


def _targets(case: Case) -> Html:
    if case.is_class:
        labels, counts = np.unique(case.y, return_counts=True)
        order = np.argsort(-counts, kind="stable")[:_CLASSES]
        rows = [[cut(str(labels[i]), 60), int(counts[i]), f"{counts[i] / case.n:.1%}"] for i in order]
        more = len(labels) - len(order)
        return table(["class", "points", "share"], rows, "Classes" + (f" (and {more} more)" if more else ""))
    if not case.is_regression:
        return paragraph("There are no targets.")
    Y = case.y.reshape(case.n, -1).astype(np.float64)
    rows = [
        [f"target {j + 1}" if Y.shape[1] > 1 else "target", *_five(Y[:, j])]
        for j in range(min(Y.shape[1], 10))
    ]
    return table(
        ["", "smallest", "quartile", "median", "quartile", "largest", "mean", "deviation"], rows, "Targets"
    )


def _five(values: np.ndarray) -> list[float]:
    return [
        *map(float, np.quantile(values, [0.0, 0.25, 0.5, 0.75, 1.0])),
        float(values.mean()),
        float(values.std()),
    ]


def _columns(case: Case) -> list[Html]:
    names = columns_of(case)
    if len(names) > _COLUMNS and not hasattr(case.X, "columns"):
        return [_many(case)]
    some = data.take(case.X, case.some(_LOOKED))
    rows = [_column(names[j], _values(some, j)) for j in range(min(len(names), _COLUMNS))]
    more = len(names) - len(rows)
    caption = "Columns" + (f" (the first {len(rows)}; {more} more)" if more > 0 else "")
    return [table(["column", "kind", "missing", "values", "from", "middle", "to"], rows, caption)]


def _values(X: Any, j: int) -> np.ndarray:
    if sparse.issparse(X):
        return np.asarray(X[:, [j]].toarray()).ravel()
    column = data.columns(X, [j])
    return np.asarray(column).reshape(-1)


def _column(name: str, values: np.ndarray) -> list[Any]:
    if values.dtype.kind in "biuf":
        seen = values[np.isfinite(values)] if values.dtype.kind == "f" else values
        missing = len(values) - len(seen)
        if not len(seen):
            return [cut(name, 60), "number", missing, 0, "–", "–", "–"]
        middle = float(np.median(seen))
        kinds = len(np.unique(seen))
        return [
            cut(name, 60),
            "number",
            missing,
            kinds,
            *(number(v) for v in (seen.min(), middle, seen.max())),
        ]
    texts = [str(v) for v in values.tolist() if v is not None and v == v]
    words, counts = np.unique(texts, return_counts=True) if texts else (np.array([]), np.array([]))
    usual = cut(str(words[counts.argmax()]), 40) if len(words) else "–"
    kind = "date" if values.dtype.kind == "M" else "text"
    return [cut(name, 60), kind, len(values) - len(texts), len(words), "–", f"most often: {usual}", "–"]


def _many(case: Case) -> Html:
    X = data.take(case.X, case.some(2000))
    values = np.asarray(X.data if sparse.issparse(X) else X)
    if values.dtype.kind not in "biuf":
        return paragraph(f"{case.X.shape[1]:,} columns.")
    filled = np.count_nonzero(values) / max(1, X.shape[0] * X.shape[1])
    low, high = float(np.nanmin(values, initial=np.inf)), float(np.nanmax(values, initial=-np.inf))
    return paragraph(
        f"{X.shape[1]:,} columns of numbers from {number(low)} to {number(high)}; {filled:.0%} are not zero."
    )


def _objects(case: Case) -> list[Html]:
    some = data.take(case.X, case.some(5000))
    lengths = [len(point) for point in some if hasattr(point, "__len__")]
    parts: list[Html] = []
    if lengths:
        quarter, half, most = np.quantile(lengths, [0.25, 0.5, 1.0])
        first = some[0]
        unit = "characters" if isinstance(first, str) else "bytes" if isinstance(first, bytes) else "parts"
        parts.append(
            definitions(
                [
                    (f"{unit}, median", float(half)),
                    ("lower quartile", float(quarter)),
                    ("longest", float(most)),
                ]
            )
        )
    if len(some) and isinstance(some[0], str):
        rows = [[cut(str(case.y[i]), 40), cut(case.X[i], 160)] for i in case.some(4)[:4]]
        parts.append(table(["target", "text"], rows, "Some of them"))
    return parts
