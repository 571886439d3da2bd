"""Kernels on graphs: mercer against GraKeL, the same matrices; and the error of WL + SVC, nested.

Run with ``python -m benchmarks.graphs [gram] [accuracy]``. GraKeL is optional: without it only mercer's
times are shown. Accuracy is that of ten folds, in each of which the rounds of refinement, the base kernel,
whether labels of edges count, and C are chosen by folds of the training graphs alone, as is usual for these
sets; GraKeL's kernel goes through the same folds with scikit-learn's machine and the choices that it has.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sklearn.svm
from joblib import Parallel, delayed
from sklearn.model_selection import StratifiedKFold

from benchmarks._data import FOLDER
from benchmarks._timing import Table, interleaved, write
from mercer import SVC, NodeLabels, Precomputed, ShortestPath, WeisfeilerLehman, config
from mercer.kernels.graphs.many import read_tu
from mercer.runtime.config import thread_count

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


# --- accuracy --------------------------------------------------------------------------------------------

ROUNDS = (1, 2, 4, 6)
PENALTIES = (1.0, 3.0, 10.0, 30.0)
Choices = dict[tuple, Any]  # normalised Gram matrices


def our_choices(X: list) -> Choices:
    """Refined labels compared by products of counts or by assignment, with labels of edges or without."""
    bases = (NodeLabels(), NodeLabels(compare="minimum"))
    inputs = [[(G.adjacency, G.labels) for G in X], *([X] if X[0].edge_labels is not None else [])]
    return {
        (h, b, i): Precomputed(WeisfeilerLehman(h, base).normalized()(graphs))
        for h in ROUNDS
        for b, base in enumerate(bases)
        for i, graphs in enumerate(inputs)
    }


def their_choices(X: list) -> Choices:
    from grakel import Graph
    from grakel.kernels import VertexHistogram
    from grakel.kernels import WeisfeilerLehman as TheirWL

    graphs = [Graph(G.adjacency.toarray(), dict(enumerate(G.labels))) for G in X]
    found = {}
    for h in ROUNDS:
        kernel = TheirWL(n_iter=h, base_graph_kernel=VertexHistogram, normalize=True)
        found[h,] = kernel.fit_transform(graphs)
    return found


def our_path(K: Precomputed, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> list[np.ndarray]:
    """Predictions for the test graphs, one per penalty."""
    models = SVC(kernel=K).path(train, y[train], PENALTIES)
    return [model.predict(test) for model in models]


def their_path(K: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> list[np.ndarray]:
    own, new = K[np.ix_(train, train)], K[np.ix_(test, train)]
    return [sklearn.svm.SVC(kernel="precomputed", C=C).fit(own, y[train]).predict(new) for C in PENALTIES]


def nested(y: np.ndarray, choices: Choices, menus: list[list], path: Callable, seed: int, inner: int) -> list:
    """Accuracy in per cent over ten folds, for each menu of choices."""
    outer = StratifiedKFold(10, shuffle=True, random_state=seed).split(y, y)
    tasks = (delayed(fold)(y, choices, menus, path, seed, inner, *parts) for parts in outer)
    return [100 * sum(right) / len(y) for right in zip(*Parallel(thread_count())(tasks), strict=True)]


def fold(
    y: Any, choices: Choices, menus: list, path: Callable, seed: int, inner: int, train: Any, test: Any
) -> list:
    """How many of the test graphs are right, for each menu."""
    right = {}
    with config(threads=1):  # folds have processes of their own
        splits = StratifiedKFold(inner, shuffle=True, random_state=seed).split(train, y[train])
        parts = [(train[a], train[b]) for a, b in splits]
        for name, K in choices.items():
            hits = [[(found == y[b]).sum() for found in path(K, y, a, b)] for a, b in parts]
            right[name] = np.sum(hits, axis=0)
        totals = []
        for menu in menus:
            most = max(max(right[name]) for name in menu)
            name = min(name for name in menu if max(right[name]) == most)  # of equals, the fewest rounds
            found = path(choices[name], y, train, test)[int(np.argmax(right[name]))]  # and the smallest C
            totals.append(int((found == y[test]).sum()))
    return totals


def accuracy() -> Table:
    table = Table(
        "WL + SVC, ten folds, nested, the same folds for all: accuracy in %, mean ± spread over seeds",
        "data",
        "seeds",
        "mercer, any base",
        "mercer, GraKeL's choices",
        "GraKeL + scikit-learn",
        "bar",
        "mercer, seconds",
    )
    for name, seeds, inner in (("MUTAG", 3, 5), ("PTC_MR", 3, 5), ("NCI1", 1, 3)):
        X, y = tu(name)
        start = time.perf_counter()
        choices = our_choices(X)
        menus = [list(choices), [(h, 0, 0) for h in ROUNDS]]
        found = [nested(y, choices, menus, our_path, seed, inner) for seed in range(seeds)]
        cells = [spread(values) for values in zip(*found, strict=True)]
        seconds = time.perf_counter() - start
        try:
            choices = their_choices(X)
            menu = [list(choices)]
            cells.append(spread([nested(y, choices, menu, their_path, s, inner)[0] for s in range(seeds)]))
        except ImportError:
            cells.append("–")
        table.add(name, seeds, *cells, PEER_ACCURACY[name], seconds)
    return table


def spread(values: Sequence[float]) -> str:
    return f"{np.mean(values):.1f} ± {np.std(values):.1f}"


if __name__ == "__main__":
    parts = {"gram": grams, "accuracy": accuracy}
    chosen = [part for part in sys.argv[1:] if part in parts] or list(parts)
    write("graphs" if len(chosen) == len(parts) else "_graphs", *(parts[part]() for part in chosen))
