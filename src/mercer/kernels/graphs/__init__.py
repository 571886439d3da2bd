"""Graphs: what one is and what may stand for one, kernels on them, data sets of them."""

from mercer.kernels.graphs.edges import from_edges, from_grakel
from mercer.kernels.graphs.graph import Graph, as_graph, from_networkx
from mercer.kernels.graphs.many import Graphs, encode_graphs, read_tu

__all__ = [
    "Graph",
    "Graphs",
    "as_graph",
    "encode_graphs",
    "from_edges",
    "from_grakel",
    "from_networkx",
    "read_tu",
]
