"""Geometry in feature space against explicit feature maps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mercer import Gaussian, Linear, Polynomial, geometry
from mercer.errors import InputError
from mercer.features.polynomial import PolynomialMap
from mercer.features.taylor import GaussianTaylorMap

points = arrays(np.float64, (6, 3), elements=st.floats(-3, 3, width=32))
EXPLICIT = [
    (Linear(), lambda X: X),
    (Polynomial(3, c=1.0), PolynomialMap(3, c=1.0)),
    (Polynomial(2, c=0.0), PolynomialMap(2)),
    (Gaussian(sigma=3.0), GaussianTaylorMap(3.0, 30)),
]


def name_of(value):
    return getattr(value, "__name__", None) or repr(value)[:30]


@pytest.mark.parametrize(("kernel", "phi"), EXPLICIT, ids=name_of)
@given(X=points)
def test_norms_and_distances_are_those_of_the_features(kernel, phi, X):
    F = phi(X)
    scale = 1 + np.abs(F).max() ** 2 * F.shape[1]
    np.testing.assert_allclose(geometry.norms(kernel, X) ** 2, (F * F).sum(1), atol=1e-12 * scale)
    squared = ((F[:, None] - F[None]) ** 2).sum(-1)
    np.testing.assert_allclose(geometry.distances(kernel, X) ** 2, squared, atol=1e-12 * scale)
    np.testing.assert_allclose(
        geometry.distances(kernel, X[:2], X[2:]) ** 2, squared[:2, 2:], atol=1e-12 * scale
    )


@pytest.mark.parametrize(("kernel", "phi"), EXPLICIT, ids=name_of)
def test_centroid_distances_and_centring(kernel, phi, rng):
    X, Z = rng.normal(size=(20, 3)), rng.normal(size=(5, 3))
    F, G = phi(X), phi(Z)
    expected = np.linalg.norm(G - F.mean(0), axis=1)
    np.testing.assert_allclose(geometry.centroid_distances(kernel, Z, X), expected, rtol=1e-9)
    np.testing.assert_allclose(
        geometry.centroid_distances(kernel, X), np.linalg.norm(F - F.mean(0), axis=1), rtol=1e-9
    )
    C = F - F.mean(0)
    np.testing.assert_allclose(geometry.center(kernel(X)), C @ C.T, atol=1e-9 * np.abs(C @ C.T).max())
    np.testing.assert_allclose(kernel.centered(X)(X), C @ C.T, atol=1e-9 * np.abs(C @ C.T).max())


def test_angles():
    X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [0.0, 0.0]])
    cosines = geometry.cosines(Linear(), X)
    half = np.sqrt(0.5)
    expected = [[1, 0, half, 0], [0, 1, half, 0], [half, half, 1, 0], [0, 0, 0, 0]]
    np.testing.assert_allclose(cosines, expected, atol=1e-15)
    np.testing.assert_allclose(geometry.angles(Linear(), X)[0, 1], np.pi / 2)


def test_words_are_taken_from_the_reference_points(rng):
    X = rng.normal(size=(30, 2))
    kernel = Gaussian(sigma="median")
    resolved = kernel.resolve(X)
    np.testing.assert_array_equal(geometry.distances(kernel, X), geometry.distances(resolved, X))
    np.testing.assert_array_equal(
        geometry.centroid_distances(kernel, X[:3], X), geometry.centroid_distances(resolved, X[:3], X)
    )


def test_center_wants_a_square_matrix():
    with pytest.raises(InputError, match=r"a Gram matrix is square, got shape \(2, 3\)"):
        geometry.center(np.ones((2, 3)))


# --- alignment -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("centered", [True, False])
def test_alignment_is_the_cosine_of_two_matrices(centered, rng):
    X, y = rng.normal(size=(30, 3)), np.repeat(["a", "b", "c"], [5, 10, 15])
    K = Gaussian(1.5)(X)
    T = np.where(y[:, None] == y, 1.0, -0.5)
    if centered:
        H = np.eye(30) - 1 / 30
        K, T = H @ K @ H, H @ T @ H
    expected = (K * T).sum() / np.linalg.norm(K) / np.linalg.norm(T)
    assert geometry.alignment(Gaussian(1.5), X, y, centered=centered) == pytest.approx(expected, rel=1e-12)


def test_alignment_with_two_classes_and_with_numbers(rng):
    X, y = rng.normal(size=(20, 2)), rng.choice([-1, 1], size=20)
    K = Gaussian(1.0)(X)
    expected = y @ K @ y / np.linalg.norm(K) / 20
    assert geometry.alignment(Gaussian(1.0), X, y, centered=False) == pytest.approx(expected)
    t = X[:, 0] + 0.25
    assert geometry.alignment(Linear().on(0), X, t) == pytest.approx(1.0)  # a centred kernel forgets the 0.25
    expected = t @ K @ t / np.linalg.norm(K) / (t @ t)
    assert geometry.alignment(Gaussian(1.0), X, t, centered=False) == pytest.approx(expected)


def test_a_constant_moves_alignment_only_where_it_is_not_centred(rng):
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 2
    plain, moved = Gaussian(1.0), Gaussian(1.0) + 3.0
    assert geometry.alignment(moved, X, y) == pytest.approx(geometry.alignment(plain, X, y), rel=1e-9)
    assert geometry.alignment(moved, X, y, centered=False) < 0.9 * geometry.alignment(
        plain, X, y, centered=False
    )


def test_alignment_of_nothing_is_refused():
    with pytest.raises(InputError, match="at least two classes, got \\[1\\] alone"):
        geometry.alignment(Linear(), [[1.0], [2.0]], [1, 1])
    with pytest.raises(InputError, match=r"one entry per point, \(2,\), got shape \(3,\)"):
        geometry.alignment(Linear(), [[1.0], [2.0]], [1, 2, 3])
    with pytest.raises(InputError, match="one of them varies nothing on these points"):
        geometry.alignment(Linear(), [[1.0], [1.0]], [1, 2])
