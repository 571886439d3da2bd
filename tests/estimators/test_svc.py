"""SVC and NuSVC: scikit-learn's layout and numbers, pairs and rest, hard margins, control, odd data."""

import inspect
import os
import pickle
import signal
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm as libsvm
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import SVC, Gaussian, Kernel, NuSVC, Polynomial, config
from mercer.errors import InputError, MemoryBudgetError, SlowPathWarning
from mercer.estimators import svc
from mercer.solvers import control

PAIR = [(SVC, libsvm.SVC), (NuSVC, libsvm.NuSVC)]


# a point of weight 2 must be as good as two to 1e-7: small problems are solved beyond the tolerance
@parametrize_with_checks([SVC(), SVC(multi_class="ovr"), SVC(kernel="linear"), NuSVC(nu=0.3)])
def test_scikit_learn_compatibility(estimator, check):
    check(estimator)


@pytest.fixture
def iris():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    names = np.array(["setosa", "versicolor", "virginica"])
    return X[order], names[y[order]]


@pytest.fixture
def moons():
    return make_moons(200, noise=0.3, random_state=0)


def close(model, peer, X, scale=1.0):
    """The same model, up to LIBSVM's kernel values, which are in float32."""
    assert model.decision_function(X) == pytest.approx(peer.decision_function(X), abs=1e-4 * scale)
    assert model.intercept_ == pytest.approx(peer.intercept_, abs=1e-4 * scale)
    assert (model.predict(X) == peer.predict(X)).mean() > 0.99  # some f(x) are 0 but for rounding


# --- a drop-in -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ours", "theirs"), PAIR)
def test_parameters_are_those_of_scikit_learn(ours, theirs):
    mine, peer = (inspect.signature(kind).parameters for kind in (ours, theirs))
    assert set(peer) <= set(mine)
    other = {name for name in peer if mine[name].default != peer[name].default}
    assert {"cache_size"} <= other <= {"probability", "cache_size"}  # scikit-learn 1.9 deprecates the first
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in mine.values())


@pytest.mark.parametrize(("ours", "theirs"), PAIR)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
def test_layout(ours, theirs, classes, kernel, container, iris):
    X, y = iris
    keep = np.flatnonzero(np.isin(y, ["versicolor", "virginica", "setosa"][:classes]))
    X, y = X[keep], y[keep]
    options = {"kernel": kernel, "gamma": 0.3, "tol": 1e-8, "decision_function_shape": "ovo"}
    model, peer = (kind(**options).fit(container(X), y) for kind in (ours, theirs))
    # values of the cubic kernel reach 5e4: in float64 LIBSVM's solution violates its conditions by 1.5e-3,
    # whatever tol, and ours by 1e-8 (the next test)
    scale = (100 if kernel == "poly" else 1) * np.abs(peer.decision_function(container(X))).max()
    close(model, peer, container(X), scale)
    assert model.dual_coef_.shape[0] == classes - 1 and model.intercept_.shape == peer.intercept_.shape
    for name in ("support_", "n_support_", "n_iter_"):
        assert getattr(model, name).dtype == np.int32 and getattr(model, name).ndim == 1
    assert model.n_support_.sum() == len(model.support_) == model.support_vectors_.shape[0]
    assert type(model.support_vectors_) is type(peer.support_vectors_)
    assert type(model.dual_coef_) is type(peer.dual_coef_)
    assert list(y[model.support_]) == sorted(y[model.support_])
    dense = container is np.asarray
    assert np.array_equal(
        X[model.support_], model.support_vectors_ if dense else model.support_vectors_.toarray()
    )
    assert model.shape_fit_ == peer.shape_fit_ and model.fit_status_ == 0
    assert np.array_equal(model.class_weight_, peer.class_weight_)
    if kernel == "rbf":  # strictly positive definite: γ is unique where no points are equal
        full = [np.zeros((classes - 1, len(y))) for _ in range(2)]
        for coef, each in zip(full, (model, peer), strict=True):
            coef[:, each.support_] = each.dual_coef_ if dense else each.dual_coef_.toarray()
        sums = [np.add.reduceat(c[:, np.lexsort(X.T)], _first_of_equals(X), axis=1) for c in full]
        assert sums[0] == pytest.approx(sums[1], abs=2e-2 * np.abs(sums[1]).max())
    if kernel == "linear":
        assert model.coef_.shape == peer.coef_.shape and type(model.coef_) is type(peer.coef_)
        a, b = (m.coef_ if dense else m.coef_.toarray() for m in (model, peer))
        assert a == pytest.approx(b, abs=1e-4 * np.abs(b).max())
        with pytest.raises(AttributeError):
            model.coef_ = 3
    else:
        assert not hasattr(model, "coef_")


