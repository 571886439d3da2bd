"""The same model comes back: estimators, kernels, pipelines, tables, objects."""

import pickle
import subprocess
import sys
import time
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import mercer
from mercer import (
    SVC,
    BagOfWords,
    ColumnKernel,
    ConditionalExpectation,
    Delta,
    Expansion,
    Gaussian,
    Invariant,
    KernelMachineClassifier,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    NuSVC,
    OneClassSVM,
    Polynomial,
    ShortestPath,
    SubsetTree,
    WeisfeilerLehman,
    compositions,
    config,
    rotations,
    shifts,
)
from mercer.errors import SlowPathWarning
from mercer.kernels.graphs.graph import Graph
from mercer.kernels.trees.tree import as_tree
from mercer.persist import save
from mercer.testing.examples import example_kernels, example_points

from .conftest import assert_says_the_same, fit, labels, there_and_back

HOMES = {n: home for n, home in mercer._LATER.items() if ".estimators." in home and ".shared." not in home}
ESTIMATORS = [getattr(mercer, name) for name in HOMES]


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("form", ["array", "sparse", "frame"])
def test_every_estimator(kind, form, X, path):
    options = {KernelPCA: {"n_components": 2}, NuSVC: {"nu": 0.1}, OneClassSVM: {"nu": 0.1}}.get(kind, {})
    given = {"array": X, "sparse": sparse.csr_array(X), "frame": pd.DataFrame(X, columns=list("abc"))}[form]
    model = fit(kind(**options), given, labels(X) if is_classifier(kind()) else X[:, 0])
    back = there_and_back(model, path)
    assert type(back) is kind and repr(back) == repr(model)
    assert_says_the_same(model, back, given)
    assert vars(back).keys() == vars(model).keys()
    for name, value in vars(model).items():
        assert type(vars(back)[name]) is type(value), name
    assert back.report_ == model.report_ if hasattr(model, "report_") else True


@pytest.mark.parametrize("kind", [SVC, KernelRidge])
def test_a_model_that_was_not_fitted(kind, path):
    model = kind(kernel=2 * Gaussian("median") + Polynomial(2), gamma=0.3)
    back = there_and_back(model, path)
    assert back.get_params(deep=False) == model.get_params(deep=False)


# the default of a slope has no kernel to be the slope of
EXAMPLES = [kernel for kernel in example_kernels() if "Slope" not in type(kernel).__name__]


@pytest.mark.parametrize("kernel", EXAMPLES)
def test_every_kernel_and_what_was_learned_with_it(kernel, rng, path):
    back = there_and_back(kernel, path)
    assert type(back) is type(kernel) and repr(back) == repr(kernel)
    points, others = example_points(kernel, 8, rng), example_points(kernel, 5, rng)
    with warnings.catch_warnings(), config(backend="numpy"):  # without compiling each
        warnings.simplefilter("ignore", SlowPathWarning)
        f = Expansion(kernel.resolve(points), points, rng.normal(size=8), 0.5)
        np.testing.assert_array_equal(there_and_back(f, path)(others), f(others))


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(StandardScaler(), SVC(probability=True)),
        make_pipeline(FunctionTransformer(np.tanh), PCA(2), SVC()),
        make_pipeline(SelectKBest(f_classif, k=2), KernelPerceptron()),
        GridSearchCV(SVC(), {"C": [0.1, 1], "kernel": ["rbf", Gaussian(1.0)]}, cv=KFold(3)),
        CalibratedClassifierCV(SVC(), cv=3),
        VotingClassifier([("a", SVC()), ("b", LogisticRegression())]),
        BaggingClassifier(SVC(), n_estimators=2, random_state=np.random.RandomState(0)),
        SVC(kernel=rbf_kernel),
        SVC(kernel=Polynomial(2) @ StandardScaler().fit([[0.0, 1.0, 2.0], [1.0, 3.0, 5.0]])),
        SVC(kernel=Invariant(Gaussian(1.0), compositions(shifts((1, 3), 1.0), rotations((1, 3), 5.0)))),
        SVC(
            kernel=ConditionalExpectation(GaussianMixture(2, random_state=0).fit(np.eye(3)[[0, 0, 1, 2, 2]]))
        ),
        SVC(class_weight={"yes": 2.0, "no": 1.0}, cache_size=10),
        KernelMachineClassifier(loss="squared_hinge"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_pipelines_and_composite_models(model, X, path):
    model = fit(model, X, labels(X))
    # new points: scikit-learn's rbf_kernel rounds otherwise where its two tables are one object
    assert_says_the_same(model, there_and_back(model, path), X.copy())


def table(n=40):
    rng = np.random.default_rng(0)
    return {
        "age": np.where(np.arange(n) % 7 == 3, np.nan, rng.normal(40, 10, n)),
        "city": [["Rome", "Oslo", None][i % 3] for i in range(n)],
        "day": np.datetime64("2020-01-01") + rng.integers(0, 900, n).astype("timedelta64[D]"),
        "text": [" ".join(rng.choice(["to", "be", "or", "not", "that"], 6)) for _ in range(n)],
        "member": [bool(i % 2) for i in range(n)],
    }


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_with_columns_of_several_kinds(library, path):
    if library == "pandas":
        frame = pd.DataFrame(table()).astype({"city": "category", "member": "boolean"})
    else:
        frame = pl.DataFrame(table())
    words = BagOfWords(weighting="tf-idf")
    for kernel in (
        ColumnKernel(),
        ColumnKernel(
            {"age": Gaussian("median"), ("city", "member"): Delta(), "text": words}, weights={"age": 2}
        ),
        Delta().on("city") + Delta().on("member", "text"),
    ):
        model = fit(SVC(kernel=kernel), frame, np.arange(40) % 2)
        assert_says_the_same(model, there_and_back(model, path), frame)


def test_a_pipeline_on_a_table(path):
    frame = pd.DataFrame(table()).dropna()
    encode_columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["city"]),
        (StandardScaler(), ["age"]),
        (TfidfVectorizer(), "text"),
    )
    model = make_pipeline(encode_columns, SVC()).fit(frame, np.arange(len(frame)) % 2)
    assert_says_the_same(model, there_and_back(model, path), frame)


