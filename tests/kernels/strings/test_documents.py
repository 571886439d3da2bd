"""Bags of words against scikit-learn's counts, and against counting in Python."""

import pickle
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.model_selection import GridSearchCV

from mercer import SVC, BagOfWords, KernelRidge
from mercer.errors import InputError, InputTypeError
from mercer.kernels.strings.documents import DocumentFrequencies

TEXTS = [
    "To be, or not to be: that is the question!",
    "Whether 'tis nobler in the mind to suffer",
    "the slings and arrows of outrageous fortune, the SLINGS",
    "",
    "a b c",
    "Straße über naïve façade — straße; ÜBER_x 2nd",
    "be be be",
]
NEW = ["To suffer or not to suffer", "zebra zebra", ""]

sentences = st.lists(st.sampled_from(["to", "be", "or", "not", "To"]), max_size=8).map(" ".join)


def product(vectorizer, X=TEXTS, Y=None):
    rows = vectorizer.fit_transform(X)
    return (rows @ (rows if Y is None else vectorizer.transform(Y)).T).toarray()


@pytest.mark.parametrize(("n", "shortest"), [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2)])
@pytest.mark.parametrize("lowercase", [True, False])
def test_counts_are_those_of_scikit_learn(n, shortest, lowercase):
    theirs = CountVectorizer(ngram_range=(shortest, n), lowercase=lowercase)
    np.testing.assert_array_equal(BagOfWords(n, shortest, lowercase=lowercase)(TEXTS), product(theirs))


def test_binary_counts_and_patterns():
    theirs = CountVectorizer(binary=True, token_pattern=r"(?u)\b\w+\b")
    np.testing.assert_array_equal(BagOfWords(weighting="binary", pattern=r"\w+")(TEXTS), product(theirs))


def test_logarithmic_counts():
    theirs = TfidfVectorizer(sublinear_tf=True, use_idf=False, norm=None)
    np.testing.assert_allclose(BagOfWords(weighting="log")(TEXTS), product(theirs), rtol=1e-14)


@pytest.mark.parametrize(("n", "shortest"), [(1, 1), (2, 1), (3, 2)])
def test_tf_idf_is_that_of_scikit_learn(n, shortest):
    ours = BagOfWords(n, shortest, weighting="tf-idf").resolve(TEXTS)
    raw = TfidfVectorizer(ngram_range=(shortest, n), norm=None)
    np.testing.assert_allclose(ours(TEXTS), product(raw), rtol=1e-13)
    np.testing.assert_allclose(ours(TEXTS, NEW), product(raw, TEXTS, NEW), rtol=1e-13)
    unit = TfidfVectorizer(ngram_range=(shortest, n))
    np.testing.assert_allclose(ours.normalized()(TEXTS), product(unit), rtol=1e-13)


def test_unseen_words_count_as_rarest():
    """scikit-learn has no column for them; here two new documents may share a new word."""
    kernel = BagOfWords(weighting="tf-idf").resolve(TEXTS)
    assert kernel(["zebra"], ["zebra"])[0, 0] == pytest.approx((np.log(1 + len(TEXTS)) + 1) ** 2)


def test_weights_of_points_count_as_copies():
    kernel = BagOfWords(weighting="tf-idf")
    weighted, copied = kernel.resolve(TEXTS[:2], [2.0, 1.0]), kernel.resolve([TEXTS[0], *TEXTS[:2]])
    assert weighted == copied
    assert weighted != kernel.resolve(TEXTS[:2])


@settings(max_examples=30, deadline=None)
@given(st.lists(sentences, min_size=1, max_size=5), st.integers(1, 3))
def test_runs_of_words(X, n):
    def runs(text):
        said = text.lower().split()
        return Counter(tuple(said[i : i + m]) for m in range(1, n + 1) for i in range(len(said) - m + 1))

    bags = [runs(x) for x in X]
    wanted = [[sum(a[u] * b[u] for u in a) for b in bags] for a in bags]
    np.testing.assert_array_equal(BagOfWords(n)(X), wanted)


def test_lists_of_words_are_taken_as_they_are():
    np.testing.assert_array_equal(BagOfWords()([["a", "To", 3], ("a", "to", 3, 3)]), [[3.0, 3.0], [3.0, 6.0]])
    pairs = BagOfWords(2, 2, weighting="tf-idf").resolve([[1, 2, 3], [2, 3]])
    assert pairs.frequencies.of == {(1, 2): 1.0, (2, 3): 2.0}


def test_the_state_is_part_of_the_kernel():
    kernel = BagOfWords(weighting="tf-idf")
    assert not kernel.is_resolved() and BagOfWords().is_resolved()
    resolved = kernel.resolve(TEXTS)
    assert resolved.is_resolved() and resolved.resolve(NEW) is resolved
    for other in (clone(resolved), pickle.loads(pickle.dumps(resolved))):
        assert other == resolved and hash(other) == hash(resolved)
        np.testing.assert_array_equal(other(TEXTS, NEW), resolved(TEXTS, NEW))
    assert "7 documents" in repr(resolved)
    with pytest.raises(InputError, match="learns from documents"):
        kernel.features(TEXTS)
    with pytest.raises(InputError, match="two sets"):
        kernel(TEXTS, NEW)


