"""`AutoKernel*` on data frames with numbers, categories, dates and texts."""

import numpy as np
import pytest

import mercer
from mercer.selection.auto import is_mixed_frame

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")

pytestmark = pytest.mark.usefixtures("cpu_clock")  # a limit is of work, on a busy machine too

N = 60


@pytest.fixture
def columns():
    rng = np.random.default_rng(0)
    return {
        "size": rng.normal(size=N),
        "city": rng.choice(["Rome", "Oslo"], N),
        "when": np.datetime64("2026-01-01") + rng.integers(0, 300, N).astype("timedelta64[D]"),
    }


@pytest.fixture(params=["pandas", "polars"])
def frame_of(request):
    library = {"pandas": pandas, "polars": polars}[request.param]
    return library.DataFrame


def target(columns):
    return columns["size"] + 3.0 * (columns["city"] == "Oslo")


def test_the_names_are_public():
    from mercer.selection import AutoKernelClassifier, AutoKernelRegressor

    assert mercer.AutoKernelRegressor is AutoKernelRegressor
    assert mercer.AutoKernelClassifier is AutoKernelClassifier
    assert {"AutoKernelClassifier", "AutoKernelRegressor"} <= set(dir(mercer))


@pytest.mark.sample(2)
def test_a_regressor_takes_them(columns, frame_of):
    X, y = frame_of(columns), target(columns)
    model = mercer.AutoKernelRegressor(max_time=20).fit(X, y)
    assert model.n_features_in_ == 3 and model.features_.kinds_["city"] == "category"
    assert np.sqrt(np.mean((model.predict(X) - y) ** 2)) < 0.3 * np.std(y)
    new = frame_of({name: columns[name][:2] for name in ("when", "city", "size")})  # in another order
    assert np.allclose(model.predict(new), model.predict(X)[:2])


@pytest.mark.sample(2)
def test_a_classifier_takes_them_with_gaps_and_texts(columns, frame_of):
    texts = [
        ("good and cheap" if big else "bad and dear") + f" number {i}"
        for i, big in enumerate(columns["size"] > 0)
    ]
    columns = {"city": [None, *columns["city"][1:]], "said": texts}
    y = np.where(np.arange(N) % 2 == 0, "even", "odd")
    y[:] = ["yes" if "cheap" in text else "no" for text in texts]
    model = mercer.AutoKernelClassifier(max_time=10).fit(frame_of(columns), y)
    assert model.features_.objects_ == ["said"]
    assert model.score(frame_of(columns), y) > 0.9


def test_numbers_alone_stay_as_they_are(columns, frame_of):
    X = frame_of({"a": columns["size"], "b": columns["size"] > 0})
    assert not is_mixed_frame(X)
    model = mercer.AutoKernelRegressor("rbf").fit(X, target(columns))
    assert not hasattr(model, "features_")


@pytest.mark.sample(2)
def test_a_column_that_is_missing_is_named(columns, frame_of):
    model = mercer.AutoKernelRegressor(max_time=2).fit(frame_of(columns), target(columns))
    with pytest.raises(ValueError, match="the table has no column 'city'"):
        model.predict(frame_of({name: columns[name] for name in ("size", "when")}))


@pytest.mark.sample(2)
def test_a_model_file_keeps_the_features(columns, frame_of, tmp_path):
    pytest.importorskip("skops")
    X = frame_of(columns)
    model = mercer.AutoKernelRegressor(max_time=2).fit(X, target(columns))
    mercer.save(model, tmp_path / "m.mercer")
    assert np.array_equal(mercer.load(tmp_path / "m.mercer").predict(X), model.predict(X))
