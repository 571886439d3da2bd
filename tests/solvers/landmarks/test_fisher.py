"""Fisher's discriminant on landmarks: against the generalised eigenproblem of the features' scatters."""

import numpy as np
import pytest
from scipy.linalg import eigh

from mercer import Gaussian
from mercer.gram.blocks import RowBlocks
from mercer.solvers.landmarks.basis import Basis
from mercer.solvers.landmarks.features import Features
from mercer.solvers.landmarks.fisher import restricted_fisher


@pytest.fixture
def problem(rng):
    codes = np.arange(45) % 3
    X = rng.normal(size=(45, 2)) + 1.5 * np.array([[0, 0], [1, 0], [0, 1.0]])[codes]
    Z = X[:8] + 0.05
    T = np.linalg.cholesky(Gaussian(1.0)(Z)).T
    Phi = np.linalg.solve(T.T, Gaussian(1.0)(Z, X)).T
    features = Features(RowBlocks(Gaussian(1.0), X, Z), Basis(np.asfortranarray(T)), True)
    return features, codes, rng.uniform(0.2, 3, 45), Phi


@pytest.mark.parametrize("alpha", [1e-4, 1e-2, 1.0])
def test_directions_maximise_the_quotient_of_scatters(problem, alpha):
    features, codes, weight, Phi = problem
    share = np.bincount(codes, weight)
    means = np.stack([weight[codes == c] @ Phi[codes == c] for c in range(3)]) / share[:, None]
    centre = weight @ Phi / weight.sum()
    between = ((means - centre).T * share) @ (means - centre) / weight.sum()
    inside = Phi - means[codes]
    within = (inside.T * weight) @ inside / weight.sum() + alpha * np.eye(8)
    ratios, V = eigh(between, within)
    result = restricted_fisher(features, codes, 3, weight, np.ones(45), 1.0, alpha=alpha)[0]
    assert result.alpha == alpha
    assert result.ratios == pytest.approx(ratios[:-3:-1], rel=1e-8)
    w = features.basis.T @ result.coef
    assert np.abs(w) == pytest.approx(np.abs(V[:, :-3:-1]), abs=1e-7)
    assert result.intercept == pytest.approx(-centre @ w, abs=1e-9)
    assert result.fitted == pytest.approx((Phi - centre) @ w, abs=1e-8)


def test_the_penalty_of_least_error_left_out_is_chosen(problem):
    features, codes, weight, _ = problem
    found = restricted_fisher(features, codes, 3, weight, np.ones(45), 1.0)[0]
    assert found.alpha == found.path[found.errors.argmin()]
    again = restricted_fisher(features, codes, 3, weight, np.ones(45), 1.0, alpha=found.alpha)[0]
    np.testing.assert_array_equal(again.left_out, found.left_out)
    assert not len(again.path)


def test_a_penalty_below_rounding_is_raised(problem):
    features, codes, weight, _ = problem
    found = restricted_fisher(features, codes, 3, weight, np.ones(45), 1.0, alpha=1e-30)[0]
    assert found.alpha == 4 * 2.0**-52
