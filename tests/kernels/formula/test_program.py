"""How a formula is laid out: what is computed once, once per point, once per pair."""

import numpy as np
import pytest

from mercer import (
    BSpline,
    Constant,
    Cosine,
    Delta,
    FromFunction,
    Gaussian,
    Gram,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Min,
    Polynomial,
    Precomputed,
)
from mercer.kernels.derivative import DistanceSlope
from mercer.kernels.formula.expression import ONE, ZERO, exp
from mercer.kernels.formula.pair import (
    Columns,
    External,
    Mapping,
    Mean,
    Pair,
    PointSum,
    Quantity,
    Scaling,
    View,
    diagonal,
)
from mercer.kernels.formula.program import Program, _programs, program_of
from mercer.kernels.parameters import positive
from mercer.testing import example_kernels, example_points


def sizes(kernel):
    program = Program(kernel)
    return len(program.constants), len(program.left), len(program.right), len(program.planes)


@pytest.mark.parametrize(
    ("kernel", "body"),
    [
        (Linear(), "q0"),
        (Gaussian(1.0), "exp(q0 * c0)"),
        (Gaussian(gamma=2.0), "exp(q0 * c0)"),
        (3 * Gaussian(2.0), "exp(q0 * c0) * c1"),
        (Polynomial(3), "((q0 * c0 + c1))**c2"),
        (Constant(2.0), "c0"),
        (Min(), "q0"),
        (Cosine(), "q0 * l0 * r0"),
    ],
    ids=repr,
)
def test_bodies_are_small(kernel, body):
    """What is known beforehand is one constant or one value per point: one multiplication in the loop."""
    assert repr(Program(kernel).body) == body


def test_quantities_are_shared():
    assert sizes(Gaussian(1.0) + Gaussian(2.0))[3] == 1
    assert sizes(Gaussian(1.0) * Matern(1.5) + Laplacian(1.0, norm=2))[3] == 1  # one squared distance
    assert sizes(Gaussian(1.0) + Linear())[3] == 2
    assert sizes(Gaussian(1.0).on(0) + Gaussian(1.0).on(1))[3] == 2
    assert sizes(Gaussian(1.0).on(0) + Laplacian(1.0, norm=2).on(0))[3] == 1


def test_views_are_shared():
    program = Program(Gaussian(1.0).on(0, 1) + Linear().on(0, 1) + Linear() + Delta().on(2))
    assert program.views == [
        View((Columns((0, 1)),)),
        View(),
        View((Columns((2,)),), labels=True),
    ]


def test_length_scales_are_a_view():
    (plane,) = Program(Gaussian(sigma=[1.0, 2.0])).planes
    assert plane.view == View((Scaling((1.0, 0.5), ("sigma",)),))
    (plane,) = Program(Gaussian(gamma=[1.0, 4.0])).planes
    assert plane.view == View((Scaling((1.0, 2.0), ("gamma",)),))


def test_what_depends_on_one_point_is_computed_per_point():
    program = Program(Polynomial(2).normalized())
    assert len(program.left) == len(program.right) == 1 and len(program.planes) == 1
    program = Program(3 * Cosine())  # the factor joins a point value
    assert len(program.left) == len(program.right) == 1 and program.constants == []


def test_constants_hold_values_and_follow_the_parameters():
    assert Program(Gaussian(sigma=2.0)).values.tolist() == [-1 / 8]
    assert Program(Gaussian(gamma=3.0)).values.tolist() == [-3.0]
    assert Program(Gaussian(sigma=2.0)).values.dtype == np.float64
    assert sorted(Program(5 * Gaussian(gamma=3.0)).values.tolist()) == [-3.0, 5.0]


def test_new_parameters_change_only_the_constants():
    one, other = Program(Gaussian(1.0) * BSpline(3, 1.0)), Program(Gaussian(7.0) * BSpline(3, 0.2))
    assert one.body == other.body and one.terms == other.terms
    assert repr(one.planes) == repr(other.planes)
    assert one.values.tolist() != other.values.tolist()


