"""Single points where a list of points may stand: k(x, y) and f(x) as they are written on paper."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from mercer import (
    SVC,
    Delta,
    Expansion,
    FromFunction,
    Gaussian,
    Intersection,
    KernelRidge,
    Linear,
    Min,
    Polynomial,
    Precomputed,
    Spectrum,
    WeisfeilerLehman,
)
from mercer.errors import InputError, InputTypeError
from mercer.kernels.graphs.graph import Graph

X = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0]])


def test_two_vectors_have_a_number():
    k = Polynomial(2, c=0)
    value = k([1, 1], [-1, 1])
    assert isinstance(value, float) and value == 0.0
    assert k((1, 1), np.array([1.0, 1.0])) == 4.0
    assert k(pd.Series([1.0, 1.0]), [1, 1]) == 4.0
    assert Min()([1, 2], [2, 1]) == 2.0


def test_numbers_are_points_of_the_line():
    assert Gaussian(sigma=1.0)(0.0, 1.0) == pytest.approx(np.exp(-0.5), rel=1e-15)
    assert Linear()(2, np.float64(3)) == 6.0


def test_one_point_against_many_is_a_row_or_a_column():
    k = Gaussian(sigma=1.0)
    K = k(X)
    assert np.array_equal(k(X[0], X), k(X[:1], X)[0])
    assert np.array_equal(k(X.tolist(), [1, 1]), k(X, X[:1])[:, 0])
    assert np.allclose(k(X[0], X), K[0], rtol=1e-15)
    assert k([1.0, 1.0], sparse.csr_array(X)).shape == (3,)


def test_a_table_of_one_row_stays_a_table():
    assert Linear()([[1, 1]], [[2, 3]]).shape == (1, 1)
    assert Linear()([[1, 1]], X).shape == (1, 3)


@pytest.mark.parametrize("other", [X, None])
def test_a_flat_list_that_is_no_point_is_refused_as_before(other):
    with pytest.raises(InputError, match=r"must be 2-D, one row per point, got shape \(3,\)"):
        Gaussian()([1, 2, 3], other)


def test_single_objects():
    assert Spectrum(2)("abc", "abd") == 1.0
    assert Spectrum(2)("abc", ["abd", "bcd"]).tolist() == [1.0, 1.0]
    assert Delta()("red", "red") == 1.0
    assert Intersection()({"to": 2}, {"to": 1, "be": 1}) == 1.0
    assert Precomputed([[2.0, 1.0], [1.0, 3.0]])(0, 1) == 1.0
    with pytest.warns(UserWarning, match="slow path"):
        assert FromFunction(lambda a, b: a * b)(3, 4) == 12.0
    ring = Graph([[0, 1], [1, 0]], labels="CO")
    assert WeisfeilerLehman()(ring, ring) == WeisfeilerLehman()([ring])[0, 0]


def test_lists_of_objects_mean_what_they_did():
    assert Delta()([1, 1], [-1, 1]).tolist() == [[0.0, 1.0], [0.0, 1.0]]
    assert Intersection()([["a", "b"], ["a"]], [["a"]]).shape == (2, 1)
    with pytest.warns(UserWarning, match="slow path"):
        assert FromFunction(lambda a, b: a * b)([1, 2], [3, 4]).shape == (2, 2)


def test_what_can_be_read_once_is_no_point():
    with pytest.raises(InputTypeError, match="pass a list"):
        Spectrum(2)(iter(["ab"]), ["ab"])


def test_an_expansion_at_one_point():
    f = Expansion(Polynomial(2), X, [1.0, -2.0, 0.5], 0.25)
    assert isinstance(f([2, 3]), float)
    assert f([2, 3]) == f([[2, 3]])[0]
    several = Expansion(Polynomial(2), X, np.eye(3))
    assert np.array_equal(several([2, 3]), several([[2, 3]])[0])
    assert Expansion(Spectrum(2), ["ab", "bc"], [1.0, 2.0])("abc") == 3.0
    with pytest.raises(InputError, match=r"X\.reshape\(-1, 1\)"):
        f([1, 2, 3])


@pytest.mark.parametrize("kernel, points, one", [
    (Gaussian(), X, [1.0, 1.0]),
    (Spectrum(1), ["ab", "bc", "cd"], "ab"),
    (Delta(), ["red", "blue", "red"], "red"),
    (Intersection(), [{"a": 1}, {"b": 1}, {"a": 2}], {"a": 1}),
])  # fmt: skip
def test_learners_take_lists_of_points_only(kernel, points, one):
    for model in (SVC(kernel=kernel), KernelRidge(kernel=kernel)):
        model.fit(points, [0, 1, 0])
        with pytest.raises((InputError, InputTypeError, ValueError, TypeError)):
            model.predict(one)


@pytest.mark.parametrize(
    ("x", "y", "numbers"),
    [([1, 2], [1, 2, 3], "2 and 3"), ((1.0,), np.ones(2), "1 and 2"), (3.0, [1, 2], "1 and 2")],
)
def test_two_points_of_different_lengths(x, y, numbers):
    with pytest.raises(InputError, match=f"the two points have {numbers} numbers: pass points with as many"):
        Gaussian(1.0)(x, y)
