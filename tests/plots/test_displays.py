"""What displays show, against values computed in another way."""

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.calibration import calibration_curve
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, Gaussian, KernelPCA, KernelRidge, KernelRidgeCV, Linear, OneClassSVM, Spectrum, config
from mercer.errors import InputError
from mercer.plots import (
    CalibrationDisplay,
    ConfusionDisplay,
    DecisionBoundaryDisplay,
    GramDisplay,
    KernelPCADisplay,
    KernelShapeDisplay,
    LearningCurveDisplay,
    PathDisplay,
    RegressionBandDisplay,
    RelevanceDisplay,
    ResidualDisplay,
    SpectrumDisplay,
    TrialsDisplay,
    effective_dimension,
)
from mercer.plots.bands import error_quantile
from mercer.plots.relevance import column_factors
from mercer.plots.style import new_figure
from mercer.plots.trials import tried
from mercer.selection.nested import share_interval


@pytest.fixture
def ax():
    return new_figure()[1]


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(120, noise=0.2, random_state=0)
    return X, np.where(y, "up", "down"), SVC(C=5.0).fit(X, np.where(y, "up", "down"))


@pytest.fixture(scope="module")
def waves():
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, (90, 1))
    return x, np.sin(2 * x[:, 0]) + 0.2 * rng.normal(size=90)


def assert_drawn(display, ax):
    assert display.ax_ is ax and display.figure_ is ax.figure and display.describe().endswith(".")
    display.figure_.canvas.draw()  # what fails only when it is drawn fails here
    ax.clear()


# --- boundaries ------------------------------------------------------------------------------------------


def test_regions_are_what_is_predicted_there(moons, ax):
    X, y, model = moons
    shown = DecisionBoundaryDisplay.from_estimator(model, X, y, grid=25, ax=ax)
    places = np.stack(np.meshgrid(shown.horizontal, shown.vertical), axis=-1).reshape(-1, 2)
    np.testing.assert_array_equal(model.classes_[shown.regions.ravel()], model.predict(places))
    np.testing.assert_allclose(shown.values.ravel(), model.decision_function(places), atol=1e-9)
    assert shown.support.sum() == len(model.support_) and shown.has_margin
    assert_drawn(shown, ax)


def test_a_pipeline_is_looked_through(moons, ax):
    X, y, _ = moons
    model = make_pipeline(StandardScaler(), SVC(C=5.0)).fit(X * [1.0, 100.0], y)
    shown = DecisionBoundaryDisplay.from_estimator(model, X * [1.0, 100.0], y, grid=20, ax=ax)
    places = np.stack(np.meshgrid(shown.horizontal, shown.vertical), axis=-1).reshape(-1, 2)
    np.testing.assert_array_equal(model.classes_[shown.regions.ravel()], model.predict(places))


def test_on_the_normal_plane_every_point_is_on_the_side_of_its_prediction(moons, ax):
    X, y, model = moons
    shown = DecisionBoundaryDisplay.from_estimator(model, X, y, plane="normal", grid=400, ax=ax)
    f = model.decision_function(X)
    clear = np.abs(f) > 0.05  # a cell of the grid
    across = np.abs(shown.horizontal[:, None] - shown.points[:, 0]).argmin(axis=0)
    up = np.abs(shown.vertical[:, None] - shown.points[:, 1]).argmin(axis=0)
    sides = shown.regions[up, across][clear]
    np.testing.assert_array_equal(sides, (f > 0)[clear].astype(int))


@pytest.mark.sample(3)
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("classes", [3, 4])
def test_several_classes(multi_class, classes, ax):
    X, y = make_blobs(90, centers=classes, random_state=1)
    model = SVC(multi_class=multi_class).fit(X, y)
    shown = DecisionBoundaryDisplay.from_estimator(model, X, y, grid=20, ax=ax)
    places = np.stack(np.meshgrid(shown.horizontal, shown.vertical), axis=-1).reshape(-1, 2)
    np.testing.assert_array_equal(shown.regions.ravel(), model.predict(places))
    assert shown.values is None
    assert_drawn(shown, ax)
    assert_drawn(DecisionBoundaryDisplay.from_estimator(model, X, y, plane="principal", ax=ax), ax)


