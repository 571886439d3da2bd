"""The solver of kernel ridge regression: ways along a path of penalties."""

import numpy as np

from mercer.solvers.linear.ridge import ridge_path, ridge_valley


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


def test_the_valley_is_the_least_of_the_path_from_any_start(rng):
    X = rng.uniform(-2, 2, (80, 1))
    K, Y = np.exp(-((X - X.T) ** 2)), np.sin(3 * X) + 0.3 * rng.normal(size=(80, 1))
    alphas = 10.0 ** np.arange(-5.0, 3.0)
    points = ridge_path(K.copy(), Y, alphas, np.ones(80))
    errors = np.array([np.mean(point.errors**2) for point in points if point is not None])
    best = int(errors.argmin())
    # The numbers are what the test is about: one valley, with a way down on both sides.
    assert 1 < best < 6 and (np.diff(errors[: best + 1]) < 0).all() and (np.diff(errors[best:]) > 0).all()
    for start in range(len(alphas)):
        assert ridge_valley(K.copy(), Y, alphas, start) == (alphas[best], errors[best])


def test_the_valley_goes_up_where_penalties_are_too_small(rng):
    K, Y = np.ones((5, 5)), rng.normal(size=(5, 1))
    alphas = np.array([1e-25, 1e-24, 1e-23, 1e-22, 1.0])
    alpha, error = ridge_valley(K.copy(), Y, alphas, 0)
    assert alpha == 1.0 and np.isfinite(error)
    assert ridge_valley(K, Y, alphas[:3], 0)[1] == np.inf
