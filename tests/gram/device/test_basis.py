"""The basis of landmarks on a device, against that of the CPU."""

import numpy as np
import pytest

from mercer import Gaussian, Gram, Linear, config
from mercer.errors import InputError, MemoryBudgetError
from mercer.solvers.landmarks.basis import independent

torch = pytest.importorskip("torch")

from mercer.gram.backends.torch import where_of  # noqa: E402
from mercer.gram.device.basis import independent_on_device  # noqa: E402
from mercer.gram.device.memory import DeviceRoom  # noqa: E402
from mercer.gram.device.rows import DeviceBlocks  # noqa: E402


def there(kernel, Z, memory="8MiB", precision=np.float64):
    with config(device="cpu:0", device_memory=memory):
        room = DeviceRoom(where_of("cpu"))
        return (*independent_on_device(Gram(kernel, Z), precision, room), room)


def test_a_square_of_features_is_that_of_the_cpu(rng):
    """Of the same functions: the order of landmarks differs, and with it T, but not K T⁻¹T⁻ᵀ Kᵀ."""
    X, Z = rng.normal(size=(200, 3)), rng.normal(size=(30, 3))
    kernel, weight = Gaussian(sigma=0.7), rng.uniform(size=200)
    kept, basis, room = there(kernel, Z)
    assert kept.tolist() == list(range(30))
    K = Gram(kernel, X, Z).dense()
    T = np.linalg.cholesky(Gram(kernel, Z).dense()).T
    Phi = np.linalg.solve(T.T, K.T).T
    with config(device="cpu:0"):
        rows = DeviceBlocks(kernel, X, Z, room)
    total, first = basis.square(rows, weight)
    expected = (Phi.T * weight) @ Phi
    np.testing.assert_allclose(np.triu(total.numpy()), np.triu(expected), atol=1e-8)
    np.testing.assert_allclose(first.numpy(), Phi.T @ weight, atol=1e-8)
    square = basis.bordered(total, first, float(weight.sum()))
    whole = np.block([[expected, (Phi.T @ weight)[:, None]], [Phi.T @ weight, weight.sum()]])
    V = rng.normal(size=(31, 2))
    inverse = basis.inverse(square, np.full(31, 0.1), 0.0)
    np.testing.assert_allclose(inverse(V), np.linalg.solve(whole + 0.1 * np.eye(31), V), atol=1e-7)
    with config(device="cpu:0"):
        own = DeviceBlocks(kernel, np.vstack([Z, X]), Z, room)
    together, _ = basis.square(own, np.concatenate([np.ones(30), weight]), own=30)
    np.testing.assert_allclose(np.triu(together.numpy()), np.triu(expected + T @ T.T), atol=1e-8)


def test_norms(rng, monkeypatch):
    """That of T⁻¹, which certificates rest on, is not estimated; blocks of it are off by rounding alone."""
    monkeypatch.setattr("mercer.gram.device.triangle._BLOCK_ROWS", 30)
    Z = rng.normal(size=(80, 2))
    _, basis, _ = there(Gaussian(sigma=0.5), Z)
    _, exact = independent(Gram(Gaussian(sigma=0.5), Z).dense(), np.float64)
    T = basis.triangle.T.numpy()
    assert basis.inverse_norm == pytest.approx(np.linalg.norm(np.linalg.inv(T)), rel=1e-9)
    assert basis.inverse_norm == pytest.approx(exact.inverse_norm, rel=1e-3)  # pivots in another order
    assert basis.amplification == pytest.approx(exact.amplification, rel=0.5)


def test_landmarks_that_are_combinations_of_others_are_left_out(rng):
    """Of 40 points in 3 dimensions the linear kernel needs 3; of duplicates one of each is kept."""
    Z = rng.normal(size=(40, 3))
    kept, basis, _ = there(Linear(), Z)
    assert len(kept) == basis.size == 3
    T = basis.T
    np.testing.assert_allclose(T.T @ T, Z[kept] @ Z[kept].T, atol=1e-10)
    kept, basis, _ = there(Gaussian(sigma=1.0), np.repeat(Z, 2, axis=0))
    assert sorted(kept // 2) == list(range(40))


def test_a_kernel_that_is_none_is_refused(rng):
    from mercer import Sigmoid

    with pytest.raises(InputError, match="not positive semi-definite"):
        there(Sigmoid(1.0, -3.0), rng.normal(size=(40, 3)))
    with pytest.raises(InputError, match="is 0 for every landmark"):
        there(Linear(), np.zeros((3, 2)))


def test_nothing_is_allocated_beyond_the_budget(rng):
    with pytest.raises(
        MemoryBudgetError, match=r"the matrix of 200 landmarks needs 312KiB on the device, more"
    ):
        there(Gaussian(sigma=1.0), rng.normal(size=(200, 2)), memory="300KiB")
