"""Kernels without a formula: a Python function, called as seldom as may be, and a matrix that is there."""

import re
from itertools import product

import numpy as np
import pytest

from mercer import Constant, Delta, FromFunction, Gram, Precomputed, config
from mercer.errors import InputError, InputTypeError, SlowPathWarning
from mercer.gram.backends.numba.backend import NumbaBackend
from mercer.gram.backends.numpy import NumpyBackend

WORDS = ["kernel", "colonel", "nut", "shell", "maize"]


def common(a, b):
    return len(set(a) & set(b))


def table(X, Y):
    return np.array([[common(x, y) for y in Y] for x in X], dtype=float)


class Counting:
    """A function that remembers with what it was called."""

    def __init__(self, function=common):
        self.function = function
        self.calls = []

    def __call__(self, a, b):
        self.calls.append((a, b))
        return self.function(a, b)


quietly = pytest.mark.filterwarnings("ignore::mercer.errors.SlowPathWarning")


# --- FromFunction -----------------------------------------------------------------------------------------


@quietly
def test_values_of_a_function(backend):
    kernel = FromFunction(common)
    np.testing.assert_array_equal(kernel(WORDS), table(WORDS, WORDS))
    np.testing.assert_array_equal(kernel(WORDS, ["nutshell", "oil"]), table(WORDS, ["nutshell", "oil"]))


@pytest.fixture
def small_blocks(monkeypatch):
    """Few points have several."""
    for kind, side in product((NumbaBackend, NumpyBackend), ("rows", "columns")):
        monkeypatch.setattr(kind, side, 32)


@quietly
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("n", [5, 100])  # one block, and several
def test_a_set_with_itself_calls_each_pair_once(n, backend):
    function = Counting(lambda a, b: float(a == b))
    Gram(FromFunction(function), list(range(n))).dense()
    assert len(function.calls) == n * (n + 1) // 2
    assert len({frozenset(pair) for pair in function.calls}) == n * (n + 1) // 2


@quietly
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("n", [5, 100])
def test_two_sets_call_each_pair_once(n, backend):
    function = Counting(lambda a, b: float(a == b))
    K = Gram(FromFunction(function), list(range(n)), list(range(n, n + 7)))
    K.dense()
    assert len(function.calls) == len(set(function.calls)) == 7 * n
    function.calls.clear()
    K @ np.ones(7)
    assert len(function.calls) == 7 * n
    function.calls.clear()
    K.block([0, 1], [2])
    assert sorted(function.calls) == [(0, n + 2), (1, n + 2)]


@quietly
def test_rows_are_kept(backend):
    function = Counting()
    K = Gram(FromFunction(function), WORDS)
    K.rows([1, 3])
    assert len(function.calls) == 2 * len(WORDS)
    np.testing.assert_array_equal(K.rows([3, 1]), table(WORDS, WORDS)[[3, 1]])
    assert len(function.calls) == 2 * len(WORDS)


@quietly
def test_the_diagonal_calls_only_itself():
    function = Counting()
    Gram(FromFunction(function), WORDS).diag()
    assert function.calls == [(word, word) for word in WORDS]


@quietly
def test_points_may_be_anything(backend):
    sets = [{1, 2}, {2, 3, 4}, set()]
    np.testing.assert_array_equal(FromFunction(common)(sets), [[2, 1, 0], [1, 3, 0], [0, 0, 0]])
    ragged = [np.ones(2), np.ones(5)]
    lengths = FromFunction(lambda a, b: float(min(a.size, b.size)))
    np.testing.assert_array_equal(lengths(ragged), [[2, 2], [2, 5]])
    rows = FromFunction(lambda a, b: float(a @ b))
    X = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(rows(X), X @ X.T)


@quietly
def test_functions_take_part_in_the_algebra(backend):
    kernel, K = FromFunction(common), table(WORDS, WORDS)
    np.testing.assert_allclose((2 * kernel + Constant(1.0))(WORDS), 2 * K + 1)
    np.testing.assert_allclose((kernel * kernel)(WORDS), K**2)
    np.testing.assert_allclose((kernel + Delta())(WORDS), K + np.eye(5))
    roots = np.sqrt(np.diagonal(K))
    np.testing.assert_allclose(kernel.normalized()(WORDS), K / np.outer(roots, roots), rtol=1e-14)
    centring = np.eye(5) - 1 / 5
    np.testing.assert_allclose(kernel.centered()(WORDS), centring @ K @ centring, atol=1e-14)


@quietly
def test_float32():
    with config(dtype="float32"):
        K = FromFunction(common)(WORDS)
    assert K.dtype == np.float32
    np.testing.assert_array_equal(K, table(WORDS, WORDS))


def test_the_slow_path_says_so_at_the_users_line(backend):
    kernel = FromFunction(common)
    with pytest.warns(SlowPathWarning) as caught:
        kernel(WORDS)
    assert {str(warning.message) for warning in caught} == {
        "FromFunction(function=common) calls Python once per pair of points, the slow path: "
        "write a Kernel with a formula to have it compiled"
    }
    assert {warning.filename for warning in caught} == {__file__}


