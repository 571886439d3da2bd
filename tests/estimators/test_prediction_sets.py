"""Sets of classes: what they hold with right probabilities, and with points held out."""

import math

import numpy as np
import pytest
from sklearn.datasets import make_classification

from mercer import SVC, AutoKernelClassifier, Gaussian, KernelLogisticRegression
from mercer.errors import InputError
from mercer.estimators.shared.sets import likely, set_threshold


def test_right_probabilities_give_right_sets(rng):
    """Labels drawn from the probabilities: 20,000 of them, and the sets are the smallest of their kind."""
    P = rng.dirichlet([0.6, 0.6, 0.6, 0.6], 20_000)
    labels = (P.cumsum(axis=1) > rng.random((20_000, 1))).argmax(axis=1)
    for coverage in (0.5, 0.9):
        sets = likely(P, coverage)
        mass = (P * sets).sum(axis=1)
        least = np.where(sets, P, np.inf).min(axis=1)
        assert (mass >= coverage - 1e-9).all()
        assert (mass - least < coverage).all()  # without the last of them it would be less
        inside = sets[np.arange(20_000), labels].mean()
        assert inside == pytest.approx(mass.mean(), abs=3 * math.sqrt(0.25 / 20_000))


def test_points_held_out_cover_whatever_the_probabilities(rng):
    """Split conformal: of 400 repetitions with 19 points held out, at least 90 %, and at most 95 %."""
    inside = []
    for _ in range(400):
        P, codes = rng.dirichlet([1, 1, 1], 69), rng.integers(0, 3, 69)  # The probabilities mean nothing.
        least = set_threshold(P[:19], codes[:19], 0.9)
        inside.append(float(np.mean(P[np.arange(19, 69), codes[19:]] >= least)))
    error = 3 * np.std(inside) / math.sqrt(400)
    assert 0.9 - error < np.mean(inside) < 0.95 + error


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "make",
    [
        lambda: SVC(kernel=Gaussian(sigma=2.0), probability=True),
        lambda: KernelLogisticRegression(kernel=Gaussian(sigma=2.0)),
    ],
)
def test_classifiers_have_sets(make, classes):
    X, y = make_classification(
        1500, 6, n_informative=4, n_classes=classes, class_sep=0.7, flip_y=0.15, random_state=classes
    )
    labels = np.array(["a", "b", "c"])[y]
    model = make().fit(X[:500], labels[:500])
    codes = y[1000:]
    for held_out in (None, (X[500:1000], labels[500:1000])):
        sets = model.predict_set(X[1000:], 0.9, held_out=held_out)
        assert sets.shape == (500, classes)
        assert sets[np.arange(500), np.searchsorted(model.classes_, model.predict(X[1000:]))].all()
        inside = sets[np.arange(500), codes].mean()
        # Both samples are of 500; sets that only sum up probabilities may hold more than they have to.
        assert inside > 0.9 - 3 * math.sqrt(2 * 0.09 / 500)
        if held_out is not None:
            assert inside < 0.9 + 3 * math.sqrt(2 * 0.09 / 500)


def test_what_has_no_probabilities_has_no_sets():
    X, y = make_classification(60, 4, random_state=0)
    model = SVC().fit(X, y)
    assert not hasattr(model, "predict_set")
    assert not hasattr(AutoKernelClassifier(), "predict_set")
    logistic = KernelLogisticRegression().fit(X, y)
    with pytest.raises(InputError, match="coverage must be a number between 0 and 1"):
        logistic.predict_set(X, 1.0)
    with pytest.raises(InputError, match="held_out has the label 2, which the model does not know"):
        logistic.predict_set(X, held_out=(X, y + 1))


def test_a_search_has_the_sets_of_its_model():
    X, y = make_classification(60, 4, random_state=0)
    model = AutoKernelClassifier(kernel=Gaussian(sigma=1.0)).fit(X, y)
    model.model_ = SVC(kernel=Gaussian(sigma=1.0), probability=True).fit(X, y)
    assert np.array_equal(model.predict_set(X), model.model_.predict_set(X))
