r"""What support vector classifiers share: classes → problems of two classes, and their answers → labels."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import _ovr_decision_function
from sklearn.utils.validation import check_is_fitted

from mercer.data import points as data
from mercer.errors import InputError
from mercer.estimators.shared.base import flag
from mercer.estimators.shared.classes import KernelClassifierMixin
from mercer.estimators.shared.origin import moved
from mercer.estimators.shared.support import SupportMixin
from mercer.expansion import Expansion
from mercer.gram import Gram
from mercer.kernels.parameters import Parameter, choice
from mercer.report import Journal, Plan
from mercer.runtime.config import memory_budget
from mercer.solvers.control import Control
from mercer.solvers.result import Stop
from mercer.solvers.svm import calibration
from mercer.solvers.svm.level import Slacks
from mercer.solvers.svm.problems import Machine

__all__ = ["Problems", "SupportClassifier"]


def _has_probability(model: Any) -> Literal[True]:
    if not model.probability:
        raise AttributeError("predict_proba is not available when probability=False")
    return True


class _StoppedError(Exception):
    """There is no time for values left out."""


class SupportClassifier(SupportMixin, KernelClassifierMixin, BaseEstimator):
    """For SVC and NuSVC, which say what a problem of two classes is; see the module."""

    _choices: ClassVar[dict[str, Parameter]] = {
        **SupportMixin._shared,
        "probability": flag(False),
        "break_ties": flag(False),
        "decision_function_shape": choice("ovr", ["ovr", "ovo"]),
        "multi_class": choice("ovo", ["ovo", "ovr"]),
    }

    probability: bool
    break_ties: bool
    decision_function_shape: str
    multi_class: str
    class_weight: Any
    #: whether columns of f are pairs of classes, as of the fit; for two classes there is one either way
    _by_pairs: bool
    slopes_: np.ndarray

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from the points X, their labels y, and weights of the points."""
        journal = Journal()
        points, y, counted = self._prepare(X, y, sample_weight)
        codes = self._encode(y)
        weight = self._weigh(counted, codes)
        original = np.flatnonzero(weight > 0)
        self._require_classes(np.bincount(codes[original], minlength=len(self.classes_)))
        by_pairs = self.multi_class == "ovo"
        if len(self.classes_) > 2 and by_pairs:
            original = original[np.argsort(codes[original], kind="stable")]
        if not np.array_equal(original, np.arange(len(codes))):
            points = data.take(points, original)
            codes, weight, counted = codes[original], weight[original], counted[original]
        problems = Problems(codes, len(self.classes_), by_pairs)
        largest = self._largest(weight)
        gram, plan = self._set_up(points, largest, problems.variables, len(problems))
        about = points, codes, weight, self.kernel_
        with self._control(type(self).__name__, None, *about) as control:
            machines = self._solve(gram, problems, weight, counted, control)
            self._by_pairs = by_pairs
            self._read(points, original, machines, problems)
            self.n_iter_ = np.array([machine.iterations for machine in machines], np.int32)
            if hasattr(self, "slopes_"):
                del self.slopes_  # of an earlier fit
            if self.probability:
                self.slopes_ = self._slopes(gram, machines, problems, counted, control, journal)
        self._finish(journal, plan, points, machines, control.total_seconds)
        return self

    def plan(self, X: Any, y: Any = None) -> Plan:
        """What ``fit(X, y)`` would do: solver, precision, memory, time, and why. Nothing is fitted."""
        probe = clone(self)
        points, _, _ = probe._prepare(X, "no_validation", None)
        n = data.n_points(points)
        codes, classes = np.zeros(n, np.intp), 2
        if y is not None:
            codes = np.sort(probe._encode(np.asarray(y)))
            classes = len(probe.classes_)
        problems = Problems(codes, classes, probe.multi_class == "ovo")
        return probe._set_up(points, probe._largest(np.ones(n)), problems.variables, len(problems))[1]

    # --- what was learned -----------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> np.ndarray:  # (m,), (m, classes) or (m, pairs)
        """f(x): for two classes positive for the second; for more a column per class, or per pair.

        With ``decision_function_shape="ovr"`` the values of pairs become a number of votes per class, and
        less than half a vote for how clear they were, as in scikit-learn. A model that was fitted with
        ``multi_class="ovr"`` has no pairs: its columns are classes, whatever the shape.
        """
        values = self._values_at(X)
        if values.ndim == 1 or not self._by_pairs or self.decision_function_shape == "ovo":
            return values
        return _ovr_decision_function(values < 0, -values, len(self.classes_))

    def predict(self, X: Any) -> np.ndarray:  # (m,)
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
    def predict_proba(self, X: Any) -> np.ndarray:  # (m, classes)
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
    def predict_log_proba(self, X: Any) -> np.ndarray:  # (m, classes)
        """log P(class | x); for two classes finite also where P(class | x) is too small for a number."""
        p = self.predict_proba(X)
        if p.shape[1] > 2:
            with np.errstate(divide="ignore"):
                return np.log(p)
        values, slopes = self._values_at(X), self.slopes_[0]
        return np.column_stack(
            [calibration.log_probability(-values, slopes[::-1]), calibration.log_probability(values, slopes)]
        )

    # --- the steps of fit --------------------------------------------------------------------------------

    def _weigh(self, weight: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Weights of points times those of their classes; sets ``class_weight_``."""
        weighted = self._with_class_weight(weight, codes)
        if isinstance(self.class_weight, str):  # "balanced": what it came to
            before, after = (np.bincount(codes, w, minlength=len(self.classes_)) for w in (weight, weighted))
            self.class_weight_ = np.divide(after, before, out=np.zeros_like(after), where=before > 0)
        else:
            self.class_weight_ = compute_class_weight(
                self.class_weight, classes=self.classes_, y=self.classes_[codes]
            )
        return weighted

    def _require_classes(self, sizes: np.ndarray) -> None:
        if np.count_nonzero(sizes) < 2:
            raise InputError(self._one_class_left())
        if not sizes.all():
            lost = self.classes_[sizes == 0].tolist()
            raise InputError(
                f"Invalid input - classes {lost} have no samples of positive weight: give them a weight, or "
                "leave their points out"
            )

    def _one_class_left(self) -> str:
        return (
            "Invalid input - all samples with positive weights belong to the same class: give points of "
            "another class a weight, or leave out sample_weight and class_weight"
        )

    def _largest(self, weight: np.ndarray) -> float:
        """The largest finite bound of a coefficient."""
        raise NotImplementedError

    def _solve(
        self, gram: Gram, problems: Problems, weight: np.ndarray, counted: np.ndarray, control: Control
    ) -> list[Machine]:
        """The machine of each problem; ``counted`` are weights of points, without those of classes."""
        raise NotImplementedError

    def _part(self) -> int:
        """How many points on the margin are taken together, to find values left out."""
        return int(np.clip(np.sqrt(memory_budget() / 96), 2, calibration.PART))

    def _afterwards(self, n: int) -> int:
        if not self.probability:
            return 0
        s = min(n, self._part())
        # K, in both precisions, its factor and the inverse of it; and rows of points inside the margin
        return 8 * s * (4 * s + 2 * min(s, calibration.ROWS))

    def _slopes(
        self,
        gram: Gram,
        machines: list[Machine],
        problems: Problems,
        weight: np.ndarray,
        control: Control,
        journal: Journal,
    ) -> np.ndarray:  # (problems, 2)
        """Slopes of P(first class of a problem) below and above f = 0, from values left out.

        Once it is time to stop, they are from the values at the training points, which cost nothing.
        """
        part = self._part()
        diagonal = gram.diag()
        slopes, flattered = np.empty((len(problems), 2)), 0
        near = np.zeros(gram.shape[0], np.bool_)
        for p, machine in enumerate(machines):
            near[problems.points(p)] |= calibration.involved(machine.coef, machine.values)
        place, shared = np.full(len(near), -1), None
        if not control.stopped and np.count_nonzero(near) <= part:  # one block for all problems
            place[near] = np.arange(np.count_nonzero(near))
            shared = gram.block(np.flatnonzero(near), np.flatnonzero(near))

        for p, machine in enumerate(machines):
            here = problems.points(p)

            def block(rows: np.ndarray, columns: np.ndarray, here: np.ndarray = here) -> np.ndarray:
                if control.stopped:
                    raise _StoppedError
                rows, columns = here[rows], here[columns]
                if shared is None or not (near[rows].all() and near[columns].all()):
                    return gram.block(rows, columns)
                return shared[np.ix_(place[rows], place[columns])]

            try:
                values = calibration.left_out(
                    machine.coef,
                    machine.values,
                    machine.lo,
                    machine.hi,
                    block,
                    diagonal[here],
                    part=part,
                    intercept=self._sums_to_zero,
                )
            except _StoppedError:
                values = machine.values
                flattered += 1
            slopes[p] = calibration.fit_binary(values, problems.signs(p), weight[here])
        if flattered:
            journal.warn(
                f"probabilities of {flattered} of {len(problems)} problems are from values of f at the "
                "training points, which makes them too sure: there was no time for values left out; raise "
                "max_time, or let the fit come to its end",
                ConvergenceWarning,
            )
        return slopes

    def _read(self, points: Any, original: np.ndarray, machines: list[Machine], problems: Problems) -> None:
        """Attributes from the machines of all problems."""
        n, classes = len(original), len(self.classes_)
        coef = np.zeros((n, len(machines)))
        for p, machine in enumerate(machines):
            coef[problems.points(p), p] = machine.coef
        chosen = np.flatnonzero((coef != 0).any(axis=1))
        own = problems.codes[chosen]
        order = np.argsort(own, kind="stable")  # support vectors come class by class
        chosen, own = chosen[order], own[order]
        self.n_support_ = np.bincount(own, minlength=classes).astype(np.int32)
        if not problems.segments:
            dual = coef[chosen].T.copy()
        else:  # row r of a support vector is its problem with the r-th of the other classes
            dual = np.zeros((classes - 1, len(chosen)))
            for p, (i, j) in enumerate(problems.segments):
                first, second = own == i, own == j
                dual[j - 1, first] = coef[chosen[first], p]
                dual[i, second] = coef[chosen[second], p]
        self._set_support(points, chosen, original, dual)
        self.intercept_ = np.array([machine.intercept for machine in machines])
        if self._centre is not None:
            W = self._primal()
            self._keep_best(points, machines, problems, W)
            self.intercept_ = np.array([machine.intercept for machine in machines]) - self._offsets(W)
        intercept = self.intercept_
        one = len(machines) == 1
        self._set_expansion(points, chosen, coef[:, 0] if one else coef, intercept[0] if one else intercept)
        with np.errstate(divide="ignore", invalid="ignore"):
            margin = 2 / np.sqrt(np.array([machine.square for machine in machines]))
        self.margin_ = float(margin[0]) if one else margin

    def _keep_best(self, points: Any, machines: list[Machine], problems: Problems, W: Any) -> None:
        """The b that is best for k(w, ·), and its objective, of machines that rounding has ended.

        Their values are sums of kernel values that cancel, and may differ from those of the w that is kept.
        """
        for p, machine in enumerate(machines):
            if machine.stopped != Stop.ROUNDING or hasattr(self, "nu"):
                continue
            w = W[[p]].toarray() if sparse.issparse(W) else W[[p]]
            here = moved(data.take(points, problems.points(p)), self._centre)
            f = Expansion(self.kernel_, w, np.ones(1))
            constant = f(np.zeros_like(w))[0]
            values, square = f(here) - constant, float(f(w)[0] - constant)
            slacks = Slacks(problems.signs(p) - values, machine.lo, machine.hi)
            b = slacks.best(machine.intercept)
            objective = 0.5 * square + slacks.cost(b)
            machines[p] = replace(
                machine,
                intercept=b,
                values=values + b,
                square=square,
                objective=objective,
                gap=max(objective - machine.objective + machine.gap, 0.0),
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


class Problems:
    """Which points a problem of two classes has, and their signs.

    Two classes are one problem, +1 for the second. More are one for each pair, +1 for the first, and their
    points come class by class; or one for each class, +1 against the rest.
    """

    def __init__(self, codes: np.ndarray, classes: int, by_pairs: bool) -> None:
        self.codes = codes
        self.classes = classes
        #: pairs of classes
        self.segments = list(combinations(range(classes), 2)) if by_pairs and classes > 2 else []
        #: where segments of the points begin and end
        self.bounds = np.array([0, len(codes)])
        if self.segments:
            self.bounds = np.searchsorted(codes, np.arange(classes + 1))

    def __len__(self) -> int:
        return len(self.segments) or (1 if self.classes == 2 else self.classes)

    @property
    def variables(self) -> int:
        return len(self.codes) * (self.classes - 1 if self.segments else len(self))

    def segment(self, p: int) -> tuple[int, ...]:
        return self.segments[p] if self.segments else (0,)

    def points(self, p: int) -> np.ndarray:
        b = self.bounds
        return np.concatenate([np.arange(b[s], b[s + 1]) for s in self.segment(p)])

    def signs(self, p: int) -> np.ndarray:
        if self.segments:
            return np.repeat([1.0, -1.0], np.diff(self.bounds)[list(self.segments[p])])
        return np.where(self.codes == (1 if self.classes == 2 else p), 1.0, -1.0)
