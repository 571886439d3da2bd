r"""Monomials x^a = x₁^a₁ ⋯ x_m^a_m of degree |a| = a₁ + ⋯ + a_m: counted, listed, and evaluated.

By the multinomial theorem

    ⟨x, y⟩^d = Σ_{|a| = d} (d! / a!) x^a y^a,      a! = a₁! ⋯ a_m!,

so the monomials of degree d weighted by √(d!/a!) are an exact feature map of the kernel ⟨x, y⟩^d. They
come in lexicographic order, x₁^d first: for d = 2 in ℝ², (x₁², √2 x₁x₂, x₂²).

>>> count(2, 2), exponents(2, 2).tolist()
(3, [[2, 0], [1, 1], [0, 2]])
>>> homogeneous(np.array([[3.0, 5.0]]), 2)
array([[ 9.        , 21.21320344, 25.        ]])
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import FrozenInstanceError, fields
from decimal import Decimal
from itertools import combinations_with_replacement
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from mercer.data.points import as_vectors, require_numbers
from mercer.data.refusals import refuse_too_large
from mercer.data.sparse import dense, is_sparse, require_indices
from mercer.data.types import Points, Targets
from mercer.errors import InputError
from mercer.runtime.config import require_memory

__all__ = ["MonomialMap", "count", "exponents", "grow", "homogeneous", "weights"]

Floats = NDArray[np.floating[Any]]


def count(m: int, degree: int) -> int:
    """The number of monomials of exactly this degree in m variables: C(d + m − 1, d).

    >>> count(100, 6), count(1000, 2)
    (1609344100, 500500)
    """
    return math.comb(degree + m - 1, degree) if m > 0 else int(degree == 0)


def exponents(m: int, degree: int) -> NDArray[np.int64]:
    """The exponents a of all monomials of this degree, one per row: (count(m, degree), m).

    >>> exponents(3, 1).tolist()
    [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    """
    size = count(m, degree)
    require_memory(
        8 * size * m, f"a table of the exponents of {in_words(size)} monomials", "lower the degree"
    )
    table = np.zeros((size, m), dtype=np.int64)
    for a, factors in zip(table, combinations_with_replacement(range(m), degree), strict=True):
        for variable in factors:
            a[variable] += 1
    return table


def weights(m: int, degree: int) -> NDArray[np.float64]:
    """The weights √(d!/a!) in the same order: what :func:`homogeneous` makes of a point of ones.

    >>> weights(2, 3) ** 2
    array([1., 3., 3., 1.])
    """
    return homogeneous(np.ones((1, m)), degree)[0]


def homogeneous(X: Floats, degree: int) -> Floats:
    """Φ_d(x) = (√(d!/a!) x^a), |a| = d, for each row of X: (n, m) to (n, count(m, degree)).

    >>> Phi = homogeneous(np.array([[1.0, 2.0, 3.0], [2.0, 0.0, 1.0]]), 4)
    >>> float(Phi[0] @ Phi[1])  # (1·2 + 2·0 + 3·1)⁴
    625.0
    """
    block = np.ones((len(X), 1), dtype=X.dtype)
    for d in range(1, degree + 1):
        block = grow(block, X, d, out=np.empty((len(X), count(X.shape[1], d)), dtype=X.dtype))
    return block


def grow(lower: Floats, X: Floats, degree: int, out: Floats) -> Floats:
    """Φ_d from Φ_{d−1}, written into ``out``.

    A monomial of degree d whose first variable is xᵢ is xᵢ times one of degree d − 1 in xᵢ, …, x_m, and
    those are the last ones of ``lower``. The weight grows by √(d/aᵢ), since d!/a! = (d−1)!/(a−eᵢ)! · d/aᵢ.
    """
    # lower (n, count(m, d-1)); X (n, m); out (n, count(m, d))
    m = X.shape[1]
    start = 0
    for i in range(m):
        width = count(m - i, degree - 1)
        np.multiply(lower[:, -width:], X[:, i : i + 1], out=out[:, start : start + width])
        start += width
    out *= np.sqrt(degree / _first_exponents(m, degree)).astype(X.dtype)
    return out


def _first_exponents(m: int, degree: int) -> NDArray[np.int64]:
    """aᵢ of the first variable xᵢ in each monomial of this degree.

    In order, for each i and each aᵢ = d, …, 1, there are as many as monomials of degree d − aᵢ in what
    is left, x_{i+1}, …, x_m.
    """
    powers = range(degree, 0, -1)
    repeats = [count(m - 1 - i, degree - power) for i in range(m) for power in powers]
    return np.repeat(np.tile(np.array(powers, dtype=np.int64), m), repeats)


def in_words(size: int) -> str:
    """A count for an error's text, however large.

    >>> in_words(1609344100), in_words(count(1000, 1000))
    ('1,609,344,100', '1.02e+600')
    """
    return f"{size:,}" if size < 10**18 else f"{Decimal(size):.2e}"


class MonomialMap(TransformerMixin, BaseEstimator):
    """What the maps made of monomials share: a value that is called like Φ, and a step of a pipeline.

    A subclass is a dataclass with ``check``, ``n_features``, ``feature_names``, ``__call__``. Its parameters
    change by ``set_params`` alone, and are checked when they are used. There is nothing to learn from data:
    ``fit`` only remembers the columns, and ``transform`` works without it.
    """

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
            "use the kernel itself, which needs no features, a lower degree or fewer columns",
        )
        return dense(vectors)


def validated(estimator: BaseEstimator, X: Points, reset: bool) -> Any:  # (n, columns)
    """X as rows of floats, by scikit-learn's checks and ours; the columns are remembered, or compared."""
    require_numbers(X)
    if is_sparse(X):
        require_indices(X)
    try:
        return validate_data(estimator, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32])
    except OverflowError:
        refuse_too_large()


def monomial(a: Sequence[int], names: Sequence[str]) -> list[str]:
    """The factors x₁^a₁, … of a monomial as texts.

    >>> monomial([2, 0, 1], ["u", "v", "w"])
    ['u^2', 'w']
    """
    return [f"{name}^{power}" if power > 1 else name for name, power in zip(names, a, strict=True) if power]


def require_names(names: Any, size: int) -> None:
    """Refuse a single text for a list of names, and a list of features that is too long."""
    if isinstance(names, str):
        raise InputError(f"names must be a list with one name per column, got {names!r}: pass [{names!r}]")
    require_memory(100 * size, f"a list of {in_words(size)} feature names", "lower the degree")
