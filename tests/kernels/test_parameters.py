"""Parameters: what is refused and with which words, what set_params may do, and that nothing else may."""

import copy
import re

import numpy as np
import pytest

from mercer import (
    BallIndicator,
    BSpline,
    ConditionalExpectation,
    Constant,
    FromFunction,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    Sigmoid,
    Wendland,
)
from mercer.errors import InputError
from mercer.kernels import choice, fixed, nonnegative, positive, real, whole
from mercer.kernels.compose import Mapped, OnColumns, PolynomialOf, Power, Product, Scaled, Sum
from mercer.kernels.formula.expression import exp


def refused(action, text, error=InputError):
    with pytest.raises(error) as caught:
        action()
    assert str(caught.value) == text


# --- refusals, word for word ---------------------------------------------------------------------------

SIGMA = "sigma must be positive, got {}: pass a positive number, or 'median' to take it from the data"
GAMMA = (
    "gamma must be positive, got {}: pass a positive number, "
    "or 'scale' to take it from the data, or 'auto' to take it from the data"
)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (-0.5, "-0.5"),
        (0, "0"),
        (0.0, "0.0"),
        (np.nan, "nan"),
        (np.inf, "inf"),
        (-np.inf, "-inf"),
        ("wide", "'wide'"),
        ("scale", "'scale'"),
        (True, "True"),
        (1j, "1j"),
        ({}, "{}"),
        ([], "[]"),
        ([1.0, -1.0], "[1.0, -1.0]"),
        ([1.0, np.nan], "[1.0, nan]"),
        ([[1.0], [2.0]], "[[1.0], [2.0]]"),
        (["a"], "['a']"),
        (np.array(1.0), "array(1.)"),
    ],
    ids=str,
)
def test_sigma(value, shown):
    refused(lambda: Gaussian(sigma=value), SIGMA.format(shown))


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: Gaussian(gamma=-1), GAMMA.format("-1")),
        (lambda: Gaussian(gamma="median"), GAMMA.format("'median'")),
        (lambda: Laplacian(gamma=None), GAMMA.format("None")),
        (lambda: Constant(-1.0), "c must be non-negative, got -1.0: pass a number that is zero or more"),
        (lambda: Polynomial(c=np.nan), "c must be non-negative, got nan: pass a number that is zero or more"),
        (
            lambda: Polynomial(degree=2.5),
            "degree must be a whole number of at least 1, got 2.5: pass 1, 2, 3, …",
        ),
        (lambda: Polynomial(0), "degree must be a whole number of at least 1, got 0: pass 1, 2, 3, …"),
        (lambda: Sigmoid(nu=np.inf), "nu must be a finite number, got inf: pass a real number"),
        (lambda: Laplacian(norm=3), "norm must be one of 1, 2, 'l1', 'l2', got 3: pass one of them"),
        (lambda: Laplacian(norm=True), "norm must be one of 1, 2, 'l1', 'l2', got True: pass one of them"),
        (lambda: Wendland(smoothness="1"), "smoothness must be one of 0, 1, 2, got '1': pass one of them"),
        (
            lambda: BSpline(degree=2),
            "degree must be odd, got 2: a B-spline of even degree is not a kernel; pass 3",
        ),
        (
            lambda: Gaussian(1.0, 0.5),
            "Gaussian takes sigma or gamma, got sigma=1.0 and gamma=0.5: "
            "they say the same thing, gamma = 1 / (2 sigma**2); pass one of them",
        ),
        (lambda: Matern(nu=0), "nu must be positive, got 0: pass a positive number"),
        (lambda: Matern(nu=[1.0, 2.0]), "nu must be positive, got [1.0, 2.0]: pass a positive number"),
        (lambda: BallIndicator([1.0]), "radius must be positive, got [1.0]: pass a positive number"),
        (lambda: -1 * Linear(), "scale must be non-negative, got -1: pass a number that is zero or more"),
        (
            lambda: Linear() ** -1,
            "exponent must be non-negative, got -1: pass a number that is zero or more",
        ),
        (
            lambda: Linear().polynomial([1.0, -2.0]),
            "coefficients must be a non-empty list of numbers that are zero or more, got [1.0, -2.0]: "
            "pass [c0, c1, c2, …]",
        ),
        (
            lambda: Linear().polynomial([]),
            "coefficients must be a non-empty list of numbers that are zero or more, got []: "
            "pass [c0, c1, c2, …]",
        ),
        (
            lambda: Linear().polynomial("abc"),
            "coefficients must be a non-empty list of numbers that are zero or more, got 'abc': "
            "pass [c0, c1, c2, …]",
        ),
        (
            lambda: Linear().polynomial(["a"]),
            "coefficients must be a non-empty list of numbers that are zero or more, got ['a']: "
            "pass [c0, c1, c2, …]",
        ),
        (
            lambda: Scaled(1.0, "rbf"),
            "kernel must be a kernel, got 'rbf': pass an object such as Gaussian(sigma=1.0)",
        ),
        (
            lambda: Linear().on(),
            "columns must be a non-empty list of column positions or names, got (): pass e.g. [0, 1]",
        ),
        (
            lambda: Linear() @ 3,
            "function must be a function or an object with transform, got 3: "
            "pass φ such that φ(X) is an array with one row per point",
        ),
        (
            lambda: FromFunction(3),
            "function must be a function of two objects, got 3: pass f such that f(x, y) is a number",
        ),
        (
            lambda: Precomputed([[1.0, 2.0]]),
            "matrix must be a square matrix, got [[1.0, 2.0]]: pass K",
        ),
        (
            lambda: ConditionalExpectation(3),
            "mixture must be a fitted mixture or a function, got 3: "
            "pass e.g. GaussianMixture(3).fit(X), or a function X ↦ p(x|c)",
        ),
        (
            lambda: ConditionalExpectation(np.exp, weights=[0.5, -0.5]),
            "weights must be a list of numbers that are zero or more, got [0.5, -0.5]",
        ),
    ],
)
def test_refusals(build, text):
    refused(build, text)


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (
            lambda: Gaussian(width=1.0),
            "Gaussian: got an unexpected keyword argument 'width'; its parameters are: sigma, gamma",
        ),
        (
            lambda: Gaussian(1.0, 2.0, 3.0),
            "Gaussian: too many positional arguments; its parameters are: sigma, gamma",
        ),
        (
            lambda: Gaussian(1.0, sigma=2.0),
            "Gaussian: multiple values for argument 'sigma'; its parameters are: sigma, gamma",
        ),
        (lambda: Linear(1.0), "Linear: too many positional arguments; its parameters are: none"),
        (lambda: Sum(Linear(), left=Linear()), "Sum has no parameter 'left': its terms are k1, k2, …"),
    ],
)
def test_wrong_calls_are_type_errors(build, text):
    refused(build, text, TypeError)


