"""Every array of every estimator: one that is shorter, longer or narrower than its model is refused."""

import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

import mercer
from mercer import (
    SVC,
    SVR,
    AutoKernelClassifier,
    AutoKernelRegressor,
    Expansion,
    Gaussian,
    KernelFisherDiscriminant,
    KernelLeastSquares,
    KernelLogisticRegression,
    KernelMachineClassifier,
    KernelMachineRegressor,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    KernelRidgeCV,
    LandmarkFeatures,
    Landmarks,
    MailClassifier,
    NuSVC,
    NuSVR,
    OneClassSVM,
    ParzenClassifier,
    Perceptron,
    RandomFeatures,
)
from mercer.errors import InputError
from mercer.persist import load, save
from mercer.persist.walk import pack, unpack
from mercer.tables import TableFeatures, TableModel

from .conftest import assert_says_the_same

#: records of a training or a search, from which nothing is computed; γ of the last fit, which is used for a
#: warm start where it fits; and what an Expansion has prepared, which is not saved
FREE = {"history_", "mistake_indices_", "trials_", "left_out_", "_last", "_kept"}

#: what every refusal says, or what the parts of a model themselves refuse
SENTENCE = (
    "the file is damaged: its .* (has|was fitted)|(coef|intercept|sigma|matrix) must |one length scale per|"
    "anchors has no points"
)
NAMES = ["ann", "bob", "cat", "dan", "eve", "fay", "gus", "hal"]
MAILS = [f"Subject: x\n\nbuy pills {n}" for n in NAMES] + [f"Subject: y\n\nlunch {n}" for n in NAMES]
RNG = np.random.default_rng(3)
X = RNG.normal(size=(24, 3))
FLAT = np.column_stack([X[:, :2], np.full(24, 1e8)])  # ⟨x, x'⟩ is computed from another origin
TWO, THREE, REAL = np.arange(24) % 2, np.arange(24) % 3, X[:, 0]
SCALES = Gaussian(sigma=np.array([1.0, 2.0, 0.5]))
FRAME = pd.DataFrame({"a": X[:, 0], "b": np.where(TWO, "x", "y"), "c": X[:, 1]})


def products(A, B):
    return np.asarray(A) @ np.asarray(B).T


MODELS = {
    "SVC, two classes": lambda: SVC(kernel="linear", warm_start=True).fit(X, TWO),
    "SVC, three classes": lambda: SVC(kernel=SCALES, probability=True).fit(X, THREE),
    "SVC, each against the rest": lambda: SVC(multi_class="ovr").fit(X, THREE),
    "SVC, sparse": lambda: SVC().fit(sparse.csr_array(X), THREE),
    "SVC, centred": lambda: SVC(kernel="linear").fit(FLAT, TWO),
    "SVC, three classes, centred": lambda: SVC(kernel="linear").fit(FLAT, THREE),
    "SVC, matrix": lambda: SVC(kernel="precomputed").fit(X @ X.T, TWO),
    "SVC, frame": lambda: SVC().fit(FRAME[["a", "c"]], TWO),
    "NuSVC": lambda: NuSVC(nu=0.3).fit(X, TWO),
    "SVR": lambda: SVR().fit(X, REAL),
    "SVR, no support vectors": lambda: SVR().fit(X, np.zeros(24)),
    "NuSVR": lambda: NuSVR().fit(X, REAL),
    "OneClassSVM": lambda: OneClassSVM().fit(X),
    "KernelRidge": lambda: KernelRidge().fit(X, REAL),
    "KernelRidge, targets": lambda: KernelRidge().fit(X, X),
    "KernelRidge, linear": lambda: KernelRidge(kernel="linear").fit(X, X),
    "KernelRidgeCV": lambda: KernelRidgeCV().fit(X, REAL),
    "KernelRidgeCV, targets": lambda: KernelRidgeCV(
        kernel=[Gaussian(1.0), Gaussian(2.0)], alpha_per_target=True
    ).fit(X, X),
    "KernelLeastSquares": lambda: KernelLeastSquares().fit(X, REAL),
    "KernelLogisticRegression": lambda: KernelLogisticRegression().fit(X, THREE),
    "KernelFisherDiscriminant": lambda: KernelFisherDiscriminant().fit(X, THREE),
    "KernelPCA": lambda: KernelPCA(n_components=2, fit_inverse_transform=True).fit(X),
    "LandmarkFeatures": lambda: LandmarkFeatures(n_components=5).fit(X),
    "ParzenClassifier": lambda: ParzenClassifier().fit(X, THREE),
    "ParzenClassifier, two classes": lambda: ParzenClassifier(fit_offset=False).fit(X, TWO),
    "KernelPerceptron": lambda: KernelPerceptron().fit(X, TWO),
    "KernelPerceptron, voted": lambda: KernelPerceptron(prediction="voted").fit(X, THREE),
    "Perceptron": lambda: Perceptron(max_iter=5).fit(X, THREE),
    "Perceptron, two classes": lambda: Perceptron(max_iter=5).fit(X, TWO),
    "KernelMachineClassifier": lambda: KernelMachineClassifier().fit(X, THREE),
    "KernelMachineRegressor": lambda: KernelMachineRegressor().fit(X, X),
    "AutoKernelClassifier": lambda: AutoKernelClassifier(kernel=SCALES).fit(X, TWO),
    "AutoKernelRegressor": lambda: AutoKernelRegressor(kernel=SCALES).fit(X, REAL),
    "MailClassifier": lambda: MailClassifier().fit(MAILS, ["spam"] * 8 + ["ham"] * 8),
    "RandomFeatures": lambda: RandomFeatures(n_components=10).fit(X),
    "KernelRidge, landmarks": lambda: KernelRidge(landmarks=Landmarks(6, "pivoted")).fit(X, X),
    "KernelRidgeCV, landmarks": lambda: KernelRidgeCV(landmarks=6, kernel=[Gaussian(1.0), Gaussian(2.0)]).fit(
        X, REAL
    ),
    "KernelLeastSquares, landmarks": lambda: KernelLeastSquares(landmarks=6).fit(X, REAL),
    "KernelLogisticRegression, landmarks": lambda: KernelLogisticRegression(landmarks=[1, 5, 9]).fit(
        X, THREE
    ),
    "KernelFisherDiscriminant, landmarks": lambda: KernelFisherDiscriminant(landmarks=6).fit(X, THREE),
    "KernelPCA, landmarks": lambda: KernelPCA(2, landmarks=X[:6]).fit(X),
    "KernelPCA, landmarks and a map": lambda: KernelPCA(2, landmarks=6, inverse="ridge").fit(X),
    "KernelMachineClassifier, landmarks": lambda: KernelMachineClassifier(landmarks=6).fit(X, THREE),
    "KernelMachineRegressor, landmarks": lambda: KernelMachineRegressor(landmarks=6).fit(X, X),
    "TableModel": lambda: TableModel(SVC(kernel=Gaussian(1.0))).fit(FRAME, TWO),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MODELS[request.param]()


def test_every_public_estimator_is_here():
    kinds = (getattr(mercer, name) for name in mercer.__all__)
    estimators = {
        kind.__name__ for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseEstimator)
    }
    assert estimators <= {name.partition(",")[0] for name in MODELS}


