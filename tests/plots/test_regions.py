"""Regions and boundaries of several classes, and what the picture says in words."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from mercer import SVC, Gaussian, KernelLogisticRegression, KernelPerceptron, Linear, Polynomial
from mercer.errors import InputError
from mercer.plots import DecisionBoundaryDisplay, KernelShapeDisplay
from mercer.plots.regions import Regions, winners
from mercer.plots.style import new_figure


@pytest.fixture
def ax():
    return new_figure()[1]


def test_xor_is_described_by_what_is_predicted(ax):
    """f = (x₁ + x₂)² is zero on two of the points and positive on every place of the grid around them."""
    X, y = np.array([[1.0, 1], [-1, 1], [-1, -1], [1, -1]]), np.array([1, -1, 1, -1])
    model = KernelPerceptron(kernel=Polynomial(2, c=0), fit_intercept=False).fit(X, y)
    assert model.score(X, y) == 1.0
    text = DecisionBoundaryDisplay.from_estimator(model, X, y, ax=ax).describe()
    assert "The model is right on 100% of the points." in text


def test_on_a_plane_in_feature_space_predictions_count_too(ax):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = SVC(C=100.0).fit(X, y)
    text = DecisionBoundaryDisplay.from_estimator(model, X, y, plane="principal", ax=ax).describe()
    assert f"right on {model.score(X, y):.0%} of the points" in text


def lines(ax):
    """The vertices of all lines that were drawn as boundaries."""
    paths = [path for c in ax.collections if hasattr(c, "levels") for path in c.get_paths()]
    return np.concatenate([path.vertices for path in paths if len(path.vertices)])


@pytest.mark.parametrize("model", [
    SVC(C=10.0),
    SVC(C=10.0, multi_class="ovr"),
    KernelLogisticRegression(kernel=Gaussian(3.0)),
])  # fmt: skip
def test_boundaries_are_where_two_classes_are_equal_and_no_staircase(model, ax):
    X, y = make_blobs(150, centers=4, cluster_std=1.6, random_state=3)
    shown = DecisionBoundaryDisplay.from_estimator(model.fit(X, y), X, y, grid=60, ax=ax)
    places = lines(ax)
    step = np.array([np.diff(shown.horizontal)[0], np.diff(shown.vertical)[0]])
    # every vertex has two classes within a quarter of a cell of the grid, and so do vertices of no staircase:
    around = places[:, None] + 0.3 * step * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
    labels = model.predict(around.reshape(-1, 2)).reshape(len(places), 4)
    assert (labels != labels[:, :1]).any(axis=1).mean() > 0.98
    # a staircase has sides along the axes only; these lines have next to none
    moves = np.abs(np.diff(places, axis=0)) / step
    near = moves.max(axis=1) < 1
    assert (moves[near].min(axis=1) > 1e-9).mean() > 0.8


def test_lines_of_three_half_planes_meet_and_end():
    """Classes by the largest of three linear functions: rays from one point."""
    x = np.linspace(-1, 1, 41)
    u, v = np.meshgrid(x, x)
    values = np.stack([u, -0.5 * u + v, -0.5 * u - v], axis=-1)
    found = Regions(values, 3, by_pairs=False)
    for difference in found.lines():
        shown = ~np.ma.getmaskarray(difference)
        assert shown.any() and (np.abs(difference[shown]) < 0.2).all()
    assert (found.refined().codes()[::4, ::4] == found.codes()).all()


def test_votes_and_largest_values():
    rng = np.random.default_rng(0)
    F = rng.normal(size=(50, 3))
    assert (winners(F, 3, by_pairs=False) == F.argmax(axis=1)).all()
    pairs = np.stack([F[:, 0] - F[:, 1], F[:, 0] - F[:, 2], F[:, 1] - F[:, 2]], axis=1)
    assert (winners(pairs, 3, by_pairs=True) == F.argmax(axis=1)).all()  # no cycles: one beats all others


def test_kernels_in_a_list(ax):
    kernels = [Gaussian(sigma=1.0), Linear()]
    listed = KernelShapeDisplay.from_kernels(kernels, points=5, ax=ax)
    given = KernelShapeDisplay.from_kernels(*kernels, points=5, ax=ax)
    assert listed.names == given.names and np.array_equal(listed.values, given.values)
    with pytest.raises(InputError, match="pass kernels on vectors"):
        KernelShapeDisplay.from_kernels([], ax=ax)
