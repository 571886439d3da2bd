"""Random features as a step of pipelines: scikit-learn's rules, containers, and what is refused."""

from pathlib import PosixPath

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import Gaussian, KernelRidge, Laplacian, Matern, RandomFeatures, config, load, save
from mercer.errors import InputError, InputTypeError, MemoryBudgetError


@parametrize_with_checks(
    [RandomFeatures(n_components=20), RandomFeatures(Matern(length_scale="median") + Laplacian(), 20)]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture
def X(rng):
    return rng.normal(size=(50, 3))


def test_the_features_are_waves(X):
    z = RandomFeatures(3 * Gaussian(sigma=1.0), 40, random_state=1).fit(X)
    Z = z.transform(X)
    phases = X @ z.frequencies_.T
    expected = np.sqrt(3 / 20) * np.hstack([np.cos(phases), np.sin(phases)])
    assert expected == pytest.approx(Z, abs=1e-12)
    assert (Z**2).sum(axis=1) == pytest.approx(np.full(50, 3.0), rel=1e-12)
    assert clone(z).fit(X).transform(X) == pytest.approx(Z, abs=0)
    assert np.abs(clone(z).set_params(random_state=2).fit(X).transform(X) - Z).max() > 0.1


def test_many_features_are_the_kernel(X):
    """20,000 waves are off by 1/√40,000 as a rule; of 2500 pairs of points none by five times as much."""
    for kernel in ("rbf", "laplacian", Matern(nu=0.5)):
        z = RandomFeatures(kernel, 40_000, gamma=0.3).fit(X)
        Z = z.transform(X)
        expected = z.kernel_(X)
        assert expected == pytest.approx(Z @ Z.T, abs=5 / np.sqrt(40_000))


def test_an_odd_number_of_features(rng):
    """Unbiased as well: the mean of 400 runs is within 4.5 standard errors of the kernel."""
    X = rng.normal(size=(5, 2))
    found = []
    for seed in range(400):
        Z = RandomFeatures(2 * Gaussian(1.0) + Matern(), 3, random_state=seed).fit_transform(X)
        assert Z.shape == (5, 3)
        found.append(Z @ Z.T)
    error = np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    assert (np.abs(np.mean(found, axis=0) - (2 * Gaussian(1.0) + Matern())(X)) < 4.5 * error).all()


def test_a_pipeline_is_nearly_the_kernel_model(X):
    y = np.sin(X[:, 0]) + X[:, 1]
    steps = make_pipeline(RandomFeatures(Gaussian(2.0), 8000), Ridge(0.1, fit_intercept=False)).fit(X, y)
    model = KernelRidge(0.1, kernel=Gaussian(2.0), fit_intercept=False).fit(X, y)
    assert steps.predict(X) == pytest.approx(model.predict(X), abs=0.05)
    search = GridSearchCV(steps, {"randomfeatures__n_components": [2, 200]}, cv=3).fit(X, y)
    assert search.best_params_ == {"randomfeatures__n_components": 200}


def test_containers(X):
    z = RandomFeatures(n_components=10).fit(X)
    Z = z.transform(X)
    assert z.transform(sparse.csr_array(X)) == pytest.approx(Z, abs=1e-12)
    assert RandomFeatures(n_components=10).fit(sparse.csc_array(X)).transform(X) == pytest.approx(Z, abs=1e-9)
    single = z.transform(X.astype(np.float32))
    assert single.dtype == np.float32 and single == pytest.approx(Z, abs=1e-5)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    named = RandomFeatures(Gaussian(sigma="median").on("c"), 6).set_output(transform="pandas").fit(frame)
    out = named.transform(frame)
    assert (
        list(out.columns)
        == named.get_feature_names_out().tolist()
        == [f"randomfeatures{i}" for i in range(6)]
    )
    assert not named.frequencies_[:, :2].any() and named.frequencies_[:, 2].all()


def test_any_number_of_threads(X, monkeypatch):
    monkeypatch.setattr("mercer.features.random_features._PHASES_AT_ONCE", 100)
    z = RandomFeatures(n_components=30).fit(X)
    with config(threads=1):
        one = z.transform(X)
    with config(threads=4):
        assert np.array_equal(z.transform(X), one)


def test_it_comes_back_from_a_file(X, tmp_path):
    steps = make_pipeline(RandomFeatures(2 * Matern(nu=0.5), 10), Ridge()).fit(X, X[:, 0])
    save(steps, tmp_path / "model.mercer")
    assert np.array_equal(load(tmp_path / "model.mercer").predict(X), steps.predict(X))


def test_what_makes_no_sense_is_refused(X):
    for options, match in (
        ({"n_components": 0}, "n_components must be a whole number of at least 1, got 0"),
        ({"n_components": 2.5}, r"n_components must be a whole number of at least 1, got 2\.5"),
        ({"kernel": "linear"}, r"none is known for Linear\(\): take mercer.LandmarkFeatures"),
        ({"random_state": -1}, "random_state must be"),
    ):
        with pytest.raises(InputError, match=match):
            RandomFeatures(**options).fit(X)
    with pytest.raises(
        InputTypeError, match=r"RandomFeatures takes arrays.*, got a table in a file, PosixPath..rides"
    ):
        RandomFeatures().fit(PosixPath("rides.parquet"))
    z = RandomFeatures(Gaussian(1e-200), 10).fit(X)
    with pytest.raises(InputError, match="phases overflow"):
        z.transform(1e200 * X)
    with config(memory="1MiB"):
        with pytest.raises(MemoryBudgetError, match="ask for fewer at a time"):
            RandomFeatures(n_components=100).fit(X).transform(np.zeros((5000, 3)))
        with pytest.raises(MemoryBudgetError, match="frequencies in 3 columns"):
            RandomFeatures(n_components=10**6).fit(X)
