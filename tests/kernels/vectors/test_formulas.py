"""Every kernel against a formula by hand, or scikit-learn's, or SciPy's; and the values of the notes."""

from functools import cache
from itertools import pairwise as neighbours

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import integrate, special
from scipy.interpolate import BSpline as ScipySpline
from scipy.spatial.distance import cdist
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise

from mercer import (
    ArcCosine,
    BallIndicator,
    BSpline,
    ChiSquared,
    ConditionalExpectation,
    Constant,
    Cosine,
    Delta,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Min,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    Wendland,
    config,
)
from mercer.features.polynomial import PolynomialMap
from mercer.testing import example_kernels, example_points, is_claimed, own_kernels

# --- references: X (n, d), Y (m, d) to (n, m) -----------------------------------------------------


def squared(X, Y):
    return cdist(X, Y, "sqeuclidean")


def distance(X, Y):
    return cdist(X, Y)


def differences(X, Y):
    return X[:, None, :] - Y[None, :, :]


def angle(X, Y):
    """From the half-angle formula of Kahan, exact to the last digits for any angle; π/2 at the origin."""
    nx, ny = np.linalg.norm(X, axis=1)[:, None, None], np.linalg.norm(Y, axis=1)[None, :, None]
    a, b = X[:, None, :] * ny, Y[None, :, :] * nx
    theta = 2 * np.arctan2(np.linalg.norm(a - b, axis=2), np.linalg.norm(a + b, axis=2))
    return np.where((nx * ny)[:, :, 0] == 0, np.pi / 2, theta)


def arc_cosine(order):
    shape = {
        0: lambda t: np.pi - t,
        1: lambda t: np.sin(t) + (np.pi - t) * np.cos(t),
        2: lambda t: 3 * np.sin(t) * np.cos(t) + (np.pi - t) * (1 + 2 * np.cos(t) ** 2),
    }[order]

    def reference(X, Y):
        norms = np.linalg.norm(X, axis=1)[:, None] * np.linalg.norm(Y, axis=1)
        return norms**order * shape(angle(X, Y)) / np.pi

    return reference


def matern(nu, length):
    def reference(X, Y):
        z = np.sqrt(2 * nu) * distance(X, Y) / length
        with np.errstate(divide="ignore", invalid="ignore"):
            bessel = np.log(special.kve(nu, z)) - z
            value = np.exp((1 - nu) * np.log(2) - special.gammaln(nu) + nu * np.log(z) + bessel)
        return np.where(z == 0, 1.0, value)

    return reference


def spline(degree, scale):
    """SciPy's B-spline on degree + 2 knots one apart, centred on 0."""
    knots = np.arange(degree + 2) - (degree + 1) / 2
    bump = ScipySpline.basis_element(knots, extrapolate=False)
    return lambda X, Y: np.prod(np.nan_to_num(bump(differences(X, Y) / scale)), axis=2)


def wendland(radius, shape):
    def reference(X, Y):
        r = distance(X, Y) / radius
        return np.where(r < 1, shape(r), 0.0)

    return reference


def columns_scaled(reference, factors):
    return lambda X, Y: reference(X * factors[: X.shape[1]], Y * factors[: X.shape[1]])


SCALES = np.array([0.8, 2.0, 1.3, 0.5, 1.1, 3.0, 0.9, 1.4, 2.2, 1.0, 0.7, 1.6])  # twelve columns

