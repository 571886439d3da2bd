"""Gradient descent: where Newton's method ends, at the rate the theory says, with the same certificate."""

import numpy as np
import pytest

from mercer import Gaussian, Gram
from mercer.solvers import control as control_module
from mercer.solvers.control import Control
from mercer.solvers.result import Stop
from mercer.solvers.risk.descent import descend
from mercer.solvers.risk.logistic import LogisticRisk, SoftmaxRisk
from mercer.solvers.risk.newton import newton


@pytest.fixture
def problem(rng):
    X = rng.normal(size=(50, 2))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=50) > 0, 1.0, -1.0)
    return Gaussian(sigma=1.0)(X), y


class Squares:
    """½ Σ (F - y)², without a bound of its curvature."""

    def __init__(self, y):
        self.y = y

    def value(self, F):
        return float(((F - self.y) ** 2).sum()) / 2

    def gradient(self, F):
        return F - self.y

    def curvature(self, F):
        return np.ones_like(F)


@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_it_ends_where_newton_does(problem, accelerate, fit_intercept):
    K, y = problem
    codes = (y > 0).astype(int) + (K[0] > 0.5)
    for risk, m in ((LogisticRisk(y), None), (Squares(y), None), (SoftmaxRisk(codes, 3), 3)):
        options = {"n_functions": m, "fit_intercept": fit_intercept, "tol": 1e-8}
        slow, fast = descend(K, risk, 0.5, accelerate=accelerate, **options), newton(K, risk, 0.5, **options)
        assert slow.stopped == "converged"
        assert slow.gap <= 1e-8 * slow.objective
        # both gaps are certified
        assert abs(slow.objective - fast.objective) <= 1.01e-8 * fast.objective
        assert slow.values == pytest.approx(K @ slow.coef + slow.intercept)
        assert slow.products >= slow.iterations > fast.iterations


def test_the_update_is_that_of_the_lecture(problem):
    K, y = problem
    risk, eta, penalty = LogisticRisk(y), 1e-3, 0.5
    start = np.zeros(50), np.zeros(())
    result = descend(K, risk, penalty, step_size=eta, max_iter=7, fit_intercept=False, start=start)
    alpha = np.zeros(50)
    for _ in range(7):
        alpha = alpha - eta * (penalty * alpha + risk.gradient(K @ alpha))
    assert result.stopped == "max_iter" and result.iterations == 7
    assert result.coef == pytest.approx(alpha, rel=1e-10)


def test_acceleration_pays(problem):
    K, y = problem
    plain = descend(K, LogisticRisk(y), 0.02, tol=1e-6)
    fast = descend(K, LogisticRisk(y), 0.02, tol=1e-6, accelerate=True)
    assert plain.stopped == fast.stopped == "converged"
    assert fast.iterations < plain.iterations / 3


@pytest.mark.parametrize("accelerate", [False, True])
def test_a_step_too_large_is_halved(problem, accelerate):
    K, y = problem
    result = descend(K, LogisticRisk(y), 0.5, step_size=1e6, accelerate=accelerate)
    assert result.stopped == "converged"


def test_the_certificate_holds_on_the_way(problem):
    K, y = problem
    best = newton(K, LogisticRisk(y), 0.1, tol=1e-14).objective
    last = np.inf
    for steps in (0, 1, 5, 20, 100):
        result = descend(K, LogisticRisk(y), 0.1, max_iter=steps, tol=1e-12)
        assert best - 1e-12 <= result.objective <= best + result.gap
        assert result.objective <= last
        last = result.objective


def test_lazy_and_float32(problem, rng):
    K, y = problem
    result = descend(K.astype(np.float32), LogisticRisk(y), 0.5, tol=1e-16, accelerate=True)
    assert result.stopped == "converged" and result.rounded
    assert result.objective == pytest.approx(newton(K, LogisticRisk(y), 0.5).objective, rel=1e-5)
    gram = Gram(Gaussian(sigma=1.0), rng.normal(size=(50, 2)))
    assert descend(gram, LogisticRisk(y), 0.5).stopped == "converged"


def test_nothing_to_learn():
    result = descend(np.zeros((4, 4)), LogisticRisk(np.array([1.0, 1.0, -1.0, 1.0])), 1.0)
    assert result.stopped == "converged" and result.iterations == 0
    assert result.intercept == pytest.approx(np.log(3))


@pytest.mark.sample(2)
@pytest.mark.parametrize("accelerate", [False, True])
def test_a_stopped_run_resumes(problem, tmp_path, monkeypatch, accelerate):
    monkeypatch.setattr(control_module, "_EVERY", 0)
    K, y = problem
    options = {"tol": 1e-8, "accelerate": accelerate}
    whole = descend(K, LogisticRisk(y), 0.1, **options)
    path = tmp_path / "state.npz"
    for limit in (13, 40, 10_000):
        with Control("gradient", checkpoint=path, resume=True) as control:
            part = descend(K, LogisticRisk(y), 0.1, max_iter=limit, control=control, **options)
    assert np.array_equal(part.coef, whole.coef) and part.intercept == whole.intercept
    assert part.iterations == whole.iterations and np.array_equal(part.history, whole.history)
    with Control("gradient", max_time=1e-9) as control:
        assert descend(K, LogisticRisk(y), 0.1, control=control).stopped == "max_time"


def test_between_two_looks_at_the_gap_who_is_done_has_converged(problem):
    class OverAfter(Control):
        most = 0

        @property
        def stopped(self):
            return Stop.MAX_TIME if self.iterations >= self.most else None

    K, y = problem
    ended = []
    for OverAfter.most in range(0, 400, 7):
        result = descend(K, LogisticRisk(y), 0.5, tol=1e-3, control=OverAfter())
        assert (result.stopped == "converged") == (result.gap <= 1e-3 * abs(result.objective))
        ended.append(result.stopped)
    assert set(ended) == {"converged", "max_time"}
