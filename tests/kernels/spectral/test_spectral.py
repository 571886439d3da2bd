"""Kernels from spectra: closed forms against integrals and known transforms, mixtures, sampling."""

import pickle
from math import gamma, pi, sqrt

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammaln, jv

from mercer import (
    Gaussian,
    KernelRidge,
    Laplacian,
    Matern,
    Radial,
    RationalQuadratic,
    Spectral,
    certify,
    config,
)
from mercer.certify import density
from mercer.kernels.spectral.quadrature import mass, panels, reach
from mercer.kernels.spectral.radial import sphere_wave

R = np.linspace(0.0, 12.0, 61)


def bell(omega):
    return np.exp(-(omega**2) / 2)


def box(omega):
    return np.where(omega <= 1.3, 1.0, 0.0)


# --- rational densities --------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_the_density_of_the_notes_gives_the_laplace_kernel(backend):
    """v(ω) = √(2/π)/(1 + ω²) is the transform of exp(-|x - y|)."""
    root = sqrt(pi / 2)
    with config(backend=backend):
        K = Spectral((root, root))(R[:, None], [[0.0]])[:, 0]
    np.testing.assert_allclose(K, np.exp(-R), rtol=0, atol=1e-12)


def test_a_double_pole_is_matern_three_halves():
    # (1 + ω²)^-2 ∝ the transform of (1 + r) exp(-r)
    kernel = Spectral((1.0, 2.0, 1.0))
    np.testing.assert_allclose(
        kernel.profile(R) / kernel.profile(0.0), (1 + R) * np.exp(-R), rtol=0, atol=1e-13
    )
    matern = Matern(1.5, length_scale=sqrt(3))  # z = r
    np.testing.assert_allclose(kernel([[0.0]], [[2.0]]) / kernel.profile(0.0), matern([[0.0]], [[2.0]]))


@pytest.mark.parametrize("order", [3, 4, 5])
def test_poles_of_higher_order(order):
    alpha = np.polynomial.polynomial.polypow([1.0, 1.0], order)
    kernel = Spectral(tuple(alpha))
    matern = Matern(order - 0.5, length_scale=sqrt(2 * order - 1))
    shape = kernel.profile(R) / kernel.profile(0.0)
    np.testing.assert_allclose(shape, matern(R[:, None], [[0.0]])[:, 0], rtol=0, atol=1e-11)


@pytest.mark.parametrize("alpha", [(1.0, 0.5, 0.25), (2.0, -1.0, 0.3), (5.0, 0.0, 0.0, 2.0), (1.0, 5.0, 4.0)])
def test_a_rational_density_against_its_integral(alpha):
    kernel = Spectral(alpha)

    def v(omega):
        return 1 / sum(a * omega ** (2 * j) for j, a in enumerate(alpha))

    for r in (0.5, 2.0, 7.0):
        value, error = quad(v, 0, np.inf, weight="cos", wvar=r, epsabs=1e-12)
        assert float(kernel.profile(r)) == pytest.approx(sqrt(2 / pi) * value, abs=10 * error + 1e-11)
    value, error = quad(v, 0, np.inf, epsabs=1e-12)
    assert float(kernel.profile(0.0)) == pytest.approx(sqrt(2 / pi) * value, abs=10 * error + 1e-11)


def test_poles_that_are_nearly_one():
    near, same = Spectral((1.0, 2.0 + 1e-9, 1.0 + 1e-9)), Spectral((1.0, 2.0, 1.0))
    np.testing.assert_allclose(near.profile(R), same.profile(R), rtol=0, atol=1e-8)


