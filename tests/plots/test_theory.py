"""Displays of theorems: the Fourier side, and the perceptron's proof."""

import numpy as np
import pytest

from mercer import SVC, BallIndicator, Gaussian, KernelPerceptron, Laplacian
from mercer.certify import density
from mercer.errors import InputError
from mercer.plots import FourierDisplay, MistakeProofDisplay
from mercer.plots.style import new_figure


@pytest.fixture
def ax():
    return new_figure()[1]


def test_densities_and_costs_are_those_of_the_books(ax):
    shown = FourierDisplay.from_kernels(Gaussian(2.0), Laplacian(gamma=1.0), points=21, ax=ax)
    np.testing.assert_allclose(shown.values[0], 2 * np.exp(-2 * shown.omega**2))
    np.testing.assert_allclose(shown.values[1], np.sqrt(2 / np.pi) / (1 + shown.omega**2))
    assert np.isnan(shown.negative).all() and "no kernel" not in shown.describe()
    cost = FourierDisplay.from_kernels([Laplacian(gamma=1.0)], shown="cost", points=21, ax=ax)
    np.testing.assert_allclose(cost.values[0], 1 + cost.omega**2)
    ax.figure.canvas.draw()


def test_a_negative_density_is_told(ax):
    shown = FourierDisplay.from_kernels(BallIndicator(), lambda r: np.exp(-r), names=["ball", "e"], ax=ax)
    omega = shown.omega
    np.testing.assert_allclose(shown.values[0], np.sqrt(2 / np.pi) * np.sinc(omega / np.pi), atol=1e-6)
    assert shown.negative[0] == pytest.approx(shown.values[0].min()) and np.isnan(shown.negative[1])
    assert "That of ball falls to -0.173: it is no kernel (Bochner)." in shown.describe()
    assert len(ax.collections) == 1  # what is below zero is filled
    in_space = FourierDisplay.from_kernels(Gaussian(1.0), dim=3, points=5, ax=ax)
    np.testing.assert_allclose(in_space.values[0], density(Gaussian(1.0), 3)(in_space.omega))


def test_the_spectrum_of_two_waves(ax):
    f = lambda x: 0.7 * np.sin(10 * x) + np.cos(20 * x)  # noqa: E731
    shown = FourierDisplay.from_function(f, (-4 * np.pi, 4 * np.pi), ax=ax)
    np.testing.assert_allclose(shown.peaks(), [10.0, 20.0], atol=0.03)
    assert "Its peaks are at 10, 20." in shown.describe()
    phase = FourierDisplay.from_function(f, (-4 * np.pi, 4 * np.pi), shown="phase", points=301, ax=ax)
    at = np.argmin(abs(phase.omega - 10.0))
    assert phase.values[0, at] == pytest.approx(-np.pi / 2, abs=1e-9) and np.isnan(phase.values).any()
    power = FourierDisplay.from_function(f, (-1.0, 1.0), shown="power", points=9, ax=ax)
    amplitude = FourierDisplay.from_function(f, (-1.0, 1.0), points=9, ax=ax)
    np.testing.assert_allclose(power.values, amplitude.values**2)
    assert power.describe().startswith("Powers") and phase.describe().endswith("from 0 to 30.")


def test_what_cannot_be_shown(ax):
    with pytest.raises(InputError, match="shown must be one of 'density', 'cost', got 'phase'"):
        FourierDisplay.from_kernels(Gaussian(1.0), shown="phase", ax=ax)
    with pytest.raises(InputError, match="limits must be two growing frequencies"):
        FourierDisplay.from_kernels(Gaussian(1.0), limits=(3.0, 1.0), ax=ax)
    with pytest.raises(InputError, match="pass kernels of x - x'"):
        FourierDisplay.from_kernels(ax=ax)
    with pytest.raises(InputError, match="names must be one per kernel"):
        FourierDisplay.from_kernels(Gaussian(1.0), names=["a", "b"], ax=ax)
    with pytest.raises(InputError, match="a proof is of a Perceptron or KernelPerceptron, got SVC"):
        MistakeProofDisplay.from_estimator(SVC(), ax=ax)


def test_the_proof_is_drawn(rng, ax):
    X = rng.normal(size=(60, 2))
    model = KernelPerceptron(Gaussian(0.8)).fit(X, X[:, 0] > 0.2)
    shown = MistakeProofDisplay.from_estimator(model, ax=ax)
    assert shown.proof.mistakes == model.mistakes_ and shown.proof.bound == pytest.approx(model.bound_)
    assert f"{model.mistakes_} mistakes" in shown.describe() and shown.ax_ is ax
    ax.figure.canvas.draw()
