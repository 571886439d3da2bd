"""Sparse Grams: the same values as dense ones, without the zeros."""

import sys
from functools import reduce
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist

from mercer import BallIndicator, BSpline, Gaussian, Gram, Kernel, Linear, Wendland, config
from mercer.errors import InputError, MemoryBudgetError, SlowPathWarning
from mercer.gram import neighbours
from mercer.gram.sparse import thinness
from mercer.kernels.support import Support

ENGINE = sys.modules["mercer.gram.sparse"]


@pytest.fixture
def small_cells(monkeypatch):
    """Cells of four points, so that a few dozen points are in several of them."""
    monkeypatch.setattr(neighbours, "_CELL_POINTS", 4)


@pytest.fixture
def eager(monkeypatch):
    """Every product looks for zeros, and cells cost nothing."""
    monkeypatch.setattr(ENGINE, "_PAIRS_WORTH_A_LOOK", 0)
    monkeypatch.setattr(ENGINE, "_CELL_COST", 0)
    monkeypatch.setattr(ENGINE, "_ENTRY_COST", 0)


def require_same(K, rtol=1e-12):
    """Sparse and dense agree to rounding, and what is stored is what a CSR matrix should be."""
    dense, thin = K.dense(), K.sparse()
    assert isinstance(thin, sparse.csr_array)
    assert thin.shape == K.shape
    assert thin.dtype == K.dtype
    assert thin.has_sorted_indices
    assert (thin.data != 0).all()
    np.testing.assert_allclose(thin.toarray(), dense, rtol=0, atol=rtol * max(np.abs(dense).max(), 1e-300))
    return thin


# --- any algebra on any points ---------------------------------------------------------------------

RADII = st.sampled_from([0.5, 1.0, 2.0, 3.0])
LEAVES = st.one_of(
    st.builds(Wendland, RADII, st.sampled_from([0, 1, 2])),
    st.builds(lambda a, b: Wendland([a, b]), RADII, RADII),
    st.builds(BSpline, st.sampled_from([1, 3]), RADII),
    st.builds(BallIndicator, RADII),
)


def composites(parts):
    return st.one_of(
        st.builds(lambda a, b: a + b, parts, parts),
        st.builds(lambda a, b: a * b, parts, parts),
        st.builds(lambda k: k * Gaussian(1.0), parts),
        st.builds(lambda k: 2.5 * k, parts),
        st.builds(lambda k: k**2, parts),
        st.builds(lambda k: k.normalized(), parts),
        st.builds(lambda k: k.polynomial([0.0, 0.5, 1.0]), parts),
        st.builds(lambda k: k.on(1, 0), parts),
        st.builds(lambda a, r: a * Wendland(r).on(1), parts, RADII),
    )


KERNELS = st.recursive(LEAVES, composites, max_leaves=4).filter(lambda kernel: kernel.support is not None)
# Multiples of a half: many points are equal, and many pairs exactly as far apart as a radius.
POINTS = st.lists(st.tuples(*[st.integers(-8, 8)] * 2), min_size=1, max_size=40).map(
    lambda rows: np.array(rows) / 2.0
)


@settings(max_examples=60)
@given(kernel=KERNELS, X=POINTS, Y=st.none() | POINTS)
def test_any_algebra_of_compact_kernels(kernel, X, Y):
    with patch.object(neighbours, "_CELL_POINTS", 4), config(backend="numpy"):
        thin = require_same(Gram(kernel, X, Y))
    if Y is None:
        assert (thin != thin.T).nnz == 0


# --- points ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["numpy", "numba", "torch", "triton"])
@pytest.mark.parametrize("d", [1, 2, 3, 9])
def test_random_points(rng, backend, d):
    if backend in ("torch", "triton"):
        pytest.importorskip(backend)
    X, Y = rng.uniform(size=(500, d)), rng.uniform(size=(300, d))
    kernel = Wendland(radius=0.05 * 2**d if d < 9 else 0.8, dim=9)
    with config(backend=backend):
        thin = require_same(Gram(kernel, X))
        require_same(Gram(kernel, X, Y))
        require_same(Gram(kernel, Y, X))
    assert (thin != thin.T).nnz == 0  # exactly, also where products round differently from either side
    assert 500 < thin.nnz < 500**2 / 2
    assert thin.nnz == (cdist(X, X) < kernel.radius).sum()


