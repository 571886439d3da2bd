"""The prover on formulas: what each rule proves, and the nearest thing it must not."""

import numpy as np
import pytest

from mercer import FromFunction
from mercer.certify.bounds import Space, bounds
from mercer.certify.factors import factors
from mercer.certify.formula import Prover, is_trusted
from mercer.certify.parts import is_difference, terms
from mercer.certify.rounding import gram_with_error
from mercer.certify.witness import Witness, witness_at
from mercer.kernels.formula.expression import (
    absolute,
    cos,
    exp,
    log,
    maximum,
    minimum,
    sin,
    sqrt,
    tanh,
    where,
)
from mercer.kernels.formula.pair import A, B, Mapping, Pair, ParameterLeaf, Scaling

pair = Pair()
x, y, r = sqrt(pair.xx), sqrt(pair.yy), sqrt(pair.sqdist)


def along(term):
    return pair.sum(term)


KERNELS = {
    "constant": 2 + 0 * pair.dot,
    "inner product": pair.dot,
    "polynomial": (2 * pair.dot + 1) ** 3,
    "exp of a kernel": exp(2 * pair.dot),
    "Gaussian": exp(-pair.sqdist / 2),
    "Gaussian, expanded": exp(-(pair.xx + pair.yy - 2 * pair.dot)),
    "Gaussian times f(x) f(x')": exp(pair.xx + pair.yy - pair.sqdist),
    "Laplacian": exp(-3 * r),
    "Laplacian, l1": exp(-3 * pair.l1),
    "exp(-r^1.5)": exp(-(pair.sqdist**0.75)),
    "exp(-Σ|a-b|^1.7)": exp(-along(lambda a, b: absolute(a - b) ** 1.7)),
    "exp(-sqrt(N + M))": exp(-sqrt(pair.l1 + pair.sqdist + 3)),
    "Cauchy": 1 / (1 + pair.sqdist / 4),
    "inverse multiquadric": 1 / sqrt(2 + pair.sqdist),
    "rational quadratic": (1 + pair.sqdist) ** -0.7,
    "rational quadratic by log": exp(-0.7 * log(1 + pair.sqdist)),
    "logarithm": 1 / (1 + log(1 + r)),
    "geometric series": 1 / (1.5 - exp(-pair.sqdist)),
    "cosine similarity": pair.dot / sqrt(pair.xx * pair.yy),
    "cosine similarity, two roots": pair.dot / (x * y),
    "f(x) f(x')": tanh(pair.xx) * tanh(pair.yy),
    "f(x) k f(x')": where(pair.xx <= 1, -1.0, 3.0) * exp(-r) * where(pair.yy <= 1, -1.0, 3.0),
    "min of norms": minimum(x, y),
    "1 / max of norms": 1 / (1 + maximum(x, y)),
    "Matérn 3/2": (1 + 3**0.5 * r) * exp(-(3**0.5) * r),
    "Matérn 5/2": (1 + 5**0.5 * r + 5 * pair.sqdist / 3) * exp(-(5**0.5) * r),
    "less than Matérn 3/2": (2 + r) * exp(-r),
    "Brownian motion": x + y - r,
    "fractional Brownian motion": pair.xx**0.3 + pair.yy**0.3 - pair.sqdist**0.3,
    "twice the inner product": pair.xx + pair.yy - pair.sqdist,
    "Brownian motion along each axis": along(lambda a, b: absolute(a) + absolute(b) - absolute(a - b)),
    "hat": pair.product(lambda a, b: maximum(1 - absolute(a - b) / 2, 0)),
    "Fourier features": along(lambda a, b: cos(3 * (a - b))),
    "periodic": exp(-along(lambda a, b: sin(3 * (a - b)) ** 2)),
    "periodic with kinks": exp(-along(lambda a, b: absolute(sin(a - b)))),
    "matching labels": along(lambda a, b: absolute(a - b) <= 0),
    "Hamming": exp(-pair.differs()),
    "exp of exp": exp(exp(-pair.sqdist)),
    "root of a Gaussian": sqrt(exp(-pair.sqdist)),
    "root of a product": sqrt(exp(-r) * 3 / (1 + pair.sqdist)),
    "product over coordinates": pair.product(lambda a, b: (1 + a * b) ** 2),
    "|k| for k ≥ 0": absolute(exp(-r)),
    "max without effect": maximum(exp(-r), -1),
    "zero": 0 * pair.sqdist,
}

