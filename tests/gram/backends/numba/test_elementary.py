"""The compiled elementary functions against NumPy and SciPy, in units in the last place (ulp)."""

import numpy as np
import pytest
from numba import njit
from scipy import special

from mercer.gram.backends.numba import bessel, elementary
from mercer.kernels.formula.expression import OPERATIONS
from mercer.runtime import native

TOOLS = {"by_precision", "polynomial_of"}
PRECISIONS = pytest.mark.parametrize("real", [np.float64, np.float32], ids=["float64", "float32"])


def compiled(name):
    """The function over whole arrays, called as printed code calls it: inside a compiled loop."""
    function = getattr(bessel if name == "matern_shape" else elementary, name)
    arity = {"power": 2, "integer_power": 2, "large_power": 2, "minimum": 2, "maximum": 2, "less_equal": 2}
    arity |= {"matern_shape": 2, "where": 3}

    @njit(**native.OPTIONS)
    def one(x):
        out = np.empty_like(x)
        for i in range(x.size):
            out[i] = function(x[i])
        return out

    @njit(**native.OPTIONS)
    def two(x, y):
        out = np.empty_like(x)
        for i in range(x.size):
            out[i] = function(x[i], y[i])
        return out

    @njit(**native.OPTIONS)
    def three(x, y, z):
        out = np.empty_like(x)
        for i in range(x.size):
            out[i] = function(x[i], y[i], z[i])
        return out

    return {1: one, 2: two, 3: three}[arity.get(name, 1)]


@pytest.fixture(scope="module")
def functions():
    return {name: compiled(name) for name in {*elementary.__all__, *bessel.__all__} - TOOLS}


def call(function, real, *arguments):
    arrays = np.broadcast_arrays(*(np.atleast_1d(np.asarray(a, dtype=real)) for a in arguments))
    out = function(*(np.ascontiguousarray(a) for a in arrays))
    assert out.dtype == real
    return out


def worst(found, wanted):
    """The largest error in ulps of the right value; ``wanted`` in float64 or better."""
    real = found.dtype.type
    unit = np.spacing(np.abs(wanted).astype(real)).astype(np.longdouble)
    return float(np.max(np.abs(found.astype(np.longdouble) - wanted.astype(np.longdouble)) / unit))


def exact(function, real, *arguments):
    """NumPy's value at the arguments as the precision holds them, in the widest arithmetic there is."""
    return function(*(np.asarray(a, dtype=real).astype(np.longdouble) for a in arguments))


def test_every_operation_has_its_function_here():
    names = {*elementary.__all__, *bessel.__all__} - TOOLS
    arithmetic = {"add", "subtract", "multiply", "divide"}
    assert names == OPERATIONS.keys() - arithmetic


# --- one argument ---------------------------------------------------------------------------------

RANGES = {  # where kernels use them: the range in each precision, and the ulps allowed there
    "exp": {np.float64: (-708, 709, 2), np.float32: (-87, 88, 2)},
    "log": {np.float64: (1e-300, 1e300, 3), np.float32: (1e-37, 1e37, 3)},
    "sqrt": {np.float64: (0, 1e300, 1), np.float32: (0, 1e37, 1)},
    "tanh": {np.float64: (-25, 25, 4), np.float32: (-12, 12, 4)},
    "arccos": {np.float64: (-1, 1, 4), np.float32: (-1, 1, 4)},
    "absolute": {np.float64: (-1e300, 1e300, 0), np.float32: (-1e37, 1e37, 0)},
}


def places(name, real):
    """Evenly, and crowded to the small end: 40,000 numbers."""
    low, high, _ = RANGES[name][real]
    rng = np.random.default_rng(7)
    if name in ("log", "sqrt"):
        return np.exp(rng.uniform(np.log(max(low, 1e-37)), np.log(high), 40_000))
    small = np.exp(rng.uniform(np.log(1e-12), np.log(high), 20_000)) * rng.choice([-1.0, 1.0], 20_000)
    return np.clip(np.concatenate([rng.uniform(low, high, 20_000), small]), low, high)


