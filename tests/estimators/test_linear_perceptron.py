"""Perceptron: the textbook loop, the kernel perceptron, the bound, streams, sparse data."""

import math
import os
import pickle
import signal
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import Expansion, KernelPerceptron, Linear, Polynomial, config
from mercer.errors import InputError, MemoryBudgetError
from mercer.estimators.linear_perceptron import Perceptron
from mercer.features import PolynomialMap


@parametrize_with_checks(
    [
        Perceptron(max_iter=100),
        Perceptron(fit_intercept=False, prediction="averaged", shuffle=True, random_state=0, max_iter=50),
        Perceptron(prediction="voted", max_iter=50),
        Perceptron(PolynomialMap(2, c=1.0), max_iter=50),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn(estimator, check):
    check(estimator)


def separable(rng, n=80, d=4):
    """Whole coordinates, so that every sum is exact."""
    X = rng.integers(-9, 10, size=(n, d)).astype(float)
    w, b = rng.integers(-3, 4, size=d) + 0.5, 0.25
    return X, np.where(X @ w + b > 0, 1, -1)


def textbook(X, y, fit_intercept, max_iter, boundary):
    w, b, mistakes = np.zeros(X.shape[1]), 0.0, []
    for _ in range(max_iter):
        before = len(mistakes)
        for i, (x, label) in enumerate(zip(X, y, strict=True)):
            value = w @ x + b
            if label * value <= 0 if boundary == "mistake" else (1 if value > 0 else -1) != label:
                w, b = w + label * x, b + label * fit_intercept
                mistakes.append(i)
        if len(mistakes) == before:
            break
    return w, b, mistakes


# --- the algorithm -----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("boundary", ["mistake", "negative"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n", [3, 80, 300])
def test_equals_the_textbook_and_the_kernel_form(rng, n, fit_intercept, boundary, form):
    X, y = separable(rng, n)
    y[0] = -y[1]
    w, b, mistakes = textbook(X, y, fit_intercept, 20, boundary)
    options = {"fit_intercept": fit_intercept, "boundary": boundary, "max_iter": 20}
    model = Perceptron(**options).fit(form(X), y)
    assert model.coef_.tolist() == [w.tolist()]
    assert model.intercept_.tolist() == [b]
    assert model.mistake_indices_.tolist() == mistakes
    assert model.mistakes_ == len(mistakes)
    kernel = KernelPerceptron("linear", **options).fit(X, y)
    assert kernel.mistake_indices_.tolist() == mistakes  # step for step
    assert (kernel.n_iter_, kernel.converged_) == (model.n_iter_, model.converged_)
    assert model.bound_ == pytest.approx(kernel.bound_, nan_ok=True)
    f, g = model.expansion_, kernel.expansion_
    assert f.kernel == Linear()
    assert f.coef.tolist() == g.coef.tolist() and f.intercept == g.intercept
    assert f(X) == pytest.approx(model.decision_function(X), abs=1e-9)
    points = f.anchors.toarray() if sparse.issparse(f.anchors) else f.anchors
    assert (points.T @ f.coef).tolist() == w.tolist()  # the list of mistakes is the model


@pytest.mark.parametrize("prediction", ["last", "averaged", "voted"])
@pytest.mark.parametrize("classes", [2, 4])
def test_predictions_equal_the_kernel_form(rng, prediction, classes):
    X, _ = separable(rng, 150)
    y = np.digitize(X[:, 0] - 2 * X[:, 1], [-8.5, 0.5, 9.5][: classes - 1])
    options = {"prediction": prediction, "max_iter": 4, "shuffle": True, "random_state": 1}
    with pytest.warns(ConvergenceWarning):
        model, kernel = Perceptron(**options).fit(X, y), KernelPerceptron("linear", **options).fit(X, y)
    assert model.decision_function(X) == pytest.approx(kernel.decision_function(X), abs=1e-8)
    assert np.array_equal(model.mistakes_, kernel.mistakes_)
    assert model.coef_.shape == (1 if classes == 2 else 4, 4)
    if prediction != "voted":
        assert model.expansion_(X) == pytest.approx(model.decision_function(X), abs=1e-8)


def test_features(rng):
    """The same rule on Φ(x): XOR, and the polynomial kernel on anything."""
    xor, labels = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]]), [1, -1, 1, -1]
    model = Perceptron(PolynomialMap(2), fit_intercept=False, boundary="negative").fit(xor, labels)
    assert model.predict(xor).tolist() == labels
    assert (model.mistakes_, model.n_iter_) == (1, 2)
    X = rng.normal(size=(60, 2))  # no ties at f = 0, that √2 would break otherwise than 2
    y = (X**2).sum(axis=1) > 1.2
    model = Perceptron(PolynomialMap(2, c=1.0), fit_intercept=False).fit(X, y)
    kernel = KernelPerceptron(Polynomial(2, c=1.0), fit_intercept=False, max_iter=1000).fit(X, y)
    assert model.converged_ and model.score(X, y) == 1.0
    assert model.mistake_indices_.tolist() == kernel.mistake_indices_.tolist()
    assert model.coef_.shape == (1, 6)
    assert model.expansion_(X) == pytest.approx(kernel.expansion_(X))
    assert np.array_equal(model.expansion_.anchors, kernel.expansion_.anchors)
    assert model.bound_ == pytest.approx(kernel.bound_)


