"""What certify may be asked about: text, matrices, functions of the distance; the module and the function."""

import os
import subprocess
import sys
from functools import partial
from inspect import signature

import numpy as np
import pytest
from scipy import sparse, special

import mercer
from mercer import BallIndicator, FromFunction, Gaussian, Linear, certify, largest_dimension
from mercer.certify.asked import OfDistance, Sampled, as_asked
from mercer.certify.matrix import certify_matrix
from mercer.errors import InputError

# --- the module that is a function ---------------------------------------------------------------


def run(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_the_module_is_called_like_the_function():
    assert mercer.certify is sys.modules["mercer.certify"]
    assert mercer.certify(Linear()).verdict == "proved"
    assert mercer.certify.certify(Linear()).verdict == "proved"
    assert mercer.certify(Gaussian(), dim=2).verdict == "proved"
    assert list(signature(mercer.certify).parameters) == list(signature(mercer.certify.certify).parameters)


LINES = [
    "import mercer.certify.smoothness",
    "import mercer.certify as c; c.density; c.certify; c(mercer.Linear())",
    "from mercer.certify import density, certify; certify(mercer.Linear())",
    "from mercer import certify; certify(mercer.Linear()); certify.density",
    "import mercer.certify; import importlib; importlib.import_module('mercer.certify')(mercer.Linear())",
]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="each line has a process of its own, by fork")
def test_imports_in_any_order_leave_a_callable():
    program = f"""
import os, sys
import numpy, scipy.linalg, scipy.sparse, scipy.special
for line in {LINES!r}:
    if os.fork():
        os.wait()
        continue
    exec(line.split(";")[0])  # before mercer, and after it
    import mercer
    exec(line)
    print(mercer.certify(mercer.Linear()).verdict, flush=True)
    os._exit(0)
"""
    assert run(program).split() == ["proved"] * len(LINES)


@pytest.mark.full
def test_modules_are_there_after_import_mercer_and_not_before_they_are_asked_for():
    program = """
import sys, mercer
names = [m for m in mercer._MODULES if f"mercer.{m}" in sys.modules]
heavy = [m for m in ("sklearn", "matplotlib", "pandas", "polars", "torch") if m in sys.modules]
print(names, heavy)
mercer.geometry.norms; mercer.losses; mercer.features.PolynomialMap; mercer.testing.check_kernel
mercer.selection.AutoKernelRegressor; mercer.plots.GramDisplay; mercer.tables; mercer.persist.load
mercer.reporting.write_report
print(all(m in dir(mercer) for m in mercer._MODULES))
"""
    assert run(program).splitlines() == ["[] []", "True"]


# --- text ----------------------------------------------------------------------------------------


def test_a_negative_is_refuted_as_by_the_command():
    assert certify("-gaussian(1)").verdict == "refuted"


def test_text_is_read_as_the_command_reads_it():
    assert certify("2*gaussian(sigma=1) + polynomial(3)").verdict == "proved"
    assert certify("ballindicator(1)").verdict == "refuted"
    assert certify("rbf").kernel == Gaussian(gamma="scale")  # scikit-learn's names mean what they did
    with pytest.raises(InputError, match="there is no kernel 'gausian'"):
        certify("gausian(1)")


# --- matrices ------------------------------------------------------------------------------------

BALL = np.array([[1.0, 1, 0], [1, 1, 1], [0, 1, 1]])


@pytest.mark.parametrize("give", [np.array, np.ndarray.tolist, sparse.csr_array])
def test_an_indefinite_matrix_has_a_witness(give):
    certificate = certify(give(BALL))
    c = certificate.vector
    assert certificate.verdict == "refuted"
    assert c @ BALL @ c < 0 and np.isclose(np.linalg.norm(c), 1)
    assert np.allclose(certificate.eigenvalues, [1 + 2**0.5, 1, 1 - 2**0.5])
    assert "the 3 × 3 matrix is refuted: cᵀKc = -0.414214 < 0" in str(certificate)


def test_the_witness_is_as_long_as_the_matrix_and_names_few_rows():
    K = np.eye(40)
    K[3, 17] = K[17, 3] = 2.0
    c = certify(K).vector
    assert len(c) == 40 and np.flatnonzero(c).tolist() == [3, 17] and c @ K @ c < 0
    assert str(certify(K)).count("\nc = ") == 2


def test_a_large_indefinite_matrix():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(450, 450))
    c = certify(A + A.T).vector
    assert c @ (A + A.T) @ c < 0


def test_definite_matrices_are_proved():
    X = np.random.default_rng(0).normal(size=(200, 3))
    certificate = certify(Gaussian(sigma=0.3)(X))
    assert certificate.verdict == "proved" and "Cholesky" in certificate.reason
    assert "proved positive semidefinite" in str(certificate)


def test_small_singular_matrices_are_decided_in_fractions():
    X = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.25], [4.0, 1.0]])
    assert certify(X @ X.T).verdict == "proved"  # these products are exact
    assert certify(np.zeros((2, 2))).verdict == "proved"
    assert certify(np.array([[0.0, 1.0], [1.0, 1.0]])).verdict == "refuted"


