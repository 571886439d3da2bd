"""What pictures tell beside their colours: contours, counts, legends and labels, each once."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from mercer import Gaussian, KernelRidge, Matern, OneClassSVM
from mercer.plots import CalibrationDisplay, ConfusionDisplay, DecisionBoundaryDisplay, TrialsDisplay
from mercer.plots.style import colour, new_figure


@pytest.fixture
def ax():
    return new_figure()[1]


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


# --- a regression in two dimensions ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def slope():
    X = np.random.default_rng(0).uniform(0, 1, (60, 2))
    return X, KernelRidge(1e-8, kernel="linear").fit(X, 3 * X[:, 0] - X[:, 1])


def test_contours_are_where_f_has_their_value(slope, ax):
    X, model = slope
    shown = DecisionBoundaryDisplay.from_estimator(model, X, 3 * X[:, 0] - X[:, 1], ax=ax)
    levels = shown.levels()
    assert 4 <= len(levels) <= 8 and np.ptp(np.diff(levels)) < 1e-9
    (lines,) = [item for item in ax.collections if hasattr(item, "allsegs")]
    np.testing.assert_allclose(lines.levels, levels)
    for level, segments in zip(lines.levels, lines.allsegs, strict=True):
        for line in segments:  # f is linear, and so is what is between the places of the grid
            np.testing.assert_allclose(3 * line[:, 0] - line[:, 1], level, atol=1e-5)
    assert shown.describe().endswith(f"with contours from {levels[0]:g} to {levels[-1]:g}.")
    assert ax.texts or lines.labelTexts  # each line has its number


def test_the_bar_has_the_numbers_of_the_contours(slope, ax):
    X, model = slope
    shown = DecisionBoundaryDisplay.from_estimator(model, X, ax=ax)
    bar = ax.child_axes[0]
    np.testing.assert_allclose(bar.get_yticks(), shown.levels(), atol=1e-12)


def test_many_contours_have_no_numbers_of_their_own(ax):
    X = np.random.default_rng(0).uniform(-3, 3, (200, 2))
    model = KernelRidge(0.01, kernel=Gaussian(0.3)).fit(X, np.random.default_rng(1).normal(size=200))
    DecisionBoundaryDisplay.from_estimator(model, X, ax=ax)
    (lines,) = [item for item in ax.collections if hasattr(item, "allsegs")]
    assert sum(map(len, lines.allsegs)) > 20 and not ax.texts


def test_a_constant_has_no_contours(ax):
    X = np.random.default_rng(0).uniform(0, 1, (20, 2))
    shown = DecisionBoundaryDisplay.from_estimator(KernelRidge(1.0).fit(X, np.zeros(20)), X, ax=ax)
    shown.values = np.zeros_like(shown.values)
    assert len(shown.levels()) == 0 and shown.plot(new_figure()[1])
    assert shown.describe() == "20 points along x₁ and x₂, over the values of the learned function."


# --- one class -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plane", ["auto", "principal"])
def test_typical_and_novel_points_are_named(plane, ax):
    X = np.random.default_rng(0).normal(size=(80, 2))
    model = OneClassSVM(nu=0.2, kernel=Gaussian(1.0)).fit(X)
    shown = DecisionBoundaryDisplay.from_estimator(model, X, plane=plane, ax=ax)
    told = model.predict(X)
    np.testing.assert_array_equal(shown.predicted, told == 1)
    assert legend_of(ax) == ["novel", "typical", "support vectors"]
    novel, typical, rings = ax.collections[-3:]
    assert (len(novel.get_offsets()), len(typical.get_offsets())) == (np.sum(told == -1), np.sum(told == 1))
    assert len(rings.get_offsets()) == len(model.support_)
    # A point has the colour of the region that it was told to be in.
    np.testing.assert_allclose(novel.get_facecolor()[0, :3], to_rgb(colour(0)))
    np.testing.assert_allclose(typical.get_facecolor()[0, :3], to_rgb(colour(1)))
    assert f"{np.sum(told == -1)} of them are novel" in shown.describe()


# --- confusion -------------------------------------------------------------------------------------------


def test_what_never_happened_has_the_colour_of_the_paper(ax):
    ConfusionDisplay.from_predictions([0] * 99 + [1, 2], [0] * 98 + [1, 1, 2], ax=ax)
    image = ax.images[0]
    colours = image.cmap(image.norm(image.get_array()))
    assert colours[0, 2, 3] == 0.0  # transparent
    assert 0.08 < colours[0, 1, 3] < 0.15  # one of a hundred is seen
    assert colours[0, 0, 3] > 0.99 and colours[1, 1, 3] == 1.0
    np.testing.assert_allclose(colours[0, 0, :3], to_rgb(colour(0)))
    written = {(round(t.get_position()[1]), round(t.get_position()[0])): t.get_text() for t in ax.texts}
    assert written == {(0, 0): "98", (0, 1): "1", (1, 1): "1", (2, 2): "1"}


@pytest.mark.sample(4)
@pytest.mark.parametrize("classes", [10, 15, 26, 100])
def test_names_of_many_classes_do_not_touch(classes):
    y = np.arange(classes)
    shown = ConfusionDisplay.from_predictions(y, y, ax=new_figure()[1])
    shown.figure_.canvas.draw()
    boxes = [label.get_window_extent() for label in shown.ax_.get_xticklabels()]
    assert min(classes, 8) <= len(boxes) <= 15
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


# --- calibration -----------------------------------------------------------------------------------------


def test_calibration_counts_its_points(ax):
    p = np.random.default_rng(0).uniform(size=103)
    y = (np.random.default_rng(1).uniform(size=103) < p).astype(int)
    shown = CalibrationDisplay.from_predictions(
        y, np.column_stack([1 - p, p]), classes=[0, 1], bins=10, ax=ax
    )
    np.testing.assert_array_equal(shown.spread, [np.sum((p * 20).astype(int) == i) for i in range(20)])
    assert legend_of(ax) == [
        "as it should be", "share of 10 to 11 points each", f"points, up to {shown.spread.max()} in a bar",
    ]  # fmt: skip
    assert "in 10 bins of 10 to 11 points: " in shown.describe()
    heights = [bar.get_height() for bar in ax.patches]
    np.testing.assert_allclose(heights / np.max(heights), shown.spread / shown.spread.max())


@pytest.mark.parametrize(("points", "words"), [(30, "3 points"), (10, "1 point")])
def test_equal_bins_are_told_shortly(points, words, ax):
    p = np.linspace(0, 1, points)
    shown = CalibrationDisplay.from_predictions(
        np.arange(points) % 2, np.column_stack([1 - p, p]), classes=[0, 1], ax=ax
    )
    assert f"share of {words} each" in legend_of(ax) and f"10 bins of {words}:" in shown.describe()
    assert shown.spread.sum() == points  # probability 1 is counted, too


# --- trials ----------------------------------------------------------------------------------------------


def labels_of(rows):
    return TrialsDisplay.from_trials(rows, ax=new_figure()[1]).labels()


def trial(kernel, error, **facts):
    return {"kernel": kernel, "error": error, **facts}


def test_trials_of_one_kernel_are_told_apart():
    k = Gaussian(2.0)
    rows = [trial(k, 0.1, penalty=0.5), trial(k, 0.2, penalty=10.0), trial(Matern(1.5), 0.3, penalty=0.5)]
    assert labels_of(rows) == ["Gaussian, penalty 0.5", "Gaussian, penalty 10", "Matérn 3/2"]
    rows = [trial(k, 0.1, points=2000), trial(k, 0.2, points=500)]
    assert labels_of(rows) == ["Gaussian, 2,000 points", "Gaussian, 500 points"]
    rows = [trial(k, 0.1), trial(k, 0.2), trial(k, 0.3)]
    assert labels_of(rows) == ["Gaussian", "Gaussian (2)", "Gaussian (3)"]


def test_long_names_keep_what_tells_them_apart():
    long = "a kernel whose name is too long for a label, of "
    labels = labels_of([trial(long + "one", 0.1), trial(long + "two", 0.2), trial(long[:-4] + "?", 0.3)])
    assert [label[-3:] for label in labels[:2]] == ["one", "two"] and max(map(len, labels)) <= 34


@pytest.mark.parametrize("kernels", [[Gaussian(1.00001), Gaussian(1.000012)], [Gaussian(1.0)] * 4, ["a"] * 3])
def test_no_label_is_there_twice(kernels, ax):
    rows = [trial(k, 0.1 * i, penalty=1.0, points=10 + i % 2) for i, k in enumerate(kernels)]
    shown = TrialsDisplay.from_trials(rows, ax=ax)
    drawn = [label.get_text() for label in ax.get_yticklabels()]
    assert drawn == shown.labels() and len(set(drawn)) == len(kernels)
