"""Strings as kernels, at the door: scikit-learn's names give scikit-learn's values."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import pairwise_kernels

from mercer import (
    ChiSquared,
    Cosine,
    FromFunction,
    Gaussian,
    Laplacian,
    Linear,
    Min,
    Polynomial,
    Precomputed,
    Sigmoid,
)
from mercer.errors import InputError
from mercer.kernels.names import NAMES, as_kernel


@pytest.mark.parametrize(
    ("name", "options", "kernel"),
    [
        ("linear", {}, Linear()),
        ("rbf", {"gamma": 0.5}, Gaussian(gamma=0.5)),
        ("rbf", {}, Gaussian(gamma="scale")),
        ("gaussian", {"gamma": "auto"}, Gaussian(gamma="auto")),
        ("poly", {"gamma": 0.5, "degree": 2, "coef0": 1.0}, Polynomial(2, 1.0, 0.5)),
        ("polynomial", {"gamma": 0.5}, Polynomial(3, 0.0, 0.5)),
        ("sigmoid", {"gamma": 0.5, "coef0": -1.0}, Sigmoid(0.5, -1.0)),
        ("laplacian", {"gamma": 0.5}, Laplacian(0.5)),
        ("cosine", {}, Cosine()),
        ("chi2", {"gamma": 0.5}, ChiSquared(0.5)),
        ("chi2", {}, ChiSquared(1.0)),
        ("min", {}, Min()),
        ("precomputed", {}, Precomputed()),
    ],
)
def test_names(name, options, kernel):
    assert as_kernel(name, **options) == kernel


def test_every_name_is_tested_above_or_below():
    assert set(NAMES) == {
        "linear", "rbf", "gaussian", "poly", "polynomial", "sigmoid", "laplacian", "cosine", "chi2", "min",
        "precomputed",
    }  # fmt: skip


@pytest.mark.parametrize(
    "name", ["linear", "rbf", "poly", "polynomial", "sigmoid", "laplacian", "cosine", "chi2"]
)
def test_the_values_are_scikit_learns(name, rng):
    X = np.abs(rng.normal(size=(6, 4)))
    options = {"gamma": 0.3, "degree": 2, "coef0": 0.7}
    np.testing.assert_allclose(
        as_kernel(name, **options)(X),
        pairwise_kernels(X, metric=name, filter_params=True, **options),
        rtol=1e-12,
    )


def test_kernels_pass_unchanged():
    kernel = Gaussian(2.0)
    assert as_kernel(kernel) is kernel


def test_functions_become_the_slow_path():
    assert as_kernel(max) == FromFunction(max)


@pytest.mark.parametrize(
    ("what", "shown"),
    [
        ("gauss", "'gauss'"),
        (None, "None"),
        (3, "3"),
        (["rbf"], "['rbf']"),
        (Gaussian, "<class 'mercer.kernels.vectors.stationary.Gaussian'>"),
    ],
)
def test_anything_else_is_refused(what, shown):
    with pytest.raises(InputError) as caught:
        as_kernel(what)
    assert str(caught.value) == (
        "kernel must be a Kernel such as Gaussian(sigma=1.0), or one of 'linear', 'rbf', 'gaussian', 'poly', "
        "'polynomial', 'sigmoid', 'laplacian', 'cosine', 'chi2', 'min', 'precomputed', got " + shown
    )


def test_bad_options_of_a_name_are_refused_in_its_own_words():
    with pytest.raises(InputError, match="gamma must be positive, got -1"):
        as_kernel("rbf", gamma=-1)
