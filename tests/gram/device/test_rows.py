"""Passes over rows on a device, against blocks of the CPU: PyTorch on the CPU goes the same way."""

import numpy as np
import pytest

from mercer import Gaussian, Linear, Polynomial, config
from mercer.gram.blocks import RowBlocks
from mercer.solvers.landmarks.certificate import SquaredRisk
from mercer.solvers.landmarks.inner import RiskGradient, Weighted, WithIntercept
from mercer.solvers.risk.logistic import LogisticRisk

torch = pytest.importorskip("torch")

from mercer.gram.backends.torch import where_of  # noqa: E402
from mercer.gram.device import rows as module  # noqa: E402
from mercer.gram.device.memory import DeviceRoom  # noqa: E402
from mercer.gram.device.rows import DeviceBlocks  # noqa: E402

WAYS = {"kept": (10**9, 0), "made": (0, 0), "fused": (10**9, 100)}


def blocks(kernel, X, Z, way, monkeypatch, dtype="float64", backend=None):
    room_for, quick = WAYS[way]
    monkeypatch.setattr(module, "QUICK_COLUMNS", quick)
    monkeypatch.setattr(module, "_SEGMENT", 50)
    monkeypatch.setattr(module, "_BLOCK_ROWS", 20)
    with config(device="cpu:0", backend=backend, dtype=dtype, device_memory=room_for + 4096):
        return DeviceBlocks(kernel, X, Z, DeviceRoom(where_of("cpu")))


@pytest.mark.parametrize("way", ["kept", "made"])
@pytest.mark.parametrize(
    "kernel", [Gaussian(sigma=2.0), 2.0 * Polynomial(2, c=1.0) + Linear()], ids=["G", "P"]
)
def test_passes_are_those_of_the_cpu(kernel, way, monkeypatch, rng):
    """In float64: sums in another order, and squared distances that may differ by some ε of the norms."""
    X, Z, V = rng.normal(size=(130, 5)), rng.normal(size=(17, 5)), rng.normal(size=(17, 2))
    here, there = RowBlocks(kernel, X, Z), blocks(kernel, X, Z, way, monkeypatch)
    y, weight = rng.choice([-1.0, 1.0], 130), rng.uniform(size=130)
    np.testing.assert_allclose(there.values(V), here.values(V), rtol=1e-10)
    G = rng.normal(size=(130, 3))
    np.testing.assert_allclose(there.adjoint(G), here.adjoint(G), atol=1e-10)
    np.testing.assert_allclose(there.diag(), here.diag(), rtol=1e-12)
    inners = [
        (V, Weighted(weight[:, None])),
        (V, RiskGradient(SquaredRisk(rng.normal(size=(130, 2)), weight), is_single=False)),
        (V[:, :1], RiskGradient(LogisticRisk(y, weight), is_single=True)),
        (V, lambda rows, F: (np.sin(F) * weight[rows, None], np.array([F.sum()]), F)),
    ]
    for keeps, (vectors, inner) in enumerate(inners):
        whole = WithIntercept(inner, np.arange(1.0, 1.0 + vectors.shape[1]))
        found = {}
        for K in (here, there):
            F = np.full((130, vectors.shape[1]), np.nan)
            found[K] = (
                *K.pass_over(vectors, whole, vectors.shape[1] + 1, each=F.__setitem__ if keeps else None),
                F,
            )
        for a, b in zip(found[here], found[there], strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-9)
    some = np.array([3, 120, 7])
    np.testing.assert_allclose(there.some(some).values(V), here.values(V)[some], rtol=1e-10)


def test_what_is_left_of_the_budget_says_whether_values_are_kept(monkeypatch, rng):
    X, Z = rng.normal(size=(100, 20)), rng.normal(size=(10, 20))
    with config(device="cpu:0", device_memory="1MiB"):
        room = DeviceRoom(where_of("cpu"))
    before = room.left
    K = DeviceBlocks(Gaussian(sigma=1.0), X, Z, room)
    assert K.label == "computed once and kept on the device"
    assert before - room.left == module.points_memory(100, 20, 8) + 8 * 100 * 10
    del K
    assert room.left == before
    room.take(before - 4000, "all but a little", "")
    assert "a block at a time" in DeviceBlocks(Gaussian(sigma=1.0), X, Z, room).label
    assert room.left == 4000


@pytest.mark.parametrize("way", ["kept", "fused", "made"])
@pytest.mark.parametrize("d", [3, 20])
def test_printed_kernels_of_triton_go_the_same_way(way, d, monkeypatch, rng):
    """Interpreted. Float32: values are off by some 1e-6 of √(k(x, x) k(z, z))."""
    pytest.importorskip("triton")
    X, Z = (rng.normal(size=(n, d)).astype(np.float32) for n in (70, 9))
    kernel, V = Gaussian(sigma=d**0.5), rng.normal(size=(9, 1))
    there = blocks(kernel, X, Z, way, monkeypatch, "float32", "triton")
    assert there.label.startswith(
        {"kept": "computed once", "fused": "computed in each product"}.get(way, "comp")
    )
    here = RowBlocks(kernel, X.astype(float), Z.astype(float))
    np.testing.assert_allclose(there.values(V), here.values(V), atol=1e-5)
    weight = Weighted(rng.uniform(size=(70, 1)))
    np.testing.assert_allclose(there.pass_over(V, weight)[0], here.pass_over(V, weight)[0], atol=1e-4)


def test_single_precision_beside_double(rng):
    X, Z = rng.normal(size=(60, 4)), rng.normal(size=(8, 4))
    with config(device="cpu:0", device_memory="1MiB"):
        K = DeviceBlocks(Gaussian(sigma=1.0), X, Z, DeviceRoom(where_of("cpu")))
    rough = K.rough()
    assert rough.dtype == np.float32 and rough.rough() is None
    V = rng.normal(size=(8, 1))
    np.testing.assert_allclose(rough.values(V), K.values(V), atol=1e-5)
