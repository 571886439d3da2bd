"""Kernels on strings against enumerations in Python of what they count: no numbers stand for words there."""

from collections import Counter
from itertools import combinations, product
from math import comb

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from mercer import (
    BlendedSpectrum,
    GappedKmer,
    Gram,
    Mismatch,
    Spectrum,
    WeightedDegree,
    certify,
    config,
)
from mercer.errors import InputError, InputTypeError, MemoryBudgetError
from mercer.kernels.strings import kmers
from mercer.kernels.strings.word_pairs import Shifted, add_products

TEXTS = ["abracadabra", "", "a", "cadabra", "bracad", "ab", "dabra", "αβγ🎈αβ", "a\x00b\x00a"]
NOTES = [
    [("c", 4), ("d", 4), ("c", 4)],
    [],
    [("c", 4)],
    [("d", 4), ("c", 4), ("e", 5), ("c", 4)],
    (("c", 4), ("e", 5)),
]
COUNTING = [Spectrum(2), BlendedSpectrum(3, 0.5), GappedKmer(4, 2), Mismatch(3, 1), WeightedDegree(3, 1)]

some_texts = st.lists(st.text("abc", max_size=9), min_size=1, max_size=6)


def runs(x, k):
    return [tuple(x[i : i + k]) for i in range(len(x) - k + 1)]


def inner(bags, others=None):
    others = bags if others is None else others
    return np.array([[sum(a[u] * b[u] for u in a) for b in others] for a in bags], float)


# --- spectrum -------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 3, 5, 40])
@pytest.mark.parametrize("X", [TEXTS, NOTES, [x.encode() for x in TEXTS]], ids=["texts", "notes", "bytes"])
def test_spectrum_counts_words(X, k):
    np.testing.assert_array_equal(Spectrum(k)(X), inner([Counter(runs(x, k)) for x in X]))


@settings(max_examples=40, deadline=None)
@given(some_texts, some_texts, st.integers(1, 4))
def test_spectrum_of_two_sets(X, Y, k):
    wanted = inner(*([Counter(runs(x, k)) for x in side] for side in (X, Y)))
    np.testing.assert_array_equal(Spectrum(k)(X, Y), wanted)


@pytest.mark.parametrize("k", [1, 3])
def test_spectrum_has_the_counts_of_scikit_learn(k):
    X = [text for text in TEXTS if len(text) >= k]
    theirs = CountVectorizer(analyzer="char", ngram_range=(k, k), lowercase=False).fit_transform(X).toarray()
    ours = Spectrum(k).features(X).toarray()
    ours = ours[:, ours.any(axis=0)]  # a table may have columns for words that nobody has
    assert sorted(map(tuple, ours.T)) == sorted(map(tuple, theirs.T.astype(float)))


def test_words_that_no_machine_number_holds(rng):
    """A thousand letters, words of twenty: numbered in between."""
    tail = rng.integers(0, 1000, 40).tolist()
    X = [tail, [7, *tail[:30]], rng.integers(0, 1000, 60).tolist(), tail[5:]]
    np.testing.assert_array_equal(Spectrum(20)(X), inner([Counter(runs(x, 20)) for x in X]))
    bags = [gapped(x, 20, 2) for x in X]
    np.testing.assert_array_equal(GappedKmer(20, 2)(X), inner(bags))
    np.testing.assert_array_equal(GappedKmer(20, 2)(X[:2], X[2:]), inner(bags[:2], bags[2:]))


def test_blended_spectrum_is_a_sum():
    wanted = sum(0.5**j * Spectrum(j)(TEXTS) for j in (1, 2, 3))
    np.testing.assert_allclose(BlendedSpectrum(3, 0.5)(TEXTS), wanted, rtol=1e-14)  # √½ squared


# --- hashing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("buckets", [16, 100, 1024])
def test_hashing_keeps_to_its_bound(buckets, rng):
    """Other letters are hashed otherwise: the same strings in many alphabets are many draws of the hash."""
    draws = 1500
    x, y = (rng.integers(0, 4, size) for size in (120, 90))
    y[:40] = x[:40]
    exact = Spectrum(3)([x.tolist(), y.tolist()])
    alphabets = np.arange(4 * draws).reshape(draws, 4)
    X = [letters[string].tolist() for letters in alphabets for string in (x, y)]
    counts = Spectrum(3, buckets=buckets).features(X).toarray()
    error = (counts[::2] * counts[1::2]).sum(axis=1) - exact[0, 1]
    bound = (exact[0, 0] * exact[1, 1] + exact[0, 1] ** 2) / buckets
    assert abs(error.mean()) <= 4 * np.sqrt(bound / draws)  # four standard deviations of the mean
    # all but the pairs of a word with itself is in the bound, which is nearly sharp; four deviations of the
    # mean of 1500 squares, of a kurtosis of 6, are 0.25
    assert 0.6 * bound <= error.var() <= 1.25 * bound
    for epsilon in np.array([2, 3, 4]) / np.sqrt(buckets):
        beyond = np.abs(error) > epsilon * np.sqrt(exact[0, 0] * exact[1, 1])
        assert beyond.mean() <= 2 / (epsilon**2 * buckets)


