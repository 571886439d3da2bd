"""Differences that are kernels: expansions against their coefficients, sums against their exact spectra."""

import numpy as np
import pytest

from mercer import certify, largest_dimension
from mercer.certify.bounds import Space
from mercer.certify.differences import power_series, spectral_sum
from mercer.certify.formula import Prover
from mercer.certify.parts import split, terms
from mercer.kernels import fixed
from mercer.kernels.base import Kernel
from mercer.kernels.formula.expression import ZERO, cos, exp, maximum, sqrt
from mercer.kernels.formula.pair import Pair

PAIR = Pair()
DOT, R2, R = PAIR.dot, PAIR.sqdist, sqrt(PAIR.sqdist)


class Formula(Kernel):
    f = fixed(None)

    def formula(self, pair):
        return self.f(pair)


# --- power series --------------------------------------------------------------------------------


def test_a_polynomial_is_proved_exactly_when_its_coefficients_are_not_negative():
    random = np.random.default_rng(3)
    verdicts = []
    for _ in range(300):
        a, b, c = (float(v) for v in random.integers(-3, 4, size=3))
        m, n = (int(v) for v in random.integers(1, 4, size=2))
        formula = (a + DOT) ** m * (b + DOT) ** n + c * DOT
        polynomial = np.polynomial.Polynomial([a, 1.0]) ** m * np.polynomial.Polynomial([b, 1.0]) ** n
        coefficients = (polynomial + np.polynomial.Polynomial([0.0, c])).coef
        proof = power_series(Prover(), formula)
        assert (proof is not None) == bool((coefficients >= 0).all()), (a, b, c, m, n)
        verdicts.append(proof is not None)
    assert 30 < sum(verdicts) < 270


@pytest.mark.parametrize(
    ("formula", "is_kernel"),
    [
        (exp(DOT) - 0.5 * DOT * DOT, True),
        (exp(DOT) - 0.5000001 * DOT * DOT, False),
        (exp(DOT) - 1 - DOT - DOT**3 / 7, True),
        (exp(DOT) - 1 - DOT - DOT**3 / 5, False),
        (exp(0.5 * DOT) - 0.126 * DOT * DOT, False),
        (exp(DOT) + exp(2 * DOT) - 2.4 * DOT**2, True),  # ½ + 2 are there to pay with
        (exp(DOT) - 1.001, False),
        (exp(-DOT) - 0.1 * DOT**2, False),
        (exp(exp(-R2)) - exp(-R2), True),
        (2 * exp(R2) - R2, False),
        ((DOT + PAIR.xx * PAIR.yy) ** 2 - PAIR.xx * PAIR.yy * DOT, True),
        ((0.1 + DOT) ** 2 - 0.010000000000000002 - 1e-17, False),  # 0.1² is a little less than that
    ],
)
def test_what_is_taken_away_must_be_there(formula, is_kernel):
    assert (Prover().kernel(formula) is not None) == is_kernel


def test_expansions_stay_small():
    assert power_series(Prover(), (1 + DOT) ** 40 - 1) is None
    wide = (1 + DOT + exp(-R2) + exp(-R) + PAIR.l1) ** 9 - 1
    assert power_series(Prover(), wide) is None


# --- spectra -------------------------------------------------------------------------------------


def density(rates, weights, kind, dim, omega):
    """The exact spectral density of Σ c exp(-ar) or Σ c exp(-ar²), but for a factor."""
    a, c, w = rates[:, None], weights[:, None], omega[None, :]
    if kind == "exponentials":
        return (c * a * (a**2 + w**2) ** (-(dim + 1) / 2)).sum(axis=0)
    return (c * a ** (-dim / 2) * np.exp(-(w**2) / (4 * a))).sum(axis=0)


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", ["exponentials", "Gaussians"])
def test_sums_that_are_proved_have_densities_that_are_not_negative(kind):
    random = np.random.default_rng(7)
    omega = np.append(0.0, np.geomspace(1e-3, 1e3, 400))
    proved = refused = 0
    for _ in range(1500):
        n = int(random.integers(2, 5))
        rates = np.round(10.0 ** random.uniform(-1, 1, size=n), 2)
        weights = np.round(random.normal(size=n), 1)
        if (weights >= 0).all() or len(set(rates)) < n or not weights.all():
            continue
        dim = int(random.integers(1, 6))
        base = R if kind == "exponentials" else R2
        formula = ZERO
        for a, c in zip(rates, weights, strict=True):
            formula = formula + float(c) * exp(-float(a) * base)
        constant, linear = terms(formula)
        proof = spectral_sum(Prover(Space(dim=dim)), formula, constant, split(linear)[2])
        v = density(rates, weights, kind, dim, omega)
        size = density(rates, abs(weights), kind, dim, omega)
        proved += proof is not None
        refused += proof is None
        if proof is not None:
            assert (v >= -1e-13 * size).all(), (rates, weights, dim)
        if n == 2 and proof is None:  # for two terms the conditions are necessary, too
            assert (v[size > 0] < 1e-9 * size[size > 0]).any(), (rates, weights, dim)
    assert proved > 40 and refused > 40


def test_dimensions_of_differences():
    narrow = Formula(lambda pair: exp(-2 * pair.sqdist) - 0.49 * exp(-pair.sqdist))
    assert certify(narrow).reason.endswith("for points in ℝ^m, m ≤ 2") and certify(narrow).dimension == 2
    assert largest_dimension(narrow) == 2  # 2^{-m/2} ≥ 0.49
    steep = Formula(lambda pair: exp(-sqrt(pair.sqdist)) - 0.5 * exp(-2 * sqrt(pair.sqdist)))
    assert largest_dimension(steep) == np.inf
    steeper = Formula(lambda pair: exp(-sqrt(pair.sqdist)) - 0.51 * exp(-2 * sqrt(pair.sqdist)))
    assert certify(steeper).verdict == "refuted"


# --- truncated powers and waves on a line --------------------------------------------------------


@pytest.mark.sample(3)
@pytest.mark.parametrize(("power", "largest"), [(1, 1), (1.5, 2), (1.7, 2), (2, 3), (4, 7)])
def test_truncated_powers_hold_up_to_a_dimension_and_no_further(power, largest):
    hat = Formula(lambda pair: maximum(1 - sqrt(pair.sqdist), 0) ** power)
    assert certify(hat).dimension == largest and certify(hat, dim=largest).verdict == "proved"
    assert certify(hat, dim=largest + 1).verdict == "refuted"


def test_a_flat_power_is_none_anywhere():
    hat = Formula(lambda pair: maximum(1 - sqrt(pair.sqdist), 0) ** 0.9)
    assert certify(hat, dim=1).verdict == "refuted"


@pytest.mark.full
def test_the_cosine_of_the_distance_is_a_kernel_on_the_line_only():
    wave = Formula(lambda pair: cos(3 * sqrt(pair.sqdist)) * exp(-pair.sqdist))
    assert certify(wave, dim=1).verdict == "proved" and certify(wave, dim=3).verdict == "refuted"
    assert largest_dimension(Formula(lambda pair: cos(sqrt(pair.sqdist)))) == 1