# --- the bound ---------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.booleans(), st.integers(1, 4))
def test_mistakes_stay_under_every_bound(seed, fit_intercept, d):
    rng = np.random.default_rng(seed)
    w, b = rng.normal(size=d), rng.normal() * fit_intercept
    X = rng.normal(size=(40, d))
    X = X[np.abs(X @ w + b) > 0.1 * np.linalg.norm(w)]
    y = np.where(X @ w + b > 0, 1, -1)
    assume(len(set(y)) == 2)
    model = Perceptron(fit_intercept=fit_intercept, max_iter=100_000).fit(X, y)
    assert model.converged_
    assert model.mistakes_ <= model.bound_ * (1 + 1e-9)
    rho = (y * (X @ w + b)).min() / np.linalg.norm(w)
    r2, b2 = (X**2).sum(axis=1).max(), (b / np.linalg.norm(w)) ** 2
    formula = (b2 + 1) * (r2 + 1) / rho**2 if fit_intercept else r2 / rho**2
    assert model.bound(7 * w, 7 * b, X, y) == pytest.approx(formula)
    scale = (y * (X @ w + b)).min()
    assert model.bound(w / scale, b / scale) == pytest.approx(formula)
    assert model.mistakes_ <= formula * (1 + 1e-9)
    margin = (y * (X @ model.coef_[0] + model.intercept_)).min() / np.linalg.norm(model.coef_)
    assert model.margin_ == pytest.approx(margin)


def test_a_separator_that_does_not_separate_bounds_nothing(rng):
    X, y = separable(rng)
    model = Perceptron(max_iter=10_000).fit(X, y)
    assert model.bound(-model.coef_, -model.intercept_, X, y) == math.inf
    with pytest.raises(InputError, match=r"w must have the shape of coef_, \(1, 4\), got \(1, 3\)"):
        model.bound([1.0, 2.0, 3.0])
    model = Perceptron(fit_intercept=False).fit(X, np.where(X[:, 0] > 0, 1, -1))
    with pytest.raises(InputError, match="b must be 0 where the perceptron has none"):
        model.bound([1.0, 0.0, 0.0, 0.0], 1.0)


