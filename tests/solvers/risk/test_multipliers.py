"""Regularised risks against CVXPY, peers and closed forms; certificates, weights, stopping and resuming."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC, SVR

from mercer import Gaussian, Gram, Linear, config
from mercer.errors import InputError
from mercer.losses import Hinge, Loss, OwnLoss, as_loss
from mercer.solvers import control as control_module
from mercer.solvers.control import Control
from mercer.solvers.risk.certificate import DualityGap, WeightedRisk
from mercer.solvers.risk.multipliers import multipliers, regularised_risk

NAMES = sorted(Loss.registry)
KINKED = [name for name in NAMES if not Loss.registry[name]().smooth]


def problem(rng, name, n=40):
    X = rng.normal(size=(n, 2))
    f = np.sin(2 * X[:, 0]) + X[:, 1]
    if not Loss.registry[name].for_targets:
        y = np.where(f + rng.normal(0, 0.5, n) > 0, 1.0, -1.0)
    elif name == "poisson":
        y = rng.poisson(np.exp(0.5 * f)).astype(float)
    else:
        y = f + rng.normal(0, 0.5, n)
    return Gaussian(sigma=1.0)(X), y


def risk_in_cvxpy(cvxpy, loss, y, F, w):
    r = F - y
    expression = {
        "squared": lambda: cvxpy.square(r),
        "absolute": lambda: cvxpy.abs(r),
        "huber": lambda: cvxpy.huber(r, loss.delta) / 2,
        "epsilon_insensitive": lambda: cvxpy.pos(cvxpy.abs(r) - loss.epsilon),
        "squared_epsilon_insensitive": lambda: cvxpy.square(cvxpy.pos(cvxpy.abs(r) - loss.epsilon)),
        "quantile": lambda: cvxpy.maximum(-loss.quantile * r, (1 - loss.quantile) * r),
        "hinge": lambda: cvxpy.pos(1 - cvxpy.multiply(y, F)),
        "squared_hinge": lambda: cvxpy.square(cvxpy.pos(1 - cvxpy.multiply(y, F))),
        "logistic": lambda: cvxpy.logistic(-cvxpy.multiply(y, F)),
        "poisson": lambda: cvxpy.exp(F) - cvxpy.multiply(y, F),
    }[loss.name]()
    return w @ expression


def minimum(loss, K, y, w, penalty, fit_intercept):
    """By an interior-point method, in coordinates where ‖f‖² is a sum of squares."""
    cvxpy = pytest.importorskip("cvxpy")
    values, vectors = np.linalg.eigh(K)
    root = vectors[:, values > 1e-12 * values[-1]] * np.sqrt(values[values > 1e-12 * values[-1]])
    v, b = cvxpy.Variable(root.shape[1]), cvxpy.Variable()
    F = root @ v + (b if fit_intercept else 0.0)
    # the solver's own tolerances are relative to numbers of size one
    scale = penalty if penalty > 1 else 1.0
    objective = risk_in_cvxpy(cvxpy, loss, y, F, w / scale) + penalty / (2 * scale) * cvxpy.sum_squares(v)
    task = cvxpy.Problem(cvxpy.Minimize(objective))
    task.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    assert task.status in ("optimal", "optimal_inaccurate")
    f_norm2, values = float(v.value @ v.value), root @ v.value + (float(b.value) if fit_intercept else 0.0)
    return float(w @ loss.value(y, values)) + penalty / 2 * f_norm2


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("fit_intercept", "weighted", "penalty"),
    [(True, False, 1.0), (False, True, 1.0), (True, True, 0.02), (True, False, 1e3), (False, False, 1e-3)],
)
def test_every_loss_against_cvxpy(name, fit_intercept, weighted, penalty, rng):
    loss = Loss.registry[name]()
    K, y = problem(rng, name)
    w = rng.uniform(0, 3, 40) if weighted else np.ones(40)
    result = regularised_risk(K, loss, y, w, penalty, fit_intercept=fit_intercept, tol=1e-8)
    best = minimum(loss, K, y, w, penalty, fit_intercept)
    assert result.stopped == "converged"
    assert result.gap <= 1e-8 * max(abs(result.objective), penalty * result.square / 2)
    # what CVXPY returns is a function too: its objective is above the minimum
    assert result.objective - result.gap <= best * (1 + 1e-12) + 1e-12
    assert result.objective == pytest.approx(best, rel=1e-6)
    assert result.values == pytest.approx(K @ result.coef + result.intercept, abs=1e-9)
    assert result.square == pytest.approx(result.coef @ K @ result.coef, rel=1e-8, abs=1e-12)
    P = w @ loss.value(y, result.values) + penalty / 2 * result.square
    assert result.objective == pytest.approx(P, rel=1e-12)
    assert fit_intercept or result.intercept == 0.0


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", KINKED)
@pytest.mark.parametrize("penalty", [1e-6, 1e6])
def test_extreme_penalties(name, penalty, rng):
    K, y = problem(rng, name, 60)
    result = multipliers(K, as_loss(name), y, np.ones(60), penalty)
    assert result.stopped == "converged"
    # at 1e-6 f interpolates, α is about 1e6 times the slopes, and ten digits are lost on the way
    assert result.gap <= (1e-5 if penalty < 1 else 1e-6) * result.objective
    if penalty > 1:  # no room for f: the best constant
        loss, at = as_loss(name), np.linspace(y.min(), y.max(), 20001)
        best = min(loss.value(y, np.full(60, b)).sum() for b in at)
        assert result.objective == pytest.approx(best, rel=1e-3)


def test_svc(rng):
    K, y = problem(rng, "hinge", 150)
    svc = SVC(C=2.0, kernel="precomputed", tol=1e-8).fit(K, y)
    F = svc.decision_function(K)
    coef = np.zeros(150)
    coef[svc.support_] = svc.dual_coef_[0]
    theirs = 2.0 * Hinge().value(y, F).sum() + coef @ K @ coef / 2
    result = multipliers(K, Hinge(), y, np.full(150, 2.0), 1.0, tol=1e-9)
    assert result.objective == pytest.approx(theirs, rel=1e-6)
    assert result.objective <= theirs * (1 + 1e-9)
    assert result.values == pytest.approx(F, abs=1e-3)
    m = y * result.values  # complementary slackness: outside the margin exactly 0, inside C
    assert (result.coef[m > 1 + 1e-3] == 0).all()
    assert y[m < 1 - 1e-3] * result.coef[m < 1 - 1e-3] == pytest.approx(2.0, rel=1e-8)


def test_svr(rng):
    K, y = problem(rng, "epsilon_insensitive", 150)
    svr = SVR(C=2.0, epsilon=0.2, kernel="precomputed", tol=1e-8).fit(K, y)
    result = multipliers(K, as_loss("epsilon_insensitive", epsilon=0.2), y, np.full(150, 2.0), 1.0, tol=1e-9)
    assert result.values == pytest.approx(svr.predict(K), abs=1e-3)
    r = y - result.values
    assert (result.coef[np.abs(r) < 0.2 - 1e-3] == 0).all()
    assert (np.sign(r) * result.coef)[np.abs(r) > 0.2 + 1e-3] == pytest.approx(2.0, rel=1e-8)


@pytest.mark.parametrize("name", ["squared", "absolute", "hinge"])
def test_the_representer_theorem(name, rng):
    """No function beats f: neither in the span, nor with a part outside, which only adds to ‖f‖²."""
    X = rng.normal(size=(30, 2))
    k, loss = Gaussian(sigma=1.0), as_loss(name)
    y = np.sign(X[:, 0]) if name == "hinge" else X[:, 0]
    K = k(X)
    result = regularised_risk(K, loss, y, np.ones(30), 0.5, tol=1e-10)
    Z = np.concatenate([X, rng.normal(size=(20, 2))])  # the span of more points
    for size in (1e-4, 1e-2, 1.0):
        c = np.concatenate([result.coef, np.zeros(20)]) + size * rng.normal(size=50)
        F = k(X, Z) @ c + result.intercept
        other = loss.value(y, F).sum() + 0.25 * c @ k(Z) @ c
        assert other >= result.objective - result.gap
        # the part orthogonal to every k(xᵢ, ·) changes no value, and adds its square
        inside = np.linalg.lstsq(K, k(X, Z) @ c, rcond=None)[0]
        assert inside @ K @ inside <= c @ k(Z) @ c + 1e-9


@settings(max_examples=30)
@given(st.sampled_from(NAMES), st.floats(1e-3, 1e3), st.integers(0, 10**6), st.booleans())
def test_the_certificate_holds(name, penalty, seed, fit_intercept):
    """gap ≥ 0, and no function found in any way is below objective - gap."""
    rng = np.random.default_rng(seed)
    K, y = problem(rng, name, 12)
    w = rng.uniform(0, 2, 12) * (rng.uniform(size=12) < 0.8)
    if not w.any():
        w[0] = 1.0
    loss = as_loss(name)
    rough = regularised_risk(K, loss, y, w, penalty, fit_intercept=fit_intercept, max_iter=2, tol=1e-12)
    good = regularised_risk(K, loss, y, w, penalty, fit_intercept=fit_intercept, tol=1e-9)
    slack = 1e-9 * max(abs(good.objective), penalty * good.square, 1e-9)
    assert rough.gap >= 0 and good.gap >= 0
    assert rough.objective - rough.gap <= good.objective + slack
    assert good.objective - good.gap <= rough.objective + slack
    assert (good.coef[w == 0] == 0).all() or loss.smooth
    if fit_intercept:
        assert good.dual.sum() == pytest.approx(0.0, abs=1e-9 * np.abs(good.dual).sum() + 1e-300)


@pytest.mark.parametrize("name", NAMES)
def test_weight_two_is_twice(name, rng):
    K, y = problem(rng, name, 25)
    w = rng.integers(0, 4, 25)
    index = np.repeat(np.arange(25), w)
    loss = as_loss(name)
    one = regularised_risk(K, loss, y, w.astype(float), 0.3)
    two = regularised_risk(K[np.ix_(index, index)], loss, y[index], np.ones(len(index)), 0.3)
    assert one.objective == pytest.approx(two.objective, rel=1e-9)
    assert one.values[index] == pytest.approx(two.values, abs=1e-7)


def test_scale_of_the_targets_does_not_matter(rng):
    K, y = problem(rng, "absolute")
    base = multipliers(K, as_loss("absolute"), y, np.ones(40), 1.0)
    for scale in (1e-8, 1e8):  # f → scale f, and the penalty of its square / scale
        moved = multipliers(K, as_loss("absolute"), scale * y, np.ones(40), 1.0 / scale)
        assert moved.objective == pytest.approx(scale * base.objective, rel=1e-6)
        assert moved.stopped == "converged" and not moved.rounded


@pytest.mark.parametrize("name", KINKED)
def test_the_lazy_matrix(name, rng):
    X = rng.normal(size=(60, 2))
    y = np.sign(X[:, 0] + 0.3 * rng.normal(size=60)) if name == "hinge" else X[:, 0] + rng.normal(0, 0.3, 60)
    gram = Gram(Gaussian(sigma=1.0), X)
    dense = multipliers(gram.dense(), as_loss(name), y, np.ones(60), 1.0)
    lazy = multipliers(gram, as_loss(name), y, np.ones(60), 1.0)
    assert lazy.stopped == "converged"
    assert lazy.gap <= 1e-6 * lazy.objective
    assert lazy.objective == pytest.approx(dense.objective, rel=2e-6)


def test_singular_and_repeated(rng):
    X = np.repeat(rng.normal(size=(10, 1)), 4, axis=0)
    y = rng.normal(size=40)
    for K in (np.zeros((40, 40)), np.ones((40, 40)), Linear()(X), Gaussian(sigma=1.0)(X)):
        result = multipliers(K, as_loss("quantile", quantile=0.3), y, np.ones(40), 0.1)
        assert result.stopped == "converged"
        assert result.gap <= 1e-6 * result.objective
    assert multipliers(np.eye(3), as_loss("absolute"), np.full(3, 7.0), np.ones(3), 1.0).objective < 1e-6


def test_one_class_and_one_point():
    result = multipliers(np.ones((1, 1)), Hinge(), np.ones(1), np.ones(1), 1.0)
    assert (result.objective, result.intercept >= 1 - 1e-9) == (pytest.approx(0.0, abs=1e-9), True)
    alone = multipliers(np.ones((1, 1)), Hinge(), np.ones(1), np.ones(1), 2.0, fit_intercept=False)
    assert alone.objective == pytest.approx(0.75)  # (1 - a) + a², least at a = ½


def test_an_indefinite_matrix_is_refused(rng):
    K = -np.eye(5)
    with pytest.raises(InputError, match="the kernel matrix is not positive semi-definite"):
        multipliers(K, as_loss("absolute"), rng.normal(size=5), np.ones(5), 1.0)


@pytest.mark.parametrize("penalty", [0.0, -1.0, math.nan, math.inf])
def test_penalties_that_are_refused(penalty):
    with pytest.raises(InputError, match="penalty must be positive, got"):
        multipliers(np.eye(2), Hinge(), np.array([1.0, -1.0]), np.ones(2), penalty)


def test_float32(rng):
    with config(dtype="float32"):
        gram = Gram(Gaussian(sigma=1.0), rng.normal(size=(50, 2)))
    y = rng.normal(size=50)
    single = multipliers(gram.dense(), as_loss("absolute"), y, np.ones(50), 1.0, tol=1e-5)
    double = multipliers(gram.dense().astype(float), as_loss("absolute"), y, np.ones(50), 1.0)
    assert single.stopped == "converged"
    assert single.objective == pytest.approx(double.objective, rel=3e-5)


@pytest.mark.sample(2)
@pytest.mark.parametrize("with_derivative", [True, False])
def test_own_losses(with_derivative, rng):
    K, y = problem(rng, "hinge")
    own = OwnLoss(lambda y, f: np.maximum(0, 1 - y * f), Hinge().derivative if with_derivative else None)
    known = multipliers(K, Hinge(), y, np.ones(40), 1.0)
    result = multipliers(K, own, y, np.ones(40), 1.0)
    assert result.stopped == "converged"
    assert result.gap <= 1e-6 * result.objective
    assert result.objective == pytest.approx(known.objective, rel=2e-6)


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", ["absolute", "quantile", "epsilon_insensitive", "hinge"])
def test_few_points_of_very_unequal_weight(name):
    """Most points sit at an end of L's slopes, b is hardly unique, and repeated points share a value."""
    for seed in range(16):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 15))
        X = rng.normal(size=(n, 1)) if seed % 3 else rng.integers(0, 3, size=(n, 1)).astype(float)
        y = 10 * rng.normal(size=n) if seed % 5 else np.round(3 * rng.normal(size=n))
        y = np.where(y >= 0, 1.0, -1.0) if name == "hinge" else y
        w, penalty = rng.choice([0.5, 1.0, 2.0, 30.0], n), float(10 ** rng.uniform(-4, 1.5))
        loss, K = as_loss(name, quantile=0.3, epsilon=0.5), Gaussian(sigma=5.0)(X)
        result = multipliers(K, loss, y, w, penalty)
        assert result.stopped == "converged" and not result.rounded
        # a minimum of zero is reached to rounding: of numbers of size 30 · 10, times the 64 of the floor
        assert result.gap <= 1e-6 * max(result.objective, penalty * result.square / 2) + 1e-11
        if seed < 10:
            # the interior-point method is accurate to 1e-11 of numbers up to 300
            assert result.objective == pytest.approx(
                minimum(loss, K, y, w, penalty, True), rel=2e-6, abs=1e-7
            )


