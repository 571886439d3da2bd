"""ColumnKernel against sums and products of kernels on single columns, on frames of both libraries."""

import pickle
from datetime import UTC, date, datetime, time, timedelta

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from mercer import (
    SVC,
    BagOfWords,
    ColumnKernel,
    Delta,
    Gaussian,
    Gram,
    Intersection,
    KernelRidge,
    Laplacian,
    Linear,
    Min,
    PartialTree,
    Periodic,
    Spectrum,
    Wendland,
    certify,
    config,
)
from mercer.errors import InputError, InputTypeError
from mercer.kernels.columns.kinds import choose

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


@pytest.mark.sample(3)
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
    every = ColumnKernel(kernels, "anova", {first: 0.5})
    np.testing.assert_allclose(
        every(X), (1 + 0.5 * a) / 1.5 * (1 + c) / 2 * (1 + d) / 2 * (1 + t) / 2, rtol=1e-12
    )
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


def test_choosing_for_texts():
    X = pd.DataFrame({"text": TEXTS})
    kernel = BagOfWords(weighting="tf-idf").normalized()
    assert choose(X) == {"text": kernel}
    np.testing.assert_allclose(ColumnKernel()(X), kernel.resolve(TEXTS)(TEXTS), rtol=1e-12)
    names = [f"{first}{last}" for first in ("Ann", "Bob", "Cleo", "Dan", "Eve", "Fay") for last in "abcdefg"]
    assert choose(pd.DataFrame({"who": names})) == {"who": Spectrum(3).normalized()}
    assert choose(pd.DataFrame({"who": names[:40]})) == {"who": Delta()}


def test_choosing_for_times():
    days = pd.date_range("2020-01-01", periods=3 * 365, freq="D")
    smooth, year, day = Gaussian(sigma="median"), Periodic(period=365.25), Periodic(period=1.0)
    third = 1 / 3
    assert choose(pd.DataFrame({"t": days[:700]})) == {"t": smooth}
    assert choose(pd.DataFrame({"t": days})) == {"t": 0.5 * smooth + 0.5 * year}
    hours = pd.date_range("2020-01-01", periods=100, freq="h")
    assert choose(pd.DataFrame({"t": hours})) == {"t": 0.5 * smooth + 0.5 * day}
    odd = days + pd.to_timedelta(np.arange(len(days)) % 5, unit="h")
    assert choose(pd.DataFrame({"t": odd})) == {"t": third * smooth + third * year + third * day}
    assert choose(pd.DataFrame({"t": [time(8, 30), time(20)]})) == {"t": day}
    assert choose(pd.DataFrame({"t": pd.period_range("2024-01", periods=5, freq="M")})) == {"t": smooth}


@pytest.mark.usefixtures("plain")
def test_numbers_name_positions():
    """Whatever the columns are called: a kernel chosen for one must not be used on another."""
    rows = [[1.0, "a"], [2.0, "b"], [4.0, "a"]]
    wanted = ColumnKernel()(rows)
    names = [
        [1, 0],
        [10, 20],
        ["0", 0],
        [1.5, 2.5],
        [None, "b"],
        pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")]),
    ]
    for columns in names:
        X = pd.DataFrame(rows, columns=columns)
        assert ColumnKernel.of(X).columns == {0: Gaussian("median"), 1: Delta()}
        np.testing.assert_array_equal(ColumnKernel()(X), wanted)
    with pytest.raises(InputError, match=r"no column 20.*a number is a position, pass 1"):
        ColumnKernel({20: Delta()})(pd.DataFrame(rows, columns=[10, 20]))


def test_a_choice_written_out():
    X = pandas_frame()
    kernel = ColumnKernel.of(X, combine="anova")
    assert kernel.columns == choose(X) and not kernel.is_resolved()
    assert kernel.resolve(X) == ColumnKernel("auto", "anova").resolve(X)
    X["nothing"] = None
    assert "nothing" not in ColumnKernel.of(X).columns