def test_the_cubic_kernel_is_solved_in_float64(iris):
    """Conditions of optimality and the gap, from NumPy's own kernel values."""
    X, y = iris
    X, y = X[y != "setosa"], np.where(y[y != "setosa"] == "virginica", 1.0, -1.0)
    model = SVC(kernel="poly", gamma=0.3, tol=1e-8).fit(X, y)
    K, gamma = (0.3 * X @ X.T) ** 3, np.zeros(100)
    gamma[model.support_] = model.dual_coef_[0]
    f = K @ gamma
    slope = y - f
    rising, falling = gamma < np.where(y > 0, 1, 0), gamma > np.where(y > 0, 0, -1)
    # values reach 5e4 and coefficients 1: rounding of f is some 1e-10
    assert slope[rising].max() - slope[falling].min() <= 2e-8
    primal = gamma @ f / 2 + np.maximum(0, 1 - y * (f + model.intercept_)).sum()
    assert 0 <= primal - (y @ gamma - gamma @ f / 2) <= 1e-6


def _first_of_equals(X):
    S = X[np.lexsort(X.T)]
    return np.flatnonzero(np.r_[True, (S[1:] != S[:-1]).any(axis=1)])


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
@pytest.mark.parametrize("break_ties", [False, True])
def test_votes(shape, break_ties, iris):
    X, y = make_blobs(120, centers=5, cluster_std=4.0, random_state=1)
    options = {"decision_function_shape": shape, "break_ties": break_ties, "tol": 1e-8}
    model, peer = (kind(**options).fit(X, y) for kind in (SVC, libsvm.SVC))
    new = np.random.default_rng(0).normal(scale=10, size=(300, 2))
    assert model.decision_function(new) == pytest.approx(peer.decision_function(new), abs=1e-4)
    if break_ties and shape == "ovo":
        with pytest.raises(ValueError, match="break_ties must be False"):
            model.predict(new)
    else:
        assert (model.predict(new) == peer.predict(new)).mean() > 0.99
    assert model.expansion_.coef.shape == (len(model.support_), 10)


@pytest.mark.parametrize("given", ["balanced", {0: 3.0}, {0: 0.5, 1: 2.0}])
def test_weights_of_classes_and_points(given, moons, rng):
    X, y = moons
    weight = rng.uniform(0.1, 3, 200)
    model = SVC(class_weight=given, gamma=1.0, tol=1e-8).fit(X, y)
    close(model, libsvm.SVC(class_weight=given, gamma=1.0, tol=1e-8).fit(X, y), X)
    model = SVC(C=3.0, gamma=1.0, tol=1e-8).fit(X, y, sample_weight=weight)
    close(model, libsvm.SVC(C=3.0, gamma=1.0, tol=1e-8).fit(X, y, sample_weight=weight), X)
    model = NuSVC(nu=0.4, gamma=1.0, tol=1e-8).fit(X, y, sample_weight=weight)
    close(model, libsvm.NuSVC(nu=0.4, gamma=1.0, tol=1e-8).fit(X, y, sample_weight=weight), X)


