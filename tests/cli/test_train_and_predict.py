"""mercer train, predict and report: what they print, write and return."""

import csv
import io
import json
import re

import numpy as np
import pytest

from mercer import load
from mercer.tables import TableModel, read_table

from .conftest import QUICK


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_training_says_what_it_did(trained):
    _, out, err = trained
    assert "classification of 'species', 3 classes" in out
    assert "60 rows, 2 columns as 3 features" in out
    assert re.search(r"error    \S+ % \(95 % interval .* the most frequent class alone: 66.7 %\)", out)
    assert "from 2 folds, with the search done again in each" in out
    assert "searching" in err
    assert "searching" not in out


def test_predictions(mercer, flowers, model, tmp_path):
    status, out, err = mercer("predict", "flowers.mercer", flowers, "--proba")
    assert status == 0
    found = rows_of(out)
    assert list(found[0]) == ["length", "colour", "species", "P(iris)", "P(lily)", "P(rose)", "prediction"]
    right = [row["species"] == row["prediction"] for row in found]
    assert np.mean(right) > 0.9
    assert all(abs(sum(float(row[f"P({c})"]) for c in ("iris", "lily", "rose")) - 1) < 1e-9 for row in found)
    wrong = 100 * (1 - np.mean(right))
    assert (
        f"the table has 'species' too: {'0' if wrong == 0 else f'{wrong:.3g}'} % of 60 predictions differ"
        in err
    )
    # the same from Python
    assert load(tmp_path / "flowers.mercer").predict(read_table(flowers)).tolist() == [
        r["prediction"] for r in found
    ]

    (tmp_path / "new.csv").write_text("colour,length\nred,-0.5\nwhite,10\n")
    status, out, _ = mercer("predict", "flowers.mercer", "new.csv", "--output", "p.csv")
    assert (status, out) == (0, "")
    assert [row["prediction"] for row in rows_of((tmp_path / "p.csv").read_text())] == ["rose", "iris"]


def test_regression_as_json(mercer, sine, tmp_path):
    x = np.linspace(-3, 3, 50)
    status, out, err = mercer(
        "train", "sine.csv", "-t", "y", *QUICK, "--json", "--quiet", "--explain", "-o", "s.mercer"
    )
    assert (status, err) == (0, "")
    facts = json.loads(out)
    assert facts["task"] == "regression"
    assert facts["interval"][0] <= facts["error"] <= facts["interval"][1]
    assert facts["error"] < 0.1 < facts["baseline"]
    assert facts["baseline"] == pytest.approx(np.std(np.sin(x)))
    assert facts["columns"] == {"x": "standardised"}
    assert facts["trials"] == len(facts["tried"]) == 1
    assert (facts["model"], facts["report"]) == ("s.mercer", None)
    model = load(tmp_path / "s.mercer")
    assert isinstance(model, TableModel)
    assert model.about_["target"] == "y"


def test_a_tenth_is_held_out(mercer, sine):
    """The error is of what was held out, the model of all rows."""
    status, out, _ = mercer("train", sine, "-t", "-1", *QUICK[:-1], "0", "--json")
    assert status == 0
    assert json.loads(out)["error_from"] == "a tenth of the rows, 5, that the search did not see"
    assert len(load("sine.mercer").estimator_.expansion_.anchors) == 50


def test_large_tables_hold_out_a_tenth_by_themselves(mercer, sine, monkeypatch):
    monkeypatch.setattr("mercer.tables.training._HELD_OUT_FROM", 40)
    status, out, err = mercer("train", sine, "-t", "y", *QUICK[:-2], "--json", "--time", "1e-3")
    assert status == 0
    assert "searching, with a tenth of the rows held out" in err
    assert "no time is left to fit on all rows" in err
    assert json.loads(out)["error_from"].startswith("a tenth of the rows, 5")
    assert len(load("sine.mercer").estimator_.expansion_.anchors) == 45