@pytest.mark.sample(3)
@PRECISIONS
@pytest.mark.parametrize("name", RANGES)
def test_accuracy_in_ulps(name, real, functions):
    x = places(name, real)
    found = call(functions[name], real, x)
    allowed = RANGES[name][real][2]
    assert worst(found, exact(getattr(np, name), real, x)) <= allowed + 0.5


@pytest.mark.sample(3)
@PRECISIONS
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_sine_and_cosine_are_right_absolutely(name, real, functions):
    """π is split in three parts: up to some thousand periods the error is a few ε of 1, zeros included."""
    x = np.concatenate([np.linspace(-30, 30, 20_001), np.random.default_rng(7).uniform(-3000, 3000, 20_000)])
    gap = np.abs(call(functions[name], real, x) - exact(getattr(np, name), real, x))
    assert gap.max() <= 4 * np.finfo(real).eps


@PRECISIONS
def test_sine_near_zero_keeps_its_relative_accuracy(real, functions):
    x = np.exp(np.linspace(np.log(1e-30), np.log(1.5), 5000))
    assert worst(call(functions["sin"], real, x), exact(np.sin, real, x)) <= 2.5


@PRECISIONS
def test_edges_of_exp(real, functions):
    exp = functions["exp"]
    assert call(exp, real, [0.0, -0.0]).tolist() == [1.0, 1.0]
    assert call(exp, real, [-1e4, -np.inf, -np.finfo(real).max]).tolist() == [0.0, 0.0, 0.0]
    assert np.all(np.isinf(call(exp, real, [1e4, np.inf, np.finfo(real).max])))
    tiny = np.finfo(real).tiny
    assert call(exp, real, [np.log(tiny) - 2])[0] <= tiny  # gradual underflow is flushed, never garbage
    assert call(exp, real, [1e-20, -1e-20]).tolist() == [1.0, 1.0]


@PRECISIONS
def test_exp_is_monotonous_across_its_pieces(real, functions):
    """Between pieces of length ln 2 the polynomial starts anew: no step down beyond one ulp."""
    x = np.sort(
        np.concatenate([(k + 0.5) * np.log(2) + np.linspace(-1e-3, 1e-3, 101) for k in range(-60, 60)])
    )
    found = call(functions["exp"], real, np.unique(x.astype(real))).astype(np.longdouble)
    assert np.all(np.diff(found) >= -2 * np.spacing(found[1:].astype(real)))


@PRECISIONS
def test_edges_of_log(real, functions):
    log = functions["log"]
    assert call(log, real, [1.0])[0] == 0.0
    near = 1 + np.linspace(-0.05, 0.05, 2001)
    assert worst(call(log, real, near), exact(np.log, real, near)[...]) <= 3.5
    powers = 2.0 ** np.arange(-100, 100)
    assert worst(call(log, real, powers), exact(np.log, real, powers)) <= 1.5


@PRECISIONS
def test_edges_of_tanh(real, functions):
    tanh = functions["tanh"]
    assert call(tanh, real, [0.0])[0] == 0.0
    assert call(tanh, real, [50.0, -50.0, 1e4, -1e4, np.inf, -np.inf]).tolist() == [1, -1, 1, -1, 1, -1]
    x = np.linspace(-3, 3, 999)
    np.testing.assert_array_equal(call(tanh, real, x), -call(tanh, real, -x))  # odd
    tiny = np.array([1e-30, -1e-30, 1e-8])
    np.testing.assert_array_equal(call(tanh, real, tiny), tiny.astype(real))
    assert np.all(np.abs(call(tanh, real, np.linspace(-20, 20, 9999))) <= 1)


