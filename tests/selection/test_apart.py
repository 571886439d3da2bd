"""Searches that keep groups or times apart: what they compare, choose and say of it."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.model_selection import GroupKFold

from mercer import SVC, Gaussian, Gram, KernelRidge, config
from mercer.data.apart import Groups, Times
from mercer.errors import InputError
from mercer.selection import AutoKernelClassifier, AutoKernelRegressor, nested_error
from mercer.selection.nested import judged
from mercer.selection.scores import PENALTIES, MachineErrors
from mercer.selection.search import Clock, Search
from mercer.solvers.linear.apart import errors_from_before, errors_left_out
from mercer.tables.calibrated import slopes_apart


@pytest.fixture
def visits(rng):
    """Levels of thirty patients, whom the first column tells apart, and an effect of the second one."""
    patient = np.repeat(np.arange(30), 8)
    age, dose = 3.0 * rng.permutation(30)[patient], rng.uniform(0, 5, 240)
    y = 3 * rng.normal(size=30)[patient] + np.sin(dose) + 0.1 * rng.normal(size=240)
    return np.column_stack([age, dose]), y, patient


@pytest.mark.parametrize("kind", [Groups, Times])
def test_errors_of_ridge_are_those_of_its_fits(rng, kind):
    """Closed forms against a fit for each block."""
    X, Y = rng.normal(size=(40, 2)), rng.normal(size=(40, 2))
    blocks = kind(rng.integers(0, 8, 40)).blocks()
    kernel, alpha = Gaussian(1.0), 0.1
    K = np.asarray(Gram(kernel, X).dense())
    errors = (errors_from_before if kind is Times else errors_left_out)(K, Y, alpha, blocks)
    for k, rows in enumerate(blocks):
        known = np.concatenate(blocks[:k] or [[]]) if kind is Times else np.setdiff1d(np.arange(40), rows)
        if len(known) == 0:
            assert np.isnan(errors[rows]).all()
            continue
        known = known.astype(int)
        told = KernelRidge(alpha, kernel=kernel).fit(X[known], Y[known]).predict(X[rows])
        np.testing.assert_allclose(errors[rows], Y[rows] - told, atol=1e-10)  # K is of condition 400


@pytest.mark.parametrize("kind", [Groups, Times])
def test_errors_of_machines_are_those_of_its_folds(rng, kind):
    X = rng.normal(size=(90, 2))
    y, apart = (X[:, 0] + 0.5 * rng.normal(size=90) > 0).astype(int), kind(rng.integers(0, 12, 90))
    errors, penalties = MachineErrors(X, y, apart=apart).path(Gaussian(1.0), np.arange(90), end=np.inf)
    folds = apart.folds(5, 0, y)
    for C, error in list(zip(penalties, errors, strict=True))[:5]:
        wrong = [
            SVC(kernel=Gaussian(1.0), C=C).fit(X[train], y[train]).predict(X[test]) != y[test]
            for train, test in folds
        ]
        # Machines of scores end at a tolerance of 0.01, where two points of 90 may be on the other side.
        assert error == pytest.approx(np.concatenate(wrong).mean(), abs=2 / 45)
    assert len(errors) == len(PENALTIES)


def test_a_class_of_one_group_is_never_right_there(rng):
    """The fold without it knows one class alone, and its rows count as wrong."""
    X, group = rng.normal(size=(40, 1)), np.repeat(np.arange(4), 10)
    errors, _ = MachineErrors(X, (group == 0).astype(int), apart=Groups(group)).path(
        Gaussian(1.0), np.arange(40)
    )
    assert (errors >= 0.25).all()


@pytest.mark.parametrize("kind", [Groups, Times])
@pytest.mark.parametrize("n", [300, 2600])
def test_a_search_learns_and_scores_on_different_ones(rng, kind, n):
    codes = rng.integers(0, 40, n)
    search = Search(np.zeros((n, 1)), np.zeros((n, 1)), None, clock=Clock(None), apart=kind(codes))
    parts = search._parts(1000)
    assert len(parts) == (1 if n == 2600 or kind is Times else 2)
    for learned, scored in parts:
        assert min(len(learned), len(scored)) >= min(n // 2 - n // 8, 1000)
        assert not set(codes[learned]) & set(codes[scored])
        if kind is Times:
            assert codes[learned].max() < codes[scored].min()
    assert sorted(search.rows.tolist()) == list(range(n))


def test_regression_of_groups(visits):
    """What the folds are told is what new patients see: their level cannot be known."""
    X, y, patient = visits
    model = AutoKernelRegressor(Gaussian(1.0)).fit(X, y, groups=patient)
    plain = AutoKernelRegressor(Gaussian(1.0)).fit(X, y)
    assert plain.best_score_ < 0.3 < 0.8 < model.best_score_
    ends = model.predict_interval(X, 0.9)
    half = (ends[:, 1] - ends[:, 0]) / 2
    assert half == pytest.approx(np.sort(model.left_out_errors_[:, 0])[int(np.ceil(0.9 * 241)) - 1])
    assert np.ptp(plain.predict_interval(X, 0.9), axis=1).mean() < half[0]
    assert (
        "of the rows of new groups are inside, where the groups are exchangeable"
        in model.interval_guarantee()
    )
    assert not hasattr(model.fit(X, y), "left_out_errors_")


def test_intervals_of_groups_cover_new_groups(rng):
    """On average over groups: 40 new ones, whose levels are as those of 40 known ones."""

    def drawn():
        group = np.repeat(np.arange(40), 6)
        x = rng.uniform(-2, 2, 240)
        return x[:, None], np.sin(x) + rng.normal(size=40)[group] + 0.1 * rng.normal(size=240), group

    X, y, group = drawn()
    model = AutoKernelRegressor(Gaussian(1.0)).fit(X, y, groups=group)
    new, truth, _ = drawn()
    ends = model.predict_interval(new, 0.8)
    # The share over 40 groups has the deviation √(0.8·0.2/40) = 0.06, and that of the quantile is as large.
    assert 0.8 - 4 * 0.09 < np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1])) <= 1.0


def test_regression_of_times(rng):
    """A level that drifts: the errors of later rows are larger than those of rows in between."""
    t = np.arange(240)
    drift = np.cumsum(rng.normal(size=240))
    X = t[:, None] / 240.0
    model = AutoKernelRegressor(Gaussian(1.0)).fit(X, drift, times=t)
    plain = AutoKernelRegressor(Gaussian(1.0)).fit(X, drift)
    errors = errors_left_out(plain.kernel_(X), drift[:, None], plain.alpha_, np.arange(240)[:, None])
    # A walk is off by about 1 from its neighbours, and by √12 in the middle of 24 steps.
    assert np.sqrt(np.mean(errors**2)) < 1.5 < 2.0 < np.sqrt(np.mean(model.left_out_errors_**2))
    assert len(model.left_out_errors_) == 120
    assert "nothing guarantees that" in model.interval_guarantee(0.9)
    with config(threads=1):
        again = AutoKernelRegressor(Gaussian(1.0)).fit(X, drift, times=np.datetime64("2026-01-01") + t)
    np.testing.assert_array_equal(model.predict(X), again.predict(X))


def test_classes_of_groups(visits):
    X, y, patient = visits
    labels = np.where(y > 0, "high", "low")
    model = AutoKernelClassifier(Gaussian(1.0)).fit(X, labels, groups=patient)
    plain = AutoKernelClassifier(Gaussian(1.0)).fit(X, labels)
    assert plain.best_score_ < 0.2 < model.best_score_


class Told(RegressorMixin, BaseEstimator):
    """Predicts how many groups it was fitted on."""

    def fit(self, X, y, groups=None):
        self.count_ = 0 if groups is None else len(set(groups))
        assert groups is None or len(groups) == len(X)
        return self

    def predict(self, X):
        return np.full(len(X), float(self.count_))


def test_groups_of_a_nested_error_go_to_the_search(visits):
    X, y, patient = visits
    names = [f"p{g}" for g in patient]
    assert (nested_error(Told(), X, y, cv=GroupKFold(5), groups=names).predictions == 24).all()
    assert (nested_error(Told(), X, y, cv=5).predictions == 0).all()
    error = nested_error(KernelRidge(), X, y, cv=GroupKFold(5), groups=names)
    low, high = error.interval
    rows = nested_error(KernelRidge(), X, y, cv=list(GroupKFold(5).split(X, y, patient))).interval
    assert low < rows[0] < error.error < rows[1] < high


def test_probabilities_of_groups_are_right_about_new_ones(rng):
    """The likelihood of what thirty others are, by slopes from rows left out and from groups left out."""
    group = np.repeat(np.arange(60), 8)
    X = np.column_stack([rng.normal(size=60)[group], rng.uniform(0, 5, 480)])
    y = 3 * rng.normal(size=60)[group] + np.sin(X[:, 1])
    known, new = group < 30, group >= 30
    for labels in (y > 0, np.digitize(y, [-2, 2])):
        model = SVC(kernel=Gaussian(0.3), C=10.0, probability=True).fit(X[known], labels[known])
        right = np.arange(new.sum()), labels[new].astype(int)
        rows = np.log(model.predict_proba(X[new])[right]).mean()
        folds = Groups(group[known]).folds(5, 0, labels[known])
        slopes = slopes_apart(model, X[known], labels[known], folds)
        assert slopes is not None and slopes.shape == model.slopes_.shape
        model.slopes_ = slopes
        assert np.log(model.predict_proba(X[new])[right]).mean() > rows
    assert slopes_apart(model, X, group == 3, Groups(group).folds(5)) is None


def test_the_interval_of_an_error_counts_groups(rng):
    """Means of 30 groups of which the errors are all equal: as of 30 points, and not of 300."""
    group, off = np.repeat(np.arange(30), 10), rng.normal(size=30)
    y, rows = np.zeros(300), [np.arange(300)]
    of_groups = judged(y, rows, [off[group]], False, group)
    of_means = judged(np.zeros(30), [np.arange(30)], [off], False)
    np.testing.assert_allclose(of_groups.interval, of_means.interval, rtol=1e-12)
    labels = np.zeros(300, dtype=int)
    wrong = (off > 1).astype(int)
    low, high = judged(labels, rows, [wrong[group]], True, group).interval
    few = judged(labels[:30], [np.arange(30)], [wrong], True).interval
    assert (low, high) == pytest.approx(few, rel=0.05)  # G - 1 for G in the variance
    assert (
        judged(labels, rows, [labels], True, group).interval
        == judged(labels[:30], [np.arange(30)], [labels[:30]], True).interval
    )


def test_refusals(visits):
    X, y, patient = visits
    with pytest.raises(
        InputError, match="there are 3 groups, and a search takes 4 or more: pass rows of others"
    ):
        AutoKernelRegressor("rbf").fit(X, y, groups=patient % 3)
    with pytest.raises(InputError, match="there is 1 point in time, and a search takes 4 or more"):
        AutoKernelClassifier("rbf").fit(X, y > 0, times=np.zeros(240))
    assert r2_score(y, AutoKernelRegressor("rbf").fit(X, y, groups=[f"p{g}" for g in patient]).predict(X)) < 1
