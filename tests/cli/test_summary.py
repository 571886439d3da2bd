"""What the terminal says of a training, and that the report says the same."""

import json
import re
import warnings

import numpy as np
import pytest

from mercer import load
from mercer.cli.exits import run
from mercer.tables import read_table

from .conftest import QUICK

NO_SEARCH = ("--kernel", "gaussian(sigma=1.0)", "--folds", "2")


@pytest.fixture
def written(monkeypatch):
    """Reports of one section."""
    pytest.importorskip("matplotlib")
    from mercer.reporting import write

    sections = tuple(s for s in write._SECTIONS if s[0] in ("error", "fit"))
    monkeypatch.setattr(write, "_SECTIONS", sections)


def test_the_verdict_comes_first(trained):
    _, out, _ = trained
    first = out.splitlines()[0]
    found = re.fullmatch(
        r"  verdict  Right on (\d+) of 60 rows never seen \((\S+) %\); "
        r"the most frequent class alone would be right on 20\.",
        first,
    )
    assert found is not None, first
    assert float(found[2]) == pytest.approx(100 * int(found[1]) / 60, abs=0.1)
    assert re.search(r"learner  SVC, C = \S+, fitted on 60 rows, of which \d+ are kept", out)
    assert re.search(r"kernel   Gaussian, chosen from \d trials", out)


def test_a_regression_is_off_by_so_much(mercer, sine):
    status, out, _ = mercer("train", sine, "-t", "y", *QUICK)
    assert status == 0
    assert re.search(
        r"verdict  Off by \S+ on 50 rows never seen \(root mean square\), where guessing the mean is off by "
        r"0\.7\d+\.",
        out,
    )
    assert "KernelRidge, alpha = " in out
    assert ", fitted on 50 rows\n" in out  # all of them are kept


def test_terminal_and_report_have_one_error_and_one_baseline(mercer, flowers, written, tmp_path):
    """Of a tenth held out, which has other shares of the classes than all rows."""
    lines = flowers.read_text().splitlines()
    (tmp_path / "t.csv").write_text("\n".join(lines[:44]) + "\n")
    status, out, _ = mercer("train", "t.csv", "-t", "species", *NO_SEARCH[:2], "--folds", "0")
    assert status == 0
    page = (tmp_path / "t.html").read_text("utf-8")
    verdict = re.search(r"verdict  (.*)", out)[1]
    assert f'<p class="verdict">{verdict}</p>' in page
    baseline = re.search(r"the most frequent class alone: (\S+ %)\)", out)[1]
    assert f"<dt>the most frequent class alone</dt><dd>{baseline}</dd>" in page
    error = re.search(r"error    (\S+ %) \(95 % interval (.*);", out)
    assert f"<dt>error</dt><dd>{error[1]}</dd>" in page
    assert f"<dt>95 % interval</dt><dd>{error[2]}</dd>" in page
    assert "<h1>species from t.csv</h1>" in page


def test_a_later_report_on_the_training_table_has_the_same_error(mercer, flowers, model, written, tmp_path):
    """On other rows it is that of the model on them."""
    about = load(model).about_
    assert mercer("report", model, flowers, "-o", "again.html")[0] == 0
    page = (tmp_path / "again.html").read_text("utf-8")
    right = 60 - round(60 * about["error"])
    assert f"Right on {right} of 60 rows never seen" in page
    assert about["error_from"] in page
    (tmp_path / "new.csv").write_text("length,colour,species\n" + "0.1,red,rose\n5.1,white,iris\n" * 5)
    assert mercer("report", model, "new.csv", "-o", "new.html")[0] == 0
    assert "Right on 5 of 10 rows never seen" in (tmp_path / "new.html").read_text("utf-8")


def test_json_says_on_how_many_rows(mercer, sine):
    facts = json.loads(mercer("train", sine, "-t", "y", *QUICK[:-1], "0", "--json")[1])
    assert (facts["tested"], facts["fitted"], facts["rows"]) == (5, 50, 50)


