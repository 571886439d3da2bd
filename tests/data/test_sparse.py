"""Sparse matrices whose arrays do not describe one: refused at the door, before compiled code reads them."""

import numpy as np
import pytest
from scipy import sparse

import mercer
from mercer import Delta, Gaussian, Gram, Linear
from mercer.data.points import as_vectors, columns
from mercer.data.sparse import in_small_integers, is_canonical
from mercer.errors import InputError


def table(n=12):
    rng = np.random.default_rng(0)
    return sparse.random_array((n, 5), density=0.5, rng=rng, format="csr")


def beyond(X):
    X.indices[3] = 10**6


def negative(X):
    X.indices[0] = -4


def long_row(X):
    X.indptr[-1] = 10**7


def backwards(X):
    X.indptr[2] = X.indptr[3] + 1


def late(X):
    X.indptr[0] = 1


def short(X):
    X.indptr = X.indptr[:-2]


def few(X):
    X.data = X.data[:-3]


BREAKS = {
    beyond: "an entry in column 1000000, and 5 columns: make the matrix anew",
    negative: "an entry in column -4, and 5 columns",
    long_row: r"an indptr that ends at 10000000, and only \d+ entries",
    backwards: r"an indptr that does not count up from 0, \[\d+, \d+\] at row 2",
    late: r"an indptr that does not count up from 0, \[1, \d+\] at row 0",
    short: "12 rows, and indptr of length 11 instead of 13",
    few: "an indptr that ends at",
}
ESTIMATORS = [
    "SVC",
    "KernelPerceptron",
    "Perceptron",
    "ParzenClassifier",
    "KernelRidge",
    "KernelPCA",
    "OneClassSVM",
]


@pytest.mark.parametrize("harm", BREAKS, ids=lambda harm: harm.__name__)
def test_broken_matrices_are_refused_everywhere(harm):
    whole, X = table(), table()
    y = np.arange(12) % 2
    fitted = {
        name: getattr(mercer, name)(kernel="linear").fit(whole, y) for name in ("SVC", "ParzenClassifier")
    }
    harm(X)
    for name in ESTIMATORS:
        with pytest.raises(InputError, match=BREAKS[harm]):
            getattr(mercer, name)().fit(X, y)
    for model in fitted.values():
        with pytest.raises(InputError, match=BREAKS[harm]):
            model.predict(X)
    for kernel in (Linear(), Gaussian(1.0), Delta(), Linear().on([0, 1])):
        with pytest.raises(InputError, match=BREAKS[harm]):
            Gram(kernel, X).dense()
        with pytest.raises(InputError, match=BREAKS[harm]):
            kernel(whole, X)


@pytest.mark.parametrize("form", ["csc", "coo"])
def test_other_formats_are_looked_at_before_they_are_converted(form):
    X = table().asformat(form)
    (X.indices if form == "csc" else X.coords[0])[2] = 10**6
    with pytest.raises(InputError, match="an entry in row 1000000, and 12 rows"):
        as_vectors(X)
    with pytest.raises(InputError, match="an entry in row 1000000"):
        columns(X, [0])


def test_blocks_and_lists_are_looked_at_too():
    blocks, whole = sparse.bsr_array(np.eye(6), blocksize=(2, 3)), np.eye(6)
    np.testing.assert_array_equal(Linear()(blocks), whole)
    blocks.indices[1] = 9
    with pytest.raises(InputError, match="an entry in block column 9, and 2 block columns"):
        Linear()(blocks)
    blocks.indptr[-1] = 10**7
    with pytest.raises(InputError, match="an indptr that ends at 10000000"):
        Linear()(blocks)
    lists = sparse.lil_array(whole)
    np.testing.assert_array_equal(Linear()(lists), whole)
    lists.rows[2] = [9]
    with pytest.raises(InputError, match="an entry in column 9, and 6 columns"):
        mercer.Perceptron().fit(whole, np.arange(6) % 2).predict(lists)
    lists.rows[2] = [0, 1, 2, 3, 4]
    with pytest.raises(InputError, match="rows with other numbers of columns and of values"):
        Linear()(lists)


def test_what_is_only_unusual_is_put_right_on_a_copy():
    """Unsorted, repeated, of 64 bits, or too long: the same values, and the caller's matrix as it was."""
    values, indices, indptr = np.array([1.0, 2.0, 4.0, 8.0, 99.0]), [3, 0, 3, 1, 77], [0, 3, 4]
    X = sparse.csr_array((values, np.array(indices, np.int64), np.array(indptr, np.int64)), shape=(2, 4))
    before = [array.copy() for array in (X.data, X.indices, X.indptr)]
    rows = as_vectors(X)
    np.testing.assert_array_equal(rows.toarray(), [[2, 0, 0, 5], [0, 8, 0, 0]])
    assert rows.indices.dtype == np.int32 == rows.indptr.dtype and is_canonical(rows)
    for array, old in zip((X.data, X.indices, X.indptr), before, strict=True):
        np.testing.assert_array_equal(array, old)
    np.testing.assert_array_equal(Gram(Linear(), X).dense(), [[29, 0], [0, 64]])


def test_flags_from_before_a_change_are_not_believed():
    X = sparse.csr_array(np.arange(1.0, 7.0).reshape(2, 3))
    assert X.has_canonical_format
    X.indices[:3] = [2, 2, 0]
    np.testing.assert_array_equal(as_vectors(X).toarray(), [[3, 0, 3], [4, 5, 6]])
    assert as_vectors(table()) is not None and is_canonical(sparse.csr_array((3, 4)))


def test_matrices_that_are_fine_are_not_copied():
    X = table()
    assert as_vectors(X) is X
    wide = sparse.csr_array(([1.0], ([0], [2**40])), shape=(1, 2**41))
    assert in_small_integers(wide) is wide
