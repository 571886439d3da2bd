"""Ridge regression by conjugate gradients: the solution of the factorisation, and a gap that holds."""

import numpy as np
import pytest

from mercer.errors import InputError
from mercer.solvers.control import Control
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


# --- with a factor of low rank -----------------------------------------------------------------------


class Given:
    """A matrix with the verbs that a factor of it asks for."""

    def __init__(self, K):
        self.K, self.shape, self.dtype = K, K.shape, K.dtype
        self.products = 0

    def __matmul__(self, V):
        self.products += 1
        return self.K @ V

    def diag(self):
        return self.K.diagonal().copy()

    def rows(self, index):
        return self.K[index]

    def block(self, i, j):
        return self.K[np.ix_(i, j)]


@pytest.fixture
def hard(rng):
    """Three targets with two small penalties; every third point is there twice: K is singular."""
    X = rng.normal(size=(300, 2))
    X[::3] = X[1::3]
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 2)
    return Given(K), rng.normal(size=(300, 3)), np.array([1e-3, 1e-5, 1e-3]), rng.uniform(0.2, 3.0, 300)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_factor_changes_the_products_and_not_the_solution(hard, fit_intercept):
    K, Y, alphas, weight = hard
    expected = ridge(K.K.view(Stored), Y, alphas, weight, fit_intercept)
    options = {"fit_intercept": fit_intercept, "tol": 1e-10, "max_iter": 3000}
    plain = iterated_ridge(K, Y, alphas, weight, **options)
    before = K.products
    result = iterated_ridge(K, Y, alphas, weight, rank=60, **options)
    assert result.stopped is Stop.CONVERGED and K.products - before <= before / 5
    assert result.iterations <= plain.iterations / 5
    # the gap bounds α δᵀMδ ≥ ‖f - f*‖² on the points, weighted
    values, truth = K.K @ result.coef + result.intercept, K.K @ expected.coef + expected.intercept
    assert (weight @ (values - truth) ** 2 <= 1e-14 * (weight @ Y**2)).all()
    assert abs(result.objective - expected.objective).sum() <= result.gap + 1e-8 * expected.objective.sum()


def test_a_run_that_goes_on_has_the_rank_it_began_with(hard, tmp_path):
    K, Y, alphas, weight = hard
    path = tmp_path / "state.npz"
    whole = iterated_ridge(K, Y, alphas, weight, rank=40)
    for limit, rank in ((3, 40), (7, 20), (1000, 0)):
        with Control(checkpoint=path, resume=True) as control:
            part = iterated_ridge(K, Y, alphas, weight, rank=rank, max_iter=limit, control=control)
    np.testing.assert_array_equal(part.coef, whole.coef)
    assert part.iterations == whole.iterations


def test_time_that_ends_in_the_factor_leaves_the_mean(hard, tmp_path):
    K, Y, alphas, weight = hard
    with Control(max_time=1e-9, checkpoint=tmp_path / "state.npz") as control:
        result = iterated_ridge(K, Y, alphas, weight, rank=40, control=control)
    assert result.stopped is Stop.MAX_TIME and result.iterations == 0 and not result.coef.any()
    np.testing.assert_allclose(result.intercept, weight @ Y / weight.sum())
    assert not (tmp_path / "state.npz").exists()  # a part of a factor is nothing to go on from


def test_nothing_to_factorise(rng):
    Y, weight = rng.normal(size=(20, 1)), rng.uniform(0.5, 2.0, 20)
    result = iterated_ridge(Given(np.zeros((20, 20))), Y, np.ones(1), weight, rank=5)
    np.testing.assert_allclose(result.intercept, weight @ Y / weight.sum())
    assert result.stopped is Stop.CONVERGED


def test_an_indefinite_matrix_is_refused(rng):
    K = np.eye(30) + 0.9 * (np.ones((30, 30)) - np.eye(30))
    K[0, 1] = K[1, 0] = 5.0
    with pytest.raises(InputError, match="not positive definite"):
        iterated_ridge(Given(K), rng.normal(size=(30, 1)), np.full(1, 1e-3), np.ones(30), rank=10)
