r"""Regularised risk minimisation over the RKHS, with any convex loss and any increasing penalty."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit, log_expit, softmax
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if

from mercer.data import points as data
from mercer.data.types import Points, Targets, Weights
from mercer.errors import InputError
from mercer.estimators.shared.base import KernelMixin, flag
from mercer.estimators.shared.classes import KernelClassifierMixin, signs
from mercer.estimators.shared.definite import DefiniteMixin
from mercer.estimators.shared.iterative import IterativeMixin
from mercer.estimators.shared.low_rank import factor_words, low_rank
from mercer.estimators.shared.origin import expanded, moved, origin_of, rounding_of
from mercer.expansion import Expansion
from mercer.gram import Gram
from mercer.kernels.names import KernelLike
from mercer.kernels.parameters import Parameter, fixed, nonnegative, positive, whole
from mercer.losses import Logistic, Loss, Poisson, as_loss
from mercer.report import HOW, Journal, Method, Plan, Report
from mercer.runtime.config import memory_budget, settings
from mercer.solvers.control import Control
from mercer.solvers.linear.precondition import factor_memory, usual_rank
from mercer.solvers.result import Minimiser, Stop
from mercer.solvers.risk.certificate import RiskResult
from mercer.solvers.risk.multipliers import regularised_risk
from mercer.solvers.risk.newton import require_solvable
from mercer.solvers.risk.penalty import PenaltyResult, any_penalty, as_penalty
from mercer.solvers.several import each

__all__ = ["KernelMachineClassifier", "KernelMachineRegressor"]

#: Arrays of n numbers that the solvers keep, about; a test compares the plan with tracemalloc.
_ARRAYS_PER_POINT = 40


class _KernelMachine(IterativeMixin, DefiniteMixin, KernelMixin):
    """What the classifier and the regressor share; ``_learn`` is the whole of it."""

    _shared: ClassVar[dict[str, Parameter]] = {
        "alpha": positive(1.0),
        "lam": positive(None, optional=True),
        "fit_intercept": flag(True),
        "tol": positive(1e-6),
        "max_iter": whole(100),
        **IterativeMixin.CONTROL,
    }

    loss: Any
    alpha: float
    lam: float | None
    penalty: Any
    fit_intercept: bool
    tol: float
    max_iter: int
    #: the functions learned
    expansion_: Expansion
    #: how the fit went
    report_: Report
    #: the loss that was minimised
    loss_: Loss

    def _make_loss(self) -> Loss:
        raise NotImplementedError

    def _learn(self, journal: Journal, X: Points, Y: np.ndarray, weight: np.ndarray, loss: Loss) -> None:
        """Minimise for every column of Y (n, functions); sets ``expansion_``, ``n_iter_`` and ``report_``."""
        omega = None if self.penalty is None else as_penalty(self.penalty)
        plan = self._plan(X, Y.shape[1], loss)
        plan.require_memory("use fewer points")
        factor = self.alpha if self.lam is None else self.lam * float(weight.sum())
        require_solvable(factor, "alpha" if self.lam is None else "lam")
        self._require_definite(X, centred=False)
        origin = origin_of(self.kernel_, X, self.fit_intercept)
        points = moved(X, origin)
        options: dict[str, Any] = {
            "fit_intercept": self.fit_intercept,
            "tol": self.tol,
            "max_iter": self.max_iter,
            "direct": plan.method is Method.CHOLESKY,
            "rounding": rounding_of(self.kernel_, points, settings().dtype),
        }
        Y = np.asarray(Y, dtype=np.float64)
        most = self.max_iter * Y.shape[1]
        with self._control("machine", most, X, Y, weight, self.kernel_) as control:
            gram = Gram(self.kernel_, points, cache=0)
            K = gram if plan.method is Method.LAZY else gram.dense()
            options["near"] = low_rank(gram, plan.rank, control)

            def solve(y: np.ndarray, part: Control) -> RiskResult | PenaltyResult:
                if omega is None:  # ½ · 2α ‖f‖² = α ‖f‖²
                    return regularised_risk(K, loss, y, weight, 2 * factor, control=part, **options)
                return any_penalty(K, loss, y, weight, omega, factor=factor, control=part, **options)

            results = each(solve, Y, control)
        self.loss_ = loss
        self._keep(points, results, origin)
        unit = 1.0 if self.lam is None else 1.0 / float(weight.sum())  # of the objective as it was asked for
        self._tell(journal, results, unit)
        self.report_ = journal.report(
            plan,
            Stop.worst(result.stopped for result in results),
            time=control.total_seconds,
            iterations=sum(result.iterations for result in results),
            objective=unit * sum(result.objective for result in results),
            gap=unit * sum(result.gap for result in results),
        )

    def _keep(self, points: Any, results: list[Minimiser], origin: np.ndarray | None) -> None:
        coef = np.column_stack([result.coef for result in results])
        stored = np.flatnonzero(coef.any(axis=1))
        if not stored.size:  # f = b: one anchor of weight zero keeps the type
            stored = np.array([0])
        coef, intercept = coef[stored], np.array([result.intercept for result in results])
        if self._is_single(len(results)):
            coef, intercept = coef[:, 0], intercept[0]
        self.expansion_ = expanded(self.kernel_, data.take(points, stored), coef, intercept, origin)
        self.n_iter_ = max(result.iterations for result in results)

    def _is_single(self, functions: int) -> bool:
        """Whether the one function learned is no column of several."""
        return functions == 1

    def _tell(self, journal: Journal, results: list[Minimiser], unit: float) -> None:
        worst = max(results, key=lambda result: result.relative)
        self._warn_if_stopped(
            journal,
            Stop.worst(result.stopped for result in results),
            self.n_iter_,
            f"within {unit * worst.gap:.2g} of the smallest objective, at {unit * worst.objective:.4g}",
        )
        if worst.stopped == Stop.CONVERGED and worst.rounded and worst.relative > self.tol:
            journal.warn(
                f"rounding ended the fit with the objective, {unit * worst.objective:.4g}, within "
                f"{unit * worst.gap:.2g} of the smallest, where tol={self.tol} times it was asked for: raise "
                "tol, or penalise more (a larger alpha or lam)",
                ConvergenceWarning,
            )

    def _plan(self, X: Points, n_outputs: int, loss: Loss | None = None) -> Plan:
        loss = self._make_loss() if loss is None else loss
        n = data.n_points(X)
        name = "Newton's method" if loss.smooth else "method of multipliers"
        runs, why = 1, ["the loss is smooth" if loss.smooth else "the loss has kinks"]
        if self.penalty is not None:
            name, runs = f"{name} along the path of ‖f‖²", 8
            why.append("the penalty is another function of ‖f‖²: its minimum is on the path")
        steps = runs * n_outputs * (8 if loss.smooth else 40)
        vectors = 8 * n * (_ARRAYS_PER_POINT + 3 * n_outputs)
        item, rank = np.dtype(settings().dtype).itemsize, 0
        stored, factor = item * n * n, 8 * n * n
        if stored + factor + vectors <= memory_budget():
            method, memory, flops = Method.CHOLESKY, stored + factor + vectors, steps * n**3 / 12
            why.append("K and a factor of it fit the memory budget")
        elif stored + vectors <= memory_budget():
            method, memory, flops = Method.CONJUGATE, stored + vectors, steps * 600.0 * n * n
            why.append("K fits the memory budget, but not a factor of it beside it")
        else:
            rank = usual_rank(n, (memory_budget() - vectors) // 2, item, is_repeated=True)
            memory = vectors + factor_memory(n, rank, item) * bool(rank)
            # each step has an L of its own and some twenty products
            method, flops = Method.LAZY, steps * (400.0 * n * n + 1.0 * n * rank**2)
            why.append("K does not fit the memory budget: its values are computed for every product")
            why.append(factor_words(rank))
        words = f"{name} {HOW[method]}"
        return Plan(words, n, memory, flops, tuple(why), iterative=True, method=method, rank=rank)


class KernelMachineClassifier(_KernelMachine, KernelClassifierMixin, BaseEstimator):
    r"""Classification with any convex loss of y f(x), y = ±1, over the RKHS: minimises

        Σᵢ wᵢ L(yᵢ, f(xᵢ) + b) + α ‖f‖²      or, with ``lam``,      (1/Σw) Σᵢ wᵢ L(yᵢ, f(xᵢ) + b) + λ ‖f‖²

    exactly, kinks and all, with a certified distance to the minimum. b has no part in ‖f‖². Of more than two
    classes each is learned against the rest, on one K, and the largest f wins. The hinge is the support
    vector machine with C = 1/(2α), the logistic loss is logistic regression, the squared one the
    least-squares machine.

    Parameters
    ----------
    kernel : a Kernel such as ``Gaussian(sigma="median")``, a function of two points, or one of "rbf",
        "linear", "poly", "sigmoid", "laplacian", "cosine", "chi2", "min", "precomputed"
    gamma : number, "scale" or "auto": γ of a kernel given by name
    degree : whole number, for "poly"
    coef0 : number, for "poly" and "sigmoid"
    loss : "hinge", max(0, 1 - y f); "squared_hinge", its square; "logistic", log(1 + exp(-y f)); "squared",
        (y - f)² = (1 - y f)²; or your own: a function L(y, f) of arrays, convex in f, a pair (L, L'), or a
        ``mercer.losses.OwnLoss``
    alpha : α, the weight of ‖f‖²
    lam : λ, instead of alpha: α = λ Σᵢ wᵢ
    penalty : Ω, an increasing function to replace ‖f‖² by Ω(‖f‖²), or a pair (Ω, Ω'); α or λ is its factor
    fit_intercept : whether there is a b, which is not penalised
    class_weight : None, "balanced", or a dict from labels to weights, as in scikit-learn
    tol : how far above its minimum the objective may end, relative to it; a bound is computed on the way
    max_iter : iterations at most
    max_time, progress, checkpoint, resume : control over a long run: see `estimators.shared.iterative`

    Attributes
    ----------
    classes_ : (classes,) the labels
    expansion_ : f, an Expansion on the points with a coefficient; for several classes one column each
    loss_ : the loss that was minimised
    n_iter_ : iterations, of the class that took most
    report_ : how the fit went; ``objective`` is the number above, summed over the classes learned against the
        rest, and ``gap`` a bound of its distance to the minimum
    kernel_, n_features_in_, feature_names_in_ : as everywhere

    Examples
    --------
    >>> from mercer import Gaussian
    >>> from mercer.estimators.machines import KernelMachineClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["low", "high", "high", "low"]
    >>> model = KernelMachineClassifier(Gaussian(sigma=1.0), loss="hinge", alpha=0.1).fit(X, y)
    >>> model.predict([[1.5], [3.5]])
    array(['high', 'low'], dtype='<U4')
    >>> model.report_.gap <= 1e-6 * model.report_.objective
    True
    >>> hasattr(model, "predict_proba"), hasattr(KernelMachineClassifier(loss="logistic"), "predict_proba")
    (False, True)
    """

    _declared: ClassVar[dict[str, Parameter]] = _KernelMachine._shared

    def __init__(
        self,
        kernel: KernelLike = "rbf",
        *,
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        loss: Any = "hinge",
        alpha: float = 1.0,
        lam: float | None = None,
        penalty: Any = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-6,
        max_iter: int = 100,
        max_time: float | None = None,
        progress: Any = None,
        checkpoint: Any = None,
        resume: bool = False,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.loss = loss
        self.alpha = alpha
        self.lam = lam
        self.penalty = penalty
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.progress = progress
        self.checkpoint = checkpoint
        self.resume = resume

    def fit(self, X: Points, y: Targets, sample_weight: Weights = None) -> Self:
        """Learn from the points X, their labels y, and weights of the points."""
        journal = Journal()
        X, y, weight = self._validate_weighted(X, y, sample_weight)
        codes = self._encode(y)
        weight = self._with_class_weight(weight, codes)
        if np.count_nonzero(np.bincount(codes, weight)) < 2:
            raise InputError(
                "only one class has points of positive weight: give points of another class a weight, or "
                "leave out sample_weight and class_weight"
            )
        loss = self._make_loss()
        loss.check_targets(np.array([-1.0, 1.0]))
        Y = signs(codes, len(self.classes_))
        self._learn(journal, X, Y.reshape(len(codes), -1), weight, loss)
        return self

    def _make_loss(self) -> Loss:
        loss = as_loss(self.loss)
        if not loss.for_labels:
            names = ", ".join(repr(name) for name, kind in Loss.registry.items() if kind.for_labels)
            raise InputError(
                f"loss={self.loss!r} is for targets, not for labels: pass one of {names}, a function L(y, f) "
                "for y = ±1, or use KernelMachineRegressor"
            )
        return loss

    def _gives_probabilities(self) -> bool:
        loss = getattr(self, "loss_", self.loss)  # once fitted, the loss that was minimised
        if isinstance(loss, Logistic) or (isinstance(loss, str) and loss == "logistic"):
            return True
        raise AttributeError(
            f"{type(self).__name__} has predict_proba only with loss='logistic', got loss={loss!r}: "
            "other losses do not estimate probabilities"
        )

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Points) -> np.ndarray:  # (n, classes)
        """P(c | x) for every row x of X; of several classes, each against the rest, divided by their sum."""
        values = self.decision_function(X)
        if values.ndim == 1:
            return np.column_stack([expit(-values), expit(values)])
        return softmax(log_expit(values), axis=1)


class KernelMachineRegressor(_KernelMachine, RegressorMixin, BaseEstimator):
    r"""Regression with any convex loss over the RKHS: minimises

        Σᵢ wᵢ L(yᵢ, f(xᵢ) + b) + α ‖f‖²      or, with ``lam``,      (1/Σw) Σᵢ wᵢ L(yᵢ, f(xᵢ) + b) + λ ‖f‖²

    exactly, kinks and all, with a certified distance to the minimum. b has no part in ‖f‖². Several targets
    are learned one by one, on one K. The squared loss is kernel ridge regression with the same α, the
    ε-insensitive one support vector regression with C = 1/(2α).

    Parameters
    ----------
    kernel : a Kernel such as ``Gaussian(sigma="median")``, a function of two points, or one of "rbf",
        "linear", "poly", "sigmoid", "laplacian", "cosine", "chi2", "min", "precomputed"
    gamma : number, "scale" or "auto": γ of a kernel given by name
    degree : whole number, for "poly"
    coef0 : number, for "poly" and "sigmoid"
    loss : "squared", (y - f)²; "absolute", ``|y - f|``; "huber", ½ (y - f)² up to ``|y - f| = δ`` and
        ``δ|y - f| - δ²/2`` beyond; "epsilon_insensitive", ``max(0, |y - f| - ε)``;
        "squared_epsilon_insensitive", its square; "quantile", τ (y - f) below y and (1 - τ)(f - y)
        above; "poisson", exp(f) - y f for counts y ≥ 0; or
        your own: a function L(y, f) of arrays, convex in f, a pair (L, L'), or a ``mercer.losses.OwnLoss``
    epsilon : ε ≥ 0
    delta : δ > 0
    quantile : τ, between 0 and 1
    alpha : α, the weight of ‖f‖²
    lam : λ, instead of alpha: α = λ Σᵢ wᵢ
    penalty : Ω, an increasing function to replace ‖f‖² by Ω(‖f‖²), or a pair (Ω, Ω'); α or λ is its factor
    fit_intercept : whether there is a b, which is not penalised
    tol : how far above its minimum the objective may end, relative to it; a bound is computed on the way
    max_iter : iterations at most
    max_time, progress, checkpoint, resume : control over a long run: see `estimators.shared.iterative`

    Attributes
    ----------
    expansion_ : f, an Expansion on the points with a coefficient; for several targets one column each
    loss_ : the loss that was minimised
    n_iter_ : iterations, of the target that took most
    report_ : how the fit went; ``objective`` is the number above, summed over the targets, and ``gap`` a
        bound of its distance to the minimum
    kernel_, n_features_in_, feature_names_in_ : as everywhere

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Gaussian
    >>> from mercer.estimators.machines import KernelMachineRegressor
    >>> X = np.linspace(0, 6, 31)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> y[::10] = 50.0  # a tenth of the targets is wrong
    >>> model = KernelMachineRegressor(Gaussian(sigma=1.0), loss="absolute", alpha=0.1).fit(X, y)
    >>> bool(abs(model.predict([[3.0]])[0] - np.sin(3.0)) < 0.1)
    True
    """

    _declared: ClassVar[dict[str, Parameter]] = {
        **_KernelMachine._shared,
        "epsilon": nonnegative(0.1),
        "delta": positive(1.0),
        "quantile": fixed(
            0.5,
            "a number between 0 and 1",
            lambda v: isinstance(v, float | np.floating) and bool(0 < v < 1),
            "such a number",
        ),
    }

    def __init__(
        self,
        kernel: KernelLike = "rbf",
        *,
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        loss: Any = "squared",
        epsilon: float = 0.1,
        delta: float = 1.0,
        quantile: float = 0.5,
        alpha: float = 1.0,
        lam: float | None = None,
        penalty: Any = None,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 100,
        max_time: float | None = None,
        progress: Any = None,
        checkpoint: Any = None,
        resume: bool = False,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.loss = loss
        self.epsilon = epsilon
        self.delta = delta
        self.quantile = quantile
        self.alpha = alpha
        self.lam = lam
        self.penalty = penalty
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.progress = progress
        self.checkpoint = checkpoint
        self.resume = resume

    def fit(self, X: Points, y: Targets, sample_weight: Weights = None) -> Self:
        """Learn from the points X, their targets y, (n,) or (n, targets), and weights of the points."""
        journal = Journal()
        X, y, weight = self._validate_weighted(X, y, sample_weight, y_numeric=True, multi_output=True)
        loss = self._make_loss()
        y = np.asarray(y, dtype=np.float64)
        loss.check_targets(y.ravel())
        self._one_target = y.ndim == 1
        self._learn(journal, X, y.reshape(len(y), -1), weight, loss)
        return self

    def predict(self, X: Points) -> np.ndarray:  # (n,) or (n, targets)
        """f(x) for every row of X; with the Poisson loss exp f(x), the mean."""
        X = self._validate_new(X)
        values = self.expansion_(X)
        return np.exp(values) if isinstance(self.loss_, Poisson) else values

    def _is_single(self, functions: int) -> bool:
        return self._one_target

    def _make_loss(self) -> Loss:
        loss = as_loss(self.loss, epsilon=self.epsilon, delta=self.delta, quantile=self.quantile)
        if not loss.for_targets:
            raise InputError(
                f"loss={self.loss!r} is for labels ±1, not for targets: use KernelMachineClassifier, "
                "or another loss"
            )
        return loss

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        loss = self.loss
        tags.target_tags.positive_only = isinstance(loss, Poisson) or (
            isinstance(loss, str) and loss == "poisson"
        )
        return tags
