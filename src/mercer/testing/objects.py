"""Random objects for kernels that take them: sequences, sets, trees, graphs, with empty ones among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_LETTERS = list("mercerkernel")


def sequences(n: int, rng: np.random.Generator) -> list[str]:
    """Random words."""
    return ["".join(rng.choice(_LETTERS, size=rng.integers(1, 7))) for _ in range(n)]


def documents(n: int, rng: np.random.Generator) -> list[str]:
    """Sentences of short words."""
    words = ["to", "be", "or", "not", "that", "is", "the", "question", "To", "kernel"]
    return [" ".join(rng.choice(words, size=rng.integers(1, 9))) for _ in range(n)]


def bags(n: int, rng: np.random.Generator) -> list[list[str]]:
    """Lists of letters, in which some come twice."""
    return [rng.choice(_LETTERS, size=rng.integers(1, 7)).tolist() for _ in range(n)]


def vector_sets(n: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Tables of three columns and of one to five rows."""
    return [np.round(64 * rng.normal(size=(rng.integers(1, 6), 3))) / 64 for _ in range(n)]


def trees(n: int, rng: np.random.Generator) -> list[str]:
    """Random trees in brackets."""

    def tree(depth: int) -> str:
        label = str(rng.choice(["S", "NP", "VP"]))
        if depth == 0 or rng.random() < 0.3:
            return f"({label} {rng.choice(['dog', 'cat', 'bites'])})"
        return f"({label} {' '.join(tree(depth - 1) for _ in range(rng.integers(1, 4)))})"

    return [tree(3) for _ in range(n)]


def graphs(n: int, rng: np.random.Generator) -> list[tuple[np.ndarray, list[str]]]:
    """Adjacency matrices of undirected graphs, and labels of their nodes."""
    found = []
    for _ in range(n):
        size = int(rng.integers(1, 7))
        upper = np.triu(rng.random((size, size)) < 0.5, 1)
        found.append(((upper | upper.T).astype(int), rng.choice(["C", "N", "O"], size=size).tolist()))
    return found


#: what ``Kernel.objects`` may say
OBJECTS: dict[str | None, Callable[[int, np.random.Generator], list[Any]]] = {
    None: sequences,
    "sequences": sequences,
    "documents": documents,
    "sets": bags,
    "vector sets": vector_sets,
    "trees": trees,
    "graphs": graphs,
}
