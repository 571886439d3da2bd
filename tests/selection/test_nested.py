"""The error of a whole selection: over the points that were tested, each as often as it was."""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit, TimeSeriesSplit

from mercer import SVC, Gaussian, KernelRidge
from mercer.errors import InputError
from mercer.selection import AutoKernelRegressor, nested_error


class Echo(RegressorMixin, BaseEstimator):
    """Predicts the first column."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return X[:, 0]


class Sign(ClassifierMixin, Echo):
    """Predicts whether the first column is positive."""

    def predict(self, X):
        return np.where(X[:, 0] > 0, "above", "below")


@pytest.fixture
def points(rng):
    X = rng.normal(size=(40, 2))
    return X, X[:, 0] + rng.normal(size=40), np.where(X[:, 0] + 0.5 * X[:, 1] > 0, "above", "below")


PARTIAL = [
    ShuffleSplit(1, test_size=0.3, random_state=0),
    ShuffleSplit(6, test_size=0.3, random_state=0),
    TimeSeriesSplit(3),
    RepeatedKFold(n_splits=4, n_repeats=3, random_state=0),
    [(np.arange(30), np.arange(30, 40))],
    [(np.arange(40) < 30, np.arange(40) >= 30)],
]


@pytest.mark.parametrize("cv", PARTIAL, ids=lambda cv: type(cv).__name__)
def test_what_was_tested_counts_and_nothing_else(points, cv):
    X, y, labels = points
    splits = cv if isinstance(cv, list) else cv.split(X)
    wanted = np.sort(np.concatenate([np.arange(40)[test] for _, test in splits]))
    numbers, classes = nested_error(Echo(), X, y, cv=cv), nested_error(Sign(), X, labels, cv=cv)
    for result in (numbers, classes):
        np.testing.assert_array_equal(result.rows, wanted)
        assert result.interval[0] < result.error < result.interval[1]
    np.testing.assert_array_equal(numbers.predictions, X[wanted, 0])
    assert numbers.error == pytest.approx(np.sqrt(np.mean((X[wanted, 0] - y[wanted]) ** 2)))
    assert classes.error == np.mean(classes.predictions != labels[wanted])
    assert classes.predictions.dtype.kind == "U"


def test_repeating_a_test_does_not_shorten_the_interval(points):
    X, y, labels = points
    for model, target in ((Echo(), y), (Sign(), labels)):
        once = nested_error(model, X, target, cv=KFold(4))
        often = nested_error(model, X, target, cv=list(KFold(4).split(X)) * 5)
        assert often.error == pytest.approx(once.error) and len(often.rows) == 5 * 40
        np.testing.assert_allclose(often.interval, once.interval, rtol=0.02)


def test_points_of_which_one_is_tested_most_are_few(points):
    X, _, labels = points
    splits = [(np.arange(39), [39])] * 100 + [(np.arange(39), np.arange(10))]
    result = nested_error(Sign(), X, labels, cv=splits)
    assert result.interval[1] - result.interval[0] > 0.9  # 110² / (100² + 10) ≈ 1.2 points


def test_each_point_once_is_in_the_order_of_y(points):
    X, y, _ = points
    result = nested_error(Echo(), X, y, cv=KFold(4, shuffle=True, random_state=0))
    np.testing.assert_array_equal(result.rows, np.arange(40))
    np.testing.assert_array_equal(result.predictions, X[:, 0])


def test_one_point_has_no_spread(points):
    X, y, _ = points
    result = nested_error(Echo(), X, y, cv=[(np.arange(39), [39])])
    assert result.interval == (0.0, np.inf) and "from one fold" in str(result)


def test_a_column_of_targets(points):
    X, y, labels = points
    with pytest.warns(DataConversionWarning, match="column-vector"):
        result = nested_error(SVC(), X, labels[:, None], cv=4)
    assert result.error == nested_error(SVC(), X, labels, cv=4).error
    ridge = KernelRidge(0.1, kernel="rbf")
    assert nested_error(ridge, X, y[:, None]).error == pytest.approx(nested_error(ridge, X, y).error)
    assert nested_error(Echo(), X, y[:, None]).predictions.shape == (40, 1)


def test_a_matrix_of_kernel_values_is_cut_on_both_sides(points):
    X, y, _ = points
    K = Gaussian(1.0)(X)
    by_matrix = nested_error(KernelRidge(0.1, kernel="precomputed"), K, y, cv=4)
    by_points = nested_error(KernelRidge(0.1, kernel=Gaussian(1.0)), X, y, cv=4)
    np.testing.assert_allclose(by_matrix.predictions, by_points.predictions, rtol=1e-8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert nested_error(AutoKernelRegressor("precomputed"), K, y, cv=2).rows.shape == (40,)


def test_refusals(points):
    X, y, labels = points
    for count in (30, 40):
        with pytest.raises(InputError, match=f"same points, got {count} and {70 - count}: pass one target"):
            nested_error(Echo(), X[:count], y[: 70 - count])
    with pytest.raises(InputError, match=r"one label for each point, got shape \(40, 2\)"):
        nested_error(Sign(), X, np.column_stack([labels, labels]))
    with pytest.raises(InputError, match="every fold of cv must have points to test, got no folds"):
        nested_error(Echo(), X, y, cv=[])
    with pytest.raises(InputError, match=r"every fold of cv must have points to test, got \[0\]"):
        nested_error(Echo(), X, y, cv=[(np.arange(40), [])])
    with pytest.raises(InputError, match=r"with each other, got shape \(40, 2\)"):
        nested_error(KernelRidge(kernel="precomputed"), X, y)
