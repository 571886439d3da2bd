"""K = Q B Qᵀ: against NumPy's inverse, for every shape of the last panel."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import LinAlgError

from mercer.solvers.linear.banded import BandForm
from mercer.solvers.linear.blas import add_product, subtract_rank_two, symmetric_product


def positive(rng, n, rank=None):
    A = rng.normal(size=(n, rank or n))
    return A @ A.T / n


@pytest.mark.sample(5)
@pytest.mark.parametrize("n", [1, 2, 3, 63, 64, 65, 66, 127, 128, 129, 130, 200])
@pytest.mark.parametrize("width", [1, 5, 64])
def test_inverse_and_its_diagonal(rng, n, width):
    K = positive(rng, n)
    Y = rng.normal(size=(n, 3))
    solution, diagonal = BandForm(K.copy(), width).solve(0.5, Y)
    inverse = np.linalg.inv(K + 0.5 * np.eye(n))
    # backward stable: errors of n ε times the condition, which is below 10
    assert solution == pytest.approx(inverse @ Y, abs=1e-12)
    assert diagonal == pytest.approx(np.diag(inverse), rel=1e-12)


@given(st.integers(2, 40), st.integers(1, 12), st.integers(1, 5), st.integers(0, 10**6))
def test_any_rank_and_width(n, width, rank, seed):
    K = positive(np.random.default_rng(seed), n, rank)
    form = BandForm(K.copy(), width)
    assert pytest.approx(np.eye(n), abs=1e-13 * n) == form.Q.T @ form.Q
    for alpha in (1e-3, 1.0, 1e3):
        solution, diagonal = form.solve(alpha, np.eye(n))
        inverse = np.linalg.inv(K + alpha * np.eye(n))
        assert solution * alpha == pytest.approx(inverse * alpha, abs=1e-9)
        assert diagonal == pytest.approx(np.diag(solution), rel=1e-9)


def test_the_matrix_is_overwritten_and_needs_no_other(rng):
    K = positive(rng, 100)
    form = BandForm(K, 8)
    assert np.shares_memory(form.Q, K)


def test_float32_stays_float32(rng):
    K = positive(rng, 150)
    solution, diagonal = BandForm(K.astype(np.float32)).solve(0.5, np.eye(150, dtype=np.float32))
    assert solution.dtype == diagonal.dtype == np.float32
    assert solution == pytest.approx(np.linalg.inv(K + 0.5 * np.eye(150)), abs=1e-4)


def test_only_one_triangle_is_read(rng):
    K = positive(rng, 70)
    expected = BandForm(K.copy(), 8).solve(1.0, np.eye(70))[0]
    K[np.tril_indices(70, -1)] = np.nan  # of the transpose, whose columns are contiguous, the upper triangle
    assert BandForm(K, 8).solve(1.0, np.eye(70))[0] == pytest.approx(expected, abs=1e-12)


def test_an_indefinite_matrix_is_refused(rng):
    K = positive(rng, 30) - 2 * np.eye(30)
    with pytest.raises(LinAlgError):
        BandForm(K, 4).solve(0.1, np.eye(30))


# --- the products in place ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_on_parts_of_an_array(rng, dtype):
    whole = np.asfortranarray(rng.normal(size=(12, 12)), dtype=dtype)
    before = whole.copy()
    part = whole[3:, 3:]
    V, W = (np.asfortranarray(rng.normal(size=(9, 2)), dtype=dtype) for _ in range(2))
    symmetric = np.tril(part) + np.tril(part, -1).T
    close = {"abs": 1e-13 if dtype == np.float64 else 1e-5}
    assert symmetric_product(part, V) == pytest.approx(symmetric @ V, **close)
    subtract_rank_two(part, V, W)
    assert np.tril(part) == pytest.approx(np.tril(symmetric - V @ W.T - W @ V.T), **close)
    assert np.array_equal(np.triu(part, 1), np.triu(before[3:, 3:], 1))
    target = np.asfortranarray(rng.normal(size=(9, 4)), dtype=dtype)
    expected = target + 2 * V @ np.ones((2, 4), dtype)
    add_product(target, 2.0, V, np.asfortranarray(np.ones((2, 4), dtype)))
    assert target == pytest.approx(expected, **close)
    assert np.array_equal(whole[:3], before[:3]) and np.array_equal(whole[:, :3], before[:, :3])
