"""TableFeatures and TableModel: the numbers that a table becomes."""

from datetime import datetime, timedelta

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor

from mercer import SVC, Gaussian, KernelRidge, config, load, save
from mercer.errors import InputError, InputTypeError, MemoryBudgetError
from mercer.tables import TableFeatures, TableModel, read_table
from mercer.tables.encoders import CategoryColumn, NumberColumn

pl = pytest.importorskip("polars")
pd = pytest.importorskip("pandas")


@pytest.fixture
def columns(rng):
    n = 200
    start = datetime(2020, 1, 1)
    return {
        "size": rng.normal(3.0, 2.0, n),
        "income": np.exp(rng.normal(0, 2, n)),
        "gap": np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
        "city": rng.choice(["Rome", "Oslo", "Lima"], n),
        "when": [start + timedelta(days=float(d)) for d in rng.uniform(0, 1500, n)],
        "same": np.ones(n),
        "number": np.arange(n),
    }


def test_pandas_polars_and_arrays_agree(columns):
    frame = pl.DataFrame(columns, nan_to_null=True)
    by_polars = TableFeatures().fit(frame)
    Z = by_polars.transform(frame)
    pandas = pd.DataFrame(columns)
    assert np.allclose(TableFeatures().fit_transform(pandas), Z)
    assert np.allclose(by_polars.transform(pandas[pandas.columns[::-1]]), Z)  # by name, in any order
    objects = np.empty(frame.shape, dtype=object)
    for j, name in enumerate(frame.columns):
        objects[:, j] = frame[name].to_list()
    assert np.allclose(TableFeatures().fit_transform(objects), Z)


def test_the_numbers(columns):
    frame = pl.DataFrame(columns, nan_to_null=True)
    features = TableFeatures().fit(frame)
    names = features.get_feature_names_out().tolist()
    Z = dict(zip(names, features.transform(frame).T, strict=True))
    assert features.kinds_ == {
        "size": "number", "income": "number", "gap": "number", "city": "category", "when": "date",
        "same": "constant", "number": "id",
    }  # fmt: skip
    assert set(features.left_out_) == {"same", "number"}
    x = columns["size"]
    assert np.allclose(Z["size"], (x - x.mean()) / x.std())
    x = np.log1p(columns["income"] / np.median(columns["income"]))
    assert np.allclose(Z["income"], (x - x.mean()) / x.std())
    x, gap = columns["gap"], np.isnan(columns["gap"])
    filled = np.where(gap, np.nanmedian(x), x)
    assert np.allclose(Z["gap"], (filled - np.nanmean(x)) / np.nanstd(x))
    assert np.array_equal(Z["gap is missing"], gap)
    for city in ("Rome", "Oslo", "Lima"):
        assert np.array_equal(Z[f"city = {city}"], columns["city"] == city)
    days = np.array([(day - datetime(1970, 1, 1)) / timedelta(days=1) for day in columns["when"]])
    assert np.allclose(Z["when"], (days - days.mean()) / days.std())
    assert np.allclose(Z["when, sine of week"], np.sin(2 * np.pi * days / 7) / np.sqrt(2))
    for period in ("year", "week", "day"):
        circle = Z[f"when, cosine of {period}"] ** 2 + Z[f"when, sine of {period}"] ** 2
        assert np.allclose(circle, 0.5)  # so that two opposite times are as far apart as two categories


def test_logarithms_only_where_they_help(rng):
    heavy = np.exp(rng.normal(0, 2, 500))
    table = np.column_stack(
        [heavy, -heavy, heavy - heavy.mean(), rng.normal(size=500), rng.poisson(0.5, 500)]
    )
    words = list(TableFeatures().fit(table).describe().values())
    assert ["logarithm" in word for word in words] == [True, True, False, False, False]
    assert not any(
        "logarithm" in word for word in TableFeatures(logarithm=False).fit(table).describe().values()
    )


