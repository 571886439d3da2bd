"""Witnesses: how they are made small, and how they are searched for."""

from importlib import import_module

import numpy as np
import pytest

from mercer import BallIndicator, Gaussian, Kernel, Min, Radial, SetKernel, Sigmoid, certify
from mercer.certify import witness
from mercer.certify.optimise import descended, share
from mercer.certify.rounding import gram_with_error
from mercer.certify.search import search
from mercer.certify.witness import Evidence, Witness, examine, smallest, witness_at
from mercer.kernels import fixed
from mercer.kernels.formula.expression import absolute, cos, exp, maximum, sqrt, tanh
from mercer.kernels.formula.pair import Pair


def none(K):
    return np.zeros_like(K)


def embedded(block, n, seed):
    """A positive definite matrix with a block of another at random places, and these places."""
    random = np.random.default_rng(seed)
    K = np.eye(n) * 10.0
    places = np.sort(random.choice(n, len(block), replace=False))
    K[np.ix_(places, places)] = block
    return K, places


BLOCKS = {
    1: np.array([[-1.0]]),
    2: np.array([[1.0, 2.0], [2.0, 1.0]]),
    3: np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]]),
    5: np.eye(5) * 1.2 - 0.28,  # every four of them are positive semidefinite
}


@pytest.mark.parametrize("size", BLOCKS)
@pytest.mark.parametrize("n", [8, 40, 150])
def test_the_fewest_points_are_kept(size, n):
    K, places = embedded(BLOCKS[size], n, seed=size)
    found = witness_at(np.arange(n), K, none(K))
    np.testing.assert_array_equal(found.points, places)
    assert found.vector @ BLOCKS[size] @ found.vector == pytest.approx(found.eigenvalues[-1])
    assert (np.diff(found.eigenvalues) <= 0).all()


def test_a_negative_eigenvalue_within_the_error_is_no_witness():
    K = np.array([[1.0, 1.0 + 1e-9], [1.0 + 1e-9, 1.0]])
    assert witness_at(np.arange(2), K, none(K)) is not None
    assert witness_at(np.arange(2), K, np.full((2, 2), 1e-9)) is None
    K = np.array([[1.0, 0.5], [0.5 + 1e-9, 1.0]])
    assert witness_at(np.arange(2), K, none(K)).vector is None
    assert witness_at(np.arange(2), K, np.full((2, 2), 1e-9)) is None


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1.0, 1e30, 1e150])
def test_the_size_of_the_numbers_does_not_matter(scale):
    K = BLOCKS[3] * scale
    assert len(witness_at(np.arange(3), K, none(K)).vector) == 3
    low, tolerance = smallest(Gaussian(1.0)(np.zeros((5, 1))) * scale, np.zeros((5, 5)))
    assert low >= -tolerance


def test_many_points_go_through_the_engine(monkeypatch, rng):
    points = rng.uniform(0, 10, size=(90, 1))
    monkeypatch.setattr(witness, "_EXAMINED_CLOSELY", 40)
    assert isinstance(examine(BallIndicator(), points), Witness)
    assert isinstance(examine(Gaussian(1.0), points), Evidence)
    monkeypatch.setattr(witness, "_MOST_POINTS", 30)
    assert examine(Gaussian(1.0), points).n == 30


def test_evidence_is_a_sentence():
    assert str(Evidence(5, 0.25, 1e-15)) == (
        "the smallest eigenvalue of its Gram matrix at the 5 given points is 0.25 "
        "(rounding explains values down to -1e-15), which is evidence and not a proof"
    )
    assert str(Evidence(5)) == "at the 5 given points its values are not all finite numbers"


# --- the search ----------------------------------------------------------------------------------


@pytest.mark.parametrize("radius", [1e-3, 0.37, 1.0, 3.0, 500.0])
@pytest.mark.parametrize("dim", [None, 1, 2, 7])
def test_a_ball_of_any_size_has_three_points_on_a_line(radius, dim):
    found, _ = search(BallIndicator(radius), dim)
    assert len(found.points) == 3 and found.points.shape[1] == (dim or 1)
    assert found.eigenvalues[-1] == pytest.approx(1 - np.sqrt(2))


def test_the_search_respects_the_domain():
    found, _ = search(Min() + 5 * Sigmoid(1.0, 0.5))
    assert (found.points >= 0).all()
    found, _ = search((Min() + 5 * Sigmoid(1.0, 0.5)).on(2))
    assert (found.points >= 0).all() and found.points.shape[1] == 3


def test_the_search_uses_as_many_columns_as_the_kernel_wants():
    found, _ = search(BallIndicator().on(4))
    assert found.points.shape[1] == 5
    scaled = BallIndicator() * Gaussian(sigma=[9.0, 9.0, 9.0, 9.0])
    assert search(scaled)[0].points.shape[1] == 4


def test_the_search_finds_nothing_against_a_kernel():
    found, tried = search(Gaussian(1.0))
    assert found is None and tried > 500


def test_the_search_survives_maps_that_refuse_points():
    def picky(X):
        raise KeyError("no such column")

    assert search(BallIndicator() @ picky) == (None, 0)


def test_descent_finds_what_the_shapes_miss(monkeypatch):
    monkeypatch.setattr(
        import_module("mercer.certify.search"), "_SCALES", [1e-3]
    )  # there tanh(xy) is xy up to rounding
    kernel = Sigmoid(1.0)
    found, tried = search(kernel, 1)
    assert found is not None and tried < 5000
    X = found.points
    assert found.vector @ np.tanh(X @ X.T) @ found.vector < 0


