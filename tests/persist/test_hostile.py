"""Files that ask for much: memory, time, files of the reader's; and models whose parts are of two models."""

import ast
import importlib
import json
import pkgutil
import time
import tracemalloc
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import mercer
from mercer import (
    SVC,
    SVR,
    BagOfWords,
    BSpline,
    Gaussian,
    KernelFisherDiscriminant,
    KernelLogisticRegression,
    KernelPCA,
    KernelRidge,
    Linear,
    MailClassifier,
    Mismatch,
    ParzenClassifier,
    Perceptron,
    RandomWalk,
    WeisfeilerLehman,
)
from mercer.errors import InputError
from mercer.kernels.compose import Sum
from mercer.persist import known, load, save
from mercer.persist.plain import Plain, decode, encode, refuse

from .conftest import fit, rezip


def peak_of(task):
    tracemalloc.start()
    try:
        with pytest.raises(Exception) as caught:
            task()
        return caught.value, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# --- memory ---------------------------------------------------------------------------------------------

RANGE = '["range"], 0, 1000000000, 1'
PAIR = '["array", "<f8", [2, 2], "C"]'
BOMBS = {
    "objects": f'[["objects", [1000000000]], {RANGE}]',
    "masked": f'[["masked"], {RANGE}, {RANGE}]',
    "graph": f'[["graph"], ["list", 1], {RANGE}, null, null, null]',
    "labels of a graph": f'[["graph"], {PAIR}, {RANGE}, null, null]',
    "attributes of a graph": f'[["graph"], {PAIR}, null, null, {RANGE}]',
    "series": f'[["series", "pandas"], "x", {RANGE}]',
    "series of polars": f'[["series", "polars"], "x", {RANGE}]',
    "frame": f'[["frame", "pandas"], ["list", ["a"]], ["list", 1], {RANGE}]',
    "tree": f'[["tree"], {RANGE}, {RANGE}]',
    "list": f'[["list", 1], {RANGE}]',
    "many ranges": '[["list", 400], ' + ", ".join(['["range"], 0, 9999, 1'] * 400) + "]",
    "empty array": '[["array", "<f8", [1000000000000, 0], "C"]]',
    "empty objects": '[["objects", [1000000000000, 0]], ["list", []]]',
    "empty texts": '[["array", "<U250000000", [0], "C"]]',
    "dtype": '[["dtype", "<U250000000"]]',
    "wide": '[["sparse", "csr_array", [1, 1000000000000]], ["array", "<f8", [0], "C"], '
    '["array", "<i4", [0], "C"], ["array", "<i4", [0], "C"]]',
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_few_tokens_make_no_gigabytes(name):
    content = np.frombuffer(np.zeros(4).tobytes(), np.uint8) if PAIR in BOMBS[name] else None
    error, peak = peak_of(lambda: decode(Plain(BOMBS[name], content, []), refuse))
    assert isinstance(error, InputError | ValueError | TypeError)
    assert peak < 5e6


def test_what_may_not_come_back_is_not_written(path):
    assert decode(encode([range(0, 10_000)], refuse), refuse) == [range(0, 10_000)]
    with pytest.raises(InputError, match=r"a range of 10001 numbers: turn it into an array, np\.arange"):
        save({"a": range(10_001)}, path)
    with pytest.raises(InputError, match=r"sparse matrix of shape \(1, 1000000000\) with 1 entries: hash"):
        save({"a": sparse.csr_array(([1.0], ([0], [7])), shape=(1, 10**9))}, path)


def test_bytes_of_one_array_are_not_many_arrays(path, rng):
    """skops reads the bytes again for each node that names them."""
    save({"a": rng.normal(size=10_000)}, path)

    def multiply(name, content):
        if name != "schema.json":
            return content
        schema = json.loads(content)
        objects = schema["content"]["content"]["objects"]["content"]
        objects += [{**objects[0], "__id__": 10**6 + i} for i in range(1000)]
        return json.dumps(schema)

    path.write_bytes(rezip(path.read_bytes(), multiply))
    error, peak = peak_of(lambda: load(path))
    assert isinstance(error, InputError) and peak < 2e7


def test_an_array_is_still_one_array_in_two_places(path, rng):
    table = rng.normal(size=(100, 100))
    back = _there(path, {"a": table, "b": [table]})
    assert back["a"] is back["b"][0]


def test_empty_arrays_in_the_archive_are_short(path):
    model = SVC()
    model.odd_ = np.empty((10**9, 0))
    with pytest.raises(InputError, match="cannot be written"):
        save(model, path)
    model.odd_ = np.empty((0, 5))
    assert _there(path, model).odd_.shape == (0, 5)


def test_plain_data_hold_no_plain_data():
    """Ten lists of ten lists of … are ten bytes each, and 10^40 to whoever reads them."""
    inner = Plain("[1]", None, [])
    for _ in range(40):
        inner = Plain('[["list", 2], ["object", 0], ["object", 0]]', None, [inner])
    with pytest.raises(ValueError, match="plain data in the place of an object"):
        decode(inner, lambda item: item)


def _there(path, model):
    save(model, path)
    return load(path)


# --- time -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "name", "value"),
    [
        (Mismatch(3, 1, alphabet="ab"), "k", 10**9),
        (WeisfeilerLehman(2), "iterations", 10**9),
        (RandomWalk(2), "length", 10**9),
        (BagOfWords(2), "n", 10**9),
        (BSpline(3), "degree", 10**9 + 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_kernels_that_would_run_for_ever_are_refused(kernel, name, value, path):
    bound = rf"{name} must be a whole number of at least \d and at most \d+, got {value}"
    with pytest.raises(InputError, match=bound):
        type(kernel)(**{**kernel.get_params(deep=False), name: value})
    vars(kernel)[name] = value  # what a forger would write
    save(kernel, path)
    start = time.process_time()
    with pytest.raises(InputError, match=bound):
        load(path)
    assert time.process_time() - start < 2


def test_kernels_made_of_each_other_have_a_limit(path):
    """Forty sums of two equal terms are forty objects in a file, and 2^40 kernels in a formula."""
    kernel = Linear()
    for _ in range(40):
        total = object.__new__(Sum)
        vars(total).update(k1=kernel, k2=kernel)
        kernel = total
    message = r"its kernel is made of \d+ kernels, and a model file may have 10000: use fewer terms"
    with pytest.raises(InputError, match=message):
        save(kernel, path)
    save(Linear() + Linear(), path)

    def deeper(name, content):
        """As a forger writes it: the second term of each sum is the number of the first."""
        if name != "schema.json":
            return content
        schema = json.loads(content)
        inner = schema["content"]["content"]["k1"]
        for i in range(40):
            outer = json.loads(content)
            outer["__id__"], outer["content"]["__id__"] = 10**6 + 2 * i, 10**6 + 2 * i + 1
            terms = outer["content"]["content"]
            again = {key: inner[key] for key in ("__class__", "__module__", "__loader__", "__id__")}
            terms["k1"], terms["k2"] = inner, again
            inner = outer
        return json.dumps({**inner, **{key: schema[key] for key in ("protocol", "_skops_version")}})

    path.write_bytes(rezip(path.read_bytes(), deeper))
    assert path.stat().st_size < 50_000
    with pytest.raises(InputError, match="does not fit together"):  # skops would follow it 2^40 times
        load(path)
    many = Sum(*[Gaussian(1.0 + i) for i in range(500)])
    assert len(_there(path, many).children()) == 500


# --- models of two models -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 2))
    three = np.arange(30) % 3
    names = ["ann", "bob", "cat", "dan", "eve", "fay", "gus", "hal"]
    mails = [f"Subject: x\n\nbuy pills {n}" for n in names] + [f"Subject: y\n\nlunch {n}" for n in names]
    return {
        "svc3": SVC(probability=True).fit(X, three),
        "rest": SVC(decision_function_shape="ovr").fit(X, three),
        "svr": SVR().fit(X, X[:, 0]),
        "ridge": KernelRidge().fit(X, X),
        "logistic": KernelLogisticRegression().fit(X, three),
        "fisher": KernelFisherDiscriminant().fit(X, three),
        "pca": KernelPCA(n_components=2).fit(X),
        "parzen": ParzenClassifier().fit(X, three),
        "perceptron": fit(Perceptron(max_iter=5), X, three),
        "linear": LogisticRegression().fit(X, three),
        "mail": MailClassifier().fit(mails, ["spam"] * 8 + ["ham"] * 8),
    }


def nan_in(array):
    changed = np.array(array, dtype=float)
    changed.flat[0] = np.nan
    return changed


def short(array):
    return array[:-1]


@pytest.mark.parametrize(
    ("which", "name", "change", "message"),
    [
        ("svc3", "classes_", short, "its SVC has 2 classes and 3 functions"),
        ("svc3", "classes_", lambda c: np.append(c, 7), "its SVC has 4 classes and 3 functions"),
        ("svc3", "classes_", lambda c: c[:, None], r"its SVC has classes of shape \(3, 1\)"),
        ("svc3", "classes_", lambda c: c[:0], r"its SVC has classes of shape \(0,\)"),
        ("svc3", "n_support_", short, r"its SVC has an array of shape \(2,\) as n_support_"),
        ("svc3", "slopes_", short, r"as slopes_"),
        ("svc3", "slopes_", nan_in, r"an array with NaN or infinity as slopes_"),
        ("svr", "support_", short, "as support_"),
        ("svr", "dual_coef_", nan_in, "its SVR has an array with NaN or infinity as dual_coef_"),
        ("svr", "intercept_", lambda b: np.append(b, 1.0), "as intercept_"),
        ("logistic", "classes_", short, "has 2 classes and 3 functions"),
        ("fisher", "means_", short, r"an array of shape \(2, 2\) as means_"),
        ("fisher", "_precision", nan_in, "NaN or infinity as _precision"),
        ("fisher", "priors_", list, "a list as priors_"),
        ("pca", "eigenvalues_", short, "as eigenvalues_"),
        ("parzen", "priors_", short, "as priors_"),
        ("perceptron", "coef_", short, "as coef_"),
        ("perceptron", "n_features_in_", lambda d: d + 1, "columns"),
        ("linear", "coef_", lambda c: c[:, :1], "its LogisticRegression has an array of shape"),
        ("linear", "coef_", nan_in, "its LogisticRegression has an array with NaN"),
        ("mail", "coef_", lambda c: {**c, "words": c["words"][:-1]}, "each element of the words"),
        ("mail", "coef_", lambda c: {**c, "words": nan_in(c["words"])}, "each element of the words"),
        ("mail", "weights_", lambda w: {"words": 1.0}, "has not the same aspects everywhere"),
        ("mail", "classes_", short, "has not two classes"),
    ],
)
def test_models_whose_parts_do_not_fit_are_refused(which, name, change, message, fitted, path):
    model = fitted[which]
    save(model, path)
    load(path)  # as it is, it is fine
    before = vars(model)[name]
    vars(model)[name] = change(before)
    try:
        save(model, path)
    finally:
        vars(model)[name] = before
    with pytest.raises(InputError, match=message):
        load(path)


def test_expansions_whose_parts_do_not_fit_are_refused(fitted, path):
    f = fitted["ridge"].expansion_
    for name, wrong, message in (
        ("coef", f.coef[:-1], "coef must have one entry per anchor"),
        ("coef", nan_in(f.coef), "coef must be finite"),
        ("anchors", f.anchors[:-1], "coef must have one entry per anchor"),
        ("anchors", nan_in(f.anchors), "NaN"),
        ("intercept", np.zeros(3), "intercept must be a number or one per function"),
    ):
        before = vars(f)[name]
        vars(f)[name] = wrong
        try:
            save(fitted["ridge"], path)
        finally:
            vars(f)[name] = before
        with pytest.raises(InputError, match=message):
            load(path)


def test_elements_of_mails_have_columns_in_order(fitted, path):
    words = fitted["mail"].vocabularies_["words"]
    before = dict(words.columns)
    words.columns[next(iter(before))] = 10**6
    try:
        save(fitted["mail"], path)
    finally:
        words.columns.update(before)
    with pytest.raises(InputError, match="has not one weight for each of its columns"):
        load(path)


# --- files of the reader's ------------------------------------------------------------------------------

OPENING = {"open", "read_bytes", "read_text", "write_bytes", "write_text", "memmap", "fromfile", "loadtxt"}
OPENING |= {"genfromtxt", "read_csv", "read_parquet", "scan_csv", "urlopen", "socket", "connect", "iterdir"}


def _called(tree):
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls}


def _parsed(module):
    return ast.parse(Path(importlib.util.find_spec(module).origin).read_text("utf-8"))


def test_nothing_that_may_be_named_opens_files():
    """No module that a file may name classes of opens files; those of functions do not ask others to."""
    readers = {"write_whole"}
    for module in known._READERS:
        functions = [node for node in ast.walk(_parsed(module)) if isinstance(node, ast.FunctionDef)]
        readers |= {function.name for function in functions if _called(function) & OPENING}
    readers = {name for name in readers if not name.startswith("_")}
    assert "read_file" in readers
    looked_at = 0
    for module in pkgutil.walk_packages(mercer.__path__, "mercer."):
        if known._may_be_loaded(module.name):
            looked_at += 1
            called = _called(_parsed(module.name))
            assert not called & OPENING, module.name
            if f"{module.name}.".startswith(known._FUNCTIONS) and module.name not in known._READING_FUNCTIONS:
                assert not called & (readers - {"read"}), module.name
    assert looked_at > 100


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("mercer.features.email.boxes", "read_file"),
        ("mercer.features.email.boxes", "messages"),
        ("mercer.features.email", "read"),
        ("mercer.kernels.graphs.many", "load_tu"),
        ("mercer.tables.source", "read_bytes"),
        ("mercer.persist", "load"),
        ("numpy", "load"),
        ("sklearn.datasets", "load_svmlight_file"),
    ],
)
def test_readers_are_not_known(module, name):
    assert known.named_or_none(module, name) is None
    assert known.named_class(module, name, {}) is None