@PRECISIONS
def test_edges_of_arccos(real, functions):
    arccos = functions["arccos"]
    np.testing.assert_array_equal(
        call(arccos, real, [1.0, -1.0, 0.0]), np.array([0, np.pi, np.pi / 2], dtype=real)
    )
    close = 1 - np.exp(np.linspace(np.log(1e-7), np.log(0.5), 500))
    assert worst(call(arccos, real, close), exact(np.arccos, real, close)) <= 4.5
    assert worst(call(arccos, real, -close), exact(np.arccos, real, -close)) <= 4.5
    halves = np.nextafter(
        np.array([0.5, -0.5], dtype=real), real(0)
    )  # where one formula hands over to the other
    assert worst(call(arccos, real, halves), exact(np.arccos, real, halves)) <= 2.5


# --- powers ---------------------------------------------------------------------------------------


@PRECISIONS
def test_integer_power(real, functions):
    """n - 1 rounded products of factors whose errors double with each squaring: about n ulps."""
    rng = np.random.default_rng(3)
    for n in range(64):
        x = rng.uniform(-2, 2, 200) if n < 40 else rng.uniform(-1.5, 1.5, 200)
        found = call(functions["integer_power"], real, x, np.full(200, n))
        assert worst(found, exact(lambda a, n=n: a**n, real, x)) <= n + 1
    assert call(functions["integer_power"], real, [0.0, 5.0, -3.0], 0.0).tolist() == [1.0, 1.0, 1.0]
    assert call(functions["integer_power"], real, 0.0, [1.0, 2.0, 63.0]).tolist() == [0.0, 0.0, 0.0]


@PRECISIONS
@pytest.mark.parametrize("n", [0, 1, 2, 63, 64, 65, 127, 128, 200, 1000])
def test_large_power(real, n, functions):
    x = np.random.default_rng(n).uniform(-1.05, 1.05, 200)
    x = np.where(np.abs(x) < 0.95, np.sign(x), x)  # results within either range
    found = call(functions["large_power"], real, x, np.full(200, n))
    assert worst(found, exact(lambda a: a**n, real, x)) <= n + 1


@PRECISIONS
def test_power(real, functions):
    """exp(y log x): the relative error is that of the exponent, |y log x| times ε."""
    rng = np.random.default_rng(5)
    x, y = np.exp(rng.uniform(-8, 8, 20_000)), rng.uniform(-5, 5, 20_000)
    found = call(functions["power"], real, x, y)
    wanted = exact(np.power, real, x, y)
    size = np.abs(exact(lambda a, b: b * np.log(a), real, x, y))
    assert np.all(np.abs(found - wanted) <= (4 + 4 * size) * np.finfo(real).eps * wanted)
    assert call(functions["power"], real, 1.0, [0.5, -3.0]).tolist() == [1.0, 1.0]


@PRECISIONS
def test_power_of_zero_is_the_limit(real, functions):
    assert call(functions["power"], real, 0.0, [0.5, 1.5]).tolist() == [0.0, 0.0]


# --- choices --------------------------------------------------------------------------------------


@pytest.mark.sample(5)
@PRECISIONS
@pytest.mark.parametrize("name", ["minimum", "maximum", "less_equal"])
def test_choices(name, real, functions):
    x, y = np.meshgrid([-2.0, -0.0, 0.0, 0.5, 3.0], [-2.0, 0.0, 0.5, 3.0])
    found = call(functions[name], real, x.ravel(), y.ravel())
    np.testing.assert_array_equal(found, OPERATIONS[name].value(x.ravel(), y.ravel()))


@PRECISIONS
def test_where(real, functions):
    condition = [1.0, 0.5, 0.0, -1.0]
    assert call(functions["where"], real, condition, 7.0, 8.0).tolist() == [7.0, 7.0, 8.0, 8.0]


@PRECISIONS
def test_what_is_not_chosen_does_no_harm(real, functions):
    assert call(functions["where"], real, [1.0, 0.0], [7.0, np.inf], [np.nan, 8.0]).tolist() == [7.0, 8.0]