def test_new_tables(rng):
    table = pl.DataFrame({"x": rng.normal(size=50), "c": ["a", "b"] * 25})
    features = TableFeatures().fit(table)
    new = pl.DataFrame({"other": [1, 2, 3], "c": ["b", "z", None], "x": ["1.5", None, "2"]})
    Z = features.transform(new)
    assert Z.shape == (3, 3)
    assert Z[1, 1:].tolist() == Z[2, 1:].tolist() == [0.0, 0.0]  # unseen, and missing where none was
    x = table["x"].to_numpy()
    assert Z[1, 0] == pytest.approx((np.median(x) - x.mean()) / x.std())
    with pytest.raises(
        InputError, match="the table has no column 'c', which the model was trained on: it has 'x'"
    ):
        features.transform(table.select("x"))
    with pytest.raises(InputTypeError, match=r"column 'x' held numbers .* and has 'many' in row 2"):
        features.transform(pl.DataFrame({"x": ["1", "many"], "c": ["a", "b"]}))
    with pytest.raises(InputTypeError, match=r"column 'x' held numbers .* and has 'many' in row 2"):
        features.transform(pl.DataFrame({"x": ["1,5", "many"], "c": ["a", "b"]}))  # decimals with a comma
    for flags in ([True, False], [True, None]):
        with pytest.raises(InputTypeError, match=r"column 'x' held numbers .* and has true in row 1"):
            features.transform(pl.DataFrame({"x": flags, "c": ["a", "b"]}))
    with pytest.raises(InputError, match="column 'x' is infinite in row 1"):
        features.transform(pl.DataFrame({"x": [np.inf, 1.0], "c": ["a", "b"]}))


def test_dates_that_became_text(rng):
    table = pl.DataFrame({"when": [datetime(2020, 1, 1) + timedelta(days=i * i) for i in range(30)]})
    features = TableFeatures().fit(table)
    with pytest.raises(InputTypeError, match=r"column 'when' held dates .* and has 'soon' in row 1"):
        features.transform(pl.DataFrame({"when": ["soon"]}))
    assert np.isfinite(features.transform(pl.DataFrame({"when": [None, None]}))).all()


def test_rare_categories_share_a_column():
    labels = ["a"] * 50 + ["b"] * 30 + ["c", "d", "e"]
    table = pl.DataFrame({"c": labels, "x": np.arange(83.0) ** 2})
    features = TableFeatures().fit(table)
    assert features.get_feature_names_out().tolist() == ["c = a", "c = b", "c is rare", "x"]
    assert features.transform(table)[-3:, :3].tolist() == [[0, 0, 1]] * 3
    assert len(TableFeatures(most=1, least=1).fit(table).get_feature_names_out()) == 3


def test_numbers_that_name_categories():
    """A column of words in which one file has only numbers."""
    table = pl.DataFrame({"c": ["1", "x"] * 20, "v": np.arange(40.0) ** 2})
    features = TableFeatures().fit(table)
    assert features.transform(pl.DataFrame({"c": [1, 1], "v": [0.0, 1.0]}))[:, 0].tolist() == [1.0, 1.0]


def test_what_cannot_be_features():
    with pytest.raises(InputError, match=r"no column can tell rows apart .'a': it is 1 in every row"):
        TableFeatures().fit(pl.DataFrame({"a": [1, 1, 1]}))
    with pytest.raises(InputError, match="more than one column 'a'"):
        TableFeatures().fit(pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]))
    with pytest.raises(InputError, match="no rows or no columns"):
        TableFeatures().fit(pl.DataFrame({"a": []}))
    for bad in (None, "text", [[1, 2], [3]]):
        with pytest.raises(InputError):
            TableFeatures().fit(bad)


# --- texts and sets ------------------------------------------------------------------------------------


def texts(rng, n=60):
    good, bad = ["fine", "lovely", "great"], ["awful", "poor", "broken"]
    y = np.arange(n) % 2
    words = [
        " ".join(rng.choice(good if label else bad, 4)) + f" item {i} from shop" for i, label in enumerate(y)
    ]
    return pl.DataFrame(
        {"comment": words, "x": rng.normal(size=n), "tags": [["a", "b"][: 1 + i % 2] for i in y]}
    ), y


def test_texts_get_kernels_of_their_own(rng):
    table, _ = texts(rng)
    features = TableFeatures().fit(table)
    assert features.objects_ == ["comment", "tags"]
    Z = features.transform(table)
    assert Z.dtype == object
    assert Z.shape == (60, 3)
    kernel = features.kernel(Gaussian(sigma=1.0)).resolve(Z)
    K = kernel(Z)
    assert np.allclose(np.diag(K), 3.0)
    x = table["x"].to_numpy()
    z = (x - x.mean()) / x.std()
    of_numbers = Gaussian(sigma=1.0)(z[:, None])
    of_texts = features.object_kernels_[0].resolve(table["comment"].to_list())(table["comment"].to_list())
    of_sets = features.object_kernels_[1](table["tags"].to_list())
    assert np.allclose(K, of_numbers + of_texts + of_sets)
    weighted = features.kernel(Gaussian(sigma=1.0), weight=2.0).resolve(Z)
    assert np.allclose(weighted(Z), of_numbers + 2 * of_texts + 2 * of_sets)


