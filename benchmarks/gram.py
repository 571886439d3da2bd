"""Gram matrices: mercer against the matrix product alone, scikit-learn, and its own NumPy oracle.

Run with ``make bench`` or ``python -m benchmarks.gram``. Every row says what equal quality means: the largest
difference from the peer's values, beside the ratio of times.
"""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from benchmarks._timing import Table, fresh_process, interleaved, write
from mercer import (
    ArcCosine,
    BallIndicator,
    BSpline,
    ChiSquared,
    ConditionalExpectation,
    Constant,
    Cosine,
    Delta,
    Gaussian,
    Gram,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Min,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    Wendland,
    config,
)


def into(gram: Gram, out: np.ndarray) -> Any:
    """The whole matrix into memory that is already there: first touch costs the same for all."""
    return lambda: gram.dense(out)


def gaussian(table: Table, n: int, d: int, dtype: str, bar: str) -> None:
    X = np.random.default_rng(0).normal(size=(n, d))
    T = X.astype(dtype)
    other = T.copy()
    out = np.empty((n, n), dtype)
    gamma = 1 / (2 * d)
    with config(dtype=dtype, memory=out.nbytes * 2):
        ours, symmetric, general, theirs = interleaved(
            into(Gram(Gaussian(gamma=gamma), X), out),
            lambda: np.dot(T, T.T, out=out),  # NumPy sees the transpose and computes half
            lambda: np.dot(T, other.T, out=out),
            lambda: rbf_kernel(T, gamma=gamma),
            repeats=5,
        )
        Gram(Gaussian(gamma=gamma), X).dense(out)
    error = np.abs(out[:200] - rbf_kernel(X[:200], X, gamma=gamma)).max()
    table.add(
        f"Gaussian {n}×{d} {dtype}",
        ours,
        f"{ours / min(symmetric, general):.2f} × product",
        f"{theirs / ours:.2f} ×",
        f"{error:.1g}",
        bar,
    )


def laplacian(table: Table, n: int, d: int) -> None:
    X = np.random.default_rng(0).normal(size=(n, d))
    gamma = 1 / d
    out = np.empty((n, n))
    with config(memory=out.nbytes * 2):
        gram = Gram(Laplacian(gamma=gamma), X)
        ours, theirs = interleaved(into(gram, out), lambda: laplacian_kernel(X, gamma=gamma), repeats=3)
    error = np.abs(out[:100] - laplacian_kernel(X[:100], X, gamma=gamma)).max()
    table.add(
        f"ℓ₁ Laplacian {n}×{d} float64",
        ours,
        "",
        f"{theirs / ours:.2f} ×",
        f"{error:.1g}",
        "≥ 8 × scikit-learn",
    )


def composite(table: Table) -> None:
    X = np.random.default_rng(0).normal(size=(10_000, 100))
    for dtype in ("float64", "float32"):
        out = np.empty((10_000, 10_000), dtype)
        with config(dtype=dtype, memory=out.nbytes * 2):
            alone = Gram(Gaussian(sigma=10.0), X)
            both = Gram(Gaussian(sigma=10.0) + Polynomial(3, c=1.0, gamma=0.01), X)
            ours, base = interleaved(into(both, out), into(alone, out))
            both.dense(out)
        expected = rbf_kernel(X[:100], X, gamma=1 / 200) + (0.01 * X[:100] @ X.T + 1) ** 3
        error = np.abs(out[:100] - expected).max()
        table.add(
            f"Gaussian + cubic 10000×100 {dtype}",
            ours,
            f"{ours / base:.2f} × Gaussian",
            "",
            f"{error:.1g}",
            "≤ 1.3 ×",
        )


def product_with_vector(table: Table) -> None:
    rng = np.random.default_rng(0)
    X, v = rng.normal(size=(50_000, 20)), rng.normal(size=50_000)
    with config(memory="500MiB"):
        gram = Gram(Gaussian(sigma=4.0), X)
        stripe = np.empty((500, 50_000))

        def stored() -> None:
            """The same tiles, stored stripe by stripe in memory that is used again."""
            for start in range(0, 50_000, 500):
                Gram(gram.kernel, X[start : start + 500], X, cache=0).dense(stripe)

        ours, theirs = interleaved(lambda: gram @ v, stored, repeats=3)
        error = np.abs((gram @ v)[:20] - rbf_kernel(X[:20], X, gamma=1 / 32) @ v).max()
    table.add(
        "Gram @ v 50000×20, 500 MiB",
        ours,
        f"{ours / theirs:.2f} × tiles stored",
        "",
        f"{error:.1g}",
        "≤ 1.2 ×",
    )


