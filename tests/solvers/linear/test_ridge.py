"""The solver of kernel ridge regression: both ways along a path of penalties."""

import numpy as np

from mercer.solvers.linear.ridge import ridge_path


def test_few_points_and_few_penalties_are_fitted_as_by_the_band(rng, monkeypatch):
    X = rng.normal(size=(60, 2))
    X[1] = X[0]  # K is singular
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    Y, weight, alphas = rng.normal(size=(60, 2)), rng.uniform(0.5, 2.0, 60), [1e-20, 1e-3, 1.0]
    by_factors = list(ridge_path(K.copy(), Y, alphas, weight))
    monkeypatch.setattr("mercer.solvers.linear.ridge._FEW_POINTS", 0)
    by_band = list(ridge_path(K.copy(), Y, alphas, weight))
    assert by_factors[0] is None and by_band[0] is None  # α below the rounding of K
    for one, other in zip(by_factors[1:], by_band[1:], strict=True):
        np.testing.assert_allclose(one.coef, other.coef, rtol=1e-8)  # the condition is 1e5: 1e-11 is lost
        np.testing.assert_allclose(one.intercept, other.intercept, rtol=1e-8)
        np.testing.assert_allclose(one.errors, other.errors, rtol=1e-8)
