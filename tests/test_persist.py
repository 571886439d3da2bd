"""Model files: the same model comes back, nothing is run, and no other file gets in."""

import hashlib
import io
import json
import os
import pickle
import subprocess
import sys
import time
import tracemalloc
import warnings
import zipfile
from collections import Counter, OrderedDict
from datetime import date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.utils import Bunch

import mercer
from mercer import (
    SVC,
    BagOfWords,
    ColumnKernel,
    ConditionalExpectation,
    Delta,
    Expansion,
    FromFunction,
    Gaussian,
    Invariant,
    Kernel,
    KernelMachineClassifier,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    NuSVC,
    OneClassSVM,
    Polynomial,
    Precomputed,
    ShortestPath,
    SubsetTree,
    WeisfeilerLehman,
    compositions,
    config,
    rotations,
    shifts,
)
from mercer.errors import InputError, InputTypeError, SlowPathWarning
from mercer.kernels import positive
from mercer.kernels.graph import Graph
from mercer.kernels.trees import as_tree
from mercer.persist import describe, load, save
from mercer.persist.plain import Plain, decode, encode, refuse
from mercer.testing.examples import example_kernels, example_points

ESTIMATORS = [getattr(mercer, name) for name, home in mercer._LATER.items() if ".estimators." in home]
METHODS = ("decision_function", "predict", "predict_proba", "transform", "score_samples")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.mercer"


@pytest.fixture
def X(rng):
    return rng.normal(size=(30, 3))


def labels(X):
    return np.where(np.asarray(X)[:, 0] + np.asarray(X)[:, 1] ** 2 > 0.5, "yes", "no")


def fit(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", SlowPathWarning)
        return model.fit(X, y)


def there_and_back(model, path, **options):
    save(model, path, **options)
    return load(path, **options)


def says(model, X):
    """All that a model says about X."""
    found = {}
    for name in METHODS:
        if hasattr(model, name):
            found[name] = np.asarray(getattr(model, name)(X))
    assert found
    return found


def assert_says_the_same(model, other, X):
    before, after = says(model, X), says(other, X)
    assert before.keys() == after.keys()
    for name, values in before.items():
        assert values.dtype == after[name].dtype
        np.testing.assert_array_equal(values, after[name], err_msg=name)


# --- the same model comes back ---------------------------------------------------------------------------


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
        start = time.perf_counter()
        there_and_back(model, path)
        assert time.perf_counter() - start < 2.0  # 0.1 s, and 0.4 s for the texts
        assert path.stat().st_size < size


# --- plain data ------------------------------------------------------------------------------------------

moments = st.one_of(st.dates(), st.datetimes(), st.times(), st.timedeltas())
generic = [np.float32(1.5), np.int8(3), np.str_("ab"), np.datetime64("2020-01-01"), np.bool_(True)]
numbers = st.one_of(st.integers(), st.floats(), st.complex_numbers(), st.decimals(allow_nan=False))
scalars = st.one_of(
    st.none(), st.booleans(), numbers, st.text(), st.binary(), moments, st.sampled_from(generic)
)
hashables = st.recursive(
    scalars.filter(lambda value: value == value), lambda inner: st.tuples(inner, inner), max_leaves=4
)
ARRAYS = [
    np.arange(6).reshape(2, 3),
    np.arange(6.0).reshape(2, 3).T,
    np.array(["a", "bc"]),
    np.zeros((0, 3)),
    np.array(2.5),
    np.array([None, "a", (1, 2)], dtype=object),
    np.array(["2020"], dtype="M8[D]"),
    np.arange(8, dtype=">i2")[::2],
    np.array([[True]]),
    sparse.csr_array(np.eye(2)),
    sparse.csc_matrix([[0, 1]]),
    range(3, 9, 2),
    np.dtype("f4"),
    np.float32,
    float,
    np.exp,
    np.fliplr,
]
data = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(hashables, inner, max_size=4),
        st.dictionaries(hashables, inner, max_size=4).map(OrderedDict),
        st.dictionaries(st.text(), inner, max_size=4).map(lambda d: Bunch(**d)),
        st.dictionaries(hashables, st.integers(), max_size=4).map(Counter),
        st.sets(hashables, max_size=4),
        st.frozensets(hashables, max_size=4),
        st.builds(slice, st.integers(), st.none(), st.integers(1, 3)),
        st.sampled_from(ARRAYS),
    ),
    max_leaves=12,
)