def test_units_do_not_matter():
    tiny = Spectral((1.0, 1e-12, 1e-24))  # frequencies of a million
    unit = Spectral((1.0, 1.0, 1.0))
    np.testing.assert_allclose(tiny.profile(R * 1e-6) * 1e-6, unit.profile(R), rtol=0, atol=1e-13)
    scaled = Spectral((1.0, 1.0, 1.0), length_scale=3.0)
    np.testing.assert_allclose(scaled.profile(3 * R), unit.profile(R), rtol=0, atol=1e-15)
    np.testing.assert_allclose(scaled.spectrum(R), 3 * unit.spectrum(3 * R), rtol=1e-14)


# --- densities as functions ----------------------------------------------------------------------


def test_a_mixture_of_waves_is_as_near_as_it_says():
    kernel = Spectral(bell)
    assert kernel.error < 1e-11
    np.testing.assert_allclose(kernel.profile(R), np.exp(-(R**2) / 2), rtol=0, atol=kernel.error)
    flat = Spectral(box)
    r = np.linspace(0.01, 15, 200)
    exact = sqrt(2 / pi) * np.sin(1.3 * r) / r
    np.testing.assert_allclose(flat.profile(r), exact, rtol=0, atol=flat.error)
    slow = Spectral(lambda w: 1 / (1 + w**4))
    assert 1e-8 < slow.error < 1e-3  # a heavy tail is cut, and that is said
    again = Spectral((1.0, 0.0, 1.0)).profile(r)
    np.testing.assert_allclose(slow.profile(r), again, rtol=0, atol=slow.error)


def test_in_several_columns_it_is_a_product(rng):
    X, Y = rng.normal(size=(20, 3)), rng.normal(size=(15, 3))
    squares = ((X[:, None] - Y[None]) ** 2).sum(axis=-1)
    np.testing.assert_allclose(Spectral(bell)(X, Y), np.exp(-squares / 2), rtol=0, atol=1e-11)
    l1 = abs(X[:, None] - Y[None]).sum(axis=-1)
    np.testing.assert_allclose(Spectral()(X, Y), np.exp(-l1), rtol=0, atol=1e-12)


def test_a_mixture_is_a_kernel_even_beyond_its_extent(rng):
    kernel = Spectral(bell, extent=2.0)
    X = rng.uniform(-300, 300, size=(80, 1))
    assert np.linalg.eigvalsh(kernel(X))[0] > -1e-12
    assert certify(kernel, X).verdict == "proved"


def test_learning_and_the_algebra(rng):
    X = rng.uniform(-2, 2, size=(60, 1))
    y = np.sin(3 * X[:, 0])
    for kernel in (
        Spectral((1.0, 1.0, 0.2)),
        Spectral(bell, length_scale=0.5),
        Radial([1.0, 3.0, 5.0], dim=1),
    ):
        model = KernelRidge(kernel=kernel, alpha=1e-6).fit(X, y)
        assert model.score(X, y) > 0.99
        whole = (2 * kernel + Gaussian(1.0)) * kernel.normalized()
        with config(backend="numpy"):
            assert np.isfinite(whole(X)).all()
    again = pickle.loads(pickle.dumps(Spectral(bell)))
    np.testing.assert_array_equal(again(X), Spectral(bell)(X))


# --- sampling ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel", [Spectral(), Spectral((1.0, 0.5, 0.25), length_scale=2.0), Spectral(bell), Spectral(box)]
)
def test_sampled_frequencies_give_the_kernel_back(kernel, rng):
    n = 40_000
    omega = kernel.sample(n, rng, dim=2)
    assert omega.shape == (n, 2)
    x = np.array([0.7, -0.4])
    waves = np.cos(omega @ x)
    wanted = float(np.prod(kernel.profile(x) / kernel.profile(0.0)))
    assert waves.mean() == pytest.approx(wanted, abs=5 / sqrt(n))  # five standard errors, at most


