"""SVC and SVR without an intercept: duals without Σγ = 0, against other solvers."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC, LinearSVR

import mercer
from mercer import SVC, SVR, Gaussian, NuSVC
from mercer.errors import InputError
from mercer.solvers.svm.calibration import left_out

cvxpy = pytest.importorskip("cvxpy")


def quadratic_program(K, c, lo, hi):
    """min ½γᵀKγ - cᵀγ in a box, by a general solver."""
    root = np.linalg.cholesky(K + 1e-12 * np.eye(len(K)))
    gamma = cvxpy.Variable(len(c))
    value = cvxpy.sum_squares(root.T @ gamma) / 2 - c @ gamma
    cvxpy.Problem(cvxpy.Minimize(value), [gamma >= lo, gamma <= hi]).solve(solver="CLARABEL")
    return float(value.value)


@pytest.fixture
def moons():
    X, y = make_moons(120, noise=0.3, random_state=0)
    return X + 0.7, np.where(y == 1, 1.0, -1.0)


@pytest.mark.sample(5)
@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_classification_solves_its_dual(moons, kernel, C):
    X, y = moons
    model = SVC(kernel=kernel, C=C, tol=1e-9, fit_intercept=False).fit(X, y)
    gamma = np.zeros(120)
    gamma[model.support_] = model.dual_coef_[0]
    K = model.kernel_(X)
    dual = gamma @ K @ gamma / 2 - gamma @ y
    assert dual == pytest.approx(
        quadratic_program(K, y, np.minimum(C * y, 0), np.maximum(C * y, 0)), rel=1e-6
    )
    primal = gamma @ K @ gamma / 2 + C * np.maximum(0, 1 - y * (K @ gamma)).sum()
    assert primal + dual <= model.dual_gap_ <= 1e-5 * primal
    assert model.intercept_ == [0.0] and model.report_.converged
    assert model.decision_function(X) == pytest.approx(K @ gamma, abs=1e-9)
    assert abs(gamma.sum()) > 1e-3  # no sum is fixed
    assert model.margin_ == pytest.approx(2 / np.sqrt(gamma @ K @ gamma), rel=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_regression_solves_its_dual(rng, kernel):
    X = rng.uniform(-2, 2, size=(70, 2))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=70) + 1
    C, epsilon = 2.0, 0.2
    model = SVR(kernel=kernel, C=C, epsilon=epsilon, tol=1e-9, fit_intercept=False).fit(X, y)
    gamma = np.zeros(70)
    gamma[model.support_] = model.dual_coef_[0]
    K = model.kernel_(X)
    dual = gamma @ K @ gamma / 2 - gamma @ y + epsilon * np.abs(gamma).sum()
    both = np.block([[K, K], [K, K]])
    bounds = np.repeat([0.0, -C], 70), np.repeat([C, 0.0], 70)
    best = quadratic_program(both, np.concatenate([y - epsilon, y + epsilon]), *bounds)
    assert dual == pytest.approx(best, rel=1e-5) and model.intercept_ == [0.0]
    assert model.predict(X) == pytest.approx(K @ gamma, abs=1e-9)
    assert model.dual_gap_ <= 1e-4 * model.report_.objective


def test_it_is_scikit_learns_linear_machine_without_intercept(moons):
    X, y = moons
    peer = LinearSVC(C=0.5, loss="hinge", dual=True, fit_intercept=False, tol=1e-9, max_iter=1_000_000)
    model = SVC(C=0.5, kernel="linear", fit_intercept=False, tol=1e-9).fit(X, y)
    assert model.coef_ == pytest.approx(peer.fit(X, y).coef_, rel=1e-4)
    t = X @ [1.0, -0.5]
    peer = LinearSVR(C=0.5, epsilon=0.1, fit_intercept=False, tol=1e-10, max_iter=1_000_000, dual=True)
    model = SVR(C=0.5, epsilon=0.1, kernel="linear", fit_intercept=False, tol=1e-9).fit(X, t)
    assert model.coef_[0] == pytest.approx(peer.fit(X, t).coef_, rel=1e-4)


def test_hard_margin_through_the_origin():
    """w = (½, ½) is the shortest with y⟨w, x⟩ ≥ 1: that of the point (1, 1) alone."""
    X, y = np.array([[1.0, 1.0], [-1.0, -3.0], [2.0, 1.0]]), [1, -1, 1]
    model = SVC(kernel="linear", C=float("inf"), fit_intercept=False).fit(X, y)
    assert model.coef_ == pytest.approx(np.array([[0.5, 0.5]]), abs=1e-3)
    assert model.margin_ == pytest.approx(2 / np.sqrt(0.5), rel=1e-3)
    assert 0 <= model.dual_gap_ < 1e-3
    with pytest.raises(InputError, match="not separable"):  # both on one side of every line through 0
        SVC(kernel="linear", C=float("inf"), fit_intercept=False).fit([[1.0], [2.0]], [0, 1])
    SVC(kernel="linear", C=float("inf")).fit([[1.0], [2.0]], [0, 1])


@pytest.mark.parametrize("kind", ["ovo", "ovr"])
def test_several_classes_probabilities_and_files(tmp_path, kind):
    X, y = load_iris(return_X_y=True)
    model = SVC(C=5.0, multi_class=kind, probability=True, fit_intercept=False).fit(X, y)
    assert model.score(X, y) > 0.95 and not model.intercept_.any() and model.intercept_.shape == (3,)
    P = model.predict_proba(X)
    assert np.array_equal(P.argmax(axis=1), model.predict(X)) and P.sum(axis=1) == pytest.approx(1)
    mercer.save(model, tmp_path / "model")
    again = mercer.load(tmp_path / "model")
    assert again.fit_intercept is False and np.array_equal(again.predict_proba(X), P)


@pytest.mark.sample(2)
@pytest.mark.parametrize("shrinking", [True, False])
def test_many_points(shrinking):
    X, y = make_blobs(1500, centers=2, cluster_std=2.5, random_state=0)
    options = {"kernel": Gaussian(2.0), "C": 10.0, "fit_intercept": False, "tol": 1e-5}
    model = SVC(shrinking=shrinking, **options).fit(X, y)
    gamma = np.zeros(1500)
    gamma[model.support_] = model.dual_coef_[0]
    f, sign = Gaussian(2.0)(X) @ gamma, np.where(y == 1, 1, -1)
    assert model.report_.converged
    slope = sign - f
    lo, hi = np.minimum(10.0 * sign, 0), np.maximum(10.0 * sign, 0)
    assert slope[gamma < hi].max() <= 1e-4 and slope[gamma > lo].min() >= -1e-4
    assert model.plan(X, y).memory > 0


def test_paths_warm_starts_and_checkpoints(moons, tmp_path):
    X, y = moons
    apart = [SVC(C=C, fit_intercept=False, tol=1e-7).fit(X, y) for C in (0.1, 1.0, 10.0)]
    for one, model in zip(
        apart, SVC(fit_intercept=False, tol=1e-7).path(X, y, [0.1, 1.0, 10.0]), strict=True
    ):
        assert model.decision_function(X) == pytest.approx(one.decision_function(X), abs=1e-4)
    warm = SVC(warm_start=True, fit_intercept=False).fit(X, y)
    assert warm.fit(X, y).n_iter_[0] <= 5
    options = {"C": 1e3, "fit_intercept": False, "checkpoint": tmp_path / "state"}
    with pytest.warns(ConvergenceWarning):
        SVC(**options, max_iter=3).fit(X, y)
    resumed = SVC(**options, resume=True).fit(X, y)
    assert resumed.report_.converged


def test_values_left_out_are_those_of_refits(rng):
    """Without an intercept the span is linear: exact where the other points keep their places."""
    X = rng.normal(size=(40, 2))
    y = np.where(X[:, 0] + X[:, 1] + 0.1 * rng.normal(size=40) > 0, 1.0, -1.0)
    options = {"kernel": Gaussian(3.0), "C": 1.0, "tol": 1e-10, "fit_intercept": False}
    model = SVC(**options).fit(X, y)
    gamma = np.zeros(40)
    gamma[model.support_] = model.dual_coef_[0]
    K = Gaussian(3.0)(X)
    lo, hi = np.minimum(y, 0), np.maximum(y, 0)
    found = left_out(gamma, K @ gamma, lo, hi, lambda i, j: K[np.ix_(i, j)], K.diagonal(), intercept=False)

    def places(values):
        return np.sign(values) * np.where(np.abs(values) < 1 - 1e-9, 1, 2)

    kept = 0
    for i in range(40):
        others = np.delete(np.arange(40), i)
        refit = SVC(**options).fit(X[others], y[others])
        again = np.zeros(39)
        again[refit.support_] = refit.dual_coef_[0]
        error = abs(found[i] - refit.decision_function(X[[i]])[0])
        assert error < 0.5
        if np.array_equal(places(again), places(gamma[others])):
            kept += 1
            assert error < 1e-6
    assert kept >= 8


def test_conditional_kernels_need_the_intercept(moons):
    X, y = moons

    def distance(a, b):
        return -float(np.abs(a - b).sum())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mercer.errors.SlowPathWarning)
        with pytest.warns(UserWarning, match="is not positive definite"):
            SVC(kernel=distance, fit_intercept=False).fit(X[:40], y[:40])


def test_those_with_nu_have_an_intercept():
    assert "fit_intercept" not in NuSVC().get_params()
    with pytest.raises(InputError, match="fit_intercept must be True or False"):
        SVC(fit_intercept=1.5).fit([[0.0], [1.0]], [0, 1])
