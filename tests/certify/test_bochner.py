"""Spectral densities: formulas against numerical transforms, numerical transforms against their error."""

from math import pi, sqrt

import numpy as np
import pytest

from mercer import (
    BSpline,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Periodic,
    Radial,
    RationalQuadratic,
    Spectral,
    Wendland,
)
from mercer.certify.bochner import density, radial_profile, transform
from mercer.kernels import fixed
from mercer.kernels.formula.expression import absolute, exp, maximum
from mercer.kernels.formula.expression import sqrt as root

OMEGA = np.array([0.0, 0.3, 1.0, 3.0, 7.0])


class Formula(Kernel):
    function = fixed(None)

    def formula(self, pair):
        return self.function(pair)


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(sigma=1.3),
        Gaussian(gamma=0.3),
        Laplacian(0.7, norm=2),
        Matern(1.5, 2.0),
        Matern(1.2, 0.7),
        RationalQuadratic(4.0, 0.8),
        2 * Gaussian(sigma=1.0) + Matern(2.5),
    ],
    ids=repr,
)
def test_formulas_against_transforms(kernel, dim):
    v = density(kernel, dim)
    assert v.is_exact and not v.is_product
    values, errors = transform(radial_profile(kernel), OMEGA, dim)
    assert (abs(v(OMEGA) - values) <= errors + 1e-14 * values[0]).all()
    if not isinstance(kernel, RationalQuadratic):  # whose tail is heavy in five dimensions
        np.testing.assert_allclose(values, v(OMEGA), rtol=0, atol=1e-9 * values[0])


def test_the_densities_of_the_notes():
    np.testing.assert_allclose(density(Laplacian(1.0))(OMEGA), sqrt(2 / pi) / (1 + OMEGA**2), rtol=1e-14)
    np.testing.assert_allclose(density(Gaussian(1.0))(OMEGA), np.exp(-(OMEGA**2) / 2), rtol=1e-14)
    cauchy = density(RationalQuadratic(1.0, sqrt(0.5)))  # 1/(1 + r²)
    np.testing.assert_allclose(cauchy(OMEGA), sqrt(pi / 2) * np.exp(-OMEGA), rtol=1e-13)
    heavy = density(RationalQuadratic(0.4, 1.0))
    assert heavy(0.0) == np.inf and np.isfinite(heavy(1e-9))


def test_products_over_coordinates():
    flat = np.sinc(OMEGA / (2 * pi)) ** 4 / sqrt(2 * pi)
    np.testing.assert_allclose(density(BSpline())(OMEGA), flat, rtol=1e-13)
    v = density(Laplacian(1.0), dim=2)
    assert v.is_product
    assert v.at([[1.0, 2.0]])[0] == pytest.approx((2 / pi) / (2 * 5))
    product = density(Spectral(), dim=3)
    assert product.at([[0.0, 1.0, 2.0]])[0] == pytest.approx((2 / pi) ** 1.5 / 10)
    np.testing.assert_allclose(density(Spectral((1.0, 3.0)))(OMEGA), 1 / (1 + 3 * OMEGA**2), rtol=1e-14)


def test_numerical_transforms():
    hat = density(Formula(lambda pair: maximum(1 - root(pair.sqdist), 0)))
    assert not hat.is_exact
    exact = np.sinc(OMEGA / (2 * pi)) ** 2 / sqrt(2 * pi)
    np.testing.assert_allclose(hat(OMEGA), exact, rtol=0, atol=1e-13)
    assert (abs(hat(OMEGA) - exact) <= hat.error(OMEGA)).all()
    slow = density(Formula(lambda pair: 1 / (1 + pair.sqdist)))
    exact = sqrt(pi / 2) * np.exp(-OMEGA)
    assert (abs(slow(OMEGA) - exact) <= slow.error(OMEGA)).all()
    assert slow.error(1.0) < 1e-2
    # not a function of ‖x - x'‖, but of x - x' on the line
    line = density(Formula(lambda pair: exp(-2 * pair.sum(lambda a, b: absolute(a - b)))))
    np.testing.assert_allclose(line(OMEGA), density(Laplacian(2.0))(OMEGA), rtol=0, atol=1e-12)


def test_a_density_takes_numbers_and_arrays():
    v = density(Gaussian(1.0))
    assert isinstance(v(1.0), float) and isinstance(v.error(1.0), float)
    assert v(np.ones((2, 3))).shape == (2, 3) and v(-1.0) == v(1.0)
    assert v.at([0.0, 1.0]).shape == (2,)
    with pytest.raises(ValueError, match="rows of 2 numbers"):
        density(Gaussian(1.0), 2).at([0.0, 1.0])


@pytest.mark.parametrize(
    ("kernel", "dim", "message"),
    [
        (Linear(), 1, "not known to be a function of x - x'"),
        (BSpline() * Gaussian(1.0), 2, "in ℝ\\^2 no density can be computed"),
        (Gaussian(sigma="median"), 1, "waits for data"),
        (Gaussian(sigma=[1.0, 2.0]) * Linear(), 2, "one length scale per column"),
    ],
)
def test_kernels_without_a_density(kernel, dim, message):
    with pytest.raises(ValueError, match=message):
        density(kernel, dim)


@pytest.mark.parametrize("kernel", [Periodic(), Radial(dim=1), Formula(lambda pair: 1 + pair.sqdist * 0.0)])
def test_kernels_that_do_not_fall_off(kernel):
    with pytest.raises(ValueError, match=r"falls too slowly|not known to be"):
        density(kernel)(1.0)


def test_wendland_in_its_own_dimension_is_positive():
    omega = np.linspace(0, 60, 200)
    for s in (0, 1, 2):
        v = density(Wendland(smoothness=s, dim=3), dim=3)
        assert (v(omega) > -v.error(omega)).all()
