"""The closure rules: every class of the algebra, every leaf, and what they ask of the points."""

import numpy as np
import pytest

from mercer import (
    BallIndicator,
    BSpline,
    ChiSquared,
    Constant,
    Cosine,
    Delta,
    Gaussian,
    GeneralSetKernel,
    Laplacian,
    Linear,
    Matern,
    Min,
    Periodic,
    Polynomial,
    RationalQuadratic,
    SetKernel,
    Sigmoid,
    Wendland,
    certify,
)
from mercer.certify.closure import DIVISIBLE, RULES, Setting, prove
from mercer.certify.formula import is_trusted
from mercer.certify.proof import Open, Step
from mercer.kernels import compose, fixed, positive
from mercer.kernels.base import Kernel
from mercer.kernels.derivative import Derivative
from mercer.kernels.formula.expression import minimum, tanh
from mercer.kernels.sets.invariance import Invariant
from mercer.testing import example_kernels, own_kernels

BALL, GAUSS, POINTS = BallIndicator(), Gaussian(1.0), np.array([[0.0], [1.0], [2.5]])


class Formula(Kernel):
    """k = function(pair): a user's kernel, without a lemma."""

    function = fixed(None)

    def formula(self, pair):
        return self.function(pair)


class FormulaOnHistograms(Formula):
    """The same on points ≥ 0."""

    domain = "nonnegative"


def is_proved(kernel, **setting):
    return isinstance(prove(kernel, Setting(**setting)), Step)


@pytest.mark.parametrize(
    "kernel", [k for k in example_kernels() if k.lemma is not None], ids=lambda k: repr(k)[:70]
)
def test_every_leaf_with_a_lemma_is_proved_by_it(kernel):
    certificate = certify(kernel)
    assert certificate.verdict == "proved"
    assert certificate.reason.startswith(kernel.lemma)
    assert certificate.steps.parts == ()


def test_every_class_has_a_rule_or_a_lemma_or_is_known_to_have_none():
    without = {
        kind.__name__
        for kind in own_kernels()
        if kind not in RULES and kind.lemma is None and kind.closure is None
    }
    known = {
        "BallIndicator",
        "Sigmoid",
        "FromFunction",
        "Precomputed",
        "Derivative",
        "LocalAlignment",
        "Negative",
    }
    assert without <= known and without >= known - {"LocalAlignment"}
    assert Derivative not in RULES


@pytest.mark.parametrize(
    ("build", "rule"),
    [
        (lambda k: k + Linear(), "a sum of kernels"),
        (lambda k: k * Linear(), "a product of kernels (Schur)"),
        (lambda k: 2.5 * k, "a kernel times 2.5 ≥ 0"),
        (lambda k: k**3, "a whole power of a kernel (Schur)"),
        (lambda k: k.polynomial([1, 0, 2]), "a polynomial of a kernel with coefficients ≥ 0"),
        (lambda k: k.exp(), "exp of a kernel: Σ kⁿ/n!, every coefficient ≥ 0"),
        (lambda k: k.normalized(), "f(x) k(x, x') f(x') with f(x) = k(x, x)^{-1/2}"),
        (lambda k: k.centered(POINTS), "the inner product of features, each less their mean"),
        (lambda k: k.centered(), "the inner product of features, each less their mean"),
        (lambda k: k.on(0), "a kernel on some of the columns"),
        (lambda k: k @ np.sin, "k(φ(x), φ(x')), for any map φ"),
        (lambda k: k.on(0) * k.on(1), "a tensor product of kernels on different columns"),
        (lambda k: k.on(0) * k.on(0), "a product of kernels (Schur)"),
    ],
)
def test_what_is_built_from_kernels_is_a_kernel(build, rule):
    proof = prove(build(GAUSS), Setting())
    assert isinstance(proof, Step) and proof.rule == rule and proof.parts
    assert isinstance(prove(build(BALL), Setting()), Open)
    assert isinstance(prove(build(Sigmoid()), Setting()), Open)


def test_zero_and_one_forgive_everything():
    assert prove(0 * BALL, Setting()).rule == "zero, whatever it multiplies"
    assert prove(BALL**0, Setting()).rule == "the power 0 is the constant 1"
    assert is_proved(Constant(0.0)) and is_proved(GAUSS + 0 * BALL)


def test_the_first_open_part_is_the_reason():
    result = prove(GAUSS + 3 * Sigmoid() + BALL, Setting())
    assert result == Open("no rule proves Sigmoid(eta=1.0, nu=0.0), k = tanh((dot * eta + nu))")


def test_parts_may_be_open_and_the_whole_proved():
    root = Formula(lambda pair: pair.sqdist)  # no kernel
    rest = Formula(lambda pair: pair.xx + pair.yy - 2 * pair.sqdist)  # no kernel either
    assert isinstance(prove(root, Setting()), Open) and isinstance(prove(rest, Setting()), Open)
    proof = prove(root + rest, Setting())  # 2 ⟨x, x'⟩
    assert isinstance(proof, Step)
    assert proof.rule.startswith("by its formula, N(x, 0) + N(0, x') - N(x, x') - N(0, 0)")


