r"""Kernel principal components as a scikit-learn transformer."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state

from mercer.data import points as data
from mercer.data.types import Points, Seed, Targets, Weights
from mercer.estimators.shared.base import KernelMixin, check_weights
from mercer.estimators.shared.definite import INDEFINITE, DefiniteMixin
from mercer.estimators.shared.iterative import IterativeMixin
from mercer.estimators.shared.landmarks import LANDMARKS, LandmarkMixin, LandmarksLike, Restricted
from mercer.estimators.shared.origin import expanded, mean_of, moved, origin_of, warn_if_lost
from mercer.estimators.shared.parameters import KernelParameters, flag, learner
from mercer.estimators.shared.preimages import PreimageMixin, require_map
from mercer.expansion import Expansion
from mercer.gram import Gram
from mercer.kernels.names import KernelLike
from mercer.kernels.parameters import choice, fixed, nonnegative, whole
from mercer.report import Journal, Method, Plan
from mercer.runtime.config import settings
from mercer.solvers.landmarks.components import RestrictedComponents
from mercer.solvers.spectral.eigen import EigenResult, Scheme, Store, leading_eigenpairs, scheme

_ALIASES = {"arpack": "lanczos"}
_STORES = {
    Store.DENSE: "K fits, and is multiplied from memory",
    Store.HALF: "half of K is kept in float32, and multiplied from memory; the last products are exact",
    Store.NOTHING: "K does not fit the memory budget: its values are computed for every product",
}

_NOTHING_VARIES = (
    "the points do not vary in feature space: every score is zero; give points that differ, or take another "
    "kernel"
)


def _is_count_or_share(value: object) -> bool:
    if isinstance(value, bool | np.bool_):
        return False
    if isinstance(value, Integral):
        return int(value) >= 1
    return isinstance(value, float | np.floating) and bool(0 < value < 1)


@learner
class KernelPCA(
    PreimageMixin,
    IterativeMixin,
    DefiniteMixin,
    LandmarkMixin,
    KernelMixin,
    KernelParameters,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    r"""Principal components in feature space: the directions in which the points Φ(xᵢ) vary most.

    The components are functions, f_c(x) = ⟨Φ(x) - Φ̄, v_c⟩ = Σᵢ αᵢ_c k(xᵢ, x) + b_c, with v_c the
    eigenvectors of the covariance of the Φ(xᵢ), found as those of the centred kernel matrix. With the linear
    kernel this is PCA.

    Parameters
    ----------
    n_components : how many; a share in (0, 1) for the fewest that explain it; None for all that are not zero
    kernel, gamma, degree, coef0 : as in every estimator; see ``KernelPerceptron``
    alpha : penalty of the learned pre-image map
    fit_inverse_transform : whether to learn a map back to the points, by kernel ridge regression
    inverse : how ``inverse_transform`` finds points. "ridge": by the learned map. "fixed_point": by iteration
        to the nearest feature, for kernels of ‖x - x'‖. "auto": the learned map when there is one, else
        exactly for the linear kernel, else by fixed point
    eigen_solver : "dense", "lanczos" (or "arpack"), "randomized" (only the eigenvalues are right to ``tol``),
        or "auto"
    landmarks : None, a number, "auto", points or their positions: the v_c are then sought among the functions
        on these few points, from all of X, by the eigenvalues of a matrix of their number; see
        `mercer.estimators.shared.landmarks`
    indefinite : "refuse" a K with negative eigenvalues, or "clip" them: take them as zero
    tol : residual of an iterative eigensolver relative to the eigenvalue, by default 1e-8 (1e-6 where K is
        too large to be kept in double precision); steps of the fixed point relative to the spread of the
        data, by default 1e-8
    max_iter : blocks that an iterative eigensolver multiplies K with (by default at most 300), and steps of
        the fixed point (by default at most 1000)
    random_state : seed of the first block; None is 0
    max_time, progress, checkpoint, resume : control over long runs; ``inverse_transform`` obeys the first two

    Attributes
    ----------
    eigenvalues_ : (components,) of the centred kernel matrix, largest first
    eigenvectors_ : (n, components) of unit length; the sign is such that the largest score is positive; not
        there with landmarks, where ``transform(X)`` gives √eigenvalue times as much
    residuals_ : (components,) each eigenvalue is within this of a true one
    explained_variance_ : (components,) eigenvalues / (n - 1), the variance of the scores, as in PCA
    explained_variance_ratio_ : (components,) the share of the total variance in feature space, of which
        landmarks may explain a part only
    expansion_ : the functions f_c, a column of ``coef`` each; ``expansion_(X)`` is ``transform(X)``
    report_ : with landmarks ``report_.objective`` is the variance that the components leave, ``gap`` bounds
        its distance to the least on these landmarks, and ``bound`` that to the least without landmarks
    kernel_, n_iter_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> from mercer.estimators.pca import KernelPCA
    >>> X = np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])
    >>> pca = KernelPCA(kernel="linear").fit(X)
    >>> pca.explained_variance_.round(6), pca.fit_transform(X).ravel().round(6) + 0.0
    (array([25.]), array([ 5.,  0., -5.]))
    >>> pca.inverse_transform([[0.0]]).round(6)
    array([[3., 4.]])
    """

    n_components: Any = fixed(
        None,
        "a whole number of at least 1 or a share between 0 and 1",
        _is_count_or_share,
        "e.g. 10, 0.95, or None for all",
        optional=True,
    )
    _: KW_ONLY
    kernel: KernelLike = "rbf"
    alpha: float = nonnegative(1.0)
    fit_inverse_transform: bool = flag(False)
    inverse: str = choice("auto", ("auto", "fixed_point", "ridge"))
    eigen_solver: str = choice("auto", ("auto", "dense", "lanczos", "randomized", "arpack"))
    landmarks: LandmarksLike = LANDMARKS
    indefinite: str = INDEFINITE
    tol: float | None = nonnegative(None, optional=True)
    max_iter: int | None = whole(None, optional=True)
    random_state: Seed = None

    def fit(self, X: Points, y: Targets | None = None, sample_weight: Weights = None) -> Self:
        """Find the components of the points X; y is ignored. A weight of 2 counts a point twice."""
        self._fit(X, sample_weight)
        return self

    def fit_transform(self, X: Points, y: Targets | None = None, sample_weight: Weights = None) -> Any:
        """``fit(X).transform(X)``, without computing the kernel matrix again."""
        scores = self._fit(X, sample_weight)
        return self.transform(X) if scores is None else scores

    def transform(self, X: Points) -> np.ndarray:  # (n, components)
        """The scores f_c(x) of every row of X."""
        X = self._validate_new(X)
        return self.expansion_(X)

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    # --- the steps of fit --------------------------------------------------------------------------------

    def _fit(self, X: Points, sample_weight: Weights) -> np.ndarray | None:
        """Fit; the scores of the training points where they are known."""
        journal = Journal()
        for name in (
            "dual_coef_",
            "scores_fit_",
            "eigenvectors_",
            "_mean_coef",
            "_weight",
        ):  # They are those of an earlier fit.
            self.__dict__.pop(name, None)
        X = self._validate_fit(X, sample_weight=sample_weight)
        weight = check_weights(sample_weight, X)
        how, plan = self._scheme(X), self._plan(X, 1)
        plan.require_memory("ask for fewer components, use landmarks or fewer points")
        if self._is_learned():
            require_map(self.kernel_)
        if plan.method is Method.LANDMARKS:
            self._fit_landmarks(plan, X, weight, journal)
            return None
        self._require_definite(X if weight.all() else data.take(X, np.flatnonzero(weight)), centred=True)
        seed = 0 if self.random_state is None else check_random_state(self.random_state).randint(2**31 - 1)
        max_iter = 300 if self.max_iter is None else int(self.max_iter)
        origin = origin_of(self.kernel_, X, is_free=True)
        points = moved(X, origin)
        warn_if_lost(journal, self.kernel_, points, type(self).__name__)
        with self._control("kernel PCA", None, X, weight, self.kernel_) as control:
            result = leading_eigenpairs(
                Gram(self.kernel_, points, cache=0),
                self._count(data.n_points(X)),
                weight=None if sample_weight is None else weight,
                max_iter=max_iter,
                seed=int(seed),
                control=control,
                plan=how,
            )
        kept = self._select(result.values, result.zero, result.trace)
        if result.lowest < -max(result.zero, 1e-12 * abs(float(result.values[0]))):
            self._meet(result.lowest, X, journal)
        if kept == 1 and result.values[0] <= result.zero:
            journal.warn(_NOTHING_VARIES)
        worst = float((result.residuals / max(float(result.values[0]), 1e-300)).max())
        stopped, iterations = result.stopped, result.iterations
        scores = self._keep(points, result, kept, weight, origin)
        del result  # makes room for the map back
        if self._is_learned():
            self._learn_inverse(X, self.expansion_(X) if scores is None else scores, weight)
        self._warn_if_stopped(
            journal, stopped, iterations, f"with residuals up to {worst:.1g} of the largest eigenvalue"
        )
        self.n_iter_ = max(1, iterations)
        self.report_ = journal.report(plan, stopped, iterations=iterations, time=control.total_seconds)
        return scores

    def _fit_landmarks(self, plan: Plan, X: Points, weight: np.ndarray, journal: Journal) -> None:
        """On landmarks, from all of X: the components among the functions on them."""
        Z = self._landmark_points(X, weight, squared=True)
        self._require_definite(Z, centred=True)
        warn_if_lost(journal, self.kernel_, Z, type(self).__name__)
        problem = Restricted(self.kernel_, X, Z, fit_intercept=True)
        with problem.telling("kernel PCA on landmarks", passes=2):
            found = RestrictedComponents(problem.features, weight)
            total = problem.variance(weight, found.mean)
            count = self._count(len(found.values))
            kept = self._select(found.values[:count], found.zero, total)
            coef, intercept = found.functions(kept)
        if isinstance(self.n_components, Integral) and count < int(self.n_components):
            journal.warn(
                f"{count:,} components are all that these landmarks have, n_components={self.n_components!r} "
                "were asked for: take more landmarks"
            )
        if not found.values[0] > 0:
            journal.warn(_NOTHING_VARIES)
        self.residuals_ = found.residuals[:kept]
        self._keep_values(found.values[:kept], total, found.zero, weight)
        self._mean_coef = found.mean_coef
        self.expansion_ = Expansion(self.kernel_, problem.points, coef, intercept)
        self._centroid = mean_of(X, weight) if self.kernel_.domain.is_vectors else None
        if self._is_learned():
            self._learn_restricted_inverse(X, weight)
        self.n_iter_ = 1
        unit = self._unit(float(weight.sum()))
        gap = found.gap(kept, problem.accuracy)
        self.report_ = journal.report(
            plan,
            objective=unit * (total - float(found.values[:kept].sum())),
            gap=unit * gap,
            bound=unit * (gap + max(total - found.trace, 0.0)),
        )

    @staticmethod
    def _unit(n: float) -> float:
        """What turns a sum of squares of n scores into their variance."""
        return 1.0 / (n - 1 if n > 1 else n)

    def _keep_values(self, values: np.ndarray, total: float, zero: float, weight: np.ndarray) -> None:
        """What is known from the eigenvalues that are kept, and the sum of all of them."""
        self.eigenvalues_ = values
        self.explained_variance_ = values * self._unit(float(weight.sum()))
        self.explained_variance_ratio_ = values / total if total > zero else np.zeros(len(values))

    def _keep(
        self, points: Points, result: EigenResult, kept: int, weight: np.ndarray, origin: np.ndarray | None
    ) -> np.ndarray | None:
        values, U = result.values[:kept], result.vectors[:, :kept]
        values = np.where(values > result.zero, values, 0.0)
        root = np.sqrt(weight)[:, None]
        inverse = np.divide(1.0, np.sqrt(values), out=np.zeros(kept), where=values > 0)
        # f(xᵢ) decides, and not the eigenvector, which has √wᵢ f(xᵢ): repeated points keep their sign.
        scores = np.divide(U, root, out=np.zeros_like(U), where=root > 0)
        sizes = np.abs(scores)
        largest = (sizes >= (1 - 1e-6) * sizes.max(axis=0)).argmax(axis=0)  # the first of those that tie
        sign = np.where(scores[largest, np.arange(kept)] < 0, -1.0, 1.0)
        del scores, sizes
        self._weight = weight
        self._keep_values(values, result.trace, result.zero, weight)
        self.eigenvectors_ = np.multiply(U, sign, order="C")
        self.residuals_ = result.residuals[:kept]
        coef = self.eigenvectors_ * inverse
        coef *= root
        intercept = -result.means[:kept] * sign * inverse
        self.expansion_ = expanded(self.kernel_, data.copied(points), coef, intercept, origin)
        self._centroid = None if origin is None else origin + mean_of(points, weight)
        if not (weight > 0).all():
            return None
        trained = np.multiply(result.images[:, :kept], sign * inverse, order="C")
        trained /= root
        return trained

    def _select(self, values: np.ndarray, zero: float, total: float) -> int:
        """How many of the components that were computed are kept."""
        if isinstance(self.n_components, Integral):
            return len(values)
        positive = max(1, int((values > zero).sum()))
        if self.n_components is None:
            return positive
        share = np.cumsum(np.maximum(values[:positive], 0.0)) / max(total, 1e-300)
        return min(positive, int(np.searchsorted(share, self.n_components - 1e-12)) + 1)

    def _count(self, n: int) -> int:
        """The number of eigenpairs to compute for n points."""
        return min(int(self.n_components), n) if isinstance(self.n_components, Integral) else n

    def _scheme(self, X: Points) -> Scheme:
        n = data.n_points(X)
        is_slow = any(getattr(part, "is_slow", False) for part in self.kernel_.parts())
        return scheme(
            n,
            self._count(n),
            solver=_ALIASES.get(self.eigen_solver, self.eigen_solver),
            tol=self.tol,
            itemsize=np.dtype(settings().dtype).itemsize,
            is_slow=is_slow,
        )

    def _plan(self, X: Points, n_outputs: int) -> Plan:
        # A map back has as many targets as X has columns. It takes an A of its own, n M² products and solves.
        learned = self._is_learned()
        targets = (data.n_columns(X) if learned else None) or n_outputs
        passes, squares = (6, 4) if learned else (3, 2)
        return self._with_landmarks(X, self._exact_plan(X), passes, targets, squares)

    def _exact_plan(self, X: Points) -> Plan:
        n, how = data.n_points(X), self._scheme(X)
        k, d = self._count(n), data.n_columns(X) or 1
        memory, flops, why = how.memory, 2.0 * n * n * (d + 10), []
        if how.solver == "dense":
            name, flops = "dense eigensolver", flops + 9.0 * n**3
            why = [
                "all eigenpairs are wanted"
                if k == n
                else "the matrix is small, or many eigenpairs are wanted"
            ]
            if self.eigen_solver == "dense":
                why = ["it was asked for"]
        else:
            name, steps = f"block Krylov eigensolver ({how.solver})", 12
            flops += 2.0 * n * n * how.block * steps
            why = [_STORES[how.store]]
            if how.store == Store.NOTHING:
                flops += (steps - 1) * 2.0 * n * n * (d + 10)
        if self._is_learned():
            copy = 4 * n * n if settings().dtype == "float32" else 0  # K' on its way to double precision
            memory = max(memory, 8 * n * (n + 3 * k + 4 * d) + copy)
            flops += n**3 / 3
            why.append("a map back is learned, by one Cholesky factorisation")
        return Plan(name, n, int(memory), flops, tuple(why), iterative=how.solver != "dense")