def test_bags_of_mails_are_still_known():
    assert known.named_class("mercer.features.email", "Mail", {}) is not None


def test_estimators_of_scikit_learn_open_nothing_either(path):
    vectorizer = CountVectorizer().fit(["to be"])
    assert _there(path, make_pipeline(vectorizer)).transform(["be"]).toarray().tolist() == [[1, 0]]
    for model, message in (
        (CountVectorizer(input="filename"), r"input='filename' opens files when it is used"),
        (make_pipeline(SVC(), memory="steps"), r"memory='steps' keeps files in a folder"),
        (LogisticRegression(n_jobs=10**6), r"n_jobs=1000000 would start that many processes"),
    ):
        with pytest.raises(InputError, match=message):
            save(model, path)


def test_where_a_fit_writes_is_no_part_of_a_model(path, tmp_path):
    model = KernelLogisticRegression(checkpoint=tmp_path / "state", resume=True)
    back = _there(path, model)
    assert back.checkpoint is None and back.resume is False and model.checkpoint is not None
    assert clone(back).checkpoint is None


# --- mutations ------------------------------------------------------------------------------------------

NUMBERS = [0, 1, -1, 2, 10**6, 10**9, 2**31, 2**63, -(10**18), 0.5, 1e300, None, True, "x", [], ["range"]]


