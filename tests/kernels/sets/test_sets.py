"""Kernels on sets and bags against sums over all pairs of elements, written out."""

import pickle
from collections import Counter
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from mercer import (
    SVC,
    Delta,
    FromFunction,
    Gaussian,
    GeneralSetKernel,
    Gram,
    Intersection,
    KernelRidge,
    Laplacian,
    Linear,
    Min,
    Polynomial,
    SetKernel,
    WeisfeilerLehman,
    certify,
    config,
)
from mercer.errors import InputError, InputTypeError
from mercer.gram.backends.numba.backend import NumbaBackend
from mercer.gram.backends.numpy import NumpyBackend
from mercer.kernels.sets import sets as module
from mercer.testing.objects import OBJECTS

numbers = st.integers(-16, 16).map(lambda i: i / 4)
vectors = st.lists(st.tuples(numbers, numbers), max_size=5)
some_sets = st.lists(vectors, min_size=1, max_size=6)
bags = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 4), max_size=5)
some_bags = st.lists(bags, min_size=1, max_size=7)


def sum_over_pairs(k, A, B):
    return np.array([[sum(k(a, b) for a in x for b in y) for y in B] for x in A], float)


def gauss(a, b):
    return np.exp(-sum((s - t) ** 2 for s, t in zip(a, b, strict=True)) / 2)


def dot(a, b):
    return sum(s * t for s, t in zip(a, b, strict=True))


def smallest(K):
    """The smallest eigenvalue in units of what rounding can do: n ε ‖K‖."""
    return np.linalg.eigvalsh(K).min() / (1e-14 * len(K) * max(np.abs(K).max(), 1.0))


BASES = [(Gaussian(sigma=1.0), gauss), (Linear(), dot), (Polynomial(2), lambda a, b: (dot(a, b) + 1) ** 2)]


@settings(max_examples=40)
@given(some_sets)
def test_sums_over_all_pairs(X):
    for base, k in BASES:
        wanted = sum_over_pairs(k, X, X)
        scale = max(np.abs(wanted).max(), 1.0)
        # at most 25 terms of products of two: a few dozen roundings of the largest entry
        np.testing.assert_allclose(SetKernel(base)(X), wanted, atol=1e-13 * scale)
        np.testing.assert_allclose(Gram(SetKernel(base), X).diag(), np.diag(wanted), atol=1e-13 * scale)
        sizes = np.maximum([len(x) for x in X], 1)
        means = wanted / np.outer(sizes, sizes)
        np.testing.assert_allclose(SetKernel(base, "mean")(X), means, atol=1e-13 * scale)
        root = np.sqrt(np.maximum(np.diag(wanted), 0))
        inverse = np.divide(1, root, out=np.zeros_like(root), where=root > 1e-6)
        if (root[root > 0] > 1e-2).all():  # a sum that cancels to nearly nothing has no direction
            found = SetKernel(base, "cosine")(X)
            np.testing.assert_allclose(found, wanted * np.outer(inverse, inverse), atol=1e-9)
        assert smallest(SetKernel(base)(X)) >= -1


