r"""The perceptron on vectors, or on explicit features of them, as a scikit-learn classifier."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from mercer.data import points as data
from mercer.data.types import Points, Targets
from mercer.errors import InputError
from mercer.estimators.shared.base import KernelMixin
from mercer.estimators.shared.iterative import IterativeMixin
from mercer.estimators.shared.mistakes import MistakesMixin, squeeze
from mercer.estimators.shared.parameters import learner
from mercer.kernels.base import Kernel
from mercer.kernels.domain import Domain
from mercer.kernels.formula.pair import Mapping
from mercer.kernels.parameters import fixed, whole
from mercer.kernels.vectors.dotproduct import Linear
from mercer.report import Journal, Plan
from mercer.runtime.threads import by_our_threads
from mercer.solvers.perceptron.kernel import mistake_bound
from mercer.solvers.perceptron.primal import PrimalPerceptronResult, primal_perceptron
from mercer.solvers.perceptron.proof import MistakeProof


@learner
class Perceptron(MistakesMixin, IterativeMixin, KernelMixin, BaseEstimator):
    r"""Classification by the sign of ⟨w, x⟩ + b, w = Σ yᵢ xᵢ over the mistakes made in training.

    Training starts from w = 0, b = 0 and passes over the points; where yᵢ(⟨w, xᵢ⟩ + b) ≤ 0 it adds yᵢ xᵢ
    to w and yᵢ to b. It ends after a pass without a mistake; data that no hyperplane separates never come to
    that, and ``max_iter`` ends the training then, with a warning. With ``features`` the same is done with
    Φ(x) in place of x. The second of two classes is y = +1, and ``predict`` counts 0 as -1. Of more than two
    classes each is learned against the rest, in the same passes, and the largest value wins.

    It is ``KernelPerceptron(kernel="linear")``, mistake by mistake, at O(nd) for a pass instead of O(nd) for
    every mistake. There is no ``sample_weight``: a mistake is a mistake, and the bound counts them.

    Parameters
    ----------
    features : Φ, an explicit map: a function of a whole table such as ``mercer.features.PolynomialMap(2)``,
        or a fitted object with ``transform``; None for x itself
    fit_intercept : whether there is a b
    boundary : what ⟨w, xᵢ⟩ + b = 0 is in training. "mistake": a mistake whatever the label; the classes are
        treated alike, and what is separated has a margin. "negative": sign(0) = -1, as in ``predict``, so
        that it is a mistake only where yᵢ = +1
    prediction : which w decides; the training is the same. "last": that of the end. "averaged": the mean of w
        and b over all visits of a point. "voted": each has a vote, as in ``KernelPerceptron``
    max_iter : passes over the data, at most
    shuffle : whether each pass visits the points in a new random order
    random_state : seed of those orders
    max_time, progress, checkpoint, resume : control over a long run: see `estimators.shared.iterative`

    Attributes
    ----------
    classes_ : (classes,) the labels
    coef_ : (1, d), or (classes, d): w, the last or the averaged one
    intercept_ : (1,), or (classes,): b
    expansion_ : the same function as an Expansion of the linear kernel (of Φ) on the mistakes
    mistakes_ : mistakes made in all; for several classes (classes,)
    mistake_indices_ : the training points that were mistakes, in order (of a stream, counted from its
        beginning); for several classes a list. Absent where they are more than 2¹⁸, or than fit a sixteenth
        of the memory budget
    margin_ : ρ = minᵢ yᵢ(⟨w, xᵢ⟩ + b) / ‖w‖ of the last w; negative where a point is wrong; NaN after
        ``partial_fit``; for several classes (classes,)
    bound_ : (b*² + 1)(r² + 1)/ρ² ≥ ``mistakes_``, where w* = w/‖w‖, b* = b/‖w‖ and r = max ‖xᵢ‖, for the w
        that was found (r²/ρ² without an intercept); infinite where ρ = 0; NaN unless converged; for several
        classes (classes,). ``bound`` gives that of another separator
    n_iter_ : passes made, of the class that took most
    converged_ : whether every class was separated
    kernel_ : the kernel of the expansion
    report_ : how the fit went
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> from mercer.estimators.linear_perceptron import Perceptron
    >>> from mercer.features import PolynomialMap
    >>> X, y = [[1, 1], [-1, 1], [-1, -1], [1, -1]], [1, -1, 1, -1]
    >>> xor = Perceptron(PolynomialMap(2), fit_intercept=False, boundary="negative").fit(X, y)
    >>> xor.coef_, xor.mistakes_  # ⟨w, Φ(x)⟩ = x₁² + 2x₁x₂ + x₂²
    (array([[1.        , 1.41421356, 1.        ]]), 1)
    """

    features: Any = fixed(
        None,
        "a function of a table or an object with transform",
        lambda v: callable(v) or hasattr(v, "transform"),
        "Φ such that Φ(X) has one row per point",
        optional=True,
    )
    _: KW_ONLY
    max_iter: int = whole(1000)

    def fit(self, X: Points, y: Targets) -> Self:
        """Train on the points X and their labels y."""
        journal = Journal()
        X, y = self._validate_fit(X, y)
        codes = self._encode(y)
        Y = self._signs(codes)
        plan = self._plan(X, Y.shape[1])
        plan.require_memory(
            f"{plan.why[0]}; use fewer points, a smaller map, or partial_fit on parts of the points"
        )
        points = self._map(X)
        with self._control("perceptron", self.max_iter * len(codes), X, codes) as control:
            result = primal_perceptron(
                points,
                Y,
                fit_intercept=self.fit_intercept,
                boundary=self.boundary,
                max_epochs=self.max_iter,
                orders=self._seed(),
                keep=self._keep_order(),
                control=control,
            )
        self._largest = result.radius2
        self._keep(self._adopt(X, result.made), result)
        self._seen = len(codes)
        self.margin_, self.bound_ = squeeze(result.margin), squeeze(result.bound)
        remedy = "raise max_iter, scale the data, or take features= or a kernel (KernelPerceptron)"
        self._end_of_fit(journal, result, int(result.epochs.max()), result.converged, remedy)
        self.report_ = journal.report(
            plan, result.stopped, iterations=self.n_iter_, time=control.total_seconds
        )
        return self

    def partial_fit(self, X: Points, y: Targets, classes: Any = None) -> Self:
        """Go on with more points: each is visited once, in order, and need not be kept by the caller.

        A stream of batches gives what one pass over all of them gives. The first call names all classes that
        will come.
        """
        journal = Journal()
        X, codes, first = self._validate_stream(X, y, classes)
        Y = self._signs(codes)
        plan = self._plan(X, Y.shape[1])
        result = primal_perceptron(
            self._map(X),
            Y,
            fit_intercept=self.fit_intercept,
            boundary=self.boundary,
            max_epochs=1,
            start=None if first else (self._w, self._b),
            keep=self._keep_order(),
        )
        self._largest = result.radius2 if first else max(self._largest, result.radius2)
        self._keep(self._adopt(X, result.made, first), result)
        self._end_of_batch(len(codes), Y.shape[1])
        self.report_ = journal.report(plan, iterations=1)
        return self

    @by_our_threads
    def decision_function(self, X: Points) -> np.ndarray:  # (n,) or (n, classes)
        """⟨w, x⟩ + b for every row of X, or the votes; for several classes one column each."""
        X = self._validate_new(X)
        if self._is_voted:
            return self._votes(X)
        values = np.asarray(self._map(X) @ self.coef_.T) + self.intercept_
        return values[:, 0] if values.shape[1] == 1 else values

    def bound(self, w: Any, b: Any = 0.0, X: Points | None = None, y: Targets | None = None) -> Any:
        """(b*² + 1)(r² + 1)/ρ² ≥ ``mistakes_`` of the training, for another separator w* = w/‖w‖, b* = b/‖w‖.

        Without an intercept it is r²/ρ². The separator is taken at its word that yᵢ(⟨w, xᵢ⟩ + b) ≥ 1 on the
        training points, that is ρ = 1/‖w‖; given those (X, y), ρ is their margin. For several classes w has a
        row for each, and b and the result an entry.
        """
        w, b, least = self._separator(w, b, X, y)
        # in ‖w‖ = 1, (b*² + 1)(r² + 1)/ρ² = (b² + ‖w‖²)(r² + 1) / (minᵢ yᵢ(⟨w, xᵢ⟩ + b))²
        square = (w**2).sum(axis=1) + b**2
        return squeeze(mistake_bound(square, least, self._largest + self.fit_intercept))

    def proof(
        self, w: Any = None, b: Any = 0.0, X: Points | None = None, y: Targets | None = None
    ) -> MistakeProof:
        """The convergence proof, mistake by mistake, for a separator as in ``bound``, or for the one found.

        With an intercept it is about the vectors (w, b) and (x, 1).

        >>> from mercer.estimators.linear_perceptron import Perceptron
        >>> X, y = [[0.0, 1.0], [2.0, 0.0]], [-1, 1]
        >>> proof = Perceptron(fit_intercept=False).fit(X, y).proof([1.0, -1.0], 0.0, X, y)
        >>> proof.progress.round(3), (proof.norms**2).round(9), round(proof.bound, 9)
        (array([0.   , 0.707, 2.121]), array([0., 1., 5.]), 8.0)
        """
        if w is None:
            return self._proof(None, None, None)
        w, b, least = self._separator(w, b, X, y)
        values = np.asarray(self._map(self.expansion_.anchors) @ w[0]) + b[0]
        return self._proof(values, float(w[0] @ w[0] + b[0] ** 2), least[0])

    def _separator(
        self, w: Any, b: Any, X: Points | None, y: Targets | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # (functions, d), (functions,), (functions,)
        """w and b as arrays, and minᵢ yᵢ(⟨w, xᵢ⟩ + b)."""
        points = self._map(self._validate_new(X)) if X is not None else None
        w, b = np.atleast_2d(np.asarray(w, dtype=np.float64)), np.atleast_1d(np.asarray(b, dtype=np.float64))
        if w.shape != self.coef_.shape:
            raise InputError(f"w must have the shape of coef_, {self.coef_.shape}, got {w.shape}")
        if not self.fit_intercept and b.any():
            raise InputError(f"b must be 0 where the perceptron has none (fit_intercept=False), got {b}")
        if points is None:
            return w, b, np.ones(len(w))
        codes = np.searchsorted(self.classes_, np.asarray(y))
        return w, b, (self._signs(codes) * (np.asarray(points @ w.T) + b)).min(axis=0)

    # --- the steps of fit --------------------------------------------------------------------------------

    def _kernel(self) -> Kernel:
        return Linear() if self.features is None else Linear() @ self.features

    def _validate(
        self, X: Points, y: Targets, domain: Domain, reset: bool, **y_options: Any
    ) -> tuple[Any, Any]:
        return super()._validate(X, y, Domain.VECTORS, reset, **y_options)  # A map takes vectors, too.

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _map(self, X: Points) -> Any:
        """x, or Φ(x), in rows."""
        return X if self.features is None else data.as_vectors(Mapping(self.features)(X), "features(X)")

    def _plan(self, X: Any, n_outputs: int) -> Plan:
        n = data.n_points(X)
        width = data.n_columns(X) or 1
        bytes_ = X.data.nbytes + X.indices.nbytes if sparse.issparse(X) else 8 * n * width
        mapped, why = 0, ("a pass over the data takes O(nd)",)
        if self.features is not None:
            count = getattr(self.features, "n_features", None)
            width = int(count(width)) if callable(count) else width
            mapped, why = (
                8 * n * width,
                (f"Φ has {width:,} features" if callable(count) else "Φ is explicit",),
            )
        memory = mapped + bytes_ + 8 * width * (3 * n_outputs + 64) + 8 * 4 * n * n_outputs
        memory += self._mistake_bytes(n, n_outputs)
        return Plan("perceptron", n, memory, 2.0 * 10 * n * width * (n_outputs + 32), why, iterative=True)

    def _keep(self, anchors: Points, result: PrimalPerceptronResult) -> None:
        """The model, on the points that were mistakes."""
        coef = self._publish(anchors)
        self._w, self._b = result.w, result.b
        averaged = self.prediction == "averaged"
        w = np.asarray(self._map(anchors).T @ coef) if averaged else result.w
        self.coef_ = np.ascontiguousarray(w.T)
        self.intercept_ = np.atleast_1d(self.expansion_.intercept)
