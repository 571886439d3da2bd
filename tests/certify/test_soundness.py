"""Whatever is proved has no negative eigenvalue: kernels, formulas and points made at random."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mercer import (
    ArcCosine,
    BallIndicator,
    BSpline,
    ChiSquared,
    Constant,
    Cosine,
    Delta,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Min,
    Periodic,
    Polynomial,
    Radial,
    RationalQuadratic,
    Sigmoid,
    Spectral,
    Wendland,
)
from mercer.certify.bounds import Space, bounds
from mercer.certify.closure import Setting, prove
from mercer.certify.formula import Prover
from mercer.certify.proof import Step
from mercer.certify.rounding import gram_with_error
from mercer.certify.witness import smallest, witness_at
from mercer.kernels import fixed
from mercer.kernels.formula.expression import absolute, cos, exp, log, maximum, minimum, sin, sqrt, tanh, wrap
from mercer.kernels.formula.pair import A, B, Pair

slow_generation = settings(
    max_examples=300, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)

positive = st.floats(0.25, 4.0)


# --- random kernels of the algebra ---------------------------------------------------------------

leaves = st.one_of(
    st.builds(Gaussian, positive),
    st.builds(Laplacian, positive, st.sampled_from([1, 2])),
    st.builds(Matern, st.sampled_from([0.5, 1.2, 1.5, 2.5]), positive),
    st.builds(RationalQuadratic, positive, positive),
    st.builds(Periodic, positive, positive),
    st.builds(BSpline, st.sampled_from([1, 3, 5]), positive),
    st.builds(Wendland, positive, st.sampled_from([0, 1, 2]), st.sampled_from([1, 3, 5])),
    st.builds(Polynomial, st.integers(1, 4), st.floats(0, 2)),
    st.builds(ArcCosine, st.sampled_from([0, 1, 2])),
    st.builds(Sigmoid, st.floats(-1, 1), st.floats(-1, 1)),
    st.builds(BallIndicator, positive),
    st.builds(Constant, st.floats(0, 2)),
    st.sampled_from([Linear(), Cosine(), Delta(), Min(), ChiSquared()]),
)


def grow(kernels):
    return st.one_of(
        st.builds(lambda a, b: a + b, kernels, kernels),
        st.builds(lambda a, b: a * b, kernels, kernels),
        st.builds(lambda a, c: c * a, kernels, st.floats(0, 3)),
        st.builds(lambda a, p: a**p, kernels, st.sampled_from([0, 0.3, 0.5, 1, 1.5, 2, 3])),
        st.builds(lambda a, c: a.polynomial(c), kernels, st.lists(st.floats(0, 1), min_size=1, max_size=3)),
        st.builds(lambda a: a.normalized().exp(), kernels),
        st.builds(lambda a: a.normalized(), kernels),
        st.builds(lambda a: a.centered(np.array([[0.5, 0.2, 0.1], [1.0, 2.0, 0.0]])), kernels),
        st.builds(lambda a: a.on(0), kernels.filter(lambda a: "centered" not in repr(a))),
        st.builds(lambda a: a @ np.tanh, kernels),
        st.builds(lambda a: a.derivative("scale"), st.builds(lambda a: 2.0 * a, kernels)),
    )


def made_up_points(seed, d, nonnegative=True):
    """A cloud, with a repeated point, a nearly repeated one, the origin, and whole numbers."""
    random = np.random.default_rng(seed)
    cloud = random.normal(size=(8, d)) * 10.0 ** random.uniform(-1, 1)
    points = np.vstack([cloud, cloud[:1], cloud[:1] + 1e-9, np.zeros((1, d)), random.integers(0, 4, (4, d))])
    return np.abs(points) if nonnegative else points


@slow_generation
@given(st.recursive(leaves, grow, max_leaves=4), st.integers(0, 2**32 - 1))
def test_a_proved_kernel_has_no_negative_eigenvalue(kernel, seed):
    d = 3
    if not isinstance(prove(kernel, Setting(dim=d)), Step):
        return
    points = made_up_points(seed, d, nonnegative="Min" in repr(kernel) or "Chi" in repr(kernel))
    K, E = gram_with_error(kernel.expression(), points)
    if np.isfinite(K).all():
        low, tolerance = smallest(K, E)
        assert low >= -tolerance, (kernel, low, tolerance)
        assert witness_at(points, K, E) is None


# --- random formulas -----------------------------------------------------------------------------
# Some are wild. Most are almost right, such as exp(-N) with N almost of negative type: a rule that is
# a little too generous must not slip through.

exponents = st.sampled_from([-2, -1, -0.7, 0.3, 0.5, 1, 1.5, 2, 3])
constants = st.sampled_from([-2.0, -0.5, 0.0, 0.3, 1.0, 1.0, 1.0, 2.0])


def wild(inner):
    """Whatever one may write in a formula, most of it no kernel."""
    return st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a - b, inner, inner),
        st.builds(lambda a, b: a * b, inner, inner),
        st.builds(lambda a, b: a / b, inner, inner),
        st.builds(lambda a, p: a**p, inner, exponents),
        st.builds(lambda a, c: a * c, inner, constants),
        st.builds(lambda a: exp(-a), inner),
        st.builds(lambda a: log(1 + a), inner),
        st.builds(lambda a: 1 / (1 + a), inner),
        st.builds(lambda a: a <= 0, inner),
        st.builds(lambda a: maximum(1 - a, 0), inner),
        st.builds(lambda f, a: f(a), st.sampled_from([exp, sqrt, absolute, tanh, cos, sin]), inner),
        st.builds(lambda f, a, b: f(a, b), st.sampled_from([minimum, maximum]), inner, inner),
    )


def kernels_and_distances(kernels, distances):
    """Formulas that are kernels, and of negative type, unless a constant or an exponent spoils it."""
    kernel = st.deferred(
        lambda: st.one_of(
            kernels,
            st.builds(lambda N, c: exp(-N * c), distance, constants),
            st.builds(lambda N, c: 1 / (N + c), distance, constants),
            st.builds(lambda N, c, p: (N + c) ** p, distance, constants, exponents),
            st.builds(lambda a, b: a + b, kernel, kernel),
            st.builds(lambda a, b: a * b, kernel, kernel),
            st.builds(lambda a, c: a * c, kernel, constants),
            st.builds(lambda a, c: exp(a * c), kernel, constants),
            st.builds(lambda a, p: a**p, kernel, exponents),
            st.builds(lambda N, b, c: (1 + b * sqrt(N)) * exp(-c * sqrt(N)), distance, constants, constants),
        )
    )
    distance = st.deferred(
        lambda: st.one_of(
            distances,
            st.builds(lambda N, p: N**p, distance, exponents),
            st.builds(lambda N, c: log(N + c), distance, constants),
            st.builds(lambda N, M: N + M, distance, distance),
            st.builds(lambda N, c: N * c, distance, constants),
            st.builds(lambda k, c: c - k, kernel, constants),
            st.builds(lambda k: -log(k), kernel),
        )
    )
    return kernel | distance


def one_dimensional(a, b):
    """A term g(a, b) over coordinates."""
    kernels = [a * b, minimum(a, b), cos(2 * (a - b)), maximum(1 - absolute(a - b), 0), absolute(a - b) <= 0]
    kernels += [
        minimum(absolute(a), absolute(b)),
        absolute(a) + absolute(b) - absolute(a - b),
        sin(a) * sin(b),
    ]
    distances = [absolute(a - b), (a - b) ** 2, sin(a - b) ** 2, maximum(a, b), (a - b) ** 2 / (a + b), a + b]
    simple = st.sampled_from([a, b, a - b, a + b, *kernels, *distances])
    return st.recursive(simple, wild, max_leaves=3) | kernels_and_distances(
        st.sampled_from(kernels), st.sampled_from(distances)
    )


def pair_formulas():
    pair = Pair()
    terms = one_dimensional(A, B)
    sums = st.builds(lambda g: pair.sum(lambda a, b: g), terms)
    products = st.builds(lambda g: pair.product(lambda a, b: g), terms)
    x, y = sqrt(pair.xx), sqrt(pair.yy)
    kernels = [pair.dot, x * y, minimum(x, y), cos(x - y), pair.dot / sqrt(pair.xx * pair.yy)]
    kernels += [x + y - sqrt(pair.sqdist), pair.xx + pair.yy - pair.sqdist]
    distances = [
        pair.sqdist,
        pair.l1,
        sqrt(pair.sqdist),
        pair.differs(),
        x + y,
        absolute(x - y),
        (x - y) ** 2,
    ]
    simple = st.one_of(st.sampled_from([pair.xx, pair.yy, *kernels, *distances]), sums, products)
    likely = kernels_and_distances(
        st.sampled_from(kernels) | sums | products, st.sampled_from(distances) | sums
    )
    return (st.recursive(simple, wild, max_leaves=4) | likely | likely).map(wrap)


@settings(slow_generation, max_examples=200)
@given(pair_formulas(), st.booleans(), st.sampled_from([1, 2, 3]), st.integers(0, 2**32 - 1))
def test_a_proved_formula_has_no_witness(formula, nonnegative, d, seed):
    prover = Prover(Space(nonnegative, d))
    points = made_up_points(seed, d, nonnegative)
    K, E = gram_with_error(formula, points)
    if not np.isfinite(K).all():
        keep = np.isfinite(K).all(axis=1)  # a statement holds where the formula is defined
        points = points[keep]
        if not len(points):
            return
        K, E = gram_with_error(formula, points)
    low, high = bounds(formula, prover.space)
    inside = np.isfinite(K)
    assert np.all(K[inside] >= low - E[inside] - 1e-12) and np.all(K[inside] <= high + E[inside] + 1e-12)
    if not inside.all() or not np.isfinite(E).all():
        return
    if prover.kernel(formula):
        assert witness_at(points, K, E) is None
    if prover.kernel(formula, every_power=True):
        for p in (0.3, 1.7):
            raised = gram_with_error(wrap(formula) ** p, points)
            if np.isfinite(raised).all():
                assert witness_at(points, *raised) is None
    for negated in (False, True):
        if prover.negative_type(formula, negated):
            assert is_of_negative_type(-K if negated else K, E)


def is_of_negative_type(N, E):
    """-N is positive semidefinite on vectors of sum zero, up to rounding."""
    n = len(N)
    centre = np.eye(n) - 1 / n
    low, tolerance = smallest(-centre @ N @ centre, E)
    scale = 1e-14 * n * np.abs(N).max()  # the products with the centring matrix round too
    return bool(np.abs(N - N.T).max() <= 2 * E.max()) and low >= -tolerance - scale


def test_the_random_formulas_reach_the_rules():
    """A check that cannot fail is worse than none: enough of what is drawn must be proved."""
    proved = {"kernel": 0, "every power": 0, "negative type": 0}

    @settings(slow_generation, max_examples=150, database=None, derandomize=True)
    @given(pair_formulas())
    def count(formula):
        prover = Prover(Space(True))
        proved["kernel"] += prover.kernel(formula) is not None
        proved["every power"] += prover.kernel(formula, every_power=True) is not None
        proved["negative type"] += prover.negative_type(formula) is not None

    count()
    assert min(proved.values()) >= 9, proved


@pytest.mark.parametrize("formula", [exp(Pair().sqdist), exp(-(Pair().sqdist ** 2)), tanh(Pair().dot)])
def test_the_soundness_test_can_fail(formula):
    points = np.arange(6.0)[:, None] * 0.5
    assert witness_at(points, *gram_with_error(formula, points)) is not None


# --- thousands of trees --------------------------------------------------------------------------


def random_leaf(random):
    """A kernel of any kind, some of them none."""
    scale = 10.0 ** random.uniform(-0.5, 0.5)
    makers = [
        lambda: Gaussian(scale),
        lambda: Laplacian(scale, random.choice([1, 2]).item()),
        lambda: Matern(random.choice([0.5, 0.9, 1.5, 2.5]).item(), scale),
        lambda: RationalQuadratic(random.uniform(0.3, 3), scale),
        lambda: Periodic(scale),
        lambda: BSpline(random.choice([1, 3]).item(), scale),
        lambda: Wendland(scale, random.integers(3).item(), random.integers(1, 5).item()),
        lambda: Polynomial(random.integers(1, 4).item(), random.uniform(0, 1)),
        lambda: Spectral((1.0, random.uniform(-1.5, 2), 1.0), scale),
        lambda: Radial([scale, random.uniform(0, 2)], dim=random.integers(1, 5).item()),
        lambda: Sigmoid(random.normal(), random.normal()),
        lambda: BallIndicator(scale),
        lambda: Constant(random.uniform(0, 2)),
        Linear,
        Cosine,
        Delta,
        lambda: Distance(random.choice([0.5, 1.0, 1.5, 2.0]).item()),
        lambda: Hat(random.integers(1, 4).item()),
    ]
    return makers[random.integers(len(makers))]()


class Distance(Kernel):
    """-‖x - x'‖^p: conditionally positive definite for p ≤ 2."""

    p = fixed(1.0)

    def formula(self, pair):
        return -(pair.sqdist ** (self.p / 2))


