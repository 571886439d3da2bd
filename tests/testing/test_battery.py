"""A check that cannot fail is worse than none: broken kernels and backends, each caught by its own check."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

import mercer.gram.backends.numpy as oracle
from mercer import BallIndicator, FromFunction, Gaussian, Gram, Kernel, Linear, Polynomial, Wendland, exp
from mercer.kernels import positive
from mercer.kernels.parameters import fixed
from mercer.kernels.support import Support
from mercer.testing import check_kernel, missing_examples


@pytest.fixture
def registry(monkeypatch):
    """The registry, as it was once the test is over."""
    monkeypatch.setattr(Kernel, "registry", list(Kernel.registry))
    return Kernel.registry


@pytest.fixture
def oracle_block(monkeypatch):
    """A backend whose blocks go through a function that spoils them."""
    honest = oracle.NumpyBackend.fill

    def install(spoil):
        def fill(self, tile, out):
            honest(self, tile, out)
            spoil(out, tile.mirror)

        monkeypatch.setattr(oracle.NumpyBackend, "fill", fill)

    return install


def rejected(kernel, text, *points, **options):
    """check_kernel refuses the kernel with exactly this text; … stands for numbers."""
    pattern = re.escape(text).replace("…", ".*")
    with pytest.raises(AssertionError, match=f"^{pattern}"):
        check_kernel(kernel, *points, **{"backend": "numpy", **options})


def test_what_is_broken_below_is_accepted_when_whole():
    check_kernel(Gaussian(sigma=1.0), backend="numpy")
    check_kernel(BallIndicator(), backend="numpy")
    check_kernel(FromFunction(letters), backend="numpy")


# --- values ------------------------------------------------------------------------------------------


class Overlooked(Kernel):
    support = Support.ball(0.5)

    def formula(self, pair):
        return exp(-pair.sqdist)


def test_a_support_that_is_too_small():
    rejected(Overlooked(), "Overlooked() is said to be zero outside its support, but k(X, X)[0, 1] = … there")


class OneSided(Kernel):
    def formula(self, pair):
        return pair.dot + pair.xx


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_asymmetric_formula(backend):
    rejected(OneSided(), "OneSided() is not symmetric: k(X, Y)[…] = … but k(Y, X)[…] = …", backend=backend)


def test_a_matrix_that_is_symmetric_only_nearly(oracle_block):
    def nudge(out, mirror):
        if mirror:
            out[0, 2] = np.nextafter(out[0, 2], 2.0)

    oracle_block(nudge)
    rejected(Gaussian(sigma=1.0), "Gaussian(sigma=1.0) is not symmetric: k(X)[0, 2] = … but k(X)[2, 0] = …")


def letters(a, b):
    return len(set(a) & set(b))


class OtherDiagonal(FromFunction):
    def self_pairs(self, X):
        return np.zeros(len(X))


def test_wrong_diagonal():
    rejected(
        OtherDiagonal(letters),
        "OtherDiagonal(function=letters): diag()[0] = 0.0 but the diagonal of dense()[0] = 2.0",
        ["ab", "b", "ccc"],
    )


class Infinite(Kernel):
    def formula(self, pair):
        return 1 / pair.sqdist


def test_values_that_are_not_finite():
    rejected(Infinite(), "Infinite(): k(X, X)[0, 0] is not a finite number")


class ClaimedBall(BallIndicator):
    lemma = "none: the indicator of a ball is not a kernel"


@pytest.mark.parametrize("points", [[], [[[1.0], [2.0], [3.0]]]], ids=["example points", "1, 2, 3"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_false_claim(points, dtype):
    text = "ClaimedBall(radius=1.0) is claimed to be positive semidefinite, but k(X) has the eigenvalue -0.…"
    rejected(ClaimedBall(), text + ": cᵀKc < 0 for c = [", *points, dtype=dtype)


class ClaimedWendland(Wendland):
    lemma = "positive definite in ℝ"


def test_a_claim_for_one_dimension_is_no_claim_for_two():
    X = 0.7 * np.array([[i, j] for i in range(7) for j in range(7)])
    check_kernel(Wendland(smoothness=0, dim=1), X[:7], backend="numpy")
    check_kernel(Wendland(smoothness=0, dim=1), X, backend="numpy")  # not positive definite, nobody says so
    text = "ClaimedWendland(radius=1.0, smoothness=0, dim=1) is claimed to be positive semidefinite"
    rejected(ClaimedWendland(smoothness=0, dim=1), text, X)


def test_the_eigenvalue_of_the_notes_is_the_one_reported():
    rejected(
        ClaimedBall(),
        "ClaimedBall(radius=1.0) is claimed to be positive semidefinite, "
        "but k(X) has the eigenvalue -0.4142135623730",
        [[1.0], [2.0], [3.0]],
    )


# --- backends ------------------------------------------------------------------------------------------


def test_backend_whose_quantities_are_wrong(monkeypatch):
    honest = oracle.cdist
    monkeypatch.setattr(oracle, "cdist", lambda *arguments: honest(*arguments) * 1.0001)
    rejected(Gaussian(sigma=1.0), "Gaussian(sigma=1.0): k(X, X)[…] = … but its formula at each pair[…] = …")


def test_backend_whose_blocks_differ_from_the_whole(oracle_block):
    def shift(out, mirror):
        if not mirror:
            out += 1e-9

    oracle_block(shift)
    rejected(Gaussian(sigma=1.0), "Gaussian(sigma=1.0): rows(i)[…] = … but dense()[i][…] = …")


def test_blocks_in_the_wrong_place(monkeypatch):
    honest = Gram.block
    monkeypatch.setattr(Gram, "block", lambda self, i, j: honest(self, i[::-1], j))
    rejected(Gaussian(sigma=1.0), "Gaussian(sigma=1.0): block(i, j)[…] = … but dense()[i, j][…] = …")


def test_product_that_leaves_out_a_column(monkeypatch):
    honest = oracle.NumpyBackend.multiply

    def multiply(self, tile, V, out):
        V = V.copy()
        V[-1] = 0
        honest(self, tile, V, out)

    monkeypatch.setattr(oracle.NumpyBackend, "multiply", multiply)
    rejected(Linear() + 1, "Linear() + Constant(c=1): (K @ V)[…] = … but (dense() @ V)[…] = …")


def test_rows_of_the_wrong_shape(monkeypatch):
    honest = Gram.rows
    monkeypatch.setattr(Gram, "rows", lambda self, i: honest(self, i[1:]))
    rejected(Linear(), "Linear(): rows(i) has shape (5, 10), dense()[i] has (6, 10)")


@pytest.mark.parametrize(
    ("method", "name"),
    [
        ("diag", "diag()"),
        ("dense", "dense()"),
        ("rows", "rows()"),
        ("block", "block()"),
        ("__matmul__", "K @ V"),
    ],
)
def test_wrong_precision(monkeypatch, method, name):
    honest = getattr(Gram, method)
    monkeypatch.setattr(Gram, method, lambda self, *index: honest(self, *index).astype(np.float64))
    rejected(Linear(), f"Linear(): {name} is float64 where float32 was asked for", dtype="float32")


# --- parameters ------------------------------------------------------------------------------------------


class Wave(Kernel):
    """A kernel of the user's own, whole; the broken ones are subclasses."""

    lemma = "a Gaussian"
    scale: float = positive(1.0)

    def formula(self, pair):
        return exp(-pair.sqdist * self.scale)


