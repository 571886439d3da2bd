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
from mercer.runtime.config import config, memory_budget
from mercer.runtime.files import aside
from mercer.tables import Table, TableModel, read_table
from mercer.tables.frames import write_csv
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
    memory: str | None = None,
    missing: Sequence[str] = (),
    header: bool | None = None,
    screen: Screen,
) -> int:
    """A CSV of the table with the prediction in its last column; probabilities before it."""
    require_outputs({"--output": output}, {"the model": model_path, **tables(files)})
    settings: Any = {} if memory is None else {"memory": memory}
    with config(**settings):
        model = load_table_model(model_path)
        if proba and not hasattr(model, "predict_proba"):
            raise InputError(
                "this model knows no probabilities: train one for classes with --proba, or --learner logistic"
            )
        table = read_table(files, header=header, missing=missing, texts=True)
        for note in (*table.notes, *_unseen(model, table)):
            screen.note(note)
        predicted, probabilities = _predictions(model, table, proba, screen)
        added: dict[str, Any] = {}
        if proba:
            for label, column in zip(model.classes_.tolist(), probabilities.T, strict=True):
                added[_free(f"P({label})", table, added)] = column
        added[_free("prediction", table, added)] = predicted
    _compare(model, table, predicted, screen)
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


def _predictions(
    model: TableModel, table: Table, proba: bool, screen: Screen
) -> tuple[np.ndarray, np.ndarray]:  # (n,), (n, classes)
    """Block by block, for the features of all rows may take much more memory than the table."""
    width = len(model.get_feature_names_out())
    block = int(np.clip(memory_budget() // (16 * 8 * width), _FEWEST_ROWS, _MOST_ROWS))
    predicted, probabilities = [], []
    for start in range(0, table.rows, block):
        try:
            Z = model.transform(table.at(slice(start, start + block)))
        except InputError as error:
            where = f" (rows are counted from row {start + 1:,} on)" if start else ""
            raise type(error)(f"{error}{where}") from None
        predicted.append(np.asarray(model.estimator_.predict(Z)))
        probabilities.append(model.probabilities(Z) if proba else np.empty((len(predicted[-1]), 0)))
        if table.rows > block:
            screen.step(f"predicted {min(start + block, table.rows):,} of {table.rows:,} rows")
    return np.concatenate(predicted), np.concatenate(probabilities)


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
        while left:  # without a buffer (python -u) a part may be written at a time
            left = left[stream.write(left) :]
    sys.stdout.flush()


def _free(name: str, table: Table, taken: dict[str, Any]) -> str:
    """The name, or with underscores where the table has such a column."""
    while name in taken or (table.frame is not None and name in table.frame.columns):
        name += "_"
    return name


def _compare(model: TableModel, table: Table, predicted: np.ndarray, screen: Screen) -> None:
    """Say the error where the table has the target too."""
    about = getattr(model, "about_", {})
    name = str(about.get("target"))
    if "target" not in about or table.frame is None or name not in table.frame.columns:
        return
    from mercer.kernels.columns.cells import gaps, values
    from mercer.tables.encoders import as_label, as_numbers

    column = values(table.frame, table.columns.index(name))
    known = ~gaps(column)
    if not known.any():
        return
    found, truth = predicted[known], column[known]
    if about["task"] == "classification":
        labels = zip(found.tolist(), truth.tolist(), strict=True)
        wrong = float(np.mean([as_label(one) != as_label(other) for one, other in labels]))
        screen.note(
            f"the table has {name!r} too: {percent(wrong)} of {len(found):,} predictions differ from it"
        )
        return
    try:
        error = float(np.sqrt(np.mean((found - as_numbers(truth, name)) ** 2)))
    except InputError:  # The targets are no numbers, so that there is nothing to say.
        return
    screen.note(f"the table has {name!r} too: the root mean square error is {error:.4g}")


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
