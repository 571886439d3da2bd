"""KernelPerceptron: the lecture's trace, scikit-learn's contract, every kind of data."""

import itertools
import math
import os
import pickle
import signal
import threading
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import (
    Expansion,
    FromFunction,
    Gaussian,
    Gram,
    KernelPerceptron,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
    config,
)
from mercer.errors import InputError, MemoryBudgetError
from mercer.solvers.perceptron.kernel import perceptron

XOR = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
XOR_LABELS = np.array([1, -1, 1, -1])


@pytest.fixture
def ring(rng):
    """Two classes that no line separates: inside and outside of a circle, with a gap between."""
    radius = np.concatenate([rng.uniform(0, 0.8, 30), rng.uniform(1.2, 2, 30)])
    angle = rng.uniform(0, 2 * np.pi, 60)
    order = rng.permutation(60)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])[order]
    return X, np.where(radius > 1, "out", "in")[order]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X / 16, y, test_size=0.3, random_state=0)


@parametrize_with_checks(
    [
        KernelPerceptron(),
        KernelPerceptron(
            kernel=Gaussian(sigma="median"),
            fit_intercept=False,
            shuffle=True,
            random_state=0,
            record_history=True,
        ),
        KernelPerceptron(prediction="averaged", max_iter=20),
        KernelPerceptron(prediction="voted", max_iter=20),
        KernelPerceptron(budget=30, budget_strategy="forget", max_iter=10),
        KernelPerceptron(budget=30, budget_strategy="project", max_iter=10),
        KernelPerceptron(budget=30, budget_strategy="remove", max_iter=10),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn(estimator, check):
    check(estimator)


# --- the golden trace --------------------------------------------------------------------------------


def test_xor_trace():
    model = KernelPerceptron(kernel=Polynomial(2, c=0), fit_intercept=False, boundary="negative")
    model.fit(XOR, XOR_LABELS)
    assert model.history_.tolist() == [
        (1, 0, 0.0, True),
        (1, 1, 0.0, False),
        (1, 2, 4.0, False),
        (1, 3, 0.0, False),
        (2, 0, 4.0, False),
        (2, 1, 0.0, False),
        (2, 2, 4.0, False),
        (2, 3, 0.0, False),
    ]
    assert (model.mistakes_, model.n_iter_, model.converged_) == (1, 2, True)
    assert model.bound_ == math.inf
    f = model.expansion_
    assert isinstance(f, Expansion)
    assert (f.anchors.tolist(), f.coef.tolist(), f.intercept.tolist()) == ([[1.0, 1.0]], [1.0], 0.0)
    grid = np.array([[x, z] for x in range(-3, 4) for z in range(-3, 4)], dtype=float)
    assert f(grid) == pytest.approx(grid.sum(axis=1) ** 2)
    assert model.predict(XOR).tolist() == XOR_LABELS.tolist()  # sign(0) = -1 here too
    assert model.predict([[2.0, -2.0]]).tolist() == [-1]


@pytest.mark.parametrize("budget", [None, 3])
def test_xor_where_the_boundary_is_a_mistake(budget):
    """Both classes are treated alike: f(x) = ±4x₁x₂ after the first two points."""
    options = {"fit_intercept": False, "budget": budget}
    for labels in (XOR_LABELS, -XOR_LABELS):
        model = KernelPerceptron(Polynomial(2, c=0), **options).fit(XOR, labels)
        stream = KernelPerceptron(Polynomial(2, c=0), **options).partial_fit(XOR, labels, classes=[-1, 1])
        for fitted in (model, stream):
            assert fitted.expansion_.anchors.tolist() == XOR[:2].tolist()
            assert fitted.expansion_.coef.tolist() == labels[:2].tolist()
            assert (fitted.mistakes_, fitted.predict(XOR).tolist()) == (2, labels.tolist())
    with pytest.raises(InputError, match="boundary must be one of 'mistake', 'negative', got 'positive'"):
        KernelPerceptron(boundary="positive").fit(XOR, XOR_LABELS)


def test_a_checkpoint_belongs_to_one_boundary(tmp_path, ring):
    KernelPerceptron(checkpoint=tmp_path / "state").fit(*ring)
    with pytest.raises(InputError, match="state"):
        KernelPerceptron(checkpoint=tmp_path / "state", resume=True, boundary="negative").fit(*ring)


# --- two classes -------------------------------------------------------------------------------------


def test_two_classes(ring):
    X, y = ring
    model = KernelPerceptron(kernel=Gaussian(sigma=0.5)).fit(X, y)
    assert model.classes_.tolist() == ["in", "out"]
    assert model.converged_
    assert model.score(X, y) == 1.0
    assert 0 < model.mistakes_ <= model.bound_
    assert np.abs(model.expansion_.coef).sum() == model.mistakes_
    assert (model.expansion_.coef != 0).all()
    assert len(model.expansion_) < len(X)
    assert model.decision_function(X) == pytest.approx(model.expansion_(X))
    assert ((model.decision_function(X) > 0) == (y == "out")).all()
    result = perceptron(Gram(Gaussian(sigma=0.5), X), np.where(y == "out", 1, -1))
    assert model.bound_ == pytest.approx(result.bound)


def test_the_history_of_large_sets_is_kept_on_request_only(rng):
    X = rng.normal(size=(1001, 2))
    y = X[:, 0] > 0
    assert not hasattr(KernelPerceptron("linear", max_iter=2000).fit(X, y), "history_")
    assert len(KernelPerceptron("linear", max_iter=2000).fit(X[:1000], y[:1000]).history_) % 1000 == 0


def test_a_second_fit_forgets_the_history(ring):
    model = KernelPerceptron(record_history=True).fit(*ring)
    assert len(model.history_) == 60 * model.n_iter_
    assert not hasattr(model.set_params(record_history=False).fit(*ring), "history_")


def test_linear_kernel_gives_a_primal_weight_vector(rng):
    X = rng.integers(-9, 10, size=(80, 4)).astype(float)
    y = X @ [1.0, -2.0, 0.5, 1.0] > 0.25
    model = KernelPerceptron(kernel="linear", max_iter=10_000).fit(X, y)
    w = model.expansion_.anchors.T @ model.expansion_.coef
    assert model.decision_function(X) == pytest.approx(X @ w + model.expansion_.intercept)
    assert model.predict(X).dtype == bool


def test_shuffling_is_seeded_and_differs_by_seed(ring):
    X, y = ring

    def orders(seed):
        model = KernelPerceptron(shuffle=True, random_state=seed, record_history=True).fit(X, y)
        return model.history_["index"].reshape(-1, len(X))

    first = orders(0)
    assert np.array_equal(first, orders(0))
    assert not np.array_equal(first[0], orders(1)[0])
    assert not np.array_equal(first[0], first[1])
    assert (np.sort(first, axis=1) == np.arange(len(X))).all()


# --- more classes ------------------------------------------------------------------------------------


def test_digits(digits):
    X, Z, y, labels = digits
    model = KernelPerceptron(kernel=Polynomial(3, c=1.0), record_history=True).fit(X, y)
    assert model.converged_
    assert model.score(X, y) == 1.0
    assert model.score(Z, labels) > 0.93
    f = model.expansion_
    assert f.coef.shape == (len(f), 10)
    assert model.decision_function(Z).shape == (len(Z), 10)
    assert model.mistakes_.shape == model.bound_.shape == (10,)
    assert (model.mistakes_ <= model.bound_).all()
    assert len(model.history_) == 10
    assert [int(h["mistake"].sum()) for h in model.history_] == model.mistakes_.tolist()
    assert model.n_iter_ == max(h["epoch"].max() for h in model.history_)
    alone = KernelPerceptron(kernel=Polynomial(3, c=1.0)).fit(X, y == 7)
    assert alone.mistakes_ == model.mistakes_[7]
    assert alone.decision_function(Z) == pytest.approx(model.decision_function(Z)[:, 7])


def test_classes_share_the_rows_of_one_gram(rng, monkeypatch):
    computed = []
    original = Gram._compute_rows
    monkeypatch.setattr(
        Gram,
        "_compute_rows",
        lambda self, index: computed.extend(index.tolist()) or original(self, index),
    )
    X, y = rng.normal(size=(60, 2)), np.repeat([0, 1, 2], 20)
    X += 8 * np.eye(3)[y][:, :2]
    model = KernelPerceptron().fit(X, y)
    assert model.mistakes_.sum() > 0
    assert set(np.concatenate(model.mistake_indices_)) <= set(computed)
    assert len(computed) == len(set(computed))


def test_shuffled_classes_visit_in_one_order(digits):
    X, _, y, _ = digits
    model = KernelPerceptron(kernel="poly", coef0=1, shuffle=True, random_state=0, record_history=True)
    model.fit(X[:200], y[:200])
    first, *others = (history["index"][:200] for history in model.history_)
    assert all(np.array_equal(first, other) for other in others)


# --- other data --------------------------------------------------------------------------------------


def test_containers_agree(ring):
    X, y = ring
    expected = KernelPerceptron().fit(X, y).decision_function(X)
    frame = pd.DataFrame(X, columns=["u", "v"])
    for table in (X.tolist(), sparse.csr_array(X), pl.DataFrame(X, ["u", "v"]), frame):
        model = KernelPerceptron().fit(table, y)
        assert model.decision_function(table) == pytest.approx(expected, abs=1e-9)
    assert model.feature_names_in_.tolist() == ["u", "v"]
    with pytest.warns(UserWarning, match="valid feature names"):
        model.predict(X)


def test_precomputed_equals_direct(ring):
    X, y = ring
    k = Gaussian(sigma=0.5)
    X, Z = X[:40], X[40:]
    direct = KernelPerceptron(kernel=k).fit(X, y[:40])
    given = KernelPerceptron(kernel="precomputed").fit(k(X), y[:40])
    assert np.array_equal(given.predict(k(Z, X)), direct.predict(Z))
    assert given.decision_function(k(Z, X)) == pytest.approx(direct.decision_function(Z))
    assert given.mistakes_ == direct.mistakes_
    assert given.bound_ == pytest.approx(direct.bound_)
    assert given.expansion_.norm() == pytest.approx(direct.expansion_.norm())
    assert np.array_equal(X[given.expansion_.anchors], direct.expansion_.anchors)


def test_precomputed_is_cut_on_both_sides_by_cross_validation(ring):
    X, y = ring
    k = Gaussian(sigma=0.5)
    direct = cross_val_score(KernelPerceptron(kernel=k), X, y, cv=3)
    assert cross_val_score(KernelPerceptron(kernel="precomputed"), k(X), y, cv=3).tolist() == direct.tolist()


WORDS = ["kernel", "colonel", "kern", "corn", "cat", "cattle", "dog", "doll"]
KINDS = ["seed", "seed", "seed", "seed", "pet", "pet", "pet", "pet"]


def common(a, b):
    return float(len(set(a) & set(b)))


@pytest.mark.filterwarnings("ignore::mercer.errors.SlowPathWarning")
@pytest.mark.parametrize("kernel", [common, FromFunction(common)])
def test_strings(kernel):
    model = KernelPerceptron(kernel=kernel).fit(WORDS, KINDS)
    assert model.score(WORDS, KINDS) == 1.0
    assert set(model.expansion_.anchors) < set(WORDS)
    assert cross_val_score(model, WORDS, KINDS, cv=2).shape == (2,)
    loaded = pickle.loads(pickle.dumps(model))
    assert loaded.predict(WORDS).tolist() == model.predict(WORDS).tolist()


# --- the last, the average, the votes ----------------------------------------------------------------


@pytest.fixture
def noisy(rng):
    """Overlapping classes."""
    X = rng.normal(size=(150, 2))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=150) > 0, "up", "down")
    return X, y