def test_a_model_learns_from_texts_and_survives_its_file(rng, tmp_path):
    pytest.importorskip("skops")
    table, y = texts(rng)
    model = TableModel(SVC(kernel=Gaussian(sigma=1.0))).fit(table.drop("tags"), y)
    new, truth = texts(np.random.default_rng(5), 20)
    assert (model.predict(new) == truth).all()
    model.about_ = {"target": "y", "interval": [0.0, 0.1]}
    save(model, tmp_path / "m.mercer")
    again = load(tmp_path / "m.mercer")
    assert again.about_ == model.about_
    assert np.array_equal(again.decision_function(new), model.decision_function(new))


def test_mixed_columns_survive_a_file(columns, tmp_path):
    pytest.importorskip("skops")
    frame = pl.DataFrame(columns, nan_to_null=True)
    y = frame["size"].to_numpy() + (frame["city"] == "Rome").to_numpy()
    model = TableModel(KernelRidge(0.1, kernel=Gaussian(sigma=2.0))).fit(frame, y)
    save(model, tmp_path / "m.mercer")
    assert np.array_equal(load(tmp_path / "m.mercer").predict(frame), model.predict(frame))
    assert is_regressor(model)
    assert is_regressor(clone(model))
    assert is_classifier(TableModel(SVC()))
    assert not hasattr(model, "predict_proba")
    assert model.score(frame, y) > 0.9


def test_sparse_files_with_other_widths(tmp_path, rng):
    """LIBSVM does not write zeros: a new file may have fewer columns, or more."""
    (tmp_path / "a.libsvm").write_text("".join(f"{i % 2} {1 + i % 2}:1 {3 + i % 3}:2\n" for i in range(40)))
    table = read_table(tmp_path / "a.libsvm")
    X, y = table.frame.drop("target"), table.labels.astype(int)
    dense, sparse = TableModel(SVC()).fit(X, y), TableModel(SVC()).fit(table.matrix, y)
    (tmp_path / "b.libsvm").write_text("0 1:1\n0 2:1\n0 2:1 99:7\n")
    new = read_table(tmp_path / "b.libsvm")
    assert dense.predict(new).tolist() == sparse.predict(new).tolist() == [0, 1, 1]
    (tmp_path / "c.csv").write_text("x1,x2\n1,2\n")
    with pytest.raises(InputError, match="is no LIBSVM file"):
        sparse.predict(read_table(tmp_path / "c.csv"))


def test_labels_that_are_equal_as_python_sees_them():
    """1 and True are one key of a dict, and two categories; 1, 1.0 and "1" are one category."""
    column = np.array([1, True, "1", 1.0, False, 0, None, True], dtype=object)
    encoder = CategoryColumn.learn(column, "x", 50, 1)
    assert encoder.categories == ["0", "1", "false", "true"]
    expected = [[0, 1, 0, 0, 0], [0, 0, 0, 1, 0], [0, 1, 0, 0, 0], [0, 1, 0, 0, 0]]
    expected += [[0, 0, 1, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 1], [0, 0, 0, 1, 0]]
    assert encoder(column).tolist() == expected
    assert encoder.unseen(np.array(["2", 1, None, "2", "TRUE", "False"], dtype=object)) == ["2"]


def test_kernels_on_columns_by_name():
    frame = pl.DataFrame({"a": [1.0, 2.0, 4.0, 3.0], "b": ["u", "v", "u", "v"], "same": [1] * 4})
    features = TableFeatures().fit(frame)
    kernel = Gaussian(sigma=1.0).on("b") + Gaussian(sigma=2.0).on("a", 1)
    assert repr(features.by_position(kernel)) == (
        "Gaussian(sigma=1.0).on(1, 2) + Gaussian(sigma=2.0).on(0, 1)"
    )
    assert repr(kernel).startswith("Gaussian(sigma=1.0).on('b')")
    with pytest.raises(
        InputError, match="'same', which has no features: it is 1 in every row; there are 'a'"
    ):
        features.by_position(Gaussian().on("same"))
    y = np.array([1.0, 2.0, 1.0, 2.0])
    model = TableModel(KernelRidge(1e-6, kernel=Gaussian(sigma=1.0).on("b"))).fit(frame, y)
    assert np.allclose(model.predict(frame[::-1]), y[::-1], atol=1e-3)


