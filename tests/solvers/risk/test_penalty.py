"""Any Ω(‖f‖²): the plain penalty, CVXPY for convex ones, the whole path for the others."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import Gaussian
from mercer.errors import InputError, InputTypeError
from mercer.losses import as_loss
from mercer.solvers import control as control_module
from mercer.solvers.control import Control
from mercer.solvers.risk.multipliers import regularised_risk
from mercer.solvers.risk.penalty import Penalty, any_penalty, as_penalty

LOSSES = ["squared", "absolute", "hinge", "logistic", "poisson"]


def problem(rng, name, n=40):
    X = rng.normal(size=(n, 2))
    f = np.sin(2 * X[:, 0]) + X[:, 1]
    if name in ("hinge", "logistic"):
        y = np.where(f + rng.normal(0, 0.5, n) > 0, 1.0, -1.0)
    else:
        y = rng.poisson(np.exp(0.5 * f)).astype(float) if name == "poisson" else f + rng.normal(0, 0.5, n)
    return Gaussian(sigma=1.0)(X), y


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("factor", [0.05, 3.0])
def test_a_multiple_of_the_square_is_the_plain_penalty(name, factor, rng):
    K, y = problem(rng, name)
    result = any_penalty(K, as_loss(name), y, np.ones(40), Penalty(lambda s: s), factor=factor)
    plain = regularised_risk(K, as_loss(name), y, np.ones(40), 2 * factor, tol=1e-8)
    assert result.objective == pytest.approx(plain.objective, rel=1e-6)
    assert result.iterations == 1
    assert result.penalty == pytest.approx(
        2 * factor, rel=1e-3
    )  # J is flat there: an error of ε² moves λ by ε


def by_cvxpy(name, K, y, omega, fit_intercept):
    cvxpy = pytest.importorskip("cvxpy")
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0))
    v, b = cvxpy.Variable(len(y)), cvxpy.Variable()
    F = root @ v + (b if fit_intercept else 0.0)
    risk = {
        "squared": lambda: cvxpy.sum_squares(F - y),
        "absolute": lambda: cvxpy.norm1(F - y),
        "hinge": lambda: cvxpy.sum(cvxpy.pos(1 - cvxpy.multiply(y, F))),
        "logistic": lambda: cvxpy.sum(cvxpy.logistic(-cvxpy.multiply(y, F))),
        "poisson": lambda: cvxpy.sum(cvxpy.exp(F) - cvxpy.multiply(y, F)),
    }[name]()
    task = cvxpy.Problem(cvxpy.Minimize(risk + omega(cvxpy, v)))
    with warnings.catch_warnings():  # "may be inaccurate": the last digits of 1e-10
        warnings.simplefilter("ignore")
        return task.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)


CONVEX = {
    "norm": (np.sqrt, lambda cvxpy, v: cvxpy.norm2(v)),
    "fourth power": (lambda s: s**2, lambda cvxpy, v: cvxpy.power(cvxpy.norm2(v), 4)),
    "threshold": (
        lambda s: np.maximum(s - 4.0, 0.0) + 0.1 * s,
        lambda cvxpy, v: cvxpy.pos(cvxpy.sum_squares(v) - 4.0) + 0.1 * cvxpy.sum_squares(v),
    ),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("omega", CONVEX)
def test_convex_ones_against_cvxpy(name, omega, rng):
    K, y = problem(rng, name)
    ours, theirs = CONVEX[omega]
    fit_intercept = (LOSSES.index(name) + list(CONVEX).index(omega)) % 2 == 0
    factor = 0.3 if fit_intercept else 5.0
    result = any_penalty(
        K, as_loss(name), y, np.ones(40), Penalty(ours), factor=factor, fit_intercept=fit_intercept
    )
    best = by_cvxpy(name, K, y, lambda cvxpy, v: factor * theirs(cvxpy, v), fit_intercept)
    assert result.stopped == "converged"
    assert result.gap <= 1e-6 * abs(result.objective)
    assert result.objective - result.gap <= best + 1e-7 * abs(best)
    assert result.objective == pytest.approx(best, rel=2e-6)
    value = as_loss(name).value(y, result.values).sum() + factor * float(ours(np.array([result.square]))[0])
    assert result.objective == pytest.approx(value, rel=1e-12)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("name", "derivative"), [*((name, None) for name in LOSSES), ("squared", lambda s: 1 / (1 + s))]
)
def test_a_penalty_that_is_not_convex(name, derivative, rng):
    """log(1 + s): no point of a fine path is below, and the certificate is to the global minimum."""
    K, y = problem(rng, name)
    loss, factor = as_loss(name), 4.0
    result = any_penalty(K, loss, y, np.ones(40), Penalty(np.log1p, derivative), factor=factor)
    assert result.gap <= 1e-6 * abs(result.objective)
    start = None
    for penalty in np.logspace(3, -5, 25):
        point = regularised_risk(K, loss, y, np.ones(40), penalty, start=start, tol=1e-6)
        start = point.coef, point.intercept
        J = loss.value(y, point.values).sum() + factor * math.log1p(point.square)
        assert result.objective <= J * (1 + 1e-6)


@pytest.mark.full
def test_two_minima(rng):
    """A cheap plateau far out competes with a small f: whichever is lower is found."""
    K, y = problem(rng, "squared")
    loss = as_loss("squared")
    found = set()
    path = [
        regularised_risk(K, loss, y, np.ones(40), penalty, tol=1e-6) for penalty in np.logspace(2, -6, 40)
    ]
    for height in (0.5, 5.0, 20.0, 40.0, 80.0):
        omega = Penalty(lambda s, height=height: np.minimum(5 * s, height))
        result = any_penalty(K, loss, y, np.ones(40), omega)
        assert result.gap <= 1e-6 * abs(result.objective)
        for point in path:
            J = loss.value(y, point.values).sum() + min(5 * point.square, height)
            assert result.objective <= J * (1 + 1e-6)
        found.add(5 * result.square > height)
    assert found == {True, False}


def test_zero_is_the_answer_where_the_norm_is_dear(rng):
    K, y = problem(rng, "absolute")
    dear = any_penalty(K, as_loss("absolute"), y, np.ones(40), Penalty(np.sqrt), factor=1e3)
    assert not dear.coef.any()
    assert dear.penalty == math.inf and dear.square == 0.0
    assert dear.objective == pytest.approx(np.abs(y - np.median(y)).sum())
    assert dear.gap <= 1e-6 * dear.objective


@settings(max_examples=25)
@given(
    st.sampled_from(LOSSES),
    st.sampled_from([np.sqrt, np.log1p, np.square, lambda s: s**0.75, lambda s: s + np.sin(s)]),
    st.floats(1e-2, 1e2),
    st.integers(0, 10**6),
)
def test_the_certificate_holds(name, omega, factor, seed):
    """No f of any norm is below objective - gap."""
    rng = np.random.default_rng(seed)
    K, y = problem(rng, name, 15)
    loss = as_loss(name)
    result = any_penalty(K, loss, y, np.ones(15), Penalty(omega), factor=factor, max_iter=20)
    assert result.gap >= 0
    for scale in (0.0, 0.01, 0.5, 0.99, 1.01, 3.0):
        coef = scale * result.coef + 1e-3 * scale * rng.normal(size=15)
        F = K @ coef + result.intercept
        J = loss.value(y, F).sum() + factor * float(omega(np.maximum(coef @ K @ coef, 0.0)))
        assert result.objective - result.gap - 1e-9 * abs(result.objective) <= J


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", LOSSES)
def test_a_ball(name, rng):
    """Ω = 0 up to ‖f‖² = 4 and infinite beyond: the constrained form of the problem."""
    K, y = problem(rng, name)
    ball = Penalty(lambda s: np.where(s <= 4.0, 0.0, np.inf))
    result = any_penalty(K, as_loss(name), y, np.ones(40), ball)
    assert result.gap <= 1e-6 * abs(result.objective)
    assert 4.0 * (1 - 1e-3) <= result.square <= 4.0 * (1 + 1e-15)
    point = regularised_risk(K, as_loss(name), y, np.ones(40), result.penalty, tol=1e-8)
    assert point.square == pytest.approx(4.0, rel=1e-2)


def test_ways_to_give_a_penalty():
    class Mine:
        def value(self, s):
            return 2 * s

        def derivative(self, s):
            return 2.0

    assert as_penalty(Mine()).derivative(3.0) == 2.0
    assert as_penalty((lambda s: s, lambda s: 1.0)).derivative(3.0) == 1.0
    assert as_penalty(math.sqrt)(np.array([4.0, 9.0])).tolist() == [2.0, 3.0]  # written for numbers
    assert as_penalty(Penalty(np.sqrt)).derivative(4.0) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("omega", "text"),
    [
        (
            lambda s: -s,
            r"penalty must increase with ‖f‖², got .* the representer theorem needs an increasing",
        ),
        (lambda s: np.sin(s), "penalty must increase with ‖f‖²"),
        (lambda s: np.log(s), r"penalty must be a finite number at every ‖f‖² ≥ 0, got Ω\(0\) = -inf"),
        (lambda s: s * np.nan, r"got Ω\(0\) = nan"),
    ],
)
def test_penalties_that_are_refused(omega, text):
    with pytest.raises(InputError, match=text):
        as_penalty(omega)


def test_what_is_no_penalty():
    with pytest.raises(
        InputTypeError, match=r"penalty must be a function of ‖f‖², got 3: pass Ω such as np\.sqrt"
    ):
        as_penalty(3)


@pytest.mark.parametrize("name", ["absolute", "logistic"])
def test_resumed_equals_uninterrupted(name, rng, tmp_path, monkeypatch):
    monkeypatch.setattr(control_module, "_EVERY", 0.0)
    K, y = problem(rng, name)
    whole = any_penalty(K, as_loss(name), y, np.ones(40), Penalty(np.sqrt))
    path = tmp_path / "run.npz"
    with Control(checkpoint=path) as control:
        part = any_penalty(K, as_loss(name), y, np.ones(40), Penalty(np.sqrt), max_iter=2, control=control)
    assert part.stopped == "max_iter" and part.gap > whole.gap
    with Control(checkpoint=path, resume=True) as control:
        rest = any_penalty(K, as_loss(name), y, np.ones(40), Penalty(np.sqrt), control=control)
    assert np.array_equal(rest.coef, whole.coef)
    assert (rest.objective, rest.gap, rest.iterations) == (whole.objective, whole.gap, whole.iterations)


def test_stopping_early(rng):
    K, y = problem(rng, "absolute")
    with Control(max_time=1e-9) as control:
        result = any_penalty(K, as_loss("absolute"), y, np.ones(40), Penalty(np.sqrt), control=control)
    assert result.stopped == "max_time" and math.isfinite(result.objective)


# --- functions that are no penalties ---------------------------------------------------------------------


def test_a_narrow_dip_is_refused():
    with pytest.raises(InputError, match="penalty must increase with"):
        Penalty(lambda s: s - 0.9 * np.exp(-(((s - 1.06) / 0.01) ** 2)))


def test_a_dip_between_the_points_of_the_grid_is_refused_where_it_is_met():
    omega = Penalty(lambda s: s - 0.9 * (np.abs(s - 1.0604) < 1e-5))
    assert omega(np.array([1.06])) == pytest.approx(1.06)
    with pytest.raises(InputError, match="penalty must increase with"):
        omega(np.array([1.0604]))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda s: 0 * s, "got the constant Ω = 0"),
        (lambda s: None, "must be a function of one number .* got float"),
        (lambda s, t: s, "must be a function of one number .* missing 1 required positional argument"),
        (lambda s: np.zeros((2, 3)), "must be a function of one number"),
    ],
)
def test_functions_that_are_no_penalties(function, message):
    with pytest.raises(InputError, match=message):
        Penalty(function)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
def test_where_rounding_ends_the_path_it_is_told(seed):
    """A K of condition 1e16 and λ of 1e-11: exp overflows on the way, and no step is taken there."""
    rng = np.random.default_rng(seed)
    K = Gaussian(sigma=5.0)(rng.normal(size=(38, 1)))
    y, w = rng.poisson(2, 38).astype(float), rng.choice([0.5, 2.0, 30.0], 38)
    result = any_penalty(
        K, as_loss("poisson"), y, w, Penalty(np.sqrt), factor=2e-4, fit_intercept=False, max_iter=20
    )
    assert np.isfinite(result.objective) and np.isfinite(result.values).all()
    assert result.stopped != "converged" or result.gap <= 1e-3 * abs(result.objective)