def test_points_without_weight_are_not_there(moons, rng):
    X, y = moons
    weight = rng.integers(0, 2, 200).astype(float)
    model = SVC(gamma=1.0, tol=1e-8).fit(X, y, sample_weight=np.where(weight > 0, weight, -0.5))
    alone = SVC(gamma=1.0, tol=1e-8).fit(X[weight > 0], y[weight > 0])
    assert model.decision_function(X) == pytest.approx(alone.decision_function(X), abs=1e-6)
    assert (weight[model.support_] > 0).all()
    with pytest.raises(ValueError, match="Invalid input - all samples have zero or negative weights"):
        SVC().fit(X, y, sample_weight=np.zeros(200))
    with pytest.raises(ValueError, match="all samples with positive weights belong to the same class"):
        SVC().fit(X, y, sample_weight=(y == 1).astype(float))
    with pytest.raises(ValueError, match=r"specified nu is infeasible: nu=0.5"):
        NuSVC().fit(X, y, sample_weight=(y == 1).astype(float))
    with pytest.raises(ValueError, match=r"classes \[2\] have no samples of positive weight"):
        SVC().fit(X, np.r_[y[:-1], 2], sample_weight=np.r_[np.ones(199), 0])


def test_nu_that_is_too_large(moons):
    X, y = moons
    few = np.r_[np.flatnonzero(y == 0)[:10], np.flatnonzero(y == 1)[:90]]
    with pytest.raises(InputError, match=r"nu=0.5, .* it can be at most 0.2, twice the share"):
        NuSVC().fit(X[few], y[few])


def test_class_weights_of_nu_move_the_boundary(moons):
    X, y = moons
    plain, heavy = NuSVC(gamma=1.0).fit(X, y), NuSVC(gamma=1.0, class_weight={1: 100.0}).fit(X, y)
    assert (heavy.predict(X) == 1).mean() > (plain.predict(X) == 1).mean() + 0.1
    same = NuSVC(gamma=1.0, class_weight={0: 1.0, 1: 1.0}, tol=1e-7).fit(X, y)
    plain = NuSVC(gamma=1.0, tol=1e-7).fit(X, y)
    assert same.decision_function(X) == pytest.approx(plain.decision_function(X), abs=1e-4)


# --- what is more than a drop-in ------------------------------------------------------------------------


def test_one_against_the_rest(iris, monkeypatch):
    X, y = iris
    calls = []
    monkeypatch.setattr(svc, "fit", lambda *a, **o: calls.append(len(a[1])) or svc_fit(*a, **o))
    model = SVC(multi_class="ovr", gamma=0.5, tol=1e-8).fit(X, y)
    assert calls == [3]  # one call, which shares rows
    for c, label in enumerate(model.classes_):
        alone = SVC(gamma=0.5, tol=1e-8).fit(X, y == label)
        assert model.decision_function(X)[:, c] == pytest.approx(alone.decision_function(X), abs=1e-6)
    assert np.array_equal(model.predict(X), model.classes_[model.decision_function(X).argmax(axis=1)])
    assert model.dual_coef_.shape == (3, len(model.support_)) and model.margin_.shape == (3,)
    linear = SVC(multi_class="ovr", kernel="linear").fit(X, y)
    assert X @ linear.coef_.T + linear.intercept_ == pytest.approx(linear.decision_function(X))


svc_fit = svc.fit


def test_average(moons, rng):
    X, y = moons
    weight = rng.uniform(0.1, 3, 200)
    model = SVC(C=50.0, average=True, gamma=1.0, tol=1e-8).fit(X, y, sample_weight=weight)
    same = SVC(C=50.0 / weight.sum(), gamma=1.0, tol=1e-8).fit(X, y, sample_weight=weight)
    assert model.decision_function(X) == pytest.approx(same.decision_function(X))
    assert SVC(C=50.0, average=True).fit(X, y).report_.objective < 50.0