def test_the_median_frequency_of_the_laplace_kernel(rng):
    # |ω| is half-Cauchy: its median is 1
    assert np.median(abs(Spectral().sample(40_000, rng))) == pytest.approx(1.0, abs=0.04)


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_sampled_waves_on_spheres(dim, rng):
    kernel = Radial([0.5, 2.0], [1.0, 3.0], dim=dim)
    omega = kernel.sample(40_000, rng)
    lengths = np.linalg.norm(omega, axis=1)
    assert (lengths.round(9) == 2.0).mean() == pytest.approx(0.75, abs=0.02)
    x = np.full(dim, 0.6)
    wanted = kernel(np.zeros((1, dim)), x[None])[0, 0] / 4
    assert np.cos(omega @ x).mean() == pytest.approx(wanted, abs=5 / 200)


# --- Schoenberg's waves --------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 2, 3, 4, 5, 7, 20])
def test_sphere_waves_by_their_definition(dim):
    z = np.linspace(0.05, 40, 300)
    order = (dim - 2) / 2
    definition = gamma(dim / 2) * (2 / z) ** order * jv(order, z)
    np.testing.assert_allclose(sphere_wave(dim, z), definition, rtol=0, atol=2e-12)
    assert float(sphere_wave(dim, 0.0)) == 1.0


def test_sphere_waves_of_high_dimension_are_gaussian():
    # Ω_d(√(2d) r) → exp(-r²)
    r = np.linspace(0, 2, 9)
    gap = [abs(sphere_wave(d, sqrt(2 * d) * r) - np.exp(-(r**2))).max() for d in (25, 50, 100)]
    assert gap[0] < 0.03 and gap[1] == pytest.approx(gap[0] / 2, rel=0.1) and gap[2] < gap[1] / 1.8


@pytest.mark.parametrize("dim", [1, 2, 3, 4, 6])
def test_radial_kernels_by_definition(dim, rng):
    X = rng.normal(size=(12, dim))
    X[3] = X[4]
    kernel = Radial([0.0, 0.7, 3.0], [0.5, 1.0, 0.25], dim=dim)
    distance = np.linalg.norm(X[:, None] - X[None], axis=-1)
    wanted = 0.5 + sphere_wave(dim, 0.7 * distance) + 0.25 * sphere_wave(dim, 3 * distance)
    np.testing.assert_allclose(kernel(X), wanted, rtol=0, atol=1e-13)
    assert np.linalg.eigvalsh(kernel(X))[0] > -1e-12
    assert kernel([[0.0] * dim], [[0.0] * dim])[0, 0] == pytest.approx(1.75, abs=1e-15)


def test_three_dimensions_through_the_engine(rng):
    X = rng.normal(size=(300, 3))
    distance = np.linalg.norm(X[:, None] - X[None], axis=-1)
    for backend in ("numpy", "numba"):
        with config(backend=backend):
            K = Radial([2.0])(X)
        np.testing.assert_allclose(K, np.sinc(2 * distance / pi), rtol=0, atol=1e-13)


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("density", "message"),
    [
        ((1.0,), "density must be a function"),
        ("laplace", "density must be a function"),
        (("a", "b"), "density must be a function"),
        (lambda w: "x", "density must be a function of an array"),
        ((1.0, 0.0), "one beyond the first not zero"),
        ((1.0, np.nan), "must be finite"),
        ((0.0, 1.0), "must be positive for every ω.*not at ω = 0"),
        ((1.0, -2.0, 1.0), "must be positive for every ω.*not at ω = 1"),
        ((1.0, 1.0, -1.0), "which is not for large ω"),
        (lambda w: np.cos(w) * np.exp(-w), "a spectral density is zero or more, got v"),
        (lambda w: 0.0 * w, "zero everywhere"),
        (lambda w: 1.0 + 0.0 * w, "falls too slowly"),
        (lambda w: np.full(w.shape, np.nan), "must be finite"),
    ],
)
def test_what_is_no_density(density, message):
    with pytest.raises(ValueError, match=message):
        Spectral(density)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nodes": [-1.0]}, "nodes must be a list of wave numbers"),
        ({"nodes": []}, "nodes must be"),
        ({"nodes": 1.0}, "nodes must be"),
        ({"nodes": [1.0], "weights": [-1.0]}, "weights must be"),
        ({"nodes": [1.0], "weights": [1.0, 2.0]}, "one entry per node"),
        ({"dim": 0}, "dim must be a whole number"),
        ({"dim": 1.5}, "dim must be a whole number"),
        ({"dim": 151}, "dim must be at most 150"),
        ({"dim": True}, "dim must be a whole number"),
        ({"nodes": [1.0], "density": bell}, "nodes with weights, or a density, got both"),
        ({"density": lambda t: -t}, "a Schoenberg density is zero or more"),
        ({"density": lambda t: 1 / t, "dim": np.inf}, "falls too slowly"),
        ({"density": lambda t: np.exp(-5e5 * (t - 100) ** 2), "dim": 1}, "2048 waves are too few"),
        ({"density": 3.0}, "density must be a function"),
        ({"extent": 2.0}, "extent is for a density"),
    ],
)
def test_what_is_no_measure(options, message):
    with pytest.raises(ValueError, match=message):
        Radial(**options)


