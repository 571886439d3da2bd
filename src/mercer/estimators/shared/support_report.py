r"""What a support vector machine tells after a fit: certificates, warnings, the report."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.estimators.shared.definite import is_known, refutation
from mercer.estimators.shared.iterative import IterativeMixin
from mercer.kernels.base import Kernel
from mercer.report import Journal, Plan, Report
from mercer.solvers.result import Stop
from mercer.solvers.svm.problems import Machine

__all__ = ["SupportReportMixin"]


class SupportReportMixin(IterativeMixin):
    """For ``SupportMixin``; see the module."""

    tol: float
    max_iter: int
    warm_start: bool
    kernel_: Kernel
    report_: Report
    dual_gap_: Any
    kkt_violation_: Any
    fit_status_: int

    #: of the last fit: γ and γᵀKγ of each problem
    _last: tuple[tuple[np.ndarray, float], ...] = ()
    #: of a path: Grams that its fits share, by precision
    _grams: Any = None
    #: the largest k(x, x)
    _peak: float

    @property
    def _sums_to_zero(self) -> bool:
        """Whether Σγ = 0 in the dual: there is a b that nothing penalises."""
        return bool(getattr(self, "fit_intercept", True))

    def _finish(
        self, journal: Journal, plan: Plan, points: Any, machines: list[Machine], seconds: float
    ) -> None:
        """Attributes that all machines have, and the report."""
        keep = self.warm_start or self._grams is not None
        self._last = tuple((machine.gamma, machine.energy) for machine in machines) if keep else ()
        stopped = Stop.worst(machine.stopped for machine in machines)
        steps = sum(machine.iterations for machine in machines)
        self.fit_status_ = int(stopped != Stop.CONVERGED)
        one = len(machines) == 1
        gaps, violations = ([float(getattr(m, name)) for m in machines] for name in ("gap", "violation"))
        lowest = self._refuted(points, machines)
        if lowest < 0:
            gaps = [np.nan] * len(machines)
            journal.warn(
                f"{self.kernel_!r} is not positive definite: on these points its matrix has the eigenvalue "
                f"{lowest:.3g}, and the problem may have many minima; the model is at a point that no pair "
                "of variables can improve, unknown how far above the lowest (dual_gap_ is nan); "
                "take another kernel (mercer.certify tells), or repair the matrix (mercer.repair) and pass "
                'it with kernel="precomputed"'
            )
        elif not is_known(self.kernel_, points):
            gaps = [np.nan] * len(machines)  # of a point that may be one of many
        self.dual_gap_ = gaps[0] if one else np.array(gaps)
        self.kkt_violation_ = violations[0] if one else np.array(violations)
        if not all(machine.has_margin or machine.stopped.is_early for machine in machines):
            journal.warn(
                f"{type(self).__name__} found no margin: nu={getattr(self, 'nu', None)} is so small that "
                "classes overlap, and what separates them is lost in rounding, or below what the solver "
                "can tell, so that more points than nu says may be inside it; raise nu, choose another "
                "kernel, or use SVC",
                ConvergenceWarning,
            )
        noisy = max(machines, key=lambda machine: machine.noise)
        if noisy.noise > self.tol:
            journal.warn(
                f"{type(self).__name__} cannot tell how near the minimum it is: values of this kernel are as "
                f"large as {self._peak:.1g} here, and their rounding may move f by {noisy.noise:.1g}, where "
                f"tol={self.tol} was asked for; scale the columns of X (StandardScaler), or choose a kernel "
                "whose values are smaller",
                ConvergenceWarning,
            )
        if stopped != Stop.ROUNDING or noisy.noise <= self.tol:
            self._warn(journal, stopped, machines)
        self.report_ = journal.report(
            plan,
            stopped,
            time=seconds,
            iterations=steps,
            objective=float(sum(machine.objective for machine in machines)),
            gap=sum(gaps),
        )

    def _refuted(self, points: Any, machines: list[Machine]) -> float:
        """A negative eigenvalue of K, as some of the points or the machines themselves show it; else 0."""
        lowest = refutation(self.kernel_, points, centred=self._sums_to_zero)
        for machine in machines:
            if lowest == 0 and machine.energy < -2 * machine.blur:  # γᵀKγ < 0 beyond rounding
                lowest = machine.square / float(np.square(machine.coef).sum())
        return lowest

    def _warn(self, journal: Journal, stopped: Stop, machines: list[Machine]) -> None:
        violation = max(machine.violation for machine in machines)
        what = (
            f"with conditions of optimality violated by {violation:.2g}, where tol={self.tol} was asked for"
        )
        if not all(machine.has_margin for machine in machines if machine.stopped.is_early):
            what += ", and without a margin between the classes yet"
        weaker = "a smaller C" if hasattr(self, "C") else "a larger nu"
        limit, more = f"max_iter={self.max_iter}", ", or raise max_iter"
        if self.max_iter < 0:  # the solver's own limit
            most = max(
                (machine.iterations for machine in machines if machine.stopped == Stop.MAX_ITER), default=0
            )
            limit, more = f"{most:,} steps", ""
        self._warn_if_stopped(
            journal,
            stopped,
            sum(machine.iterations for machine in machines),
            what,
            # the words that scikit-learn's users filter by
            max_iter=f"Solver terminated early ({limit}).  Consider pre-processing your data with "
            f"StandardScaler or MinMaxScaler, or pass {weaker}{more}",
            rounding=f"scale the data, or pass {weaker} or a larger tol",
        )