@pytest.mark.parametrize("change", [{"n": 2}, {"lowercase": False}, {"pattern": r"\w+"}])
def test_frequencies_are_learned_anew_once_words_are_others(change):
    kernel = BagOfWords(weighting="tf-idf").resolve(TEXTS)
    same = clone(kernel).set_params(n=1, weighting="tf-idf")
    assert same.is_resolved() and same.resolve(NEW) is same
    changed = clone(kernel).set_params(**change)
    assert not changed.is_resolved()
    assert changed.resolve(TEXTS) == BagOfWords(weighting="tf-idf", **change).resolve(TEXTS)
    model = KernelRidge(kernel=clone(kernel)).set_params(
        **{f"kernel__{name}": v for name, v in change.items()}
    )
    fresh = KernelRidge(kernel=BagOfWords(weighting="tf-idf", **change))
    y = np.arange(len(TEXTS))
    np.testing.assert_array_equal(model.fit(TEXTS, y).predict(NEW), fresh.fit(TEXTS, y).predict(NEW))


def test_frequencies_that_somebody_made_fit_any_words():
    frequencies = DocumentFrequencies(9.0, {("zebra",): 4.0})
    kernel = BagOfWords(weighting="tf-idf", frequencies=frequencies)
    assert kernel(["zebra"], ["zebra zebra"])[0, 0] == pytest.approx(2 * (np.log(2) + 1) ** 2)


def test_learners_keep_what_they_learned():
    texts = ["win money now", "cheap money win", "lunch at noon", "see you at noon"]
    y = np.array(["spam", "spam", "ham", "ham"])
    model = SVC(kernel=BagOfWords(2, weighting="tf-idf").normalized(), C=10.0).fit(texts, y)
    assert model.predict(["money money", "noon then"]).tolist() == ["spam", "ham"]
    assert model.kernel_.kernel.frequencies.documents == 4
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(NEW), model.decision_function(NEW))
    ridge = KernelRidge(kernel=BagOfWords(), alpha=0.5).fit(texts, np.arange(4.0))
    assert np.isfinite(ridge.predict(NEW)).all()


def test_a_search_over_its_parameters():
    texts = ["good fun", "fun good fun", "great fun", "bad dull", "dull", "bad dull bad"] * 2
    y = [1, 1, 1, 0, 0, 0] * 2
    grid = {"kernel__kernel__n": [1, 2], "kernel__kernel__weighting": [None, "tf-idf"]}
    search = GridSearchCV(SVC(kernel=BagOfWords().normalized()), grid, cv=2).fit(texts, y)
    assert search.best_score_ == 1.0


def test_a_column_of_a_frame():
    frame = pd.DataFrame({"text": TEXTS, "length": [len(text) for text in TEXTS]})
    np.testing.assert_array_equal(BagOfWords().on("text")(frame), BagOfWords()(TEXTS))
    tf_idf = BagOfWords(weighting="tf-idf")
    np.testing.assert_array_equal(tf_idf.on("text").resolve(frame)(frame), tf_idf.resolve(TEXTS)(TEXTS))


def test_what_is_refused():
    with pytest.raises(InputError, match="at most n"):
        BagOfWords(1, 2)
    with pytest.raises(InputError, match="regular expression"):
        BagOfWords(pattern="(")
    with pytest.raises(InputError, match="one of"):
        BagOfWords(weighting="idf")
    with pytest.raises(InputTypeError, match="decode"):
        BagOfWords()([b"bytes"])
    with pytest.raises(InputTypeError, match="a document is"):
        BagOfWords()(["text", None])
    with pytest.raises(InputTypeError, match="hashable"):
        BagOfWords()([[["nested"]]])
    with pytest.raises(InputTypeError, match=r"got a Counter: pass list\(Counter\(x\)\.elements"):
        BagOfWords()([Counter(to=2, be=2)])  # its keys would have been taken for the words
    with pytest.raises(InputTypeError, match="only once"):
        BagOfWords()([iter(["to", "be"])])
    with pytest.raises(InputTypeError, match="no order"):
        BagOfWords(2)([{"to", "be"}])
    np.testing.assert_array_equal(BagOfWords()([{"to", "be"}, {"be"}]), [[2.0, 1.0], [1.0, 1.0]])
    np.testing.assert_array_equal(BagOfWords()(["", "."]), np.zeros((2, 2)))


def test_a_text_is_read_once(monkeypatch):
    from mercer.kernels.strings import documents

    read, found = [], documents.re.findall
    monkeypatch.setattr(documents.re, "findall", lambda *given: read.append(given) or found(*given))
    kernel = BagOfWords(weighting="tf-idf")
    texts = ["a text that only this test has", "and another text of this test"]
    kernel.resolve(texts)(texts)
    assert len(read) == 2
    kernel.resolve([texts[0] * documents._REMEMBERED_LETTERS])
    kernel.resolve([texts[0] * documents._REMEMBERED_LETTERS])
    assert len(read) == 4  # long texts are not kept
    pairs = BagOfWords(pattern=r"(\w)(\w)")
    assert pairs("abab", "ab") == 2.0  # groups make tuples, which are words too
