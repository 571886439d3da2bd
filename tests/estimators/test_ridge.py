"""KernelRidge and KernelLeastSquares: closed forms, scikit-learn, leaving out, awkward data."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.kernel_ridge import KernelRidge as Peer
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import Gaussian, KernelLeastSquares, KernelRidge, Linear, Polynomial, Sigmoid, config
from mercer.errors import InputError, MemoryBudgetError


@parametrize_with_checks(
    [
        KernelRidge(),
        KernelRidge(alpha=0.1, kernel="linear", fit_intercept=False),
        KernelRidge(lam=1e-3, kernel=Gaussian(sigma="median"), solver="cholesky"),
        KernelRidge(kernel="poly", degree=2, solver="cg"),
        KernelLeastSquares(),
        KernelLeastSquares("linear", fit_intercept=False),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture
def problem(rng):
    X = rng.normal(size=(60, 4))
    y = np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=60) + 3
    return X, y


def objective(model, X, y, alpha, weight=None):
    """Σ wᵢ (yᵢ - f(xᵢ))² + α ‖f‖², by definition."""
    errors = (y - model.predict(X)) ** 2
    return errors @ (np.ones(len(y)) if weight is None else weight) + alpha * model.expansion_.norm() ** 2


# --- against scikit-learn ----------------------------------------------------------------------------


@pytest.mark.parametrize("targets", [None, 3])
def test_the_gaussian_kernel_is_scikit_learns(rng, problem, targets):
    X, y = problem
    y = y if targets is None else rng.normal(size=(60, targets))
    weight = rng.uniform(0.1, 3, 60)
    Z = rng.normal(size=(20, 4))
    ours = KernelRidge(0.3, kernel="rbf", gamma=0.2, fit_intercept=False).fit(X, y, weight)
    theirs = Peer(0.3, kernel="rbf", gamma=0.2).fit(X, y, weight)
    assert ours.predict(Z) == pytest.approx(theirs.predict(Z), abs=1e-8)
    assert ours.dual_coef_ == pytest.approx(theirs.dual_coef_, abs=1e-8)


@pytest.mark.parametrize("solver", ["cholesky", "mixed", "primal", "cg"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_the_linear_kernel_is_ridge(rng, problem, solver, fit_intercept, make):
    X, y = problem
    weight = rng.uniform(0.1, 3, 60)
    ours = KernelRidge(0.7, kernel="linear", fit_intercept=fit_intercept, solver=solver)
    ours.fit(make(X), y, weight)
    theirs = Ridge(0.7, fit_intercept=fit_intercept).fit(X, y, weight)
    assert ours.predict(make(X)) == pytest.approx(theirs.predict(X), abs=1e-8)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-8)
    anchors = ours.expansion_.anchors
    dense = anchors.toarray() if sparse.issparse(anchors) else anchors
    assert ours.expansion_.coef @ dense == pytest.approx(theirs.coef_, abs=1e-8)


def test_the_lecture_convention(problem):
    X, y = problem
    ours = KernelRidge(lam=1e-2, kernel=Gaussian(1.0), fit_intercept=False).fit(X, y)
    K = Gaussian(1.0)(X)
    # α = (K + nλI)⁻¹ y
    assert ours.dual_coef_ == pytest.approx(np.linalg.solve(K + 60 * 1e-2 * np.eye(60), y), abs=1e-10)


def test_each_target_may_have_its_penalty(rng, problem):
    X, _ = problem
    Y = rng.normal(size=(60, 3))
    alphas = [0.1, 10.0, 0.1]
    together = KernelRidge(alphas, kernel=Gaussian(1.0)).fit(X, Y)
    for t, alpha in enumerate(alphas):
        alone = KernelRidge(alpha, kernel=Gaussian(1.0)).fit(X, Y[:, t])
        assert together.predict(X)[:, t] == pytest.approx(alone.predict(X), abs=1e-10)
        assert together.intercept_[t] == pytest.approx(alone.intercept_, abs=1e-10)
        assert together.loo_residuals_[:, t] == pytest.approx(alone.loo_residuals_, abs=1e-10)
    for solver in ("cg", "mixed"):
        iterated = KernelRidge(alphas, kernel=Gaussian(1.0), solver=solver).fit(X, Y)
        assert iterated.predict(X) == pytest.approx(together.predict(X), abs=1e-7)
    with pytest.raises(InputError, match=r"alpha must be a number or one per target \(3\), got 2"):
        KernelRidge([0.1, 1.0]).fit(X, Y)


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(2, c=1.0), Polynomial(3, c=0.5, gamma=0.3)])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_primal_gives_the_same(rng, kernel, fit_intercept):
    X, Y = rng.normal(size=(150, 4)), rng.normal(size=(150, 2))
    weight = rng.integers(0, 3, 150).astype(float)
    options = {"kernel": kernel, "fit_intercept": fit_intercept}
    dual = KernelRidge([0.5, 2.0], solver="cholesky", **options).fit(X, Y, weight)
    primal = KernelRidge([0.5, 2.0], **options).fit(X, Y, weight)
    assert primal.report_.plan.solver == "Cholesky factorisation in the features"
    assert "fewer than there are points" in primal.report_.plan.why[0]
    assert primal.predict(X) == pytest.approx(dual.predict(X), abs=1e-10)
    assert primal.report_.objective == pytest.approx(dual.report_.objective, rel=1e-10)
    assert primal.loo_residuals_ == pytest.approx(dual.loo_residuals_, abs=1e-10)


# --- the objective -----------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_report_tells_the_objective(rng, problem, fit_intercept):
    X, y = problem
    weight = rng.uniform(0.1, 3, 60)
    model = KernelRidge(0.3, kernel=Gaussian(1.0), fit_intercept=fit_intercept).fit(X, y, weight)
    assert model.report_.objective == pytest.approx(objective(model, X, y, 0.3, weight), rel=1e-9)
    assert model.report_.converged and model.report_.time > 0


@given(st.integers(0, 10**6))
@settings(max_examples=30)
def test_no_other_function_does_better(seed):
    """The representer theorem: neither a change on the span nor one orthogonal to it lowers the objective."""
    rng = np.random.default_rng(seed)
    X, y, k = rng.normal(size=(15, 2)), rng.normal(size=15), Gaussian(1.0)
    model = KernelRidge(0.5, kernel=k).fit(X, y)
    J = model.report_.objective
    f = model.expansion_
    on_the_span = type(f)(k, X, f.coef + 1e-3 * rng.normal(size=15), f.intercept)
    new = rng.normal(size=(3, 2))
    c = rng.normal(size=3)
    # g = Σ c k(new, ·) minus its projection on the span: orthogonal to every k(xᵢ, ·), so zero at every xᵢ
    projection = np.linalg.lstsq(k(X), k(X, new) @ c, rcond=1e-12)[0]
    g = type(f)(k, np.vstack([new, X]), np.concatenate([c, -projection]))
    assert g(X) == pytest.approx(0, abs=1e-7)

    def value(h):
        return ((y - h(X)) ** 2).sum() + 0.5 * h.norm() ** 2

    assert value(f) == pytest.approx(J, rel=1e-9)
    assert value(on_the_span) > J
    assert value(f + g) > J - 1e-9 * abs(J)
    assert value(f + g) == pytest.approx(J + 0.5 * g.norm() ** 2, abs=1e-6)


# --- leaving one out ---------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Linear(), Polynomial(2)])
def test_leaving_one_out_is_refitting(rng, fit_intercept, kernel):
    X, y = rng.normal(size=(25, 3)), rng.normal(size=25) + 2
    weight = rng.uniform(0.5, 2, 25)
    model = KernelRidge(0.2, kernel=kernel, fit_intercept=fit_intercept).fit(X, y, weight)
    for i in range(25):
        rest = weight.copy()
        rest[i] = max(0.0, weight[i] - 1)  # one observation less
        refit = clone(model).fit(X, y, rest)
        assert model.loo_residuals_[i] == pytest.approx(y[i] - refit.predict(X[i : i + 1])[0], abs=1e-8)


def test_left_out_errors_survive_pickling(problem):
    model = KernelRidge(0.2).fit(*problem)
    expected = model.loo_residuals_
    again = pickle.loads(pickle.dumps(KernelRidge(0.2).fit(*problem)))
    assert again.loo_residuals_ == pytest.approx(expected, abs=1e-12)


# --- least squares -----------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_minimum_norm_of_a_singular_problem(rng, fit_intercept):
    X = rng.normal(size=(10, 30))  # more columns than points: many solutions
    X[5:] = X[:5]  # and each point twice
    y = rng.normal(size=10)
    model = KernelLeastSquares("linear", fit_intercept=fit_intercept).fit(X, y)
    truth = LinearRegression(fit_intercept=fit_intercept).fit(X, y)  # by the pseudo-inverse
    assert model.expansion_.coef @ X == pytest.approx(truth.coef_, abs=1e-10)
    assert model.intercept_ == pytest.approx(truth.intercept_ if fit_intercept else 0.0, abs=1e-10)
    assert model.rank_ == (4 if fit_intercept else 5)


def test_a_zero_penalty_is_least_squares(problem):
    X, y = problem
    zero = KernelRidge(0.0, kernel=Gaussian(1.0)).fit(X, y)
    assert zero.predict(X) == pytest.approx(KernelLeastSquares(Gaussian(1.0)).fit(X, y).predict(X))
    assert zero.predict(X) == pytest.approx(y, abs=1e-6)
    with pytest.raises(InputError, match="positive for all targets or zero for all"):
        KernelRidge([0.0, 1.0]).fit(X, np.column_stack([y, y]))


# --- when K does not fit -----------------------------------------------------------------------------


def test_a_small_budget_changes_the_plan(rng):
    X = rng.normal(size=(1500, 3))
    y = np.sin(X).sum(axis=1)
    full = KernelRidge(1e-2, kernel=Gaussian(1.0)).fit(X, y)
    with config(memory="12MiB", threads=2):
        model = KernelRidge(1e-2, kernel=Gaussian(1.0))
        plan = model.plan(X)
        assert plan.solver.startswith("conjugate gradients with a factor of rank ") and plan.iterative
        assert 0 < plan.rank < 375 and plan.memory <= 12 * 2**20  # a quarter of n would take 4.5 MB
        assert "does not fit the memory budget" in plan.why[0]
        with pytest.raises(MemoryBudgetError, match="solver='cg'"):
            KernelRidge(1e-2, kernel=Gaussian(1.0), solver="cholesky").fit(X, y)
        small = KernelRidge(1e-2, kernel=Gaussian(1.0), solver="cg").plan(X[:100])
        assert small.memory < 12 * 2**20
    lean = KernelRidge(1e-2, kernel=Gaussian(1.0), solver="cg").fit(X, y)
    assert lean.predict(X) == pytest.approx(full.predict(X), abs=1e-7)
    assert 0 <= lean.report_.gap <= 1e-12
    assert lean.report_.objective == pytest.approx(full.report_.objective, rel=1e-6)


@pytest.mark.sample(2)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_factor_of_low_rank_makes_small_penalties_practical(rng, weighted):
    X = rng.normal(size=(800, 3))
    Y = np.column_stack([np.sin(X).sum(axis=1), X[:, 0]]) + 0.1 * rng.normal(size=(800, 2))
    weight = rng.integers(0, 3, 800).astype(float) if weighted else None
    options = {"alpha": [1e-4, 1e-2], "kernel": Gaussian(1.0)}
    exact = KernelRidge(**options, solver="cholesky").fit(X, Y, weight)
    with pytest.warns(ConvergenceWarning, match="did not converge after 300 iterations"):
        KernelRidge(**options, solver="cg", rank=0, max_iter=300).fit(X, Y, weight)
    model = KernelRidge(**options, solver="cg", rank=200).fit(X, Y, weight)
    assert model.report_.converged and model.report_.iterations <= 100
    # the gap bounds the squared distance on the points with a weight; others are between them
    np.testing.assert_allclose(model.predict(X), exact.predict(X), atol=1e-5)
    assert model.report_.plan.rank == 200 and "rank 200 keeps the iterations few" in str(model.report_.plan)
    free = KernelRidge(**options, solver="cg", rank=0).plan(X, Y)
    assert free.rank == 0 and free.solver == "conjugate gradients" and "factor" not in str(free)
    assert model.report_.memory - free.memory >= 8 * 800 * 200


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_factor_in_float32_makes_the_iterations_few_in_any_precision(rng, dtype):
    X = rng.normal(size=(300, 2))
    with config(dtype=dtype):
        model = KernelRidge(1e-2, kernel=Gaussian(1.0), solver="mixed").fit(X, np.sin(X[:, 0]))
    assert model.report_.converged and model.report_.iterations <= 10


def test_a_factor_that_does_not_fit_is_refused_or_left_out_and_told(rng):
    X, y = rng.normal(size=(3000, 3)), rng.normal(size=3000)
    large = KernelRidge(1.0, kernel=Gaussian(1.0), solver="cg", rank=2000)
    with (
        config(memory="8MiB", threads=1),
        pytest.raises(MemoryBudgetError, match="lower rank, use fewer points"),
    ):
        large.fit(X, y)
    with config(memory="2600KB", threads=1):  # what vectors and tiles take
        plan = KernelRidge(1.0, kernel=Gaussian(1.0)).plan(X)
    assert plan.rank == 0 and "there is no memory for a factor of K" in str(plan)


def test_float32_kernel_values_and_a_factor(rng):
    X = rng.normal(size=(500, 3))
    y = np.sin(X).sum(axis=1)
    exact = KernelRidge(1e-2, kernel=Gaussian(1.0), solver="cholesky").fit(X, y)
    with config(dtype="float32"):
        model = KernelRidge(1e-2, kernel=Gaussian(1.0), solver="cg", tol=1e-5).fit(X, y)
    assert model.report_.converged and model.report_.iterations < 60
    # a residual of 1e-5 |y|, and products in float32
    assert np.linalg.norm(model.predict(X) - exact.predict(X)) <= 1e-4 * np.linalg.norm(y)


def test_blocks_of_points_on_request(rng, tmp_path):
    X = rng.normal(size=(300, 2))
    y = np.sin(X).sum(axis=1) + 0.1 * rng.normal(size=300)
    weight = rng.integers(0, 3, 300).astype(float)
    exact = KernelRidge(1.0, kernel=Gaussian(1.0), solver="cholesky").fit(X, y, weight)
    model = KernelRidge(1.0, kernel=Gaussian(1.0), solver="sketch", tol=1e-5).fit(X, y, weight)
    report = model.report_
    assert report.plan.solver == "block sketch-and-project" and report.plan.method == "blocks"
    assert report.converged and report.gap <= 1e-8 * (weight @ y**2)
    assert model.predict(X) == pytest.approx(exact.predict(X), abs=1e-4)
    assert report.objective - exact.report_.objective <= report.gap
    with pytest.warns(ConvergenceWarning, match="did not converge after 1 iterations, gap "):
        KernelRidge(1e-2, kernel=Gaussian(1.0), solver="sketch", max_iter=1).fit(X, y)
    slow = KernelRidge(1e-2, kernel=Gaussian(1.0), solver="sketch", max_time=1e-9)
    with pytest.warns(ConvergenceWarning, match="ran out of max_time=1e-09 seconds .*, gap unknown"):
        slow.fit(X, y)
    assert np.isnan(slow.report_.gap)
    assert "unknown: the run was stopped before a product with all of K could tell" in str(slow.report_)


def test_a_factor_in_float32_takes_half_the_memory_and_is_refined(rng):
    X = rng.normal(size=(1500, 3))
    y = np.sin(X).sum(axis=1) + 0.1 * rng.normal(size=1500)
    weight = rng.uniform(0.1, 3.0, 1500)
    full = KernelRidge(1e-2, kernel=Gaussian(1.0), solver="cholesky").fit(X, y, weight)
    with config(memory="18MB"):  # K takes 18 MB in float64
        model = KernelRidge(1e-2, kernel=Gaussian(1.0)).fit(X, y, weight)
    assert "in float32" in model.report_.plan.solver
    assert model.report_.plan.why[0].endswith("does not fit the memory budget in float64")
    assert model.report_.plan.memory < 18e6
    # ‖f - f*‖ on the points is at most the residual, 1e-10 ‖y‖
    assert np.linalg.norm(model.predict(X) - full.predict(X)) <= 1e-9 * np.linalg.norm(y)
    assert model.report_.iterations <= 12
    assert model.loo_residuals_ == pytest.approx(full.loo_residuals_, abs=1e-7)


@pytest.mark.parametrize("alpha", [1e-6, 1e-9])
def test_a_penalty_below_the_rounding_of_float32(rng, alpha):
    """ε‖K‖ is 1e-4 here: the factor is that of a larger penalty, the solution is not."""
    X = rng.uniform(-1, 1, size=(600, 2))
    y = np.cos(3 * X[:, 0]) * X[:, 1]
    model = KernelRidge(alpha, kernel=Gaussian(2.0), solver="mixed", tol=1e-9).fit(X, y)
    exact = KernelRidge(alpha, kernel=Gaussian(2.0), solver="cholesky").fit(X, y)
    assert model.report_.stopped == "converged"
    # Cholesky's own solution is that of K + E with ‖E‖ of about ε‖K‖, which moves Kα by ‖Eα‖ at most
    rounding = np.finfo(float).eps * len(X) * np.linalg.norm(exact.dual_coef_)
    assert np.linalg.norm(model.predict(X) - exact.predict(X)) <= 1e-7 * np.linalg.norm(y) + rounding


def test_many_points_are_solved_in_float32_and_refined_where_the_penalty_allows_it(rng):
    X = rng.normal(size=(9000, 2))
    with config(memory="4GB"):
        assert "float32" in KernelRidge(1e-2, kernel=Gaussian(1.0)).plan(X).solver
        # 2 % of ε tr K is 2e-5
        assert "float32" not in KernelRidge(1e-6, kernel=Gaussian(1.0)).plan(X).solver
        assert "float32" not in KernelRidge(1e-2, kernel=Sigmoid(0.1, 1.0)).plan(X).solver
        assert "float32" not in KernelRidge(1e-2, kernel=Gaussian(1.0)).plan(X[:2000]).solver
        with config(dtype="float32"):
            assert "refined" not in KernelRidge(1e-2, kernel=Gaussian(1.0)).plan(X).solver


def test_leaving_the_primal_keeps_the_budget(rng):
    """Cubes of large numbers leave the primal for K, which has to fit as well."""
    X, y = 1e3 + rng.normal(size=(1500, 3)), rng.normal(size=1500)
    with (
        config(memory="8MiB"),
        pytest.warns(UserWarning, match="too large for the primal"),
        pytest.raises(MemoryBudgetError, match="Cholesky factorisation on 1,500 points needs"),
    ):
        KernelRidge(kernel="poly", gamma=1.0).fit(X, y)


def test_too_few_iterations_are_told(rng):
    X, y = rng.normal(size=(200, 2)), rng.normal(size=200)
    with pytest.warns(ConvergenceWarning, match="did not converge after 2 iterations.*raise max_iter"):
        model = KernelRidge(1e-6, solver="cg", max_iter=2).fit(X, y)
    assert model.report_.stopped == "max_iter" and model.report_.gap > 0
    best = KernelRidge(1e-6).fit(X, y)
    assert objective(model, X, y, 1e-6) - model.report_.gap <= best.report_.objective * (1 + 1e-6)
    with pytest.warns(ConvergenceWarning, match="ran out of max_time"):
        KernelRidge(1e-9, solver="cg", max_time=1e-9).fit(X, y)


def test_nothing_is_fitted_by_a_plan(problem):
    model = KernelRidge()
    plan = model.plan(*problem)
    assert plan.memory >= 60 * 60 * 8 and "Cholesky" in str(plan)
    with pytest.raises(NotFittedError):
        model.predict(problem[0])


# --- awkward data ------------------------------------------------------------------------------------


def test_an_indefinite_kernel_is_refused_or_repaired_and_told(rng):
    X, y = rng.normal(size=(40, 5)), rng.normal(size=40)
    for estimator in (
        KernelRidge(1e-3),
        KernelRidge(100.0),
        KernelRidge(1e-3, solver="cg"),
        KernelRidge(1e-3, solver="mixed"),
        KernelLeastSquares(),
    ):
        with pytest.raises(InputError, match=r'has the eigenvalue -\S+, .* or pass indefinite="clip"'):
            estimator.set_params(kernel=Sigmoid(0.5, -1.0)).fit(X, y)
    for solver in ("cg", "mixed"):
        with pytest.raises(InputError, match=f"got solver='{solver}', which does not compute them"):
            KernelRidge(kernel="sigmoid", solver=solver, indefinite="clip").fit(X, y)
    with pytest.warns(UserWarning, match=r"is not positive definite on these points: the eigenvalue -"):
        model = KernelRidge(1e-3, kernel=Sigmoid(0.5, -1.0), indefinite="clip").fit(X, y)
    assert "nearest kernel matrix" in model.report_.warnings[0]
    # the same by hand: the part of the centred K with positive eigenvalues
    H = np.eye(40) - 1 / 40
    values, Q = np.linalg.eigh(H @ Sigmoid(0.5, -1.0)(X) @ H)
    use = values > 1e-10
    expected = Q[:, use] @ ((Q[:, use].T @ y) / (values[use] + 1e-3))
    assert model.dual_coef_ == pytest.approx(expected, rel=1e-8, abs=1e-8)
    # also where K + αI is positive definite, and for two penalties at once
    both = KernelRidge([1e-3, 100.0], kernel=Sigmoid(0.5, -1.0), indefinite="clip")
    with pytest.warns(UserWarning, match="is not positive definite on these points"):
        both.fit(X, np.column_stack([y, y]))
    strong = Q[:, use] @ ((Q[:, use].T @ y) / (values[use] + 100.0))
    assert both.dual_coef_ == pytest.approx(np.column_stack([expected, strong]), rel=1e-8, abs=1e-8)
    assert both.loo_residuals_[:, 0] == pytest.approx(model.loo_residuals_, rel=1e-6)


def test_a_conditionally_positive_definite_kernel_is_welcome_beside_an_intercept(rng):
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    K = -np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    model = KernelRidge(0.1, kernel="precomputed").fit(K, y)
    assert model.report_.warnings == ()
    assert model.dual_coef_.sum() == pytest.approx(0.0, abs=1e-10)
    # the saddle point: (K + αI) a + b 1 = y, Σ a = 0
    system = np.block([[K + 0.1 * np.eye(40), np.ones((40, 1))], [np.ones((1, 40)), np.zeros((1, 1))]])
    expected = np.linalg.solve(system, np.append(y, 0.0))
    assert np.append(model.dual_coef_, model.intercept_) == pytest.approx(expected, abs=1e-9)
    with pytest.raises(InputError, match="is not positive definite"):
        KernelRidge(0.1, kernel="precomputed", fit_intercept=False).fit(K, y)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_scales(rng, scale):
    X = rng.normal(size=(50, 3))
    y = X[:, 0] ** 2
    model = KernelRidge(1e-3).fit(scale * X, scale * y)
    assert model.predict(scale * X) / scale == pytest.approx(KernelRidge(1e-3).fit(X, y).predict(X), abs=1e-6)


def test_duplicates_constant_columns_and_tiny_penalties(rng):
    X = np.repeat(rng.normal(size=(10, 2)), 5, axis=0)
    X = np.column_stack([X, np.ones(50), X[:, 0]])
    y = rng.normal(size=50)
    means = np.repeat(y.reshape(10, 5).mean(axis=1), 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for alpha in (1e-300, 1e-17, 1e-10):
            model = KernelRidge(alpha, kernel=Gaussian(0.1), solver="cholesky").fit(X, y)
            # where labels contradict each other aᵢ = (yᵢ - f(xᵢ))/α, and f is a sum of 50 such numbers
            rounding = 50 * np.finfo(float).eps / alpha if alpha > 1e-15 else 1e-10
            assert model.predict(X) == pytest.approx(means, abs=rounding)
    assert KernelLeastSquares(Gaussian(0.1)).fit(X, y).predict(X) == pytest.approx(means, abs=1e-10)


@pytest.mark.parametrize("kernel", ["linear", "poly"])
@pytest.mark.parametrize("offset", [0.0, 100.0, 1e6])
def test_far_from_the_origin(rng, kernel, offset):
    """The primal must not lose what rounding takes from the residuals, divided by α."""
    X = rng.normal(size=(200, 3))
    y = X @ [1.0, 2.0, 3.0] + 5 + 0.1 * rng.normal(size=200)
    if kernel == "poly" and offset > 100:
        return  # cubes of 1e6 leave no digits for what differs between the points
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the polynomial one may say that it left the primal
        model = KernelRidge(kernel=kernel).fit(X + offset, y)
    assert model.score(X + offset, y) > 0.99
    if kernel == "linear":
        truth = Ridge(1.0).fit(X + offset, y)
        assert model.predict(X + offset) == pytest.approx(truth.predict(X + offset), abs=1e-6)


@pytest.mark.parametrize("alpha", [1e-30, 1e-12, 1.0, 1e12])
def test_any_penalty_in_the_primal(rng, alpha):
    X = rng.lognormal(3, 2, size=(300, 3))
    y = X @ [1e-3, 2.0, 3.0] + rng.normal(size=300)
    twice = np.column_stack([X, X[:, 0]])  # collinear: as good as one column that is √2 times as large
    once = X * [np.sqrt(2), 1.0, 1.0]
    truth = Ridge(alpha, solver="svd").fit(once, y)
    model = KernelRidge(alpha, kernel="linear").fit(twice, y)
    assert model.predict(twice) == pytest.approx(truth.predict(once), abs=1e-6 * np.abs(y).max())


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e4])
def test_the_rank_does_not_depend_on_the_origin(rng, offset):
    X = rng.normal(size=(100, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = KernelLeastSquares("linear").fit(X + offset, X @ [1.0, 2.0, 3.0])
    assert model.rank_ == 3
    assert model.score(X + offset, X @ [1.0, 2.0, 3.0]) > 0.999


@pytest.mark.parametrize("factor", [0.999, 1.001, 1.01])
def test_an_indefinite_kernel_is_seen_where_the_factorisation_goes_through(rng, factor):
    X = rng.normal(size=(200, 3))
    y = X @ [1.0, 2.0, 3.0]
    K = np.tanh(0.05 * X @ X.T)
    alpha = -np.linalg.eigvalsh(K)[0] * factor
    with pytest.warns(UserWarning, match="is not positive definite on these points"):
        model = KernelRidge(alpha, kernel="precomputed", indefinite="clip").fit(K, y)
    assert model.score(K, y) > 0.9
    assert np.isfinite(model.loo_residuals_).all()


def test_the_objective_of_a_repaired_an_unfinished_and_an_unpenalised_fit(rng):
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    free = KernelRidge(0.0, kernel="linear").fit(X, y)
    assert free.report_.objective == pytest.approx(((y - free.predict(X)) ** 2).sum())
    with pytest.warns(ConvergenceWarning):
        early = KernelRidge(1e-3, kernel=Gaussian(1.0), solver="cg", max_iter=3).fit(X, y)
    assert early.report_.objective == pytest.approx(objective(early, X, y, 1e-3), rel=1e-8)
    best = KernelRidge(1e-3, kernel=Gaussian(1.0)).fit(X, y).report_.objective
    assert early.report_.objective - early.report_.gap <= best <= early.report_.objective


def test_several_penalties_by_conjugate_gradients(rng, tmp_path):
    X = rng.normal(size=(80, 3))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1]])
    options = {"kernel": Gaussian(1.0), "solver": "cg", "checkpoint": tmp_path / "state"}
    with pytest.warns(ConvergenceWarning):
        early = KernelRidge([1e-6, 1.0], max_iter=3, **options).fit(X, Y)
    assert np.abs(early.predict(X)).min(axis=0).shape == (2,) and (early.predict(X).std(axis=0) > 0).all()
    resumed = KernelRidge([1e-6, 1.0], resume=True, **options).fit(X, Y)
    whole = KernelRidge([1e-6, 1.0], kernel=Gaussian(1.0), solver="cg").fit(X, Y)
    assert np.array_equal(resumed.expansion_.coef, whole.expansion_.coef)
    assert resumed.report_.iterations == whole.report_.iterations


def test_left_out_errors_belong_to_the_fit(problem):
    model = KernelRidge(0.2).fit(*problem)
    expected = KernelRidge(0.2).fit(*problem).loo_residuals_
    assert model.set_params(fit_intercept=False, alpha=9.0).loo_residuals_ == pytest.approx(expected)
    with pytest.raises(NotFittedError):
        KernelRidge().loo_residuals_  # noqa: B018


def test_one_point():
    assert KernelRidge().fit([[1.0, 2.0]], [5.0]).predict([[9.0, 9.0]]) == pytest.approx([5.0])
    assert np.isnan(KernelRidge(kernel="linear").fit([[1.0], [2.0]], [1.0, 2.0], [1, 0]).loo_residuals_).all()
    bare = KernelRidge(fit_intercept=False, kernel=Gaussian(1.0)).fit([[1.0]], [4.0])
    assert bare.predict([[1.0]]) == pytest.approx([2.0])


def test_refusals(problem):
    X, y = problem
    for options, text in [
        ({"alpha": -1.0}, "alpha must be non-negative, got -1.0"),
        ({"lam": -1.0}, "lam must be non-negative"),
        (
            {"solver": "svd"},
            "'auto', 'cholesky', 'mixed', 'primal', 'cg', 'sparse', 'sketch', got 'svd'",
        ),
        ({"rank": -1}, "rank must be 'auto' or a whole number of at least 0, got -1"),
        ({"rank": "all"}, "rank must be 'auto' or a whole number of at least 0, got 'all'"),
        ({"solver": "primal"}, "needs a kernel with explicit features, linear or polynomial, got Gaussian"),
        ({"max_time": 0}, "max_time must be positive"),
        ({"resume": "yes"}, "resume must be True or False"),
    ]:
        with pytest.raises(InputError, match=text):
            KernelRidge(**options).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        KernelRidge().fit(X, np.where(y > 3, np.nan, y))
    with pytest.raises(ValueError, match="non-zero"):
        KernelRidge().fit(X, y, np.zeros(60))
    with pytest.raises(InputError, match="rcond must be a number between 0 and 1, got 2"):
        KernelLeastSquares(rcond=2).fit(X, y)
    with pytest.raises(InputError, match="not finite"):
        KernelRidge(kernel=Polynomial(300), solver="cholesky").fit(1e3 * X, y)


# --- data of every kind ------------------------------------------------------------------------------


def test_containers_agree(problem):
    X, y = problem
    expected = KernelRidge(0.1).fit(X, y).predict(X)
    for table in (sparse.csr_matrix(X), pd.DataFrame(X), pl.DataFrame(X), X.tolist()):
        assert KernelRidge(0.1).fit(table, y).predict(table) == pytest.approx(expected, abs=1e-10)
    K = Gaussian(1.0)(X)
    pre = KernelRidge(0.1, kernel="precomputed").fit(K, y)
    assert pre.predict(K) == pytest.approx(KernelRidge(0.1, kernel=Gaussian(1.0)).fit(X, y).predict(X))


@pytest.mark.filterwarnings("ignore::mercer.errors.SlowPathWarning")
def test_strings():
    words = ["aa", "ab", "bb", "abab", "aaaa"]

    def letters(a, b):
        return a.count("a") * b.count("a") + a.count("b") * b.count("b")

    model = KernelRidge(1e-8, kernel=letters).fit(words, [2, 1, 0, 2, 4])
    assert model.predict(["aaa"]) == pytest.approx([3], abs=1e-5)


def test_float32_values(problem):
    X, y = problem
    expected = KernelRidge(0.1).fit(X, y).predict(X)
    with config(dtype="float32"):
        assert KernelRidge(0.1).fit(X, y).predict(X) == pytest.approx(expected, abs=1e-4)


def test_a_point_of_weight_zero_is_not_there(problem):
    X, y = problem
    weight = np.arange(60) % 3.0
    model = KernelRidge(0.1).fit(X, y, weight)
    there = weight > 0
    assert len(model.expansion_) == 40
    alone = KernelRidge(0.1, kernel=model.kernel_).fit(X[there], y[there], weight[there])
    assert model.predict(X) == pytest.approx(alone.predict(X), abs=1e-10)


def test_pipelines_and_searches(problem):
    X, y = problem
    pipe = make_pipeline(StandardScaler(), KernelRidge(kernel=Gaussian(1.0)))
    search = GridSearchCV(
        pipe, {"kernelridge__alpha": [1e-3, 1.0], "kernelridge__kernel__sigma": [0.3, 3.0]}, cv=3
    )
    assert search.fit(X, y).best_estimator_[-1].kernel_.sigma in (0.3, 3.0)


def test_threads_are_obeyed(problem):
    with config(threads=1):
        one = KernelRidge(0.1).fit(*problem).predict(problem[0])
    assert one == pytest.approx(KernelRidge(0.1).fit(*problem).predict(problem[0]), abs=1e-12)


def test_a_factor_that_is_there_is_used_whatever_the_clock_says(rng):
    X = rng.normal(size=(200, 3))
    y = np.sin(X[:, 0])
    exact = KernelRidge(0.1, solver="cholesky").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KernelRidge(0.1, solver="mixed", max_time=1e-9).fit(X, y)
    assert model.predict(X) == pytest.approx(exact.predict(X), abs=1e-4)
    assert model.report_.stopped == ("converged" if model.report_.iterations != 1 else "max_time")


@pytest.mark.parametrize("solver", ["primal", "cholesky", "auto"])
@pytest.mark.parametrize("targets", [0, 1, 3])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_the_weights_of_a_linear_kernel(rng, solver, targets, form):
    X, y = rng.normal(size=(40, 3)), rng.normal(size=(40, targets) if targets else 40)
    for fit_intercept in (True, False):
        peer = Ridge(alpha=0.5, fit_intercept=fit_intercept).fit(X, y)
        model = KernelRidge(0.5, kernel="linear", solver=solver, fit_intercept=fit_intercept).fit(form(X), y)
        assert model.coef_.shape == peer.coef_.reshape(model.coef_.shape).shape == (*y.shape[1:], 3)
        assert model.coef_ == pytest.approx(peer.coef_.reshape(*y.shape[1:], 3))
        assert model.predict(form(X)) == pytest.approx(X @ model.coef_.T + model.intercept_)
    dual = Peer(alpha=0.5, kernel="linear").fit(X, y).dual_coef_
    assert model.dual_coef_.shape == dual.shape
    assert model.dual_coef_ == pytest.approx(dual, abs=1e-9)
    assert X.T @ model.dual_coef_ == pytest.approx(model.coef_.T)


def test_other_kernels_have_no_weights(rng):
    X, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    assert not hasattr(KernelRidge(), "coef_")
    with pytest.raises(AttributeError, match="coef_ is there after the fit of a linear kernel alone"):
        _ = KernelRidge().fit(X, y).coef_


def test_a_small_budget_means_many_products_and_then_landmarks(rng):
    """A factor of a low rank leaves more iterations: they are planned, and "auto" takes landmarks instead."""
    X = rng.normal(size=(30_000, 4))
    seconds = []
    for memory in ("50MiB", "200MiB", "1GiB"):
        with config(memory=memory, threads=2):
            plan = KernelRidge(kernel=Gaussian(1.0)).plan(X)
            seconds.append(plan.seconds)
            assert plan.method == "lazy"
            assert (KernelRidge(kernel=Gaussian(1.0), landmarks="auto").plan(X).landmarks > 0) == (
                plan.seconds > 60
            )
    assert seconds[0] > 2 * seconds[1] > 2 * seconds[2]
