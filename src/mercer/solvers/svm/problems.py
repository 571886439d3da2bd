r"""Support vector machines as quadratic programs for ``decomposition``, and their solutions as functions.

With γᵢ = yᵢαᵢ, f = Σ γᵢ k(xᵢ, ·) + b and uppers Cᵢ (C times the weight of point i), the problems are

    C-SVC      min ½‖f‖² + Σ Cᵢ ξᵢ             yᵢ f(xᵢ) ≥ 1 - ξᵢ
    ν-SVC      min ½‖f‖² - νWr + Σ wᵢ ξᵢ       yᵢ f(xᵢ) ≥ r - ξᵢ;  f/r is what is returned
    ε-SVR      min ½‖f‖² + Σ Cᵢ ξᵢ             |yᵢ - f(xᵢ)| ≤ ε + ξᵢ
    ν-SVR      min ½‖f‖² + νΣCᵢ ε + Σ Cᵢ ξᵢ    the same, and ε is found
    one class  min ½‖f‖² - νWρ + Σ wᵢ ξᵢ       Σγ k(xᵢ, ·) ≥ ρ - ξᵢ,  b = -ρ

with ξ ≥ 0 and W = Σw. Their duals have the form of `QuadraticProgram`: ν sets the sum of γ in one or
two groups, b and ε (or r) come from the groups' levels. Scalings are LIBSVM's. C-SVC and ε-SVR may do without
b: then no sum of γ is fixed.

The hard margin, C = ∞, is in ``hard_margin``.

Cortes and Vapnik, Support-vector networks, Machine Learning 20 (1995), 273-297; Schölkopf, Smola, Williamson
and Bartlett, New support vector algorithms, Neural Computation 12 (2000), 1207-1245; Schölkopf, Platt,
Shawe-Taylor, Smola and Williamson, Estimating the support of a high-dimensional distribution, Neural
Computation 13 (2001), 1443-1471; Chang and Lin, LIBSVM: a library for support vector machines, ACM TIST 2
(2011), 27: scalings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from mercer.errors import InputError
from mercer.solvers.matrix import WritableRows
from mercer.solvers.result import Minimum, Stop
from mercer.solvers.svm.decomposition import QuadraticProgram, Solution, solve
from mercer.solvers.svm.level import Slacks

_ROUNDING = 64 * np.finfo(np.float64).eps  # the error of a value of f, relative to the largest
_EACH = 8  # units in the last place that a kernel value may be wrong by, where nobody says
_FINER = 8  # times that the tolerance of a small margin is divided by ten
_SAMPLE = 256  # points that outlying ones are told by


@dataclass(frozen=True, eq=False, kw_only=True)
class Machine(Minimum):
    """f = Σ coefᵢ k(xᵢ, ·) + intercept over the points of a task, and how well it was found."""

    coef: np.ndarray  # (points,)
    intercept: float
    #: (points,) f at the points
    values: np.ndarray
    #: (points,) bounds of coef
    lo: np.ndarray
    hi: np.ndarray
    #: ‖f‖², without the intercept; negative where K is not positive semi-definite
    square: float
    #: the largest violation of the conditions of optimality
    violation: float
    #: γ, for the next start, by point where each has one variable; and its γᵀKγ
    gamma: np.ndarray
    energy: float
    #: ν-SVR: the ε that was found
    epsilon: float = 0.0
    #: ν-SVC: False where r is not larger than its error, and f is of no use
    has_margin: bool = True
    #: the part of ``violation`` that stands for the rounding of K; and what that may do to γᵀKγ
    noise: float = 0.0
    blur: float = 0.0


class Levels(NamedTuple):
    """What the levels of a solution say."""

    b: float
    #: f and b are divided by it
    unit: float = 1.0
    epsilon: float = 0.0
    has_margin: bool = True
    #: what b takes off the objective, and off the gap
    drop: float = 0.0


@dataclass(frozen=True, eq=False)
class Task:
    """The dual of a problem, and how its solution is read; each of the five problems is a class."""

    program: QuadraticProgram
    points: int
    #: Σ|γ| of each group is fixed at this; nan where the sum of all γ is 0
    total: float = np.nan
    #: what was taken from c: Σγ = 0, so that only b knows
    shift: float = 0.0

    #: whether variable i is that of point i
    is_by_point: ClassVar[bool] = False
    #: what is said where C = ∞ has no solution
    inseparable: ClassVar[str] = ""

    def levels(self, solution: Solution, coef: np.ndarray, energy: float) -> Levels:
        """b, and what else the levels of the groups determine."""
        return Levels(float(np.mean(solution.level)) + self.shift)

    def read(self, solution: Solution) -> Machine:
        """The function that a solution stands for."""
        p, coef = self.program, self._per_point(solution.gamma)
        energy = float((coef * solution.values).sum())
        b, unit, epsilon, has_margin, drop = self.levels(solution, coef, energy)
        return Machine(
            coef=coef / unit,
            intercept=b / unit,
            values=(solution.values + b) / unit,
            lo=self._per_point(p.lo) / unit,
            hi=self._per_point(p.hi) / unit,
            square=float(energy / unit / unit),
            objective=solution.gap - solution.objective - drop,
            gap=solution.gap - drop if drop <= solution.gap else solution.gap,
            violation=solution.bound,
            iterations=solution.iterations,
            stopped=Stop.ROUNDING if solution.stopped == Stop.UNBOUNDED else solution.stopped,
            gamma=coef if len(p.c) == self.points else solution.gamma,
            energy=energy,
            epsilon=epsilon,
            has_margin=has_margin,
            noise=solution.bound - solution.violation,
            blur=solution.blur,
        )

    def _per_point(self, values: np.ndarray) -> np.ndarray:
        """Sums over the variables of each point."""
        return (
            values if self.is_by_point else np.bincount(self.program.position, values, minlength=self.points)
        )

    def is_coarse(self, solution: Solution) -> bool:
        """Whether the tolerance is too large for what the levels determine."""
        return False

    def without_bounds(self, machine: Machine) -> Machine:
        """The machine as the solution for C = ∞."""
        inf = np.full(self.points, np.inf)
        lo, hi = np.where(machine.lo < 0, -inf, 0.0), np.where(machine.hi > 0, inf, 0.0)
        return replace(machine, lo=lo, hi=hi)

    def from_start(self, start: np.ndarray) -> Self:
        """The same task from another γ."""
        return replace(self, program=replace(self.program, start=start))


class _Penalised(Task):
    """Problems in which C is the price of a slack, C-SVC and ε-SVR."""

    def levels(self, solution: Solution, coef: np.ndarray, energy: float) -> Levels:
        p, (b, *_) = self.program, super().levels(solution, coef, energy)
        if not p.balanced or solution.stopped == Stop.CONVERGED:
            return Levels(b)
        slacks = Slacks(p.c - solution.values[p.position], p.lo, p.hi)
        move, drop = slacks.better(b - self.shift)
        return Levels(b + move, drop=drop)


class _PenalisedClasses(_Penalised):
    is_by_point = True
    inseparable = "the classes are not separable"

    def without_bounds(self, machine: Machine) -> Machine:
        """The machine as the solution for C = ∞: the gap is one between feasible points of that problem."""
        unbounded = super().without_bounds(machine)
        if not machine.energy > 0:
            return unbounded
        # With the best b, f/m has no slack, where 2m is the distance of the classes' values; without b, m is
        # the least y f(x).
        p = self.program
        least, most = machine.values[p.c > 0].min(), machine.values[p.c <= 0].max()
        m = ((least - most) / 2 if p.balanced else min(least, -most)) - machine.noise / 2
        objective = (machine.square + machine.blur) / (2 * m**2) if m > 0 else np.inf
        gain = float((p.c * machine.gamma).sum())
        gap = max(objective - gain**2 / (2 * (machine.energy + machine.blur)), 0.0)
        return replace(unbounded, objective=objective, gap=gap)


class _PenalisedTargets(_Penalised):
    inseparable = "no function comes within epsilon of all targets"


class ClassesWithPart(Task):
    """ν-SVC: the two levels are r + b and r - b."""

    def levels(self, solution: Solution, coef: np.ndarray, energy: float) -> Levels:
        b, least = super().levels(solution, coef, energy).b, solution.bound
        margin = np.float64(_half(solution))
        unit = margin if margin > least else np.float64(least)
        with np.errstate(all="ignore"):
            is_number = 0 < unit < np.inf and np.isfinite(1 / unit) and np.isfinite(energy / unit / unit)
        if not is_number:
            raise InputError(
                "nu leaves no margin between two classes, or one that is no number: raise nu, rescale "
                "the data, choose another kernel, or use SVC"
            )
        return Levels(b, unit, has_margin=bool(margin > least))

    def is_coarse(self, solution: Solution) -> bool:
        """Whether r is of the size of its error."""
        return solution.stopped == Stop.CONVERGED and _half(solution) < 10 * solution.violation


class _TargetsWithPart(Task):
    """ν-SVR: the two levels are b + ε and b - ε."""

    def levels(self, solution: Solution, coef: np.ndarray, energy: float) -> Levels:
        upper, lower = solution.level
        return super().levels(solution, coef, energy)._replace(epsilon=(upper - lower) / 2)


class OneClass(Task):
    """The region of one class: b is minus the level."""

    is_by_point = True

    def levels(self, solution: Solution, coef: np.ndarray, energy: float) -> Levels:
        b = super().levels(solution, coef, energy).b
        if solution.stopped != Stop.CONVERGED:
            return Levels(b)
        # Any level of a variable between its bounds will do; with the largest they are all inside.
        free = (coef > self.program.lo) & (coef < self.program.hi)
        largest = float(np.abs(solution.values).max())
        return Levels(max(b, float((-solution.values[free]).max(initial=-np.inf)) + _ROUNDING * largest))


def _half(solution: Solution) -> float:
    """Half of what the level of the second group is above that of the first."""
    return (solution.level[1] - solution.level[0]) / 2


# --- the five problems -------------------------------------------------------------------------------


def c_svc(y: np.ndarray, upper: np.ndarray, segments: tuple[int, ...] = (0,), intercept: bool = True) -> Task:
    """Classes y = ±1, slacks paid for at the rate of ``upper``; without an ``intercept`` b = 0.

    Two points, one unit on either side of 0: f(x) = x.

    >>> from mercer import Gram, Linear
    >>> task = c_svc(np.array([1.0, -1.0]), np.full(2, 10.0))
    >>> [machine] = fit(Gram(Linear(), [[1.0], [-1.0]]), [task])
    >>> machine.coef, machine.intercept, machine.square
    (array([ 0.5, -0.5]), 0.0, 1.0)
    """
    n = len(y)
    lo, hi = np.where(y > 0, 0.0, -upper), np.where(y > 0, upper, 0.0)
    program = QuadraticProgram(
        y.astype(np.float64), lo, hi, np.zeros(n), np.arange(n), n, segments, intercept
    )
    return _PenalisedClasses(program, n)


def nu_svc(y: np.ndarray, upper: np.ndarray, nu: float, segments: tuple[int, ...] = (0,)) -> Task:
    """Classes y = ±1; at most a part ν of the weight ``upper`` is inside the margin."""
    plus, minus = np.flatnonzero(y > 0), np.flatnonzero(y <= 0)
    total = float(nu * upper.sum() / 2)
    position = np.concatenate([plus, minus])
    sign = np.repeat([1.0, -1.0], [len(plus), len(minus)])
    start = np.concatenate([filled(upper[plus], total), -filled(upper[minus], total)])
    bound = sign * upper[position]
    lo, hi = np.minimum(bound, 0.0), np.maximum(bound, 0.0)
    program = QuadraticProgram(np.zeros(len(y)), lo, hi, start, position, len(plus), segments)
    return ClassesWithPart(program, len(y), total)


def svr(y: np.ndarray, upper: np.ndarray, epsilon: float, intercept: bool = True) -> Task:
    """Targets y; errors below ε are free, others paid for at the rate of ``upper``."""
    n = len(y)
    shift = float(np.median(y)) if intercept else 0.0  # slopes far from 0 would lose digits
    y = y - shift
    zero = np.zeros(n)
    program = QuadraticProgram(
        np.concatenate([y - epsilon, y + epsilon]),
        np.concatenate([zero, -upper]),
        np.concatenate([upper, zero]),
        np.zeros(2 * n),
        np.tile(np.arange(n), 2),
        2 * n,
        balanced=intercept,
    )
    return _PenalisedTargets(program, n, shift=shift)


def nu_svr(y: np.ndarray, upper: np.ndarray, nu: float) -> Task:
    """Targets y; ε is as large as leaves a part ν of the weight outside the tube."""
    task = svr(y, upper, 0.0)
    total = float(nu * upper.sum() / 2)
    start = filled(upper, total)
    program = replace(task.program, start=np.concatenate([start, -start]), split=len(y))
    return _TargetsWithPart(program, len(y), total, task.shift)


def one_class(upper: np.ndarray, nu: float, order: np.ndarray | None = None) -> Task:
    """A region that holds all but a part ν of the weight ``upper``; the first of ``order`` start outside."""
    n = len(upper)
    total = float(nu * upper.sum())
    order = np.arange(n) if order is None else order
    start = np.zeros(n)
    start[order] = filled(upper[order], total)
    program = QuadraticProgram(np.zeros(n), np.zeros(n), upper, start, np.arange(n), n)
    return OneClass(program, n, total)


def outlying(K: WritableRows, weight: np.ndarray) -> np.ndarray:
    """The points, those first whose kernel with others is small: they will be outside, as a rule.

    The others are a sample of evenly spaced points, so that this takes little time.
    """
    sample = np.unique(np.linspace(0, len(weight) - 1, min(len(weight), _SAMPLE)).astype(np.int64))
    return np.argsort(K.combine(sample, weight[sample]), kind="stable")


def filled(upper: np.ndarray, total: float) -> np.ndarray:
    """γ with a given sum: the first points at their bounds, as in LIBSVM."""
    before = np.cumsum(upper) - upper
    filled = np.clip(total - before, 0.0, upper)
    return np.where(filled > 1e-12 * upper, filled, 0.0)  # ν n may be a whole number but for rounding


# --- solving -------------------------------------------------------------------------------------------


def fit(K: WritableRows, tasks: list[Task], **options: Any) -> list[Machine]:
    """Solve tasks that share the rows of K; ``options`` are those of ``decomposition.solve``.

    The margin r of a ν-SVC may be smaller than ``tol``, which is in units of r f: then ``tol`` is lowered.
    A solution whose slopes are not known to within ``tol`` was ended by rounding, however small the violation
    that is seen.
    """
    options = {"rounding": _EACH * float(np.finfo(K.dtype).eps), **options}
    solutions = solve(K, [task.program for task in tasks], **options)
    tol, control = options.get("tol", 1e-3), options.get("control")
    for digit in range(1, _FINER + 1):
        coarse = [i for i, task in enumerate(tasks) if task.is_coarse(solutions[i])]
        if not coarse or options.get("max_iter", -1) >= 0:
            break
        programs = [replace(tasks[i].program, start=solutions[i].gamma) for i in coarse]
        finer = {"tol": tol / 10**digit, "max_iter": 10_000 + 100 * K.shape[0]}
        finer["control"] = None if control is None else control.inner()
        for i, found in zip(coarse, solve(K, programs, **{**options, **finer}), strict=True):
            is_enough = found.violation <= tol and found.stopped != Stop.UNBOUNDED
            stopped = Stop.CONVERGED if is_enough else found.stopped
            solutions[i] = replace(
                found, iterations=solutions[i].iterations + found.iterations, stopped=stopped
            )
    for i, solution in enumerate(solutions):
        if solution.stopped == Stop.CONVERGED and solution.bound - solution.violation > tol:
            solutions[i] = replace(solution, stopped=Stop.ROUNDING)
    return [task.read(solution) for task, solution in zip(tasks, solutions, strict=True)]
