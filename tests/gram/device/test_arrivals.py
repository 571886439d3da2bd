"""Points that a device makes ready itself, beside those that the host prepares."""

import numpy as np
import pytest

from mercer import Gaussian, Gram, KernelRidge, Laplacian, Linear, Matern, Polynomial, config
from mercer import expansion as expansion_module
from mercer.errors import InputError
from mercer.expansion import Expansion

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
pytestmark = pytest.mark.torch

from mercer.gram.backends.torch import where_of  # noqa: E402
from mercer.gram.device import arrivals as module  # noqa: E402
from mercer.gram.device.arrivals import arriving, received, receives, values  # noqa: E402

KERNELS = [
    Gaussian(sigma=4.0),
    Gaussian(sigma=4.0) * Linear() + Laplacian(0.1),
    2.0 * Matern(0.5, 5.0) + Polynomial(3, c=1.0, gamma=0.1),
]


@pytest.mark.parametrize(
    ("real", "points"), [("float64", "f8"), ("float64", "f4"), ("float32", "f8"), ("float32", "f4")]
)
@pytest.mark.parametrize("d", [3, 20, 150])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: repr(k)[:20])
def test_products_are_those_of_points_that_the_host_prepares(kernel, d, real, points, rng, monkeypatch):
    monkeypatch.setattr(module, "_PART", 16 * d * 8)
    X, Y, V = 2.0 + rng.normal(size=(50, d)), 2.0 + rng.normal(size=(40, d)), rng.normal(size=(40, 2))
    X[7], X = Y[3] + 1e-4, X.astype(points)
    with config(backend="numpy"):
        expected = Gram(kernel, X.astype(float), Y) @ V
    with config(backend="triton", dtype=real):
        gram = Gram(kernel, X[:1], Y)
        found = values(gram, X, V)
    atol = (1e-11 if real == "float64" else 2e-5) * np.abs(expected).max()
    np.testing.assert_allclose(found, expected, atol=atol)


def test_norms_and_shifts_are_those_of_the_host(rng):
    X, Y = 5.0 + rng.normal(size=(30, 20)), 5.0 + rng.normal(size=(40, 20))
    with config(backend="triton", dtype="float64"):
        gram = Gram(KERNELS[1] + Gaussian(2.0) * Polynomial(2), X[:1], Y)
        there, here = received(gram, X), gram.beside(X)._x
    np.testing.assert_allclose(there.values.numpy(), here.values.numpy(), rtol=1e-13)
    assert there.largest == pytest.approx(max(view.norms.max() for view in here.side.views), rel=1e-13)


def test_what_goes_another_way():
    X = np.arange(12.0).reshape(6, 2)
    with config(backend="triton"):
        plain = Gram(Gaussian(1.0), X[:1], X)
        assert receives(plain, X) and receives(plain, X.astype("f4"))
        for other in (X[:, :1].copy(), X[::2], X.tolist(), X.astype(int), np.asfortranarray(X)):
            assert not receives(plain, other)
        with config(dtype="float32"):
            assert not receives(Gram(Gaussian(1.0), X[:1].astype("f4"), X.astype("f4")), X)
        assert not receives(Gram(Gaussian([1.0, 2.0]), X[:1], X), X)  # columns are scaled first
        assert not receives(Gram(Polynomial(2).normalized(), X[:1], X), X)  # k(x, x) of each point
        assert received(plain, np.where(X == 5.0, np.inf, X)) is None
        assert values(plain, np.where(X == 5.0, np.nan, X), np.ones((6, 1))) is None
    with config(backend="torch"):
        assert not receives(Gram(Gaussian(1.0), X[:1], X), X)


def test_parts_are_in_their_order(rng, monkeypatch):
    monkeypatch.setattr(module, "_PART", 7 * 24)
    X = rng.normal(size=(40, 3))
    parts = list(arriving(X, where_of("cpu")))
    assert [part.start for part, _ in parts] == [*range(0, 40, 7)]
    np.testing.assert_array_equal(torch.cat([rows for _, rows in parts]).numpy(), X)


@pytest.fixture
def streaming(monkeypatch):
    """Triton on the CPU as if it were a device, for any number of points; how often these were sent."""
    monkeypatch.setattr(expansion_module, "_WORTH_A_STREAM", 1)
    monkeypatch.setattr(expansion_module, "is_used", lambda: True)
    sent = []
    monkeypatch.setattr(module, "values", lambda *given: sent.append(1) or values(*given))
    return sent


def test_predictions_of_a_model_are_streamed(streaming, rng):
    X, y = rng.normal(size=(60, 4)), rng.normal(size=60)
    model = KernelRidge(kernel=Gaussian(1.0)).fit(X, np.stack([y, y**2], axis=1))
    new = rng.normal(size=(30, 4))
    expected = model.expansion_.kernel(new, X) @ model.expansion_.coef + model.intercept_
    with config(backend="triton"):
        np.testing.assert_allclose(model.predict(new), expected, rtol=1e-10)
        assert len(streaming) == 1
        np.testing.assert_allclose(model.expansion_(new[0]), expected[0], rtol=1e-10)
        new[17, 2] = np.nan
        with pytest.raises(InputError, match=r"X contains 1 NaN, the first at X\[17, 2\]"):
            model.predict(new)
        with pytest.raises(ValueError, match="X has 3 features"):
            model.predict(np.ones((30, 3)))


def test_values_of_points_that_a_device_cannot_make_ready(streaming, rng):
    X, new = rng.normal(size=(20, 2)), rng.normal(size=(30, 2))
    f = Expansion(Gaussian([1.0, 2.0]), X, rng.normal(size=20))
    with config(backend="triton"):
        np.testing.assert_allclose(f(new), f.kernel(new, X) @ f.coef, rtol=1e-10)


@pytest.mark.gpu
@pytest.mark.parametrize("d", [3, 30, 784])
def test_many_points_on_a_gpu(d, rng, monkeypatch):
    """In five parts of fourteen pieces each, one of them short; memory for eight pieces is used in turn."""
    monkeypatch.setattr(module, "_PART", 4 * d * 4000)
    monkeypatch.setattr(module, "_PIECE", 4 * d * 300)
    X, Y = (rng.normal(size=(n, d)).astype(np.float32) for n in (17_000, 3000))
    f = Expansion(Gaussian(sigma=d**0.5), Y, rng.normal(size=(3000, 2)))
    for real, tolerance in (("float32", 1e-6), ("float64", 1e-13)):
        with config(device="cuda", dtype=real):
            found = values(f._gram(X[:100], None), X, f.coef)
            again = f(X) if X.size >= 2**20 else found
        expected = f(X[::100].astype(float))
        assert np.linalg.norm(found[::100] - expected) <= tolerance * np.linalg.norm(expected)
        np.testing.assert_array_equal(again, found)