NOT_KERNELS = {
    "negative constant": -1 + 0 * pair.dot,
    "kernel less a constant": pair.dot - 1,
    "difference of kernels": exp(-r) - exp(-2 * r),
    "distance": pair.sqdist,
    "exp of a distance": exp(pair.sqdist),
    "exp(-sqdist²)": exp(-(pair.sqdist**2)),
    "exp(-r^2.5)": exp(-(pair.sqdist**1.25)),
    "exp(-Σ|a-b|^2.5)": exp(-along(lambda a, b: absolute(a - b) ** 2.5)),
    "exp of minus a kernel": exp(-pair.dot),
    "sigmoid": tanh(pair.dot),
    "multiquadric": sqrt(1 + pair.sqdist),
    "1 / (N - 1)": 1 / (pair.sqdist - 1),
    "1 / N": 1 / pair.sqdist,
    "1 / (1 - k), k unbounded": 1 / (1 - pair.dot),
    "1 / (0.5 - k), k up to 1": 1 / (0.5 - exp(-r)),
    "f(x) alone": pair.xx * pair.dot,
    "f(x) g(x')": pair.xx * pair.yy**2,
    "f(x) + f(x')": pair.xx + pair.yy,
    "exp(f(x) - f(x'))": exp(pair.xx - pair.yy),
    "root of an inner product": sqrt(pair.dot),
    "power 1.5 of an inner product": pair.dot**1.5,
    "root of a sum": sqrt(exp(-r) + 1),
    "min of coordinates on ℝ": along(minimum),
    "max of norms": maximum(x, y),
    "chi squared on ℝ": exp(-along(lambda a, b: (a - b) ** 2 / (a + b))),
    "too much of Matérn 3/2": (1 + 1.01 * r) * exp(-r),
    "too much of Matérn 5/2": (1 + r + 0.34 * pair.sqdist) * exp(-r),
    "Matérn 3/2 of l1": (1 + pair.l1) * exp(-pair.l1),
    "Brownian motion less a constant": x + y - r - 0.1,
    "norms less the wrong distance": x + y - 2 * r,
    "hat upside down of the Euclidean distance": maximum(r - 1, 0),
    "hat upside down": maximum(absolute(pair.xx - pair.yy) - 1, 0),
    "hat on a plateau": maximum(1 - absolute(pair.xx - pair.yy), 0.5),
    "cos of a sum": cos(pair.xx + pair.yy),
    "cos of a product": cos(pair.dot),
    "cos of a shifted difference": cos(pair.xx - pair.yy + 1),
    "ball indicator": pair.sqdist <= 1,
    "near labels": along(lambda a, b: absolute(a - b) <= 1),
    "|k|": absolute(pair.dot),
    "max with effect": maximum(pair.dot, 0),
    "log k": -log(1.5 - exp(-r)) - 10,
    "infinite constant": exp(ParameterLeaf(("c",), 1e6)) * pair.dot,
    "asymmetric sum over coordinates": along(lambda a, b: a**2 * b),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_proved(name, rng):
    formula = KERNELS[name]
    assert Prover().kernel(formula) is not None
    points = rng.normal(size=(12, 3))
    assert witness_at(points, *gram_with_error(formula, points)) is None


@pytest.mark.parametrize("name", NOT_KERNELS)
def test_others_are_not(name):
    assert Prover().kernel(NOT_KERNELS[name]) is None


def test_most_of_the_others_have_a_witness(rng):
    """They are no kernels indeed: the table above tests soundness, not timidity."""
    witnessed = 0
    for formula in NOT_KERNELS.values():
        for points in (np.arange(-6.0, 6.0)[:, None] / 2, rng.normal(size=(30, 2))):
            K, E = gram_with_error(formula, points)
            if np.isfinite(K).all() and isinstance(witness_at(points, K, E), Witness):
                witnessed += 1
                break
    assert witnessed >= len(NOT_KERNELS) - 12


@pytest.mark.parametrize(
    "formula",
    [along(minimum), exp(-along(lambda a, b: (a - b) ** 2 / (a + b))), along(lambda a, b: sqrt(a * b))],
)
def test_some_hold_on_nonnegative_points_only(formula):
    assert Prover(Space(nonnegative=True)).kernel(formula) is not None
    assert Prover(Space(nonnegative=False)).kernel(along(minimum)) is None


def test_a_feature_map_may_change_signs():
    inside = Prover(Space(nonnegative=True))
    assert inside.kernel(pair.through(Scaling((2.0, 3.0), ("sigma",))).sum(minimum)) is not None
    assert inside.kernel(pair.through(Scaling((2.0, -3.0), ("sigma",))).sum(minimum)) is None
    assert inside.kernel(pair.through(Mapping(np.sin)).sum(minimum)) is None


@pytest.mark.parametrize(
    ("formula", "divisible"),
    [
        (exp(-r), True),
        (exp(pair.dot), True),
        (1 / (1 + r), True),
        (minimum(x, y), True),
        (pair.xx * pair.yy, True),
        (exp(-r) / (1 + pair.sqdist) * x * y, True),
        (pair.product(lambda a, b: exp(-absolute(a - b))), True),
        (pair.differs() <= 0, True),
        (2 + 0 * pair.dot, True),
        (pair.dot, False),
        (pair.dot**2, False),
        (1 + exp(-r), False),
        (cos(pair.xx - pair.yy), False),
        (tanh(pair.dot) * tanh(pair.dot), False),
        ((pair.xx - 1) * (pair.yy - 1), False),  # f(x) f(x') with f of both signs
        (pair.product(lambda a, b: a * b), False),
        (pair.product(lambda a, b: maximum(1 - absolute(a - b), 0)), False),
        (along(lambda a, b: exp(-absolute(a - b))), False),
        ((1 + r) * exp(-r), False),
    ],
)
def test_every_power(formula, divisible):
    assert (Prover().kernel(formula, every_power=True) is not None) is divisible


@pytest.mark.parametrize(
    ("formula", "is_of_negative_type"),
    [
        (pair.sqdist, True),
        (r, True),
        (pair.l1 + 3 * r - 5, True),
        (-pair.dot, True),
        (-log(0.1 + exp(-pair.sqdist)), False),
        (-log(exp(-(sin(x - y) ** 2))), True),
        (log(1 + pair.sqdist), True),
        (absolute(pair.xx - pair.yy), True),
        ((pair.xx - pair.yy) ** 2, True),
        (sin(pair.xx - pair.yy) ** 2, True),
        (maximum(x, y), True),
        (pair.xx + pair.yy, True),
        (sqrt(pair.xx + pair.yy - 2 * pair.dot), True),
        (pair.sqdist**1.01, False),
        (absolute(pair.xx - pair.yy) ** 2.01, False),
        (pair.xx - pair.yy, False),
        (pair.dot, False),
        (-pair.sqdist, False),
        (sqrt(pair.sqdist - 1), False),
        (log(pair.sqdist), False),
        (pair.xx, False),
        (pair.sqdist * pair.xx * pair.yy, False),
        (sin(pair.xx - pair.yy), False),
    ],
)
def test_negative_type(formula, is_of_negative_type):
    assert (Prover().negative_type(formula) is not None) is is_of_negative_type


def test_parameters_are_numbers_with_signs():
    rate = ParameterLeaf(("rate",), 2.0)
    assert Prover().kernel(exp(-pair.sqdist * rate)) is not None
    assert Prover().kernel(exp(pair.sqdist * rate)) is None
    assert Prover().kernel(exp(-pair.sqdist * ParameterLeaf(("rate",), -2.0))) is None


def test_values_from_outside_need_a_trusted_lemma():
    source = FromFunction(lambda a, b: 1.0)
    assert Prover().kernel(pair.external(source)) is None
    assert not is_trusted(source)


# --- what the prover stands on -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formula", "interval"),
    [
        (pair.dot, (-np.inf, np.inf)),
        (pair.xx + pair.yy - 2 * pair.xx, (-np.inf, np.inf)),
        (pair.xx - pair.xx * 2 + pair.xx, (0, 0)),
        (exp(-pair.sqdist), (0, 1)),
        (1 / (2 + pair.sqdist), (0, 0.5)),
        (1 / pair.sqdist, (-np.inf, np.inf)),
        (sqrt(1 + pair.sqdist), (1, np.inf)),
        (log(1 + pair.sqdist), (0, np.inf)),
        (pair.dot**2, (0, np.inf)),
        (pair.dot * pair.dot, (0, np.inf)),
        ((1 + pair.sqdist) ** -2, (0, 1)),
        (absolute(tanh(pair.dot) - 3), (2, 4)),
        (minimum(pair.sqdist, 1), (0, 1)),
        (pair.sqdist <= 1, (0, 1)),
        (where(pair.sqdist <= 1, 2.0, -1.0), (-1, 2)),
        (pair.product(lambda a, b: exp(-absolute(a - b)) / 2), (0, 0.5)),
        (pair.product(lambda a, b: cos(a)), (-1, 1)),
        (pair.sum(lambda a, b: 1 + absolute(a)), (1, np.inf)),
        (exp(1000 + pair.sqdist), (np.finfo(float).max, np.inf)),
    ],
)
def test_bounds(formula, interval):
    assert bounds(formula, Space()) == interval


