"""Principal components on landmarks: against the singular values of the features themselves."""

import numpy as np
import pytest

from mercer import Gaussian, Linear
from mercer.gram.blocks import RowBlocks
from mercer.solvers.landmarks.basis import Basis
from mercer.solvers.landmarks.components import RestrictedComponents
from mercer.solvers.landmarks.features import Features


@pytest.fixture
def problem(rng):
    X, weight = rng.normal(size=(30, 2)), rng.uniform(0.2, 3, 30)
    Z = X[:7] + 0.05
    T = np.linalg.cholesky(Gaussian(1.0)(Z)).T
    Phi = np.linalg.solve(T.T, Gaussian(1.0)(Z, X)).T
    return Features(RowBlocks(Gaussian(1.0), X, Z), Basis(np.asfortranarray(T)), True), weight, Phi


def test_components_are_those_of_the_features(problem):
    features, weight, Phi = problem
    found = RestrictedComponents(features, weight)
    mean = weight @ Phi / weight.sum()
    values = np.linalg.svd(np.sqrt(weight)[:, None] * (Phi - mean), compute_uv=False)
    assert found.mean == pytest.approx(mean)
    assert found.values == pytest.approx(values**2, rel=1e-9)
    coef, intercept = found.functions(3)
    scores = features.K.values(coef) + intercept
    assert weight @ scores == pytest.approx(0, abs=1e-10)
    assert (scores.T * weight) @ scores == pytest.approx(np.diag(values[:3] ** 2), abs=1e-9)
    assert (scores[np.abs(scores).argmax(axis=0), range(3)] > 0).all()
    w = features.basis.T @ coef
    assert w.T @ w == pytest.approx(np.eye(3), abs=1e-9)


def test_the_mean_is_a_function_on_the_landmarks(problem):
    """Its values are the inner products of the features with their mean."""
    features, weight, Phi = problem
    found = RestrictedComponents(features, weight)
    assert features.K.values(found.mean_coef[:, None])[:, 0] == pytest.approx(Phi @ found.mean)


def test_the_sign_is_that_of_the_largest_score_of_all_blocks(rng):
    """There are three blocks of rows; the largest score is in the last, that of a point with a weight."""
    X = rng.uniform(-1, 1, size=(9000, 1))
    X[8800], X[100] = -3.0, 5.0
    weight = np.ones(9000)
    weight[100] = 0.0
    features = Features(RowBlocks(Linear(), X, np.ones((1, 1))), Basis(np.eye(1)), True)
    coef, _ = RestrictedComponents(features, weight).functions(1)
    assert coef.tolist() == [[-1.0]]


def test_components_of_points_that_do_not_vary_are_zero():
    X = np.ones((5, 2))
    features = Features(RowBlocks(Gaussian(1.0), X, X[:1]), Basis(np.eye(1)), True)
    found = RestrictedComponents(features, np.ones(5))
    coef, intercept = found.functions(1)
    assert found.values.tolist() == [0.0] and not coef.any() and not intercept.any()