def test_set_params_checks_too():
    kernel = Spectral()
    with pytest.raises(ValueError, match="positive for every"):
        kernel.set_params(density=(1.0, -5.0, 1.0))
    assert kernel == Spectral()
    kernel.set_params(length_scale=2.0)
    np.testing.assert_allclose(kernel([[0.0]], [[2.0]]), Laplacian(0.5)([[0.0]], [[2.0]]))


# --- quadrature ----------------------------------------------------------------------------------


def test_the_reach_of_functions():
    _, end, tail = reach(lambda x: np.where(x < 0.3, 1.0, 0.0))
    assert end == pytest.approx(0.3, rel=1e-14) and tail == 0
    _, end, tail = reach(lambda x: np.exp(-x))
    assert np.exp(-end) <= tail  # the tail is not underestimated
    _, end, tail = reach(lambda x: np.exp(-(x**2)))
    assert np.exp(-(end**2)) / (2 * end) <= tail * 1.01


def test_panels_integrate_waves():
    nodes, weights = panels(1.0, 40.0, waves=25.0)
    assert weights @ (np.exp(-nodes) * np.cos(25 * nodes)) == pytest.approx(1 / 626, abs=1e-14)
    fine, more = panels(1.0, 40.0, waves=1.0, level=3)
    assert more @ (np.exp(-fine) / np.sqrt(fine)) == pytest.approx(sqrt(pi), abs=1e-6)  # singular at 0
    cut, _ = panels(1.0, 1e6, waves=1.0, limit=320)
    assert len(cut) <= 352 and cut[-1] < 1e6
    assert mass(lambda x: x**-3, 2.0, 1e8) == pytest.approx(1 / 8, rel=1e-3)
    assert mass(lambda x: x**-3, 2.0, 2.0) == 0


@pytest.mark.parametrize("dim", [2, 4, 60, 150])
def test_sphere_waves_are_finite_and_bounded_everywhere(dim):
    wave = sphere_wave(dim, np.geomspace(1e-9, 1e7, 400))
    assert (abs(wave) <= 1 + 1e-12).all()  # means of cosines; NaN would fail


# --- continuous measures of Schoenberg -----------------------------------------------------------


def gamma_mixture(alpha):
    """The density of t when t² is drawn from a Gamma distribution: Gaussians mixed to (1 + r²/2)^-α."""
    return lambda t: 2 * np.exp((2 * alpha - 1) * np.log(t) - t * t - gammaln(alpha))


FAR = np.append(0.0, np.geomspace(1e-4, 1e4, 200))


