"""Functions of the RKHS: the reproducing property and the linear structure."""

import pickle
import weakref

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from mercer import Delta, Expansion, FromFunction, Gaussian, Linear, Polynomial, Precomputed, config
from mercer.errors import InputError
from mercer.features.polynomial import PolynomialMap
from mercer.runtime.config import settings

KERNELS = [Gaussian(sigma=1.5), Polynomial(3, c=1.0), 2 * Gaussian(1.0) + Linear()]


@pytest.fixture
def f(rng):
    return Expansion(Gaussian(sigma=1.5), rng.normal(size=(8, 3)), rng.normal(size=8), 0.5)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@given(
    X=arrays(np.float64, (5, 3), elements=st.floats(-3, 3)),
    alpha=arrays(np.float64, 5, elements=st.floats(-2, 2)),
    x=arrays(np.float64, (1, 3), elements=st.floats(-3, 3)),
)
def test_reproducing_property(kernel, X, alpha, x):
    f = Expansion(kernel, X, alpha)
    at_x = Expansion(kernel, x, [1.0])
    size = np.abs(alpha) @ np.abs(kernel(X, x)[:, 0])
    assert f @ at_x == pytest.approx(f(x)[0], abs=1e-13 * (1 + size))


def test_inner_product_is_that_of_the_weights(rng):
    kernel, phi = Polynomial(2, c=1.0), PolynomialMap(2, c=1.0)
    X, Y, a, b = rng.normal(size=(6, 3)), rng.normal(size=(4, 3)), rng.normal(size=6), rng.normal(size=4)
    f, g = Expansion(kernel, X, a), Expansion(kernel, Y, b)
    w, v = phi(X).T @ a, phi(Y).T @ b
    assert f @ g == pytest.approx(w @ v, rel=1e-12)
    assert f.norm() == pytest.approx(np.linalg.norm(w), rel=1e-12)
    assert (f + g).norm() == pytest.approx(np.linalg.norm(w + v), rel=1e-12)
    assert (f - g) @ (f - g) == pytest.approx((w - v) @ (w - v), rel=1e-10)


def test_values_and_arithmetic(f, rng):
    Z = rng.normal(size=(5, 3))
    K = np.exp(-((Z[:, None] - f.anchors[None]) ** 2).sum(-1) / (2 * 1.5**2))
    np.testing.assert_allclose(f(Z), K @ f.coef + 0.5, rtol=1e-12)
    g = Expansion(f.kernel, rng.normal(size=(4, 3)), rng.normal(size=4), -1.0)
    np.testing.assert_allclose((f + g)(Z), f(Z) + g(Z))
    np.testing.assert_allclose((3 * f)(Z), 3 * f(Z))
    np.testing.assert_allclose((f - g)(Z), f(Z) - g(Z))
    np.testing.assert_allclose((-f)(Z), -f(Z))
    np.testing.assert_allclose((f + 2.0)(Z), f(Z) + 2)
    np.testing.assert_allclose(sum([f, g, f])(Z), 2 * f(Z) + g(Z))
    assert len(f + f) == len(f)  # the same anchors are not repeated


def test_several_functions_at_once(rng):
    X, A, b = rng.normal(size=(7, 2)), rng.normal(size=(7, 3)), rng.normal(size=3)
    F = Expansion(Gaussian(1.0), X, A, b)
    one = [Expansion(Gaussian(1.0), X, A[:, c], b[c]) for c in range(3)]
    Z = rng.normal(size=(4, 2))
    np.testing.assert_allclose(F(Z), np.column_stack([f(Z) for f in one]))
    np.testing.assert_allclose(F.norm(), [f.norm() for f in one])
    np.testing.assert_allclose(F @ F, [f @ f for f in one])


def test_prune(rng):
    X = rng.normal(size=(5, 2))
    f = Expansion(Linear(), X, [1.0, 0.0, -3.0, 1e-13, 0.5])
    assert len(f.prune()) == 4
    pruned = f.prune(1e-10)
    np.testing.assert_array_equal(pruned.coef, [1.0, -3.0, 0.5])
    np.testing.assert_array_equal(pruned.anchors, X[[0, 2, 4]])
    zero = (0 * f + 2.0).prune()
    np.testing.assert_array_equal(zero(X), np.full(5, 2.0))


