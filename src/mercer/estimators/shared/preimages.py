r"""The way back from the scores of kernel principal components to points: pre-images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, check_is_fitted

from mercer.data.types import Points, ProgressMode
from mercer.errors import InputError, warn_user
from mercer.estimators.shared.landmarks import Restricted
from mercer.estimators.shared.origin import mean_of
from mercer.expansion import Expansion
from mercer.gram import Gram
from mercer.kernels.base import Kernel
from mercer.kernels.domain import Domain
from mercer.kernels.formula.calculus import differentiate, evaluate
from mercer.kernels.formula.expression import Number
from mercer.kernels.formula.pair import ParameterLeaf, Quantity, Scaling
from mercer.kernels.vectors.dotproduct import Linear
from mercer.runtime.config import memory_budget
from mercer.runtime.threads import by_our_threads
from mercer.solvers.control import Control
from mercer.solvers.landmarks.path import RestrictedPath
from mercer.solvers.result import Stop
from mercer.solvers.spectral.preimage import PreimageResult, fixed_point, ridge_map

_Radial = Callable[[np.ndarray, Any], tuple[np.ndarray, np.ndarray]]

_NEAREST = 8  # training points that a pre-image may start from


class PreimageMixin:
    """``inverse_transform`` for principal components that are expansions f_c on anchors."""

    kernel_: Kernel
    expansion_: Expansion
    eigenvalues_: np.ndarray
    eigenvectors_: np.ndarray
    inverse: str
    fit_inverse_transform: bool
    alpha: float
    tol: float | None
    max_iter: int | None
    max_time: float | None
    progress: ProgressMode
    #: (n,) the weights of the anchors, where these are the training points
    _weight: np.ndarray
    #: (M,) the coefficients of the mean of the Φ(xᵢ), where the anchors are landmarks
    _mean_coef: np.ndarray | None = None
    #: (d,) the mean of the training points, where it is not that of the anchors
    _centroid: np.ndarray | None = None

    @by_our_threads
    def inverse_transform(self, X: Points) -> np.ndarray:  # (n, features)
        """Points whose scores are (nearest to) the rows of X."""
        check_is_fitted(self)
        scores = check_array(X, dtype=np.float64)
        if scores.shape[1] != len(self.eigenvalues_):
            raise InputError(
                f"inverse_transform takes scores of {len(self.eigenvalues_)} components, got "
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

    def _learn_restricted_inverse(self, X: Any, weight: np.ndarray) -> None:
        """Learn the map on the scores of the landmarks alone, from all points."""
        scores, anchors = self.expansion_(X), self.expansion_(self.expansion_.anchors)
        targets = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
        problem = Restricted(self.kernel_, scores, anchors, fit_intercept=False)
        path = RestrictedPath(problem.features, targets, weight)
        if not float(self.alpha) > path.zero:
            raise InputError(
                f"alpha of the learned map back is below the rounding of its matrix, got {self.alpha!r}: "
                "raise alpha"
            )
        self.dual_coef_ = path.solve(np.full(targets.shape[1], float(self.alpha)))[0]
        self.scores_fit_ = problem.points

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
        coef += self._weight / self._weight.sum() if self._mean_coef is None else self._mean_coef
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
        """The anchors whose scores are nearest, and the squares of their distances."""
        if self._mean_coef is None:
            root = np.sqrt(self._weight)
            trained = self.eigenvectors_ * np.sqrt(self.eigenvalues_)
            trained /= np.where(root > 0, root, 1.0)[:, None]
        else:
            trained = self.expansion_(self.expansion_.anchors)
            root = np.ones(len(trained))
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


def require_map(kernel: Kernel) -> None:
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
