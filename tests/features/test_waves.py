"""Random waves: their mean is the kernel, their error falls as one over the root of their number."""

import numpy as np
import pytest

from mercer import (
    BSpline,
    Constant,
    Delta,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Periodic,
    Radial,
    RationalQuadratic,
    Spectral,
    Wendland,
)
from mercer.errors import InputError
from mercer.features.waves import orthogonal, waves_of

D = 3
SCALES = np.array([0.7, 1.5, 3.0])
KERNELS = [
    Gaussian(sigma=1.3),
    Gaussian(),
    Gaussian(gamma=0.4),
    Gaussian(sigma=SCALES),
    Gaussian(gamma=SCALES),
    Laplacian(0.6),
    Laplacian(SCALES / 3),
    Laplacian(0.6, norm="l2"),
    Laplacian(SCALES / 3, norm=2),
    Matern(nu=1.5),
    Matern(nu=0.8, length_scale=2.0),
    Matern(nu=2.5, length_scale=SCALES),
    RationalQuadratic(alpha=0.7, length_scale=1.4),
    RationalQuadratic(alpha=2.0, length_scale=SCALES),
    Periodic(period=3.0, length_scale=0.9),
    BSpline(),
    BSpline(degree=1, scale=2.5),
    BSpline(degree=9, scale=0.8),
    Spectral(),
    Spectral((2.0, 0.5, 1.0), length_scale=1.5),
    Spectral(lambda omega: np.exp(-(omega**2) / 2)),
    Radial(nodes=[0.5, 1.0, 2.0], weights=[1.0, 2.0, 0.5], dim=3),
    Radial(nodes=[0.5, 1.0], dim=5),
    Radial(nodes=[0.5, 1.0], dim=np.inf),
    Radial(density=lambda t: 2 * t * np.exp(-(t**2)), dim=np.inf),
    3 * Gaussian(sigma=1.0),
    2.0 * Gaussian(sigma=0.5) + 0.25 * Matern(nu=0.5) + Constant(0.5),
    Gaussian(sigma=1.0) * Laplacian(0.3) * 2.0,
    (Gaussian(sigma=2.0) + 0.5 * Periodic()) * (1.0 + Matern(nu=2.5, length_scale=2.0)),
    Matern(nu=1.5, length_scale=2.0) ** 3,
    (2 * Gaussian(sigma=1.0) + Constant(1.0)).normalized(),
    Gaussian(sigma=0.8).on(0, 2) + Laplacian(0.5).on(-2),
    Gaussian(sigma=1.5).on([1, 1]),
]


def estimates(kernel, X, count, runs, seed=0):
    """Σⱼ wⱼ cos⟨ωⱼ, x - x'⟩ for the first point against all, in several runs."""
    random, waves = np.random.default_rng(seed), waves_of(kernel, X.shape[1])
    found = []
    for _ in range(runs):
        omega, weight = waves.draw(count, random)
        found.append(np.cos((X - X[0]) @ omega.T) @ weight)
    return np.array(found)  # (runs, points)


@pytest.mark.sample(7)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_mean_is_the_kernel(kernel, rng):
    """The mean of 400 runs is within 4.5 standard errors, which happens by chance once in 150,000 times."""
    X = rng.normal(size=(7, D))
    values = kernel(X[:1], X)[0]
    found = estimates(kernel, X, 16, 400)
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert found[:, 0] == pytest.approx(values[0], rel=1e-12)  # exact at x = x'
    assert waves_of(kernel, D).size == pytest.approx(values[0], rel=1e-12)
    assert (np.abs(found.mean(axis=0) - values) < 4.5 * error + 1e-12).all()


@pytest.mark.parametrize(
    "kernel",
    [Gaussian(sigma=1.0), Laplacian(0.5), Gaussian(sigma=1.0) + Matern(nu=0.5), Gaussian(1.0) * Matern()],
    ids=repr,
)
def test_the_error_falls_with_the_root_of_their_number(kernel, rng):
    """16 times as many waves have a quarter of the error; of 200 runs of 6 points it is known to 5 %."""
    X = rng.normal(size=(7, D))
    values = kernel(X[:1], X)[0]
    few, many = (np.sqrt(((estimates(kernel, X, count, 200) - values) ** 2).mean()) for count in (30, 480))
    assert 0.2 < many / few < 0.31
    assert few < kernel(X[:1])[0, 0] / np.sqrt(30)


def test_fewer_waves_than_parts(rng):
    """Parts are drawn then, and the mean is the kernel all the same."""
    X, kernel = rng.normal(size=(4, D)), Gaussian(1.0) + 3 * Laplacian(1.0) + Matern() + Constant(0.5)
    found = estimates(kernel, X, 2, 4000)
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - kernel(X[:1], X)[0]) < 4.5 * error + 1e-9).all()


def test_orthogonal_directions(rng):
    g = orthogonal(11, 4, rng)
    for block in (g[:4], g[4:8], g[8:]):
        assert block @ block.T == pytest.approx(np.diag((block**2).sum(axis=1)), abs=1e-10)
    many = orthogonal(40_000, 4, rng)
    # each is normal: mean, covariance and fourth moment, to 4.5 standard errors
    assert np.abs(many.mean(axis=0)).max() < 4.5 / np.sqrt(40_000)
    assert many.T @ many / 40_000 == pytest.approx(np.eye(4), abs=4.5 * np.sqrt(2 / 40_000))
    assert (many**4).mean() == pytest.approx(3, abs=4.5 * np.sqrt(96 / 160_000))
    assert orthogonal(3, 1000, rng).shape == (3, 1000) and orthogonal(5, 1, rng).shape == (5, 1)


def test_orthogonal_directions_lower_the_error(rng):
    """Independent waves have the variance (1 - k²)²/2m of the Gaussian."""
    X = rng.normal(size=(7, 16)) / 4
    values = Gaussian(1.0)(X[:1], X)[0]
    variance = ((estimates(Gaussian(1.0), X, 16, 500) - values) ** 2).mean(axis=0)[1:]
    assert variance.mean() < 0.5 * ((1 - values[1:] ** 2) ** 2 / 32).mean()


def test_names_of_columns():
    waves = waves_of(Gaussian(sigma=1.0).on("b"), 3, ["a", "b", "c"])
    omega, _ = waves.draw(5, np.random.default_rng(0))
    assert omega[:, 1].all() and not omega[:, [0, 2]].any()


def test_extreme_parameters(rng):
    for kernel in (Matern(nu=1e-3), Matern(nu=900.0), Laplacian(1e-8), RationalQuadratic(alpha=1e-3)):
        omega, weight = waves_of(kernel, 2).draw(1000, rng)
        assert np.isfinite(omega).all() and weight.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    "kernel",
    [Linear(), Wendland(), Delta(), Gaussian(1.0) * Linear(), Gaussian(1.0) @ np.log, Gaussian(1.0) ** 0.5],
    ids=repr,
)
def test_a_kernel_without_a_density_is_refused(kernel):
    with pytest.raises(InputError, match=r"random features are .*: take mercer\.LandmarkFeatures"):
        waves_of(kernel, 3)


def test_too_many_columns_for_a_radial_kernel(rng):
    with pytest.raises(InputError, match=r"frequencies in ℝ\^4"):
        waves_of(Radial(dim=3), 4).draw(3, rng)
