"""Planes of feature space, against the plain geometry of vectors."""

import numpy as np
import pytest
from sklearn.decomposition import PCA, KernelPCA
from sklearn.metrics.pairwise import rbf_kernel

from mercer import Gaussian
from mercer.errors import InputError
from mercer.plots import KernelPCADisplay
from mercer.plots.plane import normal_plane, principal_plane
from mercer.plots.style import new_figure


@pytest.fixture
def cloud():
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 4)) * [3.0, 2.0, 1.0, 0.5] + [1.0, -2.0, 0.0, 5.0]


def test_the_principal_plane_is_that_of_pca_and_f_is_exact_on_it(cloud):
    w, b = np.array([1.0, -2.0, 0.5, 3.0]), 0.7
    plane = principal_plane(cloud @ cloud.T, (cloud @ w + b)[:, None])
    pca = PCA(2).fit(cloud)
    scores = pca.transform(cloud)
    signs = np.sign((scores * plane.coordinates).sum(axis=0))
    np.testing.assert_allclose(plane.coordinates, scores * signs, atol=1e-9)
    np.testing.assert_allclose(plane.shares, pca.explained_variance_ratio_, rtol=1e-9)
    u = np.array([[0.3, -1.2], [5.0, 2.0]])
    places = pca.mean_ + (u * signs) @ pca.components_  # the points of the plane themselves
    np.testing.assert_allclose(plane.values(u)[:, 0], places @ w + b, rtol=1e-9)


def test_the_normal_plane_keeps_the_decision_and_its_axes_are_orthogonal(cloud):
    w, b = np.array([1.0, -2.0, 0.5, 3.0]), 0.7
    f = cloud @ w + b
    plane = normal_plane(cloud @ cloud.T, f, float(np.linalg.norm(w)))
    np.testing.assert_allclose(plane.values(plane.coordinates)[:, 0], f, rtol=1e-9, atol=1e-9)
    rest = (cloud - cloud.mean(axis=0)) @ (np.eye(4) - np.outer(w, w) / (w @ w))
    first = np.abs(PCA(1).fit_transform(rest)[:, 0])
    np.testing.assert_allclose(np.abs(plane.coordinates[:, 1]), first, atol=1e-9)


def test_a_constant_function_has_no_normal(cloud):
    with pytest.raises(InputError, match=r"‖f‖ must be positive to have a direction, got 0\.0"):
        normal_plane(cloud @ cloud.T, np.zeros(60), 0.0)


def test_equal_points_have_no_directions():
    plane = principal_plane(np.ones((5, 5)), np.ones((5, 2)))
    assert not plane.coordinates.any() and plane.shares == (0.0, 0.0)
    np.testing.assert_array_equal(plane.values(np.ones((1, 2))), np.ones((1, 2)))


def test_one_point_is_a_plane_too():
    assert principal_plane(np.ones((1, 1)), np.ones((1, 1))).coordinates.shape == (1, 2)


def test_a_map_is_kernel_pca(cloud):
    shown = KernelPCADisplay.from_kernel(Gaussian(sigma=3.0), cloud, ax=new_figure()[1])
    truth = KernelPCA(2, kernel="precomputed").fit_transform(rbf_kernel(cloud, gamma=1 / 18))
    np.testing.assert_allclose(np.abs(shown.scores), np.abs(truth), atol=1e-9)