def test_hashed_columns_are_those_of_the_letters():
    """The same whatever else is in the data, and for a text and the list of its letters."""
    kernel = Spectrum(2, buckets=64)
    alone, among = kernel.features(["banana"]), kernel.features(["zebra", "xyz", "banana"])
    np.testing.assert_array_equal(alone.toarray()[0], among.toarray()[2])
    np.testing.assert_array_equal(kernel.features([list("banana")]).toarray(), alone.toarray())
    assert alone.shape == (1, 64)
    np.testing.assert_array_equal(kernel([""], ["ab"]), [[0.0]])
    for letters in (np.array(list("banana")), pd.Series(list("banana"), index=range(6, 0, -1))):
        np.testing.assert_array_equal(kernel.features([letters]).toarray(), alone.toarray())


def test_hashing_into_more_columns_than_fit_is_refused():
    with config(memory="1GiB"), pytest.raises(MemoryBudgetError, match="fewer buckets"):
        Spectrum(2, buckets=2**31)(["ab"])


# --- mismatches -----------------------------------------------------------------------------------


def near(x, k, m, alphabet):
    bag = Counter()
    for u in runs(x, k):
        for word in product(alphabet, repeat=k):
            bag[word] += sum(a != b for a, b in zip(u, word, strict=True)) <= m
    return bag


@pytest.mark.parametrize(("k", "m"), [(1, 0), (1, 1), (2, 1), (3, 0), (3, 1), (3, 2), (4, 2)])
def test_mismatch_counts_neighbours(k, m, rng):
    X = ["", "ab", *("".join(rng.choice(list("abc"), size)) for size in (3, 5, 9, 12))]
    Y = ["abd", "dddd", "cabdabc"]  # d is new
    kernel = Mismatch(k, m).resolve(X)
    assert kernel.alphabet == "abc"
    wanted = [near(x, k, m, "abc") for x in X]
    np.testing.assert_array_equal(kernel(X), inner(wanted))
    np.testing.assert_array_equal(kernel(X, Y), inner(wanted, [near(y, k, m, "abc") for y in Y]))


def test_mismatch_on_any_letters():
    kernel = Mismatch(2, 1).resolve(NOTES)
    assert set(kernel.alphabet) == {("c", 4), ("d", 4), ("e", 5)}
    np.testing.assert_array_equal(kernel(NOTES), inner([near(x, 2, 1, kernel.alphabet) for x in NOTES]))
    same = Mismatch(2, 1, alphabet=list("acgt"))(["acca", "ggt"])
    np.testing.assert_array_equal(same, Mismatch(2, 1, alphabet="acgt")([list("acca"), list("ggt")]))


def test_mismatch_waits_for_its_letters():
    with pytest.raises(InputError, match="two sets"):
        Mismatch(2, 1)(["ab"], ["b"])
    with pytest.raises(InputError, match="waits for data"):
        Mismatch(2, 1).features(["ab"])
    np.testing.assert_array_equal(Mismatch(2, 1)([""]), [[0.0]])


def test_mismatch_refuses_what_it_cannot_list(rng):
    with pytest.raises(InputError, match="different letters"):
        Mismatch(2, 1, alphabet="aab")
    with pytest.raises(InputError, match="at most k"):
        Mismatch(2, 3)
    with pytest.raises(InputError, match="too many"):
        Mismatch(20, 1)(["".join(map(chr, range(65, 91)))])
    with pytest.raises(MemoryBudgetError, match="neighbours"):
        Mismatch(10, 8)(["".join(rng.choice(list("acdefghiklmnpqrstvwy"), 1000))])


# --- gaps -----------------------------------------------------------------------------------------


def gapped(x, g, m):
    return Counter((S, tuple(u[p] for p in S)) for u in runs(x, g) for S in combinations(range(g), g - m))


@pytest.mark.parametrize(("g", "m"), [(1, 0), (3, 0), (3, 1), (4, 2), (5, 4), (6, 3)])
@pytest.mark.parametrize("X", [TEXTS, NOTES], ids=["texts", "notes"])
def test_gapped_words(X, g, m):
    kernel, bags = GappedKmer(g, m), [gapped(x, g, m) for x in X]
    np.testing.assert_array_equal(kernel(X), inner(bags))
    np.testing.assert_array_equal(kernel(X[:3], X[2:]), inner(bags[:3], bags[2:]))
    np.testing.assert_array_equal(Gram(kernel, X).diag(), np.diag(inner(bags)))
    table = kernel.features(X)
    np.testing.assert_array_equal((table @ table.T).toarray(), inner(bags))


