"""Kernels as text: what may be written, what is refused and where, and that repr is read back."""

import ast
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import (
    BagOfWords,
    ChiSquared,
    ColumnKernel,
    Constant,
    Delta,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    Radial,
    SetKernel,
    ShortestPath,
    Sigmoid,
    WeisfeilerLehman,
    exp,
)
from mercer.errors import InputError, InputTypeError
from mercer.kernels.base import Kernel
from mercer.kernels.compose import Negative
from mercer.kernels.names import NAMES, as_kernel
from mercer.kernels.parse import kernel_names, parse_kernel
from mercer.testing.examples import example_kernels


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("2*gaussian(sigma=median) + polynomial(3)", 2 * Gaussian("median") + Polynomial(3)),
        ("Gaussian(1.5)", Gaussian(1.5)),
        ("GAUSSIAN(gamma='scale')", Gaussian(gamma="scale")),
        ("gaussian(sigma=[1, 2.5])", Gaussian(sigma=[1, 2.5])),
        ("rbf(0.5)", Gaussian(gamma=0.5)),
        ("rbf", Gaussian(gamma="scale")),
        ("poly(2, coef0=1)", Polynomial(2, 1, "scale")),
        ("polynomial(2, coef0=0)", Polynomial(2, 0)),
        ("sigmoid(gamma=0.1, coef0=-1)", Sigmoid(0.1, -1)),
        ("chi2(2)", ChiSquared(2)),
        ("rational_quadratic(2) / 4", parse_kernel("RationalQuadratic(2)") / 4),
        ("(linear + 1)**3", (Linear() + 1) ** 3),
        ("linear() * delta.on(city, 'last name', 2)", Linear() * Delta().on("city", "last name", 2)),
        ("exp(0.1*linear).normalized()", exp(0.1 * Linear()).normalized()),
        ("linear().exp().centred()", Linear().exp().centered()),
        ("linear().polynomial([1, 0.5])", Linear().polynomial([1, 0.5])),
        ("gaussian(2).derivative(sigma)", Gaussian(2).derivative("sigma")),
        ("setkernel(gaussian(1), mean)", SetKernel(Gaussian(1), "mean")),
        ("SetKernel(linear, cosine)", SetKernel(Linear(), "cosine")),  # a word and a kernel have one name
        ("weisfeiler_lehman(2, shortest_path)", WeisfeilerLehman(2, ShortestPath())),
        ("bagofwords(weighting=tf-idf, lowercase=False)", BagOfWords(weighting="tf-idf", lowercase=False)),
        ("bag_of_words(pattern='[(]+ \\\\d')", BagOfWords(pattern=r"[(]+ \d")),
        (
            "columnkernel({age: gaussian(median), (0, min): delta}, anova)",
            ColumnKernel({"age": Gaussian("median"), (0, "min"): Delta()}, "anova"),
        ),
        ("columnkernel(auto)", ColumnKernel("auto")),
        ("radial([1.0], dim=inf)", Radial([1.0], dim=np.inf)),
        ("matern(nu=5/2, length_scale=10**-1)", Matern(2.5, 0.1)),
        ("2*3*linear", 6 * Linear()),
        ("0 + linear", Linear()),
        ("  linear()\n  + 2  ", Linear() + 2),
        ("precomputed", Precomputed()),
        ("constant(2) * Matern()", Constant(2) * Matern()),
        ("1e-3 * laplacian(norm=2)", 1e-3 * Laplacian(norm=2)),
    ],
)
def test_reads(text, kernel):
    assert parse_kernel(text) == kernel


@pytest.mark.parametrize("name", NAMES)
def test_a_bare_name_means_what_it_means_to_an_estimator(name):
    assert parse_kernel(name) == parse_kernel(name.upper()) == as_kernel(name)


def test_a_bare_name_may_be_the_class_instead():
    assert parse_kernel("sigmoid + laplacian", follow_data=False) == Sigmoid() + Laplacian()
    assert parse_kernel("setkernel(polynomial)", follow_data=False) == SetKernel(Polynomial())
    assert parse_kernel("rbf", follow_data=False) == Gaussian(gamma="scale")


def test_every_public_kernel_has_its_name():
    import mercer

    kernels = {
        name
        for name in mercer.__all__
        if isinstance(value := getattr(mercer, name), type)
        and issubclass(value, Kernel)
        and value is not Kernel
    }
    assert kernels <= set(kernel_names().values())
    assert all(parse_kernel(f"{name}") for name in ("Spectrum", "spectrum", "SPECTRUM"))


def test_long_sums_are_read():
    terms = [f"{i} * gaussian({i})" for i in range(1, 150)]
    assert parse_kernel(" + ".join(terms)) == sum(i * Gaussian(i) for i in range(1, 150))


