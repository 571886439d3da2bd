"""A model and its error within a time: the error is of the search that made the model, or says how not."""

from types import SimpleNamespace

import numpy as np
import pytest

from mercer.data.folds import folds
from mercer.runtime.clock import now
from mercer.tables import fitting
from mercer.tables.features import TableFeatures
from mercer.tables.fitting import Fitting, Telling
from mercer.tables.honest import Effort, difference
from mercer.tables.learners import learner
from mercer.tables.model import TableModel

WHOLE = Effort(10, 1000, True, "Gaussian", 4000, 4000)


def fitting_of(n=60, end=np.inf):
    x = np.linspace(-3, 3, n)
    X, y = x[:, None], np.sin(x)
    estimator = learner("auto", "regression", kernel="rbf", max_time=None, seed=0)
    return Fitting(TableModel(estimator, TableFeatures()), X, y, 0, Telling(), end)


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


def test_unasked_the_search_judges_some_rows_and_its_machine_all(starved, monkeypatch):
    """One search more, however many folds; the error is that of all rows."""
    monkeypatch.setattr(fitting, "_JUDGED", 20)
    one = fitting_of()
    one.y = one.y + 0.3 * np.random.default_rng(0).normal(size=60)
    model, honest = one.by_folds(3, every=False)
    assert len(starved.done) == 2 and model is starved.done[1]
    assert len(honest.rows) == len(honest.predictions) == 20 and honest.tested is None
    assert honest.how == (
        "the search again for 20 rows, and its machine alone for all 60, corrected by what it hides on those"
    )
    alone = one._alone(model, folds(60, 3, 0))
    cheap, judged = (alone - one.y) ** 2, (honest.predictions - one.y[honest.rows]) ** 2
    assert honest.error**2 == pytest.approx(cheap.mean() + (judged - cheap[honest.rows]).mean(), rel=1e-9)
    assert honest.interval[0] < honest.error < honest.interval[1]


def test_few_rows_are_all_judged_by_searches(starved):
    _, honest = fitting_of().by_folds(3, every=False)
    assert len(starved.done) == 4 and honest.tested == len(honest.rows) == 60


def test_without_time_for_the_machine_alone_the_fold_counts(starved, monkeypatch):
    monkeypatch.setattr(fitting, "_JUDGED", 20)
    monkeypatch.setattr(Fitting, "_alone", lambda self, model, splits: None)
    _, honest = fitting_of().by_folds(3, every=False)
    assert len(honest.rows) == honest.tested == 20 and honest.how.startswith("1 of 3 folds, 20 rows")
