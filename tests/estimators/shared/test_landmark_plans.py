"""What plans on landmarks expect, and what their fits tell on the way."""

from dataclasses import replace

import numpy as np
import pytest

from mercer import (
    SVC,
    SVR,
    Gaussian,
    KernelFisherDiscriminant,
    KernelLeastSquares,
    KernelPCA,
    KernelRidge,
    KernelRidgeCV,
    Landmarks,
    Spectrum,
    Subsequence,
    config,
)
from mercer.estimators.shared import landmark_plans
from mercer.runtime.progress import ROWS


def _words(rng, n):
    return ["".join(rng.choice(list("abcdef"), 30)) for _ in range(n)]


def test_the_time_of_objects_is_that_of_some_of_them(rng, monkeypatch):
    """A row costs 2 µs and each of its values 3 µs: a value on 10 landmarks takes 3.2 µs."""
    monkeypatch.setattr(landmark_plans, "_seconds", lambda K: K.shape[0] * (2e-6 + 3e-6 * K.shape[1]))
    plan = KernelRidge(kernel=Spectrum(2), landmarks=10).plan(_words(rng, 400))
    assert plan.why[-1] == "a value of K takes about 3.2 µs of a core, by 100 of the objects"
    assert plan.kernel_values == (15 * 400 + 10 + 100) * 10  # a sample of 100 rows
    other = replace(plan, flops=20 * 10.0**3 + 2 * 100 * 10**2 + 15 * 400 * 10 * 4).seconds
    assert plan.seconds == pytest.approx(plan.kernel_values * 3.2e-6 / plan.threads + other, rel=1e-9)


def test_one_object_is_enough_for_a_plan():
    assert "by 1 of the objects" in KernelRidge(kernel=Spectrum(2), landmarks=1).plan(["abc"]).why[-1]


def test_slow_kernels_on_objects_are_planned_to_be_slow(rng):
    """The dynamic programme of a subsequence kernel takes a hundred times as long as counted substrings."""
    words = _words(rng, 60)
    quick, slow = (KernelRidge(kernel=k, landmarks=40).plan(words) for k in (Spectrum(2), Subsequence(3)))
    assert slow.seconds > 5 * quick.seconds


def test_a_fit_does_not_time_anything(rng, monkeypatch):
    monkeypatch.setattr(landmark_plans, "with_time_of_objects", None)
    model = KernelRidge(kernel=Spectrum(2), landmarks=5).fit(_words(rng, 30), rng.normal(size=30))
    assert any("the time is that of vectors" in why for why in model.report_.plan.why)


@pytest.mark.parametrize(
    "learner, label, passes",
    [
        (KernelPCA(2), "kernel PCA on landmarks", 2),
        (KernelFisherDiscriminant(alpha="auto"), "Fisher's discriminant on landmarks", 5),
        (KernelFisherDiscriminant(alpha=0.1), "Fisher's discriminant on landmarks", 4),
        (KernelLeastSquares(), "least squares on landmarks", 2),
    ],
    ids=str,
)
def test_passes_are_told_with_their_rows_per_second(rng, learner, label, passes):
    X, events = rng.normal(size=(2000, 2)), []
    learner.set_params(kernel=Gaussian(sigma=1.0), landmarks=Landmarks(20))
    with config(progress=events.append):
        learner.fit(X, np.sign(X[:, 0]))
    assert [(e["label"], e["done"], e["total"]) for e in events] == [
        (label, i, passes) for i in range(passes + 1)
    ]
    assert all(event["facts"][ROWS] > 0 for event in events[1:])


def test_a_choice_of_penalties_tells_its_rows_per_second(rng):
    X, events = rng.normal(size=(200, 2)), []
    kernels = [Gaussian(sigma=1.0), Gaussian(sigma=2.0)]
    with config(progress=events.append):
        KernelRidgeCV(kernel=kernels, landmarks=20).fit(X, X[:, 0])
    assert [(e["label"], e["done"], e["total"]) for e in events] == [("kernels", i, 2) for i in range(3)]
    assert all(event["facts"][ROWS] > 0 and event["facts"]["passes"] >= 3 for event in events[1:])


@pytest.mark.parametrize("learner", [SVC(), SVR()], ids=str)
def test_plans_of_exact_machines_say_from_which_number_on_they_take_long(learner):
    long = "from 100,000 points on the exact solution takes long"
    assert long in str(learner.plan(np.zeros((100_000, 1))))
    assert long not in str(learner.plan(np.zeros((99_999, 1))))
