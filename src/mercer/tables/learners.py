r"""The learners that a command can name, on a kernel that a search has chosen.

>>> learner("svm", "classification", kernel="auto", max_time=None, seed=0)
AutoKernelClassifier()
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer.data.types import Model, Points, Targets
from mercer.errors import InputError
from mercer.tables.target import Goal

#: what can be named, by task; the first is what the search itself fits
LEARNERS = {
    Goal.CLASSIFICATION: ("svm", "logistic", "fisher", "parzen", "perceptron"),
    Goal.REGRESSION: ("ridge", "svr"),
}

_SEARCH = 0.6  # the share of the time that a search has before another learner
_LEAST_SECONDS = 0.3  # seconds for that


def learner(name: str, task: Goal, *, kernel: Any, max_time: float | None, seed: int) -> Any:
    """An estimator for a task: the search alone, or the search and then another learner with its kernel."""
    from mercer.selection import AutoKernelClassifier, AutoKernelRegressor

    known = LEARNERS[task]
    if name not in ("auto", *known):
        everywhere = {other for names in LEARNERS.values() for other in names}
        reason = f"is not for {task}" if name in everywhere else "is no learner"
        raise InputError(f"{name!r} {reason}: choose auto, {', '.join(known)}")
    search = AutoKernelClassifier if task == Goal.CLASSIFICATION else AutoKernelRegressor
    chosen = search(kernel=kernel, max_time=max_time, random_state=seed)
    return chosen if name in ("auto", known[0]) else AfterSearch(chosen, name, kernel=kernel)


def with_task(tags: Any, estimator: Model) -> Any:
    """A wrapper's tags, with the task of the estimator inside."""
    inner = get_tags(estimator)
    tags.estimator_type = inner.estimator_type
    tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
    tags.target_tags.required = True
    return tags


def _estimator(name: str, kernel: Any, y: np.ndarray) -> Any:
    import mercer

    if name == "svr":
        spread = float(np.std(y)) or 1.0
        return mercer.SVR(kernel=kernel, C=10 * spread, epsilon=0.1 * spread)
    classes = {
        "logistic": mercer.KernelLogisticRegression,
        "fisher": mercer.KernelFisherDiscriminant,
        "parzen": mercer.ParzenClassifier,
        "perceptron": mercer.KernelPerceptron,
    }
    return classes[name](kernel=kernel)


def _has_probability(estimator: AfterSearch) -> bool:
    return (
        estimator.name == "logistic"
        if not hasattr(estimator, "model_")
        else hasattr(estimator.model_, "predict_proba")
    )


class AfterSearch(BaseEstimator):
    """A learner by name, with the kernel that a search chose.

    Parameters
    ----------
    search : an `mercer.selection.AutoKernelClassifier` or `AutoKernelRegressor`
    name : one of ``LEARNERS``
    kernel : what the search is to choose from

    Attributes
    ----------
    model_, kernel_, expansion_, report_ : the learner, and its own
    trials_, best_score_, search_report_ : of the search
    """

    def __init__(self, search: Any, name: str, *, kernel: Any = "auto") -> None:
        self.search = search
        self.name = name
        self.kernel = kernel

    def __sklearn_tags__(self) -> Any:
        return with_task(super().__sklearn_tags__(), self.search)

    def fit(self, X: Points, y: Targets, groups: Any = None, times: Any = None) -> Self:
        """Search, with folds that keep groups or times apart, then fit the learner."""
        from mercer.selection.search import Clock

        clock, limit = Clock(self.search.max_time), self.search.max_time
        part = None if limit is None else _SEARCH * limit
        search = clone(self.search).set_params(kernel=self.kernel, max_time=part)
        search.fit(X, y, groups, times)
        self.trials_, self.best_score_ = search.trials_, search.best_score_
        self.search_report_ = search.report_
        model = _estimator(self.name, search.kernel_, np.asarray(y))
        if limit is not None and "max_time" in model.get_params():
            model.set_params(max_time=max(clock.left, _LEAST_SECONDS))
        self.model_ = model.fit(X, y)
        self.kernel_ = self.model_.kernel_
        self.expansion_ = getattr(self.model_, "expansion_", None)
        self.report_ = getattr(self.model_, "report_", None)
        if hasattr(self.model_, "classes_"):
            self.classes_ = self.model_.classes_
        return self

    def predict(self, X: Points) -> np.ndarray:  # (n,)
        """The predictions of the learner."""
        check_is_fitted(self)
        return np.asarray(self.model_.predict(X))

    @available_if(_has_probability)
    def predict_proba(self, X: Points) -> np.ndarray:  # (n, classes)
        """The probabilities of the learner."""
        check_is_fitted(self)
        return np.asarray(self.model_.predict_proba(X))
