r"""Kernels on graphs that compare nodes, by their labels and by a kernel of their attributes.

κ(u, u') = [l(u) = l(u')] node(a(u), a(u')), l the label of a node and a the vector of its attributes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.data import points as data
from mercer.data.types import Objects, Points, Weights
from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.kernels.domain import Domain
from mercer.kernels.graphs.many import Graphs, encode_graphs
from mercer.kernels.parameters import fixed
from mercer.kernels.structured import ObjectKernel, Parts


def node_kernel() -> Any:
    """The parameter ``node``: a kernel of attributes, or None where only labels are compared."""
    return fixed(
        None,
        "a kernel on vectors",
        lambda v: isinstance(v, Kernel) and v.domain is not Domain.OBJECTS,
        "an object such as Gaussian(sigma=1.0)",
        optional=True,
    )


@dataclass(frozen=True, eq=False)
class ComparedGraphs(Graphs):
    """Graphs, the attributes of their nodes, and distances of nodes where they are needed."""

    parts: Parts | None  # all nodes, where a kernel compares their attributes
    distances: np.ndarray  # (Σ nodes²,) or empty
    rows: np.ndarray  # (nodes,) or empty: where the distances from a node begin

    def nodes(self) -> np.ndarray:
        """The nodes of all graphs, one graph after the other."""
        ranges = zip(self.starts.tolist(), self.stops.tolist(), strict=True)
        return np.concatenate([np.empty(0, np.int64), *(np.arange(a, b) for a, b in ranges)])


class NodeComparison(ObjectKernel, abstract=True):
    """A kernel of two graphs and the matrix κ of their nodes: ``values`` is what a subclass defines."""

    objects = "graphs"
    node: Any

    def encode(self, X: Objects) -> ComparedGraphs:
        graphs = encode_graphs(X)
        distances, rows = self.distances(graphs)
        return ComparedGraphs(**vars(graphs), parts=self._parts(graphs), distances=distances, rows=rows)

    def distances(self, graphs: Graphs) -> tuple[np.ndarray, np.ndarray]:
        """What ``values`` needs to know of distances between nodes."""
        return np.empty(0, np.int64), np.empty(0, np.int64)

    def values(
        self, X: ComparedGraphs, i: int, Y: ComparedGraphs, js: range, kappa: np.ndarray
    ) -> np.ndarray:  # (js,)
        """k of graph i of X and the graphs js of Y; κ has a row per node of i, a column per node of those."""
        raise NotImplementedError(f"{type(self).__name__} must define values(self, X, i, Y, js, kappa)")

    def pairs(self, X: ComparedGraphs, Y: ComparedGraphs | None) -> np.ndarray:
        other = X if Y is None else Y
        K = np.zeros((len(X), len(other)))
        nodes, ends = other.nodes(), np.cumsum(other.lengths)
        for i in range(len(X)):
            js = range(i + 1 if Y is None else len(other))
            if js:
                K[i, : len(js)] = self.values(X, i, other, js, _kappa(X, i, other, nodes[: ends[js[-1]]]))
        return np.tril(K) + np.tril(K, -1).T if Y is None else K

    def self_pairs(self, X: ComparedGraphs) -> np.ndarray:
        K = np.zeros(len(X))
        for i in range(len(X)):
            kappa = _kappa(X, i, X, np.arange(X.starts[i], X.stops[i]))
            K[i] = self.values(X, i, X, range(i, i + 1), kappa)[0]
        return K

    def resolve(self, X: Points, weight: Weights = None) -> Self:
        """Words such as "median" are taken from the attributes of all nodes of all graphs."""
        if self.is_resolved():
            return self
        graphs = encode_graphs(data.as_objects(data.single_column(X)))
        self._require_attributes(graphs)
        weight = None if weight is None else np.repeat(weight, graphs.lengths)
        return type(self)(
            **{**self.get_params(deep=False), "node": self.node.resolve(graphs.attributes, weight)}
        )

    def _parts(self, graphs: Graphs) -> Parts | None:
        if self.node is None or not len(graphs.labels):
            return None
        self._require_attributes(graphs)
        return Parts(self.node, graphs.attributes)

    def _require_attributes(self, graphs: Graphs) -> None:
        has_none = np.isnan(graphs.attributes).any(axis=1) if graphs.attributes.shape[1] else [True]
        if np.any(has_none):
            which = "the graphs have none" if np.all(has_none) else "some of the graphs have none"
            raise InputError(f"{self!r} compares attributes of nodes, and {which}: give them to all graphs")


def _kappa(X: ComparedGraphs, i: int, Y: ComparedGraphs, nodes: np.ndarray) -> np.ndarray:
    """κ of the nodes of graph i and of these nodes of Y."""
    own = np.arange(X.starts[i], X.stops[i])
    alike = (X.labels[own, None] == Y.labels[None, nodes]).astype(np.float64)
    if X.parts is not None and alike.size:
        alike *= X.parts.matrix.block(own, nodes)
    return alike