# --- streams -----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("prediction", ["last", "averaged", "voted"])
@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_stream_is_one_pass(rng, prediction, form, classes):
    X, _ = separable(rng, 200)
    y = np.digitize(X[:, 0], [-2.5, 3.5][: classes - 1])
    whole = Perceptron(prediction=prediction, max_iter=1).fit(form(X), y)
    stream = Perceptron(prediction=prediction)
    for part in np.array_split(np.arange(200), 9):
        stream.partial_fit(form(X[part]), y[part], classes=range(classes))
    assert np.array_equal(stream.mistakes_, whole.mistakes_)
    if classes == 2:
        assert stream.mistake_indices_.tolist() == whole.mistake_indices_.tolist()
    assert stream.coef_ == pytest.approx(whole.coef_, abs=1e-9)
    assert stream.decision_function(X) == pytest.approx(whole.decision_function(X), abs=1e-9)
    if prediction == "last":
        assert stream.expansion_(X) == pytest.approx(whole.expansion_(X))


def test_a_stream_goes_on_after_a_fit(rng):
    X, y = separable(rng, 120)
    model = Perceptron(max_iter=10_000).fit(X[:60], y[:60])
    before = model.mistakes_
    model.partial_fit(X[60:], y[60:])
    assert model.mistakes_ >= before
    assert model.mistake_indices_[before:].min(initial=60) >= 60
    assert math.isnan(model.bound_) and math.isnan(model.margin_)


# --- data --------------------------------------------------------------------------------------------


def test_containers_and_labels_agree(rng):
    X, y = separable(rng)
    expected = Perceptron(max_iter=10_000).fit(X, y)
    names = list("abcd")
    for table in (X.tolist(), pd.DataFrame(X, columns=names), pl.DataFrame(X, names), X.astype(np.float32)):
        model = Perceptron(max_iter=10_000).fit(table, np.where(y > 0, "yes", "no").astype(object))
        assert model.decision_function(table) == pytest.approx(expected.decision_function(X))
        assert set(model.predict(table)) == {"yes", "no"}
    assert Perceptron(max_iter=10_000).fit(X, y > 0).predict(X).dtype == bool


def test_sparse_data_are_not_made_dense(rng):
    places = rng.integers(200_000, size=6000)  # of 300 rows with 20 entries each: 480 MB when dense
    X = sparse.csr_array((rng.normal(size=6000), (np.repeat(np.arange(300), 20), places)), (300, 200_000))
    y = np.arange(300) % 2
    tracemalloc.start()
    model = Perceptron(max_iter=30).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30e6  # w and its copies, 1.6 MB each
    assert sparse.issparse(model.expansion_.anchors)


def test_pickle(rng):
    X, y = separable(rng)
    model = Perceptron(prediction="voted", max_iter=10_000).fit(X, y)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).decision_function(X), model.decision_function(X))
    assert isinstance(model.expansion_, Expansion)


# --- stops, warnings, refusals -----------------------------------------------------------------------


def test_noise_ends_with_a_warning():
    X, y = [[1.0], [1.0], [2.0]], ["a", "b", "b"]
    text = "did not separate the two classes in max_iter=7 passes, and made . mistakes in the last: raise"
    with pytest.warns(ConvergenceWarning, match=text) as caught:
        model = Perceptron(max_iter=7).fit(X, y)
    assert caught[0].filename == __file__
    assert not model.converged_ and model.n_iter_ == 7 and math.isnan(model.bound_)
    assert model.report_.stopped == "max_iter" and len(model.report_.warnings) == 1
    with pytest.warns(ConvergenceWarning, match=r"did not separate 2 of 3 classes \('a', 'b'\)"):
        Perceptron(max_iter=7).fit([[0.0], [0.0], [9.0]], ["a", "b", "c"])


def test_interrupt_checkpoint_and_resume(rng, tmp_path):
    X, y = separable(rng, 200)
    y[::9] *= -1
    path = tmp_path / "state"
    with pytest.warns(ConvergenceWarning, match="did not separate"):
        whole = Perceptron(max_iter=30, shuffle=True, random_state=0).fit(X, y)

    def interrupt(event):
        if event["done"] == 2 * 200 + 128:
            os.kill(os.getpid(), signal.SIGINT)

    model = Perceptron(
        max_iter=30, shuffle=True, random_state=0, progress=interrupt, checkpoint=path, resume=True
    )
    with pytest.warns(ConvergenceWarning, match="was interrupted after 3 iterations, with"):
        model.fit(X, y)
    assert model.report_.stopped == "interrupted"
    assert model.predict(X).shape == y.shape
    with pytest.warns(ConvergenceWarning, match="did not separate"):
        model.set_params(progress=None).fit(X, y)
    assert np.array_equal(model.coef_, whole.coef_)
    assert model.mistake_indices_.tolist() == whole.mistake_indices_.tolist()


