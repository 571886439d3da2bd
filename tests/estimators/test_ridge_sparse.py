"""Ridge regression on the values of K that are not zero."""

import re

import numpy as np
import pytest

from mercer import BallIndicator, BSpline, Gaussian, KernelRidge, Linear, Wendland, config
from mercer.errors import InputError
from mercer.report import Method


@pytest.fixture
def problem(rng):
    X = rng.uniform(size=(600, 2))
    return X, np.sin(8 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=600)


@pytest.mark.sample(3)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    "kernel",
    [
        Wendland(0.1),
        Wendland([0.1, 0.3], smoothness=2),
        BSpline(scale=0.05),
        2 * Wendland(0.1) + BSpline(scale=0.05) * Gaussian(1.0),
        Wendland(0.1) * (1 + Linear()),
    ],
    ids=str,
)
def test_it_is_the_solution_of_the_cholesky_factorisation(rng, problem, kernel, fit_intercept):
    X, y = problem
    weight = rng.integers(0, 4, len(y)).astype(float)
    Y = np.column_stack([y, X[:, 0]])
    new = rng.uniform(size=(50, 2))
    models = [
        KernelRidge([0.01, 0.5], kernel=kernel, fit_intercept=fit_intercept, solver=solver).fit(X, Y, weight)
        for solver in ("sparse", "cholesky")
    ]
    ours, theirs = models
    assert ours.report_.plan.method is Method.SPARSE
    assert ours.report_.converged
    # A residual of 1e-10 ‖y‖ moves the coefficients by 1e-10 ‖y‖ / α at most: 2.5e-7 here.
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=5e-7)
    np.testing.assert_allclose(ours.predict(new), theirs.predict(new), atol=1e-7)
    np.testing.assert_allclose(ours.loo_residuals_, theirs.loo_residuals_, atol=1e-6)
    assert ours.report_.objective == pytest.approx(theirs.report_.objective, rel=1e-8)


def test_it_is_taken_where_few_values_are_not_zero(rng):
    X = rng.uniform(size=(5000, 2))
    y = np.sin(8 * X[:, 0])
    model = KernelRidge(0.01, kernel=Wendland(0.04))
    plan = model.plan(X)
    assert plan.method is Method.SPARSE
    # 5000 · π 0.04² = 25.1, less at the border; the plan has looked at some of the rows
    assert re.search("K has about 2[3-6] values in a row that are not zero", str(plan))
    assert plan.memory < 8 * 5000**2 / 10
    assert model.fit(X, y).report_.converged
    assert model.report_.iterations < 30
    assert np.abs(model.predict(X) - y).max() < 0.05
    assert KernelRidge(0.01, kernel=Wendland(5.0)).plan(X).method is not Method.SPARSE
    assert KernelRidge(0.01, kernel=Wendland(0.04)).plan(X[:1000]).method is Method.CHOLESKY


def test_its_memory_is_what_the_plan_says(rng):
    X = rng.uniform(size=(6000, 2))
    with config(memory="20MiB"):  # K in float32 needs 137
        model = KernelRidge(0.1, kernel=Wendland(0.03)).fit(X, X[:, 0])
    assert model.report_.plan.method is Method.SPARSE
    assert model.report_.memory < 20 * 2**20


def test_float32(problem):
    X, y = problem
    wanted = KernelRidge(0.1, kernel=Wendland(0.1)).fit(X, y).predict(X)
    with config(dtype="float32"):
        found = KernelRidge(0.1, kernel=Wendland(0.1), solver="sparse").fit(X, y).predict(X)
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_refusals(problem):
    X, y = problem
    with pytest.raises(
        InputError, match=r"solver='sparse' needs a kernel that is zero beyond .* got Gaussian"
    ):
        KernelRidge(kernel=Gaussian(1.0), solver="sparse").fit(X, y)
    with pytest.raises(InputError, match="not positive definite"):
        KernelRidge(1e-3, kernel=BallIndicator(0.1), solver="sparse").fit(X, y)
    with pytest.raises(InputError, match="indefinite='clip' takes the eigenvalues of K, got solver='sparse'"):
        KernelRidge(1e-3, kernel=BallIndicator(0.1), solver="sparse", indefinite="clip").fit(X, y)


def test_one_point_and_a_run_that_is_too_short(problem):
    model = KernelRidge(kernel=Wendland(), solver="sparse", fit_intercept=False).fit([[1.0]], [3.0])
    assert model.predict([[1.0]]) == pytest.approx([1.5])
    X, y = problem
    with pytest.warns(UserWarning, match="max_iter"):
        short = KernelRidge(1e-3, kernel=Wendland(0.1), solver="sparse", max_iter=2).fit(X, y)
    assert short.report_.gap > 0
