"""The verdict as users see it: the golden counterexample, witnesses checked by hand, texts, and refusals."""

import warnings
from math import sqrt

import numpy as np
import pytest

import mercer
from mercer import (
    ArcCosine,
    BallIndicator,
    Certificate,
    FromFunction,
    Gaussian,
    Kernel,
    Linear,
    Matern,
    Min,
    Polynomial,
    Precomputed,
    Sigmoid,
    Wendland,
    certify,
)
from mercer.certify import certify as module_function
from mercer.certify.proof import Step
from mercer.kernels import fixed
from mercer.kernels.formula.expression import exp


class Formula(Kernel):
    """k = function(pair): a user's kernel, without a lemma."""

    function = fixed(None)

    def formula(self, pair):
        return self.function(pair)


def ball(X):
    """The ball indicator of radius 1, in plain NumPy."""
    return (np.linalg.norm(X[:, None] - X[None], axis=-1) <= 1).astype(float)


# --- the ball indicator --------------------------------------------------------------------------

GOLDEN = [1 + sqrt(2), 1, 1 - sqrt(2)]


def test_ball_indicator_at_the_points_of_the_notes():
    certificate = certify(BallIndicator(), [[1.0], [2.0], [3.0]])
    assert certificate.verdict == "refuted"
    assert certificate.eigenvalues == pytest.approx(GOLDEN, abs=1e-12)
    assert certificate.eigenvalues[0] == pytest.approx(1 / (sqrt(2) - 1))
    np.testing.assert_array_equal(certificate.points, [[1.0], [2.0], [3.0]])
    assert certificate.vector == pytest.approx([0.5, -sqrt(0.5), 0.5])
    assert certificate.vector @ ball(certificate.points) @ certificate.vector == pytest.approx(1 - sqrt(2))


def test_ball_indicator_finds_these_points_by_itself():
    certificate = certify(BallIndicator())
    np.testing.assert_array_equal(certificate.points, [[1.0], [2.0], [3.0]])
    assert certificate.eigenvalues == pytest.approx(GOLDEN, abs=1e-12)
    assert certificate.reason == "at 3 points its Gram matrix has the eigenvalue -0.414214 < 0"
    assert certificate.steps is None


def test_a_witness_among_many_points_is_made_small(rng):
    points = rng.uniform(0, 4, size=(150, 2))
    certificate = certify(BallIndicator(), points)
    assert len(certificate.points) == 3
    assert all(any(np.array_equal(p, q) for q in points) for p in certificate.points)
    assert np.linalg.eigvalsh(ball(certificate.points))[0] < -0.4


def test_a_witness_among_very_many_points(rng):
    points = rng.uniform(0, 20, size=(2500, 2))
    certificate = certify(BallIndicator(), points)
    assert certificate.verdict == "refuted" and len(certificate.points) <= 4
    assert np.linalg.eigvalsh(ball(certificate.points))[0] < -0.1


# --- the sigmoid ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("eta", "nu", "size"),
    [
        (1.0, 0.0, 2),
        (0.001, 0.0, 2),
        (100.0, 0.5, 2),
        (1.0, 1.0, 2),
        (2.0, 5.0, 2),
        (1.0, 10.0, 2),
        (1.0, -1.0, 1),
        (1.0, -30.0, 1),
        (-1.0, 0.0, 1),
        (-0.01, 3.0, 1),
    ],
)
def test_sigmoid_is_refuted_with_points_of_its_own(eta, nu, size, within_cpu):
    with within_cpu(2.0):
        certificate = certify(Sigmoid(eta, nu))
    assert certificate.verdict == "refuted"
    X, c = certificate.points, certificate.vector
    assert len(X) == len(c) == len(certificate.eigenvalues) == size
    K = np.tanh(eta * (X @ X.T) + nu)  # from the definition, not from mercer
    assert c @ K @ c < 0
    assert np.sort(certificate.eigenvalues) == pytest.approx(np.linalg.eigvalsh(K), abs=1e-14)
    assert np.linalg.norm(c) == pytest.approx(1)


