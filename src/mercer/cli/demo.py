"""``mercer demo``: the whole way on a real table, in less than a minute."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic

from mercer.cli.predict import predict
from mercer.cli.screen import Screen
from mercer.cli.train import Wishes, train
from mercer.errors import InputError
from mercer.runtime.files import write_whole

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
    model, report, predictions = (
        folder / name for name in ("tumours.mercer", "tumours.html", "predictions.csv")
    )
    inputs = dict(zip((train_file, new_file), _tables(), strict=True))
    _require_ours(inputs, (model, report, predictions))
    for path, content in inputs.items():
        write_whole(path, [content])
    screen.step("The data: 30 measurements of 569 tumours, malignant or benign (Wisconsin, in scikit-learn).")
    screen.step(f"\n$ mercer train {train_file} --target diagnosis --output {model}")
    status = train(Wishes([str(train_file)], "diagnosis", output=model, report=report, time=_SECONDS), screen)
    if status:
        return status
    screen.step(f"\n$ mercer predict {model} {new_file} --output {predictions} --proba")
    status = predict(model, str(new_file), output=predictions, proba=True, screen=screen)
    screen.step(f"\nAll of it took {monotonic() - began:.0f} s.")
    print(f"Report: {report.resolve()}" if report.exists() else f"Model: {model.resolve()}")
    return status


def _require_ours(inputs: Mapping[Path, bytes], outputs: Sequence[Path]) -> None:
    """Refuse a folder with files of these names, unless its tables say that an earlier demo wrote them."""
    found = {path: path.read_bytes() == content for path, content in inputs.items() if path.exists()}
    others = [path for path, is_ours in found.items() if not is_ours]
    if not any(found.values()):
        others += [path for path in outputs if path.exists()]
    if others:
        raise InputError(f"the demo would overwrite {others[0]}, which it did not write: name another folder")


def _tables() -> tuple[bytes, bytes]:
    """The rows to learn from and the rows to predict, as CSV."""
    from sklearn.datasets import load_breast_cancer

    tumours = load_breast_cancer()
    names = [str(name).replace(" ", "_") for name in tumours.feature_names]
    rows = [
        [*map(float, x), str(tumours.target_names[label])]
        for x, label in zip(tumours.data, tumours.target, strict=True)
    ]
    learned = [row for i, row in enumerate(rows) if i % _HELD_BACK]
    return _csv([*names, "diagnosis"], learned), _csv([*names, "diagnosis"], rows[::_HELD_BACK])


def _csv(head: list[str], rows: list[list]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([head, *rows])
    return text.getvalue().encode("utf-8")
