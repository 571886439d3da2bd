"""Rows that are kept: what the store keeps, what it forgets, what it never computes twice."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.runtime.row_store import RowStore

MATRIX = np.arange(200.0).reshape(20, 10)


class Source:
    def __init__(self):
        self.asked = []

    def __call__(self, index):
        self.asked.extend(index.tolist())
        return MATRIX[index]


@given(st.lists(st.lists(st.integers(0, 19), max_size=6), max_size=12), st.integers(0, 8))
def test_always_the_right_rows_and_never_too_many(requests, slots):
    store, source = RowStore(10, np.float64, slots * 80), Source()
    for request in requests:
        index = np.array(request, dtype=np.int64)
        np.testing.assert_array_equal(store.fetch(index, source), MATRIX[index].reshape(len(index), 10))
        assert len(store) <= slots


def test_a_kept_row_is_not_computed_again():
    store, source = RowStore(10, np.float64, 3 * 80), Source()
    for request in ([1, 2], [2, 1], [1, 3], [2]):
        store.fetch(np.array(request), source)
    assert source.asked == [1, 2, 3]


def test_the_least_recently_used_leaves():
    store, source = RowStore(10, np.float64, 2 * 80), Source()
    for request in ([1], [2], [1], [3], [1], [2]):
        store.fetch(np.array(request), source)
    assert source.asked == [1, 2, 3, 2]


def test_a_repeated_row_is_computed_once():
    store, source = RowStore(10, np.float64, 2 * 80), Source()
    np.testing.assert_array_equal(store.fetch(np.array([4, 4, 4]), source), MATRIX[[4, 4, 4]])
    assert source.asked == [4]


@pytest.mark.parametrize("capacity", [0, 79])
def test_no_room_means_no_cache(capacity):
    store, source = RowStore(10, np.float64, capacity), Source()
    for _ in range(2):
        store.fetch(np.array([1]), source)
    assert source.asked == [1, 1]


def test_rows_that_were_computed_elsewhere_can_be_kept():
    store = RowStore(10, np.float64, 2 * 80)
    assert store.get(3) is None and 3 not in store
    store.keep(np.array([3, 4, 5]), MATRIX[[3, 4, 5]])
    assert (len(store), 3 in store) == (2, False)
    np.testing.assert_array_equal(store.get(4), MATRIX[4])
    store.keep(np.array([6]), MATRIX[[6]])  # 4 was asked for after 5 came
    assert (4 in store, 5 in store) == (True, False)
    empty = RowStore(10, np.float64, 0)
    empty.keep(np.array([3]), MATRIX[[3]])
    assert len(empty) == 0