def test_anchors_of_every_kind(rng):
    X = np.abs(rng.normal(size=(6, 3)))
    alpha = rng.normal(size=6)
    dense = Expansion(Gaussian(1.0), X, alpha)
    csr = Expansion(Gaussian(1.0), sparse.csr_array(X), alpha)
    frame = Expansion(Gaussian(1.0), pd.DataFrame(X, columns=list("abc")), alpha)
    for f in (csr, frame):
        np.testing.assert_allclose(f(X), dense(X), rtol=1e-12)
        np.testing.assert_allclose((f + f.prune(0.5))(X), dense(X) + dense.prune(0.5)(X), rtol=1e-12)
    table = pd.DataFrame({"colour": ["red", "blue", "red"], "size": [1.0, 2.0, 3.0]})
    mixed = Expansion(Delta().on("colour") * Linear().on("size"), table, [1.0, 1.0, 1.0])
    np.testing.assert_array_equal(mixed(table), [4.0, 4.0, 12.0])
    np.testing.assert_array_equal((mixed + mixed.prune())(table), [8.0, 8.0, 24.0])


@pytest.mark.filterwarnings("ignore::mercer.errors.SlowPathWarning")
def test_objects_and_precomputed():
    common = FromFunction(lambda a, b: len(set(a) & set(b)))
    f = Expansion(common, ["abc", "bcd"], [1.0, 2.0])
    np.testing.assert_array_equal(f(["b", "d", "z"]), [3.0, 2.0, 0.0])
    assert (f + f.prune()).norm() == pytest.approx(2 * f.norm())
    K = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]])
    g = Expansion(Precomputed(K), np.array([0, 2]), [1.0, -1.0])
    np.testing.assert_array_equal(g(np.array([0, 1, 2])), [2.0, 0.0, -2.0])
    np.testing.assert_array_equal(g(np.array([[0.5, 9.0, 0.25]])), [0.25])
    assert g.norm() == pytest.approx(2.0)


def test_words_are_resolved_on_the_anchors(rng):
    X = rng.normal(size=(9, 2))
    assert Expansion(Gaussian(sigma="median"), X, np.ones(9)).kernel == Gaussian(sigma="median").resolve(X)


def test_pickle(f):
    copy = pickle.loads(pickle.dumps(f))
    np.testing.assert_array_equal(copy(f.anchors), f(f.anchors))


def test_bad_input(f, rng):
    X = rng.normal(size=(3, 2))
    with pytest.raises(InputError, match=r"coef must have one entry per anchor \(3\), got shape \(2,\)"):
        Expansion(Linear(), X, [1.0, 2.0])
    with pytest.raises(InputError, match="coef must be finite, got nan"):
        Expansion(Linear(), X, [1.0, np.nan, 2.0])
    with pytest.raises(InputError, match="coef must be real numbers, got complex128"):
        Expansion(Linear(), X, [1.0, 1j, 2.0])
    with pytest.raises(
        InputError, match=r"intercept must be a number or one per function \(\), got shape \(2,\)"
    ):
        Expansion(Linear(), X, np.ones(3), [1.0, 2.0])
    with pytest.raises(InputError, match="kernel must be a Kernel such as Gaussian"):
        Expansion("rbf", X, np.ones(3))
    with pytest.raises(InputError, match="the functions live in different spaces"):
        f @ Expansion(Linear(), f.anchors, f.coef)
    with pytest.raises(InputError, match="the functions live in different spaces"):
        f + Expansion(Linear(), f.anchors, f.coef)
    with pytest.raises(InputError, match="pairs the functions one to one"):
        f @ Expansion(f.kernel, f.anchors, np.ones((8, 2)))
    with pytest.raises(InputError, match="tol must be zero or more, got -1"):
        f.prune(-1)
    with pytest.raises(TypeError):
        f * "two"
    with pytest.raises(InputError, match="same number of columns, got 4 and 3"):
        f(rng.normal(size=(2, 4)))


# --- anchors that stay prepared ------------------------------------------------------------------------


