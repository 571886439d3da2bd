"""KernelLogisticRegression: scikit-learn's LogisticRegression, independent solvers, every kind of data."""

import os
import pickle
import signal
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import Expansion, Gaussian, Linear, config
from mercer.errors import InputError
from mercer.estimators.logistic import KernelLogisticRegression
from mercer.solvers import control
from mercer.solvers.result import Stop


@parametrize_with_checks(
    [
        KernelLogisticRegression(),
        KernelLogisticRegression("linear", lam=1e-3, class_weight="balanced"),
        KernelLogisticRegression(solver="gradient", fit_intercept=False, tol=1e-14),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture
def moons(rng):
    """Two noisy arcs."""
    t = rng.uniform(0, np.pi, 80)
    y = np.arange(80) % 2
    X = np.column_stack([np.cos(t) + y, np.sin(t) * (1 - 2 * y)]) + 0.3 * rng.normal(size=(80, 2))
    return X, y


def objective(model, X, y, weight):
    """C Σ w (-log P) + ½ Σ ‖f‖², from the fitted parts alone."""
    loss = -model.predict_log_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return model.C * weight @ loss + 0.5 * np.sum(model.expansion_.norm() ** 2)


# --- against others ----------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 1.0, 1: 3.0, 2: 0.5}])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_linear_kernel_is_logistic_regression(rng, C, classes, class_weight, fit_intercept):
    X = rng.normal(size=(90, 4))
    y = np.digitize(X @ [1.0, -1.0, 0.5, 0.0] + rng.normal(size=90), [-0.7, 0.7][: classes - 1])
    if isinstance(class_weight, dict):
        class_weight = {c: class_weight[c] for c in range(classes)}
    weight = rng.uniform(0.1, 3.0, 90)
    ours = KernelLogisticRegression(
        "linear", C=C, class_weight=class_weight, fit_intercept=fit_intercept, tol=1e-13
    ).fit(X, y, weight)
    # scikit-learn balances by counts and not by weights; the same weights by hand
    sums = np.bincount(y, weight)
    balanced = (weight.sum() / (classes * sums))[y] if class_weight == "balanced" else 1.0
    theirs = LogisticRegression(
        C=C,
        class_weight=None if class_weight == "balanced" else class_weight,
        fit_intercept=fit_intercept,
        solver="newton-cg" if classes > 2 else "newton-cholesky",
        tol=1e-12,
        max_iter=10_000,
    ).fit(X, y, weight * balanced)
    # gap ≤ 1e-13 J gives |f - f*| ≤ √(2·1e-13·J·k(x,x)), about 1e-5 at worst here and 1e-8 in fact
    assert ours.predict_proba(X) == pytest.approx(theirs.predict_proba(X), abs=1e-6)


def primal(L, codes, classes, weight):
    """C Σ w (-log P) + ½ Σ ‖u‖² with F = Lu + b, K = LLᵀ, of (u, b) in a row, with its gradient."""
    n = len(codes)
    hot = np.eye(classes)[codes]

    def value(x):
        U, b = x[: n * classes].reshape(n, classes), x[n * classes :]
        F = L @ U + b
        top = logsumexp(F, axis=1)
        G = weight[:, None] * (np.exp(F - top[:, None]) - hot)
        J = weight @ (top - (F * hot).sum(axis=1)) + 0.5 * (U * U).sum()
        return J, np.concatenate([(U + L.T @ G).ravel(), G.sum(axis=0)])

    return value


@pytest.mark.parametrize("classes", [2, 4])
def test_an_independent_solver_finds_the_same_objective(rng, classes):
    X = rng.normal(size=(40, 2))
    y = rng.integers(classes, size=40)
    weight = rng.uniform(0.5, 2.0, 40)
    model = KernelLogisticRegression(Gaussian(sigma=1.0), C=2.0, tol=1e-12).fit(X, y, weight)
    values, vectors = np.linalg.eigh(Gaussian(sigma=1.0)(X))
    # two classes with one function f are the softmax of ±f/2, of which ½ Σ‖f_c‖² is ¼‖f‖²
    scale = 0.5 if classes == 2 else 1.0
    found = minimize(
        primal(vectors * np.sqrt(np.maximum(values, 0)), y, classes, 2.0 * scale * weight),
        np.zeros(41 * classes),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 2000, "ftol": 1e-16, "gtol": 1e-8},
    )
    assert model.report_.objective == pytest.approx(found.fun / scale, rel=1e-8)
    assert objective(model, X, y, weight) == pytest.approx(model.report_.objective, rel=1e-10)


def test_clarabel_finds_the_same_probabilities(moons):
    cvxpy = pytest.importorskip("cvxpy")
    X, y = moons
    K = Gaussian(sigma=0.7)(X)
    L = np.linalg.cholesky(K + 1e-12 * np.eye(80))
    u, b = cvxpy.Variable(80), cvxpy.Variable()
    s = 2.0 * y - 1
    loss = cvxpy.sum(cvxpy.logistic(-cvxpy.multiply(s, L @ u + b)))
    problem = cvxpy.Problem(cvxpy.Minimize(5.0 * loss + 0.5 * cvxpy.sum_squares(u)))
    problem.solve(solver="CLARABEL")
    model = KernelLogisticRegression(Gaussian(sigma=0.7), C=5.0).fit(X, y)
    assert model.report_.objective == pytest.approx(problem.value, rel=1e-6)
    # the objective is 1-strongly convex: |f - f*| ≤ √(2·1e-6·J) ≈ 1e-2 at worst, so P within 3e-3
    assert model.decision_function(X) == pytest.approx(L @ u.value + b.value, abs=1e-2)


def test_newton_and_gradient_agree(moons):
    X, y = moons
    for labels in (y, y + (X[:, 0] > 1)):
        newton = KernelLogisticRegression(tol=1e-10).fit(X, labels)
        gradient = KernelLogisticRegression(tol=1e-10, solver="gradient").fit(X, labels)
        assert gradient.report_.converged and "gradient descent" in gradient.report_.plan.solver
        assert gradient.n_iter_ > newton.n_iter_
        assert gradient.predict_proba(X) == pytest.approx(newton.predict_proba(X), abs=1e-4)


def test_the_representer_theorem(moons, rng):
    """No function with further anchors does better: b's best, and ‖f‖² grows by what is orthogonal."""
    X, y = moons
    model = KernelLogisticRegression(Gaussian(sigma=0.7), C=3.0, tol=1e-12).fit(X, y)
    k, Z = model.kernel_, rng.normal(size=(30, 2))
    weight = np.ones(80)
    J = objective(model, X, y, weight)
    f = model.expansion_
    for size in (1e-3, 1e-1, 1.0):
        g = Expansion(k, np.concatenate([X, Z]), size * rng.normal(size=110))
        # the part of g orthogonal to the span of k(xᵢ, ·) is zero on the data
        inside = np.linalg.lstsq(k(X), g(X), rcond=1e-10)[0]
        apart = g - Expansion(k, X, inside)
        assert np.abs(apart(X)).max() < 1e-4 * size  # eigenvalues below 1e-10 λmax are left out
        for other in (f + apart, f + g):
            loss = np.logaddexp(0, -(2 * y - 1) * other(X)).sum()
            assert 3.0 * loss + 0.5 * other.norm() ** 2 > J
    wide = np.concatenate([X, Z])
    zero = KernelLogisticRegression(k, C=3.0, tol=1e-12).fit(
        wide, np.append(y, np.ones(30)), np.arange(110) < 80
    )
    assert zero.report_.objective == pytest.approx(J, rel=1e-10)
    assert np.abs(zero.expansion_.coef[80:]).max() == 0


# --- conventions -------------------------------------------------------------------------------------


def test_lam_is_the_convention_of_the_notes(moons, rng):
    X, y = moons
    weight = rng.uniform(0.5, 2.0, 80)
    model = KernelLogisticRegression(lam=0.01, C=77.0, tol=1e-12).fit(X, y, weight)
    same = KernelLogisticRegression(C=1 / (2 * 0.01 * weight.sum()), tol=1e-12).fit(X, y, weight)
    assert model.decision_function(X) == pytest.approx(same.decision_function(X))
    loss = weight @ np.logaddexp(0, -(2 * y - 1) * model.decision_function(X)) / weight.sum()
    assert model.report_.objective == pytest.approx(loss + 0.01 * model.expansion_.norm() ** 2)


@pytest.mark.parametrize("options", [{}, {"lam": 0.01}, {"class_weight": "balanced"}])
def test_weight_two_is_the_point_twice(moons, options):
    X, y = moons
    y = y + (X[:, 0] > 1.2)
    weight = np.arange(80) % 3
    model = KernelLogisticRegression(tol=1e-12, **options).fit(X, y, weight)
    times = np.repeat(np.arange(80), weight)
    twice = KernelLogisticRegression(tol=1e-12, **options).fit(X[times], y[times])
    assert model.predict_proba(X) == pytest.approx(twice.predict_proba(X), abs=1e-6)


def test_several_functions_add_up_to_zero(moons):
    X, y = moons
    model = KernelLogisticRegression().fit(X, y + (X[:, 0] > 1))
    assert model.expansion_.coef.shape == (80, 3)
    assert np.abs(model.decision_function(X).sum(axis=1)).max() < 1e-12


def test_probabilities(moons):
    X, y = moons
    for labels in (y, y + (X[:, 0] > 1)):
        model = KernelLogisticRegression().fit(X, labels)
        P = model.predict_proba(X)
        assert P.sum(axis=1) == pytest.approx(1)
        assert np.exp(model.predict_log_proba(X)) == pytest.approx(P)
        assert (model.predict(X) == model.classes_[P.argmax(axis=1)]).all()
        assert ((P > 0) & (P < 1)).all()
    assert np.isfinite(KernelLogisticRegression("linear").fit(X, y).predict_log_proba(1e6 * X)).all()


def test_report_and_plan(moons):
    X, y = moons
    model = KernelLogisticRegression().fit(X, y)
    report = model.report_
    assert report.converged and 0 <= report.gap <= 1e-8 * report.objective
    assert report.iterations == model.n_iter_ > 0 and model.n_products_ > model.n_iter_
    assert report.plan.solver == "Newton's method by Cholesky factorisations" and report.plan.iterative
    assert model.plan(X, y) == report.plan
    several = model.plan(X, np.arange(80) % 5)
    assert several.solver == "Newton's method by conjugate gradients"
    with config(memory="100KiB"):
        assert "but not a factor of it" in str(model.plan(X, y))
    with config(memory="30KiB"):
        assert "on the lazy kernel matrix" in model.plan(X, y).solver
        lazy = KernelLogisticRegression().fit(X, y)
    assert "lazy" in lazy.report_.plan.solver
    assert lazy.decision_function(X) == pytest.approx(model.decision_function(X), abs=1e-4)
    with config(memory="10KiB"), pytest.raises(MemoryError, match=r"on 80 points needs .*: use fewer points"):
        KernelLogisticRegression().fit(X, y)


@pytest.mark.sample(2)
@pytest.mark.parametrize("classes", [2, 3])
def test_a_kernel_matrix_that_does_not_fit_takes_few_products_with_a_factor(rng, classes, monkeypatch):
    X = rng.normal(size=(600, 2))
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=600), [0.0] if classes == 2 else [-0.5, 0.5])
    model = KernelLogisticRegression(Gaussian(1.0), C=1e3)
    stored = KernelLogisticRegression(Gaussian(1.0), C=1e3).fit(X, y)
    with config(memory="2700KB", threads=1):
        lazy = model.fit(X, y)
    plan = lazy.report_.plan
    assert plan.rank > 50 and f"a factor of K of rank {plan.rank} keeps the iterations few" in str(plan)
    assert plan.memory <= 2.7e6
    monkeypatch.setattr("mercer.estimators.logistic.usual_rank", lambda *_, **__: 0)
    with config(memory="2700KB", threads=1):
        slow = KernelLogisticRegression(Gaussian(1.0), C=1e3).fit(X, y)
    assert "there is no memory for a factor of K" in str(slow.report_.plan)
    assert lazy.n_products_ <= slow.n_products_ / 3
    gap = lazy.report_.gap + stored.report_.gap
    assert abs(lazy.report_.objective - stored.report_.objective) <= gap + 1e-12 * stored.report_.objective


