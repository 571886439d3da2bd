"""Rows that a solver keeps: always K's, in no more memory than allowed, the least recently used go first."""

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mercer import Gaussian, Gram
from mercer.solvers.svm.rows import KeptRows


class Matrix:
    """A matrix that writes down what it is asked for."""

    def __init__(self, values):
        self.whole = values
        self.shape, self.dtype = values.shape, values.dtype
        self.asked = []  # (point, start, stop)

    def columns_asked(self):
        return sum(stop - start for _, start, stop in self.asked)

    def dense(self, out):
        assert out.shape == self.shape
        self.asked += [(point, 0, self.shape[1]) for point in range(self.shape[0])]
        out[:] = self.whole

    def write_rows(self, index, columns, out, places):
        start, stop = columns
        assert stop > start and len(index) == len(places) > 0
        self.asked += [(int(point), start, stop) for point in index]
        out[places, start:stop] = self.whole[index, start:stop]


def store(n, slots, cuts=(), dtype=np.float64):
    """A store for some rows of an n × n matrix."""
    K = Matrix(np.random.default_rng(n).normal(size=(n, n)).astype(dtype))
    bounds = np.array([0, *cuts, n])
    return K, KeptRows(K, bounds, slots * row_bytes(n, dtype))


def row_bytes(n, dtype=np.float64):
    """Bytes of a row that ends where a cache line does."""
    return -(-n * np.dtype(dtype).itemsize // 64) * 64


def check(K, kept, points, segments=None):
    places = kept.places(points)
    assert (places >= 0).all() and len(set(places)) == len(points)
    for row, (point, place) in enumerate(zip(points, places, strict=True)):
        for s, (start, stop) in enumerate(zip(kept.bounds[:-1], kept.bounds[1:], strict=True)):
            if segments is None or segments[row, s]:
                np.testing.assert_array_equal(kept.values[place, start:stop], K.whole[point, start:stop])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 7, 8, 17, 40])
def test_rows_are_those_of_the_matrix(rng, n, dtype):
    K, kept = store(n, 5, dtype=dtype)
    for _ in range(30):
        points = rng.permutation(n)[: rng.integers(1, min(5, n) + 1)]
        kept.fetch(points)
        check(K, kept, points)


def test_rows_of_a_gram(rng):
    K = Gram(Gaussian(sigma=1.0), rng.normal(size=(30, 4)))
    kept = KeptRows(K, np.array([0, 11, 30]), 6 * row_bytes(30))
    dense = K.dense()
    for points in ([3, 1, 4], [29, 0], [3, 9, 2, 6, 5, 8], [1]):
        kept.fetch(np.array(points))
        # the same entry computed in another block differs by rounding
        np.testing.assert_allclose(kept.values[kept.places(np.array(points)), :30], dense[points], rtol=1e-13)


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_all_of_a_small_matrix_at_once(order):
    K, kept = store(12, 12, cuts=(5,))
    points = np.arange(12)[order]
    kept.fetch(points)
    check(K, kept, points)
    asked = len(K.asked)
    kept.fetch(np.array([3, 11]))
    assert len(K.asked) == asked


def test_what_is_there_is_not_computed_again():
    K, kept = store(20, 20)
    kept.fetch(np.array([3, 4, 5]))
    kept.fetch(np.array([5, 3]))
    kept.fetch(np.array([5, 7]))
    assert [point for point, *_ in K.asked] == [3, 4, 5, 7]
    assert K.columns_asked() == 4 * 20


def test_the_least_recently_used_leave():
    K, kept = store(20, 4)
    kept.fetch(np.array([0, 1, 2, 3]))
    kept.fetch(np.array([0]))
    kept.fetch(np.array([2]))
    kept.fetch(np.array([8]))  # of 1 and 3, one leaves
    assert (kept.places(np.array([0, 2, 8])) >= 0).all()
    assert sorted(kept.places(np.array([1, 3])) >= 0) == [False, True]
    kept.fetch(np.array([9]))  # the other one
    assert (kept.places(np.array([1, 3])) < 0).all()
    kept.fetch(np.array([10]))  # then 0, asked for before 2
    assert kept.places(np.array([0, 2, 8, 9, 10])).tolist()[0] == -1
    check(K, kept, np.array([2, 8, 9, 10]))


def test_those_asked_for_now_never_make_room():
    K, kept = store(20, 4)
    kept.fetch(np.array([0, 1, 2, 3]))
    kept.fetch(np.array([3, 7, 0, 8]))
    check(K, kept, np.array([3, 7, 0, 8]))
    assert [point for point, *_ in K.asked] == [0, 1, 2, 3, 7, 8]


def test_segments_are_computed_when_they_are_needed():
    K, kept = store(30, 30, (10, 18))
    points = np.array([4, 20])
    kept.fetch(points, np.array([[True, False, False], [True, False, True]]))
    assert sorted(K.asked) == [(4, 0, 10), (20, 0, 10), (20, 18, 30)]
    assert K.columns_asked() == 10 + 10 + 12
    check(K, kept, points, np.array([[True, False, False], [True, False, True]]))
    K.asked.clear()
    kept.fetch(points, np.array([[True, True, True], [True, False, True]]))
    assert sorted(K.asked) == [(4, 10, 18), (4, 18, 30)] or sorted(K.asked) == [(4, 10, 30)]
    check(K, kept, points[:1])
    assert K.columns_asked() == 8 + 12