def every_function(model, X, y, Z):
    """The values at Z of f after every visit, by the kernel alone."""
    K, Y = model.kernel_(X), np.where(y == model.classes_[1], 1, -1)
    a, b, values, KZ = np.zeros(len(X)), 0, [], model.kernel_(Z, X)
    for _ in range(model.n_iter_):
        for i in range(len(X)):
            if Y[i] * (K[i] @ a + b) <= 0:
                a[i] += Y[i]
                b += Y[i]
            values.append(KZ @ a + b)
    return np.array(values)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_averages_and_votes(rng, noisy):
    Z = rng.normal(size=(40, 2))
    options = {"kernel": Gaussian(0.6), "max_iter": 3}
    last, averaged, voted = (
        KernelPerceptron(prediction=p, **options).fit(*noisy) for p in ("last", "averaged", "voted")
    )
    values = every_function(last, *noisy, Z)
    assert last.decision_function(Z) == pytest.approx(values[-1])
    assert averaged.decision_function(Z) == pytest.approx(values.mean(axis=0))
    assert averaged.expansion_(Z) == pytest.approx(values.mean(axis=0))
    assert voted.decision_function(Z) == pytest.approx(np.where(values > 0, 1, -1).mean(axis=0))
    assert last.mistake_indices_.tolist() == averaged.mistake_indices_.tolist()
    assert voted.expansion_.coef.tolist() == last.expansion_.coef.tolist()