REFERENCES = [
    (Linear(), lambda X, Y: X @ Y.T),
    (Polynomial(), lambda X, Y: (X @ Y.T + 1) ** 3),
    (Polynomial(5, c=0.0, gamma=0.1), lambda X, Y: (0.1 * X @ Y.T) ** 5),
    (
        Polynomial(4, 0.5, 0.2),
        lambda X, Y: pairwise.polynomial_kernel(X, Y, degree=4, gamma=0.2, coef0=0.5),
    ),
    (Polynomial(80, c=1.0, gamma=0.002), lambda X, Y: (0.002 * X @ Y.T + 1) ** 80),
    (Sigmoid(eta=0.3, nu=-0.4), lambda X, Y: pairwise.sigmoid_kernel(X, Y, gamma=0.3, coef0=-0.4)),
    (Sigmoid(), lambda X, Y: np.tanh(X @ Y.T)),
    (Cosine(), pairwise.cosine_similarity),
    (ArcCosine(order=0), arc_cosine(0)),
    (ArcCosine(order=1), arc_cosine(1)),
    (ArcCosine(order=2), arc_cosine(2)),
    (Constant(2.5), lambda X, Y: np.full((len(X), len(Y)), 2.5)),
    (Gaussian(sigma=0.7), lambda X, Y: np.exp(-squared(X, Y) / (2 * 0.7**2))),
    (Gaussian(gamma=0.3), lambda X, Y: pairwise.rbf_kernel(X, Y, gamma=0.3)),
    (Gaussian(), lambda X, Y: np.exp(-squared(X, Y) / 2)),
    (Laplacian(gamma=0.4), lambda X, Y: pairwise.laplacian_kernel(X, Y, gamma=0.4)),
    (Laplacian(gamma=0.4, norm=2), lambda X, Y: np.exp(-0.4 * distance(X, Y))),
    (Matern(0.5, 1.7), lambda X, Y: np.exp(-distance(X, Y) / 1.7)),
    (Matern(1.5, 1.7), gp.Matern(1.7, nu=1.5)),
    (Matern(2.5, 1.7), gp.Matern(1.7, nu=2.5)),
    (Matern(1.2, 1.7), gp.Matern(1.7, nu=1.2)),
    (Matern(0.1, 1.7), matern(0.1, 1.7)),
    (Matern(1.0), matern(1.0, 1.0)),
    (Matern(3.5, 2.0), matern(3.5, 2.0)),
    (Matern(7.9, 2.0), matern(7.9, 2.0)),
    (Matern(25.0, 2.0), matern(25.0, 2.0)),
    (Matern(60.0, 2.0), matern(60.0, 2.0)),
    (RationalQuadratic(0.8, 1.4), gp.RationalQuadratic(1.4, alpha=0.8)),
    (RationalQuadratic(2.0), lambda X, Y: (1 + squared(X, Y) / 4) ** -2.0),
    (
        Periodic(2.3, 0.9),
        lambda X, Y: np.exp(-2 * np.sum(np.sin(np.pi * differences(X, Y) / 2.3) ** 2, axis=2) / 0.9**2),
    ),
    # Wendland's own table, in ℝ, ℝ³ and ℝ⁵
    (Wendland(4.0, smoothness=0, dim=1), wendland(4.0, lambda r: 1 - r)),
    (Wendland(4.0, smoothness=1, dim=1), wendland(4.0, lambda r: (1 - r) ** 3 * (3 * r + 1))),
    (Wendland(4.0, smoothness=2, dim=1), wendland(4.0, lambda r: (1 - r) ** 5 * (8 * r**2 + 5 * r + 1))),
    (Wendland(4.0, smoothness=0), wendland(4.0, lambda r: (1 - r) ** 2)),
    (Wendland(4.0, smoothness=1), wendland(4.0, lambda r: (1 - r) ** 4 * (4 * r + 1))),
    (Wendland(4.0, smoothness=2), wendland(4.0, lambda r: (1 - r) ** 6 * (35 * r**2 + 18 * r + 3) / 3)),
    (Wendland(4.0, smoothness=0, dim=5), wendland(4.0, lambda r: (1 - r) ** 3)),
    (Wendland(4.0, smoothness=1, dim=5), wendland(4.0, lambda r: (1 - r) ** 5 * (5 * r + 1))),
    (Wendland(4.0, smoothness=2, dim=5), wendland(4.0, lambda r: (1 - r) ** 7 * (16 * r**2 + 7 * r + 1))),
    (BSpline(), spline(3, 1.0)),
    (BSpline(degree=1, scale=1.5), spline(1, 1.5)),
    (BSpline(degree=5, scale=0.8), spline(5, 0.8)),
    (BSpline(degree=7), spline(7, 1.0)),
    (BallIndicator(radius=1.3), lambda X, Y: (distance(X, Y) <= 1.3).astype(float)),
    (Delta(), lambda X, Y: np.all(X[:, None] == Y[None], axis=2).astype(float)),
    (Min(), lambda X, Y: np.minimum(X[:, None], Y[None]).sum(axis=2)),
    (ChiSquared(gamma=0.6), lambda X, Y: pairwise.chi2_kernel(X, Y, gamma=0.6)),
    (
        ConditionalExpectation(
            lambda X: np.hstack([np.exp(-(X[:, :2] ** 2)), np.cos(X[:, :1]) ** 2]), [0.2, 0.3, 0.5]
        ),
        lambda X, Y: sum(
            w * np.outer(p, q)
            for w, p, q in zip(
                [0.2, 0.3, 0.5],
                np.vstack([np.exp(-(X[:, :2] ** 2)).T, np.cos(X[:, 0]) ** 2]),
                np.vstack([np.exp(-(Y[:, :2] ** 2)).T, np.cos(Y[:, 0]) ** 2]),
                strict=True,
            )
        ),
    ),
]