def test_terms_of_sums_use_the_same_constants():
    program = Program(BSpline(1, 2.0))
    (plane,) = program.planes
    assert plane.kind == "product" and repr(program.body) == "q0"
    assert program.terms[0] is not None
    assert Program(Gaussian(1.0)).terms == [None]


def test_functions_of_objects_are_planes_of_their_own():
    (plane,) = Program(2 * FromFunction(max)).planes
    assert isinstance(plane, External)


# --- the diagonal -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (Gaussian(1.0), "1"),
        (Laplacian(2.0), "1"),
        (Matern(1.5), "1"),
        (Delta(), "1"),
        (Linear(), "sum(a * a)"),
        (Constant(2.0), "c"),
        (Gaussian(1.0).on(0), "1"),
    ],
    ids=repr,
)
def test_the_diagonal_is_a_formula_of_one_point(kernel, text):
    assert repr(Program(kernel).diagonal) == text


def test_quantities_at_equal_points():
    pair = Pair()
    assert diagonal(pair.sqdist, 0) == diagonal(pair.l1, 0) == diagonal(pair.differs(), 0) == ZERO
    assert diagonal(pair.product(lambda a, b: a - b + 1), 0) == ONE
    assert diagonal(pair.dot, 1) == pair.yy and diagonal(pair.xx, 1) == pair.yy
    assert isinstance(diagonal(pair.sum(lambda a, b: a * b + 1), 0), PointSum)


@pytest.mark.filterwarnings("ignore::mercer.errors.SlowPathWarning")
@pytest.mark.parametrize("kernel", example_kernels(), ids=lambda k: repr(k)[:60])
def test_both_sides_of_the_diagonal_are_the_same(kernel, rng):
    X = example_points(kernel, 6, rng)
    gram = Gram(kernel.resolve(X), X)
    left, right = (diagonal(gram._program.expression, side) for side in (0, 1))
    assert not any(isinstance(leaf, Quantity | External) for leaf in left.leaves())
    assert diagonal(right, 0) == left
    np.testing.assert_allclose(gram.diag(), np.diagonal(gram.dense()), rtol=1e-7, atol=1e-12)


# --- pairs and views -------------------------------------------------------------------------------


def test_views_are_applied_in_order():
    X = np.array([[1.0, 2.0, 3.0]])
    view = View().then(Columns((2, 0))).then(Mapping(np.sqrt)).then(Scaling((2.0, 10.0), ("sigma",)))
    np.testing.assert_allclose(view(X), [[2 * np.sqrt(3), 10.0]])


def test_pairs_know_where_they_are():
    pair = Pair().below("k1").below("kernel")
    assert pair.path == ("k1", "kernel") and pair.through(Columns((0,))).path == pair.path


def test_centring_hides_a_mean():
    leaves = list(Gaussian(1.0).centered([[0.0]]).expression().leaves())
    assert sorted(leaf.side for leaf in leaves if isinstance(leaf, Mean)) == [0, 1, 2]


def test_equal_programs_on_different_reference_points_stay_apart():
    X = np.array([[0.0], [1.0]])
    a, b = Gaussian(1.0).centered(np.array([[0.0]])), Gaussian(1.0).centered(np.array([[3.0]]))
    np.testing.assert_allclose((a + b)(X), a(X) + b(X), atol=1e-15)


def test_reference_points_given_as_temporaries_stay_apart():
    """id() of a list that is gone may come again: the mean must not be another kernel's."""
    X = np.array([[0.0], [1.0]])
    kernels = [Gaussian(1.0).centered([[float(i)]]) for i in range(20)]
    total = sum(kernels[1:], kernels[0])
    np.testing.assert_allclose(total(X), sum(kernel(X) for kernel in kernels), atol=1e-13)


