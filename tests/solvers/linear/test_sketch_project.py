"""Block sketch-and-project: the solution of the factorisation, a gap that holds, a run that goes on."""

import numpy as np
import pytest

from mercer import Gaussian, Gram, config
from mercer.errors import InputError
from mercer.solvers import control as control_module
from mercer.solvers.control import Control
from mercer.solvers.linear import sketch_project
from mercer.solvers.linear.ridge import ridge
from mercer.solvers.linear.sketch_project import block_size, blocks_per_pass, sketched_ridge
from mercer.solvers.result import Stop


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(sketch_project, "_SMALLEST_BLOCK", 30)


@pytest.fixture
def problem(rng):
    """Two targets with a penalty each, weights, and points that are there twice."""
    X = rng.normal(size=(150, 2))
    X[::5] = X[1::5]
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1]]) + 0.1 * rng.normal(size=(150, 2))
    return Gram(Gaussian(1.0), X, cache=0), Y, np.array([0.5, 2.0]), rng.uniform(0.2, 3.0, 150)


@pytest.mark.sample(2)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_it_is_the_solution_of_the_factorisation(problem, fit_intercept):
    K, Y, alphas, weight = problem
    expected = ridge(K, Y, alphas, weight, fit_intercept)
    result = sketched_ridge(K, Y, alphas, weight, fit_intercept, tol=1e-4, max_iter=200)
    assert result.stopped is Stop.CONVERGED and 0 < result.iterations < 200
    # residuals are 1e-4 of the right-hand sides; an intercept multiplies that of its own system
    assert result.gap <= 1e-7 * (weight @ Y**2).sum()
    difference = K @ (result.coef - expected.coef) + (result.intercept - expected.intercept)
    assert (weight @ difference**2).sum() <= 1e-7 * (weight @ Y**2).sum()
    assert result.objective.sum() - expected.objective.sum() <= result.gap


def test_few_passes_know_how_far_they_are(problem):
    K, Y, alphas, weight = problem
    least = ridge(K, Y, alphas, weight).objective.sum()
    gaps = []
    for passes in (1, 4):
        result = sketched_ridge(K, Y, alphas, weight, max_iter=passes, tol=1e-10)
        assert result.stopped is Stop.MAX_ITER and result.iterations == passes
        f = K @ result.coef
        objective = weight @ (Y - f - result.intercept) ** 2 + alphas * (result.coef * f).sum(axis=0)
        np.testing.assert_allclose(result.objective, objective, rtol=1e-9)
        assert least * (1 - 1e-12) <= objective.sum() <= least + result.gap * (1 + 1e-9)
        gaps.append(result.gap)
    assert gaps[1] < 0.1 * gaps[0]


def test_a_stopped_run_resumes(problem, tmp_path, monkeypatch):
    monkeypatch.setattr(control_module, "_EVERY", 0)
    K, Y, alphas, weight = problem
    whole = sketched_ridge(K, Y, alphas, weight, max_iter=3)

    class Stopping(Control):
        """Stops in the middle of a pass."""

        at = 7

        @property
        def stopped(self):
            return Stop.INTERRUPTED if self.iterations >= self.at else None

    path = tmp_path / "state.npz"
    with Stopping(checkpoint=path) as control:
        part = sketched_ridge(K, Y, alphas, weight, max_iter=3, control=control)
    assert part.stopped is Stop.INTERRUPTED and np.isnan(part.gap) and np.isfinite(part.objective).all()
    with Control(checkpoint=path, resume=True) as control:
        rest = sketched_ridge(K, Y, alphas, weight, max_iter=3, control=control)
    np.testing.assert_array_equal(rest.coef, whole.coef)
    assert rest.iterations == whole.iterations and rest.gap == whole.gap


def test_time_runs_out_before_the_first_step(problem):
    K, Y, alphas, weight = problem
    with Control(max_time=1e-9) as control:
        result = sketched_ridge(K, Y, alphas, weight, control=control)
    assert result.stopped is Stop.MAX_TIME and not result.coef.any() and np.isnan(result.gap)
    np.testing.assert_allclose(result.intercept, weight @ Y / weight.sum())


def test_one_block_of_all_points_and_targets_of_zero(rng):
    K = Gram(Gaussian(1.0), rng.normal(size=(20, 2)), cache=0)
    result = sketched_ridge(K, np.zeros((20, 1)), np.ones(1), np.ones(20), False)
    assert result.stopped is Stop.CONVERGED and result.iterations == 0 and result.gap == 0.0
    assert block_size(20) == 20 and blocks_per_pass(20) == 1


def test_float32(problem):
    K, Y, _, weight = problem
    with config(dtype="float32"):
        single = Gram(K.kernel, K._raw[0], cache=0)
    result = sketched_ridge(single, Y[:, :1], np.ones(1), weight, tol=1e-4, max_iter=200)
    expected = ridge(K, Y[:, :1], np.ones(1), weight)
    assert result.stopped is Stop.CONVERGED
    np.testing.assert_allclose(result.objective, expected.objective, rtol=1e-4)


def test_an_indefinite_matrix_is_refused(rng):
    from mercer import Sigmoid

    K = Gram(Sigmoid(0.5, -1.0), rng.normal(size=(60, 5)), cache=0)
    with pytest.raises(InputError, match="positive definite"):
        sketched_ridge(K, rng.normal(size=(60, 1)), np.full(1, 1e-3), np.ones(60))
