"""What every learner promises, tried on every learner: nobody has to remember to test a new one."""

import inspect
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import mercer
from mercer import (
    SVC,
    Expansion,
    Gaussian,
    KernelPCA,
    LandmarkFeatures,
    NuSVC,
    OneClassSVM,
    Perceptron,
    config,
)
from mercer.errors import SlowPathWarning
from mercer.report import Plan, Report

HOMES = {n: home for n, home in mercer._LATER.items() if ".estimators." in home and ".shared." not in home}
ESTIMATORS = [getattr(mercer, name) for name in HOMES]
KERNELS = [kind for kind in ESTIMATORS if kind is not Perceptron]  # the primal perceptron has no kernel
ITERATIVE = [kind for kind in ESTIMATORS if "checkpoint" in inspect.signature(kind).parameters]
NAMES = ["a", "b", "c"]


def by_name(kinds):
    return pytest.mark.parametrize("kind", kinds, ids=lambda kind: kind.__name__)


def make(kind, kernel=None, **options):
    if kind is KernelPCA:
        options = {"n_components": 2, **options}
    if kind in (NuSVC, OneClassSVM):  # a part of the points that even the smallest class has
        options = {"nu": 0.001 if kind is NuSVC else 0.1, **options}
    if kind in (SVC, NuSVC):  # by default the values of pairs become votes
        options = {"decision_function_shape": "ovo", **options}
    if kind is Perceptron:  # three classes in a plane it does not separate
        options = {"max_iter": 100, **options}
    if kernel is not None and kind is not Perceptron:
        options = {"kernel": kernel, **options}
    return kind(**options)


def targets(kind, X):
    """Something to learn from X: three labels, or numbers."""
    values = np.asarray(X)[:, 0] + 0.5 * np.asarray(X)[:, 1] ** 2
    return np.array(["low", "middle", "high"])[np.digitize(values, [-0.3, 0.7])] if _labels(kind) else values


def _labels(kind):
    return is_classifier(kind())


def outputs(model, X):
    """Whatever the model says about X, as numbers."""
    for name in ("decision_function", "transform", "predict"):
        if hasattr(model, name) and (name != "transform" or not is_classifier(model)):
            return np.asarray(getattr(model, name)(X), dtype=float)
    raise AssertionError("a learner that says nothing")


