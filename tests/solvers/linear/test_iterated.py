"""Ridge regression by conjugate gradients: the solution of the factorisation, and a gap that holds."""

import numpy as np
import pytest

from mercer.solvers.linear.iterated import iterated_ridge
from mercer.solvers.linear.ridge import ridge
from mercer.solvers.result import Stop


class Stored(np.ndarray):
    """A matrix with the verbs that `ridge` asks for."""

    def dense(self, out=None):
        if out is not None:
            out[:] = self
        return np.array(self) if out is None else out


@pytest.fixture
def problem(rng):
    X = rng.normal(size=(40, 2))
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    return K.view(Stored), rng.normal(size=(40, 2)), np.array([0.1, 0.5]), rng.uniform(0.2, 3.0, 40)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_it_is_the_solution_of_the_factorisation(problem, fit_intercept):
    K, Y, alphas, weight = problem
    expected = ridge(K, Y, alphas, weight, fit_intercept)
    result = iterated_ridge(np.asarray(K), Y, alphas, weight, fit_intercept, tol=1e-13)
    np.testing.assert_allclose(result.coef, expected.coef, atol=1e-9)
    np.testing.assert_allclose(result.intercept, expected.intercept, atol=1e-9)
    np.testing.assert_allclose(result.objective, expected.objective, rtol=1e-9)
    assert result.stopped is Stop.CONVERGED and 0 < result.iterations < 80 and result.gap < 1e-20


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_run_that_is_cut_short_knows_how_far_it_is(problem, fit_intercept, steps):
    K, Y, alphas, weight = problem
    least = ridge(K, Y, alphas, weight, fit_intercept).objective.sum()
    result = iterated_ridge(np.asarray(K), Y, alphas, weight, fit_intercept, tol=1e-13, max_iter=steps)
    f = np.asarray(K) @ result.coef
    objective = weight @ (Y - f - result.intercept) ** 2 + alphas * (result.coef * f).sum(axis=0)
    np.testing.assert_allclose(result.objective, objective, rtol=1e-10)
    assert result.stopped is Stop.MAX_ITER and result.iterations == steps
    assert least * (1 - 1e-12) <= objective.sum() <= least + result.gap * (1 + 1e-9)
