"""∂k/∂θ for every numeric parameter of every kernel, against central differences."""

import re

import numpy as np
import pytest
from sklearn.base import clone

from mercer import (
    BSpline,
    ConditionalExpectation,
    Gaussian,
    Gram,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    Wendland,
    config,
)
from mercer.errors import InputError
from mercer.gram.backends import BACKENDS
from mercer.kernels.parameters import is_vector
from mercer.testing import check_kernel, example_kernels, example_points

SCALES = [0.8, 2.0, 1.3]
REFERENCE = np.array([[0.5, -1.0, 0.25], [1.5, 0.75, -0.5], [-0.5, 0.0, 2.0]])


def owner(kernel, path):
    """The kernel whose parameter it is; None where one on the way is not worked out by a formula."""
    for step in path:
        if hasattr(kernel, "pairs") or hasattr(kernel, "features"):
            return None
        kernel, holder = {**kernel.get_params(deep=False), **kernel.children()}[step], kernel
    return holder


def differentiable(kernel):
    """The names of the parameters that reach the formula as numbers: sigma, k1__sigma, sigma[0], …"""
    for name, value in kernel.get_params().items():
        path = name.split("__")
        holder = owner(kernel, path)
        if holder is None:
            continue
        declared = holder.parameters.get(path[-1])
        if declared is None or not declared.symbolic or value is None or isinstance(value, str | Kernel):
            continue
        if np.any(np.asarray(value) == 0):
            continue  # the edge of what is allowed: no central difference
        if path[-1] == "degree" or (path[-1] == "exponent" and float(value).is_integer()):
            continue  # whole numbers
        if is_vector(value):
            yield from (f"{name}[{j}]" for j in range(len(value)))
        else:
            yield name


def moved(kernel, name, step):
    """The kernel with one parameter changed by a step."""
    name, _, index = name.partition("[")
    value = kernel.get_params()[name]
    if index:
        value = [float(v) for v in value]
        value[int(index[:-1])] += step
    else:
        value = float(value) + step
    return clone(kernel).set_params(**{name: value})


def check_derivative(kernel, name, X, Y):
    """Central differences of the oracle: an error of h²/6 · k''' and of ε/h · k from rounding."""
    h = 1e-5
    with config(backend="numpy"):
        up, down = (Gram(moved(kernel, name, step), X, Y).dense() for step in (h, -h))
    wanted = (up - down) / (2 * h)
    found = kernel.derivative(name)
    atol = 1e-8 * (np.abs(wanted).max() + np.abs(up).max())
    np.testing.assert_allclose(found(X, Y), wanted, rtol=1e-6, atol=atol)


PLAIN = [
    k.resolve(example_points(k, 9, np.random.default_rng(0)))
    for k in example_kernels()
    if k.children() or k.is_resolved()
]
MORE = [
    Gaussian(sigma=SCALES).normalized() + 2 * Laplacian(gamma=[0.5, 0.7, 0.9]),
    Gaussian(sigma=SCALES[:2]).on(0, 2) * Matern(1.5, [1.1]).on(1),
    (Gaussian(sigma=SCALES) @ np.tanh) ** 1.5,
    Gaussian(sigma=SCALES).centered(REFERENCE),
    Gaussian(sigma=SCALES) + Matern(2.5, SCALES),  # two kernels with equal length scales
    Periodic(2.5, 1.2).centered(REFERENCE),
    BSpline(3, 1.2).normalized(),
    (BSpline(3, 1.2) + Linear()).normalized(),
    Matern(0.7, SCALES) * Polynomial(2, c=0.3, gamma=0.7),
    0.0 * Gaussian(1.0) + Linear(),
]
CASES = [(kernel, names) for kernel in PLAIN + MORE if (names := list(differentiable(kernel)))]


@pytest.mark.parametrize(("kernel", "names"), CASES, ids=[f"{k!r}"[:60] for k, _ in CASES])
@pytest.mark.parametrize("backend", [name for name in BACKENDS if name != "numba"], indirect=True)
def test_derivative(kernel, names, backend):
    rng = np.random.default_rng(1)
    X, Y = example_points(kernel, 7, rng), example_points(kernel, 5, rng)
    for name in names:
        check_derivative(kernel, name, X, Y)


@pytest.mark.sample(13)  # each derivative compiles code of its own
@pytest.mark.parametrize(
    ("kernel", "name"),
    [(k, name) for k, names in CASES for name in names],
    ids=lambda value: f"{value!r}"[:60],
)
@pytest.mark.parametrize("backend", ["numba"], indirect=True)
def test_compiled_derivative(kernel, name, backend):
    rng = np.random.default_rng(1)
    X, Y = example_points(kernel, 7, rng), example_points(kernel, 5, rng)
    check_derivative(kernel, name, X, Y)


