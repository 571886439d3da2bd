r"""Kernels on structured objects: what they have in common.

An object is compared by its parts, and there are two ways to compute that:

- ``FeatureKernel``: the parts can be listed. ``features`` counts them, one sparse row per object, and the
  kernel is an inner product of rows.
- ``ObjectKernel``: there are too many parts to list. ``encode`` turns objects into arrays of numbers, and
  ``pairs`` compares two of them by compiled code.

Neither has a vocabulary that is learned and kept: both sides of a Gram are read together (``pair.Joint``),
so equal parts get equal numbers, parts that only one side has are no obstacle, and a kernel stays what it is
on paper, a function of two objects.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from reprlib import repr as shortened
from typing import Any, Protocol, Self

import numpy as np
from scipy import sparse

from mercer.data.types import Encoded, Objects, Points
from mercer.errors import InputTypeError
from mercer.kernels.base import Kernel
from mercer.kernels.domain import Domain
from mercer.kernels.formula.expression import Expression
from mercer.kernels.formula.pair import Joint, Pair


class FeatureKernel(Kernel, abstract=True):
    """k(x, x') = ⟨Φ(x), Φ(x')⟩, Φ explicit and sparse."""

    domain = Domain.OBJECTS

    def features(self, X: Objects) -> sparse.csr_array:  # (n, features)
        """Φ of every object; columns are numbered anew by each call."""
        raise NotImplementedError(f"{type(self).__name__} must define features(self, X)")

    def expression(self, pair: Pair | None = None) -> Expression:
        return (pair or Pair()).through(Joint(self.features)).dot


class ObjectKernel(Kernel, abstract=True):
    """k(x, x') computed from two encoded objects by compiled code."""

    domain = Domain.OBJECTS

    def encode(self, X: Objects) -> Encoded:
        """The objects in a container with ``shape``, ``len`` and rows to be taken by slice or index."""
        raise NotImplementedError(f"{type(self).__name__} must define encode(self, X)")

    def pairs(self, X: Encoded, Y: Encoded | None) -> np.ndarray:  # (n, m) float64
        """The matrix of values of encoded objects; Y = None means X with itself, a symmetric matrix.

        Called from several threads at once, on parts of the whole.
        """
        raise NotImplementedError(f"{type(self).__name__} must define pairs(self, X, Y)")

    def self_pairs(self, X: Encoded) -> np.ndarray:  # (n,)
        """k(x, x) of encoded objects."""
        raise NotImplementedError(f"{type(self).__name__} must define self_pairs(self, X)")

    def expression(self, pair: Pair | None = None) -> Expression:
        return (pair or Pair()).through(Joint(self.encode)).external(self)


class Ranges:
    """Objects whose parts lie in arrays that all share, those of the i-th at starts[i] … stops[i] - 1.

    Some of the objects are the same arrays with other ranges. For dataclasses with these two fields.
    """

    starts: np.ndarray  # (n,) int64
    stops: np.ndarray  # (n,) int64

    @property
    def shape(self) -> tuple[int]:
        return (len(self.starts),)

    @property
    def lengths(self) -> np.ndarray:
        return self.stops - self.starts

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: Any) -> Self:
        return replace(self, starts=self.starts[index], stops=self.stops[index])  # type: ignore[type-var]

    def owners(self) -> np.ndarray:  # (parts,)
        """Which object a part is of, where all objects are there, in their order."""
        return np.repeat(np.arange(len(self)), self.lengths)


#: the positions of parts, set after set, and the number of the set of each
Members = tuple[np.ndarray, np.ndarray]


class PartMatrix(Protocol):
    """The values k(a, b) of all parts of all objects, computed where they are asked for: a Gram is one."""

    def dense(self) -> np.ndarray:  # (parts, parts)
        """All of them."""

    def block(self, i: Any, j: Any) -> np.ndarray:  # (len(i), len(j))
        """The values of some parts against some others."""

    def sums(
        self, left: Members, right: Members, shape: tuple[int, int], lower: bool = False
    ) -> np.ndarray:  # shape
        """Σ_{a∈A} Σ_{b∈B} k(a, b) for all sets A of the left and B of the right."""


