"""Compile what most tests need, once, before the processes that share the tests start.

Each of them would compile it for itself; so they find it in the folder of compiled code (docs/gram.md). Two
processes do the work: the tile loop in either precision first, then the solvers and half of the kernels each.
"""

import multiprocessing
import warnings


def compile_loop(dtype: str) -> None:
    from mercer import Gaussian, Gram, config

    with config(dtype=dtype):
        gram = Gram(Gaussian(sigma=1.0), [[0.0], [1.0], [2.0]])
        gram.dense(), gram.diag(), gram @ [1.0, 1.0, 1.0]


def compile_half(half: int) -> None:
    import numpy as np

    from mercer import SVC, AutoKernelClassifier, AutoKernelRegressor, Gram, NuSVC, Polynomial
    from mercer.testing import example_kernels, example_points

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    models = ([SVC(), NuSVC(nu=0.3)], [AutoKernelRegressor("rbf"), AutoKernelClassifier("rbf")])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model in models[half]:
            model.fit(X, np.sign(X[:, 0]))
        if half == 0:  # 10⁸ beside the others leaves nothing of them in float64: the exact steps
            SVC(kernel=Polynomial(3)).fit(np.column_stack([X, np.full(40, 1e8)]), np.sign(X[:, 0]))
        for kernel in example_kernels()[half::2]:
            points = example_points(kernel, 6, rng)
            Gram(kernel.resolve(points), points).dense()


if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.map(compile_loop, ["float64", "float32"], chunksize=1)
        pool.map(compile_half, [0, 1], chunksize=1)