def _mutate(tokens, rng):
    """Some token, or a part of one, is something else, is there twice, or is gone."""
    place = rng.integers(len(tokens))
    token = tokens[place]
    kind = rng.integers(4)
    if kind == 0:
        tokens.insert(place, token)
    elif kind == 1:
        del tokens[place]
    elif isinstance(token, list) and len(token) > 1:
        part = rng.integers(1, len(token))
        if isinstance(token[part], list) and token[part]:
            token[part][rng.integers(len(token[part]))] = NUMBERS[rng.integers(len(NUMBERS))]
        else:
            token[part] = NUMBERS[rng.integers(len(NUMBERS))]
    else:
        tokens[place] = NUMBERS[rng.integers(len(NUMBERS))]


def test_mutated_tokens_are_refused_or_data(tries):
    """Two thousand times with --full: no gigabytes, no waiting, no crash."""
    rng = np.random.default_rng(5)
    ring = sparse.csr_array(np.ones((3, 3)) - np.eye(3))
    from mercer.kernels.graphs.graph import Graph
    from mercer.kernels.trees.tree import as_tree

    whole = [
        [Graph(ring, labels=list("abc"), attributes=np.ones((3, 2))), as_tree("(S (NP dog) (VP bites))")],
        {"a": np.ma.masked_array([1.0, 2.0], [True, False]), "b": ring, "c": range(3), "d": {1, 2}},
        np.array([None, "a", (1, 2)], dtype=object),
    ]
    packed = [encode(value, refuse) for value in whole]
    start, refused = time.process_time(), 0
    tracemalloc.start()
    for i in tries(2000):
        data = packed[i % len(packed)]
        tokens = json.loads(data.tokens)
        for _ in range(rng.integers(1, 4)):
            if tokens:
                _mutate(tokens, rng)
        try:
            decode(Plain(json.dumps(tokens), data.content, []), refuse)
        except Exception:
            refused += 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert refused > len(tries(1000)) and peak < 5e7 and time.process_time() - start < 60