def test_time_that_ends_in_the_factor_is_told(rng):
    X, y = rng.normal(size=(300, 2)), rng.integers(2, size=300)
    with config(memory="300KB", threads=1), pytest.warns(ConvergenceWarning, match="ran out of max_time"):
        model = KernelLogisticRegression(Gaussian(1.0), max_time=1e-9).fit(X, y)
    assert model.report_.stopped == "max_time" and model.n_iter_ == 0


@pytest.mark.parametrize(("classes", "dtype"), [(2, "float64"), (2, "float32"), (5, "float64")])
def test_memory_is_what_the_plan_says(rng, classes, dtype):
    X, y = rng.normal(size=(1500, 3)), rng.integers(classes, size=1500)
    with config(dtype=dtype, threads=1):
        model = KernelLogisticRegression(C=100.0, gamma=10.0, tol=1e-4)
        model.fit(X[:50], y[:50])  # what is compiled and imported once
        plan = model.plan(X, y)
        tracemalloc.start()
        model.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert 0.6 * plan.memory <= peak <= 1.1 * plan.memory + 2**22


# --- control -----------------------------------------------------------------------------------------

RUN = """
import os, signal, sys
import numpy as np
from mercer.solvers import control
from mercer.estimators.logistic import KernelLogisticRegression

control._EVERY = 0
rng = np.random.default_rng(0)
X = rng.normal(size=(150, 2))
y = np.arange(150) % int(sys.argv[3])
seen = []

def watch(event):
    seen.append(event)
    if len(seen) == int(sys.argv[4]):
        os.kill(os.getpid(), signal.SIGKILL)

model = KernelLogisticRegression(C=100.0, solver=sys.argv[2], tol=1e-6)
model.set_params(checkpoint=sys.argv[1], progress=watch).fit(X, y)
"""


