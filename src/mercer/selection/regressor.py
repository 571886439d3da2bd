r"""Regression with a kernel that was chosen for the data."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from mercer import data
from mercer.estimators.base import KernelMixin
from mercer.estimators.ridge import KernelRegressorMixin, KernelRidge
from mercer.estimators.ridge_cv import KernelRidgeCV
from mercer.kernels.base import Kernel
from mercer.kernels.parameters import Parameter
from mercer.selection.auto import AUTO, AutoMixin
from mercer.selection.scores import left_out
from mercer.selection.search import Clock, Search

__all__ = ["AutoKernelRegressor"]

_EXACT = 3000  # points up to which the last choice of the penalty uses them all
_LEARNED = 3000  # points that the parameters of the winner are learned on


class AutoKernelRegressor(AutoMixin, KernelRegressorMixin, KernelMixin, BaseEstimator):
    _declared: ClassVar[dict[str, Parameter]] = AUTO

    def __init__(
        self,
        kernel: Any = "auto",
        *,
        max_time: float | None = None,
        random_state: Any = 0,
        progress: Any = None,
    ) -> None:
        self.kernel = kernel
        self.max_time = max_time
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any) -> Self:
        clock = Clock(self.max_time)
        X, y = self._validate_fit(X, y, multi_output=True, y_numeric=True)
        Y = y.astype(np.float64).reshape(len(y), -1)
        spread = Y.std(axis=0)
        Z = (Y - Y.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        search = Search(X, Z, left_out(X, Z), clock=clock.part(0.5), seed=self._seed())
        winner = search.run(self._families(X))
        kernel, noise = search.finish(winner, _LEARNED)
        self.trials_ = search.trials
        alpha = self._penalty(kernel, noise, X, Z, search.order)
        self.model_ = KernelRidge(alpha, kernel=kernel).fit(X, y)
        self.kernel_, self.alpha_ = self.model_.kernel_, alpha
        self.expansion_, self.report_ = self.model_.expansion_, self.model_.report_
        self.best_score_ = winner.score.error
        return self

    def _penalty(self, kernel: Kernel, noise: float, X: Any, Z: np.ndarray, order: np.ndarray) -> float:
        alphas = noise * 10.0 ** np.arange(-2.0, 1.1, 0.25)
        which = order[:_EXACT]
        chosen = KernelRidgeCV(alphas, kernel=kernel).fit(data.take(X, which), Z[which])
        return float(chosen.alpha_)