AUTOMATIC = [  # ARD: one length scale per column is the plain kernel on scaled columns
    (lambda s: Gaussian(sigma=s), lambda X, Y: np.exp(-squared(X, Y) / 2), 1 / SCALES),
    (lambda s: Gaussian(gamma=s), lambda X, Y: np.exp(-squared(X, Y)), np.sqrt(SCALES)),
    (lambda s: Laplacian(gamma=s), lambda X, Y: np.exp(-cdist(X, Y, "cityblock")), SCALES),
    (lambda s: Laplacian(gamma=s, norm=2), lambda X, Y: np.exp(-distance(X, Y)), SCALES),
    (lambda s: Matern(1.5, s), matern(1.5, 1.0), 1 / SCALES),
    (lambda s: Matern(0.8, s), matern(0.8, 1.0), 1 / SCALES),
    (lambda s: RationalQuadratic(1.5, s), lambda X, Y: (1 + squared(X, Y) / 3) ** -1.5, 1 / SCALES),
    (lambda s: Wendland(s, smoothness=0), wendland(1.0, lambda r: (1 - r) ** 2), 1 / SCALES),
]


def points(kernel, rng, width):
    """Coordinates of size about 1, with an origin, a point in both sets, and coordinates that are equal."""
    X, Y = rng.normal(size=(9, width)), rng.normal(size=(7, width))
    X, Y = X / np.sqrt(width / 3), Y / np.sqrt(width / 3)
    X[2], Y[:2], Y[3] = 0.0, X[4:6], 0.0
    Y[4, 0] = X[0, 0]
    return (abs(X), abs(Y)) if kernel.domain == "nonnegative" else (X, Y)


def agree(found, wanted):
    # 512 ε of the largest value, as argued in mercer.testing
    np.testing.assert_allclose(found, wanted, rtol=0, atol=512 * np.finfo(float).eps * np.abs(wanted).max())


@pytest.mark.parametrize("width", [3, 12])  # few columns: differences; many: a matrix product
@pytest.mark.parametrize(
    ("kernel", "reference"), REFERENCES, ids=lambda v: repr(v)[:60] if isinstance(v, Kernel) else ""
)
def test_kernel_is_its_formula(kernel, reference, width, backend, rng):
    X, Y = points(kernel, rng, width)
    agree(kernel(X, Y), reference(X, Y))
    agree(kernel(X), reference(X, X))


@pytest.mark.parametrize("width", [3, 12])
@pytest.mark.parametrize(("build", "reference", "factors"), AUTOMATIC)
def test_one_length_scale_per_column(build, reference, factors, width, backend, rng):
    X, Y = rng.normal(size=(9, width)) / 2, rng.normal(size=(7, width)) / 2
    kernel = build(SCALES[:width].tolist())
    agree(kernel(X, Y), reference(X * factors[:width], Y * factors[:width]))