def test_the_witness_is_the_same_every_time():
    one, two = certify(Sigmoid(0.3, 0.2)), certify(Sigmoid(0.3, 0.2))
    np.testing.assert_array_equal(one.points, two.points)


def test_a_sum_with_a_kernel_does_not_hide_it():
    assert certify(Linear() + 3 * Sigmoid()).verdict == "refuted"
    assert certify(Gaussian(1.0) * Sigmoid().on(1)).verdict == "refuted"


# --- other kernels that are none -----------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda pair: exp(pair.sqdist),
        lambda pair: exp(-(pair.sqdist**2)),
        lambda pair: exp(-(pair.sqdist**1.05)),
        lambda pair: pair.sqdist,
        lambda pair: pair.dot - 1,
        lambda pair: 1 / (pair.sqdist - 0.5),
        lambda pair: exp(-pair.sqdist) - 0.5 * exp(-2 * pair.sqdist),
    ],
)
def test_users_formulas_that_are_no_kernels(function):
    certificate = certify(Formula(function))
    assert certificate.verdict == "refuted"
    with mercer.config(backend="numpy"):
        K = Formula(function)(certificate.points)
    assert certificate.vector @ K @ certificate.vector < 0


def test_an_asymmetric_formula_has_two_points_and_no_vector():
    certificate = certify(Formula(lambda pair: pair.xx * pair.dot))
    assert certificate.reason == "k(x, x') = 2 but k(x', x) = 8: it is not symmetric"
    assert certificate.vector is None and certificate.eigenvalues is None
    assert str(certificate).splitlines()[1:] == ["at [1.0]", "at [2.0]"]


def test_the_derivative_of_a_kernel_is_none():
    assert certify(Gaussian(1.0).derivative("sigma")).verdict == "refuted"
    assert certify((2 * Gaussian(1.0)).derivative("scale")).verdict == "proved"  # k itself


def test_wendland_beyond_its_dimension():
    flat = Wendland(smoothness=0, dim=1)
    assert certify(flat, dim=1).verdict == "proved"
    certificate = certify(flat, dim=2)
    assert certificate.verdict == "refuted" and certificate.points.shape[1] == 2
    distance = np.linalg.norm(certificate.points[:, None] - certificate.points[None], axis=-1)
    assert np.linalg.eigvalsh(np.maximum(1 - distance, 0))[0] == pytest.approx(certificate.eigenvalues[-1])
    assert certificate.dimension == 1
    assert certificate.reason.endswith("; it is positive definite in ℝ^m for m ≤ 1")
    beyond = certify(Wendland(smoothness=2, dim=3), np.ones((2, 4)))  # too faint for float64: a theorem
    assert beyond.verdict == "refuted" and beyond.points is beyond.frequency is None
    assert beyond.reason.endswith("is positive definite in ℝ^m for m ≤ 3, not in ℝ^4 (Wendland 1995)")
    assert certify(Wendland(smoothness=2, dim=3), np.ones((2, 3))).verdict == "proved"


def test_points_that_refute_nothing_do_not_save_a_kernel():
    certificate = certify(BallIndicator(), [[1.0], [1.5]])
    assert certificate.verdict == "refuted" and len(certificate.points) == 3


# --- evidence is not a proof ---------------------------------------------------------------------


def test_unknown_says_where_the_derivation_stopped():
    # positive definite (a power series with coefficients ≥ 0), and beyond the rules
    cosh = Formula(lambda pair: exp(pair.dot) + exp(-pair.dot))
    certificate = certify(cosh)
    assert certificate.verdict == "unknown"
    assert certificate.reason.startswith(
        "no rule proves Formula(function=<lambda>), k = (exp(dot) + exp(dot * -1)); no witness among "
    )
    assert certificate.reason.endswith(" sets of points, which is evidence and not a proof")
    with_points = certify(cosh, [[0.0], [1.0]])
    assert "; the smallest eigenvalue of its Gram matrix at the 2 given points is " in with_points.reason
    assert with_points.reason.endswith(" sets of points of our own either")