def test_other_learners_and_objects(waves, ax):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(40, 3))
    ridge = KernelRidge(0.1).fit(Z, Z[:, 0])
    shown = DecisionBoundaryDisplay.from_estimator(ridge, Z, Z[:, 0], ax=ax)
    assert shown.regions is None and shown.names[0].startswith("1st kernel direction")
    assert_drawn(shown, ax)
    one = OneClassSVM(nu=0.2).fit(Z[:, :2])
    assert_drawn(DecisionBoundaryDisplay.from_estimator(one, Z[:, :2], ax=ax), ax)
    texts, y = ["abab", "baba", "xyxy", "yxyx", "abxy"], [0, 0, 1, 1, 0]
    machine = SVC(kernel=Spectrum(2)).fit(texts, y)
    assert_drawn(DecisionBoundaryDisplay.from_estimator(machine, texts, y, ax=ax), ax)
    given = SVC(kernel="precomputed").fit(Z @ Z.T, Z[:, 0] > 0)
    assert_drawn(DecisionBoundaryDisplay.from_estimator(given, Z @ Z.T, Z[:, 0] > 0, ax=ax), ax)


def test_boundaries_refuse_what_they_cannot_show(moons, ax):
    X, y, model = moons
    with pytest.raises(InputError, match="plane must be one of"):
        DecisionBoundaryDisplay.from_estimator(model, X, y, plane="other", ax=ax)
    with pytest.raises(InputError, match="must be fitted and have a kernel, got SVC"):
        DecisionBoundaryDisplay.from_estimator(SVC(), X, y, ax=ax)
    with pytest.raises(InputError, match="one entry per point"):
        DecisionBoundaryDisplay.from_estimator(model, X, y[:5], ax=ax)
    with pytest.raises(InputError, match="two columns of numbers"):
        wide = np.hstack([X, X])
        DecisionBoundaryDisplay.from_estimator(SVC().fit(wide, y), wide, y, plane="features", ax=ax)


# --- kernels ---------------------------------------------------------------------------------------------


def test_a_gram_matrix_is_ordered_by_class_and_normalised(ax):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.array(list("cab") * 10)
    shown = GramDisplay.from_kernel(2.0 * Gaussian(sigma=1.0), X, y, ax=ax)
    order = np.argsort(y, kind="stable")
    np.testing.assert_allclose(shown.matrix, rbf_kernel(X[order], gamma=0.5), atol=1e-12)
    assert shown.names == ("a", "b", "c") and shown.ends.tolist() == [10, 20, 30]
    codes = np.repeat([0, 1, 2], 10)
    same = (codes[:, None] == codes) & ~np.eye(30, dtype=bool)
    assert shown.contrast()[0] == pytest.approx(shown.matrix[same].mean())
    assert_drawn(shown, ax)


def test_a_large_gram_matrix_is_a_part(ax):
    X = np.random.default_rng(0).normal(size=(5000, 2))
    shown = GramDisplay.from_kernel(Gaussian(sigma=1.0), X, X[:, 0], most=100, ax=ax)
    assert shown.matrix.shape == (100, 100) and "100 of 5,000 points" in shown.describe()
    assert (np.diff(X[shown.order, 0]) >= 0).all()  # by the target


def test_the_spectrum_and_the_effective_dimension(ax):
    X = np.random.default_rng(0).normal(size=(50, 3))
    K = rbf_kernel(X, gamma=0.5)
    shown = SpectrumDisplay.from_kernel(Gaussian(sigma=1.0), X, penalty=0.3, ax=ax)
    np.testing.assert_allclose(shown.eigenvalues, np.linalg.eigvalsh(K)[::-1], atol=1e-12)
    truth = np.trace(K @ np.linalg.inv(K + 0.3 * np.eye(50)))
    assert shown.dimension() == pytest.approx(truth, rel=1e-9)
    assert effective_dimension(shown.eigenvalues, 1e-12) == pytest.approx(50, abs=1e-3)
    total = np.cumsum(shown.eigenvalues) / shown.eigenvalues.sum()
    assert total[shown.directions() - 1] >= 0.95 > total[shown.directions() - 2]
    assert_drawn(shown, ax)
    half = SpectrumDisplay(
        shown.eigenvalues, total=100, penalty=0.6
    )  # half of the points, half of the penalty
    assert half.dimension() == pytest.approx(truth)
    with pytest.raises(InputError, match="a penalty must be zero or more"):
        effective_dimension([1.0], -1.0)


def test_shapes_are_values_of_the_kernel(ax):
    shown = KernelShapeDisplay.from_kernels(Gaussian(sigma=2.0), Linear(), center=1.0, points=7, ax=ax)
    np.testing.assert_allclose(shown.values[0], np.exp(-((shown.x - 1.0) ** 2) / 8))
    np.testing.assert_allclose(shown.values[1], shown.x)
    assert_drawn(shown, ax)
    with pytest.raises(InputError, match="waits for data"):
        KernelShapeDisplay.from_kernels(Gaussian(sigma="median"), ax=ax)
    with pytest.raises(InputError, match="pass kernels on vectors"):
        KernelShapeDisplay.from_kernels(ax=ax)
    with pytest.raises(InputError, match="two growing numbers"):
        KernelShapeDisplay.from_kernels(Linear(), limits=(1.0, 1.0), ax=ax)


