r"""Distances between the nodes of graphs, and how often each is between two labels."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from mercer.errors import InputError
from mercer.kernels.counting import count
from mercer.kernels.graphs.many import Graphs
from mercer.runtime.native import INNER, OPTIONS, longer, njit
from mercer.runtime.threads import run

_DIGITS = 10  # lengths of paths are compared to so many digits: sums in another order differ
_PART = 2**18  # pairs of nodes that make a task for a thread
_TABLE = 2**22  # numbers for (label, label, distance) up to which they have a table of their own


def count_distances(graphs: Graphs, weighted: bool) -> sparse.csr_array:  # (graphs, features)
    """How often each (label, label, distance) is in each graph, between different nodes that a path joins."""
    return _count_lengths(graphs) if weighted else _count_steps(graphs)


def _count_steps(graphs: Graphs) -> sparse.csr_array:
    kinds, longest = _radices(graphs, int(graphs.lengths.max(initial=1)))
    first = _offsets(graphs)
    cuts = np.searchsorted(first, np.arange(0, first[-1], _PART)).tolist()
    parts = list(pairwise(sorted({*cuts, 0, len(graphs)})))
    found: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def task(part: tuple[int, int]) -> None:
        found[part[0]] = _tally(
            graphs.starts[slice(*part)], graphs.stops[slice(*part)],
            graphs.indptr, graphs.neighbours, graphs.labels, kinds, longest,
        )  # fmt: skip

    run(task, parts)
    of_parts = [found[begin] for begin, _ in parts]
    sizes, keys, counts = (np.concatenate(arrays) for arrays in zip(*of_parts, strict=True))
    width, columns = _numbered(keys, kinds * kinds * longest)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    table = sparse.csr_array((counts.astype(np.float64), columns, indptr), shape=(len(graphs), width))
    table.sort_indices()
    return table


def _count_lengths(graphs: Graphs) -> sparse.csr_array:
    distances = all_distances(graphs, weighted=True)
    kinds, longest = _radices(graphs, int(distances.max(initial=0)) + 1)
    sizes = graphs.lengths
    each = np.repeat(sizes, sizes)  # for every node, with how many it makes a pair
    row = np.arange(len(each))
    u = np.repeat(row, each)
    v = np.arange(len(u)) - np.repeat(np.cumsum(each) - each, each) + np.repeat(graphs.starts, sizes**2)
    is_pair = (u != v) & (distances >= 0)
    u, v = u[is_pair], v[is_pair]
    keys = (graphs.labels[u] * kinds + graphs.labels[v]) * longest + distances[is_pair]
    width, columns = _numbered(keys, kinds * kinds * longest)
    return count(graphs.owners()[u], columns, len(graphs), width)


def _radices(graphs: Graphs, longest: int) -> tuple[int, int]:
    """How many labels and how many distances there are, of which one number can be made."""
    kinds = int(graphs.labels.max(initial=0)) + 1
    if kinds * kinds * longest >= 2**63:
        raise InputError(
            f"{kinds} labels of nodes at up to {longest} distances are too many to number: use fewer labels"
        )
    return kinds, longest


def all_distances(graphs: Graphs, weighted: bool) -> np.ndarray:  # (Σ nodes²,) int64
    """Distances between all nodes, graph after graph and row by row, -1 where there is no path.

    They are numbers of edges, or, for sums of lengths, numbers that say which of the lengths it is.
    """
    first = _offsets(graphs)
    if not weighted:
        return _steps(graphs.starts, graphs.stops, graphs.indptr, graphs.neighbours, first)
    if (graphs.edge_lengths <= 0).any():
        raise InputError(
            "lengths='weights' needs positive entries in adjacency matrices, got some that are not: "
            "use lengths='edges'"
        )
    found = np.empty(first[-1])
    for g, (start, stop) in enumerate(zip(graphs.starts, graphs.stops, strict=True)):
        edges = slice(graphs.indptr[start], graphs.indptr[stop])
        n = stop - start
        indptr = graphs.indptr[start : stop + 1] - graphs.indptr[start]
        part = (graphs.edge_lengths[edges], graphs.neighbours[edges] - start, indptr)
        found[first[g] : first[g + 1]] = dijkstra(sparse.csr_array(part, shape=(n, n))).ravel()
    _, codes = np.unique(_rounded(found), return_inverse=True)
    return np.where(np.isfinite(found), codes, -1)


def _offsets(graphs: Graphs) -> np.ndarray:  # (graphs + 1,)
    """Where the pairs of nodes of each graph begin."""
    return np.concatenate([[0], np.cumsum(graphs.lengths**2)])


def _rounded(lengths: np.ndarray) -> np.ndarray:
    """Lengths to ten significant digits, whatever their size."""
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.where((lengths > 0) & np.isfinite(lengths), np.floor(np.log10(lengths)), 0.0)
    unit = 10.0 ** (exponent - _DIGITS + 1)
    return np.round(lengths / unit) * unit


def _numbered(keys: np.ndarray, bound: int) -> tuple[int, np.ndarray]:
    """How many different keys there are, and a number 0, 1, … for each."""
    if bound > _TABLE:
        names, columns = np.unique(keys, return_inverse=True)
        return len(names), columns
    is_there = np.zeros(bound, np.bool_)
    is_there[keys] = True
    number = np.cumsum(is_there) - 1
    return int(is_there.sum()), number[keys]


# --- compiled ------------------------------------------------------------------------------------------


@njit(nogil=True, **INNER)
def _breadth_first(u, start, indptr, neighbours, distance, queue):  # type: ignore[no-untyped-def]
    """Numbers of edges from node u of a graph, where ``distance`` was -1; how many nodes are in the queue."""
    distance[u] = 0
    queue[0] = u
    head, tail = 0, 1
    while head < tail:
        v = queue[head]
        head += 1
        for e in range(indptr[start + v], indptr[start + v + 1]):
            w = neighbours[e] - start
            if distance[w] < 0:
                distance[w] = distance[v] + 1
                queue[tail] = w
                tail += 1
    return tail


@njit(nogil=True, cache=True, **OPTIONS)
def _steps(starts, stops, indptr, neighbours, first):  # type: ignore[no-untyped-def]
    """The number of edges between all nodes of each graph, row by row."""
    out = np.full(first[-1], -1, np.int64)
    largest = 0
    for g in range(starts.shape[0]):
        largest = max(largest, stops[g] - starts[g])
    queue = np.empty(largest, np.int64)
    for g in range(starts.shape[0]):
        n = stops[g] - starts[g]
        for u in range(n):
            row = out[first[g] + u * n : first[g] + (u + 1) * n]
            _breadth_first(u, starts[g], indptr, neighbours, row, queue)
    return out


@njit(nogil=True, cache=True, **OPTIONS)
def _tally(starts, stops, indptr, neighbours, labels, kinds, longest):  # type: ignore[no-untyped-def]
    """How many keys (label, label, distance) each graph has; then these keys, and how often each is there.

    Nodes with the same label are sources one after the other, and share a table of (label, distance).
    """
    largest, total = 0, 0
    for g in range(starts.shape[0]):
        largest = max(largest, stops[g] - starts[g])
    queue, distance = np.empty(largest, np.int64), np.full(largest, -1, np.int64)
    own = np.empty(largest, np.int64)  # for each node, which of the labels of this graph it has
    names = np.empty(largest, np.int64)  # for each label of this graph, which of all labels it is
    number = np.full(kinds, -1, np.int64)
    times, touched = np.zeros(0, np.int64), np.empty(0, np.int64)
    sizes = np.zeros(starts.shape[0], np.int64)
    keys, counts = np.empty(1024, np.int64), np.empty(1024, np.int64)
    for g in range(starts.shape[0]):
        start, n = starts[g], stops[g] - starts[g]
        few = 0
        for v in range(n):
            label = labels[start + v]
            if number[label] < 0:
                number[label] = few
                names[few] = label
                few += 1
            own[v] = number[label]
        if times.shape[0] < few * n:
            times, touched = np.zeros(few * n, np.int64), np.empty(few * n, np.int64)
        before = total
        for a in range(few):
            number[names[a]] = -1
            seen = 0
            for u in range(n):
                if own[u] != a:
                    continue
                found = _breadth_first(u, start, indptr, neighbours, distance, queue)
                for q in range(1, found):
                    v = queue[q]
                    cell = own[v] * n + distance[v]
                    if times[cell] == 0:
                        touched[seen] = cell
                        seen += 1
                    times[cell] += 1
                for q in range(found):
                    distance[queue[q]] = -1
            if total + seen > keys.shape[0]:
                room = 2 * (total + seen)
                keys, counts = longer(keys, total, room), longer(counts, total, room)
            for t in range(seen):
                cell = touched[t]
                b = cell // n
                keys[total] = (names[a] * kinds + names[b]) * longest + cell - b * n
                counts[total] = times[cell]
                times[cell] = 0
                total += 1
        sizes[g] = total - before
    return sizes, keys[:total], counts[:total]
