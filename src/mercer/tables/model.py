r"""``TableModel``: an estimator that takes tables, from columns of any kind to predictions.

>>> import numpy as np
>>> from mercer import KernelRidge
>>> table = np.array([[2.0 * i, "ab"[i % 2]] for i in range(40)], dtype=object)
>>> y = np.arange(40.0) + 10 * (np.arange(40) % 2)
>>> model = TableModel(KernelRidge(0.01)).fit(table, y)
>>> bool(np.abs(model.predict(table) - y).mean() < 1)
True
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer.data.types import Model, Points, Targets
from mercer.errors import InputError
from mercer.estimators.shared.sets import SETS, likely
from mercer.estimators.shared.uncertain import check_coverage, in_percent
from mercer.runtime.config import require_memory
from mercer.selection.regressor import apart_guarantee
from mercer.solvers.conformal import quantile
from mercer.tables.features import TableFeatures
from mercer.tables.learners import with_task
from mercer.tables.table import Table

#: what sets of classes are of, where probabilities were learned from rows that were kept apart
_SETS_APART = {
    "groups": "they are from groups left out, and of the rows of new groups on average",
    "times": "they are from later rows than were learned from, and rows in time are not exchangeable",
}
_NAME = 64  # bytes of the name of a column


def _has(method: str) -> Any:
    def check(model: TableModel) -> bool:
        inner = getattr(model, "estimator_", model.estimator)
        return hasattr(inner, method)

    return check


def _speaker(estimator: Model) -> Any:
    """Who knows probabilities: the estimator, or the model that its search fitted."""
    return estimator if hasattr(estimator, "predict_proba") else getattr(estimator, "model_", estimator)


def _has_probabilities(model: TableModel) -> bool:
    return hasattr(_speaker(getattr(model, "estimator_", model.estimator)), "predict_proba")


def _has_intervals(model: TableModel) -> bool:
    return hasattr(model, "left_out_errors_") or _has("predict_interval")(model)


class TableModel(BaseEstimator):
    """Features of a table, then an estimator on them; texts and sets have kernels of their own.

    A sparse matrix goes to the estimator as it is.

    Parameters
    ----------
    estimator : an estimator with a parameter ``kernel``, such as `mercer.selection.AutoKernelClassifier`
    features : a `TableFeatures`, or None for one with its defaults. ``FrozenEstimator(features)`` of
        scikit-learn's, with fitted ones, keeps these in every fit: for a kernel with a value for each of them

    Attributes
    ----------
    features_, estimator_ : both, fitted; features_ is None for a sparse matrix
    left_out_errors_ : of a regression that `mercer.tables.train` has checked, the sizes of the errors on rows
        that no step of it had seen, in rising order; intervals are made of them
    about_ : what a reader of the model should know, by name: plain values that model files can hold
    """

    features_: TableFeatures | None
    estimator_: Any
    about_: dict[str, Any]
    left_out_errors_: np.ndarray

    def __init__(self, estimator: Model, features: TableFeatures | None = None) -> None:
        self.estimator = estimator
        self.features = features

    def __sklearn_tags__(self) -> Any:
        tags = with_task(super().__sklearn_tags__(), self.estimator)
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Targets, **apart: Any) -> Self:
        """Learn the features, then fit the estimator on them; ``groups`` or ``times`` are for its ``fit``."""
        estimator = clone(self.estimator)
        if sparse.issparse(X):
            width = X.shape[1]
            require_memory(
                _NAME * width, f"a table of {width:,} columns", "number the features without large gaps"
            )
            self.features_ = None
            Z = X
        else:
            self.features_ = self._learned(X, y)
            Z = self.features_.transform(X)
            if hasattr(estimator, "kernel"):
                estimator.set_params(kernel=self._kernel_of(self.features_, estimator.kernel))
        self.estimator_ = estimator.fit(Z, y, **apart)
        self.n_features_in_ = int(X.shape[1]) if hasattr(X, "shape") else self.features_.n_features_in_  # type: ignore[union-attr]
        if hasattr(self.estimator_, "classes_"):
            self.classes_ = self.estimator_.classes_
        return self

    def _learned(self, X: Points, y: Targets) -> TableFeatures:
        """The features of these rows; frozen ones stay those of the rows that they were learned from."""
        if isinstance(self.features, FrozenEstimator):
            known: TableFeatures = self.features.estimator
            return known
        features = clone(self.features) if self.features is not None else TableFeatures()
        return features.fit(X, y)

    @staticmethod
    def _kernel_of(features: TableFeatures, given: Any) -> Any:
        """The kernels to choose from on what the features are, in a list where one was given."""
        kernels = features.kernels(given)
        return kernels if isinstance(given, list | tuple) or len(kernels) > 1 else kernels[0]

    # --- new tables --------------------------------------------------------------------------------------

    def transform(self, X: Any | Table) -> Any:
        """What the estimator sees of a frame, an array, a sparse matrix or a `Table` that was read."""
        check_is_fitted(self)
        if isinstance(X, Table):
            X = self.points_of(X)
        return X if self.features_ is None else self.features_.transform(X)

    def points_of(self, table: Table) -> Any:
        """The frame or the sparse matrix of a table, as wide as the one that the model was fitted to."""
        if self.features_ is None:
            return table.as_wide_as(self.n_features_in_)
        if table.format == "libsvm":  # zeros are not written: the last columns may be absent, or new
            from mercer.tables.frames import frame_of

            names = [name for name in self.features_.columns_ if name[0] == "x" and name[1:].isdecimal()]
            indices = [int(name[1:]) for name in names]
            dense = table.as_wide_as(max(indices, default=0) + 1)[:, indices].toarray()
            return frame_of({name: dense[:, j] for j, name in enumerate(names)})
        if table.frame is None:
            raise InputError(
                f"{table.name} has too many columns for this model: pass a file like its training file"
            )
        return table.frame

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """What each column of ``transform`` is; of a sparse matrix x0, x1, …, as a LIBSVM file counts."""
        check_is_fitted(self)
        if self.features_ is None:
            return np.array([f"x{j}" for j in range(self.n_features_in_)], dtype=object)
        return self.features_.get_feature_names_out()

    def as_pipeline(self) -> Any:
        """The fitted steps as a pipeline of scikit-learn; the estimator alone for sparse matrices."""
        from sklearn.pipeline import Pipeline

        check_is_fitted(self)
        if self.features_ is None:
            return self.estimator_
        return Pipeline([("features", self.features_), ("model", self.estimator_)])

    def predict(self, X: Points) -> np.ndarray:  # (n,)
        """The class or the value of each row."""
        return np.asarray(self.estimator_.predict(self.transform(X)))

    @available_if(_has("decision_function"))
    def decision_function(self, X: Points) -> np.ndarray:
        """The estimator's, of each row."""
        return np.asarray(self.estimator_.decision_function(self.transform(X)))

    @available_if(_has_probabilities)
    def predict_proba(self, X: Points) -> np.ndarray:  # (n, classes)
        """The estimator's, of each row."""
        return self.probabilities(self.transform(X))

    def probabilities(self, Z: Points) -> np.ndarray:  # (n, classes)
        """P(class | row) of what ``transform`` gave."""
        return np.asarray(_speaker(self.estimator_).predict_proba(Z))

    @available_if(_has_intervals)
    def predict_interval(self, X: Points, coverage: float = 0.9) -> np.ndarray:  # (n, 2)
        """The ends of an interval for the target of each row; `interval_guarantee` says what is known of it.

        Of a model of `mercer.tables.train` it is the prediction ± a quantile of the errors on rows that no
        step had seen, the search included; else it is the estimator's own.
        """
        return self.interval(self.transform(X), coverage)

    def interval(self, Z: Points, coverage: float, mean: np.ndarray | None = None) -> np.ndarray:  # (n, 2)
        """The interval from what ``transform`` gave, and from its predictions where these are there."""
        if not hasattr(self, "left_out_errors_"):
            return np.asarray(self.estimator_.predict_interval(Z, coverage))
        half = float(quantile(self.left_out_errors_[:, None].copy(), check_coverage(coverage))[0])
        mean = np.asarray(self.estimator_.predict(Z)) if mean is None else mean
        return np.column_stack([mean - half, mean + half])

    @available_if(_has_probabilities)
    def predict_set(self, X: Points, coverage: float = 0.9) -> np.ndarray:  # (n, classes) bool
        """The likeliest classes of each row, until their probabilities sum to ``coverage``."""
        return likely(self.predict_proba(X), check_coverage(coverage))

    def interval_guarantee(self, coverage: float = 0.9) -> str:
        """What is guaranteed of intervals, or of sets of classes, in words."""
        belongs = getattr(self, "about_", {}).get("apart")
        if hasattr(self, "classes_"):
            words = SETS.format(coverage=in_percent(coverage))
            return words if belongs is None else f"{words}; {_SETS_APART[belongs['by']]}"
        if not hasattr(self, "left_out_errors_"):
            return str(self.estimator_.interval_guarantee(coverage))
        if belongs is not None:
            return apart_guarantee(belongs["by"] == "times", coverage, len(self.left_out_errors_))
        return (
            f"about {in_percent(coverage)} of new rows like these are inside: from the errors on "
            f"{len(self.left_out_errors_):,} rows that the search had not seen either; the model may have "
            "learned from these since, and no bound is proved"
        )

    def score(self, X: Points, y: Targets) -> float:
        """The share of right labels, or R²."""
        from sklearn.base import is_classifier
        from sklearn.metrics import accuracy_score, r2_score

        return float((accuracy_score if is_classifier(self) else r2_score)(y, self.predict(X)))
