"""The algebra: values, how it prints, equality, and kernels as scikit-learn's parameter objects."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import (
    ArcCosine,
    BallIndicator,
    BSpline,
    ChiSquared,
    Constant,
    Cosine,
    Delta,
    FromFunction,
    Gaussian,
    Gram,
    Laplacian,
    Linear,
    Matern,
    Min,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    Wendland,
)
from mercer.errors import InputError
from mercer.features.polynomial import PolynomialMap
from mercer.features.taylor import GaussianTaylorMap
from mercer.kernels.base import Kernel
from mercer.kernels.compose import Centered, Mapped, OnColumns, Power, Product, Scaled, Sum
from mercer.kernels.domain import Domain

g, p, l = Gaussian(sigma=1.3), Polynomial(2, c=0.5), Linear()


@pytest.fixture
def X(rng):
    return rng.normal(size=(8, 3))


@pytest.fixture
def Y(rng):
    return rng.normal(size=(5, 3)) + 0.5


def close(found, wanted):
    # 512 ε of the largest value, as argued in mercer.testing
    np.testing.assert_allclose(found, wanted, rtol=0, atol=512 * np.finfo(float).eps * np.abs(wanted).max())


# --- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "of_parts"),
    [
        (g + p, lambda G, P, L: G + P),
        (g + p + l, lambda G, P, L: G + P + L),
        (g * p, lambda G, P, L: G * P),
        (g * p * l, lambda G, P, L: G * P * L),
        (2.5 * g, lambda G, P, L: 2.5 * G),
        (g * 2.5, lambda G, P, L: 2.5 * G),
        (g / 4, lambda G, P, L: G / 4),
        (np.float64(3.0) * g, lambda G, P, L: 3 * G),
        (0 * g + l, lambda G, P, L: L),
        (g + 1.5, lambda G, P, L: G + 1.5),
        (1.5 + g, lambda G, P, L: G + 1.5),
        (g + 0, lambda G, P, L: G),
        (sum([g, p, l]), lambda G, P, L: G + P + L),
        (p**3, lambda G, P, L: P**3),
        (l**2, lambda G, P, L: L**2),
        (l**0, lambda G, P, L: np.ones_like(L)),
        (g**0.5, lambda G, P, L: np.sqrt(G)),
        (g**2.7, lambda G, P, L: G**2.7),
        (g.exp(), lambda G, P, L: np.exp(G)),
        ((0.1 * l).exp(), lambda G, P, L: np.exp(0.1 * L)),
        (l.polynomial([1.0, 0.0, 3.0, 0.5]), lambda G, P, L: 1 + 3 * L**2 + 0.5 * L**3),
        (l.polynomial((2.0,)), lambda G, P, L: np.full_like(L, 2.0)),
        (2 * (g + l) ** 2 * p + 3, lambda G, P, L: 2 * (G + L) ** 2 * P + 3),
        ((g + p) * (l + 1), lambda G, P, L: (G + P) * (L + 1)),
        (g + g, lambda G, P, L: 2 * G),
    ],
    ids=lambda value: getattr(value, "__name__", None) or repr(value),
)
def test_algebra_is_arithmetic_of_the_values(kernel, of_parts, X, Y, backend):
    for Z in (Y, None):
        close(kernel(X, Z), of_parts(*(k(X, Z) for k in (g, p, l))))


def test_the_function_exp_takes_kernels_no_less_than_formulas(X):
    """repr prints exp(k), and mercer.exp is a public name: it must read back."""
    assert mercer.exp(g) == g.exp()


@pytest.mark.parametrize("kernel", [p, l, Min(), g + l, BSpline(), Polynomial(2).on(0, 1)], ids=repr)
def test_normalized(kernel, rng, backend):
    X, Y = np.abs(rng.normal(size=(7, 3))), np.abs(rng.normal(size=(4, 3)))
    x, y = np.diagonal(kernel(X)), np.diagonal(kernel(Y))
    close(kernel.normalized()(X, Y), kernel(X, Y) / np.sqrt(np.outer(x, y)))
    close(np.diagonal(kernel.normalized()(X)), np.ones(7))


def test_normalized_is_zero_where_the_kernel_is(backend):
    K = Linear().normalized()([[0.0, 0.0], [1.0, 0.0], [2.0, 2.0]])
    close(K, [[0, 0, 0], [0, 1, np.sqrt(0.5)], [0, np.sqrt(0.5), 1]])


@pytest.mark.sample(5)
@pytest.mark.parametrize("kernel", [g, l, p, g * l + Laplacian(), Matern(1.2), g.on(0, 2)], ids=repr)
def test_centred_is_explicit_centring(kernel, X, Y, backend):
    reference = Y
    n = len(reference)
    to_reference, among = kernel(X, reference), kernel(reference)
    wanted = (
        kernel(X, X)
        - to_reference.mean(axis=1)[:, None]
        - to_reference.mean(axis=1)[None, :]
        + among.sum() / n**2
    )
    found = kernel.centered(reference)
    np.testing.assert_allclose(found(X), wanted, atol=1e-12 * np.abs(kernel(X)).max())
    # centred on the points themselves, rows and columns sum to nothing
    H = np.eye(n) - 1 / n
    np.testing.assert_allclose(found(reference), H @ among @ H, atol=1e-12 * np.abs(among).max())
    np.testing.assert_allclose(Gram(found, X).diag(), np.diagonal(wanted), atol=1e-12 * np.abs(wanted).max())


def test_centring_is_on_the_training_data_unless_told(X):
    kernel = g.centered()
    assert not kernel.is_resolved()
    close(kernel(X), g.centered(X)(X))
    assert kernel.resolve(X).reference is X
    with pytest.raises(InputError) as caught:
        kernel.expression()
    assert str(caught.value) == (
        "Gaussian(sigma=1.3).centered() has no points to centre on: "
        "pass them, .centered(X), or call resolve(X) first"
    )


def test_centring_composes(X, Y, backend):
    """Inside sums, products and normalisation, and behind columns."""
    centred = g.centered(Y)
    close((2 * centred + l)(X), 2 * centred(X) + l(X))
    K = centred(X)
    close(centred.normalized()(X), K / np.sqrt(np.outer(np.diagonal(K), np.diagonal(K))))
    behind = g.centered(Y[:, :2]).on(0, 1)
    close(behind(X), g.centered(Y[:, :2])(X[:, :2]))
    close(g.centered(Y).centered(Y)(X), g.centered(Y)(X))  # what is centred stays


def test_centred_and_resolved_together(X):
    kernel = Gaussian(sigma="median").centered()
    resolved = kernel.resolve(X)
    assert resolved.kernel == Gaussian(sigma="median").resolve(X)
    np.testing.assert_allclose(resolved(X).sum(axis=0), 0.0, atol=1e-14)


# --- maps and columns -----------------------------------------------------------------------------


def test_a_function_as_map(X, Y, backend):
    close((g @ np.sinh)(X, Y), g(np.sinh(X), np.sinh(Y)))
    close((g @ (lambda Z: Z[:, :1]))(X, Y), g(X[:, :1], Y[:, :1]))


def test_a_fitted_transformer_as_map(X, Y):
    scaler = StandardScaler().fit(X)
    close((g @ scaler)(X, Y), g(scaler.transform(X), scaler.transform(Y)))


def test_maps_and_columns_chain(X, Y, backend):
    kernel = (g @ np.tanh).on(0, 2)
    close(kernel(X, Y), g(np.tanh(X[:, [0, 2]]), np.tanh(Y[:, [0, 2]])))
    kernel = g.on(1) @ np.tanh
    close(kernel(X, Y), g(np.tanh(X)[:, [1]], np.tanh(Y)[:, [1]]))


def test_the_maps_are_in_the_features_package():
    """Where the documentation of Polynomial says they are."""
    from mercer import features

    assert features.PolynomialMap is PolynomialMap and features.GaussianTaylorMap is GaussianTaylorMap


def frame(library):
    columns = {
        "age": [30.0, 40.0, 35.0, 30.0],
        "height": [1.8, 1.6, 1.7, 1.75],
        "colour": ["red", "blue", "red", "green"],
    }
    return library.DataFrame(columns)


frames = pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])


@frames
def test_columns_of_a_frame_by_name(library, backend):
    table = frame(library)
    kernel = Gaussian(10.0).on("age", "height") * Delta().on("colour")
    numbers = np.array([[30.0, 1.8], [40.0, 1.6], [35.0, 1.7], [30.0, 1.75]])
    same = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]])
    close(kernel(table), Gaussian(10.0)(numbers) * same)
    close(kernel(table[:2], table[1:]), (Gaussian(10.0)(numbers) * same)[:2, 1:])
    K = Gram(kernel, table)
    np.testing.assert_allclose(K.diag(), 1.0)
    close(K.block([3, 0], [2]), (Gaussian(10.0)(numbers) * same)[np.ix_([3, 0], [2])])


@frames
def test_a_category_in_one_frame_and_not_in_the_other(library):
    table = frame(library)
    np.testing.assert_array_equal(Delta().on("colour")(table[:2], table[2:]), [[1, 0], [0, 0]])


@frames
def test_columns_by_position_and_a_sum_of_both_kinds(library):
    table = frame(library)
    kernel = 0.5 * Linear().on(0) + 0.5 * Delta().on(2)
    ages = np.array([30.0, 40.0, 35.0, 30.0])
    same = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]])
    close(kernel(table), 0.5 * np.outer(ages, ages) + 0.5 * same)


@frames
def test_words_are_resolved_on_the_chosen_columns(library):
    table = frame(library)
    kernel = Gaussian(sigma="median").on("age") * Delta().on("colour")
    resolved = kernel.resolve(table)
    assert resolved == Gaussian(sigma=5.0).on("age") * Delta().on("colour")


@frames
def test_a_column_that_is_not_there(library):
    with pytest.raises(InputError) as caught:
        Gaussian(1.0).on("weight")(frame(library))
    assert str(caught.value) == "X has no column 'weight': it has 'age', 'height', 'colour'"


def test_lists_of_columns_are_flattened():
    assert Gaussian(1.0).on([0, 1]) == Gaussian(1.0).on(0, 1) == Gaussian(1.0).on((0,), 1)


def test_tensor_product_over_columns(X, Y, backend):
    kernel = Gaussian(0.7).on(0) * Polynomial(2).on(1, 2)
    close(kernel(X, Y), Gaussian(0.7)(X[:, :1], Y[:, :1]) * Polynomial(2)(X[:, 1:], Y[:, 1:]))
    # the Gaussian is the tensor product of Gaussians of its columns
    product = Gaussian(0.7).on(0) * Gaussian(0.7).on(1) * Gaussian(0.7).on(2)
    close(product(X, Y), Gaussian(0.7)(X, Y))


def test_columns_of_sparse_points(X, Y):
    kernel = Gaussian(0.7).on(0, 2) + Linear().on(1)
    close(kernel(sparse.csr_array(X), sparse.csr_array(Y)), kernel(X, Y))


def test_length_scales_are_a_map(X, Y, backend):
    scales = np.array([0.5, 2.0, 1.5])
    close(Gaussian(sigma=scales)(X, Y), (Gaussian(1.0) @ (lambda Z: Z / scales))(X, Y))
    close(
        (Gaussian(sigma=scales[:2]).on(0, 2) + l)(X, Y),
        Gaussian(sigma=scales[:2])(X[:, [0, 2]], Y[:, [0, 2]]) + l(X, Y),
    )


# --- domains --------------------------------------------------------------------------------------


def test_a_domain_may_be_said_by_its_word():
    class Own(Kernel):
        domain = "objects"

    assert Own.domain is Domain.OBJECTS and not Own.domain.is_vectors
    with pytest.raises(InputError, match="'vectors', 'objects', 'any', got 'texts': name one"):
        type("Other", (Kernel,), {"domain": "texts"})


def test_domains_of_compositions():
    assert (g + l).domain == "vectors"
    assert (g * Min()).domain == "nonnegative"
    assert (g + Constant()).domain == "vectors"
    assert (Delta() + Constant()).domain == "any"
    assert (g.on(0) + l).domain == "vectors"
    assert (g.on(0) * Delta().on(1)).domain == "any"


@pytest.mark.filterwarnings("ignore::mercer.errors.SlowPathWarning")
def test_a_row_of_numbers_is_an_object_too(X, Y, backend):
    """A formula and a Python function on the same vectors."""
    kernel = g + FromFunction(lambda x, y: float(np.dot(x, y)))
    assert kernel.domain == "vectors" and FromFunction(max).normalized().domain == "objects"
    close(kernel(X, Y), g(X, Y) + X @ Y.T)


def test_negative_values_are_refused_in_compositions():
    with pytest.raises(InputError, match="Negative values in data"):
        (Gaussian(1.0) * Min())([[1.0, -2.0]])


def test_negative_values_are_refused_behind_columns():
    with pytest.raises(InputError, match="Negative values in data"):
        Min().on(0)(np.array([[-1.0, 2.0], [3.0, 4.0]]))


# --- printing -------------------------------------------------------------------------------------

ALGEBRA = [
    (g + p, "Gaussian(sigma=1.3) + Polynomial(degree=2, c=0.5)"),
    (g * (p + l), "Gaussian(sigma=1.3) * (Polynomial(degree=2, c=0.5) + Linear())"),
    (g * p + l, "Gaussian(sigma=1.3) * Polynomial(degree=2, c=0.5) + Linear()"),
    (2 * g, "2 * Gaussian(sigma=1.3)"),
    (2.5 * (g + l), "2.5 * (Gaussian(sigma=1.3) + Linear())"),
    (2 * g + 3 * l, "2 * Gaussian(sigma=1.3) + 3 * Linear()"),
    (2 * (g * l), "2 * (Gaussian(sigma=1.3) * Linear())"),
    ((2 * g) * l, "2 * Gaussian(sigma=1.3) * Linear()"),
    (g * (2 * l), "Gaussian(sigma=1.3) * (2 * Linear())"),
    (2 * (3 * g), "2 * (3 * Gaussian(sigma=1.3))"),
    ((g + l) ** 2, "(Gaussian(sigma=1.3) + Linear())**2"),
    (g**2, "Gaussian(sigma=1.3)**2"),
    ((g**2) ** 3, "(Gaussian(sigma=1.3)**2)**3"),
    ((2 * g) ** 2, "(2 * Gaussian(sigma=1.3))**2"),
    (2 * g**2, "2 * Gaussian(sigma=1.3)**2"),
    (g + 1.0, "Gaussian(sigma=1.3) + Constant(c=1.0)"),
    (g + (p + l), "Gaussian(sigma=1.3) + Polynomial(degree=2, c=0.5) + Linear()"),
    (g.normalized(), "Gaussian(sigma=1.3).normalized()"),
    ((g + l).normalized(), "(Gaussian(sigma=1.3) + Linear()).normalized()"),
    ((2 * l).normalized() ** 2, "(2 * Linear()).normalized()**2"),
    (g.on(0, 2), "Gaussian(sigma=1.3).on(0, 2)"),
    ((g + l).on("age"), "(Gaussian(sigma=1.3) + Linear()).on('age')"),
    (g.on(0) * Delta().on("colour"), "Gaussian(sigma=1.3).on(0) * Delta().on('colour')"),
    (g.exp(), "exp(Gaussian(sigma=1.3))"),
    ((2 * l + g).exp() * l, "exp(2 * Linear() + Gaussian(sigma=1.3)) * Linear()"),
    (g.centered(), "Gaussian(sigma=1.3).centered()"),
    (Linear().polynomial([1.0, 2.0]), "PolynomialOf(kernel=Linear(), coefficients=[1.0, 2.0])"),
    (Gaussian(sigma=[1.0, 2.0]), "Gaussian(sigma=[1.0, 2.0])"),
    (Gaussian(sigma=np.array([1.0, 2.0])), "Gaussian(sigma=[1.0, 2.0])"),
    (Gaussian(sigma=np.float64(2.0)), "Gaussian(sigma=2.0)"),
    (np.float64(2.0) * g, "2.0 * Gaussian(sigma=1.3)"),
    (Polynomial(2, c=np.float64(0.5)), "Polynomial(degree=2, c=0.5)"),
    (Gaussian(gamma="scale"), "Gaussian(gamma='scale')"),
    (Polynomial(3, gamma=0.5), "Polynomial(degree=3, c=1.0, gamma=0.5)"),
    (g @ np.exp, "Gaussian(sigma=1.3) @ exp"),
    ((g @ np.exp) + l, "Gaussian(sigma=1.3) @ exp + Linear()"),
    (2 * (g @ np.exp), "2 * (Gaussian(sigma=1.3) @ exp)"),
    (g @ np.exp @ np.sin, "Gaussian(sigma=1.3) @ exp @ sin"),
    ((g @ np.exp).on(0), "(Gaussian(sigma=1.3) @ exp).on(0)"),
    ((g @ np.exp) ** 2, "(Gaussian(sigma=1.3) @ exp)**2"),
    ((g @ np.exp).normalized(), "(Gaussian(sigma=1.3) @ exp).normalized()"),
]


@pytest.mark.parametrize(("kernel", "text"), ALGEBRA, ids=[text for _, text in ALGEBRA])
def test_kernels_print_as_their_algebra(kernel, text):
    assert repr(kernel) == text


@pytest.mark.parametrize("kernel", [kernel for kernel, _ in ALGEBRA], ids=[text for _, text in ALGEBRA])
def test_what_is_printed_reads_back(kernel):
    names = {
        name: getattr(mercer, name) for name in mercer.__all__ if name[0].isupper() and hasattr(mercer, name)
    }
    names |= {"PolynomialOf": mercer.kernels.compose.PolynomialOf, "exp": lambda k: k.exp(), "sin": np.sin}
    if "@" in repr(kernel):
        names |= {"exp": np.exp}
    assert eval(repr(kernel), names) == kernel


def test_large_arrays_are_not_printed_in_full(X):
    assert repr(mercer.Precomputed(np.eye(20))) == "Precomputed(matrix=<20 × 20 array>)"
    assert repr(g.centered(X)) == "Gaussian(sigma=1.3).centered(<8 points>)"


# --- identity -------------------------------------------------------------------------------------


def different_kernels():
    return [
        Gaussian(1.0), Gaussian(2.0), Gaussian(gamma=1.0), Gaussian(sigma="median"),
        Gaussian(sigma=[1.0, 2.0]), Gaussian(sigma=[2.0, 1.0]),
        Laplacian(1.0), Laplacian(1.0, norm=2), Linear(), Polynomial(1, c=0.0),
        Sigmoid(), Matern(), RationalQuadratic(), Periodic(), Wendland(), BSpline(), BallIndicator(),
        Delta(), Min(), ChiSquared(), ArcCosine(), Cosine(), Constant(),
        Gaussian(1.0) + Linear(), Linear() + Gaussian(1.0), Gaussian(1.0) * Linear(), 2 * Linear(),
        3 * Linear(),
        Linear() ** 2, Linear() ** 3, Linear().exp(), Linear().normalized(), Linear().centered(),
        Linear().centered(np.eye(2)), Linear().centered(np.ones((2, 2))), Linear().on(0), Linear().on(1),
        Linear().on("a"), Linear() @ np.sin, Linear() @ np.cos, Linear().polynomial([1.0]),
    ]  # fmt: skip


def test_equality_and_hash_tell_kernels_apart():
    ours, theirs = different_kernels(), different_kernels()
    for i, a in enumerate(ours):
        for j, b in enumerate(theirs):
            assert (a == b) is (i == j), (a, b)
            if i == j:
                assert hash(a) == hash(b)
    assert len(set(ours) | set(theirs)) == len(ours)


def test_lists_tuples_and_arrays_of_equal_numbers_are_equal():
    assert Gaussian(sigma=[1.0, 2.0]) == Gaussian(sigma=(1.0, 2.0)) == Gaussian(sigma=np.array([1.0, 2.0]))
    assert Gaussian(sigma=[1.0, 2.0]) != Gaussian(sigma=[1.0, 2.0, 3.0])
    assert Gaussian(sigma=[1.0, 1.0]) != Gaussian(sigma=1.0)


def test_numbers_of_different_types_are_equal():
    assert Gaussian(1) == Gaussian(1.0) == Gaussian(np.float64(1)) and hash(Gaussian(1)) == hash(
        Gaussian(1.0)
    )


def test_a_kernel_is_not_equal_to_other_things():
    assert Linear() != "linear" and Linear() != 1 and Linear() is not None


@pytest.mark.parametrize("kernel", different_kernels(), ids=repr)
def test_copies_are_equal_and_their_own(kernel):
    for other in (
        pickle.loads(pickle.dumps(kernel)),
        copy.deepcopy(kernel),
        copy.copy(kernel),
        clone(kernel),
    ):
        assert other == kernel and other is not kernel and hash(other) == hash(kernel)


def test_deep_copies_share_no_kernels():
    kernel = Gaussian(1.0) + Linear()
    for other in (copy.deepcopy(kernel), clone(kernel)):
        other.set_params(k1__sigma=5.0)
        assert kernel.k1.sigma == 1.0


# --- scikit-learn ---------------------------------------------------------------------------------


def test_nested_parameters_have_nested_names():
    kernel = Gaussian(1.0) + 2 * Linear().on(0)
    assert kernel.get_params(deep=False) == {"k1": Gaussian(1.0), "k2": 2 * Linear().on(0)}
    assert kernel.get_params() == {
        "k1": Gaussian(1.0),
        "k1__sigma": 1.0,
        "k1__gamma": None,
        "k2": 2 * Linear().on(0),
        "k2__scale": 2,
        "k2__kernel": Linear().on(0),
        "k2__kernel__kernel": Linear(),
        "k2__kernel__columns": (0,),
    }


def test_clone_keeps_the_shape_of_nested_sums():
    nested = Sum(k1=Gaussian(1.0) + Linear(), k2=Polynomial(2))  # not flattened: named
    assert clone(nested) == nested
    assert len((g + l + p).children()) == 3 and len((g * l * p).children()) == 3
    assert len((g * l + p).children()) == 2


def test_clone_of_a_fitted_map(X):
    """A transformer that was fitted is part of the kernel, not something a search fits again."""
    kernel = g @ StandardScaler().fit(X)
    close(clone(kernel)(X), kernel(X))


class Ridge(RegressorMixin, BaseEstimator):
    """Kernel ridge in four lines."""

    def __init__(self, kernel=None, lam=0.1):
        self.kernel = kernel
        self.lam = lam

    def fit(self, X, y):
        self.kernel_, self.X_ = self.kernel.resolve(X), X
        self.coef_ = np.linalg.solve(self.kernel_(X) + self.lam * np.eye(len(X)), y)
        return self

    def predict(self, X):
        return self.kernel_(X, self.X_) @ self.coef_


def test_a_search_over_nested_parameters_and_over_kernels(rng):
    X = rng.uniform(-3, 3, size=(60, 1))
    y = np.sin(3 * X[:, 0]) + X[:, 0]
    start = Ridge(Gaussian(1.0) + 1.0 * Linear(), lam=1e-3)
    grid = {"kernel__k1__sigma": [0.01, 0.5], "kernel__k2__scale": [0.0, 1.0]}
    search = GridSearchCV(start, grid, cv=3, scoring="neg_mean_squared_error").fit(X, y)
    assert search.best_params_["kernel__k1__sigma"] == 0.5
    assert start.kernel == Gaussian(1.0) + 1.0 * Linear()  # the search works on clones
    kernels = GridSearchCV(Ridge(), {"kernel": [Linear(), Gaussian("median")]}, cv=3).fit(X, X[:, 0] ** 2)
    assert kernels.best_params_["kernel"] == Gaussian("median")


# --- classes behind the operators -----------------------------------------------------------------


def test_operators_build_these_classes():
    assert type(g + l) is Sum and type(g * l) is Product and type(2 * g) is Scaled and type(g**2) is Power
    assert type(g @ np.exp) is Mapped and type(g.on(0)) is OnColumns and type(g.centered()) is Centered


@pytest.mark.parametrize(
    "action", [lambda: g + "a", lambda: g * None, lambda: g / l, lambda: g + True, lambda: "a" * g]
)
def test_nonsense_is_a_type_error(action):
    with pytest.raises(TypeError):
        action()
