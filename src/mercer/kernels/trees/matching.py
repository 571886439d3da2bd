r"""What compiled code does for kernels on trees: numbering nodes, and sums over pairs of nodes that match.

Nodes of two trees are compared only where they have the same key (a production, a label). The nodes of each
tree are sorted by key, so that the matches of a node a are a range of the other tree's list, and one pass
through both lists finds all ranges (Moschitti, Making tree kernels practical for natural language learning,
EACL 2006). Children have higher numbers than their parents: going down the numbers, Δ of the children is
there when it is needed.

A leaf has the same Δ whatever it is compared with, so only Δ(a, b) of two nodes with children are kept: one
after the other, those of a from ``offset[a]``. Nodes are numbered level by level, so that once a is reached
nobody asks for nodes beyond its last child any more. Where trees are large their room is used again: what is
kept is that of a level or two of one tree, against the other tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.kernels.structured import Parts, Ranges
from mercer.kernels.trees.tree import Trees
from mercer.runtime.config import memory_budget, thread_count
from mercer.runtime.native import INNER, OPTIONS, njit


@dataclass(frozen=True, eq=False)
class Keyed(Ranges):
    """Trees whose nodes have keys; a negative one matches nothing."""

    starts: np.ndarray  # (trees,)
    stops: np.ndarray  # (trees,)
    first: np.ndarray  # (nodes,): the children of v are first[v] … last[v] - 1
    last: np.ndarray  # (nodes,)
    keys: np.ndarray  # (nodes,)
    order: np.ndarray  # (nodes,): the nodes of each tree sorted by key, of one key the leaves last
    place: np.ndarray  # (nodes,): where a node is in ``order``
    ranked: np.ndarray  # (nodes,): the keys in that order
    bare: np.ndarray  # (nodes,): which are leaves, in that order
    labels: np.ndarray  # (nodes,)
    parts: Parts | None  # the labels that there are, where a kernel compares them
    room: int  # how many Δ may be kept at a time

    @classmethod
    def of(cls, trees: Trees, keys: np.ndarray, parts: Parts | None = None) -> Keyed:
        is_leaf = trees.first == trees.last
        order = np.lexsort((is_leaf, keys, trees.owners()))
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        room = memory_budget() // (8 * thread_count())  # each thread compares trees of its own
        return cls(
            trees.starts, trees.stops, trees.first, trees.last, keys, order, place,
            keys[order], is_leaf[order], trees.labels, parts, room,
        )  # fmt: skip

    def against(self, other: Keyed, same: int) -> tuple[Any, ...]:
        """These trees and others of the same nodes, as compiled code takes them."""
        nodes = (self.first, self.last, self.keys, self.order, self.place, self.ranked, self.bare)
        alike = (
            np.empty((0, 0)) if self.parts is None else np.ascontiguousarray(self.parts.values, np.float64)
        )
        return nodes, self.starts, self.stops, other.starts, other.stops, same, self.room, self.labels, alike


# --- numbering nodes -------------------------------------------------------------------------------------


@njit(nogil=True, cache=True, **OPTIONS)
def number_nodes(first, last, labels, below, numbers):  # type: ignore[no-untyped-def]
    """Numbers 0, 1, …, equal where the label and the list of what ``below`` says of the children are equal.

    ``below = labels`` numbers productions; ``below = numbers`` itself numbers whole subtrees, since children
    get theirs first. A table with open addressing holds one node of each number, and a node is compared with
    it in full: hash values only say where to look.
    """
    n = labels.shape[0]
    size = 16
    while size < 2 * n:
        size *= 2
    holder = np.full(size, -1, np.int64)
    found = 0
    for v in range(n - 1, -1, -1):
        h = np.uint64(labels[v] + 1) * np.uint64(0x9E3779B97F4A7C15)
        for c in range(first[v], last[v]):
            h = (h ^ (h >> np.uint64(29)) ^ np.uint64(below[c] + 1)) * np.uint64(0x9E3779B97F4A7C15)
        slot = np.int64((h ^ (h >> np.uint64(32))) & np.uint64(size - 1))
        while True:
            w = holder[slot]
            if w < 0:
                holder[slot] = v
                numbers[v] = found
                found += 1
                break
            is_equal = labels[w] == labels[v] and last[w] - first[w] == last[v] - first[v]
            c = 0
            while is_equal and c < last[v] - first[v]:
                is_equal = below[first[w] + c] == below[first[v] + c]
                c += 1
            if is_equal:
                numbers[v] = numbers[w]
                break
            slot = (slot + 1) & (size - 1)
    return found


@njit(nogil=True, cache=True, **OPTIONS)
def subtree_sizes(first, last):  # type: ignore[no-untyped-def]
    """How many nodes there are from each node downwards."""
    sizes = np.ones(first.shape[0], np.int64)
    for v in range(first.shape[0] - 1, -1, -1):
        for c in range(first[v], last[v]):
            sizes[v] += sizes[c]
    return sizes


# --- pairs of nodes that match ---------------------------------------------------------------------------

_VALUES_KEPT = 2**17  # values of Δ, a megabyte, before their room is used again


@njit(nogil=True, **INNER)
def _match(order, ranked, bare, s, e, s2, e2, low, middle, high):  # type: ignore[no-untyped-def]
    """The matches order[low[a] : high[a]] of node s + a in the tree s2 … e2 - 1.

    Those before middle[a] are the ones whose Δ is kept: both nodes have children.
    """
    for a in range(e - s):
        low[a] = middle[a] = high[a] = 0
    i, j = s, s2
    while i < e and ranked[i] < 0:
        i += 1
    while i < e and j < e2:
        key = ranked[i]
        if key < ranked[j]:
            i += 1
        elif key > ranked[j]:
            j += 1
        else:
            leaves = j
            while leaves < e2 and ranked[leaves] == key and not bare[leaves]:
                leaves += 1
            stop = leaves
            while stop < e2 and ranked[stop] == key:
                stop += 1
            while i < e and ranked[i] == key:
                a = order[i] - s
                low[a], middle[a], high[a] = j, j if bare[i] else leaves, stop
                i += 1
            j = stop


@njit(nogil=True, **INNER)
def _make_room(delta, filled, offset, low, middle, a, stop, room):  # type: ignore[no-untyped-def]
    """Space for the values of node a: only those of a + 1 … stop - 1 are still needed, and move to the front.

    The array, and how many values there are in it. It is at least twice as large as what is needed: moving
    takes no longer than computing what was moved. An empty array: there is no room for that many.
    """
    start, wanted = filled, middle[a] - low[a]
    for v in range(a + 1, stop):
        if middle[v] > low[v]:
            start = min(start, offset[v])
    alive = filled - start
    moved = delta
    if 2 * (alive + wanted) > delta.shape[0]:
        if 2 * (alive + wanted) > room:
            return np.empty(0), 2 * (alive + wanted)
        moved = np.empty(2 * (alive + wanted))
    for i in range(alive):
        moved[i] = delta[start + i]
    for v in range(a + 1, stop):
        if middle[v] > low[v]:
            offset[v] -= start
    return moved, alive


@njit(nogil=True, **INNER)
def _longest(starts, stops):  # type: ignore[no-untyped-def]
    longest = 1
    for i in range(starts.shape[0]):
        longest = max(longest, stops[i] - starts[i])
    return longest


@njit(nogil=True, cache=True, **OPTIONS)
def matching_nodes(  # type: ignore[no-untyped-def]
    nodes, starts, stops, starts2, stops2, same, room, labels, alike, is_partial, decay, gap
):
    """Σ Δ(a, b) over nodes with the same key: a row per tree of the first, a column per tree of the second.

    Of partial trees, Δ = μ σ (λ² + Σ λ^(d(J) + d(J')) Π Δ of the children J, J'), of others μ Π (1 + Δ of the
    children); μ is ``decay``, λ is ``gap``, 1 for the others, and σ how alike the labels are, 1 where
    ``alike`` is empty. A leaf has Δ = μ σ λ², but is no child that could be continued.

    ``same`` = 1: both sides are one set, of which the lower half is computed; 2: only the diagonal is, in
    the first column. Beside the matrix: 0, or how many values would have to be kept where that is more than
    ``room``.
    """
    first, last, keys, order, place, ranked, bare = nodes
    n, m = starts.shape[0], 1 if same == 2 else starts2.shape[0]
    K = np.empty((n, m))
    longest = _longest(starts, stops)
    low, middle, high = np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(longest, np.int64)
    offset = np.empty(longest, np.int64)
    widest = 1
    for t in range(starts2.shape[0] if is_partial else 0):
        for b in range(starts2[t], stops2[t]):
            widest = max(widest, last[b] - first[b])
    S = np.empty(widest)
    delta = np.empty(_VALUES_KEPT)
    is_smooth = alike.shape[0] > 0
    square = gap * gap
    leaf = decay * square
    for i in range(n):
        s, e = starts[i], stops[i]
        for j in range(i + 1 if same == 1 else m):
            t = i if same == 2 else j
            _match(order, ranked, bare, s, e, starts2[t], stops2[t], low, middle, high)
            value, filled = 0.0, 0
            for a in range(e - s - 1, -1, -1):
                if high[a] > low[a]:
                    left, end = first[s + a], last[s + a]
                    if filled + middle[a] - low[a] > delta.shape[0]:
                        delta, filled = _make_room(delta, filled, offset, low, middle, a, end - s, room)
                        if not delta.shape[0]:
                            return K, filled
                    offset[a] = filled
                    total = 0.0  # rows are added up alone: shorter sums round less
                    if is_smooth:
                        for p in range(middle[a], high[a]):
                            total += leaf * alike[labels[s + a], labels[order[p]]]
                    else:
                        total = leaf * (high[a] - middle[a])
                    for p in range(low[a], middle[a]):
                        b = order[p]
                        product = decay
                        if is_smooth:
                            product *= alike[labels[s + a], labels[b]]
                        if not is_partial:
                            shift = first[b] - left
                            for c in range(left, end):
                                if keys[c] == keys[c + shift] and low[c - s] < middle[c - s]:
                                    product *= 1.0 + delta[offset[c - s] + place[c + shift] - low[c - s]]
                        elif product != 0.0:
                            product *= square + _sequences(
                                first, last, keys, place, labels, alike, is_smooth, leaf, gap,
                                s, left, end, b, low, middle, offset, delta, S,
                            )  # fmt: skip
                        total += product
                        delta[filled] = product
                        filled += 1
                    value += total
            K[i, j] = value
            if same == 1:
                K[j, i] = value
    return K, 0


@njit(nogil=True, **INNER)
def _sequences(  # type: ignore[no-untyped-def]
    first, last, keys, place, labels, alike, is_smooth, leaf, gap,
    s, left, end, b, low, middle, offset, delta, S,
):  # fmt: skip
    """Σ λ^(d(J) + d(J')) Π Δ over sequences J of the children left … end - 1 and J' of those of b.

    J and J' are equally long. With W(i, j) the sum over those which end at the children i and j,

        W(i, j) = λ² Δ(i, j) (1 + S(i-1, j-1)),      S(i, j) = Σ_{i'≤i, j'≤j} λ^(i-i'+j-j') W(i', j'),

    S is updated along a row, R(j) = W(i, j) + λ R(j-1), and from row to row, S(i, j) = R(j) + λ S(i-1, j).
    """
    right, width = first[b], last[b] - first[b]
    square, total = gap * gap, 0.0
    for j in range(width):
        S[j] = 0.0
    for c in range(left, end):
        corner = row = 0.0  # S(i-1, j-1) and R(j-1)
        key, kept, base = keys[c], middle[c - s], offset[c - s] - low[c - s]
        for j in range(width):
            d = right + j
            above = S[j]
            weight = 0.0
            if keys[d] == key:
                value = leaf
                if place[d] < kept:  # never so where c is a leaf
                    value = delta[base + place[d]]
                elif is_smooth:
                    value *= alike[labels[c], labels[d]]
                weight = square * value * (1.0 + corner)
                total += weight
            row = weight + gap * row
            S[j] = row + gap * above
            corner = above
    return total