def test_bounds_on_nonnegative_points():
    assert bounds(pair.dot, Space(nonnegative=True)) == (0, np.inf)
    assert bounds(A - B, Space(nonnegative=True)) == (-np.inf, np.inf)


def test_terms_collect_what_is_equal():
    assert terms(2 * pair.dot + 3 - pair.dot / 2 + 1) == (4.0, {pair.dot: 1.5})
    assert terms(pair.dot - pair.dot) == (0.0, {})


def test_powers_are_taken_apart_only_where_that_is_right():
    assert factors(sqrt(4 * pair.xx * pair.yy), Space()) == (2.0, {pair.xx: 0.5, pair.yy: 0.5})
    assert factors(sqrt(A * B), Space()) == (1.0, {A * B: 0.5})  # not sqrt(a) sqrt(b)
    assert factors(sqrt(A**2), Space()) == (1.0, {A**2: 0.5})  # |a|, not a
    assert factors((A * B) ** 2, Space()) == (1.0, {A: 2.0, B: 2.0})
    assert factors(A / (B * 2), Space()) == (0.5, {A: 1.0, B: -1.0})


def test_differences():
    assert is_difference(3 * (A - B) / 2) and is_difference(sin(A) - sin(B))
    assert not is_difference(A + B) and not is_difference(A - B + 1) and not is_difference(A - 2 * B)
    assert not is_difference(pair.dot - pair.dot)


@pytest.mark.parametrize("power", [1, 2, 3])
def test_truncated_powers_hold_up_to_a_dimension(power):
    formula = maximum(2 - 0.5 * r, 0) ** power
    largest = 2 * power - 1
    assert Prover().kernel(formula).conditions == (f"points in ℝ^m, m ≤ {largest}",)
    assert Prover(Space(dim=largest)).kernel(formula).conditions == ()
    assert Prover(Space(dim=largest + 1)).kernel(formula) is None
    assert Prover().kernel(formula, every_power=True) is None
    # the condition survives whatever is built on it
    assert Prover().kernel(3 * formula + 1).conditions == (f"points in ℝ^m, m ≤ {largest}",)
    assert Prover().kernel(1 * formula * pair.dot).conditions == (f"points in ℝ^m, m ≤ {largest}",)