def test_nothing_is_claimed_within_rounding():
    """A rank-one matrix whose rounding pushed an eigenvalue below zero, or may have."""
    x = np.random.default_rng(1).normal(size=300)
    certificate = certify(np.outer(x, x))
    assert certificate.verdict == "unknown"
    assert "rounding explains values down to" in certificate.reason
    tiny = np.diag([1.0, -1e-17])
    assert certify(tiny).verdict == "unknown"
    single = np.outer(x, x).astype(np.float32)
    assert certify(single).verdict == "unknown"


def test_the_bound_behind_the_proof_holds():
    """Matrices with an eigenvalue a little below zero are never proved, however close."""
    rng = np.random.default_rng(2)
    for exponent in range(4, 17):
        Q, _ = np.linalg.qr(rng.normal(size=(30, 30)))
        values = np.append(rng.uniform(0.1, 1.0, 29), -(10.0**-exponent))
        K = (Q * values) @ Q.T
        assert certify((K + K.T) / 2).verdict != "proved"


def test_symmetry():
    certificate = certify(np.array([[1.0, 2.0], [0.0, 1.0]]))
    assert certificate.verdict == "refuted"
    assert certificate.reason == "K[0, 1] = 2 but K[1, 0] = 0: it is not symmetric"
    nearly = np.eye(2) + np.array([[0, 1e-12], [0, 0]])
    assert certify(nearly).verdict == "proved" and "symmetric up to 1e-12" in certify(nearly).reason


def test_what_is_no_gram_matrix():
    with pytest.raises(InputError, match=r"a Gram matrix is square, got shape \(2, 3\)"):
        certify(np.ones((2, 3)))
    with pytest.raises(InputError, match="K contains 1 NaN"):
        certify([[1.0, np.nan], [0.0, 1.0]])
    with pytest.raises(InputError, match="a matrix has no points"):
        certify(np.eye(2), dim=2)


def test_fractions_agree_with_eigenvalues():
    rng = np.random.default_rng(3)
    for _ in range(40):
        A = rng.integers(-3, 4, size=(4, 4)).astype(float)
        K = A + A.T + 6 * np.eye(4)
        low = np.linalg.eigvalsh(K)[0]
        assert abs(low) < 1e-9 or (certify_matrix(K).verdict == "proved") == (low > 0)


# --- functions of the distance -------------------------------------------------------------------


def test_a_function_of_one_argument_is_one_of_the_distance():
    assert isinstance(as_asked(lambda r: np.exp(-r)), OfDistance)
    assert isinstance(as_asked(np.cos), OfDistance)
    assert isinstance(as_asked(lambda x, y: 1.0), FromFunction)
    assert isinstance(as_asked(lambda x, y=0: 1.0), FromFunction)
    assert isinstance(as_asked(lambda *both: 1.0), FromFunction)
    assert isinstance(as_asked(partial(lambda a, r: np.exp(-a * r), 2.0)), OfDistance)
    assert isinstance(as_asked(lambda r: special.j0(r)), Sampled)
    assert isinstance(as_asked(lambda r: 1.0 if r < 1 else 0.0), Sampled)


def test_a_formula_of_the_distance_is_reasoned_about():
    assert certify(lambda r: np.exp(-(r**2))).verdict == "proved"
    hat = certify(lambda r: np.maximum(1 - r, 0))
    assert hat.verdict == "proved" and hat.dimension == 1 and "m ≤ 1" in hat.reason
    assert certify(lambda r: np.maximum(1 - r, 0), dim=3).verdict == "refuted"
    assert certify(lambda r: -r).conditional == 1
    assert largest_dimension(lambda r: np.maximum(1 - r, 0)) == 1


def test_a_function_that_behaves_otherwise_with_formulas_is_not_believed():
    def sly(r):
        return np.exp(-r) if not isinstance(r, float | np.ndarray) else np.float64(1.0) * (np.asarray(r) <= 1)

    assert isinstance(as_asked(sly), Sampled)
    assert certify(sly).verdict == "refuted"


@pytest.mark.parametrize("phi", [
    lambda r: special.j0(r),  # positive definite in the plane
    lambda r: np.sinc(r / np.pi),  # and in space
    lambda r: (1 - r) ** 2 if r < 1 else 0.0,  # Askey, up to ℝ³
])  # fmt: skip
def test_what_is_only_sampled_is_never_proved(phi):
    for dim in (1, 2):
        certificate = certify(phi, dim=dim)
        assert certificate.verdict == "unknown"
        assert "nothing can be proved about it" in certificate.reason


def test_what_is_only_sampled_can_be_refuted():
    assert certify(lambda r: 1.0 if r <= 1 else 0.0).verdict == certify(BallIndicator()).verdict == "refuted"
    certificate = certify(lambda r: special.j0(r))
    assert certificate.verdict == "refuted"
    assert "and in lower dimensions it may be positive definite: pass dim" in certificate.reason
    K = special.j0(np.linalg.norm(certificate.points[:, None] - certificate.points, axis=-1))
    assert certificate.vector @ K @ certificate.vector < 0


def test_a_function_that_gives_no_number():
    with pytest.raises(InputError, match=r"φ\(r\) must be a number"):
        certify(lambda r: "far" if r > 1 else "near")
