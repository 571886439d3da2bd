"""ColumnKernel against sums and products of kernels on single columns, on frames of both libraries."""

import pickle
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from mercer import (
    SVC,
    ColumnKernel,
    Delta,
    Gaussian,
    Gram,
    Intersection,
    KernelRidge,
    Linear,
    Periodic,
    Spectrum,
    certify,
)
from mercer.errors import InputError, InputTypeError
from mercer.kernels.columns import choose

AGES = [31.0, 45.0, 23.0, 31.0, 60.0, 52.0]
CITIES = ["Rome", "Oslo", "Rome", "Lima", "Oslo", "Oslo"]
DAYS = [
    date(2020, 1, 5),
    date(2020, 2, 1),
    date(2021, 7, 9),
    date(2023, 7, 1),
    date(2022, 1, 1),
    date(2020, 3, 3),
]
TAGS = [["a", "b"], ["b"], [], ["a", "a"], ["c"], ["b", "c"]]
TEXTS = [
    f"the {word} of an example is here" for word in ("first", "second", "third", "fourth", "fifth", "sixth")
]


def pandas_frame():
    return pd.DataFrame(
        {"age": AGES, "city": CITIES, "day": pd.to_datetime(DAYS), "tags": TAGS, "is_new": [True, False] * 3}
    )


def polars_frame():
    polars = pytest.importorskip("polars")
    return polars.DataFrame(
        {"age": AGES, "city": CITIES, "day": DAYS, "tags": TAGS, "is_new": [True, False] * 3}
    )


def object_table():
    rows = zip(AGES, CITIES, DAYS, TAGS, [True, False] * 3, strict=True)
    table = np.empty((6, 5), dtype=object)
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            table[i, j] = value
    return table


KERNELS = {"age": Gaussian(sigma=10.0), "city": Delta(), "day": Gaussian(sigma=300.0), "tags": Intersection()}


def parts(X=slice(None), Y=slice(None)):
    """The four matrices, value by value."""
    rows, columns = range(6)[X], range(6)[Y]
    a = [[np.exp(-((AGES[i] - AGES[j]) ** 2) / 200) for j in columns] for i in rows]
    c = [[float(CITIES[i] == CITIES[j]) for j in columns] for i in rows]
    d = [[np.exp(-(((DAYS[i] - DAYS[j]).days / 300) ** 2) / 2) for j in columns] for i in rows]
    t = [[sum(min(TAGS[i].count(x), TAGS[j].count(x)) for x in "abc") for j in columns] for i in rows]
    return [np.array(part, float) for part in (a, c, d, t)]


@pytest.mark.parametrize("frame", [pandas_frame, polars_frame, object_table])
def test_sums_and_products_of_columns(backend, frame):
    X = frame()
    kernels = KERNELS if hasattr(X, "columns") else dict(enumerate(KERNELS.values()))
    a, c, d, t = parts()
    np.testing.assert_allclose(ColumnKernel(kernels)(X), a + c + d + t, rtol=1e-12)
    np.testing.assert_allclose(ColumnKernel(kernels, "product")(X), a * c * d * t, rtol=1e-12)
    first, *_, last = kernels
    weighted = ColumnKernel(kernels, weights={first: 0.5, last: 3.0})
    np.testing.assert_allclose(weighted(X), 0.5 * a + c + d + 3 * t, rtol=1e-12)
    np.testing.assert_allclose(weighted(X, X[1:3]), (0.5 * a + c + d + 3 * t)[:, 1:3], rtol=1e-12)
    np.testing.assert_allclose(Gram(weighted, X).diag(), np.diag(weighted(X)), rtol=1e-12)


def test_several_columns_for_one_kernel():
    X = pd.DataFrame({"x": [0.0, 3.0], "y": [0.0, 4.0], "day": pd.to_datetime(["2020-01-01", "2020-01-02"])})
    np.testing.assert_allclose(
        ColumnKernel({("x", "y"): Gaussian(sigma=5.0)})(X)[0, 1], np.exp(-0.5), rtol=1e-14
    )
    K = ColumnKernel({("day", "x"): Linear()})(X)
    assert K[1, 1] - K[0, 1] - K[1, 0] + K[0, 0] == 1 + 9