@pytest.mark.parametrize(
    ("solver", "after", "classes"),
    [
        ("newton", 4, 3),
        pytest.param("newton", 4, 2, marks=pytest.mark.full),
        pytest.param("gradient", 37, 2, marks=pytest.mark.full),
        pytest.param("gradient", 37, 3, marks=pytest.mark.full),
    ],
)
def test_a_killed_run_resumes_as_if_nothing_had_happened(tmp_path, solver, after, classes, fork):
    path = tmp_path / "state.npz"
    run = fork(RUN, path, solver, classes, after)
    said = list(run)
    assert run.returncode == -signal.SIGKILL, "\n".join(said)
    assert path.exists()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y = np.arange(150) % classes
    model = KernelLogisticRegression(C=100.0, solver=solver, tol=1e-6)
    whole = KernelLogisticRegression(**model.get_params()).fit(X, y)
    resumed = model.set_params(checkpoint=str(path), resume=True).fit(X, y)
    assert np.array_equal(resumed.expansion_.coef, whole.expansion_.coef)
    assert np.array_equal(resumed.expansion_.intercept, whole.expansion_.intercept)
    assert resumed.n_iter_ == whole.n_iter_ and resumed.report_.gap == whole.report_.gap
    with pytest.raises(InputError, match="is the checkpoint of another fit"):
        model.set_params(C=1.0).fit(X, y)