# --- repr is read back -----------------------------------------------------------------------------------


def holds(kernel, found):
    """Whether a kernel, or one it is made of, is such."""
    return any(found(part) for part in kernel.parts())


def is_inexpressible(part):
    """A function, a large array, fitted points: what no text can hold."""
    for value in part.get_params(deep=False).values():
        entries = value if isinstance(value, list | tuple) else [value]
        if np.size(value) > 8 or any(callable(entry) and not isinstance(entry, Kernel) for entry in entries):
            return True
    return False


# a slope is made by ``RadialSlope.of``, for solvers
@pytest.mark.parametrize("kernel", [k for k in example_kernels() if "Slope" not in type(k).__name__])
def test_the_repr_of_every_example_is_read_back(kernel):
    if holds(kernel, is_inexpressible):
        with pytest.raises(InputError, match="cannot read the kernel"):
            parse_kernel(repr(kernel))
        return
    back = parse_kernel(repr(kernel), signs=type(kernel) is Negative)
    assert repr(back) == repr(kernel)
    # Gaussian() prints the σ = 1 that it means
    assert back == kernel or holds(
        kernel, lambda part: type(part) is Gaussian and part.sigma is part.gamma is None
    )


numbers = st.one_of(st.integers(1, 50), st.floats(1e-6, 1e6, allow_nan=False).filter(lambda value: value > 0))
columns = st.lists(st.one_of(st.integers(-3, 9), st.text(max_size=5)), min_size=1, max_size=3)
leaves = st.one_of(
    st.builds(Linear),
    st.builds(Delta),
    st.builds(Constant, numbers),
    st.builds(Gaussian, st.one_of(numbers, st.just("median"), st.lists(numbers, min_size=1, max_size=4))),
    st.builds(Laplacian, st.one_of(numbers, st.sampled_from(["scale", "auto"])), st.sampled_from([1, 2])),
    st.builds(Polynomial, st.integers(1, 9), numbers, st.one_of(numbers, st.just("scale"))),
    st.builds(Sigmoid, st.floats(-5, 5), st.floats(-5, 5)),
    st.builds(BagOfWords, st.integers(1, 3), weighting=st.sampled_from([None, "log", "tf-idf"])),
)
kernels = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a * b, inner, inner),
        st.builds(lambda c, k: c * k, numbers, inner),
        st.builds(lambda k, c: k + c, inner, numbers),
        st.builds(lambda k, p: k**p, inner, numbers),
        st.builds(lambda k: k.normalized(), inner),
        st.builds(lambda k: k.centered(), inner),
        st.builds(lambda k: k.exp(), inner),
        st.builds(lambda k, c: k.on(*c), inner, columns),
        st.builds(lambda k, c: k.polynomial(c), inner, st.lists(numbers, min_size=1, max_size=3)),
        st.builds(SetKernel, inner, st.sampled_from([None, "cosine", "mean"])),
        st.builds(lambda a, b: ColumnKernel({"a": a, (0, "b c"): b}), inner, inner),
    ),
    max_leaves=8,
)


@settings(max_examples=200)
@given(kernels)
def test_random_expressions_are_read_back(kernel):
    back = parse_kernel(repr(kernel))
    assert back == kernel
    assert repr(back) == repr(kernel)


# --- refusals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "marked", "message"),
    [
        ("gausian(1) + linear", "gausian", "there is no kernel 'gausian', did you mean 'gaussian'"),
        ("1 * matrn", "matrn", "did you mean 'matern'"),
        ("lin + rbf", "lin", "did you mean 'linear'"),
        ("zzz()", "zzz", "there are gaussian"),
        ("2*gaussian(sgima=1)", "sgima=1", "did you mean 'sigma'"),
        ("gaussian(1, 2, 3)", "3", "it takes sigma, gamma"),
        ("linear(1)", "1", "it takes none"),
        ("gaussian(1, sigma=2)", "sigma=2", "twice"),
        ("linear + gaussian(sigma=-1)", "gaussian(sigma=-1)", "sigma must be positive, got -1"),
        ("gaussian(sigma=meidan)", "gaussian(sigma=meidan)", "got 'meidan'"),
        ("linear - rbf", "linear - rbf", "difference of two kernels"),
        ("linear.normalizd()", "linear.normalizd", r"did you mean \.normalized"),
        ("linear.normalized", "linear.normalized", "write .normalized()"),
        ("normalized(linear)", "normalized", "comes after a kernel"),
        ("linear.normalized(3)", "linear.normalized(3)", "nothing in its brackets"),
        ("linear.on()", "linear.on()", "needs columns"),
        ("linear @ log", "linear @ log", "write the kernel in Python"),
        ("linear ** linear", "linear ** linear", "exponent"),
        ("linear / 0", "linear / 0", "divided by zero"),
        ("linear + 'rbf'", "'rbf'", "neither a kernel nor a number"),
        ("True * linear", "True", "neither a kernel"),
        ("3", "3", "not a kernel"),
        ("9**9**9*linear", "9**9**9", "too large"),
        ("1e400*linear", "1e400*linear", "got inf"),
        ("(-8)**0.5*linear", "(-8)**0.5", "not real"),
        ("gaussian(*[1])", "*[1]", "neither"),
        ("gaussian(**{'sigma': 1})", "{'sigma': 1}", "one by one"),
        ("columnkernel({**{}})", "{**{}}", "one by one"),
        ("fromfunction(len)", "fromfunction(len)", "must be a function"),
        ("é + linear", "é", "no kernel 'é'"),
        ("linear + ещё", "ещё", "no kernel"),
    ],
)
def test_an_error_points_at_the_place(text, marked, message):
    with pytest.raises(InputError, match=message) as caught:
        parse_kernel(text)
    _, line, marks = str(caught.value).split("\n")
    assert line == f"    {text}"
    assert line[marks.index("^") : len(marks)] == marked


