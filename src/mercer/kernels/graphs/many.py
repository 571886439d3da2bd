r"""Graphs as points: many of them side by side in arrays, and data sets of them in files.

What a single graph is, and what may stand for one, is in ``mercer.kernels.graphs.graph``.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from mercer.data.types import Objects
from mercer.errors import InputError
from mercer.kernels.graphs.graph import Graph, as_graph
from mercer.kernels.structured import Ranges, encode_labels


@dataclass(frozen=True, eq=False)
class Graphs(Ranges):
    """Graphs side by side: nodes are numbered through, those of graph i are starts[i] … stops[i] - 1.

    Labels are numbers 0, 1, …; the same one everywhere where graphs have none.
    """

    starts: np.ndarray  # (graphs,)
    stops: np.ndarray  # (graphs,)
    indptr: np.ndarray  # (nodes + 1,): the edges of a node
    neighbours: np.ndarray  # (edges,) nodes
    edge_lengths: np.ndarray  # (edges,) float64
    labels: np.ndarray  # (nodes,)
    edge_labels: np.ndarray  # (edges,)
    attributes: np.ndarray  # (nodes, d), NaN where a graph has none; d may be 0


def encode_graphs(X: Objects) -> Graphs:
    """Graphs as arrays, labels as numbers.

    >>> two = encode_graphs([(np.eye(1), ["a"]), (np.zeros((2, 2)), ["b", "a"])])
    >>> two.labels, two.starts
    (array([0, 1, 0]), array([0, 1]))
    """
    graphs = [as_graph(G, f"graph {i}") for i, G in enumerate(X)]
    matrices = [G.adjacency for G in graphs]
    sizes = np.array([A.shape[0] for A in matrices], np.int64)
    edges = np.array([A.nnz for A in matrices], np.int64)
    stops = np.cumsum(sizes)
    starts = stops - sizes
    ends = _joined([A.indptr[1:] for A in matrices], np.int64) + np.repeat(np.cumsum(edges) - edges, sizes)
    neighbours = _joined([A.indices for A in matrices], np.int64) + np.repeat(starts, edges)
    widths = {G.attributes.shape[1] for G in graphs if G.attributes is not None and G.n}
    if len(widths) > 1:
        raise InputError(f"nodes have attributes of different lengths, {sorted(widths)}: pass vectors of one")
    attributes = np.full((int(sizes.sum()), widths.pop() if widths else 0), np.nan)
    for G, start in zip(graphs, starts, strict=True):
        if G.attributes is not None and G.n:
            attributes[start : start + G.n] = G.attributes
    return Graphs(
        starts,
        stops,
        np.concatenate([[0], ends]),
        neighbours,
        _joined([A.data for A in matrices], np.float64),
        _codes(graphs, lambda G: G.labels, lambda G: G.n),
        _codes(graphs, lambda G: G.edge_labels, lambda G: G.adjacency.nnz),
        attributes,
    )


def _joined(parts: list[np.ndarray], dtype: Any) -> np.ndarray:
    return np.concatenate([np.empty(0, dtype), *parts]).astype(dtype)


def _codes(graphs: list[Graph], labels: Callable[[Graph], Any], size: Callable[[Graph], int]) -> np.ndarray:
    """Numbers for labels of nodes or edges; those of graphs without any are all alike."""
    if all(labels(G) is None for G in graphs):
        return np.zeros(sum(map(size, graphs)), np.int64)
    rows = (labels(G) if labels(G) is not None else [_NO_LABEL] * size(G) for G in graphs)
    return encode_labels(chain.from_iterable(rows))


_NO_LABEL = ("a node or an edge without a label",)


# --- files -----------------------------------------------------------------------------------------------


def read_tu(folder: Any) -> tuple[list[Graph], np.ndarray]:
    """Graphs and their classes from a folder (or a zip file of one) in the format of TU Dortmund.

    A folder NAME holds NAME_A.txt (edges, a pair of node numbers from 1 on a line), NAME_graph_indicator.txt,
    NAME_graph_labels.txt, and perhaps NAME_node_labels.txt, NAME_edge_labels.txt, NAME_node_attributes.txt.
    """
    files = _files(Path(folder))
    of_node = _table(files, "graph_indicator", folder).astype(np.int64).ravel()
    edges = _table(files, "A", folder).astype(np.int64).reshape(-1, 2) - 1
    y = _table(files, "graph_labels", folder)
    y = y.ravel() if y.size == y.shape[0] else y
    y = y.astype(np.int64) if (y == np.round(y)).all() else y
    node_labels, edge_labels, attributes = (
        _table(files, name, folder, optional=True)
        for name in ("node_labels", "edge_labels", "node_attributes")
    )
    if len(edges) and (edges.min() < 0 or edges.max() >= len(of_node)):
        raise InputError(
            f"{folder} has an edge to node {edges.max() + 1} of {len(of_node)}: it is not complete"
        )
    if (np.diff(of_node) < 0).any() or of_node.max(initial=0) > len(y):
        raise InputError(
            f"{folder}: the nodes of a graph must follow each other, and each graph must have a label"
        )
    bounds = np.searchsorted(of_node, np.arange(1, len(y) + 2))
    order = np.lexsort((edges[:, 1], edges[:, 0]))
    edges = edges[order]
    cuts = np.searchsorted(edges[:, 0], bounds)
    graphs = []
    for g in range(len(y)):
        nodes, part = slice(bounds[g], bounds[g + 1]), slice(cuts[g], cuts[g + 1])
        n = int(bounds[g + 1] - bounds[g])
        ends = edges[part] - bounds[g]
        indptr = np.concatenate([[0], np.cumsum(np.bincount(ends[:, 0], minlength=n))])
        graphs.append(
            Graph(
                sparse.csr_array((np.ones(len(ends)), ends[:, 1], indptr), shape=(n, n)),
                None if node_labels is None else _labels(node_labels[nodes]),
                None if edge_labels is None else _labels(edge_labels[order[part]]),
                None if attributes is None else attributes[nodes],
            )
        )
    return graphs, y


def _labels(table: np.ndarray) -> list[Any]:
    rows = table.astype(np.int64) if (table == np.round(table)).all() else table
    return rows[:, 0].tolist() if rows.shape[1] == 1 else list(map(tuple, rows.tolist()))


def _files(path: Path) -> dict[str, Callable[[], bytes]]:
    """Readers of the files, by what follows the name of the data set."""
    if path.is_dir():
        found = {file.name: file.read_bytes for file in path.iterdir()}
    elif path.is_file() and zipfile.is_zipfile(path):
        archive = zipfile.ZipFile(path)
        found = {Path(name).name: lambda name=name: archive.read(name) for name in archive.namelist()}  # type: ignore[misc]
    else:
        raise InputError(f"{path} is not a folder or a zip file: pass that of a data set in TU format")
    names = [name.removesuffix("_A.txt") for name in found if name.endswith("_A.txt")]
    if not names:
        raise InputError(f"{path} has no file NAME_A.txt: it is not a data set in TU format")
    return {name.removeprefix(f"{names[0]}_").removesuffix(".txt"): read for name, read in found.items()}


def _table(files: dict[str, Callable[[], bytes]], name: str, folder: Any, optional: bool = False) -> Any:
    """The numbers of a file, one row per line; None where it is not there."""
    if name not in files:
        if optional:
            return None
        raise InputError(f"{folder} has no file for {name}: it is not complete")
    try:
        return np.loadtxt(io.BytesIO(files[name]()), delimiter=",", ndmin=2)
    except ValueError as error:
        raise InputError(f"the file for {name} of {folder} does not hold numbers only: {error}") from None