@pytest.mark.parametrize("build", [part[0] for part in AUTOMATIC])
def test_equal_length_scales_are_one(build, backend, rng):
    X = rng.normal(size=(6, 3))
    agree(build([1.7, 1.7, 1.7])(X), build(1.7)(X))


def test_every_kernel_on_vectors_has_a_reference():
    """Compositions, functions and matrices, and kernels on objects are tested on their own pages."""
    families = ("stationary", "dotproduct", "histogram", "mixture")
    kernels = {kind for kind in own_kernels() if kind.__module__.split(".")[-1] in families}
    assert {kind.__name__ for kind in kernels} == {type(kernel).__name__ for kernel, _ in REFERENCES}


# --- scikit-learn's own formula of one dimension --------------------------------------------------


def test_periodic_is_scikit_learns_in_one_dimension(backend, rng):
    X, Y = rng.normal(size=(8, 1)) * 3, rng.normal(size=(6, 1)) * 3
    agree(Periodic(1.7, 0.8)(X, Y), gp.ExpSineSquared(0.8, 1.7)(X, Y))


def test_periodic_repeats(rng):
    X = rng.normal(size=(8, 2))
    agree(Periodic(2.0)(X, X + np.array([4.0, -2.0])), Periodic(2.0)(X, X))


# --- identities -----------------------------------------------------------------------------------


def test_arc_cosine_is_the_integral_it_stands_for():
    """2 E[Θ(w·x) Θ(w·y) (w·x)ⁿ (w·y)ⁿ] over normal w in the plane, by quadrature over its angle."""
    x, y = np.array([1.2, -0.4]), np.array([0.3, 0.9])
    for order in (0, 1, 2):

        def rectified(t, order=order):
            w = np.array([np.cos(t), np.sin(t)])
            return (w @ x > 0) * (w @ y > 0) * ((w @ x) * (w @ y)) ** order

        edges = sorted(
            (np.arctan2(v[1], v[0]) + turn) % (2 * np.pi) for v in (x, y) for turn in (np.pi / 2, -np.pi / 2)
        )
        pieces = np.array([0, *edges, 2 * np.pi])
        over_angle = sum(integrate.quad(rectified, *piece)[0] for piece in neighbours(pieces))
        over_radius = 2**order * special.gamma(order + 1)  # ∫ r^{2n+1} exp(-r²/2) dr
        wanted = 2 * over_angle * over_radius / (2 * np.pi)
        assert ArcCosine(order)(x[None], y[None])[0, 0] == pytest.approx(wanted, rel=1e-9)


def test_gaussian_of_gamma_and_sigma_are_one_function(rng):
    X = rng.normal(size=(5, 3))
    agree(Gaussian(gamma=1 / (2 * 0.7**2))(X), Gaussian(sigma=0.7)(X))


def test_matern_tends_to_the_gaussian(rng):
    X = rng.normal(size=(6, 2))
    np.testing.assert_allclose(Matern(nu=200.0)(X), Gaussian(sigma=1.0)(X), atol=2e-3)


def test_general_matern_meets_the_closed_forms(rng, backend):
    X = rng.normal(size=(6, 2))
    for nu in (0.5, 1.5, 2.5):
        np.testing.assert_allclose(Matern(nu + 1e-9)(X), Matern(nu)(X), atol=1e-7)


def test_b_spline_is_a_partition_of_unity():
    shifts = np.arange(-10.0, 11.0)[:, None]
    for degree in (1, 3, 5):
        np.testing.assert_allclose(BSpline(degree)(shifts, [[0.3]]).sum(), 1.0, rtol=1e-13)


def test_b_spline_is_exactly_zero_beyond_its_support(backend):
    assert np.all(BSpline(7)([[0.0]], [[4.0], [4.5], [100.0], [-1e6]]) == 0)


