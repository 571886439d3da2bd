"""The preconditioner of low rank: an inverse that is checked against dense algebra, and fewer products."""

import numpy as np
import pytest

from mercer import Gaussian, Gram
from mercer.runtime.config import config
from mercer.solvers.landmarks.pivots import pivoted_cholesky
from mercer.solvers.linear.conjugate import conjugate_gradient
from mercer.solvers.linear.precondition import Damped, factor_memory, usual_rank, weighted_square


@pytest.fixture
def factor(rng):
    return rng.normal(size=(300, 20)) / np.arange(1, 21)


def test_it_solves_what_it_multiplies(rng, factor):
    weight, rest = rng.uniform(0, 3, 300), rng.uniform(0, 0.1, 300)
    weight[::7] = 0.0
    B = Damped(factor, rest, weight, 0.3)
    S = np.diag(np.sqrt(weight))
    dense = S @ factor @ factor.T @ S + (0.3 + weight @ rest / 300) * np.eye(300)
    V = rng.normal(size=(300, 4))
    np.testing.assert_allclose(B.multiply(V), dense @ V, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(B.solve(V), np.linalg.solve(dense, V), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(B.solve(V[:, 0]), B.solve(V)[:, 0], rtol=1e-12, atol=1e-14)


def test_an_empty_factor_leaves_the_penalty():
    B = Damped(np.empty((5, 0)), np.zeros(5), np.ones(5), 0.5)
    np.testing.assert_array_equal(B.solve(np.ones(5)), np.full(5, 2.0))
    np.testing.assert_array_equal(B.solve(np.ones((5, 2))), np.full((5, 2), 2.0))
    np.testing.assert_array_equal(B.multiply(np.ones(5)), np.full(5, 0.5))


def test_a_penalty_below_rounding_leaves_it_positive_definite(rng, factor):
    """Without the least damping, 1e-13 tr GᵀG, subtracting would leave only rounding, of either sign."""
    B = Damped(1e4 * factor, np.zeros(300), np.ones(300), 1e-14)
    V = np.linalg.qr(np.column_stack([factor, rng.normal(size=(300, 5))]))[0]
    form = V.T @ B.solve(V)
    assert (np.linalg.eigvalsh((form + form.T) / 2) > 0).all()


def test_squares_do_not_depend_on_threads(rng):
    F, weight = rng.normal(size=(3000, 300)), rng.uniform(-1, 1, 3000)
    found = []
    for threads in (1, 3):
        with config(threads=threads):
            found.append(np.tril(weighted_square(F, weight)))
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(found[0], np.tril(F.T @ (weight[:, None] * F)), atol=1e-10)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_products_become_few_where_the_penalty_is_small(rng, dtype):
    X = rng.normal(size=(600, 3))
    with config(dtype=dtype):
        K = Gram(Gaussian(1.0), X, cache=0)
    near = pivoted_cholesky(K, 200, random_state=0)
    dense, y = Gaussian(1.0)(X), rng.normal(size=600)
    options = {"tol": 1e-6, "max_iter": 2000, "shifts": 1e-3}
    plain = conjugate_gradient(lambda V: dense @ V, y, **options)
    P = Damped(near.factor, near.residual, np.ones(600), 1e-3)
    quick = conjugate_gradient(lambda V: dense @ V, y, precondition=P.solve, **options)
    assert quick.stopped == plain.stopped == "converged"
    assert quick.iterations < plain.iterations / 8
    # both have a residual of 1e-6 |y|, which (K + αI)⁻¹ makes 1e-3 |y| at most
    np.testing.assert_allclose(quick.solution, plain.solution, atol=2e-3 * np.linalg.norm(y))


def test_columns_with_preconditioners_of_their_own(rng):
    A = np.diag(np.logspace(0, 6, 50))
    shifts = np.array([1.0, 1e3, 1.0])
    calls = []

    def near(shift):
        def apply(V):
            calls.append((shift, V.shape[1]))
            return V / (A.diagonal()[:, None] + shift)

        return apply

    by_shift = {shift: near(shift) for shift in set(shifts)}
    Y = rng.normal(size=(50, 3))
    found = conjugate_gradient(lambda V: A @ V, Y, shifts=shifts, precondition=[by_shift[s] for s in shifts])
    assert found.iterations == 1  # each is the inverse itself
    assert sorted(calls[:2]) == [(1.0, 2), (1e3, 1)]
    np.testing.assert_allclose(found.solution, Y / (A.diagonal()[:, None] + shifts), rtol=1e-9)


def test_the_rank_follows_points_and_memory():
    assert usual_rank(10_000, 2**34) == 2000
    assert usual_rank(10_000, 2**34, is_repeated=True) == 1000
    assert usual_rank(100, 2**34) == 25  # a quarter of the points
    assert usual_rank(10_000, 0) == 0
    for n, memory, options in [
        (40_000, 2**27, {}),
        (5000, 2**24, {"functions": 3}),
        (5000, 2**24, {"systems": 4, "item": 4}),
    ]:
        rank = usual_rank(n, memory, **options)
        assert rank > 0 and factor_memory(n, rank, **options) <= memory