def test_features_stay_in_the_memory_budget():
    frame = pl.DataFrame({"x": np.arange(2000) % 7, "c": [str(i % 40) for i in range(2000)]})
    features = TableFeatures().fit(frame)
    with config(memory="500KiB"), pytest.raises(MemoryBudgetError, match="a table of 2,000 × 41 features"):
        features.transform(frame)


def test_numbers_too_large_to_be_squared():
    with pytest.raises(InputError, match=r"column 'x' is -1e\+200, too large to be squared, in row 2"):
        TableFeatures().fit(pl.DataFrame({"x": [1.0, -1e200, 3.0]}))


def test_wide_tables_stay_small_in_files(tmp_path):
    """What was learned of a column is a row of plain values there, and not an object with a node for each."""
    pytest.importorskip("skops")
    import mercer

    X = np.random.default_rng(0).normal(size=(5, 300))
    features = TableFeatures().fit(X)
    mercer.save(features, tmp_path / "f.mercer")
    assert (tmp_path / "f.mercer").stat().st_size < 300 * 400
    assert np.array_equal(mercer.load(tmp_path / "f.mercer").transform(X), features.transform(X))


def test_features_of_earlier_files_are_read():
    """They hold the encoders themselves."""
    X = np.array([[1.0, "a"], [2.0, "b"], [4.0, "a"], [7.0, "b"]], dtype=object)
    features = TableFeatures().fit(X)
    Z, encoders = features.transform(X), features.encoders_
    del features.recipes_
    vars(features)["encoders_"] = encoders
    assert np.array_equal(features.transform(X), Z)


@pytest.mark.parametrize("library", ["numpy", "pandas", "polars"])
def test_many_columns_at_once_are_what_they_are_one_by_one(library):
    rng = np.random.default_rng(5)
    n = 120
    table = {
        "normal": rng.normal(size=n),
        "heavy": np.exp(2 * rng.normal(size=n)),
        "heavy, many zeros": np.where(rng.random(n) < 0.2, 0.0, np.exp(2 * rng.normal(size=n))),
        "gaps": np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
        "heavy, gaps": np.where(rng.random(n) < 0.3, np.nan, np.exp(2 * rng.normal(size=n))),
        "one value and gaps": np.where(rng.random(n) < 0.5, np.nan, 2.0),
        "whole": rng.integers(0, 40, n).astype(float),
        "constant": np.full(n, 3.0),
        "empty": np.full(n, np.nan),
        "row": np.arange(1.0, n + 1),
    }
    if library == "numpy":
        X = np.column_stack(list(table.values()))
        names = [f"x{j + 1}" for j in range(len(table))]
    else:
        frames = pytest.importorskip(library)
        X, names = frames.DataFrame(table), list(table)
    features = TableFeatures().fit(X)
    assert [features.kinds_[name] for name in names] == ["number"] * 7 + ["constant", "empty", "id"]
    assert features.left_out_[names[7]] == "it is 3.0 in every row"
    apart = [NumberColumn.learn(x, name) for name, x in zip(names[:7], table.values(), strict=False)]
    assert [bool(column.unit) for column in apart] == [False, True, True, False, True, False, False]
    assert [column.name for column in features.encoders_] == names[:7]
    one_by_one = np.column_stack(
        [column(x) for column, x in zip(apart, list(table.values())[:7], strict=True)]
    )
    # sums in another order: some roundings of n numbers
    np.testing.assert_allclose(features.transform(X), one_by_one, rtol=0, atol=1e-12)
    with_gaps = table["gaps"][~np.isnan(table["gaps"])]
    assert (apart[3].median, apart[3].mean) == pytest.approx((np.median(with_gaps), with_gaps.mean()), 1e-12)
    assert apart[3].spread == pytest.approx(with_gaps.std(), 1e-12)


def test_whole_numbers_too_large_for_floats_are_told_apart():
    ids = np.int64(2**60) + np.arange(50)
    features = TableFeatures().fit(pd.DataFrame({"customer_id": ids, "x": ids[::-1] % 7}))
    assert features.kinds_ == {"customer_id": "id", "x": "number"}


def test_a_very_wide_table_is_no_call_per_column(monkeypatch):
    import mercer.tables.view as view

    asked = []
    monkeypatch.setattr(view, "values", lambda table, j: asked.append(j))
    X = np.random.default_rng(0).normal(size=(12, 10_000))
    Z = TableFeatures().fit(X, np.arange(12.0)).transform(X)
    assert Z.shape == X.shape and not asked