def test_both_sides_on_every_backend(backend, rng):
    X, Y = ([rng.normal(size=(rng.integers(0, 7), 2)) for _ in range(n)] for n in (9, 5))
    for base, k in BASES:
        np.testing.assert_allclose(SetKernel(base)(X, Y), sum_over_pairs(k, X, Y), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_blocks_meet(backend, monkeypatch, rng):
    """Sets that are cut by the ends of blocks, and sets larger than a block."""
    with config(backend=backend):
        check_that_blocks_meet(monkeypatch, rng)


def check_that_blocks_meet(monkeypatch, rng):
    X = [rng.normal(size=(n, 3)) for n in (0, 13, 1, 5, 40, 7, 2, 0, 23)]
    whole, oblong, diagonal = (
        SetKernel(Gaussian())(X),
        SetKernel(Gaussian())(X, X[::-1]),
        Gram(SetKernel(Gaussian()), X).diag(),
    )
    for backend in (NumbaBackend, NumpyBackend):
        monkeypatch.setattr(backend, "rows", 4)
        monkeypatch.setattr(backend, "columns", 11)
    monkeypatch.setattr(module, "_GROUP", 9)
    np.testing.assert_allclose(SetKernel(Gaussian())(X), whole, rtol=1e-13)
    np.testing.assert_allclose(SetKernel(Gaussian())(X, X[::-1]), oblong, rtol=1e-13)
    np.testing.assert_allclose(Gram(SetKernel(Gaussian()), X).diag(), diagonal, rtol=1e-13)
    np.testing.assert_allclose(np.diag(whole), diagonal, rtol=1e-13)


@pytest.mark.parametrize("dtype", ["float64", pytest.param("float32", marks=pytest.mark.full)])
def test_sums_of_every_kind_of_formula(dtype, rng):
    """Rows of several sets in one tile: planes, point values and coordinates begin where a set does."""
    X = [rng.random((n, 20)) for n in (3, 70, 1, 0, 200, 33)]
    stacked, ends = np.concatenate(X), np.cumsum([0, *map(len, X)])
    bases = [
        Gaussian() + Polynomial(2),  # two planes
        Polynomial(2).normalized(),  # point values
        Min() * Gaussian(),  # a sum over coordinates
        (Linear() + Laplacian()).normalized() + Min().normalized(),
    ]
    for base in bases:
        K = base(stacked)
        wanted = [[K[a:b, c:d].sum() for c, d in pairwise(ends)] for a, b in pairwise(ends)]
        with config(dtype=dtype):
            found = SetKernel(base)(X)
        # float32: a few roundings of 6e-8 in each value; the sums are of float64
        np.testing.assert_allclose(found, wanted, rtol=1e-12 if dtype == "float64" else 2e-6)


def test_threads_change_nothing(rng):
    X = [rng.normal(size=(rng.integers(0, 9), 3)) for _ in range(600)]
    with config(threads=1):
        alone = SetKernel(Gaussian())(X)
    with config(threads=3):
        np.testing.assert_array_equal(SetKernel(Gaussian())(X), alone)


def test_elements_of_any_kind():
    graphs = OBJECTS["graphs"](12, np.random.default_rng(0))
    X = [graphs[:4], graphs[4:5], [], graphs[5:]]
    starts = np.cumsum([0, 4, 1, 0, 7])
    for base in (WeisfeilerLehman(1), WeisfeilerLehman(1).normalized()):  # features, and a formula of them
        K = base(graphs)
        wanted = [[K[a:b, c:d].sum() for c, d in pairwise(starts)] for a, b in pairwise(starts)]
        np.testing.assert_allclose(SetKernel(base)(X), wanted, rtol=1e-12)
        np.testing.assert_allclose(SetKernel(base)(X, X[:1]), np.array(wanted)[:, :1], rtol=1e-12)


def test_sets_of_sets(rng):
    X = [[rng.normal(size=(rng.integers(1, 4), 2)) for _ in range(n)] for n in (3, 1, 2)]
    inner = SetKernel(Gaussian(), "mean")
    wanted = [[inner(A, B).sum() for B in X] for A in X]
    np.testing.assert_allclose(SetKernel(inner)(X), wanted, rtol=1e-12)
    assert certify(SetKernel(inner)).verdict == "proved"


def test_labels_and_functions():
    X = [["a", 1, ("b", 2)], {"a"}, [1, 1]]
    wanted = sum_over_pairs(lambda a, b: a == b, X, X)
    np.testing.assert_array_equal(SetKernel(Delta())(X), wanted)
    with pytest.warns(match="slow path"):
        np.testing.assert_array_equal(SetKernel(FromFunction(lambda a, b: float(a == b)))(X), wanted)
    tables = [np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 5.0]])]
    np.testing.assert_array_equal(SetKernel(Delta())(tables), [[2, 0], [0, 1]])
    np.testing.assert_array_equal(SetKernel(Linear().on(0))(tables), [[16, 4], [4, 1]])


def test_ways_to_give_a_set():
    table = np.array([[1.0, 2.0], [0.0, 4.0]])
    forms = [
        table,
        table.tolist(),
        {(1.0, 2.0), (0.0, 4.0)},
        sparse.csr_matrix(table),
        [table[0], table[1]],
        table.astype(np.float32),
    ]
    K = SetKernel(Gaussian())(forms)
    np.testing.assert_allclose(K, K[0, 0], rtol=1e-14)
    assert SetKernel(Linear())([np.array([1.0, 2.0]), [5.0]]).tolist() == [[9.0, 15.0], [15.0, 25.0]]
    cube = np.arange(12.0).reshape(3, 2, 2)
    np.testing.assert_array_equal(SetKernel(Linear())(cube), SetKernel(Linear())(list(cube)))