class Parts:
    """All parts of all objects, and the kernel that compares them.

    A kernel only says what is to be compared; whoever asks it for values has brought ``matrix`` before
    (``mercer.gram.gram.compare_parts``). Objects show their parts as the attribute ``parts``.
    """

    matrix: PartMatrix

    def __init__(self, kernel: Kernel, points: Points) -> None:
        self.kernel = kernel
        self.points = points

    @cached_property
    def values(self) -> np.ndarray:  # (parts, parts)
        """The whole matrix, for parts that are few: computed once."""
        return self.matrix.dense()


@dataclass(frozen=True, eq=False)
class Ragged(Ranges):
    """Arrays of different lengths, one after the other: the i-th is ``values[starts[i] : stops[i]]``.

    >>> words = Ragged.of([[1, 2, 3], [4]])
    >>> words[[1]].row(0)
    array([4])
    """

    values: np.ndarray
    starts: np.ndarray  # (n,) int64
    stops: np.ndarray  # (n,) int64

    @classmethod
    def of(cls, rows: Sequence[Any], dtype: Any = np.int64) -> Ragged:
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        values = np.concatenate([np.asarray(row, dtype) for row in rows]) if len(rows) else np.empty(0, dtype)
        return cls.cut(values, lengths)

    @classmethod
    def cut(cls, values: np.ndarray, lengths: np.ndarray) -> Ragged:
        stops = np.cumsum(lengths)
        return cls(values, stops - lengths, stops)

    def row(self, i: int) -> np.ndarray:
        return self.values[self.starts[i] : self.stops[i]]


def encode_sequences(X: Objects) -> Ragged:
    """Texts, or other sequences of hashables, as numbers 0, 1, … for their letters: equal ones are equal.

    >>> encode_sequences(["aba", "c"]).values
    array([0, 1, 0, 2])
    >>> encode_sequences([("to", "be"), ("be",)]).row(1)
    array([1])
    """
    if all(isinstance(x, str) for x in X):
        lengths = np.fromiter(map(len, X), np.int64, len(X))
        points = np.frombuffer("".join(X).encode("utf-32-le", "surrogatepass"), np.uint32)
        if not points.size:
            return Ragged.cut(np.empty(0, np.int64), lengths)
        is_there = np.zeros(int(points.max()) + 1, np.bool_)
        is_there[points] = True
        number = np.cumsum(is_there) - 1
        return Ragged.cut(number[points], lengths)
    rows = [in_order(x, "a sequence is a text or a list of things to compare") for x in X]
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    return Ragged.cut(encode_labels(label for row in rows for label in row), lengths)


def in_order(x: Any, what: str) -> list[Any]:
    """The parts of x one after the other; refused where they have no order, or can be read only once.

    >>> in_order({"b", "a"}, "a sequence is a list")
    Traceback (most recent call last):
    mercer.errors.InputTypeError: a sequence is a list, got a set, which has no order: pass sorted(x), or use
    a kernel on sets, such as Intersection
    """
    if isinstance(x, Set | Mapping):
        raise InputTypeError(
            f"{what}, got a {type(x).__name__}, which has no order: pass sorted(x), or use a kernel on sets, "
            "such as Intersection"
        )
    if isinstance(x, Iterator):
        raise InputTypeError(f"{what}, got a {type(x).__name__}, which can be read only once: pass list(x)")
    try:
        return list(x)
    except TypeError:
        raise InputTypeError(f"{what}, got {shortened(x)}: pass one per point") from None


def encode_labels(labels: Iterable[Hashable]) -> np.ndarray:  # (n,) int64
    """Numbers 0, 1, … for labels, in the order in which they first come.

    >>> encode_labels(["b", "a", "b"])
    array([0, 1, 0])
    """
    labels = list(labels)
    try:
        numbers = {label: i for i, label in enumerate(dict.fromkeys(labels))}
        return np.fromiter(map(numbers.__getitem__, labels), np.int64, len(labels))
    except TypeError as error:
        raise InputTypeError(
            f"labels must be hashable, such as texts, numbers or tuples of them: {error}"
        ) from None