def vector_kernels() -> list[Kernel]:
    """Every kernel on vectors, at widths that suit 50 standard normal columns."""
    return [
        Linear(), Polynomial(3, c=1.0, gamma=0.02), Polynomial(40, c=1.0, gamma=0.002), Sigmoid(eta=0.02),
        Cosine(), ArcCosine(0), ArcCosine(1), ArcCosine(2), Constant(2.0),
        Gaussian(sigma=7.0), Gaussian(sigma=[7.0] * 50), Laplacian(gamma=0.02), Laplacian(gamma=0.1, norm=2),
        Matern(0.5, 7.0), Matern(1.5, 7.0), Matern(2.5, 7.0), Matern(1.2, 7.0), RationalQuadratic(1.5, 7.0),
        Periodic(3.0, 5.0), Wendland(12.0), BSpline(3, scale=4.0), BallIndicator(9.0), Delta(),
        Min(), ChiSquared(0.02), ConditionalExpectation(lambda X: np.exp(-np.abs(X[:, :8]))),
        Gaussian(7.0).normalized(), Polynomial(2, c=1.0).normalized(), Gaussian(7.0) * Linear() + 1.0,
        Gaussian(7.0).on(*range(25)) * Laplacian(0.02).on(*range(25, 50)), Gaussian(7.0).derivative("sigma"),
    ]  # fmt: skip


def every_kernel() -> Table:
    table = Table(
        "Every kernel, 5000×50, against the NumPy oracle", "kernel", "s", "oracle ÷ mercer", "difference"
    )
    X = np.random.default_rng(0).normal(size=(5000, 50))
    out, expected = np.empty((5000, 5000)), np.empty((5000, 5000))
    for kernel in vector_kernels():
        points = np.abs(X) if kernel.domain == "nonnegative" else X
        with config(backend="numba"):
            fast = Gram(kernel, points)
        with config(backend="numpy"):
            slow = Gram(kernel, points)
        ours, oracle = interleaved(into(fast, out), into(slow, expected), repeats=3)
        error = np.abs(out - expected).max() / max(np.abs(expected).max(), 1e-300)
        table.add(repr(kernel)[:70], ours, f"{oracle / ours:.1f} ×", f"{error:.1g}")
    return table


FIRST = """
import time, numpy as np, scipy
start = time.perf_counter()
import mercer
loaded = time.perf_counter()
X = np.random.default_rng(0).normal(size=(300, 20))
begin = time.perf_counter()
mercer.Gaussian(sigma=1.0)(X)
print(loaded - start, time.perf_counter() - begin)
"""


def first_gram() -> Table:
    table = Table("A first Gram in a fresh process", "", "import mercer, s", "first Gram, s", "bar")

    def measure(folder: str) -> list[float]:
        environment = {"NUMBA_CACHE_DIR": folder, "MERCER_CACHE_DIR": folder + "/code"}
        return [float(t) for t in fresh_process(FIRST, **environment).split()]

    cold, warm = [], []
    for _ in range(5):
        with tempfile.TemporaryDirectory() as folder:
            cold.append(measure(folder))
            warm.append(measure(folder))
    table.add("nothing compiled yet", *map(float, np.median(cold, axis=0)), "≤ 5 s")
    table.add("compiled before", *map(float, np.median(warm, axis=0)), "≤ 0.3 s")
    return table


def main() -> None:
    table = Table(
        "Gram matrices", "case", "s", "against its floor", "against scikit-learn", "difference", "bar"
    )
    for dtype in ("float64", "float32"):
        gaussian(table, 10_000, 784, dtype, "≤ 1.15 × product")
        gaussian(table, 20_000, 20, dtype, "≤ 1.4 × product, ≥ 4 × scikit-learn")
    laplacian(table, 3_000, 784)
    laplacian(table, 10_000, 20)
    composite(table)
    product_with_vector(table)
    write("gram", table, first_gram(), every_kernel())


if __name__ == "__main__":
    main()
