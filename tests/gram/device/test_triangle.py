"""Factors of PyTorch's tensors, against NumPy's."""

import numpy as np
import pytest
from scipy.linalg import LinAlgError, solve_triangular

torch = pytest.importorskip("torch")

from mercer.gram.device import triangle as module  # noqa: E402
from mercer.gram.device.triangle import Triangle, factorise  # noqa: E402


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    """Several panels, strips and blocks, whose ends do not meet."""
    monkeypatch.setattr(module, "_PANEL", 16)
    monkeypatch.setattr(module, "_STRIP", 24)
    monkeypatch.setattr(module, "_BLOCK_ROWS", 20)


def positive(rng, n):
    B = rng.normal(size=(n, n + 5))
    return B @ B.T


def test_the_factor_is_that_of_numpy_and_reads_one_triangle(rng):
    A = positive(rng, 75)
    given = torch.from_numpy(np.triu(A) + np.tril(np.full_like(A, np.nan), -1))
    T = factorise(given)
    assert T.data_ptr() == given.data_ptr()
    # Two backward stable factors of A differ by some ε times its condition, here 10⁴ or so.
    np.testing.assert_allclose(T.numpy(), np.linalg.cholesky(A).T, rtol=0, atol=1e-10)


@pytest.mark.parametrize("place", [3, 40])
def test_what_is_not_positive_definite_is_refused(place, rng):
    A = positive(rng, 60)
    A[place, place] = -1.0
    with pytest.raises(LinAlgError, match="leading minor"):
        factorise(torch.from_numpy(A))


@pytest.mark.parametrize("columns", [1, 3])
def test_systems_are_solved(columns, rng):
    T = np.linalg.cholesky(positive(rng, 75)).T
    V, B = rng.normal(size=(75, columns)), rng.normal(size=(7, 75))
    triangle = Triangle(torch.from_numpy(T.copy()))
    there = torch.from_numpy(V)
    np.testing.assert_allclose(triangle.solve(there).numpy(), solve_triangular(T, V), rtol=1e-9)
    expected = solve_triangular(T, V, trans=1)
    np.testing.assert_allclose(triangle.solve_transposed(there).numpy(), expected, rtol=1e-9)
    divided = triangle.divide(torch.from_numpy(B.copy())).numpy()
    np.testing.assert_allclose(divided @ T, B, atol=1e-12)
    weight = rng.uniform(size=75)
    square = triangle.square(torch.from_numpy(weight), torch.zeros(75, 75, dtype=torch.float64))
    np.testing.assert_allclose(np.triu(square.numpy()), np.triu((T * weight) @ T.T), atol=1e-11)
