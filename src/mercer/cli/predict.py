"""``mercer predict`` and ``mercer report``: a model file and a table."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mercer.cli.files import aside, require_writable
from mercer.cli.screen import Screen, percent
from mercer.config import config
from mercer.errors import InputError
from mercer.tables import Table, TableModel, read_table
from mercer.tables.frames import write_csv

__all__ = ["load_table_model", "predict", "report"]


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
    file: str,
    *,
    output: Path | None = None,
    proba: bool = False,
    memory: str | None = None,
    missing: Sequence[str] = (),
    header: bool | None = None,
    screen: Screen,
) -> int:
    """A CSV of the table with the prediction in its last column; probabilities before it."""
    if output is not None:
        require_writable(output)
    settings: Any = {} if memory is None else {"memory": memory}
    with config(**settings):
        model = load_table_model(model_path)
        if proba and not hasattr(model, "predict_proba"):
            raise InputError(
                "this model knows no probabilities: train one for classes with --proba, or --learner logistic"
            )
        table = read_table(file, header=header, missing=missing)
        for note in table.notes:
            screen.note(note)
        Z = model.transform(table)
        predicted = np.asarray(model.estimator_.predict(Z))
        added: dict[str, Any] = {}
        if proba:
            for label, column in zip(model.classes_.tolist(), model.probabilities(Z).T, strict=True):
                added[_free(f"P({label})", table, added)] = column
        added[_free("prediction", table, added)] = predicted
    _compare(model, table, predicted, screen)
    frame = None if table.format == "libsvm" else table.frame
    if output is None:
        buffer = io.BytesIO()
        write_csv(frame, added, buffer)
        _to_standard_output(buffer.getvalue())
        return 0
    with aside(output) as place, place.open("wb") as stream:
        write_csv(frame, added, stream)
    screen.step(f"{len(predicted):,} predictions in {output}")
    return 0


def _to_standard_output(content: bytes) -> None:
    stream = getattr(sys.stdout, "buffer", None)
    if stream is None:  # replaced by something that takes text only
        sys.stdout.write(content.decode("utf-8"))
    else:
        sys.stdout.flush()
        stream.write(content)
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
    if table.frame is None or name not in table.frame.columns:
        return
    from mercer.kernels.cells import gaps, values
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
    except InputError:  # no numbers this time: nothing to say
        return
    screen.note(f"the table has {name!r} too: the root mean square error is {error:.4g}")


def report(model_path: Path, file: str, *, output: Path | None, screen: Screen) -> int:
    """A report of a model on a table that has the target."""
    from mercer.cli.train import split

    path = output or model_path.with_suffix(".html")
    require_writable(path)
    model = load_table_model(model_path)
    table = read_table(file)
    for note in table.notes:
        screen.note(note)
    X, target = split(table, model.about_["target"], model.about_["task"])
    from mercer.reporting import write_report

    with aside(path) as place:
        write_report(
            model.as_pipeline(),
            X,
            target.y,
            place,
            features=list(getattr(X, "columns", ())) or None,
            trials=model.estimator_.trials_,
            title=f"{target.name}: {target.task} of {Path(table.name).name}",
        )
    print(path)
    return 0
