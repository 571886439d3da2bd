"""KernelFisherDiscriminant: LDA as truth, honest probabilities, every kind of data and label."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import Gaussian, Linear, Polynomial, Sigmoid, config
from mercer.errors import InputError, MemoryBudgetError
from mercer.estimators.fisher import KernelFisherDiscriminant


@pytest.fixture
def blobs(rng):
    X, y = make_blobs(150, 4, centers=3, cluster_std=3.0, random_state=3)
    return X, np.array(["ant", "bee", "cat"])[y]


@pytest.fixture
def ring(rng):
    radius = np.concatenate([rng.uniform(0, 0.8, 60), rng.uniform(1.2, 2, 60)])
    angle = rng.uniform(0, 2 * np.pi, 120)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    return X, radius > 1


@parametrize_with_checks(
    [
        KernelFisherDiscriminant(),
        KernelFisherDiscriminant(Gaussian(sigma="median"), alpha=1e-3, class_weight="balanced"),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


# --- truths ------------------------------------------------------------------------------------------


def test_the_linear_kernel_is_lda(blobs):
    X, y = blobs
    model = KernelFisherDiscriminant("linear", alpha=1e-7).fit(X, y)
    peer = LinearDiscriminantAnalysis(solver="eigen").fit(X, y)
    W, S = X.T @ model.expansion_.coef, peer.scalings_[:, :2]
    assert W * np.sign((W * S).sum(axis=0)) == pytest.approx(S, abs=1e-6)
    assert model.explained_variance_ratio_ == pytest.approx(peer.explained_variance_ratio_[:2], abs=1e-6)
    assert (model.predict(X) == peer.predict(X)).mean() > 0.98  # means are those of points left out
    scores = model.transform(X)
    within = np.concatenate([scores[y == c] - scores[y == c].mean(axis=0) for c in peer.classes_])
    assert within.T @ within / len(X) == pytest.approx(np.eye(2), abs=1e-6)


def test_what_no_line_separates(ring):
    X, y = ring
    model = KernelFisherDiscriminant(Gaussian(sigma=1.0)).fit(X, y)
    assert model.score(X, y) == 1.0
    assert cross_val_score(model, X, y, cv=3).mean() > 0.95
    assert model.transform(X).shape == (120, 1)
    assert model.predict(X).dtype == bool
    assert ((model.decision_function(X) > 0) == y).all()
    assert KernelFisherDiscriminant("linear").fit(X, y).score(X, y) < 0.8


def test_probabilities(blobs):
    X, y = blobs
    model = KernelFisherDiscriminant(Gaussian(sigma="median")).fit(X[:100], y[:100])
    P = model.predict_proba(X)
    assert P.sum(axis=1) == pytest.approx(np.ones(150))
    assert (model.classes_[P.argmax(axis=1)] == model.predict(X)).all()
    assert np.log(P) == pytest.approx(model.predict_log_proba(X))
    assert model.decision_function(X).shape == (150, 3)
    # points left out are as uncertain as new ones: the loss beats that of knowing only the shares
    assert log_loss(y[100:], P[100:]) < 0.9 * np.log(3)


def test_the_formula_of_the_decision(blobs):
    X, y = blobs
    model = KernelFisherDiscriminant(alpha=0.01, priors=[0.2, 0.5, 0.3]).fit(X, y)
    z = model.transform(X[:7])
    distance = z[:, None] - model.means_
    quadratic = np.einsum("ncj,jk,nck->nc", distance, np.linalg.inv(model.covariance_), distance)
    truth = np.log([0.2, 0.5, 0.3]) - quadratic / 2
    difference = model.decision_function(X[:7]) - truth
    assert difference == pytest.approx(difference[:, :1] * np.ones(3), abs=1e-8)


def test_priors_and_class_weight(blobs):
    X, y = blobs
    likely = KernelFisherDiscriminant(alpha=0.1, priors=[0.98, 0.01, 0.01]).fit(X, y)
    equal = KernelFisherDiscriminant(alpha=0.1).fit(X, y)
    assert (likely.predict(X) == "ant").sum() >= (equal.predict(X) == "ant").sum()
    assert likely.transform(X) == pytest.approx(equal.transform(X))
    balanced = KernelFisherDiscriminant(alpha=0.1, class_weight="balanced").fit(X[:90], y[:90])
    assert balanced.priors_ == pytest.approx(np.ones(3) / 3)
    nothing = KernelFisherDiscriminant(alpha=0.1, priors=[1, 1, 0]).fit(X, y)
    assert "cat" not in nothing.predict(X)


def test_alpha_is_chosen_by_what_is_left_out(blobs):
    X, y = blobs
    model = KernelFisherDiscriminant().fit(X, y)
    assert model.alpha_ == model.alphas_[model.loo_errors_.argmin()]
    assert not hasattr(model.set_params(alpha=0.5).fit(X, y), "alphas_")
    assert model.alpha_ == 0.5


def test_weights_are_repetition(blobs, rng):
    X, y = blobs
    w = rng.integers(0, 3, 150)
    model = KernelFisherDiscriminant(Gaussian(sigma=3.0))
    weighted = clone(model).fit(X, y, sample_weight=w)
    repeated = clone(model).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    # rounding of K, n ε, over the least penalty, 1e-8 of the mean eigenvalue, is 3e-6
    assert weighted.predict_proba(X) == pytest.approx(repeated.predict_proba(X), abs=1e-5)


def test_components(blobs):
    X, y = blobs
    one = KernelFisherDiscriminant(alpha=0.1, n_components=1).fit(X, y)
    both = KernelFisherDiscriminant(alpha=0.1).fit(X, y)
    same = KernelFisherDiscriminant(alpha=0.1, n_components=1.0).fit(X, y)
    assert np.array_equal(same.transform(X), one.transform(X))
    assert one.transform(X) == pytest.approx(both.transform(X)[:, :1])
    assert np.array_equal(both.expansion_(X), both.transform(X))
    assert both.ratios_[0] >= both.ratios_[1] > 0


@pytest.mark.slow
def test_digits():
    X, y = load_digits(return_X_y=True)
    X, Z, y, labels = train_test_split(X / 16, y, test_size=0.5, random_state=0)
    model = KernelFisherDiscriminant(Gaussian(sigma=1.0)).fit(X, y)
    assert model.transform(Z).shape == (len(Z), 9)
    assert model.score(Z, labels) > 0.97


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.data
def test_usps(data_dir):
    """The first 2000 training images; α by what is left out, σ half the median distance."""
    with np.load(data_dir / "images" / "usps.npz") as file:
        X, y, Z, labels = (file[name] for name in ("X_train", "y_train", "X_test", "y_test"))
    X, Z = X[:2000].astype(float), Z.astype(float)
    model = KernelFisherDiscriminant(Gaussian(sigma=7.75)).fit(X, y[:2000])
    assert 1 - model.score(Z, labels) < 0.06
    assert log_loss(labels, model.predict_proba(Z)) < 0.3  # 1.2 with the covariance of the points left out


# --- other data --------------------------------------------------------------------------------------


def test_containers_agree(blobs):
    X, y = blobs
    expected = KernelFisherDiscriminant(alpha=0.1).fit(X, y).decision_function(X)
    names = list("abcd")
    tables = (X.tolist(), sparse.csr_array(X), pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names))
    for table in tables:
        model = KernelFisherDiscriminant(alpha=0.1).fit(table, y)
        assert model.decision_function(table) == pytest.approx(expected, abs=1e-6)
    out = model.set_output(transform="pandas").transform(tables[2])
    assert out.columns.tolist() == ["kernelfisherdiscriminant0", "kernelfisherdiscriminant1"]


def test_precomputed_equals_direct(blobs):
    X, y = blobs
    k = Gaussian(sigma=3.0)
    direct = KernelFisherDiscriminant(k, alpha=0.1).fit(X[:100], y[:100])
    given = KernelFisherDiscriminant("precomputed", alpha=0.1).fit(k(X[:100]), y[:100])
    assert given.decision_function(k(X[100:], X[:100])) == pytest.approx(direct.decision_function(X[100:]))


@pytest.mark.filterwarnings("ignore::mercer.errors.SlowPathWarning")
def test_strings():
    words = ["kernel", "colonel", "kern", "corn", "cat", "cattle", "dog", "doll"]
    kinds = np.array(["seed"] * 4 + ["pet"] * 4, dtype=object)

    def common(a, b):
        return float(len(set(a) & set(b)))

    model = KernelFisherDiscriminant(common, alpha=0.01).fit(words, kinds)
    assert model.score(words, kinds) >= 0.75
    assert model.transform(["kernels"]).shape == (1, 1)


def test_pickle_clone_search(blobs):
    X, y = blobs
    model = KernelFisherDiscriminant(Gaussian(sigma=3.0)).fit(X, y)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))
    with pytest.raises(NotFittedError):
        clone(model).predict(X)
    pipeline = make_pipeline(StandardScaler(), KernelFisherDiscriminant(Gaussian(sigma=1.0)))
    search = GridSearchCV(pipeline, {"kernelfisherdiscriminant__kernel__sigma": [0.5, 2.0]}, cv=3)
    assert search.fit(X, y).best_score_ > 0.6


# --- awkward data ------------------------------------------------------------------------------------


def test_imbalance(rng):
    X = np.concatenate([rng.normal(size=(1000, 2)), [[8.0, 8.0]]])
    y = np.append(np.zeros(1000), 1)
    for alpha in (1e-3, "auto"):
        model = KernelFisherDiscriminant(alpha=alpha).fit(X, y)
        assert np.isfinite(model.decision_function(X)).all()
        assert model.predict(X)[:1000].mean() < 0.01


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_scales_change_nothing(blobs, scale):
    X, y = blobs
    expected = KernelFisherDiscriminant("linear").fit(X, y).predict_proba(X)
    assert KernelFisherDiscriminant("linear").fit(scale * X, y).predict_proba(scale * X) == pytest.approx(
        expected, abs=1e-6
    )


def test_collinear_constant_and_duplicate(blobs):
    X, y = blobs
    wide = np.column_stack([X, X, np.ones(150)])
    model = KernelFisherDiscriminant("linear").fit(np.concatenate([wide, wide]), np.concatenate([y, y]))
    assert model.score(wide, y) > 0.6
    assert np.isfinite(model.predict_proba(wide)).all()


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_two_points(kernel):
    model = KernelFisherDiscriminant(kernel, alpha=0.1, gamma=1.0).fit([[0.0], [1.0]], ["a", "b"])
    assert np.isfinite(model.predict_proba([[0.0], [1.0]])).all()
    assert model.predict([[0.0], [1.0]]).tolist() == ["a", "b"]


def test_classes_are_never_reversed():
    """Left out, points of pure noise lie on the wrong side; the means that decide must not."""
    for seed in range(10):
        X, y = np.random.default_rng(seed).normal(size=(20, 5)), np.arange(20) // 10
        for alpha in (0.01, "auto"):
            assert KernelFisherDiscriminant(alpha=alpha).fit(X, y).score(X, y) > 0.5


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("alpha", [1e-3, "auto"])
def test_a_class_of_one_point(rng, kernel, alpha):
    X = np.concatenate([rng.normal(size=(300, 2)), [[8.0, 8.0]]])
    y = np.append(np.zeros(300), 1)
    model = KernelFisherDiscriminant(kernel, alpha=alpha, class_weight="balanced").fit(X, y)
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize(("dtype", "offset"), [("float64", 1e5), ("float32", 10.0)])
def test_data_far_from_zero(rng, dtype, offset):
    """α stays above the rounding of K, so that the offset changes it by no more than a few of its 1e-6.

    In float32 the errors left out are flat to within rounding: another α may be chosen, which is as good.

    The kernel is linear, and written so that the points are not moved.
    """
    kernel = Polynomial(1, c=0.0)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] + 0.3 * rng.normal(size=200) > 0
    expected = KernelFisherDiscriminant(kernel).fit(X, y)
    with config(dtype=dtype):
        model = KernelFisherDiscriminant(kernel).fit(X + offset, y)
        assert model.score(X + offset, y) == pytest.approx(expected.score(X, y), abs=0.01)
        if dtype == "float64":
            assert model.alpha_ == pytest.approx(expected.alpha_, rel=1e-3)
        assert model.alphas_[0] >= 4 * np.finfo(dtype).eps * ((X + offset) ** 2).sum(axis=1).max() * 0.999


def test_alpha_below_rounding_is_raised_and_told(blobs):
    X, y = blobs
    expected = KernelFisherDiscriminant("linear", alpha=1e-10).fit(X, y)
    with pytest.warns(UserWarning, match=r"alpha=1e-300 is below the rounding of the kernel matrix: \S+ is"):
        model = KernelFisherDiscriminant("linear", alpha=1e-300).fit(X, y)
    assert model.alpha_ > 1e-14
    assert (model.predict(X) == expected.predict(X)).mean() > 0.98


def test_a_negative_trace(rng):
    X = rng.normal(size=(60, 2))
    y = X[:, 0] > 0
    with pytest.warns(UserWarning, match="not positive definite on these points"):
        model = KernelFisherDiscriminant("sigmoid", coef0=-1.0, gamma=1.0, indefinite="clip").fit(X, y)
    assert model.score(X, y) > 0.8
    with pytest.raises(InputError, match="has no positive eigenvalue once it is centred"):
        KernelFisherDiscriminant("precomputed", alpha=0.1, indefinite="clip").fit(
            -np.eye(6), [0, 0, 0, 1, 1, 1]
        )


@pytest.mark.parametrize("alpha", [1e-3, "auto"])
def test_an_indefinite_kernel_is_refused_or_told(blobs, alpha):
    X, y = blobs
    model = KernelFisherDiscriminant(Sigmoid(eta=0.01, nu=-1.0), alpha=alpha)
    with pytest.raises(InputError, match=r'has the eigenvalue -\S+, .* or pass indefinite="clip"'):
        model.fit(X, y)
    with pytest.warns(UserWarning, match=r"not positive definite on these points: the eigenvalue -\S+ of K"):
        model.set_params(indefinite="clip").fit(X, y)
    assert len(model.report_.warnings) == 1
    assert np.isfinite(model.predict_proba(X)).all()


def test_a_good_kernel_brings_no_warning(blobs):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kernel in ("rbf", "linear", "laplacian", Gaussian(sigma=100.0)):
            KernelFisherDiscriminant(kernel).fit(*blobs)


def test_float32(blobs):
    X, y = blobs
    expected = KernelFisherDiscriminant(alpha=0.1).fit(X, y).transform(X)
    with config(dtype="float32"):
        values = KernelFisherDiscriminant(alpha=0.1).fit(X, y).transform(X)
    assert values == pytest.approx(expected, abs=1e-2)


# --- plan and refusals -------------------------------------------------------------------------------


def test_plan_and_report(blobs):
    X, y = blobs
    model = KernelFisherDiscriminant().fit(X, y)
    assert model.plan(X, y).memory == model.report_.plan.memory
    assert model.report_.converged and model.report_.plan.solver == "eigendecomposition"
    assert str(KernelFisherDiscriminant(alpha=1.0).plan(X, y)).startswith(
        "Cholesky factorisation on 150 points"
    )
    with config(memory="1GB"), pytest.raises(MemoryBudgetError, match="use landmarks, or fewer points"):
        KernelFisherDiscriminant(gamma=1.0).fit(np.zeros((20_000, 1)), np.arange(20_000) % 2)


@pytest.mark.parametrize("alpha", [0.1, "auto"])
def test_the_memory_is_as_planned(rng, alpha):
    import tracemalloc

    X = rng.normal(size=(900, 3))
    y = X[:, 0] > 0
    model = KernelFisherDiscriminant(Gaussian(sigma=1.0), alpha=alpha).fit(X[:50], y[:50])
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.1 * model.report_.memory + 2e6
    assert model.report_.memory < 1.6 * peak + 2e6


def test_the_repair_keeps_to_the_plan(rng):
    import tracemalloc

    X = rng.normal(size=(900, 3))
    y = X[:, 0] > 0
    model = KernelFisherDiscriminant("sigmoid", coef0=-1.0, gamma=1.0, alpha=1e-6, indefinite="clip")
    with pytest.warns(UserWarning, match="not positive"):
        model.fit(X[:50], y[:50])
    tracemalloc.start()
    with pytest.warns(UserWarning, match="not positive"):
        model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.1 * model.report_.memory + 2e6


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"alpha": 0.0},
            "alpha must be positive, got 0.0: pass a positive number, or 'auto' to take it from the data",
        ),
        ({"alpha": "best"}, "alpha must be positive, got 'best'"),
        ({"n_components": 3}, "n_components must be at most classes - 1 = 2, got 3: pass fewer, or None"),
        (
            {"priors": [0.5, 0.5]},
            r"priors must be 3 numbers that are zero or more, one per class, got \[0.5, 0.5\]",
        ),
        ({"priors": [0.5, -0.5, 1]}, "priors must be 3 numbers"),
        ({"priors": "x"}, "priors must be 3 numbers that are zero or more, one per class, got 'x'"),
    ],
)
def test_refused_parameters(blobs, options, text):
    with pytest.raises(InputError, match=text):
        KernelFisherDiscriminant(**options).fit(*blobs)


def test_refused_data(blobs):
    X, y = blobs
    with pytest.raises(InputError, match="y must hold at least two classes, got one class, 'ant'"):
        KernelFisherDiscriminant().fit(X, ["ant"] * 150)
    with pytest.raises(InputError, match="the points do not vary in feature space"):
        KernelFisherDiscriminant(gamma=1.0).fit(np.ones((10, 2)), np.arange(10) % 2)
    with pytest.raises(InputError, match="only one class has points of positive weight"):
        KernelFisherDiscriminant().fit(X, y, sample_weight=y == "ant")
    with pytest.raises(ValueError, match="NaN"):
        KernelFisherDiscriminant().fit(X, np.where(y == "ant", np.nan, 1.0))


def test_repr():
    assert repr(KernelFisherDiscriminant(Linear())) == "KernelFisherDiscriminant(kernel=Linear())"
