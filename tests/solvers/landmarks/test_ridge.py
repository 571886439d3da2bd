"""Ridge regression on landmarks against the normal equations, in every setting."""

import numpy as np
import pytest

from mercer.solvers.landmarks.certificate import Accuracy
from mercer.solvers.landmarks.ridge import restricted_ridge


def normal_equations(Phi, Y, weight, alpha, fit_intercept):
    """F = Φ̃u with (Φ̃ᵀWΦ̃ + αD) u = Φ̃ᵀWY, and the objective."""
    A = np.column_stack([Phi, np.ones(len(Phi))]) if fit_intercept else Phi
    D = np.diag([alpha] * Phi.shape[1] + [0.0] * fit_intercept)
    u = np.linalg.solve(A.T @ (weight[:, None] * A) + D, A.T @ (weight[:, None] * Y))
    F = A @ u
    return F, (weight[:, None] * (Y - F) ** 2).sum() + alpha * (u[: Phi.shape[1]] ** 2).sum()


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("alpha", [1e-2, 1.0, 1e4])
@pytest.mark.parametrize("M", [1, 8, 200])
def test_against_the_normal_equations(rng, features_of, gaussian, M, alpha, targets, fit_intercept):
    """200 rows: a sample of 10 for one landmark, 80 for eight, and all rows where every point is one."""
    X = rng.normal(size=(200, 3))
    Y, weight = rng.normal(size=(200, targets)) + 2.0, rng.choice([0.0, 0.5, 2.0], size=200)
    features, Phi = features_of(gaussian(X, X[:M]), gaussian(X[:M], X[:M]), fit_intercept)
    found = restricted_ridge(features, Y, alpha, weight, tol=1e-20)
    F, least = normal_equations(Phi, Y, weight, alpha, fit_intercept)
    # A residual of 1e-11 relative to Φ̃ᵀWY, of norm below 1e3, leaves values right to 1e-8/α.
    assert found.values == pytest.approx(F, abs=1e-8 / min(alpha, 1.0), rel=1e-8)
    assert found.objective == pytest.approx(least, rel=1e-10)
    assert -1e-12 * least <= found.objective - least <= found.gap + 1e-12 * least
    assert found.gap <= 1e-8 * least and found.stopped == "converged"
    # Σ δ²/(4w) is a part of the gap, δ being what the point of the dual is away from the slopes at f.
    apart = found.dual - 2 * weight[:, None] * (found.values - Y)
    assert np.linalg.norm(apart) <= np.sqrt(4 * weight.max() * found.gap) + 1e-12
    assert found.coef.shape == (features.basis.size, targets) and found.intercept.shape == (targets,)


def test_a_weight_of_two_is_a_point_twice(rng, features_of, gaussian):
    X, Y = rng.normal(size=(60, 2)), rng.normal(size=(60, 1))
    twice = np.r_[np.arange(60), np.arange(20)]
    Z, weight = X[:7], np.where(np.arange(60) < 20, 2.0, 1.0)
    one, _ = features_of(gaussian(X, Z), gaussian(Z, Z))
    other, _ = features_of(gaussian(X[twice], Z), gaussian(Z, Z))
    a = restricted_ridge(one, Y, 0.1, weight, tol=1e-26)
    b = restricted_ridge(other, Y[twice], 0.1, np.ones(80), tol=1e-26)
    assert a.coef == pytest.approx(b.coef, abs=1e-9) and a.objective == pytest.approx(b.objective, rel=1e-12)


def test_rounding_that_leaves_nothing_of_the_gap_is_told(rng, features_of, gaussian):
    X = rng.normal(size=(40, 2))
    features, _ = features_of(gaussian(X, X[:5]), gaussian(X[:5], X[:5]))
    Y = rng.normal(size=(40, 1))
    assert restricted_ridge(features, Y, 1.0, np.ones(40)).stopped == "converged"
    lost = restricted_ridge(features, Y, 1.0, np.ones(40), accuracy=Accuracy(1.0))
    assert lost.stopped == "rounding" and lost.gap >= lost.objective


def test_zero_targets_need_no_iteration(rng, features_of, gaussian):
    X = rng.normal(size=(30, 2))
    features, _ = features_of(gaussian(X, X[:5]), gaussian(X[:5], X[:5]))
    found = restricted_ridge(features, np.zeros((30, 1)), 1.0, np.ones(30))
    assert found.stopped == "converged" and not found.coef.any() and found.gap == found.objective == 0.0