def test_votes_are_counted_a_few_points_at_a_time(ring, monkeypatch):
    model = KernelPerceptron(prediction="voted").fit(*ring)
    expected = model.decision_function(ring[0])
    monkeypatch.setattr("mercer.estimators.shared.mistakes._ENTRIES", 100)
    assert model.decision_function(ring[0]) == pytest.approx(expected)


@pytest.mark.parametrize("prediction", ["last", "averaged", "voted"])
def test_several_classes_predict_as_each_alone(digits, prediction):
    X, Z, y, _ = digits
    model = KernelPerceptron("poly", coef0=1, prediction=prediction).fit(X[:300], y[:300])
    alone = KernelPerceptron("poly", coef0=1, prediction=prediction).fit(X[:300], y[:300] == 3)
    assert alone.decision_function(Z) == pytest.approx(model.decision_function(Z)[:, 3])


def test_the_average_helps_where_classes_overlap(rng):
    X, Z = rng.normal(size=(2, 1500, 2))
    y, labels = (points[:, 0] + 0.8 * rng.normal(size=1500) > 0 for points in (X, Z))
    scores = {}
    for prediction in ("last", "averaged", "voted"):
        with pytest.warns(ConvergenceWarning):
            model = KernelPerceptron(Gaussian(1.0), prediction=prediction, max_iter=3).fit(X, y)
        scores[prediction] = model.score(Z, labels)
    assert min(scores["averaged"], scores["voted"]) > scores["last"]


# --- only the mistakes are kept ----------------------------------------------------------------------


def test_the_model_is_its_mistakes(noisy):
    """Rebuilt from the stored points alone, in the order of the mistakes, it predicts the same."""
    X, y = noisy
    with pytest.warns(ConvergenceWarning):
        model = KernelPerceptron(Gaussian(0.6), max_iter=3).fit(X, y)
    signs = np.where(y[model.mistake_indices_] == "up", 1.0, -1.0)
    rebuilt = Expansion(model.kernel_, X[model.mistake_indices_], signs, signs.sum())
    assert rebuilt(X) == pytest.approx(model.decision_function(X))
    assert len(model.expansion_) == len(set(model.mistake_indices_)) < len(X)