def test_precomputed_matrices():
    refuted = certify(Precomputed([[1.0, 2.0], [2.0, 1.0]]))
    assert refuted.verdict == "refuted"
    np.testing.assert_array_equal(refuted.points, [0, 1])
    assert refuted.eigenvalues == pytest.approx([3, -1])
    unknown = certify(Precomputed([[2.0, 1.0], [1.0, 2.0]]))
    assert unknown.verdict == "unknown"
    assert unknown.reason == (
        "Precomputed(matrix=[[2.0, 1.0], [1.0, 2.0]]) is computed outside any formula, so nothing can be "
        "proved about it; the smallest eigenvalue of its Gram matrix at the 2 given points is 1 "
        "(rounding explains values down to -9e-13), which is evidence and not a proof"
    )
    assert certify(Precomputed()).reason == (
        "Precomputed() is computed outside any formula, so nothing can be proved about it; "
        "pass points to look for a witness among them"
    )


def test_a_matrix_of_rounded_numbers_is_not_refuted_by_its_rounding(rng):
    X = rng.normal(size=(60, 3))
    K = X @ X.T  # rank 3: fifty-seven eigenvalues are rounding errors of either sign
    assert np.linalg.eigvalsh(K)[0] < 0
    assert certify(Precomputed(K)).verdict == "unknown"
    assert certify(Precomputed(K.astype(np.float32))).verdict == "unknown"
    assert certify(Precomputed(K - 1e-6 * np.eye(60))).verdict == "refuted"


def test_kernels_on_objects_need_points():
    common = FromFunction(lambda a, b: len(set(a) & set(b)))
    assert certify(common).verdict == certify(common, ["kernel", "colonel"]).verdict == "unknown"
    apart = certify(FromFunction(lambda a, b: abs(len(a) - len(b))), ["a", "abc", "ab"])
    assert apart.verdict == "refuted" and len(apart.points) == 2
    assert "at 'a'" in str(apart)
    order = certify(FromFunction(lambda a, b: float(a < b)), ["a", "b", "c"])
    assert order.reason == "k(x, x') = 1 but k(x', x) = 0: it is not symmetric"


def test_no_warning_about_the_slow_path_reaches_the_user(rng):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        certify(FromFunction(lambda a, b: 1.0), ["a", "b"])
        certify(FromFunction(lambda a, b: 1.0), ["a"] * 300)


def test_values_that_are_not_finite_are_reported():
    certificate = certify(Formula(lambda pair: exp(pair.dot) - 1 / pair.sqdist), [[0.0], [1.0]])
    assert "at the 2 given points its values are not all finite numbers" in certificate.reason


def test_made_up_points_may_be_impossible():
    assert certify(BallIndicator().on("age")).reason == (
        "no rule proves BallIndicator(radius=1.0), k = [sqdist <= (radius)**2]; "
        "no points could be made up for it: pass some"
    )


# --- rounding is not a witness -------------------------------------------------------------------


def test_a_proved_kernel_is_not_contradicted_by_rounding(rng):
    far = rng.normal(size=(40, 3)) + 1e8
    near = np.vstack([far[:10], far[:10] * (1 + 1e-15)])
    for kernel in (
        Linear().centered(far),
        Gaussian(1.0).centered(far),
        ArcCosine(0),
        Polynomial(5),
        Matern(2.2),
    ):
        assert certify(kernel, near).verdict == "proved"


def test_a_contradiction_is_loud(monkeypatch):
    monkeypatch.setattr(BallIndicator, "lemma", "all balls are round")
    assert certify(BallIndicator()).verdict == "proved"  # nothing to contradict it
    with pytest.raises(RuntimeError) as error:
        certify(BallIndicator(), [[1.0], [2.0], [3.0]])
    assert str(error.value) == (
        "mercer contradicts itself: BallIndicator(radius=1.0) is proved (all balls are round), and yet at "
        "3 points its Gram matrix has the eigenvalue -0.414214 < 0. If it contains a function of yours, "
        "check that it returns the same values each time; otherwise please report this, with\n"
        "BallIndicator(radius=1.0) is refuted: at 3 points its Gram matrix has the eigenvalue -0.414214 < 0\n"
        "eigenvalues: 2.41421, 1, -0.414214\n"
        "c = 0.5 at [1.0]\n"
        "c = -0.707107 at [2.0]\n"
        "c = 0.5 at [3.0]"
    )


