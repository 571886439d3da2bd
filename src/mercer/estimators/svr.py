r"""Support vector regression, with a tube of width ε, or one that leaves a part ν of the points outside."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from mercer.data.types import Points, Targets, Weights
from mercer.estimators.shared.parameters import flag, learner
from mercer.estimators.shared.support import Dual, Setup, unit_of, unit_penalty
from mercer.estimators.shared.support_parameters import FINITE_PENALTY, PART, PENALTY
from mercer.estimators.shared.support_report import SupportReportMixin
from mercer.kernels.parameters import nonnegative
from mercer.report import Journal
from mercer.solvers.control import Control
from mercer.solvers.svm.hard_margin import separate
from mercer.solvers.svm.problems import Machine, fit, nu_svr, svr


@learner
class _SupportRegressor(SupportReportMixin, RegressorMixin, BaseEstimator):
    """What SVR and NuSVR share."""

    _: KW_ONLY
    C: float = PENALTY
    average: bool = flag(False)

    def fit(self, X: Points, y: Targets, sample_weight: Weights = None) -> Self:
        """Learn from the points X, their targets y, and weights of the points."""
        journal = Journal()
        points, y, weight = self._prepare(X, y, sample_weight, y_numeric=True)
        points, original, weight = self._counted(points, weight)
        y = np.asarray(y, dtype=np.float64)[original]
        setup = self._set_up(points, self._dual(weight))
        with self._control_of(points, y, weight, self.kernel_) as control:
            machine = self._solve(setup, y, weight, control)
        self._read_one(points, original, machine)
        self._learned(machine)
        self._finish(journal, setup, points, [machine], control.total_seconds)
        return self

    def _upper(self, weight: np.ndarray) -> np.ndarray:
        """The largest |γ| of each point."""
        return unit_penalty(self.C, weight, self.average) * weight

    def _dual(self, weight: np.ndarray) -> Dual:
        raise NotImplementedError

    def predict(self, X: Points) -> np.ndarray:  # (m,)
        """f(x) for every row of X."""
        return self._values_at(X)

    def path(self, X: Points, y: Targets, Cs: Any, sample_weight: Weights = None) -> list[Self]:
        """Fitted estimators for each of ``Cs``, in order, each from the solution of the last, on one Gram."""
        return self._path(X, y, Cs, sample_weight)

    def _solve(self, setup: Setup, y: np.ndarray, weight: np.ndarray, control: Control) -> Machine:
        raise NotImplementedError

    def _learned(self, machine: Machine) -> None:
        """Attributes of the one estimator alone."""


@learner
class SVR(_SupportRegressor):
    r"""Regression by f(x) = Σᵢ γᵢ k(xᵢ, x) + b that does not mind errors below ε.

    f minimises ::

        ½ ‖f‖² + C Σᵢ wᵢ max(0, |yᵢ - f(xᵢ)| - ε)

    with ‖f‖² = γᵀKγ, in which b has no part. Parameters and attributes are those of scikit-learn's SVR;
    ``cache_size`` has another default, and a weight counts observations in γ = "scale" too.

    Parameters
    ----------
    kernel, degree, gamma, coef0, shrinking, cache_size, verbose, max_iter, precision : see SVC
    tol : by how much the conditions of optimality may be violated, in units of y
    C : weight of the errors against ‖f‖²; ``float("inf")`` for no errors beyond ε at all: the
        flattest function in the tube, or an error that says that there is none
    epsilon : ε, the error that costs nothing, in units of y
    average : whether C is for the mean of the errors: (C/n) Σᵢ, with Σ wᵢ for n where there are weights
    warm_start : whether a fit starts from the solution of the last one, brought within the new bounds.
        It saves steps, as a rule, when the points are the same, in the same order, and C, ε or some targets
        have changed; what is found is the same, to within ``tol``. A last solution that does not fit is not
        used, nor any where C is infinite
    max_time, progress, checkpoint, resume : control over a long run: see `estimators.shared.iterative`
    fit_intercept : whether f has an intercept b; without it b = 0, and the dual has no Σᵢ γᵢ = 0

    Attributes
    ----------
    support_, support_vectors_, n_support_ : the xᵢ with γᵢ ≠ 0: positions in X, themselves, their number
    dual_coef_ : (1, support vectors) γᵢ
    intercept_ : (1,) b
    coef_ : weights of the features, for kernel="linear"
    margin_ : 2/‖f‖; ε/‖f‖ is half the width of the tube in feature space; inf where f is constant
    dual_gap_, kkt_violation_, expansion_, fit_status_, shape_fit_, n_iter_, report_, kernel_ : see SVC
    n_features_in_, feature_names_in_ : as in scikit-learn, when X is a table

    Examples
    --------
    A line through two points, as flat as ε = 0.5 allows: of slope 2 - 2ε = 1.

    >>> from mercer import SVR
    >>> model = SVR(kernel="linear", C=100.0, epsilon=0.5).fit([[0.0], [1.0]], [0.0, 2.0])
    >>> model.predict([[0.0], [1.0], [2.0]]), model.coef_
    (array([0.5, 1.5, 2.5]), array([[1.]]))
    """

    _: KW_ONLY
    epsilon: float = nonnegative(0.1)
    fit_intercept: bool = flag(True)

    def _solve(self, setup: Setup, y: np.ndarray, weight: np.ndarray, control: Control) -> Machine:
        tube = self.epsilon, bool(self.fit_intercept)
        if setup.dual.is_hard:
            spread = float(np.ptp(y)) or 1.0
            [machine] = separate(
                setup.gram,
                lambda C, which: [svr(y, C * weight, *tube)],
                1,
                spread * unit_of(setup.gram),
                spread=spread,
                control=control,
                **setup.options,
            )
            return machine
        tasks = self._warmed([svr(y, self._upper(weight), *tube)])
        return fit(setup.gram, tasks, control=control, **setup.options)[0]

    def _dual(self, weight: np.ndarray) -> Dual:
        largest = float(self._upper(weight).max())
        return Dual(2 * len(weight), largest, self.C, sums_to_zero=bool(self.fit_intercept))


@learner
class NuSVR(_SupportRegressor):
    r"""Regression with a tube that at most a part ν of the points is outside of.

    f = Σᵢ γᵢ k(xᵢ, ·) + b and ε minimise ::

        ½ ‖f‖² + C Σᵢ wᵢ (ν ε + max(0, |yᵢ - f(xᵢ)| - ε))

    Parameters and attributes are those of scikit-learn's NuSVR; ``cache_size`` has another default, and a
    weight counts observations in γ = "scale" too.

    Parameters
    ----------
    nu : ν, in (0, 1]: at most this part of the weight has larger errors than ε, and at least this part
        belongs to support vectors
    C : weight of the errors against ‖f‖²
    kernel, degree, gamma, coef0, shrinking, cache_size, verbose, max_iter, precision : see SVC
    tol, average : see SVR
    warm_start : see SVR; the last solution is scaled to the sums that ν asks for
    max_time, progress, checkpoint, resume : control over a long run: see `estimators.shared.iterative`

    Attributes
    ----------
    epsilon_ : the ε that was found
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, margin_ : see SVR
    dual_gap_, kkt_violation_, expansion_, fit_status_, shape_fit_, n_iter_, report_, kernel_ : see SVC
    n_features_in_, feature_names_in_ : as in scikit-learn, when X is a table

    Examples
    --------
    >>> from mercer import NuSVR
    >>> model = NuSVR(kernel="linear", C=100.0, nu=0.2).fit(
    ...     [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.2, 1.8, 3.0]
    ... )
    >>> model.coef_.round(3), round(model.epsilon_, 3)
    (array([[0.9]]), 0.15)
    """

    _: KW_ONLY
    nu: float = PART
    C: float = FINITE_PENALTY

    def _solve(self, setup: Setup, y: np.ndarray, weight: np.ndarray, control: Control) -> Machine:
        tasks = self._warmed([nu_svr(y, self._upper(weight), self.nu)])
        return fit(setup.gram, tasks, control=control, **setup.options)[0]

    def _dual(self, weight: np.ndarray) -> Dual:
        return Dual(2 * len(weight), float(self._upper(weight).max()), self.C, self.nu)

    def _learned(self, machine: Machine) -> None:
        self.epsilon_ = machine.epsilon
