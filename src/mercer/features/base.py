"""What explicit maps share: a function of a whole table, and a step of scikit-learn's pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import FrozenInstanceError, fields
from decimal import Decimal
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from mercer.data.points import as_vectors, require_numbers
from mercer.data.refusals import refuse_too_large
from mercer.data.sources.door import is_in_file
from mercer.data.sparse import dense, is_sparse, require_indices
from mercer.data.types import Points, Targets
from mercer.errors import InputError, InputTypeError, shown
from mercer.runtime.config import require_memory

Floats = NDArray[np.floating[Any]]


class FeatureMap(TransformerMixin, BaseEstimator):
    """What explicit maps share: a value that is called like Φ, and a step of a pipeline.

    A subclass is a dataclass with ``check``, ``n_features``, ``feature_names``, ``__call__``. Its parameters
    change by ``set_params`` alone, and are checked when they are used. There is nothing to learn from data:
    ``fit`` only remembers the columns, and ``transform`` works without it.
    """

    #: what helps where the features do not fit the memory budget
    _remedy = "map fewer points at a time"

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        raise NotImplementedError

    def _validate_params(self) -> None:
        self.check()

    def n_features(self, m: int) -> int:
        """The number of features of a point with m columns, known before any is computed."""
        raise NotImplementedError

    def feature_names(self, names: Sequence[str]) -> list[str]:
        """Each feature as text, from the names of the columns."""
        raise NotImplementedError

    def __call__(self, X: Points) -> Floats:
        """Φ(x) for each row of X."""
        raise NotImplementedError

    # --- a value ---------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: object) -> None:
        if name in self._parameters() and name in vars(self):
            raise FrozenInstanceError(f"cannot assign to {name!r}: use set_params({name}=…)")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if name in self._parameters():
            raise FrozenInstanceError(f"cannot delete {name!r}")
        super().__delattr__(name)

    @classmethod
    def _parameters(cls) -> list[str]:
        return [field.name for field in fields(cls)]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name, as scikit-learn has it."""
        return {name: getattr(self, name) for name in self._parameters()}

    def set_params(self, **params: Any) -> Self:
        """Set parameters in place: the one way a map changes, for searches on clones."""
        known = self.get_params()
        for name in params:
            if name not in known:
                raise InputError(
                    f"{type(self).__name__} has no parameter {name!r}: it has {', '.join(known)}"
                )
        self.__dict__.update(params)
        return self

    # --- a step of a pipeline ----------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Points, y: Targets | None = None) -> Self:
        """Remember the number and the names of the columns."""
        self.check()
        validated(self, X, reset=True)
        return self

    def transform(self, X: Points) -> Any:  # (n, features)
        """Φ(x) for each row of X, as many columns as ``n_features`` says."""
        return self(validated(self, X, reset=False))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Each feature as text, from the names of the columns."""
        check_is_fitted(self, "n_features_in_")
        names = _check_feature_names_in(self, input_features)
        return np.array(self.feature_names([str(name) for name in names]), dtype=object)

    def _prepare(self, X: Points) -> Floats:
        """X as a dense array, once its features are known to fit the memory budget."""
        vectors = as_vectors(X)
        n, m = vectors.shape
        size = self.n_features(m)
        require_memory(
            n * size * vectors.dtype.itemsize,
            f"{self!r} of {n:,} points with {m:,} columns has {in_words(size)} features and",
            self._remedy,
        )
        return dense(vectors)


def validated(estimator: BaseEstimator, X: Points, reset: bool) -> Any:  # (n, columns)
    """X as rows of floats, by scikit-learn's checks and ours; the columns are remembered, or compared."""
    if is_in_file(X) and not isinstance(X, str):  # A text has a sentence of its own.
        raise InputTypeError(
            f"{type(estimator).__name__} takes arrays, sparse matrices and data frames, got a table in a "
            f"file, {shown(X)}: read it first (mercer.tables.read_table), or take LandmarkFeatures"
        )
    require_numbers(X)
    if is_sparse(X):
        require_indices(X)
    try:
        return validate_data(estimator, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32])
    except OverflowError:
        refuse_too_large()


def in_words(size: int) -> str:
    """A count for an error's text, however large.

    >>> in_words(1609344100), in_words(1000**200)
    ('1,609,344,100', '1.00e+600')
    """
    return f"{size:,}" if size < 10**18 else f"{Decimal(size):.2e}"