# --- the bound ---------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_mistakes_stay_under_the_bound_of_any_separator(seed, fit_intercept):
    rng = np.random.default_rng(seed)
    anchors, coef, b = rng.normal(size=(5, 2)), rng.normal(size=5), rng.normal() * fit_intercept
    g = Expansion(Gaussian(1.0), anchors, coef, b)
    X = rng.normal(size=(60, 2))
    values = g(X)
    X, values = X[np.abs(values) > 0.05], values[np.abs(values) > 0.05]
    if len(set(values > 0)) < 2:
        return
    model = KernelPerceptron(Gaussian(1.0), fit_intercept=fit_intercept, max_iter=10_000).fit(X, values > 0)
    assert model.converged_
    assert model.mistakes_ <= min(model.bound_, model.bound(g, X, values > 0)) * (1 + 1e-9)
    scaled = (1 / np.abs(values).min()) * g
    square = scaled.norm() ** 2 + float(scaled.intercept) ** 2
    assert model.bound(scaled) == pytest.approx(square * (2 if fit_intercept else 1))
    assert model.bound(scaled) == pytest.approx(model.bound(g, X, values > 0))


def test_margin_and_bound_of_the_found_function(ring):
    X, y = ring
    model = KernelPerceptron(Gaussian(0.5)).fit(X, y)
    signs = np.where(y == "out", 1, -1)
    length = math.hypot(model.expansion_.norm(), model.expansion_.intercept)  # in the space of k + 1
    assert model.margin_ == pytest.approx((signs * model.decision_function(X)).min() / length)
    assert model.bound_ == pytest.approx(2 / model.margin_**2)
    assert model.bound(model.expansion_, X, y) == pytest.approx(model.bound_)
    assert model.bound(-model.expansion_, X, y) == math.inf


def test_refused_separators(ring):
    model = KernelPerceptron(Gaussian(0.5), fit_intercept=False).fit(*ring)
    with pytest.raises(InputError, match="g must be an Expansion, got 3: pass Expansion"):
        model.bound(3)
    with pytest.raises(InputError, match="g must have no intercept where the perceptron has none"):
        model.bound(model.expansion_ + 1.0)


# --- a budget ----------------------------------------------------------------------------------------

STRATEGIES = ["forget", "project", "remove"]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("classes", [2, 10])
def test_a_budget_is_kept_and_learns(digits, strategy, classes):
    X, Z, y, labels = digits
    if classes == 2:
        y, labels = y > 4, labels > 4
    budget = 60 * (1 + (classes == 10))
    model = KernelPerceptron(Polynomial(3), budget=budget, budget_strategy=strategy, max_iter=3)
    with pytest.warns(ConvergenceWarning, match=f"raise budget={budget} or max_iter"):
        model.fit(X, y)
    assert len(model.expansion_) <= budget
    assert model.score(Z, labels) > (0.7 if classes == 2 else 0.5)  # chance is ½, 1/10
    assert np.isnan(model.bound_).all() and not hasattr(model, "mistake_indices_")
    assert model.report_.plan.solver == "kernel perceptron with a budget"
    assert model.report_.stopped == "max_iter" and model.n_iter_ == 3


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_large_budget_is_the_plain_perceptron(ring, strategy):
    plain = KernelPerceptron(Gaussian(0.5)).fit(*ring)
    model = KernelPerceptron(Gaussian(0.5), budget=60, budget_strategy=strategy, residual=0.0).fit(*ring)
    assert model.converged_ and model.n_iter_ == plain.n_iter_ and model.mistakes_ == plain.mistakes_
    assert model.decision_function(ring[0]) == pytest.approx(plain.decision_function(ring[0]), abs=1e-7)
    assert model.margin_ == pytest.approx(plain.margin_, abs=1e-7)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_budget_takes_every_kind_of_data(ring, strategy):
    X, y = ring
    k = Gaussian(0.5)
    options = {"budget": 8, "budget_strategy": strategy, "max_iter": 2}
    expected = KernelPerceptron(k, **options).fit(X, y).decision_function(X)
    given = KernelPerceptron("precomputed", **options).fit(k(X), y)
    stored = KernelPerceptron(Precomputed(k(X)), **options).fit(np.arange(60), y)
    thin = KernelPerceptron(k, **options).fit(sparse.csr_array(X), y)
    assert given.decision_function(k(X)) == pytest.approx(expected, abs=1e-9)
    assert stored.decision_function(np.arange(60)) == pytest.approx(expected, abs=1e-9)
    assert thin.decision_function(sparse.csr_array(X)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.full
def test_memory_with_a_budget_does_not_grow_with_the_rows(rng):
    X = rng.normal(size=(20_000, 3))
    y = X[:, 0] * X[:, 1] > 0
    model = KernelPerceptron(Gaussian(1.0), budget=50, max_iter=1)
    with pytest.warns(ConvergenceWarning):
        model.fit(X[:100], y[:100])  # compiles
    tracemalloc.start()
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.1 * model.report_.memory + 2**21  # 50 rows of K alone would be 8 MB
    assert model.report_.memory < 3e6


def test_refused_budgets(ring):
    for prediction in ("averaged", "voted"):
        text = f"prediction must be 'last' with a budget, got '{prediction}': the average and the votes need"
        with pytest.raises(InputError, match=text):
            KernelPerceptron(budget=5, prediction=prediction).fit(*ring)
    with pytest.raises(InputError, match="record_history must be None or False with a budget, got True"):
        KernelPerceptron(budget=5, record_history=True).fit(*ring)


# --- streams -----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("prediction", ["last", "averaged", "voted"])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_stream_is_one_pass(rng, prediction, classes):
    X = rng.normal(size=(200, 2))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=200), [-0.5, 0.5][: classes - 1])
    whole = KernelPerceptron(Gaussian(0.8), prediction=prediction, max_iter=1).fit(X, y)
    stream = KernelPerceptron(Gaussian(0.8), prediction=prediction)
    for part in np.array_split(np.arange(200), 11):
        assert stream.partial_fit(X[part], y[part], classes=range(classes)) is stream
    assert np.array_equal(stream.mistakes_, whole.mistakes_)
    for ours, theirs in zip(
        np.atleast_2d(stream.mistake_indices_) if classes == 2 else stream.mistake_indices_,
        np.atleast_2d(whole.mistake_indices_) if classes == 2 else whole.mistake_indices_,
        strict=True,
    ):
        assert ours.tolist() == theirs.tolist()
    assert np.array_equal(stream.expansion_.anchors, whole.expansion_.anchors)
    assert stream.decision_function(X) == pytest.approx(whole.decision_function(X), abs=1e-9)
    assert np.isnan(stream.bound_).all() and not stream.converged_


