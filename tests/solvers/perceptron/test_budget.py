"""The perceptron with a budget, against the three rules written out point by point."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer import Constant, Gaussian, Gram, Linear
from mercer.errors import InputError
from mercer.solvers.control import Control
from mercer.solvers.perceptron.budget import Budget, budget_perceptron
from mercer.solvers.perceptron.kernel import perceptron
from mercer.solvers.perceptron.mistakes import BOUNDARIES

STRATEGIES = Budget.STRATEGIES


def noisy(rng, n=120, functions=1):
    """Classes that overlap, so that mistakes never end."""
    X = rng.normal(size=(n, 2))
    clean = np.where(X @ rng.normal(size=(2, functions)) > 0, 1.0, -1.0)
    return X, np.where(rng.uniform(size=clean.shape) < 0.2, -clean, clean)


def largest_shrink(harm, weight, k_rr, value, mistakes, scale):
    """The largest φ of a fine grid that keeps the account of the Forgetron."""
    grid = np.linspace(0, 1, 200_001)[1:]
    damage = ((weight**2 * k_rr / scale)[:, None] * grid**2).sum(axis=0)
    damage += (2 * weight[:, None] * grid * (1 - grid * value[:, None] / scale)).sum(axis=0)
    allowed = harm + damage <= 15 / 32 * mistakes + 1e-12
    return grid[allowed].max(), damage[allowed][grid[allowed].argmax()]


def reference(K, Y, size, strategy, residual, epochs, boundary):
    """One function or several over the stored points, as the definitions say, nothing kept between visits."""
    stored, coef = [], np.zeros((0, Y.shape[1]))
    mistakes, harm, scale = 0, 0.0, 0.0
    for _ in range(epochs):
        for i in range(len(K)):
            f = K[i, stored] @ coef
            wrong = Y[i] * f <= 0 if boundary == "mistake" else (f > 0) != (Y[i] > 0)
            sign = np.where(wrong, Y[i], 0.0)
            if not sign.any():
                continue
            mistakes += np.count_nonzero(sign)
            scale = max(scale, K[i, i])
            if i in stored:
                coef[stored.index(i)] += sign
                continue
            if strategy == "project" and stored:
                beta = np.linalg.lstsq(K[np.ix_(stored, stored)], K[stored, i], rcond=None)[0]
                if len(stored) == size or K[i, i] - K[i, stored] @ beta <= residual * K[i, i]:
                    coef += np.outer(beta, sign)
                    continue
            stored, coef = [*stored, i], np.vstack([coef, sign])
            if len(stored) > size:
                r = 0
                if strategy == "remove":
                    r = int(np.abs(coef[:-1]).sum(axis=1).argmin())
                else:
                    weight, value = np.abs(coef[0]), np.sign(coef[0]) * (K[stored[0], stored] @ coef)
                    shrink, damage = largest_shrink(
                        harm, weight, K[stored[0], stored[0]], value, mistakes, scale
                    )
                    coef *= shrink
                    harm += damage
                stored, coef = stored[:r] + stored[r + 1 :], np.delete(coef, r, axis=0)
    return stored, coef


@pytest.mark.sample(11)
@pytest.mark.parametrize("functions", [1, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_equals_the_definition(rng, boundary, strategy, fit_intercept, functions):
    X, Y = noisy(rng, functions=functions)
    k = Gaussian(0.7)
    options = {"fit_intercept": fit_intercept, "boundary": boundary, "residual": 0.01}
    model = Budget(12, functions, strategy, **options)
    budget_perceptron(Gram(k, X), Y, model, max_epochs=2)
    K = (k + Constant(1.0) if fit_intercept else k)(X)
    stored, coef = reference(K, Y, 12, strategy, 0.01, epochs=2, boundary=boundary)
    assert len(stored) == 12
    order = [model.source.tolist().index(i) for i in stored]
    # the grid of the reference is as fine as 5e-6, and every mistake shrinks by a φ from it
    tolerance = 1e-2 if strategy == "forget" else 1e-8
    assert model.coef[order] == pytest.approx(coef, abs=tolerance * np.abs(coef).max())
    assert model.intercept == pytest.approx(coef.sum(axis=0) * fit_intercept, abs=tolerance * 12)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["forget", "remove"]), st.booleans())
def test_a_budget_that_suffices_changes_nothing(seed, strategy, fit_intercept):
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, size=(30, 2)).astype(float)
    Y = rng.choice([-1.0, 1.0], size=(30, 2))
    K = Gram(Linear(), X)
    plain = perceptron(K, Y, fit_intercept=fit_intercept, max_epochs=4)
    model = Budget(30, 2, strategy, fit_intercept=fit_intercept)
    result = budget_perceptron(K, Y, model, max_epochs=4)
    coef = np.zeros((30, 2))
    coef[model.source] = model.coef
    assert coef.tolist() == plain.coef.tolist()
    assert model.intercept.tolist() == plain.intercept.tolist()
    assert model.mistakes.tolist() == plain.mistakes.tolist()
    assert result.mistakes_per_epoch.tolist() == plain.mistakes_per_epoch.tolist()


def test_projections_lose_nothing_inside_the_span(rng):
    """Vectors of ℝ³ and an intercept: four stored points span everything."""
    X = rng.normal(size=(200, 3))  # no two sums of such numbers agree: f is never 0, and rounding no matter
    Y = np.where(X @ [[1.0], [2.0], [-1.0]] > 0.5, 1.0, -1.0)
    K = Gram(Linear(), X)
    plain = perceptron(K, Y[:, 0], max_epochs=500)
    model = Budget(4, 1, "project")
    result = budget_perceptron(K, Y, model, max_epochs=500)
    assert plain.converged and result.stopped == "converged"
    assert len(model.source) == 4
    w = X[model.source].T @ model.coef[:, 0]
    assert w == pytest.approx(X.T @ plain.coef, abs=1e-9)
    assert model.intercept[0] == pytest.approx(plain.intercept, abs=1e-9)
    assert result.margin[0] == pytest.approx(plain.margin)
    assert model.mistakes[0] == plain.mistakes


def test_a_residual_stores_fewer_points(rng):
    X, Y = noisy(rng, 300)
    sizes = []
    for residual in (0.0, 1e-3, 0.3):
        model = Budget(100, 1, "project", residual=residual)
        budget_perceptron(Gram(Gaussian(1.0), X), Y, model, max_epochs=1)
        sizes.append(len(model.source))
    assert sizes[0] > sizes[1] > sizes[2]


def test_forgetting_keeps_its_account(rng):
    X, Y = noisy(rng, 600)
    model = Budget(15, 1, "forget", fit_intercept=False)
    budget_perceptron(Gram(Gaussian(0.5), X), Y, model, max_epochs=3)
    assert model._harm <= 15 / 32 * model.mistakes[0] * (1 + 1e-12)
    assert np.abs(model.coef).max() <= 3  # at most one per visit
    assert (np.abs(model.coef) < 1).any()  # it did shrink


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_only_blocks_of_the_stored_points_are_asked_for(rng, strategy):
    X, Y = noisy(rng, 1000)
    K = Gram(Gaussian(0.5), X, cache=0)
    asked = []
    original = K.block
    K.block = lambda i, j: asked.append((len(i), len(j))) or original(i, j)
    K.rows = None
    budget_perceptron(K, Y, Budget(20, 1, strategy), max_epochs=2)
    assert max(i * j for i, j in asked) <= 64 * (64 + 20)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("size", [1, 2])
def test_tiny_budgets_and_duplicates(rng, strategy, size):
    X = np.repeat(rng.normal(size=(5, 2)), 10, axis=0)
    Y = np.where(rng.uniform(size=(50, 1)) > 0.5, 1.0, -1.0)
    model = Budget(size, 1, strategy)
    result = budget_perceptron(Gram(Gaussian(1.0), X), Y, model, max_epochs=5)
    assert 1 <= len(model.source) <= size
    assert np.isfinite(model.coef).all()
    assert result.stopped == "max_iter" and np.isnan(result.margin).all()


@pytest.mark.sample(5)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("after", [1, 64, 500, 900])
def test_an_interrupted_run_goes_on(rng, tmp_path, strategy, after):
    X, Y = noisy(rng, 300, functions=2)
    K = Gram(Gaussian(0.5), X)
    options = {"max_epochs": 4, "orders": 3}
    whole, part, rest = (Budget(20, 2, strategy) for _ in range(3))
    expected = budget_perceptron(K, Y, whole, **options)

    def stop(event):
        if event["done"] >= after:
            raise KeyboardInterrupt

    with Control(checkpoint=tmp_path / "state", progress=stop) as control:
        stopped = budget_perceptron(K, Y, part, **options, control=control)
    assert stopped.stopped == "interrupted"
    assert part.mistakes.sum() < whole.mistakes.sum()
    with Control(checkpoint=tmp_path / "state", resume=True) as control:
        result = budget_perceptron(K, Y, rest, **{**options, "orders": 77}, control=control)
    assert np.array_equal(rest.coef, whole.coef)
    assert np.array_equal(rest.source, whole.source)
    assert np.array_equal(rest.mistakes, whole.mistakes)
    assert np.array_equal(result.mistakes_per_epoch, expected.mistakes_per_epoch)


def test_values_that_are_not_finite_are_refused():
    K = np.array([[1.0, np.inf], [np.inf, 1.0]])
    model = Budget(1, 1, "remove")
    with pytest.raises(InputError, match="is not finite for x = point 0 and another: rescale the data"):
        model.visit(K, K.diagonal(), np.array([[1.0], [-1.0]]), np.arange(2))
