"""Every registered loss against differences, numeric suprema and numeric minima; losses of the user's."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from mercer.errors import InputError, InputTypeError
from mercer.losses import Hinge, Huber, Loss, OwnLoss, Poisson, as_loss

EVERY = {
    **{name: kind() for name, kind in Loss.registry.items()},
    "huber 0.3": as_loss("huber", delta=0.3),
    "quantile 0.9": as_loss("quantile", quantile=0.9),
    "epsilon_insensitive 0": as_loss("epsilon_insensitive", epsilon=0),
}
every_loss = pytest.mark.parametrize("loss", EVERY.values(), ids=EVERY.keys())

#: the same losses as a user would write them
OWN = {
    "hinge": lambda y, f: np.maximum(0, 1 - y * f),
    "squared_hinge": lambda y, f: np.maximum(0, 1 - y * f) ** 2,
    "logistic": lambda y, f: np.logaddexp(0, -y * f),
    "squared": lambda y, f: (y - f) ** 2,
    "absolute": lambda y, f: np.abs(y - f),
    "huber": lambda y, f: np.where(np.abs(y - f) < 1, (y - f) ** 2 / 2, np.abs(y - f) - 0.5),
    "epsilon_insensitive": lambda y, f: np.maximum(0, np.abs(y - f) - 0.1),
    "squared_epsilon_insensitive": lambda y, f: np.maximum(0, np.abs(y - f) - 0.1) ** 2,
    "quantile": lambda y, f: np.maximum(0.5 * (y - f), 0.5 * (f - y)),
    "poisson": lambda y, f: np.exp(f) - y * f,
}


def targets(loss, rng, n):
    if not loss.for_targets:
        return rng.choice([-1.0, 1.0], n)
    return rng.poisson(2.0, n).astype(float) if isinstance(loss, Poisson) else rng.normal(0, 2, n)


def test_the_names_of_the_specification():
    assert {
        "squared",
        "hinge",
        "squared_hinge",
        "logistic",
        "absolute",
        "huber",
        "epsilon_insensitive",
        "quantile",
        "poisson",
    } <= set(Loss.registry)
    assert set(OWN) == set(Loss.registry)
    assert {name for name, loss in EVERY.items() if loss.for_labels} == {
        "hinge",
        "squared_hinge",
        "logistic",
        "squared",
    }


@every_loss
def test_derivatives_are_those_of_the_value(loss, rng):
    y, f, h = targets(loss, rng, 500), rng.normal(0, 2, 500), 1e-6
    slopes = (loss.value(y, f + h) - loss.value(y, f - h)) / (2 * h)
    away = np.abs(loss.derivative(y, f + h) - loss.derivative(y, f - h)) < 1e-3  # no kink within h
    assert away.mean() > 0.95
    assert loss.derivative(y, f)[away] == pytest.approx(slopes[away], rel=1e-6, abs=1e-7)
    bends = (loss.derivative(y, f + h) - loss.derivative(y, f - h)) / (2 * h)
    assert loss.curvature(y, f)[away] == pytest.approx(bends[away], rel=1e-5, abs=1e-5)


@every_loss
def test_convex(loss, rng):
    y = targets(loss, rng, 1000)
    f, g = rng.normal(0, 3, (2, 1000))
    middle, chord = loss.value(y, (f + g) / 2), (loss.value(y, f) + loss.value(y, g)) / 2
    assert (middle <= chord + 1e-12 * (1 + np.abs(chord))).all()
    assert (
        loss.value(y, g) >= loss.value(y, f) + loss.derivative(y, f) * (g - f) - 1e-9
    ).all()  # a subgradient
    assert (loss.curvature(y, f) >= 0).all()


@pytest.mark.sample(2)
@every_loss
def test_smooth_means_no_jump_of_the_slope(loss, rng):
    y = targets(loss, rng, 200)[:, None]
    f = np.linspace(-9, 9, 20001)[None, :]
    y, f = np.broadcast_arrays(y, f)
    jump = np.diff(loss.derivative(y, f), axis=1).max()
    # a step of 9e-4 changes a continuous slope by at most that times the curvature, e⁹ = 8e3 for Poisson
    assert (jump < (0.05 if not isinstance(loss, Poisson) else 8.0)) == loss.smooth


@every_loss
def test_conjugate_is_the_supremum(loss, rng):
    y = targets(loss, rng, 60)
    low, high = loss.domain(y)
    s = rng.uniform(np.maximum(low, -4), np.minimum(high, 4))
    for yi, si, value in zip(y, s, loss.conjugate(y, s), strict=True):
        at, height = np.array([yi]), lambda f: -(si * f - loss.value(at, np.array([f]))[0])  # noqa: B023
        grid = np.linspace(-30, 30, 6001)
        start = grid[np.argmax(si * grid - loss.value(np.full_like(grid, yi), grid))]
        best = -minimize_scalar(
            height, bounds=(start - 0.02, start + 0.02), method="bounded", options={"xatol": 1e-12}
        ).fun
        # where the supremum is at infinity (an end of the domain) the grid stops short by e^-30 or less
        assert value == pytest.approx(best, abs=2e-7)


@every_loss
def test_conjugate_is_infinite_outside_its_domain(loss, rng):
    y = targets(loss, rng, 50)
    low, high = loss.domain(y)
    assert (low < high).all()
    assert np.isfinite(loss.conjugate(y, np.maximum(low, -1e3))).all()
    assert np.isfinite(loss.conjugate(y, np.minimum(high, 1e3))).all()
    for end, beyond in ((low, -1e-6), (high, 1e-6)):
        inside = np.isfinite(end)
        assert np.isinf(loss.conjugate(y[inside], end[inside] + beyond)).all()


@every_loss
def test_fenchel_young(loss, rng):
    y, f = targets(loss, rng, 300), rng.normal(0, 2, 300)
    s = loss.derivative(y, f)
    assert loss.conjugate(y, s) + loss.value(y, f) == pytest.approx(s * f, abs=1e-12 * (1 + np.exp(8)))
    low, high = loss.domain(y)
    s = rng.uniform(np.maximum(low, -4), np.minimum(high, 4))
    assert (loss.conjugate(y, s) + loss.value(y, f) >= s * f - 1e-9).all()


@every_loss
@pytest.mark.parametrize("t", [1e-4, 0.3, 5.0, 1e4])
def test_prox_is_the_minimiser(loss, t, rng):
    y, u = targets(loss, rng, 300), rng.normal(0, 3, 300)
    z = loss.prox(y, u, t)

    def height(z):
        return t * loss.value(y, z) + (z - u) ** 2 / 2

    best = height(z)
    for step in (1e-7, 1e-3, 1.0):  # the function is convex: no better neighbour means no better point
        slack = 1e-12 * (1 + np.abs(best)) + 1e-15 * t
        assert (height(z + step) >= best - slack).all() and (height(z - step) >= best - slack).all()
    # (u − z)/t is a subgradient at z: what makes multipliers feasible
    assert loss.conjugate(y, np.clip((u - z) / t, *loss.domain(y))) + loss.value(y, z) == pytest.approx(
        (u - z) / t * z, rel=1e-8, abs=1e-8 / min(t, 1.0) ** 0.5
    )


@every_loss
def test_slope_of_the_prox(loss, rng):
    y, u, h = targets(loss, rng, 500), rng.normal(0, 3, 500), 1e-6
    for t in (0.2, 2.0):
        slope = loss.prox_slope(y, u, t)
        assert slope.shape == (500,) and (slope >= 0).all() and (slope <= 1).all()
        difference = (loss.prox(y, u + h, t) - loss.prox(y, u - h, t)) / (2 * h)
        same = loss.prox_slope(y, u + h, t) - loss.prox_slope(y, u - h, t) < 1e-3
        same &= loss.prox_slope(y, u - h, t) - loss.prox_slope(y, u + h, t) < 1e-3
        assert same.mean() > 0.95
        assert slope[same] == pytest.approx(difference[same], abs=1e-6)


@every_loss
@given(st.floats(-50, 50), st.floats(-50, 50), st.floats(1e-6, 1e6), st.booleans())
def test_prox_does_not_expand(loss, u, v, t, sign):
    y = np.full(2, (1.0 if sign else -1.0) if not loss.for_targets else 1.5)
    p, q = loss.prox(y, np.array([u, v]), t)
    assert abs(p - q) <= abs(u - v) * (1 + 1e-12) + 1e-11
    assert math.isfinite(p)


# --- losses of the user's ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("with_derivative", [False, True])
def test_own_losses_agree_with_the_registered(name, with_derivative, rng):
    known = Loss.registry[name]()
    own = as_loss((OWN[name], known.derivative) if with_derivative else OWN[name])
    y, f = targets(known, rng, 200), rng.normal(0, 2, 200)
    own.check_targets(y)
    assert own.smooth == known.smooth
    # differences: truncation h² and rounding eps/h, both about 1e-10, times the values
    assert own.derivative(y, f) == pytest.approx(known.derivative(y, f), rel=1e-8, abs=1e-7)
    for t in (0.1, 3.0):
        z, best = own.prox(y, f, t), known.prox(y, f, t)
        assert z == pytest.approx(best, abs=1e-7)
        height = t * known.value(y, z) + (z - f) ** 2 / 2
        assert height == pytest.approx(t * known.value(y, best) + (best - f) ** 2 / 2, rel=1e-12, abs=1e-12)
        # off the ends of a kink, which values alone show to within a thousandth of its width, t · 2 at most
        far = np.abs(known.prox_slope(y, f + 1e-2, t) - known.prox_slope(y, f - 1e-2, t)) < 2e-2
        assert own.prox_slope(y, f, t)[far] == pytest.approx(known.prox_slope(y, f, t)[far], abs=1e-3)
    low, high = known.domain(y)
    inner_low, inner_high = own.domain(y)
    assert (inner_low >= low - 1e-6).all() and (inner_high <= high + 1e-6).all()
    assert (inner_low <= np.maximum(low + 1e-6, -1e3)).all()
    assert (inner_high >= np.minimum(high - 1e-6, 1e3)).all()
    s = rng.uniform(np.maximum(low, -4), np.minimum(high, 4))
    assert own.conjugate(y, s) == pytest.approx(known.conjugate(y, s), abs=1e-9)
    for end, beyond in ((low, -0.1), (high, 0.1)):
        inside = np.isfinite(end)
        assert np.isinf(own.conjugate(y[inside], end[inside] + beyond)).all()


def test_ways_to_give_a_loss():
    class Mine:
        smooth = True

        def value(self, y, f):
            return (y - f) ** 2

    assert isinstance(as_loss("hinge"), Hinge)
    assert as_loss(Hinge()).name == "hinge"
    assert as_loss(Mine()).smooth
    assert repr(as_loss(OWN["hinge"])).startswith("OwnLoss(")
    assert repr(as_loss("quantile", quantile=0.1, epsilon=3)) == "Quantile(quantile=0.1)"


def test_a_loss_that_is_given_is_not_written_into(rng):
    given_loss = OwnLoss(OWN["squared"])
    as_loss(given_loss).check_targets(rng.normal(size=9))
    assert not given_loss.smooth


@pytest.mark.parametrize(
    "value",
    [
        lambda y, f: np.minimum((y - f) ** 2, 1.0),
        lambda y, f: np.log1p((y - f) ** 2),
        lambda y, f: np.tanh(-y * f),
        lambda y, f: -((y - f) ** 2),
    ],
)
def test_losses_that_are_not_convex_are_refused(value, rng):
    with pytest.raises(
        InputError, match=r"the loss is not convex: at y=.* above the chord.*take a convex one"
    ):
        as_loss(value).check_targets(rng.normal(size=30))


def test_refusals(rng):
    y = rng.normal(size=5)
    with pytest.raises(InputError, match="did you mean 'logistic'"):
        as_loss("logistics")
    with pytest.raises(InputError, match=r"loss is not a known name, got 'zz': pass one of absolute, "):
        as_loss("zz")
    with pytest.raises(InputTypeError, match="loss must be a name, a Loss or a function of"):
        as_loss(3)
    with pytest.raises(InputTypeError, match="the derivative of a loss must be a function"):
        as_loss((OWN["hinge"], 3))
    with pytest.raises(InputError, match=r"must return one number per point, shape \(\d+,\), got shape \(\)"):
        as_loss(lambda y, f: np.sum((y - f) ** 2)).check_targets(y)
    with pytest.raises(InputError, match=r"the loss is NaN at y=.*: it must be defined for every f"):
        as_loss(lambda y, f: np.sqrt(f)).check_targets(y)
    with pytest.raises(InputError, match="delta must be positive, got 0"):
        as_loss("huber", delta=0)
    with pytest.raises(InputError, match="quantile must be a number between 0 and 1, got 1"):
        as_loss("quantile", quantile=1)
    with pytest.raises(InputError, match="epsilon must be zero or more, got -1"):
        as_loss("epsilon_insensitive", epsilon=-1)
    with pytest.raises(InputError, match=r"loss='poisson' is for counts y ≥ 0, got -2.0: pass counts"):
        Poisson().check_targets(np.array([1.0, -2.0]))


# --- losses of one's own that are not what they should be ------------------------------------------------


@pytest.mark.parametrize(
    ("value", "derivative"),
    [
        (lambda y, f: (y - f) ** 2, lambda y, f: f - y),
        (lambda y, f: np.abs(y - f), lambda y, f: 0.5 * np.sign(f - y)),
        (lambda y, f: (y - f) ** 2, lambda y, f: 2 * (y - f)),
        (lambda y, f: (y - f) ** 2, lambda y, f: np.full_like(f, np.nan)),
    ],
)
def test_a_wrong_derivative_is_refused(value, derivative, rng):
    with pytest.raises(InputError, match="the derivative does not fit the loss: at y="):
        as_loss((value, derivative)).check_targets(rng.normal(size=30))


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_a_right_derivative_is_not_refused(scale, rng):
    y = scale * rng.normal(size=30)
    as_loss((lambda y, f: (y - f) ** 2, lambda y, f: 2 * (f - y))).check_targets(y)
    as_loss((lambda y, f: np.abs(y - f), lambda y, f: np.sign(f - y))).check_targets(y)
    # written without care for rounding, which makes its values zero far out
    naive = as_loss((lambda y, f: np.log(1 + np.exp(-y * f)), lambda y, f: -y / (1 + np.exp(y * f))))
    naive.check_targets(np.array([-1.0, 1.0]))


def test_the_ramp_is_not_convex():
    with pytest.raises(InputError, match="the loss is not convex: at y="):
        as_loss(lambda y, f: np.clip(1 - y * f, 0, 2)).check_targets(np.array([-1.0, 1.0]))


def test_functions_that_are_no_losses():
    y = np.linspace(-1, 1, 5)
    with pytest.raises(InputError, match=r"the value of the loss failed on arrays .* truth value"):
        as_loss(lambda y, f: 1.0 if y > f else 0.0).check_targets(y)
    with pytest.raises(InputError, match=r"the value of the loss failed on arrays .* positional argument"):
        as_loss(lambda y: y).check_targets(y)
    with pytest.raises(InputTypeError, match=r"loss must be an object, got the class Huber: pass Huber\(\)"):
        as_loss(Huber)


def test_a_loss_may_write_into_its_arguments():
    def squared(y, f):
        f -= y
        return f**2

    y, f = np.zeros(3), np.arange(3.0)
    assert OwnLoss(squared).value(y, f) == pytest.approx([0.0, 1.0, 4.0])
    assert f == pytest.approx([0.0, 1.0, 2.0])


def test_the_slope_of_a_prox_by_values_alone():
    """Exactly 0 at a kink, 1 on a straight piece and 1/(1 + t L'') elsewhere, at any t."""
    own = OwnLoss(lambda y, f: np.abs(y - f))
    bent = OwnLoss(lambda y, f: 0.5 * (y - f) ** 2)
    y = np.zeros(4)
    for t in (1.0, 1e-3, 1e-6):
        u = t * np.array([-3.0, -0.5, 0.5, 3.0])
        assert own.prox_slope(y, u, t).tolist() == [1.0, 0.0, 0.0, 1.0]
        # second differences of numbers of size one with a step of 1e-4 are right to 1e-7
        assert bent.prox_slope(y, u, t) == pytest.approx(1 / (1 + t), rel=1e-6)
