"""Newton's method on landmarks against the exact solver on K = ΦΦᵀ, whose minimum is the same."""

import numpy as np
import pytest

from mercer.errors import InputError
from mercer.losses import as_loss
from mercer.solvers.control import Control
from mercer.solvers.landmarks.newton import restricted_newton
from mercer.solvers.risk.certificate import WeightedRisk
from mercer.solvers.risk.logistic import LogisticRisk, SoftmaxRisk
from mercer.solvers.risk.newton import newton


@pytest.fixture
def data(rng):
    X = rng.normal(size=(150, 3))
    return X, X[:, 0] - X[:, 1] ** 2 + 0.5 * rng.normal(size=150)


def compare(features, Phi, risk, penalty, n_functions=None):
    """By its strong convexity, F is right to √(2 gap / λ) times a feature's length: 1e-11 gives 1e-4."""
    options = {"n_functions": n_functions, "tol": 1e-11}
    found = restricted_newton(features, risk, penalty, **options)
    exact = newton(Phi @ Phi.T, risk, penalty, fit_intercept=features.fit_intercept, **options)
    assert found.stopped == "converged"
    assert found.objective == pytest.approx(exact.objective, rel=1e-9)
    values = found.values[:, 0] if n_functions is None else found.values
    if n_functions:  # A number added to all functions changes nothing.
        values, exact_values = (F - F.mean(axis=1, keepdims=True) for F in (values, exact.values))
    else:
        exact_values = exact.values
    near = 1e-3 * np.sqrt(max(1.0, found.objective / penalty) * 1e-5)
    assert values == pytest.approx(exact_values, abs=max(near, 1e-6))
    assert found.objective - exact.objective <= found.gap + 1e-12 * found.objective
    return found


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("M", [1, 5, 20, 150])
@pytest.mark.parametrize("penalty", [1e-3, 1.0, 100.0])
def test_two_classes(rng, data, features_of, gaussian, M, penalty, fit_intercept):
    X, y = data
    features, Phi = features_of(gaussian(X, X[:M]), gaussian(X[:M], X[:M]), fit_intercept)
    weight = rng.choice([0.0, 1.0, 3.0], size=150)
    compare(features, Phi, LogisticRisk(np.where(y > 0, 1.0, -1.0), weight), penalty)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("M", [1, 12])
def test_several_classes(rng, data, features_of, gaussian, M, fit_intercept):
    X, y = data
    features, Phi = features_of(gaussian(X, X[:M]), gaussian(X[:M], X[:M]), fit_intercept)
    weight = rng.choice([0.0, 1.0, 3.0], size=150)
    compare(features, Phi, SoftmaxRisk(np.digitize(y, [-1.0, 0.5]), 3, weight), 0.1, 3)


@pytest.mark.parametrize(
    "loss", ["squared", "huber", "squared_hinge", "squared_epsilon_insensitive", "poisson"]
)
def test_every_smooth_loss(data, features_of, gaussian, loss):
    X, y = data
    y = {"squared_hinge": np.where(y > 0, 1.0, -1.0), "poisson": np.floor(np.abs(y))}.get(loss, y)
    features, Phi = features_of(gaussian(X, X[:9]), gaussian(X[:9], X[:9]))
    compare(features, Phi, WeightedRisk(as_loss(loss), y, np.ones(150)), 0.5)


def test_classes_that_come_one_after_the_other(data, features_of, gaussian):
    """Sorted by class: most blocks of rows hold one class alone."""
    X, y = data
    order = np.argsort(y)
    X, y = X[order], y[order]
    features, Phi = features_of(gaussian(X, X[::15]), gaussian(X[::15], X[::15]))
    compare(features, Phi, LogisticRisk(np.where(y > 0, 1.0, -1.0)), 0.1)


def test_a_start_near_the_end_saves_passes(data, features_of, gaussian):
    X, y = data
    features, _ = features_of(gaussian(X, X[:9]), gaussian(X[:9], X[:9]))
    risk = LogisticRisk(np.where(y > 0, 1.0, -1.0))
    first = restricted_newton(features, risk, 0.1, tol=1e-10)
    u, before = np.vstack([features.basis.T @ first.coef, first.intercept[None]]), features.passes
    again = restricted_newton(features, risk, 0.1, tol=1e-8, start=u)
    assert again.iterations == 0 and features.passes == before + 1  # and its certificate, of 90 of the rows
    assert again.coef == pytest.approx(first.coef, rel=1e-9)


def test_values_too_large_are_refused(data, features_of, gaussian):
    X, y = data
    features, _ = features_of(gaussian(X, X[:3]), gaussian(X[:3], X[:3]))
    with pytest.raises(InputError, match="not finite at the start: scale the data"):
        restricted_newton(features, WeightedRisk(as_loss("squared"), 1e200 * y, np.ones(150)), 1.0)


def test_penalties_below_rounding_end_by_themselves(data, features_of):
    """λ is 1e-18 of k: there is no digit left to converge to, and that is said, not that steps ran out."""
    X, y = data
    K = (1e3 * X @ (1e3 * X[:6]).T + 1) ** 3
    features, _ = features_of(K, K[:6])
    found = restricted_newton(features, WeightedRisk(as_loss("huber"), y, np.ones(150)), 1e-6)
    assert found.stopped in ("converged", "rounding") and found.iterations < 100


