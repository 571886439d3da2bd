r"""Support vector regression, with a tube of width ε, or one that leaves a part ν of the points outside."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone

from mercer.data import points as data
from mercer.data.types import Points, Targets, Weights
from mercer.estimators.shared.base import flag
from mercer.estimators.shared.support import SupportMixin
from mercer.estimators.shared.support_parameters import FINITE_PENALTY, PART, PENALTY
from mercer.gram import Gram
from mercer.kernels.names import KernelLike
from mercer.kernels.parameters import Parameter, nonnegative
from mercer.report import Journal, Plan
from mercer.solvers.control import Control
from mercer.solvers.svm.hard_margin import separate
from mercer.solvers.svm.problems import Machine, fit, nu_svr, svr

__all__ = ["SVR", "NuSVR"]


class _SupportRegressor(SupportMixin, RegressorMixin, BaseEstimator):
    """What SVR and NuSVR share."""

    average: bool

    def fit(self, X: Points, y: Targets, sample_weight: Weights = None) -> Self:
        """Learn from the points X, their targets y, and weights of the points."""
        journal = Journal()
        points, y, weight = self._prepare(X, y, sample_weight, y_numeric=True)
        points, original, weight = self._counted(points, weight)
        y = np.asarray(y, dtype=np.float64)[original]
        gram, plan = self._set_up(points, self._finite_penalty(weight) * float(weight.max()), 2 * len(y), 1)
        with self._control(type(self).__name__, None, points, y, weight, self.kernel_) as control:
            machine = self._solve(gram, y, weight, control)
        self._read_one(points, original, machine)
        with np.errstate(divide="ignore", invalid="ignore"):
            self.margin_ = float(np.divide(2.0, np.sqrt(machine.square)))
        self._learned(machine)
        self._finish(journal, plan, points, [machine], control.total_seconds)
        return self

    def plan(self, X: Points, y: Targets | None = None) -> Plan:
        """What ``fit(X, y)`` would do: solver, precision, memory, time, and why. Nothing is fitted."""
        probe = clone(self)
        points, _, _ = probe._prepare(X, "no_validation", None)
        n = data.n_points(points)
        return probe._set_up(points, probe._finite_penalty(np.ones(n)), 2 * n, 1)[1]

    def predict(self, X: Points) -> np.ndarray:  # (m,)
        """f(x) for every row of X."""
        return self._values_at(X)

    def path(self, X: Points, y: Targets, Cs: Any, sample_weight: Weights = None) -> list[Self]:
        """Fitted estimators for each of ``Cs``, in order, each from the solution of the last, on one Gram."""
        return self._path(X, y, Cs, sample_weight)

    def _solve(self, gram: Gram, y: np.ndarray, weight: np.ndarray, control: Control) -> Machine:
        raise NotImplementedError

    def _learned(self, machine: Machine) -> None:
        """Attributes of the one estimator alone."""


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

    _declared: ClassVar[dict[str, Parameter]] = {
        "C": PENALTY,
        "epsilon": nonnegative(0.1),
        "average": flag(False),
        "fit_intercept": flag(True),
        **SupportMixin._shared,
    }

    def __init__(
        self,
        *,
        kernel: KernelLike = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        shrinking: bool = True,
        cache_size: Any = "auto",
        verbose: bool = False,
        max_iter: int = -1,
        average: bool = False,
        precision: str = "auto",
        warm_start: bool = False,
        max_time: float | None = None,
        progress: Any = None,
        checkpoint: Any = None,
        resume: bool = False,
        fit_intercept: bool = True,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.average = average
        self.precision = precision
        self.warm_start = warm_start
        self.max_time = max_time
        self.progress = progress
        self.checkpoint = checkpoint
        self.resume = resume
        self.fit_intercept = fit_intercept

    def _solve(self, gram: Gram, y: np.ndarray, weight: np.ndarray, control: Control) -> Machine:
        if float(self.C) == np.inf:
            spread = float(np.ptp(y)) or 1.0
            [machine] = separate(
                gram,
                lambda C, which: [svr(y, C * weight, self.epsilon, bool(self.fit_intercept))],
                1,
                spread * self._unit(gram),
                spread=spread,
                control=control,
                **self._options(),
            )
            return machine
        upper = self._finite_penalty(weight) * weight
        tasks = self._warmed([svr(y, upper, self.epsilon, bool(self.fit_intercept))])
        return fit(gram, tasks, control=control, **self._options())[0]


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

    _declared: ClassVar[dict[str, Parameter]] = {
        "nu": PART,
        "C": FINITE_PENALTY,
        "average": flag(False),
        **SupportMixin._shared,
    }

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: KernelLike = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: Any = "auto",
        verbose: bool = False,
        max_iter: int = -1,
        average: bool = False,
        precision: str = "auto",
        warm_start: bool = False,
        max_time: float | None = None,
        progress: Any = None,
        checkpoint: Any = None,
        resume: bool = False,
    ) -> None:
        self.nu = nu
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.average = average
        self.precision = precision
        self.warm_start = warm_start
        self.max_time = max_time
        self.progress = progress
        self.checkpoint = checkpoint
        self.resume = resume

    def _solve(self, gram: Gram, y: np.ndarray, weight: np.ndarray, control: Control) -> Machine:
        tasks = self._warmed([nu_svr(y, self._finite_penalty(weight) * weight, self.nu)])
        return fit(gram, tasks, control=control, **self._options())[0]

    def _learned(self, machine: Machine) -> None:
        self.epsilon_ = machine.epsilon
