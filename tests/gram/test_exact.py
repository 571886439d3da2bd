"""Kernel values with 106 bits, against fractions."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from mercer import Gaussian, Linear, Polynomial
from mercer.gram.exact import exact_values
from mercer.runtime.twofold import UNIT


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(3, c=1.0), Polynomial(5, c=0.0, gamma=0.3)])
def test_values_are_right_to_100_bits(rng, kernel):
    X = rng.normal(size=(6, 3)) * [1e9, 1.0, 1e-6]
    high, low = exact_values(kernel, X, np.array([4, 1, 2]))
    gamma, c, p = (Fraction(getattr(kernel, name, 0)) for name in ("gamma", "c", "degree"))
    for a, i in enumerate([4, 1, 2]):
        for b, j in enumerate([4, 1, 2]):
            terms = [Fraction(x) * Fraction(y) for x, y in zip(X[i].tolist(), X[j].tolist(), strict=True)]
            right, size = sum(terms), sum(map(abs, terms))
            if p:
                right, size = (gamma * right + c) ** int(p), (gamma * size + c) ** int(p)
            assert abs(Fraction(high[a, b]) + Fraction(low[a, b]) - right) <= 64 * Fraction(UNIT) * size


def test_where_there_is_no_such_arithmetic():
    X, all_of_them = np.eye(2), np.arange(2)
    assert exact_values(Gaussian(1.0), X, all_of_them) is None
    assert exact_values(Linear() + Linear(), X, all_of_them) is None
    assert exact_values(Linear(), sparse.csr_array(X), all_of_them) is None
    assert exact_values(Polynomial(5), 1e60 * X, all_of_them) is None  # it overflows