# --- the Bessel function --------------------------------------------------------------------------

ORDERS = [0.1, 0.3, 0.5, 0.8, 1.0, 1.2, 1.5, 2.0, 2.5, 3.3, 4.0, 5.5, 6.7, 8.0]


@pytest.mark.sample(9)
@PRECISIONS
@pytest.mark.parametrize("nu", ORDERS)
def test_matern_shape(nu, real, functions):
    """2^{1-ν}/Γ(ν) z^ν K_ν(z) for z from 0 to 700, against SciPy.

    Up to z = 3 it is a series whose terms are e^{2z} ≤ 400 times as large as their sum: some 400 ε. Elsewhere
    z^ν costs ε ν |ln z| and exp(-z) costs ε z.
    """
    z = np.concatenate([[0.0], np.exp(np.linspace(np.log(1e-12), np.log(650), 400))])
    z = z[z < (700 if real is np.float64 else 80)].astype(real)  # beyond, float32 has no such numbers
    found = call(functions["matern_shape"], real, nu, z).astype(np.float64)
    order, z = float(real(nu)), z.astype(np.float64)
    with np.errstate(invalid="ignore"):
        wanted = 2 ** (1 - order) / special.gamma(order) * z**order * special.kv(order, z)
    wanted[0] = 1.0
    dozens = 64 * (16 + order * (1 + np.abs(np.log(np.maximum(z, 1e-12)))))
    allowed = np.finfo(float).eps * (dozens + z) + np.finfo(real).eps
    np.testing.assert_array_less(np.abs(found / wanted - 1), allowed)


@PRECISIONS
def test_matern_shape_of_orders_below_zero(real, functions):
    """In the derivative ν - 1 may be negative: K_{-ν} = K_ν, and 0 at 0 where the product diverges."""
    z = np.array([1e-3, 0.5, 2.0, 30.0])
    for nu in (-0.9, -0.5, -0.2, 0.0):
        found = call(functions["matern_shape"], real, nu, z)
        wanted = exact(
            lambda a, nu=nu: a ** float(real(nu)) * special.kv(float(real(nu)), a.astype(float)), real, z
        )
        np.testing.assert_allclose(found, wanted.astype(float), rtol=1e-12 if real is np.float64 else 2e-6)
        assert call(functions["matern_shape"], real, nu, 0.0)[0] == 0.0


@PRECISIONS
def test_matern_shape_far_out_is_zero(real, functions):
    assert call(functions["matern_shape"], real, 1.2, [800.0, 1e4, 1e9]).tolist() == [0.0, 0.0, 0.0]


def test_matern_shape_at_enormous_distances_ends(fork):
    """Step widths so small that cosh(h) = 1 must not keep the sum going for ever; in a process that can be
    stopped."""
    code = "import signal; from mercer import Matern\n"
    code += "signal.alarm(60); print(Matern(1.2)([[0.0]], [[1e17]]).item())"
    assert fork(code).said() == "0.0"


# --- how they are compiled ------------------------------------------------------------------------


def test_nothing_is_reordered():
    """The reduction of arguments relies on the rounding of x + M."""
    assert set(native.OPTIONS["fastmath"]) == {"contract", "nsz"}


@pytest.mark.parametrize("name", ["exp", "log", "sin", "cos", "tanh", "arccos"])
def test_loops_are_vectorised(name, functions):
    """The point of the file: no call of libm, and whole vectors in the machine code."""
    functions[name](np.ones(8))
    for code in functions[name].inspect_asm().values():
        assert any(register in code for register in ("ymm", "zmm", "xmm", ".2d"))
        assert f"callq\t{name}" not in code and f"call\t{name}" not in code


def test_functions_are_for_compiled_code():
    with pytest.raises(NotImplementedError, match="exp is for compiled code"):
        elementary.exp(1.0)
