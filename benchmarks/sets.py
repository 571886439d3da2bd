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
    Kernel,
    Min,
    Precomputed,
    SetKernel,
    compositions,
    rotations,
    shifts,
    slants,
    zooms,
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


def vectors(n: int = 2000, few: int = 60) -> Table:
    table = Table(
        f"SetKernel(Gaussian) on {n} sets of 20 to 200 vectors in ℝ¹⁶: seconds of the Gram matrix; loops "
        f"over pairs i ≥ j of sets are measured on {few} sets and scaled by the pairs of elements",
        "method",
        "seconds",
        "÷ mercer",
        "largest relative difference",
    )
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(rng.integers(20, 201), 16)) for _ in range(n)]
    squares = [np.einsum("ij,ij->i", A, A) for A in X]
    kernel = SetKernel(Gaussian(sigma=4.0))

    def differences(i: int, j: int) -> float:
        D = ((X[i][:, None, :] - X[j][None, :, :]) ** 2).sum(axis=2)
        return float(np.exp(-D / 32).sum())

    def distances(i: int, j: int) -> float:
        return float(np.exp(-cdist(X[i], X[j], "sqeuclidean") / 32).sum())

    def products(i: int, j: int) -> float:
        D = squares[i][:, None] + squares[j][None, :] - 2 * X[i] @ X[j].T
        return float(np.exp(-D / 32).sum())

    kernel(X[:10])
    start = time.perf_counter()
    K = kernel(X)
    ours = time.perf_counter() - start
    table.add("mercer.SetKernel", ours, "", "")
    sizes = np.array([len(A) for A in X])
    pairs = [(i, j) for i in range(few) for j in range(i + 1)]
    share = sum(sizes[i] * sizes[j] for i, j in pairs) / (sizes.sum() ** 2 / 2 + (sizes**2).sum() / 2)
    for title, value in (
        ("NumPy loop: all differences", differences),
        ("NumPy loop: scipy cdist, exp", distances),
        ("NumPy loop: ‖a‖² + ‖b‖² - 2ab, exp", products),
    ):
        start = time.perf_counter()
        found = [value(i, j) for i, j in pairs]
        peer = (time.perf_counter() - start) / share
        gap = max(abs(v / K[i, j] - 1) for v, (i, j) in zip(found, pairs, strict=True))
        table.add(title, peer, ratio(peer, ours, 20), f"{gap:.0e}")
    return table


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


def digits(splits: int = 5) -> Table:
    table = Table(
        f"scikit-learn's digits, 500 training and 1297 test images, {splits} splits: error in per cent; σ "
        "and C chosen by five folds of the training images, three times",
        "kernel",
        "error in the folds",
        "test error",
        "÷ plain",
        "seconds",
    )
    X, y = load_digits(return_X_y=True)
    moves, around, turns = shifts((8, 8), 1.0), shifts((8, 8), 1.5), rotations((8, 8), 10.0)
    cases: dict[str, Callable[[float], Kernel]] = {
        "Gaussian": lambda sigma: Gaussian(sigma=sigma),
        "shifts by a pixel": lambda sigma: Invariant(Gaussian(sigma=sigma), moves).normalized(),
        "shifts, turned by ±10°": lambda sigma: Invariant(
            Gaussian(sigma=sigma), compositions(moves, turns)
        ).normalized(),
        "shifts to eight sides, turned, slanted or zoomed": lambda sigma: Invariant(
            Gaussian(sigma=sigma), compositions(around, [*turns, *slants((8, 8), 0.2), *zooms((8, 8), 1.15)])
        ).normalized(),
    }
    plain = 0.0
    for title, make in cases.items():
        start = time.perf_counter()
        chosen = [_validated(make, X, y, seed) for seed in range(splits)]
        folds, test = 100 * np.mean(chosen, axis=0)
        plain = plain or test
        lower = (
            ""
            if title == "Gaussian"
            else f"{test / plain:.2f}" + (" (≤ 0.67)" if test / plain <= 2 / 3 else "")
        )
        table.add(title, f"{folds:.2f}", f"{test:.2f}", lower, time.perf_counter() - start)
    return table


def _validated(
    make: Callable[[float], Kernel], X: np.ndarray, y: np.ndarray, seed: int
) -> tuple[float, float]:
    """Errors in the folds and on the test images, of what is best in the folds."""
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:500], order[500:]
    found = []
    for sigma in (12.0, 17.0, 24.0):
        kernel = make(sigma)
        K = Precomputed(kernel(X[train]))
        for C in (2.0, 10.0, 50.0):
            errors = [
                1 - SVC(kernel=K, C=C).fit(inner, y[train][inner]).score(outer, y[train][outer])
                for repeat in range(3)
                for inner, outer in StratifiedKFold(5, shuffle=True, random_state=repeat).split(
                    train, y[train]
                )
            ]
            found.append((float(np.mean(errors)), sigma, C))
    error, sigma, C = min(found)
    model = SVC(kernel=make(sigma), C=C).fit(X[train], y[train])
    return error, 1 - model.score(X[test], y[test])


PARTS = {"intersection": intersection, "vectors": vectors, "flowers": colours, "digits": digits}

if __name__ == "__main__":
    asked = [name for name in sys.argv[1:] if name in PARTS] or list(PARTS)
    tables = [PARTS[name]() for name in asked]
    if len(asked) == len(PARTS):
        write("sets", *tables)
