r"""Graphs compared by the distances between their nodes.

Borgwardt and Kriegel, Shortest-path kernels on graphs, IEEE International Conference on Data Mining (2005),
74-81.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mercer.errors import InputError
from mercer.kernels.formula.expression import Expression
from mercer.kernels.formula.pair import Pair
from mercer.kernels.graphs.distances import all_distances, count_distances
from mercer.kernels.graphs.many import Graphs
from mercer.kernels.graphs.node_comparison import ComparedGraphs, NodeComparison, node_kernel
from mercer.kernels.graphs.weisfeiler_lehman import GraphFeatures
from mercer.kernels.parameters import choice
from mercer.runtime.native import OPTIONS, njit


class ShortestPath(GraphFeatures, NodeComparison):
    r"""k(G, G') = Σ κ(u, u') κ(v, v') over pairs u ≠ v of G and u' ≠ v' of G' with d(u, v) = d(u', v').

    κ(u, u') is 1 where the labels of u and u' are equal, else 0, times node(a(u), a(u')) when ``node``, a
    kernel of the vectors of attributes, is given. Pairs of nodes are ordered; nodes that no path connects are
    no pair. ``lengths="edges"`` measures d in edges, ``"weights"`` adds up the entries of the adjacency
    matrix, which must be positive then; lengths of paths are compared to ten digits.

    >>> path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> ring = np.ones((3, 3)) - np.eye(3)
    >>> ShortestPath()([path, ring])
    array([[20., 24.],
           [24., 36.]])
    """

    lengths: str = choice("edges", ("edges", "weights"))
    node: Any = node_kernel()

    @property
    def closure(self) -> str:  # type: ignore[override]
        if self.node is None:
            return "the inner product of counts of (label, label, distance)"
        return "a sum over pairs of parts, (node, node, distance), of a product of kernels of these"

    @property
    def has_features(self) -> bool:
        return self.node is None

    def expression(self, pair: Pair | None = None) -> Expression:
        kind = GraphFeatures if self.has_features else NodeComparison
        return kind.expression(self, pair)

    def counts(self, graphs: Graphs) -> sparse.csr_array:
        if not self.has_features:
            raise InputError(f"{self!r} has no features to count: it compares attributes by a kernel")
        return count_distances(graphs, self.lengths == "weights")

    def distances(self, graphs: Graphs) -> tuple[np.ndarray, np.ndarray]:
        each = np.repeat(graphs.lengths, graphs.lengths)
        return all_distances(graphs, self.lengths == "weights"), np.cumsum(each) - each

    def values(
        self, X: ComparedGraphs, i: int, Y: ComparedGraphs, js: range, kappa: np.ndarray
    ) -> np.ndarray:
        return paths(
            X.distances, X.rows, X.starts[i],
            Y.distances, Y.rows, Y.starts[js.start : js.stop], Y.stops[js.start : js.stop], kappa,
        )  # fmt: skip


@njit(nogil=True, cache=True, **OPTIONS)
def paths(distances, rows, start, distances2, rows2, starts, stops, kappa):  # type: ignore[no-untyped-def]
    """Σ κ(u, u') κ(v, v') over equal distances, with each of some graphs.

    For every u, nodes v at one distance d are added up first, T[d, v'] = Σ κ(v, v'): n²m + nm² steps.
    """
    n = kappa.shape[0]
    out = np.zeros(starts.shape[0])
    own = np.empty((n, n), np.int64)  # distances as numbers 1, 2, … of this graph; 0 for no path
    longest = 0
    for u in range(n):
        for v in range(n):
            longest = max(longest, distances[rows[start + u] + v])
    number = np.zeros(longest + 1, np.int64)
    few = 1
    for u in range(n):
        for v in range(n):
            d = distances[rows[start + u] + v]
            if d > 0 and number[d] == 0:
                number[d] = few
                few += 1
            own[u, v] = number[d] if d > 0 else 0
    first = 0
    for j in range(starts.shape[0]):
        m = stops[j] - starts[j]
        theirs = np.zeros((m, m), np.int64)
        for u2 in range(m):
            for v2 in range(m):
                d = distances2[rows2[starts[j] + u2] + v2]
                if 0 < d <= longest:
                    theirs[u2, v2] = number[d]
        T = np.zeros((few, m))
        for u in range(n):
            T[:] = 0.0
            for v in range(n):
                if own[u, v] > 0:
                    for v2 in range(m):
                        T[own[u, v], v2] += kappa[v, first + v2]
            for u2 in range(m):
                if kappa[u, first + u2] != 0.0:
                    total = 0.0
                    for v2 in range(m):
                        total += T[theirs[u2, v2], v2]
                    out[j] += kappa[u, first + u2] * total
        first += m
    return out