def test_more_columns_than_a_tree_is_good_for(rng):
    X = rng.uniform(size=(200, 20))
    thin = require_same(Gram(Wendland(radius=1.5, dim=20), X))
    assert thin.nnz == (cdist(X, X) < 1.5).sum() < 200**2 / 2


def test_tensor_products_and_maps(rng, small_cells):
    X = rng.uniform(1, 5, size=(100, 3))
    require_same(Gram(Wendland(0.8).on(0) * BSpline(scale=0.3).on(1, 2) * Linear(), X))
    require_same(Gram((Wendland(0.3) @ np.log) * (1 + Gaussian(1.0)), X))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    require_same(Gram(Wendland(0.7).on("a", "c"), frame, frame[:20]))
    rows = sparse.csr_array(np.where(X < 3, 0, X))
    require_same(Gram(Wendland(0.7), rows))


def test_exactly_at_the_radius(small_cells):
    """The ball is closed: 1 at the radius, where kernels that end continuously are 0."""
    X = np.arange(50.0)[:, None] * 4  # A quarter of it is exact.
    assert require_same(Gram(BallIndicator(4.0), X)).nnz == 50 + 2 * 49
    assert require_same(Gram(Wendland(4.0), X)).nnz == 50
    assert require_same(Gram(BSpline(scale=2.0), X)).nnz == 50


@pytest.mark.parametrize("offset", [0.1, 1e3, 1e6])
def test_a_radius_that_rounding_blurs(offset, small_cells):
    """Distances of 0.1 far from zero are 0.1 and some rounding: the engine decides, not the tree."""
    X = offset + np.arange(40.0)[:, None] * 0.1
    for dtype in ("float64", "float32"):
        with config(dtype=dtype):
            require_same(Gram(BallIndicator(0.1), X), rtol=0)
            require_same(Gram(BSpline(scale=0.1), X), rtol=1e-6)
            require_same(Gram(BallIndicator(0.1), X.astype(np.float32)), rtol=0)


def test_one_point_lonely_points_and_equal_points(small_cells):
    assert require_same(Gram(Wendland(), [[3.0, 4.0]])).nnz == 1
    far = np.arange(30.0)[:, None] * 10
    np.testing.assert_array_equal(require_same(Gram(Wendland(), far)).toarray(), np.eye(30))
    empty = require_same(Gram(Wendland(), far, far + 5))
    assert empty.nnz == 0
    np.testing.assert_array_equal(empty @ np.ones(30), np.zeros(30))
    assert require_same(Gram(Wendland(), np.ones((50, 2)))).nnz == 2500


def test_float32(rng):
    X = rng.uniform(size=(400, 2))
    with config(dtype="float32"):
        thin = require_same(Gram(Wendland(0.1), X), rtol=1e-6)
        require_same(Gram(Wendland(0.1), X + 1000), rtol=1e-6)
    np.testing.assert_allclose(thin.toarray(), Gram(Wendland(0.1), X).dense(), atol=1e-4)


def test_a_kernel_of_ones_own():
    class Hat(Kernel):
        support = Support.ball(1.0, norm=1)

        def formula(self, pair):
            from mercer.kernels.expression import maximum

            return maximum(1 - pair.l1, 0.0)

    try:
        X = np.mgrid[:6, :6].reshape(2, -1).T / 2
        assert require_same(Gram(Hat(), X)).nnz == 36 + 4 * 30
    finally:
        Kernel.registry.remove(Hat)


# --- promises --------------------------------------------------------------------------------------


def test_threads_change_nothing(rng):
    X, v = rng.uniform(size=(5000, 2)), rng.normal(size=5000)
    results = []
    for threads in (1, 3):
        with config(threads=threads):
            K = Gram(Wendland(0.03), X)
            results.append((K.sparse(), K @ v))
    assert (results[0][0] != results[1][0]).nnz == 0
    np.testing.assert_array_equal(results[0][1], results[1][1])


def test_a_look_at_some_cells_tells_the_size(rng):
    X = rng.uniform(size=(20_000, 2))
    K = Gram(Wendland(0.02), X)
    found, thin = thinness(K), K.sparse()
    assert found.entries == pytest.approx(thin.nnz, rel=0.2)
    few = Gram(Wendland(0.1), X[:300])  # all cells are looked at
    assert thinness(few).entries == few.sparse().nnz


