"""Invariance under translations and rotations: proofs hold on random points, refutations are true."""

import numpy as np
import pytest
from scipy.stats import ortho_group

from mercer import (
    ArcCosine,
    BallIndicator,
    BSpline,
    Constant,
    Cosine,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Min,
    Periodic,
    Polynomial,
    Radial,
    RationalQuadratic,
    Sigmoid,
    Spectral,
    Spectrum,
    Wendland,
)  # fmt: skip
from mercer.certify import invariance
from mercer.errors import InputError

#: (kernel, invariant under translations, under rotations)
KNOWN = [
    (Linear(), False, True),
    (Polynomial(3, c=1.0), False, True),
    (Sigmoid(0.1), False, True),
    (Cosine(), False, True),
    (ArcCosine(1), False, True),
    (Constant(2.0), True, True),
    (Gaussian(1.0), True, True),
    (Gaussian([1.0, 2.0]), True, False),
    (Gaussian([2.0, 2.0]), True, True),
    (Laplacian(1.0, norm=1), True, False),
    (Laplacian(1.0, norm=2), True, True),
    (Matern(), True, True),
    (RationalQuadratic(), True, True),
    (Wendland(), True, True),
    (BallIndicator(2.0), True, True),
    (BSpline(), True, False),
    (Periodic(), True, None),
    (Min(), False, False),
    (Spectral([1.0, 1.0]), True, False),
    (Spectral(lambda w: np.exp(-(w**2))), True, None),  # a Gaussian, which nobody told it
    (Radial(nodes=[1.0], dim=2), True, True),
    (Gaussian(1.0) * Linear(), False, True),
    (Gaussian(1.0) + 2 * Laplacian(1.0, norm=2), True, True),
    (Gaussian(1.0).on(0), True, False),
    (Linear().normalized(), False, True),
    (Gaussian(1.0) @ np.cosh, False, False),
]


@pytest.mark.parametrize(("kernel", "translation", "rotation"), KNOWN, ids=lambda value: str(value)[:40])
def test_what_is_known_of_kernels(kernel, translation, rotation, rng):
    for under, expected in (("translation", translation), ("rotation", rotation)):
        found = invariance(kernel, under)
        if expected is not None:
            assert found.verdict == ("proved" if expected else "refuted"), found
        X = rng.uniform(0.5, 2.0, size=(6, 2))
        moved = X + np.array([0.3, 1.1]) if under == "translation" else X @ ortho_group.rvs(2, random_state=0)
        if found.verdict == "proved":
            np.testing.assert_allclose(kernel(moved), kernel(X), rtol=1e-9, atol=1e-12)
        if found.verdict == "refuted":
            before, after = (kernel(points)[0, 1] for points in (found.points, found.moved))
            assert abs(before - after) > 1e-9 * abs(before)
            if under == "rotation":
                np.testing.assert_allclose(*(np.linalg.norm(p, axis=1) for p in (found.points, found.moved)))


def test_functions_and_dimensions():
    assert invariance(lambda r: np.exp(-r), "rotation").verdict == "proved"
    assert invariance(lambda r: 1.0 if r < 1 else 0.0).verdict == "proved"  # of which only values are known
    assert invariance(Linear().on(2), "rotation", dim=3).verdict == "unknown"  # the third column stays
    with pytest.raises(InputError, match="takes no points of 2 columns: pass dim"):
        invariance(Linear().on(2))


def test_bad_input():
    with pytest.raises(InputError, match="under must be 'translation' or 'rotation', got 'scaling'"):
        invariance(Linear(), "scaling")
    with pytest.raises(InputError, match="are of vectors, and Spectrum"):
        invariance(Spectrum(2))
    with pytest.raises(InputError, match="waits for data"):
        invariance(Gaussian("median"))
    with pytest.raises(InputError, match="dim must be a whole number"):
        invariance(Linear(), "rotation", dim=1)
    with pytest.raises(TypeError, match="three verdicts and no truth value"):
        bool(invariance(Linear()))


def test_the_monomials_of_the_notes():
    assert Polynomial(6, c=0).n_monomials(100) == 1_609_344_100
    assert Polynomial(2, c=0).n_monomials(1000) == 500_500
    assert Polynomial(2, c=1.0).n_monomials(2) == 6
