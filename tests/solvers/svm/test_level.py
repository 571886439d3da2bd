"""The intercept of a machine whose solver did not come to its end."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer import SVC, SVR, Gram, Linear
from mercer.solvers.svm.level import Slacks
from mercer.solvers.svm.problems import c_svc, fit


def test_the_best_level_is_at_a_corner(rng):
    for n in (1, 2, 7, 40):
        sign = np.where(rng.uniform(size=n) < 0.5, 1.0, -1.0)
        upper = rng.uniform(0.1, 3, size=n)
        slacks = Slacks(rng.normal(size=n), np.where(sign < 0, -upper, 0.0), np.where(sign > 0, upper, 0.0))
        costs = [slacks.cost(b) for b in slacks.corners]
        assert slacks.cost(slacks.best(0.3)) == pytest.approx(min(costs), abs=1e-12)


def test_of_several_levels_the_nearest_is_taken():
    slacks = Slacks(np.array([-1.0, 2.0]), np.array([0.0, -1.0]), np.array([1.0, 0.0]))  # b ≥ -1, b ≤ 2
    assert [slacks.best(b) for b in (-3.0, 0.5, 4.0)] == [-1.0, 0.5, 2.0]


@pytest.mark.parametrize("make", ["classes", "targets"])
def test_a_fit_that_was_cut_short_has_the_best_intercept(rng, make):
    X = rng.normal(size=(60, 2))
    t = X[:, 0] + rng.normal(size=60)
    model = SVC(kernel="linear", max_iter=7) if make == "classes" else SVR(kernel="linear", max_iter=7)
    y = np.where(t > 0, 1.0, -1.0) if make == "classes" else t
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)

    def primal(shift):
        f = X @ model.coef_[0] + model.intercept_[0] + shift
        slack = 1 - y * f if make == "classes" else np.abs(y - f) - model.epsilon
        return 0.5 * float((model.coef_**2).sum()) + np.maximum(slack, 0).sum()

    tried = min(primal(shift) for shift in np.linspace(-2, 2, 4001))
    assert primal(0.0) <= tried + 1e-9
    assert model.report_.objective == pytest.approx(primal(0.0))


def test_a_converged_fit_keeps_the_level_of_its_conditions(rng):
    X, y = rng.normal(size=(50, 2)), np.where(rng.uniform(size=50) < 0.5, 1.0, -1.0)
    task = c_svc(y, np.ones(50))
    [machine] = fit(Gram(Linear(), X), [task], tol=1e-9)
    free = (machine.coef > machine.lo) & (machine.coef < machine.hi)
    assert free.any() and machine.values[free] == pytest.approx(y[free], abs=1e-7)


@pytest.mark.parametrize(("spread", "C"), [(1e5, 100.0), (1e7, 1.0), (1e8, 1.0)])
def test_timestamps(rng, spread, C):
    """b belongs to the w that is kept, not to sums of kernel values that cancel."""
    Z = rng.normal(size=(60, 2))
    y = np.where(Z[:, 0] + 0.3 * rng.normal(size=60) > 0, 1, -1)
    X = np.column_stack([1.6e9 + spread * rng.uniform(size=60), Z])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SVC(kernel="linear", C=C).fit(X, y)
    f, w = model.decision_function(X), model.coef_[0]

    def primal(shift):
        return 0.5 * w @ w + C * np.maximum(0, 1 - y * (f + shift)).sum()

    best = min(map(primal, y - f))
    assert primal(0.0) <= best + 1e-3 * best
    assert model.report_.objective == pytest.approx(primal(0.0), rel=1e-3)
