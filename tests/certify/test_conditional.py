"""Kernels that are positive definite on some coefficients only: recognised, with their order, and right."""

import numpy as np
import pytest

from mercer import SVC, Gaussian, Kernel, KernelPCA, Linear, Sigmoid, certify
from mercer.certify.conditional import conditional_order, what_it_allows
from mercer.certify.formula import Prover
from mercer.kernels import fixed
from mercer.kernels.formula.expression import exp, log, maximum, sqrt
from mercer.kernels.formula.pair import Pair

pair = Pair()
s = pair.sqdist
r = sqrt(s)
log_s = log(maximum(s, 1e-300))

CONDITIONAL = {
    "distance": (-r, 1),
    "squared distance": (-s, 1),
    "multiquadric": (-sqrt(1 + s), 1),
    "logarithm": (-log(1 + s), 1),
    "distance and a constant": (3 - 2 * r, 1),
    "distance and points' own terms": (pair.xx + pair.yy - r, 1),
    "thin plate": (s * log_s, 2),
    "thin plate, by its root": (s * log(sqrt(maximum(s, 1e-300))), 2),
    "cube": (s**1.5, 2),
    "squared distance, upside down": (s, 2),
    "shifted": ((2 + s) ** 1.5, 2),
    "surface spline": (-(s**2) * log_s, 3),
    "fifth power": (-(s**2.5), 3),
    "a sum": (s * log_s - r + exp(-s), 2),
}
NOT = {
    "distance upside down": r,
    "thin plate upside down": -s * log_s,
    "cube upside down": -(s**1.5),
    "multiquadric upside down": sqrt(1 + s),
    "fifth power upside down": s**2.5,
    "asymmetric": pair.xx - r,
    "logarithm of another": s * log(maximum(1 - s, 1e-300)),
}


def polynomials(X, degree):  # (n, monomials)
    """All monomials of a degree below the given one, in two variables."""
    powers = [(a, b) for a in range(degree) for b in range(degree) if a + b < degree]
    return np.stack([X[:, 0] ** a * X[:, 1] ** b for a, b in powers], axis=1)


def on_the_rest(K, P):
    """K on the coefficients c with Pᵀc = 0."""
    Q = np.linalg.qr(P, mode="complete")[0][:, P.shape[1] :]
    return Q.T @ K @ Q


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", CONDITIONAL)
def test_the_order_is_found_and_right(name, rng):
    formula, order = CONDITIONAL[name]
    found, step = conditional_order(formula, Prover())
    assert found == order and step.rule

    class Own(Kernel):
        def formula(self, pair):
            return formula

    X = rng.normal(size=(30, 2))
    K = Own()(X)
    low = np.linalg.eigvalsh(on_the_rest(K, polynomials(X, order)))[0]
    assert low > -1e-10 * np.abs(K).max()
    if order > 1 and name != "squared distance, upside down":  # a lower order would be wrong
        lower = np.linalg.eigvalsh(on_the_rest(K, polynomials(X, order - 1)))
        assert lower[0] < -1e-6 or name == "shifted"


@pytest.mark.parametrize("name", NOT)
def test_others_are_not(name):
    assert conditional_order(NOT[name], Prover()) is None


class Distance(Kernel):
    """k = -‖x - x'‖."""

    def formula(self, pair):
        return -sqrt(pair.sqdist)


class ThinPlate(Kernel):
    """k = r² log r."""

    def formula(self, pair):
        return pair.sqdist * log(maximum(pair.sqdist, 1e-300)) / 2


def test_the_certificate_says_what_that_allows():
    certificate = certify(Distance())
    assert certificate.verdict == "refuted" and certificate.conditional == 1
    assert certificate.conditional_steps.rule == "conditionally positive definite: -k is of negative type"
    assert "\nit is conditionally positive definite of order 1, cᵀKc ≥ 0 whenever Σc = 0" in str(certificate)
    plate = certify(ThinPlate())
    assert plate.verdict == "refuted" and plate.conditional == 2
    assert "order 2" in str(plate) and "splines" in what_it_allows(2)
    for kernel in (Sigmoid(), Gaussian(), Linear()):
        assert certify(kernel).conditional is None


def test_centring_makes_it_a_kernel(rng):
    X = rng.normal(size=(40, 3))
    kernel = Distance().centered(X)
    certificate = certify(kernel, X)
    assert certificate.verdict == "proved"
    assert certificate.reason == "a conditionally positive definite kernel, centred (Schoenberg)"
    assert np.linalg.eigvalsh(kernel(X))[0] > -1e-12
    assert certify(ThinPlate().centered(X)).verdict != "proved"


def test_learners_that_may_use_it(rng):
    X = rng.normal(size=(60, 2))
    y = X[:, 0] * X[:, 1] > 0
    assert SVC(kernel=Distance().centered(), C=10.0).fit(X, y).score(X, y) > 0.9
    centred, plain = (
        KernelPCA(n_components=2, kernel=k).fit_transform(X) for k in (Distance().centered(), Distance())
    )
    np.testing.assert_allclose(abs(centred), abs(plain), atol=1e-6)  # it centres by itself


def test_a_formula_inside_a_class_with_a_parameter():
    class Power(Kernel):
        p = fixed(1.0)

        def formula(self, pair):
            return -(pair.sqdist**self.p)

    assert certify(Power(0.3)).conditional == 1
    assert certify(Power(1.0)).conditional == 1
    assert certify(Power(1.2)).conditional is None  # the sign is wrong between 1 and 2