def test_a_combination_is_of_kernels():
    refused(lambda: Sum(Linear(), 1.0), "Sum combines kernels, got 1.0: wrap a number in Constant")
    with pytest.raises(InputError, match="Product needs kernels to combine: pass at least one"):
        Product()


def test_differences_and_negatives_are_refused():
    text = (
        "the difference of two kernels is not a kernel, and the negative of one is none: "
        "kernels may be added, multiplied, and scaled by numbers that are zero or more, got - on Linear()"
    )
    for action in (
        lambda: Linear() - Gaussian(1.0),
        lambda: Linear() - 1,
        lambda: 1 - Linear(),
        lambda: -Linear(),
    ):
        refused(action, text)


def test_words_wait_for_data():
    kernel = Gaussian(sigma="median")
    refused(
        kernel.expression,
        "sigma='median' of Gaussian(sigma='median') waits for data: call kernel.resolve(X) first, "
        "or fit an estimator",
    )
    refused(
        lambda: kernel([[0.0]], [[1.0]]),
        "Gaussian(sigma='median') takes parameters from the data, and here are two sets: "
        "say which with kernel.resolve(X)",
    )


def test_length_scales_must_match_the_columns():
    refused(
        lambda: Gaussian(sigma=[1.0, 2.0])(np.ones((3, 4))),
        "the kernel has 2 length scales but the data have 4 columns: "
        "give one length scale per column, or a single number",
    )