def test_objective_gap_and_margin(moons):
    X, y = moons
    model = SVC(C=2.0, gamma=1.0, tol=1e-6).fit(X, y)
    f = model.decision_function(X)
    square = model.expansion_.norm() ** 2
    primal = square / 2 + 2.0 * np.maximum(0, 1 - np.where(y, 1, -1) * f).sum()
    assert model.report_.objective == pytest.approx(primal, rel=1e-6)
    assert 0 <= model.dual_gap_ <= 1e-6 * 2.0 * 200 and model.kkt_violation_ <= 1e-6
    assert model.margin_ == pytest.approx(2 / np.sqrt(square)) and model.report_.converged


def test_hard_margin_of_several_classes(iris):
    X, y = iris
    model = SVC(C=np.inf, kernel=Gaussian(gamma=20.0), multi_class="ovo").fit(X, y)
    values = model.expansion_(X)
    pairs = [(0, 1), (0, 2), (1, 2)]
    for p, (i, j) in enumerate(pairs):
        first, second = (y == model.classes_[c] for c in (i, j))
        assert values[first, p].min() >= 1 - 2e-3 and values[second, p].max() <= -1 + 2e-3
    assert (model.margin_ > 0).all() and (model.dual_gap_ >= 0).all()
    assert (model.dual_gap_ <= 0.05 * 2 / model.margin_**2).all()
    with pytest.raises(InputError, match="the classes are not separable by this kernel"):
        SVC(C=float("inf"), kernel="linear").fit(X[:, :2], y)


def test_xor():
    X, y = [[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]], ["same", "not", "same", "not"]
    model = SVC(C=np.inf, kernel=Polynomial(2, c=0), tol=1e-8).fit(X, y)
    assert model.margin_ == pytest.approx(np.sqrt(8)) and list(model.predict(X)) == y
    assert model.decision_function([[2.0, 3.0]]) == pytest.approx([6.0]) and model.dual_gap_ <= 1e-6


def test_precision(rng):
    X = rng.normal(size=(2100, 2))
    y = (X[:, 0] > 0).astype(int)
    cases = [
        ({}, "float32"),
        ({"C": 1e5}, "float64"),
        ({"C": np.inf}, "float64"),
        ({"tol": 1e-6}, "float64"),
        ({"precision": "float64"}, "float64"),
        ({"kernel": "linear"}, "float32"),
    ]
    for options, expected in cases:
        assert SVC(**options).plan(X, y).dtype == expected, options
    assert SVC(kernel="linear").plan(1e12 * X, y).dtype == "float64"
    assert SVC(kernel="linear").plan(1e16 * X, y).dtype == "float64"
    assert SVC().plan(X[:1000], y[:1000]).dtype == "float64"
    with config(dtype="float32"):
        assert SVC().plan(X[:1000], y[:1000]).dtype == "float32"
    model, exact = SVC().fit(X, y), SVC(precision="float64").fit(X, y)
    assert model.report_.plan.dtype == "float32" and "float32" in model.report_.plan.why[0]
    assert model.decision_function(X).dtype == np.float32 or model.decision_function(X).dtype == np.float64
    assert model.report_.objective == pytest.approx(exact.report_.objective, rel=1e-3)


def test_warm_start_and_path(moons):
    X, y = moons
    model = SVC(C=1.0, gamma=1.0, warm_start=True, tol=1e-6).fit(X, y)
    first = model.n_iter_[0]
    assert model.fit(X, y).n_iter_[0] < first / 4
    cold = SVC(C=1.2, gamma=1.0, tol=1e-6).fit(X, y)
    model.set_params(C=1.2).fit(X, y)
    assert model.n_iter_[0] < cold.n_iter_[0]
    assert model.decision_function(X) == pytest.approx(cold.decision_function(X), abs=1e-4)
    model.fit(X[:50], y[:50])  # another number of points: as if for the first time
    assert model.n_iter_[0] == clone(model).fit(X[:50], y[:50]).n_iter_[0]
    Cs = [0.1, 1.0, 10.0, 2.0]
    for C, each in zip(Cs, SVC(gamma=1.0, tol=1e-6).path(X, y, Cs), strict=True):
        alone = SVC(C=C, gamma=1.0, tol=1e-6).fit(X, y)
        assert each.C == C and each.report_.objective == pytest.approx(alone.report_.objective, rel=1e-5)
        pickle.loads(pickle.dumps(each)).predict(X)
    with pytest.raises(InputError, match="Cs is empty"):
        SVC().path(X, y, [])


