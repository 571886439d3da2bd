r"""A small Gram matrix together with a bound on its rounding error.

A witness must not be an artefact of rounding. K is computed entry by entry from the formula, and
with every value v travels an error e: the exact value lies in [v - e, v + e]. An operation f adds
the largest change of f when its arguments move by their errors, and a few units in the last place of
its own. With E the bounds of all entries, the exact matrix K* satisfies

    λ_min(K*) ≤ λ_min(K) + ‖E‖_F,

and the eigenvalue itself is computed to about n ε ‖K‖_F. Two things are taken as they are: points are
exact, and so is the outcome of a comparison.

>>> from mercer import Gaussian
>>> K, E = gram_with_error(Gaussian(sigma=1.0).expression(), np.array([[0.0], [1.0]]))
>>> K.round(6)
array([[1.      , 0.606531],
       [0.606531, 1.      ]])
>>> bool(0 < E.max() < 1e-14)
True
"""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from mercer.data import agreement
from mercer.data import points as data
from mercer.data.sparse import dense
from mercer.data.types import Points
from mercer.errors import SlowPathWarning
from mercer.gram.gram import compare_parts
from mercer.gram.sides import _label_codes as label_codes
from mercer.kernels.formula.expression import OPERATIONS, Apply, Expression, Number
from mercer.kernels.formula.pair import (
    A,
    B,
    External,
    ExternalDiagonal,
    Joint,
    Mean,
    ParameterLeaf,
    PointSum,
    Quantity,
    View,
)

EPSILON = float(np.finfo(np.float64).eps)
_OPERATION_ERROR = 4 * EPSILON  # the error of one operation of NumPy, relative to its result
_UNDERFLOW = 1e-307  # A result may lose this much below the smallest normal number.
#: the error of values computed outside of the formula, in units in the last place of the largest: a choice
_OUTSIDE_ERROR = 1000

Valued = tuple[Any, Any]  # a value and its error, arrays that broadcast together


def gram_with_error(
    expression: Expression, X: Points, Y: Points | None = None, *, bounded: bool = True
) -> tuple[np.ndarray, np.ndarray]:  # (n, m), (n, m)
    """K and E for points X (against Y, or themselves); without ``bounded`` E is zero, and K comes sooner."""
    Y = X if Y is None else Y
    shape = data.n_points(X), data.n_points(Y)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", SlowPathWarning)
        K, E = _Evaluation(X, Y, bounded).value(expression)
    E = E if bounded else 0.0
    return tuple(np.array(np.broadcast_to(part, shape), dtype=float) for part in (K, E))  # type: ignore[return-value]


def frobenius(M: np.ndarray) -> np.ndarray:
    """‖M‖_F of a matrix, or of each of many; entries of 10^±300 neither overflow nor vanish."""
    largest = np.maximum(abs(M).max(axis=(-2, -1), keepdims=True), 1e-300)
    with np.errstate(all="ignore"):  # inf stays inf, or it becomes NaN.
        return np.asarray(np.linalg.norm(M / largest, axis=(-2, -1)) * largest[..., 0, 0])