def assert_same(a, b):
    assert type(a) is type(b)
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype and a.shape == b.shape
        for x, y in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True):
            assert_same(x, y)
    elif sparse.issparse(a):
        assert_same(a.toarray(), b.toarray())
    elif isinstance(a, dict):
        for pair, other in zip(a.items(), b.items(), strict=True):
            assert_same(pair, other)
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    else:
        assert a == b or (a != a and b != b)
        assert str(a) == str(b) or isinstance(a, set | frozenset)  # 0.0 and -0.0, 1 and True


@settings(max_examples=200)
@given(data)
def test_plain_data_come_back(value):
    packed = encode(value, refuse)
    assert_same(decode(packed, refuse), value)


def test_data_may_be_deep():
    value = ()
    for _ in range(20_000):
        value = (value, "leaf")
    back = decode(encode(value, refuse), refuse)
    depth = 0
    while back:
        back, depth = back[0], depth + 1
    assert depth == 20_000


@pytest.mark.parametrize(
    ("tokens", "content"),
    [
        ('[["list", 1000000000000]]', None),
        ('[["tuple", -1]]', None),
        ('[["list", 2.5]]', None),
        ('[["dict", 1], 1]', None),
        ('[["array", "<f8", [1000000000], "C"]]', b"12345678"),
        ('[["array", "<f8", [-1], "C"]]', b"12345678"),
        ('[["array", "|O", [1], "C"]]', b"12345678"),
        ('[["array", "<U0", [1000000000000], "C"]]', None),
        ('[["array", "<f8", [1], "K"]]', b"12345678"),
        ('[["array", "<f8", [1], "C"]]', b"123456789"),
        ('[["bytes", 9]]', b"12345678"),
        ('[["object", 0]]', None),
        ('[["object", -1]]', None),
        ('[["function", "os", "system"]]', None),
        ('[["function", "numpy", "fromfile"]]', None),
        ('[["function", "numpy", "save"]]', None),
        ('[["function", "mercer.kernels.base", "replace"]]', None),  # imported there from elsewhere
        ('[["function", "mercer.persist", "save"]]', None),
        ('[["type", "builtins.eval"]]', None),
        ('[["type", "numpy.ndarray"]]', None),
        ('[["type", "mercer.SVC"]]', None),
        ('[["frame", "os"], ["list", []], ["list", []]]', None),
        ('[["sparse", "csr_array", [1, 1]], ["array", "<f8", [1], "C"], ["array", "<i4", [1], "C"], '
         '["array", "<i4", [2], "C"]]', np.float64(1).tobytes() + np.array([7, 0, 1], "<i4").tobytes()),
        ('[["nothing"]]', None),
        ("[[]]", None),
        ("[]", None),
        ("[1, 2]", None),
        ("{}", None),
        ("1", None),
        ("[" * 100_000, None),
    ],
)  # fmt: skip
def test_tokens_that_do_not_fit_together_are_refused(tokens, content):
    packed = Plain(tokens, None if content is None else np.frombuffer(content, np.uint8), [])
    tracemalloc.start()
    with pytest.raises(Exception) as caught:
        decode(packed, refuse)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(
        caught.value,
        InputError | ValueError | TypeError | IndexError | KeyError | RecursionError | AttributeError,
    )
    assert peak < 5e6


# --- what cannot be saved --------------------------------------------------------------------------------


class Wave(Kernel):
    """A kernel of a user's."""

    width: float = positive(1.0)

    def formula(self, pair):
        return np.cos(pair.l1 / self.width)


def common(a, b):
    return float(len(set(a) & set(b)))


class Callable:
    def __call__(self, X):
        return X


