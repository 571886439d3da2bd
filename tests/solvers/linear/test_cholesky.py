"""Cholesky factorisation in tiles, against NumPy's."""

import numpy as np
import pytest
from scipy.linalg import LinAlgError

from mercer import config
from mercer.solvers.linear import cholesky


@pytest.fixture(params=[1, 3, 7, 64], ids=lambda size: f"tile{size}")
def tile(request, monkeypatch):
    monkeypatch.setattr(cholesky, "_tile_size", lambda n: request.param)
    monkeypatch.setattr(cholesky, "_INVERTED", 5)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_factor_solution_and_diagonal(rng, tile, n, dtype):
    A = rng.normal(size=(n, n + 3))
    M = (A @ A.T + n * np.eye(n)).astype(dtype)
    B = rng.normal(size=(n, 2))
    # cond(M) ≤ 10 for these: errors of some n ε
    tolerance = 100 * n * float(np.finfo(dtype).eps)
    exact = np.linalg.inv(M.astype(np.float64))
    given = np.array(M, order="F")
    L = cholesky.factorise(given)
    assert np.shares_memory(L, given)
    assert np.tril(L) == pytest.approx(np.linalg.cholesky(M), rel=tolerance, abs=tolerance)
    for right in (B, B[:, 0]):
        assert cholesky.solve(L, right) == pytest.approx(exact @ right, abs=tolerance)
    assert cholesky.inverse_diagonal(L) == pytest.approx(np.diagonal(exact), abs=tolerance)
    assert np.tril(cholesky.inverse(L)) == pytest.approx(np.tril(exact), abs=tolerance)


def test_only_the_lower_triangle_counts(rng, tile):
    A = rng.normal(size=(20, 25))
    M = np.asfortranarray(A @ A.T)
    other = M.copy(order="F")
    other[np.triu_indices(20, 1)] = np.nan
    L, same = cholesky.factorise(M), cholesky.factorise(other)
    assert np.array_equal(np.tril(L), np.tril(same))
    b = rng.normal(size=20)
    assert cholesky.solve(same, b) == pytest.approx(cholesky.solve(L, b), rel=1e-12)


def test_an_indefinite_matrix_is_refused_where_it_shows(tile):
    M = np.asfortranarray(np.diag([1.0, 1, 1, 1, -1, 1, 1, 1]))
    with pytest.raises(LinAlgError, match="order 5 "):
        cholesky.factorise(M)


def test_nothing_to_factorise():
    L = cholesky.factorise(np.empty((0, 0), order="F"))
    assert L.shape == (0, 0) and cholesky.solve(L, np.empty((0, 2))).shape == (0, 2)


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_factor_is_the_same_for_any_number_of_threads(rng, dtype):
    n = 1500
    A = rng.normal(size=(n, 40))
    M = np.asarray(A @ A.T + np.eye(n), dtype)
    made = []
    for threads in (1, 2, 5):
        with config(threads=threads):
            L = cholesky.factorise(np.array(M, order="F"))
            made.append([np.tril(L), cholesky.solve(L, A[:, :3]), cholesky.inverse_diagonal(L)])
            made[-1].append(np.tril(cholesky.inverse(L)))
    for other in made[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(made[0], other, strict=True))
