"""A fitted model does not change when the caller's arrays do."""

from copy import deepcopy

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.utils.validation import has_fit_parameter

import mercer
from mercer import Delta, Gaussian, GeneralSetKernel, Min, SetKernel, ShortestPath

FORMS = {
    "dense": np.array,
    "columns first": np.asfortranarray,
    "single precision": lambda X: X.astype(np.float32),
    "csr": sparse.csr_array,
    "csr matrix": sparse.csr_matrix,
    "pandas": pd.DataFrame,
    "polars": lambda X: pl.DataFrame(X, schema=["a", "b", "c"]),
    "precomputed": lambda X: Gaussian(1.0)(X),
}


def estimators():
    """Every public estimator."""
    for name in mercer.__all__:
        kind = getattr(mercer, name)
        if isinstance(kind, type) and hasattr(kind, "get_params") and hasattr(kind, "fit"):
            if name == "MailClassifier":  # its data are messages, which cannot be written to
                continue
            yield pytest.param(kind, id=name)


def overwrite(*arrays):
    for array in arrays:
        if isinstance(array, pd.DataFrame):
            array.iloc[:, :] = -7.0
        elif isinstance(array, pl.DataFrame):  # its columns cannot be written to
            return
        else:
            (array.data if sparse.issparse(array) else array)[...] = 1
            if sparse.issparse(array):
                array.indices[...] = 0


def outputs(model, X):
    """Of a copy: what a model prepares when it is first used would hide that it kept the caller's array."""
    model = deepcopy(model)
    methods = ("predict", "decision_function", "predict_proba", "transform")
    return [getattr(model, method)(X) for method in methods if hasattr(model, method)]


@pytest.mark.sample(7)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", list(estimators()))
def test_a_model_keeps_its_own_copy(rng, kind, form):
    if form == "precomputed" and kind in (mercer.Perceptron, mercer.RandomFeatures):
        pytest.skip("the linear perceptron has no kernel, and a matrix no spectral density")
    points = rng.normal(size=(30, 3))
    X, y, weight = FORMS[form](points), np.arange(30) % 2, rng.uniform(0.5, 1.5, size=30)
    if not is_classifier(kind()):
        y = points[:, 0] + 0.1 * y
    new = X.copy() if form == "precomputed" else FORMS[form](rng.normal(size=(5, 3)))
    options = {"kernel": "rbf" if form != "precomputed" else form}
    if kind is mercer.Perceptron:
        options = {"max_iter": 100}
    model = kind(**options)
    model.fit(X, y, **({"sample_weight": weight} if has_fit_parameter(model, "sample_weight") else {}))
    before = outputs(model, new)
    overwrite(X, y, weight)
    for old, now in zip(before, outputs(model, new), strict=True):
        assert np.array_equal(old, now)


@pytest.mark.filterwarnings("ignore::mercer.errors.SlowPathWarning")
@pytest.mark.parametrize(
    "kind",
    [mercer.KernelPCA, mercer.KernelLogisticRegression, mercer.KernelFisherDiscriminant, mercer.SVC],
)
def test_so_it_does_of_objects(kind):
    words = ["ab", "ac", "bcd", "cd", "xyz", "yz"]
    model = kind(kernel=lambda a, b: float(len(set(a) & set(b)))).fit(words, [0, 0, 0, 1, 1, 1])
    before = outputs(model, ["abx", "yd"])
    words[:] = 6 * ["nothing"]
    for old, now in zip(before, outputs(model, ["abx", "yd"]), strict=True):
        assert np.array_equal(old, now)


@pytest.mark.filterwarnings("ignore::mercer.errors.SlowPathWarning")
@pytest.mark.parametrize("kind", [mercer.SVC, mercer.KernelRidge, mercer.KernelPCA, mercer.ParzenClassifier])
@pytest.mark.parametrize(
    "kernel", [lambda a, b: np.asarray(a) @ np.asarray(b).T, lambda a, b: float(a[0] * b[0] + a[1] * b[1])]
)
def test_so_it_does_with_functions_of_points(rng, kind, kernel):
    X = rng.normal(size=(20, 2))
    new = X[:3].copy()
    model = kind(kernel=kernel).fit(X, np.arange(20) % 2)
    before = outputs(model, new)
    X[:] = 7.0
    for old, now in zip(before, outputs(model, new), strict=True):
        assert np.array_equal(old, now)


def bags():
    return [["ab"], ["ab", "c"], ["c", "d"], ["d"], ["e", "f"], ["f"]]


def graphs():
    return [nx.path_graph(n) for n in (2, 3, 4, 5, 6, 7)]


def clouds():
    return [np.arange(6.0).reshape(3, 2) + i for i in range(6)]


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    "kind", [mercer.KernelPCA, mercer.KernelLogisticRegression, mercer.SVC, mercer.ParzenClassifier]
)
@pytest.mark.parametrize(
    ("kernel", "make", "change"),
    [
        (GeneralSetKernel(Delta(), Min()), bags, lambda bag: bag.append("ab")),
        (ShortestPath(), graphs, lambda graph: graph.add_edge(0, 9)),
        (SetKernel(Gaussian(1.0)), clouds, lambda cloud: cloud.fill(1.0)),
    ],
)
def test_so_it_does_where_the_objects_themselves_change(kind, kernel, make, change):
    X, new = make(), make()
    model = kind(kernel=kernel).fit(X, np.arange(6) % 2)
    before = outputs(model, new)
    for x in X:
        change(x)
    for old, now in zip(before, outputs(model, new), strict=True):
        assert np.array_equal(old, now)


def test_so_it_does_point_by_point():
    X = bags()
    model = mercer.KernelPerceptron(kernel=GeneralSetKernel(Delta(), Min()))
    model.partial_fit(X[:3], [0, 1, 0], classes=[0, 1]).partial_fit(X[3:], [1, 0, 1])
    before = model.decision_function(bags())
    for bag in X:
        bag[:] = ["ab"]
    assert np.array_equal(model.decision_function(bags()), before)
