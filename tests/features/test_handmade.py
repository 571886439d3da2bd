"""Maps that are made by hand: radius and angle, strokes of drawn characters, colours of images."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import SVC, Gaussian, Linear
from mercer.errors import InputError
from mercer.features import InkFeatures, PolarMap, color_histogram

#: characters as one draws them, and (loops, 3-joints, 4-joints, ends, angles) as one counts them
DRAWN = {
    "1": ("....#....|....#....|....#....|....#....|....#....|....#....|....#....|....#....", (0, 0, 0, 2, 0)),
    "7": ("#######..|......#..|......#..|......#..|......#..|......#..|......#..|......#..", (0, 0, 0, 2, 1)),
    "L": ("#........|#........|#........|#........|#........|#........|#........|#######..", (0, 0, 0, 2, 1)),
    "T": (".#######.|....#....|....#....|....#....|....#....|....#....|....#....|....#....", (0, 1, 0, 3, 0)),
    "+": ("....#....|....#....|....#....|#########|....#....|....#....|....#....|....#....", (0, 0, 1, 4, 0)),
    "6": (
        "#........|#........|#........|#........|#######..|#.....#..|#.....#..|#.....#..|#######..",
        (1, 1, 0, 1, 3),
    ),
    "8": (
        "..#####..|..#...#..|..#...#..|...###...|....#....|...###...|..#...#..|..#...#..|..#####..",
        (2, 0, 1, 0, None),
    ),
    " ": (".........|.........|.........|.........|.........|.........|.........|.........", (0, 0, 0, 0, 0)),
}  # fmt: skip


def image(text):
    rows = text.split("|")
    rows += ["." * 9] * (9 - len(rows))
    return np.pad(np.array([[mark == "#" for mark in row] for row in rows], dtype=float), 2)


@parametrize_with_checks([PolarMap(), InkFeatures()])
def test_scikit_learn(estimator, check):
    check(estimator)


# --- polar -----------------------------------------------------------------------------------------------


def test_radius_and_angle_give_the_point_back(rng):
    X = rng.normal(size=(50, 2))
    r, angle = PolarMap()(X).T
    np.testing.assert_allclose(np.stack([r * np.sin(angle), r * np.cos(angle)], axis=1), X, atol=1e-14)
    assert (r >= 0).all() and (np.abs(angle) <= np.pi).all()
    np.testing.assert_array_equal(PolarMap()([[0.0, 0.0], [0.0, -0.0]]), np.zeros((2, 2)))


def test_other_columns_stay(rng):
    X = rng.normal(size=(6, 4))
    out = PolarMap(columns=(3, 1))(X)
    np.testing.assert_array_equal(out[:, [0, 2]], X[:, [0, 2]])
    np.testing.assert_array_equal(out[:, [3, 1]], PolarMap()(X[:, [3, 1]]))


def test_a_spiral_is_a_line():
    angle = np.linspace(-3.0, 3.0, 40)
    spiral = (5 + angle)[:, None] * np.stack([np.sin(angle), np.cos(angle)], axis=1)
    r, found = PolarMap()(spiral).T
    np.testing.assert_allclose(r, 5 + found, atol=1e-13)


def test_it_is_a_map_of_kernels(rng):
    X = rng.normal(size=(5, 2))
    np.testing.assert_array_equal((Gaussian(1.0) @ PolarMap())(X), Gaussian(1.0)(PolarMap()(X)))


@pytest.mark.parametrize("columns", [(0, 0), (0,), (0, -1), "ab", (0.5, 1), None])
def test_columns_are_two_positions(columns):
    message = "columns must be the positions of two different columns"
    with pytest.raises(InputError, match=message):
        PolarMap(columns=columns)(np.zeros((2, 2)))


def test_points_need_both_columns():
    with pytest.raises(InputError, match=r"in a table of at least 4 columns, got points with 2 feature\(s\)"):
        PolarMap(columns=(0, 3)).fit_transform(np.zeros((3, 2)))


# --- ink -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("name", DRAWN)
def test_strokes_are_counted_as_one_counts_them(name, times):
    """Drawn with a thin pen and with thick ones."""
    text, expected = DRAWN[name]
    drawn = np.kron(image(text), np.ones((times, times)))
    found = InkFeatures()(drawn.reshape(1, -1))[0]
    for count, right in zip(found, expected, strict=False):
        assert right is None or count == right, (name, found)
    assert found[-1] == pytest.approx(drawn.mean())


def test_each_image_is_counted_alone():
    """Also where there are more than are looked at together, and turned by a right angle."""
    images = np.stack([image(DRAWN[name][0]) for name in DRAWN] * 20)
    alone = np.concatenate([InkFeatures()(one.reshape(1, -1)) for one in images[: len(DRAWN)]])
    np.testing.assert_array_equal(InkFeatures()(images.reshape(len(images), -1)), np.tile(alone, (20, 1)))
    turned = np.rot90(images[: len(DRAWN)], axes=(1, 2)).reshape(len(DRAWN), -1)
    np.testing.assert_array_equal(InkFeatures()(turned)[:, :4], alone[:, :4])


def test_a_scale_of_the_pixels_changes_the_ink_alone(rng):
    X = rng.uniform(size=(10, 64))
    np.testing.assert_allclose(InkFeatures()(5 * X), InkFeatures()(X) * [1, 1, 1, 1, 1, 5], rtol=1e-12)


def test_the_shape_is_given_or_as_square_as_it_can_be(rng):
    X = rng.uniform(size=(4, 12))
    np.testing.assert_array_equal(InkFeatures()(X), InkFeatures(shape=(3, 4))(X))
    with pytest.raises(InputError, match=r"images of shape \(4, 4\) have 16 pixels, got rows of 12"):
        InkFeatures(shape=(4, 4))(X)
    with pytest.raises(InputError, match=r"shape must be \(height, width\) or None, got \(4, 0\)"):
        InkFeatures(shape=(4, 0))(X)
    with pytest.raises(InputError, match=r"threshold must be a number from 0 to below 1, got 1\.5"):
        InkFeatures(threshold=1.5)(X)
    assert clone(InkFeatures(shape=(3, 4))).fit(X).get_feature_names_out().tolist()[:2] == [
        "loops",
        "3-joints",
    ]


# --- colours ---------------------------------------------------------------------------------------------


def test_colours_are_counted_as_numpy_counts_them(rng):
    image = rng.integers(0, 256, size=(13, 7, 3), dtype=np.uint8)
    expected = np.histogramdd(image.reshape(-1, 3), bins=[np.arange(0, 257, 16)] * 3)[0].ravel()
    np.testing.assert_array_equal(color_histogram(image), expected)
    np.testing.assert_array_equal(color_histogram(image / 256), expected)
    np.testing.assert_array_equal(color_histogram([image, image[:5]])[0], expected)
    np.testing.assert_array_equal(color_histogram(np.stack([image] * 2))[1], expected)
    assert color_histogram(image, levels=256).sum() == 13 * 7


def test_white_is_in_the_last_bin():
    assert color_histogram(np.ones((1, 1, 3)))[-1] == 1
    assert color_histogram(np.full((1, 1, 3), 255), levels=3)[-1] == 1


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((4, 4)), r"of shape \(height, width, 3\), got \(4, 4\)"),
        (np.zeros((4, 4, 4)), "without a channel of transparency"),
        (np.full((2, 2, 3), 256), "must be from 0 to 255, got values from 256 to 256"),
        (np.full((2, 2, 3), np.nan), "must be from 0 to 1.0, got values from nan"),
        (np.full((2, 2, 3), "a"), "the pixels of an image are numbers"),
        ([], "there is no image in the list"),
    ],
)
def test_what_is_no_image_is_refused(image, message):
    with pytest.raises(InputError, match=message):
        color_histogram(image)


def test_levels_have_a_range():
    with pytest.raises(InputError, match="levels must be at most 256"):
        color_histogram(np.zeros((1, 1, 3)), levels=300)


def test_colours_tell_pictures_apart():
    red, blue = np.zeros((2, 8, 8, 3)), np.zeros((2, 8, 8, 3))
    red[..., 0], blue[..., 2] = 0.9, 0.9
    X = color_histogram(np.concatenate([red, blue]))
    assert SVC(kernel=Linear()).fit(X, [0, 0, 1, 1]).score(X, [0, 0, 1, 1]) == 1.0
