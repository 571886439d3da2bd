"""Small programs in arithmetic of 106 bits: their values in fractions."""

from fractions import Fraction

import numpy as np
import pytest

from mercer import Gram, Linear
from mercer.gram.exact import exact_values
from mercer.solvers.svm import problems as svm
from mercer.solvers.svm.decomposition import solve
from mercer.solvers.svm.exact import improve


def _tasks(y, upper):
    targets = np.where(y > 0, 2.0, -1.0) + np.linspace(0, 1, len(y))
    return {
        "c_svc": svm.c_svc(y, upper),
        "without b": svm.c_svc(y, upper, intercept=False),
        "nu_svc": svm.nu_svc(y, upper, 0.5),
        "svr": svm.svr(targets, upper, 0.2),
        "nu_svr": svm.nu_svr(targets, upper, 0.4),
        "one_class": svm.one_class(upper, 0.4),
    }


def _value(X, program, gamma):
    """½ γᵀKγ - cᵀγ in fractions; with Σγ = 0 to the last digit, where it is so to the last but one."""
    g = [Fraction(v) for v in gamma.tolist()]
    if program.balanced and abs(float(sum(g))) < 1e-12 * np.abs(gamma).sum():
        g[0] -= sum(g)
    w = [
        sum(value * Fraction(X[p, k]) for value, p in zip(g, program.position, strict=True))
        for k in range(X.shape[1])
    ]
    gain = sum(Fraction(c) * value for c, value in zip(program.c.tolist(), g, strict=True))
    return float(sum(v * v for v in w) / 2 - gain)


@pytest.mark.sample(5)
@pytest.mark.parametrize("kind", ["c_svc", "without b", "nu_svc", "svr", "nu_svr", "one_class"])
def test_a_column_of_a_hundred_million(rng, kind):
    """⟨x, x'⟩ = 10¹⁶ + what matters, of the size of 1: float64 knows nothing of it."""
    X = np.column_stack([rng.normal(size=(14, 2)), np.full(14, 1e8) + rng.normal(size=14)])
    y = np.where(np.arange(14) % 2 == 0, 1.0, -1.0)
    task = _tasks(y, np.full(14, 0.5))[kind]
    program = task.program
    gamma, steps = improve(exact_values(Linear(), X, np.arange(14)), program, program.start, 10**6)
    assert (gamma >= program.lo).all() and (gamma <= program.hi).all() and steps > 0
    if program.balanced:
        assert gamma.sum() == pytest.approx(program.start.sum(), abs=1e-13)
    value = _value(X, program, gamma)
    [plain] = solve(Gram(Linear(), X), [program], tol=1e-6)
    assert value <= _value(X, program, plain.gamma) + 1e-9
    if kind not in ("without b", "one_class"):  # where Σγ = 0, points may be moved
        [moved] = solve(Gram(Linear(), X - X.mean(axis=0)), [program], tol=1e-6)
        assert value == pytest.approx(_value(X, program, moved.gamma), rel=1e-5, abs=1e-5)


def test_steps_are_counted(rng):
    X = rng.normal(size=(10, 2))
    program = svm.c_svc(np.where(X[:, 0] + 0.5 * rng.normal(size=10) > 0, 1.0, -1.0), np.ones(10)).program
    K = exact_values(Linear(), X, np.arange(10))
    assert improve(K, program, program.start, 1)[1] == 1


def test_nothing_bounds_it_from_below():
    """Two equal points of different classes, and no upper bound: γ stays where it is."""
    lo, hi = np.array([0.0, -np.inf]), np.array([np.inf, 0.0])
    program = svm.QuadraticProgram(np.array([1.0, -1.0]), lo, hi, np.zeros(2), np.arange(2), 2)
    gamma, _ = improve((np.ones((2, 2)), np.zeros((2, 2))), program, np.zeros(2), 100)
    np.testing.assert_array_equal(gamma, 0.0)


def test_equal_points_with_large_coefficients_cancel():
    """Two equal points of 10²⁰ at ±10⁶ leave nothing, not even rounding."""
    X = np.array([[1e20], [1e20], [0.0]])
    program = svm.c_svc(np.array([1.0, -1.0, 1.0]), np.array([1e6, 1e6, 10.0])).program
    gamma, _ = improve(exact_values(Linear(), X, np.arange(3)), program, program.start, 1000)
    np.testing.assert_array_equal(gamma[:2], [1e6, -1e6])
    assert abs(gamma[2]) < 1e-12