class _Evaluation:
    """The values of formulas on two sets of points, as (n, m) arrays; shared subtrees are computed once."""

    def __init__(self, X: Any, Y: Any, bounded: bool) -> None:
        self.points = X, Y
        self.bounded = bounded
        self.codes: dict[Any, float] = {}
        self._matrices: dict[tuple[View, int], np.ndarray] = {}
        self._values: dict[Expression, Valued] = {}

    def value(self, node: Expression) -> Valued:
        if node not in self._values:
            self._values[node] = self._compute(node)
        return self._values[node]

    def _compute(self, node: Expression) -> Valued:
        if isinstance(node, Number | ParameterLeaf):
            return node.value, 0.0
        if isinstance(node, Apply):
            return _operate(node.operation, [self.value(a) for a in node.arguments], self.bounded)
        if isinstance(node, Quantity):
            return self._quantity(node)
        if isinstance(node, PointSum):
            column = self._over_coordinates(node.term, node.kind, self._matrix(node.view, node.side), None)
            return _along(column, node.side)
        if isinstance(node, External):
            X, Y = self._seen(node.view)
            return _outside(node.source.pairs(X, list(X) if X is Y else Y))
        if isinstance(node, ExternalDiagonal):
            return _along(_outside(node.source.self_pairs(self._seen(node.view)[node.side])), node.side)
        if isinstance(node, Mean):
            return self._mean(node)
        raise TypeError(f"{node!r} is not a quantity of a pair of points")

    def _quantity(self, node: Quantity) -> Valued:
        X, Y = (self._matrix(node.view, side) for side in (0, 1))
        size = (X.shape[1] + 4) * EPSILON
        if node.kind == "dot":
            return X @ Y.T, size * (abs(X) @ abs(Y).T)
        if node.kind == "sqdist":
            squared = cdist(X, Y, "sqeuclidean")
            return squared, size * squared
        return self._over_coordinates(node.term, node.kind, X[:, None, :], Y[None, :, :])

    def _over_coordinates(self, term: Expression, kind: str, X: np.ndarray, Y: np.ndarray | None) -> Valued:
        """Σₖ or Πₖ of the term, coordinates along the last axis of X and Y."""
        total: Valued = (1.0, 0.0) if kind == "product" else (0.0, 0.0)
        for k in range(X.shape[-1]):
            inner = _Evaluation(None, None, self.bounded)
            inner._values[A] = X[..., k], 0.0
            if Y is not None:
                inner._values[B] = Y[..., k], 0.0
            operation = "multiply" if kind == "product" else "add"
            total = _operate(operation, [total, inner.value(term)], self.bounded)
        shape = X.shape[:-1] if Y is None else (X.shape[0], Y.shape[1])
        return np.broadcast_to(total[0], shape), np.broadcast_to(total[1], shape)

    def _mean(self, node: Mean) -> Valued:
        reference = node.reference
        points = reference if node.side == 2 else node.view(self.points[node.side])
        K, E = gram_with_error(node.inner, points, reference, bounded=self.bounded)
        axis = None if node.side == 2 else 1
        error = E.mean(axis) + K.size * EPSILON * abs(K).mean(axis)
        column = K.mean(axis), error
        return column if node.side == 2 else _along(column, node.side)

    def _seen(self, view: View) -> tuple[Any, Any]:
        """Both sides through a view, read together, so that their codes are comparable."""
        X, Y = self.points
        if X is not Y or any(isinstance(step, Joint) for step in view.steps):
            X, Y = view.both(X, Y)
            return compare_parts(X), compare_parts(Y)
        seen = compare_parts(view(X))
        return seen, seen

    def _matrix(self, view: View, side: int) -> np.ndarray:  # (n, d)
        if (view, side) not in self._matrices:
            X = self._seen(view)[side]
            matrix = label_codes(X, self.codes) if view.labels else data.as_vectors(X)
            if view.nonnegative_for:
                agreement.require_nonnegative(matrix, "points", view.nonnegative_for)
            self._matrices[view, side] = np.asarray(dense(matrix), dtype=np.float64)
        return self._matrices[view, side]


def _operate(operation: str, arguments: list[Valued], bounded: bool) -> Valued:
    """f(v₁, v₂, …) and by how much it may be off."""
    function = OPERATIONS[operation].value
    values = [value for value, _ in arguments]
    centre = function(*values)
    if not bounded or operation == "less_equal":
        return centre, 0.0
    if operation == "where":
        return centre, np.where(np.asarray(values[0]) > 0, arguments[1][1], arguments[2][1])
    own = _OPERATION_ERROR * abs(centre) + _UNDERFLOW
    if operation in ("sin", "cos"):
        return centre, np.minimum(arguments[0][1], 2.0) + own
    change = np.zeros(np.shape(centre))
    ends = [(v - e, v + e) if np.any(e) else (v,) for v, e in arguments]
    for corner in itertools.product(*ends):  # fmax ignores NaN: corners outside of the domain (sqrt of -ε).
        change = np.fmax(change, abs(function(*corner) - centre))
    return centre, change + own


def _along(column: Valued, side: int) -> Valued:
    """One number per point as a column (of x) or a row (of x')."""
    value, error = (np.asarray(part) for part in column)
    return (value[:, None], error[:, None]) if side == 0 else (value[None, :], error[None, :])


def _outside(values: Any) -> Valued:
    """Values that came from elsewhere: in their own precision, of unknown care."""
    array = np.asarray(values)
    epsilon = float(np.finfo(array.dtype).eps) if array.dtype.kind == "f" else 0.0
    array = array.astype(np.float64)
    largest = float(abs(array).max(initial=0.0))
    return array, np.full(array.shape, _OUTSIDE_ERROR * epsilon * largest)