@pytest.mark.parametrize(
    "kernel",
    [
        GAUSS,
        Gaussian(sigma=[1.0, 2.0]),
        Laplacian(),
        Laplacian(norm=2),
        Matern(0.5),
        Matern(1.5),
        Matern(2.2),
        RationalQuadratic(0.7),
        Periodic(),
        ChiSquared(),
        Delta(),
        Constant(2.0),
        2 * GAUSS,
        GAUSS * Laplacian(),
        GAUSS**2,
        Linear().exp(),
        GAUSS @ np.sin,
        GAUSS.on(0) * Laplacian().on(1),
        RationalQuadratic().normalized(),
        2 * Matern(2.2) * GAUSS,
        Matern().on(0) @ np.sin,
    ],
    ids=repr,
)
def test_fractional_powers_of_what_is_infinitely_divisible(kernel):
    assert is_proved(kernel**0.3) and is_proved((kernel**0.5) ** 0.5)


@pytest.mark.parametrize(
    "kernel", [Linear(), Polynomial(2), GAUSS + 1, BSpline(1), Cosine(), BALL, Min(), GAUSS.centered(POINTS)]
)
def test_fractional_powers_of_others_are_open(kernel):
    assert not is_proved(kernel**0.5)


def test_the_reason_a_fractional_power_is_open():
    assert prove(Linear() ** 0.5, Setting()) == Open(
        "no rule proves that every power of Linear() is a kernel"
    )


@pytest.mark.parametrize("kind", DIVISIBLE)
@pytest.mark.parametrize("p", [0.1, 0.7, 2.3])
def test_the_table_of_divisible_kernels(kind, p, rng):
    K = kind()(np.abs(rng.normal(size=(25, 3)))) ** p
    assert np.linalg.eigvalsh(K)[0] > -1e-12


# --- dimensions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("dim", "largest"), [(1, 1), (2, 3), (3, 3), (4, 5), (5, 5)])
@pytest.mark.parametrize("smoothness", [0, 1, 2])
def test_wendland_holds_up_to_a_dimension(dim, largest, smoothness):
    kernel = Wendland(smoothness=smoothness, dim=dim)
    assert prove(kernel, Setting()).conditions == (f"points in ℝ^m, m ≤ {largest}",)
    assert prove(kernel, Setting(dim=largest)).conditions == ()
    assert prove(kernel, Setting(dim=largest + 1)) == Open(
        f"{kernel!r} is positive definite in ℝ^m for m ≤ {largest}, not in ℝ^{largest + 1} (Wendland 1995)",
        fails=True,
    )


def test_dimensions_through_columns_maps_and_length_scales():
    flat = Wendland(dim=1)
    assert is_proved(flat.on(4), dim=10) and not is_proved(flat.on(4, 5), dim=10)
    assert is_proved(flat.on(4) * Wendland(dim=1).on(5), dim=10)
    assert not is_proved(Wendland(radius=[1.0, 2.0], dim=1))
    assert prove(flat @ np.sin, Setting(dim=10)).conditions == ("values of the feature map in ℝ^m, m ≤ 1",)
    assert is_proved(flat @ (lambda X: X[:, :1]), points=np.ones((2, 10)))
    assert not is_proved(flat @ np.sin, points=np.ones((2, 10)))
    assert certify(Gaussian(1.0) + flat).reason == "a sum of kernels, for points in ℝ^m, m ≤ 1"


# --- points ≥ 0 ----------------------------------------------------------------------------------


def test_kernels_on_nonnegative_points_say_so():
    assert prove(Min() + Linear(), Setting()).conditions == ("points ≥ 0",)
    assert prove(Min().on(0) + Linear(), Setting()).conditions == ("points ≥ 0",)
    assert prove(FormulaOnHistograms(lambda pair: pair.sum(minimum)), Setting()).conditions == ("points ≥ 0",)
    assert not is_proved(Formula(lambda pair: pair.sum(minimum)))


def test_what_a_part_sees_must_be_nonnegative_too():
    """Such a kernel refuses points whose images are negative: where it is defined it is proved."""
    for kernel in (Min() @ np.sin, Min().on(0) @ np.sin, (Min() + 1) @ np.sin, ChiSquared() ** 0.5 @ np.sin):
        assert prove(kernel, Setting()).conditions == ("values of the feature map ≥ 0",)
        assert certify(kernel, np.array([[0.1], [3.0]])).verdict == "proved"
        with pytest.raises(ValueError, match="Negative values in data"):
            certify(kernel, np.array([[0.1], [4.0]]))
    own = FormulaOnHistograms(lambda pair: pair.sum(minimum))
    assert prove(own @ np.sin, Setting()).conditions == ("values of the feature map ≥ 0",)


