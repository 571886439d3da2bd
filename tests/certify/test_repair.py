"""Gram matrices made positive semidefinite: each method does what it says, and the report is right."""

import numpy as np
import pytest

from mercer import BallIndicator, Gaussian, Gram, repair

BALL = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
METHODS = ["clip", "flip", "shift", "nearest"]


def indefinite(n, seed):
    random = np.random.default_rng(seed)
    A = random.normal(size=(n, n))
    K = A + A.T
    np.fill_diagonal(K, abs(random.normal(size=n)) + 0.5)
    return K


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [1, 2, 3, 30])
def test_the_result_is_positive_semidefinite_and_the_report_true(method, n):
    K = indefinite(n, n)
    matrix, report = repair(K, method)
    values = np.linalg.eigvalsh(matrix)
    assert values[0] > -1e-12 * abs(K).max() * n
    np.testing.assert_array_equal(matrix, matrix.T)
    before = np.linalg.eigvalsh(K)[::-1]
    np.testing.assert_allclose(report.before, before, atol=1e-12)
    np.testing.assert_allclose(report.after, values[::-1], atol=1e-10)
    assert report.negative == (before < -1e-12).sum()
    assert report.change == pytest.approx(np.linalg.norm(matrix - K) / np.linalg.norm(K), abs=1e-12)
    assert report.moved == pytest.approx(abs(report.after - report.before).max())


def test_what_each_method_keeps():
    K = indefinite(12, 3)
    values = np.linalg.eigvalsh(K)
    np.testing.assert_allclose(np.linalg.eigvalsh(repair(K, "clip")[0]), np.maximum(values, 0), atol=1e-12)
    np.testing.assert_allclose(np.linalg.eigvalsh(repair(K, "flip")[0]), np.sort(abs(values)), atol=1e-12)
    shifted = repair(K, "shift")[0]
    np.testing.assert_allclose(shifted - np.diag(np.diag(shifted)), K - np.diag(np.diag(K)), atol=1e-14)
    assert np.linalg.eigvalsh(shifted)[0] == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(np.diag(repair(K, "nearest")[0]), np.diag(K), atol=1e-14)


def test_no_matrix_is_nearer_than_the_nearest():
    K = indefinite(6, 5)
    clipped, nearest = (np.linalg.norm(repair(K, m)[0] - K) for m in ("clip", "nearest"))
    assert clipped <= nearest + 1e-12  # one condition less
    random = np.random.default_rng(0)
    scale = np.sqrt(np.diag(K))
    for _ in range(200):  # semidefinite matrices with the diagonal of K
        rows = random.normal(size=(6, 3))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        other = (rows @ rows.T) * np.outer(scale, scale)
        assert nearest <= np.linalg.norm(other - K) + 1e-9
        mixed = 0.9 * repair(K, "nearest")[0] + 0.1 * other  # and near the answer
        assert nearest <= np.linalg.norm(mixed - K) + 1e-9


def test_higham_s_example():
    """The nearest correlation matrix to tridiagonal ones (Higham 2002): off-diagonals 0.7607 and 0.1573."""
    matrix, _ = repair(BALL, "nearest")
    assert matrix[0, 1] == pytest.approx(0.7607, abs=5e-5) and matrix[0, 2] == pytest.approx(0.1573, abs=5e-5)


def test_a_kernel_matrix_stays_as_it_is(rng):
    K = Gaussian(1.0)(rng.normal(size=(20, 2)))
    for method in METHODS:
        matrix, report = repair(K, method)
        np.testing.assert_array_equal(matrix, K)
        assert report.change == 0 and str(report).startswith(f"{method}: nothing to repair")


def test_a_gram_and_the_report_in_words(rng):
    points = [[1.0], [2.0], [3.0]]
    matrix, report = repair(Gram(BallIndicator(), points))
    np.testing.assert_allclose(matrix, repair(BALL)[0])
    assert str(report) == (
        "clip: 1 of 3 eigenvalues was negative, the smallest -0.414; they moved by up to 0.414, "
        "the matrix by 15.7 %"
    )


@pytest.mark.parametrize(
    ("K", "method", "message"),
    [
        (BALL, "mend", "method must be one of 'clip'"),
        (np.ones((2, 3)), "clip", "square matrix"),
        ("ball", "clip", "square matrix of numbers"),
        (np.empty((0, 0)), "clip", "square matrix"),
        ([[1.0, np.nan], [np.nan, 1.0]], "clip", "finite"),
        ([[1.0, 2.0], [0.0, 1.0]], "clip", "symmetric"),
        ([[-1.0, 0.0], [0.0, 1.0]], "nearest", "diagonal entry -1"),
    ],
)
def test_refusals(K, method, message):
    with pytest.raises(ValueError, match=message):
        repair(K, method)