def test_max_time(rng):
    X, y = separable(rng, 200)
    y[::9] *= -1
    with pytest.warns(ConvergenceWarning, match=r"ran out of max_time=0.05 seconds after \d+ iterations"):
        model = Perceptron(max_iter=10**7, max_time=0.05).fit(X, y)
    assert 0 < model.n_iter_ < 10**7
    assert model.report_.stopped == "max_time"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"features": 3}, "features must be a function of a table or an object with transform, got 3"),
        ({"max_iter": 0}, "max_iter must be a whole number of at least 1, got 0"),
        ({"prediction": "best"}, "prediction must be one of 'last', 'averaged', 'voted', got 'best'"),
        ({"fit_intercept": "yes"}, "fit_intercept must be True or False, got 'yes'"),
        ({"max_time": -1}, "max_time must be positive, got -1"),
    ],
)
def test_refused_parameters(options, text):
    with pytest.raises(InputError, match=text):
        Perceptron(**options).fit([[0.0], [1.0]], [0, 1])


def test_refused_data():
    with pytest.raises(InputError, match="y must hold at least two classes, got one class, 1"):
        Perceptron().fit([[0.0], [1.0]], [1, 1])
    with pytest.raises(InputError, match="products with x = point 0 are not finite: rescale the data"):
        Perceptron(max_iter=5).fit([[1e200], [2e200]] * 40, [1, 0] * 40)
    with pytest.raises(MemoryBudgetError, match="Φ has 22,628,166,363,726 features; use fewer"):
        Perceptron(PolynomialMap(6, c=1.0)).fit(np.ones((30, 500)), np.arange(30) % 2)


def test_plan(rng):
    X, y = separable(rng)
    model = Perceptron(PolynomialMap(2, c=1.0), max_iter=10_000)
    plan = model.plan(X, y)
    assert "Φ has 15 features" in str(plan) and plan.iterative
    assert model.fit(X, y).report_.plan == plan


@pytest.mark.sample(4)
@pytest.mark.filterwarnings("ignore:the perceptron did not separate")
@pytest.mark.parametrize("learner", [Perceptron, KernelPerceptron])
@pytest.mark.parametrize("prediction", ["last", "averaged"])
def test_mistakes_without_end_keep_to_the_plan(rng, learner, prediction):
    """Noisy labels: more mistakes than the budget has room for. Their sums are all that is needed."""
    X, y = rng.normal(size=(300, 3)), rng.integers(0, 3, 300)
    options = {"max_iter": 30, "prediction": prediction}
    plain = learner(**options).fit(X, y)
    with config(memory="1.25MiB"):
        tracemalloc.start()
        model = learner(**options).fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert int(model.mistakes_.sum()) > 8_000
    assert peak < 1.1 * model.report_.memory + 3e5 and model.report_.memory < 1.25 * 2**20
    assert not hasattr(model, "mistake_indices_") and len(plain.mistake_indices_) == 3
    assert np.array_equal(model.mistakes_, plain.mistakes_)
    assert np.array_equal(model.decision_function(X), plain.decision_function(X))
    assert len(pickle.dumps(model)) < 2e5
    with (
        config(memory="1.25MiB"),
        pytest.raises(MemoryBudgetError, match="needs every mistake in order, got"),
    ):
        learner(max_iter=30, prediction="voted").fit(X, y)
    with pytest.raises(InputError, match="the training so far, with another prediction, did not keep"):
        model.set_params(prediction="voted").partial_fit(X, y)