def itself():
    bag = []
    bag.append(bag)
    return bag


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (FromFunction(lambda a, b: 1.0), r"model\.function: .*holds no code.*'<lambda>'"),
        (FromFunction(common), r"model\.function: .*function 'common' of .*test_persist"),
        (SVC(kernel=common), r"model\.kernel: .*'common'"),
        (SVC(progress=print), r"model\.progress: .*'print' of builtins"),
        (make_pipeline(FunctionTransformer(np.save), SVC()), r"model\.steps\.func: .*'save' of numpy"),
        (Gaussian(1.0) @ Callable(), r"model\.function.*Callable"),
        (Gaussian(1.0) @ "x".upper, r"model\.function: .*upper"),
        (Wave(2.0), r"model holds a Wave of .*trusted"),
        ({"a": [1, object()]}, r"model holds a object of builtins"),
        ({"a": SVC(class_weight={1: open})}, r"model\.class_weight: .*'open'"),
        (np.array([object()], dtype=object), "holds a object"),
        (10**5000, "digits"),
        ([10**5000], "digits"),
        (iter([1]), "list_iterator"),
        (mercer, "module"),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_needs_code_is_refused_by_name(model, message, path):
    with pytest.raises(InputError, match=message):
        save(model, path)
    assert not path.exists()


def test_compiled_trees_are_refused(X, path):
    with pytest.raises(InputError, match=r"Tree of sklearn\.tree"):
        save(RandomForestClassifier(2).fit(X, labels(X)), path)


def test_a_model_that_holds_itself_is_refused(path):
    model = SVC()
    model.own = model
    for wrong in (model, itself()):
        with pytest.raises(InputError, match=r"holds itself"):
            save(wrong, path)


def test_classes_and_functions_of_the_user(path, X):
    model = Expansion(Wave(2.0) * Gaussian(1.0), X, X[:, 0])
    save(model, path, trusted=[Wave])
    with pytest.raises(InputError, match=r"class 'Wave' of .*trusted=\[Wave\]"):
        load(path)
    with config(backend="numpy"):
        np.testing.assert_array_equal(load(path, trusted=Wave)(X), model(X))
    save(FromFunction(common), path, trusted=[common])
    with pytest.raises(InputError, match=r"function 'common'.*trusted"):
        load(path)
    assert load(path, trusted=[common, Wave]).function is common
    for wrong in ("Wave", [3], [None]):
        with pytest.raises(InputTypeError, match="trusted is a list"):
            load(path, trusted=wrong)


# --- files -----------------------------------------------------------------------------------------------


def test_a_file_describes_itself(path):
    save(SVC(), path)
    about = describe(path)
    assert (about["kind"], about["class"]) == ("SVC", "mercer.estimators.svc.SVC")
    assert about["mercer"] == mercer.__version__ and about["numpy"] == np.__version__
    assert path.read_bytes().startswith(b"mercer model 1\n")


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_file_that_is_there_is_replaced_as_a_whole_or_not_at_all(failing, path, monkeypatch):
    save(Gaussian(1.0), path)
    before = path.read_bytes()

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, failing, full)
    with pytest.raises(InputError, match="cannot be written: No space left"):
        save(Gaussian(2.0), path)
    monkeypatch.undo()
    assert path.read_bytes() == before and os.listdir(path.parent) == [path.name]
    save(Gaussian(2.0), path)
    assert load(path) == Gaussian(2.0) and os.listdir(path.parent) == [path.name]


