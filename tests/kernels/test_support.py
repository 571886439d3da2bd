"""Where kernels are zero, and what the algebra makes of it."""

from math import inf

import numpy as np
import pytest

from mercer import BallIndicator, BSpline, Constant, Gaussian, Kernel, Linear, Wendland
from mercer.kernels.formula.pair import Columns, Mapping
from mercer.kernels.support import Support, intersection, union

W1, W2 = Wendland(radius=1.0), Wendland(radius=2.0)


@pytest.mark.parametrize(
    ("kernel", "support"),
    [
        (W2, Support.ball(2.0)),
        (Wendland(radius=[1.0, 3.0]), Support.ball([1.0, 3.0])),
        (BSpline(), Support.ball(2.0, norm=inf)),
        (BSpline(degree=1, scale=3.0), Support.ball(3.0, norm=inf)),
        (BallIndicator(1.5), Support.ball(1.5)),
        (Gaussian(1.0), None),
        (Wendland(radius="median"), None),
        # the algebra
        (W1 + W2, Support.ball(2.0)),
        (W1 + Gaussian(1.0), None),
        (W1 + 1.0, None),
        (W1 + BSpline(), Support.ball(2.0, norm=inf)),  # a disc of 1 is in a square of 2
        (W1 + Wendland(radius=[0.5, 3.0]), Support.ball([1.0, 3.0])),
        (W1 * W2, Support.ball(1.0)),
        (W1 * Gaussian(1.0), Support.ball(1.0)),
        (Gaussian(1.0) * Linear(), None),
        (W2 * BSpline(), Support.ball(2.0)),
        (Wendland(radius=3.0) * BSpline(), Support.ball(2.0, norm=inf)),
        (3 * W2, Support.ball(2.0)),
        (0.5 * (W1 + W2) * Linear(), Support.ball(2.0)),
        (W2**3, Support.ball(2.0)),
        (W2**0, None),
        (W2.polynomial([0.0, 1.0, 2.0]), Support.ball(2.0)),
        (W2.polynomial([1.0, 1.0]), None),
        (W2.exp(), None),
        (W2.normalized(), Support.ball(2.0)),
        (W2.centered([[0.0]]), None),
        (W2.derivative("radius"), None),
        (Constant(1.0), None),
        # views
        (W2.on(0, 2), Support.ball(2.0).through(Columns((0, 2)))),
        (W2 @ np.log, Support.ball(2.0).through(Mapping(np.log))),
        (W1.on(0) + W2.on(1), None),
        (W1.on(0) + W2.on(0), Support.ball(2.0).through(Columns((0,)))),
        (W1.on(0) * W2.on(1) + W2.on(0), Support.ball(2.0).through(Columns((0,)))),
    ],
    ids=str,
)
def test_support(kernel, support):
    assert kernel.support == support


def test_a_tensor_product_is_zero_outside_each_of_its_balls():
    support = (W1.on(0) * W2.on(1, 2)).support
    assert len(support.balls) == 2
    assert support.norm == inf
    np.testing.assert_array_equal(support.coordinates(np.array([[3.0, 4.0, 6.0]])), [[3.0, 2.0, 3.0]])


def test_boxes_that_cross_leave_the_smaller_sides():
    tall, wide = Support.ball([1.0, 4.0]), Support.ball([4.0, 1.0])
    assert intersection([tall, wide]) == Support.ball([1.0, 1.0], norm=inf)
    assert union([tall, wide]) == Support.ball([4.0, 4.0])


def test_a_kernel_of_ones_own_says_it_and_one_that_replaces_a_formula_does_not_inherit_it():
    class Hat(Kernel):
        support = Support.ball(1.0, norm=1)

        def formula(self, pair):
            from mercer import maximum

            return maximum(1 - pair.l1, 0.0)

    class Raised(Wendland):
        def formula(self, pair):
            return super().formula(pair) + 1

    class Renamed(Wendland):
        pass

    try:
        assert (2 * Hat()).support == Support.ball(1.0, norm=1)
        assert Raised().support is None
        assert Renamed(radius=2.0).support == Support.ball(2.0)
    finally:
        for kernel in (Hat, Raised, Renamed):
            Kernel.registry.remove(kernel)