@pytest.mark.parametrize("alpha", [0.3, 0.5, 1.0, 2.5, 40.0])  # 0.5 is the inverse multiquadric
def test_a_gamma_mixture_of_gaussians_is_the_rational_quadratic(alpha):
    kernel = Radial(density=gamma_mixture(alpha), dim=np.inf)
    assert kernel.error < (1e-6 if alpha < 0.5 else 1e-11)  # the mass of t < 1e-12 is lost, and that is said
    np.testing.assert_allclose(kernel.profile(FAR), (1 + FAR**2 / 2) ** -alpha, rtol=0, atol=kernel.error)
    length = RationalQuadratic(alpha, length_scale=1 / sqrt(alpha))
    X = np.array([[0.3, -1.0, 2.0], [4.0, 0.0, 1.0], [0.3, -1.0, 2.0]])
    np.testing.assert_allclose(kernel(X), length(X), rtol=0, atol=kernel.error + 1e-15)


def heavy(t):  # exp(-r): 1/t² is drawn from a Gamma distribution
    return sqrt(2 / pi) * np.exp(-0.5 / t**2) / t**2


def test_a_heavy_tail_of_widths_is_the_laplacian():
    kernel = Radial(density=heavy, dim=np.inf)
    assert kernel.error < 1e-11
    np.testing.assert_allclose(kernel.profile(FAR), np.exp(-FAR), rtol=0, atol=kernel.error)


def maxwell(dim):
    """The length of a normal vector in ℝ^dim: the measure of exp(-r²/2)."""
    return lambda t: 2 ** (1 - dim / 2) / gamma(dim / 2) * t ** (dim - 1.0) * np.exp(-t * t / 2)


@pytest.mark.parametrize("dim", [1, 2, 3, 5, 8])
def test_lengths_of_normal_vectors_give_the_gaussian(dim, rng):
    kernel = Radial(density=maxwell(dim), dim=dim)
    assert kernel.error < 1e-11
    X = rng.normal(size=(30, dim))
    X[3] = X[4]
    np.testing.assert_allclose(kernel(X), Gaussian(1.0)(X), rtol=0, atol=kernel.error + 1e-14)
    v = density(kernel, dim)
    omega = np.array([0.3, 1.0, 2.5])
    np.testing.assert_allclose(v(omega), density(Gaussian(1.0), dim)(omega), rtol=1e-12)
    assert v.is_exact and certify(kernel, X).verdict == "proved"


@pytest.mark.parametrize(
    ("f", "phi"),
    [
        (lambda t: np.where((t > 1) & (t < 2), 1.0, 0.0), lambda r: (np.sin(2 * r) - np.sin(r)) / r),
        (
            lambda t: np.exp(-50 * (t - 9) ** 2) * sqrt(50 / pi),
            lambda r: np.exp(-r * r / 200) * np.cos(9 * r),
        ),
        (
            lambda t: t**-0.5 * np.exp(-t),
            lambda r: sqrt(pi) * (1 + r * r) ** -0.25 * np.cos(np.arctan(r) / 2),
        ),
    ],
)
def test_jumps_peaks_and_singularities_are_followed(f, phi):
    kernel = Radial(density=f, dim=1)
    r = np.linspace(1e-3, kernel._mixture().mixture.extent, 301)
    assert kernel.error < 1e-5
    np.testing.assert_allclose(kernel.profile(r), phi(r), rtol=0, atol=kernel.error)


@pytest.mark.parametrize(("density", "dim"), [(heavy, np.inf), (maxwell(3), 3), (maxwell(2), 2)])
def test_the_table_is_the_sum(density, dim):
    table = Radial(density=density, dim=dim)._mixture()
    r = np.concatenate([[0.0, 1e-300, 1e-9], np.linspace(0, 1.5 * min(table.stop, 100.0), 4001)])
    np.testing.assert_allclose(table(r), table.mixture(r), rtol=0, atol=3e-15)