@pytest.mark.sample(5)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("size", [1, 30])
def test_a_stream_with_a_budget_is_one_pass(rng, strategy, classes, size):
    X = rng.normal(size=(180, 2))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=180), [-0.5, 0.5][: classes - 1])
    options = {"kernel": Gaussian(0.8), "budget": 10, "budget_strategy": strategy, "residual": 1e-4}
    whole = KernelPerceptron(**options, max_iter=1).fit(X, y)
    stream = KernelPerceptron(**options)
    for start in range(0, 180, size):
        part = slice(start, start + size)
        stream.partial_fit(X[part], y[part], classes=range(classes))
        assert len(stream.expansion_) <= 10
    assert np.array_equal(stream.mistakes_, whole.mistakes_)
    # forgetting shrinks by a root of a quadratic: where that is nearly double, rounding moves it by √ε
    assert stream.decision_function(X) == pytest.approx(whole.decision_function(X), abs=1e-5)


@pytest.mark.parametrize("budget", [None, 5])
def test_a_stream_is_copied(rng, budget):
    X = rng.normal(size=(20, 2))
    model = KernelPerceptron(gamma=1.0, budget=budget)
    model.partial_fit(X, X[:, 0] > 0, classes=[False, True])
    model.partial_fit(X, X[:, 0] > 0.1)
    before = model.decision_function(np.eye(2))
    X[:] = 0
    assert np.array_equal(model.decision_function(np.eye(2)), before)


@pytest.mark.parametrize("budget", [None, 5])
def test_a_stream_may_begin_without_a_mistake(rng, budget):
    X = rng.normal(size=(20, 2))
    model = KernelPerceptron(gamma=1.0, budget=budget, boundary="negative")
    model.partial_fit(X[:10], ["a"] * 10, classes=["a", "b"])  # f = 0 says "a"
    assert (model.predict(X) == "a").all() and model.mistakes_ == 0
    model.partial_fit(X[10:], ["b"] * 10)
    assert model.mistakes_ > 0
    assert (model.predict(X[10:]) == "b").any()


@pytest.mark.filterwarnings("ignore::mercer.errors.SlowPathWarning")
@pytest.mark.parametrize("budget", [None, 3])
def test_a_stream_of_strings(budget):
    model = KernelPerceptron(common, budget=budget)
    for word, kind in 4 * list(zip(WORDS, KINDS, strict=True)):
        model.partial_fit([word], [kind], classes=["pet", "seed"])
    assert set(model.expansion_.anchors) <= set(WORDS)
    assert budget is None or len(model.expansion_) <= 3
    assert model.score(WORDS, KINDS) > 0.5


def test_a_stream_goes_on_after_a_fit(noisy):
    X, y = noisy
    for budget in (None, 10):
        model = KernelPerceptron(Gaussian(0.6), budget=budget, max_iter=2)
        with pytest.warns(ConvergenceWarning):
            model.fit(X[:100], y[:100])
        before = model.mistakes_
        model.partial_fit(X[100:], y[100:])
        assert model.mistakes_ > before
        assert budget is None or len(model.expansion_) <= 10
        if budget is None:
            assert model.mistake_indices_[before:].min() >= 100
        assert not hasattr(model, "history_")


