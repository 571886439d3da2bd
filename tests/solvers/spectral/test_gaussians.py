"""Gaussians of classes: closed forms."""

import numpy as np

from mercer.solvers.spectral.gaussians import class_gaussians, linear_scores, log_priors


def test_means_are_contracted_and_the_width_is_that_of_what_is_left_out(rng):
    codes = np.repeat([0, 1], 500)
    fitted = np.where(codes == 1, 1.0, -1.0)[:, None] + 0.1 * rng.normal(size=(1000, 1))
    left_out = 0.8 * np.where(codes == 1, 1.0, -1.0)[:, None] + 0.4 * rng.normal(size=(1000, 1))
    found = class_gaussians(fitted, left_out, codes, np.ones(1000), np.full(2, 0.5))
    np.testing.assert_allclose(found.means.ravel(), [-0.8, 0.8], atol=0.05)
    np.testing.assert_allclose(found.covariance, 0.16, atol=0.02)  # Gaussians are not stretched
    np.testing.assert_allclose(found.covariance @ found.precision, 1.0)


def test_a_direction_that_is_lost_without_a_point_counts_half():
    z, codes = np.array([[-1.0], [-1.0], [1.0], [1.0]]), np.array([0, 0, 1, 1])
    found = class_gaussians(z, -z, codes, np.ones(4), np.full(2, 0.5))
    np.testing.assert_allclose(found.means.ravel(), [-0.5, 0.5])
    assert found.covariance[0, 0] >= 2.25


def test_scores_are_squared_distances_but_for_a_constant(rng):
    means, z, P = rng.normal(size=(3, 2)), rng.normal(size=(5, 2)), np.diag([2.0, 0.5])
    distances = np.einsum("ncj,jk,nck->nc", z[:, None] - means, P, z[:, None] - means)
    scores = linear_scores(z, means, P)
    np.testing.assert_allclose(np.diff(scores, axis=1), np.diff(-0.5 * distances, axis=1))
    assert log_priors(np.array([1.0, 0.0])).tolist() == [0.0, -np.inf]