def matrix_kernel(A, B):
    return np.dot(A, np.transpose(B))


def test_functions_as_kernels(moons):
    X, y = moons
    linear = SVC(kernel="linear").fit(X, y)
    model = SVC(kernel=matrix_kernel).fit(X, y)
    assert model.decision_function(X) == pytest.approx(linear.decision_function(X), abs=1e-10)
    assert model.shape_fit_ == (200, 2)
    assert cross_val_score(model, X, y, cv=3).mean() > 0.7
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SlowPathWarning)
        pointwise = SVC(kernel=lambda a, b: float(a[0] * b[0] + a[1] * b[1])).fit(X, y)
        assert pointwise.decision_function(X[:9]) == pytest.approx(linear.decision_function(X[:9]), abs=1e-10)
    with pytest.raises(ValueError, match="kernel must return a matrix of 5 × 200 values"):
        SVC(kernel=lambda A, B: matrix_kernel(A, B)[: len(B)] if len(A) != 5 else np.eye(2)).fit(
            X, y
        ).predict(X[:5])


# --- probabilities --------------------------------------------------------------------------------------


@pytest.mark.sample(5)
@pytest.mark.parametrize("options", [{}, {"multi_class": "ovr"}, {"break_ties": True}])
@pytest.mark.parametrize("kind", [SVC, NuSVC])
@pytest.mark.parametrize("classes", [2, 5])
def test_probabilities_agree_with_predict(kind, options, classes):
    X, y = make_blobs(150, centers=classes, cluster_std=3.0, random_state=3)
    nu = {"nu": 0.2} if kind is NuSVC else {}
    model = kind(probability=True, **nu, **options).fit(X, y)
    new = np.random.default_rng(1).normal(scale=8, size=(2000, 2))
    p = model.predict_proba(new)
    assert np.array_equal(model.classes_[p.argmax(axis=1)], model.predict(new))
    assert p.sum(axis=1) == pytest.approx(1) and (p >= 0).all()
    assert np.exp(model.predict_log_proba(new)) == pytest.approx(p, abs=1e-12)
    assert np.array_equal(clone(model).fit(X, y).predict_proba(new), p)
    assert model.score(X, y) > 0.6 and -np.log(model.predict_proba(X)[np.arange(150), y]).mean() < np.log(
        classes
    )


def test_probabilities_only_where_asked_for(moons):
    model = SVC().fit(*moons)
    assert not hasattr(model, "predict_proba") and not hasattr(model, "predict_log_proba")
    model.probability = True
    with pytest.raises(
        NotFittedError, match="predict_proba is not available when fitted with probability=False"
    ):
        model.predict_proba(moons[0])
    model.fit(*moons)
    assert model.slopes_.shape == (1, 2)


# --- odd data -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [1e-6, 1e-3, 1e3, 1e6, 1e9])
@pytest.mark.parametrize("kernel", ["rbf", "sigmoid"])
def test_every_size_of_c_ends(C, kernel, moons):
    X, y = moons
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SVC(C=C, kernel=kernel, max_iter=100_000).fit(X[:60], y[:60])
    assert model.report_.stopped != "max_iter" and np.isfinite(model.decision_function(X)).all()
    assert np.abs(model.dual_coef_).max() <= C


