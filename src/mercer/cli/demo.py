"""``mercer demo``: the whole way on a real table, in less than a minute."""

from __future__ import annotations

import csv
from pathlib import Path
from time import monotonic

from mercer.cli.predict import predict
from mercer.cli.screen import Screen
from mercer.cli.train import Wishes, train
from mercer.errors import InputError
from mercer.files import aside

__all__ = ["demo"]

_SECONDS = 35.0  # for the search and the folds
_HELD_BACK = 5  # every so many rows are predicted, and not learned from


def demo(folder: Path, screen: Screen) -> int:
    """Train on four fifths of a table of tumours, predict the others, and say where the report is."""
    began = monotonic()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {str(folder)!r} cannot be made: {error.strerror}") from None
    train_file, new_file = folder / "tumours.csv", folder / "new.csv"
    _write(train_file, new_file)
    screen.step("The data: 30 measurements of 569 tumours, malignant or benign (Wisconsin, in scikit-learn).")
    model, report = folder / "tumours.mercer", folder / "tumours.html"
    screen.step(f"\n$ mercer train {train_file} --target diagnosis --output {model}")
    status = train(Wishes(str(train_file), "diagnosis", output=model, report=report, time=_SECONDS), screen)
    if status:
        return status
    screen.step(f"\n$ mercer predict {model} {new_file} --output {folder / 'predictions.csv'}")
    status = predict(model, str(new_file), output=folder / "predictions.csv", proba=True, screen=screen)
    screen.step(f"\nAll of it took {monotonic() - began:.0f} s.")
    print(f"Report: {report.resolve()}" if report.exists() else f"Model: {model.resolve()}")
    return status


def _write(train_file: Path, new_file: Path) -> None:
    from sklearn.datasets import load_breast_cancer

    tumours = load_breast_cancer()
    names = [str(name).replace(" ", "_") for name in tumours.feature_names]
    rows = [
        [*map(float, x), str(tumours.target_names[label])]
        for x, label in zip(tumours.data, tumours.target, strict=True)
    ]
    for file, chosen in (
        (train_file, [row for i, row in enumerate(rows) if i % _HELD_BACK]),
        (new_file, rows[::_HELD_BACK]),
    ):
        with aside(file) as place, place.open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([[*names, "diagnosis"], *chosen])
