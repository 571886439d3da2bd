"""``mercer predict`` and ``mercer report``: a model file and a table."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mercer.cli.files import report_beside, require_outputs, tables
from mercer.cli.screen import Screen
from mercer.data import points as data
from mercer.errors import InputError
from mercer.estimators.shared.sets import likely
from mercer.runtime.config import config, memory_budget
from mercer.runtime.files import aside
from mercer.tables import Table, TableModel, read_table
from mercer.tables.frames import write_csv
from mercer.tables.target import Goal
from mercer.verdict import percent

_MOST_ROWS, _FEWEST_ROWS = 65_536, 1024  # rows that are predicted at a time, by the memory there is


def load_table_model(path: Path) -> TableModel:
    """A model that ``mercer train`` wrote."""
    import mercer

    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise InputError(f"the model {str(path)!r} {what}: pass a file that 'mercer train' wrote")
    model = mercer.load(path)
    if not isinstance(model, TableModel):
        raise InputError(
            f"{path} holds a {type(model).__name__}, which takes no tables: use it from Python, or 'mercer "
            "mail' for a filter of mails"
        )
    return model


def predict(
    model_path: Path,
    files: Sequence[str],
    *,
    output: Path | None = None,
    proba: bool = False,
    interval: float | None = None,
    memory: str | None = None,
    missing: Sequence[str] = (),
    header: bool | None = None,
    screen: Screen,
) -> int:
    """A CSV of the table with the prediction in its last column; probabilities and intervals before it."""
    require_outputs({"--output": output}, {"the model": model_path, **tables(files)})
    settings: Any = {} if memory is None else {"memory": memory}
    with config(**settings):
        model = load_table_model(model_path)
        if proba and not hasattr(model, "predict_proba"):
            raise InputError(
                "this model knows no probabilities: train one for classes with --proba, or --learner logistic"
            )
        if interval is not None:
            _require_interval(model, interval)
        table = read_table(files, header=header, missing=missing, texts=True)
        for note in (*table.notes, *_unseen(model, table)):
            screen.note(note)
        predicted, probabilities, ends = _predictions(model, table, proba, interval, screen)
        added: dict[str, Any] = {}
        if proba:
            for label, column in zip(model.classes_.tolist(), probabilities.T, strict=True):
                added[_free(f"P({label})", table, added)] = column
        if interval is not None:
            screen.note(f"the intervals: {model.interval_guarantee(interval)}")
            added |= _columns(model, ends, table, added)
        added[_free("prediction", table, added)] = predicted
    _compare(model, table, predicted, screen)
    if interval is not None:
        _compare_intervals(model, table, ends, screen)
    frame = None if table.format == "libsvm" else table.as_written()
    if output is None:
        buffer = io.BytesIO()
        write_csv(frame, added, buffer)
        _to_standard_output(buffer.getvalue())
        return 0
    with aside(output) as place, place.open("wb") as stream:
        write_csv(frame, added, stream)
    screen.step(f"{len(predicted):,} predictions in {output}")
    return 0


def _require_interval(model: TableModel, coverage: float) -> None:
    if not 0 < coverage < 1:
        raise InputError(f"--interval must be between 0 and 1, got {coverage}: pass 0.9 for 90 %")
    if hasattr(model, "classes_") and not hasattr(model, "predict_set"):
        raise InputError(
            "this model knows no probabilities, and has no sets of classes: train one with --proba, or "
            "--learner logistic"
        )
    if not hasattr(model, "classes_") and not hasattr(model, "predict_interval"):
        raise InputError("this model knows no intervals: train it again with 'mercer train'")


def _columns(model: TableModel, ends: np.ndarray, table: Table, taken: dict[str, Any]) -> dict[str, Any]:
    """The columns of intervals, "lower" and "upper", or of sets of classes, "set"."""
    if not hasattr(model, "classes_"):
        return {_free(name, table, taken): ends[:, j] for j, name in enumerate(("lower", "upper"))}
    labels = np.array([str(label) for label in model.classes_.tolist()], dtype=object)
    return {_free("set", table, taken): np.array([" | ".join(labels[row]) for row in ends], dtype=object)}


def _predictions(
    model: TableModel, table: Table, proba: bool, interval: float | None, screen: Screen
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # (n,), (n, classes), (n, 2) or (n, classes) bool
    """Block by block, for the features of all rows may take much more memory than the table."""
    width = len(model.get_feature_names_out())
    block = int(np.clip(memory_budget() // (16 * 8 * width), _FEWEST_ROWS, _MOST_ROWS))
    is_class = hasattr(model, "classes_")
    predicted, probabilities, ends = [], [], []
    for start in range(0, table.rows, block):
        try:
            Z = model.transform(table.at(slice(start, start + block)))
        except InputError as error:
            where = f" (rows are counted from row {start + 1:,} on)" if start else ""
            raise type(error)(f"{error}{where}") from None
        predicted.append(np.asarray(model.estimator_.predict(Z)))
        nothing = np.empty((len(predicted[-1]), 0))
        probabilities.append(model.probabilities(Z) if proba or (interval and is_class) else nothing)
        if interval is None:
            ends.append(nothing)
        elif is_class:
            ends.append(likely(probabilities[-1], interval))
        else:
            ends.append(model.interval(Z, interval, predicted[-1]))
        if table.rows > block:
            screen.step(f"predicted {min(start + block, table.rows):,} of {table.rows:,} rows")
    return np.concatenate(predicted), np.concatenate(probabilities), np.concatenate(ends)


def _unseen(model: TableModel, table: Table) -> list[str]:
    """Categories that no training row had."""
    if model.features_ is None or table.frame is None:
        return []
    return [
        f"{name!r} has values that no training row had: {', '.join(map(repr, labels[:3]))}"
        + (f" and {len(labels) - 3:,} more" if len(labels) > 3 else "")
        for name, labels in model.features_.unseen(table.frame).items()
    ]


def _to_standard_output(content: bytes) -> None:
    stream = getattr(sys.stdout, "buffer", None)
    if stream is None:  # What replaced it takes text only.
        sys.stdout.write(content.decode("utf-8"))
    else:
        sys.stdout.flush()
        left = memoryview(content)
        while left:  # where nothing is buffered (python -u), a part may be written at a time
            left = left[stream.write(left) :]
    sys.stdout.flush()


def _free(name: str, table: Table, taken: dict[str, Any]) -> str:
    """The name, or with underscores where the table has such a column."""
    while name in taken or (table.frame is not None and name in table.frame.columns):
        name += "_"
    return name


def _compare(model: TableModel, table: Table, predicted: np.ndarray, screen: Screen) -> None:
    """Say the error where the table has the target too."""
    name, known, truth = _targets(model, table)
    if not known.any():
        return
    found = predicted[known]
    if model.about_["task"] == Goal.CLASSIFICATION:
        wrong = float(np.mean([told != label for told, label in zip(_labels(found), truth, strict=True)]))
        screen.note(
            f"the table has {name!r} too: {percent(wrong)} of {len(found):,} predictions differ from it"
        )
        return
    error = float(np.sqrt(np.mean((found - truth) ** 2)))
    screen.note(f"the table has {name!r} too: the root mean square error is {error:.4g}")


def _compare_intervals(model: TableModel, table: Table, ends: np.ndarray, screen: Screen) -> None:
    """Say how many targets are inside, where the table has them."""
    name, known, truth = _targets(model, table)
    if not known.any():
        return
    found, count = ends[known], int(known.sum())
    if model.about_["task"] == Goal.CLASSIFICATION:
        labels = [frozenset(_labels(model.classes_[row])) for row in found]
        inside = float(np.mean([label in those for label, those in zip(truth, labels, strict=True)]))
        screen.note(f"{percent(inside)} of {count:,} values of {name!r} are in their sets")
        return
    inside = float(np.mean((found[:, 0] <= truth) & (truth <= found[:, 1])))
    screen.note(f"{percent(inside)} of {count:,} values of {name!r} are in their intervals")


def _labels(given: Any) -> list[str]:
    from mercer.tables.encoders import as_label

    return [as_label(one) for one in given.tolist()]


def _targets(model: TableModel, table: Table) -> tuple[str, np.ndarray, Any]:
    """The name of the target, the rows of the table that have it, and their labels or numbers."""
    about = getattr(model, "about_", {})
    name, none = str(about.get("target")), np.zeros(table.rows, np.bool_)
    if "target" not in about or table.frame is None or name not in table.frame.columns:
        return name, none, None
    from mercer.kernels.columns.cells import gaps, values
    from mercer.tables.encoders import as_numbers

    column = values(table.frame, table.columns.index(name))
    known = ~gaps(column)
    if about["task"] == Goal.CLASSIFICATION:
        return name, known, _labels(column[known])
    try:
        return name, known, as_numbers(column[known], name)
    except InputError:  # The targets are no numbers, so that there is nothing to say.
        return name, none, None


def report(
    model_path: Path,
    files: Sequence[str],
    *,
    output: Path | None,
    missing: Sequence[str] = (),
    header: bool | None = None,
    screen: Screen,
) -> int:
    """A report of a model on a table that has the target."""
    from mercer.cli.exits import as_options
    from mercer.cli.summary import error_at_training
    from mercer.report import fit_notes
    from mercer.reporting import write_report
    from mercer.tables.training import split

    path = output or report_beside(model_path)
    require_outputs({"--output": path}, {"the model": model_path, **tables(files)})
    model = load_table_model(model_path)
    about = getattr(model, "about_", {})
    if "target" not in about:
        raise InputError(
            f"{model_path} does not say which column it predicts, for it was saved from Python: "
            "write its report there, with mercer.reporting.write_report"
        )
    table = read_table(files, header=header, missing=missing)
    for note in table.notes:
        screen.note(note)
    X, target = split(table, about["target"], about["task"])
    if table.format == "libsvm":  # zeros are not written: the last columns may be absent, or new
        X = data.take(model.points_of(table), target.rows)
    with aside(path) as place:
        write_report(
            model.as_pipeline(),
            X,
            target.y,
            place,
            features=list(getattr(X, "columns", ())) or None,
            trials=model.estimator_.trials_,
            title=f"{target.name} from {Path(table.name).name}",
            error=error_at_training(model, X, target.y),
            notes=list(map(as_options, fit_notes(model.estimator_))),
            limit=np.inf,
        )
    print(path)
    return 0
