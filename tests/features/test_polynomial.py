import math
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.preprocessing import PolynomialFeatures

from mercer.errors import InputError, MemoryBudgetError
from mercer.features.polynomial import PolynomialMap
from mercer.runtime.config import config

r2 = math.sqrt(2)


@given(
    m=st.integers(1, 4),
    degree=st.integers(1, 5),
    c=st.sampled_from([0, 0.0, 0.3, 1.0, 2]),
    seed=st.integers(0, 2**32),
)
def test_it_is_the_map_of_the_polynomial_kernel(m, degree, c, seed):
    X, Y = np.random.default_rng(seed).uniform(-1, 1, size=(2, 5, m))
    Phi = PolynomialMap(degree, c=c)
    assert Phi(X).shape == (5, Phi.n_features(m)) and Phi(X).flags.c_contiguous
    np.testing.assert_allclose(
        Phi(X) @ Phi(Y).T, (X @ Y.T + c) ** degree, rtol=1e-12, atol=1e-12 * (m + c) ** degree
    )


def test_the_quadratic_map_of_the_notes():
    x1, x2 = 3.0, 5.0
    np.testing.assert_allclose(PolynomialMap(2)([[x1, x2]]), [[x1**2, r2 * x1 * x2, x2**2]], rtol=1e-15)


def test_the_inhomogeneous_map_of_the_notes_up_to_its_order():
    x1, x2 = 3.0, 5.0
    notes = [x1**2, x2**2, r2 * x1 * x2, r2 * x1, r2 * x2, 1.0]
    ours = PolynomialMap(2, c=1.0)([[x1, x2]])[0]
    np.testing.assert_allclose(sorted(ours), sorted(notes), rtol=1e-15)


def test_the_order_is_that_of_scikit_learn(rng):
    X = rng.normal(size=(4, 3))
    ours = PolynomialMap(3, c=1.0)
    ones = ours(np.ones((1, 3)))  # the weights
    theirs = PolynomialFeatures(3).fit_transform(X)
    np.testing.assert_allclose(ours(X) / ones, theirs, rtol=1e-12)


def test_sizes():
    assert PolynomialMap(6).n_features(100) == 1_609_344_100
    assert PolynomialMap(2).n_features(1000) == 500_500
    assert PolynomialMap(2, c=1).n_features(1000) == math.comb(1002, 2)
    assert isinstance(PolynomialMap(np.int64(60)).n_features(10**6), int)  # beyond 64 bits


def test_a_map_that_does_not_fit_is_refused():
    X = np.ones((10, 100))
    with config(memory="4GiB"), pytest.raises(MemoryBudgetError) as caught:
        PolynomialMap(6)(X)
    assert str(caught.value) == (
        "PolynomialMap(degree=6, c=0.0) of 10 points with 100 columns has 1,609,344,100 features and "
        "needs 120GiB, "
        "more than the memory budget of 4GiB: use the kernel itself, which needs no features, a lower "
        "degree or "
        "fewer columns, or raise the budget with mercer.config(memory=…)"
    )
    with pytest.raises(MemoryBudgetError, match=r"has 1.34e\+362 features"):
        PolynomialMap(1000, c=1)(np.ones((1, 400)))


def test_the_budget_is_exact():
    X = np.ones((7, 5))  # 7 × 15 features × 8 bytes
    with config(memory=7 * 15 * 8):
        assert PolynomialMap(2)(X).nbytes == 7 * 15 * 8
    with config(memory=7 * 15 * 8 - 1), pytest.raises(MemoryBudgetError):
        PolynomialMap(2)(X)


def test_float32_stays_float32_and_sparse_points_give_the_same(rng):
    X = rng.normal(size=(4, 3)) * (rng.uniform(size=(4, 3)) < 0.5)
    Phi = PolynomialMap(3, c=0.5)
    assert Phi(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(Phi(X.astype(np.float32)), Phi(X), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(Phi(sparse.csr_array(X)), Phi(X))


def test_many_columns(rng):
    X = rng.normal(size=(2, 300))
    Phi = PolynomialMap(2)(X)
    np.testing.assert_allclose(Phi @ Phi.T, (X @ X.T) ** 2, rtol=1e-12)


def test_names():
    assert PolynomialMap(2, c=1.0).feature_names(["x1", "x2"]) == [
        "1",
        "√2 x1",
        "√2 x2",
        "x1^2",
        "√2 x1 x2",
        "x2^2",
    ]
    assert PolynomialMap(2).feature_names(["x1", "x2"]) == ["x1^2", "√2 x1 x2", "x2^2"]
    assert PolynomialMap(2, c=4).feature_names(["x"]) == ["4", "√8 x", "x^2"]
    assert PolynomialMap(1, c=0.5).feature_names(["x"]) == ["0.707107", "x"]
    assert PolynomialMap(4).feature_names(["u", "v"])[1:3] == ["2 u^3 v", "√6 u^2 v^2"]


def test_names_that_cannot_be():
    with pytest.raises(InputError) as caught:
        PolynomialMap(2).feature_names("x1")
    assert str(caught.value) == "names must be a list with one name per column, got 'x1': pass ['x1']"
    with (
        config(memory="1MiB"),
        pytest.raises(MemoryBudgetError, match="a list of 1,609,344,100 feature names"),
    ):
        PolynomialMap(6).feature_names([f"x{i}" for i in range(100)])


@pytest.mark.parametrize("degree", [0, -1, 1.5, "2", True, None])
def test_wrong_degrees(degree):
    with pytest.raises(InputError) as caught:
        PolynomialMap(degree).n_features(2)
    assert (
        str(caught.value) == f"degree must be a whole number of at least 1, got {degree!r}: pass 1, 2, 3, …"
    )


@pytest.mark.parametrize("c", [-1, math.nan, "1", None])
def test_wrong_offsets(c):
    with pytest.raises(InputError) as caught:
        PolynomialMap(2, c=c).n_features(2)
    assert str(caught.value) == f"c must be non-negative, got {c!r}: pass a number that is zero or more"


def test_it_is_a_value():
    Phi = PolynomialMap(2, c=1.0)
    assert repr(Phi) == "PolynomialMap(degree=2, c=1.0)"
    assert Phi == PolynomialMap(2, c=1.0) and hash(Phi) == hash(PolynomialMap(2, c=1.0))
    assert PolynomialMap(3, c=1.0) != Phi != "PolynomialMap(degree=2, c=1.0)"
    assert pickle.loads(pickle.dumps(Phi)) == Phi
    with pytest.raises(FrozenInstanceError):
        Phi.degree = 3


def test_scikit_learn_can_clone_and_search():
    Phi = PolynomialMap(2, c=1.0)
    assert Phi.get_params() == Phi.get_params(deep=False) == {"degree": 2, "c": 1.0}
    copy = clone(Phi)
    assert copy == Phi and copy is not Phi
    assert copy.set_params(degree=3) is copy
    assert copy == PolynomialMap(3, c=1.0) and Phi == PolynomialMap(2, c=1.0)
    with pytest.raises(InputError, match="degree must be"):
        copy.set_params(c=2.0, degree=0).fit([[1.0]])
    with pytest.raises(InputError) as caught:
        copy.set_params(d=3)
    assert str(caught.value) == "PolynomialMap has no parameter 'd': it has degree, c"
