r"""Support vector classification, with a penalty C or with a part ν of the points inside the margin."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from mercer.data import points as data
from mercer.data.types import ClassWeight, Points, Seed, Targets, Weights
from mercer.errors import InputError
from mercer.estimators.shared.classes import Problems
from mercer.estimators.shared.parameters import flag, learner
from mercer.estimators.shared.support import Dual, Setup, unit_of, unit_penalty
from mercer.estimators.shared.support_classes import SupportVotesMixin
from mercer.estimators.shared.support_parameters import PART, PENALTY
from mercer.kernels.parameters import choice
from mercer.report import Journal, Plan
from mercer.solvers.control import Control
from mercer.solvers.svm import calibration
from mercer.solvers.svm.hard_margin import separate
from mercer.solvers.svm.problems import Machine, Task, c_svc, fit, nu_svc
from mercer.solvers.svm.warm import warm


@learner
class SupportClassifier(SupportVotesMixin, BaseEstimator):
    """What SVC and NuSVC share: they say what a problem of two classes is."""

    _: KW_ONLY
    probability: bool = flag(False)
    class_weight: ClassWeight = None
    decision_function_shape: str = choice("ovr", ["ovr", "ovo"])
    break_ties: bool = flag(False)
    random_state: Seed = None
    multi_class: str = choice("ovo", ["ovo", "ovr"])

    def fit(self, X: Points, y: Targets, sample_weight: Weights = None) -> Self:
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
        setup = self._set_up(points, self._dual(weight, problems))
        with self._control_of(points, codes, weight, self.kernel_) as control:
            machines = self._solve(setup, problems, weight, counted, control)
            self._by_pairs = by_pairs
            self._read(points, original, machines, problems, setup.dual)
            self.__dict__.pop("slopes_", None)  # They are those of an earlier fit.
            if self.probability:
                self.slopes_ = self._slopes(setup, machines, problems, counted, control, journal)
        self._finish(journal, setup, points, machines, control.total_seconds)
        return self

    def plan(self, X: Points, y: Targets = None) -> Plan:
        """What ``fit(X, y)`` would do: solver, precision, memory, time, and why. Nothing is fitted."""
        probe = clone(self)
        points, _, weight = probe._prepare(X, "no_validation", None)
        codes, classes = np.zeros(len(weight), np.intp), 2
        if y is not None:
            codes = np.sort(probe._encode(np.asarray(y)))
            classes = len(probe.classes_)
        problems = Problems(codes, classes, probe.multi_class == "ovo")
        return probe._set_up(points, probe._dual(weight, problems)).plan

    def _dual(self, weight: np.ndarray, problems: Problems) -> Dual:
        """What the dual problem is."""
        raise NotImplementedError

    def _solve(
        self, setup: Setup, problems: Problems, weight: np.ndarray, counted: np.ndarray, control: Control
    ) -> list[Machine]:
        """The machine of each problem; ``counted`` are weights of points, without those of classes."""
        raise NotImplementedError

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

    def _read(
        self, points: Points, original: np.ndarray, machines: list[Machine], problems: Problems, kept: Dual
    ) -> None:
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
            if kept.nu is None:
                self._keep_best(points, machines, problems, W)
            self.intercept_ = np.array([machine.intercept for machine in machines]) - self._offsets(W)
        intercept = self.intercept_
        one = len(machines) == 1
        self._set_expansion(points, chosen, coef[:, 0] if one else coef, intercept[0] if one else intercept)
        with np.errstate(divide="ignore", invalid="ignore"):
            margin = 2 / np.sqrt(np.array([machine.square for machine in machines]))
        self.margin_ = float(margin[0]) if one else margin
        self.n_iter_ = np.array([machine.iterations for machine in machines], np.int32)


@learner
class SVC(SupportClassifier):
    r"""Classification by f(x) = Σᵢ yᵢαᵢ k(xᵢ, x) + b with a margin: the support vector machine.

    For two classes, y = ±1, f minimises

        ½ ‖f‖² + C Σᵢ wᵢ max(0, 1 - yᵢ f(xᵢ))

    with ‖f‖² = αᵀKα, in which b has no part. More classes are taken in pairs that vote, or each against the
    rest. The model is the one scikit-learn's SVC finds, with the same parameters and attributes; other
    defaults are those of ``cache_size`` and ``probability``, and a weight counts observations in γ = "scale"
    and "balanced" too.

    Parameters
    ----------
    C : weight of the errors against ‖f‖²; ``float("inf")`` for the hard margin, no errors at all
    kernel : a Kernel such as ``Gaussian(sigma="median")``, one of "rbf", "linear", "poly", "sigmoid",
        "laplacian", "cosine", "chi2", "min", "precomputed", or a function: of two points, or of two sets of
        points, for which it returns a matrix, as in scikit-learn (it is tried on the first three)
    degree : whole number, for "poly"
    gamma : number, "scale" or "auto": γ of a kernel given by name
    coef0 : number, for "poly" and "sigmoid"
    shrinking : whether points that stay at a bound are left aside meanwhile
    probability : whether ``predict_proba`` is wanted, whose largest is ``predict``; nothing is fitted again
    tol : by how much the conditions of optimality may be violated, in units of f
    cache_size : megabytes of kernel values that are kept, at most; by default a quarter of the memory budget,
        which is never exceeded
    class_weight : None, "balanced", or a dict from labels to weights, which multiply C
    verbose : True for a progress bar
    max_iter : steps for each problem of two classes, at most; -1 for LIBSVM's limit, ten million or a hundred
        per variable, whichever is more
    decision_function_shape : "ovr" for a column per class, "ovo" for one per pair, where classes are taken in
        pairs
    break_ties : whether equal numbers of votes are decided by how clear they were, not by the order of the
        classes
    random_state : not used: nothing is random
    multi_class : "ovo", every pair of classes; or "ovr", every class against the rest. All share computed
        kernel values
    average : whether C is for the mean of the errors: (C/n) Σᵢ, with Σ wᵢ for n where there are weights:
        that of all points, also where a problem is about two of several classes
    precision : of kernel values, "float32", "float64", or "auto": float32 where its rounding is below ``tol``
    warm_start : whether a fit starts from the solution of the last one, brought within the new bounds.
        It saves steps, as a rule, when the points are the same, in the same order, and C or little else has
        changed; what is found is the same, to within ``tol``. A last solution that does not fit is not used
    max_time, progress, checkpoint, resume : control over a long run: see `estimators.shared.iterative`
    fit_intercept : whether f has an intercept b; without it b = 0, and the dual has no Σᵢ yᵢαᵢ = 0

    Attributes
    ----------
    classes_ : (classes,) the labels
    support_, support_vectors_, n_support_ : the xᵢ with αᵢ > 0: positions in X, themselves, numbers per class
    dual_coef_ : (classes - 1, support vectors) yᵢαᵢ, laid out as in scikit-learn; (classes, …) for "ovr"
    intercept_ : b of each problem of two classes
    coef_ : weights of the features, for kernel="linear"
    margin_ : 2/‖f‖, the width of the margin; one per problem where there are several; inf where f is constant
    dual_gap_ : how far the objective is from its minimum, at most, the rounding of kernel values included;
        one per problem. NaN, with a warning, where the kernel is not positive definite on the points: there
        may be many minima, and nobody knows which of them was found; and, without one, where a kernel that
        is not proved has more than the 200 points that are looked at
    kkt_violation_ : by how much the conditions of optimality are violated, at most, rounding included; one
        per problem
    expansion_ : f, an Expansion on the support vectors; one column of ``coef`` per problem
    class_weight_, fit_status_, shape_fit_ : as in scikit-learn
    slopes_ : (problems, 2) if probability=True: the class for which f > 0 has P = 1/(1 + exp(-s f)), with s
        the first slope where f < 0, the second where f > 0
    n_iter_ : steps made, for each problem
    report_ : how the fit went
    kernel_ : the kernel with its parameters taken from the data
    n_features_in_, feature_names_in_ : as in scikit-learn, when X is a table

    Examples
    --------
    XOR, which no line separates, with the quadratic kernel: f(x) = x₁x₂, and the margin 2/‖f‖ = 2√2.

    >>> from mercer import SVC, Polynomial
    >>> X, y = [[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]], [1, -1, 1, -1]
    >>> model = SVC(kernel=Polynomial(2, c=0), C=float("inf")).fit(X, y)
    >>> model.decision_function([[2.0, 3.0]]), round(model.margin_, 4)
    (array([6.]), 2.8284)
    """

    _: KW_ONLY
    C: float = PENALTY
    average: bool = flag(False)
    fit_intercept: bool = flag(True)

    def path(self, X: Points, y: Targets, Cs: Any, sample_weight: Weights = None) -> list[Self]:
        """Fitted estimators for each of ``Cs``, in order, each from the solution of the last, on one Gram."""
        return self._path(X, y, Cs, sample_weight)

    def _dual(self, weight: np.ndarray, problems: Problems) -> Dual:
        return Dual(
            problems.variables,
            unit_penalty(self.C, weight, self.average) * float(weight.max()),
            C=self.C,
            problems=len(problems),
            sums_to_zero=bool(self.fit_intercept),
            afterwards=calibration.bytes_of(len(weight)) if self.probability else 0,
        )

    def _solve(
        self, setup: Setup, problems: Problems, weight: np.ndarray, counted: np.ndarray, control: Control
    ) -> list[Machine]:
        def make(C: float, which: Iterable[int]) -> list[Task]:
            return [
                c_svc(problems.signs(p), C * weight[problems.points(p)], problems.segment(p), b)
                for p in which
            ]

        b, options = bool(self.fit_intercept), {**setup.options, "bounds": problems.bounds}
        if setup.dual.is_hard:
            unit = unit_of(setup.gram)
            return separate(setup.gram, make, len(problems), unit, control=control, **options)
        tasks = make(unit_penalty(self.C, weight, self.average), range(len(problems)))
        return fit(setup.gram, self._warmed(tasks), control=control, **options)


@learner
class NuSVC(SupportClassifier):
    r"""Classification with a margin that at most a part ν of the points is inside of.

    For two classes, y = ±1, f = Σᵢ yᵢαᵢ k(xᵢ, ·) + b and its margin r minimise, up to the scale of f,

        ½ ‖f‖² - ν W r + Σᵢ wᵢ max(0, r - yᵢ f(xᵢ)),      W = Σᵢ wᵢ

    and f/r is returned: that of an SVC with C = 1/r. At most νW of the weight has yᵢ f(xᵢ) < 1, and at least
    νW belongs to support vectors. ν can be at most twice the share of the smaller class. Parameters and
    attributes are those of scikit-learn's NuSVC, and what SVC has besides.

    Parameters
    ----------
    nu : ν, in (0, 1]
    class_weight : None, "balanced", or a dict from labels to weights: these multiply the C = 1/r of the model
        without them, which is then fitted as an SVC (in scikit-learn they are ignored)
    kernel, degree, gamma, coef0, shrinking, probability, tol, cache_size, verbose : see SVC
    max_iter, decision_function_shape, break_ties, random_state, multi_class, precision : see SVC
    warm_start : see SVC; the last solution is scaled to the sums that ν asks for
    max_time, progress, checkpoint, resume : control over a long run: see `estimators.shared.iterative`

    Attributes
    ----------
    classes_, support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_ : see SVC
    class_weight_, fit_status_, shape_fit_, slopes_, margin_, kkt_violation_ : see SVC
    expansion_, report_, kernel_ : see SVC
    n_iter_ : steps made, for each problem; with class weights those of both fits
    dual_gap_ : of the problem above
    n_features_in_, feature_names_in_ : as in scikit-learn, when X is a table

    Examples
    --------
    >>> from mercer import NuSVC
    >>> X, y = [[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]], [1, 1, 2, 2]
    >>> model = NuSVC(nu=0.5, kernel="linear").fit(X, y)
    >>> model.predict([[-0.8, -1.0]]), model.coef_
    (array([1]), array([[0.5, 0.5]]))
    """

    _: KW_ONLY
    nu: float = PART

    def _dual(self, weight: np.ndarray, problems: Problems) -> Dual:
        return Dual(
            problems.variables,
            float(weight.max()),
            nu=self.nu,
            problems=len(problems),
            afterwards=calibration.bytes_of(len(weight)) if self.probability else 0,
        )

    def _one_class_left(self) -> str:
        return f"specified nu is infeasible: nu={self.nu}, and {super()._one_class_left()}"

    def _solve(
        self, setup: Setup, problems: Problems, weight: np.ndarray, counted: np.ndarray, control: Control
    ) -> list[Machine]:
        tasks = []
        for p in range(len(problems)):
            signs, upper = problems.signs(p), counted[problems.points(p)]
            tasks.append(nu_svc(signs, upper, self._feasible(signs, upper), problems.segment(p)))
        gram, options = setup.gram, {**setup.options, "bounds": problems.bounds}
        if self.class_weight is None:
            return fit(gram, self._warmed(tasks), control=control, **options)
        plain = fit(gram, self._warmed(tasks), control=control.inner(), **options)
        penalised = []
        for p, machine in enumerate(plain):
            here = problems.points(p)
            penalty = float((machine.hi - machine.lo).max() / counted[here].max())
            task = c_svc(problems.signs(p), penalty * weight[here], problems.segment(p))
            penalised.append(warm(task, machine.coef, machine.square))
        machines = fit(gram, penalised, control=control, **options)
        return [
            replace(machine, iterations=machine.iterations + first.iterations)
            for machine, first in zip(machines, plain, strict=True)
        ]

    def _feasible(self, signs: np.ndarray, upper: np.ndarray) -> float:
        """ν, if the smaller class has enough points for it."""
        most = 2 * float(min(upper[signs > 0].sum(), upper[signs < 0].sum()) / upper.sum())
        if self.nu > most * (1 + 1e-12):
            raise InputError(
                f"specified nu is infeasible: nu={self.nu}, and with two classes of such sizes it can be at "
                f"most {most:.4g}, twice the share of the smaller class; lower nu, or use SVC"
            )
        return min(self.nu, most)
