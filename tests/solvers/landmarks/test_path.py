"""Ridge on landmarks for many penalties: against normal equations for β, and against leaving points out."""

import numpy as np
import pytest

from mercer import Gaussian, Linear, config
from mercer.gram.blocks import RowBlocks
from mercer.gram.gram import Gram
from mercer.solvers.landmarks.basis import independent
from mercer.solvers.landmarks.features import Features
from mercer.solvers.landmarks.path import RestrictedPath
from mercer.solvers.landmarks.spectrum import scatter

ALPHAS = np.array([1e-5, 1e-2, 10.0])


@pytest.fixture
def problem(rng):
    X = rng.normal(size=(25, 2))
    Y = np.column_stack([np.sin(2 * X[:, 0]) + 1, X[:, 1] ** 2])
    return X, X[[0, 3, 5, 8, 13, 21]] + 0.1, Y, rng.uniform(0.2, 3, 25)


def features_of(X, Z, fit_intercept, kernel=None):
    kernel = Gaussian(sigma=1.0) if kernel is None else kernel
    kept, basis = independent(Gram(kernel, Z, cache=0).dense().astype(float), np.float64)
    return Features(RowBlocks(kernel, X, Z[kept]), basis, fit_intercept), Z[kept]


def by_equations(X, Z, Y, weight, alpha, fit_intercept):
    """β and b of min Σ w (y - Kβ - b)² + α βᵀK_MMβ, from its normal equations."""
    K, own = (np.asarray(Gaussian(sigma=1.0)(A, Z)) for A in (X, Z))
    design = np.column_stack([K, np.ones(len(X))]) if fit_intercept else K
    penalty = np.zeros((design.shape[1],) * 2)
    penalty[: len(Z), : len(Z)] = alpha * own
    found = np.linalg.solve((design.T * weight) @ design + penalty, (design.T * weight) @ Y)
    beta, b = (found[:-1], found[-1]) if fit_intercept else (found, np.zeros(Y.shape[1]))
    return beta, b, K @ beta + b, own


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_solutions_and_objectives_are_those_of_the_normal_equations(problem, fit_intercept):
    X, Z, Y, weight = problem
    features, kept = features_of(X, Z, fit_intercept)
    path = RestrictedPath(features, Y, weight)
    for alpha in ALPHAS:
        given = np.full(2, alpha)
        beta, b = path.solve(given)
        _, intercept, fitted, own = by_equations(X, kept, Y, weight, alpha, fit_intercept)
        assert np.asarray(Gaussian(sigma=1.0)(X, kept)) @ beta + b == pytest.approx(fitted, abs=1e-9)
        assert b == pytest.approx(intercept, abs=1e-8)
        objective = weight @ (Y - fitted) ** 2 + alpha * np.einsum("it,ij,jt->t", beta, own, beta)
        assert path.objective(given) == pytest.approx(objective, rel=1e-9)
        assert path.left_out(given)[0] == pytest.approx(fitted, abs=1e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("counted", [False, True])
def test_errors_left_out_are_those_of_fits_without_the_point(problem, fit_intercept, counted):
    """A point stands for c observations of weight w/c; by default c = max(1, w)."""
    X, Z, Y, weight = problem
    copies = np.where(np.arange(25) % 2, 1.0, 3.0) if counted else None
    features, kept = features_of(X, Z, fit_intercept)
    path = RestrictedPath(features, Y, weight, copies)
    truth = np.empty((len(ALPHAS), 25, 2))
    for a, alpha in enumerate(ALPHAS):
        for i in range(25):
            rest = weight.copy()
            rest[i] *= 1 - 1 / (max(1.0, weight[i]) if copies is None else copies[i])
            truth[a, i] = Y[i] - by_equations(X, kept, Y, rest, alpha, fit_intercept)[2][i]
        assert path.left_out(np.full(2, alpha))[1] == pytest.approx(truth[a], abs=1e-8)
    share = weight / weight.sum()
    assert path.scores(ALPHAS) == pytest.approx(np.einsum("i,ait->at", share, truth**2), rel=1e-8)
    absolute = np.einsum("i,ait->at", share, np.abs(truth))
    assert path.scores(ALPHAS, "absolute") == pytest.approx(absolute, rel=1e-8)


def test_every_target_has_its_own_penalty(problem):
    X, Z, Y, weight = problem
    path = RestrictedPath(features_of(X, Z, True)[0], Y, weight)
    together = path.solve(np.array([1e-2, 10.0]))[0]
    for t, alpha in enumerate((1e-2, 10.0)):
        assert together[:, t] == pytest.approx(path.solve(np.full(2, alpha))[0][:, t])


def test_the_minimum_norm_is_that_of_least_squares(problem):
    """In features, numpy's least squares gives the w of least norm; here of landmarks on a line."""
    X, _, Y, weight = problem
    Z = np.outer(np.arange(1.0, 4.0), [1.0, 2.0])
    features, kept = features_of(X, Z, False, Linear())
    beta, b, rank = RestrictedPath(features, Y, weight).minimum_norm(None)
    direction = np.array([[1.0], [2.0]]) / np.sqrt(5)
    root = np.sqrt(weight)[:, None]
    slope = np.linalg.lstsq(root * (X @ direction), root * Y, rcond=None)[0]
    assert rank == 1 and not b.any()
    assert kept.T @ beta == pytest.approx(direction @ slope, abs=1e-12)


def test_points_without_a_weight_do_not_count(problem, rng):
    X, Z, Y, weight = problem
    some = np.arange(25) % 3 > 0
    whole = RestrictedPath(features_of(X, Z, True)[0], Y, np.where(some, weight, 0.0))
    part = RestrictedPath(features_of(X[some], Z, True)[0], Y[some], weight[some])
    assert whole.scores(ALPHAS) == pytest.approx(part.scores(ALPHAS))
    assert whole.solve(ALPHAS[:2])[0] == pytest.approx(part.solve(ALPHAS[:2])[0])


def test_the_result_does_not_depend_on_the_number_of_threads(rng):
    X = rng.normal(size=(9000, 2))  # several blocks of rows
    Y, weight = np.sin(X[:, :1]), np.ones(9000)
    found = []
    for threads in (1, 3):
        with config(threads=threads):
            path = RestrictedPath(features_of(X, X[:30], True)[0], Y, weight)
            found.append((path.scores(ALPHAS), *path.left_out(ALPHAS[:1])))
    for one, three in zip(*found, strict=True):
        np.testing.assert_array_equal(one, three)


def test_the_scatter_is_that_of_the_features(problem):
    X, Z, _, weight = problem
    features, kept = features_of(X, Z, True)
    Phi = np.linalg.solve(features.basis.T.T, np.asarray(Gaussian(sigma=1.0)(kept, X))).T
    for centred in (True, False):
        found = scatter(features, weight, centred=centred)
        moved = Phi - found.mean
        A = (moved.T * weight) @ moved
        assert np.tril(found.A) == pytest.approx(np.tril(A), abs=1e-11)
        assert found.trace == pytest.approx(A.trace())
        spectrum = found.spectrum()
        assert spectrum.values == pytest.approx(np.linalg.eigvalsh(A), abs=1e-11)
        assert (spectrum.residuals < found.zero).all()
    assert found.mean.tolist() == [0.0] * 6