def test_points_that_are_trees_and_graphs(path, rng):
    trees = [
        as_tree("(S (NP dog) (VP (V bites) (NP cat)))"),
        as_tree("(S (NP cat))"),
        as_tree(("S", 3, ("N", 2))),
    ]
    model = SVC(kernel=SubsetTree()).fit(trees, [0, 1, 0])
    back = there_and_back(model, path)
    assert_says_the_same(model, back, trees)
    assert back.expansion_.anchors == model.expansion_.anchors
    ring = np.ones((3, 3)) - np.eye(3)
    graphs = [
        Graph(ring, "CCO", edge_labels=range(6), attributes=rng.normal(size=(3, 2))),
        Graph(sparse.csr_array(ring), [("C", 1), ("C", 2), ("O", 1)]),
        (ring, "CCC"),
        ring,
    ]
    for kernel in (ShortestPath(), WeisfeilerLehman(1)):
        model = SVC(kernel=kernel).fit(graphs[:2], [0, 1])
        assert_says_the_same(model, there_and_back(model, path), graphs[:2])
        model = SVC(kernel=kernel).fit(graphs[2:3] * 2 + [(2 * ring, "CON")], [0, 0, 1])
        assert_says_the_same(model, there_and_back(model, path), graphs[2:3])


def test_the_models_that_were_selected(X, path):
    from mercer.selection import AutoKernelClassifier, AutoKernelRegressor

    kernel = Gaussian(1.0)
    for model, y in ((AutoKernelClassifier(kernel), labels(X)), (AutoKernelRegressor(kernel), X[:, 0])):
        model = fit(model, X, y)
        back = there_and_back(model, path)
        assert_says_the_same(model, back, X)
        assert len(back.trials_) == len(model.trials_)


def test_what_was_one_object_is_one_again(path, rng):
    X = rng.normal(size=(9000, 3))
    model, kernel = SVC().fit(X[:20], labels(X[:20])), Gaussian(1.0)
    back = there_and_back(
        {"a": kernel, "b": [kernel], "X": X, "Y": X, "more": {"model": model, 1: None}}, path
    )
    assert back["a"] is back["b"][0] and back["X"] is back["Y"]
    assert path.stat().st_size < 1.5 * X.nbytes
    assert back["more"].keys() == {"model", 1}
    assert_says_the_same(model, back["more"]["model"], X)


def test_saving_leaves_the_model_as_it_was(X, path):
    model = SVC(kernel=BagOfWords(weighting="tf-idf")).fit(["to be", "or not", "to be not"], [0, 1, 0])
    before = pickle.dumps(model)
    save(model, path)
    assert pickle.dumps(model) == before


def test_a_model_is_loaded_by_a_process_that_has_seen_nothing(X, path, tmp_path):
    """Classes are found by their names, and kernels compiled where they are needed."""
    model = fit(SVC(kernel=Gaussian("median") * Polynomial(2).normalized()), X, labels(X))
    save(model, path)
    np.save(tmp_path / "X.npy", X)
    code = (
        "import sys, numpy as np; from mercer import config, load; config(backend='numpy'); "
        "np.save(sys.argv[3], load(sys.argv[1]).decision_function(np.load(sys.argv[2])))"
    )
    files = [path, tmp_path / "X.npy", tmp_path / "f.npy"]
    subprocess.run([sys.executable, "-c", code, *map(str, files)], check=True)
    with config(backend="numpy"):  # no compiling there
        np.testing.assert_array_equal(np.load(tmp_path / "f.npy"), model.decision_function(X))


def test_large_models_take_little_time(rng, path):
    f = Expansion(Gaussian(5.0), rng.normal(size=(10_000, 50)), rng.normal(size=10_000))
    texts = [f"word{i} word{i % 97} word{i % 31}" for i in range(10_000)]
    g = Expansion(BagOfWords(weighting="tf-idf").resolve(texts), texts, rng.normal(size=10_000))
    for model, size in ((f, 4.2e6), (g, 2e6)):
        start = time.process_time()
        there_and_back(model, path)
        assert time.process_time() - start < 2.0  # 0.1 s, and 0.4 s for the texts
        assert path.stat().st_size < size
