"""How sure ridge models are: the posterior of a Gaussian process, the jackknife+, functions drawn."""

import math
import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize_scalar
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from mercer import (
    AutoKernelRegressor,
    Gaussian,
    KernelRidge,
    KernelRidgeCV,
    Landmarks,
    Linear,
    Precomputed,
    config,
    load,
    save,
)
from mercer.errors import InputError, MemoryBudgetError


@pytest.fixture
def problem(rng):
    X = rng.normal(size=(30, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=30) + 5
    return X, y, 2 * rng.normal(size=(12, 2))


def peer(model, X, y, weight=None):
    """scikit-learn's process with the numbers of ours; weights are of noise."""
    noise = model.noise_variance_
    kernel = ConstantKernel(noise / model.alpha, "fixed") * RBF(model.kernel_.sigma, "fixed")
    alpha = noise if weight is None else noise / weight
    return GaussianProcessRegressor(kernel, alpha=alpha, optimizer=None).fit(X, y)


# --- the posterior -----------------------------------------------------------------------------------


@pytest.mark.parametrize("has_weights", [False, True])
def test_the_posterior_is_scikit_learns(problem, rng, has_weights):
    X, y, Z = problem
    weight = rng.uniform(0.3, 3, 30) if has_weights else None
    model = KernelRidge(0.3, kernel=Gaussian(sigma=0.9), fit_intercept=False).fit(X, y, weight)
    theirs = peer(model, X, y, weight)
    mean, std = model.predict(Z, return_std=True)
    their_mean, their_std = theirs.predict(Z, return_std=True)
    assert mean == pytest.approx(their_mean, abs=1e-8)
    assert std == pytest.approx(their_std, abs=1e-8)
    covariance = model.predict(Z, return_cov=True)[1]
    assert covariance == pytest.approx(theirs.predict(Z, return_cov=True)[1], abs=1e-8)


def test_an_intercept_is_a_constant_of_any_size(problem):
    """b is the limit of a process with a constant of large variance: 1e7 is off by about 1e-7."""
    X, y, Z = problem
    model = KernelRidge(0.3, kernel=Gaussian(sigma=0.9)).fit(X, y)
    large = KernelRidge(0.3, kernel=Gaussian(sigma=0.9) + 1e7, fit_intercept=False).fit(X, y)
    unit = model.noise_variance_ / large.noise_variance_
    std = model.predict(Z, return_std=True)[1]
    assert std == pytest.approx(math.sqrt(unit) * large.predict(Z, return_std=True)[1], rel=1e-5)


def test_the_noise_is_the_most_likely_one(problem):
    """That of σ², where K s² + σ²I with σ² = α s² is the covariance of y."""
    X, y, _ = problem
    model = KernelRidge(0.3, kernel=Gaussian(sigma=0.9), fit_intercept=False).fit(X, y)
    K = model.kernel_(X) + 0.3 * np.eye(30)

    def loss(log_noise):
        C = math.exp(log_noise) / 0.3 * K
        return np.linalg.slogdet(C)[1] + y @ np.linalg.solve(C, y)

    best = minimize_scalar(loss, (math.log(model.noise_variance_) - 1, math.log(model.noise_variance_) + 2))
    assert model.noise_variance_ == pytest.approx(math.exp(best.x), rel=1e-5)  # flat at its minimum


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("make", ["ridge on landmarks", "path", "path on landmarks"])
def test_every_way_to_the_model_has_the_same_posterior(problem, rng, fit_intercept, make):
    """All points as landmarks are the exact problem; KernelRidgeCV with one penalty is KernelRidge."""
    X, y, Z = problem
    Y, weight = np.column_stack([y, y**2]), rng.uniform(0.3, 3, 30)
    options = {"kernel": Gaussian(sigma=0.9), "fit_intercept": fit_intercept}
    one = KernelRidge(0.3, **options).fit(X, Y, weight)
    other = {
        "ridge on landmarks": KernelRidge(0.3, landmarks=X, **options),
        "path": KernelRidgeCV([0.3], **options),
        "path on landmarks": KernelRidgeCV([0.3], landmarks=X, **options),
    }[make].fit(X, Y, weight)
    assert other.noise_variance_ == pytest.approx(one.noise_variance_, rel=1e-8)
    for asked in ({"return_std": True}, {"return_cov": True}):
        assert other.predict(Z, **asked)[1] == pytest.approx(one.predict(Z, **asked)[1], abs=1e-7)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_linear_kernel_in_its_features_has_the_posterior_of_its_points(problem, make, fit_intercept):
    X, y, Z = problem
    options = {"kernel": "linear", "fit_intercept": fit_intercept}
    of_points = KernelRidge(0.3, solver="cholesky", **options).fit(X, y)
    of_features = KernelRidge(0.3, solver="primal", **options).fit(make(X), y)
    assert of_features.noise_variance_ == pytest.approx(of_points.noise_variance_, rel=1e-8)
    std = of_points.predict(Z, return_std=True)[1]
    assert of_features.predict(make(Z), return_std=True)[1] == pytest.approx(std, abs=1e-8)


def test_points_far_from_the_origin(problem):
    """The points of a linear kernel are moved, and so are new ones."""
    X, y, Z = problem
    here = KernelRidge(0.3, kernel="linear", solver="cholesky").fit(X, y)
    there = KernelRidge(0.3, kernel="linear", solver="cholesky").fit(X + 1e6, y)
    path = KernelRidgeCV([0.3], kernel="linear").fit(X + 1e6, y)
    for model in (there, path):
        # X + 1e6 is rounded to 1e-10
        assert model.predict_interval(Z + 1e6) == pytest.approx(here.predict_interval(Z), abs=1e-7)


def test_far_from_the_points_nothing_is_known(rng):
    X = rng.uniform(-1, 1, (400, 1))
    y = np.sin(3 * X[:, 0])
    for landmarks in (None, 20):
        model = KernelRidge(1e-2, kernel=Gaussian(sigma=0.5), landmarks=landmarks, fit_intercept=False)
        model.fit(X, y)
        _, std = model.predict([[0.0], [50.0]], return_std=True)
        assert std[1] == pytest.approx(math.sqrt(model.noise_variance_ / 1e-2), rel=1e-9)  # s √k(x, x)
        assert std[0] < 0.1 * std[1]


# --- intervals ---------------------------------------------------------------------------------------


def by_refits(make, X, y, Z, coverage, alpha):
    """The jackknife+ by its definition: n fits, and a sorted list of ends for each new point."""
    ends = []
    for i in range(len(y)):
        kept = np.arange(len(y)) != i
        model = make().fit(X[kept], y[kept])

        def scale(points, model=model):
            return np.sqrt(
                alpha + model.predict(points, return_std=True)[1] ** 2 * alpha / model.noise_variance_
            )

        score = abs(y[i] - model.predict(X[[i]])[0]) / scale(X[[i]])[0]
        middle, half = model.predict(Z), score * scale(Z)
        ends.append((middle - half, middle + half))
    low, high = (np.sort([end[side] for end in ends], axis=0) for side in (0, 1))
    n = len(y)
    k = math.ceil(round(coverage * (n + 1), 9))
    if k > n:
        return np.tile([-np.inf, np.inf], (len(Z), 1))
    return np.column_stack([low[n - k], high[k - 1]])


@pytest.mark.sample(5)
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.99])
def test_intervals_are_those_of_refits(problem, fit_intercept, coverage):
    X, y, Z = problem

    def make():
        return KernelRidge(0.3, kernel=Gaussian(sigma=0.9), fit_intercept=fit_intercept)

    wanted = by_refits(make, X, y, Z, coverage, 0.3)
    assert make().fit(X, y).predict_interval(Z, coverage) == pytest.approx(wanted, abs=1e-8)
    path = KernelRidgeCV([0.3], kernel=Gaussian(sigma=0.9), fit_intercept=fit_intercept).fit(X, y)
    assert path.predict_interval(Z, coverage) == pytest.approx(wanted, abs=1e-8)


