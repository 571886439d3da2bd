"""The last fit of classes on landmarks, where there is time for few of the points exactly."""

import os
import signal

import numpy as np
import pytest

from mercer import SVC, Gaussian, KernelLogisticRegression, Sigmoid
from mercer.selection import AutoKernelClassifier, classifier, landmarks
from mercer.selection.landmarks import on_landmarks
from mercer.selection.search import Clock

N = 3000


@pytest.fixture
def points(rng):
    """3,000 points with a smooth function and some noise."""
    X = rng.normal(size=(N, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=N)


@pytest.fixture
def in_little_time(monkeypatch, hand_clock):
    """No time for more than 150 points exactly, and all the time that landmarks take: a few."""
    monkeypatch.setattr(landmarks, "_LANDMARKS_PER_ROOT", 5.0)
    monkeypatch.setattr(landmarks, "_LEAST_LANDMARKS", 100)
    monkeypatch.setattr(classifier, "_growth", lambda clock, seconds: 0.0)
    monkeypatch.setattr(classifier, "_FIRST_FIT_POINTS", 150)


def rival_of(X, y, points=300):
    return SVC(kernel=Gaussian(sigma=1.5), C=1.0).fit(X[:points], y[:points])


@pytest.mark.sample(2)
@pytest.mark.usefixtures("in_little_time")
@pytest.mark.parametrize("cuts", [[0.0], [-0.7, 0.7]], ids=["two classes", "three classes"])
def test_all_points_count(points, cuts):
    """As good as the exact machine of all points, to 2 %: three standard errors of 2,600 other points."""
    X, f = points
    names = np.array(["low", "middle", "top"])
    y, n = names[np.digitize(f, cuts)], 400
    model = AutoKernelClassifier("rbf", max_time=100.0).fit(X[:n], y[:n])
    assert isinstance(model.model_, KernelLogisticRegression) and model.C_ == model.model_.C
    assert model.report_.plan.points == n and model.report_.converged
    assert f"{len(model.expansion_)} landmarks, and from all 400 points" in str(model.report_)
    exact = SVC(kernel=model.kernel_, C=1.0).fit(X[:n], y[:n])
    assert model.score(X[n:], y[n:]) > exact.score(X[n:], y[n:]) - 0.02
    P = model.model_.predict_proba(X[n:])
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X[n:]))
    if len(cuts) == 1:
        again = AutoKernelClassifier("rbf", max_time=100.0).fit(X[:n], y[:n])
        np.testing.assert_array_equal(model.expansion_.coef, again.expansion_.coef)


@pytest.mark.usefixtures("in_little_time")
def test_very_many_points_count_without_a_time_limit_too(points, monkeypatch):
    X, f = points
    exact = AutoKernelClassifier("rbf").fit(X[:400], f[:400] > 0)
    assert isinstance(exact.model_, SVC) and exact.report_.plan.points == 400
    monkeypatch.setattr(classifier, "_EXACT_POINTS", 350)
    model = AutoKernelClassifier("rbf").fit(X[:400], f[:400] > 0)
    assert isinstance(model.model_, KernelLogisticRegression) and model.report_.plan.points == 400
    assert model.score(X[1000:], f[1000:] > 0) > exact.score(X[1000:], f[1000:] > 0) - 0.02


@pytest.mark.full
def test_no_neighbouring_penalty_is_better_on_the_points_held_out(points, hand_clock):
    """Fits from scratch, to a tolerance of 1e-6: they may differ from those of a path in few points."""
    X, y = points[0][:2000], points[1][:2000] > 0
    model, _ = on_landmarks(X, y, rival_of(X, y), np.arange(2000), Clock(100.0), 0)
    assert model is not None and model.report_.gap <= 1e-3 * model.report_.objective

    def errors(C):
        cold = KernelLogisticRegression(model.kernel_, C=C, landmarks=model.landmarks, tol=1e-6)
        return np.count_nonzero(cold.fit(X[:-200], y[:-200]).predict(X[-200:]) != y[-200:])

    own, *others = (errors(factor * model.C) for factor in (1.0, 10**0.5, 10**-0.5))
    assert own <= min(others) + 1


@pytest.mark.full
def test_a_better_rival_is_kept(points, hand_clock):
    X, f = points
    y, order = f > 0, np.arange(N)
    rival = rival_of(X, y)
    rival.predict = lambda new: y[-len(new) :]  # It makes no error on the points that are held out.
    assert on_landmarks(X, y, rival, order, Clock(100.0), 0)[0] is None


@pytest.mark.filterwarnings("ignore:Sigmoid")
def test_there_must_be_time_and_a_positive_definite_kernel(points, hand_clock, monkeypatch):
    X, f = points
    y, order, rival = f > 0, np.arange(N), rival_of(X, f > 0)
    assert on_landmarks(X, y, rival, order, Clock(-1.0), 0)[0] is None
    indefinite = SVC(kernel=Sigmoid(1.0, -1.0)).fit(X[:300], y[:300])
    assert on_landmarks(X, y, indefinite, order, Clock(100.0), 0)[0] is None
    monkeypatch.setattr(landmarks, "_seconds_per_value", lambda kernel, X: 1e-6)
    # 25 passes and 5 squares of 3,000 rows on 560 landmarks, 1.5 times: 75.6 s, and some milliseconds
    assert on_landmarks(X, y, rival, order, Clock(75.0), 0)[0] is None
    assert len(on_landmarks(X, y, rival, order, Clock(77.0), 0)[0].expansion_) <= 560


@pytest.mark.full  # other searches end so in less time
@pytest.mark.usefixtures("in_little_time")
def test_ctrl_c_ends_the_choice_of_the_penalty(points, monkeypatch):
    """No other C is tried, and the best so far is fitted to all points."""
    X, f = points
    fit, fits = KernelLogisticRegression.fit, []

    def interrupted(self, X, y):
        fits.append(len(y))
        if len(fits) == 2:
            self.set_params(progress=lambda event: os.kill(os.getpid(), signal.SIGINT))
        found = fit(self, X, y)
        return found.set_params(progress=None)

    monkeypatch.setattr(KernelLogisticRegression, "fit", interrupted)
    model = AutoKernelClassifier("rbf", max_time=100.0).fit(X[:1000], f[:1000] > 0)
    assert fits == [900, 900, 1000] and model.report_.stopped == "interrupted"
    assert model.score(X, f > 0) > 0.9