@quietly
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("far", "must return a number, got 'far' for 'a' and 'a'"),
        (None, "must return a number, got None for 'a' and 'a'"),
        ([1.0, 2.0], "must return a number, got [1.0, 2.0] for 'a' and 'a'"),
        (np.nan, "must return a finite number, got nan for 'a' and 'a'"),
        (np.inf, "must return a finite number, got inf for 'a' and 'a'"),
    ],
    ids=str,
)
def test_functions_that_do_not_return_a_number(value, text):
    def wrong(a, b):
        return value

    with pytest.raises(InputError) as caught:
        FromFunction(wrong)(["a", "b"])
    assert str(caught.value) == f"FromFunction(function=wrong) {text}"


@quietly
def test_an_error_in_the_function_is_the_users_own(backend):
    def broken(a, b):
        raise KeyError("no such word")

    with pytest.raises(KeyError, match="no such word"):
        FromFunction(broken)(["a", "b"])


def test_what_is_no_list_of_objects():
    with pytest.raises(InputTypeError, match="got the single text 'ab': pass"):
        FromFunction(common)("ab")
    with pytest.raises(InputError, match="X has no points"):
        FromFunction(common)([])


# --- Precomputed --------------------------------------------------------------------------------------------

K = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])


def test_points_are_indices(backend):
    kernel = Precomputed(K)
    np.testing.assert_array_equal(kernel([0, 1, 2]), K)
    np.testing.assert_array_equal(kernel([2, 0], [1]), K[np.ix_([2, 0], [1])])
    np.testing.assert_array_equal(kernel(np.array([1, 1])), K[np.ix_([1, 1], [1, 1])])
    np.testing.assert_array_equal(Gram(kernel, [2, 0]).diag(), [2.0, 4.0])
    np.testing.assert_allclose(Gram(kernel, [0, 1, 2]) @ np.ones(3), K.sum(axis=1))
    np.testing.assert_array_equal(Gram(kernel, [0, 1, 2]).rows([1]), K[[1]])


def test_points_are_rows_of_values_against_the_training_set(backend):
    """What scikit-learn passes to predict; the other side is the training set, by index."""
    new = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    for kernel in (Precomputed(K), Precomputed()):
        np.testing.assert_array_equal(kernel(new, [0, 1, 2]), new)
        np.testing.assert_array_equal(kernel(new, [2, 0]), new[:, [2, 0]])
        np.testing.assert_array_equal(kernel([1], new), new[:, [1]].T)
        np.testing.assert_allclose(Gram(kernel, new, [0, 1, 2]) @ [1.0, 1.0, 1.0], new.sum(axis=1))


def test_lists_and_whole_numbers_make_a_matrix():
    np.testing.assert_array_equal(Precomputed([[2, 1], [1, 3]])([0, 1]), [[2, 1], [1, 3]])


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (
            lambda: Precomputed()([0, 1]),
            "Precomputed() has no matrix: pass it, Precomputed(K), to compare points by their index",
        ),
        (
            lambda: Precomputed(K)([0.0, 1.0]),
            "points of a Precomputed kernel are whole-number indices, got values like 0.0",
        ),
        (lambda: Precomputed(K)([0, 3]), "index 3 is outside 0 … 2"),
        (lambda: Precomputed(K)([-1, 0]), "index -1 is outside 0 … 2"),
        (lambda: Precomputed(K)(np.ones((2, 3)), [0, 5]), "index 5 is outside 0 … 2"),
        (
            lambda: Precomputed(K)(np.ones((2, 3)), np.ones((2, 3))),
            "two rows of kernel values cannot be compared with each other: "
            "at least one side must be indices into the training set",
        ),
        (
            lambda: Gram(Precomputed(K), np.ones((2, 3))).diag(),
            "k(x, x) of a new point is not in its row of kernel values",
        ),
    ],
)
def test_refusals(action, text):
    with pytest.raises(InputError, match="^" + re.escape(text)):
        action()


def test_no_points():
    with pytest.raises(InputError, match="X has no points: pass at least one"):
        Precomputed(K)([])


def test_kernels_are_compared_by_their_matrix():
    assert Precomputed(K) == Precomputed(K.copy()) != Precomputed(2 * K)
    assert hash(Precomputed(K)) == hash(Precomputed(K.copy()))
    assert FromFunction(common) == FromFunction(common) != FromFunction(max)


def test_neighbouring_rows_of_a_matrix_are_not_copied(backend, rng):
    A = rng.normal(size=(12, 12))
    K = A @ A.T
    kernel, kept = Precomputed(K), K.copy()
    neighbours, scattered = np.arange(3, 9), np.array([4, 1, 7])
    assert np.shares_memory(kernel.pairs(neighbours, neighbours), K)
    for rows, columns in ((neighbours, scattered), (scattered, neighbours), (scattered, scattered)):
        np.testing.assert_array_equal(kernel.pairs(rows, columns), kept[np.ix_(rows, columns)])
    np.testing.assert_array_equal(Gram(kernel, neighbours).dense(), kept[3:9, 3:9])
    np.testing.assert_array_equal(K, kept)  # What is not copied is not written to either.
