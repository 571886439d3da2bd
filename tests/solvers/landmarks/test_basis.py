"""The basis of landmarks: K_MM = TᵀT on independent ones, whatever is given."""

import numpy as np
import pytest

from mercer.errors import InputError
from mercer.solvers.landmarks.basis import independent


def test_duplicates_and_combinations_are_left_out(rng):
    A = rng.normal(size=(9, 4))
    A[4], A[5], A[6] = A[0], A[1] + A[2], 1e-9 * A[3]
    K = A @ A.T
    kept, basis = independent(K, np.float64)
    assert len(kept) == 4 == basis.size == len(set(kept))
    # Backward error of a Cholesky factor: M units, relative to the diagonal.
    square = basis.T.T @ basis.T
    assert square == pytest.approx(K[np.ix_(kept, kept)], abs=1e-13 * K.max())
    assert np.allclose(np.tril(basis.T, -1), 0.0)


def test_order_of_pivots_is_that_of_the_rest(rng):
    kept, basis = independent(np.diag([1.0, 9.0, 4.0]), np.float64)
    assert kept.tolist() == [1, 2, 0] and np.array_equal(basis.T, np.diag([3.0, 2.0, 1.0]))


def test_in_float32_near_duplicates_are_left_out_that_float64_can_tell():
    near = np.exp(-0.5 * 1e-4**2)
    K = np.array([[1.0, near], [near, 1.0]])  # The second pivot is 1e-8.
    assert len(independent(K, np.float64)[0]) == 2 and len(independent(K, np.float32)[0]) == 1


def test_solves_are_those_of_the_triangle(rng):
    A = rng.normal(size=(6, 6))
    _, basis = independent(A @ A.T, np.float64)
    w = rng.normal(size=(6, 2))
    assert basis.T @ basis.coefficients(w) == pytest.approx(w, abs=1e-12)
    assert basis.T.T @ basis.features(w) == pytest.approx(w, abs=1e-12)
    for dtype, near in (("float64", 1e-11), ("float32", 1e-3)):
        columns = np.asfortranarray(w, dtype=dtype)
        basis.transform(columns)
        assert columns == pytest.approx(basis.features(w), abs=near)


def test_one_landmark():
    kept, basis = independent(np.array([[4.0]]), np.float64)
    assert kept.tolist() == [0] and basis.T.tolist() == [[2.0]]


@pytest.mark.parametrize(
    "K",
    [
        [[1.0, 0.0], [0.0, -1.0]],
        [[1.0, 2.0], [2.0, 1.0]],
        [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]],  # Its diagonal alone does not tell.
    ],
)
def test_indefinite_matrices_are_refused(K):
    with pytest.raises(InputError, match=r"not positive semi-definite.*take a positive definite kernel"):
        independent(np.array(K), np.float64)


def test_landmarks_without_any_function_are_refused():
    with pytest.raises(InputError, match=r"k\(z, z\) is 0 for every landmark.*pass other landmarks"):
        independent(np.zeros((3, 3)), np.float64)


def test_the_amplification_is_that_of_the_norms(rng):
    A = rng.normal(size=(30, 30))
    K = A @ A.T
    _, basis = independent(K, np.float64)
    exact = np.linalg.norm(K) ** 2 * np.linalg.norm(np.linalg.inv(basis.T), 2) ** 2 / 30
    # Eight random vectors tell ‖K‖² to within a half, eight powers the other norm to within a tenth.
    assert 0.4 * exact < basis.amplification < 2.0 * exact
