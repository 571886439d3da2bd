"""Sparse Grams and ridge regression on them: mercer against SciPy's tree and solvers, on points of the plane.

Run with ``make bench`` or ``python -m benchmarks.sparse_gram``. The peer finds the pairs with
``cKDTree.sparse_distance_matrix`` and applies Wendland's formula to their distances; it solves (K + αI) a = y
with ``scipy.sparse.linalg.cg`` to the same residual, 1e-10, or with ``spsolve``. Every row says what equal
quality means: the largest difference from the peer's values, relative to the largest of them. What K would
take as a dense matrix stands beside the memory of the whole process that fits.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import cg, spsolve
from scipy.spatial import cKDTree

from benchmarks._timing import Table, fresh_process, interleaved, write
from mercer import Gram, KernelRidge, Wendland
from mercer.runtime.config import format_bytes

NEIGHBOURS = 30
#: Runs of each, after one that warms up: a median of three, or of fewer on a machine that others use.
REPEATS = int(os.environ.get("REPEATS") or 3)

_MEMORY = """
from benchmarks.sparse_gram import problem
from mercer import KernelRidge, Wendland

def peak():  # ru_maxrss would begin with that of the process that started this one
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))

X, y, radius = problem({n}, {d})
model = KernelRidge(0.01, kernel=Wendland(radius), fit_intercept=False, solver="sparse")
model.fit(X[:500], y[:500]).predict(X[:5])
before = peak()
model.fit(X, y).predict(X)
print(before, peak(), model.report_.memory)
"""


def problem(n: int, d: int = 2) -> tuple[np.ndarray, np.ndarray, float]:
    """Points of the unit cube, a smooth target with noise, and a radius with thirty neighbours, about."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, d))
    volume = {1: 2.0, 2: np.pi, 3: 4 * np.pi / 3}[d]
    radius = (NEIGHBOURS / (n * volume)) ** (1 / d)
    return X, np.sin(8 * X[:, 0]) + X[:, -1] ** 2 + 0.1 * rng.normal(size=n), float(radius)


def by_scipy(X: np.ndarray, radius: float) -> sparse.csr_array:
    """K from the tree's own distances."""
    tree = cKDTree(X)
    near = tree.sparse_distance_matrix(tree, radius, output_type="coo_matrix")
    r = near.data / radius
    return sparse.coo_array(((1 - r) ** 4 * (4 * r + 1), (near.row, near.col)), shape=near.shape).tocsr()


def solved(X: np.ndarray, y: np.ndarray, radius: float, alpha: float, how: Any) -> np.ndarray:
    A = sparse.csr_array(by_scipy(X, radius) + alpha * sparse.eye_array(len(y)))
    return np.asarray(how(A, y))


def by_gradients(A: Any, y: np.ndarray) -> np.ndarray:
    solution, info = cg(A, y, rtol=1e-10, maxiter=10_000)
    assert info == 0, info
    return np.asarray(solution)


def by_factors(A: Any, y: np.ndarray) -> np.ndarray:
    return np.asarray(spsolve(A.tocsc(), y, permc_spec="MMD_AT_PLUS_A"))


def difference(ours: np.ndarray, theirs: np.ndarray) -> str:
    return f"{np.abs(ours - theirs).max() / np.abs(theirs).max():.1e}"


def matrices(table: Table, n: int, d: int) -> None:
    X, _, radius = problem(n, d)
    kernel = Wendland(radius)
    ours, theirs = interleaved(lambda: Gram(kernel, X).sparse(), lambda: by_scipy(X, radius), repeats=REPEATS)
    K = Gram(kernel, X).sparse()
    gap = abs(K - by_scipy(X, radius)).max()
    table.add(f"{n:,} × {d}", f"{K.nnz:,}", ours, theirs, f"{theirs / ours:.1f}", f"{gap:.1e}")


def fits(table: Table, n: int, d: int, alpha: float, name: str, how: Callable[..., Any]) -> None:
    X, y, radius = problem(n, d)
    model = KernelRidge(alpha, kernel=Wendland(radius), fit_intercept=False)
    ours, theirs = interleaved(
        lambda: model.fit(X, y), lambda: solved(X, y, radius, alpha, how), repeats=REPEATS
    )
    gap = difference(model.dual_coef_, solved(X, y, radius, alpha, how))
    steps = model.report_.iterations
    table.add(f"{n:,} × {d}", f"{alpha:g}", name, ours, theirs, f"{theirs / ours:.1f}", steps, gap)


def memory(table: Table, n: int, d: int) -> None:
    before, after, planned = map(int, fresh_process(_MEMORY.format(n=n, d=d)).split())
    dense = format_bytes(8 * n * n)
    table.add(f"{n:,} × {d}", format_bytes(after), format_bytes(after - before), format_bytes(planned), dense)


def main() -> None:
    values = Table(
        "Wendland's K, thirty neighbours each",
        "points",
        "values",
        "mercer, s",
        "SciPy, s",
        "ratio",
        "difference",
    )
    matrices(values, 100_000, 2)
    matrices(values, 100_000, 3)
    solutions = Table(
        "Ridge regression on it",
        "points",
        "α",
        "peer",
        "mercer, s",
        "peer, s",
        "ratio",
        "our steps",
        "difference",
    )
    fits(solutions, 100_000, 2, 1.0, "cg", by_gradients)
    fits(solutions, 100_000, 2, 1e-2, "cg", by_gradients)
    fits(solutions, 5_000, 2, 1e-2, "spsolve", by_factors)
    fits(solutions, 5_000, 2, 1e-4, "spsolve", by_factors)
    bytes_ = Table(
        "Memory of a process that fits and predicts",
        "points",
        "at its peak",
        "more than before",
        "planned",
        "dense K",
    )
    memory(bytes_, 100_000, 2)
    write("sparse_gram", values, solutions, bytes_)


if __name__ == "__main__":
    main()
