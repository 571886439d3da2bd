"""Pictures of models behind features of tables: the features stay, and columns count as a whole."""

import numpy as np
import pytest

from mercer import SVC, Gaussian, KernelRidge
from mercer.plots import LearningCurveDisplay, RelevanceDisplay
from mercer.plots.learned import learned, refittable
from mercer.plots.style import new_figure
from mercer.tables import TableFeatures, TableModel

pd = pytest.importorskip("pandas")


@pytest.fixture
def table(rng):
    """A number, and a category of which four values are in two rows each."""
    city = np.array(["Rome", "Oslo"] * 30 + ["a", "a", "b", "b", "c", "c", "d", "d"], dtype=object)
    return pd.DataFrame({"age": rng.normal(size=68), "city": city})


def test_scales_keep_the_features_they_belong_to(table):
    y = table["age"].to_numpy() > 0
    features = TableFeatures().fit(table)
    scales = np.linspace(1.0, 3.0, len(features.sources()))
    model = TableModel(SVC(kernel=Gaussian(sigma=scales))).fit(table, y).as_pipeline()
    assert learned(model).sources == ["age", *["city"] * 6]
    assert learned(model).has_own_features
    fresh, points = refittable(model, table)
    some = np.arange(20)  # of which two cities are
    np.testing.assert_array_equal(points, features.transform(table))
    assert fresh.fit(points[some], y[some]).predict(points).shape == (68,)
    shown = LearningCurveDisplay.from_estimator(model, table, y, ax=new_figure()[1])
    assert np.isfinite(shown.test).all()


def test_other_kernels_are_fitted_again_with_their_features(table):
    """A width from the data goes with the steps of the pipeline, that each part of the rows learns anew."""
    y = table["age"].to_numpy()
    model = TableModel(KernelRidge(kernel=Gaussian(sigma=1.0))).fit(table, y).as_pipeline()
    assert not learned(model).has_own_features
    fresh, points = refittable(model, table)
    assert points is table
    assert [name for name, _ in fresh.steps] == ["features", "learner"]


def test_relevance_is_of_columns_of_the_table(table):
    y = np.where(table["city"] == "Rome", 1.0, 0.0)
    width = len(TableFeatures().fit(table).sources())
    for scales, kind in (
        (np.full(width, 2.0), "permutation"),
        (np.geomspace(9.0, 0.3, width), "length scales"),
    ):
        model = TableModel(KernelRidge(kernel=Gaussian(sigma=scales))).fit(table, y).as_pipeline()
        shown = RelevanceDisplay.from_estimator(model, table, y, ax=new_figure()[1])
        assert (shown.kind, shown.names) == (kind, ("age", "city"))
        assert shown.order()[0] == 1
    Z = model[0].transform(table)
    moved = Z.std(axis=0) / scales
    np.testing.assert_allclose(shown.relevance, [moved[0], np.linalg.norm(moved[1:])])


def test_relevance_with_names_of_an_array():
    X = np.array([[float(i % 7), "ab"[i % 2]] for i in range(40)], dtype=object)
    y = np.arange(40) % 2.0
    model = TableModel(KernelRidge(kernel=Gaussian(sigma=[9.0, 0.5, 0.5]))).fit(X, y).as_pipeline()
    shown = RelevanceDisplay.from_estimator(model, X, y, names=["time", "letter"], ax=new_figure()[1])
    assert [shown.names[j] for j in shown.order()] == ["letter", "time"]
