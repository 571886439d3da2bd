r"""Witnesses against a kernel: a few points, and c with cᵀKc < 0.

K of a kernel is symmetric with no negative eigenvalue, whatever the points. A witness is a set of
points where that fails by more than rounding can explain (``mercer.certify.rounding``), made as small
as we can.

>>> from mercer import BallIndicator
>>> found = examine(BallIndicator(), np.arange(1.0, 9.0).reshape(-1, 1))
>>> found.points.ravel(), found.eigenvalues.round(6)
(array([1., 2., 3.]), array([ 2.414214,  1.      , -0.414214]))
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, eigh

from mercer.certify.rounding import EPSILON, frobenius, gram_with_error
from mercer.data import points as data
from mercer.data.types import Points
from mercer.errors import SlowPathWarning
from mercer.gram import Gram
from mercer.kernels.base import Kernel
from mercer.kernels.formula.expression import Expression
from mercer.runtime.config import config

SEED = 20240229  # the points that are tried are drawn with it, the same in every run
_MOST_POINTS = 1000  # Of more points, a sample of this size is examined: an eigenvalue problem takes n³.
#: Of more points, K comes from the engine, and only those that tell most are examined with error bounds.
_EXAMINED_CLOSELY = 200
_MOST_SUBSETS = 5000  # All subsets of one size are tried where there are at most so many: a choice, for time.


@dataclass(frozen=True, eq=False)
class Witness:
    """Points where k is no kernel. For an asymmetric k there is no vector, only two points."""

    points: Any
    gram: np.ndarray  # (n, n)
    eigenvalues: np.ndarray | None = None  # (n,), the largest first
    vector: np.ndarray | None = None  # (n,), of length 1

    @property
    def reason(self) -> str:
        """The witness in a sentence."""
        n = len(self.gram)
        if self.eigenvalues is None:
            there, back = self.gram[0, 1], self.gram[1, 0]
            return f"k(x, x') = {there:.6g} but k(x', x) = {back:.6g}: it is not symmetric"
        if n == 1:
            return f"k(x, x) = {self.gram[0, 0]:.6g} < 0 at one point"
        return f"at {n} points its Gram matrix has the eigenvalue {self.eigenvalues[-1]:.6g} < 0"


@dataclass(frozen=True)
class Evidence:
    """Points where nothing is wrong: that proves nothing."""

    n: int
    smallest: float | None = None  # the smallest eigenvalue; None where K is not finite
    tolerance: float = 0.0  # Rounding explains eigenvalues down to minus this.

    def __str__(self) -> str:
        if self.smallest is None:
            return f"at the {self.n} given points its values are not all finite numbers"
        return (
            f"the smallest eigenvalue of its Gram matrix at the {self.n} given points is {self.smallest:.3g} "
            f"(rounding explains values down to {-self.tolerance:.1g}), which is evidence and not a proof"
        )


def examine(kernel: Kernel, points: Points) -> Witness | Evidence:
    """The Gram matrix of given points: a witness among them, or the evidence that there is none.

    Of very many points a random sample is looked at.
    """
    if data.n_points(points) > _MOST_POINTS:
        random = np.random.default_rng(SEED)
        points = data.take(points, np.sort(random.choice(data.n_points(points), _MOST_POINTS, replace=False)))
    expression = kernel.expression()
    n = data.n_points(points)
    if n > _EXAMINED_CLOSELY:
        return _examine_many(kernel, expression, points)
    K, E = gram_with_error(expression, points)
    if not np.isfinite(K).all():
        return Evidence(n)
    return witness_at(points, K, E) or Evidence(n, *smallest(K, E))


def _examine_many(kernel: Kernel, expression: Expression, points: Points) -> Witness | Evidence:
    """Examine many points: K comes from the engine, and the points that tell most are examined closely."""
    with config(dtype="float64"), warnings.catch_warnings():
        warnings.simplefilter("ignore", SlowPathWarning)
        K = Gram(kernel, points, points).dense()
    if not np.isfinite(K).all():
        return Evidence(len(K))
    low, c = smallest_pair(K)
    tolerance = 4 * len(K) * EPSILON * float(frobenius(K))
    for index in _telling(K, c if low < -tolerance else None):
        some = data.take(points, index)
        found = witness_at(some, *gram_with_error(expression, some))
        if found is not None:
            return found
    return Evidence(len(K), low, tolerance)


def witness_at(points: Points, K: np.ndarray, E: np.ndarray) -> Witness | None:
    """The smallest witness found among points whose Gram matrix is K, with errors E."""
    asymmetry = np.maximum(abs(K - K.T) - (E + E.T), 0.0) / np.maximum(abs(K) + abs(K.T), 1e-300)
    if asymmetry.any():
        pair = np.argwhere(asymmetry >= asymmetry.max() / 2)[0]
        return Witness(data.take(points, pair), K[np.ix_(pair, pair)])
    K = (K + K.T) / 2
    if not _is_negative(K, E):
        return None
    index = _fewest(K, E)
    return _witness(data.take(points, index), K[np.ix_(index, index)])


def _witness(points: Points, K: np.ndarray) -> Witness:
    values, vectors = np.linalg.eigh(K)
    vector = vectors[:, 0]
    first = np.flatnonzero(abs(vector) > 1e-8)[0]
    return Witness(points, K, values[::-1].copy(), vector * np.sign(vector[first]))


def smallest(K: np.ndarray, E: np.ndarray) -> tuple[float, float]:
    """The smallest eigenvalue of a symmetric K, and how far rounding may have pushed it down."""
    low = smallest_pair(K)[0]
    return low, float(frobenius(E) + 4 * len(K) * EPSILON * frobenius(K))


def smallest_pair(K: np.ndarray) -> tuple[float, np.ndarray]:
    """The smallest eigenvalue of a symmetric K and its vector c, cᵀKc = λ cᵀc."""
    symmetric = (K + K.T) / 2
    try:
        values, vectors = eigh(symmetric, subset_by_index=[0, 0])
    except LinAlgError:
        # LAPACK may fail to find one eigenvalue of a graded matrix; it never fails to find all.
        values, vectors = eigh(symmetric, driver="ev")
    return float(values[0]), vectors[:, 0]


def _is_negative(K: np.ndarray, E: np.ndarray) -> bool:
    low, tolerance = smallest(K, E)
    return low < -tolerance


# --- fewer points --------------------------------------------------------------------------------


def _telling(K: np.ndarray, c: np.ndarray | None) -> list[np.ndarray]:
    """Subsets of many points that may hold a witness: the least symmetric pair, and where c is large."""
    i, j = np.unravel_index(np.argmax(abs(K - K.T)), K.shape)
    pairs = [np.array([i, j])] if i != j else []
    if c is None:
        return pairs
    order = np.argsort(-abs(c), kind="stable")
    return pairs + [np.sort(order[:size]) for size in (8, 32, _EXAMINED_CLOSELY)]


def _fewest(K: np.ndarray, E: np.ndarray) -> np.ndarray:
    """The fewest points whose matrix still has a negative eigenvalue: all small subsets, then greedily."""
    order = np.argsort(-abs(smallest_pair(K)[1]), kind="stable")
    sizes = (size for size in (1, 2, 3, 4, 6, 8, 12, 16, 24, 48, 96) if size < len(K))
    index = np.arange(len(K))
    for size in sizes:  # The smallest set of the largest entries of c that is a witness is taken.
        some = np.sort(order[:size])
        if _is_negative(K[np.ix_(some, some)], E[np.ix_(some, some)]):
            index = some
            break
    for size in range(1, len(index) + 1):
        pool = index if comb(len(K), size) > _MOST_SUBSETS else np.arange(len(K))
        if comb(len(pool), size) > _MOST_SUBSETS:
            break
        best = _best_subset(K, E, np.array(list(combinations(pool.tolist(), size))))
        if best is not None:
            return best
    return _greedy(K, E, index)


def _best_subset(K: np.ndarray, E: np.ndarray, subsets: np.ndarray) -> np.ndarray | None:  # subsets (s, size)
    """The first subset whose eigenvalue, relative to its matrix, is about as negative as any."""
    rows, columns = subsets[:, :, None], subsets[:, None, :]
    parts = K[rows, columns]
    norms = frobenius(parts)
    low = np.linalg.eigvalsh(parts)[:, 0]
    tolerance = frobenius(E[rows, columns]) + 4 * subsets.shape[1] * EPSILON * norms
    share = np.where(low < -tolerance, low / np.maximum(norms, 1e-300), 0.0)
    return subsets[np.argmax(share <= share.min() / 2)] if share.any() else None


def _greedy(K: np.ndarray, E: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Leave points out while a negative eigenvalue stays: many where c is small, then one by one."""
    drop = len(index) // 2
    while drop:
        _, c = smallest_pair(K[np.ix_(index, index)])
        kept = np.sort(index[np.argsort(-abs(c), kind="stable")[: len(index) - drop]])
        if _is_negative(K[np.ix_(kept, kept)], E[np.ix_(kept, kept)]):
            index = kept
            drop = min(drop, len(index) // 2)
        else:
            drop //= 2
    while 1 < len(index) <= 32:
        best = _best_subset(K, E, np.array([np.delete(index, i) for i in range(len(index))]))
        if best is None:
            break
        index = best
    return index