def test_rounder_points_are_preferred():
    found, _ = search(BallIndicator(0.37))
    np.testing.assert_array_equal(found.points, found.points.round(2))


def test_a_witness_holds_for_the_formula_itself():
    formula = tanh(Pair().dot)
    K, E = gram_with_error(formula, search(Sigmoid(1.0))[0].points)
    low, tolerance = smallest(K, E)
    assert low < -tolerance


# --- kernels that fail subtly --------------------------------------------------------------------


class Formula(Kernel):
    function = fixed(None)

    def formula(self, pair):
        return self.function(pair)


SUBTLE = {
    "exponent a little above 2": (lambda p: exp(-(p.sqdist**1.0005)), 1),
    "a small negative coefficient": (lambda p: 1 + p.dot - 1e-4 * p.dot**2 + p.dot**4, 1),
    "a negative cube among others": (
        lambda p: 1 + p.dot + p.dot**2 - 0.1 * p.dot**3 + p.dot**4 + p.dot**6,
        1,
    ),
    "a narrow Gaussian taken away": (lambda p: exp(-p.sqdist / 2) - 0.02 * exp(-2 * p.sqdist), 3),
    "Matérn with a linear term too large": (lambda p: (1 + 1.05 * sqrt(p.sqdist)) * exp(-sqrt(p.sqdist)), 1),
    "a Gaussian cut off at four sigma": (lambda p: exp(-p.sqdist / 2) * (p.sqdist <= 16), 1),
    "cosine of a distance in the plane": (lambda p: cos(sqrt(p.sqdist)), 2),
    "l1 norm to a power above 1": (lambda p: exp(-(p.sum(lambda a, b: absolute(a - b)) ** 1.05)), 2),
    "l4 norm in space": (lambda p: exp(-(p.sum(lambda a, b: (a - b) ** 4) ** 0.25)), 3),
    "tanh beside a line": (lambda p: p.dot + tanh(0.001 * p.dot + 0.1), 1),
    "tanh beside a square": (lambda p: (1 + p.dot) ** 2 / 2 + tanh(0.3 * p.dot + 0.7), 3),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", SUBTLE)
def test_kernels_that_fail_subtly_are_refuted(name):
    function, dim = SUBTLE[name]
    found, _ = search(Formula(function), dim)
    assert found is not None and found.points.shape[1] == dim and len(found.gram) <= 12
    K, E = gram_with_error(Formula(function).expression(), found.points)
    low, tolerance = smallest(K, E)
    assert low < -tolerance


def test_points_move_to_make_do_with_fewer(monkeypatch):
    module = import_module("mercer.certify.search")
    hat = Formula(lambda p: maximum(1 - sqrt(p.sqdist), 0))
    few = search(hat, 2)[0]
    monkeypatch.setattr(module, "_SMALLEST_WITNESS", 1000)  # never
    many = search(hat, 2)[0]
    assert len(few.gram) < len(many.gram)


def test_descent_goes_down():
    formula = tanh(Pair().dot)
    start = np.array([[0.3, 0.1], [0.2, -0.4], [0.5, 0.3]])
    end = descended(formula, start)
    assert share(formula, end) < share(formula, start) - 0.01
    inside = descended(formula, abs(start), inside=abs)
    assert (inside >= 0).all() and share(formula, inside) < share(formula, abs(start))


# --- scales, and the fewest points ---------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-40, 1e-9, 1e9, 1e40])
def test_a_witness_is_found_at_the_scale_of_the_kernel(scale):
    ball = certify(BallIndicator(scale))
    assert ball.verdict == "refuted"
    np.testing.assert_allclose(ball.eigenvalues, [1 + np.sqrt(2), 1.0, 1 - np.sqrt(2)])
    assert 0.1 * scale < abs(ball.points).max() < 10 * scale
    mixed = certify(Gaussian(1.0) + 0.01 * BallIndicator(min(scale, 1 / scale)))  # two scales far apart
    assert mixed.verdict == "refuted" and len(mixed.points) == 3


@pytest.mark.parametrize(
    ("kernel", "dim", "fewest"),
    [(Radial([1.0], dim=3), 4, 6), (Radial([1.0], dim=1), 2, 3), (BallIndicator(), 1, 3)],
)
def test_no_point_of_a_witness_can_be_left_out(kernel, dim, fewest):
    """Fewer were not found by descent from hundreds of random sets."""
    certificate = certify(kernel, dim=dim)
    assert len(certificate.points) == fewest
    K = kernel(certificate.points)
    assert certificate.vector @ K @ certificate.vector < 0
    for i in range(fewest):
        rest = np.delete(np.delete(K, i, axis=0), i, axis=1)
        assert np.linalg.eigvalsh(rest)[0] > -1e-12


def test_sets_of_one_element_refute_a_set_kernel():
    certificate = certify(SetKernel(BallIndicator()))
    assert certificate.verdict == "refuted" and certificate.points == [[[1.0]], [[2.0]], [[3.0]]]
    K = SetKernel(BallIndicator())(certificate.points)
    assert certificate.vector @ K @ certificate.vector == pytest.approx(1 - np.sqrt(2))
    assert certify(SetKernel(Gaussian(1.0))).verdict == "proved"
