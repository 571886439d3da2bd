"""Rows that stay on a device, and blocks that come from it, against the oracle."""

import numpy as np
import pytest
from scipy import sparse

from mercer import Gaussian, Gram, Laplacian, Polynomial, Spectrum, config
from mercer.gram.device.kernel_rows import device_room, device_rows, holds_points

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def require_rows_and_blocks(K, exact, tolerance):
    """Some rows into places in any order, some columns of them; and a block."""
    n = len(exact)
    index, places = np.array([3, n - 1, 0, 11]), np.array([8, 1, 0, 4])
    out = K.empty(9, n + 4)
    K.write_rows(index, (5, n), out, places)
    np.testing.assert_allclose(out[places, 5:n].cpu().numpy(), exact[index, 5:], rtol=0, atol=tolerance)
    np.testing.assert_allclose(K.block(index), exact[np.ix_(index, index)], rtol=0, atol=tolerance)
    assert K.block(index).dtype == K.dtype and K.shape == exact.shape


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [3, 20, 150])  # those that Triton reads one by one, multiplies, and is given
@pytest.mark.parametrize("backend", ["torch", "triton"])
def test_rows_and_blocks(backend, d, dtype, rng):
    if backend == "triton":
        pytest.importorskip("triton")
    X = 3.0 + rng.normal(size=(70, d))
    X[11] = X[3]  # a distance that cancels
    kernel = Gaussian(sigma=d**0.5) + 0.1 * Laplacian(0.1)
    exact = Gram(kernel, X).dense()
    with config(backend=backend, dtype=dtype):
        K = device_rows(Gram(kernel, X))
    require_rows_and_blocks(K, exact, 1e-5 if dtype == "float32" else 1e-12)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [3, 30, 300])
def test_rows_and_blocks_on_a_gpu(d, dtype, rng):
    X = rng.normal(size=(700, d))
    exact = Gram(Gaussian(sigma=d**0.5), X).dense()
    with config(device="cuda", dtype=dtype):
        K = device_rows(Gram(Gaussian(sigma=d**0.5), X))
    require_rows_and_blocks(K, exact, 1e-5 if dtype == "float32" else 1e-12)


def test_what_has_no_tensors_of_its_points():
    X = np.eye(3)
    assert holds_points(Gaussian(1.0), X)
    assert not holds_points(Gaussian(1.0), sparse.csr_array(X))
    assert not holds_points(Spectrum(2), ["ab", "bc"])
    with config(backend="torch"):
        assert device_rows(Gram(Gaussian(1.0), sparse.csr_array(X))) is None
        assert device_rows(Gram(Polynomial(2), X, X[:2])) is None
    with config(backend="numpy"):
        assert device_rows(Gram(Gaussian(1.0), X)) is None


def test_rows_take_half_of_the_budget():
    with config(device_memory="8MiB"):
        assert device_room("cpu") == 2**22
    assert device_room("cpu") > 2**22
