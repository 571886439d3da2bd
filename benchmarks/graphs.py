"""Kernels on graphs: mercer against GraKeL, the same matrices; and the error of WL + SVC, nested.

Run with ``python -m benchmarks.graphs [gram] [accuracy]``. GraKeL is optional: without it only mercer's
times are shown. Accuracy is that of ten folds, in each of which the rounds of refinement and C are chosen by
five folds of the training graphs alone, as is usual for these sets.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from sklearn.model_selection import StratifiedKFold

from benchmarks._data import FOLDER
from benchmarks._timing import Table, interleaved, write
from mercer import SVC, ShortestPath, WeisfeilerLehman
from mercer.kernels.graphs import read_tu

PEER_ACCURACY = {"MUTAG": 85.4, "PTC_MR": 62.7, "NCI1": 84.6}


def tu(name: str) -> tuple[list, np.ndarray]:
    return read_tu(FOLDER / "structured" / f"{name}.zip")


def grams() -> Table:
    table = Table(
        "Gram matrices of graphs, seconds",
        "kernel",
        "graphs",
        "mercer",
        "GraKeL",
        "GraKeL ÷ mercer",
        "largest relative difference",
    )
    try:
        from grakel import Graph
        from grakel.kernels import ShortestPath as TheirPath
        from grakel.kernels import VertexHistogram
        from grakel.kernels import WeisfeilerLehman as TheirWL
    except ImportError:
        Graph = None  # noqa: N806
    for name in ("MUTAG", "NCI1"):
        X, _ = tu(name)
        cases = {"Weisfeiler-Lehman, 5 rounds": WeisfeilerLehman(5), "shortest path": ShortestPath()}
        for title, kernel in cases.items():
            if Graph is None:
                (ours,) = interleaved(lambda kernel=kernel, X=X: kernel(X), repeats=3)
                table.add(title, f"{name}, {len(X)}", ours, "–", "–", "–")
                continue
            theirs = [Graph(G.adjacency.toarray(), dict(enumerate(G.labels))) for G in X]

            def peer(title: str = title, theirs: list = theirs) -> np.ndarray:
                kind = (
                    TheirWL(n_iter=5, base_graph_kernel=VertexHistogram)
                    if title.startswith("Weis")
                    else TheirPath()
                )
                return kind.fit_transform(theirs)

            # GraKeL's graphs know no labels of edges
            plain = [(G.adjacency, G.labels) for G in X]
            K, wanted = kernel(plain), peer()
            ours, its = interleaved(lambda kernel=kernel, plain=plain: kernel(plain), peer, repeats=3)
            difference = float((np.abs(K - wanted) / np.maximum(np.abs(wanted), 1.0)).max())
            table.add(title, f"{name}, {len(X)}", ours, its, its / ours, f"{difference:.0e}")
    return table


def nested(name: str, seeds: int) -> tuple[float, float, float]:
    """Mean and spread of the accuracy over repetitions, and seconds."""
    X, y = tu(name)
    rounds, penalties = range(7), [1e-1, 1.0, 10.0, 100.0, 1000.0]
    start = time.perf_counter()
    kernels = [WeisfeilerLehman(h).normalized()(X) for h in rounds]
    found = []
    for seed in range(seeds):
        right = 0
        for train, test in StratifiedKFold(10, shuffle=True, random_state=seed).split(kernels[0], y):
            best = max(
                (inner(kernels[h][np.ix_(train, train)], y[train], C, seed), -h, -C)
                for h in rounds
                for C in penalties
            )
            K, C = kernels[-best[1]], -best[2]
            model = SVC(kernel="precomputed", C=C).fit(K[np.ix_(train, train)], y[train])
            right += int((model.predict(K[np.ix_(test, train)]) == y[test]).sum())
        found.append(100 * right / len(y))
    return float(np.mean(found)), float(np.std(found)), time.perf_counter() - start


def inner(K: np.ndarray, y: np.ndarray, C: float, seed: int) -> float:
    right = 0
    for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(K, y):
        model = SVC(kernel="precomputed", C=C).fit(K[np.ix_(train, train)], y[train])
        right += int((model.predict(K[np.ix_(test, train)]) == y[test]).sum())
    return right / len(y)


def accuracy() -> Table:
    table = Table(
        "WL + SVC, ten folds, nested",
        "data",
        "accuracy %",
        "spread over seeds",
        "GraKeL + SVC %",
        "seconds",
    )
    for name, seeds in (("MUTAG", 5), ("PTC_MR", 5), ("NCI1", 1)):
        mean, spread, seconds = nested(name, seeds)
        table.add(name, f"{mean:.1f}", f"{spread:.1f}", PEER_ACCURACY[name], seconds)
    return table


if __name__ == "__main__":
    parts = {"gram": grams, "accuracy": accuracy}
    chosen = [part for part in sys.argv[1:] if part in parts] or list(parts)
    write("graphs" if len(chosen) == len(parts) else "_graphs", *(parts[part]() for part in chosen))