def test_the_multipliers_are_the_gradient_where_no_step_was_taken():
    """-λα is zero then, and no subgradient: the certificate must not be built on it."""
    rng = np.random.default_rng(103)
    X, y, w = rng.normal(size=(7, 1)), 10 * rng.normal(size=7), rng.choice([0.5, 1, 2, 30], 7)
    result = multipliers(Gaussian(sigma=5.0)(X), as_loss("absolute"), y, w, 2.0)
    assert result.objective == pytest.approx(258.4109, abs=1e-4)  # CVXPY's, to the digits written
    assert result.gap <= 1e-6 * result.objective


def test_a_loss_without_a_minimum_in_b_is_refused(rng):
    K, y = problem(rng, "absolute", 10)
    for sign, direction in ((1.0, "falls"), (-1.0, "grows")):
        loss = OwnLoss(lambda y, f, sign=sign: sign * f, lambda y, f, sign=sign: np.full_like(f, sign))
        with pytest.raises(InputError, match=f"the loss has no minimum in b: .* as b {direction}"):
            regularised_risk(K, loss, y, np.ones(10), 1.0)
        result = regularised_risk(K, loss, y, np.ones(10), 1.0, fit_intercept=False)
        assert result.objective == pytest.approx(-K.sum() / 2, rel=1e-9)  # α = ∓1, exactly