def test_empty_sets():
    for base in (Gaussian(), Linear(), Delta()):
        for normalize in (None, "cosine", "mean"):
            assert (SetKernel(base, normalize)([[], []]) == 0).all()
            assert SetKernel(base, normalize)([[], [(1.0, 2.0)]])[0].tolist() == [0, 0]
    assert Gram(SetKernel(Gaussian()), [[], [[1.0]]]).diag().tolist() == [0, 1]


@pytest.mark.parametrize(
    ("bad", "error", "words"),
    [
        ([[[1.0, 2.0]], [[1.0]]], InputError, "lengths 1, 2"),
        ([[[1.0, 2.0], [1.0]]], InputError, "set 0 has vectors of different lengths"),
        ([[[1.0]], [[np.nan]]], InputError, "set 1 contains NaN"),
        ([["a", "b"]], InputTypeError, "must be a list of vectors"),
        ([Counter("ab")], InputTypeError, r"GeneralSetKernel\(base, Linear\(\)\)"),
        ([[[1.0]], "ab"], InputTypeError, "set 1 must be a list"),
        ([[[1.0]], None], InputTypeError, "got None"),
        ([np.ones((2, 2, 2))], InputTypeError, r"shape \(2, 2, 2\)"),
        ([], InputError, "no points"),
    ],
)
def test_what_is_no_set(bad, error, words):
    with pytest.raises(error, match=words):
        SetKernel(Gaussian(sigma=1.0))(bad)


def test_words_are_taken_from_all_elements(rng):
    X = [rng.normal(size=(n, 2)) for n in (1, 4, 3, 0)]
    stacked = Gaussian(sigma="median").resolve(np.concatenate(X))
    assert SetKernel(Gaussian(sigma="median")).resolve(X).base == stacked
    general = GeneralSetKernel(Gaussian(sigma="median"), Gaussian(gamma="scale")).resolve(X)
    assert general.element == stacked and general.count == Gaussian(gamma=1.0)  # every count is 1
    weight = np.array([1.0, 0.0, 2.0, 1.0])
    weighted = Gaussian(sigma="median").resolve(np.concatenate(X), np.repeat(weight, [1, 4, 3, 0]))
    assert SetKernel(Gaussian(sigma="median")).resolve(X, weight).base == weighted


def test_the_mean_tells_distributions_apart(rng):
    """Samples of N(0, 1) and N(0, 4) have the same mean; their embeddings differ."""
    y = np.arange(60) % 2
    X = [rng.normal(scale=1 + label, size=(rng.integers(20, 60), 1)) for label in y]
    model = SVC(kernel=SetKernel(Gaussian(sigma="median"), "mean"), C=1000.0).fit(X[:40], y[:40])
    assert model.score(X[40:], y[40:]) >= 0.9
    loaded = pickle.loads(pickle.dumps(model))
    assert loaded.predict(X[40:]).tolist() == model.predict(X[40:]).tolist()
    search = GridSearchCV(
        SVC(kernel=SetKernel(Gaussian(), "mean"), C=1000.0), {"kernel__base__sigma": [0.1, 1.0]}, cv=2
    )
    assert search.fit(X, y).best_estimator_.kernel.base.sigma in (0.1, 1.0)


def test_a_linear_function_of_the_sum_is_learned(rng):
    X = [rng.normal(size=(rng.integers(1, 9), 3)) for _ in range(50)]
    y = np.array([x.sum(axis=0) @ [1.0, -2.0, 0.5] for x in X])
    model = KernelRidge(kernel=SetKernel(Linear()), alpha=1e-8).fit(X[:30], y[:30])
    np.testing.assert_allclose(model.predict(X[30:]), y[30:], atol=1e-5)


# --- bags -----------------------------------------------------------------------------------------------


def intersection(A, B):
    return sum(min(A[x], B[x]) for x in set(A) & set(B))


@settings(max_examples=60)
@given(some_bags)
def test_intersections_are_counted(X):
    wanted = np.array([[intersection(A, B) for B in X] for A in X], float)
    for form in (
        X,
        [Counter(A) for A in X],
        [list(Counter(A).elements()) for A in X],
        _table(X),
        sparse.csr_array(_table(X)),
    ):
        np.testing.assert_array_equal(Intersection()(form), wanted)
        np.testing.assert_array_equal(Intersection()(form, form[:1]), wanted[:, :1])
        np.testing.assert_array_equal(Gram(Intersection(), form).diag(), np.diag(wanted))
    np.testing.assert_array_equal(GeneralSetKernel(Delta(), Min())(X), wanted)
    assert smallest(wanted) >= -1