@pytest.mark.parametrize("solver", ["newton", "gradient"])
def test_max_time_and_then_the_rest(moons, tmp_path, solver):
    X, y = moons
    path = tmp_path / "state.npz"
    model = KernelLogisticRegression(C=100.0, solver=solver, tol=1e-6, max_time=1e-9, checkpoint=path)
    with pytest.warns(
        ConvergenceWarning, match="ran out of max_time=1e-09 seconds after 0 iterations, within"
    ):
        model.fit(X, y)
    assert model.report_.stopped == "max_time" and model.report_.gap > 0
    assert np.isfinite(model.predict_proba(X)).all()
    whole = KernelLogisticRegression(C=100.0, solver=solver, tol=1e-6).fit(X, y)
    J = whole.report_.objective
    assert J <= model.report_.objective <= J + model.report_.gap
    model.set_params(max_time=None, resume=True)
    for _ in range(4):  # a step, and stopped again
        with pytest.warns(ConvergenceWarning, match="was interrupted"):
            model.set_params(progress=_Stop(1)).fit(X, y)
    model.set_params(progress=False).fit(X, y)
    assert model.report_.converged and model.n_iter_ == whole.n_iter_
    assert np.array_equal(model.expansion_.coef, whole.expansion_.coef)


class _Stop:
    """A callback that asks to stop, as Ctrl-C would, after some steps."""

    def __init__(self, steps):
        self.left = steps

    def __call__(self, event):
        self.left -= "gap" in event["facts"]  # the others are the beginning, and the past of a resumed run
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("solver", ["newton", "gradient"])
def test_ctrl_c_gives_the_best_so_far(moons, solver):
    X, y = moons
    model = KernelLogisticRegression(C=1000.0, solver=solver, tol=1e-12, progress=_Stop(3))
    with pytest.warns(ConvergenceWarning, match="was interrupted after") as caught:
        model.fit(X, y)
    assert caught[0].filename == __file__
    assert model.report_.stopped == "interrupted" and model.n_iter_ < 10
    assert model.score(X, y) > 0.5
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_step_that_is_cut_short_is_repeated(rng, tmp_path, monkeypatch):
    """Interrupted inside the conjugate gradients: the model has the part, the checkpoint has not."""
    monkeypatch.setattr(control, "_EVERY", 0)
    X, y = rng.normal(size=(120, 2)), rng.integers(3, size=120)
    path = tmp_path / "state.npz"
    asked = []

    class Cut(control.Control):
        @property
        def stopped(self):
            asked.append(1)
            return Stop.INTERRUPTED if len(asked) > 40 else super().stopped

    options = {"C": 100.0, "tol": 1e-10}
    whole = KernelLogisticRegression(**options).fit(X, y)
    model = KernelLogisticRegression(checkpoint=path, resume=True, **options)
    with monkeypatch.context() as patch:
        patch.setattr("mercer.estimators.shared.iterative.Control", Cut)
        with pytest.warns(ConvergenceWarning, match="was interrupted"):
            model.fit(X, y)
    assert model.report_.objective >= whole.report_.objective
    model.fit(X, y)
    assert np.array_equal(model.expansion_.coef, whole.expansion_.coef)