def test_refused_streams(rng):
    X = rng.normal(size=(4, 2))
    with pytest.raises(InputError, match="classes must be given in the first call of partial_fit, got None"):
        KernelPerceptron().partial_fit(X, [0, 1, 0, 1])
    with pytest.raises(InputError, match="partial_fit needs the points themselves, got kernel='precomputed'"):
        KernelPerceptron("precomputed").partial_fit(X @ X.T, [0, 1, 0, 1], classes=[0, 1])
    model = KernelPerceptron()
    with pytest.raises(InputError, match=r"y must hold labels from classes, \['a', 'b'\], got \['c'\]"):
        model.partial_fit(X, ["a", "b", "c", "a"], classes=["a", "b"])
    assert not hasattr(model, "classes_")


# --- long runs ---------------------------------------------------------------------------------------


def test_ctrl_c_gives_the_best_so_far(noisy):
    def interrupt(event):
        if event["facts"].get("epoch") == 4:
            os.kill(os.getpid(), signal.SIGINT)

    model = KernelPerceptron(Gaussian(0.6), max_iter=10_000, progress=interrupt)
    with pytest.warns(ConvergenceWarning, match="KernelPerceptron was interrupted after 4 iterations, with"):
        model.fit(*noisy)
    assert model.report_.stopped == "interrupted"
    assert model.score(*noisy) > 0.7
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("budget", [None, 20])
def test_ctrl_c_from_the_keyboard(noisy, budget):
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))

    def begun(event):
        if timer.ident is None:
            timer.start()

    model = KernelPerceptron(Gaussian(0.6), max_iter=10**9, budget=budget, record_history=False)
    with pytest.warns(ConvergenceWarning, match="was interrupted"):
        model.set_params(progress=begun).fit(*noisy)
    timer.join()
    assert not model.converged_


@pytest.mark.parametrize("budget", [None, 20])
def test_max_time(noisy, budget):
    with pytest.warns(
        ConvergenceWarning, match=r"ran out of max_time=0.1 seconds after \d+ iterations, with"
    ):
        model = KernelPerceptron(Gaussian(0.6), max_iter=10**9, max_time=0.1, budget=budget).fit(*noisy)
    assert model.report_.stopped == "max_time"
    assert 0 < model.n_iter_ < 10**9


