"""Parameters beyond all measure: a kernel refuses them in a sentence, or computes with them."""

import warnings

import numpy as np
import pytest

import mercer
from mercer import BlendedSpectrum, GappedKmer, Gaussian, Linear, Polynomial, Radial, Spectral, Spectrum
from mercer.errors import InputError, MemoryBudgetError
from mercer.kernels.depth import DEEPEST
from mercer.testing import example_kernels, example_points

NUMBERS = [0, -1, 0.5, -1.0, np.nan, np.inf, -np.inf, 1e300, 1e-300, 5e-324, 1.7e308]
NUMBERS += [2**31, 2**63, 10**30, 10**400, 10**5000, True, None, "many", 1j, np.float32(3e38)]


def is_number(value):
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _cases():
    """Kernels of every class with a parameter that is a number, or a list of some."""
    for kernel in example_kernels():
        for name, value in kernel.get_params(deep=False).items():
            is_list = isinstance(value, list | tuple | np.ndarray) and len(value) and is_number(value[0])
            if is_number(value) or is_list:
                yield pytest.param(kernel, name, id=f"{kernel!r:.60}-{name}")


@pytest.mark.parametrize(("kernel", "name"), list(_cases()))
def test_extreme_parameters_are_refused_or_computed_with(kernel, name):
    """Never an OverflowError, a ZeroDivisionError or a number that is none; ∞ where a value is too large."""
    X = example_points(kernel, 5, np.random.default_rng(1))
    given = kernel.get_params(deep=False)
    for number in NUMBERS:
        is_list = not is_number(given[name])
        value = [number] * len(given[name]) if is_list else number
        try:
            changed = type(kernel)(**{**given, name: value})
            assert repr(changed)
            with mercer.config(backend="numpy"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                K = changed(X)
                values = mercer.Gram(changed, X).diag()
        except (InputError, MemoryBudgetError) as error:
            assert len(str(error)) > 20 and " " in str(error)
            assert len(str(error)) < 1000
        else:
            assert not np.isnan(K).any() and not np.isnan(values).any(), (name, number)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Gaussian(10**400),
            "sigma must be positive, of at most 4.6e\\+18, got an integer of 1329|got 10",
        ),
        (lambda: Spectrum(10**30), "k must be a whole number of at least 1 and at most 2147483647"),
        (lambda: GappedKmer(1e300, 2), "g must be a whole number of at least 1 and at most 2147483647"),
        (lambda: Polynomial(10**5000), "degree must be .*, got an integer of 16610 bits"),
        (lambda: Radial([1e300]), "nodes must be a list of wave numbers between 0 and 1e100"),
        (lambda: Spectral((5e-324, 5e-324)), "density .* has an integral that no float can hold"),
        (lambda: Linear().polynomial([1.0] * 100), "coefficients must be at most 65 numbers, got 100"),
        (
            lambda: BlendedSpectrum(3, decay=1e300)(["abc"]),
            r"decay=1e\+300 makes words of 1 letters count decay\^1 times, which is more than a float",
        ),
    ],
)
def test_the_sentences(make, message):
    with pytest.raises(InputError, match=message):
        make()


STEPS = {
    "scaled": lambda k: 0.9 * k,
    "power": lambda k: k**1.1,
    "exp": lambda k: k.exp(),
    "polynomial": lambda k: k.polynomial([1.0, 0.5]),
    "normalized": lambda k: k.normalized(),
    "columns": lambda k: k.on(0, 1),
    "map": lambda k: k @ np.tanh,
    "sum": lambda k: 0.5 * (k + Linear()),
}


@pytest.mark.parametrize("step", STEPS)
def test_kernels_in_kernels_have_a_limit(step):
    """What is within it works everywhere; beyond it there is a sentence, not a RecursionError."""
    X = np.random.default_rng(0).normal(size=(3, 2)) / 4
    kernel = Gaussian(1.0)
    with pytest.raises(InputError, match=f"kernels in kernels, more than {DEEPEST} deep: put equal steps"):
        for _ in range(DEEPEST):
            deepest, kernel = kernel, STEPS[step](kernel)
    with mercer.config(backend="numpy"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert deepest(X).shape == (3, 3)
    assert repr(deepest) and deepest == deepest.__sklearn_clone__() and isinstance(hash(deepest), int)
    mercer.certify(deepest)


def test_sums_and_products_may_be_long():
    """The formula of n terms is no n calls deep."""
    X = np.random.default_rng(0).normal(size=(4, 300))
    terms = [Gaussian(2.0).on(j) for j in range(300)]
    with mercer.config(backend="numpy"):
        K, L = sum(terms)(X), mercer.kernels.compose.Product(*terms)(X)
    one = np.exp(-((X[:, None] - X[None]) ** 2) / 8)
    np.testing.assert_allclose(K, one.sum(axis=2), rtol=1e-13)
    np.testing.assert_allclose(L, one.prod(axis=2), rtol=1e-12)