def _table(X):
    return np.array([[A.get(letter, 0) for letter in "abcdef"] for A in X], float)


def test_real_multiplicities_and_many_bags(backend, rng):
    X = rng.exponential(size=(700, 30)) * (rng.random((700, 30)) < 0.3)
    wanted = np.array([np.minimum(x, X).sum(axis=1) for x in X])
    np.testing.assert_allclose(Intersection()(X), wanted, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(Intersection()(X, X[:9]), Min()(X, X[:9]), rtol=1e-13, atol=1e-13)
    dicts = [dict(enumerate(x)) for x in X[:40]]
    np.testing.assert_allclose(Intersection()(dicts), wanted[:40, :40], rtol=1e-13, atol=1e-13)


def test_new_bags_have_new_elements():
    X = [{"rose", "thorn"}, ["rose"], (), frozenset("leaf")]
    assert Intersection()(X, [["rose", "rose", "zebra"], ["l"]]).tolist() == [[1, 0], [1, 0], [0, 0], [0, 1]]
    K = Intersection().normalized()(X)
    np.testing.assert_allclose(K[:2, :2], [[1, 1 / np.sqrt(2)], [1 / np.sqrt(2), 1]], rtol=1e-15)
    assert K[2, 2] == 0


@pytest.mark.parametrize(
    ("bad", "error", "words"),
    [
        (["ab"], InputTypeError, "text.split"),
        ([["a"], None], InputTypeError, "bag 1"),
        ([{"a": -1}], InputError, "zero or more"),
        ([{"a": "x"}], InputTypeError, "must be numbers"),
        ([[["a"]]], InputTypeError, "hashable"),
        (np.array([[1.0, -1.0]]), InputError, "Negative values"),
        (np.array([[1.0, np.nan]]), InputError, "NaN"),
    ],
)
def test_what_is_no_bag(bad, error, words):
    with pytest.raises(error, match=words):
        Intersection()(bad)


def test_sides_of_different_kinds():
    with pytest.raises(InputTypeError, match="both as one kind"):
        Intersection()(np.ones((2, 3)), [["a"]])
    with pytest.raises(InputError, match="same number of columns"):
        Intersection()(np.ones((2, 3)), np.ones((2, 4)))


@settings(max_examples=40)
@given(some_bags)
def test_elements_with_a_kernel_and_counts_with_a_kernel(X):
    def k(x, y):
        return np.exp(-abs(ord(x) - ord(y)) / 2)

    for count, value in (
        (Linear(), lambda a, b: a * b),
        (Laplacian(gamma=0.5), lambda a, b: np.exp(-abs(a - b) / 2)),
    ):
        wanted = [[sum(k(x, y) * value(A[x], B[y]) for x, y in product(A, B)) for B in X] for A in X]
        letters = Laplacian(gamma=0.5) @ _ords
        with config(backend="numpy"):  # Each count would be compiled, and is another formula.
            K = GeneralSetKernel(letters, count)(X)
        np.testing.assert_allclose(K, wanted, rtol=1e-11, atol=1e-12)
        assert smallest(K) >= -1


def _ords(elements):
    return np.array([[float(ord(x))] for x in elements])


LETTERS = "abcd"


@settings(max_examples=30)
@given(st.lists(st.dictionaries(st.sampled_from(LETTERS), st.integers(0, 3)), min_size=1, max_size=4))
def test_the_sum_over_a_universe(bags):
    """The double sum over all of 𝒳, by loops; it differs from that over what is there where k̄(0, ·) ≠ 0."""

    def k(x, y):
        return np.exp(-abs(ord(x) - ord(y)) / 2)

    X = [Counter(bag) for bag in bags]
    for count, value in (
        (Linear(), lambda a, b: a * b),
        (Min(), min),
        (Gaussian(sigma=1.0), lambda a, b: np.exp(-((a - b) ** 2) / 2)),
        (Polynomial(2, c=1.0), lambda a, b: (a * b + 1) ** 2),
    ):
        wanted = [
            [sum(k(x, y) * value(A[x], B[y]) for x, y in product(LETTERS, LETTERS)) for B in X] for A in X
        ]
        letters = Laplacian(gamma=0.5) @ _ords
        with config(backend="numpy"):
            K = GeneralSetKernel(letters, count, universe=list(LETTERS))(X)
            np.testing.assert_allclose(K, wanted, rtol=1e-11, atol=1e-12)
            assert smallest(K) >= -1
            if isinstance(count, Linear | Min):  # k̄(0, ·) = 0: 𝒳 makes no difference
                K = GeneralSetKernel(letters, count)(X)
                np.testing.assert_allclose(K, wanted, rtol=1e-11, atol=1e-12)


def test_a_universe_of_vectors(rng):
    grid = np.array(list(product([0.0, 1.0], repeat=2)))
    bags = [rng.integers(0, 2, (n, 2)).astype(float) for n in (1, 4, 7)]
    k = GeneralSetKernel(Gaussian(), Gaussian(), universe=grid)
    times = np.array([[(bag == x).all(axis=1).sum() for x in grid] for bag in bags])
    wanted = [[(Gaussian()(grid) * np.exp(-((a[:, None] - b) ** 2) / 2)).sum() for b in times] for a in times]
    np.testing.assert_allclose(k(bags), wanted, rtol=1e-12)
    np.testing.assert_allclose(k([bag.tolist() for bag in bags]), wanted, rtol=1e-12)
    np.testing.assert_allclose(np.diag(wanted), Gram(k, bags).diag(), rtol=1e-12)
    assert certify(k).verdict == "proved"
    model = SVC(kernel=k).fit(bags, [0, 1, 1])
    assert pickle.loads(pickle.dumps(model)).predict(bags).tolist() == model.predict(bags).tolist()


def test_an_empty_bag_is_compared_throughout_the_universe():
    k = GeneralSetKernel(Delta(), Gaussian(sigma=1.0), universe=["a", "b", "c"])
    assert k([[]])[0, 0] == 3.0 and GeneralSetKernel(Delta(), Gaussian(sigma=1.0))([[]])[0, 0] == 0.0


def test_universes_that_are_none():
    with pytest.raises(InputError, match="bag 1 has the element 'x', which the universe has not"):
        GeneralSetKernel(Delta(), Min(), universe=["a"])([["a"], ["x"]])
    with pytest.raises(InputError, match="every element once, got 'a' more than once"):
        GeneralSetKernel(Delta(), Min(), universe=["a", "b", "a"])
    with pytest.raises(InputError, match="universe must be a list of elements"):
        GeneralSetKernel(Delta(), Min(), universe="ab")
    many = GeneralSetKernel(Delta(), Min(), universe=list(range(20)))
    assert repr(many) == "GeneralSetKernel(element=Delta(), count=Min(), universe=<20 elements>)"
    assert clone(many).resolve([[1], [2]]) == many


def test_vectors_with_multiplicities(rng):
    table = rng.integers(0, 2, (9, 2)).astype(float)
    forms = [table, table.tolist(), Counter(map(tuple, table.tolist()))]
    K = GeneralSetKernel(Gaussian(), Linear())(forms)
    np.testing.assert_allclose(K, SetKernel(Gaussian())([table])[0, 0], rtol=1e-13)
    assert GeneralSetKernel(Gaussian(), Min())([[], {}]).tolist() == [[0, 0], [0, 0]]
    with pytest.raises(InputError, match="zero or more"):
        GeneralSetKernel(Gaussian(), Min())([{(1.0, 2.0): -1}])
    with pytest.raises(InputTypeError, match="numbers as multiplicities"):
        GeneralSetKernel(Gaussian(), Min())([{(1.0, 2.0): "x"}])
    with pytest.raises(InputTypeError, match="hashable"):
        GeneralSetKernel(Delta(), Min())([[["a"]]])


def test_learners_take_counts_and_bags():
    rng = np.random.default_rng(5)
    y = np.arange(80) % 2
    table = rng.poisson(np.where(y[:, None] == np.arange(6) % 2, 4.0, 1.0))
    for X in (
        table,
        sparse.csr_matrix(table),
        [list(Counter(dict(enumerate(row.tolist()))).elements()) for row in table],
    ):
        train, test = (X[:50], X[50:])
        model = SVC(kernel=Intersection().normalized(), C=10.0).fit(train, y[:50])
        assert model.score(test, y[50:]) > 0.9
