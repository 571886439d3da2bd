"""What a kernel is worth, against scikit-learn's own folds."""

import numpy as np
import pytest
from scipy.ndimage import binary_dilation, convolve1d
from sklearn import svm
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedKFold, cross_val_score

from mercer import Gaussian, Spectrum
from mercer.selection import AutoKernelClassifier
from mercer.selection.race import _neighbouring
from mercer.selection.scores import PENALTIES, MachineErrors, beside, neighbours


@pytest.fixture(scope="module")
def flowers():
    X, y = load_iris(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def test_errors_over_folds_are_scikit_learns(flowers):
    X, y = flowers
    errors, penalties = MachineErrors(X, y).path(Gaussian(sigma=1.0), np.arange(len(y)), rounds=range(2))
    assert penalties == pytest.approx(PENALTIES)  # k(x, x) = 1
    for k in (1, 4, 8):
        machine = svm.SVC(C=penalties[k], gamma=0.5)
        expected = 1 - np.mean(
            [
                cross_val_score(machine, X, y, cv=StratifiedKFold(5, shuffle=True, random_state=seed))
                for seed in (0, 1)
            ]
        )
        # one point of 300 may lie within the tolerance of a border
        assert errors[k] == pytest.approx(expected, abs=1 / 300 + 1e-9)


def test_a_multiple_of_a_kernel_is_the_same_machine(flowers):
    X, y = flowers
    score, every = MachineErrors(X, y), np.arange(len(y))
    plain, scaled = (score(k, 0.1, every) for k in (Gaussian(sigma=1.0), 1e4 * Gaussian(sigma=1.0)))
    assert scaled.error == plain.error and scaled.penalty == pytest.approx(plain.penalty / 1e4)


def test_one_class_or_single_points_have_no_folds(flowers):
    X, y = flowers
    score = MachineErrors(X, y)
    for which in (np.arange(50), np.arange(51)):
        assert score(Gaussian(sigma=1.0), 0.1, which).error == 1.0


def test_a_point_alone_in_its_class_is_wrong_and_in_no_fold(flowers):
    X, y = flowers
    others = np.where(np.arange(len(y)) == 0, 3, y)
    score, without = MachineErrors(X, others), MachineErrors(X[1:], y[1:])
    errors, _ = score.path(Gaussian(sigma=1.0), np.arange(len(y)))
    expected, _ = without.path(Gaussian(sigma=1.0), np.arange(len(y) - 1))
    assert errors * len(y) == pytest.approx(expected * (len(y) - 1) + 1)


def test_neighbours_smooth(rng):
    values = rng.normal(size=5)
    smooth = neighbours(values)
    assert smooth[2] == pytest.approx((values[1] + 2 * values[2] + values[3]) / 4)
    assert smooth[0] == pytest.approx((2 * values[0] + values[1]) / 3)
    assert neighbours(np.full(4, 0.3)) == pytest.approx(0.3)


def test_neighbours_of_a_table_with_gaps(rng):
    values = rng.uniform(size=(4, 6))
    whole = neighbours(values)
    weights = np.outer([1, 2, 1], [1, 2, 1])
    assert whole[1, 2] == pytest.approx((weights * values[:3, 1:4]).sum() / 16)
    values[0, 1] = values[1, 1] = np.nan
    gaps = neighbours(values)
    assert np.isnan(gaps[[0, 1], 1]).all()
    there = np.isfinite(values[:3, 1:4])
    assert gaps[1, 2] == pytest.approx((weights * values[:3, 1:4])[there].sum() / weights[there].sum())


def test_weights_of_a_sum_that_drifted_do_not_change_the_machine(rng):
    """The evidence does not see the scale of K: C must follow it."""
    texts = ["".join(rng.choice(list("ab"), 12)) for _ in range(60)]
    labels = [text.count("ab") > 2 for text in texts]
    kernel = Spectrum(2).normalized()
    models = [AutoKernelClassifier(c * kernel + c * Spectrum(3).normalized()) for c in (1e-3, 1.0, 1e3)]
    predictions = [model.fit(texts, labels).predict(texts) for model in models]
    assert np.array_equal(predictions[0], predictions[1]) and np.array_equal(predictions[1], predictions[2])


def test_the_last_fit_keeps_to_the_time(flowers):
    X, y = flowers
    model = AutoKernelClassifier(max_time=30.0).fit(X, y)
    assert model.model_.max_time is None  # a copy for other points has no limit
    assert model.C_ in {trial.score.penalty for trial in model.trials_}


@pytest.mark.parametrize("shape", [(7, 11), (1, 11), (7, 1), (1, 1)])
def test_what_is_beside_a_cell_is_as_scipy_has_it(rng, shape):
    """Bit by bit: the sums are taken in the same order."""
    values, cells = rng.normal(size=shape), rng.random(shape) < 0.2
    assert np.array_equal(_neighbouring(cells), binary_dilation(cells))
    for axis in (0, 1):
        filtered = convolve1d(values, [1.0, 2.0, 1.0], axis=axis, mode="constant")
        assert np.array_equal(2.0 * values + sum(beside(values, axis)), filtered)