def test_a_fit_that_does_not_fit_is_not_made(mercer, sine, monkeypatch):
    from mercer.errors import MemoryBudgetError

    def refuse(*arguments):
        raise MemoryBudgetError("K needs 10GiB")

    monkeypatch.setattr("mercer.tables.fitting.refitted", refuse)
    status, _, err = mercer("train", sine, "-t", "y", *QUICK[:-1], "0")
    assert status == 0
    assert "there is no room to fit on all rows, the model is fitted on 45 of 50: K needs 10GiB" in err
    assert len(load("sine.mercer").estimator_.expansion_.anchors) == 45


def test_folds_end_with_the_time(mercer, sine, monkeypatch):
    monkeypatch.setattr("mercer.tables.training._PATIENCE", 1e-3)
    status, out, _ = mercer("train", sine, "-t", "y", *QUICK[:-2], "--json")
    assert status == 0
    assert json.loads(out)["error_from"].startswith("the search again for 10 rows, and its machine alone")


def test_folds_that_are_asked_for_end_with_the_time_too(mercer, sine):
    status, out, _ = mercer("train", sine, "-t", "y", *QUICK[:-1], "50", "--json", "--time", "1e-3")
    assert status == 0
    assert json.loads(out)["error_from"].startswith("1 of 50 folds, 1 rows: time was short")


def test_folds_that_are_asked_for_have_no_other_end(mercer, sine, monkeypatch):
    monkeypatch.setattr("mercer.tables.training._PATIENCE", 1e-3)
    status, out, _ = mercer("train", sine, "-t", "y", *QUICK, "--json")
    assert status == 0
    assert json.loads(out)["error_from"].startswith("2 folds, with the search done again")


