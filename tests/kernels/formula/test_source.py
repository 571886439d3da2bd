"""The printed code: it compiles for every backend, says what it is, and does not change with a parameter."""

import ast

import numpy as np
import pytest

from mercer import BSpline, Gaussian, Laplacian, Linear, Matern, Periodic, Polynomial, RationalQuadratic
from mercer.errors import InputError
from mercer.gram.backends.numba import codegen
from mercer.kernels.formula.pair import External
from mercer.kernels.formula.program import Program
from mercer.kernels.formula.source import FRAMES, print_source
from mercer.kernels.formula.special import matern_shape
from mercer.testing import example_kernels

EXAMPLES = [kernel for kernel in example_kernels() if kernel.is_resolved()]

every_kernel = pytest.mark.parametrize("kernel", EXAMPLES, ids=lambda k: repr(k)[:60])


@every_kernel
def test_code_compiles_and_opens_with_the_kernel(kernel):
    has_objects = any(isinstance(plane, External) for plane in Program(kernel).planes)
    for backend in FRAMES:
        if backend == "triton" and has_objects:
            with pytest.raises(InputError, match="no Triton code for a kernel whose values Python computes"):
                kernel.source(backend)
            continue
        code = kernel.source(backend)
        assert code.startswith(f"# {kernel!r}\n")
        ast.parse(code)
        assert "{" not in code.partition("\n")[2]  # nothing left unfilled


@every_kernel
@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_array_code_runs_on_whole_tiles(kernel, backend):
    program = Program(kernel)
    scope = {"np": np, "matern_shape": matern_shape}
    full = np.full
    if backend == "torch":
        torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        module = pytest.importorskip("mercer.gram.backends.torch")
        scope = {**module.__dict__, "where": module._where, "less_equal": module._less_equal}
        scope["matern_shape"] = module._matern_shape
        full = lambda shape, value: torch.full(shape, value, dtype=torch.float64)  # noqa: E731
    exec(print_source(program, backend), scope)
    constants = full((len(program.values),), 0.0)
    for i, value in enumerate(program.values):
        constants[i] = value
    planes = [full((3, 4), 0.5) for _ in program.planes]
    left = [full((3, 1), 0.5) for _ in program.left]
    right = [full((1, 4), 0.5) for _ in program.right]
    result = np.asarray(scope["formula"](planes, left, right, constants))
    assert np.isfinite(np.broadcast_to(result, (3, 4))).all()
    for i, term in enumerate(program.terms):
        assert (f"term_{i}" in scope) is (term is not None)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Gaussian(1.0), Gaussian(2.0)),
        (Gaussian(1.0), Gaussian(gamma=0.3)),
        (Gaussian([1.0, 2.0]), Gaussian([3.0, 4.0])),
        (Gaussian([1.0, 2.0]), Gaussian([3.0, 4.0, 5.0])),
        (Laplacian(1.0), Laplacian(0.1)),
        (Matern(2.5, 1.0), Matern(2.5, 3.0)),
        (Matern(1.1, 1.0), Matern(3.3, 2.0)),
        (RationalQuadratic(1.0, 2.0), RationalQuadratic(0.5, 3.0)),
        (Periodic(1.0, 1.0), Periodic(2.0, 0.5)),
        (BSpline(3, 1.0), BSpline(3, 0.5)),
        (Polynomial(2), Polynomial(7, c=0.0, gamma=3.0)),
        (2.0 * Gaussian(1.0) + Linear(), 3.0 * Gaussian(4.0) + Linear()),
        (Gaussian(1.0) ** 2, Gaussian(1.0) ** 3),
        (Gaussian(1.0).on(0), Gaussian(1.0).on(1, 2)),
        (Gaussian(1.0).centered([[0.0]]), Gaussian(2.0).centered([[1.0], [2.0]])),
    ],
    ids=repr,
)
def test_a_new_parameter_recompiles_nothing(one, other):
    for real in ("float64", "float32"):
        first, second = (print_source(Program(kernel), "numba", real=real) for kernel in (one, other))
        assert first == second


def test_numbers_of_the_formula_itself_are_arguments_too():
    """Coefficients such as 1/3 in Matérn 5/2 are constants: the code holds no number."""
    assert "0.333" not in print_source(Program(Matern(2.5)), "numba")


def test_the_compiled_module_is_the_same_object():
    def module(kernel):
        texts = [print_source(Program(kernel), "numba", real="float64", cache=kept) for kept in (True, False)]
        return codegen.load(*texts)

    assert module(Gaussian(0.123)) is module(Gaussian(4.56))


def test_parameters_are_not_mixed_up_by_shared_code(rng):
    X = rng.normal(size=(6, 2))
    for sigma in (0.5, 1.0, 2.0):
        wanted = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / (2 * sigma**2))
        np.testing.assert_allclose(Gaussian(sigma)(X), wanted, rtol=1e-12)


def test_precision_is_part_of_the_numba_code():
    program = Program(Gaussian(1.0))
    assert "types.float64" in print_source(program, "numba")
    assert "types.float32" in print_source(program, "numba", real="float32")
    assert "cache=False" in print_source(program, "numba", cache=False)


def test_the_numpy_code_of_the_gaussian_in_full():
    assert Gaussian(sigma=2.0).source("numpy") == (
        "# Gaussian(sigma=2.0)\n"
        "def formula(q, l, r, c):\n"
        "    t0 = (q[0] * c[0])\n"
        "    t1 = np.exp(t0)\n"
        "    return t1\n"
    )


def test_coordinate_terms_are_functions_of_their_own():
    code = Laplacian(1.0).source("torch")
    assert "def term_0(a, b, c):" in code and "torch.absolute" in code


def test_sums_over_coordinates_say_what_they_are():
    assert "# plane 0: sum(|(a - b)|)" in Laplacian(1.0).source("numba")


def test_an_unknown_backend():
    with pytest.raises(ValueError) as caught:
        Gaussian(1.0).source("fortran")
    assert str(caught.value) == "no printer for backend 'fortran': there are numpy, torch, numba, triton"
