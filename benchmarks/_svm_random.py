"""Random, badly scaled problems for benchmarks/svm_random.py, and their dual values in exact arithmetic.

Every float is a whole number times a power of two, so that sums and products of floats are exact in Python's
whole numbers. Linear and polynomial kernels are computed so; values of Gaussian ones, at most 1, in extended
precision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn import svm as peers

import mercer

MACHINES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")
TOL = 1e-3
_STAMP = 1.6e9  # seconds: a time of day in this century


@dataclass(frozen=True, eq=False)
class Problem:
    """Points, targets and the parameters that both libraries get."""

    number: int
    machine: str
    X: np.ndarray  # (n, d)
    y: np.ndarray  # (n,)
    parameters: dict[str, Any]
    words: str  # what was done to the points

    def __str__(self) -> str:
        values = ", ".join(f"{name}={_short(value)}" for name, value in self.parameters.items())
        n, d = self.X.shape
        return f"#{self.number} {self.machine}({values}), {n} × {d}{self.words}"

    def mercer(self) -> Any:
        """Our estimator, not fitted."""
        return getattr(mercer, self.machine)(**self.parameters)

    def peer(self) -> Any:
        """LIBSVM in scikit-learn; a million steps at most, for it may go on for hours."""
        return getattr(peers, self.machine)(**self.parameters, max_iter=1_000_000)

    def fit(self, model: Any) -> Any:
        return model.fit(self.X) if self.machine == "OneClassSVM" else model.fit(self.X, self.y)


def make(number: int, seed: int = 0) -> Problem:
    """Problem ``number`` of a seed."""
    rng = np.random.default_rng([seed, number])
    machine = str(rng.choice(MACHINES))
    n, d = int(np.exp(rng.uniform(np.log(2), np.log(80)))), int(rng.integers(1, 9))
    X = rng.normal(size=(n, d))
    target = X @ rng.normal(size=d) + rng.uniform(0, 2) * rng.normal(size=n)
    X, words = _spoil(X, rng)
    if machine in ("SVR", "NuSVR"):
        y = target * 10 ** rng.uniform(-3, 3) + (rng.uniform() < 0.3) * 10 ** rng.uniform(0, 6)
    else:
        y = _labels(target, rng)
    kernel = str(rng.choice(["linear", "poly", "rbf"]))
    parameters: dict[str, Any] = {"kernel": kernel, "tol": TOL}
    if kernel == "poly":
        parameters |= {"degree": int(rng.integers(2, 6)), "coef0": float(rng.integers(0, 2))}
    if kernel != "linear":
        parameters["gamma"] = _gamma(kernel, rng)
    if machine in ("SVC", "SVR", "NuSVR"):
        parameters["C"] = float(10 ** rng.uniform(-3, 5))
    if machine == "SVR":
        parameters["epsilon"] = float(np.std(y) * 10 ** rng.uniform(-3, 0))
    if machine in ("NuSVC", "NuSVR", "OneClassSVM"):
        most = 2 * min(np.mean(y == 0), np.mean(y == 1)) if machine == "NuSVC" else 1.0
        parameters["nu"] = float(rng.uniform(0.02, 0.98) * most)
    return Problem(number, machine, X, y, parameters, words)


def _gamma(kernel: str, rng: np.random.Generator) -> Any:
    if rng.uniform() < 0.5:
        return "scale"
    return float(10 ** rng.uniform(-3, 3)) if kernel == "rbf" else 1.0


def _labels(target: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Two classes; of one there may be few points, or the labels mean nothing."""
    n = len(target)
    cut = np.sort(target)[int(rng.integers(1, n))] if rng.uniform() < 0.5 else np.median(target)
    y = (target >= cut).astype(int)
    if rng.uniform() < 0.2:
        y = rng.integers(0, 2, n)
    if y.min() == y.max():
        y[0] = 1 - y[0]
    return y