def test_a_map_of_a_fitted_pca(waves, ax):
    X = np.random.default_rng(0).normal(size=(40, 3))
    pca = KernelPCA(3, kernel="linear").fit(X)
    shown = KernelPCADisplay.from_estimator(pca, X, X[:, 0] > 0, components=(0, 2), ax=ax)
    np.testing.assert_allclose(shown.scores, pca.transform(X)[:, [0, 2]])
    assert_drawn(shown, ax)
    with pytest.raises(InputError, match="there are 3"):
        KernelPCADisplay.from_estimator(pca, X, components=(0, 3), ax=ax)


# --- errors ----------------------------------------------------------------------------------------------


def test_a_band_holds_what_it_says():
    """Of exchangeable errors a new one is within the quantile with probability rank/(n+1), here 18/20."""
    rng = np.random.default_rng(0)
    errors = rng.standard_t(2, size=(4000, 20))
    inside = np.mean([abs(row[-1]) <= error_quantile(row[:-1], 0.9) for row in errors])
    assert inside == pytest.approx(0.9, abs=4 * np.sqrt(0.09 / 4000))


def test_a_band_of_errors_left_out(waves, ax):
    x, y = waves
    model = KernelRidge(0.1, kernel=Gaussian(sigma=0.5)).fit(x, y)
    shown = RegressionBandDisplay.from_estimator(model, x, y, ax=ax)
    left = [
        y[i]
        - KernelRidge(0.1, kernel=Gaussian(sigma=0.5))
        .fit(np.delete(x, i, 0), np.delete(y, i))
        .predict(x[[i]])[0]
        for i in range(len(y))
    ]
    assert shown.source == "left out" and shown.width == pytest.approx(np.sort(np.abs(left))[81], rel=1e-6)
    assert_drawn(shown, ax)
    plain = RegressionBandDisplay.from_estimator(model, x, y, errors="residuals", ax=ax)
    assert plain.source == "residuals" and plain.width < shown.width
    with pytest.raises(InputError, match="one column of numbers"):
        RegressionBandDisplay.from_estimator(
            KernelRidge().fit(np.hstack([x, x]), y), np.hstack([x, x]), y, ax=ax
        )
    with pytest.raises(InputError, match="has no errors left out for these 5 points"):
        RegressionBandDisplay.from_estimator(model, x[:5], y[:5], errors="left out", ax=ax)


@pytest.mark.parametrize(("hits", "total"), [(0, 10), (3, 10), (10, 10), (1, 1), (250, 1000)])
def test_the_interval_of_a_share_is_exact(hits, total):
    truth = binomtest(hits, total).proportion_ci(0.95, method="exact")
    np.testing.assert_allclose(share_interval(hits, total), (truth.low, truth.high), atol=1e-9)


def test_calibration_is_scikit_learns_curve(ax):
    rng = np.random.default_rng(0)
    p = rng.uniform(size=200)
    y = (rng.uniform(size=200) < p).astype(int)
    shown = CalibrationDisplay.from_predictions(y, np.column_stack([1 - p, p]), classes=[0, 1], bins=5, ax=ax)
    observed, predicted = calibration_curve(y, p, n_bins=5, strategy="quantile")
    np.testing.assert_allclose(shown.predicted, predicted)
    np.testing.assert_allclose(shown.observed, observed)
    assert_drawn(shown, ax)
    three = CalibrationDisplay.from_predictions([0, 1, 2], np.eye(3), classes=[0, 1, 2], ax=ax)
    assert three.error() == 0.0 and three.label == "P(predicted class)"
    with pytest.raises(InputError, match="a column per class"):
        CalibrationDisplay.from_predictions(y, p, classes=[0, 1], ax=ax)
    with pytest.raises(InputError, match="SVC gives no probabilities"):
        CalibrationDisplay.from_estimator(SVC(), [[0.0]], [0], ax=ax)


def test_confusion_counts_pairs(ax):
    y, told = np.array(list("aabbbc")), np.array(list("abbbac"))
    shown = ConfusionDisplay.from_predictions(y, told, ax=ax)
    truth = [[np.sum((y == i) & (told == j)) for j in "abc"] for i in "abc"]
    np.testing.assert_array_equal(shown.counts, truth)
    assert "4 of 6 points" in shown.describe()
    assert_drawn(shown, ax)


