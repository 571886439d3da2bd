"""Tiles, and the verbs that every backend has for them."""

import inspect

import numpy as np
import pytest

from mercer import Gaussian, Gram, Subsequence, config
from mercer.gram.backends.base import Backend, Tile, cut
from mercer.gram.backends.numba import backend as numba_backend
from mercer.gram.backends.numpy import NumpyBackend


def test_a_tile_is_cut_into_strips_of_columns():
    tile = Tile("x", "y", (3, 5), (10, 21), True)
    assert tile.shape == (2, 11) and (tile.rows, tile.columns) == (slice(3, 5), slice(10, 21))
    assert [strip.j for strip in tile.strips(4)] == [(10, 14), (14, 18), (18, 21)]
    assert {strip[:3] + strip[4:] for strip in tile.strips(4)} == {("x", "y", (3, 5), True)}
    assert cut(5, 2) == [(0, 2), (2, 4), (4, 5)] and cut(0, 2) == []


@pytest.mark.parametrize("verb", ["values", "fill", "scatter", "multiply", "sums", "external"])
def test_verbs_are_asked_for_a_tile_and_little_else(verb):
    parameters = list(inspect.signature(getattr(Backend, verb)).parameters)
    assert parameters[:2] == ["self", "tile"] and len(parameters) <= 5


@pytest.mark.parametrize("backend", ["numba", "numpy"])
@pytest.mark.parametrize("kernel", [Gaussian(sigma=1.0), Subsequence(2)], ids=["vectors", "texts"])
def test_strips_of_columns_add_up(backend, kernel, monkeypatch, rng):
    """Products and sums over sets are taken a few columns at a time; the numbers are those of the matrix."""
    monkeypatch.setattr(numba_backend, "_HANDED_OVER", 7)
    monkeypatch.setattr(NumpyBackend, "columns", 7)
    monkeypatch.setattr(NumpyBackend, "rows", 5)
    texts = ["".join(rng.choice(list("abc"), 6)) for _ in range(33)]
    X = rng.normal(size=(33, 3)) if kernel.domain == "vectors" else texts
    with config(backend=backend):
        K = Gram(kernel, X)
    V = rng.normal(size=(33, 2))
    np.testing.assert_allclose(K @ V, K.dense() @ V, rtol=1e-12)
    sets = np.repeat([0, 2, 3], [4, 20, 9])  # of set 1 there is nothing
    places = rng.permutation(33)
    whole = np.zeros((4, 4))
    np.add.at(whole, (sets[:, None], sets[None, :]), K.dense()[np.ix_(places, places)])
    for lower in (False, True):
        sums = K.sums((places, sets), (places, sets), (4, 4), lower)
        np.testing.assert_allclose(sums, whole, rtol=1e-12)
    some = K.sums((places[:4], sets[:4]), (places, sets), (1, 4))
    np.testing.assert_allclose(some, whole[:1], rtol=1e-12)
