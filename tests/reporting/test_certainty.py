"""How sure a report says that the model is, and which rows it wants to be looked at."""

import re

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, AutoKernelRegressor, Gaussian, KernelLogisticRegression, KernelRidge, Landmarks
from mercer.reporting import write, write_report


@pytest.fixture
def section(tmp_path, monkeypatch):
    """A function that writes a report of the section alone, and gives its tables by their captions."""
    monkeypatch.setattr(write, "_SECTIONS", tuple(s for s in write._SECTIONS if s[0] == "certainty"))

    def make(model, X, y):
        text = write_report(model, X, y, tmp_path / "r.html").read_text("utf-8")
        main = text.partition('<main id="main">')[2]
        tables = {}
        for table in re.findall("<table>(.*?)</table>", main, re.DOTALL):
            caption = re.sub("<.*?>", "", re.search("<caption>(.*?)</caption>", table).group(1))
            body = table.partition("<tbody>")[2]
            rows = [
                re.findall("<t[dh][^>]*>(.*?)</t[dh]>", row) for row in re.findall("<tr>(.*?)</tr>", body)
            ]
            tables[caption.partition(":")[2].split(".")[0].strip()] = rows
        return re.sub("<.*?>", " ", main), tables

    return make


@pytest.mark.parametrize("kind", ["exact", "landmarks", "pipeline", "search"])
def test_a_regression_names_the_odd_rows(section, rng, kind):
    """One target is wrong, and one point is far from all others."""
    x = np.append(rng.uniform(-2, 2, (80, 1)), [[9.0]], axis=0)
    y = np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=81)
    y[30] += 5
    ridge = KernelRidge(0.1, kernel=Gaussian(sigma=0.5))
    model = {
        "exact": ridge,
        "landmarks": KernelRidge(0.1, kernel=Gaussian(sigma=0.5), landmarks=Landmarks(30)),
        "pipeline": make_pipeline(StandardScaler(with_std=False), ridge),
        "search": AutoKernelRegressor(kernel=Gaussian(sigma=0.5)),
    }[kind].fit(x, y)
    text, tables = section(model, x, y)
    assert tables["the largest errors"][0][0] == "31"
    if kind != "landmarks":  # A landmark is not far from itself.
        assert tables["where least is known of f, far from the other points"][0][0] == "81"
    assert "an interval that 90 % of targets are in" in text
    assert "noise of a target" in text


@pytest.mark.parametrize("kind", [lambda: SVC(probability=True), KernelLogisticRegression])
def test_classes_name_the_wrong_labels(section, kind):
    X, y = load_iris(return_X_y=True)
    y[7] = 2
    text, tables = section(kind().fit(X, y), X, y)
    assert tables["surely wrong"][0][:3] == ["8", "2", "0"]
    assert "right class in the set of 90 %" in text
    assert len(tables["where the model is least sure"]) == 8


def test_what_knows_no_certainty_says_so(section):
    X, _ = load_iris(return_X_y=True)
    rough = KernelRidge(0.0, kernel=Gaussian(sigma=1.0)).fit(X[:60:2], X[:60:2, 0])
    text, tables = section(rough, X[:60:2], X[:60:2, 0])
    assert "How well f is known is not shown: alpha=0 means no noise" in text
    assert list(tables) == ["the largest errors"]
