"""φ(r) from a text: what it means, and that nothing else than a formula is read."""

import copy
import pickle

import numpy as np
import pytest

from mercer import certify
from mercer.certify.asked import as_typed
from mercer.errors import InputError
from mercer.kernels.formula import expression
from mercer.kernels.formula.expression import Symbol
from mercer.kernels.formula.typed import FUNCTIONS, typed_profile

R = np.array([0.0, 0.3, 1.0, 2.5])
MEANT = {
    "exp(-r**2/2)": np.exp(-(R**2) / 2),
    "max(1 - r, 0)": np.maximum(1 - R, 0),
    "where(r <= 1, 1 - r, 0)": np.where(R <= 1, 1 - R, 0),
    "(r < 1) * 2": 2.0 * (R < 1),
    "(r > 1) + (r >= 1)": (R > 1) + 1.0 * (R >= 1),
    "cos(2*pi*r) + e": np.cos(2 * np.pi * R) + np.e,
    "abs(-r) + +3": R + 3,
    "min(r, 1) / 2 - 1": np.minimum(R, 1) / 2 - 1,
    "sqrt(r) * tanh(r) + sin(r) - log(1 + r) + arccos(min(r, 1))": np.sqrt(R) * np.tanh(R)
    + np.sin(R)
    - np.log(1 + R)
    + np.arccos(np.minimum(R, 1)),
    "2": np.full(4, 2.0),
}


@pytest.mark.parametrize("text", MEANT)
def test_a_text_means_what_it_says(text):
    phi = typed_profile(text)
    assert np.allclose(phi(R), MEANT[text], rtol=1e-15, atol=1e-15)
    names = {name: getattr(expression, name) for name in expression.__all__}
    assert eval(phi.source, names, {"r": Symbol("r")}) == phi(Symbol("r"))  # the source is Python for it


@pytest.mark.sample(3)
@pytest.mark.parametrize("text", MEANT)
def test_the_kernel_of_a_text_has_its_values(text):
    kernel = as_typed(f"{text} + 0*r")
    assert np.allclose(kernel([[0.0]], R[:, None])[0], MEANT[text], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("__import__('os')", "there is no function '__import__'"),
        ("r.real", "this is not allowed \\('r.real'\\)"),
        ("(lambda: r)()", "this is not allowed"),
        ("[r for r in r]", "this is not allowed"),
        ("r if r else 1", "this is not allowed"),
        ("f'{r}'", "this is not allowed"),
        ("0 < r < 1", "this is not allowed"),
        ("True*r", "this is not allowed"),
        ("'r'", "this is not allowed"),
        ("exp(r, r)", "exp takes 1 value in its brackets"),
        ("where(r, 1)", "where takes 3 values in its brackets"),
        ("exp(x=r)", "there is no function 'exp' of these values"),
        ("exp", "exp takes values in brackets"),
        ("exp(-r*q)", "there is no 'q'"),
        ("r +", "invalid syntax"),
        ("9**999*r", "a number is too large"),
        ("1" + "0" * 400 + "*r", "a number is too large"),
        ("1/0*r", "nothing is divided by zero"),
        ("(-1)**0.5*r", "is not real"),
        ("-" * 60 + "r", "nested more than 40 deep"),
        ("r+" * 600 + "r", "1,201 characters"),
    ],
)
def test_what_is_no_formula_is_refused(text, says):
    with pytest.raises(InputError, match=says):
        typed_profile(text)


def test_the_refusal_lists_all_functions():
    with pytest.raises(InputError) as caught:
        typed_profile("q*r")
    assert all(name in str(caught.value) for name in FUNCTIONS)


def test_it_is_copied_and_compared_by_its_text():
    phi = typed_profile("exp( -r )")
    assert pickle.loads(pickle.dumps(phi)) == phi == copy.deepcopy(phi) == typed_profile("exp(-r)")
    assert phi != typed_profile("exp(-2*r)") and hash(phi) == hash(typed_profile("exp(-r)"))
    assert repr(phi(Symbol("r"))) == "exp(r * -1)"


def test_certify_takes_it():
    assert certify("exp(-r)").verdict == "proved"
    hat = certify("max(1 - r, 0)", dim=2)
    assert hat.verdict == "refuted" and hat.dimension == 1