def test_max_iter(moons):
    with pytest.warns(
        ConvergenceWarning, match="did not converge after 2 iterations, within .* of the smallest"
    ):
        model = KernelLogisticRegression(C=100.0, max_iter=2).fit(*moons)
    assert model.report_.stopped == "max_iter" and len(model.report_.warnings) == 1


# --- data --------------------------------------------------------------------------------------------


def test_containers_agree(moons):
    X, y = moons
    expected = KernelLogisticRegression().fit(X, y).predict_proba(X)
    frames = [pd.DataFrame(X, columns=["u", "v"]), pl.DataFrame(X, schema=["u", "v"])]
    for table in (X.tolist(), sparse.csr_array(X), *frames):
        model = KernelLogisticRegression().fit(table, y)
        assert model.predict_proba(table) == pytest.approx(expected, abs=1e-6)


def test_precomputed_equals_direct(moons):
    X, y = moons
    k = Gaussian(sigma=0.5)
    direct = KernelLogisticRegression(k).fit(X[:60], y[:60])
    given = KernelLogisticRegression("precomputed").fit(k(X[:60]), y[:60])
    assert given.predict_proba(k(X[60:], X[:60])) == pytest.approx(direct.predict_proba(X[60:]))
    scores = cross_val_score(KernelLogisticRegression("precomputed"), k(X), y, cv=3)
    assert scores.tolist() == cross_val_score(KernelLogisticRegression(k), X, y, cv=3).tolist()


def common(a, b):
    return float(len(set(a) & set(b)))