def test_a_weight_counts_observations(problem, rng):
    X, y, Z = problem
    times = rng.integers(0, 4, 30)
    weighted = KernelRidge(0.3, kernel=Gaussian(sigma=0.9)).fit(X, y, times)
    repeated = KernelRidge(0.3, kernel=Gaussian(sigma=0.9)).fit(np.repeat(X, times, 0), np.repeat(y, times))
    assert weighted.noise_variance_ == pytest.approx(repeated.noise_variance_, rel=1e-8)
    for coverage in (0.5, 0.9):
        found = repeated.predict_interval(Z, coverage)
        assert weighted.predict_interval(Z, coverage) == pytest.approx(found, abs=1e-7)


def test_several_targets_with_penalties_of_their_own(problem):
    X, y, Z = problem
    Y = np.column_stack([y, np.cos(X[:, 0])])
    both = KernelRidge([0.3, 2.0], kernel=Gaussian(sigma=0.9)).fit(X, Y)
    for j, alpha in enumerate((0.3, 2.0)):
        one = KernelRidge(alpha, kernel=Gaussian(sigma=0.9)).fit(X, Y[:, j])
        assert both.predict_interval(Z)[:, :, j] == pytest.approx(one.predict_interval(Z), abs=1e-8)
        std = one.predict(Z, return_std=True)[1]
        assert both.predict(Z, return_std=True)[1][:, j] == pytest.approx(std, abs=1e-8)
    assert both.sample_y(Z, 3).shape == (12, 2, 3)