_FIT = """
import sys, warnings
import numpy as np
import mercer.solvers.control
from mercer import Gaussian, KernelPerceptron
mercer.solvers.control._EVERY = 0
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 2))
y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=200), [-0.5, 0.5])
options = eval(sys.argv[2])
def tell(event):
    print(event["done"], flush=True)
model = KernelPerceptron(Gaussian(0.6), max_iter=8, shuffle=True, progress=tell, **options)
model.set_params(random_state=3)
for out in sys.argv[3:]:
    if "whole" not in out:
        model.set_params(checkpoint=sys.argv[1], resume=True)
    else:
        model.set_params(checkpoint=None, resume=False, progress=None)
    model.fit(X, y)
    np.savez(out, coef=model.expansion_.coef, anchors=model.expansion_.anchors,
             b=model.expansion_.intercept, mistakes=model.mistakes_, iterations=model.n_iter_)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"budget": 20, "budget_strategy": "project"}, pytest.param({}, marks=pytest.mark.full)]
)
def test_a_killed_fit_goes_on(tmp_path, options, fork):
    """SIGKILL in the middle, then resume=True: bitwise the coefficients of a fit that nobody disturbed."""
    state = tmp_path / "state"

    def start(*outs):
        return fork(_FIT, state, repr(options), *(tmp_path / out for out in outs))

    killed = start("killed.npz")
    for line in killed:
        if int(line) > 700:  # of 1600 visits
            break
    killed.kill()
    list(killed)
    assert killed.returncode == -signal.SIGKILL
    assert state.exists() and not (tmp_path / "killed.npz").exists()
    rest = start("resumed.npz", "whole.npz")
    said = list(rest)
    assert rest.returncode == 0, "\n".join(said)
    first = int(said[1])
    assert first > 600  # it did not begin anew
    with np.load(tmp_path / "resumed.npz") as a, np.load(tmp_path / "whole.npz") as b:
        for name in b.files:
            assert np.array_equal(a[name], b[name]), name


def test_a_checkpoint_of_another_fit_is_refused(ring, tmp_path):
    X, y = ring
    KernelPerceptron(checkpoint=tmp_path / "state").fit(X, y)
    with pytest.raises(
        InputError, match="is the checkpoint of another fit: data, kernel or parameters differ"
    ):
        KernelPerceptron(checkpoint=tmp_path / "state", resume=True).fit(X + 1, y)
    again = KernelPerceptron(checkpoint=tmp_path / "state", resume=True).fit(X, y)
    assert again.converged_ and again.score(X, y) == 1.0


# --- plan, memory, awkward data ----------------------------------------------------------------------


def test_plan_and_report(ring):
    model = KernelPerceptron()
    plan = model.plan(*ring)
    assert plan.iterative and "one row of K is needed per mistake" in str(plan)
    fitted = model.fit(*ring)
    assert fitted.report_.plan == plan
    assert fitted.report_.iterations == fitted.n_iter_
    with config(memory="1MiB"), pytest.raises(MemoryBudgetError, match="kernel perceptron on 50,000 points"):
        KernelPerceptron().fit(np.ones((50_000, 2)), np.arange(50_000) % 2)


@pytest.mark.full
def test_memory_stays_within_the_plan(rng):
    X = rng.normal(size=(2000, 3))
    y = np.where(rng.uniform(size=2000) < 0.2, X[:, 0] < 0, X[:, 0] > 0)
    with config(memory="20MB"), pytest.warns(ConvergenceWarning):
        model = KernelPerceptron(Gaussian(0.5), max_iter=2).fit(X[:100], y[:100])  # compiles
        tracemalloc.start()
        model.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 1.1 * model.report_.memory + 2**21
    assert model.report_.memory < 10e6  # K would be 32 MB


def test_rows_fit_a_small_budget(rng):
    """64 rows of 6000 values are 3 MB, more than all there is."""
    X = rng.normal(size=(6000, 2))
    with config(memory="2.5MB"):
        assert KernelPerceptron(Gaussian(1.0)).fit(X, X[:, 0] > 3).mistakes_ > 0


def test_few_rows_in_memory_give_the_same(rng, noisy):
    X, y = noisy
    with pytest.warns(ConvergenceWarning):
        plain = KernelPerceptron(Gaussian(0.6), max_iter=4).fit(X, y)
        with config(memory="1MiB"):
            tight = KernelPerceptron(Gaussian(0.6), max_iter=4).fit(X, y)
    assert tight.mistake_indices_.tolist() == plain.mistake_indices_.tolist()


def test_single_precision(ring):
    with config(dtype="float32"):
        for options in ({}, {"budget": 30}, {"prediction": "voted"}):
            model = KernelPerceptron(Gaussian(0.5), max_iter=200, **options).fit(*ring)
            assert model.score(*ring) > 0.9


def test_awkward_data(rng):
    X = np.repeat(rng.normal(size=(10, 2)), 3, axis=0)  # every point three times
    y = X[:, 0] > X[:, 0].mean()
    for table in (X, X * [1.0, 0.0], X * 1e8, X * 1e-8, X[:, [0, 0]]):
        assert KernelPerceptron(max_iter=10_000).fit(table, y).score(table, y) == 1.0
    assert KernelPerceptron().fit([[0.0], [1.0]], [1, 0]).converged_
    labels = np.r_[np.zeros(1000), 1]
    Z = np.r_[rng.normal(size=(1000, 2)), [[9.0, 9.0]]]
    assert KernelPerceptron().fit(Z, labels).predict([[9.0, 9.0]]).tolist() == [1.0]
    with pytest.raises(ValueError, match="NaN"):
        KernelPerceptron().fit(X, np.where(y, np.nan, 1.0))


def test_an_indefinite_kernel_ends(rng):
    """The rule needs no positive definiteness; what is promised (an end, a bound) does."""
    X = rng.normal(size=(60, 3))
    y = X[:, 0] > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for options in ({}, *({"budget": 10, "budget_strategy": s} for s in STRATEGIES)):
            model = KernelPerceptron(Sigmoid(eta=1.0, nu=-1.0), max_iter=20, **options).fit(X, y)
            assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.filterwarnings("ignore::mercer.errors.SlowPathWarning")
def test_a_slow_kernel_is_called_for_the_mistakes_alone():
    calls = []
    model = KernelPerceptron(lambda a, b: calls.append((a, b)) or common(a, b)).fit(WORDS, KINDS)
    diagonal = 8 * 2  # k(x, x), for ``bound_`` and ``bound``
    assert len(calls) == 8 * len(model.expansion_) + diagonal


# --- tools of scikit-learn ---------------------------------------------------------------------------


def test_grid_search_reaches_the_kernel(ring):
    model = KernelPerceptron(kernel=Gaussian(sigma=1.0))
    search = GridSearchCV(model, {"kernel__sigma": [0.3, 1.0], "max_iter": [50]}, cv=3).fit(*ring)
    assert model.kernel == Gaussian(sigma=1.0)
    assert search.best_params_["kernel__sigma"] in (0.3, 1.0)
    assert search.best_estimator_.kernel_ == Gaussian(sigma=search.best_params_["kernel__sigma"])
    assert search.best_score_ > 0.8


def test_pipeline(ring):
    X, y = ring
    pipeline = make_pipeline(StandardScaler(), KernelPerceptron(kernel=Gaussian(sigma=1.0)))
    pipeline.set_params(kernelperceptron__kernel__sigma=0.5)
    assert pipeline.fit(100 * X + 7, y).score(100 * X + 7, y) == 1.0


def test_clone_is_unfitted_and_has_its_own_kernel(ring):
    model = KernelPerceptron(kernel=Gaussian(sigma=0.5) + Linear(), random_state=3).fit(*ring)
    copy = clone(model)
    assert copy.get_params().keys() == model.get_params().keys()
    assert copy.kernel == model.kernel and copy.kernel is not model.kernel
    with pytest.raises(NotFittedError):
        copy.predict(ring[0])


def test_pickle(ring):
    X, y = ring
    model = KernelPerceptron(record_history=True).fit(X, y)
    loaded = pickle.loads(pickle.dumps(model))
    assert np.array_equal(loaded.decision_function(X), model.decision_function(X))
    assert np.array_equal(loaded.history_, model.history_)


def test_repr():
    assert repr(KernelPerceptron(Gaussian(sigma=1.0))) == "KernelPerceptron(kernel=Gaussian(sigma=1.0))"


# --- progress, warnings, refusals --------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
def test_progress_ends_complete(rng, classes):
    X, y = rng.normal(size=(30, 2)), np.arange(30) % classes
    X += 6 * np.eye(3)[y][:, :2]
    events = []
    with config(progress=events.append):
        model = KernelPerceptron(max_iter=50).fit(X, y)
    assert model.converged_
    assert events[-1]["done"] == events[-1]["total"] == 50 * 30
    assert events[-1]["facts"]["mistakes"] > 0
    assert all(before["done"] <= after["done"] for before, after in itertools.pairwise(events))


def test_noise_ends_with_a_warning_at_the_callers_line(ring):
    X, y = np.concatenate([ring[0], ring[0][:1]]), np.append(ring[1], "in" if ring[1][0] == "out" else "out")
    with pytest.warns(ConvergenceWarning, match="did not separate the two classes in max_iter=5") as caught:
        model = KernelPerceptron(max_iter=5).fit(X, y)
    assert caught[0].filename == __file__
    assert "raise max_iter" in str(caught[0].message)
    assert not model.converged_
    assert model.n_iter_ == 5
    assert math.isnan(model.bound_)


def test_the_warning_names_the_classes():
    X, y = [[0.0], [0.0], [9.0]], ["a", "b", "c"]
    with pytest.warns(
        ConvergenceWarning, match=r"did not separate 2 of 3 classes \('a', 'b'\) in max_iter=9"
    ):
        model = KernelPerceptron(max_iter=9).fit(X, y)
    assert np.isnan(model.bound_).tolist() == [True, True, False]


def test_separable_data_bring_no_warning(ring):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelPerceptron().fit(*ring)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"max_iter": 2.5}, "max_iter must be a whole number of at least 1, got 2.5: pass 1, 2, 3, …"),
        ({"fit_intercept": None}, "fit_intercept must be True or False, got None: pass one of the two"),
        ({"shuffle": 1}, "shuffle must be True or False, got 1"),
        ({"budget": 0}, "budget must be a whole number of at least 1, got 0"),
        (
            {"budget_strategy": "drop"},
            "budget_strategy must be one of 'forget', 'project', 'remove', got 'drop'",
        ),
        ({"prediction": True}, "prediction must be one of 'last', 'averaged', 'voted', got True"),
        ({"residual": -1}, "residual must be non-negative, got -1"),
        ({"record_history": "all"}, "record_history must be True or False, got 'all'"),
    ],
)
def test_refused_parameters(options, text):
    with pytest.raises(InputError, match=text):
        KernelPerceptron(**options).fit(XOR, XOR_LABELS)


def test_refused_labels():
    with pytest.raises(InputError, match="y must hold at least two classes, got one class, 'a': add points"):
        KernelPerceptron().fit(XOR, ["a"] * 4)
    with pytest.raises(ValueError, match="Unknown label type"):
        KernelPerceptron().fit(XOR, [0.5, 1.5, 2.5, 3.5])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        KernelPerceptron().fit(XOR, [1, -1, 1])


@pytest.mark.filterwarnings("ignore:the perceptron did not separate")
@pytest.mark.parametrize(("before", "after"), [(None, 5), (5, None), (5, 6)])
def test_the_budget_stays_within_a_stream(rng, before, after):
    X = rng.normal(size=(30, 2))
    y = X[:, 0] > 0
    model = KernelPerceptron(budget=before, max_iter=10).fit(X, y)
    expected = model.decision_function(X)
    with pytest.raises(InputError, match=f"budget must stay as it was when the training began, {before}"):
        model.set_params(budget=after).partial_fit(X, y)
    assert np.array_equal(model.decision_function(X), expected)
    model.set_params(budget=before).partial_fit(X, y)
    model.set_params(budget=after).fit(X, y).partial_fit(X, y)


@pytest.mark.filterwarnings("ignore:the perceptron did not separate")
def test_a_kernel_that_is_not_positive_definite_is_told(rng):
    X = rng.normal(size=(40, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        KernelPerceptron(gamma=1e-3, max_iter=50).fit(np.concatenate([X, X]), np.repeat([0, 1], 40))
    with pytest.warns(UserWarning, match="Precomputed.* is not positive definite on these data"):
        model = KernelPerceptron("precomputed", fit_intercept=False, max_iter=5).fit(-np.eye(4), [0, 1, 0, 1])
    assert np.isnan(model.margin_)
    assert not any("richer kernel" in text for text in model.report_.warnings)
