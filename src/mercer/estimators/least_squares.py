r"""Kernel least squares as a scikit-learn regressor."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator

from mercer.data import points as data
from mercer.data.types import Points, Targets, Weights
from mercer.estimators.shared.base import KernelMixin
from mercer.estimators.shared.definite import INDEFINITE, DefiniteMixin
from mercer.estimators.shared.landmarks import LANDMARKS, LandmarkMixin, LandmarksLike, Restricted
from mercer.estimators.shared.origin import moved, origin_of, warn_if_lost
from mercer.estimators.shared.parameters import KernelParameters, flag, learner
from mercer.estimators.shared.regressor import KernelRegressorMixin
from mercer.estimators.shared.ridge_plans import dense_plan
from mercer.gram import Gram
from mercer.kernels.parameters import fixed
from mercer.report import Journal, Method, Plan
from mercer.solvers.landmarks.path import RestrictedPath
from mercer.solvers.linear.ridge import minimum_norm


@learner
class KernelLeastSquares(
    KernelRegressorMixin,
    DefiniteMixin,
    LandmarkMixin,
    KernelMixin,
    KernelParameters,
    BaseEstimator,
):
    r"""Regression by minimising Σᵢ wᵢ (yᵢ - f(xᵢ) - b)²; among all such f the one of least norm ‖f‖.

    The limit of kernel ridge for α → 0. K may be singular: eigenvalues up to ``rcond`` times the largest
    count as zero. With a kernel of full rank f goes through all the points, noise included; see KernelRidge.

    Parameters
    ----------
    kernel, gamma, degree, coef0 : as for KernelRidge
    fit_intercept : whether there is a b
    indefinite : "refuse" a K with negative eigenvalues, or "clip" them: take them as zero
    rcond : eigenvalues of K up to rcond · λmax count as zero; by default n ε
    landmarks : None, a number, "auto", points or their positions: f is then the one of least error, and among
        these of least norm, of the functions on these few points; see `mercer.estimators.shared.landmarks`

    Attributes
    ----------
    expansion_, dual_coef_, intercept_, report_, kernel_ : as for KernelRidge
    rank_ : the number of eigenvalues that count

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelLeastSquares, Polynomial
    >>> x = np.array([[-2.0], [-1.0], [0.0], [1.0], [2.0]])
    >>> model = KernelLeastSquares(Polynomial(2, c=1.0)).fit(x, 3 * x[:, 0] ** 2 - x[:, 0] + 2)
    >>> model.rank_, model.predict([[3.0]]).round(6)  # a parabola: two dimensions besides b
    (2, array([26.]))
    """

    _: KW_ONLY
    coef0: float = 1.0
    fit_intercept: bool = flag(True)
    indefinite: str = INDEFINITE
    rcond: float | None = fixed(
        None,
        "a number between 0 and 1",
        lambda v: isinstance(v, int | float | np.floating) and bool(0 <= v < 1),
        "such as 1e-10",
        optional=True,
    )
    landmarks: LandmarksLike = LANDMARKS

    def fit(self, X: Points, y: Targets, sample_weight: Weights = None) -> Self:
        """Fit on the points X, their targets y, (n,) or (n, targets), and their weights."""
        journal = Journal()
        X, y, weight = self._validate_weighted(X, y, sample_weight, multi_output=True, y_numeric=True)
        plan = self._plan(X, 1 if y.ndim == 1 else y.shape[1])
        plan.require_memory(
            "use landmarks, or KernelRidge with a small alpha, which iterates where K does not fit"
        )
        if plan.method is Method.LANDMARKS:
            return self._fit_landmarks(plan, X, y, weight, journal)
        present = np.flatnonzero(weight)
        points, Y, weight = data.take(X, present), y[present], weight[present]
        Y = Y.astype(np.float64).reshape(len(Y), -1)
        self._require_definite(points, self.fit_intercept)
        origin = origin_of(self.kernel_, points, self.fit_intercept)
        points = moved(points, origin)
        warn_if_lost(journal, self.kernel_, points, type(self).__name__)
        gram = Gram(self.kernel_, points, cache=0)
        result = minimum_norm(gram, Y, weight, self.fit_intercept, rcond=self.rcond)
        self._meet(result.clipped, points, journal)
        self._keep(points, result.coef, result.intercept, y.ndim == 1, origin)
        self.rank_ = result.rank
        self.report_ = journal.report(plan)
        return self

    def _fit_landmarks(
        self, plan: Plan, X: Points, y: np.ndarray, weight: np.ndarray, journal: Journal
    ) -> Self:
        """On landmarks, from all of X: f restricted to them."""
        Z = self._landmark_points(X, weight, squared=True)
        self._require_definite(Z, self.fit_intercept)
        warn_if_lost(journal, self.kernel_, Z, type(self).__name__)
        problem = Restricted(self.kernel_, X, Z, self.fit_intercept)
        with problem.telling("least squares on landmarks", passes=2):
            path = RestrictedPath(problem.features, y.astype(np.float64).reshape(len(y), -1), weight)
        coef, intercept, self.rank_ = path.minimum_norm(self.rcond)
        self._keep(problem.points, coef, intercept, y.ndim == 1, None)
        self.report_ = journal.report(plan)
        return self

    def _plan(self, X: Points, n_outputs: int) -> Plan:
        why = ("K may be singular: its eigenvalues tell",)
        exact = dense_plan(Method.EIGENVALUES, data.n_points(X), 10.0, why, 2.2, n_outputs)
        return self._with_landmarks(X, exact, 2, n_outputs, squares=2)
