r"""Graphs compared by the neighbourhoods of their nodes: Weisfeiler and Lehman's refinement of labels.

Each round gives a node a new label, a number for its own label together with the multiset of those of its
neighbours (and of the edges to them). After h rounds a label stands for all that can be seen within h steps.

Shervashidze, Schweitzer, van Leeuwen, Mehlhorn and Borgwardt, Weisfeiler-Lehman graph kernels, JMLR 12
(2011), 2539-2561.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from scipy import sparse

from mercer.data.types import Objects
from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.kernels.counting import count
from mercer.kernels.domain import Domain
from mercer.kernels.formula.expression import Expression
from mercer.kernels.formula.pair import Joint, Pair
from mercer.kernels.graphs.graph import Graph, as_graph
from mercer.kernels.graphs.many import Graphs, encode_graphs
from mercer.kernels.parameters import choice, fixed, whole
from mercer.kernels.structured import FeatureKernel
from mercer.runtime.native import INNER, OPTIONS, njit


class GraphFeatures(FeatureKernel, abstract=True):
    """A kernel on graphs that counts something: ``counts`` is all a subclass defines."""

    objects = "graphs"

    @property
    def has_features(self) -> bool:
        """Whether there are features to count, for the parameters it has."""
        return True

    def features(self, X: Objects) -> sparse.csr_array:  # (n, features)
        return self.counts(encode_graphs(X))

    def counts(self, graphs: Graphs) -> sparse.csr_array:  # (n, features)
        """How often each feature is in each graph."""
        raise NotImplementedError(f"{type(self).__name__} must define counts(self, graphs)")


class NodeLabels(GraphFeatures):
    r"""k(G, G') = Σ_l #ₗ(G) #ₗ(G'), #ₗ the number of nodes with label l; edges are ignored.

    ``compare="minimum"`` adds up min(#ₗ(G), #ₗ(G')) instead: how many nodes of one graph find a partner of
    their own with the same label in the other. Large graphs then count no more than the small ones that they
    are compared with.

    >>> two, three = (np.zeros((2, 2)), ["C", "O"]), (np.zeros((3, 3)), ["C", "C", "O"])
    >>> NodeLabels()([two, three])
    array([[2., 3.],
           [3., 5.]])
    >>> NodeLabels(compare="minimum")([two, three])
    array([[2., 2.],
           [2., 3.]])
    """

    compare: str = choice("product", ("product", "minimum"))

    @property
    def lemma(self) -> str:  # type: ignore[override]
        if self.compare == "minimum":
            return "min(a, b) = Σₜ [t ≤ a][t ≤ b], an inner product of indicators, for every label"
        return "the inner product of counts of labels"

    def counts(self, graphs: Graphs) -> sparse.csr_array:
        width = int(graphs.labels.max(initial=-1)) + 1
        table = count(graphs.owners(), graphs.labels, len(graphs), width)
        return _in_unary(table) if self.compare == "minimum" else table


def _in_unary(table: sparse.csr_array) -> sparse.csr_array:
    """Each count c as c ones, in the first c of the columns that a feature has now.

    >>> _in_unary(sparse.csr_array([[2.0, 1.0], [0.0, 3.0]])).toarray()
    array([[1., 1., 1., 0., 0.],
           [0., 0., 1., 1., 1.]])
    """
    times = table.data.astype(np.int64)
    most = np.zeros(table.shape[1], np.int64)
    np.maximum.at(most, table.indices, times)
    ends = np.concatenate([[0], np.cumsum(times)])
    rank = np.arange(ends[-1]) - np.repeat(ends[:-1], times)
    columns = np.repeat((np.cumsum(most) - most)[table.indices], times) + rank
    return sparse.csr_array(
        (np.ones(ends[-1]), columns, ends[table.indptr]), shape=(table.shape[0], int(most.sum()))
    )


def _compares_graphs(value: Any) -> bool:
    is_kernel = isinstance(value, Kernel) and value.domain in (Domain.OBJECTS, Domain.ANY)
    return is_kernel and value.objects in ("graphs", None)


class WeisfeilerLehman(GraphFeatures):
    r"""k(G, G') = Σₜ base(Gₜ, G'ₜ), t = 0 … ``iterations``, Gₜ the graph with its labels refined t times.

    ``base`` is any kernel on graphs. By default it counts the labels of nodes, which gives the subtree kernel
    of Weisfeiler and Lehman; with ``NodeLabels(compare="minimum")`` it is the optimal assignment of nodes, a
    pair worth as many rounds as it stays alike (Kriege, Giscard and Wilson, On valid optimal assignment
    kernels, NeurIPS 2016); ``ShortestPath()``, ``RandomWalk(node=…)`` and sums of such see the refined labels
    too. Labels are exact, never hashed.

    >>> path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> ring = np.ones((3, 3)) - np.eye(3)
    >>> WeisfeilerLehman(iterations=1)([path, ring])
    array([[14., 12.],
           [12., 18.]])
    >>> WeisfeilerLehman(1, base=NodeLabels(compare="minimum"))([path, ring])
    array([[6., 4.],
           [4., 6.]])

    Nine pairs of nodes are alike at first; then the middle of the path, with its two neighbours, is like the
    three nodes of the ring.
    """

    iterations: int = whole(5, minimum=0, maximum=1000)
    base: Any = fixed(
        None, "a kernel on graphs", _compares_graphs, "NodeLabels() or ShortestPath()", optional=True
    )
    closure = "a sum of kernels of graphs with refined labels, which do not depend on how nodes are numbered"

    def counts(self, graphs: Graphs) -> sparse.csr_array:
        base = NodeLabels() if self.base is None else self.base
        if not (isinstance(base, GraphFeatures) and base.has_features):
            raise InputError(f"{base!r} does not count features of graphs, so that {self!r} has none to show")
        parts = [base.counts(refined) for refined in refinements(graphs, int(self.iterations))]
        return sparse.csr_array(sparse.hstack(parts, format="csr"))

    @property
    def has_features(self) -> bool:
        return self.base is None or (isinstance(self.base, GraphFeatures) and self.base.has_features)

    def expression(self, pair: Pair | None = None) -> Expression:
        if self.has_features:
            return super().expression(pair)
        pair = (pair or Pair()).below("base")
        rounds = range(int(self.iterations) + 1)
        return reduce(add, (self.base.expression(pair.through(Joint(_Refined(t)))) for t in rounds))


@dataclass(frozen=True)
class _Refined:
    """Graphs with their labels refined some times, as graphs."""

    rounds: int

    def __call__(self, X: Objects) -> list[Graph]:
        graphs = [as_graph(G, f"graph {i}") for i, G in enumerate(X)]
        encoded = encode_graphs(graphs)
        *_, refined = refinements(encoded, self.rounds)
        ranges = zip(graphs, encoded.starts, encoded.stops, strict=True)
        return [replace(G, labels=refined.labels[start:stop].tolist()) for G, start, stop in ranges]


def refinements(graphs: Graphs, iterations: int) -> Iterator[Graphs]:
    """The graphs, and then with labels refined once, twice, …"""
    yield graphs
    labels = graphs.labels
    for _ in range(iterations):
        signature = graphs.edge_labels * (labels.max(initial=0) + 1) + labels[graphs.neighbours]
        labels = relabel(graphs.indptr, signature, labels)
        yield replace(graphs, labels=labels)


@njit(nogil=True, **INNER)
def _mix(h, x):  # type: ignore[no-untyped-def]
    """A number to begin the search at; what it is has no bearing on the result."""
    h = (h ^ np.uint64(x)) * np.uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> np.uint64(29))


@njit(nogil=True, cache=True, **OPTIONS)
def relabel(indptr, signature, labels):  # type: ignore[no-untyped-def]
    """New labels 0, 1, …, equal where labels and the multisets signature[indptr[v] : indptr[v + 1]] are.

    The signatures are sorted in place. A table with open addressing holds one node of each new label, and a
    node is compared with it in full.
    """
    n = labels.shape[0]
    size = 16
    while size < 2 * n:
        size *= 2
    first = np.full(size, -1, np.int64)
    new = np.empty(n, np.int64)
    found = 0
    for v in range(n):
        start, stop = indptr[v], indptr[v + 1]
        if stop - start > 32:
            ordered = np.sort(signature[start:stop])
            for a in range(
                start, stop
            ):  # Numba compiles the errors of a slice's assignment along, for seconds
                signature[a] = ordered[a - start]
        else:
            for a in range(start + 1, stop):
                key, b = signature[a], a - 1
                while b >= start and signature[b] > key:
                    signature[b + 1] = signature[b]
                    b -= 1
                signature[b + 1] = key
        h = _mix(np.uint64(0), labels[v])
        for a in range(start, stop):
            h = _mix(h, signature[a])
        place = np.int64(h & np.uint64(size - 1))
        while first[place] >= 0:
            u = first[place]
            same = labels[u] == labels[v] and indptr[u + 1] - indptr[u] == stop - start
            a = 0
            while same and a < stop - start:
                same = signature[indptr[u] + a] == signature[start + a]
                a += 1
            if same:
                break
            place = (place + 1) & (size - 1)
        if first[place] < 0:
            first[place] = v
            new[v] = found
            found += 1
        else:
            new[v] = new[first[place]]
    return new