def test_segments_wanted_together_are_computed_together():
    K, kept = store(30, 30, (10, 18))
    kept.fetch(np.array([1, 2]))
    assert K.asked == [(1, 0, 30), (2, 0, 30)]


def test_a_slot_that_changes_hands_keeps_no_segment_of_its_last_row():
    K, kept = store(30, 1, (10, 18))
    kept.fetch(np.array([5]))
    kept.fetch(np.array([6]), np.array([[True, False, False]]))
    kept.fetch(np.array([6]), np.array([[False, True, True]]))
    check(K, kept, np.array([6]))
    assert kept.places(np.array([5]))[0] == -1


def test_empty_segments():
    K, kept = store(12, 3, (5, 5))
    kept.fetch(np.array([2, 3]))
    check(K, kept, np.array([2, 3]))


@pytest.mark.parametrize("capacity", [0, 1, 639, 640, 641, 64_000, 10**9])
def test_capacity_is_in_bytes(capacity):
    """A row of 80 float64 takes 640 bytes; there is always room for one, and never for more than all."""
    K = Matrix(np.zeros((80, 80)))
    kept = KeptRows(K, np.array([0, 80]), capacity)
    assert kept.slots == min(80, max(1, capacity // 640))
    assert kept.values.shape == (kept.slots, 80)
    assert kept.values.ctypes.data % 64 == 0


def test_the_store_grows_only_when_it_gave_up_too_much(monkeypatch):
    monkeypatch.setattr(KeptRows, "first", 8 * row_bytes(64))
    K, kept = store(64, 40)
    assert (kept.slots, kept.limit) == (40, 8)
    for point in range(64):  # each once: new memory would not help
        kept.fetch(np.array([point]))
    assert kept.limit == 8
    for point in range(64):  # all again: it would have
        kept.fetch(np.array([point]))
    assert kept.limit == 40
    for point in range(64):
        kept.fetch(np.array([point]))
        check(K, kept, np.array([point]))
    assert kept.limit == 40


def test_the_store_grows_at_once_for_a_request_that_is_larger(monkeypatch):
    monkeypatch.setattr(KeptRows, "first", 4 * row_bytes(64))
    K, kept = store(64, 40)
    kept.fetch(np.arange(3))
    kept.fetch(np.arange(2, 33))
    assert 31 <= kept.limit <= 40
    check(K, kept, np.arange(2, 33))


def test_memory_is_touched_only_up_to_the_limit(monkeypatch):
    monkeypatch.setattr(KeptRows, "first", 8 * row_bytes(64))
    _, kept = store(64, 40)
    kept.values[:] = np.nan
    for point in range(64):
        kept.fetch(np.array([point]))
    touched = ~np.isnan(kept.values).all(axis=1)
    assert touched.sum() == 8


class Machine(RuleBasedStateMachine):
    """Any order of requests, beside a model: the points by when they were last asked for."""

    @initialize(
        n=st.integers(1, 24),
        slots=st.integers(1, 30),
        first=st.integers(1, 30),
        cuts=st.lists(st.integers(0, 24), max_size=3),
        dtype=st.sampled_from([np.float64, np.float32]),
    )
    def make(self, n, slots, first, cuts, dtype):
        previous, KeptRows.first = KeptRows.first, first * row_bytes(n, dtype)
        try:
            self.K, self.kept = store(n, slots, sorted(min(cut, n) for cut in cuts), dtype)
        finally:
            KeptRows.first = previous
        self.n, self.most = n, min(n, slots)
        self.order = []  # least recently used first, a list of points per request
        assert self.kept.slots == self.most

    @rule(data=st.data())
    def ask(self, data):
        size = data.draw(st.integers(1, self.most))
        points = np.array(data.draw(st.permutations(range(self.n)))[:size])
        count = len(self.kept.bounds) - 1
        wanted = None
        if data.draw(st.booleans()):
            row = st.lists(st.booleans(), min_size=count, max_size=count)
            wanted = np.array(data.draw(st.lists(row, min_size=size, max_size=size))).reshape(size, count)
        before = {int(p) for p in range(self.n) if self.kept.places(np.array([p]))[0] >= 0}
        self.K.asked.clear()
        self.kept.fetch(points, wanted)
        check(self.K, self.kept, points, wanted)
        after = {int(p) for p in range(self.n) if self.kept.places(np.array([p]))[0] >= 0}
        self.order = [[p for p in request if p not in points] for request in self.order] + [points.tolist()]
        # whoever left was asked for no later than anyone who stayed
        age = {p: when for when, request in enumerate(self.order) for p in request}
        left = before - after
        stayed = (before & after) - set(points.tolist())
        assert max((age[p] for p in left), default=-1) <= min((age[p] for p in stayed), default=10**9)

    @invariant()
    def memory_is_bounded_and_rows_are_apart(self):
        if not hasattr(self, "kept"):
            return
        places = self.kept.places(np.arange(self.n))
        there = places[places >= 0]
        assert len(set(there)) == len(there) <= self.kept.limit <= self.kept.slots
        assert there.max(initial=-1) < self.kept.limit


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
