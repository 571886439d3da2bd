"""Landmark features: the kernel they stand for, how landmarks are chosen, and scikit-learn's rules."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import (
    Gaussian,
    KernelRidge,
    LandmarkFeatures,
    Landmarks,
    Linear,
    Polynomial,
    Sigmoid,
    Spectrum,
    WeisfeilerLehman,
    config,
    load,
    save,
)
from mercer.errors import InputError, MemoryBudgetError
from mercer.testing.examples import example_points


@parametrize_with_checks(
    [
        LandmarkFeatures(n_components=10),
        LandmarkFeatures(n_components=10, landmarks="pivoted"),
        LandmarkFeatures(kernel="poly", coef0=1.0),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture
def X(rng):
    return rng.normal(size=(60, 3))


@pytest.mark.parametrize("landmarks", ["uniform", "pivoted"])
def test_the_features_are_those_of_nystroem(X, landmarks):
    """k̂ = K(X, Z) K(Z, Z)⁻¹ K(Z, X), here from scikit-learn on the same landmarks."""
    phi = LandmarkFeatures(Gaussian(sigma=1.5), 15, landmarks=landmarks, random_state=2)
    features = phi.fit_transform(X)
    theirs = Nystroem(gamma=1 / (2 * 1.5**2), n_components=15).fit(X[phi.component_indices_])
    other = theirs.transform(X)
    assert features @ features.T == pytest.approx(other @ other.T, abs=1e-8)
    assert phi.transform(X) == pytest.approx(features, abs=1e-12)
    assert np.array_equal(phi.components_, X[phi.component_indices_])
    assert phi.n_components_ == 15 and features.shape == (60, 15)
    left = 60 - np.trace(other @ other.T)
    assert phi.tau_ == pytest.approx(left, rel=1e-7)
    assert clone(phi).fit(X).tau_ == pytest.approx(left, rel=1e-7)


def test_landmarks_are_compared_exactly(X):
    phi = LandmarkFeatures(Gaussian(sigma=1.0), 20).fit(X)
    Z = phi.components_
    assert phi.transform(Z) @ phi.transform(X).T == pytest.approx(Gaussian(sigma=1.0)(Z, X), abs=1e-9)


def test_a_pipeline_with_all_points_is_the_kernel_model(X):
    y = np.sin(X[:, 0]) + X[:, 1]
    steps = make_pipeline(LandmarkFeatures(Gaussian(sigma=1.0)), Ridge(0.1, fit_intercept=False)).fit(X, y)
    model = KernelRidge(0.1, kernel=Gaussian(sigma=1.0), fit_intercept=False).fit(X, y)
    assert steps.predict(X) == pytest.approx(model.predict(X), abs=1e-8)
    assert steps[0].tau_ == pytest.approx(0, abs=1e-10)
    assert "there are only 60 points for 1,000 landmarks" in str(steps[0].report_)


def test_a_search_over_the_number_of_landmarks(X):
    y = X[:, 0] ** 2
    steps = make_pipeline(LandmarkFeatures(), Ridge(1e-3))
    found = GridSearchCV(steps, {"landmarkfeatures__n_components": [1, 30]}, cv=3).fit(X, y)
    assert found.best_params_ == {"landmarkfeatures__n_components": 30}


def test_given_landmarks_and_those_that_depend_on_others(X):
    Z = np.vstack([X[:4], X[:4], [[9.0, 9.0, 9.0]]])
    phi = LandmarkFeatures(Gaussian(sigma=1.0), 2, landmarks=Z).fit(X)
    assert phi.n_components_ == 5 and sorted(phi.component_indices_ % 4 + (phi.component_indices_ == 8)) == [
        *(0, 1, 1, 2, 3),
    ]
    assert "4 of 9 landmarks depend on others" in str(phi.report_)
    linear = LandmarkFeatures(Linear()).fit(X)
    features = linear.transform(X)
    assert features.shape == (60, 3) and features @ features.T == pytest.approx(X @ X.T, abs=1e-9)
    assert linear.tau_ == pytest.approx(0, abs=1e-9)


def test_pivots_know_more_than_uniform_landmarks(rng):
    """A small cluster far away: uniform landmarks miss it, the residual shows it."""
    X = np.vstack([0.1 * rng.normal(size=(990, 2)), rng.normal(size=(10, 2)) + 20])
    taus = [
        np.mean(
            [LandmarkFeatures(Gaussian(1.0), 20, landmarks=how, random_state=s).fit(X).tau_ for s in range(5)]
        )
        for how in ("pivoted", "uniform")
    ]
    assert taus[0] < 0.2 * taus[1]


def test_the_seed_decides(X):
    for how in ("uniform", "pivoted"):
        one, same, other = (
            LandmarkFeatures(n_components=9, landmarks=how, random_state=s).fit(X) for s in (1, 1, 2)
        )
        assert np.array_equal(one.transform(X), same.transform(X))
        assert sorted(one.component_indices_) != sorted(other.component_indices_)


def test_points_of_any_kind(rng):
    texts = ["".join(rng.choice(list("abc"), 8)) for _ in range(30)]
    phi = LandmarkFeatures(Spectrum(2), landmarks="pivoted").fit(texts)
    assert phi.n_components_ == 9 and all(text in texts for text in phi.components_)
    assert phi.transform(texts[:3]) @ phi.transform(texts).T == pytest.approx(Spectrum(2)(texts[:3], texts))
    given = LandmarkFeatures(Spectrum(2), landmarks=["abab", "cccc"]).fit(texts)
    assert given.transform(texts).shape == (30, 2)
    graphs = example_points(WeisfeilerLehman(), 12, rng)
    features = LandmarkFeatures(WeisfeilerLehman(), 50).fit_transform(graphs)
    assert features @ features.T == pytest.approx(WeisfeilerLehman()(graphs), rel=1e-9, abs=1e-9)


def test_a_matrix_of_kernel_values(X):
    k = Gaussian(sigma=1.0)
    K = k(X)
    for landmarks in ("uniform", "pivoted", [3, 5, 8]):
        phi = LandmarkFeatures("precomputed", 12, landmarks=landmarks).fit(K)
        same = LandmarkFeatures(
            k, landmarks=X[phi.component_indices_ if isinstance(landmarks, str) else landmarks]
        )
        expected = same.fit(X).transform(X[:5] + 1)
        features = phi.transform(k(X[:5] + 1, X))
        assert features @ features.T == pytest.approx(expected @ expected.T, abs=1e-9)


def test_tables_frames_and_sparse_points(X):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    phi = LandmarkFeatures(n_components=4).set_output(transform="pandas").fit(frame)
    out = phi.transform(frame)
    assert (
        list(out.columns)
        == [f"landmarkfeatures{i}" for i in range(4)]
        == phi.get_feature_names_out().tolist()
    )
    few = LandmarkFeatures(Polynomial(2), 5).fit(sparse.csr_array(X))
    assert sparse.issparse(few.components_)
    dense = LandmarkFeatures(Polynomial(2), 5).fit(X)
    assert few.transform(X) == pytest.approx(dense.transform(X), abs=1e-8)
    with pytest.raises(ValueError, match="2 features"):
        LandmarkFeatures(landmarks=X[:, :2]).fit(X)


def test_single_precision(rng):
    """Nearly dependent landmarks are left out: φ is right to 2e-5, where L⁻¹ would otherwise enlarge 6e-8."""
    X = np.linspace(0, 1, 300)[:, None]
    with config(dtype="float32"):
        features = LandmarkFeatures(Gaussian(sigma=1.0), 300).fit_transform(X).astype(np.float64)
    assert features.shape[1] < 10
    assert features @ features.T == pytest.approx(Gaussian(sigma=1.0)(X), abs=1e-3)


def test_it_comes_back_from_a_file(X, tmp_path):
    steps = make_pipeline(LandmarkFeatures(n_components=7, landmarks="pivoted"), Ridge()).fit(X, X[:, 0])
    save(steps, tmp_path / "model.mercer")
    assert np.array_equal(load(tmp_path / "model.mercer").predict(X), steps.predict(X))


def test_what_makes_no_sense_is_refused(X):
    for options, match in (
        ({"landmarks": "random"}, "'uniform', 'pivoted' or points.*got 'random'"),
        ({"landmarks": 3}, "landmarks must be 'uniform', 'pivoted' or points.*got 3"),
        ({"n_components": 0}, "n_components must be a whole number of at least 1"),
        ({"kernel": Linear(), "landmarks": np.zeros((2, 3))}, "there are no features"),
        ({"kernel": Sigmoid(1.0, -5.0)}, "kernel"),
    ):
        with pytest.raises(InputError, match=match):
            LandmarkFeatures(**options).fit(X)
    with config(memory="1MiB"), pytest.raises(MemoryBudgetError, match="ask for fewer components"):
        LandmarkFeatures(n_components=500).fit(np.zeros((3000, 1)))


@pytest.mark.parametrize("landmarks", ["uniform", "pivoted"])
def test_the_plan_has_the_memory_of_all_points(landmarks):
    X = np.random.default_rng(0).normal(size=(50_000, 2))
    phi = LandmarkFeatures(Gaussian(sigma=1.0), 20, landmarks=landmarks)
    phi.fit(X[:100])  # compiled
    planned = phi.plan(X).memory
    tracemalloc.start()
    phi.fit(X)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < planned < 5 * taken


@pytest.mark.parametrize(
    "learner",
    [
        LandmarkFeatures(Linear(), 3, landmarks="pivoted"),
        KernelRidge(kernel=Linear(), landmarks=Landmarks(3, "pivoted")),
    ],
)
def test_a_kernel_that_is_nothing_on_all_points_has_no_pivots(learner):
    with pytest.raises(InputError, match=r"k\(., .\) (=|is) 0 for every"):
        learner.fit(np.zeros((50, 2)), np.arange(50.0))
