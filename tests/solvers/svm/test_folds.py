"""Machines of folds on one K, against LIBSVM's and against SVC."""

import numpy as np
import pytest
from sklearn import svm as peers
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import StratifiedKFold

from mercer import Gaussian
from mercer.solvers.svm.folds import machine_path, mistakes_of_paths

PENALTIES = np.array([0.1, 1.0, 10.0, 300.0])


def test_values_are_libsvms(rng):
    X = rng.normal(size=(120, 4))
    signs = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=120) > 0, 1.0, -1.0)
    K = Gaussian(1.5)(X)
    train, test = np.arange(80), np.arange(80, 120)
    gamma, slopes = np.zeros(80), signs[train].copy()
    first, rest = (
        machine_path(K, train, signs[train], test, part, gamma, slopes, before, 1e-8, 10**6)
        for part, before in ((PENALTIES[:1], PENALTIES[0]), (PENALTIES[1:], PENALTIES[0]))
    )
    values = [*first, *rest]
    for C, found in zip(PENALTIES, values, strict=True):
        peer = peers.SVC(C=C, kernel="precomputed", tol=1e-8).fit(K[np.ix_(train, train)], signs[train])
        # LIBSVM keeps K in float32: 6e-8 of each of some tens of terms up to C
        exact = peer.decision_function(K[np.ix_(test, train)])
        assert found == pytest.approx(exact, abs=6e-8 * 30 * max(C, 1.0))


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_mistakes_are_those_of_libsvm(load):
    X, y = load(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    K = Gaussian(2.0)(X)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    wrong = mistakes_of_paths(K, y, folds, PENALTIES)
    for C, count in zip(PENALTIES, wrong, strict=True):
        expected = 0
        for train, test in folds:
            peer = peers.SVC(C=C, kernel="precomputed").fit(K[np.ix_(train, train)], y[train])
            expected += np.count_nonzero(peer.predict(K[np.ix_(test, train)]) != y[test])
        assert abs(count - expected) <= 1  # a point within the tolerance of the border may differ


def test_a_class_that_is_missing_from_a_fold_gets_no_votes():
    X = np.arange(9.0)[:, None]
    y = np.repeat([0, 1, 2], 3)
    folds = [(np.arange(6), np.arange(6, 9)), (np.arange(9), np.arange(9))]
    assert mistakes_of_paths(Gaussian(0.5)(X), y, folds, [1.0, 100.0]).tolist() == [3, 3]


def test_paths_end_when_the_errors_have_clearly_risen(rng):
    X = rng.normal(size=(400, 8))
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)  # a large C learns the noise
    K, grid = Gaussian(3.0)(X), 10.0 ** np.arange(-1, 6.1, 0.5)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    wrong = mistakes_of_paths(K, y, folds, grid)
    stop = int(np.flatnonzero(wrong != wrong[-1])[-1]) + 2  # C that were tried
    assert 5 <= stop < len(grid)
    assert wrong[stop - 2 : stop].min() > wrong.min() + 2 * np.sqrt(wrong.min())
    # those that were tried do not know where it ends
    first = np.concatenate([mistakes_of_paths(K, y, folds, grid[:5]), wrong[5:]])
    assert first.tolist() == wrong.tolist()


def test_from_the_end_of_the_time_no_larger_penalty_is_tried(rng):
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 3
    folds = [(np.arange(40), np.arange(40, 60))]
    K, grid = Gaussian(1.0)(X), 10.0 ** np.arange(-2, 6)
    late, whole = (mistakes_of_paths(K, y, folds, grid, end) for end in (-np.inf, np.inf))
    np.testing.assert_array_equal(late[:5], whole[:5])
    assert (late[5:] == late[4]).all()
