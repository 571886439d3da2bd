"""Whole numbers that are names of categories, told by what they say of the target."""

import numpy as np
import pytest

from mercer import Gaussian, KernelRidge
from mercer.tables import TableFeatures, TableModel, read_table
from mercer.tables.codes import _ratio, are_names


def test_names_and_quantities(rng):
    n = 3000
    x = rng.integers(0, 12, n)
    noise = rng.normal(size=n)
    effect = np.tile([2.0, -2.0], 6)  # neighbours differ
    assert are_names(x, effect[x] + noise)
    assert are_names(x, np.where(effect[x] + noise > 0, "yes", "no"))
    for smooth in (x, -x, (x - 5.5) ** 2, np.sin(x / 3), x > 6):
        y = 3 * (smooth - np.mean(smooth)) / np.std(smooth) + noise
        assert not are_names(x, y)
        assert not are_names(x, (y > 0).astype(int))


def test_what_says_nothing_stays_a_number(rng):
    """The chance that noise makes a name of a column is that of the analysis of variance, 1 in 10,000."""
    found = [are_names(rng.integers(0, 10, 400), rng.normal(size=400)) for _ in range(300)]
    assert sum(found) <= 1


def test_too_few_too_many_and_fractions(rng):
    n = 2000
    for x in (rng.integers(0, 3, n), rng.integers(0, 200, n), rng.integers(0, 10, n) + 0.5):
        y = rng.normal(size=500)[(x * 7).astype(int) % 500] * 5
        assert not are_names(x, y)
    assert not are_names(np.arange(8), np.arange(8.0))


def test_a_quantity_with_few_rows_of_each_value_stays_one(rng):
    """Twenty rows each leave means so rough that a smooth quantity looks like names now and then."""
    for _ in range(30):
        x = np.round(rng.normal(20, 6, 660)).clip(1, 33)
        y = (np.sin(x / 4) + rng.normal(size=660) > 0).astype(int)
        assert not are_names(x, y)


def test_the_ratio_is_that_of_von_neumann(rng):
    """2 on average for values in no order, by its definition; less for a trend."""
    means = rng.normal(size=(20_000, 1))
    none = np.zeros(len(means))
    assert _ratio(means, none) == pytest.approx(2.0, abs=0.1)
    assert _ratio(np.sort(means, axis=0), none) < 0.01


def test_codes_become_categories_and_help(rng):
    n = 600
    code, size = rng.integers(0, 9, n).astype(float), rng.integers(0, 9, n).astype(float)
    y = np.array([5, -3, 4, -5, 1, -4, 3, -1, 6.0])[code.astype(int)] + 0.5 * size
    table = np.column_stack([code, size])
    features = TableFeatures().fit(table, y)
    assert features.kinds_ == {"x1": "category", "x2": "number"}
    assert TableFeatures(codes=False).fit(table, y).kinds_ == {"x1": "number", "x2": "number"}
    assert TableFeatures().fit(table).kinds_ == {"x1": "number", "x2": "number"}  # no target, no judgement
    ridge = KernelRidge(0.1, kernel=Gaussian(sigma=2.0))
    train, test = slice(0, 300), slice(300, n)
    errors = [
        np.abs(
            TableModel(ridge, TableFeatures(codes=c)).fit(table[train], y[train]).predict(table[test])
            - y[test]
        ).mean()
        for c in (True, False)
    ]
    assert errors[0] < errors[1] / 2


@pytest.mark.data
def test_adult_has_seven_columns_of_codes(data_dir):
    """Which of its columns were words before they were coded is known."""
    frame = read_table(data_dir / "tables" / "adult.tsv.gz").frame
    features = TableFeatures().fit(frame.drop("target"), frame["target"].to_numpy())
    found = {name for name, kind in features.kinds_.items() if kind == "category"}
    words = {
        "workclass",
        "education",
        "marital-status",
        "occupation",
        "relationship",
        "race",
        "native-country",
    }
    assert found == words