@pytest.mark.filterwarnings("ignore::mercer.errors.SlowPathWarning")
def test_strings():
    words = ["kernel", "colonel", "kern", "corn", "cat", "cattle", "dog", "doll"]
    kinds = ["seed"] * 4 + ["pet"] * 4
    model = KernelLogisticRegression(common).fit(words, kinds)
    assert model.score(words, kinds) == 1.0
    loaded = pickle.loads(pickle.dumps(model))
    assert np.array_equal(loaded.predict_proba(words), model.predict_proba(words))


@pytest.mark.parametrize(
    "labels", [["no", "yes"], [False, True], [-1, 1], np.array(["no", "yes"], dtype=object), [2.0, 7.0]]
)
def test_labels(moons, labels):
    X, y = moons
    model = KernelLogisticRegression().fit(X, np.asarray(labels)[y])
    assert model.classes_.tolist() == list(labels)
    assert model.score(X, np.asarray(labels)[y]) > 0.8


def test_grid_search():
    X, y = load_iris(return_X_y=True)
    search = GridSearchCV(
        KernelLogisticRegression(Gaussian(sigma=1.0)), {"C": [0.1, 10.0], "kernel__sigma": [1, 3]}
    )
    assert search.fit(X, y).best_score_ > 0.95


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_scales(moons, scale):
    X, y = moons
    expected = KernelLogisticRegression(C=10.0).fit(X, y).predict_proba(X)
    assert KernelLogisticRegression(C=10.0).fit(scale * X, y).predict_proba(scale * X) == pytest.approx(
        expected, abs=1e-5
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        linear = KernelLogisticRegression("linear").fit(scale * X, y)
    assert np.isfinite(linear.predict_proba(scale * X)).all()


@pytest.mark.parametrize("C", [1e-8, 1e8])
@pytest.mark.parametrize("classes", [2, 3])
def test_extreme_penalties(rng, C, classes):
    X = rng.normal(size=(60, 2))
    y = rng.integers(classes, size=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KernelLogisticRegression(Gaussian(sigma=0.3), C=C).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()
    if C < 1:  # only b: the shares of the classes
        assert model.predict_proba(X) == pytest.approx(np.tile(np.bincount(y) / 60, (60, 1)), abs=1e-5)
    else:
        assert model.score(X, y) == 1.0


def test_awkward_points(rng):
    X = np.repeat(rng.normal(size=(15, 2)), 4, axis=0)  # duplicates, with contradictory labels
    X = np.column_stack([X, np.ones(60), X[:, 0]])
    y = rng.integers(2, size=60)
    for kernel in ("linear", "rbf", "poly"):
        model = KernelLogisticRegression(kernel, C=100.0).fit(X, y)
        assert model.report_.converged
    same = KernelLogisticRegression("linear").fit(np.zeros((60, 2)), y)
    assert same.predict_proba([[0.0, 0.0]])[0, 1] == pytest.approx(y.mean())


def test_imbalance(rng):
    X, y = rng.normal(size=(1001, 2)), np.arange(1001) == 0
    model = KernelLogisticRegression().fit(X, y)
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx(1 / 1001, rel=1e-6)  # what the best b says
    balanced = KernelLogisticRegression(class_weight="balanced").fit(X, y)
    assert balanced.predict_proba(X)[0, 1] > 0.5


def test_float32(moons):
    X, y = moons
    for labels in (y, y + (X[:, 0] > 1)):
        exact = KernelLogisticRegression(C=10.0).fit(X, labels)
        with config(dtype="float32"), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = KernelLogisticRegression(C=10.0).fit(X, labels)
        assert model.report_.gap <= 1e-4 * model.report_.objective
        assert model.predict_proba(X) == pytest.approx(exact.predict_proba(X), abs=1e-3)


def test_rounding_is_told(rng):
    X, y = rng.normal(size=(200, 2)), rng.integers(2, size=200)
    with config(dtype="float32"), pytest.warns(ConvergenceWarning, match="as good as float32 allows"):
        model = KernelLogisticRegression(Gaussian(sigma=1.0), C=10.0, tol=1e-14).fit(X, y)
    assert model.report_.converged and model.report_.warnings and model.report_.gap > 0


def test_an_indefinite_kernel_is_refused(rng):
    X, y = rng.normal(size=(60, 3)), rng.integers(2, size=60)
    for labels in (y, y + (X[:, 0] > 0)):
        with pytest.raises(InputError, match=r"has the eigenvalue -\S+, .* or repair the matrix"):
            KernelLogisticRegression("sigmoid", gamma=1.0, coef0=-1.0, C=10.0).fit(X, labels)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"C": 0.0}, "C must be positive, got 0.0"),
        ({"lam": -1.0}, "lam must be positive, got -1.0"),
        ({"tol": 0.0}, "tol must be positive, got 0.0"),
        ({"max_iter": 0}, "max_iter must be a whole number of at least 1, got 0"),
        ({"solver": "lbfgs"}, "solver must be one of 'newton', 'gradient', got 'lbfgs'"),
        ({"class_weight": "equal"}, "class_weight must be a dict or \"balanced\", got 'equal'"),
    ],
)
def test_refused_parameters(moons, options, text):
    with pytest.raises(InputError, match=text):
        KernelLogisticRegression(**options).fit(*moons)