@pytest.mark.parametrize(("dim", "columns"), [(np.inf, 1), (np.inf, 4), (3, 3), (3, 2)])
def test_frequencies_of_a_continuous_measure(dim, columns, rng):
    kernel = Radial(density=gamma_mixture(1.5), dim=dim)
    omega = kernel.sample(40_000, rng, dim=columns)
    x = np.full(columns, 0.6)
    wanted = kernel(np.zeros((1, columns)), x[None])[0, 0] / kernel.profile(0.0)
    assert np.cos(omega @ x).mean() == pytest.approx(wanted, abs=5 / 200)
    with pytest.raises(ValueError, match="frequencies in ℝ"):
        Radial(dim=3).sample(5, rng, dim=4)


def test_certificates_of_continuous_measures():
    everywhere = Radial(density=heavy, dim=np.inf)
    assert certify(everywhere, dim=50).verdict == "proved" and certify(everywhere).reason.startswith(
        "a mixture of G"
    )
    assert certify(Radial([1.0, 2.0], dim=np.inf)).verdict == "proved"
    kernel = Radial(density=maxwell(2), dim=2)
    assert certify(kernel).dimension == 2 and certify(kernel, dim=2).verdict == "proved"
    # exp(-r²/2) is a kernel in ℝ³ as well, and nothing known of the density says so
    assert certify(kernel, dim=3).verdict == "unknown"


def test_learning_with_a_measure(rng):
    X = rng.uniform(-2, 2, size=(80, 2))
    y = np.sin(2 * X[:, 0]) * X[:, 1]
    model = KernelRidge(kernel=Radial(density=maxwell(2), dim=2) + 0.1, alpha=1e-6).fit(X, y)
    assert model.score(X, y) > 0.99
    again = pickle.loads(pickle.dumps(Radial(density=heavy, dim=np.inf)))
    np.testing.assert_array_equal(again(X), Radial(density=heavy, dim=np.inf)(X))


# --- derivatives by the length scale -------------------------------------------------------------


@pytest.mark.parametrize(
    ("density", "columns", "backend"),
    [
        ((1.0, 1.0), 1, "numpy"),
        ((2.0, -1.0, 0.3), 3, "numpy"),
        ((1.0, 2.0, 1.0), 2, "numba"),
        (bell, 1, "numba"),
        (bell, 3, "numpy"),
    ],
)
def test_the_derivative_by_the_length_scale(density, columns, backend, rng):
    X, Y = rng.normal(size=(9, columns)), rng.normal(size=(7, columns))
    X[2] = Y[3]
    h = 1e-5
    with config(backend=backend):
        slope = Spectral(density, length_scale=1.3).derivative("length_scale")(X, Y)
        ahead, behind = (Spectral(density, length_scale=1.3 + d)(X, Y) for d in (h, -h))
    # the difference errs by h² and by rounding / h
    np.testing.assert_allclose(slope, (ahead - behind) / (2 * h), rtol=0, atol=1e-8)
    assert abs(slope[2, 3]) < 1e-12 and abs(slope).max() > 0.01


def test_derivatives_know_their_place_in_a_tree(rng):
    X = rng.normal(size=(6, 2))
    one = Spectral(bell, length_scale=0.8)
    total = one + 2 * one  # the same kernel twice, two parameters
    first = total.derivative("k1__length_scale")(X)
    np.testing.assert_allclose(total.derivative("k2__kernel__length_scale")(X), 2 * first)
    np.testing.assert_allclose(first, one.derivative("length_scale")(X))
    np.testing.assert_allclose(
        (one * Gaussian(1.0)).derivative("k1__length_scale")(X), first * Gaussian(1.0)(X)
    )
    h = 1e-5
    ahead, behind = (Spectral(bell, length_scale=0.8 + d).normalized().on(1)(X) for d in (h, -h))
    slope = one.normalized().on(1).derivative("kernel__kernel__length_scale")(X)
    np.testing.assert_allclose(slope, (ahead - behind) / (2 * h), rtol=0, atol=1e-8)
    with pytest.raises(ValueError, match="no second derivative"):
        one.derivative("length_scale").derivative("kernel__length_scale")(X)
