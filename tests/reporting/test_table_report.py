"""Reports of models on tables with columns of any kind: every section is there, and says the truth."""

import datetime
import re

import numpy as np
import pytest

from mercer import Gaussian, Linear
from mercer.reporting import write_report
from mercer.selection import AutoKernelClassifier, AutoKernelRegressor
from mercer.tables import TableFeatures, TableModel

from .test_report import Page, check_structure, only

pl = pytest.importorskip("polars")

SECTIONS = ["data", "error", "certainty", "relevance", "curve", "choice", "prototypes", "matrix", "plane"]
SECTIONS += ["margin", "fit", "columns"]


def mixed(n=90, text=False):
    """Numbers with gaps, rare categories, one that is in a single row, dates; texts if asked for."""
    rng = np.random.default_rng(0)
    number = rng.normal(size=n)
    city = rng.choice(["Rome", "Oslo", "Lima"], n).astype(object)
    city[:8] = ["a", "a", "b", "b", "c", "c", "d", "d"]
    city[20] = "only here"
    start = datetime.date(2020, 1, 1)
    columns = {
        "number": [None if i % 11 == 3 else float(v) for i, v in enumerate(number)],
        "city": [None if i % 17 == 5 else c for i, c in enumerate(city)],
        "day": [start + datetime.timedelta(days=int(d)) for d in rng.integers(0, 1500, n)],
    }
    if text:
        words = ["good", "fine", "bad", "late", "soon", "never", "again"]
        columns["note"] = [
            None if i % 13 == 2 else " ".join(rng.choice(words, 6)) + f" {i}" for i in range(n)
        ]
    y = np.where(number + (city == "Rome") + 0.3 * rng.normal(size=n) > 0.5, "yes", "no")
    return pl.DataFrame(columns), y


def scales(table, y):
    """A length scale of each feature, as a search learns them."""
    return np.linspace(2.0, 4.0, len(TableFeatures().fit(table, y).get_feature_names_out()))


def written(folder, model, table, y, **options):
    path = write_report(model.as_pipeline(), table, y, folder / "r.html", features=table.columns, **options)
    text = path.read_text("utf-8")
    page = Page(text)
    check_structure(page, text)
    return page, text


@pytest.mark.sample(2)
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_every_section_of_a_mixed_table_is_there(task, tmp_path):
    table, y = mixed()
    kernel = Gaussian(sigma=scales(table, y))
    search = AutoKernelClassifier(kernel) if task == "classification" else AutoKernelRegressor(kernel)
    y = y if task == "classification" else (y == "yes") + np.arange(len(y)) / 90
    page, text = written(tmp_path, TableModel(search).fit(table, y), table, y)
    assert "could not be made" not in text
    assert "not shown, because" not in text
    ids = [attributes["id"] for attributes in page.find("h2")]
    assert ids == SECTIONS
    assert "with the features, the kernel and the penalty of this one" in page.said() or task == "regression"
    assert "features, kernel and penalty stay" in page.said()


@pytest.mark.full
def test_texts_too(tmp_path):
    table, y = mixed(60, text=True)
    model = TableModel(AutoKernelClassifier(Linear())).fit(table, y)
    assert model.features_.objects_ == ["note"]
    page, text = written(tmp_path, model, table, y)
    assert "could not be made" not in text
    assert "not shown, because" not in text
    assert "Linear on" in page.said()
    assert "BagOfWords" in page.said() or "on 'note'" in page.said()


def test_what_matters_is_columns_of_the_table(tmp_path, monkeypatch):
    """All one-hots of a city, all parts of a date together; none that was not measured."""
    only(monkeypatch, "relevance")
    table, y = mixed()
    model = TableModel(AutoKernelClassifier(Gaussian(sigma=5.0))).fit(table, y)
    page, text = written(tmp_path, model, table, y)
    rows = re.findall(r'<tr><th scope="row">([^<]*)</th>', text)
    assert sorted(rows) == ["city", "day", "number"]
    assert "column relevance ± cells" in page.said()
    assert "95 % intervals" in page.said()