def test_refused_data(moons):
    X, y = moons
    with pytest.raises(InputError, match="y must hold at least two classes, got one class, 0"):
        KernelLogisticRegression().fit(X, 0 * y)
    with pytest.raises(InputError, match="only one class has points of positive weight"):
        KernelLogisticRegression().fit(X, y, y)
    with pytest.raises(ValueError, match="NaN"):
        KernelLogisticRegression().fit(X, np.where(y, np.nan, 1.0))
    with pytest.raises(InputError, match="at least two classes"):
        KernelLogisticRegression().fit(X[:1], y[:1])


# --- real data ---------------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.slow
def test_usps(data_dir):
    file = np.load(data_dir / "images" / "usps.npz")
    X, y = file["X_train"][:1000].astype(float), file["y_train"][:1000]
    model = KernelLogisticRegression(gamma=0.01, C=300.0, tol=1e-6).fit(X, y)
    assert model.report_.converged and model.n_products_ < 300
    assert model.score(file["X_test"].astype(float), file["y_test"]) > 0.89
    assert isinstance(model.kernel_, Gaussian) and not isinstance(model.kernel_, Linear)


def test_a_gap_is_never_above_the_objective(rng):
    """The loss is not negative, and that is a bound too, where rounding leaves f what it is."""
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30) > 0
    with pytest.warns(ConvergenceWarning, match="of the smallest"):
        model = KernelLogisticRegression("linear", solver="gradient", max_iter=1).fit(1e3 * X, y)
    assert model.report_.gap == pytest.approx(model.report_.objective)


def test_a_weight_beyond_numbers(rng):
    with pytest.raises(InputError, match="C must be between 1e-100 and 1e100"):
        KernelLogisticRegression(C=1e300).fit(rng.normal(size=(6, 1)), [0, 1] * 3)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_warm_start_on_landmarks_gets_to_the_same_minimum_sooner(rng, classes):
    X = rng.normal(size=(400, 2))
    y = np.digitize(np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=400), [0.0, 1.0][: classes - 1])
    model = KernelLogisticRegression(Gaussian(1.0), C=1.0, landmarks=X[:30], warm_start=True, tol=1e-6)
    warm = model.fit(X, y).set_params(C=1.1).fit(X, y)
    cold = KernelLogisticRegression(Gaussian(1.0), C=1.1, landmarks=X[:30], tol=1e-6).fit(X, y)
    gaps = warm.report_.gap + cold.report_.gap
    assert abs(warm.report_.objective - cold.report_.objective) <= gaps and warm.n_iter_ < cold.n_iter_
    fewer = warm.set_params(landmarks=X[:20]).fit(X, y)  # The last function is projected on these.
    assert fewer.report_.converged and len(fewer.expansion_) == 20
    other = fewer.set_params(landmarks=X[:20, :1]).fit(X[:, :1], y)  # Other columns: it starts at zero.
    assert other.report_.converged and other.n_features_in_ == 1
