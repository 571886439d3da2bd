r"""Regression with a kernel that was chosen for the data."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from mercer.data import points as data
from mercer.data.apart import apart_of
from mercer.data.types import Points, Targets
from mercer.errors import quietly
from mercer.estimators.ridge import KernelRidge
from mercer.estimators.shared.base import KernelMixin
from mercer.estimators.shared.landmark_plans import landmark_plan
from mercer.estimators.shared.landmarks import Landmarks
from mercer.estimators.shared.processes import Process
from mercer.estimators.shared.ridge_plans import dense_plan
from mercer.estimators.shared.uncertain import UncertainRegressorMixin, check_coverage, in_percent
from mercer.kernels.parameters import Parameter
from mercer.report import Journal, Method, Plan, Report
from mercer.runtime.clock import now
from mercer.runtime.config import memory_budget
from mercer.selection.auto import AUTO, AutoMixin
from mercer.selection.scores import RidgeErrors, errors_apart, least_left_out
from mercer.selection.search import Clock, Search, Trial, affordable_points
from mercer.solvers.conformal import quantile
from mercer.solvers.result import Stop

_POINTS_LEARNED_ON = 3000  # points that the parameters of the winner are learned on
_POINTS_SCORED_ON = 6000  # points that the last penalty is chosen on
_POINTS_APART = 3000  # the same, where what is left out are groups, or what is later: it takes n³ operations
_PENALTY_FACTORS = 10.0 ** np.arange(-2.0, 1.1, 0.25)  # penalties that are tried, relative to λ
_PENALTIES_TRIED = 5  # the plan expects so many: downhill from that of the search, three at least
_SHARE_FOR_THE_PENALTY = 0.1  # a part of the time that is left
#: The last fit is on landmarks where there are so many, at least; 20 √n of them are enough.
_LEAST_LANDMARKS, _LANDMARKS_PER_ROOT = 500, 20.0
_PASSES = 15  # over the rows, that a fit on landmarks takes, about
_BUSY = 2.0  # A plan for landmarks may take so many times longer, on a machine that is shared.
_LEAST_POINTS = 1000  # The last fit has so many points, however little time and memory is left.
#: A fit of so many points is timed, to correct the plan for this machine, where the last fit is planned to
#: take more than this share of the time that is left.
_POINTS_TIMED, _SHARE_WORTH_TIMING = 2000, 0.1


class AutoKernelRegressor(AutoMixin, UncertainRegressorMixin, KernelMixin, BaseEstimator):
    r"""Kernel ridge regression with a kernel, its parameters and the penalty chosen for the data.

    Kernels are learned by gradient steps on the evidence (`mercer.selection.evidence`), with one length scale
    per column where there are points enough, and compared by exact leave-one-out errors on points that they
    were not learned from; see `mercer.selection.search`. The last fit takes all points: exactly where memory
    and time allow it, else on landmarks; where there is time for neither, some of the points, with a warning.

    Parameters
    ----------
    kernel : "auto" for the default list on vectors; a kernel, or a list of kernels, on anything: their
        parameters with derivatives are learned, from where they are. The weights of a sum,
        ``1.0 * k1 + 1.0 * k2``, are such parameters: that is multiple kernel learning
    max_time : seconds for all of it, about; None for as long as it takes
    random_state : seed of the cut into points to learn on and to score on
    progress : as everywhere

    Attributes
    ----------
    trials_ : every kernel that was tried, with its score
    model_ : the KernelRidge
    kernel_, alpha_, expansion_, dual_coef_, intercept_, noise_variance_, report_ : of that model
    best_score_ : the root of the winner's mean squared error left out in the search, relative to the spread
        of y; not honest of the choice itself (see ``mercer.selection.nested_error``)
    left_out_errors_ : of a fit with groups or times, (m, targets): the sizes of the errors on points that
        were left out with their group, or predicted from what is before, of up to 3,000 points

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.selection import AutoKernelRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (150, 3))
    >>> model = AutoKernelRegressor().fit(X, np.sin(3 * X[:, 0]) + 0.05 * rng.normal(size=150))
    >>> bool(model.best_score_ < 0.2), len(model.trials_)
    (True, 11)
    """

    _declared: ClassVar[dict[str, Parameter]] = AUTO

    model_: KernelRidge
    left_out_errors_: np.ndarray
    trials_: list[Trial]
    report_: Report

    def fit(self, X: Points, y: Targets, groups: Any = None, times: Any = None) -> Self:
        """Choose and fit on the points X and their targets y, (n,) or (n, targets).

        Parameters
        ----------
        X, y : points and targets
        groups : a value for each point: kernels and penalties are compared by errors on whole groups that
            were left out, and intervals are made of these. At least four groups
        times : numbers, dates or texts such as 2026-01-31, one for each point: the same by errors on the
            later half of the points, each part predicted from all points before it
        """
        journal, clock = Journal(), Clock(self.max_time)
        if hasattr(self, "left_out_errors_"):
            del self.left_out_errors_
        X, targets = self._validate_fit(X, y, multi_output=True, y_numeric=True)
        self._require_points(X)
        apart = apart_of(groups, times, len(targets))
        Z = _standardised(targets.astype(np.float64).reshape(len(targets), -1))

        def score_of(points: Points, rows: np.ndarray) -> RidgeErrors:
            return RidgeErrors(points, Z[rows], None if apart is None else apart.take(rows))

        search, (winner, *_) = self._search(X, Z, score_of, clock, journal, apart=apart)
        winner = search.finish(winner, _POINTS_LEARNED_ON)
        self.alpha_, self.kernel_ = self._penalty(winner, search, clock), winner.shown.kernel
        if apart is not None:
            self._is_of_times = apart.is_ordered
            self.left_out_errors_ = self._errors_apart(winner, search, clock, _spread(targets))
        self.model_ = self._fit_last(X, targets, search.rows, clock, journal)
        self.trials_, self.best_score_ = [trial.shown for trial in search.trials], winner.score.error
        self.kernel_, self.expansion_ = self.model_.kernel_, self.model_.expansion_
        self.report_ = journal.report(
            self.model_.report_.plan, search.stopped, objective=self.model_.report_.objective
        )
        return self

    def _penalty(self, winner: Trial, search: Search, clock: Clock) -> float:
        """The best λ about that of the evidence; where one cannot afford the points, that of the search."""
        X, Z = search.bench.X, search.bench.Y
        most = _POINTS_SCORED_ON if search.apart is None else _POINTS_APART
        which = search.order[: min(most, affordable_points())]
        if search.stopped == Stop.INTERRUPTED:
            return winner.score.penalty
        while _penalty_plan(len(which)).seconds > _SHARE_FOR_THE_PENALTY * clock.left:
            which = which[: len(which) * 4 // 5]
            if len(which) < min(winner.points, len(Z)):
                return winner.score.penalty
        penalties, near = winner.noise * _PENALTY_FACTORS, winner.score.penalty
        apart = None if search.apart is None else search.apart.take(which)
        return least_left_out(winner.kernel, data.take(X, which), Z[which], penalties, near, apart)[1]

    def _errors_apart(
        self, winner: Trial, search: Search, clock: Clock, spread: np.ndarray
    ) -> np.ndarray:  # (m, t)
        """The sizes of errors left out at the penalty that was chosen, in the unit of each target."""
        which = search.order[: min(_POINTS_APART, affordable_points())]
        while len(which) > _LEAST_POINTS and (
            _penalty_plan(len(which)).seconds > _SHARE_FOR_THE_PENALTY * clock.left
        ):
            which = which[: len(which) * 4 // 5]
        assert search.apart is not None
        points, Z = data.take(search.bench.X, which), search.bench.Y[which]
        errors = errors_apart(winner.kernel, points, Z, self.alpha_, search.apart.take(which))
        return np.sort(np.abs(errors) * spread, axis=0)

    def predict_interval(self, X: Points, coverage: float = 0.9) -> np.ndarray:  # (n, 2) or (n, 2, targets)
        """The ends of an interval for the target at every row of X; see ``KernelRidge.predict_interval``.

        Of a fit with groups or times it is f(x) ± a quantile of ``left_out_errors_``.
        """
        if not hasattr(self, "left_out_errors_"):
            return super().predict_interval(X, coverage)
        half = quantile(self.left_out_errors_.copy(), check_coverage(coverage))
        mean = np.asarray(self.predict(X))
        half = half[0] if mean.ndim == 1 else half
        return np.stack([mean - half, mean + half], axis=1)

    def _fit_last(
        self, X: Points, y: np.ndarray, order: np.ndarray, clock: Clock, journal: Journal
    ) -> KernelRidge:
        """The last fit: of all points, exactly if that is affordable, else on landmarks; or of some points.

        Half of the points or more, exactly, are worth more than all of them on landmarks.
        """
        n, exact = len(y), self._affordable(X, y, clock)
        model = KernelRidge(self.alpha_, kernel=self.kernel_)
        if exact == n:
            return model.fit(X, y)
        landmarks = self._affordable_landmarks(X, y, exact, clock)
        if 2 * exact < n and landmarks >= _LEAST_LANDMARKS:
            model.set_params(landmarks=Landmarks(landmarks, "pivoted")).fit(X, y)
            used = len(model.expansion_)  # Fewer, where pivots end or some depend on others.
            journal.notes.append(f"the last fit is on {used:,} landmarks, and from all {n:,} points")
            return model
        which = np.sort(order[:exact])
        self._tell_of_fewer(exact, n, journal)
        return model.fit(data.take(X, which), y[which])

    def _affordable_landmarks(self, X: Points, y: np.ndarray, most: int, clock: Clock) -> int:
        """How many landmarks there is memory and time for: 20 √n where there is enough of both."""
        targets = 1 if y.ndim == 1 else y.shape[1]
        M = int(min(most, _LANDMARKS_PER_ROOT * np.sqrt(len(y))))
        while M >= _LEAST_LANDMARKS:
            plan = landmark_plan(X, M, _PASSES, targets, "")
            if plan.memory <= memory_budget() and plan.seconds * _BUSY <= clock.left:
                break
            M = M * 4 // 5
        return M

    def _affordable(self, X: Points, y: np.ndarray, clock: Clock) -> int:
        """How many points the last fit may take: memory grows with their square, time with their cube."""
        n = data.n_points(X)
        plan = self._probe("mixed")._plan(X, 1)
        beside = plan.memory - 4 * n * n  # The factor is in float32.
        by_memory = int(np.sqrt(max(memory_budget() - beside, 0) / 4))
        seconds = plan.seconds
        if seconds > _SHARE_WORTH_TIMING * clock.left > 0:
            seconds *= self._slowness(X, y)
        by_time = n * (max(clock.left, 0.0) / max(seconds, 1e-9)) ** (1 / 3)
        return int(min(n, max(by_memory, _LEAST_POINTS), max(by_time, _LEAST_POINTS)))

    def _slowness(self, X: Points, y: np.ndarray) -> float:
        """How many times longer than planned a fit takes here: of slow kernels, or on a busy machine."""
        some = slice(min(_POINTS_TIMED, len(y)))
        points = data.take(X, np.arange(len(y))[some])
        began = now()
        probe = quietly(KernelRidge(self.alpha_, kernel=self.kernel_, solver="mixed").fit, points, y[some])
        return max(1.0, (now() - began) / max(probe.report_.plan.seconds, 1e-9))

    def interval_guarantee(self, coverage: float = 0.9) -> str:
        """What is guaranteed of ``predict_interval``: the choice of the kernel is not counted."""
        if hasattr(self, "left_out_errors_"):
            return apart_guarantee(self._is_of_times, coverage, len(self.left_out_errors_))
        words = self.model_.interval_guarantee(coverage)
        return f"{words}; kernel and penalty were chosen on the same points, which this does not count"

    def _process(self) -> Process:
        return self.model_._process()

    def _facts(self) -> dict[str, Any]:
        return self.model_._facts()

    def _plan(self, X: Points, n_outputs: int) -> Plan:
        """The plan of the last fit."""
        return self._probe("auto")._plan(X, n_outputs)

    def _probe(self, solver: str) -> KernelRidge:
        probe = KernelRidge(getattr(self, "alpha_", 1.0), kernel=self.kernel_, solver=solver)
        probe.kernel_ = self.kernel_
        return probe


def apart_guarantee(is_of_times: bool, coverage: float, rows: int) -> str:
    """What is known of intervals that are made of errors on what was kept apart, in words."""
    if is_of_times:
        return (
            f"about {in_percent(coverage)} of {rows:,} later rows, each predicted from earlier ones, were "
            "off by less; it is as many of the rows to come if these are like them, and nothing guarantees "
            "that: rows in time are not exchangeable"
        )
    return (
        f"about {in_percent(coverage)} of the rows of new groups are inside, where the groups are "
        f"exchangeable: from the errors on {rows:,} rows whose groups were left out; of one group it may "
        "be fewer, and no bound is proved"
    )


def _spread(targets: np.ndarray) -> np.ndarray:  # (t,)
    """What `_standardised` divides by."""
    Y = targets.astype(np.float64).reshape(len(targets), -1)
    size = np.abs(Y).max(axis=0)
    size = np.where(size > 0, size, 1.0)
    return np.asarray(size * (Y / size).std(axis=0))


def _penalty_plan(n: int) -> Plan:
    """Some factors of K + αI and as many diagonals of its inverse, in memory that is counted already."""
    return dense_plan(Method.CHOLESKY, n, 2 / 3 * _PENALTIES_TRIED, ())


def _standardised(Y: np.ndarray) -> np.ndarray:  # (n, t)
    """Columns of mean 0 and deviation 1, whatever the size of their numbers.

    >>> _standardised(np.array([[1e300], [-1e300]])), _standardised(np.array([[3e-300], [3e-300]]))
    (array([[ 1.],
           [-1.]]), array([[0.],
           [0.]]))
    """
    size = np.abs(Y).max(axis=0)
    Y = Y / np.where(size > 0, size, 1.0)
    spread = Y.std(axis=0)
    return np.asarray((Y - Y.mean(axis=0)) / np.where(spread > 0, spread, 1.0))
