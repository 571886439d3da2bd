"""Eigenfunctions of kernels, against those that the books know."""

import numpy as np
import pytest

from mercer import BallIndicator, Gaussian, Laplacian, Linear, Min, Polynomial, Spectrum
from mercer.errors import InputError
from mercer.features import eigenfunctions

X = np.linspace(0.0, 1.0, 41)


def test_brownian_motion():
    """min(s, t) on [0, 1]: λᵢ = 1/((i - ½)²π²), φᵢ = √2 sin((i - ½)πx).

    The kink on the diagonal leaves an error like 1/nodes²; ten times that is allowed.
    """
    pairs = eigenfunctions(Min(), count=6, nodes=512)
    wave = (np.arange(6) + 0.5) * np.pi
    np.testing.assert_allclose(pairs.values, 1 / wave**2, atol=10 / 512**2)
    np.testing.assert_allclose(pairs(X), np.sqrt(2) * np.sin(np.outer(X, wave)), atol=2e-3)
    assert (np.abs(pairs.values - 1 / wave**2) <= pairs.errors).all()
    assert pairs.trace == pytest.approx(0.5)


def test_more_nodes_are_closer():
    errors = [abs(eigenfunctions(Min(), nodes=n).values[0] - 4 / np.pi**2) for n in (64, 128, 256)]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1) and errors[1] / errors[2] == pytest.approx(
        4, rel=0.1
    )


def test_the_exponential_kernel():
    """e^{-|s - t|} on [-1, 1]: λ = 2/(1 + ω²) with ω tan ω = 1 (even) and ω + tan ω = 0 (odd)."""
    from scipy.optimize import brentq

    even = brentq(lambda w: w * np.tan(w) - 1, 0.1, 1.5)
    odd = brentq(lambda w: w + np.tan(w), np.pi / 2 + 0.01, np.pi)
    pairs = eigenfunctions(Laplacian(gamma=1.0), (-1.0, 1.0), count=2)
    np.testing.assert_allclose(pairs.values, [2 / (1 + even**2), 2 / (1 + odd**2)], rtol=1e-4)
    shape = np.cos(even * X) / np.sqrt(1 + np.sin(2 * even) / (2 * even))
    np.testing.assert_allclose(pairs(X)[:, 0], shape, atol=1e-4)


def test_the_gaussian_under_a_gaussian_weight():
    """λᵢ = √(2a/A) Bⁱ, a = 1/4s², b = 1/2σ², A = a + b + √(a² + 2ab), B = b/A (Rasmussen and Williams)."""
    s, sigma = 0.7, 1.0
    a, b = 1 / (4 * s**2), 1 / (2 * sigma**2)
    A = a + b + np.sqrt(a * a + 2 * a * b)
    expected = np.sqrt(2 * a / A) * (b / A) ** np.arange(8)
    normal = lambda x: np.exp(-(x**2) / (2 * s**2)) / np.sqrt(2 * np.pi * s**2)  # noqa: E731
    pairs = eigenfunctions(Gaussian(sigma), (-7.0, 7.0), count=8, weight=normal, nodes=256)
    np.testing.assert_allclose(pairs.values, expected, rtol=1e-9)
    assert pairs.trace == pytest.approx(1.0)


def test_they_are_orthonormal_and_sum_to_the_kernel():
    pairs = eigenfunctions(Gaussian(0.3), count=14)
    t, w = np.polynomial.legendre.leggauss(60)
    t, w = (t + 1) / 2, w / 2
    rounding = np.finfo(float).eps * pairs.values[0] / pairs.values  # of K, divided by λᵢ
    off = np.abs(pairs(t).T @ (w[:, None] * pairs(t)) - np.eye(14))
    assert (off <= 100 * np.maximum.outer(rounding, rounding)).all()
    Phi = pairs.features(X)
    np.testing.assert_allclose(Phi @ Phi.T, Gaussian(0.3)(X[:, None]), atol=1e-9)
    assert pairs.share == pytest.approx(1.0)


def test_a_kernel_of_few_features_has_few():
    assert len(eigenfunctions(Linear()).values) == 1
    assert len(eigenfunctions(Polynomial(3, c=1.0), (-1.0, 1.0)).values) == 4
    pairs = eigenfunctions(Linear(), (0.0, 2.0))
    np.testing.assert_allclose(pairs.values, [8 / 3])  # ∫x²dx


def test_bad_input():
    with pytest.raises(InputError, match="not positive definite on this interval, an eigenvalue being -"):
        eigenfunctions(BallIndicator(), (0.0, 3.0))
    with pytest.raises(InputError, match="interval must be two growing numbers"):
        eigenfunctions(Linear(), (1.0, 1.0))
    with pytest.raises(InputError, match="an interval is of numbers, and Spectrum"):
        eigenfunctions(Spectrum(2))
    with pytest.raises(InputError, match="waits for data"):
        eigenfunctions(Gaussian("median"))
    with pytest.raises(InputError, match="weight must be finite, at least 0"):
        eigenfunctions(Linear(), weight=lambda x: x - 0.5)
    with pytest.raises(InputError, match="x must be in the interval from 0 to 1, got values from 0 to 2"):
        eigenfunctions(Linear())([0.0, 2.0])