def test_equal_scales_tell_nothing(mercer, tmp_path):
    """Also those that only even out the spreads of columns, as a search begins with them."""
    rng = np.random.default_rng(0)
    rows = [(rng.normal(), rng.choice(["a", "b", "b", "b", "c"]), rng.normal()) for _ in range(60)]
    (tmp_path / "t.csv").write_text("x,letter,y\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    table = read_table(tmp_path / "t.csv").frame.drop("y")
    from mercer import Gaussian, KernelRidge
    from mercer.cli.summary import told_apart
    from mercer.tables import TableFeatures, TableModel

    spread = TableFeatures().fit(table).transform(table).std(axis=0)
    assert len(spread) == 4
    y = np.array([c for _, _, c in rows])
    for scales, said in (
        (2 * spread, ""),
        (np.full(4, 2.0), ""),
        (np.array([9.0, 0.5, 9.0, 9.0]), "letter, x"),
        (np.array([0.5, 9.0, 9.0, 9.0]), "x, letter"),
    ):
        model = TableModel(KernelRidge(kernel=Gaussian(sigma=scales))).fit(table, y)
        assert told_apart(model, table) == said


def test_notes_are_in_the_words_of_the_command(capsys):
    def act():
        warnings.warn(
            "the last fit takes 10 of 40 points, as many as memory and time allow: raise max_time, or the "
            "memory budget with mercer.config(memory=…)",
            stacklevel=1,
        )
        return 0

    assert run(act) == 0
    assert capsys.readouterr().err == (
        "note: the last fit takes 10 of 40 points, as many as memory and time allow: "
        "raise --time or --memory\n"
    )


def test_notes_are_of_the_model_that_is_kept(mercer, sine, written, tmp_path, monkeypatch):
    """A fit on the way that ran out of time is no news if the last one did not."""
    from sklearn.exceptions import ConvergenceWarning

    from mercer.estimators.ridge import KernelRidge
    from mercer.report import Journal

    late = "KernelRidge ran out of max_time=0.25 seconds after 3 iterations: raise max_time"
    fit, count = KernelRidge.fit, []

    def warned(self, X, y, *rest):
        fitted = fit(self, X, y, *rest)
        count.append(len(X))
        if last or len(X) < 50:
            journal = Journal()
            journal.warn(late, ConvergenceWarning)
            self.report_ = journal.report(self.report_.plan, "max_time")
        return fitted

    monkeypatch.setattr(KernelRidge, "fit", warned)
    for last in (False, True):
        status, out, err = mercer("train", sine, "-t", "y", *NO_SEARCH, "--json")
        assert status == 0
        said = "KernelRidge ran out of --time after 3 iterations: raise --time"
        assert err.count("note: ") == last
        assert json.loads(out)["notes"] == [said] * last
        page = (tmp_path / "sine.html").read_text("utf-8")
        assert (said in page) == last
        assert "max_time" not in page
    assert min(count) < 50


def test_scales_that_are_given_are_for_the_columns_of_all_rows(mercer, tmp_path):
    """A category that one fold alone has, and a pair of them: every fold has the six columns of all rows."""
    rng = np.random.default_rng(0)
    letters = rng.choice(["a", "b", "c"], 60).astype(object)
    letters[7], letters[3:5] = "only here", "rare"
    x = rng.normal(size=60)
    lines = "".join(f"{a},{b},{np.sin(a) + (b == 'a')}\n" for a, b in zip(x, letters, strict=True))
    (tmp_path / "t.csv").write_text("x,letter,y\n" + lines)
    kernel = ("--kernel", "gaussian(sigma=[1,1,1,1,1,1])")
    status, out, err = mercer("train", "t.csv", "-t", "y", *kernel, "--folds", "5", "--no-report", "--json")
    assert status == 0, err
    facts = json.loads(out)
    assert len(facts["scales"]["sigma"]) == 6
    assert facts["error"] < 0.5 * facts["baseline"]
    model = load(tmp_path / "t.mercer")
    assert type(model.features).__name__ == "TableFeatures"
    # the columns count together, as those of the table
    assert set(model.features_.sources()) == {"x", "letter"}
