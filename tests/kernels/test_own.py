"""Kernels of one's own: formulas that use other kernels, products, and what must not go wrong silently."""

import numpy as np
import pytest

from mercer import Expansion, Gaussian, Gram, Kernel, KernelPerceptron, Linear, Precomputed, certify, config
from mercer.errors import InputError
from mercer.kernels import fixed, real


class Difference(Kernel):
    def formula(self, pair):
        return Gaussian(1.0).expression(pair) - Gaussian(3.0).expression(pair)


class Twice(Kernel):
    a: Kernel = fixed(None)
    b: Kernel = fixed(None)

    def formula(self, pair):
        return 2 * self.a.expression(pair) + self.b.expression(pair)


class Product(Kernel):
    c: float = real(1.0)

    def formula(self, pair):
        return pair.product(lambda a, b: self.c + a * b)


def test_two_kernels_of_a_kind_in_one_formula():
    value = np.exp(-2.0) - np.exp(-4 / 18)
    np.testing.assert_allclose(Difference()([[0.0]], [[2.0]]), [[value]])
    assert certify(Difference()).verdict == "refuted"


def test_kernels_as_parameters():
    k = Twice(Gaussian(1.0), Gaussian(3.0))
    np.testing.assert_allclose(k([[0.0]], [[2.0]]), [[2 * np.exp(-2.0) + np.exp(-4 / 18)]])
    slope = k.derivative("b__sigma")([[0.0]], [[2.0]])
    np.testing.assert_allclose(slope, [[np.exp(-4 / 18) * 4 / 27]])


def test_the_slope_of_a_product_is_right_or_nan():
    X, Y = np.array([[1.0, 2.0]]), np.array([[2.0, 3.0]])
    np.testing.assert_allclose(Product().derivative("c")(X, Y), [[3.0 + 7.0]])
    assert np.isnan(Product().derivative("c")(X, [[-1.0, 3.0]])).all()  # one factor is 0, its slope is not


@pytest.mark.parametrize("backend", ["numpy", "numba", "torch", "triton"])
def test_roots_of_negative_values_are_nan_everywhere(backend):
    if backend in ("torch", "triton"):
        pytest.importorskip(backend)
    with config(backend=backend):
        K = (Linear() ** 0.5)([[1.0]], [[4.0], [-4.0], [0.0]])
    np.testing.assert_array_equal(K, [[2.0, np.nan, 0.0]])


def test_arrays_and_zero_are_no_factors():
    with pytest.raises(TypeError):
        np.array([1.0, 2.0]) * Linear()
    with pytest.raises(InputError, match="a kernel cannot be divided by zero"):
        Linear() / 0
    with pytest.raises(InputError, match="a non-empty list of column positions or names"):
        Linear().on(slice(0, 2))


@pytest.mark.parametrize(
    ("matrix", "text"),
    [
        ([[np.nan]], "matrix must be finite, got NaN or infinite kernel values"),
        ([[1j]], "matrix must hold real numbers, got complex128"),
        ([["a"]], "matrix must hold real numbers, got <U1"),
        ([[1.0, 2.0], [3.0, 4.0]], "matrix must be symmetric"),
    ],
)
def test_a_precomputed_matrix_is_checked(matrix, text):
    with pytest.raises(InputError, match=text):
        Precomputed(matrix)


def test_precomputed_within_the_algebra(rng):
    X = rng.normal(size=(30, 2))
    y = X[:, 0] > 0
    K = Linear()(X)
    plain = KernelPerceptron(2 * Linear() + Linear(), max_iter=1000).fit(X, y)
    given = KernelPerceptron(2 * Precomputed() + Precomputed(), max_iter=1000).fit(K, y)
    np.testing.assert_allclose(given.decision_function(K), plain.decision_function(X))


def test_a_function_keeps_its_kernel(rng):
    X = rng.normal(size=(5, 2))
    kernel = Gaussian(1.0)
    f = Expansion(kernel, X, np.ones(5))
    before = f(X)
    kernel.set_params(sigma=3.0)
    np.testing.assert_array_equal(f(X), before)
    np.testing.assert_allclose((1 - f / 2)(X), 1 - before / 2)
    assert Gram(kernel, X).kernel == Gaussian(3.0)
