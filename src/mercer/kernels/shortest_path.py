r"""Graphs compared by the distances between their nodes.

Borgwardt and Kriegel, Shortest-path kernels on graphs, IEEE International Conference on Data Mining (2005),
74-81.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from mercer.errors import InputError
from mercer.kernels.graphs import Graphs
from mercer.kernels.parameters import choice
from mercer.kernels.weisfeiler_lehman import GraphFeatures
from mercer.native import OPTIONS

__all__ = ["ShortestPath"]


class ShortestPath(GraphFeatures):
    r"""k(G, G') = #{(u, v, u', v') : l(u) = l(u'), l(v) = l(v'), d(u, v) = d(u', v')}, u ≠ v and u' ≠ v'.

    Ordered pairs of nodes are alike when their labels are, and their distance d is; nodes that no path
    connects are no pair. ``lengths="edges"`` counts edges, ``"weights"`` adds up the entries of the adjacency
    matrix, which must be positive then.

    >>> path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> ring = np.ones((3, 3)) - np.eye(3)
    >>> ShortestPath()([path, ring])
    array([[20., 24.],
           [24., 36.]])
    """

    lemma = "the inner product of counts of (label, label, distance)"
    lengths: str = choice("edges", ("edges", "weights"))

    def counts(self, graphs: Graphs) -> sparse.csr_array:
        sizes = graphs.lengths
        pairs = np.concatenate([[0], np.cumsum(sizes * sizes)])
        if self.lengths == "edges":
            distances = steps(graphs.starts, graphs.stops, graphs.indptr, graphs.neighbours, pairs)
        else:
            distances = _weighted(graphs, pairs)
        return _tally(*tally(graphs.starts, graphs.stops, graphs.labels, distances, pairs))


def _weighted(graphs: Graphs, pairs: np.ndarray) -> np.ndarray:  # (pairs,) int64
    """Numbers 1, 2, … for the lengths of the shortest paths, -1 where there is none."""
    if (graphs.edge_lengths <= 0).any():
        raise InputError(
            "lengths='weights' needs positive entries in adjacency matrices, got some that are negative: "
            "use lengths='edges'"
        )
    found = np.empty(pairs[-1])
    for g, (start, stop) in enumerate(zip(graphs.starts, graphs.stops, strict=True)):
        edges = slice(graphs.indptr[start], graphs.indptr[stop])
        n = stop - start
        indptr = graphs.indptr[start : stop + 1] - graphs.indptr[start]
        part = (graphs.edge_lengths[edges], graphs.neighbours[edges] - start, indptr)
        found[pairs[g] : pairs[g + 1]] = dijkstra(sparse.csr_array(part, shape=(n, n))).ravel()
    # sums of the same lengths in another order differ by rounding
    _, codes = np.unique(np.round(found, 9), return_inverse=True)
    return np.where(np.isfinite(found), codes + 1, -1)


def _tally(indptr: np.ndarray, keys: np.ndarray, counts: np.ndarray) -> sparse.csr_array:
    """Rows of (key, count) with keys numbered through."""
    names, columns = np.unique(keys, return_inverse=True)
    table = sparse.csr_array((counts, columns, indptr), shape=(len(indptr) - 1, len(names)))
    table.sort_indices()
    return table


@njit(nogil=True, cache=True, **OPTIONS)
def steps(starts, stops, indptr, neighbours, pairs):  # type: ignore[no-untyped-def]
    """The number of edges between all nodes of each graph, row by row, -1 where there is no path."""
    out = np.full(pairs[-1], -1, np.int64)
    largest = 0
    for g in range(starts.shape[0]):
        largest = max(largest, stops[g] - starts[g])
    queue = np.empty(largest, np.int64)
    for g in range(starts.shape[0]):
        start, n = starts[g], stops[g] - starts[g]
        for u in range(n):
            row = out[pairs[g] + u * n : pairs[g] + (u + 1) * n]
            row[u] = 0
            queue[0] = u
            head, tail = 0, 1
            while head < tail:
                v = queue[head]
                head += 1
                for e in range(indptr[start + v], indptr[start + v + 1]):
                    w = neighbours[e] - start
                    if row[w] < 0:
                        row[w] = row[v] + 1
                        queue[tail] = w
                        tail += 1
    return out


@njit(nogil=True, cache=True, **OPTIONS)
def tally(starts, stops, labels, distances, pairs):  # type: ignore[no-untyped-def]
    """How often each (label, label, distance) is in each graph, as sorted keys."""
    total = distances.shape[0]
    kinds, longest, largest = np.int64(1), np.int64(1), np.int64(1)
    for v in range(labels.shape[0]):
        kinds = max(kinds, labels[v] + 1)
    for p in range(total):
        longest = max(longest, distances[p] + 1)
    for g in range(starts.shape[0]):
        largest = max(largest, stops[g] - starts[g])
    keys, counts = np.empty(total, np.int64), np.empty(total, np.float64)
    row = np.empty(largest * largest, np.int64)
    indptr = np.zeros(starts.shape[0] + 1, np.int64)
    end = 0
    for g in range(starts.shape[0]):
        start, n = starts[g], stops[g] - starts[g]
        size = 0
        for u in range(n):
            for v in range(n):
                d = distances[pairs[g] + u * n + v]
                if u != v and d >= 0:
                    row[size] = (labels[start + u] * kinds + labels[start + v]) * longest + d
                    size += 1
        ordered = np.sort(row[:size])
        for a in range(size):
            if a == 0 or ordered[a] != ordered[a - 1]:
                keys[end] = ordered[a]
                counts[end] = 0.0
                end += 1
            counts[end - 1] += 1.0
        indptr[g + 1] = end
    return indptr, keys[:end], counts[:end]
