"""Ridge regression where K does not fit: conjugate gradients with a factor of low rank, at small penalties.

Run with ``python -m benchmarks.large_pcg``: on all training points of kin40k and protein, which takes an
hour on two cores; ``--points``, ``--tables`` and ``--smaller`` ask for less. The width of the kernel and α
are those that leave-one-out errors choose on 3,000 points. Then come fits at that α and at smaller ones, to
a residual of 1e-6: the products with K, with the factor and without it, and the largest difference of
predictions from those of the Cholesky factorisation, where there is memory for one; y has the spread 1.
Needs the real data (``benchmarks/_data.py``).
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import partial
from typing import Any

import numpy as np

from benchmarks._data import regression
from benchmarks._timing import Table, write
from mercer import Gaussian, KernelLogisticRegression, KernelRidge, KernelRidgeCV, config

BUDGET = "4GiB"
TOL = 1e-6
#: products after which conjugate gradients without a factor are given up
PATIENCE = 150


def seconds(work: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the plain ones do not converge is what the table says
        result = work()
    return time.perf_counter() - start, result


def data(name: str, points: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Standardised training and test data of the first fold, in a fixed order."""
    X, y, X_test, y_test = regression(name)
    order = np.random.default_rng(0).permutation(len(X))[:points]
    return X[order], y[order], X_test, y_test


def chosen(X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """σ and α by leave-one-out errors on 3,000 points."""
    some = slice(0, min(3000, len(X)))
    widths = [Gaussian(float(s) * np.sqrt(X.shape[1])) for s in (0.25, 0.5, 1.0, 2.0)]
    model = KernelRidgeCV(np.logspace(-4, 1, 11), kernel=widths).fit(X[some], y[some])
    return float(model.kernel_.sigma), float(model.alpha_)


def ridge(name: str, points: int | None, smaller: list[float], plain: bool) -> Table:
    X, y, X_test, y_test = data(name, points)
    n = len(X)
    table = Table(
        f"Kernel ridge on {name}, {n:,} × {X.shape[1]}, float64, residual {TOL:g}, a budget of {BUDGET}",
        "α",
        "σ",
        "rank",
        "products",
        "s",
        "products without a factor",
        "Cholesky s (K stored)",
        "largest difference",
        "test RMSE",
    )
    sigma, best = chosen(X, y)
    fits_here = 8 * n * n * 1.3 < _memory()
    for alpha in (best, *(a for a in smaller if a < best)):
        options: dict[str, Any] = {"kernel": Gaussian(sigma), "tol": TOL}
        with config(memory=BUDGET):
            quick = KernelRidge(alpha, solver="cg", **options)
            took, _ = seconds(partial(quick.fit, X, y))
        without = "–"  # not asked for, or more than at the largest α, which comes first
        if alpha == best and plain:
            model = KernelRidge(alpha, solver="cg", rank=0, max_iter=PATIENCE, **options)
            seconds(partial(model.fit, X, y))
            without = str(model.report_.iterations) if model.report_.converged else f"> {PATIENCE}"
        predicted = quick.predict(X_test)
        exact_took, difference = float("nan"), float("nan")
        if fits_here:
            exact = KernelRidge(alpha, solver="cholesky", kernel=Gaussian(sigma))
            with config(memory=int(8 * n * n * 1.2)):  # K may take more than half of the memory there is.
                exact_took, _ = seconds(partial(exact.fit, X, y))
            difference = float(np.abs(exact.predict(X_test) - predicted).max())
        error = float(np.sqrt(np.mean((predicted - y_test) ** 2)))
        table.add(
            alpha,
            sigma,
            quick.report_.plan.rank,
            quick.report_.iterations,
            took,
            without,
            exact_took,
            difference,
            error,
        )
    return table


def logistic(points: int | None) -> Table:
    """Newton's method on a K that is not stored: kin40k above its median or not, and by thirds."""
    table = Table(
        "Kernel logistic regression on a K that is not stored",
        "data",
        "C",
        "rank",
        "steps",
        "products",
        "s",
        "gap as a part of J",
    )
    X, y, *_ = data("kin40k", min(points or 10_000, 10_000))
    n = len(X)
    budget = int(0.5 * 8 * n * n)
    for classes in (2, 3):
        codes = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
        for C in (1.0, 100.0):
            model = KernelLogisticRegression(Gaussian(np.sqrt(X.shape[1])), C=C, tol=1e-6)
            with config(memory=budget):
                took, _ = seconds(partial(model.fit, X, codes))
            report = model.report_
            table.add(
                f"kin40k {n:,}, {classes} classes",
                C,
                report.plan.rank,
                model.n_iter_,
                model.n_products_,
                took,
                float(report.gap / report.objective),
            )
    return table


def _memory() -> int:
    from mercer.runtime.machine import available_memory

    return available_memory()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--points", type=int, help="of each table, all by default")
    parser.add_argument("--tables", nargs="*", default=["kin40k", "protein"])
    parser.add_argument("--smaller", type=float, nargs="*", default=[1e-2, 1e-3, 1e-4], help="penalties")
    parser.add_argument("--ridge-only", action="store_true")
    parser.add_argument("--no-plain", action="store_true", help="not without a factor, which takes longest")
    options = parser.parse_args()
    for name in options.tables:
        write("large_pcg", ridge(name, options.points, options.smaller, not options.no_plain))
    if not options.ridge_only:
        write("large_pcg", logistic(options.points))


if __name__ == "__main__":
    main()
