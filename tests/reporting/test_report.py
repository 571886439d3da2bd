"""The report: its structure as a page, what it says, and that it never fails as a whole."""

import re
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_digits
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import (
    SVC,
    ColumnKernel,
    Gaussian,
    KernelPerceptron,
    KernelRidge,
    KernelRidgeCV,
    Linear,
    OneClassSVM,
    Spectrum,
    WeisfeilerLehman,
)
from mercer.errors import InputError, InputTypeError
from mercer.reporting import write, write_report
from mercer.verdict import percent

VOID = {"meta", "img", "br", "hr", "input", "link"}


class Page(HTMLParser):
    """Tags in order, with what they hold; fails on tags that do not match."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.headings, self.text = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes), tuple(self.open)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes), tuple(self.open)))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] in ("h1", "h2", "h3"):
            self.headings.append((self.open[-1], data))
        if "style" not in self.open and "svg" not in self.open:
            self.text.append(data)

    def find(self, tag):
        return [attributes for name, attributes, _ in self.tags if name == tag]

    def said(self):
        return " ".join(" ".join(self.text).split())


def report(folder, *given, **options):
    text = write_report(*given, folder / "report.html", **options).read_text("utf-8")
    return Page(text), text


def only(monkeypatch, *names):
    """Reports with these sections alone."""
    monkeypatch.setattr(write, "_SECTIONS", tuple(s for s in write._SECTIONS if s[0] in names))


def check_structure(page, text):
    assert text.startswith("<!DOCTYPE html>")
    assert page.find("html") == [{"lang": "en"}]
    for landmark in ("header", "nav", "main", "footer", "h1", "title"):
        assert len([inside for name, _, inside in page.tags if name == landmark and "svg" not in inside]) == 1
    levels = [int(tag[1]) for tag, _ in page.headings]
    assert levels[0] == 1 and all(b - a <= 1 for a, b in pairwise(levels))
    ids = [attributes["id"] for _, attributes, _ in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for section in page.find("section"):
        assert section["aria-labelledby"] in ids
    for link in page.find("a"):
        assert link["href"].startswith("#") and link["href"][1:] in ids
    for picture in page.find("img"):
        assert picture["alt"].strip() and picture["src"].startswith("data:image/png;base64,")
    for box in [a for a in page.find("div") if a.get("class") == "picture"]:
        assert box["role"] == "img" and len(box["aria-label"]) > 20
    assert len(page.find("figure")) == len(page.find("figcaption"))
    assert all(head.get("scope") in ("row", "col") for head in page.find("th"))
    assert len(page.find("table")) == len(page.find("caption"))
    # nothing is loaded and nothing runs
    assert not page.find("script") and not page.find("link") and not page.find("iframe")
    for _, attributes, _ in page.tags:
        assert not any(name.startswith("on") for name in attributes)
        for name in ("src", "href", "xlink:href", "action"):
            assert not re.match(r"(https?:)?//", attributes.get(name) or "")
    assert "@import" not in text and not re.search(r"url\((?!#|.?#)", text)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    X, y = X[:300], y[:300]
    return X, y, SVC(C=5.0, probability=True).fit(X, y)


# --- whole reports -----------------------------------------------------------------------------------------


@pytest.mark.full  # the others of this file look at parts of the same page
def test_digits(digits, tmp_path):
    X, y, model = digits
    page, text = report(tmp_path, model, X, y, title="Digits & <others>")
    check_structure(page, text)
    assert page.headings[0] == ("h1", "Digits & <others>")
    assert len(page.find("section")) == 11  # pixels are not listed one by one
    assert "could not be made" not in text and "not shown, because" not in text
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    truth = np.mean(cross_val_predict(SVC(C=5.0), X, y, cv=folds) != y)
    right = 300 - round(truth * 300)
    assert f"Right on {right} of 300 rows left out ({percent(1 - truth)}); the most" in page.said()
    assert f"error {percent(truth)} (" in page.said()
    assert f"{len(model.support_)} of 300" in page.said()
    assert len(page.find("img")) == 12  # prototypes are images
    assert f"share of support vectors: {len(model.support_) / 300:.1%}".replace("%", " %") in page.said()
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_a_regression_with_its_path(tmp_path):
    data = load_diabetes()
    kernels = [Gaussian(sigma=0.2), Gaussian(sigma=0.4), Linear()]
    model = KernelRidgeCV(kernel=kernels).fit(data.data, data.target)
    page, text = report(tmp_path, model, data.data, data.target, features=data.feature_names)
    check_structure(page, text)
    assert "could not be made" not in text and "not shown, because" not in text
    left = np.sqrt(np.mean(model.loo_residuals_**2))
    assert f"{left:.4g}" in page.said() and "3 kernels were tried" in page.said()
    assert "bmi" in page.said() and f"{np.sqrt(model.best_score_):.4g}" in page.said()
    assert f"{1 - left**2 / data.target.var():.3f}" in page.said()  # R²


def test_texts(tmp_path):
    rng = np.random.default_rng(0)
    letters = ["abc", "bcd"]
    texts = ["".join(rng.choice(list(letters[i % 2]), 20)) for i in range(40)]
    texts[0] = "<script>alert(1)</script>"
    y = np.where(np.arange(40) % 2, "<i>odd</i>", 'ev"en')
    page, text = report(tmp_path, SVC(kernel=Spectrum(2)).fit(texts, y), texts, y)
    check_structure(page, text)
    assert "could not be made" not in text and "not shown, because" not in text
    assert "<script>alert(1)</script>" in page.said() or "<script" not in text
    assert "without columns" in page.said() and "gives no probabilities" in page.said()


def test_a_table_behind_a_pipeline(tmp_path, monkeypatch):
    only(monkeypatch, "data", "plane", "prototypes", "relevance", "fit")
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"height": rng.normal(170, 10, 60), "weight": rng.normal(70, 9, 60)})
    y = frame["height"] > 170
    page, text = report(tmp_path, make_pipeline(StandardScaler(), SVC()).fit(frame, y), frame, y)
    check_structure(page, text)
    assert "could not be made" not in text and "not shown, because" not in text
    assert "height" in page.said() and "StandardScaler" in page.said()
    # prototypes are in the units of the table
    heights = {f"{value:.4g}" for value in frame["height"]}
    cells = re.findall(r"<td class=\"number\">([\d.]+)</td>", text)
    assert len(heights & set(cells)) >= 3


@pytest.mark.full  # so has the table of test_table_report.py
def test_mixed_columns_with_gaps(tmp_path):
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(40, 9, 50), "city": rng.choice(["Rome", "Oslo"], 50)})
    frame.loc[3, "age"], frame.loc[4, "city"] = np.nan, None
    y = frame["city"] == "Rome"
    page, text = report(tmp_path, SVC(kernel=ColumnKernel()).fit(frame, y), frame, y)
    check_structure(page, text)
    assert "could not be made" not in text and "not shown, because" not in text
    assert "The kernel of each column" in page.said()


def test_a_perceptron_tells_its_mistakes_and_their_bound(tmp_path, monkeypatch):
    only(monkeypatch, "margin")
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(0, 0.3, (30, 3)), rng.normal(2, 0.3, (30, 3))])
    y = np.repeat([0, 1], 30)
    model = KernelPerceptron(Gaussian(sigma=1.0)).fit(X, y)
    page, text = report(tmp_path, model, X, y)
    check_structure(page, text)
    assert model.bound_ >= model.mistakes_
    assert f"this is {model.bound_:.4g}, and {model.mistakes_} mistakes were made" in page.said()


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    "case", ["one class", "precomputed", "several targets", "graphs", "two points", "new data"]
)
def test_other_models_degrade_part_by_part(case, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X[:, 0] > 0
    options = {}
    if case == "one class":
        given = OneClassSVM(nu=0.1).fit(X), X, None
    elif case == "precomputed":
        given = SVC(kernel="precomputed").fit(X @ X.T, y), X @ X.T, y
    elif case == "several targets":
        Y = X[:, :2] ** 2
        given = KernelRidge().fit(X, Y), X, Y
    elif case == "graphs":
        ring, path = np.ones((3, 3)) - np.eye(3), np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
        graphs = [(ring, "CCC"), (path, "HOH")] * 6
        given = SVC(kernel=WeisfeilerLehman(1)).fit(graphs, [0, 1] * 6), graphs, [0, 1] * 6
    elif case == "two points":
        given = SVC().fit([[0.0], [1.0]], ["a", "b"]), [[0.0], [1.0]], ["a", "b"]
    else:
        model = SVC().fit(X[:20], y[:20])
        given = model, X[20:], y[20:]
        options = {"error": (0.25, (0.1, 0.4))}
    page, text = report(tmp_path, *given, **options)
    check_structure(page, text)
    listed = hasattr(given[1], "shape") and case != "precomputed"  # columns, one by one
    is_sure = case not in ("one class", "several targets")  # one target, of which something can be said
    assert len(page.find("section")) == 10 + listed + is_sure and len(page.find("figure")) >= 3
    if case == "new data":
        wrong = np.mean(given[0].predict(X[20:]) != y[20:])
        assert "25.0 % (10.0 % to 40.0 %)" in page.said() and "these points are new" in page.said()
        recall = np.mean(given[0].predict(X[20:])[y[20:]])
        assert f"{recall:.1%}".replace("%", " %") in page.said() and wrong < 1


def test_predictions_of_a_nested_evaluation_are_used(digits, tmp_path, monkeypatch):
    X, y, model = digits

    class Nested:
        error, interval, errors = 0.5, (0.4, 0.6), np.zeros(3)
        predictions = np.where(np.arange(300) % 2, y, (y + 1) % 10)

    only(monkeypatch, "error")
    page, _ = report(tmp_path, model, X, y, error=Nested())
    assert "50.0 % (40.0 % to 60.0 %)" in page.said() and "Predicted in 3 folds" in page.said()


@pytest.mark.full
def test_the_same_seed_gives_the_same_page(tmp_path, monkeypatch):
    only(monkeypatch, "data", "error", "matrix")
    x = np.linspace(0, 6, 50)[:, None]
    model = KernelRidge(0.1).fit(x, np.sin(x[:, 0]))
    pages = [
        write_report(model, x, np.sin(x[:, 0]), tmp_path / f"{i}.html").read_text("utf-8") for i in (0, 1)
    ]
    assert pages[0] == pages[1]


# --- what goes wrong ---------------------------------------------------------------------------------------


def test_a_section_that_fails_is_a_sentence(digits, tmp_path, monkeypatch):
    def broken(case, pictures):
        raise RuntimeError("no <luck>")

    only(monkeypatch, "data", "matrix", "fit")
    sections = tuple(
        (name, text, broken if name == "matrix" else make, seconds)
        for name, text, make, seconds in write._SECTIONS
    )
    monkeypatch.setattr(write, "_SECTIONS", sections)
    X, y, model = digits
    page, text = report(tmp_path, model, X, y)
    check_structure(page, text)
    assert "This part could not be made: RuntimeError: no <luck>" in page.said()
    assert len(page.find("section")) == 3


def test_without_matplotlib_there_are_words(digits, tmp_path, monkeypatch):
    import sys

    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    x = np.linspace(0, 6, 30)[:, None]
    page, text = report(tmp_path, KernelRidge().fit(x, x[:, 0]), x, x[:, 0])
    check_structure(page, text)
    assert 'pip install "mercer[plot]"' in page.said() and not page.find("figure")


def test_an_existing_report_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    x = np.linspace(0, 6, 20)[:, None]
    model = KernelRidge().fit(x, x[:, 0])
    place = tmp_path / "report.html"
    place.write_text("before")
    monkeypatch.setattr(write, "_page", lambda case, title: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(model, x, x[:, 0], place)
    monkeypatch.setattr(write, "_page", lambda case, title: "after")
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(InputError, match="cannot be written: No space left"):
        write_report(model, x, x[:, 0], place)
    assert place.read_text() == "before" and [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_wrong_input_is_refused_before_the_work(tmp_path):
    x = np.linspace(0, 6, 20)[:, None]
    model = KernelRidge().fit(x, x[:, 0])
    for path, message in (
        (tmp_path, "is a folder"),
        (tmp_path / "no" / "r.html", "in a folder that does not exist"),
        (None, "path must be a path, got None"),
    ):
        with pytest.raises(InputError, match=message):
            write_report(model, x, x[:, 0], path)
    assert issubclass(InputTypeError, TypeError)
    place = tmp_path / "r.html"
    with pytest.raises(InputError, match="one entry per point"):
        write_report(model, x, x[:3, 0], place)
    with pytest.raises(InputError, match="must be fitted"):
        write_report(KernelRidge(), x, x[:, 0], place)
    with pytest.raises(InputError, match="seed must be a whole number"):
        write_report(model, x, x[:, 0], place, seed=-1)
    with pytest.raises(InputError, match="X must be points"):
        write_report(model, None, x[:, 0], place)
    with pytest.raises(InputError, match="X has no points"):
        write_report(model, x[:0], x[:0, 0], place)
    assert not place.exists()


# --- what each kind of model must have ---------------------------------------------------------------------


def test_kernel_values_have_an_error_and_a_learning_curve(tmp_path, monkeypatch):
    only(monkeypatch, "error", "curve", "prototypes")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] > 0
    K = X @ X.T
    said = [
        report(tmp_path, SVC(kernel=kernel).fit(points, y), points, y)[0].said()
        for kernel, points in (("precomputed", K), (Linear(), X))
    ]
    assert "could not be made" not in said[0] and "not shown" not in said[0]
    errors = [re.search(r"error ([\d.]+ %) \(", text)[1] for text in said]
    assert errors[0] == errors[1] and "point weight |α|" in said[0]


def test_kernel_values_of_a_square_number_of_points_are_no_images(tmp_path, monkeypatch):
    only(monkeypatch, "data", "prototypes")
    X = np.random.default_rng(0).normal(size=(64, 3))
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    page, _ = report(tmp_path, SVC(kernel="precomputed").fit(K, X[:, 0] > 0), K, X[:, 0] > 0)
    assert not page.find("img") and "kernel values of pairs of points" in page.said()


def test_graphs_are_shown_as_graphs(tmp_path, monkeypatch):
    only(monkeypatch, "data", "prototypes")
    ring, path = np.ones((3, 3)) - np.eye(3), np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    graphs = [(ring, "CCC"), (path, "HOH")] * 6
    page, _ = report(
        tmp_path, SVC(kernel=WeisfeilerLehman(1).normalized()).fit(graphs, [0, 1] * 6), graphs, [0, 1] * 6
    )
    assert "each a graph" in page.said() and "3 nodes, 2 edges: H O H" in page.said()
    assert "array(" not in page.said()


def test_a_report_of_other_points_says_how_many_were_learned_from(tmp_path, monkeypatch):
    only(monkeypatch, "data")
    X = np.random.default_rng(0).normal(size=(50, 2))
    page, _ = report(tmp_path, KernelRidge().fit(X[:30], X[:30, 0]), X, X[:, 0])
    assert "learned from 30 points; the report is of 50" in page.said()


def test_machines_without_probabilities_are_calibrated_in_folds(tmp_path, monkeypatch):
    only(monkeypatch, "error")
    X = np.random.default_rng(0).normal(size=(90, 2))
    y = X[:, 0] + 0.5 * X[:, 1] ** 2 > 0.3
    page, text = report(tmp_path, SVC().fit(X, y), X, y)
    assert "what it would give with probability=True" in page.said()
    assert text.count('class="picture"') == 2  # confusion and calibration


def test_every_class_has_prototypes(tmp_path, monkeypatch):
    """Support vectors at C are all equally influential, and come in the order of the data."""
    only(monkeypatch, "prototypes")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.repeat(["first", "last"], 150)
    _, text = report(tmp_path, SVC(C=0.1).fit(X, y), X, y)
    assert text.count("<td>first</td>") >= 6 <= text.count("<td>last</td>")


def test_rows_of_many_columns_are_shown_by_those_that_matter(tmp_path, monkeypatch):
    only(monkeypatch, "relevance", "prototypes")
    X = np.random.default_rng(0).normal(size=(80, 20))
    model = SVC(kernel=Linear()).fit(X, X[:, 17] > 0)
    page, _ = report(tmp_path, model, X, X[:, 17] > 0)
    assert "the 8 that matter most of 20 columns" in page.said() and "column 17" in page.said()


def test_one_class_tells_what_is_novel(tmp_path, monkeypatch):
    only(monkeypatch, "error", "prototypes", "relevance", "plane")
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = OneClassSVM(nu=0.2).fit(X)
    page, text = report(tmp_path, model, X, None)
    novel = np.mean(model.predict(X) < 0)
    assert f"called novel {novel:.2%}".replace("%", " %") in page.said()
    assert "target" not in re.findall(r"<th[^>]*>([^<]*)", text)
    assert "could not be made" not in text and "not shown, because" not in text


def test_several_targets_have_their_residuals(tmp_path, monkeypatch):
    only(monkeypatch, "error")
    X = np.random.default_rng(0).normal(size=(40, 3))
    page, text = report(tmp_path, KernelRidge().fit(X, X[:, :2] ** 2), X, X[:, :2] ** 2)
    assert "(target 2 of 2)" in page.said() and text.count("<svg") == 4


def test_a_search_says_that_its_errors_flatter(tmp_path, monkeypatch):
    from mercer.selection import AutoKernelClassifier

    only(monkeypatch, "error")
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = X[:, 0] > 0
    page, _ = report(tmp_path, AutoKernelClassifier(Gaussian(1.0)).fit(X, y), X, y)
    assert "chosen with all points in view" in page.said()


def test_what_no_report_can_be_made_of_is_refused_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(write, "_page", lambda case, title: 1 / 0)
    X = np.random.default_rng(0).normal(size=(20, 3))
    y = (X[:, 0] > 0).astype(int)
    model, ridge = SVC().fit(X, y), KernelRidge().fit(X, X[:, 0])
    missing = np.where(np.arange(20) == 3, np.nan, X[:, 0])
    for wrong, message in (
        ((model, X, y.astype(str)), r"none of the labels that the model knows: got '.'.*it knows 0, 1"),
        ((model, X[:, :2], y), "does not take these points: X has 2 features"),
        ((ridge, X, missing), "NaN or infinity for 1 points"),
        ((ridge, X, ["a"] * 20), "y must be numbers"),
    ):
        with pytest.raises(InputError, match=message):
            write_report(*wrong, tmp_path / "report.html")
    for options, message in (
        ({"features": ["a"]}, "features must name the 3 columns of X, got 1"),
        ({"error": "small"}, "error must be a number"),
        ({"error": float("nan")}, "error must be a number"),
        ({"error": (0.1, (0.0, np.nan))}, "error must be a number"),
        ({"trials": [1, 2]}, "a trial needs a kernel"),
        ({"seed": -1}, "seed must be"),
    ):
        with pytest.raises(InputError, match=message):
            write_report(model, X, y, tmp_path / "report.html", **options)
    assert not list(tmp_path.iterdir())