def with_other_numbers(kernel):
    """The kernel with every number of its own or of its parts changed a little, where it may be."""
    other = kernel.__sklearn_clone__()
    for part in other.parts():
        for name, parameter in part.parameters.items():
            value = vars(part)[name]
            if type(value) in (int, float) and parameter.is_continuous(value):
                part.set_params(**{name: 1.25 * value})
            elif parameter.per_column is not None and isinstance(value, list | np.ndarray):
                part.set_params(**{name: [1.25 * entry for entry in value]})
    return other


@pytest.mark.parametrize(
    "kernel",
    [
        *(k for k in example_kernels() if k.domain in ("vectors", "nonnegative") and k.is_resolved()),
        Gaussian(sigma=[1.0, 2.0]) + 3.0 * Laplacian(gamma=[0.5, 0.1]) * Polynomial(3, c=0.5),
        Gaussian(sigma=[1.0, 2.0]).derivative("sigma[1]"),
        (Gaussian(2.0) + 0.5 * Matern(2.5, 1.5)).derivative("k2__kernel__length_scale"),
        DistanceSlope.of(Laplacian(gamma=[0.5, 0.1]), "gamma"),
        (2.0 * Gaussian(2.0)).normalized() ** 2,
    ],
    ids=repr,
)
def test_the_program_of_other_numbers_is_that_which_would_be_built_for_them(kernel):
    program_of(kernel)  # what is remembered belongs to other numbers
    other = with_other_numbers(kernel)
    ours, built = program_of(other), Program(other)
    for name in ("body", "terms", "constants", "left", "right", "planes", "layout", "expression"):
        assert getattr(ours, name) == getattr(built, name), name
    np.testing.assert_array_equal(ours.values, built.values)


class Beside(Kernel):
    """Of which a number has the path of another."""

    sigma: float = positive(1.0)

    def formula(self, pair):
        return Gaussian(5.0).expression(pair) + exp(-pair.sqdist / (2 * self.sigma**2))


class Reading:
    def expression(self, pair=None):
        return exp((pair or Pair()).sqdist * (-self.rate))


class Inherited(Reading, Kernel):
    """Whose formula holds its number as a number, and not as a leaf."""

    rate: float = positive(1.0)


@pytest.mark.parametrize("kind", [Beside, Inherited])
def test_what_a_kernel_of_ones_own_does_with_its_numbers_is_not_known(kind):
    X = np.linspace(0.0, 1.0, 8).reshape(4, 2)
    first = kind(1.0)(X)
    again = kind(3.0)(X)
    _programs.clear()
    np.testing.assert_array_equal(kind(3.0)(X), again)
    np.testing.assert_array_equal(kind(1.0)(X), first)


def test_a_remembered_program_holds_nothing_of_the_caller():
    K = np.eye(4) + 0.1
    wanted = Precomputed(K.copy())([0, 1])
    Precomputed(K)([0, 1])
    K[:] = 7.0
    np.testing.assert_array_equal(Precomputed(np.eye(4) + 0.1)([0, 1]), wanted)
    X, scales = np.linspace(0.0, 1.0, 9).reshape(3, 3), np.array([1.0, 2.0, 4.0])
    Gram(3.0 * Gaussian([1.0, 2.0, 3.0]), X).dense()
    kernel = 2.0 * Gaussian(scales)
    DistanceSlope.of(kernel, "kernel__sigma")
    kernel.set_params(scale=9.0)
    scales *= 5.0
    gram = Gram(2.0 * Gaussian([1.0, 2.0, 4.0]), X)
    np.testing.assert_array_equal(gram.diag(), 2.0)
    np.testing.assert_array_equal(gram.dense(), 2.0 * Gaussian(sigma=1.0)(X / [1.0, 2.0, 4.0]))


def test_numbers_that_shape_a_formula_are_part_of_its_shape():
    for one, other in (
        (Polynomial(3), Polynomial(80)),  # a large power is written another way
        (Polynomial(3.0), Polynomial(80.0)),
        (Matern(1.5), Matern(1.2)),
        (Gaussian(1.0) ** 2, Gaussian(1.0) ** 2.5),
    ):
        program_of(one)
        assert program_of(other).body == Program(other).body != program_of(one).body
