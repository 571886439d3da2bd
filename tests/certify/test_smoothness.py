"""What norms penalise: identities between the RKHS norm, the spectrum, and derivatives."""

from math import pi, sqrt

import numpy as np
import pytest

from mercer import (
    BSpline,
    Expansion,
    Gaussian,
    KernelRidge,
    Laplacian,
    Matern,
    RationalQuadratic,
    Spectral,
    Spectrum,
    Wendland,
    smoothness,
)
from mercer.certify.smoothness import FunctionInSpace, Smoothness


def simpson(y, x):
    """∫ y dx on an even grid."""
    h = x[1] - x[0]
    return h / 3 * (y[0] + y[-1] + 4 * y[1:-1:2].sum() + 2 * y[2:-1:2].sum())


def expansion(kernel, seed=0, d=1):
    random = np.random.default_rng(seed)
    return Expansion(kernel, random.uniform(-2, 2, size=(6, d)), random.normal(size=6))


# --- the norm of the Laplace kernel --------------------------------------------------------------


def test_the_norm_of_the_laplace_kernel_is_half_the_integral_of_f_and_its_slope():
    """‖f‖² = ½ ∫ f² + f'² for k = exp(-|x - y|).

    From ‖f‖² = (2π)^{-1/2} ∫ |f̂|²/v and 1/v = √(π/2) (1 + ω²): (2π)^{-1/2} √(π/2) = ½. (With √(2/π) in the
    place of √(π/2) one gets 1/π, the norm for the kernel (π/2) exp(-|x - y|).) f = k(0, ·) decides:
    ‖f‖² = k(0, 0) = 1, and ½ ∫ f² + f'² = ½ · 2 = 1.
    """
    f = expansion(Laplacian(1.0))
    kinks = np.sort(f.anchors[:, 0])
    total = 0.0
    for a, b in zip([-40.0, *kinks], [*kinks, 40.0], strict=True):  # smooth pieces
        x = np.linspace(a, b, 20001)
        y = f(x[:, None])
        slope = -(
            f.coef * np.sign(x[1:-1, None] - f.anchors[:, 0]) * np.exp(-abs(x[1:-1, None] - f.anchors[:, 0]))
        )
        slope = np.concatenate([[0], slope.sum(axis=1), [0]])
        slope[0], slope[-1] = (
            3 * slope[1] - 3 * slope[2] + slope[3],
            3 * slope[-2] - 3 * slope[-3] + slope[-4],
        )
        total += simpson(y**2 + slope**2, x)
    assert total / 2 == pytest.approx(f.norm() ** 2, rel=1e-8)


def test_the_norm_of_scaled_laplace_kernels():
    # c exp(-|x|): ‖f‖² = (1/2c) ∫ f² + f'²; with c = π/2 the constant is 1/π
    f = expansion((pi / 2) * Laplacian(1.0))
    plain = Expansion(Laplacian(1.0), f.anchors, f.coef * pi / 2)  # the same function
    np.testing.assert_allclose(f([[0.3]]), plain([[0.3]]))
    assert f.norm() ** 2 == pytest.approx(plain.norm() ** 2 * 2 / pi)


# --- the norm as an integral over frequencies ----------------------------------------------------


@pytest.mark.parametrize(
    "kernel",
    [Gaussian(0.8), Matern(2.5), Spectral((1.0, 1.0, 1.0)), BSpline(3), 2 * Gaussian(1.0) + Matern(1.5)],
)
def test_the_norm_is_the_integral_of_the_spectrum(kernel):
    f = expansion(kernel)
    learned = smoothness(f)
    omega = np.linspace(0, 400, 40_001)
    integral = 2 * simpson(learned.spectrum(omega), omega) / sqrt(2 * pi)
    assert integral == pytest.approx(f.norm() ** 2, rel=1e-5)
    assert learned.norm == f.norm()


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplacian(1.0), Matern(2.5)])
def test_the_spectrum_is_what_it_says(kernel):
    """|f̂(ω)|²/v(ω) with f̂ from f itself."""
    f = expansion(kernel, 3)
    x = np.linspace(-60, 60, 240_001)
    y = f(x[:, None])
    omega = np.array([0.0, 0.7, 2.0])
    transformed = [simpson(y * np.exp(-1j * w * x), x) / sqrt(2 * pi) for w in omega]
    wanted = np.abs(transformed) ** 2 * smoothness(kernel).penalty(omega)
    np.testing.assert_allclose(smoothness(f).spectrum(omega), wanted, rtol=1e-5)