def test_mutated_attributes_are_refused_or_models(fitted, path, tries):
    """Numbers of the schema, which are parameters and fitted values: it loads and predicts, or is refused."""
    rng = np.random.default_rng(6)
    refused = 0
    X = np.zeros((2, 2))
    for name in ("svc3", "ridge", "fisher"):
        save(fitted[name], path)
        raw = path.read_bytes()
        for _ in tries(60):

            def change(member, content):
                if member != "schema.json":
                    return content
                schema = json.loads(content)
                leaves, waiting = [], [schema]
                while waiting:
                    part = waiting.pop()
                    if isinstance(part, dict):
                        if part.get("__loader__") == "JsonNode":
                            leaves.append(part)
                        waiting += part.values()
                    elif isinstance(part, list):
                        waiting += part
                leaf = leaves[rng.integers(len(leaves))]
                leaf["content"] = json.dumps(NUMBERS[rng.integers(len(NUMBERS))])
                return json.dumps(schema)

            path.write_bytes(rezip(raw, change))
            try:
                model = load(path)
            except InputError:
                refused += 1
                continue
            # an error is an answer; a crash, a hang or a gigabyte would not be
            with suppress(ValueError, TypeError, AttributeError, MemoryError, KeyError):
                assert len(model.predict(X)) == 2
    assert refused > len(tries(30))
