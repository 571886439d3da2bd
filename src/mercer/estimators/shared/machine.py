r"""Regularised risk minimisation over the RKHS: what the classifier and the regressor of any loss share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.data import points as data
from mercer.data.types import Points
from mercer.errors import InputError
from mercer.estimators.shared.base import KernelMixin
from mercer.estimators.shared.definite import DefiniteMixin
from mercer.estimators.shared.iterative import IterativeMixin
from mercer.estimators.shared.landmarks import LANDMARKS, LandmarkMixin, LandmarksLike, Restricted
from mercer.estimators.shared.low_rank import factor_words, low_rank
from mercer.estimators.shared.origin import expanded, moved, origin_of, rounding_of
from mercer.estimators.shared.parameters import KernelParameters, flag, learner
from mercer.expansion import Expansion
from mercer.gram import Gram
from mercer.kernels.parameters import positive, whole
from mercer.losses import Loss
from mercer.report import HOW, Journal, Method, Plan
from mercer.runtime.config import memory_budget, settings
from mercer.solvers.control import Control
from mercer.solvers.landmarks.certificate import RestrictedMinimum
from mercer.solvers.landmarks.multipliers import restricted_risk
from mercer.solvers.linear.precondition import factor_memory, usual_rank
from mercer.solvers.result import Minimiser, Minimum, Stop
from mercer.solvers.risk.certificate import RiskResult
from mercer.solvers.risk.multipliers import regularised_risk
from mercer.solvers.risk.newton import require_solvable
from mercer.solvers.risk.penalty import PenaltyResult, any_penalty, as_penalty
from mercer.solvers.several import each

#: Arrays of n numbers that the solvers keep, about; a test compares the plan with tracemalloc.
_ARRAYS_PER_POINT = 40


@learner
class MachineParameters(KernelParameters):
    """The parameters that both machines have."""

    _: KW_ONLY
    alpha: float = positive(1.0)
    lam: float | None = positive(None, optional=True)
    penalty: Any = None
    fit_intercept: bool = flag(True)
    landmarks: LandmarksLike = LANDMARKS
    tol: float = positive(1e-6)
    max_iter: int = whole(100)


class MachineMixin(MachineParameters, IterativeMixin, DefiniteMixin, LandmarkMixin, KernelMixin):
    """What the classifier and the regressor share; ``_learn`` is the whole of it."""

    loss: Any
    #: the functions learned
    expansion_: Expansion
    #: the loss that was minimised
    loss_: Loss

    def _make_loss(self) -> Loss:
        raise NotImplementedError

    def _learn(self, journal: Journal, X: Points, Y: np.ndarray, weight: np.ndarray, loss: Loss) -> None:
        """Minimise for every column of Y (n, functions); sets ``expansion_``, ``n_iter_`` and ``report_``."""
        omega = None if self.penalty is None else as_penalty(self.penalty)
        plan = self._plan(X, Y.shape[1], loss)
        plan.require_memory("use fewer points")
        factor = self.alpha if self.lam is None else self.lam * float(weight.sum())
        require_solvable(factor, "alpha" if self.lam is None else "lam")
        if plan.method is Method.LANDMARKS:
            self._learn_on_landmarks(journal, plan, X, Y, weight, loss, factor)
            return
        self._require_definite(X, centred=False)
        origin = origin_of(self.kernel_, X, self.fit_intercept)
        points = moved(X, origin)
        options: dict[str, Any] = {
            "fit_intercept": self.fit_intercept,
            "tol": self.tol,
            "max_iter": self.max_iter,
            "direct": plan.method is Method.CHOLESKY,
            "rounding": rounding_of(self.kernel_, points, settings().dtype),
        }
        Y = np.asarray(Y, dtype=np.float64)
        most = self.max_iter * Y.shape[1]
        with self._control("machine", most, X, Y, weight, self.kernel_) as control:
            gram = Gram(self.kernel_, points, cache=0)
            K = gram if plan.method is Method.LAZY else gram.dense()
            options["near"] = low_rank(gram, plan.rank, control)

            def solve(y: np.ndarray, part: Control) -> RiskResult | PenaltyResult:
                if omega is None:  # ½ · 2α ‖f‖² = α ‖f‖²
                    return regularised_risk(K, loss, y, weight, 2 * factor, control=part, **options)
                return any_penalty(K, loss, y, weight, omega, factor=factor, control=part, **options)

            results: list[Minimiser] = each(solve, Y, control, Minimiser)
        self.loss_ = loss
        self._keep(points, results, origin)
        self._tell(journal, plan, results, float(weight.sum()), control.total_seconds)

    def _learn_on_landmarks(
        self,
        journal: Journal,
        plan: Plan,
        X: Points,
        Y: np.ndarray,
        weight: np.ndarray,
        loss: Loss,
        factor: float,
    ) -> None:
        """Learn f restricted to landmarks, one column after the other."""
        if self.penalty is not None:
            raise InputError(
                "landmarks go with the penalty ‖f‖² alone, got another one: leave out penalty, or landmarks"
            )
        Z, rows = self._landmarks_and_rows(X, weight)
        self._require_definite(Z, centred=False)
        problem = Restricted(self.kernel_, X, Z, self.fit_intercept, rows)
        Y = np.asarray(Y, dtype=np.float64)
        trace = float(weight @ problem.diagonal)
        with self._control("machine", self.max_iter * Y.shape[1], X, Y, weight, self.kernel_) as control:
            problem.features.follow = control.show

            def solve(y: np.ndarray, part: Control) -> RestrictedMinimum:
                return restricted_risk(
                    problem.features,
                    loss,
                    y,
                    weight,
                    2 * factor,
                    tol=self.tol,
                    max_iter=self.max_iter,
                    control=part,
                    accuracy=problem.accuracy,
                    trace=trace,
                )

            results = each(solve, Y, control, RestrictedMinimum)
        self.loss_ = loss
        coef = np.column_stack([result.coef for result in results])
        intercept = np.concatenate([result.intercept for result in results])
        if self._is_single(len(results)):
            coef, intercept = coef[:, 0], intercept[0]
        self.expansion_ = Expansion(self.kernel_, problem.points, coef, intercept)
        self.n_iter_ = max(result.iterations for result in results)
        bounds = problem.bounds(results, 2 * factor)
        self._tell(journal, plan, results, float(weight.sum()), control.total_seconds, bounds)

    def _keep(self, points: Points, results: list[Minimiser], origin: np.ndarray | None) -> None:
        coef = np.column_stack([result.coef for result in results])
        stored = np.flatnonzero(coef.any(axis=1))
        if not stored.size:  # f = b: one anchor of weight zero keeps the type
            stored = np.array([0])
        coef, intercept = coef[stored], np.array([result.intercept for result in results])
        if self._is_single(len(results)):
            coef, intercept = coef[:, 0], intercept[0]
        self.expansion_ = expanded(self.kernel_, data.take(points, stored), coef, intercept, origin)
        self.n_iter_ = max(result.iterations for result in results)

    def _is_single(self, functions: int) -> bool:
        """Whether the one function learned is no column of several."""
        return functions == 1

    def _tell(
        self,
        journal: Journal,
        plan: Plan,
        results: Sequence[Minimum],
        total: float,
        seconds: float,
        bounds: Sequence[float | None] = (None,),
    ) -> None:
        """Warn of what was not reached, and set ``report_``; ``total`` is Σ wᵢ."""
        unit = 1.0 if self.lam is None else 1.0 / total  # the unit of the objective that was asked for
        worst = max(results, key=lambda result: result.relative)
        stopped = Stop.worst(result.stopped for result in results)
        self._warn_if_stopped(
            journal,
            stopped,
            self.n_iter_,
            f"within {unit * worst.gap:.2g} of the smallest objective, at {unit * worst.objective:.4g}",
        )
        if worst.stopped == Stop.CONVERGED and getattr(worst, "rounded", True) and worst.relative > self.tol:
            journal.warn(
                f"rounding ended the fit with the objective, {unit * worst.objective:.4g}, within "
                f"{unit * worst.gap:.2g} of the smallest, where tol={self.tol} times it was asked for: raise "
                "tol, or penalise more (a larger alpha or lam)",
                ConvergenceWarning,
            )
        self.report_ = journal.report(
            plan,
            stopped,
            time=seconds,
            iterations=sum(result.iterations for result in results),
            objective=unit * sum(result.objective for result in results),
            gap=unit * sum(result.gap for result in results),
            bound=None if None in bounds else unit * sum(filter(None, bounds)),
        )

    def _plan(self, X: Points, n_outputs: int, loss: Loss | None = None) -> Plan:
        loss = self._make_loss() if loss is None else loss
        exact = self._exact_plan(X, n_outputs, loss)
        return self._with_landmarks(X, exact, n_outputs * (40 if loss.smooth else 150), n_outputs)

    def _exact_plan(self, X: Points, n_outputs: int, loss: Loss | None = None) -> Plan:
        loss = self._make_loss() if loss is None else loss
        n = data.n_points(X)
        name = "Newton's method" if loss.smooth else "method of multipliers"
        runs, why = 1, ["the loss is smooth" if loss.smooth else "the loss has kinks"]
        if self.penalty is not None:
            name, runs = f"{name} along the path of ‖f‖²", 8
            why.append("the penalty is another function of ‖f‖²: its minimum is on the path")
        steps = runs * n_outputs * (8 if loss.smooth else 40)
        vectors = 8 * n * (_ARRAYS_PER_POINT + 3 * n_outputs)
        item, rank = np.dtype(settings().dtype).itemsize, 0
        stored, factor = item * n * n, 8 * n * n
        if stored + factor + vectors <= memory_budget():
            method, memory, flops = Method.CHOLESKY, stored + factor + vectors, steps * n**3 / 12
            why.append("K and a factor of it fit the memory budget")
        elif stored + vectors <= memory_budget():
            method, memory, flops = Method.CONJUGATE, stored + vectors, steps * 600.0 * n * n
            why.append("K fits the memory budget, but not a factor of it beside it")
        else:
            rank = usual_rank(n, (memory_budget() - vectors) // 2, item, is_repeated=True)
            memory = vectors + factor_memory(n, rank, item) * bool(rank)
            # Each step has an L of its own and some twenty products.
            method, flops = Method.LAZY, steps * (400.0 * n * n + 1.0 * n * rank**2)
            why.append("K does not fit the memory budget: its values are computed for every product")
            why.append(factor_words(rank))
        words = f"{name} {HOW[method]}"
        return Plan(words, n, memory, flops, tuple(why), iterative=True, method=method, rank=rank)
