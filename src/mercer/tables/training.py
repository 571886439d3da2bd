r"""``train``: from a table to a model, with the error of the whole way and what a report of it needs.

>>> import tempfile, pathlib
>>> path = pathlib.Path(tempfile.mkdtemp()) / "sums.csv"
>>> _ = path.write_text("a,b,sum\n" + "".join(f"{i % 7},{i % 5},{i % 7 + i % 5}\n" for i in range(40)))
>>> training = train(path, "sum", kernel="linear", folds=2)
>>> training.target.task, training.honest.how, bool(training.honest.error < 0.1)
('regression', '2 folds, with the search done again in each', True)
>>> training.model.predict(training.X[4:6]).round(), training.target.y[4:6]
(array([8., 5.]), array([8., 5.]))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from mercer.data import points as data
from mercer.data.apart import LEAST_GROUPS, Apart, Groups, Times
from mercer.data.types import Points
from mercer.errors import InputError, InputTypeError
from mercer.kernels.columns.cells import gaps, values
from mercer.kernels.words import has_scales, in_words
from mercer.report import fit_notes
from mercer.runtime.clock import now
from mercer.runtime.config import memory_budget
from mercer.tables.calibrated import slopes_apart
from mercer.tables.dates import to_moments
from mercer.tables.features import TableFeatures
from mercer.tables.fitting import Fitting, Listener, Telling, held_back
from mercer.tables.formats import equally_spaced, read_table
from mercer.tables.honest import Honest, fitted_points
from mercer.tables.learners import learner as learner_of
from mercer.tables.model import TableModel
from mercer.tables.table import Table
from mercer.tables.target import Goal, Target, find_target

_MOST_ROWS = 100_000  # rows that are taken unasked where a machine is exact: it keeps or compares all of them
_COPIES = 16  # a fit on landmarks holds so many copies of the rows, and of their wider features
_BYTES_PER_SECOND = 8e6  # rows are taken for each second of the time; features of ten times as many are made
_FEWEST_ROWS = 4  # rows of which folds are made
_FOLDS = 5  # so many are made unasked, as everywhere in mercer
_HELD_OUT_FROM = 5000  # rows from which a tenth is held out before anything is fitted
_PATIENCE = 300.0  # seconds that folds may take where no time was given
#: bytes of text that are read for each second of the time: numbers become a frame at three times that speed.
#: The first second, or three quarters of a shorter time, go to the start of the process and to the model.
_READ, _START, _SHARE_READ = 1e7, 1.0, 0.25
_CALIBRATED = 5000  # rows up to which probabilities are learned unasked
_LONGER = 2.0  # times that a machine with probabilities takes, of one without


@dataclass(eq=False)
class Training:
    """What came of a training."""

    model: TableModel
    #: the error of the way to the model, on rows that no step of it had seen
    honest: Honest
    target: Target
    #: the rows that have a target, as the model takes them
    X: Points
    #: where they are from
    name: str
    #: what one should know of the table, of the target, of the time and of the fit
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def write_report(self, path: Any, **options: Any) -> Path:
        """One HTML page about the model; options are those of `mercer.reporting.write_report`."""
        from mercer import reporting

        given: dict[str, Any] = {
            "features": list(getattr(self.X, "columns", ())) or None,
            "trials": self.model.estimator_.trials_,
            "error": self.honest,
            "title": f"{self.target.name} from {Path(self.name).name}",
            "notes": self.notes,
        }
        return reporting.write_report(
            self.model.as_pipeline(), self.X, self.target.y, path, **given | options
        )


def train(
    table: Any,
    target: str | int | None = None,
    *,
    task: str | None = None,
    kernel: Any = "auto",
    learner: str = "auto",
    max_time: float | None = None,
    folds: int | None = None,
    rows: int | None = None,
    drop: Sequence[str | int] = (),
    keep: Sequence[str | int] = (),
    groups: str | int | None = None,
    times: str | int | None = None,
    probabilities: bool = False,
    seed: int = 0,
    tell: Listener | None = None,
    began: float | None = None,
    spare: float = 0.0,
) -> Training:
    """Choose, fit and check a kernel machine for a table; ``mercer train`` is its door.

    Parameters
    ----------
    table : a `Table` that was read, the path of one, the paths of its parts (`read_table`), or a polars frame
    target : the column to predict, by its name or position (1 is the first, -1 the last); None for the one
        that the file itself calls the target
    task : "classification" or "regression"; None looks at the column
    kernel : "auto", a kernel or its text, or a list of kernels
    learner : "auto", or one of `mercer.tables.learners.LEARNERS`
    max_time : seconds for all of it, about; None for as long as it takes
    folds : for the error, with the search done again in each; 0 holds out a tenth, and so does None of more
        than 5,000 rows. Of fewer None makes 5, and searches again in as many as have 200 rows: with the
        machine alone in all of them that gives an error of all rows (`mercer.selection.two_phase`)
    rows : so many rows at most, at equal distances. None for all, within memory and time; 100,000 where the
        machine is exact: other learners than ridge regression, and classes without a max_time
    drop, keep : columns to leave out, and to keep though they look like row numbers or codes
    groups : a column, no feature: rows with the same value in it are never separated by folds, so that the
        error is of the rows of new groups
    times : a column of numbers or dates: folds predict later rows from earlier ones, so that the error is of
        the future. It is a feature only if it is among those to ``keep``
    probabilities : whether classes get probabilities also from more than 5,000 rows, and out of time
    seed : of everything that is drawn at random
    tell : hears what is done (``step(text)``) and what one should know (``note(text)``) as it happens
    began : when the time began, on the clock of `mercer.runtime.clock`; None for now
    spare : seconds of the time that stay for what comes after: the model file, the report
    """
    started, telling = now(), Telling(tell)
    began = started if began is None else began
    table, kernel = _as_table(table, max_time), as_kernels(kernel)
    X, found = split(table, target, task, _without(table, drop, keep, groups, times))
    belongs = _apart(table, found, groups, times)
    most, why = _room(X, found, learner, max_time) if rows is None else (rows, "as was asked for")
    places = found.rows
    X, found = _thinned(X, found, most, why)
    if belongs is not None and len(found.rows) < len(places):
        belongs = belongs.take(np.searchsorted(places, found.rows))
    estimator = learner_of(learner, found.task, kernel=kernel, max_time=None, seed=seed)
    for note in (*table.notes, *found.notes):
        telling.note(note)
    features = TableFeatures(keep=[table.find(column) for column in keep], dates=table.dates)
    blank = TableModel(estimator, features)
    if has_scales(kernel) and table.frame is not None:  # a fold may have other categories
        blank.features = FrozenEstimator(clone(features).fit(X, found.y))
    fitting = Fitting(blank, X, found.y, seed, telling, apart=belongs)
    if max_time is not None:
        fitting.end = began + max_time - spare
    elif not folds:
        fitting.patience = began + _PATIENCE
    with held_back():
        model, honest = _fit(fitting, folds, found.task)
        model.features = features
        if found.task == Goal.CLASSIFICATION and (probabilities or len(found.y) <= _CALIBRATED):
            end = np.inf if max_time is None or probabilities else began + max_time
            _calibrate(model, X, found.y, end, telling, belongs)
    for note in (*_left_out(model), *fit_notes(model.estimator_)):
        telling.note(note)
    if found.task == Goal.REGRESSION:
        model.left_out_errors_ = np.sort(np.abs(honest.predictions - found.y[honest.rows]))
    model.about_ = _about(table.name, found, honest, model)
    if belongs is not None:
        column = table.find(groups if groups is not None else times)
        model.about_["apart"] = {"by": belongs.option, "column": column, "count": belongs.count}
    return Training(model, honest, found, X, table.name, telling.notes, now() - started)


# --- the rows ------------------------------------------------------------------------------------------


def readable_bytes(max_time: float | None) -> int | None:
    """How much text is read within a time, so that most of the time is left to learn from it."""
    if max_time is None:
        return None
    return max(int(_READ * max(max_time - _START, _SHARE_READ * max_time)), 1)


def _as_table(given: Any, max_time: float | None) -> Table:
    if isinstance(given, Table):
        return given
    is_list = isinstance(given, list | tuple) and given and all(isinstance(one, str | Path) for one in given)
    if is_list or isinstance(given, str | Path):
        return read_table(given, most=readable_bytes(max_time))
    if hasattr(given, "get_column_index"):  # a frame of polars
        return Table(given, "the table", "frame")
    raise InputTypeError(
        f"a table is a Table, a path or a polars frame, got {type(given).__name__}: pass one of "
        "these, or use TableModel for other frames"
    )


def split(
    table: Table, column: str | int | None, task: str | None, drop: Sequence[str | int] = ()
) -> tuple[Any, Target]:
    """The points with a target, and the targets; without the columns to drop."""
    if column is None:
        if table.label is None:
            names = ", ".join(map(repr, table.columns[:12])) + (", …" if len(table.columns) > 12 else "")
            raise InputError(f"say which column to predict with target=…: {table.name} has {names}")
        column = table.label
    name = table.find(column)
    if table.frame is None:
        if name != table.label:
            raise InputError(
                f"{table.name} has too many columns to predict {name!r}: its labels can be predicted"
            )
        assert table.labels is not None and table.matrix is not None
        target = find_target(np.asarray(table.labels), name, task)
        return table.matrix[target.rows], target
    target = find_target(values(table.frame, table.columns.index(name)), name, task)
    X = table.frame.drop([name, *(table.find(other) for other in drop)])
    if X.width == 0:
        raise InputError(
            f"{table.name} has no column but the target {name!r}: pass columns to predict it from"
        )
    return X[target.rows] if len(target.rows) < table.rows else X, target


def _without(
    table: Table,
    drop: Sequence[str | int],
    keep: Sequence[str | int],
    groups: str | int | None,
    times: str | int | None,
) -> list[str | int]:
    """The columns that are no features: those to drop, that of the groups, and that of the times."""
    found = list(drop)
    if groups is not None:
        if table.find(groups) in map(table.find, keep):
            raise InputError(
                f"{table.find(groups)!r} is to be kept, and is the column of the groups: a new group has a "
                "new value, of which nothing was learned; leave one of the two out"
            )
        found.append(groups)
    if times is not None and table.find(times) not in map(table.find, keep):
        found.append(times)
    return list(dict.fromkeys(map(table.find, found)))


def _apart(table: Table, target: Target, groups: str | int | None, times: str | int | None) -> Apart | None:
    """What the rows with a target belong to."""
    if groups is None and times is None:
        return None
    if groups is not None and times is not None:
        raise InputError(
            "groups=… and times=… are both given, and folds are by one of them: groups=… is for an error of "
            "new groups, times=… for that of the future"
        )
    column = table.find(groups if groups is not None else times)  # type: ignore[arg-type]
    if table.frame is None:
        raise InputError(f"{table.name} has too many columns to take {column!r} for groups or times")
    if column == target.name:
        raise InputError(f"{column!r} is the target: name another column for groups or times")
    cells = values(table.frame, table.columns.index(column))
    is_gap = gaps(cells)[target.rows]
    if is_gap.any():
        row = int(target.rows[np.argmax(is_gap)]) + 1
        raise InputError(
            f"column {column!r} is missing in {is_gap.sum():,} rows, the first is row {row}: fill it in, "
            "or leave these rows out"
        )
    if groups is None and (order := table.dates.get(column)):
        cells = to_moments(cells, order, column)
    cells, name = cells[target.rows], f"column {column!r}"
    if groups is None:
        return Times.of(cells, len(cells), name)
    return Groups.of(cells, len(cells), name)


def _room(X: Any, target: Target, learner: str, max_time: float | None) -> tuple[int, str]:
    """How many rows are taken unasked, and why no more; a last fit on landmarks takes all there are."""
    if learner not in ("auto", "svm" if target.task == Goal.CLASSIFICATION else "ridge"):
        return _MOST_ROWS, f"for {learner} compares all of them"
    row = _row_bytes(X, len(target.y))
    room = int(memory_budget() / (_COPIES * row)), "as many as the memory budget has room for"
    if max_time is None:
        return room
    return min(
        room, (max(_MOST_ROWS, int(_BYTES_PER_SECOND * max_time / row)), "as many as there is time for")
    )


def _row_bytes(X: Any, n: int) -> float:
    """The bytes of a row: numbers of eight at least, and its texts."""
    if hasattr(X, "estimated_size"):
        return max(8.0 * X.width, X.estimated_size() / n)
    return 12.0 * X.nnz / n + 8.0 if hasattr(X, "nnz") else 8.0 * X.shape[1]


def _thinned(X: Points, target: Target, most: int, why: str) -> tuple[Any, Target]:
    """At most so many rows, at equal distances."""
    n = len(target.y)
    if n <= most:
        return X, target
    rows = equally_spaced(n, most)
    note = f"{most:,} of the {n:,} rows were taken, at equal distances, {why}: rows=N takes others, also more"
    thinned = replace(target, y=target.y[rows], rows=target.rows[rows], notes=(*target.notes, note))
    return data.take(X, rows), thinned


# --- the model -----------------------------------------------------------------------------------------


def as_kernels(given: Any) -> Any:
    """A kernel from its text; "auto" without one, and kernels as they are."""
    if given is None or (isinstance(given, str) and given.strip().lower() == "auto"):
        return "auto"
    if not isinstance(given, str):
        return given
    from mercer.kernels.parse import parse_kernel

    return parse_kernel(given)


def _fit(fitting: Fitting, asked: int | None, task: Goal) -> tuple[TableModel, Honest]:
    """The model of all rows, and the error of the way to it: by folds, or on a held-out tenth."""
    y = fitting.y
    if asked in (0, 1) or (asked is None and len(y) > _HELD_OUT_FROM):
        return fitting.by_held_out()
    if fitting.apart is not None:
        return fitting.by_folds(_parts_apart(asked, fitting.apart))
    parts = _parts(asked or min(_FOLDS, len(y)), y, task)
    if asked and parts < asked:
        fitting.telling.note(f"{parts} folds instead of {asked}: the smallest class has no more rows")
    return fitting.by_folds(parts, every=bool(asked))


def _parts_apart(asked: int | None, apart: Apart) -> int:
    """As many folds as are asked for; each must leave enough for a search."""
    apart.require(LEAST_GROUPS + 1, "a search in folds takes")
    if asked is not None and asked > apart.count:
        raise InputError(
            f"{asked} folds of {apart.count} {apart.word}s cannot be made: pass a smaller number of folds"
        )
    return asked or min(_FOLDS, apart.count)


def _parts(asked: int, y: np.ndarray, task: Goal) -> int:
    """No more folds than the smallest class has rows, where that is two or more."""
    if task == Goal.CLASSIFICATION:
        counts = np.unique(y, return_counts=True)[1]
        asked = min(asked, max(2, int(counts.min())))
    if len(y) < _FEWEST_ROWS:
        raise InputError(
            f"there are {len(y)} rows with a target, too few for an error: pass {_FEWEST_ROWS} or more"
        )
    if asked > len(y):
        raise InputError(f"{asked} folds of {len(y)} rows cannot be made: pass a smaller number of folds")
    return asked


def _calibrate(
    model: TableModel, X: Points, y: np.ndarray, end: float, telling: Telling, apart: Apart | None
) -> None:
    """Let a support vector machine say probabilities too, if that does not take until after the end.

    They are learned from values left out: of single rows in closed form, else in folds that keep rows apart.
    """
    inner: Any = getattr(model.estimator_, "model_", None)
    if "probability" not in getattr(inner, "get_params", dict)():
        return
    longer = _LONGER if apart is None else _LONGER + _FOLDS
    if now() + longer * inner.report_.time * (len(y) / fitted_points(model, len(y))) ** 2.2 > end:
        telling.note("no time is left to learn probabilities: probabilities=True learns them all the same")
        return
    try:
        Z = model.transform(X)
        calibrated = clone(inner).set_params(probability=True).fit(Z, y)
    except InputError:  # too few of a class for the folds of a calibration
        return
    if apart is not None:
        slopes = slopes_apart(calibrated, Z, y, apart.folds(min(_FOLDS, apart.count), 0, y))
        if slopes is None:
            telling.note(
                f"no probabilities were learned: folds that keep each {apart.word} apart do not tell of both "
                "sides of some pair of classes"
            )
            return
        calibrated.slopes_ = slopes
    model.estimator_.model_ = calibrated
    model.estimator_.expansion_ = calibrated.expansion_


def _left_out(model: TableModel) -> list[str]:
    """The columns that one may want back."""
    features = model.features_
    which = [] if features is None else [name for name in features.left_out_ if features.kinds_[name] == "id"]
    return [
        f"{name!r} was left out: each row has a value of its own; keep=[{name!r}] keeps it" for name in which
    ]


def _about(name: str, target: Target, honest: Honest, model: TableModel) -> dict[str, Any]:
    """What the model's file says of it."""
    from mercer import __version__

    facts: dict[str, Any] = {
        "mercer": __version__,
        "source": Path(name).name,
        "rows": len(target.y),
        "target": target.name,
        "task": str(target.task),
        "error": float(honest.error),
        "interval": [float(honest.interval[0]), float(honest.interval[1])],
        "error_from": f"{honest.how}; {honest.differs}" if honest.differs else honest.how,
        "baseline": float(honest.baseline),
        "tested": honest.tested,
        "fitted": fitted_points(model, len(target.y)),
        "kernel": in_words(model.estimator_.kernel_, model.get_feature_names_out().tolist()),
    }
    if target.task == Goal.REGRESSION:
        facts["spread"] = float(np.std(target.y))
    return facts
