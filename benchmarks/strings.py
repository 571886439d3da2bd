"""Kernels on strings: against scikit-learn's n-grams and others, and the error of SVMs on them, nested.

Run with ``python -m benchmarks.strings [gram] [proteins] [promoters]``. fastsk, MKLpy and strkernel are
optional: where one is not installed its time is that of earlier runs, on a machine like this one, and marked
so. Parameters are chosen by folds of the training strings alone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from itertools import chain

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from benchmarks._objects import promoters, proteins
from benchmarks._timing import Table, interleaved, write
from mercer import SVC, GappedKmer, Kernel, Mismatch, Spectrum, Subsequence, WeightedDegree

#: seconds of peers where they are not installed
EARLIER = {"fastsk": 0.43, "strkernel": 2.4, "MKLpy": 0.46}

Folds = Callable[[np.ndarray, int], Iterable[tuple[np.ndarray, np.ndarray]]]


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


def nested(
    kernels: dict[str, np.ndarray],
    y: np.ndarray,
    penalties: list[float],
    folds: Folds,
    inner: Folds,
    seeds: int,
) -> tuple[list[float], dict[str, int]]:
    """Accuracy in %, one for each seed, and how often each kernel was chosen by the training folds."""
    found, chosen = [], dict.fromkeys(kernels, 0)
    for seed in range(seeds):
        right = 0
        for train, test in folds(np.arange(len(y)), seed):
            scores = {
                (name, C): held_out(K[np.ix_(train, train)], y[train], C, inner(train, seed))
                for name, K in kernels.items()
                for C in penalties
            }
            name, C = max(scores, key=lambda key: scores[key])  # the first of the best
            chosen[name] += 1
            K = kernels[name]
            model = SVC(kernel="precomputed", C=C).fit(K[np.ix_(train, train)], y[train])
            right += int((model.predict(K[np.ix_(test, train)]) == y[test]).sum())
        found.append(100 * right / len(y))
    return found, chosen


def held_out(K: np.ndarray, y: np.ndarray, C: float, folds: Iterable[tuple[np.ndarray, np.ndarray]]) -> float:
    right = 0
    for train, test in folds:
        model = SVC(kernel="precomputed", C=C).fit(K[np.ix_(train, train)], y[train])
        right += int((model.predict(K[np.ix_(test, train)]) == y[test]).sum())
    return right / len(y)


def first_letters(X: list[str]) -> list[str]:
    """The end of a protein that is made first, where the address is that a cell sends it to."""
    return [x[:60] for x in X]


def protein_errors() -> Table:
    table = accuracies("Proteins: where they are found, ten folds, nested")
    X, y = proteins()

    def folds(index: np.ndarray, seed: int, n: int = 10) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        return StratifiedKFold(n, shuffle=True, random_state=seed).split(index, y[index])

    anywhere = {f"({g}, {m})": GappedKmer(g, m).normalized() for g, m in ((3, 1), (5, 3), (6, 3), (7, 4))}
    ends = {f"({g}, {m})": GappedKmer(g, m).normalized() @ first_letters for g, m in ((4, 2), (6, 4))}
    both = {f"{a} + ends {b}": anywhere[a] + ends[b] for a in anywhere for b in ends}
    for title, kernels in (("gapped words", anywhere), ("gapped words, also of the first 60 letters", both)):
        grams = {name: kernel(X) for name, kernel in kernels.items()}
        found = nested(grams, y, [1.0, 10.0], folds, lambda train, seed: folds(train, seed, 5), seeds=2)
        row(table, title, *found, "fastsk 84.6, n-grams 81.3", 85.0)
    return table


def promoter_errors() -> Table:
    table = accuracies("Promoters: ten folds grouped by common words of 15 letters, nested")
    X, y, groups = promoters()

    def folds(index: np.ndarray, seed: int) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        split = StratifiedGroupKFold(10, shuffle=True, random_state=seed)
        return split.split(index, y[index], groups[index])

    def twice(index: np.ndarray, seed: int) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        """Two ways to split, because a hundred strings say little."""
        return chain(folds(index, seed), folds(index, seed + 1000))

    grams = {f"k = {k}": WeightedDegree(k).normalized()(X) for k in (1, 2, 3, 4, 5, 6, 8)}
    found = nested(grams, y, [1.0, 3.0], folds, twice, seeds=3)
    row(table, "words at their places", *found, "fastsk 81.9, one-hot and Gaussian 92.5", 93.0)
    return table


def accuracies(title: str) -> Table:
    return Table(title, "kernel", "accuracy %", "lowest … highest of seeds", "bar", "peers %", "chosen")


def row(table: Table, title: str, found: list[float], chosen: dict[str, int], peers: str, bar: float) -> None:
    often = sorted(chosen.items(), key=lambda item: -item[1])[:3]
    mean = float(np.mean(found))
    table.add(
        title,
        f"{mean:.1f}" if mean >= bar else f"**{mean:.1f}**",
        f"{min(found):.1f} … {max(found):.1f}",
        f"≥ {bar:g}",
        peers,
        ", ".join(f"{name}: {times}" for name, times in often if times),
    )


if __name__ == "__main__":
    parts = {"gram": grams, "proteins": protein_errors, "promoters": promoter_errors}
    chosen = [part for part in sys.argv[1:] if part in parts] or list(parts)
    write("strings" if len(chosen) == len(parts) else "_strings", *(parts[part]() for part in chosen))
