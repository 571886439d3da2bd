r"""Graphs compared by the walks they have in common, with attributes of nodes through a kernel of their own.

Gärtner, Flach and Wrobel, On graph kernels: hardness results and efficient alternatives, COLT (2003),
129-143; Vishwanathan, Schraudolph, Kondor and Borgwardt, Graph kernels, JMLR 11 (2010), 1201-1242.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit

from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.kernels.graphs import Graphs, encode_graphs
from mercer.kernels.parameters import fixed, nonnegative, whole
from mercer.kernels.structured import ObjectKernel
from mercer.native import OPTIONS

__all__ = ["RandomWalk"]


class RandomWalk(ObjectKernel):
    r"""k(G, G') = Σⱼ λʲ Σ ∏ᵢ κ(wᵢ, w'ᵢ) over walks w of G and w' of G' with j steps each, j ≤ ``length``.

    λ is ``decay``. Nodes are compared by κ(u, u') = [l(u) = l(u')] node(a(u), a(u')): labels must be equal,
    and ``node``, a kernel on vectors, compares their attributes when it is given. Steps go together along
    edges with equal labels only.

    >>> path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> RandomWalk(length=1, decay=0.5)([path])
    array([[17.]])

    Nine pairs of nodes, and sixteen pairs of steps at half the weight.
    """

    objects = "graphs"
    length: int = whole(4, minimum=0)
    decay: float = nonnegative(0.1)
    node: Any = fixed(
        None,
        "a kernel on vectors",
        lambda v: isinstance(v, Kernel) and v.domain in ("vectors", "nonnegative"),
        "an object such as Gaussian(sigma=1.0)",
        optional=True,
    )

    @property
    def closure(self) -> str:  # type: ignore[override]
        what = "" if self.node is None else ", weighted by products of a kernel of nodes"
        return f"the number of common walks, an inner product of counts{what}"

    def encode(self, X: Sequence[Any]) -> Graphs:
        graphs = encode_graphs(X)
        if self.node is not None and not graphs.attributes.shape[1]:
            raise InputError(f"{self!r} compares attributes of nodes, and the graphs have none")
        return graphs

    def pairs(self, X: Graphs, Y: Graphs | None) -> np.ndarray:
        same = Y is None
        Y = X if Y is None else Y
        K = np.empty((len(X), len(Y)))
        for i in range(len(X)):
            for j in range(i + 1 if same else len(Y)):
                K[i, j] = self._value(X, i, Y, j)
        return np.tril(K) + np.tril(K, -1).T if same else K

    def self_pairs(self, X: Graphs) -> np.ndarray:
        return np.array([self._value(X, i, X, i) for i in range(len(X))])

    def _value(self, X: Graphs, i: int, Y: Graphs, j: int) -> float:
        a, b = slice(X.starts[i], X.stops[i]), slice(Y.starts[j], Y.stops[j])
        alike = (X.labels[a, None] == Y.labels[None, b]).astype(np.float64)
        if self.node is not None and alike.size:
            alike *= self.node(X.attributes[a], Y.attributes[b])
        return float(
            walks(
                X.indptr, X.neighbours, X.edge_labels, int(a.start),
                Y.indptr, Y.neighbours, Y.edge_labels, int(b.start),
                alike, int(self.length), float(self.decay),
            )
        )  # fmt: skip


@njit(nogil=True, cache=True, **OPTIONS)
def walks(indptr, neighbours, kinds, start, indptr2, neighbours2, kinds2, start2, alike, length, decay):  # type: ignore[no-untyped-def]
    """Σⱼ λʲ of common walks: W ← κ ∘ (A W A'ᵀ), where only edges of one kind go together."""
    n, m = alike.shape
    W, total = alike.copy(), alike.sum()
    for _ in range(length):
        after = np.zeros((n, m))
        for u in range(n):
            for e in range(indptr[start + u], indptr[start + u + 1]):
                v = neighbours[e] - start
                for u2 in range(m):
                    if alike[u, u2] != 0.0:
                        for e2 in range(indptr2[start2 + u2], indptr2[start2 + u2 + 1]):
                            if kinds[e] == kinds2[e2]:
                                after[u, u2] += W[v, neighbours2[e2] - start2]
        W = alike * after * decay
        total += W.sum()
    return total
