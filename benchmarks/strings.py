"""Kernels on strings: against scikit-learn's n-grams and others, and the error of SVMs on them, nested.

Run with ``python -m benchmarks.strings [gram] [proteins] [promoters]``. fastsk, MKLpy and strkernel are
optional: where one is not installed its time is that of earlier runs, on a machine like this one, and marked
so. What is chosen is chosen by folds of the training strings alone, anew in each fold and for each seed; the
errors of a row are those of all seeds, each of them one way to cut the strings into folds.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn import svm
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from benchmarks._objects import promoters, proteins
from benchmarks._timing import Table, interleaved, write
from mercer import SVC, GappedKmer, Kernel, Mismatch, Spectrum, Subsequence, WeightedDegree, config

#: seconds of peers where they are not installed
EARLIER = {"fastsk": 0.43, "strkernel": 2.4, "MKLpy": 0.46}


def grams() -> Table:
    table = Table(
        "Gram matrices of strings, seconds; ratios with their bars, in bold where one is missed",
        "kernel",
        "strings",
        "mercer",
        "peer",
        "seconds",
        "peer ÷ mercer",
        "largest relative difference",
    )
    X, _ = proteins()
    P, *_ = promoters()

    def n_grams() -> np.ndarray:
        counts = CountVectorizer(analyzer="char", ngram_range=(4, 4), lowercase=False).fit_transform(X)
        return (counts @ counts.T).toarray()

    difference = np.abs(Spectrum(4)(X) - n_grams()).max()
    ours, theirs = interleaved(lambda: Spectrum(4)(X), n_grams, repeats=5)
    add(
        table,
        "spectrum, k = 4",
        "632 proteins",
        ours,
        "scikit-learn n-grams",
        theirs,
        2.0,
        f"{difference:.0e}",
    )
    compare(
        table, "gapped words, g = 6, m = 3", "632 proteins", GappedKmer(6, 3).normalized(), X, "fastsk", 1.0
    )
    compare(table, "mismatch (5, 1)", "106 promoters", Mismatch(5, 1).normalized(), P, "strkernel", 50.0)
    compare(table, "subsequence of 3", "106 promoters", Subsequence(3, 1.0), P, "MKLpy", 20.0)
    start = time.perf_counter()
    Subsequence(3, 0.5)(X)
    table.add("subsequence of 3", "632 proteins", time.perf_counter() - start, "–", "(≤ 60)", "–", "–")
    return table


def compare(table: Table, title: str, what: str, kernel: Kernel, X: list[str], peer: str, bar: float) -> None:
    """With a peer that may be there; if not, with the time it took earlier."""
    run = PEERS[peer](X)
    if run is None:
        (ours,) = interleaved(lambda: kernel(X), repeats=7)
        add(table, title, what, ours, f"{peer}, earlier", EARLIER[peer], bar, "–")
        return
    wanted = run()
    difference = np.abs(kernel(X) - wanted).max() / np.abs(wanted).max()
    ours, theirs = interleaved(lambda: kernel(X), run, repeats=5)
    add(table, title, what, ours, peer, theirs, bar, f"{difference:.0e}")


def add(
    table: Table, title: str, what: str, ours: float, peer: str, its: float, bar: float, gap: str
) -> None:
    ratio = f"{its / ours:.1f}" if its / ours >= bar else f"**{its / ours:.1f}**"
    table.add(title, what, ours, peer, its, f"{ratio} (≥ {bar:g})", gap)


def _fastsk(X: list[str]) -> Callable[[], np.ndarray] | None:
    try:
        from fastsk import FastSK
    except ImportError:
        return None
    letters = {letter: i + 1 for i, letter in enumerate(sorted(set("".join(X))))}
    numbers = [[letters[letter] for letter in x] for x in X]

    def run() -> np.ndarray:
        kernel = FastSK(g=6, m=3, t=2, approx=False)
        kernel.compute_train(numbers)
        return np.array(kernel.get_train_kernel())

    return run


def _mklpy(X: list[str]) -> Callable[[], np.ndarray] | None:
    try:
        from MKLpy.metrics.pairwise import fixed_length_subsequences_kernel
    except ImportError:
        return None
    return lambda: np.asarray(fixed_length_subsequences_kernel(X, p=3))  # it knows no decay


def _strkernel(X: list[str]) -> Callable[[], np.ndarray] | None:
    try:
        from strkernel.mismatch_kernel import MismatchKernel, preprocess
    except ImportError:
        return None
    return lambda: MismatchKernel(l=4, k=5, m=1).get_kernel(preprocess([x.upper() for x in X])).kernel


PEERS = {"fastsk": _fastsk, "MKLpy": _mklpy, "strkernel": _strkernel}


# --- errors ------------------------------------------------------------------------------------------

Folds = list[tuple[np.ndarray, np.ndarray]]

#: other ways to cut the folds than those that were looked at when the kernels were written down
FIRST_SEED = 100


@dataclass(frozen=True)
class Task:
    """Strings by the matrices of some kernels, and how they are cut; groups of strings stay together."""

    kernels: dict[str, np.ndarray]
    y: np.ndarray
    penalties: tuple[float, ...]
    groups: np.ndarray | None = None
    inner: int = 10
    machine: Any = SVC

    def folds(self, index: np.ndarray, n: int, seed: int) -> Folds:
        """Positions in index."""
        if self.groups is None:
            split = StratifiedKFold(n, shuffle=True, random_state=seed)
            return list(split.split(index, self.y[index]))
        grouped = StratifiedGroupKFold(n, shuffle=True, random_state=seed)
        return list(grouped.split(index, self.y[index], self.groups[index]))

    def right(self, name: str, C: float, train: np.ndarray, test: np.ndarray) -> int:
        """How many of the test strings are recognised."""
        K, y = self.kernels[name], self.y
        model = self.machine(kernel="precomputed", C=C).fit(K[np.ix_(train, train)], y[train])
        return int((model.predict(K[np.ix_(test, train)]) == y[test]).sum())

    def choose(self, train: np.ndarray, seed: int) -> tuple[str, float]:
        """The first kernel and C of those that are right most often in folds of the training strings."""
        cuts = [(train[a], train[b]) for a, b in self.folds(train, self.inner, seed)]
        scores = {
            (name, C): sum(self.right(name, C, *cut) for cut in cuts)
            for name in self.kernels
            for C in self.penalties
        }
        return max(scores, key=lambda key: scores[key])

    def nested(self, seed: int) -> tuple[float, list[str]]:
        """Accuracy in %, ten folds, and which kernels were chosen."""
        right, chosen = 0, []
        with config(memory="1GiB"):  # what is free is not asked for anew by every small fit
            for train, test in self.folds(np.arange(len(self.y)), 10, seed):
                name, C = self.choose(train, seed)
                chosen.append(name)
                right += self.right(name, C, train, test)
        return 100 * right / len(self.y), chosen


def add_accuracy(table: Table, title: str, task: Task, seeds: int, peers: str, bar: float | None) -> None:
    """A row of the table; seeds are gone through by two processes."""
    with ProcessPoolExecutor(2) as processes:
        results = list(processes.map(task.nested, range(FIRST_SEED, FIRST_SEED + seeds)))
    found = np.array([accuracy for accuracy, _ in results])
    often = Counter(name for _, names in results for name in names).most_common(3)
    mean = f"{found.mean():.1f}"
    table.add(
        title,
        mean if bar is None or found.mean() >= bar else f"**{mean}**",
        f"{found.std(ddof=1):.1f}",
        f"{found.min():.1f} … {found.max():.1f}",
        "–" if bar is None else f"≥ {bar:g}",
        peers,
        ", ".join(f"{name}: {times}" for name, times in often) if len(task.kernels) > 1 else "–",
    )


def accuracies(title: str, seeds: int) -> Table:
    columns = ("accuracy %", "deviation", "lowest … highest", "bar", "peers %", "chosen most often")
    return Table(f"{title}; mean and spread over {seeds} ways to cut the folds", "kernel", *columns)


def letters(X: list[str], first: int, stop: int) -> list[str]:
    return [x[first:stop] for x in X]


def protein_errors(seeds: int = 4) -> Table:
    """Of gapped words anywhere, and also in the first letters of a protein, where its address is."""
    table = accuracies("Proteins: found outside of cells or in mitochondria, ten folds, nested", seeds)
    X, y = proteins()
    address = partial(letters, first=0, stop=60)
    anywhere = {f"({g}, {m})": GappedKmer(g, m).normalized() for g, m in ((3, 1), (5, 3), (6, 3), (7, 4))}
    ends = {f"({g}, {m})": GappedKmer(g, m).normalized() @ address for g, m in ((4, 2), (6, 4))}
    K = {name: kernel(X) for name, kernel in anywhere.items()}
    L = {name: kernel(X) for name, kernel in ends.items()}
    rows = {
        "gapped words, one (g, m)": K,
        "gapped words, the mean of all (g, m)": {"mean": sum(K.values()) / len(K)},
        "one (g, m), and one of the first 60 letters": {f"{a} + {b}": K[a] + L[b] for a in K for b in L},
    }
    for title, kernels in rows.items():
        task = Task(kernels, y, (1.0, 10.0), inner=5)
        add_accuracy(table, title, task, seeds, "fastsk 84.6, n-grams 81.3", 85.0)
    return table


def promoter_errors(seeds: int = 10) -> Table:
    """Of words at their places.

    In E. coli the enzyme that reads DNA recognises two words of six letters that end about 31 and 7 letters
    before the place where reading starts (the -35 and -10 boxes). ``boxes`` looks there, with four letters to
    either side: knowledge from textbooks, not from these strings, which begin 50 letters before the start.
    """
    table = accuracies("Promoters: ten folds grouped by common words of 15 letters, nested", seeds)
    X, y, groups = promoters()
    places = sum(WeightedDegree(k, s).normalized() for k in (1, 2, 3, 4, 6, 8) for s in (0, 1, 2, 4)) / 24
    minus_35, minus_10 = partial(letters, first=10, stop=24), partial(letters, first=34, stop=48)
    boxes = (1 + places @ minus_35) * (1 + places @ minus_10) / 4
    S, M = places(X), ((places + boxes) / 2)(X)

    def gaussian(K: np.ndarray) -> dict[str, np.ndarray]:  # of K with ones on its diagonal
        return {f"s = {s:g}": np.exp(s * (K - 1)) for s in (0.5, 1.0, 2.0, 4.0, 8.0)}

    one_hot = np.array([[letter == a for letter in x for a in "acgt"] for x in X], float)
    rows: dict[str, tuple[dict[str, np.ndarray], Any, float | None]] = {
        "words at their places": ({"S": S}, SVC, None),
        "Gaussian of these": (gaussian(S), SVC, None),
        "words at their places, and at the two boxes": ({"M": M}, SVC, 93.0),
        "Gaussian of these, too": (gaussian(M), SVC, 93.0),
        "one-hot and Gaussian, scikit-learn": (gaussian(one_hot @ one_hot.T / 57), svm.SVC, None),
    }
    for title, (kernels, machine, bar) in rows.items():
        task = Task(kernels, y, (1.0, 3.0, 10.0, 100.0), groups, machine=machine)
        add_accuracy(table, title, task, seeds, "fastsk 81.9, one-hot and Gaussian 92.5", bar)
    return table


if __name__ == "__main__":
    parts = {"gram": grams, "proteins": protein_errors, "promoters": promoter_errors}
    chosen = [part for part in sys.argv[1:] if part in parts] or list(parts)
    write("strings" if len(chosen) == len(parts) else "_strings", *(parts[part]() for part in chosen))