def covered(model, X, y, coverage=0.9):
    low, high = model.predict_interval(X, coverage).T
    return float(np.mean((low <= y) & (y <= high)))


@pytest.mark.parametrize("landmarks", [None, Landmarks(40)])
def test_intervals_cover_what_they_say(rng, landmarks):
    """Noise of two sizes and far from normal, n small beside the data: still 90 %.

    Of 40 fits to 60 points each, the new targets are 40 · 100; what a fit covers varies by about 4 %, so
    that their mean is within 3 · 4 % / √40 = 2 % of what is expected, which is a little more than 90 %.
    """
    found = []
    for _ in range(40):
        X = rng.uniform(-2, 2, (160, 2))
        y = np.sin(2 * X[:, 0]) + rng.standard_t(3, 160) * np.where(X[:, 1] > 0, 0.3, 0.1)
        model = KernelRidge(0.1, kernel=Gaussian(sigma=1.0), landmarks=landmarks).fit(X[:60], y[:60])
        found.append(covered(model, X[60:], y[60:]))
    assert 0.88 < np.mean(found) < 0.94


def test_they_cover_where_the_process_is_wrong(rng):
    """σ = 0.1 and α = 1e-3 for a constant: the posterior believes in a rough f, intervals do not suffer."""
    X, y = rng.uniform(0, 1, (600, 1)), rng.exponential(size=600)
    model = KernelRidge(1e-3, kernel=Gaussian(sigma=0.1)).fit(X[:200], y[:200])
    assert covered(model, X[200:], y[200:]) == pytest.approx(0.9, abs=3 * math.sqrt(0.09 / 400 + 0.09 / 200))


@pytest.mark.sample(3)
@pytest.mark.data
@pytest.mark.parametrize("name", ["abalone.arff.gz", "cal.housing.arff.gz"])
@pytest.mark.parametrize("landmarks", [None, 200])
def test_real_rows_are_covered(data_dir, rng, name, landmarks):
    """Of 800 to 4,000 rows; what is covered of 2,000 others varies with both samples, by 3 errors at most."""
    from mercer.tables import read_table

    frame = read_table(data_dir / "tables" / name).frame
    Z = frame.to_numpy()[rng.permutation(len(frame))]
    X, y = Z[:, 1:-1].astype(float), Z[:, -1].astype(float)  # abalone's first column is a letter
    n = 800 if landmarks is None else 2000
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = KernelRidgeCV(kernel=Gaussian(sigma="median"), landmarks=landmarks).fit(X[:n], y[:n])
    error = math.sqrt(0.09 / n + 0.09 / 2000)
    assert covered(model, X[n : n + 2000], y[n : n + 2000]) == pytest.approx(0.9, abs=3 * error)


