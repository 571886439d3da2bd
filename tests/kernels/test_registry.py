"""Every registered kernel, on every backend, in both precisions: the battery that ships with mercer."""

from importlib import import_module

import numpy as np
import pytest
from scipy import sparse

from mercer import Gram, config
from mercer.data import points as data
from mercer.gram.backends import BACKENDS
from mercer.kernels.base import Kernel
from mercer.testing import check_kernel, example_kernels, example_points, missing_examples, own_kernels

EXAMPLES = example_kernels()

every_kernel = pytest.mark.parametrize("kernel", EXAMPLES, ids=lambda k: repr(k)[:70])


def few_points(kernel):
    """X and Y with two points in common: the battery works out the formula in Python for each pair."""
    points = example_points(kernel, 7, np.random.default_rng(0))
    return data.take(points, slice(0, 5)), data.take(points, slice(3, 7))


def load(backend):
    try:
        import_module(BACKENDS[backend][0])
    except ImportError as error:
        pytest.skip(f"backend {backend} cannot be loaded: {error}")


def test_every_class_of_mercer_has_an_example():
    assert [kind.__qualname__ for kind in missing_examples()] == []


def test_registration_happens_when_a_class_is_defined():
    class Own(Kernel):
        def formula(self, pair):
            return pair.dot

    class Abstract(Kernel):
        """Defines no formula: nothing to compute."""

    assert Own in Kernel.registry and Abstract not in Kernel.registry
    assert Own not in own_kernels()


def test_the_kernels_of_the_package_are_registered_once():
    kinds = own_kernels()
    assert len(kinds) == len(set(kinds)) >= 31


@pytest.mark.sample(1)  # every kernel, always
@every_kernel
@pytest.mark.parametrize("backend", BACKENDS)
def test_battery(kernel, backend):
    load(backend)
    check_kernel(kernel, *few_points(kernel), backend=backend, dtype="float64")


@pytest.mark.sample(77)
@every_kernel
@pytest.mark.parametrize("backend", BACKENDS)
def test_battery_in_single_precision(kernel, backend):
    load(backend)
    check_kernel(kernel, *few_points(kernel), backend=backend, dtype="float32")


@pytest.mark.sample(39)
@pytest.mark.filterwarnings("ignore::mercer.errors.SlowPathWarning")
@every_kernel
@pytest.mark.parametrize("backend", [name for name in BACKENDS if name not in ("numpy", "triton")])
def test_many_tiles_agree_with_the_oracle(kernel, backend, rng, monkeypatch):
    """More points than the rows and columns of a tile, so that the seams are crossed.

    Kernels on objects take long for each pair: theirs are smaller tiles. Triton's have less, and tests of
    their own: they run as Python here.
    """
    load(backend)
    if kernel.domain == "objects":
        module, name = BACKENDS[backend]
        for side in ("rows", "columns"):
            monkeypatch.setattr(getattr(import_module(module), name), side, 32)
    n = 90 if kernel.domain == "objects" else 530
    points = example_points(kernel, n, rng)
    X, Y = points[: n // 2 + 5], points[20:]
    V = rng.normal(size=(len(Y), 3))
    kernel = kernel.resolve(X)
    with config(backend="numpy"):
        square, oblong = Gram(kernel, X).dense(), Gram(kernel, X, Y).dense()
    with config(backend=backend, threads=2):
        K, L = Gram(kernel, X), Gram(kernel, X, Y)
        # 512 ε of the largest value, argued in mercer.testing; a product adds m of them
        tolerance = 512 * np.finfo(float).eps * np.abs(oblong).max()
        np.testing.assert_allclose(K.dense(), square, rtol=0, atol=tolerance)
        np.testing.assert_allclose(L.dense(), oblong, rtol=0, atol=tolerance)
        np.testing.assert_allclose(L @ V, oblong @ V, rtol=0, atol=tolerance * np.abs(V).sum(axis=0).max())


@every_kernel
def test_sparse_points_are_the_same_points(kernel, rng):
    if kernel.domain not in ("vectors", "nonnegative") or "FromFunction" in repr(kernel):
        pytest.skip("not a kernel on vectors alone")
    X, Y = example_points(kernel, 12, rng), example_points(kernel, 7, rng)
    tolerance = 512 * np.finfo(float).eps * np.abs(Gram(kernel.resolve(X), X, Y).dense()).max()
    found = Gram(kernel.resolve(X), sparse.csr_array(X), sparse.csr_array(Y)).dense()
    np.testing.assert_allclose(found, Gram(kernel.resolve(X), X, Y).dense(), rtol=0, atol=tolerance)


def test_example_points_keep_what_the_kernel_asks(rng):
    for kernel in EXAMPLES:
        points = example_points(kernel, 12, rng)
        assert len(points) == 12
        if kernel.domain == "nonnegative":
            assert points.min() >= 0
        if kernel.domain in ("vectors", "nonnegative"):
            assert np.array_equal(points, points.astype(np.float32))  # the same in both precisions
            assert np.any(np.all(points == 0, axis=1)) and len(np.unique(points, axis=0)) < 12