def test_a_users_kernel_is_accepted():
    check_kernel(Wave(scale=0.5))


class Forgets(Wave):
    def get_params(self, deep=True):
        return {}


class ForgetsUnseen(Forgets):
    def __eq__(self, other):
        return type(self) is type(other)

    __hash__ = Wave.__hash__


class Invents(Wave):
    def get_params(self, deep=True):
        return {**super().get_params(deep), "shift": 0.0}


class Converts(Kernel):
    lemma = "constant"
    values: list = fixed(None)

    def __init__(self, values):
        self._assign({"values": list(values)})

    def formula(self, pair):
        return pair.sqdist * 0 + 1.0


class NeverEqual(Wave):
    def __eq__(self, other):
        return self is other

    __hash__ = Wave.__hash__


class HashedByAddress(Wave):
    __eq__ = Wave.__eq__
    __hash__ = object.__hash__


class EqualToAll(Wave):
    def __eq__(self, other):
        return True

    __hash__ = Wave.__hash__


class PrintsItsAddress(Wave):
    def __repr__(self):
        return f"PrintsItsAddress at {id(self)}"


class RefusesItsOwn(Wave):
    def set_params(self, **params):
        raise ValueError("no")


class SetsSomethingElse(Wave):
    def set_params(self, **params):
        return super().set_params(scale=2 * params["scale"])