def test_values_are_the_same_with_anchors_that_are_prepared(rng):
    X, Z = rng.normal(size=(30, 4)), rng.normal(size=(7, 4))
    f = Expansion(Gaussian(1.5) + Linear(), X, rng.normal(size=(30, 2)), [0.5, -1.0])
    first = f(Z)
    assert f._kept is not None
    assert np.array_equal(f(Z), first) and f(Z[:1]) == pytest.approx(first[:1], rel=1e-12)


def test_prepared_anchors_are_those_of_the_settings(rng):
    X, Z = rng.normal(size=(30, 4)), rng.normal(size=(7, 4))
    f = Expansion(Gaussian(1.5), X, rng.normal(size=30))
    exact = f(Z)
    with config(dtype="float32"):
        assert f(Z).dtype == np.float32 or not np.array_equal(f(Z), exact)
    assert np.array_equal(f(Z), exact)


def test_values_have_the_precision_asked_for(rng):
    X, Z = rng.normal(size=(30, 4)), rng.normal(size=(7, 4))
    f = Expansion(Gaussian(1.5), X, rng.normal(size=30), 0.5)
    expected = {}
    for dtype in ("float64", "float32"):
        with config(dtype=dtype):
            expected[dtype] = f(Z)
    assert not np.array_equal(expected["float32"], expected["float64"])
    # prepared for the same precision, and for the other
    for dtype in ("float32", "float32", "float64", "float32"):
        assert np.array_equal(f.values(Z, dtype), expected[dtype])
    assert np.array_equal(f.values(Z), expected["float64"])
    assert settings().dtype == "float64"


def test_a_copy_has_nothing_prepared_and_the_callers_points_are_not_kept(rng, collect):
    f = Expansion(Gaussian(1.5), rng.normal(size=(30, 4)), rng.normal(size=30))
    Z = rng.normal(size=(7, 4))
    values, seen = f(Z), weakref.ref(Z)
    again = pickle.loads(pickle.dumps(f))
    assert again._kept is None and np.array_equal(again(Z), values)
    del Z
    collect()
    assert seen() is None


def test_points_of_another_width_are_refused_by_prepared_anchors_too(rng):
    f = Expansion(Gaussian(1.5), rng.normal(size=(30, 4)), rng.normal(size=30))
    f(rng.normal(size=(2, 4)))
    with pytest.raises(InputError, match="columns"):
        f(rng.normal(size=(2, 3)))


def test_another_kernel_or_other_anchors_are_prepared_anew(rng):
    X, Z, coef = rng.normal(size=(30, 4)), rng.normal(size=(7, 4)), rng.normal(size=30)
    f = Expansion(Gaussian(1.5), X, coef)
    f(Z)
    f.kernel.set_params(sigma=0.7)
    assert np.array_equal(f(Z), Expansion(Gaussian(0.7), X, coef)(Z))
    f.anchors = X[::-1].copy()
    assert np.array_equal(f(Z), Expansion(Gaussian(0.7), X[::-1], coef)(Z))


# --- many points ----------------------------------------------------------------------------------------


def test_many_points_are_looked_at_some_rows_at_a_time(rng, monkeypatch):
    """Rows of other tiles round otherwise, by some units in the last place of a sum of 30 terms."""
    X, Z = rng.normal(size=(30, 4)), rng.normal(size=(1000, 4)).astype(np.float32)
    f = Expansion(Gaussian(1.5), X, rng.normal(size=(30, 2)), [0.5, -1.0])
    expected = f(Z)
    sizes, gram = [], Expansion._gram
    monkeypatch.setattr("mercer.expansion._NUMBERS_AT_ONCE", 400)
    monkeypatch.setattr(
        Expansion, "_gram", lambda self, points, *more: sizes.append(len(points)) or gram(self, points, *more)
    )
    np.testing.assert_allclose(f(Z), expected, rtol=0, atol=1e-13 * np.abs(expected).max())
    assert sizes == [100] * 10
    Z[777, 1] = np.nan
    with pytest.raises(InputError, match=r"X contains 1 NaN, the first at X\[777, 1\]"):
        f(Z)