def places(part, where=()):
    """Where arrays are in a model: (path, array, a function that puts another in the place)."""
    if isinstance(part, dict) or hasattr(part, "__dict__"):
        inner = part if isinstance(part, dict) else vars(part)
        skipped = set(part.get_params(deep=False)) if isinstance(part, BaseEstimator) else set()
        for name in [name for name in inner if name not in skipped | FREE]:
            yield from at(inner, name, (*where, name))
    elif isinstance(part, list | tuple):
        for i, item in enumerate(part):
            if isinstance(item, dict | list | tuple) or hasattr(item, "__dict__"):
                yield from places(item, (*where, i))


def at(inner, name, where):
    value = inner[name]
    if isinstance(value, np.ndarray) or sparse.issparse(value) or isinstance(value, pd.DataFrame):
        if np.ndim(value) or sparse.issparse(value):
            yield where, value, lambda other: inner.__setitem__(name, other)
    elif not isinstance(value, type | Callable) or isinstance(value, Expansion | mercer.Kernel):
        yield from places(value, where)


def rows_of(array):
    return array.tocsr() if sparse.issparse(array) else array


def shorter(array):
    return array.iloc[:-1] if hasattr(array, "iloc") else rows_of(array)[:-1]


def longer(array):
    which = np.append(np.arange(array.shape[0]), max(array.shape[0] - 1, 0))
    return array.iloc[which] if hasattr(array, "iloc") else rows_of(array)[which]


def narrower(array):
    return array.iloc[:, :-1] if hasattr(array, "iloc") else rows_of(array)[:, :-1]


def changes(array):
    if array.shape[0]:
        yield shorter(array)
        yield longer(array)
    if len(array.shape) == 2 and array.shape[1]:
        yield narrower(array)
    if isinstance(array, np.ndarray) and array.ndim == 1:
        yield array[None, :]


def test_arrays_of_another_size_are_refused(model):
    """Packed and unpacked, which is all that a file does with them but for the bytes."""
    unpack(pack(model, {}), {})  # as it is, it is fine
    for where, array, put in list(places(model)):
        for other in changes(array):
            put(other)
            try:
                packed = pack(model, {})
            finally:
                put(array)
            with pytest.raises(InputError, match=SENTENCE) as caught:
                unpack(packed, {})
            assert caught.value.args, (where, array.shape, other.shape)


def test_a_search_over_many_classes_comes_back(path):
    """Four classes are six pairs, and the functions of the search are those of its machine."""
    model = AutoKernelClassifier(kernel=Gaussian(1.0)).fit(np.vstack([X, X + 3]), np.arange(48) % 4)
    save(model, path)
    assert np.array_equal(load(path).predict(X), model.predict(X))