def fit(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", SlowPathWarning)
        return model.fit(X, y)


@pytest.fixture
def X(rng):
    return rng.normal(size=(40, 3))


@by_name(ESTIMATORS)
def test_it_is_an_estimator_with_a_manual(kind):
    assert issubclass(kind, BaseEstimator)
    text = inspect.getdoc(kind)
    assert "Examples" in text and ">>>" in text and "Attributes" in text
    for name in inspect.signature(kind).parameters:
        assert name in text, f"{name} is not in the docstring"


@by_name(ESTIMATORS)
def test_attributes_that_all_have(kind, X):
    y = targets(kind, X)
    model = make(kind)
    plan = model.plan(X, y)
    assert isinstance(plan, Plan) and plan.memory > 0 and plan.flops > 0 and str(plan)
    with pytest.raises(NotFittedError):
        outputs(model, X)
    fit(model, pd.DataFrame(X, columns=NAMES), y)
    assert isinstance(model.expansion_, Expansion)
    assert isinstance(model.report_, Report) and str(model.report_)
    assert model.report_.plan.solver == plan.solver and model.report_.time > 0 and model.report_.memory > 0
    assert model.report_.stopped in ("converged", "max_iter")
    assert model.n_features_in_ == 3 and list(model.feature_names_in_) == NAMES
    if is_classifier(model):
        assert list(model.classes_) == ["high", "low", "middle"]


@by_name(ESTIMATORS)
def test_the_expansion_is_what_was_learned(kind, X, rng):
    model = fit(make(kind), X, targets(kind, X))
    new = rng.normal(size=(7, 3))
    values = model.expansion_(new)
    if is_regressor(model):
        assert values == pytest.approx(model.predict(new))
    elif kind in (KernelPCA, LandmarkFeatures) or kind.__name__ == "KernelFisherDiscriminant":
        assert values == pytest.approx(model.transform(new), abs=1e-10)
    else:
        assert values == pytest.approx(model.decision_function(new), abs=1e-10)


@pytest.mark.sample(3)
@by_name(ESTIMATORS)
def test_containers_agree(kind, X):
    y = targets(kind, X)
    expected = outputs(fit(make(kind), X, y), X)
    scale = np.abs(expected).max()
    for table in (
        sparse.csr_array(X),
        sparse.csc_matrix(X),
        pd.DataFrame(X, columns=NAMES, index=range(100, 140)),
        pl.DataFrame(X, schema=NAMES),
        X.tolist(),
        np.asfortranarray(X),
    ):
        # other containers round differently, and an iteration may end elsewhere within its tolerance
        assert outputs(fit(make(kind), table, y), table) == pytest.approx(expected, abs=1e-4 * scale)


@by_name(KERNELS)
def test_precomputed(kind, X, rng):
    y, k = targets(kind, X), Gaussian(1.0)
    new = rng.normal(size=(5, 3))
    direct = fit(make(kind, k), X, y)
    given = fit(make(kind, "precomputed"), k(X), y)
    expected = outputs(direct, new)
    assert outputs(given, k(new, X)) == pytest.approx(expected, abs=1e-5 * np.abs(expected).max())
    with pytest.raises(ValueError, match="square"):
        fit(make(kind, "precomputed"), k(X)[:, :10], y)


def shared_letters(a, b):
    return float(sum(min(a.count(letter), b.count(letter)) for letter in set(a)))


@by_name(KERNELS)
def test_strings(kind):
    words = ["abba", "baba", "aabb", "abab", "cdcd", "ddcc", "cdd", "ccd", "aab", "bab", "dcd", "ccc"]
    y = ["ab" if "a" in word else "cd" for word in words] if _labels(kind) else [len(w) for w in words]
    model = fit(make(kind, shared_letters), words, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SlowPathWarning)
        assert len(outputs(model, ["aba", "dd"])) == 2
        if is_classifier(model):
            assert list(model.predict(["abbb", "cccd"])) == ["ab", "cd"]
    assert not hasattr(model, "n_features_in_")


@by_name([kind for kind in ESTIMATORS if _labels(kind)])
@pytest.mark.parametrize(
    "labels",
    [
        np.array([False, True]),
        np.array(["no", "yes"], dtype=object),
        np.array([-7, 3]),
        np.array([0.0, 1.0]),
    ],
    ids=["bool", "object", "int", "float"],
)
def test_kinds_of_labels(kind, X, labels):
    codes = (X[:, 0] > 0).astype(int)
    model = fit(make(kind), X, labels[codes])
    assert model.classes_.dtype == labels.dtype
    assert np.mean(model.predict(X) == labels[codes]) > 0.8
    assert model.decision_function(X).shape == (40,)


@by_name(ESTIMATORS)
def test_a_fit_is_repeatable_and_travels(kind, X):
    y = targets(kind, X)
    model = fit(make(kind), X, y)
    first = outputs(model, X)
    assert np.array_equal(outputs(pickle.loads(pickle.dumps(model)), X), first)
    assert np.array_equal(outputs(fit(clone(model), X, y), X), first)
    fit(model, X[:20], y[:20])  # and nothing of an earlier fit is left
    assert np.array_equal(outputs(fit(model, X, y), X), first)


@pytest.mark.sample(3)
@by_name(ESTIMATORS)
def test_single_precision_and_one_thread(kind, X):
    y = targets(kind, X)
    expected = outputs(fit(make(kind, Gaussian(1.0)), X, y), X)
    with config(threads=1):
        assert outputs(fit(make(kind, Gaussian(1.0)), X, y), X) == pytest.approx(
            expected, abs=1e-6 * np.abs(expected).max()
        )
    if kind.__name__ == "KernelLeastSquares":
        return  # without a penalty the noise of float32 is learned as well
    with config(dtype="float32"):
        values = outputs(fit(make(kind, Gaussian(1.0)), X, y), X)
    assert values == pytest.approx(expected, abs=0.02 * np.abs(expected).max())


@by_name(ESTIMATORS)
def test_bad_numbers_are_refused(kind, X):
    y = targets(kind, X)
    for value in (np.nan, np.inf):
        broken = X.copy()
        broken[3, 1] = value
        with pytest.raises(ValueError, match=r"NaN|inf"):
            make(kind).fit(broken, y)
        with pytest.raises(ValueError, match=r"NaN|inf"):
            outputs(fit(make(kind), X, y), broken)
    if kind in (KernelPCA, LandmarkFeatures, OneClassSVM):
        return  # they have no targets
    with pytest.raises(ValueError, match="inconsistent"):
        make(kind).fit(X, y[:-1])
    if not _labels(kind):
        with pytest.raises(ValueError, match="NaN"):
            make(kind).fit(X, np.where(y > 0, np.nan, y))


@by_name(ESTIMATORS)
@pytest.mark.parametrize("factor", [1e-8, 1e8])
def test_the_unit_of_the_data_does_not_matter(kind, X, factor):
    """With "scale" the kernel follows the data; a linear kernel does not, so it is left out."""
    y = targets(kind, X)
    if kind is Perceptron:
        assert np.isfinite(outputs(fit(make(kind), factor * X, y), factor * X)).all()
        return
    expected = outputs(fit(make(kind), X, y), X)
    assert outputs(fit(make(kind), factor * X, y), factor * X) == pytest.approx(
        expected, abs=1e-4 * np.abs(expected).max()
    )


@by_name([kind for kind in ESTIMATORS if "sample_weight" in inspect.signature(kind.fit).parameters])
def test_a_weight_counts_observations(kind, X, rng):
    y = targets(kind, X)
    weight = rng.integers(0, 3, 40)
    repeated = np.repeat(np.arange(40), weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        weighted = outputs(make(kind).fit(X, y, sample_weight=weight), X)
        plain = outputs(make(kind).fit(X[repeated], y[repeated]), X)
    assert weighted == pytest.approx(plain, abs=1e-4 * np.abs(plain).max())


@by_name([kind for kind in ESTIMATORS if _labels(kind)])
def test_one_class_and_imbalance(kind, rng):
    X = rng.normal(size=(1001, 2))
    X[0] = 10.0
    with pytest.raises(ValueError, match="class"):
        make(kind).fit(X, np.zeros(1001))
    y = np.zeros(1001, dtype=int)
    y[0] = 1
    model = fit(make(kind), X, y)
    assert model.predict(X).mean() < 0.5 and set(model.predict(X)) <= {0, 1}


@by_name([kind for kind in ESTIMATORS if "class_weight" in inspect.signature(kind).parameters])
def test_weights_of_classes_are_checked(kind, X):
    y = (X[:, 0] > 0).astype(int)
    for given in ({0: -1.0}, {0: np.nan}, {0: np.inf}):
        with pytest.raises(ValueError, match=r"class_weight must be (finite|positive)"):
            make(kind, class_weight=given).fit(X, y)
    with pytest.raises(ValueError, match="class_weight must be"):
        make(kind, class_weight=np.ones(2)).fit(X, y)


@by_name([kind for kind in ESTIMATORS if _labels(kind)])
def test_labels_of_several_kinds_are_refused(kind, X):
    with pytest.raises(ValueError):
        make(kind).fit(X, np.array([1, "a"] * 20, dtype=object))


@by_name(ITERATIVE)
def test_control_is_there(kind, X):
    y = targets(kind, X)
    events = []
    model = fit(make(kind, progress=events.append), X, y)
    assert not model.report_.plan.iterative or events
    with pytest.raises(ValueError, match="max_time must be positive, got -1"):
        make(kind, max_time=-1).fit(X, y)
    with pytest.raises(ValueError, match="checkpoint must be a path, got 3"):
        make(kind, checkpoint=3).fit(X, y)
