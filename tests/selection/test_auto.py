"""Estimators that choose their kernel."""

import warnings
from time import monotonic

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import Gaussian, KernelRidge, Linear, Spectrum, config
from mercer.errors import InputError
from mercer.selection import AutoKernelClassifier, AutoKernelRegressor, nested_error


@parametrize_with_checks([AutoKernelRegressor(kernel="rbf"), AutoKernelClassifier(kernel="rbf")])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def wave():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (240, 4))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=240)


@pytest.fixture(scope="module")
def fitted(wave):
    return AutoKernelRegressor().fit(*wave)


def test_it_finds_what_matters(wave, fitted):
    X, y = wave
    rng = np.random.default_rng(1)
    T = rng.uniform(-2, 2, (500, 4))
    truth = np.sin(3 * T[:, 0]) + T[:, 1]
    error = np.sqrt(np.mean((fitted.predict(T) - truth) ** 2))
    plain = KernelRidge(0.1, kernel="rbf").fit(X, y)
    assert error < 0.5 * np.sqrt(np.mean((plain.predict(T) - truth) ** 2))
    scales = next(v for k, v in fitted.kernel_.get_params().items() if np.size(v) == 4)
    assert np.argmin(scales) == 0 and min(scales[2:]) > 5 * scales[0]


def test_every_trial_is_told(fitted):
    assert len(fitted.trials_) == 10  # five families, with and without a scale for each column
    assert {type(trial.kernel).__name__ for trial in fitted.trials_} >= {"Gaussian", "Matern", "Laplacian"}
    assert fitted.best_score_ == min(trial.score.error for trial in fitted.trials_)
    assert all(trial.seconds > 0 and trial.points for trial in fitted.trials_)


def test_it_is_deterministic_for_a_seed(wave):
    X, y = wave
    models = [AutoKernelRegressor(["rbf", "laplacian"], random_state=3).fit(X, y) for _ in range(2)]
    assert models[0].kernel_ == models[1].kernel_ and models[0].alpha_ == models[1].alpha_
    assert np.array_equal(models[0].predict(X), models[1].predict(X))


def test_a_time_limit_is_obeyed(wave):
    X, y = wave
    AutoKernelRegressor("rbf").fit(X[:50], y[:50])  # compiled before
    began = monotonic()
    model = AutoKernelRegressor(max_time=0.05).fit(X, y)
    assert monotonic() - began < 2
    assert 1 <= len(model.trials_) < 10


def test_what_does_not_fit_is_said(wave):
    X, y = np.tile(wave[0], (8, 1)), np.tile(wave[1], 8)
    with config(memory="16MB"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = AutoKernelRegressor("rbf", max_time=20).fit(X, y)
    assert any("of 1,920 points" in str(w.message) for w in caught)
    assert len(model.expansion_.coef) < 1920


def test_classes(rng):
    X, y = make_moons(200, noise=0.2, random_state=0)
    labels = np.array(["left", "right"])[y]
    model = AutoKernelClassifier().fit(X, labels)
    assert (
        model.score(
            *[
                make_moons(1000, noise=0.2, random_state=1)[0],
                np.array(["left", "right"])[make_moons(1000, noise=0.2, random_state=1)[1]],
            ]
        )
        > 0.95
    )
    assert model.C_ == model.model_.C
    assert set(model.predict(X)) == {"left", "right"}
    assert np.array_equal(model.decision_function(X) > 0, model.predict(X) == "right")


def test_objects_and_mixtures(rng):
    texts = ["".join(rng.choice(list("abc"), 15)) for _ in range(80)]
    y = np.array([text.count("ab") > 1 for text in texts]).astype(int)
    mixture = 1.0 * Spectrum(2).normalized() + 1.0 * Spectrum(4).normalized()
    model = AutoKernelClassifier(mixture).fit(texts, y)
    assert model.score(texts, y) > 0.9
    given = model.kernel_.get_params()
    assert given["k1__scale"] > given["k2__scale"]


def test_in_pipelines_and_searches():
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), AutoKernelClassifier("rbf"))
    assert cross_val_score(model, X, y, cv=3).mean() > 0.9
    search = GridSearchCV(model, {"autokernelclassifier__kernel": ["rbf", "linear"]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.9
    assert clone(model).get_params()["autokernelclassifier__kernel"] == "rbf"


def test_the_nested_error_is_honest(rng):
    X, y = rng.normal(size=(120, 5)), rng.integers(2, size=120)
    result = nested_error(AutoKernelClassifier([Gaussian(s) for s in (0.3, 1.0, 3.0)]), X, y, cv=4)
    # labels without any relation: half of them are wrong, within three standard deviations
    assert abs(result.error - 0.5) < 3 * 0.5 / np.sqrt(120)
    assert result.interval[0] < result.error < result.interval[1]
    assert result.predictions.shape == y.shape and len(result.errors) == 4


def test_refusals(rng):
    with pytest.raises(InputError, match="kernel is an empty list"):
        AutoKernelRegressor([]).fit(rng.normal(size=(20, 2)), rng.normal(size=20))
    with pytest.raises(InputError, match="takes at least 4 of them, got n_samples=3"):
        AutoKernelRegressor().fit(rng.normal(size=(3, 2)), rng.normal(size=3))
    with pytest.raises(InputError, match="max_time must be positive"):
        AutoKernelRegressor(max_time=-1).fit(rng.normal(size=(20, 2)), rng.normal(size=20))
    with pytest.raises(ValueError, match="class"):
        AutoKernelClassifier(Linear()).fit(rng.normal(size=(20, 2)), np.zeros(20))


def test_progress_is_told(wave):
    told = []
    model = AutoKernelRegressor(["rbf", "laplacian"], progress=told.append).fit(*wave)
    errors = [event["facts"]["error"] for event in told if event["facts"]]
    assert errors == [trial.score.error for trial in model.trials_]
