"""ParzenClassifier against the distances to the means, NearestCentroid, and itself by another way."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.neighbors import NearestCentroid
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import Gaussian, Gram, Linear, Polynomial, Sigmoid, config
from mercer.errors import InputError, MemoryBudgetError
from mercer.estimators.parzen import ParzenClassifier
from mercer.geometry import centroid_distances


@parametrize_with_checks(
    [
        ParzenClassifier(),
        ParzenClassifier(Gaussian(sigma="median"), priors="empirical", class_weight="balanced"),
        ParzenClassifier(fit_offset=False),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture
def iris():
    return load_iris(return_X_y=True)


# --- the definition ----------------------------------------------------------------------------------


def test_two_classes_are_the_formula(rng):
    X, y, Z = (
        rng.normal(size=(30, 3)),
        rng.permutation(np.repeat(["a", "b"], [10, 20])),
        rng.normal(size=(7, 3)),
    )
    k = Gaussian(sigma=1.5)
    P, N = X[y == "b"], X[y == "a"]
    b = 0.5 * (k(N).sum() / 10**2 - k(P).sum() / 20**2)
    model = ParzenClassifier(k).fit(X, y)
    assert model.expansion_.intercept == pytest.approx(b, rel=1e-12)
    assert model.decision_function(Z) == pytest.approx(k(Z, P).mean(axis=1) - k(Z, N).mean(axis=1) + b)


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(sigma=0.8), Polynomial(2)], ids=repr)
def test_the_nearest_mean_wins(iris, kernel):
    X, y = iris
    model = ParzenClassifier(kernel).fit(X[::2], y[::2])
    d2 = np.column_stack([centroid_distances(kernel, X, X[::2][y[::2] == c]) for c in range(3)]) ** 2
    assert np.array_equal(model.predict(X), d2.argmin(axis=1))
    # f_c = -½ d_c² + ½ k(x, x): differences of the columns agree to the rounding of values of size k
    k = np.abs(Gram(kernel, X).diag()).max()
    values = model.decision_function(X)
    assert values - values[:, :1] == pytest.approx(-0.5 * (d2 - d2[:, :1]), abs=1e-12 * k)


@pytest.mark.parametrize("classes", [2, 3])
def test_linear_kernel_is_nearest_centroid(iris, classes):
    X, y = iris
    X, y = X[y < classes], y[y < classes]
    assert np.array_equal(
        ParzenClassifier("linear").fit(X, y).predict(X), NearestCentroid().fit(X, y).predict(X)
    )


def test_without_offset_the_densities_are_compared(iris):
    X, y = iris
    model = ParzenClassifier(Gaussian(0.5), fit_offset=False).fit(X, y)
    means = np.column_stack([Gaussian(0.5)(X, X[y == c]).mean(axis=1) for c in range(3)])
    assert model.decision_function(X) == pytest.approx(means)
    assert np.isnan(model.squared_norms_).all()


# --- weights and priors ------------------------------------------------------------------------------


def test_a_weight_is_a_repetition(rng, iris):
    X, y = iris
    times = rng.integers(0, 4, size=len(X))
    k = Gaussian(0.7)
    weighted = ParzenClassifier(k, priors="empirical").fit(X, y, sample_weight=times)
    repeated = ParzenClassifier(k, priors="empirical").fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.decision_function(X) == pytest.approx(repeated.decision_function(X), abs=1e-12)
    assert weighted.priors_ == pytest.approx(repeated.priors_)
    assert len(weighted.expansion_) == np.count_nonzero(times)  # those of no weight are not stored


def test_priors_add_their_logarithm(iris):
    X, y = iris
    plain = ParzenClassifier().fit(X, y).decision_function(X)
    priors = [0.2, 0.5, 0.3]
    assert ParzenClassifier(priors=priors).fit(X, y).decision_function(X) == pytest.approx(
        plain + np.log(priors)
    )
    few = np.r_[:60]  # 50 of class 0, 10 of class 1
    two = ParzenClassifier().fit(X[few], y[few]).decision_function(X)
    shifted = ParzenClassifier(priors="empirical").fit(X[few], y[few]).decision_function(X)
    assert shifted == pytest.approx(two + np.log(10 / 50))
    balanced = ParzenClassifier(priors="empirical", class_weight="balanced").fit(X[few], y[few])
    assert balanced.decision_function(X) == pytest.approx(two)


def test_class_weights_add_their_logarithm(iris):
    X, y = iris
    plain = ParzenClassifier().fit(X, y).decision_function(X)
    weighted = ParzenClassifier(class_weight={1: 4.0}).fit(X, y).decision_function(X)
    assert weighted == pytest.approx(plain + np.log([1.0, 4.0, 1.0]))
    with pytest.raises(InputError, match=r"class_weight must be positive for every class, got \{1: 0\}"):
        ParzenClassifier(class_weight={1: 0}).fit(X, y)


@pytest.mark.parametrize("priors", [[0.5, 0.5], [0.5, 0.5, 0.5], [1.5, -0.5, 0.0]])
def test_refused_priors(iris, priors):
    with pytest.raises(
        InputError, match="priors must be 3 positive numbers that sum to 1, one per class, got"
    ):
        ParzenClassifier(priors=priors).fit(*iris)


def test_refused_words(iris):
    with pytest.raises(
        InputError, match="priors must be None, 'empirical' or one number per class, got 'flat'"
    ):
        ParzenClassifier(priors="flat").fit(*iris)
    with pytest.raises(InputError, match="fit_offset must be True or False, got 1"):
        ParzenClassifier(fit_offset=1).fit(*iris)


def test_a_class_without_weight_is_refused(iris):
    X, y = iris
    with pytest.raises(
        InputError, match="every class needs a point of positive weight, got none for 1: leave"
    ):
        ParzenClassifier().fit(X, y, sample_weight=y != 1)


# --- streams -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_offset", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_stream_keeps_exact_means(rng, iris, classes, fit_offset):
    X, y = iris
    X, y = X[y < classes], y[y < classes]
    order = rng.permutation(len(X))
    X, y, weight = X[order], y[order], rng.uniform(0, 2, size=len(X))
    options = {"kernel": Gaussian(0.6), "fit_offset": fit_offset, "priors": "empirical"}
    whole = ParzenClassifier(**options).fit(X, y, weight)
    stream = ParzenClassifier(**options)
    for part in np.array_split(np.arange(len(X)), 7):
        stream.partial_fit(X[part], y[part], classes=range(classes), sample_weight=weight[part])
    # sums of the same numbers in another order
    assert stream.decision_function(X) == pytest.approx(whole.decision_function(X), abs=1e-12)
    assert stream.squared_norms_ == pytest.approx(whole.squared_norms_, nan_ok=True)


def test_old_pairs_are_not_computed_again(rng, monkeypatch):
    pairs = []
    original = Gram.__matmul__
    monkeypatch.setattr(Gram, "__matmul__", lambda self, V: pairs.append(self.shape) or original(self, V))
    model = ParzenClassifier(Gaussian(1.0))
    for _ in range(3):
        model.partial_fit(rng.normal(size=(10, 2)), np.repeat([0, 1], 5), classes=[0, 1])
    assert pairs == [(5, 5)] * 2 + [(5, 5), (5, 5)] * 2 + [(5, 5), (5, 10)] * 2


@pytest.mark.parametrize("classes", [["a", "b"], ["a", "b", "c"]])
def test_a_class_that_has_not_come_is_not_predicted(rng, classes):
    X = rng.normal(size=(8, 2))
    model = ParzenClassifier(priors="empirical").partial_fit(X, ["a"] * 8, classes=classes)
    assert (model.predict(X) == "a").all()
    assert np.isnan(model.squared_norms_[1:]).all()
    model = ParzenClassifier().partial_fit(X, ["b"] * 8, classes=classes)
    assert (model.predict(X) == "b").all()
    model.partial_fit(X + 9, ["a"] * 8)
    assert model.predict([[0.0, 0.0], [9.0, 9.0]]).tolist() == ["b", "a"]


def test_the_stream_is_copied(rng):
    X = rng.normal(size=(6, 2))
    model = ParzenClassifier().partial_fit(X, [0, 1] * 3, classes=[0, 1])
    before = model.decision_function(np.ones((1, 2)))
    X[:] = 0
    assert np.array_equal(model.decision_function(np.ones((1, 2))), before)


def test_refusals_of_a_stream(rng):
    X = rng.normal(size=(4, 2))
    with pytest.raises(InputError, match="classes must be given in the first call of partial_fit, got None"):
        ParzenClassifier().partial_fit(X, [0, 1, 0, 1])
    with pytest.raises(InputError, match=r"classes must hold at least two labels, got \[1\]"):
        ParzenClassifier().partial_fit(X, [1] * 4, classes=[1])
    with pytest.raises(InputError, match=r"y must hold labels from classes, \[0, 1\], got \[2\]: name every"):
        ParzenClassifier().partial_fit(X, [0, 1, 2, 1], classes=[0, 1])
    model = ParzenClassifier().partial_fit(X, [0, 1, 0, 1], classes=[0, 1])
    with pytest.raises(
        InputError, match=r"classes must stay those of the first call, \[0, 1\], got \[0, 2\]"
    ):
        model.partial_fit(X, [0, 0, 0, 0], classes=[0, 2])
    with pytest.raises(InputError, match="partial_fit needs the points themselves, got kernel='precomputed'"):
        ParzenClassifier("precomputed").partial_fit(X @ X.T, [0, 1, 0, 1], classes=[0, 1])


# --- data --------------------------------------------------------------------------------------------


def test_containers_agree(iris):
    X, y = iris
    expected = ParzenClassifier().fit(X, y).decision_function(X)
    names = ["a", "b", "c", "d"]
    for table in (X.tolist(), sparse.csr_array(X), pd.DataFrame(X, columns=names), pl.DataFrame(X, names)):
        model = ParzenClassifier().fit(table, y)
        assert model.decision_function(table) == pytest.approx(expected, abs=1e-10)
    half = ParzenClassifier(gamma=0.3).partial_fit(sparse.csr_array(X[:99]), y[:99], classes=[0, 1, 2])
    half.partial_fit(sparse.csr_array(X[99:]), y[99:])
    whole = ParzenClassifier(gamma=0.3).fit(X, y)
    assert half.decision_function(X) == pytest.approx(whole.decision_function(X), abs=1e-10)


def test_precomputed_equals_direct(iris):
    X, y = iris
    k = Gaussian(0.9)
    direct = ParzenClassifier(k).fit(X[::2], y[::2])
    given = ParzenClassifier("precomputed").fit(k(X[::2]), y[::2])
    assert given.decision_function(k(X, X[::2])) == pytest.approx(direct.decision_function(X))


@pytest.mark.filterwarnings("ignore::mercer.errors.SlowPathWarning")
def test_strings():
    words, kinds = ["kernel", "kern", "corn", "cat", "cattle", "dog"], [True, True, True, False, False, False]
    model = ParzenClassifier(lambda a, b: float(len(set(a) & set(b)))).fit(words, kinds)
    assert model.predict(["kernels", "cats"]).tolist() == [True, False]
    stream = ParzenClassifier(lambda a, b: float(len(set(a) & set(b))))
    stream.partial_fit(words[::2], kinds[::2], classes=[True, False]).partial_fit(words[1::2], kinds[1::2])
    assert stream.decision_function(words) == pytest.approx(model.decision_function(words))


def test_single_precision(iris):
    X, y = iris
    double = ParzenClassifier(Gaussian(0.9)).fit(X, y).decision_function(X)
    with config(dtype="float32"):
        single = ParzenClassifier(Gaussian(0.9)).fit(X, y).decision_function(X)
    assert single == pytest.approx(double, abs=1e-5)  # values up to 1, means of 50 of them


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_scales(iris, scale):
    X, y = iris
    assert np.array_equal(
        ParzenClassifier().fit(scale * X, y).predict(scale * X), ParzenClassifier().fit(X, y).predict(X)
    )


def test_imbalance_and_duplicates():
    X = np.array([[0.0, 1.0]] * 1000 + [[5.0, 1.0]])
    model = ParzenClassifier().fit(X, [0] * 1000 + [1])
    assert model.predict(X[-2:]).tolist() == [0, 1]


def test_an_indefinite_kernel_is_told(rng):
    X = rng.normal(size=(20, 2)) + 3
    with pytest.warns(UserWarning, match=r"is not positive definite on these data: ‖Φ_c‖² = -1 for class"):
        model = ParzenClassifier(Sigmoid(eta=-1.0)).fit(X, [0, 1] * 10)
    assert "not positive definite" in model.report_.warnings[0]


def test_an_overflow_is_told():
    with pytest.raises(InputError, match="is not finite for some points of class 0: rescale the data"):
        ParzenClassifier(Polynomial(3)).fit([[1e120], [1e120], [0.0]], [0, 0, 1])


# --- the plan ----------------------------------------------------------------------------------------


def test_plan_and_report(iris):
    X, y = iris
    model = ParzenClassifier()
    plan = model.plan(X, y)
    assert not hasattr(model, "classes_")
    assert "the norms of the means take K @ w within each class" in str(plan)
    assert model.fit(X, y).report_.plan == plan
    assert model.report_.converged and model.report_.iterations == 0
    with (
        config(memory="1MiB"),
        pytest.raises(MemoryBudgetError, match="means of the classes on 20,000 points"),
    ):
        ParzenClassifier().fit(np.ones((20_000, 9)), np.arange(20_000) % 2)


def test_memory_is_linear_in_n(rng):
    import tracemalloc

    X, y = rng.normal(size=(6000, 4)), np.arange(6000) % 3
    model = ParzenClassifier()
    model.fit(X[:50], y[:50])  # compiles
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.1 * model.report_.memory + 2**22  # tiles are a few megabytes; K would be 275


def test_the_offset_may_be_asked_for_later(rng):
    X = rng.normal(size=(60, 2))
    y = np.arange(60) % 3
    whole = ParzenClassifier(gamma=1.0).fit(X, y)
    model = ParzenClassifier(gamma=1.0)
    for part, offset in ((slice(20), True), (slice(20, 40), False), (slice(40, 60), True)):
        model.set_params(fit_offset=offset).partial_fit(X[part], y[part], classes=[0, 1, 2])
    assert model.squared_norms_ == pytest.approx(whole.squared_norms_)
    assert model.decision_function(X) == pytest.approx(whole.decision_function(X))


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_scale_of_the_weights_changes_nothing(rng, scale):
    X, w = rng.normal(size=(30, 2)), rng.uniform(1, 2, 30)
    y = np.arange(30) % 2
    plain = ParzenClassifier(gamma=1.0).fit(X, y, sample_weight=w)
    scaled = ParzenClassifier(gamma=1.0).fit(X, y, sample_weight=scale * w)
    assert scaled.squared_norms_ == pytest.approx(plain.squared_norms_)
    stream = ParzenClassifier(gamma=1.0)
    for part in (slice(10), slice(10, 30)):
        stream.partial_fit(X[part], y[part], classes=[0, 1], sample_weight=scale * w[part])
    assert stream.squared_norms_ == pytest.approx(plain.squared_norms_)