# --- what is accepted, and kept as it is -----------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [1, 2.5, np.float32(0.5), np.int64(3), "median", [1.0, 2.0], (1, 2), np.array([0.5, 1.5])],
    ids=repr,
)
def test_values_are_checked_not_converted(value):
    assert Gaussian(sigma=value).sigma is value
    assert Gaussian(sigma=value).get_params()["sigma"] is value


def test_defaults():
    assert Polynomial().get_params() == {"degree": 3, "c": 1.0, "gamma": 1.0}
    assert Gaussian().get_params() == {"sigma": None, "gamma": None}
    assert repr(Gaussian()) == "Gaussian(sigma=1.0)"


def test_whole_numbers_may_be_floats():
    assert Polynomial(2.0)([[1.0]], [[2.0]])[0, 0] == 9.0


# --- set_params --------------------------------------------------------------------------------------------


def test_set_params_changes_in_place_and_returns_the_kernel():
    kernel = Gaussian(1.0)
    assert kernel.set_params(sigma=2.0) is kernel and kernel == Gaussian(2.0)
    assert kernel.set_params(sigma=None, gamma=0.5) == Gaussian(gamma=0.5)


def test_set_params_reaches_nested_kernels():
    kernel = Gaussian(1.0) + 2 * Polynomial(2).normalized()
    kernel.set_params(k1__sigma=3.0, k2__scale=4.0, k2__kernel__kernel__degree=5)
    assert kernel == Gaussian(3.0) + 4.0 * Polynomial(5).normalized()
    kernel.set_params(k1=Linear())
    assert kernel == Linear() + 4.0 * Polynomial(5).normalized()


def test_unknown_names_are_refused():
    refused(
        lambda: Gaussian(1.0).set_params(width=2.0),
        "Gaussian has no parameter 'width': it has sigma, gamma",
        ValueError,
    )
    refused(
        lambda: (Gaussian(1.0) + Linear()).set_params(k3__sigma=2.0),
        "Sum has no parameter 'k3': it has k1, k2",
        ValueError,
    )
    refused(
        lambda: (Gaussian(1.0) + Linear()).set_params(k1__width=2.0),
        "Gaussian has no parameter 'width': it has sigma, gamma",
        ValueError,
    )
    with pytest.raises(ValueError, match="sigma"):  # a number has no parameters of its own
        Gaussian(1.0).set_params(sigma__deeper=1.0)


@pytest.mark.parametrize(
    ("kernel", "change"),
    [
        (Gaussian(1.0), {"sigma": -1.0}),
        (Gaussian(1.0), {"gamma": 2.0}),
        (Gaussian(1.0), {"sigma": 2.0, "gamma": 1.0}),
        (Gaussian(1.0), {"sigma": 2.0, "width": 1.0}),
        (Polynomial(2), {"c": 5.0, "degree": -1}),
        (BSpline(3), {"degree": 4}),
        (Gaussian(1.0) + Linear(), {"k1": "rbf"}),
        (Gaussian(1.0) + Linear(), {"k1": 3.0}),
        (Gaussian(1.0) + Polynomial(2), {"k1__sigma": 2.0, "k2__degree": 0}),
        (2.0 * Gaussian(1.0), {"scale": 3.0, "kernel__sigma": -1.0}),
        (Gaussian(1.0).centered([[0.0]]), {"kernel": 3}),
    ],
    ids=repr,
)
def test_a_refused_change_leaves_the_kernel_as_it_was(kernel, change):
    before = copy.deepcopy(kernel)
    with pytest.raises((ValueError, TypeError)):
        kernel.set_params(**change)
    assert kernel == before and repr(kernel) == repr(before)


# --- immutability ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sigma", "gamma", "anything", "__dict__"])
def test_kernels_are_immutable(name):
    kernel = Gaussian(1.0)
    with pytest.raises(AttributeError) as caught:
        setattr(kernel, name, 2.0)
    assert str(caught.value) == (
        f"kernels are immutable: build Gaussian({name}=…) anew, or use set_params({name}=…)"
    )
    with pytest.raises(AttributeError, match="kernels are immutable"):
        delattr(kernel, name)
    assert kernel == Gaussian(1.0)


