"""Badly scaled random problems: a sample of benchmarks/svm_random.py, and those that once took for ever."""

import time
import warnings
from fractions import Fraction

import numpy as np
import pytest
from sklearn import svm as peers
from sklearn.exceptions import ConvergenceWarning

from benchmarks._svm_random import dual_value, make
from benchmarks.svm_random import SLOW, WORSE, measure
from mercer import SVC


@pytest.mark.sample(12)
@pytest.mark.parametrize("first", [0, 20, 40, 60])
def test_no_random_problem_is_slow_or_worse_than_libsvm(first):
    for number in range(first, first + 20):
        outcome = measure(make(number, seed=1))
        assert outcome.seconds <= SLOW and outcome.worse <= WORSE, outcome.problem
        assert not outcome.refused or "nu" in outcome.refused


@pytest.mark.sample(3)
@pytest.mark.parametrize("number", [59, 81, 251, 459, 527, 585])
def test_problems_that_were_worse(number):
    """One row times 10⁵, columns of 10⁹ beside 1, powers beyond 10⁴⁰: steps were too short, or lost."""
    outcome = measure(make(number))
    assert outcome.worse <= WORSE and outcome.seconds <= SLOW


@pytest.mark.sample(13)
@pytest.mark.parametrize(
    ("seed", "number"),
    [
        (0, 268),
        (0, 1463),
        (0, 1873),
        (0, 3051),
        (0, 5758),
        (0, 6567),
        (0, 9330),
        *((2, n) for n in (377, 970, 1398, 1531, 1872, 2655)),
    ],
)
def test_points_that_float64_cannot_tell_apart(seed, number):
    """Kernel values from 1 to 10⁹⁰: their rounding hid most of the problem, and the fit ended far above."""
    problem = make(number, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.fit(problem.mercer())  # code is compiled
    outcome = measure(problem)
    assert outcome.worse <= WORSE and outcome.seconds <= 1.0


def test_one_large_row_takes_few_steps():
    X = np.array([[1.0, 2.0], [2.0, 1.0], [3.0, -1.0], [-1.0, 0.5], [0.3, 0.7]])
    X[2] *= 1e10
    y = [0, 1, 0, 1, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        model = SVC(kernel="poly", degree=5).fit(X, y)
        assert model.n_iter_[0] < 1e6 and time.process_time() - start < 2


def test_timestamps_are_learned_from(rng):
    """The column says everything, and is of the size of 10⁹."""
    X = np.column_stack([1.6e9 + rng.uniform(0, 1e7, size=80), rng.normal(size=80)])
    y = (X[:, 0] > np.median(X[:, 0])).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, peer = SVC(kernel="linear").fit(X, y), peers.SVC(kernel="linear", max_iter=10**6).fit(X, y)
    assert model.score(X, y) >= max(0.9, peer.score(X, y) - 0.02)
    assert model.n_iter_[0] < 1e6


@pytest.mark.parametrize("seed", [25, 28, 30, 63])
def test_the_gap_beside_timestamps_is_one_for_true_products(seed):
    """In rational numbers: the objective of the function that is kept is at most so far above another's."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([1.7e9 + rng.uniform(0, 3e7, size=60), rng.normal(size=(60, 2))])
    y = np.where(X[:, 1] > 0, 1, -1)
    with pytest.warns(ConvergenceWarning, match="cannot tell how near the minimum it is"):
        model = SVC(kernel="linear").fit(X, y)
    assert model.report_.stopped == "rounding"
    points, signs = [[Fraction(v) for v in row] for row in X], [int(sign) for sign in y]

    def products(w):
        return [sum(a * b for a, b in zip(w, x, strict=True)) for x in points]

    def objective(w, values, b):
        slacks = (max(Fraction(0), 1 - s * (v + b)) for s, v in zip(signs, values, strict=True))
        return sum(a * a for a in w) / 2 + sum(slacks)

    kept = [Fraction(v) for v in model.coef_[0]]
    mine = objective(kept, products(kept), Fraction(float(model.intercept_[0])))
    parts = list(zip(model.dual_coef_[0], model.support_, strict=True))
    w = [sum(Fraction(c) * points[i][k] for c, i in parts) for k in range(3)]
    values = products(w)
    other = min(objective(w, values, s - v) for s, v in zip(signs, values, strict=True))
    assert mine - other <= model.dual_gap_ <= 0.1 * model.report_.objective


def test_exact_values_agree_with_plain_ones():
    """The arithmetic of the comparison itself, on points of ordinary sizes."""
    seen = set()
    for number in range(300):
        problem = make(number, seed=2)
        kernel = problem.parameters["kernel"]
        if problem.words or (problem.machine, kernel) in seen or len(problem.X) < 5:
            continue
        seen.add((problem.machine, kernel))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = problem.fit(problem.mercer())
        gamma = np.zeros(len(problem.X))
        gamma[model.support_] = model.dual_coef_[0]
        if problem.machine == "NuSVC":
            gamma *= problem.parameters["nu"] * len(gamma) / np.abs(gamma).sum()
        value = gamma @ model.kernel_(problem.X) @ gamma / 2
        sign = np.where(problem.y, 1, -1) if problem.machine == "SVC" else problem.y
        if problem.machine in ("SVC", "SVR", "NuSVR"):
            value -= gamma @ sign
        value += problem.parameters.get("epsilon", 0.0) * np.abs(gamma).sum()
        scale = np.abs(gamma).sum() ** 2 * np.abs(model.kernel_(problem.X)).max() + abs(gamma) @ abs(
            problem.y
        )
        assert dual_value(problem, model) == pytest.approx(value, abs=1e-12 * scale)
    assert len(seen) >= 10


def test_a_model_keeps_no_points_for_the_solver():
    problem = make(1873)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = problem.fit(problem.mercer())
    assert "_exact" not in vars(model)