def test_there_is_something_to_differentiate():
    assert sum(len(names) for _, names in CASES) > 90
    assert {type(kernel).__name__ for kernel, _ in CASES} >= {
        "Gaussian", "Laplacian", "Matern", "RationalQuadratic", "Periodic", "Wendland", "BSpline",
        "Polynomial", "Sigmoid", "ChiSquared", "Constant", "Sum", "Product", "Scaled", "Power",
        "Normalized", "Centered",
        "OnColumns", "Mapped",
    }  # fmt: skip


def test_by_hand(backend):
    k, d = np.exp(-1 / 8), 1.0
    assert Gaussian(sigma=2.0).derivative("sigma")([[0.0]], [[d]])[0, 0] == pytest.approx(k * d / 8)
    k = np.exp(-3.0)
    assert Laplacian(gamma=1.5).derivative("gamma")([[0.0]], [[2.0]])[0, 0] == pytest.approx(-2 * k)


def test_second_derivatives(backend):
    """∂²/∂σ² exp(-s/2σ²) = k (s²/σ⁶ - 3s/σ⁴)."""
    second = Gaussian(sigma=2.0).derivative("sigma").derivative("kernel__sigma")
    s, sigma = 9.0, 2.0
    k = np.exp(-s / (2 * sigma**2))
    assert second([[0.0]], [[3.0]])[0, 0] == pytest.approx(k * (s**2 / sigma**6 - 3 * s / sigma**4))


def test_derivatives_at_points_that_coincide_are_finite(backend):
    X = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    for kernel, name in [
        (Matern(0.5), "length_scale"),
        (Matern(1.2), "length_scale"),
        (Matern(0.4), "length_scale"),
        (Laplacian(1.0, 2), "gamma"),
        (Wendland(2.0), "radius"),
        (BSpline(3, 0.4), "scale"),
        (Linear().normalized() * Gaussian(1.0), "k2__sigma"),
    ]:
        K = kernel.derivative(name)(X)
        assert np.isfinite(K).all(), kernel
        np.testing.assert_array_equal(K, K.T)


def test_float32(rng):
    X = rng.normal(size=(20, 3))
    kernel = Gaussian(1.0) * Matern(2.5, 1.5) + Periodic()
    for name in ("k1__k1__sigma", "k1__k2__length_scale", "k2__period"):
        with config(dtype="float32"):
            single = kernel.derivative(name)(X)
        double = kernel.derivative(name)(X)
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, double, atol=512 * np.finfo(np.float32).eps * np.abs(double).max())


def test_a_derivative_is_a_kernel_object():
    kernel = Gaussian(2.0).derivative("sigma")
    assert repr(kernel) == "Derivative(kernel=Gaussian(sigma=2.0), name='sigma')"
    assert kernel == Gaussian(2.0).derivative("sigma") != Gaussian(3.0).derivative("sigma")
    check_kernel(kernel)


@pytest.mark.parametrize(
    ("kernel", "name", "text"),
    [
        (
            Gaussian(1.0),
            "width",
            "Gaussian(sigma=1.0) has no derivative by 'width': it can be differentiated by sigma",
        ),
        (
            Gaussian(1.0),
            "gamma",
            "gamma of Gaussian(sigma=1.0) is not given: differentiate by the one that is",
        ),
        (Gaussian([1.0, 2.0]), "sigma", "sigma has one value per column: ask for sigma[0] … sigma[1]"),
        (Gaussian([1.0, 2.0]), "sigma[2]", "sigma has one value per column: ask for sigma[0] … sigma[1]"),
        (
            Gaussian(1.0) + Linear(),
            "k3__sigma",
            "Gaussian(sigma=1.0) + Linear() has no derivative by 'k3__sigma': "
            "it can be differentiated by k1__sigma",
        ),
        (Gaussian(1.0), "sigma[0][1]", "name must be a parameter's name, got 'sigma[0][1]': pass 'sigma'"),
    ],
)
def test_names_that_are_not_there(kernel, name, text):
    with pytest.raises(InputError) as caught:
        kernel.derivative(name).expression()
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (Matern(1.2), "nu"),
        (Laplacian(), "norm"),
        (Wendland(), "smoothness"),
        (BSpline(), "degree"),
        (Polynomial(3), "degree"),
        (Linear() ** 2, "exponent"),
        (Linear().polynomial([1.0, 2.0]), "coefficients[0]"),
        (ConditionalExpectation(np.exp, [0.5, 0.5]), "weights[0]"),
        (Linear().on(0, 1), "columns[0]"),
        (Gaussian(1.0) + Linear(), "k1"),
        (Linear() @ np.exp, "function"),
    ],
    ids=repr,
)
def test_parameters_that_shape_the_formula_have_no_derivative(kernel, name):
    """Zero, silently, would send an optimiser nowhere."""
    with pytest.raises(ValueError, match=re.escape(name.partition("[")[0])):
        kernel.derivative(name)(np.array([[0.5, 1.0], [1.5, 2.0]]))


def test_words_wait_for_data_here_too():
    with pytest.raises(InputError, match="waits for data"):
        Gaussian("median").derivative("sigma").expression()