def test_no_dual_value_outside_the_domain():
    risk = WeightedRisk(Hinge(), np.array([1.0, -1.0]), np.ones(2))
    certificate = DualityGap(np.eye(2), risk, 1.0, True)
    assert certificate.dual_risk(np.array([-2.0, 2.0])) == -math.inf
    assert certificate.least == 0.0


@pytest.mark.full  # a line of docs/notes.toml has such a loss, and few points
@pytest.mark.parametrize(
    "function",
    [
        lambda y, f: np.maximum(np.abs(y - f), 3 * (y - f) - 1),
        lambda y, f: 0.5 * (y - f) ** 2 + 3 * np.maximum(0, f - 0.777),
        lambda y, f: np.abs(y - f) ** 1.05,
    ],
)
def test_kinks_known_by_values_alone_take_few_steps(function):
    rng = np.random.default_rng(2)
    K, y = Gaussian(sigma=5.0)(rng.normal(size=(12, 3))), rng.normal(size=12)
    calls = [0]

    def counted(y, f):
        calls[0] += 1
        return function(y, f)

    result = multipliers(K, OwnLoss(counted), y, np.ones(12), 0.4)
    assert result.stopped == "converged" and not result.rounded
    assert result.gap <= 1e-6 * result.objective
    # about 300 values per proximal map, and some hundreds of maps; a smeared kink takes ten times as many
    assert calls[0] < 250_000


