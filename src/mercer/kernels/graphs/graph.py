r"""A graph: what it is, and what may stand for one.

A graph may be given as

- an adjacency matrix A, dense or sparse (an edge where Aᵤᵥ ≠ 0, and Aᵤᵥ its length);
- a pair (A, labels), one hashable label per node;
- a networkx graph, whose nodes and edges may carry a ``label``, nodes also ``attributes``, edges a ``weight``
  (``from_networkx`` takes other names);
- its edges: a set or a list of tuples (u, v), or what GraKeL takes (``mercer.kernels.graphs.edges``);
- a ``Graph``, which may have all of these.

>>> ring = np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0]])
>>> as_graph((ring, ["C", "C", "O"]))
Graph(3 nodes, 6 edges, node labels)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mercer.errors import InputError, InputTypeError


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """Nodes 0 … n-1 and directed edges; an undirected graph has each edge in both directions.

    Parameters
    ----------
    adjacency : (n, n) matrix of edge lengths, best a CSR array, which has an edge for each stored entry
    labels : a hashable per node, optional
    edge_labels : a hashable per edge, row by row as in a CSR array with sorted indices, optional
    attributes : (n, d) numbers, optional

    >>> Graph([[0, 1], [1, 0]], labels="CO", edge_labels=["=", "="], attributes=[[12.0], [16.0]])
    Graph(2 nodes, 2 edges, node labels, edge labels, attributes)
    """

    adjacency: sparse.csr_array
    labels: Sequence[Any] | None = None
    edge_labels: Sequence[Any] | None = None
    attributes: np.ndarray | None = None

    def __post_init__(self) -> None:
        adjacency = _adjacency(self.adjacency, "a graph")
        object.__setattr__(self, "adjacency", adjacency)
        if self.labels is not None:
            object.__setattr__(self, "labels", _one_each(self.labels, self.n, "node"))
        if self.edge_labels is not None:
            object.__setattr__(self, "edge_labels", _one_each(self.edge_labels, adjacency.nnz, "edge"))
        if self.attributes is not None:
            object.__setattr__(self, "attributes", _table_of(self.attributes, self.n))

    @property
    def n(self) -> int:
        return int(self.adjacency.shape[0])

    def __repr__(self) -> str:
        parts = {
            "node labels": self.labels,
            "edge labels": self.edge_labels,
            "attributes": self.attributes,
        }
        has = "".join(f", {name}" for name, value in parts.items() if value is not None)
        return f"Graph({self.n} nodes, {self.adjacency.nnz} edges{has})"


def _one_each(labels: Any, size: int, what: str) -> list[Any]:
    if isinstance(labels, Mapping) and set(labels) == set(range(size)):
        return [labels[i] for i in range(size)]
    try:
        if isinstance(labels, Mapping):
            raise InputError(f"labels in a dict have keys 0 … {size - 1}, one per {what}, got {labels!r}")
        labels = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    except TypeError:
        raise InputTypeError(f"labels are a list, one per {what}, got {labels!r}") from None
    if len(labels) != size:
        raise InputError(
            f"a graph has {size} {what}s and {len(labels)} labels of {what}s: pass one label per {what}"
        )
    return labels


def _table_of(attributes: Any, n: int) -> np.ndarray:  # (n, d)
    try:
        table = np.asarray(attributes, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(
            "attributes of nodes must be vectors of numbers of one length: pass a table with a row per node"
        ) from None
    if n == 0 and not table.size:
        return np.empty((0, 0))
    table = table.reshape(-1, 1) if table.ndim == 1 else table
    if table.shape[:1] != (n,) or table.ndim != 2:
        raise InputError(
            f"a graph has {n} nodes and attributes of shape {table.shape}: pass a table with a row per node"
        )
    if not np.isfinite(table).all():
        raise InputError("attributes of nodes must be finite numbers, got NaN or infinity: fill them in")
    return table


def as_graph(G: Any, name: str = "a graph") -> Graph:
    """A graph from what stands for one."""
    if isinstance(G, Graph):
        return G
    try:
        if _is_networkx(G):
            return from_networkx(G)
        by_edges = _by_edges(G)
        if by_edges is not None:
            return by_edges
        labels = None
        if isinstance(G, tuple) and len(G) == 2:
            G, labels = G
        graph = Graph(G, labels)
    except (InputError, InputTypeError) as error:
        message = str(error)
        if not message.startswith("a graph"):
            message = f"a graph: {message}"
        raise type(error)(message.replace("a graph", name, 1)) from None
    if graph.adjacency.data.all():
        return graph
    adjacency = graph.adjacency.copy()  # what was given is left as it is
    adjacency.eliminate_zeros()
    return Graph(adjacency, labels)


def _by_edges(G: Any) -> Graph | None:
    """A graph that is given by its edges; None where it is given in another way."""
    from mercer.kernels.graphs.edges import from_edges, from_grakel, is_edges, is_grakel

    if is_edges(G):
        is_square = all(len(edge) == len(G) for edge in G)
        if isinstance(G, list) and is_square and np.asarray(G).dtype.kind in "biuf":
            raise InputError(
                f"a graph {G!r} may be a matrix or a list of {len(G)} edges: pass np.array(…) for a matrix, "
                "set(…) or mercer.kernels.graphs.edges.from_edges(…) for edges"
            )
        return from_edges(G)
    if isinstance(G, tuple) and len(G) == 2 and not isinstance(G[0], Mapping | Set):
        return None  # a matrix and labels, in whatever form
    return from_grakel(G) if is_grakel(G) else None


def _is_networkx(G: Any) -> bool:
    """Whether it is a graph of networkx, or of another library that looks alike."""
    return not isinstance(G, type) and all(hasattr(G, a) for a in ("nodes", "edges", "adj", "is_directed"))


def _adjacency(given: Any, name: str) -> sparse.csr_array:
    """The matrix in canonical form, rows sorted and an entry per edge; what was given is left as it is."""
    A = given
    if not sparse.issparse(A):
        try:
            A = np.asarray(A)
            A = A if A.dtype.kind == "c" else A.astype(np.float64)
        except (TypeError, ValueError):
            A = np.empty(0)
        if A.ndim == 0 or A.shape == (0,):
            raise InputTypeError(
                f"{name} must be an adjacency matrix, a pair (matrix, labels), a set of edges (u, v), a "
                f"networkx graph or a mercer.kernels.graphs.many.Graph, got a {type(given).__name__}"
            )
    if A.ndim != 2 or A.shape[0] != A.shape[1] or A.dtype.kind == "c":
        raise InputError(
            f"{name} must have a square adjacency matrix of real numbers, got {A.dtype} of shape {A.shape}: "
            "pass a list of graphs, [graph] for a single one"
        )
    if not (type(A) is sparse.csr_array and A.dtype == np.float64):
        A = sparse.csr_array(A, dtype=np.float64)
    if not A.has_canonical_format:
        A = A.copy()
        A.sum_duplicates()
    if not np.isfinite(A.data).all():
        raise InputError(f"{name} has entries in its adjacency matrix that are not finite: leave them out")
    return A


def from_networkx(
    G: Any,
    label: str = "label",
    edge_label: str = "label",
    attributes: str = "attributes",
    weight: str = "weight",
) -> Graph:
    """A graph from a networkx graph; the names say where nodes and edges keep what they have.

    >>> import networkx
    >>> water = networkx.Graph([("O", "H1"), ("O", "H2")])
    >>> networkx.set_node_attributes(water, {"O": 8, "H1": 1, "H2": 1}, "element")
    >>> from_networkx(water, label="element").labels
    [8, 1, 1]
    """
    nodes = list(G.nodes)
    place = {node: i for i, node in enumerate(nodes)}
    ends = [(place[u], place[v], facts) for u, v, facts in G.edges(data=True)]
    if not G.is_directed():
        ends += [(v, u, facts) for u, v, facts in ends if u != v]
    ends.sort(key=lambda end: end[:2])
    rows, columns = ([end[side] for end in ends] for side in (0, 1))
    try:
        lengths = np.array([facts.get(weight, 1.0) for *_, facts in ends], dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(f"a graph has edges whose {weight!r} is not a number: leave it out") from None
    adjacency = sparse.csr_array((lengths, (rows, columns)), shape=(len(nodes), len(nodes)))
    if adjacency.nnz != len(ends):
        raise InputError("a graph with several edges between two nodes cannot be compared: merge them first")
    of_nodes = [G.nodes[node] for node in nodes]
    return Graph(
        adjacency,
        _all_or_none([facts.get(label) for facts in of_nodes], f"{label!r} of nodes"),
        _all_or_none([facts.get(edge_label) for *_, facts in ends], f"{edge_label!r} of edges"),
        _all_or_none([facts.get(attributes) for facts in of_nodes], f"{attributes!r} of nodes"),
    )


def _all_or_none(values: list[Any], what: str) -> Any:
    missing = sum(value is None for value in values)
    if 0 < missing < len(values):
        raise InputError(
            f"a graph has {what} for {len(values) - missing} of {len(values)} only: give it to all, or none"
        )
    return None if missing or not values else values