def test_float32_comes_as_far_as_its_digits(data, features_of, gaussian):
    X, y = data
    risk = LogisticRisk(np.where(y > 0, 1.0, -1.0))
    features, Phi = features_of(gaussian(X, X[:30]), gaussian(X[:30], X[:30]), True, "float32")
    found = restricted_newton(features, risk, 0.1, tol=1e-12)
    exact = newton(Phi @ Phi.T, risk, 0.1, tol=1e-12)
    assert found.objective == pytest.approx(exact.objective, rel=1e-5) and features.passes < 1000


@pytest.fixture
def many(rng):
    """Rows enough that a run on few landmarks starts from a sample, and that from another."""
    X = rng.normal(size=(1000, 3))
    return X, X[:, 0] - X[:, 1] ** 2 + 0.5 * rng.normal(size=1000)


@pytest.mark.sample(4)
@pytest.mark.parametrize("n_functions", [None, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_many_rows_start_from_a_sample(many, features_of, gaussian, n_functions, fit_intercept):
    X, y = many
    features, Phi = features_of(gaussian(X, X[:4]), gaussian(X[:4], X[:4]), fit_intercept)
    risk = (
        LogisticRisk(np.where(y > 0, 1.0, -1.0))
        if n_functions is None
        else SoftmaxRisk(np.digitize(y, [-1.0, 0.5]), 3)
    )
    compare(features, Phi, risk, 1e-2, n_functions)
    taken = []
    for start in (None, np.zeros((features.size, n_functions or 1))):
        before = features.passes
        restricted_newton(features, risk, 1e-2, n_functions=n_functions, tol=1e-6, start=start)
        taken.append(features.passes - before)
    assert taken[0] < taken[1]


def test_the_stated_gap_is_near_the_true_one(many, features_of, gaussian):
    """The sample has 80 of 1000 rows, and so much of the curvature; ‖∇J‖²/2λ knows of λ alone."""
    X, y = many
    features, Phi = features_of(gaussian(X, X[:4]), gaussian(X[:4], X[:4]))
    risk = LogisticRisk(np.where(y > 0, 1.0, -1.0))
    least = newton(Phi @ Phi.T, risk, 1e-2, tol=1e-14).objective
    found = restricted_newton(features, risk, 1e-2, tol=1e-6)
    true = found.objective - least
    assert 1e-11 * least < true <= found.gap <= 2 * (1000 / 80) * true
    gradient = features.adjoint(risk.gradient(found.values[:, 0])[:, None])[:4]
    gradient += 1e-2 * (features.basis.T @ found.coef)
    assert float((gradient**2).sum()) / (2 * 1e-2) > 2 * found.gap


@pytest.mark.sample(4)
@pytest.mark.parametrize("n_functions", [None, 3])
@pytest.mark.parametrize("rows", ["data", "many"])
def test_resumed_equals_uninterrupted(
    request, rows, features_of, gaussian, tmp_path, monkeypatch, n_functions
):
    """From every step (of many rows, some) that a checkpoint was made at, to the last bit, passes and all."""
    monkeypatch.setattr("mercer.solvers.control._EVERY", 0.0)
    X, y = request.getfixturevalue(rows)
    risk = (
        LogisticRisk(np.where(y > 0, 1.0, -1.0))
        if n_functions is None
        else SoftmaxRisk(np.digitize(y, [-1.0, 0.5]), 3)
    )

    def solve(most, **options):
        features, _ = features_of(gaussian(X, X[:4]), gaussian(X[:4], X[:4]))
        with Control("", **options) as control:
            return restricted_newton(
                features, risk, 1e-3, n_functions=n_functions, tol=1e-12, max_iter=most, control=control
            )

    whole = solve(100)
    assert whole.iterations > 1
    steps = range(1, whole.iterations)
    for most in steps if rows == "data" else {*steps[:2], steps[len(steps) // 2], steps[-1]}:
        path = tmp_path / f"{most}.npz"
        assert solve(most, checkpoint=path).stopped == "max_iter"
        rest = solve(100, checkpoint=path, resume=True)
        assert np.array_equal(rest.coef, whole.coef) and np.array_equal(rest.intercept, whole.intercept)
        assert (rest.gap, rest.iterations, rest.passes) == (whole.gap, whole.iterations, whole.passes)


def test_losses_that_are_straight_where_the_run_starts(data, features_of, gaussian):
    """Huber's loss of large targets has no curvature at 0: steps of -g/λ say nothing, λ being 1e-8."""
    X, y = data
    features, Phi = features_of(gaussian(X, X[:6]), gaussian(X[:6], X[:6]))
    risk = WeightedRisk(as_loss("huber"), 500.0 * y, np.ones(150))
    found = restricted_newton(features, risk, 1e-8, tol=1e-8)
    exact = newton(Phi @ Phi.T, risk, 1e-8, tol=1e-8)
    assert found.stopped == "converged" and found.objective == pytest.approx(exact.objective, rel=1e-7)
