r"""Graphs compared by the walks they have in common, with attributes of nodes through a kernel of their own.

Gärtner, Flach and Wrobel, On graph kernels: hardness results and efficient alternatives, COLT (2003),
129-143; Vishwanathan, Schraudolph, Kondor and Borgwardt, Graph kernels, JMLR 11 (2010), 1201-1242.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.errors import InputError
from mercer.kernels.graphs.node_comparison import ComparedGraphs, NodeComparison, node_kernel
from mercer.kernels.parameters import nonnegative, whole
from mercer.runtime.native import OPTIONS, njit


class RandomWalk(NodeComparison):
    r"""k(G, G') = Σⱼ λʲ Σ ∏ᵢ κ(wᵢ, w'ᵢ) over walks w of G and w' of G' with j steps each, j ≤ ``length``.

    λ is ``decay``. Nodes are compared by κ(u, u') = [l(u) = l(u')] node(a(u), a(u')): labels must be equal,
    and ``node``, a kernel on vectors, compares their attributes when it is given. Steps go together along
    edges with equal labels only.

    >>> path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> RandomWalk(length=1, decay=0.5)([path])
    array([[17.]])

    Nine pairs of nodes, and sixteen pairs of steps at half the weight.
    """

    length: int = whole(4, minimum=0, maximum=1000)
    decay: float = nonnegative(0.1)
    node: Any = node_kernel()

    @property
    def closure(self) -> str:  # type: ignore[override]
        what = "" if self.node is None else ", weighted by products of a kernel of nodes"
        return f"the number of common walks, an inner product of counts{what}"

    def values(
        self, X: ComparedGraphs, i: int, Y: ComparedGraphs, js: range, kappa: np.ndarray
    ) -> np.ndarray:
        found: np.ndarray = walks(
            X.indptr, X.neighbours, X.edge_labels, X.starts[i],
            Y.indptr, Y.neighbours, Y.edge_labels, Y.starts[js.start : js.stop], Y.stops[js.start : js.stop],
            kappa, int(self.length), float(self.decay),
        )  # fmt: skip
        if not np.isfinite(found).all():
            raise InputError(f"{self!r} has more walks to add up than numbers reach: use a smaller decay")
        return found


@njit(nogil=True, cache=True, **OPTIONS)
def walks(indptr, ends, kinds, start, indptr2, ends2, kinds2, starts, stops, kappa, steps, decay):  # type: ignore[no-untyped-def]
    """Σⱼ λʲ of walks in common with each of some graphs.

    W ← λ κ ∘ (A W A'ᵀ), where only edges of one kind go together.
    """
    out = np.empty(starts.shape[0])
    n, first = kappa.shape[0], 0
    for j in range(starts.shape[0]):
        start2, m = starts[j], stops[j] - starts[j]
        alike = kappa[:, first : first + m]
        first += m
        W = alike.copy()
        total = W.sum()
        for _ in range(steps):
            after = np.zeros((n, m))
            for u in range(n):
                for e in range(indptr[start + u], indptr[start + u + 1]):
                    v = ends[e] - start
                    for u2 in range(m):
                        if alike[u, u2] != 0.0:
                            for e2 in range(indptr2[start2 + u2], indptr2[start2 + u2 + 1]):
                                if kinds[e] == kinds2[e2]:
                                    after[u, u2] += W[v, ends2[e2] - start2]
            W = alike * after * decay
            total += W.sum()
        out[j] = total
    return out
