"""A learned map of the columns: against differences of f, and on functions of one direction."""

import numpy as np
import pytest

from mercer import Gaussian, KernelRidge, Matern, RationalQuadratic
from mercer.features.linear import LinearMap
from mercer.selection import AutoKernelRegressor
from mercer.selection.gradients import gradient_products, learn_map


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (Gaussian(sigma=1.3), "sigma"),
        (Matern(nu=1.5, length_scale=1.3), "length_scale"),
        (RationalQuadratic(alpha=1.0, length_scale=1.3), "length_scale"),
    ],
)
def test_the_products_are_those_of_differences_of_f(rng, kernel, name):
    """The truth: central differences of a ridge regression without intercept, exact to h² = 1e-8."""
    Z, Y = rng.normal(size=(40, 3)), rng.normal(size=(40, 2))
    f = KernelRidge(0.1, kernel=kernel, fit_intercept=False).fit(Z, Y)
    h, M = 1e-4, np.zeros((3, 3))
    steps = [(f.predict(Z + h * e) - f.predict(Z - h * e)) / (2 * h) for e in np.eye(3)]
    for target in range(2):
        slopes = np.column_stack([step[:, target] for step in steps])
        M += slopes.T @ slopes / len(Z)
    assert np.allclose(gradient_products(kernel, name, Z, Y, 0.1), M, rtol=1e-5)


def test_the_map_finds_the_direction_that_counts(rng):
    """y = g(⟨a, x⟩) in ten dimensions; columns of other units change nothing."""
    a = rng.normal(size=10)
    a /= np.linalg.norm(a)
    X = rng.normal(size=(400, 10))
    y = np.sin(2 * X @ a)[:, None] + 0.05 * rng.normal(size=(400, 1))
    for units in (np.ones(10), 10.0 ** rng.uniform(-2, 2, 10)):
        kernel = Matern(nu=1.5, length_scale=3.0) @ LinearMap(np.diag(1 / units))
        A = learn_map(kernel, X * units, y).kernel.function.matrix * units[:, None]
        leading = np.linalg.eigh(A @ A.T)[1][:, -1]
        assert abs(leading @ a) > 0.99


def test_a_search_takes_the_map_where_it_tells_more(rng, tmp_path):
    """A ridge function of ten columns: no scale of single columns has its direction. Files keep the map."""
    a = np.ones(10) / np.sqrt(10)
    X = rng.normal(size=(300, 10))
    model = AutoKernelRegressor().fit(X, np.sin(2 * X @ a))
    assert isinstance(model.kernel_.function, LinearMap)
    new = rng.normal(size=(200, 10))
    assert np.sqrt(np.mean((model.predict(new) - np.sin(2 * new @ a)) ** 2)) < 0.3
    pytest.importorskip("skops")
    import mercer

    mercer.save(model, tmp_path / "model.mercer")
    assert np.array_equal(mercer.load(tmp_path / "model.mercer").predict(new), model.predict(new))


def test_a_map_of_other_columns_is_refused():
    with pytest.raises(ValueError, match=r"the map is of 2 columns, got points with 3 feature\(s\)"):
        LinearMap(np.eye(2))(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="matrix must hold finite numbers"):
        LinearMap(np.array([1.0, np.nan]))(np.zeros((1, 2)))
