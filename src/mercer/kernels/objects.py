"""Kernels that no formula of coordinates gives: a Python function, and a matrix that is already there."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.data.types import Objects, Points, Targets
from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.kernels.domain import Domain
from mercer.kernels.formula.expression import Expression
from mercer.kernels.formula.pair import Pair
from mercer.kernels.parameters import fixed


class FromFunction(Kernel):
    """k(x, x') = function(x, x') for any two Python objects: the slow path, and it says so.

    Called once per pair, and only for i ≤ j when a set is compared with itself. A kernel on
    vectors runs a hundred times faster as a class with a ``formula``.

    >>> import warnings
    >>> warnings.simplefilter("ignore")  # it says that this is the slow path
    >>> common = FromFunction(lambda a, b: len(set(a) & set(b)))
    >>> common(["kernel", "colonel"])
    array([[5., 3.],
           [3., 5.]])
    """

    domain = Domain.OBJECTS
    is_slow = True  # A Gram of this kernel says so.
    function: Any = fixed(None, "a function of two objects", callable, "f such that f(x, y) is a number")

    def expression(self, pair: Pair | None = None) -> Expression:
        return (pair or Pair()).external(self)

    def pairs(self, X: Objects, Y: Objects | None) -> np.ndarray:  # (n, m)
        """The matrix of values; Y = None means X with itself, each pair computed once."""
        if Y is None:
            K = np.empty((len(X), len(X)))
            for i in range(len(X)):
                for j in range(i + 1):
                    K[i, j] = K[j, i] = self._value(X[i], X[j])
            return K
        return np.array([[self._value(x, y) for y in Y] for x in X], dtype=float).reshape(len(X), len(Y))

    def self_pairs(self, X: Objects) -> np.ndarray:  # (n,)
        return np.array([self._value(x, x) for x in X], dtype=float)

    def _value(self, x: Any, y: Targets) -> float:
        value = self.function(x, y)
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise InputError(f"{self!r} must return a number, got {value!r} for {x!r} and {y!r}") from None
        if not np.isfinite(number):
            raise InputError(f"{self!r} must return a finite number, got {number!r} for {x!r} and {y!r}")
        return number


_ROWS_AT_ONCE = 1024  # rows of a matrix that are checked together, to keep temporary arrays small
#: kᵢⱼ and kⱼᵢ may differ by these shares of the largest entry. Sums in float32 are off by some 2⁻²⁴ for each
#: of a few terms, also where they were then stored in float64; a matrix in float32 may be off by its √ε.
_SLACK, _SLACK_SINGLE = 16 * 2.0**-23, 2.0**-11.5


class Precomputed(Kernel):
    """A Gram matrix that is already there: k(i, j) = K[i, j].

    A point is an index i into the training set, or a row of kernel values against the whole
    training set (what scikit-learn passes to ``predict``).

    >>> k = Precomputed([[2.0, 1.0], [1.0, 3.0]])
    >>> k([0, 1], [1])
    array([[1.],
           [3.]])
    >>> k(np.array([[0.5, 0.7]]), [1])
    array([[0.7]])
    """

    domain = Domain.ANY
    matrix: Any = fixed(
        None,
        "a square matrix",
        lambda v: v is None or (np.ndim(v) == 2 and np.shape(v)[0] == np.shape(v)[1]),
        "K",
    )

    def check(self) -> None:
        """Real, finite, symmetric: looked at a few rows at a time."""
        if self.matrix is None:
            return
        K = np.asarray(self.matrix)
        if K.dtype.kind not in "fiub":
            raise InputError(f"matrix must hold real numbers, got {K.dtype}: pass an array of floats")
        for start in range(0, len(K), _ROWS_AT_ONCE):
            if not np.isfinite(K[start : start + _ROWS_AT_ONCE]).all():
                raise InputError(
                    "matrix must be finite, got NaN or infinite kernel values: leave those points out"
                )
        difference, largest, (i, j) = asymmetry(K)
        if difference > (_SLACK_SINGLE if K.dtype == np.float32 else _SLACK) * largest:
            raise InputError(
                f"matrix must be symmetric, got k({i}, {j}) = {K[i, j].item()!r} and k({j}, {i}) = "
                f"{K[j, i].item()!r}, the largest of the differences: pass (K + K.T) / 2 if that is meant"
            )

    def expression(self, pair: Pair | None = None) -> Expression:
        return (pair or Pair()).external(self)

    def _matrix(self) -> np.ndarray:
        if self.matrix is None:
            raise InputError(
                "Precomputed() has no matrix: pass it, Precomputed(K), to compare points by their index"
            )
        return np.asarray(self.matrix)

    def pairs(self, X: Points, Y: Points | None) -> np.ndarray:
        rows, columns = np.asarray(X), np.asarray(X if Y is None else Y)
        if rows.ndim == 1 and columns.ndim == 1:
            K = self._matrix()
            i, j = _span(_index(rows, len(K))), _span(_index(columns, len(K)))
            return K[i, j] if isinstance(i, slice) or isinstance(j, slice) else K[np.ix_(i, j)]
        if rows.ndim == 2 and columns.ndim == 1:
            return rows[:, _index(columns, rows.shape[1])]
        if rows.ndim == 1 and columns.ndim == 2:
            return columns[:, _index(rows, columns.shape[1])].T
        raise InputError(
            "two rows of kernel values cannot be compared with each other: "
            "at least one side must be indices into the training set"
        )

    def self_pairs(self, X: Points) -> np.ndarray:
        index = np.asarray(X)
        if index.ndim != 1:
            raise InputError("k(x, x) of a new point is not in its row of kernel values")
        K = self._matrix()
        return K[_index(index, len(K)), _index(index, len(K))]


def asymmetry(K: np.ndarray) -> tuple[float, float, tuple[int, int]]:
    """max |Kᵢⱼ - Kⱼᵢ|, max |Kᵢⱼ|, and the first place of the former; a few rows at a time.

    >>> asymmetry(np.array([[1.0, 2.0], [2.5, 4.0]]))
    (0.5, 4.0, (0, 1))
    """
    most, largest, place = 0.0, 0.0, (0, 0)
    for start in range(0, len(K), _ROWS_AT_ONCE):
        rows, columns = K[start : start + _ROWS_AT_ONCE], K[:, start : start + _ROWS_AT_ONCE].T
        apart = np.abs(rows - columns) if K.dtype.kind == "f" else np.abs(rows.astype(float) - columns)
        largest = max(largest, float(np.abs(rows).max()))
        at = int(apart.argmax())
        if apart.flat[at] > most:
            most, place = float(apart.flat[at]), (start + at // len(K), at % len(K))
    return most, largest, place


def _span(index: np.ndarray) -> np.ndarray | slice:
    """Neighbours as a slice, which copies nothing.

    >>> _span(np.array([3, 4])), _span(np.array([4, 3]))
    (slice(3, 5, None), array([4, 3]))
    """
    if index.size and (np.diff(index) == 1).all():
        return slice(int(index[0]), int(index[-1]) + 1)
    return index


def _index(values: np.ndarray, n: int) -> np.ndarray:
    if values.dtype.kind not in "iu":
        raise InputError(
            "points of a Precomputed kernel are whole-number indices, "
            f"got values like {values.flat[0].item()!r}"
        )
    if values.size and (values.min() < 0 or values.max() >= n):
        raise InputError(
            f"index {values.max() if values.max() >= n else values.min()} is outside 0 … {n - 1}"
        )
    return values