class Hat(Kernel):
    """(1 - ‖x - x'‖)₊^p: a kernel up to some dimension."""

    p = fixed(1)

    def formula(self, pair):
        return maximum(1 - sqrt(pair.sqdist), 0) ** self.p


def random_tree(random, depth):
    if depth == 0 or random.random() < 0.2:
        return random_leaf(random)
    one = random_tree(random, depth - 1)
    growths = [
        lambda: one + random_tree(random, depth - 1),
        lambda: one * random_tree(random, depth - 1),
        lambda: random.uniform(0, 3) * one,
        lambda: one ** random.choice([0.5, 1.5, 2, 3]).item(),
        lambda: one.polynomial(random.uniform(0, 1, size=3).tolist()),
        lambda: one.normalized(),
        lambda: (0.1 * one).exp(),
        lambda: one.centered(random.normal(size=(3, 3))),
        lambda: one.on(0, 2) if "centered" not in repr(one) and "on(" not in repr(one) else one,
    ]
    return growths[random.integers(len(growths))]()


@pytest.mark.parametrize("seed", [5, *(pytest.param(seed, marks=pytest.mark.full) for seed in (6, 7))])
def test_thousands_of_proved_trees_are_not_refuted(seed, tries):
    random = np.random.default_rng(seed)
    proved = 0
    for _ in tries(1000):
        kernel = random_tree(random, 2)
        if not isinstance(prove(kernel, Setting(dim=3)), Step):
            continue
        proved += 1
        points = random.normal(size=(9, 3)) * 10.0 ** random.uniform(-1, 0.7)
        points[8] = points[7]
        K, E = gram_with_error(kernel.expression(), points)
        if np.isfinite(K).all():
            assert witness_at(points, K, E) is None, kernel
    assert len(tries(333)) < proved < len(tries(967))  # both kinds were met