def test_gapped_words_count_what_two_runs_share(rng):
    """The other form of the kernel: Σ C(g - d, g - m) over pairs of runs that differ in d letters."""
    X = ["".join(rng.choice(list("abcd"), 15)) for _ in range(4)]

    def value(x, y, g, m):
        distances = (sum(a != b for a, b in zip(u, v, strict=True)) for u in runs(x, g) for v in runs(y, g))
        return sum(comb(g - d, g - m) for d in distances)

    wanted = [[value(x, y, 5, 2) for y in X] for x in X]
    np.testing.assert_array_equal(GappedKmer(5, 2)(X), wanted)


def test_words_that_are_there_for_some_of_very_many_shifts():
    first, last = np.array([60_000, 0]), np.array([90_000, 70_000])
    found = Shifted(kmers.Words(np.array([0, 1]), np.array([3, 3]), 4), first, last, shifts=100_000)
    K = np.zeros((2, 2), np.int64)
    add_products(K, found, None)
    np.testing.assert_array_equal(K, [[30_001, 0], [10_001, 70_001]])


def test_gaps_that_are_refused():
    with pytest.raises(InputError, match="leave at least one"):
        GappedKmer(3, 3)
    with pytest.raises(InputError, match="about 1e11 ways to leave 20 of 40 letters out"):
        GappedKmer(40, 20)
    assert GappedKmer(11, 4).g == 11 and GappedKmer(10**5, 1).g == 10**5


# --- places ---------------------------------------------------------------------------------------


def placed(x, y, k, shift):
    total = 0.0
    for d in range(1, k + 1):
        beta = 2 * (k - d + 1) / (k * (k + 1))
        for (i, u), (j, v) in product(enumerate(runs(x, d)), enumerate(runs(y, d))):
            total += beta * max(0.0, 1 - abs(i - j) / (shift + 1)) * (u == v)
    return total


@pytest.mark.parametrize(
    ("k", "shift"), [(1, 0), (3, 0), (2, 1), (4, 3), (1, 9), (1, 10), (2, 11), (3, 50), (2, 10**9)]
)
@pytest.mark.parametrize("X", [TEXTS, NOTES], ids=["texts", "notes"])
def test_weighted_degree(X, k, shift):
    wanted = [[placed(x, y, k, shift) for y in X] for x in X]
    np.testing.assert_allclose(WeightedDegree(k, shift)(X), wanted, rtol=1e-13)  # sums of ≤ 10² square roots


def test_shifts_of_long_strings_keep_to_the_memory():
    with config(memory="100MiB"), pytest.raises(MemoryBudgetError, match="smaller shift"):
        WeightedDegree(5, 1000)(["acgt" * 1000])


# --- all of them ----------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(some_texts)
def test_certified_kernels_are_positive(X):
    for kernel in COUNTING:
        K = kernel(X)
        assert np.linalg.eigvalsh(K)[0] >= -1e-10 * max(1.0, K.max())
        assert certify(kernel).verdict == "proved"


@pytest.mark.parametrize("kernel", COUNTING, ids=repr)
def test_what_is_no_sequence_is_refused(kernel):
    for wrong in ([1, 2], [None], ["ab", 3.0]):
        with pytest.raises(InputTypeError, match="a sequence is"):
            kernel(wrong)
    with pytest.raises(InputTypeError, match="hashable"):
        kernel([[[1], [2], [3]]])
    for unordered in ({"ab", "c"}, frozenset("ab"), {"a": 1, "b": 2}):
        with pytest.raises(InputTypeError, match="no order"):
            kernel([["a", "b", "c"], unordered])
    with pytest.raises(InputTypeError, match="only once"):
        kernel([iter("abc")])
    with pytest.raises(InputTypeError, match="a sequence is"):
        kernel([np.array(3)])
    with pytest.raises(InputError):
        kernel([])
    with pytest.raises(InputTypeError, match="single text"):
        kernel("abc")


def test_words_longer_than_any_string_cost_nothing():
    words = (
        Spectrum(10**9),
        Spectrum(10**9, buckets=8),
        GappedKmer(10**6, 0),
        Mismatch(30, 1, alphabet="ab"),
    )
    for kernel in words:
        np.testing.assert_array_equal(kernel(["ab", "b"]), np.zeros((2, 2)))
    np.testing.assert_array_equal(BlendedSpectrum(10**9)(TEXTS), BlendedSpectrum(11)(TEXTS))
    far = WeightedDegree(10**9)(["ab"], ["ab"]) * (10**9 + 1) / 2
    np.testing.assert_allclose(far, [[3.0]], rtol=1e-8)  # three words, each of about the same weight


def test_numbers_for_codes(rng):
    codes = rng.integers(-(2**62), 2**62, 500)[rng.integers(0, 500, 3000)]
    numbers, found = kmers.numbered(codes)
    assert found == len(set(codes.tolist())) and numbers.max() == found - 1
    assert len({*zip(codes.tolist(), numbers.tolist(), strict=True)}) == found  # one number each, and back