@pytest.mark.parametrize(
    "text", ["gaussian(1", "gaussian(1)) + 2", "'", "linear;linear", "a := linear", "+", "\0", "1 1"]
)
def test_what_is_no_expression_is_refused_with_a_place(text):
    with pytest.raises(InputError, match="cannot read the kernel") as caught:
        parse_kernel(text)
    assert "^" in str(caught.value).split("\n")[2]


def test_a_long_text_is_shown_around_the_place():
    text = "linear + " * 100 + "gausian(1)" + " + linear" * 100
    with pytest.raises(InputError) as caught:
        parse_kernel(text)
    _, line, marks = str(caught.value).split("\n")
    assert line[marks.index("^") : len(marks)] == "gausian" and len(line) < 90


@pytest.mark.parametrize("given", [None, 3, b"linear", ["linear"], Linear()])
def test_what_is_no_text_is_refused(given):
    with pytest.raises(InputTypeError, match="written as a text"):
        parse_kernel(given)


def test_limits():
    for text, message in {
        "": "empty",
        "   ": "empty",
        "x" * 5000: "5,000 characters",
        "(" * 300 + "linear" + ")" * 300: "cannot read",
        "exp(" * 60 + "linear" + ")" * 60: "nested more than",
        "-" * 900 + "1": "cannot read|nested",
        "[" * 100 + "]" * 100: "cannot read",
        "9" * 3990: "cannot read|number",
    }.items():
        with pytest.raises(InputError, match=message):
            parse_kernel(text)


HARM = [
    "__import__('os').system('touch {}')",
    "open('{}', 'w')",
    "linear.__class__.__init__.__globals__['sys'].exit()",
    "(lambda: open('{}', 'w'))()",
    "[open('{}', 'w') for _ in [1]]",
    "gaussian(sigma=open('{}', 'w'))",
    "f\"{{open('{}', 'w')}}\"",
    "gaussian.registry.clear()",
    "linear.set_params(x=1)",
    "linear.on(__import__('os').system('touch {}'))",
    "exec('1')",
    "linear if open('{}', 'w') else rbf",
    "print",
    "SVC",
    "config()",
]


@pytest.mark.parametrize("text", HARM)
def test_nothing_is_evaluated(text, tmp_path):
    place = tmp_path / "harm"
    registered = len(Kernel.registry)
    with pytest.raises(InputError):
        parse_kernel(text.format(place))
    assert not place.exists() and len(Kernel.registry) == registered


PIECES = (
    "gaussian linear rbf setkernel columnkernel median sigma on normalized exp lambda if not None True inf é"
)
PIECES += " ( ) [ ] { } + - * ** / @ . , : = ~ < # \\ 1 0.5 9e99 'a' \" __class__ \x00"
pieces = st.sampled_from([*PIECES.split(), "\n", "\t", " "])


@settings(max_examples=400)
@given(st.one_of(st.lists(pieces, max_size=15).map("".join), st.text(max_size=40)))
def test_any_text_gives_a_kernel_or_one_kind_of_error(text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nor is anything said that nobody asked for
        try:
            kernel = parse_kernel(text)
        except InputError:
            return
    assert isinstance(kernel, Kernel)
    ast.parse(text.replace("\n", " ").replace("\r", " ").strip(), mode="eval")  # it was Python's grammar


def test_reading_loads_no_kernel_that_is_not_named():
    """Kernels with compiled code are loaded when a text names them."""
    import subprocess

    code = (
        "import sys; from mercer.kernels.parse import parse_kernel; parse_kernel('rbf + 2*polynomial(3)'); "
        "print('mercer.kernels.graphs.weisfeiler_lehman' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
