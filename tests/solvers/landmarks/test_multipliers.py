"""The method of multipliers on landmarks against the exact one on K = ΦΦᵀ, whose minimum is the same."""

import numpy as np
import pytest

from mercer.errors import InputError
from mercer.losses import OwnLoss, as_loss
from mercer.solvers.control import Control
from mercer.solvers.landmarks.multipliers import restricted_risk
from mercer.solvers.risk.multipliers import regularised_risk

KINKS = ["hinge", "absolute", "epsilon_insensitive", "quantile"]


@pytest.fixture
def data(rng):
    X = rng.normal(size=(150, 3))
    return X, X[:, 0] - X[:, 1] ** 2 + 0.5 * rng.normal(size=150)


def targets(loss, y):
    return np.where(y > 0, 1.0, -1.0) if "hinge" in loss else y


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("M", [1, 12, 150])
@pytest.mark.parametrize("penalty", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("loss", KINKS)
@pytest.mark.sample(11)
def test_losses_with_kinks(rng, data, features_of, gaussian, loss, penalty, M, fit_intercept):
    """Objectives that are both certified to 1e-7 differ by that at most."""
    X, y = data
    y, L, weight = (
        targets(loss, y),
        as_loss(loss, epsilon=0.1, quantile=0.8),
        rng.choice([0.0, 1.0, 3.0], size=150),
    )
    features, Phi = features_of(gaussian(X, X[:M]), gaussian(X[:M], X[:M]), fit_intercept)
    found = restricted_risk(features, L, y, weight, penalty, tol=1e-7, trace=float(weight.sum()))
    exact = regularised_risk(Phi @ Phi.T, L, y, weight, penalty, fit_intercept=fit_intercept, tol=1e-8)
    assert found.stopped == "converged" and found.gap <= 1e-7 * found.objective
    assert found.objective == pytest.approx(exact.objective, rel=2e-7)
    rounding = 8 * np.finfo(float).eps * exact.objective  # Both objectives are sums.
    assert found.objective - exact.objective <= found.gap + exact.gap + rounding
    low, high = L.domain(y)
    s = found.dual[:, 0]
    assert (weight * low - 1e-12 <= s).all() and (s <= weight * high + 1e-12).all()
    assert not fit_intercept or abs(s.sum()) <= 1e-10 * np.abs(s).sum()


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_smooth_losses_go_to_newton(data, features_of, gaussian, loss):
    X, y = data
    y = np.where(y > 0, 1.0, -1.0)
    features, Phi = features_of(gaussian(X, X[:12]), gaussian(X[:12], X[:12]))
    found = restricted_risk(features, as_loss(loss), y, np.ones(150), 0.5, tol=1e-9)
    exact = regularised_risk(Phi @ Phi.T, as_loss(loss), y, np.ones(150), 0.5, tol=1e-9)
    assert found.objective == pytest.approx(exact.objective, rel=2e-9)


@pytest.mark.sample(4)
@pytest.mark.parametrize("loss", KINKS)
def test_the_number_of_passes_is_small(rng, features_of, gaussian, loss):
    """What kinks cost: some 10 to 20 Newton steps for each of a few σ, about two passes each."""
    X = rng.normal(size=(1500, 2))
    y = targets(loss, np.sin(2 * X[:, 0]) + 0.3 * rng.standard_t(3, size=1500))
    features, _ = features_of(gaussian(X, X[:40]), gaussian(X[:40], X[:40]))
    found = restricted_risk(features, as_loss(loss), y, np.ones(1500), 0.1, trace=1500.0)
    assert found.gap <= 1e-6 * found.objective and found.passes == features.passes <= 250


def test_without_a_trace(data, features_of, gaussian):
    X, y = data
    features, _ = features_of(gaussian(X, X[:12]), gaussian(X[:12], X[:12]))
    found = restricted_risk(features, as_loss("absolute"), y, np.ones(150), 0.5)
    assert found.stopped == "converged" and found.relative <= 1e-6


def test_a_loss_without_a_minimum_in_b_is_refused(data, features_of, gaussian):
    X, _ = data
    features, _ = features_of(gaussian(X, X[:3]), gaussian(X[:3], X[:3]))
    falling = OwnLoss(lambda y, f: np.maximum(1.0 - f, -0.5 * (f - 3.0)))
    with pytest.raises(InputError, match="the loss has no minimum in b"):
        restricted_risk(features, falling, np.ones(150), np.ones(150), 1.0)


def test_resumed_equals_uninterrupted(data, features_of, gaussian, tmp_path, monkeypatch):
    """From every iteration that a checkpoint was made at, to the last bit, passes and all."""
    monkeypatch.setattr("mercer.solvers.control._EVERY", 0.0)
    X, y = data

    def solve(most, **options):
        features, _ = features_of(gaussian(X, X[:10]), gaussian(X[:10], X[:10]))
        with Control("", **options) as control:
            return restricted_risk(
                features, as_loss("absolute"), y, np.ones(150), 0.01, tol=1e-9, max_iter=most, control=control
            )

    whole = solve(100)
    assert whole.iterations > 3
    for most in range(1, whole.iterations):
        path = tmp_path / f"{most}.npz"
        assert solve(most, checkpoint=path).stopped == "max_iter"
        rest = solve(100, checkpoint=path, resume=True)
        assert np.array_equal(rest.coef, whole.coef) and np.array_equal(rest.dual, whole.dual)
        assert (rest.gap, rest.iterations, rest.passes) == (whole.gap, whole.iterations, whole.passes)


def test_the_bar_counts_towards_an_expected_end(rng, data, features_of, gaussian):
    """Two iterations tell how the gap falls; each of them has several passes, and all are told."""
    X, y = data
    features, _ = features_of(gaussian(X, X[:12]), gaussian(X[:12], X[:12]))
    events = []
    with Control("machine", 100, progress=events.append) as control:
        features.follow = control.show
        found = restricted_risk(
            features, as_loss("hinge"), targets("hinge", y), np.ones(150), 0.1, control=control
        )
    totals = [event["total"] for event in events]
    assert found.stopped == "converged" and events[-1]["done"] == totals[-1] == found.iterations
    assert totals[:2] == [100, 100] and max(totals[2:]) <= 2 * found.iterations
    assert found.iterations < events[-1]["facts"]["passes"] <= found.passes
    assert events[1]["facts"]["rows/s"] > 0
