r"""Classification with a kernel that was chosen for the data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from mercer.data import points as data
from mercer.data.apart import Apart, apart_of
from mercer.data.types import Points, Targets
from mercer.errors import quietly
from mercer.estimators.logistic import KernelLogisticRegression
from mercer.estimators.shared.base import KernelMixin
from mercer.estimators.shared.classes import KernelClassifierMixin, signs
from mercer.estimators.svc import SVC
from mercer.expansion import Expansion
from mercer.kernels.parameters import Parameter
from mercer.report import Journal, Plan, Report
from mercer.runtime.clock import now
from mercer.selection.auto import AUTO, AutoMixin
from mercer.selection.families import widened
from mercer.selection.landmarks import held_out_points, on_landmarks
from mercer.selection.race import race
from mercer.selection.scores import MachineErrors
from mercer.selection.search import Clock, Search, Trial, affordable_points
from mercer.solvers.result import Stop

#: points times L-BFGS iterations of a trial: few, for the evidence of labels as ±1 is not what is scored
_TRIAL_WORK = 8000
_POINTS_LEARNED_ON = 2000  # points that the parameters of the winner are learned on
_POINTS_COMPARED_ON = 1280  # points on which the winner is compared with what it was before
_TIME_POWER = 2.2  # Learning and comparing take a time that grows with the number of points to this power.
#: The winner learns on more points and races its widths in this share of the time that the search leaves; in
#: less where there are so many points that the last fit gains more from taking them.
_SHARE_FOR_THE_WINNER, _SHARE_OF_MANY, _MANY_POINTS = 0.7, 0.5, 20_000
#: The last fit under a time limit begins with so many points, or with those of the search if these are fewer.
#: Its time grows with their number to this power (1.0 to 1.8 on five tables of 20,000 to 45,000 rows), and is
#: so many times longer than expected at times. It is repeated on more points, where the time that is left
#: allows for so many times as many, at least; it takes at most so many times as many.
_FIRST_FIT_POINTS, _FIT_POWER, _LONGER = 2000, 1.8, 1.3
_LEAST_GROWTH, _MOST_GROWTH = 1.5, 4.0
_LEAST_SECONDS = 0.3  # The last fit has this time, however little is left.
#: Without a time limit a machine of up to so many points is exact, however long that takes; the last fit of
#: more points has so many seconds.
_EXACT_POINTS, _PATIENCE = 100_000, 600.0
#: A pair of classes takes so many seconds, however few its points; all may take this share of the time left.
_SECONDS_PER_PAIR, _SHARE_FOR_PAIRS = 3e-4, 0.25
#: A nat of evidence per point counts as this error: the folds of a few hundred points alone mislead.
_ERRORS_PER_NAT = 1.5
#: The widths of the winner are multiplied by these, to choose among them together with C.
_WIDTH_FACTORS = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0)


class AutoKernelClassifier(AutoMixin, KernelClassifierMixin, KernelMixin, BaseEstimator):
    r"""A support vector machine with a kernel, its parameters and C chosen for the data.

    Kernels are learned by gradient steps on the evidence (`mercer.selection.evidence`), of the labels as ±1,
    and compared by the errors of support vector machines over five folds of points that they were not learned
    from; see `mercer.selection.search`. About the width of the winner, and of those close to it where there
    are few points, some widths are compared together with C.

    Parameters
    ----------
    kernel : "auto" for the default list on vectors; a kernel, or a list of kernels, on anything: their
        parameters with derivatives are learned, from where they are
    max_time : seconds for all of it, about; the search among kernels takes half of them at most. Without it
        the last fit is exact, but of more than 100,000 points it has ten minutes
    random_state : seed of the cut into points to learn on and to score on
    progress : as everywhere

    Attributes
    ----------
    trials_ : every kernel that was tried, with its score
    model_ : the SVC; of very many points in little time a KernelLogisticRegression on landmarks
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

    model_: SVC | KernelLogisticRegression
    trials_: list[Trial]
    expansion_: Expansion
    report_: Report

    def fit(self, X: Points, y: Targets, groups: Any = None, times: Any = None) -> Self:
        """Choose and fit on the points X and their labels y.

        Parameters
        ----------
        X, y : points and labels
        groups : a value for each point: kernels and C are compared by folds of whole groups, at least four
        times : numbers, dates or texts such as 2026-01-31, one for each point: folds are parts of the later
            half of the points, each predicted from all points before it
        """
        journal = Journal()
        X, labels = self._validate_fit(X, y)
        self._require_points(X)
        codes = self._encode(labels)
        apart = apart_of(groups, times, len(codes))
        Y = signs(codes, len(self.classes_)).astype(np.float64).reshape(len(codes), -1)
        clock = Clock(self.max_time)

        def score_of(points: Points, rows: np.ndarray) -> MachineErrors:
            belongs = None if apart is None else apart.take(rows)
            return MachineErrors(points, codes[rows], self._seed(), apart=belongs)

        search, best = self._search(X, Y, score_of, clock, journal, _TRIAL_WORK, apart)
        if search.stopped != Stop.INTERRUPTED:
            search.clock = clock.part(_SHARE_OF_MANY if len(labels) > _MANY_POINTS else _SHARE_FOR_THE_WINNER)
        finalists = self._finalists(best, len(search.order))
        found: list[Trial] = []
        for trial in finalists:
            if found and search.clock.is_over:
                break
            found.append(self._last_choice(trial, search))
        last = self._best(found, search)
        chosen_later = [trial for trial in found if trial not in search.trials]
        self.trials_ = [trial.shown for trial in (*search.trials, *chosen_later)]
        self.C_ = last.score.penalty
        self.model_ = self._fit_last(X, labels, last.shown, search, clock, journal, apart)
        self.C_ = self.model_.C
        self.kernel_, self.expansion_ = self.model_.kernel_, self.model_.expansion_
        report = self.model_.report_
        self.report_ = journal.report(report.plan, Stop.worst([search.stopped, report.stopped]))
        self.best_score_ = finalists[found.index(last)].score.error
        return self

    def _fit_last(
        self,
        X: Points,
        y: np.ndarray,
        trial: Trial,
        search: Search,
        clock: Clock,
        journal: Journal,
        apart: Apart | None,
    ) -> SVC | KernelLogisticRegression:
        """The machine of all points; with a time limit, or of very many, of as many as there is time for.

        A machine of many points that is cut short is worse than a whole one of fewer; the first one, of few
        points, is never cut short. Where there is no time for a half of the points, all of them are learned
        from on landmarks, unless that errs more. Where the pairs of classes alone would take too long, each
        class is set against the rest.
        """
        n, kernel, order = len(y), trial.kernel, search.rows
        if self.max_time is None:
            if n <= _EXACT_POINTS:
                return SVC(kernel=kernel, C=self.C_).fit(X, y)
            clock = Clock(_PATIENCE)
        held = held_out_points(n)
        if apart is not None:  # What landmarks are compared on is at the end.
            order, held = apart.held(order, held, self._seed())
        seen = order if apart is None else order[: n - held]
        _, first = np.unique(y[seen], return_index=True)
        # This puts some points of each class first.
        order = np.concatenate([order[first], np.delete(order, first)])
        points = min(n, max(min(_FIRST_FIT_POINTS, trial.points), 2 * len(first)))
        pairs = len(first) * (len(first) - 1) // 2
        against = "ovr" if pairs > 1 and _SECONDS_PER_PAIR * pairs > _SHARE_FOR_PAIRS * clock.left else "ovo"
        model: SVC | None = None
        fitted, is_exact = 0, False
        while True:
            began = now()
            which = np.sort(order[:points])
            some = (X, y) if points == n else (data.take(X, which), y[which])
            limit = None if model is None else max(clock.left, _LEAST_SECONDS)
            machine = SVC(kernel=kernel, C=self.C_, multi_class=against, max_time=limit)
            another = machine.fit(*some) if model is None else quietly(machine.fit, *some)
            if model is None or another.report_.stopped != Stop.MAX_TIME:
                model, fitted = another, points
            seconds = now() - began
            if points == n or another is not model or model.report_.stopped == Stop.INTERRUPTED:
                break
            if not is_exact and points <= n - held and 2 * points * _growth(clock, seconds) < n:
                found, stopped = on_landmarks(X, y, model, order, clock, self._seed(), held)
                search.stopped = Stop.worst([search.stopped, stopped])
                if found is not None:
                    journal.notes.append(
                        f"the last fit is on {len(found.expansion_):,} landmarks, and from all {n:,} points"
                    )
                    return found
                if stopped == Stop.INTERRUPTED:
                    break
            is_exact = True
            growth = _growth(clock, seconds)
            if growth < _LEAST_GROWTH:
                break
            points = int(min(n, min(growth, _MOST_GROWTH) * points))
        if fitted < n:
            self._tell_of_fewer(fitted, n, journal)
        return model.set_params(max_time=None)

    def _finalists(self, best: list[Trial], n: int) -> list[Trial]:
        """The winner; where points are few, and tell little, also every trial with as few parameters.

        A parameter for each column must then be worth it: half a standard error better than without.
        """
        if not self._are_few(best[0], n):
            return best[:1]
        plain = [trial for trial in best if not trial.per_column]
        error = plain[0].score.error if plain else 1.0
        needed = error - 0.5 * np.sqrt(error * (1 - error) / n)
        return [t for t in best if t.per_column] if best[0].score.error < needed else plain

    @staticmethod
    def _are_few(trial: Trial, n: int) -> bool:
        """Whether a trial was learned on one half of all points and scored on the other."""
        return n < 2 * trial.learned_on

    def _last_choice(self, trial: Trial, search: Search) -> Trial:
        """The best width about that of a trial, and its C."""
        if search.stopped == Stop.MAX_TIME and search.clock.is_over:
            return trial
        began, n = now(), len(search.order)
        has_width = trial.family.has_width
        is_width = has_width and len(trial.family.names) == 1 and not trial.per_column
        if self._are_few(trial, n) or not is_width:  # A width of many points races in any case.
            trial = self._relearned(trial, search)
        widths = _WIDTH_FACTORS if has_width and not search.clock.is_over else (1.0,)
        kernels = [widened(trial.kernel, trial.family.names, width) for width in widths]
        score = search.bench.score
        assert isinstance(score, MachineErrors)
        winner = race(score, kernels, search.order[-affordable_points() :], search.clock, search.first)
        return replace(
            trial,
            kernel=kernels[winner.number],
            score=winner.score,
            points=winner.points,
            seconds=now() - began,
        )

    @staticmethod
    def _relearned(trial: Trial, search: Search) -> Trial:
        """The trial with its parameters learned on more points, unless it is then clearly worse.

        The evidence of few points may be best where the kernel tells no points apart, or all. To learn and to
        score twice takes about as long as three trials on as many points.
        """
        longer = max(search.clock.left, 0.0) / (3 * max(trial.seconds, 1e-9))
        points = int(min(_POINTS_LEARNED_ON, trial.learned_on * longer ** (1 / _TIME_POWER)))
        learned = search.finish(trial, points)
        if learned is trial:
            return trial
        which = search.order[-min(_POINTS_COMPARED_ON, points) :]
        before, after = (search.bench.score(one.kernel, one.noise, which).error for one in (trial, learned))
        is_worse = after - before > np.sqrt(before * (1 - before) / len(which))
        return replace(trial, evidence=search.evidence(trial, points)) if is_worse else learned

    @staticmethod
    def _best(found: list[Trial], search: Search) -> Trial:
        """The finalist with the fewest errors; the evidence counts as well where it is of the same points."""
        comparable = all(trial.family.names and np.isfinite(trial.evidence) for trial in found)
        if not comparable or search.clock.is_over:
            return min(found, key=lambda trial: trial.rank)
        return min(
            found, key=lambda trial: (trial.score.error + _ERRORS_PER_NAT * trial.evidence, trial.score.tie)
        )

    def decision_function(self, X: Points) -> np.ndarray:  # (n,) or (n, classes)
        """The values f(x), one column for each of several classes."""
        X = self._validate_new(X)
        return np.asarray(self.model_.decision_function(X))

    def predict(self, X: Points) -> np.ndarray:  # (n,)
        """The class of each point."""
        X = self._validate_new(X)
        return np.asarray(self.model_.predict(X))

    @available_if(lambda model: hasattr(getattr(model, "model_", None), "predict_proba"))
    def predict_set(self, X: Points, coverage: float = 0.9, *, held_out: Any = None) -> np.ndarray:
        """The sets of ``model_``, which has them where it has probabilities (``probability=True``)."""
        if held_out is not None:
            held_out = (self._validate_new(held_out[0]), held_out[1])
        return np.asarray(self.model_.predict_set(self._validate_new(X), coverage, held_out=held_out))

    def _plan(self, X: Points, n_outputs: int) -> Plan:
        return SVC(kernel=self.kernel_)._plan(X, n_outputs)


def _growth(clock: Clock, seconds: float) -> float:
    """How many times as many points as in a fit of so many seconds there is time for."""
    return float((max(clock.left, 0.0) / (_LONGER * max(seconds, 1e-9))) ** (1 / _FIT_POWER))
