r"""Kernel principal components as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted

from mercer.data import points as data
from mercer.data.types import Points, Seed, Targets, Weights
from mercer.errors import InputError, warn_user
from mercer.estimators.shared.base import KernelMixin, check_weights, flag
from mercer.estimators.shared.definite import INDEFINITE, DefiniteMixin
from mercer.estimators.shared.iterative import IterativeMixin
from mercer.estimators.shared.origin import expanded, mean_of, moved, origin_of, warn_if_lost
from mercer.gram import Gram
from mercer.kernels.base import Kernel
from mercer.kernels.domain import Domain
from mercer.kernels.formula.calculus import differentiate, evaluate
from mercer.kernels.formula.expression import Number
from mercer.kernels.formula.pair import ParameterLeaf, Quantity, Scaling
from mercer.kernels.names import KernelLike
from mercer.kernels.parameters import Parameter, choice, fixed, nonnegative, whole
from mercer.kernels.vectors.dotproduct import Linear
from mercer.report import Journal, Plan
from mercer.runtime.config import memory_budget, settings
from mercer.solvers.control import Control
from mercer.solvers.result import Stop
from mercer.solvers.spectral.eigen import EigenResult, Scheme, leading_eigenpairs, scheme
from mercer.solvers.spectral.preimage import PreimageResult, fixed_point, ridge_map

__all__ = ["KernelPCA"]

_Radial = Callable[[np.ndarray, Any], tuple[np.ndarray, np.ndarray]]

_NEAREST = 8  # training points that a pre-image may start from
_ALIASES = {"arpack": "lanczos"}
_STORES = {
    "dense": "K fits, and is multiplied from memory",
    "half": "half of K is kept in float32, and multiplied from memory; the last products are exact",
    "nothing": "K does not fit the memory budget: its values are computed for every product",
}


def _is_count_or_share(value: object) -> bool:
    if isinstance(value, bool | np.bool_):
        return False
    if isinstance(value, Integral):
        return int(value) >= 1
    return isinstance(value, float | np.floating) and bool(0 < value < 1)


class KernelPCA(
    IterativeMixin,
    DefiniteMixin,
    KernelMixin,
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
    eigenvectors_ : (n, components) of unit length; the sign is such that the largest score is positive
    residuals_ : (components,) each eigenvalue is within this of a true one
    explained_variance_ : (components,) eigenvalues / (n - 1), the variance of the scores, as in PCA
    explained_variance_ratio_ : (components,) the share of the total variance in feature space
    expansion_ : the functions f_c, a column of ``coef`` each; ``expansion_(X)`` is ``transform(X)``
    kernel_, report_, n_iter_, n_features_in_, feature_names_in_

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

    _declared: ClassVar[dict[str, Parameter]] = {
        "n_components": fixed(
            None,
            "a whole number of at least 1 or a share between 0 and 1",
            _is_count_or_share,
            "e.g. 10, 0.95, or None for all",
            optional=True,
        ),
        "alpha": nonnegative(1.0),
        "fit_inverse_transform": flag(False),
        "inverse": choice("auto", ("auto", "fixed_point", "ridge")),
        "eigen_solver": choice("auto", ("auto", "dense", "lanczos", "randomized", "arpack")),
        "indefinite": INDEFINITE,
        "tol": nonnegative(None, optional=True),
        "max_iter": whole(None, optional=True),
        **IterativeMixin.CONTROL,
    }

    def __init__(
        self,
        n_components: Any = None,
        *,
        kernel: KernelLike = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        alpha: float = 1.0,
        fit_inverse_transform: bool = False,
        inverse: str = "auto",
        eigen_solver: str = "auto",
        indefinite: str = "refuse",
        tol: float | None = None,
        max_iter: int | None = None,
        random_state: Seed = None,
        max_time: float | None = None,
        progress: Any = None,
        checkpoint: Any = None,
        resume: bool = False,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.alpha = alpha
        self.fit_inverse_transform = fit_inverse_transform
        self.inverse = inverse
        self.eigen_solver = eigen_solver
        self.indefinite = indefinite
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.max_time = max_time
        self.progress = progress
        self.checkpoint = checkpoint
        self.resume = resume

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
        for name in ("dual_coef_", "scores_fit_"):  # of an earlier fit
            if hasattr(self, name):
                delattr(self, name)
        X = self._validate_fit(X, sample_weight=sample_weight)
        weight = check_weights(sample_weight, X)
        how, plan = self._scheme(X), self._plan(X, 1)
        plan.require_memory("ask for fewer components, or use fewer points")
        self._require_definite(X if weight.all() else data.take(X, np.flatnonzero(weight)), centred=True)
        if self._is_learned():
            _require_map(self.kernel_)
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
        kept = self._select(result)
        if result.lowest < -max(result.zero, 1e-12 * abs(float(result.values[0]))):
            self._meet(result.lowest, X, journal)
        if kept == 1 and result.values[0] <= result.zero:
            journal.warn(
                "the points do not vary in feature space: every score is zero; give points that differ, or "
                "take another kernel"
            )
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

    def _keep(
        self, points: Points, result: EigenResult, kept: int, weight: np.ndarray, origin: np.ndarray | None
    ) -> np.ndarray | None:
        values, U = result.values[:kept], result.vectors[:, :kept]
        values = np.where(values > result.zero, values, 0.0)
        root = np.sqrt(weight)[:, None]
        inverse = np.divide(1.0, np.sqrt(values), out=np.zeros(kept), where=values > 0)
        # the value at xᵢ, of which the eigenvector holds √wᵢ times as much: repeated points keep their sign
        scores = np.divide(U, root, out=np.zeros_like(U), where=root > 0)
        sizes = np.abs(scores)
        largest = (sizes >= (1 - 1e-6) * sizes.max(axis=0)).argmax(axis=0)  # the first of those that tie
        sign = np.where(scores[largest, np.arange(kept)] < 0, -1.0, 1.0)
        del scores, sizes
        total, n = result.trace, float(weight.sum())
        n = n - 1 if n > 1 else n
        self._weight = weight
        self.eigenvalues_ = values
        self.eigenvectors_ = np.multiply(U, sign, order="C")
        self.residuals_ = result.residuals[:kept]
        self.explained_variance_ = values / n
        share = total > result.zero
        self.explained_variance_ratio_ = values / total if share else np.zeros(kept)
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

    def _select(self, result: EigenResult) -> int:
        """How many of the components that were computed are kept."""
        if isinstance(self.n_components, Integral):
            return len(result.values)
        positive = max(1, int((result.values > result.zero).sum()))
        if self.n_components is None:
            return positive
        share = np.cumsum(np.maximum(result.values[:positive], 0.0)) / max(result.trace, 1e-300)
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
        n, how = data.n_points(X), self._scheme(X)
        k, d = self._count(n), getattr(X, "shape", (n, 1))[-1]
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
            if how.store == "nothing":
                flops += (steps - 1) * 2.0 * n * n * (d + 10)
        if self._is_learned():
            copy = 4 * n * n if settings().dtype == "float32" else 0  # K' on its way to double precision
            memory = max(memory, 8 * n * (n + 3 * k + 4 * d) + copy)
            flops += n**3 / 3
            why.append("a map back is learned, by one Cholesky factorisation")
        return Plan(name, n, int(memory), flops, tuple(why), iterative=how.solver != "dense")

    # --- the way back ------------------------------------------------------------------------------------

    def inverse_transform(self, X: Points) -> np.ndarray:  # (n, features)
        """Points whose scores are (nearest to) the rows of X."""
        check_is_fitted(self)
        scores = check_array(X, dtype=np.float64)
        if scores.shape[1] != self._n_features_out:
            raise InputError(
                f"inverse_transform takes scores of {self._n_features_out} components, got "
                f"{scores.shape[1]} columns: pass what transform returns"
            )
        has_map = hasattr(self, "dual_coef_")
        if self.inverse == "ridge" and not has_map:
            raise InputError(
                "inverse='ridge' needs the map back that fit learns, and this model was fitted without: fit "
                "again with inverse='ridge'"
            )
        if has_map and self.inverse != "fixed_point":
            return Gram(self.kernel_, scores, self.scores_fit_, cache=0) @ self.dual_coef_
        _require_vectors(self.kernel_, "inverse_transform")
        if isinstance(self.kernel_, Linear) and self.inverse == "auto":
            anchors, coef = self.expansion_.anchors, self.expansion_.coef
            return np.asarray(self._mean() + scores @ np.asarray(anchors.T @ coef).T)
        radial = _radial(self.kernel_)
        if radial is None:
            raise InputError(
                "inverse_transform by fixed point needs a kernel of the distance ‖x - x'‖ such as Gaussian, "
                f"got {self.kernel_!r}: fit with fit_inverse_transform=True to learn a map back"
            )
        return self._fixed_point(scores, radial)

    def _is_learned(self) -> bool:
        return self.inverse == "ridge" or (bool(self.fit_inverse_transform) and self.inverse == "auto")

    def _learn_inverse(self, X: Any, scores: np.ndarray, weight: np.ndarray) -> None:
        K = Gram(self.kernel_, scores, cache=0).dense()
        targets = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
        self.dual_coef_ = ridge_map(np.asarray(K, dtype=np.float64), targets, float(self.alpha), weight)
        self.scores_fit_ = scores

    def _mean(self) -> np.ndarray:  # (d,)
        """The weighted mean of the training points."""
        return mean_of(self.expansion_.anchors, self._weight) if self._centroid is None else self._centroid

    def _fixed_point(self, scores: np.ndarray, radial: _Radial) -> np.ndarray:
        """Pre-images, for as many rows at a time as their coefficients and candidates fit half the budget."""
        n, d = self.expansion_.anchors.shape
        rows = max(1, memory_budget() // (2 * 8 * (5 * n + 5 * (_NEAREST + 1) * d)))
        parts = [slice(start, start + rows) for start in range(0, len(scores), rows)]
        total = None if len(parts) == 1 else len(scores)
        results = []
        with Control("pre-images", total, max_time=self.max_time, progress=self.progress) as control:
            for part in parts:
                inner = control if len(parts) == 1 else control.inner()
                results.append(self._fixed_point_of(scores[part], radial, inner))
                if inner is not control:
                    control.step(steps=len(scores[part]))
        converged = np.concatenate([result.converged for result in results])
        if not converged.all():
            causes = {result.stopped for result in results if not result.converged.all()}
            cause = ", ".join(sorted("degenerate" if cause == Stop.CONVERGED else cause for cause in causes))
            warn_user(
                f"{int((~converged).sum())} of {len(scores)} pre-images did not converge ({cause}) in "
                f"{max(result.iterations for result in results)} steps: they are the best so far; raise "
                "max_iter or max_time, or use inverse='ridge'",
                ConvergenceWarning,
            )
        return np.concatenate([result.points for result in results])

    def _fixed_point_of(self, scores: np.ndarray, radial: _Radial, control: Control) -> PreimageResult:
        anchors = self.expansion_.anchors
        near, squared = self._nearest(scores)
        points = anchors[near.ravel()]
        points = points.toarray() if sparse.issparse(points) else points
        points = np.asarray(points, dtype=np.float64).reshape(*near.shape, -1)
        closeness = 1 / (squared + 1e-12 * (1 + squared[:, -1:]))
        closeness /= closeness.sum(axis=1, keepdims=True)
        first = (closeness[:, :, None] * points).sum(axis=1, keepdims=True)
        coef = scores @ self.expansion_.coef.T
        coef += self._weight / self._weight.sum()
        return fixed_point(
            anchors,
            coef,
            radial,
            np.concatenate([first, points], axis=1),
            tol=1e-8 if self.tol is None else float(self.tol),
            max_iter=1000 if self.max_iter is None else int(self.max_iter),
            control=control,
        )

    def _nearest(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # (m, count) each
        """The training points whose scores are nearest, and the squares of their distances."""
        root = np.sqrt(self._weight)
        trained = self.eigenvectors_ * np.sqrt(self.eigenvalues_)
        trained /= np.where(root > 0, root, 1.0)[:, None]
        distance = scores @ trained.T
        distance *= -2
        distance += (trained**2).sum(axis=1)
        distance += (scores**2).sum(axis=1)[:, None]
        distance[:, root <= 0] = np.inf
        count = min(_NEAREST, int((root > 0).sum()))
        near = np.argsort(distance, axis=1, kind="stable")[:, :count].copy()
        return near, np.maximum(np.take_along_axis(distance, near, axis=1), 0.0)


def _require_vectors(kernel: Kernel, what: str) -> None:
    """Refuse kernels whose points cannot be averaged."""
    if not kernel.domain.is_vectors:
        raise InputError(
            f"{what} gives points as vectors, got the kernel {kernel!r}, which compares other "
            "things: there is no pre-image of strings, of tables or of rows of a precomputed matrix; take a "
            "kernel on vectors"
        )


def _require_map(kernel: Kernel) -> None:
    """Refuse kernels that the scores of a learned map back cannot be compared with."""
    _require_vectors(kernel, "the learned map back")
    views = (getattr(leaf, "view", None) for leaf in kernel.expression().leaves())
    if kernel.domain is Domain.NONNEGATIVE or any(view is not None and view.steps for view in views):
        raise InputError(
            f"the learned map back compares scores by the kernel itself, got {kernel!r}, which is for the "
            "columns of X or for values ≥ 0: use inverse='fixed_point', or a kernel with one length scale"
        )


def _radial(kernel: Kernel) -> _Radial | None:
    """Z, X ↦ κ(‖z - x‖²) and -κ'(‖z - x‖²), columns perhaps scaled; None for kernels that are not radial."""
    expression = kernel.expression()
    quantities = {leaf for leaf in expression.leaves() if not isinstance(leaf, Number | ParameterLeaf)}
    sqdist = quantities.pop() if len(quantities) == 1 else None
    if not isinstance(sqdist, Quantity) or sqdist.kind != "sqdist":
        return None
    if not all(isinstance(step, Scaling) for step in sqdist.view.steps):
        return None
    slope, view = differentiate(expression, sqdist), sqdist.view

    def radial(Z: np.ndarray, X: Any) -> tuple[np.ndarray, np.ndarray]:  # (m, n) each
        Z, X = view(Z), view(X)
        norms = X.multiply(X).sum(axis=1) if sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
        product = np.asarray(X @ Z.T).T
        squared = np.maximum(np.einsum("ij,ij->i", Z, Z)[:, None] + norms - 2 * product, 0.0)
        known = {sqdist: squared}

        def leaf_value(leaf: Any) -> Any:
            return known[leaf] if leaf == sqdist else leaf.value

        with np.errstate(all="ignore"):  # a slope may be infinite at distance 0: there is no step from there
            values, slopes = evaluate(expression, leaf_value), evaluate(slope, leaf_value)
        known.clear()  # ``evaluate`` may keep ``leaf_value`` until the garbage collector comes
        return np.broadcast_to(values, squared.shape), np.broadcast_to(-np.asarray(slopes), squared.shape)

    return radial
