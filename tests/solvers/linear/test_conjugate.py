"""Conjugate gradients: solutions with a certified residual, columns on their own, resumed runs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer import Gaussian, Gram
from mercer.errors import InputError
from mercer.solvers import control as control_module
from mercer.solvers.control import Control
from mercer.solvers.linear.conjugate import conjugate_gradient, kernel_conjugate_gradient


@pytest.fixture
def system(rng):
    Q = np.linalg.qr(rng.normal(size=(50, 50)))[0]
    A = Q @ np.diag(np.logspace(-2, 2, 50)) @ Q.T
    return A, rng.normal(size=(50, 3))


def test_solution_and_certificate(system):
    A, Y = system
    for rhs in (Y, Y[:, 0], Y[:, :1]):
        result = conjugate_gradient(lambda V: A @ V, rhs, tol=1e-10)
        assert result.stopped == "converged" and not result.rounded
        assert result.solution.shape == result.residual.shape == rhs.shape
        assert result.solution == pytest.approx(np.linalg.solve(A, rhs), rel=1e-6, abs=1e-8)
        assert result.residual == pytest.approx(rhs - A @ result.solution, abs=1e-12)
        worst = np.max(np.linalg.norm(rhs - A @ result.solution, axis=0) / np.linalg.norm(rhs, axis=0))
        assert worst <= 1e-10 and result.error == pytest.approx(worst, rel=1e-3)


@given(st.integers(0, 2**32 - 1))
def test_n_steps_suffice_for_n_unknowns(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    L = np.eye(n) + 0.3 * rng.normal(size=(n, n))
    A, y = L @ L.T + 0.1 * np.eye(n), rng.normal(size=n)
    result = conjugate_gradient(lambda V: A @ V, y, tol=1e-8)
    assert result.iterations <= 3 * n + 2  # n without rounding
    assert A @ result.solution == pytest.approx(y, abs=1e-7 * np.linalg.norm(y))


def test_columns_are_on_their_own(system):
    A, Y = system
    Y = np.column_stack([Y, np.zeros(50), A[:, 0]])
    widths = []

    def multiply(V):
        widths.append(V.shape[1])
        return A @ V

    together = conjugate_gradient(multiply, Y)
    assert (together.solution[:, 3] == 0).all()
    assert widths[0] == 4 and min(widths[:-1]) < 4  # those that are done cost nothing
    for c in range(5):
        alone = conjugate_gradient(lambda V: A @ V, Y[:, c])
        assert together.solution[:, c] == pytest.approx(alone.solution, abs=1e-8)


def test_start_and_preconditioner(system):
    A, Y = system
    plain = conjugate_gradient(lambda V: A @ V, Y)
    again = conjugate_gradient(lambda V: A @ V, Y, start=plain.solution)
    assert again.iterations == 0
    inverse = np.linalg.inv(A + 0.01 * np.eye(50))
    better = conjugate_gradient(lambda V: A @ V, Y, precondition=lambda V: inverse @ V)
    assert better.iterations < plain.iterations / 3
    assert better.solution == pytest.approx(plain.solution, rel=1e-6, abs=1e-7)


def test_ridge_on_a_lazy_gram(rng):
    X, y = rng.normal(size=(200, 2)), rng.normal(size=200)
    gram = Gram(Gaussian(sigma=1.0), X)
    result = conjugate_gradient(lambda V: gram @ V + 0.1 * V, y, tol=1e-10)
    assert result.solution == pytest.approx(np.linalg.solve(gram.dense() + 0.1 * np.eye(200), y), abs=1e-7)


def test_rounding_is_told(rng):
    Q = np.linalg.qr(rng.normal(size=(40, 40)))[0]
    A = Q @ np.diag(np.logspace(-12, 0, 40)) @ Q.T
    A = (A + A.T) / 2
    y = rng.normal(size=40)
    result = conjugate_gradient(lambda V: (A + 1e-11 * np.eye(40)) @ V, y, tol=1e-16, max_iter=100_000)
    assert result.stopped == "converged" and result.rounded
    assert 1e-16 < result.error < 1


def test_a_residual_of_nothing_is_not_divided(rng):
    """Where zero is asked for, products in float32 would come to numbers so small that they are negative."""
    A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 1.0]], np.float32)
    inverse = np.linalg.inv(A.astype(np.float64))
    for _ in range(50):
        y = rng.normal(size=(3, 2))
        found = conjugate_gradient(
            lambda V: A @ V.astype(np.float32),
            y,
            precondition=lambda V: inverse @ V,
            enough=lambda X, R: np.zeros(2),
        )
        assert found.stopped == "converged" and found.rounded
        assert found.solution == pytest.approx(inverse @ y, rel=1e-5, abs=1e-6)


def test_max_iter(system):
    A, Y = system
    result = conjugate_gradient(lambda V: A @ V, Y, max_iter=3)
    assert result.stopped == "max_iter" and result.iterations == 3
    assert result.residual == pytest.approx(Y - A @ result.solution)


# --- rough products ----------------------------------------------------------------------------------------


def counted(operator):
    def multiply(V):
        multiply.count += 1
        return operator @ V

    multiply.count = 0
    return multiply


def test_rough_products_do_most_of_the_work(system):
    A, y = system
    exact, rough = counted(A), counted(A.astype(np.float32))
    near = np.linalg.inv(A + 0.1 * np.eye(len(A)))
    found = conjugate_gradient(exact, y, tol=1e-12, precondition=lambda V: near @ V, rough=rough)
    assert found.stopped == "converged" and not found.rounded
    assert np.linalg.norm(y - A @ found.solution) <= 1e-12 * np.linalg.norm(y)
    assert exact.count <= 6 and rough.count >= 3 * exact.count
    assert found.products == exact.count + rough.count


@pytest.mark.parametrize("spoilt", [0.0, 0.25, np.inf])
def test_rough_products_that_do_not_help_are_given_up(system, spoilt):
    A, y = system
    rough = counted(spoilt * A if np.isfinite(spoilt) else np.full_like(A, np.nan))
    found = conjugate_gradient(lambda V: A @ V, y, tol=1e-10, rough=rough)
    assert found.stopped == "converged" and found.error <= 1e-10
    assert rough.count <= 50


# --- refusals, control, and the inner product of K ---------------------------------------------------------


def test_refusals(system):
    A, Y = system
    with pytest.raises(InputError, match="the matrix is not positive definite: vᵀAv < 0 for some v; take"):
        conjugate_gradient(lambda V: A @ V - V, Y)
    with pytest.raises(InputError, match="a product with the matrix is not finite"):
        conjugate_gradient(lambda V: np.full_like(V, np.nan), Y)
    nothing = conjugate_gradient(lambda V: A @ V, np.zeros(50))
    assert (nothing.solution == 0).all() and nothing.error == 0 and nothing.iterations == 0


@pytest.mark.parametrize("flat", [False, True])
def test_a_stopped_run_resumes(system, tmp_path, monkeypatch, flat):
    monkeypatch.setattr(control_module, "_EVERY", 0)
    A, Y = system
    Y = Y[:, 0] if flat else Y
    whole = conjugate_gradient(lambda V: A @ V, Y)
    path = tmp_path / "state.npz"
    for limit in (7, 20, 1000):
        with Control("cg", checkpoint=path, resume=True) as control:
            part = conjugate_gradient(lambda V: A @ V, Y, max_iter=limit, control=control)
    assert np.array_equal(part.solution, whole.solution)
    assert part.iterations == whole.iterations == control.iterations


def test_time_runs_out(system):
    A, Y = system
    with Control("cg", max_time=1e-9) as control:
        result = conjugate_gradient(lambda V: A @ V, Y, control=control)
    assert result.stopped == "max_time" and result.error == 1.0


# --- in the inner product of K -----------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1))
def test_the_inner_product_of_k(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 10)), int(rng.integers(1, 4))
    L = rng.normal(size=(n, int(rng.integers(1, n + 1))))  # K may be singular
    K, h, Y = L @ L.T, rng.uniform(0, 2, n)[:, None], rng.normal(size=(n, m))
    delta, K_delta, done = kernel_conjugate_gradient(
        lambda V: K @ V, lambda V: h * V, 0.5, Y, K @ Y, tol=1e-6, max_iter=100
    )
    exact = np.linalg.solve(0.5 * np.eye(n) + h * K, Y)
    assert done
    # ρᵀKρ ≤ 1e-12 yᵀKy, and the operator is ≥ ½ in that norm: the same for the error, times 2
    error = np.sum((delta - exact) * (K @ (delta - exact)))
    assert error <= 16 * 1e-12 * np.sum(Y * (K @ Y)) + 1e-20
    assert K_delta == pytest.approx(K @ delta, abs=1e-8)


def test_it_stops_when_asked(system):
    A, Y = system
    asked = iter([False, False, True])
    _, K_delta, done = kernel_conjugate_gradient(
        lambda V: A @ V, lambda V: V, 1e-3, Y, A @ Y, tol=1e-12, max_iter=99, stopped=lambda: next(asked)
    )
    assert not done and np.abs(K_delta).max() > 0