def test_the_spectrum_in_two_dimensions():
    f = expansion(Gaussian(1.0), d=2)
    axis = np.linspace(-8, 8, 201)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    cell = (axis[1] - axis[0]) ** 2
    assert smoothness(f).spectrum(grid).sum() * cell / (2 * pi) == pytest.approx(f.norm() ** 2, rel=1e-8)


# --- in words ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "dim", "decay"),
    [
        (Laplacian(3.0), 1, 2),
        (Laplacian(1.0, norm=2), 3, 4),
        (Matern(1.5, 5.0), 1, 4),
        (Matern(2.5), 2, 7),
        (Spectral((1.0, 1.0, 1.0, 1.0)), 1, 6),
        (Matern(9.5), 1, 20),
        (Gaussian(2.0), 1, np.inf),
        (RationalQuadratic(0.4), 1, np.inf),  # whose density is infinite at 0
    ],
)
def test_how_fast_the_density_falls(kernel, dim, decay):
    assert smoothness(kernel, dim=dim).decay == pytest.approx(decay, abs=0.05)


def test_smoothness_in_words():
    text = str(smoothness(Gaussian(sigma=2.0)))
    assert "falls faster than every power" in text and "ω = 0.6" in text
    assert "3 square-integrable derivatives" in str(smoothness(Matern(2.5)))
    assert "is not in the space" not in text
    spline = smoothness(BSpline())
    assert "zeros" in str(spline) and spline.penalty(2 * pi) > 1e50
    assert "zeros" in str(smoothness(Wendland(smoothness=0, dim=1)))  # sin², numerically
    assert isinstance(spline, Smoothness)
    with pytest.raises(ValueError, match="waits for data"):
        smoothness("rbf")


def test_the_penalty_is_the_inverse_of_the_density():
    s = smoothness(Laplacian(1.0))
    omega = np.array([0.0, 1.0, 3.0])
    np.testing.assert_allclose(s.penalty(omega), sqrt(pi / 2) * (1 + omega**2), rtol=1e-13)
    assert isinstance(s.penalty(1.0), float)


# --- learned functions ---------------------------------------------------------------------------


def test_how_much_of_the_bound_a_function_uses(rng):
    at = Expansion(
        Gaussian(1.0), [[0.3]], [2.0], intercept=5.0
    )  # f = 2 k(0.3, ·): the bound is reached at 0.3
    learned = smoothness(at)
    assert isinstance(learned, FunctionInSpace)
    assert learned.norm == pytest.approx(2.0) and learned.share == pytest.approx(1.0)
    assert smoothness(at, points=[[10.0]]).share < 1e-10
    X = rng.normal(size=(50, 1))
    model = KernelRidge(kernel=Gaussian(1.0), alpha=0.1).fit(X, np.sin(X[:, 0]))
    share = smoothness(model.expansion_).share
    assert 0 < share <= 1
    assert "of which f uses up to" in str(smoothness(model.expansion_))


def test_several_functions_are_taken_one_at_a_time():
    with pytest.raises(ValueError, match="2 functions: pass one"):
        smoothness(Expansion(Gaussian(1.0), [[0.0]], [[1.0, 2.0]]))


def test_the_zero_function():
    assert smoothness(Expansion(Gaussian(1.0), [[0.0]], [0.0])).share == 0


def test_of_a_fitted_estimator(rng):
    X = rng.normal(size=(30, 2))
    model = KernelRidge(kernel=Gaussian(1.0), alpha=0.1)
    with pytest.raises(ValueError, match="has learned no function yet"):
        smoothness(model)
    model.fit(X, np.sin(X[:, 0]))
    learned = smoothness(model)
    assert learned.norm == pytest.approx(float(model.expansion_.norm())) and 0 < learned.share <= 1
    assert learned.share == smoothness(model.expansion_).share


def test_length_scales_of_columns_have_no_radial_density():
    with pytest.raises(ValueError, match="one length scale per column"):
        smoothness(2 * Gaussian([1.0, 3.0]))


def test_frequencies_of_functions_of_texts_are_refused():
    model = KernelRidge(kernel=Spectrum(2)).fit(["abab", "bb", "ab"], [1.0, 2.0, 3.0])
    assert smoothness(model).norm > 0
    with pytest.raises(ValueError, match="frequencies are of functions of vectors"):
        smoothness(model).spectrum([1.0])
