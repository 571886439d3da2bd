r"""Graphs compared by the neighbourhoods of their nodes: Weisfeiler and Lehman's refinement of labels.

Each round gives a node a new label, a number for its own label together with the multiset of those of its
neighbours (and of the edges to them). After h rounds a label stands for all that can be seen within h steps.

Shervashidze, Schweitzer, van Leeuwen, Mehlhorn and Borgwardt, Weisfeiler-Lehman graph kernels, JMLR 12
(2011), 2539-2561.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numba import njit
from scipy import sparse

from mercer.kernels.base import Kernel
from mercer.kernels.counting import count
from mercer.kernels.graphs import Graphs, encode_graphs
from mercer.kernels.parameters import fixed, whole
from mercer.kernels.structured import FeatureKernel
from mercer.native import INNER, OPTIONS

__all__ = ["GraphFeatures", "NodeLabels", "WeisfeilerLehman"]


class GraphFeatures(FeatureKernel, abstract=True):
    """A kernel on graphs that counts something: ``counts`` is all a subclass defines."""

    objects = "graphs"

    def features(self, X: Sequence[Any]) -> sparse.csr_array:  # (n, features)
        return self.counts(encode_graphs(X))

    def counts(self, graphs: Graphs) -> sparse.csr_array:  # (n, features)
        """How often each feature is in each graph."""
        raise NotImplementedError(f"{type(self).__name__} must define counts(self, graphs)")


class NodeLabels(GraphFeatures):
    r"""k(G, G') = Σ_l #{u ∈ G : l(u) = l} #{u' ∈ G' : l(u') = l}: nodes with equal labels, edges ignored.

    >>> two, three = (np.zeros((2, 2)), ["C", "O"]), (np.zeros((3, 3)), ["C", "C", "O"])
    >>> NodeLabels()([two, three])
    array([[2., 3.],
           [3., 5.]])
    """

    lemma = "the inner product of counts of labels"

    def counts(self, graphs: Graphs) -> sparse.csr_array:
        width = int(graphs.labels.max(initial=-1)) + 1
        return count(graphs.owners(), graphs.labels, len(graphs), width)


class WeisfeilerLehman(GraphFeatures):
    r"""k(G, G') = Σₜ base(Gₜ, G'ₜ), t = 0 … ``iterations``, Gₜ the graph with its labels refined t times.

    ``base`` is any kernel on graphs that counts features: the labels of nodes by default, which gives the
    subtree kernel of Weisfeiler and Lehman; or ``ShortestPath()``. Labels are exact, never hashed.

    >>> path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> ring = np.ones((3, 3)) - np.eye(3)
    >>> WeisfeilerLehman(iterations=1)([path, ring])
    array([[14., 12.],
           [12., 18.]])

    Nine pairs of nodes are alike at first; then the middle of the path, with its two neighbours, is like the
    three nodes of the ring.
    """

    lemma = "a sum of inner products of counts"
    iterations: int = whole(5, minimum=0)
    base: Any = fixed(
        None,
        "a kernel that counts features of graphs",
        lambda v: isinstance(v, GraphFeatures),
        "NodeLabels() or ShortestPath()",
        optional=True,
    )

    def counts(self, graphs: Graphs) -> sparse.csr_array:
        base = NodeLabels() if self.base is None else self.base
        parts = [base.counts(refined) for refined in refinements(graphs, int(self.iterations))]
        return sparse.csr_array(sparse.hstack(parts, format="csr"))

    def children(self) -> dict[str, Kernel]:
        return {}  # the base sees other graphs than those given


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
            signature[start:stop] = np.sort(signature[start:stop])
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
