r"""Regularised risk minimisation over the RKHS, with any convex loss and any increasing penalty."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from scipy.special import expit, log_expit, softmax
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.metaestimators import available_if

from mercer.data.types import ClassWeight, Points, Targets, Weights
from mercer.errors import InputError
from mercer.estimators.shared.classes import KernelClassifierMixin, signs
from mercer.estimators.shared.machine import MachineMixin
from mercer.estimators.shared.parameters import learner
from mercer.kernels.parameters import fixed, nonnegative, positive
from mercer.losses import Logistic, Loss, Poisson, as_loss
from mercer.report import Journal


@learner
class KernelMachineClassifier(MachineMixin, KernelClassifierMixin, BaseEstimator):
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
    gamma, degree, coef0 : numbers of a kernel given by its name, as in scikit-learn
    loss : "hinge", max(0, 1 - y f); "squared_hinge", its square; "logistic", log(1 + exp(-y f)); "squared",
        (y - f)² = (1 - y f)²; or your own: a function L(y, f) of arrays, convex in f, a pair (L, L'), or a
        ``mercer.losses.OwnLoss``
    alpha : α, the weight of ‖f‖²
    lam : λ, instead of alpha: α = λ Σᵢ wᵢ
    penalty : Ω, an increasing function to replace ‖f‖² by Ω(‖f‖²), or a pair (Ω, Ω'); α or λ is its factor
    fit_intercept : whether there is a b, which is not penalised
    class_weight : None, "balanced", or a dict from labels to weights, as in scikit-learn
    landmarks : None, a number, "auto", points or their positions: f is then an expansion on these few points,
        learned from all of X; see `mercer.estimators.shared.landmarks`
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

    _: KW_ONLY
    loss: Any = "hinge"
    class_weight: ClassWeight = None

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


@learner
class KernelMachineRegressor(MachineMixin, RegressorMixin, BaseEstimator):
    r"""Regression with any convex loss over the RKHS: minimises

        Σᵢ wᵢ L(yᵢ, f(xᵢ) + b) + α ‖f‖²      or, with ``lam``,      (1/Σw) Σᵢ wᵢ L(yᵢ, f(xᵢ) + b) + λ ‖f‖²

    exactly, kinks and all, with a certified distance to the minimum. b has no part in ‖f‖². Several targets
    are learned one by one, on one K. The squared loss is kernel ridge regression with the same α, the
    ε-insensitive one support vector regression with C = 1/(2α).

    Parameters
    ----------
    kernel : a Kernel such as ``Gaussian(sigma="median")``, a function of two points, or one of "rbf",
        "linear", "poly", "sigmoid", "laplacian", "cosine", "chi2", "min", "precomputed"
    gamma, degree, coef0 : numbers of a kernel given by its name, as in scikit-learn
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
    landmarks : None, a number, "auto", points or their positions: f is then an expansion on these few points,
        learned from all of X; see `mercer.estimators.shared.landmarks`
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

    _: KW_ONLY
    loss: Any = "squared"
    epsilon: float = nonnegative(0.1)
    delta: float = positive(1.0)
    quantile: float = fixed(
        0.5,
        "a number between 0 and 1",
        lambda v: isinstance(v, float | np.floating) and bool(0 < v < 1),
        "such a number",
    )

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