def test_indefinite_matrices_end(rng):
    A = rng.normal(size=(40, 40))
    K, y = A + A.T, np.arange(40) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SVC(kernel="precomputed", C=5.0, max_iter=100_000).fit(K, y)
    assert np.isfinite(model.decision_function(K)).all() and model.support_vectors_.shape == (0, 0)
    with pytest.raises(TypeError, match="Sparse precomputed"):
        SVC(kernel="precomputed").fit(sparse.csr_array(K), y)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_scales_and_constant_columns(scale, moons):
    X, y = moons
    odd = np.column_stack([scale * X, np.full(200, scale * 3.0)])
    model = SVC(tol=1e-6).fit(odd, y)
    expected = SVC(gamma=1 / (3 * odd.var() / scale**2), tol=1e-6).fit(X, y)
    assert model.decision_function(odd) == pytest.approx(expected.decision_function(X), abs=1e-4)


def test_classes_of_one_point_and_contradictions(rng):
    X = rng.normal(size=(12, 2))
    model = SVC(C=10.0).fit(X, np.arange(12))
    assert list(model.predict(X)) == list(range(12)) and (model.n_support_ == 1).all()
    X = np.repeat(X, 2, axis=0)
    model = SVC(C=1e4).fit(X, np.tile([0, 1], 12))
    assert model.decision_function(X) == pytest.approx(0, abs=1e-2)
    assert (SVC().fit(np.zeros((6, 2)), [0, 0, 0, 0, 1, 1]).predict(np.zeros((2, 2))) == 0).all()


