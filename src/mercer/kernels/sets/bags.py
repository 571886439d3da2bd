r"""Bags: sets in which an element may be more than once. Compared by what they have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mercer.data import agreement
from mercer.data import points as data
from mercer.data.types import Objects, Points
from mercer.errors import InputError, InputTypeError
from mercer.kernels.domain import Domain
from mercer.kernels.formula.expression import Expression
from mercer.kernels.formula.pair import Joint, Pair
from mercer.kernels.structured import ObjectKernel, Ranges, encode_labels
from mercer.runtime.native import OPTIONS, njit

_FREQUENT_ONE_IN = 8  # An element is frequent if at least one of so many bags has it.


@dataclass(frozen=True, eq=False)
class Bags(Ranges):
    """Bags of numbered elements, one after the other: the i-th has ``columns[starts[i] : stops[i]]``."""

    columns: np.ndarray  # (entries,) int32: elements, each once in a bag
    counts: np.ndarray  # (entries,) float64 ≥ 0
    starts: np.ndarray  # (n,) int64
    stops: np.ndarray  # (n,) int64
    width: int  # the number of different elements

    @classmethod
    def of(cls, table: sparse.csr_array) -> Bags:
        ends = table.indptr.astype(np.int64)
        columns = table.indices.astype(np.int32, copy=False)
        return cls(columns, table.data.astype(np.float64, copy=False), ends[:-1], ends[1:], table.shape[1])


class Intersection(ObjectKernel):
    r"""k(A, B) = Σₓ min(A(x), B(x)), A(x) how often x is in A: the number of elements in common.

    A bag is a set, a list or a tuple of hashables, or a dict or Counter of multiplicities, which need not be
    whole; or a row of a table of counts, dense or sparse, with one column per element.

    >>> Intersection()([["to", "be", "to"], {"to": 1, "or": 5}], [("to", "to", "or")])
    array([[2.],
           [2.]])
    >>> Intersection()(np.array([[3, 0, 1]]), np.array([[1, 1, 1]]))
    array([[2.]])
    """

    domain = Domain.ANY  # a list of bags, or a table of counts
    objects = "sets"
    lemma = "min(a, b) = ∫ [t ≤ a][t ≤ b] dt, an inner product of indicator functions, for every element"

    def expression(self, pair: Pair | None = None) -> Expression:
        return (pair or Pair()).through(_ReadBags(encode_bags)).external(self)

    def encode(self, X: Points) -> Bags:
        return encode_bags(X)

    def pairs(self, X: Bags, Y: Bags | None) -> np.ndarray:
        out = np.zeros((len(X), len(X if Y is None else Y)))
        sides = ((side.columns, side.counts, side.starts, side.stops) for side in (X, X if Y is None else Y))
        common(*next(sides), *next(sides), X.width, Y is None, out)
        return out if Y is not None else np.tril(out) + np.tril(out, -1).T

    def self_pairs(self, X: Bags) -> np.ndarray:
        return np.array([X.counts[a:b].sum() for a, b in zip(X.starts, X.stops, strict=True)])


@njit(nogil=True, cache=True, **OPTIONS)
def common(columns, counts, starts, stops, columns2, counts2, starts2, stops2, width, is_same, out):  # type: ignore[no-untyped-def]
    """out[i, j] += Σₓ min(Aᵢ(x), Bⱼ(x)); of a side with itself only for j ≤ i.

    For every element there is a list of the bags that have it, so that work is done only where both have it.
    An element that many bags have is kept as a row of its counts in all of them: that is faster from one
    bag in eight on, since a list has to be followed entry by entry.
    """
    m = starts2.shape[0]
    first = np.zeros(width + 1, np.int64)
    for j in range(m):
        for t in range(starts2[j], stops2[j]):
            first[columns2[t] + 1] += 1
    place, frequent = np.empty(width, np.int64), 0
    for x in range(width):
        place[x] = -1
        if _FREQUENT_ONE_IN * first[x + 1] >= m:
            place[x] = frequent
            frequent += 1
            first[x + 1] = 0
        first[x + 1] += first[x]
    end = first[:width].copy()
    who, times = np.empty(first[width], np.int32), np.empty(first[width])
    full = np.zeros((frequent, m))
    listed = 0
    for i in range(starts.shape[0]):
        known = i + 1 if is_same else m
        while listed < known:
            for t in range(starts2[listed], stops2[listed]):
                x = columns2[t]
                if place[x] >= 0:
                    full[place[x], listed] = counts2[t]
                else:
                    who[end[x]] = listed
                    times[end[x]] = counts2[t]
                    end[x] += 1
            listed += 1
        row = out[i, :known]
        for t in range(starts[i], stops[i]):
            x, a = columns[t], counts[t]
            if place[x] >= 0:
                other = full[place[x], :known]
                for j in range(known):
                    row[j] += min(a, other[j])
            else:
                for s in range(first[x], end[x]):
                    row[who[s]] += min(a, times[s])


# --- reading bags -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ReadBags(Joint):
    """Bags and tables of counts, both sides of one kind."""

    def read(self, X: Any) -> Any:
        """A CSR array of counts, or a list of bags."""
        if len(getattr(X, "shape", ())) == 2:
            kind = X.dtype.kind if sparse.issparse(X) else np.asarray(X).dtype.kind
            if kind in "biuf" or X.shape[1] != 1:
                counts = data.as_vectors(X)
                agreement.require_nonnegative(counts, "X", "Intersection")
                return sparse.csr_array(counts, dtype=np.float64)
        return data.as_objects(data.single_column(X))

    def stack(self, X: Points, Y: Points) -> Any:
        if sparse.issparse(X) != sparse.issparse(Y):
            raise InputTypeError(
                "a table of counts cannot be compared with a list of bags: pass both as one kind"
            )
        if sparse.issparse(X):
            agreement.require_same_width(X, Y)
        return data.stack(X, Y)


def encode_bags(X: Objects | sparse.csr_array) -> Bags:
    """The bags of a list, or of the rows of a CSR array of counts."""
    if sparse.issparse(X):
        return Bags.of(sparse.csr_array(X))
    labels: list[Any] = []
    counts: list[Any] = []
    lengths = np.empty(len(X), np.int64)
    for i, bag in enumerate(X):
        if isinstance(bag, str | bytes) or not isinstance(bag, Iterable):
            raise InputTypeError(
                f"bag {i} must be a list, a set or a dict of multiplicities, got {bag!r}: pass [] for an "
                "empty bag, text.split() for the words of a text, list(text) for its letters"
            )
        members = bag.tolist() if isinstance(bag, np.ndarray) else list(bag)
        labels += members
        counts += bag.values() if isinstance(bag, Mapping) else [1.0] * len(members)
        lengths[i] = len(members)
    codes = encode_labels(labels)
    try:
        values = np.array(counts, np.float64)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"multiplicities of a bag must be numbers: {error}") from None
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise InputError(
            "multiplicities of a bag must be numbers that are zero or more: look at the values of the dicts"
        )
    rows = np.repeat(np.arange(len(X)), lengths)
    table = sparse.csr_array((values, (rows, codes)), shape=(len(X), int(codes.max(initial=-1)) + 1))
    table.sum_duplicates()
    return Bags.of(table)
