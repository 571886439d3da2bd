"""What support vector machines share: fits that stay as they are, messages, control, memory."""

import os
import signal
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning

from mercer import SVC, SVR, Gaussian, Linear, NuSVC, NuSVR, config
from mercer.errors import InputError
from mercer.estimators import svc
from mercer.solvers.result import Stop
from mercer.solvers.svm import calibration
from mercer.solvers.svm.problems import fit


@pytest.fixture
def iris():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    names = np.array(["setosa", "versicolor", "virginica"])
    return X[order], names[y[order]]


@pytest.fixture
def moons():
    return make_moons(200, noise=0.3, random_state=0)


def matrix_kernel(A, B):
    return np.dot(A, np.transpose(B))


class StopAfter:
    """A callback that asks to stop, as Ctrl-C would, after some rounds."""

    def __init__(self, rounds):
        self.left = rounds

    def __call__(self, event):
        self.left -= "violation" in event["facts"]
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def hard_work(rng):
    X = rng.normal(size=(900, 4))
    return X, (X[:, 0] + rng.normal(size=900) > 0).astype(int)


# --- a fitted model stays as it is ------------------------------------------------------------------------


def test_parameters_set_after_a_fit_do_not_reach_it(iris, moons):
    X, y = iris
    for kind in ("ovo", "ovr"):
        model = SVC(multi_class=kind, kernel="linear", probability=True, C=0.01).fit(X, y)
        before = model.predict(X), model.decision_function(X), model.predict_proba(X), model.coef_
        model.set_params(multi_class="ovr" if kind == "ovo" else "ovo", kernel="rbf", C=7.0, gamma=3.0)
        after = model.predict(X), model.decision_function(X), model.predict_proba(X), model.coef_
        for a, b in zip(before, after, strict=True):
            assert np.array_equal(a, b)
    X, y = moons
    model = SVC(kernel=matrix_kernel).fit(X, y)
    before = model.decision_function(X)
    assert np.array_equal(model.set_params(kernel="rbf").decision_function(X), before)
    assert model.fit(X, y).decision_function(X) != pytest.approx(before, abs=1e-3)


def test_ties_of_one_against_the_rest(iris):
    X, y = iris
    model = SVC(multi_class="ovr", decision_function_shape="ovo", break_ties=True).fit(X, y)
    assert model.decision_function(X).shape == (150, 3)  # classes: there are no pairs
    assert np.array_equal(model.predict(X), model.classes_[model.decision_function(X).argmax(axis=1)])
    with pytest.raises(InputError, match="break_ties must be False when decision_function_shape is 'ovo'"):
        model.set_params(multi_class="ovo").fit(X, y).predict(X)


def test_weights_of_linear_kernels(moons):
    X, y = moons
    assert np.array_equal(SVC(kernel=Linear()).fit(X, y).coef_, SVC(kernel="linear").fit(X, y).coef_)
    for model in (SVC(kernel=Gaussian(1.0)).fit(X, y), SVC(), SVC(kernel=matrix_kernel).fit(X, y)):
        with pytest.raises(AttributeError, match="coef_ is only available when using a linear kernel"):
            _ = model.coef_


def test_balanced_weights_are_those_that_were_used(rng):
    X, y, weight = rng.normal(size=(60, 2)), np.repeat(["a", "b", "c"], [10, 20, 30]), np.ones(60)
    weight[y == "a"] = 3.0
    model = SVC(class_weight="balanced").fit(X, y, weight)
    # Σw / (classes · Σw of the class), Σw = 30 + 20 + 30
    assert model.class_weight_ == pytest.approx([80 / 90, 80 / 60, 80 / 90])