@pytest.mark.parametrize("frame", [pandas_frame, polars_frame, object_table])
def test_choosing(frame):
    X = frame()
    found = choose(X)
    yearly = 0.5 * Gaussian(sigma="median") + 0.5 * Periodic(period=365.25)
    wanted = [Gaussian(sigma="median"), Delta(), yearly, Intersection().normalized(), Delta()]
    assert list(found) == (list(X.columns) if hasattr(X, "columns") else list(range(5)))
    assert list(found.values()) == wanted
    kernel = ColumnKernel("auto").resolve(X)
    assert kernel.is_resolved() and not ColumnKernel().is_resolved()
    _a, c, _d, t = parts()
    ages, sigma = (
        np.subtract.outer(AGES, AGES),
        kernel.children()["age" if hasattr(X, "columns") else "0"].sigma,
    )
    assert sigma == np.median([abs(ages[i, j]) for i in range(6) for j in range(i)])
    days = np.array([[(p - q).days for q in DAYS] for p in DAYS], float)
    sigma_days = np.median([abs(days[i, j]) for i in range(6) for j in range(i)])
    year = np.exp(-2 * np.sin(np.pi * days / 365.25) ** 2)
    root = np.sqrt(np.where(np.diag(t) > 0, np.diag(t), 1.0))
    new = np.equal.outer([True, False] * 3, [True, False] * 3)
    wanted = (
        np.exp(-(ages**2) / (2 * sigma**2)) + c + 0.5 * np.exp(-(days**2) / (2 * sigma_days**2)) + 0.5 * year
        + t / np.outer(root, root) + new
    )  # fmt: skip
    np.testing.assert_allclose(ColumnKernel()(X), wanted, rtol=1e-10)


def test_choosing_by_what_is_in_a_column():
    X = pd.DataFrame(
        {
            "count": [1, 2, 3, 4],
            "level": pd.Categorical([1, 2, 1, 2]),
            "maybe": [True, None, False, True],
            "number": np.array([1, 2.5, 3, None], dtype=object),
            "since": pd.to_timedelta([1, 2, 3, 4], unit="D"),
            "season": ["late in the spring", "early in the fall", "late in the spring", "early in the fall"],
        }
    )
    gauss = Gaussian(sigma="median")
    assert list(choose(X).values()) == [gauss, Delta(), Delta(), gauss, gauss, Delta()]
    assert choose([[1.0, "a"], [2.0, "b"]]) == {0: gauss, 1: Delta()}


def test_choosing_for_free_text():
    documents = pytest.importorskip("mercer.kernels.documents")
    X = pd.DataFrame({"text": TEXTS})
    assert choose(X) == {"text": documents.BagOfWords().normalized()}
    K = ColumnKernel()(X)
    np.testing.assert_allclose(np.diag(K), 1, rtol=1e-12)
    np.testing.assert_allclose(K[0, 1], 6 / 7, rtol=1e-12)


@pytest.mark.parametrize(
    ("table", "error", "words"),
    [
        (pd.DataFrame({"x": [None, None]}), InputError, "nothing but missing"),
        (pd.DataFrame({"x": [1, "a"]}), InputTypeError, "holds int, str"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), InputError, "more than one column 'a'"),
        (pd.DataFrame({"x": [1.0, np.nan]}), InputError, "row 1 of column 'x'|NaN"),
        (
            pd.DataFrame({"x": pd.to_datetime(["2020-01-01", None])}),
            InputError,
            "'x' has 1 missing dates.*row 1",
        ),
    ],
)
def test_tables_that_do_not_do(table, error, words):
    with pytest.raises(error, match=words):
        ColumnKernel()(table)


def test_missing_categories_are_a_category():
    for values in (
        ["a", None, "b", None],
        ["a", np.nan, "b", float("nan")],
        pd.Categorical(["a", None, "b", None]),
        [1.0, np.nan, 2.0, np.nan],
    ):
        K = ColumnKernel({"x": Delta()})(pd.DataFrame({"x": values}))
        assert K.tolist() == [[1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0], [0, 1, 0, 1]]


def test_missing_objects_are_named():
    X = pd.DataFrame({"word": ["a", None, "b"], "bag": [["a"], ["b"], None], "n": [1.0, 2.0, 3.0]})
    with pytest.raises(InputError, match="column 'word' has 1 missing values, the first in row 1"):
        ColumnKernel({"word": Spectrum(1)})(X)
    with pytest.raises(InputTypeError, match="bag 2"):
        ColumnKernel({"bag": Intersection()})(X)
    np.testing.assert_array_equal(ColumnKernel({"n": Intersection()})(X), [[1, 1, 1], [1, 2, 2], [1, 2, 3]])


def test_dates_of_every_kind():
    moment = datetime(2020, 5, 17, 18)
    zone = moment.replace(tzinfo=UTC)
    forms = [
        pd.DataFrame({"t": [moment]}),
        pd.DataFrame({"t": [zone]}),
        pd.DataFrame({"t": pd.Series([moment], dtype=object)}),
        np.array([[moment]], dtype="datetime64[s]"),
        np.array([[zone]], dtype=object),
    ]
    wanted = (moment - datetime(1970, 1, 1)) / timedelta(days=1)
    for X in forms:
        key = "t" if hasattr(X, "columns") else 0
        assert ColumnKernel({key: Linear()})(X)[0, 0] == wanted**2
    with pytest.raises(InputTypeError, match="in row 1 it has 'x'"):
        ColumnKernel({0: Linear()})(np.array([[moment], ["x"]], dtype=object))


