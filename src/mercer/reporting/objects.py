r"""Points that are no rows of a table, in words: texts, sets, trees, graphs.

>>> import numpy as np
>>> shown((np.ones((3, 3)) - np.eye(3), "CCO"), "graphs")
'3 nodes, 3 edges: C C O'
>>> shown(("S", ("N", "a")), "trees"), shown(np.zeros((4, 2)), "sets")
('(S (N a))', '4 elements: (0, 0), (0, 0), (0, 0), …')
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.kernels.base import Kernel
from mercer.kernels.graphs.graph import as_graph
from mercer.kernels.trees.tree import as_tree
from mercer.reporting.page import cut, number

_ELEMENTS = 3  # so many elements of a set are shown
_LENGTH = 240  # characters of a point


def objects_of(kernel: Kernel) -> str | None:
    """What a kernel compares: "graphs", "trees", "sets", "sequences", …; None where it does not say."""
    for part in kernel.parts():
        if part.objects is not None:
            return part.objects
        if type(part).__name__ == "SetKernel":
            return "sets"
    return None


def size(point: Any, what: str | None) -> tuple[int, str] | None:
    """How large a point is, and in what."""
    if what == "graphs":
        return as_graph(point).n, "nodes"
    if what == "trees" or not hasattr(point, "__len__"):
        return None
    if isinstance(point, str | bytes):
        return len(point), "characters" if isinstance(point, str) else "bytes"
    return len(point), "elements" if what == "sets" else "parts"


def shown(point: Any, what: str | None) -> str:
    """A point on one line."""
    try:
        if what == "graphs":
            return _graph(point)
        if what == "trees":
            return cut(str(as_tree(point)), _LENGTH)
        if isinstance(point, np.ndarray) and point.ndim == 2:
            return _rows(point)
    except Exception:  # a point that only its kernel can read
        return cut(repr(point), _LENGTH)
    return cut(point if isinstance(point, str) else repr(point), _LENGTH)


def _graph(point: Any) -> str:
    graph = as_graph(point)
    arrows = graph.adjacency.nnz
    both = (graph.adjacency != graph.adjacency.T).nnz == 0
    text = f"{graph.n} nodes, {arrows // 2 if both else arrows} edges"
    return text if graph.labels is None else cut(f"{text}: {' '.join(map(str, graph.labels))}", _LENGTH)


def _rows(points: np.ndarray) -> str:
    first = [f"({', '.join(number(float(v)) for v in row[:6])})" for row in points[:_ELEMENTS]]
    more = ", …" if len(points) > _ELEMENTS else ""
    return f"{len(points)} elements: {', '.join(first)}{more}"