def test_kinds_of_input(moons):
    X, y = moons
    X.flags.writeable = False
    expected = SVC(gamma=1.0).fit(X, y).decision_function(X)
    assert SVC(gamma=1.0).fit(X.astype(np.float32), y).decision_function(X) == pytest.approx(
        expected, abs=1e-2
    )
    search = GridSearchCV(SVC(), {"C": [0.1, 1.0], "kernel": [Gaussian("median"), "linear"]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.7
    for name, value in (
        ("C", 0.0),
        ("C", "1"),
        ("tol", 0.0),
        ("cache_size", "large"),
        ("max_iter", -2),
        ("verbose", "no"),
    ):
        with pytest.raises(ValueError, match=f"{name} must be"):
            SVC(**{name: value}).fit(X, y)


# --- memory and control ---------------------------------------------------------------------------------


def test_a_small_cache_changes_nothing(moons):
    X, y = moons
    expected = SVC(gamma=1.0, tol=1e-6).fit(X, y)
    small = SVC(gamma=1.0, tol=1e-6, cache_size=0.02).fit(X, y)
    assert small.report_.memory < expected.report_.memory / 4
    assert small.decision_function(X) == pytest.approx(expected.decision_function(X), abs=1e-4)
    with config(memory="1MiB"), pytest.raises(MemoryBudgetError, match="rows of the kernel matrix"):
        SVC().fit(np.random.default_rng(0).normal(size=(40_000, 1)), np.arange(40_000) % 2)


class Stop:
    """A callback that asks to stop, as Ctrl-C would, after some rounds."""

    def __init__(self, rounds):
        self.left = rounds

    def __call__(self, event):
        self.left -= "violation" in event["facts"]
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def hard_work(rng):
    X = rng.normal(size=(2500, 4))  # more than one working set: it takes several rounds
    return X, (X[:, 0] + rng.normal(size=2500) > 0).astype(int)


def test_ctrl_c_gives_the_best_so_far(hard_work):
    X, y = hard_work
    with pytest.warns(ConvergenceWarning, match="SVC was interrupted after") as caught:
        model = SVC(C=100.0, tol=1e-6, progress=Stop(2)).fit(X, y)
    assert caught[0].filename == __file__ and model.report_.stopped == "interrupted"
    assert model.fit_status_ == 1 and model.score(X, y) > 0.5 and model.dual_gap_ > 0


def test_max_time_checkpoint_and_resume(hard_work, tmp_path, monkeypatch):
    X, y = hard_work
    monkeypatch.setattr(control, "_EVERY", 0)
    path = tmp_path / "state.npz"
    options = {"C": 10.0, "tol": 1e-5, "precision": "float64"}
    whole = SVC(**options).fit(X, y)
    model = SVC(max_time=1e-9, checkpoint=path, **options)
    with pytest.warns(ConvergenceWarning, match="ran out of max_time=1e-09"):
        model.fit(X, y)
    model.set_params(max_time=None, resume=True)
    for _ in range(2):
        with pytest.warns(ConvergenceWarning, match="was interrupted"):
            model.set_params(progress=Stop(2)).fit(X, y)
    model.set_params(progress=False).fit(X, y)
    assert model.report_.converged
    assert model.report_.objective == pytest.approx(whole.report_.objective, rel=1e-6)
    with pytest.raises(InputError, match="is the checkpoint of another fit"):
        model.set_params(C=1.0).fit(X, y)


def test_max_iter(moons):
    with pytest.warns(ConvergenceWarning, match=r"Solver terminated early \(max_iter=3\)"):
        model = SVC(max_iter=3).fit(*moons)
    assert model.n_iter_[0] == 3 and model.fit_status_ == 1 and model.report_.stopped == "max_iter"


def test_verbose_means_a_bar(moons, capsys):
    SVC(verbose=True).fit(*moons)
    assert "SVC" in capsys.readouterr().err
    SVC(verbose=True, progress=False).fit(*moons)
    assert not capsys.readouterr().err


@pytest.mark.parametrize("n", [60, 900])
def test_conditionally_positive_definite_kernels_do_as_well(n, rng):
    """Σγ = 0, so only differences count: -‖x - x'‖, whose diagonal is 0, has a minimum like any kernel."""
    from mercer.kernels.formula.expression import sqrt

    class NegativeDistance(Kernel):
        def formula(self, pair):
            return -sqrt(pair.sqdist)

    X = rng.normal(size=(n, 4))
    y = (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0).astype(int)
    K = NegativeDistance()(X)
    model = SVC(kernel=NegativeDistance(), C=1.0, tol=1e-5).fit(X, y)
    peer = libsvm.SVC(kernel="precomputed", C=1.0, tol=1e-6).fit(K, y)

    def dual(machine):
        coef, here = machine.dual_coef_[0], machine.support_
        return np.abs(coef).sum() - 0.5 * coef @ K[np.ix_(here, here)] @ coef

    assert model.report_.stopped == "converged"
    np.testing.assert_allclose(dual(model), dual(peer), rtol=1e-7)


def test_a_hard_margin_between_points_of_tiny_numbers():
    X, y = np.array([[1.0], [2.0], [-1.0], [-2.0]]), [1, 1, 0, 0]
    for kernel, size in (("linear", 0), ("rbf", 1)):
        words = (
            f"by this kernel, whose values, up to {size}, do not tell some points apart: .* or scale the data"
        )
        with pytest.raises(InputError, match=words):
            SVC(C=float("inf"), kernel=kernel, gamma=1.0).fit(1e-200 * X, y)
    assert SVC(C=float("inf"), kernel="linear").fit(1e-70 * X, y).score(1e-70 * X, y) == 1


def test_no_margin_because_time_ran_out(rng):
    X = rng.normal(size=(1500, 5))
    y = X[:, 0] + 0.5 * rng.normal(size=1500) > 0
    with pytest.warns(ConvergenceWarning) as record:
        NuSVC(nu=0.3, max_time=1e-9).fit(X, y)
    (told,) = [str(w.message) for w in record]
    assert "ran out of max_time=1e-09" in told and "without a margin between the classes yet" in told


def test_the_plan_of_many_points_names_another_way():
    """The exact solution stays what is computed; the plan says what there is instead."""
    many = SVC(gamma=1.0).plan(np.zeros((100_000, 1)))
    assert "KernelMachineClassifier or -Regressor with landmarks=" in str(many)
    assert "landmarks" not in str(SVC(gamma=1.0).plan(np.zeros((1000, 1))))