# --- what is said -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "poly", "coef0": "a"}, "coef0 must be non-negative, got 'a'"),
        ({"kernel": "poly", "coef0": -1}, "coef0 must be non-negative, got -1: pass a number that is zero"),
        ({"kernel": "sigmoid", "coef0": "a"}, "coef0 must be a finite number, got 'a'"),
        ({"kernel": "sigmoid", "coef0": np.nan}, "coef0 must be a finite number, got nan"),
        ({"kernel": "poly", "degree": 0}, "degree must be a whole number of at least 1, got 0"),
        ({"kernel": "rbf", "gamma": 0}, "gamma must be positive, got 0"),
        ({"kernel": "poly", "gamma": 0.0}, "gamma must be positive, got 0.0"),
    ],
)
def test_parameters_of_kernels_have_the_names_of_scikit_learn(options, message, moons):
    with pytest.raises(InputError, match=message):
        SVC(**options).fit(*moons)


def test_a_path_needs_several_penalties_and_a_cache_may_be_endless(moons):
    with pytest.raises(InputError, match=r"Cs must hold the values of C to fit for, got 1.0: pass a list"):
        SVC().path(*moons, 1.0)
    model, peer = SVC(cache_size=float("inf")).fit(*moons), SVC().fit(*moons)
    assert model.report_.memory == peer.report_.memory


def test_advice_is_about_support_vector_machines(moons, monkeypatch):
    X, y = moons
    with pytest.warns(ConvergenceWarning, match=r"so far; Solver terminated early \(max_iter=3\)") as caught:
        SVC(max_iter=3).fit(X, y)
    assert str(caught[0].message).endswith("MinMaxScaler, or pass a smaller C, or raise max_iter")

    def ended(stopped):
        def solve(*args, **options):
            return [
                replace(machine, stopped=Stop(stopped), iterations=10**7) for machine in fit(*args, **options)
            ]

        return solve

    for stopped, advice in (
        ("max_iter", r"Solver terminated early \(10,000,000 steps\)\..* MinMaxScaler, or pass a smaller C$"),
        ("rounding", "ended by rounding .*; scale the data, or pass a smaller C or a larger tol$"),
    ):
        monkeypatch.setattr(svc, "fit", ended(stopped))
        with pytest.warns(ConvergenceWarning, match=advice):
            SVC().fit(X, y)
    with pytest.warns(ConvergenceWarning, match="pass a larger nu or a larger tol$"):
        NuSVC().fit(X, y)


# --- hard margins and probabilities under control -------------------------------------------------------


class Raise:
    """A callback that asks to stop after some stages of a hard margin."""

    def __init__(self, stages):
        self.left = stages

    def __call__(self, event):
        self.left -= "C" in event["facts"]
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("stages", [1, 2, None])
def test_a_hard_margin_is_resumed(stages, tmp_path):
    X = np.array([[0.0, 1.0], [0.0, -1.0], [1e-2, 0.0], [0.0, 0.0], [5.0, 5.0]])
    y = ["a", "b", "a", "b", "far"]  # a pair that takes three stages, and two that take one
    options = {"C": np.inf, "kernel": Gaussian(1.0), "checkpoint": tmp_path / "state.npz"}
    whole = SVC(**options).fit(X, y)
    assert whole.report_.iterations == whole.n_iter_.sum() and (whole.n_iter_ > 0).all()
    (tmp_path / "state.npz").unlink()
    if stages is not None:
        with pytest.warns(ConvergenceWarning, match="was interrupted"):
            SVC(progress=Raise(stages), **options).fit(X, y)
    for _ in range(2):  # the second goes on from the end
        model = SVC(resume=True, **options).fit(X, y)
        assert np.array_equal(model.dual_coef_, whole.dual_coef_)
        assert np.array_equal(model.intercept_, whole.intercept_)
        assert np.array_equal(model.n_iter_, whole.n_iter_) and model.report_.converged
        assert np.array_equal(model.margin_, whole.margin_)


def test_probabilities_when_there_is_no_time(hard_work):
    X, y = hard_work
    model = SVC(C=10.0, probability=True, progress=StopAfter(1))
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y)
    said = [str(each.message) for each in caught]
    assert len(said) == 2 and "of 1 problems are from values of f at the training points" in said[0]
    assert set(model.report_.warnings) == set(said) and model.report_.stopped == "interrupted"
    assert np.array_equal(model.classes_[model.predict_proba(X).argmax(axis=1)], model.predict(X))


