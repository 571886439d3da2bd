r"""Graphs given by their edges: lists of pairs, and what GraKeL takes.

- **Pairs**: a set or a list of tuples (u, v), or (u, v, length); nodes are any hashables. They have no
  direction: (u, v) is also (v, u). A list of tuples of numbers that could be a square matrix as well is
  refused; a set, or ``from_edges``, is always a list of edges.
- **GraKeL's**: ``[edges, node labels, edge labels]``, the labels dicts or None, the last one optional; edges
  are an adjacency matrix, a set of pairs, a dict {(u, v): length}, {u: [v, …]} or {u: {v: length}}. As in
  GraKeL, each edge has the direction in which it is given: an undirected graph gives both.

>>> from_edges([("O", "H1"), ("O", "H2")], labels={"O": 8, "H1": 1, "H2": 1})
Graph(3 nodes, 4 edges, node labels)
>>> from_grakel([{("a", "b"), ("b", "a")}, {"a": "C", "b": "O"}, {("a", "b"): "=", ("b", "a"): "="}])
Graph(2 nodes, 2 edges, node labels, edge labels)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

import numpy as np
from scipy import sparse

from mercer.errors import InputError, InputTypeError
from mercer.kernels.graphs.graph import Graph

_PAIR = "an edge is a pair (u, v) of nodes, or (u, v, length)"


def is_edges(G: Any) -> bool:
    """Whether a graph is given as a set or a list of tuples."""
    if not isinstance(G, Set | list) or not len(G):
        return False
    return all(isinstance(edge, tuple) and len(edge) in (2, 3) for edge in G)


def is_grakel(G: Any) -> bool:
    """Whether a graph is of GraKeL, or given as there: a dict of edges, or edges beside dicts of labels."""
    if isinstance(G, Mapping) or _is_object(G):
        return True
    if not isinstance(G, list | tuple) or not 1 <= len(G) <= 3:
        return False
    edges, *labels = G
    if isinstance(edges, Mapping | Set):
        return all(map(_is_labels, labels))
    return bool(labels) and isinstance(labels[0], Mapping) and (len(labels) == 1 or _is_labels(labels[1]))


def _is_object(G: Any) -> bool:
    """Whether it is an instance of GraKeL's class, which is never imported here."""
    return not isinstance(G, type) and hasattr(G, "get_edge_dictionary") and hasattr(G, "get_labels")


def _is_labels(part: Any) -> bool:
    return part is None or isinstance(part, Mapping)


def from_edges(edges: Any, labels: Any = None, edge_labels: Any = None, directed: bool = False) -> Graph:
    """A graph from pairs (u, v) or triples (u, v, length), or from one of GraKeL's dicts.

    ``labels`` is a dict of the nodes, also of those without edges; ``edge_labels`` is a dict of the pairs.
    Without ``directed`` every edge goes both ways.

    >>> from_edges([(0, 1), (1, 2)]).adjacency.toarray()
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    lengths: dict[tuple[Any, Any], float] = {}
    for u, v, length in _triples(edges):
        for way in ((u, v),) if directed else ((u, v), (v, u)):
            if lengths.setdefault(way, length) != length:
                raise InputError(
                    f"a graph has the edge {way!r} with the lengths {lengths[way]} and {length}: "
                    "keep one of them"
                )
    nodes = dict.fromkeys([*(labels or ()), *_alone(edges), *(node for pair in lengths for node in pair)])
    place = {node: i for i, node in enumerate(nodes)}
    ends = sorted((place[u], place[v], (u, v)) for u, v in lengths)
    shape = (len(nodes), len(nodes))
    where = ([end[0] for end in ends], [end[1] for end in ends])
    adjacency = sparse.csr_array((np.array([lengths[end[2]] for end in ends], float), where), shape=shape)
    return Graph(
        adjacency, _of_nodes(labels, nodes), _of_edges(edge_labels, [end[2] for end in ends], directed)
    )


def from_grakel(G: Any) -> Graph:
    """A graph from GraKeL's ``[edges, node labels, edge labels]``, its dict of edges, or its ``Graph``."""
    if _is_object(G):
        kinds = ("vertex", "edge")
        labels = (G.get_labels(label_type=kind, purpose="dictionary", return_none=True) for kind in kinds)
        return from_grakel([G.get_edge_dictionary(), *labels])
    edges, labels, edge_labels = (G, None, None) if isinstance(G, Mapping) else (*G, None, None)[:3]
    if isinstance(edges, Mapping | Set) or is_edges(edges):
        return from_edges(edges, labels or None, edge_labels or None, directed=True)
    graph = Graph(edges, labels or None)
    if not edge_labels:
        return graph
    rows, columns = graph.adjacency.tocoo().coords
    ends = list(zip(rows.tolist(), columns.tolist(), strict=True))
    return Graph(graph.adjacency, graph.labels, _of_edges(edge_labels, ends, directed=True))


