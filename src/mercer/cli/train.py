"""``mercer train``: a table, its task, features, a search, an honest error, a model file, a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from mercer.cli.exits import as_options
from mercer.cli.files import report_beside, require_apart, require_writable, stem
from mercer.cli.fitting import Fitting
from mercer.cli.honest import Honest, fitted_points
from mercer.cli.notes import held_back
from mercer.cli.screen import Screen
from mercer.cli.summary import show_training, told_apart
from mercer.data import points as data
from mercer.data.types import Model, Points
from mercer.errors import InputError, require_installed
from mercer.kernels.words import has_scales, in_words
from mercer.reporting.notes import fit_notes
from mercer.runtime.clock import now
from mercer.runtime.config import config
from mercer.runtime.files import aside
from mercer.tables import Table, TableFeatures, TableModel, Target, find_target, read_table
from mercer.tables.formats import equally_spaced
from mercer.tables.learners import learner
from mercer.tables.source import STANDARD_INPUT

__all__ = ["Training", "Wishes", "train"]

_MOST = 100_000  # rows that are taken unasked: a kernel machine keeps or compares all of them
_FEWEST = 4  # rows of which folds are made
_LARGE = 5000  # rows from which a tenth is held out before anything is fitted
_PATIENCE = 300.0  # seconds that folds may take where no time was given
_CALIBRATED = 5000  # rows up to which probabilities are learned unasked
_LONGER = 2.0  # times that a machine with probabilities takes, of one without
#: of the time that was given, for the report: this part, a larger one up to the seconds that a page with all
#: its pictures takes, and at most so many seconds
_REPORT, _SHORT, _PICTURES, _PAGE = 0.2, 0.35, 3.0, 18.0
_SAVING = 0.3  # seconds to write the model, about


@dataclass(frozen=True)
class Wishes:
    """What was asked for on the command line."""

    file: str
    target: str | None = None
    task: str | None = None
    kernel: str | None = None
    learner: str = "auto"
    time: float | None = None
    memory: str | None = None
    seed: int = 0
    output: Path | None = None
    report: Path | None = None
    folds: int | None = None
    rows: int | None = None
    missing: Sequence[str] = ()
    header: bool | None = None
    drop: Sequence[str] = ()
    keep: Sequence[str] = ()
    probabilities: bool = False
    explain: bool = False
    with_report: bool = True

    @property
    def model_path(self) -> Path:
        return self.output or Path(f"{stem(self.file)}.mercer")

    @property
    def report_path(self) -> Path:
        return self.report or report_beside(self.model_path)


@dataclass(eq=False)
class Training:
    """What came of it."""

    table: Table
    target: Target
    model: TableModel
    honest: Honest
    seconds: float
    model_path: Path
    report_path: Path | None = None
    notes: list[str] = field(default_factory=list)
    #: the columns that tell rows apart most, by the kernel's scales; empty where these say nothing
    apart: str = ""


def train(wishes: Wishes, screen: Screen) -> int:
    """Do it all; the exit status."""
    _check(wishes)
    wishes = _with_extras(wishes, screen)
    settings: dict[str, Any] = {"progress": False} if screen.quiet else {}
    if wishes.memory is not None:
        settings["memory"] = wishes.memory
    with config(**settings), screen.countdown(wishes.time), held_back():
        training = _train(wishes, screen)
    show_training(training, wishes.explain, screen)
    return 0


def _check(wishes: Wishes) -> None:
    """Whatever can be refused before the file is read."""
    if wishes.time is not None and not 0 < wishes.time < float("inf"):
        raise InputError(f"--time must be a positive number of seconds, got {wishes.time}")
    if wishes.folds is not None and wishes.folds < 0:
        raise InputError(f"--folds must be 2 or more, or 0 to hold out a tenth, got {wishes.folds}")
    if wishes.seed < 0 or wishes.seed >= 2**32:
        raise InputError(f"--seed must be from 0 to 4294967295, got {wishes.seed}")
    outputs = {"--output": wishes.model_path}
    if wishes.with_report:
        outputs["--report"] = wishes.report_path
    for path in outputs.values():
        require_writable(path)
    require_apart(outputs, {"the table": wishes.file})


def _with_extras(wishes: Wishes, screen: Screen) -> Wishes:
    """Say before the search what the command will lack after it; a report may be done without."""
    require_installed("skops", "models")
    if not wishes.with_report:
        return wishes
    try:
        require_installed("matplotlib", "plot")
    except ImportError as error:
        if wishes.report is not None:
            raise
        screen.note(f"no report will be written: {error}")
        return replace(wishes, with_report=False)
    return wishes


def _train(wishes: Wishes, screen: Screen) -> Training:
    from sklearn.base import clone
    from sklearn.frozen import FrozenEstimator

    import mercer.selection  # noqa: F401  before the clock begins: it takes a while

    started, began = monotonic(), now()
    kernel = parse(wishes.kernel)
    screen.step(f"reading {wishes.file if wishes.file != STANDARD_INPUT else 'standard input'}")
    table = read_table(wishes.file, header=wishes.header, missing=wishes.missing, rows=wishes.rows)
    X, target = split(table, wishes.target, wishes.task, wishes.drop)
    if wishes.rows is None:
        X, target = _thinned(X, target)
    estimator = learner(wishes.learner, target.task, kernel=kernel, max_time=None, seed=wishes.seed)
    notes = [*table.notes, *target.notes]
    for note in notes:
        screen.note(note)
    keep = [table.find(column) for column in wishes.keep]
    features = TableFeatures(keep=keep, dates=table.dates)
    blank = TableModel(estimator, features)
    if has_scales(kernel) and table.frame is not None:  # a fold may have other categories
        blank.features = FrozenEstimator(clone(features).fit(X, target.y))
    page = _page_seconds(wishes)
    model, honest = _fit(blank, X, target, wishes, screen, began, page + _SAVING)
    model.features = features
    if target.task == "classification" and (wishes.probabilities or len(target.y) <= _CALIBRATED):
        end = np.inf if wishes.time is None or wishes.probabilities else began + wishes.time
        _calibrate(model, X, target.y, end, screen)
    for note in (*_left_out(model), *map(as_options, fit_notes(model.estimator_))):
        notes.append(note)
        screen.note(note)
    model.about_ = _about(table, target, honest, model)
    training = Training(table, target, model, honest, monotonic() - started, wishes.model_path, notes=notes)
    training.apart = told_apart(model, X)
    save(model, wishes.model_path)
    if wishes.with_report:
        screen.step(f"the model is in {wishes.model_path}; writing the report")
        seconds = page if wishes.time is None else max(began + wishes.time - now(), 0.0)
        training.report_path = write_report(training, X, wishes.report_path, screen, min(seconds, _PAGE))
    training.seconds = monotonic() - started
    return training


def _page_seconds(wishes: Wishes) -> float:
    """What is kept of the time for the report."""
    if not wishes.with_report:
        return 0.0
    if wishes.time is None:
        return _PAGE
    return min(max(_REPORT * wishes.time, min(_SHORT * wishes.time, _PICTURES)), _PAGE)


def _fit(
    blank: TableModel,
    X: Points,
    target: Target,
    wishes: Wishes,
    screen: Screen,
    began: float,
    kept: float,  # seconds for what comes after
) -> tuple[TableModel, Honest]:
    """The model of all rows, and the error of the way to it: by folds, or on a held-out tenth."""
    y, fitting = target.y, Fitting(blank, X, target.y, wishes.seed, screen)
    if wishes.time is not None:
        fitting.end = began + wishes.time - kept
    elif not wishes.folds:
        fitting.patience = began + _PATIENCE
    if _holds_out(wishes, len(y)):
        return fitting.by_held_out()
    folds = _folds(wishes.folds or 5, y, target.task)
    if wishes.folds and folds < wishes.folds:
        screen.note(f"{folds} folds instead of {wishes.folds}: the smallest class has no more rows")
    return fitting.by_folds(folds)


def _holds_out(wishes: Wishes, n: int) -> bool:
    """Whether a tenth of n rows is held out, instead of folds."""
    return wishes.folds in (0, 1) or (wishes.folds is None and n > _LARGE)


def _folds(asked: int, y: np.ndarray, task: str) -> int:
    """No more folds than the smallest class has rows, where that is two or more."""
    if task == "classification":
        counts = np.unique(y, return_counts=True)[1]
        asked = min(asked, max(2, int(counts.min())))
    if len(y) < _FEWEST:
        raise InputError(
            f"there are {len(y)} rows with a target, too few for an error: pass {_FEWEST} or more"
        )
    if asked > len(y):
        raise InputError(f"{asked} folds of {len(y)} rows cannot be made: pass a smaller --folds")
    return asked


# --- the parts ---------------------------------------------------------------------------------------------


def parse(text: str | None) -> Any:
    """A kernel from its text; "auto" without one."""
    if text is None or text.strip().lower() == "auto":
        return "auto"
    from mercer.kernels.parse import parse_kernel

    return parse_kernel(text)


def _left_out(model: TableModel) -> list[str]:
    """What one may want back."""
    features = model.features_
    which = [] if features is None else [name for name in features.left_out_ if features.kinds_[name] == "id"]
    return [
        f"{name!r} was left out: each row has a value of its own; --keep {name!r} keeps it" for name in which
    ]


def split(table: Table, column: str | None, task: str | None, drop: Sequence[str] = ()) -> tuple[Any, Target]:
    """The points with a target, and the targets; without the columns to drop."""
    from mercer.kernels.columns.cells import values
    from mercer.tables.frames import without

    if column is None:
        if table.label is None:
            names = ", ".join(map(repr, table.columns[:12])) + (", …" if len(table.columns) > 12 else "")
            raise InputError(f"say which column to predict with --target: {table.name} has {names}")
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
    X = without(table.frame, [name, *(table.find(other) for other in drop)])
    if X.width == 0:
        raise InputError(
            f"{table.name} has no column but the target {name!r}: pass columns to predict it from"
        )
    return X[target.rows] if len(target.rows) < table.rows else X, target


def _thinned(X: Points, target: Target) -> tuple[Any, Target]:
    """At most so many rows as a kernel machine can take, at equal distances."""
    n = len(target.y)
    if n <= _MOST:
        return X, target
    rows = equally_spaced(n, _MOST)
    note = f"{_MOST:,} of the {n:,} rows were taken, at equal distances: --rows N takes others, also more"
    thinned = replace(target, y=target.y[rows], rows=target.rows[rows], notes=(*target.notes, note))
    return data.take(X, rows), thinned


def _calibrate(model: TableModel, X: Points, y: np.ndarray, end: float, screen: Screen) -> None:
    """Let a support vector machine say probabilities too, if that does not take until after the end."""
    inner: Any = getattr(model.estimator_, "model_", None)
    if "probability" not in getattr(inner, "get_params", dict)():
        return
    if now() + _LONGER * inner.report_.time * (len(y) / fitted_points(model, len(y))) ** 2.2 > end:
        screen.note("no time is left to learn probabilities: --proba learns them all the same")
        return
    from sklearn.base import clone

    try:
        calibrated = clone(inner).set_params(probability=True).fit(model.transform(X), y)
    except InputError:  # too few of a class for the folds of a calibration
        return
    model.estimator_.model_ = calibrated
    model.estimator_.expansion_ = calibrated.expansion_


def _about(table: Table, target: Target, honest: Honest, model: TableModel) -> dict[str, Any]:
    from mercer import __version__

    facts: dict[str, Any] = {
        "mercer": __version__,
        "source": Path(table.name).name,
        "rows": len(target.y),
        "target": target.name,
        "task": target.task,
        "error": float(honest.error),
        "interval": [float(honest.interval[0]), float(honest.interval[1])],
        "error_from": f"{honest.how}; {honest.differs}" if honest.differs else honest.how,
        "baseline": float(honest.baseline),
        "tested": len(honest.rows),
        "fitted": fitted_points(model, len(target.y)),
        "kernel": in_words(model.estimator_.kernel_, model.get_feature_names_out().tolist()),
    }
    if target.task == "regression":
        facts["spread"] = float(np.std(target.y))
    return facts


def save(model: Model, path: Path) -> None:
    """The model file, written aside and renamed."""
    import mercer

    with aside(path) as place:
        mercer.save(model, place)


def write_report(training: Training, X: Points, path: Path, screen: Screen, limit: float) -> Path | None:
    """The report's path; None, and a note, where none could be written."""
    try:
        from mercer.reporting import write_report as write
    except ImportError:
        screen.note("no report was written: this version of mercer has none")
        return None
    try:
        with aside(path) as place:
            write(
                training.model.as_pipeline(),
                X,
                training.target.y,
                place,
                features=list(getattr(X, "columns", ())) or None,
                trials=training.model.estimator_.trials_,
                error=training.honest,
                limit=limit,
                title=f"{training.target.name} from {Path(training.table.name).name}",
                notes=training.notes,
            )
    except (InputError, ImportError) as reason:  # the model is there, and is what was asked for
        screen.note(f"no report was written: {reason}")
        return None
    return path