def test_ctrl_c_while_probabilities_are_computed(iris, monkeypatch):
    """The fit is there, with slopes of the first pair from values left out."""
    X, y = iris
    whole = SVC(probability=True).fit(X, y)
    left_out, calls = calibration.left_out, []

    def slow(*args, **options):
        calls.append(0)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return left_out(*args, **options)

    monkeypatch.setattr(calibration, "left_out", slow)
    with pytest.warns(ConvergenceWarning, match="probabilities of 2 of 3 problems are from values of f at"):
        model = SVC(probability=True).fit(X, y)
    assert np.array_equal(model.slopes_[0], whole.slopes_[0]) and (model.slopes_[1:] > 0).all()
    assert model.report_.converged and np.array_equal(model.dual_coef_, whole.dual_coef_)


def test_labels_that_changed_are_a_warm_start(rng):
    """One of a hundred, three times: the sum of the steps, since one fit may be lucky."""
    steps = np.zeros(2)
    for _ in range(3):
        X = rng.normal(size=(1000, 3))
        y = (X[:, 0] + 0.5 * rng.normal(size=1000) > 0).astype(int)
        other = y.copy()
        other[rng.choice(1000, 10, replace=False)] ^= 1
        model, cold = SVC(warm_start=True).fit(X, y).fit(X, other), SVC().fit(X, other)
        steps += model.n_iter_[0], cold.n_iter_[0]
        assert model.report_.objective == pytest.approx(cold.report_.objective, rel=1e-3)
    assert steps[0] < 0.9 * steps[1]


def test_a_small_budget_limits_the_working_sets(rng):
    X = rng.normal(size=(3000, 5))
    y = (X[:, 0] + 2 * rng.normal(size=3000) > 0).astype(int)
    for model in (SVC(C=1.0), SVC(C=1.0, probability=True), NuSVC(nu=0.8)):
        with config(memory="16MiB"):
            small = model.plan(X, y)
            assert small.memory <= 2**24
        assert small.memory < model.plan(X, y).memory
    with config(memory="16MiB"):
        a = SVC(gamma=0.2).fit(X, y)
    # both are above the minimum by their gaps at most
    b = SVC(gamma=0.2).fit(X, y)
    assert abs(a.report_.objective - b.report_.objective) <= 1.01 * (a.dual_gap_ + b.dual_gap_)


def test_a_warm_start_at_the_bounds_has_the_right_intercept(rng):
    """All γ end at a bound: one that rounding left a hair inside must not decide b alone."""
    X, y = rng.normal(size=(600, 3)), np.arange(500) % 2
    warm = SVC(warm_start=True, tol=1e-6).fit(X[:500], y)
    warm.set_params(C=0.01).fit(X[100:], y)
    cold = SVC(C=0.01, tol=1e-6).fit(X[100:], y)
    assert warm.intercept_ == pytest.approx(cold.intercept_, abs=1e-5)


@pytest.mark.parametrize("scale", [1e-20, 1e-30, 1e-150])
def test_what_float32_cannot_hold_is_computed_in_float64(scale, rng):
    X = scale * rng.normal(size=(1100, 3))
    model = SVC().fit(X, X[:, 0] > 0)
    assert model.score(X, X[:, 0] > 0) > 0.97
    assert any("float64" in why for why in model.report_.plan.why)


@pytest.mark.parametrize("kind", [SVR, NuSVR])
def test_targets_far_from_zero(kind, rng):
    """Only b knows where the targets are, to the rounding of the targets themselves."""
    X = rng.normal(size=(300, 2))
    y, far = np.sin(X[:, 0]), 1e9
    near, there = kind(tol=1e-4).fit(X, y), kind(tol=1e-4).fit(X, y + far)
    assert there.report_.stopped == "converged"
    assert there.predict(X) - far == pytest.approx(near.predict(X), abs=1e-3)


def test_a_nu_without_margin_is_said_to_be_one(rng):
    X = np.repeat(rng.normal(size=(10, 2)), 2, axis=0)
    with pytest.warns(ConvergenceWarning, match="found no margin: nu=0.5"):
        NuSVC().fit(X, np.arange(20) % 2)