def _triples(edges: Any) -> Iterable[tuple[Any, Any, float]]:
    """Edges with their lengths, 1 where none is given."""
    if isinstance(edges, Mapping):
        edges = list(_of_dict(edges))
    try:
        given = [tuple(edge) for edge in edges]
    except TypeError:
        raise InputTypeError(f"{_PAIR}, got {edges!r}: pass a list of them") from None
    for edge in given:
        if len(edge) not in (2, 3):
            raise InputError(f"{_PAIR}, got {edge!r}")
        try:
            length = float(edge[2]) if len(edge) == 3 else 1.0
            hash(edge)
        except (TypeError, ValueError):
            raise InputTypeError(f"{_PAIR}, with nodes that are hashable, got {edge!r}") from None
        yield edge[0], edge[1], length


def _alone(edges: Any) -> list[Any]:
    """The nodes u of {u: {v: length}} or {u: [v, …]}: some may have no edge."""
    if not isinstance(edges, Mapping):
        return []
    return [u for u, ends in edges.items() if isinstance(ends, Mapping | list | tuple | Set | np.ndarray)]


def _of_dict(edges: Mapping[Any, Any]) -> Iterable[tuple[Any, ...]]:
    """The edges of {(u, v): length}, of {u: {v: length}} or of {u: [v, …]}."""
    for key, value in edges.items():
        if isinstance(value, Mapping):
            yield from ((key, v, length) for v, length in value.items())
        elif isinstance(value, list | tuple | Set | np.ndarray):
            yield from ((key, v) for v in value)
        elif isinstance(key, tuple) and len(key) == 2:
            yield (*key, value)
        else:
            raise InputTypeError(
                "a dict of edges is {(u, v): length}, {u: [v, …]} or {u: {v: length}}, got the entry "
                f"{key!r}: {value!r}"
            )


def _of_nodes(labels: Any, nodes: Iterable[Any]) -> list[Any] | None:
    if labels is None:
        return None
    if not isinstance(labels, Mapping):
        raise InputTypeError(f"labels of named nodes are a dict {{node: label}}, got {labels!r}")
    missing = [node for node in nodes if node not in labels]
    if missing:
        raise InputError(
            f"a graph has labels for some nodes only, and none for {missing[0]!r}: give it to all"
        )
    return [labels[node] for node in nodes]


def _of_edges(labels: Any, ends: list[tuple[Any, Any]], directed: bool) -> list[Any] | None:
    """A label per edge; that of (v, u) where (u, v) has none and direction means nothing."""
    if labels is None:
        return None
    if not isinstance(labels, Mapping):
        raise InputTypeError(f"labels of edges are a dict {{(u, v): label}}, got {labels!r}")
    known = labels if directed else {**{(v, u): label for (u, v), label in labels.items()}, **labels}
    for end in ends:
        if end not in known:
            raise InputError(f"a graph has labels for some edges only, and none for {end!r}: give it to all")
    strange = set(labels) - set(ends)
    if strange:
        raise InputError(f"a graph has a label for {strange.pop()!r}, which is no edge of it: leave it out")
    return [known[end] for end in ends]
