"""A model and its error within a time: the error is of the search that made the model, or says how not."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from mercer.cli import fitting
from mercer.cli.exits import as_options
from mercer.cli.fitting import Fitting
from mercer.cli.honest import Effort, difference
from mercer.cli.screen import Screen
from mercer.runtime.clock import now
from mercer.tables.features import TableFeatures
from mercer.tables.learners import learner
from mercer.tables.model import TableModel

WHOLE = Effort(10, 1000, True, "Gaussian", 4000, 4000)


def fitting_of(n=60, end=np.inf):
    x = np.linspace(-3, 3, n)
    X, y = x[:, None], np.sin(x)
    estimator = learner("auto", "regression", kernel="rbf", max_time=None, seed=0)
    return Fitting(TableModel(estimator, TableFeatures()), X, y, 0, Screen(quiet=True), end)


@pytest.fixture
def starved(monkeypatch):
    """Searches of which those with these numbers say that time ended them."""
    numbers, done, real = set(), [], Effort.of

    def of(model, rows):
        if not hasattr(model, "number_"):
            model.number_ = len(done)
            done.append(model)
        effort = real(model, rows)
        return Effort(**{**vars(effort), "is_whole": model.number_ not in numbers})

    monkeypatch.setattr(fitting.Effort, "of", of)
    return SimpleNamespace(numbers=numbers, done=done)


def test_without_a_limit_every_fold_is_searched(starved):
    model, honest = fitting_of().by_folds(3)
    assert honest.how == "3 folds, with the search done again in each" and honest.differs == ""
    assert len(starved.done) == 4 and len(honest.rows) == 60
    assert len(model.estimator_.expansion_) == 60


def test_one_whole_fold_rather_than_starved_ones(starved):
    """A first search that time ended is fitted on all rows: model and error are of the same search."""
    starved.numbers.add(0)
    model, honest = fitting_of(end=now() + 600).by_folds(3)
    assert len(starved.done) == 1 and model is starved.done[0]
    assert honest.how == "1 of 3 folds, 20 rows: time was short; the model is of the same search"
    assert honest.differs == "" and len(honest.rows) == 20
    assert len(model.estimator_.expansion_) == 60


def test_a_starved_search_on_all_rows_is_not_the_model(starved):
    starved.numbers.add(1)
    model, honest = fitting_of(end=now() + 600).by_folds(3)
    assert model is starved.done[0] and len(model.estimator_.expansion_) == 60
    assert "the model is of the same search" in honest.how


def test_a_starved_fold_does_not_count(starved):
    starved.numbers.add(2)
    model, honest = fitting_of(end=now() + 600).by_folds(3)
    assert model is starved.done[1]
    assert honest.how.startswith("1 of 3 folds, 20 rows: time was short; the search was done again")


@pytest.mark.parametrize(
    ("of_model", "of_folds", "said"),
    [
        (WHOLE, [WHOLE, Effort(9, 1000, True, "Matern 1.5", 3200, 3200)], ""),
        (Effort(3, 500, False, "Gaussian", 800, 800), [Effort(3, 400, False, "Gaussian", 400, 400)], ""),
        (
            WHOLE,
            [WHOLE, Effort(1, 300, False, "Linear", 3200, 3200)],
            "time ended the search that was judged after 1 kernel on 300 points (the model's: 10 on 1,000): "
            "it chose Linear, the other Gaussian; the model may be better than this error says",
        ),
        (
            Effort(2, 1000, False, "Gaussian", 4000, 4000),
            [WHOLE],
            "time ended the model's search after 2 kernels on 1,000 points (the one that was judged: 10 on "
            "1,000); the model may be worse than this error says",
        ),
        (
            WHOLE,
            [Effort(10, 1000, True, "Gaussian", 3200, 1600)],
            "the machines that were judged are of 50% of their rows, the model's is of 100%",
        ),
    ],
)
def test_a_difference_is_said(of_model, of_folds, said):
    assert difference(of_model, of_folds) == said


def test_the_result_says_it(mercer, sine, monkeypatch):
    monkeypatch.setattr("mercer.cli.fitting.difference", lambda model, folds: "it differs so")
    status, out, _ = mercer(
        "train", sine, "-t", "y", "--kernel", "rbf", "--no-report", "--folds", "2", "--json"
    )
    assert status == 0
    assert json.loads(out)["error_from"] == "2 folds, with the search done again in each; it differs so"


# --- before the search -----------------------------------------------------------------------------------


def without(monkeypatch, *modules):
    """As if these libraries were not installed."""
    from importlib.util import find_spec

    for module in modules:
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setattr(
        "mercer.errors.importlib.util.find_spec",
        lambda name, *rest: None if name in modules else find_spec(name, *rest),
    )


def test_what_saving_needs_is_told_before_the_search(mercer, sine, monkeypatch):
    without(monkeypatch, "skops")
    status, out, err = mercer("train", sine, "-t", "y")
    assert (status, out) == (2, "")
    assert err == 'mercer: skops is not installed: run pip install "mercer[models]"\n'


def test_what_a_report_needs_is_told_before_the_search(mercer, sine, monkeypatch):
    without(monkeypatch, "matplotlib")
    status, _, err = mercer("train", sine, "-t", "y", "--kernel", "rbf", "--folds", "2")
    assert status == 0
    assert err.startswith(
        'note: no report will be written: matplotlib is not installed: run  pip install "mercer[plot]"\n'
    )
    status, _, err = mercer("train", sine, "-t", "y", "--report", "r.html")
    assert status == 2 and "matplotlib is not installed" in err and "searching" not in err


# --- the words of the command line -----------------------------------------------------------------------


def test_notes_are_in_the_words_of_the_command():
    from mercer.selection.auto import AutoMixin

    said = []
    AutoMixin._tell_of_fewer(2000, 9000, SimpleNamespace(warn=said.append))
    assert as_options(said[0]) == (
        "the last fit takes 2,000 of 9,000 points, as many as memory and time allow: raise --time or --memory"
    )
    assert "max_time" not in as_options(
        "SVC ran out of max_time=0.5 seconds after 3 iterations; raise max_time"
    )