def test_who_may_read_a_file_stays_as_it_was(path):
    save(Gaussian(1.0), path)
    path.chmod(0o600)
    save(Gaussian(2.0), path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_stays_a_link(path, tmp_path):
    link = tmp_path / "latest"
    link.symlink_to(path)
    save(Gaussian(1.0), link)
    assert link.is_symlink() and load(path) == load(str(link)) == Gaussian(1.0)


@pytest.mark.parametrize("given", [None, 3, ["a"], SVC])
def test_paths_that_are_none(given):
    for action in (load, lambda path: save(SVC(), path), describe):
        with pytest.raises(InputTypeError, match="path of a model file"):
            action(given)


def test_places_where_nothing_can_be(tmp_path):
    for wrong in ("", "a\0b"):
        with pytest.raises(InputError, match="path of a model file"):
            load(wrong)
    with pytest.raises(InputError, match="no file"):
        load(tmp_path / "nothing.mercer")
    with pytest.raises(InputError, match="is no file"):
        load(tmp_path)
    with pytest.raises(InputError, match="folder"):
        save(SVC(), tmp_path)
    with pytest.raises(InputError, match="cannot be written: No such file"):
        save(SVC(), tmp_path / "nowhere" / "model")
    with pytest.raises(InputError, match="cannot be written"):
        save(SVC(), tmp_path / ("x" * 300))
    save(SVC(), tmp_path / ("ё" * 127))  # as long as a name may be
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(InputError, match="is no file"):  # and does not wait for somebody to write
            load(tmp_path / "pipe")


def seal(body):
    return b"mercer model 1\n" + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def with_payload(payload):
    return seal(json.dumps({"bytes": len(payload)}).encode() + b"\n" + payload)


def payload_of(raw):
    return raw.split(b"\n", 3)[3]


def rezip(raw, change, compression=zipfile.ZIP_STORED):
    """The file with parts of its archive changed and every checksum right: what an attacker would make."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(payload_of(raw))) as old,
        zipfile.ZipFile(buffer, "w", compression) as new,
    ):
        for member in old.infolist():
            new.writestr(member.filename, change(member.filename, old.read(member)))
    return with_payload(buffer.getvalue())


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "is empty"),
        (b"\n", "no model file"),
        (b"age,city\n3,Rome\n", "no model file"),
        (pickle.dumps({"a": 1}), "looks like a pickle"),
        (skops.io.dumps({"a": 1}), "looks like a zip archive"),
        (b"mercer model 1", "no model file"),
        (b"mercer model 1\n", "damaged"),
        (b"mercer model 2\n" + b"x" * 200, "later version; upgrade mercer"),
        (b"mercer model 0\n" + b"x" * 200, "no model file"),
        (b"mercer model 999999999999\n" + b"x" * 200, "no model file"),
        (b"mercer model x\n" + b"x" * 200, "no model file"),
        (seal(b""), "description"),
        (seal(b"[]\n"), "description"),
        (seal(b"[" * 100_000), "description"),
        (seal(b'{"bytes": 3}\nab'), "description"),
        (with_payload(b""), "fit together"),
        (with_payload(b"PK\x05\x06" + b"\0" * 18), "fit together"),
        (with_payload(skops.io.dumps({"a": 1})), ""),
        (with_payload(skops.io.dumps(RandomForestClassifier(1).fit([[0], [1]], [0, 1]))), "never|know"),
    ],
    ids=range(19),
)  # fmt: skip
def test_files_of_other_kinds(raw, message, path):
    path.write_bytes(raw)
    if message == "":  # a file of skops that holds nothing strange is fine
        assert load(path) == {"a": 1}
        return
    with pytest.raises(InputError, match=message):
        load(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Models of several kinds as bytes, with what they say."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9, 2)), np.arange(9) % 2
    texts = ["to be or not", "be", "the question is"] * 3
    frame = pd.DataFrame({"a": X[:, 0], "b": texts})
    path = tmp_path_factory.mktemp("files") / "model.mercer"
    found = []
    for kernel, points in (
        (Gaussian(1.0), X),
        (BagOfWords(weighting="tf-idf"), texts),
        (ColumnKernel(), frame),
    ):
        model = SVC(kernel=kernel, class_weight={0: 1.0, 1: 2.0}).fit(points, y)
        save(model, path)
        found.append((path.read_bytes(), points, model.decision_function(points)))
    return found


def test_a_file_of_which_any_bytes_were_changed_is_refused(files, path, rng):
    """Two thousand mutations: every byte of the head, and places all over the rest."""
    for raw, _, _ in files:
        places = [*range(150), *rng.integers(0, len(raw), 300)]
        for place in places:
            changed = bytearray(raw)
            changed[place] = (changed[place] + rng.integers(1, 256)) % 256
            path.write_bytes(changed)
            with pytest.raises(InputError):
                load(path)
        for length in [*range(0, 120, 3), *rng.integers(0, len(raw), 60)]:
            path.write_bytes(raw[:length])
            with pytest.raises(InputError):
                load(path)
        for more in (b"\0", b"\n", raw):
            path.write_bytes(raw + more)
            with pytest.raises(InputError, match="damaged"):
                load(path)


def test_bytes_changed_behind_the_checksum(files, path, rng):
    """Zip archives have checksums of their own; what they do not cover does not matter."""
    for raw, points, values in files:
        body = raw.split(b"\n", 2)[2]
        for place in rng.integers(0, len(body), 150):
            changed = bytearray(body)
            changed[place] = (changed[place] + rng.integers(1, 256)) % 256
            path.write_bytes(seal(bytes(changed)))
            try:
                model = load(path)
            except InputError:
                continue
            np.testing.assert_array_equal(model.decision_function(points), values)


JUNK = [
    None,
    0,
    -1,
    10**12,
    2.5,
    True,
    [],
    {},
    [1],
    "",
    "os",
    "system",
    "builtins",
    "numpy",
    "subprocess",
    "Popen",
]
JUNK += [
    "FunctionNode",
    "MethodNode",
    "ObjectNode",
    "TypeNode",
    "OperatorFuncNode",
    "LossNode",
    "PartialNode",
]


def slots(tree):
    """Every place of a JSON document that could hold something else."""
    found, waiting = [], [tree]
    while waiting:
        part = waiting.pop()
        for key in part if isinstance(part, dict) else range(len(part)):
            found.append((part, key))
            if isinstance(part[key], dict | list):
                waiting.append(part[key])
    return found


def test_schemas_made_by_an_attacker(files, path, rng):
    """With every checksum right: it is refused, or it is a model; nothing else is raised."""
    refused = 0

    def change(name, content):
        if name != "schema.json":
            return content
        schema = json.loads(content)
        places = slots(schema)
        for place in rng.integers(0, len(places), rng.integers(1, 3)):
            part, key = places[place]
            part[key] = JUNK[rng.integers(len(JUNK))]
        return json.dumps(schema)

    for raw, _, _ in files:
        for _ in range(90):
            path.write_bytes(rezip(raw, change))
            try:
                load(path)
            except InputError:
                refused += 1
    assert refused > 120


@pytest.fixture
def trap(tmp_path, monkeypatch):
    """A module that leaves a trace when it is imported, and when its class or function is used."""
    trace = tmp_path / "trace"
    (tmp_path / "harmful.py").write_text(
        f"open({str(trace)!r}, 'w').close()\n"
        "class Thing:\n    def __setstate__(self, state): pass\n"
        "def act(*arguments): return 1.0\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield trace
    sys.modules.pop("harmful", None)


def node(loader, module, name, **more):
    return {"__class__": name, "__module__": module, "__loader__": loader, "__id__": 1, **more}


EMPTY = node("JsonNode", "builtins", "str", content="null", is_json=True)


@pytest.mark.parametrize(
    "schema",
    [
        node("FunctionNode", "harmful", "act"),
        node("TypeNode", "harmful", "Thing"),
        node("ObjectNode", "harmful", "Thing", content=EMPTY),
        node("ObjectNode", "mercer.kernels.base", "Kernel.__class__"),
        node("ObjectNode", "mercer.__main__", "Thing", content=EMPTY),
        node("ObjectNode", "mercer.threads", "Lock", content=EMPTY),
        node("ObjectNode", "sklearn.tests.test_base", "MyEstimator", content=EMPTY),
        node("ObjectNode", "sklearn.externals.joblib", "Memory", content=EMPTY),
        node("ObjectNode", "subprocess", "Popen", content=EMPTY),
        node("LossNode", "harmful", "Thing", content=EMPTY, __reduce__={"args": EMPTY}),
        node("MethodNode", "harmful", "Thing", content={"func": "act", "obj": EMPTY}),
        node("OperatorFuncNode", "operator", "methodcaller", attrs=EMPTY),
        node("PartialNode", "functools", "partial", content={"func": EMPTY, "args": EMPTY, "kwds": EMPTY}),
        node("ConstructorFromReduceNode", "harmful", "Thing", content=EMPTY),
        node("DictNode", "harmful", "Thing", content={}, key_types=EMPTY),
        node("ListNode", "harmful", "Thing", content=[]),
        node("TupleNode", "harmful", "Thing", content=[]),
        node("RandomStateNode", "harmful", "Thing", content=EMPTY),
        node(
            "RandomGeneratorNode",
            "numpy.random",
            "Generator",
            content={"bit_generator": EMPTY, "seed_seq": EMPTY},
        ),
        node("NdArrayNode", "harmful", "act", type="numpy", file="a.npy"),
        node("ListNode", "builtins", "list", content=[node("FunctionNode", "harmful", "act")]),
        {**EMPTY, "hidden": node("FunctionNode", "harmful", "act")},
    ],
    ids=lambda schema: f"{schema['__loader__']}-{schema['__class__']}",
)
@pytest.mark.parametrize("protocol", [0, 1, 2, 3])
def test_nothing_is_imported_or_run(schema, protocol, trap, path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(
            "schema.json", json.dumps({**schema, "protocol": protocol, "_skops_version": "0.16.0"})
        )
    path.write_bytes(with_payload(buffer.getvalue()))
    with pytest.raises(InputError, match="cannot be loaded"):
        load(path)
    assert not trap.exists()


def test_the_trap_works(trap):
    __import__("harmful")
    assert trap.exists()


def npy(shape, dtype="<f8", content=b""):
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": dtype, "fortran_order": False, "shape": shape})
    return head.getvalue() + content


def test_no_file_takes_more_memory_than_it_has_bytes(files, path, rng):
    raw = files[0][0]
    packed = rng.normal(size=(400, 400))
    save(Precomputed(packed + packed.T), path)
    square = path.read_bytes()

    def large(name, content):
        return npy((10**11,)) if name.endswith(".npy") else content

    def zeros(name, content):
        return npy((10**7,), content=bytes(8 * 10**7)) if name.endswith(".npy") else content

    attacks = [rezip(square, large), rezip(square, zeros, zipfile.ZIP_DEFLATED), rezip(raw, large)]
    for attack in attacks:
        path.write_bytes(attack)
        assert len(attack) < 2e6
        tracemalloc.start()
        with pytest.raises(InputError, match="cannot be loaded"):
            load(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 5e6


def test_parameters_are_checked_when_they_come_back(path):
    """A kernel in a file is no less valid than one that was made."""
    save(Gaussian(sigma=2.0), path)

    def negative(name, content):
        return content.replace(b'"2.0"', b'"-2.0"')

    path.write_bytes(rezip(path.read_bytes(), negative))
    with pytest.raises(InputError, match=r"sigma must be positive, got -2\.0"):
        load(path)


def test_the_library_that_is_needed_is_named(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ImportError, match=r"mercer\[models\]"):
        save(SVC(), path)


def test_mails_in_data(path):
    from mercer.features.email import Mail

    mails = [Mail(Counter("ab"), {"a b": 1}, {}, {"x": 0.5}, {}, {}, {}, {}), Mail(*({},) * 8)]
    back = there_and_back(mails, path)
    assert back == mails and all(type(mail) is Mail for mail in back)
    assert type(back[0].words) is Counter


def test_dates_and_money_in_data(path):
    value = {
        date(2020, 1, 1): [datetime(2020, 1, 1, 12), timedelta(days=1, microseconds=3)],
        ("a", 1): Decimal("1.10"),
        None: {True: 1, 0: "zero", 2.5: frozenset({1})},
    }
    assert_same(there_and_back(value, path), value)
