r"""From the values of a support vector classifier to labels and probabilities."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import _ovr_decision_function
from sklearn.utils.validation import check_is_fitted

from mercer.data import points as data
from mercer.data.types import Model, Points
from mercer.errors import InputError
from mercer.estimators.shared.classes import KernelClassifierMixin, Problems
from mercer.estimators.shared.origin import moved, rounding_of
from mercer.estimators.shared.support import Setup
from mercer.estimators.shared.support_report import SupportReportMixin
from mercer.expansion import Expansion
from mercer.gram import Gram
from mercer.report import Journal
from mercer.solvers.control import Control
from mercer.solvers.result import Stop
from mercer.solvers.svm import calibration
from mercer.solvers.svm.level import Slacks
from mercer.solvers.svm.problems import Machine


def _has_probability(model: Model) -> Literal[True]:
    if not model.probability:
        raise AttributeError("predict_proba is not available when probability=False")
    return True


class SupportVotesMixin(SupportReportMixin, KernelClassifierMixin):
    """For SVC and NuSVC; see the module."""

    probability: bool
    break_ties: bool
    decision_function_shape: str
    #: whether columns of f are pairs of classes, as of the fit; for two classes there is one either way
    _by_pairs: bool
    slopes_: np.ndarray

    def decision_function(self, X: Points) -> np.ndarray:  # (m,), (m, classes) or (m, pairs)
        """f(x): for two classes positive for the second; for more a column per class, or per pair.

        With ``decision_function_shape="ovr"`` the values of pairs become a number of votes per class, and
        less than half a vote for how clear they were, as in scikit-learn. A model that was fitted with
        ``multi_class="ovr"`` has no pairs: its columns are classes, whatever the shape.
        """
        values = self._values_at(X)
        if values.ndim == 1 or not self._by_pairs or self.decision_function_shape == "ovo":
            return values
        return _ovr_decision_function(values < 0, -values, len(self.classes_))

    def predict(self, X: Points) -> np.ndarray:  # (m,)
        """The label of every row of X."""
        by_pairs = vars(self).get("_by_pairs", False)
        if self.break_ties and self.decision_function_shape == "ovo" and by_pairs:
            raise InputError(
                "break_ties must be False when decision_function_shape is 'ovo': votes of pairs have no "
                'other measure to break a tie by; pass decision_function_shape="ovr"'
            )
        values = self._values_at(X)
        return self.classes_[self._codes(values)]

    def _codes(self, values: np.ndarray) -> np.ndarray:  # (m,)
        if values.ndim == 1:
            return (values > 0).astype(np.intp)
        if not self._by_pairs:
            return values.argmax(axis=1)
        classes = len(self.classes_)
        if self.break_ties:
            return _ovr_decision_function(values < 0, -values, classes).argmax(axis=1)
        votes = np.zeros((len(values), classes), np.int32)
        for p, (i, j) in enumerate(combinations(range(classes), 2)):
            first = values[:, p] > 0
            votes[:, i] += first
            votes[:, j] += ~first
        return votes.argmax(axis=1)  # the first of those with the most

    @available_if(_has_probability)
    def predict_proba(self, X: Points) -> np.ndarray:  # (m, classes)
        """P(class | x), in the order of ``classes_``; the largest is that of ``predict``, for every x."""
        check_is_fitted(self)
        if not hasattr(self, "slopes_"):
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False: set probability=True "
                "and fit again"
            )
        values = self._values_at(X)
        if values.ndim == 1:
            slopes = self.slopes_[0]
            return np.column_stack(
                [calibration.probability(-values, slopes[::-1]), calibration.probability(values, slopes)]
            )
        pairwise = calibration.probability(values, self.slopes_)
        if self._by_pairs:
            p = calibration.couple(pairwise)
        else:
            total = pairwise.sum(axis=1, keepdims=True)
            even = np.full_like(pairwise, 1 / pairwise.shape[1])
            p = np.divide(pairwise, total, out=even, where=total > 0)
        return calibration.agree(p, self._codes(values))

    @available_if(_has_probability)
    def predict_log_proba(self, X: Points) -> np.ndarray:  # (m, classes)
        """log P(class | x); for two classes finite also where P(class | x) is too small for a number."""
        p = self.predict_proba(X)
        if p.shape[1] > 2:
            with np.errstate(divide="ignore"):
                return np.log(p)
        values, slopes = self._values_at(X), self.slopes_[0]
        return np.column_stack(
            [calibration.log_probability(-values, slopes[::-1]), calibration.log_probability(values, slopes)]
        )

    def _slopes(
        self,
        setup: Setup,
        machines: list[Machine],
        problems: Problems,
        weight: np.ndarray,
        control: Control,
        journal: Journal,
    ) -> np.ndarray:  # (problems, 2)
        """Slopes of P(first class of a problem) below and above f = 0, from values left out."""
        numbers = range(len(problems))
        places, signs = [problems.points(p) for p in numbers], [problems.signs(p) for p in numbers]
        slopes, late = calibration.slopes(
            setup.gram, machines, places, signs, weight, setup.dual.sums_to_zero, control
        )
        if late:
            journal.warn(
                f"probabilities of {late} of {len(problems)} problems are from values of f at the "
                "training points, which makes them too sure: there was no time for values left out; raise "
                "max_time, or let the fit come to its end",
                ConvergenceWarning,
            )
        return slopes

    def _keep_best(self, points: Points, machines: list[Machine], problems: Problems, W: Any) -> None:
        """The b that is best for k(w, ·), its objective and gap, of machines that rounding has ended.

        Their values are sums of kernel values that cancel, and may differ from those of the w that is kept.
        The dual value is Σ yᵢγᵢ - ½‖w‖², of the true w: that differs from the one kept by the roundings of a
        sum.
        """
        tau = rounding_of(self.kernel_, points, "float64")
        for p, machine in enumerate(machines):
            if machine.stopped != Stop.ROUNDING:
                continue
            w = W[[p]].toarray() if sparse.issparse(W) else W[[p]]
            y, here = problems.signs(p), moved(data.take(points, problems.points(p)), self._centre)
            f = Expansion(self.kernel_, w, np.ones(1))
            constant, size = map(float, f.values(np.concatenate([np.zeros_like(w), w]), "float64"))
            values = f.values(here, "float64") - constant
            slacks = Slacks(y - values, machine.lo, machine.hi)
            b = slacks.best(machine.intercept)
            square = max(size - constant, 0.0)
            objective = 0.5 * square + slacks.cost(b)
            sizes = np.sqrt(Gram(self.kernel_, here, cache=0).diag().astype(np.float64))
            weight = np.abs(machine.coef)
            off = (len(weight) * 2.0**-53 + tau) * float(weight @ sizes)  # ‖w - what is kept of it‖
            slack = tau * np.sqrt(size) * (float(np.maximum(machine.hi, -machine.lo) @ sizes) + np.sqrt(size))
            least = math.fsum(y * machine.coef) - 0.5 * (np.sqrt(square) + off) ** 2
            machines[p] = replace(
                machine,
                intercept=b,
                values=values + b,
                square=square,
                objective=objective,
                gap=float(objective + slack - least),
            )

    def _primal(self) -> Any:
        if len(self.intercept_) == 1 or not self._by_pairs:
            return super()._primal()
        ends = np.concatenate([[0], np.cumsum(self.n_support_)])
        parts, vectors = [], self._moved_vectors()
        for i, j in combinations(range(len(self.classes_)), 2):
            a, b = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
            parts.append(self.dual_coef_[[j - 1], a] @ vectors[a] + self.dual_coef_[[i], b] @ vectors[b])
        return sparse.vstack(parts).tocsr() if sparse.issparse(self.dual_coef_) else np.vstack(parts)
