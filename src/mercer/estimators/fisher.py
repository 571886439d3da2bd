r"""The kernel Fisher discriminant as a scikit-learn classifier and transformer."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from mercer.data import points as data
from mercer.data.types import ClassWeight, Points, Targets, Weights
from mercer.errors import InputError
from mercer.estimators.shared.base import KernelMixin
from mercer.estimators.shared.classes import KernelClassifierMixin
from mercer.estimators.shared.definite import INDEFINITE, DefiniteMixin
from mercer.estimators.shared.landmarks import LANDMARKS, LandmarkMixin, LandmarksLike, Restricted
from mercer.estimators.shared.origin import expanded, moved, origin_of, warn_if_lost
from mercer.estimators.shared.parameters import KernelParameters, learner
from mercer.gram import Gram
from mercer.kernels.parameters import positive, whole
from mercer.report import Journal, Method, Plan
from mercer.runtime.config import settings
from mercer.runtime.threads import by_our_threads
from mercer.solvers.landmarks.fisher import restricted_fisher
from mercer.solvers.spectral.fisher import PATH, FisherResult, fisher
from mercer.solvers.spectral.gaussians import class_gaussians, linear_scores, log_priors


@learner
class KernelFisherDiscriminant(
    DefiniteMixin,
    LandmarkMixin,
    KernelMixin,
    KernelParameters,
    KernelClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    r"""Directions in feature space along which the classes lie far apart and are narrow, and a classifier.

    The directions maximise wᵀS_B w / wᵀ(S_W + αI)w, the scatter between the classes over that within them.
    Points are classified by their projections: Gaussians with a mean per class and one covariance, as wide
    and as near to each other as for training points that were *left out* one at a time; the covariance is
    widened by the factor that makes the labels of these points most probable. With the linear kernel and
    α → 0 the directions are those of linear discriminant analysis.

    Parameters
    ----------
    kernel, gamma, degree, coef0 : as in every estimator; see ``KernelPerceptron``
    alpha : the penalty α > 0, or "auto": that of a path of penalties with the smallest squared error of the
        points left out, computed exactly from one eigendecomposition. An α below the rounding of K,
        4ε max k(x, x), is raised to it, with a warning
    n_components : directions to keep, at most classes - 1, which is the default
    priors : (classes,) probabilities of the classes, in the order of ``classes_``; by default their shares of
        the weight
    class_weight : None, "balanced" or {label: weight}
    landmarks : None, a number, "auto", points or their positions: the directions are then sought among the
        functions on these few points, from all of X, and α, if it is to be chosen, by all points left out in
        turn; see `mercer.estimators.shared.landmarks`
    indefinite : "refuse" a K with negative eigenvalues, or "clip" them: take them as zero

    Attributes
    ----------
    classes_ : (classes,) the labels
    alpha_ : the penalty that was used
    alphas_, loo_errors_ : the path, and its errors, when it was chosen
    expansion_ : the functions that project, a column of ``coef`` each; ``expansion_(X)`` is ``transform(X)``
    ratios_ : (components,) scatter between the classes over that within them (and the penalty), largest first
    explained_variance_ratio_ : (components,) their shares, as in LDA
    means_, covariance_, priors_ : (classes, components), (components, components) and (classes,), of the
        Gaussians
    report_ : with landmarks ``report_.gap`` and ``report_.bound`` are those of the ridge regression on the
        classes that the directions come from
    kernel_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> from mercer.estimators.fisher import KernelFisherDiscriminant
    >>> X = [[-2.0], [-1.0], [1.0], [2.0]]
    >>> model = KernelFisherDiscriminant("linear", alpha=0.01).fit(X, ["a", "a", "b", "b"])
    >>> model.predict([[-3.0], [0.5]])
    array(['a', 'b'], dtype='<U1')
    >>> model.transform(X).shape
    (4, 1)
    """

    _: KW_ONLY
    alpha: Any = positive("auto", words=("auto",))
    n_components: int | None = whole(None, optional=True)
    priors: Any = None
    class_weight: ClassWeight = None
    landmarks: LandmarksLike = LANDMARKS
    indefinite: str = INDEFINITE

    def fit(self, X: Points, y: Targets, sample_weight: Weights = None) -> Self:
        """Find the directions for the points X and their labels y."""
        journal = Journal()
        X, y, weight = self._validate_weighted(X, y, sample_weight)
        codes = self._encode(y)
        copies, weight = weight, self._with_class_weight(weight, codes)
        most = len(self.classes_) - 1
        if self.n_components is not None and self.n_components > most:
            raise InputError(
                f"n_components must be at most classes - 1 = {most}, got {self.n_components!r}: "
                "pass fewer, or None"
            )
        share = np.bincount(codes, weight, minlength=len(self.classes_))
        if (share > 0).sum() < 2:
            raise InputError(
                "only one class has points of positive weight: give weight to points of another class"
            )
        self.priors_ = self._check_priors(share / share.sum())
        plan = self._plan(X, most)
        plan.require_memory("use landmarks, or fewer points")
        alpha = None if isinstance(self.alpha, str) else float(self.alpha)
        learn = self._on_landmarks if plan.method is Method.LANDMARKS else self._on_points
        points, origin, result, facts = learn(X, codes, weight, copies, alpha, journal)
        if alpha is not None and result.alpha > alpha:
            journal.warn(
                f"alpha={alpha!r} is below the rounding of the kernel matrix: {result.alpha:.3g} is used; "
                "take a larger alpha, or centre the data if their mean is far from zero"
            )
        self._keep(points, result, codes, weight, origin)
        self.report_ = journal.report(plan, **facts)
        return self

    def transform(self, X: Points) -> np.ndarray:  # (n, components)
        """The projections of every row of X."""
        X = self._validate_new(X)
        return self.expansion_(X)

    def decision_function(self, X: Points) -> np.ndarray:  # (n,) or (n, classes)
        """log P(class | x) up to a constant; for two classes log P(second | x) - log P(first | x)."""
        values = self._scores(self._validate_new(X))
        return values[:, 1] - values[:, 0] if len(self.classes_) == 2 else values

    def predict_log_proba(self, X: Points) -> np.ndarray:  # (n, classes)
        """log P(class | x) by the Gaussians of the projections."""
        values = self._scores(self._validate_new(X))
        values = values - values.max(axis=1, keepdims=True)
        return np.asarray(values - np.log(np.exp(values).sum(axis=1, keepdims=True)))

    def predict_proba(self, X: Points) -> np.ndarray:  # (n, classes)
        """P(class | x) by the Gaussians of the projections."""
        return np.asarray(softmax(self._scores(self._validate_new(X)), axis=1))

    @property
    def _n_features_out(self) -> int:
        return len(self.ratios_)

    # --- the steps of fit --------------------------------------------------------------------------------

    def _on_points(
        self,
        X: Points,
        codes: np.ndarray,
        weight: np.ndarray,
        copies: np.ndarray,
        alpha: float | None,
        journal: Journal,
    ) -> tuple[Points, np.ndarray | None, FisherResult, dict[str, Any]]:
        """The functions on all points, these as they were moved, and by what."""
        self._require_definite(X if weight.all() else data.take(X, np.flatnonzero(weight)), centred=True)
        origin = origin_of(self.kernel_, X, is_free=True)
        points = moved(X, origin)
        warn_if_lost(journal, self.kernel_, points, type(self).__name__)
        result = fisher(
            Gram(self.kernel_, points, cache=0),
            codes,
            len(self.classes_),
            alpha=alpha,
            weight=weight,
            copies=copies,
            clip=self._must_clip(X),
        )
        self._meet(result.lowest, X, journal)
        return points, origin, result, {}

    def _on_landmarks(
        self,
        X: Points,
        codes: np.ndarray,
        weight: np.ndarray,
        copies: np.ndarray,
        alpha: float | None,
        journal: Journal,
    ) -> tuple[Points, None, FisherResult, dict[str, Any]]:
        """The functions on landmarks, from all points, and what is known of their distance from the best."""
        Z = self._landmark_points(X, weight, squared=True)
        self._require_definite(Z, centred=True)
        warn_if_lost(journal, self.kernel_, Z, type(self).__name__)
        problem = Restricted(self.kernel_, X, Z, fit_intercept=True)
        size = float(problem.diagonal.max())
        given = problem.features, codes, len(self.classes_), weight, copies, size
        with problem.telling("Fisher's discriminant on landmarks", passes=5 if alpha is None else 4):
            result, minimum = restricted_fisher(*given, alpha=alpha, accuracy=problem.accuracy)
        bound = problem.bound(minimum, 2 * float(weight.sum()) * result.alpha)
        facts = {"objective": minimum.objective, "gap": minimum.gap, "bound": bound}
        return problem.points, None, result, facts

    def _check_priors(self, share: np.ndarray) -> np.ndarray:  # (classes,)
        if self.priors is None:
            return share
        try:
            priors = np.asarray(self.priors, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            priors = np.empty(0)
        if priors.shape != share.shape or not (
            np.isfinite(priors).all() and (priors >= 0).all() and priors.any()
        ):
            raise InputError(
                f"priors must be {len(share)} numbers that are zero or more, one per class, got "
                f"{self.priors!r}: pass probabilities in the order of the sorted labels"
            )
        return priors / priors.sum()

    def _keep(
        self,
        points: Points,
        result: FisherResult,
        codes: np.ndarray,
        weight: np.ndarray,
        origin: np.ndarray | None,
    ) -> None:
        kept = slice(0, None if self.n_components is None else int(self.n_components))
        coef, intercept = result.coef[:, kept], result.intercept[kept]
        self.expansion_ = expanded(self.kernel_, data.copied(points), coef, intercept, origin)
        self.alpha_ = result.alpha
        for name, values in (("alphas_", result.path), ("loo_errors_", result.errors)):
            if len(values):
                setattr(self, name, values)
            elif hasattr(self, name):
                delattr(self, name)  # It is that of an earlier fit.
        self.ratios_ = result.ratios[kept]
        total = float(result.ratios.sum())
        self.explained_variance_ratio_ = self.ratios_ / total if total > 0 else np.zeros_like(self.ratios_)
        fitted, left_out = result.fitted[:, kept], result.left_out[:, kept]
        found = class_gaussians(fitted, left_out, codes, weight, self.priors_)
        self.means_, self.covariance_, self._precision = found.means, found.covariance, found.precision

    @by_our_threads
    def _scores(self, X: Points) -> np.ndarray:  # (n, classes)
        return linear_scores(self.expansion_(X), self.means_, self._precision) + log_priors(self.priors_)

    def _count_outputs(self, y: np.ndarray) -> int:
        return max(1, len(np.unique(y)) - 1)

    def _plan(self, X: Points, n_outputs: int) -> Plan:
        # Φ̃ᵀWΦ̃ takes 2 n M² with its triangular solves, the errors of a path and those left out 2 n M² each.
        squares = 6 if isinstance(self.alpha, str) else 4
        return self._with_landmarks(X, self._exact_plan(X, n_outputs), squares / 2 + 1, n_outputs, squares)

    def _exact_plan(self, X: Points, n_outputs: int) -> Plan:
        n = data.n_points(X)
        d = data.n_columns(X) or 1
        q = max(n_outputs, 1)
        copy = 4 * n * n if settings().dtype == "float32" else 0  # K on its way to double precision
        work, flops = 8 * n * (6 * q + 2 * 64), 2.0 * n * n * (d + 10)
        if isinstance(self.alpha, str):
            memory = 16 * n * n + max(copy, 8 * n * (2 * len(PATH) + 40)) + work
            why = ("alpha is chosen on the training points: one eigendecomposition serves every penalty",)
            return Plan("eigendecomposition", n, memory, flops + 9.0 * n**3, why)
        memory = 8 * n * n + copy + work
        return Plan("Cholesky factorisation", n, memory, flops + 1.0 * n**3, ("alpha is given",))
