"""The parts of the tile loop, and the record that they read."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from mercer import Gaussian, Laplacian, Polynomial, config
from mercer.gram import Gram
from mercer.gram.backends.numba import backend, parts
from mercer.gram.backends.numba.job import address, scratch

FLOAT64 = np.dtype(np.float64)


@pytest.mark.parametrize("array", [np.zeros(3, np.float32), np.zeros((4, 4)).T[:2], np.zeros(8)[::2]])
def test_only_numbers_of_the_right_kind_row_after_row_are_handed_over(array):
    with pytest.raises(TypeError, match="compiled code needs C-contiguous float64, not"):
        address(array, FLOAT64)


def test_scratch_begins_a_cache_line_and_is_kept_up_to_some_size():
    first, memory = scratch(1000)
    assert first % 64 == 0 and first + 1000 <= address(memory, memory.dtype) + len(memory)
    assert scratch(500)[0] == scratch(1000)[0] == first
    large, memory = scratch(2**25)
    assert large % 64 == 0 and len(memory) >= 2**25
    assert scratch(1000)[0] == first


def test_scratch_is_each_threads_own():
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: scratch(1000)[0]).result() != scratch(1000)[0]


@pytest.mark.parametrize("n", [1, 2, 40, 123, 124, 125, 256, 300])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("cache", [0, 2**25])
def test_large_and_small_matrices_are_stored_and_mirrored_alike(n, dtype, cache, rng, monkeypatch):
    """Past the caches or not, from differences and from products: the values are those of NumPy."""
    monkeypatch.setattr(backend, "_CACHE", cache)
    for kernel, d in ((Gaussian(2.0), 3), (Gaussian(2.0), 20), (Polynomial(2), 3), (Laplacian(3.0), 2)):
        X = rng.normal(size=(n, d))
        with config(dtype=dtype, backend="numba"):
            gram = Gram(kernel, X)
            K, rows = gram.dense(), gram.rows(np.arange(n)[::-1])
        with config(backend="numpy"):
            wanted = Gram(kernel, X).dense()
        np.testing.assert_array_equal(K, K.T)
        # ε/τ of a squared distance is 2e-10 or 2e-5 (``REPAIR``); values of the polynomial are up to 400.
        error = (1e-9 if dtype == "float64" else 1e-4) * abs(wanted).max()
        np.testing.assert_allclose(K, wanted, atol=error, rtol=0)
        np.testing.assert_allclose(rows, wanted[::-1], atol=error, rtol=0)


def test_a_first_small_matrix_compiles_no_more_than_it_needs(rng):
    before = parts._loops.pop((FLOAT64, FLOAT64), None)
    try:
        with config(dtype="float64", backend="numba"):
            Gram(Gaussian(1.0), rng.normal(size=(40, 5))).dense()
        assert set(parts._loops[FLOAT64, FLOAT64]._compiled) == {
            "sweep", "fill_planes", "distances_from_differences", "mirror_diagonal"
        }  # fmt: skip
    finally:
        if before is not None:
            parts._loops[FLOAT64, FLOAT64] = before
