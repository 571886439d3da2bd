"""Paths over the number of landmarks: nested, each fit what it is alone, errors of rows held out."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from mercer import (
    Gaussian,
    KernelFisherDiscriminant,
    KernelLeastSquares,
    KernelLogisticRegression,
    KernelMachineClassifier,
    KernelMachineRegressor,
    KernelPCA,
    KernelRidge,
    KernelRidgeCV,
    Landmarks,
    Spectrum,
)
from mercer.errors import InputError
from mercer.selection import landmark_path

K = Gaussian(1.0)
REGRESSORS = [
    KernelRidge(0.1, kernel=K, tol=1e-20),
    KernelRidgeCV([0.1, 1.0], kernel=K),
    KernelLeastSquares(K),
    KernelMachineRegressor(K, loss="huber", tol=1e-10),
    KernelMachineRegressor(K, loss="absolute", tol=1e-8),
]
CLASSIFIERS = [
    KernelLogisticRegression(K, tol=1e-11),
    KernelMachineClassifier(K, loss="squared_hinge", tol=1e-10),
    KernelFisherDiscriminant(K, alpha=0.1),
]


@pytest.fixture
def X(rng):
    return rng.normal(size=(200, 2))


@pytest.fixture
def y(rng, X):
    return np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=200)


def values(model, X):
    return model.expansion_(X)


@pytest.mark.sample(5)
@pytest.mark.parametrize("learner", REGRESSORS + CLASSIFIERS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("choice", ["uniform", "pivoted"])
@pytest.mark.filterwarnings("ignore:rounding ended the fit", "ignore:the best penalty")
def test_each_fit_is_what_it_is_alone(X, y, learner, choice):
    """Alone, it never saw the rows held out. Objectives are within 1e-8 of J, functions within its root."""
    labels = np.where(y > 0.3, "up", np.where(y < -0.3, "down", "level"))
    is_class = learner in CLASSIFIERS
    target = labels if is_class else y
    learner = clone(learner).set_params(landmarks=Landmarks(1, choice, random_state=3))
    path = landmark_path(learner, X, target, [20, 5, 10, 5])
    assert list(path.numbers) == [5, 10, 20] and len(path.rows) == 20 and (path.seconds > 0).all()
    rest = np.setdiff1d(np.arange(200), path.rows)
    for model, number, error in zip(path.models, path.numbers, path.errors, strict=True):
        assert len(model.landmarks) == number and np.isin(model.landmarks, rest).all()
        alone = clone(learner).set_params(landmarks=X[model.landmarks]).fit(X[rest], target[rest])
        assert values(model, X) == pytest.approx(values(alone, X), abs=1e-3)
        assert model.report_.gap is None or model.report_.gap <= 1e-6 * model.report_.objective
        told, true = model.predict(X[path.rows]), target[path.rows]
        expected = np.mean(told != true) if is_class else np.sqrt(np.mean((told - true) ** 2))
        assert error == pytest.approx(expected, rel=1e-12)
    for fewer, more in zip(path.models, path.models[1:], strict=False):
        assert np.isin(fewer.landmarks, more.landmarks).all()


def test_pivoted_landmarks_are_those_of_a_fit(X, y):
    """The largest fit has the landmarks that the estimator would choose by itself from the other rows."""
    for choice in ("uniform", "pivoted"):
        learner = KernelRidge(kernel=K, landmarks=Landmarks(30, choice, 7))
        path = landmark_path(learner, X, y, [10, 30])
        weight = np.ones(200)
        weight[path.rows] = 0.0
        alone = clone(learner).fit(X, y, sample_weight=weight)
        assert np.array_equal(path.models[-1].expansion_.coef, alone.expansion_.coef)


def test_logistic_regression_starts_where_it_was(rng):
    """Fewer passes than from nothing, to the same minimum."""
    X = rng.normal(size=(3000, 2))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.3 * rng.normal(size=3000) > 0
    learner = KernelLogisticRegression(K, C=10.0, tol=1e-6)
    path = landmark_path(learner, X, y, [60, 80, 100])
    weight = np.ones(3000)
    weight[path.rows] = 0.0
    for model in path.models[1:]:
        alone = clone(learner).set_params(landmarks=model.landmarks).fit(X, y, sample_weight=weight)
        assert model.n_products_ < alone.n_products_
        assert model.report_.objective == pytest.approx(alone.report_.objective, rel=2e-6)
    assert not any("_start" in vars(model) for model in path.models)


def test_objects_and_matrices(rng, X, y):
    words = ["".join(rng.choice(list("abc"), size=rng.integers(3, 9))) for _ in range(60)]
    is_a = np.array([word.count("a") > word.count("b") for word in words])
    path = landmark_path(KernelLogisticRegression(Spectrum(2)), words, is_a, [3, 6, 12])
    assert len(path.models) == 3 and path.errors.max() < 0.5
    table = str(path).splitlines()
    assert table[0].split() == ["landmarks", "error", "seconds"] and table[3].split()[0] == "12"
    given = landmark_path(KernelRidge(kernel="precomputed"), K(X, X), y, [5, 10])
    computed = landmark_path(KernelRidge(kernel=K), X, y, [5, 10])
    assert given.errors == pytest.approx(computed.errors, rel=1e-6)


def test_no_more_landmarks_than_there_are(X, y):
    path = landmark_path(KernelRidge(kernel=K), X, y, [100, 1000, 2000])
    assert list(path.numbers) == [100, 180]


def test_what_is_refused(X, y):
    for numbers in ([], [0, 5], [1.5], "many", 5.0):
        with pytest.raises(InputError, match="numbers must hold numbers of landmarks, got"):
            landmark_path(KernelRidge(), X, y, numbers)
    with pytest.raises(InputError, match="has them and predicts, got KernelPCA"):
        landmark_path(KernelPCA(), X, y, [5])
    with pytest.raises(InputError, match="got 200 and 10: pass one target for each point"):
        landmark_path(KernelRidge(), X, y[:10], [5])
    with pytest.raises(InputError, match="a path holds out a tenth of the rows, got 3 of them"):
        landmark_path(KernelRidge(), X[:3], y[:3], [5])


def test_a_table_in_a_file(tmp_path, X, y):
    """Columns keep their names, and nobody warns of rows without them."""
    pd.DataFrame({"north": X[:, 0], "east": X[:, 1], "height": y}).to_csv(tmp_path / "hills.csv", index=False)
    learner = KernelRidge(0.1, kernel=K)
    found = landmark_path(learner, tmp_path / "hills.csv", "height", [10, 20])
    given = landmark_path(learner, X, y, [10, 20])
    np.testing.assert_allclose(found.errors, given.errors, rtol=1e-9)
    assert found.models[1].feature_names_in_.tolist() == ["north", "east"]