@pytest.mark.parametrize(
    ("table", "error", "words"),
    [
        (pd.DataFrame({"x": [None, None]}), InputError, "nothing but missing"),
        (pd.DataFrame(index=[0, 1]), InputError, "the table has no columns"),
        (pd.DataFrame({"x": [1, "a"]}), InputTypeError, "holds int, str"),
        (pd.DataFrame({"x": [1j, 2j]}), InputTypeError, "holds complex"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), InputError, "more than one column 'a'"),
        (pd.DataFrame({"x": [1.0, np.inf]}), InputError, "row 1 of column 'x'"),
    ],
)
def test_tables_that_do_not_do(table, error, words):
    with pytest.raises(error, match=words):
        ColumnKernel()(table)


def test_a_name_is_that_of_one_column():
    X = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=["a", "a"])
    for kernel in (Gaussian(), Delta(), Spectrum(2)):
        with pytest.raises(InputError, match=r"2 columns 'a'.*position"):
            ColumnKernel({"a": kernel})(X)
    with pytest.raises(InputError, match="one column, got columns"):
        ColumnKernel({("a", "b"): Spectrum(2)})(pd.DataFrame({"a": ["x"], "b": ["y"]}))


MISSING = [
    (Gaussian(sigma=2.0), [1.0, None, 3.0, None]),
    (Gaussian(sigma="median"), pd.array([1, None, 3, None], dtype="Int64")),
    (Min(), [1.0, float("nan"), 3.0, np.nan]),
    (Gaussian(sigma=5.0), pd.to_datetime(["2020-01-01", None, "2020-01-03", None])),
    (Gaussian(sigma=5.0), [date(2020, 1, 1), None, date(2020, 1, 3), pd.NaT]),
    (Delta(), ["a", None, "b", float("nan")]),
    (0.5 * Delta() + 0.5 * Delta(), ["a", None, "b", None]),
    (
        BagOfWords(weighting="tf-idf").normalized(),
        pd.array(["one two", None, "two three", None], dtype="string"),
    ),
    (Spectrum(1), ["ab", None, "b", pd.NA]),
    (Intersection(), [["a", "b"], None, ["b"], None]),
    (PartialTree().normalized(), ["(S a)", None, "(S b)", None]),
]


@pytest.fixture
def plain():
    """Without compiling a formula for every case: that of gaps is compiled where backends are compared."""
    with config(backend="numpy"):
        yield


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize(("kernel", "values"), MISSING, ids=[repr(kernel) for kernel, _ in MISSING])
def test_a_missing_value_is_one_of_its_own(kernel, values):
    X = pd.DataFrame({"x": values})
    there = X.iloc[[0, 2]]
    whole = ColumnKernel({"x": kernel}).resolve(X)
    K = whole(X)
    assert K[1].tolist() == K[3].tolist() == [0, 1, 0, 1]
    # of what is there, as if nothing were missing: words such as "median" included
    np.testing.assert_array_equal(
        K[np.ix_([0, 2], [0, 2])], ColumnKernel({"x": kernel}).resolve(there)(there)
    )
    np.testing.assert_array_equal(whole(X, X.iloc[[1]]), K[:, [1]])  # rows that have nothing else
    np.testing.assert_array_equal(Gram(whole, X).diag(), np.diag(K))
    with pytest.raises(InputError, match="column 'x' has 2 missing values, the first in row 1"):
        ColumnKernel({"x": kernel}, missing="error").resolve(X)(X)


@pytest.mark.usefixtures("plain")
def test_missing_in_one_of_several_columns():
    X = pd.DataFrame({"x": [1.0, None, 1.0], "y": [2.0, 2.0, 2.5]})
    K = ColumnKernel({("x", "y"): Gaussian()})(X)
    np.testing.assert_allclose(K, [[1, 0, np.exp(-0.125)], [0, 1, 0], [np.exp(-0.125), 0, 1]], rtol=1e-14)