# --- declaring one's own -----------------------------------------------------------------------------------


class Own(Kernel):
    a: float = positive(2.0, words=("auto",))
    b: float = nonnegative(0.0)
    c: float = real(-1.0)
    d: int = whole(3, minimum=2)
    e: str = choice("up", ("up", "down"))
    f: object = fixed(None, "even", lambda v: v is None or v % 2 == 0, "an even number", optional=True)

    @property
    def rate(self):
        return 1 / self.a**2

    def shifted(self, s):
        return s + self.b

    def formula(self, pair):
        sign = 1.0 if self.e == "up" else 2.0
        return exp(-self.shifted(pair.sqdist) * self.rate) * sign


class Louder(Own):
    volume: float = positive(10.0)

    def formula(self, pair):
        return super().formula(pair) * self.volume


def test_own_parameters_have_a_signature_and_messages():
    assert Own().get_params() == {"a": 2.0, "b": 0.0, "c": -1.0, "d": 3, "e": "up", "f": None}
    assert Own(1.0, e="down").e == "down"
    refused(
        lambda: Own(a=0),
        "a must be positive, got 0: pass a positive number, or 'auto' to take it from the data",
    )
    refused(lambda: Own(b=-1), "b must be non-negative, got -1: pass a number that is zero or more")
    refused(lambda: Own(c="x"), "c must be a finite number, got 'x': pass a real number")
    refused(lambda: Own(d=1), "d must be a whole number of at least 2, got 1: pass 2, 3, 4, …")
    refused(lambda: Own(e="left"), "e must be one of 'up', 'down', got 'left': pass one of them")
    refused(lambda: Own(f=3), "f must be even, got 3: pass an even number")


def test_properties_and_methods_of_parameters_stay_formulas():
    """A derived parameter is differentiated through."""
    x, y = np.array([[0.0]]), np.array([[1.5]])
    assert Own(a=2.0, b=0.5)(x, y)[0, 0] == pytest.approx(np.exp(-(2.25 + 0.5) / 4))
    slope = Own(a=2.0, b=0.5).derivative("a")(x, y)[0, 0]
    assert slope == pytest.approx(np.exp(-2.75 / 4) * 2 * 2.75 / 8)


def test_a_subclass_inherits_parameters_and_adds_its_own():
    assert list(Louder().get_params()) == ["a", "b", "c", "d", "e", "f", "volume"]


def test_a_formula_may_build_on_the_one_it_inherits():
    x, y = np.array([[0.0]]), np.array([[1.5]])
    assert Louder(a=2.0)(x, y)[0, 0] == pytest.approx(10 * Own(a=2.0)(x, y)[0, 0])


def test_a_kernel_without_formula_says_so():
    class Nothing(Kernel):
        pass

    with pytest.raises(NotImplementedError, match=re.escape("Nothing must define formula(self, pair)")):
        Nothing()([[0.0]])


def test_a_formula_that_is_no_formula():
    class Words(Kernel):
        def formula(self, pair):
            return "similar"

    with pytest.raises(TypeError, match="a formula combines numbers and pair quantities, got 'similar'"):
        Words()([[0.0]])


def test_fixed_parameters_of_composites_are_kept_as_given():
    columns, function, coefficients = (0, 1), np.exp, [1.0, 2.0]
    assert OnColumns(Linear(), columns).columns is columns
    assert Mapped(Linear(), function).function is function
    assert PolynomialOf(Linear(), coefficients).coefficients is coefficients
    assert Power(Linear(), 3).exponent == 3


def test_the_declarations_are_public_and_read_only():
    assert list(Gaussian.parameters) == list(Gaussian().get_params(deep=False))
    assert Gaussian(sigma=2.0).parameters["gamma"].words == ("scale", "auto")
    with pytest.raises(TypeError):
        Gaussian.parameters["sigma"] = positive(1.0)
    assert not any(hasattr(kind, "_parameters") for kind in Kernel.registry)
