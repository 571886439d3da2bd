r"""What a search need not compute again: the parts of a kernel that none of its trials changes.

On a table with texts or sets, k = Σⱼ wⱼ kⱼ (or a product) over its columns, a search learns the widths of the
kernels on numbers. The kernels on texts have nothing to learn, and cost the most: their matrices are computed
once, for all points that the search takes, and shared by its trials, folds and penalties. In the table that
the search sees, such a column holds the number of the point.

>>> from mercer.kernels.columns.table import ColumnKernel
>>> from mercer.kernels.strings.documents import BagOfWords
>>> from mercer.kernels.vectors.stationary import Gaussian
>>> X = np.array([[0.0, "to be"], [1.0, "not to be"]], dtype=object)
>>> kernel = ColumnKernel({0: Gaussian(sigma=1.0), 1: BagOfWords()})
>>> table = KnownParts.of(X, [kernel])
>>> table.X
array([[0., 0.],
       [1., 1.]])
>>> table.family(kernel).names, np.array_equal(table.family(kernel).kernel(table.X), kernel(X))
(('0__sigma',), True)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from mercer.data import points as data
from mercer.data.types import Points
from mercer.gram import Gram
from mercer.kernels.base import Kernel
from mercer.kernels.columns.table import ColumnKernel
from mercer.kernels.objects import Precomputed
from mercer.runtime.clock import now
from mercer.runtime.config import memory_budget
from mercer.selection.families import Family, family
from mercer.selection.scores import MOST_FOR_FOLDS

#: All matrices have this share of the memory budget, and that share of the time that is left, by the time
#: that so many points take. There are no more points than the folds of one matrix take.
_SHARE_OF_MEMORY, _SHARE_OF_TIME, _POINTS_TIMED = 0.25, 0.1, 300


@dataclass(frozen=True, eq=False)
class KnownParts:
    """A table in which each column of objects holds the numbers of the points."""

    #: the table as it was given
    table: np.ndarray  # (n, columns) of objects
    #: the table as a search takes it
    X: np.ndarray  # (n, columns)
    #: the columns of objects
    objects: frozenset[int]
    #: the numbers that these points had in the whole table
    rows: np.ndarray  # (n,)
    #: for each column and kernel: the resolved kernel, and the one that looks values up in its matrix
    made: dict[tuple[Any, str], tuple[Kernel, Kernel]] = field(default_factory=dict)

    @classmethod
    def of(cls, X: Points, kernels: Sequence[Kernel]) -> Self | None:
        """The table for these kernels; None where none of their parts is known before."""
        if not isinstance(X, np.ndarray) or X.dtype != object or X.ndim != 2:
            return None
        numbers, objects = np.empty(X.shape), set()
        for j in range(X.shape[1]):
            if all(isinstance(value, float) for value in X[:, j]):
                numbers[:, j] = X[:, j]
            else:
                numbers[:, j] = np.arange(len(X))
                objects.add(j)
        found = cls(X, numbers, frozenset(objects), np.arange(len(X)))
        return found if objects and all(map(found._is_cut_by_columns, kernels)) else None

    def _is_cut_by_columns(self, kernel: Kernel) -> bool:
        """Whether it is made of kernels on numbers, and of kernels on one column of objects each."""
        if not isinstance(kernel, ColumnKernel) or not isinstance(kernel.columns, dict):
            return False
        return all(
            all(isinstance(column, int) for column in _columns(key))
            and (
                part.domain.is_vectors
                if self.objects.isdisjoint(_columns(key))
                else self._is_known(key, part)
            )
            for key, part in kernel.columns.items()
        )

    def _is_known(self, key: Any, part: Kernel) -> bool:
        """Whether a kernel on columns of objects has nothing to learn."""
        return len(_columns(key)) == 1 and not family(part).names

    def affordable(self, kernels: Sequence[Any], seconds: float) -> int:
        """How many points there is memory and time for; the matrices of all kernels are counted."""
        parts = {(key, repr(part)) for kernel in kernels for key, part in kernel.columns.items()}
        matrices = sum(bool(self.objects.intersection(_columns(key))) for key, _ in parts)
        points = int(np.sqrt(_SHARE_OF_MEMORY * memory_budget() / (8 * matrices)))
        points = min(points, MOST_FOR_FOLDS, len(self.X))
        if np.isfinite(seconds):
            some = self.take(np.arange(min(_POINTS_TIMED, points)))
            some.family(kernels[0])  # What is compiled and read once is there the second time.
            began = now()
            some.made.clear()
            for kernel in kernels:
                some.family(kernel)
            took = (now() - began) / max(_SHARE_OF_TIME * seconds, 1e-9)
            points = min(points, int(len(some.X) / np.sqrt(max(took, 1e-9))))
        return points

    def take(self, rows: np.ndarray) -> KnownParts:
        """Some of the points, numbered anew."""
        X = self.X[rows]
        X[:, sorted(self.objects)] = np.arange(len(rows))[:, None]
        return KnownParts(data.take(self.table, rows), X, self.objects, self.rows[rows])

    def family(self, kernel: Any) -> Family:
        """The family of a kernel, on the table as a search takes it; it remembers the kernel itself."""
        own, known = {}, {}
        for key, part in kernel.columns.items():
            if self.objects.issuperset(_columns(key)):
                own[key], known[key] = self._known(key, part, kernel.missing)
            else:
                alone: Any = ColumnKernel({key: part}, missing=kernel.missing).resolve(self.X)
                own[key] = known[key] = alone.columns[key]
        rest = kernel.combine, kernel.weights, kernel.missing
        return replace(family(ColumnKernel(known, *rest)), shown=ColumnKernel(own, *rest))

    def _known(self, key: Any, part: Kernel, missing: str) -> tuple[Kernel, Kernel]:
        name = (key, repr(part))
        if name not in self.made:
            alone: Any = ColumnKernel({key: part}, missing=missing).resolve(self.table)
            K = np.asarray(Gram(alone, self.table, cache=0).dense(), dtype=np.float64)
            self.made[name] = alone.columns[key], Precomputed(K) @ _numbers
        return self.made[name]


def _numbers(X: np.ndarray) -> np.ndarray:
    """The numbers that points (i) consist of."""
    return X[:, 0].astype(np.intp)


def _columns(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)