# --- the certificate -----------------------------------------------------------------------------


def test_a_certificate_has_no_truth_value():
    with pytest.raises(TypeError) as error:
        bool(certify(Linear()))
    assert str(error.value) == (
        "a certificate has three verdicts and no truth value: write certificate.verdict == 'proved'"
    )


def test_a_certificate_prints_its_derivation():
    certificate = certify(2 * Gaussian(1.0).on(0) * Min().on(1))
    assert isinstance(certificate, Certificate) and isinstance(certificate.steps, Step)
    assert str(certificate) == (
        "2 * Gaussian(sigma=1.0).on(0) * Min().on(1) is proved positive definite: "
        "a product of kernels (Schur), for points ≥ 0\n"
        "2 * Gaussian(sigma=1.0).on(0) * Min().on(1): a product of kernels (Schur)\n"
        "├─ 2 * Gaussian(sigma=1.0).on(0): a kernel times 2 ≥ 0\n"
        "│  └─ Gaussian(sigma=1.0).on(0): a kernel on some of the columns\n"
        f"│     └─ Gaussian(sigma=1.0): {Gaussian.lemma}\n"
        "└─ Min().on(1): a kernel on some of the columns\n"
        f"   └─ Min(): {Min.lemma} [points ≥ 0]"
    )
    assert repr(certify(Linear())) == "Certificate(verdict='proved', reason='an inner product')"


def test_a_certificate_cannot_be_changed():
    with pytest.raises(AttributeError):
        certify(Linear()).verdict = "refuted"


def test_points_of_many_kinds(rng):
    pandas = pytest.importorskip("pandas")
    from scipy import sparse

    table = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "b": [0.0, 0.0, 0.0]})
    for points in (
        table,
        sparse.csr_array(table.to_numpy()),
        table.to_numpy().astype(np.float32),
        table.values.tolist(),
    ):
        certificate = certify(BallIndicator(), points)
        assert len(certificate.vector) == 3
        assert "c = 0.5 at [1.0, 0.0]" in str(certificate)
    certificate = certify(BallIndicator().on("a"), table)
    assert list(certificate.points["a"]) == [1.0, 2.0, 3.0]
    assert "at [1.0, 0.0]" in str(certificate)


def test_names_and_words_from_the_data(rng):
    assert certify("rbf").verdict == "proved"
    assert certify("sigmoid", rng.normal(size=(30, 2))).verdict == "refuted"
    assert certify("sigmoid").reason == (
        "eta='scale' of Sigmoid(eta='scale', nu=0.0) waits for data: call kernel.resolve(X) first, "
        "or fit an estimator; pass points to look for a witness among them"
    )


@pytest.mark.parametrize("dim", [0, -1, 1.5, True, "3"])
def test_refuses_a_dimension_that_is_none(dim):
    with pytest.raises(ValueError) as error:
        certify(Linear(), dim=dim)
    assert str(error.value) == (
        f"dim must be a whole number of at least 1, got {dim!r}: pass the number of columns of the points"
    )


def test_refuses_two_dimensions():
    with pytest.raises(ValueError) as error:
        certify(Linear(), np.ones((2, 3)), dim=4)
    assert str(error.value) == (
        "dim is 4 but the points have 3 columns: leave dim out, or pass points in ℝ^4"
    )


def test_refuses_what_is_no_kernel_object_and_no_points():
    with pytest.raises(ValueError, match="kernel must be a Kernel such as Gaussian"):
        certify(3.0)
    with pytest.raises(ValueError, match="points contains 1 NaN"):
        certify(Linear(), [[np.nan]])


def test_one_function_under_two_names():
    assert mercer.certify.certify is module_function
    assert mercer.certify(Linear()).verdict == module_function(Linear()).verdict