@pytest.mark.usefixtures("plain")
def test_missing_in_polars_frames():
    polars = pytest.importorskip("polars")
    X = polars.DataFrame({"n": [1, None, 3], "t": ["a", "b", None], "l": [["a"], None, ["a", "b"]]})
    K = ColumnKernel({"n": Gaussian(), "t": Delta(), "l": Intersection()})(X)
    np.testing.assert_allclose(K, [[3, 0, np.exp(-2) + 1], [0, 3, 0], [np.exp(-2) + 1, 0, 4]], rtol=1e-14)
    odd = polars.DataFrame(
        {"s": [{"a": 1}, {"a": 2}], "d": polars.Series(["1.5", "2.5"]).cast(polars.Decimal(9, 2))}
    )
    assert choose(odd) == {"s": Intersection().normalized(), "d": Gaussian("median")}
    assert ColumnKernel()(odd).shape == (2, 2)


def test_missing_categories_are_a_category():
    for values in (
        ["a", None, "b", None],
        ["a", np.nan, "b", float("nan")],
        pd.Categorical(["a", None, "b", None]),
        [1.0, np.nan, 2.0, np.nan],
    ):
        K = ColumnKernel({"x": Delta()})(pd.DataFrame({"x": values}))
        assert K.tolist() == [[1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0], [0, 1, 0, 1]]


def test_bags_and_counts():
    X = pd.DataFrame({"n": [1.0, 2.0, 3.0]})
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


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("name", ["age", "a__b", "height [cm]", "weights", "x[1]"])
def test_derivatives_by_parameters_of_columns(name):
    kernel = ColumnKernel({name: Gaussian(sigma=3.0), "city": Delta()}, weights={name: 2.0})
    X = pd.DataFrame({name: [0.0, 2.0, None], "city": ["a", "b", "a"]})
    step = kernel.derivative(f"{kernel._name(name)}__sigma")(X)
    wanted = np.zeros((3, 3))
    wanted[0, 1] = wanted[1, 0] = 2 * np.exp(-4 / 18) * 4 / 27
    np.testing.assert_allclose(step, wanted, rtol=1e-12)


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
        ({"combine": "mean"}, "one of 'sum', 'product', 'anova'"),
        ({"missing": "drop"}, "one of 'value', 'error'"),
    ],
)
def test_wrong_parameters(arguments, words):
    with pytest.raises(InputError, match=words):
        ColumnKernel(**arguments)


def test_certificates():
    assert certify(ColumnKernel(KERNELS)).verdict == "proved"
    assert certify(ColumnKernel(KERNELS, "product")).verdict == "proved"
    assert certify(ColumnKernel(KERNELS, "anova")).verdict == "proved"
    assert certify(ColumnKernel()).verdict == "proved"
    # in as many dimensions as there are columns
    local = Wendland(dim=3)
    assert certify(ColumnKernel({("x", "y", "z"): local, "u": local, "v": Min()})).verdict == "proved"
    assert certify(ColumnKernel({("x", "y", "z", "u"): local})).verdict == "refuted"
    many = ("x", "y", "z", "u")
    # of a sum with it nothing is known: that may be a kernel
    assert certify(ColumnKernel({many: local, "v": Laplacian()})).verdict == "unknown"
    assert certify(ColumnKernel({many: local}, weights={many: 0.0})).verdict == "proved"


def people(n, rng):
    city = rng.choice(["Rome", "Oslo", "Lima"], n)
    age = rng.uniform(20, 70, n)
    tags = [rng.choice(list("abcd"), rng.integers(0, 4), replace=False).tolist() for _ in range(n)]
    day = np.datetime64("2020-01-01") + rng.integers(0, 300, n)
    score = (city == "Rome") * 2.0 + np.sin(age / 8) + np.array(["a" in t for t in tags])
    return {"age": age, "city": city, "day": day, "tags": tags}, score


@pytest.mark.sample(2)
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