def test_wendland_is_exactly_zero_beyond_its_radius(backend):
    assert np.all(Wendland(2.0, 2)([[0.0]], [[2.0], [2.5], [1e6]]) == 0)


# --- the values of the notes ----------------------------------------------------------------------


def test_the_ball_indicator_is_the_counterexample(backend):
    K = BallIndicator()([[1.0], [2.0], [3.0]])
    np.testing.assert_array_equal(K, [[1, 1, 0], [1, 1, 1], [0, 1, 1]])
    values = np.linalg.eigvalsh(K)
    np.testing.assert_allclose(values, [1 - np.sqrt(2), 1, 1 + np.sqrt(2)], rtol=1e-14)
    assert values[-1] == pytest.approx(1 / (np.sqrt(2) - 1))


def test_the_polynomial_map_of_the_notes():
    x, y = np.array([1.5, -0.5]), np.array([0.25, 2.0])

    def by_hand(v):
        a, b = v
        root = np.sqrt(2)
        return np.array([a * a, b * b, root * a * b, root * a, root * b, 1.0])

    assert Polynomial(2, c=1.0)([x], [y])[0, 0] == pytest.approx(by_hand(x) @ by_hand(y), rel=1e-14)
    homogeneous = Polynomial(2, c=0.0)([x], [y])[0, 0]
    assert homogeneous == pytest.approx((x @ y) ** 2, rel=1e-14)
    Phi = PolynomialMap(2)(np.array([x, y]))  # (x₁², √2x₁x₂, x₂²)
    assert homogeneous == pytest.approx(Phi[0] @ Phi[1], rel=1e-14)


def test_the_matrix_of_the_xor_points(backend):
    X = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    K = Polynomial(2, c=0.0)(X)
    np.testing.assert_array_equal(K, [[4, 0, 4, 0], [0, 4, 0, 4], [4, 0, 4, 0], [0, 4, 0, 4]])


def test_cubic_b_spline_values(backend):
    np.testing.assert_allclose(
        BSpline()([[0.0]], [[0.0], [1.0], [-1.0], [2.0]]), [[2 / 3, 1 / 6, 1 / 6, 0]], atol=1e-16
    )


@pytest.mark.parametrize(
    ("kernel", "x", "y", "value"),
    [
        (Linear(), [1.0, 2.0], [3.0, 4.0], 11.0),
        (Gaussian(sigma=1.0), [0.0], [2.0], np.exp(-2)),
        (Gaussian(gamma=2.0), [0.0], [2.0], np.exp(-8)),
        (Laplacian(gamma=1.0, norm=2), [0.0, 0.0], [3.0, 4.0], np.exp(-5)),
        (Laplacian(gamma=1.0), [0.0, 0.0], [3.0, 4.0], np.exp(-7)),
        (Sigmoid(eta=2.0, nu=-1.0), [1.0], [1.0], np.tanh(1)),
        (Min(), [1.0, 3.0, 0.0], [2.0, 2.0, 5.0], 3.0),
        (ChiSquared(), [1.0, 0.0], [3.0, 0.0], np.exp(-1.0)),
        (Matern(1.5, 1.0), [0.0], [1.0], (1 + np.sqrt(3)) * np.exp(-np.sqrt(3))),
        (Matern(2.5, 1.0), [0.0], [1.0], (1 + np.sqrt(5) + 5 / 3) * np.exp(-np.sqrt(5))),
        (RationalQuadratic(alpha=1.0), [0.0], [2.0], 1 / 3),
        (Periodic(period=2.0), [0.0], [1.0], np.exp(-2)),
        (Constant(3.0), [1.0], [-7.0], 3.0),
        (Delta(), [1.0, 2.0], [1.0, 2.0], 1.0),
        (Delta(), [1.0, 2.0], [1.0, 2.5], 0.0),
        (Cosine(), [1.0, 0.0], [1.0, 1.0], np.sqrt(0.5)),
        (Cosine(), [0.0, 0.0], [1.0, 1.0], 0.0),
    ],
    ids=repr,
)
def test_single_values(kernel, x, y, value):
    assert kernel([x], [y])[0, 0] == pytest.approx(value, rel=1e-14, abs=1e-300)


