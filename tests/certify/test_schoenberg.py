"""Which dimensions a radial kernel lives in, and what refutes it in the next."""

from math import inf

import numpy as np
import pytest
from scipy.integrate import quad

from mercer import (
    BallIndicator,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Radial,
    RationalQuadratic,
    Spectral,
    Wendland,
    certify,
    largest_dimension,
)
from mercer.certify.schoenberg import negative_frequency
from mercer.kernels import fixed
from mercer.kernels.formula.expression import exp, maximum, sqrt
from mercer.kernels.spectral.radial import sphere_wave


class Formula(Kernel):
    function = fixed(None)

    def formula(self, pair):
        return self.function(pair)


def hat(power):
    return Formula(lambda pair: maximum(1 - sqrt(pair.sqdist), 0) ** power)


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("kernel", "largest"),
    [
        (Gaussian(), inf),
        (Laplacian(norm=2), inf),
        (Matern(2.2), inf),
        (RationalQuadratic(), inf),
        (Spectral(), inf),
        (BallIndicator(), 0),
        (Wendland(dim=3), 3),
        (Wendland(dim=1, smoothness=0), 1),
        (Wendland(dim=4, smoothness=2), 5),
        (
            2 * Wendland(dim=3) + Wendland(dim=5),
            None,
        ),  # whether the sum holds in ℝ⁴ is not known to the rules
        (hat(1), 1),
        (hat(2), 3),
        (Radial([1.0, 2.0], dim=1), 1),
        (Radial(dim=4), 4),
        (Radial([0.0], dim=2), inf),
    ],
    ids=repr,
)
def test_largest_dimension(kernel, largest):
    found = largest_dimension(kernel)
    assert found == largest or (largest is None and found in (None, 3))


def test_largest_dimension_is_asked_of_vectors():
    from mercer import FromFunction

    with pytest.raises(ValueError, match="no kernel on vectors"):
        largest_dimension(FromFunction(len))


@pytest.mark.sample(3)
@pytest.mark.parametrize(("kernel", "dim"), [(Wendland(dim=3), 5), (hat(1), 2), (hat(2), 5)])
def test_a_negative_frequency_by_an_independent_integral(kernel, dim):
    found = negative_frequency(kernel, dim)
    assert found.is_proved and found.value < -2 * found.error
    with np.errstate(all="ignore"):
        value, _ = quad(
            lambda r: kernel([[0.0]], [[r]])[0, 0] * sphere_wave(dim, found.omega * r) * r ** (dim - 1),
            0, 1, epsabs=1e-14, limit=500,
        )  # fmt: skip
    from math import gamma

    assert value * 2 ** (1 - dim / 2) / gamma(dim / 2) == pytest.approx(found.value, abs=found.error + 1e-13)


def test_compact_support_is_refuted_beyond_its_dimension():
    """Wendland's kernel of ℝ³ fails in ℝ⁵ by a millionth of its spectrum: no few points show that."""
    certificate = certify(Wendland(dim=3), dim=5)
    assert certificate.verdict == "refuted" and certificate.dimension == 3
    assert certificate.frequency.is_proved and certificate.points is None
    assert 25.5 < certificate.frequency.omega < 27
    assert "ℝ^m for m ≤ 3" in str(certificate)
    wide = certify(Wendland(radius=10.0, dim=3), dim=5)
    assert wide.frequency.omega == pytest.approx(certificate.frequency.omega / 10)


def test_the_hat_in_the_plane():
    assert certify(hat(1), dim=1).verdict == "proved"
    certificate = certify(hat(1), dim=2)
    X, c = certificate.points, certificate.vector
    assert certificate.verdict == "refuted" and len(X) <= 15 and certificate.frequency is not None
    K = np.maximum(1 - np.linalg.norm(X[:, None] - X[None], axis=-1), 0)
    assert c @ K @ c < -1e-3 and certificate.eigenvalues[-1] == pytest.approx(c @ K @ c)


@pytest.mark.full
def test_points_on_a_lattice_for_a_faint_frequency():
    certificate = certify(Wendland(smoothness=1, dim=1), dim=2)
    X, c = certificate.points, certificate.vector
    r = np.linalg.norm(X[:, None] - X[None], axis=-1)
    K = np.maximum(1 - r, 0) ** 3 * (3 * r + 1)
    assert c @ K @ c < -1e-8
    lines = str(certificate).splitlines()
    assert len(lines) < 30 and lines[-1] == f"… and {len(X) - 24} more"


@pytest.mark.full
def test_waves_of_spheres_fail_in_the_next_dimension():
    certificate = certify(Radial([1.0, 3.0], dim=3), dim=4)
    X, c = certificate.points, certificate.vector
    r = np.linalg.norm(X[:, None] - X[None], axis=-1)
    assert c @ (np.sinc(r / np.pi) + np.sinc(3 * r / np.pi)) @ c < 0
    assert certify(Radial([1.0, 3.0], dim=3), dim=3).verdict == "proved"


def test_no_frequency_where_there_is_none():
    for kernel in (Gaussian(), Matern(1.5), Wendland(dim=5)):
        assert negative_frequency(kernel, 3) is None
    assert negative_frequency(Linear(), 3) is None
    assert negative_frequency(Radial(), 5) is None  # no density at all
    ball = negative_frequency(BallIndicator(), 1)
    assert not ball.is_proved and ball.value < -0.1  # sin(ω)/ω


def test_an_exponential_inside_the_support():
    kernel = Formula(lambda pair: exp(-sqrt(pair.sqdist)) * maximum(1 - sqrt(pair.sqdist), 0))
    assert negative_frequency(kernel, 3).is_proved
    assert negative_frequency(kernel, 1) is None