def _spoil(X: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, str]:
    """The points as somebody's table may have them."""
    n, d = X.shape
    words = ""
    if rng.uniform() < 0.35:
        X = X * 10 ** (rng.uniform(-10, 10, size=d) * (rng.uniform(size=d) < 0.5))
        words += ", columns scaled"
    if rng.uniform() < 0.2:
        some = rng.choice(n, size=max(1, n // 10), replace=False)
        X[some] *= 10 ** rng.uniform(-10, 10)
        words += f", {len(some)} rows scaled"
    if rng.uniform() < 0.2:
        X = np.column_stack([X, np.full(n, 10 ** rng.uniform(-2, 10))])
        words += ", a constant column"
    if rng.uniform() < 0.15:
        X = np.column_stack([X, _STAMP + np.floor(rng.uniform(0, 10 ** rng.uniform(1, 8), size=n))])
        words += ", timestamps"
    if rng.uniform() < 0.2:
        X[rng.integers(0, n, size=n // 2)] = X[rng.integers(0, n, size=n // 2)]
        words += ", duplicates"
    if rng.uniform() < 0.1:
        X = np.round(X)
        words += ", whole numbers"
    return X, words


# --- exact values ----------------------------------------------------------------------------------------


def dual_value(problem: Problem, model: Any) -> float:
    """½γᵀKγ - cᵀγ at the coefficients of a fitted model, with Σγ = 0 exactly where that is asked for.

    γ of ν-SVC is scaled back to Σ|γ| = νn: both libraries divide by the margin they found.
    """
    n = len(problem.X)
    gamma = np.zeros(n)
    gamma[model.support_] = np.asarray(model.dual_coef_).reshape(-1)
    total = float(np.abs(gamma).sum())
    if problem.machine == "NuSVC" and total > 0:
        gamma *= problem.parameters["nu"] * n / total
    exact = [Fraction(value) for value in gamma.tolist()]
    if problem.machine != "OneClassSVM":  # what breaks Σγ = 0 is put right where it does least
        smallest = int(np.square(problem.X - problem.X.mean(axis=0)).sum(axis=1).argmin())
        exact[smallest] -= sum(exact, Fraction(0))
    value = _energy(problem, model, exact) / 2
    y = problem.y
    if problem.machine == "SVC":
        value -= sum((g if label else -g for g, label in zip(exact, y, strict=True)), Fraction(0))
    if problem.machine in ("SVR", "NuSVR"):
        value -= sum((g * Fraction(t) for g, t in zip(exact, y.tolist(), strict=True)), Fraction(0))
    if problem.machine == "SVR":
        value += Fraction(problem.parameters["epsilon"]) * sum(map(abs, exact), Fraction(0))
    return float(value)


def _energy(problem: Problem, model: Any, gamma: list[Fraction]) -> Fraction:
    """γᵀKγ."""
    kernel = problem.parameters["kernel"]
    scale = Fraction(float(model._gamma)) if kernel != "linear" else Fraction(1)
    some = [i for i, value in enumerate(gamma) if value]
    if not some:
        return Fraction(0)
    if kernel == "rbf":
        long = problem.X[some].astype(np.longdouble)
        distance = ((long[:, None] - long) ** 2).sum(axis=2)
        K = np.exp(-np.longdouble(float(scale)) * distance)
        g = np.array([_long(gamma[i]) for i in some])
        return Fraction(*(g @ K @ g).as_integer_ratio())
    # whole numbers: x = X 2⁻ᵃ, γ = G 2⁻ᵇ
    X, a = _whole([[Fraction(v) for v in row] for row in problem.X[some].tolist()])
    G, b = _whole([[gamma[i] for i in some]])
    products = X @ X.T  # 2²ᵃ ⟨x, x'⟩
    if kernel == "linear":
        return Fraction(int((G @ products @ G.T)[0, 0]), a * a * b * b)
    p = problem.parameters["degree"]
    unit = a * a * scale.denominator
    inner = products * scale.numerator + int(problem.parameters["coef0"]) * unit
    return Fraction(int((G @ inner**p @ G.T)[0, 0]), unit**p * b * b)


def _whole(rows: list[list[Fraction]]) -> tuple[np.ndarray, int]:
    """Whole numbers, and what they are to be divided by."""
    by = 1
    for row in rows:
        for value in row:
            by = math.lcm(by, value.denominator)

    whole = np.empty((len(rows), len(rows[0])), object)
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            whole[i, j] = int(value * by)
    return whole, by


def _long(value: Fraction) -> np.longdouble:
    high = float(value)
    return np.longdouble(high) + np.longdouble(float(value - Fraction(high)))


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else repr(value)