class LosesParametersInPickle(Wave):
    def __reduce__(self):
        return type(self), ()


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (
            Invents(),
            "Invents(scale=1.0, shift=0.0) cannot be built again from its get_params(), "
            "{'scale': 1.0, 'shift': 0.0}: Invents: got an unexpected keyword argument 'shift'; "
            "its parameters are: scale",
        ),
        (Forgets(scale=2.0), "Forgets(), built again from its get_params(), is not equal to it"),
        (ForgetsUnseen(scale=2.0), "ForgetsUnseen(), built again, has other values: [[1.0, …"),
        (Converts([1.0]), "Converts(values=[1.0]) converts values: it must keep the very object it is given"),
        (
            NeverEqual(),
            "NeverEqual(scale=1.0), built again from its get_params(), is not equal to it",
        ),
        (
            HashedByAddress(),
            "HashedByAddress(scale=1.0), built again, is equal but has another hash",
        ),
        (EqualToAll(), "EqualToAll(scale=1.0) is equal to an object that is not a kernel"),
        (
            PrintsItsAddress(),
            "PrintsItsAddress at …, built again, prints as PrintsItsAddress at …",
        ),
        (RefusesItsOwn(), "RefusesItsOwn(scale=1.0): set_params(**get_params()) is refused: no"),
        (
            SetsSomethingElse(),
            "SetsSomethingElse(scale=1.0), given its own parameters by set_params, has other values: [[",
        ),
        (FromFunction(lambda a, b: 1.0), "FromFunction(function=<lambda>) cannot be pickled: "),
        (
            LosesParametersInPickle(scale=3.0),
            "LosesParametersInPickle(scale=3.0), pickled and loaded, has other values: [[1.0, …",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Kernel) else "",
)
def test_broken_parameter_object(kernel, text):
    rejected(kernel, text)


# --- the register of examples ------------------------------------------------------------------------------


def test_class_without_example(registry):
    assert missing_examples() == []

    class Lonely(Kernel):
        __module__ = "mercer.kernels.lonely"
        partner: object = fixed(None, "given", lambda v: v is not None)

        def formula(self, pair):
            return pair.dot

    assert missing_examples() == [Lonely]


def test_class_with_defaults_is_an_example_of_itself(registry):
    class Sociable(Kernel):
        __module__ = "mercer.kernels.sociable"

        def formula(self, pair):
            return pair.dot

    assert Sociable in registry and missing_examples() == []


def test_without_a_lemma_the_claim_is_that_of_certify(monkeypatch):
    """A false proof is caught as well."""
    import mercer.testing.battery

    monkeypatch.setattr(
        mercer.testing.battery, "certify", lambda kernel, dim: SimpleNamespace(verdict="proved")
    )
    rejected(BallIndicator(), "BallIndicator(radius=1.0) is claimed to be positive semidefinite")
    monkeypatch.setattr(
        mercer.testing.battery, "certify", lambda kernel, dim: SimpleNamespace(verdict="unknown")
    )
    check_kernel(BallIndicator(), backend="numpy")
    check_kernel(Polynomial(2).normalized(), backend="numba")