def test_the_shift_to_a_feasible_point():
    """Even where free points have too little room, Σ sᵢ = 0 is reached inside the box."""
    risk = WeightedRisk(Hinge(), np.array([1.0, 1.0, -1.0]), np.ones(3))
    certificate = DualityGap(np.eye(3), risk, 1.0, True)
    s = certificate.feasible(np.array([-1.0, -1.0, 0.0]))
    assert s.sum() == pytest.approx(0.0, abs=1e-12)
    assert (s >= certificate.low).all() and (s <= certificate.high).all()
    assert np.isfinite(certificate.dual_risk(s))


# --- long runs -----------------------------------------------------------------------------------------


def test_stopping_early_gives_the_best_so_far(rng):
    K, y = problem(rng, "absolute", 80)
    with Control(max_time=1e-9) as control:
        result = multipliers(K, as_loss("absolute"), y, np.ones(80), 0.01, control=control)
    assert result.stopped == "max_time"
    assert np.isfinite(result.objective) and result.gap > 0
    best = multipliers(K, as_loss("absolute"), y, np.ones(80), 0.01)
    assert result.objective - result.gap <= best.objective <= result.objective
    assert multipliers(K, as_loss("absolute"), y, np.ones(80), 0.01, max_iter=2).stopped == "max_iter"


@pytest.mark.parametrize("stop_at", [1, 3])
def test_resumed_equals_uninterrupted(rng, tmp_path, monkeypatch, stop_at):
    monkeypatch.setattr(control_module, "_EVERY", 0.0)
    K, y = problem(rng, "absolute", 80)
    options = {"penalty": 0.01, "tol": 1e-9}
    whole = multipliers(K, as_loss("absolute"), y, np.ones(80), **options)
    path = tmp_path / "run.npz"
    with Control(checkpoint=path) as control:
        multipliers(K, as_loss("absolute"), y, np.ones(80), **options, max_iter=stop_at, control=control)
    with Control(checkpoint=path, resume=True) as control:
        rest = multipliers(K, as_loss("absolute"), y, np.ones(80), **options, control=control)
    assert rest.iterations == whole.iterations > stop_at
    assert np.array_equal(rest.coef, whole.coef)
    assert (rest.objective, rest.gap, rest.intercept) == (whole.objective, whole.gap, whole.intercept)
