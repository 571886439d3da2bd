r"""What a fit will do, and what it did: ``estimator.plan(X)`` before, ``estimator.report_`` after."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from enum import StrEnum, auto
from math import isnan
from typing import Any, Final

import numpy as np

from mercer.errors import MemoryBudgetError, warn_user
from mercer.notebook import Shown
from mercer.runtime.clock import now
from mercer.runtime.config import format_bytes, memory_budget, settings, thread_count
from mercer.solvers.result import Stop

#: Additions and multiplications per second and thread of a matrix product, about: for estimates of time only.
RATE = {"float64": 4e10, "float32": 8e10}
#: The same number for a device.
_DEVICE_RATE = 4e13
#: A part of k(x, x) that is less than this may be the rounding of some hundred differences.
_ROUNDING = 1e-12
_UNCOMPILED = (
    "NUMBA_DISABLE_JIT=1 forbids compiled code: NumPy and plain Python do its work, a hundred times slower"
)


class Method(StrEnum):
    """What is done with K; a plan has it beside the words for it."""

    CHOLESKY = auto()
    #: a factor in float32, refined by conjugate gradients
    MIXED = auto()
    EIGENVALUES = auto()
    #: products with a K that is stored
    CONJUGATE = auto()
    #: products with a K that is computed anew for each of them
    LAZY = auto()
    #: products with the values of K that are not zero, which are stored
    SPARSE = auto()
    #: blocks of points, one after the other, with a K that is computed anew for each of them
    BLOCKS = auto()
    #: a system of the kernel's features, not of the points
    PRIMAL = auto()
    #: passes over K(X, Z), f being restricted to landmarks Z
    LANDMARKS = auto()


#: how a solver that iterates does it, in words
HOW: Final = {
    Method.CHOLESKY: "by Cholesky factorisations",
    Method.CONJUGATE: "by conjugate gradients",
    Method.LAZY: "on the lazy kernel matrix",
}


@dataclass(frozen=True)
class TraceError:
    """τ = tr(K - K̂) / tr(K), the part of k(x, x) that landmarks do not explain, estimated on a few rows.

    It is known before anything is learned, and says how near functions on landmarks come to all functions.
    How well they predict, rows that were not learned from tell: `mercer.selection.landmark_path`.

    >>> print(TraceError(0.0312, 0.0021, landmarks=500, rows=500))
    500 landmarks leave 3.1 % ± 0.2 % of k(x, x) unexplained, by 500 of the rows
    """

    share: float
    #: the standard error of the share, by the rows it was estimated on
    error: float
    #: how many landmarks were tried, and on how many rows
    landmarks: int
    rows: int

    def __str__(self) -> str:
        left = f"{100 * self.share:.2g} % ± {100 * self.error:.1g} %" if self.share < 0.99 else "nearly all"
        left = "nothing but rounding" if self.share < _ROUNDING else left
        rows = f"by {self.rows:,} of the rows"
        return f"{self.landmarks:,} landmarks leave {left} of k(x, x) unexplained, {rows}"


@dataclass(frozen=True)
class Plan(Shown):
    """Which solver will run on what, what it takes, and why.

    >>> print(Plan("Cholesky factorisation", points=1000, memory=8_000_000, flops=1e9, why=("K fits",)))
    Cholesky factorisation on 1,000 points: 7.63MiB, about ... s
      because K fits
    """

    _shown_by = "mercer.notebook.report"
    solver: str
    points: int
    #: bytes of the arrays that are made, at most at any time
    memory: int
    #: additions and multiplications, about; for an iterative solver, those of a typical run
    flops: float
    why: tuple[str, ...] = ()
    #: whether the solver iterates: it then obeys max_time and Ctrl-C
    iterative: bool = False
    #: what the solver does, for the program; ``solver`` says it to people
    method: Method | None = None
    #: the rank of the factor of K that makes conjugate gradients take few iterations; 0 where there is none
    rank: int = 0
    #: how many landmarks f is restricted to; 0 where it is not
    landmarks: int = 0
    #: How many values of K are computed on landmarks, about; 0 where that is not counted.
    kernel_values: float = 0.0
    #: what landmarks leave of K, as many as planned or fewer: ``plan(X)`` estimates it, and a fit does not
    trace_error: TraceError | None = None
    #: bytes on the device, where the solver lives there; ``memory`` is that of the host
    device_memory: int = 0
    dtype: str = field(default_factory=lambda: settings().dtype)
    threads: int = field(default_factory=thread_count)

    def __post_init__(self) -> None:
        from mercer.runtime.native import compiles

        more = [] if compiles() else [_UNCOMPILED]
        if settings().device != "cpu":
            more.append(_on_device(self.dtype))
        new = tuple(reason for reason in more if reason not in self.why)
        if new:
            object.__setattr__(self, "why", (*self.why, *new))

    @property
    def seconds(self) -> float:
        """The expected time, within a factor of a few."""
        rate = _DEVICE_RATE if self.device_memory else RATE[self.dtype] * self.threads
        return self.flops / rate

    def require_memory(self, remedy: str) -> None:
        """Refuse a plan that does not fit the memory budget, before anything is allocated."""
        budget = memory_budget()
        remedy = "take fewer landmarks" if self.landmarks else remedy
        if self.memory > budget:
            raise MemoryBudgetError(
                f"{self.solver} on {self.points:,} points needs {format_bytes(self.memory)}, more than the "
                f"memory budget of {format_bytes(budget)}: {remedy}, or raise the budget with "
                "mercer.config(memory=…)"
            )

    def facts(self) -> dict[str, tuple[str, ...]]:
        """What it says by name, in lines of text: the rows of a table."""
        facts = {
            "solver": (self.solver,),
            "points": (f"{self.points:,}",),
            "memory": (_memory_of(self),),
            "time": (f"about {self.seconds:.2g} s",),
            "because": self.why,
            "landmarks": () if self.trace_error is None else (self._landmarks_leave(),),
        }
        return {name: lines for name, lines in facts.items() if lines}

    def __str__(self) -> str:
        head = f"{self.solver} on {self.points:,} points: {_memory_of(self)}, "
        head += f"about {self.seconds:.2g} s"
        text = "\n  because ".join([head, *self.why])
        return text if self.trace_error is None else f"{text}\n  {self._landmarks_leave()}"

    def _landmarks_leave(self) -> str:
        assert self.trace_error is not None
        fewer = self.trace_error.landmarks < self.landmarks
        return str(self.trace_error) + f"; {self.landmarks:,} leave less" * fewer


def _memory_of(plan: Plan) -> str:
    there = f" and {format_bytes(plan.device_memory)} on the device" if plan.device_memory else ""
    return format_bytes(plan.memory) + there


def _on_device(dtype: str) -> str:
    """Who computes K off the CPU, and in which numbers."""
    from mercer.gram.backends import backend_of

    now = settings()
    backend = backend_of(now.backend, now.device)
    said = f"K is computed by the backend {backend!r} on {now.device!r}"
    if backend != "triton" or dtype != "float32":
        return f"{said} in {dtype}"
    error = 1e-6 if now.kernel_error is None else now.kernel_error
    return (
        f"{said}, products of points in the fastest of tf32, tf32x3 and float32 that is within {error:g} of K"
    )


@dataclass(frozen=True)
class Report(Shown):
    """How a fit went.

    >>> Report(Plan("Newton", points=1000, memory=8_000_000, flops=1e9), Stop.CONVERGED, 0.25, 7, gap=1e-6)
    Report(Newton on 1,000 points: converged after 0.25 s and 7 iterations, gap 1e-06)
    """

    _shown_by = "mercer.notebook.report"
    plan: Plan
    stopped: Stop
    #: seconds, those before a checkpoint included, those of compiling not
    time: float
    #: iterations of the solver; 0 for a direct one
    iterations: int = 0
    #: the value that was minimised
    objective: float | None = None
    #: how far above the minimum the objective is at most; None where there is nothing to minimise, NaN where
    #: nobody knows: K is not known to be positive semi-definite, or blocks of it were all there was time for
    gap: float | None = None
    #: with landmarks, how far above the minimum over all functions, not only those on the landmarks, the
    #: objective is at most; None without landmarks, and where it would take too long to know
    bound: float | None = None
    #: what was warned about
    warnings: tuple[str, ...] = ()
    #: the one of them that says why the run ended early; None where it went to its end
    early: str | None = None

    @property
    def memory(self) -> int:
        """Bytes of the arrays that were made, at most at any time."""
        return self.plan.memory

    @property
    def converged(self) -> bool:
        return self.stopped == Stop.CONVERGED

    def facts(self) -> dict[str, tuple[str, ...]]:
        """What it says by name, in lines of text: the rows of a table."""
        facts = {
            "solver": (self.plan.solver,),
            "points": (f"{self.plan.points:,}",),
            "ended": (self._end(),),
            "objective": () if self.objective is None else (f"{self.objective:.10g}",),
            "certified": tuple(self._bounds()),
            "memory": (_memory_of(self.plan),),
            "because": self.plan.why,
            "warnings": self.warnings,
        }
        return {name: lines for name, lines in facts.items() if lines}

    def __repr__(self) -> str:
        parts = [f"{self.plan.solver} on {self.plan.points:,} points: {self._end()}"]
        parts += [] if self.gap is None else [f"gap {self.gap:.3g}"]
        parts += [f"{n} warning{'s' * (n > 1)}"] if (n := len(self.warnings)) else []
        return f"Report({', '.join(parts)})"

    def __str__(self) -> str:
        parts = [f"{self.plan.solver}: {self._end()}"]
        parts += [] if self.objective is None else [f"objective {self.objective:.10g}"]
        parts += [*self._bounds(), _memory_of(self.plan), *(f"because {why}" for why in self.plan.why)]
        return "\n  ".join([*parts, *(f"warning: {text}" for text in self.warnings)])

    def _end(self) -> str:
        iterations = f" and {self.iterations:,} iterations" if self.iterations else ""
        return f"{self.stopped} after {self.time:.3g} s{iterations}"

    def _bounds(self) -> Iterator[str]:
        """How far above the minimum the objective may be."""
        if self.gap is not None and isnan(self.gap):
            cause = "the kernel is not known to be positive definite"
            if self.plan.method is Method.BLOCKS:
                cause = "the run was stopped before a product with all of K could tell"
            yield f"how far above the minimum is unknown: {cause}"
        elif self.gap is not None:
            where = " on these landmarks" if self.plan.method is Method.LANDMARKS else ""
            yield f"at most {self.gap:.2g} above the minimum{where}"
        if self.bound is not None:
            yield f"at most {self.bound:.2g} above the minimum without landmarks"


def note(text: str) -> None:
    """A word about the data for the report of the fit that is under way, where there is one: no warning."""
    journal = _CURRENT.get()
    if journal is not None:
        journal.notes.append(text)


class Journal:
    """Kept during a fit: the time, and what was warned about."""

    def __init__(self) -> None:
        self._start = now()
        self.warnings: list[str] = []
        self.early: str | None = None
        self.notes: list[str] = []
        _CURRENT.set(self)

    def warn(self, message: str, category: type[Warning] = UserWarning) -> None:
        """Warn the user, and keep the text for the report."""
        self.warnings.append(message)
        warn_user(message, category)

    def noted(self, plan: Plan) -> Plan:
        """The plan, with what was noted about the data among its reasons."""
        return replace(plan, why=(*plan.why, *self.notes)) if self.notes else plan

    def report(self, plan: Plan, stopped: Stop = Stop.CONVERGED, **facts: Any) -> Report:
        """The report of the fit that ends here."""
        facts.setdefault("time", now() - self._start)
        return Report(self.noted(plan), stopped, warnings=tuple(self.warnings), early=self.early, **facts)


#: the journal of the fit that began last in this thread
_CURRENT: ContextVar[Journal | None] = ContextVar("journal", default=None)


# --- what a reader should know of a fit ----------------------------------------------------------------


def fit_notes(learner: Any) -> list[str]:
    """The warnings of an estimator's fit, and of the machine that its search fitted last, each once.

    A machine whose conditions are fulfilled within its tolerance is what was asked for, however it ended:
    that its time was up is then no news.

    >>> from mercer import SVC
    >>> fit_notes(SVC().fit([[0.0], [1.0]], [0, 1]))
    []
    """
    machine = getattr(learner, "model_", learner)
    found: list[str] = []
    for fitted in (learner, machine) if machine is not learner else (learner,):
        report = getattr(fitted, "report_", None)
        if report is not None:
            old = report.early if report.stopped == Stop.MAX_TIME and _is_within(machine) else None
            found += [text for text in report.warnings if text != old]
    return list(dict.fromkeys(found))


def _is_within(machine: Any) -> bool:
    """Whether the conditions of optimality are violated by no more than the tolerance."""
    violation, tol = getattr(machine, "kkt_violation_", None), getattr(machine, "tol", None)
    return violation is not None and tol is not None and bool(np.max(violation) <= tol)
