r"""Sets compared by their elements: k(A, B) = Σ_{a∈A} Σ_{b∈B} base(a, b).

All elements of all sets are stacked, one after the other, and the base kernel has one lazy matrix between
them, which adds up what belongs to a pair of sets (``Gram.sums``): no loop over pairs, and no stored
matrix of all elements. Elements may be vectors or any objects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
from scipy import sparse

from mercer.data import points as data
from mercer.data.types import Objects, Points, Weights
from mercer.errors import InputError, InputTypeError
from mercer.kernels.base import Kernel
from mercer.kernels.compose import Mapped, Product, _kernel
from mercer.kernels.domain import Domain
from mercer.kernels.formula.expression import Expression, inverse_root
from mercer.kernels.formula.pair import Joint, Pair, diagonal
from mercer.kernels.parameters import choice, fixed
from mercer.kernels.structured import FeatureKernel, Members, ObjectKernel, Parts, Ranges, encode_labels
from mercer.kernels.vectors.dotproduct import Linear
from mercer.kernels.vectors.stationary import Delta

#: Elements whose sets are compared with each other to have the values k(A, A). Of these 256 × 256 pairs,
#: about two tiles, those of different sets are computed in vain: that costs less than a call for each set.
_GROUP = 256


# --- elements, stacked ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Stacked(Ranges):
    """Sets of elements; ``parts`` are all elements, of which the i-th set has a range."""

    parts: Parts
    starts: np.ndarray  # (n,) int64
    stops: np.ndarray  # (n,) int64

    @classmethod
    def of(cls, lengths: np.ndarray, kernel: Kernel, elements: Any) -> Stacked:
        """Sets of these lengths, from their stacked elements and the kernel that compares these."""
        stops = np.cumsum(lengths, dtype=np.int64)
        return cls(Parts(kernel, elements), stops - lengths, stops)

    def members(self) -> Members:
        """Where the elements are, set after set, and the set of each."""
        lengths = self.lengths
        sets = np.repeat(np.arange(len(self)), lengths)
        return np.arange(len(sets)) + (self.starts - np.cumsum(lengths) + lengths)[sets], sets

    def groups(self) -> Iterable[slice]:
        """Ranges of sets that have few elements together."""
        ends = np.cumsum(self.lengths)
        start = 0
        while start < len(self):
            before = ends[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + _GROUP, side="right")))
            yield slice(start, stop)
            start = stop


def sums(X: Stacked, Y: Stacked | None) -> np.ndarray:  # (n, m)
    """The values of elements added up for all pairs of sets; Y = None means X with itself."""
    other = X if Y is None else Y
    shape = (len(X), len(other))
    if not (X.lengths.any() and other.lengths.any()):
        return np.zeros(shape)
    left = X.members()
    return X.parts.matrix.sums(left, left if Y is None else Y.members(), shape, lower=Y is None)


class StackedKernel(ObjectKernel, abstract=True):
    """Σ_{a∈A} Σ_{b∈B} of a kernel of elements, or its mean; ``encode`` says what the elements are."""

    @property
    def is_mean(self) -> bool:
        """Whether the sum is divided by |A| |B|."""
        return False

    def pairs(self, X: Stacked, Y: Stacked | None) -> np.ndarray:
        K = sums(X, Y)
        if self.is_mean:
            other = X if Y is None else Y
            K /= np.outer(np.maximum(X.lengths, 1), np.maximum(other.lengths, 1))
        return K

    def self_pairs(self, X: Stacked) -> np.ndarray:
        values = [np.empty(0), *(np.diagonal(self.pairs(X[group], None)) for group in X.groups())]
        return np.concatenate(values)


# --- reading sets -----------------------------------------------------------------------------------


def stack_elements(kernel: Kernel, X: Objects) -> tuple[Any, np.ndarray]:
    """All elements of all sets as the kernel wants them, a matrix or a list, and how many each set has.

    >>> stack_elements(Linear(), [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0]]])
    (array([[1., 2.],
           [3., 4.],
           [5., 6.]]), array([2, 1]))
    """
    takes_vectors = kernel.domain.is_vectors
    are_tables = kernel.domain is Domain.ANY and all(len(getattr(x, "shape", ())) == 2 for x in X)
    if takes_vectors or are_tables:
        return _stack_vectors([_table(x, i) for i, x in enumerate(X)])
    sets = [_members(x, i) for i, x in enumerate(X)]
    lengths = np.array([len(x) for x in sets], np.int64)
    elements = [element for x in sets for element in x]
    if type(kernel) is Delta:  # labels of any kind, which only have to be told apart
        return encode_labels(elements).astype(np.float64).reshape(-1, 1), lengths
    return elements, lengths


def _stack_vectors(tables: list[Any]) -> tuple[Any, np.ndarray]:
    lengths = np.array([table.shape[0] for table in tables], np.int64)
    filled = [table for table in tables if table.shape[0]]
    widths = sorted({table.shape[1] for table in filled})
    if len(widths) > 1:
        raise InputError(
            f"the vectors of all sets must have the same length, got lengths {', '.join(map(str, widths))}: "
            "pass sets of vectors described by the same columns"
        )
    if any(sparse.issparse(table) for table in filled):
        return sparse.csr_array(sparse.vstack(filled)), lengths
    return np.concatenate(filled) if filled else np.empty((0, 1)), lengths


def _table(x: Any, i: int) -> Any:  # (elements, d)
    """One set of vectors; numbers are vectors of length one."""
    if sparse.issparse(x):
        return sparse.csr_array(x)
    members = x if hasattr(x, "shape") else _members(x, i)
    try:
        table = np.asarray(members)
    except ValueError:
        raise InputError(
            f"set {i} has vectors of different lengths: pass a table with one row per element"
        ) from None
    if table.size == 0:
        return np.empty((0, 1))
    if table.dtype.kind not in "biuf" or table.ndim > 2:
        raise InputTypeError(
            f"set {i} must be a list of vectors, got {table.dtype} of shape {table.shape}: pass a table of "
            "numbers with one row per element, or choose a base kernel for other objects"
        )
    if not np.isfinite(table).all():
        raise InputError(f"set {i} contains NaN or infinite values (sets of Y are counted after those of X): "
                         "leave those elements out")  # fmt: skip
    return table.reshape(-1, 1) if table.ndim == 1 else table


def _members(x: Any, i: int) -> list[Any]:
    """The elements of one set."""
    if isinstance(x, Mapping):
        raise InputTypeError(
            f"set {i} is a {type(x).__name__}, which says how often each element is there: use "
            "GeneralSetKernel(base, Linear()), or pass list(counter.elements())"
        )
    if isinstance(x, str | bytes) or not isinstance(x, Iterable):
        raise InputTypeError(
            f"set {i} must be a list, a set or an array of elements, got {x!r}: pass [element] for a set of "
            "one, list(text) for the letters of a text"
        )
    return list(x)


# --- the kernels ------------------------------------------------------------------------------------


def _kind_of_sets(kernel: Kernel) -> str:
    return "vector sets" if kernel.domain.is_vectors else "sets"


class SetKernel(StackedKernel):
    r"""k(A, B) = Σ_{a∈A} Σ_{b∈B} base(a, b).

    A set is a list of vectors (or a 2-D array, one row per element), or a list of any objects that ``base``
    takes: texts, graphs, or sets again. Elements that come twice count twice; the empty set has k = 0.
    ``normalize="mean"`` divides by \|A\| \|B\|: with A and B samples of two distributions, this is the inner
    product of their mean embeddings. ``"cosine"`` divides by √(k(A, A) k(B, B)).

    >>> from mercer import Gaussian
    >>> A, B = [[0.0, 0.0], [0.0, 1.0]], [[0.0, 0.0]]
    >>> SetKernel(Gaussian(sigma=1.0))([A, B]).round(4)
    array([[3.2131, 1.6065],
           [1.6065, 1.    ]])
    >>> SetKernel(Gaussian(sigma=1.0), normalize="mean")([A], [B]).round(4)
    array([[0.8033]])
    """

    closure = "k(A, B) = ⟨ΣΦ(a), ΣΦ(b)⟩, Φ the features of a kernel of elements"
    base: Kernel = _kernel()
    normalize: Any = choice(None, (None, "cosine", "mean"))

    @property
    def objects(self) -> str:  # type: ignore[override]
        return _kind_of_sets(self.base)

    @property
    def is_mean(self) -> bool:
        return self.normalize == "mean"

    @property
    def _has_features(self) -> bool:
        is_plain = type(self.base) is Linear or type(self.base).expression is FeatureKernel.expression
        return is_plain or bool(getattr(self.base, "has_features", False))

    def encode(self, X: Objects) -> Stacked:
        elements, lengths = stack_elements(self.base, X)
        return Stacked.of(lengths, self.base, elements)

    def embedding(self, X: Objects) -> Any:  # (n, features)
        """ΣΦ(a), or the mean, where Φ is at hand: work for every set instead of every pair."""
        elements, lengths = stack_elements(self.base, X)
        if not lengths.sum():
            return np.zeros((len(X), 1))
        features = self.base.features(elements) if isinstance(self.base, FeatureKernel) else elements
        weight = 1 / np.maximum(lengths, 1) if self.is_mean else np.ones(len(lengths))
        ends = np.concatenate([[0], np.cumsum(lengths)])
        adding = sparse.csr_array((np.repeat(weight, lengths), np.arange(ends[-1]), ends))
        total = adding @ features
        if sparse.issparse(total):
            total.sort_indices()
        return total

    def expression(self, pair: Pair | None = None) -> Expression:
        pair = pair or Pair()
        k = pair.through(Joint(self.embedding)).dot if self._has_features else super().expression(pair)
        if self.normalize == "cosine":
            k = k * inverse_root(diagonal(k, 0)) * inverse_root(diagonal(k, 1))
        return k

    def resolve(self, X: Points, weight: Weights = None) -> Kernel:
        """Words such as "median" are taken from all elements of all sets."""
        if self.is_resolved():
            return self
        elements, lengths = stack_elements(self.base, data.as_objects(data.single_column(X)))
        weight = None if weight is None else np.repeat(np.asarray(weight), lengths)
        return SetKernel(self.base.resolve(elements, weight), self.normalize)


class GeneralSetKernel(StackedKernel):
    r"""k(A, B) = Σ_{x∈𝒳} Σ_{y∈𝒳} element(x, y) · count(A(x), B(y)), A(x) how often x is in A.

    A bag is a dict or Counter of multiplicities, or a list, a set or a table of elements. With
    ``element=Delta()`` and ``count=Min()`` it is the intersection; with ``Linear()`` for ``count`` it is
    ``SetKernel(element)``.

    Where count(0, ·) = 0, as of these two, what a bag has not adds nothing, and 𝒳 may be anything.
    Other kernels of counts also compare what is *not* there: then ``universe`` says what 𝒳 is, a list of its
    different elements. Without it, x and y run over the elements of A and of B alone, which is a kernel too,
    and another one.

    >>> from mercer import Delta, Gaussian, Min
    >>> GeneralSetKernel(Delta(), Min())([{"rose": 3, "thorn": 1}], [["rose", "rose", "leaf"]])
    array([[2.]])
    >>> k = GeneralSetKernel(Delta(), Gaussian(sigma=1.0), universe=["rose", "thorn", "leaf"])
    >>> k({"rose": 1}, {"rose": 1})  # they agree on all three
    3.0
    """

    closure = "a set kernel: element(x, y) · count(A(x), B(y)) is a kernel of pairs (element, multiplicity)"
    element: Kernel = _kernel()
    count: Kernel = _kernel()
    universe: Any = fixed(
        None,
        "a list of elements, or None",
        lambda v: isinstance(v, list | tuple | np.ndarray) and len(v) > 0,
        "the different elements that a bag may have",
        optional=True,
    )

    def check(self) -> None:
        if self.universe is not None and isinstance(self.element, Kernel):
            keys = self._keys(self.universe)
            if len(set(keys)) < len(keys):
                twice = Counter(keys).most_common(1)[0][0]
                raise InputError(f"universe must list every element once, got {twice!r} more than once")

    def __repr__(self) -> str:
        if self.universe is None or len(self.universe) <= 8:
            return super().__repr__()
        some = f"<{len(self.universe)} elements>"
        return f"GeneralSetKernel(element={self.element!r}, count={self.count!r}, universe={some})"

    @property
    def objects(self) -> str:  # type: ignore[override]
        return _kind_of_sets(self.element)

    @property
    def _as_tuples(self) -> bool:
        return self.element.domain.is_vectors

    def _keys(self, elements: Any) -> list[Any]:
        """Elements as what they are looked up by."""
        try:
            keys = [_key(element, self._as_tuples) for element in elements]
            hash(tuple(keys))
        except TypeError as error:
            raise InputTypeError(f"elements of bags must be hashable to be counted: {error}") from None
        return keys

    def _read(self, X: Objects) -> tuple[Any, np.ndarray, np.ndarray]:
        """The different elements, their multiplicities (N, 1), and how many each bag has."""
        bags = [_counted(x, i, self._as_tuples) for i, x in enumerate(X)]
        if self.universe is not None:
            place = {key: j for j, key in enumerate(self._keys(self.universe))}
            bags = [(self.universe, self._throughout(place, *bag, i)) for i, bag in enumerate(bags)]
        elements, lengths = stack_elements(self.element, [members for members, _ in bags])
        counts = np.concatenate([np.empty(0), *(times for _, times in bags)]).reshape(-1, 1)
        if not (np.isfinite(counts).all() and (counts >= 0).all()):
            raise InputError(
                "multiplicities must be numbers that are zero or more: look at the values of the bags"
            )
        return elements, counts, lengths

    def _throughout(self, place: dict[Any, int], members: Any, times: np.ndarray, i: int) -> np.ndarray:
        """How often each element of the universe is in a bag, most of them zero times."""
        counts = np.zeros(len(place))
        for key, often in zip(self._keys(members), times, strict=True):
            if key not in place:
                raise InputError(
                    f"bag {i} has the element {key!r}, which the universe has not: list it there, "
                    "or leave it out"
                )
            counts[place[key]] += often
        return counts

    def encode(self, X: Objects) -> Stacked:
        elements, counts, lengths = self._read(X)
        kernel = Product(Mapped(self.element, _ELEMENT), Mapped(self.count, _COUNT))
        return Stacked.of(lengths, kernel, _Multiples(elements, counts))

    def resolve(self, X: Points, weight: Weights = None) -> Kernel:
        """Words such as "median" are taken from all different elements, and from their multiplicities."""
        if self.is_resolved():
            return self
        elements, counts, lengths = self._read(data.as_objects(data.single_column(X)))
        weight = None if weight is None else np.repeat(np.asarray(weight), lengths)
        element, count = self.element.resolve(elements, weight), self.count.resolve(counts, weight)
        return GeneralSetKernel(element, count, self.universe)


@dataclass(frozen=True, eq=False)
class _Multiples:
    """Elements and how often each is there: the points of a product of two kernels."""

    elements: Any
    counts: np.ndarray  # (n, 1)

    @property
    def shape(self) -> tuple[int]:
        return (len(self.counts),)


_ELEMENT, _COUNT = attrgetter("elements"), attrgetter("counts")


def _key(element: Any, as_tuples: bool) -> Any:
    """An element as what it is counted by: vectors as tuples."""
    return tuple(np.asarray(element).tolist()) if as_tuples and np.ndim(element) else element


def _counted(x: Any, i: int, as_tuples: bool) -> tuple[Any, np.ndarray]:
    """The different elements of one bag, and how often each is there."""
    if isinstance(x, Mapping):
        try:
            return list(x), np.fromiter(x.values(), np.float64, len(x))
        except (TypeError, ValueError):
            raise InputTypeError(f"bag {i} must hold numbers as multiplicities, got {x!r}") from None
    if len(getattr(x, "shape", ())) == 2:
        table, times = np.unique(np.asarray(x), axis=0, return_counts=True)
        return table, times.astype(np.float64)
    members = _members(x, i)
    try:
        often = Counter(_key(a, as_tuples) for a in members)
    except TypeError as error:
        raise InputTypeError(f"elements of bags must be hashable to be counted: {error}") from None
    return list(often), np.fromiter(often.values(), np.float64, len(often))
