"""The Fourier transform of functions, against transforms that are known and theorems about them."""

import numpy as np
import pytest

from mercer.certify import fourier
from mercer.errors import InputError

OMEGA = np.linspace(-8.0, 8.0, 33)


def test_transforms_of_the_books():
    decay = fourier(lambda x: np.exp(-4 * x), (0.0, 12.0))  # 1/(√2π (4 + iω))
    np.testing.assert_allclose(decay(OMEGA), 1 / np.sqrt(2 * np.pi) / (4 + 1j * OMEGA), atol=1e-14)
    box = fourier(lambda x: 1.0, (-1.0, 1.0))
    np.testing.assert_allclose(box(OMEGA), np.sqrt(2 / np.pi) * np.sinc(OMEGA / np.pi), atol=1e-14)
    assert isinstance(complex(box(0.5)), complex) and box([]).shape == (0,)


def test_a_shift_turns_the_phase_and_leaves_the_amplitude():
    f = fourier(lambda x: np.exp(-x * x), (-8.0, 8.0))
    moved = fourier(lambda x: np.exp(-((x - 0.25) ** 2)), (-8.0, 8.0))
    near = OMEGA[np.abs(OMEGA) < 4]
    np.testing.assert_allclose(moved.amplitude(near), f.amplitude(near), rtol=1e-9)
    np.testing.assert_allclose(moved.phase(near), -0.25 * near, atol=1e-9)


def test_plancherel_and_derivatives():
    f = fourier(lambda x: x * np.exp(-x * x), (-8.0, 8.0))
    slope = fourier(lambda x: (1 - 2 * x * x) * np.exp(-x * x), (-8.0, 8.0))
    np.testing.assert_allclose(slope(OMEGA), 1j * OMEGA * f(OMEGA), atol=1e-13)
    grid = np.linspace(-20, 20, 2001)
    energy = np.sqrt(np.pi / 2) / 4  # ∫ x² e^{-2x²} dx
    assert f.power(grid).sum() * 0.02 == pytest.approx(energy, rel=1e-9)


def test_high_frequencies_of_long_intervals():
    wave = fourier(lambda x: np.cos(50 * x), (0.0, 200.0))
    expected = (np.sin(200 * 1.0) / 1.0 + np.sin(200 * 101.0) / 101.0) / 2 / np.sqrt(2 * np.pi)
    assert float(wave(51.0).real) == pytest.approx(expected, abs=1e-10)


def test_bad_input():
    with pytest.raises(InputError, match="interval must be two growing numbers"):
        fourier(np.sin, (1.0, 0.0))
    with pytest.raises(InputError, match="pass a function of an array"):
        fourier(3.0, (0.0, 1.0))
    with (
        pytest.raises(InputError, match="f must be finite on the interval, got nan at -"),
        np.errstate(invalid="ignore"),
    ):
        fourier(np.log, (-1.0, 1.0))(0.0)
