"""Formulas as trees: every operation's meaning, derivative and printers say the same; trees stay small."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.kernels.formula.calculus import differentiate, evaluate, statements, substitute
from mercer.kernels.formula.expression import (
    ONE,
    OPERATIONS,
    ZERO,
    Apply,
    Number,
    Symbol,
    absolute,
    arccos,
    cos,
    exp,
    integer_power,
    inverse_root,
    is_whole,
    log,
    maximum,
    minimum,
    sin,
    sqrt,
    tanh,
    where,
    wrap,
)
from mercer.kernels.formula.special import matern_shape

s, t = Symbol("s"), Symbol("t")

# arguments at which each operation is smooth
PLACES = {
    "add": [(1.5, -2.0)],
    "subtract": [(1.5, -2.0)],
    "multiply": [(1.5, -2.0), (0.0, 3.0)],
    "divide": [(1.5, -2.0), (0.0, 0.5)],
    "integer_power": [(1.5, 3.0), (-1.5, 4.0), (0.0, 2.0), (2.0, 1.0)],
    "large_power": [(1.01, 70.0), (-0.99, 65.0)],
    "power": [(1.5, 0.7), (2.0, -1.3)],
    "exp": [(0.3,), (-4.0,)],
    "log": [(0.3,), (5.0,)],
    "sqrt": [(0.3,), (5.0,)],
    "tanh": [(0.3,), (-2.0,), (0.0,)],
    "sin": [(0.3,), (-2.0,)],
    "cos": [(0.3,), (-2.0,)],
    "arccos": [(0.3,), (-0.9,)],
    "absolute": [(0.3,), (-2.0,)],
    "minimum": [(0.3, 0.4), (0.4, 0.3)],
    "maximum": [(0.3, 0.4), (0.4, 0.3)],
    "less_equal": [(0.3, 0.4), (0.4, 0.3)],
    "where": [(1.0, 0.3, 0.4), (-1.0, 0.3, 0.4)],
    "matern_shape": [(1.2, 0.7), (0.4, 2.0), (-0.3, 1.1)],
}

every_operation = pytest.mark.parametrize("name", OPERATIONS)


def value(expression, **leaves):
    return float(evaluate(expression, lambda leaf: leaves[leaf.name]))


def test_every_operation_is_tested():
    assert PLACES.keys() == OPERATIONS.keys()


# --- derivatives -------------------------------------------------------------------------------------


@every_operation
def test_partial_derivatives_are_those_of_the_value(name):
    symbols = tuple(map(Symbol, "abc"))
    for place in PLACES[name]:
        arguments = symbols[: len(place)]
        if name == "matern_shape":  # its order is always a number
            arguments = (Number(place[0]), symbols[1])
        leaves = dict(zip("abc", place, strict=False))
        expression = Apply(name, arguments)
        partials = OPERATIONS[name].partials(*arguments)
        assert len(partials) == len(place)
        for symbol, partial in zip(arguments, partials, strict=True):
            if partial is None and isinstance(symbol, Number):
                continue
            if partial is None:
                with pytest.raises(ValueError, match="has no derivative in its order or exponent"):
                    differentiate(expression, symbol)
                continue
            h = 6e-6  # ε^(1/3): the error of central differences is about h², and ε/h from rounding
            up, down = ({**leaves, symbol.name: leaves[symbol.name] + d} for d in (h, -h))
            numerical = (value(expression, **up) - value(expression, **down)) / (2 * h)
            assert value(partial, **leaves) == pytest.approx(numerical, rel=1e-7, abs=1e-8)
            assert value(differentiate(expression, symbol), **leaves) == value(partial, **leaves)


def test_the_chain_rule():
    expression = exp(-(s**2)) * sin(3 * s) / (1 + s) + tanh(s) ** 3 - sqrt(1 + s * t)
    slope = differentiate(expression, s)
    h = 6e-6
    numerical = (value(expression, s=0.7 + h, t=2.0) - value(expression, s=0.7 - h, t=2.0)) / (2 * h)
    assert value(slope, s=0.7, t=2.0) == pytest.approx(numerical, rel=1e-8)


def test_derivatives_where_functions_have_an_edge():
    """Finite, by convention: the square root and the arc cosine are not differentiable there."""
    assert value(differentiate(sqrt(s), s), s=0.0) == 0.0
    assert value(differentiate(exp(-sqrt(s * t)), t), s=0.0, t=1.0) == 0.0
    assert math.isfinite(value(differentiate(arccos(s), s), s=1.0))
    assert value(differentiate(inverse_root(s), s), s=0.0) == 0.0
    assert value(differentiate(inverse_root(s), s), s=4.0) == pytest.approx(-1 / 16)


def test_leaves_that_hide_a_dependence():
    hidden = Symbol("q")
    slope = differentiate(hidden**2, s, lambda leaf: Number(5.0) if leaf == hidden else ZERO)
    assert value(slope, q=3.0) == 2 * 3.0 * 5.0


def test_the_derivative_of_a_constant_is_zero():
    assert differentiate(exp(t) + 3, s) == ZERO


def test_an_exponent_without_derivative_says_so():
    with pytest.raises(ValueError) as caught:
        differentiate(integer_power(t, s), s)
    assert str(caught.value) == "(t)**s has no derivative in its order or exponent: keep that parameter fixed"


# --- printers ------------------------------------------------------------------------------------------


def printed(name, backend, place):
    code = OPERATIONS[name].printed[backend].format(*(f"x{i}" for i in range(len(place))))
    return code, {f"x{i}": v for i, v in enumerate(place)}


@every_operation
def test_every_backend_and_latex_have_a_printer(name):
    assert set(OPERATIONS[name].printed) == {"numpy", "numba", "torch", "triton", "latex"}
    laid_out = {"add", "subtract", "multiply", "divide", "integer_power", "large_power", "power"}
    assert bool(OPERATIONS[name].printed["latex"]) == (name not in laid_out)


@every_operation
def test_numpy_prints_the_value(name):
    for place in PLACES[name]:
        code, leaves = printed(name, "numpy", place)
        found = eval(code, {"np": np, "matern_shape": matern_shape}, leaves)
        assert float(found) == pytest.approx(float(OPERATIONS[name].value(*place)), rel=1e-15)


@every_operation
def test_torch_prints_the_value(name):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    backend = pytest.importorskip("mercer.gram.backends.torch")
    names = {
        "torch": torch,
        "where": backend._where,
        "less_equal": backend._less_equal,
        "matern_shape": backend._matern_shape,
    }
    for place in PLACES[name]:
        code, leaves = printed(name, "torch", place)
        tensors = {n: torch.tensor(v, dtype=torch.float64) for n, v in leaves.items()}
        found = float(eval(code, names, tensors))
        assert found == pytest.approx(float(OPERATIONS[name].value(*place)), rel=1e-14)


def test_statements_compute_shared_parts_once():
    shared = exp(s)
    lines = statements(shared * shared + tanh(shared), "numpy", {s: "s", t: "t"})
    assert lines == [
        "t0 = np.exp(s)",
        "t1 = (t0 * t0)",
        "t2 = np.tanh(t0)",
        "t3 = (t1 + t2)",
        "result = t3",
    ]


def test_statements_need_a_name_for_every_leaf():
    with pytest.raises(KeyError, match="no name for t"):
        statements(s + t, "numpy", {s: "s"})


# --- simplifications -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("built", "simple"),
    [
        (s + 0, s),
        (0 + s, s),
        (s - 0, s),
        (s - s, ZERO),
        (s * 1, s),
        (1 * s, s),
        (s * 0, ZERO),
        (0 * s, ZERO),
        (s / 1, s),
        (0 / s, ZERO),
        (s**1, s),
        (s**0, ONE),
        (s**0.5, sqrt(s)),
        (+s, s),
        (s * 2 * 3, s * 6),
        (s / 4, s * 0.25),
        (s * -1 * -1, s),
        (wrap(2) + wrap(3), Number(5.0)),
        (exp(wrap(0.0)), ONE),
        (wrap(1.0) <= wrap(2.0), ONE),
        (np.exp(s), exp(s)),
        (abs(s), absolute(s)),
    ],
    ids=str,
)
def test_trees_stay_small(built, simple):
    assert built == simple and hash(built) == hash(simple)


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (exp(-s / 2), "exp(s * -0.5)"),
        (s + t, "(s + t)"),
        (s - t, "(s - t)"),
        (s * t, "s * t"),
        (s / t, "s / (t)"),
        (s**3, "(s)**3"),
        (s**0.3, "(s)**(0.3)"),
        (minimum(s, t), "min(s, t)"),
        (maximum(s, 0.0), "max(s, 0)"),
        (absolute(s), "|s|"),
        (s <= t, "[s <= t]"),
        (where(s <= t, s, t), "where([s <= t], s, t)"),
        (arccos(s), "arccos(s)"),
        (cos(s) + log(t), "(cos(s) + log(t))"),
    ],
    ids=str,
)
def test_formulas_read_as_mathematics(formula, text):
    assert repr(formula) == text


def test_a_constant_division_by_zero_is_infinite_not_an_error():
    """where(x <= 0, 1, 1/x) is well defined at 0, and so is its tree with 0 put in."""
    guarded = where(s <= 0, 1.0, 1 / s)
    assert substitute(guarded, lambda node: ZERO if node == s else None) == ONE


def test_substitute_rebuilds_with_simplifications():
    assert substitute(s * t + s, lambda node: ZERO if node == s else None) == ZERO
    assert substitute(exp(s), lambda node: t if node == s else None) == exp(t)
    untouched = exp(s) + 1
    assert substitute(untouched, lambda node: None) == untouched


def test_leaves_are_listed_left_to_right():
    assert list((s * t + exp(s)).leaves()) == [s, t, s]


# --- building -------------------------------------------------------------------------------------------


@given(a=st.floats(-5, 5), b=st.floats(0.1, 5))
def test_operators_mean_arithmetic(a, b):
    pairs = [
        (s + t, a + b), (s - t, a - b), (s * t, a * b), (s / t, a / b), (2 + s, 2 + a), (2 - s, 2 - a),
        (2 * s, 2 * a), (2 / t, 2 / b), (-s, -a), (s**3, a**3), (t**0.7, b**0.7), (2**s, 2**a),
        (s <= t, float(a <= b)), (s >= t, float(a >= b)), (s < t, float(a < b)), (s > t, float(a > b)),
        (abs(s), abs(a)), (np.square(s), a * a), (np.add(s, t), a + b), (np.float64(2.0) * s, 2 * a),
        (np.minimum(s, t), min(a, b)), (np.negative(s), -a), (np.greater_equal(s, t), float(a >= b)),
    ]  # fmt: skip
    for expression, wanted in pairs:
        assert value(expression, s=a, t=b) == pytest.approx(wanted, rel=1e-13, abs=1e-300), expression


def test_functions_of_plain_numbers_are_plain_numbers():
    assert exp(0.0) == 1.0 and maximum(1.0, 2.0) == 2.0 and where(1.0, 3.0, 4.0) == 3.0
    np.testing.assert_array_equal(minimum(np.array([1.0, 5.0]), 2.0), [1.0, 2.0])


def test_large_exponents_use_the_loop():
    assert integer_power(s, 63).operation == "integer_power"
    assert integer_power(s, 64).operation == "large_power"


@pytest.mark.parametrize("what", ["text", None, True, [1.0], 1j], ids=repr)
def test_only_numbers_enter_a_formula(what):
    with pytest.raises(TypeError, match="a formula combines numbers and pair quantities, got"):
        s + what


def test_a_formula_has_no_truth_value():
    with pytest.raises(TypeError) as caught:
        bool(s <= 1)
    assert str(caught.value) == (
        "a formula has no truth value: it stands for every pair of points at once; "
        "write where(condition, a, b) instead of `if`"
    )


def test_functions_without_meaning_are_refused():
    with pytest.raises(
        TypeError, match=r"np\.arctan has no meaning in a formula: use one of absolute, add, arccos"
    ):
        np.arctan(s)
    with pytest.raises(TypeError, match=r"np\.add has no meaning in a formula"):
        np.add.reduce(s)


@pytest.mark.parametrize(
    ("number", "answer"),
    [(3, True), (3.0, True), (np.int64(2), True), (2.5, False), (math.inf, False), (math.nan, False)],
)
def test_whole_numbers(number, answer):
    assert is_whole(number) is answer


# --- the Bessel function -------------------------------------------------------------------------------


def test_matern_shape_at_zero_is_its_limit():
    for nu in (0.1, 0.5, 1.0, 3.7, 200.0):
        assert matern_shape(nu, 0.0) == 1.0
    assert matern_shape(2.5, 1e-5) == pytest.approx(1.0, rel=1e-9)
    assert matern_shape(200.0, 1e-2) == pytest.approx(1 - 1e-4 / (4 * 199), rel=1e-9)  # K_ν alone overflows
    assert matern_shape(0.0, 0.0) == matern_shape(-0.5, 0.0) == 0.0


def test_matern_shape_of_one_half_is_elementary():
    z = np.array([1e-8, 0.1, 1.0, 10.0, 300.0])
    np.testing.assert_allclose(matern_shape(0.5, z), np.exp(-z), rtol=1e-13)
