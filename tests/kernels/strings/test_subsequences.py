"""Gap-weighted subsequences and local alignments against enumerations and plain recursions."""

import pickle
from collections import Counter
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import strategies as st

from mercer import SVC, Gram, LocalAlignment, Subsequence, certify, config
from mercer.errors import InputError, InputTypeError, MemoryBudgetError
from mercer.kernels.strings.lanes import LANES

TEXTS = ["abracadabra", "", "a", "cadabra", "bracad", "ab", "αβγ🎈αβ"]
NOTES = [[("c", 4), ("d", 4), ("c", 4)], [], [("c", 4)], (("d", 4), ("c", 4), ("e", 5), ("c", 4))]

some_texts = st.lists(st.text("abc", max_size=8), min_size=1, max_size=5)


def weighted(x, length, decay):
    bag = Counter()
    for places in combinations(range(len(x)), length):
        bag[tuple(x[p] for p in places)] += decay ** (places[-1] - places[0] + 1)
    return bag


def inner(bags, others):
    return np.array([[sum(a[u] * b[u] for u in a) for b in others] for a in bags], float)


def plain(x, y, length, decay):
    """Lodhi's recursion as it is written, pair by pair."""

    @cache
    def unfinished(i, n, m):  # K'_i(x[:n], y[:m])
        if i == 0:
            return 1.0
        if min(n, m) < i:
            return 0.0
        ends = sum(unfinished(i - 1, n - 1, j) * decay ** (m - j + 1) for j in range(m) if y[j] == x[n - 1])
        return decay * unfinished(i, n - 1, m) + ends

    total = 0.0
    for n in range(1, len(x) + 1):
        total += sum(unfinished(length - 1, n - 1, j) * decay**2 for j in range(len(y)) if y[j] == x[n - 1])
    return total


@pytest.mark.parametrize("decay", [0.3, 1.0, 1.7])
@pytest.mark.parametrize("length", [1, 2, 3, 5])
@pytest.mark.parametrize("X", [TEXTS, NOTES, [x.encode() for x in TEXTS]], ids=["texts", "notes", "bytes"])
def test_subsequences_are_counted(X, length, decay):
    kernel, bags = Subsequence(length, decay), [weighted(x, length, decay) for x in X]
    # products and sums of non-negative numbers, a few hundred deep
    np.testing.assert_allclose(kernel(X), inner(bags, bags), rtol=1e-13)
    np.testing.assert_allclose(kernel(X[:2], X[1:]), inner(bags[:2], bags[1:]), rtol=1e-13)
    np.testing.assert_allclose(Gram(kernel, X).diag(), np.diag(inner(bags, bags)), rtol=1e-13)


def test_more_sequences_than_lanes_of_all_lengths(rng):
    X = ["".join(rng.choice(list("acgt"), size)) for size in rng.integers(0, 30, 2 * LANES + 5)]
    K = Subsequence(3, 0.6)(X)
    for i, j in rng.integers(0, len(X), (40, 2)).tolist():
        assert K[i, j] == pytest.approx(plain(X[i], X[j], 3, 0.6), rel=1e-12, abs=0)
    np.testing.assert_allclose(Gram(Subsequence(3, 0.6), X).diag(), np.diag(K), rtol=1e-13)
    few = rng.integers(0, len(X), 21)
    np.testing.assert_allclose(Subsequence(3, 0.6)([X[i] for i in few], X), K[few], rtol=1e-13)


def test_threads_change_nothing(rng):
    X = ["".join(rng.choice(list("acgt"), size)) for size in rng.integers(1, 20, 520)]
    with config(threads=1):
        K = Subsequence(2)(X)
    with config(threads=2):
        assert np.array_equal(Subsequence(2)(X), K)


def test_a_long_string_with_itself():
    """aⁿ has C(n, 2) pairs, and with λ = 1 each counts once: C(n, 2)² exactly, up to 2⁵³."""
    assert Subsequence(2, 1.0)(["a" * 3000])[0, 0] == (3000 * 2999 / 2) ** 2


def test_subsequences_longer_than_any_string_cost_nothing():
    K = Gram(Subsequence(10**9), ["ab", "b"])
    assert not K.dense().any() and not K.diag().any()


