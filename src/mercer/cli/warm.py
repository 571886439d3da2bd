"""``mercer warm``: compile now what the first fits would compile, and keep it."""

from __future__ import annotations

import hashlib
import multiprocessing
import sys
import warnings
from importlib.metadata import version
from pathlib import Path
from time import monotonic
from typing import Any

from mercer.cli.screen import Screen
from mercer.errors import InputError
from mercer.runtime.cache_folder import cache_folder
from mercer.runtime.native import compiles


def is_warm() -> bool:
    """Whether this was done already, for these sources of ours and these versions of Python and Numba."""
    mark = _mark()
    return mark is not None and mark.exists()


def _mark() -> Path | None:
    """A file that says so; None where nothing is kept."""
    folder, package = cache_folder(), Path(__file__).parents[1]
    if folder is None:
        return None
    digest = hashlib.sha256(f"{sys.version} {version('numba')} {version('llvmlite')}".encode())
    for path in sorted(package.rglob("*.py")):
        digest.update(path.read_bytes())
    return folder / f"warmed-{digest.hexdigest()[:24]}"


def warm(screen: Screen) -> int:
    """Compile the tile loop in both precisions, then the solvers and the kernels, two processes at a time."""
    if not compiles():
        raise InputError(
            "NUMBA_DISABLE_JIT=1 forbids to compile anything: unset it, and run mercer warm again"
        )
    folder = cache_folder()
    if folder is None:
        raise InputError(
            "no folder to keep compiled code in can be written: name one in MERCER_CACHE_DIR, and run again"
        )
    began = monotonic()
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.map(_tile_loop, ["float64", "float32"], chunksize=1)
        screen.step("The tile loop of all kernels is compiled.")
        pool.map(_solvers_and_kernels, [0, 1], chunksize=1)
    if (mark := _mark()) is not None:
        mark.touch()
    screen.step(
        f"Solvers and kernels are compiled too, {monotonic() - began:.0f} s in all. They are kept in:"
    )
    print(folder)
    return 0


def _tile_loop(dtype: str) -> None:
    import numpy as np

    from mercer import Gaussian, Gram, config
    from mercer.gram.backends.numba.parts import tile_loop

    for exact in {"float64", dtype}:
        tile_loop(np.dtype(dtype), np.dtype(exact)).compile()
    with config(dtype=dtype):
        gram = Gram(Gaussian(sigma=1.0), [[0.0], [1.0], [2.0]])
        gram.dense(), gram.diag(), gram @ [1.0, 1.0, 1.0]


def _solvers_and_kernels(half: int) -> None:
    import numpy as np

    from mercer import (
        SVC,
        AutoKernelClassifier,
        AutoKernelRegressor,
        Gaussian,
        Gram,
        KernelRidge,
        NuSVC,
        Polynomial,
        Wendland,
    )
    from mercer.selection.evidence import learn
    from mercer.testing import example_kernels, example_points

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.sign(X[:, 0])
    thin = KernelRidge(kernel=Wendland(), solver="sparse")
    models: Any = ([SVC(), NuSVC(nu=0.3), thin], [AutoKernelRegressor("rbf"), AutoKernelClassifier("rbf")])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model in models[half]:
            model.fit(X, y)
        if half == 0:  # 10⁸ beside the others leaves nothing of them in float64: the exact steps
            SVC(kernel=Polynomial(3)).fit(np.column_stack([X, np.full(40, 1e8)]), y)
        else:  # a width for each column, which larger searches learn
            learn(Gaussian(sigma=[1.0, 1.0]), X, y[:, None], ["sigma"], iterations=1)
        for kernel in example_kernels()[half::2]:
            points = example_points(kernel, 6, rng)
            Gram(kernel.resolve(points), points).dense()
