"""Pre-images: stationary points of the distance in feature space, degenerate steps; the learned map."""

import numpy as np
import pytest
from scipy import sparse

from mercer.errors import InputError
from mercer.solvers.control import Control
from mercer.solvers.spectral.preimage import fixed_point, ridge_map


def gaussian(Z, X):
    X = X.toarray() if sparse.issparse(X) else X
    values = np.exp(-((Z[:, None] - X[None]) ** 2).sum(axis=2) / 2)
    return values, values / 2


def objective(z, X, c):
    return c @ np.exp(-((z - X) ** 2).sum(axis=1) / 2)


@pytest.fixture
def X(rng):
    return rng.normal(size=(40, 3))


def test_the_gradient_vanishes_and_the_objective_has_grown(X, rng):
    coef = rng.dirichlet(np.ones(40), size=5)
    start = X[:5][:, None]
    result = fixed_point(X, coef, gaussian, start, tol=1e-12)
    assert result.stopped == "converged" and result.converged.all()
    for z, z0, c in zip(result.points, start[:, 0], coef, strict=True):
        weights = c * np.exp(-((z - X) ** 2).sum(axis=1) / 2)
        assert np.abs(weights @ (X - z)).max() < 1e-10  # the gradient; steps below 1e-12 leave no more
        assert objective(z, X, c) >= objective(z0, X, c)


def test_the_feature_of_a_point_leads_back_to_it(X):
    result = fixed_point(X, np.eye(40), gaussian, (X + 0.3)[:, None], tol=1e-12)
    assert result.points == pytest.approx(X, abs=1e-10)


def test_sparse_points(X):
    coef = np.full((1, 40), 1 / 40)
    dense, thin = (
        fixed_point(points, coef, gaussian, X[:1][:, None], tol=1e-10).points
        for points in (X, sparse.csr_array(X))
    )
    assert thin == pytest.approx(dense)


def test_coefficients_of_both_signs_never_lower_the_objective(X, rng):
    """Σ gᵢ cancels: the plain fixed point jumps anywhere."""
    coef, start = rng.normal(size=(20, 40)), X[:20][:, None]
    coef[np.arange(20), np.arange(20)] += 5  # so that f > 0 at the start: where f < 0, infinity is better
    result = fixed_point(X, coef, gaussian, start, tol=1e-10, max_iter=5000)
    assert result.converged.all()
    for z, z0, c in zip(result.points, start[:, 0], coef, strict=True):
        assert objective(z, X, c) >= objective(z0, X, c)
        weights = c * np.exp(-((z - X) ** 2).sum(axis=1) / 2)
        assert np.abs(weights @ (X - z)).max() < 1e-4 * np.abs(weights).sum()


def test_where_no_step_is_possible_the_next_candidate_is_tried():
    X, coef = np.array([[0.0], [1.0]]), np.array([[0.5, 0.5]])
    result = fixed_point(X, coef, gaussian, np.array([[[1e3], [0.2]]]))  # at 1000 every weight is zero
    assert result.converged.all()
    assert result.points[0, 0] == pytest.approx(0.5, abs=1e-5)


def test_no_candidate_left():
    result = fixed_point(np.array([[0.0], [1.0]]), np.ones((1, 2)), gaussian, np.array([[[1e3], [2e3]]]))
    assert result.stopped == "converged" and not result.converged.any()
    assert result.points.tolist() == [[1000.0]]


def test_weights_that_are_not_finite_are_no_step():
    def radial(Z, X):
        return np.ones((len(Z), len(X))), np.full((len(Z), len(X)), np.inf)

    result = fixed_point(np.array([[1.0]]), np.ones((1, 1)), radial, np.array([[[2.0]]]))
    assert not result.converged.any() and result.points.tolist() == [[2.0]]


def test_iterations_and_checkpoint(X, rng, tmp_path):
    coef, start = rng.dirichlet(np.ones(40), size=4), X[:4][:, None]
    whole = fixed_point(X, coef, gaussian, start, tol=1e-12)
    path = tmp_path / "state.npz"
    with Control(checkpoint=path) as control:
        part = fixed_point(X, coef, gaussian, start, tol=1e-12, max_iter=3, control=control)
    assert (part.stopped, part.iterations) == ("max_iter", 3)
    with Control(checkpoint=path, resume=True) as control:
        resumed = fixed_point(X, coef, gaussian, start, tol=1e-12, control=control)
    assert np.array_equal(resumed.points, whole.points)
    assert resumed.iterations == whole.iterations


def test_points_that_coincide():
    X = np.ones((5, 2))
    result = fixed_point(X, np.full((1, 5), 0.2), gaussian, np.zeros((1, 1, 2)))
    assert result.points == pytest.approx(np.ones((1, 2)))


def test_ridge_map(rng):
    A = rng.normal(size=(30, 30))
    K, X = A @ A.T, rng.normal(size=(30, 2))
    assert ridge_map(K.copy(), X, 0.5) == pytest.approx(np.linalg.solve(K + 0.5 * np.eye(30), X))
    w = rng.integers(0, 3, 30)
    index = np.repeat(np.arange(30), w)
    beta = np.zeros((30, 2))
    np.add.at(beta, index, ridge_map(K[np.ix_(index, index)], X[index], 0.5))
    assert ridge_map(K.copy(), X, 0.5, w) == pytest.approx(beta)
    with pytest.raises(InputError, match=r"not positive definite, got alpha=0.5: raise alpha"):
        ridge_map(-K, X, 0.5)
