"""Error and time against the number of landmarks, beside the exact solution: the picture of docs/large.md.

    make bench BENCH=landmark_numbers

Other work may run beside it: seconds are those of one core.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import mercer
from benchmarks._data import covtype
from benchmarks._timing import Table, write
from mercer.plots import style
from mercer.selection import landmark_numbers, landmark_path

NUMBERS = (125, 250, 500, 1000, 2000)
ROWS = (10_000, 100_000)
#: Of so many rows the exact solution is learned, too.
EXACT = 10_000
PICTURE = Path(__file__).parents[1] / "docs" / "landmark_numbers.svg"

#: of some rows, on some landmarks or exactly: errors in percent, and seconds
Found = dict[int, dict[int | str, tuple[float, float]]]


def measure() -> Found:
    landmark_numbers.now = time.process_time
    found: Found = {}
    for n in ROWS:
        X, y, X_test, y_test = covtype(n, skip=20_000)
        signs = np.where(y == 1, 1.0, -1.0)
        learner = mercer.KernelRidge(
            lam=1e-6, kernel=mercer.Gaussian(gamma=0.05)
        )  # as in benchmarks.landmarks

        def percent(model: mercer.KernelRidge, X: np.ndarray = X_test, y: np.ndarray = y_test) -> float:
            return 100 * float(np.mean((model.predict(X) > 0) != (y == 1)))

        path = landmark_path(learner, X, signs, NUMBERS)
        errors = [percent(model) for model in path.models]
        found[n] = dict(zip(NUMBERS, zip(errors, path.seconds.tolist(), strict=True), strict=True))
        if n == EXACT:
            rest = np.setdiff1d(np.arange(n), path.rows)
            began = time.process_time()
            learner.fit(X[rest], signs[rest])
            found[n]["exactly"] = percent(learner), time.process_time() - began
    return found


def draw(found: Found) -> None:
    figure, both = style.new_figure(8.0, 3.1, ncols=2)
    for i, (n, fits) in enumerate(found.items()):
        look = {"color": style.colour(i), "marker": style.marker(i), "markersize": 4, "label": f"{n:,} rows"}
        for which, ax in enumerate(both):
            ax.plot(NUMBERS, [fits[M][which] for M in NUMBERS], **look)
            if "exactly" in fits:
                line = {"color": style.colour(i), "linestyle": "--", "linewidth": 1}
                ax.axhline(fits["exactly"][which], label=f"{n:,} rows, exactly", **line)
    for ax, label in zip(both, ("errors on 20,000 other rows, %", "seconds of one core"), strict=True):
        style.tidy(ax)
        ax.set(xscale="log", xlabel="landmarks", ylabel=label)
        ax.set_xticks(NUMBERS, [f"{M:,}" for M in NUMBERS])
        ax.minorticks_off()
    both[1].set_yscale("log")
    both[1].set_yticks([1, 3, 10, 30], ["1", "3", "10", "30"])
    both[1].minorticks_off()
    style.legend(both[0])
    figure.savefig(PICTURE)


def main() -> None:
    found = measure()
    draw(found)
    table = Table(
        "covtype, ridge: errors on 20,000 other rows", "rows", "landmarks", "error", "seconds of one core"
    )
    for n, fits in found.items():
        for M, (error, seconds) in fits.items():
            table.add(f"{n:,}", M if isinstance(M, str) else f"{M:,}", f"{error:.2f}%", seconds)
    write("landmark_numbers", table)


if __name__ == "__main__":
    main()
