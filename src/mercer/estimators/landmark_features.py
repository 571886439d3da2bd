r"""Landmark features (Nyström) as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from mercer.data import points as data
from mercer.data.types import Points, Seed, Targets
from mercer.errors import InputError
from mercer.estimators.shared.base import KernelMixin
from mercer.estimators.shared.parameters import KernelParameters, learner
from mercer.expansion import Expansion
from mercer.gram import Gram
from mercer.gram.landmark_map import LandmarkMap
from mercer.kernels.parameters import fixed, whole
from mercer.report import Journal, Plan, note
from mercer.runtime.config import settings, thread_count
from mercer.runtime.seeds import seed_of
from mercer.solvers.landmarks.rejection import random_pivots, random_pivots_memory

#: Features that are computed together where only τ is wanted: 32 MB in float64.
_FEATURES_AT_ONCE = 2**22
_CHOICES = ("uniform", "pivoted")


@learner
class LandmarkFeatures(
    KernelMixin,
    KernelParameters,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    r"""Features of any kernel from landmarks z₁ … z_M (Nyström): ⟨φ(x), φ(x')⟩ ≈ k(x, x').

    With K(Z, Z) = LLᵀ, φ(x) = L⁻¹ k(Z, x). The kernel of these features,

        k̂(x, x') = k(x, Z) K(Z, Z)⁻¹ k(Z, x'),

    is k itself wherever x or x' is a landmark, and k - k̂ is a kernel: k̂ never claims too much. A linear model
    of the features is the kernel model restricted to functions Σⱼ βⱼ k(zⱼ, ·). Points may be whatever the
    kernel compares: vectors, strings, graphs.

    Landmarks that depend on others to rounding (points that are twice the same, more points than the kernel
    has dimensions) are dropped: there may be fewer features than asked for, see ``n_components_``.

    Parameters
    ----------
    kernel, gamma, degree, coef0 : as in every estimator; see ``KernelPerceptron``
    n_components : the number of landmarks; all points where there are fewer
    landmarks : how they are chosen among the points. "uniform": each is as likely. "pivoted": by randomly
        pivoted Cholesky, next where the features so far know least; as a rule fewer of them give the same
        error. Or the landmarks themselves, any points; ``n_components`` then
        counts for nothing
    random_state : seed of the choice; None is 0

    Attributes
    ----------
    components_ : the landmarks that are kept
    component_indices_ : (components,) where they are in X, or in ``landmarks`` where those were given
    n_components_ : how many there are
    tau_ : τ = Σᵢ (k(xᵢ, xᵢ) - ‖φ(xᵢ)‖²) over the points of the fit, the trace of K - K̂
    expansion_ : the features as functions Σⱼ αⱼ k(zⱼ, ·); ``expansion_(X)`` is ``transform(X)``
    kernel_, report_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> from mercer.estimators.landmark_features import LandmarkFeatures
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> X = np.linspace(0, 6, 500)[:, None]
    >>> phi = LandmarkFeatures(n_components=20, gamma=1.0, landmarks="pivoted").fit(X)
    >>> phi.transform(X).shape, phi.tau_ < 1e-3
    ((500, 20), True)
    >>> model = make_pipeline(LandmarkFeatures(n_components=20, gamma=1.0), Ridge(1e-6))
    >>> round(model.fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])), 4)
    1.0
    """

    n_components: int = whole(1000)
    _: KW_ONLY
    landmarks: str | Points = fixed(
        "uniform",
        "'uniform', 'pivoted' or points",
        lambda v: v in _CHOICES if isinstance(v, str) else hasattr(v, "__len__") or hasattr(v, "shape"),
        "one of the two words, or a table or list of points",
    )
    random_state: Seed = None

    def fit(self, X: Points, y: Targets | None = None) -> Self:
        """Choose landmarks among the points X; y is ignored."""
        self._fit(X, keep=False)
        return self

    def fit_transform(self, X: Points, y: Targets | None = None) -> Any:  # (n, components)
        """Choose landmarks, and give the features of X."""
        return self._fit(X, keep=True)

    def transform(self, X: Points) -> Any:  # (n, components)
        """φ(x) of every point."""
        X = self._validate_new(X)
        return self.expansion_(X)

    @property
    def _n_features_out(self) -> int:
        return len(self.expansion_)

    # --- the steps of fit --------------------------------------------------------------------------------

    def _fit(self, X: Points, keep: bool) -> np.ndarray | None:
        journal = Journal()
        X = self._validate_fit(X)
        plan = self._plan(X, 1)
        plan.require_memory("ask for fewer components")
        Z, index = self._choose(X)
        phi, kept = LandmarkMap.of(self.kernel_, Z) if len(index) else (None, index)
        if phi is None or not len(kept):
            raise InputError(
                f"there are no features: k(z, z) = 0 for every landmark z of {self.kernel_!r}; "
                "give points that the kernel tells from nothing, or take another kernel"
            )
        if len(kept) < len(index):
            note(f"{len(index) - len(kept):,} of {len(index):,} landmarks depend on others, to rounding")
        self.expansion_ = Expansion(self.kernel_, data.copied(phi.points), phi.inverse().T)
        self.components_ = self.expansion_.anchors
        self.component_indices_ = index[kept]
        self.n_components_ = len(kept)
        features = self._features(X) if keep else None
        self.tau_ = self._left(X, features)
        self.report_ = journal.report(plan)
        return features

    def _choose(self, X: Points) -> tuple[Points, np.ndarray]:
        """Landmarks, and where they are."""
        if not isinstance(self.landmarks, str):
            Z = self.landmarks
            if self._pairwise:
                Z = np.asarray(Z)  # points are rows of the matrix, by their number
            else:
                Z = self._validate(Z, "no_validation", self.kernel_.domain, reset=False)[0]
            return Z, np.arange(data.n_points(Z))
        n, seed = data.n_points(X), seed_of(self.random_state)
        count = min(int(self.n_components), n)
        if self.landmarks == "pivoted":
            K = Gram(self.kernel_, X, cache=0)
            index = random_pivots(K, count, random_state=seed)
        else:
            index = np.sort(np.random.default_rng(seed).choice(n, count, replace=False))
        return data.take(X, index), index

    def _features(self, X: Points) -> np.ndarray:  # (n, components)
        return Gram(self.kernel_, X, self.components_, cache=0) @ self.expansion_.coef

    def _left(self, X: Points, features: np.ndarray | None) -> float:
        """τ; a term that rounding makes negative counts as 0."""
        left = np.asarray(Gram(self.kernel_, X, cache=0).diag(), dtype=np.float64)
        for rows in [slice(None)] if features is not None else self._parts(len(left)):
            part = features if features is not None else self._features(data.take(X, rows))
            left[rows] -= np.einsum("ij,ij->i", part, part, dtype=np.float64)
        return float(np.maximum(left, 0.0).sum())

    def _parts(self, n: int) -> Iterator[slice]:
        step = max(1, _FEATURES_AT_ONCE // self.n_components_)
        for start in range(0, n, step):
            yield slice(start, min(start + step, n))

    def _plan(self, X: Points, n_outputs: int) -> Plan:
        n, d = data.n_points(X), data.n_columns(X) or 1
        is_given = not isinstance(self.landmarks, str)
        M = data.n_points(self.landmarks) if is_given else min(int(self.n_components), n)
        name, flops = "landmark features", 2.0 * n * M * (d + 10 + M) + M**3
        # Matrices of the landmarks; k(x, x) and its copies; features that are made at a time, and values.
        features, values = min(_FEATURES_AT_ONCE, n * M), thread_count() * min(2**20, n * M)
        memory = 3 * 8 * M * M + 24 * n + 2 * np.dtype(settings().dtype).itemsize * (features + values)
        if is_given:
            why = ["the landmarks were given"]
        elif self.landmarks == "pivoted":
            name, why = f"{name} by randomly pivoted Cholesky", ["it was asked for"]
            flops += float(M) ** 3
            memory = max(memory, random_pivots_memory(n, M))
        else:
            why = ["landmarks are drawn uniformly"]
        if not is_given and int(self.n_components) > M:
            why.append(f"there are only {n:,} points for {int(self.n_components):,} landmarks")
        return Plan(name, n, int(memory), flops, tuple(why))
