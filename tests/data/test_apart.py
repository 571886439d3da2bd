"""Folds of groups and of times."""

from datetime import date, datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.data.apart import Groups, Times, apart_of
from mercer.errors import InputError

codes = st.lists(st.integers(0, 9), min_size=6, max_size=60)


@given(codes, st.integers(2, 5), st.integers(0, 3))
def test_folds_of_groups_test_each_row_once_and_no_group_twice(column, parts, seed):
    groups, column = Groups.of(column, len(column)), np.array(column)
    if groups.count < parts:
        with pytest.raises(InputError, match=f"{parts} folds of {groups.count} group"):
            groups.folds(parts, seed)
        return
    labels = column % 2
    for given_labels in (None, labels):
        folds = groups.folds(parts, seed, given_labels)
        assert len(folds) == parts
        assert sorted(np.concatenate([test for _, test in folds]).tolist()) == list(range(len(column)))
        for train, test in folds:
            assert len(test) > 0 and len(train) + len(test) == len(column)
            assert not set(column[train]) & set(column[test])


@given(codes, st.integers(2, 5))
def test_folds_of_times_predict_later_rows_from_all_earlier_ones(column, parts):
    times, column = Times.of(column, len(column)), np.array(column)
    if times.count == 1:
        with pytest.raises(InputError, match="none is after another"):
            times.folds(parts)
        return
    folds = times.folds(parts)
    assert 1 <= len(folds) <= parts
    for train, test in folds:
        assert column[train].max() < column[test].min()
        np.testing.assert_array_equal(train, np.flatnonzero(column < column[test].min()))
    last = np.concatenate([test for _, test in folds])
    assert column.max() in column[folds[-1][1]] and len(np.unique(last)) == len(last)


@given(codes, st.integers(0, 3))
def test_sides_and_what_is_held_out(column, seed):
    n, column = len(column), np.array(column)
    for apart in (Groups.of(column, n), Times.of(column, n)):
        if apart.count < 4:
            with pytest.raises(InputError, match="a search takes 4 or more"):
                apart.sides(seed)
            continue
        first = apart.sides(seed)
        assert not set(column[first]) & set(column[~first])
        order, held = apart.held(np.random.default_rng(seed).permutation(n), 3, seed)
        assert sorted(order.tolist()) == list(range(n)) and 0 < held < n
        assert not set(column[order[:-held]]) & set(column[order[-held:]])
        if apart.is_ordered:
            assert column[first].max() < column[~first].min()
            assert len(set(column[~first])) >= 2
            assert column[order[:-held]].max() < column[order[-held:]].min()


def test_folds_of_groups_have_their_share_of_rows_and_classes(rng):
    codes = rng.integers(0, 60, 600)
    labels = (codes % 3 == 0).astype(int)
    sizes = [len(test) for _, test in Groups(codes).folds(5)]
    assert max(sizes) - min(sizes) <= 2
    shares = [labels[test].mean() for _, test in Groups(codes).folds(5, 0, labels)]
    assert np.ptp(shares) < 0.04  # A group more or less of about 120 rows in 10 groups would be 0.08.


@pytest.mark.parametrize(
    "column",
    [
        ["2026-01-02", "2026-01-01", "2026-01-02"],
        ["2026-01-02T10:00", "2026-01-02", "2026-01-02 10:00:00"],
        [date(2026, 1, 2), date(2026, 1, 1), datetime(2026, 1, 2)],
        np.array(["2026-01-02", "2026-01-01", "2026-01-02"], dtype="datetime64[ns]"),
        [2.0, -np.inf, 2],
        pd.Series(pd.to_datetime(["2026-01-02", "2026-01-01", "2026-01-02"])),
    ],
)
def test_dates_numbers_and_texts_are_times(column):
    assert Times.of(column, 3).codes.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"groups": [1, None, 2]}, "groups is missing in row 2: fill it in, or leave such rows out"),
        ({"times": [1.0, np.nan, 2]}, "times is missing in row 2"),
        (
            {"times": np.array(["2026-01-01", "NaT", "2026-01-01"], dtype="datetime64[s]")},
            "times is missing in row 2",
        ),
        (
            {"times": ["2026-01-01", "soon", "2026-01-01"]},
            "times holds 'soon' in row 2, which is no time: write",
        ),
        (
            {"times": [1, "2026-01-01", 2]},
            "times holds '2026-01-01' in row 2, which is no time: write numbers",
        ),
        ({"times": [1, True, 2]}, "times holds True in row 2, which is no time"),
        ({"times": ["2026-01-01", "2026-01-01T00:00+01:00", "2026-01-01"]}, "with and without a zone"),
        (
            {"groups": [1, 2]},
            r"groups must hold one value for each of 3 points, got shape \(2,\): pass an array",
        ),
        ({"groups": "abc"}, "groups must hold one value for each of 3 points, got 'abc'"),
        (
            {"groups": [1, 2, 3], "times": [1, 2, 3]},
            "groups and times are both given, and folds are by one of",
        ),
    ],
)
def test_refusals(options, said):
    with pytest.raises(InputError, match=said):
        apart_of(options.get("groups"), options.get("times"), 3)
