"""Certificates where kernel values are rounded, against the same problems in exact arithmetic.

Beside a constant column c of 10⁸ the linear kernel is lost to rounding. Without an intercept f = ⟨w, x⟩ has
a weight for that column, which is an intercept β = c·w_c with the penalty β²/c², next to nothing: the least
value of the problem is that of the other columns with an intercept, to 10⁻¹⁰.
"""

import warnings
from fractions import Fraction

import numpy as np
import pytest

from mercer import (
    Gaussian,
    KernelLogisticRegression,
    KernelMachineClassifier,
    KernelMachineRegressor,
    Linear,
)
from mercer.losses import as_loss
from mercer.solvers.risk.certificate import WeightedRisk
from mercer.solvers.risk.logistic import LogisticRisk, SoftmaxRisk
from mercer.solvers.risk.newton import newton
from mercer.solvers.rounding import Blur, Rounding, allowed, sizes

LABELS = ["hinge", "squared_hinge", "logistic", "squared"]
TARGETS = [
    "squared",
    "absolute",
    "huber",
    "epsilon_insensitive",
    "squared_epsilon_insensitive",
    "quantile",
    "poisson",
]


@pytest.fixture
def columns(rng):
    Z = rng.normal(size=(50, 2))
    t = Z @ [0.5, 1.0] + 0.3 * rng.normal(size=50)
    return Z, t


def exactly(model, X, loss, y, omega=lambda square: square, factor=1.0):
    """Σ L(y, f(x)) + factor · Ω(‖f‖²) of a model with the linear kernel, f and its norm being exact."""
    f = model.expansion_
    anchors, coef = f.anchors, f.coef
    w = [
        sum((Fraction(float(c)) * Fraction(float(v)) for c, v in zip(coef, column, strict=True)), Fraction())
        for column in anchors.T
    ]
    F = [
        sum((a * Fraction(float(v)) for a, v in zip(w, row, strict=True)), Fraction(float(f.intercept)))
        for row in X
    ]
    norm = float(sum((a * a for a in w), Fraction()))
    return float(loss.value(y, np.array([float(v) for v in F])).sum()) + factor * float(omega(norm))


def quietly(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def beside(Z, value):
    return np.column_stack([np.full(len(Z), value), Z])


@pytest.mark.parametrize("value", [1e5, 1e7, 1e8])
@pytest.mark.parametrize(
    ("kind", "loss"),
    [
        *((KernelMachineClassifier, name) for name in LABELS),
        *((KernelMachineRegressor, name) for name in TARGETS),
    ],
)
def test_a_gap_holds_for_the_objective_and_for_the_function(columns, kind, loss, value):
    Z, t = columns
    y = np.sign(t) if kind is KernelMachineClassifier else np.round(np.exp(t)) if loss == "poisson" else t
    best = kind("linear", loss=loss).fit(Z, y).report_
    X = beside(Z, value)
    model = quietly(kind("linear", loss=loss, fit_intercept=False), X, y)
    least = best.objective - best.gap
    above = model.report_.objective - least, exactly(model, X, model.loss_, y) - least
    assert max(above) - best.gap - 1e-9 <= model.report_.gap
    assert model.report_.iterations <= 100


@pytest.mark.parametrize("value", [1e5, 1e8])
@pytest.mark.parametrize("solver", ["newton", "gradient"])
def test_logistic_regression(columns, solver, value):
    Z, t = columns
    y = np.sign(t)
    best = KernelLogisticRegression("linear").fit(Z, y).report_
    X = beside(Z, value)
    model = quietly(
        KernelLogisticRegression("linear", solver=solver, fit_intercept=False, max_iter=300), X, y
    )
    above = model.report_.objective, exactly(model, X, as_loss("logistic"), y, factor=0.5)
    assert max(above) - best.objective - 1e-9 <= model.report_.gap


def test_any_penalty(columns):
    Z, t = columns
    best = KernelMachineRegressor("linear", loss="huber", penalty=np.sqrt).fit(Z, t).report_
    for value in (1e5, 1e8):
        X = beside(Z, value)
        model = quietly(
            KernelMachineRegressor("linear", loss="huber", penalty=np.sqrt, fit_intercept=False), X, t
        )
        above = model.report_.objective, exactly(model, X, model.loss_, t, np.sqrt)
        assert max(above) - best.objective - 1e-6 <= model.report_.gap


def test_what_rounding_leaves_unknown_is_said(columns):
    Z, t = columns
    X, y = beside(Z, 1e8), np.sign(t)
    with pytest.warns(UserWarning, match="was ended by rounding after .* of the smallest objective"):
        model = KernelLogisticRegression("linear", fit_intercept=False).fit(X, y)
    assert model.report_.stopped == "rounding" and model.report_.iterations <= 30
    with pytest.warns(UserWarning, match="rounding ended the fit .* within .* of the smallest"):
        near = KernelLogisticRegression("linear", fit_intercept=False).fit(beside(Z, 1e4), y)
    assert near.report_.stopped == "converged" and near.report_.gap <= 1e-3 * near.report_.objective


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(1.0)])
def test_ordinary_problems_have_tiny_gaps_and_no_warnings(columns, kernel):
    Z, t = columns
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for C in (1e-2, 1.0, 1e4):
            for solver in ("newton", "gradient") if C <= 1 else ("newton",):
                report = KernelLogisticRegression(kernel, C=C, solver=solver).fit(Z, np.sign(t)).report_
                assert report.gap <= 1e-8 * report.objective
        for loss in TARGETS[:-1]:
            report = KernelMachineRegressor(kernel, loss=loss, alpha=0.1).fit(Z, t).report_
            assert report.gap <= 1e-6 * report.objective


