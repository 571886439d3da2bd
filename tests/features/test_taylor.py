import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist
from scipy.stats import poisson
from sklearn.base import clone

from mercer.errors import InputError, MemoryBudgetError
from mercer.features.monomials import exponents
from mercer.features.taylor import GaussianTaylorMap
from mercer.runtime.config import config


def gaussian(X, Y, sigma):
    return np.exp(-cdist(X, Y, "sqeuclidean") / (2 * sigma**2))


def test_one_dimension_is_the_formula_of_the_notes():
    sigma, order = 0.7, 12
    x = np.linspace(-3, 3, 31)
    k = np.arange(order + 1)
    root_factorials = np.sqrt([math.factorial(i) for i in k])
    formula = np.exp(-(x[:, None] ** 2) / (2 * sigma**2)) * x[:, None] ** k / (sigma**k * root_factorials)
    np.testing.assert_allclose(GaussianTaylorMap(sigma, order)(x[:, None]), formula, rtol=1e-12, atol=1e-300)


@given(m=st.integers(1, 4), order=st.integers(0, 5), sigma=st.floats(0.3, 3.0), seed=st.integers(0, 2**32))
def test_every_dimension_is_the_formula(m, order, sigma, seed):
    X = np.random.default_rng(seed).normal(size=(3, m))
    a = np.vstack([exponents(m, k) for k in range(order + 1)])  # lowest degree first
    root_factorials = np.sqrt([math.prod(map(math.factorial, row)) for row in a.tolist()])
    monomials = np.prod(X[:, None, :] ** a, axis=2)
    damping = np.exp(-np.sum(X**2, axis=1, keepdims=True) / (2 * sigma**2))
    formula = damping * monomials / (sigma ** a.sum(axis=1) * root_factorials)
    Phi = GaussianTaylorMap(sigma, order)
    assert Phi(X).shape == (3, Phi.n_features(m)) == (3, math.comb(m + order, order))
    np.testing.assert_allclose(Phi(X), formula, rtol=1e-10, atol=1e-300)


@given(
    m=st.integers(1, 3),
    order=st.integers(0, 8),
    sigma=st.floats(0.3, 3.0),
    radius=st.floats(0.01, 3.0),
    seed=st.integers(0, 2**32),
)
def test_the_error_stays_within_its_bound_and_reaches_it(m, order, sigma, radius, seed):
    directions = np.random.default_rng(seed).normal(size=(2, 6, m))
    X, Y = radius * directions / np.maximum(1e-9, np.linalg.norm(directions, axis=2, keepdims=True))
    X[3:] *= 0.5
    Phi = GaussianTaylorMap(sigma, order)
    bound = Phi.truncation_error(radius)
    error = np.abs(gaussian(X, Y, sigma) - Phi(X) @ Phi(Y).T)
    assert error.max() <= bound + 1e-12
    worst = 1.0 - np.sum(Phi(X[:1]) ** 2)  # x = y on the sphere
    assert math.isclose(worst, bound, rel_tol=1e-9, abs_tol=1e-12)


@given(order=st.integers(0, 60), rate=st.floats(1e-3, 50.0))
def test_the_error_is_a_tail_of_the_poisson_law(order, rate):
    error = GaussianTaylorMap(2.0, order).truncation_error(2.0 * math.sqrt(rate))
    assert math.isclose(error, poisson(rate).sf(order), rel_tol=1e-9, abs_tol=1e-300)


@given(sigma=st.floats(0.2, 5.0), radius=st.floats(0.0, 8.0), tol=st.floats(1e-14, 1.5))
def test_order_for_is_the_smallest_that_suffices(sigma, radius, tol):
    order = GaussianTaylorMap.order_for(sigma, radius, tol)
    assert GaussianTaylorMap(sigma, order).truncation_error(radius) <= tol
    assert order == 0 or GaussianTaylorMap(sigma, order - 1).truncation_error(radius) > tol


