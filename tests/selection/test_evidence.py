"""Parameters learned from the evidence: the derivatives, and what they lead to."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from mercer import (
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Spectrum,
    config,
)
from mercer.runtime.clock import now
from mercer.selection import AutoKernelClassifier
from mercer.selection.evidence import _bands, complete, evidence, learn, weigh


@pytest.fixture
def problem(rng):
    X, Y = 5 + rng.normal(size=(30, 3)), rng.normal(size=(30, 2))
    return X, Y - Y.mean(axis=0)


def test_it_is_the_density_of_the_targets(problem):
    X, Y = problem
    y, noise = Y[:, :1], 0.3
    M = Gaussian(sigma=1.0)(X) + noise * np.eye(30)
    scale = float(y[:, 0] @ np.linalg.solve(M, y[:, 0])) / 30  # the best s²
    density = multivariate_normal(np.zeros(30), scale * M).logpdf(y[:, 0])
    value, _, _ = evidence(Gaussian(sigma=1.0), X, y, noise)
    assert -density == pytest.approx(value + 15 * (1 + np.log(2 * np.pi)), rel=1e-12)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("kernel", "names"),
    [
        (Gaussian(sigma=1.5), ["sigma"]),
        (Gaussian(sigma=[1.0, 2.0, 0.5]), ["sigma"]),
        (Matern(nu=0.5, length_scale=[1.0, 2.0, 0.5]), ["length_scale"]),
        (Matern(nu=1.5, length_scale=[1.0, 2.0, 0.5]), ["length_scale"]),
        (RationalQuadratic(alpha=1.0, length_scale=[1.0, 2.0, 0.5]), ["length_scale", "alpha"]),
        (Laplacian(gamma=[1.0, 2.0, 0.5]), ["gamma"]),
        (2.0 * Gaussian(sigma=1.0) + 0.5 * Linear(), ["k1__scale", "k1__kernel__sigma", "k2__scale"]),
        (3.0 * Gaussian(sigma=[1.0, 2.0, 0.5]) + Linear(), ["k1__kernel__sigma"]),
    ],
)
def test_derivatives(problem, kernel, names):
    X, Y = problem
    _, slopes, by_noise = evidence(kernel, X, Y, 0.2, names)
    step = 1e-5  # rounding 1e-16 · 100 / 1e-5 and the third derivative 1e-10: both below 1e-7
    for name in names:
        value = np.atleast_1d(np.asarray(kernel.get_params()[name], dtype=float))
        assert len(slopes[name]) == len(value)
        for j in range(len(value)):
            sides = []
            for sign in (-1, 1):
                moved = value.copy()
                moved[j] *= np.exp(sign * step)
                changed = kernel.__sklearn_clone__()
                changed.set_params(**{name: moved if len(moved) > 1 else float(moved[0])})
                sides.append(evidence(changed, X, Y, 0.2)[0])
            assert slopes[name][j] == pytest.approx((sides[1] - sides[0]) / (2 * step), rel=1e-6, abs=1e-6)
    sides = [evidence(kernel, X, Y, 0.2 * np.exp(sign * step))[0] for sign in (-1, 1)]
    assert by_noise == pytest.approx((sides[1] - sides[0]) / (2 * step), rel=1e-6, abs=1e-6)


def test_equal_points_have_no_infinite_slope(rng):
    X = np.repeat(rng.normal(size=(10, 2)), 2, axis=0)
    y = rng.normal(size=(20, 1))
    _, slopes, _ = evidence(Matern(nu=0.5, length_scale=[1.0, 1.0]), X, y - y.mean(), 0.1, ["length_scale"])
    assert np.isfinite(slopes["length_scale"]).all()


def test_learning_goes_downhill_and_finds_the_column_that_matters(rng):
    X = rng.normal(size=(80, 3))
    Y = np.sin(2 * X[:, :1])
    start = Gaussian(sigma=[1.0, 1.0, 1.0])
    learned = learn(start, X, Y, ["sigma"])
    assert learned.value * 80 < evidence(start, X, Y - Y.mean(), 0.1)[0]
    assert learned.kernel.sigma[1:].min() > 10 * learned.kernel.sigma[0]
    tied = learn(Gaussian(sigma=[1.0, 2.0, 4.0]), X, Y, ["sigma"], tied=True).kernel.sigma
    assert tied / tied[0] == pytest.approx([1.0, 2.0, 4.0])
    assert learned.value < learn(start, X, Y, ["sigma"], tied=True).value


def test_the_noise_is_found(rng):
    X = rng.uniform(-3, 3, (300, 1))
    y = np.sin(X) + 0.3 * rng.normal(size=(300, 1))
    learned = learn(Gaussian(sigma=1.0), X, y, ["sigma"])
    # s² is q/n: the noise has the variance s²λ, known to √(2/300) = 8 %, three times
    M = learned.kernel(X) + learned.noise * np.eye(300)
    centred = y[:, 0] - y.mean()
    scale = float(centred @ np.linalg.solve(M, centred)) / 300
    assert scale * learned.noise == pytest.approx(0.09, rel=0.25)


def test_weights_of_a_sum_are_learned_on_objects(rng):
    texts = ["".join(rng.choice(list("ab"), 12)) for _ in range(60)]
    counts = np.array([[text.count("aa")] for text in texts], dtype=float)
    kernel = 1.0 * Spectrum(2).normalized() + 1.0 * Spectrum(5).normalized()
    learned = learn(kernel, texts, counts, ["k1__scale", "k2__scale"])
    given = learned.kernel.get_params()
    assert given["k1__scale"] > 5 * given["k2__scale"]


def test_a_deadline_ends_it(problem):
    X, Y = problem
    late = learn(Gaussian(sigma=[1.0, 1.0, 1.0]), X, Y, ["sigma"], deadline=now() - 1)
    assert late.evaluations == 1 and np.isfinite(late.value)


def test_a_singular_matrix_is_left(rng):
    X = 1e3 * rng.normal(size=(30, 2))
    y = rng.normal(size=(30, 1))
    learned = learn(1.0 * Polynomial(4), X, y, ["scale"], noise=1e-8)
    assert np.isfinite(learned.value)


def test_matrices_that_are_no_kernels_are_refused_and_the_search_goes_on(rng):
    """It has once gone on for ever."""
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    negative, hollow = Precomputed(-X @ X.T - np.eye(60)), Precomputed(np.ones((60, 60)) - np.eye(60))
    points, signs = np.arange(60), np.where(y, 1.0, -1.0)[:, None]
    assert learn(negative, points, signs, []).noise > 1.0  # as much as makes it positive
    assert learn(hollow, points, signs, []).value == np.inf
    model = AutoKernelClassifier([hollow, negative, Precomputed(X @ X.T)]).fit(points, y)
    assert np.array_equal(model.kernel_.matrix, X @ X.T)


def test_what_is_late_from_the_beginning_is_left_as_it_is(problem, monkeypatch):
    """One value of L, without the gradient that no step follows."""
    asked = []

    def value_alone(kernel, X, Y, noise, names):
        asked.append(names)
        return evidence(kernel, X, Y, noise, names)

    monkeypatch.setattr("mercer.selection.evidence.evidence", value_alone)
    X, Y = problem
    learned = learn(Gaussian(sigma=1.0), X, Y, ["sigma"], deadline=now() - 1.0)
    assert asked == [None] and learned.evaluations == 1
    assert learned.kernel.sigma == 1.0 and learned.noise == pytest.approx(0.1)
    value, _, _ = evidence(Gaussian(sigma=1.0), X, Y - Y.mean(axis=0), learned.noise)
    assert learned.value == pytest.approx(value / len(Y))


@pytest.mark.parametrize("n", [1, 64, 300, 700])
def test_bands_of_rows_make_the_whole(rng, n):
    A, symmetric = rng.normal(size=(n, 2)), rng.normal(size=(n, n))
    symmetric = symmetric + symmetric.T
    G, W = np.triu(symmetric), rng.normal(size=(n, n))
    before = W.copy()
    for rows in _bands(n):
        complete(G, A, 0.3, rows.start, rows.stop)
    np.testing.assert_allclose(G, symmetric - 0.3 * A @ A.T, atol=1e-12)  # sums of two products
    for rows in _bands(n):
        weigh(W[rows], G[rows], rows.start)
    np.testing.assert_array_equal(W, before * G * (1 - np.eye(n)))


def test_it_is_the_same_for_any_number_of_threads(rng):
    X, Y = rng.normal(size=(700, 3)), rng.normal(size=(700, 1))
    found = []
    for threads in (1, 4):
        with config(threads=threads):
            found.append(evidence(Matern(length_scale=[1.0, 2.0, 3.0]), X, Y, 0.1, ["length_scale"]))
    (value, slopes, by_noise), (other, others, by_other) = found
    assert value == other and by_noise == by_other
    assert np.array_equal(slopes["length_scale"], others["length_scale"])
