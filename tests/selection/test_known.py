"""Parts of kernels that a search computes once: the same kernels, and fewer readings of texts."""

import numpy as np
import pytest

from mercer import BagOfWords, Delta, Gaussian, Spectrum, config
from mercer.kernels.columns.table import ColumnKernel
from mercer.selection import AutoKernelClassifier, AutoKernelRegressor
from mercer.selection.known import KnownParts
from mercer.tables import TableFeatures


@pytest.fixture
def table(rng):
    """Two numbers, a text and a text that is missing at times; the label is a word of the text."""
    n = 90
    words = np.array(["apple", "pear", "plum", "fig", "lime", "kiwi"])
    X = np.empty((n, 4), dtype=object)
    X[:, :2] = rng.normal(size=(n, 2))
    X[:, 2] = [" ".join(rng.choice(words, 4)) for _ in range(n)]
    X[:, 3] = [None if i % 7 == 0 else "ab" * (i % 3) + "cd" * (i % 5) for i in range(n)]
    return X, np.array(["plum" in text for text in X[:, 2]])


def kernels():
    texts = {2: BagOfWords(weighting="tf-idf").normalized(), 3: Spectrum(2)}
    return [
        ColumnKernel({(0, 1): Gaussian(sigma="median"), **texts}),
        ColumnKernel({(0, 1): Gaussian(sigma=2.0), **texts}, combine="anova", weights={2: 3.0}),
    ]


@pytest.mark.parametrize("number", [0, 1])
def test_the_values_are_those_of_the_kernel(table, rng, number):
    """On points in any order and of some rows alone, gaps included; parameters that change do so for both."""
    X, _ = table
    known = KnownParts.of(X, kernels()).take(rng.permutation(len(X))[:60])
    found, some = known.family(kernels()[number]), X[known.rows]
    assert found.names == ("0_1__sigma",)
    for sigma in (None, 0.3):
        if sigma is not None:
            found.kernel.set_params(**{"0_1__sigma": sigma})
            found.shown.set_params(**{"0_1__sigma": sigma})
        which = rng.permutation(60)[:20]
        assert np.allclose(found.kernel(known.X[which]), found.shown(some[which]), atol=1e-13)
        assert np.allclose(
            found.kernel(known.X[:5], known.X[which]), found.shown(some[:5], some[which]), atol=1e-13
        )


def test_what_the_parts_are_not_of_columns_is_left_as_it_is(table):
    X, _ = table
    assert KnownParts.of(X[:, :2].astype(float), kernels()) is None  # numbers alone
    assert KnownParts.of(X, [*kernels(), Gaussian(sigma=1.0)]) is None
    assert KnownParts.of(X, [ColumnKernel({(2, 3): Delta()})]) is None  # two columns of objects at once
    learned = 2.0 * Spectrum(2)  # its weight is learned
    assert KnownParts.of(X, [ColumnKernel({0: Gaussian(sigma=1.0), 3: learned})]) is None


def test_no_more_points_are_known_than_there_is_memory_for(table):
    X, _ = table
    known = KnownParts.of(X, kernels())
    assert known.affordable(kernels(), np.inf) == len(X)
    with config(memory=4 * 2 * 8 * 50**2):  # two matrices, which have a quarter of it
        assert known.affordable(kernels(), np.inf) == 50
    assert known.affordable(kernels(), 1e-9) < 20


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", [AutoKernelClassifier, AutoKernelRegressor])
def test_a_search_reads_the_texts_once(table, kind, monkeypatch):
    """Its trials are of kernels on the table as it was given, and so is the machine."""
    X, y = table
    read = []
    features = BagOfWords.features
    monkeypatch.setattr(BagOfWords, "features", lambda self, X: read.append(len(X)) or features(self, X))
    model = kind(kernels()).fit(X, y)
    assert (
        len(read) < 12
    )  # the parts, the last fit and its check; a search of two kernels computes K 50 times
    assert all(isinstance(trial.kernel.columns[2], type(kernels()[0].columns[2])) for trial in model.trials_)
    assert np.mean((model.predict(X) > 0.5) == y) > 0.95
    alone = TableFeatures().fit(X[:, 2:3])
    texts = kind(alone.kernels("auto")).fit(alone.transform(X[:, 2:3]), y)
    assert np.mean((texts.predict(alone.transform(X[:, 2:3])) > 0.5) == y) > 0.9
