r"""The data of a report: how many points of what kind, and what is to be predicted."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mercer.data import points as data
from mercer.data.types import Points
from mercer.plots.learned import column_names
from mercer.reporting.case import LISTED_CLASSES, Case
from mercer.reporting.objects import objects_of, shown, size
from mercer.reporting.page import Html, cut, definitions, folded, number, paragraph, percent, table

_COLUMNS = 200  # columns that are described one by one
_NAMELESS = 30  # columns without names are shown up to this number
_NAMES = {"graphs": "a graph", "trees": "a tree", "sets": "a set", "sequences": "a sequence"}
_LOOKED = 50_000  # points that a column is described by


def data_section(case: Case) -> list[Html]:
    """Points and targets."""
    parts = [definitions([("points", case.n), ("each point", kind_of(case)), ("to predict", _task(case))])]
    parts += [_targets(case)]
    if case.is_pairwise:
        parts.append(paragraph("The data are kernel values of pairs of points, not the points themselves."))
    elif data.n_columns(case.X) is None:
        parts += _objects(case)
    elif not _are_listed(case):
        parts.append(_many(case))
    return parts


def column_section(case: Case) -> list[Html]:
    """The columns one by one, for those who open the list; nothing where points have no columns."""
    if case.is_pairwise or data.n_columns(case.X) is None or not _are_listed(case):
        return []
    names = columns_of(case)
    count, used = min(len(names), _COLUMNS), _used_as(case)
    some = data.take(data.columns(case.X, range(count)), case.some(_LOOKED))
    rows = []
    for j in range(count):
        name, kind, *rest = _column(names[j], _values(some, j))
        rows.append([name, *([used.get(names[j], "not used")] if used else [kind]), *rest])
    more = len(names) - len(rows)
    caption = "Columns" + (f" (the first {len(rows)}; {more} more)" if more > 0 else "")
    head = ["column", "used as" if used else "kind", "missing", "values", "from", "middle", "to"]
    title = f"{len(names):,} column{'s' * (len(names) != 1)}, one by one"
    return [folded(title, table(head, rows, caption))]


def _are_listed(case: Case) -> bool:
    return hasattr(case.X, "columns") or len(columns_of(case)) <= _NAMELESS


def _used_as(case: Case) -> dict[str, str]:
    """By column, what a step before the learner makes of it; empty where no step says so."""
    if case.found.sources is None:
        return {}
    features = case.found.steps.steps[0][1]
    told = features.describe()
    kinds = {name: f"{kind}: {told[name]}" for name, kind in features.kinds_.items()}
    kinds |= {name: told[name] for name in features.left_out_}
    # The columns of an array were given names that the table did not have.
    return (
        dict(zip(columns_of(case), kinds.values(), strict=False)) if len(kinds) == case.X.shape[1] else kinds
    )


def kind_of(case: Case) -> str:
    """What a point is, in words."""
    d = data.n_columns(case.X)
    if case.is_pairwise:
        return "given by its kernel values"
    if d is not None:
        kind = "a sparse row of" if sparse.issparse(case.X) else "a row of"
        return f"{kind} {d:,} column{'s' * (d != 1)}"
    first = data.take(case.X, np.array([0]))[0]
    if isinstance(first, str | bytes):
        return "a text"
    what = objects_of(case.found.kernel) or ""
    return _NAMES.get(what, f"an object ({type(first).__name__})")


def columns_of(case: Case) -> list[str]:
    """The names of the columns of X."""
    return list(column_names(case.X, case.X.shape[1], case.features))


def _task(case: Case) -> str:
    if case.found.classes is not None:
        return f"one of {len(case.found.classes)} classes"
    if case.is_regression:
        return "a number" if case.y.ndim == 1 else f"{case.y.shape[1]} numbers"
    return "nothing: what is typical is learned" if hasattr(case.model, "predict") else "nothing"


def _targets(case: Case) -> Html:
    if case.is_class:
        labels, counts = np.unique(case.y, return_counts=True)
        order = np.argsort(-counts, kind="stable")[:LISTED_CLASSES]
        rows = [[cut(str(labels[i]), 60), int(counts[i]), percent(counts[i] / case.n)] for i in order]
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


def _values(X: Points, j: int) -> np.ndarray:
    if sparse.issparse(X):
        return np.asarray(X[:, [j]].toarray()).ravel()
    column = data.columns(X, [j])
    return np.asarray(column).reshape(-1)


def _column(name: str, values: np.ndarray) -> list[Any]:
    if values.dtype.kind in "biuf":
        seen = values[np.isfinite(values)] if values.dtype.kind == "f" else values
        missing = len(values) - len(seen)
        if not len(seen):
            return [cut(name, 60), "number", missing, 0, None, None, None]
        middle = [float(v) for v in (seen.min(), np.median(seen), seen.max())]
        return [cut(name, 60), "number", missing, len(np.unique(seen)), *middle]
    if values.dtype.kind == "M":
        moments = np.sort(values[~np.isnat(values)])
        ends = [str(moments[i])[:10] if len(moments) else None for i in (0, len(moments) // 2, -1)]
        return [cut(name, 60), "date", len(values) - len(moments), len(np.unique(moments)), *ends]
    texts = [str(v) for v in values.tolist() if v is not None and v == v]
    words, counts = np.unique(texts, return_counts=True) if texts else (np.array([]), np.array([]))
    usual = cut(str(words[counts.argmax()]), 40) if len(words) else "–"
    return [cut(name, 60), "text", len(values) - len(texts), len(words), None, f"most often: {usual}", None]


def _many(case: Case) -> Html:
    X = data.take(case.X, case.some(2000))
    values = np.asarray(X.data if sparse.issparse(X) else X)
    if values.dtype.kind not in "biuf":
        return paragraph(f"{case.X.shape[1]:,} columns.")
    filled = np.count_nonzero(values) / max(1, X.shape[0] * X.shape[1])
    low, high = float(np.nanmin(values, initial=np.inf)), float(np.nanmax(values, initial=-np.inf))
    return paragraph(
        f"{X.shape[1]:,} columns of numbers from {number(low)} to {number(high)}; "
        f"{percent(filled, 0)} are not zero."
    )


def _objects(case: Case) -> list[Html]:
    what = objects_of(case.found.kernel)
    sizes = [size(point, what) for point in data.take(case.X, case.some(5000))]
    known = [found for found in sizes if found is not None]
    parts: list[Html] = []
    if known:
        quarter, half, most = np.quantile([count for count, _ in known], [0.25, 0.5, 1.0])
        facts = [("lower quartile", float(quarter)), ("most", float(most))]
        parts.append(definitions([(f"{known[0][1]}, median", float(half)), *facts]))
    rows = [[shown(case.X[i], what), cut(str(case.y[i]), 40)] for i in case.some(4)[:4]]
    head = ["point", "target"] if case.has_targets else ["point"]
    parts.append(table(head, [row[: len(head)] for row in rows], "Some of them", row_heads=False))
    return parts
