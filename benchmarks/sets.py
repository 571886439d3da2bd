"""Kernels on sets: times against SciPy and NumPy, the colours of flowers, and digits that may move.

Run with ``python -m benchmarks.sets [intersection] [vectors] [flowers] [digits]``. The images of flowers need
Pillow. Errors are means over several splits; parameters are chosen on a validation part (flowers) or by
cross-validation on the training images (digits), never on test images.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold

from benchmarks import _objects
from benchmarks._timing import Table, interleaved, write
from mercer import (
    SVC,
    ChiSquared,
    Gaussian,
    Intersection,
    Invariant,
    Min,
    Precomputed,
    SetKernel,
    bends,
    compositions,
    config,
    shifts,
    slants,
    strokes,
)

flowers = cache(_objects.flowers)


def ratio(theirs: float, ours: float, bar: float) -> str:
    value = theirs / ours
    return f"{value:.1f} (≥ {bar:g})" if value >= bar else f"**{value:.1f}** (≥ {bar:g})"


# --- times ------------------------------------------------------------------------------------------


def intersection() -> Table:
    table = Table(
        "Intersection of 1360 histograms of 4096 colours: seconds of the Gram matrix",
        "method",
        "seconds",
        "÷ mercer",
        "largest difference",
    )
    counts = flowers()[0]
    X = counts / counts.sum(axis=1, keepdims=True)

    def by_distance() -> np.ndarray:  # Σ min(a, b) = (Σa + Σb - Σ|a - b|) / 2
        total = X.sum(axis=1)
        return (total[:, None] + total[None, :] - cdist(X, X, "cityblock")) / 2

    ours, dense, peer = interleaved(lambda: Intersection()(X), lambda: Min()(X), by_distance, repeats=3)
    K, wanted = Intersection()(X), by_distance()
    table.add("mercer.Intersection", ours, "", f"{np.abs(K - wanted).max():.0e}")
    table.add("mercer.Min", dense, dense / ours, f"{np.abs(Min()(X) - wanted).max():.0e}")
    table.add("scipy cdist", peer, ratio(peer, ours, 20), "")
    return table


def vectors(n: int = 2000, few: int = 600) -> Table:
    table = Table(
        f"SetKernel(Gaussian) on {n} sets of 20 to 200 vectors in ℝ¹⁶: seconds of the Gram matrix. Loops "
        f"are measured on {few} random pairs of sets (the last one on two rows of sets) and scaled by the "
        "pairs of elements",
        "method",
        "seconds",
        "÷ float64",
        "÷ float32",
        "largest relative difference",
    )
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(rng.integers(20, 201), 16)) for _ in range(n)]
    sizes = np.array([len(A) for A in X])
    kernel = SetKernel(Gaussian(sigma=4.0))
    seconds, values = {}, {}
    for dtype in ("float64", "float32"):
        with config(dtype=dtype):
            kernel(X[:10])
            start = time.perf_counter()
            values[dtype] = kernel(X)
            seconds[dtype] = time.perf_counter() - start
    K = values["float64"]
    table.add("mercer.SetKernel", seconds["float64"], "", "", "")
    table.add("mercer.SetKernel, float32", seconds["float32"], "", "", f"{_gap(values['float32'], K):.0e}")

    def differences(A: np.ndarray, B: np.ndarray) -> float:
        return float(np.exp(-((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2) / 32).sum())

    def products(A: np.ndarray, B: np.ndarray) -> float:
        D = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2 * A @ B.T
        return float(np.exp(-D / 32).sum())

    pairs = rng.integers(0, n, (few, 2))
    half = ((sizes.sum() ** 2 + (sizes**2).sum()) / 2).item()

    def add(title: str, used: float, scale: float, gap: float) -> None:
        cells = [ratio(used * scale, seconds[dtype], 20) for dtype in seconds]
        table.add(title, used * scale, *cells, f"{gap:.0e}")

    for title, value in (("all differences", differences), ("‖a‖² + ‖b‖² - 2ab, exp, sum", products)):
        start = time.perf_counter()
        found = np.array([value(X[i], X[j]) for i, j in pairs])
        used = (time.perf_counter() - start) / (sizes[pairs[:, 0]] * sizes[pairs[:, 1]]).sum()
        gap = _gap(found, K[pairs[:, 0], pairs[:, 1]])
        add(f"NumPy loop over all pairs: {title}", used, float(sizes.sum()) ** 2, gap)
        add("the same, over pairs i ≥ j", used, half, gap)

    elements, first = np.concatenate(X), np.cumsum(sizes) - sizes
    squares = np.einsum("ij,ij->i", elements, elements)
    rows = [n // 2, n - 1]
    for _ in range(2):  # the first time is spent on new memory
        start = time.perf_counter()
        for i in rows:
            end = first[i] + sizes[i]
            D = X[i] @ elements[:end].T
            D -= squares[first[i] : end, None] / 2
            D -= squares[:end] / 2
            D /= 16
            found = np.add.reduceat(np.exp(D, out=D).sum(axis=0), first[: i + 1])
        used = (time.perf_counter() - start) / sum(int(sizes[i] * (first[i] + sizes[i])) for i in rows)
    add("one product per set with those before it, np.add.reduceat", used, half, _gap(found, K[rows[-1]]))
    return table


def _gap(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.abs(found / wanted - 1).max())


# --- errors -----------------------------------------------------------------------------------------


def colours(splits: int = 5) -> Table:
    table = Table(
        f"Kinds of flowers by their colours alone, 17 classes, 40 training, 20 validation and 20 test images "
        f"of each, {splits} splits: error in per cent; C, widths and powers chosen on the validation images",
        "kernel",
        "validation error",
        "test error",
        "bar",
    )
    counts, y = flowers()
    X = counts / counts.sum(axis=1, keepdims=True)
    smooth = {
        width: np.stack([gaussian_filter(cube, width) for cube in X.reshape(-1, 16, 16, 16)]).reshape(X.shape)
        for width in (0.5, 0.8)
    }
    powers = (1.0, 0.5, 0.25)
    cases: dict[str, tuple[float | None, list[Callable[[], np.ndarray]]]] = {
        "χ²": (None, [lambda g=g: ChiSquared(gamma=g)(X) for g in (0.5, 1.0, 2.0)]),
        "intersection": (None, [lambda: Intersection()(X)]),
        "intersection of powers": (38.0, [lambda p=p: Intersection().normalized()(X**p) for p in powers]),
        "the same, with neighbouring colours": (
            38.0,
            [lambda p=p, Z=Z: Intersection().normalized()(Z**p) for p in powers for Z in smooth.values()],
        ),
    }
    for title, (bar, makers) in cases.items():
        grams = [make() for make in makers]
        chosen = [_chosen(grams, y, seed) for seed in range(splits)]
        validation, test = 100 * np.mean(chosen, axis=0)
        mark = "" if bar is None else f"≤ {bar:g}" + ("" if test <= bar else ", **missed**")
        table.add(title, f"{validation:.1f}", f"{test:.1f}", mark)
    return table


def _chosen(grams: list[np.ndarray], y: np.ndarray, seed: int) -> tuple[float, float]:
    """Errors on validation and test images, of what is best on the first."""
    train, validation, test = _objects.parts_per_class(y, (40, 20, 20), seed)
    found = []
    for K in grams:
        for C in (1.0, 10.0, 100.0):
            model = SVC(kernel=Precomputed(K), C=C).fit(train, y[train])
            found.append(tuple(1 - model.score(part, y[part]) for part in (validation, test)))
    return min(found, key=lambda errors: errors[0])  # type: ignore[return-value]


def digits(splits: int = 10) -> Table:
    """The transformations on offer were found by trying many on these images; the choice among them is made
    for every split anew, on its training images alone.
    """
    table = Table(
        f"scikit-learn's digits, 500 training and 1297 test images, {splits} splits: error in per cent; σ "
        "and C, and in the last row the transformations, chosen by five folds of the training images, thrice",
        "kernel",
        "error in the folds",
        "test error",
        "÷ plain",
        "seconds",
    )
    X, y = load_digits(return_X_y=True)
    moves, slanted = shifts((8, 8), 1.5), slants((8, 8), 0.3, cubic=True)
    changed = [*slanted, *bends((8, 8), 1.0, cubic=True), *strokes((8, 8), 0.3)]
    families = {
        "shifts to eight sides": moves,
        "shifts, slanted": compositions(moves, slanted),
        "shifts; slanted, bent, or with other strokes": compositions(moves, changed),
    }
    plain = [_in_folds(Gaussian(sigma=sigma)(X), y, splits) for sigma in (17.0, 20.0, 24.0, 29.0)]
    error = _add_digits(table, "Gaussian", plain, None, 0.0)
    found = []
    for title, transformations in families.items():
        start = time.perf_counter()
        kernels = [Invariant(Gaussian(sigma=sigma), transformations) for sigma in (15.0, 18.0, 22.0)]
        mine = [_in_folds(kernel.normalized()(X), y, splits) for kernel in kernels]
        _add_digits(table, title, mine, error, time.perf_counter() - start)
        found += mine
    _add_digits(table, "chosen among these by the folds", found, error, 0.0)
    return table


def _in_folds(K: np.ndarray, y: np.ndarray, splits: int) -> np.ndarray:  # (values of C, splits, 2)
    """Errors in the folds and on test images, of a kernel with some C.

    A kernel is a function of two images: that values of test images are computed beforehand tells the
    choice nothing.
    """
    return np.array([[_errors(K, y, seed, C) for seed in range(splits)] for C in (2.0, 10.0)])


def _errors(K: np.ndarray, y: np.ndarray, seed: int, C: float) -> tuple[float, float]:
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:500], order[500:]
    kernel = Precomputed(K)

    def error(inner: np.ndarray, outer: np.ndarray) -> float:
        return 1 - SVC(kernel=kernel, C=C).fit(inner, y[inner]).score(outer, y[outer])

    folds = [
        error(train[inner], train[outer])
        for repeat in range(3)
        for inner, outer in StratifiedKFold(5, shuffle=True, random_state=repeat).split(train, y[train])
    ]
    return float(np.mean(folds)), error(train, test)


def _add_digits(
    table: Table, title: str, found: list[np.ndarray], plain: float | None, seconds: float
) -> float:
    """A row with the errors of what is best in the folds of each split; the test error."""
    errors = np.concatenate(found)  # (candidates, splits, 2)
    best = errors[..., 0].argmin(axis=0)
    folds, test = 100 * errors[best, np.arange(errors.shape[1])].mean(axis=0)
    if plain is None:
        against = ""
    else:
        against = (
            f"{test / plain:.2f} (≤ 0.67)" if test / plain <= 2 / 3 else f"**{test / plain:.2f}** (≤ 0.67)"
        )
    table.add(title, f"{folds:.2f}", f"{test:.2f}", against, seconds or "")
    return float(test)


PARTS = {"intersection": intersection, "vectors": vectors, "flowers": colours, "digits": digits}

if __name__ == "__main__":
    asked = [name for name in sys.argv[1:] if name in PARTS] or list(PARTS)
    tables = [PARTS[name]() for name in asked]
    if len(asked) == len(PARTS):
        write("sets", *tables)
