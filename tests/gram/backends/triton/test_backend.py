"""The Triton backend: run as Python on the CPU, and compiled on a GPU where there is one."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from mercer import Gaussian, Gram, Kernel, Laplacian, Linear, Matern, Polynomial, RationalQuadratic, config
from mercer.errors import InputError
from mercer.gram.backends import BACKENDS, make_backend
from mercer.kernels.formula.expression import cos, exp
from mercer.kernels.formula.program import Program
from mercer.kernels.formula.source import print_source
from mercer.kernels.formula.triton_source import Access, Reading, exponent_of
from mercer.testing import check_kernel, example_kernels, example_points

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from mercer.gram.backends.triton import backend as module  # noqa: E402
from mercer.gram.backends.triton.precision import FLOAT32, PRODUCTS, cheapest, rounded  # noqa: E402


class Damped(Kernel):
    def formula(self, pair):
        return exp(-pair.sqdist / 2) * cos(pair.sqdist)


KERNELS = [
    Gaussian(sigma=4.0),
    Matern(1.5, 5.0),
    RationalQuadratic(1.0, 5.0),
    2.0 * Gaussian(sigma=4.0) + Polynomial(3, c=1.0, gamma=0.1),
    Gaussian(sigma=4.0) * Linear() + Laplacian(0.1),
    Gaussian([3.0 + 0.1 * k for k in range(20)]).derivative("sigma[2]") + Damped(),
]
ROUGH = Matern(0.5, 5.0)
WIDTHS = [(3, Access.UNROLLED), (20, Access.ROWS), (150, Access.PRODUCTS)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("d", "access"), WIDTHS)
@pytest.mark.parametrize("kernel", KERNELS[:5], ids=lambda k: repr(k)[:30])
def test_every_way_to_read_points_agrees_with_the_oracle(kernel, d, access, dtype, rng):
    X, Y = rng.normal(size=(40, d)), rng.normal(size=(70, d))
    V = rng.normal(size=(70, 3))
    with config(backend="numpy"):
        expected = Gram(kernel, X, Y).dense()
    with config(backend="triton", dtype=dtype):
        K = Gram(kernel, X, Y)
        if dtype == "float32":
            assert {points.access for points in K._backend.points(K._x.side)} == {access}
        # a float32 product of 150 columns is off by some dozen units of the norms, exponents scale that
        tolerance = 1e-12 if dtype == "float64" else 1e-5
        scale = np.abs(expected).max()
        np.testing.assert_allclose(K.dense(), expected, atol=tolerance * scale)
        for W in (V, V[:, 0]):
            np.testing.assert_allclose(K @ W, expected @ W, atol=tolerance * scale * np.abs(V).sum())
            np.testing.assert_allclose(K.T @ np.ones(40), expected.sum(axis=0), atol=tolerance * scale * 40)
        np.testing.assert_allclose(K.rows([3, 5]), expected[[3, 5]], atol=tolerance * scale)


def test_a_derivative_by_one_of_many_scales(rng):
    X = rng.normal(size=(30, 20))
    with config(backend="numpy"):
        expected = Gram(KERNELS[5], X).dense()
    with config(backend="triton"):
        np.testing.assert_allclose(Gram(KERNELS[5], X).dense(), expected, atol=1e-13)


@pytest.mark.parametrize("d", [2, 40, 140])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_what_cancels_is_computed_from_differences_in_sums_too(d, dtype, rng):
    """Points 1e4 from the origin, in two places, and 1e-3 apart."""
    near = 1e-3 * rng.normal(size=(40, d))
    X = np.vstack([near[:20] + 1e4, near[20:] - 1e4])
    expected = np.exp(-cdist(X, X, "sqeuclidean") / 2e-6)
    V = rng.normal(size=(40, 2))
    with config(backend="triton", dtype=dtype):
        K = Gram(Gaussian(sigma=1e-3), X)
        # float64 itself keeps 1e4 + 1e-3 to 2e-12: squared distances to some 1e-8
        np.testing.assert_allclose(K @ V[:, 0], expected @ V[:, 0], atol=1e-4)
        np.testing.assert_allclose(K @ V, expected @ V, atol=1e-4)
        np.testing.assert_array_equal(np.diag(K.dense()), 1.0)


@pytest.mark.parametrize("most", [2**20, 3], ids=["pair by pair", "by tiles"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("d", [20, 150])
@pytest.mark.parametrize(
    "kernel",  # all of e^-r, which shows a lost digit of r²
    [ROUGH, ROUGH * Linear() + Laplacian(0.1), Polynomial(2).normalized() + ROUGH, ROUGH + Gaussian(4.0)],
    ids=lambda k: repr(k)[:30],
)
def test_stored_values_that_cancel_are_repaired(kernel, d, dtype, most, rng, monkeypatch):
    """Points with copies among others, five in a tile and more: nothing else is touched."""
    monkeypatch.setattr(module, "_MOST_PAIRS", most)
    X, Y = 3.0 + rng.normal(size=(70, d)), 3.0 + rng.normal(size=(90, d))
    Y[3:8], Y[70], Y[80] = X[60:65] + 1e-4 * rng.normal(size=(5, d)), X[60], X[2]
    with config(backend="numpy"):
        expected = Gram(kernel, X, Y).dense()
    with config(backend="triton", dtype=dtype):
        K = Gram(kernel, X, Y)
        found = K.dense()
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, atol=(1e-12 if dtype == "float64" else 1e-5) * scale)


def test_the_cheapest_product_that_is_good_enough_is_taken(rng):
    X, Y = rng.normal(size=(60, 20)), rng.normal(size=(50, 20))
    for error, name in ((1e-3, "tf32"), (1e-5, "tf32x3"), (1e-9, "float32")):
        with config(backend="triton", dtype="float32", kernel_error=error):
            K = Gram(Gaussian(sigma=4.0), X, Y)
            assert K._backend.product.name == name
            assert (f"products in {name}: relative error about" in repr(K)) is (name != "float32")
            exact = np.exp(-cdist(X, Y, "sqeuclidean") / 32)
            found = np.linalg.norm(K.dense() - exact) / np.linalg.norm(exact)
            assert found <= max(error, 1e-6)
            assert name != "tf32" or 0.5 < found / K._backend.error < 2  # what is stated is what it is
    with config(backend="triton", dtype="float32"):
        assert Gram(Gaussian(sigma=4.0), X[:, :3])._backend.product is FLOAT32  # there are no products


def test_a_narrow_kernel_takes_a_better_product(rng):
    X, Y = rng.normal(size=(60, 20)), rng.normal(size=(50, 20))
    with config(backend="triton", dtype="float32", kernel_error=1e-3):
        wide, narrow = (Gram(Gaussian(sigma=s), X, Y)._backend for s in (10.0, 0.5))
    assert (wide.product.name, narrow.product.name) == ("tf32", "tf32x3")


def test_rounding_to_bits():
    x = torch.tensor([1.0, 1 + 2.0**-10, 1 + 2.0**-11, 1 + 3 * 2.0**-11, -3.1415927, 1e-30])
    found = rounded(torch, x, 11).numpy()
    np.testing.assert_array_equal(found[:4], [1.0, 1 + 2.0**-10, 1.0, 1 + 2.0**-9])
    np.testing.assert_allclose(found, x.numpy(), rtol=2.0**-11)
    assert rounded(torch, x, 24) is x
    assert cheapest(lambda product: product.unit, 1e-5) == (PRODUCTS[1], PRODUCTS[1].unit)


def test_parts_of_sums_do_not_change_them(rng, monkeypatch):
    X, v = rng.normal(size=(50, 3)), rng.normal(size=50)
    with config(backend="triton"):
        whole = Gram(Gaussian(1.0), X) @ v
        monkeypatch.setattr(module, "_FEWEST_COLUMNS", 8)
        monkeypatch.setattr(module, "_SUMS", 64 * 7)
        np.testing.assert_allclose(Gram(Gaussian(1.0), X) @ v, whole, rtol=1e-13)


def test_blocks_of_given_products(rng, monkeypatch):
    X, V = rng.normal(size=(50, 150)), rng.normal(size=(50, 2))
    expected = np.exp(-cdist(X, X, "sqeuclidean") / 288)
    monkeypatch.setattr(module, "_GIVEN_ROWS", 16)
    monkeypatch.setattr(module, "_GIVEN_COLUMNS", 32)
    for dtype, tolerance in (("float64", 1e-13), ("float32", 1e-5)):
        with config(backend="triton", dtype=dtype):
            K = Gram(Gaussian(sigma=12.0), X)
            np.testing.assert_allclose(K.dense(), expected, atol=tolerance)
            np.testing.assert_allclose(K @ V, expected @ V, atol=50 * tolerance)


def test_new_parameters_print_nothing_new():
    one, other = (print_source(Program(Gaussian(sigma=s)), "triton") for s in (1.0, 2.0))
    assert one == other
    assert "tl.dot" in print_source(Program(Gaussian(1.0)), "triton", points=[Reading(Access.ROWS, 48)])


def test_the_constant_of_exponents():
    assert exponent_of(Program(Gaussian(1.0)), 0) == 0
    assert exponent_of(Program(2.0 * Gaussian(1.0) + Polynomial(2)), 0) is not None
    assert exponent_of(Program(Gaussian(1.0) + Gaussian(2.0)), 0) is None  # two constants
    assert exponent_of(Program(Matern(1.5)), 0) is None
    assert exponent_of(Program(Linear()), 0) is None


def test_chunks_are_powers_of_two():
    assert Reading(Access.ROWS, 112).chunks == [(0, 64), (64, 32), (96, 16)]


def test_a_device_without_triton_is_refused(monkeypatch):
    monkeypatch.setattr(module.elementary, "interprets", lambda: False)
    with config(backend="triton"), pytest.raises(InputError) as caught:
        Gram(Gaussian(1.0), [[1.0]])
    assert str(caught.value) == (
        "backend='triton' computes on CUDA devices, got device='cpu': pass device='cuda', "
        "or let mercer choose (backend=None), which takes what the device can run"
    )


@pytest.mark.parametrize(("installed", "name"), [(True, "triton"), (False, "torch")])
def test_who_computes_on_cuda(monkeypatch, installed, name):
    loaded = []
    monkeypatch.setattr("mercer.gram.backends._is_installed", lambda library: installed)
    monkeypatch.setattr("mercer.gram.backends._loaded", lambda path: loaded.append(path) or pytest.skip)
    with pytest.raises(AttributeError):
        make_backend(None, Program(Gaussian(1.0)), "float64", "cuda:1")
    assert loaded == [BACKENDS[name][0]]


# --- on a GPU --------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kernel", example_kernels(), ids=lambda k: repr(k)[:60])
@pytest.mark.filterwarnings("ignore::mercer.errors.SlowPathWarning")
def test_the_battery_on_a_gpu(kernel, dtype):
    points = example_points(kernel, 10, np.random.default_rng(0))
    with config(device="cuda"):
        check_kernel(kernel, points[:7], points[4:], backend="triton", dtype=dtype)


@pytest.mark.gpu
@pytest.mark.parametrize("error", [1e-3, None])
@pytest.mark.parametrize("d", [3, 12, 32, 100, 300])
@pytest.mark.parametrize("kernel", KERNELS[:5], ids=lambda k: repr(k)[:30])
def test_many_points_on_a_gpu(kernel, d, error, rng):
    X, Y = rng.normal(size=(3000, d)).astype(np.float32), rng.normal(size=(5000, d)).astype(np.float32)
    X[:50] = Y[:50]
    with config(backend="numba"):
        expected = Gram(kernel, X, Y).dense()
    V = rng.normal(size=(5000, 5))
    with config(device="cuda", dtype="float32", kernel_error=error):
        K = Gram(kernel, X, Y)
        # On top comes what tensor cores cut off their sums, three times in a cube, and off the values that
        # are multiplied into several vectors.
        bound = 2 * (error or 3e-6)
        for W in (V, V[:, 0]):
            exact = expected @ W
            assert np.linalg.norm(K @ W - exact) <= bound * np.linalg.norm(exact)
        assert np.linalg.norm(K.dense() - expected) <= bound * np.linalg.norm(expected)
        symmetric = Gram(kernel, Y).dense()
        np.testing.assert_array_equal(symmetric, symmetric.T)