def test_values_that_floats_cannot_hold_are_refused():
    with pytest.raises(InputError, match="use a smaller decay"):
        Subsequence(200, 3.0)(["a" * 250])
    with pytest.raises(InputError, match="use a larger decay"):
        Subsequence(60, 1e-3).normalized()(["ab" * 100, "abb" * 50])
    K = Subsequence(30, 0.01).normalized()(["ab" * 40, "abb" * 20])  # 1e-120, and still right
    np.testing.assert_allclose(np.diag(K), 1.0, rtol=1e-12)


def test_long_subsequences_keep_to_the_memory():
    with config(memory="10MiB"), pytest.raises(MemoryBudgetError, match="shorter length"):
        Subsequence(100)(["ab" * 500])


def test_subsequence_learns_and_is_proved():
    X, y = ["abab", "baba", "cddc", "dcdc"], [0, 0, 1, 1]
    model = SVC(kernel=Subsequence(2).normalized(), C=10.0).fit(X, y)
    np.testing.assert_array_equal(model.predict(["bbab", "zcxd"]), [0, 1])
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(["q", ""]), model.decision_function(["q", ""]))
    assert certify(Subsequence(2).normalized()).verdict == "proved"


# --- alignment ------------------------------------------------------------------------------------


def aligned(x, y, match, mismatch, gap):
    """The best score over all pairs of parts, each by the recursion for global alignments."""

    @cache
    def whole(a, b, c, d):  # of x[a:b] and y[c:d]
        if a == b or c == d:
            return -gap * (b - a + d - c)
        score = match if x[b - 1] == y[d - 1] else -mismatch
        return max(
            whole(a, b - 1, c, d - 1) + score, whole(a, b - 1, c, d) - gap, whole(a, b, c, d - 1) - gap
        )

    parts = [(a, b, c, d) for a, b in cuts(len(x)) for c, d in cuts(len(y))]
    return max([0.0, *(whole(*part) for part in parts)])


def cuts(n):
    return list(combinations(range(n + 1), 2))


@pytest.mark.sample(3)
@pytest.mark.parametrize("scores", [(1.0, 1.0, 1.0), (2.0, 0.5, 0.25), (1.0, 0.0, 3.0), (3.0, 2.0, 0.0)])
@pytest.mark.parametrize("X", [["abcab", "", "bcb", "xabyca", "αβ"], NOTES], ids=["texts", "notes"])
def test_local_alignment(X, scores):
    wanted = [[aligned(x, y, *scores) for y in X] for x in X]
    kernel = LocalAlignment(*scores)
    np.testing.assert_allclose(kernel(X), wanted, rtol=1e-14)
    np.testing.assert_allclose(kernel(X[:2], X[1:]), np.array(wanted)[:2, 1:], rtol=1e-14)
    np.testing.assert_allclose(Gram(kernel, X).diag(), np.diag(wanted), rtol=1e-14)


def test_local_alignment_is_never_called_a_kernel():
    assert LocalAlignment.lemma is None and LocalAlignment.closure is None
    assert certify(LocalAlignment()).verdict != "proved"
    assert certify(LocalAlignment() + Subsequence(2)).verdict != "proved"


def test_local_alignment_is_not_positive_definite():
    """Where differences cost nothing it is the length of the longest common subsequence, which is none."""
    X = ["".join(word) for n in (1, 2, 3) for word in product("abc", repeat=n)]
    assert np.linalg.eigvalsh(LocalAlignment(1.0, 0.0, 0.0)(X))[0] < -1e-6


@pytest.mark.parametrize("kernel", [Subsequence(2), LocalAlignment()], ids=repr)
def test_what_is_no_sequence_is_refused(kernel):
    with pytest.raises(InputTypeError, match="a sequence is"):
        kernel(["ab", 3])
    with pytest.raises(InputTypeError, match="hashable"):
        kernel([[[1], [2]]])
    with pytest.raises(InputError):
        kernel([])
    np.testing.assert_array_equal(kernel(["", ""], [""]), [[0.0], [0.0]])
