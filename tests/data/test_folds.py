"""Folds of rows: they are scikit-learn's."""

import numpy as np
import pytest
from sklearn.model_selection import KFold, StratifiedKFold

from mercer.data.folds import folds, stratified_folds
from mercer.errors import InputError


def equal(ours, theirs):
    ours, theirs = list(ours), list(theirs)
    pairs = [(one[part], other[part]) for one, other in zip(ours, theirs, strict=True) for part in (0, 1)]
    return all(np.array_equal(*pair) for pair in pairs)


@pytest.mark.parametrize(("n", "parts"), [(2, 2), (17, 5), (100, 10)])
@pytest.mark.parametrize("seed", [0, 2**32 - 1])
def test_folds_are_those_of_scikit_learn(n, parts, seed):
    assert equal(folds(n, parts, seed), KFold(parts, shuffle=True, random_state=seed).split(np.zeros(n)))


@pytest.mark.filterwarnings("ignore:The least populated class")
@pytest.mark.parametrize("labels", [3, 40], ids=["few classes", "some of a single row"])
@pytest.mark.parametrize("seed", [0, 7])
def test_stratified_folds_are_those_of_scikit_learn(labels, seed):
    y = np.array(list("zyxwvutsrqponmlkjihgfedcbaZYXWVUTSRQPONMLKJI"))[
        np.random.default_rng(seed).integers(0, labels, 90)
    ]
    theirs = StratifiedKFold(5, shuffle=True, random_state=seed).split(y, y)
    assert equal(stratified_folds(y, 5, seed), theirs)
    whole = np.unique(y, return_inverse=True)[1]
    assert equal(stratified_folds(whole, 5, seed), stratified_folds(y, 5, seed))


def test_numbers_of_folds_that_cannot_be_are_refused():
    with pytest.raises(InputError, match=r"3 rows can be cut into 2 to 3 folds, got 4: pass another number"):
        folds(3, 4)
    with pytest.raises(
        InputError, match=r"4 folds need a class of as many rows, the largest has 3: pass fewer"
    ):
        stratified_folds([0, 0, 0, 1], 4)