def test_a_search_is_as_sure_as_its_model(problem):
    """And says that its choice is not counted."""
    X, y, Z = problem
    search = AutoKernelRegressor(kernel=Gaussian(sigma=0.9)).fit(X, y)
    model = search.model_
    assert np.array_equal(search.predict_interval(Z), model.predict_interval(Z))
    assert np.array_equal(search.predict(Z, return_std=True)[1], model.predict(Z, return_std=True)[1])
    assert np.array_equal(search.sample_y(Z), model.sample_y(Z))
    assert search.noise_variance_ == model.noise_variance_
    assert "at least 80 % of new targets are inside" in model.interval_guarantee(0.9)
    assert search.interval_guarantee(0.9).endswith("chosen on the same points, which this does not count")
    on_landmarks = KernelRidge(landmarks=5).fit(X, y)
    assert "there is no guarantee beyond that" in on_landmarks.interval_guarantee()


@pytest.mark.sample(2)
@pytest.mark.data
@pytest.mark.parametrize("name", ["abalone.arff.gz", "cal.housing.arff.gz"])
def test_tables_are_covered(data_dir, name):
    """After a training, of rows that it was not given: 300 are learned from, others in the same order."""
    from mercer.tables import read_table, train

    table = read_table(data_dir / "tables" / name)
    rows = np.random.default_rng(0).permutation(table.rows)[:1300]
    old, new = table.frame[rows[:300]], table.frame[rows[300:]]
    target = table.columns[-1]
    model = train(old, target, task="regression", kernel="gaussian(sigma=3)", folds=3).model
    low, high = model.predict_interval(new.drop(target), 0.9).T
    y = new[target].to_numpy()
    error = math.sqrt(0.09 / 300 + 0.09 / 1000)
    assert np.mean((low <= y) & (y <= high)) == pytest.approx(0.9, abs=3 * error)


# --- functions drawn ---------------------------------------------------------------------------------


def test_functions_have_the_moments_of_the_posterior(problem):
    """4,000 of them: a mean is right to std/63, 5 such errors are allowed; covariances alike."""
    X, y, Z = problem
    model = KernelRidge(0.3, kernel=Gaussian(sigma=0.9)).fit(X, y)
    drawn = model.sample_y(Z, 4000, random_state=1)
    mean, covariance = model.predict(Z, return_cov=True)
    std = np.sqrt(np.diag(covariance))
    assert np.abs((drawn.mean(axis=1) - mean) / std).max() < 5 / math.sqrt(4000)
    assert np.abs((np.cov(drawn) - covariance) / np.outer(std, std)).max() < 5 * math.sqrt(2 / 4000)
    assert np.array_equal(drawn, model.sample_y(Z, 4000, random_state=1))


def test_a_drawn_function_is_one_function(rng):
    """Without noise to speak of it goes through the points, also where these are asked for twice."""
    X = np.linspace(0, 3, 8)[:, None]
    model = KernelRidge(1e-8, kernel=Gaussian(sigma=1.0)).fit(X, np.sin(X[:, 0]))
    drawn = model.sample_y(np.vstack([X, X]), 2)
    assert drawn[:8] == pytest.approx(drawn[8:], abs=1e-5)
    assert drawn[:8, 0] == pytest.approx(np.sin(X[:, 0]), abs=1e-3)


# --- files, memory, refusals --------------------------------------------------------------------------


