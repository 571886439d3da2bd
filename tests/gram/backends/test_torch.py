"""The Torch backend: threads, devices, and the GPU where there is one."""

import numpy as np
import pytest

from mercer import Gaussian, Gram, Laplacian, Matern, Polynomial, config
from mercer.errors import InputError

torch = pytest.importorskip("torch")
KERNELS = [Gaussian(sigma=2.0) + Polynomial(2, c=1.0), Laplacian(0.3), Matern(nu=1.2)]


def test_an_unknown_device_is_refused():
    with (
        config(device="abacus"),
        pytest.raises(InputError, match=r"device 'abacus' cannot be used \(.*\): pass one that torch has"),
    ):
        Gram(Gaussian(1.0), [[1.0]])


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_a_missing_gpu_is_refused():
    with config(device="cuda"), pytest.raises(InputError, match="device 'cuda' cannot be used"):
        Gram(Gaussian(1.0), [[1.0]])


def test_torch_keeps_its_own_number_of_threads(rng):
    before = torch.get_num_threads()
    with config(backend="torch", threads=1):
        Gram(Gaussian(1.0), rng.normal(size=(10, 2))).dense()
    assert torch.get_num_threads() == before


def test_tensors_are_points(rng):
    X = rng.normal(size=(10, 2))
    with config(backend="torch"):
        np.testing.assert_array_equal(Gaussian(1.0)(torch.as_tensor(X)), Gaussian(1.0)(X))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_gpu_agrees_with_the_oracle(kernel, dtype, rng):
    X, Y, V = rng.normal(size=(9000, 12)), rng.normal(size=(700, 12)), rng.normal(size=(700, 3))
    with config(backend="numpy"):
        expected = Gram(kernel, X, Y).dense()
    tolerance = 1e-11 if dtype == "float64" else 2e-5
    with config(device="cuda", dtype=dtype):
        K = Gram(kernel, X, Y)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(K.dense(), expected, atol=tolerance * scale)
        np.testing.assert_allclose(K @ V, expected @ V, atol=tolerance * scale * 700)
        np.testing.assert_allclose(K.rows([3, 5]), expected[[3, 5]], atol=tolerance * scale)
        symmetric = Gram(kernel, Y).dense()
        np.testing.assert_array_equal(symmetric, symmetric.T)