def test_memory(rng):
    X = rng.uniform(size=(3000, 2))
    with (
        config(memory="2MiB"),
        pytest.raises(MemoryBudgetError, match=r"a sparse 3000 × 3000 matrix of about .* values needs .*MiB"),
    ):
        Gram(Wendland(0.2), X).sparse()
    with config(memory="2MiB"):
        assert Gram(Wendland(0.01), X).sparse().nnz < 9000  # where dense() needs 69 MiB


def test_memory_where_the_look_missed_the_crowd(rng, monkeypatch):
    monkeypatch.setattr(ENGINE, "_CELLS_LOOKED_AT", 2)
    X = np.concatenate([np.arange(2000.0)[:, None] * 10, 1e4 + rng.uniform(size=(2000, 1))])
    K = Gram(Wendland(1.0), X[rng.permutation(4000)])
    assert thinness(K).memory < 2**20
    with config(memory="4MiB"), pytest.raises(MemoryBudgetError, match=r"of more than .* values"):
        K.sparse()


def test_a_full_matrix_is_told(rng, monkeypatch):
    monkeypatch.setattr(ENGINE, "_PAIRS_WORTH_A_LOOK", 1000)
    K = Gram(Wendland(10.0), rng.uniform(size=(100, 2)))
    with pytest.warns(SlowPathWarning, match="about 100 of 100 values in a row of K are not zero"):
        K.sparse()


def test_a_kernel_that_is_nowhere_zero_is_refused():
    with pytest.raises(
        InputError, match=r"zero beyond some distance, got Gaussian\(sigma=1.0\): take Wendland"
    ):
        Gram(Gaussian(1.0), [[0.0]]).sparse()


# --- products --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_product_goes_through_the_values_that_are_not_zero(rng, eager, dtype):
    X, Y = rng.uniform(size=(700, 2)), rng.uniform(size=(300, 2))
    V = rng.normal(size=(300, 2))
    with config(dtype=dtype):
        K = Gram(Wendland(0.1), X, Y)
        wanted, product = K.dense() @ V.astype(dtype), K @ V
        assert product.dtype == K.dtype
        np.testing.assert_allclose(product, wanted, atol=100 * np.finfo(dtype).eps)
        np.testing.assert_allclose(K @ V[:, 0], wanted[:, 0], atol=100 * np.finfo(dtype).eps)
        assert f"{K.sparse().nnz:,} values stored" in repr(K)
        assert "stored" not in repr(K.beside(X[:3]))


def test_what_is_stored_is_not_what_sparse_gives(rng, eager):
    K = Gram(Wendland(0.1), rng.uniform(size=(300, 2)))
    before = K @ np.ones(300)
    K.sparse().data[:] = 0
    np.testing.assert_array_equal(K @ np.ones(300), before)


def test_a_product_is_lazy_where_that_is_less_work_or_memory(rng, eager):
    X = rng.uniform(size=(500, 2))
    full = Gram(Wendland(2.0), X)
    full @ np.ones(500)
    assert "stored" not in repr(full)
    large = Gram(Wendland(0.3), X)
    with config(memory="1MiB"):
        product = large @ np.ones(500)
    assert "stored" not in repr(large)
    np.testing.assert_allclose(product, large.dense().sum(axis=1), rtol=1e-12)
    small = Gram(Wendland(0.1), X)
    small @ np.ones(500)
    assert "stored" in repr(small)


def test_large_products_look_by_themselves(rng):
    X, v = rng.uniform(size=(9000, 2)), rng.normal(size=9000)
    K = Gram(Wendland(0.02), X)
    product = K @ v
    assert "stored" in repr(K)
    some = np.arange(0, 9000, 100)
    np.testing.assert_allclose(product[some], K.rows(some) @ v, atol=1e-12)
    centred = Gram(Wendland(0.02).centered(X), X[:10])  # the means of 9000 rows, and no support of its own
    np.testing.assert_allclose(centred @ np.ones(10), centred.dense().sum(axis=1), rtol=1e-12)


def test_sums_of_many_terms_have_one_support():
    total = reduce(lambda a, b: a + b, [Wendland(r) for r in (1.0, 2.0, 3.0)])
    require_same(Gram(total, np.arange(100.0)[:, None]))