def test_a_witness_is_a_point_where_the_kernel_can_be_computed():
    """min(x, x') - x x'/8 on x ≥ 0 is refuted far out, and not by images that are negative."""

    class Bent(Kernel):
        domain = "nonnegative"

        def formula(self, pair):
            return pair.sum(minimum) - pair.dot / 8

    certificate = certify(Bent() @ np.sinh)
    assert certificate.verdict == "refuted"
    assert np.isfinite((Bent() @ np.sinh)(certificate.points)).all()
    with pytest.raises(ValueError, match="Negative values in data"):
        certify(Min(), [[-1.0], [1.0]])


def test_what_is_known_of_the_elements_of_sets():
    assert prove(SetKernel(Min()), Setting()).conditions == ("elements ≥ 0",)
    assert prove(SetKernel(SetKernel(Min())), Setting()).conditions == ("elements ≥ 0",)
    assert prove(SetKernel(Wendland(dim=3)), Setting()).conditions == ("elements in ℝ^m, m ≤ 3",)
    bags = [{"rose": 3.0, "thorn": 1.0}, {"rose": 2.0}]
    assert prove(GeneralSetKernel(Delta(), Min()), Setting(points=bags)).conditions == ()
    assert prove(GeneralSetKernel(Min(), Min()), Setting()).conditions == ("elements ≥ 0",)
    flat = Wendland(dim=1)
    assert prove(GeneralSetKernel(Delta(), flat), Setting()).conditions == ()
    assert prove(GeneralSetKernel(flat, flat), Setting()).conditions == ("elements in ℝ^m, m ≤ 1",)
    assert prove(Invariant(Min(), [np.fliplr]), Setting(dim=2)).conditions == (
        "points and their variants ≥ 0",
    )
    assert prove(Invariant(Wendland(dim=1), []), Setting(dim=1)).conditions == ()
    on_a_plane = [[[0.0, 1.0]], [[1.0, 1.0], [2.0, 0.0]]]
    assert isinstance(prove(SetKernel(flat), Setting(points=on_a_plane)), Open)
    assert isinstance(prove(SetKernel(SetKernel(flat)), Setting(points=[on_a_plane, on_a_plane])), Open)
    assert prove(SetKernel(Wendland(dim=2)), Setting(points=on_a_plane)).conditions == ()
    assert isinstance(prove(SetKernel(Sigmoid()), Setting()), Open)


def test_negative_values_in_the_columns_of_a_histogram_are_refused():
    with pytest.raises(ValueError, match=r"Min compares histograms, got points\[0, 0\] = -1.0"):
        certify(Min().on(0), [[-1.0, 2.0], [1.0, 1.0]])


# --- claims --------------------------------------------------------------------------------------


def test_a_users_lemma_is_a_claim_and_no_proof():
    class Claims(Kernel):
        lemma = "trust me"

        def formula(self, pair):
            return tanh(pair.dot)

    assert not is_trusted(Claims())
    assert prove(Claims(), Setting()) == Open(
        "no rule proves Claims(), k = tanh(dot) (its lemma, 'trust me', is a claim that was not checked)"
    )
    assert certify(Claims()).verdict == "refuted"


def test_a_subclass_of_a_kernel_of_ours_is_somebody_elses():
    class Wider(Gaussian):
        pass

    class Wrong(Gaussian):
        def formula(self, pair):
            return pair.sqdist

    class WrongSum(compose.Sum):
        def expression(self, pair=None):
            return super().expression(pair) * -1

    assert prove(Wider(2.0), Setting()).rule.startswith("by its formula, exp(-N)")
    assert not is_proved(Wrong(2.0))
    assert certify(WrongSum(GAUSS, GAUSS)).verdict == "refuted"


def test_a_class_that_borrows_our_name_is_not_trusted():
    impostor = type("Gaussian", (Gaussian,), {"__module__": "mercer.kernels.vectors.stationary"})
    assert is_trusted(GAUSS) and not is_trusted(impostor(1.0))


def test_a_users_formula_is_proved_by_its_shape():
    class Cauchy(Kernel):
        scale: float = positive(1.0)

        def formula(self, pair):
            return 1 / (1 + pair.sqdist / self.scale**2)

    certificate = certify(Cauchy(scale=2.0))
    assert certificate.verdict == "proved"
    assert certificate.reason == "by its formula, N^-α for α = 1 > 0 and N > 0 of negative type"
    assert certify(3 * Cauchy() ** 0.4 + Cauchy() @ np.sin).verdict == "proved"


def test_what_waits_for_data_is_no_obstacle_to_a_lemma():
    assert is_proved(Gaussian("median") + Polynomial(3, gamma="scale"))
    assert prove(Sigmoid("scale"), Setting()).reason.startswith("eta='scale' of Sigmoid(")


def test_a_sum_with_what_is_no_kernel_may_be_one():
    """In ℝ⁵ the transform of Wendland's kernel of ℝ³ is below zero, by less than the Laplacian's is above."""
    setting, local = Setting(dim=5), Wendland(dim=3)
    assert prove(2 * local, setting).fails
    for kernel in (local + 100 * Laplacian(norm=2), local * Gaussian(), local**2):
        assert not prove(kernel, setting).fails
