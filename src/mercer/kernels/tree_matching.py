r"""What compiled code does for kernels on trees: numbering nodes, and sums over pairs of nodes that match.

Nodes of two trees are compared only where they have the same key (a production, a label). The nodes of each
tree are sorted by key, so that the matches of a node a are a range of the other tree's list, and one pass
through both lists finds all ranges (Moschitti, Making tree kernels practical for natural language learning,
EACL 2006). The values Δ(a, b) lie one after the other, those of a from ``offset[a]``. Children have higher
numbers than their parents: going down the numbers, Δ of the children is there when it is needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from mercer.kernels.structured import Ranges
from mercer.kernels.trees import Trees
from mercer.native import INNER, OPTIONS

__all__ = ["Keyed", "number_nodes", "partial_trees", "subset_trees", "subtree_sizes"]


@dataclass(frozen=True, eq=False)
class Keyed(Ranges):
    """Trees whose nodes have keys; a negative one matches nothing."""

    starts: np.ndarray  # (trees,)
    stops: np.ndarray  # (trees,)
    first: np.ndarray  # (nodes,): the children of v are first[v] … last[v] - 1
    last: np.ndarray  # (nodes,)
    keys: np.ndarray  # (nodes,)
    order: np.ndarray  # (nodes,): the nodes of each tree sorted by key
    place: np.ndarray  # (nodes,): where a node is in ``order``
    labels: np.ndarray  # (nodes,)
    alike: np.ndarray  # (labels, labels): how similar labels are, or (0, 0)

    @classmethod
    def of(cls, trees: Trees, keys: np.ndarray, alike: np.ndarray | None = None) -> Keyed:
        order = np.lexsort((keys, trees.owners()))
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        alike = np.empty((0, 0)) if alike is None else np.ascontiguousarray(alike, np.float64)
        return cls(
            trees.starts, trees.stops, trees.first, trees.last, keys, order, place, trees.labels, alike
        )

    @property
    def nodes(self) -> tuple[np.ndarray, ...]:
        """The arrays that all trees share, as compiled code takes them."""
        return self.first, self.last, self.keys, self.order, self.place


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


@njit(nogil=True, **INNER)
def _match(keys, order, s, e, s2, e2, low, high, offset):  # type: ignore[no-untyped-def]
    """The matches order[low[a] : high[a]] of the nodes s + a in the tree s2 … e2 - 1; their number."""
    for a in range(e - s):
        low[a] = high[a] = 0
    i, j, total = s, s2, 0
    while i < e and keys[order[i]] < 0:
        i += 1
    while i < e and j < e2:
        key, other = keys[order[i]], keys[order[j]]
        if key < other:
            i += 1
        elif key > other:
            j += 1
        else:
            stop = j + 1
            while stop < e2 and keys[order[stop]] == key:
                stop += 1
            while i < e and keys[order[i]] == key:
                a = order[i] - s
                low[a], high[a], offset[a] = j, stop, total
                total += stop - j
                i += 1
            j = stop
    return total


@njit(nogil=True, cache=True, **OPTIONS)
def subset_trees(first, last, keys, order, place, starts, stops, starts2, stops2, same, decay):  # type: ignore[no-untyped-def]
    """Σ Δ(a, b) over nodes of equal production, Δ = λ Π (1 + Δ of the children): a row per tree of the first.

    ``same`` = 1: both sides are one set, of which the lower half is computed; 2: only the diagonal is, in
    the first column. A leaf has Δ = λ, but is no child that could be continued.
    """
    n, m = starts.shape[0], 1 if same == 2 else starts2.shape[0]
    K = np.empty((n, m))
    longest = 1
    for i in range(n):
        longest = max(longest, stops[i] - starts[i])
    low, high, offset = np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(longest, np.int64)
    delta = np.empty(1024)
    for i in range(n):
        s, e = starts[i], stops[i]
        for j in range(i + 1 if same == 1 else m):
            t = i if same == 2 else j
            total = _match(keys, order, s, e, starts2[t], stops2[t], low, high, offset)
            if total > delta.shape[0]:
                delta = np.empty(2 * total)
            value = 0.0
            for a in range(e - s - 1, -1, -1):
                if high[a] > low[a]:
                    left, end = first[s + a], last[s + a]
                    at = offset[a]
                    for p in range(low[a], high[a]):
                        product = decay
                        shift = first[order[p]] - left
                        for c in range(left, end):
                            if keys[c] >= 0 and keys[c] == keys[c + shift]:
                                product *= 1.0 + delta[offset[c - s] + place[c + shift] - low[c - s]]
                        value += product
                        delta[at] = product if end > left else 0.0
                        at += 1
            K[i, j] = value
            if same == 1:
                K[j, i] = value
    return K


@njit(nogil=True, cache=True, **OPTIONS)
def partial_trees(  # type: ignore[no-untyped-def]
    first, last, keys, order, place, labels, alike, starts, stops, starts2, stops2, same, decay, gap
):
    """Σ Δ(a, b) over matching nodes, Δ = μ σ (λ² + Σ λ^(d(J) + d(J')) Π Δ of the children J, J').

    The inner sum runs over sequences of children of a and of b, equally long. With W(i, j) that over those
    which end at the children i and j,

        W(i, j) = λ² Δ(i, j) (1 + S(i-1, j-1)),      S(i, j) = Σ_{i'≤i, j'≤j} λ^(i-i'+j-j') W(i', j'),

    S is updated along a row, R(j) = W(i, j) + λ R(j-1), and from row to row, S(i, j) = R(j) + λ S(i-1, j).
    ``same`` as in ``subset_trees``; σ = 1 where ``alike`` is empty.
    """
    n, m = starts.shape[0], 1 if same == 2 else starts2.shape[0]
    K = np.empty((n, m))
    longest = 1
    for i in range(n):
        longest = max(longest, stops[i] - starts[i])
    low, high, offset = np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(longest, np.int64)
    widest = 1
    for t in range(starts2.shape[0]):
        for b in range(starts2[t], stops2[t]):
            widest = max(widest, last[b] - first[b])
    S = np.empty(widest)
    delta = np.empty(1024)
    is_smooth = alike.shape[0] > 0
    square = gap * gap
    for i in range(n):
        s, e = starts[i], stops[i]
        for j in range(i + 1 if same == 1 else m):
            t = i if same == 2 else j
            total = _match(keys, order, s, e, starts2[t], stops2[t], low, high, offset)
            if total > delta.shape[0]:
                delta = np.empty(2 * total)
            value = 0.0
            for a in range(e - s - 1, -1, -1):
                if high[a] > low[a]:
                    left, end = first[s + a], last[s + a]
                    at = offset[a]
                    for p in range(low[a], high[a]):
                        b = order[p]
                        sigma = decay
                        if is_smooth:
                            sigma *= alike[labels[s + a], labels[b]]
                        if sigma != 0.0:
                            right, width = first[b], last[b] - first[b]
                            inner = square
                            if left < end and width > 0:
                                inner += _sequences(
                                    keys, place, s, left, end, right, width, low, offset, delta, gap, S
                                )
                            sigma *= inner
                        value += sigma
                        delta[at] = sigma
                        at += 1
            K[i, j] = value
            if same == 1:
                K[j, i] = value
    return K


@njit(nogil=True, **INNER)
def _sequences(keys, place, s, left, end, right, width, low, offset, delta, gap, S):  # type: ignore[no-untyped-def]
    """The sum over sequences of children left … end - 1 and right … right + width - 1."""
    square, total = gap * gap, 0.0
    for j in range(width):
        S[j] = 0.0
    for c in range(left, end):
        corner = row = 0.0  # S(i-1, j-1) and R(j-1)
        key, base = keys[c], offset[c - s] - low[c - s]
        for j in range(width):
            above = S[j]
            weight = 0.0
            if keys[right + j] == key:
                weight = square * delta[base + place[right + j]] * (1.0 + corner)
                total += weight
            row = weight + gap * row
            S[j] = row + gap * above
            corner = above
    return total