@pytest.mark.parametrize("loss", [*LABELS, *TARGETS])
def test_the_excess_of_a_risk_is_the_most_that_values_within_e_bring(rng, loss):
    y = np.sign(rng.normal(size=8)) if loss in LABELS else np.abs(rng.normal(size=8))
    F, e, weight = rng.normal(size=8), rng.uniform(0, 0.5, size=8), rng.uniform(size=8)
    risk = WeightedRisk(as_loss(loss), y, weight)
    s = risk.gradient(F)
    tried = [risk.value(F + e * d) - risk.value(F) - s @ (e * d) for d in rng.uniform(-1, 1, size=(300, 8))]
    assert max(tried) <= risk.excess(F, e, s) + 1e-12
    ends = [
        sum(
            max(
                (weight * risk.loss.value(y, F + d) - weight * risk.loss.value(y, F) - s * d)[i]
                for d in (e, -e)
            )
            for i in range(8)
        )
    ]
    assert risk.excess(F, e, s) == pytest.approx(ends[0])


def test_the_excess_of_logistic_risks(rng):
    y, F, e = np.sign(rng.normal(size=9)), rng.normal(size=9), rng.uniform(0, 2, size=9)
    two = LogisticRisk(y, 0.5)
    assert two.excess(F, e, two.gradient(F)) == pytest.approx(
        WeightedRisk(as_loss("logistic"), y, np.full(9, 0.5)).excess(F, e, two.gradient(F))
    )
    codes, G, wide = rng.integers(3, size=9), rng.normal(size=(9, 3)), rng.uniform(0, 3, size=(9, 3))
    for size in (1e-3, 1.0):
        many = SoftmaxRisk(codes, 3, 2.0)
        s, bound = many.gradient(G), many.excess(G, size * wide, many.gradient(G))
        moves = size * wide * rng.choice([-1.0, 1.0], size=(300, 9, 3))
        assert max(many.value(G + d) - many.value(G) - (s * d).sum() for d in moves) <= bound


def test_rounding_of_products(rng):
    """K̂ = K + E with |E| ≤ τss: the bounds hold, and the worst E attains them."""
    s, tau, coef = rng.uniform(0.5, 2, size=6), 1e-3, rng.normal(size=6)
    rounding = Rounding(np.diag(s**2), tau)
    worst = tau * np.outer(s, s) * np.sign(np.outer(coef, coef))
    assert rounding.square(coef) == pytest.approx(coef @ worst @ coef)
    assert rounding.values(coef) == pytest.approx(np.abs(worst @ coef))
    both = np.column_stack([coef, 2 * coef])
    assert rounding.values(both)[:, 1] == pytest.approx(2 * rounding.values(coef))
    assert rounding.square(both) == pytest.approx(5 * rounding.square(coef))
    none = Rounding(np.diag(s**2), 0.0)
    assert none.square(coef) == 0 and none.blur(None, 1.0, coef, coef, coef) == Blur()
    assert np.array_equal(sizes(np.array([[0.0, 4.0], [4.0, 0.0]]), np.zeros(2)), [2.0, 2.0])


def test_how_far_a_run_goes():
    assert allowed(1e-6, 0.0) == 1e-6 and allowed(1e-6, 4e-7) == pytest.approx(6e-7)
    assert allowed(1e-6, 1e3) == 5e-7  # K as it was computed is solved all the same
    K, y = np.eye(4), np.array([1.0, -1.0, 1.0, -1.0])
    known, rounded = newton(K, LogisticRisk(y), 1.0), newton(K, LogisticRisk(y), 1.0, rounding=0.1)
    assert known.gap < 1e-8 < 0.01 < rounded.gap and rounded.stopped == "rounding"