def test_the_verdict_is_first_and_the_columns_last(tmp_path, monkeypatch):
    only(monkeypatch, "data", "columns")
    table, y = mixed()
    model = TableModel(AutoKernelClassifier(Gaussian(sigma=5.0))).fit(table, y)
    wrong = np.arange(30) % 10 == 0

    class Honest:
        error, interval, how, baseline = 0.1, (0.02, 0.27), "a third of the rows", 0.4
        rows = np.arange(30)
        predictions = np.where(wrong, np.where(y[:30] == "yes", "no", "yes"), y[:30])

    page, text = written(tmp_path, model, table, y, error=Honest(), title="answer from answers.csv")
    said = page.said()
    verdict = (
        "Right on 27 of 30 rows never seen (90.0 %); the most frequent class alone would be right on 18."
    )
    assert page.headings[0] == ("h1", "answer from answers.csv")
    assert text.index("<h1") < text.index(verdict) < text.index('class="lead"')
    assert "kernel Gaussian points learned from 90" in said
    (details,) = [inside for name, _, inside in page.tags if name == "details"]
    assert details[-1] == "section"
    assert "3 columns, one by one" in said
    assert f"category: {model.features_.describe()['city']}" in said
    assert [attributes["id"] for attributes in page.find("h2")] == ["data", "columns"]


def test_one_baseline(tmp_path, monkeypatch):
    """That of the error that is given, wherever it is shown."""
    only(monkeypatch, "error")
    table, y = mixed()
    model = TableModel(AutoKernelClassifier(Gaussian(sigma=5.0))).fit(table, y)

    class Honest:
        error, interval, how, baseline = 0.1, (0.02, 0.27), "a third of the rows", 0.377
        rows = np.arange(30)
        predictions = y[:30]

    page, _ = written(tmp_path, model, table, y, error=Honest())
    assert "the most frequent class alone 37.7 %" in page.said()
    assert "always the most common" not in page.said()


def test_notes_are_those_that_are_given(tmp_path, monkeypatch):
    only(monkeypatch, "fit")
    table, y = mixed()
    model = TableModel(AutoKernelClassifier(Gaussian(sigma=5.0))).fit(table, y)
    page, _ = written(tmp_path, model, table, y, notes=["1,500 of <many> rows were taken"])
    assert "1,500 of <many> rows were taken" in page.said()
    assert "The search before it made 2 trials." in page.said()
    assert "iterations 0" not in page.said()


def test_without_time_a_report_says_what_it_lacks(tmp_path):
    table, y = mixed()
    model = TableModel(AutoKernelClassifier(Gaussian(sigma=scales(table, y)))).fit(table, y)
    page, text = written(tmp_path, model, table, y, limit=0.0, error=0.2)
    assert [tag["id"] for tag in page.find("h2")] == SECTIONS
    assert "<svg" not in text
    said = page.said()
    assert (
        "Time was short, and some of this report is left out: The confusion matrix; The calibration; How "
        "sure, and where not; What matters; Would more data help?; The most influential points; What the "
        "kernel sees; The learned function in feature space; Margin and bounds; The columns. With the model "
        "and the table, mercer report writes all of it." in said
    )
    assert "What matters: left out, because the time for this report was over." in said
    assert "How it was computed" in said


@pytest.mark.full
def test_the_table_is_transformed_for_all_sections_at_once(tmp_path, monkeypatch):
    seen, transform = [], TableFeatures.transform
    table, y = mixed()
    model = TableModel(AutoKernelClassifier(Gaussian(sigma=5.0))).fit(table, y)
    monkeypatch.setattr(TableFeatures, "transform", lambda f, X: seen.append(len(X)) or transform(f, X))
    written(tmp_path, model, table, y)
    assert sorted(seen) == [2, 90, 90]  # two rows tell whether the model takes the table; all; to shuffle


@pytest.mark.full
def test_the_kernel_of_each_column_names_the_columns_of_the_table(tmp_path, monkeypatch):
    only(monkeypatch, "choice")
    table, y = mixed(text=True)
    page, text = written(tmp_path, TableModel(AutoKernelClassifier(max_time=1.0)).fit(table, y), table, y)
    rows = re.findall(r'<tr><th scope="row">([^<]*)</th>', text)
    assert "number, city, day" in rows and "note" in rows
    assert "The kernel of each column" in page.said() and "(0, 1" not in page.said()


def test_weights_are_of_the_points_that_were_learned_from(tmp_path, monkeypatch):
    only(monkeypatch, "prototypes")
    table, y = mixed()
    model = TableModel(AutoKernelClassifier(Gaussian(sigma=5.0))).fit(table[:60], y[:60])
    kept = len(model.estimator_.model_.support_)
    page, _ = written(tmp_path, model, table, y)
    assert f"gives a weight αᵢ to {kept:,} of the 60 points xᵢ that it was learned from" in page.said()
