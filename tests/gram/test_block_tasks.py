"""Sums in any order of arrival, groups for very many rows, and tasks that can be sent."""

import pickle

import numpy as np
import pytest

from mercer import Gaussian, Gram
from mercer.gram import block_tasks
from mercer.gram.backends.numba.backend import NumbaBackend
from mercer.gram.block_tasks import KernelColumns, TreeSum
from mercer.gram.blocks import groups_of


def in_pairs(parts):
    """The same tree, written down: neighbours are added until one is left."""
    while len(parts) > 1:
        parts = [sum(parts[i + 1 : i + 2], parts[i]) for i in range(0, len(parts), 2)]
    return parts[0]


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13, 64])
def test_the_order_of_arrival_does_not_change_a_bit(rng, count):
    parts = [rng.normal(size=3) * 10.0 ** rng.integers(-8, 8) for _ in range(count)]
    for _ in range(5):
        tree = TreeSum(count)
        for place in rng.permutation(count):
            tree.add(int(place), (parts[place],))
        assert np.array_equal(tree.total[0], in_pairs(parts))


def test_in_order_few_parts_wait():
    tree = TreeSum(1024)
    for place in range(1023):
        tree.add(place, (np.ones(1),))
        assert len(tree._waiting) <= 10
    tree.add(1023, (np.ones(1),))
    assert tree.total[0] == 1024 and not tree._waiting


def test_very_many_blocks_make_more_tasks_but_not_too_many():
    """Up to 6,144 blocks there are 48 tasks; a thousand workers would have some to do beyond 2.6e5 blocks."""
    assert len(groups_of(2_000_000, 2000)) == 48
    assert len(groups_of(20_000_000, 2000)) == pytest.approx(20e6 / (2**20 // 2000) / 128, rel=0.02)
    assert 2048 < len(groups_of(300_000_000, 2000)) <= 4096


def test_a_task_gives_the_same_after_it_was_sent(rng):
    X = rng.normal(size=(50, 3))
    columns = KernelColumns(Gaussian(1.0), X[:1], X[:7])
    here = block_tasks.diagonal(columns, X, [(0, 20), (20, 50)])
    there = pickle.loads(pickle.dumps(columns))
    for cuts in ([(0, 50)], [(0, 20), (20, 50)]):
        for (rows, K), (sent, L) in zip(columns.blocks(X, cuts), there.blocks(X, cuts), strict=True):
            assert rows == sent and np.array_equal(K, L)
            assert np.array_equal(K, Gram(Gaussian(1.0), X[rows], X[:7]).dense())
    assert np.array_equal(block_tasks.diagonal(there, X, [(0, 50)]), here)


def test_a_block_of_vectors_is_one_call_of_the_backend(rng, monkeypatch):
    """Each call waits for Python's lock: with twenty in a block sixteen threads were as slow as two."""
    X, calls = rng.normal(size=(900, 3)), []
    columns = KernelColumns(Gaussian(1.0), X[:1], X)
    monkeypatch.setattr(NumbaBackend, "_sweep", lambda *a, **o: calls.append(a))
    for _ in columns.blocks(X, [(0, 300), (300, 600), (600, 900)]):
        pass
    assert len(calls) == 3
