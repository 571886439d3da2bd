"""Kernels on objects: both sides of a Gram are read together, whatever the backend."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from mercer import (
    SVC,
    Delta,
    Gaussian,
    GeneralSetKernel,
    Gram,
    Kernel,
    KernelRidge,
    Min,
    PartialTree,
    RandomWalk,
    SetKernel,
    certify,
    config,
)
from mercer.errors import InputError, InputTypeError
from mercer.kernels.graphs import Graph
from mercer.kernels.structured import FeatureKernel, ObjectKernel, Ragged, encode_labels, encode_sequences

WORDS = ["kernel", "colonel", "mercer", "merger", "", "emerge"]
NEW = ["zebra", "kernels", "xyz"]


class Letters(FeatureKernel):
    """Counts of letters."""

    def features(self, X):
        words = encode_sequences(X)
        rows = np.repeat(np.arange(len(words)), words.lengths)
        shape = (len(words), int(words.values.max(initial=-1)) + 1)
        return sparse.csr_array((np.ones(len(rows)), (rows, words.values)), shape=shape)


class LettersByPairs(ObjectKernel):
    """The same, pair by pair."""

    def encode(self, X):
        return encode_sequences(X)

    def pairs(self, X, Y):
        Y = X if Y is None else Y
        return np.array(
            [[(X.row(i)[:, None] == Y.row(j)).sum() for j in range(len(Y))] for i in range(len(X))], float
        )

    def self_pairs(self, X):
        return np.array([(X.row(i)[:, None] == X.row(i)).sum() for i in range(len(X))], float)


def truth(X, Y):
    return np.array([[sum(a == b for a in x for b in y) for y in Y] for x in X], float)


@pytest.fixture(params=["numpy", "numba", "torch", "triton"])
def backend(request):
    if request.param in ("torch", "triton"):
        pytest.importorskip(request.param)
    with config(backend=request.param):
        yield request.param


@pytest.mark.parametrize("kernel", [Letters(), LettersByPairs()], ids=repr)
def test_both_sides_share_their_codes(backend, kernel):
    np.testing.assert_array_equal(kernel(WORDS), truth(WORDS, WORDS))
    np.testing.assert_array_equal(kernel(WORDS, NEW), truth(WORDS, NEW))
    np.testing.assert_array_equal(kernel(NEW, WORDS), truth(NEW, WORDS))
    K = Gram(kernel, WORDS)
    np.testing.assert_array_equal(K.diag(), np.diag(truth(WORDS, WORDS)))
    np.testing.assert_array_equal(K.rows([4, 1]), truth(WORDS, WORDS)[[4, 1]])
    some = [WORDS[2], WORDS[0]]
    np.testing.assert_array_equal(K.restrict(np.array([2, 0])).dense(), truth(some, some))


@pytest.mark.parametrize("kernel", [Letters(), LettersByPairs()], ids=repr)
def test_the_algebra(backend, kernel):
    K = truth(WORDS[:4], WORDS[:4])
    root = np.sqrt(np.diag(K))
    np.testing.assert_allclose(kernel.normalized()(WORDS[:4]), K / np.outer(root, root), rtol=1e-12)
    whole = truth(WORDS, WORDS)
    np.testing.assert_allclose((kernel * kernel + 2.0 * kernel)(WORDS), whole * whole + 2 * whole)
    J = np.eye(4) - 0.25
    np.testing.assert_allclose(kernel.centered(WORDS[:4])(WORDS[:4]), J @ K @ J, atol=1e-12)


@pytest.mark.parametrize("kernel", [Letters(), LettersByPairs()], ids=repr)
def test_a_column_of_a_table(backend, kernel):
    frame = pd.DataFrame({"word": WORDS, "age": np.arange(6.0)})
    np.testing.assert_array_equal(kernel.on("word")(frame), truth(WORDS, WORDS))
    np.testing.assert_array_equal(kernel.on("word")(frame, frame[1:3]), truth(WORDS, WORDS[1:3]))
    table = np.array([[word, 1.0] for word in WORDS], dtype=object)
    np.testing.assert_array_equal(kernel.on(0)(table), truth(WORDS, WORDS))


@pytest.mark.parametrize("kernel", [Letters(), LettersByPairs()], ids=repr)
def test_learners_see_unseen_letters(kernel):
    y = [0, 0, 1, 1, 0, 1]
    model = SVC(kernel=kernel + 1.0, C=10.0).fit(WORDS, y)
    assert set(model.predict(NEW)) <= {0, 1}
    ridge = KernelRidge(kernel=kernel + 1.0, alpha=0.1).fit(WORDS, np.arange(6.0))
    wanted = truth(NEW, WORDS) + 1.0
    np.testing.assert_allclose(
        ridge.predict(NEW), wanted @ ridge.expansion_.coef + ridge.expansion_.intercept, rtol=1e-9
    )


def test_more_objects_than_a_tile(backend, rng):
    words = ["".join(rng.choice(list("abcdefgh"), size=rng.integers(0, 9))) for _ in range(700)]
    K = Letters()(words)
    i, j = rng.integers(0, 700, 50), rng.integers(0, 700, 50)
    for a, b in zip(i, j, strict=True):
        assert K[a, b] == truth([words[a]], [words[b]])[0, 0]


def test_what_others_claim_is_not_proved():
    class Claim(LettersByPairs):
        lemma = "trust me"
        closure = "trust me, too"

    assert certify(Claim()).verdict == "unknown"
    assert certify(Letters()).verdict == "proved"  # an inner product, whatever is counted


def test_nothing_to_count(backend):
    assert Letters()(["", ""]).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert Letters()([""], ["", ""]).tolist() == [[0.0, 0.0]]


def test_ragged():
    ragged = Ragged.of([[1, 2], [], [3]])
    assert ragged.shape == (3,) and len(ragged[1:]) == 2
    assert [ragged[np.array([2, 0])].row(i).tolist() for i in range(2)] == [[3], [1, 2]]
    assert len(Ragged.of([])) == 0


def test_codes():
    assert encode_sequences([]).shape == (0,)
    assert encode_sequences(["", ""]).lengths.tolist() == [0, 0]
    mixed = encode_sequences(["ab", ["a", ("x", 1)], b"a"])
    assert mixed.row(0)[0] == mixed.row(1)[0] and mixed.row(2).tolist() == [3]
    assert encode_sequences(["\ud800a", "a"]).row(1)[0] == encode_sequences(["\ud800a", "a"]).row(0)[1]
    with pytest.raises(InputTypeError, match="got 3: pass one per point"):
        encode_sequences(["ab", 3])
    with pytest.raises(InputTypeError, match="must be hashable"):
        encode_labels([["a"]])


def test_what_has_no_formula_has_no_derivative():
    from mercer import Gaussian, SetKernel

    with pytest.raises(InputError, match=r"has no derivative by 'base__sigma'.*nothing"):
        SetKernel(Gaussian(sigma=1.0)).derivative("base__sigma")([np.ones((2, 2))])


GRAPHS = [Graph([[0, 1], [1, 0]], attributes=[[0.0], [1.0]]), Graph([[0]], attributes=[[2.0]])]


@pytest.mark.parametrize(
    ("kernel", "X"),
    [
        (SetKernel(Gaussian(sigma=1.0)), [[[0.0], [1.0]], [[2.0]]]),
        (GeneralSetKernel(Delta(), Min()), [["a", "b", "b"], ["b"]]),
        (RandomWalk(node=Gaussian(sigma=1.0)), GRAPHS),
        (PartialTree(labels=Letters()), ["(NP (D the) (N dog))", "(N dog)"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_gram_of_objects_makes_that_of_their_parts(kernel, X, monkeypatch):
    """A kernel names the kernel of the parts, and neither calls it nor makes a Gram of its own."""
    expected = Gram(kernel, X).dense()
    monkeypatch.setattr(Kernel, "__call__", None)
    np.testing.assert_array_equal(Gram(kernel, X).dense(), expected)
    np.testing.assert_allclose(Gram(kernel, X).diag(), np.diag(expected), rtol=1e-14)
    parts = kernel.encode(X).parts
    with pytest.raises(AttributeError, match="matrix"):  # nobody has brought it
        parts.matrix  # noqa: B018
