r"""What support vector machines share after the solver: what was found, certificates, warnings, report."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from mercer.data import points as data
from mercer.data.types import Points
from mercer.errors import InputError
from mercer.estimators.shared.definite import hidden, is_known, refutation
from mercer.estimators.shared.origin import affine_at, moved
from mercer.estimators.shared.support import Dual, Setup, SupportMixin
from mercer.expansion import Expansion
from mercer.kernels.base import Kernel
from mercer.kernels.vectors.dotproduct import Linear
from mercer.report import Journal
from mercer.solvers.result import Stop
from mercer.solvers.svm.problems import Machine


class SupportReportMixin(SupportMixin):
    """For estimators on ``solvers.svm``; see the module."""

    support_: np.ndarray
    support_vectors_: Any
    n_support_: np.ndarray
    dual_coef_: Any
    intercept_: np.ndarray
    n_iter_: Any
    margin_: Any
    dual_gap_: Any
    kkt_violation_: Any
    fit_status_: int

    # --- what was found -------------------------------------------------------------------------------------

    def _set_support(
        self, points: Points, chosen: np.ndarray, original: np.ndarray, dual: np.ndarray
    ) -> None:
        """support_, support_vectors_ and dual_coef_; ``original`` are the positions of the points in X."""
        self.support_ = original[chosen].astype(np.int32)
        is_sparse = sparse.issparse(points)
        if self._pairwise:
            self.support_vectors_ = np.empty((0, 0))
        else:
            self.support_vectors_ = data.take(points, chosen)
        if is_sparse:
            self.support_vectors_ = sparse.csr_matrix(self.support_vectors_)
            self.dual_coef_ = sparse.csr_matrix(dual)
        else:
            self.dual_coef_ = dual

    def _set_expansion(self, points: Points, chosen: np.ndarray, coef: np.ndarray, intercept: Any) -> None:
        """f over the chosen points only; one with coefficient 0 where there is none."""
        if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
            raise InputError(
                "The dual coefficients or intercepts are not finite: rescale the data, or choose a kernel "
                "that does not overflow on them"
            )
        if self._centre is not None:
            # Σ γᵢ k(xᵢ, x) would cancel: f is k(w, x) - c₀ + b, w its one point (one for each function)
            W = self._primal()
            W = W.toarray() if sparse.issparse(W) else W
            one = np.ones(1) if coef.ndim == 1 else np.eye(len(W))
            constant = affine_at(self.kernel_, W, self._centre)[1]
            self.expansion_ = Expansion(self.kernel_, W, one, intercept - constant)
            return
        anchors = chosen if len(chosen) else np.zeros(1, np.intp)
        self.expansion_ = Expansion(self.kernel_, data.take(points, anchors), coef[anchors], intercept)

    def _offsets(self, W: Any) -> np.ndarray:  # (functions,)
        """c ⟨w, m⟩, what b is less for points as they came; ``W`` is that of the function that is kept."""
        if self._centre is None:
            return np.zeros(1)
        return affine_at(self.kernel_, W.toarray() if sparse.issparse(W) else W, self._centre)[0]

    def _read_one(self, points: Points, original: np.ndarray, machine: Machine) -> None:
        """Attributes from the machine of a single problem, for regression and one class."""
        chosen = np.flatnonzero(machine.coef)
        self._set_support(points, chosen, original, machine.coef[None, chosen])
        self.n_support_ = np.array([len(chosen)], np.int32)
        self.intercept_ = machine.intercept - self._offsets(None if self._centre is None else self._primal())
        self._set_expansion(points, chosen, machine.coef, self.intercept_[0])
        self.n_iter_ = machine.iterations
        with np.errstate(divide="ignore", invalid="ignore"):
            self.margin_ = float(np.divide(2.0, np.sqrt(machine.square)))

    @property
    def coef_(self) -> Any:
        """Weights of the features, for linear kernels only: f(x) = coef_ x + intercept_."""
        kernel = vars(self).get("kernel_", self.kernel)
        if not (isinstance(kernel, Linear) or (isinstance(kernel, str) and kernel == "linear")):
            raise AttributeError("coef_ is only available when using a linear kernel")
        try:
            check_is_fitted(self)
        except ValueError as error:  # NotFittedError is one of these.
            raise AttributeError(str(error)) from None
        coef = self._primal()
        if sparse.issparse(coef):
            coef.data.flags.writeable = False
        else:
            coef.flags.writeable = False
        return coef

    def _primal(self) -> Any:
        return safe_sparse_dot(self.dual_coef_, self._moved_vectors())

    def _moved_vectors(self) -> Any:
        """The support vectors, seen from the origin that the fit had: where Σγ = 0, w is the same."""
        return moved(self.support_vectors_, self._centre)

    @property
    def _gamma(self) -> Any:
        """γ as a number, under the name that scikit-learn's users know."""
        return vars(self.kernel_).get("gamma", 0.0)

    # --- what is told ----------------------------------------------------------------------------------

    def _finish(
        self, journal: Journal, setup: Setup, points: Points, machines: list[Machine], seconds: float
    ) -> None:
        """Attributes that all machines have, and the report."""
        keep = self.warm_start or self._grams is not None
        self._last = tuple((machine.gamma, machine.energy) for machine in machines) if keep else ()
        stopped = Stop.worst(machine.stopped for machine in machines)
        steps = sum(machine.iterations for machine in machines)
        self.fit_status_ = int(stopped != Stop.CONVERGED)
        one = len(machines) == 1
        gaps, violations = ([float(getattr(m, name)) for m in machines] for name in ("gap", "violation"))
        dual, lowest = setup.dual, _refuted(self.kernel_, points, machines, setup.dual.sums_to_zero)
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
            gaps = [np.nan] * len(machines)  # it is the gap of a point that may be one of many
        self.dual_gap_ = gaps[0] if one else np.array(gaps)
        self.kkt_violation_ = violations[0] if one else np.array(violations)
        if not all(machine.has_margin or machine.stopped.is_early for machine in machines):
            journal.warn(
                f"{type(self).__name__} found no margin: nu={dual.nu} is so small that "
                "classes overlap, and what separates them is lost in rounding, or below what the solver "
                "can tell, so that more points than nu says may be inside it; raise nu, choose another "
                "kernel, or use SVC",
                ConvergenceWarning,
            )
        noisy = max(machines, key=lambda machine: machine.noise)
        if noisy.noise > self.tol:
            peak = float(np.abs(setup.gram.diag()).max(initial=0.0))
            journal.warn(
                f"{type(self).__name__} cannot tell how near the minimum it is: values of this kernel are as "
                f"large as {peak:.1g} here, and their rounding may move f by {noisy.noise:.1g}, where "
                f"tol={self.tol} was asked for; scale the columns of X (StandardScaler), or choose a kernel "
                "whose values are smaller",
                ConvergenceWarning,
            )
        if stopped != Stop.ROUNDING or noisy.noise <= self.tol:
            self._warn(journal, stopped, machines, dual)
        self.report_ = journal.report(
            setup.plan,
            stopped,
            time=seconds,
            iterations=steps,
            objective=float(sum(machine.objective for machine in machines)),
            gap=sum(gaps),
        )

    def _warn(self, journal: Journal, stopped: Stop, machines: list[Machine], dual: Dual) -> None:
        violation = max(machine.violation for machine in machines)
        what = (
            f"with conditions of optimality violated by {violation:.2g}, where tol={self.tol} was asked for"
        )
        if not all(machine.has_margin for machine in machines if machine.stopped.is_early):
            what += ", and without a margin between the classes yet"
        weaker = "a larger nu" if dual.C is None else "a smaller C"
        limit, more = f"max_iter={self.max_iter}", ", or raise max_iter"
        if self.max_iter < 0:  # This is the solver's own limit.
            most = max(
                (machine.iterations for machine in machines if machine.stopped == Stop.MAX_ITER), default=0
            )
            limit, more = f"{most:,} steps", ""
        self._warn_if_stopped(
            journal,
            stopped,
            sum(machine.iterations for machine in machines),
            what,
            # Users of scikit-learn filter warnings by these words.
            max_iter=f"Solver terminated early ({limit}).  Consider pre-processing your data with "
            f"StandardScaler or MinMaxScaler, or pass {weaker}{more}",
            rounding=f"scale the data, or pass {weaker} or a larger tol",
        )


def _refuted(kernel: Kernel, points: Points, machines: list[Machine], centred: bool) -> float:
    """A negative eigenvalue of K, as some of the points or the machines themselves show it; else 0."""
    lowest, unseen = refutation(kernel, points, centred=centred), hidden(kernel, points)
    for machine in machines:
        least = -2 * machine.blur - unseen * float(np.square(machine.gamma).sum())
        if lowest == 0 and machine.energy < least:  # γᵀKγ < 0 beyond rounding
            lowest = machine.square / float(np.square(machine.coef).sum())
    return lowest