def test_labels_are_compared_for_equality():
    colours = [["red", 1], ["blue", 1], ["red", 2], ["red", 1]]
    np.testing.assert_array_equal(Delta()(colours), [[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 1]])


# --- accuracy where it is hard --------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("width", [3, 12])
def test_points_close_together_and_far_from_the_origin(width, dtype, backend, rng):
    """‖x‖² + ‖y‖² - 2⟨x, y⟩ would lose everything here; the offset is exact in both precisions."""
    X = 4096.0 + np.round(rng.normal(size=(30, width)) * 64) / 64
    wanted = np.exp(-squared(X, X) / (2 * width))
    with config(dtype=dtype):
        found = Gaussian(sigma=np.sqrt(width))(X)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=64 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(np.diagonal(found), 1.0)


def test_angle_of_a_point_with_itself_is_zero(backend, rng):
    X = rng.normal(size=(200, 5))
    for order in (0, 1, 2):
        K = ArcCosine(order)(X)
        wanted = np.linalg.norm(X, axis=1) ** (2 * order) * {0: 1, 1: 1, 2: 3}[order]
        np.testing.assert_allclose(np.diagonal(K), wanted, rtol=1e-13)


# --- what holds for all of them -------------------------------------------------------------------

claimed = cache(is_claimed)  # Some proofs take a while, and every example asks.


@pytest.mark.parametrize(
    "kernel",
    [k for k in example_kernels() if k.domain in ("vectors", "nonnegative") and k.is_resolved()],
    ids=lambda k: repr(k)[:60],
)
@settings(max_examples=15)
@given(X=arrays(float, (4, 3), elements=st.floats(-8, 8, width=16)))
def test_cauchy_schwarz_and_positive_semidefiniteness(kernel, X):
    """|k(x, y)| ≤ √(k(x,x) k(y,y)), and no eigenvalue below zero, up to rounding."""
    if not claimed(kernel, dim=3):
        return
    K = kernel(np.abs(X) if kernel.domain == "nonnegative" else X)
    np.testing.assert_array_equal(K, K.T)
    diagonal = np.diagonal(K)
    assert diagonal.min() >= 0
    rounding = 512 * np.finfo(float).eps
    assert np.all(np.abs(K) <= np.sqrt(np.outer(diagonal, diagonal)) + rounding * np.abs(K).max())
    assert np.linalg.eigvalsh(K)[0] >= -len(K) * rounding * np.abs(K).max()


@settings(max_examples=30)
@given(
    x=arrays(float, (1, 3), elements=st.floats(-50, 50)),
    y=arrays(float, (1, 3), elements=st.floats(-50, 50)),
    shift=st.floats(-20, 20),
)
@pytest.mark.parametrize(
    "kernel", [Gaussian(2.0), Laplacian(0.3), Matern(1.5, 2.0), Wendland(9.0), RationalQuadratic()]
)
def test_stationary_kernels_depend_on_the_difference_and_stay_below_one(kernel, x, y, shift):
    value = kernel(x, y)[0, 0]
    assert 0 <= value <= 1 == kernel(x)[0, 0]
    # x + t is rounded to ε (|x| + |t|) of size 100, which slopes of at most 1 turn into as much
    assert kernel(x + shift, y + shift)[0, 0] == pytest.approx(value, abs=2e3 * np.finfo(float).eps)


def test_example_points_reach_the_whole_range_of_compact_kernels(rng):
    """The checks above would say little if every pair were beyond the radius."""
    for kernel in (Wendland(3.0), BSpline(scale=1.2), BallIndicator(1.5)):
        K = kernel(example_points(kernel, 15, rng))
        off = K[np.triu_indices(15, 1)]
        assert np.any(off == 0) and np.any(off > 0)
