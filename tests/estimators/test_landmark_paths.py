"""Direct methods on landmarks: KernelRidgeCV, KernelLeastSquares, KernelPCA and KernelFisherDiscriminant."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import (
    Gaussian,
    KernelFisherDiscriminant,
    KernelLeastSquares,
    KernelPCA,
    KernelRidge,
    KernelRidgeCV,
    Linear,
    Polynomial,
    Spectrum,
    config,
)
from mercer.errors import InputError
from mercer.estimators.shared import landmarks
from mercer.estimators.shared.landmarks import Landmarks

N = 40
LEARNERS = [KernelRidgeCV, KernelLeastSquares, KernelPCA, KernelFisherDiscriminant]
#: more landmarks than there are points: all points, so that a weight of 2 is a point twice
ALL = 1000


@pytest.mark.full
@parametrize_with_checks([kind(landmarks=ALL) for kind in LEARNERS])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture
def X(rng):
    return rng.normal(size=(N, 3))


@pytest.fixture
def y(rng, X):
    return np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=N) + 1


@pytest.fixture
def labels(y, X):
    return np.array(["a", "b", "c"])[np.digitize(y, [0.7, 1.5])]


# --- ridge ---------------------------------------------------------------------------------------------


@pytest.mark.sample(3)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_the_whole_path_is_refitting_on_the_same_landmarks(rng, X, y, fit_intercept, weighted):
    """n fits by conjugate gradients, each without an observation, to a gap of 1e-15."""
    n = 12
    X, y = X[:n], y[:n]
    weight = rng.uniform(0.3, 3, n) if weighted else np.ones(n)
    alphas, Z = [1e-4, 1e-1, 10.0], X[:7] + 0.1
    options = {"kernel": Gaussian(1.0), "fit_intercept": fit_intercept, "landmarks": Z}
    model = KernelRidgeCV(alphas, **options).fit(X, y, weight)
    scores = []
    for alpha in alphas:
        errors = []
        for i in range(n):
            rest = weight.copy()
            rest[i] = max(0.0, weight[i] - 1)
            refit = KernelRidge(alpha, **options, tol=1e-30).fit(X, y, rest)
            errors.append(y[i] - refit.predict(X[i : i + 1])[0])
        scores.append(weight @ np.square(errors) / weight.sum())
        if alpha == model.alpha_:
            assert model.loo_residuals_ == pytest.approx(np.array(errors), abs=1e-8)
    assert model.path_.scores[0, :, 0] == pytest.approx(scores, rel=1e-8)
    assert model.alpha_ == alphas[int(np.argmin(scores))]
    assert model.best_score_ == pytest.approx(min(scores))
    direct = KernelRidge(model.alpha_, **options, tol=1e-30).fit(X, y, weight)
    assert model.predict(X) == pytest.approx(direct.predict(X), abs=1e-8)
    assert model.report_.objective == pytest.approx(direct.report_.objective, rel=1e-8)
    assert len(model.expansion_) == 7 and model.report_.plan.method == "landmarks"


@pytest.mark.parametrize("scoring", ["squared", "absolute", "evidence"])
@pytest.mark.parametrize("alpha_per_target", [True, False])
@pytest.mark.filterwarnings("ignore:the best penalty")
def test_all_points_as_landmarks_are_the_exact_path(rng, X, y, scoring, alpha_per_target):
    """Of penalties at which the exact errors are known to 1e-8; the default path is the same."""
    weight = np.where(np.arange(N) % 5 == 0, 0.0, rng.uniform(0.5, 2, N))
    Y = np.column_stack([y, X[:, 1] ** 3, rng.normal(size=N)])
    options = {
        "kernel": [Gaussian(1.0), Gaussian(2.0), Polynomial(2)],
        "scoring": scoring,
        "alpha_per_target": alpha_per_target,
    }
    exact = KernelRidgeCV(**options).fit(X, Y, weight)
    given = KernelRidgeCV(**options, landmarks=np.flatnonzero(weight)).fit(X, Y, weight)
    assert given.path_.alphas == pytest.approx(exact.path_.alphas, rel=1e-10)
    alphas = np.logspace(-2, 2, 9)
    exact = KernelRidgeCV(alphas, **options).fit(X, Y, weight)
    given = KernelRidgeCV(alphas, **options, landmarks=ALL).fit(X, Y, weight)
    assert given.kernel_ == exact.kernel_
    np.testing.assert_array_equal(given.alpha_, exact.alpha_)
    assert given.path_.scores == pytest.approx(exact.path_.scores, rel=1e-8)
    assert given.loo_residuals_ == pytest.approx(exact.loo_residuals_, abs=1e-8)
    assert given.predict(X) == pytest.approx(exact.predict(X), abs=1e-8)


def test_a_search_on_landmarks_goes_on_from_its_checkpoint(tmp_path, X, y):
    kernels = [Gaussian(s) for s in (0.3, 1.0, 3.0)]
    options = {"kernel": kernels, "landmarks": 10, "checkpoint": tmp_path / "path.npz"}
    whole = KernelRidgeCV(kernel=kernels, landmarks=10).fit(X, y)
    steps = []

    def interrupt(progress):
        steps.append(progress)
        raise KeyboardInterrupt

    with pytest.warns(match="interrupted"):
        part = KernelRidgeCV(**options, progress=interrupt).fit(X, y)
    assert len(part.path_.kernels) < 3
    again = KernelRidgeCV(**options, resume=True).fit(X, y)
    np.testing.assert_array_equal(again.path_.scores, whole.path_.scores)
    np.testing.assert_array_equal(again.predict(X), whole.predict(X))


def test_least_squares_on_landmarks(X, y):
    """A parabola is found from any landmarks that span it; ten of them are a basis of its products."""
    target = 3 * X[:, 0] ** 2 - X[:, 1] + 2
    model = KernelLeastSquares(Polynomial(2, c=1.0), landmarks=X[:12]).fit(X, target)
    assert model.predict(X) == pytest.approx(target, abs=1e-8)
    assert model.rank_ == 9 and len(model.expansion_) == 10
    exact = KernelLeastSquares(Gaussian(0.5)).fit(X, y)
    given = KernelLeastSquares(Gaussian(0.5), landmarks=ALL).fit(X, y)
    assert given.predict(X + 0.1) == pytest.approx(exact.predict(X + 0.1), abs=1e-8)
    assert given.rank_ == exact.rank_


# --- principal components ------------------------------------------------------------------------------


@pytest.mark.parametrize("n_components", [3, 0.8, None])
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Linear(), Polynomial(2)])
@pytest.mark.parametrize("how", ["index", "points"])
def test_components_on_all_points_are_the_exact_ones(rng, X, n_components, kernel, how):
    weight = rng.integers(1, 4, N).astype(float)
    exact = KernelPCA(n_components, kernel=kernel).fit(X, sample_weight=weight)
    chosen = X[::-1] if how == "points" else np.arange(N)
    given = KernelPCA(n_components, kernel=kernel, landmarks=chosen)
    scores = given.fit_transform(X, sample_weight=weight)
    assert given.eigenvalues_ == pytest.approx(exact.eigenvalues_, rel=1e-10, abs=1e-10)
    assert given.explained_variance_ == pytest.approx(exact.explained_variance_, abs=1e-10)
    assert given.explained_variance_ratio_ == pytest.approx(exact.explained_variance_ratio_, abs=1e-12)
    new = X + 0.1
    assert scores == pytest.approx(exact.transform(X), abs=1e-8)
    assert given.transform(new) == pytest.approx(exact.transform(new), abs=1e-8)
    assert not hasattr(given, "eigenvectors_")


@pytest.mark.parametrize(
    "options", [{"inverse": "ridge"}, {"inverse": "fixed_point"}, {"kernel": Linear()}], ids=str
)
def test_pre_images_are_the_exact_ones(X, options):
    options = {"kernel": Gaussian(2.0), "n_components": 2, **options}
    exact = KernelPCA(**options).fit(X)
    given = KernelPCA(**options, landmarks=np.arange(N)).fit(X)
    scores = exact.transform(X[:10])
    assert given.inverse_transform(scores) == pytest.approx(exact.inverse_transform(scores), abs=1e-7)


def test_few_landmarks_explain_less(X):
    """The variances on landmarks are those of a part of the space, by Courant and Fischer no larger."""
    exact = KernelPCA(kernel=Gaussian(1.0)).fit(X)
    given = KernelPCA(kernel=Gaussian(1.0), landmarks=Landmarks(12, "pivoted")).fit(X)
    assert len(given.eigenvalues_) == 12
    assert (given.eigenvalues_ <= exact.eigenvalues_[:12] * (1 + 1e-12)).all()
    assert given.explained_variance_ratio_.sum() < 0.95
    scores = given.transform(X)
    assert scores.mean(axis=0) == pytest.approx(0, abs=1e-12)
    assert scores.T @ scores == pytest.approx(np.diag(given.eigenvalues_), abs=1e-10)
    assert (scores[np.abs(scores).argmax(axis=0), np.arange(12)] > 0).all()
    back = KernelPCA(2, kernel=Gaussian(5.0), landmarks=12, inverse="fixed_point").fit(X)
    points = back.inverse_transform(back.transform(X))
    assert ((points - X) ** 2).sum() < ((X - X.mean(axis=0)) ** 2).sum()
    with pytest.warns(match="12 components are all that these landmarks have, n_components=20 were asked"):
        KernelPCA(20, kernel=Gaussian(1.0), landmarks=12).fit(X)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("size", [4, 15, N])
def test_what_components_leave_is_certified(rng, X, dtype, count, size):
    """The least that any components leave is the sum of the other eigenvalues of the centred K."""
    weight, k = rng.uniform(0.2, 3, N), Gaussian(1.0)
    with config(dtype=dtype):
        model = KernelPCA(count, kernel=k, landmarks=X[:size]).fit(X, sample_weight=weight)
    total, report = weight.sum(), model.report_
    own, rows = k(X[:size]), k(X[:size], X)
    mean = np.linalg.lstsq(own, rows @ weight / total)[0]  # φ̄ = Σ mean_j Φ(z_j)
    distances = 1 - 2 * rows.T @ mean + mean @ own @ mean - (model.transform(X) ** 2).sum(axis=1)
    rounding = 1e-9 if dtype == "float64" else 1e-4
    assert report.objective == pytest.approx(weight @ distances / (total - 1), abs=rounding)
    root = np.sqrt(weight)
    centre = np.eye(N) - np.outer(root, root) / total
    values = np.linalg.eigvalsh(centre @ (root[:, None] * k(X) * root) @ centre)
    least = values[:-count].sum() / (total - 1)
    assert report.objective - report.bound <= least <= report.objective + report.gap
    assert report.gap <= report.bound and report.gap < (1e-6 if dtype == "float64" else 0.3)
    if size == N and dtype == "float64":
        assert report.bound < 1e-6


def test_a_map_back_needs_a_penalty_above_rounding(X):
    with pytest.raises(InputError, match="alpha of the learned map back is below the rounding"):
        KernelPCA(2, landmarks=10, inverse="ridge", alpha=0.0).fit(X)


# --- Fisher's discriminant -----------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", ["auto", 1e-3, 1.0])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_discriminants_on_all_points_are_the_exact_ones(rng, X, labels, alpha, class_weight):
    """Directions are known up to their signs; probabilities do not see these."""
    weight = rng.integers(0, 4, N).astype(float)
    options = {"kernel": Gaussian(1.5), "alpha": alpha, "class_weight": class_weight}
    exact = KernelFisherDiscriminant(**options).fit(X, labels, weight)
    given = KernelFisherDiscriminant(**options, landmarks=ALL).fit(X, labels, weight)
    assert given.alpha_ == pytest.approx(exact.alpha_, rel=1e-10)
    assert given.ratios_ == pytest.approx(exact.ratios_, rel=1e-8)
    assert np.abs(given.transform(X)) == pytest.approx(np.abs(exact.transform(X)), abs=1e-7)
    assert given.predict_proba(X + 0.1) == pytest.approx(exact.predict_proba(X + 0.1), abs=1e-7)
    if alpha == "auto":
        # The smallest penalties leave 1 - h = 1e-8 of a point to itself, and errors known to as much.
        assert given.loo_errors_[10:] == pytest.approx(exact.loo_errors_[10:], rel=1e-7)


def test_few_landmarks_tell_classes_apart(rng):
    X = rng.normal(size=(600, 2))
    y = (np.linalg.norm(X, axis=1) > 1.2).astype(int)
    model = KernelFisherDiscriminant(landmarks=30).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.93
    assert len(model.expansion_) == 30 and hasattr(model, "loo_errors_")


@pytest.mark.parametrize("size", [4, 15, N])
def test_the_regression_behind_discriminants_is_certified(rng, X, labels, size):
    """Of two classes the target is the indicator of one, centred, with Σ w y² = 1: ridge on all points."""
    y, weight = labels == "a", rng.uniform(0.5, 2, N)
    model = KernelFisherDiscriminant(Gaussian(1.0), alpha=0.02, landmarks=X[:size]).fit(X, y, weight)
    share, total = weight @ y / weight.sum(), weight.sum()
    target = (y - share) / np.sqrt(total * share * (1 - share))
    ridge = KernelRidge(0.02 * total, kernel=Gaussian(1.0)).fit(X, target, weight)
    report, least = model.report_, ridge.report_.objective
    assert report.objective - report.bound <= least <= report.objective + report.gap
    assert report.gap <= 1e-8 * report.objective and report.gap <= report.bound
    if size == N:
        assert report.objective == pytest.approx(least, rel=1e-9)
        assert report.bound <= 1e-6 * report.objective


def test_points_that_do_not_vary_are_refused_with_landmarks_too():
    with pytest.raises(InputError, match="the points do not vary in feature space"):
        KernelFisherDiscriminant(Gaussian(1.0), landmarks=2).fit(np.ones((6, 2)), [0, 1] * 3)


# --- what all of them promise ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", LEARNERS)
def test_auto_takes_landmarks_where_the_exact_matrix_does_not_fit(kind, rng, monkeypatch):
    monkeypatch.setattr(landmarks, "_PER_ROOT", 1.0)  # fewer landmarks than usual, for the sake of time
    X = rng.normal(size=(6500, 2))
    y = (X[:, 0] > 0).astype(int)
    small = kind(landmarks="auto").plan(X[:100], y[:100])
    assert small.method != "landmarks"
    with config(memory="300MB"):
        plan = kind(landmarks="auto", kernel=Gaussian(1.0)).plan(X, y)
        assert plan.method == "landmarks" and "does not fit the memory budget" in plan.why[0]
        assert "eigenvalues of the features on" in plan.solver
        plan.require_memory("")
        model = kind(landmarks="auto", kernel=Gaussian(1.0)).fit(X, y)
    assert 10 < len(model.expansion_) <= 80


@pytest.mark.parametrize("kind", LEARNERS)
def test_strings_have_landmarks_too(kind):
    texts = ["abab", "abba", "baba", "cdcd", "cddc", "dcdc", "abcd", "dcba"]
    model = kind(kernel=Spectrum(2), landmarks=texts[:4]).fit(texts, [0, 0, 0, 1, 1, 1, 0, 1])
    assert model.expansion_.anchors and set(model.expansion_.anchors) <= set(texts[:4])
    again = kind(kernel=Spectrum(2), landmarks=[0, 1, 2, 3]).fit(texts, [0, 0, 0, 1, 1, 1, 0, 1])
    np.testing.assert_allclose(again.expansion_(texts), model.expansion_(texts))


@pytest.mark.parametrize("kind", LEARNERS)
def test_float32_is_near_float64(kind, X, labels, y):
    targets = labels if kind is KernelFisherDiscriminant else y
    options = {"kernel": Gaussian(1.0), "landmarks": X[:8]}
    options |= {"n_components": 2} if kind is KernelPCA else {}
    exact = kind(**options).fit(X, targets)
    with config(dtype="float32"):
        near = kind(**options).fit(X, targets)
        values = near.expansion_(X)
    assert np.abs(values) == pytest.approx(np.abs(exact.expansion_(X)), abs=2e-3)


@pytest.mark.parametrize("kind", LEARNERS)
@pytest.mark.parametrize("chosen", [None, 10, "points"])
def test_a_model_does_not_change_with_the_data_it_was_given(kind, chosen, X, labels, y):
    X, Z = X.copy(), X[:10].copy()
    model = kind(kernel=Gaussian(1.0), landmarks=Z if chosen == "points" else chosen)
    model.fit(X, labels if kind is KernelFisherDiscriminant else y)
    new = X + 0.5
    before = model.expansion_(new)
    X[:], Z[:] = 7.0, 7.0
    np.testing.assert_array_equal(model.expansion_(new), before)


@pytest.mark.parametrize("kind", LEARNERS)
def test_a_fit_without_landmarks_after_one_with_them(kind, X, labels, y):
    targets = labels if kind is KernelFisherDiscriminant else y
    model = kind(kernel=Gaussian(1.0), landmarks=5).fit(X, targets)
    model.set_params(landmarks=None).fit(X, targets)
    fresh = kind(kernel=Gaussian(1.0)).fit(X, targets)
    assert vars(model).keys() == vars(fresh).keys()
    np.testing.assert_array_equal(model.expansion_(X), fresh.expansion_(X))
