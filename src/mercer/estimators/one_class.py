r"""The region where most of the data are: a support vector machine of one class."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin

from mercer.data.types import Points, Targets, Weights
from mercer.estimators.shared.parameters import learner
from mercer.estimators.shared.support import Dual
from mercer.estimators.shared.support_parameters import PART
from mercer.estimators.shared.support_report import SupportReportMixin
from mercer.report import Journal
from mercer.solvers.svm.problems import fit, one_class, outlying


@learner
class OneClassSVM(SupportReportMixin, OutlierMixin, BaseEstimator):
    r"""A region that holds all but a part ν of the points: f(x) = Σᵢ αᵢ k(xᵢ, x) - ρ > 0 inside.

    f and ρ minimise

        ½ ‖f‖² - ν W ρ + Σᵢ wᵢ max(0, ρ - Σⱼ αⱼ k(xⱼ, xᵢ)),      W = Σᵢ wᵢ

    At most νW of the weight is outside, and at least νW belongs to support vectors. Parameters and attributes
    are those of scikit-learn's OneClassSVM; ``cache_size`` has another default, and a weight counts
    observations in γ = "scale" too.

    Parameters
    ----------
    kernel, degree, gamma, coef0, shrinking, tol, cache_size, verbose, max_iter, precision : see SVC
    nu : ν, in (0, 1]
    warm_start : whether a fit starts from the solution of the last one, scaled to Σᵢ αᵢ = νW.
        It may save steps when the points are the same, in the same order, and ν or some weights have changed
        a little; what is found is the same, to within ``tol``. A last solution that does not fit is not used
    max_time, progress, checkpoint, resume : control over a long run: see `estimators.shared.iterative`

    Attributes
    ----------
    support_, support_vectors_, n_support_ : the xᵢ with αᵢ > 0: positions in X, themselves, their number
    dual_coef_ : (1, support vectors) αᵢ
    intercept_ : (1,) -ρ
    offset_ : (1,) ρ: ``decision_function`` is ``score_samples`` less this
    coef_ : weights of the features, for kernel="linear"
    margin_ : 2/‖f‖; ρ/‖f‖ is the distance of the region's boundary from the origin of feature space
    dual_gap_, kkt_violation_, expansion_, fit_status_, shape_fit_, n_iter_, report_, kernel_ : see SVC
    n_features_in_, feature_names_in_ : as in scikit-learn, when X is a table

    Examples
    --------
    >>> from mercer import OneClassSVM
    >>> X = [[0.0], [0.1], [0.2], [0.3], [0.4], [9.0]]
    >>> model = OneClassSVM(nu=0.2).fit(X)
    >>> model.predict([[0.25], [5.0]]), model.offset_.round(2)
    (array([ 1, -1]), array([0.6]))
    """

    _: KW_ONLY
    nu: float = PART

    def fit(self, X: Points, y: Targets = None, sample_weight: Weights = None) -> Self:
        """Find the region of the points X, with weights; y is not used."""
        journal = Journal()
        points, _, weight = self._prepare(X, "no_validation", sample_weight)
        points, original, weight = self._counted(points, weight)
        setup = self._set_up(points, self._dual(weight))
        with self._control_of(points, weight, self.kernel_) as control:
            tasks = self._warmed([one_class(weight, self.nu, outlying(setup.gram, weight))])
            [machine] = fit(setup.gram, tasks, control=control, **setup.options)
        self._read_one(points, original, machine)
        self.offset_ = -self.intercept_
        self._finish(journal, setup, points, [machine], control.total_seconds)
        return self

    def _dual(self, weight: np.ndarray) -> Dual:
        return Dual(len(weight), float(weight.max()), nu=self.nu, sums_to_zero=False)

    def decision_function(self, X: Points) -> np.ndarray:  # (m,)
        """f(x), positive inside the region."""
        return self._values_at(X)

    def score_samples(self, X: Points) -> np.ndarray:  # (m,)
        """Σᵢ αᵢ k(xᵢ, x): ``decision_function`` before ρ is taken away."""
        return self.decision_function(X) + self.offset_

    def predict(self, X: Points) -> np.ndarray:  # (m,)
        """1 inside the region, -1 outside."""
        return np.where(self.decision_function(X) > 0, 1, -1).astype(np.intp)
