"""K @ V on a GPU: mercer's Triton backend against plain PyTorch in blocks, and the bars that were set.

Run with ``python -m benchmarks.gpu`` in an environment with ``mercer[gpu]``, on a machine with a CUDA device.
Times are medians of five, points and vectors on the device;
"Gram @ v" is from NumPy and back. Errors are those of 64 rows, ‖r - r̂‖/‖r‖, against float64 from differences.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks._timing import Table, fresh_process, write
from mercer import Gaussian, Gram, Kernel, Matern, Polynomial, RationalQuadratic, config
from mercer.gram.backends.base import Tile
from mercer.kernels.formula.expression import cos, exp

N = 200_000


class DampedCosine(Kernel):
    """exp(-s/2) cos s of s = ‖x - y‖²: a formula of one's own."""

    def formula(self, pair: Any) -> Any:
        return exp(-pair.sqdist / 2) * cos(pair.sqdist)


def seconds(function: Callable[[], object], repeats: int = 5) -> float:
    """The median, after one run to warm up."""
    import torch

    times = []
    for _ in range(repeats + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        function()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def device() -> str:
    """What the figures were measured on, and by which libraries."""
    import torch
    import triton

    version = torch.__version__.partition("+")[0]
    return f"{torch.cuda.get_device_name()}, PyTorch {version}, Triton {triton.__version__}"


def points(n: int, d: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)


class Case:
    """One Gram, a product on the device, and its error."""

    def __init__(
        self, kernel: Kernel, X: np.ndarray, p: int = 1, error: float | None = None, dtype: str = "float32"
    ) -> None:
        import torch

        n = len(X)
        V = np.random.default_rng(1).normal(size=(n, p))
        with config(device="cuda", dtype=dtype, kernel_error=error):
            self.gram = Gram(kernel, X)
        backend: Any = self.gram._backend
        self.backend, self.V = backend, V.astype(dtype)
        self.on_device = torch.as_tensor(self.V, device="cuda")
        self.tile = Tile(self.gram._x, self.gram._y, (0, n), (0, n))
        found = self.product()[:64].double().cpu().numpy()
        with config(backend="numba", dtype="float64"):
            exact = Gram(kernel, X[:64], X.astype(np.float64)) @ V
        self.error = float(np.linalg.norm(found - exact) / np.linalg.norm(exact))
        self.time = seconds(self.product)
        self.whole = seconds(lambda: self.gram @ self.V, 3)

    def product(self) -> Any:
        return self.backend.times(self.tile, self.on_device)

    @property
    def products(self) -> str:
        return str(self.backend.product.name)


def plain_torch(X: np.ndarray, sigma: float) -> float:
    """exp(-‖x-y‖²/2σ²) @ v in blocks of 8192 rows, as one writes it with PyTorch alone."""
    import torch

    T = torch.as_tensor(X, device="cuda")
    v = torch.randn(len(X), device="cuda")
    norms = (T * T).sum(dim=1)

    def product() -> Any:
        parts = []
        for rows in torch.split(torch.arange(len(T), device="cuda"), 8192):
            s = (norms[rows, None] + norms[None, :] - 2 * T[rows] @ T.T).clamp_(min=0)
            parts.append(torch.exp(s / (-2 * sigma**2)) @ v)
        return torch.cat(parts)

    return seconds(product, 1)


def gaussian() -> Table:
    table = Table(
        f"Gaussian, K @ v, float32, {device()}", "points", "products", "ms", "10¹² pairs/s",
        "TFLOP/s of products", "error of K @ v", "of K, by some pairs", "Gram @ v from NumPy, ms",
        "plain PyTorch ÷ mercer", "bar",
    )  # fmt: skip
    bars = {
        (3, None): "≥ 2.5·10¹² pairs/s", (32, 1e-3): "≥ 1.6·10¹² pairs/s at ≤ 1e-3",
        (784, 1e-3): "≥ 200 TFLOP/s at ≤ 1e-3", (784, None): "≥ 41 TFLOP/s at ≤ 1e-6",
    }  # fmt: skip
    for d, sigma in ((3, 1.0), (10, 2.0), (32, 6.0), (128, 12.0), (784, 28.0)):
        n = N if d < 784 else N // 2
        X = points(n, d)
        plain = plain_torch(X, sigma)
        for error in (1e-3, None) if d > 8 else (None,):
            case = Case(Gaussian(sigma=sigma), X, error=error)
            table.add(
                f"{n:,} × {d}", case.products, 1e3 * case.time, n * n / case.time / 1e12,
                2 * d * n * n / case.time / 1e12, f"{case.error:.1e}", f"{case.backend.error:.1e}",
                1e3 * case.whole, f"{plain / case.time:.1f} ×", bars.get((d, error), ""),
            )  # fmt: skip
    case = Case(Gaussian(sigma=1.0), points(N, 3).astype(np.float64))
    table.add(
        f"{N:,} × 3, points in float64", case.products, 1e3 * case.time, N * N / case.time / 1e12, "",
        f"{case.error:.1e}", "0", 1e3 * case.whole, "", "",
    )  # fmt: skip
    case = Case(Gaussian(sigma=1.0), points(N, 3), dtype="float64")
    table.add(
        f"{N:,} × 3, all in float64", "", 1e3 * case.time, N * N / case.time / 1e12, "",
        f"{case.error:.1e}", "0", 1e3 * case.whole, "", "",
    )  # fmt: skip
    return table


def other_kernels() -> Table:
    table = Table(
        f"Other kernels, K @ v, {N:,} × 3, float32", "kernel", "ms", "10¹² pairs/s",
        "of the Gaussian's rate", "error", "bar",
    )  # fmt: skip
    X = points(N, 3)
    first = 0.0
    for kernel in (
        Gaussian(sigma=1.0), Matern(1.5), RationalQuadratic(1.0),
        2.0 * Gaussian(sigma=1.0) + Polynomial(3, c=1.0), DampedCosine(),
    ):  # fmt: skip
        case = Case(kernel, X)
        first = first or case.time
        table.add(
            repr(kernel), 1e3 * case.time, N * N / case.time / 1e12, first / case.time, f"{case.error:.1e}",
            "" if first == case.time else "≥ 0.5",
        )  # fmt: skip
    return table


def many_columns() -> Table:
    table = Table(
        "16 columns of V beside one, Gaussian, float32", "points", "kernel_error", "one, ms", "16, ms",
        "ratio", "error", "bar",
    )  # fmt: skip
    for d, sigma, n in ((3, 1.0, N), (32, 6.0, N), (784, 28.0, N // 2)):
        X = points(n, d)
        for error in (1e-3, None):
            one, many = (Case(Gaussian(sigma=sigma), X, p, error) for p in (1, 16))
            table.add(
                f"{n:,} × {d}", error or "1e-6", 1e3 * one.time, 1e3 * many.time,
                f"{many.time / one.time:.2f} ×", f"{many.error:.1e}", "≤ 1.5 ×",
            )  # fmt: skip
    return table


FIRST = """
import time, numpy as np
X = np.random.default_rng(0).normal(size=(5000, 3)).astype(np.float32)
import mercer, torch
torch.zeros(1, device="cuda")
begin = time.perf_counter()
with mercer.config(device="cuda", dtype="float32"):
    mercer.Gram(mercer.Gaussian(sigma=1.0), X) @ np.ones(5000)
print(time.perf_counter() - begin)
"""


def first_product() -> Table:
    table = Table("A first product in a process that has loaded PyTorch", "", "s", "bar")
    with tempfile.TemporaryDirectory() as folder:
        environment = {"TRITON_CACHE_DIR": folder + "/triton", "MERCER_CACHE_DIR": folder + "/code"}
        for what, bar in (("nothing compiled yet", "≤ 5 s"), ("compiled before", "≤ 1 s")):
            table.add(what, float(fresh_process(FIRST, **environment)), bar)
    return table


def main() -> None:
    import torch

    if not torch.cuda.is_available():
        print("no CUDA device: nothing is measured")
        return
    print(torch.cuda.get_device_name())
    write("gpu", gaussian(), other_kernels(), many_columns(), first_product())


if __name__ == "__main__":
    main()
