"""Products of sparse rows, by common and rare columns."""

import numpy as np
import pytest
from scipy import sparse

from mercer import Gaussian, Linear, config
from mercer.gram.backends.numba.sparse_products import sparse_products
from mercer.gram.sparse_rows import sort_columns


def counts(n, rng):
    """Whole numbers in 3000 columns, some of them in most rows and most of them in few."""
    often = rng.random((n, 8)) < 0.7
    rare = sparse.random_array((n, 3000), density=0.004, rng=rng).toarray() > 0
    return np.hstack([often, rare]) * rng.integers(1, 9, (n, 3008)).astype(float)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_common_and_rare_columns_make_the_product(dtype, rng):
    X, Y = counts(40, rng), counts(60, rng)
    left, right = (sparse.csr_array(matrix) for matrix in (X, Y))
    left.indices, left.indptr = left.indices.astype(dtype), left.indptr.astype(dtype)
    columns = sort_columns(right)
    assert columns.common == 8 and (columns.place[:8] == np.arange(8)).all()
    # sums of products of whole numbers are exact in any order
    np.testing.assert_array_equal(sparse_products(left, right, (0, 40), (0, 60), columns), X @ Y.T)
    np.testing.assert_array_equal(
        sparse_products(left, right, (5, 9), (50, 60), columns), (X @ Y.T)[5:9, 50:]
    )
    assert sparse_products(left, right, (5, 5), (0, 2), columns).shape == (0, 2)


def test_rows_need_not_be_sorted(rng):
    X = sparse.csr_array(counts(30, rng))
    mixed = X.copy()
    for i in range(30):
        part = slice(mixed.indptr[i], mixed.indptr[i + 1])
        order = rng.permutation(part.stop - part.start)
        mixed.indices[part], mixed.data[part] = mixed.indices[part][order], mixed.data[part][order]
    whole = (0, 30)
    np.testing.assert_array_equal(
        sparse_products(mixed, mixed, whole, whole, sort_columns(mixed)), (X @ X.T).toarray()
    )


@pytest.mark.parametrize("common", [0, 8])
def test_grams_of_sparse_rows(common, rng):
    X = counts(700, rng)[:, 8 - common :]
    rows = sparse.csr_array(X)
    np.testing.assert_array_equal(Linear()(rows), X @ X.T)
    np.testing.assert_array_equal(Linear()(rows[:30], rows), X[:30] @ X.T)
    np.testing.assert_allclose(Gaussian(sigma=30.0)(rows), Gaussian(sigma=30.0)(X), rtol=1e-9)
    with config(dtype="float32"):
        np.testing.assert_array_equal(Linear()(rows), (X @ X.T).astype(np.float32))
