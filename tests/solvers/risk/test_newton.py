"""Newton's method: closed forms, certificates that hold, kinks, and matrices at the edge."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit

from mercer import Gaussian, Gram, config
from mercer.errors import InputError
from mercer.solvers.control import Control
from mercer.solvers.risk.logistic import LogisticRisk, SoftmaxRisk, log_softmax, softmax
from mercer.solvers.risk.newton import newton
from mercer.solvers.risk.objective import best_intercept


class Pointwise:
    """Σ w L(F) from the loss, its derivative and its second derivative."""

    def __init__(self, loss, slope, bend):
        self.parts = loss, slope, bend

    def value(self, F):
        return float(self.parts[0](F).sum())

    def gradient(self, F):
        return self.parts[1](F)

    def curvature(self, F):
        return self.parts[2](F)


def squares(y, w=1.0):
    return Pointwise(lambda F: w * (F - y) ** 2 / 2, lambda F: w * (F - y), lambda F: w + 0 * F)


def squared_hinge(y):
    def slack(F):
        return np.maximum(1 - y * F, 0)

    return Pointwise(lambda F: slack(F) ** 2, lambda F: -2 * y * slack(F), lambda F: 2.0 * (slack(F) > 0))


def huber(y, d):
    """½r² up to |r| = d, then a straight line."""

    def loss(F):
        r = np.abs(F - y)
        return np.where(r <= d, r * r / 2, d * r - d * d / 2)

    return Pointwise(loss, lambda F: np.clip(F - y, -d, d), lambda F: (np.abs(F - y) < d).astype(float))


def poisson(y):
    return Pointwise(lambda F: np.exp(F) - y * F, lambda F: np.exp(F) - y, np.exp)


class Lazy:
    """K by its products alone."""

    def __init__(self, K):
        self.K, self.shape, self.dtype = K, K.shape, K.dtype

    def __matmul__(self, V):
        return self.K @ V


@pytest.fixture
def problem(rng):
    X = rng.normal(size=(60, 2))
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=60) > 0.3, 1.0, -1.0)
    return Gaussian(sigma=1.0)(X), y


def objective(K, risk, penalty, coef, b):
    return risk.value(K @ coef + b) + penalty / 2 * np.sum(coef * (K @ coef))


def smallest(K, risk, penalty, fit_intercept=True):
    """min J by scipy, in the coordinates u of f = Σ uⱼ √λⱼ vⱼ, where ‖f‖² = ‖u‖²."""
    values, vectors = np.linalg.eigh(K)
    L = vectors * np.sqrt(np.maximum(values, 0))

    def value(x):
        F = L @ x[:-1] + x[-1] * fit_intercept
        g = risk.gradient(F)
        J = risk.value(F) + penalty / 2 * x[:-1] @ x[:-1]
        return J, np.append(penalty * x[:-1] + L.T @ g, g.sum() * fit_intercept)

    options = {"maxiter": 5000, "maxfun": 20_000, "ftol": 1e-16, "gtol": 1e-9}
    return minimize(value, np.zeros(len(K) + 1), jac=True, method="L-BFGS-B", options=options).fun


# --- truths ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("penalty", [1e-3, 1.0, 1e3])
def test_squares_are_ridge_regression(problem, rng, penalty, lazy):
    K, _ = problem
    y, w = rng.normal(size=60), rng.uniform(0.5, 2, 60)
    result = newton(Lazy(K) if lazy else K, squares(y, w), penalty, fit_intercept=False, tol=1e-14)
    exact = np.linalg.solve(K + np.diag(penalty / w), y)
    assert result.values == pytest.approx(K @ exact, abs=1e-6)
    assert result.stopped == "converged"
    if not lazy:  # quadratic: one step
        assert result.iterations <= 2
        assert result.coef == pytest.approx(exact, rel=1e-6, abs=1e-8)
    # with b: the bordered system [[K + λ/W, 1], [1ᵀ, 0]] (α, b) = (y, 0)
    border = np.block([[K + np.diag(penalty / w), np.ones((60, 1))], [np.ones((1, 60)), np.zeros((1, 1))]])
    exact = np.linalg.solve(border, np.append(y, 0.0))
    result = newton(Lazy(K) if lazy else K, squares(y, w), penalty, tol=1e-14)
    assert result.values == pytest.approx(K @ exact[:-1] + exact[-1], abs=1e-6)
    assert result.intercept == pytest.approx(exact[-1], abs=1e-6)


@pytest.mark.sample(7)
@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("penalty", [1e-4, 1e-2, 1.0, 1e2])
@pytest.mark.parametrize(
    "make",
    [
        LogisticRisk,
        squared_hinge,
        lambda y: huber(y, 0.1),
        lambda y: huber(y, 1e-3),
        lambda y: poisson(y + 1),
    ],
)
def test_losses_against_scipy(problem, make, penalty, lazy):
    K, y = problem
    risk = make(y)
    for fit_intercept in (True, False):
        result = newton(Lazy(K) if lazy else K, risk, penalty, fit_intercept=fit_intercept)
        assert result.stopped == "converged" and not result.rounded
        assert result.gap <= 1e-8 * abs(result.objective)
        J = smallest(K, risk, penalty, fit_intercept)
        # scipy stops a little above the minimum
        assert result.objective <= J + 1e-8 * abs(J)
        assert result.objective == pytest.approx(J, rel=2e-5)
        assert result.objective == pytest.approx(objective(K, risk, penalty, result.coef, result.intercept))
        assert result.values == pytest.approx(K @ result.coef + result.intercept)


def test_two_classes_of_the_softmax_are_logistic(problem):
    K, y = problem
    two = newton(K, SoftmaxRisk((y > 0).astype(int), 2), 0.1, n_functions=2, tol=1e-12)
    one = newton(K, LogisticRisk(y), 0.05, tol=1e-12)  # f = f₁ - f₀ with ½(‖f₀‖² + ‖f₁‖²) = ¼‖f‖²
    assert two.values[:, 1] - two.values[:, 0] == pytest.approx(one.values, abs=1e-5)
    assert two.intercept.shape == (2,) and two.coef.shape == (60, 2)


@pytest.mark.parametrize("penalty", [1e-3, 1.0])
def test_gradient_of_the_softmax_vanishes(problem, rng, penalty):
    K, _ = problem
    risk = SoftmaxRisk(rng.integers(4, size=60), 4, rng.uniform(0.5, 2, 60))
    result = newton(K, risk, penalty, n_functions=4, tol=1e-13)
    gradient = risk.gradient(result.values)
    assert np.abs(gradient.sum(axis=0)).max() < 1e-12
    assert np.abs(K @ (penalty * result.coef + gradient)).max() < 1e-4


def test_several_functions_of_a_separable_risk_are_those_alone(problem, rng):
    K, _ = problem
    Y = rng.normal(size=(60, 3))

    class Columns:
        value = staticmethod(lambda F: float(np.sum((F - Y) ** 2)) / 2)
        gradient = staticmethod(lambda F: F - Y)
        curvature = staticmethod(lambda F: lambda V: V)

    together = newton(K, Columns(), 0.1, n_functions=3, tol=1e-13)
    for c in range(3):
        assert together.values[:, c] == pytest.approx(newton(K, squares(Y[:, c]), 0.1).values, abs=1e-5)


# --- certificates and starts -------------------------------------------------------------------------


@pytest.mark.parametrize("make", [LogisticRisk, squared_hinge])
@pytest.mark.parametrize("penalty", [1e-3, 1.0])
def test_the_gap_holds_on_the_way(problem, make, penalty):
    K, y = problem
    risk = make(y)
    best = newton(K, risk, penalty, tol=1e-14)
    last = math.inf
    for steps in range(8):
        result = newton(K, risk, penalty, max_iter=steps, tol=1e-14)
        assert result.objective - best.objective <= result.gap * (1 + 1e-9) + 1e-12 * best.objective
        assert result.objective <= last + 1e-12 * best.objective
        assert len(result.history) == result.iterations + 1
        last = result.objective
        if result.iterations < steps:
            break
        assert result.stopped in ("max_iter", "converged")


@given(st.integers(0, 2**32 - 1), st.floats(-4, 3), st.booleans())
def test_the_minimum_is_below_any_other_function(seed, log_penalty, fit_intercept):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    A = rng.normal(size=(n, int(rng.integers(1, 6))))
    K, y, penalty = A @ A.T, rng.choice([-1.0, 1.0], n), 10.0**log_penalty
    risk = LogisticRisk(y, rng.uniform(0, 2, n) * (rng.random(n) < 0.8))
    result = newton(K, risk, penalty, fit_intercept=fit_intercept)
    assert result.stopped == "converged"
    assert np.isfinite(result.coef).all() and np.isfinite(result.gap)
    for size in (1e-3, 1.0):
        coef = result.coef + size * rng.normal(size=n)
        b = result.intercept + size * rng.normal() * fit_intercept
        assert (
            objective(K, risk, penalty, coef, b) >= result.objective - result.gap - 1e-12 * result.objective
        )


def test_start(problem):
    K, y = problem
    cold = newton(K, LogisticRisk(y), 0.01, tol=1e-12)
    warm = newton(K, LogisticRisk(y), 0.01, tol=1e-10, start=(cold.coef, cold.intercept))
    assert warm.iterations == 0 and np.array_equal(warm.coef, cold.coef)
    near = newton(K, LogisticRisk(y), 0.011, start=(cold.coef, cold.intercept))
    assert 0 < near.iterations < cold.iterations
    with pytest.raises(InputError, match=r"start must hold coefficients of shape \(60,\)"):
        newton(K, LogisticRisk(y), 1.0, start=(np.zeros(3), 0.0))
    several = newton(
        K, SoftmaxRisk((y > 0).astype(int), 2), 1.0, n_functions=2, start=(np.zeros((60, 2)), 0.0)
    )
    assert several.stopped == "converged"


@pytest.mark.parametrize("penalty", [-1.0, 0.0, math.nan, math.inf])
def test_refused_penalties(problem, penalty):
    with pytest.raises(InputError, match="penalty must be positive, got"):
        newton(problem[0], LogisticRisk(problem[1]), penalty)


# --- larger systems: which method --------------------------------------------------------------------


def test_large_systems_try_conjugate_gradients_first(rng):
    X = rng.normal(size=(700, 2))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=700) > 0, 1.0, -1.0)
    K = Gaussian(sigma=1.0)(X)
    for penalty in (100.0, 1e-3):  # easy, and too hard for a few products
        direct = newton(K, LogisticRisk(y), penalty, direct=True, tol=1e-10)
        lazy = newton(Gram(Gaussian(sigma=1.0), X), LogisticRisk(y), penalty, tol=1e-10)
        assert direct.stopped == lazy.stopped == "converged"
        assert direct.objective == pytest.approx(lazy.objective, rel=1e-9)
        assert direct.products < lazy.products or penalty > 1
    assert direct.products < 6 * (direct.iterations + 2)


def test_factorisations_need_room(problem):
    K, y = problem
    with config(memory=K.nbytes + 1000):
        tight = newton(K, LogisticRisk(y), 0.01)
    assert tight.products > newton(K, LogisticRisk(y), 0.01).products


# --- matrices at the edge ----------------------------------------------------------------------------


@pytest.mark.parametrize("n_functions", [None, 2])
def test_no_kernel_at_all(n_functions):
    y = np.array([1.0, 1.0, 1.0, -1.0])
    risk = LogisticRisk(y) if n_functions is None else SoftmaxRisk((y > 0).astype(int), 2)
    result = newton(np.zeros((4, 4)), risk, 1.0, n_functions=n_functions)
    assert result.stopped == "converged" and result.gap == 0
    assert np.diff(np.append(0, np.ravel(result.intercept))[-2:])[0] == pytest.approx(math.log(3))


def test_singular_matrices(rng):
    X = np.repeat(rng.normal(size=(10, 2)), 5, axis=0)
    y = rng.choice([-1.0, 1.0], 50)
    for K in (X @ X.T, np.ones((50, 50)), Gaussian(sigma=1.0)(X)):
        for K_ in (K, Lazy(K)):
            result = newton(K_, LogisticRisk(y), 1e-3)
            assert result.stopped == "converged"
            assert result.gap <= 1e-8 * result.objective


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("penalty", [1e-12, 1e-8, 1e8, 1e12])
def test_extreme_penalties_end(problem, penalty, lazy):
    K, y = problem
    result = newton(Lazy(K) if lazy else K, LogisticRisk(y), penalty)
    assert result.stopped in ("converged", "max_iter")
    assert np.isfinite(result.values).all() and np.isfinite(result.gap)
    if penalty < 1:
        assert (np.sign(result.values) == y).all()
    else:
        assert expit(result.intercept) == pytest.approx((y > 0).mean(), abs=1e-6)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_scales_of_the_kernel_and_of_the_targets(problem, rng, scale):
    K, y = problem
    result, scaled = newton(K, LogisticRisk(y), 0.1), newton(scale * K, LogisticRisk(y), 0.1 * scale)
    assert scaled.values == pytest.approx(result.values, abs=1e-4)
    targets = rng.normal(size=60)
    result, scaled = newton(K, squares(targets), 0.1), newton(K, squares(scale * targets), 0.1)
    assert scaled.values / scale == pytest.approx(result.values, abs=1e-4)


def test_separable_data_and_hardly_a_penalty():
    x = np.linspace(-1, 1, 20)
    y = np.where(x > 0, 1.0, -1.0)
    result = newton(np.outer(x, x), LogisticRisk(y), 1e-6)
    assert result.stopped == "converged"
    assert (result.values * y > 5).all()


def test_float32(problem):
    K, y = problem
    exact = newton(K, LogisticRisk(y), 0.1)
    for K_ in (K.astype(np.float32), Lazy(K.astype(np.float32))):
        result = newton(K_, LogisticRisk(y), 0.1, tol=1e-15)
        assert result.stopped == "converged" and result.rounded
        assert result.gap <= 1e-5 * result.objective
        assert result.objective == pytest.approx(exact.objective, rel=1e-5)
        assert result.coef.dtype == np.float64


def test_rounding_is_not_mistaken_for_convergence(problem):
    K, y = problem
    result = newton(K, LogisticRisk(y), 0.1, tol=1e-40)
    assert result.stopped == "converged" and result.rounded
    assert 0 < result.gap < 1e-12 * result.objective
    assert result.iterations < 30


@pytest.mark.parametrize("lazy", [False, True])
def test_indefinite_matrices_are_refused(problem, lazy):
    K, y = problem
    values, vectors = np.linalg.eigh(K)
    bad = vectors @ np.diag(np.where(np.arange(60) % 2, values, -0.3)) @ vectors.T
    with pytest.raises(InputError, match="the kernel matrix is not positive semi-definite"):
        newton(Lazy(bad) if lazy else bad, LogisticRisk(y), 1e-3)
    # but what a float32 matrix has of it passes
    rounded = K.astype(np.float32).astype(np.float64)
    assert np.linalg.eigvalsh(rounded)[0] < 0
    result = newton(Lazy(rounded) if lazy else rounded, LogisticRisk(y), 1e-3)
    assert result.objective == pytest.approx(newton(K, LogisticRisk(y), 1e-3).objective, rel=1e-4)


def test_values_that_are_not_finite_are_refused(problem):
    K, y = problem
    K = K.copy()
    K[3, 4] = np.nan
    with pytest.raises(InputError, match="a product with the kernel matrix is not finite"):
        newton(K, LogisticRisk(y), 1.0)


# --- the intercept -----------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.floats(-8, 8), st.floats(-1e3, 1e3))
def test_the_best_intercept(seed, log_scale, guess):
    rng = np.random.default_rng(seed)
    scale = 10.0**log_scale
    y, F = rng.choice([-1.0, 1.0], 9), scale * rng.normal(size=9)
    y[:2] = 1.0, -1.0
    for risk in (LogisticRisk(y), squares(scale * rng.normal(size=9)), squared_hinge(y)):
        b = best_intercept(risk, F, guess)
        gradient = risk.gradient(F + b)
        rounding = 1e-15 * (np.abs(F).max() + abs(b)) * risk.curvature(F + b).sum()
        assert abs(gradient.sum()) <= 1e-14 * np.abs(gradient).sum() + 10 * rounding + 1e-300
    softmax_risk = SoftmaxRisk(np.arange(9) % 3, 3)
    G = min(scale, 30.0) * rng.normal(size=(9, 3))  # beyond a few hundred R is a polyhedron, to rounding
    b = best_intercept(softmax_risk, G, np.zeros(3))
    gradient = softmax_risk.gradient(G + b)
    assert np.abs(gradient.sum(axis=0)).max() <= 1e-12 * max(1.0, np.abs(G).max())


def test_an_intercept_that_does_not_exist_ends():
    b = best_intercept(LogisticRisk(np.ones(5)), np.zeros(5), 0.0)
    assert 30 < b < 1000
    assert 30 < -best_intercept(poisson(np.zeros(5)), np.zeros(5), 0.0) < 1000
    b = best_intercept(SoftmaxRisk(np.array([0, 0, 1]), 3), np.zeros((3, 3)), np.zeros(3))
    assert softmax(b[None])[0] == pytest.approx([2 / 3, 1 / 3, 0])
    line = Pointwise(lambda F: F, np.ones_like, np.zeros_like)  # falls for ever
    assert np.isfinite(best_intercept(line, np.zeros(3), 0.0))
    result = newton(np.eye(5), LogisticRisk(np.ones(5)), 1.0)
    assert result.stopped == "converged" and np.abs(result.coef).max() < 1e-12


def test_a_best_intercept_that_is_not_found_leaves_no_certificate(monkeypatch):
    monkeypatch.setattr("mercer.solvers.risk.objective._best_shifts", lambda risk, G, b: b)
    risk = SoftmaxRisk(np.array([0, 0, 1]), 2)
    result = newton(np.zeros((3, 3)), risk, 1.0, n_functions=2)
    assert result.gap == result.objective  # all that is known is that the risk is not negative
    assert result.rounded and result.stopped == "rounding"


def test_flat_pieces_leave_the_intercept_alone():
    y = np.array([1.0, 1.0, -1.0])
    assert best_intercept(squared_hinge(y), 5 * y, 0.5) == 0.5


# --- the risks ---------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-3, 1.0, 30.0]))
def test_derivatives(seed, scale):
    rng = np.random.default_rng(seed)
    w = rng.uniform(0, 2, 6)
    one = LogisticRisk(rng.choice([-1.0, 1.0], 6), w), scale * rng.normal(size=6)
    several = SoftmaxRisk(rng.integers(3, size=6), 3, w), scale * rng.normal(size=(6, 3))
    for risk, F in (one, several):
        V, h = rng.normal(size=F.shape), 1e-5
        slope = (risk.value(F + h * V) - risk.value(F - h * V)) / (2 * h)
        assert (risk.gradient(F) * V).sum() == pytest.approx(slope, rel=1e-5, abs=1e-6)
        bend = (risk.gradient(F + h * V) - risk.gradient(F - h * V)) / (2 * h)
        H = risk.curvature(F)
        HV = H * V if F.ndim == 1 else H(V)
        assert pytest.approx(bend, rel=1e-5, abs=1e-6) == HV
        assert 0 <= (V * HV).sum() <= risk.smoothness * (V * V).sum() * (1 + 1e-12)


def test_nothing_overflows():
    F = np.array([[1e300, -1e300, 0.0], [800.0, 0.0, -800.0]])
    risk = SoftmaxRisk(np.array([0, 2]), 3)
    assert risk.value(F) == 1600.0
    assert np.isfinite(risk.gradient(F)).all() and np.isfinite(log_softmax(F)).all()
    one = LogisticRisk(np.array([1.0, -1.0]))
    assert one.value(np.array([1e300, -1e300])) == 0
    assert (one.curvature(np.array([1e3, -1e3])) == 0).all()


# --- control -----------------------------------------------------------------------------------------


def test_progress(problem):
    K, y = problem
    events = []
    with Control("newton", 100, progress=events.append) as control:
        result = newton(K, LogisticRisk(y), 0.01, control=control)
    assert events[-1]["done"] == result.iterations
    assert set(events[-1]["facts"]) == {"gap", "objective"}
