"""Learners whose solvers live on a device: the same solution as on the CPU, by the same certificate.

PyTorch on the CPU goes the way of a GPU where the device is called "cpu:0"; tests marked ``gpu`` run on one.
"""

import numpy as np
import pytest

from mercer import (
    Gaussian,
    KernelFisherDiscriminant,
    KernelLogisticRegression,
    KernelMachineClassifier,
    KernelPCA,
    KernelRidge,
    KernelRidgeCV,
    Landmarks,
    Matern,
    config,
)
from mercer.errors import InputError, MemoryBudgetError

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

DEVICES = ["cpu:0", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture
def table(rng):
    X = rng.normal(size=(700, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=700)


def weights(n):
    return 1.0 + np.arange(n) % 3


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("landmarks", [60, Landmarks(60, "pivoted")], ids=["uniform", "pivoted"])
@pytest.mark.parametrize("intercept", [True, False])
def test_ridge_on_landmarks(device, landmarks, intercept, table):
    """Both are within their gaps of one minimum, and stop at 1e-6 of it."""
    X, y = table
    model = KernelRidge(
        alpha=0.1, kernel=Gaussian(sigma=1.5), landmarks=landmarks, tol=1e-12, fit_intercept=intercept
    )
    here = model.fit(X, y, weights(700))
    objective, gap, values = here.report_.objective, here.report_.gap, here.predict(X)
    with config(device=device):
        there = model.fit(X, y, weights(700))
    assert there.report_.gap < 1e-5 * objective
    assert abs(there.report_.objective - objective) <= gap + there.report_.gap
    # J is strongly convex: (f - f')² summed is at most 4 times the gap.
    assert ((there.predict(X) - values) ** 2).sum() <= 8 * (gap + there.report_.gap)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_logistic_regression_on_landmarks(device, dtype, table):
    X, y = table
    model = KernelLogisticRegression(Gaussian(sigma=1.5), C=3.0, landmarks=50, tol=1e-5)
    here = model.fit(X, y > 0)
    objective, gap = here.report_.objective, here.report_.gap
    with config(device=device, dtype=dtype):
        there = model.fit(X, y > 0)
    # In float32 the objective itself is off by some 1e-6 of Σ|β|, which the gap counts.
    assert abs(there.report_.objective - objective) <= gap + there.report_.gap
    assert there.report_.gap < (1e-4 if dtype == "float64" else 1e-1) * objective


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_other_losses_on_landmarks(loss, table):
    """The inner functions of these know nothing of a device, and are given NumPy's arrays."""
    X, y = table
    model = KernelMachineClassifier(loss=loss, kernel=Gaussian(sigma=1.5), alpha=1.0, landmarks=40, tol=1e-4)
    here = model.fit(X, y > 0)
    objective, gap = here.report_.objective, here.report_.gap
    with config(device="cpu:0"):
        there = model.fit(X, y > 0)
    assert abs(there.report_.objective - objective) <= gap + there.report_.gap


def test_several_classes_and_several_targets(table):
    X, y = table
    codes = np.digitize(y, [-0.5, 0.5])
    model = KernelLogisticRegression(Gaussian(sigma=1.5), landmarks=40, tol=1e-6)
    expected = model.fit(X, codes).predict_proba(X)
    with config(device="cpu:0"):
        np.testing.assert_allclose(model.fit(X, codes).predict_proba(X), expected, atol=1e-2)
    ridge = KernelRidge(alpha=0.1, kernel=Gaussian(sigma=1.5), landmarks=40)
    Y = np.column_stack([y, X[:, 0]])
    expected = ridge.fit(X, Y).predict(X)
    with config(device="cpu:0"):
        np.testing.assert_allclose(ridge.fit(X, Y).predict(X), expected, atol=1e-2)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("solver", ["cholesky", "mixed", "cg"])
def test_the_exact_problem(device, solver, table):
    """The residual of the system itself, by NumPy."""
    X, y = table
    kernel, w = Gaussian(sigma=1.0), weights(700)
    with config(device=device, device_memory="64MiB"):
        model = KernelRidge(alpha=0.1, kernel=kernel, solver=solver).fit(X, y, w)
        assert model.report_.plan.device_memory > 0
    a = model.dual_coef_
    left = y - model.intercept_ - kernel(X, X) @ a - 0.1 * a / w
    assert np.linalg.norm(left) < 1e-8 * np.linalg.norm(y) and abs(a.sum()) < 1e-8


def test_a_plan_takes_what_fits_the_device_and_names_it(table):
    X = table[0]
    X = np.tile(X, (4, 1)) + 1e-3 * np.arange(2800)[:, None]
    plans = {}
    for memory in ("1GiB", "100MiB", "30MiB"):
        with config(device="cpu:0", device_memory=memory):
            plans[memory] = KernelRidge(kernel=Gaussian(sigma=1.0)).plan(X)
    assert [plan.method for plan in plans.values()] == ["cholesky", "mixed", "lazy"]
    assert plans["1GiB"].memory < 2**20 < plans["1GiB"].device_memory
    assert "on the device" in str(plans["1GiB"]) and "'cpu:0', of 1GiB there" in str(plans["1GiB"])
    assert plans["30MiB"].device_memory <= 30 * 2**20
    with config(device="cpu:0", device_memory="1GiB"):
        plan = KernelRidge(kernel=Gaussian(sigma=1.0), landmarks=300).plan(X)
    assert plan.device_memory > 3 * 8 * 300**2 and "computed once and kept" in str(plan)


def test_what_does_not_fit_is_refused_and_says_what_to_do(table):
    X, y = table
    with config(device="cpu:0", device_memory="3MiB"):
        with pytest.raises(MemoryBudgetError, match=r"use solver='cg'.*mercer\.config\(device_memory=…\)"):
            KernelRidge(kernel=Gaussian(sigma=1.0), solver="cholesky").fit(X, y)
        with pytest.raises(MemoryBudgetError, match="take fewer landmarks"):
            KernelRidge(kernel=Gaussian(sigma=1.0), landmarks=600).fit(X, y)


def test_blocks_are_made_where_not_all_of_k_fits(table):
    """The same solution from 700 × 60 values in 100 KiB, a block at a time."""
    X, y = table
    model = KernelRidge(alpha=0.1, kernel=Gaussian(sigma=1.5), landmarks=60, tol=1e-12)
    expected = model.fit(X, y).predict(X)
    with config(device="cpu:0", device_memory="500KiB"):
        assert any("a block at a time" in why for why in model.fit(X, y).report_.plan.why)
        np.testing.assert_allclose(model.predict(X), expected, atol=1e-3)


def test_a_kernel_that_is_not_positive_definite_has_no_factor_there(table):
    from mercer import Sigmoid

    X, y = table
    with (
        config(device="cpu:0"),
        pytest.raises(InputError, match=r"no Cholesky factor|not positive definite|negative eigen"),
    ):
        KernelRidge(alpha=1e-6, kernel=Sigmoid(1.0, -3.0)).fit(X, y)


@pytest.mark.parametrize("device", DEVICES)
def test_components_and_fishers_discriminant_on_landmarks(device, table):
    """By eigenvalues, in float64: scores are those of the CPU up to rounding, which small values magnify."""
    X, y = table
    codes = np.digitize(y, [-0.5, 0.5])
    pca = KernelPCA(4, kernel=Gaussian(sigma=1.5), landmarks=50)
    fisher = KernelFisherDiscriminant(Gaussian(sigma=1.5), alpha=1e-3, landmarks=50)
    path = KernelRidgeCV([1e-2, 1.0], kernel=Gaussian(sigma=1.5), landmarks=50)
    scores, directions, values = (
        pca.fit(X).transform(X),
        fisher.fit(X, codes).transform(X),
        path.fit(X, y).predict(X),
    )
    eigenvalues, alpha = pca.eigenvalues_, path.alpha_
    with config(device=device):
        np.testing.assert_allclose(pca.fit(X).eigenvalues_, eigenvalues, rtol=1e-8)
        np.testing.assert_allclose(np.abs(pca.transform(X)), np.abs(scores), atol=1e-5)
        np.testing.assert_allclose(np.abs(fisher.fit(X, codes).transform(X)), np.abs(directions), atol=1e-4)
        np.testing.assert_allclose(path.fit(X, y).predict(X), values, atol=1e-6)
    assert path.alpha_ == alpha
    assert "on the device" in str(fisher.report_.plan)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "model",
    [
        KernelRidge(alpha=0.3, kernel=Gaussian(sigma=1.5)),
        KernelRidge(alpha=0.3, kernel=Gaussian(sigma=1.5), solver="cg"),
        KernelRidge(alpha=0.3, kernel=Gaussian(sigma=1.5), landmarks=40, tol=1e-14),
        KernelRidge(alpha=0.3, kernel=Gaussian(sigma=1.5), landmarks=40, tol=1e-14, fit_intercept=False),
        KernelRidgeCV([0.3], kernel=Gaussian(sigma=1.5), landmarks=40),
    ],
    ids=["exact", "cg", "landmarks", "without b", "path"],
)
def test_how_sure_it_is_does_not_depend_on_where_it_was_learned(device, model, table):
    """Small arrays come from the device, of the same rows as here; what is made of them is NumPy's.

    On landmarks the gap is 1e-7 of an objective below 100, and Σ wᵢ (f - f')² at most 4 times that of both.
    """
    X, y = table
    new, w = np.vstack([X[:20] + 0.01, [[9.0, 9.0, 9.0]]]), weights(700)
    here = model.fit(X, y, w)
    std, ends, noise = here.predict(new, return_std=True)[1], here.predict_interval(new), here.noise_variance_
    with config(device=device, device_memory="64MiB"):
        there = model.fit(X, y, w)
        assert there.report_.plan.device_memory > 0
        inside = there.predict_interval(new)
    np.testing.assert_allclose(there.noise_variance_, noise, rtol=1e-6)
    np.testing.assert_allclose(there.predict(new, return_std=True)[1], std, rtol=1e-6)
    np.testing.assert_allclose(there.predict_interval(new), ends, atol=5e-3)
    np.testing.assert_allclose(inside, ends, atol=5e-3)


@pytest.mark.parametrize("learner", ["ridge", "path"])
def test_the_landmarks_that_are_kept_stand_for_all_of_them(learner, rng, monkeypatch):
    """Rows are in order, and so are landmarks: the first 30 of 120 would know a quarter of the line."""
    from mercer.estimators.shared import landmarks
    from mercer.solvers.landmarks import features, path, posterior

    for module in (landmarks, features, path, posterior):
        monkeypatch.setattr(module, "MOST_FEATURES", 30)
    x = np.sort(rng.uniform(0, 10, 900))[:, None]
    y = np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=900)
    kernel, new = Matern(nu=1.5, length_scale=1.0), np.linspace(0.5, 9.5, 400)[:, None]
    with config(device="cpu:0", device_memory="64MiB"):
        model = (
            KernelRidge(alpha=0.1, kernel=kernel, landmarks=120)
            if learner == "ridge"
            else KernelRidgeCV([0.1], kernel=kernel, landmarks=120)
        ).fit(x, y)
    assert len(model.expansion_.anchors) > 30
    std, ends = model.predict(new, return_std=True)[1], model.predict_interval(new)
    assert np.median(std.reshape(4, 100), axis=1).max() < 0.15  # of the prior, σ / √α, it is about 0.33
    truth = np.sin(2 * new[:, 0]) + 0.1 * rng.normal(size=400)
    # Of 400 the part that is inside is off by 1.5 %, and that of 900 that it comes from by 1 %.
    assert 0.83 < np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1])) < 0.97


@pytest.mark.gpu
@pytest.mark.parametrize("memory", [2**28, 2**30])
def test_a_fit_stays_within_its_budget(memory, rng):
    """100,000 × 500 values in float32, 200 MB: made block by block in the first case, kept in the second."""
    X = rng.normal(size=(100_000, 20)).astype(np.float32)
    model = KernelRidge(lam=1e-5, kernel=Gaussian(sigma=4.0), landmarks=500, tol=1e-6)
    with config(device="cuda", dtype="float32", device_memory=memory):
        model.fit(X[:20_000], X[:20_000, 0])  # what libraries keep for themselves is there from now on
        torch.cuda.empty_cache()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        model.fit(X, X[:, 0])
    assert torch.cuda.max_memory_allocated() - before <= memory