def test_far_from_the_origin_nothing_overflows():
    x = np.array([[40.0], [40.5], [-40.0]])  # exp(-x²/2) alone is 0 here, x^k / √k! alone is ∞
    order = GaussianTaylorMap.order_for(1.0, 41.0, 1e-12)
    Phi = GaussianTaylorMap(1.0, order)(x)
    np.testing.assert_allclose(Phi @ Phi.T, gaussian(x, x, 1.0), atol=1e-10)


@pytest.mark.parametrize("value", [1e200, 1e308, -1e308, 1e-310])
def test_extreme_points_give_finite_features(value):
    Phi = GaussianTaylorMap(1e-3, 5)(np.full((1, 3), value))
    assert np.all(np.isfinite(Phi))
    assert np.all(Phi == 0) if abs(value) > 1 else math.isclose(Phi[0, 0], 1.0)


def test_the_origin():
    np.testing.assert_array_equal(GaussianTaylorMap(1.0, 2)(np.zeros((1, 2))), [[1, 0, 0, 0, 0, 0]])


def test_float32_and_sparse_points(rng):
    X = rng.normal(size=(4, 3)) * (rng.uniform(size=(4, 3)) < 0.5)
    Phi = GaussianTaylorMap(1.5, 4)
    assert Phi(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(Phi(X.astype(np.float32)), Phi(X), rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(Phi(sparse.csr_array(X)), Phi(X))


def test_a_map_that_does_not_fit_is_refused():
    with config(memory="1GiB"), pytest.raises(MemoryBudgetError) as caught:
        GaussianTaylorMap(1.0, 10)(np.ones((100, 50)))
    assert str(caught.value) == (
        "GaussianTaylorMap(sigma=1.0, order=10) of 100 points with 50 columns has 75,394,027,566 "
        "features and needs "
        "54.9TiB, more than the memory budget of 1GiB: use the kernel itself, which needs no features, "
        "a lower "
        "degree or fewer columns, or raise the budget with mercer.config(memory=…)"
    )


@pytest.mark.parametrize("sigma", [0, -0.5, math.inf, "median", None])
def test_wrong_widths(sigma):
    with pytest.raises(InputError) as caught:
        GaussianTaylorMap(sigma, 3).n_features(2)
    assert str(caught.value) == f"sigma must be positive, got {sigma!r}: pass a positive number"


@pytest.mark.parametrize("order", [-1, 1.5, "2"])
def test_wrong_orders(order):
    with pytest.raises(InputError) as caught:
        GaussianTaylorMap(1.0, order).n_features(2)
    assert str(caught.value) == f"order must be a whole number of at least 0, got {order!r}: pass 0, 1, 2, …"


def test_wrong_radii_and_tolerances():
    with pytest.raises(
        InputError, match="radius must be non-negative, got -1: pass a number that is zero or more"
    ):
        GaussianTaylorMap(1.0, 3).truncation_error(-1)
    with pytest.raises(
        InputError, match="radius must be non-negative, got -1: pass a number that is zero or more"
    ):
        GaussianTaylorMap.order_for(1.0, -1, 0.1)
    with pytest.raises(InputError, match="tol must be positive, got 0: pass a positive number"):
        GaussianTaylorMap.order_for(1.0, 1.0, 0)
    with pytest.raises(InputError, match="sigma must be positive, got 0: pass a positive number"):
        GaussianTaylorMap.order_for(0, 1.0, 0.1)
    with pytest.raises(InputError) as caught:
        GaussianTaylorMap.order_for(1e-8, 1.0, 0.1)
    assert str(caught.value) == (
        "radius / sigma must be at most 1e6, got 1e+08: no map of a sensible size reaches that far; "
        "centre and scale the data, or use random features"
    )


def test_it_is_a_value_that_scikit_learn_can_clone():
    Phi = GaussianTaylorMap(sigma=2.0, order=3)
    assert repr(Phi) == "GaussianTaylorMap(sigma=2.0, order=3)"
    assert clone(Phi) == pickle.loads(pickle.dumps(Phi)) == Phi
    assert hash(clone(Phi)) == hash(Phi) and GaussianTaylorMap(2.0, 4) != Phi
    assert clone(Phi).set_params(sigma=1.0).get_params() == {"sigma": 1.0, "order": 3}