def test_parameters_are_named_after_columns():
    kernel = ColumnKernel(
        {
            "age": Gaussian(sigma=3.0),
            ("x", "y"): Linear() * Gaussian(),
            "weights": Delta(),
            "a__b": Gaussian(),
        }
    )
    names = kernel.get_params()
    assert names["age__sigma"] == 3.0 and "x_y__k2__sigma" in names and names["weights_"] == Delta()
    copy = clone(kernel)
    copy.set_params(age__sigma=7.0, x_y__k2__sigma=2.0, a__b__sigma=4.0, weights_=Linear())
    assert copy.columns["age"].sigma == 7.0 and copy.columns["a__b"].sigma == 4.0
    assert copy.columns[("x", "y")].k2.sigma == 2.0 and copy.columns["weights"] == Linear()
    assert kernel.columns["age"].sigma == 3.0 and kernel.columns["weights"] == Delta()
    with pytest.raises(InputError, match="no parameter 'height__sigma'"):
        copy.set_params(age__sigma=1.0, height__sigma=2.0)
    assert copy.columns["age"].sigma == 7.0  # all or nothing
    assert pickle.loads(pickle.dumps(kernel)) == kernel and hash(clone(kernel)) == hash(kernel)
    step = ColumnKernel({"age": Gaussian(sigma=3.0)}).derivative("age__sigma")
    X = pd.DataFrame({"age": [0.0, 2.0]})
    np.testing.assert_allclose(step(X)[0, 1], np.exp(-4 / 18) * 4 / 27, rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"columns": {}}, "must be 'auto' or a dict"),
        ({"columns": {"a": "rbf"}}, "must be 'auto' or a dict"),
        ({"columns": {1.5: Delta()}}, "must be 'auto' or a dict"),
        ({"columns": {1: Delta(), "1": Delta()}}, "same name"),
        ({"columns": {"a": Delta()}, "weights": {"b": 1.0}}, "no keys of columns"),
        ({"columns": {"a": Delta()}, "weights": {"a": -1.0}}, "zero or more"),
        ({"columns": {"a": Delta()}, "weights": {"a": 1.0}, "combine": "product"}, "combine='sum'"),
        ({"combine": "mean"}, "one of 'sum', 'product'"),
    ],
)
def test_wrong_parameters(arguments, words):
    with pytest.raises(InputError, match=words):
        ColumnKernel(**arguments)


def test_certificates():
    assert certify(ColumnKernel(KERNELS)).verdict == "proved"
    assert certify(ColumnKernel(KERNELS, "product")).verdict == "proved"


def people(n, rng):
    city = rng.choice(["Rome", "Oslo", "Lima"], n)
    age = rng.uniform(20, 70, n)
    tags = [rng.choice(list("abcd"), rng.integers(0, 4), replace=False).tolist() for _ in range(n)]
    day = np.datetime64("2020-01-01") + rng.integers(0, 300, n)
    score = (city == "Rome") * 2.0 + np.sin(age / 8) + np.array(["a" in t for t in tags])
    return {"age": age, "city": city, "day": day, "tags": tags}, score


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_learning_in_pipelines_and_searches(library, rng):
    frame = pytest.importorskip(library).DataFrame
    (train, y), (test, y_test) = people(150, rng), people(60, rng)
    train, test = frame(train), frame(test)
    kernel = ColumnKernel({"age": Gaussian("median"), "city": Delta(), "tags": Intersection()})
    model = make_pipeline(FunctionTransformer(), KernelRidge(kernel=kernel, alpha=0.1)).fit(train, y)
    assert model.score(test, y_test) > 0.8
    search = GridSearchCV(
        KernelRidge(kernel=kernel, alpha=0.01), {"kernel__age__sigma": [0.01, 8.0], "alpha": [0.01]}, cv=3
    )
    assert search.fit(train, y).best_params_["kernel__age__sigma"] == 8.0
    assert search.best_estimator_.score(test, y_test) > 0.9
    machine = SVC(kernel=ColumnKernel(), C=10.0).fit(train, y > 1.5)
    assert machine.score(test, y_test > 1.5) > 0.8
    assert (pickle.loads(pickle.dumps(machine)).predict(test) == machine.predict(test)).all()
    assert set(machine.kernel_.columns) == {"age", "city", "day", "tags"}


def test_unseen_categories_and_missing_columns(rng):
    train, y = people(40, rng)
    model = KernelRidge(kernel=ColumnKernel({"city": Delta(), "age": Gaussian("median")})).fit(
        pd.DataFrame(train), y
    )
    new = pd.DataFrame(train)[:2].assign(city="Quito")
    assert np.isfinite(model.predict(new)).all()
    with pytest.raises((InputError, ValueError), match=r"city|feature names"):
        model.predict(new.drop(columns="city"))
