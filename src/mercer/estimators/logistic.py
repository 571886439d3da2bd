r"""Kernel logistic regression as a scikit-learn classifier."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Any, Self

import numpy as np
from scipy.special import expit, log_expit
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from mercer.data import points as data
from mercer.data.types import ClassWeight, Points, Targets, Weights
from mercer.errors import InputError
from mercer.estimators.shared.base import KernelMixin
from mercer.estimators.shared.classes import KernelClassifierMixin, signs
from mercer.estimators.shared.definite import DefiniteMixin
from mercer.estimators.shared.iterative import IterativeMixin
from mercer.estimators.shared.landmarks import LANDMARKS, LandmarkMixin, LandmarksLike, Restricted, facts_of
from mercer.estimators.shared.low_rank import factor_words, low_rank
from mercer.estimators.shared.origin import expanded, moved, origin_of, rounding_of
from mercer.estimators.shared.parameters import KernelParameters, flag, learner
from mercer.expansion import Expansion
from mercer.gram import Gram
from mercer.kernels.parameters import choice, positive, whole
from mercer.report import HOW, Journal, Method, Plan
from mercer.runtime.config import memory_budget, settings
from mercer.solvers.control import Control
from mercer.solvers.landmarks.newton import restricted_newton
from mercer.solvers.linear.precondition import factor_memory, usual_rank
from mercer.solvers.result import Stop
from mercer.solvers.risk.descent import descend
from mercer.solvers.risk.logistic import LogisticRisk, SoftmaxRisk, log_softmax, softmax
from mercer.solvers.risk.newton import newton, require_solvable
from mercer.solvers.risk.objective import DescentResult, Risk

_STEPS = {"newton": 100, "gradient": 10_000}
#: Arrays of the size of α that a solver keeps, about; a test compares the plan with tracemalloc.
_ARRAYS_LIKE_COEF = 30


@learner
class KernelLogisticRegression(
    IterativeMixin,
    DefiniteMixin,
    LandmarkMixin,
    KernelMixin,
    KernelParameters,
    KernelClassifierMixin,
    BaseEstimator,
):
    r"""Probabilities P(y | x) from f(x) = Σᵢ αᵢ k(xᵢ, x) + b.

    For two classes, y = ±1, P(y | x) = 1/(1 + exp(-y f(x))), and f minimises

        C Σᵢ wᵢ log(1 + exp(-yᵢ f(xᵢ))) + ½ ‖f‖²

    with ‖f‖² = αᵀKα, in which b has no part. For more classes every class c has its own function, P(c | x) =
    exp f_c(x) / Σ exp f(x), and they minimise C Σᵢ wᵢ (-log P(yᵢ | xᵢ)) + ½ Σ_c ‖f_c‖². A number may be added
    to every b_c; it is chosen so that Σ_c f_c = 0. With ``kernel="linear"`` this is scikit-learn's
    LogisticRegression.

    Parameters
    ----------
    kernel : a Kernel such as ``Gaussian(sigma="median")``, a function of two points, or one of "rbf",
        "linear", "poly", "sigmoid", "laplacian", "cosine", "chi2", "min", "precomputed"
    gamma, degree, coef0 : numbers of a kernel given by its name, as in scikit-learn
    C : weight of the data against ‖f‖²; large for a close fit
    lam : λ, instead of C: (1/n) Σᵢ log(1 + exp(-yᵢ f(xᵢ))) + λ ‖f‖² is minimised, with Σ wᵢ for n where there
        are weights; C = 1/(2λn)
    fit_intercept : whether there is a b, which is not penalised
    class_weight : None, "balanced", or a dict from labels to weights, as in scikit-learn
    landmarks : None, a number, "auto", points or their positions: f is then an expansion on these few points,
        learned from all of X; see `mercer.estimators.shared.landmarks`
    warm_start : whether a fit on landmarks starts from the function of the last one, as far as the landmarks
        allow: for a path over C, or over their number
    solver : "newton"; or "gradient", accelerated gradient descent, which takes many more and cheaper steps
    tol : how far above its minimum the objective may end, relative to it; a bound is computed on the way
    max_iter : steps at most; by default 100 of Newton's, 10,000 of the gradient's
    max_time, progress, checkpoint, resume : control over a long run: see `estimators.shared.iterative`

    Attributes
    ----------
    classes_ : (classes,) the labels
    expansion_ : f, an Expansion on the training points; for several classes one column of ``coef`` each
    n_iter_ : steps made
    n_products_ : products of K with vectors, which take most of the time
    report_ : how the fit went, with the objective and a bound of its distance from the minimum
    kernel_ : the kernel with its parameters taken from the data
    n_features_in_, feature_names_in_ : as in scikit-learn, when X is a table

    Examples
    --------
    >>> from mercer import Gaussian
    >>> from mercer.estimators.logistic import KernelLogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["low", "high", "high", "low"]
    >>> model = KernelLogisticRegression(kernel=Gaussian(sigma=1.0), C=10.0).fit(X, y)
    >>> model.classes_, model.predict_proba([[1.5], [3.0]]).round(2)
    (array(['high', 'low'], dtype='<U4'), array([[0.86, 0.14], [0.22, 0.78]]))
    >>> model.report_.gap < 1e-8 * model.report_.objective
    True
    """

    _: KW_ONLY
    C: float = positive(1.0)
    lam: float | None = positive(None, optional=True)
    fit_intercept: bool = flag(True)
    class_weight: ClassWeight = None
    landmarks: LandmarksLike = LANDMARKS
    warm_start: bool = flag(False)
    solver: str = choice("newton", ["newton", "gradient"])
    tol: float = positive(1e-8)
    max_iter: int | None = whole(None, optional=True)

    def fit(self, X: Points, y: Targets, sample_weight: Weights = None) -> Self:
        """Learn from the points X, their labels y, and weights of the points."""
        journal = Journal()
        X, y, weight = self._validate_weighted(X, y, sample_weight)
        codes = self._encode(y)
        weight = self._with_class_weight(weight, codes)
        self._require_two_classes(np.bincount(codes, weight))
        plan = self._plan(X, self._count_outputs(codes))
        plan.require_memory("use fewer points")
        scale = self.C if self.lam is None else 1.0 / (2.0 * self.lam * weight.sum())
        require_solvable(scale, "C" if self.lam is None else "lam")
        risk = self._risk(codes, scale * weight)
        if plan.method is Method.LANDMARKS:
            return self._fit_landmarks(plan, X, codes, risk, weight, journal)
        self._require_definite(X, centred=False)
        max_iter = _STEPS[self.solver] if self.max_iter is None else self.max_iter
        with self._control(self.solver, max_iter, X, codes, weight, self.kernel_) as control:
            origin = origin_of(self.kernel_, X, self.fit_intercept)
            points = moved(X, origin)
            result = self._solve(points, risk, plan, max_iter, control)
        self.expansion_ = expanded(self.kernel_, data.copied(points), *_balanced(result), origin)
        self.n_iter_ = result.iterations
        self.n_products_ = result.products
        unit = self._unit()
        self._tell(journal, result, unit)
        self.report_ = journal.report(
            plan,
            result.stopped,
            time=control.total_seconds,
            iterations=result.iterations,
            objective=unit * result.objective,
            gap=unit * result.gap,
        )
        return self

    def predict_proba(self, X: Points) -> np.ndarray:  # (n, classes)
        """P(c | x) for every row x of X and every class c, in the order of ``classes_``."""
        values = self.decision_function(X)
        return np.column_stack([expit(-values), expit(values)]) if values.ndim == 1 else softmax(values)

    def predict_log_proba(self, X: Points) -> np.ndarray:  # (n, classes)
        """log P(c | x), finite where P(c | x) is too small for a number."""
        values = self.decision_function(X)
        if values.ndim == 1:
            return np.column_stack([log_expit(-values), log_expit(values)])
        return log_softmax(values)

    # --- the steps of fit --------------------------------------------------------------------------------

    def _fit_landmarks(
        self, plan: Plan, X: Points, codes: np.ndarray, risk: Risk, weight: np.ndarray, journal: Journal
    ) -> Self:
        """On landmarks, from all of X: f restricted to them."""
        Z, rows = self._landmarks_and_rows(X, weight)
        self._require_definite(Z, centred=False)
        problem = Restricted(self.kernel_, X, Z, self.fit_intercept, rows)
        functions = risk.n_classes if isinstance(risk, SoftmaxRisk) else None
        max_iter = _STEPS["newton"] if self.max_iter is None else self.max_iter
        with self._control("Newton's method", max_iter, X, codes, weight, self.kernel_) as control:
            problem.features.follow = control.show
            result = restricted_newton(
                problem.features,
                risk,
                1.0,
                n_functions=functions,
                tol=self.tol,
                max_iter=max_iter,
                start=problem.start(self._last(), functions),
                control=control,
                accuracy=problem.accuracy,
            )
        coef, intercept = _balanced(result)
        if isinstance(risk, LogisticRisk):
            coef, intercept = coef[:, 0], intercept[0]
        self.expansion_ = Expansion(self.kernel_, problem.points, coef, intercept)
        self.n_iter_, self.n_products_, unit = result.iterations, result.passes, self._unit()
        self._warn_if_stopped(
            journal,
            result.stopped,
            result.iterations,
            f"within {unit * result.gap:.2g} of the smallest objective, at {unit * result.objective:.4g}",
        )
        facts = facts_of(result, unit, problem.bound(result, 1.0))
        self.report_ = journal.report(
            plan, time=control.total_seconds, objective=unit * result.objective, **facts
        )
        return self

    def _last(self) -> Expansion | None:
        """The function of the last fit, where the next is to start from it."""
        return getattr(self, "expansion_", None) if self.warm_start else None

    def _unit(self) -> float:
        """The unit of the objective that was asked for."""
        return 1.0 if self.lam is None else 2.0 * self.lam

    def _require_two_classes(self, share: np.ndarray) -> None:
        if np.count_nonzero(share) < 2:
            raise InputError(
                "only one class has points of positive weight: give points of another class a weight, or "
                "leave out sample_weight and class_weight"
            )

    def _risk(self, codes: np.ndarray, weight: np.ndarray) -> Risk:
        classes = len(self.classes_)
        return LogisticRisk(signs(codes, 2), weight) if classes == 2 else SoftmaxRisk(codes, classes, weight)

    def _solve(self, X: Points, risk: Risk, plan: Plan, max_iter: int, control: Control) -> DescentResult:
        gram = Gram(self.kernel_, X, cache=0)
        K = gram if plan.method is Method.LAZY else gram.dense()
        options: dict[str, Any] = {
            "fit_intercept": self.fit_intercept,
            "n_functions": risk.n_classes if isinstance(risk, SoftmaxRisk) else None,
            "tol": self.tol,
            "max_iter": max_iter,
            "control": control,
            "rounding": rounding_of(self.kernel_, X, settings().dtype),
        }
        if self.solver == "gradient":
            return descend(K, risk, 1.0, accelerate=True, **options)
        near = low_rank(gram, plan.rank, control)
        return newton(K, risk, 1.0, direct=plan.method is Method.CHOLESKY, near=near, **options)

    def _tell(self, journal: Journal, result: DescentResult, unit: float) -> None:
        if result.rounded and result.stopped == Stop.CONVERGED:
            journal.warn(
                f"rounding ended the fit after {result.iterations} steps, with the objective, "
                f"{unit * result.objective:.4g}, within {unit * result.gap:.2g} of the smallest, where "
                f"tol={self.tol} times it was asked for: the model is as good as {settings().dtype} allows; "
                "raise tol, or penalise more (a smaller C)",
                ConvergenceWarning,
            )
            return
        how_far = (
            f"within {unit * result.gap:.2g} of the smallest objective, at {unit * result.objective:.4g}"
        )
        self._warn_if_stopped(journal, result.stopped, result.iterations, how_far)

    def _plan(self, X: Points, n_outputs: int) -> Plan:
        return self._with_landmarks(X, self._exact_plan(X, n_outputs), 25, n_outputs)

    def _exact_plan(self, X: Points, n_outputs: int) -> Plan:
        n = data.n_points(X)
        budget, item = memory_budget(), np.dtype(settings().dtype).itemsize
        vectors = 8 * _ARRAYS_LIKE_COEF * n * n_outputs
        stored, factor = item * n * n, 8 * n * n
        width = data.n_columns(X) or 1
        # A product with few vectors takes as long as memory does.
        product, kernel = max(2.0 * n_outputs, 32.0) * n * n, (2.0 * width + 20.0) * n * n
        if stored + vectors > budget:
            why = (
                "the kernel matrix does not fit the memory budget: its values are computed for every product"
            )
            if self.solver == "gradient":
                return self._newton_plan(Method.LAZY, n, vectors, 500 * (product + kernel), why)
            rank = usual_rank(n, (budget - vectors) // 2, item, n_outputs, is_repeated=True)
            # There are some ten steps, each with an L of its own and six products.
            memory = vectors + factor_memory(n, rank, item, n_outputs) * bool(rank)
            flops = 60 * (product + kernel) + 10.0 * n * (n_outputs * rank) ** 2
            plan = self._newton_plan(Method.LAZY, n, memory, flops, why)
            return replace(plan, rank=rank, why=(*plan.why, factor_words(rank)))
        if self.solver == "gradient":
            why = "the kernel matrix fits the memory budget"
            memory, flops = stored + vectors, 500 * product + kernel
            return Plan(_NAMES[self.solver], n, memory, flops, (why,), iterative=True)
        if n_outputs > 1:
            why = "the functions of several classes are coupled, and the kernel matrix fits the memory budget"
        elif stored + factor + vectors > budget:
            why = "the kernel matrix fits the memory budget, but not a factor of it beside it"
        else:
            why = "the kernel matrix and a factor of it fit the memory budget"
            memory, flops = stored + factor + vectors, 8 * n**3 / 3 + kernel
            return self._newton_plan(Method.CHOLESKY, n, memory, flops, why)
        memory, flops = stored + vectors, 200 * product + kernel
        return self._newton_plan(Method.CONJUGATE, n, memory, flops, why)

    def _newton_plan(self, method: Method, n: int, memory: int, flops: float, why: str) -> Plan:
        words = f"{_NAMES[self.solver]} {HOW[method]}"
        return Plan(words, n, memory, flops, (why,), iterative=True, method=method)


def _balanced(result: Any) -> tuple[np.ndarray, Any]:
    """Coefficients and intercepts; of several functions, those whose sum is zero."""
    coef, intercept = result.coef, result.intercept
    if coef.ndim == 1 or coef.shape[1] == 1:
        return coef, intercept
    return coef - coef.mean(axis=1, keepdims=True), intercept - intercept.mean()


_NAMES = {"newton": "Newton's method", "gradient": "accelerated gradient descent"}