def test_residuals(waves, ax):
    x, y = waves
    model = KernelRidge(0.1).fit(x, y)
    shown = ResidualDisplay.from_estimator(model, x, y, most=20, ax=ax)
    assert shown.rmse() == pytest.approx(np.sqrt(np.mean((y - model.predict(x)) ** 2)))
    assert len(shown.shown) == 20
    assert_drawn(shown, ax)
    assert_drawn(ResidualDisplay.from_predictions(y, y, kind="targets", ax=ax), ax)
    with pytest.raises(InputError, match="residuals are of one target"):
        ResidualDisplay.from_predictions(np.ones((3, 2)), np.ones((3, 2)), ax=ax)


def test_a_learning_curve_ends_at_a_fit_to_three_quarters(waves, ax):
    x, y = waves
    model = KernelRidge(0.1).fit(x, y)
    shown = LearningCurveDisplay.from_estimator(model, x, y, repeats=2, ax=ax)
    order = np.random.default_rng([0, 1]).permutation(90)
    learn, left = order[:68], order[68:]
    last = KernelRidge(0.1).fit(x[learn], y[learn])
    assert shown.sizes[-1] == 68
    assert shown.test[-1, 1] == pytest.approx(np.sqrt(np.mean((last.predict(x[left]) - y[left]) ** 2)))
    assert_drawn(shown, ax)


def test_a_learning_curve_obeys_its_time_and_says_what_it_cannot(waves, ax):
    x, y = waves
    short = LearningCurveDisplay.from_estimator(KernelRidge().fit(x, y), x, y, max_time=0.0, ax=ax)
    assert np.isfinite(short.test).sum() == 1  # the first fit tells how long one takes
    with pytest.raises(InputError, match="at least 8 points, got 5"):
        LearningCurveDisplay.from_estimator(KernelRidge().fit(x[:5], y[:5]), x[:5], y[:5], ax=ax)
    K = x @ x.T
    with pytest.raises(InputError, match="kernel values, not points"):
        LearningCurveDisplay.from_estimator(
            KernelRidge(kernel="precomputed").fit(K, y), K[:20], y[:20], ax=ax
        )


def test_a_learning_curve_of_kernel_values_is_that_of_the_points(waves, ax):
    x, y = waves
    curves = [
        LearningCurveDisplay.from_estimator(KernelRidge(0.1, kernel=kernel).fit(X, y), X, y, repeats=1, ax=ax)
        for kernel, X in ((Linear(), x), ("precomputed", x @ x.T))
    ]
    np.testing.assert_allclose(curves[0].test, curves[1].test, rtol=1e-6)


# --- choices ---------------------------------------------------------------------------------------------


def test_a_path_has_its_best_where_the_model_is(waves, ax):
    x, y = waves
    kernels = [Gaussian(sigma=s) for s in (0.1, 0.5, 2.0)]
    model = KernelRidgeCV(kernel=kernels).fit(x, y)
    shown = PathDisplay.from_estimator(model, ax=ax)
    assert shown.best() == (model.alpha_, repr(model.kernel_))
    assert np.nanmin(shown.errors) == pytest.approx(model.best_score_)
    assert_drawn(shown, ax)
    by_width = PathDisplay.from_estimator(model, against="kernel", ax=new_figure()[1])
    assert by_width.best()[0] == model.kernel_.sigma and by_width.labels[0] == "sigma of the kernel"
    first = tried(model)[0]
    assert first.kernel == repr(model.kernel_) and first.error == pytest.approx(np.sqrt(model.best_score_))
    assert_drawn(TrialsDisplay.from_trials(model, ax=ax), ax)
    with pytest.raises(InputError, match="has no path_"):
        PathDisplay.from_estimator(SVC(), ax=ax)


def test_a_path_of_evidence_has_no_errors_to_show(waves, ax):
    x, y = waves
    model = KernelRidgeCV(kernel=[Gaussian(sigma=s) for s in (0.1, 0.5)], scoring="evidence").fit(x, y)
    shown = PathDisplay.from_estimator(model, ax=ax)
    assert shown.best() == (model.alpha_, repr(model.kernel_)) and shown.labels[1] == "-log evidence"
    assert_drawn(shown, ax)
    with pytest.raises(InputError, match="has compared no errors"):
        tried(model)


