"""The small Gram matrix: right values, and errors that are larger than the errors."""

import numpy as np
import pytest

from mercer import config
from mercer.certify.rounding import frobenius, gram_with_error
from mercer.kernels.formula.calculus import evaluate
from mercer.kernels.formula.expression import absolute, cos, exp, log, maximum, sin, sqrt, tanh, where
from mercer.kernels.formula.pair import A, B, Pair, PointSum
from mercer.testing import example_kernels, example_points

pair = Pair()


@pytest.mark.filterwarnings("ignore::mercer.errors.SlowPathWarning")
@pytest.mark.parametrize("kernel", example_kernels(), ids=lambda k: repr(k)[:70])
def test_agrees_with_the_oracle(kernel, rng):
    X = example_points(kernel, 9, rng)
    kernel = kernel.resolve(X)
    with config(backend="numpy"):
        wanted = kernel(X)
    K, E = gram_with_error(kernel.expression(), X)
    np.testing.assert_allclose(K, wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())
    assert E.shape == K.shape and (E >= 0).all()
    fast, zero = gram_with_error(kernel.expression(), X, bounded=False)
    np.testing.assert_array_equal(fast, K)
    assert not zero.any()


FORMULAS = [
    exp(-pair.sqdist / 3),
    tanh(pair.dot),
    sqrt(pair.xx + pair.yy - 2 * pair.dot),  # cancels
    (1 - exp(-pair.sqdist)) / (1e-3 + pair.sqdist),
    log(1 + pair.l1) * cos(pair.xx - pair.yy) + sin(pair.dot),
    pair.product(lambda a, b: maximum(1 - absolute(a - b), 0)),
    where(pair.sqdist <= 1, pair.dot, pair.dot**3),
    (1 + pair.sqdist) ** -0.7,
]


@pytest.mark.skipif(np.finfo(np.longdouble).eps >= 1e-18, reason="long double is no wider than double here")
@pytest.mark.parametrize("formula", FORMULAS, ids=repr)
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_the_error_bound_holds(formula, offset, rng):
    """Against the same formula in extended precision."""
    X = rng.normal(size=(12, 3)) + offset
    X[1] = X[0] + 1e-7
    K, E = gram_with_error(formula, X)
    exact = in_long_double(formula, X)
    defined = np.isfinite(K) & np.isfinite(exact)
    assert defined.any()
    assert (np.abs(K - exact)[defined] <= E[defined]).all()


def in_long_double(formula, X):
    X = X.astype(np.longdouble)

    def leaf(node):
        if isinstance(node, PointSum):
            values = evaluate(node.term, lambda symbol: X).sum(axis=1)
            return values[:, None] if node.side == 0 else values[None, :]
        at = {A: X[:, None, :], B: X[None, :, :]}
        values = np.broadcast_to(evaluate(node.term, at.__getitem__), (len(X), len(X), X.shape[1]))
        return values.prod(axis=2) if node.kind == "product" else values.sum(axis=2)

    with np.errstate(all="ignore"):
        return np.broadcast_to(evaluate(formula, leaf), (len(X), len(X)))


def test_cancellation_shows():
    X = np.array([[0.0], [1.0]])
    _, near = gram_with_error(pair.xx + pair.yy - 2 * pair.dot, X)
    _, far = gram_with_error(pair.xx + pair.yy - 2 * pair.dot, X + 1e6)
    assert near.max() < 1e-14 and far.max() > 1e-5


def test_comparisons_are_taken_as_they_are():
    _, E = gram_with_error(pair.sqdist <= 1, np.array([[1.0], [2.0], [3.0]]))
    assert not E.any()


def test_a_root_near_zero_loses_half_of_the_digits():
    _, E = gram_with_error(sqrt(pair.xx + pair.yy - 2 * pair.dot), np.array([[1.0], [1.0]]))
    assert 1e-9 < E.max() < 1e-6


def test_two_sets_of_points():
    K, _ = gram_with_error(pair.dot, np.eye(3), np.ones((2, 3)))
    np.testing.assert_array_equal(K, np.ones((3, 2)))


def test_frobenius():
    assert frobenius(np.array([[3.0, 4.0]])) == 5
    assert frobenius(np.full((2, 2), 1e300)) == pytest.approx(2e300)
    assert frobenius(np.full((2, 2), 1e-300)) == pytest.approx(2e-300)
    assert frobenius(np.zeros((2, 2))) == 0
    np.testing.assert_allclose(frobenius(np.stack([np.eye(4), 2 * np.eye(4)])), [2, 4])