@pytest.mark.parametrize("name", ["SVC, centred", "SVC, three classes, centred", "SVR, no support vectors"])
def test_models_whose_function_is_of_other_points_come_back(name, path):
    """The anchors of f are no support vectors there."""
    model = MODELS[name]()
    save(model, path)
    assert_says_the_same(model, load(path), FLAT)


@pytest.mark.parametrize("name", [name for name in MODELS if "landmarks" in name])
def test_models_on_landmarks_come_back(name, path):
    """Their functions have fewer anchors than there were points."""
    model = MODELS[name]()
    save(model, path)
    again = load(path)
    assert len(again.expansion_) <= 6
    assert_says_the_same(model, again, X)
    if name.startswith("KernelPCA"):
        np.testing.assert_array_equal(*(m.inverse_transform(model.transform(X)) for m in (model, again)))


def forged(model, path, name, value):
    """A file of the model with another value of an attribute."""
    before = vars(model)[name]
    vars(model)[name] = value
    try:
        save(model, path)
    finally:
        vars(model)[name] = before
    return path


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("name", "attribute", "change", "message"),
    [
        ("SVC, three classes", "classes_", lambda c: c[[0, 0, 1]], "classes_ that are not sorted, or twice"),
        ("SVC, three classes", "classes_", lambda c: c[::-1], "classes_ that are not sorted, or twice there"),
        ("SVC, two classes", "support_", lambda s: s + 24, "with 24 to 47, where there are 24, as support_"),
        ("SVC, two classes", "n_support_", lambda s: s + 1, r"support vectors and \[.*\] of them as n_supp"),
        ("SVC, two classes", "support_", lambda s: s.astype(float), "an array of float64 as support_"),
        ("SVC, two classes", "margin_", str, "has a str as margin_"),
        (
            "SVC, two classes",
            "C",
            lambda C: np.nan,
            "its SVC could not be fitted: C must be positive, got nan",
        ),
        ("SVC, two classes", "kernel", lambda k: "magic", "its SVC could not be fitted: .*magic"),
        ("SVC, two classes", "kernel_", lambda k: Gaussian(2.0), "another kernel than the function in it"),
        ("KernelRidge", "alpha", lambda a: -1.0, "its KernelRidge could not be fitted: alpha must be"),
        ("KernelPCA", "n_components", lambda n: -3, "its KernelPCA could not be fitted: n_components must"),
        ("ParzenClassifier", "_codes", lambda c: c + 1, "with 1 to 3, where there are 3, as _codes"),
        ("KernelPerceptron", "_stored", lambda s: s - 1, "as _stored"),
        ("MailClassifier", "folds", lambda f: 1, "its MailClassifier could not be fitted: folds must be"),
        ("TableModel", "classes_", lambda c: c + 1, "has other classes than the model in it"),
    ],
)
def test_other_values_that_no_fit_leaves_are_refused(name, attribute, change, message, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MODELS[name]()
    with pytest.raises(InputError, match=message):
        load(forged(model, path, attribute, change(vars(model)[attribute])))


def test_features_of_another_model_are_refused(path):
    model = MODELS["TableModel"]()
    other = TableFeatures().fit(FRAME[["a", "c"]])
    with pytest.raises(InputError, match="has features of 2 columns, and a model of 4"):
        load(forged(model, path, "features_", other))


def test_length_scales_are_those_of_the_columns(path):
    with pytest.raises(InputError, match="the kernel has 2 length scales but the data have 3 columns"):
        save(Expansion(Gaussian(sigma=[1.0, 2.0]), X, np.ones(24)), path)
        load(path)


def test_parameters_of_other_libraries_are_checked_too(path):
    model = LogisticRegression().fit(X, TWO)
    with pytest.raises(InputError, match="its LogisticRegression could not be fitted: The 'C' parameter"):
        load(forged(model, path, "C", -1.0))


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (mercer.KernelPCA(2, kernel="linear"), None),
        (mercer.ParzenClassifier(kernel="linear"), "classes"),
        (mercer.KernelRidge(kernel=2 * mercer.Linear()), "numbers"),
        (mercer.KernelRidgeCV(kernel="linear"), "numbers"),
        (mercer.KernelLogisticRegression(kernel="linear"), "classes"),
        (mercer.KernelFisherDiscriminant(kernel="linear"), "classes"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_models_whose_points_were_moved_come_back(rng, tmp_path, model, target):
    """Such a function has one anchor, its w, and no longer as many as there were points."""
    X = rng.normal(size=(40, 3)) + np.array([1e8, 0.0, 0.0])
    y = {None: None, "numbers": X[:, 1], "classes": X[:, 1] > 0}[target]
    model.fit(X, y)
    mercer.save(model, tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    values = "transform" if target is None else "predict"
    assert len(model.expansion_) < 40
    assert np.array_equal(getattr(again, values)(X), getattr(model, values)(X))
