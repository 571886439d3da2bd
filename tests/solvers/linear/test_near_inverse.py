"""The sparse factor of an inverse: exact where nothing is left out, positive always, near as a rule."""

import numpy as np
import pytest
from scipy import sparse

from mercer import Gram, Wendland, config
from mercer.solvers.linear.conjugate import conjugate_gradient
from mercer.solvers.linear.near_inverse import NEIGHBOURS, near_inverse


def matrix_of(operator, n):
    return operator(np.eye(n))


@pytest.mark.parametrize("alpha", [1e-6, 1.0])
def test_with_few_points_it_is_the_inverse(rng, alpha):
    n = NEIGHBOURS + 1
    A, weight = rng.normal(size=(n, n)), rng.uniform(0.5, 2, n)
    K = A @ A.T
    M = np.sqrt(weight)[:, None] * K * np.sqrt(weight) + alpha * np.eye(n)
    P = matrix_of(near_inverse(sparse.csr_array(K), weight, alpha), n)
    # The condition of M bounds the error of either inverse.
    np.testing.assert_allclose(P, np.linalg.inv(M), rtol=1e-13 * np.linalg.cond(M), atol=0)


def test_each_row_is_the_best_of_its_pattern(rng):
    """diag(G M Gᵀ) = 1, which minimises Kaporin's number over rows of one pattern."""
    K = Gram(Wendland(0.2), rng.uniform(size=(300, 2))).sparse()
    P = matrix_of(near_inverse(K, np.ones(300), 0.1), 300)
    M = K.toarray() + 0.1 * np.eye(300)
    np.testing.assert_allclose(P, P.T, atol=1e-12)
    assert np.linalg.eigvalsh(P).min() > 0
    # tr(PM) = Σ diag(G M Gᵀ) = n
    assert np.trace(P @ M) == pytest.approx(300, rel=1e-12)


@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-4])
def test_few_steps_for_any_penalty(rng, alpha):
    n = 4000
    K = Gram(Wendland(0.05), rng.uniform(size=(n, 2))).sparse()
    y = rng.normal(size=n)
    found = conjugate_gradient(
        lambda V: K @ V, y, shifts=alpha, tol=1e-10, precondition=near_inverse(K, np.ones(n), alpha)
    )
    assert found.stopped == "converged"
    assert found.iterations < 30  # without it 36, 320, and more than 400
    exact = np.linalg.norm(K @ found.solution + alpha * found.solution - y)
    assert exact <= 1e-10 * np.linalg.norm(y)


def test_equal_points_and_weights_that_differ(rng):
    X = np.repeat(rng.uniform(size=(50, 1)), 4, axis=0)
    K = Gram(Wendland(0.5), X).sparse()
    weight = 10.0 ** rng.uniform(-3, 3, len(X))
    P = near_inverse(K, weight, 1e-3)
    root = np.sqrt(weight)
    y = rng.normal(size=len(X))
    found = conjugate_gradient(lambda v: root * (K @ (root * v)), y, shifts=1e-3, precondition=P)
    assert found.stopped == "converged"
    M = root[:, None] * K.toarray() * root + 1e-3 * np.eye(len(X))
    np.testing.assert_allclose(
        found.solution, np.linalg.solve(M, y), rtol=1e-4, atol=1e-6 * np.abs(y).max() / 1e-3
    )


def test_a_singular_matrix_gives_finite_numbers():
    K = sparse.csr_array(np.ones((5, 5)))
    assert np.isfinite(near_inverse(K, np.ones(5), 0.0)(np.ones(5))).all()


def test_threads_change_nothing(rng):
    K = Gram(Wendland(0.05), rng.uniform(size=(9000, 2))).sparse()
    v, results = rng.normal(size=9000), []
    for threads in (1, 3):
        with config(threads=threads):
            results.append(near_inverse(K, np.ones(9000), 0.1)(v))
    np.testing.assert_array_equal(*results)
