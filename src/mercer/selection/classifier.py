r"""Classification with a kernel that was chosen for the data."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from mercer.estimators.base import KernelMixin
from mercer.estimators.classes import KernelClassifierMixin, signs
from mercer.estimators.svc import SVC
from mercer.expansion import Expansion
from mercer.kernels.parameters import Parameter
from mercer.report import Journal, Plan, Report
from mercer.selection.auto import AUTO, AutoMixin
from mercer.selection.scores import machine_errors
from mercer.selection.search import Clock, Trial, affordable_points

__all__ = ["AutoKernelClassifier"]

_LEARNED = 2000  # points that the parameters of the winner are learned on
_SCORED = 4000  # points that the last C is chosen on


class AutoKernelClassifier(AutoMixin, KernelClassifierMixin, KernelMixin, BaseEstimator):
    r"""A support vector machine with a kernel, its parameters and C chosen for the data.

    Kernels are learned by gradient steps on the evidence (`mercer.selection.evidence`), of the labels as ±1,
    and compared by the errors of support vector machines over five folds of points that they were not learned
    from; see `mercer.selection.search`.

    Parameters
    ----------
    kernel : "auto" for the default list on vectors; a kernel, or a list of kernels, on anything: their
        parameters with derivatives are learned, from where they are
    max_time : seconds; the search takes half of them at most, about
    random_state : seed of the cut into points to learn on and to score on
    progress : as everywhere

    Attributes
    ----------
    trials_ : every kernel that was tried, with its score
    model_ : the SVC
    kernel_, C_, classes_, expansion_, report_ : its kernel, penalty, labels, functions and report
    best_score_ : the errors of the winner in the search, a part; not honest of the choice itself (see
        ``mercer.selection.nested_error``)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer.selection import AutoKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AutoKernelClassifier().fit(X, y)
    >>> bool(model.best_score_ < 0.07), model.predict(X[:2])
    (True, array([0, 0]))
    """

    _declared: ClassVar[dict[str, Parameter]] = AUTO

    model_: SVC
    trials_: list[Trial]
    expansion_: Expansion
    report_: Report

    def fit(self, X: Any, y: Any) -> Self:
        """Choose and fit on the points X and their labels y."""
        journal = Journal()
        X, y = self._validate_fit(X, y)
        self._require_points(X)
        codes = self._encode(y)
        Y = signs(codes, len(self.classes_)).astype(np.float64).reshape(len(codes), -1)
        score = machine_errors(X, codes, self._seed())
        search, winner = self._search(X, Y, score, Clock(self.max_time))
        kernel, noise = search.finish(winner, _LEARNED)
        last = score(kernel, noise, search.order[: min(_SCORED, affordable_points())])
        self.trials_, self.C_ = search.trials, last.penalty
        self.model_ = SVC(kernel=kernel, C=self.C_).fit(X, y)
        self.kernel_, self.expansion_ = self.model_.kernel_, self.model_.expansion_
        self.report_ = journal.report(self.model_.report_.plan, self.model_.report_.stopped)
        self.best_score_ = winner.score.error
        return self

    def decision_function(self, X: Any) -> np.ndarray:  # (n,) or (n, classes)
        """f(x), or of several classes one value each."""
        X = self._validate_new(X)
        return np.asarray(self.model_.decision_function(X))

    def predict(self, X: Any) -> np.ndarray:  # (n,)
        """The class of each point."""
        X = self._validate_new(X)
        return np.asarray(self.model_.predict(X))

    def _plan(self, X: Any, n_outputs: int) -> Plan:
        return SVC(kernel=self.kernel_)._plan(X, n_outputs)
