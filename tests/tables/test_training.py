"""Training a table as a function: what the command does, without files and without a screen."""

import numpy as np
import polars as pl
import pytest

from mercer import config, load, save
from mercer.errors import InputError, InputTypeError
from mercer.runtime.clock import now
from mercer.selection import classifier
from mercer.tables import read_table, train
from mercer.tables.target import Goal, Target
from mercer.tables.training import _room, readable_bytes


class Heard:
    """A listener that writes down what it is told."""

    def __init__(self):
        self.steps, self.notes = [], []

    def step(self, text):
        self.steps.append(text)

    def note(self, text):
        self.notes.append(text)


@pytest.fixture
def frame():
    x = np.linspace(-3, 3, 40)
    return pl.DataFrame({"x": x, "code": [f"c{i:03}" for i in range(40)], "y": np.sin(x)})


def test_a_model_its_error_and_what_one_should_know(frame):
    heard = Heard()
    training = train(frame, "y", kernel="gaussian(sigma=1.0)", folds=2, tell=heard)
    honest, model = training.honest, training.model
    assert honest.how == "2 folds, with the search done again in each"
    assert honest.rows.tolist() == list(range(40))
    assert honest.error == pytest.approx(np.sqrt(np.mean((honest.predictions - training.target.y) ** 2)))
    assert honest.baseline == pytest.approx(frame["y"].to_numpy().std())
    assert model.about_["error"] == honest.error and model.about_["target"] == "y"
    assert training.notes == heard.notes
    assert training.notes == ["'code' was left out: each row has a value of its own; keep=['code'] keeps it"]
    assert heard.steps[0] == "searching, without fold 1 of 2" and heard.steps[1] == "searching, on all rows"
    assert np.allclose(model.predict(training.X), frame["y"], atol=0.05)
    assert train(frame, "y", kernel="gaussian(sigma=1.0)", folds=2).honest.error == honest.error


def test_what_was_left_out_for_want_of_time_is_in_the_notes(frame):
    """Notes are kept where nobody listens, too; the time may have begun long ago."""
    training = train(frame, "y", kernel="linear", folds=0, max_time=1.0, began=now() - 5)
    assert training.honest.how == "a tenth of the rows, 4, that the search did not see"
    assert training.notes[0] == (
        "no time is left to fit on all rows: the model is fitted on 36 of 40; a longer max_time takes more"
    )


def test_classes_get_probabilities():
    x = np.tile(np.linspace(-1, 1, 20), 2)
    frame = pl.DataFrame({"x": x, "label": np.where(x > 0, "yes", "no")})
    training = train(frame, "label", kernel="linear", folds=2)
    assert training.target.task == "classification"
    assert np.allclose(training.model.predict_proba(training.X).sum(axis=1), 1)


def test_a_report_is_of_the_same_error(frame, tmp_path):
    pytest.importorskip("matplotlib")
    training = train(frame, "y", kernel="linear", folds=0)
    page = training.write_report(tmp_path / "r.html", limit=0.0).read_text("utf-8")
    assert f"{training.honest.error:.4g}" in page and "<h1>y from the table</h1>" in page
    assert training.notes[0].replace("'", "&#x27;") in page


@pytest.mark.parametrize(
    ("given", "options", "error", "said"),
    [
        ([[1, 2]], {}, InputTypeError, "a table is a Table, a path or a polars frame, got list: pass one of"),
        (None, {"target": None}, InputError, "say which column to predict with target=…: the table has 'x'"),
        (None, {"drop": ["x", "code"]}, InputError, "the table has no column but the target 'y'"),
        (None, {"learner": "svm"}, InputError, "'svm' is not for regression: choose auto, ridge, svr"),
        (None, {"folds": 41}, InputError, "41 folds of 40 rows cannot be made: pass a smaller number of fol"),
    ],
)
def test_refusals(frame, given, options, error, said):
    given, options = frame if given is None else given, {"target": "y", **options}
    with pytest.raises(error, match=said):
        train(given, options.pop("target"), **options)


def test_a_long_file_is_read_in_part_where_time_is_short(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "".join(f"{i % 7},{i % 5}\n" for i in range(5000)))
    table = read_table(path, most=8000)
    assert table.rows == 1999 and table.columns == ["x", "y"]
    assert table.notes == (
        f"there is no time to read all 5,001 lines of {path}: 40% of them were taken, at equal distances; a "
        "longer max_time takes more",
    )
    assert read_table(path, most=10**6).rows == 5000
    (tmp_path / "q.csv").write_text('x,y\n"1",2\n' + path.read_text()[4:])
    assert read_table(tmp_path / "q.csv", most=8000).rows == 5001  # a quoted field may have ends of lines
    assert readable_bytes(None) is None and readable_bytes(1.2) == pytest.approx(1.2 * readable_bytes(1.0))
    assert readable_bytes(11.0) == 40 * readable_bytes(1.0)  # the start of a process takes its part


@pytest.mark.full  # of arrays: tests/selection/test_landmarks.py
def test_classes_of_many_rows_are_learned_from_all_of_them_on_landmarks(tmp_path, monkeypatch, hand_clock):
    """Where there is no time for more than 300 rows exactly: the model, its file and its report."""
    monkeypatch.setattr(classifier, "_growth", lambda clock, seconds: 0.0)
    monkeypatch.setattr(classifier, "_FIRST_FIT_POINTS", 300)
    rng = np.random.default_rng(0)
    a, b, kind = rng.normal(size=1000), rng.normal(size=1000), rng.choice(["red", "green"], 1000)
    label = np.where(np.sin(2 * a) + b + (kind == "red") > 0.5, "yes", "no")
    frame = pl.DataFrame({"a": a, "b": b, "kind": kind, "label": label})
    training = train(frame, "label", kernel="gaussian", folds=0, max_time=100.0)
    model = training.model
    assert model.about_["fitted"] == 1000 and training.honest.error < 0.1
    assert "on all rows" not in " ".join(training.notes)
    told = model.predict(frame)
    assert np.mean(told == label) > 0.9
    P = model.predict_proba(frame)
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], told)
    save(model, tmp_path / "model.mercer")
    np.testing.assert_array_equal(load(tmp_path / "model.mercer").predict_proba(frame), P)
    page = training.write_report(tmp_path / "report.html").read_text()
    assert "landmarks" in page


def test_all_rows_are_taken_where_memory_and_time_allow():
    """Of three numbers, 24 bytes a row, a sixteenth of the budget; and a third of a million in a second."""
    n = 2_000_000
    X = pl.DataFrame({name: pl.zeros(n, pl.Float64, eager=True) for name in "abc"})
    numbers, classes = (
        Target("y", task, np.zeros(n), np.arange(n)) for task in (Goal.REGRESSION, Goal.CLASSIFICATION)
    )
    with config(memory="4 GiB"):
        assert _room(X, numbers, "auto", None)[0] == 2**32 // (16 * 24) > n
        assert _room(X, classes, "auto", 60.0)[0] == 2**32 // (16 * 24)
        assert _room(X, classes, "svm", 3.0) == (1_000_000, "as many as there is time for")
        assert _room(X, numbers, "ridge", 0.1)[0] == 100_000
        assert _room(X, numbers, "svr", 60.0)[0] == 100_000
        assert _room(X, classes, "auto", None) == _room(X, numbers, "auto", None)
    with config(memory="24 MiB"):
        assert _room(X, numbers, "auto", 60.0) == (65_536, "as many as the memory budget has room for")