def test_fewer_folds_than_asked_for_are_said(mercer, tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{i},{'ab'[i < 3]}\n" for i in range(12)))
    status, out, err = mercer("train", "t.csv", "-t", "y", *QUICK[:-1], "10", "--keep", "x", "--json")
    assert status == 0
    assert "note: 3 folds instead of 10: the smallest class has no more rows\n" in err
    assert json.loads(out)["error_from"].startswith("3 folds")


@pytest.mark.full
def test_the_same_seed_gives_the_same_model(mercer, sine):
    first, second = (mercer("train", sine, "-t", "y", *QUICK, "--json")[1] for _ in range(2))
    drop = re.compile(r'"seconds": [\d.]+')
    assert drop.sub("", first) == drop.sub("", second)
    assert drop.sub("", mercer("train", sine, "-t", "y", *QUICK, "--json", "--seed", "3")[1]) != drop.sub(
        "", first
    )


def test_standard_input_and_libsvm(mercer, tmp_path, monkeypatch):
    lines = "".join(f"{0.1 * i:.1f} 1:{1.5 * i} 2:{(i * 7) % 5}\n" for i in range(40))

    class Standard:
        buffer = io.BytesIO(lines.encode())

    monkeypatch.setattr("sys.stdin", Standard)
    status, out, _ = mercer("train", "-", *QUICK, "--json")
    assert status == 0
    facts = json.loads(out)
    assert (facts["target"], facts["model"]) == ("target", "model.mercer")
    Standard.buffer = io.BytesIO(b"0 1:7.5\n0 1:45 2:3\n")
    status, out, _ = mercer("predict", "model.mercer", "-", "-q")
    assert [float(row["prediction"]) for row in rows_of(out)] == pytest.approx([0.5, 3.0], abs=0.3)


def test_a_learner_with_the_kernel_of_the_search(mercer, sine):
    status, out, _ = mercer("train", sine, "-t", "y", *QUICK, "--learner", "svr", "--json")
    assert status == 0
    facts = json.loads(out)
    assert facts["error"] < 0.2
    assert facts["learner"] == "SVR"
    assert mercer("predict", "sine.mercer", sine, "-q")[0] == 0


def test_columns_can_be_dropped_and_kept(mercer, tmp_path):
    lines = "".join(f"{i},{i * i},{(i * 7) % 5},{0.5 * i}\n" for i in range(40))
    (tmp_path / "t.csv").write_text("day,square,noise,y\n" + lines)
    status, out, err = mercer("train", "t.csv", "-t", "y", *QUICK, "--drop", "square", "--json", "--explain")
    assert status == 0
    assert "'day' was left out: each row has a value of its own; --keep 'day' keeps it" in err
    assert json.loads(out)["columns"]["day"].startswith("left out")
    status, out, err = mercer(
        "train", "t.csv", "-t", "y", *QUICK, "--drop", "2", "--keep", "day", "--json", "--explain"
    )
    assert status == 0
    assert json.loads(out)["columns"] == {"day": "standardised", "noise": "standardised"}
    assert "left out" not in err


def test_every_learner_can_be_had():
    """By the names that the help has, all of them classes of mercer."""
    from mercer.tables.learners import LEARNERS, _estimator

    for names in LEARNERS.values():
        for name in names[1:]:
            assert _estimator(name, "linear", np.arange(3.0)).get_params()["kernel"] == "linear"


def test_a_report_is_written_and_said(mercer, sine, tmp_path, monkeypatch):
    """By whoever writes reports: a stand-in that shows what it was given."""
    given = {}

    def write_report(model, X, y, path, **more):
        given.update(more, n=len(y), steps=[name for name, _ in model.steps])
        path.write_text("<html>")

    monkeypatch.setattr("mercer.reporting.write_report", write_report)
    quick = [option for option in QUICK if option != "--no-report"]
    status, out, _ = mercer("train", sine, "-t", "y", *quick, "--report", "r.html")
    assert status == 0
    assert re.search(r"report +r\.html", out)
    assert (tmp_path / "r.html").read_text() == "<html>"
    assert given["features"] == ["x"]
    assert given["steps"] == ["features", "model"]
    assert given["error"].predictions.shape == (50,)
    assert given["error"].rows.tolist() == list(range(50))
    assert given["limit"] < 60
    status, out, _ = mercer("report", "sine.mercer", sine, "-o", "again.html")
    assert (status, out) == (0, "again.html\n")
    assert given["limit"] == np.inf  # it writes all that train had no time for
    assert (tmp_path / "again.html").exists()


def test_the_report_gets_the_predictions_of_rows_held_out(mercer, sine, monkeypatch):
    """As they are: nothing has to be fitted again for it."""
    given = {}

    def write_report(model, X, y, path, *, error, **more):
        given.update(error=error, y=y)
        path.write_text("<html>")

    monkeypatch.setattr("mercer.reporting.write_report", write_report)
    status, out, _ = mercer(
        "train", sine, "-t", "y", "--kernel", "gaussian(sigma=1.0)", "--folds", "0", "--json"
    )
    assert status == 0
    error, y = given["error"], given["y"]
    assert len(error.rows) == len(error.predictions) == 5
    assert json.loads(out)["error"] == pytest.approx(
        np.sqrt(np.mean((error.predictions - y[error.rows]) ** 2))
    )
    assert error.how == json.loads(out)["error_from"]


def test_a_model_from_python(mercer, flowers, tmp_path):
    """It predicts as any other; what it does not say of itself is told."""
    from mercer import KernelRidge, save

    save(
        TableModel(KernelRidge(0.1)).fit(read_table(flowers).frame[["colour"]], np.arange(60.0)), "py.mercer"
    )
    status, out, err = mercer("predict", "py.mercer", flowers)
    assert (status, err, len(out.splitlines())) == (0, "", 61)
    status, _, err = mercer("report", "py.mercer", flowers)
    assert status == 2
    assert "py.mercer does not say which column it predicts" in err


def test_a_report_of_fewer_sparse_columns(mercer, tmp_path, monkeypatch):
    widths = []
    monkeypatch.setattr(
        "mercer.reporting.write_report", lambda model, X, y, path, **more: widths.append(X.shape)
    )
    lines = [f"{i % 2} 1:{i} {2 + i % 2}:1\n" for i in range(40)]
    (tmp_path / "t.libsvm").write_text("".join(lines))
    assert mercer("train", "t.libsvm", *QUICK)[0] == 0
    (tmp_path / "new.libsvm").write_text("".join(lines[:10:2]) + "1 1:3 2:1\n1 1:4 2:2\n")
    status, out, _ = mercer("report", "t.mercer", "new.libsvm", "-o", "r.html")
    assert (status, out) == (0, "r.html\n")
    assert widths == [(7, 3)]


def test_many_rows_are_thinned_unless_asked_for(mercer, sine, monkeypatch):
    monkeypatch.setattr("mercer.tables.training._MOST_ROWS", 20)
    for learner, more, rows in (("svr", [], 20), ("auto", [], 50), ("svr", ["--rows", "45"], 45)):
        status, out, err = mercer("train", sine, "-t", "y", *QUICK, "--json", "--learner", learner, *more)
        assert (status, json.loads(out)["rows"]) == (0, rows)
        note = (
            "20 of the 50 rows were taken, at equal distances, for svr compares all of them: --rows N takes "
            "others, also more"
        )
        assert (note in err) == (rows == 20)


def test_predictions_block_by_block(mercer, flowers, model, tmp_path, monkeypatch):
    whole = mercer("predict", model, flowers, "--proba", "-q")[1]
    monkeypatch.setattr("mercer.cli.predict._MOST_ROWS", 16)
    monkeypatch.setattr("mercer.cli.predict._FEWEST_ROWS", 8)
    status, out, err = mercer("predict", model, flowers, "--proba")
    assert status == 0
    first, second = ([line.split(",") for line in text.splitlines()] for text in (whole, out))
    assert [row[:3] + row[-1:] for row in first] == [row[:3] + row[-1:] for row in second]
    assert np.allclose(*(np.array([row[3:6] for row in rows[1:]], float) for rows in (first, second)))
    assert "predicted 48 of 60 rows\npredicted 60 of 60 rows" in err
    lines = flowers.read_text().splitlines()
    (tmp_path / "bad.csv").write_text("\n".join([*lines[:41], "inf,red,rose", *lines[41:]]) + "\n")
    status, out, err = mercer("predict", model, "bad.csv", "-q")
    assert (status, out) == (2, "")
    assert err.endswith(
        "is infinite in row 9: correct it, or leave it empty (rows are counted from row 33 on)\n"
    )


def test_categories_never_seen_are_said(mercer, model, tmp_path):
    (tmp_path / "new.csv").write_text("length,colour\n1,red\n2,green\n3,\n4,5\n")
    status, out, err = mercer("predict", model, "new.csv")
    assert (status, len(out.splitlines())) == (0, 5)
    assert err == "note: 'colour' has values that no training row had: 'green', '5'\n"


def test_a_kernel_with_a_scale_per_column(mercer, tmp_path):
    generator = np.random.default_rng(1)
    X = generator.normal(size=(60, 3))
    lines = "".join(f"{a},{b},{c},{np.sin(2 * b)}\n" for a, b, c in X)
    (tmp_path / "t.csv").write_text("a,b,c,y\n" + lines)
    kernel = ("--kernel", "gaussian(sigma=[2,2,2])", *QUICK[2:])
    status, out, _ = mercer("train", "t.csv", "-t", "y", *kernel)
    assert status == 0
    assert "kernel   Gaussian, chosen from" in out
    assert re.search(r"tells rows apart most by b, [ac], [ac]\n", out)
    out = mercer("train", "t.csv", "-t", "y", *kernel, "--explain")[1]
    assert re.search(r"kernel   Gaussian\(sigma=<\S+ to \S+, one of each of 3 columns>\), chosen from", out)
    facts = json.loads(mercer("train", "t.csv", "-t", "y", *kernel, "--json")[1])
    assert list(facts["scales"]) == ["sigma"]
    assert min(facts["scales"]["sigma"], key=facts["scales"]["sigma"].get) == "b"


@pytest.mark.full  # tests/reporting look at the page
@pytest.mark.slow
def test_a_real_report(mercer, flowers, tmp_path):
    pytest.importorskip("matplotlib")
    quick = [option for option in QUICK if option != "--no-report"]
    assert mercer("train", flowers, "-t", "species", *quick)[0] == 0
    assert "<svg" in (tmp_path / "flowers.html").read_text()


def test_several_files_are_one_table(mercer, tmp_path):
    """As the shell gives them for rides/*.csv; the model has the name of their folder."""
    (tmp_path / "rides").mkdir()
    x = np.linspace(-3, 3, 60)
    for number, part in enumerate(np.split(x, 3)):
        rows = "".join(f"{a:.3f},{np.sin(a):.4f}\n" for a in part)
        (tmp_path / "rides" / f"{number}.csv").write_text(f"x,y\n{rows}")
    files = [f"rides/{number}.csv" for number in range(3)]
    status, out, err = mercer("train", *files, "-t", "y", *QUICK)
    assert status == 0 and "reading rides (3 files)" in err and "60 rows" in out
    assert (tmp_path / "rides.mercer").exists()
    status, out, err = mercer("predict", "rides.mercer", "rides")
    assert [float(row["x"]) for row in rows_of(out)] == pytest.approx(x, abs=1e-3)
    assert "the table has 'y' too" in err
    status, _, err = mercer("predict", "rides.mercer", "rides", "-o", "rides/1.csv")
    assert status == 2 and "--output and rides/1.csv of the table are the same file" in err
    status, _, err = mercer("train", *files, files[0], "-t", "y")
    assert status == 2 and "rides/0.csv is named twice" in err


# --- how sure it is --------------------------------------------------------------------------------


def test_intervals_of_numbers(mercer, tmp_path, rng):
    """From the errors left out of the whole procedure: 90 % of new rows, within three sampling errors."""
    x = rng.uniform(-3, 3, 400)
    y = np.sin(x) + 0.3 * rng.standard_t(4, 400)
    lines = [f"{a},{b}" for a, b in zip(x, y, strict=True)]
    (tmp_path / "old.csv").write_text("\n".join(["x,y", *lines[:200]]))
    (tmp_path / "new.csv").write_text("\n".join(["x,y", *lines[200:]]))
    mercer("train", "old.csv", "-t", "y", *QUICK, "-o", "m.mercer")
    status, out, err = mercer("predict", "m.mercer", "new.csv", "--interval", "0.9")
    assert status == 0
    found = rows_of(out)
    assert list(found[0]) == ["x", "y", "lower", "upper", "prediction"]
    names = ("lower", "upper", "prediction", "y")
    low, high, told, truth = (np.array([float(row[name]) for row in found]) for name in names)
    inside = np.mean((low <= truth) & (truth <= high))
    assert inside == pytest.approx(0.9, abs=3 * np.sqrt(2 * 0.09 / 200))
    assert (low + high) / 2 == pytest.approx(told)
    assert (
        "about 90 % of new rows like these are inside: from the errors on 200 rows that the search had" in err
    )
    assert f"{100 * inside:.3g} % of 200 values of 'y' are in their intervals" in err
    # the same from Python, and after a file
    assert load(tmp_path / "m.mercer").predict_interval(read_table("new.csv"))[:, 0] == pytest.approx(low)


def test_sets_of_classes(mercer, flowers, model):
    status, out, err = mercer("predict", "flowers.mercer", flowers, "--interval", "0.99")
    assert status == 0
    found = rows_of(out)
    assert list(found[0]) == ["length", "colour", "species", "set", "prediction"]
    assert all(row["prediction"] in row["set"].split(" | ") for row in found)
    inside = np.mean([row["species"] in row["set"].split(" | ") for row in found])
    assert inside > 0.9
    assert f"{100 * inside:.3g} % of 60 values of 'species' are in their sets" in err
    assert "if the probabilities are right" in err


def test_intervals_that_make_no_sense(mercer, flowers, model):
    status, _, err = mercer("predict", "flowers.mercer", flowers, "--interval", "90")
    assert status != 0
    assert "--interval must be between 0 and 1, got 90.0: pass 0.9 for 90 %" in err
