import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.errors import InputError, MemoryBudgetError
from mercer.features.base import in_words
from mercer.features.monomials import (
    count,
    exponents,
    grow,
    homogeneous,
    weights,
)
from mercer.features.polynomial import PolynomialMap
from mercer.features.taylor import GaussianTaylorMap
from mercer.runtime.config import config

small = {"m": st.integers(1, 5), "degree": st.integers(0, 5)}


def test_the_counts_of_the_notes():
    assert count(100, 6) == 1_609_344_100
    assert count(1000, 2) == 500_500
    assert (count(0, 0), count(0, 3), count(7, 0)) == (1, 0, 1)


@given(**small)
def test_exponents_are_all_of_them_in_lexicographic_order(m, degree):
    brute = [a for a in product(range(degree, -1, -1), repeat=m) if sum(a) == degree]
    assert [tuple(a) for a in exponents(m, degree).tolist()] == brute
    assert len(brute) == count(m, degree)


@given(**small)
def test_weights_are_roots_of_multinomials(m, degree):
    squares = [
        math.factorial(degree) / math.prod(map(math.factorial, a)) for a in exponents(m, degree).tolist()
    ]
    np.testing.assert_allclose(weights(m, degree) ** 2, squares, rtol=1e-14)
    assert math.isclose(np.sum(weights(m, degree) ** 2), m**degree)  # (1 + ⋯ + 1)^d


@given(seed=st.integers(0, 2**32), **small)
def test_homogeneous_is_weights_times_monomials(m, degree, seed):
    X = np.random.default_rng(seed).normal(size=(4, m))
    monomials = np.prod(X[:, None, :] ** exponents(m, degree), axis=2)  # (n, count)
    np.testing.assert_allclose(homogeneous(X, degree), weights(m, degree) * monomials, rtol=1e-12)


@given(seed=st.integers(0, 2**32), **small)
def test_homogeneous_is_the_map_of_a_power_of_the_dot_product(m, degree, seed):
    X, Y = np.random.default_rng(seed).uniform(-1, 1, size=(2, 3, m))
    K = homogeneous(X, degree) @ homogeneous(Y, degree).T
    scale = np.outer(np.linalg.norm(X, axis=1), np.linalg.norm(Y, axis=1)).max() ** degree
    np.testing.assert_allclose(K, (X @ Y.T) ** degree, rtol=1e-12, atol=1e-13 * scale)


def test_grow_writes_into_what_it_is_given():
    X = np.array([[2.0, 3.0]])
    out = np.empty((1, 3))
    assert grow(X, X, 2, out=out) is out
    np.testing.assert_allclose(out, [[4, 6 * math.sqrt(2), 9]])


def test_a_table_of_exponents_that_does_not_fit():
    with config(memory="1MiB"), pytest.raises(MemoryBudgetError) as caught:
        exponents(100, 6)
    assert str(caught.value) == (
        "a table of the exponents of 1,609,344,100 monomials needs 1.17TiB, more than the memory budget "
        "of 1MiB: "
        "lower the degree, or raise the budget with mercer.config(memory=…)"
    )


def test_in_words():
    assert in_words(10**6) == "1,000,000"
    assert in_words(10**5000) == "1.00e+5000"


@pytest.mark.parametrize("value", [1, 1.0, np.int64(3), np.float64(2)])
def test_whole_numbers(value):
    PolynomialMap(value).check()


@pytest.mark.parametrize("value", [0, -1, 1.5, math.inf, math.nan, "2", True, None])
def test_not_whole_numbers(value):
    with pytest.raises(InputError) as caught:
        PolynomialMap(value).check()
    assert str(caught.value) == f"degree must be a whole number of at least 1, got {value!r}: pass 1, 2, 3, …"


@pytest.mark.parametrize("value", [-1, math.inf, math.nan, "2", True, None, 0.0])
def test_not_real_numbers(value):
    with pytest.raises(InputError) as caught:
        GaussianTaylorMap(value).check()
    assert str(caught.value) == f"sigma must be positive, got {value!r}: pass a positive number"
    if value == 0:
        PolynomialMap(2, value).check()
    else:
        with pytest.raises(InputError) as caught:
            PolynomialMap(2, value).check()
        assert (
            str(caught.value) == f"c must be non-negative, got {value!r}: pass a number that is zero or more"
        )