def test_paths_of_machines_and_searches(moons, ax):
    X, y, _ = moons
    models = SVC().path(X, y, [10.0, 0.1])
    shown = PathDisplay.from_models(models, X, y, ax=ax)
    assert shown.x.tolist() == [0.1, 10.0]
    np.testing.assert_allclose(shown.errors[0], [1 - models[1].score(X, y), 1 - models[0].score(X, y)])
    search = GridSearchCV(SVC(), {"C": [0.1, 1.0], "gamma": [0.5, 1.0]}, cv=3).fit(X, y)
    found = PathDisplay.from_search(search, "C", ax=ax)
    assert np.nanmin(found.errors) == pytest.approx(1 - search.best_score_)
    assert len(tried(search)) == 4
    with pytest.raises(InputError, match="no parameter 'sigma': it has C, gamma"):
        PathDisplay.from_search(search, "sigma", ax=ax)


def test_trials_on_more_points_come_first():
    rows = tried([
        {"kernel": "small", "error": 0.1, "points": 10},
        {"kernel": "large", "error": 0.2, "points": 100},
    ])  # fmt: skip
    assert [row.kernel for row in rows] == ["large", "small"]
    for wrong in ("trials", None, 3):
        with pytest.raises(InputError, match="must be a list of trials"):
            tried(wrong)
    with pytest.raises(InputError, match="needs a kernel and an error"):
        tried([{"kernel": "a"}])


def test_relevance_of_the_only_column_that_matters_is_the_root_of_two(ax):
    X = np.random.default_rng(0).normal(size=(400, 3))
    model = KernelRidge(1e-3, kernel=Linear()).fit(X, X[:, 1])
    shown = RelevanceDisplay.from_estimator(model, X, repeats=30, ax=ax)
    assert shown.kind == "permutation" and shown.order()[0] == 1
    assert shown.relevance[1] == pytest.approx(np.sqrt(2), rel=0.02)
    assert shown.relevance[[0, 2]] == pytest.approx(0.0, abs=1e-3)
    assert_drawn(shown, ax)


def test_relevance_by_length_scales(ax):
    X = np.random.default_rng(0).normal(size=(50, 2)) * [1.0, 10.0]
    kernel = Gaussian(sigma=[2.0, 5.0])
    shown = RelevanceDisplay.from_estimator(
        KernelRidge(kernel=kernel).fit(X, X[:, 0]), X, names=["a", "b"], ax=ax
    )
    np.testing.assert_allclose(shown.relevance, X.std(axis=0) / [2.0, 5.0])
    assert shown.names == ("a", "b") and shown.kind == "length scales"
    # ∂²k/∂(x - x')² at 0 is -factor²: what a factor means, whatever the parameter is called
    gamma = Gaussian(gamma=[0.5, 2.0])
    step = 1e-4
    for j, factor in enumerate(column_factors(gamma, 2)):
        value = gamma(np.zeros((1, 2)), step * np.eye(2)[[j]])[0, 0]
        assert 1 - value == pytest.approx(factor**2 * step**2, rel=1e-3)


def test_relevance_takes_tables_of_any_kind(ax):
    import pandas as pd
    import polars as pl
    from scipy import sparse

    X = np.random.default_rng(0).normal(size=(40, 2))
    y = X[:, 0] > 0
    truth = RelevanceDisplay.from_estimator(SVC().fit(X, y), X, y, ax=ax).relevance
    for table in (
        pd.DataFrame(X, columns=["a", "b"]),
        pl.DataFrame({"a": X[:, 0], "b": X[:, 1]}),
        sparse.csr_array(X),
    ):
        shown = RelevanceDisplay.from_estimator(SVC().fit(table, y), table, y, ax=ax)
        np.testing.assert_allclose(shown.relevance, truth, rtol=1e-6)
    with pytest.raises(InputError, match="these points are objects"):
        RelevanceDisplay.from_estimator(SVC(kernel=Spectrum(1)).fit(["a", "b"], [0, 1]), ["a", "b"], ax=ax)


@pytest.mark.full
def test_pictures_need_no_certain_precision(moons, ax):
    X, y, _ = moons
    with config(dtype="float32"):
        model = SVC(C=5.0).fit(X, y)
        assert_drawn(DecisionBoundaryDisplay.from_estimator(model, X, y, ax=ax), ax)
        assert_drawn(SpectrumDisplay.from_estimator(model, X, ax=ax), ax)


def test_equal_length_scales_are_not_taken_for_relevance(ax):
    X = np.random.default_rng(0).normal(size=(80, 2))
    X /= X.std(axis=0)
    model = KernelRidge(0.1, kernel=Gaussian(sigma=[2.0, 2.0])).fit(X, X[:, 0])
    shown = RelevanceDisplay.from_estimator(model, X, ax=ax)
    assert shown.kind == "permutation" and shown.order()[0] == 0