@pytest.mark.parametrize("landmarks", [None, 10])
@pytest.mark.parametrize("kind", [KernelRidge, KernelRidgeCV])
def test_a_loaded_model_is_as_sure(problem, tmp_path, kind, landmarks):
    X, y, Z = problem
    model = kind(kernel=Gaussian(sigma=0.9), landmarks=landmarks).fit(X, y, np.linspace(0, 2, 30))
    save(model, tmp_path / "m.mercer")
    for again in (load(tmp_path / "m.mercer"), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(again.predict_interval(Z), model.predict_interval(Z))
        assert np.array_equal(again.predict(Z, return_std=True)[1], model.predict(Z, return_std=True)[1])


def test_files_hold_nothing_of_the_size_of_a_matrix(rng, tmp_path):
    X = rng.normal(size=(800, 3))
    model = KernelRidge(1.0, kernel=Gaussian(sigma=1.0)).fit(X, X[:, 0])
    model.predict_interval(X[:3])
    save(model, tmp_path / "m.mercer")
    assert (tmp_path / "m.mercer").stat().st_size < 12 * 8 * 800


def test_models_of_files_without_weights_say_so(problem):
    X, y, Z = problem
    model = KernelRidgeCV(kernel=Gaussian(sigma=0.9)).fit(X, y)
    del model._left_out, model._sketch  # as of version 1.0
    with pytest.raises(InputError, match="saved by a version of mercer that kept less: fit it again"):
        model.predict_interval(Z)


def test_new_points_come_in_blocks(problem):
    X, y, _ = problem
    model = KernelRidge(0.3, kernel=Gaussian(sigma=0.9)).fit(X, y)
    Z = np.random.default_rng(0).normal(size=(500, 2))
    whole = model.predict_interval(Z), model.predict(Z, return_std=True)[1]
    with config(memory="100KiB"):
        parts = model.predict_interval(Z), model.predict(Z, return_std=True)[1]
    for one, other in zip(whole, parts, strict=True):
        assert one == pytest.approx(other, abs=1e-12)
    fresh = KernelRidge(0.3, kernel=Gaussian(sigma=0.9)).fit(X, y)
    with config(memory="4KiB"), pytest.raises(MemoryBudgetError, match="fit on landmarks"):
        fresh.predict(Z, return_std=True)


def test_what_cannot_be_told_is_refused(problem):
    X, y, Z = problem
    fitted = KernelRidge(0.3, kernel=Gaussian(sigma=0.9)).fit(X, y)
    with pytest.raises(InputError, match="coverage must be a number between 0 and 1, got 90"):
        fitted.predict_interval(Z, 90)
    with pytest.raises(InputError, match="both True"):
        fitted.predict(Z, return_std=True, return_cov=True)
    with pytest.raises(InputError, match="n_samples must be"):
        fitted.sample_y(Z, 0)
    K = fitted.kernel_(X)
    with pytest.raises(InputError, match="tells no k"):
        KernelRidge(kernel="precomputed").fit(K, y).predict_interval(K)
    by_position = KernelRidge(0.3, kernel=Precomputed(K)).fit(np.arange(20), y[:20])
    other = KernelRidge(0.3, kernel=Gaussian(sigma=0.9)).fit(X[:20], y[:20])
    found = by_position.predict_interval(np.arange(20, 30))
    assert found == pytest.approx(other.predict_interval(X[20:]), abs=1e-10)
    with pytest.raises(InputError, match="alpha=0 means no noise"):
        KernelRidge(0.0, kernel=Gaussian(sigma=0.9)).fit(X, y).predict_interval(Z)
    with pytest.warns(UserWarning, match="max_iter"):
        early = KernelRidge(1e-4, kernel=Gaussian(sigma=0.9), solver="cg", rank=0, max_iter=1).fit(X, y)
    with pytest.raises(InputError, match="ended early"):
        early.predict(Z, return_std=True)
    with pytest.raises(AttributeError, match="ended early"):
        early.noise_variance_  # noqa: B018
    one = KernelRidge(1.0, kernel=Linear(), solver="cholesky").fit([[1.0]], [2.0])
    with pytest.raises(InputError, match="single point"):
        one.predict([[2.0]], return_std=True)
    assert np.array_equal(one.predict_interval([[2.0]]), [[-np.inf, np.inf]])
