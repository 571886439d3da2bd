"""The Fisher discriminant against its definition, LDA, and retraining with every point left out."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from mercer import Gaussian, Gram, Linear
from mercer.errors import InputError
from mercer.solvers.spectral import fisher as module
from mercer.solvers.spectral.fisher import fisher


@pytest.fixture
def problem(rng):
    codes = rng.integers(0, 3, 90)
    X = rng.normal(size=(90, 4)) * [2.0, 1.0, 1.0, 0.5]
    X[codes == 1, 0] += 2
    X[codes == 2, 1] += 1.5
    return X, codes


def scatter(X, codes, weight=None):
    w = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float)
    mean = w @ X / w.sum()
    total = (w[:, None] * (X - mean)).T @ (X - mean) / w.sum()
    means = np.array([w[codes == c] @ X[codes == c] / w[codes == c].sum() for c in range(codes.max() + 1)])
    within = (w[:, None] * (X - means[codes])).T @ (X - means[codes]) / w.sum()
    return total - within, within


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_solves_the_eigenproblem_of_its_definition(problem, rng, alpha, weighted):
    """In the space of the linear kernel, which is that of X, everything can be written down."""
    X, codes = problem
    weight = rng.integers(1, 4, 90) if weighted else None
    between, within = scatter(X, codes, weight)
    result = fisher(Gram(Linear(), X, cache=0), codes, 3, alpha=alpha, weight=weight)
    W = X.T @ result.coef
    inner = within + alpha * np.eye(4)
    assert W.T @ inner @ W == pytest.approx(np.eye(2), abs=1e-8)
    assert W.T @ between @ W == pytest.approx(np.diag(result.ratios), abs=1e-8 * (1 + result.ratios[0]))
    values = np.linalg.eigvals(np.linalg.solve(inner, between)).real
    assert result.ratios == pytest.approx(np.sort(values)[::-1][:2], rel=1e-8)
    w = np.ones(90) if weight is None else weight
    assert w @ (X @ W + result.intercept) == pytest.approx(np.zeros(2), abs=1e-8)


def test_lda(problem):
    """α = 1e-8 is a bias of 1e-8 over the variance, and amplifies rounding 1e-16 to about 1e-8."""
    X, codes = problem
    W = X.T @ fisher(Gram(Linear(), X, cache=0), codes, 3, alpha=1e-8).coef
    lda = LinearDiscriminantAnalysis(solver="eigen").fit(X, codes)
    S = lda.scalings_[:, :2]
    assert W * np.sign((W * S).sum(axis=0)) == pytest.approx(S, abs=1e-6)


def left_out(K, t, penalty, i):
    """f(xᵢ) of ridge regression with an intercept on all points but i, by the bordered system."""
    n = len(t)
    rest = np.delete(np.arange(n), i)
    system = np.block(
        [
            [K[np.ix_(rest, rest)] + penalty * np.eye(n - 1), np.ones((n - 1, 1))],
            [np.ones((1, n - 1)), np.zeros((1, 1))],
        ]
    )
    solution = np.linalg.solve(system, np.append(t[rest], 0.0))
    return K[i, rest] @ solution[:-1] + solution[-1]


@pytest.mark.parametrize("alpha", [1e-3, 0.1, None])
def test_left_out_values_are_those_of_retraining(problem, alpha):
    X, codes = problem
    K = Gaussian(sigma=2.0)(X)
    result = fisher(Gram(Gaussian(sigma=2.0), X, cache=0), codes, 3, alpha=alpha)
    penalty = len(X) * result.alpha
    # the targets are what the functions are the ridge regression of: f + (residual = penalty · coef)
    targets = K @ result.coef + result.intercept + penalty * result.coef
    assert K @ result.coef + result.intercept == pytest.approx(result.fitted, abs=1e-8)
    for i in (0, 17, 89):
        for j in range(2):
            assert result.left_out[i, j] == pytest.approx(
                left_out(K, targets[:, j], penalty, i), rel=1e-7, abs=1e-8
            )
    assert [len(np.unique(np.round(targets[codes == c], 6), axis=0)) for c in range(3)] == [1, 1, 1]


def test_alpha_is_the_best_of_the_path(problem):
    X, codes = problem
    K = Gram(Gaussian(sigma=2.0), X, cache=0)
    result = fisher(K, codes, 3)
    assert result.errors.argmin() == list(result.path).index(result.alpha)
    assert 0 < result.errors.argmin() < len(result.path) - 1
    again = fisher(K, codes, 3, alpha=result.alpha)
    sign = np.sign((again.coef * result.coef).sum(axis=0))
    assert again.coef * sign == pytest.approx(result.coef, rel=1e-6, abs=1e-8)
    assert again.left_out * sign == pytest.approx(result.left_out, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("alpha", [0.01, None])
def test_weights_are_repetition(problem, rng, alpha):
    X, codes = problem
    w = rng.integers(0, 4, 90)
    index = np.repeat(np.arange(90), w)
    k = Gaussian(sigma=2.0)
    weighted = fisher(Gram(k, X, cache=0), codes, 3, alpha=alpha, weight=w, copies=w)
    repeated = fisher(Gram(k, X[index], cache=0), codes[index], 3, alpha=alpha)
    assert weighted.alpha == pytest.approx(repeated.alpha)
    assert weighted.ratios == pytest.approx(repeated.ratios, rel=1e-7)
    f, g = (k(X, a) @ r.coef + r.intercept for a, r in ((X, weighted), (X[index], repeated)))
    sign = np.sign((f * g).sum(axis=0))
    assert f * sign == pytest.approx(g, abs=1e-6)
    assert (weighted.left_out * sign)[index] == pytest.approx(repeated.left_out, abs=1e-6)


def test_indefinite_matrix(problem, rng):
    X, codes = problem
    K = Gaussian(sigma=1.0)(X)
    K -= 0.1 * np.outer(X[:, 0], X[:, 0])

    class Matrix:
        shape, dtype = K.shape, K.dtype

        def dense(self, out=None):
            out[:] = K
            return out

    result = fisher(Matrix(), codes, 3, alpha=1e-3)  # the factorisation fails: the negative part is dropped
    assert result.lowest < -1
    assert np.isfinite(result.coef).all() and np.isfinite(result.left_out).all()
    assert result.lowest == pytest.approx(fisher(Matrix(), codes, 3).lowest)
    # the functions are those of the repaired matrix: what they are said to be, with K as it is
    assert K @ result.coef + result.intercept == pytest.approx(result.fitted, abs=1e-6)


def test_classes_with_one_mean(rng):
    X = np.repeat(rng.normal(size=(20, 2)), 2, axis=0)
    result = fisher(Gram(Linear(), X, cache=0), np.tile([0, 1], 20), 2, alpha=0.1)
    assert result.ratios == pytest.approx([0.0], abs=1e-9)
    assert np.isfinite(result.coef).all()


def test_points_that_coincide():
    with pytest.raises(InputError, match="the points do not vary in feature space, their variance is 0"):
        fisher(Gram(Linear(), np.ones((4, 2)), cache=0), np.array([0, 0, 1, 1]), 2, alpha=1.0)


def test_targets_are_an_orthonormal_basis(rng):
    codes, weight = rng.integers(0, 4, 50), rng.uniform(0, 2, 50)
    Z = module.class_targets(codes, 4, weight)
    assert Z.shape == (50, 3)
    assert pytest.approx(np.eye(3), abs=1e-12) == Z.T @ Z
    assert np.sqrt(weight) @ Z == pytest.approx(np.zeros(3), abs=1e-12)
