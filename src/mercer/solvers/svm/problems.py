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
from typing import Any

import numpy as np

from mercer.errors import InputError
from mercer.solvers.matrix import WritableRows
from mercer.solvers.result import Minimum, Stop
from mercer.solvers.svm.decomposition import QuadraticProgram, Solution, solve
from mercer.solvers.svm.level import Slacks

__all__ = [
    "Machine",
    "Task",
    "c_svc",
    "fit",
    "nu_svc",
    "nu_svr",
    "one_class",
    "outlying",
    "svr",
    "warm",
]

_ROUNDING = 64 * np.finfo(np.float64).eps  # of a value of f, relative to the largest
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
    #: by how much the conditions of optimality are violated at most
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


@dataclass(frozen=True, eq=False)
class Task:
    """A program, and how its solution is read: ``kind`` is the name of the function that made it."""

    kind: str
    program: QuadraticProgram
    points: int
    #: Σ|γ| of each group is fixed at this; nan where the sum of all γ is 0
    total: float = np.nan
    #: what was taken from c: Σγ = 0, so that only b knows
    shift: float = 0.0

    def read(self, solution: Solution) -> Machine:
        """The function that a solution stands for."""
        p = self.program

        def per_point(values: np.ndarray) -> np.ndarray:
            if self.kind in ("c_svc", "one_class"):  # variables are points, in the same order
                return values
            return np.bincount(p.position, values, minlength=self.points)

        coef = per_point(solution.gamma)
        energy = float((coef * solution.values).sum())
        b = float(np.mean(solution.level)) + self.shift
        unit, epsilon, has_margin, drop = 1.0, 0.0, True, 0.0
        if self.kind in ("c_svc", "svr") and p.balanced and solution.stopped != Stop.CONVERGED:
            slacks = Slacks(p.c - solution.values[p.position], p.lo, p.hi)
            move, drop = slacks.better(b - self.shift)
            b += move
        if self.kind == "nu_svr":
            epsilon = (solution.level[0] - solution.level[1]) / 2
        if self.kind == "one_class" and solution.stopped == Stop.CONVERGED:
            # any level of a variable between its bounds will do: with the largest they are all inside
            free = (coef > p.lo) & (coef < p.hi)
            largest = float(np.abs(solution.values).max())
            b = max(b, float((-solution.values[free]).max(initial=-np.inf)) + _ROUNDING * largest)
        if self.kind == "nu_svc":
            least = solution.bound
            unit = np.float64(solution.level[1] - solution.level[0]) / 2
            has_margin = bool(unit > least)
            unit = unit if has_margin else np.float64(least)
            with np.errstate(all="ignore"):
                is_number = 0 < unit < np.inf and np.isfinite(1 / unit) and np.isfinite(energy / unit / unit)
            if not is_number:
                raise InputError(
                    "nu leaves no margin between two classes, or one that is no number: raise nu, rescale "
                    "the data, choose another kernel, or use SVC"
                )
        return Machine(
            coef=coef / unit,
            intercept=b / unit,
            values=(solution.values + b) / unit,
            lo=per_point(p.lo) / unit,
            hi=per_point(p.hi) / unit,
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

    def is_coarse(self, solution: Solution) -> bool:
        """Whether r is of the size of its error."""
        if self.kind != "nu_svc" or solution.stopped != Stop.CONVERGED:
            return False
        return (solution.level[1] - solution.level[0]) / 2 < 10 * solution.violation

    def from_start(self, start: np.ndarray) -> Task:
        """The same task from another γ."""
        return replace(self, program=replace(self.program, start=start))


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
    return Task("c_svc", program, n)


def nu_svc(y: np.ndarray, upper: np.ndarray, nu: float, segments: tuple[int, ...] = (0,)) -> Task:
    """Classes y = ±1; at most a part ν of the weight ``upper`` is inside the margin."""
    plus, minus = np.flatnonzero(y > 0), np.flatnonzero(y <= 0)
    total = float(nu * upper.sum() / 2)
    position = np.concatenate([plus, minus])
    sign = np.repeat([1.0, -1.0], [len(plus), len(minus)])
    start = np.concatenate([_filled(upper[plus], total), -_filled(upper[minus], total)])
    bound = sign * upper[position]
    lo, hi = np.minimum(bound, 0.0), np.maximum(bound, 0.0)
    program = QuadraticProgram(np.zeros(len(y)), lo, hi, start, position, len(plus), segments)
    return Task("nu_svc", program, len(y), total)


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
    return Task("svr", program, n, shift=shift)


def nu_svr(y: np.ndarray, upper: np.ndarray, nu: float) -> Task:
    """Targets y; ε is as large as leaves a part ν of the weight outside the tube."""
    task = svr(y, upper, 0.0)
    total = float(nu * upper.sum() / 2)
    start = _filled(upper, total)
    program = replace(task.program, start=np.concatenate([start, -start]), split=len(y))
    return Task("nu_svr", program, len(y), total, task.shift)


def one_class(upper: np.ndarray, nu: float, order: np.ndarray | None = None) -> Task:
    """A region that holds all but a part ν of the weight ``upper``; the first of ``order`` start outside."""
    n = len(upper)
    total = float(nu * upper.sum())
    order = np.arange(n) if order is None else order
    start = np.zeros(n)
    start[order] = _filled(upper[order], total)
    return Task(
        "one_class", QuadraticProgram(np.zeros(n), np.zeros(n), upper, start, np.arange(n), n), n, total
    )


def outlying(K: WritableRows, weight: np.ndarray) -> np.ndarray:
    """The points, those first whose kernel with others is small: they will be outside, as a rule.

    The others are a sample of evenly spaced points, so that this takes little time.
    """
    sample = np.unique(np.linspace(0, len(weight) - 1, min(len(weight), _SAMPLE)).astype(np.int64))
    return np.argsort(K.combine(sample, weight[sample]), kind="stable")


def _filled(upper: np.ndarray, total: float) -> np.ndarray:
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


def warm(task: Task, gamma: np.ndarray, energy: float) -> Task:
    """The task from the γ of another one, as far as its bounds and sums allow.

    Along sγ the objective is ½s²γᵀKγ - s cᵀγ, with γᵀKγ = ``energy``: the best s is taken. Where signs or
    bounds changed, γ is brought between the new ones, and the sums are repaired. A γ that does not fit at all
    (another number of variables, nothing left of it) is not used.

    >>> old = c_svc(np.array([1.0, -1.0]), np.ones(2))
    >>> warm(old, np.array([0.25, -0.25]), 0.25).program.start
    array([ 0.5, -0.5])
    """
    p = task.program
    gamma = np.asarray(gamma, dtype=np.float64)
    if gamma.shape != p.c.shape or not np.isfinite(gamma).all():
        return task
    if len(gamma) == task.points:
        gamma = gamma[p.position]
    inside = np.clip(gamma, p.lo, p.hi)
    groups = [slice(0, p.split), slice(p.split, len(gamma))]
    if not inside.any():
        return task
    if not np.isnan(task.total) and task.kind != "nu_svr":
        return task.from_start(np.concatenate([_summed(p, inside, g, task.total) for g in groups]))
    if np.isnan(task.total):
        sides = [gamma > 0, gamma < 0]
    else:
        sides = [np.arange(len(gamma)) < p.split, np.arange(len(gamma)) >= p.split]
    rising, falling = gamma > 0, gamma < 0
    room = np.concatenate([p.hi[rising] / gamma[rising], p.lo[falling] / gamma[falling]])
    most = float(room.min())
    if most > 0:  # all signs are right
        gain = float((p.c * gamma).sum())
        if gain <= 0:
            return task  # 0 is better
        inside = np.clip(min(gain / energy if energy > 0 else 1.0, most) * gamma, p.lo, p.hi)
    if not p.balanced:
        return task.from_start(inside)
    sums = [float(np.abs(inside[side]).sum()) for side in sides]
    least = min(*sums, task.total) if task.total > 0 else min(sums)
    if least == 0:
        return task
    for side, total in zip(sides, sums, strict=True):
        inside[side] *= least / total
    if task.total > least:
        # ν-SVR: both variables of some points are raised by the same, which leaves f as it is
        first, second = groups
        both = _filled(
            np.minimum(p.hi[first] - inside[first], inside[second] - p.lo[second]), task.total - least
        )
        inside = np.clip(inside + np.concatenate([both, -both]), p.lo, p.hi)
    return task.from_start(inside)


def _summed(p: QuadraticProgram, gamma: np.ndarray, group: slice, total: float) -> np.ndarray:
    """γ of a group with Σ|γ| = total: scaled, as far as bounds allow; then the rest is raised.

    Variables that are not 0 come first, then those that the task would start with: they can take it all.
    """
    bound = np.maximum(np.abs(p.lo), np.abs(p.hi))[group]
    sign = np.where(p.hi[group] > 0, 1.0, -1.0)
    size, start = np.abs(gamma[group]), np.abs(p.start[group])
    if size.any():
        size = np.minimum(size * (total / size.sum()), bound)
    for top in (np.where(size > 0, bound, 0.0), start):
        room = np.maximum(top - size, 0.0)
        missing, most = total - float(size.sum()), float(room.sum())
        if missing > 0 and most > 0:
            size = np.minimum(size + room * min(1.0, missing / most), bound)
    return sign * size
