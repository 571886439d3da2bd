"""Witnesses: how they are made small, and how they are searched for."""

from importlib import import_module

import numpy as np
import pytest

from mercer import BallIndicator, Gaussian, Min, Sigmoid
from mercer.certify import witness
from mercer.certify.rounding import gram_with_error
from mercer.certify.search import search
from mercer.certify.witness import Evidence, Witness, examine, smallest, witness_at
from mercer.kernels.expression import tanh
from mercer.kernels.pair import Pair


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
    monkeypatch.setattr(witness, "_MANY", 40)
    assert isinstance(examine(BallIndicator(), points), Witness)
    assert isinstance(examine(Gaussian(1.0), points), Evidence)
    monkeypatch.setattr(witness, "_SAMPLE", 30)
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
