"""The stated gap is never below the true one, nor the bound below the way to the minimum without landmarks.

No minimum has to be known for that: every function g is a witness, as J - gap ≤ min J ≤ J(g). Witnesses are
what the exact solvers find on K = ΦΦᵀ, and on all points; their objectives, and that of the function itself,
are computed here in extended precision from the formulas of kernels and losses.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mercer import Gaussian, KernelMachineRegressor, KernelRidge, KernelRidgeCV, Linear, Polynomial, config
from mercer.errors import InputError
from mercer.estimators.shared.landmarks import Restricted
from mercer.losses import as_loss
from mercer.solvers.landmarks.multipliers import restricted_risk
from mercer.solvers.landmarks.newton import restricted_newton
from mercer.solvers.landmarks.path import RestrictedPath
from mercer.solvers.landmarks.ridge import restricted_ridge
from mercer.solvers.risk.logistic import SoftmaxRisk
from mercer.solvers.risk.multipliers import regularised_risk
from mercer.solvers.risk.newton import newton

Long = np.longdouble

KERNELS = [
    (Gaussian(1.0), lambda X, Z: np.exp(-((X[:, None] - Z[None]) ** 2).sum(axis=2) / 2)),
    (Linear(), lambda X, Z: X @ Z.T),
    (Polynomial(3), lambda X, Z: (X @ Z.T + 1) ** 3),
]
LOSSES = {
    "hinge": lambda y, f: np.maximum(0, 1 - y * f),
    "squared_hinge": lambda y, f: np.maximum(0, 1 - y * f) ** 2,
    "logistic": lambda y, f: np.logaddexp(0, -y * f),
    "squared": lambda y, f: (y - f) ** 2,
    "absolute": lambda y, f: abs(y - f),
    "quantile": lambda y, f: np.where(y > f, Long(0.9) * (y - f), Long(0.1) * (f - y)),
    "epsilon_insensitive": lambda y, f: np.maximum(0, abs(y - f) - Long(0.1)),
    "squared_epsilon_insensitive": lambda y, f: np.maximum(0, abs(y - f) - Long(0.1)) ** 2,
}
MARGINS = ("hinge", "squared_hinge", "logistic")


@dataclass
class Problem:
    """Anything that a user may bring: duplicates, columns of all sizes, zero weights, one point, M > n."""

    kernel: Any
    formula: Any
    name: str
    X: np.ndarray
    Z: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    penalty: float
    fit_intercept: bool

    @classmethod
    def draw(cls, seed):
        rng = np.random.default_rng(seed)
        n, d = int(rng.choice([2, 3, 10, 40, 80])), int(rng.integers(1, 5))
        X = rng.normal(size=(n, d)) * 10 ** rng.uniform(-2, 1.5, size=d if rng.random() < 0.5 else 1)
        X += 100.0 * (rng.random() < 0.2)
        X = X[rng.integers(0, n, n)] if rng.random() < 0.3 else X
        X = X.astype(np.float32).astype(np.float64)  # the same points in both precisions
        M = int(rng.integers(1, 21))
        Z = X[rng.integers(0, n, M)] if rng.random() < 0.5 else X[rng.permutation(n)[:M]]
        name = sorted(LOSSES)[seed % len(LOSSES)]
        y = rng.normal(size=n) * 10 ** rng.uniform(-3, 3)
        if name in MARGINS:
            y = rng.choice([-1.0, 1.0], n)
            y[:2] = 1.0, -1.0
        weight = rng.choice([0.0, 1.0, 2.0, 0.5], n) if rng.random() < 0.4 else np.ones(n)
        weight[:2] = 1.0
        kernel, formula = KERNELS[rng.choice(3, p=[0.6, 0.2, 0.2])]
        return cls(kernel, formula, name, X, Z, y, weight, 10 ** rng.uniform(-8, 4), rng.random() < 0.6)

    @property
    def loss(self):
        return as_loss(self.name, epsilon=0.1, quantile=0.9)

    def K(self, X, Z):
        return self.formula(X.astype(Long), Z.astype(Long))

    def objective(self, Z, coef, b):
        coef = coef.astype(Long)
        F = self.K(self.X, Z) @ coef + Long(b)
        risk = (self.weight * LOSSES[self.name](self.y.astype(Long), F)).sum()
        return risk + Long(self.penalty) / 2 * (coef @ self.K(Z, Z) @ coef)

    def witnesses(self, restricted):
        """J of the best functions that another solver finds: on the landmarks, and on all points."""
        options = {"fit_intercept": self.fit_intercept, "tol": 1e-9}
        given = (self.loss, self.y, self.weight, self.penalty)
        Z, T = restricted.points, restricted.features.basis.T
        Phi = np.linalg.solve(T.T, self.K(self.X, Z).astype(np.float64).T).T
        on, out = np.inf, np.inf
        try:
            found = regularised_risk(Phi @ Phi.T, *given, **options)
            on = self.objective(Z, np.linalg.solve(T, Phi.T @ found.coef), found.intercept)
            found = regularised_risk(self.K(self.X, self.X).astype(np.float64), *given, **options)
            out = self.objective(self.X, found.coef, found.intercept)
        except InputError:  # Numbers that the exact solvers refuse witness nothing.
            pass
        return on, min(on, out)


@pytest.mark.sample(25)
@pytest.mark.parametrize("seed", range(200))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_true_gap_lies_below_the_stated_one(seed):
    problem = Problem.draw(seed)
    restricted = Restricted(problem.kernel, problem.X, problem.Z, problem.fit_intercept)
    given = (problem.loss, problem.y, problem.weight, problem.penalty)
    trace = float(problem.weight @ restricted.diagonal)
    result = restricted_risk(restricted.features, *given, accuracy=restricted.accuracy, trace=trace)
    J = problem.objective(restricted.points, result.coef[:, 0], result.intercept[0])
    on, out = problem.witnesses(restricted)
    bound = restricted.bound(result, problem.penalty)
    # The sum of J itself has a rounding of its own, of n terms.
    rounding = 1e-13 * abs(J) + 1e-200
    for value in (J, result.objective):
        assert value - result.gap <= on + rounding
        assert value - bound <= out + rounding
    assert 0 <= result.gap <= bound


@pytest.mark.sample(16)
@pytest.mark.parametrize("seed", range(200, 260))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_in_float32_too(seed):
    """There errors count as if they were independent, one unit for each value: one more is allowed for."""
    problem = Problem.draw(seed)
    given = (problem.loss, problem.y, problem.weight, problem.penalty)
    with config(dtype="float32"):
        restricted = Restricted(problem.kernel, problem.X, problem.Z, problem.fit_intercept)
        trace = float(problem.weight @ restricted.diagonal)
        result = restricted_risk(restricted.features, *given, accuracy=restricted.accuracy, trace=trace)
        bound = restricted.bound(result, problem.penalty)
    J = problem.objective(restricted.points, result.coef[:, 0], result.intercept[0])
    on, out = problem.witnesses(restricted)
    e = restricted.accuracy.of_values(result.coef, result.intercept)[0]
    unit = e * float(np.abs(result.dual).sum()) + 1e-13 * abs(J)
    for value in (J, result.objective):
        assert value - result.gap <= on + unit
        assert value - bound <= out + unit
    assert np.isfinite(result.coef).all() and np.isfinite(result.gap)


@pytest.mark.sample(23)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("seed", range(405, 1205, 8))  # whose loss is the squared one
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_of_ridge_with_two_targets(seed, dtype):
    problem = Problem.draw(seed)
    assert problem.name == "squared"
    both = [problem, replace(problem, y=problem.y[::-1] ** 2)]
    with config(dtype=dtype):
        restricted = Restricted(problem.kernel, problem.X, problem.Z, problem.fit_intercept)
        Y = np.column_stack([one.y for one in both])
        options = {"accuracy": restricted.accuracy, "tol": 10.0 ** (-1 - seed % 9), "max_iter": seed % 40}
        path = RestrictedPath(restricted.features, Y, problem.weight)
        results = [
            restricted_ridge(restricted.features, Y, problem.penalty / 2, problem.weight, **options),
            path.certified(problem.penalty / 2, restricted.accuracy),
        ]
        bounds = [restricted.bound(result, problem.penalty) for result in results]
    on, out = np.sum([one.witnesses(restricted) for one in both], axis=0)
    for result, bound in zip(results, bounds, strict=True):
        found = zip(both, result.coef.T, result.intercept, strict=True)
        J = sum(one.objective(restricted.points, coef, b) for one, coef, b in found)
        for value in (J, result.objective):
            assert value - result.gap <= on + 1e-13 * abs(J)
            assert value - bound <= out + 1e-13 * abs(J)


def test_ridge_cv_says_how_far_it_is(rng):
    """The eigenvalues leave rounding alone of the gap; with all points as landmarks, of the bound too."""
    X = rng.normal(size=(120, 2))
    t = np.sin(2 * X[:, 0]) + 5.0
    given = {"kernel": [Gaussian(1.0), Gaussian(2.0)], "alphas": [0.01, 0.1]}
    for landmarks, is_all in ((X[:20], False), (X, True)):
        model = KernelRidgeCV(**given, landmarks=landmarks).fit(X, t)
        report = model.report_
        assert 0 <= report.gap <= 1e-9 * report.objective and report.gap <= report.bound
        assert (report.bound <= 1e-4 * report.objective) == is_all  # dependent points are left out
        alone = KernelRidge(kernel=model.kernel_, alpha=model.alpha_, landmarks=landmarks).fit(X, t).report_
        assert report.objective == pytest.approx(alone.objective, abs=report.gap + alone.gap)
    each = KernelRidgeCV(**given, landmarks=X[:20], alpha_per_target=True)
    each.fit(X, np.column_stack([t, rng.normal(size=120)]))
    assert (each.report_.gap is None) == (np.ptp(each.alpha_) > 0)


@pytest.mark.sample(41)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("seed", range(100))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_of_several_classes(seed, dtype):
    """Σᵢ wᵢ (log Σ_c exp F_ic - F_iy) + (λ/2) Σ_c ‖f_c‖²."""
    problem = Problem.draw(seed)
    n = len(problem.y)
    classes = min(n, 3)
    codes = np.random.default_rng(seed).integers(0, classes, n)
    # Of a class that has no weight, b would go to -∞, and no function has the smallest objective.
    codes[:classes], problem.weight[:classes] = np.arange(classes), 1.0
    risk = SoftmaxRisk(codes, classes, problem.weight)
    with config(dtype=dtype):
        restricted = Restricted(problem.kernel, problem.X, problem.Z, problem.fit_intercept)
        options = {"accuracy": restricted.accuracy, "tol": 1e-6, "max_iter": 1 + seed % 30}
        result = restricted_newton(restricted.features, risk, problem.penalty, n_functions=classes, **options)

    def objective(coef, b):
        coef = coef.astype(Long)
        F = problem.K(problem.X, restricted.points) @ coef + b.astype(Long)
        top = F.max(axis=1)
        losses = top + np.log(np.exp(F - top[:, None]).sum(axis=1)) - F[np.arange(len(F)), codes]
        square = (coef * (problem.K(restricted.points, restricted.points) @ coef)).sum()
        return (problem.weight * losses).sum() + Long(problem.penalty) / 2 * square

    T = restricted.features.basis.T
    Phi = np.linalg.solve(T.T, problem.K(problem.X, restricted.points).astype(np.float64).T).T
    J, on = objective(result.coef, result.intercept), np.inf
    try:
        best = newton(
            Phi @ Phi.T,
            risk,
            problem.penalty,
            n_functions=classes,
            fit_intercept=problem.fit_intercept,
            tol=1e-9,
        )
        on = objective(np.linalg.solve(T, Phi.T @ best.coef), best.intercept)
    except InputError:  # Numbers that the exact solvers refuse witness nothing.
        pass
    for value in (J, result.objective):
        assert value - result.gap <= on + 1e-13 * abs(J) + 1e-100


def _fractions(x, y, alpha):
    """The problem with k(x, 1) = x, and min over β of Σ (yᵢ - xᵢβ)² + αβ² = Σ yᵢ² - (Σ xᵢyᵢ)²/(Σ xᵢ² + α)."""
    inner = sum(a * b for a, b in zip(x, y, strict=True))
    least = sum(b * b for b in y) - inner**2 / (sum(a * a for a in x) + alpha)
    restricted = Restricted(Linear(), np.array([[float(a)] for a in x]), np.array([[1.0]]), False)
    return restricted, np.array([[float(b)] for b in y]), float(least)


def test_ridge_on_one_landmark_against_fractions():
    alpha = Fraction(1, 8)
    restricted, Y, least = _fractions(
        [Fraction(1, 2), Fraction(3), Fraction(-5, 4)], [Fraction(1), Fraction(2), Fraction(7)], alpha
    )
    options = {"accuracy": restricted.accuracy, "max_iter": 1, "tol": 1e-14}
    result = restricted_ridge(restricted.features, Y, float(alpha), np.ones(3), **options)
    assert least == pytest.approx(result.objective, rel=1e-14)
    assert result.objective - least <= result.gap <= 1e-12 * least


@pytest.mark.parametrize("place", [0, 10**6, 10**9])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_targets_far_from_zero_against_fractions(count, place):
    """Their own digits end at 1e-16 of the place: b is rounded there, and the gap has that in it."""
    rng = np.random.default_rng(count)
    x, y = rng.integers(-8, 9, count) / 8, place + rng.integers(-99, 100, count) / 64
    model = KernelRidge(kernel=Linear(), alpha=0.125, landmarks=[[1.0]]).fit(x[:, None], y)
    beta, b = Fraction(model.expansion_.coef[0]), Fraction(float(model.expansion_.intercept))
    p, q = [Fraction(value) for value in x], [Fraction(value) for value in y]
    alpha = Fraction(1, 8)
    J = sum((v - u * beta - b) ** 2 for u, v in zip(p, q, strict=True)) + alpha * beta**2
    p, q = [u - sum(p) / count for u in p], [v - sum(q) / count for v in q]
    inner = sum(u * v for u, v in zip(p, q, strict=True))
    least = sum(v * v for v in q) - inner**2 / (sum(u * u for u in p) + alpha)
    for value in (J, Fraction(model.report_.objective)):
        assert value - least <= Fraction(model.report_.gap) <= Fraction(model.report_.bound)
    # Σ |sᵢ| ≤ 2 √(n J) times the rounding of b, and that squared.
    rounding = 1e-15 * max(place, 1)
    assert (
        model.report_.gap <= 1e-9 * least + 4 * rounding * np.sqrt(count * float(least)) + (9 * rounding) ** 2
    )


@pytest.mark.sample(18)
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("loss", ["squared", "huber", "absolute"])
@pytest.mark.parametrize("place", [0.0, 1 / 3, 1e6])
def test_a_function_through_every_target_is_no_failure(rng, loss, place):
    """All that is left is the rounding of b: the gap says so, and nobody is warned."""
    X, y = rng.normal(size=(50, 2)), np.full(50, place)
    model = KernelMachineRegressor(Gaussian(1.0), loss=loss, landmarks=5).fit(X, y)
    assert model.report_.stopped == "converged"
    assert model.report_.gap <= 50 * 1e-15 * place
    model = KernelRidge(kernel=Gaussian(1.0), landmarks=5).fit(X, y)
    assert model.report_.stopped == "converged" and model.predict(X) == pytest.approx(y, rel=1e-15)


def test_a_run_that_is_cut_short_says_how_far_it_is():
    """It starts from 12 of 60 rows, and the minimum is not theirs: the gap says so, and is near the truth."""
    x, y = [Fraction(i, 7) for i in range(1, 61)], [Fraction(i * i % 11) for i in range(60)]
    restricted, Y, least = _fractions(x, y, Fraction(1, 8))
    far = restricted_ridge(restricted.features, Y, 1 / 8, np.ones(60), max_iter=0)
    true = far.objective - least
    assert far.stopped == "max_iter" and 1e-6 * least < true <= far.gap
    # All is in one direction: 12 rows of 60 have a fifth of the curvature, more or less. ‖∇J‖²/2λ, of which
    # nothing is known but λ, would be Σ xᵢ² / α = 12,000 times the truth.
    assert far.gap < 20 * true
